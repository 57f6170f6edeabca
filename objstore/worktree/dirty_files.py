"""Find the files that differ, or may differ, from their recorded state, with as few system calls as possible.

The index keeps a digest for each folder whose files matched their records. A folder whose digest is the same costs one
lstat for each file and no index query. The same is true of a folder with a few dirty files: only those few are checked
one by one. All files of the other folders are checked against the index.
"""

from __future__ import annotations

import os
import stat
import time
from itertools import chain
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.file_state import disk_state
from objstore.disk.fs.stat_signature import StatSignature, pack_signatures, read_signature_fields
from objstore.model.basic_types import DocumentId, FileState, recorded_mode
from objstore.model.ids import BlobId
from objstore.model.relpath import beginning
from objstore.storage.index.queries.file_stat_queries import (
    CleanFolder,
    CleanFolders,
    digest,
    folder_of,
    folder_signature_of,
)
from objstore.storage.index.rows import RecordedFileStat, Tip
from objstore.values.errors import CasError
from objstore.values.fastclass import NamedTuple
from objstore.worktree.changed_dirs import changed_folders

if TYPE_CHECKING:
    from collections.abc import Sequence, Set as AbstractSet

    from objstore.storage.transaction.journal import Journal
    from objstore.worktree.changed_dirs import SharedLooks

__all__ = ["changed_tips"]

_GRACE_NS: Final = 2_000_000_000
"""A file changed so recently may change again with the same times, on file systems with coarse clocks."""

_FEW: Final = 4
"""If more than one folder in so many is suspect, one query reads all of them. The same holds for a folder's files."""


class _CleanFile(NamedTuple):
    """A file that matches its record, and whose signature will change when the file does."""

    name: bytes
    signature: StatSignature


def changed_tips(journal: Journal, shared: SharedLooks | None = None) -> list[Tip]:
    """Return the tips whose files differ, or may differ, from them, ordered by path.

    `shared`: gets what was seen of folders of which all files were as recorded the last time.
    """
    index = journal.store.index
    now = index.file_stats.position()
    kept = index.file_stats.clean_folders()
    recorded: set[bytes] = set()
    clean: dict[bytes, CleanFolder] = {}
    checked: set[bytes] = set()
    tips: list[Tip] = []
    real_folders = _SymlinkFreeFolders(journal.tree.fd)
    if kept is not None and kept.until.voided == now.voided:
        clean = {each.folder: each for each in kept.folders}
        if kept.until != now:
            recorded = index.file_stats.folders_recorded_since(kept.until)
        checked, tips = _clean_folder_tips(journal, real_folders, kept, recorded, shared)
    suspects = recorded | (clean.keys() - checked)
    is_all = not clean or len(suspects) * _FEW > len(clean)
    recorded_file_stats = (
        index.file_stats.recorded_file_stats()
        if is_all
        else chain.from_iterable(map(index.file_stats.recorded_file_stats, sorted(suspects)))
    )
    inspection = _Inspection(journal, real_folders)
    changed = inspection.changed(list(recorded_file_stats))
    found = inspection.clean_folders()
    new = [each for each in found if clean.get(each.folder) != each]
    gone = (
        None if not clean else (clean.keys() if is_all else suspects & clean.keys()) - {each.folder for each in found}
    )
    if new or gone or recorded or kept is None:
        index.store_clean_folders(now, new, gone)
    return sorted(changed if is_all else tips + changed, key=lambda tip: (tip.path, tip.document))


class _SymlinkFreeFolders:
    """The folders that are reached without following a symlink: files behind one are not the workspace's."""

    def __init__(self, root: int) -> None:
        self._root: Final = root
        self._is_real = {b"": True}

    def has(self, folder: bytes) -> bool:
        """Return whether a path, and every path above it, is a folder and no symlink."""
        unchecked = []
        while folder not in self._is_real:
            unchecked.append(folder)
            folder = folder_of(folder)
        is_real = self._is_real[folder]
        for folder in reversed(unchecked):
            is_real = self._is_real[folder] = is_real and self._is_folder(folder)
        return is_real

    def _is_folder(self, path: bytes) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(path, dir_fd=self._root).st_mode)
        except OSError:
            return False


