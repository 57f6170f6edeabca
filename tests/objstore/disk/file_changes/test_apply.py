"""Test that files change between recorded states together, and that bytes of other writers are kept."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from objstore.disk.file_changes.apply import FileStep, Transition
from objstore.disk.fs.confined_path import Tree
from objstore.disk.fs.disk import Disk, Pieces
from objstore.disk.fs.file_state import disk_state
from objstore.disk.fs.stat_signature import read_signature_fields
from objstore.model.basic_types import LINK_MODE, FileState
from objstore.model.ids import BlobId, blob_id
from objstore.values.errors import (
    CallAborted,
    CasError,
    DiskFailed,
    FileChanged,
    FileExists,
    NamesShared,
    PathIsDirectory,
    PathIsSymlink,
    PathNotRegular,
    PathReserved,
    PermissionRefused,
    Unacknowledged,
)
from tests.support.crash_scenarios import Files, files
from tests.support.faulty_disk import CountdownDisk, broken_disk
from tests.support.path_sandbox import as_unprivileged_user

State: TypeAlias = tuple[bytes, int] | None


class Desk:
    """A folder of files, and the blobs that the steps refer to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / ".cas").mkdir()
        (root / ".cas").chmod(0o777)
        self._scratch = os.open(root / ".cas", os.O_RDONLY | os.O_DIRECTORY)
        self.tree = Tree(root)
        self._blobs: dict[BlobId, bytes] = {}
        self.made: set[bytes] = set()  # folders that edits made
        self.were_files: set[bytes] = set()  # paths at which recorded files were

    def close(self) -> None:
        self.tree.close()
        os.close(self._scratch)

    def put(self, path: str, content: bytes, mode: int = 0o644) -> Path:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(content)
        (self.root / path).chmod(mode)
        return self.root / path

    def state(self, state: State) -> FileState | None:
        if state is None:
            return None
        name = blob_id(state[0])
        self._blobs[name] = state[0]
        return FileState(blob=name, mode=state[1])

    def pieces(self, name: BlobId) -> bytes:
        return self._blobs[name]

    def cached_bytes(self, _: BlobId) -> bytes | None:
        return None  # everything is read back by its hash

    def step(self, path: str, before: State, after: State, moved_from: str | None = None) -> FileStep:
        return FileStep(
            path=path.encode(),
            before=self.state(before),
            after=self.state(after),
            moved_from=None if moved_from is None else moved_from.encode(),
        )

    def run(
        self,
        *steps: FileStep,
        disk: Disk | None = None,
        looked: Mapping[bytes, os.stat_result] | None = None,
        between: Callable[[], object] = lambda: None,
    ) -> None:
        """Prepare and run; `between` happens after the check and before anything changes."""
        with self.transition(*steps, disk=disk, looked=looked) as transition:
            transition.prepare()
            between()
            transition.run()

    def transition(
        self, *steps: FileStep, disk: Disk | None = None, looked: Mapping[bytes, os.stat_result] | None = None
    ) -> Transition:
        return Transition(
            self.tree,
            disk or Disk(),
            steps,
            self,
            scratch=self._scratch,
            seen=looked,
            was_created=self.made.__contains__,
            was_file=self.were_files.__contains__,
            was_emptied=self.made.__contains__,
        )

    @property
    def files(self) -> Files:
        return files(self.root)

    @property
    def staged(self) -> list[str]:
        return [path.name for path in self.root.rglob(".cas-*")]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    assert desk.staged == []
    desk.close()


ONE: Final = (b"one\n", 0o644)
TWO: Final = (b"two\n", 0o644)
TOOL: Final = (b"two\n", 0o755)


# ---- what it does


def test_a_file_is_created_with_its_folders_and_its_mode(desk: Desk) -> None:
    desk.run(desk.step("new/folder/a", None, TOOL), desk.step("new/folder/b", None, ONE), desk.step("c", None, ONE))
    assert desk.files == {"new/folder/a": TOOL, "new/folder/b": ONE, "c": ONE}


