"""Define the settings and read and change the files that hold them.

Read `settings` first: it has the names, kinds and defaults. Then `setting_sources` (which files and variables may set
them), `config_files`, which finds the value that applies, `path_patterns`, which matches the paths that a setting
names, and `toml_edit`, which changes a file and keeps a person's comments.

This package must not know what a setting affects: retention, the server and snapshots ask it for values.
"""
