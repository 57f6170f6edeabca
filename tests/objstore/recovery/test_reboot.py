"""Test a reboot: changes by people before it are kept, and changes lost in a power cut are restored."""

import errno
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from objstore import CallInfo, CasError, Origin, Workspace
from objstore.fs.nofollow import open_store_file
from objstore.model.canonical_msgpack import Value, encode, unpack
from objstore.model.ids import blob_id
from objstore.recovery.durable_horizon import DURABLE_HORIZON_NAME
from objstore.recovery.recovery_note import RECOVERY_NOTE_NAME, decoded, encoded
from objstore.transfer.import_export import import_bundle
from tests.objstore.recovery.test_crash import TICK, recorded_before_power_cut, set_age
from tests.support.crash_scenarios import change, files, rejected, write
from tests.support.faulty_disk import CountdownDisk, PowerCut, broken_disk, full_disk, power_cut, sampled_steps
from tests.support.sampling import sampled_product

INFO: Final = CallInfo(tool="t", conversation="restart")
LONG: Final = b"line\n" * 500
OLD: Final = 3600
"""Seconds that a file has not been touched for."""

TEN_MINUTES: Final = 600 * 1_000_000
DAY: Final = 86_400 * 1_000_000
"""Microseconds, as in records."""


class DiskAfterReboot(CountdownDisk):
    """A disk after one reboot, or after several."""

    def __init__(
        self,
        start: int = 1,
        steps: int | None = None,
        failure: Callable[[str], BaseException] = power_cut,
        *,
        torn: float | None = None,
    ) -> None:
        super().__init__(steps, failure, torn=torn)
        self._start: Final = start

    def boot_id(self) -> bytes:
        return bytes([self._start]) * len(super().boot_id())


class CutDisk(CountdownDisk):
    """A disk on which the power fails before the n-th change of a name in a folder of the user's."""

    def __init__(self, changes: int) -> None:
        super().__init__(None)
        self._changes = changes
        self._is_off = False

    def _step(self, operation: str, name: str, tear: Callable[[float], None] | None = None) -> None:
        if operation in {"rename_new", "exchange", "unlink", "make_directory"} and not name.startswith(".cas"):
            self._changes -= 1
            self._is_off = self._is_off or self._changes < 0
        if self._is_off:
            raise PowerCut
        super()._step(operation, name, tear)


class CutAtTheMark(DiskAfterReboot):
    """The power fails before the applied marker is written."""

    def overwrite(self, fd: int, content: bytes, offset: int, name: str) -> None:
        if name == "applied":
            raise PowerCut
        super().overwrite(fd, content, offset, name)


