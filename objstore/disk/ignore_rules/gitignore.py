"""Decide which names in the folder tree are ignored.

There are three layers: folders that are huge and rebuilt by a program, known by their names; what git ignores, if the
settings say so; `.casignore` files. The files have the syntax of gitignore, a rule deeper in the tree overrides one
above, and in one folder `.casignore` overrides `.gitignore`. An ignored folder is never listed, so no rule can include
a file in it again, as in git; except that git's rules don't concern what its index has.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, Protocol

from objstore.disk.ignore_rules.ignore_pattern import IgnorePattern
from objstore.disk.ignore_rules.ignore_texts import NO_TEXTS, IgnoreTexts
from objstore.model.ids import BlobId, blob_id

__all__ = [
    "GIT_IGNORE_FILE",
    "IGNORE_FILE",
    "MOST_TEXT",
    "REBUILT_FOLDERS",
    "TAGS",
    "Rules",
    "Verdict",
]

IGNORE_FILE: Final = b".casignore"
GIT_IGNORE_FILE: Final = b".gitignore"

REBUILT_FOLDERS: Final = frozenset(
    {
        b"__pycache__",
        b"bower_components",
        b"node_modules",
        b".eggs",
        b".gradle",
        b".hypothesis",
        b".mypy_cache",
        b".next",
        b".nox",
        b".nuxt",
        b".parcel-cache",
        b".pytest_cache",
        b".ruff_cache",
        b".terraform",
        b".tox",
        b".turbo",
        b".venv",
    }
)
"""Names of folders that programs rebuild; no name that a person might give to a folder of sources."""

TAGS: Final = {
    b"CACHEDIR.TAG": b"Signature: 8a477f597d28d172789f06886806bc55",
    b"pyvenv.cfg": b"",
}
"""Files that mark their folder as one that can be rebuilt, with their first bytes: caches, virtual environments.

Source: the Cache Directory Tagging Specification; PEP 405."""

_RULES_VERSION: Final = b"8"
"""Raised when the meaning of a line changes, so that every folder is scanned again."""

_BUILT_IN: Final = blob_id(b"\n".join([*sorted(REBUILT_FOLDERS), _RULES_VERSION]))
MOST_TEXT: Final = 1 << 20
"""Bytes of the longest ignore file that is applied."""

_BOM: Final = b"\xef\xbb\xbf"
_OF_USER: Final = "the ignore file that git's core.excludesFile names"


class Verdict(StrEnum):
    """The verdict of the rules on a name."""

    SCANNED = "scanned"
    IGNORED_BY_GIT = "ignored by git"  # unless git's index has it
    LEFT_OUT = "left out"


class GitIndex(Protocol):
    """The contents of git's index, for the names below the top folder of a repository."""

    def has(self, path: bytes, *, is_folder: bool) -> bool:
        """Return whether the index has a file, or a file below a folder. `path`: relative to the workspace."""


class _Lines:
    """The patterns of some ignore files of one folder. A later file overrides an earlier one."""

    def __init__(self, texts: Iterable[tuple[str, bytes]], *, ignores_case: bool = False) -> None:
        """Take the files with their names. `refused`: why one of them is not applied ("": all are)."""
        self.refused: str = ""
        self._ignores_case: Final = ignores_case
        found: list[IgnorePattern] = []
        for name, text in texts:
            if len(text) > MOST_TEXT:
                self.refused = f"{name} is longer than {MOST_TEXT} bytes and is not applied"
                continue
            for line in _lines(text):
                try:
                    found.append(IgnorePattern(line, ignores_case=ignores_case))
                except ValueError:
                    continue  # to git, too, it matches nothing
        # Most names match no pattern. A name that does is one of these names, or has one of these beginnings or ends.
        self._newest_first: Final = found[::-1]
        self._names: Final = frozenset(pattern.name for pattern in found if pattern.name is not None)
        others = [pattern for pattern in found if pattern.name is None]
        self._beginnings: Final = tuple({pattern.beginning for pattern in others if pattern.beginning})
        self._ends: Final = tuple({end for pattern in others if not pattern.beginning for end in pattern.ends})

    def verdict(self, path: bytes, name: bytes, *, is_folder: bool) -> bool | None:
        """Return whether a path, which ends with `name`, is ignored (None: no pattern matches it)."""
        if self._ignores_case:
            path, name = path.lower(), name.lower()
        if name not in self._names and not name.startswith(self._beginnings) and not name.endswith(self._ends):
            return None
        for pattern in self._newest_first:
            if (pattern.name is None or pattern.name == name) and pattern.matches(path, is_folder=is_folder):
                return not pattern.is_negated
        return None


