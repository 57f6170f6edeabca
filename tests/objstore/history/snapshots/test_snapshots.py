"""Test snapshots: taking, comparing, restoring and deleting them."""

import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, permutations
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from objstore import (
    Action,
    CallAborted,
    CallInfo,
    CasError,
    Decided,
    FileChanged,
    FileMissing,
    NoSuchName,
    NotInSnapshot,
    Origin,
    PathState,
    RestoreResult,
    RetentionLimits,
    ScanLimits,
    SnapshotIncomplete,
    SnapshotsNotComparable,
    Unit,
    Workspace,
    check_store,
)
from objstore.disk.fs.confined_path import Tree
from objstore.disk.fs.disk import Disk
from objstore.history.snapshots.create import ConcurrentWrites
from objstore.model.records import Snapshot
from objstore.model.tree import TreeEntry, encode_tree
from objstore.review.snapshot_restore import carry_out
from objstore.storage.transaction.journal import Journal
from objstore.worktree.stat_cache import StatCache
from tests.support.faulty_disk import WHOLE, CountdownDisk, PowerCut, UnsyncedDisk, broken_disk
from tests.support.sampling import sampled_product
from tests.support.scene import TEN, Scene, deletes, moves, writes


def put(scene: Scene, path: str, content: bytes) -> Path:
    """Write a file as a shell would."""
    file = scene.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def take(scene: Scene, path: str = "") -> int:
    """Take a snapshot and return its number."""
    return scene.workspace.snapshots.take(path, who="me").view.number


def files(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return bytes and mode of every file that is no link and not in the store."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink() and ".cas" not in path.parts
    }


def changed(scene: Scene, number: int, other: int | None = None) -> dict[str, str]:
    """Return what differs, in letters."""
    found, _ = scene.workspace.snapshots.changes(number, other)
    return {one.path: "A" if one.before is None else "D" if one.after is None else "M" for one in found}


@pytest.fixture
def full(scene: Scene) -> Scene:
    """Return a workspace with files that some call recorded, and others that none did."""
    scene.write("recorded.txt", TEN)
    put(scene, "a.txt", b"a\n")
    put(scene, "src/b.py", b"b\n")
    put(scene, "src/deep/c.py", b"c\n").chmod(0o755)
    put(scene, "node_modules/m.js", b"m\n")
    return scene


# ---- taking


def test_a_snapshot_holds_every_file_that_is_not_ignored(full: Scene) -> None:
    (full.root / "link").symlink_to("a.txt")
    held = dict(full.workspace.snapshots.files(take(full)))
    assert {path: state.kind for path, state in held.items()} == {
        "a.txt": "file",
        "link": "symlink",
        "node_modules": "left-out",
        "recorded.txt": "file",
        "src/b.py": "file",
        "src/deep/c.py": "file",
    }
    assert held["src/deep/c.py"].mode == 0o755
    blob = held["link"].blob
    assert blob is not None
    assert full.workspace.history.blob(blob) == b"a.txt"


def test_unchanged_files_are_not_stored_again(full: Scene) -> None:
    take(full)
    before = full.workspace.history.stats().blobs
    again = full.workspace.snapshots.take(who="me")
    assert again.is_same
    assert full.workspace.history.stats().blobs == before
    put(full, "src/deep/c.py", b"other\n")
    assert not full.workspace.snapshots.take(who="me").is_same
    # The file, and the trees of the three folders that it lies in.
    assert full.workspace.history.stats().blobs == before + 4


def test_a_snapshot_of_unchanged_files_leaves_the_stat_cache_unchanged(full: Scene) -> None:
    time.sleep(0.05)  # more than a tick, so that no file has to be read again
    take(full)
    take(full)
    looks = full.root / ".cas/cache/looks"
    before = looks.stat().st_ino, looks.read_bytes()
    take(full)
    assert (looks.stat().st_ino, looks.read_bytes()) == before
    put(full, "src/new", b"new\n")
    number = take(full)
    assert looks.read_bytes() != before[1]
    assert "src/new" in dict(full.workspace.snapshots.files(number))


def test_equal_files_have_equal_trees(full: Scene) -> None:
    first = full.workspace.snapshots.take(who="me").view
    for path in ("a.txt", "src/b.py"):
        content = (full.root / path).read_bytes()
        (full.root / path).unlink()
        put(full, path, content)
    (full.root / ".cas/cache/looks").unlink()
    second = full.workspace.snapshots.take(who="me").view
    assert second.root == first.root


def test_empty_folders_are_not_in_a_snapshot(full: Scene) -> None:
    number = take(full)
    (full.root / "empty" / "more").mkdir(parents=True)
    assert changed(full, number) == {}


