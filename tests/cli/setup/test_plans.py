"""`cas setup` changes only its own entries in a client's settings, is idempotent, and `--remove` reverts it."""

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
from tests.support.client_files import SERVER_FILES, files, put, run
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
from tests.support.sampling import sampled_product

EVERY_CLIENT = pytest.mark.parametrize("client", WIRED)

NAMES = st.text("abc", min_size=1, max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=4)

COMMENTED_SETTINGS = """\
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


# ---- edits of JSON texts


@given(DOCUMENTS, st.lists(NAMES, min_size=1, max_size=3), VALUES, st.sampled_from([None, 2, "\t"]))
def test_setting_a_member_changes_no_other_member(
    document: dict[str, Any], path: list[str], value: object, indent: int | str | None
) -> None:
    text = json.dumps(document, indent=indent)
    try:
        changed = with_member(text, path, value)
    except JsonInvalid:
        return  # a value on the path is not an object
    assert loaded(changed) == json.loads(changed)
    parent: Any = document
    for key in path[:-1]:
        parent = parent.setdefault(key, {})
    parent[path[-1]] = value
    assert json.loads(changed) == document


@given(DOCUMENTS, NAMES, st.sampled_from([None, 2]))
def test_setting_and_removing_a_member_restores_the_document(
    document: dict[str, Any], name: str, indent: int | None
) -> None:
    text = json.dumps(document, indent=indent)
    assert json.loads(without_member(with_member(text, ["new", name], 1), ["new", name])) == document


@given(st.lists(VALUES, max_size=4), VALUES)
def test_an_item_is_appended_once(items: list[Any], value: object) -> None:
    text = appended(json.dumps({"a": items}), ["a"], value)
    assert json.loads(text)["a"] == (items if value in items else [*items, value])
    assert appended(text, ["a"], value) == text


@given(st.lists(st.integers(0, 3), max_size=5), st.integers(0, 3))
def test_removing_our_items_keeps_the_others(items: list[int], ours: int) -> None:
    left = loaded(discarded(json.dumps({"a": items, "b": 1}), ["a"], lambda item: item == ours))
    kept = [item for item in items if item != ours]
    assert left == ({"a": kept, "b": 1} if kept or not items else {"b": 1})


WITHOUT_TRAILING_COMMAS = (
    COMMENTED_SETTINGS.replace(",\n", "\n").replace(", //", " //").replace("// not light", ", // not light")
)
"""`COMMENTED_SETTINGS` without trailing commas."""


@pytest.mark.parametrize(
    "text",
    [
        COMMENTED_SETTINGS,
        WITHOUT_TRAILING_COMMAS,
        COMMENTED_SETTINGS.replace("\n", "\r\n"),
        WITHOUT_TRAILING_COMMAS.replace("\n", "\r\n"),
    ],
)
def test_comments_commas_and_line_ends_survive_a_change_and_its_removal(text: str) -> None:
    changed = appended(text, ["hooks", "PreToolUse"], {"ours": 1})
    changed = with_member(changed, ["mcpServers", "us"], {"command": "x"})
    for line in text.splitlines():
        assert line.rstrip(",") in changed
    assert ("\r\n" in changed) == ("\r\n" in text)
    assert changed.count("\n") in {changed.count("\r\n"), changed.count("\n") - changed.count("\r\n")}
    removed = without_member(changed, ["mcpServers", "us"])
    assert discarded(removed, ["hooks", "PreToolUse"], lambda item: item == {"ours": 1}) == text


@pytest.mark.parametrize("inside", ["\n    // the team's own go here\n  ", " /* the team's own go here */\n  "])
def test_an_empty_object_or_list_with_a_comment_is_kept(inside: str) -> None:
    text = f'{{\n  "servers": {{{inside}}},\n  "hooks": {{\n    "Stop": [{inside}]\n  }}\n}}\n'
    changed = with_member(appended(text, ["hooks", "Stop"], {"ours": 1}), ["servers", "us"], {"command": "x"})
    left = discarded(without_member(changed, ["servers", "us"]), ["hooks", "Stop"], lambda item: item == {"ours": 1})
    assert loaded(left) == loaded(text)
    assert left.count("the team's own go here") == 2
    assert without_member(left, ["servers", "us"]) == discarded(left, ["hooks", "Stop"], bool) == left


def test_a_comment_stays_on_its_line_when_a_member_is_added_after_it() -> None:
    changed = with_member('{\n  "a": 1 // about a\n}\n', ["b"], 2)
    assert changed == '{\n  "a": 1, // about a\n  "b": 2\n}\n'


@given(DOCUMENTS, NAMES, st.dictionaries(NAMES, VALUES, max_size=3))
def test_setting_several_members_keeps_the_others_of_their_object(
    document: dict[str, Any], name: str, members: dict[str, Any]
) -> None:
    changed = with_members(json.dumps(document), [name], members)
    current = document.get(name)
    assert json.loads(changed) == document | {name: current | members if isinstance(current, dict) else members}


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
def test_a_duplicate_name_is_refused_and_named(change: Callable[[str], str]) -> None:
    with pytest.raises(JsonInvalid, match=r'^"a" appears more than once'):
        change('{"a": {"c": 1}, "a": {"b": 1}}')


@pytest.mark.parametrize(
    "text", ["{", "[1", '{"a" 1}', "{} {}", '{"a": 01x}', "nul", '{"a": "\n"}', "[" * 300, "{1: 2}"]
)
def test_invalid_json_is_refused(text: str) -> None:
    with pytest.raises(JsonInvalid):
        loaded(text)


# ---- the command


def diagnosis(project: Path, home: Path, *clients: str) -> tuple[int, dict[str, tuple[bool, str]]]:
    """Return the exit status of `cas doctor`, and the result of each check."""
    ran = run(project, home, "doctor", *clients, "--json")
    return ran.status, {one["check"]: (one["ok"], one["said"]) for one in ran.lines()}


@pytest.mark.parametrize(("client", "scope"), sampled_product(list(WIRED), ["--project", "--user"]))
def test_setup_is_idempotent_and_remove_restores_every_file(client: str, scope: str, project: Path, home: Path) -> None:
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


@pytest.mark.parametrize("scope", ["--project", "--user"])
def test_remove_without_setup_changes_nothing(scope: str, project: Path, home: Path) -> None:
    ran = run(project, home, "setup", "codex", scope, "--remove")
    assert (ran.status, ran.said) == (0, "")
    assert [path.name for path in project.iterdir()] == ["a.txt"]
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("client", ["claude-code", "vscode"])
def test_hooks_exit_with_zero_where_our_command_is_not_installed(client: str, project: Path, home: Path) -> None:
    """Copilot's own program runs the hooks of both files and refuses a tool whose hook fails."""
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
    settings.write_text(before.replace(" || exit 0", ""))  # as an earlier version wrote it
    assert run(project, home, "setup", client).status == 0
    assert settings.read_text() == before


