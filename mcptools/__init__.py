"""The tools that agents call: edit languages, what a session has seen, and the server."""
