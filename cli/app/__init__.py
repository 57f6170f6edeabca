"""Parts of every command: the global options, shell completion, and hints about permissions.

Read `invocation` first: where a command works, and how options and commands are declared. `completion` answers the
shell's tab key; `permission_hints` explains refused access. Nothing here knows a particular command or renders results.
"""
