"""Test calls in which folders and files take each other's paths, and all decisions about them."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Final

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
from tests.support.sampling import sampled_product
from tests.support.scene import Scene, deletes, moves, writes


def files_and_empty_folders(scene: Scene) -> dict[str, str]:
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
    return {name: words for name, words in files_and_empty_folders(scene).items() if words != "empty folder"}


FOLDER, FILE, FOLDER_AGAIN = {"d/e/x": "one"}, {"d": "file"}, {"d/y": "two"}


@pytest.fixture
def scene_after_swaps(scene: Scene) -> Scene:
    """Return a scene in which a file took the path of a folder, and then a folder that of the file."""
    scene.write("d/e/x", b"one\n")  # 1
    scene.call(deletes("d/e/x"), writes("d", b"file\n"))  # 2, 3
    assert files_and_empty_folders(scene) == FILE
    scene.call(deletes("d"), writes("d/y", b"two\n"))  # 4, 5
    assert files_and_empty_folders(scene) == FOLDER_AGAIN
    return scene


def test_decisions_swap_file_and_folder_in_both_directions(scene_after_swaps: Scene) -> None:
    for action, seqs, expected in (
        (Action.REJECT, (4, 5), FILE),
        (Action.REJECT, (2, 3), FOLDER),
        (Action.ACCEPT, (2, 3), FILE),
        (Action.ACCEPT, (4, 5), FOLDER_AGAIN),
        (Action.REJECT, (2, 3, 4, 5), FOLDER),
        (Action.ACCEPT, (2, 3, 4, 5), FOLDER_AGAIN),
    ):
        assert isinstance(scene_after_swaps.decide(action, *seqs), Decided)
        assert files_and_empty_folders(scene_after_swaps) == expected
    for expected in (FOLDER, FOLDER_AGAIN, FILE, FOLDER, FILE, FOLDER_AGAIN):
        scene_after_swaps.undo()
        assert files_and_empty_folders(scene_after_swaps) == expected
    assert scene_after_swaps.workspace.review.status().external == ()


def test_file_and_folder_of_one_name_are_a_conflict_that_names_the_edits(scene: Scene) -> None:
    scene.write("d/e/x", b"one\n")  # 1
    scene.call(deletes("d/e/x"), writes("d", b"file\n"))  # 2, 3
    refused(scene, Action.REJECT, 2, unit=(1, 0), needs=(3, 0))
    assert isinstance(scene.decide(Action.REJECT, 2, 3), Decided)
    refused(scene, Action.ACCEPT, 3, unit=(3, 0), needs=(1, 0))


def refused(scene: Scene, action: Action, seq: int, *, unit: tuple[int, int], needs: tuple[int, int]) -> None:
    """Decide, and check that the decision is refused because of what blocks it, and that nothing has changed."""
    before = files_and_empty_folders(scene)
    outcome = scene.decide(action, seq)
    assert isinstance(outcome, Conflicted)
    (conflict,) = outcome.conflicts
    assert (conflict.kind, conflict.unit, conflict.needs) == (ConflictKind.PATH_TAKEN, unit, (needs,))
    assert files_and_empty_folders(scene) == before


DELETED_THEN_CREATED = [(("d/y", "d/z/y"), ("d",)), (("d",), ("d/y", "d/z/y"))]
"""Files that a person deletes with their folders, and files that a call then writes at those paths."""


@pytest.mark.parametrize(("first", "then"), DELETED_THEN_CREATED, ids=["a file for a folder", "a folder for a file"])
@pytest.mark.parametrize("is_made_by_hand", [False, True])
def test_call_at_the_path_of_deleted_files_records_their_deletion_first(
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
def test_deletion_or_move_from_a_folder_that_replaced_a_file_can_be_rejected(
    scene: Scene, act: Callable[[Call], object]
) -> None:
    scene.write("c", b"file\n")
    (scene.root / "c").unlink()
    (scene.root / "c" / "a").mkdir(parents=True)
    (scene.root / "c" / "a" / "b").write_bytes(b"a person's\n")
    outcome = scene.call(act)
    assert [(view.edit.path, view.edit.after) for view in outcome.external] == [(b"c", None)]
    scene.reject(outcome.edits[0].seq)
    assert files_and_empty_folders(scene) == {"c/a/b": "a person's"}


def test_only_a_folder_created_by_a_recorded_edit_is_replaced_by_a_file(scene: Scene) -> None:
    (scene.root / "own").mkdir()
    scene.write("own/f", b"f\n")
    with pytest.raises(PathIsDirectory):
        scene.call(deletes("own/f"), writes("own", b"file\n"))
    assert files_and_empty_folders(scene) == {"own/f": "f"}


@pytest.mark.parametrize(
    "act",
    [writes("d", b"file\n"), moves("q", "d"), moves("d", "n"), deletes("d")],
    ids=["written", "moved there", "moved away", "deleted"],
)
@pytest.mark.parametrize("is_made_by_hand", [False, True])
def test_call_does_not_replace_a_folder_that_an_earlier_call_left_empty(
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
    assert files_and_empty_folders(scene) == {"q": "q", "d/e": "empty folder"}


@pytest.mark.parametrize("extra", ["d/stranger", "d/e/f/stranger", "d/empty/"])
def test_folder_with_unrecorded_content_is_not_replaced(scene: Scene, extra: str) -> None:
    scene.write("d/e/f/x", b"x\n")
    other = scene.root / extra
    if extra.endswith("/"):
        other.mkdir()
    else:
        other.write_bytes(b"a person's\n")
    with pytest.raises(PathIsDirectory):
        scene.call(deletes("d/e/f/x"), writes("d", b"file\n"))
    assert files_and_empty_folders(scene)["d/e/f/x"] == "x"
    assert other.exists()


def test_folder_with_a_new_unrecorded_file_is_not_replaced(scene: Scene) -> None:
    scene.write("d/x", b"x\n")
    scene.call(deletes("d/x"), writes("d", b"file\n"))
    scene.decide(Action.REJECT, 2, 3)
    (scene.root / "d" / "late").write_bytes(b"late\n")
    with pytest.raises(FileExists):
        scene.decide(Action.ACCEPT, 2, 3)
    assert files_and_empty_folders(scene) == {"d/x": "x", "d/late": "late"}


def test_empty_folder_created_during_a_call_refuses_a_file_of_its_name(scene: Scene) -> None:
    with scene.workspace.call(CallInfo(tool="t")) as call:
        call.write("d", b"file\n")
        (scene.root / "d").mkdir()
        with pytest.raises(FileExists):
            call.commit()
    assert files_and_empty_folders(scene) == {"d": "empty folder"}


def test_file_can_move_to_the_path_of_its_own_folder(scene: Scene) -> None:
    scene.write("d/e/x", b"x\n")
    scene.call(moves("d/e/x", "other"), moves("other", "d"))
    assert files_and_empty_folders(scene) == {"d": "x"}
    assert isinstance(scene.decide(Action.REJECT, 2, 3), Decided)
    assert files_and_empty_folders(scene) == {"d/e/x": "x"}


def test_reserved_path_below_a_deleted_file_is_refused(scene: Scene) -> None:
    scene.write("f", b"f\n")
    for path in ("f/.git/config", "f/.cas/lock"):
        with pytest.raises(PathReserved):
            scene.call(deletes("f"), writes(path, b"x\n"))
    assert files_and_empty_folders(scene) == {"f": "f"}
    assert Path(scene.root / "f").is_file()


# ---- by a shell, with unrecorded files


SCRIPTS: Final = [
    "rm -r D; mv F D",
    "rm -r D; echo new > D",
    "mv D T; mv F D",
    "mv D T; mv F D; mv T F",
    "rm F; mkdir F; mv D/x F/y",
    "rm F; mv D F",
    "rm F; mv D F; mkdir D; mv F/x D/x; rm -r F",
    "mv D T; mkdir D; mv F D/x; mv T F",
    "mv D/s/y T; rm -r D; mv T D; rm F",
]
NAMES: Final = [("d", "a"), ("d", "z"), ("d/e", "d/f"), ("d/e", "d/d"), ("d/e", "z"), ("d", "t/d")]


@pytest.mark.parametrize(("script", "names"), sampled_product(SCRIPTS, NAMES))
def test_swaps_of_folders_and_files_by_a_shell_can_be_rejected_and_accepted(
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
    for action, expected in ((Action.REJECT, before), (Action.ACCEPT, after), (Action.REJECT, before)):
        assert isinstance(scene.workspace.decide(action, units), Decided)
        assert files(scene) == expected
    for expected in (after, before, after):
        scene.undo()
        assert files(scene) == expected
    assert scene.workspace.review.status().external == ()


def test_folder_left_empty_by_a_decision_does_not_block_the_next(scene: Scene) -> None:
    (scene.root / "d").mkdir()
    (scene.root / "d" / "x").write_bytes(b"x\n")
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    assert os.system(f"cd '{scene.root}' && rm -r d && echo new > d") == 0  # noqa: S605 - our own command
    gone, new = scene.workspace.record_changes(CallInfo(tool="Bash", conversation="c")).edits
    assert isinstance(scene.decide(Action.REJECT, gone.seq, new.seq), Decided)
    assert isinstance(scene.decide(Action.ACCEPT, gone.seq), Decided)
    assert isinstance(scene.decide(Action.ACCEPT, new.seq), Decided)
    assert files_and_empty_folders(scene) == {"d": "new"}


@pytest.mark.parametrize("script", ["rm f; mkdir f", "mv f g; mkdir f", "rm f; mkdir -p f/a/b f/c"])
def test_rejection_restores_a_file_that_a_shell_replaced_by_empty_folders(scene: Scene, script: str) -> None:
    before = run_in_shell(scene, script)
    units = [Unit(view.seq, 0) for view in scene.workspace.history.edits(EditFilter(conversation="c"))]
    after = files(scene)
    for action, expected in ((Action.REJECT, before), (Action.ACCEPT, after), (Action.REJECT, before)):
        assert isinstance(scene.workspace.decide(action, units), Decided)
        assert files_and_empty_folders(scene) == expected
    assert scene.workspace.review.status().external == ()


@pytest.mark.parametrize("extra", ["f/late", "f/a/late", "f/link"])
def test_folder_with_unrecorded_content_blocks_restoring_the_file_and_is_named(scene: Scene, extra: str) -> None:
    run_in_shell(scene, "rm f; mkdir -p f/a")
    if extra.endswith("link"):
        (scene.root / extra).symlink_to("a")
    else:
        (scene.root / extra).write_bytes(b"late\n")
    before = [*scene.root.rglob("*")]
    units = [Unit(view.seq, 0) for view in scene.workspace.history.edits(EditFilter(conversation="c"))]
    for dry_run in (True, False):
        with pytest.raises(FileExists) as refused:
            scene.workspace.decide(Action.REJECT, units, dry_run=dry_run)
        assert str(refused.value) == (
            f"f is a folder, and these paths in it must stay: {extra}. Move the folder away and try again, or leave "
            "out the edits of f."
        )
    assert [*scene.root.rglob("*")] == before
    assert {edit.status for edit in scene.workspace.history.edits(EditFilter(conversation="c"))} == {Status.PENDING}


def run_in_shell(scene: Scene, script: str) -> dict[str, str]:
    """Run a script in an agent's shell, which also creates another file; return the files before."""
    for name in ("f", "other"):
        (scene.root / name).write_bytes(name.encode())
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    before = files_and_empty_folders(scene)
    assert os.system(f"cd '{scene.root}' && {script}; echo new > new") == 0  # noqa: S605 - the tests' own commands
    scene.workspace.record_changes(CallInfo(tool="Bash", conversation="c"))
    return before


