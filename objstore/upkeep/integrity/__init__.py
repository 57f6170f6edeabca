"""Check a store, rebuild what is derived, save what is left of a damaged store, and inspect its contents.

Read `segment_scan` (what can still be read of segment files), `fsck` (find and explain faults), `blob_rescue` and
`salvage` (make a new store from the rest), then `inspection` (records, segments, statistics, blame). This package does
not know how its findings are printed.
"""
