"""Crashes: servers, reviewers and gc work in one workspace, and all are killed with kill -9, again and again.

Run as `python -m tests.crashes [--seconds N] [--seed N]` (`make crash`). Each round starts an MCP server with a
client that writes files through it, a writer of many-file calls that also takes and restores snapshots (`writer.py`),
and `cas` commands that decide, let history go, sweep, repack and purge; at a random moment all of them die. Then what
was acknowledged must be in the journal, every file at its recorded state as `cas status` tells, and fsck clean; the
next round goes on in the same workspace. `--rounds N --without-server` is the slice in `make test`.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Final

from objstore import Workspace, check_store

__all__ = ["main"]

HOUSE: Final = Path(__file__).resolve().parents[1]
ROUND_SECONDS: Final = (0.2, 2.0)
"""Seconds from the first answers to the kill."""

ROUNDS_IN_ONE: Final = 8
"""Rounds in one workspace; each continues where the last one was killed."""

WRITTEN: Final = ("server/a.txt", "server/b.txt", "a.txt")
"""Files that the server's client writes; the writer writes the last one too."""


def main(words: list[str]) -> int:
    """Run for a number of seconds; print the results, and return 1 if anything was lost."""
    parser = argparse.ArgumentParser(description="Kill everything that works in a workspace, and look at what is left.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=sys.maxsize)
    parser.add_argument("--without-server", action="store_true")
    asked = parser.parse_args(words)
    chance = random.Random(asked.seed)
    ends = time.monotonic() + asked.seconds
    rounds = kills = acknowledged = 0
    faults: list[str] = []
    while time.monotonic() < ends and rounds < asked.rounds:
        with tempfile.TemporaryDirectory(prefix="crashes-") as folder:
            root = Path(folder)
            Workspace.init(root).close()
            acknowledged_writes = _AcknowledgedWrites()
            for _ in range(ROUNDS_IN_ONE):
                rounds += 1
                kills += _killed_round(root, chance, acknowledged_writes, with_server=not asked.without_server)
                faults += acknowledged_writes.lost_from(root)
                if time.monotonic() >= ends or rounds >= asked.rounds or faults:
                    break
            acknowledged += len(acknowledged_writes.edits) + len(acknowledged_writes.decisions)
        for fault in faults:
            print(f"  after {kills} kills: {fault}")
        if faults:
            break
    figures = {"kills": kills, "acknowledged edits and decisions": acknowledged, "faults": len(faults)}
    print("CRASH " + json.dumps(figures, sort_keys=True))
    return 1 if faults else 0


class _AcknowledgedWrites:
    """The edits and decisions that the processes acknowledged before they were killed."""

    def __init__(self) -> None:
        self.edits: set[int] = set()
        self.decisions: set[int] = set()
        self.answers = 0  # of the server

    def writer_line(self, line: bytes) -> None:
        acknowledged = json.loads(line)
        self.edits.update(acknowledged["edits"])
        self.decisions.update({acknowledged["decision"]} - {0})

    def lost_from(self, root: Path) -> list[str]:
        """Return a description of each fault of the workspace."""
        with closing(Workspace.open(root)) as workspace:
            edits = {view.seq for view in workspace.history.edits()}
            decisions = {view.decision.number for view in workspace.history.decisions()}
            by_server = sum(view.edit.tool == "write_file" for view in workspace.history.edits())
            external = [change.path for change in workspace.review.status().external]
        found = [fault.what for fault in check_store(str(root)).faults]
        found += [f"edits {sorted(lost)} are gone" for lost in [self.edits - edits] if lost]
        found += [f"decisions {sorted(lost)} are gone" for lost in [self.decisions - decisions] if lost]
        if by_server < self.answers:
            found.append(f"the server acknowledged {self.answers} writes, and {by_server} are there")
        if external:
            found.append(f"not as recorded: {external}")
        return found


def _killed_round(
    root: Path, chance: random.Random, acknowledged_writes: _AcknowledgedWrites, *, with_server: bool
) -> int:
    """Let all processes work for a while and kill them; return how many were killed."""
    seed = str(chance.randrange(10**6))
    over, begun = Event(), Event()
    with ExitStack() as processes:
        writing = ("-m", "tests.support.kill_target", str(root), seed, "--keeps", "--rotate", "20000")
        writer = processes.enter_context(_process(*writing))
        victims = [writer]
        threads = [
            Thread(target=_read_writer, args=(writer, acknowledged_writes, Event() if with_server else begun)),
            Thread(target=_review, args=(root, random.Random(seed), over)),
        ]
        if with_server:
            server = processes.enter_context(_process("-m", "mcptools", str(root), talks=True))
            victims.append(server)
            threads.append(Thread(target=_use_server, args=(server, random.Random(seed), acknowledged_writes, begun)))
        for thread in threads:
            thread.start()
        begun.wait(timeout=30)
        time.sleep(chance.uniform(*ROUND_SECONDS))
        over.set()
        chance.shuffle(victims)
        for victim in victims:
            victim.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join()
        for victim in victims:
            if victim.wait() != -signal.SIGKILL:
                errors = b"" if victim.stderr is None else victim.stderr.read()
                raise AssertionError(f"ended by itself: {victim.args!r}\n{errors.decode()}")
    return len(victims) + 1


@contextmanager
def _process(*words: str, talks: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, *words]
    stdin = subprocess.PIPE if talks else subprocess.DEVNULL
    with subprocess.Popen(command, cwd=HOUSE, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()
            if process.stdin is not None:
                with suppress(BrokenPipeError):  # what was being sent when the process was killed
                    process.stdin.close()


def _read_writer(writer: subprocess.Popen[bytes], acknowledged_writes: _AcknowledgedWrites, begun: Event) -> None:
    for line in writer.stdout or ():
        if line.endswith(b"\n"):
            begun.set()
            acknowledged_writes.writer_line(line)


def _use_server(
    server: subprocess.Popen[bytes], chance: random.Random, acknowledged_writes: _AcknowledgedWrites, begun: Event
) -> None:
    """Write files through the server until it is killed."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "crashes", "version": "1"}}
    with suppress(BrokenPipeError):
        if _asked(server, 0, "initialize", hello) is None:
            return
        _send(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        number = 0
        while True:
            number += 1
            content = "".join(f"line {chance.randrange(50)}\n" for _ in range(chance.randrange(1, 60)))
            arguments = {"path": chance.choice(WRITTEN), "content": content, "mcp_conversation_id": ""}
            answer = _asked(server, number, "tools/call", {"name": "write_file", "arguments": arguments})
            if answer is None:
                return
            begun.set()
            acknowledged_writes.answers += '"isError":true' not in answer.replace(" ", "")


def _asked(server: subprocess.Popen[bytes], number: int, method: str, params: object) -> str | None:
    """Return the server's answer (None: it has ended)."""
    _send(server, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    for line in server.stdout or ():
        if line.endswith(b"\n") and json.loads(line).get("id") == number:
            return line.decode()
    return None


def _send(server: subprocess.Popen[bytes], message: object) -> None:
    if server.stdin is not None:
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()


def _review(root: Path, chance: random.Random, over: Event) -> None:
    """Run commands that decide and expire history, one after the other, and kill the last one."""
    while not over.is_set():
        words = chance.choice(
            (
                ["reject", str(chance.randrange(1, 40)), "--cascade"],
                ["accept", "--all"],
                ["undo"],
                ["gc", "--older-than", "0s"],
                ["gc", "--repack"],
                ["snapshot", "create"],
                ["snapshot", "restore", str(chance.randrange(1, 6))],
                ["purge", chance.choice(WRITTEN), "--force"],
            )
        )
        with _process("-m", "cli", "-C", str(root), *words) as command:
            while command.poll() is None and not over.is_set():
                time.sleep(0.002)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
