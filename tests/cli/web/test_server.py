"""`cas web` starts and ends: the address, the browser, signals, kills."""

import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import httpx2
import pytest

from objstore import Status
from objstore.disk.fs.writer_lock import WAIT_SECONDS, WriterLock
from tests.support.command_runner import PATIENCE, PROGRAM, CommandRunner, cas, environment, program_finding
from tests.support.faulty_disk import WHOLE
from tests.support.plain_http import NO_CERTIFICATES
from tests.support.review_server import WHOLE as EVERY_ROW, ReviewServer, review_server

BROWSER = """
import pathlib, sys
place = pathlib.Path(sys.argv[1])
place.with_suffix(".part").write_text(sys.argv[2])
place.with_suffix(".part").rename(place)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_server_ends_well_at_a_signal(server: ReviewServer, number: int) -> None:
    with server.events() as events:
        next(events)
        assert server.end(number) == (0, "")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_syntax_leaves_no_process_and_no_complaint(runner: CommandRunner, number: int, status: int) -> None:
    """The process shares the server's standard error, whose end is waited for."""
    runner.write("a.py", b"def f():\n    return 'text'  # why\n")
    with review_server(runner.folder, is_cold=True) as server:
        document = server.file("a.py")["document"]
        rows = server.get("/api/syntax", document=document)["rows"]
        assert rows == [
            [[0, 3, "keyword"], [4, 5, "name"]],
            [[4, 10, "keyword"], [11, 17, "string"], [19, 24, "comment"]],
        ]
        assert server.end(number) == (status, "")


SLOW = """
import re
class Lexer:
    def get_tokens_unprocessed(self, text):
        re.match("(a+)+$", "a" * 60 + "b")  # for longer than anybody lives
        yield 0, (), text
def get_lexer_for_filename(name):
    return Lexer()
"""

KINDS = """
class Kind(tuple):
    def __getattr__(self, name):
        return self
Comment = Keyword = Name = Number = String = Kind()
"""


def test_a_text_that_a_lexer_takes_too_long_for_is_sent_without_marks(runner: CommandRunner, tmp_path: Path) -> None:
    package = tmp_path / "pygments"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "lexers.py").write_text(SLOW)
    (package / "token.py").write_text(KINDS)
    (package / "util.py").write_text("class ClassNotFound(Exception): ...\n")
    runner.write("a.py", b"def f():\n    pass\n")
    with review_server(runner.folder, program=program_finding(tmp_path)) as server:
        document = server.file("a.py")["document"]
        assert server.get("/api/syntax", document=document)["rows"] == []
        assert server.queue()["changes"] == 1
        assert server.end() == (0, "")


def test_outside_a_workspace_the_status_says_so(tmp_path: Path) -> None:
    ran = cas("web", "--no-browser", folder=tmp_path)
    assert (ran.status, ran.text) == (10, "")
    assert "No workspace" in ran.said


def test_a_port_that_is_taken_is_named(runner: CommandRunner) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = runner.cas("web", "--no-browser", "--port", str(port))
    assert ran.status == 1
    assert f"Port {port} can't be used" in ran.said


def test_a_server_can_be_started_again_at_its_port(runner: CommandRunner) -> None:
    with review_server(runner.folder) as first:
        stale = first.client.cookies
        port = first.port
    with review_server(runner.folder, "--port", str(port)) as second:
        assert second.port == port
        assert second.token != first.token
        with httpx2.Client(base_url=second.origin, cookies=dict(stale), verify=NO_CERTIFICATES) as old:
            assert old.get("/api/queue").status_code == 401
            assert old.get("/", params={"token": first.token}).status_code == 401


def test_it_listens_to_this_machine_alone(server: ReviewServer) -> None:
    with socket.socket() as probe:
        # Another of the machine's own addresses: a server at 0.0.0.0 would answer there.
        assert probe.connect_ex(("127.0.0.2", server.port)) != 0