def test_a_change_of_mode_alone_touches_no_byte(desk: Desk) -> None:
    path = desk.put("a", *TWO)
    before = path.stat()
    desk.run(desk.step("a", TWO, TOOL))
    assert desk.files == {"a": TOOL}
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_mode_bits_that_the_umask_excludes_are_kept(desk: Desk) -> None:
    desk.put("a", b"one\n", 0o666)
    desk.run(desk.step("a", (b"one\n", 0o666), (b"two\n", 0o777)), desk.step("b", None, (b"b", 0o666)))
    assert desk.files == {"a": (b"two\n", 0o777), "b": (b"b", 0o666)}


def test_moved_file_keeps_its_inode(desk: Desk) -> None:
    inode = desk.put("a", *ONE).stat().st_ino
    desk.run(desk.step("a", ONE, None), desk.step("folder/b", None, ONE, moved_from="a"))
    assert desk.files == {"folder/b": ONE}
    assert (desk.root / "folder" / "b").stat().st_ino == inode


def test_two_files_can_swap_paths(desk: Desk) -> None:
    desk.put("a", *ONE)
    desk.put("b", *TOOL)
    desk.run(desk.step("a", ONE, TOOL), desk.step("b", TOOL, ONE))
    assert desk.files == {"a": TOOL, "b": ONE}


def test_a_step_that_changes_nothing_touches_nothing(desk: Desk) -> None:
    before = read_signature_fields(desk.put("a", *ONE).stat())
    disk = CountdownDisk(None)
    desk.run(desk.step("a", ONE, ONE), disk=disk)
    assert disk.done == []
    assert read_signature_fields((desk.root / "a").stat()) == before


def test_all_hard_links_show_the_new_bytes(desk: Desk) -> None:
    path = desk.put("a", *ONE)
    (desk.root / "same").hardlink_to(path)
    for content in (b"much longer than before\n", b"", b"x"):
        before = path.read_bytes()
        desk.run(desk.step("a", (before, 0o644), (content, 0o644)))
        assert desk.files == {"a": (content, 0o644), "same": (content, 0o644)}
        assert (desk.root / "same").samefile(path)


def linked(desk: Desk, *names: str, state: tuple[bytes, int] = ONE) -> None:
    first = desk.put(names[0], *state)
    for name in names[1:]:
        (desk.root / name).parent.mkdir(parents=True, exist_ok=True)
        (desk.root / name).hardlink_to(first)


def inodes(desk: Desk) -> dict[str, int]:
    return {name: (desk.root / name).lstat().st_ino for name in desk.files}


def test_hard_links_are_changed_together(desk: Desk) -> None:
    linked(desk, "a", "folder/b", "c", "not named")
    before = inodes(desk)
    desk.run(*(desk.step(name, ONE, TOOL) for name in ("a", "folder/b", "c")))
    assert desk.files == dict.fromkeys(["a", "folder/b", "c", "not named"], TOOL)
    assert inodes(desk) == before


def test_some_hard_links_can_be_deleted_while_others_are_changed(desk: Desk) -> None:
    linked(desk, "a", "b", "c", "d")
    desk.run(desk.step("a", ONE, None), desk.step("b", ONE, TWO), desk.step("c", ONE, TWO), desk.step("d", ONE, None))
    assert desk.files == {"b": TWO, "c": TWO}
    assert (desk.root / "b").samefile(desk.root / "c")


def test_all_hard_links_can_be_deleted_together(desk: Desk) -> None:
    linked(desk, "a", "b")
    desk.run(desk.step("a", ONE, None), desk.step("b", ONE, None))
    assert desk.files == {}


def test_one_hard_link_can_move_while_another_is_deleted(desk: Desk) -> None:
    linked(desk, "a", "b", "c")
    desk.run(desk.step("a", ONE, None), desk.step("b", ONE, None), desk.step("new", None, ONE, moved_from="b"))
    assert desk.files == {"c": ONE, "new": ONE}
    assert (desk.root / "c").samefile(desk.root / "new")


