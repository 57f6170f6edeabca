"""Decide on recorded edits: accept, reject, reset, undo, redo, amend, claim, rewind; comment on them.

Read `calls` (how changes become edits) and `planning` (what a decision would do) first, then `decisions` (requests,
undo and redo), `acts` (a person's own changes of files, as decisions), `amend`, `claim`, `rewind` and
`snapshot_restore`. `selection` resolves what a person names, `net` shows what edits change together, and `trial` runs
commands on copies. `comments` follow their lines, `status` reports what is pending, `broken` which names a decision
takes from sources (`source_names` has those of each), `collisions` the files that several sessions have changed, and
`cautions` what a person should hear of. Nothing here takes snapshots, or knows of commands, the server or hooks.
"""
