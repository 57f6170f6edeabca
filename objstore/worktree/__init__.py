"""The user's files as they are now, compared with what the store knows of them.

Read `baseline` (the known state of a file) first, then `stat_cache` and `changed_dirs` (what need not be read again),
`walk` (one pass over the folders; in a large one, `changed_files` says what to look at), `scan` (a walk with its
saved cache) and `tree_writer` (what a snapshot adds). `moved_files` finds renames among differences, `git_positions`
says where repositories were at the last look, `secret_files` what the last scan left out as secret, and `mounts` finds
folders whose file system is not there now. `dirty_files` and `external_changes` answer a status, with the table of
`batch_stat`. Nothing here changes the user's files, decides which names are left out, or knows of reviews, calls or
snapshots.
"""
