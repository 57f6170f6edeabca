"""Exact-string edits: what they replace, what they keep, and when they are refused."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, reject, strategies as st

from mcptools.edit.exact import (
    AmbiguousString,
    Edited,
    EditsOverlap,
    ExactOutcome,
    LineRange,
    MissingString,
    Replacement,
    apply_edits,
)
from objstore.text.hunks import Span, hunks_fit, hunks_from_spans
from tests.objstore.weave.test_weave_costs import operations

CONFIG = b'[server]\nhost = "localhost"\nport = 8080\n\n[app]\ndebug = false\n'


def apply(content: bytes, *edits: tuple[bytes, bytes]) -> ExactOutcome:
    return apply_edits(content, [Replacement(old=old, new=new) for old, new in edits])


def edited(content: bytes, *edits: tuple[bytes, bytes]) -> Edited:
    outcome = apply(content, *edits)
    assert isinstance(outcome, Edited), outcome
    return outcome


def test_each_edit_finds_its_line_in_the_copy_just_before_it() -> None:
    outcome = edited(
        CONFIG,
        (b"port = 8080", b"port = 3000"),
        (b'host = "localhost"', b'host = "0.0.0.0"'),
        (b"debug = false", b"debug = true"),
    )
    assert outcome.content == b'[server]\nhost = "0.0.0.0"\nport = 3000\n\n[app]\ndebug = true\n'
    assert [(lines.start, lines.end) for lines in outcome.line_ranges] == [(3, 3), (2, 2), (6, 6)]


def test_lines_added_by_an_edit_move_the_ranges_of_later_ones() -> None:
    outcome = edited(b"a\nb\nc\n", (b"a\n", b"a\na2\na3\n"), (b"b\nc\n", b"d\n"))
    assert outcome.content == b"a\na2\na3\nd\n"
    assert outcome.line_ranges == (LineRange(start=1, end=1), LineRange(start=4, end=5))


def test_a_range_ends_on_the_line_of_its_last_character() -> None:
    assert edited(b"a\nb\nc\n", (b"a\nb", b"x")).line_ranges == (LineRange(start=1, end=2),)
    assert edited(b"a\nb\nc\n", (b"b\n", b"x")).line_ranges == (LineRange(start=2, end=2),)


def test_an_edit_may_replace_all_that_an_earlier_one_wrote() -> None:
    assert edited(b"AAA", (b"AAA", b"BBB"), (b"BBB", b"CCC")).content == b"CCC"


def test_an_edit_may_change_a_part_of_what_an_earlier_one_wrote() -> None:
    assert edited(b"<AAA>", (b"AAA", b"x y z"), (b"y", b"Y")).content == b"<x Y z>"


def test_an_edit_next_to_the_text_of_an_earlier_one_is_no_conflict() -> None:
    assert edited(b"left right", (b"left", b"LEFT"), (b" right", b" RIGHT")).content == b"LEFT RIGHT"


def test_an_edit_across_a_place_where_text_was_deleted_is_no_conflict() -> None:
    assert edited(b"a-b", (b"-", b""), (b"ab", b"c")).content == b"c"


@pytest.mark.parametrize(
    ("content", "edits", "index", "prior"),
    [
        (b"one two", [(b"one", b"ONE"), (b"ONE two", b"x")], 1, 0),
        (b"one two", [(b"two", b"TWO"), (b"ne TW", b"x")], 1, 0),
        (b"one two six", [(b"six", b"SIX"), (b"two", b"TWO"), (b"e TW", b"x")], 2, 1),
        (b"<A>", [(b"A", b"xBy"), (b"B", b"C"), (b"xC", b"z")], 2, 1),
        (b"a b", [(b"a", b"A"), (b"b", b"B"), (b"A B", b"x")], 2, 0),
    ],
)
def test_an_edit_that_takes_in_part_of_an_earlier_one_is_a_conflict(
    content: bytes, edits: list[tuple[bytes, bytes]], index: int, prior: int
) -> None:
    assert apply(content, *edits) == EditsOverlap(index=index, prior=prior)


@pytest.mark.parametrize(
    "edits",
    [
        [(b"b", b"B"), (b"a", b"A"), (b"Bc", b"x")],  # the second stands beside what the first wrote
        [(b"b", b"B"), (b"c", b"C"), (b"aB", b"x")],
        [(b"ab", b"XY"), (b"X", b"Z"), (b"Yc", b"x")],  # the second begins, or ends, with it
        [(b"bc", b"XY"), (b"Y", b"Z"), (b"aX", b"x")],
    ],
)
def test_what_an_edit_wrote_stays_its_own_when_others_touch_it(edits: list[tuple[bytes, bytes]]) -> None:
    assert apply(b"abc", *edits) == EditsOverlap(index=2, prior=0)


def test_edits_that_touch_are_one_span() -> None:
    for edits in ([(b"a", b"X"), (b"b", b"YY")], [(b"b", b"YY"), (b"a", b"X")]):
        assert edited(b"-abc", *edits).spans == ((1, 3, 1, 4),)
    for edits in (
        [(b"a", b"XX"), (b"c", b"Z"), (b"b", b"YY")],
        [(b"c", b"Z"), (b"a", b"XX"), (b"b", b"YY")],
        [(b"a", b"XX"), (b"c", b"Z"), (b"b", b"")],
    ):
        new = len(edited(b"-abc-", *edits).content)
        assert edited(b"-abc-", *edits).spans == ((1, 4, 1, new - 1),)


def test_an_empty_first_line_counts() -> None:
    assert edited(b"\nx\n", (b"x", b"y")).line_ranges == (LineRange(start=2, end=2),)


def test_of_many_places_the_first_twenty_are_reported() -> None:
    found = apply(b"x\n" * 25, (b"x", b"y"))
    assert found == AmbiguousString(index=0, count=25, lines=tuple(range(1, 21)))


def test_a_string_that_an_earlier_edit_changed_is_missing() -> None:
    outcome = apply(b"foo", (b"foo", b"bar"), (b"foo", b"baz"))
    assert isinstance(outcome, MissingString)
    assert (outcome.index, outcome.was_there) == (1, True)


def test_a_string_that_an_earlier_edit_doubled_is_ambiguous() -> None:
    assert apply(b"A", (b"A", b"AA"), (b"A", b"B")) == AmbiguousString(index=1, count=2, lines=(1, 1))


def test_a_string_that_overlaps_itself_is_ambiguous() -> None:
    assert apply(b"aaa", (b"aa", b"b")) == AmbiguousString(index=0, count=2, lines=(1, 1))


def test_an_ambiguous_string_is_reported_with_its_count_and_its_lines() -> None:
    assert apply(b"x = 1\ny = 2\nx = 1\n" * 2, (b"x = 1", b"x = 3")) == AmbiguousString(
        index=0, count=4, lines=(1, 3, 4, 6)
    )


@pytest.mark.parametrize(
    ("content", "old", "line", "column", "found", "wanted"),
    [
        (b"a\nfoo\xc2\xa0bar\n", b"foo bar", 2, 4, "\N{NO-BREAK SPACE}", " "),
        (b"def f():\n\treturn 1\n", b"    return 1", 2, 1, "\t", " "),
        (b"one\r\ntwo\r\n", b"one\ntwo\n", 1, 4, "\r", "\n"),
        (b"LINE 1\nline 2\n", b"line 3", 2, 6, "2", "3"),
        (b"port = 8080\n", b"port = 8080;", 1, 12, "\n", ";"),
        (b"tail", b"tail\n", 1, 5, None, "\n"),
        (b"caf\xe9 au lait", "café au lait".encode(), 1, 4, "\udce9", "é"),
    ],
)
def test_a_missing_string_is_reported_with_the_first_character_that_differs(
    content: bytes, old: bytes, line: int, column: int, found: str | None, wanted: str
) -> None:
    outcome = apply(content, (old, b""))
    assert isinstance(outcome, MissingString)
    near = outcome.nearest()
    assert near is not None
    assert (near.line, near.column, near.found, near.wanted) == (line, column, found, wanted)


def test_a_string_unlike_anything_in_the_file_has_no_nearest_place() -> None:
    outcome = apply(b"alpha\nbeta\n", (b"zzzzzzzz", b""))
    assert isinstance(outcome, MissingString)
    assert outcome.nearest() is None


LETTERS = "the quick brown fox jumps over the lazy dog, and then some more words to fill it up"


def shuffled(seed: int) -> str:
    return "".join(random.Random(seed).sample(LETTERS, len(LETTERS)))


def logged(number: int) -> str:
    return f"{number}: request {number:x} of user {number} for /api/v1/items/{number}, done"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(shuffled, id="of the same letters"),
        pytest.param(logged, id="of a log"),
    ],
)
def test_looking_for_similar_lines_costs_what_seeing_them_costs(line: Callable[[int], str]) -> None:
    """However many lines are like it: to compare two of these takes a thousand steps for each hundred characters."""
    content = "".join(f"{line(number)}\n" for number in range(1, 1990)).encode()
    missing = apply(content, (f"x{line(0)[1:]}y".encode(), b""))
    assert isinstance(missing, MissingString)
    assert operations(missing.nearest) < 5 * len(content)


def test_the_most_similar_line_is_found_among_many_that_are_like_it() -> None:
    content = "".join(f"{logged(number)}\n" for number in range(1, 1990)).encode()
    missing = apply(content, (f"{logged(1777)[:-1]}!".encode(), b""))
    assert isinstance(missing, MissingString)
    near = missing.nearest()
    assert near is not None
    assert near.line == 1777


def test_while_something_similar_is_looked_for_it_can_be_ended() -> None:
    missing = apply("\n".join(map(shuffled, range(300))).encode(), (f"~{LETTERS[1:]}".encode(), b""))
    assert isinstance(missing, MissingString)
    asked = list[int]()
    missing.nearest(between=lambda: asked.append(0))
    assert len(asked) > 300
    for count in range(0, len(asked), 50):
        with pytest.raises(IndexError):
            missing.nearest(between=([0] * count).pop)


# ---- laws

some_bytes = st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r", b"\0", b"\xff", b"ab\n"])).map(b"".join)


@st.composite
def calls(draw: st.DrawFn) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Draw a file, and edits of it whose old strings are cut out of the copy that they will meet."""
    content = staged = draw(some_bytes)
    edits: list[tuple[bytes, bytes]] = []
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(staged)))
        old = staged[start : start + draw(st.integers(1, 12))]
        if old and staged.count(old) == 1:
            edits.append((old, draw(some_bytes)))
            staged = staged.replace(old, edits[-1][1])
    return content, edits


