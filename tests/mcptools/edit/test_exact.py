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
from tests.support.call_counts import count_calls

CONFIG = b'[server]\nhost = "localhost"\nport = 8080\n\n[app]\ndebug = false\n'


def apply(content: bytes, *edits: tuple[bytes, bytes]) -> ExactOutcome:
    return apply_edits(content, [Replacement(old=old, new=new) for old, new in edits])


def edited(content: bytes, *edits: tuple[bytes, bytes]) -> Edited:
    outcome = apply(content, *edits)
    assert isinstance(outcome, Edited), outcome
    return outcome


def test_line_ranges_refer_to_the_text_before_each_edit() -> None:
    outcome = edited(
        CONFIG,
        (b"port = 8080", b"port = 3000"),
        (b'host = "localhost"', b'host = "0.0.0.0"'),
        (b"debug = false", b"debug = true"),
    )
    assert outcome.content == b'[server]\nhost = "0.0.0.0"\nport = 3000\n\n[app]\ndebug = true\n'
    assert [(lines.start, lines.end) for lines in outcome.line_ranges] == [(3, 3), (2, 2), (6, 6)]


def test_added_lines_shift_the_ranges_of_later_edits() -> None:
    outcome = edited(b"a\nb\nc\n", (b"a\n", b"a\na2\na3\n"), (b"b\nc\n", b"d\n"))
    assert outcome.content == b"a\na2\na3\nd\n"
    assert outcome.line_ranges == (LineRange(start=1, end=1), LineRange(start=4, end=5))


def test_line_range_ends_on_the_line_of_the_last_character() -> None:
    assert edited(b"a\nb\nc\n", (b"a\nb", b"x")).line_ranges == (LineRange(start=1, end=2),)
    assert edited(b"a\nb\nc\n", (b"b\n", b"x")).line_ranges == (LineRange(start=2, end=2),)


def test_edit_may_replace_the_whole_text_of_an_earlier_edit() -> None:
    assert edited(b"AAA", (b"AAA", b"BBB"), (b"BBB", b"CCC")).content == b"CCC"


def test_edit_may_change_a_part_of_an_earlier_edits_text() -> None:
    assert edited(b"<AAA>", (b"AAA", b"x y z"), (b"y", b"Y")).content == b"<x Y z>"


def test_edit_next_to_an_earlier_edits_text_is_no_conflict() -> None:
    assert edited(b"left right", (b"left", b"LEFT"), (b" right", b" RIGHT")).content == b"LEFT RIGHT"


def test_edit_across_an_earlier_deletion_is_no_conflict() -> None:
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
def test_edit_that_includes_part_of_an_earlier_edits_text_conflicts(
    content: bytes, edits: list[tuple[bytes, bytes]], index: int, prior: int
) -> None:
    assert apply(content, *edits) == EditsOverlap(index=index, prior=prior)


@pytest.mark.parametrize(
    "edits",
    [
        [(b"b", b"B"), (b"a", b"A"), (b"Bc", b"x")],  # the second edit is next to the text of the first
        [(b"b", b"B"), (b"c", b"C"), (b"aB", b"x")],
        [(b"ab", b"XY"), (b"X", b"Z"), (b"Yc", b"x")],  # the second edit replaces the beginning or the end of that text
        [(b"bc", b"XY"), (b"Y", b"Z"), (b"aX", b"x")],
    ],
)
def test_adjacent_edits_do_not_hide_a_conflict_with_an_earlier_edit(edits: list[tuple[bytes, bytes]]) -> None:
    assert apply(b"abc", *edits) == EditsOverlap(index=2, prior=0)


def test_adjacent_edits_are_one_span() -> None:
    for edits in ([(b"a", b"X"), (b"b", b"YY")], [(b"b", b"YY"), (b"a", b"X")]):
        assert edited(b"-abc", *edits).spans == ((1, 3, 1, 4),)
    for edits in (
        [(b"a", b"XX"), (b"c", b"Z"), (b"b", b"YY")],
        [(b"c", b"Z"), (b"a", b"XX"), (b"b", b"YY")],
        [(b"a", b"XX"), (b"c", b"Z"), (b"b", b"")],
    ):
        new = len(edited(b"-abc-", *edits).content)
        assert edited(b"-abc-", *edits).spans == ((1, 4, 1, new - 1),)


