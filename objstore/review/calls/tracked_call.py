"""Make a tracked call: read files under the lock, change them in memory, record the edits, then change the disk.

An unrecorded difference that the call finds on disk becomes an external edit of its own, before the call's own edits,
so that no byte is attributed to the wrong author.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from objstore.disk.file_changes.apply import FileStep
from objstore.disk.fs.confined_path import FileOnDisk, ResolvedPath, missing_at
from objstore.disk.fs.content_source import MemorySource
from objstore.disk.fs.file_state import contents_below, file_at, large_files, state_at
from objstore.disk.fs.reserved_names import folded_name
from objstore.disk.ignore_rules.scan_rules import rules_of_workspace
from objstore.history.documents.ancestry import steps_since
from objstore.model.basic_types import (
    RESERVED_CONVERSATIONS,
    DocumentId,
    FileState,
    Operation,
    Origin,
    is_other_kind,
    settable_state,
)
from objstore.model.ids import BlobId, blob_id
from objstore.model.large_file_placeholder import MAX_BLOB, is_placeholder, placeholder
from objstore.model.records import Decision
from objstore.model.relpath import folders_of, joined
from objstore.model.results import CallInfo, CallOutcome, TurnInfo
from objstore.model.views import Content, EditView
from objstore.review.calls.edit_recorder import (
    Change,
    Recorder,
    Version,
    external_change,
    external_changes,
    made_at,
    new_conversation,
    version_of,
)
from objstore.storage.store.write_batch import Batch
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.prestore import prestore_large_files
from objstore.text.forms import form_of, shown_lines
from objstore.text.hunks import Hunk, VerifiedHunks, hunks_fit, hunks_through
from objstore.text.rebase import RebaseConflict, Rebased, compared, rebased
from objstore.values.errors import (
    UNREADABLE,
    CasError,
    ConversationReserved,
    FileExists,
    FileMissing,
    FileTooLarge,
    PathInvalid,
    PathIsDirectory,
    PathIsSymlink,
    TreeInvalid,
)
from objstore.values.fastclass import variable
from objstore.worktree.mounts import require_mounted

if TYPE_CHECKING:
    from objstore.model.tree import ExcludedEntry
    from objstore.worktree.baseline import KnownStates

__all__ = ["Call", "open_call"]

_FEW: Final = 3
"""Files without a document up to which each is looked up alone, without reading a whole folder of the baseline."""

_CONTENT_OPERATIONS: Final = frozenset({Operation.CREATE, Operation.REPLACE, Operation.EDIT})


@variable
class _File:
    """The file at one path, on disk and as the call has changed it so far."""

    found: FileOnDisk | None  # on disk, when the call first read it; None: no file
    state_found: FileState | None  # None: no file
    document: DocumentId | None  # None: it has none yet
    is_recorded: bool = False  # whether a file is recorded at the path
    lineage: Change | None = None  # the change of this call that began the document, while it has no number
    now: Version | None = None  # None: no file
    moved_from: bytes | None = None  # None: the call did not move it here
    folders: int = 0  # how many of its folders don't exist


class Call:
    """One call in progress. Nothing is recorded or changed on disk before `commit`."""

    def __init__(self, journal: Journal, batch: Batch, info: CallInfo) -> None:
        """Begin a call. The caller holds the writer lock until the call is committed or dropped."""
        self._journal = journal
        self._committed = False
        self._began = time.monotonic()
        self._batch = batch
        self._info = info
        self._tree = journal.tree.confined(info.within, info.denies)
        self._files: dict[bytes, _File] = {}
        self._modes_lost: dict[bytes, int] = {}  # of restored files: setuid and setgid that they don't get
        self._changes: list[Change] = []
        self._by_path: dict[bytes, list[Change]] = {}  # the changes of each path, moves from it included
        self._external: list[Change] = []
        self._lineages: dict[int, Change] = {}  # by id() of a change: the change that began its document
        self._names: dict[str, bytes] = {}  # canonical paths, by the paths that callers used
        self._without_document = 0  # files without a document that were looked up so far
        self._known: KnownStates | None = None  # the baseline's folders; None: nothing needed them so far
        self._unseen = set[bytes]()  # files that no look has read, and that an agent may have changed

    # ---- reading

    @property
    def changed_paths(self) -> list[str]:
        """Return the canonical paths of the files that the call changes so far."""
        return [os.fsdecode(path) for path, changes in self._by_path.items() if changes]

    @property
    def tool(self) -> str:
        """Return the tool that makes the call."""
        return self._info.tool

    @property
    def turn(self) -> TurnInfo | None:
        """Return the turn that the call belongs to (None: not known)."""
        return self._info.turn

    def read(self, path: str) -> Content:
        """Return the file as the call has made it so far. Raises FileMissing, FileTooLarge and what paths raise."""
        resolved, file = self._file(path)
        if file.now is None:
            raise self._missing(path)
        _refuse_link(resolved, file)
        content = file.now.content
        if is_placeholder(content):
            content = self._bytes(path, file.now)
        return Content(path=os.fsdecode(resolved), bytes=content, blob=file.now.state.blob, mode=file.now.state.mode)

    def state(self, path: str) -> FileState | None:
        """Return the file state as the call has made it so far (None: no file). Raises what paths raise."""
        now = self._file(path)[1].now
        return None if now is None else now.state

    def place(self, path: str) -> str:
        """Return the canonical form of a path of a file to change. Raises what paths raise."""
        return os.fsdecode(self._file(path)[0])

    def exists(self, path: str) -> bool:
        """Return whether a file exists there. Raises what paths raise."""
        return self._file(path)[1].now is not None

    def rebased(
        self, path: str, base: bytes, made: bytes, hunks: Sequence[Hunk], *, is_compared: bool = False
    ) -> Rebased | RebaseConflict:
        """Rebase a change of `base`, an earlier version of the file, onto the file's current lines.

        `made`: the lines that the change makes of those of `base`, as `shown_lines` returns them; so are those of the
        result. `hunks` lead to them; otherwise ValueError is raised. `is_compared`: they were found by comparison.
        Raises FileMissing.
        """
        now = self.read(path).bytes
        if form_of(base) or form_of(now):
            lines = shown_lines(base)
            return rebased(lines, made, hunks, compared(lines, shown_lines(now)), is_compared=is_compared)
        tip = self._journal.store.tip_at(self._file(path)[0])
        text_steps = steps_since(self._journal, tip, base, blob_id(base), now)
        return rebased(base, made, hunks, text_steps, is_compared=is_compared)

    def text(self, blob: BlobId) -> bytes:
        """Return the text of a blob that is stored, or that the call would store. Raises what Store.text raises."""
        return self._batch.text(blob)

    @contextmanager
    def looking_up(self) -> Iterator[None]:
        """Look up all that is needed inside in one state of the index. The call is committed after that."""
        with self._journal.store.index.still():
            yield

    # ---- changing

    def write(
        self,
        path: str,
        content: bytes,
        *,
        hunks: Sequence[Hunk] | None = None,
        mode: int | None = None,
        operation: Operation = Operation.REPLACE,
    ) -> None:
        """Replace the file's content, or create the file.

        `hunks`: the lines that were really changed, as `shown_lines` counts them; None: not known.
        """
        resolved, file = self._file(path)
        _refuse_link(resolved, file)
        before = file.now
        if mode is None:
            mode = self._journal.new_file_mode() if before is None else before.state.mode
        blob = blob_id(content)
        state = settable_state(FileState(blob=blob, mode=mode), None if before is None else before.state)
        if before is not None and before.state == state:
            return
        after = Version(content=content, state=state)
        if len(content) > MAX_BLOB or is_placeholder(content):
            after = Version(content=placeholder(blob), state=state, source=MemorySource(resolved, content))
        if hunks is not None and before is not None:
            if is_placeholder(before.content) or is_placeholder(after.content):
                hunks = None  # a large state is replaced as a whole
            elif form_of(before.content) or form_of(content):
                # If the change made text of another form, or no text, of the file, its lines are others.
                fit = hunks_fit(shown_lines(before.content), shown_lines(content), hunks)
                hunks = hunks if fit else None
            elif VerifiedHunks.known(hunks, before.content, content) is None and not hunks_fit(
                before.content, content, hunks
            ):
                raise ValueError(f"the hunks do not lead from what {path!r} holds to what it shall hold")
        self._write(resolved, file, after, hunks, operation)

    def restore(self, path: str, state: FileState) -> None:
        """Set the file or link to a state whose blob is stored, of any size, or create it. Raises BlobMissing.

        If the call has deleted a file of which the path is another spelling, the new file has that spelling.
        """
        resolved, file = self._file(path)
        wanted = os.fsencode(path)
        if file.now is None and resolved != wanted and folded_name(os.fsdecode(resolved)) == folded_name(path):
            resolved, file = self._at_spelling(wanted, path)
        if file.now is not None and is_other_kind(file.now.state, state):
            self.delete(path)
            file.document, file.lineage = None, None  # neither is a version of the other
        recorded = state.mode
        state = settable_state(state, None if file.now is None else file.now.state)
        self._modes_lost[resolved] = recorded & ~state.mode
        if file.now is None or file.now.state != state:
            self._batch.text(state.blob)  # damage is found here
            self._write(resolved, file, Version(read=self._batch.text, state=state), None, Operation.REPLACE)

    def _write(
        self, resolved: bytes, file: _File, after: Version, hunks: Sequence[Hunk] | None, operation: Operation
    ) -> None:
        before, state = file.now, after.state
        if before is None and file.document is not None and not self._may_continue(file.document, state):
            file.document, file.lineage = None, None
        earlier = self._last_write(resolved)
        if earlier is not None:
            # The call has written this file before: both writes are one edit, or none if they cancel out.
            self._extend(earlier, after, hunks, operation)
            if earlier.before is not None and earlier.before.state == state:
                self._drop(file, earlier)
        else:
            self._change(
                file,
                Change(
                    document=file.document,
                    operation=Operation.CREATE if before is None else operation,
                    path=resolved,
                    source=None,
                    before=before,
                    after=after,
                    hunks=hunks,
                    origin=self._info.origin,
                    amends=self._info.amends,
                    folders=file.folders if before is None else 0,
                ),
            )
        file.now = after
        file.moved_from = None

    def _extend(self, earlier: Change, after: Version, hunks: Sequence[Hunk] | None, operation: Operation) -> None:
        """Extend an earlier change of this call, so that it ends with `after`. `hunks`: from its old end to `after`."""
        before, between, known = earlier.before, earlier.after, earlier.hunks
        earlier.after = after
        if between is not None and between.state.blob == after.state.blob:
            return  # only the permissions differ
        if earlier.operation is Operation.EDIT:
            earlier.operation = operation  # a write of the whole file does not say which lines it meant to change
        if before is None or known is None or hunks is None:
            earlier.hunks = None
        else:
            earlier.hunks = hunks_through(shown_lines(before.content), shown_lines(after.content), known, hunks)

    def delete(self, path: str) -> None:
        """Delete the file. Raises FileMissing."""
        resolved, file = self._file(path)
        if file.now is None:
            raise self._missing(path)
        self._change(
            file,
            Change(
                document=file.document,
                operation=Operation.DELETE,
                path=resolved,
                source=None,
                before=file.now,
                after=None,
                hunks=None,
                origin=self._info.origin,
            ),
        )
        file.now = None
        file.moved_from = None

    def move(self, source: str, destination: str) -> None:
        """Move the file to a path where no file exists. Raises FileMissing, FileExists."""
        from_path, file = self._file(source)
        if file.now is None:
            raise self._missing(source)
        _refuse_link(from_path, file)
        to_path, target = self._file(destination)
        if to_path == from_path:
            to_path, target = self._respelled(from_path, destination)
        if target.now is not None:
            raise FileExists(destination)
        change = Change(
            document=file.document,
            operation=Operation.MOVE,
            path=to_path,
            source=from_path,
            before=file.now,
            after=file.now,
            hunks=(),
            origin=self._info.origin,
            folders=target.folders,
        )
        self._change(file, change)
        target.now, target.document, target.lineage = file.now, file.document, file.lineage
        target.moved_from = file.moved_from or from_path
        # The document goes with the file; a new file at the source begins a new document.
        file.now, file.document, file.lineage, file.moved_from = None, None, None, None

    # ---- the end

    def commit(
        self,
        *,
        dry_run: bool = False,
        decided_with: Callable[[Sequence[EditView]], Decision] | None = None,
        notes: Mapping[str, str] = MappingProxyType({}),
    ) -> CallOutcome:
        """Record the call and apply it to the disk; a call is committed once.

        `notes`: what became known during the call, recorded with the notes of its CallInfo.

        `dry_run`: return what would be recorded and raise what would be raised, without recording anything.
        `decided_with`: returns a decision on the call's edits that is recorded in the same group, if there are any.
        Raises PathInvalid and what Journal.commit raises.
        """
        if self._committed:
            raise RuntimeError("a call is committed once")
        self._committed = True
        self._refuse_files_below_files()
        given = self._info.conversation
        conversation = given or new_conversation()
        self._find_deleted_in_the_way()
        began = {} if dry_run else self._record_returned()
        found = self._found()
        recorded_first = None if dry_run else self._record_agents_changes(found)
        recorder = Recorder(self._journal, self._batch)
        if recorded_first is None and found:
            recorder.made, recorder.left_out = made_at(self._journal, self._external), self._unseen
        external = recorder.record_found(found) if recorded_first is None else recorded_first
        call = self._journal.store.next_call(given) if given else 0
        edits: list[EditView] = []
        # An external edit may have begun a document that the call's own changes continue.
        numbers: dict[int, DocumentId] = began | {
            id(change): view.edit.document for change, view in zip(self._external, external, strict=True)
        }
        for ordinal, change in enumerate(self._changes):
            first = self._lineages.get(id(change))
            document = change.document if first is None else numbers.get(id(first))
            change.turn = self._info.turn
            view = recorder.record(
                change,
                document=document,
                conversation=conversation,
                call=call,
                ordinal=ordinal,
                tool=self._info.tool,
                notes={**self._info.notes, **notes},
            )
            numbers[id(change)] = view.edit.document
            edits.append(view)
        decision = decided_with(edits) if decided_with is not None and edits else None
        if decision is not None:
            self._batch.record(decision)
        if dry_run:
            self._journal.check_commit(self._batch, self._steps(), self._disk_stats())
        elif self._batch:
            self._journal.commit(self._batch, self._steps(), self._disk_stats())
            for view in edits:
                before, after = view.edit.before, view.edit.after
                if before is not None and (after is None or after.blob != before.blob):
                    # Otherwise a process that edits a large file many times keeps all versions in memory.
                    self._journal.store.evict(before.blob)
        return CallOutcome(
            conversation=conversation,
            new_conversation=not given,
            call=call,
            edits=tuple(edits),
            external=tuple(external),
            decision=0 if decision is None or dry_run else decision.number,
            secrets=() if dry_run else self._secrets(edits),
            modes_lost=self._modes_lost,
        )

    # ---- inside

    def _secrets(self, edits: Sequence[EditView]) -> tuple[str, ...]:
        """Return the paths of files in the edits that look like secrets; none if the settings can't be read."""
        try:
            rules = rules_of_workspace(self._journal.tree.root)
        except CasError:
            return ()
        paths = (path for view in edits for path in (view.edit.source, view.edit.path) if path is not None)
        return tuple(path for path in dict.fromkeys(map(os.fsdecode, paths)) if rules.secrets.leaves_out_path(path))

    def _found(self) -> list[tuple[Change, CallInfo]]:
        """Return what was found on disk, each change with the call that it is attributed to."""
        if not self._external:
            return []
        from objstore.review.calls.formatting import attributed

        whose = self._journal.evidence.attributor()
        return attributed(self._journal, self._external, whose, self._disk_stats(), self._unseen)

    def _record_returned(self) -> dict[int, DocumentId]:
        """Record which lines of edits are back in the files, and compare these with the records again.

        Returns the documents that began with it, by the id() of what was found.
        """
        from objstore.review.calls.formatting import differences

        counts = Counter(change.path for change in self._external)
        simple = [change for change in self._external if counts[change.path] == 1 and not change.is_last]
        found = differences(self._batch, simple, self._disk_stats())
        if not found or not self._journal.evidence.record_returned(self._batch, found):
            return {}
        store = self._journal.store
        self._batch = Batch(store)
        began: dict[int, DocumentId] = {}
        among = {id(change) for change in simple}
        left = [change for change in self._external if id(change) not in among]
        for change in simple:
            tip = store.tip_at(change.path)
            if tip is None or (change.document is None and tip.state is None):
                left.append(change)  # it still begins a document
                continue
            began[id(change)] = tip.document
            left += external_changes(change.path, tip.document, tip.state, change.after, store.text)
        self._external = left
        return began

    def _record_agents_changes(self, found: Sequence[tuple[Change, CallInfo]]) -> list[EditView] | None:
        """Record what was found on disk, if some of it is attributed to an agent's open call (None: none of it is).

        It gets a group of its own: after a crash, recovery takes every agent's edit in the call's group for a change
        that the call was about to make.
        """
        if all(info.origin.is_found for _, info in found):
            return None
        recorder = Recorder(self._journal, self._batch)
        recorder.made, recorder.left_out = made_at(self._journal, self._external), self._unseen
        views = recorder.record_found(found)
        self._journal.commit(self._batch, ())
        self._batch = Batch(self._journal.store)
        return views

    def _find_deleted_in_the_way(self) -> None:
        """Find deletions, not recorded yet, of files at or above the paths that the call changes.

        Otherwise a decision could not restore what the call removes: the deleted files would count as in its way.
        """
        deleted: dict[bytes, Change] = {}
        paths = (path for change in self._changes for path in (change.path, change.source) if path is not None)
        for path in dict.fromkeys(paths):
            file = self._files[path]
            if (file.now is None and file.found is None) or file.is_recorded:
                continue  # a path with a recorded file has no other file in its way
            for tip in self._journal.store.tips_in_the_way(path, folders_of(path)):
                if tip.path not in self._files and file_at(self._journal.tree, tip.path) is None:
                    text = self._journal.store.text
                    for change in external_changes(tip.path, tip.document, tip.state, None, text):
                        deleted[tip.path] = change
        self._external += deleted.values()

    def _refuse_files_below_files(self) -> None:
        """Raise PathInvalid if the call leaves a file at a path, and another file below that path."""
        files = {path for path, file in self._files.items() if file.now is not None}
        for path in sorted(files):
            for folder in folders_of(path):
                if folder in files:
                    raise PathInvalid(os.fsdecode(path), f"{os.fsdecode(folder)!r} is not a directory")

    def _change(self, file: _File, change: Change) -> None:
        if file.document is None and file.lineage is not None:
            self._lineages[id(change)] = file.lineage
        elif file.document is None:
            file.lineage = change
        self._changes.append(change)
        for path in (change.path, change.source):
            if path is not None:
                self._by_path.setdefault(path, []).append(change)

    def _last_write(self, path: bytes) -> Change | None:
        """Return the change of this call that last wrote the file, unless a later one moved or deleted it."""
        changes = self._by_path.get(path)
        if not changes:
            return None
        change = changes[-1]
        return change if change.path == path and change.operation in _CONTENT_OPERATIONS else None

    def _drop(self, file: _File, change: Change) -> None:
        """Forget the last change of a file."""
        self._changes = [other for other in self._changes if other is not change]
        self._by_path[change.path].pop()
        self._lineages.pop(id(change), None)
        if file.lineage is change:
            file.lineage = None

    def _file(self, path: str) -> tuple[bytes, _File]:
        name = self._names.get(path)
        if name is None:
            with self._tree.locate(path, changing=True, will_be_vacated=self._will_be_vacated) as resolved:
                name = os.fsencode(resolved.path)
                if name not in self._files:
                    self._files[name] = self._read_file(name, resolved)
                self._names[path] = name
        file = self._files[name]
        if self._info.origin is not Origin.PERSON:
            _refuse_link(name, file)
        return name, file

    def _respelled(self, path: bytes, spelling: str) -> tuple[bytes, _File]:
        """Return the path of a file with another spelling of its name; both names lead to it. Raises FileExists."""
        folder, _, name = path.rpartition(b"/")
        wanted = os.fsencode(os.path.basename(spelling.rstrip("/")))
        if wanted == name or folded_name(os.fsdecode(wanted)) != folded_name(os.fsdecode(name)):
            raise FileExists(spelling)
        return self._at_spelling(joined(folder, wanted), spelling)

    def _at_spelling(self, path: bytes, spelling: str) -> tuple[bytes, _File]:
        """Return a path at which no file counts as found, although another spelling of it leads to one."""
        file = self._files[path] = _File(found=None, state_found=None, document=None, now=None, folders=0)
        self._names[spelling] = path
        return path, file

    def _missing(self, path: str) -> FileMissing:
        with self._tree.locate(path, changing=True, will_be_vacated=self._will_be_vacated) as resolved:
            return FileMissing(path, missing_at(resolved).other)

    def _read_file(self, path: bytes, resolved: ResolvedPath) -> _File:
        """Read a file for the first time, and collect its unrecorded changes. Raises NotMounted."""
        require_mounted(self._journal, [path])
        tip = self._journal.store.tip_at(path)
        likely = None if tip is None or tip.state is None else tip.state.blob
        try:
            found = state_at(resolved, likely, None if likely is None else self._journal.store.cached_bytes(likely))
        except PathIsDirectory:
            if not self._may_be_replaced(resolved):
                raise
            found = None
        if found is not None:
            self._tree.require_users_file(found[1].stat, resolved.path, since=self._began)
        version = version_of(found, self._journal.tree, path)
        file = _File(
            found=None if found is None else found[1],
            state_found=None if found is None else found[0],
            document=None,
            now=version,
            folders=len(resolved.missing),
        )
        if tip is not None:
            file.document, file.is_recorded = tip.document, tip.state is not None
            is_other = tip.state is None and version is not None and not self._may_continue(tip.document, version.state)
            document = None if is_other else tip.document
            if document is None:
                begun = external_change(path, None, None, version, self._journal.store.text)
                changes = [] if begun is None else [begun]
                file.document, file.lineage = None, begun
            else:
                changes = external_changes(path, document, tip.state, version, self._journal.store.text)
            if document is not None and changes and (changes[0].is_last or len(changes) > 1):
                file.document, file.lineage = None, changes[1] if len(changes) > 1 else None
        else:
            changes = self._since_baseline(path, version, file.found)
            file.lineage = changes[-1] if changes else None
        self._external += changes
        return file

    def _may_continue(self, document: DocumentId, state: FileState) -> bool:
        from objstore.history.edit_queries import may_continue

        return may_continue(self._journal, document, state)

    def _since_baseline(self, path: bytes, now: Version | None, seen: FileOnDisk | None) -> list[Change]:
        """Return the changes since the baseline of a file without a document, which the baseline may leave out.

        `now`, `seen`: the file on disk. Of what no look could read, all counts as new if an agent may have changed it.
        """
        from objstore.model.tree import ExcludedEntry

        try:
            state = self._known_state(path)
            if isinstance(state, ExcludedEntry):
                if seen is None or not self._may_have_changed_unseen(path, seen):
                    return []
                self._unseen.add(path)
                state = None
            if state is None and now is None:
                return []
            text = self._journal.store.text
            if is_other_kind(state, None if now is None else now.state):
                parts = [external_change(path, None, state, None, text), external_change(path, None, None, now, text)]
            else:
                folders = self._known_states().new_folders(path) if state is None else 0
                parts = [external_change(path, None, state, now, text, folders=folders)]
            return [change for change in parts if change is not None]
        except (*UNREADABLE, TreeInvalid):
            return []  # damage in the store is no reason to refuse a change of a file

    def _may_have_changed_unseen(self, path: bytes, seen: FileOnDisk) -> bool:
        """Return whether an agent may have changed a file that the baseline leaves out. A person's call shows it."""
        if self._info.origin is Origin.PERSON or self._journal.store.baseline() is None:
            return False
        whose = self._journal.evidence.attributor()
        return whose(os.fsdecode(path), seen.stat.st_ctime_ns, 0, is_unseen=True).origin.needs_review

    def _known_state(self, path: bytes) -> "FileState | ExcludedEntry | None":
        """Return what the baseline knows of a file without a document; for more than a few, read each folder once."""
        from objstore.worktree.baseline import known_state_of

        self._without_document += 1
        if self._without_document <= _FEW:
            return known_state_of(self._journal, path)
        return self._known_states().baseline_state(path)

    def _known_states(self) -> "KnownStates":
        from objstore.worktree.baseline import KnownStates

        if self._known is None:
            self._known = KnownStates(self._journal)
        return self._known

    def _may_be_replaced(self, resolved: ResolvedPath) -> bool:
        """Return whether a file may replace a folder: recorded edits created it, and this call has emptied it.

        A folder that was empty before is replaced only for a person, who restores a file.
        """
        files, folders = contents_below(resolved)
        if not files and self._info.origin is not Origin.PERSON:
            return False
        return all(map(self._will_be_vacated, files)) and all(
            map(self._journal.store.index.folders.was_created_by_edit, folders)
        )

    def _will_be_vacated(self, path: bytes) -> bool:
        """Return whether this call removes the file at the path."""
        file = self._files.get(path)
        return file is not None and file.now is None

    def _steps(self) -> list[FileStep]:
        return [
            FileStep(
                path=path,
                before=file.state_found,
                after=None if file.now is None else file.now.state,
                moved_from=file.moved_from if self._moves_whole(file) else None,
            )
            for path, file in self._files.items()
        ]

    def _bytes(self, path: str, version: Version) -> bytes:
        """Return the content of a large file. Raises FileTooLarge if it is over the in-memory limit."""
        blob, source = version.state.blob, version.source
        size = self._journal.store.size(blob) if source is None else source.size
        if size > MAX_BLOB:
            raise FileTooLarge(path, size, MAX_BLOB)
        return b"".join(self._batch.pieces(blob) if source is None else source.pieces())

    def _moves_whole(self, file: _File) -> bool:
        """Return whether the file at the source is moved here unchanged."""
        if file.moved_from is None or file.state_found is not None or file.now is None:
            return False
        source = self._files[file.moved_from]
        return source.state_found == file.now.state and source.now is None

    def _disk_stats(self) -> dict[bytes, os.stat_result]:
        return {path: file.found.stat for path, file in self._files.items() if file.found is not None}


