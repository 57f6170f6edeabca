"""Warm starts: processes forked from one that has imported the program, which is most of what a short one does.

What is started so is a process like any other, with files, environment, folder and end of its own; only its imports
were made before it began. Tests of the start itself, and of what else a process inherits, start it cold.

`python -P -m tests.support.fork_server PROGRAM SOCKET` is the process that the others are forked from.
"""

import atexit
import fcntl
import functools
import gc
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, NoReturn

__all__ = [
    "INSTEAD",
    "ForkServer",
    "ForkedProcess",
    "ProcessResult",
    "Start",
    "become",
    "exchanged",
    "forked_program",
    "share_forked_programs",
]

REPOSITORY: Final = Path(__file__).resolve().parents[2]
LAUNCHER: Final = Path(__file__).with_name("process_launcher.py")
PACKAGES: Final = {"cli": ("cli", "objstore"), "mcptools": ("mcptools", "objstore")}
MAINS: Final = {"cli": "cli.shell.entry", "mcptools": "mcptools.server.command"}
INSTEAD: Final = "CAS_TEST_MAIN"
"""Variable that names a module whose `main` a process runs in place of the program's, if it is not to run again."""

SHARED: Final = "EDITLEDGER_FORK_SERVER_{}"
"""Variable that names the socket of a process from which the processes of a program are forked."""

IMPORTED_LATER: Final = {
    "cli": (
        *("rich.console", "filelock", "importlib.metadata", "click._textwrap"),
        *("anyio._backends._asyncio", "uvicorn.lifespan.on"),
    ),
    "mcptools": (
        *("rich.logging", "rich.console", "rich.styled", "rich._export_format", "importlib.readers"),
        *("anyio._backends._asyncio", "filelock"),
    ),
}
"""Modules that the program imports only when it needs them."""

NOT_BEFOREHAND: Final = {
    "cli.commands.demo_script",
    "cli.__main__",
    "mcptools.__main__",
    "mcptools.server.write_descriptions",
}
"""Modules that run when they are imported, or import what only they need."""

PIECE: Final = 1 << 16
ONCE, ON_TERMINAL, REPEATEDLY = b"+", b"t", b"*"
"""What a process is forked for; process_launcher.py asks for the first."""

SIGNALS: Final = sorted(signal.valid_signals())  # asking for them takes as long as for all their handlers
LENGTH: Final = 4  # bytes that say how long a request is


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """How a process ended."""

    status: int  # as subprocess has it: of a signal, its number below 0
    out: bytes
    err: bytes


# ---- who asks


def forked_program(program: str, begun_by: tuple[str, ...] = ()) -> "ForkServer":
    """Return what starts `cli` or `mcptools`, for as long as this process lives.

    `begun_by`: a command that takes something from the process and becomes what the words behind it say; whatever is
    started is without that too.
    """
    return _fork_server(program, begun_by)


@functools.cache  # which tells a default from the same argument
def _fork_server(program: str, begun_by: tuple[str, ...]) -> "ForkServer":
    starter = ForkServer(program, begun_by, None if begun_by else os.environ.get(SHARED.format(program)))
    atexit.register(starter.close)
    return starter


def share_forked_programs() -> None:
    """Have the processes that this one starts fork from the same processes as it does."""
    for program in PACKAGES:
        os.environ[SHARED.format(program)] = forked_program(program).address


