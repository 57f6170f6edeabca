"""A probe of the helper that stays: whether one is there, may be asked, answers, and is this program.

It asks as a hook does, and so is as careful: what may be somebody else's is looked at and not spoken to. CAS_ variables
are not heeded, for which a hook goes without the helper: here they are those of the person who looks.
"""

import json
import os
import socket
import stat
import time
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final

from cli.errand import (
    GREETING,
    LONGEST_EVENT,
    SOCKET,
    TAKEN,
    connect_inside,
    identity,
    is_private,
    packed,
    peer,
    received,
)

__all__ = ["Helper", "Standing", "probe"]

_PATIENCE: Final = 5.0
"""Seconds for its word, and again for its answer: it may be busy with an event."""

_TICK: Final = 0.02
_STORE: Final = ".cas"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CLIENT: Final = b"claude-code"
"""Any will do: the event is one with which there is nothing to do."""


class Standing(Enum):
    """How it stands with the helper of a workspace."""

    ABSENT = auto()
    EXPOSED = auto()  # others may get at the store's folder
    NO_SOCKET = auto()  # something else has the socket's name
    NOT_OURS = auto()  # the socket is another user's, or open to others
    DEAD = auto()  # nobody listens at the socket
    STRANGER = auto()  # the process that listens is another user's
    SILENT = auto()
    ANOTHER = auto()  # another program, or one for another home: it goes when it is asked
    ANSWERS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Helper:
    """What was found of a helper."""

    standing: Standing
    process: int = 0  # that listens; 0: none, or none that was asked
    user: int = -1  # whose the folder, the socket or the process is; -1: this user's
    mode: int = 0  # permission bits of the folder or the socket, where they are what is wrong


def probe(root: Path) -> Helper:
    """Return how it stands with the helper of the workspace at `root`. Raises OSError."""
    store = os.open(root / _STORE, _FOLDER)
    try:
        return _looked_at(root, store)
    finally:
        os.close(store)


def _looked_at(root: Path, store: int) -> Helper:
    folder = os.fstat(store)
    if not is_private(folder):
        return Helper(standing=Standing.EXPOSED, user=folder.st_uid, mode=stat.S_IMODE(folder.st_mode))
    try:
        found = os.stat(SOCKET, dir_fd=store, follow_symlinks=False)
    except FileNotFoundError:
        return Helper(standing=Standing.ABSENT)
    if not stat.S_ISSOCK(found.st_mode):
        return Helper(standing=Standing.NO_SOCKET, user=found.st_uid)
    if not is_private(found):
        return Helper(standing=Standing.NOT_OURS, user=found.st_uid, mode=stat.S_IMODE(found.st_mode))
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(_PATIENCE)
        try:
            connect_inside(line, store)
        except (ConnectionRefusedError, FileNotFoundError):
            return Helper(standing=Standing.DEAD)
        except TimeoutError:
            return Helper(standing=Standing.SILENT)
        process, user = peer(line)
        if user != os.geteuid():
            return Helper(standing=Standing.STRANGER, process=process, user=user)
        return Helper(standing=_asked(root, store, line), process=process)


def _asked(root: Path, store: int, line: socket.socket) -> Standing:
    """Hand over an event with which there is nothing to do, and return what came of it."""
    event = json.dumps({"hook_event_name": "Doctor", "session_id": "doctor"}).encode()
    try:
        line.sendall(packed(GREETING, identity(), _CLIENT, os.fsencode(root), b"", event))
        word = line.recv(1)
        if word == TAKEN and received(line, LONGEST_EVENT) is not None:
            return Standing.ANSWERS
    except TimeoutError:
        return Standing.SILENT
    except OSError:  # it hung up before it had read all
        word = b""
    return Standing.ANOTHER if not word and _is_gone(store) else Standing.SILENT


def _is_gone(store: int) -> bool:
    """Return whether the socket goes, as that of a helper does that has met another program."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            os.stat(SOCKET, dir_fd=store, follow_symlinks=False)
        except FileNotFoundError:
            return True
        time.sleep(_TICK)
    return False
