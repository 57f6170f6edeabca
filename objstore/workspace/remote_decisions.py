"""Decide on what other stores have, and carry out what others have decided on this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from objstore.model.basic_types import Action
from objstore.values.fastclass import replace, value

# What only some methods need is imported in them, as in the other roles.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from objstore.model.basic_types import Status, Unit
    from objstore.model.results import DecisionOutcome
    from objstore.storage.transaction.journal import Journal
    from objstore.upkeep.remote.bucket import Bucket
    from objstore.upkeep.remote.decisions import Ledger, RemoteComment, RemoteDecision, Withdrawal
    from objstore.upkeep.remote.remotes import Member, Remote, Remotes as KnownRemotes
    from objstore.workspace.remotes import Remotes
    from objstore.workspace.review import Review
    from objstore.workspace.trials import Trials

__all__ = ["Carried", "RemoteDecisions", "RemoteVerdict", "WaitingComment"]

_CONFLICTS: Final = 5
_DONE: Final = {Action.ACCEPT: "accepted", Action.REJECT: "rejected", Action.RESET: "made pending again"}


@value
class RemoteVerdict:
    """The newest decision on a unit of another store."""

    number: int  # in the log of the bucket
    who: str
    action: Action
    reason: str
    result: str  # carried, refused, or open
    why: str  # why it was refused
    is_shown: bool  # whether the mirror shows what became of it
    withdrawn_by: str = ""  # who took it back, unless it was carried out before; "": it was not

    @property
    def words(self) -> str:
        """Return what was decided, while the mirror doesn't show it: `rejected by ann, not carried out yet: why`."""
        when = "carried out since the last pull" if self.result == "carried" else "not carried out yet"
        if self.withdrawn_by and self.result == "open":
            when = f"taken back by {self.withdrawn_by}, not answered yet"
        return f"{_DONE[self.action]} by {self.who}, {when}{f': {self.reason}' if self.reason else ''}"


@value
class WaitingComment:
    """A comment on another store that its mirror doesn't show."""

    number: int  # in the log of the bucket
    who: str
    units: tuple[Unit, ...]
    text: str
    result: str = "open"  # carried, refused, or open
    why: str = ""  # why it was refused

    @property
    def words(self) -> str:
        """Return what became of it: `not taken over yet`."""
        if self.result == "refused":
            return f"refused there: {self.why}" if self.why else "refused there"
        return "taken over since the last pull" if self.result == "carried" else "not taken over yet"


@value
class Carried:
    """What became of a decision or comment that somebody else made on this store."""

    number: int  # in the log of the bucket
    who: str
    action: Action | None  # None: it is a comment
    units: tuple[Unit, ...]
    result: str  # carried, refused, or waiting
    reason: str  # the reviewer's; of a comment, its text
    why: str = ""  # why it was refused, or waits


