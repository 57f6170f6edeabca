"""Encode, decode, walk and compare trees: the contents of one folder at one moment, stored as a blob.

Folders inside a tree are trees of their own. So a folder that did not change has the same name in every snapshot and is
stored once, and comparing two snapshots does not read what they share. Source: git's tree objects, encoded in canonical
msgpack.
"""

import re
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from operator import lt
from typing import Any, Final, NamedTuple, TypeAlias

from objstore.model.basic_types import LINK_MODE, FileState, recorded_mode
from objstore.model.canonical_msgpack import MAX_MODE, MAX_TEXT, Value, decode, encode, unpack
from objstore.model.ids import HASH_SIZE, BlobId, blob_id
from objstore.values.errors import RecordInvalid, TreeInvalid
from objstore.values.fastclass import value
from objstore.values.garbage import without_collecting

__all__ = [
    "EMPTY_TREE",
    "FOLDER",
    "LINK",
    "ExcludedEntry",
    "TreeChange",
    "TreeEntry",
    "TreeFolder",
    "TreeNames",
    "decode_tree",
    "encode_tree",
    "entry_at",
    "named_blobs",
    "names_of",
    "tree_changes",
    "tree_files",
    "walk_trees",
]

FOLDER: Final = stat.S_IFDIR
"""Mode of a folder in a tree; a folder's permission bits are not kept."""

LINK: Final = LINK_MODE
"""Mode of a symbolic link, whose blob is the link text; a link has no permission bits."""


_NEVER: Final = frozenset({b".cas", b".git", b".hg", b".svn", b".jj"})
"""Names that a scan never enters, so no tree contains them."""

_FEW: Final = 5
"""Names. A search of the bytes for one takes about a tenth of the time that reading all names takes."""

_STARTS_EXCLUDED: Final = rb"\x82\xa7entries(?:[\x90-\x9f]|\xdc..|\xdd....)\x91"
_EXCLUDED_LATER: Final = rb"\x91(?<=\xc4\x20.{32}\x91)[\xc4\xc5]"
"""What a tree has in which the first entry is excluded, or the first excluded one follows another: an array of one.

Other bytes may look so too. The pattern begins with a byte, which is searched for faster than what is behind it. Both
are compiled where they are used, which most commands never do.
"""


class TreeEntry(NamedTuple):
    """One name in a folder, with what was there."""

    name: bytes
    mode: int  # kind and permission bits of a file; FOLDER; LINK
    blob: BlobId  # a file's bytes, a link's text, a folder's tree

    @property
    def is_folder(self) -> bool:
        """Return whether it is a folder."""
        return self.mode == FOLDER

    @classmethod
    def of(cls, name: bytes, state: FileState) -> "TreeEntry":
        """Return the entry of a file or link with that state."""
        return cls(name, LINK if state.is_link else stat.S_IFREG | state.mode, state.blob)

    @property
    def state(self) -> FileState | None:
        """Return the state of the file or link (None: it is a folder)."""
        return None if self.is_folder else FileState(blob=self.blob, mode=recorded_mode(self.mode))

    @property
    def is_file(self) -> bool:
        """Return whether it is a regular file."""
        return stat.S_ISREG(self.mode)


class ExcludedEntry(NamedTuple):
    """A name in a folder whose contents the tree does not hold: ignored, unreadable, too large, or no regular file."""

    name: bytes


TreeNames: TypeAlias = tuple[TreeEntry | ExcludedEntry, ...]
"""A folder's entries in ascending order of their names' bytes, each name once."""

Load: TypeAlias = Callable[[BlobId], bytes]
"""Returns the bytes of a tree."""


def encode_tree(entries: Iterable[TreeEntry | ExcludedEntry]) -> bytes:
    """Return the canonical encoding of a folder with `entries`, given in any order."""
    ordered = sorted(entries, key=lambda entry: entry.name)
    return encode({"kind": "tree", "entries": [_value(entry) for entry in ordered]})


EMPTY_TREE: Final = BlobId(blob_id(encode_tree(())))
"""The tree of a folder without entries."""


