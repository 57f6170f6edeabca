"""The demonstration in the browser: an agent goes on editing a copy of real source while `cas web` shows it.

The agent is this process: its tools report to `cas hook` as Claude Code does. The server is the command `cas web`, as a
process of its own, and ends with Ctrl-C, as the demonstration does.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

import click

from cli.commands.demo_script import DECODER, ENCODER, SCANNER, TOOL, Differs, Stage

__all__ = ["run_web"]

_PAUSE: Final = 3.0
"""Seconds between two edits of the agent."""

_AT_WORK: Final = 600.0
"""Seconds after which the agent stops; the server goes on."""

_EDITS_OF_TURN: Final = 4

_BEGIN: Final = (
    (
        "Explain what the decoder and the scanner raise.",
        (
            (DECODER, "class JSONDecodeError", "# Raised for malformed documents: msg, doc and pos say where."),
            (SCANNER, "def py_make_scanner", "# The scanner raises StopIteration at the end of a document."),
        ),
    ),
    (
        "Give the decoder and the encoder error classes of their own.",
        (
            (DECODER, "class JSONDecoder", "class DecoderError(ValueError):\n    pass\n\n"),
            (ENCODER, "class JSONEncoder", "class EncoderError(ValueError):\n    pass\n\n"),
        ),
    ),
)
"""What the agent is asked first, and what it inserts: a file, the beginning of a line, and the lines above it."""

_PLACE: Final = re.compile(r"^(?:def|class) \w+", re.MULTILINE)


def run_web() -> int:
    """Run the demonstration in a temporary folder until Ctrl-C; return its exit status."""
    signal.signal(signal.SIGTERM, _interrupt)
    with tempfile.TemporaryDirectory(prefix="cas-demo-") as folder:
        stage = Stage(Path(os.path.realpath(folder)) / "project")
        server: subprocess.Popen[bytes] | None = None
        try:
            stage.set_up()
            stage.say("The review opens in your browser; the agent works on. Ctrl-C ends both.")
            command = [sys.executable, "-P", "-m", "editledger.cas", "-C", str(stage.root), "web"]
            server = subprocess.Popen(command)  # noqa: S603 -- our own command
            _work(stage, server)
            return server.wait()
        except KeyboardInterrupt:
            click.echo()
            return 0
        except Differs as difference:
            click.secho(f"\nDIFFERS: {difference}", fg="red", err=True)
            return 1
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)  # what is left is quick, and has to be tidied up
            if server is not None:
                _end(server)


def _work(stage: Stage, server: "subprocess.Popen[bytes]") -> None:
    """Let the agent edit, turn by turn, as long as the server runs, but not for ever."""
    until = time.monotonic() + _AT_WORK
    for prompt, edits in _turns(stage):
        stage.turn(prompt)
        for name, beginning, lines in edits:
            time.sleep(_PAUSE)
            if server.poll() is not None or time.monotonic() > until:
                stage.stop()
                return
            # The user may have changed the files meanwhile.
            if f"\n{beginning}" in stage.text(name):
                stage.agent_inserts(name, beginning, lines)
        stage.stop()
    click.echo("  agent  has nothing left to do")


def _turns(stage: Stage) -> Iterator[tuple[str, tuple[tuple[str, str, str], ...]]]:
    """Yield prompts, each with the edits that the agent makes then."""
    yield from _BEGIN
    for name in (TOOL, DECODER, ENCODER, SCANNER):
        places = _PLACE.findall(stage.text(name))
        for at in range(0, len(places), _EDITS_OF_TURN):
            edits = tuple(
                (name, place, f"# TODO: say when to use {place.split()[1]}.")
                for place in places[at : at + _EDITS_OF_TURN]
            )
            yield f"Mark what still needs an explanation in {Path(name).name}.", edits


def _end(server: "subprocess.Popen[bytes]") -> None:
    if server.poll() is None:
        server.terminate()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt
