"""Follow agents' tool calls by what their hooks report, and record each call's changes as its own.

A hook reports when a tool of an agent begins and when it ends; in between, the agent's own program changes files. What
an agent may have changed, though none is known to have, is recorded as unattributed, and needs a review.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

from objstore.agents.attributed_scan import AttributedScan, Looks
from objstore.disk.fs.disk import reaching
from objstore.disk.fs.processes import MACHINE, Processes, ProcessName
from objstore.disk.fs.writer_lock import WriterLock
from objstore.model.basic_types import MAX_INT, RESERVED_CONVERSATIONS, Origin
from objstore.model.results import CallInfo, TurnInfo
from objstore.model.views import EditFilter, EditView
from objstore.review.calls.agent_files import texts_of
from objstore.review.calls.attribution import Attribution
from objstore.review.calls.open_calls import (
    ABANDONED,
    END_AWAITED,
    END_LOST,
    AgentCall,
    CallKind,
    OpenCalls,
    note_sent,
    sanitized_name,
    sanitized_text,
)
from objstore.storage.transaction.journal import Journal
from objstore.values.clock import now
from objstore.values.errors import CasError, ConversationReserved, DiskFull, PathError
from objstore.values.fastclass import replace

if TYPE_CHECKING:
    from objstore.agents.missing_reports import MissingReports
    from objstore.agents.record import Recorded
    from objstore.agents.server_calls import ServerCalls

__all__ = ["HookSessions"]

_PATIENCE: Final = 10.0
"""Seconds that an agent waits while others begin, end or scan: the first scan of a large tree takes some."""

_SUBAGENT_PATIENCE: Final = 15 * 60 * 1_000_000
"""Microseconds after which a subagent's call without further reports counts as ended: its session may go on alone."""

_NOT_LOOKED: Final = "the files could not be looked at when a tool began"
_NOT_SEEN: Final = "the file could not be looked at when a tool began: it waited for an answer"
_NOT_ANNOUNCED: Final = "the beginning of a tool was not reported"
_OVERDUE: Final = "no event of a subagent had arrived for a quarter of an hour"
_BEGINNING, _END, _UNANNOUNCED = "beginning", "end", "end without a beginning"
"""What arrives of the tools of a session."""

_MAX_SUBAGENTS: Final = 200
_MAX_OTHER_WORKSPACES: Final = 20
_MAX_REMEMBERED_ENDS: Final = 20
"""Ends of calls remembered for each conversation: no more tools run at once."""

_MAX_SCANNED_PATHS: Final = 20
"""The newest edits of a conversation, among which the edit of a tool that has just ended is searched."""


