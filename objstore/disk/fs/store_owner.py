"""Refuse to open a store that belongs to another user, and name the user who runs this program.

A store has settings, and determines what is done to the files next to it. In a shared folder, one user's store would
decide that for everyone who works at or below it. So, as git does, editledger opens another user's store only where the
user has allowed it: by the variable CAS_SAFE_DIRECTORY, or by a line in the user's own list. A store can't allow
itself.
"""

import os
import pwd
import stat
from contextlib import suppress
from functools import cache

from objstore.disk.fs.reserved_names import STORE_NAME
from objstore.values.errors import PermissionRefused, StoreNotOwned

__all__ = [
    "SAFE_DIRECTORIES",
    "SETTINGS_FILE",
    "may",
    "owner_by_sudo",
    "owner_of_new",
    "refuse_others_store",
    "require",
    "user_by_sudo",
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
    if owner == os.geteuid() or _is_user_of_sudo(owner):
        return
    real = os.path.realpath(root)
    if not any(safe == "*" or os.path.realpath(safe) == real for safe in _allowed()):
        raise StoreNotOwned(real, owner, _list_path())


def user_by_sudo(root: str) -> os.stat_result | None:
    """Return the status of the store in `root` if root uses it for its owner, who ran `sudo`; else None.

    Root then does nothing to files that this user couldn't do: `may` and `require` answer that.
    """
    try:
        found = os.lstat(os.path.join(root, STORE_NAME))
    except OSError:
        return None
    return found if _is_user_of_sudo(found.st_uid) else None


def owner_by_sudo(root: str) -> os.stat_result | None:
    """Return the status of the folder `root` if it belongs to the user who ran `sudo`; else None."""
    found = os.stat(root)
    return found if _is_user_of_sudo(found.st_uid) else None


def owner_of_new(folder: int, user: os.stat_result | None) -> os.stat_result | None:
    """Return the status of what has the owner and the group that a new name in an open folder gets; None: this process.

    What root makes belongs to the owner of the folder; for a `user`, to the user, with the group that the user's own
    files get. With the folder's setgid bit, the group is the folder's for everyone: a file gets it from the system only
    where it is created, and files are staged.
    """
    found = os.fstat(folder)
    is_setgid = bool(found.st_mode & stat.S_ISGID)
    if os.geteuid() != 0:
        return found if is_setgid else None
    if user is None:
        return found
    group = found.st_gid if is_setgid else _own_group_of(user)
    return os.stat_result((*user[:4], user.st_uid, group, *user[6:10]))


def may(user: os.stat_result | None, found: os.stat_result, wanted: int) -> bool:
    """Return whether the user for whom root acts (None: root acts for itself) may use a file or folder so.

    `wanted`: the sum of os.R_OK, os.W_OK and os.X_OK.
    """
    if user is None:
        return True
    if found.st_uid == user.st_uid:
        bits = found.st_mode >> 6
    elif found.st_gid in _groups_of(user.st_uid):
        bits = found.st_mode >> 3
    else:
        bits = found.st_mode
    return bits & wanted == wanted


def require(user: os.stat_result | None, found: os.stat_result, wanted: int, path: str) -> None:
    """Raise PermissionRefused unless the user for whom root acts may use a file or folder so, as `may`."""
    if not may(user, found, wanted):
        raise PermissionRefused(path)


def user_name() -> str:
    """Return the name of the user who runs this program, as records of a person's decisions have it."""
    named = os.environ.get("LOGNAME") or os.environ.get("USER")
    if named:
        return named
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


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


def _is_user_of_sudo(uid: int) -> bool:
    """Return whether root runs this program for the user `uid`, who ran `sudo`."""
    return uid != 0 and os.geteuid() == 0 and os.environ.get("SUDO_UID", "") == str(uid)


def _own_group_of(user: os.stat_result) -> int:
    """Return the group of the files that a user creates; that of the user's store, if the user has no entry."""
    try:
        return pwd.getpwuid(user.st_uid).pw_gid
    except KeyError:
        return user.st_gid


@cache
def _groups_of(uid: int) -> frozenset[int]:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return frozenset()
    return frozenset(os.getgrouplist(entry.pw_name, entry.pw_gid))


def _allowed() -> list[str]:
    allowed = os.environ.get(_VARIABLE, "").split(os.pathsep)
    with suppress(OSError), open(_list_path(), encoding="utf-8", errors="surrogateescape") as lines:
        allowed += [line.rstrip("\n") for line in lines]
    return [safe for safe in allowed if safe == "*" or os.path.isabs(safe)]


def _list_path() -> str:
    return os.path.join(os.path.dirname(user_settings_path()), SAFE_DIRECTORIES)
