"""Taking over what mcpdiff recorded: its log entries become edits, its verdicts decisions.

Each state is worked out anew, from what was kept of the file and from the diffs, and counts only if its hash is the
recorded one. All goes into one group that ends with the files as they stand on disk, so no file is ever written, not
even by whoever finishes what a crash left. What a rejection made of a text is worked out by the weave; where the file
is otherwise, that is a change from outside, as it is at any other time.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from heapq import merge
from typing import Final, NamedTuple

from objstore.errors import PathError, PathInvalid, PathReserved
from objstore.fastclass import value, variable
from objstore.fs.confined_path import Tree
from objstore.fs.file_state import file_at
from objstore.fs.reserved_names import is_reserved
from objstore.history.document_loader import load_document
from objstore.history.edit_queries import edits
from objstore.model.basic_types import Action, DocumentId, FileState, Operation, Origin, Seq, Status, Unit
from objstore.model.ids import blob_id
from objstore.model.large_file_placeholder import MAX_BLOB, is_placeholder
from objstore.model.records import MCPDIFF_SOURCE, Decision, WrittenFile
from objstore.model.views import EditFilter
from objstore.review.edit_recorder import Change, Recorder, Version, version_of
from objstore.store.write_batch import Batch, now
from objstore.transaction.journal import Journal
from objstore.transfer.mcpdiff_format import BadLine, DiffChains, McpdiffEntry, candidate_results, entries
from objstore.weave.document import Document
from objstore.worktree.external_changes import EXTERNAL_CONVERSATION

__all__ = ["ImportProblem", "McpdiffImport", "import_mcpdiff_history"]

_LONGEST_LOG: Final = 256 << 20


class ImportProblem(NamedTuple):
    """What could not be taken over, and why."""

    place: str  # a log and a line, or an edit's id
    reason: str
    is_elsewhere: bool = False  # it names a file that is not in the workspace, by what that was said to be called


class _Elsewhere(PathInvalid):
    """A path that is not in the workspace, as far as its spelling goes."""


@value
class McpdiffImport:
    """What was found in a history, and what of it was recorded, or would be."""

    edits: int  # taken over
    accepted: int  # edits of those
    rejected: int
    external: int  # changes between them, and since, that nobody had recorded
    already: int  # entries that were taken over before
    unchanged: int  # entries that changed nothing
    problems: tuple[ImportProblem, ...]
    is_recorded: bool  # False: a dry run, or there are problems and parts were not wanted


@variable
class _Line:
    """One file's lineage as it is taken over."""

    path: bytes
    document: DocumentId | None  # None: it begins with its next edit
    now: Version | None  # None: no file
    replayed: Document | None = None  # None: nothing was taken over yet
    entries: list[tuple[McpdiffEntry, Seq]]


def import_mcpdiff_history(
    journal: Journal, history: str, *, origin: str | None = None, partly: bool = False, dry_run: bool = False
) -> McpdiffImport:
    """Record what the history in the folder `history` tells of files of this workspace.

    `origin`: where the workspace stood when it was written; None: where it stands. `partly`: also where not everything
    can be taken over. Twice is the same as once. Raises FileMissing, PathInvalid, and what Journal.commit raises.
    """
    folder = Tree(history)
    try:
        with journal.writing() as batch:
            taking = _McpdiffImporter(journal, batch, folder, origin)
            taking.take()
            is_wanted = not dry_run and (partly or not taking.problems)
            if is_wanted and batch:
                journal.commit(batch, ())
            return taking.outcome(is_recorded=is_wanted)
    finally:
        folder.close()


