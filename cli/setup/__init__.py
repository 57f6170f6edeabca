"""Setup of agent programs: install our hooks and server in their settings, and check them.

Read `plans` first: which file of which client gets what, and `server_entry` for the entry of our server. `jsonc_edit`,
`hook_lists`, `git_exclude` and `opencode_plugin` compute a file's new text; `settings_files` compares, writes and backs
up files; `disabled_hooks`, `trust` and `doctor` check the result. Commands and their output are in
`cli.commands.setting_up`; only `doctor` opens a store.
"""
