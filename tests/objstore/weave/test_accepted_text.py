"""Laws of the accepted text and of the net changes, over random histories of edits and decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings, strategies as st

from objstore import ChangeKind, Hunk, Seq, Status, Unit
from objstore.text.lines import split_lines
from objstore.weave.accepted_text import net_document
from objstore.weave.document import Document
from objstore.weave.line_weave import Weave
from tests.support.document_histories import document_histories, document_of, next_edit
from tests.support.similar_lines import History, functions, repeated, text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from objstore.weave.accepted_text import DocumentChange, NetDocument


def applied(changes: Iterable[DocumentChange], text: bytes, *, skipped: Collection[DocumentChange] = ()) -> bytes:
    """Return the accepted text with the changes of lines applied, except the skipped ones."""
    lines, result, at = split_lines(text), list[bytes](), 0
    for change in changes:
        if change.hunk is None:
            continue
        assert b"".join(lines[change.hunk.old_start : change.hunk.old_end]) == change.removed
        result += lines[at : change.hunk.old_start]
        result.append(change.removed if change in skipped else change.inserted)
        at = change.hunk.old_end
    return b"".join([*result, *lines[at:]])


def removed(changes: Iterable[DocumentChange], text: bytes) -> bytes:
    """Return the current text with all changes of lines removed."""
    lines, result, at = split_lines(text), list[bytes](), 0
    for change in changes:
        if change.hunk is None:
            continue
        assert b"".join(lines[change.hunk.new_start : change.hunk.new_end]) == change.inserted
        result += [*lines[at : change.hunk.new_start], change.removed]
        at = change.hunk.new_end
    return b"".join([*result, *lines[at:]])


def pending(document: Document) -> list[Unit]:
    return document.pending()


def facts(document: Document) -> object:
    return document.version(), document.statuses(), document.blame(), document.conflicts()


def shown(net: NetDocument) -> object:
    return net.accepted, net.current, net.changes, net.cancelled, net.kept_on, net.is_binary


@given(document_histories())
def test_applying_all_changes_to_the_accepted_text_gives_the_current_text(document: Document) -> None:
    net = net_document(document)
    before, after = net.accepted.content, net.current.content
    assert after == document.text()
    assert (before is None) is any(change.kind is ChangeKind.CREATE for change in net.changes) or after is None
    assert (after is None) is any(change.kind is ChangeKind.DELETE for change in net.changes) or before is None
    if not net.is_binary:
        assert applied(net.changes, before or b"") == (after or b"")
        assert removed(net.changes, after or b"") == (before or b"")


@given(document_histories())
def test_the_accepted_text_is_the_text_after_all_pending_units_are_rejected(document: Document) -> None:
    net = net_document(document)
    verdicts = {unit: Status.REJECTED for unit in pending(document) if unit not in net.kept_on}
    verdicts |= dict.fromkeys(document.amendments(verdicts), Status.REJECTED)
    document.set_statuses(verdicts)
    assert not document.conflicts()
    assert document.version() == net.accepted


@given(document_histories())
def test_every_pending_unit_is_in_a_change_or_cancelled_or_kept_on(document: Document) -> None:
    net = net_document(document)
    changed = {unit for change in net.changes for unit in change.units}
    assert changed.isdisjoint(net.cancelled)
    assert changed.isdisjoint(net.kept_on)
    assert set(pending(document)) <= {*changed, *net.cancelled, *net.kept_on}
    assert all(change.units for change in net.changes)


@given(document_histories())
def test_the_writers_of_a_change_are_of_its_units_and_each_changed_line_has_one(document: Document) -> None:
    net = net_document(document)
    for change in net.changes:
        lines = len(split_lines(change.removed)) + len(split_lines(change.inserted))
        assert sum(writers.lines for writers in change.writers) == lines
        assert {unit for writers in change.writers for unit in writers.units} <= change.units
        kept = sum(writers.lines for writers in change.writers if not writers.units)
        assert kept == 0 or change.kind is ChangeKind.NEWLINE or kept < lines


@given(document_histories())
def test_net_changes_leave_the_document_as_it_was(document: Document) -> None:
    before = facts(document)
    state = document.state() if document.is_clean else None
    net = net_document(document)
    assert facts(document) == before
    assert (document.state() if document.is_clean else None) == state
    assert shown(net_document(document)) == shown(net)


@given(document_histories())
def test_net_changes_of_a_cached_document_are_the_same(document: Document) -> None:
    assume(document.is_clean)
    state, weave = document.state()
    loaded = Document(state, Weave.from_state(weave))
    assert shown(net_document(loaded)) == shown(net_document(document))


@given(document_histories())
def test_rejecting_the_units_of_a_change_removes_its_lines_and_no_others(document: Document) -> None:
    net = net_document(document)
    before, now = net.accepted.content, document.statuses()
    for change in net.changes:
        units = set(change.units)
        while True:
            group = [other for other in net.changes if not units.isdisjoint(other.units)]
            if units == (units := units.union(*(other.units for other in group))):
                break
        verdicts = dict.fromkeys(units, Status.REJECTED)
        verdicts |= dict.fromkeys(document.amendments(verdicts), Status.REJECTED)
        document.set_statuses(verdicts)
        if not document.conflicts() and set(verdicts) == units:
            if before is not None and net.current.content is not None and not net.is_binary:
                assert document.text() == applied(net.changes, before, skipped=group)
            elif change.kind in {ChangeKind.CREATE, ChangeKind.DELETE, ChangeKind.CONTENT}:
                assert document.text() == before
            if before is not None and net.current.content is not None:
                kinds, version = {other.kind for other in group}, document.version()
                assert version.path == (net.accepted if ChangeKind.MOVE in kinds else net.current).path
                assert version.mode == (net.accepted if ChangeKind.MODE in kinds else net.current).mode
        document.restore_statuses(now)


# ---- histories of which it is known what each edit did


def recorded(history: History, statuses: Sequence[Status]) -> Document:
    """Return the document of a history whose edits named the lines that they changed."""
    document = document_of(history.states[0])
    for number, (text, status) in enumerate(zip(history.states[1:], statuses, strict=True)):
        edit = next_edit(document, number + 1, text, hunks=history.hunks(number), status=status)
        document.add(edit, text)
    return document


def known_changes(history: History, pending_edits: Collection[int]) -> list[tuple[Hunk, frozenset[int]]]:
    """Return the net changes by the identity of lines: their place, and the edits that made them."""
    kept = [change for number, change in enumerate(history.changes) if number not in pending_edits]
    gone = {line for change in kept for line in change.removed}
    accepted = set(history.lines[0]).union(*(change.inserted for change in kept)) - gone
    current = set(history.lines[-1])
    makers = {
        line: number
        for number, change in enumerate(history.changes)
        for line in change.removed | change.inserted
        if number in pending_edits
    }
    found: list[tuple[Hunk, frozenset[int]]] = []
    old = new = 0
    start: tuple[int, int, set[int]] | None = None
    for line in (*history.order, None):
        if line is None or (line in accepted and line in current):
            if start is not None:
                found.append((Hunk(start[0], old - start[0], start[1], new - start[1]), frozenset(start[2])))
            start = None
        elif line in accepted or line in current:
            start = start or (old, new, set())
            start[2].add(makers[line])
        old, new = old + (line in accepted), new + (line in current)
    return found


def is_within(hunk: Hunk, other: Hunk) -> bool:
    is_old = other.old_start <= hunk.old_start and hunk.old_end <= other.old_end
    return is_old and other.new_start <= hunk.new_start and hunk.new_end <= other.new_end


@pytest.mark.parametrize("kind", ["functions", "repeated"])
@settings(max_examples=4 * settings().max_examples)
@given(seed=st.integers(0, 1_000_000), drawn=st.data())
def test_changes_of_alike_lines_are_those_that_the_edits_made(kind: str, seed: int, drawn: st.DataObject) -> None:
    history = functions(seed) if kind == "functions" else repeated(seed, alike=0.8)
    assume(history is not None and history.changes)
    assert history is not None
    statuses = drawn.draw(
        st.lists(
            st.sampled_from([Status.PENDING, Status.ACCEPTED]),
            min_size=len(history.changes),
            max_size=len(history.changes),
        )
    )
    document = recorded(history, statuses)
    pending_edits = {number for number, status in enumerate(statuses) if status is Status.PENDING}
    net = net_document(document)
    known = known_changes(history, pending_edits)
    assert net.current.content == text_of(history.lines[-1])
    assume(not net.kept_on)  # an accepted insertion between pending ones
    found = list(net.changes)
    old, new = split_lines(net.accepted.content or b""), split_lines(history.states[-1])
    for hunk, edits in known:
        # Lines that are equal on both sides of one change are not shown.
        here = [change for change in found if change.hunk is not None and is_within(change.hunk, hunk)]
        is_equal = old[hunk.old_start : hunk.old_end] == new[hunk.new_start : hunk.new_end]
        assert bool(here) is not is_equal
        made = {Seq(number + 1) for number in edits}
        assert all({unit.seq for unit in change.units} == made for change in here) or len(edits) > 1
        assert {unit.seq for change in here for unit in change.units} == made or is_equal
        found = [change for change in found if change not in here]
    assert not found


def two_edits(first: bytes, second: bytes, third: bytes) -> NetDocument:
    """Return the net changes of two pending edits."""
    document = document_of(first)
    for seq, text in enumerate((second, third), 1):
        document.add(next_edit(document, seq, text), text)
    return net_document(document)


def units(*names: str) -> tuple[Unit, ...]:
    return tuple(Unit(Seq(int(name.split(":")[0])), int(name.split(":")[1])) for name in names)


def test_a_line_that_was_changed_twice_is_one_change_of_both_hunks() -> None:
    net = two_edits(b"a\nb\nc\n", b"a\nB\nc\n", b"a\nBB\nc\n")
    [change] = net.changes
    assert (change.removed, change.inserted, change.hunk) == (b"b\n", b"BB\n", Hunk(1, 1, 1, 1))
    assert sorted(change.units) == [*units("1:1", "2:1")]


def test_the_text_before_the_first_edit_has_no_earlier_author() -> None:
    net = two_edits(b"a\nb\nc\n", b"a\nB\nc\n", b"new\na\nBB\nc\n")
    assert [change.earlier for change in net.changes] == [(), ()]


@given(document_histories())
def test_what_a_change_removes_was_written_by_edits_of_the_document(document: Document) -> None:
    earlier = {unit for change in net_document(document).changes for unit in change.earlier}
    assert {unit for unit in earlier if not document.knows(unit)} == set()


def test_a_line_that_was_inserted_and_changed_is_one_change_of_both_hunks() -> None:
    net = two_edits(b"a\nc\n", b"a\nb\nc\n", b"a\nB\nc\n")
    [change] = net.changes
    assert (change.removed, change.inserted) == (b"", b"B\n")
    assert sorted(change.units) == [*units("1:1", "2:1")]


def test_hunks_that_restore_the_text_cancel_out() -> None:
    net = two_edits(b"a\nb\nc\nd\n", b"a\nB\nc\nD\n", b"a\nb\nc\nD\n")
    [change] = net.changes
    assert (change.inserted, change.units) == (b"D\n", frozenset(units("1:2")))
    assert net.cancelled == units("1:1", "2:1")


def test_hunks_that_cancel_out_next_to_another_change_are_no_part_of_it() -> None:
    net = two_edits(b"a\nb\nc\n", b"a\nB\nc\n", b"a\nb\nC\n")
    [change] = net.changes
    assert (change.removed, change.inserted) == (b"c\n", b"C\n")
    assert net.cancelled == ()  # one hunk restored the line and changed the next
    assert sorted(change.units) == [*units("1:1", "2:1")]


def test_lines_that_return_in_a_rewritten_place_are_not_shown_as_changed() -> None:
    body = b"".join(b"line %d\n" % i for i in range(6))
    net = two_edits(b"top\n" + body + b"end\n", b"top\nend\n", b"top\n" + body.replace(b"3", b"three") + b"end\n")
    [change] = net.changes
    assert (change.removed, change.inserted) == (b"line 3\n", b"line three\n")
    assert sorted(change.units) == [*units("1:1", "2:1")]


def test_a_file_in_place_of_another_is_decided_with_the_deletion() -> None:
    document = document_of(b"")
    document.add(next_edit(document, 1, None), None)
    document.add(next_edit(document, 2, b"x\n"), b"x\n")
    net = net_document(document)
    [change] = net.changes
    assert (change.kind, change.inserted) == (ChangeKind.LINES, b"x\n")
    assert sorted(change.units) == [*units("1:0", "2:0")]


def test_lines_that_returned_next_to_others_are_decided_with_these() -> None:
    net = two_edits(b"p\na\nq\n", b"p\nq\n", b"p\na\nb\nq\n")
    [change] = net.changes
    assert (change.removed, change.inserted) == (b"", b"b\n")
    assert sorted(change.units) == [*units("1:1", "2:1")]


def test_one_of_two_edits_of_a_final_newline_is_decided_with_the_other() -> None:
    document = document_of(b"a\nb\n")
    for seq, text in enumerate((b"a\nb", b"a\nc\n"), 1):
        document.add(next_edit(document, seq, text), text)
    [change] = net_document(document).changes
    assert (change.removed, change.inserted) == (b"b\n", b"c\n")
    assert sorted(change.units) == [*units("1:0", "2:1")]