def test_snapshot_of_one_folder_can_be_taken(full: Scene) -> None:
    number = take(full, "src")
    assert [path for path, _ in full.workspace.snapshots.files(number)] == ["src/b.py", "src/deep/c.py"]
    put(full, "a.txt", b"x\n")
    put(full, "src/b.py", b"x\n")
    assert changed(full, number) == {"src/b.py": "M"}
    with pytest.raises(FileMissing):
        take(full, "nothing")


def test_an_incomplete_snapshot_is_not_recorded(full: Scene) -> None:
    with pytest.raises(SnapshotIncomplete):
        full.workspace.snapshots.take(who="me", limits=ScanLimits(files=2))
    assert full.workspace.snapshots.all() == []
    take(full)


def test_a_snapshot_survives_the_loss_of_derived_data(full: Scene) -> None:
    number = take(full)
    put(full, "a.txt", b"x\n")
    full.forget_index()
    (full.root / ".cas/cache/looks").unlink()
    assert changed(full, number) == {"a.txt": "M"}
    assert [view.number for view in full.workspace.snapshots.all()] == [number]


# ---- concurrent calls


class InBetween:
    """Another process, which makes one call in the middle of each of so many looks of a scene."""

    def __init__(self, scene: Scene, call: Callable[[Scene, int], object], times: int = 1) -> None:
        """Make so many calls; if more than one, each with a write in a large folder, which takes long to look at."""
        self._other = Scene(scene.root)
        self._call = call
        self._left = times
        self.made = 0

    def __call__(self, kind: str, done: int, _: int) -> None:
        """Make it when one file has been read, and another has not."""
        if kind == "files" and done == 2 and self.made < self._left:
            self._call(self._other, self.made)
            if self._left > 1:
                self._other.write("large/0", b"call %d\n" % self.made)
            self.made += 1

    def close(self) -> None:
        self._other.close()


def write_both(other: Scene, number: int) -> None:
    other.call(*(writes(path, b"call %d\n" % number) for path in ("a/x", "z/x")))


def make_folders(other: Scene, number: int) -> None:
    other.call(*(writes(path, b"call %d\n" % number) for path in ("a/x", f"y{number}/deep/f", f"z/folder {number}/f")))


def move(other: Scene, number: int) -> None:
    other.call(moves(f"a/{number}", f"z/moved {number}"), moves(f"z/{number}", f"a/moved {number}"))


def remove_folders(other: Scene, number: int) -> None:
    other.call(writes("a/x", b"call %d\n" % number), deletes(f"a/only {number}/deep/f"), deletes(f"z/only {number}/f"))


def write_while_person_edits(other: Scene, number: int) -> None:
    write_both(other, number)
    put(other, "a/0", b"by hand %d\n" % number)


def rule_out(other: Scene, number: int) -> None:
    other.call(writes("a/x", b"call %d\n" % number), writes(".casignore", b"/z/%d\n" % number))


def reject(other: Scene, number: int) -> None:
    """Take back what the person has been given to review, one call after the other."""
    other.reject(*(view.seq for view in other.workspace.history.edits() if view.edit.conversation == f"conv_{number}"))


@pytest.fixture
def busy(scene: Scene) -> Scene:
    """Return a workspace with files of calls, of which some lie alone in their folders."""
    names = ("x", "0", "1", "2", "only 0/deep/f", "only 1/deep/f", "only 2/deep/f", "only 0/f", "only 1/f", "only 2/f")
    scene.call(*(writes(f"{folder}/{name}", f"{folder} {name}\n".encode()) for name in names for folder in "az"))
    for number in range(3):
        paths = (f"a/{number}", f"z/{number}", f"z/new {number}/f")
        scene.call(*(writes(path, b"to review\n") for path in paths), conversation=f"conv_{number}")
    for number in range(600):
        put(scene, f"large/{number}", b"not recorded\n")
    return scene


def held(scene: Scene, number: int) -> dict[str, bytes]:
    """Return the bytes of each file of a snapshot."""
    found = scene.workspace.snapshots.files(number)
    return {path: scene.workspace.history.blob(state.blob) for path, state in found if state.blob is not None}


def each_some_times(*calls: Callable[[Scene, int], object]) -> list[tuple[Callable[[Scene, int], object], int]]:
    """Return each call with how often it comes in between: once to three times, and all of these in `make crash`."""
    return [(call, times) for at, call in enumerate(calls) for times in (1, 2, 3) if WHOLE or times == 1 + at % 3]


def current_files(scene: Scene) -> dict[str, bytes]:
    return {path: content for path, (content, _) in files(scene.root).items()}


