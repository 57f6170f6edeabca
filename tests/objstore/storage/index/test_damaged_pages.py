"""Damage the index: `cas fsck` reports it or no answer changes, and no record is wrong.

One bit is flipped, one page is an older copy of itself, or the file is cut. `make test` takes a sample. `make crash`
(`CAS_CRASH_STEPS=1`) tries 1,330 bits, every page that differed at an earlier moment, and two cuts of each page;
`CAS_INDEX_FLIPS=all` flips every bit that SQLite uses.
"""

import os
import random
import shutil
import sqlite3
import traceback
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import pytest

from objstore import Action, CallInfo, CasError, EditFilter, Origin, Status, TurnInfo, Unit, Workspace, check_store
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.model.basic_types import Seq
from objstore.model.records import MADE_NOTE
from objstore.storage.index import database
from objstore.worktree import dirty_files
from tests.golden.make_stores import stored_contents
from tests.support.crash_scenarios import Files, change, files, rejected, write
from tests.support.faulty_disk import WHOLE, UnsyncedDisk

SAMPLE: Final = 1_330 if WHOLE else 6
FLIPS: Final = os.environ.get("CAS_INDEX_FLIPS", "")
"""How many bits are flipped, if not the SAMPLE: a number, or `all`."""

SHARES: Final = 16 if WHOLE else 1
"""Tests that the bits are shared out to, so that they can run side by side."""

PAGES_SAMPLED: Final = 2
"""How many older pages, and how many cuts, `make test` tries; `make crash` tries all."""

PAGE: Final = database.PAGE
HEADER: Final = 100
"""Bytes with which the file begins, before its first page."""

INDEX: Final = Path(".cas", "index.sqlite")
AGENT: Final = CallInfo(tool="t", conversation="other")
RUN: Final = CallInfo(tool="t", conversation="run")
FIRST_TURN: Final = TurnInfo(session="run", began=1_000_000, prompt="Write a list")
SECOND_TURN: Final = TurnInfo(session="run", began=2_000_000, prompt="Make it longer")
FAR: Final = 1 << 52
"""Long after every record, in microseconds since 1970."""


OLDER: Final = "index.%d"
"""Names next to a workspace for the index as it was at earlier moments."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with records of every kind, and next to it its index as it was at earlier moments."""
    root = tmp_path_factory.mktemp("whole") / "root"
    (root / "d").mkdir(parents=True)
    for name in ("kept.txt", "d/kept.txt", "goes.txt"):
        (root / name).write_bytes(name.encode() + b"\n")
    patch = pytest.MonkeyPatch()
    patch.setattr(dirty_files, "_GRACE_NS", 0)  # so that what a status has seen is kept
    with Workspace.init(root, UnsyncedDisk()) as workspace:
        workspace.record_changes(AGENT)  # the first look
        for at in range(3):
            write(workspace, "a.txt", b"line %d\nx\n" % at)
            write(workspace, "d/e/b.txt", b"b %d\n" % at)
        keep_index(root)
        change(workspace, ("old.txt", b"moved\n"), ("gone.txt", b"gone\n"), ("d/c.txt", b"c\n"))
        with workspace.call(AGENT) as call:
            call.move("old.txt", "new/moved.txt")
            call.delete("gone.txt")
            call.move("goes.txt", "went.txt")
            call.commit()
        (root / "kept.txt").write_bytes(b"changed\n")
        workspace.record_changes(AGENT)
        keep_index(root)
        workspace.decide(Action.ACCEPT, [Unit(Seq(1), 0)])
        rejected(workspace, 6)
        (root / "found.txt").write_bytes(b"found\n")
        workspace.record_changes(CallInfo(tool="", origin=Origin.UNATTRIBUTED))
        keep_index(root)
        with workspace.call(replace(RUN, turn=FIRST_TURN)) as call:
            call.write("run.txt", b"run\n")
            call.commit()
        workspace.comments.add_to_units([Unit(Seq(1), 0)], "why?")
        workspace.comments.mark_sent([1], "run")
        workspace.review.undo()
        workspace.review.redo()
        keep_index(root)
        workspace.retention.pin([Seq(2)], who="somebody")
        workspace.snapshots.take(who="somebody")
        workspace.review.status()
    patch.undo()
    checkpoint(root)
    return root


