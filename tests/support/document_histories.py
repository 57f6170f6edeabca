"""Draw random histories of one document: edits of every kind, and decisions between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from objstore import DocumentId, FileState, Hunk, Seq, Status, blob_id, diff_lines
from objstore.model.replay_records import ReplayEdit
from objstore.text.lines import closed, is_closed
from objstore.weave.document import Document, DocumentVersion

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LINES", "amended", "document_histories", "document_of", "next_edit"]

LINES: Final = (b"", b"}", b"return", b"a", b"b", b"c", b"\r", b"d\r", b"\xff\xfe")
PATHS: Final = (b"one.txt", b"two.txt", b"three.txt")
MODES: Final = (0o644, 0o755)

_lines = st.lists(st.sampled_from(LINES), max_size=8)


def document_of(text: bytes | None) -> Document:
    """Return a document without edits whose file has this text (None: there is no file)."""
    version = DocumentVersion(path=PATHS[0], mode=0 if text is None else MODES[0], content=text)
    return Document.without_edits(DocumentId(1), version)


def next_edit(
    document: Document,
    seq: int,
    after: bytes | None,
    *,
    path: bytes = b"",
    mode: int = 0o644,
    hunks: Sequence[Hunk] | None = None,
    status: Status = Status.PENDING,
    amends: int | None = None,
) -> ReplayEdit:
    """Return the edit that leads from the present state of a document to another, as the recorder would make it."""
    version = document.version()
    before = version.content
    path = path or version.path
    newline = False
    found: tuple[Hunk, ...] = ()
    if before is not None and after is not None and before != after:
        found = diff_lines(before, after) if hunks is None else tuple(hunks)
        ends_inside = bool(found) and found[-1].new_count > 0 and found[-1].new_end == closed(after).count(b"\n")
        newline = is_closed(before) is not is_closed(after) and not ends_inside
    old = None if before is None else FileState(blob=blob_id(before), mode=version.mode)
    new = None if after is None else FileState(blob=blob_id(after), mode=mode)
    source = version.path if before is not None and path != version.path else None
    is_same = old is not None and new is not None and old.mode == new.mode and source is None
    return ReplayEdit(
        seq=Seq(seq),
        document=DocumentId(1),
        path=path,
        source=source,
        before=old,
        after=new,
        hunks=found,
        status=status,
        amends=None if amends is None else Seq(amends),
        changes_whole=not is_same or not found or newline,
        is_meant=hunks is not None,
    )


def amended(draw: st.DrawFn, content: bytes) -> tuple[bytes, list[Hunk] | None]:
    """Draw the next text of a file, and the lines that a tool says it changed (None: they are found by comparison)."""
    lines = closed(content).split(b"\n")[:-1]
    hunks: list[Hunk] = []
    at = shift = 0
    result: list[bytes] = []
    for _ in range(draw(st.integers(1, 3))):
        if at > len(lines):
            break
        start = draw(st.integers(at, len(lines)))
        end = draw(st.integers(start, min(start + 3, len(lines))))
        new = draw(st.lists(st.sampled_from(LINES), max_size=3))
        if not new and start == end:
            continue
        hunks.append(Hunk(start, end - start, start + shift, len(new)))
        result += [*lines[at:start], *new]
        shift += len(new) - (end - start)
        at = end
        if at < len(lines):  # hunks never touch
            result.append(lines[at])
        at += 1
    result += lines[at:]
    text = b"".join(line + b"\n" for line in result)
    if text and not text.endswith(b"\n\n") and text != b"\n" and draw(st.integers(0, 5)) == 0:
        text = text[:-1]
    return text, hunks if draw(st.booleans()) and text != content else None


def _decide(draw: st.DrawFn, document: Document) -> None:
    """Make a random decision, if it leads to no conflict."""
    before = document.statuses()
    units = [unit for seq in range(1, document.last + 1) for unit in document.units(Seq(seq))]
    chosen = draw(st.lists(st.sampled_from(units), min_size=1, max_size=4))
    verdicts = dict.fromkeys(chosen, draw(st.sampled_from(list(Status))))
    verdicts |= dict.fromkeys(document.amendments(verdicts), Status.REJECTED)
    document.set_statuses(verdicts)
    if document.conflicts():
        document.restore_statuses(before)


@st.composite
def document_histories(draw: st.DrawFn, *, most: int = 7, decisions: bool = True) -> Document:
    """Draw a document with up to `most` edits."""
    base = None if draw(st.integers(0, 4)) == 0 else b"".join(line + b"\n" for line in draw(_lines))
    if base and draw(st.integers(0, 4)) == 0 and base.rstrip(b"\n") == base[:-1]:
        base = base[:-1]
    document = document_of(base)
    for seq in range(1, draw(st.integers(1, most)) + 1):
        content = document.text()
        status = Status.PENDING if draw(st.integers(0, 3)) else Status.ACCEPTED
        amends = (
            draw(st.integers(1, seq - 1)) if status is Status.ACCEPTED and seq > 1 and draw(st.booleans()) else None
        )
        hunks: list[Hunk] | None = None
        after: bytes | None
        if content is None:
            after = b"".join(line + b"\n" for line in draw(_lines))
        elif draw(st.integers(0, 9)) == 0:
            after = None
        else:
            after, hunks = amended(draw, content)
        now = document.version()
        is_there = now.content is not None and after is not None
        path = draw(st.sampled_from(PATHS)) if is_there and draw(st.integers(0, 5)) == 0 else now.path
        mode = draw(st.sampled_from(MODES)) if draw(st.integers(0, 5)) == 0 else now.mode or 0o644
        edit = next_edit(document, seq, after, path=path, mode=mode, hunks=hunks, status=status, amends=amends)
        if edit.before == edit.after and edit.source is None:
            edit = next_edit(document, seq, (now.content or b"") + b"more\n", mode=now.mode or 0o644, status=status)
            after = (now.content or b"") + b"more\n"
        document.add(edit, after)
        if document.conflicts():
            document.set_statuses({})
        if decisions and draw(st.booleans()):
            _decide(draw, document)
    return document
