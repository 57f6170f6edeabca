"""Look up the sessions and turns of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from objstore.workspace.role import Role, reads

# What only some methods need is imported in them: `cas status` must not wait for the review core to load.
if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore.model.basic_types import Seq
    from objstore.model.status_report import Collision, RunningCall
    from objstore.model.views import SessionView, TurnLines, TurnPrompt, TurnView

__all__ = ["Sessions"]


class Sessions(Role):
    """Look up the sessions and turns of agents."""

    @reads
    def sessions(self) -> list[SessionView]:
        """Return every session that has a turn or an edit, oldest first."""
        from objstore.history import session_queries

        return session_queries.sessions(self._journal)

    @reads
    def collisions(self) -> list[Collision]:
        """Return the files in which several sessions have pending edits, by path."""
        from objstore.review import collisions

        return collisions.collisions(self._journal, self._store.index.edits.colliding())

    @reads
    def running_calls(self) -> tuple[RunningCall, ...]:
        """Return the calls of agents' own programs whose end was not reported, oldest first."""
        from objstore.review import status

        return status.running_calls(self._journal)

    @reads
    def session(self, number: int) -> SessionView:
        """Return one session. Raises NoSuchName."""
        from objstore.history import session_queries

        return session_queries.session(self._journal, number)

    @reads
    def find_session(self, spelling: str) -> SessionView:
        """Return the session with this number or name, or the only one whose name begins with it.

        Raises NoSuchName, AmbiguousName.
        """
        from objstore.history import revspec, session_queries

        return session_queries.session(self._journal, revspec.find_session(self._journal, spelling))

    @reads
    def turns(self, session: int | None = None) -> list[TurnView]:
        """Return the turns of the session with this number (None: of all), oldest first."""
        from objstore.history import session_queries

        return session_queries.turns(self._journal, session)

    @reads
    def turn(self, number: int) -> TurnView:
        """Return one turn. Raises NoSuchName."""
        from objstore.history import session_queries

        return session_queries.turn(self._journal, number)

    @reads
    def turn_prompt(self, number: int) -> TurnPrompt:
        """Return what was asked in one turn, without a look at its edits. Raises NoSuchName."""
        from objstore.history import session_queries

        return session_queries.turn_prompt(self._journal, number)

    @reads
    def turn_lines(self) -> list[TurnLines]:
        """Return the lines of all edits but git's by turn, session and status, in the order of the first edits.

        Only the index is read: 100,000 edits take a fraction of a second.
        """
        from objstore.history import session_queries

        return session_queries.turn_lines(self._journal)

    @reads
    def of_edits(self, seqs: Iterable[int]) -> dict[Seq, int]:
        """Return the number of each edit's session, after claims, without edits that belong to none."""
        return self._store.index.sessions.of_edits(seqs)
