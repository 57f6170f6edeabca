"""Resolution of the names on the command line: edits, hunks, files and states.

Read `selectors` first; `addresses` resolves lines of files, `turn_selection` turns and sessions, `unit_selection` the
names of a decision, and `net_selection` those of `cas diff`. Names are resolved through `objstore` and returned as its
values. Nothing here suggests names (`cli.search.did_you_mean` does) or prints, except that `addresses` says which
changes go with the named ones.
"""
