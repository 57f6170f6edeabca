"""Read a history in the layout of requirement document 000, with nothing but that layout and a program that patches.

Nothing of this project is used: what is read here is what any reader of the document finds.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

__all__ = ["FIELDS", "RebuiltState", "apply_strictly", "apply_with_git", "apply_with_patch", "read_logs", "rebuilt"]

FIELDS: Final = [
    "edit_id",
    "conversation_id",
    "tool_call_index",
    "timestamp",
    "operation",
    "file_path",
    "source_path",
    "tool_name",
    "status",
    "diff_file",
    "checkpoint_file",
    "hash_before",
    "hash_after",
]
"""The fields of section 4, in its order."""

PATIENCE: Final = 60

Entry = dict[str, Any]
Apply = Callable[[bytes | None, bytes], bytes]
"""Applies a diff to a file's bytes (None: no file)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltState:
    """What one entry made of its file."""

    entry: Entry
    before: bytes | None  # None: no file
    after: bytes | None


def read_logs(history: Path) -> dict[str, list[Entry]]:
    """Return the entries of each conversation in their order; AssertionError where the layout is another."""
    assert {path.name for path in history.iterdir()} == {"logs", "diffs", "checkpoints"}
    found: dict[str, list[Entry]] = {}
    for log in sorted((history / "logs").iterdir()):
        assert log.suffix == ".log"
        content = log.read_bytes()
        assert content.endswith(b"\n")
        entries = [json.loads(line) for line in content.splitlines()]
        (conversation,) = {entry["conversation_id"] for entry in entries}
        assert conversation not in found
        for entry in entries:
            check_entry(entry, history, log.stem)
        indexes = [entry["tool_call_index"] for entry in entries]
        assert indexes == sorted(indexes)
        found[conversation] = entries
    entries = [entry for own in found.values() for entry in own]
    named = [entry[field] for entry in entries for field in ("diff_file", "checkpoint_file") if entry[field]]
    files = [str(path.relative_to(history)) for path in history.rglob("*") if path.is_file()]
    assert sorted(named) == sorted(path for path in files if not path.startswith("logs/"))
    assert len({entry["edit_id"] for entry in entries}) == len(entries)
    return found


def check_entry(entry: Entry, history: Path, log: str) -> None:
    """Raise AssertionError if the entry is not one of section 4."""
    assert list(entry) == FIELDS
    operation, before, after = entry["operation"], entry["hash_before"], entry["hash_after"]
    assert operation in {"create", "replace", "edit", "delete", "move"}
    assert entry["status"] in {"pending", "accepted", "rejected"}
    assert datetime.fromisoformat(entry["timestamp"]).utcoffset() == timedelta(0)
    assert entry["tool_call_index"] >= 0
    assert entry["tool_name"]
    assert Path(entry["file_path"]).is_absolute()
    assert (entry["source_path"] is not None) is (operation == "move")
    assert (before is None) is (operation == "create")
    assert (after is None) is (operation == "delete")
    assert all(digest is None or re.fullmatch("[0-9a-f]{64}", digest) for digest in (before, after))
    assert entry["diff_file"] in {None, f"diffs/{log}/{entry['edit_id']}.diff"}
    assert (entry["diff_file"] is not None) is (operation in {"create", "replace", "edit"} and before != after)
    if entry["checkpoint_file"] is not None:
        assert re.fullmatch(rf"checkpoints/{re.escape(log)}/[A-Za-z0-9_.-]+\.chkpt", entry["checkpoint_file"])
        assert sha256((history / entry["checkpoint_file"]).read_bytes()).hexdigest() == before


def rebuilt(history: Path, apply: Apply) -> Iterator[RebuiltState]:
    """Yield the states before and after each entry, conversation by conversation, and compare every hash."""
    for entries in read_logs(history).values():
        files: dict[str, bytes | None] = {}
        for entry in entries:
            path, source = entry["file_path"], entry["source_path"]
            before = None if entry["hash_before"] is None else files.get(source or path)
            if entry["checkpoint_file"] is not None:
                before = (history / entry["checkpoint_file"]).read_bytes()
            assert digest(before) == entry["hash_before"], entry
            match entry["operation"]:
                case "delete":
                    after = None
                case "move":
                    after = before
                    files[source] = None
                case _:
                    diff = b"" if entry["diff_file"] is None else (history / entry["diff_file"]).read_bytes()
                    after = apply(before, diff) if diff else before or b""
            assert digest(after) == entry["hash_after"], entry
            files[path] = after
            yield RebuiltState(entry=entry, before=before, after=after)


def digest(content: bytes | None) -> str | None:
    """Return the SHA-256 of a file's bytes."""
    return None if content is None else sha256(content).hexdigest()


# ---- three programs that apply a diff


def apply_with_patch(folder: Path) -> Apply:
    """Return what applies a diff with GNU patch, which works in `folder`."""

    def apply(before: bytes | None, diff: bytes) -> bytes:
        (folder / "in").write_bytes(before or b"")
        (folder / "out").unlink(missing_ok=True)
        command = ["patch", "--silent", "--binary", "--unified", "--fuzz=0", "--force", "--output=out", "in"]
        run(command, folder, diff)
        return (folder / "out").read_bytes()

    return apply


def apply_with_git(folder: Path) -> Apply:
    """Return what applies a diff with git, which works in `folder`; its names there must be those of a file in it."""

    def apply(before: bytes | None, diff: bytes) -> bytes:
        name = next(line for line in diff.splitlines() if line.startswith(b"+++ b/"))[6:].decode()
        place = folder / name
        place.unlink(missing_ok=True)
        if before is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(before)
        run(["git", "apply", "--whitespace=nowarn"], folder, diff)
        return place.read_bytes()

    return apply


def run(command: list[str], folder: Path, diff: bytes) -> None:
    """Run a program with a diff on its standard input; it must succeed."""
    (folder / "diff").write_bytes(diff)
    with (folder / "diff").open("rb") as stdin:
        ran = subprocess.run(command, cwd=folder, stdin=stdin, capture_output=True, timeout=PATIENCE, check=False)
    assert ran.returncode == 0, (command, ran.stdout, ran.stderr, diff)


HUNK: Final = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")


def apply_strictly(before: bytes | None, diff: bytes) -> bytes:
    """Return what a unified diff makes of a file's bytes; AssertionError if any line or count of it is wrong."""
    old, rows = lines_of(before or b""), lines_of(diff)
    new: list[bytes] = []
    assert rows[0].startswith(b"--- ")
    assert rows[1].startswith(b"+++ ")
    at, row = 0, 2
    while row < len(rows):
        head = HUNK.fullmatch(rows[row])
        assert head is not None, rows[row]
        start, old_left, new_start, new_left = (1 if found is None else int(found) for found in head.groups())
        start = start - 1 if old_left else start
        assert start >= at
        new += old[at:start]
        assert len(new) == (new_start - 1 if new_left else new_start)
        at, row = start, row + 1
        while old_left or new_left:
            sign, line = rows[row][:1], rows[row][1:]
            row += 1
            if row < len(rows) and rows[row].startswith(b"\\ "):
                line, row = line.removesuffix(b"\n"), row + 1
            if sign in b" -":
                assert old[at] == line
                at, old_left = at + 1, old_left - 1
            if sign in b" +":
                new.append(line)
                new_left -= 1
        assert (old_left, new_left) == (0, 0)
    return b"".join(new + old[at:])


def lines_of(content: bytes) -> list[bytes]:
    """Return the lines of a file, each with its newline."""
    *closed, last = content.split(b"\n")
    return [line + b"\n" for line in closed] + [last] * bool(last)
