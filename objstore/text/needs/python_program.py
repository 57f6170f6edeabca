"""The Python files of a workspace at one moment, and what is broken in each.

A module is found by its place: packages are folders with `__init__.py`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from objstore.text.needs.broken_names import BrokenName
from objstore.text.needs.python_names import Import, PythonNames
from objstore.text.needs.source_kinds import is_python

__all__ = ["PythonProgram", "module_words"]

_DEEPEST: Final = 20
"""Star imports that lead to star imports."""


def module_words(path: str) -> tuple[str, ...]:
    """Return the words of which one is in each import of the module in a file."""
    name = path.rpartition("/")[2].removesuffix(".pyi").removesuffix(".py")
    folder = path.rpartition("/")[0].rpartition("/")[2]
    # `from . import name` names no package, but what it imports from it.
    return (folder, "") if name == "__init__" else (name,)


class PythonProgram:
    """The Python files of a workspace at one moment."""

    def __init__(self, paths: Iterable[str], names: Callable[[str], PythonNames]) -> None:
        """Take the paths of all its files, and a function that returns the names of one."""
        self.paths: Final = frozenset(path for path in paths if is_python(path))
        self._names: Final = names
        self._read: dict[str, PythonNames] = {}
        self._modules: dict[str, list[str]] = {}
        for path in self.paths:
            self._modules.setdefault(self._module_of(path), []).append(path)
        self._packages: Final = {
            module[:at] for module in self._modules for at, letter in enumerate(module) if letter == "."
        }

    def names(self, path: str) -> PythonNames:
        """Return the names of a file."""
        if path not in self._read:
            self._read[path] = self._names(path)
        return self._read[path]

    def broken(self, path: str) -> Iterator[BrokenName]:
        """Yield what is broken in a file."""
        found = self.names(path)
        if found.error:
            yield BrokenName(path, 0, "", error=found.error)
            return
        supplied, is_open = self._from_stars(path)
        if not is_open:
            yield from (BrokenName(path, line, name) for name, line in found.undefined if name not in supplied)
        for each in found.imports:
            yield from self._broken_import(path, each)

    def has_module(self, module: str) -> bool:
        """Return whether a file, or a folder with files, has this dotted name."""
        return module in self._modules or module in self._packages

    def may_have(self, module: str, name: str) -> bool:
        """Return whether a name can be imported from a module of these files, or that can't be known."""
        files = self._modules.get(module, [])
        if len(files) != 1:
            return len(files) > 1
        (file,) = files
        names = self.names(file)
        if names.error or names.is_open or name in names.defined or name in _EVERY_MODULE:
            return True
        supplied, is_open = self._from_stars(file)
        is_package = file.endswith(("/__init__.py", "/__init__.pyi"))
        return is_open or name in supplied or (is_package and self.has_module(f"{module}.{name}"))

    def exports(self, path: str) -> object:
        """Return what others can import from a file, for a comparison; None: there is no such file."""
        if path not in self.paths:
            return None
        names = self.names(path)
        stars = [each for each in names.imports if each.name == "*"]
        return names.defined, names.is_open, names.exported, names.error, stars

    def could_have_module(self, module: str) -> bool:
        """Return whether a module that is not there could only be one of these files, and not of a distribution."""
        return self.has_module(module)

    def may_be_bound(self, _path: str, _name: str) -> bool:
        """Return whether a name could be one that a file has lost: in Python, each module binds its own."""
        return True

    # ---- inside

    def _module_of(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        name = name.removesuffix(".pyi").removesuffix(".py")
        parts = [] if name == "__init__" else [name]
        while folder and f"{folder}/__init__.py" in self.paths:
            above, _, own = folder.rpartition("/")
            parts.append(own)
            folder = above
        return ".".join(reversed(parts))

    def _target(self, path: str, module: str, level: int) -> tuple[str, str]:
        """Return the dotted name of an imported module and its file ("": none of these files)."""
        if level:
            base = self._module_of(path).split(".")
            if path.rpartition("/")[2] not in {"__init__.py", "__init__.pyi"}:
                base = base[:-1]
            base = base[: len(base) - level + 1] if level > 1 else base
            module = ".".join([*(part for part in base if part), *([module] if module else [])])
        files = self._modules.get(module, [])
        return module, files[0] if len(files) == 1 else ""

    def _broken_import(self, path: str, found: Import) -> Iterator[BrokenName]:
        module, file = self._target(path, found.module, found.level)
        if not module or found.name == "*":
            return
        if not self.has_module(module):
            yield BrokenName(path, found.line, "", module=module)
            return
        if not found.name or not file:
            return
        if not self.may_have(module, found.name):
            yield BrokenName(path, found.line, found.name, module=module)

    def _from_stars(self, path: str, depth: int = 0) -> tuple[set[str], bool]:
        """Return the names that star imports bring into a file, and whether there may be others."""
        supplied: set[str] = set()
        for each in self.names(path).imports:
            if each.name != "*":
                continue
            _, file = self._target(path, each.module, each.level)
            if not file or file == path or depth > _DEEPEST:
                return supplied, True
            names = self.names(file)
            inner, is_open = self._from_stars(file, depth + 1)
            if names.error or names.is_open or is_open:
                return supplied, True
            own = names.defined | inner
            supplied |= set(names.exported) if names.exported is not None else {n for n in own if not n.startswith("_")}
        return supplied, False


_EVERY_MODULE: Final = frozenset({"__name__", "__file__", "__doc__", "__path__", "__spec__", "__package__", "__all__"})
