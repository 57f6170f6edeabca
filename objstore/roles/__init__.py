"""What a workspace offers, by task: each role is one class that the workspace hands out.

`review` decides and reports, `history` looks up, `snapshots`, `retention` and `transfer` do what their names say. A
role opens the journal for reading or writing and calls one function of the package that does the work; it has no rules
of its own. Roles don't know each other or the workspace.
"""
