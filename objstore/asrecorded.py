"""As recorded: which files are, or may be, other than the journal says, with as few questions as can be.

Folders whose recorded files all look as they did when they were as recorded are passed by with one question to the
system for each file, and none to the index; only the others are taken apart.
"""

import os
import struct
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple

from objstore.errors import CasError
from objstore.ids import BlobId
from objstore.indexrows import Look, Tip
from objstore.journal import Journal
from objstore.ondisk import disk_state
from objstore.statlookups import Stood, folder_of
from objstore.terms import DocumentId, FileState
from objstore.twofold import may_fork, paths_by_two

__all__ = ["changed_tips"]

_GRACE_NS: Final = 2_000_000_000
"""A file touched so lately may change again without its times showing it, on file systems with coarse clocks."""

_WORTH_TWO: Final = 4_000
"""Files: for fewer, a second process costs more than it saves."""

_FEW: Final = 4
"""If one folder in so many has to be taken apart, all are: in one question to the index."""

_FACTS: Final = attrgetter("st_ctime_ns", "st_mtime_ns", "st_size", "st_ino", "st_mode")
_FOLDER: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)

Facts = tuple[int, int, int, int, int]
"""ctime, mtime (ns), size, inode, mode."""


class _Seen(NamedTuple):
    """A file that is as the journal says, and will show it when it is not."""

    path: bytes
    facts: Facts


def changed_tips(journal: Journal) -> Iterator[Tip]:
    """Yield the tips whose files are, or may be, other than recorded."""
    index = journal.store.index
    now = index.moment()
    until, kept = index.stood()
    stood = {each.folder: each for each in kept}
    recorded: set[bytes] = set()
    if until is None or until.taken_back != now.taken_back:
        stood = {}
    elif until != now:
        recorded = index.folders_recorded_since(until)
    sure = [each for each in stood.values() if each.facts and each.folder not in recorded]
    suspects = recorded.union(stood.keys() - {each.folder for each in sure}, _otherwise(journal.tree.fd, sure))
    is_all = not stood or len(suspects) * _FEW > len(stood)
    looks = index.looks() if is_all else chain.from_iterable(map(index.looks, sorted(suspects)))
    inspection = _Inspection(journal)
    yield from inspection.changed(list(looks))
    found = inspection.stood()
    news = [each for each in found if stood.get(each.folder) != each]
    gone = (stood.keys() if is_all else suspects & stood.keys()) - {each.folder for each in found}
    if news or gone or recorded or until is None:
        index.remember_stood(now, news, gone)


class _Inspection:
    """A look at files one by one, each with what the journal says of it."""

    def __init__(self, journal: Journal) -> None:
        self._journal: Final = journal
        self._folders: dict[bytes, list[_Seen] | None] = {}  # None: something in it is not as recorded, or may not be

    def changed(self, looks: Sequence[Look]) -> Iterator[Tip]:
        """Yield the tips whose files are, or may be, other than recorded."""
        learnt: list[tuple[bytes, int, int, int, int, BlobId]] = []
        young = time.time_ns() - _GRACE_NS
        root, look_at = self._journal.tree.fd, os.lstat
        for document, path, blob, mode, inode, size, mtime, ctime, read in looks:
            folder = folder_of(path)
            beside = self._folders.setdefault(folder, [])
            self._folders[folder] = None
            tip = Tip(DocumentId(document), path, FileState(blob=BlobId(blob), mode=mode))
            try:
                facts: Facts = _FACTS(look_at(path, dir_fd=root))
            except OSError:
                yield tip
                continue
            is_young = False
            if facts[:4] == (ctime, mtime, size, inode):
                stands: bytes | None = read
            else:
                stands = self._read_now(path)
                is_young = max(facts[:2]) >= young
                if stands is not None and not is_young:
                    learnt.append((path, facts[3], facts[2], facts[1], facts[0], BlobId(stands)))
            if stands != blob or facts[4] & 0o7777 != mode:
                yield tip
            elif beside is not None and not is_young:
                beside.append(_Seen(path, facts))
                self._folders[folder] = beside
        if learnt:
            self._journal.store.index.remember_seen(learnt)

    def stood(self) -> list[Stood]:
        """Return the folders that were looked at, as they are kept."""
        return [_stood(folder, seen) for folder, seen in self._folders.items()]

    def _read_now(self, path: bytes) -> bytes | None:
        """Return the blob of what stands at a path (None: nothing that can be read)."""
        try:
            found = disk_state(self._journal.tree, path)
        except CasError:
            return None
        return None if found is None else found[0].blob


def _stood(folder: bytes, seen: list[_Seen] | None) -> Stood:
    names = b"\0".join([path.rpartition(b"/")[2] for path, _ in seen or ()])
    try:
        return Stood(folder, names, _packed([facts for _, facts in seen or ()]))
    except struct.error:
        return Stood(folder, b"", b"")  # a number that no file system should tell


def _packed(facts: Sequence[Facts]) -> bytes:
    numbers = list(chain.from_iterable(facts))
    return struct.pack(f"<{len(numbers)}q", *numbers)


def _otherwise(root: int, known: Sequence[Stood]) -> list[bytes]:
    """Return the folders whose files do not look as they did, below the open folder `root`."""
    files = sum(each.names.count(b"\0") + 1 for each in known)
    if files >= _WORTH_TWO and may_fork():
        return paths_by_two(partial(_otherwise_by_one, root), known)
    return _otherwise_by_one(root, known)


def _otherwise_by_one(root: int, known: Sequence[Stood]) -> list[bytes]:
    found = []
    for folder, names, facts in known:
        try:
            fd = os.open(folder or b".", _FOLDER, dir_fd=root)
        except OSError:
            found.append(folder)  # gone, or no folder any more
            continue
        try:
            looks = map(partial(os.lstat, dir_fd=fd), names.split(b"\0"))
            if _packed(list(map(_FACTS, looks))) != facts:
                found.append(folder)
        except (OSError, struct.error):
            found.append(folder)
        finally:
            os.close(fd)
    return found
