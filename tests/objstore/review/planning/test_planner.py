"""Test decisions: what becomes of the files, and what is refused."""

from functools import partial

import pytest

from objstore import (
    Action,
    Conflicted,
    ConflictKind,
    Decided,
    DecidedMeanwhile,
    FileExists,
    NoSuchName,
    NothingToDo,
    OnExternal,
    Operation,
    Seq,
    Status,
    Unit,
    blob_id,
)
from tests.support.scene import TEN, Scene, lines, moves, words, writes

# ---- one file


def test_rejecting_an_early_edit_keeps_later_ones(scene: Scene) -> None:
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


@pytest.mark.parametrize(("history", "rejected", "expected"), HISTORIES)
def test_rejections_give_the_expected_files_or_conflicts(
    scene: Scene, history: str, rejected: str, expected: str
) -> None:
    base, *steps = history.split(" > ")
    (scene.root / "f").write_bytes(lines(base))
    for step in steps:
        scene.write("f", lines(step))

    outcome = scene.decide(Action.REJECT, *rejected.split())

    match outcome:
        case Decided():
            assert words(scene.text("f")) == expected
        case Conflicted(conflicts=conflicts):
            found = {f"{conflict.unit.seq} needs {need.seq}" for conflict in conflicts for need in conflict.needs}
            assert found == {expected}
            assert words(scene.text("f")) == steps[-1]
        case _:
            pytest.fail(str(outcome))


def test_an_edit_that_replaced_a_rejected_one_blocks_its_return(scene: Scene) -> None:
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


def test_reset_restores_a_rejected_edit_as_pending(scene: Scene) -> None:
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


def test_a_decision_that_changes_nothing_is_nothing_to_do(scene: Scene) -> None:
    scene.write("f", lines("a b"))
    scene.accept(1)
    before = scene.everything()
    assert scene.decide(Action.ACCEPT, 1) == NothingToDo()
    assert scene.everything() == before


# ---- conflicts and cascade


@pytest.mark.parametrize("named", ["3:1", "2"])
def test_an_edit_whose_hunks_are_all_decided_is_decided(scene: Scene, named: str) -> None:
    scene.write("f", lines("a b c"))
    scene.write("f", lines("a B c"))
    scene.write("f", lines("a X c"))
    scene.write("f", lines("A X c"))
    scene.decide(Action.REJECT, named, cascade=True)
    assert scene.decide(Action.REJECT, 3) == NothingToDo()
    outcome = scene.reject(3, 4)
    assert dict.fromkeys(unit.seq for unit, _ in outcome.verdicts) == {4: None}
    scene.undo()
    scene.undo()
    assert words(scene.text("f")) == "A X c"


def test_conflict_names_the_dependent_the_needed_unit_and_the_lines(scene: Scene) -> None:
    scene.write("d/f", lines("a b c"))
    needed = scene.edit("d/f", b"b\n", b"x\ny\nz\n")
    needing = scene.edit("d/f", b"y\n", b"Y\n")

    (conflict,) = scene.refused(Action.REJECT, needed)

    assert conflict.kind == ConflictKind.MISSING_TARGET
    assert conflict.unit == Unit(needing, 1)
    assert conflict.needs == (Unit(needed, 1),)
    assert (conflict.path, conflict.removed, conflict.inserted) == ("d/f", b"y\n", b"Y\n")
    assert conflict.line in {2, 3}
    assert str(conflict).startswith(f"edit {needing} hunk 1 needs edit {needed} (d/f:")


def test_a_cascade_rejects_the_dependents_and_lists_them(scene: Scene) -> None:
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


