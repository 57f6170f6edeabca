"""Remember which version of each file a client's model knows, its last change, and the client's name."""

import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from threading import Lock
from typing import Final, TypeAlias, TypeVar

from mcptools.model.own_changes import OwnChanges
from mcptools.model.read_versions import KeptBytes, ReadVersions
from mcptools.model.tickets import Tickets
from objstore import BlobId, Edit, EditView, FileState

__all__ = ["FileKey", "Knowledge", "LastChange", "Memory", "Session", "Turns"]

NotedT = TypeVar("NotedT")

_MOST_TURNS: Final = 1_000
"""Turns of a session whose beginnings are remembered. The oldest is forgotten for a new one."""

FileKey: TypeAlias = tuple[str, str]
"""A workspace's root and a canonical path in it."""


class Knowledge(Enum):
    """Whether the version of a file that a session knows is the current one."""

    NONE = auto()  # the client never read or wrote the file
    UNKNOWN = auto()  # the session never saw it do so, but the client may have read any version of it
    CURRENT = auto()
    STALE = auto()  # the file has changed since, and the session was not shown all of its current version


class Memory(Enum):
    """How much of what a client has done its session can remember."""

    ALL = auto()  # the session began with the client's first message
    SINCE_LATELY = auto()  # the client may have begun before: the server was restarted, or forgot the client
    NOTHING = auto()  # the client has no identity, so each of its calls has a session of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class LastChange:
    """The last call of a session that changed a file, which can be undone. The store has the bytes before it."""

    root: str  # of the workspace
    edits: tuple[EditView, ...]  # at least one


class Turns:
    """The beginnings of turns, by their conversation: the session that each is recorded in, and when it began.

    A conversation's id is the server's own, so it identifies a turn even where nothing identifies its client. Safe to
    use from several threads.
    """

    def __init__(self) -> None:
        self._turns: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._lock = Lock()

    def began(self, conversation: str, session: str, at: int) -> tuple[str, int]:
        """Return the session and the beginning of a turn; one that is not known yet is noted with these values."""
        with self._lock:
            found = self._turns.setdefault(conversation, (session, at))
            self._turns.move_to_end(conversation)
            if len(self._turns) > _MOST_TURNS:
                self._turns.popitem(last=False)
            return found


