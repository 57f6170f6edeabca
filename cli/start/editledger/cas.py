"""Start the command `cas`: its script, and `python -m editledger.cas` where no script is installed."""

import gc
import sys

from editledger import isolate

__all__ = ["main"]


def main() -> int:
    """Run `cas` with the arguments of the process and return its exit status."""
    gc.disable()  # until `cli.shell.entry` decides: importing makes no garbage, and looking for it takes 1 ms
    isolate()
    from cli.shell.entry import main as run  # only now can it be nothing but ours

    return run()


if __name__ == "__main__":
    sys.exit(main())
