r"""Anchored edits change exactly the lines that they name.

In the pictures, each letter is a line; `|` is the ending CRLF, `.` is the ending LF, and a last letter without either
has no ending.
"""

from dataclasses import replace

import pytest
from hypothesis import assume, example, given, reject, strategies as st

from mcptools.edit.anchored import (
    EMPTY_TEXT,
    Anchor,
    AnchorAmbiguous,
    AnchoredEdit,
    AnchorMissing,
    EndBeforeStart,
    Op,
    OperationsOverlap,
    Placed,
    TaggedContent,
    apply_operations,
    parse_anchor,
    parse_range,
    split_content_lines,
)
from mcptools.edit.hashline import line_tag
from objstore import hunks_fit, hunks_from_spans, split_lines
from objstore.text.lines import closed
from tests.support.call_counts import count_calls

BOM = b"\xef\xbb\xbf"


def text(picture: str) -> bytes:
    return picture.replace("|", "\r\n").replace(".", "\n").encode()


def operation(content: bytes, op: Op, line: int, end: int = 0, new: str = "") -> AnchoredEdit:
    """Return an operation on a line of `content`, or on the lines up to `end`; `new` has a letter for each line."""
    lines = split_lines(content)
    return AnchoredEdit(
        op=op,
        anchor=Anchor(line, line_tag(lines[line - 1])),
        end=Anchor(end, line_tag(lines[end - 1])) if end else None,
        lines=tuple(letter.encode().replace(b"_", b"") for letter in new),
    )


def applied(content: bytes, *operations: AnchoredEdit) -> bytes:
    outcome = apply_operations(content, operations)
    assert isinstance(outcome, Placed), outcome
    return outcome.content


@pytest.mark.parametrize(
    ("before", "op", "line", "end", "new", "after"),
    [
        ("a.b.c.", Op.REPLACE, 2, 0, "X", "a.X.c."),
        ("a.b.c.", Op.REPLACE, 2, 0, "XY", "a.X.Y.c."),
        ("a.b.c.d.", Op.REPLACE_RANGE, 2, 3, "X", "a.X.d."),
        ("a.b.c.", Op.REPLACE_RANGE, 1, 3, "X", "X."),
        ("a.b.", Op.INSERT_AFTER, 1, 0, "X", "a.X.b."),
        ("a.b.", Op.INSERT_AFTER, 2, 0, "XY", "a.b.X.Y."),
        ("a.b.", Op.INSERT_BEFORE, 1, 0, "X", "X.a.b."),
        ("a.b.c.", Op.DELETE, 2, 0, "", "a.c."),
        ("a.b.c.d.", Op.DELETE_RANGE, 2, 4, "", "a."),
        ("a.", Op.DELETE, 1, 0, "", ""),
        ("a.b.", Op.REPLACE, 1, 0, "_", ".b."),
    ],
)
def test_each_operation_changes_the_lines_that_it_names(
    before: str, op: Op, line: int, end: int, new: str, after: str
) -> None:
    content = text(before)
    assert applied(content, operation(content, op, line, end, new)) == text(after)


@pytest.mark.parametrize(
    ("before", "op", "line", "end", "new", "after"),
    [
        ("a|b|", Op.REPLACE, 1, 0, "XY", "X|Y|b|"),
        ("a|b|", Op.INSERT_AFTER, 2, 0, "X", "a|b|X|"),
        ("a.b|", Op.INSERT_BEFORE, 2, 0, "X", "a.X|b|"),
        ("a.b|", Op.INSERT_AFTER, 1, 0, "X", "a.X.b|"),
        ("a|b.c|", Op.REPLACE_RANGE, 1, 3, "XYZ", "X|Y.Z|"),
        ("a|b.", Op.REPLACE_RANGE, 1, 2, "XYZ", "X|Y.Z."),
    ],
)
def test_new_lines_get_the_endings_of_their_neighbours(
    before: str, op: Op, line: int, end: int, new: str, after: str
) -> None:
    content = text(before)
    assert applied(content, operation(content, op, line, end, new)) == text(after)


