"""On a real object server, with answers that are lost, late and repeated, and processes that are killed."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from objstore import Action, RemoteDecided, RemoteFailed, Seq, Status, Unit, Workspace, clone_remote
from objstore.disk.fs.disk import Disk
from objstore.upkeep.remote.bucket import claim, open_bucket
from objstore.upkeep.remote.decisions import RemoteDecision, append, new_nonce, read_log, settle
from objstore.upkeep.remote.keys import LOG, Lane, numbered
from objstore.upkeep.remote.probe import probe
from tests.support.command_runner import environment
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import WHOLE, UnsyncedDisk
from tests.support.object_server import ObjectServer, has_server, running_server
from tests.support.scene import observe_tree
from tests.support.unreliable_proxy import Proxy, unreliable

IS_REQUIRED = "seaweedfs" in os.environ.get("EDITLEDGER_REQUIRES", "").split()

pytestmark = pytest.mark.skipif(not (has_server() or IS_REQUIRED), reason="SeaweedFS is not installed")

LANE = Lane("d" * 32)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    with running_server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture
def proxy(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with unreliable(server.endpoint) as running:
        for name, said in server.settings(endpoint=running.endpoint).items():
            monkeypatch.setenv(name, said)
        yield running


@pytest.fixture
def url(server: ObjectServer, tmp_path: Path) -> str:
    return f"{server.url}/{tmp_path.name}"


def segments(root: Path) -> dict[str, bytes]:
    return {name: seen.content for name, seen in observe_tree(root, store=True).items()}


def test_one_of_eight_writers_creates_an_object(proxy: Proxy, url: str) -> None:
    assert probe(open_bucket(url)).writers == 8
    assert proxy.count


def test_store_comes_back_whole_through_a_bad_line(proxy: Proxy, url: str, root: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    proxy.loses = lambda _, method: method == "PUT" and chance.random() < 0.15
    proxy.repeats = lambda _, method: method == "PUT" and chance.random() < 0.15
    proxy.delay = 0.01
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.remotes.add("team", url)
        for number in range(6):
            write(workspace, "a.txt", b"line\n" * (number + 2))
            workspace.remotes.push("team")
    clone_remote(url, str(tmp_path / "clone"), disk=UnsyncedDisk())
    assert segments(tmp_path / "clone") == segments(root)
    assert (tmp_path / "clone" / "a.txt").read_bytes() == (root / "a.txt").read_bytes()


@pytest.mark.usefixtures("proxy")
def test_wrong_key_is_said_and_nothing_is_lost(
    server: ObjectServer, url: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.remotes.add("team", url)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
        with pytest.raises(RemoteFailed, match="does not accept the key"):
            workspace.remotes.push("team")
        for name, said in server.settings().items():
            monkeypatch.setenv(name, said)
        workspace.remotes.push("team")


def test_clock_that_is_off_is_said(proxy: Proxy, url: str, root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.remotes.add("team", url)
        # As S3 answers where the clocks differ by more than 15 minutes.
        proxy.refuses = (
            b"<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>"
        )
        with pytest.raises(RemoteFailed, match="clock of this machine"):
            workspace.remotes.push("team")
        proxy.refuses = b""
        workspace.remotes.push("team")


def test_lost_and_repeated_answers_decide_each_unit_once(proxy: Proxy, url: str) -> None:
    chance = random.Random(7)
    proxy.loses = lambda _, method: method == "PUT" and chance.random() < 0.15
    proxy.repeats = lambda _, method: method == "PUT" and chance.random() < 0.15
    units = [Unit(Seq(number), 1) for number in range(1, 9)]

    def decide(name: str) -> set[Unit]:
        bucket, won = open_bucket(url), set[Unit]()
        mine = units.copy()
        random.Random(name).shuffle(mine)
        ledger = settle(read_log(bucket, 0))
        for unit in mine:
            decision = RemoteDecision(
                lane=LANE, action=Action.REJECT, units={unit: Status.PENDING}, who=name, nonce=new_nonce()
            )
            try:
                append(bucket, decision, ledger, "desk")
            except RemoteDecided:
                continue
            won.add(unit)
        return won

    with ThreadPoolExecutor(5) as pool:
        wins = list(pool.map(decide, ["ann", "bob", "cem", "dan", "eve"]))
    assert sorted(unit for won in wins for unit in won) == units
    ledger = settle(read_log(open_bucket(url), 0))
    assert (len(ledger.valid), ledger.void, ledger.unreadable) == (len(units), {}, 0)


def test_own_put_that_is_answered_as_a_loss_is_known(proxy: Proxy, url: str) -> None:
    proxy.repeats = lambda _, method: method == "PUT"
    bucket = open_bucket(url)
    assert claim(bucket, numbered(LOG, 1), b"mine")
    assert not claim(bucket, numbered(LOG, 1), b"other")


def _run(words: list[str], folder: Path, proxy: Proxy, dies_at: int) -> int:
    """Run `cas`, and kill it before its request with this number is passed on; return how it ended."""
    command = [sys.executable, "-P", "-m", "editledger.cas", *words]
    settings = environment({name: said for name, said in os.environ.items() if name.startswith("AWS_")})
    process = subprocess.Popen(command, cwd=folder, env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    first = proxy.count

    def kill(number: int) -> None:
        if number - first >= dies_at:
            process.send_signal(signal.SIGKILL)
            process.wait()

    proxy.before = kill
    status = process.wait(120)
    proxy.before = lambda _: None
    return status


@pytest.mark.parametrize("dies_at", range(1, 5) if WHOLE else [2])
def test_killed_push_and_pull_go_on(proxy: Proxy, url: str, root: Path, tmp_path: Path, dies_at: int) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with closing(Workspace.init(other, UnsyncedDisk())) as second, closing(Workspace.open(root)) as first:
        first.remotes.add("team", url)
        second.remotes.add("team", url)
    # A first push asks which heads there are, and puts a piece and a head.
    assert _run(["push", "team"], root, proxy, dies_at) == (-signal.SIGKILL if dies_at < 4 else 0)
    with closing(Workspace.open(root, Disk())) as first:
        first.remotes.push("team")
    assert _run(["pull", "team"], other, proxy, dies_at) in {0, -signal.SIGKILL}
    with closing(Workspace.open(other, UnsyncedDisk())) as second:
        second.remotes.pull("team")
        found = second.remotes.member(root.name)
        assert found is not None
        assert segments(Path(second.remotes.mirror(*found))) == segments(root)
