"""A session: which version of each file its model knows, what it changed last, and who the model's client is."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from threading import Lock
from typing import Final, TypeAlias, TypeVar

from mcptools.model.seen_versions import SeenVersions
from objstore import BlobId, EditView

__all__ = ["FileKey", "Knowledge", "LastChange", "Session"]

NotedT = TypeVar("NotedT")

FileKey: TypeAlias = tuple[str, str]
"""A workspace's root and a canonical path in it."""


class Knowledge(Enum):
    """How what a session knows of a file stands to what the file is."""

    NONE = auto()  # it never read or wrote the file
    CURRENT = auto()
    STALE = auto()  # the file has changed since, and it was not shown all of what it is now


@dataclass(frozen=True, slots=True, kw_only=True)
class LastChange:
    """The last call of a session that changed a file: what can be undone. The bytes before it are in the store."""

    root: str  # of the workspace
    edits: tuple[EditView, ...]  # at least one


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lineage:
    """The versions of a file that hold a base and this session's own edits, and no change of anybody else."""

    base: BlobId | None  # None: the session created the file
    versions: set[BlobId]


class Session:
    """What a server remembers of one client's model, for as long as it runs. Safe to use from several threads.

    A version is known from a read, or from a write of a file that was known or new to the session. Of a file which has
    changed since, all lines have to be shown, in whatever parts. An edit that goes ahead in it without that leaves the
    session's knowledge as it is: the model has still not seen those changes, and must not bury them by writing the
    whole file. Where the edit is carried over, the model knows the version that it knew with that edit made, which the
    file never was.
    """

    def __init__(self, *, require_read: bool = False) -> None:
        self.client: dict[str, str] = {}  # its name and version, as recorded with each call; {}: not yet known
        self.undoing: Final = Lock()  # held while a change is undone, so that it is undone once
        self._require_read = require_read
        self._known: dict[FileKey, BlobId | None] = {}  # None: the file was gone
        self._copied: dict[FileKey, BlobId] = {}  # the versions last copied; they count where none is known
        self._lineages: dict[FileKey, _Lineage] = {}  # of files that it had copied or has created
        self._parts: dict[FileKey, tuple[BlobId, bytearray]] = {}
        """Of files that were shown in part: of which version, and for each line whether it was."""
        self._unchanged: set[FileKey] = set()
        """Of these, the ones that were shown for the first time; it is noted where files have to be read."""
        self._to_read: set[FileKey] = set()  # files that were undone
        self._last: LastChange | None = None  # None: nothing to undo
        self._pins = SeenVersions()
        self._has_news = False
        self._lock = Lock()

    def knows(self, file: FileKey, now: BlobId | None) -> Knowledge:
        """Return what the session knows of a file that is `now` such (None: it does not exist)."""
        with self._lock:
            if file not in self._known:
                return Knowledge.NONE if self._copied.get(file, now) == now else Knowledge.STALE
            is_whole = file not in self._parts or file in self._unchanged
            return Knowledge.CURRENT if self._known[file] == now and is_whole else Knowledge.STALE

    def must_read(self, file: FileKey, now: BlobId) -> bool:
        """Return whether the model may not change a file that is `now` such before it has read it."""
        with self._lock:
            return file in self._to_read or (self._require_read and self._known.get(file) != now)

    def has_seen_only_part(self, file: FileKey) -> bool:
        """Return whether the model, which has to read files, was shown no more of the file than a part."""
        with self._lock:
            return file in self._unchanged

    def copied(self, file: FileKey, version: BlobId) -> None:
        """Note that the model had the file copied, which is no reading: a file that is another by then has changed."""
        with self._lock:
            self._copied[file] = version
            self._begin_lineage(file, version)

    def backed_up(self, root: str, path: str, version: BlobId, edits: Iterable[EditView]) -> None:
        """Note that a call of these edits has kept a backup of a file in a workspace, of the version before them."""
        with self._lock:
            self._begin_lineage((root, path), version)
            self._extend_lineages(root, edits)

    def has_made(self, file: FileKey, version: BlobId, since: BlobId) -> bool:
        """Return whether all that `version` of a file changes of the version `since` is this session's own work."""
        with self._lock:
            lineage = self._lineages.get(file)
            if lineage is None or version not in lineage.versions:
                return False
            return lineage.base is None or since in lineage.versions

    def saw(self, file: FileKey, version: BlobId | None, *, whole: bool = False) -> None:
        """Note that the model has made the file what it is (None: deleted it); the version is in the store.

        `whole`: it has made all of the file; else what it was not shown before is not shown by that.
        """
        with self._lock:
            self._known[file] = version
            if whole or version is None:
                self._unchanged.discard(file)
            if file not in self._unchanged:
                self._parts.pop(file, None)
            self._to_read.discard(file)
            if version is not None:
                self._pins.note(file, version)

    def showed(self, file: FileKey, version: BlobId, content: bytes, shown: Iterable[range], of: int) -> None:
        """Note which lines, counted from 0, of how many (0: of an empty or binary file) the model was shown.

        `content`: the version's bytes, which may be in no store. Where no line was shown, nothing is noted.
        """
        parts = list(filter(None, shown))
        if of and not parts:
            return
        with self._lock:
            if self._known.get(file, version) != version:
                self._unchanged.discard(file)
            elif self._require_read and file not in self._known:
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
            self._to_read.discard(file)
            self._pins.note(file, version)
            self._pins.keep(file, version, content)

    def made(self, file: FileKey, before: BlobId, after: BlobId) -> None:
        """Note a version that the model has made of another one, in parts of the file; both are in the store."""
        with self._lock:
            if self._known.get(file) == before:
                self._known[file] = after
            self._pins.note(file, after)
            self._pins.drop(file, before)

    def carried(self, file: FileKey, base: BlobId, version: BlobId, content: bytes) -> None:
        """Note what the model has made of `base`, which the file was no longer: it is what the model has in mind.

        `content`: the version's bytes, which are in no store. Of a base that is not the version that it knows, nothing.
        """
        with self._lock:
            if self._known.get(file) == base:
                self._known[file] = version
                self._pins.keep(file, version, content)

    def known(self, file: FileKey) -> BlobId | None:
        """Return the version that the model knows of the file, or has in mind (`carried`); None: none, or no file."""
        with self._lock:
            return self._known.get(file)

    def versions(self, file: FileKey) -> Sequence[BlobId]:
        """Return the last versions of the file that the model has seen, the latest first."""
        with self._lock:
            return self._pins.versions(file)

    def content(self, file: FileKey, version: BlobId) -> bytes | None:
        """Return the bytes of a version of the file that the model has seen; None: look for them in the store."""
        with self._lock:
            return self._pins.content(file, version)

    def moved(self, source: FileKey, destination: FileKey) -> None:
        """Note that the model has moved the file; what was known of it, and no more, is known of it there."""
        with self._lock:
            _move(self._copied, source, destination)
            _move(self._known, source, destination)
            _move(self._parts, source, destination)
            _move(self._lineages, source, destination)
            self._known[source] = None
            for noted in (self._to_read, self._unchanged):
                noted.discard(destination)
                if source in noted:
                    noted.remove(source)
                    noted.add(destination)
            self._pins.move(source, destination)

    def changed(self, root: str, edits: tuple[EditView, ...]) -> None:
        """Note what a call changed in a workspace; it is what can be undone from now on, unless it is nothing."""
        if edits:
            with self._lock:
                self._last = LastChange(root=root, edits=edits)
                self._has_news = True
                self._extend_lineages(root, edits)

    def _begin_lineage(self, file: FileKey, version: BlobId) -> None:
        """Begin the file's lineage at a version, unless it is in the one that there is."""
        if file not in self._lineages or version not in self._lineages[file].versions:
            self._lineages[file] = _Lineage(base=version, versions={version})

    def _extend_lineages(self, root: str, edits: Iterable[EditView]) -> None:
        """Add what each edit made to its file's lineage, if it was made of a version in it."""
        for edit in (view.edit for view in edits):
            if edit.after is None or edit.source is not None:
                continue  # a deletion makes no version, and a move takes the lineage along
            file = root, os.fsdecode(edit.path)
            if edit.before is None:
                self._lineages[file] = _Lineage(base=None, versions={edit.after.blob})
            elif file in self._lineages and edit.before.blob in self._lineages[file].versions:
                self._lineages[file].versions.add(edit.after.blob)

    def has_news(self) -> bool:
        """Return whether anything was recorded since this was last asked."""
        with self._lock:
            has_news, self._has_news = self._has_news, False
            return has_news

    @property
    def worth(self) -> int:
        """Return how much would be lost with it: 0 nothing, 1 what was seen, 2 what can be undone or has to be read."""
        with self._lock:
            return 2 if self._last is not None or self._to_read else int(bool(self._known))

    def last_change(self) -> LastChange | None:
        """Return what can be undone; None: nothing."""
        with self._lock:
            return self._last

    def undid(self, change: LastChange, files: Iterable[FileKey]) -> None:
        """Note that a change was undone: it can't be again, and its files are to be read before any tool takes them."""
        with self._lock:
            if self._last is change:
                self._last = None
            self._has_news = True
            self._to_read.update(files)


def _move(noted: dict[FileKey, NotedT], source: FileKey, destination: FileKey) -> None:
    """Let what is noted of one file be noted of another, in whose place it is now."""
    noted.pop(destination, None)
    if source in noted:
        noted[destination] = noted.pop(source)
