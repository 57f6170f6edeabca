"""The directories that a server may work in, and searches below them.

Start with `workspaces`, which finds the directory and the store that a path belongs to; then `walking` (names below a
directory) and `regex_search` (lines that match). Nothing here may know the tools, their answers or the protocol.
"""