def test_hooks_in_copilots_format_have_its_version(project: Path, home: Path) -> None:
    assert run(project, home, "setup", "vscode").status == 0
    assert json.loads((project / ".github" / "hooks" / "editledger.json").read_text())["version"] == 1


def test_the_notification_hook_of_claude_code_runs_only_when_it_is_idle(project: Path, home: Path) -> None:
    assert run(project, home, "setup", "claude-code").status == 0
    hooks = json.loads((project / ".claude" / "settings.json").read_text())["hooks"]
    assert [entry["matcher"] for entry in hooks["Notification"]] == ["idle_prompt"]


def test_hook_timeouts_at_the_end_of_codex_fit_its_limit(project: Path, home: Path) -> None:
    assert run(project, home, "setup", "codex").status == 0
    hooks = json.loads((project / ".codex" / "hooks.json").read_text())["hooks"]
    seconds = {event: entry["hooks"][0]["timeout"] for event, (entry,) in hooks.items()}
    at_session_end = {event: seconds.pop(event) for event in ("SessionEnd", "Interrupt")}
    assert at_session_end == {"SessionEnd": 3, "Interrupt": 3}
    assert set(seconds.values()) == {30}
    assert {"PermissionRequest", "SubagentStart", "SubagentStop"} <= set(seconds)


