"""Run the examples of the documentation in a real workspace, and compare the output with the page."""

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from objstore import Call, Operation
from tests.support.captures import PAGE, with_captures
from tests.support.command_runner import PATIENCE, SOURCE, CommandRunner, environment, merged_output
from tests.support.earlier_stores import make_earlier
from tests.support.fork_server import forked_program

DOCS = Path(SOURCE) / "docs"
SHELL_SYNTAX = re.compile(r"[|&;<>()$`\\~*?#\n]")
"""What only a shell understands; quotes aside."""

FIRST = b"""\
def greet(name):
    return "Hello, " + name


def main():
    import sys

    print(greet(sys.argv[1]))
"""


def record_greet_edits(runner: CommandRunner) -> None:
    """Record the agents' edits that docs/review.md and docs/transfer.md describe."""
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


def record_notes(runner: CommandRunner) -> None:
    """Record the agent's edits that docs/repair.md describes."""
    for content in (b"one\n", b"one\ntwo\n", b"one\ntwo\nthree\n"):
        runner.write("notes.txt", content, conversation="conv_notes")


def record_drafts(runner: CommandRunner) -> None:
    """Record the agent's edits that docs/retention.md describes."""
    for number in range(1, 7):
        runner.write("notes.txt", b"draft %d\n" % number, conversation="conv_notes")


def record_images(runner: CommandRunner) -> None:
    """Record the agent's edits that docs/large-files.md describes."""
    for content in (b"image 1\n" + bytes(70 << 20), b"image 2\n" + bytes(70 << 20) + b"the end\n"):
        runner.write("disk.img", content, conversation="conv_image")


def write_sources(runner: CommandRunner) -> None:
    """Write the files that docs/snapshots.md describes."""
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


def prepare_nothing(_: CommandRunner) -> None:
    """Prepare nothing: docs/agents.md creates what it needs."""


def examples(page: Path) -> list[tuple[str, str]]:
    """Return every command of a page with the output that the page shows."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            found.append((command, shown))
    return found


def pattern_of(shown: str) -> str:
    """Return a pattern for `shown`, in which `...` matches anything within a line, and alone on a line any lines."""
    return "".join(
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
        for line in shown.splitlines()
    )


FOR_ROOT: Final = re.compile(r"(?m)^Note: What was \w+ belongs to root, as the folder does: .*\n")
"""What only root is shown, about the owners of files: the pages show what other users see."""


def printed_by(command: str, runner: CommandRunner, settings: dict[str, str]) -> str:
    """Return what a command of a page prints."""
    name, *words = shlex.split(command)
    if name == "cas" and not SHELL_SYNTAX.search(command):
        return merged_output(*words, folder=runner.folder)
    by_shell = subprocess.run(
        ["sh", "-c", command],
        cwd=runner.folder,
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
        check=False,
    )
    return by_shell.stdout.decode()


@pytest.mark.parametrize(
    ("page", "prepare"),
    [
        ("review.md", record_greet_edits),
        ("transfer.md", record_greet_edits),
        ("remote.md", record_greet_edits),
        ("repair.md", record_notes),
        ("snapshots.md", write_sources),
        ("retention.md", record_drafts),
        ("large-files.md", record_images),
        ("agents.md", prepare_nothing),
    ],
)
def test_commands_print_what_the_page_shows(
    runner: CommandRunner, tmp_path: Path, page: str, prepare: Callable[[CommandRunner], None]
) -> None:
    prepare(runner)
    program = tmp_path / "bin" / "cas"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(forked_program("cli").command)} "$@"\n')
    program.chmod(0o755)
    settings = environment({})
    settings["PATH"] = f"{program.parent}:{settings['PATH']}"
    settings["HOME"] = str(tmp_path)
    commands = examples(DOCS / page)
    assert len(commands) > 10
    for command, shown in commands:
        if command == "cas store convert":
            make_earlier(runner.folder)
        printed = FOR_ROOT.sub("", printed_by(command, runner, settings))
        if not re.fullmatch(pattern_of(shown), printed):
            assert printed == shown, command


def test_the_tour_shows_what_the_commands_print_now() -> None:
    page = PAGE.read_text()
    assert page.count("<!-- capture: ") == 5
    assert with_captures(page) == page, "`python -m tests.support.captures` writes the captures again"


def test_no_line_of_the_tour_is_wider_than_its_terminal() -> None:
    blocks = re.findall(
        r"^At (\d+)(?: and \d+)? columns:\n\n```text\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) >= 5
    assert [line for width, shown in blocks for line in shown.splitlines() if len(line) > int(width)] == []


def test_each_limit_in_the_table_of_remotes_has_a_test() -> None:
    page = (DOCS / "remote.md").read_text()
    rows = [row for row in page.splitlines() if row.startswith("| ") and row.count(" | ") == 4 and "can't" in row]
    assert len(rows) > 5
    sources = "".join(path.read_text() for path in (Path(SOURCE) / "tests").rglob("test_*.py"))
    left = "test_key_that_was_taken_away_can_do_nothing"
    for row in rows:
        what, *cells = row.strip("| ").split(" | ")
        named = re.findall(r"`(test_\w+)`", row)
        only_who_left = [cell.startswith("can't") for cell in cells] == [False, True, False, False]
        assert named or only_who_left, what
        for name in (*named, left):
            assert f"def {name}(" in sources, name
