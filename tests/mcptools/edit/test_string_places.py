"""The strings of exact edits are found again from their places and the file's bytes before and after."""

import pytest
from hypothesis import example, given, strategies as st

from mcptools.edit.exact import Edited, LineRange, Replacement, apply_edits
from mcptools.edit.string_places import GivenStrings, decode_places, encode_places, given_strings


@st.composite
def calls(draw: st.DrawFn) -> tuple[bytes, list[Replacement]]:
    """Draw a text, and edits that apply to it."""
    before = draw(st.binary(min_size=1, max_size=30))
    edits: list[Replacement] = []
    edited = Edited(content=before, line_ranges=(), starts=(), spans=())
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(edited.content)))
        old = edited.content[start : start + draw(st.integers(1, 8))]
        tried = [*edits, Replacement(old=old, new=draw(st.binary(max_size=8)))]
        outcome = apply_edits(before, tried) if old else None
        if isinstance(outcome, Edited):
            edits, edited = tried, outcome
    return before, edits


def applied(before: bytes, given: list[Replacement]) -> Edited:
    edited = apply_edits(before, given)
    assert isinstance(edited, Edited)
    return edited


@given(calls())
@example((b"AAA", [Replacement(old=b"AAA", new=b"BBB"), Replacement(old=b"BBB", new=b"CCC")]))
@example((b"ab", [Replacement(old=b"a", new=b"xyz"), Replacement(old=b"y", new=b"")]))
@example((b"a\nb\n", [Replacement(old=b"b", new=b""), Replacement(old=b"a", new=b"b")]))
def test_strings_found_are_those_that_were_given(call: tuple[bytes, list[Replacement]]) -> None:
    before, wanted = call
    if not wanted:
        return
    edited = applied(before, wanted)
    places = decode_places(encode_places(edited, wanted, rebased=False))
    assert places is not None
    assert tuple(place.lines for place in places) == edited.line_ranges
    found = given_strings(before, edited.content, places)
    assert found is not None
    for strings, edit in zip(found, wanted, strict=True):
        assert strings.old in {None, edit.old}
        assert strings.new in {None, edit.new}
    assert found[0].old == wanted[0].old
    assert found[-1].new == wanted[-1].new


def test_string_that_a_later_edit_replaced_is_not_found() -> None:
    wanted = [Replacement(old=b"AAA", new=b"BBB"), Replacement(old=b"BBB", new=b"CCC")]
    places = decode_places(encode_places(applied(b"AAA", wanted), wanted, rebased=False))
    assert places is not None
    assert given_strings(b"AAA", b"CCC", places) == [
        GivenStrings(old=b"AAA", new=None),
        GivenStrings(old=None, new=b"CCC"),
    ]


def test_rebased_call_keeps_its_lines_alone() -> None:
    wanted = [Replacement(old=b"b", new=b"B")]
    text = encode_places(applied(b"a\nb\n", wanted), wanted, rebased=True)
    places = decode_places(text)
    assert text == "2-2"
    assert places is not None
    assert (places[0].lines, given_strings(b"a\nb\n", b"a\nB\n", places)) == (LineRange(start=2, end=2), None)


def test_call_of_very_many_edits_keeps_no_places() -> None:
    before = b"".join(b"<%d>" % number for number in range(1001))
    wanted = [Replacement(old=b"<%d>" % number, new=b"") for number in range(1001)]
    assert encode_places(applied(before, wanted[:1000]), wanted[:1000], rebased=False)
    assert encode_places(applied(before, wanted), wanted, rebased=False) == ""


@pytest.mark.parametrize("text", ["", "3", "3-3 ", "3-3@1:2", "3-3@1:2:3:4", "-1-3", "3-3@1:2:-3", "9" * 16 + "-3"])
def test_other_text_is_no_place(text: str) -> None:
    assert decode_places(text) is None


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (b"abc", b"xbc", "1-1@3:1:1"),  # past the end
        (b"abc", b"xbc", "1-1@0:4:1"),
        (b"abc", b"xbc", "1-1@0:1:2"),  # another length after it
        (b"abc", b"xbd", "1-1@0:1:1"),  # another change too
        (b"", b"", "1-1@0:1:999999999999999"),
    ],
)
def test_places_that_do_not_fit_the_file_find_nothing(before: bytes, after: bytes, text: str) -> None:
    places = decode_places(text)
    assert places is not None
    assert given_strings(before, after, places) is None
