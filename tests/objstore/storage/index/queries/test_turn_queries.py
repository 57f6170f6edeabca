"""Test what the index says of turns, sessions, owners of edits, comments and settings."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given, strategies as st

from objstore.disk.fs.disk import Disk
from objstore.model.basic_types import (
    Action,
    CommentState,
    DocumentId,
    FileState,
    Operation,
    Origin,
    Seq,
    Status,
    Unit,
)
from objstore.model.ids import RecordId, blob_id, record_id
from objstore.model.ranges import Range
from objstore.model.record_codec import encode_record
from objstore.model.records import (
    Anchor,
    Comment,
    Decision,
    Edit,
    Expiry,
    Mark,
    Record,
    SettingChange,
    Turn,
    Void,
    WrittenFile,
)
from objstore.storage.index.index_file import IndexFile
from objstore.storage.index.log_index import Index
from objstore.storage.index.rows import EditConditions
from objstore.storage.log.frames import FrameKind
from objstore.storage.log.segments import Log, create_log
from objstore.text.hunks import Hunk
from objstore.values.errors import StoreDamaged
from tests.support.faulty_disk import CountdownDisk
from tests.support.index_tables import index_at, rebuilt_tables, tables

STATE: Final = FileState(blob=blob_id(b"a"), mode=0o644)
OTHER: Final = FileState(blob=blob_id(b"b"), mode=0o644)


class Journal:
    """Appends records of its own making, one group at a time, and has an index that follows."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / ".cas"
        (self.store / "segments").mkdir(parents=True)
        create_log(str(self.store / "segments"), CountdownDisk(None))
        self.log = Log(str(self.store / "segments"), CountdownDisk(None))
        self._opened = ExitStack()
        self.index = Index(self._opened.enter_context(closing(IndexFile(str(folder / "index")))), self.log)
        self.path = folder / "index"
        self._end = self.log.first
        self._last: RecordId | None = None
        self.ends = [self._end]

    def append(self, *records: Record) -> None:
        encoded = []
        for record in records:
            encoded.append(encode_record(record, self._last))
            self._last = record_id(encoded[-1])
        self._end = self.log.append(self._end, [(FrameKind.RECORD, each) for each in encoded]).end
        self.ends.append(self._end)
        self.index.catch_up()

    def close(self) -> None:
        self.index.close()
        self._opened.close()
        self.log.close()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with closing(Journal(tmp_path)) as journal:
        yield journal


def turn(number: int, session: str, conversation: str = "", *, time: int = 1, prompt: str = "") -> Turn:
    return Turn(number=number, time=time, session=session, conversation=conversation or session, prompt=prompt)


def edit(
    seq: int, conversation: str = "c", *, turn: int = 0, origin: Origin = Origin.AGENT, document: int = 0, time: int = 1
) -> Edit:
    is_new = document in {0, seq}
    return Edit(
        seq=Seq(seq),
        document=DocumentId(document or seq),
        time=time,
        conversation=conversation,
        call=seq,
        ordinal=0,
        operation=Operation.CREATE if is_new else Operation.EDIT,
        path=b"f%d" % (document or seq),
        before=None if is_new else STATE,
        after=OTHER,
        hunks=() if is_new else (Hunk(0, 1, 0, 1), Hunk(3, 0, 3, 1)),
        added=2,
        removed=1,
        origin=origin,
        status=Status.PENDING if origin.needs_review else Status.ACCEPTED,
        turn=turn,
        tool="t",
    )


def decision(
    number: int, action: Action, *verdicts: tuple[int, int, Status], conversation: str = "", takes_back: int = 0
) -> Decision:
    return Decision(
        number=number,
        time=1,
        action=action,
        verdicts=tuple((Unit(Seq(seq), hunk), status) for seq, hunk, status in sorted(verdicts)),
        written=(),
        who="me",
        reason=f"reason {number}",
        conversation=conversation,
        takes_back=takes_back,
    )


def comment(number: int, *, document: int = 1, answers: int = 0, conversation: str = "") -> Comment:
    return Comment(
        number=number,
        time=number,
        who="me",
        document=DocumentId(document),
        path=b"f1",
        first=Anchor(1, 0, 0),
        last=Anchor(1, 0, 0),
        lines=(1, 1),
        text="why?",
        answers=answers,
        conversation=conversation,
    )


# ---- sessions and turns


