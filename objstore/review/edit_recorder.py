"""Changes on their way into the journal: which blobs and which record an edit becomes, and with which number.

A change is what a call did to one file, or what was found on disk and nobody had recorded.
"""

import os
from collections.abc import Callable, Mapping, Sequence

from objstore.errors import UNREADABLE
from objstore.fastclass import replace, variable
from objstore.fs.confined_path import FileOnDisk, Tree
from objstore.fs.content_source import FileSource, Source
from objstore.model.basic_types import DocumentId, FileState, Operation, Origin, Seq, Status
from objstore.model.ids import BlobId
from objstore.model.large_file_placeholder import is_placeholder, placeholder
from objstore.model.records import Edit, Marks
from objstore.model.results import NOBODY, CallInfo
from objstore.model.views import EditView
from objstore.store.write_batch import Batch, now
from objstore.text.diff import diff_lines
from objstore.text.hunks import Hunk, VerifiedHunks
from objstore.text.lines import Affixes, common_affixes, is_closed
from objstore.text.unified_diff import is_either_binary
from objstore.transaction.journal import Journal
from objstore.worktree.external_changes import EXTERNAL_CONVERSATION

__all__ = [
    "Change",
    "Recorder",
    "Version",
    "external_change",
    "external_changes",
    "new_conversation",
    "version_of",
]


def new_conversation() -> str:
    """Return a fresh conversation id: `conv_{epoch_ms}_{rand_hex}`."""
    return f"conv_{now() // 1000}_{os.urandom(4).hex()}"


@variable
class Version:
    """A file's text and permission bits, with the blob's name."""

    content: bytes  # of a large file, its stand-in
    state: FileState
    source: Source | None = None  # of a stand-in: where the bytes are, if the store may not have them


@variable
class Change:
    """One edit that the call will record."""

    document: DocumentId | None  # None: the document begins with this edit
    operation: Operation
    path: bytes
    source: bytes | None
    before: Version | None
    after: Version | None
    hunks: Sequence[Hunk] | None  # None: to be found by diff
    origin: Origin
    amends: Seq | None = None  # the edit that this one amends; None: it amends none
    marks: Marks | None = None  # None: it writes no conflict markers
    folders: int = 0  # how many of the path's folders are to be made
    is_last: bool = False  # whether the document ends with it, because what was recorded of it can't be read


class Recorder:
    """Turns changes into edit records, and knows the numbers they get."""

    def __init__(self, journal: Journal, batch: Batch) -> None:
        self._store = journal.store
        self._batch = batch
        self._seq = self._store.next_seq()
        self._time = now()

    def record(
        self,
        change: Change,
        *,
        document: DocumentId | None,
        conversation: str,
        call: int,
        ordinal: int,
        tool: str,
        notes: Mapping[str, str],
        time: int = 0,
    ) -> EditView:
        """Add the change's blobs and its record to the batch, and return the edit as it will be shown.

        `time`: when it was made, in microseconds since 1970-01-01 UTC; 0: now.
        """
        before, after = change.before, change.after
        affixes = None
        # A stand-in without a source is of a state that was recorded: it is stored, or lost.
        if before is not None and (before.source is not None or not is_placeholder(before.content)):
            self._batch.state(before.content, name=before.state.blob, source=before.source)
        if after is not None:
            base = None
            if before is not None and before.state.blob != after.state.blob:
                base, affixes = before.state.blob, _affixes(before.content, after.content, change.hunks)
            # What a stand-in shares with another text says nothing of the bytes.
            shared = None if before is not None and is_placeholder(before.content) else affixes
            self._batch.state(after.content, base, name=after.state.blob, affixes=shared, source=after.source)
        hunks, newline = _hunks(before, after, change.hunks, affixes)
        edit = Edit(
            seq=self._seq,
            document=DocumentId(self._seq) if document is None else document,
            time=time or self._time,
            conversation=conversation,
            call=call,
            ordinal=ordinal,
            operation=change.operation,
            path=change.path,
            source=change.source,
            before=None if before is None else before.state,
            after=None if after is None else after.state,
            hunks=hunks,
            folders=change.folders,
            newline=newline,
            added=_line_count(after) if before is None else sum(hunk.new_count for hunk in hunks),
            removed=_line_count(before) if after is None else sum(hunk.old_count for hunk in hunks),
            origin=change.origin,
            # What a person did needs no review.
            status=Status.PENDING if change.origin is Origin.AGENT else Status.ACCEPTED,
            amends=change.amends,
            marks=change.marks,
            tool=tool,
            notes=notes,
        )
        self._seq = Seq(self._seq + 1)
        return EditView(
            id=self._batch.record(edit),
            edit=edit,
            status=edit.status,
            units=(edit.status,) * (1 + len(edit.hunks)),
            whole=edit.changes_whole,
            reasons=("",) * (1 + len(edit.hunks)),
        )

    def external(self, changes: Sequence[Change]) -> list[EditView]:
        """Record changes that were found on disk, as nobody's."""
        return self.found([(change, NOBODY) for change in changes])

    def found(self, changes: Sequence[tuple[Change, CallInfo]]) -> list[EditView]:
        """Record changes that were found on disk, each with whose it is."""
        views: list[EditView] = []
        calls: dict[str, list[EditView]] = {}  # by conversation
        for change, info in changes:
            is_nobodys = info.origin is Origin.EXTERNAL
            conversation = EXTERNAL_CONVERSATION if is_nobodys else info.conversation
            beside = calls.setdefault(conversation, [])
            view = self.record(
                self.bound_to_markers(replace(change, origin=info.origin)),
                document=change.document,
                conversation=conversation,
                call=beside[0].edit.call if beside else self._store.next_call(conversation),
                ordinal=len(beside),
                tool=info.tool,
                notes=info.notes,
            )
            beside.append(view)
            views.append(view)
        return views

    def bound_to_markers(self, change: Change) -> Change:
        """Return a change found on disk as an amendment, where all of it lies between conflict markers.

        An agent's is none: it is to be reviewed.
        """
        if change.origin is Origin.AGENT or change.document is None or change.before is None or change.after is None:
            return change
        if change.before.state.mode != change.after.state.mode:
            return change  # no markers are about that
        if not self._store.index.edits.with_markers(change.document):
            return change
        from objstore.history.marked_text import marker_edit_around

        hunks, _ = _hunks(change.before, change.after, None, None)
        return replace(change, amends=marker_edit_around(self._store, change.document, change.before.content, hunks))


