"""Find the names that a decision leaves undefined and the imports that it breaks, from the files before and after it.

A derived index (`cache/names`) has, by blob, what each source imports and defines, so that only new sources are parsed.
It can be deleted at any time. Of a file that the decision doesn't change, first only the words of its imports are
compared: most files import none of those that change.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Final

from msgpack import packb, unpackb

from objstore.disk.fs.nofollow import read_store_file, write_derived_file
from objstore.disk.fs.reserved_names import NAMES_NAME, STORE_NAME
from objstore.model.ids import HASH_SIZE, BlobId, blob_id
from objstore.review.trial.copy_contents import covered_tree
from objstore.storage.transaction.journal import Journal
from objstore.text.needs.broken_names import BrokenName, Program, broken_names
from objstore.text.needs.languages import Language, Names, languages
from objstore.text.needs.script_names import DECLARES_GLOBAL
from objstore.values.errors import CasError, StoreLinked, StoreNotRegular

__all__ = ["Sources"]

_MAGIC: Final = b"casnames3"
_MOST: Final = 1 << 20
"""Bytes of a source; a longer one is a table of data rather than a program."""

Texts = Mapping[str, bytes | None]
"""Files by path (None: no file)."""


class Sources:
    """The sources of a workspace, as scans find them now, with what is known of each."""

    def __init__(self, journal: Journal) -> None:
        """Scan the workspace, and read the sources that are new: the first time takes long.

        Raises what a walk raises.
        """
        self._index: Final = _Index(journal)
        tree = covered_tree(journal)
        self._covered: Final = {os.fsdecode(path): file.blob for path, file in tree.files.items()}
        self._ignored: Final = [*map(os.fsdecode, tree.ignored)]
        self._paths: Final = {
            language: [path for path in self._covered if language.is_source(path)] for language in languages()
        }
        for language, paths in self._paths.items():
            for path in paths:
                self._index.read(language, self._covered[path], path)

    def broken_by(self, before: Texts, after: Texts, moved: Mapping[str, str] | None = None) -> list[BrokenName]:
        """Return what is broken after a change of files and was not before.

        `before`, `after`: the texts of the changed files; `moved`: the former paths of those that have another.
        """
        found: list[BrokenName] = []
        changed = {*before, *after}
        for language in self._paths:
            if any(map(language.is_source, changed)):
                found += self._broken_in(language, before, after, moved or {})
        changed_texts = {text for each in (before, after) for text in each.values() if text is not None}
        self._index.save({*self._covered.values(), *map(blob_id, changed_texts)})
        return sorted(found)

    def _broken_in(self, language: Language, before: Texts, after: Texts, moved: Mapping[str, str]) -> list[BrokenName]:
        first, second = (self._program(language, texts) for texts in (before, after))
        changed = [path for path in {*before, *after} if language.is_source(path)]
        files = {path: moved.get(path, path) for path in changed if after.get(path) is not None}
        files = {path: earlier if before.get(earlier) is not None else "" for path, earlier in files.items()}
        words = {
            word.encode("utf-8", "surrogateescape")
            for path in changed
            if first.exports(path) != second.exports(path)
            for word in language.module_words(path)
        }
        if words:
            files |= {
                path: path for path in self._others(language, changed) if self._imports_any(language, path, words)
            }
        return broken_names(first, second, files)

    def _program(self, language: Language, texts: Texts) -> Program:
        """Return the program that has these texts in place of the files on disk."""
        here = [path for path, text in texts.items() if text is not None]
        others = [path for path in self._covered if path not in texts]
        declaring = [
            path
            for path in self._paths[language]
            if path not in texts and self._imports_any(language, path, {DECLARES_GLOBAL})
        ]
        declaring += [path for path in here if language.is_source(path) and path.endswith(".d.ts")]

        def names(path: str) -> Names:
            text = texts.get(path)
            if text is not None:
                return self._index.names_of(language, text, path)
            return self._index.names(language, self._covered[path], path)

        return language.program([*others, *here], names, declaring, self._ignored)

    def _others(self, language: Language, changed: Collection[str]) -> Iterable[str]:
        known = set(changed)
        return (path for path in self._paths[language] if path not in known)

    def _imports_any(self, language: Language, path: str, words: set[bytes]) -> bool:
        """Return whether a source may import a module of which one of the words is in each import ("": any import)."""
        held = self._index.read(language, self._covered[path], path)[0] or b""
        return any(b" " + word + b" " in held for word in words if word) or (b"" in words and held != b"  ")


# ---- inside


class _Index:
    """What is known of each source, by its blob."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._folder = os.path.join(journal.tree.root, STORE_NAME)
        self._entries: dict[bytes, list[bytes | None]] = self._loaded()
        self._has_changes = False

    def names(self, language: Language, blob: BlobId, path: str) -> Names:
        """Return the names of a source on disk."""
        return self._names(language, self.read(language, blob, path), path, lambda: self._text(path))

    def names_of(self, language: Language, text: bytes, path: str) -> Names:
        """Return the names of a text at a path."""
        entry = self._entries.setdefault(language.kind(path) + blob_id(text), [language.imported_words(text), None])
        return self._names(language, entry, path, lambda: text)

    def _names(self, language: Language, entry: list[bytes | None], path: str, source: Callable[[], bytes]) -> Names:
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
            body = packb({blob: entry for blob, entry in self._entries.items() if blob[-HASH_SIZE:] in kept})
            with suppress(CasError, OSError):
                place = os.path.split(NAMES_NAME)
                write_derived_file(self._journal.disk, self._folder, *place, _MAGIC + blob_id(body) + body)

    def read(self, language: Language, blob: BlobId, path: str) -> list[bytes | None]:
        """Return what is known of a source on disk, after reading it if it is new."""
        key = language.kind(path) + blob
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = [language.imported_words(self._text(path)), None]
            self._has_changes = True
        return entry

    def _text(self, path: str) -> bytes:
        try:
            return self._journal.files.read(path, limit=_MOST).bytes
        except CasError:
            return b""

    def _loaded(self) -> dict[bytes, list[bytes | None]]:
        try:
            stored = read_store_file(os.path.join(self._folder, NAMES_NAME))
        except (OSError, StoreLinked, StoreNotRegular):
            return {}
        body = memoryview(stored)[len(_MAGIC) + HASH_SIZE :]
        if stored[: len(_MAGIC) + HASH_SIZE] != _MAGIC + blob_id(body):
            return {}
        try:
            found = unpackb(body)
        except (ValueError, TypeError):
            return {}
        return found if isinstance(found, dict) and all(map(_is_entry, found.values())) else {}


def _is_entry(entry: object) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], bytes)  # noqa: PLR2004 - words and names