def test_the_browser_gets_a_private_page_and_not_the_token(runner: CommandRunner, tmp_path: Path) -> None:
    program, opened = tmp_path / "browser.py", tmp_path / "opened"
    program.write_text(BROWSER)
    browser = f"{sys.executable} {program} {opened} %s"
    process = subprocess.Popen(
        [*PROGRAM, "web"],
        cwd=runner.folder,
        env=environment({"BROWSER": browser}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(3)]
        until = time.monotonic() + PATIENCE
        while not opened.exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        address = opened.read_text()
        page = Path(address.removeprefix("file://"))
        assert address.startswith("file://")
        assert (page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert re.search(r"token=([\w-]+)", said[1])[1] in page.read_text()  # type: ignore[index]  # it is there
    finally:
        process.terminate()
        ended = process.communicate(timeout=PATIENCE)
    assert (process.returncode, ended) == (0, ("", ""))
    assert not page.parent.exists()


def test_a_server_that_is_killed_in_a_decision_leaves_all_or_nothing(runner: CommandRunner) -> None:
    lines = [b"%d\n" % number for number in range(60)]
    for name in "abc":
        runner.done("accept", str(runner.write(name, b"".join(lines))))
        runner.write(name, b"".join(b"new " + line if at % 2 else line for at, line in enumerate(lines)))
    states = {b"".join(lines), runner.bytes("a")}
    for seed in range(8) if WHOLE else (1,):
        with review_server(runner.folder, is_cold=True) as server:
            keys = [key for file in server.queue()["files"] for key in server.keys(file["name"])]

            def decide(server: ReviewServer = server, keys: list[str] = keys) -> None:
                with suppress(httpx2.HTTPError):
                    server.decide("reject", keys=keys)

            thread = threading.Thread(target=decide)
            thread.start()
            time.sleep(random.Random(seed).uniform(0.01, 0.2))
            server.process.kill()
            thread.join()
        with review_server(runner.folder) as server:
            queue = server.queue()
            assert len(queue["files"]) in {0, 3}
            assert queue["external_changes"] == []
            assert {runner.bytes(name) for name in "abc"} < states
            if not queue["files"]:
                assert server.post("/api/undo", number=queue["undo"])["outcome"] == "decided"
    assert runner.cas("fsck").status == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_twenty_streams_open(server: ReviewServer, number: int) -> None:
    with ExitStack() as stack:
        for _ in range(20):
            next(stack.enter_context(server.events()))
        assert server.end(number) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_while_a_decision_waits_for_another_writer(runner: CommandRunner, number: int) -> None:
    runner.write("a", b"1\n")
    with (
        closing(WriterLock(str(runner.folder / ".cas" / "lock"))) as lock,
        review_server(runner.folder, is_cold=True) as server,
        ThreadPoolExecutor(1) as thread,
        lock.held(),
    ):
        key = server.keys("a")[0]
        asked = {"action": "accept", "keys": [key], "on_screen": {key: EVERY_ROW}}
        thread.submit(server.browser().post, "/api/decide", json=asked)
        while not waits_for_lock(server):
            time.sleep(0.01)
        assert server.end(number, within=WAIT_SECONDS / 2) == (0, "")  # so it did not wait for the writer
    assert runner.statuses() == {"1:0": Status.PENDING}


def waits_for_lock(server: ReviewServer) -> bool:
    """Return whether a server that began cold has opened the file of the writers' lock."""
    opened = Path(f"/proc/{server.process.pid}/fd").iterdir()
    with suppress(FileNotFoundError):  # closed meanwhile
        return any(each.readlink().name == "lock" for each in opened)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_while_documents_are_rendered_and_leaves_no_process(runner: CommandRunner, number: int) -> None:
    runner.write("a.md", b"> [a](b) ![x](y) *a **b* `c\n" * 30_000)
    with review_server(runner.folder, is_cold=True) as server, ThreadPoolExecutor(3) as threads:
        document = server.queue()["files"][0]["document"]
        for _ in range(3):
            threads.submit(server.browser().get, "/rendered", params={"document": document})
        children: list[str] = []
        while not children:
            found = Path(f"/proc/{server.process.pid}/task").glob("*/children")
            children = " ".join(each.read_text() for each in found).split()
        assert server.end(number) == (0, "")
        assert [child for child in children if is_running(child)] == []


def is_running(process: str) -> bool:
    """Return whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