class _McpdiffImporter:
    """One history on its way into a batch, with the writer lock held."""

    def __init__(self, journal: Journal, batch: Batch, folder: Tree, origin: str | None) -> None:
        self._journal: Final = journal
        self._batch: Final = batch
        self._folder: Final = folder
        self._roots: Final = (journal.tree.root,) if origin is None else (os.path.abspath(origin),)
        self._recorder: Final = Recorder(journal, batch)
        self._calls: dict[str, int] = {}
        self._lines: dict[bytes, _Line] = {}  # by the path where each stands, or stood last
        self._all: list[_Line] = []
        self._kept: dict[str, str] = {}  # places of checkpoints, by the SHA-256 of what they hold
        self._found: Sequence[McpdiffEntry] = ()
        self._diff_chains: DiffChains | None = None  # None: nobody has asked yet
        self._standing: dict[str | None, bytes] | None = None  # as above
        self._times: dict[Seq, int] = {}  # of the edits taken over
        self._external = 0
        self._already = 0
        self._unchanged = 0
        self._decided: dict[Status, set[Seq]] = {Status.ACCEPTED: set(), Status.REJECTED: set()}
        self.problems: list[ImportProblem] = []

    def take(self) -> None:
        """Put everything into the batch."""
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
            try:
                self._take_entry(entry)
            except (PathError, ValueError) as error:
                self.problems.append(ImportProblem(f"edit {entry.id}", str(error), isinstance(error, _Elsewhere)))
        self._decide()
        # Of those that were at a path, the one that stands there; a rejection may have brought any back, or away.
        for line in {line.path: line for line in sorted(self._all, key=lambda line: line.now is not None)}.values():
            self._bridge_to_disk(line)

    def outcome(self, *, is_recorded: bool) -> McpdiffImport:
        """Return what came of it."""
        return McpdiffImport(
            edits=sum(len(line.entries) for line in self._all),
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
        """Yield all entries, those of a conversation in their order, and else by their times."""
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
                    self.problems.append(ImportProblem(f"edit {item.id}", "it is there twice"))
                else:
                    seen.add(item.id)
                    conversations.setdefault(item.conversation, []).append(item)
        told = [sorted(own, key=lambda entry: entry.index) for own in conversations.values()]
        yield from merge(*told, key=lambda entry: entry.time)

    def _known(self, conversations: Iterable[str]) -> set[str]:
        """Return the ids of entries that were taken over before."""
        found = (edits(self._journal, EditFilter(conversation=name)) for name in sorted(conversations))
        return {
            view.edit.notes[MCPDIFF_SOURCE] for views in found for view in views if MCPDIFF_SOURCE in view.edit.notes
        }

    def _keep(self, place: str) -> None:
        try:
            held = self._read(place)
        except PathError:
            return  # whoever needs it says that it isn't there
        self._kept.setdefault(sha256(held).hexdigest(), place)

    def _read(self, place: str) -> bytes:
        return self._folder.read(place, limit=MAX_BLOB, follow=False)[1].content

    # ---- one entry

    def _take_entry(self, entry: McpdiffEntry) -> None:
        """Add an entry. Raises ValueError and PathError, with nothing added, for one that can't be taken over."""
        if entry.conversation == EXTERNAL_CONVERSATION:
            raise ValueError("its conversation has the name of changes from outside")
        path = self._inside(entry.path)
        source = None if entry.source is None else self._inside(entry.source)
        line = self._line(source or path)
        before = self._bytes_of(entry.before, line)
        after = self._after(entry, before)
        if before == after and source is None:
            self._unchanged += 1
            return
        if any(text is not None and is_placeholder(text) for text in (before, after)):
            raise ValueError("it begins as what stands for a large file does")
        self._mode(line.path)  # now, and not when something is added already
        target = None if source is None else self._line(path)
        self._refuse_recorded(line, before)
        if target is not None:
            self._refuse_recorded(target, None)
            self._bridge(target, None)
            del self._lines[path]
        self._bridge(line, before)
        self._record(entry, line, path, source, after)

    def _inside(self, path: str) -> bytes:
        """Return the path in the workspace, as records have it. Raises PathInvalid, PathReserved."""
        for root in self._roots:
            prefix = root.rstrip("/") + "/"
            if path.startswith(prefix):
                parts = path[len(prefix) :].split("/")
                if any(part in {"", ".", ".."} or "\0" in part for part in parts):
                    raise PathInvalid(path, "not spelt out")
                if any(map(is_reserved, parts)):
                    raise PathReserved(path, "the store, or for version control")
                return os.fsencode("/".join(parts))
        raise _Elsewhere(path, f"not in {self._roots[0]}")

    def _line(self, path: bytes) -> _Line:
        """Return the lineage at a path; one that the journal has, or a new one."""
        line = self._lines.get(path)
        if line is None:
            tip = self._journal.store.index.documents.tip_at(path)
            now_is = None
            if tip is not None and tip.state is not None:
                now_is = Version(content=self._journal.store.text(tip.state.blob), state=tip.state)
            line = _Line(path=path, document=None if tip is None else tip.document, now=now_is, entries=[])
            self._lines[path] = line
        return line

    def _refuse_recorded(self, line: _Line, before: bytes | None) -> None:
        """Refuse to put older history behind what the journal has of a file."""
        if line.document is not None and line.replayed is None and _content(line.now) != before:
            raise ValueError(f"{os.fsdecode(line.path)!r} has a history here already, and this does not continue it")

    def _bytes_of(self, digest: str | None, line: _Line) -> bytes | None:
        """Return the bytes that have a SHA-256 (None: no file). Raises ValueError where nobody has them."""
        if digest is None:
            return None
        for known in self._candidates(digest, line):
            if sha256(known).hexdigest() == digest:
                return known
        raise ValueError(f"what the file held is nowhere to be found (SHA-256 {digest})")

    def _candidates(self, digest: str, line: _Line) -> Iterator[bytes]:
        if line.now is not None:
            yield line.now.content
        if digest in self._kept:
            yield self._read(self._kept[digest])
        found = file_at(self._journal.tree, line.path)
        if found is not None:
            yield found[1].content
        if self._diff_chains is None:
            self._diff_chains = DiffChains(self._found, self._held, self._diff)
        traced = self._diff_chains.content(digest)
        if traced is not None:
            yield traced

    def _held(self, digest: str | None) -> bytes | None:
        """Return the bytes that have a SHA-256, as a checkpoint or a file holds them; None: neither does."""
        if digest in self._kept:
            return self._read(self._kept[digest])
        if self._standing is None:
            self._standing = self._files_by_sha256()
        found = file_at(self._journal.tree, self._standing[digest]) if digest in self._standing else None
        return None if found is None else found[1].content

    def _files_by_sha256(self) -> dict[str | None, bytes]:
        """Return which files that entries are about are there, by the SHA-256 of what they hold."""
        standing: dict[str | None, bytes] = {}
        for path in sorted({entry.path for entry in self._found}):
            try:
                inside = self._inside(path)
                found = file_at(self._journal.tree, inside)
            except PathError:
                continue  # whoever needs it says so
            if found is not None:
                standing.setdefault(sha256(found[1].content).hexdigest(), inside)
        return standing

    def _diff(self, entry: McpdiffEntry) -> bytes | None:
        try:
            return None if entry.diff is None else self._read(entry.diff)
        except PathError:
            return None  # whoever needs it says so

    def _after(self, entry: McpdiffEntry, before: bytes | None) -> bytes | None:
        """Return what the entry made of the file, proven by its hash."""
        if entry.operation is Operation.MOVE or entry.after is None:
            return before if entry.operation is Operation.MOVE else None
        diff = b"" if entry.diff is None else self._read(entry.diff)
        for made in candidate_results(before or b"", diff):
            if sha256(made).hexdigest() == entry.after:
                return made
        return self._bytes_of(entry.after, self._line(self._inside(entry.path)))

    def _bridge(self, line: _Line, before: bytes | None) -> None:
        """Lead the lineage to the state from which the next entry starts, if it isn't there: somebody did."""
        if line.replayed is None and line.document is None:
            # What stood there before the first entry needs no edit.
            line.now = None if before is None else self._version(line, before)
        elif _content(line.now) != before:
            self._add_external(line, None if before is None else self._version(line, before))

    def _record(self, entry: McpdiffEntry, line: _Line, path: bytes, source: bytes | None, after: bytes | None) -> None:
        made = None if after is None else line.now if source is not None else self._version(line, after)
        call = self._calls.get(entry.conversation)
        call = self._journal.store.next_call(entry.conversation) if call is None else call
        change = Change(
            document=line.document,
            operation=entry.operation,
            path=path,
            source=source,
            before=line.now,
            after=made,
            hunks=() if source is not None else None,
            origin=Origin.AGENT,
        )
        time = min(entry.time, now())
        seq = self._add(line, change, entry.conversation, call, entry.tool, {MCPDIFF_SOURCE: entry.id}, time)
        self._times[seq] = time
        self._calls[entry.conversation] = call + 1
        line.entries.append((entry, seq))
        if source is not None:
            del self._lines[source]
            self._lines[path] = line

    def _add_external(self, line: _Line, version: Version | None) -> None:
        operation = Operation.CREATE if line.now is None else Operation.DELETE if version is None else Operation.EDIT
        change = Change(
            document=line.document,
            operation=operation,
            path=line.path,
            source=None,
            before=line.now,
            after=version,
            hunks=None,
            origin=Origin.EXTERNAL,
        )
        call = self._calls.get(EXTERNAL_CONVERSATION)
        call = self._journal.store.next_call(EXTERNAL_CONVERSATION) if call is None else call
        self._calls[EXTERNAL_CONVERSATION] = call + 1
        self._add(line, change, EXTERNAL_CONVERSATION, call, "", {}, 0)
        self._external += 1

    def _add(
        self, line: _Line, change: Change, conversation: str, call: int, tool: str, notes: dict[str, str], time: int
    ) -> Seq:
        edit = self._recorder.record(
            change,
            document=line.document,
            conversation=conversation,
            call=call,
            ordinal=0,
            tool=tool,
            notes=notes,
            time=time,
        ).edit
        if line.replayed is None:
            self._all.append(line)
            line.replayed = (
                Document.begun(edit, _content(change.before))
                if line.document is None
                else load_document(self._journal, line.document)
            )
        line.replayed.add(edit, _content(change.after))
        line.document, line.now, line.path = edit.document, change.after, change.path
        return edit.seq

    def _version(self, line: _Line, content: bytes) -> Version:
        mode = self._mode(line.path) if line.now is None else line.now.state.mode
        return Version(content=content, state=FileState(blob=blob_id(content), mode=mode))

    def _mode(self, path: bytes) -> int:
        found = file_at(self._journal.tree, path)
        return self._journal.new_file_mode() if found is None else found[0].mode

    # ---- verdicts

    def _decide(self) -> None:
        """Add the decisions: what was accepted, and then what was rejected, as far as it can stand."""
        accepted: dict[Unit, Status] = {}
        for line in self._all:
            accepted |= self._accepted(line)
        self._add_decision(Action.ACCEPT, accepted, ())
        rejected: dict[Unit, Status] = {}
        written: list[WrittenFile] = []
        for line in self._all:
            before = line.now
            path = line.path
            units = self._rejected(line)
            if not units:
                continue
            rejected |= units
            self._follow(line)
            if before is not line.now:
                written.append(_written(line, path, before))
        self._add_decision(Action.REJECT, rejected, tuple(written))

    def _accepted(self, line: _Line) -> dict[Unit, Status]:
        """Accept what was accepted, and return that."""
        if line.replayed is None:
            return {}
        accepted = [seq for entry, seq in line.entries if entry.status is Status.ACCEPTED]
        units = [unit for seq in accepted for unit in line.replayed.units(seq)]
        line.replayed.set_statuses(dict.fromkeys(units, Status.ACCEPTED))
        return dict.fromkeys(units, Status.ACCEPTED)

    def _rejected(self, line: _Line) -> dict[Unit, Status]:
        """Reject what was rejected, all together or else one by one, the newest first; return what that could be."""
        replayed = line.replayed
        if replayed is None:
            return {}
        wanted = [(entry, replayed.units(seq)) for entry, seq in line.entries if entry.status is Status.REJECTED]
        every = {unit: Status.REJECTED for _, units in wanted for unit in units}
        before = replayed.statuses()
        replayed.set_statuses(every)
        if not self._clashes(line):
            return every
        replayed.restore_statuses(before)
        given: dict[Unit, Status] = {}
        for entry, units in reversed(wanted):
            before = replayed.statuses()
            replayed.set_statuses(dict.fromkeys(units, Status.REJECTED))
            if self._clashes(line):
                replayed.restore_statuses(before)
                reason = "it was rejected, but what is live needs it: it waits for review again"
                self.problems.append(ImportProblem(f"edit {entry.id}", reason))
            else:
                given |= dict.fromkeys(units, Status.REJECTED)
        return given

    def _clashes(self, line: _Line) -> bool:
        """Return whether what is live in the lineage can't stand, or not where another file does."""
        if line.replayed is None:
            return False
        stands = line.replayed.standing()
        other = self._lines.get(stands.path)
        taken = self._journal.store.index.documents.tip_at(stands.path) if other is None else None
        is_taken = other is not None and other is not line and other.now is not None
        is_taken = is_taken or (taken is not None and taken.state is not None and taken.document != line.document)
        return bool(line.replayed.conflicts()) or (stands.content is not None and is_taken)

    def _follow(self, line: _Line) -> None:
        """Have the lineage stand as its live edits say."""
        if line.replayed is None:
            return
        stands = line.replayed.standing()
        if stands.content is None:
            line.now = None
            return
        blob = self._batch.state(stands.content, None if line.now is None else line.now.state.blob)
        state = FileState(blob=blob, mode=stands.mode)
        if line.now is None or (line.now.state, line.path) != (state, stands.path):
            line.now = Version(content=stands.content, state=state)
        if stands.path != line.path and self._lines.get(line.path) is line:
            del self._lines[line.path]
        line.path = stands.path
        self._lines[line.path] = line  # whoever had the path last has no file there any more

    def _add_decision(self, action: Action, verdicts: dict[Unit, Status], written: Sequence[WrittenFile]) -> None:
        if not verdicts:
            return
        number = self._journal.store.index.numbers.next_decision() + (action is Action.REJECT and self._has_accepted)
        decision = Decision(
            number=number,
            # Nobody wrote down when it was said. Not before this; and later would make the files look older than it.
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

    # ---- the files as they stand

    def _bridge_to_disk(self, line: _Line) -> None:
        """Lead the lineage to what stands on disk, where that is otherwise."""
        other = self._lines.get(line.path)
        if other is not None and other.replayed is None and other.now is not None:
            return  # what stands there is another's, of which nothing was taken over
        try:
            found = file_at(self._journal.tree, line.path)
        except PathError as error:
            self.problems.append(ImportProblem(os.fsdecode(line.path), str(error)))
            return
        if (None if found is None else found[0]) != (None if line.now is None else line.now.state):
            self._add_external(line, version_of(found, self._journal.tree, line.path))


def _content(version: Version | None) -> bytes | None:
    return None if version is None else version.content


def _written(line: _Line, path: bytes, before: Version | None) -> WrittenFile:
    if line.document is None:
        raise RuntimeError("a lineage without an edit was decided")
    return WrittenFile(
        document=line.document,
        path_before=None if before is None else path,
        before=None if before is None else before.state,
        path_after=None if line.now is None else line.path,
        after=None if line.now is None else line.now.state,
    )
