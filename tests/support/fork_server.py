"""Warm starts: processes forked from one that has imported the program, which is most of what a short one does.

What is started so is a process like any other, with files, environment, folder and end of its own; only its imports
were made before it began. Tests of the start itself, and of what a process inherits beside these, start it cold.

`python -P -m tests.support.fork_server PROGRAM SOCKET` is the process that the others are forked from.
"""

import atexit
import functools
import gc
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

__all__ = ["ForkServer", "ProcessResult", "forked_program"]

REPOSITORY: Final = Path(__file__).resolve().parents[2]
LAUNCHER: Final = Path(__file__).with_name("process_launcher.py")
PACKAGES: Final = {"cli": ("cli", "objstore"), "mcptools": ("mcptools", "objstore")}
MAINS: Final = {"cli": "cli.shell.entry", "mcptools": "mcptools.server.command"}
BESIDE: Final = {"cli": ("rich.console", "filelock", "pathspec"), "mcptools": ("filelock",)}
"""What those import when they need it."""

NOT_BEFOREHAND: Final = {
    "cli.commands.setting_up.demo",
    "cli.__main__",
    "mcptools.__main__",
    "mcptools.server.write_descriptions",
}
"""Modules that run when they are imported, or import what only they need."""

PIECE: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """How a process ended."""

    status: int  # as subprocess has it: of a signal, its number below 0
    out: bytes
    err: bytes


# ---- who asks


@functools.cache
def forked_program(program: str, begun_by: tuple[str, ...] = ()) -> "ForkServer":
    """Return what starts `cli` or `mcptools`, for as long as this process lives.

    `begun_by`: a command that takes something from the process and becomes what the words behind it say; whatever is
    started is without that too.
    """
    starter = ForkServer(program, begun_by)
    atexit.register(starter.close)
    return starter


class ForkServer:
    """Starts processes of one program."""

    def __init__(self, program: str, begun_by: tuple[str, ...] = ()) -> None:
        """Start the process that the others are forked from, by the command that is given."""
        self._folder = TemporaryDirectory(prefix="editledger-warm-")
        self._address = str(Path(self._folder.name, "socket"))
        # Without bytecode it would compile the program anew.
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._process = subprocess.Popen(
            [*begun_by, sys.executable, "-P", "-m", "tests.support.fork_server", program, self._address],
            stdin=subprocess.PIPE,  # nothing is written there; its end tells that nobody asks any more
            stdout=subprocess.PIPE,
            cwd=REPOSITORY,
            env=kept | {"PYTHONPATH": str(REPOSITORY)},
            start_new_session=True,  # Ctrl-C is for the tests, which end it
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        self.command: Final = (sys.executable, "-I", "-S", str(LAUNCHER), self._address)
        """What others may run in place of the program: it starts one with its own files, and ends as that does."""

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._folder.cleanup()

    def run(
        self, words: Sequence[str], *, folder: Path, environment: Mapping[str, str], stdin: bytes, patience: float
    ) -> ProcessResult:
        """Run the program with nothing but pipes around it, and wait for its end, but not for ever."""
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        with socket.socket(socket.AF_UNIX) as connection, ThreadPoolExecutor(3) as beside:
            connection.settimeout(patience)
            connection.connect(self._address)
            socket.send_fds(connection, [b"+"], theirs)
            for fd in theirs:
                os.close(fd)
            written = beside.submit(_write, pipes[0][1], stdin)
            out, err = (beside.submit(_read, pipe) for pipe, _ in pipes[1:])
            variables = [f"{name}={value}" for name, value in environment.items()]
            connection.sendall(b"\0".join(map(os.fsencode, [str(folder), str(len(words)), *words, *variables])))
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as told:
                pid = int(told.readline())
                try:
                    status = int(told.readline())
                except TimeoutError:
                    os.kill(pid, signal.SIGKILL)
                    raise
            written.result()
        return ProcessResult(status=status, out=out.result(), err=err.result())


def _read(fd: int) -> bytes:
    with open(fd, "rb") as pipe:
        return pipe.read()


def _write(fd: int, content: bytes) -> None:
    with suppress(BrokenPipeError), open(fd, "wb") as pipe:
        pipe.write(content)


# ---- who is forked from


class _Start(NamedTuple):
    """What a process begins with."""

    folder: bytes
    words: list[str]
    environment: dict[bytes, bytes]
    files: list[int]  # standard input, output and error


def main(program: str, address: str) -> int:
    """Import a program, and be it in a child for each that asks, until standard input ends."""
    for package in PACKAGES[program]:
        place = [str(REPOSITORY / package)]
        for found in pkgutil.walk_packages(place, f"{package}."):
            if found.name not in NOT_BEFOREHAND:
                import_module(found.name)
    for name in BESIDE[program]:
        import_module(name)
    gc.collect()
    gc.freeze()  # what all have in common is not copied only to be counted
    start = _asked(address)
    if start is None:
        return 0
    _become(start)
    sys.argv = [MAINS[program], *start.words]
    ended: int | None = import_module(MAINS[program]).main()
    # To take the interpreter apart would cost as much as the command itself: all that it has in common would be copied.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ended or 0)


def _asked(address: str) -> _Start | None:
    """Serve those who ask; return what to begin with in a child, and None at the end, in this process."""
    asked: dict[int, socket.socket] = {}  # by child
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(address)
        listener.listen(100)
        for fd in (0, woken, listener.fileno()):
            selector.register(fd, selectors.EVENT_READ)
        os.write(1, b"ready\n")
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
                start = _told(connection)
                child = os.fork()
                if child == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for other in (connection, *asked.values()):
                        other.close()
                    os.close(woken)
                    os.close(waking)
                    return start
                for fd in start.files:
                    os.close(fd)
                connection.sendall(b"%d\n" % child)
                asked[child] = connection


def _told(connection: socket.socket) -> _Start:
    """Return what a process is to begin with."""
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    told = bytearray()
    while piece := connection.recv(PIECE):
        told += piece
    folder, count, *parts = bytes(told).split(b"\0")
    words, variables = parts[: int(count)], parts[int(count) :]
    environment = dict(variable.split(b"=", 1) for variable in variables)
    return _Start(folder, [os.fsdecode(word) for word in words], environment, files)


def _tell(connection: socket.socket, status: int) -> None:
    """Tell who asked how the process has ended."""
    with connection, suppress(BrokenPipeError):  # who asked may have gone
        connection.sendall(b"%d\n" % status)


def _become(start: _Start) -> None:
    """Give this process what it begins with, as the system and the interpreter would."""
    for number, fd in enumerate(start.files):
        os.dup2(fd, number)
        os.close(fd)
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
