"""The interactive review of `cas review`: change after change, or hunk after hunk, decided with single keys.

Read `change_review` first: the keys and what each does; `change_queue` chooses the next change. `hunk_review` and
`hunk_queue` are the same for `--each`, and `split_hunk` cuts a hunk into parts, which `hunk_place` finds in the current
file. What both reviews do is in `dialogue`, and `skipped` remembers skipped hunks between reviews. Decisions,
amendments and conflicts belong to `objstore`.
"""
