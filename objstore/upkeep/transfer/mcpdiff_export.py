"""Write the edit history in the layout of mcpdiff: a log for each conversation, a diff for each edit, and checkpoints.

A reader needs nothing else to compute every state: an entry starts from its checkpoint if it has one, from nothing if
it creates the file, and else from the state to which the earlier entries of its conversation lead. mcpdiff keeps one
checkpoint for each file and conversation. Here an entry has another one if the file was changed in between, by another
conversation, a decision or from outside.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final, assert_never

from objstore.history.edit_queries import edit
from objstore.model.basic_types import EXTERNAL_CONVERSATION, Operation, Seq, Status
from objstore.model.ids import BlobId
from objstore.model.large_file_placeholder import MAX_BLOB
from objstore.model.records import Edit
from objstore.model.views import EditView
from objstore.storage.store.object_store import Store
from objstore.storage.transaction.journal import Journal
from objstore.text.hunks import hunks_fit
from objstore.text.unified_diff import quoted_name, unified_diff
from objstore.upkeep.transfer.mcpdiff_format import McpdiffEntry, log_line, safe_file_name
from objstore.values.errors import PathInvalid
from objstore.values.fastclass import value

__all__ = ["McpdiffExport", "send_mcpdiff_history"]

_DISTINCT: Final = 16
"""Hex digits that distinguish file names."""

_NO_NEWLINE: Final = b"\n\\ No newline at end of file\n"

Take = Callable[[str, Iterable[bytes]], None]
"""Receives a file of the history: its name, relative to the folder of the history, and its bytes in pieces."""


@value
class McpdiffExport:
    """The result of an export: what was written, and what the format can't express."""

    edits: int
    conversations: int
    diffs: int
    checkpoints: int
    expired: tuple[Seq, ...]  # not written: their content is no longer kept
    partly: tuple[Seq, ...]  # decided hunk by hunk; the log has one status for the whole edit


def send_mcpdiff_history(journal: Journal, seqs: Sequence[Seq], take: Take) -> McpdiffExport:
    """Pass the history of some edits to `take`, file by file; the logs come last.

    Raises PathInvalid, before the first file, if a path is not UTF-8; then NoSuchName, BlobMissing, BlobDamaged, and
    what `take` raises.
    """

    def counted(numbers: Sequence[Seq]) -> Iterator[Seq]:
        for done, seq in enumerate(numbers):
            journal.progress("records", done, len(numbers))
            yield seq

    with journal.reading() as store, store.index.still():
        views = [edit(journal, seq) for seq in counted(sorted(set(seqs)))]
        kept = [view for view in views if view.expired is None]
        writer = _HistoryWriter(store, journal.tree.root, take)
        for view in kept:
            writer.check_path(view.edit)
        for view in kept:
            writer.name(view)
        # File by file: each state is a delta to the one before it, which is then still in memory.
        for done, view in enumerate(sorted(kept, key=lambda view: (view.edit.document, view.seq))):
            journal.progress("edits", done, len(kept))
            writer.write(view)
        for view in kept:
            writer.log(view)
        writer.finish()
        return McpdiffExport(
            edits=len(kept),
            conversations=len(writer.logs),
            diffs=writer.diffs,
            checkpoints=writer.checkpoints,
            expired=tuple(view.seq for view in views if view.expired is not None),
            partly=tuple(view.seq for view in kept if view.partly),
        )


