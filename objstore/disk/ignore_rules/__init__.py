"""The names that scans and snapshots leave out: what git ignores, what looks like a secret, what a rule excludes.

Read `scan_rules` (the settings) and `gitignore` (the decision on a name, from `ignore_texts` by `ignore_pattern`)
first, then `git_worktree` (what git itself says) and `rule_files` (all of these, for the folders of a workspace).
Nothing here walks the folder tree, or knows of scans, the stat cache or snapshots.
"""