@pytest.mark.parametrize("other", [(b"three\n", 0o644), TOOL], ids=["bytes", "mode"])
def test_different_states_for_hard_links_are_refused(desk: Desk, other: tuple[bytes, int]) -> None:
    linked(desk, "a", "b")
    before = (desk.root / "a").stat().st_ctime_ns
    with pytest.raises(NamesShared, match=r"b and a are two names of one file \(hard links\)"):
        desk.run(desk.step("a", ONE, TWO), desk.step("b", ONE, other))
    assert (desk.root / "a").stat().st_ctime_ns == before  # its access time may differ
    assert desk.files == {"a": ONE, "b": ONE}


def test_moved_hard_link_does_not_get_the_bytes_of_another(desk: Desk) -> None:
    linked(desk, "a", "b")
    with pytest.raises(NamesShared):
        desk.run(desk.step("a", ONE, TWO), desk.step("b", ONE, None), desk.step("c", None, ONE, moved_from="b"))
    assert desk.files == {"a": ONE, "b": ONE}


def test_concurrent_write_through_a_hard_link_is_kept(desk: Desk) -> None:
    linked(desk, "a", "b")
    with pytest.raises(CallAborted):
        desk.run(
            desk.step("a", ONE, TWO),
            desk.step("b", ONE, TWO),
            between=lambda: (desk.root / "b").write_bytes(b"mine\n"),
        )
    assert desk.files == dict.fromkeys("ab", (b"mine\n", 0o644))


def test_only_named_files_are_touched(desk: Desk) -> None:
    desk.put("a", *ONE)
    others = [desk.put(name, *ONE) for name in ("b", ".git/config", "folder/c")]
    before = [path.stat() for path in others]
    desk.run(desk.step("a", ONE, TWO))
    assert [path.stat() for path in others] == before


def test_the_log_is_written_after_staging_and_before_files_change(desk: Desk) -> None:
    desk.put("a", *ONE)
    seen: list[Files] = []
    disk = CountdownDisk(None)
    desk.run(desk.step("a", ONE, TWO), disk=disk, between=lambda: seen.append(desk.files))
    assert seen == [{"a": ONE}]
    assert disk.done == ["stage", "sync_staged", "exchange", "unlink", "sync_folder"]


def test_file_is_replaced_by_rename_if_exchange_is_unsupported(desk: Desk) -> None:
    class WithoutExchange(Disk):
        def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
            del source_directory, source, directory, name
            return False

    desk.put("a", *ONE)
    desk.run(desk.step("a", ONE, TWO), disk=WithoutExchange())
    assert desk.files == {"a": TWO}


# ---- what it refuses, with nothing changed


@pytest.mark.parametrize(
    ("prepare", "error"),
    [
        (lambda desk: desk.put("a", b"other\n"), FileChanged),
        (lambda desk: desk.root, FileChanged),
        (lambda desk: (desk.root / "a").symlink_to("b"), PathIsSymlink),
        (lambda desk: (desk.root / "a").mkdir(), PathIsDirectory),
        (lambda desk: os.mkfifo(desk.root / "a"), PathNotRegular),
    ],
    ids=["other bytes", "no file", "link", "folder", "FIFO"],
)
def test_file_that_differs_from_its_recorded_state_is_left_unchanged(
    desk: Desk, prepare: Callable[[Desk], object], error: type[CasError]
) -> None:
    desk.put("b", *ONE)
    prepare(desk)
    names = sorted(path.name for path in desk.root.iterdir())
    with pytest.raises(error):
        desk.run(desk.step("b", ONE, TWO), desk.step("a", ONE, TWO))
    assert sorted(path.name for path in desk.root.iterdir()) == names
    assert (desk.root / "b").read_bytes() == b"one\n"


def test_hard_link_to_a_file_of_the_store_is_refused(desk: Desk) -> None:
    stored = desk.put(".cas/segments/1", *ONE)
    (desk.root / "a").hardlink_to(stored)
    before = stored.stat().st_ctime_ns
    for steps in (
        [desk.step("a", ONE, TWO)],
        [desk.step("a", ONE, TOOL)],
        [desk.step("a", ONE, None)],
        [desk.step("a", ONE, None), desk.step("b", None, ONE, moved_from="a")],
    ):
        with pytest.raises(PathReserved):
            desk.run(*steps)
    assert (desk.files, stored.stat().st_ctime_ns) == ({"a": ONE}, before)


