"""Benchmarks: each runs the peer beside us in the same run, prints ratios, and ends with a machine-readable line."""
