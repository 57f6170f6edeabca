"""The interactive review of `cas review`: hunk after hunk, decided with single keys.

Read `hunk_review` first: the keys and what each does. `hunk_queue` chooses the next hunk, `split_hunk` cuts one into
parts, and `skipped` remembers skipped hunks between reviews. Decisions, amendments and conflicts belong to `objstore`.
"""
