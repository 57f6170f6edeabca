"""Looks: what each folder held when it was last looked at, so that the next look reads only what changed since.

Derived, as git's index is: it can be deleted at any moment, and the next look reads every file. A file counts as
unchanged if its times, size, inode and mode are what they were, and its last change was certainly before that look:
a change in the very tick of the file system's clock in which it was read would not show in them (what git calls racy).
"""

from collections.abc import Iterator, Sequence, Set as AbstractSet
from typing import Any, Final, Self

from msgpack import packb, unpackb

from objstore.fastclass import NamedTuple, variable
from objstore.fs.stat_signature import (
    SIGNATURE_SIZE,
    FolderKey,
    FolderSignature,
    StatSignature,
    inodes_of,
    unpack_signatures,
)
from objstore.model.basic_types import MAX_INT
from objstore.model.ids import HASH_SIZE, BlobId, blob_id
from objstore.model.relpath import folders_above, is_within, joined

__all__ = ["UNKNOWN", "CachedFolder", "ChangedNames", "StatCache"]

_MAGIC: Final = b"caslook3"

UNKNOWN: Final = BlobId(bytes(HASH_SIZE))
"""In the place of a blob: the file could not be read, or was not."""


class ChangedNames(NamedTuple):
    """What became otherwise in a folder that was settled, or may be otherwise than recorded."""

    names: frozenset[bytes]  # that came, went or changed, or of whose files something was recorded
    gone: frozenset[bytes]  # those of them that were no files that were looked at: what was below them may be gone


@variable
class CachedFolder:
    """What one folder held when it was last looked at. Packed, because most are only compared."""

    path: bytes  # relative to the workspace; b"": its root
    key: FolderKey
    clock: int  # the file system's time just before the look; what changed then or later may change unseen
    needs_rescan: bool  # whether something in it has to be looked at again, whatever its times say
    is_incomplete: bool  # whether a file in it says that all of it can be rebuilt, so that the folder is passed over
    texts: list[bytes]  # of the ignore files in it
    rules: BlobId  # fingerprint of the rules that hold in it
    names: list[bytes]  # of its files and links, ascending
    facts: bytes  # of each of them, as `pack_facts` packs them
    blobs: bytes  # of each of them, 32 bytes; UNKNOWN: not read
    folders: list[bytes]  # names of its folders that are not ignored, ascending
    left_out: list[bytes]  # names of all else in it, ascending
    tree: bytes  # id of its tree; b"": not worked out since
    is_fully_recorded: bool  # whether all that is in it is recorded, or stood in the baseline
    touched: ChangedNames | None = None  # what alone may be otherwise in it; None: all. Not kept

    def blob(self, at: int) -> BlobId:
        """Return the blob of the name at that position."""
        return BlobId(self.blobs[at * HASH_SIZE : (at + 1) * HASH_SIZE])

    def files(self) -> dict[bytes, tuple[StatSignature, BlobId]]:
        """Return its files and links, with what is known of each."""
        return {
            name: (facts, self.blob(at))
            for at, (name, facts) in enumerate(zip(self.names, unpack_signatures(self.facts), strict=True))
        }


