"""Name what a change of a program's files breaks: names that become undefined, and imports of what is gone.

What was broken before is no news.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from objstore.text.needs.source_kinds import language_of
from objstore.values.fastclass import NamedTuple

__all__ = ["BrokenName", "Program", "broken_names"]


class BrokenName(NamedTuple):
    """A name that a file uses or imports, and that is not there after a change."""

    path: str  # of the file that uses it
    line: int  # 1-based, in its text after the change
    name: str  # "": the file can't be read any more, or `module` is gone
    module: str = ""  # the module from which it is imported; "": it is used, and nothing binds it
    error: str = ""  # why the file can't be read any more
    was_there: bool = True  # whether what is imported was there before; if not, the import is what is new

    @property
    def words(self) -> str:
        """What a change does, and where it is felt, to go after what makes the change."""
        if self.error:
            return f"leaves {self.path} unreadable as {language_of(self.path)}: {self.error}"
        if self.module and self.name and not self.was_there:
            return f"imports `{self.name}` in {self.path}:{self.line} from `{self.module}`, which doesn't have it"
        if self.module and self.name:
            return f"takes `{self.name}` out of `{self.module}`, from which {self.path}:{self.line} imports it"
        if self.module and not self.was_there:
            return f"imports `{self.module}` in {self.path}:{self.line}, which isn't there"
        if self.module:
            return f"takes `{self.module}` away, which {self.path}:{self.line} imports"
        return f"leaves `{self.name}` undefined in {self.path}:{self.line}"


class Program(Protocol):
    """The sources of one language in a workspace, at one moment."""

    def broken(self, path: str) -> Iterator[BrokenName]:
        """Yield what is broken in a source."""

    def exports(self, path: str) -> object:
        """Return what others can import from a source, for a comparison; None: there is no such file."""

    def has_module(self, module: str) -> bool:
        """Return whether there is a module of this name."""

    def could_have_module(self, module: str) -> bool:
        """Return whether a module that is not there afterwards could only be one of these files."""

    def may_have(self, module: str, name: str) -> bool:
        """Return whether a name can be imported from a module, or that can't be known."""

    def may_be_bound(self, path: str, name: str) -> bool:
        """Return whether a name could be one that a source has lost; if not, something outside may provide it."""


def broken_names(before: Program, after: Program, files: Mapping[str, str]) -> list[BrokenName]:
    """Return what is broken after a change and was not before, by path and line.

    `files`: the paths to compare after the change, each with its path before it ("": there was none). Imports of
    modules that neither state has are of other distributions, and never broken.
    """
    found: list[BrokenName] = []
    for path, earlier in files.items():
        known = set() if not earlier else {_identity(each) for each in before.broken(earlier)}
        for each in after.broken(path):
            if _identity(each) in known or (
                each.module and not each.name and not before.could_have_module(each.module)
            ):
                continue
            if each.error and not earlier:
                continue  # a file that is back is as it once was
            state, place = (before, earlier) if earlier else (after, path)
            if each.name and not each.module and not state.may_be_bound(place, each.name):
                continue
            was_there = not each.module or (
                before.may_have(each.module, each.name) if each.name else before.has_module(each.module)
            )
            found.append(each._replace(was_there=was_there))
    return sorted(found)


def _identity(broken: BrokenName) -> tuple[str, str, bool]:
    return broken.module, broken.name, bool(broken.error)
