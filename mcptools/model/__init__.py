"""The server's memory of a client and of a call, and the wording of failures.

Start with `session`, `read_versions` and `own_changes` (which file versions a model knows, and which it made), then
`failures` and `refusals` (error codes, messages and hints), `roots`, `limits`, `cancellation` and `tickets` (which a
person's decision in a chat needs). Nothing here may open a file or know the protocol.
"""