@pytest.mark.parametrize("obstacle", [lambda path: path.write_bytes(b"mine\n"), lambda path: path.mkdir()])
def test_creation_at_an_existing_path_is_refused(desk: Desk, obstacle: Callable[[Path], object]) -> None:
    obstacle(desk.root / "a")
    with pytest.raises(FileExists):
        desk.run(desk.step("a", None, ONE))


def test_a_folder_that_has_become_a_link_is_refused(desk: Desk) -> None:
    desk.put("other/a", *ONE)
    (desk.root / "folder").symlink_to("other")
    with pytest.raises(FileChanged):
        desk.run(desk.step("folder/a", ONE, TWO))
    assert desk.files == {"folder": (b"other", LINK_MODE), "other/a": ONE}


def test_a_file_that_changed_since_it_was_inspected_is_refused(desk: Desk) -> None:
    path = desk.put("a", *ONE)
    looked = path.stat()
    os.utime(path, ns=(1, 1))
    with pytest.raises(FileChanged):
        desk.run(desk.step("a", ONE, TWO), looked={b"a": looked})
    assert desk.files == {"a": ONE}


@pytest.mark.parametrize("locked", ["file", "folder"])
def test_a_file_without_write_permission_is_refused_as_such(desk: Desk, locked: str) -> None:
    desk.root.chmod(0o755)
    path = desk.put("folder/a", b"one\n", 0o444 if locked == "file" else 0o666)
    path.parent.chmod(0o777 if locked == "file" else 0o555)
    before = (b"one\n", stat.S_IMODE(path.stat().st_mode))
    with as_unprivileged_user(), pytest.raises(PermissionRefused):
        desk.run(desk.step("folder/a", before, (b"two\n", before[1])))
    assert desk.files == {"folder/a": before}


def test_paths_that_can_not_be_changed_are_reported_one_by_one(desk: Desk) -> None:
    desk.root.chmod(0o777)
    for path in ("a", "folder/b", "c"):
        desk.put(path, b"one\n", 0o666)
    (desk.root / "folder").chmod(0o555)
    (desk.root / "c").write_bytes(b"a person's\n")
    with as_unprivileged_user():
        steps = [desk.step(path, (b"one\n", 0o666), (b"two\n", 0o666)) for path in ("a", "folder/b", "c")]
        with desk.transition(*steps) as transition:
            assert transition.refused() == {b"folder/b", b"c"}


# ---- what comes between the look and the change


@pytest.mark.parametrize(
    "act",
    [
        lambda path: path.write_bytes(b"mine\n"),
        lambda path: path.unlink(),
        lambda path: (path.parent / "mine").rename(path),
        lambda path: (path.unlink(), path.symlink_to("b")),
    ],
    ids=["written", "deleted", "replaced", "made a link"],
)
def test_concurrent_change_of_a_file_is_kept(desk: Desk, act: Callable[[Path], object]) -> None:
    desk.put("b", *ONE)
    path = desk.put("a", *ONE)
    desk.put("mine", b"mine\n")
    theirs: list[tuple[Files, bool]] = []

    def between() -> None:
        act(path)
        theirs.append((desk.files, path.is_symlink()))

    with pytest.raises(CallAborted):
        desk.run(desk.step("b", ONE, TWO), desk.step("a", ONE, TWO), between=between)
    assert (desk.files, path.is_symlink()) == theirs[0]


def test_concurrently_created_file_is_kept(desk: Desk) -> None:
    desk.put("b", *ONE)
    with pytest.raises(CallAborted):
        desk.run(desk.step("b", ONE, TWO), desk.step("z", None, ONE), between=lambda: desk.put("z", b"mine\n"))
    assert desk.files == {"b": ONE, "z": (b"mine\n", 0o644)}


