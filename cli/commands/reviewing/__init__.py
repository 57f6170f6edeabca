"""Commands to look at edits and decide on them.

Each module holds the commands of its name: `status`, `log_show`, `diff_cat`, `review`, `accept_reject_undo` (also
`reopen` and `redo`, with `check` for what must succeed first), `amend`, `claim`, `rewind`, `trial` (`cas try`),
`bisect`, `comment` (also `send`), `blame_restore` and `web`. The interactive part of `cas review` is in
`cli.review_ui`, the server of `cas web` in `cli.web`. Decisions themselves belong to `objstore.review`.
"""
