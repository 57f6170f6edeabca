"""Test undo and redo, reasons and dry runs."""

import pytest

from objstore import (
    Action,
    Conflicted,
    Decided,
    EditAway,
    ExternalChanges,
    FileChanged,
    FileExists,
    NothingToDo,
    OnExternal,
    PathIsSymlink,
    Seq,
    Status,
    Unit,
)
from tests.support.scene import TEN, Scene, lines, words

# ---- undo


def test_undo_and_redo_look_past_what_git_did(scene: Scene) -> None:
    scene.write("f", lines("a b"))
    edit = scene.edit("f", b"a", b"A")
    scene.reject(edit)
    scene.git("f", lines("A b"), {Unit(edit, 0): Status.PENDING, Unit(edit, 1): Status.PENDING})
    scene.git("f", lines("a b"), {Unit(edit, 0): Status.REJECTED, Unit(edit, 1): Status.REJECTED})
    outcome = scene.undo()
    assert (outcome.number, scene.text("f")) == (4, lines("A b"))
    scene.git("f", lines("a b"), {Unit(edit, 0): Status.REJECTED, Unit(edit, 1): Status.REJECTED})
    scene.git("f", lines("A b"), {Unit(edit, 0): Status.PENDING, Unit(edit, 1): Status.PENDING})
    assert isinstance(scene.workspace.review.redo(), Decided)
    assert (scene.text("f"), scene.view(edit).status) == (lines("a b"), Status.REJECTED)
    scene.undo()
    assert scene.workspace.review.undo() == NothingToDo()


def test_what_git_did_is_never_undone(scene: Scene) -> None:
    scene.write("f", lines("a b"))
    edit = scene.edit("f", b"a", b"A")
    scene.git("f", lines("a b"), {Unit(edit, 0): Status.AWAY, Unit(edit, 1): Status.AWAY})
    assert scene.workspace.review.undo() == NothingToDo()
    assert scene.workspace.review.redo() == NothingToDo()
    assert scene.workspace.review.undo(1) == NothingToDo()


def test_undo_of_a_claim_restores_status_and_owner(scene: Scene) -> None:
    scene.write("f", lines("a b"))
    edit = scene.edit("f", b"a", b"A")
    before = scene.view(edit)
    scene.claim(edit)
    claimed = scene.view(edit)
    assert (claimed.owner, claimed.status) == ("", Status.ACCEPTED)
    scene.undo()
    assert scene.view(edit) == before
    assert isinstance(scene.workspace.review.redo(), Decided)
    assert scene.view(edit) == claimed
    scene.forget_index()
    assert scene.view(edit) == claimed


def test_undo_of_a_decision_on_what_is_away_now_is_refused(scene: Scene) -> None:
    scene.write("f", lines("a b"))
    edit = scene.edit("f", b"a", b"A")
    scene.accept(edit)
    scene.git("f", lines("a b"), {Unit(edit, 0): Status.AWAY, Unit(edit, 1): Status.AWAY})
    before = scene.everything()
    with pytest.raises(EditAway, match=f"{edit}:1"):
        scene.workspace.review.undo()
    assert scene.everything() == before


