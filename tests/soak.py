"""Soak: a server, a watcher, a hooked agent and a reviewer stay in one workspace for long, and nothing piles up.

Run as `python -m tests.soak [--seconds N] [--seed N]` (`make soak`). No process is killed here, unlike in `make crash`:
all run on, while agents write through the server and through a shell, a person types, a reviewer who has the
workspace open all the time decides and takes back, and the server keeps the store within its size. All the while the
memory and the open files of each process and the bytes of the store are read. In the end every acknowledged edit must
be in the journal, every file as recorded, fsck clean, no process much larger than it was when it had settled, and the
store within its limit. `tests/test_soak.py` is the slice in `make test`. Linux: it reads `/proc`.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Event
from typing import Final

from objstore import (
    Action,
    CasError,
    Configuration,
    EditFilter,
    EditTakenOut,
    EditView,
    HistoryBroken,
    OnExternal,
    Status,
    StoreDamaged,
    Unit,
    Workspace,
    check_store,
)
from tests.support.command_runner import PATIENCE, PROGRAM, environment
from tests.support.hooked_agents import ClaudeCode
from tests.support.mcp_agent import Agent, cold_starts, connected

__all__ = ["main"]

SETTINGS: Final = {"retention.max_size": "400kB", "gc.every": "1s"}
"""Limits so small that history expires continuously."""

INTERRUPTED: Final = 130
"""The exit status of a command that Ctrl-C ended."""

SAMPLES: Final = 40
SETTLED: Final = 0.4
"""Share of the time after which a process has settled."""

GROWN_MEMORY: Final = 64.0
"""MB by which a process may have grown since it had settled: what it replays becomes longer all the time, some of that
waits for the collector, and memory that was of use once is kept."""

GROWN_FILES: Final = 8
"""Descriptors by which a process may have grown: temporary connections and files."""

NAMES: Final = 12
"""Number of files of each writer."""

_DAMAGE: Final = (StoreDamaged, HistoryBroken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The resources of a process at one moment."""

    memory: float  # MB that are resident
    files: int  # open, but for segments of the log: every process holds all of them


