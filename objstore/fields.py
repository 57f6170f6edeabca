"""Fields: a decoded map taken apart field by field, each checked, with nothing left over.

What is stored is not trusted: a field of another type, out of its range, or that nobody knows is refused.
"""

from collections.abc import Mapping
from enum import StrEnum
from itertools import pairwise
from typing import Final, TypeVar

from objstore.canonical import Value
from objstore.errors import RecordInvalid
from objstore.ids import HASH_SIZE, BlobId
from objstore.ranges import Range
from objstore.terms import MAX_INT, FileState

__all__ = [
    "MAX_MODE",
    "MAX_TEXT",
    "Fields",
    "checked_path",
    "is_number",
    "state_value",
]

Choice = TypeVar("Choice", bound=StrEnum)

MAX_MODE: Final = 0o7777
MAX_TEXT: Final = 65536
_NO_NAMES: Final = frozenset({b"", b".", b".."})
_STRINGS: Final = frozenset({str})


def state_value(state: FileState) -> Value:
    """Return how a state is spelt."""
    return [bytes(state.blob), state.mode]


def is_number(value: object) -> bool:
    """Return whether a decoded value is a number that a record may hold."""
    # bool is a kind of int, and must not pass for one
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INT


def checked_path(value: object) -> bytes:
    """Return a path that stays in its workspace. Raises RecordInvalid for any other value."""
    if not isinstance(value, bytes) or not value or len(value) > MAX_TEXT:
        raise RecordInvalid("a path is not a byte string of a sane length")
    if b"\0" in value or not _NO_NAMES.isdisjoint(value.split(b"/")):
        raise RecordInvalid(f"a path leaves its workspace: {value!r}")
    return value


class Fields:
    """A decoded map, taken apart field by field; what is left over at the end is an error."""

    __slots__ = ("_left",)

    def __init__(self, fields: Mapping[str, Value]) -> None:
        """Begin with all fields. Raises RecordInvalid where a name is no text: msgpack has maps of byte strings too."""
        if not _STRINGS.issuperset(map(type, fields)):
            raise RecordInvalid("a field's name is no text")
        self._left = dict(fields)

    def finish(self) -> None:
        """Raise RecordInvalid if a field was not taken."""
        if self._left:
            raise RecordInvalid(f"unknown field {min(self._left)!r}")

    def has(self, name: str) -> bool:
        """Return whether the field is there and was not taken."""
        return name in self._left

    def _take(self, name: str) -> Value:
        try:
            return self._left.pop(name)
        except KeyError:
            raise RecordInvalid(f"no field {name!r}") from None

    def number(self, name: str, *, least: int = 0) -> int:
        """Take a number of at least `least`."""
        value = self._take(name)
        # Not isinstance: bool is a kind of int, and must not pass for one.
        if type(value) is not int or not least <= value <= MAX_INT:
            raise RecordInvalid(f"field {name!r} is not a number of at least {least}")
        return value

    def numbers(self, name: str) -> tuple[int, ...]:
        """Take an array of numbers; an absent one is empty."""
        if not self.has(name):
            return ()
        value = self._take(name)
        numbers = [item for item in value if type(item) is int] if isinstance(value, list) else []
        if value != numbers or (numbers and not 0 <= min(numbers) <= max(numbers) <= MAX_INT):
            raise RecordInvalid(f"field {name!r} is not a list of numbers")
        return tuple(numbers)

    def flag(self, name: str) -> bool:
        """Take a flag: `true`, or absent."""
        if not self.has(name):
            return False
        if self._take(name) is not True:
            raise RecordInvalid(f"field {name!r} is not true")
        return True

    def text(self, name: str, default: str | None = None) -> str:
        """Take a string. `default`: what an absent one is; None: it must be there."""
        if default is not None and not self.has(name):
            return default
        value = self._take(name)
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            raise RecordInvalid(f"field {name!r} is not a string of a sane length")
        return value

    def texts(self, name: str) -> dict[str, str]:
        """Take a map of strings; an absent one is empty."""
        if not self.has(name):
            return {}
        value = self._take(name)
        if not isinstance(value, dict):
            raise RecordInvalid(f"field {name!r} is not a map")
        inner = Fields(value)
        return {key: inner.text(key) for key in value}

    def items(self, name: str, *, optional: bool = False) -> list[Value]:
        """Take an array of anything. `optional`: an absent one is empty."""
        if optional and not self.has(name):
            return []
        value = self._take(name)
        if not isinstance(value, list):
            raise RecordInvalid(f"field {name!r} is not a list")
        return value

    def choice(self, name: str, kind: type[Choice], default: Choice | None = None) -> Choice:
        """Take one of the words of `kind`. `default`: what an absent one is; None: it must be there."""
        if default is not None and not self.has(name):
            return default
        spelling = self.text(name)
        try:
            return kind(spelling)
        except ValueError:
            raise RecordInvalid(f"field {name!r} can't be {spelling!r}") from None

    def path(self, name: str) -> bytes:
        """Take a path that stays in its workspace."""
        return checked_path(self._take(name))

    def hash_or_none(self, name: str) -> bytes | None:
        """Take a hash (None: absent)."""
        if not self.has(name):
            return None
        value = self._take(name)
        if not isinstance(value, bytes) or len(value) != HASH_SIZE:
            raise RecordInvalid(f"field {name!r} is not a hash")
        return value

    def hash(self, name: str) -> bytes:
        """Take a hash that must be there."""
        found = self.hash_or_none(name)
        if found is None:
            raise RecordInvalid(f"no field {name!r}")
        return found

    def hashes(self, name: str) -> tuple[bytes, ...]:
        """Take an array of hashes in ascending order, each once; an absent one is empty."""
        found = self.items(name, optional=True)
        hashes = tuple(item for item in found if isinstance(item, bytes) and len(item) == HASH_SIZE)
        if len(hashes) != len(found) or any(a >= b for a, b in pairwise(hashes)):
            raise RecordInvalid(f"field {name!r} is not a list of hashes in ascending order")
        return hashes

    def ascending(self, name: str) -> tuple[int, ...]:
        """Take an array of numbers from 1 in ascending order, each once; an absent one is empty."""
        found = self.numbers(name)
        if (found and found[0] < 1) or any(a >= b for a, b in pairwise(found)):
            raise RecordInvalid(f"field {name!r} is not a list of numbers from 1 in ascending order")
        return found

    def ranges(self, name: str) -> tuple[Range, ...]:
        """Take ranges of numbers from 1, ascending, with a number between any two; an absent field holds none."""
        flat = self.numbers(name)
        if len(flat) % len(Range._fields):
            raise RecordInvalid(f"field {name!r} is not a list of ranges")
        found = tuple(Range(*flat[i : i + 2]) for i in range(0, len(flat), 2))
        # Ranges that touch would be a second spelling of one.
        fits = all(first <= last for first, last in found) and all(a.last + 1 < b.first for a, b in pairwise(found))
        if not fits or (found and found[0].first < 1):
            raise RecordInvalid(f"field {name!r} is not a list of ranges in ascending order")
        return found

    def state(self, name: str) -> FileState | None:
        """Take a file state (None: absent)."""
        if not self.has(name):
            return None
        match self._take(name):
            case [bytes(blob), int(mode)] if len(blob) == HASH_SIZE and is_number(mode) and mode <= MAX_MODE:
                return FileState(blob=BlobId(blob), mode=mode)
            case _:
                raise RecordInvalid(f"field {name!r} is not [blob, mode]")
