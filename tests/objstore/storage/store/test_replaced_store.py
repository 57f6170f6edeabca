"""Test stores that are moved, replaced or missing for a moment while a process has them open: no write is lost."""

import os
import random
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from objstore import (
    Action,
    CallInfo,
    NotAWorkspace,
    RetentionLimits,
    Status,
    StoreReplaced,
    Unit,
    Workspace,
    blob_id,
    check_store,
)
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.integrity.salvage import salvage_store
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import CountdownDisk

TYPED: Final = b"a page that a person typed\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a workspace with three edits, and a file that is not recorded."""
    root = tmp_path / "ws"
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        for number in range(3):
            write(workspace, "a.txt", b"%d\n" % number)
    (root / "s.txt").write_bytes(TYPED)
    return root


def open_workspace(root: Path) -> Workspace:
    return Workspace.open(root, CountdownDisk(None))


def check_sound(root: Path) -> tuple[str, ...]:
    """Check that the store is undamaged, and return a summary of it."""
    report = check_store(str(root))
    assert report.faults == ()
    return tuple(note.what for note in report.notes)


def log_of(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((store / "segments").iterdir())}


def copy(store: Path, to: Path) -> None:
    shutil.copytree(store, to, ignore=shutil.ignore_patterns("index.sqlite*"))


# ---- what is put in the place of a store


def salvage(root: Path) -> Path:
    """Follow the steps in docs/repair.md."""
    aside = root / "damaged"
    (root / ".cas").rename(aside)
    salvage_store(str(aside), str(root))
    return aside


def create_again(root: Path) -> Path:
    aside = root.parent / "aside"
    (root / ".cas").rename(aside)
    Workspace.init(root).close()
    return aside


def restore_copy(root: Path) -> Path:
    """Replace the store by a copy of it."""
    aside = root.parent / "aside"
    (root / ".cas").rename(aside)
    copy(aside, root / ".cas")
    return aside


def restore_segments(root: Path) -> Path:
    """Replace the open segments by copies, one by one."""
    aside = root.parent / "aside"
    copy(root / ".cas", aside)
    for path in (root / ".cas" / "segments").iterdir():
        copied = path.with_name("copied")
        shutil.copy2(path, copied)
        copied.replace(path)
    return aside


