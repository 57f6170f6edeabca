"""The interactive review of `cas review`: change after change, decided with single keys.

Read `keys` first, then `review`: what each key does. `change_queue` chooses the next change, and `change_view` is its
text. `split_hunk` cuts a hunk into parts, which `hunk_place` finds in the current file. `dialogue` asks, decides and
undoes. Decisions, amendments and
conflicts belong to `objstore`.
"""
