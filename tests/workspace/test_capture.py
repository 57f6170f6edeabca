"""Capture: what a tracked call records, what it does to the files, and what it refuses."""

import importlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    Hunk,
    NothingToDo,
    Operation,
    Origin,
    PathInvalid,
    PathIsDirectory,
    PathIsSymlink,
    PathNotRegular,
    PathOutside,
    PathReserved,
    PermissionRefused,
    Status,
    Workspace,
    blob_id,
)
from tests.workspace.scene import Scene, deletes, moves, writes

NOBODY = 65534


# ---- what is recorded


def test_hunks_given_by_a_tool_are_kept_exactly(scene: Scene) -> None:
    text = b"a\nsame\nsame\nb\n"
    scene.write("f", text)
    # The tool took out the second of the two equal lines; a diff would guess.
    second = scene.write("f", b"a\nsame\nb\n", hunks=[Hunk(2, 1, 2, 0)])
    assert scene.view(second).edit.hunks == (Hunk(2, 1, 2, 0),)
    scene.reject(second)
    scene.accept(second)
    marked = scene.write("f", b"a\nSAME\nb\n", hunks=[Hunk(1, 1, 1, 1)])

    scene.reject(second)
    assert scene.text("f") == b"a\nSAME\nsame\nb\n"
    scene.reject(marked)
    assert scene.text("f") == text


def test_given_hunks_decide_which_of_equal_lines_depends(scene: Scene) -> None:
    scene.write("f", b"x\n")
    upper = scene.write("f", b"x\nx\n", hunks=[Hunk(0, 0, 0, 1)])
    lower = scene.write("f", b"x\nx\nx\n", hunks=[Hunk(2, 0, 2, 1)])
    scene.write("f", b"Y\nx\nx\n", hunks=[Hunk(0, 1, 0, 1)])
    conflicts = scene.refused(Action.REJECT, upper)
    assert [need.seq for conflict in conflicts for need in conflict.needs] == [upper]
    scene.reject(lower)
    assert scene.text("f") == b"Y\nx\n"


def test_an_edit_tells_who_made_it(scene: Scene) -> None:
    info = CallInfo(tool="edit_file", conversation="conv_x", notes={"agent": "a", "model": "m"}, origin=Origin.PERSON)
    with scene.workspace.call(info) as call:
        call.write("f", b"text\n")
        outcome = call.commit()
    edit = outcome.edits[0].edit
    assert (edit.tool, edit.conversation, dict(edit.notes), edit.origin) == (
        "edit_file",
        "conv_x",
        {"agent": "a", "model": "m"},
        Origin.PERSON,
    )
    assert scene.view(1).edit == edit
    assert scene.view(1) == outcome.edits[0]


def test_conversations_are_named_once_and_calls_numbered(scene: Scene) -> None:
    with scene.workspace.call(CallInfo(tool="test")) as call:
        call.write("f", b"1\n")
        first = call.commit()
    assert first.new_conversation
    with scene.workspace.call(CallInfo(tool="test", conversation=first.conversation)) as call:
        call.write("f", b"2\n")
        call.write("g", b"2\n")
        second = call.commit()
    assert (second.conversation, second.new_conversation) == (first.conversation, False)
    assert (first.call, second.call) == (0, 1)
    assert [(view.edit.call, view.edit.ordinal) for view in scene.workspace.edits()] == [(0, 0), (1, 0), (1, 1)]
    assert scene.workspace.find_conversation(first.conversation[:10]) == first.conversation


@pytest.mark.parametrize(
    ("before", "after", "operation"),
    [(None, b"x\n", Operation.CREATE), (b"y\n", b"x\n", Operation.REPLACE), (b"y\n", b"", Operation.REPLACE)],
)
def test_an_untracked_file_is_recorded_with_what_it_held(
    scene: Scene, before: bytes | None, after: bytes, operation: Operation
) -> None:
    if before is not None:
        (scene.root / "f").write_bytes(before)
    edit = scene.view(scene.write("f", after)).edit
    assert edit.operation is operation
    assert (edit.before is None) is (before is None)
    if edit.before is not None and before is not None:
        assert scene.workspace.blob(edit.before.blob) == before
    scene.reject(edit.seq)
    assert scene.text("f") == before


