"""Know what each source of a workspace imports and defines, so that only new sources are read and parsed.

A derived index (`cache/names`) has it by blob. It can be deleted at any time.
"""

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Final, TypeAlias

from msgpack import packb, unpackb

from objstore.disk.fs.nofollow import read_store_file, write_derived_file
from objstore.disk.fs.reserved_names import NAMES_NAME, STORE_NAME
from objstore.model.ids import HASH_SIZE, BlobId, blob_id
from objstore.storage.transaction.journal import Journal
from objstore.text.needs.languages import Language, Names, languages_of
from objstore.values.errors import CasError, StoreLinked, StoreNotRegular

__all__ = ["SourceNames", "Texts"]

_MAGIC: Final = b"casnames3"
_MOST: Final = 1 << 20
"""Bytes of a source; a longer one is a table of data rather than a program."""

Texts = Mapping[str, bytes | None]
"""Files by path (None: no file)."""

_Entry: TypeAlias = list[bytes | None]
"""What is known of a source: the words of its imports, and its packed names (None: they were not needed yet)."""


class SourceNames:
    """What is known of each source, by its blob."""

    def __init__(self, journal: Journal) -> None:
        """Read nothing yet: most decisions on one file need no more than its own texts."""
        self._journal = journal
        self._folder = os.path.join(journal.tree.root, STORE_NAME)
        self._new: dict[bytes, _Entry] = {}  # as of `_kept`, of what was read since
        self._has_changes = False

    @property
    def is_missing(self) -> bool:
        """Return whether there is no index, or one of another format: no source was read yet."""
        return self._stored(len(_MAGIC)) != _MAGIC

    @cached_property
    def _kept(self) -> dict[bytes, _Entry]:
        """Return what the index knows of each source, by its kind and its blob."""
        return self._loaded()

    def names(self, language: Language, blob: BlobId, path: str) -> Names:
        """Return the names of a source on disk."""
        return self._names(language, self.read(language, blob, path), path, lambda: self._text(path))

    def names_of(self, language: Language, text: bytes, path: str) -> Names:
        """Return the names of a text at a path."""
        key = _key(language, text, path)
        if key not in self._new and key in self._kept:
            self._new[key] = self._kept[key]
        return self._own_names(language, text, path)

    def _own_names(self, language: Language, text: bytes, path: str) -> Names:
        """Return the names of a text at a path without the index: to load that takes longer than to read a text."""
        key = _key(language, text, path)
        if key not in self._new:
            self._new[key] = [language.imported_words(text), None]
        return self._names(language, self._new[key], path, lambda: text)

    def are_same(self, before: Texts, after: Texts) -> bool:
        """Return whether the same files are there, and the sources among them define, import and use the same names.

        On whatever lines. Then what is broken afterwards was so before, and no other source is needed to say that.
        Scripts import other files than sources, too.
        """
        paths = {*before, *after}
        return all((before.get(path) is None) is (after.get(path) is None) for path in paths) and all(
            self._is_same(language, path, before.get(path), after.get(path))
            for language in languages_of(paths)
            for path in filter(language.is_source, paths)
        )

    def _is_same(self, language: Language, path: str, before: bytes | None, after: bytes | None) -> bool:
        if before is None or after is None or before == after:
            return before == after
        first, second = (_without_lines(self._own_names(language, text, path)) for text in (before, after))
        return bool(first == second)

    def _names(self, language: Language, entry: _Entry, path: str, source: Callable[[], bytes]) -> Names:
        packed = entry[1]
        if packed is None:
            text = source()
            packed = entry[1] = language.packed(language.names(text, path) if len(text) <= _MOST else language.unknown)
            self._has_changes = True
        return language.unpacked(packed)

    def save(self, kept: Collection[BlobId]) -> None:
        """Save what is known of some blobs for the next time, and forget the others, so that the index doesn't grow.

        If that fails, the next time reads more, and nothing else is lost.
        """
        if self._has_changes:
            entries = self._kept | self._new
            body = packb({blob: entry for blob, entry in entries.items() if blob[-HASH_SIZE:] in kept})
            with suppress(CasError, OSError):
                place = os.path.split(NAMES_NAME)
                write_derived_file(self._journal.disk, self._folder, *place, _MAGIC + blob_id(body) + body)
            self._has_changes = False

    def read(self, language: Language, blob: BlobId, path: str) -> _Entry:
        """Return what is known of a source on disk, after reading it if it is new."""
        key = language.kind(path) + blob
        entry = self._new.get(key) or self._kept.get(key)
        if entry is None:
            entry = self._new[key] = [language.imported_words(self._text(path)), None]
            self._has_changes = True
        return entry

    def _text(self, path: str) -> bytes:
        try:
            return self._journal.files.read(path, limit=_MOST).bytes
        except CasError:
            return b""

    def _loaded(self) -> dict[bytes, _Entry]:
        stored = self._stored()
        body = memoryview(stored)[len(_MAGIC) + HASH_SIZE :]
        if stored[: len(_MAGIC) + HASH_SIZE] != _MAGIC + blob_id(body):
            return {}
        try:
            found = unpackb(body)
        except (ValueError, TypeError):
            return {}
        return found if isinstance(found, dict) and all(map(_is_entry, found.values())) else {}

    def _stored(self, most: int | None = None) -> bytes:
        """Return the bytes of the index, or the first of them (b"": there is none that can be read)."""
        try:
            return read_store_file(os.path.join(self._folder, NAMES_NAME), most)
        except (OSError, StoreLinked, StoreNotRegular):
            return b""


def _key(language: Language, text: bytes, path: str) -> bytes:
    return language.kind(path) + blob_id(text)


def _without_lines(names: Names) -> Names:
    return names._replace(
        undefined=frozenset(name for name, _ in names.undefined),
        imports=frozenset(each._replace(line=0) for each in names.imports),
    )


def _is_entry(entry: object) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], bytes)  # noqa: PLR2004 - words and names
