"""JSON shapes: what commands print with `--json`. docs/json.md describes every field.

Read `values` first (texts, paths, hashes and times, the same everywhere); then `edits`, `net_changes`, `files`,
`decisions`, `status`, `snapshots` and `store`. Shapes read the store and never change it.
"""
