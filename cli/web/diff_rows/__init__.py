"""Rows of diffs as the page draws them.

Read `net_rows` first (the rows of a file's net changes, made when they are asked for), then `row_syntax` (which words
of a row are keywords, strings or comments) and `syntax_marks` (the process that finds them). Nothing here knows the
workspace, a request or a route.
"""
