"""Hooks that a client doesn't run are a fault, however well they are set up."""

import re
from pathlib import Path

import pytest

from cli.setup.disabled_hooks import disabled_hooks
from cli.setup.plans import HOMES
from tests.support.client_files import put, run
from tests.support.command_runner import CommandRunner

OFF = [
    ("claude-code", ".claude/settings.json", '{"disableAllHooks": true}', "disableAllHooks = true"),
    ("gemini", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled = false"),
    ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks = false"),
    ("codex", ".codex/config.toml", "features.codex_hooks = false\n", "features.codex_hooks = false"),
]


def opposite(content: str) -> str:
    """Return settings with every switch the other way."""
    return re.sub(r"true|false", lambda found: {"true": "false", "false": "true"}[found.group()], content)


# A doctor that is asked about several clients starts the server but once.
@pytest.mark.parametrize("off", [OFF[:3], OFF[3:]], ids=["of each client", "older name"])
def test_doctor_says_which_setting_of_whose_file_switches_hooks_off(
    off: list[tuple[str, str, str, str]], project: Path, home: Path
) -> None:
    CommandRunner(project)
    clients = [client for client, *_ in off]

    def found() -> dict[str, dict[str, object]]:
        return {one["check"]: one for one in run(project, home, "doctor", *clients, "--json").lines()}

    for client, name, content, _ in off:
        put(project / name, content)
        assert run(project, home, "setup", client).status == 0
    told = found()
    for client, name, _, setting in off:
        assert told[f"{client} is set up"]["ok"]
        assert not told[f"{client} runs hooks"]["ok"]
        assert str(told[f"{client} runs hooks"]["said"]).startswith(f"{project / name} sets {setting}, ")
        settings = project / name
        settings.write_text(opposite(settings.read_text()))
    told = found()
    for client in clients:
        assert told[f"{client} is set up"]["ok"]
        assert f"{client} runs hooks" not in told


@pytest.mark.parametrize(("client", "name", "content", "setting"), OFF)
def test_what_the_user_switched_off_is_off_until_the_project_says_otherwise(
    client: str, name: str, content: str, setting: str, project: Path, home: Path
) -> None:
    del setting
    assert disabled_hooks(client, project, home) is None
    put(home / name, content)
    found = disabled_hooks(client, project, home)
    assert found is not None
    assert found.path == home / name
    put(project / name, opposite(content))
    assert disabled_hooks(client, project, home) is None


@pytest.mark.parametrize("content", ["{ not this", "\x00", '{"disableAllHooks": "true"}', "[]"])
def test_settings_that_say_nothing_of_hooks_switch_nothing_off(content: str, project: Path, home: Path) -> None:
    put(project / ".claude" / "settings.local.json", content)
    assert disabled_hooks("claude-code", project, home) is None
    assert disabled_hooks("cursor", project, home) is None


def test_ours_that_are_off_by_name_are_told_by_setup_and_doctor(project: Path, home: Path) -> None:
    CommandRunner(project)
    settings = put(home / ".gemini" / "settings.json", '{"hooksConfig": {"disabled": ["theirs", "editledger"]}}')
    # What one file lists no other takes back, and one of another name is not ours.
    put(project / ".gemini" / "settings.json", '{"hooksConfig": {"enabled": true, "disabled": ["other"]}}')
    said = f'{settings} lists "editledger" in hooksConfig.disabled, '
    assert said in run(project, home, "setup", "gemini").text
    found = {one["check"]: one for one in run(project, home, "doctor", "gemini", "--json").lines()}
    assert found["gemini is set up"]["ok"]
    assert not found["gemini runs hooks"]["ok"]
    assert found["gemini runs hooks"]["said"].startswith(said)
    settings.write_text('{"hooksConfig": {"disabled": "editledger"}}')
    assert "hooksConfig" not in run(project, home, "setup", "gemini").text
    assert disabled_hooks("gemini", project, home) is None


@pytest.mark.parametrize(("client", "name", "content", "setting"), OFF)
def test_a_switch_in_a_users_settings_that_lie_elsewhere_counts(
    client: str, name: str, content: str, setting: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable, below = HOMES[client]
    put(home / name, opposite(content))
    settings = put(tmp_path / "elsewhere" / below / Path(name).name, content)
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    assert str(disabled_hooks(client, None, home)).startswith(f"{settings} sets {setting}, ")
