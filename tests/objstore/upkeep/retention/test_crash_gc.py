"""Test crashes of expiry, purge and repack at every step and in every way.

After each step the store opens with all held blobs, and a purge that has begun is finished when it is called again.
`CAS_CRASH_STEPS=1` walks every step (`make crash` does), 45 every 45th, beginning with another one in each way.
"""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from objstore import Action, BlobId, CallInfo, CasError, Unit, Workspace, blob_id, check_store
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.storage.index.refcounts import recount
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.integrity.segment_scan import SegmentScan
from tests.support.crash_scenarios import files, history, write
from tests.support.faulty_disk import CountdownDisk, PowerCut, broken_disk, full_disk, power_cut
from tests.support.index_tables import rebuilt_tables, records_of, tables
from tests.support.sampling import sampled_product

EVERY: Final = int(os.environ.get("CAS_CRASH_STEPS", "45"))
SECRET: Final = random.Random(1).randbytes(900).hex().encode() + b"\n"
EVERYTHING: Final = RetentionLimits(older_than=0, max_size=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way for a disk operation to fail, with what is lost then."""

    failure: Callable[[str], BaseException]
    torn: float | None = None  # share of a write that lands all the same
    lasting: bool = True
    unsynced: bool = False  # whether what was not synced is lost


WAYS: Final = {
    "killed": Way(failure=power_cut),
    "killed in a write": Way(failure=power_cut, torn=0.5),
    "power cut": Way(failure=power_cut, torn=0.5, unsynced=True),
    "disk full": Way(failure=full_disk),
    "disk full once": Way(failure=full_disk, torn=0.5, lasting=False),
    "disk broken": Way(failure=broken_disk),
    "disk broken once": Way(failure=broken_disk, lasting=False),
}


def expire(workspace: Workspace) -> object:
    return workspace.retention.collect(EVERYTHING, thorough=True)


def purge(workspace: Workspace) -> object:
    return workspace.retention.purge([blob_id(SECRET)])


def repack(workspace: Workspace) -> object:
    return workspace.retention.repack()


ACTS: Final = {"expiry": expire, "purge": purge, "repack": repack}


def text(version: int, seed: int = 0) -> bytes:
    chance = random.Random(1)
    lines = [b"%d %d %d\n" % (n, chance.getrandbits(40), chance.getrandbits(40)) for n in range(60)]
    lines[seed] = b"seed %d\n" % seed
    for number in range(version):
        lines[number * 7 % 60] = b"version %d\n" % version
    return b"".join(lines)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace of two segments with something to expire, to purge and to repack."""
    root = tmp_path_factory.mktemp("start")
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        for version in range(8):
            write(workspace, "a.txt", text(version))
        write(workspace, "s.txt", SECRET)
        write(workspace, "s.txt", b"no secret\n")
        with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
            journal.seal()
        workspace.decide(
            Action.ACCEPT, [Unit(view.seq, n) for view in workspace.history.edits() for n in range(len(view.units))]
        )
        for version in range(2):
            write_pending(workspace, "b.txt", text(version, 9))
    return root


def write_pending(workspace: Workspace, path: str, content: bytes) -> None:
    """Record one call of a conversation that stays pending."""
    with workspace.call(CallInfo(tool="t", conversation="pending")) as call:
        call.write(path, content)
        call.commit()


def held(root: Path) -> set[BlobId]:
    """Return the blobs that must be readable according to the records."""
    return set(recount(records_of(root / ".cas"), lambda _: None, lambda _: ()))


def stored(root: Path) -> set[BlobId]:
    """Return the readable blobs of the segment files, whether or not something holds them."""
    with SegmentScan(str(root / ".cas" / "segments")) as remains:
        return set(remains.blobs)


def assert_sound(root: Path, start: Path) -> None:
    """Assert that files and history are unchanged, that all held blobs can be read, and that new edits work."""
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        assert files(root) == files(start)
        with Workspace.open(start, CountdownDisk(None)) as before:
            assert history(workspace) == history(before)
        for name in held(root):
            assert blob_id(workspace.history.blob(name)) == name
    assert check_store(str(root)).faults == ()
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        write_pending(workspace, "afterwards.txt", b"work goes on\n")
        assert workspace.review.status().external == ()
    assert tables(root / ".cas" / "index.sqlite") == rebuilt_tables(root / ".cas")


def cut_off(
    act: Callable[[Workspace], object], start: Path, folder: Path, way: Way, first: int, every: int = EVERY
) -> Iterator[Path]:
    """Yield a copy of the workspace for each step at which the act failed in that way."""
    counting = CountdownDisk(None)
    with Workspace.open(shutil.copytree(start, folder / "counted"), counting) as workspace:
        act(workspace)
    assert {"create", "replace", "remove_store_file"} <= set(counting.done)
    for step in range(first % min(every, len(counting.done)), len(counting.done), every):
        root = shutil.copytree(start, folder / str(step))
        disk = CountdownDisk(step, way.failure, torn=way.torn, lasting=way.lasting)
        index = (root / ".cas" / "index.sqlite").read_bytes()
        workspace = Workspace.open(root, disk)
        is_reported = False
        try:
            act(workspace)
        except (PowerCut, CasError):
            is_reported = True
        disk.disarmed = True
        workspace.close()
        # Only that the mark could not be written may go unsaid: an old one does no harm. And what finds no room once
        # finds it in what the store gives back.
        is_tried_again = act in {expire, purge} and way is WAYS["disk full once"]
        # Of what is removed last, nothing is left to be done when it is tried again, though the disk is still full.
        is_last = act is expire and way is WAYS["disk full"] and step == len(counting.done) - 1
        assert is_reported or is_tried_again or is_last or disk.failed == "overwrite"
        assert is_reported or act is not purge or blob_id(SECRET) not in stored(root)
        if way.unsynced:
            disk.lose_unsynced()
            # Of the index, a power cut may take whatever was put in lately.
            for name in ("index.sqlite-wal", "index.sqlite-shm"):
                (root / ".cas" / name).unlink(missing_ok=True)
            (root / ".cas" / "index.sqlite").write_bytes(index)
        yield root
        shutil.rmtree(root)


@pytest.mark.parametrize(("named", "failing"), sampled_product(list(ACTS), list(WAYS)))
def test_an_interruption_at_any_step_loses_nothing_and_can_be_repeated(
    start: Path, tmp_path: Path, named: str, failing: str
) -> None:
    act, way = ACTS[named], WAYS[failing]
    first = 3 + 6 * list(WAYS.values()).index(way)
    for root in cut_off(act, start, tmp_path, way, first):
        assert_sound(root, start)
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            act(workspace)
        if act is purge:
            assert blob_id(SECRET) not in stored(root)
        if act is expire:
            assert stored(root) >= held(root)
            assert blob_id(text(3)) not in stored(root)
        segments = [path.name for path in (root / ".cas" / "segments").iterdir()]
        assert len(segments) == len({name[:8] for name in segments}), segments
        assert all(name.endswith(".seg") for name in segments)
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            write_pending(workspace, "again.txt", b"and on\n")
        assert check_store(str(root)).faults == ()


def test_interrupted_purge_changes_nothing_or_is_finished_by_the_next(start: Path, tmp_path: Path) -> None:
    begun = set()
    for root in cut_off(purge, start, tmp_path, WAYS["killed"], 0, min(EVERY, 5)):
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            gone = workspace.history.edit(9).expired is not None
            begun.add(gone)
            if not gone:
                assert workspace.history.blob(blob_id(SECRET)) == SECRET
            purge(workspace)
        assert blob_id(SECRET) not in stored(root)
    assert True in begun
