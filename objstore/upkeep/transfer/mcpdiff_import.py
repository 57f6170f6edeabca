"""Import the history of mcpdiff: its log entries become edits, its verdicts decisions.

Each state is reconstructed from kept contents and diffs, and counts only if it has the recorded hash. Everything goes
into one group that ends with the files as they are on disk, so no file is ever written, not even when recovery rolls
forward after a crash. The weave computes what a rejection made of a text; if the file on disk differs from that, the
difference is an external edit, as at any other time.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from heapq import merge
from typing import Final, NamedTuple

from objstore.disk.fs.confined_path import FileOnDisk, Tree
from objstore.disk.fs.file_state import file_at
from objstore.disk.fs.reserved_names import is_reserved
from objstore.history.documents.loader import load_document
from objstore.history.edit_queries import edits
from objstore.model.basic_types import (
    EXTERNAL_CONVERSATION,
    Action,
    DocumentId,
    FileState,
    Operation,
    Origin,
    Seq,
    Status,
    Unit,
)
from objstore.model.ids import blob_id
from objstore.model.large_file_placeholder import MAX_BLOB, is_placeholder
from objstore.model.records import MCPDIFF_SOURCE, Decision, WrittenFile
from objstore.model.views import EditFilter
from objstore.review.calls.edit_recorder import Change, Recorder, Version, version_of
from objstore.storage.store.write_batch import Batch, now
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.transfer.mcpdiff_format import BadLine, DiffChains, McpdiffEntry, candidate_results, entries
from objstore.values.errors import PathError, PathInvalid, PathReserved
from objstore.values.fastclass import value, variable
from objstore.weave.document import Document

__all__ = ["ImportProblem", "McpdiffImport", "import_mcpdiff_history"]

_LONGEST_LOG: Final = 256 << 20


class ImportProblem(NamedTuple):
    """A part of a history that could not be imported, and the reason."""

    place: str  # a log and a line, or an edit's id
    reason: str
    is_elsewhere: bool = False  # it names a file outside the workspace, at the workspace's path of that time


class _Elsewhere(PathInvalid):
    """A path that does not begin with the workspace's path."""


@value
class McpdiffImport:
    """The result of an import: what was found in a history, and what was recorded, or would be in a dry run."""

    edits: int  # imported
    accepted: int  # of these edits
    rejected: int
    external: int  # unrecorded changes between and after them
    already: int  # entries that were imported before
    unchanged: int  # entries that changed nothing
    problems: tuple[ImportProblem, ...]
    is_recorded: bool  # False: a dry run, or there are problems and a partial import was not wanted


@variable
class _Lineage:
    """One file's lineage during the import."""

    path: bytes
    document: DocumentId | None  # None: it begins with its next edit
    now: Version | None  # None: no file
    replayed: Document | None = None  # None: nothing was imported yet
    entries: list[tuple[McpdiffEntry, Seq]]


def import_mcpdiff_history(
    journal: Journal, history: str, *, origin: str | None = None, partly: bool = False, dry_run: bool = False
) -> McpdiffImport:
    """Record what the history in the folder `history` says about files of this workspace.

    `origin`: the workspace's path when the history was written; None: its present path. `partly`: import what is
    possible if not everything is. Importing twice is the same as once. Raises FileMissing, PathInvalid, and what
    Journal.commit raises.
    """
    folder = Tree(history)
    try:
        with journal.writing() as batch:
            importer = _McpdiffImporter(journal, batch, folder, origin)
            importer.add_all()
            is_wanted = not dry_run and (partly or not importer.problems)
            if is_wanted and batch:
                journal.commit(batch, ())
            return importer.outcome(is_recorded=is_wanted)
    finally:
        folder.close()


