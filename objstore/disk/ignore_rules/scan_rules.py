"""Decide which names scans leave out by the settings: names that look like secrets, and excluded names."""

import os
from functools import cache, lru_cache
from typing import Final

from objstore.disk.config.path_patterns import NO_PATTERNS, SECRET_NAMES, PathPatterns, expanded
from objstore.disk.config.setting_sources import settings_files, variable_of
from objstore.disk.fs.stat_signature import StatSignature, read_signature_fields
from objstore.model.ids import blob_id
from objstore.values.fastclass import value

__all__ = ["ScanRules", "rules_of_workspace"]

_SETTINGS: Final = ("record.ignored", "record.secrets", "record.exclude")
_VARIABLES: Final = tuple(map(variable_of, _SETTINGS))


@value
class ScanRules:
    """The settings about names that scans leave out."""

    uses_git: bool = False  # whether to leave out what git ignores
    secrets: PathPatterns = NO_PATTERNS  # of names that usually hold secrets
    excluded: PathPatterns = NO_PATTERNS  # of other names

    @property
    def fingerprint(self) -> bytes:
        """The same if and only if the rules are."""
        found = (self.uses_git, self.secrets.patterns, self.excluded.patterns)
        return blob_id(repr(found).encode("utf-8", "surrogateescape"))

    def is_never_taken(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether what is at a path looks like a secret or is excluded, or a folder above it."""
        return any(each.leaves_out_path(path, is_folder=is_folder) for each in (self.secrets, self.excluded))


def rules_of_workspace(root: str) -> ScanRules:
    """Return what the settings of the workspace at `root` say. Raises SettingInvalid, SettingsUnreadable."""
    files = tuple((path, found) for path in settings_files(root) if (found := _signature(path)) is not None)
    return _rules(root, files, tuple(map(os.environ.get, _VARIABLES)))


@lru_cache(maxsize=8)
def _rules(root: str, files: tuple[tuple[str, StatSignature], ...], values: tuple[str | None, ...]) -> ScanRules:
    """Return the rules for the settings files that exist, with their stat signatures, and values of variables.

    Every tracked call asks for them, and reading the files takes as long as half a call.
    """
    if not files and not any(values):
        return ScanRules(uses_git=True, secrets=_default_secrets())
    from objstore.disk.config.config_files import Configuration

    given = Configuration(root).several(*_SETTINGS)
    ignored, secrets, excluded = (each.value for each in given)
    return ScanRules(
        uses_git=ignored is False,
        secrets=PathPatterns(expanded(secrets) if isinstance(secrets, tuple) else ()),
        excluded=PathPatterns(excluded if isinstance(excluded, tuple) else ()),
    )


@cache
def _default_secrets() -> PathPatterns:
    return PathPatterns(SECRET_NAMES)


def _signature(path: str) -> StatSignature | None:
    try:
        return StatSignature._make(read_signature_fields(os.stat(path)))
    except OSError:
        return None
