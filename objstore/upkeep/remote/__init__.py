"""Share a store through a bucket of an object store: push, pull, one decision on each edit, an off-site copy.

Read `bucket` first (all that is asked of an object store), then `keys` and `heads` (what is kept where), `push` and
`pull`, `decisions` (the log that all stores of a bucket share), `collect` (removing what no head names), `probe`,
`waiting` (for a network, until Ctrl-C), and `remotes` (what this store remembers of each remote).
docs/decisions/0066-remotes.md has the reasons. The package knows no command and takes no decision: whoever owns the
files carries decisions out by `objstore.workspace.remotes`.
"""
