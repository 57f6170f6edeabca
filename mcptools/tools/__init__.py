"""The tools, as methods of families of classes that share a context.

Start with `context` and `tool_methods`, which maps each tool's name to its method; then `tracked_calls`, `text_edits`
and `safety`, which the families are composed of; then the families: `reading`, `searching`, `editing`, `patching`,
`patch_strategies`, `backups`, `history`, `comments` and `undoing`. `notes` and `collisions` word what several answers
add. Nothing here may know the protocol or its SDK.
"""
