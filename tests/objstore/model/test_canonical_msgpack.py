"""Canonical msgpack: each value has one encoding, and no other is accepted."""

from typing import cast

import msgpack
import pytest
from hypothesis import given, strategies as st

from objstore.model.canonical_msgpack import Value, decode, encode
from objstore.values.errors import RecordInvalid

# Lengths on both sides of every limit at which msgpack spells a length otherwise.
LENGTHS = st.sampled_from([0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536])
scalars: st.SearchStrategy[Value] = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.text(max_size=8),
    st.binary(max_size=8),
    LENGTHS.map(lambda length: "x" * length),
    LENGTHS.map(lambda length: b"x" * length),
    LENGTHS.map(lambda length: [1] * length),
)
names = st.text(max_size=6)
values: st.SearchStrategy[Value] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
maps = st.dictionaries(names, values, max_size=4)


@given(maps)
def test_decoding_inverts_encoding(value: dict[str, Value]) -> None:
    assert decode(encode(value)) == value


@given(maps)
def test_the_order_of_insertion_does_not_change_the_encoding(value: dict[str, Value]) -> None:
    assert encode(dict(reversed(value.items()))) == encode(value)


@given(st.binary(max_size=80))
def test_whatever_decodes_is_the_encoding_of_its_value(encoded: bytes) -> None:
    try:
        value = decode(encoded)
    except RecordInvalid:
        return
    assert encode(value) == encoded


@given(maps, st.data())
def test_no_altered_encoding_decodes_to_the_same_value(value: dict[str, Value], data: st.DataObject) -> None:
    encoded = bytearray(encode(value))
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] ^= data.draw(st.integers(1, 255))
    try:
        read = decode(bytes(encoded))
    except RecordInvalid:
        return
    # 1 == True in Python, so values are compared by their repr.
    assert encode(read) != encode(value)


# Each spells {"a": 1} or something as simple, but not in the one way.
OTHER_SPELLINGS = {
    "an integer in two bytes that fits in one": b"\x81\xa1a\xcc\x01",
    "an integer in eight bytes": b"\x81\xa1a\xcf\0\0\0\0\0\0\0\x01",
    "a positive integer as a signed one": b"\x81\xa1a\xd0\x01",
    "a map with a length of two bytes": b"\xde\0\x01\xa1a\x01",
    "a key with a length of one byte": b"\x81\xd9\x01a\x01",
    "an array with a length of two bytes": b"\x81\xa1a\xdc\0\x01\x01",
    "bytes with a length of two bytes": b"\x81\xa1a\xc5\0\x01x",
    "keys that do not ascend": b"\x82\xa1b\x01\xa1a\x01",
    "a key that comes twice": b"\x82\xa1a\x01\xa1a\x01",
    "a key that is bytes": b"\x81\xc4\x01a\x01",
    "a key that is a number": b"\x81\x01\x01",
    "nil": b"\x81\xa1a\xc0",
    "a float": b"\x81\xa1a\xcb\x3f\xf0\0\0\0\0\0\0",
    "an extension type": b"\x81\xa1a\xd4\x01\x01",
    "a timestamp": b"\x81\xa1a\xd6\xff\0\0\0\x01",
    "a string that is not UTF-8": b"\x81\xa1a\xa1\xff",
    "a surrogate": b"\x81\xa1a\xa3\xed\xa0\x80",
    "bytes behind the end": b"\x81\xa1a\x01\0",
    "an end too soon": b"\x81\xa1a",
    "nothing": b"",
    "no map": b"\x91\x01",
    "a byte that msgpack never uses": b"\xc1",
}


@pytest.mark.parametrize("encoded", OTHER_SPELLINGS.values(), ids=OTHER_SPELLINGS.keys())
def test_other_encodings_are_refused(encoded: bytes) -> None:
    with pytest.raises(RecordInvalid):
        decode(encoded)


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(b"\xdf\xff\xff\xff\xff", id="map"),
        pytest.param(b"\x81\xa1a\xdd\xff\xff\xff\xff", id="array"),
        pytest.param(b"\x81\xa1a\xc6\xff\xff\xff\xff", id="bytes"),
        pytest.param(b"\x81\xa1a\xdb\xff\xff\xff\xff", id="string"),
        pytest.param(b"\x81\xa1a" + b"\x91" * 100_000, id="depth"),
    ],
)
def test_a_false_length_or_depth_is_refused_without_taking_memory(encoded: bytes) -> None:
    with pytest.raises(RecordInvalid):
        decode(encoded)


@pytest.mark.parametrize("value", [None, 1.5, (1,), {1}, {1: 2}, bytearray(b"x")], ids=repr)
def test_unsupported_values_raise_an_error(value: object) -> None:
    with pytest.raises(TypeError):
        encode(cast("dict[str, Value]", {"a": value}))


@given(maps)
def test_the_encoding_is_plain_msgpack(value: dict[str, Value]) -> None:
    assert msgpack.unpackb(encode(value)) == value
