"""The cost of hooks for a waiting agent: one process for each event, and the scans alone."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import median
from typing import Any, Final

from objstore import AgentCall, Workspace
from tests.bench.command import HELLO
from tests.bench.measure import Report, percentile, timed_in_turn
from tests.bench.status import ENTRY

__all__ = ["bench_hook"]

SIZES: Final = (1_000, 20_000)
WIDE: Final = 100_000
"""Files in one folder, of which one changes."""

ROUNDS: Final = 25
WIDE_ROUNDS: Final = 7
PER_FOLDER: Final = 50
PROGRAM: Final = (sys.executable, "-P", "-c", ENTRY)
SCAN_ALONE: Final = ", the look alone"
RECORDS: Final = ("record a changed file", "record a new file", "record a deletion")
EVENTS: Final = ("before a shell", "after a shell", "before a write", "after a write")


def tree(root: Path, files: int, per_folder: int = PER_FOLDER) -> None:
    """Create a number of small files, so many in each folder."""
    for number in range(files):
        folder = root / f"d{number // per_folder}"
        if number % per_folder == 0:
            folder.mkdir()
        (folder / f"f{number % per_folder}.txt").write_text(f"file {number}\n" * 10)


def shell_call(number: int) -> AgentCall:
    """Return a shell command of an agent, which may change any file."""
    return AgentCall(conversation="bench", id=f"alone-{number}", tool="Bash", paths=None)


def git_status(root: Path) -> Callable[[int], object]:
    """Commit the same tree to git; return a function that runs `git status`."""
    git = ["git", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    (root / ".gitignore").write_text(".cas\n")
    subprocess.run([*git, "add", "-A"], check=True)
    # Without a commit, git would list every file as new, which takes longer than the comparison.
    # And its housekeeping would go on in the background, on one of the processors.
    author = ["-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "gc.auto=0"]
    subprocess.run([*git, *author, "commit", "-q", "-m", "base"], check=True)
    return lambda _: subprocess.run([*git, "status"], check=True, capture_output=True)


def scans_alone(root: Path) -> dict[str, Callable[[int], object]]:
    """Return the scans before and after a shell command, made in this running process."""

    def before(number: int) -> None:
        with Workspace.find(root) as workspace:
            workspace.hooks.begin(shell_call(number))

    def after(number: int) -> None:
        (root / "d1" / "f1.txt").write_text(f"changed {number}{SCAN_ALONE}\n")
        with Workspace.find(root) as workspace:
            (found,) = workspace.hooks.end(shell_call(number))
            assert found.edit.path == b"d1/f1.txt", found

    return {f"before a shell{SCAN_ALONE}": before, f"after a shell{SCAN_ALONE}": after}


def measure_processor_time(
    acts: Mapping[str, Callable[[int], object]], taken: dict[str, list[float]]
) -> dict[str, Callable[[int], object]]:
    """Return acts that add to `taken` their processor time (ms), and that of the processes that they start."""

    def used() -> float:
        times = [getrusage(whose) for whose in (RUSAGE_SELF, RUSAGE_CHILDREN)]
        return sum(each.ru_utime + each.ru_stime for each in times)

    def with_processor_time(name: str, act: Callable[[int], object]) -> Callable[[int], object]:
        def measured(number: int) -> None:
            before = used()
            act(number)
            taken.setdefault(name, []).append((used() - before) * 1e3)

        return measured

    return {name: with_processor_time(name, act) for name, act in acts.items()}


def records(changed: Path, cas: Callable[..., None]) -> dict[str, Callable[[int], object]]:
    """Return functions that record one change in a folder: of a file, a new file, and the deletion of that."""
    new = changed.with_name("new.txt")

    def write(file: Path, call: int) -> None:
        file.write_text(f"recorded {call}\n")
        cas("record")

    def delete(_: int) -> None:
        new.unlink()
        cas("record")

    return dict(zip(RECORDS, (partial(write, changed), partial(write, new), delete), strict=True))


def _report(
    report: Report, size: int, times: Mapping[str, Sequence[float]], taken: Mapping[str, Sequence[float]]
) -> None:
    """Report the times of each act in a tree of this size, and the ratios to those of the peers."""
    for name, each in times.items():
        report.times(f"{size} files: {name}", each)
        report.figures[f"{size} files: {name} p95 ms"] = round(percentile(each, 0.95), 3)
    if size == SIZES[0]:
        for what, found in (("", times), (", processor time", taken)):
            slowest = max(median(found[name]) for name in EVENTS)
            report.ratio(
                f"{size} files: slowest event, to bare click{what}", slowest / median(found["click"]), "<= 2.2"
            )
        return
    if size == WIDE:
        for what, found in (("", times), (", processor time", taken)):
            slowest = max(median(found[name]) for name in (*EVENTS, *RECORDS))
            ratio = slowest / median(found["git status"])
            report.ratio(f"{size} files in one folder: slowest event, to git status{what}", ratio, "<= 3")
        return
    # docs/benchmarks.md says what each look has to do, and git does once, on two processors.
    for what, found, hooked, alone in (("", times, 6, 4), (", processor time", taken, 5, 2.5)):
        git = median(found["git status"])
        for by, start, target in (
            (", without Python's start", 2 * median(found["python"]), hooked),
            (SCAN_ALONE, 0, alone),
        ):
            act = "" if start else by
            pairs = zip(found[f"before a shell{act}"], found[f"after a shell{act}"], strict=True)
            looks = report.times(f"{size} files: both looks of a shell{act}{what}", [sum(pair) for pair in pairs])
            report.ratio(f"{size} files: both looks{by}, to git status{what}", (looks - start) / git, f"<= {target}")


def bench_hook(report: Report) -> None:
    """Report a shell command and a file tool, before and after, by hooks and in this process; run git status."""
    excluded_prefixes = ("CAS_", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(excluded_prefixes)}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])

    def cas(*words: str, given: bytes = b"") -> None:
        subprocess.run([*PROGRAM, *words], cwd=root, env=environment, input=given, check=True, capture_output=True)

    def report_event(name: str, tool: str, given: dict[str, Any], call: int) -> None:
        event: dict[str, Any] = {"session_id": "bench", "cwd": str(root), "hook_event_name": name, "tool_name": tool}
        event |= {"tool_input": given, "tool_use_id": f"call-{tool}-{call}"}
        cas("hook", "claude-code", given=json.dumps(event).encode())

    def shell_before(call: int) -> None:
        report_event("PreToolUse", "Bash", {"command": "work"}, call)

    def shell_after(call: int) -> None:
        changed[0].write_text(f"changed {call}\n")
        report_event("PostToolUse", "Bash", {"command": "work"}, call)

    def file_before(call: int) -> None:
        report_event("PreToolUse", "Write", {"file_path": str(changed[1])}, call)

    def file_after(call: int) -> None:
        changed[1].write_text(f"changed {call}\n")
        report_event("PostToolUse", "Write", {"file_path": str(changed[1])}, call)

    def started(program: str) -> Callable[[int], object]:
        command = [sys.executable, "-P", "-c", program]
        return lambda _: subprocess.run(command, env=environment, check=True, capture_output=True)

    for size in (*SIZES, WIDE):
        with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
            root = Path(folder)
            tree(root, size, WIDE if size == WIDE else PER_FOLDER)
            changed = [root / ("d0" if size == WIDE else f"d{number}") / f"f{number}.txt" for number in (1, 2)]
            cas("init")
            cas("record")
            acts: dict[str, Callable[[int], object]] = dict(
                zip(EVENTS, (shell_before, shell_after, file_before, file_after), strict=True)
            )
            if size == WIDE:
                acts |= records(changed[0], cas) | {"git status": git_status(root)}
            else:
                acts |= scans_alone(root) | {"git status": git_status(root)}
                acts |= {"python": started("import json, sqlite3"), "click": started(HELLO)}
            taken: dict[str, list[float]] = {}
            times = timed_in_turn(measure_processor_time(acts, taken), WIDE_ROUNDS if size == WIDE else ROUNDS)
        _report(report, size, times, taken)
