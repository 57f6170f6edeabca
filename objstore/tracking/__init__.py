"""Record what happened to files outside tracked calls, and take, list, compare, restore and delete snapshots.

For recording, read `record` (the entry point) first, then `detect` (differences and the edits for them) and
`baseline_update`; `hook_sessions` and `attributed_scan` record each change as that of the agent's call that made it,
and `server_calls` finds the hooked session of a call of our own server.
For snapshots, read `snapshot_list`, `snapshot_create`, `snapshot_diff`, `snapshot_restore` and `snapshot_delete`.
Nothing here knows of commands, client programs or the format of their hooks, or of expiry and garbage collection.
"""
