"""Cache what the last scan saw of each folder, so that the next scan reads only files that changed since.

The cache is derived data, as git's index is: it can be deleted at any time, and the next scan then reads every file. A
file counts as unchanged if its times, size, inode and mode are the same, and its last change was certainly before that
scan: a change in the same tick of the file system's clock as the read would not show in them (git calls this racy).
"""

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set as AbstractSet
from itertools import chain
from typing import Any, Final, Self

from msgpack import Packer, unpackb

from objstore.disk.fs.nofollow import read_store_file
from objstore.disk.fs.reserved_names import STAT_CACHE_NAME
from objstore.disk.fs.stat_signature import (
    SIGNATURE_SIZE,
    FolderKey,
    FolderSignature,
    StatSignature,
    inodes_of,
    signature_at,
    unpack_signatures,
)
from objstore.disk.ignore_rules.ignore_texts import IgnoreTexts
from objstore.model.basic_types import MAX_INT
from objstore.model.ids import HASH_SIZE, BlobId, blob_id
from objstore.model.relpath import folders_above, is_within, joined
from objstore.values.errors import StoreLinked, StoreNotRegular
from objstore.values.fastclass import NamedTuple, variable

__all__ = ["UNKNOWN", "CachedFolder", "ChangedNames", "Look", "StatCache", "is_among"]

_MAGIC: Final = b"caslook4"

UNKNOWN: Final = BlobId(bytes(HASH_SIZE))
"""The entry instead of a blob id for a file that could not be read, or was not read."""


class ChangedNames(NamedTuple):
    """The names that may differ from their records, in a folder that was fully recorded."""

    names: frozenset[bytes]  # names that appeared, disappeared or changed, or that newer records mention
    gone: frozenset[bytes]  # those of them that were not scanned as files: files below them may be gone


@variable
class CachedFolder:
    """The contents of one folder at its last scan. Partly packed, because most folders are only compared."""

    path: bytes  # relative to the workspace; b"": its root
    key: FolderKey
    clock: int  # the file system's time just before the scan; a file changed then or later may have the same signature
    needs_rescan: bool  # whether the next scan must list it again, whatever its times are
    is_incomplete: bool  # whether a tag file says that all of it can be rebuilt, so that it is not scanned
    texts: IgnoreTexts  # its ignore files
    rules: BlobId  # fingerprint of the ignore rules that apply in it
    names: list[bytes]  # of its files and symlinks, ascending
    facts: bytes  # their stat signatures, as `pack_signatures` packs them
    blobs: bytes  # their blob ids, 32 bytes each; UNKNOWN: not read
    folders: list[bytes]  # names of its folders that are not ignored, ascending
    left_out: list[bytes]  # names of everything else in it, ascending
    tracked: list[bytes]  # names of its files and folders that git's rules ignore and its index has, ascending
    secrets: list[bytes]  # those of the names left out that look like secrets, ascending
    tree: bytes  # id of its tree; b"": not computed since a change
    is_fully_recorded: bool  # whether every file in it is in its known state
    touched: ChangedNames | None = None  # the only names that may differ; None: any may. Not saved

    def blob(self, at: int) -> BlobId:
        """Return the blob of the name at that position in `names`."""
        return BlobId(self.blobs[at * HASH_SIZE : (at + 1) * HASH_SIZE])

    def files(self) -> dict[bytes, tuple[StatSignature, BlobId]]:
        """Return the stat signature and the blob of each of its files and symlinks, by name."""
        return {
            name: (facts, self.blob(at))
            for at, (name, facts) in enumerate(zip(self.names, unpack_signatures(self.facts), strict=True))
        }

    def files_of(self, names: Iterable[bytes]) -> dict[bytes, tuple[StatSignature, BlobId]]:
        """Return the part of `files` with these names; for few names, that takes less time than all."""
        places = {name: bisect_left(self.names, name) for name in names}
        return {
            name: (signature_at(self.facts, at), self.blob(at))
            for name, at in places.items()
            if self.names[at : at + 1] == [name]
        }


class Look(NamedTuple):
    """What a comparison saw of the files of a cached folder before a scan lists it."""

    folder: CachedFolder
    clock: int  # as of a CachedFolder: the file system's time just before it
    facts: bytes  # the packed stat signatures of the cached names