@pytest.mark.parametrize(
    ("before", "op", "line", "new", "after"),
    [
        ("a.b", Op.REPLACE, 2, "X", "a.X"),
        ("a|b", Op.REPLACE, 2, "XY", "a|X|Y"),
        ("a|b", Op.INSERT_AFTER, 2, "X", "a|b|X"),
        ("a", Op.INSERT_AFTER, 1, "X", "a.X"),
        ("a", Op.INSERT_BEFORE, 1, "X", "X.a"),
        ("a.b", Op.DELETE, 2, "", "a"),
        ("a|b", Op.DELETE, 1, "", "b"),
        ("a", Op.DELETE, 1, "", ""),
        ("a..b", Op.DELETE, 3, "", "a.."),  # an empty last line can't lack its newline
        ("a.|b", Op.DELETE, 3, "", "a.|"),
        ("a.b|c", Op.INSERT_AFTER, 3, "X", "a.b|c|X"),  # the former last line gets the ending of the line above
        ("a|b.c", Op.INSERT_AFTER, 3, "X", "a|b.c.X"),
        ("a.b|c", Op.DELETE, 1, "", "b|c"),
        ("a.b\r", Op.REPLACE, 1, "X", "X.b\r"),  # a lone CR ends no line
        ("a.b\r", Op.DELETE, 1, "", "b\r"),
        ("a.b\r", Op.REPLACE, 2, "X", "a.X"),
        ("a.b\r", Op.INSERT_BEFORE, 2, "X", "a.X.b\r"),
        ("a.b\r", Op.INSERT_AFTER, 2, "X", "a.b\r.X"),
        ("a|b\r", Op.INSERT_AFTER, 1, "X", "a|X|b\r"),
        ("a\rb\r", Op.INSERT_BEFORE, 1, "X", "X.a\rb\r"),
        ("a\rb\r", Op.REPLACE, 1, "X", "X"),
    ],
)
def test_missing_final_newline_stays_missing(before: str, op: Op, line: int, new: str, after: str) -> None:
    content = text(before)
    assert applied(content, operation(content, op, line, 0, new)) == text(after)


@pytest.mark.parametrize(
    ("before", "op", "new", "after"),
    [
        ("a.b.", Op.REPLACE, "X", "X.b."),
        ("a.b.", Op.INSERT_BEFORE, "X", "X.a.b."),
        ("a.b.", Op.DELETE, "", "b."),
        ("", Op.REPLACE, "X", "X"),
        ("", Op.INSERT_BEFORE, "X", "X."),
        ("a.b.", Op.REPLACE, "XY", "X.Y.b."),
    ],
)
def test_byte_order_mark_stays_at_the_start(before: str, op: Op, new: str, after: str) -> None:
    content = BOM + text(before)
    edit = operation(content, op, 1, 0, new)
    assert applied(content, edit) == BOM + text(after)
    with_mark = replace(edit, lines=tuple((BOM if not index else b"") + line for index, line in enumerate(edit.lines)))
    assert applied(content, with_mark) == BOM + text(after)


def test_byte_order_mark_elsewhere_is_content() -> None:
    new = (BOM + b"X",)
    below = replace(operation(BOM + b"a\nb\n", Op.REPLACE, 2, 0, "X"), lines=new)
    assert applied(BOM + b"a\nb\n", below) == BOM + b"a\n" + BOM + b"X\n"
    without = replace(operation(b"a\n", Op.INSERT_BEFORE, 1, 0, "X"), lines=new)
    assert applied(b"a\n", without) == BOM + b"X\na\n"


def test_operations_refer_to_the_text_as_it_was_read() -> None:
    content = text("a.b.c.d.")
    result = applied(
        content,
        operation(content, Op.DELETE, 4),
        operation(content, Op.INSERT_BEFORE, 2, 0, "X"),
        operation(content, Op.INSERT_AFTER, 1, 0, "Y"),
        operation(content, Op.INSERT_AFTER, 1, 0, "Z"),
        operation(content, Op.REPLACE, 2, 0, "BB"),
    )
    assert result == text("a.Y.Z.X.B.B.c.")


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ((Op.REPLACE, 2, 0), (Op.DELETE, 2, 0), True),
        ((Op.DELETE_RANGE, 1, 3), (Op.REPLACE, 3, 0), True),
        ((Op.DELETE_RANGE, 1, 3), (Op.INSERT_AFTER, 2, 0), True),
        ((Op.INSERT_BEFORE, 2, 0), (Op.DELETE_RANGE, 1, 3), True),
        ((Op.DELETE_RANGE, 2, 3), (Op.INSERT_BEFORE, 2, 0), False),
        ((Op.DELETE_RANGE, 2, 3), (Op.INSERT_AFTER, 3, 0), False),
        ((Op.REPLACE, 2, 0), (Op.REPLACE, 3, 0), False),
        ((Op.INSERT_AFTER, 2, 0), (Op.INSERT_BEFORE, 3, 0), False),
    ],
)
def test_operations_on_the_same_lines_are_refused(
    one: tuple[Op, int, int], other: tuple[Op, int, int], *, overlap: bool
) -> None:
    content = text("a.b.c.d.")
    for pair in ((one, other), (other, one)):
        operations = [operation(content, op, line, end, "X" if op.has_content else "") for op, line, end in pair]
        outcome = apply_operations(content, operations)
        if overlap:
            assert isinstance(outcome, OperationsOverlap)
            assert (outcome.index, outcome.prior) == (1, 0)
        else:
            assert isinstance(outcome, Placed)


