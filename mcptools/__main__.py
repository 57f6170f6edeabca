"""`python -m mcptools DIR…` serves the directories, as the command `editledger` does."""

from editledger import isolate

if __name__ == "__main__":
    isolate()
    from mcptools.server.command import main

    main()
