"""Diffs, hunks and lines: properties over random texts, and examples as pictures."""

from __future__ import annotations

import gc
import random

import pytest
from hypothesis import example, given, strategies as st

from objstore.text.diff import Hunk, Span, diff_lines, hunks_fit, hunks_from_spans, joined, split_lines
from objstore.text.hunks import VerifiedHunks, hunks_through, inserted_texts
from objstore.text.lines import closed, lines_end

texts = st.lists(st.sampled_from([b"", b"a", b"b", b"}", b"\r", b"\x00\xff"]), max_size=12).flatmap(
    lambda lines: st.sampled_from([b"\n".join(lines), b"".join(line + b"\n" for line in lines)])
)


def lines_of(text: bytes) -> list[bytes]:
    return closed(text).split(b"\n")[:-1]


def applied(before: bytes, after: bytes, hunks: tuple[Hunk, ...]) -> list[bytes]:
    """Apply each hunk to the lines of `before` in the simplest way."""
    old, new = lines_of(before), lines_of(after)
    for hunk in reversed(hunks):
        old[hunk.old_start : hunk.old_end] = new[hunk.new_start : hunk.new_end]
    return old


def text(picture: str) -> bytes:
    return b"".join(word.encode() + b"\n" for word in picture.split())


def picture(before: str, after: str) -> str:
    """Show a diff in one row: unchanged words plain, removed -word, added +word."""
    old, new, at, row = before.split(), after.split(), 0, []
    for hunk in diff_lines(text(before), text(after)):
        row += old[at : hunk.old_start]
        row += ["-" + word for word in old[hunk.old_start : hunk.old_end]]
        row += ["+" + word for word in new[hunk.new_start : hunk.new_end]]
        at = hunk.old_end
    return " ".join(row + old[at:])


# -- lines


@given(st.binary())
def test_joining_split_lines_is_identity(content: bytes) -> None:
    lines = split_lines(content)
    assert b"".join(lines) == content
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines[:-1])


@given(texts, st.data())
def test_lines_end_counts_lines(content: bytes, data: st.DataObject) -> None:
    whole = closed(content) * 40
    lines = split_lines(whole)
    first = data.draw(st.integers(0, len(lines)))
    count = data.draw(st.integers(0, len(lines) - first))
    start = len(b"".join(lines[:first]))
    assert lines_end(whole, start, count) == start + len(b"".join(lines[first : first + count]))
    with pytest.raises(ValueError, match="fewer lines"):
        lines_end(whole, start, len(lines) - first + 1)


# -- diff


@given(texts, texts)
@example(b"a", b"a\n")
@example(b"", b"\n")
def test_hunks_turn_before_into_after(before: bytes, after: bytes) -> None:
    hunks = diff_lines(before, after)
    assert hunks_fit(before, after, hunks)
    assert applied(before, after, hunks) == lines_of(after)


@given(texts)
def test_equal_texts_have_no_hunks(content: bytes) -> None:
    assert diff_lines(content, content) == ()


def test_a_final_newline_is_not_a_difference_of_lines() -> None:
    assert diff_lines(b"a\nb", b"a\nb\n") == ()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("p A q", "p B q", "p -A +B q"),
        ("p q", "p N q", "p +N q"),
        ("p X q", "p q", "p -X q"),
        ("a b c d e", "a B c D e", "a -b +B c -d +D e"),
        ("a b c d", "c d a b", "-a -b c d +a +b"),
        ("f { 1 } g { 2 }", "f { 1 } h { 3 } g { 2 }", "f { 1 } +h +{ +3 +} g { 2 }"),
        ("x x x", "x x", "-x x x"),
        ("a b", "c a", "+c a -b"),
        ("a b", "b c", "-a b +c"),
        ("p x x q", "p x y q", "p x -x +y q"),
        ("p x x z q", "p x y z q", "p x -x +y z q"),
    ],
)
def test_hunks_have_natural_boundaries(before: str, after: str, expected: str) -> None:
    assert picture(before, after) == expected


