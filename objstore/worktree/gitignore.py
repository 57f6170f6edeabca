"""Decide which names in the folder tree are ignored.

There are three layers, and the last one that matches a name decides: folders that are huge and rebuilt by a program,
known by their names; `.gitignore` files, if the settings include them; `.casignore` files. The files have the syntax of
gitignore, and a rule deeper in the tree overrides one above. An ignored folder is never listed, so no rule can include
a file in it again, as in git. A test lists where pathspec differs from git.
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
"""Names of folders that programs rebuild; no name that a person might give to a folder of sources."""

TAGS: Final = {
    b"CACHEDIR.TAG": b"Signature: 8a477f597d28d172789f06886806bc55",
    b"pyvenv.cfg": b"",
}
"""Files that mark their folder as one that can be rebuilt, with their first bytes: caches, virtual environments.

Source: the Cache Directory Tagging Specification; PEP 405."""

_RULES_VERSION: Final = "5"
"""Raised when the meaning of a line changes, so that every folder is scanned again."""

_BUILT_IN: Final = blob_id("\n".join([*sorted(REBUILT_FOLDERS), _RULES_VERSION]).encode())
_MOST_TEXT: Final = 1 << 20
_NAMED: Final = re.compile(r"\(\?P<\w+>")
_INSIDE: Final = re.compile(r"^(?!!)(.+)/\*\*(/?)$")
"""A line that ends in `/**`, for everything in a folder; pathspec would apply it to the folder too."""

_MOST_STARS: Final = 8
"""Wildcards in one pattern. With more, matching one name could take a regular expression hours."""


class _Lines:
    """The compiled patterns of one ignore file."""

    def __init__(self, text: bytes) -> None:
        # Imported here, because most folders have no ignore file, and a status needs none.
        from pathspec import GitIgnoreSpec

        self.refused: list[str] = []
        with warnings.catch_warnings(action="ignore"):  # `re` warns of sets that a later Python may read differently
            self._spec: Final = GitIgnoreSpec.from_lines(self._usable_lines(text))
            self._for_folders: Final = [one for one in reversed(self._spec.patterns) if one.include is not None]
            # Most names fit no pattern: one search finds that out in a third of the time that pathspec takes.
            expressions = [f"(?:{_NAMED.sub('(?:', one.regex.pattern)})" for one in self._for_folders if one.regex]
            self._any: Final = re.compile("|".join(expressions) or "(?!)")

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Return whether the path is ignored (None: no pattern matches it)."""
        candidate = f"{path}/" if is_folder else path
        if self._any.search(candidate) is None:
            return None
        if not is_folder:
            return self._spec.check_file(candidate).include
        # GitIgnoreSpec is for files: with `*` it would ignore each folder despite a later `!*/`.
        # A pattern that matches the folder above too may be meant only for that one.
        above = path[: path.rfind("/") + 1]
        matching = (one for one in self._for_folders if one.match_file(candidate) is not None)
        return next((one.include for one in matching if not above or one.match_file(above) is None), None)

    def _usable_lines(self, text: bytes) -> Iterator[str]:
        """Yield the lines that pathspec accepts, and keep the others in `refused`."""
        from pathspec import GitIgnoreSpec

        if len(text) > _MOST_TEXT:
            self.refused.append(f"the file is longer than {_MOST_TEXT} bytes")
            return
        for raw in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            line = raw.removesuffix(b"\r").decode("utf-8", "surrogateescape")
            if line.startswith("#"):
                continue
            pattern = _INSIDE.sub(r"\1/*\2", line)
            try:
                GitIgnoreSpec.from_lines([pattern])
            except (ValueError, re.error):  # a pattern that pathspec refuses, or a set that `re` refuses
                self.refused.append(line)
                continue
            # pathspec reads `[[:digit:]]` as letters; skipping such a line is better than ignoring the wrong files.
            if "[:" in line or line.replace("**", "").count("*") > _MOST_STARS:
                self.refused.append(line)
            else:
                yield pattern


class Rules:
    """The rules that apply in one folder: its own, and those of the folders above it."""

    __slots__ = ("_lines", "_texts", "above", "fingerprint", "name")

    def __init__(
        self, above: "Rules | None" = None, name: str = "", texts: Sequence[bytes] = (), *, kind: bytes = b""
    ) -> None:
        """Take the rules of the folder above (None: only the built-in ones), this folder's name and its ignore files.

        A later one of `texts` overrides those before it. `kind`: which ignore files are used, as part of the
        fingerprint.
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
        """The folder's own ignore files, compiled when they are first needed."""
        if self._lines is None:
            self._lines = [_Lines(text) for text in self._texts]
        return self._lines

    @property
    def refused(self) -> list[str]:
        """The lines of the folder's own ignore files that are not applied."""
        return [line for lines in self.lines for line in lines.refused]

    def ignores(self, name: str, *, is_folder: bool) -> bool:
        """Return whether `name` in this folder is ignored."""
        verdict = self.verdict(name, is_folder=is_folder)
        return is_folder and name in REBUILT_FOLDERS if verdict is None else verdict

    def verdict(self, name: str, *, is_folder: bool) -> bool | None:
        """Return whether ignore files ignore `name` or include it (None: no rule matches it)."""
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
