"""Servers that exist keep what a remote needs, and are never believed; those that are not installed are left out.

A proxy in front of each loses, delays and repeats answers. `test_deaths_on_servers.py` kills processes.
"""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from obstore import delete, put

from objstore import (
    Action,
    Member,
    Remote,
    RemoteDecided,
    RemoteDiverged,
    RemoteFailed,
    RemoteRefused,
    RemoteRolledBack,
    Seq,
    Status,
    Unit,
    Workspace,
    clone_remote,
)
from objstore.upkeep.remote.bucket import ObjectBucket, claim, open_bucket
from objstore.upkeep.remote.decisions import Ledger, RemoteDecision, append, new_nonce, read_log, settle
from objstore.upkeep.remote.keys import LOG, Lane, head_folder, numbered
from objstore.upkeep.remote.probe import probe
from tests.support.bucket_servers import BUCKET_SERVERS, BucketServer, missing_server
from tests.support.crash_scenarios import rejected, write
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.scene import observe_tree
from tests.support.unreliable_proxy import Proxy, unreliable

WRITERS = 8
KEYS = 10
MANY = {"seaweedfs": 1_050, "ceph": 1_050, "azurite": 50}  # more than a page of S3's lists; Azurite takes 50 ms each
LANE = Lane("d" * 32)


