"""The workspace, on real files."""
