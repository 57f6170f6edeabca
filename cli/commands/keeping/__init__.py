"""Commands that keep, move and remove history.

A module per command: `export_import` (`export`, `import`), `gc`, `pin`, `purge`, `record`, `snapshot`. `git_patches`
writes the patches of `cas export --patch`, `export_diffs` is `cas export --diffs`, and `import_mcpdiff` is `cas import
mcpdiff`. Storage, expiry and formats belong to `objstore`.
"""