@pytest.mark.parametrize(
    ("call", "times"),
    each_some_times(write_both, write_while_person_edits, make_folders, move, remove_folders, reject),
)
def test_a_snapshot_holds_all_of_a_concurrent_call(
    busy: Scene, call: Callable[[Scene, int], object], times: int
) -> None:
    """Also where it takes long to look again, and one comes in between each time."""
    with closing(InBetween(busy, call, times)) as meanwhile, busy.workspace.reporting_progress(meanwhile):
        number = take(busy)
    assert meanwhile.made == times
    assert held(busy, number) == current_files(busy)
    assert changed(busy, number) == {}
    assert check_store(str(busy.root)).faults == ()


def write_linked(other: Scene, number: int) -> None:
    other.write("z/linked", b"call %d\n" % number)


def write_new_name(other: Scene, number: int) -> None:
    """Write to a file that got a name meanwhile, of which no look knows."""
    os.link(other.root / "z/linked", other.root / f"z/new {number}/linked")
    other.write(f"z/new {number}/linked", b"call %d\n" % number)


def move_linked(other: Scene, number: int) -> None:
    write_linked(other, number)
    other.move("z/linked", f"y{number}/linked")
    other.move(f"y{number}/linked", "z/linked")


@pytest.mark.parametrize(("call", "times"), each_some_times(write_linked, write_new_name, move_linked, reject))
def test_all_hard_links_of_a_file_are_equal_in_a_snapshot(
    busy: Scene, call: Callable[[Scene, int], object], times: int
) -> None:
    """Also under one that was read before a call wrote to the file by another."""
    first = put(busy, "A/linked", TEN)
    os.link(first, busy.root / "z/linked")
    for number, line in enumerate((b"1\n", b"5\n", b"9\n")):
        written = first.read_bytes().replace(line, b"to review\n", 1)
        busy.call(writes("z/linked", written), conversation=f"conv_{number}")
    before = first.read_bytes()
    with closing(InBetween(busy, call, times)) as meanwhile, busy.workspace.reporting_progress(meanwhile):
        number = take(busy)
    assert meanwhile.made == times
    assert first.read_bytes() != before
    assert held(busy, number) == current_files(busy)
    assert changed(busy, number) == {}


def test_files_that_a_concurrent_call_makes_ignored_are_not_held(busy: Scene) -> None:
    with closing(InBetween(busy, rule_out)) as meanwhile, busy.workspace.reporting_progress(meanwhile):
        number = take(busy)
    assert meanwhile.made == 1
    assert held(busy, number) == {path: content for path, content in current_files(busy).items() if path != "z/0"}


def test_a_snapshot_of_one_folder_holds_all_of_a_concurrent_call(busy: Scene) -> None:
    def write(other: Scene, number: int) -> None:
        other.call(*(writes(path, b"call %d\n" % number) for path in ("a/0", "a/only 0/f", "z/x", "a/new/f")))

    with closing(InBetween(busy, write)) as meanwhile, busy.workspace.reporting_progress(meanwhile):
        number = take(busy, "a")
    assert meanwhile.made == 1
    inside = {path: content for path, content in current_files(busy).items() if path.startswith("a/")}
    assert held(busy, number) == inside


def test_a_file_that_became_readable_during_the_snapshot_is_not_reported(busy: Scene) -> None:
    def replace(other: Scene, number: int) -> None:
        (other.root / "z/pipe").unlink()
        other.call(*(writes(path, b"call %d\n" % number) for path in ("a/x", "z/pipe")))

    os.mkfifo(busy.root / "z/pipe")
    os.mkfifo(busy.root / "large/pipe")

    def at_the_end(kind: str, done: int, total: int) -> None:
        if kind == "files" and done == total > 600:
            meanwhile(kind, 2, total)

    with closing(InBetween(busy, replace)) as meanwhile, busy.workspace.reporting_progress(at_the_end):
        taken = busy.workspace.snapshots.take(who="me")
    assert meanwhile.made == 1
    assert [place.path for place in taken.skipped] == ["large/pipe"]
    assert held(busy, taken.view.number) == current_files(busy)


def test_a_snapshot_rolls_a_killed_call_forward_before_it_scans(busy: Scene) -> None:
    cut_between = 0
    for step in count(step=1 if WHOLE else 3):
        new = b"killed at %d\n" % step
        try:
            with Workspace.open(busy.root, CountdownDisk(step)) as other, other.call(CallInfo(tool="t")) as call:
                call.write("a/x", new)
                call.write("z/x", new)
                call.commit()
        except PowerCut:
            cut_between += (busy.text("a/x") == new) is not (busy.text("z/x") == new)
        else:
            break
        assert held(busy, take(busy)) == current_files(busy), step
    assert cut_between


