"""Splices: a weave that records splices equals one that records whole texts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, strategies as st

from objstore.text.diff import Hunk, diff_lines
from objstore.text.lines import common_affixes
from objstore.text.splice import Splice
from objstore.weave.line_weave import Weave
from tests.support.weave_statuses import set_live

# Few lines, with shared beginnings: deltas then take in more, or less, than the lines that changed.
texts = st.lists(st.sampled_from([b"", b"a", b"ab", b"ac", b"b", b"\x00\xff"]), max_size=9).flatmap(
    lambda lines: st.sampled_from([b"\n".join(lines), b"".join(line + b"\n" for line in lines)])
)


def splice_of(before: bytes, after: bytes, less: int = 0) -> Splice:
    """Return the splice of a delta that shares up to `less` bytes fewer at each end than it could."""
    prefix, suffix = common_affixes(before, after)
    prefix, suffix = max(0, prefix - less), max(0, suffix - less)
    return Splice(prefix, len(before) - suffix, after[prefix : len(after) - suffix])


@given(st.lists(texts, min_size=2, max_size=6), st.integers(0, 3), st.data())
def test_recording_splices_equals_recording_texts(history: list[bytes], less: int, data: st.DataObject) -> None:
    """The complete states are equal, and so are the results of all decisions; some are made on the way."""
    recorded, followed = Weave(history[0]), Weave(history[0])
    for content in history[1:]:
        now = recorded.text()
        if now is None or not recorded.is_clean:
            return
        hunks = diff_lines(now, content)
        units = recorded.record(content, hunks)
        assert followed.record_splice(splice_of(now, content, less), hunks) == units
        flips = {unit: False for unit in units[1:] if data.draw(st.integers(0, 5)) == 0}
        assert set_live(recorded, flips) == set_live(followed, flips)
        assert recorded.text() == followed.text()
        assert recorded.blame() == followed.blame()
        if recorded.is_clean:
            assert recorded.state() == followed.state()


@example(b"a\nab\n", b"a\nb\nab\n", b"b\na\nab\n")  # a line goes in, and the hunk says another place
@example(b"\n", b"a\n", b"a\n\n")  # a part of a line goes in, and the hunk says a line
@given(texts, texts, texts)
def test_hunks_that_disagree_with_the_splice_are_refused_and_nothing_changes(
    before: bytes, after: bytes, other: bytes
) -> None:
    hunks = diff_lines(before, other)
    weave = Weave(before)
    try:
        Weave(before).record(after, hunks)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            weave.record_splice(splice_of(before, after), hunks)
        assert (weave.text(), weave.blame()) == (before, Weave(before).blame())
    else:
        weave.record_splice(splice_of(before, after), hunks)
        assert weave.text() == after


def test_a_splice_beyond_the_text_is_refused() -> None:
    weave = Weave(b"a\nb\nc\n")
    for splice in (Splice(2, 7, b"x\n"), Splice(3, 2, b"x\n")):
        with pytest.raises(ValueError, match="no part"):
            weave.record_splice(splice, [Hunk(1, 1, 1, 1)])


def test_splice_of_a_missing_file_is_refused() -> None:
    with pytest.raises(ValueError, match="no text"):
        Weave(None).record_splice(Splice(0, 0, b"x\n"), [])


@given(st.lists(texts, min_size=1, max_size=5), st.data())
def test_slices_of_a_text_equal_slices_of_its_bytes(history: list[bytes], data: st.DataObject) -> None:
    weave = Weave(history[0])
    for before, content in pairwise(history):
        weave.record(content, diff_lines(before, content))
    text = weave.text() or b""
    assert weave.byte_count() == len(text)
    low = data.draw(st.integers(0, len(text)))
    high = data.draw(st.integers(low, len(text)))
    assert weave.between(low, high) == text[low:high]
    ended = text if not text or text.endswith(b"\n") else text + b"\n"
    lines = ended.split(b"\n")[:-1]
    line = data.draw(st.integers(0, len(lines)))
    count = data.draw(st.integers(0, len(lines) - line))
    above, inside = (b"".join(each + b"\n" for each in part) for part in (lines[:line], lines[line : line + count]))
    assert weave.passage(line, count) == (len(above), inside)
    with pytest.raises(ValueError, match="fewer lines"):
        weave.passage(line, len(lines) - line + 1)
