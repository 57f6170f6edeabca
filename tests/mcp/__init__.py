"""Tests of the tools: edit languages as laws, and the server as a real process."""
