"""Explain whose a change is that was found on disk: one pure function and the table of its rules.

The function reads no clock and no disk. Its facts are the calls of agents that may have made a change, and what speaks
against each of them. A change is a call's only if everything that would show so was reported; it is the person's only
if no agent can have made it. Everything between is unattributed: pending, with the sessions that may have made it and
the reason in plain words.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from objstore.model.basic_types import MAX_INT, Origin
from objstore.model.results import EXTERNAL_CALL, Attributor, CallInfo
from objstore.review.calls.open_calls import AgentCall, CallKind, OpenCalls
from objstore.values.fastclass import NamedTuple

__all__ = [
    "CANDIDATES",
    "NOT_SEEN",
    "RULES",
    "UNKNOWN_TIME",
    "WHY",
    "Attribution",
    "Facts",
    "FoundChange",
    "Rule",
    "explain",
]

CANDIDATES: Final = "candidates"
"""The note of an unattributed edit: the sessions that may have made it, one in a line."""

WHY: Final = "unattributed"
"""The note of an unattributed edit: why it is not known whose it is, in plain words."""

UNKNOWN_TIME: Final = MAX_INT
"""A tolerance that makes every moment possible: of a deletion whose time nothing shows."""

NOT_SEEN: Final = "no look could see the file before, so it is not known what a tool changed in it"
"""Why it is not known whose a change is of a file that only came into sight."""

_UNHEARD: Final = frozenset({CallKind.TURN, CallKind.FAILED, CallKind.LOST})
"""What may have changed files without a report, though nothing says that it did: a call that is known to run did it."""

_MOST_CANDIDATES: Final = 100
"""Sessions that are named for an unattributed edit."""


class FoundChange(NamedTuple):
    """A change of a file that was found on disk."""

    path: str
    moment: int  # when the file was last changed (ns of the file system)
    tick: int = 0  # possible error of that time (ns)
    is_kept: bool = False  # whether a person's decision records it, so that it is no call's own
    is_unseen: bool = False  # whether the last look did not read the file, so that it may have changed earlier, too


class Facts:
    """What is known of the calls that may have made a change."""

    def __init__(self, calls: Iterable[AgentCall], working_since: int | None = None) -> None:
        """Take the calls that have not ended, and those that have but whose changes may not be recorded yet.

        `working_since`: when an agent first worked here (ns of the file system; None: none ever did).
        """
        calls = list(calls)
        self.working_since: Final = working_since
        self.anywhere: Final = [call for call in calls if call.paths is None]
        self._naming: Final[dict[str, list[AgentCall]]] = {}
        for call in calls:
            for path in call.paths or ():
                self._naming.setdefault(path, []).append(call)

    @property
    def named(self) -> list[str]:
        """The paths that calls have named."""
        return list(self._naming)

    def naming(self, path: str) -> list[AgentCall]:
        """Return the calls that have named a path."""
        return self._naming.get(path, [])

    def must_wait(self, path: str) -> bool:
        """Return whether every call that named the path may still be refused, or run on: a look waits for its end."""
        return all(not call.is_over and (call.is_asked or call.is_left) for call in self.naming(path))


class Rule(NamedTuple):
    """A rule of attribution."""

    name: str
    says: Callable[[FoundChange, Facts], CallInfo | None]
    """Returns whose a change is; None: the rule doesn't apply."""
    reason: str
    is_wrong_if: str
    """The case in which the rule guesses wrong; "": it doesn't guess."""


def explain(change: FoundChange, facts: Facts, otherwise: CallInfo = EXTERNAL_CALL) -> CallInfo:
    """Return whose a change is: what the first rule of `RULES` that applies says; the last one always does.

    `otherwise`: whose it is if no agent can have made it.
    """
    whose = next(whose for rule in RULES if (whose := rule.says(change, facts)) is not None)
    return otherwise if whose is EXTERNAL_CALL else whose


# ---- the rules


def _kept(change: FoundChange, facts: Facts) -> CallInfo | None:
    if not change.is_kept:
        return None
    possible = [call for call in [*facts.naming(change.path), *facts.anywhere] if _may_have_run(call, change)]
    return _unattributed(possible, "a decision found it while a tool may have run") if possible else None


