"""Limits: what a store is kept within, and whether anybody has set anything.

Apart from the settings themselves, because a status needs the limits, and where nothing is set, no more than these.
"""

import os

from objstore.names import STORE_NAME
from objstore.ownership import SETTINGS_FILE, own_settings
from objstore.values import NamedTuple

__all__ = ["RetentionLimits", "is_anything_set", "settings_files"]


class RetentionLimits(NamedTuple):
    """What a store is to be kept within."""

    older_than: int | None = None  # seconds; None: nothing goes by its age
    max_size: int | None = 2_000_000_000  # bytes of all segments; None: nothing goes by its size


def settings_files(root: str | None) -> tuple[str, ...]:
    """Return the paths that settings of the workspace at `root` (None: of none) may be at, the first to count first."""
    own = own_settings()
    return (own,) if root is None else (os.path.join(root, STORE_NAME, SETTINGS_FILE), own)


def is_anything_set(root: str) -> bool:
    """Return whether there is a file or a variable that may say something of the limits of the workspace at `root`."""
    is_written = any(map(os.path.lexists, settings_files(root)))
    return is_written or any(name.startswith("CAS_RETENTION_") for name in os.environ)
