"""Keep the open calls of agents in small files, and attribute changes to them.

Each hook of an agent's program is a process of its own, so what one learns is left in a file for the next. The files
are no part of the history: if they are lost, changes are still found, and no agent is named for them.

A call that named a file made its change. Other changes are attributed only while calls of a single conversation are
open that may touch any file; in all other cases they count as external. A call that a person was asked about may be
waiting, or may never run, or run already: that is unknown until it is over. Until then nothing is attributed to it,
what it alone has named is left to its end, and no other conversation gets what else is found meanwhile.
"""

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from objstore.clock import now
from objstore.errors import CasError, StoreLinked, StoreNotRegular
from objstore.fastclass import field, replace, value
from objstore.fs.nofollow import open_store_folder, read_store_file, require_no_symlink, write_derived_file
from objstore.fs.reserved_names import STORE_NAME
from objstore.fs.writer_lock import WriterLock
from objstore.model.ids import blob_id
from objstore.model.results import NOBODY, CallInfo
from objstore.transaction.journal import Journal
from objstore.worktree.external_changes import EXTERNAL_CONVERSATION

__all__ = ["AgentCall", "CallAttribution", "OpenCalls", "sanitized_name", "sanitized_text"]

_FOLDER: Final = "agents"
_OPEN: Final = "open-"
_OVER: Final = "over-"
_SESSION: Final = "session-"
_DONE: Final = "done-"
_TOLD: Final = "told-"
_JOINED: Final = "joined"
_LOCK: Final = "lock"
_SESSIONS_LOCK: Final = "sessions"
_FORGOTTEN_AFTER: Final = 24 * 3600 * 1_000_000
"""Microseconds after which a call that nobody ended is taken for one whose program died."""

_SESSION_KEPT: Final = 30 * _FORGOTTEN_AFTER
_LONGEST_FILE: Final = 1 << 20
_LONGEST_TOLD: Final = 1 << 26
"""Bytes of the file that says of what a conversation was told: some millions of rejections."""

_MOST_DONE: Final = 40
"""Calls of a conversation that are known to be done, each as it began and as it ended."""

_MOST_JOINED: Final = 200
"""Conversations that a session is told of besides its own: our server's tools begin one in each turn."""

_MOST_JOINED_OF_ALL: Final = 1000
"""Conversations of which it is known which session they belong to."""

_PATIENCE: Final = 10.0
"""Seconds to wait for others who note something of a conversation: each takes milliseconds."""

_LONGEST_NOTE: Final = 2_000
"""Characters of a note that are recorded. It is there to explain an edit, and must never keep one out of the record."""

_LONGEST_NAME: Final = 200
"""Characters of a conversation's name that are used."""


@value
class AgentCall:
    """A tool call that an agent's own program carries out."""

    conversation: str
    id: str  # of the call in its conversation; the same when it begins and when it is over
    tool: str
    paths: tuple[str, ...] | None  # files that it may change, absolute or relative to the workspace; None: any
    notes: Mapping[str, str] = field(default_factory=dict)
    agent: str = ""  # id of the subagent that makes it; "": the conversation's own
    is_named: bool = True  # whether the client gave the id; else it may be another one when the call is over
    began: int = 0  # microseconds since 1970-01-01 UTC
    is_asked: bool = False  # whether a person was asked if it may run
    since: int | None = 0  # ns of the file system; what changed before is not its doing. None: as its file says
    ended: int = 0  # when it was said to be over (ns of the file system), if what it changed may not be recorded yet

    @property
    def is_over(self) -> bool:
        """Return whether it was said to be over, though what it changed may not be recorded yet."""
        return self.ended > 0

    def ran_at(self, moment: int, tick: int = 0) -> bool:
        """Return whether it may have made a change of that moment (ns of the file system, give or take a `tick`)."""
        return (self.since or 0) <= moment + tick and (not self.is_over or moment - tick <= self.ended)

    @property
    def is_known_to_run(self) -> bool:
        """Return whether it is known that it runs, or ran: changes may be its doing."""
        return self.is_over or not self.is_asked

    @property
    def info(self) -> CallInfo:
        """Return how its edits are recorded."""
        notes = {name: sanitized_text(note) for name, note in self.notes.items()}
        return CallInfo(tool=sanitized_text(self.tool), conversation=self.conversation, notes=notes)


