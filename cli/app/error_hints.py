"""Say what the user can do about an error: links, refused access to a file, and damage of the store."""

import os
import stat
from pathlib import Path
from pwd import getpwuid
from typing import TYPE_CHECKING

from cli.screen.quoting import typed

if TYPE_CHECKING:
    from objstore import PathIsSymlink, PermissionRefused

__all__ = ["damage_advice", "message_of", "message_with_advice", "permission_advice", "symlink_advice"]


def message_of(error: Exception) -> str:
    """Return the message of an error for a user. For a link, the store's own message has the words of the contracts."""
    from objstore import PathIsSymlink

    if isinstance(error, PathIsSymlink):
        return f"{error.path} is now a symbolic link that no edit recorded; links are never changed."
    return str(error)


def damage_advice(error: Exception, program: str = "cas") -> str:
    """Return how to examine the damage that an error reports; "" if it reports none."""
    from objstore import DAMAGE, SnapshotUnreadable

    if not isinstance(error, (*DAMAGE, SnapshotUnreadable)):
        return ""
    return f"Run `{program} fsck` to see what is damaged and which files that affects."


def message_with_advice(error: Exception) -> str:
    """Return the message of an error for a user; if the error reports damage, with how to examine it."""
    message, advice = message_of(error), damage_advice(error)
    return f"{message.rstrip('.')}. {advice}" if advice else message


def symlink_advice(error: "PathIsSymlink") -> str:
    """Return what to do about a link."""
    return f"Remove the link and run the command again, or leave out the edits of {error.path}."


def permission_advice(error: "PermissionRefused", start: str) -> str:
    """Return a sentence about the owner or mode of a file and how to get access; "" if that can't be determined.

    `start`: the folder at or above which the workspace is. Raises OSError.
    """
    place = _place(error.path, start)
    if not place.is_dir() and os.access(place, os.R_OK | os.W_OK):
        # A file is written next to its path and then moved there: the folder is what refuses.
        place = place.parent
    found, shown = place.stat(), typed(str(place))
    is_folder = stat.S_ISDIR(found.st_mode)
    if os.access(place, os.R_OK | os.W_OK | (os.X_OK if is_folder else 0)):
        return ""
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"{shown} is on a read-only filesystem."
    if found.st_uid != os.geteuid():
        owner = _user(found.st_uid)
        return f"{shown} belongs to {owner}: run cas as {owner}, or ask for the right to write there."
    return f"{shown} has the mode {stat.S_IMODE(found.st_mode):04o}. To use it: chmod u+rw{'x' * is_folder} {shown}"


def _place(path: str, start: str) -> Path:
    """Return the path that was refused if it exists, or else the nearest folder above it."""
    from objstore import CasError, find_root

    try:
        root = find_root(start)
    except CasError:
        root = start
    place = Path(root, path)
    while place != place.parent and not os.path.lexists(place):
        place = place.parent
    return place


def _user(number: int) -> str:
    try:
        return getpwuid(number).pw_name
    except KeyError:
        return str(number)
