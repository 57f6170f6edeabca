"""Hold the documents of one decision, with the statuses that they have in it.

A decision may be on thousands of large files. So only some of their documents are in memory: the others are loaded
again when the decision comes back to them, with the statuses that they had last.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Final

from objstore.history.documents.loader import load_document

if TYPE_CHECKING:
    from collections.abc import Callable

    from objstore.model.basic_types import DocumentId
    from objstore.model.ids import BlobId
    from objstore.model.records import Edit
    from objstore.storage.transaction.journal import Journal
    from objstore.weave.document import Document

__all__ = ["PlannedDocuments"]

_MOST_TEXT: Final = 32 << 20
"""Bytes of text from which on no further document is held. Their weaves take about three times as much."""


class PlannedDocuments:
    """The documents of one decision. One that was got must not be changed after another was got."""

    def __init__(self, journal: Journal, text: Callable[[BlobId], bytes]) -> None:
        """Begin with none. `text`: returns the text of a state, which may not be in the log yet."""
        self._journal: Final = journal
        self._text: Final = text
        self._held: Final[dict[DocumentId, Document]] = {}
        self._size = 0  # bytes of text in them
        self._before: Final[dict[DocumentId, bytes]] = {}
        self._last: Final[dict[DocumentId, bytes]] = {}  # statuses of those that are not held
        self._added: Final[dict[DocumentId, list[Edit]]] = {}

    def __contains__(self, document: DocumentId) -> bool:
        """Return whether a document was loaded for the decision."""
        return document in self._before

    def get(self, document: DocumentId) -> Document:
        """Return a document, with the statuses that it has in the decision. Raises HistoryBroken."""
        if document in self._held:
            return self._held[document]
        if self._size > _MOST_TEXT:
            self._let_go()
        loaded = load_document(self._journal, document)
        for edit in self._added.get(document, ()):
            self._add_to(loaded, edit)
        self._before.setdefault(document, loaded.statuses())
        if document in self._last:
            loaded.restore_statuses(self._last.pop(document))
        self._held[document] = loaded
        self._size += loaded.text_bytes
        return loaded

    def before(self, document: DocumentId) -> bytes:
        """Return the statuses that a document had before the decision, and after edits that were found by it."""
        self.get(document)
        return self._before[document]

    def add(self, edit: Edit) -> Document:
        """Add an edit that is in no log yet to its document, and return that. What was found may be pending."""
        loaded = self.get(edit.document)
        self._add_to(loaded, edit)
        self._added.setdefault(edit.document, []).append(edit)
        self._before[edit.document] = loaded.statuses()
        return loaded

    def _let_go(self) -> None:
        self._last.update({document: held.statuses() for document, held in self._held.items()})
        self._held.clear()
        self._size = 0
        gc.collect()  # only that frees a weave, whose parts refer to each other

    def _add_to(self, loaded: Document, edit: Edit) -> None:
        loaded.add(edit, None if edit.after is None else self._text(edit.after.blob))