class OpenCalls:
    """The files of one workspace; who changes what they say of calls holds `lock`."""

    def __init__(self, journal: Journal) -> None:
        """Know where they are kept."""
        self._disk: Final = journal.disk
        self._store: Final = os.path.join(journal.tree.root, STORE_NAME)
        self._folder: Final = os.path.join(self._store, _FOLDER)

    @property
    def lock(self) -> str:
        """Return the path of the lock, in a folder that is there. Raises StoreLinked."""
        return self._placed(_LOCK)

    def calls(self) -> dict[str, AgentCall]:
        """Return the calls that are open, by the name of their file. Those of programs that died are forgotten."""
        calls: dict[str, AgentCall] = {}
        oldest = now() - _FORGOTTEN_AFTER
        for name in self._names(_OPEN):
            call = _call_of(self._read(name))
            if call is None or call.began < oldest:
                self.remove(name)
            else:
                since = self._written(name) if call.since is None else call.since
                if since > time.time_ns() and self._is_ahead(since):
                    since = 0  # the clock was set back since: of what came before that says nothing
                calls[name] = replace(call, since=since, ended=self._ended(name))
        return calls

    @staticmethod
    def name_of(call: AgentCall) -> str:
        """Return the name of a call's file."""
        return _OPEN + _key(sanitized_name(call.conversation), call.id)

    def is_open(self, call: AgentCall) -> bool:
        """Return whether a call is kept under its own name."""
        return os.path.lexists(os.path.join(self._folder, self.name_of(call)))

    def put(self, name: str, call: AgentCall) -> None:
        """Keep a call under the name of its file. Raises what the disk raises."""
        self._write(name, _told_of(call))

    def note_end(self, name: str) -> bool:
        """Note that a call is over, and when, if that is news; return whether it is. Whoever does needs no lock.

        Its file's own time says when. Never raises: what is not noted is found by the look that follows.
        """
        if not os.path.lexists(os.path.join(self._folder, name)) or self._ended(name):
            return False
        with suppress(OSError, CasError):
            write_derived_file(self._disk, self._store, _FOLDER, _over(name), b"")
        return True

    def remove(self, name: str) -> None:
        """Forget a call."""
        for each in (name, _over(name)):
            with suppress(FileNotFoundError, CasError):
                self._disk.remove_store_file(os.path.join(self._folder, each))

    def is_done(self, call: AgentCall, *, before: bool = False) -> bool:
        """Return whether a call was over in these words, or began in them and was over.

        `before`: in this turn or an earlier one.
        """
        done, earlier = self._done(call.conversation)
        return _words(call) in (done + earlier if before else done)

    def note_done(self, conversation: str, calls: Iterable[AgentCall]) -> None:
        """Remember that calls are over: that may be said twice, and so may their beginning. Raises as `note`."""
        with self._one_by_one():
            done, earlier = self._done(conversation)
            done = list(dict.fromkeys([*done, *map(_words, calls)]))[-_MOST_DONE:]
            self._write(_done_name(conversation), {"calls": done, "earlier": earlier})

    def begin_turn(self, conversation: str) -> None:
        """Note that another turn begins: from now on a client may give the names of calls again that were over.

        Raises as `note`.
        """
        with self._one_by_one():
            done, earlier = self._done(conversation)
            if done:
                earlier = list(dict.fromkeys([*earlier, *done]))[-_MOST_DONE:]
                self._write(_done_name(conversation), {"calls": [], "earlier": earlier})

    def session(self, conversation: str) -> dict[str, Any]:
        """Return what is kept of a conversation."""
        return self._read(_session_name(conversation))

    def note(self, conversation: str, said: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Keep what `said` makes of what is kept of a conversation, if it is news, and all else that is.

        Hooks of one conversation do so at the same moment: one waits for the other. Raises StoreLocked, and what the
        disk raises.
        """
        with self._one_by_one():
            session = self.session(conversation)
            noted = {**session, **said(session)}
            if session != noted:
                self._write(_session_name(conversation), noted)

    def told(self, conversation: str) -> tuple[set[str], list[str]]:
        """Return the units that the conversation knows to be rejected, as they are spelt, and what it has joined."""
        held = self._read(_told_name(conversation), _LONGEST_TOLD)
        return set(_texts(held.get("units"))), _texts(held.get("joined"))

    def save_reported_rejections(self, conversation: str, told: Collection[str], gone: Collection[str] = ()) -> None:
        """Keep which units the conversation knows to be rejected now, and which no longer. Raises as `note`."""
        with self._one_by_one():
            units, joined = self.told(conversation)
            self._keep_told(conversation, (units | set(told)) - set(gone), joined)

    def join(self, conversation: str, other: str) -> None:
        """Have a conversation be told of another one's rejections, if none is that came before. Raises as `note`.

        So each is told once, and to nobody else, whoever says later that it is theirs.
        """
        with self._one_by_one():
            units, joined = self.told(conversation)
            held = self._read(_JOINED).get("joined")
            owners = [
                (name, owner) for name, owner in (held if isinstance(held, dict) else {}).items() if name != other
            ]
            own = _key(sanitized_name(conversation))
            if other in joined or (isinstance(held, dict) and held.get(other, own) != own):
                return
            self._write(_JOINED, {"joined": dict([*owners, (other, own)][-_MOST_JOINED_OF_ALL:])})
            self._keep_told(conversation, units, [*joined, other][-_MOST_JOINED:])

    def forget_old_sessions(self) -> None:
        """Forget conversations of which nothing was heard for a month, and ends of calls that are long forgotten."""
        oldest = now() - _SESSION_KEPT
        for name in [name for kind in (_SESSION, _DONE, _TOLD, _OVER) for name in self._names(kind)]:
            with suppress(FileNotFoundError):
                if os.stat(os.path.join(self._folder, name)).st_mtime_ns // 1000 < oldest:
                    self.remove(name)

    # ---- inside

    def _keep_told(self, conversation: str, units: Iterable[str], joined: list[str]) -> None:
        self._write(_told_name(conversation), {"units": sorted(units), "joined": joined})

    @contextmanager
    def _one_by_one(self) -> Iterator[None]:
        """Keep others from noting something of a conversation meanwhile: each reads what is kept, and replaces it."""
        lock = WriterLock(self._placed(_SESSIONS_LOCK))
        try:
            with lock.held(_PATIENCE):
                yield
        finally:
            lock.close()

    def _placed(self, name: str) -> str:
        """Return the path of a lock, in a folder that is there. Raises StoreLinked."""
        with suppress(FileExistsError):
            self._disk.make_store_folder(self._folder)
        require_no_symlink(self._folder)
        return os.path.join(self._folder, name)

    def _ended(self, name: str) -> int:
        """Return when a call was said to be over (0: it was not)."""
        return self._written(_over(name))

    def _written(self, name: str) -> int:
        """Return when a file was written, in the file system's time (0: there is none)."""
        try:
            return os.lstat(os.path.join(self._folder, name)).st_mtime_ns
        except OSError:
            return 0

    def _is_ahead(self, moment: int) -> bool:
        """Return whether a moment is still to come, in the file system's time."""
        with suppress(OSError, CasError), open_store_folder(self._folder) as folder:
            return moment > self._disk.clock(folder, self._folder)
        return False

    def _done(self, conversation: str) -> tuple[list[str], list[str]]:
        """Return which calls were over in this turn, and which in earlier ones."""
        held = self._read(_done_name(conversation))
        return _texts(held.get("calls")), _texts(held.get("earlier"))

    def _names(self, prefix: str) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._folder) if name.startswith(prefix))
        except FileNotFoundError:
            return []

    def _read(self, name: str, longest: int = _LONGEST_FILE) -> dict[str, Any]:
        """Return what a file holds; nothing where it is gone, or is not as we write it."""
        try:
            held = json.loads(read_store_file(os.path.join(self._folder, name), longest))
        except (OSError, StoreLinked, StoreNotRegular, ValueError, RecursionError):
            return {}
        return held if isinstance(held, dict) else {}

    def _write(self, name: str, held: Mapping[str, Any]) -> None:
        """Put a file in its place, whole; it need not outlive a power cut."""
        write_derived_file(self._disk, self._store, _FOLDER, name, json.dumps(held).encode())


