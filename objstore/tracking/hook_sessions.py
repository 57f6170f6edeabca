"""Agents' calls as they run: who may have made the changes that are found while they do.

A hook tells when a tool of an agent begins and when it is over, and in between the agent's own program changes files.
A call that a person was asked about and that nobody ended was not let run: it has changed nothing.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from objstore.clock import now
from objstore.errors import BlobMissing, DiskFailed, PathError, TreeInvalid
from objstore.fastclass import replace
from objstore.fs.confined_path import look_at, open_folder
from objstore.fs.disk import reaching
from objstore.fs.writer_lock import WriterLock
from objstore.model.results import NOBODY, CallInfo, Whose
from objstore.model.views import EditFilter, EditView, UnreportedRejections
from objstore.review.attribution import AgentCall, CallAttribution, OpenCalls, sanitized_name, sanitized_text
from objstore.transaction.journal import Journal

if TYPE_CHECKING:
    from objstore.tracking.record import Recorded

__all__ = ["HookSessions"]

_PATIENCE: Final = 10.0
"""Seconds that an agent waits while others begin, end or look: a first look at a large tree may take some."""

_SUBAGENT_PATIENCE: Final = 15 * 60 * 1_000_000
"""Microseconds that a subagent's call may take of which nothing more is heard: its session may go on without it."""

_MAX_SUBAGENTS: Final = 200
_MAX_OTHER_WORKSPACES: Final = 20
_MAX_REMEMBERED_ENDS: Final = 20
"""Ends of calls that are remembered of a conversation: more tools do not run at once."""

_MAX_SCANNED_PATHS: Final = 20
"""Edits of a conversation, the newest, among which that of a tool is looked for that is just over."""


