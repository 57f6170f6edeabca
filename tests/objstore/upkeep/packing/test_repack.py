"""Test that a repack saves bytes, changes nothing else, and lets other processes read and write meanwhile."""

import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, strategies as st

from objstore import (
    Action,
    BlobDamaged,
    BlobId,
    CallInfo,
    EditFilter,
    IndexDamaged,
    Repacked,
    StoreDamaged,
    StoreLocked,
    Unit,
    Workspace,
    blob_id,
    check_store,
    salvage_store,
)
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.disk.fs.disk import Disk, Pieces
from objstore.storage.index.refcounts import recount
from objstore.storage.log.blob_codec import MAX_DEPTH, Base, Encoding, encode_blob, parse_blob_header
from objstore.storage.log.frames import FrameKind
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.packing.compression_trials import CompressionTrials
from objstore.upkeep.packing.delta_candidates import PAIR
from objstore.upkeep.packing.repack import RepackPlan, plan_repack, repack
from objstore.upkeep.retention.compaction import compact, plan_compaction
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import CountdownDisk
from tests.support.index_tables import rebuilt_tables, records_of, tables

VERSIONS: Final = 45
"""More versions than a chain can have; then it continues from its beginning."""

LETTERS: Final = random.Random(7).choices(b"abcdefghijklmnopqrstuvwxyz", k=8 * 400)
WORDS: Final = [bytes(LETTERS[at : at + 8]) for at in range(0, len(LETTERS), 8)]
EVERYTHING: Final = RetentionLimits(older_than=0, max_size=None)


