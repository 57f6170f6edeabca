"""As recorded: which files are, or may be, other than the journal says, with as few questions as can be.

Folders whose recorded files look as they did when they were as recorded are passed by with one question to the system
for each file, and none to the index. So are those in which a few files were not: those few are asked for one by one.
Only the other folders are taken apart.
"""

from __future__ import annotations

import os
import stat
import time
from itertools import chain
from typing import TYPE_CHECKING, Final

from objstore.errors import CasError
from objstore.fastclass import NamedTuple
from objstore.fs.file_state import disk_state
from objstore.fs.stat_signature import StatSignature, pack_signatures, read_signature_fields
from objstore.index.rows import RecordedFileStat, Tip
from objstore.index.stat_queries import CleanFolder, CleanFolders, digest, folder_of, folder_signature_of
from objstore.model.basic_types import DocumentId, FileState
from objstore.model.ids import BlobId
from objstore.model.relpath import beginning
from objstore.worktree.changed_dirs import changed_folders

if TYPE_CHECKING:
    from collections.abc import Sequence, Set as AbstractSet

    from objstore.transaction.journal import Journal

__all__ = ["changed_tips"]

_GRACE_NS: Final = 2_000_000_000
"""A file touched so lately may change again without its times showing it, on file systems with coarse clocks."""

_FEW: Final = 4
"""If one folder in so many has to be taken apart, all are, in one question to the index. So with a folder's files."""


class _CleanFile(NamedTuple):
    """A file that is as the journal says, and will show it when it is not."""

    name: bytes
    facts: StatSignature


def changed_tips(journal: Journal) -> list[Tip]:
    """Return the tips whose files are, or may be, other than recorded, by path."""
    index = journal.store.index
    now = index.stats.position()
    kept = index.stats.clean_folders()
    recorded: set[bytes] = set()
    stood: dict[bytes, CleanFolder] = {}
    passed: set[bytes] = set()
    tips: list[Tip] = []
    ways = _SymlinkFreeFolders(journal.tree.fd)
    if kept is not None and kept.until.taken_back == now.taken_back:
        stood = {each.folder: each for each in kept.folders}
        if kept.until != now:
            recorded = index.stats.folders_recorded_since(kept.until)
        passed, tips = _clean_folder_tips(journal, ways, kept, recorded)
    suspects = recorded | (stood.keys() - passed)
    is_all = not stood or len(suspects) * _FEW > len(stood)
    recorded_file_stats = (
        index.stats.recorded_file_stats()
        if is_all
        else chain.from_iterable(map(index.stats.recorded_file_stats, sorted(suspects)))
    )
    inspection = _Inspection(journal, ways)
    changed = inspection.changed(list(recorded_file_stats))
    found = inspection.stood()
    news = [each for each in found if stood.get(each.folder) != each]
    gone = (
        None if not stood else (stood.keys() if is_all else suspects & stood.keys()) - {each.folder for each in found}
    )
    if news or gone or recorded or kept is None:
        index.store_clean_folders(now, news, gone)
    return sorted(changed if is_all else tips + changed, key=lambda tip: (tip.path, tip.document))


class _SymlinkFreeFolders:
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

    def __init__(self, journal: Journal, ways: _SymlinkFreeFolders) -> None:
        self._journal: Final = journal
        self._ways: Final = ways
        self._folders: dict[bytes, tuple[list[_CleanFile], list[bytes]]] = {}  # files as recorded; names of all others

    def changed(self, recorded_file_stats: Sequence[RecordedFileStat]) -> list[Tip]:
        """Return the tips whose files are, or may be, other than recorded."""
        changed: list[Tip] = []
        learnt: list[tuple[bytes, int, int, int, int, BlobId]] = []
        young = time.time_ns() - _GRACE_NS
        root, look_at = self._journal.tree.fd, os.lstat
        for document, path, blob, mode, inode, size, mtime, ctime, read in recorded_file_stats:
            folder = folder_of(path)
            as_recorded, others = self._folders.setdefault(folder, ([], []))
            others.append(path.rpartition(b"/")[2])
            tip = Tip(DocumentId(document), path, FileState(blob=BlobId(blob), mode=mode))
            try:
                facts = (
                    StatSignature._make(read_signature_fields(look_at(path, dir_fd=root)))
                    if self._ways.is_straight(folder)
                    else None
                )
            except OSError:
                facts = None
            if facts is None:
                changed.append(tip)
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
                changed.append(self._journal.store.index.documents.tip(tip.document))
            elif not is_young:
                as_recorded.append(_CleanFile(others.pop(), facts))
        if learnt:
            self._journal.store.index.store_seen_signatures(learnt)
        return changed

    def stood(self) -> list[CleanFolder]:
        """Return the folders that were looked at, as they are kept."""
        return [
            CleanFolder(
                folder,
                b"\0".join([name for name, _ in as_recorded]),
                digest(pack_signatures([facts for _, facts in as_recorded])),
                b"\0".join(others),
            )
            for folder, (as_recorded, others) in self._folders.items()
        ]

    def _read_now(self, path: bytes) -> bytes | None:
        """Return the blob of what stands at a path (None: nothing that can be read)."""
        try:
            found = disk_state(self._journal.tree, path)
        except CasError:
            return None
        return None if found is None else found[0].blob


def _clean_folder_tips(
    journal: Journal, ways: _SymlinkFreeFolders, stood: CleanFolders, recorded: AbstractSet[bytes]
) -> tuple[set[bytes], list[Tip]]:
    """Return the folders that need not be taken apart, and the tips in them whose files are other than recorded."""
    # A glance looks itself whether the folder is one.
    sure = [
        each
        for each in stood.folders
        if each.folder not in recorded and _are_few(each) and ways.is_straight(folder_of(each.folder))
    ]
    otherwise = set(changed_folders(journal.tree.fd, [folder_signature_of(each) for each in sure], digest))
    passed: set[bytes] = set()
    tips: list[Tip] = []
    for each in sure:
        if each.folder in otherwise:
            continue
        changed: list[Tip] = []
        if each.others:
            recorded_file_stats = [
                look for path in _others(each) for look in journal.store.index.stats.recorded_file_stats_at(path)
            ]
            changed = _Inspection(journal, ways).changed(recorded_file_stats)
            if len(changed) < len(recorded_file_stats):
                continue  # one of them is as recorded again
        passed.add(each.folder)
        tips += changed
    return passed, tips


def _are_few(stood: CleanFolder) -> bool:
    """Return whether most files in a folder were as recorded."""
    return not stood.others or (stood.others.count(b"\0") + 1) * _FEW <= stood.names.count(b"\0") + 1


def _others(stood: CleanFolder) -> list[bytes]:
    """Return the paths of the files in a folder that were not as recorded, or could have changed unseen."""
    above = beginning(stood.folder)
    return [above + name for name in stood.others.split(b"\0")]
