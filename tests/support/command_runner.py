"""A workspace to review in: records edits as an agent would, and runs `cas` as a person would."""

import atexit
import functools
import json
import os
import pty
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from objstore import Call, CallInfo, CallOutcome, EditFilter, Operation, Status, TurnInfo, Unit, Workspace
from objstore.disk.fs.reserved_names import STORE_NAME
from tests.support.copied_stores import create_store
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.fork_server import INSTEAD, forked_program

__all__ = [
    "AS_ANYBODY",
    "Answer",
    "CommandResult",
    "CommandRunner",
    "cas",
    "cas_on_full_disk",
    "cas_unprivileged",
    "merged_output",
    "modules_loaded",
    "on_terminal",
    "program_finding",
    "unforked_cas",
    "warm_programs",
    "with_progress",
]

SOURCE: Final = str(Path(__file__).parents[2])
PROGRAM: Final = (sys.executable, "-P", "-m", "cli")
LOGIN: Final = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
PROGRAMS: Final = {"cas": "cli", "editledger": "mcptools"}
"""The package that each program runs."""

WARM_SCRIPTS: Final = Path(__file__).with_name("warm_scripts")

NOWHERE: Final = "/nonexistent"
"""Where there are no settings of whoever runs the tests."""

PATIENCE: Final = 60
"""Seconds after which a process counts as hung."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a process ended."""

    status: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """What it printed."""
        return self.out.decode()

    @property
    def said(self) -> str:
        """What it said on stderr."""
        return self.err.decode()

    def json(self) -> Any:  # noqa: ANN401 -- whatever the document holds
        """Return the one JSON document that it printed."""
        return json.loads(self.out)

    def lines(self) -> list[Any]:
        """Return the JSON objects that it printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


def environment(settings: dict[str, str]) -> dict[str, str]:
    """Return the environment of a process: this one's, without what would change how `cas` behaves."""
    # Without bytecode every process would compile the program again.
    # readline puts a size of its own into the environment of whoever imports it, such as pytest.
    read_by_programs = (
        *("CAS_", "NO_COLOR", "PAGER", "LESS", "TERM", "COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE"),
        *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "CLAUDE_PROJECT_DIR"),
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(read_by_programs)}
    return kept | {"PYTHONPATH": SOURCE, "XDG_CONFIG_HOME": NOWHERE, "TERM": "xterm", "TZ": "UTC"} | settings


def cas(*words: str, folder: Path, settings: dict[str, str] | None = None, stdin: bytes = b"") -> CommandResult:
    """Run `cas` in `folder` with nothing but pipes around it. The programs that its doctor runs start warm."""
    warm = warm_programs() if words[:1] == ("doctor",) else {}
    return _started((), words, folder, warm | (settings or {}), stdin)


def warm_programs(*names: str) -> dict[str, str]:
    """Return the variables with which the programs that a doctor runs start warm, or only those that are named."""
    warm = {name: forked_program(package).command for name, package in PROGRAMS.items() if name in (names or PROGRAMS)}
    return {
        "CAS_TEST_WARM": "\n\n".join("\n".join((name, *command)) for name, command in warm.items()),
        "PYTHONPATH": os.pathsep.join((str(WARM_SCRIPTS), SOURCE)),
    }


def merged_output(*words: str, folder: Path) -> str:
    """Run `cas` in `folder`, and return what it printed and what it said on stderr, in their order in one pipe."""
    return _started((), words, folder, {}, is_merged=True).text


def _started(
    begun_by: tuple[str, ...],
    words: Sequence[str],
    folder: Path,
    settings: dict[str, str],
    stdin: bytes = b"",
    *,
    is_merged: bool = False,
) -> CommandResult:
    ran = forked_program("cli", begun_by).run(
        words,
        folder=folder,
        environment=environment(settings),
        stdin=stdin,
        patience=PATIENCE,
        is_merged=is_merged,
    )
    return CommandResult(status=ran.status, out=ran.out, err=ran.err)


def program_finding(place: Path) -> tuple[str, ...]:
    """Return a program that is `cas`, but for its search: it finds the packages in a folder before all others."""
    start = "import sys; sys.path.insert(0, {!r}); from cli.shell.entry import main; sys.exit(main())"
    return (sys.executable, "-P", "-c", start.format(str(place)))