def test_writes_to_one_path_in_one_call_are_one_edit(scene: Scene) -> None:
    (scene.root / "f").write_bytes(b"a\nb\nc\n")
    outcome = scene.call(
        writes("f", b"A\nb\nc\n"),
        writes("g", b"other\n"),
        writes("f", b"A\nb\nC\n", mode=0o755),
        writes("./g", b"another\n"),
    )
    assert [(view.edit.path, view.edit.operation) for view in outcome.edits] == [
        (b"f", Operation.REPLACE),
        (b"g", Operation.CREATE),
    ]
    assert len(outcome.edits[0].edit.hunks) == 2
    scene.reject("1:1")
    assert (scene.text("f"), scene.mode("f")) == (b"a\nb\nC\n", 0o755)


def test_what_a_call_does_and_undoes_it_never_did(scene: Scene) -> None:
    (scene.root / "f").write_bytes(b"a\n")
    before = scene.everything()
    outcome = scene.call(writes("f", b"b\n"), writes("f", b"a\n"))
    assert outcome.edits == ()
    assert scene.everything() == before

    outcome = scene.call(
        writes("f", b"b\n"),
        writes("f", b"a\n"),
        writes("f", b"c\n"),
        deletes("f"),
    )
    assert {view.edit.document for view in outcome.edits} == {1}
    scene.reject(*(view.seq for view in outcome.edits))
    assert scene.text("f") == b"a\n"


def test_the_same_bytes_record_nothing(scene: Scene) -> None:
    scene.write("f", b"a\n")
    before = scene.everything()
    outcome = scene.call(writes("f", b"a\n"), writes("f", b"a\n", mode=scene.mode("f")))
    assert outcome.edits == ()
    assert scene.call().edits == ()
    assert scene.everything() == before


def test_a_mode_alone_is_an_edit(scene: Scene) -> None:
    scene.write("f", b"a\n", mode=0o644)
    before = scene.files()["f"]
    edit = scene.write("f", b"a\n", mode=0o755)
    assert scene.files()["f"].inode == before.inode
    assert scene.mode("f") == 0o755
    scene.reject(edit)
    assert scene.mode("f") == 0o644


def test_a_call_reads_what_it_has_written(scene: Scene) -> None:
    scene.write("f", b"a\n", mode=0o600)
    with scene.workspace.call(CallInfo(tool="test")) as call:
        call.write("f", b"b\n")
        call.move("f", "d/g")
        assert not call.exists("f")
        with pytest.raises(FileMissing):
            call.read("f")
        found = call.read("d/g")
        assert (found.path, found.bytes, found.mode, found.blob) == ("d/g", b"b\n", 0o600, blob_id(b"b\n"))
        call.delete("d/g")
        with pytest.raises(FileMissing):
            call.delete("d/g")
        with pytest.raises(FileMissing):
            call.move("d/g", "f")
        call.commit()
    assert scene.files() == {}
    assert [view.edit.operation for view in scene.workspace.edits()][1:] == [
        Operation.REPLACE,
        Operation.MOVE,
        Operation.DELETE,
    ]


def test_a_change_from_outside_is_recorded_before_the_calls_own(scene: Scene) -> None:
    scene.write("f", b"a\nb\nc\n")
    scene.write("g", b"untouched\n")
    (scene.root / "f").write_bytes(b"a\nb\nC\n")
    (scene.root / "g").write_bytes(b"by hand\n")

    outcome = scene.call(lambda call: call.write("f", call.read("f").bytes.replace(b"a", b"A")))

    (external,) = outcome.external
    (own,) = outcome.edits
    assert (external.seq, own.seq) == (3, 4)
    assert (external.edit.origin, external.status) == (Origin.EXTERNAL, Status.ACCEPTED)
    assert external.edit.after == own.edit.before
    assert own.edit.hunks == (Hunk(0, 1, 0, 1),)
    assert scene.external().keys() == {"g"}
    scene.reject(own.seq)
    assert scene.text("f") == b"a\nb\nC\n"