def test_folder_used_concurrently_is_not_replaced_and_keeps_its_empty_folders(desk: Desk) -> None:
    (desk.root / "d/empty").mkdir(parents=True)
    desk.made |= {b"d", b"d/empty"}
    with pytest.raises(CallAborted):
        desk.run(desk.step("d", None, ONE), between=lambda: desk.put("d/mine", b"mine\n"))
    assert desk.files == {"d/mine": (b"mine\n", 0o644)}
    assert (desk.root / "d/empty").is_dir()


def test_folder_that_contains_an_unrecorded_folder_is_not_replaced(desk: Desk) -> None:
    (desk.root / "d/theirs").mkdir(parents=True)
    desk.made.add(b"d")
    with pytest.raises(FileExists):
        desk.run(desk.step("d", None, ONE))
    assert (desk.root / "d/theirs").is_dir()


def test_roll_back_keeps_a_file_created_at_the_path_of_a_removed_folder(desk: Desk) -> None:
    desk.put("d/x", *ONE)
    desk.made.add(b"d")

    class PathTaken(Disk):
        """A disk on which another process puts a file in place of the folder, and which then fails."""

        def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:  # noqa: ARG002 - fails
            (desk.root / "d").rmdir()
            desk.put("d", b"mine\n")
            raise DiskFailed(name, "the disk failed")

    with pytest.raises(CallAborted):
        desk.run(desk.step("d/x", ONE, None), desk.step("new", None, TWO), disk=PathTaken())
    assert desk.files == {"d": (b"mine\n", 0o644)}


def test_roll_back_keeps_the_mode_of_a_file_that_replaced_a_changed_one(desk: Desk) -> None:
    desk.put("a", *ONE)
    desk.put("b", *ONE)

    class WriteBeforeExchange(Disk):
        """A disk on which another process replaces the first file by one of the same mode, and which then fails."""

        def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:  # noqa: ARG002 - fails
            desk.put("theirs", b"theirs\n", 0o755).replace(desk.root / "a")
            raise broken_disk(name)

    with pytest.raises(CallAborted):
        desk.run(desk.step("a", ONE, (ONE[0], 0o755)), desk.step("b", ONE, TWO), disk=WriteBeforeExchange())
    assert desk.files == {"a": (b"theirs\n", 0o755), "b": ONE}


def test_bytes_written_just_before_the_exchange_are_restored(desk: Desk) -> None:
    path = desk.put("a", *ONE)

    class WriteBeforeExchange(Disk):
        """A disk on which another process writes to the file after it was last inspected."""

        overtaken = False

        def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
            if not self.overtaken:
                path.write_bytes(b"mine, in the last moment\n")
            self.overtaken = True
            return super().exchange(source_directory, source, directory, name)

    desk.put("b", *ONE)
    with pytest.raises(CallAborted) as aborted:
        desk.run(desk.step("a", ONE, TWO), desk.step("b", ONE, TWO), disk=WriteBeforeExchange())
    assert aborted.value.path == "a"
    assert desk.files == {"a": (b"mine, in the last moment\n", 0o644), "b": ONE}


# ---- failures on the way


def steps_of_every_kind(desk: Desk) -> tuple[FileStep, ...]:
    desk.put("a", *ONE)
    desk.put("dead", *TOOL)
    desk.put("old", *TWO)
    desk.put("mode", *TWO)
    return (
        desk.step("a", ONE, TOOL),
        desk.step("dead", TOOL, None),
        desk.step("old", TWO, None),
        desk.step("kept/there", None, TOOL, moved_from="old"),
        desk.step("made/here", None, ONE),
        desk.step("mode", TWO, TOOL),
    )


FILES_AFTER_EVERY_KIND: Files = {
    "a": (b"two\n", 0o755),
    "kept/there": (b"two\n", 0o755),
    "made/here": (b"one\n", 0o644),
    "mode": (b"two\n", 0o755),
}


def test_steps_of_every_kind_are_applied_together(desk: Desk) -> None:
    desk.run(*steps_of_every_kind(desk))
    assert desk.files == FILES_AFTER_EVERY_KIND


