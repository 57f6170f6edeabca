"""Tests of the command `cas`: the real program, as its own process, on real files."""