class ForkServer:
    """Starts processes of one program."""

    def __init__(self, program: str, begun_by: tuple[str, ...] = (), shared: str | None = None) -> None:
        """Start the process that the others are forked from, by the command that is given.

        `shared`: the socket of one that another process has started.
        """
        self._idle: list[_Worker] = []
        os.register_at_fork(after_in_child=self._idle.clear)
        self._forker = _Forker(program, begun_by) if shared is None else None
        self.address: Final = self._forker.address if self._forker else str(shared)
        self.command: Final = (sys.executable, "-I", "-S", str(LAUNCHER), self.address)
        """What others may run in place of the program: it starts one with its own files, and ends as that does."""

    def close(self) -> None:
        """End it."""
        while self._idle:
            self._idle.pop().close()
        if self._forker:
            self._forker.close()

    def run(
        self,
        words: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        stdin: bytes,
        patience: float,
        is_merged: bool = False,
    ) -> ProcessResult:
        """Run the program with nothing but pipes around it, and wait for its end, but not for ever.

        `is_merged`: standard error is the same pipe as standard output.
        """
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker(self.address)
        asked = _asked_for(words, folder, environment)
        pipes = [os.pipe() for _ in range(3)]
        if is_merged:
            os.dup2(pipes[1][1], pipes[2][1], inheritable=False)
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        deadline = time.monotonic() + patience
        try:
            worker.begin(asked, theirs, deadline)
            out, err = exchanged(stdin, pipes[0][1], pipes[1][0], pipes[2][0], deadline)
            status, is_reusable = worker.ended(deadline)
        except BaseException:
            worker.kill()
            raise
        if is_reusable:
            self._idle.append(worker)
        else:
            worker.close()
        return ProcessResult(status=status, out=out, err=err)

    def start_on_terminal(
        self, words: Sequence[str], *, folder: Path, environment: Mapping[str, str], terminal: int
    ) -> "ForkedProcess":
        """Start the program as the leader of a session, with a terminal in control of it."""
        return ForkedProcess(self.address, ON_TERMINAL, _asked_for(words, folder, environment), [terminal] * 3)

    def start(
        self, words: Sequence[str], *, folder: Path, environment: Mapping[str, str], files: Sequence[int]
    ) -> "ForkedProcess":
        """Start the program with these files as its standard input, output and error."""
        return ForkedProcess(self.address, ONCE, _asked_for(words, folder, environment), files)


