"""Files whose first edits have expired: the remaining edits are decided as before, on the state that they found."""

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing

import pytest

from objstore import Action, ConflictKind, Decided, EditExpired, NothingToDo, Origin, Status, blob_id
from objstore.disk.fs.disk import Disk
from objstore.model.ranges import ranges_of
from objstore.model.records import Expiry
from objstore.storage.store.write_batch import now
from objstore.storage.transaction.journal import Journal
from tests.support.scene import TEN, Scene, lines, words

UNNEEDED = "DELETE FROM blobs WHERE refs = 0 AND id NOT IN (SELECT base FROM blobs WHERE base IS NOT NULL)"
REASON = "older than 30 days"


def expire(scene: Scene, *edits: int, decisions: Iterable[int] = ()) -> None:
    """Expire edits and decisions, and remove every blob that nothing holds or is based on any more."""
    with closing(Journal(str(scene.root), Disk())) as journal, journal.writing() as batch:
        expiry = Expiry(
            time=now(), edits=ranges_of(edits), decisions=ranges_of(decisions), reason=REASON, who="somebody"
        )
        batch.record(expiry)
        journal.commit(batch, ())
    with closing(sqlite3.connect(scene.root / ".cas" / "index.sqlite")) as index, index:
        while index.execute(UNNEEDED).rowcount:
            pass
    scene.reopen()


@pytest.fixture
def four(scene: Scene) -> Scene:
    """Return a scene in which ten lines were created, 2 became two, 5 five, and 9 nine."""
    scene.write("f", TEN)
    for number, word in ((2, b"two"), (5, b"five"), (9, b"nine")):
        scene.edit("f", b"\n%d\n" % number, b"\n%s\n" % word)
    scene.accept(1, 2)
    return scene


def test_the_remaining_edits_are_decided_as_before(four: Scene) -> None:
    expire(four, 1, 2)
    four.reject(3)
    assert words(four.text("f")) == "1 two 3 4 5 6 7 8 nine 10"
    four.reject(4)
    assert words(four.text("f")) == "1 two 3 4 5 6 7 8 9 10"
    four.accept(4)
    four.accept(3)
    assert words(four.text("f")) == "1 two 3 4 five 6 7 8 nine 10"


def test_with_nothing_live_a_file_is_what_the_first_edit_left_found(four: Scene) -> None:
    expire(four, 1, 2)
    four.decide(Action.REJECT, 3, 4)
    assert four.text("f") == TEN.replace(b"\n2\n", b"\ntwo\n")


def test_the_order_of_decisions_on_the_remaining_edits_does_not_matter(four: Scene) -> None:
    expire(four, 1)
    other = four.copy_to(four.root.parent / "other")
    for seq in (2, 3, 4):
        four.reject(seq)
        other.reject(6 - seq)
    assert four.text("f") == other.text("f") == TEN
    other.close()


@pytest.mark.parametrize("action", [Action.ACCEPT, Action.REJECT, Action.RESET])
def test_expired_edits_can_not_be_decided(four: Scene, action: Action) -> None:
    expire(four, 1, 2)
    before = four.everything()
    for names in (["2"], ["2:1"], ["3", "2"]):
        with pytest.raises(EditExpired, match=rf"^Edit 2 expired on \d{{4}}-\d\d-\d\d: {REASON}\. ") as refused:
            four.decide(action, *names)
        assert (refused.value.seq, refused.value.reason) == (2, REASON)
    with pytest.raises(EditExpired):
        four.decide(action, 1, dry_run=True)
    assert four.everything() == before


def test_a_conflict_over_a_path_names_a_file_whose_first_edits_have_expired(scene: Scene) -> None:
    scene.write("f", TEN)
    scene.accept(1)
    expire(scene, 1)
    move = scene.move("f", "g")
    created = scene.write("f", lines("other"))
    (conflict,) = scene.refused(Action.REJECT, move)
    assert (conflict.kind, conflict.path, conflict.line) == (ConflictKind.PATH_TAKEN, "f", 0)
    assert (conflict.unit.seq, [unit.seq for unit in conflict.needs]) == (move, [created])


def test_a_decision_on_expired_edits_can_be_neither_undone_nor_redone(four: Scene) -> None:
    four.reject(4)
    expire(four, 1, 2, decisions=[1])
    four.undo()
    with pytest.raises(EditExpired, match=r"^Edit 1 expired"):
        four.workspace.review.undo()
    four.workspace.review.redo()
    assert words(four.text("f")) == "1 two 3 4 five 6 7 8 9 10"


def test_an_expired_undo_is_not_redone(four: Scene) -> None:
    four.undo()
    four.accept(1, 2)
    four.undo()
    expire(four, 1, 2, decisions=[1, 2, 3, 4])
    with pytest.raises(EditExpired):
        four.workspace.review.redo()


