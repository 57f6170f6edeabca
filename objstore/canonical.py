"""Canonical msgpack: every value has exactly one spelling, and only that one is read.

The spelling is msgpack's shortest form, with map keys that are strings in ascending order of their code points.
Only maps, arrays, strings, byte strings, booleans and 64-bit integers occur: no nil, no float, no extension type.
Source: the msgpack specification; refusing what does not re-encode to itself is DER's and dCBOR's idea.
"""

from typing import Final, TypeAlias

import msgpack

from objstore.errors import RecordInvalid

__all__ = ["Value", "decode", "encode", "ordered", "spell", "unpack"]

_PLAIN: Final = frozenset({bool, int, str, bytes})
_STRINGS: Final = frozenset({str})

Value: TypeAlias = "bool | int | str | bytes | list[Value] | dict[str, Value]"


def encode(value: dict[str, Value]) -> bytes:
    """Return the one spelling of `value`.

    Raises TypeError or OverflowError for values that the format does not have; those are mistakes of the caller.
    """
    return spell(ordered(value))


def spell(value: dict[str, Value]) -> bytes:
    """Return the spelling of a map that is surely as `ordered` returns it. Raises as `encode`."""
    packed: bytes = msgpack.packb(value, use_bin_type=True, strict_types=True)
    return packed


def ordered(value: dict[str, Value]) -> dict[str, Value]:
    """Return the map with its keys, and those of the maps in it, in ascending order. Raises TypeError as `encode`."""
    if not _STRINGS.issuperset(map(type, value)):
        raise TypeError("a map key must be a string")
    return {key: item if type(item := value[key]) in _PLAIN else _ordered(item) for key in sorted(value)}


def decode(encoded: bytes) -> dict[str, Value]:
    """Return the map that `encoded` spells.

    Raises RecordInvalid when it is no map, or is not spelt canonically.
    """
    value = unpack(encoded)
    try:
        respelt = encode(value)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise RecordInvalid(f"not canonical msgpack: {error}") from error
    if respelt != encoded:
        raise RecordInvalid("not the canonical spelling")
    return value


def unpack(encoded: bytes) -> dict[str, Value]:
    """Return the map that `encoded` spells, canonically or not: for callers that spell it again and compare.

    Raises RecordInvalid when it is no map, or no msgpack.
    """
    try:
        value = msgpack.unpackb(encoded, raw=False, strict_map_key=True)
    # The C decoder signals malformed input with several unrelated exception types, among them a bare ValueError.
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise RecordInvalid(f"not msgpack: {error}") from error
    if not isinstance(value, dict) or not _STRINGS.issuperset(map(type, value)):
        raise RecordInvalid("not a map of named fields")
    return value


def _ordered(value: Value) -> Value:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, list):
        # Most lists are of numbers, and need no look at each.
        return value if _PLAIN.issuperset(map(type, value)) else [_ordered(item) for item in value]
    if isinstance(value, dict):
        return ordered(value)
    raise TypeError(f"a record can't hold {type(value).__name__}")
