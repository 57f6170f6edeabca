"""Test tracked calls: what they record, what they do to the files, and what they refuse."""

import os
import random
import re
import shutil
import struct
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from objstore import (
    Action,
    Call,
    CallInfo,
    CasError,
    Conflicted,
    FileExists,
    FileMissing,
    Hunk,
    NothingToDo,
    Operation,
    Origin,
    PathIsDirectory,
    PathOutside,
    PathReserved,
    Status,
    Workspace,
    blob_id,
    hunks_from_spans,
)
from objstore.storage.transaction.journal import Journal
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.scene import TEN, Scene, deletes, moves, writes

UNPRIVILEGED_ID = 65534


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


@pytest.mark.parametrize("line", [2, 3])
def test_hunks_of_two_writes_in_one_call_are_combined(scene: Scene, line: int) -> None:
    scene.write("f", b"k\nx\n}\n}\ne\n")
    steps = [(b"K\nx\n}\n}\ne\n", Hunk(0, 1, 0, 1)), (b"K\nx\n}\ne\n", Hunk(line, 1, line, 0))]

    def write(content: bytes, hunk: Hunk, mode: int) -> Callable[[Call], None]:
        return lambda call: call.write("f", content, hunks=[hunk], mode=mode, operation=Operation.EDIT)

    changes = [write(*step, 0o644) for step in steps]
    (view,) = scene.call(*changes, writes("f", steps[1][0], mode=0o755)).edits
    assert (view.edit.operation, view.edit.hunks) == (Operation.EDIT, (Hunk(0, 1, 0, 1), Hunk(line, 1, line, 0)))


def test_edit_followed_by_a_whole_write_in_one_call_is_a_replacement(scene: Scene) -> None:
    scene.write("f", b"}\n}\n")
    (view,) = scene.call(
        lambda call: call.write("f", b"n\n}\n}\n", hunks=[Hunk(0, 0, 0, 1)], operation=Operation.EDIT),
        writes("f", b"n\n}\n"),
    ).edits
    assert view.edit.operation is Operation.REPLACE


def test_refused_path_is_refused_repeatedly(scene: Scene) -> None:
    (scene.root / "d").mkdir()
    with scene.workspace.call(CallInfo(tool="test")) as call:
        for ask in (call.exists, call.read, call.state, call.exists):
            with pytest.raises(PathIsDirectory):
                ask("d")


def test_hunks_that_do_not_fit_are_refused_before_anything_is_recorded(scene: Scene) -> None:
    scene.write("f", TEN)
    before = scene.everything()
    of_others = hunks_from_spans(TEN, TEN.replace(b"1\n", b"one\n", 1), [(0, 1, 0, 3)])
    wrong: tuple[list[Hunk], ...] = [Hunk(0, 1, 0, 1)], [Hunk(1, 1, 1, 2)], [Hunk(90, 1, 90, 1)], []
    for hunks in (*wrong, of_others):
        with pytest.raises(ValueError, match="f"):
            scene.write("f", TEN.replace(b"2\n", b"two\n"), hunks=hunks)
    assert scene.everything() == before
    scene.edit("f", b"3\n", b"three\n")
    scene.reject(2)


def test_an_edit_names_its_author(scene: Scene) -> None:
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
    assert [(view.edit.call, view.edit.ordinal) for view in scene.workspace.history.edits()] == [(0, 0), (1, 0), (1, 1)]
    assert scene.workspace.history.find_conversation(first.conversation[:10]) == first.conversation


@pytest.mark.parametrize(
    ("before", "after", "operation"),
    [(None, b"x\n", Operation.CREATE), (b"y\n", b"x\n", Operation.REPLACE), (b"y\n", b"", Operation.REPLACE)],
)
def test_first_edit_of_an_untracked_file_records_its_former_content(
    scene: Scene, before: bytes | None, after: bytes, operation: Operation
) -> None:
    if before is not None:
        (scene.root / "f").write_bytes(before)
    edit = scene.view(scene.write("f", after)).edit
    assert edit.operation is operation
    assert (edit.before is None) is (before is None)
    if edit.before is not None and before is not None:
        assert scene.workspace.history.blob(edit.before.blob) == before
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


def test_changes_that_a_call_reverts_are_not_recorded(scene: Scene) -> None:
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
    assert [view.edit.operation for view in scene.workspace.history.edits()][1:] == [
        Operation.REPLACE,
        Operation.MOVE,
        Operation.DELETE,
    ]


def test_external_change_is_recorded_before_the_calls_own(scene: Scene) -> None:
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


def test_a_call_that_only_reads_records_external_changes(scene: Scene) -> None:
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
def test_every_byte_is_restored_by_a_rejection(scene: Scene, content: bytes) -> None:
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
    for view in scene.workspace.history.edits():
        for state in (view.edit.before, view.edit.after):
            assert state is not None
            assert blob_id(scene.workspace.history.blob(state.blob)) == state.blob