def _texts(held: object) -> list[str]:
    return [each for each in held if isinstance(each, str)] if isinstance(held, list) else []


def _told_of(call: AgentCall) -> dict[str, Any]:
    return {
        "conversation": call.conversation,
        "id": call.id,
        "tool": call.tool,
        "paths": call.paths,
        "notes": dict(call.notes),
        "agent": call.agent,
        "named": call.is_named,
        "began": call.began,
        "asked": call.is_asked,
        "since": call.since,
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
                agent=agent if isinstance(agent := held.get("agent"), str) else "",
                is_named=held.get("named") is not False,
                began=began,
                is_asked=held.get("asked") is True,
                since=since if isinstance(since := held.get("since", 0), int) else None,
            )
    return None


def sanitized_name(conversation: str) -> str:
    """Return a conversation's name as it may be recorded: printable, not too long, and not the one of nobody."""
    cleaned = "".join(char for char in conversation if char.isprintable())[:_LONGEST_NAME]
    return f"{cleaned}-agent" if cleaned == EXTERNAL_CONVERSATION else cleaned


def sanitized_text(text: str) -> str:
    """Return a text as a record can hold it: not too long, and without half characters, as JSON may have them."""
    return text[:_LONGEST_NOTE].encode("utf-8", "replace").decode()


