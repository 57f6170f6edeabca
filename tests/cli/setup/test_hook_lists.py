"""Of the hooks in a client's lists, ours are known by what they run; everybody else's stay, wherever they stand."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.setup.hook_lists import is_ours, with_hook, without_hooks
from tests.support.client_files import files, put, run

OURS = is_ours("gemini", "/opt/our own/cas")
HOOK: dict[str, object] = {"type": "command", "command": "cas hook gemini", "timeout": 30}
GROUP: dict[str, object] = {"hooks": [HOOK]}
THEIRS: dict[str, object] = {"type": "command", "command": "say done"}


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
def test_what_we_write_and_wrote_is_ours(command: str) -> None:
    assert OURS({"command": command})


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
def test_what_another_program_runs_is_not_ours(command: str | None) -> None:
    assert not OURS({"command": command})
    assert not OURS(command)


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
def test_a_hook_of_another_program_with_a_command_like_ours_stays(
    client: str, name: str, entry: dict[str, Any], project: Path, home: Path
) -> None:
    before = json.dumps({"version": 1, "hooks": entry}, indent=2)
    settings = put(project / name, before)
    ((event, (theirs,)),) = entry.items()
    assert run(project, home, "setup", client).status == 0
    assert json.loads(settings.read_text())["hooks"][event][0] == theirs
    assert run(project, home, "setup", client, "--remove").status == 0
    assert settings.read_text() == before


def listed(text: str) -> list[Any]:
    """Return what the event's list holds."""
    entries: list[Any] = json.loads(text)["hooks"]["Stop"]
    return entries


def holding(*entries: object) -> str:
    return json.dumps({"hooks": {"Stop": entries}}, indent=2)


@pytest.mark.parametrize("group", [{"hooks": [HOOK, THEIRS]}, {"hooks": [THEIRS, HOOK], "note": "mine"}])
def test_a_hook_that_a_person_adds_to_our_group_makes_it_no_less_ours(group: dict[str, Any]) -> None:
    text = holding(group)
    assert with_hook(text, "Stop", GROUP, OURS) == text
    assert listed(without_hooks(text, OURS)) == [group | {"hooks": [THEIRS]}]


def test_our_hook_is_brought_up_to_date_where_it_stands_and_keeps_what_a_person_gave_it() -> None:
    old = HOOK | {"command": "/gone/cas hook gemini", "timeout": 9, "statusMessage": "recording"}
    (group,) = listed(with_hook(holding({"hooks": [old, THEIRS]}), "Stop", GROUP, OURS))
    assert group == {"hooks": [old | HOOK, THEIRS]}


def test_a_hook_of_ours_under_a_matcher_that_is_not_ours_gets_a_place_of_its_own() -> None:
    narrow = {"matcher": "Bash", "hooks": [HOOK, THEIRS]}
    assert listed(with_hook(holding(narrow), "Stop", GROUP, OURS)) == [narrow | {"hooks": [THEIRS]}, GROUP]
    assert listed(with_hook(holding({"matcher": "Bash", "hooks": [HOOK]}), "Stop", GROUP, OURS)) == [GROUP]


def test_of_ours_that_stand_there_twice_one_is_left() -> None:
    twice = holding({"hooks": [HOOK, THEIRS]}, GROUP)
    assert listed(with_hook(twice, "Stop", GROUP, OURS)) == [{"hooks": [THEIRS]}, GROUP]
    assert listed(without_hooks(twice, OURS)) == [{"hooks": [THEIRS]}]


def test_taking_ours_out_leaves_lists_as_they_are_that_have_none() -> None:
    text = json.dumps({"hooks": {"Stop": [], "Else": [THEIRS, {"hooks": []}], "enabled": True}})
    assert without_hooks(text, OURS) == text


def test_a_group_that_a_person_added_to_is_set_up_as_doctor_sees_it(project: Path, home: Path) -> None:
    assert run(project, home, "setup", "claude-code").status == 0
    settings = project / ".claude" / "settings.json"
    held = json.loads(settings.read_text())
    held["hooks"]["Stop"][0]["hooks"].append(THEIRS)
    settings.write_text(json.dumps(held))
    before = files(project)
    found = {one["check"]: one["ok"] for one in run(project, home, "doctor", "claude-code", "--json").lines()}
    assert found["claude-code is set up"]
    assert "Nothing to change" in run(project, home, "setup", "claude-code").text
    assert files(project) == before
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(settings.read_text()) == {"hooks": {"Stop": [{"hooks": [THEIRS]}]}}
