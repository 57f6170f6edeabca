"""The wire: lines between this process and who has started it, over pipes, sockets or a terminal, without a thread.

The event loop itself waits until something can be read or written. The descriptors block, and stay so: whether they do
is a property of what they have open, which the processes at this end share with each other. So one read follows
whenever the loop says that there is something, and one write of a few bytes whenever a poll says that there is room.
"""

import asyncio
import fcntl
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from select import PIPE_BUF, POLLOUT, poll
from threading import Lock
from typing import Final

import anyio

__all__ = ["Wire", "can_be_waited_for", "standard_streams"]

_PIECE: Final = 1 << 16
"""Bytes of one read: as much as a pipe holds."""

_FIRST_FREE: Final = 3
"""The first descriptor that is not one of the standard ones."""


def can_be_waited_for(descriptor: int) -> bool:
    """Return whether this is a pipe, a socket or a terminal. An event loop can't wait for a file, and need not."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:  # it is closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


@contextmanager
def standard_streams() -> Iterator[tuple[int, int]]:
    """Give descriptors of standard input and output that nobody else knows, and put them back afterwards.

    Meanwhile standard input is empty and standard output leads to where errors go, so that nothing that runs here can
    take part of a message, or put a word between two. Raises OSError, with everything as it was.
    """
    with ExitStack() as undoing:
        wires = []
        for descriptor in (0, 1):
            wire = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
            undoing.callback(os.close, wire)
            wires.append(wire)
        for descriptor, wire in enumerate(wires):
            instead = os.open(os.devnull, os.O_RDONLY) if descriptor == 0 else _errors()
            try:
                os.dup2(instead, descriptor)
            finally:
                os.close(instead)
            undoing.callback(os.dup2, wire, descriptor)
        yield wires[0], wires[1]


def _errors() -> int:
    """Return a descriptor of where errors go."""
    try:
        return os.dup(2)
    except OSError:  # it is closed
        return os.open(os.devnull, os.O_WRONLY)


class Wire:
    r"""Lines that come in over one descriptor and go out over another. Of one event loop; only `put` is for threads.

    Lines end in b"\n" alone, as the protocol says: a CR is white space of JSON.
    """

    def __init__(self, reading: int, writing: int) -> None:
        """Take two descriptors that can be waited for; the second may be a file instead, where there is always room."""
        self._loop: Final = asyncio.get_running_loop()
        self._reading: Final = reading
        self._lines: deque[bytes] = deque()
        self._begun: list[bytes] = []  # pieces of the line whose end has not come
        self._has_ended = False
        self._asking: asyncio.Future[None] | None = None  # of who waits for a line
        self._is_listening = False
        self._writing: Final = writing
        self._room: Final = poll()
        self._room.register(writing, POLLOUT)
        self._unsent: deque[memoryview] = deque()
        self._turn: Final = Lock()  # of who writes, or adds to what is unsent
        self._sent: anyio.Event | None = None  # set when nothing is unsent any more; None: nobody waits for that
        self._is_broken = False  # nobody reads what is written

    def close(self) -> None:
        """Wait for nothing any more. The descriptors stay open."""
        self._loop.remove_reader(self._reading)
        self._loop.remove_writer(self._writing)

    # ---- coming in

    async def line(self) -> bytes | None:
        """Return the next line without its end, however long; None: there are no more. For one task at a time."""
        while not self._lines:
            if self._has_ended:
                return None
            await self.rest()
        return self._lines.popleft()

    @property
    def has_more(self) -> bool:
        """Return whether `line` would not have to wait."""
        return bool(self._lines) or self._has_ended

    async def rest(self) -> None:
        """Wait until something comes in, or somebody calls `rouse`. For who found that there is no more."""
        if not self._is_listening:
            self._loop.add_reader(self._reading, self._take)
            self._is_listening = True
        self._asking = self._loop.create_future()
        try:
            await self._asking
        finally:
            self._asking = None

    def rouse(self) -> None:
        """Let whoever waits for a line look at something else."""
        if self._asking is not None and not self._asking.done():
            self._asking.set_result(None)

    def _take(self) -> None:
        """Read what has come, if somebody waits for it; else it stays where it is."""
        if self._asking is None or self._asking.done():
            self._stop_listening()
            return
        try:
            piece = os.read(self._reading, _PIECE)
        except BlockingIOError:  # somebody else has set it so, and was faster
            return
        except OSError:  # who wrote has gone, and what it had not sent is lost
            piece = b""
        if piece:
            self._cut(piece)
        else:
            self._end()
        if self.has_more:
            self.rouse()

    def _cut(self, piece: bytes) -> None:
        """Take the lines that end in a piece of what comes in."""
        *ended, rest = piece.split(b"\n")
        if ended:
            self._lines.extend([b"".join([*self._begun, ended[0]]), *ended[1:]])
            self._begun.clear()
        if rest:
            self._begun.append(rest)

    def _end(self) -> None:
        """Take what has come of a last line for a line; no more comes in."""
        if self._begun:
            self._lines.append(b"".join(self._begun))
            self._begun.clear()
        self._has_ended = True
        self._stop_listening()

    def _stop_listening(self) -> None:
        self._loop.remove_reader(self._reading)
        self._is_listening = False

    # ---- going out

    async def write(self, line: bytes) -> None:
        """Write a line, which has its end, and wait until it is written. It goes out whole, also if that is cancelled.

        Raises anyio.BrokenResourceError if nobody reads any more; then no more lines come in either.
        """
        if not self._is_broken:
            if not self._push(line):
                self._settle()
            await self.written()
        if self._is_broken:
            raise anyio.BrokenResourceError

    def put(self, line: bytes) -> None:
        """Write a line, which has its end, from any thread, as far as there is room; the event loop writes the rest.

        If nobody reads any more, it is dropped.
        """
        if not self._is_broken and not self._push(line):
            self._loop.call_soon_threadsafe(self._settle)

    async def written(self) -> None:
        """Wait until all lines are written, or nobody reads any more."""
        if self._unsent:
            await self._wait_for_room().wait()

    def _push(self, line: bytes) -> bool:
        """Add a line to what is unsent, and write what there is room for. Return whether that was all."""
        with self._turn:
            self._unsent.append(memoryview(line))
            return len(self._unsent) == 1 and self._write_some()

    def _write_some(self) -> bool:
        """Write what there is room for, in one's turn. Return whether that was all; if nobody reads, it was not."""
        try:
            while self._unsent and self._room.poll(0):
                # Where there is room at all there is room for so much, and a write does not block. (On a terminal that
                # nobody shows any more it may, until Ctrl-C throws away what is to be shown.)
                line = self._unsent[0]
                done = os.write(self._writing, line[:PIPE_BUF])
                if done < len(line):
                    self._unsent[0] = line[done:]
                else:
                    self._unsent.popleft()
        except BlockingIOError:  # somebody else has set it so, and was faster
            pass
        except OSError:  # who read has gone
            self._is_broken = True
        return not self._unsent

    def _send(self) -> None:
        """Write what there is room for, on the event loop's thread."""
        with self._turn:
            self._write_some()
        self._settle()

    def _settle(self) -> None:
        """Wait for room if something is unsent, and no longer if not."""
        if self._is_broken:
            self._break()
        if self._unsent:
            self._wait_for_room()
        elif self._sent is not None:
            self._loop.remove_writer(self._writing)
            self._sent.set()
            self._sent = None

    def _wait_for_room(self) -> anyio.Event:
        """Have what is unsent written when there is room. Return what is set then."""
        if self._sent is None:
            self._sent = anyio.Event()
            self._loop.add_writer(self._writing, self._send)
        return self._sent

    def _break(self) -> None:
        """Let nothing more come in: whoever sent it could not be answered."""
        with self._turn:
            self._unsent.clear()
        self._begun.clear()
        self._lines.clear()
        self._end()
        self.rouse()
