"""Test conflict markers: a decision that would be refused is made, and the conflict is written into the text."""

import re
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import pytest

from objstore import (
    Action,
    CallInfo,
    CasError,
    Conflicted,
    Decided,
    NothingToDo,
    OnExternal,
    Origin,
    Status,
    Unit,
    UnresolvedMarkers,
    Workspace,
)
from tests.support.faulty_disk import CountdownDisk, PowerCut, broken_disk, full_disk, power_cut
from tests.support.scene import Scene, lines, words, writes

PENDING, ACCEPTED, REJECTED = Status.PENDING, Status.ACCEPTED, Status.REJECTED

MARKED = "p <ours x |base A B = A C >theirs q R"


def drawn(content: bytes | None) -> str:
    """Return a text in a row, its markers without their labels."""
    for sign, name in ((b"<", b"<ours"), (b"[|]", b"|base"), (b"=", b"="), (b">", b">theirs")):
        content = re.sub(b"^%s{7}( .*)?$" % sign, name, content or b"", flags=re.MULTILINE)
    return words(content)


def conflict(scene: Scene) -> Scene:
    """Let edit 2 replace a line, and edit 3 of another conversation depend on it and change another line."""
    scene.write("f", lines("p x q r"))
    scene.edit("f", b"x\n", b"A\nB\n")
    scene.call(writes("f", lines("p A C q R")), conversation="conv_two")
    return scene


def decide(scene: Scene, action: Action, *names: str | int, dry_run: bool = False) -> Decided:
    outcome = scene.workspace.decide(action, scene.units(*names), markers=True, who="reviewer", dry_run=dry_run)
    assert isinstance(outcome, Decided), outcome
    return outcome


def reject(scene: Scene, *names: str | int) -> Decided:
    return decide(scene, Action.REJECT, *names)


def units(scene: Scene) -> dict[str, Status]:
    return {
        f"{view.seq}:{hunk}": status
        for view in scene.workspace.history.edits()
        for hunk, status in enumerate(view.units)
        if hunk or view.whole
    }


def reasons(scene: Scene) -> dict[str, str]:
    return {
        f"{view.seq}:{hunk}": reason
        for view in scene.workspace.history.edits()
        for hunk, reason in enumerate(view.reasons)
    }


@pytest.fixture
def marked(scene: Scene) -> Scene:
    conflict(scene)
    reject(scene, 2)
    return scene


# ---- written


def test_markers_show_both_versions_and_name_their_edits(scene: Scene) -> None:
    conflict(scene)
    outcome = reject(scene, 2)
    assert scene.text("f") == (
        b"p\n"
        b"<<<<<<< without edit 2 (conv_one)\nx\n"
        b"||||||| edit 2 (conv_one)\nA\nB\n"
        b"=======\nA\nC\n"
        b">>>>>>> hunk 3:1 (conv_two)\n"
        b"q\nR\n"
    )
    (written,) = outcome.markers
    assert (written.edit, written.path, written.regions, written.aside) == (4, "f", 1, (Unit(scene.view(3).seq, 1),))
    assert outcome.cascaded == written.aside
    assert (outcome.notices, scene.external()) == ((), {})


def test_the_markers_are_an_edit_of_the_reviewer(marked: Scene) -> None:
    view = marked.view(4)
    assert (view.edit.origin, view.status, view.edit.tool) == (Origin.PERSON, ACCEPTED, "markers")
    assert view.edit.marks is not None
    assert view.edit.marks.decision == marked.workspace.history.decisions()[-1].decision.number
    assert view.edit.notes == {"who": "reviewer"}
    assert units(marked) | {"1:0": PENDING} == {
        "1:0": PENDING,
        "2:1": REJECTED,
        "3:1": REJECTED,
        "3:2": PENDING,
        "4:1": ACCEPTED,
        "4:2": ACCEPTED,
    }


def test_a_dry_run_shows_the_markers_and_writes_none(scene: Scene) -> None:
    conflict(scene)
    before = scene.everything()
    outcome = decide(scene, Action.REJECT, 2, dry_run=True)
    (effect,) = outcome.files
    _, after = scene.workspace.review.preview(effect)
    assert scene.everything() == before
    reject(scene, 2)
    assert scene.text("f") == after
    assert [m.edit for m in outcome.markers] == [0]


