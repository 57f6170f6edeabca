"""Write down where the edits of an exact-string call were made, and find their strings again from that.

An edit's record keeps only numbers: the strings are in the file's bytes before and after the call, which are stored
once, and which a purge removes with everything that they hold. A string of which a later edit of the same call replaced
a part was never in the file whole, so it can't be found again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from mcptools.edit.exact import Edited, LineRange, Replacement

__all__ = ["PLACES_NOTE", "GivenStrings", "PlacedString", "decode_places", "encode_places", "given_strings"]

PLACES_NOTE: Final = "edit_places"
"""The note of a recorded edit that has the text of `encode_places`."""

_MOST: Final = 1000
"""Edits of one call that are written down at most; a record should stay small."""

_PLACE: Final = re.compile(r"([0-9]{1,15})-([0-9]{1,15})(?:@([0-9]{1,15}):([0-9]{1,15}):([0-9]{1,15}))?")

_Piece: TypeAlias = tuple[int, int, int]
"""Bytes of a staged copy: the edit that wrote them (-1: the file had them), their offset in that, and their number."""

_FILE: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedString:
    """The place where one edit replaced a string in the staged copy just before it."""

    lines: LineRange
    start: int | None  # the string's first byte; None: not known, because the call was carried over to a newer version
    old: int  # bytes of the string
    new: int  # bytes of what replaced it


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenStrings:
    """The strings of one edit as a client gave them; None: a later edit of the same call replaced a part of it."""

    old: bytes | None
    new: bytes | None


def encode_places(edited: Edited, edits: Sequence[Replacement], *, rebased: bool) -> str:
    """Return the places of a call's edits as a text of numbers; "" if it has too many edits.

    One word for each edit: its lines, as `3-3`, and unless the call was `rebased`, `@` with the first byte of its old
    string and the lengths of both strings: `3-3@28:11:11`.
    """
    if len(edits) > _MOST:
        return ""
    lines = [f"{each.start}-{each.end}" for each in edited.line_ranges]
    if rebased:
        return " ".join(lines)
    places = zip(lines, edited.starts, edits, strict=True)
    return " ".join(f"{line}@{start}:{len(edit.old)}:{len(edit.new)}" for line, start, edit in places)


def decode_places(text: str) -> list[PlacedString] | None:
    """Return the places that `encode_places` wrote, or None for any other text."""
    found = list(map(_PLACE.fullmatch, text.split(" ")))
    places: list[PlacedString] = []
    for place in found:
        if place is None:
            return None
        lines = LineRange(start=int(place[1]), end=int(place[2]))
        start = None if place[3] is None else int(place[3])
        places.append(PlacedString(lines=lines, start=start, old=int(place[4] or 0), new=int(place[5] or 0)))
    return places


def given_strings(before: bytes, after: bytes, places: Sequence[PlacedString]) -> list[GivenStrings] | None:
    """Return the strings of a call's edits, given a file's bytes before and after it; None: they don't fit together."""
    staged: list[_Piece] = [(_FILE, 0, len(before))]
    replaced: list[list[_Piece]] = []
    for index, place in enumerate(places):
        if place.start is None:
            return None
        above, rest = _split(staged, place.start)
        old, below = _split(rest, place.old)
        if _size(above) < place.start or _size(old) < place.old:
            return None
        replaced.append(old)
        staged = [*above, (index, 0, place.new), *below]
    if _size(staged) != len(after):
        return None
    kept: list[list[bytes]] = [[] for _ in places]
    at = 0
    for source, offset, size in staged:
        text, at = after[at : at + size], at + size
        if source != _FILE:
            kept[source].append(text)
        elif text != before[offset : offset + size]:
            return None
    return [
        GivenStrings(old=_from_file(old, before), new=_whole(new, place.new))
        for old, new, place in zip(replaced, kept, places, strict=True)
    ]


def _split(pieces: Sequence[_Piece], at: int) -> tuple[list[_Piece], list[_Piece]]:
    """Return the pieces of the first `at` bytes, and those of the others."""
    left: list[_Piece] = []
    for index, (source, offset, size) in enumerate(pieces):
        if size > at:
            rest = (source, offset + at, size - at)
            return [*left, *([(source, offset, at)] if at else [])], [rest, *pieces[index + 1 :]]
        left.append((source, offset, size))
        at -= size
    return left, []


def _size(pieces: Sequence[_Piece]) -> int:
    return sum(size for _, _, size in pieces)


def _from_file(pieces: Sequence[_Piece], before: bytes) -> bytes | None:
    if any(source != _FILE for source, _, _ in pieces):
        return None
    return b"".join(before[offset : offset + size] for _, offset, size in pieces)


def _whole(kept: Sequence[bytes], size: int) -> bytes | None:
    text = b"".join(kept)
    return text if len(text) == size else None
