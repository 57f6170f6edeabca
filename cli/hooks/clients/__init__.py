"""The hook events of each supported agent program.

`event` defines the common form; `claude_code`, `codex`, `cursor`, `gemini`, `opencode` and `vscode` each have `read`
and `reply`, as `event.Client` says. `described` does the same for any program that a TOML file describes, and reads
that file. Otherwise they translate only: they open no store and no file.
"""
