"""Rows of diffs as the page draws them.

Read `net_rows` first (the rows of a file's net changes, made when they are asked for), then `syntax_marks` (the process
that finds their syntax). Nothing here knows the workspace, a request or a route.
"""
