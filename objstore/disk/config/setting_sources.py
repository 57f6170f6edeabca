"""Locate settings (files, environment variables), and define the retention limits that they set.

`cas status` needs no more than this if nothing is set, so it doesn't wait for `settings`.
"""

import os

from objstore.disk.fs.reserved_names import STORE_NAME
from objstore.disk.fs.store_owner import SETTINGS_FILE, user_settings_path
from objstore.values.fastclass import NamedTuple

__all__ = ["RetentionLimits", "is_anything_set", "is_file_written", "settings_files", "variable_of"]


class RetentionLimits(NamedTuple):
    """The age and the size beyond which history expires."""

    older_than: int | None = None  # seconds; None: nothing expires because of its age
    max_size: int | None = 2_000_000_000  # bytes of all segments; None: nothing expires because of the size


def settings_files(root: str | None) -> tuple[str, ...]:
    """Return the paths of the settings files for the workspace at `root` (None: for none), in order of precedence."""
    own = user_settings_path()
    return (own,) if root is None else (os.path.join(root, STORE_NAME, SETTINGS_FILE), own)


def variable_of(name: str) -> str:
    """Return the name of the environment variable of a setting."""
    return "CAS_" + name.replace(".", "_").upper()


def is_file_written(root: str) -> bool:
    """Return whether a settings file exists for the workspace at `root`, even if it can't be read."""
    return any(map(os.path.lexists, settings_files(root)))


def is_anything_set(root: str) -> bool:
    """Return whether a settings file exists or a variable sets a retention limit; `root` is the workspace."""
    return is_file_written(root) or any(name.startswith("CAS_RETENTION_") for name in os.environ)