class RemoteDecisions:
    """Decide on what other stores have, and carry out what others have decided on this one."""

    def __init__(self, journal: Journal, remotes: Remotes, review: Review, trials: Trials) -> None:
        """Wrap an open journal. `review` and `trials` carry decisions out, as they do a person's own."""
        from objstore.upkeep.remote.remotes import Remotes as KnownRemotes

        self._journal: Final = journal
        self._remotes: Final = remotes
        self._review: Final = review
        self._trials: Final = trials
        self._known: Final = KnownRemotes(journal.tree.root, journal.disk)

    def decide(
        self,
        remote: Remote,
        member: Member,
        action: Action,
        units: Mapping[Unit, Status],
        *,
        who: str,
        reason: str = "",
    ) -> int:
        """Decide on units of another store, and return the number of the decision in the log of the bucket.

        `units`: each with the status that was shown. The store with the files carries it out. Raises AgentDecides,
        RemoteDecided if somebody was faster, RemoteRolledBack and RemoteFailed.
        """
        from objstore.upkeep.remote.bucket import open_bucket
        from objstore.upkeep.remote.decisions import MAX_WHO, RemoteDecision, new_nonce

        self._review.require_person()
        decision = RemoteDecision(
            lane=member.lane,
            action=action,
            units=dict(units),
            who=who[:MAX_WHO],
            reason=reason,
            nonce=new_nonce(),
        )
        bucket = open_bucket(remote.url)
        with self._known.held(remote.name):
            return self._append(remote, bucket, decision, member)

    def withdraw(self, remote: Remote, member: Member, number: int = 0, *, who: str, dry_run: bool = False) -> int:
        """Take back a decision on another store that is not carried out yet, and return its number.

        `number`: 0 is the newest of `who`. It isn't carried out if the other store reads that in time: its answer says
        so. Raises AgentDecides, NoSuchName if there is no such decision, RemoteRolledBack and RemoteFailed.
        """
        from objstore.upkeep.remote.bucket import open_bucket
        from objstore.upkeep.remote.decisions import MAX_WHO, Withdrawal, new_nonce
        from objstore.values.request_errors import NoSuchName

        self._review.require_person()
        who, bucket = who[:MAX_WHO], open_bucket(remote.url)
        with self._known.held(remote.name):
            ledger = self._ledger(remote, bucket)
            due = {at: each for at, each in ledger.open(member.lane).items() if at not in ledger.withdrawn}
            found = number or max((at for at, each in due.items() if each.who == who), default=0)
            if found not in due:
                named = str(number) if number else "yours"
                raise NoSuchName(named, f"decision on {member.name} that is not carried out yet")
            if not dry_run:
                entry = Withdrawal(lane=member.lane, decision=found, who=who, nonce=new_nonce())
                self._append(remote, bucket, entry, member)
            return found

    def comment(self, remote: Remote, member: Member, units: Sequence[Unit], text: str, *, who: str) -> int:
        """Comment on units of another store, and return the number of the comment in the log of the bucket.

        The store with the files takes it over. Raises AgentDecides, RemoteRolledBack and RemoteFailed.
        """
        from objstore.upkeep.remote.bucket import open_bucket
        from objstore.upkeep.remote.decisions import MAX_WHO, RemoteComment, new_nonce

        self._review.require_person()
        made = RemoteComment(lane=member.lane, units=tuple(units), who=who[:MAX_WHO], text=text, nonce=new_nonce())
        bucket = open_bucket(remote.url)
        with self._known.held(remote.name):
            return self._append(remote, bucket, made, member)

    def comments(self, remote: Remote, member: Member) -> list[WaitingComment]:
        """Return the comments on another store that its mirror doesn't show, as far as the log was read.

        Those that wait, and those that the other store refused.
        """
        return _comments(self._known, remote.name, member)

    def verdicts(self, remote: Remote, member: Member) -> dict[Unit, RemoteVerdict]:
        """Return the newest decision on each unit of another store, as far as the log was read."""
        return _verdicts(self._known, remote.name, member)

    def awaited(self) -> dict[Unit, RemoteVerdict]:
        """Return the newest decision on each unit that this store, a mirror of another, doesn't show yet.

        None of those that the other store refused; none if this is no mirror.
        """
        return {
            unit: verdict
            for known, remote, member in self._mirrored()
            for unit, verdict in _verdicts(known, remote, member).items()
            if verdict.result != "refused" and not verdict.is_shown
        }

    def awaited_comments(self) -> dict[Unit, list[WaitingComment]]:
        """Return the comments on each unit that this store, a mirror of another, doesn't show; none if it is none."""
        found: dict[Unit, list[WaitingComment]] = {}
        for known, remote, member in self._mirrored():
            for each in _comments(known, remote, member):
                for unit in dict.fromkeys(each.units):
                    found.setdefault(unit, []).append(each)
        return found

    def waiting(self, remote: Remote) -> int:
        """Return how many decisions and comments on this store wait to be carried out, as far as the log was read."""
        from objstore.upkeep.remote.decisions import settle

        ledger = settle(self._known.entries(remote.name), remote.lane)
        return len(ledger.open(remote.lane)) + len(ledger.open_comments(remote.lane))

    def carry(self, name: str, made: Callable[[Carried], object] = lambda _: None) -> list[Carried]:
        """Carry out what others decided on this store, by the rules for a person's own decisions, and answer.

        Their comments become comments here.
        Each is made once, even if the process dies in between. One that can't be made now, because of changes that
        are not recorded for example, waits. `made`: called with each at once, as a push that fails afterwards doesn't
        undo it. Raises AgentDecides, StoreLocked, and what a push raises.
        """
        from objstore.review.calls.open_calls import sanitized_text
        from objstore.upkeep.remote.bucket import open_bucket
        from objstore.upkeep.remote.decisions import Answer, RemoteComment, Result, append, new_nonce

        self._review.require_person()
        remote = self._known.get(name)
        bucket = open_bucket(remote.url)
        carried: list[Carried] = []
        with self._known.held(name):
            ledger = self._ledger(remote, bucket)
            due: dict[int, RemoteDecision | RemoteComment] = {}
            due |= ledger.open(remote.lane)
            due |= ledger.open_comments(remote.lane)
            if due:
                self._remotes.push_held(remote, bucket)  # a copy of the store must not decide
            # First what was begun: the next one's note takes the place of the one that says so.
            begun, _ = self._known.carrying(name) or (0, 0)
            for number, entry in sorted(due.items(), key=lambda each: (each[0] != begun, each[0])):
                if isinstance(entry, RemoteComment):
                    done = self._take_over(name, number, entry)
                else:
                    done = self._carry_one(name, number, entry, withdrawn_by=ledger.withdrawn.get(number))
                carried.append(done)
                made(done)
                if done.result == "waiting":
                    continue
                self._remotes.push_held(remote, bucket)
                shown_by = self._known.state(name).pushed
                answer = Answer(
                    lane=remote.lane,
                    decision=number,
                    result=Result(done.result),
                    head=0 if shown_by is None else shown_by.number,
                    reason=sanitized_text(done.why),  # it may name a file, and not in UTF-8
                    nonce=new_nonce(),
                )
                append(bucket, answer, ledger)
                self._known.note_carrying(name, None)
            if carried:
                self._ledger(remote, bucket)
        return carried

    # ---- inside

    def _mirrored(self) -> Iterator[tuple[KnownRemotes, str, Member]]:
        """Yield the store that this one is a mirror of, with its remote, and who keeps the mirror."""
        from objstore.upkeep.remote.remotes import Remotes as KnownRemotes, mirrored

        found = mirrored(self._journal.tree.root)
        if found is not None:
            known = KnownRemotes(found.home, self._journal.disk)
            for member in known.state(found.remote).members.values():
                if member.name == found.member:
                    yield known, found.remote, member

    def _append(
        self, remote: Remote, bucket: Bucket, entry: RemoteDecision | RemoteComment | Withdrawal, member: Member
    ) -> int:
        """Add an entry about another store to the log, and keep it; return its number. The remote is held."""
        from objstore.upkeep.remote.decisions import append

        number = append(bucket, entry, self._ledger(remote, bucket), member.name, member.seen.number)
        self._ledger(remote, bucket)
        return number

    def _ledger(self, remote: Remote, bucket: Bucket) -> Ledger:
        """Return what the log of a bucket says now, and keep its new entries. Raises RemoteRolledBack, RemoteFailed."""
        from objstore.upkeep.remote.decisions import read_log, settle

        known = self._known.entries(remote.name)
        new = read_log(bucket, known[-1][0] if known else 0, sum(len(encoded) for _, encoded in known))
        self._known.keep_entries(remote.name, new)
        return settle([*known, *new])

    def _take_over(self, name: str, number: int, comment: RemoteComment) -> Carried:
        """Make one comment a comment here, or find that it was made before the process died."""
        from objstore.review import comments
        from objstore.values.errors import CasError, HistoryBroken
        from objstore.values.request_errors import EditExpired, NoSuchName

        made = Carried(
            number=number, who=comment.who, action=None, units=comment.units, result="carried", reason=comment.text
        )
        noted = self._known.carrying(name)
        if noted is not None and noted[0] == number:
            for view in comments.comments(self._journal):
                own = view.comment
                if own.number >= noted[1] and (own.who, own.text) == (comment.who, comment.text):
                    return made
        with self._journal.reading() as store:
            self._known.note_carrying(name, (number, store.index.numbers.next_comment()))
        try:
            comments.add_to_units(self._journal, comment.units, comment.text, who=comment.who)
        except (EditExpired, HistoryBroken, NoSuchName) as error:
            return replace(made, result="refused", why=str(error))
        except CasError as error:
            return replace(made, result="waiting", why=str(error))
        return made

    def _carry_one(self, name: str, number: int, decision: RemoteDecision, *, withdrawn_by: str | None) -> Carried:
        """Make one decision here, or find that it was made before the process died.

        `withdrawn_by`: who took it back, so that it is not made any more (None: it was not).
        """
        from objstore.model.basic_types import Decider, Surface
        from objstore.model.results import Conflicted, Decided, ExternalChanges, NothingToDo
        from objstore.values.errors import CasError, HistoryBroken
        from objstore.values.request_errors import (
            CheckFailed,
            DecidedMeanwhile,
            EditAway,
            EditExpired,
            EditTakenOut,
            NoSuchName,
        )

        made = Carried(
            number=number,
            who=decision.who,
            action=decision.action,
            units=tuple(sorted(decision.units)),
            result="carried",
            reason=decision.reason,
        )
        if self._was_made(name, number, decision):
            return made
        if withdrawn_by is not None:
            return replace(made, result="refused", why=f"{withdrawn_by or 'somebody'} took it back")
        with self._journal.reading() as store:
            self._known.note_carrying(name, (number, store.index.numbers.next_decision()))
        decider = self._journal.decider
        self._journal.decider = Decider(via=Surface.REMOTE.value, agent=decider.agent)
        try:
            outcome = self._decide(decision)
        except (CheckFailed, DecidedMeanwhile, EditAway, EditExpired, EditTakenOut, HistoryBroken, NoSuchName) as error:
            return replace(made, result="refused", why=str(error))
        except CasError as error:
            return replace(made, result="waiting", why=str(error))
        finally:
            self._journal.decider = decider
        match outcome:
            case Decided() | NothingToDo():
                return made
            case Conflicted():
                why = "; ".join(map(str, outcome.conflicts[:_CONFLICTS]))
                return replace(made, result="refused", why=why)
            case ExternalChanges():
                paths = ", ".join(sorted({each.path for each in outcome.changes}))
                return replace(made, result="waiting", why=f"changes that are not recorded are in the way: {paths}")

    def _decide(self, decision: RemoteDecision) -> DecisionOutcome:
        from functools import partial

        decide = partial(
            self._review.decide,
            decision.action,
            [*decision.units],
            who=decision.who,
            shown=decision.units,
        )
        check = self._trials.check()
        if check is None:
            return decide(reason=decision.reason)
        return self._trials.checked(check, decide, self._review.preview, reason=decision.reason)

    def _was_made(self, name: str, number: int, decision: RemoteDecision) -> bool:
        """Return whether this store made the decision already, and died before it could answer."""
        from objstore.model.basic_types import Surface
        from objstore.model.records import Decision

        noted = self._known.carrying(name)
        if noted is None or noted[0] != number:
            return False
        with self._journal.reading() as store:
            for each in range(noted[1], store.index.numbers.next_decision()):
                place = store.index.decisions.place(each)
                record = None if place is None else store.record(place)[0]
                if (
                    isinstance(record, Decision)
                    and record.via == Surface.REMOTE.value
                    and (record.who, record.action) == (decision.who, decision.action)
                    and record.reason.startswith(decision.reason)
                    and not {unit for unit, _ in record.verdicts}.isdisjoint(decision.units)
                ):
                    return True
        return False


