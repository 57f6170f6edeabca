"""Read the state of a git repository: where its HEAD is, and which bytes git put into files.

Read `repository`, then `command`, then `contents`. Nothing here writes below `.git`, and git itself is run only to read
objects. The package knows nothing of the store, of edits or of workspaces.
"""
