"""Plots of a workspace: activity by turn, the store over time, the life of one file.

Read `plot` first: each plot is a value with a title, a summary, columns and rows. `svg` has the parts that all drawings
share. `activity`, `store_size` and `file_life` each compute one plot of a workspace and draw it from that value alone.
This package must not import commands or web pages, and uses no plotting library.
"""
