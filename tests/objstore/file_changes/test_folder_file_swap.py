"""Test folders and files that take each other's paths in one call, and every decision about that."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from objstore import (
    Action,
    Call,
    CallAborted,
    CallInfo,
    Conflicted,
    ConflictKind,
    Decided,
    DiskFailed,
    EditFilter,
    FileExists,
    OnExternal,
    Origin,
    PathIsDirectory,
    PathReserved,
    Status,
    Unit,
)
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.scene import Scene, deletes, moves, writes


def standing(scene: Scene) -> dict[str, str]:
    """Return every file with its text, and the empty folders."""
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


def files(scene: Scene) -> dict[str, str]:
    """Return every file with its text."""
    return {name: words for name, words in standing(scene).items() if words != "empty folder"}


FOLDER, FILE, AGAIN = {"d/e/x": "one"}, {"d": "file"}, {"d/y": "two"}


@pytest.fixture
def traded(scene: Scene) -> Scene:
    """Return a scene in which a file took the path of a folder, and then a folder that of the file."""
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
    assert traded.workspace.review.status().external == ()


def test_a_file_and_a_folder_of_one_name_are_a_conflict_that_names_the_edits(scene: Scene) -> None:
    scene.write("d/e/x", b"one\n")  # 1
    scene.call(deletes("d/e/x"), writes("d", b"file\n"))  # 2, 3
    refused(scene, Action.REJECT, 2, unit=(1, 0), needs=(3, 0))
    assert isinstance(scene.decide(Action.REJECT, 2, 3), Decided)
    refused(scene, Action.ACCEPT, 3, unit=(3, 0), needs=(1, 0))


def refused(scene: Scene, action: Action, seq: int, *, unit: tuple[int, int], needs: tuple[int, int]) -> None:
    """Decide, and check that the decision is refused because of what blocks it, and that nothing has changed."""
    before = standing(scene)
    outcome = scene.decide(action, seq)
    assert isinstance(outcome, Conflicted)
    (conflict,) = outcome.conflicts
    assert (conflict.kind, conflict.unit, conflict.needs) == (ConflictKind.PATH_TAKEN, unit, (needs,))
    assert standing(scene) == before


GONE = [(("d/y", "d/z/y"), ("d",)), (("d",), ("d/y", "d/z/y"))]
"""Files that a person takes away with their folders, and files that a call puts where those stood."""


@pytest.mark.parametrize(("first", "then"), GONE, ids=["a file for a folder", "a folder for a file"])
@pytest.mark.parametrize("is_made_by_hand", [False, True])
def test_a_call_that_takes_the_place_of_what_is_gone_records_that_it_is(
    scene: Scene,
    first: tuple[str, ...],
    then: tuple[str, ...],
    is_made_by_hand: bool,  # noqa: FBT001 - pytest gives it
) -> None:
    scene.write("beside", b"beside\n")
    for path in first:
        scene.write(path, b"first\n")
    top = scene.root / "d"
    shutil.rmtree(top) if top.is_dir() else top.unlink()
    for path in then if is_made_by_hand else ():
        (scene.root / path).parent.mkdir(exist_ok=True)
        (scene.root / path).write_bytes(b"a person's\n")
    before = files(scene)
    outcome = scene.call(*(writes(path, b"then\n") for path in then))
    gone = [(os.fsdecode(view.edit.path), view.edit.after) for view in outcome.external]
    assert gone == [(path, None) for path in first]
    assert scene.workspace.review.status().external == ()
    own = [view.seq for view in outcome.edits]
    scene.reject(*own)
    assert files(scene) == before
    scene.undo()
    after = {"beside": "beside"} | dict.fromkeys(then, "then")
    assert files(scene) == after
    scene.reject(*own)
    scene.forget_index()
    scene.accept(*own)
    assert files(scene) == after


@pytest.mark.parametrize("act", [deletes("c/a/b"), moves("c/a/b", "d")], ids=["deleted", "moved away"])
def test_what_goes_from_a_folder_that_was_a_file_comes_back(scene: Scene, act: Callable[[Call], object]) -> None:
    scene.write("c", b"file\n")
    (scene.root / "c").unlink()
    (scene.root / "c" / "a").mkdir(parents=True)
    (scene.root / "c" / "a" / "b").write_bytes(b"a person's\n")
    outcome = scene.call(act)
    assert [(view.edit.path, view.edit.after) for view in outcome.external] == [(b"c", None)]
    scene.reject(outcome.edits[0].seq)
    assert standing(scene) == {"c/a/b": "a person's"}


def test_a_folder_goes_only_if_a_recorded_edit_made_it(scene: Scene) -> None:
    (scene.root / "own").mkdir()
    scene.write("own/f", b"f\n")
    with pytest.raises(PathIsDirectory):
        scene.call(deletes("own/f"), writes("own", b"file\n"))
    assert standing(scene) == {"own/f": "f"}


@pytest.mark.parametrize(
    "act",
    [writes("d", b"file\n"), moves("q", "d"), moves("d", "n"), deletes("d")],
    ids=["written", "moved there", "moved away", "deleted"],
)
@pytest.mark.parametrize("is_made_by_hand", [False, True])
def test_a_folder_that_an_earlier_call_left_empty_is_no_file_and_keeps_its_name(
    scene: Scene,
    act: Callable[[Call], object],
    is_made_by_hand: bool,  # noqa: FBT001 - pytest gives it
) -> None:
    scene.write("q", b"q\n")
    scene.call(moves("q", "d/e/x"))
    scene.call(moves("d/e/x", "q"))
    if is_made_by_hand:
        shutil.rmtree(scene.root / "d")
        (scene.root / "d" / "e").mkdir(parents=True)
    with pytest.raises(PathIsDirectory):
        scene.call(act)
    assert standing(scene) == {"q": "q", "d/e": "empty folder"}


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


def test_an_empty_folder_that_comes_meanwhile_keeps_its_name_from_a_call(scene: Scene) -> None:
    with scene.workspace.call(CallInfo(tool="t")) as call:
        call.write("d", b"file\n")
        (scene.root / "d").mkdir()
        with pytest.raises(FileExists):
            call.commit()
    assert standing(scene) == {"d": "empty folder"}


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


# ---- by a shell, among files that nobody recorded before


@pytest.mark.parametrize("names", [("d", "a"), ("d", "z"), ("d/e", "d/f"), ("d/e", "d/d"), ("d/e", "z"), ("d", "t/d")])
@pytest.mark.parametrize(
    "script",
    [
        "rm -r D; mv F D",
        "rm -r D; echo new > D",
        "mv D T; mv F D",
        "mv D T; mv F D; mv T F",
        "rm F; mkdir F; mv D/x F/y",
        "rm F; mv D F",
        "rm F; mv D F; mkdir D; mv F/x D/x; rm -r F",
        "mv D T; mkdir D; mv F D/x; mv T F",
        "mv D/s/y T; rm -r D; mv T D; rm F",
    ],
)
def test_what_a_shell_made_of_folders_and_files_is_rejected_and_taken_up_again(
    scene: Scene, script: str, names: tuple[str, str]
) -> None:
    for path, content in {"D/x": b"x\n", "D/s/y": b"y\n", "F": b"file\n", "other": b"other\n"}.items():
        file = scene.root / path.replace("D", names[0]).replace("F", names[1])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    before = files(scene)
    command = script.replace("D", names[0]).replace("F", names[1]).replace("T", "aside")
    assert os.system(f"cd '{scene.root}' && {command}") == 0  # noqa: S605 - the commands above
    after = files(scene)
    edits = scene.workspace.record_changes(CallInfo(tool="Bash", conversation="c")).edits
    units = [Unit(view.seq, hunk) for view in edits for hunk in range(len(view.units))]
    for action, wanted in ((Action.REJECT, before), (Action.ACCEPT, after), (Action.REJECT, before)):
        assert isinstance(scene.workspace.decide(action, units), Decided)
        assert files(scene) == wanted
    for wanted in (after, before, after):
        scene.undo()
        assert files(scene) == wanted
    assert scene.workspace.review.status().external == ()


def test_a_folder_that_a_decision_left_empty_is_not_in_the_way_of_the_next(scene: Scene) -> None:
    (scene.root / "d").mkdir()
    (scene.root / "d" / "x").write_bytes(b"x\n")
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    assert os.system(f"cd '{scene.root}' && rm -r d && echo new > d") == 0  # noqa: S605 - our own command
    gone, new = scene.workspace.record_changes(CallInfo(tool="Bash", conversation="c")).edits
    assert isinstance(scene.decide(Action.REJECT, gone.seq, new.seq), Decided)
    assert isinstance(scene.decide(Action.ACCEPT, gone.seq), Decided)
    assert isinstance(scene.decide(Action.ACCEPT, new.seq), Decided)
    assert standing(scene) == {"d": "new"}


@pytest.mark.parametrize("script", ["rm f; mkdir f", "mv f g; mkdir f", "rm f; mkdir -p f/a/b f/c"])
def test_where_a_shell_put_empty_folders_in_a_files_place_the_file_comes_back(scene: Scene, script: str) -> None:
    before = shelled(scene, script)
    units = [Unit(view.seq, 0) for view in scene.workspace.history.edits(EditFilter(conversation="c"))]
    after = files(scene)
    for action, wanted in ((Action.REJECT, before), (Action.ACCEPT, after), (Action.REJECT, before)):
        assert isinstance(scene.workspace.decide(action, units), Decided)
        assert standing(scene) == wanted
    assert scene.workspace.review.status().external == ()


@pytest.mark.parametrize("stranger", ["f/late", "f/a/late", "f/link"])
def test_a_folder_in_a_files_place_stays_with_what_nobody_recorded_and_that_is_named(
    scene: Scene, stranger: str
) -> None:
    shelled(scene, "rm f; mkdir -p f/a")
    if stranger.endswith("link"):
        (scene.root / stranger).symlink_to("a")
    else:
        (scene.root / stranger).write_bytes(b"late\n")
    before = [*scene.root.rglob("*")]
    units = [Unit(view.seq, 0) for view in scene.workspace.history.edits(EditFilter(conversation="c"))]
    for dry_run in (True, False):
        with pytest.raises(FileExists) as refused:
            scene.workspace.decide(Action.REJECT, units, dry_run=dry_run)
        assert str(refused.value) == (
            f"f is a folder, and these paths in it must stay: {stranger}. Move the folder away and try again, or leave "
            "out the edits of f."
        )
    assert [*scene.root.rglob("*")] == before
    assert {edit.status for edit in scene.workspace.history.edits(EditFilter(conversation="c"))} == {Status.PENDING}


def shelled(scene: Scene, script: str) -> dict[str, str]:
    """Have an agent's shell run a script beside another file that it makes; return what stood there before."""
    for name in ("f", "other"):
        (scene.root / name).write_bytes(name.encode())
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    before = standing(scene)
    assert os.system(f"cd '{scene.root}' && {script}; echo new > new") == 0  # noqa: S605 - the tests' own commands
    scene.workspace.record_changes(CallInfo(tool="Bash", conversation="c"))
    return before


