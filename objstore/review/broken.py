"""Find the names that a decision leaves undefined and the imports that it breaks, from the files before and after it.

A derived index (`cache/names`) has, by blob, what each source imports and defines, so that only new sources are parsed.
It can be deleted at any time. Of a file that the decision doesn't change, first only the words of its imports are
compared: most files import none of those that change.
"""

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Final

from msgpack import packb, unpackb

from objstore.errors import CasError, StoreLinked, StoreNotRegular
from objstore.fs.nofollow import read_store_file, write_derived_file
from objstore.fs.reserved_names import NAMES_NAME, STORE_NAME
from objstore.model.ids import HASH_SIZE, BlobId, blob_id
from objstore.needs.broken_names import BrokenName, Program, broken_names, module_words
from objstore.needs.python_names import Import, PythonNames, imported_words, python_names
from objstore.needs.source_kinds import is_python
from objstore.transaction.journal import Journal
from objstore.trial.covered import covered_tree

__all__ = ["Sources"]

_MAGIC: Final = b"casnames1"
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
        covered = covered_tree(journal).files
        self._covered: Final = {os.fsdecode(path): file.blob for path, file in covered.items()}
        self._paths: Final = [path for path in self._covered if is_python(path)]
        for path in self._paths:
            self._index.read(self._covered[path], path)

    def broken_by(self, before: Texts, after: Texts, moved: Mapping[str, str] | None = None) -> list[BrokenName]:
        """Return what is broken after a change of files and was not before.

        `before`, `after`: the texts of the changed files; `moved`: the former paths of those that have another.
        """
        changed = {*before, *after}
        others = [path for path in self._paths if path not in changed]
        programs = []
        for texts in (before, after):
            here = [path for path, text in texts.items() if text is not None]
            programs.append(Program([*others, *here], self._names_in(texts)))
        first, second = programs
        files = {
            path: (moved or {}).get(path, path) for path, text in after.items() if text is not None and is_python(path)
        }
        files = {path: earlier if before.get(earlier) is not None else "" for path, earlier in files.items()}
        words = {
            word.encode("utf-8", "surrogateescape")
            for path in changed
            if is_python(path) and _exports(first, path) != _exports(second, path)
            for word in module_words(path)
        }
        if words:
            files |= {path: path for path in others if self._index.imports_any(self._covered[path], path, words)}
        found = broken_names(first, second, files)
        changed_texts = {text for each in (before, after) for text in each.values() if text is not None}
        self._index.save({*self._covered.values(), *map(blob_id, changed_texts)})
        return found

    def _names_in(self, texts: Texts) -> Callable[[str], PythonNames]:
        def names(path: str) -> PythonNames:
            text = texts.get(path)
            return self._index.names(self._covered[path], path) if text is None else self._index.names_of(text)

        return names


# ---- inside


def _exports(program: Program, path: str) -> object:
    """Return what others can import from a file; None: there is no such file."""
    if path not in program.paths:
        return None
    names = program.names(path)
    return (
        names.defined,
        names.is_open,
        names.exported,
        names.error,
        [each for each in names.imports if each.name == "*"],
    )


class _Index:
    """What is known of each source, by its blob."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._folder = os.path.join(journal.tree.root, STORE_NAME)
        self._entries: dict[bytes, list[bytes | None]] = self._loaded()
        self._has_changes = False

    def imports_any(self, blob: BlobId, path: str, words: set[bytes]) -> bool:
        """Return whether a file may import a module of which one of the words is in each import ("": any import)."""
        held = self.read(blob, path)[0] or b""
        return any(b" " + word + b" " in held for word in words if word) or (b"" in words and held != b"  ")

    def names(self, blob: BlobId, path: str) -> PythonNames:
        """Return the names of a file on disk."""
        return self._names(self.read(blob, path), lambda: self._text(path))

    def names_of(self, text: bytes) -> PythonNames:
        """Return the names of a text."""
        return self._names(self._entries.setdefault(blob_id(text), [imported_words(text), None]), lambda: text)

    def _names(self, entry: list[bytes | None], source: Callable[[], bytes]) -> PythonNames:
        packed = entry[1]
        if packed is None:
            text = source()
            packed = entry[1] = _packed(python_names(text) if len(text) <= _MOST else PythonNames(is_open=True))
            self._has_changes = True
        return _unpacked(packed)

    def save(self, kept: Collection[BlobId]) -> None:
        """Save what is known of some blobs for the next time, and forget the others, so that the index doesn't grow.

        If that fails, the next time reads more, and nothing else is lost.
        """
        if self._has_changes:
            body = packb({blob: entry for blob, entry in self._entries.items() if blob in kept})
            with suppress(CasError, OSError):
                place = os.path.split(NAMES_NAME)
                write_derived_file(self._journal.disk, self._folder, *place, _MAGIC + blob_id(body) + body)

    def read(self, blob: BlobId, path: str) -> list[bytes | None]:
        """Return what is known of a file on disk, after reading it if it is new."""
        entry = self._entries.get(blob)
        if entry is None:
            entry = self._entries[blob] = [imported_words(self._text(path)), None]
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


def _packed(names: PythonNames) -> bytes:
    exported = None if names.exported is None else list(names.exported)
    packed: bytes = packb(
        (names.error, sorted(names.defined), names.is_open, exported, names.undefined, names.imports),
        unicode_errors="surrogatepass",
    )
    return packed


def _unpacked(packed: bytes) -> PythonNames:
    error, defined, is_open, exported, undefined, imports = unpackb(packed, unicode_errors="surrogatepass")
    return PythonNames(
        error=error,
        defined=frozenset(defined),
        is_open=is_open,
        exported=None if exported is None else tuple(exported),
        undefined=tuple((name, line) for name, line in undefined),
        imports=tuple(Import(*each) for each in imports),
    )
