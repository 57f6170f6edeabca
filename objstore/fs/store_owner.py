"""Refuse to open a store that belongs to another user, and name the user who runs this program.

A store has settings, and determines what is done to the files next to it. In a shared folder, one user's store would
decide that for everyone who works at or below it. So, as git does, editledger opens another user's store only where the
user has allowed it: by the variable CAS_SAFE_DIRECTORY, or by a line in the user's own list. A store can't allow
itself.
"""

import os
from contextlib import suppress

from objstore.errors import StoreNotOwned
from objstore.fs.reserved_names import STORE_NAME

__all__ = [
    "SAFE_DIRECTORIES",
    "SETTINGS_FILE",
    "refuse_others_store",
    "user_name",
    "user_settings_path",
    "user_state_folder",
]

SETTINGS_FILE = "config.toml"
"""The name of a settings file, the user's or a store's."""

SAFE_DIRECTORIES = "safe-directories"
"""The name of the list next to the user's settings: one folder on each line, or `*` for all."""

_VARIABLE = "CAS_SAFE_DIRECTORY"
"""The environment variable with a list of folders, separated as in PATH, or `*`."""


def refuse_others_store(root: str) -> None:
    """Raise StoreNotOwned unless the store in `root` is this user's, or is allowed. A missing store is accepted."""
    try:
        owner = os.lstat(os.path.join(root, STORE_NAME)).st_uid
    except OSError:
        return  # opening the store reports what is wrong
    if owner == os.geteuid() or (os.geteuid() == 0 and os.environ.get("SUDO_UID", "") == str(owner)):
        return
    real = os.path.realpath(root)
    if not any(safe == "*" or os.path.realpath(safe) == real for safe in _allowed()):
        raise StoreNotOwned(real, owner, _list_path())


def user_name() -> str:
    """Return the name of the user who runs this program, as records of a person's decisions have it."""
    return os.environ.get("LOGNAME") or os.environ.get("USER") or f"uid {os.getuid()}"


def user_settings_path() -> str:
    """Return the path of the user's own settings."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG base directory specification says to ignore relative paths.
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "editledger", SETTINGS_FILE)


def user_state_folder() -> str:
    """Return the user's folder for what programs keep from one run to the next."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # as above
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "editledger")


def _allowed() -> list[str]:
    allowed = os.environ.get(_VARIABLE, "").split(os.pathsep)
    with suppress(OSError), open(_list_path(), encoding="utf-8", errors="surrogateescape") as lines:
        allowed += [line.rstrip("\n") for line in lines]
    return [safe for safe in allowed if safe == "*" or os.path.isabs(safe)]


def _list_path() -> str:
    return os.path.join(os.path.dirname(user_settings_path()), SAFE_DIRECTORIES)
