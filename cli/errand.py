"""An errand: a hook's event, handed to the helper that stays in the workspace, if there is one.

An agent waits for this, so next to nothing is imported. Nothing depends on the helper: whatever is not as it should be,
here or there, nobody was asked, and the caller does the work itself. A second time does no harm.

On the wire each part is its length, 8 bytes little-endian, and its bytes. The caller sends PARTS of them; the helper
says TAKEN, or hangs up because it can't serve this caller; later it sends one part, what is to be printed, and closes.
"""

from __future__ import annotations

import _socket  # `socket` itself takes 10 ms to import
import os
import stat
import sys

TYPE_CHECKING = False  # as type checkers know it: `typing` takes longer to import than all else here
if TYPE_CHECKING:
    from typing import Final

__all__ = [
    "GREETING",
    "LONGEST_EVENT",
    "LONGEST_PART",
    "PARTS",
    "PROJECT",
    "SOCKET",
    "TAKEN",
    "asked",
    "connect_inside",
]
__all__ += ["identity", "is_private", "own_settings", "packed", "peer", "received"]

SOCKET: Final = "hook.sock"
"""Name of the helper's socket, in the store's folder."""

GREETING: Final = b"editledger hook 2"
"""Changes with what is sent."""

PARTS: Final = 6
"""Of an errand: greeting, identity of the program, client, the caller's folder, that of its session, the event."""

PROJECT: Final = "CLAUDE_PROJECT_DIR"
"""Variable with the folder in which a session began; Gemini CLI and Cursor set it too."""

TAKEN: Final = b"+"
LONGEST_EVENT: Final = 64 << 20
"""Bytes of an event: it may hold a whole file, twice."""

LONGEST_PART: Final = 1 << 16
"""Bytes of any other part."""

_SECONDS_TO_TAKE: Final = 1.0
"""How long to wait for a helper that may be busy with another event."""

_SECONDS_TO_ANSWER: Final = 15.0
_STORE: Final = ".cas"
_OURS: Final = "CAS_"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PIECE: Final = 1 << 16
_LENGTH: Final = 8


def asked(client: str, event: bytes) -> bytes | None:
    """Return what the helper of the workspace around the current folder wants printed (None: no helper has done it)."""
    if sys.platform != "linux":
        return None  # nobody says who is at the other end
    if own_settings():
        return None
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        here, home = os.fsencode(os.getcwd()), os.fsencode(os.environ.get(PROJECT, ""))  # noqa: PTH109 - pathlib costs
        parts = (GREETING, identity(), os.fsencode(client), here, home, event)
        return _answer(line, packed(*parts)) if _connect(line) else None
    except OSError:
        return None
    finally:
        line.close()


def own_settings() -> list[str]:
    """Return the variables by which this process has settings that no other need have: such a one uses no helper."""
    return sorted(name for name in os.environ if name.startswith(_OURS))


def identity() -> bytes:
    """Return what has to be the same in two processes so that one may work for the other. Raises OSError."""
    own = os.stat(__file__)  # noqa: PTH116 - pathlib costs start-up
    home = [os.environ.get(name, "") for name in ("HOME", "XDG_CONFIG_HOME")]
    return f"{__file__} {own.st_ino} {own.st_mtime_ns} {sys.version} {home}".encode("utf-8", "surrogateescape")


def packed(*parts: bytes) -> bytes:
    """Return the parts as they are sent."""
    return b"".join(len(part).to_bytes(_LENGTH, "little") + part for part in parts)


def received(line: _socket.socket, longest: int) -> bytes | None:
    """Return the next part that comes (None: it is longer than that, or was cut off). Raises OSError."""
    length = _exactly(line, _LENGTH)
    size = int.from_bytes(length, "little")
    if len(length) < _LENGTH or size > longest:
        return None
    part = _exactly(line, size)
    return part if len(part) == size else None


def peer(line: _socket.socket) -> tuple[int, int]:
    """Return the number of the process at the other end, and that of its user. Raises OSError."""
    known = line.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(known[:4], sys.byteorder), int.from_bytes(known[4:8], sys.byteorder)


def connect_inside(line: _socket.socket, store: int) -> None:
    """Connect to the socket in the open folder `store`. Raises OSError.

    From inside the folder: the name of a socket may have 107 bytes and no more, and no other folder can be meant.
    """
    here = os.open(os.curdir, _FOLDER)
    try:
        os.fchdir(store)
        try:
            line.connect(SOCKET)
        finally:
            os.fchdir(here)
    finally:
        os.close(here)


def is_private(found: os.stat_result) -> bool:
    """Return whether something is this user's own, and nobody else may do anything with it."""
    return found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _connect(line: _socket.socket) -> bool:
    """Connect to the helper of the store at or above the current folder, if there is one that is this user's."""
    store = _store_above()
    if store is None:
        return False
    try:
        if not is_private(os.fstat(store)):
            return False
        found = os.stat(SOCKET, dir_fd=store, follow_symlinks=False)
        if not (stat.S_ISSOCK(found.st_mode) and is_private(found)):
            return False
        line.settimeout(_SECONDS_TO_TAKE)
        connect_inside(line, store)
    finally:
        os.close(store)
    return peer(line)[1] == os.geteuid()


def _store_above() -> int | None:
    """Open the nearest store at or above the current folder."""
    folder = os.getcwd()  # noqa: PTH109 - pathlib costs start-up
    while True:
        try:
            return os.open(f"{folder}/{_STORE}", _FOLDER | os.O_NOFOLLOW)
        except OSError:
            above = folder.rpartition("/")[0]
            if above == folder or not folder:
                return None
            folder = above


def _answer(line: _socket.socket, errand: bytes) -> bytes | None:
    line.sendall(errand)
    if line.recv(1) != TAKEN:
        return None
    line.settimeout(_SECONDS_TO_ANSWER)
    return received(line, LONGEST_EVENT)


def _exactly(line: _socket.socket, size: int) -> bytes:
    """Return so many bytes, or fewer where the other end hangs up."""
    pieces = []
    while size and (piece := line.recv(min(size, _PIECE))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
