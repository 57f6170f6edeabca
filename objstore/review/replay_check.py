"""Cross-check: a decision's text held against plain replay of the live edits by three-way merge.

Hunks that were found by comparison may name the wrong ones of lines that read alike. The weave believes them; a merge
of texts does not know them. Where the merge is clean and gives another text, the decision is in doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.errors import BlobMissing
from objstore.history.state_reader import records_of
from objstore.model.large_file_placeholder import is_placeholder
from objstore.model.replay_records import ReplayEdit
from objstore.text.diff import diff_lines
from objstore.text.lines import closed, is_closed, split_lines
from objstore.text.three_way_merge import merged
from objstore.text.unified_diff import is_either_binary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from objstore.model.basic_types import FileState, Seq, Unit
    from objstore.model.ids import BlobId
    from objstore.model.records import Edit
    from objstore.store.object_store import Store
    from objstore.weave.document import Document

__all__ = ["MergeReplay", "merge_replay"]

_MOST_EDITS: Final = 100
"""Edits that are replayed; a longer history is left to the weave alone."""

_MOST_TEXT: Final = 8 << 20
"""Bytes of text that are merged; likewise."""

_Edit: TypeAlias = "ReplayEdit | Edit"
Load: TypeAlias = "Callable[[BlobId], bytes]"


class MergeReplay:
    """What plain replay makes of a document."""

    def __init__(self, text: bytes, edits: Sequence[_Edit], live: frozenset[Seq], load: Load) -> None:
        self.text = text
        self._edits = edits
        self._live = live
        self._load = load

    def suspect_edits(self) -> tuple[Seq, ...]:
        """Return the live edits that were recorded by comparison, ascending; or all, where only rejected ones were.

        None where all edits, live or not, are exact.
        """
        compared = {edit.seq for edit in self._edits if self._is_compared(edit)}
        return tuple(sorted(self._live & compared or self._live)) if compared else ()

    def _is_compared(self, edit: _Edit) -> bool:
        if edit.before is None or edit.after is None or not edit.hunks:
            return False
        if not edit.is_meant:
            return True
        # Hooks record what they find by comparison, and the record does not say so.
        return tuple(edit.hunks) == diff_lines(self._load(edit.before.blob), self._load(edit.after.blob))


def merge_replay(store: Store, loaded: Document, external: Sequence[Edit], load: Load) -> MergeReplay | None:
    """Return what plain replay of the live edits makes of a document; None: it has no answer, or costs too much.

    `external`: edits of the document that are not in the log yet. `load`: returns the text of a state.
    """
    first = loaded.first_ever_rejected()
    if first is None or loaded.corrected or loaded.is_large or loaded.count_since(first) > _MOST_EDITS:
        return None
    found = records_of(store, loaded.id, after_edit=first - 1, after_decision=store.index.numbers.next_decision())
    edits: list[_Edit] = [record for record, _, _ in found if isinstance(record, ReplayEdit) and loaded.has(record.seq)]
    try:
        return _Replay(loaded, load).opinion([*edits, *external])
    except BlobMissing:
        return None  # what has expired can't be replayed


class _Replay:
    def __init__(self, loaded: Document, load: Load) -> None:
        self._loaded = loaded
        self._load = load
        self._left = _MOST_TEXT

    def opinion(self, edits: Sequence[_Edit]) -> MergeReplay | None:
        """Return what the live ones of the edits make of the state before the first."""
        name = _name(edits[0].before) if edits else None  # of the text so far, where a blob has it; None: no file, or
        text: bytes | None = None  # this is the text
        live: set[Seq] = set()
        for edit in edits:
            before, after = _name(edit.before), _name(edit.after)
            if before == after:
                continue  # it moved the file, or gave it a mode
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
        if text is None and name is not None:
            text = self._load(name)
        return None if text is None else MergeReplay(text, edits, frozenset(live), self._load)

    def _merged(self, edit: _Edit, live: Sequence[Unit], ours: bytes) -> bytes | None:
        """Return a text with the live hunks of an edit; None: that is no merge, or costs too much."""
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
                return None  # whether the newline goes with the hunks that are rejected is for the weave to say
            old, new = split_lines(closed(base)), split_lines(closed(theirs))
            for hunk in reversed(hunks):
                old[hunk.old_start : hunk.old_end] = new[hunk.new_start : hunk.new_end]
            theirs = b"".join(old)
            theirs = theirs if is_closed(base) else theirs.removesuffix(b"\n")
            hunks = []
        # Only what a tool said is believed: who placed the other hunks is what is in question.
        return merged(base, ours, theirs, hunks if hunks and edit.is_meant else diff_lines(base, theirs))


def _name(state: FileState | None) -> BlobId | None:
    return None if state is None else state.blob
