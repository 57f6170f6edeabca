"""Tests of `objstore/upkeep/remote`."""