def test_sessions_are_numbered_by_their_first_records(journal: Journal) -> None:
    journal.append(turn(1, "run B", "turn 1"), edit(1, "turn 1", turn=1))
    journal.append(edit(2, "hooked"))
    journal.append(turn(2, "run A", "turn 2"), edit(3, "turn 2", turn=2))
    journal.append(edit(4, "hooked"), edit(5, "external", origin=Origin.EXTERNAL))
    found = journal.index.sessions.all()
    assert [(row.number, row.name, row.turns, row.edits) for row in found] == [
        (1, "run B", 1, 1),
        (2, "hooked", 0, 2),
        (3, "run A", 1, 1),
    ]
    assert journal.index.sessions.of_edits(range(1, 7)) == {1: 1, 2: 2, 3: 3, 4: 2}


def test_an_edit_without_a_turn_belongs_to_the_session_of_its_conversation(journal: Journal) -> None:
    journal.append(turn(1, "run", "a turn"), edit(1, "a turn", turn=1))
    journal.append(edit(2, "a turn"), edit(3, "a turn", origin=Origin.FORMATTER))
    journal.append(edit(4, "a turn", origin=Origin.UNATTRIBUTED), edit(5, "a turn", origin=Origin.PERSON))
    assert journal.index.sessions.of_edits(range(1, 6)) == {1: 1, 2: 1, 3: 1}


def test_a_session_begins_with_its_first_record_and_ends_with_its_last(journal: Journal) -> None:
    journal.append(turn(1, "run", time=50), edit(1, "run", turn=1, time=70), edit(2, "run", turn=1, time=60))
    journal.append(edit(3, "other", time=9))
    assert [(row.began, row.ended, row.first_edit) for row in journal.index.sessions.all()] == [(50, 70, 1), (9, 9, 3)]


def test_the_newest_turn_of_a_session_and_conversation_is_found(journal: Journal) -> None:
    journal.append(turn(1, "run", "x", time=1), turn(2, "run", "x", time=2), turn(3, "run", "y"), turn(4, "walk", "x"))
    newest = journal.index.turns.newest_of("run", "x")
    assert newest is not None
    assert (newest.number, newest.time) == (2, 2)
    assert journal.index.turns.newest_of("nowhere", "x") is None
    assert [row.number for row in journal.index.turns.of_session(1)] == [1, 2, 3]
    assert [row.number for row in journal.index.turns.all()] == [1, 2, 3, 4]
    assert journal.index.numbers.next_turn() == 5


def test_an_edit_can_only_name_an_earlier_turn(journal: Journal) -> None:
    with pytest.raises(StoreDamaged, match="turn 1, which does not exist"):
        journal.append(edit(1, turn=1), turn(1, "run"))


def test_a_mark_can_only_name_earlier_comments(journal: Journal) -> None:
    with pytest.raises(StoreDamaged, match="comment 2, which does not exist"):
        journal.append(comment(1), Mark(time=1, who="", comments=(1, 2), state=CommentState.SENT))


def test_a_turn_stays_when_its_call_is_rolled_back(journal: Journal) -> None:
    journal.append(turn(1, "run"), edit(1, "run", turn=1))
    journal.append(Void(time=2, edits=(Seq(1),), decision=0, reason="the disk said no"))
    assert [(row.number, row.edits) for row in journal.index.sessions.all()] == [(1, 0)]
    assert journal.index.turns.edits([1]) == []
    assert journal.index.turns.newest_of("run", "run") is not None


# ---- whose an edit is


def owners(journal: Journal) -> dict[int, tuple[str, str]]:
    found = journal.index.edits.matching(EditConditions())
    return {row.seq: (row.owner, row.status.value) for row in found}


def test_a_claim_gives_an_edit_an_owner_and_an_undo_takes_that_back(journal: Journal) -> None:
    journal.append(edit(1, "run"), edit(2, "external", origin=Origin.UNATTRIBUTED))
    before = owners(journal)
    journal.append(decision(1, Action.CLAIM, (2, 0, Status.ACCEPTED)))
    assert owners(journal) == before | {2: ("", "accepted")}
    journal.append(decision(2, Action.UNDO, (2, 0, Status.PENDING), takes_back=1))
    assert owners(journal) == before
    journal.append(decision(3, Action.REDO, (2, 0, Status.ACCEPTED), takes_back=2))
    assert owners(journal) == before | {2: ("", "accepted")}
    journal.append(Void(time=1, edits=(), decision=3, reason="the disk said no"))
    assert owners(journal) == before


