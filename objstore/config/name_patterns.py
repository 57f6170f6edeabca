"""Match the names of files and folders with patterns, without compiling a pattern for a name that can't match it.

A pattern is a name (`*.pem`), the name of a folder with all below it (`.ssh/`), or a path from the workspace's root,
which has a slash in front or inside (`/conf/app.ini`). `*`, `?` and sets match within one name, upper and lower case
are the same, and the last pattern that matches decides: one with `!` in front is an exception. There is no `**`.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Self

from objstore.fastclass import NamedTuple

__all__ = ["DEFAULT", "NO_PATTERNS", "SECRET_NAMES", "NamePatterns", "escaped", "expanded"]

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
    parts: tuple[_Glob, ...]  # the names of a path from the root; a single one: of a file or folder anywhere
    is_anywhere: bool
    is_folder: bool  # it matches folders only
    is_exception: bool

    @classmethod
    def of(cls, pattern: str) -> Self:
        bare = pattern.removeprefix("!")
        return cls(
            parts=tuple(map(_Glob.of, _path_of(pattern).split("/"))),
            is_anywhere="/" not in bare.removesuffix("/"),
            is_folder=bare.endswith("/"),
            is_exception=bare != pattern,
        )

    def matches(self, path: str, *, is_folder: bool) -> bool:
        if self.is_folder and not is_folder:
            return False
        names = [path.rpartition("/")[2]] if self.is_anywhere else path.split("/")
        return len(names) == len(self.parts) and all(
            glob.matches(name) for glob, name in zip(self.parts, names, strict=True)
        )


def _path_of(pattern: str) -> str:
    """Return the names in a pattern, in lower case, without what says how they are meant."""
    return pattern.removeprefix("!").removeprefix("/").removesuffix("/").lower()


class NamePatterns:
    """A list of patterns, ready to match."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        """Take the patterns. Raises ValueError for one that can't match any name."""
        self.patterns: Final = tuple(patterns)
        self._newest_first: list[_Pattern] | None = None  # None: no name has needed them yet
        # A name that matches is one of these names, or has one of these beginnings or ends. Most names have none.
        names: set[str] = set()
        beginnings: set[str] = set()
        ends: set[str] = set()
        for pattern in self.patterns:
            path = _path_of(pattern)
            if not all(path.split("/")):
                raise ValueError(f"{pattern!r} matches no name")
            if pattern.startswith("!"):
                continue
            name = path.rpartition("/")[2]
            glob = _Glob.of(name)
            if glob.is_literal:
                names.add(name)
            elif glob.beginning:
                beginnings.add(glob.beginning)
            else:
                ends.add(glob.end)
        self._names: Final = frozenset(names)
        self._beginnings: Final = tuple(beginnings)
        self._ends: Final = tuple(ends)

    def __bool__(self) -> bool:
        """Return whether there is any pattern."""
        return bool(self.patterns)

    def match(self, name: str, folder: str = "", *, is_folder: bool = False) -> bool:
        """Return whether the patterns match a name in a folder ("": the workspace's root)."""
        name = name.lower()
        if name not in self._names and not name.startswith(self._beginnings) and not name.endswith(self._ends):
            return False
        if self._newest_first is None:
            self._newest_first = [_Pattern.of(pattern) for pattern in reversed(self.patterns)]
        path = f"{folder.lower()}/{name}" if folder else name
        found = (not each.is_exception for each in self._newest_first if each.matches(path, is_folder=is_folder))
        return next(found, False)

    def match_path(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether the patterns match what is at a path, or one of the folders above it."""
        parts = path.split("/")
        return any(
            self.match(name, "/".join(parts[:at]), is_folder=is_folder or at + 1 < len(parts))
            for at, name in enumerate(parts)
        )


NO_PATTERNS: Final = NamePatterns()


def expanded(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns with the default ones in place of the word `default`."""
    return tuple(each for one in patterns for each in (SECRET_NAMES if one == DEFAULT else (one,)))


def escaped(path: str) -> str:
    """Return the pattern that matches exactly this path from the workspace's root."""
    return "/" + "".join(f"[{letter}]" if letter in _SPECIAL else letter for letter in path)
