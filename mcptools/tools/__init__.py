"""The tools, as methods of families of classes that share a context.

Start with `context` and `tool_methods`, which maps each tool's name to its method; then `calls/`, which the families
that change files are composed of; then the families: `reading`, `searching`, `editing`, `patching`, `patch_strategies`,
`backups`, `history`, `comments`, `undoing` and `review/`. Nothing here may know the protocol or its SDK.
"""
