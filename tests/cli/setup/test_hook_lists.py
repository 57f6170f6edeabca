"""Our hooks in a client's lists are identified by their command; all other hooks are kept."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.setup.hook_lists import is_ours, with_hook, without_hooks
from tests.support.client_files import files, put, run

IS_OURS = is_ours("gemini", "/opt/our own/cas")
OUR_HOOK: dict[str, object] = {"type": "command", "command": "cas hook gemini", "timeout": 30}
OUR_GROUP: dict[str, object] = {"hooks": [OUR_HOOK]}
OTHER_HOOK: dict[str, object] = {"type": "command", "command": "say done"}


@pytest.mark.parametrize(
    "command",
    [
        "cas hook gemini",
        "cas hook gemini || exit 0",
        "/usr/local/bin/cas hook gemini",
        "'/with a blank/cas' hook gemini || exit 0",
        "'/opt/our own/cas' hook gemini",
    ],
)
def test_commands_of_this_and_earlier_versions_are_ours(command: str) -> None:
    assert IS_OURS({"command": command})


@pytest.mark.parametrize(
    "command",
    [
        "rtk hook gemini",
        "notcas hook gemini",
        "python -m rtk hook gemini",
        "cas hook cursor",
        "cas hook gemini --theirs",
        "mine; cas hook gemini",
        "echo cas hook gemini",
        "'cas hook gemini",
        "",
        None,
    ],
)
def test_commands_of_other_programs_are_not_ours(command: str | None) -> None:
    assert not IS_OURS({"command": command})
    assert not IS_OURS(command)


@pytest.mark.parametrize(
    ("client", "name", "entry"),
    [
        ("cursor", ".cursor/hooks.json", {"preToolUse": [{"command": "rtk hook cursor", "matcher": "Shell"}]}),
        (
            "gemini",
            ".gemini/settings.json",
            {"BeforeTool": [{"matcher": "x", "hooks": [{"command": "rtk hook gemini"}]}]},
        ),
    ],
)
def test_a_hook_of_another_program_with_a_similar_command_is_kept(
    client: str, name: str, entry: dict[str, Any], project: Path, home: Path
) -> None:
    before = json.dumps({"version": 1, "hooks": entry}, indent=2)
    settings = put(project / name, before)
    ((event, (other_hook,)),) = entry.items()
    assert run(project, home, "setup", client).status == 0
    assert json.loads(settings.read_text())["hooks"][event][0] == other_hook
    assert run(project, home, "setup", client, "--remove").status == 0
    assert settings.read_text() == before


def stop_hooks(text: str) -> list[Any]:
    """Return the hooks of the event `Stop`."""
    entries: list[Any] = json.loads(text)["hooks"]["Stop"]
    return entries


def settings_with(*entries: object) -> str:
    return json.dumps({"hooks": {"Stop": entries}}, indent=2)


@pytest.mark.parametrize(
    "group", [{"hooks": [OUR_HOOK, OTHER_HOOK]}, {"hooks": [OTHER_HOOK, OUR_HOOK], "note": "mine"}]
)
def test_our_group_is_recognized_when_a_person_added_a_hook_to_it(group: dict[str, Any]) -> None:
    text = settings_with(group)
    assert with_hook(text, "Stop", OUR_GROUP, IS_OURS) == text
    assert stop_hooks(without_hooks(text, IS_OURS)) == [group | {"hooks": [OTHER_HOOK]}]


def test_our_hook_is_updated_in_place_and_keeps_fields_that_a_person_added() -> None:
    old = OUR_HOOK | {"command": "/gone/cas hook gemini", "timeout": 9, "statusMessage": "recording"}
    (group,) = stop_hooks(with_hook(settings_with({"hooks": [old, OTHER_HOOK]}), "Stop", OUR_GROUP, IS_OURS))
    assert group == {"hooks": [old | OUR_HOOK, OTHER_HOOK]}


def test_our_hook_under_another_matcher_is_moved_to_its_own_group() -> None:
    narrow = {"matcher": "Bash", "hooks": [OUR_HOOK, OTHER_HOOK]}
    assert stop_hooks(with_hook(settings_with(narrow), "Stop", OUR_GROUP, IS_OURS)) == [
        narrow | {"hooks": [OTHER_HOOK]},
        OUR_GROUP,
    ]
    assert stop_hooks(
        with_hook(settings_with({"matcher": "Bash", "hooks": [OUR_HOOK]}), "Stop", OUR_GROUP, IS_OURS)
    ) == [OUR_GROUP]


def test_a_duplicate_of_our_hook_is_removed() -> None:
    twice = settings_with({"hooks": [OUR_HOOK, OTHER_HOOK]}, OUR_GROUP)
    assert stop_hooks(with_hook(twice, "Stop", OUR_GROUP, IS_OURS)) == [{"hooks": [OTHER_HOOK]}, OUR_GROUP]
    assert stop_hooks(without_hooks(twice, IS_OURS)) == [{"hooks": [OTHER_HOOK]}]


def test_removing_our_hooks_leaves_other_lists_unchanged() -> None:
    text = json.dumps({"hooks": {"Stop": [], "Else": [OTHER_HOOK, {"hooks": []}], "enabled": True}})
    assert without_hooks(text, IS_OURS) == text


def test_doctor_accepts_our_group_with_an_added_hook(project: Path, home: Path) -> None:
    assert run(project, home, "setup", "claude-code").status == 0
    settings = project / ".claude" / "settings.json"
    parsed = json.loads(settings.read_text())
    parsed["hooks"]["Stop"][0]["hooks"].append(OTHER_HOOK)
    settings.write_text(json.dumps(parsed))
    before = files(project)
    found = {one["check"]: one["ok"] for one in run(project, home, "doctor", "claude-code", "--json").lines()}
    assert found["claude-code is set up"]
    assert "Nothing to change" in run(project, home, "setup", "claude-code").text
    assert files(project) == before
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(settings.read_text()) == {"hooks": {"Stop": [{"hooks": [OTHER_HOOK]}]}}