@pytest.mark.parametrize("stranger", ["d/late", "d/s/late", "d/empty/"])
def test_a_folder_that_was_a_file_once_stays_with_anything_in_it_that_nobody_recorded(
    scene: Scene, stranger: str
) -> None:
    (scene.root / "d" / "s").mkdir(parents=True)
    (scene.root / "d" / "s" / "x").write_bytes(b"x\n")
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    assert os.system(f"cd '{scene.root}' && rm -r d && echo new > d") == 0  # noqa: S605 - our own command
    edits = scene.workspace.record_changes(CallInfo(tool="Bash", conversation="c")).edits
    units = [Unit(view.seq, 0) for view in edits]
    assert isinstance(scene.workspace.decide(Action.REJECT, units), Decided)
    if stranger.endswith("/"):
        (scene.root / stranger).mkdir()
    else:
        (scene.root / stranger).write_bytes(b"late\n")
    before = standing(scene)
    with pytest.raises(FileExists):
        scene.workspace.decide(Action.ACCEPT, units)
    assert standing(scene) == before
    assert [edit.status for edit in scene.workspace.history.edits()] == [Status.REJECTED] * 2


def emptied(scene: Scene) -> None:
    """Have an agent make `d/e/f`, `h/f` and `g`, and a person remove the first two, but not their folders."""
    scene.call(writes("d/e/f", b"f\n"), writes("g", b"g\n"), writes("h/f", b"f\n"))
    for path in ("d/e/f", "h/f"):
        (scene.root / path).unlink()
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.PERSON), ["d/e/f", "h/f"])


