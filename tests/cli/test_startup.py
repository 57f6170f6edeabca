"""The start of `cas` counts: a command imports what it needs, and no command imports what only others need."""

import subprocess
import sys

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


def test_no_command_imports_the_server(desk: Desk) -> None:
    desk.write("a", b"x\n")
    assert not {"mcp", "mcptools"} & modules_after(desk, "reject", "1")


def test_who_hands_an_event_to_the_helper_imports_next_to_nothing() -> None:
    listing = "import sys; before = set(sys.modules); import cli.entry, cli.errand; print(*set(sys.modules) - before)"
    ran = subprocess.run(
        [sys.executable, "-P", "-c", listing], env=environment({}), capture_output=True, timeout=PATIENCE, check=True
    )
    assert set(ran.stdout.decode().split()) == {"__future__", "_socket", "cli", "cli.entry", "cli.errand"}
