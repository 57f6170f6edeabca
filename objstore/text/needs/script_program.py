"""The JavaScript and TypeScript files of a workspace at one moment, and what is broken in each.

A module is found by its path relative to the file that imports it, with the endings that Node and bundlers try. Imports
of packages, and of names that a configuration maps, are passed over.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from posixpath import normpath
from typing import Final

from objstore.text.needs.broken_names import BrokenName
from objstore.text.needs.script_globals import GLOBALS
from objstore.text.needs.script_names import ScriptNames
from objstore.text.needs.source_kinds import is_script

__all__ = ["ScriptProgram", "file_words"]

_ENDINGS: Final = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".json")
_COMPILED: Final = {".js": (".ts", ".tsx", ".d.ts"), ".mjs": (".mts",), ".cjs": (".cts",), ".jsx": (".tsx",)}
"""Endings of what is compiled, each with those of the sources that it may be compiled from."""


def file_words(path: str) -> tuple[str, ...]:
    """Return the words of which one is in each import of a file, as `imported_files` returns them."""
    folder, _, name = path.rpartition("/")
    for ending in (".d.ts", *_ENDINGS):
        if name.endswith(ending):
            name = name.removesuffix(ending)
            break
    words = (name, folder.rpartition("/")[2]) if name == "index" else (name,)
    return tuple(word.replace(" ", "_") for word in words if word)


class ScriptProgram:
    """The JavaScript and TypeScript files of a workspace at one moment."""

    def __init__(
        self,
        paths: Iterable[str],
        names: Callable[[str], ScriptNames],
        declaring: Iterable[str] = (),
        ignored: Iterable[str] = (),
    ) -> None:
        """Take the paths of all files, and a function that returns the names of a source.

        `declaring`: sources that may declare names for all others; `ignored`: files and folders of which nothing is
        known.
        """
        self.paths: Final = frozenset(paths)
        self._names: Final = names
        self._declaring: Final = tuple(declaring)
        self._ignored: Final = frozenset(ignored)
        self._read: dict[str, ScriptNames] = {}

    def names(self, path: str) -> ScriptNames:
        """Return the names of a source."""
        if path not in self._read:
            self._read[path] = self._names(path)
        return self._read[path]

    def exports(self, path: str) -> object:
        """Return what others can import from a source, for a comparison; None: there is no such file."""
        if path not in self.paths:
            return None
        names = self.names(path)
        return names.exported, names.is_open, names.error, [each for each in names.imports if each.name == "*"]

    def broken(self, path: str) -> Iterator[BrokenName]:
        """Yield what is broken in a source."""
        found = self.names(path)
        if found.error:
            yield BrokenName(path, 0, "", error=found.error)
            return
        for name, line in found.undefined:
            if name not in self._ambient:
                yield BrokenName(path, line, name)
        for each in found.imports:
            module = self._place(path, each.source)
            if not module:
                continue
            if not each.name and not self.has_module(module):
                yield BrokenName(path, each.line, "", module=module)
            elif each.name not in {"", "*"} and not self.may_have(module, each.name):
                yield BrokenName(path, each.line, each.name, module=module)

    def has_module(self, module: str) -> bool:
        """Return whether a file is at the place that an import names, or that can't be known."""
        return bool(self._files(module)) or self._is_ignored(module)

    def could_have_module(self, _module: str) -> bool:
        """Return whether a module that is not there could only be one of these files: each is named by its place."""
        return True

    def _is_ignored(self, place: str) -> bool:
        if any(place + ending in self._ignored for ending in ("", *_ENDINGS)):
            return True
        folder = place.rpartition("/")[0]
        return bool(folder) and self._is_ignored(folder)

    def may_have(self, module: str, name: str) -> bool:
        """Return whether a name can be imported from a place, or that can't be known."""
        found = self._files(module)
        return not found or any(self._may_have(path, name) for path in found)

    def may_be_bound(self, path: str, name: str) -> bool:
        """Return whether a name could be one that a source has lost; if not, something outside may provide it."""
        names = self.names(path)
        return name not in GLOBALS and (name in names.defined or not names.is_script)

    # ---- inside

    @cached_property
    def _ambient(self) -> frozenset[str]:
        return frozenset(name for path in self._declaring for name in self.names(path).ambient)

    def _place(self, path: str, source: str) -> str:
        """Return where an import of a file leads ("": outside)."""
        place = normpath(f"{path.rpartition('/')[0] or '.'}/{source.partition('?')[0]}")
        return "" if place.startswith("..") else place

    @cache  # noqa: B019 - a program lives as long as one comparison
    def _files(self, place: str) -> tuple[str, ...]:
        """Return the files that an import may mean."""
        found = [place] if place in self.paths else []
        stem, dot, ending = place.rpartition(".")
        found += [stem + each for each in _COMPILED.get(dot + ending, ()) if stem + each in self.paths]
        found += [place + each for each in _ENDINGS if place + each in self.paths]
        inside = "index" if place == "." else f"{place}/index"
        found += [inside + each for each in _ENDINGS if inside + each in self.paths]
        return tuple(found)

    def _may_have(self, path: str, name: str, above: frozenset[str] = frozenset()) -> bool:
        if path in above:
            return False
        if not is_script(path):
            return True
        names = self.names(path)
        if names.error or names.is_open or name in names.exported:
            return True
        if name == "default" and names.is_commonjs:
            return True
        for each in names.imports if name != "default" else ():  # which `export *` leaves out
            if each.name == "*":
                place = self._place(path, each.source)
                found = self._files(place) if place else ()
                if not found or any(self._may_have(file, name, above | {path}) for file in found):
                    return True
        return False
