"""Check that queries have the same answers at every moment while the index follows a compaction."""

import random
import shutil
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Final

import pytest
from blake3 import blake3
from hypothesis import given, settings, strategies as st

from objstore import Action, Unit, Workspace, blob_id, check_store
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.disk.fs.disk import Disk
from objstore.model.ids import HASH_SIZE, BlobId
from objstore.model.ranges import Range
from objstore.storage.index.relocate import relocation_batches
from objstore.storage.log.frame_moves import FrameMoves
from objstore.storage.log.segment_files import Place
from objstore.storage.log.segments import Log
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.retention.compaction import CompactionResult, compact, plan_compaction
from objstore.upkeep.retention.expiry import plan_expiry
from objstore.upkeep.retention.purge import PurgeTarget, plan_purge
from tests.objstore.upkeep.retention.test_compaction import EDITS, expire, held, root, start, text
from tests.support.crash_scenarios import rejected, write
from tests.support.faulty_disk import CountdownDisk, PowerCut, power_cut
from tests.support.index_tables import rebuilt_tables, records_of, tables

__all__ = ["root", "start"]

GONE: Final = text(3)


@pytest.fixture
def relocated(root: Path, tmp_path: Path) -> Path:
    """Return a workspace whose first segment was rewritten by a process that died before the index was updated."""
    expire(root, *range(21, 26))
    _move(root, tmp_path)
    return root


