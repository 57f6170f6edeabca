"""Commands to set up workspaces, agents and settings.

`init_mcp_demo` holds `init`, `mcp`, `completion` and `demo`; `setup_doctor_hook` holds `setup`, `doctor` and `hook`;
`config` and `watch` hold the commands of their name. `demo` is the script that `cas demo` runs, `demo_web` that of `cas
demo --web`, and `watch_batches` waits for file events for `watch`. What clients need in their settings files is in
`cli.setup`, the events of their hooks in `cli.hooks`.
"""
