"""Record tracked calls, and decide on their edits: accept, reject, reset, undo, redo, amend.

Read `edit_recorder` (how a change becomes a record) and `tracked_call` first, then `planner` with `plan` (what a
decision would do), `decisions` (requests, undo and redo), `marker_files`, `path_conflicts` and `replay_check`, and
`amend`. `formatting` recognizes what formatters make of edits. `status` reports what is pending, `net_view` its net
changes, and `net_summary` these without texts, from a cache; `open_calls` keeps the agents' open calls in
`agent_files`, and `attribution` says whose a found change is.
Nothing here walks the folder tree, takes snapshots, or knows of commands, the server or hooks.
"""
