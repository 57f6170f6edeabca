"""The index: a SQLite database derived from the log, which answers queries quickly and can be deleted at any time.

Read `log_index` first: it follows the log and hands out one object per subject, and all of these share the connection
in `shared_connection`. `index_file` opens the file, `database` has the schema and the meaning of SQLite's errors, and
`rows` the plain values. Then what is asked (`queries/`), and what changes the rows: `ingest` with `refcounts` and
`created_dirs`, and `moved_frames` in a compaction. Nothing here knows the user's files, the writer lock or what is
pending in a batch.
"""
