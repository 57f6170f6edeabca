"""Commands to inspect and repair the store.

`plumbing` holds the commands that print what is stored: `ls`, `hash`, `verify`, `records` and `segments`; `stats` and
`fsck_salvage` (`fsck`, `salvage`) hold those of their name. They only print: the checks themselves belong to
`objstore.integrity`.
"""
