"""What a hook costs the agent that waits for it: a whole process an event; and what the looks alone take."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from objstore import AgentCall, Workspace
from tests.bench.measure import Report, percentile, timed_in_turn
from tests.bench.status import ENTRY

__all__ = ["bench_hook"]

SIZES: Final = (1_000, 20_000)
ROUNDS: Final = 25
PER_FOLDER: Final = 50
PROGRAM: Final = (sys.executable, "-P", "-c", ENTRY)
HELPER: Final = ", helper"
ALONE: Final = ", the look alone"
AT_ONCE: Final = f"an event right after that{HELPER}"
EVENTS: Final = ("before a shell", "after a shell", "before a write", "after a write")


def tree(root: Path, files: int) -> None:
    """Make so many small files, 50 to a folder."""
    for number in range(files):
        folder = root / f"d{number // PER_FOLDER}"
        if number % PER_FOLDER == 0:
            folder.mkdir()
        (folder / f"f{number % PER_FOLDER}.txt").write_text(f"file {number}\n" * 10)


def shell_call(number: int) -> AgentCall:
    """Return a shell command of an agent, which may change any file."""
    return AgentCall(conversation="bench", id=f"alone-{number}", tool="Bash", paths=None)


def git_status(root: Path) -> Callable[[int], object]:
    """Have git know the same tree, and return what looks at it."""
    git = ["git", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    (root / ".gitignore").write_text(".cas\n")
    subprocess.run([*git, "add", "-A"], check=True)
    # Without a commit it would list every file as new, which takes longer than the look.
    # And its housekeeping would go on in the background, on one of the processors.
    author = ["-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "gc.auto=0"]
    subprocess.run([*git, *author, "commit", "-q", "-m", "base"], check=True)
    return lambda _: subprocess.run([*git, "status"], check=True, capture_output=True)


def looks_alone(root: Path) -> dict[str, Callable[[int], object]]:
    """Return both looks of a shell as this process takes them, which has started already."""

    def before(number: int) -> None:
        with Workspace.find(root) as workspace:
            workspace.agent_calls().begin(shell_call(number))

    def after(number: int) -> None:
        (root / "d1" / "f1.txt").write_text(f"changed {number}{ALONE}\n")
        with Workspace.find(root) as workspace:
            (found,) = workspace.agent_calls().end(shell_call(number))
            assert found.edit.path == b"d1/f1.txt", found

    return {f"before a shell{ALONE}": before, f"after a shell{ALONE}": after}


@contextmanager
def staying(root: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Have a helper stay in the workspace."""
    with subprocess.Popen([*PROGRAM, "hook", "--resident"], cwd=root, env=environment) as helper:
        try:
            while not (root / ".cas" / "hook.sock").exists():
                if helper.poll() is not None:
                    raise RuntimeError("the helper has ended")
                time.sleep(0.01)
            yield
            if helper.poll() is not None:
                raise RuntimeError("the helper has ended")
        finally:
            helper.kill()


def _tell(report: Report, size: int, times: Mapping[str, Sequence[float]]) -> None:
    """Report the times of each act in a tree of so many files, and beside what they are to be held."""
    for name, taken in times.items():
        report.times(f"{size} files: {name}", taken)
        report.figures[f"{size} files: {name} p95 ms"] = round(percentile(taken, 0.95), 3)
    if size == SIZES[0]:
        for by in ("", HELPER):
            slowest = max(median(times[f"{name}{by}"]) for name in EVENTS)
            report.ratio(f"{size} files: slowest event{by}, to bare click", slowest / median(times["click"]), "<= 1.3")
        return
    git = median(times["git status"])
    for by, without in (("", "python"), (HELPER, "python alone"), (ALONE, None)):
        pairs = zip(times[f"before a shell{by}"], times[f"after a shell{by}"], strict=True)
        looks = report.times(f"{size} files: both looks of a shell{by}", [sum(pair) for pair in pairs])
        if without is None:
            report.ratio(f"{size} files: both looks{by}, to git status", looks / git, "<= 1.5")
            continue
        rest = looks - 2 * median(times[without])
        report.ratio(f"{size} files: both looks{by}, without Python's start, to git status", rest / git, "<= 1.5")
        if by == HELPER:
            # It answers before it looks at what a tool has done; who comes at once waits for that.
            rest += median(times[AT_ONCE]) - median(times[without])
            report.ratio(f"{size} files: the same, and an event right after", rest / git, "none")


def bench_hook(report: Report) -> None:
    """Tell of a shell command and of a file tool, before and after: by hooks, a helper, this process; git status."""
    unheard = ("CAS_", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(unheard)}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])

    def cas(*words: str, given: bytes = b"", by: str = "") -> None:
        # A process with settings of its own does the work itself.
        alone = environment if by else environment | {"CAS_SNAPSHOT_GITIGNORED": "on"}
        subprocess.run([*PROGRAM, *words], cwd=root, env=alone, input=given, check=True, capture_output=True)

    def tell(name: str, tool: str, given: dict[str, Any], call: str, by: str) -> None:
        event: dict[str, Any] = {"session_id": "bench", "cwd": str(root), "hook_event_name": name, "tool_name": tool}
        event |= {"tool_input": given, "tool_use_id": f"call-{tool}-{call}"}
        cas("hook", "claude-code", given=json.dumps(event).encode(), by=by)

    def acts_of(by: str) -> dict[str, Callable[[int], object]]:
        """Return the events by the names of their figures; `by`: who handles them ("": a process for each)."""

        def shell_before(call: int) -> None:
            tell("PreToolUse", "Bash", {"command": "work"}, f"{call}{by}", by)

        def shell_after(call: int) -> None:
            (root / "d1" / "f1.txt").write_text(f"changed {call}{by}\n")
            tell("PostToolUse", "Bash", {"command": "work"}, f"{call}{by}", by)

        def file_before(call: int) -> None:
            tell("PreToolUse", "Write", {"file_path": str(root / "d2" / "f2.txt")}, f"{call}{by}", by)

        def file_after(call: int) -> None:
            (root / "d2" / "f2.txt").write_text(f"changed {call}{by}\n")
            tell("PostToolUse", "Write", {"file_path": str(root / "d2" / "f2.txt")}, f"{call}{by}", by)

        def at_once(call: int) -> None:
            tell("Notification", "", {}, f"{call}{by}", by)

        return {
            f"before a shell{by}": shell_before,
            f"after a shell{by}": shell_after,
            **({AT_ONCE: at_once} if by else {}),
            f"before a write{by}": file_before,
            f"after a write{by}": file_after,
        }

    def started(imports: str) -> Callable[[int], object]:
        command = [sys.executable, "-P", "-c", f"import {imports}"]
        return lambda _: subprocess.run(command, env=environment, check=True)

    for size in SIZES:
        with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
            root = Path(folder)
            tree(root, size)
            cas("init")
            cas("record")
            acts = acts_of("") | acts_of(HELPER)
            acts |= looks_alone(root) | {"git status": git_status(root)}
            acts |= {"python": started("json, sqlite3"), "python alone": started("sys"), "click": started("click")}
            with staying(root, environment):
                times = timed_in_turn(acts, ROUNDS)
        _tell(report, size, times)
