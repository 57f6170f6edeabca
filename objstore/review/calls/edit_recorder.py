"""Record changes as edits: store their blobs, compute their hunks and number them.

A change is what a call did to one file, or an unrecorded difference that was found on disk.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

from objstore.disk.config.setting_sources import is_file_written
from objstore.disk.fs.confined_path import FileOnDisk, Tree
from objstore.disk.fs.content_source import FileSource, Source
from objstore.model.basic_types import (
    EXTERNAL_CONVERSATION,
    MAX_INT,
    DocumentId,
    FileState,
    Operation,
    Origin,
    Seq,
    Status,
    is_other_kind,
)
from objstore.model.canonical_msgpack import MAX_TEXT
from objstore.model.ids import BlobId, blob_id
from objstore.model.large_file_placeholder import is_placeholder, placeholder
from objstore.model.records import HEIR_NOTE, LEFT_OUT_NOTE, MADE_NOTE, Edit, Marks, Turn
from objstore.model.results import CallInfo, TurnInfo
from objstore.model.views import EditView
from objstore.storage.store.object_store import Store
from objstore.storage.store.write_batch import Batch, now
from objstore.storage.transaction.journal import Journal
from objstore.text.diff import diff_lines
from objstore.text.forms import TextForm, form_of, is_either_binary, lines_of
from objstore.text.hunks import Hunk, VerifiedHunks, hunks_fit
from objstore.text.lines import Affixes, common_affixes, is_closed
from objstore.values.errors import DAMAGE, UNREADABLE, CasError
from objstore.values.fastclass import replace, variable

__all__ = [
    "Change",
    "Recorder",
    "Version",
    "earliest_of",
    "edit_hunks",
    "external_change",
    "external_changes",
    "is_unknown",
    "line_counts",
    "made_at",
    "new_conversation",
    "version_of",
]

if TYPE_CHECKING:
    from objstore.disk.fs.birth_time import Times
    from objstore.review.calls.policies import Policies

_ACCEPTED_BY: Final = "policy"
"""The note of an edit that a policy accepted when it was recorded: the name of the setting."""

_EMPTY: Final = blob_id(b"")


def new_conversation() -> str:
    """Return a new conversation id: `conv_{epoch_ms}_{rand_hex}`."""
    return f"conv_{now() // 1000}_{os.urandom(4).hex()}"


class Version:
    """A file's text and its file state. A stored text is read when it is needed: a call may be on thousands of files.

    Give either `content`, which for a large file is its placeholder, or `read`, which returns the text of a stored
    state. `source`: for a placeholder, where the bytes are, if the store may lack them.
    """

    __slots__ = ("_content", "_read", "source", "state")

    def __init__(
        self,
        *,
        state: FileState,
        content: bytes | None = None,
        read: Callable[[BlobId], bytes] | None = None,
        source: Source | None = None,
    ) -> None:
        self.state: Final = state
        self.source: Final = source
        self._content: Final = content
        self._read: Final = read

    @property
    def content(self) -> bytes:
        """Return the text. Raises what reading it raises."""
        if self._content is not None:
            return self._content
        if self._read is None:
            raise TypeError("a version has a text, or what reads it")
        return self._read(self.state.blob)

    def in_memory(self) -> "Version":
        """Return the same version, with its text in memory."""
        return Version(state=self.state, content=self.content, source=self.source)

    def as_of(self, state: FileState) -> "Version":
        """Return a version with the same text and another state."""
        return Version(state=state, content=self._content, read=self._read, source=self.source)


@variable
class Change:
    """One edit that is to be recorded."""

    document: DocumentId | None  # None: the document begins with this edit
    operation: Operation
    path: bytes
    source: bytes | None
    before: Version | None
    after: Version | None
    hunks: Sequence[Hunk] | None  # None: computed by diff
    origin: Origin
    amends: Seq | None = None  # the edit that this one amends; None: it amends none
    marks: Marks | None = None  # None: it writes no conflict markers
    turn: TurnInfo | None = None  # the turn that it was made in; None: not known
    formats: Edit | None = None  # the agent's edit whose result a formatter changed by it; None: it is no formatting
    folders: int = 0  # how many of the path's folders, counted from the innermost, are new with the file
    is_last: bool = False  # whether it ends a document whose recorded state can't be read


class Recorder:
    """Adds the edit records of changes to a batch, and gives them their numbers."""

    def __init__(self, journal: Journal, batch: Batch) -> None:
        self._journal = journal
        self._root = journal.tree.root
        self._store = journal.store
        self._batch = batch
        self._seq = self._store.next_seq()
        self._time = now()
        self._turns: dict[tuple[str, str, int], int] = {}  # numbers by session, conversation and time
        self._ordinals: dict[tuple[str, int], int] = {}  # the next ordinals of calls that formatters' edits belong to
        self._next_turn = 0  # the number that the next new turn gets; 0: ask the store
        self._root = journal.tree.root
        self.left_out = set[bytes]()  # paths of files that no scan read, and that are older than the last
        self.born: Mapping[bytes, int] = {}  # when other files at new paths were made at the latest (ns)
        self.made: Mapping[bytes, int] = {}  # when new files were made at the earliest (ns); 0: not known
        self.may_hold: Mapping[bytes, str] = {}  # for new files, the names of what they may hold, which is gone
        self._forms: dict[DocumentId, TextForm] = {}  # of the texts that edits of this batch led to

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

        `time`: when it was made, in microseconds since 1970-01-01 UTC; 0: now. The record of the change's turn is
        added before it if there is none yet. If the group is rolled back, that record stays, without edits, and the
        next call of the turn uses it.
        """
        turn = 0 if change.turn is None else self._turn(change.turn, change.turn.conversation or conversation)
        if change.formats is not None:
            turn = change.formats.turn
        before, after = (None if each is None else each.in_memory() for each in (change.before, change.after))
        affixes = None
        # A placeholder without a source is of a recorded state: its blob is stored, or lost.
        if before is not None and (before.source is not None or not is_placeholder(before.content)):
            self._batch.state(before.content, name=before.state.blob, source=before.source)
        if after is not None:
            base = None
            if before is not None and before.state.blob != after.state.blob:
                base, affixes = before.state.blob, _affixes(before.content, after.content, change.hunks)
            # What a placeholder has in common with another text says nothing about the bytes.
            shared = None if before is not None and is_placeholder(before.content) else affixes
            self._batch.state(after.content, base, name=after.state.blob, affixes=shared, source=after.source)
        if before is None and (change.path in self.left_out or self._is_older_than_turn(change)):
            notes = {**notes, LEFT_OUT_NOTE: "until now"}
        elif before is None:
            notes = {**notes, **dict(self._notes_of_new(change))}
        forms = self._forms_of(document, before, after)
        hunks, newline = edit_hunks(before, after, change.hunks, affixes, forms)
        added, removed = line_counts(before, after, hunks, forms)
        status = Status.PENDING if self._needs_review(change) else Status.ACCEPTED
        if status is Status.PENDING and self._is_accepted_by_policy(change):
            status, notes = Status.ACCEPTED, {**notes, _ACCEPTED_BY: "review.accept"}
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
            forms=forms,
            added=added,
            removed=removed,
            origin=change.origin,
            status=status,
            amends=change.amends,
            marks=change.marks,
            turn=turn,
            tool=tool,
            notes=notes,
        )
        if after is not None:
            self._forms[edit.document] = forms[1]
        self._seq = Seq(self._seq + 1)
        return EditView(
            id=self._batch.record(edit),
            edit=edit,
            status=edit.status,
            units=(edit.status,) * (1 + len(edit.hunks)),
            whole=edit.changes_whole,
            reasons=("",) * (1 + len(edit.hunks)),
            owner=conversation,
        )

    def _forms_of(
        self, document: DocumentId | None, before: Version | None, after: Version | None
    ) -> tuple[TextForm, TextForm]:
        """Return the text forms before and after a change, as far as its document has lines of such forms."""
        forms = _form(before), _form(after)
        if not forms[0] or document is None:
            return forms
        known = self._forms.get(document)
        if known is None:
            from objstore.history.documents.loader import load_document

            try:
                known = load_document(self._journal, document).form
            except DAMAGE:
                known = TextForm.PLAIN
        # In a store that was converted, the document may have the lines of the bytes.
        return known, forms[1]

    def _notes_of_new(self, change: Change) -> Iterator[tuple[str, str]]:
        """Yield the notes about the age of a file that was found at a new path."""
        if change.path in self.may_hold:
            yield HEIR_NOTE, self.may_hold[change.path]
        if change.path in self.made:
            made, turn = self.made[change.path], change.turn
            # Records are compared with the clock, which the times of files lag behind.
            if turn is not None and 0 < turn.since <= made:
                made = max(made, turn.began * 1000)
            yield MADE_NOTE, str(made // 1000 or "")

    def _is_older_than_turn(self, change: Change) -> bool:
        """Return whether a file may have been made before the prompt of the turn in which it came into sight.

        Both times are the file system's: compared with the clock, which these lag behind by a tick, or by more on a
        busy machine, a file that was made right after the prompt would be older.
        """
        born = self.born.get(change.path)
        return born is not None and change.turn is not None and born < (change.turn.since or MAX_INT)

    def _needs_review(self, change: Change) -> bool:
        """Return whether a change is recorded as pending."""
        if change.origin is Origin.EXTERNAL and change.amends is None:
            return self._external != "accepted"
        if change.origin is Origin.FORMATTER:
            return self._setting("review.formatting") != "accepted"
        return change.origin.needs_review

    @cached_property
    def _external(self) -> str:
        return self._setting("review.external")

    def _setting(self, name: str) -> str:
        """Return the value of a setting; if it can't be read, the one with which most is reviewed."""
        from objstore.disk.config.config_files import Configuration

        try:
            return str(Configuration(self._root).get(name).value)
        except CasError:
            return "pending"

    def record_formatting(self, change: Change, made: Edit) -> EditView:
        """Record what a formatter made of an agent's edit: an edit of the same call, with an origin of its own."""
        known = self._store.index.edits.edits_of_call(made.conversation, made.call)
        ordinal = max(known, self._ordinals.get((made.conversation, made.call), 0))
        self._ordinals[made.conversation, made.call] = ordinal + 1
        return self.record(
            replace(change, origin=Origin.FORMATTER, turn=None),
            document=change.document,
            conversation=made.conversation,
            call=made.call,
            ordinal=ordinal,
            tool=made.tool,
            notes=made.notes,
        )

    def _is_accepted_by_policy(self, change: Change) -> bool:
        if change.marks is not None or self._policies is None:
            return False
        return self._policies.accepts(change.origin, change.path, change.source)

    @cached_property
    def _policies(self) -> "Policies | None":
        """The review policies (None: without a settings file, none accepts anything)."""
        if not is_file_written(self._root):
            return None
        from objstore.review.calls.policies import Policies  # each write would wait for the settings

        return Policies(self._root, self._store)

    def _turn(self, turn: TurnInfo, conversation: str) -> int:
        """Return the number of a turn, and add its record to the batch if it has none yet."""
        which = turn.session, conversation, turn.began
        number = self._turns.get(which) or self._store.turn_at(*which)
        if not number:
            number = self._next_turn or self._store.next_turn()
            self._next_turn = number + 1
            self._batch.record(
                Turn(
                    number=number,
                    time=turn.began,
                    session=turn.session,
                    conversation=conversation,
                    client=turn.client[:MAX_TEXT],
                    model=turn.model[:MAX_TEXT],
                    prompt=turn.prompt[:MAX_TEXT],
                )
            )
        self._turns[which] = number
        return number

    def record_found(self, changes: Sequence[tuple[Change, CallInfo]]) -> list[EditView]:
        """Record changes that were found on disk, each with the call that it is attributed to."""
        views: list[EditView] = []
        calls: dict[str, list[EditView]] = {}  # by conversation
        for change, info in changes:
            if change.formats is not None and info.origin is not Origin.AGENT:
                views.append(self.record_formatting(change, change.formats))
                continue
            conversation = info.conversation or EXTERNAL_CONVERSATION
            edits = calls.setdefault(conversation, [])
            view = self.record(
                self.bound_to_markers(replace(change, origin=info.origin, turn=info.turn)),
                document=change.document,
                conversation=conversation,
                call=edits[0].edit.call if edits else self._store.next_call(conversation),
                ordinal=len(edits),
                tool=info.tool,
                notes=info.notes,
            )
            edits.append(view)
            views.append(view)
        return views

    def bound_to_markers(self, change: Change) -> Change:
        """Return a change found on disk as an amendment of the marker edit, if all of it is between conflict markers.

        A change that an agent may have made is returned as it is, because it needs a review of its own.
        """
        if change.origin.needs_review or change.document is None or change.before is None or change.after is None:
            return change
        if change.before.state.mode != change.after.state.mode:
            return change  # markers are never about the mode
        if not self._store.index.history.marked(change.document):
            return change
        from objstore.history.documents.marked_text import marker_edit_around

        forms = self._forms_of(change.document, change.before, change.after)
        hunks, _ = edit_hunks(change.before, change.after, None, None, forms)
        lines = lines_of(change.before.content, forms[0])
        return replace(change, amends=marker_edit_around(self._store, change.document, lines, hunks))


def earliest_of(times: "Times", *, is_new: bool) -> int:
    """Return since when a file can exist (ns; 0: not known). `is_new`: whether its content was never stored.

    A copy can have the time at which its bytes were written, and be all that is left of an older file: after `mv` from
    another file system. What is stored already, nothing needs to keep.
    """
    return min(times.born, times.written) if is_new else times.born


def is_unknown(store: Store, blob: BlobId) -> bool:
    """Return whether a content was never stored, and is not empty: then a file may be all that holds it."""
    return blob != _EMPTY and not store.has(blob)


def made_at(journal: Journal, changes: Iterable[Change]) -> dict[bytes, int]:
    """Return for files that were found at new paths, and are as they were found, since when they can exist (ns)."""
    # A call seldom finds a new file.
    from objstore.disk.fs.birth_time import times_of
    from objstore.disk.ignore_rules.rule_files import folder_at

    found: dict[bytes, int] = {}
    for change in changes:
        if change.before is None and change.after is not None:
            folder, _, name = change.path.rpartition(b"/")
            is_new = is_unknown(journal.store, change.after.state.blob)
            with suppress(OSError), folder_at(journal.tree, folder) as fd:
                times = times_of(fd, name)
                if times.born or is_new:
                    found[change.path] = earliest_of(times, is_new=is_new)
    return found


def version_of(found: tuple[FileState, FileOnDisk] | None, tree: Tree, path: bytes) -> Version | None:
    """Return the version that was found on disk at `path` (None: no file)."""
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
    """Return the change from the known state of a file to the version on disk (None: they are equal).

    `document`: None begins a new document. `folders`: how many of the path's folders are new with the file.
    """
    if (None if now is None else now.state) == known:
        return None
    before: Version | None = None
    if known is not None and now is not None and now.state.blob == known.blob:
        # Only the mode differs, so the bytes are on disk even if the store has lost them.
        before = now.as_of(known)
    elif known is not None:
        text(known.blob)  # damage is found here
        before = Version(read=text, state=known)
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
    """Return the changes from the recorded state of a file to the version on disk (empty: they are equal).

    If the recorded state can't be read, one change ends its document, and another begins a new one with the version on
    disk: no diff is possible from lost bytes, and damage in the store is no reason to refuse a change of a file. The
    same where a link took the place of a file, or a file that of a link: neither is a version of the other.
    """
    if is_other_kind(known, None if now is None else now.state):
        created = external_change(path, None, None, now, text)
        return [*external_changes(path, document, known, None, text), *([] if created is None else [created])]
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
    """Return the common prefix and suffix of two texts; from verified hunks, if there are any."""
    known = VerifiedHunks.known(hunks, before, after)
    return common_affixes(before, after) if known is None else known.shared


def edit_hunks(
    before: Version | None,
    after: Version | None,
    known: Sequence[Hunk] | None,
    affixes: Affixes | None,
    forms: tuple[TextForm, TextForm],
) -> tuple[tuple[Hunk, ...], bool]:
    """Return an edit's hunks, and whether it adds or removes the final newline in addition to them."""
    if before is None or after is None or before.state.blob == after.state.blob:
        return (), False
    old, new = lines_of(before.content, forms[0]), lines_of(after.content, forms[1])
    if any(forms):
        affixes = None
        known = known if known is not None and hunks_fit(old, new, known) else None
    if after.state.is_link or (known is None and is_either_binary(old, new)):
        # Lines mean nothing in binary files and links: the state can only be decided as a whole.
        known = (Hunk(0, _line_count(old), 0, _line_count(new)),)
    hunks = diff_lines(old, new, affixes) if known is None else tuple(known)
    if is_closed(old) is is_closed(new):
        return hunks, False
    ends_inside = bool(hunks) and hunks[-1].new_count > 0 and hunks[-1].new_end == _line_count(new)
    return hunks, not ends_inside


def line_counts(
    before: Version | None, after: Version | None, hunks: Sequence[Hunk], forms: tuple[TextForm, TextForm]
) -> tuple[int, int]:
    """Return how many lines an edit adds and removes: none if a state is binary, because its lines mean nothing."""
    old = b"" if before is None else lines_of(before.content, forms[0])
    new = b"" if after is None else lines_of(after.content, forms[1])
    if is_either_binary(old, new):
        return 0, 0
    return (
        _line_count(new) if before is None else sum(hunk.new_count for hunk in hunks),
        _line_count(old) if after is None else sum(hunk.old_count for hunk in hunks),
    )


def _line_count(text: bytes) -> int:
    return text.count(b"\n") + (not is_closed(text))


def _form(version: Version | None) -> TextForm:
    return TextForm.PLAIN if version is None or version.state.is_link else form_of(version.content)
