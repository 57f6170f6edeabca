"""Write an edit history in the documented format of mcpdiff."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

__all__ = ["McpDiff"]

START: Final = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass(slots=True)
class McpDiff:
    """The server of mcpdiff: changes files and logs each edit."""

    root: Path
    count: int = 0
    calls: dict[str, int] = field(default_factory=dict)

    @property
    def history(self) -> Path:
        """Return the folder of the history."""
        return self.root / ".mcp" / "edit_history"

    def write(self, conversation: str, path: str, content: str | bytes) -> str:
        """Write a file; return the edit's id."""
        file = self.root / path
        before = file.read_bytes() if file.exists() else None
        after = content if isinstance(content, bytes) else content.encode()
        checkpoint = self._checkpoint(conversation, path, before)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(after)
        operation = "create" if before is None else "replace"
        return self._log(conversation, operation, path, before, after, checkpoint, tool="write_file")

    def delete(self, conversation: str, path: str) -> str:
        """Delete a file; return the edit's id."""
        before = (self.root / path).read_bytes()
        checkpoint = self._checkpoint(conversation, path, before)
        (self.root / path).unlink()
        return self._log(conversation, "delete", path, before, None, checkpoint, tool="delete_file")

    def move(self, conversation: str, source: str, path: str) -> str:
        """Move a file; return the edit's id."""
        content = (self.root / source).read_bytes()
        checkpoint = self._checkpoint(conversation, source, content)
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / source).rename(self.root / path)
        return self._log(conversation, "move", path, content, content, checkpoint, tool="move_file", source=source)

    def set_status(self, edit: str, status: str) -> None:
        """Log a decision on an edit. The caller changes the file itself."""
        self.change_entry(edit, {"status": status})

    def change_entry(self, edit: str, fields: dict[str, Any]) -> None:
        """Change fields of an entry."""
        for log in (self.history / "logs").iterdir():
            entries = [json.loads(line) for line in log.read_text().splitlines()]
            entries = [entry | fields if entry["edit_id"] == edit else entry for entry in entries]
            log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))

    def _checkpoint(self, conversation: str, path: str, before: bytes | None) -> str | None:
        checkpoint = f"checkpoints/{conversation}/{path.replace('/', '_')}.chkpt"
        if before is None or (self.history / checkpoint).exists():
            return None
        (self.history / checkpoint).parent.mkdir(parents=True, exist_ok=True)
        (self.history / checkpoint).write_bytes(before)
        return checkpoint

    def _log(
        self,
        conversation: str,
        operation: str,
        path: str,
        before: bytes | None,
        after: bytes | None,
        checkpoint: str | None,
        *,
        tool: str,
        source: str | None = None,
    ) -> str:
        self.count += 1
        edit = f"edit-{self.count}"
        diff = None
        if operation in {"create", "replace", "edit"}:
            diff = f"diffs/{conversation}/{edit}.diff"
            old, new = ((text or b"").decode("latin-1").splitlines(keepends=True) for text in (before, after))
            diff_path = self.history / diff
            diff_path.parent.mkdir(parents=True, exist_ok=True)
            diff_path.write_bytes("".join(unified_diff(old, new, f"a/{path}", f"b/{path}")).encode("latin-1"))
        entry = {
            "edit_id": edit,
            "conversation_id": conversation,
            "tool_call_index": self.calls.get(conversation, 0),
            "timestamp": (START + timedelta(seconds=self.count)).isoformat(),
            "operation": operation,
            "file_path": str(self.root / path),
            "source_path": None if source is None else str(self.root / source),
            "tool_name": tool,
            "status": "pending",
            "diff_file": diff,
            "checkpoint_file": checkpoint,
            "hash_before": None if before is None else sha256(before).hexdigest(),
            "hash_after": None if after is None else sha256(after).hexdigest(),
        }
        self.calls[conversation] = self.calls.get(conversation, 0) + 1
        log = self.history / "logs" / f"{conversation}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        return edit
