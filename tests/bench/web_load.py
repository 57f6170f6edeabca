"""The review page's server under load: 20 tabs, four agents and a reviewer, for as long as `CAS_BENCH_SECONDS` says.

A tab is what the page does: it keeps the event stream open, and after each event it asks for the queue and for its
file, one request at a time. Nothing draws, because 20 browsers would measure themselves.
"""

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx2

from objstore import CallInfo, CasError, Operation, TurnInfo, Workspace
from tests.bench.measure import Milliseconds, Report, percentile
from tests.support.review_server import WHOLE, ReviewServer, review_server

__all__ = ["bench_web_load"]

SECONDS: Final = float(os.environ.get("CAS_BENCH_SECONDS", "300"))
TABS: Final = 20
AGENTS: Final = 4
FILES: Final = 60
LINES: Final = 300
PAUSE: Final = 0.5
"""Seconds between two edits of an agent, and about a quarter of those between two decisions."""

AGENT: Final = "from tests.bench.web_load import agent; import sys; agent(*sys.argv[1:])"


def bench_web_load(report: Report) -> None:
    """Time queues and decisions while tabs, agents and a reviewer are at work."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder:
        root = Path(folder)
        for number in range(FILES):
            lines = (f"line {line} of file {number}\n" for line in range(LINES))
            (root / f"file{number}.py").write_text("".join(lines))
        Workspace.init(root).close()
        _record(root)
        with review_server(root, is_cold=True) as server:
            _load(report, root, server)


def _record(root: Path) -> None:
    """Make a first edit of each file, so that the queue is long from the beginning."""
    with Workspace.open(root) as workspace:
        for number in range(FILES):
            _edit(workspace, number, turn=1 + number // 10, rng=random.Random(number))


def _edit(workspace: Workspace, number: int, *, turn: int, rng: random.Random, agent: str = "0") -> None:
    info = TurnInfo(session=f"session {agent}", began=turn * 1_000_000 + int(agent), prompt=f"prompt {turn} of {agent}")
    name = f"file{number}.py"
    with suppress(CasError), workspace.call(CallInfo(tool="Edit", conversation=f"c{agent}", turn=info)) as call:
        lines = call.read(name).bytes.splitlines(keepends=True)
        lines[rng.randrange(len(lines))] = f"written by {agent}, {rng.random()}\n".encode()
        call.write(name, b"".join(lines), operation=Operation.EDIT)
        call.commit()


def agent(root: str, name: str, seconds: str) -> None:
    """Edit files until the time is over: the program of an agent's process."""
    rng, ends = random.Random(int(name)), time.monotonic() + float(seconds)
    turn = 10
    while time.monotonic() < ends:
        with Workspace.open(root) as workspace:
            _edit(workspace, rng.randrange(FILES), turn=turn, rng=rng, agent=name)
        turn += rng.random() < 0.05
        time.sleep(PAUSE * rng.uniform(0.5, 1.5))


class _Tab(threading.Thread):
    """One tab: it follows the events and asks for what it shows."""

    def __init__(self, server: ReviewServer, number: int) -> None:
        super().__init__(daemon=True)
        self.queues: Final[list[Milliseconds]] = []
        self.files: Final[list[Milliseconds]] = []
        self.failed = 0  # requests without an answer, and the end of the stream before its time
        self._client: Final = server.browser()
        self._stream: Final = server.browser()
        self._number: Final = number
        self._has_changed: Final = threading.Event()
        self._ends: Final = threading.Event()

    def run(self) -> None:
        """Ask after each event until the end."""
        threading.Thread(target=self._follow, daemon=True).start()
        while not self._ends.is_set():
            if not self._has_changed.wait(1):
                continue
            self._has_changed.clear()
            try:
                queue = _timed(self.queues, self._client, "/api/queue").raise_for_status()
                files = queue.json()["files"]
                if files:
                    document = files[self._number % len(files)]["document"]
                    _timed(self.files, self._client, f"/api/file?document={document}&count=2000")
            except httpx2.HTTPError:
                self.failed += 1

    def end(self) -> None:
        """Ask no more."""
        self._ends.set()

    def _follow(self) -> None:
        with suppress(httpx2.HTTPError), self._stream.stream("GET", "/api/events") as answer:
            for line in answer.iter_lines():
                if line.startswith("event: changed"):
                    self._has_changed.set()
                if self._ends.is_set():
                    return
        self.failed += not self._ends.is_set()


