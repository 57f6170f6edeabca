"""Run the command as `python -m cli`, where no script is installed."""

import sys

from cli.shell.entry import main

sys.exit(main())
