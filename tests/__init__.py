"""Tests of the store, the server, the command, and the house that they live in."""
