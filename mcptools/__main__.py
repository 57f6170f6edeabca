"""`python -m mcptools DIR…` serves the directories, as the command `editledger` does."""

from mcptools.server.command import main

if __name__ == "__main__":
    main()
