"""Query the past of a workspace from its journal, without changing files or recording edits.

Read `revspec` first (what a person's name for an edit or state means), then `state_reader` and `document_loader`
(replay a document), `edit_queries` and `expired` (edits and decisions as views), `state_at` and `past_states` (what was
at a path), `ancestry`, `patch_series`, `marked_text`, `snapshot_check` and `completions`.

It must not know how decisions are planned, applied or shown.
"""
