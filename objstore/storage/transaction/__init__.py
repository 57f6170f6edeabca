"""Let one writer at a time append to the log and change the user's files to match.

Read `journal` first: it takes the writer lock, completes what a crashed writer left, and commits. `index_repair`,
`prestore` and `space_reserve` wrap its operations: they rebuild a damaged index, store large files in advance, and
handle a full disk.

This package must not know what edits and decisions mean: review, tracking and retention bring it batches and steps.
"""
