"""Canonical msgpack: every value has exactly one spelling, and only that one is read.

The spelling is msgpack's shortest form, with map keys that are strings in ascending order of their code points.
Only maps, arrays, strings, byte strings, booleans and 64-bit integers occur: no nil, no float, no extension type.
Source: the msgpack specification; refusing what does not re-encode to itself is DER's and dCBOR's idea.
"""

from typing import TypeAlias

import msgpack

from objstore.errors import RecordInvalid

__all__ = ["Value", "decode", "encode"]

Value: TypeAlias = "bool | int | str | bytes | list[Value] | dict[str, Value]"


def encode(value: dict[str, Value]) -> bytes:
    """Return the one spelling of `value`.

    Raises TypeError or OverflowError for values that the format does not have; those are mistakes of the caller.
    """
    packed: bytes = msgpack.packb(_ordered(value), use_bin_type=True, strict_types=True)
    return packed


def decode(encoded: bytes) -> dict[str, Value]:
    """Return the map that `encoded` spells.

    Raises RecordInvalid when it is no map, or is not spelt canonically.
    """
    try:
        value = msgpack.unpackb(encoded, raw=False, strict_map_key=True)
        if not isinstance(value, dict):
            raise RecordInvalid("not a map")
        respelt = encode(value)
    # The C decoder signals malformed input with several unrelated exception types, among them a bare ValueError.
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise RecordInvalid(f"not canonical msgpack: {error}") from error
    if respelt != encoded:
        raise RecordInvalid("not the canonical spelling")
    return value


def _ordered(value: Value) -> Value:
    match value:
        case dict():
            return {_key(key): _ordered(value[key]) for key in sorted(value)}
        case list():
            return [_ordered(item) for item in value]
        case bool() | int() | str() | bytes():
            return value
        case _:
            raise TypeError(f"a record can't hold {type(value).__name__}")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a map key must be a string, not {type(key).__name__}")
    return key