@pytest.mark.parametrize(
    ("after", "newline"),
    [
        (b"1\n2\n3", True),
        (b"one\n2\n3", True),
        (b"1\n2", True),
        (b"1\n2\nthree", False),
        (b"1\n2\n3\n4", False),
        (b"1\n2\nthree\n", False),
    ],
)
def test_a_final_newline_is_a_unit_of_its_own_if_no_hunk_has_the_last_line(
    scene: Scene, after: bytes, *, newline: bool
) -> None:
    scene.write("f", b"1\n2\n3\n")
    scene.write("f", after)
    assert scene.view(2).edit.newline is newline


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


def test_a_file_of_five_megabytes_is_recorded_like_a_small_one(scene: Scene) -> None:
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
    assert scene.workspace.history.find_state(f"{name}@{edit}").blob == blob_id(b"b\n")
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


def test_modes_are_kept_by_every_way_of_writing(scene: Scene) -> None:
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


def test_the_owner_is_kept_as_far_as_permissions_allow(scene: Scene) -> None:
    scene.write("f", b"a\n")
    if os.geteuid() == 0:
        os.chown(scene.root / "f", UNPRIVILEGED_ID, UNPRIVILEGED_ID)
    owner = (scene.root / "f").stat()
    edit = scene.write("f", b"b\n")
    scene.reject(edit)
    now = (scene.root / "f").stat()
    assert (now.st_uid, now.st_gid) == (owner.st_uid, owner.st_gid)


NO_ID: Final = 0xFFFFFFFF
ACL_ENTRIES: Final = [(1, 6, NO_ID), (2, 6, 1000), (4, 0, NO_ID), (16, 6, NO_ID), (32, 0, NO_ID)]
ACL: Final = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *right) for right in ACL_ENTRIES)
"""User 1000 may read and write, the file's group may not; as Linux has it in an attribute (acl(5))."""


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="the system has no extended attributes that Python knows")
def test_access_control_list_and_extended_attributes_are_kept(scene: Scene) -> None:
    scene.write("f", b"a\n")
    path = scene.root / "f"
    given = {"system.posix_acl_access": ACL, "user.note": b"\0seen"}
    for name, value in given.items():
        os.setxattr(path, name, value)
    edit = scene.write("f", b"b\n")
    steps = [edit, scene.write("f", b"c\n", mode=0o640)]
    masked = {**given, "system.posix_acl_access": ACL.replace(struct.pack("<HH", 16, 6), struct.pack("<HH", 16, 4))}
    assert {name: os.getxattr(path, name) for name in os.listxattr(path) if name in given} == masked
    assert scene.mode("f") == 0o640
    scene.reject(*steps)
    assert {name: os.getxattr(path, name) for name in os.listxattr(path) if name in given} == given
    assert (path.read_bytes(), scene.mode("f")) == (b"a\n", 0o660)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="the system has no extended attributes that Python knows")
def test_new_file_gets_the_default_access_control_list_of_its_folder(scene: Scene) -> None:
    os.setxattr(scene.root, "system.posix_acl_default", ACL)
    scene.write("f", b"a\n", mode=0o660)
    assert (os.getxattr(scene.root / "f", "system.posix_acl_access"), scene.mode("f")) == (ACL, 0o660)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="the system has no extended attributes that Python knows")
def test_a_moved_file_that_a_folder_replaces_keeps_its_access_control_list(scene: Scene) -> None:
    scene.write("f", b"a\n")
    os.setxattr(scene.root / "f", "system.posix_acl_access", ACL)
    scene.call(moves("f", "g"), writes("f/new", b"b\n"))
    assert os.getxattr(scene.root / "g", "system.posix_acl_access") == ACL
    assert (scene.mode("g"), scene.text("f/new")) == (0o660, b"b\n")


def test_a_move_keeps_the_inode(scene: Scene) -> None:
    scene.write("f", b"a\n")
    before = scene.files()["f"]
    move = scene.move("f", "new/folder/g")
    assert scene.files()["new/folder/g"] == before
    scene.reject(move)
    assert scene.files()["f"] == before


def test_missing_parent_folders_are_created(scene: Scene) -> None:
    scene.write("a/b/c/f", b"a\n")
    assert scene.text("a/b/c/f") == b"a\n"
    scene.move("a/b/c/f", "x/y/f")
    assert scene.text("x/y/f") == b"a\n"


def test_folder_of_a_path_may_be_a_link_inside_the_workspace(scene: Scene) -> None:
    (scene.root / "real").mkdir()
    (scene.root / "link").symlink_to("real")
    edit = scene.view(scene.write("link/f", b"a\n")).edit
    assert edit.path == b"real/f"
    assert scene.text("real/f") == b"a\n"


def test_file_at_the_path_of_a_nonempty_folder_is_refused(scene: Scene) -> None:
    scene.write("d/f", b"a\n")
    with pytest.raises(CasError):
        scene.write("d", b"b\n")
    assert scene.text("d/f") == b"a\n"


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


