"""Expire old history, purge chosen blobs, and compact the log.

Read `expiry_rules` (which edits may expire), `expiry` (plan and record what expires), `references` and `log_position`
(what a plan must respect), `segment_rewrite` and `compaction` (rewrite segments without unused blobs), then
`garbage_collection`, `purge` and `pins`, which people call. This package knows nothing of packing (how blobs are
encoded in fewer bytes), of the command line, or of the server.
"""
