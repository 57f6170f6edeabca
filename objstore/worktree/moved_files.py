"""Find which new file a deleted one was moved to, among the files that a scan found to differ.

A scan sees only names and bytes: that a file was moved is inferred from them, as git infers renames.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from objstore.model.basic_types import FileState
from objstore.model.ids import BlobId, blob_id
from objstore.model.large_file_placeholder import is_placeholder
from objstore.text.forms import is_binary, shown_lines
from objstore.text.lines import split_lines

__all__ = ["Place", "moved_files"]

Place: TypeAlias = tuple[bytes, FileState | None, FileState | None]
"""A path, with its known state and its state now; None: no file."""

_EMPTY: Final = blob_id(b"")

_MOST_COMPARED: Final = 400
"""Pairs of a deleted and a new file that are compared to find files that were moved and changed."""

_FEWEST_SHARED: Final = 3
"""Lines that two files have in common at least, if one is to be the other, moved and changed."""


def moved_files(found: Sequence[Place], text: Callable[[BlobId], bytes]) -> dict[bytes, tuple[bytes, FileState]]:
    """Return the new path and state of each moved file, by its old path. `text`: returns the text of a blob."""
    moves = _same_bytes(found)
    ends = {*moves, *(path for path, _ in moves.values())}
    return moves | _changed([place for place in found if place[0] not in ends], text)


def _same_bytes(found: Sequence[Place]) -> dict[bytes, tuple[bytes, FileState]]:
    """Return the new path and state of each moved file, by its old path.

    A deleted file has moved to a new file with the same bytes, preferably one of the same name. Empty files never count
    as moved, because they are all alike.
    """
    # By blob, whether it is a link, and name; each list from its end.
    new: dict[tuple[BlobId, bool], dict[bytes, list[tuple[bytes, FileState]]]] = {}
    for path, known, now in reversed(found):
        if known is None and now is not None and now.blob != _EMPTY:
            new.setdefault((now.blob, now.is_link), {}).setdefault(_name(path), []).append((path, now))
    gone = {path: known for path, known, now in found if now is None and known is not None}
    moves: dict[bytes, tuple[bytes, FileState]] = {}
    for path, known in gone.items():
        alike = new.get((known.blob, known.is_link), {}).get(_name(path))
        if alike:
            moves[path] = alike.pop()
    for path, known in gone.items():
        named = new.get((known.blob, known.is_link))
        while path not in moves and named:
            name = next(reversed(named))
            if named[name]:
                moves[path] = named[name].pop()
            else:
                del named[name]
    return moves


def _changed(found: Sequence[Place], text: Callable[[BlobId], bytes]) -> dict[bytes, tuple[bytes, FileState]]:
    """Return the new path and state of each file that was moved and changed, by its old path, as git finds renames.

    A deleted file was moved to a new one if at least half of the lines of the longer one are in both, and each is the
    other's only such file: where there is a choice, both stay what they are on disk, a deletion and a creation.
    """
    gone = {path: known for path, known, now in found if now is None and known is not None and not known.is_link}
    new = {path: now for path, known, now in found if known is None and now is not None and not now.is_link}
    if not gone or not new or len(gone) * len(new) > _MOST_COMPARED:
        return {}
    lines = {path: _lines(text(state.blob)) for path, state in (*gone.items(), *new.items())}
    alike = [(source, target) for source in gone for target in new if _is_alike(lines[source], lines[target])]
    sources, targets = Counter(source for source, _ in alike), Counter(target for _, target in alike)
    return {source: (target, new[target]) for source, target in alike if sources[source] == 1 and targets[target] == 1}


def _lines(text: bytes) -> Counter[bytes]:
    """Return how often a text has each line; none if it is no text."""
    lines = shown_lines(text)
    return Counter() if is_placeholder(text) or is_binary(lines) else Counter(split_lines(lines))


def _is_alike(old: Counter[bytes], new: Counter[bytes]) -> bool:
    """Return whether at least half of the lines of the longer text are in both, and enough to tell."""
    shared = (old & new).total()
    return shared >= _FEWEST_SHARED and 2 * shared >= max(old.total(), new.total())


def _name(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]
