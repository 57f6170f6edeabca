"""Doctor and setup report hooks that a client's settings disable."""

import re
from pathlib import Path

import pytest

from cli.setup.disabled_hooks import disabled_hooks
from cli.setup.plans import HOMES
from tests.support.client_files import put, run
from tests.support.command_runner import CommandRunner

DISABLING_SETTINGS = [
    ("claude-code", ".claude/settings.json", '{"disableAllHooks": true}', "disableAllHooks = true"),
    ("gemini", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled = false"),
    ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks = false"),
    ("codex", ".codex/config.toml", "features.codex_hooks = false\n", "features.codex_hooks = false"),
]


def inverted(content: str) -> str:
    """Return settings with every boolean inverted."""
    return re.sub(r"true|false", lambda found: {"true": "false", "false": "true"}[found.group()], content)


# One run of doctor for several clients starts the server only once.
@pytest.mark.parametrize(
    "cases", [DISABLING_SETTINGS[:3], DISABLING_SETTINGS[3:]], ids=["of each client", "older name"]
)
def test_doctor_names_the_setting_and_file_that_disable_hooks(
    cases: list[tuple[str, str, str, str]], project: Path, home: Path
) -> None:
    CommandRunner(project)
    clients = [client for client, *_ in cases]

    def found() -> dict[str, dict[str, object]]:
        return {one["check"]: one for one in run(project, home, "doctor", *clients, "--json").lines()}

    for client, name, content, _ in cases:
        put(project / name, content)
        assert run(project, home, "setup", client).status == 0
    checks = found()
    for client, name, _, setting in cases:
        assert checks[f"{client} is set up"]["ok"]
        assert not checks[f"{client} runs hooks"]["ok"]
        assert str(checks[f"{client} runs hooks"]["said"]).startswith(f"{project / name} sets {setting}, ")
        settings = project / name
        settings.write_text(inverted(settings.read_text()))
    checks = found()
    for client in clients:
        assert checks[f"{client} is set up"]["ok"]
        assert f"{client} runs hooks" not in checks


@pytest.mark.parametrize(("client", "name", "content", "setting"), DISABLING_SETTINGS)
def test_settings_of_the_project_override_the_users_disabled_hooks(
    client: str, name: str, content: str, setting: str, project: Path, home: Path
) -> None:
    del setting
    assert disabled_hooks(client, project, home) is None
    put(home / name, content)
    found = disabled_hooks(client, project, home)
    assert found is not None
    assert found.path == home / name
    put(project / name, inverted(content))
    assert disabled_hooks(client, project, home) is None


@pytest.mark.parametrize("content", ["{ invalid", "\x00", '{"disableAllHooks": "true"}', "[]"])
def test_invalid_or_unrelated_settings_disable_nothing(content: str, project: Path, home: Path) -> None:
    put(project / ".claude" / "settings.local.json", content)
    assert disabled_hooks("claude-code", project, home) is None
    assert disabled_hooks("cursor", project, home) is None


def test_hooks_disabled_by_name_are_reported_by_setup_and_doctor(project: Path, home: Path) -> None:
    CommandRunner(project)
    settings = put(home / ".gemini" / "settings.json", '{"hooksConfig": {"disabled": ["theirs", "editledger"]}}')
    # The lists of all files count, and other names are not ours.
    put(project / ".gemini" / "settings.json", '{"hooksConfig": {"enabled": true, "disabled": ["other"]}}')
    message = f'{settings} lists "editledger" in hooksConfig.disabled, '
    assert message in run(project, home, "setup", "gemini").text
    found = {one["check"]: one for one in run(project, home, "doctor", "gemini", "--json").lines()}
    assert found["gemini is set up"]["ok"]
    assert not found["gemini runs hooks"]["ok"]
    assert found["gemini runs hooks"]["said"].startswith(message)
    settings.write_text('{"hooksConfig": {"disabled": "editledger"}}')
    assert "hooksConfig" not in run(project, home, "setup", "gemini").text
    assert disabled_hooks("gemini", project, home) is None


@pytest.mark.parametrize(("client", "name", "content", "setting"), DISABLING_SETTINGS)
def test_disabled_hooks_are_found_in_a_settings_folder_named_by_a_variable(
    client: str, name: str, content: str, setting: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable, below = HOMES[client]
    put(home / name, inverted(content))
    settings = put(tmp_path / "elsewhere" / below / Path(name).name, content)
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    assert str(disabled_hooks(client, None, home)).startswith(f"{settings} sets {setting}, ")
