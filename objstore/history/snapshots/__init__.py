"""Take, list, compare and delete snapshots.

Read `catalog` (the recorded snapshots, and what each holds) first, then `create` and `diff`; the review restores them.
Baselines are snapshots too: who takes one, and when, is decided above. Nothing here records what changed in files, or
knows of expiry, garbage collection and commands.
"""
