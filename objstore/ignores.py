"""Ignore rules: which names a look at the folder tree passes over.

Three layers, of which the last one that says something about a name counts: folders that are huge and rebuilt by a
program, known by their names; `.gitignore` files, where they are heard; `.casignore` files. The files have the syntax
of gitignore, and rules deeper in the tree count more. What lies in an ignored folder is never looked at, so nothing
there can be taken in again, as in git. As to git, a name is a string of bytes: `?` is one of them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from objstore.brackets import Brackets
from objstore.ids import BlobId, blob_id

__all__ = ["GIT_IGNORE_FILE", "IGNORE_FILE", "REBUILT_FOLDERS", "TAGS", "Rules"]

IGNORE_FILE: Final = b".casignore"
GIT_IGNORE_FILE: Final = b".gitignore"

REBUILT_FOLDERS: Final = frozenset(
    {
        "__pycache__",
        "bower_components",
        "node_modules",
        ".eggs",
        ".gradle",
        ".hypothesis",
        ".mypy_cache",
        ".next",
        ".nox",
        ".nuxt",
        ".parcel-cache",
        ".pytest_cache",
        ".ruff_cache",
        ".terraform",
        ".tox",
        ".turbo",
        ".venv",
    }
)
"""Names of folders that programs fill and fill again; none that a person might give to a folder of sources."""

TAGS: Final = {
    b"CACHEDIR.TAG": b"Signature: 8a477f597d28d172789f06886806bc55",
    b"pyvenv.cfg": b"",
}
"""Files that say of the folder they lie in that it can be rebuilt, and how they begin: a cache, a virtual environment.

Source: the Cache Directory Tagging Specification; PEP 405."""

_MEANING: Final = "4"
"""Counts changes of what lines mean, after which every folder is looked at anew."""

_BUILT_IN: Final = blob_id("\n".join([*sorted(REBUILT_FOLDERS), _MEANING]).encode())
_MOST_TEXT: Final = 1 << 20
_FOLDER: Final = "(?P<ps_d>/)"
_FOLDER_OR_END: Final = f"(?:{_FOLDER}|$)"
"""How pathspec spells that a pattern fits what lies in a folder too."""

_MANY_STARS: Final = r"((?<=/)|^|(?<=^!))\*{3,}(?=/|$)"
"""What fits more than two stars that are a whole part of a path."""

_MOST_STARS: Final = 8
"""A pattern with more wildcards could keep a regular expression busy for hours with one name."""


class _Pattern(NamedTuple):
    """One line of an ignore file."""

    regex: re.Pattern[str]
    ignores: bool  # False: the line takes in again what an earlier one ignores
    inside_only: bool  # whether it means what is in a folder, and not the folder


class _Lines:
    """The patterns of one ignore file, compiled when they are first asked."""

    def __init__(self, text: bytes) -> None:
        self.refused: list[str] = []
        self._patterns = list(self._compiled(text))[::-1]
        # Most names fit no pattern: one search tells that.
        spellings = [f"(?:{pattern.regex.pattern})" for pattern in self._patterns]
        self._any = re.compile("|".join(spellings), re.DOTALL) if spellings else None

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Return whether the path is ignored (None: no pattern says anything of it)."""
        path = path if path.isascii() else _by_byte(path.encode("utf-8", "surrogateescape"))
        spelt = path + "/" if is_folder else path
        if self._any is None or self._any.search(spelt) is None:
            return None
        for pattern in self._patterns:
            if pattern.regex.search(path if pattern.inside_only else spelt) is not None:
                return pattern.ignores
        return None

    def _compiled(self, text: bytes) -> Iterator[_Pattern]:
        # Here, because most folders have no ignore file, and a status needs none.
        from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

        if len(text) > _MOST_TEXT:
            self.refused.append(f"the file is longer than {_MOST_TEXT} bytes")
            return
        for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            spelling = _trimmed(_by_byte(line.removesuffix(b"\r")))
            if spelling.startswith("#") or (spelling.endswith("/") and not spelling.removeprefix("!").strip("/")):
                continue  # a remark, or of no name at all
            try:
                brackets = Brackets(spelling)
                rest = _starred(brackets.rest)
                rest = _anchored(rest) if brackets.has_slash else rest
                pattern = GitIgnoreSpecPattern(rest)
            except ValueError:  # an expression in brackets without an end, or what pathspec refuses
                self._refuse(line)
                continue
            if rest.replace("**", "").count("*") > _MOST_STARS:
                self._refuse(line)
            elif pattern.regex is not None and pattern.include is not None:
                regex = re.compile(brackets.put_back(_of_itself(pattern.regex)), re.DOTALL)  # a name may hold a newline
                yield _Pattern(regex, bool(pattern.include), rest.rstrip().endswith("/**"))

    def _refuse(self, line: bytes) -> None:
        self.refused.append(line.removesuffix(b"\r").decode("utf-8", "surrogateescape"))


