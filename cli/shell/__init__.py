"""The `cas` program itself: start, find the command, and turn every ending into an exit status.

`entry` is the script's entry point and handles hook events before click is imported; `main` has the table of commands,
help and errors. A new command is added to `main.COMMANDS`. Modules here import a command only when it is run.
"""
