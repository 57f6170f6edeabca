"""Test amendments: they are decided with the edit that they correct, and with nothing else."""

import pytest

from objstore import (
    Action,
    CallOutcome,
    Conflicted,
    Decided,
    EditFilter,
    FileChanged,
    FileMissing,
    Hunk,
    NoSuchName,
    NotAmendable,
    OnExternal,
    Operation,
    Origin,
    Seq,
    Status,
    Unit,
)
from tests.support.scene import Scene

POEM = b"one\ntwo\nthree\nfour\nfive\n"


def amend_text(scene: Scene, seq: int, old: bytes, new: bytes) -> CallOutcome:
    """Amend an edit by replacing some text of its file."""
    file = scene.workspace.review.amendable(seq)
    assert file.bytes.count(old) == 1
    return scene.workspace.review.amend(seq, file.bytes.replace(old, new), version=file.blob, who="reviewer")


def test_amendment_is_a_persons_edit_that_names_the_amended_edit(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.edit("f", b"two", b"TWO")
    (view,) = amend_text(scene, edit, b"TWO", b"Two").edits
    assert (view.edit.amends, view.edit.origin, view.status) == (edit, Origin.PERSON, Status.ACCEPTED)
    assert (view.edit.conversation, view.edit.notes) == ("conv_one", {"who": "reviewer", "decision": "1"})
    assert scene.view(edit).status is Status.PENDING
    assert scene.text("f") == POEM.replace(b"two", b"Two")
    scene.forget_index()
    assert scene.view(view.seq).edit.amends == edit
    assert scene.view(edit).edit.amends is None


def test_rejecting_an_edit_rejects_its_amendments(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.edit("f", b"two", b"TWO")
    # One amendment touches the edit's own line, the other quite another.
    first = amend_text(scene, edit, b"TWO", b"Two").edits[0].seq
    second = amend_text(scene, edit, b"five", b"FIVE").edits[0].seq
    outcome = scene.reject(edit)
    assert scene.text("f") == POEM
    assert set(outcome.cascaded) == {Unit(seq, hunk) for seq in (first, second) for hunk in (0, 1)}
    scene.accept(edit)
    assert scene.text("f") == POEM.replace(b"two", b"TWO")
    scene.undo()
    scene.undo()
    assert scene.text("f") == POEM.replace(b"two", b"Two").replace(b"five", b"FIVE")


def test_rejecting_an_amendment_restores_the_agents_text(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.edit("f", b"two", b"TWO")
    amendment = amend_text(scene, edit, b"TWO", b"Two").edits[0].seq
    scene.reject(amendment)
    assert scene.text("f") == POEM.replace(b"two", b"TWO")
    assert scene.statuses()[edit] is Status.PENDING
    scene.accept(amendment)
    assert scene.text("f") == POEM.replace(b"two", b"Two")


def test_amendment_may_name_which_of_equal_lines_it_removed(scene: Scene) -> None:
    (scene.root / "f").write_bytes(b"two\nthree\n")
    edit = scene.write("f", b"one\ntwo\ntwo\nthree\nfour\n")
    file = scene.workspace.review.amendable(edit)
    left = b"one\ntwo\nthree\nfour\n"
    scene.workspace.review.amend(edit, left, version=file.blob, base=file.bytes, hunks=[Hunk(1, 1, 1, 0)])
    scene.reject(f"{edit}:1")
    assert scene.text("f") == b"two\nthree\nfour\n"


def test_amendments_of_amendments_are_rejected_too(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.edit("f", b"two", b"TWO")
    first = amend_text(scene, edit, b"one", b"ONE").edits[0].seq
    amend_text(scene, first, b"five", b"FIVE")
    scene.reject(edit)
    assert scene.text("f") == POEM


def test_an_amendment_can_be_decided_alone(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.edit("f", b"two", b"TWO")
    amendment = amend_text(scene, edit, b"five", b"FIVE").edits[0].seq
    scene.reject(edit)
    scene.accept(amendment)
    assert scene.text("f") == POEM.replace(b"five", b"FIVE")
    # The edit is rejected already, so nothing goes with it a second time.
    scene.write("f", POEM.replace(b"five", b"FIVE").replace(b"one", b"ONE"))
    assert scene.statuses()[amendment] is Status.ACCEPTED


def test_rejecting_one_hunk_rejects_no_amendment_and_names_what_depends_on_it(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.write("f", POEM.replace(b"one", b"ONE").replace(b"four", b"FOUR"))
    amendment = amend_text(scene, edit, b"FOUR", b"Four").edits[0].seq
    (conflict,) = scene.refused(Action.REJECT, f"{edit}:2")
    assert (conflict.unit, conflict.needs) == (Unit(amendment, 1), (Unit(edit, 2),))
    scene.reject(f"{edit}:1")
    assert scene.text("f") == POEM.replace(b"four", b"Four")


@pytest.mark.parametrize("hunks", [("2:1", "2:2"), ("2:2", "2:1")])
def test_amendment_is_rejected_with_the_last_hunk_of_the_amended_edit(scene: Scene, hunks: tuple[str, str]) -> None:
    scene.write("f", POEM)
    edit = scene.write("f", POEM.replace(b"one", b"ONE").replace(b"four", b"FOUR"))
    amendment = amend_text(scene, edit, b"five", b"5").edits[0].seq
    first, last = hunks
    scene.reject(first)
    assert scene.statuses()[amendment] is Status.ACCEPTED
    outcome = scene.reject(last)
    assert outcome.cascaded == (Unit(amendment, 0), Unit(amendment, 1))
    assert scene.text("f") == POEM
    # It counts as rejected, regardless of the status of its whole-file part, which has no effect.
    scene.accept(amendment)
    scene.decide(Action.REJECT, edit)
    assert scene.text("f") == POEM.replace(b"five", b"5")


def test_amendment_stays_live_with_the_mode_of_the_amended_edit(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.write("f", POEM.replace(b"two", b"TWO"), mode=0o755)
    amend_text(scene, edit, b"five", b"FIVE")
    scene.reject(f"{edit}:1")
    assert (scene.text("f"), scene.mode("f")) == (POEM.replace(b"five", b"FIVE"), 0o755)
    scene.reject(f"{edit}:0")
    assert (scene.text("f"), scene.mode("f")) == (POEM, 0o644)


def record_dependents(scene: Scene) -> tuple[Seq, Seq, Seq, Seq, Seq]:
    """Record an edit, a dependent of it, an amendment of the dependent, and an edit that needs the amendment."""
    scene.write("f", POEM)
    edit = scene.edit("f", b"two", b"TWO")
    builds = scene.edit("f", b"TWO", b"2")
    amendment = amend_text(scene, builds, b"five", b"5").edits[0].seq
    on_that = scene.edit("f", b"5", b"V")
    other = scene.edit("f", b"three", b"3")
    return edit, builds, amendment, on_that, other


def test_cascade_rejects_amendments_of_dependents_and_what_needs_them(scene: Scene) -> None:
    edit, builds, amendment, on_that, _ = record_dependents(scene)
    outcome = scene.reject(edit, cascade=True)
    assert set(outcome.cascaded) == {Unit(builds, 1), *scene.units(amendment), Unit(on_that, 1)}
    assert scene.text("f") == POEM.replace(b"three", b"3")
    scene.undo()
    assert scene.text("f") == POEM.replace(b"three", b"3").replace(b"two", b"2").replace(b"five", b"V")


def test_refused_rejection_names_amendments_of_dependents_and_what_needs_them(scene: Scene) -> None:
    edit, builds, amendment, on_that, _ = record_dependents(scene)
    outcome = scene.decide(Action.REJECT, edit)
    assert isinstance(outcome, Conflicted)
    assert outcome.reject_first == (Unit(builds, 1), *scene.units(amendment), Unit(on_that, 1))
    scene.reject(edit, builds, on_that)  # the amendment is rejected with its edit
    assert scene.text("f") == POEM.replace(b"three", b"3")


def test_markers_show_amendments_of_dependents(scene: Scene) -> None:
    edit, *_ = record_dependents(scene)
    outcome = scene.workspace.decide(Action.REJECT, scene.units(edit), markers=True)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == (
        b"one\n"
        b"<<<<<<< without edit 2 (conv_one)\ntwo\n"
        b"||||||| edit 2 (conv_one)\nTWO\n"
        b"=======\n2\n"
        b">>>>>>> edit 3 (conv_one)\n"
        b"3\nfour\n"
        b"<<<<<<< as decided\nfive\n"
        b"||||||| without both\nfive\n"
        b"=======\nV\n"
        b">>>>>>> edit 4 (conv_one), edit 5 (conv_one)\n"
    )
    scene.accept(edit)
    assert scene.text("f") == POEM.replace(b"three", b"3").replace(b"two", b"2").replace(b"five", b"V")


def test_amendment_is_decided_from_a_cached_weave(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.edit("f", b"two", b"TWO")
    amend_text(scene, edit, b"five", b"FIVE")
    for number in range(70):
        scene.write("g", b"%d\n" % number)
        scene.write("f", (scene.text("f") or b"") + b"%d\n" % number)
    last = scene.view(edit + 140).seq
    scene.reject(last)
    assert (scene.root / ".cas" / "cache").is_dir()
    scene.reject(edit)
    assert (scene.text("f") or b"").startswith(POEM)


def test_a_correction_of_an_earlier_state_is_rebased(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.edit("f", b"two", b"TWO")
    file = scene.workspace.review.amendable(edit)
    made = file.bytes.replace(b"TWO", b"Two")
    agents = scene.edit("f", b"four", b"FOUR")
    (scene.root / "f").write_bytes(b"zero\n" + (scene.text("f") or b""))
    with pytest.raises(FileChanged):
        scene.workspace.review.amend(edit, made, version=file.blob)
    outcome = scene.workspace.review.amend(edit, made, version=file.blob, base=file.bytes)
    assert scene.text("f") == b"zero\none\nTwo\nthree\nFOUR\nfive\n"
    assert len(outcome.external) == 1
    (view,) = outcome.edits
    assert (view.edit.amends, len(view.edit.hunks)) == (edit, 1)
    scene.reject(agents)
    assert scene.text("f") == b"zero\none\nTwo\nthree\nfour\nfive\n"


@pytest.mark.parametrize("line", [2, 3])
def test_equal_line_deleted_by_reviewer_and_agent_is_deleted_once(scene: Scene, line: int) -> None:
    whole, less = b"k\nx\n}\n}\ne\n", b"k\nx\n}\ne\n"
    edit = scene.write("f", whole)
    file = scene.workspace.review.amendable(edit)
    hunks = [Hunk(line, 1, line, 0)]
    scene.call(lambda call: call.write("f", less, hunks=hunks, operation=Operation.EDIT))
    outcome = scene.workspace.review.amend(edit, less, version=file.blob, base=file.bytes)
    assert scene.text("f") == less
    assert outcome.edits == ()


@pytest.mark.parametrize("now", [POEM.replace(b"two", b"zwei"), POEM.replace(b"two", b"TWO").replace(b"five", b"\0")])
def test_a_correction_that_cannot_be_rebased_changes_nothing(scene: Scene, now: bytes) -> None:
    scene.write("f", POEM)
    edit = scene.edit("f", b"two", b"TWO")
    file = scene.workspace.review.amendable(edit)
    (scene.root / "f").write_bytes(now)
    with pytest.raises(FileChanged):
        scene.workspace.review.amend(edit, file.bytes.replace(b"TWO", b"Two"), version=file.blob, base=file.bytes)
    assert (scene.root / "f").read_bytes() == now


def test_an_edit_without_a_result_cannot_be_amended(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.edit("f", b"two", b"TWO")
    (scene.root / "f").write_bytes(b"by hand\n")
    scene.decide(Action.ACCEPT, edit, on_external=OnExternal.KEEP)
    rejected = scene.write("f", b"again\n")
    scene.reject(rejected)
    gone = scene.write("g", b"g\n")
    scene.delete("g")
    before = scene.everything()
    for seq, expected in ((3, "external edit"), (rejected, "rejected"), (gone, "deleted")):
        with pytest.raises(NotAmendable, match=expected):
            scene.workspace.review.amendable(seq)
    with pytest.raises(NoSuchName):
        scene.workspace.review.amendable(99)
    assert scene.everything() == before


def test_a_file_that_changed_meanwhile_is_not_amended(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.edit("f", b"two", b"TWO")
    file = scene.workspace.review.amendable(edit)
    (scene.root / "f").write_bytes(b"by hand\n")
    with pytest.raises(FileChanged):
        scene.workspace.review.amend(edit, b"mine\n", version=file.blob)
    assert scene.text("f") == b"by hand\n"
    (scene.root / "f").unlink()
    with pytest.raises(FileMissing):
        scene.workspace.review.amend(edit, b"mine\n", version=file.blob)
    assert len(scene.workspace.history.edits(EditFilter())) == 2


def test_amendment_with_the_same_bytes_records_nothing(scene: Scene) -> None:
    scene.write("f", POEM)
    file = scene.workspace.review.amendable(1)
    assert scene.workspace.review.amend(1, file.bytes, version=file.blob).edits == ()
    assert list(scene.statuses()) == [1]


def test_an_amendment_follows_its_file(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.edit("f", b"two", b"TWO")
    scene.move("f", "d/g")
    amend_text(scene, edit, b"TWO", b"Two")
    assert scene.text("d/g") == POEM.replace(b"two", b"Two")
    assert isinstance(scene.decide(Action.REJECT, Seq(1)), Conflicted)


def test_rejecting_an_edit_again_rejects_nothing_accepted_since(scene: Scene) -> None:
    scene.write("f", POEM)
    edit = scene.edit("f", b"two\n", b"2\n")
    (amendment,) = amend_text(scene, edit, b"five", b"5").edits
    other = scene.edit("f", b"four\n", b"4\n")
    scene.reject(edit)
    scene.accept(amendment.seq)
    scene.reject(edit, other)
    assert scene.text("f") == b"one\ntwo\nthree\nfour\n5\n"