def test_files_of_a_call_that_was_rolled_back_meanwhile_are_scanned_again(busy: Scene) -> None:
    with closing(Journal(str(busy.root), UnsyncedDisk())) as journal:
        meanwhile = ConcurrentWrites(journal)
        for step in count():
            disk = CountdownDisk(step, broken_disk, lasting=False)
            try:
                with Workspace.open(busy.root, disk) as workspace, workspace.call(CallInfo(tool="t")) as call:
                    call.write("a/x", b"taken back\n")
                    call.write("z/new/x", b"taken back\n")
                    call.commit()
            except CallAborted:
                break
            except CasError:
                meanwhile = ConcurrentWrites(journal)
        with journal.writing():
            assert meanwhile.paths(StatCache()) == {b"a/x", b"z/new/x"}
            assert meanwhile.paths(StatCache()) == set()


# ---- comparing


def test_two_snapshots_are_compared_where_both_cover(full: Scene) -> None:
    whole, part = take(full), take(full, "src")
    put(full, "a.txt", b"x\n")
    put(full, "src/new", b"x\n")
    later = take(full)
    assert changed(full, whole, later) == {"a.txt": "M", "src/new": "A"}
    assert changed(full, later, whole) == {"a.txt": "M", "src/new": "D"}
    assert changed(full, part, later) == {"src/new": "A"}
    assert changed(full, later, part) == {"src/new": "D"}


def test_snapshots_that_cover_nothing_in_common_are_not_compared(scene: Scene) -> None:
    for path in ("src/a", "we ird/f", "abc/ird/f", "abc/ird/g"):
        put(scene, path, path.encode())
    numbers = {folder: take(scene, folder) for folder in ("src", "we ird", "abc", "abc/ird")}
    for one, other in permutations(numbers, 2):
        if {one, other} == {"abc", "abc/ird"}:
            assert changed(scene, numbers[one], numbers[other]) == {}
            continue
        for paths in ((), ("src",), (one,)):
            with pytest.raises(SnapshotsNotComparable, match=rf"{one}.* {other}"):
                scene.workspace.snapshots.changes(numbers[one], numbers[other], paths=paths)


def test_a_snapshot_of_a_folder_has_nothing_in_common_with_one_that_left_it_out(scene: Scene) -> None:
    put(scene, "node_modules/m/index.js", b"m\n")
    whole, part = take(scene), take(scene, "node_modules/m")
    assert "node_modules/m/index.js" in dict(scene.workspace.snapshots.files(part))
    for numbers in ((whole, part), (part, whole)):
        with pytest.raises(SnapshotsNotComparable):
            scene.workspace.snapshots.changes(*numbers)


def test_an_error_names_a_path_with_the_snapshot_that_does_not_cover_it(scene: Scene) -> None:
    put(scene, "a", b"a\n")
    put(scene, "src/b", b"b\n")
    whole, part = take(scene), take(scene, "src")
    for numbers in ((whole, part), (part, whole)):
        with pytest.raises(NotInSnapshot) as caught:
            scene.workspace.snapshots.changes(*numbers, paths=["a"])
        assert (caught.value.number, caught.value.near) == (part, ())


def test_a_folder_that_is_gone_is_all_deleted(full: Scene) -> None:
    number = take(full, "src")
    for path in ("src/b.py", "src/deep/c.py"):
        (full.root / path).unlink()
    (full.root / "src/deep").rmdir()
    (full.root / "src").rmdir()
    assert changed(full, number) == {"src/b.py": "D", "src/deep/c.py": "D"}
    full.workspace.snapshots.restore(number)
    assert changed(full, number) == {}


def test_a_snapshot_that_does_not_exist_is_refused(full: Scene) -> None:
    with pytest.raises(NoSuchName):
        full.workspace.snapshots.files(7)
    with pytest.raises(NoSuchName):
        full.workspace.snapshots.restore(7)


# ---- restoring


def disturbed(scene: Scene) -> None:
    """Change, delete, make and chmod files."""
    put(scene, "a.txt", b"other\n")
    put(scene, "recorded.txt", b"other\n")
    put(scene, "new.txt", b"new\n")
    put(scene, "made/new.txt", b"new\n")
    (scene.root / "src/b.py").unlink()
    (scene.root / "src/deep/c.py").chmod(0o600)
    put(scene, "node_modules/m.js", b"other\n")
    put(scene, "node_modules/n.js", b"new\n")