def _by_byte(spelling: bytes) -> str:
    """Return a text with one letter for each byte."""
    return spelling.decode("ascii", "surrogateescape")


def _trimmed(line: str) -> str:
    """Return a line without the spaces that it ends in, but for one behind a backslash; other white space stays."""
    bare = line.rstrip(" ")
    is_escaped = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return line[: len(bare) + 1] if is_escaped else bare


def _starred(line: str) -> str:
    """Return a line whose stars pathspec takes as git does.

    A part of a path that is more than two is as two. Two in the last part of a line for folders stand for those within,
    and not for the folder that they are in.
    """
    line = re.sub(_MANY_STARS, "**", line)
    return f"{line}*/" if line.endswith("/**/") else line


def _anchored(line: str) -> str:
    """Return a line that has a slash somewhere, so that it is one of paths, with a slash where that shows."""
    sign = "!" if line.startswith("!") else ""
    pattern = line.removeprefix(sign)
    return line if "/" in pattern.rstrip("/ ") else f"{sign}/{pattern}"


def _of_itself(regex: re.Pattern[str]) -> str:
    """Return what fits a path only by what it is itself, and not by a folder that it lies in: folders come first."""
    return regex.pattern.replace(_FOLDER_OR_END, r"/?\Z").replace(_FOLDER, r"/\Z")


class Rules:
    """The rules that hold in one folder: its own, and those of the folders above it."""

    __slots__ = ("_lines", "_texts", "above", "fingerprint", "name")

    def __init__(
        self, above: "Rules | None" = None, name: str = "", texts: Sequence[bytes] = (), *, kind: bytes = b""
    ) -> None:
        """Take the rules of the folder above (None: only what holds everywhere), this one's name and its ignore files.

        Of several texts, a later one counts more. `kind`: which files are heard, so that it shows in the fingerprint.
        """
        self.above: Final = above
        self.name: Final = name
        self._texts: Final = texts
        self._lines: list[_Lines] | None = None if texts else []
        fingerprint = blob_id(_BUILT_IN + kind) if above is None else above.fingerprint
        for text in texts:
            fingerprint = blob_id(fingerprint + blob_id(text))
        self.fingerprint: Final[BlobId] = fingerprint

    @property
    def lines(self) -> list[_Lines]:
        """Return this folder's own ignore files, compiled."""
        if self._lines is None:
            self._lines = [_Lines(text) for text in self._texts]
        return self._lines

    @property
    def refused(self) -> list[str]:
        """Return what this folder's own ignore files hold and is not heard."""
        return [spelling for lines in self.lines for spelling in lines.refused]

    def ignores(self, name: str, *, is_folder: bool) -> bool:
        """Return whether `name` in this folder is passed over."""
        verdict = self.verdict(name, is_folder=is_folder)
        return is_folder and name in REBUILT_FOLDERS if verdict is None else verdict

    def verdict(self, name: str, *, is_folder: bool) -> bool | None:
        """Return whether ignore files say that `name` is passed over or taken in (None: they say nothing of it)."""
        rules: Rules | None = self
        path = name
        while rules is not None:
            for lines in reversed(rules.lines):
                verdict = lines.verdict(path, is_folder=is_folder)
                if verdict is not None:
                    return verdict
            path = f"{rules.name}/{path}"
            rules = rules.above
        return None
