"""The `editledger` command and the server that offers the tools over the Model Context Protocol.

Start with `command` and `mcp_server`; then `clients`, `client_roots` and `request_client` (whose request it is),
`elicitation` (questions to the person), `results`, `acp_events`, `subscriptions`, `http_server`, and `background_gc`.
`write_descriptions` regenerates `tools.json`. Nothing here may decide what a tool does.
"""