def swapped_file_and_folder(desk: Desk) -> tuple[FileStep, ...]:
    desk.put("d/x", *ONE)
    desk.put("d/sub/y", *TWO)
    desk.put("z", *TOOL)
    desk.were_files.add(b"d")
    return (
        desk.step("d/x", ONE, None),
        desk.step("d/sub/y", TWO, None),
        desk.step("z", TOOL, None),
        desk.step("d", None, TOOL, moved_from="z"),
        desk.step("z/x", None, ONE, moved_from="d/x"),
        desk.step("z/sub/y", None, TWO, moved_from="d/sub/y"),
    )


FILES_AFTER_SWAP: Files = {"d": TOOL, "z/x": ONE, "z/sub/y": TWO}


SETS_ID: Final = (b"one\n", 0o6755)


def steps_with_set_id(desk: Desk) -> tuple[FileStep, ...]:
    for path in ("changes", "goes", "becomes plain", "moves", "stays"):
        desk.put(path, *SETS_ID)
    return (
        desk.step("changes", SETS_ID, (b"two\n", 0o6755)),
        desk.step("goes", SETS_ID, None),
        desk.step("becomes plain", SETS_ID, (b"one\n", 0o644)),
        desk.step("moves", SETS_ID, None),
        desk.step("new/place", None, SETS_ID, moved_from="moves"),
        desk.step("stays", SETS_ID, (b"one\n", 0o6711)),
        desk.step("z", None, SETS_ID),
    )


FILES_AFTER_SET_ID: Files = {
    "changes": TOOL,
    "becomes plain": ONE,
    "new/place": SETS_ID,
    "stays": (b"one\n", 0o6711),
    "z": (b"one\n", 0o755),
}


@pytest.mark.parametrize(
    ("act", "done"),
    [
        (steps_of_every_kind, FILES_AFTER_EVERY_KIND),
        (swapped_file_and_folder, FILES_AFTER_SWAP),
        (steps_with_set_id, FILES_AFTER_SET_ID),
    ],
    ids=["everything", "swapped", "setuid and setgid"],
)
def test_any_failure_restores_every_file(
    tmp_path: Path, act: Callable[[Desk], tuple[FileStep, ...]], done: Files
) -> None:
    step = 0
    while True:
        (tmp_path / str(step)).mkdir()
        desk = Desk(tmp_path / str(step))
        steps, before = act(desk), desk.files
        disk = CountdownDisk(step, broken_disk, lasting=False)
        try:
            desk.run(*steps, disk=disk)
        except (CallAborted, DiskFailed):
            assert desk.files == before, disk.done
        else:
            assert desk.files == done
        assert desk.staged == [], disk.done
        desk.close()
        if disk.failed is None:
            break
        step += 1
    assert step > len(steps)


def steps_with_hard_links(desk: Desk) -> tuple[FileStep, ...]:
    linked(desk, "a", "b")
    linked(desk, "goes", "stays", "outside")
    linked(desk, "last", "but one", state=TWO)
    linked(desk, "moved", "beside")
    linked(desk, "mode", "alike")
    return (
        desk.step("a", ONE, TOOL),
        desk.step("b", ONE, TOOL),
        desk.step("goes", ONE, None),
        desk.step("stays", ONE, TOOL),
        desk.step("last", TWO, None),
        desk.step("but one", TWO, ONE),
        desk.step("moved", ONE, None),
        desk.step("new/place", None, ONE, moved_from="moved"),
        desk.step("mode", ONE, (b"one\n", 0o600)),
        desk.step("z", None, ONE),
    )


FILES_AFTER_HARD_LINKS: Files = {
    "a": TOOL,
    "b": TOOL,
    "stays": TOOL,
    "outside": TOOL,
    "but one": ONE,
    "beside": ONE,
    "new/place": ONE,
    "mode": (b"one\n", 0o600),
    "alike": (b"one\n", 0o600),
    "z": ONE,
}