def test_setup_of_codex_names_the_command_that_enables_hooks(project: Path, home: Path) -> None:
    assert "/hooks" in run(project, home, "setup", "codex").text
    assert "/hooks" not in run(project, home, "setup", "gemini").text


def test_setup_for_a_user_says_that_only_workspaces_are_recorded(project: Path, home: Path) -> None:
    message = "Only workspaces are recorded: run `cas init` in each folder."
    for _ in ("first setup", "repeated setup"):
        assert run(project, home, "setup", "codex", "--user").text.splitlines()[-1] == message
    assert not (project / ".cas").exists()
    for words in (["--user", "--dry-run"], ["--user", "--remove"], ["--project"]):
        assert message not in run(project, home, "setup", "codex", *words).text


def test_a_users_own_settings_are_kept_and_copied(project: Path, home: Path) -> None:
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(COMMENTED_SETTINGS)
    settings.chmod(0o600)
    config = project / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('# mine\nmodel = "m"\n\n[mcp_servers.other]\ncommand = "x"\n')
    for client in ("claude-code", "codex"):
        assert run(project, home, "setup", client).status == 0
    changed = loaded(settings.read_text())
    assert changed["theme"] == "dark"
    assert [entry["matcher"][:4] for entry in changed["hooks"]["PreToolUse"]] == ["Bash", "^(?!"]
    assert settings.stat().st_mode & 0o777 == 0o600
    assert settings.with_name("settings.json.before-editledger").read_text() == COMMENTED_SETTINGS
    parsed = tomllib.loads(config.read_text())
    assert set(parsed["mcp_servers"]) == {"other", "editledger"}
    assert config.read_text().startswith("# mine\n")
    for client in ("claude-code", "codex"):
        assert run(project, home, "setup", client, "--remove").status == 0
    assert loaded(settings.read_text()) == loaded(COMMENTED_SETTINGS)
    assert tomllib.loads(config.read_text()) == {"model": "m", "mcp_servers": {"other": {"command": "x"}}}


HOOK_FILES = [
    ("claude-code", ".claude/settings.json", "PostToolUse"),
    ("codex", ".codex/hooks.json", "PostToolUse"),
    ("gemini", ".gemini/settings.json", "AfterTool"),
    ("cursor", ".cursor/hooks.json", "postToolUse"),
    ("vscode", ".github/hooks/editledger.json", "PostToolUse"),
]
"""The file that holds a client's hooks in a project, and the name of one of the hooks."""


@EVERY_CLIENT
def test_arguments_that_a_person_added_to_our_server_are_kept(client: str, project: Path, home: Path) -> None:
    assert run(project, home, "setup", client).status == 0
    settings = project / SERVER_FILES[client]
    last = '"${workspaceFolder}"' if client == "vscode" else '"."'
    edited = settings.read_text().replace(last, f'"--read-only", {last}')
    assert "--read-only" in edited
    # The program has moved since: its path is updated.
    settings.write_text(re.sub(r'"[^"]*editledger"(,?\n)', r'"/old/editledger"\1', edited))
    assert "/old/" in settings.read_text()
    assert "stay as they are" not in run(project, home, "setup", client).text
    assert "".join(settings.read_text().split()) == "".join(edited.split())
    assert run(project, home, "setup", client, "--remove").status == 0
    assert not settings.exists()


@EVERY_CLIENT
def test_a_persons_settings_of_our_server_are_copied_before_removal_and_the_copy_is_named(
    client: str, project: Path, home: Path
) -> None:
    assert run(project, home, "setup", client).status == 0
    settings = project / SERVER_FILES[client]
    text = settings.read_text()
    before, key, after = text.rpartition('"command": ')  # the server's: hooks come first
    edited = f'{before}"env": {{"A": "b"}}, {key}{after}' if key else text
    edited = edited.replace("\ncommand", '\nenv = {A="b"}\ncommand', 1)
    settings.write_text(edited)
    copy = settings.with_name(f"{settings.name}.before-editledger")
    output = run(project, home, "setup", client, "--remove").text
    assert f"It has settings that `cas setup` did not write; a copy is kept as {copy}." in output
    assert copy.read_text() == edited
    assert not settings.exists()


