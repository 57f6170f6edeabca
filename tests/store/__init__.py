"""Tests of the storage floor: bytes on disk, the log, the index, paths, and what a crash leaves."""
