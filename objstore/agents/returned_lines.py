"""Record what a change that was found brings back, before the rest of it is attributed to anyone.

Lines of an edit that is away or under review may leave a file and come back in any way: they are that edit's again, and
are decided on as before. A file that comes back as it was last is no new file. What statuses can't express, as lines in
another place or in a copy of the file, becomes an unattributed edit: it awaits review, but is no one's for sure.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

from objstore.agents.git_evidence import AgentsLines
from objstore.disk.git.contents import is_pointer_to
from objstore.history.documents.earlier_states import DocumentHistory
from objstore.history.git_events import GIT_EVENT_NOTE
from objstore.model.basic_types import (
    EXTERNAL_CONVERSATION,
    GIT_CONVERSATION,
    UNKNOWN_AGENT,
    Action,
    DocumentId,
    FileState,
    Operation,
    Origin,
    Seq,
    Status,
    Unit,
)
from objstore.model.records import RETURNED, Decision, WrittenFile
from objstore.model.results import Attributor, CallInfo, Difference, owner_at
from objstore.review.calls.attribution import CANDIDATES
from objstore.review.calls.edit_recorder import Change, Recorder, Version, external_change, is_unknown
from objstore.review.calls.formatting import as_formatting
from objstore.review.calls.returned_files import was_untouched_since
from objstore.storage.store.write_batch import Batch, now
from objstore.text.forms import shown_lines
from objstore.text.lines import without_ending
from objstore.values.errors import UNREADABLE, CasError, HistoryBroken
from objstore.values.fastclass import field, replace, value, variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet

    from objstore.history.documents.earlier_states import EarlierState
    from objstore.model.ids import BlobId
    from objstore.model.views import EditView
    from objstore.storage.transaction.journal import Journal
    from objstore.weave.document import Document
    from objstore.weave.returning import Returning

__all__ = ["FileStatuses", "ReturnedLines", "ReviewedLines", "bare_lines", "unchanged_moves"]

_PULLED: Final = "large files"
"""What happened where Large File Storage brought the contents that recorded pointers name."""

_NOTE: Final = "git"
"""The note of an edit that belongs to an event: what happened."""

_OLD_AND_NEW: Final = 2
"""Differences that a file makes which was moved."""

_MOST_DOCUMENTS: Final = 200
"""Documents under review with which a new file is compared."""


@variable
class FileStatuses:
    """The statuses and edits to record for one event that changed files."""

    journal: Journal
    verdicts: dict[Unit, Status] = field(default_factory=dict)
    written: list[WrittenFile] = field(default_factory=list)
    changes: list[tuple[Change, str]] = field(default_factory=list)  # each with the sessions that may have made it
    made: dict[bytes, DocumentId] = field(default_factory=dict)  # the documents that the record began, by path

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to record."""
        return not (self.verdicts or self.written or self.changes)

    def go_to(self, history: DocumentHistory, state: EarlierState) -> bool:
        """Add the verdicts that lead to an earlier state of the file; return False if they don't."""
        verdicts = history.verdicts_for(state)
        if not self._leads_to(history.document, verdicts, state):
            return False
        self.put(history.document, verdicts, state.path, state.state)
        return True

    def put(self, document: DocumentId, verdicts: Mapping[Unit, Status], path: bytes, state: FileState | None) -> None:
        """Add the verdicts that lead to a state of a file."""
        tip = self.journal.store.index.documents.tip(document)
        self.verdicts |= verdicts
        self.written.append(
            WrittenFile(
                document=document,
                path_before=None if tip.state is None else tip.path,
                before=tip.state,
                path_after=None if state is None else path,
                after=state,
            )
        )

    def loaded(self, document: DocumentId, verdicts: Mapping[Unit, Status]) -> Document | None:
        """Return the document under these verdicts; None if it can't be in that state."""
        from objstore.history.documents.loader import load_document  # most changes bring nothing back

        try:
            loaded = load_document(self.journal, document)
        except HistoryBroken:
            return None
        loaded.set_statuses({unit: status for unit, status in verdicts.items() if loaded.knows(unit)})
        return None if loaded.conflicts() else loaded

    def bring_back(
        self,
        batch: Batch,
        here: Difference,
        document: Document,
        back: Returning,
        verdicts: Mapping[Unit, Status],
    ) -> FileState | None:
        """Add what a text brings back into a document, which is now as near to it as it can be.

        `verdicts`: those that led to the document before. Returns the state from which the rest of the change begins.
        """
        version = document.version()
        content = version.content
        below = None if content is None else FileState(blob=batch.state(content), mode=version.mode)
        if verdicts or back.verdicts:
            self.put(document.id, {**verdicts, **back.verdicts}, version.path, below)
        if back.text is None or below is None:
            return below if verdicts or back.verdicts else here.known
        after = FileState(blob=batch.state(back.text), mode=below.mode)
        self.add(batch, here, below, after, Origin.UNATTRIBUTED, _sessions_of(self.journal, back.edits))
        return after

    def add_reviewed_lines(self, batch: Batch, here: Difference, lines: ReviewedLines) -> FileState | None:
        """Add the lines under review that a file has gained from elsewhere; return the state where the rest begins.

        Lines that the file had before, and that are not under review, are left out.
        """
        if here.now is None or here.known == here.now:
            return here.known
        text = batch.text(here.now.blob)
        before = b"" if here.known is None else batch.text(here.known.blob)
        wanted, sessions = lines.that_may_come(here, before, text)
        if not wanted:
            return here.known
        from objstore.weave.returning import is_telling, partial_text

        if here.known is None:
            has_any = any(is_telling(line) and line in wanted for line in bare_lines(shown_lines(text)))
            state = here.now if has_any else None
        else:
            decided = self._decided_lines(here)

            def is_reviewed(line: bytes) -> bool:
                bare = without_ending(line)
                return is_telling(line) and bare in wanted and bare not in decided

            part = partial_text(batch.text(here.known.blob), text, is_reviewed)
            state = None if part is None else FileState(blob=batch.state(part), mode=here.known.mode)
        if state is None:
            return here.known
        self.add(batch, here, here.known, state, Origin.UNATTRIBUTED, sessions)
        return state

    def _decided_lines(self, here: Difference) -> set[bytes]:
        """Return the lines that a file had before its first edit, or from edits that were accepted, without endings."""
        loaded = None if here.document is None else self.loaded(here.document, {})
        if loaded is None:
            return set()
        return {
            line
            for run in loaded.weave.runs()
            if loaded.is_accepted(run.inserter.index)
            for line in bare_lines(run.text)
        }

    def add(
        self,
        batch: Batch,
        here: Difference,
        before: FileState | None,
        after: FileState | None,
        origin: Origin,
        candidates: str = "",
    ) -> None:
        """Add an edit that leads from one state of a file to another."""
        change = _change(batch, replace(here, known=before, now=after))
        if change is not None:
            self.changes.append((replace(change, origin=origin), candidates))

    def move(self, batch: Batch, here: Difference, there: Difference) -> None:
        """Add git's edit that moved a file as it was. `here`: its old path, where it is gone; `there`: its new one."""
        if here.known is None or there.now is None:
            return
        content = batch.text(here.known.blob)
        change = Change(
            document=here.document,
            operation=Operation.MOVE,
            path=there.path,
            source=here.path,
            before=Version(content=content, state=here.known),
            after=Version(content=content, state=there.now),
            hunks=(),
            origin=Origin.GIT,
            folders=there.folders,
        )
        self.changes.append((change, ""))

    def record(
        self, batch: Batch, recorder: Recorder, reason: str, *, commit: str = "", conversation: str = ""
    ) -> list[EditView]:
        """Add the event to the batch, and return its edits. Raises StoreDamaged, and what Batch.record raises."""
        decision = Decision(
            number=self.journal.store.index.numbers.next_decision(),
            time=now(),
            action=Action.GIT,
            verdicts=tuple(sorted(self.verdicts.items())),
            written=tuple(self.written),
            who="git",
            reason=reason,
            commit=commit,
            conversation=conversation,
        )
        batch.record(decision)
        notes = {_NOTE: reason, GIT_EVENT_NOTE: str(decision.number)}
        calls = {each: self.journal.store.next_call(each) for each in (GIT_CONVERSATION, EXTERNAL_CONVERSATION)}
        edits: list[EditView] = []
        for change, candidates in self.changes:
            is_git = change.origin is Origin.GIT
            own = GIT_CONVERSATION if is_git else EXTERNAL_CONVERSATION
            view = recorder.record(
                change,
                document=change.document or self.made.get(change.path),
                conversation=own,
                call=calls[own],
                ordinal=sum(each.edit.conversation == own for each in edits),
                tool="git" if is_git else "",
                notes=notes if is_git else {**notes, CANDIDATES: candidates},
            )
            if change.document is None:
                self.made[change.path] = view.edit.document
            edits.append(view)
        return edits

    def _leads_to(self, document: DocumentId, verdicts: Mapping[Unit, Status], state: EarlierState) -> bool:
        """Return whether the document is in this state under the verdicts."""
        loaded = self.loaded(document, verdicts)
        if loaded is None:
            return False
        version = loaded.version()
        if version.content is None or state.state is None:
            return version.content is None and state.state is None
        text = self.journal.store.text(state.state.blob)
        return (version.path, version.mode, version.content) == (state.path, state.state.mode, text)