def _key(*parts: str) -> str:
    return blob_id("\0".join(parts).encode("utf-8", "surrogatepass")).hex()[:32]


def _session_name(conversation: str) -> str:
    return _SESSION + _key(sanitized_name(conversation))


def _done_name(conversation: str) -> str:
    return _DONE + _key(sanitized_name(conversation))


def _told_name(conversation: str) -> str:
    return _TOLD + _key(sanitized_name(conversation))


def _over(name: str) -> str:
    """Return the name of the file that says that a call is over."""
    return _OVER + name.removeprefix(_OPEN)


def _words(call: AgentCall) -> str:
    """Return what a call is known by, if its client gives one name to several."""
    return _key(call.id, call.tool, call.notes.get("command", ""), *(["*"] if call.paths is None else call.paths))


class CallAttribution:
    """What some open calls may have done."""

    def __init__(self, standing: Iterable[AgentCall]) -> None:
        """Sort them out."""
        calls = list(standing)
        self._anywhere: Final = [call for call in calls if call.paths is None]
        self._named: Final[dict[str, list[AgentCall]]] = {}
        for call in calls:
            for path in call.paths or ():
                self._named.setdefault(path, []).append(call)

    @property
    def named(self) -> list[str]:
        """Return every path that a call has named."""
        return list(self._named)

    def has_no_confirmed_call(self, path: str) -> bool:
        """Return whether nobody has named the path but calls of which it isn't known that they run."""
        return not any(call.is_known_to_run for call in self._named.get(path, ()))

    def of(self, path: str, moment: int, tick: int = 0) -> CallInfo:
        """Return whose a change of the file is that was made at a moment (as `AgentCall.ran_at` has it)."""
        callers = [call for call in self._named.get(path, ()) if call.ran_at(moment, tick)]
        return _only(callers) if callers else self.of_others(NOBODY, moment, tick)

    def of_others(self, otherwise: CallInfo, moment: int, tick: int = 0) -> CallInfo:
        """Return whose a change is of a file that nobody has named; `otherwise`: where no call may have made it."""
        callers = [call for call in self._anywhere if call.ran_at(moment, tick)]
        return _only(callers) if callers else otherwise


def _only(callers: Sequence[AgentCall]) -> CallInfo:
    """Return whose a change is that any of the calls may have made: the newest's that runs, if all are of one agent."""
    running = [call for call in callers if call.is_known_to_run]
    if not running or len({call.conversation for call in callers}) != 1:
        return NOBODY
    return max(running, key=lambda call: call.began).info
