"""Record changes of agents' tools and shells once, for the right session; a failing hook never stops an agent."""

import fcntl
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from cli.hooks.handler import CLIENTS, client_of
from mcptools.answers.edits import Answer, FileWritten
from mcptools.catalog.tool_list import TOOLS
from mcptools.server.results import success
from mcptools.tools.calls.notes import outcome_notes
from objstore import CallInfo, EditFilter, EditView, Operation, Origin, Status, UnreportedRejections, Workspace
from objstore.model.records import LEFT_OUT_NOTE
from tests.support.command_runner import (
    PATIENCE,
    PROGRAM,
    SOURCE,
    CommandRunner,
    cas,
    environment,
    unforked_cas,
    warm_programs,
)
from tests.support.faulty_disk import WHOLE
from tests.support.hooked_agents import (
    AGENTS,
    ClaudeCode,
    Codex,
    Copilot,
    Cursor,
    Gemini,
    OpenCode,
    Session,
    VSCode,
    evidence,
    hook,
    shell,
)
from tests.support.sampling import sampled_product

EVERY_AGENT = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.__name__)


def record_files(runner: CommandRunner) -> None:
    (runner.folder / "src").mkdir()
    (runner.folder / "a.txt").write_text("one\ntwo\nthree\n")
    (runner.folder / "src" / "b.py").write_text("x = 1\ny = 2\nz = 3\n")
    (runner.folder / "run.sh").write_text("echo\n")
    runner.done("record")


@pytest.fixture
def folder(runner: CommandRunner) -> Path:
    """Return a workspace with some files, of which a baseline has been taken."""
    return runner.prepared(record_files).folder


def edits(folder: Path, conversation: str = "") -> list[EditView]:
    """Return the recorded edits of a conversation ("": all)."""
    with Workspace.open(folder) as workspace:
        return workspace.history.edits(EditFilter(conversation=conversation))


def operations_and_paths(views: list[EditView]) -> list[tuple[Operation, str]]:
    """Return operation and path of each edit, sorted."""
    return sorted((view.edit.operation, os.fsdecode(view.edit.path)) for view in views)


# ---- whole sessions


@EVERY_AGENT
def test_a_session_is_recorded_edit_by_edit_with_its_prompt_and_tool(agent: type[Session], folder: Path) -> None:
    session = agent(folder)
    session.start()
    session.ask("make it better")
    session.write("new.txt", "hello\nworld\n")
    session.run("sed -i 's/two/2/' a.txt && mv src/b.py src/c.py && rm run.sh && mkdir d && echo n > d/n.txt")
    session.stop()
    found = edits(folder)
    assert operations_and_paths(found) == sorted(
        [
            (Operation.CREATE, "new.txt"),
            (Operation.EDIT, "a.txt"),
            (Operation.MOVE, "src/c.py"),
            (Operation.DELETE, "run.sh"),
            (Operation.CREATE, "d/n.txt"),
        ]
    )
    assert {view.edit.conversation for view in found} == {"session-1"}
    assert {view.status for view in found} == {Status.PENDING}
    assert {view.edit.notes["prompt"] for view in found} == {"make it better"}
    assert {view.edit.notes["client"] for view in found} == {session.client}
    assert len({view.edit.call for view in found}) == 2
    assert not (folder / ".cas" / "hook.log").exists()
    session.ask("and better still")
    session.run("echo more >> a.txt")
    with Workspace.open(folder) as workspace:
        turns = [(turn.conversation, turn.prompt, turn.client, len(turn.seqs)) for turn in workspace.sessions.turns()]
    assert turns == [
        ("session-1", "make it better", session.client, 5),
        ("session-1", "and better still", session.client, 1),
    ]