def _named(change: FoundChange, facts: Facts) -> CallInfo | None:
    callers = [call for call in facts.naming(change.path) if call.kind is CallKind.CALL and _ran(call, change)]
    if not callers or (change.is_unseen and not any(call.is_announced for call in callers)):
        return None  # without its beginning nothing shows what a file was that no look had seen
    others = _running(change, facts)
    if len({call.conversation for call in callers}) > 1:
        return _unattributed([*callers, *others], "tools of several sessions had named the file")
    if any(call.is_asked or (call.is_known_to_run and call.is_announced) for call in callers):
        return _only(callers) or _unattributed([*callers, *others])
    return _first_of([*callers, *_waiting(change, facts)], others)


def _expected(change: FoundChange, facts: Facts) -> CallInfo | None:
    waiting = _waiting(change, facts)
    return _first_of(waiting, _running(change, facts)) if waiting else None


def _unseen(change: FoundChange, facts: Facts) -> CallInfo | None:
    is_possible = facts.working_since is not None and facts.working_since <= change.moment + change.tick
    if not (change.is_unseen and is_possible):
        return None
    return _unattributed([*_waiting(change, facts), *_running(change, facts)], NOT_SEEN)


def _alone(change: FoundChange, facts: Facts) -> CallInfo | None:
    callers = _running(change, facts)
    return _only(callers) if callers else None


def _several(change: FoundChange, facts: Facts) -> CallInfo | None:
    callers = _running(change, facts)
    return _unattributed(callers) if callers else None


def _perhaps_before(change: FoundChange, facts: Facts) -> CallInfo | None:
    late = [call for call in [*facts.naming(change.path), *facts.anywhere] if _may_have_run(call, change)]
    late = [call for call in late if call.kind not in _UNHEARD]
    return _unattributed(late, "it was found only after a tool ended that may have made it") if late else None


def _unheard(change: FoundChange, facts: Facts) -> CallInfo | None:
    unheard = [call for call in facts.anywhere if call.kind in _UNHEARD and _may_have_run(call, change)]
    return _unattributed(unheard) if unheard else None


def _no_agent(_change: FoundChange, _facts: Facts) -> CallInfo:
    return EXTERNAL_CALL


RULES: Final = (
    Rule(
        name="kept",
        says=_kept,
        reason="A person who keeps what a decision finds has not said whose it is.",
        is_wrong_if="",
    ),
    Rule(
        name="named",
        says=_named,
        reason="A tool that names a file changes that file; no other author is expected there while it runs.",
        is_wrong_if="a person or another agent writes the same file between the tool's beginning and its end; then "
        "what the tool itself writes only after its end is not expected of it",
    ),
    Rule(
        name="expected",
        says=_expected,
        reason="A tool that reported success and left its file unchanged writes it later in its turn, as VS Code does.",
        is_wrong_if="the tool had nothing to write, and before the turn ends a person writes the file, or a tool that "
        "another prompt of the session began",
    ),
    Rule(
        name="unseen",
        says=_unseen,
        reason="What no look could read (a rule or a permission hid it, its disk was not mounted) any call may have "
        "changed since agents began to work here, and a person too: what it was before is not known.",
        is_wrong_if="",
    ),
    Rule(
        name="alone",
        says=_alone,
        reason="While tools that may touch any file run in one conversation only, a change is that conversation's.",
        is_wrong_if="a person types while such a tool runs; or tools of two prompts of the conversation do, and the "
        "older one made it",
    ),
    Rule(
        name="several",
        says=_several,
        reason="Tools of several conversations ran, or of none it is certain that it ran: each may have made it.",
        is_wrong_if="",
    ),
    Rule(
        name="perhaps before",
        says=_perhaps_before,
        reason="A file that changed after a tool's end may have changed before it too, if nothing looked in between.",
        is_wrong_if="",
    ),
    Rule(
        name="unheard",
        says=_unheard,
        reason="While no event of an agent's tools has arrived, or after a hook failed, an agent may work unheard; "
        "and a program of which the log has lost the lines may still run.",
        is_wrong_if="",
    ),
    Rule(
        name="no agent",
        says=_no_agent,
        reason="Between tools whose ends are certain, and of which no process lives, no agent can have made a change.",
        is_wrong_if="a program writes for an agent that no shell of it left behind, as a server of tools that answers "
        "first; or such a process is not seen: one that lost its parent and any trace of the workspace, or that one "
        "began which has ended since, and each where the system lists none, as on macOS",
    ),
)
"""The rules in their order. What no agent can have made is the person's."""