class HookSessions:
    """The open calls of all agents in one workspace, and what each conversation said and was told."""

    def __init__(self, journal: Journal) -> None:
        """Know where they are kept."""
        self._journal: Final = journal
        self._open: Final = OpenCalls(journal)

    # ---- what hooks tell

    def begin(self, call: AgentCall, *, reports_subagents: bool = False) -> list[EditView]:
        """Note that a call begins; return what was found to have changed before. Raises what Call.commit raises.

        A second word of the same call changes nothing. `tells_of_agents`: whether the client says when a subagent
        begins. One that it hasn't told of, while the session waits for a person, is let run no tool, and that is not
        told: Claude Code so asks one what the person might say next.
        """
        known = self._known(call)
        if known.paths == ():
            return []
        with self._alone():
            if call.agent and not self._is_sent(known, reports_subagents=reports_subagents):
                return []
            standing = self._open.calls()
            begun = standing.get(self._open.name_of(call))
            if (begun is not None and not begun.is_over) or (begun is None and self._is_done(known)):
                return []
            paths = known.paths
            if any(map(self._missing_files_below, paths or ())):
                paths = None  # what took that away may have put it anywhere, and is not this call
            found = self._settle(paths, standing)
            # One whose hook was killed may have left the word that it was over.
            self._open.remove(self._open.name_of(call))
            # What a tool names was just looked at. Of all else some may be ignored, changed before, and be seen later.
            self._open.put(self._open.name_of(call), replace(known, since=None if known.paths is None else 0))
            return found

    def end(self, call: AgentCall) -> list[EditView]:
        """Note that a call is over; return what it and others were found to have changed. Raises as `begin`.

        Where nobody said that it began, what it named is still its own; what it didn't name is external.
        """
        known = self._known(call)
        if known.paths == () and not self._open.is_open(call):
            return []
        # Should anything fail from here on, it is known when the call was over.
        is_news = self._open.note_end(self._open.name_of(call))
        with self._alone():
            standing = self._open.calls()
            name = self._open.name_of(call)
            if name not in standing and self._is_done(known, before=True):
                return self._settle(known.paths, standing)
            if not call.is_named:
                name = _name_among(standing, known, self._ended_at(known)) or name
                self._note_end(known)
            paths = known.paths
            if paths is not None:
                standing.setdefault(name, known)
            if name in standing:
                # It was let run. What it named may lead elsewhere than when it began.
                begun = standing[name]
                paths = _all_of(begun.paths, known.paths)
                self._note_done([begun, known])
                standing[name] = replace(
                    begun,
                    paths=begun.paths if paths is None else paths,
                    is_asked=False,
                    # A formatter that the client runs beside this hook may still be at work on the files that it named.
                    ended=begun.ended if paths is None or not is_news else 0,
                )
            else:
                self._note_done([known])  # its beginning may be told yet, and nothing would end it then
            found = self._settle(paths, standing)
            self._open.remove(name)
            return found

    def fail(self, call: AgentCall) -> list[EditView]:
        """Note that a call failed; as `end`, or as `withdraw` where a person was asked and is not known to have let it.

        For a client that tells of both: its word of the answer may come after that of the end.
        """
        begun = self._open.calls().get(self._open.name_of(call))
        return self.end(call) if begun is None or begun.is_known_to_run else self.mark_not_run(call)

    def keep_running(self, call: AgentCall) -> list[EditView]:
        """Note that a call has answered and runs on, until its turn ends; return what was found. Raises as `begin`."""
        known = self._known(call)
        if known.paths == ():
            return []
        with self._alone():
            standing = self._open.calls()
            name = self._open.name_of(call)
            if name in standing:
                standing[name] = replace(standing[name], is_asked=False)  # it was let run
                self._open.put(name, standing[name])
            return self._settle(known.paths, standing)

    def mark_not_run(self, call: AgentCall) -> list[EditView]:
        """Note that a call was not let run after all; return what was found, none of it its own. Raises as `begin`."""
        known = self._known(call)
        if known.paths == () and not self._open.is_open(call):
            return []
        name = self._open.name_of(call)
        begun = self._open.calls().get(name)
        if begun is not None:
            # Should anything fail from here on, it claims nothing: it is as if the person had not answered yet.
            self._open.put(name, replace(begun, is_asked=True))
        with self._alone():
            standing = self._open.calls()
            begun = standing.pop(name, known)
            self._note_done([begun, known])
            self._open.remove(name)
            paths = _all_of(begun.paths, known.paths)
            return self._let_go(paths or (), standing) + self._settle(paths, standing)

    def asked(self, call: AgentCall) -> None:
        """Note that a person is asked whether a call may run.

        Where it comes without its id, that is any that is like it; one of those that runs already says so by its end.
        """
        known = self._known(call)
        with self._alone():
            standing = self._open.calls()
            own = self._open.name_of(call)
            for name, begun in {own: standing[own]}.items() if own in standing else standing.items():
                is_like = _is_like(begun, known) and begun.notes.get("command") == known.notes.get("command")
                if name == own or is_like:
                    self._open.put(name, replace(begun, is_asked=True))

    def allowed(self, call: AgentCall) -> None:
        """Note that a person has let a call run."""
        with self._alone():
            begun = self._open.calls().get(self._open.name_of(call))
            if begun is not None:
                self._open.put(self._open.name_of(call), replace(begun, is_asked=False))

    def pause(self, conversation: str, agent: str = "") -> list[EditView]:
        """Note that no call of one agent in the conversation is running; return what was found. Raises as `begin`.

        `agent`: the subagent; "": the conversation's own, which may go on without its subagents.
        """
        old = now() - _SUBAGENT_PATIENCE
        return self._end_all(
            conversation,
            lambda call: call.agent == agent or (not agent and call.began < old),
            lambda kept: {"agents": _besides(agent, kept)} if agent else {"waits": True},
        )

    def over(self, conversation: str) -> list[EditView]:
        """Note that no call of the conversation is running, nor any of its subagents; as `pause`."""
        return self._end_all(conversation, lambda _: True, lambda _: {"agents": []})

    def start(self, conversation: str) -> list[EditView]:
        """Note that a conversation begins, or goes on with a call that it had put off; as `over`."""
        try:
            return self.over(conversation)
        finally:
            self._open.begin_turn(conversation)

    def sent(self, conversation: str, agent: str) -> None:
        """Note that a subagent of the conversation begins."""
        self._open.note(conversation, lambda kept: {"agents": [*_besides(agent, kept), agent][-_MAX_SUBAGENTS:]})

    def notice(self, otherwise: CallInfo, paths: Sequence[str] | None = None, *, ignored: bool = False) -> "Recorded":
        """Record what changed: as open calls' doing where that can be known, and else as `otherwise` says.

        Where calls of several agents are open it is nobody's, whatever `otherwise` says. `paths`: only these files, and
        what lies below these folders. `ignored`: without `paths`, also those recorded files that ignore rules leave out
        by now. Raises as `begin`, and what paths raise.
        """
        with self._alone(None):  # no agent waits for this
            standing = self._open.calls()
            over = [] if paths is None else [name for name, call in standing.items() if call.is_over]
            if over:
                self._settle(None, standing)
                standing = self._open.calls()
            return _together(list(self._looks(paths, standing, otherwise, ignored=ignored)))

    def knows(self, conversation: str) -> bool:
        """Return whether the conversation was ever heard of here, or has a call open."""
        name = sanitized_name(conversation)
        return bool(self._open.session(name)) or any(call.conversation == name for call in self._open.calls().values())

    def went(self, conversation: str, roots: Iterable[str]) -> None:
        """Remember that calls of the conversation begin in other workspaces, of which nothing else is told here."""

        def noted(kept: Mapping[str, object]) -> dict[str, object]:
            others = [root for root in _elsewhere(kept) if root not in news]
            return {"elsewhere": [*others, *news][-_MAX_OTHER_WORKSPACES:]}

        news = list(roots)
        self._open.note(conversation, noted)

    def elsewhere(self, conversation: str) -> list[str]:
        """Return the other workspaces in which calls of the conversation began, the newest last."""
        return _elsewhere(self._open.session(conversation))

    def heard(self, conversation: str, prompt: str) -> None:
        """Remember what a person asked of the agent: it explains the edits that follow."""
        self._open.note(conversation, lambda _: {"prompt": sanitized_text(prompt), "waits": False})
        self._open.begin_turn(conversation)

    def prompt(self, conversation: str) -> str:
        """Return what a person last asked in the conversation ("": nobody told)."""
        prompt = self._open.session(conversation).get("prompt")
        return prompt if isinstance(prompt, str) else ""

    # ---- what an agent is told

    def join(self, conversation: str, other: str, tool: str) -> None:
        """Have a conversation be told of another one's rejections too: a tool of our server said that it works in it.

        Only of one in which there is an edit by that tool, that is no session with hooks of its own, and that no other
        has joined before. `tool`: its name, with what the client puts before it. Raises what reads and the disk raise.
        """
        if other in self._open.told(conversation)[1] or other == sanitized_name(conversation) or self.knows(other):
            return
        from objstore.history.edit_queries import edits

        with self._journal.reading():
            made = edits(self._journal, EditFilter(conversation=other, newest_first=True, limit=_MAX_SCANNED_PATHS))
        if any(tool.endswith(tuple(mark + view.edit.tool for mark in "_:-")) for view in made if view.edit.tool):
            self._open.join(conversation, other)

    def rejected(self, conversation: str, most: int) -> UnreportedRejections | None:
        """Return what is rejected of the edits of a conversation, and of those it has joined, and it was not told of.

        None: nothing. `most`: edits of which more is said than how many there are. Raises as reads do.
        """
        known, joined = self._open.told(conversation)
        with self._journal.reading() as store:
            rows = store.index.edits.rejected([sanitized_name(conversation), *joined])
            found = {str(unit): unit for row in rows for unit in row.rejected}
            if gone := known - found.keys():
                # What was accepted again and then rejected once more is told again.
                self._open.save_reported_rejections(conversation, (), gone)
            untold = {name: unit for name, unit in found.items() if name not in known}
            if not untold:
                return None
            # Mostly there is none, and then what reads records need not be imported.
            from objstore.history.edit_queries import rejections

            edits = list(dict.fromkeys(unit.seq for unit in untold.values()))
            first = set(edits[:most])
            said = rejections(self._journal, [unit for unit in untold.values() if unit.seq in first])
            return UnreportedRejections(rejections=tuple(said), more=len(edits) - len(first), units=frozenset(untold))

    def told(self, conversation: str, untold: UnreportedRejections) -> None:
        """Remember that the conversation has been told of the rejections. Raises what the disk raises.

        Called when they have been said, not before: of two evils, a rejection is heard twice rather than never.
        """
        self._open.save_reported_rejections(conversation, untold.units)

    # ---- inside

    @contextmanager
    def _alone(self, patience: float | None = _PATIENCE) -> Iterator[None]:
        """Keep others from beginning, ending and looking meanwhile. Raises StoreLocked, and what the disk raises.

        What a look finds was made by calls that were open when it was asked which are: no other has begun since. Else a
        look of one agent would find what another's call, begun while it looked, has already done, and take it for the
        first one's. `patience`: seconds to wait for the others (None: as long as a writer does).
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

    def _settle(self, paths: Sequence[str] | None, standing: Mapping[str, AgentCall]) -> list[EditView]:
        """Record what changed (`paths`: only there, as far as that can be looked at), each change as whose it is."""
        found: list[EditView] = []
        try:
            for look in self._looks(paths, standing):
                found += look.edits
        except (PathError, DiskFailed):
            # A tool may name anything. What it named besides is looked at all the same, or a person's change of it
            # would count as the tool's.
            seen = list(filter(self._can_be_scanned, paths or ()))
            if paths is None or len(seen) == len(paths):
                raise
            found += self._settle(seen, standing)
        return found

    def _looks(
        self,
        paths: Sequence[str] | None,
        standing: Mapping[str, AgentCall],
        otherwise: CallInfo = NOBODY,
        *,
        ignored: bool = False,
    ) -> "Iterator[Recorded]":
        """Look, and record each change as whose it is; yield what was found, last what no call had named.

        `paths`: only these files, and what lies below these folders. `otherwise`: whose it is while no call is open.
        """
        over = [name for name, call in standing.items() if call.is_over]
        if over:
            paths = None  # what those changed is still to be found
        attribution = CallAttribution(standing.values())
        told: dict[str, str] = {}  # each file that a call has named, or that went with it, by the name that was said
        for path in attribution.named:
            if (paths is not None and path in paths) or (
                _is_among(path, paths) and not attribution.has_no_confirmed_call(path)
            ):
                told[path] = path
                for each in self._missing_files_below(path):
                    if each not in attribution.named:
                        told.setdefault(each, path)
        if told:
            yield self._record(
                lambda path, moment, tick: attribution.of(told[path], moment, tick), list(told), are_canonical=True
            )
        rest = None
        if paths is not None:
            # A file that was named may be a folder by now, or always was one: what is in it was not named.
            rest = [path for path in paths if path not in attribution.named or self._is_folder(path)]
        if rest is None or rest:
            # What a named file becomes from here on is told by the call that named it, which is still open.
            yield self._record(
                lambda _, moment, tick: attribution.of_others(otherwise, moment, tick),
                rest,
                excluding=attribution.named,
                ignored=ignored,
            )
        for name in over:
            self._open.remove(name)

    def _is_folder(self, path: str) -> bool:
        """Return whether a folder stands at a path of the workspace."""
        with suppress(PathError), reaching(path), self._journal.tree.locate(path, changing=True) as resolved:
            found = look_at(resolved) if resolved.path == path else None
            return found is not None and stat.S_ISDIR(found.st_mode)
        return False

    def _can_be_scanned(self, path: str) -> bool:
        """Return whether it can be said what stands at a path of the workspace, and in it, where that is a folder."""
        with (
            suppress(PathError),
            reaching(path),
            self._journal.tree.locate(path, changing=True, will_be_vacated=lambda _: True) as resolved,
        ):
            found = look_at(resolved)
            if found is not None and stat.S_ISDIR(found.st_mode):
                os.close(open_folder(resolved.folder, resolved.name, resolved.path))
            return True
        return False

    def _missing_files_below(self, path: str) -> list[str]:
        """Return the files that are known below a path at which no folder stands any more."""
        try:
            with reaching(path), self._journal.tree.locate(path, changing=True) as resolved:
                found = look_at(resolved)
                if resolved.path != path or (found is not None and stat.S_ISDIR(found.st_mode)):
                    return []
        except PathError:
            return []
        with self._journal.reading() as store:
            tip = store.index.documents.tip_at(os.fsencode(path))
            if found is not None and tip is not None and tip.state is not None:
                return []
            from objstore.worktree.baseline import KnownStates

            try:
                below = KnownStates(self._journal).below(os.fsencode(path))
            except (BlobMissing, TreeInvalid):
                below = set(store.index.documents.paths_below(os.fsencode(path)))  # the look takes another baseline
            return sorted(map(os.fsdecode, below))

    def _let_go(self, paths: Iterable[str], standing: Mapping[str, AgentCall]) -> list[EditView]:
        """Record as nobody's what became of files that were left to a call, which then was not let run."""
        attribution = CallAttribution(standing.values())
        waiting = [path for path in paths if attribution.has_no_confirmed_call(path)]
        return list(self._record(NOBODY, waiting, are_canonical=True).edits) if waiting else []

    def _record(
        self,
        info: CallInfo | Whose,
        paths: Sequence[str] | None,
        *,
        are_canonical: bool = False,
        excluding: Collection[str] = (),
        ignored: bool = False,
    ) -> "Recorded":
        from objstore.tracking.record import record_changes
        from objstore.transaction.index_repair import rebuild_index_and_retry

        return rebuild_index_and_retry(
            self._journal,
            lambda: record_changes(
                self._journal, info, paths, are_canonical=are_canonical, excluding=excluding, ignored=ignored
            ),
        )

    def _known(self, call: AgentCall) -> AgentCall:
        """Return the call in our own terms: paths of this workspace alone, for a tool may well name others."""
        covered: list[str] | None = None
        if call.paths is not None:
            covered = []
            for path in call.paths:
                # Of a link, either may change: some programs write through it, some put another file in its place.
                located = [spelt for real in (False, True) if (spelt := self._located(path, real=real))]
                covered += [spelt for spelt in dict.fromkeys(located) if spelt not in covered]
        return replace(
            call,
            conversation=sanitized_name(call.conversation),
            paths=None if covered is None else tuple(covered),
            began=call.began or now(),
        )

    def _located(self, path: str, *, real: bool) -> str:
        """Return where a file stands in the workspace, or "" where it lies outside, or nowhere: no path holds a NUL.

        `real`: what is behind it, if it is a link.
        """
        with suppress(PathError, ValueError), reaching(path):
            if real:
                path = os.path.realpath(os.path.join(self._journal.tree.root, path))
            # A patch may make a folder of a file.
            with self._journal.tree.locate(path, changing=True, will_be_vacated=lambda _: True) as resolved:
                return resolved.path
        return ""

    def _ended_at(self, call: AgentCall) -> int:
        """Return when a call without an id was last said to be over in these words (0: that was long ago, or never)."""
        ended = _ends(self._open.session(call.conversation)).get(self._open.name_of(call))
        return ended if isinstance(ended, int) else 0

    def _note_end(self, call: AgentCall) -> None:
        """Remember that a call without an id was said to be over: that may be said twice."""
        name = self._open.name_of(call)

        def noted(kept: Mapping[str, object]) -> dict[str, object]:
            others = [(other, at) for other, at in _ends(kept).items() if other != name]
            return {"ended": dict([*others, (name, now())][-_MAX_REMEMBERED_ENDS:])}

        self._open.note(call.conversation, noted)

    def _is_done(self, call: AgentCall, *, before: bool = False) -> bool:
        """Return whether a call is known to be over already; without an id it may be another one in the same words.

        `before`: also since an earlier turn.
        """
        return call.is_named and self._open.is_done(call, before=before)

    def _note_done(self, calls: Iterable[AgentCall]) -> None:
        """Remember of calls that have ids that they are over."""
        named = [call for call in calls if call.is_named]
        if named:
            self._open.note_done(named[0].conversation, named)

    def _is_sent(self, call: AgentCall, *, reports_subagents: bool) -> bool:
        """Return whether a call is of a subagent that works for the conversation, as far as that can be known."""
        kept = self._open.session(call.conversation)
        if call.agent in _agents(kept):
            return True
        if reports_subagents and kept.get("waits") is True:
            return False
        self.sent(call.conversation, call.agent)
        return True

    def _end_all(
        self,
        conversation: str,
        is_ended: Callable[[AgentCall], bool],
        said: Callable[[Mapping[str, object]], Mapping[str, object]],
    ) -> list[EditView]:
        """End those calls of a conversation that nobody has ended; return what was found.

        `said`: what is to be kept of the conversation from now on, as `OpenCalls.note` takes it.
        """
        conversation = sanitized_name(conversation)

        def chosen(standing: Mapping[str, AgentCall]) -> set[str]:
            return {name for name, call in standing.items() if call.conversation == conversation and is_ended(call)}

        # Should anything fail from here on, it is known when they were over.
        standing = self._open.calls()
        for name in chosen(standing):
            if standing[name].is_known_to_run:
                self._open.note_end(name)
        self._open.note(conversation, said)
        with self._alone():
            standing = self._open.calls()
            ended = chosen(standing)
            refused = {name for name in ended if not standing[name].is_known_to_run}
            let = {name: call for name, call in standing.items() if name not in refused}
            paths = dict.fromkeys(path for name in sorted(refused) for path in standing[name].paths or ())
            found = self._let_go(paths, let) + self._settle(None, let)
            self._note_done([standing[name] for name in ended - refused])
            for name in ended:
                self._open.remove(name)
            self._open.forget_old_sessions()
            return found


