"""Documents, each the lineage of one file, as their records make them.

Read `loader` (load a document from its cached state or by a replay) first, with `state_reader` (its records and the
states between them). `earlier_states` and `ancestry` follow a document's states back, and `marked_text` finds the edits
that wrote conflict markers. Nothing here resolves names, or knows how decisions are planned, applied or shown.
"""
