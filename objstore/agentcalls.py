"""Agents' calls as they run: who may have made the changes that are found while they do.

A hook tells when a tool of an agent begins and when it is over, and in between the agent's own program changes files.
What is open is kept in small files beside the store, because each hook is a process of its own. They are no part of the
history: if they are lost, changes are still found, and nobody is named for them.

Whoever named a file made its change. Of other changes it is known who made them only while calls of a single
conversation are open that may touch any file; in all other cases they count as external.
"""

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from objstore.errors import CasError, PathError, StoreLinked
from objstore.external import EXTERNAL_CONVERSATION
from objstore.ids import blob_id
from objstore.journal import Journal
from objstore.names import STORE_NAME
from objstore.outcomes import CallInfo
from objstore.premises import own_bytes, own_folder, refuse_link
from objstore.terms import Origin, Status
from objstore.values import field, replace, value
from objstore.views import EditFilter, EditView
from objstore.writerlock import WriterLock

__all__ = ["AgentCall", "AgentCalls"]

_FOLDER: Final = "agents"
_OPEN: Final = "open-"
_SESSION: Final = "session-"
_LOCK: Final = "lock"
_PATIENCE: Final = 10.0
"""Seconds that an agent waits while others begin, end or look: a first look at a large tree may take some."""

_FORGOTTEN_AFTER: Final = 24 * 3600 * 1_000_000
"""Microseconds after which a call that nobody ended is taken for one whose program died."""

_SESSION_KEPT: Final = 30 * _FORGOTTEN_AFTER
_SOON_LOOKED_AT: Final = 8 << 20
"""Bytes of the last look up to which the next one is a matter of a tenth of a second or two: some 100,000 files."""

_LONGEST_FILE: Final = 1 << 20
_LONGEST_NAME: Final = 200
"""Characters of a conversation's name that are used."""

_NOBODY: Final = CallInfo(tool="", origin=Origin.EXTERNAL)


@value
class AgentCall:
    """A tool call that an agent's own program carries out."""

    conversation: str
    id: str  # of the call in its conversation; the same when it begins and when it is over
    tool: str
    paths: tuple[str, ...] | None  # files that it may change, absolute or relative to the workspace; None: any
    notes: Mapping[str, str] = field(default_factory=dict)
    began: int = 0  # microseconds since 1970-01-01 UTC
    is_over: bool = False  # whether it was said to be over, though what it changed is not recorded yet

    @property
    def info(self) -> CallInfo:
        """Return how its edits are recorded."""
        return CallInfo(tool=self.tool, conversation=self.conversation, notes=self.notes)


