"""File tools for AI agents over the Model Context Protocol: the `editledger` server.

Read from the bottom up: `edit`, `answers` and `catalog` compute and know neither files nor the protocol; `model` has
what the server remembers of a client; `files` reaches the directories; `tools` carries the tools out; `feeds` reports
what was recorded; `transport` and `server` speak the protocol. This package uses only the public names of `objstore`,
and nothing of `cli`.
"""
