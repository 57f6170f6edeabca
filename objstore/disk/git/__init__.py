"""Read what git did: where a repository's HEAD is, what its index lists, and which bytes git put into its files.

Read `repository`, then `index_file`, `command` and `contents`. Nothing here writes below `.git`, and git itself is run
only to read objects. The package knows nothing of the store, of edits or of workspaces.
"""
