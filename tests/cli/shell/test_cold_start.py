"""Every command works where nothing was imported for it: most other tests start it warm."""

import json
from typing import Final

from cli.shell.main import COMMANDS
from tests.cli.app.test_read_only_store import READING
from tests.support.command_runner import CommandRunner, unforked_cas
from tests.support.hooked_agents import ClaudeCode

IN_TURN: Final = (
    ("init",),
    ("accept", "1"),
    ("reject", "2"),
    ("reset", "1"),
    ("undo",),
    ("redo",),
    ("restore", "a@2"),
    ("amend", "1", "--from", "{folder}/.new"),
    ("snapshot", "create", "-m", "here"),
    ("snapshot", "restore", "1"),
    ("record",),
    ("pin", "add", "1"),
    ("export", "--patch"),
    ("export", "--bundle", "{folder}/../bundle"),
    ("import", "{folder}/../bundle", "{folder}/../copy"),
    ("gc", "--older-than", "0s"),
    ("purge", "a", "--force"),
    ("hash", "a"),
    ("config", "list"),
    ("completion", "bash"),
    ("setup", "claude-code", "--dry-run"),
)
"""Commands that change something, or need no store."""

ELSEWHERE: Final = {"review", "watch", "mcp", "demo"}
"""Those that are always started cold."""

BELOW: Final = {"hook", "doctor"}


def test_every_command_is_started_cold_somewhere() -> None:
    assert {words[0] for words in (*READING, *IN_TURN)} | ELSEWHERE | BELOW == set(COMMANDS)


def test_each_command_imports_what_it_needs(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    runner.write("a", b"1\n2\n")
    (runner.folder / ".new").write_bytes(b"1\n3\n")
    for words in IN_TURN:
        ran = unforked_cas(*(word.format(folder=runner.folder) for word in words), folder=runner.folder)
        assert (ran.status, ran.said) == (0, ""), (words, ran)


def test_the_doctor_imports_what_it_needs(runner: CommandRunner) -> None:
    ran = unforked_cas("doctor", folder=runner.folder)
    assert ran.said == ""
    assert "hooks had no errors" in ran.text  # what else it finds depends on where it was installed


def test_a_hook_imports_what_it_needs(runner: CommandRunner) -> None:
    session = ClaudeCode(runner.folder)
    for before in (True, False):
        event = json.dumps(session.write_event("a", "new\n", before=before)).encode()
        ran = unforked_cas("hook", "claude-code", folder=runner.folder, stdin=event)
        assert (ran.status, ran.said) == (0, ""), ran
        (runner.folder / "a").write_text("new\n")
    assert [str(unit) for unit in runner.statuses()] == ["1:0"]
