"""Access the file system: confined paths, durable writes, locks, and stat signatures.

Read `disk` first: it makes every change to a file, in an order that tests can interrupt. Then read `confined_path`,
which resolves a path without leaving the workspace, and `nofollow`, which opens the store's own files. `reserved_names`
has the names below `.cas`; the other modules are small and independent.

This package knows paths, bytes, and modes, and from `model` only ids, file states and views. It must not know the log,
the index, the journal, or the weave.
"""
