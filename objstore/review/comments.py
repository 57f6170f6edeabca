"""Record comments on lines and hunks, find the lines again, and say which comments an agent has not been sent yet.

A comment names its first and last line by the units that inserted them, so it follows them through later edits, moves
and decisions. What becomes of a comment is recorded in marks: it is sent to an agent once, and a person resolves it.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from objstore.history.documents.loader import load_document
from objstore.history.expired import refuse_expired
from objstore.history.revspec import recorded_path
from objstore.model.basic_types import CommentState, DocumentId, Seq, Unit
from objstore.model.records import Anchor, Comment, Mark
from objstore.model.views import CommentView, UnreportedComments
from objstore.review.calls.edit_recorder import new_conversation
from objstore.storage.index.rows import CommentRow, EditConditions
from objstore.storage.store.write_batch import now
from objstore.storage.transaction.index_repair import rebuild_index_and_retry
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.space_reserve import with_reserve
from objstore.text.lines import split_lines
from objstore.values.errors import UNREADABLE, FileChanged, HistoryBroken
from objstore.values.fastclass import replace
from objstore.values.request_errors import LineMissing, NoSuchName
from objstore.weave.document import Document
from objstore.worktree.external_changes import found_changes
from objstore.worktree.mounts import require_mounted

__all__ = [
    "ANY_AGENT",
    "add_answer",
    "add_to_lines",
    "add_to_units",
    "address",
    "comment",
    "comments",
    "mark",
    "mark_listed",
    "mark_sent",
    "of_edits",
    "unsent",
    "unsent_for",
]

ANY_AGENT: Final = "*"
"""In a mark, in place of a conversation: the comment is meant for whichever agent works next."""

_WHOLE: Final = Anchor(0, 0, 0)


class _Place(NamedTuple):
    """The subject of a comment: a file, and the lines or units."""

    document: DocumentId
    path: bytes
    first: Anchor
    last: Anchor
    lines: tuple[int, int]
    units: tuple[Unit, ...]


# ---- writing


def add_to_units(journal: Journal, units: Sequence[Unit], text: str, *, who: str) -> CommentView:
    """Record a comment on units of edits, in one file or several.

    Raises NoSuchName, EditExpired, HistoryBroken, and as Journal.commit.
    """
    return _added(journal, lambda: _of_units(journal, units), text, who=who)


def add_to_lines(journal: Journal, path: str, lines: tuple[int, int], text: str, *, who: str) -> CommentView:
    """Record a comment on lines of a file, from the first to the last, from 1; (0, 0): on the file as a whole.

    Raises NoSuchName, LineMissing, FileChanged if the file on disk is not as recorded, HistoryBroken, and what path
    lookups and Journal.commit raise.
    """
    return _added(journal, lambda: _of_lines(journal, path, lines), text, who=who)


def add_answer(
    journal: Journal, number: int, text: str, *, who: str, conversation: str = "", by_agent: bool = False
) -> CommentView:
    """Record an answer to a comment, and return the comment with it.

    An answer to an answer belongs to the comment that this one answers. `conversation`: of the agent; if it gives none,
    the one that the comment was sent to. Raises NoSuchName, and as Journal.commit.
    """
    if by_agent and not conversation:
        with journal.reading():
            sent = _row(journal, number).sent
        conversation = new_conversation() if sent in {"", ANY_AGENT} else sent

    def answered() -> tuple[_Place, int]:
        about = _record(journal, _row(journal, number))
        if about.answers:
            about = _record(journal, _row(journal, about.answers))
        place = _Place(about.document, about.path, about.first, about.last, about.lines, about.units)
        return place, about.number

    return _recorded(journal, answered, text, who=who, conversation=conversation)


def mark(journal: Journal, numbers: Iterable[int], state: CommentState, *, who: str) -> list[CommentView]:
    """Resolve or reopen comments, and return them. Raises NoSuchName with nothing recorded, and as Journal.commit."""
    wanted = sorted(set(numbers))
    rows = _marked(journal, wanted, state, who=who, conversation="", is_new=lambda row: row.state is not state)
    return _read_back(journal, [row.number for row in rows])


def mark_sent(journal: Journal, numbers: Iterable[int], *, conversation: str) -> None:
    """Record that comments were sent to a conversation. Call it after the message; raises as Journal.commit.

    A comment that somebody resolved, or that was sent elsewhere meanwhile, stays as it is.
    """
    _marked(
        journal,
        sorted(set(numbers)),
        CommentState.SENT,
        who="",
        conversation=conversation,
        is_new=lambda row: row.state is CommentState.OPEN,
    )


def mark_listed(journal: Journal, numbers: Iterable[int], *, conversation: str) -> None:
    """Record that a conversation has listed comments: those that are meant for it, or for any agent, are sent then.

    A comment for another session waits for that one. `conversation`: "": not known. Raises as `mark_sent`.
    """
    index = journal.store.index
    with journal.reading():
        edits = index.edits.matching(EditConditions(conversation=conversation), limit=1) if conversation else []
        session = next(iter(index.sessions.of_edits(row.seq for row in edits).values()), 0)
        meant = [number for number in numbers if _is_for(journal, _row(journal, number), conversation, session)]
    if meant:
        mark_sent(journal, meant, conversation=conversation)


def address(journal: Journal, numbers: Iterable[int], conversation: str, *, who: str) -> list[CommentView]:
    """Address comments to a conversation or ANY_AGENT, sent before or not, and return them.

    Raises NoSuchName with nothing recorded, and what Journal.commit raises.
    """
    wanted = sorted(set(numbers))
    _marked(journal, wanted, CommentState.OPEN, who=who, conversation=conversation, is_new=lambda _: True)
    return _read_back(journal, wanted)


# ---- reading


def comments(journal: Journal) -> list[CommentView]:
    """Return every comment that is no answer, oldest first, each with its answers."""
    return _views(journal, journal.store.index.comments.all())


def comment(journal: Journal, number: int) -> CommentView:
    """Return a comment with its answers. Raises NoSuchName."""
    return _view(journal, _row(journal, number), {})


def of_edits(journal: Journal, seqs: Collection[int]) -> dict[Seq, list[CommentView]]:
    """Return the comments on lines or units of edits, by edit, oldest first."""
    index = journal.store.index
    documents = {*index.edits.documents_of(seqs).values()}
    rows = [row for document in documents for row in index.comments.of_document(document)]
    found: dict[Seq, list[CommentView]] = {}
    for view in sorted(_views(journal, rows), key=lambda view: view.number):
        for seq in _edits_of(view.comment):
            if seq in seqs:
                found.setdefault(seq, []).append(view)
    return found


def unsent(journal: Journal) -> list[tuple[CommentView, frozenset[str]]]:
    """Return the comments of persons that no agent was sent yet, oldest first.

    Each has the conversations that it is meant for: of the agents that made what it is about. None: of any agent.
    """
    rows = journal.store.index.comments.in_state(CommentState.OPEN)
    documents: dict[DocumentId, Document | None] = {}
    return [(_view(journal, row, documents), _addressees(journal, row)) for row in rows if not row.conversation]


def unsent_for(
    journal: Journal, conversations: Collection[str], most: int, held_since: int = 0
) -> UnreportedComments | None:
    """Return the comments that are to be sent to one of these conversations (None: there are none).

    `most`: comments that are returned; further ones are only counted. `held_since`: number of the first comment that is
    held back, unless it was addressed to somebody; 0: none is.
    """
    index = journal.store.index
    if index.numbers.next_comment() == 1:
        return None
    rows = [row for row in index.comments.in_state(CommentState.OPEN) if not row.conversation]
    rows = [row for row in rows if not held_since or row.number < held_since or row.sent]
    meant = [row for row in rows if not (to := _addressees(journal, row)) or not to.isdisjoint(conversations)]
    if not meant:
        return None
    documents: dict[DocumentId, Document | None] = {}
    shown = tuple(_view(journal, row, documents) for row in meant[:most])
    return UnreportedComments(comments=shown, more=len(meant) - len(shown))


# ---- inside


def _added(journal: Journal, place: Callable[[], _Place], text: str, *, who: str) -> CommentView:
    return _recorded(journal, lambda: (place(), 0), text, who=who, conversation="")


def _recorded(
    journal: Journal, about: Callable[[], tuple[_Place, int]], text: str, *, who: str, conversation: str
) -> CommentView:
    """Record a comment; `about`: returns its place and the comment that it answers, called with the lock held.

    Where a person lets agents decide, a comment from inside an agent's shell says so.
    """
    if journal.decider.agent and not conversation:
        who = f"{who} (in the shell of {journal.decider.agent})".lstrip()

    def recorded() -> int:
        with journal.writing(may_use_reserve=True) as batch:
            place, answers = about()
            number = journal.store.index.numbers.next_comment()
            made = Comment(
                number=number,
                time=now(),
                who=who,
                **place._asdict(),
                text=text,
                answers=answers,
                conversation=conversation,
            )
            batch.record(made)
            if conversation and answers:
                # Who answers has read what was said so far: it need not be sent any more.
                rows = [_row(journal, answers), *journal.store.index.comments.answers_to(answers)]
                read = tuple(row.number for row in rows if row.state is CommentState.OPEN and not row.conversation)
                if read:
                    batch.record(
                        Mark(time=now(), who="", comments=read, state=CommentState.SENT, conversation=conversation)
                    )
            journal.commit(batch, ())
            return answers or number

    (view,) = _read_back(journal, [with_reserve(journal, recorded)])
    return view


def _read_back(journal: Journal, numbers: Iterable[int]) -> list[CommentView]:
    """Return comments that have just been recorded or marked.

    If the index is found damaged, it is rebuilt and read again: whoever got an error would record the comment twice.
    """

    def read() -> list[CommentView]:
        with journal.reading():
            return [comment(journal, number) for number in numbers]

    return rebuild_index_and_retry(journal, read)


def _marked(
    journal: Journal,
    numbers: list[int],
    state: CommentState,
    *,
    who: str,
    conversation: str,
    is_new: Callable[[CommentRow], bool],
) -> list[CommentRow]:
    """Mark those of the comments for which `is_new` holds, and return all of them as they were."""

    def marked() -> list[CommentRow]:
        with journal.writing(may_use_reserve=True) as batch:
            rows = [_row(journal, number) for number in numbers]
            changed = tuple(row.number for row in rows if is_new(row))
            if changed:
                batch.record(
                    Mark(
                        time=now(),
                        who=who,
                        comments=changed,
                        state=state,
                        conversation=conversation,
                        via=journal.decider.via,
                        agent=journal.decider.agent,
                    )
                )
                journal.commit(batch, ())
            return rows

    return with_reserve(journal, marked)


def _of_units(journal: Journal, units: Sequence[Unit]) -> _Place:
    chosen = tuple(sorted(units))
    documents: dict[DocumentId, None] = {}
    for seq in dict.fromkeys(unit.seq for unit in chosen):
        row = journal.store.index.edits.get(seq)
        of = journal.store.index.edits.document_of(seq)
        if row is None or of is None:
            raise NoSuchName(str(seq), "edit")
        refuse_expired(journal, row)
        for unit in chosen:
            if unit.seq == seq and not 0 <= unit.hunk < len(row.units):
                raise NoSuchName(str(unit), "hunk")
        documents[of] = None
    of = next(iter(documents))
    path = journal.store.index.documents.tip(of).path
    if len(documents) > 1:
        return _Place(of, path, _WHOLE, _WHOLE, (0, 0), chosen)
    document = load_document(journal, of)
    inserting = [unit for unit in chosen if document.inserted_lines(unit)]
    if inserting:
        last_line = document.inserted_lines(inserting[-1]) - 1
        first, last = Anchor(*inserting[0], 0), Anchor(*inserting[-1], last_line)
    else:
        # Lines were only removed: the comment is about the line that is now in their place, or the one above.
        count = len(split_lines(document.lines_text() or b""))
        deleting = [unit for unit in chosen if unit.hunk]
        line = min(document.line(deleting[0]), count) if deleting else 0
        first = last = document.anchor(line) if line else _WHOLE
        if not line:
            return _Place(of, path, _WHOLE, _WHOLE, (0, 0), chosen)
    lines, _ = _lines_of(document, first, last) or ((0, 0), False)
    return _Place(of, path, first, last, lines, chosen)


def _of_lines(journal: Journal, spelling: str, lines: tuple[int, int]) -> _Place:
    path = recorded_path(journal, spelling)
    tip = journal.store.index.documents.tip_at(path)
    if tip is None or tip.state is None:
        raise NoSuchName(spelling, "recorded file")
    require_mounted(journal, [tip.path])
    if found_changes(journal, [tip]):
        raise FileChanged(os.fsdecode(path))
    if lines == (0, 0):
        return _Place(tip.document, path, _WHOLE, _WHOLE, lines, ())
    document = load_document(journal, tip.document)
    try:
        first, last = (document.anchor(line) for line in lines)
    except ValueError:
        raise LineMissing(spelling, max(lines), len(split_lines(document.lines_text() or b""))) from None
    units = {Unit(Seq(anchor.seq), anchor.hunk) for anchor in (first, last) if anchor.seq}
    return _Place(tip.document, path, first, last, lines, tuple(sorted(units)))


def _lines_of(document: Document, first: Anchor, last: Anchor) -> tuple[tuple[int, int], bool] | None:
    """Return the lines between two anchors now, and whether the text has one of both (None: they identify nothing)."""
    found = [place for anchor in (first, last) if (place := document.line_of(anchor)) is not None]
    shown = [line for line, is_shown in found if is_shown]
    lines = shown or [line for line, _ in found]
    return ((min(lines), max(lines)), bool(shown)) if lines else None


def _row(journal: Journal, number: int) -> CommentRow:
    row = journal.store.index.comments.get(number)
    if row is None:
        raise NoSuchName(str(number), "comment")
    return row


def _record(journal: Journal, row: CommentRow) -> Comment:
    record, _ = journal.store.record(row.place)
    if not isinstance(record, Comment) or record.number != row.number:
        raise row.place.damaged(f"comment {row.number} is not where the index says")
    return record


def _views(journal: Journal, rows: Iterable[CommentRow]) -> list[CommentView]:
    documents: dict[DocumentId, Document | None] = {}
    return [_view(journal, row, documents) for row in rows if not row.answers]


def _view(journal: Journal, row: CommentRow, documents: dict[DocumentId, Document | None]) -> CommentView:
    """Return the view of a comment. `documents`: those that are already loaded (None: one that can't be)."""
    made = _record(journal, row)
    tip = journal.store.index.documents.tip(made.document)
    if made.document not in documents:
        try:
            documents[made.document] = load_document(journal, made.document)
        except (HistoryBroken, *UNREADABLE):
            documents[made.document] = None
    view = CommentView(
        id=row.id,
        comment=made,
        path=os.fsdecode(tip.path),
        lines=made.lines,
        is_there=tip.state is not None and made.lines == (0, 0),
        state=row.state,
        sent_to=row.sent,
        more_files=_other_files(journal, made),
    )
    document = documents[made.document]
    if document is not None and tip.state is not None and made.lines != (0, 0):
        # Once the oldest edits have expired, the text before the first edit is another one.
        is_shifted = made.first.seq == 0 and int(document.first) != int(made.document)
        place = None if is_shifted else _lines_of(document, made.first, made.last)
        if place is not None:
            view = replace(view, lines=place[0], is_there=place[1])
    if made.answers:
        return view
    answers = journal.store.index.comments.answers_to(made.number)
    return replace(view, answers=tuple(_view(journal, answer, documents) for answer in answers))


def _other_files(journal: Journal, made: Comment) -> int:
    """Return how many files besides its own a comment is about."""
    if made.lines != (0, 0) or len(made.units) <= 1:
        return 0
    documents = journal.store.index.edits.documents_of({unit.seq for unit in made.units})
    return len({*documents.values()} - {made.document})


def _edits_of(made: Comment) -> list[Seq]:
    """Return the edits that a comment is about, ascending."""
    anchored = {anchor.seq for anchor in (made.first, made.last) if anchor.seq}
    return sorted(map(Seq, {unit.seq for unit in made.units} | anchored))


def _is_for(journal: Journal, row: CommentRow, conversation: str, session: int) -> bool:
    """Return whether a comment that was not sent yet is meant for a conversation of a session (0: not known)."""
    index = journal.store.index
    if row.sent:
        return row.sent in {ANY_AGENT, conversation} or (session > 0 and index.sessions.number(row.sent) == session)
    sessions = index.sessions.of_edits(_edits_of(_record(journal, row))).values()
    return not sessions or session in sessions


def _addressees(journal: Journal, row: CommentRow) -> frozenset[str]:
    """Return the conversations of the agents that an unsent comment is meant for; none: any agent."""
    if row.sent:
        return frozenset() if row.sent == ANY_AGENT else frozenset({row.sent})
    edits: Mapping[Seq, str] = {
        seq: found.owner
        for seq in _edits_of(_record(journal, row))
        if (found := journal.store.index.edits.get(seq)) is not None
    }
    sessions = journal.store.index.sessions.of_edits(edits)
    return frozenset(owner for seq, owner in edits.items() if owner and seq in sessions)
