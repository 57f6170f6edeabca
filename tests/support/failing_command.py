"""Run `cas` where the system fails: `python -P -m tests.support.failing_command` reads commands from standard input.

Each line there is a JSON object: a Run. Each is answered by a line, a Failed. A run is forked from this process, which
has imported everything already, and its n-th write or read of a file fails as the system would have it. What SQLite
reads and writes is not among them.
"""

import errno
import faulthandler
import functools
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import IO, Any, Final

__all__ = ["Failed", "FailingCas", "Run"]

REPOSITORY: Final = Path(__file__).resolve().parents[2]

GROWING: Final = ("write", "pwrite", "posix_fallocate", "mkdir", "rename", "link", "fsync", "fdatasync", "create")
"""Calls that a full disk fails."""

WRITING: Final = (*GROWING, "ftruncate", "replace", "unlink", "rmdir", "remove", "fchmod", "utime")
"""Calls that change something; `create`: an open that may make a file."""

READING: Final = ("open", "read", "pread", "fstat", "stat", "lstat", "scandir", "listdir", "readlink", "statvfs")
"""Calls that look at something."""

READERS: Final = frozenset({"objstore", "cli", "pathlib", "genericpath", "posixpath", "shutil"})
"""The modules whose calls are counted: Python's own imports read files, too."""

PATIENCE: Final = 60
"""Seconds after which a run counts as hung."""

CODES: Final = {"full": errno.ENOSPC, "broken": errno.EIO, "read-only": errno.EROFS, "too many": errno.EMFILE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of `cas`."""

    words: list[str]
    folder: str
    failure: str  # one of CODES
    step: int | None  # the call that fails, and with it all that follow; None: none
    is_once: bool = False  # whether the following ones succeed
    is_reading: bool = False  # whether calls that read fail, instead of those that write
    name: str = ""  # of the files or folders whose calls count, if those of others don't


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """How it ended."""

    status: int
    out: str
    said: str  # on stderr
    failed: str  # the call that failed; "": none did
    calls: int  # that counted


class FailingCas:
    """Runs `cas` where the system fails; one process for many runs."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.support.failing_command"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env={**environment, "PYTHONPATH": str(REPOSITORY)},
        )

    def run(self, run: Run) -> Failed:
        """Return how a run ends."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(run)) + "\n")
        self._process.stdin.flush()
        return Failed(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End it."""
        self._process.communicate()


# ---- in the process that runs them


class _System:
    """Counts calls of the system, and fails one."""

    def __init__(self) -> None:
        self.run: Run | None = None  # None: nothing counts
        self.calls = 0
        self.failed = ""

    def see(self, name: str, path: object) -> None:
        """Count a call. Raises OSError where it is the one that fails, or one behind it."""
        run = self.run
        if run is None or name not in (READING if run.is_reading else GROWING if run.failure == "full" else WRITING):
            return
        if self.failed and run.is_once:
            return
        if run.name and not (isinstance(path, str | bytes) and Path(os.fsdecode(path)).name == run.name):
            return
        self.calls += 1
        if run.step is not None and self.calls > run.step:
            self.failed = self.failed or name
            code = CODES[run.failure]
            raise OSError(code, os.strerror(code), path if isinstance(path, str | bytes) else None)


SYSTEM: Final = _System()


def _failing(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def seen(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 -- whatever the call takes
        counts = name in WRITING or _is_ours(sys._getframe(1).f_globals.get("__name__", ""))  # noqa: SLF001 -- who calls
        if counts and not (arguments and arguments[0] in {1, 2}):  # what is printed is no file
            SYSTEM.see(name, arguments[0] if arguments else None)
        if name in {"fsync", "fdatasync"}:
            return None  # the power stays on
        return call(*arguments, **named)

    return seen


def _opening(call: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(call)
    def seen(path: Any, flags: int, *arguments: Any, **named: Any) -> int:  # noqa: ANN401 -- whatever the call takes
        if flags & os.O_CREAT:
            SYSTEM.see("create", path)
        elif _is_ours(sys._getframe(1).f_globals.get("__name__", "")):  # noqa: SLF001 -- who calls
            SYSTEM.see("open", path)
        return call(path, flags, *arguments, **named)

    return seen


def _is_ours(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] in READERS


def _prepare() -> None:
    """Put what counts in place of the system's calls, and then import all that may make some."""
    for name in {*WRITING, *READING} - {"create", "open"}:
        setattr(os, name, _failing(name, getattr(os, name)))
    os.open = _opening(os.open)
    for package in ("objstore", "cli"):
        for found in walk_packages(import_module(package).__path__, f"{package}."):
            if found.name not in {"cli.__main__", "cli.commands.demo_script"}:
                import_module(found.name)
    gc.collect()
    gc.freeze()  # what all have in common is not copied only to be counted


def _ended(run: Run, out: IO[str], err: IO[str], report: int) -> None:
    """Be a `cas` to its end."""
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.chdir(run.folder)
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    SYSTEM.run = run
    try:
        status = import_module("cli.shell.main").main(run.words)
    finally:
        SYSTEM.run = None
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    os.write(report, json.dumps([status, SYSTEM.failed, SYSTEM.calls]).encode())


def _answer(run: Run) -> Failed:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                _ended(run, out, err, writing)
            finally:
                os._exit(99)
        os.close(writing)
        with os.fdopen(reading, "rb") as report:
            content = report.read()
        os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        status, failed, calls = json.loads(content) if content else (-1, SYSTEM.failed, 0)
        return Failed(status=status, out=out.read(), said=err.read(), failed=failed, calls=calls)


if __name__ == "__main__":
    _prepare()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(asdict(_answer(Run(**json.loads(line))))) + "\n")
        sys.stdout.flush()
