"""An edit whose effect accepted changes took out of the file is never accepted unseen."""

import pytest
from hypothesis import given

from objstore import Action, Call, CallInfo, Decided, EditTakenOut, OnExternal, Origin, Seq, Status, Unit
from objstore.weave.document import Document
from tests.support.document_histories import document_histories
from tests.support.scene import Scene, lines

ACCEPTED, PENDING = Status.ACCEPTED, Status.PENDING


def by_hand(scene: Scene, path: str, content: bytes | None, *, mode: int | None = None) -> Seq:
    """Record a person's change of a file (None: its deletion)."""
    with scene.workspace.call(CallInfo(tool="restore", origin=Origin.PERSON)) as call:
        change(call, path, content, mode)
        return call.commit().edits[0].seq


def change(call: Call, path: str, content: bytes | None, mode: int | None) -> None:
    if content is None:
        call.delete(path)
    else:
        call.write(path, content, mode=mode)


def refused(scene: Scene, *edits: Seq) -> str:
    before = scene.everything()
    with pytest.raises(EditTakenOut) as caught:
        scene.decide(Action.ACCEPT, *edits)
    assert scene.everything() == before
    return str(caught.value)


def accepted_base(scene: Scene) -> None:
    scene.accept(scene.write("f", lines("a b c"), mode=0o644))


@pytest.mark.parametrize("agents", ["a B c", "a c", "a b x c"], ids=["replacement", "deletion", "insertion"])
def test_lines_that_a_person_put_back_cannot_be_accepted(scene: Scene, agents: str) -> None:
    accepted_base(scene)
    edit = scene.write("f", lines(agents))
    by_hand(scene, "f", lines("a b c"))
    assert refused(scene, edit) == (
        f"{edit}:1 can't be accepted: its change is not in f any more, because you took it out."
    )
    assert scene.reject(edit).files == ()


@pytest.mark.parametrize("hands", ["", "a b c"], ids=["emptied", "put back"])
def test_lines_that_a_person_took_out_are_accepted_if_their_change_is_discarded(scene: Scene, hands: str) -> None:
    accepted_base(scene)
    edit = scene.write("f", lines("a b x c"))
    (scene.root / "f").write_bytes(lines(hands))
    outcome = scene.decide(Action.ACCEPT, edit, on_external=OnExternal.DISCARD)
    assert isinstance(outcome, Decided)
    assert outcome.taken_out == ()
    assert scene.text("f") == lines("a b x c")
    assert scene.statuses() == {1: ACCEPTED, edit: ACCEPTED, Seq(edit + 1): Status.REJECTED}


def test_a_file_that_a_person_deleted_cannot_be_accepted(scene: Scene) -> None:
    edit = scene.write("f", lines("a b"))
    by_hand(scene, "f", None)
    assert f"{edit}:0 can't be accepted" in refused(scene, edit)


def test_a_mode_that_a_person_reset_cannot_be_accepted(scene: Scene) -> None:
    accepted_base(scene)
    edit = scene.write("f", lines("a b c"), mode=0o755)
    by_hand(scene, "f", lines("a b c"), mode=0o644)
    refused(scene, edit)


def test_a_line_that_a_person_changed_further_can_be_accepted(scene: Scene) -> None:
    accepted_base(scene)
    edit = scene.write("f", lines("a B c"))
    by_hand(scene, "f", lines("a BB c"))
    assert scene.accept(edit).taken_out == ()


def test_a_hunk_that_is_in_the_file_in_part_can_be_accepted(scene: Scene) -> None:
    accepted_base(scene)
    edit = scene.write("f", lines("a x y b c"))
    by_hand(scene, "f", lines("a y b c"))
    assert scene.accept(edit).taken_out == ()


def test_edits_of_agents_that_cancel_out_can_be_accepted(scene: Scene) -> None:
    accepted_base(scene)
    first, second = scene.write("f", lines("a x b c")), scene.write("f", lines("a b c"))
    outcome = scene.decide(Action.ACCEPT, first, second)
    assert isinstance(outcome, Decided)
    assert outcome.taken_out == ()


def test_an_accepted_edit_of_an_agent_takes_out_too(scene: Scene) -> None:
    accepted_base(scene)
    edit = scene.write("f", lines("a x b c"))
    scene.accept(scene.write("f", lines("a b c")))
    assert "because later accepted edits took it out" in refused(scene, edit)


def test_of_a_group_the_rest_is_accepted_and_the_others_stay_pending(scene: Scene) -> None:
    accepted_base(scene)
    edit = scene.write("f", lines("A b C"))
    taker = by_hand(scene, "f", lines("A b c"))
    other = scene.write("g", lines("g"))
    outcome = scene.decide(Action.ACCEPT, edit, other)
    assert isinstance(outcome, Decided)
    assert outcome.taken_out == ((Unit(edit, 2), Unit(taker, 1)),)
    assert scene.view(edit).units == (ACCEPTED, ACCEPTED, PENDING)
    assert scene.view(other).status is ACCEPTED
    scene.undo()
    assert scene.view(edit).units == (PENDING, PENDING, PENDING)


def test_what_a_person_took_out_is_found_with_the_decision_if_not_recorded_yet(scene: Scene) -> None:
    accepted_base(scene)
    edit, other = scene.write("f", lines("a B c")), scene.write("g", lines("g"))
    (scene.root / "f").write_bytes(lines("a b c"))
    outcome = scene.decide(Action.ACCEPT, edit, other, on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    assert {unit.seq for unit, _ in outcome.taken_out} == {edit}
    assert scene.view(edit).status is PENDING


def test_the_net_view_names_what_was_taken_out(scene: Scene) -> None:
    accepted_base(scene)
    edit = scene.write("f", lines("a B c"))
    by_hand(scene, "f", lines("a b c"))
    (file,) = scene.workspace.review.changes()
    assert (file.changes, file.taken_out, file.cancelled) == ((), (Unit(edit, 1),), (Unit(edit, 1),))


@given(document=document_histories())
def test_without_what_was_taken_out_the_document_is_the_same(document: Document) -> None:
    before, now = document.statuses(), document.version()
    found = document.taken_out(document.pending())
    assert document.statuses() == before
    for unit in found:
        document.set_statuses({unit: Status.REJECTED})
        assert (document.version().content, document.conflicts()) == (now.content, ())
        document.restore_statuses(before)
    document.restore_statuses(before.replace(b"a", b"p"))
    assert document.taken_out(found) == {}  # only what is accepted takes anything out