def decode_tree(encoded: bytes) -> TreeNames:
    """Return the folder that `encoded` contains.

    Raises TreeInvalid for anything but the canonical encoding of a well-formed tree: stored bytes are not trusted.
    """
    try:
        fields = decode(encoded)
    except RecordInvalid as error:
        raise TreeInvalid(error.reason) from error
    match fields:
        case {"kind": "tree", "entries": list(values)} if len(fields) == len(("kind", "entries")):
            tree = tuple(_entry(value) for value in values)
        case _:
            raise TreeInvalid("not a map of kind and entries")
    if any(a.name >= b.name for a, b in pairwise(tree)):
        raise TreeInvalid("its names are not in ascending order")
    return tree


def named_blobs(tree: TreeNames) -> Iterator[tuple[BlobId, bool]]:
    """Yield each blob that a tree names, once per entry, and whether it is a tree itself."""
    for entry in tree:
        if isinstance(entry, TreeEntry):
            yield entry.blob, entry.is_folder


def names_of(encoded: bytes) -> list[tuple[BlobId, bool]]:
    """Return what `named_blobs` yields for `encoded`, which the caller read from the store under its hash.

    Takes a tenth of the time, because only the names of blobs are read. Raises TreeInvalid as decode_tree does, but not
    for every non-canonical encoding.
    """
    try:
        entries: Any = unpack(encoded)["entries"]
        found = [(entry[2], entry[1] == FOLDER) for entry in entries if len(entry) > 1]
    except (RecordInvalid, KeyError, TypeError, IndexError):
        found = [(None, False)]
    if all(type(name) is bytes for name, _ in found):
        return found
    return list(named_blobs(decode_tree(encoded)))  # raises with the reason


def entry_at(root: BlobId | None, path: bytes, load: Load) -> TreeEntry | ExcludedEntry | None:
    """Return the entry of a tree (None: no folder) at `path`, or the excluded entry at or above it (None: nothing).

    Raises TreeInvalid, and what `load` raises.
    """
    found: TreeEntry | ExcludedEntry | None = None
    for part in path.split(b"/"):
        if root is None:
            return None
        found = TreeFolder(load(root)).get(part)
        if isinstance(found, ExcludedEntry):
            return found
        root = _folder(found)
    return found


class TreeFolder(Mapping[bytes, TreeEntry | ExcludedEntry]):
    """The entries of one folder by name, in order; each is decoded when it is asked for, because a folder may be large.

    What the bytes alone can show is answered without reading the names: that a name has no entry, as it occurs nowhere,
    and that no entry is excluded. All else raises TreeInvalid, but not for every non-canonical encoding, as `names_of`:
    its hash is from the store.
    """

    def __init__(self, encoded: bytes) -> None:
        """Take `encoded`, which the caller read from the store."""
        self._encoded: Final = encoded
        self._searches = 0  # of the bytes, for names

    @cached_property
    def _decoded(self) -> tuple[list[bytes], list[Any]]:
        """Return the names, checked, and the entries, of which no more is checked."""
        entries: Any = ()
        names: list[Any] = []
        try:
            with without_collecting():
                entries = unpack(self._encoded)["entries"]
            names = [entry[0] for entry in entries]
            is_tree = {*map(type, names)} <= {bytes} and all(map(lt, names, names[1:]))
        except (RecordInvalid, KeyError, TypeError, IndexError):
            is_tree = False
        if not is_tree:
            entries = [_value(entry) for entry in decode_tree(self._encoded)]  # or raises with the reason
            names = [entry[0] for entry in entries]
        return names, entries

    def __getitem__(self, name: bytes) -> TreeEntry | ExcludedEntry:
        """Return the entry with this name. Raises KeyError if there is none."""
        if self._searches < _FEW:  # more take longer than to read the names
            self._searches += 1
            if bytes((len(name) % 256,)) + name not in self._encoded:  # the length of a name ends with this byte
                raise KeyError(name)
            self._searches = _FEW
        names, entries = self._decoded
        at = bisect_left(names, name)
        if names[at : at + 1] != [name]:
            raise KeyError(name)
        return _entry(entries[at])

    def __iter__(self) -> Iterator[bytes]:
        """Yield the names, ascending."""
        return iter(self._decoded[0])

    def __len__(self) -> int:
        """Return how many entries it has."""
        return len(self._decoded[0])

    def leaves_names_out(self) -> bool:
        """Return whether any of its entries is excluded."""
        may_be = re.match(_STARTS_EXCLUDED, self._encoded, re.DOTALL)
        may_be = may_be or re.search(_EXCLUDED_LATER, self._encoded, re.DOTALL)
        return may_be is not None and 1 in map(len, self._decoded[1])


