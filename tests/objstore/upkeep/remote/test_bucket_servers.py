"""Servers that exist keep what a remote needs of them; those that are not installed are left out."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from objstore import Action, RemoteDecided, RemoteFailed, Seq, Status, Unit, Workspace, clone_remote
from objstore.upkeep.remote.bucket import Bucket, claim, open_bucket
from objstore.upkeep.remote.decisions import Ledger, RemoteDecision, append, new_nonce, read_log, settle
from objstore.upkeep.remote.keys import Lane
from objstore.upkeep.remote.probe import probe
from tests.support.bucket_servers import BUCKET_SERVERS, BucketServer, missing_server
from tests.support.crash_scenarios import rejected, write
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.scene import observe_tree

WRITERS = 8
KEYS = 10
MANY = {"s3": 1_050, "az": 50}  # more than a page of S3's lists; Azurite takes 50 ms for an object
LANE = Lane("0" * 32)


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


def bucket_at(server: BucketServer, prefix: str) -> Bucket:
    """Return a bucket of its own for a test."""
    return open_bucket(f"{server.url}/{prefix}")


def test_of_eight_writers_that_create_an_object_one_succeeds(server: BucketServer) -> None:
    assert probe(bucket_at(server, "probe")).writers == WRITERS
    bucket = bucket_at(server, "race")

    def write_all(writer: int) -> list[bool]:
        return [claim(bucket, f"race/{key}", b"%d" % writer) for key in range(KEYS)]

    with ThreadPoolExecutor(WRITERS) as pool:
        won = list(pool.map(write_all, range(WRITERS)))
    assert [sum(each) for each in zip(*won, strict=True)] == [1] * KEYS
    for key in range(KEYS):
        assert won[int(bucket.get(f"race/{key}", 1))][key]


def test_list_has_every_object_in_order(server: BucketServer) -> None:
    bucket = bucket_at(server, "list")
    keys = [f"log/{number:012d}" for number in range(1, MANY[server.url[:2]])]
    with ThreadPoolExecutor(WRITERS) as pool:
        assert all(pool.map(lambda key: bucket.put_new(key, b"1"), keys))
    assert [each.key for each in bucket.listed("log")] == keys
    assert [each.key for each in bucket.listed("log", keys[-3])] == keys[-2:]
    assert bucket.folders("") == ["log"]
    bucket.delete([*keys, "log/none"])
    assert not list(bucket.listed("log"))


def test_clone_of_what_was_pushed_is_the_same_store(server: BucketServer, root: Path, tmp_path: Path) -> None:
    url = f"{server.url}/store"
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.remotes.add("origin", url)
        for number in range(3):
            write(workspace, "a.txt", b"line %d\n" % number)
            workspace.remotes.push("origin")
        rejected(workspace, 4)
        assert workspace.remotes.push("origin").size
        workspace.remotes.collect("origin", purge=True)
    made, _ = clone_remote(url, str(tmp_path / "clone"), disk=UnsyncedDisk())
    assert (tmp_path / "clone" / "a.txt").read_bytes() == b"line 1\n"
    here, there = (observe_tree(each, store=True) for each in (root, Path(made.root)))
    assert {name: seen.content for name, seen in here.items()} == {name: seen.content for name, seen in there.items()}


def test_each_unit_is_decided_once_however_many_try(server: BucketServer) -> None:
    bucket = bucket_at(server, "decide")

    def decide(writer: int) -> list[Unit]:
        ledger, won = Ledger(), []
        for seq in range(1, 6):
            unit = Unit(Seq(seq), 1)
            wanted = RemoteDecision(
                lane=LANE,
                action=Action.REJECT,
                units={unit: Status.PENDING},
                who=f"writer {writer}",
                nonce=new_nonce(),
            )
            try:
                append(bucket, wanted, ledger, "desk")
            except RemoteDecided:
                continue
            won.append(unit)
        return won

    with ThreadPoolExecutor(4) as pool:
        won = Counter(unit for each in pool.map(decide, range(4)) for unit in each)
    assert won == {Unit(Seq(seq), 1): 1 for seq in range(1, 6)}
    ledger = settle(read_log(bucket, 0))
    assert len(ledger.valid) == ledger.last == 5
    assert not ledger.void


def test_a_wrong_key_is_said_and_nothing_is_sent(
    server: BucketServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.remotes.add("origin", f"{server.url}/key")
        secret = next(name for name in server.environment if name.endswith(("SECRET_ACCESS_KEY", "ACCOUNT_KEY")))
        with monkeypatch.context() as patch:
            patch.setenv(secret, "d3Jvbmc=")
            with pytest.raises(RemoteFailed, match="does not accept the key"):
                workspace.remotes.push("origin")
        assert not list(bucket_at(server, "key").listed(""))
        workspace.remotes.push("origin")
