"""Match files with the patterns of settings, which are read like the lines of a `.gitignore` file.

- A pattern without a slash is a name anywhere (`*.pem`), one with a slash in front or inside is a path from the
  workspace's root (`/conf/app.ini`, `src/*.py`), and one with a slash at its end is a folder (`.ssh/`). What matches a
  folder holds for all below it.
- `*`, `?` and sets match within one name, and the name `**` any number of folders (`docs/**`: all below `docs`).
- The last pattern that matches decides. One with `!` in front is an exception.

There are two questions. Scans go from folder to folder and ask whether a *name* is left out, in upper or lower case;
below a folder that is left out, nothing is asked, so no exception counts there (`leaves_out`). Reviews ask about a
*file*, exactly as it is written; an exception counts also below a folder that a pattern names (`names_file`).
"""

from collections.abc import Iterable, Sequence
from typing import Final, Self

from objstore.values.fastclass import NamedTuple

__all__ = ["DEFAULT", "NO_PATTERNS", "SECRET_NAMES", "PathPatterns", "escaped", "expanded"]

DEFAULT: Final = "default"
"""The word that means all default patterns in a list of patterns."""

SECRET_NAMES: Final = (
    *(".env", ".env.*", ".env-*", ".env_*", "*.env", ".envrc"),
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.keytab", "*.kdbx", "*.ppk", "*.ovpn"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "!id_*.pub"),
    *("credentials", ".credentials", ".git-credentials", "credentials.csv", "credentials.ini", "credentials.json"),
    *("credentials.toml", "credentials.xml", "credentials.yaml", "credentials.yml"),
    *("secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml", "client_secret*.json"),
    *("service-account*.json", "service_account*.json", "serviceaccount*.json"),
    *(".netrc", "_netrc", ".pgpass", ".my.cnf", ".pypirc", ".htpasswd", ".s3cfg", ".boto", ".dockercfg"),
    *(".dockerconfigjson", "kubeconfig", "*.kubeconfig", ".vault-token", ".vault_pass*", "*.tfstate"),
    "*.tfstate.backup",
    *(".bash_history", ".zsh_history", ".psql_history", ".mysql_history"),
    *(".aws/", ".gnupg/", ".kube/", ".ssh/"),
    *("!*.example", "!*.sample", "!*.template", "!*.dist", "!.env.d.ts"),
)
"""Names of files that usually hold secrets.

Not among them are names of sources (`credentials.py`, `id_map.py`), public keys and certificates, and `.npmrc`: most of
those in projects hold no secret, and which registry they name has to be reviewed.
"""

_SPECIAL: Final = "*?["
_ANY: Final = "**"
_MOST_ANY: Final = 4
"""How often `**` may be in a pattern: each tries every number of folders."""


class _Glob(NamedTuple):
    """A pattern for one name."""

    text: str
    beginning: str  # what a matching name begins with
    end: str  # what it ends with
    is_literal: bool
    is_one_star: bool  # the beginning, a star and the end are all there is

    @classmethod
    def of(cls, text: str) -> Self:
        special = [at for at, letter in enumerate(text) if letter in _SPECIAL]
        if not special:
            return cls(text, text, text, is_literal=True, is_one_star=False)
        end = "" if "[" in text else text[special[-1] + 1 :]  # a set may hold any letter
        return cls(text, text[: special[0]], end, is_literal=False, is_one_star=len(special) == 1 and "*" in text)

    def matches(self, name: str) -> bool:
        if self.is_literal:
            return name == self.text
        if not (name.startswith(self.beginning) and name.endswith(self.end)):
            return False
        if self.is_one_star:
            return len(name) >= len(self.beginning) + len(self.end)
        from fnmatch import fnmatchcase

        return fnmatchcase(name, self.text)


class _Pattern(NamedTuple):
    parts: tuple[_Glob, ...]  # the names of a path from the root, some of them `**`
    is_folder: bool  # it matches folders only
    is_exception: bool

    @classmethod
    def of(cls, pattern: str) -> Self:
        bare = pattern.removeprefix("!")
        parts = _names_of(pattern)
        if "/" not in bare.removesuffix("/"):
            parts = [_ANY, *parts]  # a name anywhere
        return cls(tuple(map(_Glob.of, parts)), is_folder=bare.endswith("/"), is_exception=bare != pattern)

    def matches(self, names: Sequence[str], *, is_folder: bool) -> bool:
        """Return whether the pattern matches exactly the path with these names."""
        return (is_folder or not self.is_folder) and _fits(self.parts, names)