def test_a_call_that_only_looks_records_what_it_found(scene: Scene) -> None:
    scene.write("f", b"a\n")
    (scene.root / "f").unlink()
    outcome = scene.call(lambda call: call.exists("f"))
    assert [view.edit.operation for view in outcome.external] == [Operation.DELETE]
    assert scene.external() == {}
    assert scene.text("f") is None


def test_a_file_deleted_by_hand_and_written_again_continues(scene: Scene) -> None:
    scene.write("f", b"a\n")
    (scene.root / "f").unlink()
    outcome = scene.call(writes("f", b"b\n"))
    assert [view.edit.operation for view in outcome.external] == [Operation.DELETE]
    assert [view.edit.operation for view in outcome.edits] == [Operation.CREATE]
    assert outcome.edits[0].edit.document == 1


# ---- contents


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"no newline",
        b"\r\n\r\n",
        b"\r\r",
        b"a\r\nb\rc\n",
        b"\0",
        b"\xff\xfe\n\xff",
        bytes(range(256)) * 9,
        b"\xef\xbb\xbfbom\n",
        "naïve ☃\u2028line\n".encode(),
    ],
)
def test_every_byte_survives(scene: Scene, content: bytes) -> None:
    (scene.root / "f").write_bytes(content)
    first = scene.write("f", content + b"x")
    scene.write("f", b"" if content else b"y")
    third = scene.write("f", content + b"\r\nz")
    assert scene.text("f") == content + b"\r\nz"
    scene.reject(first, 2, third)
    assert scene.text("f") == content
    scene.accept(first, 2, third)
    assert scene.text("f") == content + b"\r\nz"
    scene.forget_index()
    for view in scene.workspace.edits():
        for state in (view.edit.before, view.edit.after):
            assert state is not None
            assert blob_id(scene.workspace.blob(state.blob)) == state.blob


def test_binary_states_are_decided_whole(scene: Scene) -> None:
    scene.write("f", b"\0one\n\0two\n\0three\n")
    second = scene.write("f", b"\0ONE\n\0two\n\0three\n")
    third = scene.write("f", b"\0ONE\n\0two\n\0THREE\n")
    assert len(scene.view(third).units) == 2
    conflicts = scene.refused(Action.REJECT, second)
    assert {(conflict.unit.seq, need.seq) for conflict in conflicts for need in conflict.needs} == {(third, second)}
    scene.reject(third)
    assert scene.text("f") == b"\0ONE\n\0two\n\0three\n"
    scene.reject(second)
    assert scene.text("f") == b"\0one\n\0two\n\0three\n"


def test_five_megabytes_are_as_good_as_five_bytes(scene: Scene) -> None:
    content = b"".join(b"%d some line of a long file\n" % i for i in range(170_000))
    assert len(content) > 5_000_000
    (scene.root / "f").write_bytes(content)
    early = scene.edit("f", b"\n100 some", b"\n100 any")
    late = scene.edit("f", b"\n169000 some", b"\n169000 any")
    scene.reject(early)
    assert scene.text("f") == content.replace(b"\n169000 some", b"\n169000 any")
    scene.reject(late)
    assert scene.text("f") == content


@pytest.mark.parametrize(
    "name",
    [
        "with space",
        "new\nline",
        "tab\tand\\back",
        "-rf",
        "a" * 255,
        "\udcff\udcfe raw",
        "e\u0301 combining",
        "d/ /..x/...",
        "*?[",
        "me@1",
        "\x1b[31mred",
    ],
)
def test_a_file_may_have_any_name(scene: Scene, name: str) -> None:
    scene.write(name, b"a\n")
    edit = scene.write(name, b"b\n")
    scene.reject(edit)
    assert (scene.root / name).read_bytes() == b"a\n"
    assert scene.view(edit).edit.path == os.fsencode(name)
    scene.forget_index()
    assert scene.workspace.find_state(f"{name}@{edit}").blob == blob_id(b"b\n")
    moved = scene.move(name, "plain")
    scene.reject(moved)
    assert scene.text(name) == b"a\n"
    assert scene.external() == {}


