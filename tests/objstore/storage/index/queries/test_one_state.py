"""A query that reads more than once sees one state of the index, whatever other processes record meanwhile."""

import inspect
from collections.abc import Callable
from typing import Any, Final

import pytest

from objstore import Action, CallInfo, CommentState, Status, StoreError, TurnInfo, Unit, Workspace
from objstore.model.ids import blob_id
from objstore.storage.index.queries.file_stat_queries import JournalPosition
from objstore.storage.index.rows import EditConditions
from tests.support.scene import Scene

SUBJECTS: Final = (
    "numbers",
    "edits",
    "decisions",
    "holders",
    "documents",
    "folders",
    "history",
    "turns",
    "sessions",
    "comments",
    "settings",
    "blobs",
    "file_stats",
)
"""The names of the objects that an index hands out, but for the one of fsck, which compares two of them row by row."""

ARGUMENTS: Final[dict[str, object]] = {
    "blob": blob_id(b"1\n"),
    "blobs": [blob_id(b"1\n")],
    "call": 1,
    "conversation": "agent",
    "conversations": ["agent"],
    "count": 2,
    "decision": 1,
    "digits": "",
    "document": 1,
    "documents": [1],
    "first": 1,
    "folder": b"",
    "folders": [],
    "high": b"\xff" * 33,
    "last": 1 << 40,
    "least": 1,
    "limit": 1_000,
    "low": b"",
    "moment": 1 << 60,
    "name": "",
    "number": 1,
    "path": b"f",
    "prefix": "",
    "segment": 1,
    "segments": [1],
    "seq": 1,
    "seqs": range(1, 4),
    "session": 1,
    "state": CommentState.OPEN,
    "statuses": [Status.ACCEPTED, Status.REJECTED],
    "turns": range(1, 4),
    "wanted": EditConditions(),
}
"""A value for each parameter, by name."""

OTHERWISE: Final[dict[tuple[str, str], object]] = {
    ("paths", "prefix"): b"",
    ("newest_of", "session"): "agent",
    ("recorded_since", "moment"): JournalPosition(0, 0, 0),
    ("folders_recorded_since", "moment"): JournalPosition(0, 0, 0),
    ("recorded_at", "moment"): JournalPosition(1, 0, 0),
    ("paths_changed_since", "moment"): JournalPosition(0, 0, 0),
}
"""Values for parameters of one query."""


def record_everything(workspace: Workspace, number: int) -> None:
    """Record something of every kind, and have the index take it."""
    turn = TurnInfo(session="agent", began=number, prompt=f"prompt {number}")
    with workspace.call(CallInfo(tool="test", conversation="agent", turn=turn)) as call:
        call.write("f", b"1\n2\n%d\n" % number)
        call.write(f"folder{number}/g", b"%d\n" % number)
        outcome = call.commit()
    changed, created = (edit.seq for edit in outcome.edits)
    workspace.decide(Action.REJECT if number % 2 else Action.ACCEPT, [Unit(created, 0)])
    workspace.comments.add_to_units([Unit(changed, 0)], f"comment {number}")
    workspace.snapshots.take(who="test")
    workspace.retention.pin([changed])
    workspace.review.status()


def asked(query: Callable[..., Any]) -> Callable[[], object]:
    """Return a function that makes a query with a value for each parameter, and reads its result to the end."""
    given = {
        name: OTHERWISE[query.__name__, name] if (query.__name__, name) in OTHERWISE else ARGUMENTS[name]
        for name, parameter in inspect.signature(query).parameters.items()
        if parameter.default is parameter.empty
    }

    def ask() -> object:
        found = query(**given)
        return list(found) if inspect.isgenerator(found) else found

    return ask


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_query_sees_one_state_whatever_is_recorded_meanwhile(scene: Scene, subject: str) -> None:
    with Workspace.open(scene.root) as other, scene.workspace._journal.reading() as store:  # noqa: SLF001 - to trace it
        numbers = iter(range(1_000_000))
        for _ in range(3):
            record_everything(other, next(numbers))
        found = getattr(store.index, subject)
        db = store.index._db.connection  # noqa: SLF001 - as above
        statements: list[str] = []
        torn: list[str] = []

        def meanwhile(statement: str) -> None:
            statements.append(statement)
            if len(statements) == at:
                record_everything(other, next(numbers))

        def traced(ask: Callable[[], object]) -> object:
            statements.clear()
            db.set_trace_callback(meanwhile)
            try:
                return ask()
            except StoreError as error:
                return repr(error)
            finally:
                db.set_trace_callback(None)

        for name, query in inspect.getmembers(found, callable):
            if name.startswith("_"):
                continue
            ask = asked(query)
            at = 0
            traced(ask)
            for at in range(2, len(statements) + 1):
                before = ask()
                result = traced(ask)
                if result not in (before, ask()):
                    torn.append(f"{name} at {at}: {result!r:.150}")
        assert torn == []
