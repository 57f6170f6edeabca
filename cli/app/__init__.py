"""Parts of every command: the global options, shell completion, and hints about errors.

Read `invocation` first: where a command works, and how options and commands are declared. `completion` answers the
shell's tab key; `error_hints` says what to do about an error. Nothing here knows a particular command or renders
results.
"""