@pytest.mark.parametrize("besides", [[], [2]], ids=["no file changes", "a file changes"])
def test_a_folder_that_cannot_be_removed_takes_no_decision_back(tmp_path: Path, besides: list[int]) -> None:
    class Failing(UnsyncedDisk):
        """A disk that can't look into the folder."""

        def remove_directory(self, directory: int, name: str) -> bool:
            if name == "e":
                raise DiskFailed(name, "Input/output error")
            return super().remove_directory(directory, name)

    scene = Scene(tmp_path / "workspace", Failing)
    emptied(scene)
    assert isinstance(scene.decide(Action.REJECT, 1, 3, 4, 5, *besides), Decided)
    assert standing(scene) == {"d/e": "empty folder"} | ({} if besides else {"g": "g"})
    assert scene.workspace.review.status().external == ()
    scene.close()


@pytest.mark.parametrize("place", ["..", "."], ids=["outside", "inside"])
@pytest.mark.parametrize("besides", [[], [2]], ids=["no file changes", "a file changes"])
def test_a_folder_that_is_a_link_by_now_is_left_with_what_it_leads_to(
    scene: Scene, besides: list[int], place: str
) -> None:
    emptied(scene)
    elsewhere = scene.root / place / "elsewhere"
    (elsewhere / "e").mkdir(parents=True)
    (scene.root / "d" / "e").rmdir()
    (scene.root / "d").rmdir()
    (scene.root / "d").symlink_to(elsewhere)
    assert isinstance(scene.decide(Action.REJECT, 1, 3, 4, 5, *besides), Decided)
    assert (elsewhere / "e").is_dir()
    assert (scene.root / "d").is_symlink()
    assert not (scene.root / "h").exists()
    assert (scene.root / "g").exists() is not bool(besides)


