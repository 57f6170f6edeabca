"""The history as Agent Client Protocol notifications, as `editledger --export-acp` prints it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from objstore import Action, CallInfo, Unit, Workspace
from tests.support.fork_server import forked_program
from tests.support.mcp_agent import REPOSITORY, connected


def export(root: Path, shape: str) -> list[dict[str, Any]]:
    """Return the parsed lines that the command prints."""
    done = subprocess.run(
        [*forked_program("mcptools").command, "--export-acp", shape, str(root)],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["method"] for line in found} <= {"session/update"}
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a workspace with a call on one file, a move, and a call on two files, one of them binary."""
    with Workspace.init(tmp_path) as workspace:
        for tool, conversation in (("write_file", "first"), ("move_file", "first"), ("apply_patches", "second")):
            with workspace.call(CallInfo(tool=tool, conversation=conversation)) as call:
                if tool == "write_file":
                    call.write("a\nb.txt", b"one\n\xff\n")
                    (tmp_path / "d.bin").write_bytes(b"\0")
                elif tool == "move_file":
                    call.move("a\nb.txt", "c.txt")
                else:
                    call.write("c.txt", b"one\n\xff\ntwo\n")
                    call.write("d.bin", b"\0\1")
                call.commit()
        workspace.decide(Action.ACCEPT, [Unit(workspace.history.edit(1).seq, 0)])
    (tmp_path / "c.txt").write_bytes(b"somebody's\n")
    with Workspace.open(tmp_path) as workspace, workspace.call(CallInfo(tool="write_file")) as call:
        call.write("d.bin", b"\0\1\2")
        call.commit()
    return tmp_path


def test_each_call_starts_and_ends_once_in_order(root: Path) -> None:
    for shape in ("contract", "protocol"):
        names = [line["params"]["sessionId"] for line in export(root, shape)]
        assert names[:6] == ["first", "first", "first", "first", "second", "second"]
        assert len(names) == 8


def test_contract_shape_has_the_diff_and_the_edit_numbers(root: Path) -> None:
    began, ended = (line["params"]["update"] for line in export(root, "contract")[4:6])
    assert (began["type"], began["id"], began["status"]) == ("toolCall", "second/0", "pending")
    assert began["title"] == "apply_patches (2 patches)"
    assert began["locations"] == [{"path": str(root / "c.txt")}, {"path": str(root / "d.bin")}]
    fields = ended["fields"]
    assert (ended["type"], ended["id"], fields["status"]) == ("toolCallUpdate", "second/0", "completed")
    assert fields["rawOutput"]["edits"] == [3, 4]
    assert fields["rawOutput"]["statuses"] == ["pending", "pending"]
    assert "+two\n" in fields["content"][0]["text"]