class _McpdiffImporter:
    """Adds one history to a batch while the writer lock is held."""

    def __init__(self, journal: Journal, batch: Batch, folder: Tree, origin: str | None) -> None:
        self._journal: Final = journal
        self._batch: Final = batch
        self._folder: Final = folder
        self._roots: Final = (journal.tree.root,) if origin is None else (os.path.abspath(origin),)
        self._recorder: Final = Recorder(journal, batch)
        self._calls: dict[str, int] = {}
        self._lineages: dict[bytes, _Lineage] = {}  # by the path of each file, or its last path
        self._all: list[_Lineage] = []
        self._kept: dict[str, str] = {}  # paths of checkpoints, by the SHA-256 of their contents
        self._found: Sequence[McpdiffEntry] = ()
        self._diff_chains: DiffChains | None = None  # None: not needed yet
        self._on_disk: dict[str | None, bytes] | None = None  # paths of files, by their SHA-256; None: as above
        self._times: dict[Seq, int] = {}  # of the imported edits
        self._external = 0
        self._already = 0
        self._unchanged = 0
        self._decided: dict[Status, set[Seq]] = {Status.ACCEPTED: set(), Status.REJECTED: set()}
        self.problems: list[ImportProblem] = []

    def add_all(self) -> None:
        """Add everything to the batch."""
        found = self._found = list(self._entries())
        for entry in found:
            if entry.checkpoint is not None:
                self._keep(entry.checkpoint)
        known = self._known({entry.conversation for entry in found})
        for done, entry in enumerate(found):
            self._journal.progress("entries", done, len(found))
            if entry.id in known:
                self._already += 1
                continue
            if entry.conversation == entry.tool == EXTERNAL_CONVERSATION:
                continue  # written by our export: found again as a gap between the other entries and the files
            try:
                self._add_entry(entry)
            except (PathError, ValueError) as error:
                self.problems.append(ImportProblem(f"edit {entry.id}", str(error), isinstance(error, _Elsewhere)))
        self._decide()
        # Of the lineages of a path, the one that exists there; a rejection may have restored or removed any of them.
        for lineage in {
            lineage.path: lineage for lineage in sorted(self._all, key=lambda lineage: lineage.now is not None)
        }.values():
            self._bridge_to_disk(lineage)

    def outcome(self, *, is_recorded: bool) -> McpdiffImport:
        """Return the result."""
        return McpdiffImport(
            edits=sum(len(lineage.entries) for lineage in self._all),
            accepted=len(self._decided[Status.ACCEPTED]),
            rejected=len(self._decided[Status.REJECTED]),
            external=self._external,
            already=self._already,
            unchanged=self._unchanged,
            problems=tuple(self.problems),
            is_recorded=is_recorded,
        )

    # ---- what the history holds

    def _entries(self) -> Iterator[McpdiffEntry]:
        """Yield all entries by time, but those of one conversation in their order."""
        logs = [entry.name for entry in self._folder.entries("logs") if entry.name.endswith(".log")]
        conversations: dict[str, list[McpdiffEntry]] = {}
        seen: set[str] = set()
        for name in logs:
            try:
                log = self._folder.read(f"logs/{name}", limit=_LONGEST_LOG, follow=False)[1].content
            except PathError as error:
                self.problems.append(ImportProblem(name, str(error)))
                continue
            for item in entries(log):
                if isinstance(item, BadLine):
                    self.problems.append(ImportProblem(f"{name}, line {item.number}", item.reason))
                elif item.id in seen:
                    self.problems.append(ImportProblem(f"edit {item.id}", "its id occurs twice"))
                else:
                    seen.add(item.id)
                    conversations.setdefault(item.conversation, []).append(item)
        ordered = [sorted(own, key=lambda entry: entry.index) for own in conversations.values()]
        yield from merge(*ordered, key=lambda entry: entry.time)

    def _known(self, conversations: Iterable[str]) -> set[str]:
        """Return the ids of entries that were imported before."""
        found = (edits(self._journal, EditFilter(conversation=name)) for name in sorted(conversations))
        return {
            view.edit.notes[MCPDIFF_SOURCE] for views in found for view in views if MCPDIFF_SOURCE in view.edit.notes
        }

    def _keep(self, place: str) -> None:
        try:
            held = self._read(place)
        except PathError:
            return  # reported for the entry that needs it
        self._kept.setdefault(sha256(held).hexdigest(), place)

    def _read(self, place: str) -> bytes:
        return self._folder.read(place, limit=MAX_BLOB, follow=False)[1].content

    # ---- one entry

    def _add_entry(self, entry: McpdiffEntry) -> None:
        """Add an entry. Raises ValueError or PathError, with nothing added, if it can't be imported."""
        if entry.conversation == EXTERNAL_CONVERSATION:
            raise ValueError("its conversation has the name that is reserved for external edits")
        path = self._inside(entry.path)
        source = None if entry.source is None else self._inside(entry.source)
        lineage = self._lineage_at(source or path)
        before = self._bytes_of(entry.before, lineage)
        after = self._after(entry, before)
        if before == after and source is None:
            self._unchanged += 1
            return
        if any(text is not None and is_placeholder(text) for text in (before, after)):
            raise ValueError("its text begins like the placeholder of a large file")
        self._mode(lineage.path)  # may raise, so before anything is added
        target = None if source is None else self._lineage_at(path)
        self._refuse_recorded(lineage, before)
        if target is not None:
            self._refuse_recorded(target, None)
            self._bridge(target, None)
            del self._lineages[path]
        self._bridge(lineage, before)
        self._record(entry, lineage, path, source, after)

    def _inside(self, path: str) -> bytes:
        """Return a path relative to the workspace, as in records. Raises PathInvalid, PathReserved."""
        for root in self._roots:
            prefix = root.rstrip("/") + "/"
            if path.startswith(prefix):
                parts = path[len(prefix) :].split("/")
                if any(part in {"", ".", ".."} or "\0" in part for part in parts):
                    raise PathInvalid(path, "it has an empty, . or .. part")
                if any(map(is_reserved, parts)):
                    raise PathReserved(path, "the store or version control")
                return os.fsencode("/".join(parts))
        raise _Elsewhere(path, f"not in {self._roots[0]}")

    def _lineage_at(self, path: bytes) -> _Lineage:
        """Return the lineage at a path: one that the journal has, or a new one."""
        lineage = self._lineages.get(path)
        if lineage is None:
            tip = self._journal.store.index.documents.tip_at(path)
            now_is = None
            if tip is not None and tip.state is not None:
                now_is = Version(content=self._journal.store.text(tip.state.blob), state=tip.state)
            lineage = _Lineage(path=path, document=None if tip is None else tip.document, now=now_is, entries=[])
            self._lineages[path] = lineage
        return lineage

    def _refuse_recorded(self, lineage: _Lineage, before: bytes | None) -> None:
        """Raise ValueError if the entry does not continue the history that the journal has of a file."""
        if lineage.document is not None and lineage.replayed is None and _content(lineage.now) != before:
            raise ValueError(
                f"{os.fsdecode(lineage.path)!r} has a history here already, which this edit does not continue"
            )

    def _bytes_of(self, digest: str | None, lineage: _Lineage) -> bytes | None:
        """Return the bytes with a SHA-256 (None: no file). Raises ValueError if they can't be found."""
        if digest is None:
            return None
        for known in self._candidates(digest, lineage):
            if sha256(known).hexdigest() == digest:
                return known
        raise ValueError(f"the file's contents were not found anywhere (SHA-256 {digest})")

    def _candidates(self, digest: str, lineage: _Lineage) -> Iterator[bytes]:
        if lineage.now is not None:
            yield lineage.now.content
        if digest in self._kept:
            yield self._read(self._kept[digest])
        found = self._file_at(lineage.path)
        if found is not None:
            yield found[1].content
        if self._diff_chains is None:
            self._diff_chains = DiffChains(self._found, self._held, self._diff)
        traced = self._diff_chains.content(digest)
        if traced is not None:
            yield traced

    def _held(self, digest: str | None) -> bytes | None:
        """Return the bytes with a SHA-256 from a checkpoint or a file; None: neither has them."""
        if digest in self._kept:
            return self._read(self._kept[digest])
        if self._on_disk is None:
            self._on_disk = self._files_by_sha256()
        found = self._file_at(self._on_disk[digest]) if digest in self._on_disk else None
        return None if found is None else found[1].content

    def _files_by_sha256(self) -> dict[str | None, bytes]:
        """Return the paths of the entries' files that exist, by the SHA-256 of their contents."""
        paths: dict[str | None, bytes] = {}
        for path in sorted({entry.path for entry in self._found}):
            try:
                inside = self._inside(path)
                found = self._file_at(inside)
            except PathError:
                continue  # reported for the entry that needs it
            if found is not None:
                paths.setdefault(sha256(found[1].content).hexdigest(), inside)
        return paths

    def _diff(self, entry: McpdiffEntry) -> bytes | None:
        try:
            return None if entry.diff is None else self._read(entry.diff)
        except PathError:
            return None  # reported for the entry that needs it

    def _after(self, entry: McpdiffEntry, before: bytes | None) -> bytes | None:
        """Return the file's contents after the entry, verified by their hash."""
        if entry.operation is Operation.MOVE or entry.after is None:
            return before if entry.operation is Operation.MOVE else None
        diff = b"" if entry.diff is None else self._read(entry.diff)
        for made in candidate_results(before or b"", diff):
            if sha256(made).hexdigest() == entry.after:
                return made
        return self._bytes_of(entry.after, self._lineage_at(self._inside(entry.path)))

    def _bridge(self, lineage: _Lineage, before: bytes | None) -> None:
        """Add an external edit that leads to the state from which the next entry starts, if the lineage has another."""
        if lineage.replayed is None and lineage.document is None:
            # The state before the first entry needs no edit.
            lineage.now = None if before is None else self._version(lineage, before)
        elif _content(lineage.now) != before:
            self._add_external(lineage, None if before is None else self._version(lineage, before))

    def _record(
        self, entry: McpdiffEntry, lineage: _Lineage, path: bytes, source: bytes | None, after: bytes | None
    ) -> None:
        made = None if after is None else lineage.now if source is not None else self._version(lineage, after)
        call = self._calls.get(entry.conversation)
        call = self._journal.store.next_call(entry.conversation) if call is None else call
        change = Change(
            document=lineage.document,
            operation=entry.operation,
            path=path,
            source=source,
            before=lineage.now,
            after=made,
            hunks=() if source is not None else None,
            origin=Origin.AGENT,
        )
        time = min(entry.time, now())
        seq = self._add(lineage, change, entry.conversation, call, entry.tool, {MCPDIFF_SOURCE: entry.id}, time)
        self._times[seq] = time
        self._calls[entry.conversation] = call + 1
        lineage.entries.append((entry, seq))
        if source is not None:
            del self._lineages[source]
            self._lineages[path] = lineage

    def _add_external(self, lineage: _Lineage, version: Version | None) -> None:
        operation = Operation.CREATE if lineage.now is None else Operation.DELETE if version is None else Operation.EDIT
        change = Change(
            document=lineage.document,
            operation=operation,
            path=lineage.path,
            source=None,
            before=lineage.now,
            after=version,
            hunks=None,
            origin=Origin.EXTERNAL,
        )
        call = self._calls.get(EXTERNAL_CONVERSATION)
        call = self._journal.store.next_call(EXTERNAL_CONVERSATION) if call is None else call
        self._calls[EXTERNAL_CONVERSATION] = call + 1
        self._add(lineage, change, EXTERNAL_CONVERSATION, call, "", {}, 0)
        self._external += 1

    def _add(
        self,
        lineage: _Lineage,
        change: Change,
        conversation: str,
        call: int,
        tool: str,
        notes: dict[str, str],
        time: int,
    ) -> Seq:
        edit = self._recorder.record(
            change,
            document=lineage.document,
            conversation=conversation,
            call=call,
            ordinal=0,
            tool=tool,
            notes=notes,
            time=time,
        ).edit
        if lineage.replayed is None:
            self._all.append(lineage)
            lineage.replayed = (
                Document.before_edit(edit, _content(change.before))
                if lineage.document is None
                else load_document(self._journal, lineage.document)
            )
        lineage.replayed.add(edit, _content(change.after))
        lineage.document, lineage.now, lineage.path = edit.document, change.after, change.path
        return edit.seq

    def _version(self, lineage: _Lineage, content: bytes) -> Version:
        mode = self._mode(lineage.path) if lineage.now is None else lineage.now.state.mode
        return Version(content=content, state=FileState(blob=blob_id(content), mode=mode))

    def _file_at(self, path: bytes) -> tuple[FileState, FileOnDisk] | None:
        """Return the file at a path (None: there is none). A link counts as none: the format knows no links."""
        found = file_at(self._journal.tree, path)
        return None if found is None or found[0].is_link else found

    def _mode(self, path: bytes) -> int:
        found = self._file_at(path)
        return self._journal.new_file_mode() if found is None else found[0].mode

    # ---- verdicts

    def _decide(self) -> None:
        """Add the decisions: first what was accepted, then what was rejected, as far as that causes no conflict."""
        accepted: dict[Unit, Status] = {}
        for lineage in self._all:
            accepted |= self._accepted(lineage)
        self._add_decision(Action.ACCEPT, accepted, ())
        rejected: dict[Unit, Status] = {}
        written: list[WrittenFile] = []
        for lineage in self._all:
            before = lineage.now
            path = lineage.path
            units = self._rejected(lineage)
            if not units:
                continue
            rejected |= units
            self._update(lineage)
            if before is not lineage.now:
                written.append(_written(lineage, path, before))
        self._add_decision(Action.REJECT, rejected, tuple(written))

    def _accepted(self, lineage: _Lineage) -> dict[Unit, Status]:
        """Accept the accepted edits' units, and return them."""
        if lineage.replayed is None:
            return {}
        accepted = [seq for entry, seq in lineage.entries if entry.status is Status.ACCEPTED]
        units = [unit for seq in accepted for unit in lineage.replayed.units(seq)]
        lineage.replayed.set_statuses(dict.fromkeys(units, Status.ACCEPTED))
        return dict.fromkeys(units, Status.ACCEPTED)

    def _rejected(self, lineage: _Lineage) -> dict[Unit, Status]:
        """Reject the rejected edits' units together, or edit by edit from the newest; return the rejected units."""
        replayed = lineage.replayed
        if replayed is None:
            return {}
        wanted = [(entry, replayed.units(seq)) for entry, seq in lineage.entries if entry.status is Status.REJECTED]
        every = {unit: Status.REJECTED for _, units in wanted for unit in units}
        before = replayed.statuses()
        replayed.set_statuses(every)
        if not self._has_conflict(lineage):
            return every
        replayed.restore_statuses(before)
        given: dict[Unit, Status] = {}
        for entry, units in reversed(wanted):
            before = replayed.statuses()
            replayed.set_statuses(dict.fromkeys(units, Status.REJECTED))
            if self._has_conflict(lineage):
                replayed.restore_statuses(before)
                reason = "it was rejected, but live changes depend on it, so it is pending again"
                self.problems.append(ImportProblem(f"edit {entry.id}", reason))
            else:
                given |= dict.fromkeys(units, Status.REJECTED)
        return given

    def _has_conflict(self, lineage: _Lineage) -> bool:
        """Return whether the lineage's live units conflict, or its file would be where another one is."""
        if lineage.replayed is None:
            return False
        result = lineage.replayed.version()
        other = self._lineages.get(result.path)
        taken = self._journal.store.index.documents.tip_at(result.path) if other is None else None
        is_taken = other is not None and other is not lineage and other.now is not None
        is_taken = is_taken or (taken is not None and taken.state is not None and taken.document != lineage.document)
        return bool(lineage.replayed.conflicts()) or (result.content is not None and is_taken)

    def _update(self, lineage: _Lineage) -> None:
        """Set the lineage's state and path to the result of its live edits."""
        if lineage.replayed is None:
            return
        result = lineage.replayed.version()
        if result.content is None:
            lineage.now = None
            return
        blob = self._batch.state(result.content, None if lineage.now is None else lineage.now.state.blob)
        state = FileState(blob=blob, mode=result.mode)
        if lineage.now is None or (lineage.now.state, lineage.path) != (state, result.path):
            lineage.now = Version(content=result.content, state=state)
        if result.path != lineage.path and self._lineages.get(lineage.path) is lineage:
            del self._lineages[lineage.path]
        lineage.path = result.path
        self._lineages[lineage.path] = lineage  # the lineage that had the path before has no file there any more

    def _add_decision(self, action: Action, verdicts: dict[Unit, Status], written: Sequence[WrittenFile]) -> None:
        if not verdicts:
            return
        number = self._journal.store.index.numbers.next_decision() + (action is Action.REJECT and self._has_accepted)
        decision = Decision(
            number=number,
            # The time was not recorded. It was not before this; a later one would make the files look older than the
            # decision.
            time=max(self._times[seq] for seq, _ in verdicts),
            action=action,
            verdicts=tuple(sorted(verdicts.items())),
            written=tuple(written),
            who=MCPDIFF_SOURCE,
        )
        self._batch.record(decision)
        for unit, status in verdicts.items():
            self._decided[status].add(unit.seq)

    @property
    def _has_accepted(self) -> bool:
        return bool(self._decided[Status.ACCEPTED])

    # ---- the files on disk

    def _bridge_to_disk(self, lineage: _Lineage) -> None:
        """Add an external edit that leads the lineage to the file on disk, if that differs."""
        other = self._lineages.get(lineage.path)
        if other is not None and other.replayed is None and other.now is not None:
            return  # the file there belongs to another lineage, of which nothing was imported
        try:
            found = self._file_at(lineage.path)
        except PathError as error:
            self.problems.append(ImportProblem(os.fsdecode(lineage.path), str(error)))
            return
        if (None if found is None else found[0]) != (None if lineage.now is None else lineage.now.state):
            self._add_external(lineage, version_of(found, self._journal.tree, lineage.path))


def _content(version: Version | None) -> bytes | None:
    return None if version is None else version.content


def _written(lineage: _Lineage, path: bytes, before: Version | None) -> WrittenFile:
    if lineage.document is None:
        raise RuntimeError("a lineage without an edit was decided")
    return WrittenFile(
        document=lineage.document,
        path_before=None if before is None else path,
        before=None if before is None else before.state,
        path_after=None if lineage.now is None else lineage.path,
        after=None if lineage.now is None else lineage.now.state,
    )
