"""Resolution of the names on the command line: edits, hunks, files and states.

Read `selectors` first; `turn_selection` resolves turns and sessions, `unit_selection` the names of a decision, and
`net_selection` those of `cas diff`. Names are resolved through `objstore` and returned as its values. Nothing here
suggests names (`cli.search.did_you_mean` does) or prints, except that `selectors` says which changes of a file go with
the named lines.
"""
