"""Ownership: whose store is opened.

A store has settings, and says what is done to files beside it. One that somebody else put at or above a folder, as in a
shared one, would decide that for whoever works there. So, as git does, a store of another user is opened only where
that was allowed: by the variable CAS_SAFE_DIRECTORY, or by a line in the user's own list. A store can't allow itself.
"""

import os
from contextlib import suppress

from objstore.errors import StoreNotOwned
from objstore.fs.reserved_names import STORE_NAME

__all__ = ["SAFE_DIRECTORIES", "SETTINGS_FILE", "refuse_others_store", "user_settings_path"]

SETTINGS_FILE = "config.toml"
"""The name of a file of settings, the user's or a store's."""

SAFE_DIRECTORIES = "safe-directories"
"""The name of the list, beside the user's settings: a folder on each line, or `*` for all."""

_VARIABLE = "CAS_SAFE_DIRECTORY"
"""Folders as in PATH, or `*`."""


def refuse_others_store(root: str) -> None:
    """Raise StoreNotOwned unless the store in `root` is this user's, or was allowed. No store is no fault."""
    try:
        owner = os.lstat(os.path.join(root, STORE_NAME)).st_uid
    except OSError:
        return  # whoever opens it says what is wrong
    if owner == os.geteuid() or (os.geteuid() == 0 and os.environ.get("SUDO_UID", "") == str(owner)):
        return
    real = os.path.realpath(root)
    if not any(safe == "*" or os.path.realpath(safe) == real for safe in _allowed()):
        raise StoreNotOwned(real, owner, _list())


def user_settings_path() -> str:
    """Return the path of the user's own settings."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    # What is not absolute does not count, as the XDG base directory specification has it.
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "editledger", SETTINGS_FILE)


def _allowed() -> list[str]:
    allowed = os.environ.get(_VARIABLE, "").split(os.pathsep)
    with suppress(OSError), open(_list(), encoding="utf-8", errors="surrogateescape") as lines:
        allowed += [line.rstrip("\n") for line in lines]
    return [safe for safe in allowed if safe == "*" or os.path.isabs(safe)]


def _list() -> str:
    return os.path.join(os.path.dirname(user_settings_path()), SAFE_DIRECTORIES)