def restore_segments_with_times(root: Path) -> Path:
    """Do the same as `cp -a`, `rsync -a` and `tar -x`, which restore the folder's time as well."""
    folder = root / ".cas" / "segments"
    found = folder.stat()
    aside = restore_segments(root)
    os.utime(folder, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert folder.stat().st_mtime_ns == found.st_mtime_ns
    return aside


def restore_segment_folder(root: Path) -> Path:
    aside = root.parent / "aside"
    aside.mkdir()
    (root / ".cas" / "segments").rename(aside / "segments")
    shutil.copytree(aside / "segments", root / ".cas" / "segments")
    return aside


REPLACED: Final = (
    salvage,
    create_again,
    restore_copy,
    restore_segments,
    restore_segments_with_times,
    restore_segment_folder,
)


@pytest.mark.parametrize("has_written", [False, True], ids=["read", "written"])
@pytest.mark.parametrize("replaced", REPLACED)
def test_acknowledged_writes_are_in_the_store_at_the_path(
    root: Path, replaced: Callable[[Path], Path], *, has_written: bool
) -> None:
    with open_workspace(root) as workspace:
        if has_written:
            write(workspace, "before.txt", b"before\n")
        workspace.review.status()
        aside = replaced(root)
        left = log_of(aside)
        write(workspace, "s.txt", b"overwritten by an agent\n")
        write(workspace, "s.txt", b"and again\n")
        assert log_of(aside) == left, "it went to a store that lies elsewhere by now"
        assert not [note for note in check_sound(root) if "unfinished" in note]
        with open_workspace(root) as other:
            write(other, "t.txt", b"t\n")
            assert other.history.blob(blob_id(TYPED)) == TYPED
            assert workspace.history.edits() == other.history.edits()
            assert [view.edit.path for view in other.history.edits()][-3:] == [b"s.txt", b"s.txt", b"t.txt"]
    check_sound(root)


@pytest.mark.parametrize("replaced", REPLACED)
def test_reads_come_from_the_store_at_the_path(root: Path, replaced: Callable[[Path], Path]) -> None:
    with open_workspace(root) as workspace:
        workspace.review.status()
        replaced(root)
        with open_workspace(root) as other:
            write(other, "t.txt", b"t\n")
            assert workspace.history.edits() == other.history.edits()
            assert workspace.review.status() == other.review.status()
    check_sound(root)


@pytest.mark.parametrize("has_read", [False, True])
def test_a_process_continues_with_an_older_log_that_replaced_the_one_it_knew(root: Path, *, has_read: bool) -> None:
    """The older log overwrites the same file, and other processes write until it has the known length again."""
    segment = root / ".cas" / "segments" / "00000001.seg"
    with open_workspace(root) as workspace:
        write(workspace, "a.txt", b"the first\n")
        kept = {path: path.read_bytes() for path in (segment, root / ".cas" / "applied")}
        write(workspace, "c.txt", b"is lost\n")
        known = segment.stat()
        if has_read:
            workspace.history.edits()
        for path, content in kept.items():
            path.write_bytes(content)
        with open_workspace(root) as other:
            write(other, "b.txt", b"another\n")
            assert (segment.stat().st_ino, segment.stat().st_size) == (known.st_ino, known.st_size)
            write(workspace, "a.txt", b"goes on\n")
            assert workspace.history.edits() == other.history.edits()
            assert [view.edit.path for view in other.history.edits()][3:] == [b"a.txt", b"b.txt", b"a.txt"]
    check_sound(root)


def test_closing_a_replaced_store_adds_nothing_to_the_index_of_its_replacement(root: Path) -> None:
    segment = root / ".cas" / "segments" / "00000001.seg"
    workspace = open_workspace(root)
    write(workspace, "a.txt", b"the first\n")
    workspace.history.edits()
    kept = {path: path.read_bytes() for path in (segment, root / ".cas" / "applied")}
    write(workspace, "a.txt", b"is lost\n")
    for path, content in kept.items():
        path.unlink()
        path.write_bytes(content)
    with open_workspace(root) as other:
        write(other, "b.txt", b"another\n")
        assert len(other.history.edits()) == 5
    workspace.close()
    check_sound(root)


def test_call_open_while_the_store_is_replaced_changes_nothing(root: Path) -> None:
    with open_workspace(root) as workspace:
        write(workspace, "a.txt", b"before\n")
        with workspace.call(CallInfo(tool="test")) as call:
            call.write("s.txt", b"overwritten by an agent\n")
            aside = restore_copy(root)
            left = log_of(aside)
            with pytest.raises(StoreReplaced):
                call.commit()
        assert (root / "s.txt").read_bytes() == TYPED
        assert log_of(aside) == left == log_of(root / ".cas")
        write(workspace, "s.txt", b"once more\n")
    check_sound(root)


def test_an_index_is_not_opened_for_the_log_of_another_store(root: Path) -> None:
    with open_workspace(root) as workspace:
        workspace.review.status()
        create_again(root)
        with workspace._journal.reading() as held:  # noqa: SLF001 - as who reads for long has it
            (root / ".cas").rename(root.parent / "second")
            Workspace.init(root).close()
            with pytest.raises(StoreReplaced):
                held.catch_up()
    check_sound(root)


def test_the_lock_of_a_replaced_store_blocks_no_writer_of_its_replacement(root: Path) -> None:
    with open_workspace(root) as workspace:
        write(workspace, "a.txt", b"before\n")
        aside = root.parent / "aside"
        (root / ".cas").rename(aside)
        (root / ".cas").mkdir()
        (aside / "segments").rename(root / ".cas" / "segments")
        write(workspace, "a.txt", b"after\n")
        assert (root / ".cas" / "lock").exists()
        with open_workspace(root) as other:
            first, second = workspace._journal, other._journal  # noqa: SLF001 - the lock itself is what this is about
            with first.try_brief_lock() as is_kept, second.try_brief_lock() as both:
                assert (is_kept, both) == (True, False)
    check_sound(root)


# ---- what is away for a moment


def test_temporarily_missing_store_is_used_again(root: Path) -> None:
    with open_workspace(root) as workspace:
        write(workspace, "a.txt", b"before\n")
        (root / ".cas").rename(root / "away")
        for act in (workspace.history.edits, workspace.review.status, lambda: write(workspace, "a.txt", b"lost\n")):
            with pytest.raises(NotAWorkspace, match=str(root)):
                act()
        (root / "away").rename(root / ".cas")
        write(workspace, "a.txt", b"after\n")
        assert len(workspace.history.edits()) == 5
    check_sound(root)


def test_temporarily_missing_workspace_is_used_again(root: Path) -> None:
    with open_workspace(root) as workspace:
        write(workspace, "a.txt", b"before\n")
        root.rename(root.parent / "away")
        for act in (workspace.history.edits, lambda: write(workspace, "a.txt", b"lost\n")):
            with pytest.raises(NotAWorkspace, match=str(root)):
                act()
        (root.parent / "away").rename(root)
        write(workspace, "a.txt", b"after\n")
        assert len(workspace.history.edits()) == 5
    check_sound(root)


def test_temporarily_unusable_index_is_opened_later(root: Path) -> None:
    index = root / ".cas" / "index.sqlite"
    with open_workspace(root) as workspace:
        write(workspace, "a.txt", b"before\n")
        index.unlink()
        index.symlink_to("elsewhere")
        with pytest.raises(Exception, match=r"index\.sqlite"):
            workspace.history.edits()
        index.unlink()
        write(workspace, "a.txt", b"after\n")
        assert len(workspace.history.edits()) == 5
    check_sound(root)


# ---- another folder in the place of the workspace's


@pytest.mark.parametrize("with_store", ["none", "another", "the same"])
def test_no_file_of_another_folder_is_changed_or_recorded_in_its_store(root: Path, with_store: str) -> None:
    aside = root.parent / "aside"
    with open_workspace(root) as workspace:
        write(workspace, "a.txt", b"before\n")
        root.rename(aside)
        root.mkdir()
        (root / "a.txt").write_bytes(b"another clone\n")
        match with_store:
            case "another":
                Workspace.init(root).close()
            case "the same":
                (aside / ".cas").rename(root / ".cas")
        with pytest.raises((StoreReplaced, NotAWorkspace)):
            write(workspace, "a.txt", b"lost\n")
        assert not workspace.is_there
    assert (root / "a.txt").read_bytes() == b"another clone\n"
    assert (aside / "a.txt").read_bytes() == b"before\n"
    if with_store != "none":
        check_sound(root)


# ---- what a plan is of, another log may have taken the place of


def move_backup_here(root: Path, backup: Path) -> None:
    (root / ".cas").rename(root.parent / "aside")
    backup.rename(root / ".cas")


def overwrite_with_backup(root: Path, backup: Path) -> None:
    """Do the same as `rsync --inplace --delete`, except for the index, which is derived."""
    store = root / ".cas"
    kept = log_of(backup)
    for path in (store / "segments").iterdir():
        if path.name in kept:
            path.write_bytes(kept[path.name])
        else:
            path.unlink()
    (store / "applied").write_bytes((backup / "applied").read_bytes())
    for path in store.glob("index.sqlite*"):
        path.unlink()


@pytest.mark.parametrize("is_sealed", [False, True])
@pytest.mark.parametrize("replace", [move_backup_here, overwrite_with_backup])
@pytest.mark.parametrize("way", ["collect", "repack"])
def test_a_plan_for_one_log_removes_nothing_from_an_older_one(
    root: Path, replace: Callable[[Path, Path], None], way: str, *, is_sealed: bool
) -> None:
    """A backup from before edits were accepted is put back after a collection or a repack has begun."""
    draw = random.Random(1)
    words = [draw.randbytes(3).hex() for _ in range(300)]
    # A repack compresses words, and a collection frees most of the incompressible bytes.
    texts = [" ".join(draw.choices(words, k=4_000)).encode() for _ in range(6)]
    states = texts if way == "repack" else [draw.randbytes(4_000) for _ in range(6)]
    with open_workspace(root) as workspace:
        for state in states:
            write(workspace, "f", state)
    if is_sealed:
        with closing(Journal(str(root), CountdownDisk(None))) as journal, journal.writing():
            journal.seal()
    backup = root.parent / "backup"
    copy(root / ".cas", backup)
    with open_workspace(root) as workspace:
        accept_all(workspace)

    def progress(what: str, *_: int) -> None:
        if what in {"segments", "blobs"} and backup.exists():
            replace(root, backup)
            shutil.rmtree(backup, ignore_errors=True)

    with open_workspace(root) as workspace:
        if way == "repack":
            workspace.retention.repack(progress)
        else:
            workspace.retention.collect(RetentionLimits(older_than=0, max_size=None), progress=progress)
    assert not backup.exists()
    with open_workspace(root) as workspace:
        for state in states:
            assert workspace.history.blob(blob_id(state)) == state
        assert {status for edit in workspace.history.edits() for status in edit.units} == {Status.PENDING}
        accept_all(workspace)
    check_sound(root)


def accept_all(workspace: Workspace) -> None:
    workspace.decide(
        Action.ACCEPT, [Unit(edit.seq, hunk) for edit in workspace.history.edits() for hunk in range(len(edit.units))]
    )