def main(words: list[str]) -> int:
    """Run for a number of seconds; print the results, and return 1 if anything was lost or grew without bound."""
    parser = argparse.ArgumentParser(description="Let everything work in one workspace for long.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(words)
    # A shell that runs this in the background has it ignore Ctrl-C, and so would what it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        root = (Path(folder) / "workspace").resolve()
        root.mkdir()
        Workspace.init(root).close()
        for name, value in SETTINGS.items():
            Configuration(str(root)).set(name, value)
        soak = _Soak(root, asked.seed)
        faults = [*soak.work(asked.seconds), *soak.faults()]
    for fault in faults:
        print(f"  {fault}")
    print("SOAK " + json.dumps(soak.figures() | {"faults": len(faults)}, sort_keys=True))
    return 1 if faults else 0


class _Soak:
    """A workspace in which all processes work concurrently."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self._seed = seed
        self._over = Event()
        self._edits: set[int] = set()  # that were acknowledged
        self._done: Counter[str] = Counter()
        self._longest: dict[str, float] = {}  # seconds that one operation of each worker took at most
        self._samples: dict[str, list[Sample]] = {}
        self._store_bytes: list[int] = []
        self._segments = 0

    def work(self, seconds: float) -> list[str]:
        """Let all processes work for a time; return which process grew, and how."""
        for folder in ("served", "typed", "shell"):
            (self.root / folder).mkdir()
            # A rejection may remove a folder that it leaves empty, and a person would have to make it again.
            (self.root / folder / "kept").touch()
        with (
            cold_starts(),
            connected(self.root) as agent,
            _staying(self.root, "watch", ready=lambda log: "Watching" in log.read_text()) as watch,
        ):
            # The server opens the store at its first call; on a busy machine that may be late in a short run.
            agent.done("write_file", path=str(self.root / "served" / "kept"), content="kept\n")
            processes = {"server": _child("mcptools"), "watch": watch, "reviewer": os.getpid()}
            everybody: list[Callable[[random.Random], None]] = [
                self._shell,
                self._person,
                self._reviewer,
                lambda chance: self._agents(agent, chance),
            ]
            with ThreadPoolExecutor(len(everybody)) as threads:
                ends = [
                    threads.submit(self._until_over, one, random.Random(self._seed + number))
                    for number, one in enumerate(everybody)
                ]
                pause = seconds / SAMPLES
                try:
                    for _ in range(SAMPLES):
                        if self._over.wait(pause):
                            break  # a worker has failed
                        for name, process in processes.items():
                            self._samples.setdefault(name, []).append(_sample(name, process))
                        self._store_bytes.append(_store_bytes(self.root))
                finally:
                    self._over.set()
            for end in ends:
                end.result()
            self._settle()
        return [grown for name, samples in self._samples.items() for grown in _growth(name, samples)]

    def faults(self) -> list[str]:
        """Return a description of each fault of the workspace."""
        with Workspace.open(self.root) as workspace:
            edits = {view.seq for view in workspace.history.edits()}
            external = [change.path for change in workspace.review.status().external]
            limits = workspace.retention.limits()
            self._segments = len(workspace.history.segments())
            collected = workspace.retention.collect(limits, thorough=True)
        found = [fault.what for fault in check_store(str(self.root)).faults]
        found += [f"edits {sorted(lost)} are gone" for lost in [self._edits - edits] if lost]
        found += [f"not as recorded: {external}"] if external else []
        if collected.bytes_after > (limits.max_size or 0) + collected.missing:
            found.append(f"the store takes {collected.bytes_after} bytes, and may take {limits.max_size}")
        return found

    def figures(self) -> dict[str, object]:
        """Return the counts of operations, the longest, and the resources at the start, settled, and at the end."""
        moments = (0, int(SETTLED * SAMPLES), -1)
        taken: dict[str, object] = {
            f"{name}, {what}": [round(getattr(samples[moment], what)) for moment in moments]
            for name, samples in self._samples.items()
            for what in ("memory", "files")
            if len(samples) == SAMPLES
        }
        store: dict[str, object] = {
            "store, largest": max(self._store_bytes, default=0),
            "store, segments": self._segments,
        }
        longest = {f"{worker}, longest s": round(seconds, 2) for worker, seconds in self._longest.items()}
        return dict(sorted(self._done.items())) | longest | taken | store

    # ---- who works

    def _until_over(self, one: Callable[[random.Random], None], chance: random.Random) -> None:
        try:
            one(chance)
        finally:
            self._over.set()

    @contextmanager
    def _timed(self, worker: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self._longest[worker] = max(self._longest.get(worker, 0.0), time.monotonic() - began)

    def _agents(self, agent: Agent, chance: random.Random) -> None:
        """Change files through the server, sometimes several concurrently in separate conversations."""
        conversation = ""
        while not self._over.is_set():
            calls = [self._call(chance, conversation) for _ in range(chance.randrange(1, 5))]
            with self._timed("calls of the server"):
                results = agent.call_concurrently(calls)
            for (tool, _), result in zip(calls, results, strict=True):
                kind = result.error["type"] if result.refused else "done"
                self._done[f"{tool}: {kind}"] += 1
                if kind == "internal_error":
                    raise AssertionError(result.texts)
                if "edit" in result.structured:
                    self._edits.add(result.structured["edit"])
                conversation = result.structured.get("mcp_conversation_id", conversation)
            if chance.random() < 0.1:
                conversation = ""

    def _call(self, chance: random.Random, conversation: str) -> tuple[str, dict[str, object]]:
        path, other = (str(self.root / "served" / f"{chance.randrange(NAMES)}.txt") for _ in range(2))
        changing: dict[str, object] = {"mcp_conversation_id": conversation}
        line = f"\n{chance.randrange(1, 60)}: "
        edit = {"old_string": line, "new_string": f"\nmore{line}{chance.randrange(99)} "}
        calls: list[tuple[str, dict[str, object]]] = [
            ("read_file", {"path": path}),
            ("list_edits", {"directory": str(self.root)}),
            ("list_directory", {"path": str(self.root / "served")}),
            ("write_file", changing | {"path": path, "content": _text(chance)}),
            ("write_file", changing | {"path": path, "content": _text(chance)}),
            ("multi_edit_text_file", changing | {"path": path, "edits": [edit], "rebase": True}),
            ("multi_edit_text_file", changing | {"path": path, "edits": [edit]}),
            ("move_file", changing | {"source": path, "destination": other}),
            ("delete_file", changing | {"path": path}),
        ]
        return chance.choice(calls)

    def _shell(self, chance: random.Random) -> None:
        """Change files with an agent's own tools, which hooks report."""
        number = 0
        while not self._over.is_set():
            number += 1
            session = ClaudeCode(self.root, f"session-{number}")
            session.start()
            session.ask("go on")
            for _ in range(5):
                name = f"shell/{chance.randrange(NAMES)}"
                with self._timed("hooked tool"):
                    if chance.random() < 0.5:
                        session.write(name, _text(chance))
                    else:
                        line = chance.randrange(99)
                        session.run(f"echo {line} >> {name}; mv -f {name} {name}.old; cp {name}.old {name}")
                self._done["hooked tools"] += 1
            session.stop()

    def _person(self, chance: random.Random) -> None:
        """Type, and save as editors do: in place, or as a new file that takes the name."""
        while not self._over.wait(chance.random() / 5):
            path = self.root / "typed" / f"{chance.randrange(NAMES)}.txt"
            if chance.random() < 0.1:
                path.unlink(missing_ok=True)
            elif chance.random() < 0.5:
                path.write_text(_text(chance))
            else:
                path.with_suffix(".new").write_text(_text(chance))
                path.with_suffix(".new").rename(path)
            self._done["saved by a person"] += 1

    def _reviewer(self, chance: random.Random) -> None:
        """Decide, undo, read and take snapshots in one long-running process."""
        with Workspace.open(self.root) as workspace:
            while not self._over.wait(chance.random() / 20):
                act = chance.choice([_accept, _accept, _reject, _reject, _undo, _look, _snapshot])
                try:
                    with self._timed("reviewer"):
                        act(workspace, chance)
                    self._done[f"reviewer: {act.__name__[1:]}"] += 1
                except _DAMAGE:
                    raise
                except CasError as refused:
                    self._done[f"reviewer: {type(refused).__name__}"] += 1

    def _settle(self) -> None:
        """Wait until the watcher has recorded the last external change."""
        until = time.monotonic() + PATIENCE
        with Workspace.open(self.root) as workspace:
            while workspace.review.status().external and time.monotonic() < until:
                time.sleep(0.1)


def _accept(workspace: Workspace, chance: random.Random) -> None:
    pending = workspace.history.edits(EditFilter(status=Status.PENDING, limit=chance.randrange(1, 60)))
    with suppress(EditTakenOut):
        workspace.decide(
            Action.ACCEPT, [unit for view in pending for unit in _units(view)], on_external=OnExternal.KEEP
        )


def _reject(workspace: Workspace, chance: random.Random) -> None:
    pending = workspace.history.edits(EditFilter(status=Status.PENDING, newest_first=True, limit=20))
    if pending:
        units = _units(chance.choice(pending))
        chosen = units if chance.random() < 0.5 else [chance.choice(units)]
        cascade = chance.random() < 0.5
        workspace.decide(Action.REJECT, chosen, reason="no", cascade=cascade, on_external=OnExternal.KEEP)


def _undo(workspace: Workspace, chance: random.Random) -> None:
    (workspace.review.undo if chance.random() < 0.7 else workspace.review.redo)(on_external=OnExternal.KEEP)


def _look(workspace: Workspace, chance: random.Random) -> None:
    for path in sorted(workspace.history.files_at()):
        if chance.random() < 0.2:
            workspace.history.blame(path)
    workspace.history.stats()


def _snapshot(workspace: Workspace, chance: random.Random) -> None:
    workspace.snapshots.take(who="soak", title=str(chance.randrange(100)))
    kept = [view.number for view in workspace.snapshots.all()]
    if len(kept) > 3:
        workspace.snapshots.delete(kept[:-3], who="soak")


def _units(view: EditView) -> list[Unit]:
    return [Unit(view.seq, hunk) for hunk in range(len(view.units))]


def _text(chance: random.Random) -> str:
    return "".join(f"{number}: {chance.randrange(40)}\n" for number in range(chance.randrange(1, 120)))


# ---- processes


@contextmanager
def _staying(root: Path, *words: str, ready: Callable[[Path], bool]) -> Iterator[int]:
    """Run a `cas` command until the end, when it is interrupted; wait until it is ready."""
    log = root.parent / f"{words[0]}.log"
    with (
        log.open("w") as out,
        subprocess.Popen([*PROGRAM, *words], cwd=root, env=environment({}), stdout=out) as process,
    ):
        try:
            while not ready(log):
                if process.poll() is not None:
                    raise AssertionError(f"{words} ended by itself")
                time.sleep(0.05)
            yield process.pid
        finally:
            process.send_signal(signal.SIGINT)
            if process.wait(PATIENCE) != INTERRUPTED:
                raise AssertionError(f"{words} ended with {process.returncode}")


def _child(module: str) -> int:
    """Return the child process that runs a module."""
    for children in Path("/proc/self/task").glob("*/children"):
        for process in children.read_text().split():
            if module.encode() in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0"):
                return int(process)
    raise AssertionError(f"no process runs {module}")


def _sample(name: str, process: int) -> Sample:
    place = Path(f"/proc/{process}")
    status = (place / "status").read_text()
    resident = next((line for line in status.splitlines() if line.startswith("VmRSS")), "")
    if not resident:
        raise AssertionError(f"{name} ended by itself")
    files = 0
    for descriptor in (place / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            files += ".cas/segments/" not in str(descriptor.readlink())
    return Sample(memory=int(resident.split()[1]) / 1000, files=files)


def _growth(name: str, samples: list[Sample]) -> list[str]:
    """Return by what a process has grown too much between when it had settled and the end, in words."""
    settled = int(SETTLED * len(samples))
    later = len(samples) - max(1, len(samples) // 5)
    before, after = samples[settled:later], samples[later:]
    memory = median(one.memory for one in after) - median(one.memory for one in before)
    files = median(one.files for one in after) - median(one.files for one in before)
    found = [f"{name} takes {memory:.0f} MB more than when it had settled"] if memory > GROWN_MEMORY else []
    return found + ([f"{name} has {files:.0f} files more open"] if files > GROWN_FILES else [])


def _store_bytes(root: Path) -> int:
    total = 0
    for path in (root / ".cas" / "segments").iterdir():
        with suppress(FileNotFoundError):  # rewritten meanwhile
            total += path.stat().st_size
    return total


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
