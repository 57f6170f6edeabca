"""A client's own process, which runs hooks and shell commands as its children, as agents' programs do."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.support.command_runner import CommandResult, environment
from tests.support.fork_server import INSTEAD, forked_program

__all__ = ["ClientProcess"]


class ClientProcess:
    """Claude Code as far as hooks see it: one process, which begins each hook and each shell."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._calls = 0
        self._process = subprocess.Popen(
            forked_program("cli").command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment({INSTEAD: "tests.support.client_loop"}),
            text=True,
        )

    def __enter__(self) -> Self:
        """Report a session with a prompt."""
        self.event("UserPromptSubmit", prompt="p")
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def cas(self, *words: str) -> CommandResult:
        """Run `cas` as a shell of the client does: by a shell that waits for it."""
        return self._ran(words, in_shell=True)

    def event(self, name: str, **fields: object) -> CommandResult:
        """Report an event."""
        event = {"hook_event_name": name, "session_id": "s1", "cwd": str(self._folder), **fields}
        return self._ran(("hook", "claude-code"), json.dumps(event))

    def begin(self, command: str = "make") -> None:
        """Report that a shell begins."""
        self._calls += 1
        call = {"tool_use_id": f"t{self._calls}", "tool_input": {"command": command}}
        self.event("PreToolUse", tool_name="Bash", **call)

    def end(self, command: str = "make") -> None:
        """Report that it has ended."""
        call = {"tool_use_id": f"t{self._calls}", "tool_input": {"command": command}}
        self.event("PostToolUse", tool_name="Bash", tool_response={}, **call)

    def _ran(self, words: Sequence[str], given: str = "", *, in_shell: bool = False) -> CommandResult:
        asked = {"words": words, "given": given, "folder": str(self._folder), "in_shell": in_shell}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        status, out, err = json.loads(self._process.stdout.readline())
        return CommandResult(status=status, out=out.encode(), err=err.encode())
