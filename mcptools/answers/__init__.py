"""The shapes of what tools answer, as structured content.

Start with `edits`, which has `Answer` and the answers of the tools that change files; then `reading`, `patches`,
`review` (the window of a client) and `paging`, which cuts long answers into pages. Nothing here may know files,
sessions, the store or the protocol.
"""
