"""Record claims: a person's word on who made changes that were found on disk.

A claim changes no file. What a person claims is accepted; what is claimed for a session awaits review.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from objstore.history.edit_queries import edit
from objstore.history.session_queries import session as session_view
from objstore.model.basic_types import UNKNOWN_AGENT, Action, Origin, Seq, Status, Unit
from objstore.model.records import Decision, Edit, WrittenFile
from objstore.model.results import Decided, NothingToDo
from objstore.model.views import EditView
from objstore.storage.store.write_batch import now
from objstore.storage.transaction.journal import Journal
from objstore.values.fastclass import value
from objstore.values.request_errors import NotClaimable

__all__ = ["Claim", "claim", "leave_unattributed", "reattribute"]

_CLAIMABLE = frozenset({Origin.UNATTRIBUTED, Origin.EXTERNAL, Origin.FORMATTER})
"""Origins of changes that were found on disk: their author is not certain."""

_SCANS = frozenset({"record", "watch"})
"""Tools that record what they find on disk as a person's."""


@value
class Claim:
    """A person's claim about some edits."""

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
            if not (_is_claimable(view.edit) or view.is_unattributed):
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
        decision = _decision(journal, Action.CLAIM, verdicts, who=wanted.who, conversation=conversation)
        if not wanted.dry_run:
            batch.record(decision)
            journal.commit(batch, ())
        number = 0 if wanted.dry_run else decision.number
        return Decided(action=Action.CLAIM, number=number, verdicts=decision.verdicts)


def leave_unattributed(
    journal: Journal, since: int, who: str, reason: str, paths: Collection[bytes] | None = None
) -> None:
    """Leave open whose the changes are that were accepted as the person's since a time, because an agent was at work.

    They become pending, as one decision, and so do edits that a commit accepted meanwhile, as another. `cas undo` takes
    back either. What a person decided or claimed stays. `since`: microseconds since 1970-01-01 UTC. `paths`: only of
    these files (None: of all). Raises what Journal.commit raises.
    """
    for action, found in ((Action.CLAIM, _found_since), (Action.RESET, _committed_since)):
        with journal.writing() as batch:
            verdicts = {
                unit: status
                for unit, status in found(journal, since).items()
                if paths is None or edit(journal, unit.seq).edit.path in paths
            }
            if verdicts:
                of = UNKNOWN_AGENT if action is Action.CLAIM else ""
                batch.record(_decision(journal, action, verdicts, who=who, conversation=of, reason=reason))
                journal.commit(batch, ())


def reattribute(
    journal: Journal, since: int, is_meant: Callable[[EditView], bool], *, to: str, who: str, reason: str
) -> None:
    """Give edits since a time that are pending or away to a conversation, as one decision that `cas undo` takes back.

    `since`: microseconds since 1970-01-01 UTC. `is_meant`: which edits. `to`: UNKNOWN_AGENT: leave open whose they are.
    No status changes. Raises what Journal.commit raises.
    """
    with journal.writing() as batch:
        verdicts = {
            Unit(view.seq, hunk): status
            for view in _edits_since(journal, since)
            if view.expired is None and not {Status.PENDING, Status.AWAY}.isdisjoint(view.units) and is_meant(view)
            for hunk, status in enumerate(view.units)
        }
        if verdicts:
            batch.record(_decision(journal, Action.CLAIM, verdicts, who=who, conversation=to, reason=reason))
            journal.commit(batch, ())


def _found_since(journal: Journal, since: int) -> dict[Unit, Status]:
    """Return the units of changes that were found on disk since a time, with the status of those without a decision."""
    verdicts: dict[Unit, Status] = {}
    decided = _newest_decisions(journal, since)
    for view in _edits_since(journal, since):
        if view.expired is None and _is_of_person(view) and view.owner and _is_claimable(view.edit):
            statuses = {Unit(view.seq, hunk): status for hunk, status in enumerate(view.units)}
            is_open = {unit for unit, status in statuses.items() if unit not in decided and status is Status.ACCEPTED}
            if is_open:
                verdicts |= statuses | dict.fromkeys(is_open, Status.PENDING)
    return verdicts


def _committed_since(journal: Journal, since: int) -> dict[Unit, Status]:
    """Return the units that commits accepted since a time, and that are accepted still, with their new status."""
    verdicts: dict[Unit, Status] = {}
    for unit, decision in _newest_decisions(journal, since).items():
        if decision.action is Action.ACCEPT and decision.commit:
            view = edit(journal, unit.seq)
            if view.expired is None and view.units[unit.hunk] is Status.ACCEPTED:
                verdicts[unit] = Status.PENDING
    return verdicts


def _edits_since(journal: Journal, since: int) -> Iterator[EditView]:
    """Yield the edits that were recorded since a time, the newest first."""
    for seq in range(journal.store.next_seq() - 1, 0, -1):
        if journal.store.index.edits.get(Seq(seq)) is not None:  # a call that was rolled back leaves unused numbers
            view = edit(journal, seq)
            if view.edit.time < since:
                return
            yield view


def _newest_decisions(journal: Journal, since: int) -> dict[Unit, Decision]:
    """Return the newest decision since a time on each unit, without what git did to files."""
    newest: dict[Unit, Decision] = {}
    for number in range(journal.store.index.numbers.next_decision() - 1, 0, -1):
        place = journal.store.index.decisions.place(number)
        record = None if place is None else journal.store.record(place)[0]
        if isinstance(record, Decision):
            if record.time < since:
                break
            if record.action is not Action.GIT:
                for unit, _ in record.verdicts:
                    newest.setdefault(unit, record)
    return newest


def _decision(
    journal: Journal, action: Action, verdicts: Mapping[Unit, Status], *, who: str, conversation: str, reason: str = ""
) -> Decision:
    """Return the next decision, which changes no file."""
    return Decision(
        number=journal.store.index.numbers.next_decision(),
        time=now(),
        action=action,
        verdicts=tuple(sorted(verdicts.items())),
        written=_files_of(journal, (unit.seq for unit in verdicts)),
        who=who,
        reason=reason,
        conversation=conversation,
        via=journal.decider.via,
        agent=journal.decider.agent,
    )


def _is_claimable(made: Edit) -> bool:
    """Return whether an edit was found on disk, so that its author is not certain."""
    return made.origin in _CLAIMABLE or (made.origin is Origin.PERSON and made.tool in _SCANS)


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
    is_own = view.edit.origin in {Origin.EXTERNAL, Origin.PERSON} and view.owner == view.edit.conversation
    return is_own or view.owner == ""


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
    return tuple(
        WrittenFile(document=tip.document, path_before=tip.path, before=tip.state, path_after=tip.path, after=tip.state)
        for tip in index.documents.tips_of({*index.edits.documents_of({*seqs}).values()})
        if tip.state is not None
    )