def unforked_cas(
    *words: str,
    folder: Path,
    settings: dict[str, str] | None = None,
    stdin: bytes = b"",
    program: tuple[str, ...] = PROGRAM,
) -> CommandResult:
    """Run `cas` with all that its start does: slower, and for tests of which that is a part."""
    ran = subprocess.run(
        [*program, *words],
        cwd=folder,
        env=environment(settings or {}),
        input=stdin,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    return CommandResult(status=ran.returncode, out=ran.stdout, err=ran.stderr)


def modules_loaded(*words: str, folder: Path) -> set[str]:
    """Run `cas`, which must succeed; return the names of the modules that it imports: its user waits for each."""
    ran = unforked_cas(*words, folder=folder, settings={"PYTHONPROFILEIMPORTTIME": "1"})
    assert ran.status == 0, ran.said
    return {line.rpartition("|")[2].strip() for line in ran.err.decode().splitlines()}


# The superuser may read and write everything: dropping CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH (by PR_CAPBSET_DROP)
# takes that from what is started next.
ANYBODY: Final = """
import ctypes, os, sys
if os.geteuid() == 0 and any(ctypes.CDLL(None).prctl(24, number, 0, 0, 0) for number in (1, 2)):
    sys.exit("the superuser's rights can't be dropped")
os.execv(sys.argv[1], sys.argv[1:])
"""


AS_ANYBODY: Final = (sys.executable, "-c", ANYBODY)
"""The command that begins a process with no more rights to the files than their modes give."""


LIMITED: Final = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
os.execv(sys.argv[1], sys.argv[1:])
"""


def cas_unprivileged(*words: str, folder: Path, stdin: bytes = b"") -> CommandResult:
    """Run `cas` with no more rights to the files than their modes give."""
    return _started(AS_ANYBODY, words, folder, {}, stdin)


def cas_on_full_disk(*words: str, folder: Path, stdin: bytes = b"") -> CommandResult:
    """Run `cas` where no file may grow: every write to one fails, as on a full disk."""
    return _started((sys.executable, "-c", LIMITED), words, folder, {}, stdin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is typed on a terminal once it shows a text."""

    after: str  # "": at once
    typed: Callable[[], str]


def on_terminal(
    words: Sequence[str], *answers: Answer, folder: Path, settings: dict[str, str] | None = None
) -> tuple[int, str]:
    """Run `cas` on a terminal of its own, answer it, and return its exit status and all that the terminal showed."""
    master, terminal = pty.openpty()
    # A session of its own, with the terminal in control of it: Ctrl-C typed there interrupts the process.
    process = forked_program("cli").start_on_terminal(
        words,
        folder=folder,
        environment=environment({"PAGER": "cat", "COLUMNS": "120"} | (settings or {})),
        terminal=terminal,
    )
    os.close(terminal)
    try:
        shown = _answered(master, answers)
        status = process.wait(PATIENCE)
    except BaseException:
        process.kill()  # else what hangs would go on
        raise
    os.close(master)
    return status, shown.decode(errors="replace").replace("\r\n", "\n")


def with_progress(*words: str, folder: Path, patience: float) -> tuple[bytes, bytes]:
    """Run `cas` where only stderr is a terminal, so that it reports its progress after `patience` seconds.

    Returns what it printed, and what the terminal was sent.
    """
    master, terminal = pty.openpty()
    ran = subprocess.run(
        [*forked_program("cli").command, str(patience), *words],
        cwd=folder,
        env=environment({INSTEAD: "tests.support.impatient_command"}),
        stdout=subprocess.PIPE,
        stderr=terminal,
        timeout=PATIENCE,
        check=True,
    )
    os.close(terminal)
    shown = bytearray()
    # To the end: what was written last may come a moment later, though its writer has ended.
    with suppress(OSError):  # Linux: the other side has closed the terminal
        while piece := os.read(master, 65536):
            shown += piece
    os.close(master)
    return ran.stdout, bytes(shown)


@functools.cache
def _prepared(prepare: Callable[["CommandRunner"], object]) -> Path:
    """Return a workspace that `prepare` has made, for as long as this process lives."""
    folder = TemporaryDirectory(prefix="editledger-prepared-")
    atexit.register(folder.cleanup)
    made = Path(folder.name, "ws")
    made.mkdir()
    prepare(CommandRunner(made))
    return made


def _answered(master: int, answers: Sequence[Answer]) -> bytes:
    """Answer what asks on a terminal, and return all that the terminal showed."""
    shown, left = bytearray(), list(answers)
    while True:
        if left and left[0].after.encode() in shown:
            os.write(master, left.pop(0).typed().encode())
        assert select.select([master], [], [], PATIENCE)[0], shown
        try:
            piece = os.read(master, 65536)
        except OSError:  # Linux: the other side has closed the terminal
            piece = b""
        if not piece:
            return bytes(shown)
        shown += piece


class CommandRunner:
    """A workspace in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        create_store(folder)

    def prepared(self, prepare: Callable[["CommandRunner"], object]) -> "CommandRunner":
        """Give this new workspace what `prepare` makes of a new one: a copy, as it is made once by a process."""
        made = _prepared(prepare)
        shutil.rmtree(self.folder / STORE_NAME)
        shutil.copytree(made, self.folder, symlinks=True, dirs_exist_ok=True)
        return self

    # ---- the agent

    def call(
        self,
        change: Callable[[Call], None],
        *,
        conversation: str = "conv_one",
        tool: str = "write_file",
        turn: TurnInfo | None = None,
    ) -> CallOutcome:
        """Record one tracked call."""
        with self.workspace() as workspace:
            info = CallInfo(tool=tool, conversation=conversation, turn=turn)
            with workspace.call(info) as call:
                change(call)
                return call.commit()

    def write(self, path: str, content: bytes, *, conversation: str = "conv_one", mode: int | None = None) -> int:
        """Record a write of a whole file and return the number of the edit."""
        outcome = self.call(lambda call: call.write(path, content, mode=mode), conversation=conversation)
        return outcome.edits[0].seq

    def edit(self, path: str, old: bytes, new: bytes, *, conversation: str = "conv_one") -> int:
        """Record the replacement of some text and return the number of the edit."""

        def change(call: Call) -> None:
            content = call.read(path).bytes
            assert content.count(old) == 1, (path, old)
            call.write(path, content.replace(old, new), operation=Operation.EDIT)

        return self.call(change, conversation=conversation, tool="edit_file_diff").edits[0].seq

    def move(self, source: str, destination: str) -> int:
        """Record a move and return the number of the edit."""
        return self.call(lambda call: call.move(source, destination), tool="move_file").edits[0].seq

    def delete(self, path: str) -> int:
        """Record a deletion and return the number of the edit."""
        return self.call(lambda call: call.delete(path), tool="delete_file").edits[0].seq

    # ---- the person

    def cas(self, *words: str, **settings: str) -> CommandResult:
        """Run `cas` here; `settings` are added to its environment."""
        return cas(*words, folder=self.folder, settings=settings)

    def done(self, *words: str, **settings: str) -> CommandResult:
        """Run `cas` here and return how it ended, which must be well."""
        ran = self.cas(*words, **settings)
        assert (ran.status, ran.said) == (0, ""), ran
        return ran

    def typed(self, *words: str, typed: str = "", **settings: str) -> tuple[int, str]:
        """Run `cas` here on a terminal where something has been typed already."""
        return on_terminal(words, Answer(after="", typed=lambda: typed), folder=self.folder, settings=settings)

    def typed_at(self, question: str, typed: Callable[[], str], *words: str) -> tuple[int, str]:
        """Run `cas` here on a terminal, and type once it asks."""
        return on_terminal(words, Answer(after=question, typed=typed), folder=self.folder)

    # ---- what is so

    def workspace(self) -> Workspace:
        """Open the workspace."""
        return Workspace.open(self.folder, UnsyncedDisk())

    def bytes(self, path: str) -> bytes:
        """Return a file's bytes."""
        return (self.folder / path).read_bytes()

    def statuses(self) -> dict[str, Status]:
        """Return the status of every hunk, and of every edit's whole-file part where it has one."""
        with self.workspace() as workspace:
            return {
                str(Unit(view.seq, hunk)): status
                for view in workspace.history.edits(EditFilter())
                for hunk, status in enumerate(view.units)
                if hunk or view.whole
            }