def checkpoint(root: Path) -> None:
    """Move everything from SQLite's log to the index."""
    with closing(sqlite3.connect(root / INDEX)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def keep_index(root: Path) -> None:
    """Keep the index as it is now, next to the workspace."""
    checkpoint(root)
    shutil.copyfile(root / INDEX, root.parent / (OLDER % len(list(root.parent.glob(OLDER.replace("%d", "*"))))))


def flips(index: bytes) -> list[tuple[int, int]]:
    """Return the bits to flip, as byte and bit: of every page, and mostly of what SQLite uses of it."""
    used: list[int] = []
    free: list[int] = []
    for start in range(0, len(index), PAGE):
        head = start + (HEADER if start == 0 else 0)
        kind, cells, content = index[head], *(int.from_bytes(index[head + i : head + i + 2], "big") for i in (3, 5))
        pointers = head + (12 if kind in {2, 5} else 8) + 2 * cells
        used += [*range(start, pointers), *range(start + content, start + PAGE)]
        free += range(pointers, start + content)
    chance = random.Random("flips")
    if FLIPS == "all":
        chosen = [(at, bit) for at in used for bit in range(8)] + [(at, chance.randrange(8)) for at in free[::64]]
    else:
        count = int(FLIPS or SAMPLE)
        places = chance.choices(used, k=count - count // 16) + chance.choices(free, k=count // 16)
        chosen = [(at, chance.randrange(8)) for at in places]
    chance.shuffle(chosen)
    return chosen


def put(root: Path, index: bytes | None) -> None:
    """Give a workspace these bytes for an index (None: have it rebuilt), without SQLite's other files."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{root / INDEX}{suffix}").unlink(missing_ok=True)
    if index is not None:
        (root / INDEX).write_bytes(index)


def flipped(index: bytes, at: int, bit: int) -> bytes:
    """Return the index with one bit flipped."""
    return index[:at] + bytes([index[at] ^ 1 << bit]) + index[at + 1 :]


def answers(root: Path) -> dict[str, Any] | None:
    """Return what commands say of a workspace (None: that the index is damaged)."""
    try:
        with Workspace.open(root, UnsyncedDisk()) as workspace:
            found = stored_contents(workspace)
            found["lists"] = [
                [view.edit.seq for view in workspace.history.edits(wanted)]
                for wanted in (
                    EditFilter(status=Status.PENDING),
                    EditFilter(status=Status.REJECTED),
                    EditFilter(conversation="scene"),
                    EditFilter(conversation="other"),
                    EditFilter(path="a.txt"),
                    EditFilter(path="old.txt"),
                )
            ]
            found["status"] = workspace.review.status()
            found["changes"] = workspace.review.external_changes()
            found["blame"] = workspace.history.blame("a.txt")
            found["at"] = workspace.history.files_at(5)
            return found
    except CasError:
        return None


def delete(workspace: Workspace, path: str) -> None:
    with workspace.call(AGENT) as call:
        call.delete(path)
        call.commit()


def record_all(workspace: Workspace) -> None:
    """Change files behind the store's back, and have that recorded."""
    root = Path(workspace.files.tree.root)
    for name in ("d/kept.txt", "went.txt"):
        (root / name).unlink(missing_ok=True)
    (root / "d" / "c.txt").write_bytes(b"otherwise\n")
    (root / "d" / "new.txt").write_bytes(b"new\n")
    (root / "gone.txt").write_bytes(b"back again\n")
    workspace.record_changes(AGENT)


def take_turn(workspace: Workspace, turn: TurnInfo) -> None:
    """Record an edit of a turn."""
    with workspace.call(replace(RUN, turn=turn)) as call:
        call.write("run.txt", turn.prompt.encode())
        call.commit()


CALLS: Final = (
    lambda workspace: workspace.decide(Action.REJECT, [Unit(Seq(6), 1)]),  # as it is already
    lambda workspace: workspace.decide(Action.ACCEPT, [Unit(Seq(1), 0), Unit(Seq(2), 0), Unit(Seq(6), 1)]),
    lambda workspace: write(workspace, "a.txt", b"line 0\nx\n"),
    lambda workspace: write(workspace, "d/e/b.txt", b"b 7\n"),
    lambda workspace: write(workspace, "old.txt", b"moved\n"),
    lambda workspace: delete(workspace, "kept.txt"),
    lambda workspace: write(workspace, "new/moved.txt", b"moved on\n"),
    record_all,
    lambda workspace: write(workspace, "kept.txt", b"kept.txt\n"),
    lambda workspace: write(workspace, "a.txt", b"line 0\nx\nand on\n"),
    lambda workspace: workspace.decide(Action.REJECT, [Unit(Seq(3), 1)], cascade=True),
    lambda workspace: workspace.decide(Action.ACCEPT, [Unit(Seq(4), 1)]),
    lambda workspace: workspace.review.undo(),
    lambda workspace: workspace.review.undo(),
    lambda workspace: workspace.review.redo(),
    lambda workspace: take_turn(workspace, FIRST_TURN),
    lambda workspace: take_turn(workspace, SECOND_TURN),
    lambda workspace: workspace.comments.add_to_units([Unit(Seq(5), 1)], "as before?"),
    lambda workspace: workspace.comments.answer(1, "because", by_agent=True, conversation="run"),
    lambda workspace: workspace.comments.mark_sent([2], "run"),
    lambda workspace: workspace.comments.resolve([1]),
    lambda workspace: workspace.review.claim([Seq(14)]),
    lambda workspace: workspace.retention.pin([Seq(7)], who="somebody"),
    lambda workspace: workspace.snapshots.take(who="somebody"),
    lambda workspace: workspace.retention.expire(RetentionLimits(older_than=0), moment=FAR),
)
"""What each workspace is asked to record. One that is refused is asked again, so each records at most once."""


Log: TypeAlias = tuple[list[Any], Files, list[str]]
"""What is recorded, what the files are then, and the faults of the log."""

T = TypeVar("T")


def recorded(again: Path) -> Log:
    """Return what the CALLS record in a workspace, what its files are then, and what fsck says of the log."""
    refusals = 0
    for act in CALLS:
        while True:
            try:
                with Workspace.open(again, UnsyncedDisk()) as workspace:
                    act(workspace)
            except CasError:
                refusals += 1
                assert refusals < len(CALLS)
            else:
                break
    put(again, None)
    faults = [fault.what for fault in check_store(str(again)).faults]
    with Workspace.open(again, UnsyncedDisk()) as workspace:
        records = [_timeless(view.record) for view in workspace.history.records()]
    return records, files(again), faults


def outcome(act: Callable[[Path], T], whole: Path, index: bytes) -> T | str:
    """Return what `act` returns for a copy of the workspace with these bytes for an index, or what it raises."""
    again = whole.parent / "copy"  # always at one path, which answers name
    shutil.copytree(whole, again, symlinks=True)
    put(again, index)
    try:
        return act(again)
    except Exception as error:  # noqa: BLE001 - a campaign goes on, and reports which bit caused what
        return "".join(traceback.format_exception(error))
    finally:
        shutil.rmtree(again)


def difference(expected: tuple[Any, ...], found: object) -> str:
    """Return the first thing in which two outcomes of `recorded` differ."""
    if not isinstance(found, tuple):
        return str(found)
    pairs = zip_longest(chain.from_iterable(map(_listed, expected)), chain.from_iterable(map(_listed, found)))
    return next(f"expected {one}\n   found {other}" for one, other in pairs if one != other)


def _listed(part: Files | list[object]) -> list[object]:
    return [*part.items()] if isinstance(part, dict) else [*part]


def _timeless(record: object) -> dict[str, object]:
    """Return the values of a record, without times."""
    found = {name: getattr(record, name) for name in record.__slots__ if name != "time"}  # type: ignore[attr-defined]  # records have slots
    if "notes" in found:
        found["notes"] = {name: value for name, value in found["notes"].items() if name != MADE_NOTE}
    return found


@pytest.fixture(scope="module")
def sound(whole: Path) -> tuple[dict[str, Any], Log]:
    """Return what commands answer, and what they record, with the index as it should be."""
    index = (whole / INDEX).read_bytes()
    expected, expected_log = outcome(answers, whole, index), outcome(recorded, whole, index)
    assert isinstance(expected, dict), expected
    assert not isinstance(expected_log, str), expected_log
    assert expected_log[2] == []
    return expected, expected_log


def wrong(whole: Path, sound: tuple[dict[str, Any], Log], indexes: Iterable[tuple[str, bytes]]) -> str:
    """Return which of some damaged indexes change a record, or an answer without a fault that fsck finds; "": none."""
    found, (expected, expected_log) = list[str](), sound
    for where, damaged in indexes:
        log = outcome(recorded, whole, damaged)
        if log != expected_log:
            found.append(f"{where}: {difference(expected_log, log)}")
        is_same = outcome(answers, whole, damaged) == expected
        if not is_same and not outcome(lambda root: check_store(str(root)).faults, whole, damaged):
            found.append(f"{where}: fsck finds no fault, but the answers are wrong")
    return "\n".join(found)


@pytest.mark.parametrize("share", range(SHARES))
def test_a_flipped_bit_of_the_index_is_reported_or_harmless_and_enters_no_record(
    whole: Path, sound: tuple[dict[str, Any], Log], share: int
) -> None:
    index = (whole / INDEX).read_bytes()
    damaged = (
        (f"byte {at % PAGE} of page {at // PAGE + 1}, bit {bit}", flipped(index, at, bit))
        for at, bit in flips(index)[share::SHARES]
    )
    assert not wrong(whole, sound, damaged)


@pytest.mark.parametrize("share", range(SHARES))
def test_an_older_copy_of_a_page_of_the_index_is_reported_or_harmless_and_enters_no_record(
    whole: Path, sound: tuple[dict[str, Any], Log], share: int
) -> None:
    index = (whole / INDEX).read_bytes()
    damaged: dict[bytes, str] = {}
    for older in sorted(whole.parent.glob(OLDER.replace("%d", "*"))):
        former = older.read_bytes()
        for at in range(0, min(len(former), len(index)), PAGE):
            mixed = index[:at] + former[at : at + PAGE] + index[at + PAGE :]
            damaged.setdefault(mixed, f"page {at // PAGE + 1} as in {older.name}")
    assert damaged.pop(index)
    found = [(where, mixed) for mixed, where in damaged.items()]
    random.Random("pages").shuffle(found)
    assert not wrong(whole, sound, found[share::SHARES] if WHOLE else found[:PAGES_SAMPLED])


@pytest.mark.parametrize("share", range(SHARES))
def test_an_index_that_was_cut_is_reported_or_harmless_and_enters_no_record(
    whole: Path, sound: tuple[dict[str, Any], Log], share: int
) -> None:
    index = (whole / INDEX).read_bytes()
    sizes = [at + more for at in range(0, len(index), PAGE) for more in (0, PAGE // 3)]
    random.Random("cuts").shuffle(sizes)
    chosen = sizes[share::SHARES] if WHOLE else sizes[:PAGES_SAMPLED]
    assert not wrong(whole, sound, ((f"cut at {size}", index[:size]) for size in chosen))


@pytest.mark.parametrize("table", sorted(database.SUMS))
def test_text_that_is_not_utf8_in_a_row_is_damage_and_no_interruption(
    whole: Path, sound: tuple[dict[str, Any], Log], table: str
) -> None:
    """SQLite can't pass such text to the function of checksums; what fails then is no signal's doing."""
    index = whole.parent / "odd.sqlite"
    shutil.copyfile(whole / INDEX, index)
    with closing(sqlite3.connect(index)) as db, db:
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if not row[5]]
        column = random.Random(table).choice(columns[:-1] or columns)
        db.execute(f"UPDATE OR IGNORE {table} SET {column} = CAST(x'c3' AS TEXT)")  # noqa: S608 - the schema's names
    assert not wrong(whole, sound, [(f"{table}.{column}", index.read_bytes())])
