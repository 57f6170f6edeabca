"""Compute the queue: pending changes by turn and by file, running calls, comments, sessions and notices."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from cli.screen.terminal import shown_name, visible
from cli.web.decisions.waiting_rejections import waiting_shapes
from cli.web.review_progress import ListedChange, Statuses, Stop, in_order
from cli.web.server_state import ServerState
from cli.web.shapes import at_path, changes_counted, file_shape, running_call, shown
from objstore import (
    DocumentId,
    EditFilter,
    FileSummary,
    NoSuchName,
    Operation,
    Seq,
    Status,
    StoreError,
    TurnPrompt,
    collision_shape,
    comment_shape,
    external_shape,
    markers_shape,
    replace,
    session_shape,
    turn_summary,
)

if TYPE_CHECKING:
    from objstore import PendingGroup, Workspace

__all__ = ["queue_shape"]

Shape = dict[str, Any]

_NEWEST: Final = 20
"""Most sessions that are offered when edits are claimed."""

_NO_CHANGES: Final = FileSummary("", "", DocumentId(0), Operation.EDIT, 0, 0, (), (), (), False, 0, 0, False)  # noqa: FBT003 -- as its fields are
"""A file without changes: they are decided, or not known yet."""

_NO_TURN: Final = TurnPrompt(number=0, session=0, conversation="", time=0, prompt="", client="", model="")


def queue_shape(server: ServerState, workspace: "Workspace", version: str) -> Shape:
    """Return the queue. `version`: that of the store before it was read."""
    return _Queue(server, workspace).shape(version)


# ---- inside


class _Queue:
    """What awaits review and what was decided, while the queue is made of it."""

    def __init__(self, server: ServerState, workspace: "Workspace") -> None:
        """Read it."""
        review, elsewhere = workspace.review, server.elsewhere
        self._server: Final = server
        self._workspace: Final = workspace
        self._unreadable: Final[list[StoreError]] = []
        self._put_off: Final[dict[str, DocumentId]] = {}  # by path: the files that are left for the next request
        self._report: Final = review.status()
        self._seen: Final = review.seen_changes()
        files = review.change_summaries(
            unreadable=self._unreadable.append,
            put_off=(lambda document, path: self._put_off.update({path: document})) if server.may_put_off() else None,
        )
        self._files: Final = files if elsewhere is None else elsewhere.undecided(files)
        server.note_put_off(len(self._put_off))
        server.note_places(self._files)
        server.note_unrecorded(file.document for file in self._files if file.is_unrecorded)
        self._listed: Final = dict(self._changes())
        # Of a file that is not read yet, what it had last is counted: the total of a review doesn't go down and up.
        self._known: Final = server.progress.update(self._listed, self._put_off.values(), self._statuses())
        self._decided: Final = server.progress.decisions()

    def shape(self, version: str) -> Shape:
        """Return it. `version`: that of the store before it was read."""
        server, workspace, report = self._server, self._workspace, self._report
        root, elsewhere = report.root, server.elsewhere
        turns = list(self._turns())
        waiting = waiting_shapes(server)
        unattributed = self._unattributed()
        in_force = workspace.review.in_force()
        keys = [*(change.key for file in self._files for change in file.changes), *self._known]
        pending = self._summaries()
        files = _with_decided(pending, self._decided, lambda change: _without_changes(change.document, change.path))
        return {
            "version": version,
            "root": shown_name(root) if elsewhere is None else elsewhere.title,
            "elsewhere": "" if elsewhere is None else elsewhere.title,
            "read_only": server.read_only(),
            "undo": in_force[0].number if in_force and elsewhere is None else 0,
            "changes": len(keys),
            "total": len(keys) + server.progress.decided,
            "decided": server.progress.decided,
            "unseen": sum(key not in self._seen for key in keys),
            "pending": report.pending,
            "accepted": report.accepted,
            "rejected": report.rejected,
            "away": report.away,
            "sessions": self._sessions(turns, waiting, is_any_wanted=bool(unattributed)),
            "turns": turns,
            "files": [files[document] for document in pending],
            "done": sorted(
                (file for file in files.values() if file["document"] not in pending), key=itemgetter("name")
            ),
            "reading": len(self._put_off),
            "unattributed": unattributed,
            "external_changes": [at_path(external_shape(root, each), each.path) for each in report.external],
            "comments": [
                at_path(comment_shape(root, view), view.path)
                for view in workspace.comments.all()
                if not view.is_resolved
            ],
            "markers": [at_path(markers_shape(root, each), each.path) for each in report.markers],
            "collisions": [at_path(collision_shape(root, each), each.path) for each in report.collisions],
            "running_calls": [running_call(root, call) for call in report.running],
            "waiting": waiting,
            "checks": [visible(check.command) for check in server.checks()],
            "unreadable": [
                *map(visible, map(str, self._unreadable)),
                *map(shown_name, report.unreadable),
                *server.notes,
                *(() if elsewhere is None else elsewhere.refusals()),
            ],
        }

    def _changes(self) -> Iterator[tuple[bytes, ListedChange]]:
        """Yield the key and the facts of each pending change, with the first turn that it is part of."""
        stops = {seq: stop for stop, seqs in self._stops() for seq in seqs}
        for file in self._files:
            for change in file.changes:
                own = [stops[unit.seq] for unit in change.units if unit.seq in stops]
                yield (
                    change.key,
                    ListedChange(
                        stop=min(own, key=in_order, default=(0, 0)),
                        document=file.document,
                        path=file.path,
                        line=change.line_after,
                        added=change.inserted_lines,
                        removed=change.removed_lines,
                        units=change.units,
                    ),
                )

    def _stops(self) -> "Iterator[tuple[Stop, tuple[Seq, ...]]]":
        """Yield the turn and the edits of each group of pending edits."""
        sessions = {turn.number: turn.session for turn in self._report.turns}
        for group in self._report.groups:
            yield (group.turn, sessions.get(group.turn, group.session)), group.seqs

    def _statuses(self) -> Statuses:
        """Return what gives the statuses of hunks; what is decided on another store counts before it is carried out."""
        known = self._workspace.history.statuses
        if self._server.elsewhere is None:
            return known
        decided = self._server.elsewhere.decided()
        return lambda units: known(units) | {unit: decided[unit] for unit in units if unit in decided}

    def _turns(self) -> Iterator[Shape]:
        """Yield the turns with pending or decided changes, the oldest first; without a number last, by session."""
        by_seq = {unit.seq: file for file in self._files for unit in (*file.units, *file.kept_on)}
        running = {call.session for call in self._report.running if not call.is_behind and not call.is_abandoned}
        edits: dict[Stop, dict[str, tuple[FileSummary, set[Seq]]]] = {}
        unread: dict[Stop, list[PendingGroup]] = {}
        for group, (stop, _) in zip(self._report.groups, self._stops(), strict=True):
            if group.path in self._put_off:
                unread.setdefault(stop, []).append(group)
            for seq in group.seqs:
                if seq in by_seq:
                    edits.setdefault(stop, {}).setdefault(by_seq[seq].path, (by_seq[seq], set()))[1].add(seq)
        decided: dict[Stop, list[tuple[ListedChange, Status]]] = {}
        for change, verdict in self._decided:
            decided.setdefault(change.stop, []).append((change, verdict))
        for stop in sorted({*edits, *unread, *decided}, key=in_order):
            rows: dict[int, Shape] = {}
            for _, (file, seqs) in sorted(edits.get(stop, {}).items()):
                own = [file.changes[at] for at in _turn_changes(file, seqs)]
                rows[file.document] = {
                    **changes_counted(own, self._seen),
                    "own": sum(self._listed[change.key].stop == stop for change in own),
                }
            for group in unread.get(stop, []):
                document = self._put_off[group.path]
                keys = [key for key, each in self._known.items() if (each.document, each.stop) == (document, stop)]
                rows[document] = {**self._counts_of_edits([group], keys), "own": len(keys)}
            rows = _with_decided(rows, decided.get(stop, ()), lambda _: {**changes_counted((), ()), "own": 0})
            files = [{"document": document, **row} for document, row in rows.items()]
            yield {**_turn(self._workspace, *stop), "running": stop[1] in running, "files": files}

    def _summaries(self) -> dict[int, Shape]:
        """Return the summary of each file with pending changes, by path. One not read yet has its edits' lines."""
        turns = {seq: group.turn for group in self._report.groups for seq in group.seqs}
        found: list[tuple[str, Shape]] = []
        for file in self._files:
            own = {turns.get(unit.seq, 0) for unit in (*file.units, *file.kept_on)}
            found.append((file.path, file_shape(file, self._seen, own, is_unrecorded=file.is_unrecorded)))
        groups: dict[str, list[PendingGroup]] = {}
        for group in self._report.groups:
            groups.setdefault(group.path, []).append(group)
        for path, document in self._put_off.items():
            edited = groups.get(path, [])
            keys = [key for key, change in self._known.items() if change.document == document]
            shape = _without_changes(document, path, [group.turn for group in edited])
            found.append((path, {**shape, **self._counts_of_edits(edited, keys)}))
        found.sort(key=lambda each: (each[0], each[1]["document"]))
        return {shape["document"]: shape for _, shape in found}

    def _counts_of_edits(self, groups: "Iterable[PendingGroup]", keys: Collection[bytes]) -> Shape:
        """Return counts for use until the changes of a file are computed. `keys`: those that it had last."""
        lines = [(group.added, group.removed) for group in groups]
        return {
            "lines_added": sum(added for added, _ in lines),
            "lines_removed": sum(removed for _, removed in lines),
            "changes": len(keys),
            "unseen": sum(key not in self._seen for key in keys),
        }

    def _sessions(self, turns: Iterable[Shape], waiting: Iterable[Shape], *, is_any_wanted: bool) -> list[Shape]:
        """Return the sessions that other fields name. `is_any_wanted`: the newest ones too, for someone to choose."""
        sessions = self._workspace.sessions
        numbers = {each["session"] for each in (*turns, *waiting)} | {call.session for call in self._report.running}
        numbers.update(number for each in self._report.collisions for number in each.edits)
        if is_any_wanted:
            numbers.update([session.number for session in sessions.sessions()][-_NEWEST:])
        found: list[Shape] = []
        for number in sorted(numbers - {0}):
            with suppress(NoSuchName):
                found.append(shown(session_shape(sessions.session(number))))
        return found

    def _unattributed(self) -> list[int]:
        """Return the documents with edits that no call is known to have made."""
        if not self._workspace.review.pending_counts()[1]:
            return []
        pending = self._workspace.history.edits(EditFilter(status=Status.PENDING))
        documents = {view.edit.document for view in pending if view.is_unattributed}
        return [file.document for file in self._files if file.document in documents]