@value
class _ReviewedText:
    """The lines of a document, and those of them that are under review, without endings."""

    owners: Mapping[bytes, Seq]  # lines of edits under review, each with the edit
    lines: AbstractSet[bytes]  # every line that the file ever had

    def count_in(self, text: bytes) -> int:
        """Return how many lines under review a text has; 0 if most of its lines are of no such file."""
        given = {line for line in bare_lines(shown_lines(text)) if line.strip()}
        return len(given & self.owners.keys()) if _are_half_of(given, self.lines) else 0

    def edits_in(self, text: bytes) -> tuple[Seq, ...]:
        """Return the edits under review whose lines a text has."""
        return tuple(sorted({self.owners[line] for line in bare_lines(shown_lines(text)) if line in self.owners}))


class ReviewedLines:
    """The lines under review that may come into a file from elsewhere: from another file, or from agents' commits."""

    def __init__(self, journal: Journal, *, is_git: bool = False) -> None:
        """Take a journal; read nothing yet. `is_git`: git brings the lines; it may have them from any file."""
        self._journal: Final = journal
        self._is_git: Final = is_git
        self.agents: Final = AgentsLines(journal)
        self._texts: dict[DocumentId, _ReviewedText | None] = {}
        self._possible: dict[DocumentId, AbstractSet[bytes]] = {}
        self._last: tuple[DocumentId, Document | None] | None = None  # large, so only one

    def that_may_come(self, here: Difference, before: bytes, text: bytes) -> tuple[AbstractSet[bytes], str]:
        """Return the lines, without endings, and the sessions that may have written them, as a note has them.

        Lines of another file come into one that is mostly a copy of it: of a renamed file to which git applies a
        change, for example, or one that another was moved over. If no look has read the text, and an agent committed it
        to any path, all of it comes. Lines of the file itself, which was deleted, may come back whatever else is in it
        now. `before`: what the file held before.
        """
        wanted, sessions = self.agents.of(here.path), self.agents.sessions
        given = set(bare_lines(shown_lines(text)))
        if here.now is not None and is_unknown(self._journal.store, here.now.blob):
            wanted = wanted | given if self.agents.have_committed(here.path, text) else wanted
        deleted = here.document if here.known is None else None
        is_replaced = here.known is None or not _are_half_of(given, {*bare_lines(shown_lines(before))})
        others = self._new if is_replaced or self._is_git else self._gone
        for document in [*([] if deleted is None else [deleted]), *(each for each in others if each != here.document)]:
            if given.isdisjoint(self._may_have(document)):
                continue
            reviewed = self.of_document(document)
            edits = () if reviewed is None else reviewed.edits_in(text)
            if reviewed is not None and edits and (document == deleted or reviewed.count_in(text)):
                of_edits = _sessions_of(self._journal, edits)
                return wanted | reviewed.owners.keys(), "\n".join(filter(None, [of_edits, sessions if wanted else ""]))
        return wanted, sessions

    def of_document(self, document: DocumentId) -> _ReviewedText | None:
        """Return the lines of a document, and those under review; None if it can't be read."""
        if document not in self._texts:
            from objstore.weave.returning import undecided_lines

            loaded = self._loaded(document)
            if loaded is None:
                self._texts[document] = None
            else:
                # Which edits that are away were pending before, their records say; to read these takes long.
                earlier = DocumentHistory(self._journal, document).before_away() if loaded.away() else {}
                lines = {line for run in loaded.weave.runs() for line in bare_lines(run.text)}
                self._texts[document] = _ReviewedText(owners=undecided_lines(loaded, earlier), lines=lines)
        return self._texts[document]

    # ---- inside

    @cached_property
    def _new(self) -> list[DocumentId]:
        """The documents under review, newest first."""
        edits = self._journal.store.index.edits
        found = {each.document for each in edits.pending()} | edits.documents_away()
        return sorted(found, reverse=True)[:_MOST_DOCUMENTS]

    @cached_property
    def _gone(self) -> list[DocumentId]:
        """The documents under review whose lines are in no file, newest first."""
        edits = self._journal.store.index.edits
        return sorted(edits.documents_away() | edits.documents_without_file(), reverse=True)[:_MOST_DOCUMENTS]

    def _may_have(self, document: DocumentId) -> AbstractSet[bytes]:
        """Return the lines of a document, without endings, that may be under review: of edits pending or away."""
        if document not in self._possible:
            from objstore.weave.returning import undecided_lines

            loaded = self._loaded(document)
            away = {} if loaded is None else dict.fromkeys(loaded.away(), Status.PENDING)
            self._possible[document] = frozenset() if loaded is None else undecided_lines(loaded, away).keys()
        return self._possible[document]

    def _loaded(self, document: DocumentId) -> Document | None:
        """Return a document, the last one without reading it again; None if it can't be read."""
        if self._last is None or self._last[0] != document:
            from objstore.history.documents.loader import load_document

            try:
                self._last = document, load_document(self._journal, document)
            except (HistoryBroken, *UNREADABLE):
                self._last = document, None
        return self._last[1]


