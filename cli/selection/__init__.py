"""What names on the command line denote: edits, hunks, files and states.

All of it is in `selectors`. Names are resolved through `objstore` and returned as its values; nothing here prints or
suggests names (`cli.search.did_you_mean` does).
"""