def _is_among(path: str, paths: Sequence[str] | None) -> bool:
    """Return whether a file is one of the paths (None: all of them), or lies below one."""
    return paths is None or any(above in {path, os.curdir} or path.startswith(above + "/") for above in paths)


def _together(looks: "Sequence[Recorded]") -> "Recorded":
    """Return what several looks found, one after the other."""
    from objstore.tracking.record import Recorded

    return Recorded(
        conversation=next((look.conversation for look in reversed(looks) if look.conversation), ""),
        edits=tuple(view for look in looks for view in look.edits),
        baseline=next((look.baseline for look in looks if look.baseline is not None), None),
        files=sum(look.files for look in looks),
        passed=tuple(dict.fromkeys(place for look in looks for place in look.passed)),
    )


def _agents(kept: Mapping[str, object]) -> list[str]:
    """Return the subagents that are known and not known to be done, of what is kept of a conversation."""
    agents = kept.get("agents")
    return [each for each in agents if isinstance(each, str)] if isinstance(agents, list) else []


def _besides(agent: str, kept: Mapping[str, object]) -> list[str]:
    """Return the subagents besides one."""
    return [each for each in _agents(kept) if each != agent]


def _elsewhere(kept: Mapping[str, object]) -> list[str]:
    """Return the other workspaces in which calls began, of what is kept of a conversation."""
    roots = kept.get("elsewhere")
    return [each for each in roots if isinstance(each, str)] if isinstance(roots, list) else []


