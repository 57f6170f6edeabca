"""Keep the state of one server between requests, and open the workspace for each request.

The state is in memory and ends with the server; the history does not depend on it. It has tickets for what a reviewer
was shown, the changes whose keys were sent, and rejections that wait for the end of a turn.
"""

import os
import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import click

from cli.app.error_hints import permission_advice
from cli.screen.terminal import visible
from cli.web.diff_rows.syntax_marks import SyntaxMarks
from cli.web.kept import Kept
from cli.web.on_screen import NOTHING, OnScreen
from cli.web.rendering.render_process import Renderer
from cli.web.review_progress import ReviewProgress
from objstore import (
    Action,
    CasError,
    Conflicted,
    ExternalChange,
    OnExternal,
    PermissionRefused,
    Selection,
    Status,
    Surface,
    Unit,
    Workspace,
    few,
    store_version,
    value,
)

if TYPE_CHECKING:
    from cli.selection.elsewhere import Elsewhere
    from objstore import FileSummary, HistoryEnd, NetFile

__all__ = ["NO_TICKET", "DecisionRequest", "ServerState", "ShownChange", "Ticket", "WaitingRejection", "WayOut"]

_MOST_TICKETS: Final = 100
_MOST_SHOWN: Final = 200_000
"""Changes that are remembered by their keys: some 40 MB."""

_MOST_FILES: Final = 40
_MOST_BYTES: Final = 20_000_000
"""Files that are kept as they were shown, and bytes that they take: the next request mostly asks for one of them."""

_MOST_IDLE: Final = 2
"""Workspaces that stay open between requests: as many as answer requests for files at the same time."""

_MOST_NOTES: Final = 20
_MOST_SUBJECTS: Final = 1_000
_STORE: Final = ".cas"


@value
class Ticket:
    """What a reviewer was shown in place of a decision, and now answers."""

    refused: Conflicted | None = None  # None: there was no conflict
    expected: tuple[ExternalChange, ...] = ()
    listed: tuple[tuple[Unit, Status], ...] = ()  # hunks that were listed before, as they were then
    knows_broken: bool = False  # whether it was shown which names the decision breaks
    end: "HistoryEnd | None" = None  # of an undo or redo: where the history ended when it was shown


NO_TICKET: Final = Ticket()
"""Nothing was shown in place of the decision."""


@value
class ShownChange:
    """The change that a key identified when it was sent."""

    units: tuple[Unit, ...]
    together: frozenset[bytes]  # keys of the changes that are decided with it, itself included
    paths: tuple[str, ...]  # of its file, now and in the accepted state
    rows: int  # of its removed and inserted lines


class WayOut(Enum):
    """A way out of a conflict that the page offers, by the name of its field in a request."""

    CASCADE = "cascade"
    KEEP_LINES = "keep_lines"
    MARKERS = "markers"


@value
class DecisionRequest:
    """A decision that the page requests."""

    action: Action
    selection: Selection
    statuses: tuple[tuple[Unit, Status], ...] = ()  # of single hunks, as they were shown
    screen: OnScreen = NOTHING
    reason: str = ""
    way_out: WayOut | None = None  # None: a conflict is refused
    on_external: OnExternal = OnExternal.ABORT
    ticket: str = ""


@dataclass(slots=True, kw_only=True)
class WaitingRejection:
    """A rejection that is made when the agents with running calls have ended their turns."""

    request: DecisionRequest
    units: tuple[Unit, ...]
    names: tuple[str, ...]  # of its files, as they are shown
    session: int  # of the first of these agents; 0: not known
    conversations: tuple[str, ...]
    quiet_since: float  # when no call of these agents was open any more, by the monotonic clock; 0: one is
    tries: int = 0  # how often it failed, for example because of a lock
    is_taken: bool = False  # whether it is being made or cancelled at this moment

    @property
    def words(self) -> str:
        """Return the names of its files for a sentence."""
        return few(self.names or ("a file",), 1)


