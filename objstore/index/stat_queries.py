"""Stat lookups: what is asked of the index about files on disk, so that a status reads only what changed since.

Two things are kept, both derived. Of each file that was read, how it looked then and which bytes it had. Of each folder
with recorded files, how those looked that were found to be as recorded; as long as they still look so, and nothing was
recorded in the folder since, none of them needs a question of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from objstore.fastclass import NamedTuple
from objstore.fs.stat_signature import FolderSignature
from objstore.index.database import checksum
from objstore.log.segment_files import Place
from objstore.model.ids import blob_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from objstore.index.rows import RecordedFileStat
    from objstore.index.shared_connection import SharedConnection

__all__ = [
    "CleanFolder",
    "CleanFolders",
    "JournalPosition",
    "StatQueries",
    "digest",
    "folder_of",
    "folder_signature_of",
]

_OF_ALL: Final = 5
"""Columns that `StatLookups.stood` asks for of all folders together, before those of each."""

_FOLDER_END: Final = ord("/") + 1


class JournalPosition(NamedTuple):
    """How far the journal had come: no two states of it with other files recorded have the same."""

    edit: int  # number of the newest
    decision: int  # number of the newest
    taken_back: int  # how many edits and decisions were


class CleanFolder(NamedTuple):
    """A folder with recorded files, and how those looked that were as recorded."""

    folder: bytes
    names: bytes  # of those, with a NUL between two
    digest: bytes  # of what is to be seen of all of those, in this order
    others: bytes  # names of the others, in the same way: they were not as recorded, or could have changed unseen


class CleanFolders(NamedTuple):
    """Every folder with recorded files."""

    until: (
        JournalPosition  # that is all that was recorded of them until then; of what came since, they may know as well
    )
    folders: list[CleanFolder]  # by path


class StatQueries:
    """Look up what the index remembers of files on disk."""

    def __init__(self, db: SharedConnection) -> None:
        """Answer for one index."""
        self._db: Final = db

    def recorded_file_stats(self, folder: bytes | None = None) -> Iterator[RecordedFileStat]:
        """Yield every file that exists, by path: what the journal says of it, and how it looked when last read.

        `folder`: only those that stand directly in it; None: all.
        """
        inside, values = "", tuple[bytes | int, ...]()
        if folder == b"":
            inside = "AND NOT instr(path, x'2f')"
        elif folder is not None:
            inside = "AND path > ? AND path < ? AND NOT instr(substr(path, ?), x'2f')"
            values = folder + b"/", folder + bytes([_FOLDER_END]), len(folder) + 2
        return self._looks(inside, values)

    def recorded_file_stats_at(self, path: bytes) -> Iterator[RecordedFileStat]:
        """Yield the file that exists at a path, as `looks` does."""
        return self._looks("AND path = ?", (path,))

    def _looks(self, which: str, values: tuple[bytes | int, ...]) -> Iterator[RecordedFileStat]:
        # As it comes out of the database: of tens of thousands of files, an object each would take most of the time.
        yield from self._db.execute(
            "SELECT id, path, documents.blob, mode, inode, size, mtime, ctime, seen.blob "  # noqa: S608 - text of our own
            f"FROM documents LEFT JOIN seen USING (path) WHERE documents.blob IS NOT NULL {which} ORDER BY path, id",
            values,
        )

    def moment(self) -> JournalPosition:
        """Return how far the journal has come."""
        row = self._db.execute(
            "SELECT (SELECT ifnull(max(seq), 0) FROM edits), (SELECT ifnull(max(number), 0) FROM decisions), "
            "(SELECT count(*) FROM edits INDEXED BY edits_taken_back WHERE void) + "
            "(SELECT count(*) FROM decisions WHERE void)"
        ).fetchone()
        return JournalPosition(*row)

    def stood(self) -> CleanFolders | None:
        """Return every folder with recorded files (None: nothing was kept, or not what was put in).

        All of it is believed or nothing: no folder that is missing would be looked into.
        """
        # One question, for while it is answered nothing changes.
        rows = self._db.execute(
            "SELECT edit, decision, taken_back, folders, stood_until.checksum, "
            "folder, names, digest, others, stood.checksum FROM stood_until LEFT JOIN stood ORDER BY folder"
        ).fetchall()
        if not rows:
            return None
        *until, count, found = rows[0][:_OF_ALL]
        kept = [row[_OF_ALL:] for row in rows if row[_OF_ALL] is not None]
        is_sound = (
            len(kept) == count
            and found == checksum("stood_until", *until, count)
            and all(row[-1] == checksum("stood", *row[:-1]) for row in kept)
        )
        return CleanFolders(JournalPosition(*until), [CleanFolder(*row[:-1]) for row in kept]) if is_sound else None

    def are_clean_folders_intact(self) -> bool:
        """Return whether what is kept of folders is what was put in, all of it, or nothing is kept."""
        return self.stood() is not None or not self._db.execute("SELECT count(*) FROM stood").fetchone()[0]

    def recorded_since(self, moment: JournalPosition) -> list[Place]:
        """Return where the edits and decisions lie that were recorded after that moment, also those taken back."""
        rows = self._db.execute(
            "SELECT segment, offset FROM edits WHERE seq > ? "
            "UNION ALL SELECT segment, offset FROM decisions WHERE number > ?",
            (moment.edit, moment.decision),
        )
        return [Place(*row) for row in rows]

    def folders_recorded_since(self, moment: JournalPosition) -> set[bytes]:
        """Return the folders in which files stand of which something was recorded after that moment."""
        rows = self._db.execute(
            "SELECT path FROM documents WHERE blob IS NOT NULL AND id IN (SELECT document FROM edits WHERE seq > ? "
            "UNION SELECT document FROM decided WHERE number > ?)",
            (moment.edit, moment.decision),
        )
        return {folder_of(path) for (path,) in rows}

    def recorded_at(self, moment: JournalPosition) -> tuple[bytes, bytes]:
        """Return the ids of the newest edit and decision at a moment (b"": there is none).

        Each record names the one before it: with the same ids the same was recorded until then.
        """
        row: tuple[bytes, bytes] = self._db.execute(
            "SELECT ifnull((SELECT id FROM edits WHERE seq = ?), x''), "
            "ifnull((SELECT id FROM decisions WHERE number = ?), x'')",
            (moment.edit, moment.decision),
        ).fetchone()
        return row

    def paths_told_of_since(self, moment: JournalPosition) -> set[bytes]:
        """Return every path where a document stands, or ever stood, of which something was recorded after that."""
        now = self.moment()
        documents: set[int] = set()
        if now.edit > moment.edit:
            documents.update(row[0] for row in self._db.execute("SELECT document FROM edits WHERE seq > ?", moment[:1]))
        if now.decision > moment.decision:
            rows = self._db.execute("SELECT document FROM decided WHERE number > ?", (moment.decision,))
            documents.update(row[0] for row in rows)
        if not documents:
            return set()
        paths = self._db.execute("SELECT path, document FROM paths")
        return {path for path, document in paths if document in documents}


def digest(facts: bytes) -> bytes:
    """Return what stands for packed facts: a status only compares them, and a megabyte takes 2 ms out of the index."""
    return blob_id(facts)


def folder_signature_of(stood: CleanFolder) -> FolderSignature:
    """Return what is compared to see whether the files still look so."""
    return FolderSignature(stood.folder, None, stood.names, stood.digest)


def folder_of(path: bytes) -> bytes:
    """Return the folder in which a path stands (b"": the root)."""
    return path.rpartition(b"/")[0]
