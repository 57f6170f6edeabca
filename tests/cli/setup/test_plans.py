"""Setting up a client changes what is ours in its settings and nothing else, twice is once, removing takes it back."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cli.setup import doctor
from cli.setup.jsonc_edit import JsonInvalid, appended, discarded, loaded, with_member, with_members, without_member
from cli.setup.plans import WIRED, Programs, Scope, plan
from tests.support.client_files import files, put, run
from tests.support.command_runner import (
    PATIENCE,
    PROGRAM,
    SOURCE,
    CommandResult,
    CommandRunner,
    cas,
    cas_unprivileged,
    environment,
)
from tests.support.faulty_disk import WHOLE

EVERY_CLIENT = pytest.mark.parametrize("client", WIRED)

NAMES = st.text("abc", min_size=1, max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=4)

COMMENTED = """\
// what I want
{
  "theme": "dark", // not light
  /* mine */
  "hooks": {
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "my-check" }] },
    ],
  },
}
// the end
"""


# ---- the text


@given(DOCUMENTS, st.lists(NAMES, min_size=1, max_size=3), VALUES, st.sampled_from([None, 2, "\t"]))
def test_a_member_that_is_set_is_there_and_all_others_are_as_they_were(
    document: dict[str, Any], path: list[str], value: object, indent: int | str | None
) -> None:
    text = json.dumps(document, indent=indent)
    try:
        changed = with_member(text, path, value)
    except JsonInvalid:
        return  # something that is no object stands on the way
    assert loaded(changed) == json.loads(changed)
    held: Any = document
    for key in path[:-1]:
        held = held.setdefault(key, {})
    held[path[-1]] = value
    assert json.loads(changed) == document


@given(DOCUMENTS, NAMES, st.sampled_from([None, 2]))
def test_a_member_that_is_set_and_taken_out_leaves_the_document_as_it_was(
    document: dict[str, Any], name: str, indent: int | None
) -> None:
    text = json.dumps(document, indent=indent)
    assert json.loads(without_member(with_member(text, ["new", name], 1), ["new", name])) == document


@given(st.lists(VALUES, max_size=4), VALUES)
def test_an_item_is_put_at_the_end_once(items: list[Any], value: object) -> None:
    text = appended(json.dumps({"a": items}), ["a"], value)
    assert json.loads(text)["a"] == (items if value in items else [*items, value])
    assert appended(text, ["a"], value) == text


@given(st.lists(st.integers(0, 3), max_size=5), st.integers(0, 3))
def test_items_that_are_ours_go_and_the_others_stay(items: list[int], ours: int) -> None:
    left = loaded(discarded(json.dumps({"a": items, "b": 1}), ["a"], lambda item: item == ours))
    kept = [item for item in items if item != ours]
    assert left == ({"a": kept, "b": 1} if kept or not items else {"b": 1})


BARE = COMMENTED.replace(",\n", "\n").replace(", //", " //").replace("// not light", ", // not light")
"""The same without trailing commas."""


@pytest.mark.parametrize("text", [COMMENTED, BARE, COMMENTED.replace("\n", "\r\n"), BARE.replace("\n", "\r\n")])
def test_comments_commas_and_line_ends_outlive_a_change_and_its_removal(text: str) -> None:
    changed = appended(text, ["hooks", "PreToolUse"], {"ours": 1})
    changed = with_member(changed, ["mcpServers", "us"], {"command": "x"})
    for line in text.splitlines():
        assert line.rstrip(",") in changed
    assert ("\r\n" in changed) == ("\r\n" in text)
    assert changed.count("\n") in {changed.count("\r\n"), changed.count("\n") - changed.count("\r\n")}
    taken_back = without_member(changed, ["mcpServers", "us"])
    assert discarded(taken_back, ["hooks", "PreToolUse"], lambda item: item == {"ours": 1}) == text


@pytest.mark.parametrize("inside", ["\n    // the team's own go here\n  ", " /* the team's own go here */\n  "])
def test_what_was_empty_but_for_a_comment_stays_with_it(inside: str) -> None:
    text = f'{{\n  "servers": {{{inside}}},\n  "hooks": {{\n    "Stop": [{inside}]\n  }}\n}}\n'
    changed = with_member(appended(text, ["hooks", "Stop"], {"ours": 1}), ["servers", "us"], {"command": "x"})
    left = discarded(without_member(changed, ["servers", "us"]), ["hooks", "Stop"], lambda item: item == {"ours": 1})
    assert loaded(left) == loaded(text)
    assert left.count("the team's own go here") == 2
    assert without_member(left, ["servers", "us"]) == discarded(left, ["hooks", "Stop"], bool) == left


def test_what_is_about_a_line_stays_on_it_when_something_comes_after() -> None:
    changed = with_member('{\n  "a": 1 // about a\n}\n', ["b"], 2)
    assert changed == '{\n  "a": 1, // about a\n  "b": 2\n}\n'


@given(DOCUMENTS, NAMES, st.dictionaries(NAMES, VALUES, max_size=3))
def test_members_that_are_set_leave_the_others_of_their_object_alone(
    document: dict[str, Any], name: str, members: dict[str, Any]
) -> None:
    changed = with_members(json.dumps(document), [name], members)
    held = document.get(name)
    assert json.loads(changed) == document | {name: held | members if isinstance(held, dict) else members}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: with_member(text, ["a", "b"], 1),
        lambda text: without_member(text, ["a", "b"]),
        lambda text: without_member(text, ["a"]),
        lambda text: appended(text, ["a"], 1),
        lambda text: discarded(text, ["a"], bool),
    ],
)
def test_a_name_that_stands_there_twice_is_refused_and_named(change: Callable[[str], str]) -> None:
    with pytest.raises(JsonInvalid, match=r'^"a" appears more than once'):
        change('{"a": {"c": 1}, "a": {"b": 1}}')


@pytest.mark.parametrize(
    "text", ["{", "[1", '{"a" 1}', "{} {}", '{"a": 01x}', "nul", '{"a": "\n"}', "[" * 300, "{1: 2}"]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(JsonInvalid):
        loaded(text)


# ---- the command


def diagnosis(project: Path, home: Path, *clients: str) -> tuple[int, dict[str, tuple[bool, str]]]:
    """Return how `cas doctor` ended, and what it found."""
    ran = run(project, home, "doctor", *clients, "--json")
    return ran.status, {one["check"]: (one["ok"], one["said"]) for one in ran.lines()}


@EVERY_CLIENT
@pytest.mark.parametrize("scope", ["--project", "--user"])
def test_a_client_is_set_up_once_and_taken_back_whole(client: str, scope: str, project: Path, home: Path) -> None:
    before = files(project, home)
    shown = run(project, home, "setup", client, scope, "--dry-run")
    assert shown.status == 0
    assert "Would change" in shown.text
    assert files(project, home) == before
    assert run(project, home, "setup", client, scope).status == 0
    after = files(project, home)
    assert after != before
    for path, content in after.items():
        if path.suffix == ".json":
            json.loads(content)
        elif path.suffix == ".toml":
            tomllib.loads(content.decode())
    assert "Nothing to change" in run(project, home, "setup", client, scope).text
    assert files(project, home) == after
    assert run(project, home, "setup", client, scope, "--remove").status == 0
    assert files(project, home) == before
    assert [path.name for path in project.iterdir() if path.name != ".cas"] == ["a.txt"]
    assert list(home.iterdir()) == []


@EVERY_CLIENT
def test_hooks_with_the_flag_of_an_earlier_version_are_brought_up_to_date_and_taken_back(
    client: str, project: Path, home: Path
) -> None:
    before = files(project, home)
    assert run(project, home, "setup", client).status == 0
    after = files(project, home)
    for words in (["setup", client], ["setup", client, "--remove"]):
        for path, content in after.items():
            path.write_bytes(content.replace(b" hook %b" % client.encode(), b" hook %b --resident" % client.encode()))
        assert run(project, home, *words).status == 0
        assert not [path for path, content in files(project, home).items() if b"--resident" in content]
    assert files(project, home) == before


@pytest.mark.parametrize("scope", ["--project", "--user"])
def test_where_nothing_was_set_up_nothing_is_taken_back(scope: str, project: Path, home: Path) -> None:
    ran = run(project, home, "setup", "codex", scope, "--remove")
    assert (ran.status, ran.said) == (0, "")
    assert [path.name for path in project.iterdir()] == ["a.txt"]
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("client", ["claude-code", "vscode"])
def test_a_project_that_another_gets_without_our_command_keeps_its_tools(
    client: str, project: Path, home: Path
) -> None:
    """Copilot's own program runs both files' hooks, and lets no tool run whose hook fails."""
    assert run(project, home, "setup", client).status == 0
    (settings,) = (path for path in project.rglob("*.json") if "hooks" in json.loads(path.read_text()))
    (entry,) = json.loads(settings.read_text())["hooks"]["PreToolUse"]
    hook = entry.get("hooks", [entry])[0]
    ran = subprocess.run(
        ["/bin/sh", "-c", "/nowhere/cas" + hook["command"][hook["command"].index(" hook ") :]],
        env={"PATH": "/nowhere"},
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, b"")
    before = settings.read_text()
    settings.write_text(before.replace(" || exit 0", ""))  # as we wrote it once
    assert run(project, home, "setup", client).status == 0
    assert settings.read_text() == before


def test_hooks_of_copilots_shape_say_which_version_of_it(project: Path, home: Path) -> None:
    assert run(project, home, "setup", "vscode").status == 0
    assert json.loads((project / ".github" / "hooks" / "editledger.json").read_text())["version"] == 1


def test_claude_code_tells_of_no_notification_but_that_it_waits(project: Path, home: Path) -> None:
    assert run(project, home, "setup", "claude-code").status == 0
    hooks = json.loads((project / ".claude" / "settings.json").read_text())["hooks"]
    assert [entry["matcher"] for entry in hooks["Notification"]] == ["idle_prompt"]


def test_no_hook_wants_more_time_than_codex_gives_at_its_end(project: Path, home: Path) -> None:
    assert run(project, home, "setup", "codex").status == 0
    hooks = json.loads((project / ".codex" / "hooks.json").read_text())["hooks"]
    seconds = {event: entry["hooks"][0]["timeout"] for event, (entry,) in hooks.items()}
    ends = {event: seconds.pop(event) for event in ("SessionEnd", "Interrupt")}
    assert ends == {"SessionEnd": 3, "Interrupt": 3}
    assert set(seconds.values()) == {30}
    assert {"PermissionRequest", "SubagentStart", "SubagentStop"} <= set(seconds)


def test_setup_says_what_no_settings_file_can_do(project: Path, home: Path) -> None:
    assert "/hooks" in run(project, home, "setup", "codex").text
    assert "/hooks" not in run(project, home, "setup", "gemini").text


def test_setup_for_all_that_a_user_does_says_in_which_folders_that_is_recorded(project: Path, home: Path) -> None:
    said = "Only workspaces are recorded: run `cas init` in each folder."
    for _ in ("when it is set up", "and when it is already"):
        assert run(project, home, "setup", "codex", "--user").text.splitlines()[-1] == said
    assert not (project / ".cas").exists()
    for words in (["--user", "--dry-run"], ["--user", "--remove"], ["--project"]):
        assert said not in run(project, home, "setup", "codex", *words).text


def test_what_a_person_has_in_the_files_stays_and_a_copy_is_kept(project: Path, home: Path) -> None:
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(COMMENTED)
    settings.chmod(0o600)
    config = project / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('# mine\nmodel = "m"\n\n[mcp_servers.other]\ncommand = "x"\n')
    for client in ("claude-code", "codex"):
        assert run(project, home, "setup", client).status == 0
    changed = loaded(settings.read_text())
    assert changed["theme"] == "dark"
    assert [entry["matcher"] for entry in changed["hooks"]["PreToolUse"]] == ["Bash", "*"]
    assert settings.stat().st_mode & 0o777 == 0o600
    assert settings.with_name("settings.json.before-editledger").read_text() == COMMENTED
    held = tomllib.loads(config.read_text())
    assert set(held["mcp_servers"]) == {"other", "editledger"}
    assert config.read_text().startswith("# mine\n")
    for client in ("claude-code", "codex"):
        assert run(project, home, "setup", client, "--remove").status == 0
    assert loaded(settings.read_text()) == loaded(COMMENTED)
    assert tomllib.loads(config.read_text()) == {"model": "m", "mcp_servers": {"other": {"command": "x"}}}


SERVED = {
    "claude-code": ".mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "opencode": "opencode.json",
}
"""The file in which each client of a project has its servers."""


HOOKED = [
    ("claude-code", ".claude/settings.json", "PostToolUse"),
    ("codex", ".codex/hooks.json", "PostToolUse"),
    ("gemini", ".gemini/settings.json", "AfterTool"),
    ("cursor", ".cursor/hooks.json", "postToolUse"),
    ("vscode", ".github/hooks/editledger.json", "PostToolUse"),
]
"""The file in which each client of a project has its hooks, and one of these."""


@EVERY_CLIENT
def test_arguments_that_a_person_gives_our_server_stay(client: str, project: Path, home: Path) -> None:
    assert run(project, home, "setup", client).status == 0
    settings = project / SERVED[client]
    last = '"${workspaceFolder}"' if client == "vscode" else '"."'
    given = settings.read_text().replace(last, f'"--read-only", {last}')
    assert "--read-only" in given
    # The program was elsewhere once: that is brought up to date.
    settings.write_text(re.sub(r'"[^"]*editledger"(,?\n)', r'"/old/editledger"\1', given))
    assert "/old/" in settings.read_text()
    assert "stay as they are" not in run(project, home, "setup", client).text
    assert "".join(settings.read_text().split()) == "".join(given.split())
    assert run(project, home, "setup", client, "--remove").status == 0
    assert not settings.exists()


@EVERY_CLIENT
def test_what_a_person_gave_our_server_stays_in_a_copy_and_that_is_said(client: str, project: Path, home: Path) -> None:
    assert run(project, home, "setup", client).status == 0
    settings = project / SERVED[client]
    text = settings.read_text()
    given = text.replace('"command"', '"env": {"A": "b"}, "command"', 1).replace(
        "\ncommand", '\nenv = {A="b"}\ncommand', 1
    )
    settings.write_text(given)
    copy = settings.with_name(f"{settings.name}.before-editledger")
    said = run(project, home, "setup", client, "--remove").text
    assert f"It has settings that `cas setup` did not write; a copy is kept as {copy}." in said
    assert copy.read_text() == given
    assert not settings.exists()


@EVERY_CLIENT
def test_arguments_that_may_not_do_stay_and_are_named(client: str, project: Path, home: Path) -> None:
    assert run(project, home, "setup", client).status == 0
    settings = project / SERVED[client]
    last = '"${workspaceFolder}"' if client == "vscode" else '"."'
    settings.write_text(settings.read_text().replace(last, '"/elsewhere"'))
    before = settings.read_text()
    said = run(project, home, "setup", client).text
    assert f'In {settings}, our server\'s arguments ["/elsewhere"] stay as they are; ' in said
    assert settings.read_text() == before


OTHERS = [
    ("codex", '[mcp_servers.editledger.env]\nA = "b"\n'),
    ("codex", 'a = 1\n["mcp_servers"."editledger"]\n"command" = "old"\nenv.A = "b"\n\n# about the next\n[z]\nq = 1\n'),
    ("claude-code", '{"mcpServers": {"editledger": {"type": "http", "url": "http://localhost/"}}}\n'),
    ("gemini", json.dumps({"mcpServers": {"editledger": {"command": "mine", "args": ["."]}}}, indent=2) + "\n"),
    ("opencode", '{"mcp": {"editledger": {"type": "local", "command": ["mine", "."]}, "other": {}}}'),
]


@pytest.mark.parametrize(("client", "content"), OTHERS)
def test_an_entry_of_our_name_that_a_person_had_before_us_is_given_back(
    client: str, content: str, project: Path, home: Path
) -> None:
    settings = put(project / SERVED[client], content)
    assert run(project, home, "setup", client).status == 0
    assert settings.read_text() != content
    assert "that was there before `cas setup`" in run(project, home, "setup", client, "--remove").text
    assert files(project) == {settings: content.encode(), project / "a.txt": b"one\n"}


BY_HAND = [
    ("cursor", '{"mcpServers": {"editledger": {"command": "editledger", "args": ["."], "env": {"TOKEN": "mine"}}}}'),
    ("cursor", '{"mcpServers": {"editledger": {"command": "editledger", "args": ["-v", "."]}, "mine": {}}}\n'),
    (
        "codex",
        '[mcp_servers.editledger]\ncommand = "editledger"\nargs = ["."]\n[mcp_servers.editledger.env]\nA = "b"\n',
    ),
    ("claude-code", '{"mcpServers": {"editledger": {"command": "mine"}}}\n'),
]


@pytest.mark.parametrize("before", [(), ("setup",)])
@pytest.mark.parametrize(("client", "content"), BY_HAND)
def test_an_entry_that_a_person_wrote_is_not_lost_when_it_is_taken_back(
    client: str, content: str, before: tuple[str, ...], project: Path, home: Path
) -> None:
    settings = put(project / SERVED[client], content)
    for command in before:
        assert run(project, home, command, client).status == 0
    standing = files(project)
    assert run(project, home, "setup", client, "--remove", "--dry-run").status == 0
    assert files(project) == standing
    assert run(project, home, "setup", client, "--remove").status == 0
    copy = settings.with_name(f"{settings.name}.before-editledger")
    assert content.encode() in {path: files(project).get(path) for path in (settings, copy)}.values()


def test_where_more_was_changed_what_a_person_had_before_us_stays_in_the_copy(project: Path, home: Path) -> None:
    settings = put(project / ".codex" / "config.toml", '[mcp_servers.editledger.env]\nA = "b"\n')
    assert run(project, home, "setup", "codex").status == 0
    settings.write_text('model = "m"\n' + settings.read_text())
    assert run(project, home, "setup", "codex", "--remove").status == 0
    assert settings.read_text() == 'model = "m"\n'
    assert settings.with_name("config.toml.before-editledger").read_text() == '[mcp_servers.editledger.env]\nA = "b"\n'


def test_new_settings_files_are_as_closed_as_the_user_has_files_be(project: Path, home: Path) -> None:
    words = ["/bin/sh", "-c", 'umask 077 && exec "$@"', "sh", *PROGRAM, "setup", "claude-code"]
    settings = environment({"HOME": str(home)})
    subprocess.run(words, cwd=project, env=settings, check=True, capture_output=True, timeout=PATIENCE)
    made = [project / ".mcp.json", project / ".claude" / "settings.json"]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o600, 0o600]


@pytest.mark.parametrize(
    ("client", "name", "content"),
    [
        ("codex", ".codex/config.toml", '\ufeffmodel = "m"\r\n'),
        ("codex", ".codex/config.toml", "\ufeff"),
        ("codex", ".codex/config.toml", '\ufeff[mcp_servers.editledger]\ncommand = "mine"\n'),
        ("claude-code", ".claude/settings.json", '\ufeff{\n  "a": 1\n}\n'),
    ],
)
def test_a_byte_order_mark_stays_where_it_is(client: str, name: str, content: str, project: Path, home: Path) -> None:
    settings = put(project / name, content)
    assert run(project, home, "setup", client).status == 0
    text = settings.read_text("utf-8")
    assert text.startswith(content[:1])
    assert text.count("\ufeff") == 1
    assert "editledger" in tomllib.loads(text[1:])["mcp_servers"] if client == "codex" else "hooks" in loaded(text)
    assert run(project, home, "setup", client, "--remove").status == 0
    assert files(project) == {settings: content.encode(), project / "a.txt": b"one\n"}


@pytest.mark.parametrize(("client", "name"), [("claude-code", ".mcp.json"), ("codex", ".codex/config.toml")])
def test_settings_that_make_no_sense_are_left_alone_and_named(
    client: str, name: str, project: Path, home: Path
) -> None:
    path = project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("{ not this")
    before = files(project, home)
    refused = run(project, home, "setup", client)
    assert refused.status == 1
    assert str(path) in refused.said
    assert files(project, home) == before


@pytest.mark.parametrize(("client", "name", "event"), HOOKED)
@pytest.mark.parametrize("content", ["null", '["version"]'])
def test_settings_that_are_no_object_are_left_alone_and_named(
    client: str, name: str, event: str, content: str, project: Path, home: Path
) -> None:
    del event
    path = put(project / name, content)
    refused = run(project, home, "setup", client)
    assert refused.status == 1
    assert refused.said.startswith(f"cas: {path} can't be changed safely and was left as it is: ")
    assert run(project, home, "setup", client, "--remove").status == 0
    assert files(project) == {path: content.encode(), project / "a.txt": b"one\n"}


def test_a_file_that_can_not_be_changed_is_named_and_what_was_changed_before_it_is_told(project: Path) -> None:
    """The superuser could, but for the rights that are dropped."""
    settings = put(project / ".claude" / "settings.json", '{"mine": 1}')
    settings.parent.chmod(0o555)
    said = f"cas: {settings} can't be changed: Permission denied"
    ran = cas_unprivileged("setup", "claude-code", folder=project)
    assert (ran.status, ran.said) == (
        1,
        f"{said}. The files above were changed before that; run the same command again to continue.\n",
    )
    assert f"Changed {project / '.mcp.json'}:\n" in ran.text
    assert str(settings) not in ran.text
    assert files(settings.parent) == {settings: b'{"mine": 1}'}
    again = cas_unprivileged("setup", "claude-code", folder=project)
    assert (again.status, again.out, again.said) == (1, b"", f"{said}.\n")
    settings.parent.chmod(0o755)
    assert cas_unprivileged("setup", "claude-code", folder=project).status == 0
    assert cas_unprivileged("setup", "claude-code", "--remove", folder=project).status == 0
    assert files(project) == {settings: b'{"mine": 1}', project / "a.txt": b"one\n"}


def test_a_pipe_in_place_of_settings_is_named_and_waited_for_by_nobody(project: Path, home: Path) -> None:
    CommandRunner(project)
    (home / ".claude").mkdir()
    for path in (project / ".mcp.json", home / ".claude" / "settings.json"):
        os.mkfifo(path)
    refused = run(project, home, "setup", "claude-code")
    assert refused.status == 1
    assert refused.said == f"cas: {project / '.mcp.json'} is not a regular file and was left as it is\n"
    assert run(project, home, "setup", "claude-code", "--remove").status == 1
    status, found = diagnosis(project, home, "claude-code")
    assert status == 1
    assert not found["claude-code is set up"][0]


def test_a_folder_that_a_person_has_something_in_stays_when_ours_is_taken_back(project: Path, home: Path) -> None:
    (project / ".github" / "workflows").mkdir(parents=True)
    (project / ".vscode").mkdir()
    (project / ".vscode" / "tasks.json").write_text("{}")
    before = files(project)
    assert run(project, home, "setup", "vscode").status == 0
    assert run(project, home, "setup", "vscode", "--remove").status == 0
    assert files(project) == before
    assert (project / ".github" / "workflows").is_dir()
    assert not (project / ".github" / "hooks").exists()


def test_a_program_of_an_environment_that_only_this_shell_knows_is_named_by_its_place(
    project: Path, home: Path, tmp_path: Path
) -> None:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    for name in ("cas", "python"):
        (venv / "bin" / name).symlink_to(sys.executable)
    path = f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"
    words = [*PROGRAM, "setup", "cursor"]
    words[0] = str(venv / "bin" / "python")
    settings = {"HOME": str(home), "PATH": path}

    def named(**more: str) -> str:
        runner = environment(settings | more) | {"PYTHONPATH": os.pathsep.join([SOURCE, *sys.path])}
        subprocess.run(words, cwd=project, env=runner, check=True, capture_output=True, timeout=PATIENCE)
        hooks = json.loads((project / ".cursor" / "hooks.json").read_text())["hooks"]
        command: str = hooks["preToolUse"][0]["command"]
        return command

    assert named(VIRTUAL_ENV="") == "cas hook cursor"
    assert named(VIRTUAL_ENV=str(venv)) == f"{venv / 'bin' / 'cas'} hook cursor"


def test_settings_kept_elsewhere_through_a_link_stay_there(project: Path, home: Path, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.json"
    kept.write_text('{"theme": "dark"}\n')
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").symlink_to(kept)
    assert run(project, home, "setup", "claude-code", "--user").status == 0
    assert (home / ".claude" / "settings.json").is_symlink()
    assert "hook claude-code" in kept.read_text()


ELSEWHERE = [
    ("claude-code", "CLAUDE_CONFIG_DIR", [".claude.json", "settings.json"]),
    ("codex", "CODEX_HOME", ["config.toml", "hooks.json"]),
    ("gemini", "GEMINI_CLI_HOME", [".gemini/settings.json"]),
]


@pytest.mark.parametrize(("client", "variable", "names"), ELSEWHERE)
def test_a_user_whose_client_keeps_its_settings_elsewhere_is_set_up_there_and_told(
    client: str, variable: str, names: list[str], project: Path, home: Path
) -> None:
    place = home / "else" / "where"
    place.mkdir(parents=True)
    settings = {"HOME": str(home), variable: str(place)}

    def ran(*words: str) -> CommandResult:
        return cas(*words, folder=project, settings=settings)

    made = ran("setup", client, "--user")
    assert made.text.startswith(f"{variable} says where your settings of {client} are: {place}")
    assert sorted(files(home)) == sorted(place / name for name in names)
    CommandRunner(project)
    found = {one["check"]: one["said"] for one in ran("doctor", client, "--json").lines()}
    assert found[f"{client} is set up"].startswith(f"for the user, in {place}")
    assert found[f"{client} is set up"].endswith(f", as {variable} says")
    assert ran("setup", client, "--user", "--remove").status == 0
    assert files(home) == {}
    assert place.is_dir()  # a client that is told of it wants it there
    # A project's settings lie in it, and a place that depends on where one stands is none.
    ran("setup", client)
    assert files(home) == {}
    settings[variable] = "else/where"
    ran("setup", client, "--user")
    assert sorted(files(home, project)) != []
    assert [path for path in files(home, project) if "else" in path.parts] == []


@pytest.mark.parametrize(
    ("client", "platform", "place"),
    [
        ("vscode", "linux", "xdg/Code/User/mcp.json"),
        ("vscode", "darwin", "home/Library/Application Support/Code/User/mcp.json"),
        ("opencode", "linux", "xdg/opencode/opencode.json"),
        ("opencode", "darwin", "xdg/opencode/opencode.json"),
    ],
)
def test_a_users_settings_are_where_the_system_has_the_client_keep_them(
    client: str, platform: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Programs(cas="cas", server="editledger")
    scope = Scope(project=None, home=tmp_path / "home", platform=platform)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert plan(client, scope, programs)[0].path == tmp_path / place
    for without in ("", "relative"):
        monkeypatch.setenv("XDG_CONFIG_HOME", without)
        assert plan(client, scope, programs)[0].path == tmp_path / place.replace("xdg", "home/.config")


def test_a_project_that_is_set_up_is_a_workspace_that_knows_what_stands_in_it(project: Path, home: Path) -> None:
    assert run(project, home, "setup", "claude-code").status == 0
    (project / "a.txt").write_text("two\n")
    assert run(project, home, "record").status == 0
    (view,) = run(project, home, "log", "--json").lines()
    assert view["operation"] == "edit"


@pytest.mark.parametrize("words", [("--user", "--project"), ("--project", "--user")])
def test_what_is_set_up_is_a_project_or_what_is_a_users_and_not_both(
    words: tuple[str, str], project: Path, home: Path
) -> None:
    before = files(project, home)
    ran = run(project, home, "setup", "cursor", *words)
    assert (ran.status, ran.text) == (2, "")
    assert ran.said.startswith("cas: Pass --project or --user, not both.")
    assert files(project, home) == before


@pytest.mark.parametrize("taken", ["file", "link", "folder"])
def test_a_project_that_can_be_no_workspace_is_not_set_up(taken: str, project: Path, home: Path) -> None:
    place = project / ".cas"
    if taken == "file":
        place.touch()
    elif taken == "link":
        place.symlink_to(home)
    else:
        put(place / "somebodys", "own\n")
    before = files(project, home)
    ran = run(project, home, "setup", "cursor")
    assert (ran.status, ran.text) == (1, "")
    assert str(place) in ran.said
    assert files(project, home) == before


def test_doctor_says_what_is_set_up_and_what_is_not(project: Path, home: Path) -> None:
    CommandRunner(project)
    run(project, home, "setup", "cursor")
    found = {one["check"]: one["ok"] for one in run(project, home, "doctor", "codex", "--json").lines()}
    assert found["cursor is set up"]
    assert not found["codex is set up"]
    assert found["hooks had no errors"]


@pytest.mark.parametrize(
    ("client", "name", "event", "fault"),
    [
        (*hooked, fault)
        for number, hooked in enumerate(HOOKED)
        for at, fault in enumerate(["one is missing", "the program was elsewhere", "no JSON"])
        if WHOLE or at == number % 3
    ],
)
def test_doctor_finds_a_client_whose_hooks_are_in_place_in_part(
    client: str, name: str, event: str, fault: str, project: Path, home: Path
) -> None:
    CommandRunner(project)
    assert run(project, home, "setup", client).status == 0
    settings = project / name
    held = json.loads(settings.read_text())
    if fault == "one is missing":
        del held["hooks"][event]
        settings.write_text(json.dumps(held))
    elif fault == "no JSON":
        settings.write_text(settings.read_text().replace("{", "{,", 1))
    else:
        settings.write_text(re.sub(r'"command": "[^"]*cas hook', '"command": "/old/cas hook', settings.read_text()))
        assert "/old/" in settings.read_text()
    status, found = diagnosis(project, home)
    assert status == 1
    assert found[f"{client} is set up"] == (
        False,
        f"for the project, but incompletely: not all its edits are recorded. Run `cas setup {client}` to repair it",
    )
    assert "no client is set up" not in found


def test_doctor_finds_nothing_wrong_with_a_server_that_a_person_set_up_alone(project: Path, home: Path) -> None:
    CommandRunner(project)
    put(project / ".mcp.json", '{"mcpServers": {"editledger": {"command": "editledger", "args": ["/home/me"]}}}')
    status, found = diagnosis(project, home)
    assert status == 0
    assert found["claude-code is set up in part"] == (True, "for the project; run `cas setup claude-code` for the rest")
    status, found = diagnosis(project, home, "claude-code")
    assert status == 1
    assert not found["claude-code is set up"][0]


def test_doctor_minds_no_settings_that_have_nothing_of_ours(project: Path, home: Path) -> None:
    CommandRunner(project)
    put(project / ".claude" / "settings.json", "{")
    put(home / ".codex" / "config.toml", "[")
    put(project / ".mcp.json", '{"mcpServers": {"editledger": {"command": "mine"}}}')
    status, found = diagnosis(project, home)
    assert status == 0
    assert "no client is set up" in found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PATIENCE", 0.3)  # as long as any other, and quicker


def program(place: Path, does: str) -> str:
    place.write_text(f"#!/bin/sh\n{does}\n")
    place.chmod(0o755)
    return str(place)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("exec sleep 60", "no answer within 0.3 s, the longest that clients wait."),
        ("echo no", "the answer is not valid MCP: "),
        ("exec 0<&-; exit 1", "the answer is not valid MCP: "),
    ],
)
def test_doctor_says_what_to_do_about_a_server_that_does_not_answer_well(
    project: Path, tmp_path: Path, does: str, said: str
) -> None:
    CommandRunner(project)
    server = program(tmp_path / "its server", does)
    found = {one.check: one for one in doctor.examine(project, tmp_path, Programs(cas="true", server=server), [])}
    answer = found["the server answers"]
    assert not answer.ok
    assert answer.said.startswith(said)
    assert answer.said.endswith(f"`'{server}' {project} < /dev/null` shows its output")
    assert found["the command runs"].ok


@pytest.mark.usefixtures("impatient")
def test_doctor_says_what_to_do_about_a_command_that_takes_too_long(project: Path, tmp_path: Path) -> None:
    CommandRunner(project)
    slow = Programs(cas=program(tmp_path / "cas", "exec sleep 60"), server="/nonexistent")
    first, second, *_ = doctor.examine(project, tmp_path, slow, [])
    assert not first.ok
    assert first.said.endswith(f"otherwise `{slow.cas} --version < /dev/null` shows its output")
    assert (second.ok, second.said) == (False, "[Errno 2] No such file or directory: '/nonexistent'")