# ---- what is kept


def test_hard_links_stay_one_file(scene: Scene) -> None:
    scene.write("f", b"a\n")
    os.link(scene.root / "f", scene.root / "other")
    edit = scene.write("f", b"long and new\n")
    assert scene.text("other") == b"long and new\n"
    scene.reject(edit)
    assert scene.text("other") == b"a\n"
    assert (scene.root / "f").samefile(scene.root / "other")


def test_modes_survive_every_way_of_writing(scene: Scene) -> None:
    for mode in (0o600, 0o640, 0o755, 0o777, 0o444):
        name = f"f{mode:o}"
        (scene.root / name).write_bytes(b"a\n")
        (scene.root / name).chmod(mode)
        if mode & 0o200 == 0 and os.geteuid() != 0:
            continue
        edit = scene.write(name, b"b\n")
        assert scene.mode(name) == mode
        move = scene.move(name, f"moved/{name}")
        assert scene.mode(f"moved/{name}") == mode
        scene.reject(edit, move)
        assert (scene.mode(name), scene.text(name)) == (mode, b"a\n")
        gone = scene.delete(name)
        scene.reject(gone)
        assert scene.mode(name) == mode


def test_a_new_file_gets_the_mode_that_the_process_gives(scene: Scene) -> None:
    (scene.root / "plain").touch()
    scene.write("new", b"a\n")
    assert scene.mode("new") == scene.mode("plain")
    scene.write("tool", b"a\n", mode=0o700)
    assert scene.mode("tool") == 0o700


def test_the_owner_is_kept_as_far_as_we_may(scene: Scene) -> None:
    scene.write("f", b"a\n")
    if os.geteuid() == 0:
        os.chown(scene.root / "f", NOBODY, NOBODY)
    owner = (scene.root / "f").stat()
    edit = scene.write("f", b"b\n")
    scene.reject(edit)
    now = (scene.root / "f").stat()
    assert (now.st_uid, now.st_gid) == (owner.st_uid, owner.st_gid)


def test_a_move_takes_the_very_file_along(scene: Scene) -> None:
    scene.write("f", b"a\n")
    before = scene.files()["f"]
    move = scene.move("f", "new/folder/g")
    assert scene.files()["new/folder/g"] == before
    scene.reject(move)
    assert scene.files()["f"] == before


def test_missing_parents_are_made(scene: Scene) -> None:
    scene.write("a/b/c/f", b"a\n")
    assert scene.text("a/b/c/f") == b"a\n"
    scene.move("a/b/c/f", "x/y/f")
    assert scene.text("x/y/f") == b"a\n"


def test_a_folder_on_the_way_may_be_a_link_that_stays_inside(scene: Scene) -> None:
    (scene.root / "real").mkdir()
    (scene.root / "link").symlink_to("real")
    edit = scene.view(scene.write("link/f", b"a\n")).edit
    assert edit.path == b"real/f"
    assert scene.text("real/f") == b"a\n"


def test_a_file_may_take_the_name_of_a_folder_that_the_call_empties(scene: Scene) -> None:
    scene.write("d/f", b"a\n")
    with pytest.raises(CasError):
        scene.write("d", b"b\n")
    assert scene.text("d/f") == b"a\n"


# ---- what is refused, with nothing changed


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


def test_nothing_outside_is_reached(scene: Scene, tmp_path: Path) -> None:
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


def test_what_is_no_file_is_refused_by_kind(scene: Scene) -> None:
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
    assert len(scene.workspace.edits()) == 2
    assert scene.external().keys() == {"f"}


def test_a_file_that_appears_during_the_call_is_not_overwritten(scene: Scene) -> None:
    def by_hand(_: Call) -> None:
        (scene.root / "f").write_bytes(b"by hand\n")

    with pytest.raises(FileExists):
        scene.call(writes("f", b"b\n"), by_hand)
    assert scene.text("f") == b"by hand\n"
    assert scene.workspace.edits() == []


