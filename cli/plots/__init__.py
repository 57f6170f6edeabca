"""Plots of a workspace: activity by turn, the store over time, the life of one file.

Read `plot` first: each plot is a value with a title, a summary, columns and rows. `svg` has what all drawings share;
`activity`, `store_size` and `file_life` each make one plot of a workspace, and draw it from that value alone. A plot
knows nothing of commands or web pages, and loads no library.
"""