class _Inspection:
    """A check of single files against their recorded states."""

    def __init__(self, journal: Journal, real_folders: _SymlinkFreeFolders) -> None:
        self._journal: Final = journal
        self._real_folders: Final = real_folders
        self._folders: dict[bytes, tuple[list[_CleanFile], list[bytes]]] = {}  # clean files; names of all others

    def changed(self, recorded_file_stats: Sequence[RecordedFileStat]) -> list[Tip]:
        """Return the tips whose files differ, or may differ, from them."""
        changed: list[Tip] = []
        newly_read: list[tuple[bytes, int, int, int, int, BlobId]] = []
        grace_start = time.time_ns() - _GRACE_NS
        root, lstat = self._journal.tree.fd, os.lstat
        for document, path, blob, mode, inode, size, mtime, ctime, read in recorded_file_stats:
            folder = folder_of(path)
            clean, others = self._folders.setdefault(folder, ([], []))
            others.append(path.rpartition(b"/")[2])
            tip = Tip(DocumentId(document), path, FileState(blob=BlobId(blob), mode=mode))
            try:
                signature = (
                    StatSignature._make(read_signature_fields(lstat(path, dir_fd=root)))
                    if self._real_folders.has(folder)
                    else None
                )
            except OSError:
                signature = None
            if signature is None:
                changed.append(tip)
                continue
            is_in_grace = False
            if signature[:4] == (ctime, mtime, size, inode):
                blob_now: bytes | None = read
            else:
                blob_now = self._read_now(path)
                is_in_grace = max(signature[:2]) >= grace_start
                if blob_now is not None and not is_in_grace:
                    newly_read.append((path, signature[3], signature[2], signature[1], signature[0], BlobId(blob_now)))
            if blob_now != blob or recorded_mode(signature[4]) != mode:
                changed.append(self._journal.store.index.documents.tip(tip.document))
            elif not is_in_grace:
                clean.append(_CleanFile(others.pop(), signature))
        if newly_read:
            self._journal.store.index.store_seen_signatures(newly_read)
        return changed

    def clean_folders(self) -> list[CleanFolder]:
        """Return the folders of all checked files, in the form that the index keeps."""
        return [
            CleanFolder(
                folder,
                b"\0".join([name for name, _ in clean]),
                digest(pack_signatures([signature for _, signature in clean])),
                b"\0".join(others),
            )
            for folder, (clean, others) in self._folders.items()
        ]

    def _read_now(self, path: bytes) -> bytes | None:
        """Return the blob of the file at a path (None: there is none that can be read)."""
        try:
            found = disk_state(self._journal.tree, path)
        except CasError:
            return None
        return None if found is None else found[0].blob


def _clean_folder_tips(
    journal: Journal,
    real_folders: _SymlinkFreeFolders,
    kept: CleanFolders,
    recorded: AbstractSet[bytes],
    shared: SharedLooks | None,
) -> tuple[set[bytes], list[Tip]]:
    """Return the folders whose digest is the same, and the tips in them whose files differ from them."""
    # `changed_folders` itself checks that the last name is a folder.
    candidates = [
        each
        for each in kept.folders
        if each.folder not in recorded and _are_few(each) and real_folders.has(folder_of(each.folder))
    ]
    signatures = [folder_signature_of(each) for each in candidates]
    different = set(changed_folders(journal.tree.fd, signatures, digest, shared=shared))
    checked: set[bytes] = set()
    tips: list[Tip] = []
    for each in candidates:
        if each.folder in different:
            continue
        changed: list[Tip] = []
        if each.others:
            recorded_file_stats = [
                row for path in _others(each) for row in journal.store.index.file_stats.recorded_file_stats_at(path)
            ]
            changed = _Inspection(journal, real_folders).changed(recorded_file_stats)
            if len(changed) < len(recorded_file_stats):
                continue  # one of them matches its record again
        checked.add(each.folder)
        tips += changed
    return checked, tips


def _are_few(folder: CleanFolder) -> bool:
    """Return whether few of a folder's files were not clean."""
    return not folder.others or (folder.others.count(b"\0") + 1) * _FEW <= folder.names.count(b"\0") + 1


def _others(folder: CleanFolder) -> list[bytes]:
    """Return the paths of the files in a folder that did not match their records, or could change unnoticed."""
    above = beginning(folder.folder)
    return [above + name for name in folder.others.split(b"\0")]