@EVERY_CLIENT
def test_arguments_with_another_folder_are_kept_and_named(client: str, project: Path, home: Path) -> None:
    assert run(project, home, "setup", client).status == 0
    settings = project / SERVER_FILES[client]
    last = '"${workspaceFolder}"' if client == "vscode" else '"."'
    settings.write_text(settings.read_text().replace(last, '"/elsewhere"'))
    before = settings.read_text()
    output = run(project, home, "setup", client).text
    assert f'In {settings}, our server\'s arguments ["/elsewhere"] stay as they are; ' in output
    assert settings.read_text() == before


EARLIER_ENTRIES = [
    ("codex", '[mcp_servers.editledger.env]\nA = "b"\n'),
    ("codex", 'a = 1\n["mcp_servers"."editledger"]\n"command" = "old"\nenv.A = "b"\n\n# about the next\n[z]\nq = 1\n'),
    ("claude-code", '{"mcpServers": {"editledger": {"type": "http", "url": "http://localhost/"}}}\n'),
    ("gemini", json.dumps({"mcpServers": {"editledger": {"command": "mine", "args": ["."]}}}, indent=2) + "\n"),
    ("opencode", '{"mcp": {"editledger": {"type": "local", "command": ["mine", "."]}, "other": {}}}'),
]


@pytest.mark.parametrize(("client", "content"), EARLIER_ENTRIES)
def test_remove_restores_an_entry_of_our_name_that_existed_before_setup(
    client: str, content: str, project: Path, home: Path
) -> None:
    settings = put(project / SERVER_FILES[client], content)
    assert run(project, home, "setup", client).status == 0
    assert settings.read_text() != content
    assert "that was there before `cas setup`" in run(project, home, "setup", client, "--remove").text
    assert files(project) == {settings: content.encode(), project / "a.txt": b"one\n"}


HAND_WRITTEN_ENTRIES = [
    ("cursor", '{"mcpServers": {"editledger": {"command": "editledger", "args": ["."], "env": {"TOKEN": "mine"}}}}'),
    ("cursor", '{"mcpServers": {"editledger": {"command": "editledger", "args": ["-v", "."]}, "mine": {}}}\n'),
    (
        "codex",
        '[mcp_servers.editledger]\ncommand = "editledger"\nargs = ["."]\n[mcp_servers.editledger.env]\nA = "b"\n',
    ),
    ("claude-code", '{"mcpServers": {"editledger": {"command": "mine"}}}\n'),
]


@pytest.mark.parametrize(("before", "entry"), sampled_product([(), ("setup",)], HAND_WRITTEN_ENTRIES))
def test_remove_keeps_a_hand_written_entry_in_the_file_or_its_copy(
    entry: tuple[str, str], before: tuple[str, ...], project: Path, home: Path
) -> None:
    client, content = entry
    settings = put(project / SERVER_FILES[client], content)
    for command in before:
        assert run(project, home, command, client).status == 0
    before_removal = files(project)
    assert run(project, home, "setup", client, "--remove", "--dry-run").status == 0
    assert files(project) == before_removal
    assert run(project, home, "setup", client, "--remove").status == 0
    copy = settings.with_name(f"{settings.name}.before-editledger")
    assert content.encode() in {path: files(project).get(path) for path in (settings, copy)}.values()


def test_an_earlier_entry_stays_in_the_copy_when_the_file_was_changed_since(project: Path, home: Path) -> None:
    settings = put(project / ".codex" / "config.toml", '[mcp_servers.editledger.env]\nA = "b"\n')
    assert run(project, home, "setup", "codex").status == 0
    settings.write_text('model = "m"\n' + settings.read_text())
    assert run(project, home, "setup", "codex", "--remove").status == 0
    assert settings.read_text() == 'model = "m"\n'
    assert settings.with_name("config.toml.before-editledger").read_text() == '[mcp_servers.editledger.env]\nA = "b"\n'


def test_new_settings_files_respect_the_umask(project: Path, home: Path) -> None:
    words = ["/bin/sh", "-c", 'umask 077 && exec "$@"', "sh", *PROGRAM, "setup", "claude-code", "--server"]
    settings = environment({"HOME": str(home)})
    subprocess.run(words, cwd=project, env=settings, check=True, capture_output=True, timeout=PATIENCE)
    created = [project / ".mcp.json", project / ".claude" / "settings.json"]
    assert [path.stat().st_mode & 0o777 for path in created] == [0o600, 0o600]