def _ends(kept: Mapping[str, object]) -> dict[str, object]:
    """Return which calls without ids were last said to be over, and when, of what is kept of a conversation."""
    ended = kept.get("ended")
    return ended if isinstance(ended, dict) else {}


def _all_of(begun: tuple[str, ...] | None, known: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the paths that a call named, as they led when it began and as they lead now (None: any)."""
    return None if begun is None or known is None else tuple(dict.fromkeys([*begun, *known]))


def _is_like(begun: AgentCall, call: AgentCall) -> bool:
    """Return whether both are of one tool, for the same files, by the same agent."""
    return (begun.conversation, begun.agent, begun.tool, begun.paths) == (
        call.conversation,
        call.agent,
        call.tool,
        call.paths,
    )


def _name_among(standing: Mapping[str, AgentCall], call: AgentCall, ended_at: int) -> str:
    """Return the name of the open call that is over, where its client gives no ids ("": it is found by its input).

    A hook of somebody else's may have changed its input since it began. Calls of one tool end as they began, in order.
    `ended_at`: when the same was said before. It is said of that call again then, and of none that had begun by then.
    """
    name = OpenCalls.name_of(call)
    if name in standing:
        return ""
    alike = [
        (begun.began, name)
        for name, begun in standing.items()
        if not begun.is_named and not begun.is_over and begun.began > ended_at and _is_like(begun, call)
    ]
    return min(alike)[1] if alike else ""
