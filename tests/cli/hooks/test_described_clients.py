"""Clients that a file describes: those that ship with the program, and any other with `cas setup --client FILE`."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.hooks.clients.described import DESCRIBED, described
from cli.hooks.handler import client_of
from tests.support.client_files import files
from tests.support.command_runner import PROGRAM, CommandResult, CommandRunner, cas, environment

EVERY_DESCRIPTION = pytest.mark.parametrize("client", DESCRIBED)
PIPER = """
title = "Piper"
[settings]
project = ".piper/hooks.json"
shape = "list"
[events]
tool_begins = "before"
tool_ends = "after"
asked = "prompt"
idle = "stop"
[fields]
event = "kind"
session = "run.id"
folder = "where"
tool = "run.tool"
call = "run.call"
input = "run.given"
paths = "target"
prompt = "said"
[tools]
reads = ["look"]
writes = ["put"]
[reply]
events = ["tool_ends"]
field = "for_the_model"
"""


def run(project: Path, home: Path, *words: str, stdin: str = "") -> CommandResult:
    settings = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    return cas(*words, folder=project, settings=settings, stdin=stdin.encode())


@pytest.fixture
def piper(tmp_path: Path) -> str:
    path = tmp_path / "piper.toml"
    path.write_text(PIPER)
    return str(path)


class Agent:
    """An agent of the described client: it reports what it does, as its program would."""

    def __init__(self, project: Path, home: Path, client: str) -> None:
        self.project, self.home, self.client = project, home, client

    def report(self, kind: str, *, said: str = "", **call: object) -> str:
        event = json.dumps({"kind": kind, "where": str(self.project), "said": said, "run": {"id": "r1", **call}})
        ran = run(self.project, self.home, "hook", self.client, stdin=event)
        assert (ran.status, ran.said) == (0, "")
        return ran.text

    def log(self) -> list[dict[str, Any]]:
        return [dict(line) for line in run(self.project, self.home, "log", "--json").lines()]


# ---- a client that only a file describes


def test_changes_of_a_described_client_are_recorded_with_their_turn(project: Path, home: Path, piper: str) -> None:
    assert run(project, home, "setup", "--client", piper).status == 0
    agent = Agent(project, home, piper)
    agent.report("asked", said="make it two")
    agent.report("tool_begins", tool="put", call="c1", given={"target": "a.txt"})
    (project / "a.txt").write_text("two\n")
    agent.report("tool_ends", tool="put", call="c1", given={"target": "a.txt"})
    agent.report("tool_begins", tool="shell", call="c2", given={"command": "touch b"})
    (project / "b.txt").write_text("b\n")
    agent.report("tool_ends", tool="shell", call="c2", given={"command": "touch b"})
    agent.report("idle")
    (project / "mine.txt").write_text("mine\n")
    run(project, home, "record")
    newest, shell, put = agent.log()
    assert [(edit["status"], edit["tool_name"]) for edit in (put, shell)] == [("pending", "put"), ("pending", "shell")]
    assert newest["status"] == "accepted"
    assert "make it two" in run(project, home, "log", "--turns").text
    assert run(project, home, "doctor", piper).status == 0


def test_a_rejection_reaches_a_described_client_in_its_own_field(project: Path, home: Path, piper: str) -> None:
    run(project, home, "setup", "--client", piper)
    agent = Agent(project, home, piper)
    agent.report("tool_begins", tool="put", call="c1", given={"target": "a.txt"})
    (project / "a.txt").write_text("two\n")
    agent.report("tool_ends", tool="put", call="c1", given={"target": "a.txt"})
    assert run(project, home, "reject", "1", "--reason", "one is right").status == 0
    assert agent.report("asked", said="go on") == ""
    agent.report("tool_begins", tool="look", call="c2")
    answer = json.loads(agent.report("tool_ends", tool="look", call="c2"))
    assert "one is right" in answer["for_the_model"]


def test_setup_of_a_described_client_writes_its_hooks_and_takes_them_back(
    project: Path, home: Path, piper: str
) -> None:
    before = files(project, home)
    ran = run(project, home, "setup", "--client", piper)
    assert f"Wrote {project / '.piper' / 'hooks.json'}: hooks at" in ran.text
    hooks = json.loads((project / ".piper" / "hooks.json").read_text())["hooks"]
    assert hooks.keys() == {"tool_begins", "tool_ends", "asked", "idle"}
    assert all(f"cas hook {piper} || " in entry["command"] for (entry,) in hooks.values())
    refused = run(project, home, "setup", "--client", piper, "--user")
    assert refused.status == 1
    assert "Piper has no settings for all projects" in refused.said
    assert run(project, home, "setup", "--client", piper, "--remove").status == 0
    assert files(project, home) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "settings.project is missing"),
        ('[settings]\nproject = "../x"\n', "project is '../x', which is not a path below the project or the home"),
        ('[settings]\nproject = "/etc/x"\n', "project is '/etc/x', which is not a path below the project or the home"),
        (
            '[settings]\nproject = "x"\nshape = "tree"\n',
            "settings.shape is 'tree', and not one of groups, list, programs",
        ),
        ('[settings]\nproject = "x"\n', "events.* is not one of before, after, denied, prompt, stop, start, end"),
        ('[settings]\nproject = "x"\n[events]\nA = "later"\n', "events.A is not one of before, after"),
        ('[settings]\nproject = "x"\n[events]\nA = "after"\n[fields]\nbody = "x"\n', "fields.body is unknown"),
        ('[settings]\nproject = "x"\n[events]\nA = "after"\n[tools]\nreads = 7\n', "reads is not a text or a list"),
        ('[settings]\nproject = "x"\n[settings.also]\n"../a" = "b"\n', "../a is '../a', which is not a path below"),
        ("[settings", "describes no client"),
        ("#" * 70_000, "it has more than 65536 bytes"),
    ],
)
def test_a_file_that_describes_no_client_is_refused_and_changes_nothing(
    text: str, message: str, project: Path, home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(text)
    refused = run(project, home, "setup", "--client", str(path))
    assert refused.status == 1
    assert message in refused.said
    assert not (project / ".cas").exists()


def test_a_hook_whose_description_is_gone_stops_no_agent_and_is_reported(project: Path, home: Path, piper: str) -> None:
    run(project, home, "setup", "--client", piper)
    Path(piper).unlink()
    ran = run(project, home, "hook", piper, stdin="{}")
    assert (ran.status, ran.text) == (0, "")
    status = run(project, home, "doctor")
    assert status.status == 1
    assert "piper.toml can't be read" in status.text


# ---- those that ship


@EVERY_DESCRIPTION
def test_every_shipped_client_is_set_up_found_by_doctor_and_removed(client: str, project: Path, home: Path) -> None:
    for scope in ([], ["--user"]):
        before = files(project, home)
        assert run(project, home, "setup", client, *scope).status == 0
        CommandRunner(project)
        found = {one["check"]: one["ok"] for one in run(project, home, "doctor", client, "--json").lines()}
        assert found[f"{client} is set up"], found
        assert found[f"the hook of {client} answers"]
        assert run(project, home, "setup", client, *scope, "--remove").status == 0
        assert files(project, home) == before


EVENTS: dict[str, tuple[dict[str, Any], ...]] = {
    "qwen-code": (
        {
            "hook_event_name": "PreToolUse",
            "tool_name": "edit",
            "tool_use_id": "t",
            "tool_input": {"file_path": "a.txt"},
        },
        {
            "hook_event_name": "PostToolUse",
            "tool_name": "edit",
            "tool_use_id": "t",
            "tool_input": {"file_path": "a.txt"},
        },
    ),
    "goose": (
        {"event": "PreToolUse", "tool_name": "developer__edit", "tool_call_id": "t", "tool_input": {"path": "a.txt"}},
        {"event": "PostToolUse", "tool_name": "developer__edit", "tool_call_id": "t", "tool_input": {"path": "a.txt"}},
    ),
    "crush": (
        {"event": "PreToolUse", "tool_name": "edit", "tool_input": {"file_path": "a.txt"}},
        {"event": "PostToolUse", "tool_name": "edit", "tool_input": {"file_path": "a.txt"}},
    ),
    "cline": (
        {"hookName": "PreToolUse", "preToolUse": {"toolName": "replace_in_file", "parameters": {"path": "a.txt"}}},
        {"hookName": "PostToolUse", "postToolUse": {"toolName": "replace_in_file", "parameters": {"path": "a.txt"}}},
    ),
}
"""What each client reports of one edit, by its documentation, without the session and the folder."""


@EVERY_DESCRIPTION
def test_an_edit_of_every_shipped_client_is_recorded_as_its_own(client: str, project: Path, home: Path) -> None:
    run(project, home, "setup", client)
    folder = {"cwd": str(project), "working_dir": str(project), "workspaceRoots": [str(project)]}
    before, after = ({**event, **folder, "session_id": "s", "taskId": "s"} for event in EVENTS[client])
    run(project, home, "hook", client, stdin=json.dumps(before))
    (project / "a.txt").write_text("two\n")
    run(project, home, "hook", client, stdin=json.dumps(after))
    (edit,) = (json.loads(line) for line in run(project, home, "log", "--json").text.splitlines())
    assert (edit["status"], edit["notes"]["client"]) == ("pending", client)
    assert client_of(client).read(after).conversation == "s"


def test_programs_of_a_client_are_executable_and_end_with_success(project: Path, home: Path) -> None:
    run(project, home, "setup", "cline")
    program = project / ".clinerules" / "hooks" / "PreToolUse"
    assert os.access(program, os.X_OK)
    text = program.read_text().replace(program.read_text().split()[-3], " ".join([*PROGRAM]))
    program.write_text(text)
    ran = subprocess.run([program], input=b"{}", env=environment({}), cwd=project, check=False, capture_output=True)
    assert (ran.returncode, ran.stdout) == (0, b"")


def test_a_persons_own_program_for_an_event_is_not_replaced(project: Path, home: Path) -> None:
    own = project / ".clinerules" / "hooks" / "PreToolUse"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\nexit 0\n")
    refused = run(project, home, "setup", "cline")
    assert refused.status == 1
    assert f"{own} can't be changed safely and was left as it is" in refused.said
    assert own.read_text() == "#!/bin/sh\nexit 0\n"


@EVERY_DESCRIPTION
def test_descriptions_name_only_what_their_events_and_tools_are(client: str) -> None:
    client_description = described(client)
    assert client_description.context_events <= client_description.events.keys()
    assert not client_description.reads & client_description.writes
    assert client_description.settings.user
