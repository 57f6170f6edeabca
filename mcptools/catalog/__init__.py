"""The catalog of the tools, as clients see it before any call: names, traits, schemas and descriptions.

Start with `tool_list`; then `descriptions`, which reads `tools.json`, and `schemas`, which makes its contents from the
methods' signatures. `acp` words calls for the Agent Client Protocol; `version` is this package's version. Nothing here
may know how a tool works, or import one.
"""
