"""Compare which names a program defines and uses, before and after a change, as values: no file is read here.

Read `python_names` first, or `script_names` for JavaScript and TypeScript: what one source defines, imports and leaves
undefined. `python_program` and `script_program` find what is broken among the files of a program; `broken_names` says
what of it is new after a change. `languages` lists what is read of each language, and `source_kinds` says by its name
whether a file is a source. Nothing here knows where sources come from, or what a decision is.
"""
