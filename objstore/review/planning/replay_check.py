"""Check a decision's text against plain replay of the live edits by three-way merge.

Hunks that were found by comparison may name the wrong ones among identical lines. The weave trusts them; a merge of
texts does not use them. If the merge is clean and gives another text, the decision is in doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from objstore.history.documents.state_reader import records_of
from objstore.model.basic_types import MAX_INT, Status
from objstore.model.ids import blob_id
from objstore.model.large_file_placeholder import is_placeholder
from objstore.model.replay_records import ReplayEdit
from objstore.text.diff import diff_lines, joined
from objstore.text.forms import is_either_binary, shown_lines
from objstore.text.lines import closed, is_closed, split_lines
from objstore.text.three_way_merge import merged
from objstore.values.errors import BlobMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from objstore.model.basic_types import FileState, Seq, Unit
    from objstore.model.ids import BlobId
    from objstore.model.records import Edit
    from objstore.model.results import Conflict
    from objstore.storage.store.object_store import Store
    from objstore.weave.document import Document

__all__ = ["find_doubt", "live_units"]

_MOST_EDITS: Final = 100
"""Edits that are replayed; a longer history is left to the weave alone."""

_MOST_TEXT: Final = 8 << 20
"""Bytes of text that are merged; a longer history is left to the weave alone."""

_Edit: TypeAlias = "ReplayEdit | Edit"
Load: TypeAlias = "Callable[[BlobId], bytes]"


def find_doubt(store: Store, loaded: Document, before: bytes, external: Sequence[Edit], load: Load) -> Conflict | None:
    """Return why the text of a document is in doubt after a decision (None: it isn't).

    It is in doubt if plain replay of the live edits is clean and gives another text. The conflict names the newest edit
    that was recorded by comparison and whose rejection removes the doubt, or else the newest that was recorded so.

    `before`: the document's statuses before the decision. `external`: its edits that are not in the log yet. `load`:
    returns the text of a blob.
    """
    flipped = [
        unit
        for unit, status in loaded.changed_since(before).items()
        if loaded.was_live(unit, before) is not status.is_live
    ]
    compared = _suspect_edits(store, loaded, external, load) if flipped else ()
    if not compared:
        return None
    statuses, named = loaded.statuses(), compared[-1]
    loaded.restore_statuses(before)
    was_in_doubt = bool(_suspect_edits(store, loaded, external, load))
    loaded.restore_statuses(statuses)
    if was_in_doubt:
        return None  # an earlier decision wrote what replay contradicts; this one does not
    for seq in reversed(compared):
        loaded.set_statuses(dict.fromkeys(live_units(loaded, seq), Status.REJECTED))
        is_way_out = not loaded.conflicts() and not _suspect_edits(store, loaded, external, load)
        loaded.restore_statuses(statuses)
        if is_way_out:
            named = seq
            break
    unit = live_units(loaded, named)[-1]
    about = sorted(other for other in flipped if other.seq != named)
    return loaded.doubt(unit, tuple([other for other in about if other.hunk] or about))


def live_units(loaded: Document, seq: Seq) -> list[Unit]:
    """Return the units of an edit that are live."""
    return [unit for unit in loaded.units(seq) if not loaded.is_rejected(unit)]


def _suspect_edits(store: Store, loaded: Document, external: Sequence[Edit], load: Load) -> tuple[Seq, ...]:
    """Return the live edits whose hunks may be misplaced, if plain replay gives another text (empty: no doubt)."""
    try:
        replayed = _merge_replay(store, loaded, external, _LinesOf(load) if loaded.has_forms() else load)
        is_same = replayed is None or replayed.gives(loaded.lines_text())
    except BlobMissing:
        return ()  # expired edits can't be replayed
    return () if replayed is None or is_same else replayed.suspect_edits()


class _LinesOf:
    """Loads the texts of a document in whose lines it counts."""

    def __init__(self, load: Load) -> None:
        self._load = load

    def __call__(self, blob: BlobId) -> bytes:
        return shown_lines(self._load(blob))


class _Name(NamedTuple):
    """A recorded state, by its blob: its text is read only if somebody needs it."""

    blob: BlobId


class _MergeReplay:
    """The result of plain replay of a document: a text, or the name of a recorded one."""

    def __init__(self, result: bytes | _Name, edits: Sequence[_Edit], live: frozenset[Seq], load: Load) -> None:
        self._result = result
        self._edits = edits
        self._live = live
        self._load = load

    def gives(self, text: bytes | None) -> bool:
        """Return whether the result is this text (None: no file). Raises BlobMissing."""
        if text is None:
            return False
        result = self._result
        if isinstance(result, _Name):
            if blob_id(text) == result.blob:
                return True  # most often: nothing that is live came after what a decision rejects
            result = self._load(result.blob)
        # The end of the last line has rules of its own, which a merge of lines does not know.
        return closed(result) == closed(text)

    def suspect_edits(self) -> tuple[Seq, ...]:
        """Return the live edits that were recorded by comparison, ascending; or all live ones, if only rejected were.

        Empty if every edit, live or not, has hunks that a tool reported.
        """
        compared = {edit.seq for edit in self._edits if self._is_compared(edit)}
        return tuple(sorted(self._live & compared or self._live)) if compared else ()

    def _is_compared(self, edit: _Edit) -> bool:
        if edit.before is None or edit.after is None or not edit.hunks:
            return False
        if not edit.is_meant:
            return True
        # Hooks record what they find by comparison, and the record does not say so.
        before = self._load(edit.before.blob)
        compared = diff_lines(before, self._load(edit.after.blob))
        # Older records have hunks that a comparison joins now.
        return edit.hunks == compared or tuple(joined(edit.hunks, split_lines(before))) == compared


def _merge_replay(store: Store, loaded: Document, external: Sequence[Edit], load: Load) -> _MergeReplay | None:
    """Replay a document's live edits by three-way merge; None: there is no clean result, or it would cost too much.

    `external`: edits of the document that are not in the log yet. `load`: returns the text of a blob.
    Raises BlobMissing.
    """
    first = loaded.first_ever_rejected()
    if first is None or loaded.is_large or loaded.count_since(first) > _MOST_EDITS:
        return None
    found = records_of(store, loaded.id, after_edit=first - 1, after_decision=MAX_INT)
    edits: list[_Edit] = [record for record, _, _ in found if isinstance(record, ReplayEdit) and loaded.has(record.seq)]
    return _Replay(loaded, load).replay([*edits, *external])


class _Replay:
    def __init__(self, loaded: Document, load: Load) -> None:
        self._loaded = loaded
        self._load = load
        self._left = _MOST_TEXT

    def replay(self, edits: Sequence[_Edit]) -> _MergeReplay | None:
        """Return the result of applying the live ones among the edits to the state before the first."""
        # The text so far is that of blob `name`, or else `text`; if both are None, there is no file.
        name = _name(edits[0].before) if edits else None
        text: bytes | None = None
        live: set[Seq] = set()
        for edit in edits:
            before, after = _name(edit.before), _name(edit.after)
            if before == after:
                continue  # it changed only the path or the mode
            units = [unit for unit in self._loaded.units(edit.seq) if unit.hunk or edit.changes_whole]
            left = [unit for unit in units if not self._loaded.is_rejected(unit)]
            if not left:
                continue
            live.add(edit.seq)
            if text is None and name == before and left == units:
                name = after
                continue
            if before is None or after is None or (text is None and name is None):
                return None
            ours = self._load(name) if text is None and name is not None else text
            text = self._merged(edit, left, ours or b"")
            if text is None:
                return None
        result = text if text is not None or name is None else _Name(name)
        return None if result is None else _MergeReplay(result, edits, frozenset(live), self._load)

    def _merged(self, edit: _Edit, live: Sequence[Unit], ours: bytes) -> bytes | None:
        """Merge the live hunks of an edit into a text; None: the merge is not clean, or would cost too much."""
        if edit.before is None or edit.after is None:
            return None
        base, theirs = self._load(edit.before.blob), self._load(edit.after.blob)
        self._left -= len(base) + len(ours) + len(theirs)
        if self._left < 0 or any(map(is_placeholder, (base, ours, theirs))) or is_either_binary(base, theirs):
            return None
        numbers = {unit.hunk for unit in live}
        hunks = [hunk for number, hunk in enumerate(edit.hunks, 1) if number in numbers]
        if len(hunks) < len(edit.hunks):
            if is_closed(base) is not is_closed(theirs):
                return None  # only the weave knows whether the last newline belongs to the rejected hunks
            old, new = split_lines(closed(base)), split_lines(closed(theirs))
            for hunk in reversed(hunks):
                old[hunk.old_start : hunk.old_end] = new[hunk.new_start : hunk.new_end]
            theirs = b"".join(old)
            theirs = theirs if is_closed(base) else theirs.removesuffix(b"\n")
            hunks = []
        # Only hunks that a tool reported are trusted: the placement of the others is in question.
        return merged(base, ours, theirs, hunks if hunks and edit.is_meant else diff_lines(base, theirs))


def _name(state: FileState | None) -> BlobId | None:
    return None if state is None else state.blob