def test_a_diff_frees_its_lines_without_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        assert len(diff_lines(text("a b c d e f"), text("a x c d y f z"))) == 3
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_an_inserted_block_keeps_its_own_opener() -> None:
    before = b"z\n\n/**\n * B\n */\nb\n"
    after = b"z\n\n/**\n * A\n */\na\n\n/**\n * B\n */\nb\n"
    assert diff_lines(before, after) == (Hunk(2, 0, 2, 5),)


def test_an_inserted_function_begins_at_its_first_line() -> None:
    before = b"def a():\n    x()\n\ndef c():\n    x()\n"
    after = b"def a():\n    x()\n\ndef b():\n    x()\n\ndef c():\n    x()\n"
    assert diff_lines(before, after) == (Hunk(3, 0, 3, 3),)


def test_a_hunk_is_not_moved_against_the_one_above() -> None:
    before, after = b"X\nb\nk\nk\nZ\n", b"\nb\nb\nk\nk\nW\n"
    assert diff_lines(before, after) == (Hunk(0, 1, 0, 1), Hunk(2, 0, 2, 1), Hunk(4, 1, 5, 1))


# -- lines that repeat


def changed_lines(hunks: tuple[Hunk, ...]) -> int:
    return sum(hunk.old_count + hunk.new_count for hunk in hunks)


def text_of_numbers(numbers: list[int]) -> bytes:
    return b"".join(b"%d\n" % number for number in numbers)


@st.composite
def texts_and_changes(draw: st.DrawFn) -> tuple[bytes, bytes, int]:
    """Draw a text of up to 5,000 lines, the text after some changes, and how many lines these name.

    The lines are of any alphabet, in runs of one or many alike.
    """
    draws = draw(st.randoms(use_true_random=False))
    kinds = draw(st.sampled_from([1, 2, 3, 16, 256, 10**9]))
    size, run = draw(st.sampled_from([10, 400, 1500, 5000])), draw(st.sampled_from([1, 30, 1000]))
    old = [kind for _ in range(0, size, run) for kind in [draws.randrange(kinds)] * draws.randint(1, 2 * run - 1)]
    new, changed = list(old), 0
    for _ in range(draw(st.sampled_from([1, 2, 10, 100]))):
        start, count = draws.randrange(len(new) + 1), draws.choice([1, 1, 2, 10])
        taken = new[start : start + count]
        match draws.randrange(4):
            case 0:
                new[start : start + count] = [draws.randrange(kinds + 5) for _ in taken]
            case 1:
                del new[start : start + count]
            case 2:
                taken = [draws.randrange(kinds + 5) for _ in range(count)]
                new[start:start] = taken
            case _:
                del new[start : start + count]
                place = draws.randrange(len(new) + 1)
                new[place:place] = taken
        changed += len(taken)
    return text_of_numbers(old), text_of_numbers(new), changed


@given(texts_and_changes())
def test_a_diff_shows_at_most_twelve_lines_for_each_line_that_changed(change: tuple[bytes, bytes, int]) -> None:
    """Two for each removed and added line, four times that for anchors, and half of it again for joined hunks."""
    before, after, changed = change
    hunks = diff_lines(before, after)
    assert hunks_fit(before, after, hunks)
    assert changed_lines(hunks) <= 12 * changed


@pytest.mark.parametrize("kinds", [1, 2, 16, 256])
@pytest.mark.parametrize("lines", [500, 3_000, 100_000])
def test_two_changed_lines_are_four_lines_of_a_diff_however_often_the_others_repeat(kinds: int, lines: int) -> None:
    rng = random.Random(3)
    old = [rng.randrange(kinds) for _ in range(lines)]
    new = [*old[:3], 1000, *old[4:-4], 2000, *old[-3:]]
    hunks = diff_lines(text_of_numbers(old), text_of_numbers(new))
    assert changed_lines(hunks) == 4
    assert len(hunks) <= (2 if kinds > 1 else 3)