def test_a_claim_for_a_session_moves_the_edit_there(journal: Journal) -> None:
    journal.append(edit(1, "run"), turn(1, "walk"), edit(2, "walk", turn=1))
    journal.append(decision(1, Action.CLAIM, (2, 0, Status.PENDING), conversation="run"))
    assert journal.index.sessions.of_edits([1, 2]) == {1: 1, 2: 1}
    assert [row.seq for row in journal.index.edits.matching(EditConditions(session=1))] == [1, 2]
    assert journal.index.edits.matching(EditConditions(turn=1)) == []


# ---- away


def status_of(journal: Journal, seq: int) -> tuple[Status, tuple[Status, ...]]:
    row = journal.index.edits.get(seq)
    assert row is not None
    return row.status, row.units


def test_an_edit_is_away_if_all_that_it_does_is_away(journal: Journal) -> None:
    pending, rejected, away = Status.PENDING, Status.REJECTED, Status.AWAY
    journal.append(edit(1), edit(2, document=1))
    journal.append(decision(1, Action.GIT, (2, 1, away)))
    assert status_of(journal, 2) == (pending, (pending, away, pending))
    journal.append(decision(2, Action.REJECT, (2, 2, rejected)))
    assert status_of(journal, 2) == (rejected, (pending, away, rejected))
    journal.append(decision(3, Action.GIT, (2, 2, away)))
    assert status_of(journal, 2) == (away, (pending, away, away))
    assert journal.index.edits.counts() == {pending: 1, Status.ACCEPTED: 0, rejected: 0, away: 1}


def test_a_unit_keeps_its_reason_while_it_is_away(journal: Journal) -> None:
    journal.append(edit(1))
    journal.append(decision(1, Action.REJECT, (1, 0, Status.REJECTED)))
    row = journal.index.edits.get(1)
    assert row is not None
    journal.append(decision(2, Action.GIT, (1, 0, Status.AWAY)))
    journal.append(decision(3, Action.GIT, (1, 0, Status.REJECTED)))
    again = journal.index.edits.get(1)
    assert again is not None
    assert again.reasons == row.reasons


def test_an_edit_with_a_part_that_is_away_does_not_expire(journal: Journal) -> None:
    journal.append(edit(1), edit(2, "d"))
    journal.append(decision(1, Action.ACCEPT, (1, 0, Status.ACCEPTED), (2, 0, Status.ACCEPTED)))
    journal.append(decision(2, Action.GIT, (2, 0, Status.AWAY)))
    assert [(seq, is_free) for seq, *_, is_free in journal.index.edits.aged()] == [(1, True), (2, False)]
    assert journal.index.edits.decided_before(10) == 1


# ---- comments and settings


def test_a_comment_has_the_state_of_its_newest_mark(journal: Journal) -> None:
    journal.append(edit(1), comment(1), comment(2), comment(3, answers=1, conversation="run"))
    journal.append(Mark(time=1, who="me", comments=(1, 2), state=CommentState.SENT, conversation="run"))
    journal.append(Mark(time=2, who="me", comments=(1,), state=CommentState.RESOLVED))
    comments = journal.index.comments
    assert [(row.number, row.state, row.sent) for row in comments.all()] == [
        (1, CommentState.RESOLVED, "run"),
        (2, CommentState.SENT, "run"),
        (3, CommentState.OPEN, ""),
    ]
    assert [row.number for row in comments.in_state(CommentState.SENT)] == [2]
    assert [row.number for row in comments.of_document(DocumentId(1))] == [1, 2, 3]
    assert [row.conversation for row in comments.answers_to(1)] == ["run"]
    journal.append(Mark(time=3, who="me", comments=(1, 2), state=CommentState.OPEN))
    assert [(row.state, row.sent) for row in comments.all()] == [(CommentState.OPEN, "")] * 3
    assert journal.index.numbers.next_comment() == 4


def test_the_changes_of_a_setting_are_listed_in_order(journal: Journal) -> None:
    journal.append(SettingChange(time=1, who="me", name="a", after="1"))
    journal.append(SettingChange(time=2, who="me", name="b", after="1"))
    journal.append(SettingChange(time=3, who="me", name="a", before="1"))
    assert [row.time for row in journal.index.settings.changes("a")] == [1, 3]
    assert [row.name for row in journal.index.settings.changes()] == ["a", "b", "a"]


