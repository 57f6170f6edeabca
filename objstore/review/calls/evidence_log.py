"""Append to and read the log of evidence in `.cas/agents/events`: what hooks have reported, one small record a line.

Each hook of an agent's program runs in its own process, so one hook leaves what it learns for the next. A line says
what is so from then on of one thing: a call, an end, a turn, a session. The last line about a thing counts. Each line
has a number and a checksum: where a line is missing, damaged or unknown, the log has a gap, and a gap is evidence. The
log is no part of the history, and need not survive a power cut; if it is lost, changes are still found.
"""

import fcntl
import json
import os
import time
from binascii import crc32
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from objstore.disk.fs.nofollow import open_store_file, open_store_folder, require_no_symlink, write_derived_file
from objstore.disk.fs.reserved_names import AGENTS_NAME, EVENTS_NAME, STORE_NAME
from objstore.disk.fs.writer_lock import GAP_SECONDS
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import CasError, StoreLocked
from objstore.values.fastclass import NamedTuple

__all__ = ["EvidenceLog", "log_of"]

_VERSION: Final = 1
_PATIENCE: Final = 10.0
"""Seconds to wait for other processes that append: each takes much less than a millisecond."""

_SMALL: Final = 16 << 10
_LARGE: Final = 64 << 10
"""Bytes below which a log is not rewritten: when nothing is open, and in the middle of a turn."""

_DEAD_SHARE: Final = 4
"""How many times as long as the lines that count a log may be."""

_AROUND: Final = 40
"""Bytes of a line besides its name and its value, about."""

_GAP: Final = "gap"
"""The thing that says that something was missing when the log was rewritten."""

_LOST: Final = "lost"
"""The thing whose line says that lines were missing: its time is when the log was last rewritten without them."""

_WORDS_OF_HEAD: Final = 5  # "events", the version, the inode and the path of the store, when the file was written
_WORDS: Final = 4  # of each other line after its checksum: its number, when it was written, a name, a value
_LONGEST_HEAD: Final = 100

_FIRST: Final = "first"
"""The thing whose line is written before the first report of a hook: its time says since when agents have worked."""

_TRIES: Final = 10
"""How often a log is read that ends within a line: another process may be appending."""


class _Entry(NamedTuple):
    """The last line about one thing."""

    written: int  # when (ns of the file system)
    value: bytes  # as JSON