class CutNext(CutDisk):
    """The same after a reboot."""

    def boot_id(self) -> bytes:
        return DiskAfterReboot().boot_id()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return an empty workspace."""
    found = tmp_path / "workspace"
    found.mkdir()
    Workspace.init(found, CountdownDisk(None)).close()
    return found


def open_workspace(root: Path) -> Workspace:
    return Workspace.open(root, CountdownDisk(None))


def files_after_reboot(root: Path, start: int = 1) -> tuple[dict[str, tuple[bytes, int]], list[str]]:
    """Open the workspace after a reboot; return its files, and the paths that are reported as changed."""
    with Workspace.open(root, DiskAfterReboot(start)) as workspace:
        return files(root), [change.path for change in workspace.review.external_changes()]


# ---- what people did


def remove_last_lines(file: Path, _: Path) -> None:
    file.write_bytes(b"a\nb\n")


def remove_all_new_lines(file: Path, _: Path) -> None:
    file.write_bytes(b"a\n")


def truncate(file: Path, _: Path) -> None:
    file.write_bytes(b"")


def cut_at_a_sector(file: Path, _: Path) -> None:
    file.write_bytes(LONG[:512])


def move_copy_back(file: Path, copy: Path) -> None:
    copy.replace(file)


def copy_back(file: Path, copy: Path) -> None:
    shutil.copy2(copy, file)


def make_executable(file: Path, _: Path) -> None:
    file.chmod(0o755)


def delete_file(file: Path, _: Path) -> None:
    file.unlink()


@pytest.mark.parametrize(
    ("content", "hand"),
    [
        (b"a\nb\nc\n", remove_last_lines),
        (b"a\nb\nc\n", remove_all_new_lines),
        (b"x\n", truncate),
        (LONG, cut_at_a_sector),
        (b"x\n", move_copy_back),
        (b"x\n", copy_back),
        (b"a\n", make_executable),
        (b"x\n", delete_file),
        (None, move_copy_back),
    ],
)
def test_persons_change_before_a_reboot_is_kept_and_reported(
    root: Path, tmp_path: Path, content: bytes | None, hand: Callable[[Path, Path], None]
) -> None:
    file, copy = root / "f", tmp_path / "copy"
    file.write_bytes(b"a\n")
    file.chmod(0o755)
    set_age(file, -OLD)
    shutil.copy2(file, copy)
    with open_workspace(root) as workspace, workspace.call(INFO) as call:
        if content is None:
            call.delete("f")
        else:
            call.write("f", content, mode=0o644)
        call.commit()
    time.sleep(TICK)
    hand(file, copy)
    left = files(root)
    for start in (1, 2):
        assert files_after_reboot(root, start) == (left, ["f"])


def test_persons_move_that_equals_a_rejected_one_is_kept(root: Path) -> None:
    (root / "a").write_bytes(b"precious\n")
    set_age(root / "a", -OLD)
    with open_workspace(root) as workspace:
        with workspace.call(INFO) as call:
            call.move("a", "b")
            call.commit()
        rejected(workspace, 1)
        time.sleep(TICK)
        (root / "a").rename(root / "b")
        workspace.record_changes(CallInfo(tool="", origin=Origin.PERSON), ["a"])
    assert files_after_reboot(root) == ({"b": (b"precious\n", 0o644)}, ["b"])  # which is not recorded yet


DELETED: Final = ("src/b", "src", "src/sub", "src/sub/c")
DONE_THEN: Final = ("nothing", "src/a", "other/d", "a save")


@pytest.mark.parametrize(("gone", "then"), sampled_product(DELETED, DONE_THEN))
def test_file_deleted_by_a_person_before_a_reboot_stays_deleted(root: Path, gone: str, then: str) -> None:
    with open_workspace(root) as workspace:
        change(workspace, ("src/a", b"a\n"), ("src/b", b"b\n"), ("src/sub/c", b"c\n"))
        time.sleep(TICK)
        shutil.rmtree(root / gone) if (root / gone).is_dir() else (root / gone).unlink()
        time.sleep(TICK)
        if then == "a save" and gone != "src":
            (root / "saved").write_bytes(b"mine\n")
            (root / "saved").replace(root / "src" / "a")
        elif "/" in then:
            write(workspace, then, b"more\n")
    left = files(root)
    assert files_after_reboot(root)[0] == left


def test_hard_link_that_a_person_created_for_a_moved_file_is_kept(root: Path) -> None:
    (root / "a").write_bytes(b"precious\n")
    with open_workspace(root) as workspace, workspace.call(INFO) as call:
        call.move("a", "b")
        call.commit()
    time.sleep(TICK)
    (root / "a").hardlink_to(root / "b")
    assert files_after_reboot(root)[0].keys() == {"a", "b"}


@pytest.mark.parametrize("names", [1, 2])
@pytest.mark.parametrize("hand", ["its mode", "its old bytes"])
def test_persons_change_between_edits_is_kept_and_reported(root: Path, names: int, hand: str) -> None:
    (root / "f").write_bytes(b"one\ntwo\n")
    if names == 2:
        (root / "g").hardlink_to(root / "f")
    with open_workspace(root) as workspace:
        write(workspace, "f", b"one\nTWO\n")
        if hand == "its mode":
            time.sleep(TICK)
            (root / "f").chmod(0o755)
        else:
            time.sleep(1 + TICK)  # what is written in place at once may be ours
            (root / "f").write_bytes(b"one\ntwo\n")
        time.sleep(TICK)
        write(workspace, "other", b"x\n")
    left = files(root)
    for start in (1, 2):
        assert files_after_reboot(root, start) == (left, ["f"])


def test_hard_link_at_the_old_path_created_between_edits_is_kept(root: Path) -> None:
    (root / "a").write_bytes(b"precious\n")
    with open_workspace(root) as workspace:
        with workspace.call(INFO) as call:
            call.move("a", "b")
            call.commit()
        time.sleep(TICK)
        (root / "a").hardlink_to(root / "b")
        time.sleep(TICK)
        write(workspace, "other", b"x\n")
    assert files_after_reboot(root)[0].keys() == {"a", "b", "other"}


# ---- what a power cut took


def test_a_file_written_in_place_with_new_times_and_old_bytes_is_completed(root: Path) -> None:
    (root / "f").write_bytes(b"one\ntwo\n")
    (root / "g").hardlink_to(root / "f")
    with open_workspace(root) as workspace:
        write(workspace, "f", b"one\nTWO\n")
    (root / "f").write_bytes(b"one\ntwo\n")
    os.utime(root / ".cas" / "applied")
    assert files_after_reboot(root) == ({"f": (b"one\nTWO\n", 0o644), "g": (b"one\nTWO\n", 0o644)}, [])


def create_several(workspace: Workspace) -> None:
    change(workspace, *((f"src/new{number}", b"new\n") for number in range(4)))


def write_in_new_folders(workspace: Workspace) -> None:
    change(workspace, ("made/a", b"a\n"), ("made/deep/b", b"b\n"), ("src/deep/c", b"c\n"))


def edit_and_create(workspace: Workspace) -> None:
    change(workspace, ("src/new", b"new\n"), ("src/old", b"changed\n"), ("src/zero", b""))


def swap_files(workspace: Workspace) -> None:
    with workspace.call(INFO) as call:
        call.delete("src/old")
        call.write("src/new", b"new\n")
        call.move("src/third", "src/fourth")
        call.commit()


def decide_two(workspace: Workspace) -> None:
    rejected(workspace, 3, 4)


def create_initial_files(workspace: Workspace, act: Callable[[Workspace], None]) -> None:
    """Create the files that `act` expects."""
    change(workspace, ("src/old", b"old\n"), ("src/third", b"third\n"))
    with workspace.call(CallInfo(tool="t", conversation="scene")) as call:
        call.delete("src/third")
        call.write("src/brought", b"brought\n")
        call.commit()
    if act is swap_files:
        rejected(workspace, 3, 4)


CUT_ACTS: Final = [create_several, write_in_new_folders, edit_and_create, swap_files, decide_two]


@pytest.mark.parametrize(("act", "changes"), sampled_product(CUT_ACTS, range(10)))
def test_call_is_whole_after_a_power_cut_at_any_change(
    root: Path, act: Callable[[Workspace], None], changes: int
) -> None:
    with open_workspace(root) as workspace:
        create_initial_files(workspace, act)
    copy = root.with_name("whole")
    shutil.copytree(root, copy)
    with open_workspace(copy) as workspace:
        act(workspace)
    time.sleep(TICK)
    with suppress(PowerCut), Workspace.open(root, CutDisk(changes)) as workspace:
        act(workspace)
    assert files_after_reboot(root) == (files(copy), [])


def test_files_of_a_call_that_were_all_lost_are_created_again(root: Path) -> None:
    (root / "src").mkdir()
    with recorded_before_power_cut(root) as later:
        create_several(later)
        write_in_new_folders(later)
    found, reported = files_after_reboot(root)
    assert (len(found), reported) == (7, [])


def write_recorded_at(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, moment: int, path: str) -> None:
    """Create a file in a call whose record has the given time, in microseconds."""
    monkeypatch.setattr("objstore.calls.edit_recorder.now", lambda: moment)
    write(workspace, path, b"new\n")


def test_record_with_a_time_ahead_excludes_no_earlier_call_from_recovery(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = time.time_ns() // 1000
    with recorded_before_power_cut(root) as later:
        write_recorded_at(later, monkeypatch, present, "before")
        write_recorded_at(later, monkeypatch, present + DAY, "ahead")
    found, reported = files_after_reboot(root)
    assert (set(found), reported) == ({"before", "ahead"}, [])


def test_recovery_covers_the_ten_minutes_before_the_last_call(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = time.time_ns() // 1000
    with recorded_before_power_cut(root) as later:
        write_recorded_at(later, monkeypatch, first, "outside")
        write_recorded_at(later, monkeypatch, first + 1, "inside")
        write_recorded_at(later, monkeypatch, first + 1 + TEN_MINUTES, "last")
    monkeypatch.setattr("objstore.recovery.unfinished_steps.now", lambda: first + 1 + TEN_MINUTES)
    found, reported = files_after_reboot(root)
    assert (set(found), reported) == ({"inside", "last"}, ["outside"])


@pytest.mark.parametrize("left", [LONG[:700] + bytes(11), LONG[:512], bytes(11)], ids=["zeros", "sectors", "all zeros"])
def test_partly_written_file_is_completed_after_a_reboot(root: Path, left: bytes) -> None:
    with recorded_before_power_cut(root) as later:
        (root / "f").write_bytes(left)
        write(later, "f", LONG)
    assert files_after_reboot(root) == ({"f": (LONG, 0o644)}, [])


# ---- what finishes it is cut off itself


def write_in_several_calls(workspace: Workspace) -> None:
    for number in range(3):
        write(workspace, f"src/new{number}", b"new\n")


def move_file(workspace: Workspace) -> None:
    with workspace.call(INFO) as call:
        call.move("src/old", "src/moved")
        call.commit()


def replace_file_by_folder(workspace: Workspace) -> None:
    with workspace.call(INFO) as call:
        call.delete("src/old")
        call.commit()
    write(workspace, "src/old/inside", b"new\n")


def rewrite_in_place(workspace: Workspace) -> None:
    change(workspace, ("two", LONG), ("src/new", b"new\n"))


def lose_changes(root: Path, act: Callable[[Workspace], None]) -> tuple[dict[str, tuple[bytes, int]], dict[str, int]]:
    """Let a power cut take everything that `act` did; return the files after it, and the current inodes."""
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        create_initial_files(workspace, act)
        if act is rewrite_in_place:
            write(workspace, "two", b"two\n")
            (root / "other").hardlink_to(root / "two")
    time.sleep(TICK)
    with recorded_before_power_cut(root) as later:
        act(later)
        wanted = files(Path(later.root))
    if act is rewrite_in_place:
        wanted["other"] = wanted["two"]
    time.sleep(TICK)  # what changes from here on was changed after the calls
    return wanted, {str(path.relative_to(root)): path.stat().st_ino for path in root.rglob("*")}


def interrupt_recovery(root: Path, disk: CountdownDisk) -> None:
    """Let the next process be interrupted by its disk."""
    with suppress(PowerCut, CasError):
        Workspace.open(root, disk).close()


ACTS: Final = [
    create_several,
    write_in_several_calls,
    write_in_new_folders,
    edit_and_create,
    swap_files,
    move_file,
    replace_file_by_folder,
    rewrite_in_place,
    decide_two,
]


def steps_to_interrupt(tmp_path: Path, act: Callable[[Workspace], None]) -> range:
    """Return after how many operations of a disk to end the process that completes the calls."""
    disk = DiskAfterReboot()
    lose_changes(tmp_path / "whole", act)
    interrupt_recovery(tmp_path / "whole", disk)
    return sampled_steps(len(disk.done))


INTERRUPTIONS: Final = {"killed": (1, None), "power fails again": (2, 0.5)}
"""Number of the boot after which the next process runs, and which share of a write lands."""


@pytest.mark.parametrize(("act", "interruption"), sampled_product(ACTS, list(INTERRUPTIONS)))
def test_an_interrupted_recovery_is_completed_by_the_next_process(
    tmp_path: Path, act: Callable[[Workspace], None], interruption: str
) -> None:
    then, torn = INTERRUPTIONS[interruption]
    for step in steps_to_interrupt(tmp_path, act):
        root = tmp_path / str(step)
        wanted, inodes = lose_changes(root, act)
        disk = DiskAfterReboot(1, step, torn=torn)
        interrupt_recovery(root, disk)
        steps_done = f"after {disk.done}: {disk.failed}"
        if act is move_file:
            assert {"src/old", "src/moved"} & files(root).keys(), steps_done
        assert files_after_reboot(root, then) == (wanted, []), steps_done
        if act is move_file:
            assert (root / "src" / "moved").stat().st_ino == inodes["src/old"], steps_done
        assert disk.failed == "remove_store_file" or not (root / ".cas" / RECOVERY_NOTE_NAME).exists(), steps_done


@pytest.mark.parametrize(("act", "failure"), sampled_product(ACTS, [full_disk, broken_disk]))
def test_steps_that_a_failing_disk_blocked_are_completed_when_it_works(
    tmp_path: Path, act: Callable[[Workspace], None], failure: Callable[[str], BaseException]
) -> None:
    for step in steps_to_interrupt(tmp_path, act):
        root = tmp_path / str(step)
        wanted, _ = lose_changes(root, act)
        disk = DiskAfterReboot(1, step, failure)
        interrupt_recovery(root, disk)
        assert files_after_reboot(root) == (wanted, []), f"after {disk.done}: {disk.failed}"


def test_files_that_one_process_completed_are_not_durable_for_another(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    wanted, _ = lose_changes(root, write_in_several_calls)
    interrupt_recovery(root, CutAtTheMark())
    assert files(root) == wanted
    with Workspace.open(root, DiskAfterReboot()):
        assert not (root / ".cas" / DURABLE_HORIZON_NAME).exists()


def interrupted_with_note(tmp_path: Path) -> tuple[Path, bytes, dict[str, tuple[bytes, int]]]:
    """Return a workspace with unfinished calls, the recovery note about them, and the files as they should be."""
    root = tmp_path / "workspace"
    wanted, _ = lose_changes(root, write_in_several_calls)
    interrupt_recovery(root, CutNext(1))
    assert files(root).keys() < wanted.keys()
    return root, (root / ".cas" / RECOVERY_NOTE_NAME).read_bytes(), wanted


def test_file_deleted_by_a_person_stays_deleted_despite_an_old_recovery_note(tmp_path: Path) -> None:
    root, note, wanted = interrupted_with_note(tmp_path)
    files_after_reboot(root)
    (root / ".cas" / RECOVERY_NOTE_NAME).write_bytes(note)  # a newer process doesn't know the restored note
    time.sleep(TICK)
    (root / "src" / "new2").unlink()
    del wanted["src/new2"]
    assert files_after_reboot(root, 2) == (wanted, ["src/new2"])
    assert not (root / ".cas" / RECOVERY_NOTE_NAME).exists()


def test_persons_file_at_the_path_of_an_unfinished_step_is_kept(tmp_path: Path) -> None:
    root, _, wanted = interrupted_with_note(tmp_path)
    (root / "src" / "new2").write_bytes(b"mine\n")
    assert files_after_reboot(root) == (wanted | {"src/new2": (b"mine\n", 0o644)}, ["src/new2"])


@pytest.mark.parametrize("damage", ["cut short", "a bit", "trailing", "another mark", "outside", "not sorted", "types"])
def test_invalid_recovery_note_is_ignored(tmp_path: Path, damage: str) -> None:
    root, note, _ = interrupted_with_note(tmp_path)
    mark = (root / ".cas" / "applied").read_bytes()
    due = decoded(note, mark)
    assert set(due) == {b"src/new0", b"src/new1", b"src/new2"}
    assert encoded(mark, due) == note
    body = unpack(note[40:])
    steps = body["steps"]
    assert isinstance(steps, list)
    match damage:
        case "cut short":
            note = note[:-1]
        case "a bit":
            note = note[:-1] + bytes([note[-1] ^ 1])
        case "trailing":
            note += b"\0"
        case "another mark":
            note = encoded(bytes(32), due)
        case "outside":
            note = encoded(mark, {b"../there": (None, None)})
        case "not sorted":
            note = encode_note({**body, "steps": steps[::-1]})
        case _:
            note = encode_note({**body, "steps": [True, [], "text", {}]})
    assert decoded(note, mark) == {}
    (root / ".cas" / RECOVERY_NOTE_NAME).write_bytes(note)
    left = files(root)
    assert files_after_reboot(root) == (left, ["src/new1", "src/new2"])
    assert not (root / ".cas" / RECOVERY_NOTE_NAME).exists()


def test_recovery_note_is_durable_before_any_file_changes(tmp_path: Path) -> None:
    lose_changes(tmp_path / "workspace", write_in_several_calls)
    disk = DiskAfterReboot()
    interrupt_recovery(tmp_path / "workspace", disk)
    noting = disk.done[disk.done.index("replace") : disk.done.index("rename_new")]
    assert "sync_directory" in noting


def test_folder_at_the_path_of_the_recovery_note_does_not_stop_recovery(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    wanted, _ = lose_changes(root, write_in_several_calls)
    (root / ".cas" / RECOVERY_NOTE_NAME).mkdir()
    assert files_after_reboot(root) == (wanted, [])


def encode_note(body: dict[str, Value]) -> bytes:
    packed = encode(body)
    return b"casdue01" + blob_id(packed) + packed


# ---- what is not of this place


@pytest.fixture
def store_elsewhere(root: Path, tmp_path: Path) -> tuple[Path, Path, Path]:
    """Return a workspace, a folder with its files as they were before, and a bundle of it."""
    older = tmp_path / "older"
    (root / "s").mkdir()
    (root / "f").write_bytes(b"version 1\n")
    (root / "gone").write_bytes(b"kept\n")
    shutil.copytree(root, older, ignore=lambda _, names: {".cas"} & set(names))
    time.sleep(TICK)
    with open_workspace(root) as workspace:
        with workspace.call(INFO) as call:
            call.write("f", b"version 2\n")
            call.delete("gone")
            call.write("s/new", b"new\n")
            call.write("bin/tool", b"#!/bin/sh\n", mode=0o4755)
            call.commit()
        workspace.transfer.export_bundle(str(tmp_path / "bundle"))
    return root, older, tmp_path / "bundle"


CHANGED_ELSEWHERE: Final = ["bin/tool", "f", "gone", "s/new"]


@pytest.mark.parametrize("seconds", [0, 3600], ids=["clocks agree", "clock was ahead"])
def test_store_copied_without_its_files_creates_none(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    older = tmp_path / "older"
    (root / "f").write_bytes(b"version 1\n")
    shutil.copytree(root, older, ignore=lambda _, names: {".cas"} & set(names))
    monkeypatch.setattr("objstore.calls.edit_recorder.now", lambda: (time.time_ns() // 1000) + seconds * 1_000_000)
    with open_workspace(root) as workspace:
        with workspace.call(INFO) as call:
            call.write("f", b"version 2\n")
            call.write("bin/tool", b"#!/bin/sh\n", mode=0o4755)
            call.commit()
        workspace.transfer.export_bundle(str(tmp_path / "bundle"))
    import_bundle(str(tmp_path / "bundle"), str(older), files=False, disk=CountdownDisk(None))
    found, reported = files_after_reboot(older)
    assert (found, sorted(reported)) == ({"f": (b"version 1\n", 0o644)}, ["bin/tool", "f"])


def test_store_copied_next_to_older_files_leaves_them_unchanged(store_elsewhere: tuple[Path, Path, Path]) -> None:
    root, older, _ = store_elsewhere
    left = files(older)
    shutil.copytree(root / ".cas", older / ".cas")
    found, reported = files_after_reboot(older)
    assert (found, sorted(reported)) == (left, CHANGED_ELSEWHERE)


def test_edits_recorded_after_an_import_are_recovered(store_elsewhere: tuple[Path, Path, Path]) -> None:
    _, older, bundle = store_elsewhere
    import_bundle(str(bundle), str(older), files=False, disk=CountdownDisk(None))
    with recorded_before_power_cut(older) as later:
        write(later, "own", b"own\n")
    assert files_after_reboot(older)[0]["own"] == (b"own\n", 0o644)


# ---- what one start has found is not asked of the next


def test_files_found_after_one_boot_are_not_lost_in_the_next(root: Path) -> None:
    with open_workspace(root) as workspace:
        write(workspace, "f", LONG)
    files_after_reboot(root, 1)
    (root / "f").write_bytes(b"")
    os.utime(root / ".cas" / "applied")  # regardless of the time of the applied marker
    assert files_after_reboot(root, 2) == ({"f": (b"", 0o644)}, ["f"])


def test_files_completed_after_one_boot_may_be_lost_in_the_next(root: Path) -> None:
    with recorded_before_power_cut(root) as later:
        write(later, "f", LONG)
    files_after_reboot(root, 1)
    (root / "f").write_bytes(b"")
    os.utime(root / ".cas" / "applied")
    assert files_after_reboot(root, 2) == ({"f": (LONG, 0o644)}, [])


class DiskWithoutMarker(DiskAfterReboot):
    """A disk that can't write the applied marker."""

    def overwrite(self, fd: int, content: bytes, offset: int, name: str) -> None:
        if name == "applied":
            raise broken_disk(name)
        super().overwrite(fd, content, offset, name)