@pytest.mark.parametrize("torn", [None, 0.5], ids=["not begun", "half done"])
def test_any_failure_keeps_hard_links_together(tmp_path: Path, torn: float | None) -> None:
    step = 0
    while True:
        (tmp_path / str(step)).mkdir()
        desk = Desk(tmp_path / str(step))
        steps = steps_with_hard_links(desk)
        before, files_before = inodes(desk), desk.files
        disk = CountdownDisk(step, broken_disk, lasting=False, torn=torn)
        try:
            desk.run(*steps, disk=disk)
        except (CallAborted, DiskFailed):
            assert desk.files == files_before, disk.done
            assert inodes(desk) == before, disk.done
        else:
            assert desk.files == FILES_AFTER_HARD_LINKS
        # A name aside that can't be removed is cleared away with the rest by the next writer.
        assert desk.staged == [] or disk.failed == "unlink", disk.done
        desk.close()
        if disk.failed is None:
            break
        step += 1
    assert step > len(steps)


class AppendingDisk(CountdownDisk):
    """A disk on which another process appends a line to an open file before or after one operation."""

    def __init__(self, path: Path, at: int, *, after: bool) -> None:
        super().__init__(None)
        self._file: Final = path.open("ab", buffering=0)
        self._at: Final = at
        self._after: Final = after
        self.wrote = False

    def close(self) -> None:
        self._file.close()

    def _step(self, operation: str, name: str, tear: Callable[[float], None] | None = None) -> None:
        if not self._after:
            self._append()
        super()._step(operation, name, tear)

    def _append(self) -> None:
        if len(self.done) >= self._at and not self.wrote:
            self.wrote = True
            self._file.write(b"theirs\n")

    def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:
        super().rename_new(source_directory, source, directory, name)
        self._append()

    def chmod(self, directory: int, name: str, mode: int) -> None:
        super().chmod(directory, name, mode)
        self._append()

    def replace(self, source_directory: int, source: str, directory: int, name: str) -> None:
        super().replace(source_directory, source, directory, name)
        self._append()


def moved(desk: Desk) -> tuple[FileStep, ...]:
    desk.put("b", *ONE)
    return desk.step("a", ONE, None), desk.step("new/a", None, ONE, moved_from="a"), desk.step("z", None, ONE)


def moved_with_a_mode(desk: Desk) -> tuple[FileStep, ...]:
    return desk.step("a", ONE, None), desk.step("b", None, (b"one\n", 0o755), moved_from="a"), desk.step("z", None, ONE)


def given_a_mode(desk: Desk) -> tuple[FileStep, ...]:
    return desk.step("a", ONE, (b"one\n", 0o755)), desk.step("z", None, ONE)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("names", [("a",), ("a", "other"), ("a", "goes", "other")], ids=["one", "two", "three"])
