"""Tests of `cli/selection`."""
