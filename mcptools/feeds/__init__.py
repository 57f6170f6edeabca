"""Recorded edits for programs other than the model: resources, notifications and exports.

Start with `resources` (edits, conversations and blobs by address), then `change_feed` (which edits have changed) and
`acp_export` (recorded calls as Agent Client Protocol notifications). Nothing here may know connections or the SDK.
"""