def test_undo_reverts_a_rejection(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    scene.accept(edit)
    before = scene.text("f")
    scene.reject(edit)

    outcome = scene.undo()

    assert scene.text("f") == before
    assert outcome.verdicts == ((Unit(edit, 0), Status.ACCEPTED), (Unit(edit, 1), Status.ACCEPTED))
    last = scene.workspace.history.decisions()[-1].decision
    assert (last.action, last.takes_back, last.who) == (Action.UNDO, 2, "reviewer")


def test_each_undo_reverts_one_decision(scene: Scene) -> None:
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
    assert scene.workspace.review.undo() == NothingToDo()
    scene.reject(4)
    scene.undo()
    assert scene.workspace.review.undo() == NothingToDo()
    assert set(scene.statuses().values()) == {Status.PENDING}


def test_an_undo_keeps_the_named_later_decisions_and_can_be_redone(scene: Scene) -> None:
    scene.write("f", lines("a b c"))
    for old, new in ((b"a", b"A"), (b"b", b"B"), (b"c", b"C")):
        scene.edit("f", old, new)
    for edit in (2, 3, 4):
        scene.reject(edit)
    assert scene.workspace.review.undo(1) == NothingToDo()
    assert scene.workspace.review.undo(1, past=[3]) == NothingToDo()
    assert isinstance(scene.workspace.review.undo(1, past=[2, 3]), Decided)
    assert words(scene.text("f")) == "A b c"
    scene.undo()
    assert words(scene.text("f")) == "A b C"
    for _ in range(2):
        scene.workspace.review.redo()
    assert words(scene.text("f")) == "a b c"
    scene.undo()
    assert words(scene.text("f")) == "A b c"


def test_an_undo_keeps_no_later_decision_on_the_same_units(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    scene.accept(edit)
    scene.reject(edit)
    assert scene.workspace.review.undo(1, past=[2]) == NothingToDo()


def test_an_undo_that_later_edits_block_is_refused(scene: Scene) -> None:
    scene.write("f", lines("p X q"))
    edit = scene.edit("f", b"X", b"Y")
    scene.reject(edit)
    scene.edit("f", b"X", b"Z")
    before = scene.everything()
    assert isinstance(scene.workspace.review.undo(), Conflicted)
    assert scene.everything() == before


def test_undo_treats_external_changes_as_any_decision_does(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    scene.reject(edit)
    (scene.root / "f").write_bytes(TEN.replace(b"9\n", b"nine\n"))
    outcome = scene.workspace.review.undo()
    assert isinstance(outcome, ExternalChanges)
    outcome = scene.workspace.review.undo(on_external=OnExternal.KEEP, expected=outcome.changes)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")


def test_a_redo_does_not_restore_changes_discarded_by_the_undo(scene: Scene) -> None:
    """Neither a deletion by hand nor a line that somebody typed: neither was part of the decision."""
    for number, by_hand in enumerate((None, TEN.replace(b"9\n", b"nine\n"))):
        name = f"f{number}"
        scene.write(name, TEN)
        edit = scene.edit(name, b"2\n", b"two\n")
        scene.accept(edit)
        if by_hand is None:
            (scene.root / name).unlink()
        else:
            (scene.root / name).write_bytes(by_hand)
        undone = scene.workspace.review.undo(on_external=OnExternal.DISCARD)
        assert isinstance(undone, Decided)
        (external,) = undone.external
        redone = scene.workspace.review.redo()
        assert isinstance(redone, Decided)
        assert redone.verdicts == ((Unit(edit, 0), Status.ACCEPTED), (Unit(edit, 1), Status.ACCEPTED))
        assert redone.files == ()
        assert scene.statuses()[external.seq] is Status.REJECTED
        assert scene.text(name) == TEN.replace(b"2\n", b"two\n")


def test_undo_works_after_the_loss_of_the_index(scene: Scene) -> None:
    scene.write("f", TEN)
    scene.reject(scene.edit("f", b"2\n", b"two\n"))
    scene.reject(scene.edit("f", b"9\n", b"nine\n"))
    scene.undo()
    scene.forget_index()
    scene.undo()
    assert scene.text("f") == TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")


def test_redo_repeats_the_decision_that_was_undone(scene: Scene) -> None:
    scene.write("f", TEN)
    first = scene.edit("f", b"2\n", b"x\ny\n")
    scene.edit("f", b"y\n", b"Y\n")
    scene.reject(first, cascade=True, reason="no")
    scene.reject(1)
    decided = scene.statuses(), scene.text("f")
    for _ in range(2):
        scene.undo()
    for _ in range(2):
        assert isinstance(scene.workspace.review.redo(who="reviewer"), Decided)
    assert (scene.statuses(), scene.text("f")) == decided
    assert scene.workspace.review.redo() == NothingToDo()
    assert scene.workspace.history.decisions()[-2].decision.reason == "no"
    scene.undo()
    scene.undo()
    assert scene.workspace.review.undo() == NothingToDo()


def test_undo_of_a_redo_restores_what_it_rejected(scene: Scene) -> None:
    """The redo discards the external change."""
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    scene.reject(edit, reason="no")
    scene.undo()
    typed = (scene.text("f") or b"").replace(b"5\n", b"five\n")
    (scene.root / "f").write_bytes(typed)
    for _ in range(2):
        redone = scene.workspace.review.redo(on_external=OnExternal.DISCARD)
        assert isinstance(redone, Decided)
        assert scene.text("f") == TEN
        assert scene.workspace.history.decisions()[-1].decision.reason == "no"
        scene.undo()
        assert scene.text("f") == typed
        assert set(scene.statuses().values()) == {Status.PENDING, Status.ACCEPTED}
        assert scene.workspace.history.decisions()[-1].decision.takes_back == 1
    assert scene.workspace.review.undo() == NothingToDo()


def accept_with_live_amendment(scene: Scene) -> tuple[Seq, Seq]:
    """Amend an edit, reject both, and accept the amendment, and then the edit, each by itself."""
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    file = scene.workspace.review.amendable(edit)
    (amendment,) = scene.workspace.review.amend(edit, file.bytes.replace(b"9\n", b"nine\n"), version=file.blob).edits
    scene.reject(edit)
    scene.accept(amendment.seq)
    scene.accept(edit)
    return edit, amendment.seq


@pytest.mark.parametrize("since", [b"nine\n", b"NINE\n"])
def test_undo_leaves_an_amendment_that_was_live_without_its_edit(scene: Scene, since: bytes) -> None:
    edit, amendment = accept_with_live_amendment(scene)
    if since != b"nine\n":
        scene.edit("f", b"nine\n", since)
    with_both = scene.text("f")
    outcome = scene.undo()
    assert (scene.text("f"), scene.statuses()[amendment]) == (TEN.replace(b"9\n", since), Status.ACCEPTED)
    assert {unit.seq for unit, _ in outcome.verdicts} == {edit}
    assert isinstance(scene.workspace.review.redo(), Decided)
    assert scene.text("f") == with_both


def test_a_refused_undo_names_no_amendment_that_can_stay(scene: Scene) -> None:
    accept_with_live_amendment(scene)
    later = scene.edit("f", b"two\n", b"TWO\n")
    outcome = scene.workspace.review.undo()
    assert isinstance(outcome, Conflicted)
    assert (outcome.accept_first, outcome.reject_first) == ((), (Unit(later, 1),))


def test_redo_restores_the_amendment_that_the_undo_rejected(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    scene.reject(edit)
    scene.accept(edit)
    file = scene.workspace.review.amendable(edit)
    scene.workspace.review.amend(edit, file.bytes.replace(b"9\n", b"nine\n"), version=file.blob)
    before = scene.text("f"), scene.statuses()
    scene.undo()
    assert scene.text("f") == file.bytes
    scene.undo()
    assert scene.text("f") == TEN
    for _ in range(2):
        assert isinstance(scene.workspace.review.redo(), Decided)
    assert (scene.text("f"), scene.statuses()) == before


def test_after_another_decision_there_is_nothing_to_redo(scene: Scene) -> None:
    scene.write("f", TEN)
    scene.reject(scene.edit("f", b"2\n", b"two\n"))
    scene.undo()
    scene.accept(1)
    before = scene.everything()
    assert scene.workspace.review.redo() == NothingToDo()
    assert scene.everything() == before


# ---- reasons and dry runs


def test_newest_reason_of_a_hunk_is_shown(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    scene.reject(edit, reason="the file is generated\nsee the build")
    assert scene.view(edit).reason == "the file is generated\nsee the build"
    assert scene.workspace.history.decisions()[-1].decision.reason == "the file is generated\nsee the build"
    scene.forget_index()
    assert scene.view(edit).reason == "the file is generated\nsee the build"
    scene.accept(edit)
    assert scene.view(edit).reason == ""


def test_reason_of_an_accept_or_reset_is_shown(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.edit("f", b"2\n", b"two\n")
    for action, reason in ((Action.ACCEPT, "as agreed"), (Action.RESET, "to be looked at again")):
        assert isinstance(scene.decide(action, edit, reason=reason), Decided)
        assert scene.view(edit).reason == reason
        scene.forget_index()
        assert scene.view(edit).reason == reason


def test_a_reason_belongs_to_its_hunks_until_they_are_decided_again(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.write("f", TEN.replace(b"2\n", b"two\n").replace(b"5\n", b"five\n").replace(b"9\n", b"nine\n"))
    scene.reject(f"{edit}:2", reason="keep 5")
    scene.accept(f"{edit}:3")
    assert (scene.view(edit).reason, scene.view(edit).reasons) == ("keep 5", ("", "", "keep 5", ""))
    scene.reject(f"{edit}:1", reason="no; nor this")
    view_before = scene.view(edit)
    assert (view_before.reason, view_before.reasons) == (
        f"{edit}:1: no; nor this; {edit}:2: keep 5",
        ("", "no; nor this", "keep 5", ""),
    )
    scene.forget_index()
    assert scene.view(edit) == view_before
    scene.reset(f"{edit}:1")
    assert scene.view(edit).reasons == ("", "", "keep 5", "")
    scene.reject(edit, reason="none of it")
    # What was rejected already was not rejected for this.
    assert scene.view(edit).reason == f"{edit}:1, {edit}:3: none of it; {edit}:2: keep 5"
    scene.accept(edit)
    assert scene.view(edit).reason == ""


def test_hunks_rejected_again_by_an_undo_have_their_old_reason(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.write("f", TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n"))
    scene.reject(f"{edit}:1", reason="keep 2")
    scene.reject(f"{edit}:2", reason="keep 9")
    view_before = scene.view(edit)
    scene.accept(edit)
    assert scene.view(edit).reason == ""
    scene.undo()
    assert scene.view(edit) == view_before
    scene.forget_index()
    assert scene.view(edit) == view_before
    assert isinstance(scene.workspace.review.redo(), Decided)
    assert scene.view(edit).reason == ""
    scene.undo()
    assert scene.view(edit) == view_before
    scene.undo()
    assert scene.view(edit).reasons == ("", "keep 2", "")


def test_undo_and_redo_of_separate_hunks_restore_their_reasons_only(scene: Scene) -> None:
    scene.write("f", TEN)
    edit = scene.write("f", b"".join(b"%d\n" % line + b"more\n" * (line % 2) for line in range(1, 11)))
    scene.reject(f"{edit}:3", reason="not this")
    scene.reject(*(f"{edit}:{hunk}" for hunk in (1, 2, 4, 5)), reason="none of these")
    expected_reasons = ("", "none of these", "none of these", "not this", "none of these", "none of these")
    assert scene.view(edit).reasons == expected_reasons
    scene.undo()
    assert scene.view(edit).reasons == ("", "", "", "not this", "", "")
    assert [status is Status.REJECTED for status in scene.view(edit).units] == [
        reason == "not this" for reason in expected_reasons
    ]
    assert isinstance(scene.workspace.review.redo(), Decided)
    assert scene.view(edit).reasons == expected_reasons


def test_dry_run_reports_what_the_decision_does_and_changes_nothing(scene: Scene) -> None:
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
        held, holds = scene.workspace.review.preview(effect)
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


@pytest.mark.parametrize("obstacle", ["folder", "link", "link above"])
def test_dry_run_is_refused_like_the_decision(scene: Scene, obstacle: str) -> None:
    scene.write("d/e/f", b"x\n")
    scene.write("stays", b"x\n")
    gone = scene.delete("d/e/f")
    path = scene.root / "d" / "e" / "f"
    path.parent.mkdir(parents=True, exist_ok=True)
    match obstacle:
        case "folder":
            (path / "g").mkdir(parents=True)
            (path / "g" / "mine").write_bytes(b"x\n")
        case "link":
            path.symlink_to("nowhere")
        case _:
            path.parent.rmdir()
            path.parent.symlink_to("..")
    wanted, expected_message = {
        "folder": (FileExists, str(FileExists("d/e/f", ["d/e/f/g/mine"]))),
        "link": (PathIsSymlink, "Symlinks are not allowed (security policy): d/e/f"),
        "link above": (FileChanged, "The folder d/e is now a symlink, and symlinks are not followed: d/e/f"),
    }[obstacle]
    before = scene.everything()
    for dry_run in (True, False):
        with pytest.raises(wanted) as refused:
            scene.decide(Action.REJECT, gone, on_external=OnExternal.DISCARD, dry_run=dry_run)
        assert str(refused.value) == expected_message
        assert scene.everything() == before


def test_a_dry_undo_changes_nothing(scene: Scene) -> None:
    scene.write("f", TEN)
    scene.reject(1)
    before = scene.everything()
    outcome = scene.workspace.review.undo(dry_run=True)
    assert isinstance(outcome, Decided)
    assert scene.workspace.review.preview(outcome.files[0]) == (None, TEN)
    assert scene.everything() == before
