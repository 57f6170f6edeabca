"""Read and append the log: segments of frames that hold blobs and records.

Read `frames` first (the bytes of a frame), then `segment_files` (the files and generations of segments) and `segments`
(appending and reading groups). `blob_codec`, `chunking` and `blob_reader` encode and decode blobs. `applied_marker`
says up to which place of the log files match it.

This package must not know the index, the journal's meaning, or the user's files: a record is a payload here.
"""
