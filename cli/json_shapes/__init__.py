"""JSON of the commands alone: diffs as text, snapshots, and what is in the store. `objstore/shapes` has all the rest.

Read `diffs`, then `snapshots` and `store`. What is printed must agree with `docs/json.md`.
"""
