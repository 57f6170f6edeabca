"""What can be asked of the index: one module for each subject, whose classes `log_index` hands out.

Read `record_queries` first (edits and decisions), then `holder_queries` (snapshots and pins), `document_queries`
(documents, their tips and statuses), `turn_queries` (turns, sessions, comments and settings), `blob_queries` (where
bytes are, and what refers to them), `file_stat_queries` (files on disk as they were last seen) and `total_queries`
(sums over all of it). `database_checks` has the questions of fsck. Nothing here changes a row.
"""