# ---- the law


@st.composite
def journals(draw: st.DrawFn) -> list[list[Record]]:
    """Draw the groups of a journal in which every kind of record of version 2 occurs."""
    names = st.sampled_from(["a", "b", "c"])
    groups: list[list[Record]] = []
    edits: list[Edit] = []
    standing: list[Edit] = []
    decisions = turns = comments = 0
    expired = 0
    for _ in range(draw(st.integers(1, 25))):
        kinds = ["turn", "edit", "edit", "edit", "talk", "mark", "setting"]
        kind = draw(st.sampled_from(kinds + ["decide", "decide", "void", "expire"] * bool(standing)))
        match kind:
            case "turn":
                turns += 1
                groups.append([turn(turns, draw(names), draw(names), time=draw(st.integers(0, 3)))])
            case "edit":
                known = [0, *(int(one.document) for one in standing if one.seq > expired)]
                made = edit(
                    len(edits) + 1,
                    draw(names),
                    turn=draw(st.integers(0, turns)),
                    origin=draw(st.sampled_from(Origin)),
                    document=draw(st.sampled_from(known)),
                )
                edits.append(made)
                standing.append(made)
                groups.append([made])
            case "decide":
                decisions += 1
                about = draw(st.lists(st.sampled_from(standing), min_size=1, max_size=3, unique_by=lambda one: one.seq))
                units = [(one.seq, draw(st.integers(0, len(one.hunks)))) for one in about]
                document = about[0].document
                groups.append(
                    [
                        Decision(
                            number=decisions,
                            time=1,
                            action=draw(st.sampled_from(Action)),
                            verdicts=tuple(
                                sorted((Unit(*unit), draw(st.sampled_from(Status))) for unit in dict.fromkeys(units))
                            ),
                            written=(
                                WrittenFile(
                                    document=document,
                                    path_before=b"f%d" % document,
                                    before=OTHER,
                                    path_after=b"f%d" % document,
                                    after=draw(st.sampled_from([STATE, OTHER])),
                                ),
                            ),
                            who="me",
                            reason=draw(names),
                            takes_back=draw(st.integers(0, decisions - 1)),
                            conversation=draw(names | st.just("")),
                        )
                    ]
                )
            case "void":
                match groups[-1]:
                    case [Edit() as last] if last in standing:
                        standing.remove(last)
                        groups.append([Void(time=1, edits=(last.seq,), decision=0, reason="no")])
                    case [Decision() as last]:
                        groups.append([Void(time=1, edits=(), decision=last.number, reason="no")])
                    case _:
                        pass
            case "expire":
                expired = draw(st.integers(1, len(edits)))
                groups.append([Expiry(time=1, edits=(Range(1, expired),), reason="old", who="")])
                standing = [one for one in standing if one.seq > expired]
            case "talk":
                comments += 1
                groups.append([comment(comments, answers=draw(st.integers(0, comments - 1)))])
            case "mark" if comments:
                about_comments = draw(st.sets(st.integers(1, comments), min_size=1, max_size=3))
                groups.append(
                    [
                        Mark(
                            time=1,
                            who="me",
                            comments=tuple(sorted(about_comments)),
                            state=draw(st.sampled_from(CommentState)),
                            conversation=draw(names | st.just("")),
                        )
                    ]
                )
            case _:
                groups.append([SettingChange(time=1, who="me", name=draw(names), after=draw(names))])
    return groups


@given(journals(), st.data())
def test_an_index_that_followed_the_log_equals_one_made_from_it(
    groups: list[list[Record]], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder, closing(Journal(Path(folder))) as journal:
        for group in groups:
            journal.append(*group)
        assert tables(journal.path) == rebuilt_tables(journal.store)
        # A log that was cut off behind the index, as by a backup that was restored, is read again.
        end = data.draw(st.sampled_from(journal.ends))
        journal.close()
        segment = journal.store / "segments" / "00000001.seg"
        segment.write_bytes(segment.read_bytes()[: end.offset])
        with closing(Log(str(segment.parent), Disk())) as log, index_at(journal.path, log):
            assert tables(journal.path) == rebuilt_tables(journal.store)
