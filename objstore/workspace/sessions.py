"""Look up the sessions and turns of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

# What only some methods need is imported in them: `cas status` must not wait for the review core to load.
if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.model.basic_types import Seq
    from objstore.model.status_report import Collision, RunningCall
    from objstore.model.views import SessionView, TurnLines, TurnPrompt, TurnView
    from objstore.storage.transaction.journal import Journal

__all__ = ["Sessions"]


class Sessions:
    """Look up the sessions and turns of agents."""

    def __init__(self, journal: Journal) -> None:
        """Wrap an open journal."""
        self._journal: Final = journal

    def sessions(self) -> list[SessionView]:
        """Return every session that has a turn or an edit, oldest first."""
        from objstore.history import session_queries

        with self._journal.reading():
            return session_queries.sessions(self._journal)

    def collisions(self) -> list[Collision]:
        """Return the files in which several sessions have pending edits, by path."""
        from objstore.review import collisions

        with self._journal.reading() as store:
            return collisions.collisions(self._journal, store.index.edits.colliding())

    def running_calls(self) -> tuple[RunningCall, ...]:
        """Return the calls of agents' own programs whose end was not reported, oldest first."""
        from objstore.review import status

        with self._journal.reading():
            return status.running_calls(self._journal)

    def session(self, number: int) -> SessionView:
        """Return one session. Raises NoSuchName."""
        from objstore.history import session_queries

        with self._journal.reading():
            return session_queries.session(self._journal, number)

    def find_session(self, spelling: str) -> SessionView:
        """Return the session with this number or name, or the only one whose name begins with it.

        Raises NoSuchName, AmbiguousName.
        """
        from objstore.history import revspec, session_queries

        with self._journal.reading():
            return session_queries.session(self._journal, revspec.find_session(self._journal, spelling))

    def turns(self, session: int | None = None) -> list[TurnView]:
        """Return the turns of the session with this number (None: of all), oldest first."""
        from objstore.history import session_queries

        with self._journal.reading():
            return session_queries.turns(self._journal, session)

    def turn(self, number: int) -> TurnView:
        """Return one turn. Raises NoSuchName."""
        from objstore.history import session_queries

        with self._journal.reading():
            return session_queries.turn(self._journal, number)

    def turn_prompt(self, number: int) -> TurnPrompt:
        """Return what was asked in one turn, without a look at its edits. Raises NoSuchName."""
        from objstore.history import session_queries

        with self._journal.reading():
            return session_queries.turn_prompt(self._journal, number)

    def turn_lines(self) -> list[TurnLines]:
        """Return the lines of all edits but git's by turn, session and status, in the order of the first edits.

        Only the index is read: 100,000 edits take a fraction of a second.
        """
        from objstore.history import session_queries

        with self._journal.reading():
            return session_queries.turn_lines(self._journal)

    def of_edits(self, seqs: Iterable[int]) -> dict[Seq, int]:
        """Return the number of each edit's session, after claims, without edits that belong to none."""
        with self._journal.reading() as store:
            return store.index.sessions.of_edits(seqs)