@pytest.mark.parametrize("act", [moved, moved_with_a_mode, given_a_mode])
def test_bytes_appended_concurrently_to_a_moved_file_are_kept(
    tmp_path: Path,
    act: Callable[[Desk], tuple[FileStep, ...]],
    names: tuple[str, ...],
    after: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    for at in count(int(after)):
        (tmp_path / str(at)).mkdir()
        desk = Desk(tmp_path / str(at))
        linked(desk, *names)
        steps = (*act(desk), *(desk.step(name, ONE, None) for name in names if name == "goes"))
        before = inodes(desk)
        disk = AppendingDisk(desk.root / "a", at, after=after)
        try:
            desk.run(*steps, disk=disk)
        except CallAborted:
            assert inodes(desk) == before, disk.done
            assert {desk.files[name] for name in names} == {(b"one\ntheirs\n", 0o644)}, disk.done
        else:
            assert (b"one\ntheirs\n" in {content for content, _ in desk.files.values()}) is disk.wrote, disk.done
        disk.close()
        desk.close()
        if not disk.wrote:
            break
    assert at > 1


@pytest.mark.parametrize("why", ["taken", "disk"])
def test_a_file_that_can_not_be_moved_back_is_not_created_again_at_its_old_path(desk: Desk, why: str) -> None:
    class Failing(Disk):
        """A disk on which the old name is taken by another process, or which renames no more."""

        renamed = 0

        def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:
            self.renamed += 1
            if why == "disk" and self.renamed > 1:
                raise DiskFailed(name, "the disk failed")
            super().rename_new(source_directory, source, directory, name)
            if why == "taken":
                desk.put("a", b"mine\n")  # and somebody takes the old name
            desk.put("z", b"mine\n")

    inode = desk.put("a", *ONE).stat().st_ino
    with pytest.raises(Unacknowledged, match="b could not be restored"):
        desk.run(
            desk.step("a", ONE, None),
            desk.step("b", None, ONE, moved_from="a"),
            desk.step("z", None, ONE),
            disk=Failing(),
        )
    assert inodes(desk)["b"] == inode
    theirs = {"a": (b"mine\n", 0o644)} if why == "taken" else {}
    assert desk.files == {"b": ONE, "z": (b"mine\n", 0o644), **theirs}


def test_a_file_that_was_not_restored_is_not_reported_as_restored(desk: Desk) -> None:
    class ShortWrites(Disk):
        """A disk that reports success and writes less each time."""

        written = 0

        def rewrite(self, directory: int, name: str, content: Pieces) -> None:
            self.written += 1
            assert isinstance(content, bytes)
            super().rewrite(directory, name, content[: -self.written])

    linked(desk, "a", "b")
    with pytest.raises(Unacknowledged, match="a could not be restored"):
        desk.run(desk.step("a", ONE, TWO), disk=ShortWrites())


def test_a_failed_roll_back_leaves_no_staged_file(desk: Desk) -> None:
    class Failing(Disk):
        """A disk that exchanges only the first file."""

        exchanged = False

        def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
            if self.exchanged:
                raise DiskFailed(name, "the disk failed")
            self.exchanged = super().exchange(source_directory, source, directory, name)
            return self.exchanged

        def replace(self, source_directory: int, source: str, directory: int, name: str) -> None:
            del source_directory, source, directory
            raise DiskFailed(name, "the disk failed")

    desk.put("src/a", *ONE)
    desk.put("src/b", *ONE)
    with pytest.raises(Unacknowledged, match="src/a could not be restored"):
        desk.run(desk.step("src/a", ONE, TWO), desk.step("src/b", ONE, TWO), disk=Failing())
    assert desk.files == {"src/a": TWO, "src/b": ONE}


def test_a_file_that_differs_from_what_was_written_is_a_failure(desk: Desk) -> None:
    class ShortWrites(Disk):
        """A disk that reports success without writing everything."""

        def stage(self, directory: int, content: Pieces, like: os.stat_result | None, mode: int, name: str) -> str:
            assert isinstance(content, bytes)
            return super().stage(directory, content[:-1], like, mode, name)

    desk.put("a", *ONE)
    with pytest.raises(CallAborted):
        desk.run(desk.step("a", ONE, TWO), disk=ShortWrites())


# ---- looking


def test_the_file_at_a_path_is_returned_as_a_state(desk: Desk) -> None:
    desk.put("a", *TOOL)
    found = disk_state(desk.tree, b"a")
    assert found is not None
    assert found[0] == desk.state(TOOL)
    assert disk_state(desk.tree, b"gone") is None
    assert disk_state(desk.tree, b"no/folder/here") is None


def test_a_link_is_a_state_and_what_is_behind_it_is_none(desk: Desk) -> None:
    desk.put("folder/a", *ONE)
    (desk.root / "link").symlink_to("folder")
    found = disk_state(desk.tree, b"link")
    assert found is not None
    assert found[0] == FileState(blob=blob_id(b"folder"), mode=LINK_MODE)
    with pytest.raises(FileChanged):
        disk_state(desk.tree, b"link/a")


def test_a_folder_that_replaced_a_created_one_is_not_removed(desk: Desk) -> None:
    made, another = desk.root / "sub", desk.root / "another"
    another.mkdir()

    class Swapped(Disk):
        def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:  # noqa: ARG002 - fails
            made.rename(desk.root / "aside")
            another.rename(made)
            raise DiskFailed(name, "the disk failed")

    with pytest.raises(CallAborted):
        desk.run(desk.step("sub/a", None, ONE), disk=Swapped())
    assert made.is_dir()
