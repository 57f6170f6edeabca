"""Keep the open calls of agents, and what is remembered of each conversation.

Each hook of an agent's program runs in its own process, so one hook leaves what it learns in the log of evidence for
the next. The log is not part of the history: if it is lost, changes are still found, but not attributed to an agent.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from functools import cache
from typing import Any, Final

from objstore.disk.fs.processes import MACHINE, Processes, ProcessName, valid_process_name
from objstore.disk.fs.reserved_names import JOINED_NAME, OPEN_CALL_PREFIX
from objstore.disk.fs.writer_lock import WriterLock
from objstore.disk.witnesses.failure_marks import HookFailure, hook_failures, note_noticed, unnoticed_failures
from objstore.model.basic_types import MAX_INT, RESERVED_CONVERSATIONS
from objstore.model.results import CallInfo, TurnInfo
from objstore.model.views import SUBAGENT
from objstore.review.calls.agent_files import AgentFiles, key_of, texts_of
from objstore.review.calls.evidence_log import log_of
from objstore.storage.transaction.journal import Journal
from objstore.values.clock import now
from objstore.values.errors import CasError
from objstore.values.fastclass import NamedTuple, field, replace, value

__all__ = [
    "ABANDONED",
    "END_AWAITED",
    "END_LOST",
    "FORGOTTEN_AFTER",
    "AgentCall",
    "CallKind",
    "CallSpan",
    "OpenCalls",
    "call_of_fields",
    "fields_of_call",
    "note_sent",
    "sanitized_name",
    "sanitized_text",
]

_GAP: Final = "gap"
"""The name of what is taken for an open call where the log has a gap, or a hook has failed."""

_LOST: Final = "lost"
"""The name of what is taken for an open call after such a gap: what ran then may still run."""

_HEEDED: Final = "heeded"
"""What failures of hooks are once all files were looked at since."""

_OVER: Final = "over-"
_POSSIBLE: Final = "possible-"
"""Prefix of the names of possible authors that are no open calls: see `CallKind`."""

_SESSION: Final = "session-"
_DONE: Final = "done-"
_REPORTED: Final = "told-"
_UNSEEN: Final = "unseen"
"""The name of what waited for an answer when a shell ended: see `OpenCalls.note_unseen`."""

_LOCK: Final = "lock"
_REVIEW: Final = "review"
_RELEASED: Final = "released"
_SESSIONS_LOCK: Final = "sessions"
_CUT_OFF: Final = "?"
"""What is in front of the identity of an ended call whose own end was not reported."""

_ABANDONED: Final = "abandoned"
"""What is true in the note of the end of a call whose client's process has ended."""

ABANDONED: Final = "its program had ended before the end of a tool was reported"
"""The doubt of a call whose client's process has ended."""

END_LOST: Final = "the end of a tool was not reported"
"""The doubt of a call whose turn or session has ended."""

END_AWAITED: Final = "the end of a tool was not reported yet"
"""The doubt of a call whose end is either lost or still to come."""

_PROMPT_ID: Final = "prompt_id"
"""Where the log has of a turn the client's id of its prompt."""

_INFERRED: Final = "inferred"
"""What is true in the note of the end of a call that was not reported itself."""

_LINEAGE: Final = "lineage"
"""Where the log has of a session the processes that led to the hook which reported its last turn."""

FORGOTTEN_AFTER: Final = 24 * 3600 * 1_000_000
"""Microseconds after which the program of a call whose end was not reported is taken to have died."""

_SESSION_KEPT: Final = 30 * FORGOTTEN_AFTER
_LONGEST_REPORTED: Final = 1 << 26
"""Bytes of the file with the rejections that were reported to a conversation: some millions of them."""

_MOST_DONE: Final = 40
"""Ended calls remembered for each conversation, each in the words of its beginning and of its end."""

_MOST_SPANS: Final = 8
"""Ended calls of each conversation of which the times of formatters are remembered."""

_MOST_SENT: Final = 200
_MOST_TURNS: Final = 5
"""Subagents, and earlier turns that late reports may be about, which are remembered of each conversation."""

_MOST_JOINED: Final = 200
"""Other conversations whose rejections are reported to a session: our server's tools begin one in each turn."""