class _HistoryWriter:
    """Names diffs and checkpoints in the order of the edits, passes them on, and collects the lines of the logs."""

    def __init__(self, store: Store, root: str, take: Take) -> None:
        self._store: Final = store
        self._root: Final = root.rstrip("/")
        self._take: Final = take
        self._folders: Final[dict[str, str]] = {}  # name of each conversation's log and folders
        self._taken: Final[set[str]] = set()  # these names, in lower case
        self._names: Final[dict[str, set[str]]] = {}  # of each conversation's checkpoints, in lower case
        self._states: Final[dict[str, dict[bytes, BlobId | None]]] = {}  # what a reader of each conversation computed
        self._places: Final[dict[Seq, tuple[str | None, str | None]]] = {}  # of each edit's checkpoint and diff
        self._sums: Final[dict[BlobId, str]] = {}  # SHA-256 in hex
        self.logs: Final[dict[str, list[bytes]]] = {}  # lines, by conversation
        self.diffs = self.checkpoints = 0

    def check_path(self, edit: Edit) -> None:
        """Raise PathInvalid if a log can't hold the path of an edit."""
        for path in (edit.path, edit.source):
            self._absolute(edit, path)

    def name(self, view: EditView) -> None:
        """Name the checkpoint and the diff of an edit, as far as it has them."""
        edit = view.edit
        if edit.conversation not in self.logs:
            distinct = sha256(edit.conversation.encode()).hexdigest()[:_DISTINCT]
            self._folders[edit.conversation] = folder = safe_file_name(edit.conversation, self._taken, distinct)
            self._taken.add(folder.lower())
            self.logs[edit.conversation] = []
        checkpoint, diff = self._checkpoint(view), self._diff(view)
        self._places[view.seq] = checkpoint, diff
        self.checkpoints += checkpoint is not None
        self.diffs += diff is not None

    def write(self, view: EditView) -> None:
        """Pass on the checkpoint and the diff of an edit, and hash its states."""
        edit, (checkpoint, diff) = view.edit, self._places[view.seq]
        before, after = (None if state is None else state.blob for state in (edit.before, edit.after))
        if checkpoint is not None and before is not None:
            self._take(checkpoint, self._store.pieces(before))
        if diff is not None and after is not None:
            is_large = any(blob is not None and self._store.size(blob) > MAX_BLOB for blob in (before, after))
            made: Iterable[bytes] = (
                self._large_diff(edit, before, after) if is_large else [self._text_diff(edit, before, after)]
            )
            self._take(diff, made)
        for blob in (before, after):
            if blob is not None:
                self._sum(blob)

    def log(self, view: EditView) -> None:
        """Add an edit, which was passed on, to the log of its conversation."""
        edit, (checkpoint, diff) = view.edit, self._places[view.seq]
        entry = McpdiffEntry(
            id=view.id.hex(),
            conversation=edit.conversation,
            index=edit.call,
            time=edit.time,
            operation=edit.operation,
            path=self._absolute(edit, edit.path) or "",
            source=self._absolute(edit, edit.source),
            tool=edit.tool or EXTERNAL_CONVERSATION,
            status=_status(view.status),
            diff=diff,
            checkpoint=checkpoint,
            before=None if edit.before is None else self._sum(edit.before.blob),
            after=None if edit.after is None else self._sum(edit.after.blob),
        )
        self.logs[edit.conversation].append(log_line(entry))

    def finish(self) -> None:
        """Pass on the logs."""
        for conversation, lines in self.logs.items():
            self._take(f"logs/{self._folders[conversation]}.log", lines)

    def _absolute(self, edit: Edit, path: bytes | None) -> str | None:
        if path is None:
            return None
        absolute = f"{self._root}/{path.decode(errors='surrogateescape')}"
        try:
            absolute.encode()
        except UnicodeEncodeError:
            reason = f"of edit {edit.seq}; it is not UTF-8, and a log holds nothing else"
            raise PathInvalid(absolute, reason) from None
        return absolute

    def _checkpoint(self, view: EditView) -> str | None:
        """Name a checkpoint of the state before an edit, if the conversation's earlier entries don't lead to it."""
        edit = view.edit
        states = self._states.setdefault(edit.conversation, {})
        start = edit.path if edit.source is None else edit.source
        place = None
        if edit.before is not None and states.get(start) != edit.before.blob:
            folder, names = self._folders[edit.conversation], self._names.setdefault(edit.conversation, set())
            name = safe_file_name(start.decode(), names, view.id.hex()[:_DISTINCT])
            names.add(name.lower())
            place = f"checkpoints/{folder}/{name}.chkpt"
        states[start] = None
        states[edit.path] = None if edit.after is None else edit.after.blob
        return place

    def _diff(self, view: EditView) -> str | None:
        """Name a diff for an edit that changed the file's content, or created the file."""
        edit = view.edit
        before, after = (None if state is None else state.blob for state in (edit.before, edit.after))
        if after is None or before == after or edit.operation is Operation.MOVE:
            return None
        return f"diffs/{self._folders[edit.conversation]}/{view.id.hex()}.diff"

    def _text_diff(self, edit: Edit, before: BlobId | None, after: BlobId) -> bytes:
        old, new = None if before is None else self._store.blob(before), self._store.blob(after)
        # Those of a binary file, or of one whose text is a placeholder, are not of its lines.
        are_of_lines = old is not None and hunks_fit(old, new, edit.hunks)
        old_name, new_name = _header_names(edit)
        return unified_diff(
            old,
            new,
            path_before=old_name,
            path_after=new_name,
            hunks=edit.hunks if are_of_lines else None,
            binary_lines=True,
        )

    def _large_diff(self, edit: Edit, before: BlobId | None, after: BlobId) -> Iterator[bytes]:
        """Yield a diff that replaces all lines: large states are never in memory as a whole."""
        old_name, new_name = _header_names(edit)
        old_count, new_count = (0 if blob is None else self._line_count(blob) for blob in (before, after))
        old_range, new_range = (f"{1 if count else 0},{count}" for count in (old_count, new_count))
        yield b"--- %b\n" % (b"/dev/null" if before is None else quoted_name(old_name))
        yield b"+++ %b\n@@ -%b +%b @@\n" % (quoted_name(new_name), old_range.encode(), new_range.encode())
        if before is not None:
            yield from _signed(b"-", self._store.pieces(before))
        yield from _signed(b"+", self._store.pieces(after))

    def _line_count(self, blob: BlobId) -> int:
        count, is_open = 0, False
        for piece in self._store.pieces(blob):
            count += piece.count(b"\n")
            is_open = not piece.endswith(b"\n")
        return count + is_open

    def _sum(self, blob: BlobId) -> str:
        known = self._sums.get(blob)
        if known is None:
            hasher = sha256()
            for piece in self._store.pieces(blob):
                hasher.update(piece)
            self._sums[blob] = known = hasher.hexdigest()
        return known


def _status(status: Status) -> Status:
    """Return the status that a log gives an edit: one of the three that mcpdiff knows."""
    match status:
        case Status.PENDING | Status.ACCEPTED | Status.REJECTED:
            return status
        case Status.AWAY:
            return Status.REJECTED  # neither has an effect on the files
        case _:
            assert_never(status)


def _header_names(edit: Edit) -> tuple[str, str]:
    path = edit.path.decode()
    return f"a/{path}", f"b/{path}"


def _signed(sign: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a text with a sign before each."""
    is_open = False
    for piece in pieces:
        if not piece:
            continue
        lead = b"" if is_open else sign
        is_open = not piece.endswith(b"\n")
        lines = piece if is_open else piece[:-1]
        yield b"%b%b%b" % (lead, lines.replace(b"\n", b"\n" + sign), b"" if is_open else b"\n")
    if is_open:
        yield _NO_NEWLINE