class StatCache:
    """The cached folders, by path. Each is decoded only when it is asked for, because most are only compared."""

    def __init__(self) -> None:
        """Begin with no folders."""
        self.until = (0, 0, 0)  # journal position up to which `is_fully_recorded` is true
        self.newest = (b"", b"")  # ids of the newest edit and the newest decision at that position
        # The repositories in the workspace and around it, each with two hashes: of git's ignore files, and of the stat
        # signature of its index.
        self.repositories: dict[bytes, tuple[BlobId, BlobId]] = {}
        self.changed_indexes: set[bytes] = set()  # those whose index has changed since the last scan. Not saved
        self.newly_left_out: list[bytes] = []  # paths that the last scan covered, and this one leaves out. Not saved
        self.looks: dict[bytes, Look] = {}  # by folder, until a scan lists it. Not saved
        self._dropped: list[bytes] = []  # paths that the last scan left out, in folders that are gone. Not saved
        self._dropped_reads: list[tuple[bytes, bytes]] = []  # signatures and blobs of the files in these. Not saved
        self._rows: dict[bytes, list[Any]] = {}  # folders in their encoded form
        self._open: dict[bytes, CachedFolder] = {}  # decoded or new folders; they override `_rows`
        self._saved_names: dict[bytes, list[bytes]] = {}  # the names of the files in some of `_rows`

    @classmethod
    def loaded(cls, folder: str, store: bytes, baseline: int) -> Self:
        """Return the cache that is saved in a store's folder, as `decoded` does; an empty one if there is none."""
        try:
            stored = read_store_file(os.path.join(folder, STAT_CACHE_NAME))
        except (OSError, StoreLinked, StoreNotRegular):
            return cls()
        return cls.decoded(stored, store, baseline)

    @classmethod
    def decoded(cls, stored: bytes, store: bytes, baseline: int) -> Self:
        """Return the cache that `encoded` made; an empty one if the bytes are damaged, or of another store or format.

        If it was made with another baseline, no folder counts as fully recorded.
        """
        stat_cache = cls()
        body = len(_MAGIC) + HASH_SIZE
        packed = memoryview(stored)[body:]
        if stored[:body] == _MAGIC + blob_id(packed):
            try:
                kept_for, kept_baseline, until, newest, repositories, rows = unpackb(packed)
                is_ours = store == kept_for and _are_types(until, _UNTIL) and _are_types(newest, _NEWEST)
                is_ours = is_ours and all(_are_types(each, _REPOSITORY) for each in repositories)
                if not is_ours or not 0 <= min(until) <= max(until) <= MAX_INT or not all(map(_is_row, rows)):
                    return stat_cache
            # The hash detects damage; it has no key, so anyone could have written valid bytes with other contents.
            except (ValueError, TypeError):
                return stat_cache
            stat_cache.until, stat_cache.newest = tuple(until), tuple(newest)
            stat_cache.repositories = {path: (BlobId(texts), BlobId(index)) for path, texts, index in repositories}
            stat_cache._rows = {row[_PATH]: row for row in rows}
            if kept_baseline != baseline:
                stat_cache.mark_recorded(is_fully_recorded=False)
        return stat_cache

    def encoded(self, store: bytes, baseline: int) -> bytes:
        """Return the cache as bytes, for one store id and one baseline's snapshot number (0: no baseline)."""
        rows = [
            *(row for path, row in self._rows.items() if path not in self._open),
            *map(_encode_folder, self._open.values()),
        ]
        repositories = [(path, *key) for path, key in self.repositories.items()]
        packer = Packer(autoreset=False)
        packer.pack((store, baseline, self.until, self.newest, repositories, rows))
        packed = packer.getbuffer()
        return b"".join((_MAGIC, blob_id(packed), packed))

    # ---- asking

    def get(self, path: bytes) -> CachedFolder | None:
        """Return a cached folder, which the caller may change in place (None: it is not cached)."""
        cached = self._open.get(path)
        if cached is None and path in self._rows:
            cached = self._open[path] = _decode_folder(self._rows[path])
            self._saved_names[path] = cached.names
        return cached

    def __contains__(self, path: object) -> bool:
        """Return whether a folder is cached."""
        return path in self._rows or path in self._open

    def __iter__(self) -> Iterator[CachedFolder]:
        """Yield all cached folders."""
        for path in {**self._rows, **self._open}:
            cached = self.get(path)
            if cached is not None:
                yield cached

    def paths(self, scope: bytes) -> list[bytes]:
        """Return the paths of the cached folders at and below `scope`."""
        return [path for path in {**self._rows, **self._open} if is_within(path, scope)]

    def files(self, scope: bytes) -> int:
        """Return how many files and symlinks are cached at and below `scope`."""
        kept: int = sum(
            row[_COUNT] for path, row in self._rows.items() if path not in self._open and is_within(path, scope)
        )
        return kept + sum(len(cached.names) for path, cached in self._open.items() if is_within(path, scope))

    def names_of(self, inodes: AbstractSet[int]) -> list[bytes]:
        """Return every cached path of the files and symlinks with these inodes."""
        packed = {path: row[_SIGNATURES] for path, row in self._rows.items()}
        packed.update((path, cached.facts) for path, cached in self._open.items())
        found: list[bytes] = []
        for path, facts in packed.items():
            inodes_here = inodes_of(facts)
            cached = None if inodes.isdisjoint(inodes_here) else self.get(path)
            if cached is not None:
                names = zip(cached.names, inodes_here, strict=True)
                found += [joined(path, name) for name, inode in names if inode in inodes]
        return found

    def folder_signatures(self, scope: bytes) -> tuple[list[FolderSignature], list[bytes]]:
        """Return the signatures of the folders at and below `scope`, and the paths of those to list in any case."""
        signatures: list[FolderSignature] = []
        to_list: list[bytes] = []
        opened = self._open
        for path, row in self._rows.items():
            if scope and not is_within(path, scope):
                continue
            if path in opened:
                row = _encode_folder(opened[path])  # noqa: PLW2901 - it may have been changed in place
            if row[_NEEDS_RESCAN]:
                to_list.append(path)
            else:
                signatures.append(FolderSignature(path, row[_KEY], row[_NAMES], row[_SIGNATURES]))
        new = [path for path in self._open if path not in self._rows and is_within(path, scope)]
        return signatures, to_list + new

    def not_fully_recorded(self, scope: bytes) -> list[CachedFolder]:
        """Return the folders at and below `scope` that may hold files that are not in their known state."""
        kept = [path for path, row in self._rows.items() if not row[_RECORDED] and path not in self._open]
        opened = [path for path, cached in self._open.items() if not cached.is_fully_recorded]
        inside = [path for path in sorted(kept + opened) if is_within(path, scope)]
        return [cached for path in inside if (cached := self.get(path)) is not None]

    def without_tree(self, scope: bytes) -> list[bytes]:
        """Return the folders at and below `scope` whose tree is not computed."""
        kept = [path for path, row in self._rows.items() if not row[_TREE] and path not in self._open]
        opened = [path for path, cached in self._open.items() if not cached.tree]
        return [path for path in kept + opened if is_within(path, scope)]

    def ignored_names(self) -> Iterator[tuple[bytes, list[bytes], list[bytes]]]:
        """Yield the path of each folder that has any, the names that were left out, and those that git's index has."""
        for path, row in self._rows.items():
            if path not in self._open and (row[_LEFT_OUT] or row[_TRACKED]):
                yield path, _split(row[_LEFT_OUT]), _split(row[_TRACKED])
        for path, cached in list(self._open.items()):
            if cached.left_out or cached.tracked:
                yield path, cached.left_out, cached.tracked

    def secrets(self) -> list[bytes]:
        """Return the paths that were left out because they look like secrets, ascending."""
        found = [
            joined(path, name)
            for path, row in self._rows.items()
            if row[_SECRETS] and path not in self._open
            for name in _split(row[_SECRETS])
        ]
        found += [joined(path, name) for path, cached in self._open.items() for name in cached.secrets]
        return sorted(found)

    def appeared_at(self, path: bytes) -> int:
        """Return the latest time at which a folder can have appeared (ns of the file system; 0: before the last scan).

        Renaming a folder changes its own ctime, and not the times of the files in it.
        """
        latest = 0
        for folder in (path, *folders_above(path)):
            cached, before = self.get(folder), self._rows.get(folder)
            if cached and before and FolderKey._make(before[_KEY]).inode == cached.key.inode:
                break
            if cached is None or not folder:
                return 0  # the last scan kept nothing of the folder it may have come from
            above, _, name = folder.rpartition(b"/")
            around = self._rows.get(above)
            if before is None and around and (around[_INCOMPLETE] or _is_in(name, around[_FOLDERS], around[_LEFT_OUT])):
                return 0  # it was skipped by the last scan, or may have been: what it held then is unknown
            latest = max(latest, cached.key.ctime)
        return latest

    def devices(self) -> Iterator[tuple[bytes, int]]:
        """Yield the path of each folder and the number of its device."""
        for path, row in self._rows.items():
            if path not in self._open:
                yield path, FolderKey._make(row[_KEY]).device
        for path, cached in self._open.items():
            yield path, cached.key.device

    def was_left_out(self, path: bytes) -> bool:
        """Return whether the last scan left out a path, or a folder above it.

        It was ignored, could not be read, or was in a folder that a tag file marks as rebuildable.
        """
        file = path
        while path:
            above, _, name = path.rpartition(b"/")
            row = self._rows.get(above)
            if row is not None and (row[_INCOMPLETE] or _is_in(name, row[_LEFT_OUT])):
                return True
            path = above
        return self._saved_blob(file) == UNKNOWN

    def gone_unread(self) -> list[bytes]:
        """Return the paths that the last scan left out, and that are not there any more, ascending."""
        found = set(self._dropped)
        for path, cached in self._open.items():
            row = self._rows.get(path)
            if row is not None and row[_LEFT_OUT]:
                here = {*cached.left_out, *cached.names, *cached.folders}
                found.update(joined(path, name) for name in _split(row[_LEFT_OUT]) if name not in here)
        return sorted(found)

    def has_seen(self, folder: bytes) -> bool:
        """Return whether the last scan listed a folder."""
        return folder in self._rows

    def looked_at(self, path: bytes) -> int:
        """Return when the last scan listed the folder that a path is in, or the nearest one above it (ns).

        0: that scan read a file at the path, or it listed none of these folders.
        """
        if self._saved_blob(path) not in {None, UNKNOWN}:
            return 0
        found = (self._rows.get(folder) for folder in folders_above(path))
        return next((int(row[_CLOCK]) for row in found if row is not None), 0)

    def _saved_blob(self, path: bytes) -> BlobId | None:
        """Return what the last scan read of a file (UNKNOWN: it could not; None: it saw no file there)."""
        above, _, name = path.rpartition(b"/")
        row = self._rows.get(above)
        if row is None:
            return None
        if above not in self._saved_names:
            self._saved_names[above] = _split(row[_NAMES])
        names = self._saved_names[above]
        at = bisect_left(names, name)
        return BlobId(row[_BLOBS][at * HASH_SIZE : (at + 1) * HASH_SIZE]) if names[at : at + 1] == [name] else None

    def inodes_read(self, inodes: AbstractSet[int]) -> set[int]:
        """Return the inodes, of those given, of files that the last scan read, in folders that are gone too."""
        found = set[int]()
        for signatures, blobs in chain(
            ((row[_SIGNATURES], row[_BLOBS]) for row in self._rows.values()), self._dropped_reads
        ):
            here = inodes_of(signatures)
            if not inodes.isdisjoint(here):
                found.update(
                    inode
                    for at, inode in enumerate(here)
                    if inode in inodes and blobs[at * HASH_SIZE : (at + 1) * HASH_SIZE] != UNKNOWN
                )
        return found

    # ---- changing

    def put(self, cached: CachedFolder) -> None:
        """Add a folder, or replace it."""
        self._open[cached.path] = cached

    def drop(self, path: bytes) -> bool:
        """Remove a folder and all below it; return whether any of them was cached."""
        gone = self.paths(path)
        for folder in gone:
            row = self._rows.pop(folder, None)
            if row is not None:
                self._dropped += [folder] * row[_INCOMPLETE] + [joined(folder, name) for name in _split(row[_LEFT_OUT])]
                self._dropped_reads.append((row[_SIGNATURES], row[_BLOBS]))
            self._open.pop(folder, None)
            self.repositories.pop(folder, None)
        return bool(gone)

    def note_repository(self, path: bytes, key: tuple[BlobId, BlobId] | None) -> None:
        """Note that a folder is the top of a repository (None: of none)."""
        if key is None:
            self.repositories.pop(path, None)
        else:
            self.repositories[path] = key

    def forget_trees(self) -> None:
        """Mark every tree as not computed."""
        for row in self._rows.values():
            row[_TREE] = b""
        for cached in self._open.values():
            cached.tree = b""

    def mark_recorded(self, *, is_fully_recorded: bool) -> None:
        """Mark all folders as fully recorded, or none."""
        for row in self._rows.values():
            row[_RECORDED] = is_fully_recorded
        for cached in self._open.values():
            cached.is_fully_recorded, cached.touched = is_fully_recorded, None

    def mark_unrecorded(self, path: bytes) -> None:
        """Mark a file's folder as not fully recorded, because of that file alone.

        If the folder is not cached, mark the innermost cached folder above it, because of any name in it.
        """
        above = folders_above(path)
        cached = self.get(next(above))
        if cached is not None:
            if cached.is_fully_recorded:
                cached.is_fully_recorded, cached.touched = False, ChangedNames(frozenset(), frozenset())
            if cached.touched is not None:
                name = path.rpartition(b"/")[2]
                cached.touched = cached.touched._replace(names=cached.touched.names | {name})
            return
        for folder in above:
            cached = self.get(folder)
            if cached is not None:
                cached.is_fully_recorded, cached.touched = False, None
                return


