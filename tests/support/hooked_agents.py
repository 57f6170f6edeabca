"""Agents' own programs, as `cas` sees them: each tells what it does by events of its own shape, and then does it."""

import json
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from objstore.review.calls.evidence_log import log_of
from objstore.storage.transaction.journal import Journal
from tests.support.command_runner import PATIENCE, CommandResult, cas
from tests.support.faulty_disk import UnsyncedDisk

__all__ = [
    "AGENTS",
    "ClaudeCode",
    "Codex",
    "Copilot",
    "Cursor",
    "Gemini",
    "OpenCode",
    "Session",
    "VSCode",
    "evidence",
    "hook",
    "put_evidence",
    "recorded_project",
    "shell",
]


def recorded_project(folder: Path, *names: str) -> Path:
    """Return a new workspace that has files of three lines with these names, and a baseline of them."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text("1\n2\n3\n")
    assert cas("init", folder=folder).status == 0
    assert cas("record", folder=folder).status == 0
    return folder


def evidence(folder: Path, *prefixes: str) -> dict[str, dict[str, Any]]:
    """Return what hooks have left in the log of a workspace, of things whose names begin with one of the prefixes."""
    with closing(Journal(str(folder), UnsyncedDisk())) as journal:
        log = log_of(journal)
        return {name: log.read(name) for name in log.names(*prefixes or ("",))}


def put_evidence(folder: Path, name: str, held: Mapping[str, Any]) -> None:
    """Say something of a thing in the log of a workspace."""
    with closing(Journal(str(folder), UnsyncedDisk())) as journal:
        log_of(journal).write(name, held)


def hook(client: str, event: Mapping[str, Any] | bytes, *, folder: Path) -> CommandResult:
    """Run the hook for one event, as the client's program does."""
    given = event if isinstance(event, bytes) else json.dumps(event).encode()
    return cas("hook", client, folder=folder, stdin=given)


def shell(command: str, *, folder: Path) -> None:
    """Run a command in a real shell."""
    subprocess.run(["/bin/sh", "-c", command], cwd=folder, check=True, timeout=PATIENCE)


