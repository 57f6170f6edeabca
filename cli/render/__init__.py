"""Output of commands: views of the store as text for a person, or as JSON.

Text: `authors` (whose an edit is), `edits` (an edit and diffs), `net_diff` (net changes), `rows` (lists of edits),
`diffstat`, `zoom` (a hunk in review), `outcomes` (decisions), `status`, `external_prompt`. JSON: `json_edits`,
`json_changes`, `json_store`, `json_snapshots`, described by docs/json.md.
`unreadable` collects read errors. Rendering reads the store and never changes it; only `external_prompt` asks a person.
"""
