"""Say what the user can do about an error: links, refused access to a file, and damage of the store."""

import errno
import fcntl
import os
import stat
import struct
import sys
from pathlib import Path
from pwd import getpwuid
from typing import TYPE_CHECKING, Final

from cli.screen.quoting import typed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from objstore import Fault, Note, PathIsSymlink, PathOutside, PermissionRefused

__all__ = [
    "damage_advice",
    "fault_meaning",
    "message_of",
    "message_with_advice",
    "note_text",
    "outside_advice",
    "permission_advice",
    "symlink_advice",
    "user_named",
]

_NAMED: Final = 5
"""Hunks that are named in a command."""

_SNAPSHOTS: Final = 20
"""Snapshots that are named in a command."""

_GET_ATTRIBUTES: Final = 2 << 30 | struct.calcsize("l") << 16 | ord("f") << 8 | 1
"""FS_IOC_GETFLAGS: the request for a file's attributes on Linux."""

_ATTRIBUTES: Final = ((0x10, "i", "immutable"), (0x20, "a", "append-only"))
"""FS_IMMUTABLE_FL and FS_APPEND_FL, which refuse changes to every user, and their letters for chattr."""


def message_of(error: Exception) -> str:
    """Return the message of an error for a user, with the command that helps, if there is one.

    For a link, the store's own message has the words of the contracts.
    """
    from objstore import PathIsSymlink

    if isinstance(error, PathIsSymlink):
        return f"{error.path} is now a symbolic link that no edit recorded; links are not followed."
    hint = _command_for(error)
    return f"{error} {hint}" if hint else str(error)


def _command_for(error: Exception) -> str:
    """Return the sentence with the command that helps; "": none does. The core names no command."""
    import objstore as core

    hint = ""
    match error:
        case core.NotAWorkspace(is_folder=True):
            hint = "Run `cas init` in the folder that you want recorded."
        case core.BlobTooLarge():
            hint = "Use `cas cat`."
        case core.AgentDecides():
            hint = "`cas config` shows this setting."
        case core.EditTakenOut():
            hint = _rejection_of(error.units, is_recorded=error.is_recorded)
        case core.FileMayBeOlder():
            hint = f"To accept it:  `cas accept {' '.join(map(str, error.seqs))}`."
        case core.NoSuchSetting(near=""):
            hint = "`cas config` lists all settings."
        case core.SnapshotUnreadable():
            hint = f"Delete it with `cas snapshot delete {error.number}`."
        case core.PurgeRefused() if error.changed_outside:
            hint = "`cas record` records what changed."
        case _:
            hint = _store_command_for(error) or _remote_command_for(error)
    return hint


def _store_command_for(error: Exception) -> str:
    """Return the sentence with the command that helps with a store or a bundle; "": none does."""
    import objstore as core

    match error:
        case core.IndexDamaged():
            return "Rebuild it with `cas fsck --repair`."
        case core.FormatTooOld(is_bundle=True):
            return "Run `cas store convert` where the bundle was made, and export it again."
        case core.FormatTooOld():
            return "Run `cas store convert`."
        case core.NotBundled():
            them = "them" if len(error.lost) > 1 else "it"
            return (
                f"`cas fsck` names what refers to {them}. Then remove that: `cas purge PATH@N` for the state after "
                "edit N, `cas snapshot delete N` for a snapshot."
            )
        case core.BundleRefused(concerns_files=True):
            return "To import only the store, without files, pass --store-only."
        case _:
            return ""


def _remote_command_for(error: Exception) -> str:
    """Return the sentence with the command that helps with a remote; "": none does."""
    import objstore as core

    match error:
        case core.RemoteUnknown(known=()):
            return "Add one with `cas remote add NAME URL`."
        case core.RemoteRolledBack():
            return "If you know why, `cas push --again` sends this store again."
        case core.RemoteDiverged():
            return "`cas push --new-lane` shares what is here next to it; `cas clone` gets what is there."
        case core.RemoteDecided(is_carried=True):
            return "`cas pull` shows it."
        case _:
            return ""