class StatCache:
    """What is known of folders, by path. Each is taken apart only when it is asked for: most are only compared."""

    def __init__(self) -> None:
        """Begin with none."""
        self.until = (0, 0, 0)  # what is settled is settled with what was recorded until then
        self.newest = (b"", b"")  # ids of the edit and the decision that were the newest
        self._rows: dict[bytes, list[Any]] = {}  # as they are kept
        self._open: dict[bytes, CachedFolder] = {}  # those that were asked for, or are new

    @classmethod
    def decoded(cls, stored: bytes, store: bytes, baseline: int) -> Self:
        """Return what was kept; nothing for bytes that are damaged, of another store or another form.

        What was settled against another baseline is not settled.
        """
        stat_cache = cls()
        body = len(_MAGIC) + HASH_SIZE
        packed = memoryview(stored)[body:]
        if stored[:body] == _MAGIC + blob_id(packed):
            try:
                kept_for, kept_baseline, until, newest, rows = unpackb(packed)
                is_ours = store == kept_for and _are_types(until, _UNTIL) and _are_types(newest, _NEWEST)
                if not is_ours or not 0 <= min(until) <= max(until) <= MAX_INT or not all(map(_is_row, rows)):
                    return stat_cache
            # The hash has no key, so it tells damage, and not who wrote them.
            except (ValueError, TypeError):
                return stat_cache
            stat_cache.until, stat_cache.newest = tuple(until), tuple(newest)
            stat_cache._rows = {row[_PATH]: row for row in rows}
            if kept_baseline != baseline:
                stat_cache.mark_recorded(is_fully_recorded=False)
        return stat_cache

    def encoded(self, store: bytes, baseline: int) -> bytes:
        """Return the looks as they are kept, for one store and what was settled against one baseline (0: none)."""
        rows = [*(row for path, row in self._rows.items() if path not in self._open), *map(_row, self._open.values())]
        packed = packb((store, baseline, self.until, self.newest, rows))
        return _MAGIC + blob_id(packed) + packed

    # ---- asking

    def get(self, path: bytes) -> CachedFolder | None:
        """Return what is known of a folder (None: nothing). It may be changed in place."""
        look = self._open.get(path)
        if look is None and path in self._rows:
            look = self._open[path] = _look(self._rows[path])
        return look

    def __contains__(self, path: object) -> bool:
        """Return whether anything is known of a folder."""
        return path in self._rows or path in self._open

    def __iter__(self) -> Iterator[CachedFolder]:
        """Yield all that is known."""
        for path in {**self._rows, **self._open}:
            look = self.get(path)
            if look is not None:
                yield look

    def paths(self, scope: bytes) -> list[bytes]:
        """Return a folder and all below it of which something is known."""
        return [path for path in {**self._rows, **self._open} if is_within(path, scope)]

    def files(self, scope: bytes) -> int:
        """Return how many files and links are known in a folder and below it."""
        kept: int = sum(
            row[_COUNT] for path, row in self._rows.items() if path not in self._open and is_within(path, scope)
        )
        return kept + sum(len(look.names) for path, look in self._open.items() if is_within(path, scope))

    def names_of(self, inodes: AbstractSet[int]) -> list[bytes]:
        """Return where the files and links with these inodes were found: of one with several names, at each."""
        packed = {path: row[_FACTS] for path, row in self._rows.items()}
        packed.update((path, look.facts) for path, look in self._open.items())
        found: list[bytes] = []
        for path, facts in packed.items():
            there = inodes_of(facts)
            look = None if inodes.isdisjoint(there) else self.get(path)
            if look is not None:
                found += [joined(path, name) for name, inode in zip(look.names, there, strict=True) if inode in inodes]
        return found

    def folder_signatures(self, scope: bytes) -> tuple[list[FolderSignature], list[bytes]]:
        """Return what can be compared of a folder and all below it, and the folders that must be looked into anyway."""
        sure: list[FolderSignature] = []
        unsure: list[bytes] = []
        opened = self._open
        for path, row in self._rows.items():
            if scope and not is_within(path, scope):
                continue
            if path in opened:
                row = _row(opened[path])  # noqa: PLW2901 - what was changed in place counts
            if row[_UNSURE]:
                unsure.append(path)
            else:
                sure.append(FolderSignature(path, row[_KEY], row[_NAMES], row[_FACTS]))
        return sure, unsure + [path for path in self._open if path not in self._rows and is_within(path, scope)]

    def unsettled(self, scope: bytes) -> list[CachedFolder]:
        """Return the folders at and below `scope` that are not settled."""
        kept = [path for path, row in self._rows.items() if not row[_SETTLED] and path not in self._open]
        fresh = [path for path, look in self._open.items() if not look.is_fully_recorded]
        inside = [path for path in sorted(kept + fresh) if is_within(path, scope)]
        return [look for path in inside if (look := self.get(path)) is not None]

    def without_tree(self, scope: bytes) -> list[bytes]:
        """Return the folders at and below `scope` whose tree is not worked out."""
        kept = [path for path, row in self._rows.items() if not row[_TREE] and path not in self._open]
        fresh = [path for path, look in self._open.items() if not look.tree]
        return [path for path in kept + fresh if is_within(path, scope)]

    def came(self, path: bytes) -> int:
        """Return when a folder came to stand at a path, or later (ns of the file system; 0: before the last look).

        Whoever renames a folder changes its own time, and not those of what is in it.
        """
        latest = 0
        for folder in (path, *folders_above(path)):
            look, before = self.get(folder), self._rows.get(folder)
            if look and before and FolderKey._make(before[_KEY]).inode == look.key.inode:
                break
            if look is None or not folder:
                return 0  # nothing was kept of what it may have come with
            above, _, name = folder.rpartition(b"/")
            around = self._rows.get(above)
            if before is None and around and (around[_CUT] or _is_among(name, around[_FOLDERS], around[_LEFT])):
                return 0  # it stood there, or may have, and was passed over; nothing tells what was in it
            latest = max(latest, look.key.ctime)
        return latest

    # ---- changing

    def put(self, look: CachedFolder) -> None:
        """Know this of a folder from now on."""
        self._open[look.path] = look

    def drop(self, path: bytes) -> bool:
        """Forget a folder and all below it; return whether anything was known of them."""
        gone = self.paths(path)
        for folder in gone:
            self._rows.pop(folder, None)
            self._open.pop(folder, None)
        return bool(gone)

    def forget_trees(self) -> None:
        """Have every tree worked out anew."""
        for row in self._rows.values():
            row[_TREE] = b""
        for look in self._open.values():
            look.tree = b""

    def mark_recorded(self, *, is_fully_recorded: bool) -> None:
        """Have all folders settled, or none."""
        for row in self._rows.values():
            row[_SETTLED] = is_fully_recorded
        for look in self._open.values():
            look.is_fully_recorded, look.touched = is_fully_recorded, None

    def mark_unrecorded(self, path: bytes) -> None:
        """Have a file's folder not settled, because of that file alone.

        If nothing is known of the folder, it is the innermost above it of which something is, and because of all in it.
        """
        above = folders_above(path)
        look = self.get(next(above))
        if look is not None:
            if look.is_fully_recorded:
                look.is_fully_recorded, look.touched = False, ChangedNames(frozenset(), frozenset())
            if look.touched is not None:
                name = path.rpartition(b"/")[2]
                look.touched = look.touched._replace(names=look.touched.names | {name})
            return
        for folder in above:
            look = self.get(folder)
            if look is not None:
                look.is_fully_recorded, look.touched = False, None
                return