def test_the_history_still_shows_who_did_what(four: Scene) -> None:
    before = [(view.edit, view.status) for view in four.workspace.history.edits()]
    expire(four, 1, 2)
    views = four.workspace.history.edits()
    assert [(view.edit, view.status) for view in views] == before
    assert [view.expired.reason if view.expired else "" for view in views] == [REASON, REASON, "", ""]
    assert len(four.workspace.history.decisions()) == 1
    four.forget_index()
    assert four.workspace.history.edits() == views


def test_states_are_named_as_long_as_something_holds_them(scene: Scene) -> None:
    states = [os.urandom(500) for _ in range(3)]  # so unlike that none is stored as what it has of another
    for state in states:
        scene.write("f", state)
    scene.accept(1, 2)
    expire(scene, 1, 2, decisions=[1])
    assert scene.workspace.history.find_state("f@2").blob == blob_id(states[1])
    assert scene.workspace.history.find_state("f@3^").blob == blob_id(states[1])
    for name in ("f@1", "f@2^"):
        with pytest.raises(EditExpired):
            scene.workspace.history.find_state(name)
    assert scene.workspace.history.find_state("f@1^").blob is None
    assert scene.workspace.history.find_state("f").blob == blob_id(states[2])


def test_blame_names_no_edit_for_lines_of_expired_edits(four: Scene) -> None:
    expire(four, 1, 2)
    _, blamed = four.workspace.history.blame("f")
    assert [(part.count, str(part.unit)) for part in blamed] == [
        (4, "None"),
        (1, "3:1"),
        (3, "None"),
        (1, "4:1"),
        (1, "None"),
    ]


def test_an_expired_edit_can_not_be_amended(four: Scene) -> None:
    expire(four, 1, 2)
    version = four.workspace.read("f").blob
    with pytest.raises(EditExpired):
        four.workspace.review.amendable(2)
    with pytest.raises(EditExpired):
        four.workspace.review.amend(2, b"new\n", version=version)
    amended = four.workspace.review.amend(3, (four.text("f") or b"").replace(b"five", b"FIVE"), version=version)
    assert amended.edits[0].edit.amends == 3


def test_a_file_whose_edits_have_all_expired_can_be_edited_again(scene: Scene) -> None:
    scene.write("f", lines("a b c"))
    scene.edit("f", b"b\n", b"B\n")
    scene.accept(1, 2)
    expire(scene, 1, 2, decisions=[1])
    assert scene.workspace.history.blame("f")[1][0].unit is None
    (scene.root / "f").write_bytes(lines("a B c d"))
    three = scene.edit("f", b"a\n", b"A\n")
    assert [view.edit.origin for view in scene.workspace.history.edits()[2:]] == [Origin.EXTERNAL, Origin.AGENT]
    scene.reject(three)
    scene.reject(three - 1)
    assert words(scene.text("f")) == "a B c"
    assert scene.view(three).edit.document == 1


def test_a_file_that_was_moved_and_deleted_can_be_edited_again(scene: Scene) -> None:
    scene.write("f", b"one\n")
    scene.move("f", "d/g")
    scene.edit("d/g", b"one", b"two")
    scene.delete("d/g")
    scene.accept(1, 2, 3)
    expire(scene, 1, 2, decisions=[1])
    scene.reject(4)
    assert scene.text("d/g") == b"two\n"
    scene.reject(3)
    assert scene.text("d/g") == b"one\n"
    scene.accept(4)
    expire(scene, 3, 4, decisions=[2, 3, 4])
    again = scene.write("d/g", b"three\n")
    assert scene.view(again).edit.document == 1
    scene.reject(again)
    assert scene.text("d/g") is None
    scene.accept(again)
    assert scene.text("d/g") == b"three\n"


def test_a_cached_weave_with_expired_content_is_not_used(scene: Scene) -> None:
    """It could show and restore expired content."""
    scene.write("f", b"line\n" * 3)
    for number in range(80):
        scene.write("f", b"line\n" * 3 + b"%d\n" % number)
    scene.reject(81)
    assert (scene.root / ".cas" / "cache" / "weave-1").exists()
    scene.accept(1, 2, 3)
    expire(scene, 1, 2, 3, decisions=[2])
    scene.accept(81)
    assert scene.workspace.history.blame("f")[1][0].unit is None
    outcome = scene.decide(Action.REJECT, 4, cascade=True)
    assert isinstance(outcome, Decided)
    assert scene.text("f") == b"line\n" * 3 + b"1\n"


def test_a_decision_without_expired_edits_is_undone(four: Scene) -> None:
    four.reject(3)
    expire(four, 1, 2, decisions=[1])
    assert isinstance(four.workspace.decide(Action.REJECT, four.units(3)), NothingToDo)
    four.undo()
    assert four.statuses()[3] is Status.PENDING
    assert words(four.text("f")) == "1 two 3 4 five 6 7 8 nine 10"
