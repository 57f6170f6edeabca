"""Maintenance of a store, and copies of it: expiry, compaction, checks, bundles, remotes.

Read `retention` first: what expires, and how space is reclaimed. `packing` chooses better encodings, `integrity` checks
and repairs, `transfer` imports and exports, `remote` pushes to and pulls from a bucket, `convert` converts early
stores. Nothing here decides on edits, or knows of commands, the server or hooks.
"""
