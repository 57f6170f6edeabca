"""Compare which names a program defines and uses, before and after a change, as values: no file is read here.

Read `python_names` first: what one source defines, imports and leaves undefined. `broken_names` compares the files of a
program before and after, and names what the change breaks, in these files and in those that import them. Nothing here
knows where sources come from, or what a decision is.
"""