class HookSessions:
    """The open calls of all agents in one workspace, and what is remembered of each conversation."""

    def __init__(self, journal: Journal, scan: Looks | None = None, processes: Processes = MACHINE) -> None:
        """Take the journal of the workspace; read nothing yet.

        `scan`: what looks at the files (None: the disk's). `processes`: those that may be agents'.
        """
        self._journal: Final = journal
        self._processes: Final = processes
        self._open: Final = OpenCalls(journal, processes)
        self._scan: Final = AttributedScan(journal, self._open) if scan is None else scan

    @cached_property
    def server_calls(self) -> "ServerCalls":
        """The calls of our own server that the hooks have announced."""
        from objstore.agents.server_calls import ServerCalls  # an agent waits for what each hook imports

        return ServerCalls(self._journal)

    # ---- what hooks report

    def begin(self, call: AgentCall, *, reports_subagents: bool = False) -> list[EditView]:
        """Note that a call begins; return the edits for what changed before it. Raises what Call.commit raises.

        On a full disk it uses the space reserve. A second report of the same call changes nothing. `reports_subagents`:
        whether the client reports when a subagent begins. A subagent that such a client has not reported, while the
        session waits for a person, does not get to run its tools, and their ends are not reported: Claude Code uses one
        to guess the person's next message.
        """
        known = self._known(call)
        self._note_heard(known.conversation, _BEGINNING)
        try:
            return self._begin(known, reports_subagents=reports_subagents)
        except DiskFull:
            from objstore.storage.transaction.space_reserve import (
                release_reserve,  # agents wait for what each hook imports
            )

            # Without its beginning, what the call does would be no one's for certain.
            release_reserve(self._journal)
            return self._begin(known, reports_subagents=reports_subagents)
        finally:
            if known.asks:
                self.server_calls.announce(known)

    def _begin(self, known: AgentCall, *, reports_subagents: bool) -> list[EditView]:
        if known.paths == ():
            self._note_done(known.conversation)
            return []
        name = self._open.name_of(known)
        try:
            with self._locked():
                if known.agent and not self._is_subagent_at_work(known, reports_subagents=reports_subagents):
                    return []
                open_calls = self._calls()
                begun = open_calls.get(name)
                if begun is None and self._is_done(known):
                    self._open.remove(self._open.name_of(_expecting(known)))  # it was late, and is not missing
                    return []
                if begun is not None and not begun.is_over:
                    return []
                self._doubt_earlier(name, known, open_calls)
                paths = known.paths
                if any(map(self._scan.missing_files_below, paths or ())):
                    paths = None  # files below were deleted or moved anywhere, and not by this call
                found = self._scan.record_edits(paths, open_calls)
                self._open.note_seen(paths or ())
                # An earlier call of this name, whose hook was killed, may have left the note of its end.
                self._open.remove(name)
                # The files that a tool names were just scanned. Others may be ignored and found only later.
                since = None if known.paths is None else 0
                newest = self._processes.newest_number() if known.paths is None else 0
                # What this look has found was there before: no later report makes it the call's.
                self._open.put(name, self._open.in_turn(replace(known, began=now(), since=since, newest=newest)))
                return found
        except (CasError, OSError) as error:
            # The agent goes on in any case: what the tool does must not count as the person's. Where nothing could be
            # recorded, what the person did before must not count as the tool's either.
            is_read = isinstance(error, PathError)
            with suppress(CasError, OSError):
                if not self._open.is_open(known) and not self._is_done(known):
                    missed = replace(known, since=None, is_announced=is_read, doubt="" if is_read else _NOT_LOOKED)
                    self._open.put(name, self._open.in_turn(missed))
            raise

    def end(self, call: AgentCall, *, has_failed: bool = False) -> list[EditView]:
        """Note that a call has ended; return the edits for what it and others changed. Raises what `begin` raises.

        If no hook reported its beginning, changes of the files that it named are its own. If it may have changed any
        file, what is found now may be its own. The same holds of a call whose turn has ended before. A named file that
        is unchanged is expected to change until the turn ends, unless the tool has failed (`has_failed`).
        """
        known = self._known(call)
        self._note_heard(known.conversation, _END)
        announced = self.server_calls.withdraw(known) if known.asks else None
        if known.paths == () and not self._open.is_open(call):
            self._note_done(known.conversation, ended=announced)
            return []
        # Noted first: if anything fails from here on, the time of the end is known.
        is_first_report = self._open.note_end(self._open.name_of(call))
        begun = None
        with self._locked():
            open_calls = self._calls()
            name = self._open.name_of(call)
            if name not in open_calls and self._is_done(known, before=True):
                if self._open.was_cut_off(known):
                    open_calls[name] = replace(known, is_left=True)
                    self._note_done(known.conversation, [known])
                return self._scan.record_edits(known.paths, open_calls)
            begun_after = self._missing.earliest_beginning(known, self._ended_at(known))
            if not call.is_named:
                name = _name_among(open_calls, known, self._ended_at(known)) or name
                self._note_end(known)
            paths, is_begun = known.paths, name in open_calls
            if paths is not None:
                # After damage to the log, it may as well have ended long ago.
                doubt = _NOT_ANNOUNCED if self._open.may_have_forgotten(known) else ""
                open_calls.setdefault(name, self._open.in_turn(replace(known, is_announced=False, doubt=doubt)))
            if name in open_calls:
                # It was allowed. The paths that it named may resolve differently than when it began.
                begun = open_calls[name]
                if not is_begun:
                    self._missing.note_unannounced(name, begun, begun_after)
                paths = _all_of(begun.paths, known.paths)
                self._note_done(known.conversation, [begun, known], ended=begun)
                open_calls[name] = replace(
                    begun,
                    paths=begun.paths if paths is None else paths,
                    is_asked=False,
                    doubt="" if begun.is_announced else begun.doubt,
                    is_left=begun.is_left and begun.is_behind,
                    # A formatter that the client runs in parallel with this hook may still change the named files.
                    ended=begun.ended if paths is None or not is_first_report else 0,
                )
            else:
                open_calls[name] = replace(known, is_left=True, is_announced=False, doubt=_NOT_ANNOUNCED)
                self._note_heard(known.conversation, _UNANNOUNCED)
                self._missing.note_unannounced(name, open_calls[name], begun_after)
                # Its beginning may be reported late, and no second end would follow.
                self._note_done(known.conversation, [known])
            left = [] if begun is None or paths is not None else self._outliving([begun])
            found = self._scan.record_edits(paths, open_calls)
            if begun is not None:
                self._missing.note_late_end(begun)
                found += self._note_outliving(begun, left, open_calls)
                if not has_failed:
                    self._expect(replace(begun, is_asked=False, doubt="" if is_begun else _NOT_ANNOUNCED), found)
            self._open.remove(name)
            return found

    def fail(self, call: AgentCall) -> list[EditView]:
        """Note that a call failed: do what `end` does, or `mark_not_run` if a person was asked and may have refused.

        For a client that reports both the answer and the end: the answer may be reported after the end.
        """
        begun = self._open.calls().get(self._open.name_of(call))
        if begun is None or replace(begun, doubt="").is_known_to_run:
            return self.end(call, has_failed=True)
        return self.mark_not_run(call, may_have_run=True)

    def keep_running(self, call: AgentCall) -> list[EditView]:
        """Note that a call has answered and runs on; return the edits found. Raises as `begin`.

        Until its turn ends, changes are attributed to it as to any call. Later, until its session ends or `pause` or
        `end_task` ends it, it may have made a change, but none is attributed to it. The same holds from the start if
        its beginning was not reported.
        """
        known = self._known(call)
        self._note_heard(known.conversation, _END)
        if known.paths == ():
            return []
        with self._locked():
            open_calls = self._calls()
            name = self._open.name_of(call)
            begun = open_calls.get(name)
            if begun is not None:  # it was allowed
                doubt = "" if begun.is_announced else begun.doubt
                open_calls[name] = replace(begun, is_asked=False, is_behind=True, task=call.task, doubt=doubt)
            elif not self._is_done(known, before=True):
                open_calls[name] = self._open.in_turn(replace(known, is_behind=True, is_left=True))
                if known.paths is None:
                    self._missing.note_unannounced(name, open_calls[name], self._missing.earliest_beginning(known))
            if name in open_calls:
                self._open.put(name, open_calls[name])
            found = self._scan.record_edits(known.paths, open_calls)
            if begun is not None:
                self._missing.note_late_end(begun)
            return found

    def end_task(self, conversation: str, task: str) -> list[EditView]:
        """Note that what a call left running in the background has ended. Returns and raises as `pause`.

        `task`: the client's id of it, as in `AgentCall.task`.
        """
        return self._end_all(
            conversation, lambda call: bool(task) and call.task == task, lambda _: {}, is_reported=lambda _: True
        )

    def mark_not_run(self, call: AgentCall, *, may_have_run: bool = False) -> list[EditView]:
        """Note that a call did not run after all; return the edits found, none of them its own. Raises as `begin`.

        `may_have_run`: that is not certain, so that what is found may be its own.
        """
        known = self._known(call)
        self._note_heard(known.conversation, _END)
        if known.asks:
            self.server_calls.withdraw(known)
        if known.paths == () and not self._open.is_open(call):
            return []
        name = self._open.name_of(call)
        begun = self._open.calls().get(name)
        if begun is not None:
            # Noted first: if anything fails from here on, no change is attributed to it, as before the answer.
            self._open.put(name, replace(begun, is_asked=True))
        with self._locked():
            open_calls = self._calls()
            begun = open_calls.pop(name, known)
            if may_have_run:
                open_calls[name] = replace(begun, is_asked=True)
            paths = _all_of(begun.paths, known.paths)
            found = self._record_released(paths or (), [begun], open_calls) + self._scan.record_edits(paths, open_calls)
            self._note_done(known.conversation, [begun, known])
            self._open.remove(name)
            return found

    def asked(self, call: AgentCall) -> None:
        """Note that a person is asked whether a call may run.

        If the report has no id, note it for every similar call; the end of a call shows that it was running already.
        """
        known = self._known(call)
        self._note_heard(known.conversation, _BEGINNING)
        with self._locked():
            open_calls = self._calls()
            own = self._open.name_of(call)
            for name, begun in {own: open_calls[own]}.items() if own in open_calls else open_calls.items():
                is_similar = (
                    begun.kind is CallKind.CALL
                    and _is_similar(begun, known)
                    and begun.notes.get("command") == known.notes.get("command")
                )
                if name == own or is_similar:
                    self._open.put(name, replace(begun, is_asked=True))

    def allowed(self, call: AgentCall) -> None:
        """Note that a person has allowed a call to run."""
        with self._locked():
            begun = self._open.calls().get(self._open.name_of(call))
            if begun is not None:
                self._open.put(self._open.name_of(call), replace(begun, is_asked=False))

    def pause(self, conversation: str, agent: str = "", running: Collection[str] | None = None) -> list[EditView]:
        """Note that one agent of the conversation has no running call; return the edits found. Raises as `begin`.

        `agent`: the id of the subagent; "": the conversation's main agent, which may go on without its subagents.
        `running`: the client's ids of what runs on in the background (None: not reported). What may run on, a
        subagent's call included, stays a possible author of changes.
        """
        old = now() - _SUBAGENT_PATIENCE
        return self._end_all(
            conversation,
            lambda call: call.agent == agent or (not agent and call.began < old),
            lambda kept: {"agents": _agents_without(agent, kept)} if agent else self._stopped(conversation),
            lambda call: call.agent != agent or (call.is_behind and _may_run(call, running)),
            is_reported=lambda call: call.is_behind and running is not None,
        )

    def _stopped(self, conversation: str) -> dict[str, object]:
        """Return the fields of a session that say that its agent has ended its turn, and when that was first said."""
        is_first = any(not span.until for span in self._open.spans(conversation))
        return {"waits": True, **({"stopped": now()} if is_first else {})}

    def over(self, conversation: str) -> list[EditView]:
        """Note that neither the conversation nor its subagents have a running call. Returns and raises as `pause`."""
        return self._end_all(conversation, lambda _: True, lambda _: {"agents": []})

    def start(self, conversation: str, *, client: str = "", model: str = "") -> list[EditView]:
        """Note that a conversation begins, or resumes with a deferred call. Returns and raises as `over`.

        `client`, `model`: "": not reported. What follows without a prompt is a turn of its own.
        """
        arrived = now()
        try:
            return self.over(conversation)
        finally:
            # A client may not wait for this hook, so that the one of the first prompt was faster.
            turn = self._open.turn(conversation)
            self._open.note(sanitized_name(conversation), lambda _: {"heard": []})
            if turn is None or turn.began < arrived:
                self.note_turn(TurnInfo(session=conversation, began=0, client=client, model=model))

    def note_subagent(self, conversation: str, agent: str, prompt_id: str = "") -> None:
        """Note that a subagent of the conversation begins, for the prompt that the client names ("": none is named)."""
        self._note_subagent(conversation, agent, prompt_id, has_just_begun=True)

    def notice(self, otherwise: CallInfo, paths: Sequence[str] | None = None) -> "Recorded":
        """Record what changed: as the change of the open call that made it, or as `otherwise` if no call can have.

        A change that some call may have made, but none is known to have made, is unattributed. `paths`:
        only these files, and what is below these folders. Raises ConversationReserved, and what `begin` and paths
        raise.
        """
        if otherwise.conversation in RESERVED_CONVERSATIONS and otherwise.origin is not Origin.EXTERNAL:
            raise ConversationReserved(otherwise.conversation)
        with self._locked(None):  # no agent waits for this
            open_calls = self._calls()
            if paths is not None and any(call.is_over for call in open_calls.values()):
                self._scan.record_edits(None, open_calls)
                open_calls = self._calls()
            return self._scan.record(paths, open_calls, otherwise)

    def notice_git(self) -> None:
        """Record what git did since the last look, and leave other changes to the next scan. Raises as `notice`."""
        from objstore.agents.record import recording_git

        with self._locked(None), recording_git(self._journal, Attribution(self._open)):
            pass

    def knows(self, conversation: str) -> bool:
        """Return whether hooks have reported the conversation in this workspace, or it has an open call."""
        name = sanitized_name(conversation)
        return bool(self._open.session(name)) or any(call.conversation == name for call in self._open.calls().values())

    def is_open(self, call: AgentCall) -> bool:
        """Return whether the beginning of the call was reported here, and not its end."""
        return self._open.is_open(call)

    def note_other_workspaces(self, conversation: str, roots: Iterable[str]) -> None:
        """Remember other workspaces in which calls of the conversation begin; nothing else of them is kept here."""

        def noted(kept: Mapping[str, object]) -> dict[str, object]:
            older = [root for root in texts_of(kept.get("elsewhere")) if root not in newest]
            return {"elsewhere": [*older, *newest][-_MAX_OTHER_WORKSPACES:]}

        newest = list(roots)
        self._open.note(conversation, noted)
        self._note_heard(conversation, _BEGINNING)

    def other_workspaces(self, conversation: str) -> list[str]:
        """Return the other workspaces in which calls of the conversation began, the newest last."""
        return texts_of(self._open.session(conversation).get("elsewhere"))

    def note_turn(self, turn: TurnInfo, *, has_begun: bool = False, prompt_id: str = "") -> None:
        """Note that a turn begins: the edits that follow belong to it, and its prompt explains them.

        `turn.began`: 0: now. `has_begun`: the agent works on its prompt, and doesn't wait for one. `prompt_id`: the
        client's id of the prompt, with which later reports may name it ("": it has none).
        """
        session = sanitized_name(turn.session)
        before = self._open.turn(session)
        noted = TurnInfo(
            session=session,
            began=turn.began or now(),
            prompt=sanitized_text(turn.prompt),
            client=sanitized_text(turn.client or ("" if before is None else before.client)),
            model=sanitized_text(turn.model or ("" if before is None else before.model)),
            since=turn.since,
        )
        client = self._open.client(session)
        also = {"prompted": min(noted.began, now()), **({"waits": False} if has_begun else {})}
        noted = self._open.note_turn(noted, also, prompt_id)
        self._open.begin_turn(turn.session)
        if has_begun and self._open.session(session).get("heard") in (None, []):
            silent = replace(_silent_turn(session), turn=noted, process=client)
            self._open.put(self._open.name_of(silent), silent)

    def resume(self, conversation: str) -> None:
        """Note that the agent goes on with its turn after a pause, though no person said anything."""
        self._open.note(conversation, lambda _: {"waits": False})

    def awaits_prompt(self, conversation: str) -> bool:
        """Return whether the agent has ended its turn, as far as that was reported, and nothing began since."""
        return self._open.session(sanitized_name(conversation)).get("waits") is True

    def turn(self, conversation: str, agent: str = "", prompt_id: str = "") -> TurnInfo | None:
        """Return the turn that a report of a conversation is about (None: no beginning was reported).

        `agent`: the subagent that reports. `prompt_id`: the prompt that the client names. "": neither; the newest turn.
        """
        return self._open.turn(conversation, agent, prompt_id)

    def join(self, conversation: str, other: str, tool: str) -> None:
        """Report another conversation's rejections to this one too: a tool of our server said that it works in that.

        Only if the other conversation has an edit by that tool, is no session with hooks of its own, and no other
        conversation has joined it. `tool`: its name, with the client's prefix. Raises what reads and the disk raise.
        """
        _, joined = self._open.reported_rejections(conversation)
        if other in joined or other == sanitized_name(conversation) or self.knows(other):
            return
        from objstore.agents.server_calls import is_tool_named
        from objstore.history.edit_queries import edits

        with self._journal.reading():
            made = edits(self._journal, EditFilter(conversation=other, newest_first=True, limit=_MAX_SCANNED_PATHS))
        if any(is_tool_named(tool, view.edit.tool) for view in made):
            self._open.join(conversation, other)

    # ---- inside

    @cached_property
    def _missing(self) -> "MissingReports":
        from objstore.agents.missing_reports import MissingReports  # as above: when a call begins, none is missing

        return MissingReports(self._open, self._scan)

    @contextmanager
    def _locked(self, patience: float | None = _PATIENCE) -> Iterator[None]:
        """Keep other processes from beginning, ending and scanning. Raises StoreLocked, and what the disk raises.

        So a scan finds only changes of the calls that were open when it asked for them. Otherwise one agent's scan
        could find what another's call, begun during the scan, has done, and attribute it to the first. `patience`:
        seconds to wait for the others (None: as long as a writer waits).
        """
        lock = WriterLock(self._open.lock)
        try:
            lock.acquire(patience)
            try:
                yield
            finally:
                lock.release()
        finally:
            lock.close()

    def _calls(self) -> dict[str, AgentCall]:
        """Return the open calls, and leave open what was found while those ran whose end was only inferred.

        The caller holds the lock. Raises what the disk raises.
        """
        open_calls = self._open.authors()
        for call in [*open_calls.values()]:
            if call.is_over and call.doubt in {ABANDONED, END_LOST}:
                self._missing.note_lost_end(call)
            if call.is_over and call.doubt == ABANDONED and call.paths is None:
                self._put_outliving(call, self._outliving([call]), open_calls)
        if (since := self._open.unheard_since()) < MAX_INT:
            for name, call in open_calls.items():
                if call.doubt == END_AWAITED:
                    self._open.put(name, call)
            self._scan.leave_unattributed(since, "a hook had failed")
        return open_calls

    def _known(self, call: AgentCall) -> AgentCall:
        """Return the call with its paths relative to this workspace, without those outside it."""
        covered: list[str] | None = None
        if call.paths is not None:
            covered = []
            for path in call.paths:
                # Some programs write through a symlink, and some replace it, so both paths count.
                located = [each for real in (False, True) if (each := self._located(path, real=real))]
                covered += [each for each in dict.fromkeys(located) if each not in covered]
        return replace(
            call,
            conversation=sanitized_name(call.conversation),
            paths=None if covered is None else tuple(covered),
            began=call.began or now(),
        )

    def _located(self, path: str, *, real: bool) -> str:
        """Return a path relative to the workspace, or "" if it is outside or no valid path (one with a NUL).

        `real`: follow a symlink at the path itself too.
        """
        with suppress(PathError, ValueError), reaching(path):
            if real:
                path = os.path.realpath(os.path.join(self._journal.tree.root, path))
            # A path below a file is allowed: a patch may replace the file with a folder.
            with self._journal.tree.locate(path, changing=True, will_be_vacated=lambda _: True) as resolved:
                return resolved.path
        return ""

    def _ended_at(self, call: AgentCall) -> int:
        """Return when the end of a call without an id was last reported in these words (0: long ago, or never)."""
        ended = _ends(self._open.session(call.conversation)).get(self._open.name_of(call))
        return ended if isinstance(ended, int) else 0

    def _note_end(self, call: AgentCall) -> None:
        """Remember that the end of a call without an id was reported: a client may report it twice."""
        name = self._open.name_of(call)

        def noted(kept: Mapping[str, object]) -> dict[str, object]:
            others = [(other, at) for other, at in _ends(kept).items() if other != name]
            return {"ended": dict([*others, (name, now())][-_MAX_REMEMBERED_ENDS:])}

        self._open.note(call.conversation, noted)

    def _is_done(self, call: AgentCall, *, before: bool = False) -> bool:
        """Return whether a call is known to have ended; False without an id, because another call may look the same.

        `before`: also if it ended in an earlier turn.
        """
        return call.is_named and self._open.is_done(call, before=before)

    def _note_done(
        self,
        conversation: str,
        calls: Iterable[AgentCall] = (),
        *,
        are_cut_off: bool = False,
        ended: AgentCall | None = None,
    ) -> None:
        """Remember that calls have ended, as far as they have ids. Parameters as for `OpenCalls.note_done`."""
        named = [call for call in calls if call.is_named]
        if named or ended is not None or any(not span.until for span in self._open.spans(conversation)):
            self._open.note_done(conversation, named, are_cut_off=are_cut_off, ended=ended)

    def _note_heard(self, conversation: str, what: str) -> None:
        """Note what arrives of the tools of a session: until something does, an agent may work unheard."""
        name = sanitized_name(conversation)
        with suppress(CasError, OSError):  # until it is noted, changes in the session's turns are unattributed
            before = texts_of(self._open.session(name).get("heard"))
            if what not in before:
                self._open.note(name, lambda kept: {"heard": [*texts_of(kept.get("heard")), what]})
                from objstore.disk.witnesses.remarks import HEARD  # an agent waits for what each hook imports

                self._remark(HEARD, name)
                if not before:
                    self._open.remove(self._open.name_of(_silent_turn(name)))

    def _remark(self, kind: str, conversation: str) -> None:
        from objstore.disk.witnesses.remarks import add_remark  # as above

        turn = self._open.turn(conversation)
        add_remark(self._journal.tree.root, kind, "" if turn is None else turn.client, conversation)

    def _note_silence(self, conversation: str, ended: Collection[AgentCall], *, is_changed: bool) -> None:
        """Remark what has not arrived of a session's tools until now. `ended`: what no report has ended."""
        heard = texts_of(self._open.session(conversation).get("heard"))
        cut_off = [call for call in ended if call.kind is CallKind.CALL and not call.is_asked]
        if is_changed and any(call.kind is CallKind.TURN for call in ended):
            self._remark("no-events", conversation)
        elif _END not in heard and len(cut_off) > 1:  # a single one may have been interrupted
            self._remark("no-ends", conversation)
        elif _UNANNOUNCED in heard and _BEGINNING not in heard:
            self._remark("no-beginnings", conversation)

    def _doubt_earlier(self, name: str, call: AgentCall, open_calls: dict[str, AgentCall]) -> None:
        """Doubt that the open calls of an agent still run, now that it begins another one. Raises what the disk raises.

        Either it runs several at once, or their ends are lost.
        """
        for other, begun in open_calls.items():
            is_of_agent = (begun.conversation, begun.agent) == (call.conversation, call.agent) and other != name
            is_in_front = begun.kind is CallKind.CALL and not begun.is_behind and not begun.is_over
            if is_of_agent and is_in_front and begun.is_known_to_run:
                open_calls[other] = replace(begun, doubt=END_AWAITED)
                self._open.put(other, open_calls[other])

    def _record_released(
        self, paths: Iterable[str], released: Sequence[AgentCall], open_calls: Mapping[str, AgentCall]
    ) -> list[EditView]:
        """Record what changed in files that waited for calls which may not have run. Raises as `begin`.

        No look has seen these files since the calls began: a shell that began later may not have made the change, and
        one that has ended since may have.
        """
        paths = list(paths)
        since = min((call.began for call in released), default=MAX_INT)
        possible = {
            name: replace(call, doubt=call.doubt or _NOT_SEEN)
            for name, call in open_calls.items()
            if call.paths is None and call.kind is CallKind.CALL and call.began > since
        }
        for path, conversation in self._open.unseen().items():
            if path in paths:
                ended = AgentCall(conversation=conversation, id=path, tool="", paths=(path,), kind=CallKind.PROCESS)
                possible[self._open.name_of(ended)] = replace(ended, is_left=True, doubt=_NOT_SEEN)
        found = self._scan.record_released(paths, {**open_calls, **possible})
        self._open.note_seen(paths)
        return found

    def _expect(self, call: AgentCall, found: Iterable[EditView]) -> None:
        """Expect changes of the files that a call has named and may have left unchanged. Raises what the disk raises.

        A file that was changed in the moment before the call began may have been changed by it: what a person writes
        there until the turn ends is then taken for the agent's, which is under review, and not the other way round.
        """
        changed = {os.fsdecode(view.edit.path) for view in found}
        paths = tuple(
            path for path in call.paths or () if path not in changed and self._scan.may_be_unchanged(path, call.began)
        )
        if paths and not call.is_left:
            expected = replace(_expecting(call), paths=paths)
            self._open.put(self._open.name_of(expected), expected)

    def _outliving(self, calls: Iterable[AgentCall]) -> list[ProcessName]:
        """Return the processes that began during one of the calls and still run."""
        root = os.path.realpath(self._journal.tree.root)
        at = now()
        found = [self._processes.outlived(call.newest, (at - call.began) / 1e6, call.process, root) for call in calls]
        return list(dict.fromkeys(process for each in found for process in each))

    def _note_outliving(
        self, call: AgentCall, left: Sequence[ProcessName], open_calls: dict[str, AgentCall]
    ) -> list[EditView]:
        """Note which processes have outlived a call; return the edits for what those changed that ended meanwhile."""
        ended = [process for process in left if self._processes.has_ended(process)]
        self._put_outliving(call, left, open_calls, ended)
        return self._scan.record_edits(None, open_calls) if ended else []

    def _put_outliving(
        self,
        call: AgentCall,
        left: Sequence[ProcessName],
        open_calls: dict[str, AgentCall],
        ended: Collection[ProcessName] = (),
    ) -> None:
        """Say of processes that they have outlived a call; of those that have `ended` meanwhile, not in the log."""
        for process in left:
            behind = replace(
                call,
                id=f"process {process}",
                kind=CallKind.PROCESS,
                is_asked=False,
                is_behind=True,
                is_left=True,
                doubt="",
                process=process,
                ended=0,
            )
            open_calls[self._open.name_of(behind)] = behind
            if process not in ended:
                self._open.put(self._open.name_of(behind), behind)

    def _note_subagent(self, conversation: str, agent: str, prompt_id: str, *, has_just_begun: bool) -> None:
        """Note that a subagent works. `has_just_begun`: if it is new, it began now; otherwise when is not known."""
        from objstore.agents.missing_reports import starts_of  # as above

        def noted(kept: Mapping[str, object]) -> dict[str, object]:
            starts, sent = starts_of(kept), kept.get("sent")
            is_back = agent not in texts_of(kept.get("agents"))
            is_new = is_back and agent not in starts
            is_sent = not isinstance(sent, dict) or agent not in sent or (has_just_begun and is_back)
            if has_just_begun and is_new:
                starts = dict([*starts.items(), (agent, now())][-_MAX_SUBAGENTS:])
            return {
                "agents": [*_agents_without(agent, kept), agent][-_MAX_SUBAGENTS:],
                "starts": starts,
                **(note_sent(kept, agent, prompt_id) if is_sent else {}),
            }

        self._open.note(conversation, noted)

    def _is_subagent_at_work(self, call: AgentCall, *, reports_subagents: bool) -> bool:
        """Return whether a call is of a subagent that works for the conversation, as far as that is known."""
        kept = self._open.session(call.conversation)
        if call.agent in texts_of(kept.get("agents")):
            return True
        if reports_subagents and kept.get("waits") is True:
            return False
        self._note_subagent(call.conversation, call.agent, call.prompt_id, has_just_begun=False)
        return True

    def _end_all(
        self,
        conversation: str,
        is_ended: Callable[[AgentCall], bool],
        update: Callable[[Mapping[str, object]], Mapping[str, object]],
        runs_on: Callable[[AgentCall], bool] = lambda _: False,
        is_reported: Callable[[AgentCall], bool] = lambda _: False,
    ) -> list[EditView]:
        """End the calls of a conversation whose end was not reported; return the edits found.

        `update`: the change of what is remembered of the conversation, as `OpenCalls.note` takes it. `runs_on`: which
        of these calls may go on, and stay possible authors of changes. `is_reported`: of which calls the client says
        that they have ended. Of any other, what is found now, and what was found while it was open, may be its own or
        a person's. The same holds of a call that a person was asked about.
        """
        conversation = sanitized_name(conversation)
        self.server_calls.withdraw_all(conversation, is_ended)

        def chosen(open_calls: Mapping[str, AgentCall]) -> set[str]:
            return {
                name
                for name, call in open_calls.items()
                if call.conversation == conversation and call.kind is not CallKind.PROCESS and is_ended(call)
            }

        # Noted first: if anything fails from here on, the time of their ends is known.
        open_calls = self._open.calls()
        inferred = {
            name
            for name in chosen(open_calls)
            if open_calls[name].kind is CallKind.CALL
            and not (open_calls[name].is_over or is_reported(open_calls[name]) or runs_on(open_calls[name]))
        }
        for name in chosen(open_calls):
            if open_calls[name].is_known_to_run and not runs_on(open_calls[name]):
                self._open.note_end(name, is_inferred=name in inferred)
        self._open.note(conversation, update)
        with self._locked():
            open_calls = self._calls()
            ended = chosen(open_calls)
            running = {name for name in ended if not open_calls[name].is_over and runs_on(open_calls[name])}
            for name in ended & (inferred | running):
                if name in inferred or not open_calls[name].is_behind:
                    doubt = END_LOST if name in inferred else _OVERDUE
                    open_calls[name] = replace(open_calls[name], doubt=doubt)
            over = (open_calls[name] for name in sorted(ended - running))
            shells = [call for call in over if call.kind is CallKind.CALL and call.paths is None]
            left = {call.id: self._outliving([call]) for call in shells}
            refused = {name for name in ended if open_calls[name].is_asked and not open_calls[name].is_over}
            released = [open_calls[name] for name in sorted(refused)]
            paths = dict.fromkeys(path for call in released for path in call.paths or ())
            found = self._record_released(paths, released, open_calls) + self._scan.record_edits(None, open_calls)
            for call in shells:
                found += self._note_outliving(call, left[call.id], open_calls)
            for name in sorted(inferred & ended):
                self._missing.note_lost_end(open_calls[name])
            self._note_silence(conversation, [open_calls[name] for name in ended - running], is_changed=bool(found))
            cut_off = [open_calls[name] for name in ended - refused - running]
            if cut_off := [call for call in cut_off if call.kind is CallKind.CALL]:
                self._note_done(conversation, cut_off, are_cut_off=True)
            unanswered = [open_calls[name] for name in refused - running if open_calls[name].is_named]
            if unanswered:
                self._open.note_unanswered(conversation, unanswered)
            for name in ended:
                if name in running:
                    self._open.put(name, replace(open_calls[name], is_left=True))
                else:
                    self._open.remove(name)
            self._open.forget_old_sessions()
            with suppress(CasError, OSError):  # the log is only longer than it need be
                self._open.cut()
            from objstore.storage.transaction.space_reserve import reserve_space

            reserve_space(self._journal.tree.root, self._journal.disk)  # a beginning may have used it
            return found