@pytest.mark.parametrize("wins", ["folder", "link", "fifo", "nothing"])
def test_something_else_in_the_files_place_during_the_call_is_left_alone(scene: Scene, wins: str) -> None:
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
    assert len(scene.workspace.edits()) == 2


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
    assert len(scene.workspace.edits()) == 1


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be a user to whom permissions apply."""
    if os.geteuid() != 0:
        yield
        return
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


def test_what_may_not_be_written_is_refused(scene: Scene) -> None:
    # Everything that is imported late, before we may not read it any more.
    for module in ("filelock", "objstore.exchange"):
        importlib.import_module(module)
    scene.write("warm", b"up\n")
    scene.reject(scene.write("warm", b"down\n"))
    with TemporaryDirectory(prefix="editledger-") as folder:
        root = Path(folder)
        root.chmod(0o777)
        with as_nobody():
            other = Scene(root)
            try:
                other.write("f", b"a\n")
                other.write("g", b"a\n")
                other.write("locked/h", b"a\n")
                (root / "f").chmod(0o444)
                (root / "locked").chmod(0o555)
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
                (root / "g").chmod(0o000)
                with pytest.raises(PermissionRefused):
                    other.write("g", b"b\n")
            finally:
                (root / "locked").chmod(0o755)
                other.close()


# ---- folders and reading


def test_folders_are_made_and_listed(scene: Scene) -> None:
    assert scene.workspace.files.make_directory("a/b/c")
    assert not scene.workspace.files.make_directory("a/b/c")
    assert not scene.workspace.files.make_directory(".")
    scene.write("a/b/f", b"four")
    (scene.root / "a" / "b" / "link").symlink_to("f")
    assert [(entry.name, entry.kind, entry.size) for entry in scene.workspace.files.list_directory("a/b")] == [
        ("c", "directory", 0),
        ("f", "file", 4),
        ("link", "symlink", 0),
    ]
    assert [entry.name for entry in scene.workspace.files.list_directory(".")] == ["a"]
    with pytest.raises(FileExists):
        scene.workspace.files.make_directory("a/b/f")
    with pytest.raises(PathReserved):
        scene.workspace.files.make_directory(".git/x")
    with pytest.raises(PathReserved):
        scene.workspace.files.list_directory(".cas")


def test_reading_records_nothing(scene: Scene) -> None:
    scene.write("d/f", b"a\n")
    (scene.root / "d" / "f").write_bytes(b"by hand\n")
    before = scene.everything()
    found = scene.workspace.read(str(scene.root / "d" / "f"))
    assert (found.path, found.bytes, found.blob) == ("d/f", b"by hand\n", blob_id(b"by hand\n"))
    assert scene.workspace.relative("d/../d/f") == "d/f"
    assert scene.workspace.read("d/f", limit=8).bytes == b"by hand\n"
    with pytest.raises(CasError):
        scene.workspace.read("d/f", limit=7)
    assert scene.everything() == before


def test_a_workspace_is_found_from_below_and_made_once(scene: Scene) -> None:
    scene.write("d/e/f", b"a\n")
    with Workspace.find(scene.root / "d" / "e") as found:
        assert found.root == str(scene.root)
        assert len(found.edits()) == 1
    with Workspace.init(scene.root) as again:
        assert len(again.edits()) == 1


def test_a_conflict_or_nothing_to_do_leaves_the_lock(scene: Scene) -> None:
    scene.write("f", b"a\n")
    scene.write("f", b"b\n")
    scene.edit("f", b"b\n", b"c\n")
    assert isinstance(scene.decide(Action.REJECT, 2), Conflicted)
    assert isinstance(scene.decide(Action.RESET, 2), NothingToDo)
    with Workspace.open(scene.root) as other, other.call(CallInfo(tool="test")) as call:
        call.write("f", b"d\n")
        call.commit()
    assert len(scene.workspace.edits()) == 4
