"""Hunk headers that count their lines wrong are corrected where that is certain, and otherwise refused."""

import re

import pytest
from hypothesis import assume, given, strategies as st

from mcptools.edit.patch_parser import InvalidPatch, parse_patch, parse_patches
from mcptools.edit.unified_diff import Applied, apply_patch
from objstore import unified_diff

HEADER = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)

lines = st.sampled_from(["a", "b", "c", "d", "e", "", " x", "-x", "+x", "@@", "-- a", "++ b", "diff", "\\"])
texts = st.builds(lambda parts: "".join(f"{part}\n" for part in parts), st.lists(lines, min_size=1, max_size=25))


def diff(old: str, new: str, context: int = 3) -> str:
    return unified_diff(old.encode(), new.encode(), path_before="f", path_after="f", context=context).decode()


def outcome(patch: str, content: str) -> bytes | None:
    """Return what a corrected patch makes of a text, or None if it is refused."""
    try:
        made = apply_patch(content.encode(), parse_patch(patch, correct=True))
    except InvalidPatch:
        return None
    return made.content if isinstance(made, Applied) else None


@st.composite
def miscounted(draw: st.DrawFn, patch: str) -> str:
    """Return a patch with other counts in some of its headers."""

    def other(found: re.Match[str]) -> str:
        start, old, new_start, new = found.groups("1")
        shifts = draw(st.tuples(st.integers(-3, 3), st.integers(-3, 3)))
        counts = [max(int(old) + shifts[0], 0), max(int(new) + shifts[1], 0)]
        return f"@@ -{start},{counts[0]} +{new_start},{counts[1]} @@"

    return HEADER.sub(other, patch)


@given(texts, texts, st.integers(0, 3), st.data())
def test_patch_with_wrong_counts_applies_like_the_right_one_or_is_refused(
    old: str, new: str, context: int, data: st.DataObject
) -> None:
    right = diff(old, new, context)
    assume(right)
    # A removed "-- a" above an added "++ b" are the headers of a file where the counts end above them.
    assume("\n--- a\n+++ b\n" not in right)
    wrong = data.draw(miscounted(right))
    for content in (old, f"above\n{old}", f"{old}{old}", new):
        expected = apply_patch(content.encode(), parse_patch(right))
        found = outcome(wrong, content)
        assert found is None or (isinstance(expected, Applied) and found == expected.content)


@given(texts, texts, st.integers(0, 3), st.data())
def test_hunk_cut_short_is_never_applied(old: str, new: str, context: int, data: st.DataObject) -> None:
    right = diff(old, new, context)
    assume(right)
    kept = right.splitlines(keepends=True)
    last = max(number for number, line in enumerate(kept) if line.startswith("@@ "))
    length = data.draw(st.integers(last + 1, len(kept) - 1))
    cut = "".join(kept[:length])
    for content in (old, f"{old}{old}", new):
        assert outcome(cut, content) is None


@given(texts, texts, st.integers(0, 3))
def test_right_counts_are_left_alone(old: str, new: str, context: int) -> None:
    right = diff(old, new, context)
    assume(right)
    assert parse_patch(right, correct=True) == parse_patch(right)


OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
LAST = "@@ -9,2 +9,2 @@\n nine\n-ten\n+TEN\n"


@pytest.mark.parametrize(
    ("hunks", "result"),
    [
        ("@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n three\n", OLD.replace("two", "TWO")),
        ("@@ -1 +1 @@ in a function\n one\n-two\n+TWO\n three\n", OLD.replace("two", "TWO")),
        ("@@ -1,9 +1,9 @@\n one\n-two\n+TWO\n" + LAST, OLD.replace("two", "TWO").replace("ten", "TEN")),
        ("@@ -1,0 +1,0 @@\n-one\n", OLD.replace("one\n", "")),
        # The last hunk may have been cut short: one of its counts is more than its lines.
        ("@@ -1,2 +1,9 @@\n one\n-two\n+TWO\n three\n", None),
        ("@@ -1,9 +1,2 @@\n one\n-two\n+TWO\n three\n", None),
        # What ends the hunk is no header.
        ("@@ -1,1 +1,1 @@\n one\n-two\n+TWO\nthree\n", None),
        ("@@ -1,1 +1,1 @@\n one\n-two\n+TWO\n\n" + LAST, None),
        ("@@ -1,1 +1,1 @@\n one\n-two\n+TWO\n-- \n2.43.0\n", None),
        ("@@ -1,1 +1,1 @@\n one\n-two\n+TWO\n--- g\n+++ g\n@@ -1 +1 @@\n-a\n+b\n", None),
        # There is no old line to check.
        ("@@ -1,1 +1,1 @@\n+TWO\n" + LAST, None),
    ],
)
def test_counts_are_corrected_only_where_the_end_of_each_hunk_is_certain(hunks: str, result: str | None) -> None:
    assert outcome(f"--- f\n+++ f\n{hunks}", OLD) == (None if result is None else result.encode())


def test_corrected_hunk_must_occur_exactly_once_even_at_its_stated_line() -> None:
    patch = "--- f\n+++ f\n@@ -1,1 +1,1 @@\n one\n-two\n+TWO\n"
    assert outcome(patch, "one\ntwo\n") == b"one\nTWO\n"
    assert outcome(patch, "above\none\ntwo\n") == b"above\none\nTWO\n"
    assert outcome(patch, "one\ntwo\none\ntwo\n") is None


def test_headers_of_git_end_a_hunk_with_wrong_counts() -> None:
    of_git = "diff --git a/g b/g\nindex 1..2\n--- a/g\n+++ b/g\n"
    patch = f"--- a/f\n+++ b/f\n@@ -1,9 +1 @@\n-one\n+1\n{of_git}@@ -1 +1 @@\n-a\n+b\n"
    first, second = parse_patches(patch, correct=True)
    assert [hunk.counted for hunk in (*first.hunks, *second.hunks)] == [(9, 1), None]
    assert (first.doubt is not None, second.doubt) == (True, None)
    with pytest.raises(InvalidPatch):
        parse_patches(patch)
