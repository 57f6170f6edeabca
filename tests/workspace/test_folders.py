"""Folders and files of one name: each may take the other's place, in one call, and every decision about it holds."""

from pathlib import Path

import pytest

from objstore import Action, Conflicted, ConflictKind, Decided, FileExists, PathIsDirectory, PathReserved
from tests.workspace.scene import Scene, deletes, moves, writes


def standing(scene: Scene) -> dict[str, str]:
    """Return every file and its words, and folders with nothing in them as such."""
    found = {}
    for path in scene.root.rglob("*"):
        if ".cas" in path.parts:
            continue
        name = str(path.relative_to(scene.root))
        if not path.is_dir():
            found[name] = path.read_text().strip()
        elif not any(path.iterdir()):
            found[name] = "empty folder"
    return found


FOLDER, FILE, AGAIN = {"d/e/x": "one"}, {"d": "file"}, {"d/y": "two"}


@pytest.fixture
def traded(scene: Scene) -> Scene:
    """Return a scene in which a file took the name of a folder, and then a folder that of this file."""
    scene.write("d/e/x", b"one\n")  # 1
    scene.call(deletes("d/e/x"), writes("d", b"file\n"))  # 2, 3
    assert standing(scene) == FILE
    scene.call(deletes("d"), writes("d/y", b"two\n"))  # 4, 5
    assert standing(scene) == AGAIN
    return scene


def test_decisions_trade_them_back_and_forth(traded: Scene) -> None:
    for action, seqs, wanted in (
        (Action.REJECT, (4, 5), FILE),
        (Action.REJECT, (2, 3), FOLDER),
        (Action.ACCEPT, (2, 3), FILE),
        (Action.ACCEPT, (4, 5), AGAIN),
        (Action.REJECT, (2, 3, 4, 5), FOLDER),
        (Action.ACCEPT, (2, 3, 4, 5), AGAIN),
    ):
        assert isinstance(traded.decide(action, *seqs), Decided)
        assert standing(traded) == wanted
    for wanted in (FOLDER, AGAIN, FILE, FOLDER, FILE, AGAIN):
        traded.undo()
        assert standing(traded) == wanted
    assert traded.workspace.status().external == ()


def test_a_file_and_a_folder_of_one_name_are_a_conflict_that_names_who(scene: Scene) -> None:
    scene.write("d/e/x", b"one\n")  # 1
    scene.call(deletes("d/e/x"), writes("d", b"file\n"))  # 2, 3
    refused(scene, Action.REJECT, 2, unit=(1, 0), needs=(3, 0))
    assert isinstance(scene.decide(Action.REJECT, 2, 3), Decided)
    refused(scene, Action.ACCEPT, 3, unit=(3, 0), needs=(1, 0))


def refused(scene: Scene, action: Action, seq: int, *, unit: tuple[int, int], needs: tuple[int, int]) -> None:
    """Decide, and see that it is refused for what stands in the way, and that nothing has changed."""
    before = standing(scene)
    outcome = scene.decide(action, seq)
    assert isinstance(outcome, Conflicted)
    (conflict,) = outcome.conflicts
    assert (conflict.kind, conflict.unit, conflict.needs) == (ConflictKind.PATH_TAKEN, unit, (needs,))
    assert standing(scene) == before


def test_a_folder_goes_only_if_a_recorded_edit_made_it(scene: Scene) -> None:
    (scene.root / "own").mkdir()
    scene.write("own/f", b"f\n")
    with pytest.raises(PathIsDirectory):
        scene.call(deletes("own/f"), writes("own", b"file\n"))
    assert standing(scene) == {"own/f": "f"}


@pytest.mark.parametrize("stranger", ["d/stranger", "d/e/f/stranger", "d/empty/"])
def test_a_folder_with_anything_else_in_it_stays(scene: Scene, stranger: str) -> None:
    scene.write("d/e/f/x", b"x\n")
    other = scene.root / stranger
    if stranger.endswith("/"):
        other.mkdir()
    else:
        other.write_bytes(b"a person's\n")
    with pytest.raises(PathIsDirectory):
        scene.call(deletes("d/e/f/x"), writes("d", b"file\n"))
    assert standing(scene)["d/e/f/x"] == "x"
    assert other.exists()


def test_what_comes_into_the_folder_meanwhile_keeps_it(scene: Scene) -> None:
    scene.write("d/x", b"x\n")
    scene.call(deletes("d/x"), writes("d", b"file\n"))
    scene.decide(Action.REJECT, 2, 3)
    (scene.root / "d" / "late").write_bytes(b"late\n")
    with pytest.raises(FileExists):
        scene.decide(Action.ACCEPT, 2, 3)
    assert standing(scene) == {"d/x": "x", "d/late": "late"}


def test_a_file_moves_to_the_name_of_the_folder_that_it_leaves(scene: Scene) -> None:
    scene.write("d/e/x", b"x\n")
    scene.call(moves("d/e/x", "other"), moves("other", "d"))
    assert standing(scene) == {"d": "x"}
    assert isinstance(scene.decide(Action.REJECT, 2, 3), Decided)
    assert standing(scene) == {"d/e/x": "x"}


def test_no_reserved_name_comes_to_be_behind_a_file_that_goes(scene: Scene) -> None:
    scene.write("f", b"f\n")
    for path in ("f/.git/config", "f/.cas/lock"):
        with pytest.raises(PathReserved):
            scene.call(deletes("f"), writes(path, b"x\n"))
    assert standing(scene) == {"f": "f"}
    assert Path(scene.root / "f").is_file()
