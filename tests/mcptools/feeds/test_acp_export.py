"""The history as Agent Client Protocol notifications, as `editledger --export-acp` prints it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from objstore import Action, CallInfo, Unit, Workspace
from tests.support.mcp_agent import REPOSITORY, connected


def export(root: Path, shape: str) -> list[dict[str, Any]]:
    """Return the parsed lines that the command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "mcptools", "--export-acp", shape, str(root)],
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
        [sys.executable, "-m", "mcptools", "--export-acp", "contract", *options],
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