def test_hunks_decided_since_they_were_shown_are_not_decided_again(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.write("f", TEN.replace(b"1\n2\n", b"one\n2\n").replace(b"9\n", b"nine\n"))
    shown = {Unit(edit, hunk): Status.PENDING for hunk in (1, 2)}
    scene.reject(f"{edit}:1")
    before = scene.everything()
    with pytest.raises(DecidedMeanwhile, match=r"^2:1 was decided elsewhere meanwhile \(rejected now\)") as refused:
        scene.workspace.decide(Action.ACCEPT, [*shown], shown=shown)
    assert refused.value.decided == {"2:1": "rejected"}
    assert scene.everything() == before
    # Units that have the wanted status already don't block the decision.
    assert isinstance(scene.workspace.decide(Action.REJECT, [*shown], shown=shown), Decided)
    assert scene.text("f") == TEN


def test_a_cascade_rejects_no_more_than_was_shown(scene: Scene) -> None:
    first = scene.write("f", TEN)
    scene.edit("f", b"3\n", b"three\n")
    reject = partial(scene.workspace.decide, Action.REJECT, scene.units(first))
    refusal = reject()
    assert isinstance(refusal, Conflicted)
    scene.edit("f", b"8\n", b"eight\n")
    before = scene.everything()
    second_refusal = reject(cascade=True, refused=refusal)
    assert isinstance(second_refusal, Conflicted)
    assert (refusal.reject_first, second_refusal.reject_first) == (
        (Unit(Seq(2), 1),),
        (Unit(Seq(2), 1), Unit(Seq(3), 1)),
    )
    assert scene.everything() == before
    assert isinstance(reject(cascade=True, refused=second_refusal), Decided)
    assert scene.text("f") is None


def test_cascade_does_not_apply_to_accepting(scene: Scene) -> None:
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


def test_returning_line_next_to_a_new_one_conflicts_despite_a_rejected_deletion(
    scene: Scene,
) -> None:
    scene.write("f", lines("a b c"))
    both = scene.edit("f", b"a\nb\n", b"x\n")
    scene.reject(both)
    gone = scene.edit("f", b"b\n", b"")
    new = scene.edit("f", b"a\n", b"a\nn\n")
    (conflict,) = scene.refused(Action.REJECT, gone)
    assert (conflict.kind, conflict.unit.seq) == (ConflictKind.TEXT_RETURNED, new)
    scene.reject(new)
    scene.reject(gone)
    assert words(scene.text("f")) == "a b c"


def test_a_line_below_a_rejected_replacement_stays_below_all_of_it(scene: Scene) -> None:
    scene.write("f", lines("a b"))
    replacement = scene.edit("f", b"a\n", b"x\ny\n")
    between = scene.edit("f", b"x\n", b"x\nm\n")
    scene.reject(between)
    scene.reject(replacement)
    scene.edit("f", b"a\n", b"a\nn\n")
    scene.accept(replacement)
    assert words(scene.text("f")) == "x y n b"
    scene.accept(between)
    assert words(scene.text("f")) == "x m y n b"


def test_an_edit_before_a_move_can_be_rejected_after_it(scene: Scene) -> None:
    scene.write("a", lines("x y z"))
    edit = scene.edit("a", b"y", b"Y")
    scene.move("a", "b")
    scene.edit("b", b"z", b"Z")

    scene.reject(edit)
    assert words(scene.text("b")) == "x y Z"
    assert scene.text("a") is None


def test_rejecting_a_move_to_a_taken_path_is_a_conflict(scene: Scene) -> None:
    scene.write("a", lines("old"))
    move = scene.move("a", "b")
    other = scene.write("a", lines("new"))

    (conflict,) = scene.refused(Action.REJECT, move)

    assert conflict.kind == ConflictKind.PATH_TAKEN
    assert conflict.path == "a"
    assert other in {need.seq for need in conflict.needs} | {conflict.unit.seq}
    scene.reject(other)
    scene.reject(move)
    assert scene.text("a") == lines("old")


def test_rejecting_a_move_conflicts_if_the_first_path_is_taken(scene: Scene) -> None:
    (scene.root / "a").write_bytes(lines("old"))
    edit = scene.edit("a", b"old", b"OLD")
    move = scene.move("a", "b")
    other = scene.write("a", lines("new"))
    (conflict,) = scene.refused(Action.REJECT, move)
    assert str(conflict) == "without edit 2 the file is at a again, where edit 3 has put another"
    scene.reject(other)
    scene.reject(move)
    scene.reject(edit)
    for named in ([other], [other, f"{edit}:1"], [f"{edit}:1", other]):
        (conflict,) = scene.refused(Action.ACCEPT, *named)
        assert str(conflict) == "edit 3 puts a file where edit 1 has put another (a)"
    for first, second in ((other, edit), (edit, other)):
        (conflict,) = scene.refused(Action.ACCEPT, first, second)
        assert str(conflict) == f"edit {second} puts a file where edit {first} has put another (a)"


@pytest.mark.parametrize("is_created_first", [True, False])
def test_path_conflict_does_not_name_edits_of_other_files(scene: Scene, *, is_created_first: bool) -> None:
    (scene.root / "a").write_bytes(lines("old"))
    created = scene.write("x", b"x\n") if is_created_first else None
    move = scene.move("a", "b")
    taker = scene.write("a", lines("new"))
    created = created or scene.write("x", b"x\n")
    (conflict,) = scene.refused(Action.REJECT, created, move)
    assert str(conflict) == f"without edit {move} the file is at a again, where edit {taker} has put another"


def test_rejecting_a_move_to_the_path_of_an_unrecorded_file_changes_nothing(scene: Scene) -> None:
    scene.write("a", lines("old"))
    move = scene.move("a", "b")
    (scene.root / "a").write_bytes(b"mine\n")
    before = scene.everything()
    for on_external in OnExternal:
        with pytest.raises(FileExists):
            scene.decide(Action.REJECT, move, on_external=on_external)
    assert scene.everything() == before


def test_swap_of_two_files_can_be_rejected(scene: Scene) -> None:
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


def conflicted(scene: Scene, *seqs: int) -> Conflicted:
    """Reject edits, which changes nothing because of conflicts; return these."""
    before = scene.everything()
    rehearsed, outcome = (scene.decide(Action.REJECT, *seqs, dry_run=dry_run) for dry_run in (True, False))
    assert isinstance(outcome, Conflicted)
    assert outcome == rehearsed
    assert scene.everything() == before
    return outcome


@pytest.mark.parametrize("is_created_first", [True, False])
def test_taken_path_is_reported_regardless_of_the_other_units(scene: Scene, *, is_created_first: bool) -> None:
    created = scene.write("x", b"x\n") if is_created_first else None
    first = scene.write("y", b"old\n")
    moved = scene.move("y", "z")
    taker = scene.write("y", b"new\n")
    created = created or scene.write("x", b"x\n")
    outcome = conflicted(scene, created, moved)
    (conflict,) = outcome.conflicts
    assert (conflict.kind, conflict.path, conflict.unit) == (ConflictKind.PATH_TAKEN, "y", Unit(first, 0))
    assert conflict.needs == (Unit(taker, 0),)
    assert outcome.reject_first == (Unit(taker, 0),)
    scene.reject(created, moved, taker)
    assert (scene.text("x"), scene.text("y"), scene.text("z")) == (None, b"old\n", None)


def test_no_advice_is_given_if_making_room_would_conflict_itself(scene: Scene) -> None:
    scene.write("y", b"old\n")
    moved = scene.move("y", "z")
    scene.write("w", b"new\n")
    taker = scene.move("w", "y")
    scene.write("w", b"newer\n")
    outcome = conflicted(scene, moved)
    assert [found.needs for found in outcome.conflicts] == [(Unit(taker, 0),)]
    assert (outcome.accept_first, outcome.reject_first) == ((), ())
    conflicted(scene, moved, taker)


def test_rejected_deletion_restores_the_mode(scene: Scene) -> None:
    scene.write("d/f", lines("text"), mode=0o750)
    gone = scene.delete("d/f")
    scene.reject(gone)
    assert (scene.text("d/f"), scene.mode("d/f")) == (lines("text"), 0o750)
    scene.accept(gone)
    assert scene.text("d/f") is None


def test_deleted_and_recreated_file_is_one_document(scene: Scene) -> None:
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
    assert scene.workspace.review.preview(outcome.files[0]) == (lines("text"), None)
    scene.accept(created)
    assert scene.text("new") == lines("text")


def test_a_decision_on_many_files_is_all_or_nothing(scene: Scene) -> None:
    scene.write("a", lines("a"))
    scene.write("b", lines("b"))
    needed = scene.edit("b", b"b\n", b"x\ny\n")
    scene.edit("b", b"y\n", b"Y\n")

    scene.refused(Action.REJECT, 1, needed)
    scene.reject(1, needed, 4)
    assert (scene.text("a"), scene.text("b")) == (None, lines("b"))


def test_rejecting_a_call_reverts_all_its_files(scene: Scene) -> None:
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
