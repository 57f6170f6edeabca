"""Export a store as one bundle file, import a bundle, and import the history of mcpdiff.

Read `bundle` (the file format), `import_export` (write, check and unpack bundles), then `mcpdiff_format` (the logs and
diffs of mcpdiff) and `mcpdiff_import` (record them as edits). Nothing that is imported is trusted. This package does
not know who calls it, and never merges one store into another.
"""
