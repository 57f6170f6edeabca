"""Keep one log of decisions and comments for all stores of a bucket, so that each unit of each store is decided once.

An entry is created at the next number if that is absent. Whoever loses a number reads what took it, looks again, and
takes the next one. What counts follows from the entries in order, and is the same for every reader: a decision is void
if an earlier one on one of its units is not answered yet. The store that has the files answers.
A decision can be taken back until that store carries it out: whether it was in time, its answer says.
"""

from __future__ import annotations

import os
from enum import StrEnum
from operator import lt
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.model.basic_types import Action, Seq, Status, Unit
from objstore.model.canonical_msgpack import MAX_TEXT, Fields, Value, decode, encode
from objstore.model.ids import HASH_SIZE
from objstore.upkeep.remote.bucket import claim
from objstore.upkeep.remote.keys import LOG, MAX_NUMBER, Lane, is_lane, number_in, numbered
from objstore.values.errors import RecordInvalid
from objstore.values.fastclass import field, value, variable
from objstore.values.request_errors import (
    ObjectMissing,
    ObjectTooLarge,
    RemoteDecided,
    RemoteFailed,
    RemoteRefused,
    RemoteRolledBack,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from objstore.upkeep.remote.bucket import Bucket

__all__ = [
    "MAX_ENTRY",
    "MAX_WHO",
    "Answer",
    "Ledger",
    "RemoteComment",
    "RemoteDecision",
    "Result",
    "Withdrawal",
    "append",
    "decoded",
    "new_nonce",
    "read_log",
    "settle",
]

MAX_ENTRY: Final = 1 << 20
"""The most bytes of an entry."""

_VERSION: Final = 1
MAX_WHO: Final = 200
"""Characters of the name in an entry."""

_TRIES: Final = 1_000
_MOST_ENTRIES: Final = 2_000_000
"""Names in a log, of entries and of anything else, that are listed at most."""

_MOST_BYTES: Final = 256 << 20
"""Bytes of a log, some million decisions, that are read at most: its readers keep them, and have them in memory."""

_STATUSES: Final = {each.value: each for each in Status}
_ACTIONS: Final = frozenset({Action.ACCEPT, Action.REJECT, Action.RESET})


class Result(StrEnum):
    """What the owner of the files did about a decision."""

    CARRIED = "carried"
    REFUSED = "refused"


@value
class RemoteDecision:
    """A decision on units of a store whose files are elsewhere."""

    lane: Lane
    action: Action
    units: Mapping[Unit, Status]  # each with the status that was shown
    who: str  # a name that somebody claims
    reason: str = ""
    nonce: bytes = b""  # tells this entry from every other one, so that its writer knows its own

    def encode(self) -> bytes:
        """Return the bytes of the entry."""
        units: list[Value] = [[unit.seq, unit.hunk, status.value] for unit, status in sorted(self.units.items())]
        return encode(
            {
                "kind": "decision",
                "version": _VERSION,
                "lane": self.lane,
                "action": self.action.value,
                "units": units,
                "who": self.who,
                "reason": self.reason,
                "nonce": self.nonce,
            }
        )


@value
class RemoteComment:
    """A comment on units of a store whose files are elsewhere."""

    lane: Lane
    units: tuple[Unit, ...]
    who: str  # a name that somebody claims
    text: str
    nonce: bytes = b""

    def encode(self) -> bytes:
        """Return the bytes of the entry."""
        units: list[Value] = [[unit.seq, unit.hunk] for unit in sorted({*self.units})]
        return encode(
            {
                "kind": "comment",
                "version": _VERSION,
                "lane": self.lane,
                "units": units,
                "who": self.who,
                "text": self.text,
                "nonce": self.nonce,
            }
        )


@value
class Withdrawal:
    """Who takes back a decision: the store that it is about doesn't carry it out if it reads this before it does."""

    lane: Lane
    decision: int  # its number in the log
    who: str  # a name that somebody claims
    nonce: bytes = b""

    def encode(self) -> bytes:
        """Return the bytes of the entry."""
        return encode(
            {
                "kind": "withdrawal",
                "version": _VERSION,
                "lane": self.lane,
                "decision": self.decision,
                "who": self.who,
                "nonce": self.nonce,
            }
        )


@value
class Answer:
    """What became of a decision or comment, said by the store that it is about."""

    lane: Lane
    decision: int  # its number in the log, or that of the comment
    result: Result
    head: int  # the number of the first head that shows it, from 1
    reason: str = ""  # why it was refused
    nonce: bytes = b""

    def encode(self) -> bytes:
        """Return the bytes of the entry."""
        return encode(
            {
                "kind": "answer",
                "version": _VERSION,
                "lane": self.lane,
                "decision": self.decision,
                "result": self.result.value,
                "head": self.head,
                "reason": self.reason,
                "nonce": self.nonce,
            }
        )


Entry: TypeAlias = RemoteDecision | RemoteComment | Withdrawal | Answer


@variable
class Ledger:
    """What the entries of a log mean, in their order."""

    last: int = 0  # the number of the newest entry
    valid: dict[int, RemoteDecision] = field(default_factory=dict)  # decisions that count, by number
    void: dict[int, int] = field(
        default_factory=dict
    )  # by number of a decision that doesn't: the one that is before it
    comments: dict[int, RemoteComment] = field(default_factory=dict)  # by number
    withdrawn: dict[int, str] = field(default_factory=dict)  # by number of the decision: who took it back
    answers: dict[int, Answer] = field(default_factory=dict)  # by number of the decision or comment
    unreadable: int = 0  # entries that are none
    _newest: dict[tuple[Lane, Unit], int] = field(default_factory=dict)

    def take(self, number: int, entry: Entry | None) -> None:
        """Take the next entry into account (None: its bytes are no entry)."""
        self.last = number
        match entry:
            case RemoteDecision():
                before = self._in_the_way(entry)
                if before:
                    self.void[number] = before
                    return
                self.valid[number] = entry
                self._newest |= {(entry.lane, unit): number for unit in entry.units}
            case RemoteComment():
                self.comments[number] = entry
            case Withdrawal():
                decided = self.valid.get(entry.decision)
                if decided is not None and decided.lane == entry.lane and entry.decision not in self.answers:
                    self.withdrawn.setdefault(entry.decision, entry.who)
            case Answer():
                about = self.valid.get(entry.decision) or self.comments.get(entry.decision)
                if about is not None and about.lane == entry.lane:
                    self.answers.setdefault(entry.decision, entry)
            case None:
                self.unreadable += 1

    def open(self, lane: Lane) -> dict[int, RemoteDecision]:
        """Return the decisions on a store that are not answered yet, ascending."""
        return {number: each for number, each in self.valid.items() if each.lane == lane and number not in self.answers}

    def open_comments(self, lane: Lane) -> dict[int, RemoteComment]:
        """Return the comments on a store that are not answered yet, ascending."""
        found = self.comments.items()
        return {number: each for number, each in found if each.lane == lane and number not in self.answers}

    def newest(self, lane: Lane, unit: Unit) -> tuple[RemoteDecision, Answer | None] | None:
        """Return the newest decision on a unit that counts, and its answer (None: it is undecided)."""
        number = self._newest.get((lane, unit))
        return None if number is None else (self.valid[number], self.answers.get(number))

    def require_free(self, decision: RemoteDecision, shown_as: str, mirrored: int) -> None:
        """Raise RemoteDecided if one of a decision's units is decided already, and the mirror doesn't show that.

        `shown_as`: what the store is called here; `mirrored`: the number of the head that its mirror was made from.
        """
        for unit in sorted(decision.units, key=lambda unit: (not unit.hunk, unit)):  # hunks are shown, whole files less
            found = self.newest(decision.lane, unit)
            if found is None:
                continue
            earlier, answer = found
            named = f"{shown_as}/{unit.seq}:{unit.hunk}"
            if answer is None:
                raise RemoteDecided(named, earlier.who, earlier.action.value, is_carried=False)
            if answer.result is Result.CARRIED and mirrored < answer.head:
                raise RemoteDecided(named, earlier.who, earlier.action.value, is_carried=True)

    def _in_the_way(self, decision: RemoteDecision) -> int:
        for unit in decision.units:
            number = self._newest.get((decision.lane, unit), 0)
            if number and number not in self.answers:
                return number
        return 0


def settle(entries: Iterable[tuple[int, bytes]], lane: Lane | None = None) -> Ledger:
    """Return what entries mean, given by number, ascending.

    `lane`: only those about this store count, so that others need not be decoded; None: all do.
    """
    ledger, named = Ledger(), b"" if lane is None else lane.encode()
    for number, encoded in entries:
        if named in encoded:
            ledger.take(number, decoded(encoded))
    return ledger


def read_log(bucket: Bucket, seen: int, size: int = 0) -> list[tuple[int, bytes]]:
    """Return the entries after the number `seen`, ascending; what can't be an entry is b"".

    `size`: bytes of the entries up to that. Raises RemoteRolledBack if the log ends before that, RemoteRefused if it is
    too large, and RemoteFailed.
    """
    after = numbered(LOG, seen - 1) if seen > 1 else ""
    sizes: dict[int, int] = {}
    for count, each in enumerate(bucket.listed(LOG, after)):
        if count > _MOST_ENTRIES:
            raise RemoteRefused(bucket.url, "its decision log has no end")
        number = number_in(LOG, each.key)
        if number is not None:
            sizes[number] = each.size
    newest = max(sizes, default=0)
    if newest < seen:
        raise RemoteRolledBack(bucket.url, LOG, seen, newest)
    new = {number: sizes[number] for number in sorted(sizes) if number > seen}
    size += sum(each for each in new.values() if each <= MAX_ENTRY)
    if size > _MOST_BYTES:
        raise RemoteRefused(bucket.url, f"its decision log has {size} bytes, and at most {_MOST_BYTES} are read")
    return [(number, _entry(bucket, number, min(most, MAX_ENTRY))) for number, most in new.items()]


def append(bucket: Bucket, entry: Entry, ledger: Ledger, shown_as: str = "", mirrored: int = 0) -> int:
    """Add an entry to the log and return its number; `ledger` learns what others added meanwhile.

    `shown_as` and `mirrored`: as of `require_free`.
    Raises RemoteDecided if a unit of a decision was decided by then, RemoteRolledBack, RemoteRefused and RemoteFailed.
    """
    encoded = entry.encode()
    if len(encoded) > MAX_ENTRY:
        raise RemoteFailed(bucket.url, "it is too large for the decision log. Name fewer changes at once")
    if decoded(encoded) is None:
        reason = f"no store could read it from the decision log. Name a change, and write at most {MAX_TEXT} characters"
        raise RemoteFailed(bucket.url, reason)
    for _ in range(_TRIES):
        if isinstance(entry, RemoteDecision):
            ledger.require_free(entry, shown_as, mirrored)
        number = ledger.last + 1
        if number > MAX_NUMBER:
            raise RemoteRefused(bucket.url, "its decision log has an entry with the highest number there is")
        if claim(bucket, numbered(LOG, number), encoded):
            ledger.take(number, entry)
            return number
        for each, found in read_log(bucket, ledger.last):
            ledger.take(each, decoded(found))
    raise RemoteFailed(bucket.url, "others add to its decision log all the time. Try again")


def new_nonce() -> bytes:
    """Return bytes that no other entry has."""
    return os.urandom(HASH_SIZE)


def decoded(encoded: bytes) -> Entry | None:
    """Return the entry in an object's bytes (None: it is none)."""
    try:
        fields = Fields(decode(encoded))
        kind, version, lane = fields.text("kind"), fields.number("version"), fields.text("lane")
        if version != _VERSION or not is_lane(lane):
            return None
        nonce = fields.hash("nonce")
        if kind not in _READERS:
            return None
        entry = _READERS[kind](fields, Lane(lane), nonce)
        fields.finish()
    except RecordInvalid:
        return None
    return entry


# ---- inside


def _entry(bucket: Bucket, number: int, most: int) -> bytes:
    try:
        return bucket.get(numbered(LOG, number), most)
    except (ObjectMissing, ObjectTooLarge):
        return b""  # somebody removed it, or it can't be one


def _decision(fields: Fields, lane: Lane, nonce: bytes) -> RemoteDecision:
    action = fields.choice("action", Action)
    units = dict(map(_unit, fields.items("units")))
    who = _who(fields)
    if action not in _ACTIONS or not units:
        raise RecordInvalid("it is no decision on units")
    return RemoteDecision(lane=lane, action=action, units=units, who=who, reason=fields.text("reason"), nonce=nonce)


def _comment(fields: Fields, lane: Lane, nonce: bytes) -> RemoteComment:
    units, who, text = tuple(map(_named_unit, fields.items("units"))), _who(fields), fields.text("text")
    if not units or not text or not all(map(lt, units, units[1:])):  # no record has them in another order
        raise RecordInvalid("it is no comment on units")
    return RemoteComment(lane=lane, units=units, who=who, text=text, nonce=nonce)


def _withdrawal(fields: Fields, lane: Lane, nonce: bytes) -> Withdrawal:
    return Withdrawal(lane=lane, decision=fields.number("decision", least=1), who=_who(fields), nonce=nonce)


def _who(fields: Fields) -> str:
    who = fields.text("who")
    if len(who) > MAX_WHO:
        raise RecordInvalid("the name in it is too long")
    return who


def _answer(fields: Fields, lane: Lane, nonce: bytes) -> Answer:
    return Answer(
        lane=lane,
        decision=fields.number("decision", least=1),
        result=fields.choice("result", Result),
        head=fields.number("head", least=1),
        reason=fields.text("reason"),
        nonce=nonce,
    )


# Not by matches: patterns of classes take twice the time, and every command reads the whole log.


def _unit(value: Value) -> tuple[Unit, Status]:
    if type(value) is list and len(value) == len(("seq", "hunk", "status")):
        *unit, status = value
        if type(status) is str and status in _STATUSES:
            return _named_unit(unit), _STATUSES[status]
    raise RecordInvalid("a unit of it is malformed")


def _named_unit(value: Value) -> Unit:
    if type(value) is list and len(value) == len(Unit._fields):
        seq, hunk = value
        if type(seq) is type(hunk) is int and seq > 0 and hunk >= 0:
            return Unit(Seq(seq), hunk)
    raise RecordInvalid("a unit of it is malformed")


_READERS: Final[Mapping[str, Callable[[Fields, Lane, bytes], Entry]]] = {
    "decision": _decision,
    "comment": _comment,
    "withdrawal": _withdrawal,
    "answer": _answer,
}
