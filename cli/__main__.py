"""Run the command as `python -m cli`, where no script is installed."""

import sys

from editledger import isolate

isolate()

from cli.shell.entry import main  # noqa: E402 - only now can what it imports be nothing but ours

sys.exit(main())