def _timed(times: list[Milliseconds], client: httpx2.Client, address: str) -> httpx2.Response:
    began = time.perf_counter_ns()
    answer = client.get(address)
    times.append((time.perf_counter_ns() - began) / 1e6)
    return answer


def _load(report: Report, root: Path, server: ReviewServer) -> None:
    tabs = [_Tab(server, number) for number in range(TABS)]
    for tab in tabs:
        tab.start()
    agents = [
        subprocess.Popen([sys.executable, "-c", AGENT, root, str(number), str(SECONDS)])
        for number in range(1, AGENTS + 1)
    ]
    decisions: list[Milliseconds] = []
    made = 0
    memory: list[int] = []
    waiting: list[int] = []
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        files = server.queue()["files"]
        waiting.append(sum(file["changes"] for file in files))
        made += _decide(server, files, decisions)
        memory.append(_resident(server.process.pid))
        time.sleep(PAUSE * 4)
    failed_agents = sum(process.poll() not in {None, 0} for process in agents)
    used = _processor_seconds(server.process.pid)
    for tab in tabs:
        tab.end()
    for process in agents:
        process.wait()
    queues = [each for tab in tabs for each in tab.queues]
    files = [each for tab in tabs for each in tab.files]
    report.times(f"the queue, of {TABS} tabs with {AGENTS} agents", queues)
    report.times("a file", files)
    report.times("a decision", decisions)
    report.ratio("the queue, p95 ms", percentile(queues, 0.95), "<= 1000")
    report.ratio("a decision, p95 ms", percentile(decisions, 0.95), "<= 1000")
    report.ratio("tabs that were sent no queue", sum(not tab.queues for tab in tabs), "<= 0")
    report.ratio("requests and streams that failed", sum(tab.failed for tab in tabs), "<= 0")
    report.ratio("agents that failed", failed_agents, "<= 0")
    report.ratio("decisions that were made, not overtaken", made, ">= 1")
    quarter = max(1, len(memory) // 4)
    grown, more = ((sum(found[-quarter:]) - sum(found[quarter : 2 * quarter])) / quarter for found in (memory, waiting))
    report.ratio("queues and files that were answered a second", (len(queues) + len(files)) / SECONDS, ">= 0")
    report.ratio("processor time of the server, of one", used / SECONDS, "<= 1")
    report.ratio("memory at the beginning, MB", memory[0] / 1e6, "flat")
    report.ratio("memory at the end, MB", memory[-1] / 1e6, "flat")
    report.ratio("changes that await review, more in the last quarter than in the second", more, ">= 0")
    report.ratio("growth of memory from the second quarter to the last, MB", grown / 1e6, "<= 10")


def _decide(server: ReviewServer, files: list[dict[str, Any]], times: list[Milliseconds]) -> bool:
    """Decide on all changes of the file with the most of them; return whether they were decided.

    So the queue has one length soon, and what its memory grows by then is not needed for the queue. (A file by chance
    leaves some files for long: the queue still grew by 200 changes from the second quarter to the last.)
    """
    if not files:
        return False
    rng = random.Random(len(times))
    document = max(files, key=lambda file: file["changes"])["document"]
    answer = server.client.get("/api/file", params={"document": document})
    if answer.status_code != 200:
        return False
    changes = answer.json()["all"]
    if not changes:
        return False
    keys = [change["key"] for change in changes]
    began = time.perf_counter_ns()
    outcome = server.post(
        "/api/decide",
        action=rng.choice(["accept", "reject"]),
        keys=keys,
        on_screen=dict.fromkeys(keys, WHOLE),
        running="now",
    )
    times.append((time.perf_counter_ns() - began) / 1e6)
    return bool(outcome["outcome"] == "decided")


def _processor_seconds(process: int) -> float:
    """Return how long a process has run on a processor."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(process: int) -> int:
    """Return how many bytes of memory a process has."""
    fields = Path(f"/proc/{process}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