def module(seed: int, version: int = 0) -> bytes:
    """Return a text of 80 lines: those of one seed differ in a line for each version, those of others in some."""
    chance = random.Random(1)
    lines = [b" ".join(chance.choices(WORDS, k=8)) for _ in range(80)]
    own = random.Random(seed)
    for at in own.sample(range(80), 15):
        lines[at] = b" ".join(own.choices(WORDS, k=8))
    for number in range(1, version + 1):
        lines[number * 7 % 80] = b"version %d of %d" % (number, seed)
    return b"\n".join(lines) + b"\n"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with a file of many versions, others that resemble it, and a second segment."""
    root = tmp_path_factory.mktemp("written")
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        for version in range(VERSIONS):
            write(workspace, "src/a.py", module(1, version))
        for seed in range(2, 6):
            write(workspace, f"src/{seed}.py", module(seed))
        (root / "noise").write_bytes(random.Random(3).randbytes(3_000))
        workspace.snapshots.take(who="somebody")
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        journal.seal()
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        for version in range(1, 4):
            write(workspace, "src/2.py", module(2, version))
        write(workspace, "src/a.py", b"")
        write(workspace, "lib/a.py", module(1, VERSIONS))
    return root


@pytest.fixture
def root(written: Path, tmp_path: Path) -> Path:
    """Return a copy of it."""
    return shutil.copytree(written, tmp_path / "workspace")


def repacked(root: Path, disk: Disk | None = None) -> Repacked:
    with closing(Journal(str(root), disk or CountdownDisk(None))) as journal:
        return repack(journal)


def segment_bytes(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((root / ".cas" / "segments").iterdir())}


def states(root: Path) -> dict[BlobId, bytes]:
    """Return every blob that records mention, with its bytes."""
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        return {
            name: workspace.history.blob(name)
            for name in recount(records_of(root / ".cas"), lambda _: None, lambda _: ())
        }


def depths(root: Path) -> dict[BlobId, tuple[int, int]]:
    """Return for each blob the depth that its frame states, and its real depth."""
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.reading() as store:
        headers = {}
        for name, _ in store.index.blobs.all_refs():
            found = store.blob_place(BlobId(name))
            assert found is not None
            headers[name] = parse_blob_header(store.log.read(found.place).payload)
            assert headers[name].depth == found.depth
        stated = {}
        for name, header in headers.items():
            steps, base = 0, header.base
            while base is not None:
                steps, base = steps + 1, headers[base].base
            stated[BlobId(name)] = header.depth, steps
        return stated


def assert_sound(root: Path) -> None:
    assert check_store(str(root)).faults == ()
    assert tables(root / ".cas" / "index.sqlite") == rebuilt_tables(root / ".cas")
    assert all(steps <= stated <= MAX_DEPTH for stated, steps in depths(root).values())


# ---- what changes, and what does not


def test_the_store_becomes_smaller_and_every_state_stays_byte_for_byte(root: Path) -> None:
    before, records = states(root), records_of(root / ".cas")
    done = repacked(root)
    assert (done.segments, done.is_done, done.blobs) == (2, True, len(depths(root)))
    assert done.bytes_after < 0.9 * done.bytes_before
    assert done.bytes_after == sum(map(len, segment_bytes(root).values()))
    assert states(root) == before
    assert all(blob_id(content) == name for name, content in before.items())
    assert records_of(root / ".cas") == records
    assert_sound(root)


def test_a_second_repack_writes_nothing(root: Path) -> None:
    repacked(root)
    before = segment_bytes(root)
    again = repacked(root)
    assert (again.segments, again.bytes_before, again.bytes_after) == (0, again.bytes_after, again.bytes_before)
    assert segment_bytes(root) == before


def test_a_dry_run_reports_what_a_repack_then_does_and_changes_nothing(root: Path) -> None:
    before = segment_bytes(root)
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plan = plan_repack(journal)
    assert segment_bytes(root) == before
    done = repacked(root)
    assert (plan.blobs, plan.bytes_before) == (done.blobs, sum(map(len, before.values())))
    # When it encodes the blobs of a segment, it does not know the final depth of those in the segment before.
    assert plan.bytes_after == pytest.approx(done.bytes_after, rel=0.05)


def test_a_dry_run_reads_up_to_the_last_complete_group(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        plan = plan_repack(journal)
    last = max((root / ".cas" / "segments").glob("*.seg"))
    with last.open("ab") as segment:
        segment.write(last.read_bytes()[64:300])  # what a writer leaves that dies in the middle of a group
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        again = plan_repack(journal)
    assert again == RepackPlan(blobs=plan.blobs, bytes_before=plan.bytes_before + 236, bytes_after=plan.bytes_after)


def test_a_new_file_is_a_delta_against_a_similar_one(root: Path) -> None:
    assert depths(root)[blob_id(module(5))] == (0, 0)
    repacked(root)
    stated, steps = depths(root)[blob_id(module(5))]
    assert stated == steps >= 1


def test_a_raw_delta_of_an_edit_is_compressed_by_a_repack(tmp_path: Path) -> None:
    lines = [b"line %d of a text that goes on\n" % number for number in range(90)]
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "a", b"".join(lines))
        lines[40], lines[48] = b"another\n", b"and another\n"
        write(workspace, "a", b"".join(lines))
    name = blob_id(b"".join(lines))

    def frame() -> tuple[Encoding, int]:
        with closing(Journal(str(tmp_path), CountdownDisk(None))) as journal, journal.reading() as store:
            found = store.blob_place(name)
            assert found is not None
            payload = store.log.read(found.place).payload
            return parse_blob_header(payload).encoding, len(payload)

    encoding, size = frame()
    assert encoding is Encoding.DELTA_RAW
    repacked(tmp_path)
    encoding, size_after = frame()
    assert encoding is Encoding.DELTA_ZSTD
    assert size_after < size - 150


def test_a_chain_at_the_maximal_depth_continues_from_its_beginning(root: Path) -> None:
    def keyframes() -> int:
        found = depths(root)
        return sum(found[blob_id(module(1, version))] == (0, 0) for version in range(VERSIONS))

    assert keyframes() == 2
    repacked(root)
    assert keyframes() <= 1


def test_the_depth_of_bases_of_outside_deltas_does_not_grow(root: Path) -> None:
    name = blob_id(module(2))  # a keyframe, and the next segment goes on with it
    assert depths(root)[name] == (0, 0)
    repacked(root)
    assert depths(root)[name] == (0, 0)


def test_gc_and_repack_follow_one_another_in_any_order(root: Path) -> None:
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        for turn in range(2):
            left = [view for view in workspace.history.edits() if view.expired is None]
            workspace.decide(Action.ACCEPT, [Unit(view.seq, n) for view in left for n in range(len(view.units))])
            if not turn:
                assert workspace.retention.repack().is_done
            workspace.retention.collect(EVERYTHING, thorough=True)
            assert_sound(root)
            assert workspace.retention.repack().is_done
            for version in range(5):
                write(workspace, "src/3.py", module(3, 10 * turn + version + 1))
            assert_sound(root)
            assert workspace.history.blob(blob_id(module(1, VERSIONS))) == module(1, VERSIONS)


def test_a_repacked_store_can_be_salvaged_completely(root: Path, tmp_path: Path) -> None:
    before = states(root)
    repacked(root)
    assert salvage_store(str(root), str(tmp_path / "new")).is_whole
    assert states(tmp_path / "new") == before


def test_edits_continue_after_a_repack_and_no_chain_becomes_too_long(root: Path) -> None:
    for turn in range(3):
        repacked(root)
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            for version in range(20):
                write(workspace, "src/4.py", module(4, 20 * turn + version + 1))
    assert_sound(root)


# ---- which base


@given(st.text(alphabet="abz_19 .\n(\u00e9", max_size=60))
def test_pairs_are_found_where_the_plain_pattern_finds_them(text: str) -> None:
    content = text.encode("latin-1")
    assert PAIR.findall(content) == re.findall(rb"\w{5,}\W+\w{3,}", content)


def test_a_trial_prefers_the_origin_of_a_blob_however_far_back_it_is() -> None:
    texts = [b"".join(b"%d %d\n" % (n, n * seed % 9973) for n in range(30_000)) for seed in (7919, 7907, 7901)]
    bases = [Base(id=blob_id(text), content=text, depth=0) for text in texts]
    made = texts[1][:60_000] + b"and more\n"
    trials = CompressionTrials()
    sizes = [trials.against(made, base) for base in bases]
    assert 10 * sizes[1] < min(sizes[0], sizes[2], trials.alone(made))


def test_a_trial_does_not_depend_on_earlier_trials() -> None:
    bases = [Base(id=blob_id(module(n) * n), content=module(n) * n, depth=0) for n in range(1, 60)]
    trials = CompressionTrials()
    chance = random.Random(3)
    for base in chance.choices(bases, k=300):
        content = module(chance.randrange(60), 3)
        assert trials.against(content, base) == CompressionTrials().against(content, base)


# ---- while others are at it


class Meanwhile(Disk):
    """A disk that calls a function whenever a segment has been rewritten, before the rename."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act: Final = act

    def create(self, path: str, content: Pieces, mode: int = 0o600) -> None:
        super().create(path, content, mode)
        if path.endswith(".seg.new"):
            self._act()