@pytest.mark.parametrize("extra", ["d/late", "d/s/late", "d/empty/"])
def test_folder_with_unrecorded_content_is_not_replaced_by_an_accepted_file(scene: Scene, extra: str) -> None:
    (scene.root / "d" / "s").mkdir(parents=True)
    (scene.root / "d" / "s" / "x").write_bytes(b"x\n")
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    assert os.system(f"cd '{scene.root}' && rm -r d && echo new > d") == 0  # noqa: S605 - our own command
    edits = scene.workspace.record_changes(CallInfo(tool="Bash", conversation="c")).edits
    units = [Unit(view.seq, 0) for view in edits]
    assert isinstance(scene.workspace.decide(Action.REJECT, units), Decided)
    if extra.endswith("/"):
        (scene.root / extra).mkdir()
    else:
        (scene.root / extra).write_bytes(b"late\n")
    before = files_and_empty_folders(scene)
    with pytest.raises(FileExists):
        scene.workspace.decide(Action.ACCEPT, units)
    assert files_and_empty_folders(scene) == before
    assert [edit.status for edit in scene.workspace.history.edits()] == [Status.REJECTED] * 2


def delete_two_files(scene: Scene) -> None:
    """Let an agent create `d/e/f`, `h/f` and `g`, and a person delete the first two, but not their folders."""
    scene.call(writes("d/e/f", b"f\n"), writes("g", b"g\n"), writes("h/f", b"f\n"))
    for path in ("d/e/f", "h/f"):
        (scene.root / path).unlink()
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.PERSON), ["d/e/f", "h/f"])