@pytest.mark.parametrize("edits", [20, 1_000])
def test_many_changed_lines_among_many_equal_ones_are_found(edits: int) -> None:
    rng = random.Random(3)
    old = [rng.randrange(8) for _ in range(100_000)]
    new = list(old)
    for place in rng.sample(range(len(new)), edits):
        new[place] = 8 + place
    assert changed_lines(diff_lines(text_of_numbers(old), text_of_numbers(new))) == 2 * edits


@pytest.mark.parametrize(("kinds", "run"), [(3, 1), (5, 1), (50, 1), (1000, 1), (2, 500), (50, 20), (1000, 5)])
def test_a_diff_of_many_lines_shows_few_for_each_that_changed_or_there_is_none_to_find(kinds: int, run: int) -> None:
    chosen = random.Random(kinds)
    old = [line for _ in range(0, 25_000, run) for line in [b"%d\n" % chosen.randrange(kinds)] * run]
    for edits in (30, 2_500, 25_000):
        new, changed = list(old), 0
        for _ in range(edits):
            at, line = chosen.randrange(len(new)), b"%d\n" % chosen.randrange(kinds)
            size, lines = chosen.choice([(0, [line]), (1, []), (1, [line])])
            new[at : at + size] = lines
            changed += size + len(lines)
        hunks = diff_lines(b"".join(old), b"".join(new))
        assert sum(hunk.old_count + hunk.new_count for hunk in hunks) <= 9 * changed


def test_a_moved_line_is_two_hunks_though_it_is_the_only_unique_one() -> None:
    before, after = b"u\n" + b"r\n" * 3000, b"r\n" * 3000 + b"u\n"
    assert diff_lines(before, after) == (Hunk(0, 1, 0, 0), Hunk(3001, 0, 3000, 1))


def test_a_moved_block_of_repeated_lines_is_two_hunks() -> None:
    rng = random.Random(3)
    lines = [rng.randrange(4) for _ in range(20_000)]
    moved = lines[:100] + lines[400:19_000] + lines[100:400] + lines[19_000:]
    assert changed_lines(diff_lines(text_of_numbers(lines), text_of_numbers(moved))) == 600


# -- joined hunks


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a b } c d", "A B } C D", "-a -b -} -c -d +A +B +} +C +D"),
        ("a b }; c d ); e f", "A B }; C D ); E F", "-a -b -}; -c -d -); -e -f +A +B +}; +C +D +); +E +F"),
        ("a b return c d", "A B return C D", "-a -b +A +B return -c -d +C +D"),
        ("a b é c d", "A B é C D", "-a -b +A +B é -c -d +C +D"),
        ("a b } } c d", "A B } } C D", "-a -b +A +B } } -c -d +C +D"),
        ("a } c d", "A } C D", "-a +A } -c -d +C +D"),
        ("a b } c d", "A B } c d e", "-a -b +A +B } c d +e"),
        ("a b }", "A B } C D E F", "-a -b +A +B } +C +D +E +F"),
    ],
)
def test_replacements_of_several_lines_parted_by_a_bracket_are_one_hunk(before: str, after: str, expected: str) -> None:
    assert picture(before, after) == expected


def test_a_blank_line_parts_hunks() -> None:
    assert len(diff_lines(b"a\nb\n\nc\nd\n", b"A\nB\n\nC\nD\n")) == 2


def test_joining_joined_hunks_is_identity() -> None:
    before, after = text("a b } c d ) e f"), text("A B } C D ) E F")
    hunks = diff_lines(before, after)
    parted = [Hunk(0, 2, 0, 2), Hunk(3, 2, 3, 2), Hunk(6, 2, 6, 2)]
    assert joined(parted, lines_of(before)) == joined(hunks, lines_of(before)) == list(hunks)


# -- costs


def test_pathological_inputs_finish() -> None:
    """Inputs for which a quadratic diff would not finish within a test run."""
    rng = random.Random(7)
    few = [b"%d\n" % rng.randrange(3) for _ in range(60_000)]
    many = [b"%d\n" % n for n in range(30_000)]
    shuffled = rng.sample(many + many, 60_000)
    for before, after in [
        (b"x\n" * 100_000, b"y\n" + b"x\n" * 50_000 + b"y\n" + b"x\n" * 49_000 + b"y\n"),
        (b"".join(few), b"".join(reversed(few))),
        (b"".join(many + many), b"".join(shuffled)),
        (b"q" * 5_000_000, b"q" * 4_999_999),
        *(
            tuple(text_of_numbers([rng.randrange(kinds) for _ in range(100_000)]) for _ in range(2))
            for kinds in (2, 100)
        ),
    ]:
        assert hunks_fit(before, after, diff_lines(before, after))