class EvidenceLog:
    """The log of one workspace. Any process may read and append at any time."""

    def __init__(self, journal: Journal) -> None:
        """Take the journal of the workspace; read nothing yet."""
        self._disk: Final = journal.disk
        self._store: Final = os.path.join(journal.tree.root, STORE_NAME)
        self._folder: Final = os.path.join(self._store, AGENTS_NAME)
        self._path: Final = os.path.join(self._folder, EVENTS_NAME)
        self._forget()

    # ---- reading

    @property
    def gap(self) -> str:
        """Why some of what was reported may be unknown; "": all of it is known."""
        self._refresh()
        return self._damage or str(self.read(_GAP).get("why", ""))

    @property
    def began(self) -> int | None:
        """When a hook first reported something, in the file system's time (ns; 0: not known); None: none ever did."""
        if self.gap:
            return 0
        return self.written(_FIRST) if self._entries else None

    @property
    def mended(self) -> int:
        """When lines were last found missing, in the file system's time (ns); 0: never, or a person knows it."""
        return self.written(_LOST)

    def names(self, *prefixes: str) -> list[str]:
        """Return the names of the things that begin with one of the prefixes, sorted."""
        self._refresh()
        return sorted(name for name in self._entries if name.startswith(prefixes))

    def exists(self, name: str) -> bool:
        """Return whether the log has such a thing."""
        self._refresh()
        return name in self._entries

    def written(self, name: str) -> int:
        """Return when the last line about a thing was written, in the file system's time (ns); 0: there is none."""
        self._refresh()
        entry = self._entries.get(name)
        return 0 if entry is None else entry.written

    def read(self, name: str) -> dict[str, Any]:
        """Return what is known of a thing; an empty dict if it is unknown."""
        self._refresh()
        entry = self._entries.get(name)
        return {} if entry is None else _decoded(entry.value) or {}

    def now(self) -> int:
        """Return the time that the file system gives to a file that changes now (ns). Raises what the disk raises."""
        with open_store_folder(self._folder) as folder:
            return self._disk.clock(folder, self._folder)

    # ---- writing

    def write(self, name: str, held: Mapping[str, Any]) -> None:
        """Say what is so of a thing from now on. Raises StoreLocked, and what the disk raises."""
        first = () if self.exists(_FIRST) else ((_FIRST, b"{}"),)
        self._append(*first, (name, json.dumps(held).encode()))

    def remove(self, *names: str) -> None:
        """Say that there are no such things any more. Never raises: a later scan finds what they changed once more."""
        with suppress(OSError, CasError):
            gone = [(name, b"null") for name in names if self.exists(name)]
            if gone:
                self._append(*gone)

    def mend(self) -> None:
        """Rewrite the log without its gap, and without what no longer counts. Raises what the disk raises."""
        lost = self.gap  # the lock creates a log that is missing
        with self._locked():
            self._refresh()
            lost = lost or self._damage
            if self._entries.pop(_GAP, None) or lost:
                self._entries[_LOST] = _Entry(self.now(), b"{}")
                from objstore.disk.witnesses.remarks import LOST_REPORTS, add_remarks  # lines are seldom lost

                add_remarks(os.path.dirname(self._store), LOST_REPORTS, [b"\n"])
            self._rewrite()

    def acknowledge_loss(self) -> None:
        """Forget that lines were missing: a person knows that nothing runs of which they said so."""
        self.remove(_LOST)

    def cut(self) -> None:
        """Drop the lines that no longer count, if they are most of the log. Raises what the disk raises."""
        self._refresh()
        if not self.gap and self._offset > _SMALL and self._offset > _DEAD_SHARE * self._live():
            self.mend()

    def make_folder(self) -> None:
        """Create the folder of the files about agents, with an empty log, if it is missing. Raises StoreLinked."""
        try:
            self._disk.make_store_folder(self._folder)
        except FileExistsError:
            require_no_symlink(self._folder)
            return
        with self._locked():
            pass

    # ---- inside

    def _forget(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._seen = (0, 0, 0)  # inode, size and time of the file up to the last whole line
        self._first = b""  # its first line
        self._offset = 0  # up to which the log was read
        self._number = 0  # of the last line
        self._is_foreign = False  # whether its first line is not of this workspace and version
        self._damage = ""  # why some of it can't be read; "": all of it can

    def _refresh(self) -> None:
        """Read what was appended since the last time."""
        for tries_left in reversed(range(_TRIES)):
            if self._read_on():
                return
            if tries_left:
                time.sleep(GAP_SECONDS)  # another process is appending, or has just made the folder
        self._damage = self._damage or "the log of what hooks reported is missing or cut off"

    def _read_on(self) -> bool:
        """Read what was appended since the last time; return False if it ends within a line, or is missing."""
        try:
            found = os.lstat(self._path)
            if (found.st_ino, found.st_size, found.st_mtime_ns) == self._seen:
                return found.st_size > 0
            fd = open_store_file(self._path, os.O_RDONLY)
        except FileNotFoundError:
            self._forget()
            return not os.path.lexists(self._folder)
        except (OSError, CasError):
            self._forget()
            self._damage = "the log of what hooks reported can't be read"
            return True
        try:
            found = os.fstat(fd)
            head = os.pread(fd, _LONGEST_HEAD, 0).partition(b"\n")[0]
            if head != self._first or found.st_size < self._offset:
                self._forget()  # it was rewritten
                self._first = head
            content = os.pread(fd, found.st_size - self._offset, self._offset)
            is_whole = self._take(content) if content else self._offset > 0
            self._seen = (found.st_ino, self._offset, found.st_mtime_ns)
            return is_whole
        finally:
            os.close(fd)

    def _take(self, content: bytes) -> bool:
        """Take lines that follow those that were read before; return False if the last one is not whole."""
        *lines, rest = content.split(b"\n")
        if not self._offset and lines and not self._is_own(lines.pop(0)):
            self._is_foreign = True
            if lines or rest:  # a log without lines says nothing, wherever it was written
                self._damage = "the log of what hooks reported is another workspace's or version's"
            lines = []
        self._offset += len(content) - len(rest)
        for line in lines:
            self._take_line(line)
        return not rest

    def _take_line(self, line: bytes) -> None:
        checksum, _, said = line.partition(b" ")
        parts = said.split(b" ", 3)
        if len(parts) != _WORDS or checksum != b"%08x" % crc32(said) or not (parts[0] + parts[1]).isdigit():
            self._damage = self._damage or "a line of the log of what hooks reported is damaged"
            return
        number, written, name = int(parts[0]), int(parts[1]), parts[2].decode("ascii", "replace")
        if number <= self._number:
            return  # the line is there twice
        if number != self._number + 1:
            self._damage = self._damage or "lines of the log of what hooks reported are missing"
        self._number = number
        if parts[3] == b"null":
            self._entries.pop(name, None)
        else:
            self._entries[name] = _Entry(written, parts[3])

    def _append(self, *said: tuple[str, bytes]) -> None:
        """Append what is said of things, each a line of its own."""
        self._refresh()
        lost = self._damage  # the lock creates a log that is missing
        with self._locked() as fd:
            self._refresh()
            lost = lost or self._damage
            now = self.now()
            if not lost and not self._is_foreign:
                lines = [self._line(number, now, *each) for number, each in enumerate(said, start=self._number + 1)]
                self._disk.append(fd, b"".join(lines), self._path)
                if self._offset > _LARGE and self._offset > _DEAD_SHARE * self._live():
                    self._refresh()
                    self._rewrite()
                return
            if lost:
                self._entries[_GAP] = _Entry(now, json.dumps({"why": lost}).encode())
            for name, value in said:
                self._entries[name] = _Entry(now, value)
                if value == b"null":
                    del self._entries[name]
            self._rewrite()

    def _live(self) -> int:
        """Return the bytes of the lines that count."""
        return sum(len(entry.value) + len(name) + _AROUND for name, entry in self._entries.items())

    def _rewrite(self) -> None:
        lines = [self._head()]
        for number, (name, entry) in enumerate(self._entries.items(), start=1):
            lines.append(self._line(number, entry.written, name, entry.value))
        write_derived_file(self._disk, self._store, AGENTS_NAME, EVENTS_NAME, b"".join(lines))
        self._forget()

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the log open for appending, while no other process appends or rewrites. Raises StoreLocked."""
        with suppress(FileExistsError):
            self._disk.make_store_folder(self._folder)
        until = time.monotonic() + _PATIENCE
        while True:
            fd = open_store_file(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            try:
                while not _is_taken(fd):
                    if time.monotonic() > until:
                        raise StoreLocked(self._path, _PATIENCE)
                    time.sleep(GAP_SECONDS)
                with suppress(FileNotFoundError):
                    if os.stat(self._path, follow_symlinks=False).st_ino == os.fstat(fd).st_ino:
                        if not os.fstat(fd).st_size:
                            self._disk.append(fd, self._head(), self._path)
                        elif os.pread(fd, 1, os.fstat(fd).st_size - 1) != b"\n":
                            self._disk.append(fd, b"\n", self._path)  # what follows a cut line is whole
                        yield fd
                        return
            finally:
                os.close(fd)

    def _head(self) -> bytes:
        return b"events %d %d %08x %d\n" % (_VERSION, os.lstat(self._store).st_ino, self._place(), time.time_ns())

    def _place(self) -> int:
        """Return a number for the path of the store: a copy has another one, while a move keeps the store's inode."""
        return crc32(os.fsencode(os.path.realpath(self._store)))

    def _is_own(self, head: bytes) -> bool:
        words = head.split(b" ")
        is_known = words[:2] == [b"events", b"%d" % _VERSION] and len(words) == _WORDS_OF_HEAD
        return is_known and (words[2] == b"%d" % os.lstat(self._store).st_ino or words[3] == b"%08x" % self._place())

    @staticmethod
    def _line(number: int, written: int, name: str, value: bytes) -> bytes:
        said = b"%d %d %s %s" % (number, written, name.encode(), value)
        return b"%08x %s\n" % (crc32(said), said)


def log_of(journal: Journal) -> EvidenceLog:
    """Return the log of a journal's workspace, which is read once for all that ask."""
    log = journal.kept.get(EVENTS_NAME)
    if not isinstance(log, EvidenceLog):
        log = journal.kept[EVENTS_NAME] = EvidenceLog(journal)
    return log


def _is_taken(fd: int) -> bool:
    """Lock an open file unless another process holds its lock; return whether it is locked now."""
    with suppress(BlockingIOError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _decoded(value: bytes) -> dict[str, Any] | None:
    try:
        held = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return held if isinstance(held, dict) else None