# ---- anchors


def test_anchor_names_its_line_or_the_only_line_with_its_tag() -> None:
    content = b"one\ntwo\none\n"
    two, one = line_tag(b"two"), line_tag(b"one")
    at_two = AnchoredEdit(op=Op.DELETE, anchor=Anchor(2, two))
    moved = AnchoredEdit(op=Op.DELETE, anchor=Anchor(9, two))
    assert applied(content, at_two) == applied(content, moved) == b"one\none\n"
    outcome = apply_operations(content, [moved])
    assert isinstance(outcome, Placed)
    assert outcome.moved == ((0, Anchor(9, two), 2),)
    assert applied(content, AnchoredEdit(op=Op.DELETE, anchor=Anchor(3, one))) == b"one\ntwo\n"
    ambiguous = AnchoredEdit(op=Op.DELETE, anchor=Anchor(2, one))
    assert apply_operations(content, [at_two, ambiguous]) == AnchorAmbiguous(
        index=1, anchor=Anchor(2, one), lines=(1, 3)
    )
    missing = AnchoredEdit(op=Op.DELETE, anchor=Anchor(1, line_tag(b"three")))
    assert apply_operations(content, [missing]) == AnchorMissing(index=0, anchor=missing.anchor)


def test_lines_are_inserted_into_an_empty_text_in_the_order_given() -> None:
    edits = [AnchoredEdit(op=op, anchor=EMPTY_TEXT, lines=(op.encode(),)) for op in (Op.REPLACE, Op.INSERT_AFTER)]
    assert applied(b"", *edits) == b"replace\ninsert_after\n"
    deletion = AnchoredEdit(op=Op.DELETE, anchor=EMPTY_TEXT)
    assert apply_operations(b"", [*edits, deletion]) == AnchorMissing(index=2, anchor=EMPTY_TEXT)


@pytest.mark.parametrize("op", [Op.REPLACE, Op.INSERT_AFTER, Op.REPLACE_RANGE])
@pytest.mark.parametrize("line", [1, 3])
def test_content_with_a_line_tag_is_refused(op: Op, line: int) -> None:
    content = BOM + b"one\ntwo\nthree"
    tags = [line_tag(one) for one in split_lines(content)]
    tagged = f"{line}:{tags[line - 1]}|".encode()
    edit = operation(content, op, 2, 3 if op.has_end else 0)
    for lines in ((tagged + b"new",), (b"new", tagged)):
        outcome = apply_operations(content, [operation(content, Op.DELETE, 1), replace(edit, lines=lines)])
        assert outcome == TaggedContent(index=1, anchor=Anchor(line, tags[line - 1]))
    other = "00" if tags[line - 1] != "00" else "01"
    for content_without_tag in (f"{line}:{other}|new", f" {tagged.decode()}", f"4:{tags[2]}|new", tagged.decode()[:-1]):
        placed_or_reject = applied(content, replace(edit, lines=(content_without_tag.encode(),)))
        assert content_without_tag.encode() in placed_or_reject


def test_range_must_not_end_before_its_start() -> None:
    content = text("a.b.")
    assert apply_operations(content, [operation(content, Op.DELETE_RANGE, 2, 1)]) == EndBeforeStart(
        index=0, start=2, end=1
    )