def _rejection_of(units: "Sequence[str]", *, is_recorded: bool) -> str:
    """Return how to reject hunks that can't be accepted."""
    it = "it" if len(units) == 1 else "them"
    answer = "" if is_recorded else " --my-changes keep"
    more = len(units) - _NAMED
    rest = f" ({more} more: `cas diff` names them)" if more > 0 else ""
    return f"To reject {it}, run `cas reject {' '.join(units[:_NAMED])}{answer}`{rest}."


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


def fault_meaning(fault: "Fault") -> str:
    """Return what a fault of the store means, with the command that helps."""
    from objstore import Advice

    hint = ""
    match fault.advice:
        case Advice.REPAIR:
            hint = "`cas fsck --repair` rebuilds what is wrong."
        case Advice.SALVAGE:
            hint = "Run `cas salvage` to make a new store from the rest."
        case Advice.ACCEPT_ID:
            hint = "`cas salvage --store-id` accepts it."
        case Advice.NEW_STORE:
            hint = "Put them back, or move .cas away (mv) and run `cas init` to make a new store."
    if ways := "; ".join(_ways_for_snapshots(fault)):
        first = "once `cas salvage` has made a new store from the rest, "
        ways = f"{first if fault.advice is Advice.SALVAGE else ''}{ways}."
        hint = ways[:1].upper() + ways[1:]
    return f"{fault.meaning} {hint}".rstrip()


def _ways_for_snapshots(fault: "Fault") -> "Iterator[str]":
    if fault.snapshots:
        more = len(fault.snapshots) - _SNAPSHOTS
        named = " ".join(map(str, fault.snapshots[:_SNAPSHOTS]))
        rest = f" (and {more} more)" if more > 0 else ""
        yield f"`cas snapshot delete {named}`{rest} deletes {'it' if len(fault.snapshots) == 1 else 'them'}"
    if fault.baseline:
        yield f"snapshot {fault.baseline} is the baseline, which the next `cas record` replaces"


def note_text(note: "Note") -> str:
    """Return what is worth knowing about the store, with the command that shows more."""
    from objstore import Advice

    hint = ""
    match note.advice:
        case Advice.SALVAGE:
            hint = "`cas salvage` gets its content."
        case Advice.SEE_CHANGES:
            hint = "See `cas diff --unrecorded`."
    return f"{note.what} {hint}".rstrip()


def symlink_advice(error: "PathIsSymlink") -> str:
    """Return what to do about a link."""
    return f"`cas record` records the link, or remove it, and run the command again; or leave out {error.path}."


def outside_advice(error: "PathOutside", start: str) -> str:
    """Return which folder of a path is a link that leads outside, and what to do; "": none is. `start`: as below."""
    place = _place(error.path, start)
    root = _place("", start)
    if not place.is_relative_to(root):
        return ""
    linked = next(
        (folder for folder in [*reversed(place.parents), place] if root in folder.parents and folder.is_symlink()), None
    )
    if linked is None:
        return ""
    return f"{linked.relative_to(root)} is a link that leads outside. Move the link away and run the command again."


def permission_advice(error: "PermissionRefused", start: str) -> str:
    """Return a sentence about the owner or mode of a file and how to get access; "" if that can't be determined.

    `start`: the folder at or above which the workspace is. Raises OSError.
    """
    place = _place(error.path, start)
    if marked := _mark(place):
        return marked
    by_sudo = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and by_sudo.isdecimal():
        return _advice_by_sudo(place, int(by_sudo))
    if not place.is_dir() and os.access(place, os.R_OK | os.W_OK):
        # A file is written next to its path and then moved there: the folder is what refuses.
        place = place.parent
        if marked := _mark(place):
            return marked
    found, shown = place.stat(), typed(str(place))
    is_folder = stat.S_ISDIR(found.st_mode)
    if os.access(place, os.R_OK | os.W_OK | (os.X_OK if is_folder else 0)):
        return ""
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"{shown} is on a read-only filesystem."
    if _is_frozen(place, is_folder=is_folder):
        return f"{shown} is in a read-only snapshot or volume. Work in a writable copy of it."
    return _owner_advice(found, shown, is_folder=is_folder, owner=_root(start).stat().st_uid)


