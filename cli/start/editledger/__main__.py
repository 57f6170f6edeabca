"""Start the server: the command `editledger`, and `python -m editledger DIR…` where no script is installed."""

from editledger import isolate

__all__ = ["main"]


def main() -> None:
    """Serve the directories that the arguments of the process name."""
    isolate()
    from mcptools.server.command import main as serve  # only now can it be nothing but ours

    serve()


if __name__ == "__main__":
    main()
