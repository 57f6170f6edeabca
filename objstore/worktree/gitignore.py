"""Ignore rules: which names a look at the folder tree passes over.

Three layers, of which the last one that says something about a name counts: folders that are huge and rebuilt by a
program, known by their names; `.gitignore` files, where they are heard; `.casignore` files. The files have the syntax
of gitignore, and rules deeper in the tree count more. What lies in an ignored folder is never looked at, so nothing
there can be taken in again, as in git. A test lists where pathspec differs from git.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Final

from objstore.model.ids import BlobId, blob_id

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

_MEANING: Final = "5"
"""Counts changes of what lines mean, after which every folder is looked at anew."""

_BUILT_IN: Final = blob_id("\n".join([*sorted(REBUILT_FOLDERS), _MEANING]).encode())
_MOST_TEXT: Final = 1 << 20
_NAMED: Final = re.compile(r"\(\?P<\w+>")
_INSIDE: Final = re.compile(r"^(?!!)(.+)/\*\*(/?)$")
"""The end of a line for all that a folder holds, which pathspec applies to the folder too."""

_MOST_STARS: Final = 8
"""A pattern with more wildcards could keep a regular expression busy for hours with one name."""


class _Lines:
    """The patterns of one ignore file, compiled when they are first asked."""

    def __init__(self, text: bytes) -> None:
        # Here, because most folders have no ignore file, and a status needs none.
        from pathspec import GitIgnoreSpec

        self.refused: list[str] = []
        with warnings.catch_warnings(action="ignore"):  # `re` warns of sets that a later Python may read otherwise
            self._spec: Final = GitIgnoreSpec.from_lines(self._heard(text))
            self._for_folders: Final = [one for one in reversed(self._spec.patterns) if one.include is not None]
            # Most names fit no pattern: one search finds that out in a third of the time that pathspec takes.
            expressions = [f"(?:{_NAMED.sub('(?:', one.regex.pattern)})" for one in self._for_folders if one.regex]
            self._any: Final = re.compile("|".join(expressions) or "(?!)")

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Return whether the path is ignored (None: no pattern says anything of it)."""
        spelt = f"{path}/" if is_folder else path
        if self._any.search(spelt) is None:
            return None
        if not is_folder:
            return self._spec.check_file(spelt).include
        # GitIgnoreSpec judges files, and would ignore each folder for `*` despite a later `!*/`.
        # A pattern that fits the folder above too may fit only that one.
        above = path[: path.rfind("/") + 1]
        fitting = (one for one in self._for_folders if one.match_file(spelt) is not None)
        return next((one.include for one in fitting if not above or one.match_file(above) is None), None)

    def _heard(self, text: bytes) -> Iterator[str]:
        """Yield the lines that pathspec takes, and keep the others in `refused`."""
        from pathspec import GitIgnoreSpec

        if len(text) > _MOST_TEXT:
            self.refused.append(f"the file is longer than {_MOST_TEXT} bytes")
            return
        for raw in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            line = raw.removesuffix(b"\r").decode("utf-8", "surrogateescape")
            if line.startswith("#"):
                continue
            spelt = _INSIDE.sub(r"\1/*\2", line)
            try:
                GitIgnoreSpec.from_lines([spelt])
            except (ValueError, re.error):  # a pattern that pathspec refuses, or a set that `re` refuses
                self.refused.append(line)
                continue
            # pathspec reads `[[:digit:]]` as letters; to hear no such line is better than to ignore the wrong files.
            if "[:" in line or line.replace("**", "").count("*") > _MOST_STARS:
                self.refused.append(line)
            else:
                yield spelt


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
