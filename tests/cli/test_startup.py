"""The start of `cas` counts: a command imports what it needs, and no command imports what only others need."""

import subprocess
import sys
from typing import Final

import pytest

from tests.cli.desk import PATIENCE, Desk, environment

LISTING = """
import sys
from cli.main import main
status = main(sys.argv[1:])
sys.stdout.flush()
print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
sys.exit(status)
"""


def modules_after(desk: Desk, *words: str) -> set[str]:
    """Return the names of all modules that a command has imported by its end."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", LISTING, *words],
        cwd=desk.folder,
        env=environment({}),
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    return set(ran.stderr.decode().splitlines())


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["log"],
        ["status", "--json"],
        ["--version"],
        ["ls"],
        ["blame", "a"],
        ["records"],
        ["stats"],
        ["verify", "--all"],
        ["fsck"],
    ],
)
def test_reading_imports_neither_the_server_nor_what_only_writers_need(desk: Desk, words: list[str]) -> None:
    desk.write("a", b"x\n")
    desk.write("b", b"x\n")
    heavy = {"mcp", "rich", "pathspec", "filelock", "unidiff", "asyncio", "pydantic", "mcptools"}
    assert heavy & modules_after(desk, *words) == set()


def test_status_imports_no_other_command(desk: Desk) -> None:
    ours = {name for name in modules_after(desk, "status") if name.startswith("cli.")}
    assert ours == {
        "cli.commands",
        "cli.commands.status",
        "cli.invocation",
        "cli.main",
        "cli.overview",
        "cli.terminal",
    }


PLAIN: Final = """
import sys
from cli.plainstatus import plain_status
assert plain_status(["-C", sys.argv[1], "status"]) == 0
print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
"""


def test_a_plain_status_that_finds_a_change_imports_nothing_that_takes_long(desk: Desk) -> None:
    desk.write("a", b"x\n")
    (desk.folder / "a").write_bytes(b"y\n")
    ran = subprocess.run(
        [sys.executable, "-P", "-c", PLAIN, str(desk.folder)],
        env=environment({}),
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert b"changed outside" in ran.stdout
    slow = {"typing", "re", "datetime", "sqlite3", "threading", "ctypes", "array", "pathlib", "dataclasses", "click"}
    slow |= {"unicodedata", "contextlib", "enum"}
    assert slow & set(ran.stderr.decode().splitlines()) == set()


def test_no_command_imports_the_server(desk: Desk) -> None:
    desk.write("a", b"x\n")
    assert not {"mcp", "mcptools"} & modules_after(desk, "reject", "1")