def unchanged_moves(found: Iterable[Difference]) -> dict[bytes, Difference]:
    """Return the new file of each file that was moved as it was, by the old path.

    Only where no other file that came or went has the same bytes, and no file was ever recorded at the new path.
    """
    ends: dict[tuple[BlobId, bool], list[Difference]] = {}
    for here in found:
        state = here.known or here.now
        if state is not None and (here.known is None or here.now is None) and not here.is_lost:
            ends.setdefault((state.blob, state.is_link), []).append(here)
    pairs = [
        sorted(alike, key=lambda here: here.known is None) for alike in ends.values() if len(alike) == _OLD_AND_NEW
    ]
    return {old.path: new for old, new in pairs if old.now is None and new.known is None and new.document is None}


class ReturnedLines:
    """What the changes that one scan found bring back."""

    def __init__(self, journal: Journal, whose: CallInfo | Attributor) -> None:
        """Take a journal. `whose`: says whose a change of a file is."""
        self._journal: Final = journal
        self._whose: Final = whose
        self._last: tuple[Batch, _Comparison] | None = None

    def with_lines(self, batch: Batch, found: Iterable[Difference]) -> list[Difference]:
        """Return the differences of files that have lines under review, or are new: only these bring anything back."""
        kept: list[Difference] = []
        comparison = self._comparison(batch)
        for here in found:
            with suppress(CasError, *UNREADABLE):  # what can't be compared is explained as it is
                if comparison.has_lines(here):
                    kept.append(here)
        return kept

    def record(self, batch: Batch, found: Sequence[Difference]) -> tuple[list[EditView], set[bytes]]:
        """Add what comes back to the batch; return its edits, and the paths of which nothing else is left to explain.

        Raises StoreDamaged, and what Batch.record raises.
        """
        edits, rest = self.split(batch, found, Recorder(self._journal, batch))
        return edits, {here.path for here in found} - {here.path for here in rest}

    def split(
        self, batch: Batch, found: Sequence[Difference], recorder: Recorder
    ) -> tuple[list[EditView], list[Difference]]:
        """Add what comes back to the batch; return its edits, and the differences that are left to explain."""
        event = FileStatuses(journal=self._journal)
        comparison = self._comparison(batch)
        pulled = {here.path for here in found if comparison.add_pulled(here, event)}
        found = [here for here in found if here.path not in pulled]
        reason = RETURNED if found or not pulled else _PULLED
        moved = comparison.renamed(found)
        targets = {new.path for new in moved.values()}
        unchanged = {path for old, new in unchanged_moves(found).items() for path in (old, new.path)}
        rest: list[Difference] = []
        for here in found:
            if here.path in targets:
                continue
            if here.path in unchanged:  # it brings nothing back
                rest.append(here)
                continue
            new = moved.get(here.path)
            if new is None:
                left = comparison.settle(here, event)
                rest += [] if left is None else [left]
                continue
            # A file that was moved and changed between two looks: a move, then a change of its lines.
            left = comparison.settle(replace(here, now=new.now, changed=new.changed, tick=new.tick), event)
            below = new.now if left is None else left.known
            rest += [replace(here, known=below), replace(new, now=below)]
            rest += [] if left is None else [replace(left, path=new.path)]
        edits = [] if event.is_empty else event.record(batch, recorder, reason)
        return edits, [replace(here, document=here.document or event.made.get(here.path)) for here in rest]

    # ---- inside

    def _comparison(self, batch: Batch) -> _Comparison:
        """Return the comparison for a batch: the documents that it has read are as they were when that began."""
        if self._last is None or self._last[0] is not batch:
            self._last = batch, _Comparison(self._journal, batch, self._whose)
        return self._last[1]


