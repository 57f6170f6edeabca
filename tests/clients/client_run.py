"""One client at work in a project of its own: its hooks run the real `cas`, and what it tells them is kept."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from objstore import EditFilter, EditView, Origin, Workspace
from tests.clients.programs import Place, Program
from tests.clients.scripted_model import ScriptedModel, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FILES", "WAITING", "ClientRun", "Terminal"]

PATIENCE: Final = 180
"""Seconds after which a client counts as hung."""

PAUSE: Final = 0.05

FILES: Final = {
    "app.py": "version = 1\nname = 'app'\n",
    "README.md": "# app\n\nlicense: MIT\n",
    "setup.cfg": "[app]\nlicense = MIT\n",
    "CHANGES": "one\ntwo\nthree\n",
    "MANIFEST.in": "include README.md\n",
}
"""The project on which a client works."""

RECORDER: Final = """\
#!/bin/sh
# What a client tells its hook is kept, each event in a file.
if [ "$1" = hook ]; then
    event=$(mktemp "{kept}/$(date +%s.%N).XXXXXX")
    cat > "$event"
    exec "{cas}" "$@" < "$event"
fi
exec "{cas}" "$@"
"""

WAITING: Final = "sleep 1; true"
"""What a client's shell runs until our server has started."""

KEPT_FROM_US: Final = ("PATH", "LANG", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
"""Variables of this process that a client gets."""


class Terminal:
    """A terminal with a client on it: what that shows is read, and thrown away."""

    def __init__(self, master: int, process: "subprocess.Popen[str]") -> None:
        self.process: Final = process
        self._master: Final = master
        self._open = True
        self._reader: Final = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._master, text.encode())

    def hang_up(self) -> None:
        """Close it, and wait for the client's end."""
        if self._open:
            self._open = False
            self._reader.join(PATIENCE)
            os.close(self._master)
        self.process.wait(PATIENCE)

    def _read(self) -> None:
        # Output that is not read would block the client; the system says when it has closed its side.
        with suppress(OSError):
            while self._open:
                if select.select([self._master], [], [], PAUSE)[0] and not os.read(self._master, 65536):
                    break


