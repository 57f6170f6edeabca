"""Remember what a person should hear of though no record has it: a rule that leaves out more, tools that go unreported.

Who notices such a thing adds a line to a file of the store. How many remarks a person has seen says which are new. Once
all are seen, none is kept.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from objstore.disk.fs.nofollow import open_store_file, read_store_file
from objstore.disk.fs.reserved_names import AGENTS_NAME, STORE_NAME
from objstore.values.errors import CasError
from objstore.values.fastclass import NamedTuple

__all__ = [
    "HEARD",
    "LEFT_OUT",
    "LOST_REPORTS",
    "SILENT",
    "Remark",
    "add_remark",
    "add_remarks",
    "forget_remarks",
    "has_remarks",
    "remarks",
]

LEFT_OUT: Final = "left-out"
"""A covered path that a rule begins to leave out. It is noted before the stat cache forgets that it was covered."""

LOST_REPORTS: Final = "lost-reports"
"""Lines of the log of evidence that were lost; the remark is about no client and no session."""

SILENT: Final = frozenset({"no-events", "no-beginnings", "no-ends", LOST_REPORTS})
"""What does not arrive of the tools of a session; the remark is about the client and the session."""

HEARD: Final = "heard"
"""Something of the tools of such a session has arrived after all: its earlier silence was no fault."""

_NAME: Final = "remarks"
_MOST_BYTES: Final = 1 << 20


class Remark(NamedTuple):
    """Something that a person should hear of."""

    time: int  # microseconds since 1970-01-01 UTC; 0: not known
    kind: str
    about: bytes  # a path, or client and session in two lines


def add_remarks(root: str, kind: str, about: Iterable[bytes]) -> None:
    """Add remarks of one kind. If they can't be written, nothing else is lost."""
    now = time.time_ns() // 1000
    entries = b"".join(b"%d %s %s\0" % (now, kind.encode(), each) for each in about)
    if not entries:
        return
    with suppress(OSError, CasError):
        os.makedirs(os.path.join(root, STORE_NAME, AGENTS_NAME), exist_ok=True)
        fd = open_store_file(_path(root), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_size < _MOST_BYTES:
                os.write(fd, entries)
        finally:
            os.close(fd)


def add_remark(root: str, kind: str, client: str, session: str) -> None:
    """Add a remark about the tools of a session, unless it says nothing new."""
    about = os.fsencode(f"{client}\n{session}".replace("\0", ""))
    lacking: set[str] = set()
    for remark in remarks(root):
        if remark.about == about:
            lacking = set() if remark.kind == HEARD else lacking | {remark.kind}
    if (kind == HEARD and lacking) or (kind != HEARD and kind not in lacking):
        add_remarks(root, kind, [about])


def forget_remarks(root: str, count: int, note: Callable[[], object]) -> None:
    """Remove all remarks if there are just as many as a person has seen; `note` first notes that none is seen of none.

    Raises OSError, and what `note` raises, with all remarks kept.
    """
    with suppress(FileNotFoundError):
        fd = open_store_file(_path(root), os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if count and len(remarks(root)) == count:
                note()
                os.ftruncate(fd, 0)
        finally:
            os.close(fd)


def remarks(root: str) -> list[Remark]:
    """Return all remarks, oldest first."""
    try:
        entries = read_store_file(_path(root), 2 * _MOST_BYTES).split(b"\0")[:-1]
    except (OSError, CasError):
        return []
    return list(map(_parsed, entries))


def has_remarks(root: str) -> bool:
    """Return whether there was ever a remark."""
    return os.path.lexists(_path(root))


# ---- inside


def _parsed(entry: bytes) -> Remark:
    moment, _, said = entry.partition(b" ")
    kind, _, about = said.partition(b" ")
    is_time = moment.isdigit() and len(moment) < len("10000000000000000")  # until the year 2286
    return Remark(int(moment) if is_time else 0, kind.decode("ascii", "replace"), about)


def _path(root: str) -> str:
    return os.path.join(root, STORE_NAME, AGENTS_NAME, _NAME)