def test_exported_call_has_the_arguments_and_the_result_of_the_call(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    file = root / "config.toml"
    file.write_text('[server]\nhost = "localhost"\nport = 8080\n\n[app]\ndebug = false\n')
    edits = [
        {"old_string": "port = 8080", "new_string": "port = 3000"},
        {"old_string": 'host = "localhost"', "new_string": 'host = "0.0.0.0"'},
        {"old_string": "debug = false", "new_string": "debug = true"},
    ]
    with connected(root) as agent:
        output = agent.done("multi_edit_text_file", path=str(file), edits=edits).structured
    began, ended = (line["params"]["update"] for line in export(root, "contract"))
    assert began | {"id": ""} == {
        "type": "toolCall",
        "id": "",
        "kind": "edit",
        "status": "pending",
        "title": "multi_edit_text_file (3 edits)",
        "locations": [{"path": str(file)}],
        "rawInput": {"path": str(file), "edits": edits},
    }
    fields = ended["fields"]
    assert (fields["status"], fields["content"]) == ("completed", [{"type": "text", "text": output["diff"]}])
    names = ("success", "diff", "applied_count", "line_ranges")
    assert {name: fields["rawOutput"][name] for name in names} == {name: output[name] for name in names}
    ended = export(root, "protocol")[1]["params"]["update"]
    assert ended["locations"] == [{"path": str(file), "line": line} for line in (3, 2, 6)]
    assert ended["rawOutput"]["applied_count"] == 3


def test_string_that_the_same_call_replaced_is_left_out(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "file.txt").write_text("AAA")
    edits = [{"old_string": "AAA", "new_string": "BBB"}, {"old_string": "BBB", "new_string": "CCC"}]
    with connected(root) as agent:
        agent.done("multi_edit_text_file", path=str(root / "file.txt"), edits=edits)
    began, ended = (line["params"]["update"] for line in export(root, "contract"))
    assert began["title"] == "multi_edit_text_file (2 edits)"
    assert began["rawInput"]["edits"] == [{"old_string": "AAA"}, {"new_string": "CCC"}]
    assert ended["fields"]["rawOutput"]["applied_count"] == 2


def test_call_that_was_carried_over_has_the_lines_of_its_answer_and_no_strings(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    file = root / "file.txt"
    file.write_text("one\ntwo\n")
    with connected(root) as agent:
        agent.done("read_file", path=str(file))
        file.write_text("zero\none\ntwo\n")
        edits = [{"old_string": "two", "new_string": "2"}]
        output = agent.done("multi_edit_text_file", path=str(file), edits=edits, rebase=True).structured
    assert output["rebased"]
    assert file.read_text() == "zero\none\n2\n"
    began, ended = (line["params"]["update"] for line in export(root, "contract")[-2:])
    assert (began["title"], began["rawInput"]["edits"]) == ("multi_edit_text_file (1 edit)", [{}])
    assert (
        ended["fields"]["rawOutput"]["line_ranges"]
        == output["line_ranges"]
        == [{"edit_index": 0, "start": 2, "end": 2}]
    )


def test_failed_call_is_not_exported_because_nothing_is_recorded_of_it(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "file.txt").write_text("one\n")
    with connected(root) as agent:
        edits = [{"old_string": "two", "new_string": "2"}]
        assert agent.call("multi_edit_text_file", path=str(root / "file.txt"), edits=edits).refused
    assert export(root, "contract") == []


def test_no_string_of_a_call_outlives_a_purge_of_its_file(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    file = root / "file.txt"
    file.write_text("key = hunter2\n")
    edits = [{"old_string": "hunter2", "new_string": "swordfish"}]
    with connected(root) as agent:
        agent.done("multi_edit_text_file", path=str(file), edits=edits)
    assert export(root, "contract")[0]["params"]["update"]["rawInput"]["edits"] == edits
    with Workspace.open(root) as workspace:
        workspace.retention.purge(paths=["file.txt"], force=True, who="me")
    began, ended = (line["params"]["update"] for line in export(root, "contract"))
    assert (began["title"], began["rawInput"]["edits"]) == ("multi_edit_text_file (1 edit)", [{}])
    assert ended["fields"]["rawOutput"]["applied_count"] == 1
    assert not any(secret in json.dumps([began, ended]) for secret in ("hunter2", "swordfish"))
    stored = b"".join(path.read_bytes() for path in (root / ".cas").rglob("*") if path.is_file())
    assert not any(secret in stored for secret in (b"hunter2", b"swordfish"))


def test_backup_made_by_a_call_is_not_counted_as_a_patch(tmp_path: Path) -> None:
    with connected(tmp_path) as agent:
        agent.done("write_file", path="f", content="one\n")
        patches = [{"file_path": "f", "patch": "--- f\n+++ f\n@@ -1 +1 @@\n-one\n+two\n"}]
        for strategy in ("progressive", "backup_restore"):
            agent.done("apply_patches", strategy=strategy, patches=patches, keep_backup=strategy == "backup_restore")
            agent.done("write_file", path="f", content="one\n")
    began = [line["params"]["update"] for line in export(tmp_path, "contract")[::2]]
    patched = [update for update in began if update["title"].startswith("apply_patches")]
    assert [(update["title"], update["rawInput"], update["locations"]) for update in patched] == [
        ("apply_patches", {"path": str(tmp_path / "f")}, [{"path": str(tmp_path / "f")}])
    ] * 2


def test_protocol_shape_has_old_and_new_text(root: Path) -> None:
    lines = [line["params"]["update"] for line in export(root, "protocol")]
    assert [line["sessionUpdate"] for line in lines[:2]] == ["tool_call", "tool_call_update"]
    created, moved, patched = lines[1], lines[3], lines[5]
    assert created["content"] == [
        {"type": "diff", "path": f"{root}/a\nb.txt", "oldText": None, "newText": "one\n\\xff\n"}
    ]
    assert created["rawOutput"]["statuses"] == ["accepted"]
    assert (lines[2]["kind"], lines[2]["rawInput"]) == (
        "move",
        {"source": f"{root}/a\nb.txt", "destination": str(root / "c.txt")},
    )
    assert [part["path"] for part in moved["content"]] == [str(root / "c.txt")]
    assert moved["locations"] == [{"path": str(root / "c.txt")}]  # no line of it changed
    assert [part["path"] for part in patched["content"]] == [str(root / "c.txt")]  # the other file is binary
    assert patched["locations"] == [{"path": str(root / "c.txt"), "line": 3}]


def test_export_of_a_directory_without_a_store_is_empty_and_creates_none(tmp_path: Path) -> None:
    assert export(tmp_path, "contract") == []
    assert list(tmp_path.iterdir()) == []


def test_export_ends_quietly_when_its_reader_closes_the_pipe(root: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "mcptools", "--export-acp", "contract", str(root)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def run_export(*options: str, stdout: int | IO[bytes] = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """Run the command until it ends; return its result."""
    return subprocess.run(
        [*forked_program("mcptools").command, "--export-acp", "contract", *options],
        cwd=REPOSITORY,
        check=False,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_full_disk_is_reported_in_one_line(root: Path) -> None:
    with Path("/dev/full").open("wb") as full_disk:
        done = run_export(str(root), stdout=full_disk)
    assert (done.returncode, done.stderr) == (1, "editledger: No space left on device\n")


@pytest.mark.parametrize("is_journal", [False, True], ids=["blob", "record"])
def test_damage_found_by_an_export_is_reported_in_one_line(root: Path, *, is_journal: bool) -> None:
    segment = root / ".cas" / "segments" / "00000001.seg"
    content = bytearray(segment.read_bytes())
    content[-40 if is_journal else content.index(b"one\n\xff\n") + 1] ^= 255
    segment.write_bytes(content)
    if is_journal:
        for index_file in (root / ".cas").glob("index*"):
            index_file.unlink()
    done = run_export(str(root))
    assert done.returncode == 1
    assert re.fullmatch(r"editledger: Store damaged in segment 1 at byte \d+: .*\n", done.stderr)


def test_export_needs_a_directory() -> None:
    done = run_export()
    assert done.returncode == 2
    assert "--export-acp needs the directories whose history to print" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--http", "127.0.0.1:0"],
        ["--tools", "read"],
        ["--read-only"],
        ["--require-read"],
        ["--approve", ""],
        ["--token-file", "token"],
        ["--no-token"],
    ],
    ids=lambda options: options[0],
)
def test_export_refuses_options_of_the_server(tmp_path: Path, options: list[str]) -> None:
    done = run_export(*options, str(tmp_path))
    assert done.returncode == 2
    assert f"{options[0]} can't be combined with --export-acp, which starts no server" in done.stderr


def test_export_names_a_missing_directory_and_exports_the_others(root: Path) -> None:
    words = [*forked_program("mcptools").command, "--export-acp", "protocol", str(root / "missing"), str(root)]
    done = subprocess.run(words, cwd=REPOSITORY, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith(f": not a directory, so it is not exported: {root / 'missing'}\n")
    assert [json.loads(line) for line in done.stdout.splitlines()] == export(root, "protocol")
