"""Laws of the accepted text and of the net changes, over random histories of edits and decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import assume, given

from objstore import ChangeKind, Status
from objstore.text.lines import split_lines
from objstore.weave.accepted_text import net_document
from objstore.weave.document import Document
from objstore.weave.line_weave import Weave
from tests.support.document_histories import document_histories

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from objstore import Unit
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
            if change.kind is ChangeKind.MOVE:
                assert document.version().path == net.accepted.path
            if change.kind is ChangeKind.MODE:
                assert document.version().mode == net.accepted.mode
        document.restore_statuses(now)