class AgentCalls:
    """The open calls of all agents in one workspace, and what each conversation said and was told."""

    def __init__(self, journal: Journal) -> None:
        """Know where they are kept."""
        self._journal: Final = journal
        self._store: Final = os.path.join(journal.tree.root, STORE_NAME)
        self._folder: Final = os.path.join(self._store, _FOLDER)

    # ---- what hooks tell

    def begin(self, call: AgentCall) -> list[EditView]:
        """Note that a call begins; return what was found to have changed before. Raises what Call.commit raises.

        A second word of the same call changes nothing.
        """
        known = self._known(call)
        if known.paths == ():
            return []
        with self._alone():
            standing = self._open()
            begun = standing.get(self._name_of(call))
            if begun is not None and not begun.is_over:
                return []
            found = self._settle(known.paths, standing)
            self._write(self._name_of(call), _told_of(known))
            return found

    def end(self, call: AgentCall, go_on: Callable[[], object] | None = None) -> list[EditView]:
        """Note that a call is over; return what it and others were found to have changed. Raises as `begin`.

        Where nobody said that it began, what it named is still its own; what it didn't name is external. `go_on` is
        called at most once, as soon as the agent need not wait: whatever comes next waits itself until what is found is
        recorded. What it raises is raised after that.
        """
        known = self._known(call)
        if known.paths == ():
            return []
        name = self._name_of(call)
        with self._alone():
            standing = self._open()
            if known.paths is not None:
                standing.setdefault(name, known)
            if go_on is None or not self._is_soon_looked_at():
                return self._settle_end(name, known.paths, standing)
            return self._settle_behind(go_on, name, known.paths, standing)

    def withdraw(self, call: AgentCall) -> list[EditView]:
        """Note that a call was not let run after all; return what was found, none of it its own. Raises as `begin`."""
        known = self._known(call)
        if known.paths == ():
            return []
        with self._alone():
            self._remove(self._name_of(call))
            return self._settle(known.paths, self._open())

    def pause(self, conversation: str) -> list[EditView]:
        """Note that no call of the conversation is running; return what was found. Raises as `begin`."""
        conversation = _clean(conversation)
        with self._alone():
            standing = self._open()
            found = self._settle(None, standing)
            for name, call in standing.items():
                if call.conversation == conversation:
                    self._remove(name)
            self._forget_old_sessions()
            return found

    def notice(self, otherwise: CallInfo) -> list[EditView]:
        """Record what changed: as open calls' doing where that can be known, and else as `otherwise` says.

        Where calls of several agents are open it is nobody's, whatever `otherwise` says. Raises as `begin`.
        """
        with self._alone(None):  # no agent waits for this
            return self._settle(None, self._open(), otherwise)

    def heard(self, conversation: str, prompt: str) -> None:
        """Remember what a person asked of the agent: it explains the edits that follow."""
        session = self._session(conversation)
        self._write(self._session_name(conversation), session | {"prompt": prompt})

    def prompt(self, conversation: str) -> str:
        """Return what a person last asked in the conversation ("": nobody told)."""
        prompt = self._session(conversation).get("prompt")
        return prompt if isinstance(prompt, str) else ""

    # ---- what an agent is told

    def rejected(self, conversation: str) -> list[EditView]:
        """Return the edits of a conversation that are rejected, and of which it was not told. Raises as reads do."""
        wanted = EditFilter(conversation=_clean(conversation), status=Status.REJECTED)
        found: list[EditView] = []
        with self._journal.reading() as store:
            # Mostly there is none, and then what reads records need not be imported.
            if store.index.edits(conversation=wanted.conversation, status=wanted.status, limit=1):
                from objstore.history import edits

                found = edits(self._journal, wanted)
        known = self._told(conversation)
        if gone := known - {view.seq for view in found}:
            # An edit that was accepted again and then rejected once more is told again.
            self._call_told(conversation, known - gone)
        return [view for view in found if view.seq not in known]

    def told(self, conversation: str, views: Iterable[EditView]) -> None:
        """Remember that the conversation has been told of the edits. Raises what the disk raises.

        Called when they have been said, not before: of two evils, a rejection is heard twice rather than never.
        """
        self._call_told(conversation, self._told(conversation) | {view.seq for view in views})

    # ---- inside

    @contextmanager
    def _alone(self, patience: float | None = _PATIENCE) -> Iterator[None]:
        """Keep others from beginning, ending and looking meanwhile. Raises StoreLocked, and what the disk raises.

        What a look finds was made by calls that were open when it was asked which are: no other has begun since. Else a
        look of one agent would find what another's call, begun while it looked, has already done, and take it for the
        first one's. `patience`: seconds to wait for the others (None: as long as a writer does).
        """
        with suppress(FileExistsError):
            os.mkdir(self._folder, 0o700)
        refuse_link(self._folder)
        lock = WriterLock(os.path.join(self._folder, _LOCK))
        try:
            lock.acquire(patience)
            try:
                yield
            finally:
                lock.release()
        finally:
            lock.close()

    def _settle(
        self, paths: Sequence[str] | None, standing: Mapping[str, AgentCall], otherwise: CallInfo = _NOBODY
    ) -> list[EditView]:
        """Record what changed (`paths`: only there), each change as whose it is; `otherwise`: while no call is open."""
        over = [name for name, call in standing.items() if call.is_over]
        if over:
            paths = None  # what those changed is still to be found
        found: list[EditView] = []
        named: dict[str, list[AgentCall]] = {}
        for call in standing.values():
            for path in call.paths or ():
                named.setdefault(path, []).append(call)
        for path, callers in named.items():
            if paths is None or path in paths:
                found += self._record(_only(callers), [path])
        anywhere = [call for call in standing.values() if call.paths is None]
        rest = None if paths is None else [path for path in paths if path not in named]
        if rest is None or rest:
            # What a named file becomes from here on is told by the call that named it, which is still open.
            found += self._record(_only(anywhere) if anywhere else otherwise, rest, besides=named)
        for name in over:
            self._remove(name)
        return found

    def _settle_end(self, name: str, paths: Sequence[str] | None, standing: Mapping[str, AgentCall]) -> list[EditView]:
        found = self._settle(paths, standing)
        self._remove(name)
        return found

    def _settle_behind(
        self, go_on: Callable[[], object], name: str, paths: Sequence[str] | None, standing: Mapping[str, AgentCall]
    ) -> list[EditView]:
        """End a call, and before that, call `go_on`, if nobody can come in between then.

        Who begins, ends or looks, waits for the lock that is held; who writes, and would find that a file is not as
        recorded, for the writer lock.
        """
        with self._journal.keeping_out() as is_kept:
            try:
                if is_kept:
                    if name in standing:
                        # If this process is killed from here on, the next event finds what the call changed.
                        self._write(name, _told_of(replace(standing[name], is_over=True)))
                    go_on()
            finally:
                found = self._settle_end(name, paths, standing)
        return found

    def _is_soon_looked_at(self) -> bool:
        """Return whether a look takes no longer than a writer may be kept waiting."""
        try:
            return os.stat(os.path.join(self._store, "cache", "looks")).st_size <= _SOON_LOOKED_AT
        except OSError:
            return False  # it is the first

    def _record(
        self, info: CallInfo, paths: Sequence[str] | None, *, besides: Collection[str] = ()
    ) -> tuple[EditView, ...]:
        from objstore.recording import record_changes

        return record_changes(self._journal, info, paths, besides=besides).edits

    def _known(self, call: AgentCall) -> AgentCall:
        """Return the call in our own terms: paths of this workspace alone, for a tool may well name others."""
        covered: list[str] | None = None
        if call.paths is not None:
            covered = []
            for path in call.paths:
                with suppress(PathError), self._journal.tree.locate(path, changing=True) as spot:
                    covered.append(spot.path)
        return replace(
            call,
            conversation=_clean(call.conversation),
            paths=None if covered is None else tuple(covered),
            began=call.began or _now(),
        )

    def _open(self) -> dict[str, AgentCall]:
        """Return the calls that are open, by the name of their file. Those of programs that died are forgotten."""
        calls: dict[str, AgentCall] = {}
        oldest = _now() - _FORGOTTEN_AFTER
        for name in self._names(_OPEN):
            call = _call_of(self._read(name))
            if call is None or call.began < oldest:
                self._remove(name)
            else:
                calls[name] = call
        return calls

    def _forget_old_sessions(self) -> None:
        oldest = _now() - _SESSION_KEPT
        for name in self._names(_SESSION):
            with suppress(FileNotFoundError):
                if os.stat(os.path.join(self._folder, name)).st_mtime_ns // 1000 < oldest:
                    self._remove(name)

    def _told(self, conversation: str) -> set[int]:
        told = self._session(conversation).get("told")
        return {seq for seq in told if isinstance(seq, int)} if isinstance(told, list) else set()

    def _call_told(self, conversation: str, seqs: Iterable[int]) -> None:
        self._write(self._session_name(conversation), self._session(conversation) | {"told": sorted(seqs)})

    def _session(self, conversation: str) -> dict[str, Any]:
        return self._read(self._session_name(conversation))

    # ---- the small files

    def _names(self, prefix: str) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._folder) if name.startswith(prefix))
        except FileNotFoundError:
            return []

    def _name_of(self, call: AgentCall) -> str:
        return _OPEN + _key(_clean(call.conversation), call.id)

    def _session_name(self, conversation: str) -> str:
        return _SESSION + _key(_clean(conversation))

    def _read(self, name: str) -> dict[str, Any]:
        """Return what a file holds; nothing where it is gone, or is not as we write it."""
        try:
            held = json.loads(own_bytes(os.path.join(self._folder, name), _LONGEST_FILE))
        except (OSError, StoreLinked, ValueError, RecursionError):
            return {}
        return held if isinstance(held, dict) else {}

    def _write(self, name: str, held: Mapping[str, Any]) -> None:
        """Put a file in its place, whole; it need not outlive a power cut."""
        with suppress(FileExistsError):
            os.mkdir(self._folder, 0o700)
        disk = self._journal.disk
        with own_folder(os.path.join(self._store, "tmp")) as scratch, own_folder(self._folder) as shelf:
            staged = disk.stage(scratch, json.dumps(held).encode(), None, 0o600, name)
            disk.supplant(scratch, staged, shelf, name)

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError, CasError):
            self._journal.disk.remove_store_file(os.path.join(self._folder, name))


