"""Run a command in a folder: attached to the terminal, or with the end of its output kept and a limit of time.

A command gets a process group of its own, so that whatever it started ends with it.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from selectors import EVENT_READ, DefaultSelector
from typing import IO, Final

from objstore.values.fastclass import value

__all__ = ["Ran", "ending_on_signals", "run_attached", "run_kept"]

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126
_SIGNALLED: Final = 128
"""What a shell reports: these, and for a signal, its number above this one."""

TAIL: Final = 8_000
"""Bytes of output that are kept: its end, where test runners say what failed."""

_PATIENCE: Final = 2.0
"""Seconds from the request to end until a group is killed."""

_LOOK: Final = 0.1
_FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@value
class Ran:
    """How a command ended."""

    status: int  # as a shell reports it
    tail: bytes = b""  # the end of what it wrote, if that is kept
    is_cut: bool = False  # whether it wrote more than that
    seconds: float = 0.0
    is_over_limit: bool = False  # whether it was ended because of the limit of time


def run_attached(words: Sequence[str], folder: str, environment: Mapping[str, str], held: int) -> Ran:
    """Run a command with this process's own input and output, and signals passed on.

    `held`: an open file that the command keeps open too. On a terminal the command is in the foreground.
    """
    began = time.monotonic()
    with _passing_signals() as begin_passing:
        try:
            process = subprocess.Popen(  # noqa: S603 - the person's own command; no shell
                words, cwd=folder, env=environment, process_group=0, pass_fds=(held,)
            )
        except OSError as error:
            return _not_started(words, error)
        begin_passing(process.pid)
        with _foreground(process.pid):
            status = _awaited(process.pid)
    process.returncode = status
    _kill_group(process.pid)
    return Ran(status=_shell_status(status), seconds=time.monotonic() - began)


def run_kept(
    words: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    held: int,
    *,
    limit: float | None,
    stopped: Callable[[], bool] = lambda: False,
) -> Ran:
    """Run a command without input, and keep the end of its output; end it after `limit` seconds (None: no limit).

    `stopped`: asked ten times a second whether to end it; what it raises ends it too.
    """
    began = time.monotonic()
    output = _Tail()
    is_over = False
    process: subprocess.Popen[bytes] | None = None
    try:
        with _deferred_signals():
            process = subprocess.Popen(  # noqa: S603 - as above
                words,
                cwd=folder,
                env=environment,
                process_group=0,
                pass_fds=(held,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        if process.stdout is not None:  # always, because it is a pipe
            is_over = _read(process, process.stdout, output, _until(began, limit), stopped)
    except OSError as error:
        if process is not None:
            raise
        return _not_started(words, error)
    finally:
        if process is not None:
            _end(process, is_gentle=is_over)
            if process.stdout is not None:
                process.stdout.close()
    return Ran(
        status=_shell_status(process.returncode),
        tail=output.kept,
        is_cut=output.is_cut,
        seconds=time.monotonic() - began,
        is_over_limit=is_over,
    )


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Make a signal that ends this process raise SystemExit instead, so that commands and copies are cleaned up."""

    def end(number: int, _: object) -> None:
        raise SystemExit(_SIGNALLED + number)

    before = [(number, signal.signal(number, end)) for number in (signal.SIGTERM, signal.SIGHUP)]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


# ---- inside


class _Tail:
    """The end of an output."""

    def __init__(self) -> None:
        self.kept = b""
        self.is_cut = False

    def add(self, piece: bytes) -> None:
        whole = self.kept + piece
        self.is_cut = self.is_cut or len(whole) > TAIL
        self.kept = whole[-TAIL:]


def _until(began: float, limit: float | None) -> float:
    return float("inf") if limit is None else began + limit


def _read(
    process: "subprocess.Popen[bytes]", stream: IO[bytes], output: _Tail, until: float, stopped: Callable[[], bool]
) -> bool:
    """Read until the command has ended; return whether the time was over first."""
    os.set_blocking(stream.fileno(), False)
    with DefaultSelector() as selector:
        selector.register(stream, EVENT_READ)
        is_open = True
        while process.poll() is None:
            if stopped():
                return False
            if time.monotonic() > until:
                return True
            if not is_open:
                time.sleep(_LOOK)
            elif selector.select(_LOOK):
                is_open = _drain(stream, output)
                if not is_open:
                    selector.unregister(stream)
        # What it has written before it ended. A process that it left behind may hold the pipe open.
        while is_open and selector.select(0) and time.monotonic() <= until:
            is_open = _drain(stream, output)
    return False


def _drain(stream: IO[bytes], output: _Tail) -> bool:
    """Read what is there; return whether more may come."""
    piece = os.read(stream.fileno(), 1 << 16)
    output.add(piece)
    return bool(piece)


def _end(process: "subprocess.Popen[bytes]", *, is_gentle: bool) -> None:
    """End the command's group: at once, or after it had time to clean up."""
    if is_gentle and process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
    _kill_group(process.pid)
    process.wait()


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _not_started(words: Sequence[str], error: OSError) -> Ran:
    said = f"cas: {words[0]}: {error.strerror or error}\n".encode("utf-8", "surrogateescape")
    return Ran(status=NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE, tail=said)


def _shell_status(status: int) -> int:
    return status if status >= 0 else _SIGNALLED - status


def _awaited(pid: int) -> int:
    """Wait until a process ends; when it is stopped, stop too, and go on with it."""
    while True:
        _, raw = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(raw):
            return os.waitstatus_to_exitcode(raw)
        if os.WSTOPSIG(raw) in {signal.SIGTTIN, signal.SIGTTOU}:
            # It asked for the terminal before it had it.
            os.killpg(pid, signal.SIGCONT)
            time.sleep(_LOOK)
            continue
        own = os.getpgrp()
        _give_terminal(own)
        os.kill(os.getpid(), signal.SIGSTOP)
        _give_terminal(pid)
        os.killpg(pid, signal.SIGCONT)


@contextmanager
def _deferred_signals() -> Iterator[None]:
    """Let signals whose handlers raise wait until a started process is known, so that it can be ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    raising = [number for number in _FORWARDED if callable(signal.getsignal(number))]
    before = [(number, signal.signal(number, lambda number, _: came.append(number))) for number in raising]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)


@contextmanager
def _foreground(group: int) -> Iterator[None]:
    """Give the terminal to a process group, if this process has it, and take it back."""
    if not _has_terminal():
        yield
        return
    _give_terminal(group)
    try:
        yield
    finally:
        _give_terminal(os.getpgrp())


def _has_terminal() -> bool:
    try:
        return sys.stdin is not None and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _give_terminal(group: int) -> None:
    with _ignoring(signal.SIGTTOU), suppress(OSError):
        os.tcsetpgrp(0, group)


@contextmanager
def _ignoring(number: signal.Signals) -> Iterator[None]:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def _passing_signals() -> Iterator[Callable[[int], None]]:
    """Pass signals on to a process group; yield what is to be called with it, once it is known.

    What comes before is passed on then. The second signal that asks it to end kills it.
    """
    group = asked = 0
    early: list[int] = []

    def send(number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL if asked > 1 else number)

    def pass_on(number: int, _: object) -> None:
        nonlocal asked
        asked += number != signal.SIGINT
        if group:
            send(number)
        else:
            early.append(number)

    def begin(started: int) -> None:
        nonlocal group
        group = started
        for number in early:
            send(number)

    before = [(number, signal.signal(number, pass_on)) for number in _FORWARDED]
    try:
        yield begin
    finally:
        for number, handler in before:
            signal.signal(number, handler)
