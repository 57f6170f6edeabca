"""Test what a tracked call refuses, without changing anything."""

import importlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from objstore import (
    Action,
    Call,
    CallInfo,
    CasError,
    Conflicted,
    FileChanged,
    FileExists,
    FileMissing,
    OnExternal,
    PathInvalid,
    PathIsDirectory,
    PathIsSymlink,
    PathNotRegular,
    PathOutside,
    PathReserved,
    PermissionRefused,
    Status,
    Unit,
    Workspace,
)
from tests.support.faulty_disk import CountdownDisk, PowerCut
from tests.support.scene import Scene, deletes, moves, writes

EXTERNAL_CALL = 65534


def refused(scene: Scene, error: type[BaseException], *changes: Callable[[Call], object]) -> None:
    before = scene.everything()
    with pytest.raises(error):
        scene.call(*changes)
    assert scene.everything() == before


def test_symlinks_are_not_written_through(scene: Scene) -> None:
    scene.write("f", b"a\n")
    (scene.root / "link").symlink_to("f")
    (scene.root / "dangling").symlink_to("nowhere")
    for name in ("link", "dangling"):
        refused(scene, PathIsSymlink, writes(name, b"b\n"))
        refused(scene, PathIsSymlink, deletes(name))
        refused(scene, PathIsSymlink, moves(name, "g"))
        refused(scene, PathIsSymlink, moves("f", name))
    assert scene.workspace.read("link").bytes == b"a\n"


def test_paths_outside_are_refused(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "workspace-evil").mkdir()
    (scene.root / "out").symlink_to("../outside")
    scene.write("f", b"a\n")
    scene.write("d/f", b"a\n")
    spellings = ("../f", "out/f", "d/../../f", str(tmp_path / "outside" / "f"), str(tmp_path / "workspace-evil" / "f"))
    for name in spellings:
        refused(scene, PathOutside, writes(name, b"b\n"))
        refused(scene, PathOutside, moves("f", name))
    assert list((tmp_path / "outside").iterdir()) == list((tmp_path / "workspace-evil").iterdir()) == []


def test_the_store_and_version_control_are_not_touched(scene: Scene) -> None:
    scene.write("f", b"a\n")
    for name in (".cas/x", ".CAS/x", ".cas", "d/.cas/x", ".git/config", "d/.git/hooks/x", ".hg/x"):
        refused(scene, PathReserved, writes(name, b"b\n"))
        refused(scene, PathReserved, moves("f", name))


def test_special_files_are_refused_by_kind(scene: Scene) -> None:
    (scene.root / "d").mkdir()
    os.mkfifo(scene.root / "fifo")
    (scene.root / "file").write_bytes(b"x")
    refused(scene, PathIsDirectory, writes("d", b"b\n"))
    refused(scene, PathNotRegular, writes("fifo", b"b\n"))
    refused(scene, PathNotRegular, deletes("fifo"))
    refused(scene, PathInvalid, writes("file/below", b"b\n"))
    refused(scene, PathInvalid, writes("", b"b\n"))
    refused(scene, PathInvalid, writes("a\0b", b"b\n"))
    refused(scene, PathInvalid, writes("a" * 5000, b"b\n"))
    refused(scene, FileMissing, deletes("nothing"))
    refused(scene, CasError, writes("a" * 256, b"b\n"))
    refused(scene, CasError, writes(".", b"b\n"))


def test_a_move_never_overwrites(scene: Scene) -> None:
    scene.write("a", b"a\n")
    (scene.root / "untracked").write_bytes(b"u\n")
    (scene.root / "d").mkdir()
    scene.write("tracked", b"t\n")
    refused(scene, FileExists, moves("a", "untracked"))
    refused(scene, FileExists, moves("a", "tracked"))
    refused(scene, FileExists, moves("a", "a"))
    refused(scene, FileExists, writes("b", b"b\n"), moves("a", "b"))
    refused(scene, PathIsDirectory, moves("a", "d"))