def _with_decided(
    rows: Mapping[int, Shape],
    decided: Iterable[tuple[ListedChange, Status]],
    without_changes: Callable[[ListedChange], Shape],
) -> dict[int, Shape]:
    """Return the rows of files, by document, with the numbers of their decided changes, and of files with no others.

    `without_changes`: returns the row of such a file, which gets the lines of its decided changes.
    """
    found = {document: {**row, "accepted": 0, "rejected": 0} for document, row in rows.items()}
    for change, verdict in decided:
        if change.document not in found:
            found[change.document] = {**without_changes(change), "accepted": 0, "rejected": 0}
        row = found[change.document]
        row[verdict.value] += 1
        if change.document not in rows:
            row["lines_added"] += change.added
            row["lines_removed"] += change.removed
    return found


def _without_changes(document: int, path: str, turns: Iterable[int] = ()) -> Shape:
    """Return the summary of a file as if it had no changes."""
    file = _NO_CHANGES._replace(path=path, path_before=path, document=DocumentId(document))
    return file_shape(file, (), turns, is_unrecorded=False)


def _turn_changes(file: "FileSummary", seqs: Collection[Seq]) -> set[int]:
    """Return the positions of the changes of a file that edits are part of, and of those decided with them."""
    own = {at for at, change in enumerate(file.changes) if any(unit.seq in seqs for unit in change.units)}
    return own | {other for at in own for other in file.changes[at].shares_with}


def _turn(workspace: "Workspace", number: int, session: int) -> Shape:
    """Return a turn; as turn 0, the edits of a session without a turn."""
    view = _NO_TURN
    with suppress(NoSuchName):  # it was purged since
        if number:
            view = workspace.sessions.turn_prompt(number)
        elif session:
            made = workspace.sessions.session(session)
            view = replace(view, conversation=made.name, client=made.client, prompt=made.prompt, time=made.began)
    shape: Shape = shown(turn_summary(view))
    return {**shape, "turn": number, "session": session}