@pytest.mark.parametrize("besides", [[], [2]], ids=["no file changes", "a file changes"])
def test_decision_succeeds_although_an_empty_folder_can_not_be_removed(tmp_path: Path, besides: list[int]) -> None:
    class Failing(UnsyncedDisk):
        """A disk that can't read the folder."""

        def remove_directory(self, directory: int, name: str) -> bool:
            if name == "e":
                raise DiskFailed(name, "Input/output error")
            return super().remove_directory(directory, name)

    scene = Scene(tmp_path / "workspace", Failing)
    delete_two_files(scene)
    assert isinstance(scene.decide(Action.REJECT, 1, 3, 4, 5, *besides), Decided)
    assert files_and_empty_folders(scene) == {"d/e": "empty folder"} | ({} if besides else {"g": "g"})
    assert scene.workspace.review.status().external == ()
    scene.close()


@pytest.mark.parametrize("place", ["..", "."], ids=["outside", "inside"])
@pytest.mark.parametrize("besides", [[], [2]], ids=["no file changes", "a file changes"])
def test_folder_replaced_by_a_link_is_left_with_the_target_of_the_link(
    scene: Scene, besides: list[int], place: str
) -> None:
    delete_two_files(scene)
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


def test_folder_recreated_by_a_person_is_not_removed_with_later_edits(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.reject(1)
    assert files_and_empty_folders(scene) == {}
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


def test_folder_recreated_by_a_person_is_kept_after_files_moved_into_it(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.write("y", b"2\n")
    scene.reject(1)
    (scene.root / "d").mkdir()
    scene.move("y", "d/y")
    for _ in range(2):
        scene.reject(3)
        assert files_and_empty_folders(scene) == {"d": "empty folder", "y": "2"}
        scene.accept(3)


@pytest.mark.parametrize("other", ["d-x", "d0"])
def test_removed_folder_belongs_to_no_edit_regardless_of_similar_names(scene: Scene, other: str) -> None:
    scene.write(other, b"beside\n")
    scene.write("d/x", b"1\n")
    scene.reject(2)
    (scene.root / "d").mkdir()
    scene.write("d/x", b"2\n")
    scene.reject(3)
    assert files_and_empty_folders(scene) == {"d": "empty folder", other: "beside"}


def test_folder_recreated_by_a_person_is_not_replaced_by_a_file(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.reject(1)
    (scene.root / "d").mkdir()
    with pytest.raises(PathIsDirectory):
        scene.write("d", b"file\n")
    assert files_and_empty_folders(scene) == {"d": "empty folder"}


def test_folder_emptied_by_a_person_is_removed_only_when_their_edit_is_rejected(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    (scene.root / "d" / "x").unlink()
    outcome = scene.decide(Action.REJECT, 1, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert files_and_empty_folders(scene) == {"d": "empty folder"}
    scene.undo()
    assert files_and_empty_folders(scene) == {"d": "empty folder"}
    scene.reject(1)
    scene.reject(2)
    assert files_and_empty_folders(scene) == {}


def test_folder_recreated_by_an_edit_is_removed_with_that_edit(scene: Scene) -> None:
    scene.write("d/e/x", b"1\n")
    scene.reject(1)
    (scene.root / "d").mkdir()
    scene.write("d/e/x", b"2\n")
    scene.reject(2)
    assert files_and_empty_folders(scene) == {"d": "empty folder"}
    (scene.root / "d").rmdir()
    scene.write("d/y", b"3\n")
    for _ in range(2):
        scene.reject(3)
        assert files_and_empty_folders(scene) == {}
        scene.accept(3)


def test_folder_recreated_by_a_decision_still_belongs_to_the_edit(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.reject(1)
    scene.accept(1)
    scene.write("d/y", b"2\n")
    scene.reject(1, 2)
    assert files_and_empty_folders(scene) == {}


def test_folder_with_a_remaining_file_still_belongs_to_its_edits(scene: Scene) -> None:
    scene.call(writes("d/x", b"1\n"), writes("d/y", b"2\n"))
    scene.reject(1)
    scene.write("d/z", b"3\n")
    scene.reject(2, 3)
    assert files_and_empty_folders(scene) == {}


def test_empty_folder_is_removed_with_the_edits_of_a_file_that_was_restored_there(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.reject(1)
    scene.accept(1)
    scene.move("d/x", "z")
    assert files_and_empty_folders(scene) == {"d": "empty folder", "z": "1"}
    scene.reject(1, 2)
    assert files_and_empty_folders(scene) == {}


def test_empty_folder_is_removed_only_with_the_edit_that_created_it_last(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.move("d/x", "z")
    (scene.root / "d").rmdir()
    scene.write("d/y", b"2\n")
    scene.move("d/y", "w")
    scene.reject(1, 2)
    assert files_and_empty_folders(scene) == {"d": "empty folder", "w": "2"}
    scene.reject(3, 4)
    assert files_and_empty_folders(scene) == {}


@pytest.mark.parametrize("name", ["d/x", "d/y"])
@pytest.mark.parametrize("origin", [Origin.EXTERNAL, Origin.AGENT])
def test_folder_found_by_a_scan_with_a_new_file_is_removed_with_that_file(
    scene: Scene, name: str, origin: Origin
) -> None:
    scene.write("d/x", b"1\n")
    scene.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    scene.reject(1)
    (scene.root / "d").mkdir()
    (scene.root / name).write_bytes(b"2\n")
    assert [view.seq for view in scene.workspace.record_changes(CallInfo(tool="", origin=origin)).edits] == [2]
    scene.reject(2)
    assert files_and_empty_folders(scene) == {}


def test_folder_found_by_a_decision_with_its_file_is_removed_with_that_file(scene: Scene) -> None:
    scene.write("d/x", b"1\n")
    scene.reject(1)
    (scene.root / "d").mkdir()
    (scene.root / "d" / "x").write_bytes(b"2\n")
    outcome = scene.decide(Action.ACCEPT, 1, on_external=OnExternal.DISCARD)
    assert isinstance(outcome, Decided)
    assert files_and_empty_folders(scene) == {"d/x": "1"}
    scene.reject(1)
    assert files_and_empty_folders(scene) == {}


@pytest.mark.parametrize("order", list(permutations([1, 2, 3])), ids=str)
def test_rejecting_every_edit_removes_every_folder_that_edits_created(scene: Scene, order: tuple[int, ...]) -> None:
    scene.call(writes("d/e/x", b"1\n"), writes("d/y", b"2\n"))
    scene.call(deletes("d/e/x"))
    for seq in order:
        outcome = scene.decide(Action.REJECT, seq)
        assert isinstance(outcome, Decided), outcome
    assert files_and_empty_folders(scene) == {}


def test_files_are_restored_into_more_folders_than_sqlite_has_variables(scene: Scene) -> None:
    paths = [f"d{n}/f" for n in range(520)]
    scene.call(*(writes(path, b"1\n") for path in paths))
    gone = scene.call(*(deletes(path) for path in paths))
    database = scene.workspace._journal.store.index._db.connection  # noqa: SLF001 - to have it take fewer, as others do
    database.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 510)
    scene.reject(*(edit.seq for edit in gone.edits))
    assert set(files_and_empty_folders(scene)) == set(paths)
    assert set(scene.statuses().values()) == {Status.PENDING, Status.REJECTED}
    scene.reject(*range(1, 521))
    assert files_and_empty_folders(scene) == {}


def test_rolled_back_call_leaves_no_folder(tmp_path: Path) -> None:
    class Failing(UnsyncedDisk):
        """A disk on which no file `bad` can be created."""

        def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:
            if name == "bad":
                raise DiskFailed(name, "Input/output error")
            super().rename_new(source_directory, source, directory, name)

    scene = Scene(tmp_path / "workspace", Failing)
    with pytest.raises(CallAborted):
        scene.write("d/bad", b"1\n")
    assert files_and_empty_folders(scene) == {}
    (scene.root / "d").mkdir()
    seq = scene.write("d/x", b"2\n")
    scene.reject(seq)
    assert files_and_empty_folders(scene) == {"d": "empty folder"}
    scene.close()


def test_rolled_back_decision_leaves_no_folder(tmp_path: Path) -> None:
    class Failing(UnsyncedDisk):
        """A disk on which `f` can't be replaced."""

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
    assert files_and_empty_folders(scene) == {"d/x": "1", "f": "2"}
    scene.reject(1, scene.write("d/y", b"3\n"))
    assert files_and_empty_folders(scene) == {"f": "2"}
    scene.close()
