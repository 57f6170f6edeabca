"""The first thing that `cas` runs: what somebody waits for at every key press or tool call, else the command."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run `cas` with the arguments of the process and return its exit status."""
    if sys.argv[1:2] == ["--complete"]:
        # Before click is imported: that alone takes longer than all of this.
        from cli.completion import complete

        return complete(sys.argv[2:])
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv[2:]):
        # The same: an agent waits for this before and after each of its tools.
        from cli.hooking import main as hook

        return hook(sys.argv[2:])
    from cli.main import main as run

    return run()