# -- spans


@st.composite
def spans_over(draw: st.DrawFn) -> tuple[bytes, bytes, list[Span]]:
    """Draw a text, the text after some replacements, and the replaced bytes."""
    before = draw(texts)
    after, at, spans = b"", 0, []
    while at <= len(before) and draw(st.booleans()):
        start = draw(st.integers(at, len(before)))
        end = draw(st.integers(start, min(start + 5, len(before))))
        new = draw(st.sampled_from([b"", b"x", b"\n", b"a\n", b"b\na\n", b"\nb", before[start:end]]))
        after += before[at:start]
        spans.append(Span(start, end, len(after), len(after) + len(new)))
        after += new
        at = end
    return before, after + before[at:], spans


@given(spans_over())
def test_hunks_from_spans_turn_before_into_after(change: tuple[bytes, bytes, list[Span]]) -> None:
    before, after, spans = change
    hunks = hunks_from_spans(before, after, spans)
    assert hunks_fit(before, after, hunks)
    assert applied(before, after, hunks) == lines_of(after)


@given(spans_over(), st.data())
def test_the_hunks_of_two_changes_combine_into_one_change(
    change: tuple[bytes, bytes, list[Span]], data: st.DataObject
) -> None:
    before, between, spans = change
    after = data.draw(texts)
    first, second = hunks_from_spans(before, between, spans), diff_lines(between, after)
    assert hunks_fit(before, after, hunks_through(before, after, first, second))
    assert hunks_through(before, between, first, ()) == first
    assert hunks_through(between, after, (), second) == second


def test_combined_hunks_keep_the_lines_that_each_change_named() -> None:
    first, second = [Hunk(1, 1, 1, 0)], [Hunk(2, 0, 2, 1), Hunk(4, 1, 5, 0)]
    hunks = hunks_through(text("} } } } } } e"), text("} } } } } e"), first, second)
    assert hunks == (Hunk(1, 1, 1, 0), Hunk(3, 0, 2, 1), Hunk(5, 1, 5, 0))
    assert hunks_through(text("a b c"), text("a b c"), [Hunk(1, 1, 1, 2)], [Hunk(1, 2, 1, 1)]) == ()


@given(spans_over())
def test_spans_give_what_texts_share_at_their_ends(change: tuple[bytes, bytes, list[Span]]) -> None:
    before, after, spans = change
    prefix, suffix = hunks_from_spans(before, after, spans).shared
    assert prefix >= (spans[0].old_start if spans else len(before))
    assert prefix + suffix <= min(len(before), len(after))
    assert before[:prefix] == after[:prefix]
    assert before[len(before) - suffix :] == after[len(after) - suffix :]


def test_verified_hunks_are_trusted_only_for_the_same_text_objects() -> None:
    before, after = b"a\nb\n", b"a\nB\n"
    hunks = hunks_from_spans(before, after, [Span(2, 3, 2, 3)])
    assert VerifiedHunks.known(hunks, before, after) is hunks
    assert VerifiedHunks.known(tuple(hunks), before, after) is None
    for others in [(before, bytes(bytearray(after))), (b"x\nb\n", after), (after, before)]:
        assert VerifiedHunks.known(hunks, *others) is None


def test_spans_distinguish_equal_lines() -> None:
    before, after = b"x\nx\n", b"x\n"
    assert hunks_from_spans(before, after, [Span(0, 2, 0, 0)]) == (Hunk(0, 1, 0, 0),)
    assert hunks_from_spans(before, after, [Span(2, 4, 2, 2)]) == (Hunk(1, 1, 1, 0),)
    assert hunks_from_spans(before, after, [Span(1, 3, 1, 1)]) == (Hunk(1, 1, 1, 0),)


