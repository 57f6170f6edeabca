"""Record whose some found changes are: a person's, or an agent session's.

A claim changes no file. What a person claims is accepted; what is claimed for a session awaits review.
"""

from collections.abc import Iterable

from objstore.errors import NotClaimable
from objstore.fastclass import value
from objstore.history.edit_queries import edit
from objstore.history.session_queries import session as session_view
from objstore.model.basic_types import Action, Origin, Seq, Status, Unit
from objstore.model.records import Decision, WrittenFile
from objstore.model.results import Decided, NothingToDo
from objstore.model.views import EditView
from objstore.store.write_batch import now
from objstore.transaction.journal import Journal

__all__ = ["Claim", "claim"]

_CLAIMABLE = frozenset({Origin.UNATTRIBUTED, Origin.EXTERNAL, Origin.FORMATTER})
"""Origins of changes that were found on disk: their author is not certain."""


@value
class Claim:
    """What a person says about some edits."""

    seqs: tuple[Seq, ...]
    session: int | None  # number of the session that made them; None: the person did
    who: str
    dry_run: bool


def claim(journal: Journal, wanted: Claim) -> Decided | NothingToDo:
    """Attribute edits to the person or to a session, as one decision, which `cas undo` takes back.

    Raises NoSuchName, NotClaimable, EditExpired and what Journal.commit raises.
    """
    with journal.session(dry_run=wanted.dry_run) as (batch, _):
        views = [edit(journal, seq) for seq in sorted(set(wanted.seqs))]
        for view in views:
            if view.edit.origin not in _CLAIMABLE:
                raise NotClaimable(view.seq, view.edit.origin.value)
            view.refuse_if_expired()
        conversation = "" if wanted.session is None else _conversation_of(journal, wanted.session, views)
        verdicts = {
            unit: status
            for view in views
            if not _is_settled(view, conversation)
            for unit, status in _verdicts(view, is_mine=not conversation).items()
        }
        if not verdicts:
            return NothingToDo()
        decision = Decision(
            number=journal.store.index.numbers.next_decision(),
            time=now(),
            action=Action.CLAIM,
            verdicts=tuple(sorted(verdicts.items())),
            written=_files_of(journal, (unit.seq for unit in verdicts)),
            who=wanted.who,
            conversation=conversation,
        )
        if not wanted.dry_run:
            batch.record(decision)
            journal.commit(batch, ())
        return Decided(
            action=Action.CLAIM,
            number=0 if wanted.dry_run else decision.number,
            verdicts=decision.verdicts,
            cascaded=(),
            files=(),
            external=(),
            unrecorded=(),
            notices=(),
        )


def _conversation_of(journal: Journal, number: int, views: Iterable[EditView]) -> str:
    """Return the conversation that names a session: of its turn when the first of the edits was made.

    A conversation that was continued in another session names that one. Raises NoSuchName.
    """
    view = session_view(journal, number)
    turns = journal.store.index.turns
    newest = {row.conversation: row.session for row in turns.all()}
    own = turns.of_session(number)
    own = [row for row in own if newest[row.conversation] == number] or own
    if not own:
        return view.name
    first = min((view.edit.time for view in views), default=0)
    return max(own, key=lambda row: (row.time <= first, row.time if row.time <= first else -row.time)).conversation


def _is_settled(view: EditView, conversation: str) -> bool:
    """Return whether the edit is attributed like that already, with a status to match."""
    if conversation:
        return view.owner == conversation
    return _is_of_person(view) and Status.PENDING not in view.units


def _is_of_person(view: EditView) -> bool:
    return view.owner == "" or (view.edit.origin is Origin.EXTERNAL and view.owner == view.edit.conversation)


def _verdicts(view: EditView, *, is_mine: bool) -> dict[Unit, Status]:
    """Return the status of each unit after the claim."""
    was_person = _is_of_person(view)
    found = {}
    for hunk, status in enumerate(view.units):
        wanted = status
        if is_mine and status is Status.PENDING:
            wanted = Status.ACCEPTED
        elif not is_mine and was_person and status is Status.ACCEPTED:
            wanted = Status.PENDING  # it was accepted only because it was the person's
        found[Unit(view.seq, hunk)] = wanted
    return found


def _files_of(journal: Journal, seqs: Iterable[Seq]) -> tuple[WrittenFile, ...]:
    """Return the files of the edits, unchanged."""
    index = journal.store.index
    documents = dict.fromkeys(document for seq in seqs if (document := index.edits.document_of(seq)) is not None)
    return tuple(
        WrittenFile(document=tip.document, path_before=tip.path, before=tip.state, path_after=tip.path, after=tip.state)
        for tip in map(index.documents.tip, documents)
        if tip.state is not None
    )
