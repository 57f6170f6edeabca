"""Decide on recorded edits: accept, reject, reset, undo, redo, amend, claim, rewind; comment on them.

Read `decisions` first (requests, undo and redo; what they would do, `objstore/planning` computes), then `acts` (a
person's own changes of files, as decisions), `amend`, `claim` and `rewind`. `comments` follow their lines, `status`
reports what is pending, `broken` which names a decision takes from Python sources, `collisions` the files that several
sessions have changed, and `cautions` what a person should hear of.
Nothing here takes snapshots, or knows of commands, the server or hooks.
"""
