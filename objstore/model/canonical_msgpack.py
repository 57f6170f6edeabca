"""Encode and decode canonical msgpack, in which every value has exactly one encoding and no other is accepted.

The encoding is msgpack's shortest form, with string map keys in ascending order of their code points. Only maps,
arrays, strings, byte strings, booleans and 64-bit integers occur: no nil, no float, no extension type. Source: the
msgpack specification; refusing bytes that do not re-encode to themselves is the idea of DER and dCBOR.

`Fields` reads a decoded map. Stored bytes are not trusted: a field with another type, out of range or with an unknown
name is refused.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from itertools import islice, pairwise
from typing import Any, Final, TypeAlias, TypeGuard, TypeVar

import msgpack

from objstore.model.basic_types import LINK_MODE, MAX_INT, FileState
from objstore.model.ids import HASH_SIZE, BlobId
from objstore.model.ranges import Range
from objstore.values.errors import RecordInvalid

__all__ = [
    "MAX_MODE",
    "MAX_TEXT",
    "Fields",
    "Value",
    "checked_path",
    "decode",
    "encode",
    "is_number",
    "is_recorded_mode",
    "ordered",
    "spell",
    "state_value",
    "unpack",
    "unpack_in_blocks",
]

Choice = TypeVar("Choice", bound=StrEnum)

MAX_MODE: Final = 0o7777


def is_recorded_mode(mode: int) -> bool:
    """Return whether a file state may have the mode: permission bits, or the mode of a link."""
    return 0 <= mode <= MAX_MODE or mode == LINK_MODE


MAX_TEXT: Final = 65536
_BLOCK: Final = 4096
"""Items of a long list that are in memory at once."""

# The C decoder signals malformed input with several unrelated exception types, among them a bare ValueError.
_MALFORMED: Final = (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException)
_NO_NAMES: Final = frozenset({b"", b".", b".."})
_PLAIN: Final = frozenset({bool, int, str, bytes})
_STRINGS: Final = frozenset({str})

Value: TypeAlias = "bool | int | str | bytes | list[Value] | dict[str, Value]"


def encode(value: dict[str, Value]) -> bytes:
    """Return the canonical encoding of `value`.

    Raises TypeError or OverflowError for values that the format does not have; these are mistakes of the caller.
    """
    return spell(ordered(value))


def spell(value: dict[str, Value]) -> bytes:
    """Return the encoding of a map whose keys are already ordered as by `ordered`. Raises as `encode`."""
    packed: bytes = msgpack.packb(value, use_bin_type=True, strict_types=True)
    return packed


def ordered(value: dict[str, Value]) -> dict[str, Value]:
    """Return the map with its keys, and those of nested maps, in ascending order. Raises TypeError as `encode`."""
    if not _STRINGS.issuperset(map(type, value)):
        raise TypeError("a map key must be a string")
    return {key: item if type(item := value[key]) in _PLAIN else _ordered(item) for key in sorted(value)}


def decode(encoded: bytes) -> dict[str, Value]:
    """Return the map that `encoded` contains.

    Raises RecordInvalid if `encoded` is not a map or not canonical.
    """
    value = unpack(encoded)
    try:
        encoded_again = encode(value)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise RecordInvalid(f"not canonical msgpack: {error}") from error
    if encoded_again != encoded:
        raise RecordInvalid("not the canonical encoding")
    return value


def unpack(encoded: bytes) -> dict[str, Value]:
    """Return the map that `encoded` contains, canonical or not: for callers that encode it again and compare.

    Raises RecordInvalid if `encoded` is not msgpack or not a map.
    """
    try:
        value = msgpack.unpackb(encoded, raw=False, strict_map_key=True)
    except _MALFORMED as error:
        raise RecordInvalid(f"not msgpack: {error}") from error
    if not isinstance(value, dict) or not _STRINGS.issuperset(map(type, value)):
        raise RecordInvalid("not a map of named fields")
    return value


def unpack_in_blocks(encoded: bytes, field: str, take: Callable[[list[Any]], object]) -> dict[str, Value]:
    """Return the map that `encoded` contains, without the list `field`, whose items `take` gets in blocks.

    So a long list is never in memory as a whole. Raises RecordInvalid as `unpack` does.
    """
    try:
        reader = msgpack.Unpacker(raw=False, strict_map_key=True, max_buffer_size=len(encoded))
        reader.feed(encoded)
        found: dict[str, Value] = {}
        for _ in range(reader.read_map_header()):
            name = reader.unpack()
            if name != field:
                found[name] = reader.unpack()
                continue
            left = reader.read_array_header()
            while left:
                block = list(islice(reader, min(left, _BLOCK)))
                if not block:
                    raise RecordInvalid(f"not msgpack: {field} ends early")
                take(block)
                left -= len(block)
    except _MALFORMED as error:
        raise RecordInvalid(f"not msgpack: {error}") from error
    return found


def _ordered(value: Value) -> Value:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, list):
        # Most lists hold only numbers, so their items need no ordering.
        return value if _PLAIN.issuperset(map(type, value)) else [_ordered(item) for item in value]
    if isinstance(value, dict):
        return ordered(value)
    raise TypeError(f"a record can't hold {type(value).__name__}")


def state_value(state: FileState) -> Value:
    """Return a file state as it is encoded: `[blob, mode]`."""
    return [bytes(state.blob), state.mode]


def is_number(value: object) -> TypeGuard[int]:
    """Return whether a decoded value is an integer that a record may hold."""
    # bool is a subclass of int and must not be accepted as one
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INT


def checked_path(value: object) -> bytes:
    """Return `value` if it is a path inside its workspace. Raises RecordInvalid for any other value."""
    if not isinstance(value, bytes) or not value or len(value) > MAX_TEXT:
        raise RecordInvalid("a path is not a byte string of a sane length")
    if b"\0" in value or not _NO_NAMES.isdisjoint(value.split(b"/")):
        raise RecordInvalid(f"a path leaves its workspace: {value!r}")
    return value


@cache
def _members(kind: type[Choice]) -> dict[str, Choice]:
    """Return the members of an enumeration by their values: to call it takes three times as long."""
    return {member.value: member for member in kind}


class Fields:
    """Read a decoded map field by field; a field left over at the end is an error."""

    __slots__ = ("_left",)

    def __init__(self, fields: Mapping[str, Value]) -> None:
        """Start with all fields. Raises RecordInvalid if a name is not a string: msgpack also has byte-string keys."""
        if not _STRINGS.issuperset(map(type, fields)):
            raise RecordInvalid("a field's name is not a string")
        self._left = dict(fields)

    def finish(self) -> None:
        """Raise RecordInvalid if any field was not taken."""
        if self._left:
            raise RecordInvalid(f"unknown field {min(self._left)!r}")

    def has(self, name: str) -> bool:
        """Return whether the field exists and was not taken yet."""
        return name in self._left

    def _take(self, name: str) -> Value:
        try:
            return self._left.pop(name)
        except KeyError:
            raise RecordInvalid(f"no field {name!r}") from None

    def number(self, name: str, *, least: int = 0) -> int:
        """Take an integer of at least `least`."""
        value = self._take(name)
        # Not isinstance: bool is a subclass of int and must not be accepted as one.
        if type(value) is not int or not least <= value <= MAX_INT:
            raise RecordInvalid(f"field {name!r} is not a number of at least {least}")
        return value

    def numbers(self, name: str) -> tuple[int, ...]:
        """Take an array of integers; () if the field is absent."""
        if not self.has(name):
            return ()
        value = self._take(name)
        numbers = [item for item in value if type(item) is int] if isinstance(value, list) else []
        if value != numbers or (numbers and not 0 <= min(numbers) <= max(numbers) <= MAX_INT):
            raise RecordInvalid(f"field {name!r} is not a list of numbers")
        return tuple(numbers)

    def flag(self, name: str) -> bool:
        """Take a flag: True if the field is `true`, False if it is absent."""
        if not self.has(name):
            return False
        if self._take(name) is not True:
            raise RecordInvalid(f"field {name!r} is not true")
        return True

    def text(self, name: str, default: str | None = None) -> str:
        """Take a string. `default`: returned if the field is absent; None: the field is required."""
        if default is not None and not self.has(name):
            return default
        value = self._take(name)
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            raise RecordInvalid(f"field {name!r} is not a string of a sane length")
        return value

    def texts(self, name: str) -> dict[str, str]:
        """Take a map of strings; {} if the field is absent."""
        if not self.has(name):
            return {}
        value = self._take(name)
        if not isinstance(value, dict):
            raise RecordInvalid(f"field {name!r} is not a map")
        inner = Fields(value)
        return {key: inner.text(key) for key in value}

    def items(self, name: str, *, optional: bool = False) -> list[Value]:
        """Take an array of any values. `optional`: return [] if the field is absent."""
        if optional and not self.has(name):
            return []
        value = self._take(name)
        if not isinstance(value, list):
            raise RecordInvalid(f"field {name!r} is not a list")
        return value

    def choice(self, name: str, kind: type[Choice], default: Choice | None = None) -> Choice:
        """Take a member of `kind`. `default`: returned if the field is absent; None: the field is required."""
        if default is not None and not self.has(name):
            return default
        spelling = self.text(name)
        found: Choice | None = _members(kind).get(spelling)
        if found is None:
            raise RecordInvalid(f"field {name!r} can't be {spelling!r}")
        return found

    def path(self, name: str) -> bytes:
        """Take a path inside its workspace."""
        return checked_path(self._take(name))

    def hash_or_none(self, name: str) -> bytes | None:
        """Take a hash; None if the field is absent."""
        if not self.has(name):
            return None
        value = self._take(name)
        if not isinstance(value, bytes) or len(value) != HASH_SIZE:
            raise RecordInvalid(f"field {name!r} is not a hash")
        return value

    def hash(self, name: str) -> bytes:
        """Take a required hash."""
        found = self.hash_or_none(name)
        if found is None:
            raise RecordInvalid(f"no field {name!r}")
        return found

    def hashes(self, name: str) -> tuple[bytes, ...]:
        """Take an array of hashes in ascending order, each once; () if the field is absent."""
        found = self.items(name, optional=True)
        hashes = tuple(item for item in found if isinstance(item, bytes) and len(item) == HASH_SIZE)
        if len(hashes) != len(found) or any(a >= b for a, b in pairwise(hashes)):
            raise RecordInvalid(f"field {name!r} is not a list of hashes in ascending order")
        return hashes

    def ascending(self, name: str) -> tuple[int, ...]:
        """Take an array of integers from 1 in ascending order, each once; () if the field is absent."""
        found = self.numbers(name)
        if (found and found[0] < 1) or any(a >= b for a, b in pairwise(found)):
            raise RecordInvalid(f"field {name!r} is not a list of numbers from 1 in ascending order")
        return found

    def ranges(self, name: str) -> tuple[Range, ...]:
        """Take ranges of integers from 1, ascending, with a gap between any two; () if the field is absent."""
        flat = self.numbers(name)
        if len(flat) % len(Range._fields):
            raise RecordInvalid(f"field {name!r} is not a list of ranges")
        found = tuple(Range(*flat[i : i + 2]) for i in range(0, len(flat), 2))
        # Two ranges that touch would be a second encoding of one range.
        fits = all(first <= last for first, last in found) and all(a.last + 1 < b.first for a, b in pairwise(found))
        if not fits or (found and found[0].first < 1):
            raise RecordInvalid(f"field {name!r} is not a list of ranges in ascending order")
        return found

    def state(self, name: str) -> FileState | None:
        """Take a file state; None if the field is absent."""
        if not self.has(name):
            return None
        value = self._take(name)
        # Not a match: patterns of classes take twice the time, and every edit has two states.
        if type(value) is list and len(value) == len(("blob", "mode")):
            blob, mode = value
            if type(blob) is bytes and len(blob) == HASH_SIZE and type(mode) is int and is_recorded_mode(mode):
                return FileState(blob=BlobId(blob), mode=mode)
        raise RecordInvalid(f"field {name!r} is not [blob, mode]")
