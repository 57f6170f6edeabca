"""Hashline tags are FNV-1a hashes that depend only on a line's content."""

import pytest
from hypothesis import given, strategies as st

from mcptools.edit.hashline import hashline, hashlines, hashlines_around, line_tag


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
def test_tag_is_the_lowest_byte_of_fnv_1a(line: bytes, tag: str) -> None:
    assert line_tag(line) == tag


@given(st.binary(), st.sampled_from([b"", b" ", b"\t", b"\n", b"\r\n", b" \t \r\n", b"\f", b"\v\n"]))
def test_trailing_whitespace_does_not_change_the_tag(line: bytes, blanks: bytes) -> None:
    assert line_tag(line + blanks) == line_tag(line)


@given(st.integers(min_value=1), st.binary())
def test_hashline_is_number_tag_and_content(number: int, line: bytes) -> None:
    shown = line.decode(errors="replace")
    first, _, rest = hashline(number, line, shown).partition("|")
    assert first == f"{number}:{line_tag(line)}"
    assert rest == shown


def test_hashlines_omit_line_endings_and_escape_bytes_that_are_not_utf8() -> None:
    lines = [b"a\r\n", b"\xff\r b\n", b"c"]
    tags = [line_tag(line) for line in lines]
    assert hashlines(lines) == f"1:{tags[0]}|a\n2:{tags[1]}|\\xff\r b\n3:{tags[2]}|c\n"
    assert hashlines(lines[1:2], 7) == f"7:{tags[1]}|\\xff\r b\n"


@pytest.mark.parametrize(
    ("line_numbers", "shown"),
    [
        ([5], "34567"),
        ([1], "123"),
        ([9], "789"),
        ([12], "789"),
        ([1, 9], "123.789"),
        ([2, 6], "12345678"),
        ([1, 7], "123.56789"),
        ([], ""),
    ],
)
def test_context_lines_are_shown_and_gaps_are_marked(line_numbers: list[int], shown: str) -> None:
    lines = [b"%d\n" % number for number in range(1, 10)]
    lines_shown = hashlines_around(lines, line_numbers)
    assert lines_shown.splitlines() == [
        "..." if mark == "." else f"{mark}:{line_tag(mark.encode())}|{mark}" for mark in shown
    ]


def test_lone_cr_is_shown() -> None:
    assert hashlines([b"a\r\n", b"b\r"]) == f"1:{line_tag(b'a')}|a\n2:{line_tag(b'b')}|b\r\n"