_MOST_JOINED_OF_ALL: Final = 1000
"""Conversations for which the joining session is remembered."""

_PATIENCE: Final = 10.0
"""Seconds to wait for other processes that note something about a conversation: each takes milliseconds."""

_LONGEST_NOTE: Final = 2_000
"""Characters of a note that are recorded. A note explains an edit, and must never prevent its recording."""

_LONGEST_NAME: Final = 200
"""Characters of a conversation's name that are used."""


class CallKind(Enum):
    """What a possible author of changes is."""

    CALL = "call"
    EXPECTED = "expected"  # a call that has ended, and left the files that it named unchanged until then
    PROCESS = "process"  # a process that began during a call and outlived it
    GAP = "gap"  # what the log of evidence lacks
    LOST = "lost"  # what the log had lost before everything was looked at
    FAILED = "failed"  # what a hook that failed would have reported
    TURN = "turn"  # a turn of a session of which no tool event has arrived


_KINDS: Final = {kind.value: kind for kind in CallKind}
_DOUBTS: Final = {
    CallKind.PROCESS: "a process that a tool left behind was still running",
    CallKind.FAILED: "a hook had failed",
    CallKind.LOST: "part of what hooks had reported was lost",
    CallKind.TURN: "no event of a tool had arrived from its session",
}


@value
class AgentCall:
    """A tool call that an agent's own program carries out, or what else of it may change files."""

    conversation: str
    id: str  # unique in its conversation; the same at the beginning and at the end
    tool: str
    paths: tuple[str, ...] | None  # files that it may change, absolute or relative to the workspace; None: any
    notes: Mapping[str, str] = field(default_factory=dict)
    turn: TurnInfo | None = None  # the turn in which it began; None: not known
    agent: str = ""  # id of the subagent that makes it; "": the main agent
    prompt_id: str = ""  # the client's id of the prompt that it is made for; "": not reported
    is_announced: bool = True  # whether its beginning was reported, and what had changed before was recorded
    is_named: bool = True  # whether the client gave the id; otherwise it may differ at the end of the call
    began: int = 0  # microseconds since 1970-01-01 UTC
    is_asked: bool = False  # whether a person was asked if it may run
    is_behind: bool = False  # whether it runs on after its answer, in the background
    is_left: bool = False  # whether it may run on after its turn, in which case no change is attributed to it
    task: str = ""  # the client's id of what runs in the background; "": none, or not known
    since: int | None = 0  # earliest time of its changes (ns of the file system); None: when it was noted
    asks: str = ""  # digest of its arguments, if it may be a call of our server; "": it is none
    process: ProcessName | None = None  # the client's process, with which it ends; None: not known
    ended: int = 0  # reported time of its end (ns of the file system), while its changes may not be recorded yet
    newest: int = 0  # number of the process that had begun last when it began; 0: not known
    kind: CallKind = CallKind.CALL
    doubt: str = ""  # why no change is attributed to it for certain, in plain words; "": nothing more speaks against it

    @property
    def is_over(self) -> bool:
        """Whether its end was reported, though its changes may not be recorded yet."""
        return self.ended > 0

    def ran_at(self, moment: int, tick: int = 0) -> bool:
        """Return whether it may have made a change at this moment (ns of the file system, within `tick` ns)."""
        return (self.since or 0) <= moment + tick and (not self.is_over or moment - tick <= self.ended)

    def may_have_run_at(self, moment: int, tick: int = 0) -> bool:
        """Return whether it may have made a change of a file that was last changed at this moment, perhaps later."""
        return (self.since or 0) <= moment + tick

    @property
    def is_known_to_run(self) -> bool:
        """Whether it is known to be running or to have run, so that changes can be attributed to it."""
        return (self.is_over or not self.is_asked) and not self.is_left and not self.doubt

    @property
    def doubt_in_words(self) -> str:
        """Why no change is attributed to it for certain, in plain words; "": it is known to run."""
        if self.is_known_to_run:
            return ""
        if self.is_asked and not self.is_over:
            return self.doubt or "a person was asked whether the tool may run, and the answer was not reported"
        return self.doubt or _DOUBTS.get(self.kind, "a tool may have run on after its turn")

    @property
    def info(self) -> CallInfo:
        """The call information that is recorded with its edits."""
        named = {SUBAGENT: self.agent} if self.agent else {}
        notes = {name: sanitized_text(note) for name, note in {**self.notes, **named}.items()}
        return CallInfo(tool=sanitized_text(self.tool), conversation=self.conversation, notes=notes, turn=self.turn)


