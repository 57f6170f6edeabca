"""`cas` is killed at each request of a push, pull, decision, carrying and collection, on a real server.

A proxy decides the moment: the process dies, and the request has reached the server, or has not. Then nothing is lost,
the same command works, and each unit is decided once.
"""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event

import pytest

from objstore import Action, RemoteDecided, Seq, Status, Unit, Workspace, clone_remote
from objstore.disk.fs.disk import Disk
from objstore.upkeep.remote.bucket import open_bucket
from objstore.upkeep.remote.decisions import Ledger, Result, read_log, settle
from objstore.upkeep.remote.heads import newest_head
from objstore.upkeep.remote.keys import head_folder, number_in, object_folder, object_key
from tests.support.bucket_servers import BucketServer, missing_server, seaweedfs
from tests.support.command_runner import PATIENCE, environment
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import WHOLE, UnsyncedDisk
from tests.support.fork_server import ForkedProcess, forked_program
from tests.support.scene import observe_tree
from tests.support.unreliable_proxy import Proxy, unreliable

pytestmark = pytest.mark.skipif(bool(missing_server("seaweedfs")), reason=missing_server("seaweedfs"))

MOST = 60
"""More requests than any of these commands makes."""

SAMPLE = 8
"""Of the deaths of a command, the share that is tried unless CAS_CRASH_STEPS is 1."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketServer]:
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as running:
        yield running


@pytest.fixture
def proxy(server: BucketServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with unreliable(server.endpoint) as running:
        for name, value in server.at(running.endpoint).items():
            monkeypatch.setenv(name, value)
        yield running


class Team:
    """Two workspaces with one bucket: `desk` has an edit in each of its files, and `lap` has pulled it."""

    def __init__(self, folder: Path, url: str) -> None:
        self.url = url
        self.edits = 0
        self.desk, self.lap = (folder / name for name in ("desk", "lap"))
        for root in (self.desk, self.lap):
            root.mkdir()
            with Workspace.init(root, UnsyncedDisk()) as workspace:
                workspace.remotes.add("team", url)
        for _ in range(3):
            self.edit()
        self.push()
        self.pull()

    def edit(self) -> Unit:
        """Record one more edit of desk, and return its unit."""
        self.edits += 1
        name = f"{self.edits}.txt"
        with Workspace.open(self.desk, UnsyncedDisk()) as workspace:
            write(workspace, name, b"one\n")
        return Unit(Seq(self.edits), 0)

    def push(self) -> None:
        with Workspace.open(self.desk, UnsyncedDisk()) as workspace:
            workspace.remotes.push("team")

    def pull(self) -> None:
        with Workspace.open(self.lap, UnsyncedDisk()) as workspace:
            assert [each.error for each in workspace.remotes.pull("team")] == [""]

    def carry(self) -> None:
        with Workspace.open(self.desk, UnsyncedDisk()) as workspace:
            assert {each.result for each in workspace.remote_decisions.carry("team")} <= {"carried"}

    def decide(self, action: Action, unit: Unit) -> None:
        with Workspace.open(self.lap, UnsyncedDisk()) as workspace:
            found = workspace.remotes.member("desk")
            assert found is not None
            workspace.remote_decisions.decide(*found, action, {unit: Status.PENDING}, who="ann")

    def mirrored(self) -> dict[str, bytes]:
        """Return the segments of the mirror of desk."""
        with Workspace.open(self.lap, UnsyncedDisk()) as workspace:
            found = workspace.remotes.member("desk")
            assert found is not None
            return segments(Path(workspace.remotes.mirror(*found)))

    def ledger(self) -> Ledger:
        return settle(read_log(open_bucket(self.url), 0))


@pytest.fixture
def team(server: BucketServer, proxy: Proxy, tmp_path: Path) -> Team:  # noqa: ARG001 -- it sets the environment
    return Team(tmp_path, f"{server.url}/{tmp_path.name}")


def segments(root: Path) -> dict[str, bytes]:
    return {name: seen.content for name, seen in observe_tree(root, store=True).items()}


def run(words: list[str], folder: Path, proxy: Proxy, at: int, *, is_sent: bool) -> bool:
    """Run `cas` and kill it at its request with this number; return whether it was killed, and did not end well.

    `is_sent`: the request reaches the server all the same.
    """
    settings = environment({name: said for name, said in os.environ.items() if name.startswith("AWS_")})
    running: Future[ForkedProcess] = Future()
    ended = Event()
    first = proxy.count

    def kill(number: int) -> bool:
        if number - first < at:
            return False
        if number - first == at:
            os.kill(running.result(PATIENCE).pid, signal.SIGKILL)
        assert ended.wait(PATIENCE)
        return not is_sent or number - first > at  # requests at the same time die with it

    proxy.drops_request = kill
    with TemporaryFile() as said, Path(os.devnull).open("r+b") as nothing:
        files = [nothing.fileno(), nothing.fileno(), said.fileno()]
        process = forked_program("cli").start(words, folder=folder, environment=settings, files=files)
        running.set_result(process)
        try:
            status = process.wait(2 * PATIENCE)
        except BaseException:
            process.kill()  # else what hangs would go on
            raise
        finally:
            ended.set()
        said.seek(0)
        assert status in {0, -signal.SIGKILL}, said.read()
    proxy.drops_request = lambda _: False
    return status != 0


def deaths(proxy: Proxy, prepare: Callable[[], tuple[list[str], Path]]) -> Iterator[int]:
    """Prepare a command and kill it, at each of its requests in turn; yield the number of the request each time.

    Of all requests if WHOLE is set, else of the first and each eighth one of both kinds; the last is the one that it
    survives.
    """
    for is_sent in (False, True):
        for at in range(1, MOST):
            if not WHOLE and at % SAMPLE != (2 if is_sent else 3) and at > 1:
                continue
            words, folder = prepare()
            if not run(words, folder, proxy, at, is_sent=is_sent):
                break
            yield at
        else:
            raise AssertionError("it never ended")


def test_killed_push_loses_nothing_and_goes_on(team: Team, proxy: Proxy) -> None:
    def prepare() -> tuple[list[str], Path]:
        team.edit()
        return ["push", "team"], team.desk

    died = 0
    for _ in deaths(proxy, prepare):
        died += 1
        team.pull()  # what a head names is there
        team.push()
        team.pull()
        assert team.mirrored() == segments(team.desk)
    assert died >= 2


def test_killed_pull_leaves_the_mirror_whole_and_goes_on(team: Team, proxy: Proxy) -> None:
    before: list[dict[str, bytes]] = []

    def prepare() -> tuple[list[str], Path]:
        before[:] = [team.mirrored()]
        team.edit()
        team.push()
        return ["pull", "team"], team.lap

    died = 0
    for _ in deaths(proxy, prepare):
        died += 1
        now = segments(team.desk)
        assert team.mirrored() in (*before, now)
        team.pull()
        assert team.mirrored() == now
    assert died >= 2


def test_killed_decision_is_made_once_or_not(team: Team, proxy: Proxy) -> None:
    units: list[Unit] = []

    def prepare() -> tuple[list[str], Path]:
        units.append(team.edit())
        team.push()
        team.pull()
        return ["reject", f"desk/{units[-1].seq}"], team.lap

    for _ in deaths(proxy, prepare):
        with suppress(RemoteDecided):  # the one who died has decided
            team.decide(Action.ACCEPT, units[-1])
        ledger = team.ledger()
        assert [unit for each in ledger.valid.values() for unit in each.units] == units
        assert (ledger.void, ledger.unreadable) == ({}, 0)
    team.carry()
    ledger = team.ledger()
    assert not ledger.open(next(iter(ledger.valid.values())).lane)


def test_killed_carrying_carries_out_each_decision_once(team: Team, proxy: Proxy) -> None:
    units: list[Unit] = []

    def prepare() -> tuple[list[str], Path]:
        units.append(team.edit())
        team.push()
        team.pull()
        team.decide(Action.REJECT, units[-1])
        return ["pull", "team"], team.desk

    died = 0
    for _ in deaths(proxy, prepare):
        died += 1
        team.carry()
        assert not (team.desk / f"{units[-1].seq}.txt").exists()
        with Workspace.open(team.desk, Disk()) as desk:
            made = [each.units for each in desk.review.in_force() if units[-1] in each.units]
            assert len(made) == 1
        ledger = team.ledger()
        assert [each.result for each in ledger.answers.values()] == [Result.CARRIED] * len(units)
        assert ledger.void == {}
    assert died >= 4


@pytest.mark.parametrize("words", [[], ["--purge"]], ids=["gc", "purge"])
def test_killed_collection_removes_nothing_that_a_head_needs(
    team: Team, proxy: Proxy, tmp_path: Path, words: list[str]
) -> None:
    def prepare() -> tuple[list[str], Path]:
        with Workspace.open(team.desk, UnsyncedDisk()) as desk:
            desk.remotes.collect("team", purge=True)  # each collection reads the lists of those before
        for _ in range(2):
            team.edit()
            team.push()
        return ["remote", "gc", "team", *words], team.desk

    bucket = open_bucket(team.url)
    died = 0
    for _ in deaths(proxy, prepare):
        died += 1
        clone_remote(team.url, str(tmp_path / f"clone-{died}"), disk=UnsyncedDisk())
        assert segments(tmp_path / f"clone-{died}") == segments(team.desk)
    assert died >= 2
    with Workspace.open(team.desk, UnsyncedDisk()) as desk:
        desk.remotes.collect("team", purge=True)
        lane = desk.remotes.get("team")[0].lane
    found = newest_head(bucket, lane, None)
    assert found is not None
    assert {each.key for each in bucket.listed(object_folder(lane))} == {
        object_key(lane, name) for name in found[0].pieces()
    }
    heads = [number_in(head_folder(lane), each.key) for each in bucket.listed(head_folder(lane))]
    assert heads == [found[0].number]