@pytest.mark.parametrize(
    ("before", "after", "spans", "expected"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n", [(2, 3, 2, 3)], (Hunk(1, 1, 1, 1),)),
        (b"a\nb\nc\n", b"a\nn\nb\nc\n", [(2, 2, 2, 4)], (Hunk(1, 0, 1, 1),)),
        (b"a\nb\n", b"a\nn\nb\n", [(0, 3, 0, 5)], (Hunk(1, 0, 1, 1),)),
        (b"one two\n", b"1 2\n", [(0, 3, 0, 1), (4, 7, 2, 3)], (Hunk(0, 1, 0, 1),)),
        (b"a\nb\nc\n", b"A\nB\nc\n", [(0, 1, 0, 1), (2, 3, 2, 3)], (Hunk(0, 2, 0, 2),)),
        (b"a\nb\nc\n", b"A\nb\nC\n", [(0, 1, 0, 1), (4, 5, 4, 5)], (Hunk(0, 1, 0, 1), Hunk(2, 1, 2, 1))),
        (b"a", b"a\nb", [(1, 1, 1, 3)], (Hunk(1, 0, 1, 1),)),
        (b"a", b"a\n", [(1, 1, 1, 2)], ()),
        (b"a\n", b"", [(0, 2, 0, 0)], (Hunk(0, 1, 0, 0),)),
        (b"a\nb\n", b"a b\n", [(1, 2, 1, 2)], (Hunk(0, 2, 0, 1),)),
        (b"a\nm\nb\n", b"a\nm\nB\n", [(0, 2, 0, 0), (2, 2, 0, 2), (4, 5, 4, 5)], (Hunk(2, 1, 2, 1),)),
    ],
)
def test_spans_widen_to_whole_lines(
    before: bytes, after: bytes, spans: list[tuple[int, int, int, int]], expected: tuple[Hunk, ...]
) -> None:
    assert hunks_from_spans(before, after, [Span(*span) for span in spans]) == expected


@pytest.mark.parametrize("spans", [[(1, 0, 1, 0)], [(0, 9, 0, 1)], [(0, 1, 0, 1), (0, 1, 0, 1)], [(0, 0, 0, 0)]])
def test_spans_that_do_not_fit_are_refused(spans: list[tuple[int, int, int, int]]) -> None:
    with pytest.raises(ValueError, match=r"Span\("):
        hunks_from_spans(b"a\n", b"b\n", [Span(*span) for span in spans])


# -- hostile hunks


@pytest.mark.parametrize(
    "hunks",
    [
        (),
        (Hunk(1, 1, 1, 2),),
        (Hunk(1, 2, 1, 1),),
        (Hunk(0, 1, 0, 1),),
        (Hunk(1, 1, 2, 1),),
        (Hunk(-1, 3, -1, 3),),
        (Hunk(1, -1, 1, -1),),
        (Hunk(1, 1, 1, 1), Hunk(2, 0, 2, 0)),
        (Hunk(1, 1, 1, 1), Hunk(2, 1, 2, 1)),
        (Hunk(2, 1, 2, 1), Hunk(1, 1, 1, 1)),
        (Hunk(10**30, 1, 10**30, 1),),
        (Hunk(1, 10**30, 1, 10**30),),
    ],
)
def test_hunks_that_do_not_give_after_are_refused(hunks: tuple[Hunk, ...]) -> None:
    assert not hunks_fit(b"a\nb\nc\n", b"a\nB\nc\n", hunks)


@given(texts, texts, st.lists(st.builds(Hunk, *[st.integers(-1, 6)] * 4), max_size=3))
def test_only_hunks_that_give_after_fit(before: bytes, after: bytes, hunks: list[Hunk]) -> None:
    if hunks_fit(before, after, hunks):
        assert applied(before, after, tuple(hunks)) == lines_of(after)
        inserted = inserted_texts(before, after, hunks)
        assert [one.count(b"\n") for one in inserted] == [hunk.new_count for hunk in hunks]