@pytest.mark.parametrize(
    ("client", "name", "content"),
    [
        ("codex", ".codex/config.toml", '\ufeffmodel = "m"\r\n'),
        ("codex", ".codex/config.toml", "\ufeff"),
        ("codex", ".codex/config.toml", '\ufeff[mcp_servers.editledger]\ncommand = "mine"\n'),
        ("claude-code", ".claude/settings.json", '\ufeff{\n  "a": 1\n}\n'),
    ],
)
def test_a_byte_order_mark_is_kept(client: str, name: str, content: str, project: Path, home: Path) -> None:
    settings = put(project / name, content)
    assert run(project, home, "setup", client).status == 0
    text = settings.read_text("utf-8")
    assert text.startswith(content[:1])
    assert text.count("\ufeff") == 1
    assert "editledger" in tomllib.loads(text[1:])["mcp_servers"] if client == "codex" else "hooks" in loaded(text)
    assert run(project, home, "setup", client, "--remove").status == 0
    assert files(project) == {settings: content.encode(), project / "a.txt": b"one\n"}


@pytest.mark.parametrize(("client", "name"), [("claude-code", ".mcp.json"), ("codex", ".codex/config.toml")])
def test_invalid_settings_files_are_left_alone_and_named(client: str, name: str, project: Path, home: Path) -> None:
    path = project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("{ invalid")
    before = files(project, home)
    refused = run(project, home, "setup", client)
    assert refused.status == 1
    assert str(path) in refused.said
    assert files(project, home) == before


@pytest.mark.parametrize(("hook_file", "content"), sampled_product(HOOK_FILES, ["null", '["version"]']))
def test_settings_that_are_not_an_object_are_left_alone_and_named(
    hook_file: tuple[str, str, str], content: str, project: Path, home: Path
) -> None:
    client, name, _ = hook_file
    path = put(project / name, content)
    refused = run(project, home, "setup", client)
    assert refused.status == 1
    assert refused.said.startswith(f"cas: {path} can't be changed safely and was left as it is: ")
    assert run(project, home, "setup", client, "--remove").status == 0
    assert files(project) == {path: content.encode(), project / "a.txt": b"one\n"}


def test_an_unwritable_file_is_named_after_the_files_changed_before_it(project: Path) -> None:
    """Runs without the superuser's rights, because root could write the file."""
    settings = put(project / ".claude" / "settings.json", '{"mine": 1}')
    settings.parent.chmod(0o555)
    message = f"cas: {settings} can't be changed: Permission denied"
    ran = cas_unprivileged("setup", "claude-code", "--server", folder=project)
    assert (ran.status, ran.said) == (
        1,
        f"{message}. The files above were changed before that; run the same command again to continue.\n",
    )
    assert ran.text == f"Wrote {project / '.mcp.json'}: the MCP server\n"
    assert str(settings) not in ran.text
    assert files(settings.parent) == {settings: b'{"mine": 1}'}
    again = cas_unprivileged("setup", "claude-code", "--server", folder=project)
    assert (again.status, again.out, again.said) == (1, b"", f"{message}.\n")
    settings.parent.chmod(0o755)
    assert cas_unprivileged("setup", "claude-code", folder=project).status == 0
    assert cas_unprivileged("setup", "claude-code", "--remove", folder=project).status == 0
    assert files(project) == {settings: b'{"mine": 1}', project / "a.txt": b"one\n"}


def test_a_pipe_in_place_of_settings_is_refused_without_waiting(project: Path, home: Path) -> None:
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


def test_remove_keeps_folders_that_hold_other_files(project: Path, home: Path) -> None:
    (project / ".github" / "workflows").mkdir(parents=True)
    (project / ".vscode").mkdir()
    (project / ".vscode" / "tasks.json").write_text("{}")
    before = files(project)
    assert run(project, home, "setup", "vscode").status == 0
    assert run(project, home, "setup", "vscode", "--remove").status == 0
    assert files(project) == before
    assert (project / ".github" / "workflows").is_dir()
    assert not (project / ".github" / "hooks").exists()


