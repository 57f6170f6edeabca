"""Compare and change texts: pure functions from bytes to bytes and hunks.

Read `lines` first (what a line is) and `forms` (text whose lines end in CR alone, and UTF-16), then `hunks` (which
lines a change replaces), `diff` (find hunks; where lines repeat, by `band`), `splice` (a change given as bytes),
`rebase` (carry a change over to a later version), `three_way_merge`, `formatting` (whether only a formatter changed a
text) and `unified_diff` (show a change). `needs` finds names in sources.

Nothing here knows files, paths, records, the store or who made a change.
"""