class Session:
    """The server's memory of one client's model while it runs. Safe to use from several threads.

    The session knows a version from a read, or from a write of a file that was known or new to it. If a file has
    changed since, the model must be shown all of its lines, in any number of parts, before the new version is known.
    An edit that succeeds before that leaves the session's knowledge as it is: the model has still not read the other
    changes, and must not overwrite them by writing the whole file. If such an edit was carried over, the session then
    knows its old version with the edit applied, although the file never had that content.

    What the client did before the session began is unknown. Where it may have read files by then, it has to read a file
    in this session before it replaces or deletes it as a whole.
    """

    def __init__(
        self,
        *,
        require_read: bool = False,
        memory: Memory = Memory.ALL,
        turns: Turns | None = None,
        kept: KeptBytes | None = None,
    ) -> None:
        """Begin without knowing any file.

        `turns`: those known of the client (None: it has had none). `kept`: bytes that sessions share (None: none do).
        """
        self.name = f"mcp_{os.urandom(8).hex()}"  # as recorded with each turn
        self.client: dict[str, str] = {}  # the client's name and version, as recorded with each call; {}: unknown yet
        self.tickets: Final = Tickets()
        self.undoing: Final = Lock()  # held while a change is undone, so that it is undone once
        self._require_read = require_read
        self._memory: Final = memory
        self._known: dict[FileKey, BlobId | None] = {}  # None: the file was gone
        self._met: dict[FileKey, int] = {}  # when the model last read or wrote each file, as `written` says
        self._written: dict[FileKey, int] = {}
        self._copied: dict[FileKey, BlobId] = {}  # the versions last backed up; used for files of which none is known
        self._parts: dict[FileKey, tuple[BlobId, bytearray]] = {}
        """For files that were shown in part: the version, and for each line whether it was shown."""
        self._unchanged: set[FileKey] = set()
        """Those of `_parts` that were shown for the first time; only noted if files must be read before a write."""
        self._to_read: set[FileKey] = set()  # files of which a change was undone
        self._last: LastChange | None = None  # None: nothing to undo
        self._turns: Final = Turns() if turns is None else turns
        self._has_turns = False
        self._versions = ReadVersions(KeptBytes() if kept is None else kept)
        self._own = OwnChanges()
        self._has_news = False
        self._lock = Lock()

    @property
    def is_kept(self) -> bool:
        """Return whether the client's next call will have this session too."""
        return self._memory is not Memory.NOTHING

    def knows(self, file: FileKey, now: BlobId | None) -> Knowledge:
        """Return what the session knows of a file whose current version is `now` (None: it does not exist)."""
        with self._lock:
            if file not in self._known:
                if self._copied.get(file, now) != now:
                    return Knowledge.STALE
                return Knowledge.NONE if self._memory is Memory.ALL else Knowledge.UNKNOWN
            is_whole = file not in self._parts or file in self._unchanged
            return Knowledge.CURRENT if self._known[file] == now and is_whole else Knowledge.STALE

    def must_read(self, file: FileKey, now: BlobId) -> bool:
        """Return whether the model has to read a file, whose current version is `now`, before it changes it."""
        with self._lock:
            return file in self._to_read or (self._require_read and self._known.get(file) != now)

    def has_read_only_part(self, file: FileKey) -> bool:
        """Return whether the model was shown only a part of a file that it has to read before it replaces it."""
        with self._lock:
            return file in self._unchanged

    def copied(self, file: FileKey, version: BlobId) -> None:
        """Note that the model made a backup of the file.

        That does not count as reading it, but a file that differs from this version later has changed.
        """
        with self._lock:
            self._copied[file] = version

    def saw(self, file: FileKey, version: BlobId | None, *, whole: bool = False) -> None:
        """Note that the model wrote this version of the file (None: deleted it), which is in the store.

        `whole`: the model wrote the whole file; otherwise lines that it was not shown before stay unread.
        """
        with self._lock:
            if not whole and version is not None and file not in self._known and self._memory is not Memory.ALL:
                self._versions.note(file, version)
                return  # what the rest of the file is, the session can't know
            self._known[file] = version
            if whole or version is None:
                self._unchanged.discard(file)
            if file not in self._unchanged:
                self._parts.pop(file, None)
            self._to_read.discard(file)
            if version is not None:
                self._versions.note(file, version)

    def showed(
        self, file: FileKey, version: BlobId, content: bytes, shown: Iterable[range], of: int, *, at: int
    ) -> None:
        """Note which lines of a version the model was shown, counted from 0.

        `of`: how many lines the file has (0: it is empty or binary). `content`: the version's bytes, which may be in
        no store. `at`: a time at which they had not been read yet. If no line was shown, nothing is noted.
        """
        parts = list(filter(None, shown))
        if of and not parts:
            return
        with self._lock:
            if self._known.get(file, version) != version:
                self._unchanged.discard(file)
            elif file not in self._known and (self._require_read or self._memory is not Memory.ALL):
                self._unchanged.add(file)
            if file in self._parts or file in self._unchanged or self._known.get(file, version) != version:
                of_version, lines = self._parts.get(file, (version, bytearray(of)))
                if of_version != version:
                    lines = bytearray(of)
                for part in parts:
                    lines[part.start : part.stop] = b"\1" * len(part)
                self._parts[file] = version, lines
                if 0 not in lines:
                    del self._parts[file]
                    self._unchanged.discard(file)
            self._known[file] = version
            self._met[file] = at
            self._to_read.discard(file)
            self._versions.note(file, version)
            self._versions.keep(file, version, content)

    def made(self, file: FileKey, before: BlobId, after: BlobId) -> None:
        """Note that the model edited version `before` into version `after`; both are in the store."""
        with self._lock:
            if self._known.get(file) == before:
                self._known[file] = after
            self._versions.note(file, after)
            self._versions.drop(file, before)

    def carried(self, file: FileKey, base: BlobId, version: BlobId, content: bytes) -> None:
        """Note the version that the model's edit made of `base`, before the edit was carried over to a newer version.

        That version is now the one that the model knows, if it knew `base`. `content`: its bytes, which are in no
        store.
        """
        with self._lock:
            if self._known.get(file) == base:
                self._known[file] = version
                self._versions.keep(file, version, content)

    def known(self, file: FileKey) -> BlobId | None:
        """Return the version that the model knows of the file (see also `carried`); None: none, or it was deleted."""
        with self._lock:
            return self._known.get(file)

    def met(self, file: FileKey) -> int:
        """Return when the model last read or wrote a file, as `written` says."""
        with self._lock:
            return self._met.get(file, 0)

    def written(self) -> dict[FileKey, int]:
        """Return the files that the model wrote since `compared`, each with when it last read or wrote it before.

        In microseconds since 1970-01-01 UTC; 0: never. A write by itself shows the model nothing that others have made
        of the file.
        """
        with self._lock:
            return dict(self._written)

    def compared(self, written: Iterable[FileKey]) -> None:
        """Note that the model was sent what others had made of these files before it wrote them."""
        with self._lock:
            for file in written:
                self._written.pop(file, None)

    def versions(self, file: FileKey) -> Sequence[BlobId]:
        """Return the last versions of the file that the model has seen, the latest first."""
        with self._lock:
            return self._versions.versions(file)

    def content(self, file: FileKey, version: BlobId) -> bytes | None:
        """Return the bytes of a version of the file that the model has seen, or None if only a store can have them."""
        with self._lock:
            return self._versions.content(file, version)

    def moved(self, source: FileKey, destination: FileKey) -> None:
        """Note that the model moved the file: what the session knows of it now belongs to the destination."""
        with self._lock:
            _move(self._copied, source, destination)
            _move(self._known, source, destination)
            _move(self._parts, source, destination)
            self._known[source] = None
            for noted in (self._to_read, self._unchanged):
                noted.discard(destination)
                if source in noted:
                    noted.remove(source)
                    noted.add(destination)
            self._versions.move(source, destination)

    def changed(self, root: str, edits: tuple[EditView, ...], *, backup: str = "") -> None:
        """Note the edits of a call in a workspace; if there are any, they are what can be undone from now on.

        `backup`: the canonical path of a backup among them, which is no edit of a file and not undone; "": none.
        """
        undoable = tuple(view for view in edits if os.fsdecode(view.edit.path) != backup)
        with self._lock:
            for view in edits:
                file = root, os.fsdecode(view.edit.path)
                source = (root, os.fsdecode(view.edit.source)) if view.edit.source else file
                self._written.setdefault(file, self._met.get(source, 0))
                self._met[file] = view.edit.time
            if undoable:
                self._last = LastChange(root=root, edits=undoable)
            self._has_news = self._has_news or bool(edits)
            for view in edits:
                place, path = _places(view.edit)
                self._own.note(root, place, path, before=view.edit.before, after=view.edit.after)

    def led(self, file: FileKey, origin: FileState, now: FileState) -> bool:
        """Return whether this session's calls alone changed a file from one state to its current one.

        So it is too if they created it.
        """
        with self._lock:
            return self._own.lead(file, origin, now)

    def turn_began(self, conversation: str, at: int) -> int:
        """Return when the turn with this conversation began in the session. A turn that is not known begins at `at`.

        In microseconds since 1970-01-01 UTC. "" is a turn whose conversation is not known yet: it always begins. A
        session that is not kept continues the session in which the turn began.
        """
        if not conversation:
            return at
        name, began = self._turns.began(conversation, self.name, at)
        with self._lock:
            self.name = name
            self._has_turns = True
        return began

    def has_turns(self) -> bool:
        """Return whether the session has begun to change files."""
        with self._lock:
            return self._has_turns

    def last_conversation(self) -> str:
        """Return the conversation of the session's last change ("": none, or it was undone)."""
        with self._lock:
            return "" if self._last is None else self._last.edits[0].edit.conversation

    def has_news(self) -> bool:
        """Return whether anything was recorded since this was last asked."""
        with self._lock:
            has_news, self._has_news = self._has_news, False
            return has_news

    @property
    def worth(self) -> int:
        """Return what would be lost with the session.

        0: nothing; 1: which versions were seen; 2: a change that can be undone, or files that must be read first.
        """
        with self._lock:
            return 2 if self._last is not None or self._to_read else int(bool(self._known))

    def last_change(self) -> LastChange | None:
        """Return the change that can be undone, or None."""
        with self._lock:
            return self._last

    def undid(self, change: LastChange, files: Iterable[FileKey]) -> None:
        """Note that a change was undone: it can't be again, and its files must be read before they are changed."""
        with self._lock:
            if self._last is change:
                self._last = None
            self._has_news = True
            self._to_read.update(files)
            for view in reversed(change.edits):
                source, path = _places(view.edit)
                self._own.note(change.root, path, source, before=view.edit.after, after=view.edit.before)


def _places(edit: Edit) -> tuple[str, str]:
    """Return the paths of an edit's file before and after it."""
    path = os.fsdecode(edit.path)
    return path if edit.source is None else os.fsdecode(edit.source), path


def _move(noted: dict[FileKey, NotedT], source: FileKey, destination: FileKey) -> None:
    """Move what is noted about one file to another path, replacing what is noted there."""
    noted.pop(destination, None)
    if source in noted:
        noted[destination] = noted.pop(source)