def test_a_restore_writes_every_file_and_leaves_ignored_ones(full: Scene) -> None:
    before = files(full.root)
    number = take(full)
    disturbed(full)
    ignored = {path: file for path, file in files(full.root).items() if path.startswith("node_modules/")}
    full.workspace.snapshots.restore(number)
    after = files(full.root)
    assert after == {path: file for path, file in before.items() if not path.startswith("node_modules/")} | ignored
    assert changed(full, number) == {}


def test_only_different_files_are_written(full: Scene) -> None:
    number = take(full)
    put(full, "a.txt", b"other\n")
    before = full.files()
    full.workspace.snapshots.restore(number)
    after = full.files()
    assert [path for path in after if after[path] != before[path]] == ["a.txt"]


def test_a_dry_run_reports_what_a_restore_does_and_changes_nothing(full: Scene) -> None:
    number = take(full)
    disturbed(full)
    before = full.everything()
    planned = full.workspace.snapshots.restore(number, dry_run=True)
    assert full.everything() == before
    done = full.workspace.snapshots.restore(number)
    assert planned.changes == done.changes
    assert planned.outcome is None


def test_a_restore_is_one_call_of_a_person_and_can_be_rejected(full: Scene) -> None:
    number = take(full)
    disturbed(full)
    before = files(full.root)
    outcome = full.workspace.snapshots.restore(number).outcome
    assert outcome is not None
    assert {(view.edit.origin, view.edit.conversation) for view in outcome.edits} == {
        (Origin.PERSON, outcome.conversation)
    }
    assert {view.edit.notes["snapshot"] for view in outcome.edits} == {str(number)}
    units = [Unit(view.seq, hunk) for view in outcome.edits for hunk in range(len(view.units))]
    assert isinstance(full.workspace.decide(Action.REJECT, units), Decided)
    assert files(full.root) == before
    full.undo()
    assert changed(full, number) == {}


def test_only_some_paths_can_be_restored(full: Scene) -> None:
    number = take(full)
    disturbed(full)
    full.workspace.snapshots.restore(number, ["src", "a.txt"])
    assert changed(full, number) == {"made/new.txt": "A", "new.txt": "A", "recorded.txt": "M"}


def test_symlinks_are_created_changed_and_removed_by_their_text(full: Scene) -> None:
    (full.root / "kept").symlink_to("a.txt")
    (full.root / "gone").symlink_to("a.txt")
    put(full, "file", b"x\n")
    number = take(full)
    (full.root / "kept").unlink()
    (full.root / "kept").symlink_to("src")
    (full.root / "gone").unlink()
    (full.root / "file").unlink()
    (full.root / "file").symlink_to("a.txt")
    (full.root / "new").symlink_to("a.txt")
    put(full, "a.txt", b"other\n")
    done = full.workspace.snapshots.restore(number)
    assert sorted(change.path for change in done.changes) == ["a.txt", "file", "gone", "kept", "new"]
    assert done.left == ()
    assert [(full.root / name).readlink() for name in ("kept", "gone")] == [Path("a.txt"), Path("a.txt")]
    assert (full.root / "file").read_bytes() == b"x\n"
    assert not (full.root / "file").is_symlink()
    assert not (full.root / "new").is_symlink()


def test_files_ignored_at_the_snapshot_are_not_deleted_when_they_are_no_longer(full: Scene) -> None:
    put(full, ".casignore", b"secret\nprivate/\n")
    put(full, "secret", b"s\n")
    put(full, "private/key", b"k\n")
    number = take(full)
    put(full, ".casignore", b"")
    done = full.workspace.snapshots.restore(number)
    assert [change.path for change in done.changes] == [".casignore"]
    assert full.text("secret") == b"s\n"
    assert full.text("private/key") == b"k\n"


def test_ignored_files_are_not_deleted(full: Scene) -> None:
    number = take(full)
    put(full, ".casignore", b"a.txt\nnew\n")
    put(full, "a.txt", b"other\n")
    put(full, "new", b"new\n")
    done = full.workspace.snapshots.restore(number)
    assert [change.path for change in done.changes] == [".casignore"]
    assert full.text("a.txt") == b"other\n"
    assert full.text("new") == b"new\n"


def test_a_file_and_a_folder_that_want_the_same_name_are_left(full: Scene) -> None:
    number = take(full)
    (full.root / "a.txt").unlink()
    put(full, "a.txt/inner", b"x\n")
    put(full, "src/b.py", b"other\n")
    done = full.workspace.snapshots.restore(number)
    assert [change.path for change in done.changes] == ["src/b.py"]
    assert sorted(change.path for change in done.left) == ["a.txt", "a.txt/inner"]