@pytest.mark.parametrize(
    "text_given", ["", "2", "2:", ":f1", "2:f", "2:f11", "0:f1", "-1:f1", "2:g1", " 2:f1", "2:f1 x", "2:f1|x\n3:a8|"]
)
def test_invalid_anchor_is_parsed_as_none(text_given: str) -> None:
    assert parse_anchor(text_given) is None
    assert parse_anchor("2:F1") == parse_anchor("2:f1|x") == Anchor(2, "f1")


@pytest.mark.parametrize(
    "text_given", ["", "2:f1", "2:f1..", "..2:f1", "2:f1...3:a8", "2:f1..3:a8..4:00", "2:f1 ..3:a8"]
)
def test_invalid_range_is_parsed_as_none(text_given: str) -> None:
    assert parse_range(text_given) is None
    assert parse_range("2:F1..3:a8") == parse_range("2:f1|..x..3:a8|y..") == (Anchor(2, "f1"), Anchor(3, "a8"))


def test_newline_at_the_end_of_content_adds_no_line() -> None:
    assert (
        split_content_lines(b"a\nb")
        == split_content_lines(b"a\nb\n")
        == split_content_lines(b"a\r\nb\r\n")
        == (b"a", b"b")
    )
    assert split_content_lines(b"\n") == (b"",)
    assert split_content_lines(b"a\n\n") == (b"a", b"")
    assert split_content_lines(b"a\rb") == (b"a\rb",)


# ---- costs


def test_cost_is_linear_in_the_number_of_operations() -> None:
    def cost(count: int) -> int:
        content = b"".join(b"%d\n" % number for number in range(count))
        anchors = [Anchor(number + 1, line_tag(b"%d" % number)) for number in range(count)]
        named = [AnchoredEdit(op=Op.REPLACE, anchor=anchor, lines=(b"x",)) for anchor in anchors]
        moved = b"q\n" * count + b"u\n"
        inserted = [AnchoredEdit(op=Op.INSERT_AFTER, anchor=Anchor(1, line_tag(b"u")), lines=(b"x",))] * count
        return count_calls(lambda: (apply_operations(content, named), apply_operations(moved, inserted)))

    assert cost(800) < 2.5 * cost(400)


def test_edit_can_be_cancelled_between_operations() -> None:
    def between() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        apply_operations(b"a\n", [operation(b"a\n", Op.DELETE, 1)], between=between)


def test_edit_can_be_cancelled_while_a_tag_is_searched() -> None:
    checks = list[int]()
    content = b"".join(b"%d\n" % number for number in range(5000))
    assert isinstance(
        apply_operations(
            content, [AnchoredEdit(op=Op.DELETE, anchor=Anchor(6000, "00"))], between=lambda: checks.append(0)
        ),
        AnchorAmbiguous,
    )
    assert len(checks) > 5


# ---- laws

LINE_CONTENTS = (b"a", b"b", b"", b"c ", b"\xff", b"\xc2\xa0", b"a\rb", b"a\r", b"\r")
LINES = st.lists(st.sampled_from(LINE_CONTENTS), min_size=1, max_size=6)
ENDINGS = st.sampled_from([b"\n", b"\r\n"])


@st.composite
def edits(draw: st.DrawFn) -> tuple[bytes, list[AnchoredEdit]]:
    """Return a text and operations on its lines."""
    content = b"".join(line + draw(ENDINGS) for line in draw(LINES))
    if draw(st.booleans()):
        content = content[:-1] if draw(st.booleans()) else content.rstrip(b"\r\n")
    content = draw(st.sampled_from([b"", BOM])) + content
    lines = split_lines(content)
    result = []
    for _ in range(draw(st.integers(1, 3)) if lines else 0):
        op = draw(st.sampled_from(list(Op)))
        first = draw(st.integers(1, len(lines)))
        end = draw(st.integers(first, len(lines))) if op.has_end else 0
        new = "".join(draw(st.lists(st.sampled_from("XY_"), min_size=1, max_size=3))) if op.has_content else ""
        result.append(operation(content, op, first, end, new))
    return content, result


def placed_or_reject(content: bytes, operations: list[AnchoredEdit]) -> Placed:
    """Return the result of operations; reject examples with operations on the same lines."""
    outcome = apply_operations(content, operations)
    assert isinstance(outcome, Placed | OperationsOverlap)
    return outcome if isinstance(outcome, Placed) else reject()


