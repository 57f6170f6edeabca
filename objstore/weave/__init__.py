"""Compute a file's text under any set of accepted and rejected edits.

Read `runs` first (units and the lines they wrote), then `run_list` (all lines in order), `line_weave` (record, flip,
show), `placement` and `reinsertion` (where new text goes and what it restores), `conflicts` and `dependents` (what
can't be live together), `same_change` (which change was made again), `conflict_markers`, `document` (a weave with
path and mode, replayed from records), `returning` (which edits a text brings back), `net_changes` and `accepted_text`
(what pending units change, all together), and `serialize`.

Nothing here reads a disk, the log or the index: bytes and records go in, texts and conflicts come out.
"""