def test_a_call_left_by_an_exception_changes_nothing(scene: Scene) -> None:
    scene.write("f", b"a\n")

    def fail(_: Call) -> None:
        raise KeyboardInterrupt

    refused(
        scene,
        KeyboardInterrupt,
        writes("f", b"b\n"),
        writes("new/g", b"b\n"),
        moves("f", "h"),
        fail,
    )
    assert scene.write("f", b"c\n") == 2


def test_a_call_that_is_not_committed_changes_nothing(scene: Scene) -> None:
    scene.write("f", b"a\n")
    before = scene.everything()
    with scene.workspace.call(CallInfo(tool="test")) as call:
        call.write("f", b"b\n")
        call.delete("f")
    assert scene.everything() == before


def test_a_file_that_is_written_to_during_the_call_is_not_overwritten(scene: Scene) -> None:
    scene.write("f", b"a\n")
    scene.write("g", b"a\n")

    def by_hand(_: Call) -> None:
        (scene.root / "f").write_bytes(b"by hand\n")

    with pytest.raises(FileChanged):
        scene.call(writes("g", b"b\n"), writes("f", b"b\n"), by_hand)
    assert (scene.text("f"), scene.text("g")) == (b"by hand\n", b"a\n")
    assert len(scene.workspace.history.edits()) == 2
    assert scene.external().keys() == {"f"}


def test_a_file_that_appears_during_the_call_is_not_overwritten(scene: Scene) -> None:
    def by_hand(_: Call) -> None:
        (scene.root / "f").write_bytes(b"by hand\n")

    with pytest.raises(FileExists):
        scene.call(writes("f", b"b\n"), by_hand)
    assert scene.text("f") == b"by hand\n"
    assert scene.workspace.history.edits() == []


@pytest.mark.parametrize("wins", ["folder", "link", "fifo", "nothing"])
def test_file_replaced_by_something_else_during_the_call_is_left_unchanged(scene: Scene, wins: str) -> None:
    scene.write("d/f", b"a\n")
    scene.write("a", b"a\n")
    path = scene.root / "d" / "f"

    def by_hand(_: Call) -> None:
        path.rename(scene.root / "kept")
        match wins:
            case "folder":
                path.mkdir()
            case "link":
                path.symlink_to("../kept")
            case "fifo":
                os.mkfifo(path)
            case _:
                pass

    with pytest.raises((PathIsDirectory, PathIsSymlink, PathNotRegular, FileChanged)):
        scene.call(writes("a", b"b\n"), writes("d/f", b"b\n"), by_hand)
    assert (scene.text("kept"), scene.text("a")) == (b"a\n", b"a\n")
    kinds = {"folder": stat.S_ISDIR, "link": stat.S_ISLNK, "fifo": stat.S_ISFIFO}
    assert kinds[wins](path.lstat().st_mode) if wins in kinds else not path.exists()
    assert len(scene.workspace.history.edits()) == 2


