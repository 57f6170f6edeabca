"""Tests of `objstore/remote`."""
