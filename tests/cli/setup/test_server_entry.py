"""`cas setup --http` gives each client an address of its own at a server over HTTP, and `--remove` takes it away."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cli.setup.plans import WIRED
from tests.support.client_files import SERVER_FILES, files, put
from tests.support.command_runner import CommandResult, cas
from tests.support.http_server import serving

ADDRESS = "http://127.0.0.1:8765/mcp"
EVERY_CLIENT = pytest.mark.parametrize("client", WIRED)
KEYS = {"vscode": ("servers",), "opencode": ("mcp",), "codex": ("mcp_servers",)}


def run(project: Path, home: Path, *words: str) -> CommandResult:
    return cas(*words, folder=project, settings={"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")})


def entry(project: Path, client: str) -> dict[str, Any]:
    """Return the entry of our server in a client's settings."""
    text = (project / SERVER_FILES[client]).read_text()
    held = tomllib.loads(text) if client == "codex" else json.loads(text)
    for key in (*KEYS.get(client, ("mcpServers",)), "editledger"):
        held = held[key]
    found: dict[str, Any] = held
    return found


def address(project: Path, client: str) -> str:
    return str(entry(project, client)["httpUrl" if client == "gemini" else "url"])


@EVERY_CLIENT
def test_a_client_gets_an_address_of_its_own_and_keeps_it(client: str, project: Path, home: Path) -> None:
    before = files(project, home)
    assert run(project, home, "setup", client, "--http", f"{ADDRESS}/").status == 0
    own = address(project, client)
    assert own.startswith(f"{ADDRESS}/")
    assert len(own) == len(f"{ADDRESS}/") + 16
    assert "command" not in entry(project, client)
    assert "EDITLEDGER_TOKEN" in str(entry(project, client))  # its name: no file has a token
    written = files(project, home)
    assert "Nothing to change." in run(project, home, "setup", client, "--http", ADDRESS).text
    assert files(project, home) == written
    assert run(project, home, "setup", client, "--remove").status == 0
    assert files(project, home) == before


@EVERY_CLIENT
def test_a_server_that_is_started_and_one_that_is_called_replace_each_other(
    client: str, project: Path, home: Path
) -> None:
    assert run(project, home, "setup", client, "--server").status == 0
    started = files(project, home)
    assert run(project, home, "setup", client, "--http", ADDRESS).status == 0
    assert {"command", "args"}.isdisjoint(entry(project, client))
    assert run(project, home, "setup", client, "--server").status == 0
    assert {name: content for name, content in files(project, home).items() if name in started} == started
    assert run(project, home, "setup", client, "--remove").status == 0


def test_each_client_and_each_project_has_another_name(project: Path, home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for place in (project, other):
        assert run(place, home, "setup", *WIRED, "--http", ADDRESS).status == 0
    assert len({address(place, client) for place in (project, other) for client in WIRED}) == 2 * len(WIRED)


def test_a_name_that_a_person_chose_is_used(project: Path, home: Path) -> None:
    for chosen in (f"{ADDRESS}/mine", f"{ADDRESS}/another"):
        assert run(project, home, "setup", "claude-code", "--http", chosen).status == 0
        assert address(project, "claude-code") == chosen
    assert run(project, home, "setup", "claude-code", "--http", ADDRESS).status == 0
    assert address(project, "claude-code") == f"{ADDRESS}/another"
    elsewhere = ADDRESS.replace("8765", "9000")
    assert run(project, home, "setup", "claude-code", "--http", elsewhere).status == 0
    assert address(project, "claude-code").startswith(f"{elsewhere}/")


def test_an_address_without_a_name_that_a_person_wrote_gets_one(project: Path, home: Path) -> None:
    mine = {"mcpServers": {"editledger": {"type": "http", "url": ADDRESS, "timeout": 5}}}
    settings = put(project / ".mcp.json", json.dumps(mine))
    assert run(project, home, "setup", "claude-code", "--http", ADDRESS).status == 0
    assert address(project, "claude-code").startswith(f"{ADDRESS}/")
    assert entry(project, "claude-code")["timeout"] == 5
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(settings.with_name(".mcp.json.before-editledger").read_text()) == mine


@pytest.mark.parametrize(
    "given",
    [
        "http://example.com/mcp",
        "https://127.0.0.1:8765/mcp",
        "127.0.0.1:8765",
        "http://127.0.0.1:8765",
        "http://127.0.0.1:8765/mcp/a/b",
        "http://127.0.0.1:8765/mcp/..",
        "http://127.0.0.1:8765/mcp/a b",
        "http://127.0.0.1:8765/mcp\n",
        "http://user@127.0.0.1:8765/mcp",
        f"http://127.0.0.1:8765/mcp/{'a' * 129}",
    ],
)
def test_what_is_no_address_of_a_server_here_is_refused(given: str, project: Path, home: Path) -> None:
    before = files(project, home)
    ran = run(project, home, "setup", "claude-code", "--http", given)
    assert (ran.status, files(project, home)) == (2, before)
    assert "as `editledger --http` prints it" in ran.said


def test_started_and_called_together_are_refused(project: Path, home: Path) -> None:
    ran = run(project, home, "setup", "claude-code", "--server", "--http", ADDRESS)
    assert (ran.status, ran.said.splitlines()[0]) == (2, "cas: Pass --server or --http, not both.")


def test_a_client_whose_list_of_servers_is_not_known_is_given_the_address(project: Path, home: Path) -> None:
    ran = run(project, home, "setup", "cline", "--http", ADDRESS)
    assert f"by hand, at an address of its own: {ADDRESS}/" in ran.text


def test_a_client_that_is_set_up_has_a_session_at_the_server(project: Path, home: Path, tmp_path: Path) -> None:
    served_folder = tmp_path / "served"
    served_folder.mkdir()
    environment = {**os.environ, "EDITLEDGER_TOKEN": "the token"}
    with serving(served_folder.resolve(), environment=environment) as served:
        url = f"http://127.0.0.1:{served.port}/mcp"
        assert run(project, home, "setup", "claude-code", "--http", url).status == 0
        written = entry(project, "claude-code")
        assert written["headers"]["Authorization"] == "Bearer ${EDITLEDGER_TOKEN:-}"
        name = written["url"].removeprefix(f"{url}/")
        with served.agent(mode="2026-07-28", at=name, token=environment["EDITLEDGER_TOKEN"]) as agent:
            agent.done("write_file", path="new", content="x\n")
            agent.done("Undo")
    assert not (served_folder / "new").exists()