@given(edits())
@example((b"a", [operation(b"a", Op.REPLACE, 1, new="X"), operation(b"a", Op.INSERT_AFTER, 1, new="Y")]))
def test_hunks_from_the_spans_fit_both_texts(case: tuple[bytes, list[AnchoredEdit]]) -> None:
    content, operations = case
    outcome = placed_or_reject(content, operations)
    hunks = hunks_from_spans(content, outcome.content, outcome.spans)
    assert hunks_fit(content, outcome.content, hunks)


@given(edits())
def test_lines_that_no_operation_names_are_unchanged(case: tuple[bytes, list[AnchoredEdit]]) -> None:
    content, operations = case
    outcome = placed_or_reject(content, operations)
    lines = split_lines(content)
    named = {
        line
        for edit in operations
        if not edit.op.inserts
        for line in range(edit.anchor.line, (edit.end or edit.anchor).line + 1)
    }
    # The byte order mark and the ending of the last line belong to the file, and have their own tests.
    kept = [line for number, line in enumerate(lines, 1) if number not in named and 1 < number < len(lines)]
    after = split_lines(outcome.content.removeprefix(BOM))
    if kept and not content.endswith(b"\n") and after[-1:] in ([kept[-1][:-1]], [kept[-1].removesuffix(b"\r\n")]):
        after[-1] = kept[-1]  # it is now the last line, in a text without a final newline
    rest = iter(after)
    assert all(line in rest for line in kept)


@given(edits(), st.sampled_from([b"last", b"last\n", b"last\r\n", b"\r", b"\n"]))
def test_last_line_that_no_operation_names_keeps_its_bytes(case: tuple[bytes, list[AnchoredEdit]], end: bytes) -> None:
    content, operations = case
    assume(content not in {b"", BOM})  # the operations would name a line that doesn't exist
    assert placed_or_reject(closed(content) + end, operations).content.endswith(end)


def last_line_of(edit: AnchoredEdit) -> int:
    """Return the last line that an operation changes, or next to which it inserts."""
    return (edit.end or edit.anchor).line


@given(edits())
def test_presence_of_a_final_newline_is_unchanged(case: tuple[bytes, list[AnchoredEdit]]) -> None:
    content, operations = case
    outcome = placed_or_reject(content, operations)
    # A byte order mark alone is one empty line without an ending, which vanishes once there are other lines.
    assume(outcome.content not in {b"", BOM} and content != BOM)
    last_line_of = split_lines(outcome.content.removeprefix(BOM))[-1]
    assert outcome.content.endswith(b"\n") is (content.endswith(b"\n") or last_line_of in {b"\n", b"\r\n"})


def test_only_moved_anchors_are_reported() -> None:
    content = text("a.b.c.")
    anchored = operation(content, Op.DELETE_RANGE, 1, 2)
    outcome = apply_operations(content, [anchored])
    assert isinstance(outcome, Placed)
    assert outcome.moved == ()


@pytest.mark.parametrize("prefix", [b"", BOM])
def test_final_newline_does_not_start_another_line(prefix: bytes) -> None:
    anchor_after_the_end = Anchor(2, line_tag(b""))
    outcome = apply_operations(prefix + b"a\n", [AnchoredEdit(op=Op.DELETE, anchor=anchor_after_the_end)])
    assert outcome == AnchorMissing(index=0, anchor=anchor_after_the_end)


@pytest.mark.parametrize(
    ("before", "op", "line", "lines", "after"),
    [
        (b"one\ntwo\r", Op.REPLACE, 1, (b"X",), b"X\ntwo\r"),
        (b"one\r\ntwo\r", Op.DELETE, 1, (), b"two\r"),
        (b"one\ntwo\r", Op.REPLACE, 2, (b"X", b"Y\r"), b"one\nX\nY\r"),
        (b"one\ntwo\r", Op.INSERT_AFTER, 2, (b"X",), b"one\ntwo\r\nX"),
        (b"one\r\ntwo", Op.INSERT_AFTER, 2, (b"X\r",), b"one\r\ntwo\r\nX\r"),
        (b"one\r\ntwo\r", Op.DELETE, 2, (), b"one"),
    ],
)
def test_cr_at_the_end_of_the_text_is_not_a_line_ending(
    before: bytes, op: Op, line: int, lines: tuple[bytes, ...], after: bytes
) -> None:
    anchor = Anchor(line, line_tag(split_lines(before)[line - 1]))
    assert applied(before, AnchoredEdit(op=op, anchor=anchor, lines=lines)) == after
