"""The commands of `cas`: each in the module of its name, as `reject`; `import_` and `try_` are `import` and `try`.

What some of them share is in the same folder: `decision_command` (accept, reject, reopen, undo, redo, rewind), `check`
(`--check`), `client_names` (setup, doctor, hook), `git_patches` and `export_diffs` (export), `import_mcpdiff` (import),
`plot_files` (stats), `watch_batches` (watch), `demo_script` and `demo_web` (demo). `cli.shell.main.COMMANDS` is the
table of all. A module is imported when its command is run; decisions, checks and formats themselves belong
to `objstore`.
"""
