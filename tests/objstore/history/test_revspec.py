"""Names of edits and states, and what they refer to."""

from typing import TYPE_CHECKING

import pytest

from objstore import (
    Action,
    ConflictKind,
    EditFilter,
    EditView,
    NameKind,
    NoSuchName,
    Seq,
    Unit,
    Workspace,
    blob_id,
)
from tests.support.scene import Scene, lines, words, writes

if TYPE_CHECKING:
    from collections.abc import Callable

# ---- names of states


def test_states_are_named_by_path_and_edit(scene: Scene) -> None:
    scene.write("d/f", lines("one"))
    edit = scene.write("d/f", lines("two"))
    move = scene.move("d/f", "d/g")
    for name, expected in (
        ("d/f@1", "one"),
        (f"d/f@{edit}", "two"),
        (f"d/f@{edit}^", "one"),
        (f"d/g@{move}", "two"),
        (f"d/f@{move}^", "two"),
        ("d/g", "two"),
    ):
        state = scene.workspace.history.find_state(name)
        assert state.blob is not None
        assert words(scene.workspace.history.blob(state.blob)) == expected
    assert scene.workspace.history.find_state("d/f@1^").blob is None
    for name in ("d/f@9", "d/x@1", "nothing", "@1", "d/f@", "x@"):
        with pytest.raises(NoSuchName):
            scene.workspace.history.find_state(name)


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**70, 10**30, -(2**70)])
def test_an_unused_number_names_nothing(scene: Scene, number: int) -> None:
    scene.write("f", lines("one"))
    seq = Seq(number)
    asked: list[Callable[[], object]] = [
        lambda: scene.workspace.history.edit(seq),
        lambda: scene.workspace.decide(Action.REJECT, [Unit(seq, 0)]),
        lambda: scene.workspace.history.files_at(seq),
        lambda: scene.workspace.retention.pin([seq]),
        lambda: scene.workspace.retention.unpin([number]),
        lambda: scene.workspace.snapshots.delete([number], who="somebody"),
        lambda: scene.workspace.history.find_state(f"f@{number}"),
        lambda: scene.workspace.find_units(f"{number}:1"),
        lambda: scene.workspace.find_units(f"1:{number}"),
        lambda: scene.workspace.find_units("1:" + "9" * 5000),
        lambda: scene.workspace.find_units("9" * 5000),
    ]
    for ask in asked:
        with pytest.raises(NoSuchName):
            ask()
    assert len(scene.workspace.history.edits(EditFilter(before=max(number, 0)))) == 1
    assert len(scene.workspace.history.edits(EditFilter(limit=number))) == 1
    assert len(scene.workspace.history.edits(EditFilter(skip=number))) == int(number < 0)
    assert scene.workspace.find_units("0" * 5000 + "1")[0].seq == 1


def test_a_path_in_a_deleted_folder_shows_its_history(scene: Scene) -> None:
    scene.write("d/e/f", lines("one"))
    scene.delete("d/e/f")
    (scene.root / "d" / "e").rmdir()
    (scene.root / "d").rmdir()
    blob = scene.workspace.history.find_state("d/e/f@1").blob
    assert blob is not None
    assert scene.workspace.history.blob(blob) == lines("one")
    assert scene.workspace.history.find_state("d/e/f").blob is None
    assert [view.seq for view in edits_at(scene.workspace, "d/e/f")] == [1, 2]
    (scene.root / "d").write_bytes(b"a file now")
    assert [view.seq for view in edits_at(scene.workspace, "d/e/f")] == [1, 2]


def edits_at(workspace: Workspace, path: str) -> list[EditView]:
    return workspace.history.edits(EditFilter(path=path))


def test_a_name_with_an_at_sign_names_its_file(scene: Scene) -> None:
    scene.write("me@home.txt", lines("text"))
    assert scene.workspace.history.find_state("me@home.txt").blob == blob_id(lines("text"))
    assert scene.workspace.history.find_state("me@home.txt@1").blob == blob_id(lines("text"))
    scene.write("me@home.txt@1", lines("other"))
    assert scene.workspace.history.find_state("me@home.txt@1").blob == blob_id(lines("text"))
    assert scene.workspace.history.last_state("me@home.txt@1").blob == blob_id(lines("other"))
    scene.delete("me@home.txt@1")
    assert scene.workspace.history.last_state("me@home.txt@1").blob is None
    with pytest.raises(NoSuchName):
        scene.workspace.history.last_state("me@home.txt@2")


def test_a_path_shows_the_edits_of_every_file_that_was_there(scene: Scene) -> None:
    scene.write("a", lines("one"))
    scene.move("a", "b")
    scene.write("a", lines("two"))
    assert [view.seq for view in edits_at(scene.workspace, "a")] == [1, 2, 3]
    assert [view.seq for view in edits_at(scene.workspace, "b")] == [1, 2]


def test_a_move_to_the_path_of_a_rejected_file_conflicts_with_it(scene: Scene) -> None:
    created = scene.write("a", lines("one"))
    scene.reject(created)
    scene.write("b", lines("two"))
    move = scene.move("b", "a")
    (conflict,) = scene.refused(Action.ACCEPT, created)
    assert (conflict.kind, conflict.unit.seq, conflict.needs[0].seq) == (ConflictKind.PATH_TAKEN, created, move)


@pytest.mark.parametrize("prefix", ["a", "a\U0010ffff"])
def test_a_prefix_names_every_conversation_that_begins_with_it_and_no_other(scene: Scene, prefix: str) -> None:
    names = ["A", "a", "a1", "a\U0010ffff", "a\U0010ffff\U0010ffff", "b", "á"]
    for number, name in enumerate(names):
        scene.call(writes(f"f{number}", lines("one")), conversation=name)
    found = scene.workspace.history.names_with_prefix(NameKind.CONVERSATION, prefix, 10)
    assert {each.name for each in found} == {name for name in names if name.startswith(prefix)}