# ---- what the rules ask


def _ran(call: AgentCall, change: FoundChange) -> bool:
    return call.ran_at(change.moment, change.tick)


def _may_have_run(call: AgentCall, change: FoundChange) -> bool:
    return call.may_have_run_at(change.moment, change.tick)


def _running(change: FoundChange, facts: Facts) -> list[AgentCall]:
    return [call for call in facts.anywhere if call.kind not in _UNHEARD and _ran(call, change)]


def _waiting(change: FoundChange, facts: Facts) -> list[AgentCall]:
    return [call for call in facts.naming(change.path) if call.kind is CallKind.EXPECTED and _ran(call, change)]


def _only(callers: Sequence[AgentCall]) -> CallInfo | None:
    """Return the newest call that is known to run, if all calls are of one conversation; else None.

    `callers`: every call that may have made the change.
    """
    running = [call for call in callers if call.is_known_to_run]
    if not running or len({call.conversation for call in callers}) != 1:
        return None
    return max(running, key=lambda call: call.began).info


def _first_of(naming: Sequence[AgentCall], others: Sequence[AgentCall]) -> CallInfo:
    """Return whose a change is that calls which named the file may have made, or others.

    Where all are of one conversation, and it is certain that one of them ran, it is more likely that a call changed the
    file that it named, even one whose end may be lost: if it is, that edit is left open once that is known.
    """
    callers = [*naming, *others]
    found = _only(callers)
    if found is None:
        return _unattributed(callers)
    likely = [call for call in naming if call.is_known_to_run or not (call.is_over or call.is_left)]
    return max(likely, key=lambda call: call.began).info if likely else found


def _unattributed(callers: Iterable[AgentCall], why: str = "") -> CallInfo:
    """Return the attribution of a change that one of these calls may have made."""
    callers = list(callers)
    sessions = sorted({call.conversation for call in callers} - {""})
    doubts = dict.fromkeys(call.doubt_in_words for call in callers if not call.is_known_to_run)
    if not why:
        why = "; ".join(doubts) or "tools of several sessions ran"
    notes = {CANDIDATES: "\n".join(sessions[:_MOST_CANDIDATES])} if sessions else {}
    notes |= {WHY: why}
    return CallInfo(tool="", origin=Origin.UNATTRIBUTED, notes=notes)


# ---- what is handed in


class Attribution(Attributor):
    """What says whose changes are that one look finds: the rules, by the facts of one moment."""

    def __init__(
        self,
        open_calls: OpenCalls,
        calls: Mapping[str, AgentCall] | None = None,
        *,
        named: Mapping[str, str] = MappingProxyType({}),
        otherwise: CallInfo = EXTERNAL_CALL,
        is_kept: bool = False,
    ) -> None:
        """Take the log's open calls, or (`calls`) what the caller knows of them now.

        The log is read at the first change. The caller holds the writer lock then and has read the files: a call that
        began later can't have made what was found, and one that ends meanwhile waits for the lock. `named`: paths that
        count as others. `otherwise`: whose changes are that no agent can have made. `is_kept`: as of a FoundChange.
        """
        self._open: Final = open_calls
        self._named: Final = named
        self._otherwise: Final = otherwise
        self._is_kept: Final = is_kept
        self._calls: Final = calls
        self._facts: Facts | None = None

    def __call__(self, path: str, moment: int, tick: int, *, is_unseen: bool = False) -> CallInfo:
        """Return whose a change of a file is. Units as for an `Attributor`."""
        if self._facts is None:
            calls = self._open.authors() if self._calls is None else self._calls
            self._facts = Facts(calls.values(), self._open.working_since())
        change = FoundChange(self._named.get(path, path), moment, tick, is_kept=self._is_kept, is_unseen=is_unseen)
        return explain(change, self._facts, self._otherwise)

    def may_be_formatted(self, session: str, path: str, recorded: int, moment: int, tick: int) -> bool:
        """Return whether a formatter may change at a moment what a session's call made, as of an `Attributor`."""
        return any(span.covers(path, recorded, moment, tick) for span in self._open.spans(session))
