"""Spellings: how a person names an edit, a hunk, a conversation, a state or a blob, and what is meant."""

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from objstore.errors import AmbiguousName, FileMissing, NoSuchName, PathError, PathInvalid, PathOutside
from objstore.file_changes.open_dirs import first_symlink_on
from objstore.history.expired import refuse_expired
from objstore.index.rows import EditRow
from objstore.model.basic_types import Seq, Unit, number_of
from objstore.model.ids import BlobId, hex_prefix_bounds
from objstore.model.records import Edit
from objstore.model.relpath import beginning
from objstore.model.views import State
from objstore.transaction.journal import Journal

__all__ = [
    "as_spelt",
    "find_blob",
    "find_conversation",
    "find_state",
    "find_units",
    "hidden_path",
    "last_state",
    "linked_spelling",
    "recorded_path",
    "recorded_paths",
    "told_paths",
]

_MIN_PREFIX: Final = 4
_CANDIDATES: Final = 6


def find_units(journal: Journal, spelling: str) -> tuple[Seq, tuple[Unit, ...]]:
    """Return the edit that `12`, `12:2`, an id's prefix or `prefix:2` names, and the units meant.

    Raises NoSuchName, AmbiguousName.
    """
    name, _, hunk = spelling.partition(":")
    row = _find_edit(journal, name)
    count = len(row.units)
    if ":" not in spelling:
        return row.seq, tuple(Unit(row.seq, i) for i in range(count))
    number = number_of(hunk)
    if number is None or number >= count or (number == 0 and not row.whole):
        raise NoSuchName(spelling, "hunk")
    return row.seq, (Unit(row.seq, number),)


def find_conversation(journal: Journal, spelling: str) -> str:
    """Return the conversation of this name, or the only one whose name begins so. Raises NoSuchName, AmbiguousName."""
    found = journal.store.index.edits.conversations(spelling, _CANDIDATES) if spelling else []
    if spelling in found:
        return spelling
    return _only(found, spelling, "conversation")


def find_blob(journal: Journal, spelling: str) -> BlobId:
    """Return the blob whose hash begins so. Raises NoSuchName, AmbiguousName."""
    if len(spelling) < _MIN_PREFIX or not _is_hex(spelling):
        raise NoSuchName(spelling, "blob")
    found = journal.store.index.blobs.between(*hex_prefix_bounds(spelling), _CANDIDATES)
    chosen = _only([blob.hex() for blob in found], spelling, "blob")
    return BlobId(bytes.fromhex(chosen))


def find_state(journal: Journal, spelling: str) -> State:
    """Return the state that a spelling names.

    `PATH@12` is after that edit, `PATH@12^` before it, `PATH@2h` and `PATH@2026-11-20` at that moment, `PATH` now; or
    it is the beginning of a blob's hash. Raises NoSuchName, AmbiguousName, EditExpired and what paths raise.
    """
    path, at, version = spelling.rpartition("@")
    if at and path:
        # A file's own name may hold an "@".
        with suppress(NoSuchName):
            return _state_at(journal, path, version, spelling)
        from objstore.dates import moment_of

        moment = moment_of(version, datetime.now().astimezone())
        told = None if moment is None else _state_at_moment(journal, path, moment)
        if told is not None:
            return told
    with suppress(NoSuchName):
        return last_state(journal, spelling)
    try:
        return State(path="", blob=find_blob(journal, spelling), mode=0o644)
    except NoSuchName as error:
        raise NoSuchName(spelling, "state") from error


def last_state(journal: Journal, path: str) -> State:
    """Return the state in which the file at a path was last recorded. Raises NoSuchName and what paths raise."""
    tip = journal.store.index.documents.tip_at(recorded_path(journal, path))
    if tip is None:
        raise NoSuchName(path, "state")
    blob, mode = (None, 0) if tip.state is None else (tip.state.blob, tip.state.mode)
    return State(path=os.fsdecode(tip.path), blob=blob, mode=mode)


def recorded_path(journal: Journal, spelling: str) -> bytes:
    """Return the path below the root that is meant, also where its folders are gone by now, or one is a link.

    Raises PathInvalid, PathOutside, PathReserved, PermissionRefused.
    """
    try:
        with journal.tree.locate(spelling, changing=True) as resolved:
            path = os.fsencode(resolved.path)
    except (FileMissing, PathInvalid):
        # Something else stands on the way: what was recorded there can be named by its spelling alone.
        spelt = os.path.normpath(journal.tree.within(spelling))
        if spelt.split("/", 1)[0] == "..":
            raise PathOutside(spelling) from None
        return os.fsencode(spelt)
    except PathError:
        # A link leads out of the workspace, or to where no file of the user's can be.
        hidden = hidden_path(journal, spelling)
        if hidden is None:
            raise
        return hidden
    return as_spelt(journal, spelling, path)


