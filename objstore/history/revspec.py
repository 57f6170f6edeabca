"""Resolve a person's name for an edit, a hunk, a conversation, a state or a blob."""

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from objstore.disk.file_changes.open_dirs import first_symlink_on
from objstore.history.expired import refuse_expired
from objstore.model.basic_types import LINK_MODE, Seq, Unit, number_of
from objstore.model.ids import BlobId, hex_prefix_bounds
from objstore.model.records import Edit
from objstore.model.relpath import beginning
from objstore.model.views import State
from objstore.storage.index.rows import EditRow
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import FileMissing, PathError, PathInvalid, PathOutside
from objstore.values.request_errors import AmbiguousName, NoSuchName

__all__ = [
    "find_blob",
    "find_conversation",
    "find_session",
    "find_state",
    "find_units",
    "hidden_path",
    "last_state",
    "literal_path_if_symlink",
    "paths_to_search",
    "recorded_link",
    "recorded_path",
    "recorded_paths",
    "resolved_or_literal",
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
    """Return the conversation with this name, or the only one whose name begins with it.

    Raises NoSuchName, AmbiguousName.
    """
    found = journal.store.index.edits.conversations(spelling, _CANDIDATES) if spelling else []
    if spelling in found:
        return spelling
    return _only(found, spelling, "conversation")


def find_session(journal: Journal, spelling: str) -> int:
    """Return the number of the session with this number or name, or of the only one whose name begins with it.

    Raises NoSuchName, AmbiguousName.
    """
    sessions = journal.store.index.sessions
    number = number_of(spelling)
    if number and sessions.get(number) is not None:
        return number
    found = sessions.names(spelling, _CANDIDATES) if spelling else []
    for number, name in found:
        if name == spelling:
            return number
    chosen = _only([name for _, name in found], spelling, "session")
    return next(number for number, name in found if name == chosen)


def find_blob(journal: Journal, spelling: str) -> BlobId:
    """Return the blob whose hash begins with `spelling`. Raises NoSuchName, AmbiguousName."""
    if len(spelling) < _MIN_PREFIX or not _is_hex(spelling):
        raise NoSuchName(spelling, "blob")
    found = journal.store.index.blobs.between(*hex_prefix_bounds(spelling), _CANDIDATES)
    chosen = _only([blob.hex() for blob in found], spelling, "blob")
    return BlobId(bytes.fromhex(chosen))


def find_state(journal: Journal, spelling: str) -> State:
    """Return the state that `spelling` names.

    `PATH@12` is the state after that edit, `PATH@12^` before it, `PATH@2h` and `PATH@2026-11-20` at that moment, and
    `PATH` now. Otherwise `spelling` is the beginning of a blob's hash. Raises NoSuchName, AmbiguousName, EditExpired
    and what path lookups raise.
    """
    path, at, version = spelling.rpartition("@")
    if at and path:
        # A file's own name may contain an "@".
        with suppress(NoSuchName):
            return _state_at(journal, path, version, spelling)
        from objstore.values.dates import moment_of

        moment = moment_of(version, datetime.now().astimezone())
        at_moment = None if moment is None else _state_at_moment(journal, path, moment)
        if at_moment is not None:
            return at_moment
    with suppress(NoSuchName):
        return last_state(journal, spelling)
    try:
        return State(path="", blob=find_blob(journal, spelling), mode=0o644)
    except NoSuchName as error:
        raise NoSuchName(spelling, "state") from error


def last_state(journal: Journal, path: str) -> State:
    """Return the state in which the file at a path was last recorded. Raises NoSuchName and what path lookups raise."""
    tip = journal.store.index.documents.tip_at(recorded_path(journal, path))
    if tip is None:
        raise NoSuchName(path, "state")
    blob, mode = (None, 0) if tip.state is None else (tip.state.blob, tip.state.mode)
    return State(path=os.fsdecode(tip.path), blob=blob, mode=mode)


def recorded_path(journal: Journal, spelling: str) -> bytes:
    """Return the path relative to the root that is meant, even if its folders are gone or one is a symlink now.

    Raises PathInvalid, PathOutside, PathReserved, PermissionRefused.
    """
    try:
        with journal.tree.locate(spelling, changing=True) as resolved:
            path = os.fsencode(resolved.path)
    except (FileMissing, PathInvalid):
        # A file is now in place of a folder: what was recorded below it can be named only literally.
        literal = os.path.normpath(journal.tree.within(spelling))
        if literal.split("/", 1)[0] == "..":
            raise PathOutside(spelling) from None
        return os.fsencode(literal)
    except PathError:
        # A symlink leads out of the workspace, or to a reserved place.
        hidden = hidden_path(journal, spelling)
        if hidden is None:
            raise
        return hidden
    return resolved_or_literal(journal, spelling, path)


def recorded_paths(journal: Journal, spelling: str) -> list[bytes]:
    """Return the result of `recorded_path`, followed by the path that a symlink hides, if any. Raises as it."""
    hidden = hidden_path(journal, spelling)
    return list(dict.fromkeys([recorded_path(journal, spelling), *([] if hidden is None else [hidden])]))


def paths_to_search(journal: Journal, spelling: str) -> list[bytes]:
    """Return the result of `recorded_paths`, and the path that a symlink hides even if no edit was recorded there.

    Snapshots may contain it. If the symlink leads outside the user's files, it is the only path. Raises as it.
    """
    literal = literal_path_if_symlink(journal, spelling)
    try:
        found = recorded_paths(journal, spelling)
    except PathError:
        if literal is None:
            raise
        found = []
    return list(dict.fromkeys([*found, *([] if literal is None else [os.fsencode(literal)])]))


def recorded_link(journal: Journal, spelling: str) -> str | None:
    """Return the path of what a spelling names if that was last recorded as a link; else None: links are followed."""
    try:
        with journal.tree.locate(spelling) as resolved:
            path = resolved.path
    except PathError:
        return None
    tip = journal.store.index.documents.tip_at(os.fsencode(path))
    return path if tip is not None and tip.state is not None and tip.state.mode == LINK_MODE else None


def hidden_path(journal: Journal, spelling: str) -> bytes | None:
    """Return the literal path if something was recorded there and a symlink leads elsewhere now.

    None if nothing was recorded there or there is no symlink. Raises what path lookups raise.
    """
    literal = literal_path_if_symlink(journal, spelling)
    return None if literal is None or not _was_recorded(journal, os.fsencode(literal)) else os.fsencode(literal)


def literal_path_if_symlink(journal: Journal, spelling: str) -> str | None:
    """Return the literal path if it or one of its folders is a symlink now (None: no symlink).

    Raises what path lookups raise.
    """
    parts = journal.tree.within(spelling).split("/")
    last = max((at for at, part in enumerate(parts) if part == os.pardir), default=-1) + 1
    # The part up to the last `..` is resolved as the system does: after a symlink, `..` is its target's parent.
    above = journal.files.relative("/".join(parts[:last]), gone=True) if last else os.curdir
    literal = os.path.normpath(os.path.join(above, *parts[last:]))
    return literal if first_symlink_on(journal.tree, beginning(os.fsencode(literal))) else None


def resolved_or_literal(journal: Journal, spelling: str, path: bytes) -> bytes:
    """Return `path`, to which `spelling` leads, or the literal path if only that one was ever recorded.

    So a folder that became a symlink hides nothing that was recorded in it.
    """
    literal = os.fsencode(os.path.normpath(journal.tree.within(spelling)))
    if literal == path:
        return path
    return literal if _was_recorded(journal, literal) and not _was_recorded(journal, path) else path


def _was_recorded(journal: Journal, path: bytes) -> bool:
    """Return whether a file was ever recorded at the path or below it."""
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

    each = [state_at_moment(journal, one, moment) for one in paths_to_search(journal, path)]
    found_states = [state for state in each if state is not None]
    # If the symlink's target did not exist then, the file that the symlink replaced may have.
    found = next((state for state in found_states if state.blob is not None), None)
    if found is None and found_states:
        # That nothing was below the literal path, which may have been a symlink then too, says nothing of its target.
        recorded = recorded_paths(journal, path)
        found = next((state for state in found_states if os.fsencode(state.path) in recorded), None)
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