def test_a_file_whose_path_is_an_empty_folder_is_not_restored(full: Scene) -> None:
    number = take(full)
    for name in ("a.txt", "recorded.txt"):
        (full.root / name).unlink()
        (full.root / name / "inner").mkdir(parents=True)
    put(full, "src/b.py", b"other\n")
    planned = full.workspace.snapshots.restore(number, dry_run=True)
    done = full.workspace.snapshots.restore(number)
    assert (planned.changes, planned.left) == (done.changes, done.left)
    assert [change.path for change in done.changes] == ["src/b.py"]
    assert [change.path for change in done.left] == ["a.txt", "recorded.txt"]


def test_a_restored_file_replaces_an_empty_folder_that_edits_created(full: Scene) -> None:
    number = take(full)
    full.delete("a.txt")
    full.write("a.txt/inner/x", b"x\n")
    full.delete("a.txt/inner/x")
    assert (full.root / "a.txt" / "inner").is_dir()
    assert not full.workspace.snapshots.restore(number).left
    assert full.text("a.txt") == b"a\n"


def carried_out(scene: Scene, plan: RestoreResult) -> None:
    """Carry out what was planned a while ago."""
    info = CallInfo(tool="test", origin=Origin.PERSON)
    with closing(Tree(scene.root)) as tree, scene.workspace.call(info) as call:
        carry_out(plan, call, tree)


def test_a_file_that_changes_after_the_plan_is_not_overwritten(full: Scene) -> None:
    number = take(full)
    put(full, "a.txt", b"one\n")
    put(full, "src/b.py", b"one\n")
    plan: RestoreResult = full.workspace.snapshots.restore(number, dry_run=True)
    put(full, "src/b.py", b"typed just now\n")
    before = files(full.root)
    with pytest.raises(FileChanged):
        carried_out(full, plan)
    assert files(full.root) == before


@pytest.fixture
def taken(scene: Scene) -> Scene:
    """Return a workspace of two folders, with a snapshot of all of it, and one of a folder in one of them."""
    put(scene, "src/sub/f", b"of src\n")
    put(scene, "lib/own", b"keep\n")
    take(scene)
    take(scene, "src/sub")
    return scene


def kind(state: PathState | None) -> str:
    """Return what kind of file is at a path."""
    return "nothing" if state is None else state.kind


def links_to_a_folder(root: Path) -> None:
    """Put a link to another folder in a folder's place."""
    shutil.rmtree(root / "src")
    (root / "src").symlink_to("lib")


def links_to_a_folder_with_such_a_file(root: Path) -> None:
    """Put a link in a folder's place to another one that has a file of the same name."""
    links_to_a_folder(root)
    (root / "lib/sub").mkdir()
    (root / "lib/sub/f").write_bytes(b"of lib\n")


def links_out(root: Path) -> None:
    """Put a link out of the workspace in a folder's place."""
    shutil.rmtree(root / "src")
    (root / "src").symlink_to(root.parent)


def links_below(root: Path) -> None:
    """Put a link to another folder in the place of a folder in a folder."""
    shutil.rmtree(root / "src/sub")
    (root / "src/sub").symlink_to("../lib")


def becomes_a_file(root: Path) -> None:
    """Put a file in a folder's place."""
    shutil.rmtree(root / "src")
    (root / "src").write_bytes(b"text\n")


def becomes_a_pipe(root: Path) -> None:
    """Put a named pipe in a folder's place."""
    shutil.rmtree(root / "src")
    os.mkfifo(root / "src")


REPLACED_FOLDERS: Final = [
    links_to_a_folder,
    links_to_a_folder_with_such_a_file,
    links_out,
    links_below,
    becomes_a_file,
    becomes_a_pipe,
]
RESTORES: Final = [(1, ["src"]), (1, ["src/sub/f"]), (2, []), (2, ["src/sub/f"])]


@pytest.mark.parametrize(("happens", "restore"), sampled_product(REPLACED_FOLDERS, RESTORES))
def test_a_file_is_not_restored_if_something_replaced_its_folder(
    taken: Scene, happens: Callable[[Path], None], restore: tuple[int, list[str]]
) -> None:
    number, paths = restore
    happens(taken.root)
    before = taken.everything()
    planned = taken.workspace.snapshots.restore(number, paths, dry_run=True)
    done = taken.workspace.snapshots.restore(number, paths)
    assert taken.everything() == before
    assert (planned.changes, planned.left, planned.above) == (done.changes, done.left, done.above)
    assert (done.changes, done.outcome) == ((), None)
    whole = taken.workspace.snapshots.restore(1, dry_run=True).left
    assert {change.path for change in done.left} == {
        change.path for change in whole if change.path == "src/sub/f" or (paths == ["src"] and number == 1)
    }
    # The reason for leaving it is reported with it, requested or not.
    in_the_way = {(change.path, kind(change.before)) for change in (*done.left, *done.above)}
    assert in_the_way == {(change.path, kind(change.before)) for change in whole}


