"""Hashline tags are FNV-1a, and depend on what a line says only."""

import pytest
from hypothesis import given, strategies as st

from mcptools.hashline import hashline, line_tag


@pytest.mark.parametrize(
    ("line", "tag"),
    [
        # Published values of the 32-bit FNV-1a: "" is 811c9dc5, "a" e40c292c, "foobar" bf9cf968.
        (b"", "c5"),
        (b"a", "2c"),
        (b"foobar", "68"),
        (b"function hello() {", "f3"),
        (b'  return "world";', "18"),
        (b"}", "a8"),
    ],
)
def test_a_tag_is_the_lowest_byte_of_fnv_1a(line: bytes, tag: str) -> None:
    assert line_tag(line) == tag


@given(st.binary(), st.sampled_from([b"", b" ", b"\t", b"\n", b"\r\n", b" \t \r\n"]))
def test_trailing_white_space_does_not_count(line: bytes, blanks: bytes) -> None:
    assert line_tag(line + blanks) == line_tag(line)


@given(st.integers(min_value=1), st.binary())
def test_a_hashline_is_number_tag_and_content(number: int, line: bytes) -> None:
    shown = line.decode(errors="replace")
    first, _, rest = hashline(number, line, shown).partition("|")
    assert first == f"{number}:{line_tag(line)}"
    assert rest == shown