def test_without_a_conflict_nothing_is_marked(scene: Scene) -> None:
    conflict(scene)
    assert reject(scene, 3).markers == ()
    assert words(scene.text("f")) == "p A B q r"


def test_accepting_a_conflicting_hunk_marks_both(scene: Scene) -> None:
    scene.write("f", lines("p a q"))
    scene.edit("f", b"a\n", b"A\n")
    scene.reject(2)
    scene.edit("f", b"a\n", b"B\n")
    for action in (Action.ACCEPT, Action.RESET):
        decide(scene, action, 2)
        assert drawn(scene.text("f")) == "p <ours A |base a = B >theirs q"
        assert units(scene)["2:1"] is (ACCEPTED if action is Action.ACCEPT else PENDING)
        scene.undo()
        assert words(scene.text("f")) == "p B q"


def test_external_text_in_place_of_a_rejected_edit_is_between_the_markers(scene: Scene) -> None:
    scene.write("f", lines("p x q"))
    scene.edit("f", b"x\n", b"A\n")
    (scene.root / "f").write_bytes(lines("p mine q also"))
    outcome = scene.workspace.decide(Action.REJECT, scene.units(2), markers=True, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert drawn(scene.text("f")) == "p <ours x |base A = mine >theirs q also"
    scene.undo()
    assert words(scene.text("f")) == "p mine q also"


NOT_SHOWN: dict[str, tuple[Callable[[Scene], object], Action, int]] = {
    "a creation": (conflict, Action.REJECT, 1),
    "what needs a rejected edit": (lambda s: conflict(s).reject(2, 3), Action.ACCEPT, 3),
    "a file that has moved since it was created": (
        lambda s: (s.write("f", lines("p")), s.move("f", "g")),
        Action.REJECT,
        1,
    ),
    "a text that was binary in between": (
        lambda s: [s.write("f", state) for state in (b"p\n", b"\0\n", b"q\n")],
        Action.REJECT,
        2,
    ),
    "a text that would be binary again": (
        lambda s: [s.write("f", state) for state in (b"\0\n", b"p\n", b"q\n")],
        Action.REJECT,
        2,
    ),
    "a binary file": (lambda s: [s.write("f", b"\0\n" + state) for state in (b"1", b"2", b"3")], Action.REJECT, 2),
    "a name that is taken": (
        lambda s: (s.write("a", b"x\n"), s.move("a", "b"), s.write("a", b"y\n")),
        Action.REJECT,
        2,
    ),
}


@pytest.mark.parametrize(("prepare", "action", "edit"), NOT_SHOWN.values(), ids=NOT_SHOWN.keys())
def test_conflict_that_markers_can_not_show_is_refused(
    scene: Scene, prepare: Callable[[Scene], object], action: Action, edit: int
) -> None:
    prepare(scene)
    before = scene.everything()
    plain = scene.decide(action, edit)
    outcome = scene.workspace.decide(action, scene.units(edit), markers=True)
    assert isinstance(outcome, Conflicted)
    assert outcome == plain
    assert scene.everything() == before


# ---- undone


def test_undo_and_redo_restore_markers_exactly(marked: Scene) -> None:
    with_markers, statuses = marked.text("f"), units(marked)
    marked.undo()
    assert words(marked.text("f")) == "p A C q R"
    assert [units(marked)[name] for name in ("2:1", "3:1", "4:1", "4:2")] == [PENDING, PENDING, REJECTED, REJECTED]
    outcome = marked.workspace.review.redo()
    assert isinstance(outcome, Decided)
    assert (marked.text("f"), units(marked)) == (with_markers, statuses)
    marked.undo()
    assert words(marked.text("f")) == "p A C q R"


@pytest.mark.parametrize(
    ("action", "names", "text", "now"),
    [
        (Action.ACCEPT, ("2",), "p A C q R", {"2:1": ACCEPTED, "3:1": PENDING}),
        (Action.RESET, ("2",), "p A C q R", {"2:1": PENDING, "3:1": PENDING}),
        (Action.REJECT, ("3:1",), "p x q R", {"2:1": REJECTED, "3:1": REJECTED}),
        (Action.ACCEPT, ("2", "3"), "p A C q R", {"2:1": ACCEPTED, "3:1": ACCEPTED}),
        (Action.REJECT, ("4",), "p x q R", {"2:1": REJECTED, "3:1": REJECTED}),
    ],
)
def test_a_new_decision_removes_the_markers(
    marked: Scene, action: Action, names: tuple[str, ...], text: str, now: dict[str, Status]
) -> None:
    with_markers, before = marked.text("f"), units(marked)
    assert isinstance(marked.decide(action, *names), Decided)
    assert words(marked.text("f")) == text
    assert {name: units(marked)[name] for name in now} == now
    assert units(marked)["4:1"] is REJECTED
    assert marked.workspace.review.markers() == ()
    marked.undo()
    assert (marked.text("f"), units(marked)) == (with_markers, before)


def test_undo_leaves_markers_from_before_the_decision(scene: Scene) -> None:
    scene.write("f", lines("p x q y r"))
    scene.write("f", lines("p A q B r"))
    scene.write("f", lines("p C q D r"))
    reject(scene, 2)
    states = [(scene.text("f"), units(scene))]
    for action, names in ((Action.REJECT, ["4"]), (Action.ACCEPT, ["4:3", "4:4"]), (Action.ACCEPT, ["4"])):
        assert isinstance(scene.decide(action, *names), Decided)
        states.append((scene.text("f"), units(scene)))
    assert [drawn(text) for text, _ in states[1:3]] == ["p x q y r", "p x q <ours y |base B = D >theirs r"]
    assert states[3][0] == states[0][0]
    unmarked = []
    for before in reversed(states[:3]):
        unmarked.append(scene.undo().unmarked)
        assert (scene.text("f"), units(scene)) == before
    assert unmarked == [(), (4,), ()]


@pytest.mark.parametrize("since", ["second", ""])
def test_undo_and_redo_restore_the_reason_of_each_hunk(scene: Scene, since: str) -> None:
    conflict(scene)
    reasons_so_far = [reasons(scene)]
    named = scene.units(2)
    assert isinstance(scene.workspace.decide(Action.REJECT, named, markers=True, reason="first"), Decided)
    reasons_so_far.append(reasons(scene))
    scene.reject(2, "3:1", reason=since)
    reasons_so_far.append(reasons(scene))
    assert [(reasons_then["2:1"], reasons_then["3:1"], reasons_then["4:1"]) for reasons_then in reasons_so_far[1:]] == [
        ("first", "first", ""),
        (since,) * 3,
    ]
    for at in (1, 0):
        # A unit decided again with the same status is named too, because its reason has changed.
        assert {*named} <= dict(scene.undo().verdicts).keys()
        assert reasons(scene) == reasons_so_far[at] | {
            name: "" for name in reasons(scene) if name not in reasons_so_far[at]
        }
    for at in (1, 2):
        outcome = scene.workspace.review.redo()
        assert isinstance(outcome, Decided)
        assert {*named} <= dict(outcome.verdicts).keys()
        assert reasons(scene) == reasons_so_far[at]
    scene.undo()
    assert reasons(scene) == reasons_so_far[1]
    scene.forget_index()
    assert reasons(scene) == reasons_so_far[1]


def test_a_status_restored_by_a_rejection_does_not_get_its_reason(scene: Scene) -> None:
    scene.write("f", lines("p x q"))
    scene.edit("f", b"x\n", b"A\n")
    scene.reject(2, reason="first")
    scene.edit("f", b"x\n", b"B\n")
    decide(scene, Action.ACCEPT, 2)
    scene.reject(2, reason="after all")
    assert words(scene.text("f")) == "p B q"
    for _ in range(2):
        assert [scene.view(seq).reason for seq in (2, 3, 4)] == ["after all", "", "after all"]
        scene.undo()
        assert [scene.view(seq).reason for seq in (2, 3, 4)] == ["", "", ""]
        assert isinstance(scene.workspace.review.redo(), Decided)
        scene.forget_index()


def test_rejected_markers_keep_their_own_reason_when_their_decision_is_undone(
    marked: Scene,
) -> None:
    marked.reject(4, reason="no markers here")
    assert isinstance(marked.workspace.review.undo(1, past=[2]), Decided)
    assert words(marked.text("f")) == "p A C q R"
    assert marked.view(4).reason == "no markers here"


def test_rejecting_a_hunk_that_markers_set_aside_is_a_decision(marked: Scene) -> None:
    outcome = marked.reject("3:1")
    (aside,) = marked.units("3:1")
    assert (outcome.verdicts[0], outcome.unmarked) == ((aside, REJECTED), (4,))
    assert marked.decide(Action.REJECT, "3:1") == NothingToDo()
    marked.undo()
    assert drawn(marked.text("f")) == MARKED
    assert isinstance(marked.workspace.review.redo(), Decided)
    assert words(marked.text("f")) == "p x q R"


def test_refusal_names_what_returns_with_markers_that_its_advice_removes(scene: Scene) -> None:
    scene.write("f", lines("p x q"))
    base = scene.edit("f", b"x\n", b"A\n")
    built = scene.edit("f", b"A\n", b"B\n")
    named = scene.edit("f", b"B\n", b"C\n")
    scene.reject(named)
    rival = scene.edit("f", b"B\n", b"D\n")
    reject(scene, base)
    outcome = scene.decide(Action.ACCEPT, named)
    assert isinstance(outcome, Conflicted)
    assert outcome.accept_first == (Unit(base, 1), Unit(built, 1))
    # The markers go with the rival, and what was set aside for them would be back.
    assert outcome.reject_first == (Unit(built, 1), Unit(rival, 1))
    scene.reject(rival, built)
    scene.accept(named, base, built)
    assert words(scene.text("f")) == "p C q"


def test_a_new_decision_with_the_same_conflict_is_refused_or_marked_again(marked: Scene) -> None:
    with_markers = marked.text("f")
    outcome = marked.decide(Action.ACCEPT, "3:1")
    assert isinstance(outcome, Conflicted)
    assert [(c.unit, c.needs) for c in outcome.conflicts] == [
        (Unit(marked.view(3).seq, 1), (Unit(marked.view(2).seq, 1),))
    ]
    assert marked.text("f") == with_markers
    marked.decide(Action.ACCEPT, 2)
    reject(marked, 2)
    assert marked.text("f") == with_markers
    assert [m.edit for m in marked.workspace.review.markers()] == [5]


def test_text_written_between_the_markers_is_named_as_blocking_a_new_decision(marked: Scene) -> None:
    text = marked.text("f") or b""
    within = marked.write("f", text.replace(b"=======\n", b"=======\nbetween\n"))
    outcome = marked.decide(Action.ACCEPT, 2)
    assert isinstance(outcome, Conflicted)
    assert (outcome.accept_first, outcome.reject_first) == ((), (Unit(within, 1),))
    marked.reject(within)
    marked.accept(2)
    assert words(marked.text("f")) == "p A C q R"


def test_removed_markers_restore_nothing(marked: Scene) -> None:
    marked.accept(2)
    marked.accept(3)
    marked.reset(2)
    assert [units(marked)[name] for name in ("2:1", "3:1", "3:2")] == [PENDING, ACCEPTED, ACCEPTED]


def test_other_decisions_keep_the_markers(marked: Scene) -> None:
    marked.reject("3:2")
    assert drawn(marked.text("f")) == MARKED.replace("R", "r")
    assert [m.edit for m in marked.workspace.review.markers()] == [4]
    marked.undo()
    assert drawn(marked.text("f")) == MARKED


def test_one_of_two_conflicts_marked_together_can_be_resolved(scene: Scene) -> None:
    scene.write("f", lines("p x q r y s"))
    one = scene.edit("f", b"x\n", b"A\n")
    other = scene.edit("f", b"y\n", b"B\n")
    scene.edit("f", b"A\n", b"C\n")
    scene.edit("f", b"B\n", b"D\n")
    reject(scene, one, other)
    assert drawn(scene.text("f")) == "p <ours x |base A = C >theirs q r <ours y |base B = D >theirs s"
    assert isinstance(scene.decide(Action.ACCEPT, one), Conflicted)
    decide(scene, Action.ACCEPT, one)
    assert drawn(scene.text("f")) == "p C q r <ours y |base B = D >theirs s"
    scene.accept(other)
    assert words(scene.text("f")) == "p C q r D s"


# ---- listed, and resolved by hand


def test_status_lists_the_lines_of_markers(marked: Scene) -> None:
    (unresolved,) = marked.workspace.review.status().markers
    assert unresolved == UnresolvedMarkers(
        edit=marked.view(4).seq,
        decision=1,
        path="f",
        lines=(2,),
        decided=(Unit(marked.view(2).seq, 1),),
        aside=(Unit(marked.view(3).seq, 1),),
    )
    marked.move("f", "d/g")
    marked.forget_index()
    assert [m.path for m in marked.workspace.review.markers()] == ["d/g"]
    marked.delete("d/g")
    assert marked.workspace.review.markers() == ()


def resolve(scene: Scene, text: str) -> None:
    (scene.root / "f").write_bytes(lines(text))


def test_markers_resolved_by_hand_are_no_longer_listed(marked: Scene) -> None:
    resolve(marked, "p x C q R")
    assert marked.workspace.review.markers() == ()
    assert [c.path for c in marked.external().values()] == ["f"]


@pytest.mark.parametrize("by", ["a decision", "a tool", "an amendment", Origin.PERSON, Origin.EXTERNAL])
def test_edit_that_resolves_markers_amends_the_edit_that_wrote_them(marked: Scene, by: str | Origin) -> None:
    match by:
        case "a decision":
            resolve(marked, "p x C q R")
            marked.decide(Action.ACCEPT, 1, on_external=OnExternal.KEEP)
        case "a tool":
            resolve(marked, "p x C q R")
            with marked.workspace.call(CallInfo(tool="test", conversation="conv_two")) as call:
                call.write("g", b"")
                call.read("f")
                call.commit()
        case Origin():
            resolve(marked, "p x C q R")
            marked.workspace.record_changes(CallInfo(tool="record", origin=by))
        case _:
            now = marked.workspace.review.amendable(4)
            marked.workspace.review.amend(4, lines("p x C q R"), version=now.blob)
    view = marked.view(5)
    assert (view.edit.amends, view.status) == (4, ACCEPTED)
    assert words(marked.text("f")) == "p x C q R"
    # A new decision removes the resolution with the markers; undo restores the typed text.
    outcome = marked.accept(2)
    assert words(marked.text("f")) == "p A C q R"
    assert Unit(view.seq, 1) in outcome.cascaded
    marked.undo()
    assert words(marked.text("f")) == "p x C q R"


def test_a_change_that_does_more_than_resolve_amends_nothing(marked: Scene) -> None:
    resolve(marked, "p x new q R mine")
    marked.decide(Action.ACCEPT, 1, on_external=OnExternal.KEEP)
    assert marked.view(5).edit.amends is None
    outcome = marked.decide(Action.ACCEPT, 2)
    assert isinstance(outcome, Conflicted)
    assert [(c.unit.seq, [need.seq for need in c.needs]) for c in outcome.conflicts] == [(5, [4])]
    assert words(marked.text("f")) == "p x new q R mine"
    marked.reject("5:2")
    marked.accept(2)
    assert words(marked.text("f")) == "p A C q R mine"


BETWEEN: dict[str, tuple[Callable[[list[bytes]], list[bytes]], bool]] = {
    "above": (lambda m: [*m[:1], b"new", *m[1:]], False),
    "below": (lambda m: [*m[:10], b"new", *m[10:]], False),
    "at the top": (lambda m: [*m[:2], b"new", *m[2:]], True),
    "at the bottom": (lambda m: [*m[:9], b"new", *m[9:]], True),
    "in place of them": (lambda m: [*m[:1], b"new", *m[10:]], True),
    "from the line above on": (lambda m: [b"new", *m[2:]], False),
    "to the line below": (lambda m: [*m[:9], b"new", *m[11:]], False),
    "and elsewhere": (lambda m: [*m[:2], b"new", *m[2:], b"more"], False),
}


@pytest.mark.parametrize(("typed", "is_between"), BETWEEN.values(), ids=BETWEEN.keys())
def test_only_text_between_the_markers_is_removed_with_them(
    marked: Scene,
    typed: Callable[[list[bytes]], list[bytes]],
    is_between: bool,  # noqa: FBT001 - a row of the table above
) -> None:
    old = (marked.text("f") or b"").splitlines()
    assert (len(old), old[1][:7], old[9][:7]) == (12, b"<<<<<<<", b">>>>>>>")
    (marked.root / "f").write_bytes(b"".join(line + b"\n" for line in typed(old)))
    marked.decide(Action.ACCEPT, 1, on_external=OnExternal.KEEP)
    assert marked.view(5).edit.amends == (4 if is_between else None)


@pytest.mark.parametrize("text", [None, "p x C q R"], ids=["the mode alone", "the mode and the text"])
def test_a_mode_change_is_not_part_of_the_markers(marked: Scene, text: str | None) -> None:
    if text is not None:
        resolve(marked, text)
    (marked.root / "f").chmod(0o755)
    marked.decide(Action.ACCEPT, 1, on_external=OnExternal.KEEP)
    assert marked.view(5).edit.amends is None
    assert marked.mode("f") == 0o755


def test_current_ones_of_markers_written_twice_are_resolved(marked: Scene) -> None:
    first = marked.text("f")
    marked.accept(2)
    reject(marked, 2)
    assert marked.text("f") == first
    resolve(marked, "p x C q R")
    marked.decide(Action.ACCEPT, 1, on_external=OnExternal.KEEP)
    assert marked.view(6).edit.amends == 5


def test_a_replaced_file_has_no_markers(marked: Scene) -> None:
    (marked.root / "f").rename(marked.root / "g")
    assert marked.workspace.review.markers() == ()
    (marked.root / "f").symlink_to("g")
    assert marked.workspace.review.markers() == ()
    (marked.root / "f").unlink()
    (marked.root / "f").mkdir()
    assert marked.workspace.review.markers() == ()


def test_markers_resolved_by_an_agent_are_an_edit_to_review(marked: Scene) -> None:
    edit = marked.write("f", lines("p x C q R"))
    assert (marked.view(edit).status, marked.view(edit).edit.amends) == (PENDING, None)
    marked.reject(edit)
    assert drawn(marked.text("f")) == MARKED
    resolve(marked, "p x C q R")
    found = marked.workspace.record_changes(CallInfo(tool="record", conversation="conv_two", origin=Origin.AGENT))
    assert [(view.status, view.edit.amends) for view in found.edits] == [(PENDING, None)]


def test_markers_are_kept_after_the_loss_of_derived_data(marked: Scene) -> None:
    before = marked.text("f"), units(marked), marked.workspace.review.markers()
    marked.forget_index()
    assert (marked.text("f"), units(marked), marked.workspace.review.markers()) == before
    marked.undo()
    assert words(marked.text("f")) == "p A C q R"


def test_a_conversation_name_cannot_forge_a_marker_line(scene: Scene) -> None:
    scene.write("f", lines("p x q"))
    scene.call(writes("f", lines("p A q")), conversation="evil\n>>>>>>> x\n" + "y" * 500)
    scene.edit("f", b"A\n", b"B\n")
    reject(scene, 2)
    assert drawn(scene.text("f")) == "p <ours x |base A = B >theirs q"
    assert max(map(len, (scene.text("f") or b"").split(b"\n"))) < 140


@pytest.mark.parametrize("failure", [power_cut, broken_disk, full_disk])
def test_decision_with_markers_is_atomic_at_any_disk_failure(
    scene: Scene, tmp_path: Path, failure: Callable[[str], BaseException]
) -> None:
    """If any step fails, file, decision, set-aside hunks and markers all exist, or none does."""
    conflict(scene)
    before, nothing = scene.text("f"), units(scene)
    done = scene.copy_to(tmp_path / "done")
    reject(done, 2)
    after, decided = done.text("f"), units(done)
    done.close()
    seen = set[str]()
    for step in count():
        root = tmp_path / f"step {step}"
        scene.copy_to(root).close()
        disk = CountdownDisk(step, failure, lasting=False)
        with suppress(PowerCut, CasError), closing(Workspace.open(root, disk)) as workspace:
            workspace.decide(Action.REJECT, scene.units(2), markers=True, who="reviewer")
        copy = Scene(root)
        found = (copy.text("f"), units(copy))
        assert found in ((before, nothing), (after, decided)), disk.failed
        assert [m.edit for m in copy.workspace.review.markers()] == ([4] if found[0] == after else [])
        assert copy.external() == {}
        copy.close()
        seen.add("after" if found[0] == after else "before")
        if disk.failed is None:
            break
    assert seen == {"before", "after"}
