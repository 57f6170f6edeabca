"""Doctor says where a client loads nothing of ours because the user has not trusted the folder or our hooks."""

import json
import os
from pathlib import Path

import pytest

from cli.setup.plans import Scope
from cli.setup.trust import MissingTrust, missing_trust
from tests.support.client_files import put, run
from tests.support.command_runner import CommandRunner

HOOK = {"type": "command", "command": "/usr/local/bin/cas hook codex", "timeout": 30}
ENDING = HOOK | {"timeout": 3}
HOOKS = {
    "hooks": {
        "PreToolUse": [{"matcher": "*", "hooks": [HOOK]}],
        "SessionStart": [{"hooks": [HOOK]}],
        "SessionEnd": [{"hooks": [ENDING]}],
    }
}
TRUSTED = {
    "pre_tool_use": "588dca54c5be8595c4102eb364050504113caaf624cdcb3b7f637fc64a19bd7a",
    "session_start": "d3f0b6dd35adaf737e610a81047d0c0e77bb995837b19c155bf0a2daceca6423",
    "session_end": "4c350640213d88dace8505b66a7b52b33d1ee2e3acc296d2fec2ef7136a90da7",
}
"""What Codex 0.169.0 itself wrote when it trusted these hooks."""


def found(client: str, project: Path, home: Path, *, is_users: bool = False) -> MissingTrust | None:
    """Return what is missing for a client that is set up for the project, or for the user."""
    return missing_trust(client, Scope(project=None if is_users else project, home=home), project)


def codex_settings(folder: Path, hooks: Path, hashes: dict[str, str]) -> list[str]:
    """Return the lines of Codex's settings with a trusted project and trusted hooks."""
    lines = [f"[projects.{json.dumps(str(folder))}]", 'trust_level = "trusted"']
    for event, said in hashes.items():
        lines += [f"[hooks.state.{json.dumps(f'{hooks}:{event}:0:0')}]", f'trusted_hash = "sha256:{said}"']
    return lines


def test_codex_must_trust_the_project_and_each_hook_as_it_is_now(project: Path, home: Path) -> None:
    hooks = project / ".codex" / "hooks.json"
    put(hooks, json.dumps(HOOKS))
    missing = found("codex", project, home)
    assert missing is not None
    assert str(missing).startswith(f"Codex does not trust {project}, ")
    settings = home / ".codex" / "config.toml"
    put(settings, "\n".join(codex_settings(project, hooks, {})))
    assert "our hooks as they are now" in str(found("codex", project, home))
    assert "type /hooks in Codex" in str(found("codex", project, home))
    put(settings, "\n".join(codex_settings(project, hooks, TRUSTED)))
    assert found("codex", project, home) is None
    put(hooks, json.dumps(HOOKS).replace('"timeout": 3}', '"timeout": 4}'))
    assert "our hooks of SessionEnd as they are now" in str(found("codex", project, home))


def test_codex_needs_no_trust_of_a_project_for_the_users_own_hooks(project: Path, home: Path) -> None:
    hooks = home / ".codex" / "hooks.json"
    put(hooks, json.dumps(HOOKS))
    put(home / ".codex" / "config.toml", "\n".join(codex_settings(Path("/elsewhere"), hooks, TRUSTED)))
    assert found("codex", project, home, is_users=True) is None


def test_codex_trusts_what_is_in_a_trusted_git_repository(project: Path, home: Path) -> None:
    (project / ".git").mkdir()
    inner = project / "inner"
    inner.mkdir()
    put(home / ".codex" / "config.toml", "\n".join(codex_settings(project, project, {})))
    assert found("codex", inner, home) is None
    put(home / ".codex" / "config.toml", f'[projects.{json.dumps(str(project))}]\ntrust_level = "untrusted"\n')
    assert found("codex", inner, home) is not None


@pytest.mark.parametrize(
    ("rules", "is_trusted"),
    [
        ({}, False),
        ({"{project}": "TRUST_FOLDER"}, True),
        ({"{project}/src": "TRUST_FOLDER"}, False),
        ({"{project}/x": "TRUST_PARENT"}, True),
        ({"{above}": "TRUST_FOLDER"}, True),
        ({"{above}": "TRUST_FOLDER", "{project}": "DO_NOT_TRUST"}, False),
        ({"{project}": "nonsense"}, False),
    ],
)
def test_gemini_trusts_a_folder_by_the_longest_rule(
    rules: dict[str, str], *, is_trusted: bool, project: Path, home: Path
) -> None:
    named = {path.format(project=project, above=project.parent): level for path, level in rules.items()}
    put(home / ".gemini" / "trustedFolders.json", json.dumps(named))
    assert (found("gemini", project, home) is None) is is_trusted
    assert (found("gemini", project, home, is_users=True) is None) is is_trusted


def test_gemini_trusts_every_folder_if_a_user_says_so(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "GEMINI_CLI_TRUST_WORKSPACE=true" in str(found("gemini", project, home))
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    assert found("gemini", project, home) is None
    monkeypatch.delenv("GEMINI_CLI_TRUST_WORKSPACE")
    put(home / ".gemini" / "settings.json", '{"security": {"folderTrust": {"enabled": false}}}')
    assert found("gemini", project, home) is None


def test_copilot_lists_the_folders_that_it_trusts(project: Path, home: Path) -> None:
    assert found("vscode", project, home) is None  # it was never started here: VS Code asks by itself
    put(home / ".copilot" / "config.json", '{"firstLaunchAt": "2026-11-27T13:23:16.830Z"}')
    assert "--trust-folder" in str(found("vscode", project, home))
    put(home / ".copilot" / "config.json", "// ours\n" + json.dumps({"trustedFolders": [str(project.parent)]}))
    assert found("vscode", project, home) is None


@pytest.mark.parametrize("content", ["", "[]", "{", '{"projects": 3}', "\x00"])
@pytest.mark.parametrize(
    ("client", "name"),
    [("codex", ".codex/config.toml"), ("gemini", ".gemini/trustedFolders.json"), ("vscode", ".copilot/config.json")],
)
def test_files_that_say_nothing_give_no_trust(client: str, name: str, content: str, project: Path, home: Path) -> None:
    put(home / name, content)
    assert found(client, project, home) is not None


def test_setup_and_doctor_name_the_trust_that_is_missing(project: Path, home: Path) -> None:
    CommandRunner(project)
    for client, way in (("codex", "type /hooks in it"), ("gemini", "start `gemini` there and trust")):
        ran = run(project, home, "setup", client)
        assert (ran.status, way in ran.text) == (0, True)
    (check,) = [one for one in run(project, home, "doctor", "--json").lines() if one["check"] == "gemini is trusted"]
    assert not check["ok"]
    assert "start `gemini` there" in check["said"]
    put(home / ".gemini" / "trustedFolders.json", json.dumps({os.path.realpath(project): "TRUST_FOLDER"}))
    assert "gemini is trusted" not in run(project, home, "doctor").text