class Session(ABC):
    """A session of one agent; its events have the documented shape of its client."""

    client = ""

    def __init__(self, folder: Path, name: str = "session-1") -> None:
        self.folder = folder
        self.name = name
        self.calls = 0

    # ---- what the agent does

    def start(self) -> None:
        """Begin."""
        self.tell(self.started())

    def ask(self, prompt: str) -> str:
        """Let a person say something; return what its hooks tell the agent."""
        return self.tell(self.prompted(prompt))

    def stop(self) -> str:
        """End the turn; return what its hooks tell the person."""
        answer = self.answer(self.stopped())
        assert answer.keys() <= {"systemMessage"}  # nothing that makes the agent go on
        return str(answer.get("systemMessage", ""))

    def run(self, command: str) -> str:
        """Run a shell command as a tool; return what its hooks tell the agent."""
        self.calls += 1
        self.tell(self.shell_event(command, before=True))
        shell(command, folder=self.folder)
        return self.tell(self.shell_event(command, before=False))

    def write(self, path: str, content: str) -> str:
        """Write a file by the client's own tool; return what its hooks tell the agent."""
        self.calls += 1
        self.tell(self.write_event(path, content, before=True))
        (self.folder / path).write_text(content)
        return self.tell(self.write_event(path, content, before=False))

    def another_call(
        self, *, is_shell: bool, command: str = "make", path: str = "a.txt", content: str = "1\n"
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Count another call, of a shell or of the tool that writes; return the events of its beginning and its end."""
        self.calls += 1
        if is_shell:
            return self.shell_event(command, before=True), self.shell_event(command, before=False)
        return self.write_event(path, content, before=True), self.write_event(path, content, before=False)

    def tell(self, event: Mapping[str, Any]) -> str:
        """Tell `cas` of an event; return what is in its answer for the agent."""
        answer = self.answer(event)
        return self.context_in(answer) if answer.keys() - {"systemMessage"} else ""

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Tell `cas` of an event; return its whole answer, empty if there is none."""
        ran = hook(self.client, event, folder=self.folder)
        assert (ran.status, ran.err) == (0, b"")
        return dict(ran.json()) if ran.out else {}

    def context_in(self, answer: Mapping[str, Any]) -> str:
        """Return what an answer says to the agent."""
        found = answer["hookSpecificOutput"]["additionalContext"]
        assert isinstance(found, str)
        return found

    @property
    def call(self) -> str:
        """Return the id of the call that is running."""
        return f"call-{self.name}-{self.calls}"

    # ---- how its client spells that

    @abstractmethod
    def started(self) -> dict[str, Any]: ...

    @abstractmethod
    def prompted(self, prompt: str) -> dict[str, Any]: ...

    @abstractmethod
    def stopped(self) -> dict[str, Any]: ...

    @abstractmethod
    def shell_event(self, command: str, *, before: bool) -> dict[str, Any]: ...

    @abstractmethod
    def write_event(self, path: str, content: str, *, before: bool) -> dict[str, Any]: ...


class ClaudeCode(Session):
    """Claude Code."""

    client = "claude-code"

    def base(self, name: str) -> dict[str, Any]:
        return {
            "session_id": self.name,
            "transcript_path": "/nowhere/transcript.jsonl",
            "cwd": str(self.folder),
            "permission_mode": "default",
            "hook_event_name": name,
        }

    def started(self) -> dict[str, Any]:
        return self.base("SessionStart") | {"source": "startup"}

    def prompted(self, prompt: str) -> dict[str, Any]:
        return self.base("UserPromptSubmit") | {"prompt": prompt}

    def stopped(self) -> dict[str, Any]:
        return self.base("Stop") | {"stop_hook_active": False}

    def tool_event(self, tool: str, given: Mapping[str, Any], *, before: bool) -> dict[str, Any]:
        event = self.base("PreToolUse" if before else "PostToolUse")
        event |= {"tool_name": tool, "tool_input": dict(given), "tool_use_id": self.call}
        return event if before else event | {"tool_response": {"success": True}}

    def shell_event(self, command: str, *, before: bool) -> dict[str, Any]:
        return self.tool_event("Bash", {"command": command, "description": "work"}, before=before)

    def write_event(self, path: str, content: str, *, before: bool) -> dict[str, Any]:
        return self.tool_event("Write", {"file_path": str(self.folder / path), "content": content}, before=before)


class Codex(ClaudeCode):
    """Codex: events like Claude Code's, with a model and a turn; files by patches."""

    client = "codex"

    def base(self, name: str) -> dict[str, Any]:
        event = super().base(name) | {"model": "gpt-codex", "turn_id": "turn-1"}
        return event | {"transcript_path": None}

    def write_event(self, path: str, content: str, *, before: bool) -> dict[str, Any]:
        lines = "".join(f"+{line}\n" for line in content.splitlines())
        patch = f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"
        return self.tool_event("apply_patch", {"command": patch}, before=before)


class VSCode(ClaudeCode):
    """VS Code: events like Claude Code's, with names and tools of its own; a prompt takes no context."""

    client = "vscode"

    def base(self, name: str) -> dict[str, Any]:
        return {
            "timestamp": "2026-10-14T10:30:00.000Z",
            "cwd": str(self.folder),
            "sessionId": self.name,
            "hookEventName": name,
            "transcript_path": "/nowhere/transcript.json",
        }

    def started(self) -> dict[str, Any]:
        return self.base("SessionStart") | {"source": "new"}

    def shell_event(self, command: str, *, before: bool) -> dict[str, Any]:
        return self.tool_event("run_in_terminal", {"command": command, "isBackground": False}, before=before)

    def write_event(self, path: str, content: str, *, before: bool) -> dict[str, Any]:
        given = {"filePath": str(self.folder / path), "content": content}
        return self.tool_event("create_file", given, before=before)


class Copilot(ClaudeCode):
    """Copilot's own program, which runs VS Code's hooks: no ids, Claude Code's names of tools before they run only."""

    client = "vscode"

    def base(self, name: str) -> dict[str, Any]:
        return {
            "hook_event_name": name,
            "session_id": self.name,
            "timestamp": "2026-11-20T10:30:00.000Z",
            "cwd": str(self.folder),
        }

    def stopped(self) -> dict[str, Any]:
        return self.base("Stop") | {"stop_reason": "end_turn", "stop_hook_active": False}

    def tool_event(self, tool: str, given: Mapping[str, Any] | str, *, before: bool) -> dict[str, Any]:
        names = {"bash": "Bash", "create": "Write", "edit": "Edit", "apply_patch": "Edit"}
        event = self.base("PreToolUse" if before else "PostToolUse")
        event |= {"tool_name": names[tool] if before else tool, "tool_input": given}
        return event if before else event | {"tool_result": {"result_type": "success", "text_result_for_llm": "ok"}}

    def shell_event(self, command: str, *, before: bool) -> dict[str, Any]:
        return self.tool_event("bash", {"command": command, "mode": "sync"}, before=before)

    def write_event(self, path: str, content: str, *, before: bool) -> dict[str, Any]:
        return self.tool_event("create", {"path": str(self.folder / path), "file_text": content}, before=before)

    def context_in(self, answer: Mapping[str, Any]) -> str:
        found = answer["additionalContext"]
        assert isinstance(found, str)
        return found


class Gemini(Session):
    """Gemini CLI: gives its calls no ids."""

    client = "gemini"

    def base(self, name: str) -> dict[str, Any]:
        return {
            "session_id": self.name,
            "transcript_path": "/nowhere/transcript.json",
            "cwd": str(self.folder),
            "hook_event_name": name,
            "timestamp": "2026-11-20T10:00:00Z",
        }

    def started(self) -> dict[str, Any]:
        return self.base("SessionStart") | {"source": "startup"}

    def prompted(self, prompt: str) -> dict[str, Any]:
        return self.base("BeforeAgent") | {"prompt": prompt}

    def stopped(self) -> dict[str, Any]:
        return self.base("AfterAgent") | {"prompt": "p", "prompt_response": "done", "stop_hook_active": False}

    def tool_event(self, tool: str, given: Mapping[str, Any], *, before: bool) -> dict[str, Any]:
        event = self.base("BeforeTool" if before else "AfterTool") | {"tool_name": tool, "tool_input": dict(given)}
        return event if before else event | {"tool_response": {"llmContent": "ok", "returnDisplay": "ok"}}

    def shell_event(self, command: str, *, before: bool) -> dict[str, Any]:
        return self.tool_event("run_shell_command", {"command": command}, before=before)

    def write_event(self, path: str, content: str, *, before: bool) -> dict[str, Any]:
        return self.tool_event("write_file", {"file_path": str(self.folder / path), "content": content}, before=before)


class Cursor(Session):
    """Cursor: tells of an edit twice, by the tool and by the file."""

    client = "cursor"

    def base(self, name: str) -> dict[str, Any]:
        return {
            "conversation_id": self.name,
            "generation_id": "generation-1",
            "model": "some-model",
            "hook_event_name": name,
            "cursor_version": "2.0.77",
            "workspace_roots": [str(self.folder)],
        }

    def started(self) -> dict[str, Any]:
        return self.base("sessionStart")

    def prompted(self, prompt: str) -> dict[str, Any]:
        return self.base("beforeSubmitPrompt") | {"prompt": prompt, "attachments": []}

    def stopped(self) -> dict[str, Any]:
        return self.base("stop") | {"status": "completed"}

    def tool_event(self, tool: str, given: Mapping[str, Any], *, before: bool) -> dict[str, Any]:
        event = self.base("preToolUse" if before else "postToolUse")
        return event | {"tool_name": tool, "tool_input": dict(given), "tool_use_id": self.call}

    def shell_event(self, command: str, *, before: bool) -> dict[str, Any]:
        return self.tool_event("Shell", {"command": command}, before=before)

    def write_event(self, path: str, content: str, *, before: bool) -> dict[str, Any]:
        return self.tool_event("Write", {"file_path": str(self.folder / path), "content": content}, before=before)

    def write(self, path: str, content: str) -> str:
        said = super().write(path, content)
        edits = [{"old_string": "", "new_string": content}]
        self.tell(self.base("afterFileEdit") | {"file_path": str(self.folder / path), "edits": edits})
        return said

    def context_in(self, answer: Mapping[str, Any]) -> str:
        found = answer["additional_context"]
        assert isinstance(found, str)
        return found


class OpenCode(Session):
    """opencode, through our plugin."""

    client = "opencode"

    def base(self, name: str) -> dict[str, Any]:
        return {"hook": name, "sessionID": self.name, "directory": str(self.folder)}

    def started(self) -> dict[str, Any]:
        return self.base("session.created")

    def prompted(self, prompt: str) -> dict[str, Any]:
        return self.base("chat.message") | {"prompt": prompt, "agent": "build", "hears": True}

    def stopped(self) -> dict[str, Any]:
        return self.base("session.idle")

    def tool_event(self, tool: str, given: Mapping[str, Any], *, before: bool) -> dict[str, Any]:
        event = self.base("tool.execute.before") if before else self.base("tool.execute.after") | {"hears": True}
        return event | {"tool": tool, "callID": self.call, "args": dict(given)}

    def shell_event(self, command: str, *, before: bool) -> dict[str, Any]:
        return self.tool_event("bash", {"command": command, "description": "work"}, before=before)

    def write_event(self, path: str, content: str, *, before: bool) -> dict[str, Any]:
        return self.tool_event("write", {"filePath": str(self.folder / path), "content": content}, before=before)

    def context_in(self, answer: Mapping[str, Any]) -> str:
        found = answer["context"]
        assert isinstance(found, str)
        return found


AGENTS = (ClaudeCode, Codex, Gemini, Cursor, OpenCode, VSCode, Copilot)