def test_concurrent_writes_never_make_a_chain_longer_than_its_depth(root: Path) -> None:
    versions = iter(range(1, 1000))
    before = states(root)

    def act() -> None:
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            for name in ("src/3.py", "src/2.py", "lib/a.py"):
                write(workspace, name, module(3, next(versions)))

    done = repacked(root, Meanwhile(act))
    # The first attempt met a file whose state would get deeper; the next one left the depth of all files' states
    # unchanged.
    assert done.is_done
    assert done.segments
    assert next(versions) > 3 * 2
    assert before.items() <= states(root).items()
    assert_sound(root)


def test_a_segment_that_other_writers_keep_from_repacking_is_reported(root: Path) -> None:
    older = iter(range(VERSIONS - 2, MAX_DEPTH + 1, -1))

    def act() -> None:
        # A state that no file has: the second attempt does not expect it.
        with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing() as batch:
            version = next(older)
            batch.blob(module(1, version) + b"and more\n", blob_id(module(1, version)))
            journal.commit(batch, ())

    before = segment_bytes(root)["00000001.seg"]
    assert not repacked(root, Meanwhile(act)).is_done
    assert segment_bytes(root)["00000001.seg"] == before
    assert_sound(root)
    assert repacked(root).is_done
    assert_sound(root)


def test_only_one_repack_or_compaction_runs_at_a_time(root: Path) -> None:
    before = segment_bytes(root)
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        with journal.compacting(), pytest.raises(StoreLocked):
            repacked(root)

        def act() -> None:
            with pytest.raises(StoreLocked):
                repacked(root)
            with pytest.raises(StoreLocked):
                compact(journal, plan_compaction(journal, all_segments=True))

        assert segment_bytes(root) == before
        assert repacked(root, Meanwhile(act)).is_done


WRITER: Final = """
import sys
from objstore import CallInfo, EditFilter, Workspace
from tests.objstore.upkeep.packing.test_repack import module
with Workspace.open(sys.argv[1]) as workspace:
    for number in range(25):
        with workspace.call(CallInfo(tool="t", conversation=sys.argv[2])) as call:
            call.write(f"{sys.argv[2]}.py", module(9, number))
            call.commit()
        for edit in workspace.history.edits(EditFilter(conversation=sys.argv[2]))[-3:]:
            assert edit.edit.after is not None
            workspace.history.blob(edit.edit.after.blob)
"""


