"""Define the values that the store records and the surfaces show, and their exact encoding.

Read `ids` and `basic_types` first, then `records` (the journal's records) with `canonical_msgpack` and `record_codec`
(their bytes), `tree` (snapshots of folders), `replay_records` (what a replay needs of a record),
`large_file_placeholder`, `ranges` and `relpath`; last `views`, `net_file`, `status_report` and `results` (what surfaces
ask for and get).

Nothing here reads a disk, the log or the index, or decides what a text is.
"""