def _move(root: Path, tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    shutil.copytree(root, counted)
    disk = CountdownDisk(None)
    _sweep(counted, disk)
    named = max(step for step, operation in enumerate(disk.done) if operation == "replace")
    removed = disk.done.index("remove_store_file", named)
    with pytest.raises(PowerCut):
        _sweep(root, CountdownDisk(removed, power_cut))
    with closing(Journal(str(root), Disk())) as journal:
        assert journal.store.index.places.moving()


def _sweep(root: Path, disk: Disk) -> None:
    with closing(Journal(str(root), disk)) as journal:
        compact(journal, plan_compaction(journal, all_segments=True))


def answers(root: Path) -> list[object]:
    """Return what a store reports about its history and blobs."""
    with closing(Journal(str(root), Disk())) as journal, journal.reading() as store:
        documents = [tip.document for tip in store.index.documents.tips()]
        return [
            [[store.record(place) for place in store.index.history.of(document)] for document in documents],
            [[row[1] for row in store.index.history.recorded(document)] for document in documents],
            [store.record(place)[1] for place in store.index.history.newest(20)],
            [store.record(place)[1] for _, _, place in store.index.decisions.aged()],
            {name: store.blob(name) for name in sorted(held(root))},
            [name for name in map(blob_id, map(text, range(EDITS))) if store.has(name)],
            store.index.blobs.between(bytes(HASH_SIZE), b"\xff" * HASH_SIZE, -1),
            store.index.blobs.between(bytes(HASH_SIZE), b"\xff" * HASH_SIZE, 3),
            [store.index.blobs.count(), store.index.blobs.unheld()],
        ]


# ---- the list of where frames went


@given(st.lists(st.tuples(st.integers(1, 1 << 30), st.integers(1, 1 << 30), st.booleans())))
def test_encoded_frame_moves_are_decoded(steps: list[tuple[int, int, bool]]) -> None:
    moves, old, new = FrameMoves(), 0, 0
    expected = {}
    for more_old, more_new, is_reencoded in steps:
        old, new = old + more_old, new + more_new
        moves.add(old, new)
        expected[old] = new
        if is_reencoded:
            moves.mark_reencoded(new)
    found = FrameMoves.decode(moves.encode())
    assert found is not None
    assert {place: found.get(place) for place in expected} == expected
    assert list(found.reencoded) == list(moves.reencoded)
    assert found.get(old + 1) is None
    assert found.at_or_behind(0) == next(iter(expected.values()), None)
    assert found.at_or_behind(old + 1) is None


@given(st.lists(st.integers(1, 30_000)), st.lists(st.integers(0, 1 << 20)))
def test_quick_lookup_of_frame_moves_equals_single_lookups(sizes: list[int], others: list[int]) -> None:
    moves = FrameMoves()
    positions = list(accumulate(sizes, initial=64))
    moves.extend(positions, range(1000, 1000 + len(positions)))
    get = moves.quick()
    assert [get(position) for position in positions] == list(range(1000, 1000 + len(positions)))
    for position in (*positions, *others):
        for asked in (position - 1, position, position + 1, position | 8191, (position | 8191) + 1):
            assert get(asked) == moves.get(asked)
    assert FrameMoves().quick()(0) is None


@settings(max_examples=40)
@given(st.data())
def test_damaged_frame_moves_are_refused(data: st.DataObject) -> None:
    moves = FrameMoves()
    for at in range(3):
        moves.add(64 + 100 * at, 64 + 50 * at)
    encoded = bytearray(moves.encode())
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert FrameMoves.decode(bytes(encoded)) is None
    assert FrameMoves.decode(moves.encode()[: data.draw(st.integers(0, len(encoded) - 1))]) is None


def test_frame_moves_with_a_wrong_count_are_refused() -> None:
    magic, rest = b"casmove1", FrameMoves().encode()[40:]
    assert FrameMoves.decode(magic + blake3(rest).digest() + rest) is not None
    more = rest + bytes(8)
    assert FrameMoves.decode(magic + blake3(more).digest() + more) is None


# ---- while the rows follow


def test_reader_continues_after_frame_moves_are_removed(root: Path, tmp_path: Path) -> None:
    expire(root, *range(21, 26))
    with closing(Journal(str(root), Disk())) as journal:
        places = list(journal.store.index.history.newest(EDITS))
        expected = [journal.store.log.read(place).payload for place in places]
    _move(root, tmp_path)
    with closing(Log(str(root / ".cas" / "segments"), Disk())) as log, closing(Journal(str(root), Disk())) as other:
        with other.writing():
            pass  # a writer relocates the rows, after which the frame moves are no longer needed
        (root / ".cas" / "segments" / "00000001.seg").unlink()
        assert not list((root / ".cas" / "segments").glob("*.moves"))
        assert [log.read(place).payload for place in places] == expected


def test_answers_stay_the_same_during_a_relocation(relocated: Path) -> None:
    before = answers(relocated)
    records = records_of(relocated / ".cas")
    with closing(Journal(str(relocated), Disk())) as journal, journal.compacting():
        index, log = journal.store.index, journal.store.log
        with index.relocating():
            for changes in relocation_batches(index, log, lambda: 1):
                with index.changing() as db:
                    for statement, rows in changes:
                        db.executemany(statement, rows)
                assert answers(relocated) == before
        journal.finish_moves()
    assert answers(relocated) == before
    assert records_of(relocated / ".cas") == records
    assert tables(relocated / ".cas" / "index.sqlite") == rebuilt_tables(relocated / ".cas")


LINES: Final = [b"line %d\n" % n for n in range(20)]
LATE: Final = b"".join([b"changed\n", *LINES[1:]])


@pytest.fixture
def with_late_decision(tmp_path: Path) -> Path:
    """Return a workspace with unheld bytes, and after them an edit rejected after two later edits of its file."""
    root = tmp_path / "bound"
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        for version in range(3):
            write(workspace, "junk", random.Random(version).randbytes(20_000))
        write(workspace, "f.txt", b"".join(LINES))
        write(workspace, "f.txt", LATE)
        write(workspace, "f.txt", LATE + b"more\n")
        write(workspace, "f.txt", LATE + b"more\nand more\n")
        rejected(workspace, 5)
        others = [view for view in workspace.history.edits() if view.seq != 5]
        workspace.decide(Action.ACCEPT, [Unit(view.seq, hunk) for view in others for hunk in range(len(view.units))])
    expire(root, 1, 2, 3)
    return root


def purged_and_expired(root: Path) -> list[object]:
    """Return the edits purged with a state, and the edits that expire by age after each edit and decision."""
    with closing(Journal(str(root), Disk())) as journal, journal.reading() as store:
        times = sorted(row[1] for row in store.index.decisions.aged())
        times += sorted(row[2] for row in store.index.edits.aged())
        everything = RetentionLimits(older_than=0, max_size=None)
        aged = [plan_expiry(journal, everything, moment=time + 1).batches for time in times]
        return [plan_purge(journal, PurgeTarget(blobs=frozenset([blob_id(LATE)]))).edits, aged]


def test_purge_and_expiry_stay_the_same_during_a_relocation(with_late_decision: Path, tmp_path: Path) -> None:
    before = purged_and_expired(with_late_decision)
    assert before[0] == (Range(4, 7),)
    _move(with_late_decision, tmp_path)
    assert purged_and_expired(with_late_decision) == before
    with closing(Journal(str(with_late_decision), Disk())) as journal, journal.compacting():
        with journal.store.index.relocating():
            for changes in relocation_batches(journal.store.index, journal.store.log, lambda: 1):
                with journal.store.index.changing() as db:
                    for statement, rows in changes:
                        db.executemany(statement, rows)
                assert purged_and_expired(with_late_decision) == before
        journal.finish_moves()
    assert purged_and_expired(with_late_decision) == before


def test_sql_function_moved_agrees_with_the_log(relocated: Path) -> None:
    with closing(Journal(str(relocated), Disk())) as journal:
        index, log = journal.store.index, journal.store.log
        now = log.files.offsets_now(index.places.moving())
        places = [place for name, _ in index.blobs.all_refs() for place in rows_by_place(journal, name)]
        places += index.history.newest(EDITS)
        places += [Place(place.segment + 1, place.offset) for place in places]  # of a segment that was not rewritten
        expected = [(place, now(*place)) for place in places]
        found = {place: log.files.newest(place) for place in places}
    assert {place: None if new is None else new.offset for place, new in found.items()} == dict(expected)
    assert None in found.values()
    assert any(new not in {None, place} for place, new in found.items())


def rows_by_place(journal: Journal, name: bytes) -> list[Place]:
    """Return where the index has a blob, or had it before it was last relocated."""
    with journal.store.index.changing() as db:
        return [
            Place(*row) for row in db.execute("SELECT segment, offset FROM blobs WHERE id = ? AND segment", (name,))
        ]


def test_removed_blob_that_counts_as_held_is_missing_and_keeps_its_count(relocated: Path) -> None:
    with closing(Journal(str(relocated), Disk())) as journal, journal.compacting():
        index, log = journal.store.index, journal.store.log
        stored = [BlobId(name) for name, _ in index.blobs.all_refs()]
        gone = next(
            name for name in stored if any(log.files.newest(place) is None for place in rows_by_place(journal, name))
        )
        with index.changing() as db:
            db.execute("UPDATE blobs SET refs = 1 WHERE id = ?", (gone,))
        journal.finish_moves()
        assert (index.blobs.place(gone), index.blobs.refs(gone)) == (None, 1)
        assert index.blobs.count() == sum(index.blobs.place(name) is not None for name in stored)


def test_next_writer_relocates_the_index_after_an_interrupted_compaction(relocated: Path) -> None:
    with Workspace.open(relocated) as workspace:
        write(workspace, "c.txt", b"next\n")
    assert tables(relocated / ".cas" / "index.sqlite") == rebuilt_tables(relocated / ".cas")
    assert not list((relocated / ".cas" / "segments").glob("*.moves"))


@pytest.mark.parametrize("follow", [lambda journal: journal.finish_moves(), lambda _: None])
def test_a_removed_blob_is_stored_again_before_its_row_is_relocated(
    relocated: Path, follow: Callable[[Journal], None]
) -> None:
    with closing(Journal(str(relocated), Disk())) as journal:
        with journal.compacting(), Workspace.open(relocated) as workspace:
            # Another process sweeps, so the writer leaves the rows alone.
            write(workspace, "again.txt", GONE)
            assert workspace.history.blob(blob_id(GONE)) == GONE
            follow(journal)
            assert workspace.history.blob(blob_id(GONE)) == GONE
        with journal.compacting():
            journal.finish_moves()
    with Workspace.open(relocated) as workspace:
        assert workspace.history.blob(blob_id(GONE)) == GONE
    assert tables(relocated / ".cas" / "index.sqlite") == rebuilt_tables(relocated / ".cas")


def test_fsck_before_the_relocation_finds_no_fault_and_reports_what_it_skipped(relocated: Path) -> None:
    report = check_store(str(relocated))
    assert report.faults == ()
    assert any("not compared" in note.what for note in report.notes)


def test_compaction_is_planned_from_a_relocated_index(relocated: Path) -> None:
    with closing(Journal(str(relocated), Disk())) as journal:
        plan = plan_compaction(journal, all_segments=True)
        assert not journal.store.index.places.moving()
        assert not plan.dropped
        assert compact(journal, plan).is_done


def test_open_process_relocates_the_index_for_a_dead_one(root: Path, tmp_path: Path) -> None:
    expire(root, *range(21, 26))
    with closing(Journal(str(root), Disk())) as journal:
        _move(root, tmp_path)
        before = answers(root)
        plan_compaction(journal)
        assert not journal.store.index.places.moving()
    assert answers(root) == before
    assert tables(root / ".cas" / "index.sqlite") == rebuilt_tables(root / ".cas")
    assert not list((root / ".cas" / "segments").glob("*.moves"))
    _sweep(root, Disk())
    assert answers(root) == before


def test_a_compaction_overtaken_by_another_is_planned_again(root: Path) -> None:
    with closing(Journal(str(root), Disk())) as journal:
        plan = plan_compaction(journal)
        _sweep(root, Disk())
        assert compact(journal, plan) == CompactionResult(segments=0, freed=0, is_done=False)
        assert compact(journal, plan_compaction(journal)).is_done
    assert tables(root / ".cas" / "index.sqlite") == rebuilt_tables(root / ".cas")


def test_compaction_relocates_the_index_for_one_interrupted_since_the_plan(root: Path, tmp_path: Path) -> None:
    digest = sha256(text(EDITS - 1)).digest()
    with closing(Journal(str(root), Disk())) as journal:
        assert journal.store.sha256(blob_id(text(EDITS - 1))) == digest
        plan = plan_compaction(journal)
        _move(root, tmp_path)
        assert not compact(journal, plan).is_done
        assert not journal.store.index.places.moving()
        # It was updated, not rebuilt.
        assert journal.store.index.blobs.sha256(blob_id(text(EDITS - 1))) == digest
    assert tables(root / ".cas" / "index.sqlite") == rebuilt_tables(root / ".cas")


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"casmove1")])
def test_the_index_is_rebuilt_if_the_frame_moves_are_missing(relocated: Path, harm: Callable[[Path], object]) -> None:
    before = answers(relocated)
    for path in (relocated / ".cas" / "segments").glob("*.moves"):
        harm(path)
    assert answers(relocated) == before
    with Workspace.open(relocated) as workspace:
        write(workspace, "c.txt", b"next\n")
    assert tables(relocated / ".cas" / "index.sqlite") == rebuilt_tables(relocated / ".cas")


def test_places_are_translated_only_from_the_previous_generation(relocated: Path) -> None:
    with closing(Journal(str(relocated), Disk())) as journal:
        log = journal.store.log
        segment = journal.store.index.places.moving()[0]
        moves = log.files.moves(segment)
        assert moves is not None
        places = journal.store.index.history.of(journal.store.index.documents.tips()[0].document)
        assert places == [log.files.newest(place) for place in places]
        assert [log.read(place).payload for place in places]
