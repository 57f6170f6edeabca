"""Complete the names of edits, conversations, paths, snapshots and pins, and suggest names near a mistyped one.

The module imports little, because a shell waits for it at a key press.
"""

import os
from collections.abc import Iterable
from enum import StrEnum
from itertools import islice
from typing import Final

from objstore.model.basic_types import counted, number_of
from objstore.storage.index.rows import HolderRow
from objstore.storage.store.object_store import Store
from objstore.values.fastclass import NamedTuple

__all__ = ["NameKind", "NameSuggestion", "names_similar_to", "names_with_prefix", "paths_near"]

_MOST_COMPARED: Final = 5_000
"""Maximum number of names compared with a mistyped one."""

_SHARE: Final = 0.6
"""Minimum similarity ratio (`difflib`) at which a name is suggested."""


class NameKind(StrEnum):
    """The kinds of things that a name can refer to."""

    EDIT = "edit"
    CONVERSATION = "conversation"
    PATH = "path"
    SNAPSHOT = "snapshot"
    PIN = "pin"


class NameSuggestion(NamedTuple):
    """A name, and a short description for a person."""

    name: str
    about: str


def names_with_prefix(store: Store, kind: NameKind, spelling: str, limit: int) -> list[NameSuggestion]:
    """Return up to `limit` names that begin with `spelling`. For an edit, `12:` asks for its hunks.

    The newest come first; paths are in ascending order and relative to the workspace.
    """
    match kind:
        case NameKind.EDIT if ":" in spelling:
            return _hunks(store, spelling)[:limit]
        case NameKind.EDIT:
            found = store.index.edits.newest(spelling, limit)
            return [NameSuggestion(str(seq), f"{status.value}  {os.fsdecode(path)}") for seq, path, status in found]
        case NameKind.CONVERSATION:
            conversations = store.index.edits.newest_conversations(spelling, limit)
            return [NameSuggestion(name, counted(count, "edit")) for name, count in conversations]
        case NameKind.PATH:
            return [
                NameSuggestion(os.fsdecode(path), "")
                for path in store.index.documents.paths(os.fsencode(spelling), limit)
            ]
        case NameKind.SNAPSHOT | NameKind.PIN:
            rows = store.index.holders.snapshots() if kind is NameKind.SNAPSHOT else store.index.holders.pins()
            kept = [row for row in rows if not row.expired and str(row.number).startswith(spelling)]
            return [_numbered(store, row) for row in kept[: -limit - 1 : -1]]


def _numbered(store: Store, row: HolderRow) -> NameSuggestion:
    """Return the number of a snapshot or a pin, and its title."""
    from objstore.model.records import Pin, Snapshot

    record, _ = store.record(row.place)
    return NameSuggestion(str(row.number), record.title if isinstance(record, Pin | Snapshot) else "")


def names_similar_to(store: Store, kind: NameKind, spelling: str, limit: int) -> list[str]:
    """Return up to `limit` names that a mistyped `spelling` may have meant, the nearest first."""
    names = [found.name for found in names_with_prefix(store, kind, "", _MOST_COMPARED)]
    return paths_near(names, spelling, limit) if kind is NameKind.PATH else _near(names, spelling, limit)


def paths_near(paths: Iterable[str], spelling: str, limit: int) -> list[str]:
    """Return up to `limit` of the first thousands of `paths` that `spelling` may have meant, the nearest first."""
    names = list(islice(paths, _MOST_COMPARED))
    if not spelling.isascii() and (same := _other_forms(names, spelling)):
        return same[:limit]
    near = _near(names, spelling, limit)
    if not near:
        # The person may have typed the file's name without its folder.
        last: dict[str, list[str]] = {}
        for name in names:
            last.setdefault(os.path.basename(name), []).append(name)
        wanted = _near(list(last), os.path.basename(spelling), limit)
        near = [name for base in wanted for name in last[base]][:limit]
    return near


def _other_forms(names: list[str], spelling: str) -> list[str]:
    """Return the names that differ from `spelling` only in their Unicode normalization: they look the same."""
    from unicodedata import normalize

    wanted = normalize("NFC", spelling)
    return [name for name in names if name != spelling and normalize("NFC", name) == wanted]


def _near(names: list[str], spelling: str, limit: int) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(spelling, names, limit, _SHARE)


def _hunks(store: Store, spelling: str) -> list[NameSuggestion]:
    name, _, digits = spelling.partition(":")
    number = number_of(name)
    row = None if number is None else store.index.edits.get(number)
    if row is None:
        return []
    hunks = range(0 if row.whole else 1, len(row.units))
    return [NameSuggestion(f"{name}:{hunk}", row.units[hunk].value) for hunk in hunks if str(hunk).startswith(digits)]
