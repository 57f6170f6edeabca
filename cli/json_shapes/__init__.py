"""JSON of the commands alone: diffs as text, snapshots, and the store. `objstore/workspace/shapes` has the rest.

Read `diffs`, then `snapshots` and `store`. What is printed must agree with `docs/json.md`.
"""
