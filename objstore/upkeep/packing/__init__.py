"""Encode the blobs of the log again in fewer bytes, with zstd and deltas.

Read `compression_trials` (how short a blob would become), `delta_candidates` (which files resemble each other),
`repack_plan` (the encoding of each blob), then `repack` (rewrite the segments). What the log says does not change. This
package knows nothing of what expires or of who reads the blobs.
"""
