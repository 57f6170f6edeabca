"""Track which folders were created by recorded edits; all other folders belong to someone else.

Only edits record which folders they created. Which folders a decision creates or leaves empty follows from the files
that it writes; so does who created a folder that an edit finds where a decision had left none.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final

from objstore.model.records import Decision, Edit
from objstore.model.relpath import folders_of

__all__ = ["CreatedFolders"]

_MADE: Final = "m"
_EMPTIED: Final = "e"
_OTHERS: Final = "o"

_VALUES_AT_ONCE: Final = 500
"""Number of values in one query; SQLite's default limit is 32,766."""


class CreatedFolders:
    """The notes about folders in one index's database: for each folder, the newest note counts."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Write to this database."""
        self._db: Final = db

    def take_edit(self, edit: Edit) -> None:
        """Note the folders that an edit created, and those that it found where a decision had left none."""
        folders = folders_of(edit.path)
        existing = len(folders) - edit.folders
        for folder in folders[existing:]:
            self._note(folder, _MADE, edit=edit.seq, document=edit.document)
        if edit.before is None or edit.source is not None:
            # A file that was found on disk came with its folder. A tool would have created it, so someone else did.
            fate = _MADE if edit.origin.is_found else _OTHERS
            for folder in self._emptied(folders[:existing]):
                self._note(folder, fate, edit=edit.seq, document=edit.document)

    def note_recreated_folders(self, decision: Decision) -> None:
        """Note the folders that a decision created again for the files that it brings back."""
        come = _folders(w.path_after for w in decision.written if w.path_after != w.path_before)
        for folder in self._emptied(sorted(come)):
            self._note(folder, _MADE, decision=decision.number)

    def left(self, decision: Decision, documents: Iterable[int]) -> set[bytes]:
        """Return the folders that a decision on the documents removes if they contain no recorded file any more."""
        gone = _folders(w.path_before for w in decision.written if w.path_before != w.path_after)
        found = {folder for folder in gone if self._newest(folder)[0] == _MADE}
        for document in documents:
            found.update(self._left_by(document))
        return found

    def empty(self, folders: Iterable[bytes], decision: Decision) -> None:
        """Note those of the folders that contain no recorded file any more. Every tip must be in the database."""
        for folder in sorted(folders):
            query = "SELECT 1 FROM documents WHERE path > ? AND path < ? AND blob IS NOT NULL LIMIT 1"
            if self._db.execute(query, (folder + b"/", folder + b"0")).fetchone() is None:
                self._note(folder, _EMPTIED, decision=decision.number)

    def forget(self, *, edit: int = 0, decision: int = 0) -> None:
        """Delete the notes of a voided record."""
        self._db.execute("DELETE FROM folders WHERE edit = ? AND decision = ?", (edit, decision))

    # ---- inside

    def _note(self, folder: bytes, fate: str, *, edit: int = 0, decision: int = 0, document: int = 0) -> None:
        row = (folder, fate, edit, decision, document)
        self._db.execute("INSERT INTO folders (path, fate, edit, decision, document) VALUES (?, ?, ?, ?, ?)", row)

    def _newest(self, folder: bytes) -> tuple[str, int]:
        """Return the newest note on a folder, and the edit that made it (0: a decision did, or there is no note)."""
        query = "SELECT fate, edit FROM folders WHERE path = ? ORDER BY number DESC LIMIT 1"
        row = self._db.execute(query, (folder,)).fetchone()
        return ("", 0) if row is None else (row[0], row[1])

    def _emptied(self, folders: list[bytes]) -> list[bytes]:
        """Return those of the folders that a decision has left empty."""
        found: list[bytes] = []
        for at in range(0, len(folders), _VALUES_AT_ONCE):
            asked = folders[at : at + _VALUES_AT_ONCE]
            marks = ",".join("?" * len(asked))
            query = f"SELECT DISTINCT path FROM folders WHERE fate = '{_EMPTIED}' AND path IN ({marks})"  # noqa: S608 - nothing but question marks is put in
            found += [row[0] for row in self._db.execute(query, asked).fetchall()]
        return [folder for folder in found if self._newest(folder)[0] == _EMPTIED]

    def _left_by(self, document: int) -> Iterator[bytes]:
        """Yield the folders that only rejected edits of a document created."""
        rejected = (
            "SELECT DISTINCT path FROM folders JOIN edits ON folders.edit = seq "
            "WHERE folders.document = ? AND folders.document > 0 AND units LIKE 'r%' AND NOT void"
        )
        for (folder,) in self._db.execute(rejected, (document,)).fetchall():
            fate, edit = self._newest(folder)
            if fate == _MADE and (not edit or self._is_rejected(edit)):
                # Only now: this reads every edit of the document.
                if self._has_deletion(document):
                    return
                yield folder

    def _has_deletion(self, document: int) -> bool:
        """Return whether a live edit deletes the document: its tool or person left the folder, or created it again."""
        query = "SELECT 1 FROM edits WHERE document = ? AND after IS NULL AND units NOT LIKE 'r%' AND NOT void"
        return self._db.execute(query, (document,)).fetchone() is not None

    def _is_rejected(self, seq: int) -> bool:
        return self._db.execute("SELECT 1 FROM edits WHERE seq = ? AND units LIKE 'r%'", (seq,)).fetchone() is not None


def _folders(paths: Iterable[bytes | None]) -> set[bytes]:
    """Return all folders of paths (None: no file)."""
    return {folder for path in paths if path is not None for folder in folders_of(path)}
