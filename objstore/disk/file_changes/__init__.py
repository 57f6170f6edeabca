"""Apply recorded changes to the user's files, all of them or none.

Read `apply` first: it stages, swaps, reads back and rolls back. `open_dirs` resolves the paths of one transition, and
`hardlinks` tracks files with several names. `cross_device_staging` finds staged files on other file systems again.

This package must not know the log or the journal: it gets the steps, and reads blobs through a protocol.
"""