(
    _PATH,
    _KEY,
    _CLOCK,
    _NEEDS_RESCAN,
    _INCOMPLETE,
    _RECORDED,
    _COUNT,
    _TEXTS,
    _RULES,
    _NAMES,
    _SIGNATURES,
    _BLOBS,
    _FOLDERS,
    _LEFT_OUT,
    _TRACKED,
    _SECRETS,
    _TREE,
) = range(17)
"""The position of each field in a folder's encoded form."""


_UNTIL: Final = [int, int, int]
_NEWEST: Final = [bytes, bytes]
_REPOSITORY: Final = [bytes, bytes, bytes]
_ROW: Final = [bytes, list, int, bool, bool, bool, int, list, *[bytes] * 9]
_TEXT_TYPES: Final = [bytes] * len(IgnoreTexts._fields)
_KEY_TYPES: Final = [int] * len(FolderKey._fields)


def _are_types(values: object, types: Sequence[type]) -> bool:
    return isinstance(values, list) and [*map(type, values)] == types


def _is_row(row: object) -> bool:
    """Return whether a value is an encoded folder: every field has its type, and all columns have as many entries."""
    if not isinstance(row, list) or not _are_types(row, _ROW) or not _are_types(row[_KEY], _KEY_TYPES):
        return False
    count, names = row[_COUNT], row[_NAMES]
    return (
        len(row[_SIGNATURES]) == count * SIGNATURE_SIZE
        and len(row[_BLOBS]) == count * HASH_SIZE
        and count == (names.count(b"\0") + 1 if names else 0)
        and _are_types(row[_TEXTS], _TEXT_TYPES)
    )