class _Forker:
    """The process that the others are forked from."""

    def __init__(self, program: str, begun_by: tuple[str, ...]) -> None:
        """Start it, and return as soon as it can be asked: it answers once it has imported the program."""
        self._folder = TemporaryDirectory(prefix="editledger-warm-")
        self.address: Final = str(Path(self._folder.name, "socket"))
        # Without bytecode it would compile the program again.
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._process = subprocess.Popen(
            [*begun_by, sys.executable, "-P", "-m", "tests.support.fork_server", program, self.address],
            stdin=subprocess.PIPE,  # nothing is written there; its end says that there are no more requests
            stdout=subprocess.PIPE,
            cwd=REPOSITORY,
            env=kept | {"PYTHONPATH": str(REPOSITORY)},
            start_new_session=True,  # Ctrl-C is for the tests, which end it
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._folder.cleanup()


class ForkedProcess:
    """A process that runs the program once."""

    def __init__(self, address: str, kind: bytes, asked: bytes, files: Sequence[int]) -> None:
        """Have it forked, ON_TERMINAL or ONCE, with its standard input, output and error."""
        self._forked = socket.socket(socket.AF_UNIX)  # says the number of the process, and how it ends
        self._forked.connect(address)
        socket.send_fds(self._forked, [kind], files)
        self._forked.sendall(asked)
        self._forked.shutdown(socket.SHUT_WR)
        self.pid: Final = int(_line(self._forked))
        self.returncode: int | None = None  # as subprocess has it; None: not known to have ended

    def poll(self) -> int | None:
        """Return the status if it has ended."""
        try:
            return self.wait(timeout=0.0001)
        except TimeoutError:
            return None

    def wait(self, timeout: float) -> int:
        """Wait for its end, and return the status. Raises TimeoutError."""
        if self.returncode is None:
            self._forked.settimeout(timeout)
            self.returncode = int(_line(self._forked))
            self._forked.close()
        return self.returncode

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(self.pid, signal.SIGKILL)
        self.wait(timeout=60)


def _asked_for(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> bytes:
    """Return how a run is asked for."""
    variables = [f"{name}={value}" for name, value in environment.items()]
    return b"\0".join(map(os.fsencode, [str(folder), str(len(words)), *words, *variables]))


class _Worker:
    """A process that runs the program once or more often."""

    def __init__(self, address: str) -> None:
        """Have it forked."""
        self._channel, theirs = socket.socketpair()
        self._forked = socket.socket(socket.AF_UNIX)  # says the number of the process, and how it ends
        self._forked.connect(address)
        with theirs:
            socket.send_fds(self._forked, [REPEATEDLY], [theirs.fileno()])
        self._pid = int(_line(self._forked))

    def begin(self, asked: bytes, files: Sequence[int], deadline: float) -> None:
        """Begin a run, and close the files that are its standard input, output and error."""
        self._channel.settimeout(_remaining(deadline))
        socket.send_fds(self._channel, [len(asked).to_bytes(LENGTH, "big")], files)
        for fd in files:
            os.close(fd)
        self._channel.sendall(asked)

    def ended(self, deadline: float) -> tuple[int, bool]:
        """Return the status of the run that began, and whether another one may begin. Raises TimeoutError."""
        self._channel.settimeout(_remaining(deadline))
        if received := _line(self._channel):
            status, is_reusable = map(int, received.split())
            return status, bool(is_reusable)
        self._forked.settimeout(_remaining(deadline))
        return int(_line(self._forked)), False  # the process has ended, by a signal or an exception

    def kill(self) -> None:
        """End it at once."""
        os.kill(self._pid, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Let it end."""
        self._channel.close()
        self._forked.close()


def _remaining(deadline: float) -> float:
    """Return the seconds up to a moment, or a short while after it."""
    return max(deadline - time.monotonic(), 0.001)


def _line(connection: socket.socket) -> bytes:
    """Return the line that is sent next, or nothing at the end."""
    received = bytearray()
    while not received.endswith(b"\n"):
        piece = connection.recv(1)  # the next line may have been sent already
        if not piece:
            break
        received += piece
    return bytes(received)


def exchanged(given: bytes, stdin: int, stdout: int, stderr: int, deadline: float) -> tuple[bytes, bytes]:
    """Write to one pipe, and return what comes out of the two others up to their ends. Raises TimeoutError."""
    read = {stdout: bytearray(), stderr: bytearray()}
    left = memoryview(given)
    os.set_blocking(stdin, False)
    opened = {stdin, stdout, stderr}
    try:
        with selectors.PollSelector() as selector:
            for fd in opened:
                selector.register(fd, selectors.EVENT_WRITE if fd == stdin else selectors.EVENT_READ)
            while opened:
                ready = selector.select(_remaining(deadline))
                if not ready:
                    raise TimeoutError
                for key, _ in ready:
                    if key.fd == stdin:
                        left = _written(stdin, left)
                        is_over = not left
                    else:
                        piece = os.read(key.fd, PIECE)
                        read[key.fd] += piece
                        is_over = not piece
                    if is_over:
                        selector.unregister(key.fd)
                        opened.remove(key.fd)
                        os.close(key.fd)
    finally:
        for fd in opened:
            os.close(fd)
    return bytes(read[stdout]), bytes(read[stderr])


def _written(fd: int, content: memoryview) -> memoryview:
    """Write a piece; return what is left, which is nothing where no one reads any more."""
    try:
        return content[os.write(fd, content[:PIECE]) :] if content else content
    except BlockingIOError:
        return content
    except BrokenPipeError:
        return content[:0]


# ---- who is forked from


class Start(NamedTuple):
    """What a process begins with."""

    folder: bytes
    words: list[str]
    environment: dict[bytes, bytes]
    files: list[int]  # standard input, output and error
    leads_session: bool = False  # with the terminal that is its standard input


def main(program: str, address: str) -> int:
    """Import a program, and be it in a child for each that asks, until standard input ends."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(100)
    os.write(1, b"ready\n")
    for package in PACKAGES[program]:
        place = [str(REPOSITORY / package)]
        for found in pkgutil.walk_packages(place, f"{package}."):
            if found.name not in NOT_BEFOREHAND:
                import_module(found.name)
    for name in IMPORTED_LATER[program]:
        import_module(name)
    gc.collect()
    gc.freeze()  # what all have in common is not copied only to be counted
    start = _asked(listener)
    if start is None:
        return 0
    if isinstance(start, socket.socket):
        return _run_repeatedly(program, import_module(MAINS[program]).main, start)
    become(start)
    name = os.environ.pop(INSTEAD, MAINS[program])
    sys.argv = [name, *start.words]
    ended: int | None = import_module(name).main()
    # To take the interpreter apart would cost as much as the command itself: all that it has in common would be copied.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ended or 0)


class _Ended(BaseException):
    """The program has ended the process without flushing anything."""


def _end(status: int) -> NoReturn:
    raise _Ended(status)


def _run_repeatedly(program: str, run: Callable[[], int | None], channel: socket.socket) -> int:
    """Run the program whenever that is asked for, until a run leaves something behind. Raises what a run raises."""
    exit_at_once, thresholds, interrupted = os._exit, gc.get_threshold(), signal.getsignal(signal.SIGINT)
    vars(os)["_exit"] = _end
    null = os.open(os.devnull, os.O_RDWR)
    before = _left_behind()
    while start := _next_start(channel):
        become(start)
        del start.files[:]
        sys.argv = [MAINS[program], *start.words]
        try:
            status = run() or 0
            sys.stdout.flush()
            sys.stderr.flush()
        except _Ended as ended:
            (status,) = ended.args
        for number in range(3):
            os.dup2(null, number)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # what the process would have lost
        gc.enable()
        gc.set_threshold(*thresholds)
        signal.signal(signal.SIGINT, interrupted)  # a hook has one of its own until its process ends
        is_reusable = _left_behind() == before
        channel.sendall(b"%d %d\n" % (status, is_reusable))
        if not is_reusable:
            break
    exit_at_once(0)


def _left_behind() -> tuple[object, ...]:
    """Return what a run may leave in its process."""
    mask = os.umask(0o077)
    os.umask(mask)
    try:
        os.waitpid(-1, os.WNOHANG)
        has_children = True
    except ChildProcessError:
        has_children = False
    handlers = [signal.getsignal(number) for number in SIGNALS]
    files = sorted(os.listdir("/dev/fd"))  # noqa: PTH208 - each is only a number
    return files, handlers, threading.active_count(), has_children, mask


def _next_start(channel: socket.socket) -> Start | None:
    """Return what the next run begins with; None if there is none."""
    length, files, _, _ = socket.recv_fds(channel, LENGTH, 3)
    if not length:
        return None
    received = bytearray()
    while len(received) < int.from_bytes(length, "big"):
        received += channel.recv(PIECE)
    return _parsed(bytes(received), files)


def _asked(listener: socket.socket) -> Start | socket.socket | None:
    """Serve those who ask; return what to begin with in a child, and None at the end, in this process.

    In a child that is to run more than once, return where it is asked to.
    """
    asked: dict[int, socket.socket] = {}  # by child
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with listener, selectors.DefaultSelector() as selector:
        for fd in (0, woken, listener.fileno()):
            selector.register(fd, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in selector.select()}
            if 0 in ready:
                return None
            if woken in ready:
                os.read(woken, PIECE)
                for child in list(asked):
                    ended, status = os.waitpid(child, os.WNOHANG)
                    if ended:
                        _tell(asked.pop(child), os.waitstatus_to_exitcode(status))
            if listener.fileno() in ready:
                connection, _ = listener.accept()
                start = _received_start(connection)
                child = os.fork()
                if child == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for other in (connection, *asked.values()):
                        other.close()
                    os.close(woken)
                    os.close(waking)
                    return start
                if isinstance(start, socket.socket):
                    start.close()
                else:
                    for fd in start.files:
                        os.close(fd)
                with suppress(BrokenPipeError):  # who asked may have gone
                    connection.sendall(b"%d\n" % child)
                asked[child] = connection


def _received_start(connection: socket.socket) -> Start | socket.socket:
    """Return what a process is to begin with, or where it is asked to run."""
    kind, files, _, _ = socket.recv_fds(connection, 1, 3)
    if kind == REPEATEDLY:
        return socket.socket(fileno=files[0])
    received = bytearray()
    while piece := connection.recv(PIECE):
        received += piece
    return _parsed(bytes(received), files)._replace(leads_session=kind == ON_TERMINAL)


def _parsed(received: bytes, files: list[int]) -> Start:
    folder, count, *parts = received.split(b"\0")
    words, variables = parts[: int(count)], parts[int(count) :]
    environment = dict(variable.split(b"=", 1) for variable in variables)
    return Start(folder, [os.fsdecode(word) for word in words], environment, files)


def _tell(connection: socket.socket, status: int) -> None:
    """Tell who asked how the process has ended."""
    with connection, suppress(BrokenPipeError):  # who asked may have gone
        connection.sendall(b"%d\n" % status)


def become(start: Start) -> None:
    """Give this process what it begins with, as the system and the interpreter would."""
    for number, fd in enumerate(start.files):
        os.dup2(fd, number)
        os.close(fd)
    if start.leads_session:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(start.folder)
    os.environb.clear()
    os.environb.update(start.environment)
    time.tzset()
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        old = getattr(sys, name)
        new = open(  # noqa: SIM115 - it stays open as long as the process lives
            number, old.mode, encoding=old.encoding, errors=old.errors, closefd=False
        )
        new.reconfigure(line_buffering=number == 2 or new.isatty())
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
