"""Tests of the review in a client's window: who may decide in it, and the window itself in a browser."""