@EVERY_AGENT
def test_a_rejected_shell_edit_is_reported_to_the_agent_with_its_reason(agent: type[Session], folder: Path) -> None:
    session = agent(folder)
    session.start()
    session.ask("do it")
    session.run("printf 'one\\n2\\nthree\\n' > a.txt")
    session.run("echo 'w = 4' >> src/b.py")
    first = next(view.seq for view in edits(folder) if view.edit.path == b"a.txt")
    assert cas("reject", str(first), "--reason", "two is a word", folder=folder).status == 0
    assert (folder / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert (folder / "src" / "b.py").read_text().endswith("w = 4\n")
    context = session.ask("go on") + session.run("true")
    assert context.count("two is a word") == 1
    assert f"edit {first}" in context
    assert session.ask("and on") + session.run("true") == ""  # reported once


def test_edits_by_hand_between_two_tools_are_external(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("echo 1 >> a.txt")
    with (folder / "a.txt").open("a") as file:
        file.write("mine\n")
    (folder / "own.txt").write_text("mine\n")
    session.run("echo 2 >> a.txt")
    assert operations_and_paths(edits(folder, "session-1")) == [(Operation.EDIT, "a.txt")] * 2
    assert operations_and_paths(edits(folder, "external")) == [(Operation.CREATE, "own.txt"), (Operation.EDIT, "a.txt")]
    assert cas("reject", "--conversation", "session-1", folder=folder).status == 0
    assert (folder / "a.txt").read_text() == "one\ntwo\nthree\nmine\n"
    assert (folder / "own.txt").read_text() == "mine\n"


# ---- repeated, late and missing events


def test_a_repeated_event_records_nothing_again(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.calls += 1
    before, after = (session.shell_event("echo 1 >> a.txt", before=before) for before in (True, False))
    session.tell(before)
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(before)
    session.tell(after)
    session.tell(after)
    assert operations_and_paths(edits(folder)) == [(Operation.EDIT, "a.txt")]
    assert edits(folder)[0].edit.conversation == "session-1"


def test_a_tool_without_an_end_event_is_recorded_when_the_turn_ends(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.calls += 1
    session.tell(session.shell_event("echo 1 >> a.txt", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    session.stop()
    assert [view.edit.origin for view in edits(folder)] == [Origin.UNATTRIBUTED]
    # The call is over: later changes can't be its own.
    shell("echo 2 >> a.txt", folder=folder)
    session.stop()
    assert [view.edit.origin for view in edits(folder)] == [Origin.UNATTRIBUTED, Origin.EXTERNAL]


def test_changes_of_a_shell_whose_beginning_was_not_reported_are_unattributed(folder: Path) -> None:
    session = ClaudeCode(folder)
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(session.shell_event("echo 1 >> a.txt", before=False))
    assert [(view.edit.origin, view.status) for view in edits(folder)] == [(Origin.UNATTRIBUTED, Status.PENDING)]


def test_a_named_file_is_attributed_to_its_tool_without_a_start_event(folder: Path) -> None:
    session = Codex(folder)
    (folder / "new.txt").write_text("hello\n")
    session.tell(session.write_event("new.txt", "hello\n", before=False))
    assert [view.edit.conversation for view in edits(folder)] == ["session-1"]


def test_both_calls_keep_their_edits_when_the_second_starts_before_the_first_ends(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.calls = 1
    first = [session.shell_event("echo 1 >> a.txt", before=before) for before in (True, False)]
    session.calls = 2
    second = [session.shell_event("echo 2 >> src/b.py", before=before) for before in (True, False)]
    session.tell(first[0])
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(second[0])
    shell("echo 2 >> src/b.py", folder=folder)
    session.tell(first[1])
    session.tell(second[1])
    assert operations_and_paths(edits(folder)) == [(Operation.EDIT, "a.txt"), (Operation.EDIT, "src/b.py")]
    assert {view.owner for view in edits(folder)} == {"session-1"}


# ---- several agents at once


def test_changes_during_two_shells_are_external_and_later_ones_of_the_shell_that_still_runs(folder: Path) -> None:
    one, two = ClaudeCode(folder, "one"), Codex(folder, "two")
    one.tell(one.shell_event("sleep", before=True))
    two.tell(two.shell_event("sleep", before=True))
    shell("echo 1 >> a.txt", folder=folder)  # by either shell
    one.tell(one.shell_event("sleep", before=False))
    shell("echo 2 >> src/b.py", folder=folder)  # only the shell of agent two still runs
    two.tell(two.shell_event("sleep", before=False))
    assert operations_and_paths(edits(folder, "external")) == [(Operation.EDIT, "a.txt")]
    assert operations_and_paths(edits(folder, "two")) == [(Operation.EDIT, "src/b.py")]
    assert edits(folder, "one") == []


def test_a_named_file_is_attributed_to_its_tool_while_another_agent_runs_a_shell(folder: Path) -> None:
    one, two = ClaudeCode(folder, "one"), Codex(folder, "two")
    two.tell(two.shell_event("make", before=True))
    one.write("new.txt", "hello\n")
    shell("echo built > out.txt", folder=folder)
    two.tell(two.shell_event("make", before=False))
    assert operations_and_paths(edits(folder, "one")) == [(Operation.CREATE, "new.txt")]
    assert operations_and_paths(edits(folder, "two")) == [(Operation.CREATE, "out.txt")]


def test_a_start_hook_waits_while_another_hook_holds_the_lock(folder: Path) -> None:
    one, two = ClaudeCode(folder, "one"), Codex(folder, "two")
    one.tell(one.shell_event("make", before=True))
    began = json.dumps(two.shell_event("work", before=True)).encode()
    agents = folder / ".cas" / "agents"
    opened = evidence(folder, "open-")
    with (agents / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a hook does that has listed the open calls and now scans
        words = [*PROGRAM, "hook", two.client]
        with subprocess.Popen(words, cwd=folder, env=environment({}), stdin=subprocess.PIPE) as hooked:
            assert hooked.stdin is not None
            hooked.stdin.write(began)
            hooked.stdin.close()
            time.sleep(0.5)  # long enough that it would mostly be over; either way all of it has to hold
            assert hooked.poll() is None
            assert evidence(folder, "open-") == opened
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert hooked.wait(PATIENCE) == 0
    assert len(evidence(folder, "open-")) == len(opened) + 1


def test_edits_of_our_server_are_not_recorded_again_by_hooks(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.tell(session.shell_event("work", before=True))
    info = CallInfo(tool="write_file", conversation="server")
    with Workspace.open(folder) as workspace, workspace.call(info) as call:
        call.write("a.txt", b"by the server\n")
        call.commit()
    shell("echo n > n.txt", folder=folder)
    session.tell(session.shell_event("work", before=False))
    assert operations_and_paths(edits(folder, "server")) == [(Operation.REPLACE, "a.txt")]
    assert operations_and_paths(edits(folder, "session-1")) == [(Operation.CREATE, "n.txt")]


# ---- which files a tool may change

WRITING_TOOLS: dict[str, dict[str, str]] = {
    "claude-code": {
        "file_path": "Write Edit MultiEdit",
        "notebook_path": "NotebookEdit",
        "path": "Write Edit",  # in Copilot's own program
    },
    "gemini": {"file_path": "write_file replace", "absolute_path": "replace", "path": "write_file"},
    "cursor": {
        "file_path": "Write Edit TabWrite",
        "path": "StrReplace Delete MCP:write_file MCP:edit_file_diff MCP:multi_edit_text_file MCP:edit_text_file "
        "MCP:delete_file MCP:create_directory",
        "target_file": "MultiEdit",
        "target_notebook": "EditNotebook",
    },
    "opencode": {"filePath": "write edit multiedit", "file_path": "write", "path": "edit"},
    "vscode": {
        "filePath": "create_file replace_string_in_file insert_edit_into_file edit_notebook_file",
        "file_path": "createFile editFiles",
        "path": "deleteFile Write Edit create edit str_replace_editor",
    },
}
READING_TOOLS: dict[str, str] = {
    "claude-code": "Read Glob Grep LS NotebookRead WebFetch WebSearch TodoWrite TodoRead AskUserQuestion Task Agent "
    "TaskCreate TaskUpdate TaskList TaskGet Skill ToolSearch BashOutput EnterPlanMode ExitPlanMode "
    "ListMcpResourcesTool ReadMcpResourceTool mcp__editledger__write_file",
    "codex": "update_plan view_image web_search read_file list_dir grep_files mcp__editledger__write_file",
    "gemini": "read_file read_many_files list_directory glob search_file_content grep_search ask_user "
    "google_web_search web_fetch save_memory write_todos activate_skill get_internal_docs mcp_editledger_write_file",
    "cursor": "Read Grep Glob LS SemanticSearch WebSearch WebFetch ReadLints TodoWrite Task AskQuestion SwitchMode "
    "MCP:editledger " + " ".join(f"MCP:{name}" for name, traits in TOOLS.items() if traits.read_only),
    "opencode": "read glob grep list webfetch websearch todowrite todoread task subagent question skill "
    "editledger_undo",
    "vscode": "read_file list_dir file_search grep_search semantic_search get_errors fetch_webpage list_code_usages "
    "get_changed_files test_search get_terminal_output terminal_last_command manage_todo_list get_vscode_api "
    "github_repo view_image view rg grep glob web_fetch web_search ask_user update_todo task Read Agent "
    "vscode_askQuestions runSubagent search_subagent switch_agent tool_search test_failure read_project_structure "
    "search_workspace_symbols copilot_getNotebookSummary read_notebook_cell_output get_project_setup_info "
    "get_search_view_results terminal_selection get_task_output resolve_memory_file_uri mcp_editledger_x",
}


def paths_of(client: str, tool: str, given: object) -> tuple[str, ...] | None:
    """Return the paths that a client's tool may change according to its event (None: any)."""
    event = {"tool_name": tool, "tool_input": given, "tool": tool, "args": given, "session_id": "s"}
    return client_of(client).read(event).touched


@pytest.mark.parametrize("client", CLIENTS)
def test_a_tool_may_change_the_files_it_names_or_no_file_or_any_file(client: str) -> None:
    for field, tools in WRITING_TOOLS.get(client, {}).items():
        for tool in tools.split():
            assert paths_of(client, tool, {field: "f", "content": "x"}) == ("f",), tool
            assert paths_of(client, tool, {"content": "x"}) is None, tool
    for tool in READING_TOOLS[client].split():
        assert paths_of(client, tool, {"file_path": "f", "path": "f"}) == (), tool
    for tool in ("Bash", "shell", "run_in_terminal", "an unknown tool"):
        assert paths_of(client, tool, {"command": "x", "path": "f"}) is None, tool


@pytest.mark.parametrize(
    ("agent", "tool"),
    [
        (ClaudeCode, "AskUserQuestion"),
        (VSCode, "vscode_askQuestions"),
        (VSCode, "runSubagent"),
        (Cursor, "AskQuestion"),
        (Cursor, "MCP:read_file"),
    ],
)
def test_edits_by_hand_during_a_question_or_a_subagent_call_are_external(
    agent: type[Session], tool: str, folder: Path
) -> None:
    session = agent(folder)
    session.ask("go")
    session.calls += 1
    assert isinstance(session, ClaudeCode | Cursor)
    session.tell(session.tool_event(tool, {}, before=True))
    (folder / "a.txt").write_text("mine\n")
    session.tell(session.tool_event(tool, {}, before=False))
    session.stop()
    assert [view.edit.conversation for view in edits(folder)] == ["external"]


def test_the_files_of_a_patch_are_found_in_every_form_of_input() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a b\n*** Move to: c\n*** Add File: d\n*** Delete File: a b\n*** End Patch"
    )
    paths = ("a b", "c", "d")
    for client, given in (
        ("codex", {"command": patch}),
        ("codex", {"input": patch}),
        ("codex", {"command": ["apply_patch", patch]}),
        ("opencode", {"patchText": patch}),
        ("opencode", {"patch": patch}),
        ("vscode", {"input": patch}),
        ("vscode", patch),
    ):
        assert paths_of(client, "apply_patch", given) == paths, (client, given)
    for client in ("codex", "opencode", "vscode"):
        assert paths_of(client, "apply_patch", {"input": "no patch", "command": "x"}) is None
    assert paths_of("opencode", "patch", {"patchText": patch}) == paths
    assert paths_of("vscode", "editFiles", {"files": ["a", "b", "a", 7, ""]}) == ("a", "b")
    replacements = [{"filePath": "a"}, {"filePath": "b"}, 7]
    assert paths_of("vscode", "multi_replace_string_in_file", {"replacements": replacements}) == ("a", "b")


# ---- modes, binary files, names


def test_mode_changes_and_binary_files_of_a_shell_are_recorded_and_can_be_rejected(folder: Path) -> None:
    (folder / "bin").write_bytes(bytes(range(256)))
    cas("record", folder=folder)
    session = ClaudeCode(folder)
    session.run("chmod 755 run.sh && printf '\\000\\001' > bin && printf x > \"$(printf 'new\\nline')\"")
    found = edits(folder, "session-1")
    assert operations_and_paths(found) == [
        (Operation.CREATE, "new\nline"),
        (Operation.EDIT, "bin"),
        (Operation.EDIT, "run.sh"),
    ]
    assert not any(LEFT_OUT_NOTE in view.edit.notes for view in found), found
    rejected = cas("reject", "--conversation", "session-1", folder=folder)
    assert rejected.status == 0
    assert "may be older" not in rejected.said
    assert stat.S_IMODE((folder / "run.sh").stat().st_mode) == 0o644
    assert (folder / "bin").read_bytes() == bytes(range(256))
    assert not (folder / "new\nline").exists()


# ---- a failing hook never stops an agent

MALFORMED_EVENTS: dict[str, bytes] = {
    "empty": b"",
    "not JSON": b"{",
    "a list": b"[]",
    "deeply nested": b"[" * 100_000,
    "wrong types": b'{"session_id": 7, "cwd": [], "hook_event_name": {}, "tool_input": "x"}',
    "a number for a path": b'{"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Write", '
    b'"tool_input": {"file_path": 3}}',
    "not UTF-8": b"\xff\xfe",
}


@pytest.mark.parametrize("event", MALFORMED_EVENTS.values(), ids=MALFORMED_EVENTS)
def test_a_malformed_event_exits_with_zero_and_prints_nothing(event: bytes, tmp_path: Path) -> None:
    CommandRunner(tmp_path)
    ran = hook("claude-code", event, folder=tmp_path)
    assert (ran.status, ran.out, ran.err) == (0, b"", b"")


@pytest.mark.parametrize("words", [["a\udcffb"], []], ids=["not text", "missing"])
def test_a_missing_or_undecodable_client_name_is_logged_and_exits_with_zero(words: list[str], folder: Path) -> None:
    ran = unforked_cas("hook", *words, folder=folder, stdin=b"{}")
    assert (ran.status, ran.out, ran.err) == (0, b"", b"")
    assert (folder / ".cas" / "hook.log").exists()


@pytest.mark.parametrize(
    "words",
    [["-C", "gone", "hook", "codex"], ["hook", "codex", "-C", "gone"], ["--color", "no", "hook", "codex", "--new"]],
)
def test_a_wrong_command_line_of_a_hook_is_logged_and_exits_with_zero(words: list[str], folder: Path) -> None:
    """Some clients refuse the tool when a hook exits with status 2."""
    ran = cas(*words, folder=folder, stdin=b"{}")
    assert (ran.status, ran.out, ran.err) == (0, b"", b"")
    assert f"{' '.join(words)}: " in (folder / ".cas" / "hook.log").read_text()


@pytest.mark.parametrize("words", [["log", "--new", "hook"], ["--new", "log", "hook"]])
def test_other_commands_with_an_argument_named_hook_exit_as_usual(words: list[str], folder: Path) -> None:
    assert cas(*words, folder=folder).status == 2
    assert not (folder / ".cas" / "hook.log").exists()


@pytest.mark.parametrize("missing", ["hooks/handler.py", "hooks/clients/event.py", "hooks/clients/claude_code.py"])
def test_a_missing_module_during_an_update_does_not_stop_the_agent(missing: str, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(Path(SOURCE) / "cli", tmp_path / "cli")
    (tmp_path / "cli" / missing).unlink()
    settings = {"PYTHONPATH": os.pathsep.join([str(tmp_path), SOURCE])}
    ran = unforked_cas("hook", "claude-code", folder=folder, settings=settings, stdin=b"{}")
    # A status of 1 has the hook's command line leave a mark, and no client takes it for a refusal; else the log has it.
    is_logged = missing == "hooks/clients/claude_code.py"
    assert (ran.status, ran.out, ran.err) == (0 if is_logged else 1, b"", b"")
    assert (folder / ".cas" / "hook.log").exists() == is_logged


@pytest.mark.parametrize("redirection", ["<&-", ">&-", ">/dev/full", "<&- >&- 2>&-"])
def test_a_hook_with_closed_or_full_pipes_exits_with_zero(redirection: str, folder: Path) -> None:
    hooked = f"{shlex.join(PROGRAM)} hook claude-code {redirection}"
    event = json.dumps(ClaudeCode(folder).prompted("do it")).encode()
    ran = subprocess.run(["sh", "-c", hooked], input=event, check=False, cwd=folder, env=environment({}))
    assert ran.returncode == 0


def test_reporting_an_agents_edit_loads_no_document_of_a_file_of_which_no_edit_is_away(folder: Path) -> None:
    """An agent waits for what each event loads; its change of a file brings nothing back but what is away."""
    said = b""
    for number in range(2):
        given = {"tool_input": {"file_path": str(folder / "a.txt")}, "tool_use_id": f"call {number}"}
        for name in ("PreToolUse", "PostToolUse"):
            event = {"session_id": "s", "cwd": str(folder), "hook_event_name": name, "tool_name": "Write", **given}
            settings, given_event = {"PYTHONPROFILEIMPORTTIME": "1"}, json.dumps(event).encode()
            said = unforked_cas("hook", "claude-code", folder=folder, settings=settings, stdin=given_event).err
            (folder / "a.txt").write_text(f"by call {number}\n")
    assert [view.edit.conversation for view in edits(folder)] == ["s", "s"]
    loaded = {line.rpartition("|")[2].strip() for line in said.decode().splitlines()}
    assert "objstore.agents.detect" in loaded
    rare = ["weave", "text.formatting", "text.band", "agents.returned_lines", "review.calls.returned_files"]
    rare += ["history.snapshots", "disk.config.settings", "disk.file_changes", "worktree.scan", "storage.log.chunking"]
    rare += ["storage.index.queries.file_stat_queries"]
    assert [name for name in loaded if name.startswith(tuple(f"objstore.{each}" for each in rare))] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_a_field_of_the_wrong_type_counts_as_empty(client: str) -> None:
    junk: list[object] = [7, [], {}, None, True, 1.5, "x", {"file_path": 3, "command": [1]}, ["a"]]
    names = ["session_id", "conversation_id", "sessionID", "cwd", "hook_event_name", "hook", "tool_name", "tool"]
    names += ["tool_input", "args", "prompt", "workspace_roots", "directory", "tool_use_id"]
    for value in junk:
        event = client_of(client).read(dict.fromkeys(names, value))
        assert isinstance(event.conversation, str)
        assert event.touched is None or all(isinstance(path, str) for path in event.touched)


def test_a_fault_is_logged_and_shown_by_status_and_doctor(folder: Path) -> None:
    assert hook("claude-code", b"{", folder=folder).status == 0
    assert "hooks: 1 error," in cas("status", folder=folder).text
    found = cas("doctor", folder=folder)
    assert found.status == 1
    assert "errors of hooks" in found.text
    after_forget = cas("doctor", "--forget", folder=folder)
    assert after_forget.status == 0
    assert "ok   errors of hooks" in after_forget.text
    assert "faults" not in cas("status", folder=folder).text


@pytest.mark.parametrize("existing_log", ["", "2026-01-01T00:00:00Z codex: ValueError: of long ago\n"])
def test_doctor_reports_a_failing_hook_and_does_not_log_its_fault(
    existing_log: str, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(Path(SOURCE) / "cli", tmp_path / "cli")
    settings = warm_programs("editledger")  # and hooks of the copy, started cold
    settings["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "cli" / "start"), str(tmp_path), settings["PYTHONPATH"]])
    module, log = tmp_path / "cli" / "hooks" / "clients" / "codex.py", folder / ".cas" / "hook.log"
    source = module.read_text()
    module.write_text("raise ValueError('half of an update')\n")
    log.write_text(existing_log)
    ran = cas("doctor", "codex", "--json", folder=folder, settings=settings)
    found = {one["check"]: one for one in ran.lines()}
    assert not found["the hook of codex answers"]["ok"]
    assert "codex: ValueError: half of an update" in found["the hook of codex answers"]["said"]
    assert found["errors of hooks"]["ok"] == (not existing_log)
    assert log.read_text() == existing_log
    module.write_text(source)
    ran = cas("doctor", "codex", "--json", folder=folder, settings=settings)
    found = {one["check"]: one for one in ran.lines()}
    assert found["the hook of codex answers"] == {"check": "the hook of codex answers", "ok": True, "said": ""}


def test_the_hook_log_says_what_failed_and_is_truncated_when_large(folder: Path) -> None:
    log = folder / ".cas" / "hook.log"
    log.write_text("x" * (300 << 10))
    for event in (b"{", b"[]"):
        assert hook("codex", event, folder=folder).status == 0
    first, second = log.read_text().splitlines()
    assert re.fullmatch(r"[-0-9T:]{19}\.[0-9]{6}Z codex: JSONDecodeError: .*", first)
    assert re.fullmatch(r"[-0-9T:]{19}\.[0-9]{6}Z codex: TypeError: the event is no JSON object", second)


def test_an_unknown_client_is_logged_as_a_fault(folder: Path) -> None:
    ran = hook("unknown", b'{"session_id": "s"}', folder=folder)
    assert (ran.status, ran.out, ran.err) == (0, b"", b"")
    log = (folder / ".cas" / "hook.log").read_text()
    assert "unknown: ValueError: no client 'unknown'; known are claude-code, codex, gemini, cursor" in log


def test_a_damaged_store_does_not_stop_the_agent_and_missed_changes_are_recorded_later(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.tell(session.shell_event("work", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    segments = folder / ".cas" / "segments"
    segments.rename(folder / ".cas" / "away")
    ran = hook("claude-code", session.shell_event("work", before=False), folder=folder)
    assert (ran.status, ran.out) == (0, b"")
    (folder / ".cas" / "away").rename(segments)
    session.stop()
    assert operations_and_paths(edits(folder)) == [(Operation.EDIT, "a.txt")]
    assert edits(folder)[0].is_unattributed


def test_files_outside_the_workspace_and_in_git_are_not_recorded(folder: Path, tmp_path: Path) -> None:
    session = ClaudeCode(folder)
    (folder / ".git").mkdir()
    for path in (str(tmp_path / "out.txt"), str(folder / ".git" / "config"), str(folder / ".cas" / "lock")):
        event: dict[str, Any] = session.tool_event("Write", {"file_path": path, "content": "x"}, before=True)
        session.tell(event)
        session.tell(event | {"hook_event_name": "PostToolUse"})
    assert edits(folder) == []
    assert not (folder / ".cas" / "hook.log").exists()


def test_without_a_workspace_a_hook_creates_no_file(tmp_path: Path) -> None:
    session = ClaudeCode(tmp_path)
    session.start()
    session.run("echo x > x.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]


@EVERY_AGENT
def test_read_only_tools_append_nothing_to_the_log(agent: type[Session], folder: Path) -> None:
    session = agent(folder)
    tool = {"gemini": "read_file", "opencode": "read", "codex": "update_plan"}.get(session.client, "Read")
    size = sum(path.stat().st_size for path in (folder / ".cas" / "segments").iterdir())
    for before in (True, False):
        event = session.shell_event("x", before=before)
        name = "tool" if session.client == "opencode" else "tool_name"
        session.tell(event | {name: tool})
    assert sum(path.stat().st_size for path in (folder / ".cas" / "segments").iterdir()) == size


def test_edits_of_subagents_are_recorded_once_with_the_subagents_name(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.start()
    session.ask("have it looked through")
    session.calls = 1
    task = {"subagent_type": "reviewer", "prompt": "mend the names"}
    session.tell(session.tool_event("Task", task, before=True))

    def of_subagent(event: dict[str, Any]) -> dict[str, Any]:
        return event | {"agent_id": "agent-7", "agent_type": "reviewer", "tool_use_id": "toolu_inner"}

    session.tell(of_subagent(session.write_event("new.txt", "new\n", before=True)))
    (folder / "new.txt").write_text("new\n")
    session.tell(of_subagent(session.write_event("new.txt", "new\n", before=False)))
    session.tell(of_subagent(session.shell_event("sed -i s/two/2/ a.txt", before=True)))
    shell("sed -i s/two/2/ a.txt", folder=folder)
    session.tell(of_subagent(session.shell_event("sed -i s/two/2/ a.txt", before=False)))
    session.tell(session.tool_event("Task", task, before=False))
    session.run("echo four >> a.txt")
    session.stop()
    found = edits(folder)
    names = [(os.fsdecode(view.edit.path), view.edit.tool, view.edit.notes.get("agent", "")) for view in found]
    assert names == [("new.txt", "Write", "reviewer"), ("a.txt", "Bash", "reviewer"), ("a.txt", "Bash", "")]
    assert {view.edit.conversation for view in found} == {session.name}
    assert {view.edit.notes["prompt"] for view in found} == {"have it looked through"}


def of_helper(event: dict[str, Any], name: str, kind: str, prompt: str) -> dict[str, Any]:
    """Return an event of a subagent, for the prompt with this id ("": the client names none)."""
    named = {"prompt_id": prompt} if prompt else {}
    return event | {"agent_id": name, "agent_type": kind} | named


@pytest.mark.parametrize("prompt_id", ["", "p1"])
@pytest.mark.parametrize("is_reported", [True, False])
def test_edits_of_a_subagent_belong_to_the_prompt_that_sent_it_however_late_it_ends(
    folder: Path, prompt_id: str, *, is_reported: bool
) -> None:
    session = ClaudeCode(folder)
    session.start()
    session.tell(session.prompted("send a helper") | ({"prompt_id": "p1"} if prompt_id else {}))
    if is_reported or not prompt_id:
        session.tell(of_helper(session.base("SubagentStart"), "agent-7", "worker", prompt_id))
    session.stop()
    session.tell(session.prompted("and do this yourself") | ({"prompt_id": "p2"} if prompt_id else {}))
    for path, change in (("a.txt", "sed -i s/two/2/ a.txt"), ("late.txt", "echo late > late.txt")):
        before, after = session.another_call(is_shell=True)
        session.tell(of_helper(before, "agent-7", "worker", prompt_id))
        shell(change, folder=folder)
        session.tell(of_helper(after, "agent-7", "worker", prompt_id))
        assert os.fsdecode(edits(folder)[-1].edit.path) == path
    session.run("echo four >> a.txt")
    session.stop()
    with Workspace.open(folder) as workspace:
        prompts = {turn.number: turn.prompt for turn in workspace.sessions.turns()}
    found = [(prompts[view.edit.turn], view.edit.notes["prompt"]) for view in edits(folder)]
    assert found == [("send a helper",) * 2, ("send a helper",) * 2, ("and do this yourself",) * 2]


def test_a_late_report_of_a_call_belongs_to_the_prompt_that_the_client_names(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.tell(session.prompted("first") | {"prompt_id": "p1"})
    session.tell(session.prompted("second") | {"prompt_id": "p2"})
    event = session.write_event("new.txt", "new\n", before=True) | {"prompt_id": "p1"}
    session.tell(event)
    (folder / "new.txt").write_text("new\n")
    session.tell(session.write_event("new.txt", "new\n", before=False) | {"prompt_id": "p1"})
    unknown = session.write_event("b.txt", "new\n", before=True) | {"prompt_id": "p3", "tool_use_id": "other"}
    session.tell(unknown)
    (folder / "b.txt").write_text("new\n")
    session.tell(session.write_event("b.txt", "new\n", before=False) | {"prompt_id": "p3", "tool_use_id": "other"})
    assert [view.edit.notes["prompt"] for view in edits(folder)] == ["first", "second"]


def test_one_subagent_s_edits_are_listed_and_decided_on_without_the_others_(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("have it done")
    for name, kind in (("agent-7", "worker"), ("agent-8", "worker"), ("agent-9", "reviewer")):
        session.tell(of_helper(session.base("SubagentStart"), name, kind, ""))
        session.calls += 1
        session.tell(of_helper(session.write_event(f"{name}.txt", "new\n", before=True), name, kind, ""))
        (folder / f"{name}.txt").write_text("new\n")
        session.tell(of_helper(session.write_event(f"{name}.txt", "new\n", before=False), name, kind, ""))
        session.tell(of_helper(session.base("SubagentStop"), name, kind, ""))
    session.run("echo four >> a.txt")
    session.stop()

    def listed(*options: str) -> set[str]:
        lines = cas("log", *options, "--json", folder=folder).lines()
        assert lines == cas("status", *options, "--json", folder=folder).lines()
        return {Path(line["file_path"]).name for line in lines}

    assert listed("--agent", "agent-7") == {"agent-7.txt"}
    assert listed("--agent", "worker") == {"agent-7.txt", "agent-8.txt"}
    assert listed("--agent", "worker", "--session", "1", "--turn", "1") == {"agent-7.txt", "agent-8.txt"}
    unknown = cas("reject", "--agent", "agent-1", folder=folder)
    assert (unknown.status, unknown.said) == (1, "cas: No agent of a session is named 'agent-1' here.\n")
    assert cas("accept", "--agent", "agent-8", folder=folder).status == 0
    assert cas("reject", "--agent", "agent-7", folder=folder).status == 0
    assert {path: path.exists() for path in sorted(folder.glob("agent-*"))} == {
        folder / "agent-8.txt": True,
        folder / "agent-9.txt": True,
    }
    statuses = [view.status for view in edits(folder)]
    assert statuses == [Status.REJECTED, Status.ACCEPTED, Status.PENDING, Status.PENDING]
    assert "agent-9.txt" in cas("diff", "--agent", "reviewer", folder=folder).text
    assert "a.txt" not in cas("diff", "--agent", "reviewer", folder=folder).text
    assert cas("blame", "agent-9.txt", "--agent", "agent-9", folder=folder).text.count("\n") == 1


def test_rejections_are_reported_to_the_parent_session_and_not_to_its_subagent(folder: Path) -> None:
    for agent in (ClaudeCode, Codex):
        session = agent(folder, f"session-{agent.client}")
        session.run("sed -i s/two/2/ a.txt")
        last = edits(folder)[-1].seq
        assert cas("reject", str(last), "--reason", "two is a word", folder=folder).status == 0
        inner = {"agent_id": "agent-7", "agent_type": "reviewer"}
        assert session.tell(session.shell_event("true", before=True) | inner) == ""
        assert session.tell(session.shell_event("true", before=False) | inner) == ""
        assert "two is a word" in session.run("true")


def test_opencode_gets_a_rejection_only_where_its_plugin_has_a_place_for_it(folder: Path) -> None:
    session = OpenCode(folder)
    session.run("echo 1 >> a.txt")
    assert cas("reject", "1", "--reason", "not wanted", folder=folder).status == 0
    silent = session.tool_event("other_search", {}, before=False) | {"hears": False}
    assert session.tell(silent) == ""  # nothing is lost by that
    assert session.tell(session.prompted("and on") | {"hears": False}) == ""
    assert "not wanted" in session.ask("and on")
    assert session.run("true") == ""


def test_a_background_task_s_notice_in_claude_code_is_no_prompt_and_ends_the_task(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    began, ended = session.another_call(is_shell=True)
    session.tell(began)
    session.tell(ended | {"tool_response": {"backgroundTaskId": "b1"}})
    task = {"id": "b1", "type": "shell", "status": "running", "command": "make"}
    session.tell(session.stopped() | {"background_tasks": [task]})
    said = "<task-notification>\n<task-id>b1</task-id>\n<status>{}</status>\n</task-notification>"
    session.ask(said.format("running"))
    assert [call["state"] for call in cas("status", "--json", folder=folder).json()["running_calls"]] == [
        "in the background"
    ]
    session.ask(said.format("completed"))
    assert cas("status", "--json", folder=folder).json()["running_calls"] == []
    session.run("echo 1 >> a.txt")
    (view,) = edits(folder)
    assert view.edit.notes["prompt"] == "go"
    with Workspace.open(folder) as workspace:
        assert [turn.prompt for turn in workspace.sessions.turns()] == ["go"]


def test_edits_of_opencode_subagents_belong_to_the_parent_session(folder: Path) -> None:
    session = OpenCode(folder)
    session.start()
    session.ask("do both")
    task = session.tool_event("task", {}, before=True)
    session.tell(task)
    children = [{"agent_id": "ses_A", "agent": "coder"}, {"agent_id": "ses_B", "agent": "tester"}]
    for child in children:
        session.tell(session.started() | child)
        session.tell(session.prompted("your part of it") | child)
    events = []
    for child in children:
        session.calls += 1
        events.append(session.shell_event("make", before=True) | child)
        session.tell(events[-1])
    shell("echo new > new.txt; echo 1 >> a.txt", folder=folder)
    assert session.tell(events[0] | {"hook": "tool.execute.after"}) == ""
    session.tell(session.stopped() | children[0])  # the other subagent's call still runs
    shell("echo 2 >> a.txt", folder=folder)
    session.tell(events[1] | {"hook": "tool.execute.after"})
    session.tell(session.stopped() | children[1])
    found = edits(folder)
    assert {view.edit.conversation for view in found} == {session.name}
    assert {view.edit.notes["prompt"] for view in found} == {"do both"}
    assert cas("reject", "1", "--reason", "not wanted", folder=folder).status == 0
    assert "not wanted" in session.tell(task | {"hook": "tool.execute.after", "hears": True})


def test_the_turn_of_a_subagent_ends_no_call_of_its_session(folder: Path) -> None:
    session = Codex(folder)
    session.ask("do it")
    session.tell(session.shell_event("make", before=True))
    for event in (session.prompted("look at it"), session.stopped()):
        session.tell(event | {"agent_id": "agent-7", "agent_type": "reviewer"})
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(session.shell_event("make", before=False))
    assert [(view.edit.conversation, view.edit.notes["prompt"]) for view in edits(folder)] == [("session-1", "do it")]


# ---- refused tools and interrupted turns


@pytest.mark.parametrize(
    ("agent", "denial"),
    [
        (ClaudeCode, {"hook_event_name": "PermissionDenied", "reason": "Blocked by classifier"}),
        (Cursor, {"hook_event_name": "postToolUseFailure", "failure_type": "permission_denied"}),
    ],
    ids=["claude-code", "cursor"],
)
def test_a_denied_tool_claims_no_changes(agent: type[Session], denial: dict[str, str], folder: Path) -> None:
    session = agent(folder)
    for event in (session.shell_event("make", before=True), session.write_event("a.txt", "x", before=True)):
        session.tell(event)
        with (folder / "a.txt").open("a") as file:
            file.write("mine\n")  # during the permission request
        session.tell(event | denial)
        (folder / "own.txt").open("a").close()
    session.stop()
    assert {view.edit.conversation for view in edits(folder)} == {"external"}
    assert not evidence(folder, "open-")


@pytest.mark.parametrize(("agent", "name"), [(ClaudeCode, "StopFailure"), (Codex, "Interrupt"), (Codex, "SessionEnd")])
def test_an_interrupted_turn_ends_its_calls(agent: type[Session], name: str, folder: Path) -> None:
    session = agent(folder)
    session.tell(session.shell_event("make", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    session.tell(session.stopped() | {"hook_event_name": name})
    shell("echo 2 >> a.txt", folder=folder)
    session.stop()
    assert [view.edit.origin for view in edits(folder)] == [Origin.UNATTRIBUTED, Origin.EXTERNAL]


@pytest.mark.parametrize("agent", [Gemini, Copilot], ids=lambda agent: agent.__name__)
def test_concurrent_tools_without_call_ids_each_claim_their_own_file(agent: type[Session], folder: Path) -> None:
    session = agent(folder)
    first, second = (session.write_event(name, "x\n", before=True) for name in ("a.txt", "run.sh"))
    session.tell(first)
    (folder / "a.txt").write_text("x\n")
    (folder / "run.sh").write_text("mine\n")  # by a person, before the second call starts
    session.tell(second)
    (folder / "run.sh").write_text("x\n")
    for name in ("a.txt", "run.sh"):
        session.tell(session.write_event(name, "x\n", before=False))
    assert operations_and_paths(edits(folder, "session-1")) == [(Operation.EDIT, "a.txt"), (Operation.EDIT, "run.sh")]
    assert operations_and_paths(edits(folder, "external")) == [(Operation.EDIT, "run.sh")]
    assert not evidence(folder, "open-")


@pytest.mark.parametrize("client", ["vscode", "claude-code"])
def test_patches_of_copilot_name_their_files_and_a_failed_tool_ends(client: str, folder: Path) -> None:
    session = Copilot(folder)
    session.client = client
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** Delete File: run.sh\n*** End Patch\n"
    session.tell(session.tool_event("apply_patch", patch, before=True))
    shell("sed -i s/two/2/ a.txt && rm run.sh && echo mine > own.txt", folder=folder)
    session.tell(session.tool_event("apply_patch", patch, before=False))
    failed = session.base("PostToolUseFailure") | {"tool_name": "bash", "tool_input": {"command": "make"}, "error": "2"}
    session.tell(session.shell_event("make", before=True))
    shell("echo made > made.txt", folder=folder)
    session.tell(failed)
    (folder / "late.txt").write_text("mine\n")
    session.stop()
    by_session = [(Operation.CREATE, "made.txt"), (Operation.DELETE, "run.sh"), (Operation.EDIT, "a.txt")]
    assert operations_and_paths(edits(folder, "session-1")) == by_session
    assert operations_and_paths(edits(folder, "external")) == [
        (Operation.CREATE, "late.txt"),
        (Operation.CREATE, "own.txt"),
    ]


@pytest.mark.parametrize("agent", [OpenCode, VSCode, Copilot], ids=lambda agent: agent.__name__)
def test_a_call_reported_by_a_clients_own_hooks_and_claude_codes_is_recorded_once(
    agent: type[Session], folder: Path
) -> None:
    own = agent(folder)
    other = ClaudeCode(folder) if agent is OpenCode else agent(folder)  # which uses Claude Code's format
    other.client = "claude-code"
    for session in (own, other):
        session.tell(session.shell_event("echo 1 >> a.txt", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    for session in (other, own):
        session.tell(session.shell_event("echo 1 >> a.txt", before=False))
    own.stop()
    assert [(view.edit.conversation, view.edit.path) for view in edits(folder)] == [("session-1", b"a.txt")]
    assert not evidence(folder, "open-")


@pytest.mark.parametrize("is_both", [False, True], ids=["claude-code", "both"])
def test_the_claude_code_hook_knows_the_tools_of_vscode(folder: Path, *, is_both: bool) -> None:
    own, other = VSCode(folder), VSCode(folder)
    other.client = "claude-code"
    given = {"filePath": str(folder / "a.txt"), "oldString": "two", "newString": "2"}
    for tool in ("read_file", "replace_string_in_file"):
        for session in (own, other):
            session.calls += 1
        sessions = (own, other) if is_both else (other,)
        for session in sessions:
            session.tell(session.tool_event(tool, given, before=True))
        with (folder / "run.sh").open("a") as file:
            file.write("mine\n")
        if tool != "read_file":
            shell("sed -i s/two/2/ a.txt", folder=folder)
        for session in sessions:
            session.tell(session.tool_event(tool, given, before=False))
    other.stop()
    assert operations_and_paths(edits(folder, "session-1")) == [(Operation.EDIT, "a.txt")]
    assert operations_and_paths(edits(folder, "external")) == [(Operation.EDIT, "run.sh")]


@pytest.mark.parametrize("agent", [VSCode, Copilot], ids=lambda agent: agent.__name__)
def test_a_rejection_is_reported_with_the_next_result_where_prompts_carry_no_answer(
    agent: type[Session], folder: Path
) -> None:
    session = agent(folder)
    session.client = "claude-code"  # it also runs Claude Code's hooks
    session.run("sed -i s/two/2/ a.txt")
    assert cas("reject", "1", "--reason", "two is a word", folder=folder).status == 0
    assert session.ask("go on") == ""
    assert "two is a word" in session.run("true")


def test_a_session_in_another_folder_still_ends_its_calls_in_its_project(folder: Path, tmp_path: Path) -> None:
    session = ClaudeCode(folder)
    session.tell(session.shell_event("make", before=True))
    shell("echo 1 >> a.txt", folder=folder)
    stopped_elsewhere = session.stopped() | {"cwd": str(tmp_path)}
    begun_elsewhere = session.shell_event("work", before=True) | {"cwd": str(tmp_path), "tool_use_id": "elsewhere"}
    for event in (stopped_elsewhere, begun_elsewhere):
        ran = cas(
            "hook",
            "claude-code",
            folder=tmp_path,
            settings={"CLAUDE_PROJECT_DIR": str(folder)},
            stdin=json.dumps(event).encode(),
        )
        assert (ran.status, b"hookSpecificOutput" in ran.out, ran.err) == (0, False, b"")
    shell("echo 2 >> a.txt", folder=folder)
    session.stop()
    assert [view.edit.origin for view in edits(folder)] == [Origin.UNATTRIBUTED, Origin.EXTERNAL]


# ---- reports of rejections to agents


def rejections_reported_to(session: ClaudeCode) -> list[str]:
    """Return the rejections that the agent reads at the next prompt."""
    return session.ask("go on").splitlines()[1:]


def test_a_rejection_whose_report_could_not_be_written_is_reported_again(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("sed -i s/two/2/ a.txt")
    assert cas("reject", "1", "--reason", "two is a word", folder=folder).status == 0
    event = json.dumps(session.prompted("go on")).encode()
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [*PROGRAM, "hook", "claude-code"],
            cwd=folder,
            env=environment({}),
            input=event,
            stdout=full,
            timeout=PATIENCE,
            check=False,
        )
    assert ran.returncode == 0
    assert "two is a word" in session.ask("go on")
    assert session.ask("and on") == ""


SERVER_TOOL_NAMES: dict[type[Session], str] = {
    ClaudeCode: "mcp__editledger__write_file",
    Codex: "mcp__editledger__write_file",
    Gemini: "mcp_editledger_write_file",
    Cursor: "MCP:write_file",
    OpenCode: "editledger_write_file",
    VSCode: "mcp_editledger_write_file",
    Copilot: "editledger-write_file",
}
"""What each client calls the tool `write_file` of our server."""


def write_by_server(folder: Path, content: str, conversation: str = "") -> tuple[str, dict[str, Any]]:
    """Write a file as our server does; return the conversation and the server's answer."""
    info = CallInfo(tool="write_file", conversation=conversation)
    with Workspace.open(folder) as workspace, workspace.call(info) as call:
        call.write("a.txt", content.encode())
        outcome = call.commit()
    answer = FileWritten(
        path="a.txt",
        operation="replace",
        edit=outcome.edits[0].seq,
        lines_added=1,
        lines_removed=1,
        file_hash="",
        mcp_conversation_id=outcome.conversation,
    )
    result = success(Answer(content=answer, text="Wrote a.txt", notes=outcome_notes(outcome)), 1000)
    return outcome.conversation, result.model_dump(mode="json", by_alias=True, exclude_none=True)


def answer_variants(answer: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the fields in which clients pass on a server's answer, each with the forms that they use."""
    texts = [each["text"] for each in answer["content"]]
    structured = json.dumps(answer["structuredContent"])
    blocks = {"llmContent": answer["content"], "returnDisplay": "ok"}
    return {
        "tool_response": [
            {"tool_response": each}
            for each in (
                answer,
                structured,
                answer["content"],
                "\n".join(texts),
                blocks,
                {"structuredContent": structured},
            )
        ],
        "tool_output": [{"tool_output": structured}, {"tool_output": json.dumps(answer)}],
        "tool_result": [{"tool_result": {"result_type": "success", "text_result_for_llm": "\n\n".join(texts)}}],
        "result": [{"result": texts[-1]}],
    }


ANSWER_FIELDS: dict[type[Session], str] = {Cursor: "tool_output", Copilot: "tool_result", OpenCode: "result"}
ANSWER_FORMS: dict[type[Session], int] = {Cursor: 2, Copilot: 1, OpenCode: 1}
"""How many forms the answer has in the field of a client, where that is not `tool_response` with its six."""


def report_server_call(session: Session, answer: dict[str, Any], given: dict[str, Any], form: int = 0) -> str:
    """Report the end of a call of our server; return what the hook tells the agent."""
    session.calls += 1
    ended = session.write_event("a.txt", "x", before=False)
    forms = answer_variants(answer)[ANSWER_FIELDS.get(type(session), "tool_response")]
    tool_fields = {"tool": SERVER_TOOL_NAMES[type(session)], "args": given} if type(session) is OpenCode else {}
    tool_fields = tool_fields or {"tool_name": SERVER_TOOL_NAMES[type(session)], "tool_input": given}
    return session.tell(
        {name: value for name, value in ended.items() if name != "tool_response"}
        | tool_fields
        | forms[form % len(forms)]
    )


@EVERY_AGENT
def test_rejections_of_server_edits_are_reported_to_the_session_that_made_them(
    agent: type[Session], folder: Path
) -> None:
    session = agent(folder)
    another = agent(folder, "session-2")
    session.start()
    another.start()
    forms = range(ANSWER_FORMS.get(agent, 6))
    if len(forms) > 2 and not WHOLE:
        forms = forms[AGENTS.index(agent) % 3 :: 3]  # all of them in three clients together
    for form in forms:
        conversation, answer = write_by_server(folder, f"{form}\n")
        assert report_server_call(session, answer, {"path": "a.txt"}, form) == ""
        conversation, answer = write_by_server(folder, f"{form} and on\n", conversation)
        assert report_server_call(session, answer, {"path": "a.txt", "mcp_conversation_id": conversation}) == ""
        assert cas("reject", "--conversation", conversation, "--reason", "so not", folder=folder).status == 0
        another.ask("and you?")
        assert another.run("true") == ""
        assert session.run("true").count("so not") == 2
        assert session.run("true") == ""


def test_a_forged_server_answer_reports_no_rejections_of_another_session(folder: Path) -> None:
    session, another = ClaudeCode(folder), ClaudeCode(folder, "session-2")
    session.ask("go")
    another.ask("go")
    session.run("echo 1 > n.txt")
    theirs, answer = write_by_server(folder, "theirs\n")
    report_server_call(session, answer, {"path": "a.txt"})
    for name in (theirs, "session-1", "external", "conv_none", "", "a b", "\ud800"):
        forged = answer | {"structuredContent": {"mcp_conversation_id": name}}
        assert report_server_call(another, forged, {"path": "a.txt", "mcp_conversation_id": name}) == ""
    assert cas("reject", "--all", "--reason", "so not", folder=folder).status == 0
    assert another.ask("go on") == ""
    assert session.ask("go on").count("so not") == 2


@pytest.mark.parametrize(
    ("tool", "joins"),
    [
        ("mcp__editledger__write_file", True),
        ("mcp__editledger__read_text_file", False),  # a file that it quotes could hold a forged answer
        ("Bash", False),
        ("mcp__other__write_file", False),
    ],
)
def test_a_session_joins_a_server_conversation_only_by_a_writing_tool_of_our_server(
    folder: Path, tool: str, *, joins: bool
) -> None:
    session = ClaudeCode(folder)
    session.ask("go")
    _, answer = write_by_server(folder, "1\n")
    session.tell(session.tool_event(tool, {}, before=False) | {"tool_response": answer})
    assert cas("reject", "--all", "--reason", "so not", folder=folder).status == 0
    assert ("so not" in session.ask("go on")) is joins


def test_at_most_twenty_rejections_are_listed_and_the_others_counted(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("for i in $(seq 22); do echo $i > new$i.txt; done")
    assert cas("reject", "1", "--reason", "not this", folder=folder).status == 0
    assert cas("reject", "--conversation", "session-1", folder=folder).status == 0
    head, *lines = session.ask("go on").splitlines()
    assert head.endswith("Read a file again before you edit it, and don't repeat what was rejected:")
    named = {str(view.seq): os.fsdecode(view.edit.path) for view in edits(folder)}
    reported = [re.fullmatch(r"- edit (\d+) of '(.*)': rejected(, because: not this)?", line) for line in lines[:20]]
    assert all(found is not None and named[found[1]] == found[2] for found in reported)
    assert sum(found is not None and found[3] is not None for found in reported) <= 1
    assert lines[20:] == ["- and 2 more"]
    assert session.ask("and on") == ""


def test_reporting_a_large_rejection_reads_only_the_records_of_the_listed_edits(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("for i in $(seq 60); do echo $i > new$i.txt; done")
    assert cas("reject", "--conversation", "session-1", "--reason", "not these", folder=folder).status == 0
    read = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal read
        read += event == "call" and frame.f_code.co_name == "decode_record"

    with Workspace.open(folder) as workspace:
        sys.setprofile(count)
        try:
            unreported = workspace.messages.rejected("session-1", 20)
        finally:
            sys.setprofile(None)
        assert unreported is not None
        assert (len(unreported.rejections), unreported.more, len(unreported.units)) == (20, 40, 60)
        assert read == 20  # the records of the listed edits; the reasons are in the index
        workspace.messages.mark_reported("session-1", unreported)
        assert workspace.messages.rejected("session-1", 20) is None


def test_a_long_list_of_reported_units_does_not_displace_the_prompt(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.ask("make it")
    session.run("echo 1 > new.txt")
    assert cas("reject", "1", "--reason", "not this", folder=folder).status == 0
    with Workspace.open(folder) as workspace:
        calls = workspace.hooks
        unreported = workspace.messages.rejected("session-1", 20)
        assert unreported is not None
        units = unreported.units | {f"{number}:1" for number in range(2, 200_000)}  # more than most conversations have
        workspace.messages.mark_reported("session-1", UnreportedRejections(rejections=(), more=0, units=units))
        assert workspace.messages.rejected("session-1", 20) is None
        turn = calls.turn("session-1")
        assert turn is not None
        assert turn.prompt == "make it"


def test_a_file_in_a_nested_workspace_is_recorded_there_and_in_the_one_around_it(folder: Path) -> None:
    CommandRunner(folder / "src")
    cas("record", folder=folder / "src")
    session = ClaudeCode(folder)
    session.write("src/b.py", "x = 2\n")
    assert operations_and_paths(edits(folder / "src", "session-1")) == [(Operation.EDIT, "b.py")]
    session.write("a.txt", "1\n")
    assert operations_and_paths(edits(folder / "src", "session-1")) == [(Operation.EDIT, "b.py")]
    assert operations_and_paths(edits(folder, "session-1")) == [(Operation.EDIT, "a.txt"), (Operation.EDIT, "src/b.py")]


def test_an_edit_that_is_rejected_again_is_reported_again(folder: Path) -> None:
    session = ClaudeCode(folder)
    session.run("sed -i s/two/2/ a.txt")
    for reason in ("two is a word", "it still is"):
        assert cas("reject", "1", "--reason", reason, folder=folder).status == 0
        assert reason in session.ask("go on")
        assert cas("accept", "1", folder=folder).status == 0
        assert session.ask("go on") == ""


def test_each_rejected_hunk_of_an_edit_is_reported_with_its_reason(folder: Path) -> None:
    numbers = [str(number) for number in range(30)]
    (folder / "a.txt").write_text("\n".join(numbers))
    session = ClaudeCode(folder)
    session.run("sed -i 's/^3$/three/; s/^14$/fourteen/; s/^25$/twentyfive/' a.txt")
    assert [view.edit.conversation for view in edits(folder)] == ["external", "session-1"]
    assert cas("reject", "2:2", "--reason", "keep digits here", folder=folder).status == 0
    assert rejections_reported_to(session) == ["- edit 2:2 of 'a.txt': rejected, because: keep digits here"]
    assert rejections_reported_to(session) == []
    assert cas("accept", "2:2", folder=folder).status == 0
    assert rejections_reported_to(session) == []
    assert cas("reject", "2:1", "--reason", "here too", folder=folder).status == 0
    assert cas("reject", "2:2", "2:3", folder=folder).status == 0
    assert rejections_reported_to(session) == [
        "- edit 2:1 of 'a.txt': rejected, because: here too",
        "- edit 2:2, 2:3 of 'a.txt': rejected",
    ]
    assert cas("reset", "2", folder=folder).status == 0
    assert rejections_reported_to(session) == []
    assert cas("reject", "2", "--reason", "all of it", folder=folder).status == 0
    assert rejections_reported_to(session) == ["- edit 2 of 'a.txt': rejected, because: all of it"]
    assert cas("accept", "2:1", "2:2", "2:3", folder=folder).status == 0
    assert rejections_reported_to(session) == []


@pytest.mark.parametrize("is_first_damaged", [False, True])
def test_the_end_of_a_turn_reaches_every_workspace_of_a_client_with_several_folders(
    folder: Path, tmp_path: Path, *, is_first_damaged: bool
) -> None:
    others = [tmp_path / "other", tmp_path / "third"]
    for other in others:
        other.mkdir()
        (other / "o.txt").write_text("one\n")
        CommandRunner(other)
        cas("record", folder=other)
    session = Cursor(folder)
    roots = {"workspace_roots": [str(each) for each in (*others, folder, tmp_path / "gone")]}
    if is_first_damaged:
        (segment,) = (others[0] / ".cas" / "segments").iterdir()
        segment.unlink()
    session.tell(session.prompted("make it") | roots)
    session.calls += 1
    # It has no end event.
    session.tell(session.shell_event("make", before=True) | roots | {"cwd": str(others[1])})
    shell("echo two >> o.txt", folder=others[1])
    session.tell(session.stopped() | roots)
    shell("echo mine >> o.txt", folder=others[1])
    session.tell(session.prompted("go on") | roots)
    found = edits(others[1])
    assert [view.edit.origin for view in found] == [Origin.UNATTRIBUTED, Origin.EXTERNAL]
    assert (others[0] / ".cas" / "hook.log").exists() == is_first_damaged


def test_a_fault_in_another_folder_of_a_client_is_logged_there_with_the_clients_name(
    folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    CommandRunner(other)
    cas("record", folder=other)
    (segment,) = (other / ".cas" / "segments").iterdir()
    segment.unlink()
    session = Cursor(folder)
    session.tell(session.prompted("make it") | {"workspace_roots": [str(folder), str(other)]})
    (line,) = (other / ".cas" / "hook.log").read_text().splitlines()
    assert " cursor: StoreDamaged: " in line
    assert not (folder / ".cas" / "hook.log").exists()


# ---- opencode's second version


def test_both_versions_of_opencode_name_files_and_end_calls(folder: Path) -> None:
    session = OpenCode(folder)
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** End Patch\n"
    for tool, given in (
        ("patch", {"patchText": patch}),
        ("apply_patch", {"patchText": patch}),
        ("write", {"path": "a.txt", "content": "x"}),
        ("edit", {"filePath": "a.txt"}),
    ):
        assert client_of("opencode").read(session.tool_event(tool, given, before=True)).touched == ("a.txt",)
    session.run("sed -i s/two/2/ a.txt")
    assert cas("reject", "1", "--reason", "two is a word", folder=folder).status == 0
    session.tell(session.tool_event("shell", {"command": "false"}, before=True))
    shell("echo 1 >> src/b.py", folder=folder)
    failed = session.tool_event("shell", {"command": "false"}, before=False) | {
        "hook": "tool.execute.failed",
        "hears": False,
    }
    assert session.tell(failed) == ""  # an error result carries no other text
    assert edits(folder)[-1].edit.tool == "shell"
    assert "two is a word" in session.run("true")


@pytest.mark.parametrize("answer", ["rejected", "allowed", ""])
def test_an_opencode_call_claims_changes_only_once_a_person_allows_it(folder: Path, answer: str) -> None:
    session = OpenCode(folder)
    session.ask("make it")
    session.calls += 1
    session.tell(session.shell_event("make", before=True))
    session.tell(session.base("permission.asked") | {"callID": session.call})
    shell("echo mine >> a.txt", folder=folder)
    cas("record", folder=folder)  # external during the permission request
    if answer:
        session.tell(session.base(f"permission.{answer}") | {"callID": session.call})
    shell("echo 1 >> src/b.py", folder=folder)
    session.stop()  # not every version sends an event for a tool's end
    origins = {os.fsdecode(view.edit.path): view.edit.origin for view in edits(folder)}
    is_over = answer == "rejected"
    assert origins == {"a.txt": Origin.UNATTRIBUTED, "src/b.py": Origin.EXTERNAL if is_over else Origin.UNATTRIBUTED}


@pytest.mark.parametrize(("is_shell", "answer"), sampled_product([False, True], ["rejected", "allowed"]))
def test_a_failed_opencode_call_claims_changes_only_if_it_was_allowed(
    folder: Path, answer: str, *, is_shell: bool
) -> None:
    """The event of a refusal and the end event of the refused tool come in any order."""
    session = OpenCode(folder)
    session.ask("make it")
    began, ended = session.another_call(is_shell=is_shell)
    session.tell(began)
    request = session.base("permission.asked") | {"callID": session.call}
    session.tell(request)
    events = [request | {"hook": f"permission.{answer}"}, ended | {"hook": "tool.execute.failed", "hears": False}]
    shell("echo 1 >> a.txt", folder=folder)  # the person, or the tool
    for event in events if answer == "allowed" else reversed(events):
        session.tell(event)
    session.stop()
    assert [view.edit.conversation for view in edits(folder)] == [session.name if answer == "allowed" else "external"]
