"""Every command works in a process that has imported nothing: most other tests start commands warm."""

import json
from typing import Final

from cli.shell.main import COMMANDS
from objstore import TurnInfo
from tests.cli.app.test_read_only_store import READING_COMMANDS
from tests.support.command_runner import CommandRunner, unforked_cas
from tests.support.hooked_agents import ClaudeCode

COMMANDS_IN_ORDER: Final = (
    ("init",),
    ("accept", "1"),
    ("reject", "2"),
    ("reset", "1"),
    ("undo",),
    ("redo",),
    ("restore", "a@2"),
    ("amend", "1", "--from", "{folder}/.new"),
    ("comment", "1", "-m", "why?"),
    ("send",),
    ("snapshot", "create", "-m", "here"),
    ("snapshot", "restore", "1"),
    ("record",),
    ("rewind",),
    ("try", "true"),
    ("bisect", "--", "sh", "-c", "! test -e a"),
    ("claim", "--all", "--mine"),
    ("pin", "add", "1"),
    ("export", "--patch"),
    ("export", "--bundle", "{folder}/../bundle"),
    ("import", "{folder}/../bundle", "{folder}/../copy"),
    ("remote", "add", "team", "file://{folder}.bucket"),
    ("push",),
    ("pull",),
    ("clone", "file://{folder}.bucket", "{folder}/../clone"),
    ("gc", "--older-than", "0s"),
    ("purge", "a", ".new", "--yes"),
    ("hash", "a"),
    ("config", "list"),
    ("completion", "bash"),
    ("setup", "claude-code", "--dry-run"),
)
"""Commands that change something or need no store, in the order in which they are run."""

COLD_IN_OTHER_TESTS: Final = {"review", "watch", "mcp", "demo"}
"""Commands that every test starts cold."""

WITH_TESTS_OF_THEIR_OWN: Final = {"hook", "doctor", "web"}
OTHER_NAMES: Final = {"store", "reopen"}
"""Names under which other commands of this list are found as well."""

TAKE_LONG: Final = frozenset(
    {"click", "ctypes", "dataclasses", "hashlib", "pathlib", "subprocess", "threading", "tokenize", "unicodedata"}
)
"""Modules that take 1 to 10 ms to import, and that no usual event needs."""


def test_every_command_is_started_cold_by_some_test() -> None:
    assert {
        words[0] for words in (*READING_COMMANDS, *COMMANDS_IN_ORDER)
    } | COLD_IN_OTHER_TESTS | WITH_TESTS_OF_THEIR_OWN | OTHER_NAMES == set(COMMANDS)


def test_each_command_imports_what_it_needs(runner: CommandRunner) -> None:
    runner.write("a", b"1\n")
    turn = TurnInfo(session="one", began=1, prompt="Write 2")
    runner.call(lambda call: call.write("a", b"1\n2\n"), turn=turn)
    (runner.folder / ".new").write_bytes(b"1\n3\n")
    for words in COMMANDS_IN_ORDER:
        ran = unforked_cas(*(word.format(folder=runner.folder) for word in words), folder=runner.folder)
        assert (ran.status, ran.said) == (0, ""), (words, ran)


def test_the_doctor_imports_what_it_needs(runner: CommandRunner) -> None:
    ran = unforked_cas("doctor", folder=runner.folder)
    assert ran.said == ""
    assert "errors of hooks" in ran.text  # its other findings depend on the installation


def test_a_hook_imports_what_it_needs(runner: CommandRunner) -> None:
    session = ClaudeCode(runner.folder)
    for before in (True, False):
        event = json.dumps(session.write_event("a", "new\n", before=before)).encode()
        ran = unforked_cas("hook", "claude-code", folder=runner.folder, stdin=event)
        assert (ran.status, ran.said) == (0, ""), ran
        (runner.folder / "a").write_text("new\n")
    assert [str(unit) for unit in runner.statuses()] == ["1:0"]


def test_a_hook_of_a_shell_imports_nothing_that_takes_long(runner: CommandRunner) -> None:
    (runner.folder / "a.py").write_text("value = 1\n" * 20)
    unforked_cas("record", folder=runner.folder)
    session = ClaudeCode(runner.folder)
    for turn in range(2):  # in the second one, the file has an edit of the agent's already
        session.calls = turn
        for before in (True, False):
            event = json.dumps(session.shell_event("work", before=before)).encode()
            ran = unforked_cas(
                "hook", "claude-code", folder=runner.folder, stdin=event, settings={"PYTHONPROFILEIMPORTTIME": "1"}
            )
            imported = {line.rpartition("|")[2].strip() for line in ran.err.decode().splitlines()}
            assert "objstore.agents.hook_sessions" in imported, ran
            assert not imported & (TAKE_LONG | ({"zstandard"} if before else set()))
            (runner.folder / "a.py").write_text("value = 1\n" * 20 + f"value = {turn}\n")
    assert [str(unit) for unit in runner.statuses()] == ["1:1", "2:1"]


def test_a_status_imports_nothing_that_takes_long_but_what_click_does(runner: CommandRunner) -> None:
    (runner.folder / "a").write_bytes(b"1\n")
    runner.call(lambda call: call.write("b", b"1\n2\n"))
    ran = unforked_cas("status", folder=runner.folder, settings={"PYTHONPROFILEIMPORTTIME": "1"})
    imported = {line.rpartition("|")[2].strip() for line in ran.err.decode().splitlines()}
    assert "cli.render.status" in imported, ran
    assert not imported & (TAKE_LONG - {"click", "ctypes", "threading", "tokenize"})
