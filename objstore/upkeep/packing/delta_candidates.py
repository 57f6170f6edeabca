"""Find earlier files that a new file may resemble, by its words, its name and its folder.

A file is represented by a sketch: the smallest hashes of its pairs of words. The share of hashes that two sketches have
in common estimates the share of pairs that the files have in common (Broder, "On the resemblance and containment of
documents", 1997). Memory is bounded: the older half of the files is forgotten at a time.
"""

import posixpath
import re
from collections import Counter
from itertools import chain
from typing import Final
from zlib import crc32

from objstore.model.ids import BlobId

__all__ = ["PAIR", "DeltaCandidates"]

PAIR: Final = re.compile(rb"\b\w{5,}+\W++\w{3,}+")
"""A word of five letters or more, and the next one. Without the boundary it would find the same pairs, but would first
try each word that begins no pair from each of its letters on."""

_READ: Final = 256 << 10
"""Bytes at the beginning of a file that are read."""

_SKETCH: Final = 64
_AT_A_PAIR: Final = 24
"""Newest files that are remembered per hash: the words of a licence may be in every file."""

_NEAREST: Final = 3
_LARGEST: Final = 64 << 10
"""Bytes of the largest file that may represent its folder, as a dictionary of typical content."""

_AGE: Final = 4096
"""Number of files after which the older half is forgotten."""


class _Half:
    """The remembered features of some of the files."""

    def __init__(self) -> None:
        self.count = 0
        self.pairs: Final[dict[int, list[BlobId]]] = {}
        self.names: Final[dict[bytes, BlobId]] = {}
        self.largest: Final[dict[bytes, tuple[int, BlobId]]] = {}  # by folder, and by topmost folder


class DeltaCandidates:
    """The files seen so far, and the search for those that a new one may resemble."""

    def __init__(self) -> None:
        self._young = _Half()
        self._old = _Half()

    def match_and_add(self, name: BlobId, path: bytes, content: bytes) -> list[BlobId]:
        """Return up to six files that this one may resemble, and remember it. `path`: empty if unknown."""
        sketch = sorted(map(crc32, set(PAIR.findall(content[:_READ]))))[:_SKETCH]
        found = [*self._with_same_name(path), *self._with_similar_words(sketch), *self._largest_in_folders(path)]
        self._remember(name, path, len(content), sketch)
        return [other for other in dict.fromkeys(found) if other != name]

    # ---- inside

    def _with_similar_words(self, sketch: list[int]) -> list[BlobId]:
        known = (half.pairs.get(pair, ()) for pair in sketch for half in (self._young, self._old))
        return [name for name, _ in Counter(chain.from_iterable(known)).most_common(_NEAREST)]

    def _with_same_name(self, path: bytes) -> list[BlobId]:
        key = posixpath.basename(path)
        named = self._young.names.get(key) or self._old.names.get(key)
        return [] if named is None else [named]

    def _largest_in_folders(self, path: bytes) -> list[BlobId]:
        known = [self._young.largest.get(folder) or self._old.largest.get(folder) for folder in _folders(path)]
        return [largest[1] for largest in known if largest is not None]

    def _remember(self, name: BlobId, path: bytes, size: int, sketch: list[int]) -> None:
        if self._young.count >= _AGE:
            self._young, self._old = _Half(), self._young
        young = self._young
        young.count += 1
        for pair in sketch:
            files = young.pairs.setdefault(pair, [])
            files.append(name)
            del files[:-_AT_A_PAIR]
        if path:
            young.names[posixpath.basename(path)] = name
        if size <= _LARGEST:
            for folder in _folders(path):
                largest, _ = young.largest.get(folder) or self._old.largest.get(folder) or (0, name)
                if size > largest:
                    young.largest[folder] = size, name


def _folders(path: bytes) -> tuple[bytes, bytes]:
    """Return keys for the file's own folder and its topmost one, each with the extension of its name."""
    ending = posixpath.splitext(path)[1]
    return posixpath.dirname(path) + b"/*" + ending, path.partition(b"/")[0] + b"/**" + ending