def test_a_named_file_in_a_now_ignored_folder_is_not_restored(taken: Scene) -> None:
    (taken.root / ".casignore").write_bytes(b"src\n")
    (taken.root / "src/sub/f").unlink()
    done = taken.workspace.snapshots.restore(1, ["src/sub/f"])
    assert not done.changes
    assert [(change.path, kind(change.before)) for change in done.left] == [("src/sub/f", "nothing")]
    assert [(change.path, kind(change.before)) for change in done.above] == [("src", "left-out")]
    assert not (taken.root / "src/sub/f").exists()


def test_a_new_file_is_left_if_the_snapshot_has_a_file_at_its_folders_path(full: Scene) -> None:
    number = take(full)
    (full.root / "a.txt").unlink()
    put(full, "a.txt/inner", b"x\n")
    done = full.workspace.snapshots.restore(number, ["a.txt/inner"])
    assert [change.path for change in done.left] == ["a.txt/inner"]
    assert [change.path for change in done.above] == ["a.txt"]
    assert full.text("a.txt/inner") == b"x\n"


def test_a_folder_that_becomes_a_symlink_after_the_plan_is_not_written_through(taken: Scene) -> None:
    (taken.root / "src/sub/f").unlink()
    plan: RestoreResult = taken.workspace.snapshots.restore(2, dry_run=True)
    links_to_a_folder(taken.root)
    before = files(taken.root)
    with pytest.raises(FileChanged) as refused:
        carried_out(taken, plan)
    assert refused.value.link == "src"
    assert files(taken.root) == before


def test_more_files_than_the_limit_of_open_files_are_restored(full: Scene) -> None:
    for i in range(150):
        put(full, f"many/{i}/f", b"x%d\n" % i)
    number = take(full)
    for i in range(150):
        put(full, f"many/{i}/f", b"y%d\n" % i)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    others = len(list(Path("/dev/fd").iterdir()))  # as many as the tests before have left open in this process
    resource.setrlimit(resource.RLIMIT_NOFILE, (others + 80, before[1]))
    try:
        full.workspace.snapshots.restore(number)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert changed(full, number) == {}


PATHS = st.sampled_from(["a.txt", "src/b.py", "src/new", "recorded.txt", "other/deep/x", "y"])
CONTENTS = st.sampled_from([None, b"", b"one\n", b"two\n", TEN])


def bring_about(scene: Scene, states: dict[str, bytes | None]) -> None:
    """Give files these bytes, or (None) delete them."""
    for path, content in states.items():
        if content is not None:
            put(scene, path, content)
        elif (scene.root / path).exists():
            (scene.root / path).unlink()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(PATHS, CONTENTS, max_size=4), st.dictionaries(PATHS, CONTENTS, max_size=4))
def test_a_restore_returns_to_the_snapshot_whatever_happened_since(
    tmp_path_factory: pytest.TempPathFactory, first: dict[str, bytes | None], second: dict[str, bytes | None]
) -> None:
    scene = Scene(tmp_path_factory.mktemp("any"))
    try:
        bring_about(scene, first)
        before, number = files(scene.root), take(scene)
        bring_about(scene, second)
        scene.workspace.snapshots.restore(number)
        assert files(scene.root) == before
    finally:
        scene.close()


# ---- deleting


def test_a_deleted_snapshot_is_gone_and_its_number_is_not_used_again(full: Scene) -> None:
    first, second = take(full), take(full)
    full.workspace.snapshots.delete([first], who="me")
    assert [view.number for view in full.workspace.snapshots.all()] == [second]
    with pytest.raises(NoSuchName):
        full.workspace.snapshots.get(first)
    with pytest.raises(NoSuchName):
        full.workspace.snapshots.delete([first], who="me")
    full.workspace.snapshots.delete([second], who="me")
    assert take(full) == second + 1


def test_after_all_snapshots_are_deleted_the_next_holds_everything(full: Scene) -> None:
    full.workspace.snapshots.delete([take(full)], who="me")
    number = take(full)
    for path, state in full.workspace.snapshots.files(number):
        if state.blob is not None:
            content = full.workspace.history.blob(state.blob)
            assert content == (full.root / path).read_bytes()