def _expecting(call: AgentCall) -> AgentCall:
    """Return a call that has ended, as one that may yet change the files that it named."""
    return replace(call, id=f"expected {call.id}", kind=CallKind.EXPECTED, ended=0)


def _silent_turn(session: str) -> AgentCall:
    """Return what is taken for a turn of a session of which no event of a tool has arrived."""
    return AgentCall(
        conversation=session, id="", tool="", paths=None, kind=CallKind.TURN, is_left=True, began=now(), since=None
    )


def _may_run(call: AgentCall, running: Collection[str] | None) -> bool:
    """Return whether a call may run in the background. `running`: what is known to (None: nothing is known)."""
    return running is None or not call.task or call.task in running


def _agents_without(agent: str, kept: Mapping[str, object]) -> list[str]:
    """Return the subagents that have begun and not ended, from what is kept of a conversation, without one of them."""
    return [each for each in texts_of(kept.get("agents")) if each != agent]


def _ends(kept: Mapping[str, object]) -> dict[str, object]:
    """Return when the ends of calls without ids were last reported, from what is kept of a conversation."""
    ended = kept.get("ended")
    return ended if isinstance(ended, dict) else {}


def _all_of(begun: tuple[str, ...] | None, known: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the paths that a call named, as they resolved when it began and as they resolve now (None: any)."""
    return None if begun is None or known is None else tuple(dict.fromkeys([*begun, *known]))


def _is_similar(begun: AgentCall, call: AgentCall) -> bool:
    """Return whether both calls are of the same tool, for the same files, by the same agent."""
    return (begun.conversation, begun.agent, begun.tool, begun.paths) == (
        call.conversation,
        call.agent,
        call.tool,
        call.paths,
    )


def _name_among(open_calls: Mapping[str, AgentCall], call: AgentCall, ended_at: int) -> str:
    """Return the name of the open call that has ended, for a client without call ids ("": its own name finds it).

    Another program's hook may have changed the input since the call began. Calls of one tool end in the order in which
    they began. `ended_at`: when the same end was reported before; a call that had begun by then is not meant.
    """
    name = OpenCalls.name_of(call)
    if name in open_calls:
        return ""
    alike = [
        (begun.began, name)
        for name, begun in open_calls.items()
        if begun.kind is CallKind.CALL
        and not begun.is_named
        and not begun.is_over
        and begun.began > ended_at
        and _is_similar(begun, call)
    ]
    return min(alike)[1] if alike else ""
