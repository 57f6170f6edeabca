"""Decide what is sent to which agent, and when: rejections, comments and collisions, each once.

An agent that has hooks is sent it with its next prompt or tool. While a person reviews, what they say is held back, so
that it is one message; the setting `review.send` can hold it until the person sends it. A review in progress holds a
lock, which ends with its process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections import Counter
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from objstore.disk.fs.nofollow import open_store_file
from objstore.disk.fs.writer_lock import GAP_SECONDS
from objstore.model.views import UnreportedComments, UnreportedRejections, WaitingMessage
from objstore.review.calls.agent_files import texts_of
from objstore.review.calls.open_calls import OpenCalls, sanitized_name
from objstore.values.errors import CasError
from objstore.values.fastclass import replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from objstore.model.basic_types import Unit
    from objstore.model.status_report import Collision
    from objstore.storage.index.rows import SessionRow
    from objstore.storage.store.object_store import Store
    from objstore.storage.transaction.journal import Journal

__all__ = ["AgentMessages"]

_MAX_COLLISIONS: Final = 100
"""Reported collisions that are remembered of each conversation."""

_PROBES: Final = 5
"""How often the lock of reviews is tried: another hook that tries it has it for an instant."""

_NOT_OF_HOOKS: Final = frozenset({"collisions"})
"""What is also remembered of sessions without hooks."""


class AgentMessages:
    """The messages about their edits that agents are still to be sent."""

    def __init__(self, journal: Journal) -> None:
        """Take the journal of the workspace; read nothing yet."""
        self._journal: Final = journal
        self._open: Final = OpenCalls(journal)

    # ---- rejections and comments

    def rejected(self, conversation: str, most: int) -> UnreportedRejections | None:
        """Return the rejections of a conversation's edits, and of those it has joined, that were not reported to it.

        None: there are none. `most`: edits that are described; further ones are only counted. Raises what reads raise.
        """
        known, joined = self._open.reported_rejections(conversation)
        with self._journal.reading() as store:
            rows = store.index.edits.rejected([sanitized_name(conversation), *joined])
            found = {str(unit): unit for row in rows for unit in row.rejected}
            if gone := known - found.keys():
                # A unit that is accepted and then rejected again is reported again.
                self._open.save_reported_rejections(conversation, (), gone)
            unreported = {name: unit for name, unit in found.items() if name not in known}
            if unreported:
                held = self._held_units(store)
                unreported = {name: unit for name, unit in unreported.items() if held is not None and unit not in held}
            if not unreported:
                return None
            # Imported only now, because mostly there is nothing to report.
            from objstore.history.edit_queries import rejections

            edits = list(dict.fromkeys(unit.seq for unit in unreported.values()))
            first = set(edits[:most])
            described = rejections(self._journal, [unit for unit in unreported.values() if unit.seq in first])
            return UnreportedRejections(
                rejections=tuple(described), more=len(edits) - len(first), units=frozenset(unreported)
            )

    def conversations_of(self, conversation: str) -> list[str]:
        """Return a conversation and those whose edits are reported to it too."""
        return [sanitized_name(conversation), *self._open.reported_rejections(conversation)[1]]

    def comments(self, conversation: str, most: int) -> UnreportedComments | None:
        """Return the comments that are to be sent to a conversation now (None: there are none).

        `most`: comments that are returned; further ones are only counted. Raises what reads raise.
        """
        with self._journal.reading() as store:
            from objstore.model.basic_types import CommentState

            # Each hook of an agent asks this, and mostly there is nothing: what only comments need isn't imported then.
            if not store.index.comments.in_state(CommentState.OPEN):
                return None
            since = self._comments_held_since()
            if since is None:
                return None
            from objstore.review import comments

            return comments.unsent_for(self._journal, self.conversations_of(conversation), most, since)

    def mark_reported(self, conversation: str, reported: UnreportedRejections) -> None:
        """Remember that rejections have been reported to the conversation. Raises what the disk raises.

        Call it after the report, not before: reporting a rejection twice is better than never.
        """
        self._open.save_reported_rejections(conversation, reported.units)

    def waiting(self, *, decided: Collection[Unit] | None = None, said: Collection[int] = ()) -> list[WaitingMessage]:
        """Return how much each session is yet to be sent, held back or not, by number; 0: whichever agent works next.

        `decided`, `said`: only sessions that made some of these units, or that some of these comments are for; None:
        all sessions. A session without hooks is sent nothing by itself: only its rejections in `decided` are counted.
        Raises what reads raise.
        """
        from objstore.review import comments

        with self._journal.reading() as store:
            hooked = {row.number: self.conversations_of(row.name) for row in self._hooked_sessions(store)}
            owners = {name: number for number, names in reversed(hooked.items()) for name in names}
            rejections = {number: self._count_unreported(store, names) for number, names in hooked.items()}
            meant: Counter[int] = Counter()
            wanted: set[int] = set()
            for unit in dict.fromkeys(unit.seq for unit in decided or ()):
                edit = store.index.edits.get(unit)
                session = 0 if edit is None else owners.get(edit.owner) or self._session_of(store, [unit])
                if edit is not None and session:
                    wanted.add(session)
                    if session not in hooked and not set(edit.rejected).isdisjoint(decided or ()):
                        rejections[session] = rejections.get(session, 0) + 1
            for view, conversations in comments.unsent(self._journal):
                to = min(conversations, default="")
                session = owners.get(to) or (store.index.sessions.number(to) if to else 0)
                session = session or (self._session_of(store, {unit.seq for unit in view.comment.units}) if to else 0)
                meant[session] += 1
                wanted |= {session} if view.number in said else set()
            return [
                WaitingMessage(
                    session=session,
                    rejections=rejections.get(session, 0),
                    comments=meant[session],
                    has_hooks=session in hooked,
                )
                for session in sorted({*rejections, *meant})
                if (rejections.get(session) or meant[session]) and (decided is None or session in wanted)
            ]

    # ---- holding back

    @property
    def sending(self) -> str:
        """Return the setting `review.send`: automatic, ask or manual. Raises as Configuration.get."""
        from objstore.disk.config.config_files import Configuration

        return str(Configuration(self._journal.tree.root).get("review.send").value)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold rejections and comments back until this ends, or its process does.

        Nothing is held back if the lock can't be written.
        """
        fd: int | None = None
        with suppress(OSError, CasError):
            fd = open_store_file(self._open.review_lock, os.O_RDWR | os.O_CREAT)
            fcntl.flock(fd, fcntl.LOCK_SH)  # a hook that tries the lock has it only for an instant
        try:
            yield
        finally:
            if fd is not None:
                os.close(fd)

    def release(self) -> None:
        """Release what `review.send` has held back so far. Raises what the disk raises."""
        with self._journal.reading() as store:
            numbers = store.index.numbers.newest()
        self._open.save_released(numbers.decisions, numbers.comments)

    def _held_units(self, store: Store) -> set[Unit] | None:
        """Return the units whose rejections are held back; None: all are."""
        if self._is_review_in_progress():
            return None
        if self.sending == "automatic":
            return set()
        from objstore.model.records import Decision  # as above: mostly nothing is held back

        decided, _ = self._open.released()
        held: set[Unit] = set()
        for number in range(decided + 1, store.index.numbers.newest().decisions + 1):
            place = store.index.decisions.place(number)
            record = None if place is None else store.record(place)[0]
            if isinstance(record, Decision):
                held.update(unit for unit, _ in record.verdicts)
        return held

    def _comments_held_since(self) -> int | None:
        """Return the number of the first comment that is held back, 0 if none is; None: all are."""
        if self._is_review_in_progress():
            return None
        return 0 if self.sending == "automatic" else self._open.released()[1] + 1

    def _is_review_in_progress(self) -> bool:
        """Return whether some process holds messages back."""
        try:
            fd = open_store_file(self._open.review_lock, os.O_RDWR)
        except (OSError, CasError):
            return False  # there was no review yet, or it could not hold anything
        try:
            for _ in range(_PROBES):
                with suppress(BlockingIOError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return False
                time.sleep(GAP_SECONDS)
            return True
        finally:
            os.close(fd)

    # ---- collisions

    def collisions(self, conversation: str) -> list[Collision]:
        """Return the files of a conversation in which other sessions have pending edits, if not reported yet.

        Each has only the edits of the others. Each session in a file is reported once.
        """
        session = sanitized_name(conversation)
        with self._journal.reading() as store:
            if not store.may_collide(session):
                return []  # the usual answer, for which the index need not ingest what was just written
            own = store.index.sessions.number(session)
            colliding = store.index.edits.colliding() if own else []
            if not colliding:
                return []
            # Imported only now, because mostly there is nothing to report.
            from objstore.review.collisions import collisions

            known = set(texts_of(self._open.session(conversation).get("collisions")))
            found = [
                replace(
                    collision,
                    edits={
                        number: seqs
                        for number, seqs in collision.edits.items()
                        if number != own and _collision_name(collision, number) not in known
                    },
                )
                for collision in collisions(self._journal, colliding)
                if own in collision.edits
            ]
            return [collision for collision in found if collision.edits]

    def mark_collisions_reported(self, conversation: str, reported: Iterable[Collision]) -> None:
        """Remember that a conversation was informed of collisions. Raises what the disk raises."""
        names = [_collision_name(collision, number) for collision in reported for number in collision.edits]

        def noted(kept: Mapping[str, object]) -> dict[str, object]:
            known = [name for name in texts_of(kept.get("collisions")) if name not in names]
            return {"collisions": [*known, *names][-_MAX_COLLISIONS:]}

        self._open.note(conversation, noted)

    # ---- what is pending

    def note_pending(self, conversation: str, pending: int) -> bool:
        """Remember how many edits are pending, for the person in front of an agent; return whether that is news.

        It is if the number is another one than at the last call, or edits were recorded since. Raises what the disk
        raises.
        """
        with self._journal.reading() as store:
            now = [pending, store.index.numbers.newest().edits]
        if self._open.session(conversation).get("pending", []) == now:
            return False
        self._open.note(conversation, lambda _: {"pending": now})
        return True

    # ---- inside

    def _hooked_sessions(self, store: Store) -> list[SessionRow]:
        """Return the sessions of which hooks have reported something lately, oldest first."""
        rows = store.index.sessions.all()
        return [row for row in rows if not _NOT_OF_HOOKS.issuperset(self._open.session(row.name))]

    def _count_unreported(self, store: Store, conversations: list[str]) -> int:
        """Return how many edits of these conversations are rejected without a report of it to the first of them."""
        known, _ = self._open.reported_rejections(conversations[0])
        rows = store.index.edits.rejected(conversations)
        return sum(any(str(unit) not in known for unit in edit.rejected) for edit in rows)

    def _session_of(self, store: Store, seqs: Collection[int]) -> int:
        """Return the number of the first session that made one of the edits; 0: none did."""
        return min(store.index.sessions.of_edits(seqs).values(), default=0)


def _collision_name(collision: Collision, session: int) -> str:
    """Return what identifies a session's edits of a file among the reported collisions; a path may be any bytes."""
    return f"{session}:{os.fsencode(collision.path).hex()}"
