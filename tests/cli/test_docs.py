"""The examples of the pages are run, one after the other, in a real workspace; a page has to tell the truth."""

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from objstore import Call, Operation
from tests.support.command_runner import PATIENCE, SOURCE, CommandRunner, environment
from tests.support.fork_server import forked_program

DOCS = Path(SOURCE) / "docs"

FIRST = b"""\
def greet(name):
    return "Hello, " + name


def main():
    import sys

    print(greet(sys.argv[1]))
"""


def hello(runner: CommandRunner) -> None:
    """Record what the page says that the agents have done."""
    runner.write("greet.py", FIRST, conversation="conv_hello")

    def two_hunks(call: Call) -> None:
        second = FIRST.replace(b"(name):", b'(name="world"):').replace(
            b"    print(greet(sys.argv[1]))\n",
            b"    for name in sys.argv[1:]:\n        print(greet(name))\n",
        )
        call.write("greet.py", second, operation=Operation.EDIT)

    runner.call(two_hunks, conversation="conv_hello", tool="edit_file_diff")
    runner.write("NOTES", b"greet more than one\n", conversation="conv_hello")
    runner.edit("greet.py", b'"Hello, " + name', b'f"Hello, {name}!"', conversation="conv_polish")


def notes(runner: CommandRunner) -> None:
    """Record what docs/repair.md says that an agent has done."""
    for content in (b"one\n", b"one\ntwo\n", b"one\ntwo\nthree\n"):
        runner.write("notes.txt", content, conversation="conv_notes")


def drafts(runner: CommandRunner) -> None:
    """Record what docs/retention.md says that an agent has done."""
    for number in range(1, 7):
        runner.write("notes.txt", b"draft %d\n" % number, conversation="conv_notes")


def images(runner: CommandRunner) -> None:
    """Record what docs/large-files.md says that an agent has done."""
    for content in (b"image 1\n" + bytes(70 << 20), b"image 2\n" + bytes(70 << 20) + b"the end\n"):
        runner.write("disk.img", content, conversation="conv_image")


def sources(runner: CommandRunner) -> None:
    """Put down what docs/snapshots.md says that there is."""
    for path, content in (
        ("README", b"a small program\n"),
        ("src/greet.py", b'print("hi")\n'),
        ("src/run.sh", b"python greet.py\n"),
        ("src/__pycache__/greet.pyc", b"\0"),
    ):
        file = runner.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (runner.folder / "src/run.sh").chmod(0o755)


def nothing(_: CommandRunner) -> None:
    """docs/agents.md makes what it needs."""


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


@pytest.mark.parametrize(
    ("page", "prepare"),
    [
        ("review.md", hello),
        ("transfer.md", hello),
        ("repair.md", notes),
        ("snapshots.md", sources),
        ("retention.md", drafts),
        ("large-files.md", images),
        ("agents.md", nothing),
    ],
)
def test_the_page_shows_what_happens(
    runner: CommandRunner, tmp_path: Path, page: str, prepare: Callable[[CommandRunner], None]
) -> None:
    prepare(runner)
    program = tmp_path / "bin" / "cas"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(forked_program("cli").command)} "$@"\n')
    program.chmod(0o755)
    settings = environment({})
    settings["PATH"] = f"{program.parent}:{settings['PATH']}"
    commands = examples(DOCS / page)
    assert len(commands) > 10
    for command, shown in commands:
        ran = subprocess.run(
            ["sh", "-c", command],
            cwd=runner.folder,
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
