"""Find the names that a decision leaves undefined and the imports that it breaks, from the files before and after it.

Of a file that the decision doesn't change, first only the words of its imports are compared: most files import none of
those that change.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from objstore.model.ids import blob_id
from objstore.review.source_names import SourceNames, Texts
from objstore.review.trial.copy_contents import covered_tree
from objstore.storage.transaction.journal import Journal
from objstore.text.needs.broken_names import BrokenName, Program, broken_names
from objstore.text.needs.languages import Language, Names, languages_of

__all__ = ["Sources"]


class Sources:
    """The sources of a workspace, as scans find them now, with what is known of each."""

    def __init__(self, journal: Journal, index: SourceNames) -> None:
        """Scan the workspace, and read the sources that are not in the index: the first time takes long.

        Raises what a walk raises.
        """
        self._index: Final = index
        tree = covered_tree(journal)
        self._covered: Final = {os.fsdecode(path): file.blob for path, file in tree.files.items()}
        self._ignored: Final = [*map(os.fsdecode, tree.ignored)]
        self._paths: Final = {
            language: [path for path in self._covered if language.is_source(path)]
            for language in languages_of(self._covered)
        }
        for language, paths in self._paths.items():
            for path in paths:
                self._index.read(language, self._covered[path], path)
        self._index.save({*self._covered.values()})

    def broken_by(self, before: Texts, after: Texts, moved: Mapping[str, str] | None = None) -> list[BrokenName]:
        """Return what is broken after a change of files and was not before.

        `before`, `after`: the texts of the changed files; `moved`: the former paths of those that have another.
        """
        found: list[BrokenName] = []
        changed = {*before, *after}
        for language in languages_of(changed):
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

        def declaring() -> Iterator[str]:
            from objstore.text.needs.script_names import DECLARES_GLOBAL  # only scripts declare for others

            for path in self._paths.get(language, ()):
                if path not in texts and self._imports_any(language, path, {DECLARES_GLOBAL}):
                    yield path
            yield from (path for path in here if language.is_source(path) and path.endswith(".d.ts"))

        def names(path: str) -> Names:
            text = texts.get(path)
            if text is not None:
                return self._index.names_of(language, text, path)
            return self._index.names(language, self._covered[path], path)

        return language.program([*others, *here], names, declaring(), self._ignored)

    def _others(self, language: Language, changed: Collection[str]) -> Iterable[str]:
        known = set(changed)
        return (path for path in self._paths.get(language, ()) if path not in known)

    def _imports_any(self, language: Language, path: str, words: set[bytes]) -> bool:
        """Return whether a source may import a module of which one of the words is in each import ("": any import)."""
        held = {*(self._index.read(language, self._covered[path], path)[0] or b"").split(b" ")} - {b""}
        return bool(held) if b"" in words else not held.isdisjoint(words)