def _encode_folder(folder: CachedFolder) -> list[Any]:
    return [
        folder.path,
        folder.key,
        folder.clock,
        folder.needs_rescan,
        folder.is_incomplete,
        folder.is_fully_recorded,
        len(folder.names),
        folder.texts,
        folder.rules,
        b"\0".join(folder.names),  # no name contains a NUL, and one string is decoded faster than many
        folder.facts,
        folder.blobs,
        b"\0".join(folder.folders),
        b"\0".join(folder.left_out),
        b"\0".join(folder.tracked),
        b"\0".join(folder.secrets),
        folder.tree,
    ]


def _decode_folder(row: list[Any]) -> CachedFolder:
    return CachedFolder(
        path=row[_PATH],
        key=FolderKey._make(row[_KEY]),
        clock=row[_CLOCK],
        needs_rescan=row[_NEEDS_RESCAN],
        is_incomplete=row[_INCOMPLETE],
        is_fully_recorded=row[_RECORDED],
        texts=IgnoreTexts._make(row[_TEXTS]),
        rules=BlobId(row[_RULES]),
        names=_split(row[_NAMES]),
        facts=row[_SIGNATURES],
        blobs=row[_BLOBS],
        folders=_split(row[_FOLDERS]),
        left_out=_split(row[_LEFT_OUT]),
        tracked=_split(row[_TRACKED]),
        secrets=_split(row[_SECRETS]),
        tree=row[_TREE],
    )


def is_among(name: bytes, names: Sequence[bytes]) -> bool:
    """Return whether a name is among those in a list in ascending order."""
    at = bisect_left(names, name)
    return names[at : at + 1] == [name]


def _is_in(name: bytes, *names: bytes) -> bool:
    return b"\0" + name + b"\0" in b"\0" + b"\0".join(names) + b"\0"


def _split(names: bytes) -> list[bytes]:
    return names.split(b"\0") if names else []