def test_blobs_collected_since_the_last_scan_are_stored_again(full: Scene) -> None:
    full.workspace.snapshots.delete([take(full)], who="me")
    with closing(sqlite3.connect(full.root / ".cas/index.sqlite", isolation_level=None)) as index:
        # As a cleaning leaves it: of what nothing holds, the index knows nothing.
        assert index.execute("DELETE FROM blobs WHERE refs = 0").rowcount > 4
    full.reopen()
    number = take(full)
    held = {path: state.blob for path, state in full.workspace.snapshots.files(number)}
    assert {path for path, blob in held.items() if blob is not None and full.workspace.history.blob(blob)} == {
        "a.txt",
        "recorded.txt",
        "src/b.py",
        "src/deep/c.py",
    }


def test_new_snapshot_is_visible_to_other_processes_at_once(full: Scene) -> None:
    with Workspace.open(full.root) as other:
        number = take(full)
        assert [view.number for view in other.snapshots.all()] == [number]
        os.unlink(full.root / "a.txt")  # noqa: PTH108 - as a shell does
        other.snapshots.restore(number)
    assert full.text("a.txt") == b"a\n"


def record(scene: Scene) -> None:
    scene.workspace.record_changes(CallInfo(tool="record", origin=Origin.PERSON))


@pytest.fixture
def deep(scene: Scene) -> Iterator[str]:
    """Return the path of a file in more folders than functions may call one another, which is fewer than ever."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(280)  # to look into them costs by the square of how many there are
    folders = "a/" * 300
    # One at a time: what makes a path of folders calls itself for each.
    folder = os.open(scene.root, os.O_RDONLY)
    for _ in range(folders.count("/")):
        os.mkdir("a", dir_fd=folder)
        inner = os.open("a", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    (scene.root / folders / "f").write_bytes(b"one\n")
    try:
        yield f"{folders}f"
    finally:
        sys.setrecursionlimit(limit)
    subprocess.run(["rm", "-r", str(scene.root / "a")], check=True)


def test_a_file_at_any_depth_is_stored_compared_recorded_restored_and_purged(scene: Scene, deep: str) -> None:
    file = scene.root / deep
    first = take(scene)
    record(scene)
    file.write_bytes(b"two\n")
    assert changed(scene, first) == {deep: "M"}
    record(scene)
    (edit,) = scene.workspace.history.edits()
    assert [path for path, _ in scene.workspace.snapshots.files(first)] == [deep]
    assert [change.path for change in scene.workspace.snapshots.restore(first, [deep]).changes] == [deep]
    assert file.read_bytes() == b"one\n"
    assert isinstance(scene.workspace.decide(Action.REJECT, [Unit(edit.seq, 1)]), Decided)
    file.write_bytes(b"three\n")
    record(scene)
    plan = scene.workspace.retention.purge(scene.workspace.retention.plan_purge(path=deep).blobs, force=True)
    assert plan.snapshots == (1, 2)
    assert check_store(str(scene.root)).faults == ()


def test_reserved_paths_are_left_by_a_restore_and_do_not_stop_it(scene: Scene) -> None:
    name = ".g\u200cit"  # to a file system that passes over what shows nothing, version control's
    with closing(Journal(str(scene.root), Disk())) as journal, journal.writing() as batch:
        entry = TreeEntry(os.fsencode(name), stat.S_IFREG | 0o644, batch.blob(b"x\n", None))
        root = batch.blob(encode_tree([entry, entry._replace(name=b"mine")]))
        batch.record(Snapshot(number=1, time=1, root=root, path=None, who="x", title=""))
        batch.commit()
    restored = scene.workspace.snapshots.restore(1)
    assert [change.path for change in restored.left] == [name]
    assert (scene.root / "mine").read_bytes() == b"x\n"
    assert not (scene.root / name).exists()


def test_folders_that_equal_those_of_a_deleted_snapshot_are_still_compared(scene: Scene) -> None:
    for folder in ("a", "b"):
        (scene.root / folder).mkdir()
        (scene.root / folder / "file").write_bytes(b"one\n")
    first = take(scene)
    (scene.root / "a" / "file").write_bytes(b"two\n")
    time.sleep(0.05)  # more than a tick, so that the next look need not look into the folders again
    second = take(scene)
    scene.workspace.snapshots.delete([second], who="me")
    scene.workspace.retention.collect(RetentionLimits(older_than=None, max_size=None), thorough=True)
    changes, _ = scene.workspace.snapshots.changes(first)
    assert [change.path for change in changes] == ["a/file"]
    assert [change.path for change in scene.workspace.snapshots.restore(first).changes] == ["a/file"]
    assert (scene.root / "a" / "file").read_bytes() == b"one\n"
