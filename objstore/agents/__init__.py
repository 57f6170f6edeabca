"""Record what happened to files outside tracked calls.

Read `record` (the entry point) first, then `differences` (what differs from its known state), `detect` (the edits for
that) and `baseline_update`; `returned_lines` records first what a change brings back. `git_changes`, `git_commits` and
`git_evidence` record what git did. `hook_sessions` and `attributed_scan` record each change as that of the agent's call
that made it, `missing_reports` corrects whose changes are once it is known that a report of a call is missing,
`server_calls` finds the hooked session of a call of our own server, and `agent_messages` decides what an agent is sent.
`unrecorded_files` compares files for a status. Nothing here knows of commands, client programs or the format of their
hooks, or of expiry and garbage collection.
"""