class RunningCheck:
    """A command that has to succeed before a decision is made."""

    def __init__(self, command: str) -> None:
        self.command: Final = command
        self.stopped: Final = threading.Event()


class ServerState:
    """The state that one server keeps between requests. Safe to use from several threads."""

    def __init__(self, root: str, context: click.Context, elsewhere: "Elsewhere | None" = None) -> None:
        """Serve the workspace at `root`. `context`: the command that was started.

        `elsewhere`: the other store whose mirror that is (None: it is the user's own workspace).
        """
        self.root: Final = root
        self.elsewhere: Final = elsewhere
        self.context: Final = context
        self.lock: Final = threading.Lock()
        """Guards `waiting` and `notes`."""
        self.waiting: Final[dict[int, WaitingRejection]] = {}
        self.notes: Final[list[str]] = []
        """Sentences about rejections that waited and were not made."""
        self.syntax: Final = SyntaxMarks()
        self.renderer: Final = Renderer()
        self.progress: Final = ReviewProgress()
        self._inner: Final = threading.Lock()
        self.changes: Final = Kept[bytes, ShownChange](_MOST_SHOWN)
        """The changes that keys identified when they were sent."""
        self.places: Final = Kept[int, tuple[str, ...]](_MOST_SHOWN)
        """The paths at which the files of documents were last found."""
        self.files: Final = Kept[object, tuple[object, Any]](_MOST_FILES, _MOST_BYTES, lambda _, kept: kept[1].size)
        """Files as they were shown (`views.file_view.ShownFile`), each with what changes if it is shown otherwise."""
        self.subjects: Final = Kept[int, str](_MOST_SUBJECTS)
        """What decisions of the page were on, in words, by their numbers."""
        self._tickets: Final = Kept[str, Ticket](_MOST_TICKETS)
        self._unrecorded: frozenset[int] | None = None  # None: the queue was not read yet
        self._idle: list[Workspace] = []  # open, and used by no request
        self._put_off = self._put_off_before = 0
        self._checks: Final[list[RunningCheck]] = []
        self._number = 0
        self._touched = 0

    @contextmanager
    def workspace(self, *, notes_git: bool = False) -> Iterator[Workspace]:
        """Open the workspace. `notes_git`: first record what git did to its files, if that can be recorded now.

        Raises what Workspace.open raises.
        """
        with Workspace.open(self.root) as workspace:
            workspace.decide_through(Surface.PAGE)
            if notes_git:
                with suppress(CasError, OSError):
                    workspace.note_git()
            yield workspace

    @contextmanager
    def reading(self) -> Iterator[Workspace]:
        """Yield a workspace to a request that only reads: one that an earlier request has left open, if there is one.

        To open the store takes as long as to read a file's changes. Raises what Workspace.open raises.
        """
        with self._inner:
            opened = self._idle.pop() if self._idle else None
        if opened is not None and not opened.is_there:
            opened.close()
            opened = None
        opened = opened or Workspace.open(self.root)
        try:
            yield opened
        except BaseException:
            opened.close()  # perhaps because of what it has open
            raise
        with self._inner:
            self._idle.append(opened)
            spare = self._idle.pop(0) if len(self._idle) > _MOST_IDLE else None
        if spare is not None:
            spare.close()

    def close(self) -> None:
        """End the processes that draw, and close what is open."""
        self.renderer.close()
        self.syntax.close()
        with self._inner:
            idle, self._idle = self._idle, []
        for workspace in idle:
            workspace.close()

    def version(self) -> str:
        """Return a text that changes with every record, every call of an agent, and every waiting rejection."""
        entries = "" if self.elsewhere is None else f"-{self.elsewhere.version()}"
        return f"{store_version(self.root)}-{self._touched}{entries}"

    def touch(self) -> None:
        """Change the version, because the state of this server has changed."""
        with self._inner:
            self._touched += 1

    def read_only(self) -> str:
        """Return a sentence that says why the store can't be written ("": it can)."""
        store = os.path.join(self.root, _STORE)  # noqa: PTH118 -- as everywhere for names on disk
        if os.access(store, os.W_OK | os.X_OK) or not os.path.lexists(store):
            return ""
        why = ""
        with suppress(OSError):
            why = permission_advice(PermissionRefused(_STORE), self.root)
        return visible(f"Nothing can be decided here: the store can't be written. {why}".strip())

    # ---- what was shown

    def ticket(self, shown: Ticket) -> str:
        """Return a new ticket for what is shown now; only the newest hundred are kept."""
        name = secrets.token_urlsafe(16)
        self._tickets.put(name, shown)
        return name

    def shown(self, ticket: str) -> Ticket | None:
        """Return what was shown with a ticket ("": nothing was; None: the ticket is unknown or too old)."""
        return self._tickets.get(ticket) if ticket else NO_TICKET

    def note_places(self, files: "Iterable[FileSummary | NetFile]") -> None:
        """Remember the paths of files, so that one file is found without reading all of them."""
        for file in files:
            self.places.put(file.document, (file.path, file.path_before))

    def note_unrecorded(self, documents: Iterable[int]) -> None:
        """Remember the documents whose files are not in their recorded state."""
        self._unrecorded = frozenset(documents)

    def is_unrecorded(self, document: int, *, otherwise: bool) -> bool:
        """Return whether a document's file was not in its recorded state when the queue was last read.

        `otherwise`: the answer if it was not read yet.
        """
        return otherwise if self._unrecorded is None else document in self._unrecorded

    def may_put_off(self) -> bool:
        """Return whether the queue may leave files for the next request: not if the last one made no progress."""
        return self._put_off != self._put_off_before or not self._put_off

    def note_put_off(self, files: int) -> None:
        """Note how many files the queue has left for the next request, and let pages ask again."""
        with self._inner:
            self._put_off_before, self._put_off = self._put_off, files
        if files:
            self.touch()

    # ---- checks

    @contextmanager
    def checking(self, command: str) -> Iterator[RunningCheck]:
        """List a check while it runs, so that pages show it and can stop it."""
        check = RunningCheck(command)
        with self._inner:
            self._checks.append(check)
        self.touch()
        try:
            yield check
        finally:
            with self._inner:
                self._checks.remove(check)
            self.touch()

    def checks(self) -> list[RunningCheck]:
        """Return the checks that run now."""
        with self._inner:
            return list(self._checks)

    # ---- waiting rejections

    def keep(self, rejection: WaitingRejection) -> int:
        """Keep a rejection until its turn ends, and return its number."""
        with self.lock:
            self._number += 1
            self.waiting[self._number] = rejection
            number = self._number
        self.touch()
        return number

    def take(self, number: int) -> WaitingRejection | None:
        """Reserve a waiting rejection for the caller to settle (None: it is not waiting, or another caller has it).

        It stays in the list until `settle`.
        """
        with self.lock:
            found = self.waiting.get(number)
            if found is None or found.is_taken:
                return None
            found.is_taken = True
            return found

    def settle(self, number: int, *, goes_on: bool = False) -> None:
        """Remove a waiting rejection that was taken, unless it goes on waiting."""
        with self.lock:
            if goes_on:
                self.waiting[number].is_taken = False
            else:
                del self.waiting[number]
        self.touch()

    def all_waiting(self) -> dict[int, WaitingRejection]:
        """Return the waiting rejections by number."""
        with self.lock:
            return dict(self.waiting)

    def note(self, sentence: str) -> None:
        """Keep a sentence for the queue to show; only the newest twenty are kept."""
        with self.lock:
            self.notes.append(sentence)
            del self.notes[:-_MOST_NOTES]
        self.touch()