def _fits(parts: Sequence[_Glob], names: Sequence[str]) -> bool:
    if not parts:
        return not names
    if parts[0].text == _ANY:
        if len(parts) == 1:
            return bool(names)
        return any(_fits(parts[1:], names[at:]) for at in range(len(names)))
    return bool(names) and parts[0].matches(names[0]) and _fits(parts[1:], names[1:])


def _names_of(pattern: str) -> list[str]:
    """Return the names in a pattern, without what says how they are meant."""
    return pattern.removeprefix("!").removeprefix("/").removesuffix("/").split("/")


class PathPatterns:
    """A list of patterns, ready to match."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        """Take the patterns. Raises ValueError for one that can't match any path."""
        self.patterns: Final = tuple(patterns)
        for pattern in self.patterns:
            names = _names_of(pattern)
            if not all(names) or {".", ".."} & set(names) or names.count(_ANY) > _MOST_ANY:
                raise ValueError(f"{pattern!r} matches no path")
        self._exact: list[_Pattern] | None = None  # newest first, as are the following; None: not needed yet
        self._any_case: list[_Pattern] | None = None
        # A name that is left out is one of these names, or has one of these beginnings or ends. Most names have none.
        self._names: frozenset[str] = frozenset()
        self._beginnings: tuple[str, ...] = ()
        self._ends: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there is any pattern."""
        return bool(self.patterns)

    def names_file(self, path: str) -> bool:
        """Return whether the patterns name the file at a path relative to the root, or a folder above it."""
        if self._exact is None:
            self._exact = [_Pattern.of(pattern) for pattern in reversed(self.patterns)]
        names = path.split("/")
        ends = range(1, len(names) + 1)
        found = (
            not each.is_exception
            for each in self._exact
            if any(each.matches(names[:end], is_folder=end < len(names)) for end in ends)
        )
        return next(found, False)

    def leaves_out(self, name: str, folder: str = "", *, is_folder: bool = False) -> bool:
        """Return whether the patterns leave out a name in a folder ("": the workspace's root) that is not left out."""
        if self._any_case is None:
            self._any_case = self._prepared()
        name = name.lower()
        if name not in self._names and not name.startswith(self._beginnings) and not name.endswith(self._ends):
            return False
        names = [*folder.lower().split("/"), name] if folder else [name]
        found = (not each.is_exception for each in self._any_case if each.matches(names, is_folder=is_folder))
        return next(found, False)

    def leaves_out_path(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether the patterns leave out what is at a path, or one of the folders above it."""
        parts = path.split("/")
        return any(
            self.leaves_out(name, "/".join(parts[:at]), is_folder=is_folder or at + 1 < len(parts))
            for at, name in enumerate(parts)
        )

    def _prepared(self) -> list[_Pattern]:
        """Return the patterns in lower case, and note how the names that they match look."""
        lower = [pattern.lower() for pattern in self.patterns]
        last = [_Glob.of(_names_of(pattern)[-1]) for pattern in lower if not pattern.startswith("!")]
        self._names = frozenset(glob.text for glob in last if glob.is_literal)
        self._beginnings = tuple({glob.beginning for glob in last if not glob.is_literal and glob.beginning})
        self._ends = tuple({glob.end for glob in last if not glob.is_literal and not glob.beginning})
        return [_Pattern.of(pattern) for pattern in reversed(lower)]


NO_PATTERNS: Final = PathPatterns()


def expanded(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns with the default ones in place of the word `default`."""
    return tuple(each for one in patterns for each in (SECRET_NAMES if one == DEFAULT else (one,)))


def escaped(path: str) -> str:
    """Return the pattern that matches exactly this path from the workspace's root."""
    return "/" + "".join(f"[{letter}]" if letter in _SPECIAL else letter for letter in path)
