"""Commands to inspect and repair the store.

`group` is `cas store`, which names these commands and some of other folders. `plumbing` holds the commands that print
what is stored: `ls`, `hash`, `verify`, `records` and `segments`; `stats` and `fsck_salvage` (`fsck`, `salvage`) hold
those of their name, and `plot_files` writes plots for `stats`. They only print: the checks themselves belong to
`objstore.integrity`.
"""
