"""The command `cas watch`: record edits as they happen, for editors and agents that report none."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import click

from cli.app.invocation import Invocation, Number, agent_option, command, recorded_text, reviewer
from cli.screen.terminal import Screen, flush, shown_name, visible, write
from cli.search.candidates import conversation_option

if TYPE_CHECKING:
    from objstore import CallInfo, EditView, Workspace

__all__ = ["watch"]

_LONGEST_BURST: Final = 10
"""A batch that doesn't end is recorded after this many times the quiet time."""

_FIRST_REST: Final = 1.0
_LONGEST_REST: Final = 60.0
"""Longest pause in seconds before a failed recording is tried again; the pause doubles each time."""

_STORE: Final = ".cas"
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_KILLED: Final = 128
"""Number that a shell adds to the signal that ended a process."""


@command("watch")
@agent_option
@conversation_option("Conversation to record the edits under.", callback=recorded_text)
@click.option(
    "--quiet-for",
    type=Number(50, 60_000),
    default=400,
    show_default=True,
    metavar="MS",
    help="Quiet time after which the changes before it are recorded as one call.",
)
def watch(*, agent: str, conversation: str, quiet_for: int) -> None:
    """Record edits as they happen, until interrupted: edits of one batch become one call.

    They are yours, and so accepted, unless you pass --agent or the hook of an agent reports that one of its tools is
    running. Where hooks or our server report each tool, you don't need to watch.
    """
    from cli.commands.watch_batches import change_batches
    from objstore import CallInfo, Origin

    invocation = Invocation.current()
    screen = invocation.screen()
    notes = {"agent": agent} if agent else {"who": reviewer()}
    info = CallInfo(
        tool="watch", conversation=conversation, origin=Origin.AGENT if agent else Origin.PERSON, notes=notes
    )
    with invocation.workspace() as workspace, _ending_once() as ending:
        root = os.path.realpath(workspace.root)
        watched = _Watched(workspace, info, screen, quiet=quiet_for / 1000)
        watches = False
        for has_happened in change_batches(root, _STORE, quiet=quiet_for, ending=ending, left_out=_tell_of_limit):
            if not watches:
                watched.begin()
                ending.hold()
                write([screen.line(f"Watching {shown_name(root)}. Press Ctrl-C to stop.")])
                flush()
                watches = True
            elif has_happened:
                watched.note_event()
            watched.record_when_due()
        # A batch that has not ended yet, or that was not reported so far.
        watched.record()
    if ending.number == signal.SIGINT:
        raise KeyboardInterrupt
    click.get_current_context().exit(_KILLED + ending.number)


def _tell_of_limit(folders: int) -> None:
    from objstore import counted

    said = f"{counted(folders, 'folder')} can't be watched: the system limit is reached (fs.inotify.max_user_watches)"
    click.echo(
        f"cas: {said}. Changes there are recorded with the next change elsewhere, or when watching stops.", err=True
    )


class _Ending:
    """Handle termination signals: the first one is noted, so that pending changes are recorded; a second one kills."""

    def __init__(self) -> None:
        self.number = 0
        self._before: Final[dict[signal.Signals, Any]] = {}

    def is_set(self) -> bool:
        """Return whether to stop watching."""
        return self.number != 0

    def hold(self) -> None:
        """Start to note signals."""
        for number in _ENDING:
            # Signals that were ignored, as under nohup, stay ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)

    def release(self) -> None:
        """Restore the signals' previous effect."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.number = number
        for each in self._before:
            signal.signal(each, signal.SIG_DFL)


@contextmanager
def _ending_once() -> Iterator[_Ending]:
    ending = _Ending()
    try:
        yield ending
    finally:
        ending.release()


class _Watched:
    """A workspace that is watched: changes are recorded when it goes quiet, or later if that fails."""

    def __init__(self, workspace: "Workspace", info: "CallInfo", screen: Screen, *, quiet: float) -> None:
        self._workspace: Final = workspace
        self._info: Final = info
        self._screen: Final = screen
        self._quiet: Final = quiet
        self._due: float | None = None  # None: nothing has happened
        self._latest = 0.0  # when a batch that continues is recorded anyway
        self._rest = 0.0  # seconds until the next try; 0: the last one succeeded
        self._said = ""  # why the last try failed
        self._unseen: Final[set[str]] = set()  # paths that were already reported as unreadable

    def begin(self) -> None:
        """Record what changed before the watch began; it counts as no one's edit. Raises what the store raises."""
        from objstore import CallInfo, Origin

        self._found(CallInfo(tool="", origin=Origin.EXTERNAL))

    def note_event(self) -> None:
        """Note that something changed."""
        moment = time.monotonic()
        if self._due is None:
            self._latest = moment + _LONGEST_BURST * self._quiet
        if not self._rest:
            self._due = min(moment + self._quiet, self._latest)

    def record_when_due(self) -> None:
        """Record the changes if the workspace has gone quiet. Raises as `record`."""
        if self._due is not None and time.monotonic() >= self._due:
            self.record()

    def record(self) -> None:
        """Scan once, and write a line for each edit; report a failure that may go away, and try again later.

        Raises what the store raises for permanent failures, and OutputFailed.
        """
        from objstore import CallAborted, CasError, DiskFailed, PathError, StoreLocked, StoreRefuses, Unacknowledged

        passing = (CallAborted, DiskFailed, PathError, StoreLocked, StoreRefuses, Unacknowledged)
        try:
            self._workspace.reopen()  # if the last try could not be made durable
            lines = list(self._lines())
        except (CasError, OSError) as error:
            is_there = os.path.isdir(os.path.join(self._workspace.root, _STORE))  # noqa: PTH112, PTH118 - as above
            if not (is_there and isinstance(error, (*passing, OSError))):
                raise
            self._rest = min(2 * self._rest, _LONGEST_REST) or _FIRST_REST
            self._due = time.monotonic() + self._rest
            if str(error) != self._said:
                self._said = str(error)
                click.echo(f"cas: {visible(self._said)}\nChanges will be recorded when this works again.", err=True)
            return
        self._due, self._rest, self._said = None, 0.0, ""
        write(lines)
        flush()

    def _lines(self) -> Iterator[bytes]:
        from cli.render.rows import Rows

        rows = Rows(self._workspace, self._screen)
        for view in self._found(self._info):
            yield from rows.of(view)

    def _found(self, info: "CallInfo") -> "tuple[EditView, ...]":
        """Scan once, report each unreadable path once, and return the edits."""
        from cli.render.unreadable import not_looked_at

        found = self._workspace.hooks.notice(info)
        for said in map(not_looked_at, found.skipped):
            if said not in self._unseen:
                self._unseen.add(said)
                click.echo(said, err=True)
        return found.edits