@pytest.fixture(scope="module", params=list(BUCKET_SERVERS))
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketServer]:
    if missing := missing_server(request.param):
        pytest.skip(missing)
    with (
        BUCKET_SERVERS[request.param](tmp_path_factory.mktemp(request.param)) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in running.environment.items():
            patch.setenv(name, value)
        yield running


@pytest.fixture
def proxy(server: BucketServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Return a proxy through which the server is reached."""
    with unreliable(server.endpoint) as running:
        for name, value in server.at(running.endpoint).items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def signing(server: BucketServer, proxy: Proxy) -> Proxy:
    """Return a proxy that signs the requests again, of a server that speaks S3."""
    if not server.url.startswith("s3:"):
        pytest.skip("requests to Azure are signed in another way")
    proxy.signs = server.keys
    return proxy


@pytest.fixture
def url(server: BucketServer, tmp_path: Path) -> str:
    """Return a prefix of its own for a test."""
    return f"{server.url}/{tmp_path.name}"


def segments(root: Path) -> dict[str, bytes]:
    return {name: seen.content for name, seen in observe_tree(root, store=True).items()}


def made(folder: Path, url: str) -> Workspace:
    """Return a new workspace with a remote `team`."""
    folder.mkdir()
    workspace = Workspace.init(folder, UnsyncedDisk())
    workspace.remotes.add("team", url)
    return workspace


# ---- what a remote needs


def test_of_eight_writers_that_create_an_object_one_succeeds(url: str) -> None:
    assert probe(open_bucket(url)).writers == WRITERS
    bucket = open_bucket(f"{url}/race")

    def write_all(writer: int) -> list[bool]:
        return [claim(bucket, f"race/{key}", b"%d" % writer) for key in range(KEYS)]

    with ThreadPoolExecutor(WRITERS) as pool:
        won = list(pool.map(write_all, range(WRITERS)))
    assert [sum(each) for each in zip(*won, strict=True)] == [1] * KEYS
    for key in range(KEYS):
        assert won[int(bucket.get(f"race/{key}", 1))][key]


def test_list_has_every_object_in_order(server: BucketServer, url: str) -> None:
    bucket = open_bucket(url)
    keys = [f"log/{number:012d}" for number in range(1, MANY[server.name])]
    with ThreadPoolExecutor(WRITERS) as pool:
        assert all(pool.map(lambda key: bucket.put_new(key, b"1"), keys))
    assert [each.key for each in bucket.listed("log")] == keys
    assert [each.key for each in bucket.listed("log", keys[-3])] == keys[-2:]
    assert bucket.folders("") == ["log"]
    bucket.delete([*keys, "log/none"])
    assert not list(bucket.listed("log"))


def test_clone_of_what_was_pushed_is_the_same_store(url: str, root: Path, tmp_path: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.remotes.add("origin", url)
        for number in range(3):
            write(workspace, "a.txt", b"line %d\n" % number)
            workspace.remotes.push("origin")
        rejected(workspace, 4)
        assert workspace.remotes.push("origin").size
        workspace.remotes.collect("origin", purge=True)
    clone_remote(url, str(tmp_path / "clone"), disk=UnsyncedDisk())
    assert (tmp_path / "clone" / "a.txt").read_bytes() == b"line 1\n"
    assert segments(tmp_path / "clone") == segments(root)


def test_each_unit_is_decided_once_however_many_try(url: str) -> None:
    bucket = open_bucket(url)
    won = decided_by_many(url, 4, 5)
    assert won == {Unit(Seq(seq), 1): 1 for seq in range(1, 6)}
    ledger = settle(read_log(bucket, 0))
    assert len(ledger.valid) == ledger.last == 5
    assert not ledger.void


def test_comment_is_taken_over_and_a_decision_that_is_taken_back_is_not_carried_out(
    url: str, root: Path, tmp_path: Path
) -> None:
    with Workspace.open(root, UnsyncedDisk()) as desk, made(tmp_path / "lap", url) as lap:
        desk.remotes.add("team", url)
        desk.remotes.push("team")
        lap.remotes.pull("team")
        before, unit = observe_tree(root), Unit(Seq(1), 0)  # it created the file

        def member() -> tuple[Remote, Member]:
            found = lap.remotes.member(root.name)
            assert found is not None
            return found

        def carried() -> list[tuple[str, str, str]]:
            done = [(each.result, each.reason, each.why) for each in desk.remote_decisions.carry("team")]
            lap.remotes.pull("team")
            lap.remote_decisions.carry("team")  # reads the log
            return done

        decisions, shown = lap.remote_decisions, {unit: Status.PENDING}
        number = decisions.decide(*member(), Action.REJECT, shown, who="ann", reason="too soon")
        decisions.comment(*member(), [unit], "Why?", who="ann")
        assert decisions.withdraw(*member(), who="ann") == number
        assert carried() == [("refused", "too soon", "ann took it back"), ("carried", "Why?", "")]
        assert observe_tree(root) == before
        assert [view.comment.text for view in desk.comments.all()] == ["Why?"]
        assert decisions.comments(*member()) == []
        decisions.decide(*member(), Action.REJECT, shown, who="ann")
        assert carried() == [("carried", "", "")]
        assert observe_tree(root) != before
        assert carried() == []


def decided_by_many(url: str, writers: int, units: int) -> Counter[Unit]:
    """Let several writers decide on the same units in an order of their own; return how often each was decided."""

    def decide(writer: int) -> list[Unit]:
        bucket, ledger, won = open_bucket(url), Ledger(), []
        mine = [Unit(Seq(seq), 1) for seq in range(1, units + 1)]
        random.Random(writer).shuffle(mine)
        for unit in mine:
            wanted = RemoteDecision(
                lane=LANE, action=Action.REJECT, units={unit: Status.PENDING}, who=f"{writer}", nonce=new_nonce()
            )
            try:
                append(bucket, wanted, ledger, "desk")
            except RemoteDecided:
                continue
            won.append(unit)
        return won

    with ThreadPoolExecutor(writers) as pool:
        return Counter(unit for each in pool.map(decide, range(writers)) for unit in each)


# ---- a line that loses, delays and repeats answers


def spoil(proxy: Proxy, seed: int) -> None:
    chance = random.Random(seed)
    proxy.loses = lambda _, method: method == "PUT" and chance.random() < 0.15
    proxy.repeats = lambda _, method: method == "PUT" and chance.random() < 0.15
    proxy.delay = 0.01


def test_store_comes_back_whole_through_a_bad_line(proxy: Proxy, url: str, root: Path, tmp_path: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.remotes.add("team", url)
        spoil(proxy, 5)
        for number in range(6):
            write(workspace, "a.txt", b"line\n" * (number + 2))
            workspace.remotes.push("team")
    clone_remote(url, str(tmp_path / "clone"), disk=UnsyncedDisk())
    assert segments(tmp_path / "clone") == segments(root)
    assert (tmp_path / "clone" / "a.txt").read_bytes() == (root / "a.txt").read_bytes()


def test_lost_and_repeated_answers_decide_each_unit_once(proxy: Proxy, url: str) -> None:
    spoil(proxy, 7)
    won = decided_by_many(url, 5, 8)
    assert won == {Unit(Seq(seq), 1): 1 for seq in range(1, 9)}
    ledger = settle(read_log(open_bucket(url), 0))
    assert (len(ledger.valid), ledger.void, ledger.unreadable) == (8, {}, 0)


def test_own_put_that_is_answered_as_a_loss_is_known(proxy: Proxy, url: str) -> None:
    proxy.repeats = lambda _, method: method == "PUT"
    bucket = open_bucket(url)
    assert claim(bucket, numbered(LOG, 1), b"mine")
    assert not claim(bucket, numbered(LOG, 1), b"other")


# ---- each wrong thing is said, and nothing is lost


def test_wrong_key_is_said_and_nothing_is_sent(
    server: BucketServer, url: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.remotes.add("origin", url)
        with monkeypatch.context() as patch:
            patch.setenv(server.secret_name, "d3Jvbmc=")
            with pytest.raises(RemoteFailed, match="does not accept the key"):
                workspace.remotes.push("origin")
        assert not list(open_bucket(url).listed(""))
        workspace.remotes.push("origin")


def test_key_that_was_taken_away_can_do_nothing(
    server: BucketServer, url: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.remotes.add("team", url)
        workspace.remotes.push("team")
    before = [each.key for each in open_bucket(url).listed("")]
    with monkeypatch.context() as patch:
        patch.setenv(server.secret_name, "d3Jvbmc=")
        bucket = open_bucket(url)
        decision = RemoteDecision(
            lane=LANE, action=Action.REJECT, units={Unit(Seq(1), 1): Status.PENDING}, who="left", nonce=new_nonce()
        )
        for act in (
            lambda: bucket.put_new("stores/x", b"x"),
            lambda: bucket.get(before[0], 1 << 20),
            lambda: list(bucket.listed("")),
            lambda: bucket.folders("stores"),
            lambda: bucket.delete(before),
            lambda: append(bucket, decision, Ledger()),
        ):
            with pytest.raises(RemoteFailed, match="does not accept the key"):
                act()
    assert [each.key for each in open_bucket(url).listed("")] == before


@pytest.mark.parametrize("hours", [-5, 5])
def test_clock_that_is_off_is_said_and_nothing_is_sent(signing: Proxy, url: str, root: Path, hours: int) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.remotes.add("team", url)
        signing.clock = timedelta(hours=hours)
        with pytest.raises(RemoteFailed, match="clock of this machine"):
            workspace.remotes.push("team")
        signing.clock = timedelta(0)
        assert not list(open_bucket(url).listed(""))
        workspace.remotes.push("team")


def test_bucket_that_ignores_create_if_absent_is_refused(signing: Proxy, url: str, root: Path) -> None:
    signing.drops = "if-none-match"
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        with pytest.raises(RemoteRefused, match=r"of 8 writers that created one object at once, [2-8] succeeded"):
            workspace.remotes.add("team", url)
        assert workspace.remotes.all() == []
        assert not list(open_bucket(url).listed(""))


def test_bucket_that_was_rolled_back_is_noticed_and_gets_the_store_again(url: str, root: Path, tmp_path: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as desk, made(tmp_path / "lap", url) as lap:
        desk.remotes.add("team", url)
        desk.remotes.push("team")
        write(desk, "a.txt", b"one\ntwo\n")
        desk.remotes.push("team")
        lap.remotes.pull("team")
        mirror = mirror_of(lap, root.name)
        before = segments(mirror)
        remote, state = desk.remotes.get("team")
        assert state.pushed is not None
        open_bucket(url).delete([numbered(head_folder(remote.lane), state.pushed.number)])
        with pytest.raises(RemoteRolledBack, match="rolled back"):
            desk.remotes.push("team")
        (pulled,) = lap.remotes.pull("team")
        assert "rolled back" in pulled.error
        assert segments(mirror) == before
        desk.remotes.push("team", again=True)
        assert [each.error for each in lap.remotes.pull("team")] == [""]
        assert segments(mirror) == segments(root)


def mirror_of(workspace: Workspace, name: str) -> Path:
    """Return the folder of the mirror of another store."""
    found = workspace.remotes.member(name)
    assert found is not None
    return Path(workspace.remotes.mirror(*found))


def test_lane_with_another_stores_history_is_not_taken_and_the_others_are(url: str, root: Path, tmp_path: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as desk, made(tmp_path / "lap", url) as lap:
        desk.remotes.add("team", url)
        desk.remotes.push("team")
        own = desk.remotes.get("team")[0].lane
        bucket = open_bucket(url)
        for each in list(bucket.listed(f"stores/{own}/objects")):
            bucket.put_new(each.key.replace(own, LANE), bucket.get(each.key, each.size))
        head = bucket.get(numbered(head_folder(own), 1), 1 << 20)
        bucket.put_new(numbered(head_folder(LANE), 1), head.replace(own.encode(), LANE.encode()))
        pulled = {each.member.lane: each.error for each in lap.remotes.pull("team")}
        assert "another store" in pulled[LANE]
        assert pulled[own] == ""
        assert segments(mirror_of(lap, root.name)) == segments(root)


def test_copy_of_a_store_that_goes_another_way_is_refused_and_goes_on_next_to_it(
    url: str, root: Path, tmp_path: Path
) -> None:
    with Workspace.open(root, UnsyncedDisk()) as desk:
        desk.remotes.add("team", url)
        desk.remotes.push("team")
    copy = Path(shutil.copytree(root, tmp_path / "copy"))
    with Workspace.open(root, UnsyncedDisk()) as desk, Workspace.open(copy, UnsyncedDisk()) as other:
        write(desk, "a.txt", b"one\ntwo\n")
        desk.remotes.push("team")
        write(other, "a.txt", b"one\nzwei\n")
        with pytest.raises(RemoteDiverged, match="copied or restored"):
            other.remotes.push("team")
        desk.remotes.push("team")
        other.remotes.push("team", new_lane=True)
    clone_remote(url, str(tmp_path / "again"), store=desk.remotes.get("team")[0].lane + "-", disk=UnsyncedDisk())
    assert segments(tmp_path / "again") == segments(copy)


def test_collections_during_pulls_lose_nothing(url: str, root: Path, tmp_path: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as desk:
        desk.remotes.add("team", url)
        desk.remotes.push("team")

    def push_and_purge() -> None:
        with Workspace.open(root, UnsyncedDisk()) as desk:
            for number in range(2, 6):
                write(desk, "a.txt", b"line\n" * number)
                desk.remotes.push("team")
                desk.remotes.collect("team", purge=True)

    with made(tmp_path / "lap", url) as lap:
        with ThreadPoolExecutor(1) as pool:
            purging = pool.submit(push_and_purge)
            while not purging.done():
                lap.remotes.pull("team")
            purging.result()
        (pulled,) = lap.remotes.pull("team")
        assert pulled.error == ""
        assert segments(mirror_of(lap, root.name)) == segments(root)


def spoiled(bucket: ObjectBucket, key: str, size: int) -> None:
    content = bytearray(bucket.get(key, size))
    content[size // 2] ^= 1
    put(bucket._store, key, bytes(content))  # noqa: SLF001 - a member who lies has more than our interface


def removed(bucket: ObjectBucket, key: str, _: int) -> None:
    delete(bucket._store, key)  # noqa: SLF001 - as above


@pytest.mark.parametrize("harm", [spoiled, removed])
def test_flipped_byte_and_missing_object_are_said_and_the_mirror_stays(
    url: str, root: Path, tmp_path: Path, harm: Callable[[ObjectBucket, str, int], None]
) -> None:
    with Workspace.open(root, UnsyncedDisk()) as desk, made(tmp_path / "lap", url) as lap:
        desk.remotes.add("team", url)
        desk.remotes.push("team")
        lap.remotes.pull("team")
        before = segments(mirror_of(lap, root.name))
        write(desk, "a.txt", b"one\ntwo\n")
        desk.remotes.push("team")
        bucket = open_bucket(url)
        for each in list(bucket.listed(f"stores/{desk.remotes.get('team')[0].lane}/objects")):
            harm(bucket, each.key, each.size)
        (pulled,) = lap.remotes.pull("team")
        assert "/objects/" in pulled.error
        assert segments(mirror_of(lap, root.name)) == before