def test_a_program_of_an_active_virtual_environment_is_named_by_its_path(
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

    def hook_command(**more: str) -> str:
        runner = environment(settings | more) | {"PYTHONPATH": os.pathsep.join([SOURCE, *sys.path])}
        subprocess.run(words, cwd=project, env=runner, check=True, capture_output=True, timeout=PATIENCE)
        hooks = json.loads((project / ".cursor" / "hooks.json").read_text())["hooks"]
        command: str = hooks["preToolUse"][0]["command"]
        return command.partition(" || ")[0]

    assert hook_command(VIRTUAL_ENV="") == "cas hook cursor"
    assert hook_command(VIRTUAL_ENV=str(venv)) == f"{venv / 'bin' / 'cas'} hook cursor"


def test_settings_behind_a_symlink_are_changed_at_its_target(project: Path, home: Path, tmp_path: Path) -> None:
    dotfile = tmp_path / "dotfiles.json"
    dotfile.write_text('{"theme": "dark"}\n')
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").symlink_to(dotfile)
    assert run(project, home, "setup", "claude-code", "--user").status == 0
    assert (home / ".claude" / "settings.json").is_symlink()
    assert "hook claude-code" in dotfile.read_text()


SETTINGS_VARIABLES = [
    ("claude-code", "CLAUDE_CONFIG_DIR", [".claude.json", "settings.json"]),
    ("codex", "CODEX_HOME", ["config.toml", "hooks.json"]),
    ("gemini", "GEMINI_CLI_HOME", [".gemini/settings.json"]),
]


@pytest.mark.parametrize(("client", "variable", "names"), SETTINGS_VARIABLES)
def test_setup_for_a_user_follows_the_clients_settings_variable_and_says_so(
    client: str, variable: str, names: list[str], project: Path, home: Path
) -> None:
    settings_folder = home / "else" / "where"
    settings_folder.mkdir(parents=True)
    settings = {"HOME": str(home), variable: str(settings_folder)}

    def ran(*words: str) -> CommandResult:
        return cas(*words, folder=project, settings=settings)

    set_up = ran("setup", client, "--user", "--server")
    assert set_up.text.startswith(f"{variable} says where your settings of {client} are: {settings_folder}")
    assert sorted(files(home)) == sorted(settings_folder / name for name in names)
    CommandRunner(project)
    found = {one["check"]: one["said"] for one in ran("doctor", client, "--json").lines()}
    assert found[f"{client} is set up"].startswith(f"for the user, in {settings_folder}")
    assert found[f"{client} is set up"].endswith(f", as {variable} says")
    assert ran("setup", client, "--user", "--remove").status == 0
    assert files(home) == {}
    assert settings_folder.is_dir()  # the client expects the folder that the variable names
    # The settings of a project are in the project, and a relative path in the variable is ignored.
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
def test_the_path_of_a_users_settings_depends_on_the_platform(
    client: str, platform: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Programs(cas="cas", server="editledger")
    scope = Scope(project=None, home=tmp_path / "home", platform=platform)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert plan(client, scope, programs, server=True)[0].path == tmp_path / place
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CONFIG_HOME", value)
        assert plan(client, scope, programs, server=True)[0].path == tmp_path / place.replace("xdg", "home/.config")


def test_setup_of_a_project_takes_a_baseline(project: Path, home: Path) -> None:
    assert run(project, home, "setup", "claude-code").status == 0
    (project / "a.txt").write_text("two\n")
    assert run(project, home, "record").status == 0
    (view,) = run(project, home, "log", "--json").lines()
    assert view["operation"] == "edit"


@pytest.mark.parametrize("words", [("--user", "--project"), ("--project", "--user")])
def test_project_and_user_together_are_refused(words: tuple[str, str], project: Path, home: Path) -> None:
    before = files(project, home)
    ran = run(project, home, "setup", "cursor", *words)
    assert (ran.status, ran.text) == (2, "")
    assert ran.said.startswith("cas: Pass --project or --user, not both.")
    assert files(project, home) == before


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_a_project_whose_store_cannot_be_created_is_not_set_up(kind: str, project: Path, home: Path) -> None:
    store = project / ".cas"
    if kind == "file":
        store.touch()
    elif kind == "link":
        store.symlink_to(home)
    else:
        put(store / "foreign", "own\n")
    before = files(project, home)
    ran = run(project, home, "setup", "cursor")
    assert (ran.status, ran.text) == (1, "")
    assert str(store) in ran.said
    assert files(project, home) == before


def test_doctor_lists_which_clients_are_set_up(project: Path, home: Path) -> None:
    CommandRunner(project)
    run(project, home, "setup", "cursor")
    found = {one["check"]: one["ok"] for one in run(project, home, "doctor", "codex", "--json").lines()}
    assert found["cursor is set up"]
    assert not found["codex is set up"]
    assert found["errors of hooks"]


@pytest.mark.parametrize(
    ("client", "name", "event", "fault"),
    [
        (*hook_file, fault)
        for number, hook_file in enumerate(HOOK_FILES)
        for at, fault in enumerate(["one is missing", "the program has moved", "not JSON"])
        if WHOLE or at == number % 3
    ],
)
def test_doctor_reports_a_client_with_incomplete_hooks(
    client: str, name: str, event: str, fault: str, project: Path, home: Path
) -> None:
    CommandRunner(project)
    assert run(project, home, "setup", client).status == 0
    settings = project / name
    parsed = json.loads(settings.read_text())
    if fault == "one is missing":
        del parsed["hooks"][event]
        settings.write_text(json.dumps(parsed))
    elif fault == "not JSON":
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


def test_doctor_accepts_a_server_that_was_set_up_without_hooks(project: Path, home: Path) -> None:
    CommandRunner(project)
    put(project / ".mcp.json", '{"mcpServers": {"editledger": {"command": "editledger", "args": ["/home/me"]}}}')
    status, found = diagnosis(project, home)
    assert status == 0
    assert found["claude-code is set up in part"] == (True, "for the project; run `cas setup claude-code` for the rest")
    status, found = diagnosis(project, home, "claude-code")
    assert status == 1
    assert not found["claude-code is set up"][0]


def test_doctor_ignores_settings_without_our_entries(project: Path, home: Path) -> None:
    CommandRunner(project)
    put(project / ".claude" / "settings.json", "{")
    put(home / ".codex" / "config.toml", "[")
    put(project / ".mcp.json", '{"mcpServers": {"editledger": {"command": "mine"}}}')
    status, found = diagnosis(project, home)
    assert status == 0
    assert "no client is set up" in found


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PATIENCE", 0.3)  # so that the test doesn't wait for the real one


def executable(path: Path, command: str) -> str:
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.usefixtures("short_patience")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("exec sleep 60", "no answer within 0.3 s, the longest that clients wait."),
        ("echo no", "the answer is not valid MCP: "),
        ("exec 0<&-; exit 1", "the answer is not valid MCP: "),
    ],
)
def test_doctor_says_how_to_inspect_a_server_that_does_not_answer(
    project: Path, tmp_path: Path, command: str, message: str
) -> None:
    CommandRunner(project)
    server = executable(tmp_path / "the server", command)
    found = {one.check: one for one in doctor.examine(project, tmp_path, Programs(cas="true", server=server), [])}
    answer = found["the server answers"]
    assert not answer.ok
    assert answer.said.startswith(message)
    assert answer.said.endswith(f"`'{server}' {project} < /dev/null` shows its output")
    assert found["the command runs"].ok


@pytest.mark.usefixtures("short_patience")
def test_doctor_says_how_to_inspect_a_command_that_takes_too_long(project: Path, tmp_path: Path) -> None:
    CommandRunner(project)
    slow = Programs(cas=executable(tmp_path / "cas", "exec sleep 60"), server=str(tmp_path / "none"))
    first, second, *_ = doctor.examine(project, tmp_path, slow, [])
    assert not first.ok
    assert first.said.endswith(f"otherwise `{slow.cas} --version < /dev/null` shows its output")
    assert (second.ok, second.said) == (False, f"[Errno 2] No such file or directory: '{slow.server}'")
