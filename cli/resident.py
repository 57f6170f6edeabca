"""The helper that stays: answers a workspace's hooks from a process that has imported everything already.

It does for each event what a hook would do by itself, in the same way and with the same locks; nothing is kept from one
event to the next but the program. One runs for a workspace, as long as events come; it can be killed at any moment.
"""

import gc
import os
import socket
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from typing import Final

from cli.errand import (
    GREETING,
    LONGEST_EVENT,
    LONGEST_PART,
    PARTS,
    SOCKET,
    TAKEN,
    identity,
    is_private,
    packed,
    peer,
    received,
)
from cli.hooking import answer_to, event_of, is_about, log_fault
from objstore import CasError, Configuration

__all__ = ["IDLE", "start", "stay"]

IDLE: Final = 1800.0
"""Seconds without an event after which it ends."""

_LOCK: Final = "hook.lock"
_STORE: Final = ".cas"
_TICK: Final = 10.0
"""Seconds between two looks whether the workspace is still there."""

_PATIENCE: Final = 2.0
"""Seconds that a caller may take to say what it wants: the others wait meanwhile."""

_WAITING: Final = 16
_OURS: Final = ("objstore.", "cli.")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MADE: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class _CallerGone(Exception):
    """Nobody is there to be answered."""


def start(root: str) -> None:
    """Start a helper for the workspace at `root`, as a process of its own that outlives this one. Raises OSError."""
    given = [sys.executable, "-P", "-m", "cli", "-C", root, "hook", "--resident"]
    # The agent waits until nobody has its pipes open any more.
    nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    os.posix_spawn(sys.executable, given, os.environ, file_actions=nothing, setsid=True)


def stay(root: str, *, idle: float = IDLE) -> bool:
    """Answer the workspace's hooks until none comes for `idle` seconds; return False if another helper does already.

    Raises OSError, and PermissionError for a store that others may get at.
    """
    store = os.open(os.path.join(root, _STORE), _FOLDER)  # noqa: PTH118 - names beside an open folder
    try:
        if not is_private(os.fstat(store)):
            raise PermissionError(f"{os.path.join(root, _STORE)} is not this user's alone")  # noqa: PTH118 - as above
        lock = os.open(_LOCK, _MADE, 0o600, dir_fd=store)
        try:
            try:
                flock(lock, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                return False
            with _listening(store) as (door, mark):
                _serve(root, store, door, mark, idle)
        finally:
            os.close(lock)
    finally:
        os.close(store)
    return True


@contextmanager
def _listening(store: int) -> Iterator[tuple[socket.socket, int]]:
    """Make the socket in the open folder; give it, and the number of its inode."""
    os.fchdir(store)
    before = os.umask(0o177)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        try:
            # Who holds the lock is the only one: what lies here is left of one that was killed.
            with suppress(FileNotFoundError):
                os.unlink(SOCKET, dir_fd=store)
            door.bind(SOCKET)
        finally:
            os.umask(before)
            os.chdir("/")
        door.listen(_WAITING)
        mark = os.stat(SOCKET, dir_fd=store, follow_symlinks=False).st_ino
        try:
            yield door, mark
        finally:
            if _is_there(store, mark):
                os.unlink(SOCKET, dir_fd=store)


def _is_there(store: int, mark: int) -> bool:
    try:
        found = os.stat(SOCKET, dir_fd=store, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_ino == mark


def _serve(root: str, store: int, door: socket.socket, mark: int, idle: float) -> None:
    own, began = identity(), time.time_ns()
    gc.freeze()  # the program itself need never be looked through
    until = time.monotonic() + idle
    was_wished = False
    while (left := until - time.monotonic()) > 0 and _is_there(store, mark) and _is_store_of(root, store):
        is_wished = _is_wished(root, before=was_wished)
        if was_wished and not is_wished:
            return  # a person may have started one that no setting wishes for
        was_wished = is_wished
        door.settimeout(min(left, _TICK))
        try:
            line, _ = door.accept()
        except TimeoutError:
            continue
        # A caller that is gone needs no answer.
        with line, suppress(OSError):
            if _is_outdated(began) or not _attend(root, line, own):
                return
        # As many objects as a command may make before it is cleared up would be 20 MB here, event after event.
        gc.collect()
        until = time.monotonic() + idle


def _is_wished(root: str, *, before: bool) -> bool:
    """Return whether hooks are to start a helper (`before`: whether they were, for when that can't be read)."""
    try:
        return Configuration(root).get("hook.resident").value is True
    except CasError:
        return before


def _is_store_of(root: str, store: int) -> bool:
    try:
        return os.path.samestat(os.stat(os.path.join(root, _STORE), follow_symlinks=False), os.fstat(store))  # noqa: PTH116, PTH118 - as above
    except OSError:
        return False


def _is_outdated(since: int) -> bool:
    """Return whether a file of the program that is in memory was written since (ns), or is gone."""
    files = [getattr(module, "__file__", None) for name, module in sys.modules.items() if name.startswith(_OURS)]
    try:
        return any(os.stat(file).st_mtime_ns >= since for file in files if file)  # noqa: PTH116 - as above
    except OSError:
        return True


def _attend(root: str, line: socket.socket, own: bytes) -> bool:
    """Do what one caller wants; return False if it is another program than this one, which has to go then."""
    line.settimeout(_PATIENCE)
    if peer(line)[1] != os.geteuid():
        return True
    parts = []
    for at in range(PARTS):
        part = received(line, LONGEST_EVENT if at == PARTS - 1 else LONGEST_PART)
        if part is None:
            return True
        parts.append(part)
    greeting, theirs, client, folder, home, given = parts
    if (greeting, theirs) != (GREETING, own):
        return False
    arguments = [client.decode("utf-8", "replace")]
    try:
        event = event_of(arguments, given, os.fsdecode(folder), os.fsdecode(home))
        if not is_about(event, root):
            return True
    except Exception:  # noqa: BLE001 - the caller finds the same fault, and logs it
        return True
    line.sendall(TAKEN)
    told: list[bytes] = []

    def say(answer: bytes) -> None:
        told.append(answer)
        try:
            line.sendall(packed(answer))
        except OSError as error:
            raise _CallerGone from error

    try:
        # What is tidied up after that, nobody waits for.
        answer_to(arguments, event, say)
    except _CallerGone:
        return True  # the work is done, and what could not be said is said at the next event
    except Exception as error:  # noqa: BLE001 - as in a hook: an agent must go on, whatever fails here
        log_fault(event.place, arguments, error)
    if not told:
        with suppress(_CallerGone):
            say(b"")
    return True
