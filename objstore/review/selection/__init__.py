"""Resolve what a person names for a decision to hunks, in the same way for every surface.

Read `units` first: a `Selection` (edits, hunks, changes, paths, turns, a session, everything) goes in, and the units
come out, with what was left out. `places` finds the files that paths name. Surfaces turn what was typed or clicked into
names; nothing here decides or changes anything.
"""
