"""Record what calls change: tracked calls of our tools, and the calls that agents' own programs report.

Read `edit_recorder` (how a change becomes a record) and `tracked_call` first. `formatting` recognizes what formatters
make of edits, and `policies` says which edits need no review, or always one. `open_calls` keeps the agents' open calls
in the `evidence_log`, `agent_files` keeps what agents were sent, and `attribution` says whose a found change is.
`deciders` finds out whether an agent's shell decides.
Nothing here decides on an edit that is recorded, walks the folder tree, or knows the format of hooks.
"""
