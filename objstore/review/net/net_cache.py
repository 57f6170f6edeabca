"""Cache how much pending edits change in each file, so that a table of it needs no replay of unchanged documents.

The cache is derived data in `.cas/cache/changes`: numbers, names of files and units, never their bytes. It can be
deleted at any time. An entry is used only if the newest edit and the newest decision of its document are those that it
was computed from, and the same edits have expired: the id of a record covers all records before it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from objstore.disk.fs.nofollow import read_store_file, write_derived_file
from objstore.disk.fs.reserved_names import NET_CACHE_NAME, STORE_NAME
from objstore.model.basic_types import Operation, Unit
from objstore.model.ids import HASH_SIZE, blob_id
from objstore.model.net_file import ChangeKind, ChangeSummary, FileSummary
from objstore.values.errors import CasError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.model.basic_types import DocumentId
    from objstore.storage.index.rows import DocumentPosition
    from objstore.storage.transaction.journal import Journal

__all__ = ["NetCache"]

_MAGIC: Final = b"casnets2"

_KINDS: Final = tuple(ChangeKind)
_OPERATIONS: Final = tuple(Operation)


class NetCache:
    """Summaries of files, each with the position of its document that it is valid for."""

    def __init__(self, journal: Journal) -> None:
        """Read the cache of a workspace; it is empty if the file is missing or damaged."""
        self._journal: Final = journal
        self._rows = _read(os.path.join(journal.tree.root, STORE_NAME, NET_CACHE_NAME))
        self.is_changed = False

    def get(self, position: DocumentPosition, *, is_unrecorded: bool) -> FileSummary | None:
        """Return the summary of a document; None if there is none that is valid for its position."""
        found = self._rows.get(position[0])
        if found is None or found[0] != [*position[1:]]:
            return None
        with suppress(ValueError, TypeError, LookupError):
            return _unpacked(position.document, found[1], is_unrecorded=is_unrecorded)
        return None

    def put(self, position: DocumentPosition, summary: FileSummary) -> None:
        """Keep the summary of a document."""
        self._rows[position.document] = [*position[1:]], _packed(summary)
        self.is_changed = True

    def save(self, documents: Iterable[DocumentId]) -> None:
        """Write the summaries of these documents and drop the others. A failure only costs time later."""
        from msgpack import packb

        packed = packb([[name, *self._rows[name]] for name in documents if name in self._rows])
        with suppress(CasError, OSError), self._journal.try_brief_lock() as is_ours:
            if is_ours:
                store = os.path.join(self._journal.tree.root, STORE_NAME)
                content = _MAGIC + blob_id(packed) + packed
                write_derived_file(self._journal.disk, store, *os.path.split(NET_CACHE_NAME), content)


def _packed(summary: FileSummary) -> list[Any]:
    changes = [
        [_KINDS.index(kind), *numbers, [*chain(*units)], [*shares], key]
        for kind, *numbers, units, shares, key in summary.changes
    ]
    paths = [os.fsencode(summary.path), os.fsencode(summary.path_before)]
    units = [[*chain(*summary.cancelled)], [*chain(*summary.kept_on)]]
    sizes = [summary.mode_before, summary.mode, summary.is_binary, summary.size_before, summary.size]
    return [paths, _OPERATIONS.index(summary.operation), sizes, units, changes]


def _unpacked(document: DocumentId, row: list[Any], *, is_unrecorded: bool) -> FileSummary:
    (path, path_before), operation, (mode_before, mode, is_binary, size_before, size), (cancelled, kept_on), rows = row
    changes = [
        ChangeSummary(
            _KINDS[kind], above, below, removed, inserted, _units(units), tuple(shares), bytes(memoryview(key))
        )
        for kind, above, below, removed, inserted, units, shares, key in rows
    ]
    return FileSummary(
        os.fsdecode(path),
        os.fsdecode(path_before),
        document,
        _OPERATIONS[operation],
        mode_before,
        mode,
        tuple(changes),
        _units(cancelled),
        _units(kept_on),
        is_binary,
        size_before,
        size,
        is_unrecorded,
    )


def _units(numbers: list[Any]) -> tuple[Unit, ...]:
    return tuple([Unit(seq, hunk) for seq, hunk in zip(numbers[::2], numbers[1::2], strict=True)])


def _read(path: str) -> dict[int, tuple[list[Any], list[Any]]]:
    from msgpack import unpackb

    try:
        stored = read_store_file(path)
    except (OSError, CasError):
        return {}
    body = len(_MAGIC) + HASH_SIZE
    packed = memoryview(stored)[body:]
    if stored[:body] != _MAGIC + blob_id(packed):
        return {}
    # The hash detects damage; it has no key, so anyone could have written valid bytes with other contents.
    with suppress(ValueError, TypeError):
        return {document: (position, row) for document, position, row in unpackb(packed)}
    return {}