def test_empty_first_line_is_counted() -> None:
    assert edited(b"\nx\n", (b"x", b"y")).line_ranges == (LineRange(start=2, end=2),)


def test_only_the_first_twenty_occurrences_are_reported() -> None:
    found = apply(b"x\n" * 25, (b"x", b"y"))
    assert found == AmbiguousString(index=0, count=25, lines=tuple(range(1, 21)))


def test_string_changed_by_an_earlier_edit_is_missing() -> None:
    outcome = apply(b"foo", (b"foo", b"bar"), (b"foo", b"baz"))
    assert isinstance(outcome, MissingString)
    assert (outcome.index, outcome.was_there) == (1, True)


def test_string_doubled_by_an_earlier_edit_is_ambiguous() -> None:
    assert apply(b"A", (b"A", b"AA"), (b"A", b"B")) == AmbiguousString(index=1, count=2, lines=(1, 1))


def test_string_that_overlaps_itself_is_ambiguous() -> None:
    assert apply(b"aaa", (b"aa", b"b")) == AmbiguousString(index=0, count=2, lines=(1, 1), overlaps=True)


def test_ambiguous_string_is_reported_with_count_and_lines() -> None:
    assert apply(b"x = 1\ny = 2\nx = 1\n" * 2, (b"x = 1", b"x = 3")) == AmbiguousString(
        index=0, count=4, lines=(1, 3, 4, 6)
    )


@pytest.mark.parametrize(
    ("content", "old", "line", "column", "found", "expected"),
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
def test_missing_string_is_reported_with_the_first_differing_character(
    content: bytes, old: bytes, line: int, column: int, found: str | None, expected: str
) -> None:
    outcome = apply(content, (old, b""))
    assert isinstance(outcome, MissingString)
    nearest_line = outcome.nearest()
    assert nearest_line is not None
    assert (nearest_line.line, nearest_line.column, nearest_line.found, nearest_line.wanted) == (
        line,
        column,
        found,
        expected,
    )


def test_string_without_similar_text_has_no_nearest_line() -> None:
    outcome = apply(b"alpha\nbeta\n", (b"zzzzzzzz", b""))
    assert isinstance(outcome, MissingString)
    assert outcome.nearest() is None


LETTERS = "the quick brown fox jumps over the lazy dog, and then some more words to fill it up"


def shuffled_line(seed: int) -> str:
    return "".join(random.Random(seed).sample(LETTERS, len(LETTERS)))


def log_line(number: int) -> str:
    return f"{number}: request {number:x} of user {number} for /api/v1/items/{number}, done"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(shuffled_line, id="shuffled letters"),
        pytest.param(log_line, id="log lines"),
    ],
)
def test_cost_of_finding_the_nearest_line_is_linear_in_the_file_size(line: Callable[[int], str]) -> None:
    """The cost is linear even if many lines are similar, though comparing two lines costs more than reading both."""
    content = "".join(f"{line(number)}\n" for number in range(1, 1990)).encode()
    missing = apply(content, (f"x{line(0)[1:]}y".encode(), b""))
    assert isinstance(missing, MissingString)
    assert count_calls(missing.nearest) < 5 * len(content)


def test_most_similar_line_is_found_among_many_similar_ones() -> None:
    content = "".join(f"{log_line(number)}\n" for number in range(1, 1990)).encode()
    missing = apply(content, (f"{log_line(1777)[:-1]}!".encode(), b""))
    assert isinstance(missing, MissingString)
    nearest_line = missing.nearest()
    assert nearest_line is not None
    assert nearest_line.line == 1777


def test_search_for_the_nearest_line_can_be_cancelled() -> None:
    missing = apply("\n".join(map(shuffled_line, range(300))).encode(), (f"~{LETTERS[1:]}".encode(), b""))
    assert isinstance(missing, MissingString)
    checks = list[int]()
    missing.nearest(between=lambda: checks.append(0))
    assert len(checks) > 300
    for count in range(0, len(checks), 50):
        with pytest.raises(IndexError):
            missing.nearest(between=([0] * count).pop)


# ---- laws

some_bytes = st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r", b"\0", b"\xff", b"ab\n"])).map(b"".join)


