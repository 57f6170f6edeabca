"""The examples of the pages are run, one after the other, in a real workspace; a page has to tell the truth."""

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from objstore import Call, Operation
from tests.cli.desk import PATIENCE, PROGRAM, SOURCE, Desk, environment

DOCS = Path(SOURCE) / "docs"

FIRST = b"""\
def greet(name):
    return "Hello, " + name


def main():
    import sys

    print(greet(sys.argv[1]))
"""


def hello(desk: Desk) -> None:
    """Record what the page says that the agents have done."""
    desk.write("greet.py", FIRST, conversation="conv_hello")

    def two_hunks(call: Call) -> None:
        second = FIRST.replace(b"(name):", b'(name="world"):').replace(
            b"    print(greet(sys.argv[1]))\n",
            b"    for name in sys.argv[1:]:\n        print(greet(name))\n",
        )
        call.write("greet.py", second, operation=Operation.EDIT)

    desk.call(two_hunks, conversation="conv_hello", tool="edit_file_diff")
    desk.write("NOTES", b"greet more than one\n", conversation="conv_hello")
    desk.edit("greet.py", b'"Hello, " + name', b'f"Hello, {name}!"', conversation="conv_polish")


def notes(desk: Desk) -> None:
    """Record what docs/repair.md says that an agent has done."""
    for content in (b"one\n", b"one\ntwo\n", b"one\ntwo\nthree\n"):
        desk.write("notes.txt", content, conversation="conv_notes")


def examples(page: Path) -> list[tuple[str, str]]:
    """Return every command of the page with what it is said to print."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            found.append((command, shown))
    return found


def pattern_of(shown: str) -> str:
    """Return what matches `shown`, in which `...` stands for anything: alone on a line, for any lines."""
    return "".join(
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
        for line in shown.splitlines()
    )


@pytest.mark.parametrize(("page", "prepare"), [("review.md", hello), ("repair.md", notes)])
def test_the_page_shows_what_happens(desk: Desk, tmp_path: Path, page: str, prepare: Callable[[Desk], None]) -> None:
    prepare(desk)
    program = tmp_path / "bin" / "cas"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n')
    program.chmod(0o755)
    settings = environment({})
    settings["PATH"] = f"{program.parent}:{settings['PATH']}"
    commands = examples(DOCS / page)
    assert len(commands) > 15
    for command, shown in commands:
        ran = subprocess.run(
            ["sh", "-c", command],
            cwd=desk.folder,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
        printed = ran.stdout.decode()
        if not re.fullmatch(pattern_of(shown), printed):
            assert printed == shown, command