def test_a_folder_that_becomes_a_link_during_the_call_is_not_followed(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    scene.write("d/f", b"a\n")

    def by_hand(_: Call) -> None:
        (scene.root / "d").rename(scene.root / "kept")
        (scene.root / "d").symlink_to("../outside")

    with pytest.raises(CasError):
        scene.call(writes("d/f", b"b\n"), writes("d/g", b"b\n"), by_hand)
    assert list((tmp_path / "outside").iterdir()) == []
    assert scene.text("kept/f") == b"a\n"
    assert len(scene.workspace.history.edits()) == 1


@contextmanager
def as_unprivileged() -> Iterator[None]:
    """Be a user to whom permissions apply."""
    if os.geteuid() != 0:
        yield
        return
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(EXTERNAL_CALL, EXTERNAL_CALL, 0)
    os.setresuid(EXTERNAL_CALL, EXTERNAL_CALL, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


@contextmanager
def unprivileged_scene(scene: Scene) -> Iterator[Scene]:
    """Give a scene of a user to whom permissions apply."""
    # Everything that is imported late, before we may not read it any more.
    for module in ("filelock", "objstore.disk.fs.atomic_swap"):
        importlib.import_module(module)
    scene.write("warm", b"up\n")
    scene.reject(scene.write("warm", b"down\n"))
    with TemporaryDirectory(prefix="editledger-") as folder:
        root = Path(folder)
        root.chmod(0o777)
        with as_unprivileged():
            other = Scene(root)
            try:
                yield other
            finally:
                other.close()


def test_unwritable_files_are_refused(scene: Scene) -> None:
    with unprivileged_scene(scene) as other:
        other.write("f", b"a\n")
        other.write("g", b"a\n")
        other.write("locked/h", b"a\n")
        (other.root / "f").chmod(0o444)
        (other.root / "locked").chmod(0o555)
        try:
            for change in (
                writes("f", b"b\n"),
                writes("locked/h", b"b\n"),
                writes("locked/new", b"b\n"),
                deletes("locked/h"),
                moves("locked/h", "h"),
                moves("g", "locked/g"),
            ):
                refused(other, PermissionRefused, writes("g", b"b\n"), change)
            before = other.everything()
            with pytest.raises(PermissionRefused):
                other.decide(Action.REJECT, 2, 3)
            assert other.everything() == before
            (other.root / "g").chmod(0o000)
            with pytest.raises(PermissionRefused):
                other.write("g", b"b\n")
        finally:
            (other.root / "locked").chmod(0o755)


def test_a_mode_that_forbids_writing_is_rejected_with_its_file(scene: Scene) -> None:
    with unprivileged_scene(scene) as other:
        made = other.write("made", b"a\n", mode=0o444)
        other.write("f", b"a\n", mode=0o644)
        closed = other.write("f", b"b\n", mode=0o400)
        for change in (writes("made", b"b\n"), deletes("made"), moves("made", "m"), deletes("f")):
            refused(other, PermissionRefused, change)  # what an agent does is no decision
        other.reject(made, closed)
        assert not (other.root / "made").exists()
        assert (other.text("f"), other.mode("f")) == (b"a\n", 0o644)
        other.accept(made, closed)
        assert (other.text("made"), other.mode("made")) == (b"a\n", 0o444)
        assert (other.text("f"), other.mode("f")) == (b"b\n", 0o400)


def test_rejection_of_text_and_mode_is_whole_after_a_crash(scene: Scene) -> None:
    with unprivileged_scene(scene) as other:
        for step in count():
            made = other.write(f"made{step}", b"a\n", mode=0o444)
            disk = CountdownDisk(step)
            with suppress(PowerCut), closing(Workspace.open(other.root, disk)) as workspace:
                workspace.decide(Action.REJECT, [Unit(made, 0)])
            other.reopen()
            other.write("next", b"%d\n" % step)  # by which what was begun is finished
            assert other.text(f"made{step}") == (None if other.view(made).status is Status.REJECTED else b"a\n")
            if disk.failed is None:
                assert other.view(made).status is Status.REJECTED
                break


def test_read_only_mode_set_by_a_person_refuses_writes(scene: Scene) -> None:
    with unprivileged_scene(scene) as other:
        made = other.write("f", b"a\n")
        edit = other.write("f", b"b\n")
        (other.root / "f").chmod(0o444)
        before = other.everything()
        with pytest.raises(PermissionRefused):
            other.decide(Action.REJECT, edit, on_external=OnExternal.KEEP)
        assert isinstance(other.decide(Action.REJECT, made, edit, on_external=OnExternal.KEEP), Conflicted)
        assert other.everything() == before


def test_path_below_a_file_is_refused(scene: Scene) -> None:
    scene.write("f", b"a\n")
    scene.write("e/g", b"b\n")
    for first, second in (("d", "d/c"), ("d/c", "d"), ("d", "d/e/c")):
        refused(scene, PathInvalid, writes(first, b"1\n"), writes(second, b"2\n"))
        refused(scene, PathInvalid, writes(first, b"1\n"), moves("f", second))
    refused(scene, PathInvalid, deletes("f"), writes("f/c", b"1\n"), writes("f", b"2\n"))
    refused(scene, PathInvalid, deletes("e/g"), writes("e", b"1\n"), writes("e/g", b"2\n"))
    scene.call(writes("d", b"1\n"), deletes("d"), writes("d/c", b"2\n"))
    assert scene.text("d/c") == b"2\n"
