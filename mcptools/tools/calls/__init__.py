"""Calls that change files, as the families of tools compose them.

Read `tracked_calls` first (a call of `objstore`, and the files that a session may change), then `text_edits` (a change
of a text file: at once, as a dry run, or carried over to a newer version), `safety` (checks before a patch) and `notes`
(what several answers add). Nothing here may know a family of tools.
"""