_PATH, _KEY, _CLOCK, _UNSURE, _CUT, _SETTLED, _COUNT, _TEXTS, _RULES, _NAMES, _FACTS, _BLOBS, _FOLDERS, _LEFT, _TREE = (
    range(15)
)
"""Where each part of a folder stands in the list that is kept of it."""


_UNTIL: Final = [int, int, int]
_NEWEST: Final = [bytes, bytes]
_ROW: Final = [bytes, list, int, bool, bool, bool, int, list, bytes, bytes, bytes, bytes, bytes, bytes, bytes]
_KEY_TYPES: Final = [int] * len(FolderKey._fields)


def _are_types(values: object, types: Sequence[type]) -> bool:
    return isinstance(values, list) and [*map(type, values)] == types


def _is_row(row: object) -> bool:
    """Return whether a folder can be taken apart: all is of its type, and of each name as much is known."""
    if not isinstance(row, list) or not _are_types(row, _ROW) or not _are_types(row[_KEY], _KEY_TYPES):
        return False
    count, names = row[_COUNT], row[_NAMES]
    return (
        len(row[_FACTS]) == count * SIGNATURE_SIZE
        and len(row[_BLOBS]) == count * HASH_SIZE
        and count == (names.count(b"\0") + 1 if names else 0)
        and all(type(text) is bytes for text in row[_TEXTS])
    )


def _row(look: CachedFolder) -> list[Any]:
    return [
        look.path,
        look.key,
        look.clock,
        look.needs_rescan,
        look.is_incomplete,
        look.is_fully_recorded,
        len(look.names),
        look.texts,
        look.rules,
        b"\0".join(look.names),  # no name holds a NUL, and one string is read faster than many
        look.facts,
        look.blobs,
        b"\0".join(look.folders),
        b"\0".join(look.left_out),
        look.tree,
    ]


def _look(row: list[Any]) -> CachedFolder:
    return CachedFolder(
        path=row[_PATH],
        key=FolderKey._make(row[_KEY]),
        clock=row[_CLOCK],
        needs_rescan=row[_UNSURE],
        is_incomplete=row[_CUT],
        is_fully_recorded=row[_SETTLED],
        texts=row[_TEXTS],
        rules=BlobId(row[_RULES]),
        names=_split(row[_NAMES]),
        facts=row[_FACTS],
        blobs=row[_BLOBS],
        folders=_split(row[_FOLDERS]),
        left_out=_split(row[_LEFT]),
        tree=row[_TREE],
    )


def _is_among(name: bytes, *names: bytes) -> bool:
    return b"\0" + name + b"\0" in b"\0" + b"\0".join(names) + b"\0"


def _split(names: bytes) -> list[bytes]:
    return names.split(b"\0") if names else []
