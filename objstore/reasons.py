"""Reasons: what was said of each unit of an edit, as the index has it: each text once, of however many units it is."""

from collections.abc import Sequence
from itertools import chain
from typing import Final

from objstore import canonical
from objstore.errors import RecordInvalid
from objstore.indexfile import unusable
from objstore.ranges import ranges_of

__all__ = ["NO_REASONS", "read_reasons", "spelt_reasons"]

NO_REASONS: Final = b""
"""How it is spelt that no unit has one, as of most edits."""


def spelt_reasons(reasons: Sequence[str]) -> bytes:
    """Return the spelling of the reasons of units 0, 1, … ("": none was given)."""
    units: dict[str, list[int]] = {}
    for unit, reason in enumerate(reasons):
        if reason:
            units.setdefault(reason, []).append(unit)
    if not units:
        return NO_REASONS
    return canonical.encode({reason: list(chain(*ranges_of(numbers))) for reason, numbers in units.items()})


def read_reasons(spelt: bytes, count: int) -> tuple[str, ...]:
    """Return the reason of each of `count` units. Raises DiskFailed where it is none of them that is spelt."""
    reasons = [""] * count
    if spelt == NO_REASONS:
        return tuple(reasons)
    try:
        found = canonical.unpack(spelt)
    except RecordInvalid as error:
        raise unusable(error) from error
    for reason, told in found.items():
        ends = [end for end in told if isinstance(end, int)] if isinstance(told, list) else []
        firsts, lasts = ends[::2], ends[1::2]
        if ends != told or len(firsts) != len(lasts) or not all(0 <= end < count for end in ends):
            raise unusable(f"{told!r} are not some of {count} units")
        for first, last in zip(firsts, lasts, strict=True):
            reasons[first : last + 1] = [reason] * (last + 1 - first)
    return tuple(reasons)