def _lines(text: bytes) -> Iterator[bytes]:
    """Yield the lines of an ignore file that are patterns, without the spaces at their ends."""
    for raw in text.removeprefix(_BOM).split(b"\n"):
        line = raw.removesuffix(b"\r").partition(b"\0")[0]
        bare = line.rstrip(b" ")
        # Of the spaces at the end, one after a backslash belongs to the pattern.
        if len(bare) < len(line) and (len(bare) - len(bare.rstrip(b"\\"))) % 2:
            bare += b" "
        if bare and not bare.startswith(b"#"):
            yield bare


class Rules:
    """The rules that apply in one folder: its own, and those of the folders above it."""

    __slots__ = ("_lines", "_texts", "above", "fingerprint", "ignores_case", "index", "is_ignored", "is_top", "name")

    def __init__(
        self,
        above: "Rules | None" = None,
        name: bytes = b"",
        texts: IgnoreTexts = NO_TEXTS,
        *,
        index: GitIndex | None = None,
        is_ignored: bool = False,
        ignores_case: bool = False,
        kind: bytes = b"",
    ) -> None:
        """Take the rules of the folder above (None: only the built-in ones), this folder's name and its ignore files.

        `index`: git's index, if the folder is the top of a repository: git's rules of the folders above end there.
        `ignores_case`: whether git does, in that repository. `is_ignored`: git ignores the folder, and it is scanned
        only for what the index has. `kind`: which rules there are besides ignore files, as part of the fingerprint.
        """
        self.above: Final = above
        self.name: Final = name
        self.is_top: Final = index is not None
        self.index: Final[GitIndex | None] = above.index if index is None and above is not None else index
        self.is_ignored: Final[bool] = is_ignored or (above is not None and above.is_ignored and not self.is_top)
        self.ignores_case: Final[bool] = above.ignores_case if index is None and above is not None else ignores_case
        self._texts: Final = texts
        self._lines: tuple[_Lines | None, _Lines | None] | None = None if any(texts) else (None, None)
        fingerprint = blob_id(_BUILT_IN + kind) if above is None else above.fingerprint
        if any(texts) or self.is_top or is_ignored:
            own = (*map(blob_id, texts), bytes([self.is_top, is_ignored, self.ignores_case]))
            fingerprint = blob_id(b"".join([fingerprint, *own]))
        self.fingerprint: Final[BlobId] = fingerprint

    @property
    def refused(self) -> list[str]:
        """Reasons why ignore files of the folder are not applied."""
        return [lines.refused for lines in self.lines if lines is not None and lines.refused]

    def verdict(self, name: bytes, *, is_folder: bool) -> Verdict:
        """Return what the rules say of `name` in this folder."""
        found = self._found(name, is_folder=is_folder)
        if found is None:
            return Verdict.LEFT_OUT if is_folder and name in REBUILT_FOLDERS else Verdict.SCANNED
        if found is Verdict.IGNORED_BY_GIT and is_folder and name in REBUILT_FOLDERS:
            return Verdict.LEFT_OUT
        return found

    def includes(self, name: bytes) -> bool:
        """Return whether an ignore file includes a folder explicitly."""
        return self._found(name, is_folder=True) is Verdict.SCANNED

    def _found(self, name: bytes, *, is_folder: bool) -> Verdict | None:
        """Return what ignore files say (None: nothing)."""
        rules: Rules | None = self
        path = name
        hears_git = not self.is_ignored
        while rules is not None:
            of_git, own = rules.lines
            verdict = None if own is None else own.verdict(path, name, is_folder=is_folder)
            if verdict is not None and (verdict or not self.is_ignored):
                return Verdict.LEFT_OUT if verdict else Verdict.SCANNED
            if of_git is not None and hears_git:
                verdict = of_git.verdict(path, name, is_folder=is_folder)
                if verdict is not None:
                    return Verdict.IGNORED_BY_GIT if verdict else Verdict.SCANNED
            hears_git = hears_git and not rules.is_top
            path = rules.name + b"/" + path
            rules = rules.above
        return Verdict.IGNORED_BY_GIT if self.is_ignored else None

    @property
    def lines(self) -> "tuple[_Lines | None, _Lines | None]":
        """The folder's own ignore files, git's and ours (None: it has none), parsed when they are first needed."""
        if self._lines is None:
            texts = self._texts
            files = ((_OF_USER, texts.user), (".git/info/exclude", texts.exclude), (".gitignore", texts.git))
            of_git = [(name, text) for name, text in files if text]
            self._lines = (
                _Lines(of_git, ignores_case=self.ignores_case) if of_git else None,
                _Lines([(".casignore", texts.own)]) if texts.own else None,
            )
        return self._lines