def test_writers_and_readers_go_on_meanwhile(root: Path) -> None:
    words = [sys.executable, "-c", WRITER, str(root)]
    with subprocess.Popen([*words, "x"], cwd=Path(__file__).parents[4]) as writer:
        written = 0
        while writer.poll() is None:
            written += repacked(root, Disk()).segments
    assert (writer.returncode, written > 0) == (0, True)
    with Workspace.open(root) as workspace:
        assert len(workspace.history.edits(EditFilter(conversation="x"))) == 25
    assert_sound(root)


# ---- what is not as it should be


@pytest.fixture
def forged(root: Path) -> Path:
    """Return a workspace with a blob in an intact frame whose bytes don't hash to its id."""
    with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
        _, payload = encode_blob(b"false\n" * 30, name=blob_id(b"true"))
        journal.store.append([(FrameKind.BLOB, payload)])
    return root


def test_a_blob_with_wrong_bytes_stops_a_repack_and_nothing_is_lost(forged: Path) -> None:
    before, records = states(forged), records_of(forged / ".cas")
    last = segment_bytes(forged)["00000002.seg"]
    with closing(Journal(str(forged), CountdownDisk(None))) as journal, pytest.raises(BlobDamaged) as raised:
        plan_repack(journal)
    assert raised.value.blob == blob_id(b"true")
    with pytest.raises(BlobDamaged) as raised:
        repacked(forged)
    assert raised.value.blob == blob_id(b"true")
    # The segment before was sound, and is done; in its own, the blob stays for `cas fsck` to tell.
    assert list(segment_bytes(forged)) == ["00000001.1.seg", "00000002.seg", "00000003.seg"]
    assert segment_bytes(forged)["00000002.seg"] == last
    assert states(forged) == before
    assert records_of(forged / ".cas") == records


def flips(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield copies of the content with one flipped bit, anywhere after a segment's header."""
    chance = random.Random(5)
    for at in sorted(chance.sample(range(64, len(content)), 25)):
        yield at, content[:at] + bytes([content[at] ^ (1 << chance.randrange(8))]) + content[at + 1 :]


def test_a_flipped_bit_stops_it_and_the_damaged_file_is_left_for_salvage(root: Path) -> None:
    with closing(Journal(str(root), CountdownDisk(None))):
        pass  # the index knows all that there is
    path = root / ".cas" / "segments" / "00000001.seg"
    content = path.read_bytes()
    for at, flipped in flips(content):
        path.write_bytes(flipped)
        with closing(Journal(str(root), CountdownDisk(None))) as journal, pytest.raises(StoreDamaged):
            repack(journal)
        assert path.read_bytes() == flipped, at
        assert not list(path.parent.glob("*.new*")), at


@pytest.mark.parametrize("damage", ["DELETE FROM blobs", "UPDATE blobs SET offset = offset + 1"])
def test_a_blob_that_is_missing_from_the_index_stops_a_repack_and_nothing_is_lost(root: Path, damage: str) -> None:
    before, files = states(root), segment_bytes(root)
    with closing(sqlite3.connect(root / ".cas" / "index.sqlite")) as db, db:
        tip = "(SELECT after FROM edits WHERE seq = 3)"
        assert db.execute(f"{damage} WHERE id = {tip}").rowcount == 1
    with closing(Journal(str(root), CountdownDisk(None))) as journal:
        with pytest.raises(IndexDamaged):
            plan_repack(journal)
        with pytest.raises(IndexDamaged):
            repack(journal)
    assert segment_bytes(root).items() >= files.items()
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        assert workspace.retention.repack().is_done  # after the index was rebuilt
    assert states(root) == before
    assert_sound(root)


def test_a_store_without_history_has_nothing_to_repack(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        assert workspace.retention.plan_repack().blobs == 0
        done = workspace.retention.repack()
        assert (done.segments, done.blobs, done.bytes_after, done.is_done) == (0, 0, done.bytes_before, True)
        with workspace.call(CallInfo(tool="t", conversation="c")) as call:
            call.write("a", b"a\n")
            call.commit()
        assert workspace.retention.repack().is_done
