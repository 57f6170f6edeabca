"""Access the file system: confined paths, durable writes, locks, and stat signatures.

Read `disk` first: it makes every change to a file, in an order that tests can interrupt. Then read `confined_path`,
which resolves a path without leaving the workspace, and `nofollow`, which opens the store's own files. `reserved_names`
has the names below `.cas`. The other modules can be read in any order: `file_state`, `tree_files` and `content_source`
read files, `stat_signature` and `store_version` show whether something may have changed, `atomic_swap`, `writer_lock`
and `store_owner` protect what is there, and `processes` names a process.

This package knows paths, bytes, and modes, and from `model` only ids, file states and views. It must not know the log,
the index, the journal, or the weave.
"""