def _only(callers: Sequence[AgentCall]) -> CallInfo:
    """Return whose a change is that any of the calls may have made: the newest call's, if all are of one agent."""
    if len({call.conversation for call in callers}) != 1:
        return _NOBODY
    return max(callers, key=lambda call: call.began).info


def _told_of(call: AgentCall) -> dict[str, Any]:
    return {
        "conversation": call.conversation,
        "id": call.id,
        "tool": call.tool,
        "paths": call.paths,
        "notes": dict(call.notes),
        "began": call.began,
        "over": call.is_over,
    }


def _call_of(held: Mapping[str, Any]) -> AgentCall | None:
    """Return the call that a file tells of, or None for anything but what we write."""
    match held:
        case {
            "conversation": str(conversation),
            "id": str(name),
            "tool": str(tool),
            "paths": None | list() as paths,
            "notes": dict(notes),
            "began": int(began),
        } if all(isinstance(path, str) for path in paths or ()):
            said = {key: value for key, value in notes.items() if isinstance(key, str) and isinstance(value, str)}
            return AgentCall(
                conversation=conversation,
                id=name,
                tool=tool,
                paths=None if paths is None else tuple(paths),
                notes=said,
                began=began,
                is_over=held.get("over") is True,
            )
    return None


def _clean(conversation: str) -> str:
    """Return a conversation's name as it may be recorded: printable, not too long, and not the one of nobody."""
    cleaned = "".join(char for char in conversation if char.isprintable())[:_LONGEST_NAME]
    return f"{cleaned}-agent" if cleaned == EXTERNAL_CONVERSATION else cleaned


def _now() -> int:
    return time.time_ns() // 1000


def _key(*parts: str) -> str:
    return blob_id("\0".join(parts).encode("utf-8", "surrogatepass")).hex()[:32]