class ClientRun:
    """A home, a project and a program."""

    def __init__(self, program: Program, path: Path, model: ScriptedModel, folder: Path, *, server: bool) -> None:
        """Create the project in a folder that must not exist, and set the client up in it; `server`: ours too."""
        folder.mkdir(parents=True)
        self.program: Final = program
        self.model: Final = model
        self.project: Final = folder / "project"
        self._path: Final = path
        self.home: Final = folder / "home"
        self._kept: Final = folder / "kept"
        self._scripts = 0
        for each in (self.project, self.home, self._kept, folder / "bin"):
            each.mkdir()
        for name, content in FILES.items():
            (self.project / name).write_text(content)
        own = Path(sys.executable).parent
        self._bin = folder / "bin"
        # `cas setup` writes the bare name of a program that leads here from PATH.
        for name in ("cas", "editledger"):
            (self._bin / name).symlink_to(own / name)
        self.cas("setup", program.name, *(["--server"] if server else []))
        (self._bin / "cas").unlink()
        (self._bin / "cas").write_text(RECORDER.format(kept=self._kept, cas=own / "cas"))
        (self._bin / "cas").chmod(0o755)

    # ---- the person

    def cas(self, *words: str) -> str:
        """Run `cas` in the project; return what it printed. Raises subprocess.CalledProcessError."""
        command = Path(sys.executable).with_name("cas")
        environment = self._environment() | {"CAS_PAGER": "cat"}
        ran = subprocess.run(
            [command, *words], cwd=self.project, env=environment, capture_output=True, timeout=PATIENCE, check=True
        )
        return ran.stdout.decode()

    def edits(self) -> list[EditView]:
        """Return all recorded edits."""
        with Workspace.open(self.project) as workspace:
            return workspace.history.edits(EditFilter())

    def authors(self) -> dict[str, list[str]]:
        """Return whose the edits of each file are: "agent", "person", or as their origin says."""
        persons = {Origin.EXTERNAL, Origin.PERSON}
        found: dict[str, list[str]] = {}
        for view in self.edits():
            by = "person" if view.edit.origin in persons else str(view.edit.origin)
            found.setdefault(os.fsdecode(view.edit.path), []).append(by)
        return found

    def turns(self) -> list[tuple[str, int]]:
        """Return the prompt of each turn with edits of an agent, and how many edits it has."""
        with Workspace.open(self.project) as workspace:
            return [(turn.prompt.strip('"'), len(turn.seqs)) for turn in workspace.sessions.turns()]

    def edit_of(self, path: str) -> str:
        """Return the number of the newest edit of a file."""
        return str(max(view.seq for view in self.edits() if os.fsdecode(view.edit.path) == path))

    def running(self) -> list[dict[str, Any]]:
        """Return the calls of agents that a status names."""
        found: list[dict[str, Any]] = json.loads(self.cas("status", "--json"))["running_calls"]
        return found

    def events(self) -> list[dict[str, Any]]:
        """Return the events that the client has passed to its hooks, in order."""
        files = sorted(self._kept.iterdir(), key=lambda file: float(file.name.rpartition(".")[0]))
        return [json.loads(file.read_bytes()) for file in files]

    def doctor(self) -> dict[str, bool]:
        """Return the checks of `cas doctor` with their results."""
        command = [str(Path(sys.executable).with_name("cas")), "doctor", "--json", self.program.name]
        ran = subprocess.run(
            command, cwd=self.project, env=self._environment(), capture_output=True, timeout=PATIENCE, check=False
        )
        return {one["check"]: one["ok"] for one in map(json.loads, ran.stdout.splitlines())}

    def trust(self, program: Program) -> None:
        """Trust the project in the client, as a person does."""
        program.trust(Place(home=self.home, project=self.project, address=""), self._path, self._environment())

    # ---- the client

    def script(self, *steps: Step) -> str:
        """Return the name of a new script for the model."""
        self._scripts += 1
        name = f"{self.program.command}-{id(self)}-{self._scripts}"
        self.model.play(name, *steps, waiting=self.program.shell(WAITING))
        return name

    def work(self, prompt: str, script: str, *, continuing: bool = False, program: Program | None = None) -> str:
        """Let it work on a prompt until its turn is over; return what it printed."""
        with self.begun(prompt, script, continuing=continuing, program=program) as process:
            printed, _ = process.communicate(timeout=PATIENCE)
        for fault in self.model.faults:
            raise fault
        return str(printed)

    @contextmanager
    def begun(
        self,
        prompt: str,
        script: str,
        *,
        continuing: bool = False,
        program: Program | None = None,
        terminal: int | None = None,
    ) -> "Iterator[subprocess.Popen[str]]":
        """Start it; end it at last, with all that it has started."""
        place = Place(home=self.home, project=self.project, address=self.model.address(script))
        program = program or self.program
        environment = self._environment() | program.prepare(place)
        words = [str(self._path), *program.words(prompt, place.address, continuing=continuing)]
        process = subprocess.Popen(
            words if terminal is None else [sys.executable, "-c", LOGIN, *words],
            cwd=self.project,
            env=environment,
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            stdout=subprocess.PIPE if terminal is None else terminal,
            stderr=subprocess.STDOUT if terminal is None else terminal,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @contextmanager
    def begun_on_terminal(self, prompt: str, script: str, program: Program | None = None) -> "Iterator[Terminal]":
        """Start it on a terminal of its own."""
        master, slave = pty.openpty()
        with self.begun(prompt, script, program=program, terminal=slave) as process:
            os.close(slave)
            terminal = Terminal(master, process)
            try:
                yield terminal
            finally:
                terminal.hang_up()

    def git(self, *words: str) -> None:
        """Run git in the project, as a person. Raises subprocess.CalledProcessError."""
        named = ["-c", "user.name=p", "-c", "user.email=p@localhost"]
        command = ["git", *named, *words]
        subprocess.run(command, cwd=self.project, env=self._environment(), capture_output=True, check=True)

    def await_file(self, name: str) -> None:
        """Wait until a tool has written a file of the project."""
        until = time.monotonic() + PATIENCE
        while not (self.project / name).exists():
            if time.monotonic() > until:
                raise TimeoutError(f"{name} was not written")
            time.sleep(PAUSE)

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT_FROM_US if name in os.environ}
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), self.model.proxy)
        local = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        own = {"HOME": str(self.home), "PATH": f"{self._bin}:{kept['PATH']}", "TERM": "xterm", "TZ": "UTC"}
        return kept | proxies | local | own


LOGIN: Final = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
