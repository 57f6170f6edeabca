"""The first thing that `cas` runs: completion, for which a shell waits at a key press, else the command."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run `cas` with the arguments of the process and return its exit status."""
    if sys.argv[1:2] == ["--complete"]:
        # Before click is imported: that alone takes longer than all of this.
        from cli.completion import complete

        return complete(sys.argv[2:])
    from cli.main import main as run

    return run()
