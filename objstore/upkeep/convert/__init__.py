"""Convert a store that a version before format 1 wrote.

Read `conversion` (the steps, and what a crash leaves), then `segment_groups` (the groups of a log of either format) and
`rewriting` (what becomes of a record). Nothing else knows how these versions differ. Here nothing is guessed: a store
that can't be converted stays as it is.
"""
