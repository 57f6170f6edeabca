"""Query the sessions and turns of a workspace as views for surfaces."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from objstore.disk.fs.nofollow import read_store_file
from objstore.disk.fs.reserved_names import AGENTS_NAME, EVENTS_NAME, STORE_NAME
from objstore.history.edit_queries import edit
from objstore.model.views import SessionView, TurnLines, TurnPrompt, TurnView
from objstore.storage.index.rows import SessionRow, TurnEdit, TurnRow
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import StoreLinked, StoreNotRegular
from objstore.values.request_errors import NoSuchName

__all__ = ["had_agents", "session", "sessions", "turn", "turn_lines", "turn_prompt", "turns"]


def sessions(journal: Journal) -> list[SessionView]:
    """Return every session that has a turn or an edit, oldest first."""
    first: dict[int, TurnRow] = {}
    for row in journal.store.index.turns.all():
        first.setdefault(row.session, row)
    return [_session(journal, row, first.get(row.number)) for row in journal.store.index.sessions.all()]


def session(journal: Journal, number: int) -> SessionView:
    """Return one session. Raises NoSuchName."""
    row = journal.store.index.sessions.get(number)
    if row is None:
        raise NoSuchName(str(number), "session")
    return _session(journal, row, next(iter(journal.store.index.turns.of_session(number)), None))


def turns(journal: Journal, session: int | None = None) -> list[TurnView]:
    """Return the turns of the session with this number (None: of all), oldest first."""
    index = journal.store.index
    return list(_turns(journal, index.turns.all() if session is None else index.turns.of_session(session)))


def turn(journal: Journal, number: int) -> TurnView:
    """Return one turn. Raises NoSuchName."""
    row = journal.store.index.turns.turn(number)
    if row is None:
        raise NoSuchName(str(number), "turn")
    return next(_turns(journal, [row]))


def turn_prompt(journal: Journal, number: int) -> TurnPrompt:
    """Return what was asked in one turn, without a look at its edits. Raises NoSuchName."""
    row = journal.store.index.turns.turn(number)
    if row is None:
        raise NoSuchName(str(number), "turn")
    return TurnPrompt(
        number=row.number,
        session=row.session,
        conversation=row.conversation,
        time=row.time,
        prompt=row.prompt,
        client=row.client,
        model=row.model,
    )


def turn_lines(journal: Journal) -> list[TurnLines]:
    """Return the lines of all edits but git's by turn, session and status, in the order of the first edits."""
    return [
        TurnLines(
            turn=row.turn,
            session=row.session,
            status=row.status,
            edits=row.edits,
            added=row.added,
            removed=row.removed,
            first=row.first,
            began=row.began,
        )
        for row in journal.store.index.turns.lines()
    ]


def _session(journal: Journal, row: SessionRow, first: TurnRow | None) -> SessionView:
    # Edits without a turn have what is known of the client in their notes.
    notes = edit(journal, row.first_edit).edit.notes if first is None and row.first_edit else {}
    return SessionView(
        number=row.number,
        name=row.name,
        client=notes.get("client", notes.get("agent", "")) if first is None else first.client,
        prompt=notes.get("prompt", "") if first is None else first.prompt,
        began=row.began,
        ended=row.ended,
        turns=row.turns,
        edits=row.edits,
    )


def _turns(journal: Journal, rows: list[TurnRow]) -> Iterator[TurnView]:
    made: dict[int, list[TurnEdit]] = {}
    for each in journal.store.index.turns.edits(row.number for row in rows):
        made.setdefault(each.turn, []).append(each)
    for row in rows:
        yield _turn(row, made.get(row.number, []))


def _turn(row: TurnRow, made: Iterable[TurnEdit]) -> TurnView:
    made = list(made)
    return TurnView(
        number=row.number,
        session=row.session,
        conversation=row.conversation,
        time=row.time,
        prompt=row.prompt,
        client=row.client,
        model=row.model,
        seqs=tuple(each.seq for each in made),
        paths=tuple(sorted({os.fsdecode(each.path) for each in made})),
        added=sum(each.added for each in made),
        removed=sum(each.removed for each in made),
        counts=dict(Counter(each.status for each in made)),
    )


def had_agents(journal: Journal) -> bool:
    """Return whether an agent's turn is recorded, or a hook has reported something."""
    if journal.store.next_turn() > 1:
        return True
    path = os.path.join(journal.tree.root, STORE_NAME, AGENTS_NAME, EVENTS_NAME)
    with suppress(OSError, StoreLinked, StoreNotRegular):
        return read_store_file(path).count(b"\n") > 1  # the first line says whose log it is
    return False
