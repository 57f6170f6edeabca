"""Replay the hook events of real clients, which `make clients` keeps: every change is recorded as it was then."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cli.hooks.clients.event import NOWHERE, EventKind
from cli.hooks.handler import client_of
from objstore import EditFilter, Operation, Origin, Status, Workspace
from tests.clients.client_run import FILES
from tests.clients.recordings import FOLDER, PROJECT, recorded
from tests.clients.scenarios import EFFECTS
from tests.support.command_runner import CommandRunner, cas
from tests.support.hooked_agents import hook, shell

EACH_CLIENT = pytest.mark.parametrize("command", sorted(path.stem for path in FOLDER.glob("*.json")))


def events(command: str, scenario: str, project: Path) -> list[dict[str, Any]]:
    """Return the recorded events, as if they had happened in this project."""
    found: list[dict[str, Any]] = json.loads(json.dumps(recorded(command)[scenario]).replace(PROJECT, str(project)))
    return found


def test_every_client_has_a_recording() -> None:
    assert {recorded(path.stem)["client"] for path in FOLDER.glob("*.json")} == {
        *("claude-code", "codex", "gemini", "opencode", "vscode")
    }


@EACH_CLIENT
def test_the_recorded_session_of_a_client_gives_all_its_changes(command: str, tmp_path: Path) -> None:
    client = recorded(command)["client"]
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    CommandRunner(tmp_path)
    assert cas("record", folder=tmp_path).status == 0
    effects = list(EFFECTS)
    for event in events(command, "session", tmp_path):
        ran = hook(client, event, folder=tmp_path)
        assert (ran.status, ran.err) == (0, b"")
        assert set(ran.json() if ran.out else {}) <= {"systemMessage"}  # the agent itself reads nothing
        read = client_of(client).read(event)
        if read.moment is EventKind.BEFORE and read.touched != NOWHERE:
            shell(effects.pop(0), folder=tmp_path)
    assert effects == []
    with Workspace.open(tmp_path) as workspace:
        found = workspace.history.edits(EditFilter())
        (turn,) = workspace.sessions.turns()
        running = workspace.sessions.running_calls()
    assert sorted((view.edit.operation, os.fsdecode(view.edit.path)) for view in found) == sorted(
        [
            (Operation.CREATE, "new.py"),
            (Operation.EDIT, "app.py"),
            (Operation.EDIT, "README.md"),
            (Operation.EDIT, "setup.cfg"),
            (Operation.MOVE, "HISTORY"),
            (Operation.DELETE, "MANIFEST.in"),
            (Operation.EDIT, "setup.cfg"),
        ]
    )
    assert {(view.edit.origin, view.status) for view in found} == {(Origin.AGENT, Status.PENDING)}
    assert turn.prompt.strip('"') == "make it better"
    assert running == ()
    assert not (tmp_path / ".cas" / "hook.log").exists()


@EACH_CLIENT
def test_the_recorded_answer_of_our_server_names_its_conversation(command: str, tmp_path: Path) -> None:
    client = client_of(recorded(command)["client"])
    parsed = [(client.read(event), json.dumps(event)) for event in events(command, "server", tmp_path)]
    answers = [
        (event, said) for event, said in parsed if "editledger" in event.tool and event.moment is EventKind.AFTER
    ]
    assert len(answers) == 2
    named, said = answers[0][0].joins, answers[0][1]
    assert named
    assert named in said
    assert all(client.reply(event, "words") is not None for event, _ in answers)
