"""Test that one flipped bit anywhere in `.cas` gives an error or no harm, but no wrong data and no changed file."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from objstore import Action, CasError, Unit, Workspace, check_store
from objstore.model.basic_types import Seq
from objstore.storage.index.database import COMPARED, PAGE
from tests.golden.make_stores import stored_contents
from tests.support.crash_scenarios import Files, files, rejected, write
from tests.support.faulty_disk import WHOLE

FLIPS: Final = int(os.environ.get("CAS_FLIPS", "12" if WHOLE else "2"))
"""The number of bytes tried in each file that is too long to try all; `make crash` tries more than `make test`."""

SHORT: Final = 64 if WHOLE else 4
EDITS: Final = 70
"""Of one file: more than are replayed without its weave being kept."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], Files]:
    """Return a workspace with every file that `.cas` may have, its answers, and the user's files."""
    root = tmp_path_factory.mktemp("whole")
    with Workspace.init(root) as workspace:
        for at in range(EDITS):
            write(workspace, "a.txt", b"".join(b"line %d %d\n" % (i, at * (i == at % 40)) for i in range(50)))
        write(workspace, "b.txt", b"b\n")
        rejected(workspace, EDITS)
        workspace.history.cache_documents()
        workspace.snapshots.take(who="somebody")
    with Workspace.open(root) as workspace:
        return root, stored_contents(workspace), files(root)


WRITES: Final[list[Callable[[Workspace], object]]] = [
    lambda workspace: write(workspace, "a.txt", b"new\nx\n"),
    lambda workspace: write(workspace, "d/b.txt", b"more\n"),
    lambda workspace: workspace.decide(Action.REJECT, [Unit(Seq(3), 1)], cascade=True),
    lambda workspace: workspace.snapshots.take(who="somebody"),
    lambda workspace: workspace.retention.pin([Seq(3)], who="somebody"),
    lambda workspace: workspace.review.undo(),
]

IN_THE_LOG: Final = ("records",)
"""The answers that come from the log itself and not from the index."""

KINDS: Final = ("segments/*", "applied", "cache/weave-*", "cache/looks*", "index.sqlite")


@pytest.mark.parametrize("kind", [*KINDS, "*"])
def test_a_flipped_bit_is_an_error_or_does_no_harm(
    whole: tuple[Path, dict[str, Any], Files], kind: str, tmp_path: Path
) -> None:
    root, expected, expected_files = whole
    for path in sorted((root / ".cas").glob(kind)):
        size = path.stat().st_size if path.is_file() else 0
        if kind == "*" and any(path.match(name) for name in KINDS):
            continue
        chance = random.Random(path.name)
        for offset in range(size) if size <= SHORT else chance.sample(range(size), FLIPS):
            copy = tmp_path / "copy"
            shutil.copytree(root, copy)
            spoilt = bytearray(path.read_bytes())
            spoilt[offset] ^= 1 << chance.randrange(8)
            (copy / path.relative_to(root)).write_bytes(spoilt)
            found = _shown_or_refused(copy)
            if found is not None and kind == "index.sqlite":
                # The index has no sums of its own: what it alone holds is true only as far as fsck says so.
                assert [found[name] for name in IN_THE_LOG] == [expected[name] for name in IN_THE_LOG]
                found = expected if check_store(str(copy)).faults else found
            assert found in (expected, None), f"{path.name}, byte {offset}"
            assert files(copy) == expected_files, f"{path.name}, byte {offset}"
            shutil.rmtree(copy)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with some of each record, whose index is all in its file."""
    root = tmp_path_factory.mktemp("small")
    with Workspace.init(root) as workspace:
        for at in range(4):
            write(workspace, "a.txt", b"line %d\nx\n" % at)
            write(workspace, "d/b.txt", b"b %d\n" % at)
        workspace.snapshots.take(who="somebody")
        workspace.decide(Action.ACCEPT, [Unit(Seq(1), 0)])
        workspace.decide(Action.REJECT, [Unit(Seq(7), 1)])
        workspace.retention.pin([Seq(2)], who="somebody")
    with closing(sqlite3.connect(root / ".cas" / "index.sqlite")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return root


TABLES: Final = tuple(COMPARED)


@pytest.mark.parametrize("table", TABLES)
def test_records_written_with_a_flipped_bit_in_the_index_can_be_read(small: Path, table: str, tmp_path: Path) -> None:
    """The index is derived and may be wrong, but a wrong record in the log would stay."""
    whole = (small / ".cas" / "index.sqlite").read_bytes()
    with closing(sqlite3.connect(small / ".cas" / "index.sqlite")) as db:
        page = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    start = (page - 1) * PAGE
    cells = start + int.from_bytes(whole[start + 5 : start + 7], "big")
    chance = random.Random(table)
    for _ in range(FLIPS if cells < start + PAGE else 0):
        copy = tmp_path / "copy"
        shutil.copytree(small, copy)
        spoilt = bytearray(whole)
        at = chance.randrange(cells, start + PAGE)
        spoilt[at] ^= 1 << chance.randrange(8)
        (copy / ".cas" / "index.sqlite").write_bytes(spoilt)
        with suppress(CasError), Workspace.open(copy) as workspace:
            for act in WRITES:
                with suppress(CasError):
                    act(workspace)
        (copy / ".cas" / "index.sqlite").unlink()
        assert check_store(str(copy)).faults == (), f"{table}, byte {at - start}"
        shutil.rmtree(copy)


def test_the_sample_has_every_kind_of_file(whole: tuple[Path, dict[str, Any], Files]) -> None:
    for kind in KINDS:
        assert list((whole[0] / ".cas").glob(kind)), kind


def _shown_or_refused(root: Path) -> dict[str, Any] | None:
    """Return the store's answers, including those from weaves (None: it raises an error)."""
    try:
        with Workspace.open(root) as workspace:
            workspace.history.blame("a.txt")
            return stored_contents(workspace)
    except CasError:
        return None
