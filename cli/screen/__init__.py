"""Terminal input and output.

`terminal` first: colour, the pager, and escaping of hostile text. `quoting` writes names for a shell, `keyboard` and
`editor` take input, `progress` shows a progress bar; `diffs` draws hunks, with `side_by_side`, `word_diff`, `syntax`
and `diff_layout`.
Nothing here knows edits or the store, except that `progress` listens to a workspace.
"""
