"""Benchmarks: each runs a peer in the same run, prints ratios, and ends with a machine-readable line."""