_PLAIN_FIELDS: Final = {
    "agent": "agent",
    "announced": "is_announced",
    "named": "is_named",
    "asked": "is_asked",
    "behind": "is_behind",
    "left": "is_left",
    "task": "task",
    "asks": "asks",
    "newest": "newest",
    "doubt": "doubt",
}
"""Fields of a call that the log holds as they are, by their names there; what has another type is left out."""

_TYPES: Final = {own: AgentCall.__annotations__[own] for own in _PLAIN_FIELDS.values()}


class CallSpan(NamedTuple):
    """The time in which a formatter may change what a call made: from its beginning to its session's next event."""

    since: int  # ns since 1970-01-01 UTC, as all
    ended: int
    until: int  # 0: nothing more of the session was reported
    paths: Sequence[str] | None  # the files that the call named; None: any

    def covers(self, path: str, recorded: int, moment: int, tick: int) -> bool:
        """Return whether it has a moment (within `tick`), for an edit of a file recorded at a time (µs).

        What changed since that edit was recorded changed since the call began, even if the file's time lags behind.
        """
        is_call_s = self.since <= recorded * 1000 and (self.paths is None or path in self.paths)
        return is_call_s and (not self.until or moment - tick <= self.until)


class OpenCalls:
    """The open calls of one workspace. A process that changes them holds `lock`."""

    def __init__(self, journal: Journal, processes: Processes = MACHINE) -> None:
        """Take the journal of the workspace; read nothing yet. `processes`: those that may be agents'."""
        self._journal: Final = journal
        self._processes: Final = processes
        self._files: Final = AgentFiles(journal)
        self._log: Final = log_of(journal)
        self._root: Final = journal.tree.root
        self._failures: list[HookFailure] = []  # which the last question for authors took into account

    @property
    def lock(self) -> str:
        """The path of the lock; its folder is created if it is missing. Raises StoreLinked."""
        self._log.make_folder()
        return self._files.lock_path(_LOCK)

    def calls(self) -> dict[str, AgentCall]:
        """Return the open calls, and what else is known to be able to change files, by their names in the log.

        A call whose client's process has ended counts as ended when this is first noticed: the client may have died
        long before, so that what has changed until now may be the call's or somebody else's. Where the process isn't
        known, a call is removed after a day.
        """
        calls: dict[str, AgentCall] = {}
        is_gone = cache(self._processes.has_ended)
        oldest = now() - FORGOTTEN_AFTER
        for name in self._log.names(OPEN_CALL_PREFIX, _POSSIBLE):
            call = call_of_fields(self._log.read(name))
            if call is None or call.began < oldest:
                self.remove(name)
            else:
                since = self._log.written(name) if call.since is None else call.since
                if since > time.time_ns() and self._files.is_ahead(since):
                    since = 0  # the clock was set back, so the time says nothing about earlier changes
                ended = self._ended(name)
                if not ended and call.process is not None and is_gone(call.process):
                    ended = self._note_abandoned(name)
                over = self._log.read(_over(name)) if ended else {}
                if over.get(_ABANDONED) is True:
                    call = replace(call, is_left=True, doubt=ABANDONED if call.kind is CallKind.CALL else call.doubt)
                elif over.get(_INFERRED) is True:
                    call = replace(call, doubt=END_LOST)
                calls[name] = replace(call, since=since, ended=ended)
        return calls

    def authors(self) -> dict[str, AgentCall]:
        """Return what `calls` returns, and what is taken for calls of which reports are missing."""
        calls, gap, lost = self.calls(), self._log.gap, self._log.mended
        self._failures = unnoticed_failures(self._root, _HEEDED)
        unknown = AgentCall(conversation="", id="", tool="", paths=None, is_left=True)
        if gap or self._failures:
            kind = CallKind.GAP if gap else CallKind.FAILED
            calls[_GAP] = replace(unknown, ended=time.time_ns(), kind=kind, doubt=gap)
        if lost > (now() - FORGOTTEN_AFTER) * 1000:
            calls[_LOST] = replace(unknown, kind=CallKind.LOST)
        for name, call in calls.items():
            is_older = bool(gap) or self._log.written(name) < lost
            if call.kind is CallKind.EXPECTED and not call.doubt and (is_older or self._failures):
                calls[name] = replace(call, doubt=END_LOST)  # that of its turn may have been reported
            elif call.kind is CallKind.CALL and is_older:
                doubt = call.doubt or _DOUBTS[CallKind.LOST]  # its end may have been reported
                calls[name] = replace(call, is_announced=False, doubt=doubt)
            elif call.kind is CallKind.CALL and self._failures and not call.is_over and call.is_known_to_run:
                calls[name] = replace(call, doubt=END_AWAITED)  # a hook may have failed to report it
        return calls

    def working_since(self) -> int | None:
        """Return when an agent first worked here (ns of the file system; 0: not known; None: none ever did).

        The history knows the first turn, too, if the log is gone.
        """
        with self._journal.reading() as store:
            turn = store.index.turns.turn(1)
        known = [self._log.began, None if turn is None else turn.time * 1000]
        return min((at for at in known if at is not None), default=None)

    def unheard_since(self) -> int:
        """Return since when agents may have worked unheard, if hooks have failed (microseconds; MAX_INT: none has).

        What failed may be the end of a call whose beginning was not reported either. It began after the first failure,
        or in the turn of a session that works now. `authors` was called before.
        """
        if not self._failures:
            return MAX_INT
        oldest = now() - FORGOTTEN_AFTER
        sessions = (self._log.read(name) for name in self._log.names(_SESSION))
        began = [kept.get("prompted") for kept in sessions if kept.get("waits") is not True]
        began += [failure.time for failure in hook_failures(self._root)]
        return min((at for at in began if isinstance(at, int) and at > oldest), default=oldest)

    @staticmethod
    def name_of(call: AgentCall) -> str:
        """Return the name of a call in the log."""
        prefix = _POSSIBLE if call.kind in {CallKind.EXPECTED, CallKind.TURN} else OPEN_CALL_PREFIX
        return prefix + key_of(sanitized_name(call.conversation), call.id)

    def is_open(self, call: AgentCall) -> bool:
        """Return whether a call is open under its own name."""
        return self._log.exists(self.name_of(call))

    def put(self, name: str, call: AgentCall) -> None:
        """Say of a call under this name that it is open. Raises what the disk raises."""
        self._log.write(name, fields_of_call(call))

    def note_end(self, name: str, *, is_inferred: bool = False) -> bool:
        """Note that a call has ended; return False if it is not open or its end was noted before. Needs no lock.

        `is_inferred`: its own end was not reported.
        The time of its line says when. Never raises: the scan that follows finds what the call changed in any case.
        """
        if not self._log.exists(name) or self._ended(name):
            return False
        with suppress(OSError, CasError):
            self._log.write(_over(name), {_INFERRED: True} if is_inferred else {})
        return True

    def _note_abandoned(self, name: str) -> int:
        """Note that a call's client has ended, and return when this was noticed, in the file system's time."""
        with suppress(OSError, CasError):  # a reader may not be allowed to write: the next process notices it again
            self._log.write(_over(name), {_ABANDONED: True})
        return self._ended(name) or time.time_ns()

    def remove(self, name: str) -> None:
        """Remove a call and the note of its end."""
        if name != _GAP:
            self._log.remove(name, _over(name))
            return
        with suppress(OSError, CasError):  # it stays known until the log can be written
            if self._log.gap:
                self._log.mend()
        note_noticed(self._root, _HEEDED, self._failures)

    def unseen(self) -> dict[str, str]:
        """Return the files of `note_unseen`, each with the conversation of the shell."""
        return {path: name for path, name in self._log.read(_UNSEEN).items() if isinstance(name, str)}

    def note_unseen(self, paths: Iterable[str], conversation: str) -> None:
        """Note that no look saw these files when a shell ended, since they wait for an answer about another call.

        If the answer is no, nothing else shows that the shell may have changed them. Raises what the disk raises.
        """
        unseen = self.unseen()
        noted = {**unseen, **dict.fromkeys(paths, conversation)}
        if noted != unseen:
            self._log.write(_UNSEEN, noted)

    def note_seen(self, paths: Collection[str]) -> None:
        """Note that a look has seen files. Raises what the disk raises."""
        unseen = self.unseen()
        left = {path: name for path, name in unseen.items() if path not in paths}
        if left != unseen:
            self._log.write(_UNSEEN, left)

    def cut(self) -> None:
        """Drop what no longer counts from the log. Raises what the disk raises."""
        self._log.cut()

    def is_done(self, call: AgentCall, *, before: bool = False) -> bool:
        """Return whether a call has ended whose beginning or end was reported in the same words.

        `before`: in this turn or an earlier one; otherwise only in this one.
        """
        done, earlier = self._done(call.conversation)
        return not {_identity(call), _CUT_OFF + _identity(call)}.isdisjoint(done + earlier if before else done)

    def may_have_forgotten(self, call: AgentCall) -> bool:
        """Return whether the log was damaged since a call can have begun of which it has nothing."""
        return bool(self._log.gap) or self._log.mended > (call.began - FORGOTTEN_AFTER) * 1000

    def was_cut_off(self, call: AgentCall) -> bool:
        """Return whether a call counts as ended because its turn or session ended, and its own end was not reported."""
        done, earlier = self._done(call.conversation)
        return _CUT_OFF + _identity(call) in done + earlier and _identity(call) not in done + earlier

    def note_done(
        self,
        conversation: str,
        calls: Iterable[AgentCall] = (),
        *,
        are_cut_off: bool = False,
        ended: AgentCall | None = None,
    ) -> None:
        """Remember that calls have ended: a client may report a beginning or end again. Raises as `note`.

        `are_cut_off`: their turn or session has ended, and their own ends were not reported. `ended`: the call whose
        end was reported; None: nothing but that something else of the session was.
        """
        prefix = _CUT_OFF if are_cut_off else ""
        name = _done_name(conversation)
        with self._sessions_locked():
            held = self._log.read(name)
            done = list(dict.fromkeys([*texts_of(held.get("calls")), *(prefix + _identity(call) for call in calls)]))
            spans, at = self.spans(conversation), now() * 1000
            spans = [span if span.until else span._replace(until=at) for span in spans]
            if ended is not None:
                spans.append(CallSpan(ended.began * 1000, at, 0, ended.paths or None))
            noted = {**held, "calls": done[-_MOST_DONE:], "spans": list(map(list, spans))[-_MOST_SPANS:]}
            if noted != held:
                self._log.write(name, noted)

    def spans(self, conversation: str) -> list[CallSpan]:
        """Return when formatters may have changed what the session's newest calls made."""
        held = self._log.read(_done_name(conversation)).get("spans")
        found = [CallSpan(*each) for each in (held if isinstance(held, list) else ()) if _is_span(each)]
        session, turn = self.session(conversation), self.turn(conversation)
        later = [at for at in (session.get("stopped"), 0 if turn is None else turn.began) if isinstance(at, int)]
        calls = (call_of_fields(self._log.read(name)) for name in self._log.names(OPEN_CALL_PREFIX) if found)
        later += [
            call.began for call in calls if call is not None and call.conversation == sanitized_name(conversation)
        ]
        events = [at * 1000 for at in later]
        return [
            span._replace(until=min((at for at in [*events, span.until] if at > span.ended), default=0))
            for span in found
        ]

    def note_unanswered(self, conversation: str, calls: Iterable[AgentCall]) -> None:
        """Remember calls whose turn ended while a person was asked about them: they may begin again. Raises as `note`.

        If only an end is reported of one, it counts as that of a call whose turn has ended.
        """
        with self._sessions_locked():
            name = _done_name(conversation)
            done, earlier = self._done(conversation)
            earlier = list(dict.fromkeys([*earlier, *(_CUT_OFF + _identity(call) for call in calls)]))[-_MOST_DONE:]
            self._log.write(name, {**self._log.read(name), "calls": done, "earlier": earlier})

    def begin_turn(self, conversation: str) -> None:
        """Note that another turn begins: from now on, a client may use the ids of ended calls again.

        Raises what `note` raises.
        """
        with self._sessions_locked():
            held = self._log.read(_done_name(conversation))
            done, earlier = self._done(conversation)
            if done:
                earlier = list(dict.fromkeys([*earlier, *done]))[-_MOST_DONE:]
                self._log.write(_done_name(conversation), {**held, "calls": [], "earlier": earlier})

    def turn(self, conversation: str, agent: str = "", prompt_id: str = "") -> TurnInfo | None:
        """Return the turn that a report of a conversation is about (None: no beginning of a turn was noted).

        For a subagent that is the turn whose prompt has sent it, however late it reports; otherwise the one of the
        prompt that the client names; otherwise the newest.
        """
        return _turn_of(_turn_meant(self.session(conversation), agent, prompt_id))

    def in_turn(self, call: AgentCall) -> AgentCall:
        """Return the call with the turn that its conversation is in, and with the client's process.

        If no hook has reported a turn, because the prompt came elsewhere or its hook failed, one begins with the call.
        """
        session = self.session(call.conversation)
        turn = _turn_of(_turn_meant(session, call.agent, call.prompt_id))
        client, model = (sanitized_text(call.notes.get(note, "")) for note in ("client", "model"))
        if turn is None:
            turn = TurnInfo(session=call.conversation, began=call.began, client=client, model=model)
            turn = self.note_turn(turn)
        turn = replace(turn, client=turn.client or client, model=model or turn.model)
        return replace(call, turn=turn, process=self._client(session))

    def client(self, conversation: str) -> ProcessName | None:
        """Return the client's process: that of the newest turn, which another hook has reported (None: not known)."""
        return self._client(self.session(conversation))

    def _client(self, session: Mapping[str, Any]) -> ProcessName | None:
        return _common_process(texts_of(session.get(_LINEAGE)), self._processes.lineage())

    def note_turn(self, turn: TurnInfo, also: Mapping[str, Any] | None = None, prompt_id: str = "") -> TurnInfo:
        """Note that a turn begins, by which processes that was reported, and the fields in `also`. Raises as `note`.

        Returns the turn with the file system's time of now, unless it was noted before, in another workspace.
        """
        self._log.make_folder()
        begun = replace(turn, since=turn.since or self._log.now())

        def noted(kept: Mapping[str, Any]) -> dict[str, Any]:
            fields = {**_fields_of_turn(begun), **({_PROMPT_ID: prompt_id} if prompt_id else {})}
            return {"turn": fields, "turns": _earlier_turns(kept), _LINEAGE: self._processes.lineage(), **(also or {})}

        self.note(turn.session, noted)
        return begun

    def session(self, conversation: str) -> dict[str, Any]:
        """Return what is remembered of a conversation."""
        return self._log.read(_session_name(conversation))

    def note(self, conversation: str, update: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Update what is remembered of a conversation. `update`: returns the fields to change, from the current ones.

        Hooks of one conversation may do so at the same time: one waits for the other. Raises StoreLocked, and what the
        disk raises.
        """
        with self._sessions_locked():
            session = self.session(conversation)
            noted = {**session, **update(session)}
            if session != noted:
                self._log.write(_session_name(conversation), noted)

    def reported_rejections(self, conversation: str) -> tuple[set[str], list[str]]:
        """Return the names of the units whose rejection a conversation knows, and the conversations it has joined."""
        held = self._files.read(_reported_name(conversation), _LONGEST_REPORTED)
        return set(texts_of(held.get("units"))), texts_of(held.get("joined"))

    def save_reported_rejections(self, conversation: str, new: Collection[str], gone: Collection[str] = ()) -> None:
        """Add and remove units whose rejection was reported to the conversation. Raises what `note` raises."""
        with self._sessions_locked():
            units, joined = self.reported_rejections(conversation)
            self._write_reported(conversation, (units | set(new)) - set(gone), joined)

    def join(self, conversation: str, other: str) -> None:
        """Report another conversation's rejections to this one, unless a third one has joined that. Raises as `note`.

        So each rejection is reported once, and to one conversation only, even if another claims it later.
        """
        with self._sessions_locked():
            units, joined = self.reported_rejections(conversation)
            held = self._files.read(JOINED_NAME).get("joined")
            owners = [
                (name, owner) for name, owner in (held if isinstance(held, dict) else {}).items() if name != other
            ]
            own = key_of(sanitized_name(conversation))
            if other in joined or (isinstance(held, dict) and held.get(other, own) != own):
                return
            self._files.write(JOINED_NAME, {"joined": dict([*owners, (other, own)][-_MOST_JOINED_OF_ALL:])})
            self._write_reported(conversation, units, [*joined, other][-_MOST_JOINED:])

    @property
    def review_lock(self) -> str:
        """The path of the file that a review in progress locks; its folder is created if it is missing."""
        return self._files.lock_path(_REVIEW)

    def released(self) -> tuple[int, int]:
        """Return the numbers of the newest decision and comment that a person has released to agents."""
        match self._files.read(_RELEASED):
            case {"decision": int(decision), "comment": int(comment)}:
                return decision, comment
        return 0, 0

    def save_released(self, decision: int, comment: int) -> None:
        """Replace what `released` returns. Raises what the disk raises."""
        self._files.write(_RELEASED, {"decision": decision, "comment": comment})

    def forget_old_sessions(self) -> None:
        """Remove conversations without any report for a month, and notes of ends as old as that."""
        oldest = (now() - _SESSION_KEPT) * 1000
        for files in (self._log, self._files):
            for name in files.names(_SESSION, _DONE, _REPORTED, _OVER):
                if files.written(name) < oldest:
                    files.remove(name)

    # ---- inside

    def _write_reported(self, conversation: str, units: Iterable[str], joined: list[str]) -> None:
        self._files.write(_reported_name(conversation), {"units": sorted(units), "joined": joined})

    @contextmanager
    def _sessions_locked(self) -> Iterator[None]:
        """Keep other processes from changing what is remembered of conversations: each reads it and replaces it."""
        lock = WriterLock(self._files.lock_path(_SESSIONS_LOCK))
        try:
            with lock.held(_PATIENCE):
                yield
        finally:
            lock.close()

    def _ended(self, name: str) -> int:
        """Return when the end of a call was reported (0: it was not)."""
        return self._log.written(_over(name))

    def _done(self, conversation: str) -> tuple[list[str], list[str]]:
        """Return the identities of the calls that ended in this turn, and of those that ended in earlier ones."""
        held = self._log.read(_done_name(conversation))
        return texts_of(held.get("calls")), texts_of(held.get("earlier"))


def fields_of_call(call: AgentCall) -> dict[str, Any]:
    """Return a call as the log holds it."""
    return {
        "conversation": call.conversation,
        "id": call.id,
        "tool": call.tool,
        "paths": call.paths,
        "notes": dict(call.notes),
        "turn": None if call.turn is None else _fields_of_turn(call.turn),
        "began": call.began,
        "since": call.since,
        "process": call.process,
        "kind": call.kind.value,
        **{name: getattr(call, own) for name, own in _PLAIN_FIELDS.items()},
    }


def _fields_of_turn(turn: TurnInfo) -> dict[str, Any]:
    return {
        "session": turn.session,
        "began": turn.began,
        "since": turn.since,
        "prompt": turn.prompt,
        "client": turn.client,
        "model": turn.model,
    }


def _turn_of(held: object) -> TurnInfo | None:
    """Return the turn that the log holds (None: none, or it is not in our format)."""
    match held:
        case {
            "session": str(session),
            "began": int(began),
            "prompt": str(prompt),
            "client": str(client),
            "model": str(model),
            **others,
        } if session and 0 < began <= MAX_INT:
            # A turn of an earlier version has none.
            since = since if isinstance(since := others.get("since"), int) and since > 0 else 0
            return TurnInfo(session=session, began=began, prompt=prompt, client=client, model=model, since=since)
    return None


def _turn_meant(session: Mapping[str, Any], agent: str, prompt_id: str) -> object:
    """Return the turn that a report of a session is about, as the log holds it."""
    sent, known = session.get("sent"), _known_turns(session)
    began = sent.get(agent) if isinstance(sent, dict) and agent else None
    of_sender = (held for held in known if began is not None and held.get("began") == began)
    of_prompt = (held for held in known if prompt_id and held.get(_PROMPT_ID) == prompt_id)
    return next(of_sender, None) or next(of_prompt, None) or session.get("turn")


def _known_turns(session: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the turns of a session that later reports may be about, the newest first."""
    turns = session.get("turns")
    return [
        each for each in [session.get("turn"), *(turns if isinstance(turns, list) else ())] if isinstance(each, dict)
    ]


def _earlier_turns(session: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the turns of a session that later reports may be about once another begins, the newest first."""
    sent = session.get("sent")
    began = set(sent.values()) if isinstance(sent, dict) else set()
    found = [held for held in _known_turns(session) if _PROMPT_ID in held or held.get("began") in began]
    return found[:_MOST_TURNS]


def note_sent(session: Mapping[str, Any], agent: str, prompt_id: str) -> dict[str, Any]:
    """Return the fields of a session that say which prompt has sent a subagent ("": the newest)."""
    turn, sent = _turn_of(_turn_meant(session, "", prompt_id)), session.get("sent")
    if turn is None:
        return {}
    others = [(each, began) for each, began in (sent.items() if isinstance(sent, dict) else ()) if each != agent]
    return {"sent": dict([*others, (agent, turn.began)][-_MOST_SENT:])}


def call_of_fields(held: Mapping[str, Any]) -> AgentCall | None:
    """Return the call that the log holds (None: it is not in our format)."""
    match held:
        case {
            "conversation": str(conversation),
            "id": str(name),
            "tool": str(tool),
            "paths": None | list() as paths,
            "notes": dict(notes),
            "began": int(began),
        } if all(isinstance(path, str) for path in paths or ()):
            valid_notes = {
                key: value for key, value in notes.items() if isinstance(key, str) and isinstance(value, str)
            }
            return AgentCall(
                conversation=conversation,
                id=name,
                tool=tool,
                paths=None if paths is None else tuple(paths),
                notes=valid_notes,
                turn=_turn_of(held.get("turn")),
                began=began,
                since=since if isinstance(since := held.get("since", 0), int) else None,
                process=valid_process_name(held.get("process")),
                kind=_KINDS.get(held.get("kind", ""), CallKind.CALL),
                **{own: held[name] for name, own in _PLAIN_FIELDS.items() if type(held.get(name)) is _TYPES[own]},
            )
    return None


def _common_process(earlier: Sequence[str], own: Sequence[ProcessName]) -> ProcessName | None:
    """Return the innermost process that ran two hooks of a conversation (None: not known): the client's own.

    A client may run a hook through a shell, and that through further programs, which all end with that hook.
    `earlier`, `own`: each hook's own process, its parent, and so on. The same hook may have reported both events.
    """
    if earlier[:1] == own[:1]:
        return None
    return next((process for process in own if process in earlier), None)


def sanitized_name(conversation: str) -> str:
    """Return a conversation's name as it may be recorded: printable, not too long, not the name for external edits."""
    cleaned = "".join(char for char in conversation if char.isprintable())[:_LONGEST_NAME]
    return f"{cleaned}-agent" if cleaned in RESERVED_CONVERSATIONS else cleaned


def sanitized_text(text: str) -> str:
    """Return a text as a record can hold it: not too long, and without the lone surrogates that JSON allows."""
    return text[:_LONGEST_NOTE].encode("utf-8", "replace").decode()


def _is_span(held: object) -> bool:
    """Return whether the log holds the fields of a CallSpan."""
    match held:
        case [int(), int(), int(), None | list()]:
            return True
    return False


def _session_name(conversation: str) -> str:
    return _SESSION + key_of(sanitized_name(conversation))


def _done_name(conversation: str) -> str:
    return _DONE + key_of(sanitized_name(conversation))


def _reported_name(conversation: str) -> str:
    return _REPORTED + key_of(sanitized_name(conversation))


def _over(name: str) -> str:
    """Return the name of the end of a call in the log."""
    return _OVER + name.removeprefix(OPEN_CALL_PREFIX)


def _identity(call: AgentCall) -> str:
    """Return a key for a call's id, tool, command and paths, because a client may use one id for several calls."""
    return key_of(call.id, call.tool, call.notes.get("command", ""), *(["*"] if call.paths is None else call.paths))
