"""Query the past of a workspace from its journal, without changing files or recording edits.

Read `revspec` first (what a person's name for an edit or state means), then `edit_queries`, `session_queries` and
`expired` (edits, decisions, sessions and turns as views), `verdicts` (who decided), `state_at`, `past_states` and
`files_at_edit` (what was at a path), `blame` (which hunk inserted a line), `git_events`, `unfollowed_repositories`,
`patch_series`, `snapshot_check` and `completions`. `documents` are the lineages of files that all this is read from,
and `snapshots` are taken and compared here too.

It must not know how documents are replayed, or how decisions are planned, applied or shown.
"""