def applying(content: bytes, edits: list[tuple[bytes, bytes]]) -> Edited:
    """Return what edits come to; an example of some that do not apply says nothing here."""
    outcome = apply(content, *edits)
    return outcome if isinstance(outcome, Edited) else reject()


@given(calls())
def test_edits_that_apply_are_plain_replacements_one_after_another(
    call: tuple[bytes, list[tuple[bytes, bytes]]],
) -> None:
    content, edits = call
    outcome = applying(content, edits)
    staged = content
    for old, new in edits:
        assert staged.count(old) == 1
        staged = staged.replace(old, new)
    assert outcome.content == staged


@given(calls())
def test_every_byte_outside_the_spans_survives(call: tuple[bytes, list[tuple[bytes, bytes]]]) -> None:
    content, edits = call
    outcome = applying(content, edits)
    rebuilt, at = b"", 0
    for old_start, old_end, new_start, new_end in outcome.spans:
        assert at <= old_start <= old_end
        rebuilt += content[at:old_start]
        assert len(rebuilt) == new_start
        rebuilt += outcome.content[new_start:new_end]
        at = old_end
    assert rebuilt + content[at:] == outcome.content


@given(calls())
def test_the_spans_give_hunks_that_fit(call: tuple[bytes, list[tuple[bytes, bytes]]]) -> None:
    content, edits = call
    outcome = applying(content, edits)
    hunks = hunks_from_spans(content, outcome.content, [Span(*span) for span in outcome.spans])
    assert hunks_fit(content, outcome.content, hunks)