def _refuse_link(path: bytes, file: _File) -> None:
    """Raise PathIsSymlink for a link: a call writes to files only; a person's call restores or removes links too."""
    if file.now is not None and file.now.state.is_link:
        raise PathIsSymlink(os.fsdecode(path))


@contextmanager
def open_call(
    journal: Journal,
    info: CallInfo,
    paths: Sequence[str] = (),
    before_storing: Callable[[], object] = lambda: None,
    *,
    waiting: Callable[[], object] | None = None,
    dry_run: bool = False,
) -> Iterator[Call]:
    """Hold the writer lock for one tracked call. Leaving the block without `commit` changes nothing.

    `paths`: the files that the call will change. Large ones are stored before the lock is taken, so that other writers
    don't wait. `before_storing`: called before that if there are large files; an exception from it refuses the call.
    `waiting`: called now and then while another process writes; an exception from it ends the call. `dry_run`: the
    block is left without `commit`, and the store may be read-only.

    Raises StoreLocked, and ConversationReserved for the reserved conversation of external edits.
    """
    if info.conversation in RESERVED_CONVERSATIONS:
        raise ConversationReserved(info.conversation)
    large = []
    if paths:
        large = large_files(journal.tree.confined(info.within, info.denies), paths)
    if large:
        before_storing()
        prestore_large_files(journal, large)
    if dry_run:
        with journal.session(dry_run=True, waiting=waiting) as (batch, _):
            yield Call(journal, batch, info)
        return
    with journal.writing(waiting=waiting) as batch:
        yield Call(journal, batch, info)