def test_records_since_a_boot_are_not_durable_if_the_marker_can_not_be_written(root: Path) -> None:
    with open_workspace(root) as workspace:
        write(workspace, "before", LONG)
    with recorded_before_power_cut(root) as later:
        for name in ("a", "b", "c"):
            with Workspace.open(later.root, DiskWithoutMarker()) as workspace:
                write(workspace, name, LONG)
    assert files_after_reboot(root, 2) == (dict.fromkeys(("before", *"abc"), (LONG, 0o644)), [])


def failing_open(code: int) -> Callable[[str, int], int]:
    def refusing(_path: str, _flags: int) -> int:
        raise OSError(code, os.strerror(code))

    return refusing


def open_write_only(path: str, _flags: int) -> int:
    return open_store_file(path, os.O_WRONLY)


@pytest.mark.parametrize(
    "opening",
    [*map(failing_open, (errno.EACCES, errno.EIO, errno.EMFILE)), open_write_only],
    ids=["may not", "broken", "too many", "not to be read"],
)
def test_unreadable_applied_marker_counts_as_one_of_an_earlier_boot(
    root: Path, monkeypatch: pytest.MonkeyPatch, opening: Callable[[str, int], int]
) -> None:
    with open_workspace(root) as workspace:
        write(workspace, "f", b"one\n")

    def open_file(path: str, flags: int) -> int:
        return (opening if path.endswith("applied") else open_store_file)(path, flags)

    with monkeypatch.context() as patched:
        patched.setattr("objstore.recovery.applied_marker.open_store_file", open_file)
        for text in (b"two\n", b"three\n"):
            with open_workspace(root) as workspace:
                write(workspace, "f", text)
                assert workspace.review.external_changes() == ()
    with open_workspace(root) as workspace:
        assert (files(root), workspace.review.external_changes()) == ({"f": (b"three\n", 0o644)}, ())


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"\xff" * 80, bytes(80)])
def test_invalid_durable_horizon_is_ignored(root: Path, damage: bytes) -> None:
    with recorded_before_power_cut(root) as later:
        write(later, "f", LONG)
    (root / ".cas" / DURABLE_HORIZON_NAME).write_bytes(damage)
    assert files_after_reboot(root) == ({"f": (LONG, 0o644)}, [])