def _owner_advice(found: os.stat_result, shown: str, *, is_folder: bool, owner: int) -> str:
    """Return who may use what was refused, or how its mode is changed. `owner`: of the workspace's folder."""
    user = os.geteuid()
    if found.st_uid != user and owner == user != 0:
        # Another user, such as root under sudo, made it in this user's folder: that user would make more such files.
        return f"{shown} belongs to {user_named(found.st_uid)}. To use it: sudo chown {user_named(user)} {shown}"
    if found.st_uid != user:
        # Where even root is refused, as by a network filesystem, only the file's own owner can help.
        name = user_named(owner if user else found.st_uid)
        return f"{shown} belongs to {user_named(found.st_uid)}: run cas as {name}, or ask for the right to write there."
    return f"{shown} has the mode {stat.S_IMODE(found.st_mode):04o}. To use it: chmod u+rw{'x' * is_folder} {shown}"


def _mark(place: Path) -> str:
    """Return how to remove the mark by which a filesystem refuses changes of `place` to every user; "": it has none."""
    if place.is_symlink() or not (place.is_dir() or place.is_file()):
        return ""
    shown = typed(str(place))
    if getattr(place.stat(), "st_flags", 0) & (stat.UF_IMMUTABLE | stat.SF_IMMUTABLE):  # BSD and macOS
        return f"{shown} is locked. To change it, as its owner or root: chflags nouchg,noschg {shown}"
    if sys.platform != "linux":
        return ""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        attributes = struct.unpack("l", fcntl.ioctl(descriptor, _GET_ATTRIBUTES, bytes(struct.calcsize("l"))))[0]
    except OSError:  # another filesystem has no attributes, or they can't be read
        return ""
    finally:
        os.close(descriptor)
    for bit, letter, word in _ATTRIBUTES:
        if attributes & bit:
            return f"{shown} is marked {word}. To change it, as root: chattr -{letter} {shown}"
    return ""


def _is_frozen(place: Path, *, is_folder: bool) -> bool:
    """Return whether writing there is refused for the volume, as in a snapshot, whatever the mode and owner are."""
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | (getattr(os, "O_TMPFILE", 0) if is_folder else 0)
    try:
        os.close(os.open(place, flags, 0o600))
    except OSError as error:
        return error.errno == errno.EROFS
    return False


def _root(start: str) -> Path:
    """Return the folder of the workspace, or `start` if it is in none."""
    from objstore import CasError, find_root

    try:
        return Path(find_root(start))
    except CasError:
        return Path(start)


def _advice_by_sudo(place: Path, user: int) -> str:
    """Return how the user who ran `sudo` gets access, because root does only what this user may; "" if unknown."""
    for refusing in (place, place.parent):
        owner, shown = refusing.stat().st_uid, typed(str(refusing))
        if owner != user:
            whose = (
                f"{shown} belongs to {user_named(owner)}. By sudo, cas does only what {user_named(user)} may do there."
            )
            return f"{whose} To use it: sudo chown {user_named(user)} {shown}"
    return ""


def _place(path: str, start: str) -> Path:
    """Return the path that was refused if it exists, or else the nearest folder above it."""
    place = Path(_root(start), path)
    while place != place.parent and not os.path.lexists(place):
        place = place.parent
    return place


def user_named(number: int) -> str:
    """Return the name of a user, or its number if it has none."""
    try:
        return getpwuid(number).pw_name
    except KeyError:
        return str(number)
