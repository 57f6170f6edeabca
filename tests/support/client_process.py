"""A client's own process, which runs hooks and shell commands as its children, as agents' programs do."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final, Self

from tests.support.command_runner import PROGRAM, CommandResult, environment

__all__ = ["ClientProcess"]

_LOOP: Final = """
import json, subprocess, sys
for line in sys.stdin:
    asked = json.loads(line)
    ran = subprocess.run(asked["command"], input=asked["given"].encode(), capture_output=True, cwd=asked["folder"])
    print(json.dumps([ran.returncode, ran.stdout.decode(), ran.stderr.decode()]), flush=True)
"""


class ClientProcess:
    """Claude Code as far as hooks see it: one process, which begins each hook and each shell."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._calls = 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LOOP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment({}),
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
        return self._ran(["sh", "-c", '"$@"; exit $?', "sh", *PROGRAM, *words])

    def event(self, name: str, **fields: object) -> CommandResult:
        """Report an event."""
        event = {"hook_event_name": name, "session_id": "s1", "cwd": str(self._folder), **fields}
        return self._ran([*PROGRAM, "hook", "claude-code"], json.dumps(event))

    def begin(self, command: str = "make") -> None:
        """Report that a shell begins."""
        self._calls += 1
        call = {"tool_use_id": f"t{self._calls}", "tool_input": {"command": command}}
        self.event("PreToolUse", tool_name="Bash", **call)

    def end(self, command: str = "make") -> None:
        """Report that it has ended."""
        call = {"tool_use_id": f"t{self._calls}", "tool_input": {"command": command}}
        self.event("PostToolUse", tool_name="Bash", tool_response={}, **call)

    def _ran(self, command: list[str], given: str = "") -> CommandResult:
        asked = {"command": command, "given": given, "folder": str(self._folder)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        status, out, err = json.loads(self._process.stdout.readline())
        return CommandResult(status=status, out=out.encode(), err=err.encode())
