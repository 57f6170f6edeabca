"""Output of commands: views of the store as text for a person. What `--json` prints is in `cli/json_shapes`.

`authors` (whose an edit is), `edits` (an edit with its diff, which `cli/screen/diffs` draws), `net_diff` (net changes),
`rows` and `turns` (lists of edits, turns and sessions), `comments`, `diffstat`, `zoom` (a hunk in review), `outcomes`
(decisions), `status`, `external_prompt`. `prompts` cuts what people asked agents for; `unreadable` collects read
errors. Rendering reads the store and never changes it; only `external_prompt` asks a person.
"""
