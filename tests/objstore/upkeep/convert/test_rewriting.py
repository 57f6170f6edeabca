"""What earlier versions left out or did differently is stated in the records of format 1, and all numbers follow."""

from pathlib import Path
from typing import Final

import pytest

from objstore import Action, ConversionRefused, Decision, Edit, Workspace, check_store, convert_store
from objstore.model.basic_types import DocumentId, FileState, Operation, Origin, Seq, Status, Unit
from objstore.model.ids import blob_id
from objstore.model.ranges import ranges_of
from objstore.model.records import (
    CONVERTED_NOTE,
    Anchor,
    Comment,
    Expiry,
    Marks,
    Pin,
    Record,
    Void,
    WrittenFile,
)
from objstore.text.hunks import Hunk
from objstore.values.fastclass import replace
from tests.support.earlier_stores import forged

ONE: Final = b"one\n"
TWO: Final = b"one\ntwo\n"
THREE: Final = b"one\ntwo\nthree\n"
EMPTY: Final = b""


def state(content: bytes) -> FileState:
    return FileState(blob=blob_id(content), mode=0o644)


def edit(seq: int, path: bytes, before: bytes | None, after: bytes | None, document: int = 0) -> Edit:
    """Return an edit that appends lines, or creates or deletes a file."""
    lines = [0 if content is None else content.count(b"\n") for content in (before, after)]
    is_change = before is not None and after is not None
    return Edit(
        seq=Seq(seq),
        document=DocumentId(document or seq),
        time=1,
        conversation="c",
        call=seq,
        ordinal=0,
        operation=Operation.EDIT if is_change else Operation.CREATE if before is None else Operation.DELETE,
        path=path,
        before=None if before is None else state(before),
        after=None if after is None else state(after),
        hunks=(Hunk(lines[0], 0, lines[0], lines[1] - lines[0]),) if is_change else (),
        tool="t",
    )


def decision(
    number: int, verdicts: dict[Unit, Status], *written: WrittenFile, action: Action = Action.REJECT
) -> Decision:
    return Decision(number=number, time=1, action=action, verdicts=tuple(verdicts.items()), written=written, who="me")


def wrote(document: int, path: bytes, before: bytes | None, after: bytes | None) -> WrittenFile:
    return WrittenFile(
        document=DocumentId(document),
        path_before=None if before is None else path,
        before=None if before is None else state(before),
        path_after=None if after is None else path,
        after=None if after is None else state(after),
    )


def unit(seq: int, hunk: int) -> Unit:
    return Unit(Seq(seq), hunk)


def converted(root: Path, *groups: tuple[Record | bytes, ...], version: int) -> tuple[list[Record], tuple[int, ...]]:
    """Return the records of a forged store after its conversion, and the numbers of the inserted edits."""
    forged(root, *groups, version=version)
    done = convert_store(str(root))
    assert done is not None
    assert check_store(str(root)).faults == ()
    with Workspace.open(root) as workspace:
        return [view.record for view in workspace.history.records()], done.inserted


PENDING: Final = {unit(2, 0): Status.ACCEPTED, unit(2, 1): Status.ACCEPTED}


@pytest.mark.parametrize("version", [1, 2])
def test_a_decision_of_version_1_names_files_that_it_did_not_change(tmp_path: Path, version: int) -> None:
    first, second = edit(1, b"a", None, ONE), edit(2, b"a", ONE, TWO, 1)
    accepted = decision(1, PENDING, action=Action.ACCEPT)
    records, _ = converted(tmp_path, (ONE, first), (TWO, second), (accepted,), version=version)
    written = (wrote(1, b"a", TWO, TWO),) if version == 1 else ()
    assert records == [first, second, replace(accepted, written=written)]


def test_an_edit_that_continued_a_document_that_never_was_begins_one(tmp_path: Path) -> None:
    never, void = edit(1, b"a", None, ONE), Void(time=1, edits=(Seq(1),), decision=0, reason="")
    again, following = edit(2, b"a", None, TWO, 1), edit(3, b"a", TWO, THREE, 1)
    about = Comment(
        number=1,
        time=1,
        who="me",
        document=DocumentId(1),
        path=b"a",
        first=Anchor(2, 0, 0),
        last=Anchor(2, 0, 0),
        lines=(1, 1),
        text="why?",
    )
    records, _ = converted(tmp_path, (ONE, never), (void,), (TWO, again), (THREE, following), (about,), version=1)
    two = DocumentId(2)
    moved = [replace(record, document=two) for record in (again, following, about)]
    assert records == [never, void, *moved]


def test_a_void_takes_back_what_its_group_did_and_nothing_else(tmp_path: Path) -> None:
    """The edit that was found on disk stays, and so the state that a later decision of version 1 left as it was."""
    first = edit(1, b"a", None, ONE)
    found = replace(edit(2, b"a", ONE, TWO, 1), origin=Origin.EXTERNAL)
    undone, rejected = (
        edit(3, b"a", TWO, THREE, 1),
        decision(1, {unit(1, 0): Status.REJECTED}, wrote(1, b"a", TWO, None)),
    )
    void = Void(time=1, edits=(Seq(3),), decision=0, reason="")
    taken_back = Void(time=1, edits=(), decision=1, reason="")
    accepted = decision(2, PENDING, action=Action.ACCEPT)
    records, _ = converted(
        tmp_path, (ONE, first), (TWO, THREE, found, undone), (void,), (rejected,), (taken_back,), (accepted,), version=1
    )
    assert records[-1] == replace(accepted, written=(wrote(1, b"a", TWO, TWO),))


