"""What a hook costs the agent that waits for it, a whole process an event."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.bench.measure import Report, percentile, timed, timed_in_turn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["bench_hook"]

SIZES: Final = (1_000, 20_000)
ROUNDS: Final = 25
PER_FOLDER: Final = 50


def tree(root: Path, files: int) -> None:
    """Make so many small files, 50 to a folder."""
    for number in range(files):
        folder = root / f"d{number // PER_FOLDER}"
        if number % PER_FOLDER == 0:
            folder.mkdir()
        (folder / f"f{number % PER_FOLDER}.txt").write_text(f"file {number}\n" * 10)


def git_status(root: Path) -> list[float]:
    """Return how long git takes to look at the same tree, in milliseconds."""
    git = ["git", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    (root / ".gitignore").write_text(".cas\n")
    subprocess.run([*git, "add", "-A"], check=True)
    return timed(lambda _: subprocess.run([*git, "status"], check=True, capture_output=True), ROUNDS)


def bench_hook(report: Report) -> None:
    """Tell of a shell command and of a file tool, before and after, in trees of two sizes; beside git status."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])

    def cas(*words: str, given: bytes = b"") -> None:
        command = [sys.executable, "-P", "-m", "cli", *words]
        subprocess.run(command, cwd=root, env=environment, input=given, check=True, capture_output=True)

    def tell(name: str, tool: str, given: dict[str, Any], call: int) -> None:
        event: dict[str, Any] = {"session_id": "bench", "cwd": str(root), "hook_event_name": name, "tool_name": tool}
        event |= {"tool_input": given, "tool_use_id": f"call-{tool}-{call}"}
        cas("hook", "claude-code", given=json.dumps(event).encode())

    def shell_before(call: int) -> None:
        tell("PreToolUse", "Bash", {"command": "work"}, call)

    def shell_after(call: int) -> None:
        (root / "d1" / "f1.txt").write_text(f"changed {call}\n")
        tell("PostToolUse", "Bash", {"command": "work"}, call)

    def file_before(call: int) -> None:
        tell("PreToolUse", "Write", {"file_path": str(root / "d2" / "f2.txt")}, call)

    def file_after(call: int) -> None:
        (root / "d2" / "f2.txt").write_text(f"changed {call}\n")
        tell("PostToolUse", "Write", {"file_path": str(root / "d2" / "f2.txt")}, call)

    def nothing(_: int) -> None:
        subprocess.run([sys.executable, "-P", "-c", "import json, sqlite3"], env=environment, check=True)

    for size in SIZES:
        with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
            root = Path(folder)
            tree(root, size)
            cas("init")
            cas("record")
            acts: dict[str, Callable[[int], object]] = {"before a shell": shell_before, "after a shell": shell_after}
            acts |= {"before a write": file_before, "after a write": file_after, "python": nothing}
            times = timed_in_turn(acts, ROUNDS)
            status = git_status(root)
        for name in acts:
            report.times(f"{size} files: {name}", times[name])
            report.figures[f"{size} files: {name} p95 ms"] = round(percentile(times[name], 0.95), 3)
        looked = [before + after for before, after in zip(times["before a shell"], times["after a shell"], strict=True)]
        looks = report.times(f"{size} files: both looks of a shell", looked)
        start = report.times(f"{size} files: git status", status)
        python = sorted(times["python"])[len(times["python"]) // 2]
        report.ratio(
            f"{size} files: both looks, without Python's start, to git status", (looks - 2 * python) / start, "<= 1.5"
        )
