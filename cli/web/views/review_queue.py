"""Compute the queue: pending changes by turn and by file, running calls, comments, sessions and notices."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cli.screen.terminal import shown_name, visible
from cli.web.decisions.waiting_rejections import waiting_shapes
from cli.web.review_progress import DoneFile, ListedChange, Statuses, Stop
from cli.web.server_state import ServerState
from cli.web.shapes import at_path, changes_counted, file_shape, named, running_call, shown
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
    from objstore import PendingGroup, StatusReport, Workspace

__all__ = ["queue_shape"]

Shape = dict[str, Any]

_NEWEST: Final = 20
"""Most sessions that are offered when edits are claimed."""

_UNREAD: Final = FileSummary("", "", DocumentId(0), Operation.EDIT, 0, 0, (), (), (), False, 0, 0, False)  # noqa: FBT003 -- as its fields are
"""A file whose changes are not known yet."""

_NO_TURN: Final = TurnPrompt(number=0, session=0, conversation="", time=0, prompt="", client="", model="")


def queue_shape(server: ServerState, workspace: "Workspace", version: str) -> Shape:
    """Return the queue. `version`: that of the store before it was read."""
    unreadable: list[StoreError] = []
    review = workspace.review
    report, seen = review.status(), review.seen_changes()
    root = report.root
    put_off: dict[str, DocumentId] = {}
    files = review.change_summaries(
        unreadable=unreadable.append,
        put_off=(lambda document, path: put_off.update({path: document})) if server.may_put_off() else None,
    )
    elsewhere = server.elsewhere
    if elsewhere is not None:
        files = elsewhere.undecided(files)
    server.note_put_off(len(put_off))
    server.note_places(files)
    server.note_unrecorded(file.document for file in files if file.is_unrecorded)
    turns = {seq: group.turn for group in report.groups for seq in group.seqs}
    running = {call.session for call in report.running if not call.is_behind and not call.is_abandoned}
    listed = _listed(report, files)
    # Of a file that is not read yet, what it had last is counted: the total of a review doesn't go down and up again.
    known = server.progress.update(listed, put_off.values(), _statuses(server, workspace))
    shown_turns = _turns(workspace, report, files, put_off, seen, running, listed, known)
    done = server.progress.done()
    comments = [view for view in workspace.comments.all() if not view.is_resolved]
    waiting = waiting_shapes(server)
    sessions = {turn["session"] for turn in shown_turns} | {each.stop[1] for each in done}
    sessions |= {call.session for call in report.running}
    sessions.update(number for each in report.collisions for number in each.edits)
    sessions.update(each["session"] for each in waiting)
    unattributed = _unattributed(workspace, files)
    if unattributed:  # any session can be claimed as the author
        sessions.update([session.number for session in workspace.sessions.sessions()][-_NEWEST:])
    in_force = review.in_force()
    keys = [*(change.key for file in files for change in file.changes), *known]
    return {
        "version": version,
        "root": shown_name(root) if elsewhere is None else elsewhere.title,
        "elsewhere": "" if elsewhere is None else elsewhere.title,
        "read_only": server.read_only(),
        "undo": in_force[0].number if in_force and elsewhere is None else 0,
        "changes": len(keys),
        "total": len(keys) + server.progress.decided,
        "decided": server.progress.decided,
        "done": _done(workspace, done, {(turn["turn"], turn["session"]) for turn in shown_turns}),
        "unseen": sum(key not in seen for key in keys),
        "pending": report.pending,
        "accepted": report.accepted,
        "rejected": report.rejected,
        "away": report.away,
        "sessions": _sessions(workspace, sessions),
        "turns": shown_turns,
        "files": [
            shape
            for _, shape in sorted(
                [
                    *((file.path, _file_shape(file, turns, seen)) for file in files),
                    *_unread_files(report, put_off, seen, known),
                ],
                key=lambda each: (each[0], each[1]["document"]),
            )
        ],
        "reading": len(put_off),
        "unattributed": unattributed,
        "external_changes": [at_path(external_shape(root, each), each.path) for each in report.external],
        "comments": [at_path(comment_shape(root, view), view.path) for view in comments],
        "markers": [at_path(markers_shape(root, each), each.path) for each in report.markers],
        "collisions": [at_path(collision_shape(root, each), each.path) for each in report.collisions],
        "running_calls": [running_call(root, call) for call in report.running],
        "waiting": waiting,
        "checks": [visible(check.command) for check in server.checks()],
        "unreadable": [*map(visible, map(str, unreadable)), *map(shown_name, report.unreadable), *server.notes]
        + ([] if elsewhere is None else [*elsewhere.refusals()]),
    }


# ---- inside


def _listed(report: "StatusReport", files: "list[FileSummary]") -> dict[bytes, ListedChange]:
    """Return the pending changes by key, each with the first turn that it is part of."""
    stops = {seq: stop for stop, seqs in _stops(report) for seq in seqs}
    found: dict[bytes, ListedChange] = {}
    for file in files:
        for change in file.changes:
            own = [stops[unit.seq] for unit in change.units if unit.seq in stops]
            stop = min(own, key=lambda stop: (not stop[0], stop), default=(0, 0))
            found[change.key] = ListedChange(
                stop=stop, document=file.document, path=file.path, line=change.line_after, units=change.units
            )
    return found


def _stops(report: "StatusReport") -> "Iterator[tuple[Stop, tuple[Seq, ...]]]":
    """Yield the turn and the edits of each group of pending edits."""
    sessions = {turn.number: turn.session for turn in report.turns}
    for group in report.groups:
        yield (group.turn, sessions.get(group.turn, group.session)), group.seqs


def _statuses(server: ServerState, workspace: "Workspace") -> Statuses:
    """Return what gives the statuses of hunks; what is decided on another store counts before it is carried out."""
    if server.elsewhere is None:
        return workspace.history.statuses
    decided = server.elsewhere.decided()
    return lambda units: workspace.history.statuses(units) | {unit: decided[unit] for unit in units if unit in decided}


def _done(workspace: "Workspace", done: Iterable[DoneFile], shown: "Collection[Stop]") -> Shape:
    """Return the decided changes by file. `shown`: the turns that the queue lists because they have pending changes."""
    files = [
        {
            "turn": each.stop[0],
            "session": each.stop[1],
            "document": each.document,
            **named(each.path),
            "accepted": each.accepted,
            "rejected": each.rejected,
        }
        for each in done
    ]
    stops = dict.fromkeys(each.stop for each in done)
    return {"files": files, "turns": [_turn(workspace, *stop) for stop in stops if stop not in shown]}


def _turn_changes(file: "FileSummary", seqs: Collection[Seq]) -> set[int]:
    """Return the positions of the changes of a file that edits are part of, and of those decided with them."""
    own = {at for at, change in enumerate(file.changes) if any(unit.seq in seqs for unit in change.units)}
    return own | {other for at in own for other in file.changes[at].shares_with}


def _file_shape(file: "FileSummary", turns: Mapping[Seq, int], seen: Collection[bytes]) -> Shape:
    """Return the summary of a file. `turns`: of each pending edit."""
    own = {turns.get(unit.seq, 0) for unit in (*file.units, *file.kept_on)}
    return file_shape(file, seen, own, is_unrecorded=file.is_unrecorded)


def _turns(
    workspace: "Workspace",
    report: "StatusReport",
    files: "list[FileSummary]",
    put_off: Mapping[str, DocumentId],
    seen: Collection[bytes],
    running: Collection[int],
    listed: Mapping[bytes, ListedChange],
    known: Mapping[bytes, ListedChange],
) -> list[Shape]:
    """Return the turns with pending changes, the oldest first; those without a turn come last, by session."""
    by_seq = {unit.seq: file for file in files for unit in (*file.units, *file.kept_on)}
    edits: dict[tuple[int, int], dict[str, tuple[FileSummary, set[Seq]]]] = {}
    unread: dict[tuple[int, int], list[PendingGroup]] = {}
    for group, (turn, _) in zip(report.groups, _stops(report), strict=True):
        if group.path in put_off:
            unread.setdefault(turn, []).append(group)
        for seq in group.seqs:
            if seq in by_seq:
                edits.setdefault(turn, {}).setdefault(by_seq[seq].path, (by_seq[seq], set()))[1].add(seq)
    found: list[Shape] = []
    for stop in sorted({*edits, *unread}, key=lambda stop: (not stop[0], stop)):
        shape = _turn(workspace, *stop)
        shape["running"] = stop[1] in running
        left = unread.get(stop, [])
        own = [(file, _turn_changes(file, seqs)) for _, (file, seqs) in sorted(edits.get(stop, {}).items())]
        shape["files"] = [
            {
                "document": file.document,
                **changes_counted([file.changes[at] for at in places], seen),
                "own": sum(listed[file.changes[at].key].stop == stop for at in places),
            }
            for file, places in own
        ]
        for group in left:
            document = put_off[group.path]
            keys = [key for key, change in known.items() if (change.document, change.stop) == (document, stop)]
            shape["files"].append({"document": document, **_own_counts([group], keys, seen), "own": len(keys)})
        found.append(shape)
    return found


def _unread_files(
    report: "StatusReport",
    put_off: Mapping[str, DocumentId],
    seen: Collection[bytes],
    known: Mapping[bytes, ListedChange],
) -> Iterator[tuple[str, Shape]]:
    """Yield path and summary of each file that is left for the next request, with the lines of its edits."""
    groups: dict[str, list[PendingGroup]] = {}
    for group in report.groups:
        groups.setdefault(group.path, []).append(group)
    for path, document in put_off.items():
        own = groups.get(path, [])
        unread = _UNREAD._replace(path=path, path_before=path, document=document)
        shape = file_shape(unread, (), [group.turn for group in own], is_unrecorded=False)
        keys = [key for key, change in known.items() if change.document == document]
        yield path, {**shape, **_own_counts(own, keys, seen)}


def _own_counts(groups: "list[PendingGroup]", keys: Collection[bytes], seen: Collection[bytes]) -> Shape:
    """Return counts for use until the changes of a file are computed. `keys`: those that it had last."""
    added, removed = sum(group.added for group in groups), sum(group.removed for group in groups)
    unseen = sum(key not in seen for key in keys)
    return {"lines_added": added, "lines_removed": removed, "changes": len(keys), "unseen": unseen}


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


def _sessions(workspace: "Workspace", numbers: Collection[int]) -> list[Shape]:
    found: list[Shape] = []
    for number in sorted(set(numbers) - {0}):
        try:
            session = workspace.sessions.session(number)
        except NoSuchName:
            continue
        found.append(shown(session_shape(session)))
    return found


def _unattributed(workspace: "Workspace", files: "list[FileSummary]") -> list[int]:
    """Return the documents with edits that no call is known to have made."""
    if not workspace.review.pending_counts()[1]:
        return []
    pending = workspace.history.edits(EditFilter(status=Status.PENDING))
    documents = {view.edit.document for view in pending if view.is_unattributed}
    return [file.document for file in files if file.document in documents]
