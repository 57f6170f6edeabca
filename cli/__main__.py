"""Runs the command as `python -m cli`, where no script is installed."""

import sys

from cli.entry import main

sys.exit(main())