def recorded_paths(journal: Journal, spelling: str) -> list[bytes]:
    """Return the path that `recorded_path` does, and behind it the one that a link hides. Raises as it."""
    hidden = hidden_path(journal, spelling)
    return list(dict.fromkeys([recorded_path(journal, spelling), *([] if hidden is None else [hidden])]))


def told_paths(journal: Journal, spelling: str) -> list[bytes]:
    """Return the paths that `recorded_paths` does, and the one that a link hides also where nothing was recorded there.

    Snapshots may tell of it. Where the link leads to no path of the user's, it is the only one. Raises as it.
    """
    spelt = linked_spelling(journal, spelling)
    try:
        found = recorded_paths(journal, spelling)
    except PathError:
        if spelt is None:
            raise
        found = []
    return list(dict.fromkeys([*found, *([] if spelt is None else [os.fsencode(spelt)])]))


def hidden_path(journal: Journal, spelling: str) -> bytes | None:
    """Return the path as it is spelt, where something was recorded there, and a link by now leads elsewhere.

    None: nothing was, or no link does. Raises what paths raise.
    """
    spelt = linked_spelling(journal, spelling)
    return None if spelt is None or not _was_recorded(journal, os.fsencode(spelt)) else os.fsencode(spelt)


def linked_spelling(journal: Journal, spelling: str) -> str | None:
    """Return the path as it is spelt, where it, or a folder of it, is a link by now (None: none is).

    Raises what paths raise.
    """
    parts = journal.tree.within(spelling).split("/")
    last = max((at for at, part in enumerate(parts) if part == os.pardir), default=-1) + 1
    # Up to there it is as the system goes: behind a link, `..` is the folder above the one that it leads to.
    above = journal.files.relative("/".join(parts[:last]), gone=True) if last else os.curdir
    spelt = os.path.normpath(os.path.join(above, *parts[last:]))
    return spelt if first_symlink_on(journal.tree, beginning(os.fsencode(spelt))) else None


def as_spelt(journal: Journal, spelling: str, path: bytes) -> bytes:
    """Return the path that a spelling leads to, or the spelling where only that one is of something recorded.

    So a folder that has become a link hides nothing of what was recorded in it.
    """
    spelt = os.fsencode(os.path.normpath(journal.tree.within(spelling)))
    if spelt == path:
        return path
    return spelt if _was_recorded(journal, spelt) and not _was_recorded(journal, path) else path


def _was_recorded(journal: Journal, path: bytes) -> bool:
    """Return whether a file was ever recorded at the path, or below it."""
    return journal.store.index.documents.ever_at(path) or bool(journal.store.index.documents.paths_below(path))


def _state_at(journal: Journal, path: str, version: str, spelling: str) -> State:
    before = version.endswith("^")
    row = _find_edit(journal, version.removesuffix("^"))
    edit, _ = journal.store.record(row.place)
    if not isinstance(edit, Edit):
        raise NoSuchName(spelling, "state")
    if {edit.path, edit.source}.isdisjoint(recorded_paths(journal, path)):
        raise NoSuchName(spelling, "state")
    state = edit.before if before else edit.after
    if state is not None and not journal.store.has(state.blob):
        refuse_expired(journal, row)
    where = edit.source if before and edit.source is not None else edit.path
    blob, mode = (None, 0) if state is None else (state.blob, state.mode)
    return State(path=os.fsdecode(where), blob=blob, mode=mode)


def _state_at_moment(journal: Journal, path: str, moment: int) -> State | None:
    from objstore.history.state_at import state_at_moment

    each = [state_at_moment(journal, one, moment) for one in told_paths(journal, path)]
    told = [state for state in each if state is not None]
    # Where no file stood then to which a link leads now, the one whose place that took may have.
    found = next((state for state in told if state.blob is not None), None)
    if found is None and told:
        # That none stood below what was a link then, too, says nothing of where it leads.
        recorded = recorded_paths(journal, path)
        found = next((state for state in told if os.fsencode(state.path) in recorded), None)
    return found


def _find_edit(journal: Journal, name: str) -> EditRow:
    index = journal.store.index
    number = number_of(name)
    row = None if number is None else index.edits.get(number)
    if row is not None:
        return row
    if len(name) < _MIN_PREFIX or not _is_hex(name):
        raise NoSuchName(name, "edit")
    found = index.edits.between(*hex_prefix_bounds(name), _CANDIDATES)
    chosen = _only([row.id.hex() for row in found], name, "edit")
    return next(row for row in found if row.id.hex() == chosen)


def _is_hex(spelling: str) -> bool:
    try:
        hex_prefix_bounds(spelling)
    except ValueError:
        return False
    return True


def _only(found: Sequence[str], spelling: str, kind: str) -> str:
    if not found:
        raise NoSuchName(spelling, kind)
    if len(found) > 1:
        raise AmbiguousName(spelling, kind, found)
    return found[0]