def walk_trees(root: BlobId, load: Load, seen: set[BlobId]) -> Iterator[TreeNames]:
    """Yield a tree and the trees below it, each once; trees in `seen` are skipped, and yielded ones are added to it.

    Raises TreeInvalid, and what `load` raises.
    """
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            tree = decode_tree(load(name))
            yield tree
            waiting += [blob for blob, is_tree in named_blobs(tree) if is_tree]


# ---- comparing two trees


@value
class TreeChange:
    """One path that differs between two trees. Neither side is a folder: the entries in it are compared instead."""

    path: bytes
    before: TreeEntry | ExcludedEntry | None  # None: there is nothing
    after: TreeEntry | ExcludedEntry | None


def tree_files(root: BlobId, load: Load, prefix: bytes = b"") -> Iterator[tuple[bytes, TreeEntry | ExcludedEntry]]:
    """Yield every path below a tree that is not a folder, with its entry, by path. Raises TreeInvalid."""
    for change in tree_changes(None, root, load, prefix):
        if change.after is not None:
            yield change.path, change.after


def tree_changes(before: BlobId | None, after: BlobId | None, load: Load, prefix: bytes = b"") -> Iterator[TreeChange]:
    """Yield the differences between two trees (None: no folder), by path; equal folders are not loaded.

    Raises TreeInvalid, and what `load` raises.
    """
    # Folders may be nested more deeply than Python's recursion limit.
    folders = [_compared(_Both(before, after, prefix), load)]
    while folders:
        for found in folders[-1]:
            if isinstance(found, _Both):
                folders.append(_compared(found, load))
                break
            yield found
        else:
            folders.pop()


class _Both(NamedTuple):
    """A folder on both sides."""

    before: BlobId | None  # None: no folder
    after: BlobId | None
    prefix: bytes  # of the paths in it


def _compared(both: _Both, load: Load) -> Iterator[TreeChange | _Both]:
    """Yield the differences between two folders, and the subfolders that differ, by name."""
    if both.before == both.after:
        return
    old, new = ({} if tree is None else {e.name: e for e in decode_tree(load(tree))} for tree in both[:2])
    for name in sorted({*old, *new}) if old and new else old or new:  # entries are in order
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        path = both.prefix + name
        was_tree, now_tree = _folder(was), _folder(now)
        was_leaf, now_leaf = (None if was_tree else was), (None if now_tree else now)
        if was_leaf is not None or now_leaf is not None:
            yield TreeChange(path=path, before=was_leaf, after=now_leaf)
        if was_tree is not None or now_tree is not None:
            yield _Both(was_tree, now_tree, path + b"/")


def _folder(entry: TreeEntry | ExcludedEntry | None) -> BlobId | None:
    return entry.blob if isinstance(entry, TreeEntry) and entry.is_folder else None


def _value(entry: TreeEntry | ExcludedEntry) -> Value:
    return [entry.name] if isinstance(entry, ExcludedEntry) else [entry.name, entry.mode, bytes(entry.blob)]


def _entry(value: Value) -> TreeEntry | ExcludedEntry:
    match value:
        case [bytes(name)]:
            return ExcludedEntry(_checked(name))
        case [bytes(name), int(mode), bytes(blob)] if len(blob) == HASH_SIZE and _is_mode(mode):
            return TreeEntry(_checked(name), mode, BlobId(blob))
        case _:
            raise TreeInvalid("an entry is not [name] or [name, mode, blob]")


def _is_mode(mode: int) -> bool:
    # bool is a subclass of int and must not be accepted as one
    return not isinstance(mode, bool) and (mode in {FOLDER, LINK} or stat.S_IFREG <= mode <= stat.S_IFREG | MAX_MODE)


def _checked(name: bytes) -> bytes:
    if not name or name in {b".", b".."} or b"/" in name or b"\0" in name or len(name) > MAX_TEXT:
        raise TreeInvalid(f"a name leaves its folder: {name!r}")
    if name.lower() in _NEVER:
        raise TreeInvalid(f"a name is reserved for a store or version control: {name!r}")
    return name