def test_a_file_deleted_with_its_folders_can_still_be_named(scene: Scene) -> None:
    scene.write("d/e/f", b"a\n")
    shutil.rmtree(scene.root / "d")
    relative = scene.workspace.relative
    assert relative("d/e/f") == relative(str(scene.root / "d" / "e" / "f")) == "d/e/f"
    (scene.root / "d").write_bytes(b"a file by now\n")
    assert relative("d/e/f") == "d/e/f"
    (scene.root / "link").symlink_to("there")
    assert relative("link/f") == "there/f"
    for path, refused in (
        ("x/../d", FileMissing),
        ("x/.cas/f", PathReserved),
        ("x/y/../../../f", FileMissing),
        ("../x/f", PathOutside),
        ("/x/y/z", PathOutside),
    ):
        with pytest.raises(refused):
            relative(path)
    with pytest.raises(FileMissing):
        scene.workspace.files.relative("x/f")


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


def test_workspace_is_found_from_a_subfolder_and_created_once(scene: Scene) -> None:
    scene.write("d/e/f", b"a\n")
    with Workspace.find(scene.root / "d" / "e") as found:
        assert found.root == str(scene.root)
        assert len(found.history.edits()) == 1
    with Workspace.init(scene.root) as again:
        assert len(again.history.edits()) == 1


def test_refused_decision_releases_the_lock(scene: Scene) -> None:
    scene.write("f", b"a\n")
    scene.write("f", b"b\n")
    scene.edit("f", b"b\n", b"c\n")
    assert isinstance(scene.decide(Action.REJECT, 2), Conflicted)
    assert isinstance(scene.decide(Action.RESET, 2), NothingToDo)
    with Workspace.open(scene.root) as other, other.call(CallInfo(tool="test")) as call:
        call.write("f", b"d\n")
        call.commit()
    assert len(scene.workspace.history.edits()) == 4


def test_only_the_last_state_of_a_repeatedly_edited_file_stays_in_memory(scene: Scene) -> None:
    states = [b"%d\n" % number * 1000 for number in range(10)]
    with closing(Journal(str(scene.root), UnsyncedDisk())) as journal:
        for state in states:
            with journal.writing() as batch:
                call = Call(journal, batch, CallInfo(tool="t", conversation="c"))
                call.write("f", state)
                call.commit()
        in_memory = [state for state in states if journal.store.cached_bytes(blob_id(state)) is not None]
        assert in_memory == states[-1:]
        assert journal.store.blob(blob_id(states[0])) == states[0]


def test_external_changes_found_by_a_call_are_one_call_before_it(scene: Scene) -> None:
    names = ("a", "b", "c")
    for text in (b"tool\n", b"tool again\n"):
        with scene.workspace.call(CallInfo(tool="t", conversation="c")) as call:
            for name in names:
                call.write(name, text)
            call.commit()
        for name in names:
            (scene.root / name).write_bytes(b"by hand before " + text)
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    found = [view.edit for view in scene.workspace.history.edits() if view.edit.origin is Origin.EXTERNAL]
    assert [(edit.call, edit.ordinal) for edit in found] == [(call, ordinal) for call in (0, 1) for ordinal in range(3)]


def test_edit_stores_little_more_than_its_change(scene: Scene) -> None:
    def stored() -> int:
        return sum(path.stat().st_size for path in (scene.root / ".cas" / "segments").iterdir())

    lines = [f"{random.Random(number).getrandbits(512):x}\n".encode() for number in range(100)]
    scene.write("f", b"".join(lines))
    first = stored()
    lines[50] = b"changed\n"
    scene.write("f", b"".join(lines))
    assert stored() - first < first // 10


def test_unnamed_conversation_is_named_by_the_time_in_milliseconds(scene: Scene) -> None:
    began = time.time_ns() // 1_000_000
    with scene.workspace.call(CallInfo(tool="t")) as call:
        call.write("f", b"one\n")
        call.commit()
    named = re.fullmatch("conv_([0-9]+)_[0-9a-f]{8}", scene.view(1).edit.conversation)
    assert named is not None
    assert began <= int(named[1]) <= time.time_ns() // 1_000_000


def test_closed_workspace_leaves_no_file_open(scene: Scene) -> None:
    opened = []
    for text in (b"one\n", b"two\n"):
        with Workspace.open(scene.root, UnsyncedDisk()) as workspace:
            with workspace.call(CallInfo(tool="t", conversation="c")) as call:
                call.write("f", text)
                call.commit()
            (scene.root / "g").write_bytes(text)
            workspace.record_changes(CallInfo(tool="", origin=Origin.PERSON))
            workspace.snapshots.take(who="me")
            assert workspace.review.external_changes() == ()
        opened.append(len(list(Path("/dev/fd").iterdir())))
    assert opened[0] == opened[1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\0\none\ntwo\n", b"\0\nONE\ntwo\n"),
        (b"one\ntwo\n", b"one\n\0two\n"),
        (b"\0one\ntwo\n", b"one\ntwo\n"),
    ],
    ids=["both", "after", "before"],
)
def test_edit_of_binary_content_is_one_hunk(scene: Scene, before: bytes, after: bytes) -> None:
    """Lines have no meaning in binary content, so a part of them must not be decided."""
    scene.write("f", before)
    scene.write("f", after)
    (hunk,) = scene.workspace.history.edit(2).edit.hunks
    assert hunk == Hunk(0, before.count(b"\n"), 0, after.count(b"\n"))