def _comments(known: KnownRemotes, remote: str, member: Member) -> list[WaitingComment]:
    from objstore.upkeep.remote.decisions import Result, settle

    ledger = settle(known.entries(remote), member.lane)
    found = []
    for number, each in ledger.comments.items():
        answer = ledger.answers.get(number)
        is_shown = answer is not None and answer.result is Result.CARRIED and answer.head <= member.seen.number
        if each.lane == member.lane and not is_shown:
            result, why = ("open", "") if answer is None else (answer.result.value, answer.reason)
            made = WaitingComment(number=number, who=each.who, units=each.units, text=each.text, result=result, why=why)
            found.append(made)
    return found


def _verdicts(known: KnownRemotes, remote: str, member: Member) -> dict[Unit, RemoteVerdict]:
    from objstore.upkeep.remote.decisions import settle

    ledger = settle(known.entries(remote), member.lane)
    return {
        unit: RemoteVerdict(
            number=number,
            who=decision.who,
            action=decision.action,
            reason=decision.reason,
            result="open" if number not in ledger.answers else ledger.answers[number].result.value,
            why="" if number not in ledger.answers else ledger.answers[number].reason,
            is_shown=number in ledger.answers and ledger.answers[number].head <= member.seen.number,
            withdrawn_by="" if number not in ledger.withdrawn else ledger.withdrawn[number] or "somebody",
        )
        for number, decision in ledger.valid.items()
        if decision.lane == member.lane
        for unit in decision.units
    }