# ---- inside


class _Comparison:
    """The comparison of what a scan found with the lines under review."""

    def __init__(self, journal: Journal, batch: Batch, whose: CallInfo | Attributor) -> None:
        self._journal: Final = journal
        self._batch: Final = batch
        self._whose: Final = whose
        self._lines: Final = ReviewedLines(journal)

    def add_pulled(self, here: Difference, event: FileStatuses) -> bool:
        """Add the content that a pointer of Large File Storage names, if that took its place; else return False.

        Whoever brought it: the pointer says which bytes these are, and it does not await a review itself.
        """
        if here.known is None or here.now is None or here.is_lost:
            return False
        if not is_pointer_to(self._batch.text(here.known.blob), self._batch.pieces(here.now.blob)):
            return False
        if here.document is not None and self._is_under_review(here.document):
            return False
        event.add(self._batch, here, here.known, here.now, Origin.GIT)
        return True

    def settle(self, here: Difference, event: FileStatuses) -> Difference | None:
        """Add what a file brings back to the event; return the difference that is left (None: none is)."""
        may_be_agents = owner_at(self._whose, here.path, here.changed, here.tick).origin.needs_review
        may_be_agents = may_be_agents and not self._was_moved_back(here)
        if here.is_lost or (may_be_agents and not self._has_away(here)) or self._is_formatting(here):
            return here
        left: Difference | None = here
        if here.document is not None and (here.known is None or self._is_under_review(here.document)):
            left = self._returned(here, here.document, event, may_be_agents=may_be_agents)
        if left is not None and left.now is not None and not may_be_agents:
            known = event.add_reviewed_lines(self._batch, left, self._lines)
            left = None if known == left.now else replace(left, known=known)
        return left

    def has_lines(self, here: Difference) -> bool:
        """Return whether a file is new or has lines that are under review there. Raises what reading raises."""
        if here.now is None or here.is_lost:
            return False
        before = b""
        if here.known is not None:
            before = self._batch.text(here.known.blob)
        text = self._batch.text(here.now.blob)
        reviewed = None if here.document is None else self._lines.of_document(here.document)
        has_own = reviewed is not None and bool(reviewed.edits_in(text))
        return here.document is None or has_own or bool(self._lines.that_may_come(here, before, text)[0])

    def renamed(self, found: Sequence[Difference]) -> dict[bytes, Difference]:
        """Return the new file in which the lines under review of a file that is gone are, by the path of that."""
        new = [here for here in found if here.now is not None and here.known is None and here.document is None]
        blobs = {here.now.blob for here in new if here.now is not None}
        pairs: dict[bytes, Difference] = {}
        for old in found if new else ():
            if old.now is not None or old.known is None or old.document is None or old.is_lost:
                continue
            # A file that was moved as it is needs no comparison.
            reviewed = None if old.known.blob in blobs else self._lines.of_document(old.document)
            if reviewed is None or not self._is_under_review(old.document):
                continue
            counts = [(reviewed.count_in(self._text(here)), here) for here in new if here not in pairs.values()]
            count, best = max(counts, key=lambda pair: pair[0], default=(0, old))
            if count:
                pairs[old.path] = best
        return pairs

    # ---- inside

    def _is_formatting(self, here: Difference) -> bool:
        """Return whether a formatter changed the newest edit's lines: they are there still, though each may differ."""
        if here.document is None or here.known is None or here.now is None:
            return False
        change = _change(self._batch, here)
        whose = None if isinstance(self._whose, CallInfo) else self._whose
        made = None if change is None else as_formatting(self._journal, change, whose, here.changed, here.tick)
        return made is not None and made.formats is not None

    def _returned(
        self, here: Difference, document: DocumentId, event: FileStatuses, *, may_be_agents: bool
    ) -> Difference | None:
        """Add what the file of a document brings back to the event; return the difference that is left."""
        from objstore.weave.returning import returning

        history = DocumentHistory(self._journal, document)
        last = None if here.known is not None or may_be_agents else next(history.stays_at(here.path), None)
        if last is not None and not last.has_rejected:
            is_same = here.now == last.state.state
            if (is_same or here.is_unseen) and event.go_to(history, last.state):  # it has left and returned
                return None if is_same else replace(here, known=last.state.state)
        is_known = not (may_be_agents or here.is_unseen)
        for state in history.states()[1:] if is_known else ():
            if state.is_at(here.path, here.now) and history.brings_back(state) and event.go_to(history, state):
                return None
        loaded = event.loaded(document, {})
        if loaded is None or here.now is None:
            return here
        text, earlier = self._batch.text(here.now.blob), history.before_away()
        if not is_known:
            earlier = {unit: status for unit, status in earlier.items() if status is Status.PENDING}
        back = returning(loaded, earlier, text, path=here.path, may_be_agents=may_be_agents)
        below = event.bring_back(self._batch, here, loaded, back, {})
        return None if below == here.now else replace(here, known=below)

    def _was_moved_back(self, here: Difference) -> bool:
        """Return whether nothing touched a file that is back since it was found to be gone: a folder moved with it."""
        if here.document is None or here.known is not None or here.now is None:
            return False
        last = next(DocumentHistory(self._journal, here.document).stays_at(here.path), None)
        return last is not None and was_untouched_since(self._journal, here.path, last.until)

    def _has_away(self, here: Difference) -> bool:
        """Return whether any edit of a file is away: an agent's change of it brings nothing else back."""
        index = self._journal.store.index.history
        return here.document is not None and bool(index.edits_with(here.document, [Status.AWAY]))

    def _is_under_review(self, document: DocumentId) -> bool:
        found = self._journal.store.index.history.edits_with(document, [Status.PENDING, Status.AWAY])
        return not all(is_expired for _, is_expired in found)

    def _text(self, here: Difference) -> bytes:
        return b"" if here.now is None else self._batch.text(here.now.blob)


def _are_half_of(given: AbstractSet[bytes], lines: AbstractSet[bytes]) -> bool:
    """Return whether at least half of some lines are among others. Blank ones don't count."""
    told = {line for line in given if line.strip()}
    return 2 * len(told & lines) >= len(told)


def bare_lines(text: bytes) -> list[bytes]:
    """Return the lines of a text without endings, and what follows the last one."""
    return text.replace(b"\r\n", b"\n").split(b"\n")


def _change(batch: Batch, here: Difference) -> Change | None:
    """Return the change that a difference is (None: there is none)."""
    now = None if here.now is None else Version(content=batch.text(here.now.blob), state=here.now)
    folders = here.folders if here.known is None else 0
    return external_change(here.path, here.document, here.known, now, batch.text, folders=folders)


def _sessions_of(journal: Journal, edits: Iterable[Seq]) -> str:
    """Return the conversations whose edits these are, as the note of an unattributed edit has them."""
    rows = filter(None, map(journal.store.index.edits.get, edits))
    named = {row.owner for row in rows} - {"", UNKNOWN_AGENT, EXTERNAL_CONVERSATION, GIT_CONVERSATION}
    return "\n".join(sorted(named))