# ---- whose a folder is


def test_a_folder_that_a_person_made_where_an_edits_has_gone_is_theirs(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.reject(1)
    assert standing(scene) == {}
    (scene.root / "d").mkdir(mode=0o700)
    theirs = scene.files()["d"]
    scene.write("d/x", b"2\n")
    scene.reject(2)
    assert scene.files() == {"d": theirs}
    scene.undo()
    scene.reject(2)
    assert scene.files() == {"d": theirs}
    scene.forget_index()
    scene.accept(2)
    scene.reject(2)
    assert scene.files() == {"d": theirs}


def test_a_folder_that_a_person_made_where_an_edits_has_gone_is_theirs_though_files_move_into_it(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.write("y", b"2\n")
    scene.reject(1)
    (scene.root / "d").mkdir()
    scene.move("y", "d/y")
    for _ in range(2):
        scene.reject(3)
        assert standing(scene) == {"d": "empty folder", "y": "2"}
        scene.accept(3)


@pytest.mark.parametrize("beside", ["d-x", "d0"])
def test_a_removed_folder_belongs_to_no_edit_whatever_is_next_to_it(scene: Scene, beside: str) -> None:
    scene.write(beside, b"beside\n")
    scene.write("d/x", b"1\n")
    scene.reject(2)
    (scene.root / "d").mkdir()
    scene.write("d/x", b"2\n")
    scene.reject(3)
    assert standing(scene) == {"d": "empty folder", beside: "beside"}


def test_a_folder_that_a_person_made_where_an_edits_has_gone_gives_way_to_no_file(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.reject(1)
    (scene.root / "d").mkdir()
    with pytest.raises(PathIsDirectory):
        scene.write("d", b"file\n")
    assert standing(scene) == {"d": "empty folder"}


def test_a_folder_stays_as_who_removed_its_file_left_it_until_that_is_rejected(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    (scene.root / "d" / "x").unlink()
    outcome = scene.decide(Action.REJECT, 1, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert standing(scene) == {"d": "empty folder"}
    scene.undo()
    assert standing(scene) == {"d": "empty folder"}
    scene.reject(1)
    scene.reject(2)
    assert standing(scene) == {}


def test_a_folder_that_an_edit_made_again_is_that_edits(scene: Scene) -> None:
    scene.write("d/e/x", b"1\n")
    scene.reject(1)
    (scene.root / "d").mkdir()
    scene.write("d/e/x", b"2\n")
    scene.reject(2)
    assert standing(scene) == {"d": "empty folder"}
    (scene.root / "d").rmdir()
    scene.write("d/y", b"3\n")
    for _ in range(2):
        scene.reject(3)
        assert standing(scene) == {}
        scene.accept(3)


def test_a_folder_that_a_decision_made_again_is_the_edits_as_before(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.reject(1)
    scene.accept(1)
    scene.write("d/y", b"2\n")
    scene.reject(1, 2)
    assert standing(scene) == {}


def test_a_folder_in_which_another_file_stayed_is_the_edits_as_before(scene: Scene) -> None:
    scene.call(writes("d/x", b"1\n"), writes("d/y", b"2\n"))
    scene.reject(1)
    scene.write("d/z", b"3\n")
    scene.reject(2, 3)
    assert standing(scene) == {}


def test_an_empty_folder_goes_with_the_edits_of_a_file_that_a_decision_brought_back_there(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.reject(1)
    scene.accept(1)
    scene.move("d/x", "z")
    assert standing(scene) == {"d": "empty folder", "z": "1"}
    scene.reject(1, 2)
    assert standing(scene) == {}


def test_an_empty_folder_stays_until_the_edit_is_rejected_that_made_it_last(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.move("d/x", "z")
    (scene.root / "d").rmdir()
    scene.write("d/y", b"2\n")
    scene.move("d/y", "w")
    scene.reject(1, 2)
    assert standing(scene) == {"d": "empty folder", "w": "2"}
    scene.reject(3, 4)
    assert standing(scene) == {}


@pytest.mark.parametrize("name", ["d/x", "d/y"])
@pytest.mark.parametrize("origin", [Origin.EXTERNAL, Origin.AGENT])
def test_a_folder_that_is_found_with_a_new_file_goes_with_it(scene: Scene, name: str, origin: Origin) -> None:
    scene.write("d/x", b"1\n")
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    scene.reject(1)
    (scene.root / "d").mkdir()
    (scene.root / name).write_bytes(b"2\n")
    assert [view.seq for view in scene.workspace.record_changes(CallInfo(tool="", origin=origin)).edits] == [2]
    scene.reject(2)
    assert standing(scene) == {}


def test_a_folder_that_is_found_when_a_decision_meets_its_file_goes_with_it(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.reject(1)
    (scene.root / "d").mkdir()
    (scene.root / "d" / "x").write_bytes(b"2\n")
    outcome = scene.decide(Action.ACCEPT, 1, on_external=OnExternal.DISCARD)
    assert isinstance(outcome, Decided)
    assert standing(scene) == {"d/x": "1"}
    scene.reject(1)
    assert standing(scene) == {}


@pytest.mark.parametrize("order", list(permutations([1, 2, 3])), ids=str)
def test_without_any_edit_no_folder_is_left_that_edits_made(scene: Scene, order: tuple[int, ...]) -> None:
    scene.call(writes("d/e/x", b"1\n"), writes("d/y", b"2\n"))
    scene.call(deletes("d/e/x"))
    for seq in order:
        outcome = scene.decide(Action.REJECT, seq)
        assert isinstance(outcome, Decided), outcome
    assert standing(scene) == {}


def test_files_come_back_into_more_folders_than_the_database_takes_values(scene: Scene) -> None:
    paths = [f"d{n}/f" for n in range(520)]
    scene.call(*(writes(path, b"1\n") for path in paths))
    gone = scene.call(*(deletes(path) for path in paths))
    database = scene.workspace._journal.store.index._db.connection  # noqa: SLF001 - to have it take fewer, as others do
    database.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 510)
    scene.reject(*(edit.seq for edit in gone.edits))
    assert set(standing(scene)) == set(paths)
    assert set(scene.statuses().values()) == {Status.PENDING, Status.REJECTED}
    scene.reject(*range(1, 521))
    assert standing(scene) == {}


def test_a_call_that_is_taken_back_has_made_no_folder(tmp_path: Path) -> None:
    class Failing(UnsyncedDisk):
        """A disk on which no file `bad` can come."""

        def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:
            if name == "bad":
                raise DiskFailed(name, "Input/output error")
            super().rename_new(source_directory, source, directory, name)

    scene = Scene(tmp_path / "workspace", Failing)
    with pytest.raises(CallAborted):
        scene.write("d/bad", b"1\n")
    assert standing(scene) == {}
    (scene.root / "d").mkdir()
    seq = scene.write("d/x", b"2\n")
    scene.reject(seq)
    assert standing(scene) == {"d": "empty folder"}
    scene.close()


def test_a_decision_that_is_taken_back_has_left_no_folder(tmp_path: Path) -> None:
    class Failing(UnsyncedDisk):
        """A disk on which nothing can take the place of `f`."""

        def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
            if name == "f":
                raise DiskFailed(name, "Input/output error")
            return super().exchange(source_directory, source, directory, name)

    scene = Scene(tmp_path / "workspace")
    scene.write("d/x", b"1\n")
    scene.write("f", b"1\n")
    scene.write("f", b"2\n")
    scene.disk = Failing
    scene.reopen()
    with pytest.raises(CallAborted):
        scene.reject(1, 3)
    assert standing(scene) == {"d/x": "1", "f": "2"}
    scene.reject(1, scene.write("d/y", b"3\n"))
    assert standing(scene) == {"f": "2"}
    scene.close()