def test_numbers_after_an_inserted_edit_follow_in_every_record(tmp_path: Path) -> None:
    """Decision 1 took a line out of `a` that its verdicts leave there."""
    first, other = edit(1, b"a", None, THREE), edit(2, b"b", None, ONE)
    wrong = decision(1, {unit(1, 0): Status.ACCEPTED}, wrote(1, b"a", THREE, ONE), action=Action.ACCEPT)
    changed, gone = edit(3, b"a", ONE, TWO, 1), edit(4, b"c", None, ONE)
    accepted = decision(2, {unit(4, 0): Status.ACCEPTED}, wrote(4, b"c", ONE, ONE), action=Action.ACCEPT)
    marker = replace(
        edit(5, b"b", ONE, TWO, 2),
        origin=Origin.PERSON,
        amends=Seq(2),
        marks=Marks(decision=3, against=(unit(2, 0),), aside=((unit(3, 1), Status.PENDING),)),
    )
    void, pin = (
        Void(time=1, edits=(Seq(6),), decision=0, reason=""),
        Pin(number=1, time=1, edits=(Seq(2), Seq(5)), blobs=(), who="me"),
    )
    expiry = Expiry(time=1, edits=ranges_of([4]), decisions=ranges_of([2]), reason="", who="me")
    about = Comment(
        number=1,
        time=1,
        who="me",
        document=DocumentId(2),
        path=b"b",
        first=Anchor(5, 1, 0),
        last=Anchor(5, 1, 0),
        lines=(2, 2),
        units=(unit(5, 1),),
        text="why?",
    )
    groups: list[tuple[Record | bytes, ...]] = [
        (THREE, first),
        (ONE, other),
        (wrong,),
        (TWO, changed),
        (gone,),
        (accepted,),
    ]
    groups += [(marker,), (edit(6, b"d", None, ONE),), (void,), (pin,), (expiry,), (about,)]
    records, inserted = converted(tmp_path, *groups, version=1)
    assert inserted == (3,)
    made = records[3]
    assert isinstance(made, Edit)
    assert (made.seq, made.document, made.status, made.origin) == (3, 1, Status.ACCEPTED, Origin.PERSON)
    assert (made.before, made.after, made.hunks) == (state(THREE), state(ONE), (Hunk(1, 2, 1, 0),))
    assert made.notes == {CONVERTED_NOTE: "1"}
    four, five, six = Seq(4), Seq(5), Seq(6)
    assert [*records[:3], *records[4:]] == [
        first,
        other,
        replace(wrong, written=(wrote(1, b"a", THREE, THREE),)),
        replace(changed, seq=four),
        replace(gone, seq=five, document=DocumentId(5)),
        replace(accepted, verdicts=((unit(5, 0), Status.ACCEPTED),), written=(wrote(5, b"c", ONE, ONE),)),
        replace(
            marker,
            seq=six,
            marks=Marks(decision=3, against=(unit(2, 0),), aside=((unit(4, 1), Status.PENDING),)),
        ),
        replace(edit(6, b"d", None, ONE), seq=Seq(7), document=DocumentId(7)),
        replace(void, edits=(Seq(7),)),
        replace(pin, edits=(Seq(2), six)),
        replace(expiry, edits=ranges_of([5])),
        replace(about, first=Anchor(6, 1, 0), last=Anchor(6, 1, 0), units=(unit(6, 1),)),
    ]


def test_decisions_that_wrote_created_or_deleted_other_files_each_get_an_edit(tmp_path: Path) -> None:
    """Decision 1 left out a line of `a` and of `b`; decision 2 deleted `a`, and decision 3 brought it back."""
    accepted = {unit(1, 0): Status.ACCEPTED, unit(2, 0): Status.ACCEPTED}
    groups: list[tuple[Record | bytes, ...]] = [
        (TWO, edit(1, b"a", None, TWO)),
        (edit(2, b"b", None, TWO),),
        (ONE, decision(1, accepted, wrote(1, b"a", TWO, ONE), wrote(2, b"b", TWO, ONE), action=Action.ACCEPT)),
        (decision(2, {unit(1, 0): Status.ACCEPTED}, wrote(1, b"a", ONE, None), action=Action.ACCEPT),),
        (THREE, decision(3, {unit(1, 0): Status.ACCEPTED}, wrote(1, b"a", None, THREE), action=Action.ACCEPT)),
        (edit(3, b"b", ONE, THREE, 2),),
    ]
    records, inserted = converted(tmp_path, *groups, version=1)
    assert inserted == (3, 4, 5, 6)
    made = [record for record in records if isinstance(record, Edit) and record.seq in inserted]
    assert [(each.operation, each.path, each.notes[CONVERTED_NOTE]) for each in made] == [
        (Operation.EDIT, b"a", "1"),
        (Operation.EDIT, b"b", "1"),
        (Operation.DELETE, b"a", "2"),
        (Operation.CREATE, b"a", "3"),
    ]
    with Workspace.open(tmp_path) as workspace:
        found = {path: workspace.history.text(file.blob) for path, file in workspace.history.files_at().items()}
    assert found == {"a": THREE, "b": THREE}


def test_a_journal_with_a_record_from_elsewhere_is_refused(tmp_path: Path) -> None:
    forged(tmp_path, (EMPTY, edit(1, b"a", None, EMPTY)), (edit(3, b"a", EMPTY, ONE, 1),), version=1)
    with pytest.raises(ConversionRefused):
        convert_store(str(tmp_path))
