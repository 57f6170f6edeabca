"""As recorded: which files are, or may be, other than the journal says, with as few questions as can be.

Folders whose recorded files all look as they did when they were as recorded are passed by with one question to the
system for each file, and none to the index; only the others are taken apart.
"""

import os
import stat
import time
from collections.abc import Iterator, Sequence
from itertools import chain

from objstore.annotations import Final
from objstore.errors import CasError
from objstore.facts import FACTS, Facts, Glimpse, pack_facts
from objstore.glance import changed_folders
from objstore.ids import BlobId
from objstore.indexrows import Look, Tip
from objstore.journal import Journal
from objstore.ondisk import disk_state
from objstore.statlookups import Stood, folder_of
from objstore.terms import DocumentId, FileState
from objstore.values import NamedTuple

__all__ = ["changed_tips"]

_GRACE_NS: Final = 2_000_000_000
"""A file touched so lately may change again without its times showing it, on file systems with coarse clocks."""

_FEW: Final = 4
"""If one folder in so many has to be taken apart, all are: in one question to the index."""


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
    ways = _Ways(journal.tree.fd)
    sure = [each for each in sure if ways.is_straight(folder_of(each.folder))]  # a glance looks whether this one is
    otherwise = changed_folders(journal.tree.fd, list(map(_glimpse, sure)))
    suspects = recorded.union(stood.keys() - {each.folder for each in sure}, otherwise)
    is_all = not stood or len(suspects) * _FEW > len(stood)
    looks = index.looks() if is_all else chain.from_iterable(map(index.looks, sorted(suspects)))
    inspection = _Inspection(journal, ways)
    yield from inspection.changed(list(looks))
    found = inspection.stood()
    news = [each for each in found if stood.get(each.folder) != each]
    gone = (stood.keys() if is_all else suspects & stood.keys()) - {each.folder for each in found}
    if news or gone or recorded or until is None:
        index.remember_stood(now, news, gone)


class _Ways:
    """Which folders are reached without following a link: what is behind one is none of the workspace's files."""

    def __init__(self, root: int) -> None:
        self._root: Final = root
        self._straight = {b"": True}

    def is_straight(self, folder: bytes) -> bool:
        """Return whether all on the way to a folder, and it itself, are folders."""
        way = []
        while folder not in self._straight:
            way.append(folder)
            folder = folder_of(folder)
        is_straight = self._straight[folder]
        for folder in reversed(way):
            is_straight = self._straight[folder] = is_straight and self._is_folder(folder)
        return is_straight

    def _is_folder(self, path: bytes) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(path, dir_fd=self._root).st_mode)
        except OSError:
            return False


class _Inspection:
    """A look at files one by one, each with what the journal says of it."""

    def __init__(self, journal: Journal, ways: _Ways) -> None:
        self._journal: Final = journal
        self._ways: Final = ways
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
                facts = Facts._make(FACTS(look_at(path, dir_fd=root))) if self._ways.is_straight(folder) else None
            except OSError:
                facts = None
            if facts is None:
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
    return Stood(folder, names, pack_facts([facts for _, facts in seen or ()]))


def _glimpse(stood: Stood) -> Glimpse:
    return Glimpse(stood.folder, None, stood.names.split(b"\0"), stood.facts)
