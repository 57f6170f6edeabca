"""Export a store as one bundle file, import a bundle, and read and write histories in the layout of mcpdiff.

Read `bundle` (the file format), `import_export` (write, check and unpack bundles), then `mcpdiff_format` (the logs and
diffs of mcpdiff), `mcpdiff_import` (record them as edits) and `mcpdiff_export` (write edits as such a history). Nothing
that is imported is trusted. This package does not know who calls it, and never merges one store into another.
"""