@st.composite
def calls(draw: st.DrawFn) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Draw a file, and edits whose old strings occur exactly once when each edit is applied."""
    content = staged = draw(some_bytes)
    edits: list[tuple[bytes, bytes]] = []
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(staged)))
        old = staged[start : start + draw(st.integers(1, 12))]
        if old and staged.count(old) == 1:
            edits.append((old, draw(some_bytes)))
            staged = staged.replace(old, edits[-1][1])
    return content, edits


def edited_or_reject(content: bytes, edits: list[tuple[bytes, bytes]]) -> Edited:
    """Return the result of edits; reject examples whose edits do not apply."""
    outcome = apply(content, *edits)
    return outcome if isinstance(outcome, Edited) else reject()


@given(calls())
def test_applied_edits_equal_successive_replacements(
    call: tuple[bytes, list[tuple[bytes, bytes]]],
) -> None:
    content, edits = call
    outcome = edited_or_reject(content, edits)
    staged = content
    for old, new in edits:
        assert staged.count(old) == 1
        staged = staged.replace(old, new)
    assert outcome.content == staged


@given(calls())
def test_bytes_outside_the_spans_are_unchanged(call: tuple[bytes, list[tuple[bytes, bytes]]]) -> None:
    content, edits = call
    outcome = edited_or_reject(content, edits)
    rebuilt, at = b"", 0
    for old_start, old_end, new_start, new_end in outcome.spans:
        assert at <= old_start <= old_end
        rebuilt += content[at:old_start]
        assert len(rebuilt) == new_start
        rebuilt += outcome.content[new_start:new_end]
        at = old_end
    assert rebuilt + content[at:] == outcome.content


@given(calls())
def test_hunks_from_the_spans_fit_both_texts(call: tuple[bytes, list[tuple[bytes, bytes]]]) -> None:
    content, edits = call
    outcome = edited_or_reject(content, edits)
    hunks = hunks_from_spans(content, outcome.content, [Span(*span) for span in outcome.spans])
    assert hunks_fit(content, outcome.content, hunks)


@given(some_bytes, some_bytes.filter(bool))
def test_string_that_does_not_occur_exactly_once_is_refused(content: bytes, old: bytes) -> None:
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


def test_separate_edits_are_separate_spans_in_any_order() -> None:
    outcome = edited(b"one two three four", (b"three", b"3"), (b"one", b"first"), (b"four", b"4"), (b"two", b""))
    assert outcome.content == b"first  3 4"
    assert outcome.spans == ((0, 3, 0, 5), (4, 7, 6, 6), (8, 13, 7, 8), (14, 18, 9, 10))


def test_position_of_an_earlier_edit_is_tracked_when_text_above_grows_or_shrinks() -> None:
    assert apply(b"ab cd", (b"cd", b"CD"), (b"ab", b"abab"), (b" C", b"-")) == EditsOverlap(index=2, prior=0)
    assert apply(b"ab cd", (b"cd", b"CD"), (b"ab", b""), (b" C", b"-")) == EditsOverlap(index=2, prior=0)
    assert apply(b"<cd>", (b"cd", b"CxxD"), (b"xx", b""), (b"D>", b"-")) == EditsOverlap(index=2, prior=0)
    assert apply(b"<cd>", (b"cd", b"CxD"), (b"x", b"yyyy"), (b"yD>", b"-")) == EditsOverlap(index=2, prior=0)


@given(st.data())
def test_edit_conflicts_exactly_if_it_partly_replaces_another_edits_text(data: st.DataObject) -> None:
    """Compare with a model in which every byte carries the edits whose text contains it."""
    text = data.draw(st.binary(min_size=4, max_size=12), label="text")
    current_bytes: list[tuple[int, frozenset[int]]] = [(byte, frozenset()) for byte in text]
    edits: list[tuple[bytes, bytes]] = []
    for index in range(data.draw(st.integers(1, 5), label="edits")):
        current = bytes(byte for byte, _ in current_bytes)
        if not current:
            break
        start = data.draw(st.integers(0, len(current) - 1))
        end = data.draw(st.integers(start + 1, len(current)))
        old, new = current[start:end], data.draw(st.binary(max_size=4))
        if any(current.startswith(old, at) for at in range(len(current)) if at != start):
            break
        edits.append((old, new))
        authors = [authors_of_byte for _, authors_of_byte in current_bytes[start:end]]
        common_authors = frozenset.intersection(*authors)
        if partly_replaced := frozenset.union(*authors) - common_authors:
            outcome = apply(text, *edits)
            assert isinstance(outcome, EditsOverlap)
            assert (outcome.index, outcome.prior in partly_replaced) == (index, True)
            return
        current_bytes[start:end] = [(byte, common_authors | {index}) for byte in new]
    assert edited(text, *edits).content == bytes(byte for byte, _ in current_bytes)


# ---- line endings


def bridged(content: bytes, *edits: tuple[bytes, bytes]) -> ExactOutcome:
    return apply_edits(content, [Replacement(old=old, new=new) for old, new in edits], bridges=True)


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        pytest.param(b"a\r\nb\r\nc\r\n", b"a\nb\n", b"A\nB\nX\n", b"A\r\nB\r\nX\r\nc\r\n", id="all lines CRLF"),
        pytest.param(b"a\r\nb\r\n", b"b", b"b\nc", b"a\r\nb\r\nc\r\n", id="a line added below one"),
        pytest.param(b"a\r\nb", b"b", b"b\nc", b"a\r\nb\r\nc", id="a line added below a last one without an ending"),
        pytest.param(b"a\r\nb\r\n", b"\nb", b"", b"a\r\n", id="the ending goes with its line"),
        pytest.param(b"a\r\nb\r\n", b"\nb", b"\nB", b"a\r\nB\r\n", id="an ending first"),
        pytest.param(b"a\r\nb\nc\r\n", b"a\nb\nc", b"A\nB\nC", b"A\r\nB\nC\r\n", id="mixed, each line's own"),
        pytest.param(b"a\r\nb\nc\r\n", b"b", b"b\nx", b"a\r\nb\nx\nc\r\n", id="mixed, a line added below LF"),
        pytest.param(b"a\r\nb\nc\r\n", b"a", b"a\nx", b"a\r\nx\r\nb\nc\r\n", id="mixed, a line added below CRLF"),
        pytest.param(b"a\r\nb\r\na\nb\n", b"a\nb\n", b"x\n", b"a\r\nb\r\nx\n", id="mixed, byte for byte first"),
        pytest.param(b"a\r\nb\r\n", b"a\r\nb", b"A\nB", b"A\nB\r\n", id="CRLF turned into LF on purpose"),
        pytest.param(b"a\nb\n", b"a", b"a\r\nx", b"a\r\nx\nb\n", id="CRLF sent to LF"),
        pytest.param(b"a\nb\n", b"a", b"a\nx", b"a\nx\nb\n", id="LF throughout"),
    ],
)
def test_lf_in_strings_means_the_endings_of_the_file(content: bytes, old: bytes, new: bytes, after: bytes) -> None:
    outcome = bridged(content, (old, new))
    assert isinstance(outcome, Edited), outcome
    assert outcome.content == after
    assert apply(content, *((edit.old, edit.new) for edit in outcome.made)) == outcome


def test_string_that_fits_lines_of_both_endings_is_ambiguous() -> None:
    assert bridged(b"a\r\nb\r\na\r\nb\n", (b"a\nb\n", b"x\n")) == AmbiguousString(index=0, count=2, lines=(1, 3))


def test_nearest_place_does_not_differ_by_the_ending_of_a_line() -> None:
    outcome = bridged(b"one\r\ntwo\r\n", (b"one\ntoo\n", b""))
    assert isinstance(outcome, MissingString)
    found = outcome.nearest()
    assert found is not None
    assert (found.line, found.column) == (2, 2)


@given(
    st.lists(st.sampled_from("abcdef"), unique=True, min_size=1),
    st.lists(st.sampled_from("abXY"), max_size=4),
    st.data(),
)
def test_edits_in_lf_change_a_crlf_file_as_an_lf_file(lines: list[str], new: list[str], data: st.DataObject) -> None:
    content = "".join(f"{line}\n" for line in lines)
    start = data.draw(st.integers(0, len(content) - 1))
    old = content[start : data.draw(st.integers(start + 1, len(content)))]
    edits = [(old.encode(), "\n".join(new).encode())]
    plain = apply(content.encode(), *edits)
    outcome = bridged(content.replace("\n", "\r\n").encode(), *edits)
    if not isinstance(plain, Edited):
        assert not isinstance(outcome, Edited)
        return
    assert isinstance(outcome, Edited), outcome
    assert outcome.content == plain.content.replace(b"\n", b"\r\n")
    assert outcome.line_ranges == plain.line_ranges
