"""Markdown and notebooks as HTML, before and after, for a frame in which nothing runs and nothing is fetched.

Read `markdown_blocks` and `notebook_blocks` first, which make the blocks of one text, then `rendered_page`, which puts
the blocks of two texts side by side. `render_process` does it all in a process of its own, because the time that a
hostile text takes has no useful bound. Only `render_process` knows of processes, and nothing here knows the store.
"""
