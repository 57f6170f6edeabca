"""Run `cas` in a terminal: type keys, and wait for text on the screen."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from tests.support.command_runner import LOGIN, PROGRAM, environment
from tests.support.fork_server import ForkedProcess, forked_program

__all__ = ["TERMINALS", "TerminalDriver", "run_in_terminal"]

SIZE: Final = (100, 40)
"""Columns and lines."""

PATIENCE: Final = 20
"""Seconds to wait for expected text before the terminal counts as hung."""


COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
UNFINISHED: Final = re.compile(r"(\r|\x1b(\[[0-9;]*)?)\Z")
"""What a later piece may complete: the end of a line, or a sequence that sets a colour."""


class TerminalDriver(Protocol):
    """A terminal in which a process runs."""

    def type(self, keys: str) -> None:
        """Press keys, one after the other."""

    def wait_for(self, pattern: str) -> str:
        """Wait until new text on the screen matches the pattern; return the new text up to the end of the match."""

    def kill(self) -> None:
        """Kill the process at once, with no chance to do anything."""

    def signal(self, number: int) -> None:
        """Send the process a signal."""

    def wait_for_exit(self) -> int:
        """Wait for the process to end, and return its status."""

    def is_in_line_mode(self) -> bool:
        """Return whether the terminal echoes keys and passes on whole lines, as it does in a shell."""


class _TerminalBase:
    """Base of both kinds of terminal: waits for new text."""

    def __init__(self) -> None:
        self._seen = 0

    def shown(self) -> str:
        """Return all that the terminal has shown."""
        raise NotImplementedError

    def wait_for(self, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while True:
            new = self.shown()[self._seen :]
            found = re.search(pattern, new)
            if found:
                self._seen += found.end()
                return new[: found.end()]
            assert time.monotonic() < deadline, f"no {pattern!r} in:\n{new}"
            time.sleep(0.01)


class PlainTerminal(_TerminalBase):
    """A pseudo-terminal; keeps everything that was written to it."""

    def __init__(self, words: list[str], folder: Path, settings: dict[str, str], _: Path) -> None:
        super().__init__()
        self._master, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, (SIZE[1], SIZE[0]))
        self._process = self._started(words, folder, settings, terminal)
        os.close(terminal)
        self._decoder = getincrementaldecoder("utf-8")(errors="replace")
        self._unshown = ""  # what may be the beginning of a sequence that is not shown
        self._shown = ""

    def _started(
        self, words: list[str], folder: Path, settings: dict[str, str], terminal: int
    ) -> "ForkedProcess | subprocess.Popen[bytes]":
        return forked_program("cli").start_on_terminal(words, folder=folder, environment=settings, terminal=terminal)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def shown(self) -> str:
        while select.select([self._master], [], [], 0)[0]:
            try:
                piece = os.read(self._master, 65536)
            except OSError:  # Linux: the other side has closed the terminal
                break
            if not piece:
                break
            new = self._unshown + self._decoder.decode(piece)
            end = UNFINISHED.search(new)
            self._unshown = end.group() if end else ""
            self._shown += COLOURS.sub("", new.removesuffix(self._unshown).replace("\r\n", "\n"))
        return self._shown

    def signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(timeout=PATIENCE)

    def wait_for_exit(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while (status := self._process.poll()) is None:
            assert time.monotonic() < deadline, self.shown()
            self.shown()
            time.sleep(0.01)
        return status

    def is_in_line_mode(self) -> bool:
        return _is_in_line_mode(self._master)

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()
        os.close(self._master)


class ColdTerminal(PlainTerminal):
    """A pseudo-terminal whose process inherits what any process does, such as signals that are ignored."""

    def _started(
        self, words: list[str], folder: Path, settings: dict[str, str], terminal: int
    ) -> "ForkedProcess | subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-P", "-c", LOGIN, *PROGRAM, *words],
            cwd=folder,
            env=settings,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )


class TmuxTerminal(_TerminalBase):
    """A window of tmux: a real terminal, of which only the shown text can be read."""

    def __init__(self, words: list[str], folder: Path, settings: dict[str, str], scratch: Path) -> None:
        super().__init__()
        self._status = scratch / "status"
        self._pid = scratch / "pid"
        script = scratch / "run"
        program = " ".join(map(_quoted, [*PROGRAM, *words]))
        # Ctrl-C reaches every process in the window; the shell must survive it to write the status.
        script.write_text(
            f"trap : INT\nsh -c 'echo $$ > {self._pid}; exec \"$@\"' sh {program}\necho $? > {self._status}\nread _\n"
        )
        configuration = scratch / "tmux.conf"
        configuration.write_text("set -g history-limit 100000\n")
        self._tmux = ["tmux", "-S", str(scratch / "tmux"), "-f", str(configuration)]
        size = ["-x", str(SIZE[0]), "-y", str(SIZE[1])]
        self._run("new-session", "-d", *size, "-c", str(folder), "sh", str(script), settings=settings)

    def _run(self, *words: str, settings: dict[str, str] | None = None) -> str:
        ran = subprocess.run(
            [*self._tmux, *words], env=settings, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        return ran.stdout

    def type(self, keys: str) -> None:
        for key in keys:
            named = {"\n": "Enter", "\x03": "C-c", "\x04": "C-d", "\x1a": "C-z", ";": r"\;"}.get(key, key)
            self._run("send-keys", named) if named != key else self._run("send-keys", "-l", key)

    def shown(self) -> str:
        return self._run("capture-pane", "-p", "-J", "-S", "-", "-E", "-").rstrip("\n")

    def signal(self, number: int) -> None:
        os.kill(int(self._pid.read_text()), number)

    def kill(self) -> None:
        os.kill(int(self._pid.read_text()), signal.SIGKILL)
        self.wait_for_exit()

    def wait_for_exit(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while not self._status.exists() or not self._status.read_text().endswith("\n"):
            assert time.monotonic() < deadline, self.shown()
            time.sleep(0.01)
        return int(self._status.read_text())

    def is_in_line_mode(self) -> bool:
        terminal = os.open(self._run("display-message", "-p", "#{pane_tty}").strip(), os.O_RDONLY | os.O_NOCTTY)
        try:
            return _is_in_line_mode(terminal)
        finally:
            os.close(terminal)

    def close(self) -> None:
        self._run("kill-server")


def _is_in_line_mode(terminal: int) -> bool:
    local = termios.tcgetattr(terminal)[3]
    return bool(local & termios.ECHO and local & termios.ICANON)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", r"'\''") + "'"


Kind = Callable[[list[str], Path, dict[str, str], Path], PlainTerminal | TmuxTerminal]

TERMINALS: Final[dict[str, Kind]] = {"plain": PlainTerminal} | ({"tmux": TmuxTerminal} if shutil.which("tmux") else {})
"""The kinds of terminal available on this machine."""

KINDS: Final[dict[str, Kind]] = TERMINALS | {"cold": ColdTerminal}


@contextmanager
def run_in_terminal(kind: str, *words: str, folder: Path, scratch: Path, **settings: str) -> Iterator[TerminalDriver]:
    """Run `cas` in a terminal of that kind."""
    scratch.mkdir(exist_ok=True)
    terminal = KINDS[kind](list(words), folder, environment(settings), scratch)
    try:
        yield terminal
    finally:
        terminal.close()