@given(some_bytes, some_bytes.filter(bool))
def test_a_string_that_does_not_occur_exactly_once_is_refused(content: bytes, old: bytes) -> None:
    places = sum(content.startswith(old, at) for at in range(len(content)))
    match apply(content, (old, b"new")):
        case Edited():
            assert places == 1
        case MissingString():
            assert places == 0
        case AmbiguousString(count=count, lines=lines):
            assert places > 1
            assert 2 <= count <= places
            assert len(lines) == min(places, 20)
        case outcome:
            raise AssertionError(outcome)


def test_edits_apart_from_each_other_are_spans_of_their_own_in_whatever_order_they_come() -> None:
    outcome = edited(b"one two three four", (b"three", b"3"), (b"one", b"first"), (b"four", b"4"), (b"two", b""))
    assert outcome.content == b"first  3 4"
    assert outcome.spans == ((0, 3, 0, 5), (4, 7, 6, 6), (8, 13, 7, 8), (14, 18, 9, 10))


def test_where_an_edit_wrote_is_known_when_text_above_it_grew_or_shrank() -> None:
    assert apply(b"ab cd", (b"cd", b"CD"), (b"ab", b"abab"), (b" C", b"-")) == EditsOverlap(index=2, prior=0)
    assert apply(b"ab cd", (b"cd", b"CD"), (b"ab", b""), (b" C", b"-")) == EditsOverlap(index=2, prior=0)
    assert apply(b"<cd>", (b"cd", b"CxxD"), (b"xx", b""), (b"D>", b"-")) == EditsOverlap(index=2, prior=0)
    assert apply(b"<cd>", (b"cd", b"CxD"), (b"x", b"yyyy"), (b"yD>", b"-")) == EditsOverlap(index=2, prior=0)


@given(st.data())
def test_an_edit_is_refused_exactly_where_it_tears_what_another_wrote(data: st.DataObject) -> None:
    """Against a model in which every byte knows the edits in whose text it stands."""
    text = data.draw(st.binary(min_size=4, max_size=12), label="text")
    bytes_now: list[tuple[int, frozenset[int]]] = [(byte, frozenset()) for byte in text]
    edits: list[tuple[bytes, bytes]] = []
    for index in range(data.draw(st.integers(1, 5), label="edits")):
        now = bytes(byte for byte, _ in bytes_now)
        if not now:
            break
        start = data.draw(st.integers(0, len(now) - 1))
        end = data.draw(st.integers(start + 1, len(now)))
        old, new = now[start:end], data.draw(st.binary(max_size=4))
        if any(now.startswith(old, at) for at in range(len(now)) if at != start):
            break
        edits.append((old, new))
        authors = [known for _, known in bytes_now[start:end]]
        around = frozenset.intersection(*authors)
        if torn := frozenset.union(*authors) - around:
            outcome = apply(text, *edits)
            assert isinstance(outcome, EditsOverlap)
            assert (outcome.index, outcome.prior in torn) == (index, True)
            return
        bytes_now[start:end] = [(byte, around | {index}) for byte in new]
    assert edited(text, *edits).content == bytes(byte for byte, _ in bytes_now)
