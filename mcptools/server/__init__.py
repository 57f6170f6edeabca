"""The `editledger` command and the server that offers the tools over the Model Context Protocol.

Start with `command` and `mcp_server`; then `registered_tools` and `results` (tools and answers in the SDK's types),
`clients`, `client_roots` and `request_client` (whose request it is), `elicitation` (questions to the person),
`review_window`, `acp_events`, `subscriptions`, `http_server`, and `background_gc`. `write_descriptions` is a program of
its own, which regenerates `tools.json`. Nothing here may decide what a tool does.
"""
