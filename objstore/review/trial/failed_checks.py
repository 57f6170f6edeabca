"""Remember which checks failed on which files, so that a rejection can tell the agent of those that concern it.

A failed check decides nothing, so no decision has it. What it ran on is known by the key of the files: a rejection of
these files, or one that leads to them, has it in its reason. A note that is lost, or forged, decides nothing.
"""

import os
import time
from typing import Final

from msgpack import packb, unpackb

from objstore.disk.fs.nofollow import read_store_file, write_derived_file
from objstore.disk.fs.reserved_names import FAILED_NAME, STORE_NAME
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import CasError
from objstore.values.fastclass import NamedTuple

__all__ = ["FailedCheck", "failed_checks", "note_check"]

_MOST: Final = 16
"""Notes in the file: those of one sitting."""
_MOST_BYTES: Final = 1 << 17
_KEPT_FOR: Final = 24 * 60 * 60
"""Seconds for which a note counts."""


class FailedCheck(NamedTuple):
    """A check that failed."""

    files: str  # the key of the files that it ran on
    command: str
    how: str  # as in "failed with status 1"
    output: str  # its end
    time: int  # seconds since 1970-01-01 UTC


def failed_checks(journal: Journal) -> list[FailedCheck]:
    """Return the failed checks of the last day, the newest last. A missing or damaged file gives none."""
    oldest = time.time() - _KEPT_FOR
    try:
        rows = unpackb(read_store_file(os.path.join(_store(journal), FAILED_NAME), _MOST_BYTES))
        found = [
            FailedCheck(str(files), str(command), str(how), str(output), int(seconds))
            for files, command, how, output, seconds in rows
        ]
    except (OSError, CasError, ValueError, TypeError):
        return []
    return [each for each in found if each.time >= oldest]


def note_check(journal: Journal, files: str, command: str, how: str = "", output: str = "") -> None:
    """Note that a check failed on files; `how`: "" if it succeeded: then it has not failed on these any more.

    Raises what the disk raises, and StoreLinked.
    """
    known = failed_checks(journal)
    kept = [each for each in known if (each.files, each.command) != (files, command)]
    if not how and kept == known:
        return
    if how:
        kept.append(FailedCheck(files, command, how, output, int(time.time())))
    write_derived_file(journal.disk, _store(journal), *os.path.split(FAILED_NAME), packb(kept[-_MOST:]))


def _store(journal: Journal) -> str:
    return os.path.join(journal.tree.root, STORE_NAME)