def version_of(found: tuple[FileState, FileOnDisk] | None, tree: Tree, path: bytes) -> Version | None:
    """Return what was found on disk at `path` as a version."""
    if found is None:
        return None
    state, file = found
    source = FileSource(tree, path, file.stat) if is_placeholder(file.content) else None
    return Version(content=file.content, state=state, source=source)


def external_change(
    path: bytes,
    document: DocumentId | None,
    known: FileState | None,
    now: Version | None,
    text: Callable[[BlobId], bytes],
    *,
    folders: int = 0,
) -> Change | None:
    """Return the edit that leads from what is known of a file to what stands on disk (None: nothing does).

    `document`: None: it begins with this edit. `folders`: how many of the path's folders are new with the file.
    """
    if (None if now is None else now.state) == known:
        return None
    before: Version | None = None
    if known is not None and now is not None and now.state.blob == known.blob:
        # Its mode alone is otherwise, so its bytes stand there, also where the store has lost them.
        before = replace(now, state=known)
    elif known is not None:
        before = Version(content=text(known.blob), state=known)
    operation = Operation.CREATE if before is None else Operation.DELETE if now is None else Operation.EDIT
    return Change(
        document=document,
        operation=operation,
        path=path,
        source=None,
        before=before,
        after=now,
        hunks=None,
        origin=Origin.EXTERNAL,
        folders=folders,
    )


def external_changes(
    path: bytes,
    document: DocumentId,
    known: FileState | None,
    now: Version | None,
    text: Callable[[BlobId], bytes],
) -> list[Change]:
    """Return the edits that lead from what is recorded of a file to what stands on disk (none: nothing does).

    Where what is recorded can't be read, its document ends, and what stands there begins another: no lines lead there
    from bytes that nobody knows, and what a damaged store has lost is no reason to refuse a change of a file.
    """
    try:
        change = external_change(path, document, known, now, text)
    except UNREADABLE:
        if known is None:
            raise
    else:
        return [] if change is None else [change]
    end = Change(
        document=document,
        operation=Operation.DELETE,
        path=path,
        source=None,
        before=Version(content=placeholder(known.blob), state=known),
        after=None,
        hunks=None,
        origin=Origin.EXTERNAL,
        is_last=True,
    )
    begin = external_change(path, None, None, now, text)
    return [end] if begin is None else [end, begin]


def _affixes(before: bytes, after: bytes, hunks: Sequence[Hunk] | None) -> Affixes:
    """Return what two texts share at their ends, as far as their hunks know it, if they do."""
    known = VerifiedHunks.known(hunks, before, after)
    return common_affixes(before, after) if known is None else known.shared


def _hunks(
    before: Version | None, after: Version | None, known: Sequence[Hunk] | None, affixes: Affixes | None
) -> tuple[tuple[Hunk, ...], bool]:
    """Return an edit's hunks, and whether only its last line's newline came or went beside them."""
    if before is None or after is None or before.state.blob == after.state.blob:
        return (), False
    old, new = before.content, after.content
    if known is None and is_either_binary(old, new):
        # Lines mean nothing here: the state as a whole is what can be decided.
        known = (Hunk(0, _line_count(before), 0, _line_count(after)),)
    hunks = diff_lines(old, new, affixes) if known is None else tuple(known)
    if is_closed(old) is is_closed(new):
        return hunks, False
    ends_inside = bool(hunks) and hunks[-1].new_count > 0 and hunks[-1].new_end == _line_count(after)
    return hunks, not ends_inside


def _line_count(version: Version | None) -> int:
    if version is None:
        return 0
    return version.content.count(b"\n") + (not is_closed(version.content))
