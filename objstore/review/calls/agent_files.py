"""Read and write the small files in `.cas/agents` that say what agents were sent, and its locks.

The files are not part of the history. Each is a JSON object that is replaced as a whole, and need not survive a power
cut.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from objstore.disk.fs.nofollow import open_store_folder, read_store_file, write_derived_file
from objstore.disk.fs.reserved_names import AGENTS_NAME, STORE_NAME
from objstore.model.ids import blob_id
from objstore.review.calls.evidence_log import log_of
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import CasError, StoreLinked, StoreNotRegular

__all__ = ["AgentFiles", "key_of", "texts_of"]

_LONGEST_FILE: Final = 1 << 20


class AgentFiles:
    """The files about agents in one workspace. A name is that of a file in their folder."""

    def __init__(self, journal: Journal) -> None:
        """Take the journal of the workspace; read nothing yet."""
        self._disk: Final = journal.disk
        self._log: Final = log_of(journal)
        self._store: Final = os.path.join(journal.tree.root, STORE_NAME)
        self._folder: Final = os.path.join(self._store, AGENTS_NAME)

    def names(self, *prefixes: str) -> list[str]:
        """Return the names of the files that begin with one of the prefixes."""
        try:
            return sorted(name for name in os.listdir(self._folder) if name.startswith(prefixes))
        except FileNotFoundError:
            return []

    def exists(self, name: str) -> bool:
        """Return whether there is such a file."""
        return os.path.lexists(os.path.join(self._folder, name))

    def written(self, name: str) -> int:
        """Return when a file was written, in the file system's time (ns); 0: there is none."""
        try:
            return os.lstat(os.path.join(self._folder, name)).st_mtime_ns
        except OSError:
            return 0

    def is_ahead(self, moment: int) -> bool:
        """Return whether a moment (ns) is in the future, in the file system's time."""
        with suppress(OSError, CasError), open_store_folder(self._folder) as folder:
            return moment > self._disk.clock(folder, self._folder)
        return False

    def read(self, name: str, longest: int = _LONGEST_FILE) -> dict[str, Any]:
        """Return the contents of a file; an empty dict if it is missing, too long or not in our format."""
        try:
            held = json.loads(read_store_file(os.path.join(self._folder, name), longest))
        except (OSError, StoreLinked, StoreNotRegular, ValueError, RecursionError):
            return {}
        return held if isinstance(held, dict) else {}

    def write(self, name: str, held: Mapping[str, Any]) -> None:
        """Replace a file atomically. Raises what the disk raises."""
        self._log.make_folder()
        write_derived_file(self._disk, self._store, AGENTS_NAME, name, json.dumps(held).encode())

    def remove(self, name: str) -> None:
        """Remove a file, if there is one."""
        with suppress(FileNotFoundError, CasError):
            self._disk.remove_store_file(os.path.join(self._folder, name))

    def lock_path(self, name: str) -> str:
        """Return the path of a lock; create its folder if it is missing. Raises StoreLinked."""
        self._log.make_folder()
        return os.path.join(self._folder, name)


def key_of(*parts: str) -> str:
    """Return a short name, valid for a file, that identifies some texts."""
    return blob_id("\0".join(parts).encode("utf-8", "surrogatepass")).hex()[:32]


def texts_of(held: object) -> list[str]:
    """Return the texts in a list that a file holds; nothing if it is no list."""
    return [each for each in held if isinstance(each, str)] if isinstance(held, list) else []
