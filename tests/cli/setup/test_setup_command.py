"""What `cas setup` installs by default, by each option, and without a client's name; and what it says."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.hooks.clients import claude_code, cursor, gemini, opencode
from cli.setup.plans import WIRED
from tests.support.client_files import SERVER_FILES, files, put
from tests.support.command_runner import Answer, CommandResult, cas, on_terminal
from tests.support.git_repository import git, new_repository

HOOKS = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/hooks.json",
    "vscode": ".github/hooks/editledger.json",
    "opencode": ".opencode/plugins/editledger.js",
}
EVERY_CLIENT = pytest.mark.parametrize("client", WIRED)


def run(project: Path, home: Path, *words: str, **settings: str) -> CommandResult:
    own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    return cas(*words, folder=project, settings={**own, **settings})


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repository")


def names(project: Path) -> set[str]:
    return {path.relative_to(project).as_posix() for path in files(project)}


# ---- what is installed


@EVERY_CLIENT
def test_hooks_alone_are_the_default_and_server_adds_the_server(client: str, project: Path, home: Path) -> None:
    assert run(project, home, "setup", client).status == 0
    assert names(project) == {"a.txt", HOOKS[client]}
    assert not re.search(r"mcpServers|\"mcp\"", (project / HOOKS[client]).read_text())
    assert run(project, home, "setup", client, "--server").status == 0
    assert names(project) == {"a.txt", HOOKS[client], SERVER_FILES[client]}
    assert run(project, home, "setup", client).text.startswith("Nothing to change")
    assert run(project, home, "setup", client, "--remove").status == 0
    assert names(project) == {"a.txt"}


@EVERY_CLIENT
def test_doctor_is_content_with_hooks_alone(client: str, project: Path, home: Path) -> None:
    assert run(project, home, "setup", client).status == 0
    found = {one["check"]: one for one in run(project, home, "doctor", client, "--json").lines()}
    assert found[f"{client} is set up"]["ok"]
    assert found[f"{client} is set up"]["said"] == "for the project"


TOOL_EVENTS: Mapping[str, tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]] = {
    "claude-code": (
        claude_code.READS - claude_code.ENDS,
        ("Bash", "Write", "KillShell", "mcp__editledger__write_file", "ReadOnlyNoMore", "SomethingNew"),
        ("PreToolUse", "PostToolUse", "PostToolUseFailure"),
    ),
    "gemini": (gemini.READS, ("run_shell_command", "replace", "new_tool"), ("BeforeTool", "AfterTool")),
    "cursor": (cursor.READS, ("Shell", "Write", "MCP:write_file", "NewTool"), ("preToolUse", "postToolUse")),
}
"""By client: tools that only read, tools that may not, and the events that are about tools."""


@pytest.mark.parametrize("client", TOOL_EVENTS)
def test_hooks_are_asked_for_by_tools_that_can_change_files_and_not_by_reads(
    client: str, project: Path, home: Path
) -> None:
    run(project, home, "setup", client)
    reads, others, events = TOOL_EVENTS[client]
    hooks: dict[str, list[dict[str, Any]]] = json.loads((project / HOOKS[client]).read_text())["hooks"]
    for event in events:
        (entry,) = hooks[event]
        # What JavaScript's RegExp.test does with such an expression, re.search does too.
        assert [name for name in sorted(reads) if re.search(entry["matcher"], name)] == []
        assert [name for name in others if not re.search(entry["matcher"], name)] == []
    for event, entries in hooks.items():
        if "rompt" in event or "top" in event or "ession" in event:
            assert [entry.get("matcher") for entry in entries] == [None], event


def test_the_plugin_for_opencode_reports_no_tool_that_only_reads(project: Path, home: Path) -> None:
    run(project, home, "setup", "opencode")
    found = re.search(r"^const READS = new Set\((.*)\)$", (project / HOOKS["opencode"]).read_text(), re.MULTILINE)
    assert found is not None
    assert set(json.loads(found[1])) == opencode.READS
    assert not {"bash", "write", "edit", "patch"} & opencode.READS


def test_setup_of_an_earlier_version_is_narrowed_and_keeps_what_is_not_ours(project: Path, home: Path) -> None:
    ours = {"type": "command", "command": "cas hook claude-code || exit 0", "timeout": 30}
    mine = {"type": "command", "command": "my-check"}
    settings = put(
        project / HOOKS["claude-code"], json.dumps({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [mine, ours]}]}})
    )
    run(project, home, "setup", "claude-code")
    theirs, narrowed = json.loads(settings.read_text())["hooks"]["PreToolUse"]
    assert theirs == {"matcher": "*", "hooks": [mine]}
    assert narrowed["matcher"].startswith("^(?!")


# ---- for one user alone


@EVERY_CLIENT
def test_local_setup_is_invisible_to_git_and_removed_without_a_trace(client: str, repository: Path, home: Path) -> None:
    project = repository
    exclude = project / ".git" / "info" / "exclude"
    before = exclude.read_bytes()
    assert run(project, home, "setup", client, "--local", "--server").status == 0
    assert git(repository, "status", "--porcelain", "--untracked-files=all") == ""
    assert exclude.read_bytes() != before
    assert run(project, home, "setup", client, "--local", "--server").text.startswith("Nothing to change")
    assert run(project, home, "setup", client, "--local", "--remove").status == 0
    assert exclude.read_bytes() == before


def test_local_setup_of_claude_code_uses_its_own_local_files(repository: Path, home: Path) -> None:
    project = repository
    run(project, home, "setup", "claude-code", "--local", "--server")
    assert not (project / ".mcp.json").exists()
    assert "cas hook claude-code" in (project / ".claude" / "settings.local.json").read_text()
    servers = json.loads((home / ".claude.json").read_text())["projects"][str(project)]["mcpServers"]
    assert servers["editledger"]["args"] == ["."]
    found = {one["check"]: one for one in run(project, home, "doctor", "claude-code", "--json").lines()}
    assert found["claude-code is set up"]["said"] == "for the project, for you alone"


@EVERY_CLIENT
def test_local_setup_is_refused_where_git_shares_the_file(client: str, repository: Path, home: Path) -> None:
    project = repository
    name = HOOKS[client] if client != "claude-code" else ".claude/settings.local.json"
    put(project / name, "{}\n")
    git(repository, "add", "--force", name)
    before = files(project)
    refused = run(project, home, "setup", client, "--local")
    assert refused.status == 1
    assert f"git tracks {project / name}" in refused.said
    assert files(project) == before
    assert not (project / ".cas").exists()


def test_local_setup_in_a_folder_of_a_repository_names_files_from_its_top(repository: Path, home: Path) -> None:
    project = repository / "a [b]"
    project.mkdir()
    assert run(project, home, "setup", "cursor", "--local").status == 0
    assert (project / ".cursor" / "hooks.json").exists()
    assert git(repository, "status", "--porcelain", "--untracked-files=all", "--", "a [b]/.cursor") == ""


def test_local_setup_in_a_folder_that_is_not_utf8_is_refused_and_changes_nothing(repository: Path, home: Path) -> None:
    project = Path(os.fsdecode(os.fsencode(repository) + b"/p\xff"))
    project.mkdir()
    before = files(repository, home)
    for more in ((), ("--dry-run",)):
        refused = run(project, home, "setup", "claude-code", "--local", *more)
        assert (refused.status, refused.out) == (1, b"")
        assert "name a path that is not UTF-8" in refused.said
        assert files(repository, home) == before


def test_a_pipe_in_place_of_shared_settings_is_refused_without_waiting(repository: Path, home: Path) -> None:
    (repository / ".claude").mkdir()
    os.mkfifo(repository / ".claude" / "settings.json")
    refused = run(repository, home, "setup", "claude-code")
    assert refused.status == 1
    assert "settings.json is not a regular file" in refused.said


def test_local_setup_outside_a_repository_needs_no_git(project: Path, home: Path) -> None:
    assert run(project, home, "setup", "cursor", "--local", PATH=os.devnull).status == 0
    assert (project / ".cursor" / "hooks.json").exists()


def test_two_scopes_are_refused(project: Path, home: Path) -> None:
    for words in (("--local", "--user"), ("--project", "--local")):
        ran = run(project, home, "setup", "cursor", *words)
        assert ran.status == 2
        assert f"Pass {words[0]} or {words[1]}, not both." in ran.said
    assert names(project) == {"a.txt"}


# ---- what it says


@EVERY_CLIENT
def test_setup_says_in_five_lines_what_it_changes(client: str, project: Path, home: Path) -> None:
    text = run(project, home, "setup", client, "--server").text
    lines = text.splitlines()
    assert len(lines) <= 5
    assert re.search(
        rf"^Wrote {project / HOOKS[client]}: .*hooks at prompts, stops, sessions, and tools", text, re.MULTILINE
    )
    assert re.search(rf"^Wrote {project / SERVER_FILES[client]}: .*the MCP server", text, re.MULTILINE)
    assert lines[-1].endswith(f"`cas doctor {client}` checks that it works.") or "does not trust" in lines[-1]


@EVERY_CLIENT
def test_show_prints_the_entries_and_changes_nothing(client: str, project: Path, home: Path) -> None:
    shown = run(project, home, "setup", client, "--server", "--show")
    assert (shown.status, names(project), (project / ".cas").exists()) == (0, {"a.txt"}, False)
    run(project, home, "setup", client, "--server")
    for name in {HOOKS[client], SERVER_FILES[client]}:
        assert f"{project / name}:\n{(project / name).read_text()}" in shown.text


# ---- without a name


def test_clients_that_are_there_are_found_and_offered(project: Path, home: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "codex").write_text("#!/bin/sh\n")
    (programs / "codex").chmod(0o755)
    (home / ".gemini").mkdir()
    unanswerable_question = run(project, home, "setup", PATH=str(programs))
    assert unanswerable_question.status == 2
    assert "Name the clients. These were found: codex gemini." in unanswerable_question.said
    assert names(project) == {"a.txt"}


@pytest.mark.parametrize(("answer", "is_done"), [("y\n", True), ("n\n", False)])
def test_found_clients_are_set_up_after_a_yes(answer: str, project: Path, home: Path, *, is_done: bool) -> None:
    (home / ".gemini").mkdir()
    settings = {"HOME": str(home), "PATH": os.devnull}
    asked = Answer(after=f"Found Gemini CLI. Set it up for {project}?", typed=lambda: answer)
    status, _ = on_terminal(("setup",), asked, folder=project, settings=settings)
    assert (status == 0) is is_done
    assert ((project / HOOKS["gemini"]).exists()) is is_done


@pytest.mark.parametrize(("answer", "is_local"), [("\n", True), ("n\n", False)])
def test_in_a_repository_the_settings_of_one_user_are_offered_first(
    answer: str, repository: Path, home: Path, *, is_local: bool
) -> None:
    settings = {"HOME": str(home)}
    asked = Answer(after="Set Claude Code up for you alone, in .claude/settings.local.json", typed=lambda: answer)
    status, shown = on_terminal(("setup", "claude-code"), asked, folder=repository, settings=settings)
    assert status == 0
    assert ".claude/settings.json is part of the project: git shares it with everyone who works on it." in shown
    assert (repository / ".claude/settings.local.json").exists() is is_local
    assert (repository / ".claude/settings.json").exists() is not is_local


def test_a_setup_says_which_of_its_files_git_shares(repository: Path, project: Path, home: Path) -> None:
    shared = ".claude/settings.json is part of the project: git shares what you commit. For you alone: "
    assert shared in run(repository, home, "setup", "claude-code").text
    assert shared not in run(repository, home, "setup", "claude-code", "--remove").text
    assert "git shares" not in run(repository, home, "setup", "claude-code", "--local").text
    assert "git shares" not in run(project, home, "setup", "claude-code").text


def test_without_a_client_on_the_machine_the_known_ones_are_named(project: Path, home: Path) -> None:
    ran = run(project, home, "setup", PATH=os.devnull)
    assert ran.status == 2
    assert re.search(r"Name a client: none of claude-code, codex, .*, qwen-code was found\.", ran.said)


@pytest.mark.parametrize("scope", [(), ("--user",)])
def test_a_removal_without_a_name_finds_what_is_set_up_and_not_what_is_there(
    project: Path, home: Path, scope: tuple[str, ...]
) -> None:
    ran = run(project, home, "setup", "--remove", *scope, PATH=os.devnull)
    assert (ran.status, "qwen-code is set up there." in ran.said) == (2, True)
    (home / ".gemini").mkdir()
    run(project, home, "setup", "cursor", "codex", *scope)
    ran = run(project, home, "setup", "--remove", *scope, PATH=os.devnull)
    assert (ran.status, "These are set up there: codex cursor." in ran.said) == (2, True)
    assert run(project, home, "setup", "--remove", "--dry-run", *scope).text.count("Would change ") == 2


def test_several_clients_are_set_up_by_one_command(project: Path, home: Path) -> None:
    assert run(project, home, "setup", "cursor", "codex").status == 0
    assert names(project) == {"a.txt", HOOKS["cursor"], HOOKS["codex"]}


def test_doctor_names_what_differs_only_in_unicode_form(project: Path, home: Path) -> None:
    (project / "sub").mkdir()
    for name in ("e\u0301.txt", "\xe9.txt", "\xf6"):
        (project / "sub" / name).write_bytes(b"")
    run(project, home, "init")
    found = {one["check"]: one for one in run(project, home, "doctor", "--json").lines()}
    assert found["names differ only in Unicode form"]["said"].startswith("sub/\xe9.txt: there are two of each")
