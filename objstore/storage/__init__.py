"""The object store: the log, its index, and the writers' journal.

Read `log` (segments, frames, blob encodings) first, then `index` (SQLite, built from the log), `store` (both together),
`recovery` (roll forward what a killed process left) and `transaction` (the journal, as writers use it). Nothing here
knows what the edits are for, who made them, or what a review decides.
"""
