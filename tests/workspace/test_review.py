"""Review: what a person decides, what becomes of the file, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from objstore import (
    Action,
    Conflicted,
    Decided,
    EditFilter,
    EditView,
    ExternalChanges,
    FileChanged,
    FileExists,
    Hunk,
    NoSuchName,
    NothingToDo,
    OnExternal,
    Operation,
    Origin,
    PathIsDirectory,
    Seq,
    Status,
    Unit,
    Workspace,
    blob_id,
)
from tests.workspace.scene import Scene, moves, writes

TEN = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"


def lines(text: str) -> bytes:
    """Return a text that is spelt with spaces between its lines."""
    return "".join(f"{word}\n" for word in text.split()).encode()


def words(content: bytes | None) -> str:
    """Return a text with spaces between its lines."""
    return "gone" if content is None else " ".join(content.decode().split("\n")).strip()


# ---- one file


def test_an_early_edit_goes_and_later_ones_stay(scene: Scene) -> None:
    scene.write("f", lines("a b c d e f g h"))
    early = scene.edit("f", b"b\n", b"B\n")
    scene.edit("f", b"g\n", b"G\nG\n")
    scene.edit("f", b"d\n", b"")

    scene.reject(early)
    assert words(scene.text("f")) == "a b c e f G G h"

    scene.accept(early)
    assert words(scene.text("f")) == "a B c e f G G h"


# What the history writes, one text after the other; what is rejected; what the file then holds, or who needs whom.
HISTORIES = [
    ("p A q > p B q > p A q", "1", "p A q"),
    ("p X q > p q > p X q", "1", "p X q"),
    ("p 10 11 q > p ten 11 q > p ten eleven q", "1", "p 10 eleven q"),
    ("p 10 11 q > p 10 eleven q > p ten eleven q", "1", "p ten 11 q"),
    ("p q > p A q > p A B q", "1", "p B q"),
    ("p q > p A q > p B A q", "1", "p B q"),
    ("p X q > p Y q > p N Y q", "1", "p N X q"),
    ("p X q > p Y q > p Y N q", "1", "p X N q"),
    ("p X q > p q > p N q", "1", "2 needs 1"),
    ("p q > p A B C q > p A b C q", "1", "2 needs 1"),
    ("p q > p A B C q > p A N B C q", "1", "2 needs 1"),
    ("p x y q > p x A B y q > p q", "1", "p q"),
    ("p a q b r > p A q b r > k l m n > k l M n", "2", "3 needs 2"),
    ("p a q b r > p A q b r > p A q B r", "1 2", "p a q b r"),
]


@pytest.mark.parametrize(("history", "rejected", "wanted"), HISTORIES)
def test_the_table_of_answers_holds_on_disk(scene: Scene, history: str, rejected: str, wanted: str) -> None:
    base, *steps = history.split(" > ")
    (scene.root / "f").write_bytes(lines(base))
    for step in steps:
        scene.write("f", lines(step))

    outcome = scene.decide(Action.REJECT, *rejected.split())

    match outcome:
        case Decided():
            assert words(scene.text("f")) == wanted
        case Conflicted(conflicts=conflicts):
            found = {f"{conflict.unit.seq} needs {need.seq}" for conflict in conflicts for need in conflict.needs}
            assert found == {wanted}
            assert words(scene.text("f")) == steps[-1]
        case _:
            pytest.fail(str(outcome))


def test_what_took_a_rejected_edits_place_stands_in_its_way_back(scene: Scene) -> None:
    scene.write("f", lines("p X q"))
    first = scene.edit("f", b"X", b"Y")
    scene.reject(first)
    second = scene.edit("f", b"X", b"Z")

    for conflict in scene.refused(Action.ACCEPT, first):
        assert {conflict.unit.seq, *(need.seq for need in conflict.needs)} == {first, second}
    assert words(scene.text("f")) == "p Z q"


def test_a_final_newline_and_a_line_are_separate_edits(scene: Scene) -> None:
    (scene.root / "f").write_bytes(b"a")
    newline = scene.write("f", b"a\n")
    scene.write("f", b"a\nb\n")

    scene.reject(newline)
    assert scene.text("f") == b"a\nb\n"

    scene.reject(2)
    assert scene.text("f") == b"a"


def test_hunks_are_decided_one_by_one(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.write("f", TEN.replace(b"2\n", b"two\n").replace(b"5\n", b"").replace(b"9\n", b"9\n9.5\n"))
    assert len(scene.view(edit).units) == 4

    scene.reject(f"{edit}:2")
    assert words(scene.text("f")) == "1 two 3 4 5 6 7 8 9 9.5 10"
    assert scene.view(edit).partly
    assert scene.view(edit).status is Status.PENDING

    scene.accept(f"{edit}:1", f"{edit}:3")
    assert scene.view(edit).status is Status.ACCEPTED

    scene.reject(edit)
    assert scene.text("f") == TEN
    assert scene.view(edit).status is Status.REJECTED

    scene.accept(f"{edit}:3")
    assert words(scene.text("f")) == "1 2 3 4 5 6 7 8 9 9.5 10"


def test_a_mode_is_decided_apart_from_the_text(scene: Scene) -> None:
    scene.write("f", TEN, mode=0o644)
    edit = scene.write("f", TEN.replace(b"5\n", b"five\n"), mode=0o755)

    scene.reject(f"{edit}:0")
    assert (scene.mode("f"), scene.text("f")) == (0o644, TEN.replace(b"5\n", b"five\n"))

    scene.accept(f"{edit}:0")
    scene.reject(f"{edit}:1")
    assert (scene.mode("f"), scene.text("f")) == (0o755, TEN)


def test_reset_makes_pending_and_brings_back(scene: Scene) -> None:
    scene.write("f", lines("a b"))
    edit = scene.edit("f", b"b", b"B")
    scene.reject(edit)

    scene.reset(edit)
    assert scene.view(edit).status is Status.PENDING
    assert words(scene.text("f")) == "a B"


def test_accepting_changes_no_file(scene: Scene) -> None:
    scene.write("f", lines("a b"))
    before = scene.files()

    outcome = scene.accept(1)

    assert outcome.files == ()
    assert scene.files() == before
    assert scene.view(1).status is Status.ACCEPTED


def test_what_is_so_already_is_nothing_to_do(scene: Scene) -> None:
    scene.write("f", lines("a b"))
    scene.accept(1)
    before = scene.everything()
    assert scene.decide(Action.ACCEPT, 1) == NothingToDo()
    assert scene.everything() == before


# ---- conflicts and cascade


def test_a_conflict_names_who_needs_whom_and_the_lines(scene: Scene) -> None:
    scene.write("d/f", lines("a b c"))
    needed = scene.edit("d/f", b"b\n", b"x\ny\nz\n")
    needing = scene.edit("d/f", b"y\n", b"Y\n")

    (conflict,) = scene.refused(Action.REJECT, needed)

    assert conflict.kind == "missing-target"
    assert conflict.unit == Unit(needing, 1)
    assert conflict.needs == (Unit(needed, 1),)
    assert (conflict.path, conflict.removed, conflict.inserted) == ("d/f", b"y\n", b"Y\n")
    assert conflict.line in {2, 3}
    assert str(conflict).startswith(f"edit {needing} hunk 1 needs edit {needed} (d/f:")


def test_cascade_takes_the_dependents_along_and_lists_them(scene: Scene) -> None:
    scene.write("f", lines("a b c d"))
    first = scene.edit("f", b"b\n", b"x\ny\n")
    second = scene.edit("f", b"y\n", b"Y\n")
    third = scene.edit("f", b"Y\n", b"YY\n")
    scene.edit("f", b"d\n", b"D\n")

    dry = scene.decide(Action.REJECT, first, cascade=True, dry_run=True)
    done = scene.reject(first, cascade=True)

    assert isinstance(dry, Decided)
    assert set(done.cascaded) == set(dry.cascaded) == {Unit(second, 1), Unit(third, 1)}
    assert words(scene.text("f")) == "a b c D"
    assert scene.undo().files[0].after == blob_id(lines("a x YY c D"))


def test_cascade_is_for_rejecting(scene: Scene) -> None:
    scene.write("f", lines("p X q"))
    first = scene.edit("f", b"X", b"Y")
    scene.reject(first)
    scene.edit("f", b"X", b"Z")
    assert isinstance(scene.decide(Action.ACCEPT, first, cascade=True), Conflicted)


def test_unknown_units_are_refused_by_name(scene: Scene) -> None:
    scene.write("f", lines("a"))
    before = scene.everything()
    for unit in (Unit(Seq(7), 0), Unit(Seq(1), 1), Unit(Seq(0), 0), Unit(Seq(-1), 0), Unit(Seq(1), -1)):
        with pytest.raises(NoSuchName):
            scene.workspace.decide(Action.REJECT, [Unit(Seq(1), 0), unit])
    for name in ("7", "1:1", "1:", "1:x", "abcd", "", ":", "1:-1", "0"):
        with pytest.raises(NoSuchName):
            scene.workspace.find_units(name)
    assert scene.everything() == before


# ---- paths


def test_a_move_chain_is_toggled_in_any_order(scene: Scene) -> None:
    scene.write("a", lines("text"))
    one = scene.move("a", "b")
    two = scene.move("b", "c/d")

    scene.reject(two)
    assert (scene.text("b"), scene.text("c/d")) == (lines("text"), None)
    scene.reject(one)
    assert (scene.text("a"), scene.text("b")) == (lines("text"), None)
    scene.accept(two)
    assert (scene.text("c/d"), scene.text("a")) == (lines("text"), None)
    scene.accept(one)
    scene.reject(one)
    assert scene.text("c/d") == lines("text")
    assert scene.external() == {}


def test_an_edit_before_a_move_can_be_rejected_after_it(scene: Scene) -> None:
    scene.write("a", lines("x y z"))
    edit = scene.edit("a", b"y", b"Y")
    scene.move("a", "b")
    scene.edit("b", b"z", b"Z")

    scene.reject(edit)
    assert words(scene.text("b")) == "x y Z"
    assert scene.text("a") is None


def test_going_back_to_a_path_that_is_taken_is_a_conflict(scene: Scene) -> None:
    scene.write("a", lines("old"))
    move = scene.move("a", "b")
    other = scene.write("a", lines("new"))

    (conflict,) = scene.refused(Action.REJECT, move)

    assert conflict.kind == "path-taken"
    assert conflict.path == "a"
    assert other in {need.seq for need in conflict.needs} | {conflict.unit.seq}
    scene.reject(other)
    scene.reject(move)
    assert scene.text("a") == lines("old")


def test_going_back_to_a_path_where_an_unrecorded_file_stands_changes_nothing(scene: Scene) -> None:
    scene.write("a", lines("old"))
    move = scene.move("a", "b")
    (scene.root / "a").write_bytes(b"mine\n")
    before = scene.everything()
    for on_external in OnExternal:
        with pytest.raises(FileExists):
            scene.decide(Action.REJECT, move, on_external=on_external)
    assert scene.everything() == before


def test_two_files_trade_places_and_back(scene: Scene) -> None:
    scene.write("a", lines("A"), mode=0o600)
    scene.write("b", lines("B"), mode=0o755)
    seqs = [view.seq for view in scene.call(moves("a", "t"), moves("b", "a"), moves("t", "b")).edits]
    assert (scene.text("a"), scene.text("b")) == (lines("B"), lines("A"))
    assert (scene.mode("a"), scene.mode("b")) == (0o755, 0o600)

    scene.reject(*seqs)
    assert (scene.text("a"), scene.text("b")) == (lines("A"), lines("B"))
    assert (scene.mode("a"), scene.mode("b")) == (0o600, 0o755)

    scene.accept(*reversed(seqs))
    assert (scene.text("a"), scene.text("b"), scene.text("t")) == (lines("B"), lines("A"), None)


def test_a_deletion_comes_back_with_its_mode(scene: Scene) -> None:
    scene.write("d/f", lines("text"), mode=0o750)
    gone = scene.delete("d/f")
    scene.reject(gone)
    assert (scene.text("d/f"), scene.mode("d/f")) == (lines("text"), 0o750)
    scene.accept(gone)
    assert scene.text("d/f") is None


def test_delete_and_create_again_is_one_lineage(scene: Scene) -> None:
    first = scene.write("f", lines("one"))
    gone = scene.delete("f")
    again = scene.write("f", lines("two"))
    assert {scene.view(seq).edit.document for seq in (first, gone, again)} == {1}
    assert scene.view(again).edit.operation is Operation.CREATE

    scene.reject(again)
    assert scene.text("f") is None
    scene.reject(gone)
    assert scene.text("f") == lines("one")
    scene.accept(gone)
    scene.accept(again)
    assert scene.text("f") == lines("two")
    # With the old text back, there would be two files in one.
    (conflict,) = scene.refused(Action.REJECT, gone)
    assert conflict.unit.seq == again


def test_a_rejected_creation_removes_the_file(scene: Scene) -> None:
    created = scene.write("new", lines("text"))
    outcome = scene.reject(created)
    assert scene.text("new") is None
    assert scene.workspace.preview(outcome.files[0]) == (lines("text"), None)
    scene.accept(created)
    assert scene.text("new") == lines("text")


def test_one_decision_over_many_files_is_all_or_nothing(scene: Scene) -> None:
    scene.write("a", lines("a"))
    scene.write("b", lines("b"))
    needed = scene.edit("b", b"b\n", b"x\ny\n")
    scene.edit("b", b"y\n", b"Y\n")

    scene.refused(Action.REJECT, 1, needed)
    scene.reject(1, needed, 4)
    assert (scene.text("a"), scene.text("b")) == (None, lines("b"))


def test_rejecting_a_call_takes_back_every_file_of_it(scene: Scene) -> None:
    scene.write("a", lines("a"))
    outcome = scene.call(
        moves("a", "sub/a"),
        writes("sub/a", lines("A")),
        writes("b", lines("b")),
        writes("a", lines("another")),
    )
    scene.reject(*(view.seq for view in outcome.edits))
    assert (scene.text("a"), scene.text("sub/a"), scene.text("b")) == (lines("a"), None, None)
    scene.accept(*(view.seq for view in outcome.edits))
    assert (scene.text("a"), scene.text("sub/a"), scene.text("b")) == (lines("another"), lines("A"), lines("b"))


# ---- changes from outside


def after_hand_edit(scene: Scene) -> Seq:
    """Record a file and an edit, and let a person change another line."""
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    (scene.root / "f").write_bytes(TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n"))
    return edit


def test_without_an_answer_a_change_from_outside_stops_the_decision(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    before = scene.everything()
    outcome = scene.decide(Action.REJECT, edit)
    assert isinstance(outcome, ExternalChanges)
    (change,) = outcome.changes
    assert change == scene.external()["f"]
    assert (change.path, change.recorded_mode, change.found_mode) == ("f", scene.mode("f"), scene.mode("f"))
    assert (scene.root / "f").read_bytes() == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")
    assert scene.everything() == before


def test_kept_changes_from_outside_are_carried_through(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == TEN.replace(b"9\n", b"nine\n")
    (external,) = outcome.external
    assert (external.edit.origin, external.status) == (Origin.EXTERNAL, Status.ACCEPTED)
    assert scene.external() == {}
    scene.accept(edit)
    assert scene.text("f") == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")


def test_discarded_changes_from_outside_stay_retrievable(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    typed = scene.text("f")
    assert typed is not None
    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == TEN
    assert scene.workspace.blob(blob_id(typed)) == typed
    (external,) = outcome.external
    assert external.status is Status.REJECTED
    scene.accept(external.seq)
    assert scene.text("f") == TEN.replace(b"9\n", b"nine\n")


def test_undo_brings_back_what_was_discarded(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    typed = scene.text("f")
    scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD)
    scene.undo()
    assert scene.text("f") == typed


def test_a_hand_edit_of_a_rejected_line_is_a_conflict(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    (scene.root / "f").write_bytes(TEN.replace(b"2\n", b"twenty\n"))
    before = scene.everything()

    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Conflicted)
    assert [(c.unit.seq, [need.seq for need in c.needs]) for c in outcome.conflicts] == [(3, [edit])]
    assert scene.everything() == before

    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP, cascade=True)
    assert isinstance(outcome, Decided)
    assert outcome.cascaded == (Unit(Seq(3), 1),)
    assert scene.text("f") == TEN
    assert scene.workspace.blob(blob_id(TEN.replace(b"2\n", b"twenty\n")))


def test_a_disk_that_moves_between_question_and_answer_is_noticed(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    shown = scene.decide(Action.REJECT, edit)
    assert isinstance(shown, ExternalChanges)
    (scene.root / "f").write_bytes(b"all new\n")
    before = scene.everything()
    for on_external in (OnExternal.KEEP, OnExternal.DISCARD):
        with pytest.raises(FileChanged):
            scene.decide(Action.REJECT, edit, on_external=on_external, expected=shown.changes)
    assert scene.everything() == before

    shown = scene.decide(Action.REJECT, edit)
    assert isinstance(shown, ExternalChanges)
    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD, expected=shown.changes)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == TEN


def test_a_change_that_was_shown_and_is_gone_is_noticed(scene: Scene) -> None:
    edit = after_hand_edit(scene)
    shown = scene.decide(Action.REJECT, edit)
    assert isinstance(shown, ExternalChanges)
    (scene.root / "f").write_bytes(TEN.replace(b"2\n", b"two\n"))
    with pytest.raises(FileChanged):
        scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP, expected=shown.changes)


def test_the_changes_shown_may_be_named_in_any_order(scene: Scene) -> None:
    scene.write("a", TEN)
    scene.write("b", TEN)
    for name in ("a", "b"):
        (scene.root / name).write_bytes(b"by hand\n")
    shown = scene.workspace.external_changes()
    outcome = scene.decide(Action.REJECT, 2, 1, on_external=OnExternal.DISCARD, expected=shown)
    assert isinstance(outcome, Decided)


def test_a_changed_mode_is_a_change_from_outside(scene: Scene) -> None:
    scene.write("f", TEN, mode=0o644)
    edit = scene.edit("f", b"2\n", b"two\n")
    (scene.root / "f").chmod(0o755)
    (change,) = scene.external().values()
    assert (change.recorded_mode, change.found_mode, change.recorded) == (0o644, 0o755, change.found)

    scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP)
    assert (scene.mode("f"), scene.text("f")) == (0o755, TEN)


def test_a_file_deleted_by_hand_comes_back_or_stays_gone(scene: Scene) -> None:
    scene.write("d/f", TEN)
    edit = scene.edit("d/f", b"2\n", b"two\n")
    (scene.root / "d" / "f").unlink()
    (scene.root / "d").rmdir()
    assert scene.external()["d/f"].found is None

    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP, dry_run=True)
    assert isinstance(outcome, Decided)
    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD)
    assert isinstance(outcome, Decided)
    assert scene.text("d/f") == TEN


def test_a_file_made_by_hand_where_one_was_deleted_is_a_change_from_outside(scene: Scene) -> None:
    scene.write("f", TEN)
    gone = scene.delete("f")
    (scene.root / "f").write_bytes(b"by hand\n")
    assert scene.external()["f"].recorded is None
    before = scene.everything()
    assert isinstance(scene.decide(Action.REJECT, gone, on_external=OnExternal.KEEP), Conflicted)
    assert scene.everything() == before
    assert isinstance(scene.decide(Action.REJECT, gone, on_external=OnExternal.DISCARD), Decided)
    assert scene.text("f") == TEN
    assert scene.workspace.blob(blob_id(b"by hand\n")) == b"by hand\n"


def test_only_the_newest_of_several_files_deleted_at_a_path_claims_what_is_made_there(scene: Scene) -> None:
    scene.write("a", lines("one"))
    first_gone = scene.delete("a")
    scene.write("b", lines("two"))
    scene.move("b", "a")
    second_gone = scene.delete("a")
    (scene.root / "a").write_bytes(b"by hand\n")

    (change,) = scene.workspace.external_changes()
    outcome = scene.decide(Action.ACCEPT, first_gone, second_gone)
    assert isinstance(outcome, ExternalChanges)
    assert outcome.changes == (change,)
    outcome = scene.decide(Action.ACCEPT, first_gone, second_gone, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert len(outcome.external) == 1
    assert scene.text("a") == b"by hand\n"


def replaced_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replaced_by_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("replace", [replaced_by_folder, replaced_by_link])
def test_something_else_in_a_files_place_counts_as_the_file_gone(scene: Scene, replace: Callable[[Path], None]) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    replace(scene.root / "f")

    assert scene.external()["f"].found is None
    assert [change.path for change in scene.workspace.status().external] == ["f"]
    assert isinstance(scene.decide(Action.ACCEPT, edit), ExternalChanges)
    before = scene.everything()
    with pytest.raises((FileExists, PathIsDirectory)):
        scene.decide(Action.REJECT, edit, on_external=OnExternal.DISCARD)
    assert scene.everything() == before
    outcome = scene.decide(Action.ACCEPT, edit, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert scene.files() == before[0]
    assert scene.external() == {}


def test_a_file_in_the_place_of_a_files_folder_counts_as_the_file_gone(scene: Scene) -> None:
    scene.write("d/f", TEN)
    (scene.root / "d" / "f").unlink()
    (scene.root / "d").rmdir()
    (scene.root / "d").write_bytes(b"not a folder")
    assert scene.external()["d/f"].found is None
    assert isinstance(scene.decide(Action.ACCEPT, 1), ExternalChanges)


# ---- undo


def test_undo_takes_back_a_rejection(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    scene.accept(edit)
    before = scene.text("f")
    scene.reject(edit)

    outcome = scene.undo()

    assert scene.text("f") == before
    assert outcome.verdicts == ((Unit(edit, 0), Status.ACCEPTED), (Unit(edit, 1), Status.ACCEPTED))
    last = scene.workspace.decisions()[-1].decision
    assert (last.action, last.takes_back, last.who) == (Action.UNDO, 2, "reviewer")


def test_undoing_goes_back_one_decision_at_a_time(scene: Scene) -> None:
    scene.write("f", lines("a b c"))
    for old, new in ((b"a", b"A"), (b"b", b"B"), (b"c", b"C")):
        scene.edit("f", old, new)
    scene.reject(2)
    scene.reject(3)
    scene.accept(4)
    texts = []
    for _ in range(3):
        scene.undo()
        texts.append(words(scene.text("f")))
    assert texts == ["a b C", "a B C", "A B C"]
    assert scene.workspace.undo() == NothingToDo()
    scene.reject(4)
    scene.undo()
    assert scene.workspace.undo() == NothingToDo()
    assert set(scene.statuses().values()) == {Status.PENDING}


def test_an_undo_that_later_edits_stand_in_the_way_of_is_refused(scene: Scene) -> None:
    scene.write("f", lines("p X q"))
    edit = scene.edit("f", b"X", b"Y")
    scene.reject(edit)
    scene.edit("f", b"X", b"Z")
    before = scene.everything()
    assert isinstance(scene.workspace.undo(), Conflicted)
    assert scene.everything() == before


def test_undo_meets_changes_from_outside_as_any_decision_does(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    scene.reject(edit)
    (scene.root / "f").write_bytes(TEN.replace(b"9\n", b"nine\n"))
    outcome = scene.workspace.undo()
    assert isinstance(outcome, ExternalChanges)
    outcome = scene.workspace.undo(on_external=OnExternal.KEEP, expected=outcome.changes)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")


def test_undo_survives_the_loss_of_the_index(scene: Scene) -> None:
    scene.write("f", TEN)
    scene.reject(scene.edit("f", b"2\n", b"two\n"))
    scene.reject(scene.edit("f", b"9\n", b"nine\n"))
    scene.undo()
    scene.forget_index()
    scene.undo()
    assert scene.text("f") == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")


# ---- what is told


def test_a_reason_is_kept_and_the_newest_counts(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    scene.reject(edit, reason="the file is generated\nsee the build")
    assert scene.view(edit).reason == "the file is generated\nsee the build"
    assert scene.workspace.decisions()[-1].decision.reason == "the file is generated\nsee the build"
    scene.forget_index()
    assert scene.view(edit).reason == "the file is generated\nsee the build"
    scene.accept(edit)
    assert scene.view(edit).reason == ""


def test_a_dry_run_says_what_the_decision_then_does_and_changes_nothing(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    move = scene.move("f", "g")
    (scene.root / "g").write_bytes(TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n"))
    before = scene.everything()
    for on_external in (OnExternal.KEEP, OnExternal.DISCARD):
        dry = scene.decide(Action.REJECT, edit, move, on_external=on_external, dry_run=True)
        assert isinstance(dry, Decided)
        assert dry.number == 0
        (effect,) = dry.files
        held, holds = scene.workspace.preview(effect)
        assert held == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")
        assert holds == (TEN.replace(b"9\n", b"nine\n") if on_external is OnExternal.KEEP else TEN)
        assert (effect.path_before, effect.path_after) == ("g", "f")
        assert scene.everything() == before
    dry = scene.decide(Action.REJECT, edit, move, on_external=OnExternal.DISCARD, dry_run=True)
    done = scene.decide(Action.REJECT, edit, move, on_external=OnExternal.DISCARD)
    assert isinstance(dry, Decided)
    assert isinstance(done, Decided)
    assert (done.files, done.verdicts) == (dry.files, dry.verdicts)
    assert scene.text("f") == TEN


def test_a_dry_undo_changes_nothing(scene: Scene) -> None:
    scene.write("f", TEN)
    scene.reject(1)
    before = scene.everything()
    outcome = scene.workspace.undo(dry_run=True)
    assert isinstance(outcome, Decided)
    assert scene.workspace.preview(outcome.files[0]) == (None, TEN)
    assert scene.everything() == before


def test_hunks_that_do_not_fit_are_refused_before_anything_is_recorded(scene: Scene) -> None:
    scene.write("f", TEN)
    before = scene.everything()
    wrong: tuple[list[Hunk], ...] = [Hunk(0, 1, 0, 1)], [Hunk(1, 1, 1, 2)], [Hunk(90, 1, 90, 1)], []
    for hunks in wrong:
        with pytest.raises(ValueError, match="f"):
            scene.write("f", TEN.replace(b"2\n", b"two\n"), hunks=hunks)
    assert scene.everything() == before
    scene.edit("f", b"3\n", b"three\n")
    scene.reject(2)


# ---- names of states


def test_states_are_named_by_path_and_edit(scene: Scene) -> None:
    scene.write("d/f", lines("one"))
    edit = scene.write("d/f", lines("two"))
    move = scene.move("d/f", "d/g")
    for spelling, wanted in (
        ("d/f@1", "one"),
        (f"d/f@{edit}", "two"),
        (f"d/f@{edit}^", "one"),
        (f"d/g@{move}", "two"),
        (f"d/f@{move}^", "two"),
        ("d/g", "two"),
    ):
        state = scene.workspace.find_state(spelling)
        assert state.blob is not None
        assert words(scene.workspace.blob(state.blob)) == wanted
    assert scene.workspace.find_state("d/f@1^").blob is None
    for spelling in ("d/f@9", "d/x@1", "nothing", "@1", "d/f@", "x@"):
        with pytest.raises(NoSuchName):
            scene.workspace.find_state(spelling)


def test_history_is_told_of_files_whose_folder_is_gone(scene: Scene) -> None:
    scene.write("d/e/f", lines("one"))
    scene.delete("d/e/f")
    (scene.root / "d" / "e").rmdir()
    (scene.root / "d").rmdir()
    blob = scene.workspace.find_state("d/e/f@1").blob
    assert blob is not None
    assert scene.workspace.blob(blob) == lines("one")
    assert scene.workspace.find_state("d/e/f").blob is None
    assert [view.seq for view in edits_at(scene.workspace, "d/e/f")] == [1, 2]
    (scene.root / "d").write_bytes(b"a file now")
    assert [view.seq for view in edits_at(scene.workspace, "d/e/f")] == [1, 2]


def edits_at(workspace: Workspace, path: str) -> list[EditView]:
    return workspace.edits(EditFilter(path=path))


def test_a_name_with_an_at_sign_names_its_file(scene: Scene) -> None:
    scene.write("me@home.txt", lines("text"))
    assert scene.workspace.find_state("me@home.txt").blob == blob_id(lines("text"))
    assert scene.workspace.find_state("me@home.txt@1").blob == blob_id(lines("text"))


def test_a_path_shows_the_edits_of_every_file_that_stood_there(scene: Scene) -> None:
    scene.write("a", lines("one"))
    scene.move("a", "b")
    scene.write("a", lines("two"))
    assert [view.seq for view in edits_at(scene.workspace, "a")] == [1, 2, 3]
    assert [view.seq for view in edits_at(scene.workspace, "b")] == [1, 2]


def test_a_move_over_the_path_of_a_rejected_file_stands_in_its_way(scene: Scene) -> None:
    created = scene.write("a", lines("one"))
    scene.reject(created)
    scene.write("b", lines("two"))
    move = scene.move("b", "a")
    (conflict,) = scene.refused(Action.ACCEPT, created)
    assert (conflict.kind, conflict.unit.seq, conflict.needs[0].seq) == ("path-taken", created, move)
