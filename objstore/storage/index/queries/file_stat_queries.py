"""Query the index for what it remembers of files on disk, so that a status reads only what has changed since.

The index remembers two things, both derived: the stat signature and blob of each file that was read, and for each
folder with recorded files the signatures of the files that matched the journal. As long as these signatures are the
same and nothing has been recorded in the folder since, none of its files needs a query of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from objstore.disk.fs.stat_signature import FolderSignature
from objstore.model.ids import blob_id
from objstore.storage.index.database import checksum
from objstore.storage.log.segment_files import Place
from objstore.values.fastclass import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from objstore.storage.index.rows import RecordedFileStat
    from objstore.storage.index.shared_connection import SharedConnection

__all__ = [
    "CleanFolder",
    "CleanFolders",
    "FileStatQueries",
    "JournalPosition",
    "digest",
    "folder_of",
    "folder_signature_of",
]

_SHARED_COLUMNS: Final = 5
"""Number of columns that `clean_folders` selects for all folders together, before the columns of each folder."""

_FOLDER_END: Final = ord("/") + 1


class JournalPosition(NamedTuple):
    """The end of the journal at one moment; it differs between states of the journal with different recorded files."""

    edit: int  # number of the newest edit
    decision: int  # number of the newest decision
    voided: int  # number of voided edits and decisions


class CleanFolder(NamedTuple):
    """A folder with recorded files, and the signatures of those that matched the journal."""

    folder: bytes
    names: bytes  # names of the files that matched, separated by NUL
    digest: bytes  # hash of their signatures, in this order
    others: bytes  # names of the other files: they differed from the journal, or could have changed unseen


class CleanFolders(NamedTuple):
    """Every folder with recorded files."""

    until: JournalPosition  # everything up to here is taken into account, and possibly some that was recorded since
    folders: list[CleanFolder]  # by path


class FileStatQueries:
    """Look up what the index remembers of files on disk."""

    def __init__(self, db: SharedConnection) -> None:
        """Query one index."""
        self._db: Final = db

    def recorded_file_stats(self, folder: bytes | None = None) -> Iterator[RecordedFileStat]:
        """Yield every existing file by path: its recorded state, and its stat signature when it was last read.

        `folder`: only the files directly in it (None: all).
        """
        inside, values = "", tuple[bytes | int, ...]()
        if folder == b"":
            inside = "AND NOT instr(path, x'2f')"
        elif folder is not None:
            inside = "AND path > ? AND path < ? AND NOT instr(substr(path, ?), x'2f')"
            values = folder + b"/", folder + bytes([_FOLDER_END]), len(folder) + 2
        return self._looks(inside, values)

    def recorded_file_stats_at(self, path: bytes) -> Iterator[RecordedFileStat]:
        """Yield the file that exists at a path, in the form of `recorded_file_stats`."""
        return self._looks("AND path = ?", (path,))

    def _looks(self, which: str, values: tuple[bytes | int, ...]) -> Iterator[RecordedFileStat]:
        # As plain tuples: for tens of thousands of files, one object each would take most of the time.
        yield from self._db.execute(
            "SELECT id, path, documents.blob, mode, inode, size, mtime, ctime, file_stats.blob "  # noqa: S608 - text of our own
            "FROM documents LEFT JOIN file_stats USING (path) "
            f"WHERE documents.blob IS NOT NULL {which} ORDER BY path, id",
            values,
        )

    def position(self) -> JournalPosition:
        """Return the current position of the journal."""
        row = self._db.execute(
            "SELECT (SELECT ifnull(max(seq), 0) FROM edits), (SELECT ifnull(max(number), 0) FROM decisions), "
            "(SELECT count(*) FROM edits INDEXED BY edits_voided WHERE void) + "
            "(SELECT count(*) FROM decisions WHERE void)"
        ).fetchone()
        return JournalPosition(*row)

    def clean_folders(self) -> CleanFolders | None:
        """Return every folder with recorded files (None: none are stored, or the rows differ from what was stored).

        The rows are valid only together: a scan would not look into a folder that is missing.
        """
        # One query, so that all rows are of one state of the database.
        rows = self._db.execute(
            "SELECT edit, decision, voided, folders, clean_until.checksum, "
            "folder, names, digest, others, clean_folders.checksum "
            "FROM clean_until LEFT JOIN clean_folders ORDER BY folder"
        ).fetchall()
        if not rows:
            return None
        *until, count, found = rows[0][:_SHARED_COLUMNS]
        kept = [row[_SHARED_COLUMNS:] for row in rows if row[_SHARED_COLUMNS] is not None]
        is_sound = (
            len(kept) == count
            and found == checksum("clean_until", *until, count)
            and all(row[-1] == checksum("clean_folders", *row[:-1]) for row in kept)
        )
        return CleanFolders(JournalPosition(*until), [CleanFolder(*row[:-1]) for row in kept]) if is_sound else None

    def are_clean_folders_intact(self) -> bool:
        """Return whether the folders that are stored are complete and undamaged, or none are stored."""
        return (
            self.clean_folders() is not None or not self._db.execute("SELECT count(*) FROM clean_folders").fetchone()[0]
        )

    def recorded_since(self, moment: JournalPosition) -> list[Place]:
        """Return the places of the edits and decisions recorded after that position, including voided ones."""
        rows = self._db.execute(
            "SELECT segment, offset FROM edits WHERE seq > ? "
            "UNION ALL SELECT segment, offset FROM decisions WHERE number > ?",
            (moment.edit, moment.decision),
        )
        return [Place(*row) for row in rows]

    def folders_recorded_since(self, moment: JournalPosition) -> set[bytes]:
        """Return the folders of existing files for which something was recorded after that position."""
        rows = self._db.execute(
            "SELECT path FROM documents WHERE blob IS NOT NULL AND id IN (SELECT document FROM edits WHERE seq > ? "
            "UNION SELECT document FROM decided WHERE number > ?)",
            (moment.edit, moment.decision),
        )
        return {folder_of(path) for (path,) in rows}

    def recorded_at(self, moment: JournalPosition) -> tuple[bytes, bytes]:
        """Return the ids of the newest edit and the newest decision at a position (b"": there is none).

        Each record has the id of the one before it: the same ids mean that the same was recorded up to there.
        """
        row: tuple[bytes, bytes] = self._db.execute(
            "SELECT ifnull((SELECT id FROM edits WHERE seq = ?), x''), "
            "ifnull((SELECT id FROM decisions WHERE number = ?), x'')",
            (moment.edit, moment.decision),
        ).fetchone()
        return row

    def paths_changed_since(self, moment: JournalPosition) -> set[bytes]:
        """Return every path, current or former, of documents for which something was recorded after that position."""
        rows = self._db.execute(
            "SELECT path FROM paths WHERE document IN (SELECT document FROM edits WHERE seq > ? "
            "UNION SELECT document FROM decided WHERE number > ?)",
            (moment.edit, moment.decision),
        )
        return {path for (path,) in rows}


def digest(facts: bytes) -> bytes:
    """Return a hash of packed signatures: a status only compares them, and reading a megabyte takes 2 ms."""
    return blob_id(facts)


def folder_signature_of(clean: CleanFolder) -> FolderSignature:
    """Return the signature to compare with that of the files now."""
    return FolderSignature(clean.folder, None, clean.names, clean.digest)


def folder_of(path: bytes) -> bytes:
    """Return the folder of a path (b"": the root)."""
    return path.rpartition(b"/")[0]
