"""The edit languages, as functions from bytes to bytes or to a typed reason why an edit does not apply.

Start with `file_text` (which text a file's bytes are), `exact` (exact strings) and `string_places` (where they were);
then `hashline` and `anchored` (line tags), `patch_headers`, `patch_parser`, `hunk_counts` and `unified_diff` (patches),
`nearest_text` (hints for a miss), `globs`, `display` (how names and bytes are shown) and `null_arguments`. Nothing here
may know files, sessions, the store's records or the protocol.
"""
