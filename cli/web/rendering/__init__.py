"""Render Markdown and notebooks as HTML, before and after, for a frame without scripts and without network access.

Read `markdown_blocks` and `notebook_blocks` first, which make the blocks of one text, then `rendered_page`, which puts
the blocks of two texts side by side. `render_process` does both in a process of its own, because rendering a hostile
text can take very long. Only `render_process` starts processes; no module here may use the store.
"""
