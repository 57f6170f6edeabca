"""The safety checks of the contract of the patch tools, each with every tool that takes a file."""

import os
from pathlib import Path

import pytest

from objstore import is_binary
from tests.support.case_insensitive_mount import can_mount as can_mount_fuse, case_insensitive_folder
from tests.support.mcp_agent import Agent, Result, connected
from tests.support.mounts import can_mount, small_disk

PATCH = "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n"
MEBIBYTE = 1 << 20


def call_every_tool(agent: Agent, path: str) -> dict[str, Result]:
    """Call every tool that takes a file with this path."""
    return {
        "apply_patch": agent.call("apply_patch", file_path=path, patch=PATCH),
        "dry run": agent.call("apply_patch", file_path=path, patch=PATCH, dry_run=True),
        "validate_patch": agent.call("validate_patch", file_path=path, patch=PATCH),
        "revert_patch": agent.call("revert_patch", file_path=path, patch=PATCH),
        "generate_patch": agent.call("generate_patch", original_file=path, modified_file=path),
        "backup_file": agent.call("backup_file", file_path=path),
        "restore_backup": agent.call("restore_backup", backup_file=path, target_file=f"{path}.restored"),
        **{
            strategy: agent.call("apply_patches", strategy=strategy, patches=[{"file_path": path, "patch": PATCH}])
            for strategy in ("try_revert", "backup_restore", "atomic", "progressive")
        },
    }


def check_all_refused(
    results: dict[str, Result], error_type: str, message: str, *, except_tools: frozenset[str] = frozenset()
) -> None:
    for tool, result in results.items():
        if tool in except_tools:
            assert not result.refused, (tool, result.structured)
        else:
            assert result.structured.get("success") is False, (tool, result.structured)
            assert result.structured["error_type"] == error_type, (tool, result.structured)
            assert result.structured["error"].endswith(message), (tool, result.structured)


def test_reject_symlink(agent: Agent, folder: Path) -> None:
    (folder / "real").write_text("a\n")
    (folder / "link").symlink_to("real")
    path = str(folder / "link")
    check_all_refused(
        call_every_tool(agent, path), "symlink_error", f"Symlinks are not allowed (security policy): {path}"
    )
    assert (folder / "real").read_text() == "a\n"
    assert sorted(path.name for path in folder.iterdir()) == ["link", "real"]


def test_reject_symlink_as_restore_target(agent: Agent, folder: Path) -> None:
    (folder / "real").write_text("real\n")
    (folder / "copy").write_text("copy\n")
    (folder / "link").symlink_to("real")
    for force in (False, True):
        result = agent.call(
            "restore_backup", backup_file=str(folder / "copy"), target_file=str(folder / "link"), force=force
        )
        assert result.structured["error_type"] == "symlink_error"
    assert (folder / "real").read_text() == "real\n"


@pytest.mark.parametrize(
    "content",
    [b"a\n\0\n", b"\xff\xd8\xff\xe0\x10\x81\x82", b"a" * 69 + b"\x01" * 31, b"a\n" + b"." * 8189 + b"\0"],
    ids=["NUL", "JPEG", "31%", "NUL in the last checked byte"],
)
def test_reject_binary_file(agent: Agent, folder: Path, content: bytes) -> None:
    file = folder / "file.bin"
    file.write_bytes(content)
    check_all_refused(call_every_tool(agent, str(file)), "binary_file", f"Binary files are not supported: {file}")
    assert file.read_bytes() == content


def test_file_within_the_threshold_is_text(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    for content in (b"a\n" + b"a" * 68 + b"\x01" * 30, b"a\n" + b"." * 8190 + b"\0", "a\n日本語\n".encode()):
        file.write_bytes(content)
        agent.done("apply_patch", file_path=str(file), patch=PATCH)
        assert file.read_bytes() == b"b" + content[1:]


def test_file_size_limit(agent: Agent, folder: Path) -> None:
    file = folder / "big.txt"
    limit = 10 * MEBIBYTE
    file.write_bytes(b"a\n" + b"x" * (limit - 2))
    agent.done("validate_patch", file_path=str(file), patch=PATCH)
    with file.open("ab") as opened:
        opened.write(b"x")
    check_all_refused(
        call_every_tool(agent, str(file)), "resource_limit", f"File too large: {limit + 1} bytes (max: {limit})"
    )


def test_insufficient_disk_space(tmp_path: Path) -> None:
    # A small disk if one can be mounted here, otherwise a minimum that no disk has free.
    root = tmp_path / "workspace"
    root.mkdir()
    if can_mount(root):
        with small_disk(root):
            check_disk_space_errors(root, [], 100 * MEBIBYTE)
    else:
        check_disk_space_errors(root, ["--min-free-space", str(1 << 62)], 1 << 62)


def check_disk_space_errors(root: Path, options: list[str], minimum: int) -> None:
    file = root / "file.txt"
    file.write_text("a\n")
    with connected(root, options=options) as agent:
        results = call_every_tool(agent, str(file))
        for tool in ("dry run", "validate_patch", "generate_patch"):
            assert not results.pop(tool).refused, "a tool that writes nothing needs no space"
        check_all_refused(results, "disk_space_error", f"bytes free (minimum: {minimum})")
        for result in results.values():
            assert "Insufficient disk space: " in result.text
    assert file.read_text() == "a\n"
    assert [path.name for path in root.iterdir()] == ["file.txt"]


@pytest.mark.skipif(not can_mount_fuse(), reason="a file system of our own can't be mounted here")
def test_disk_space_that_can_not_be_checked_is_an_error(tmp_path: Path) -> None:
    with case_insensitive_folder(tmp_path / "backing", tmp_path / "mount", is_mute=True) as root:
        (root / "file.txt").write_text("a\n")
        with connected(root) as agent:
            results = call_every_tool(agent, str(root / "file.txt"))
        for tool in ("apply_patch", "revert_patch", "backup_file", "restore_backup", "atomic", "progressive"):
            found = results[tool].structured
            assert (found["success"], found["error_type"]) == (False, "io_error"), (tool, found)
            assert "Cannot check disk space: " in found["error"], (tool, found)
        assert (root / "file.txt").read_text() == "a\n"


def test_space_for_the_new_content_is_required(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "file.txt").write_text("a\n" + "x" * 100)
    with connected(root, options=["--min-free-space", "0"]) as agent:
        agent.done("apply_patch", file_path="file.txt", patch=PATCH)
    if can_mount(root):
        with small_disk(root):
            content = "a\n" + "x\n" * (300 << 10)
            (root / "file.txt").write_text(content)
            with connected(root, options=["--min-free-space", "0"]) as agent:
                result = agent.call("apply_patch", file_path="file.txt", patch=PATCH)
                assert result.structured["error_type"] == "disk_space_error"
                assert result.text.startswith("Insufficient disk space for operation: ")
                assert result.text.endswith(f" bytes free, {int(len(content) * 1.1)} needed")
            assert (root / "file.txt").read_text() == content


@pytest.mark.parametrize(
    "template",
    ["{base}/{evil}/f", "../{evil}/f", "{root}/x/../../{evil}/f", "/etc/passwd", "{folder}/linked/f"],
)
def test_path_traversal_protection(agent: Agent, folder: Path, template: str) -> None:
    evil = agent.root.with_name(f"{agent.root.name}-evil")
    evil.mkdir(exist_ok=True)
    (evil / "f").write_text("a\n")
    (agent.root / "x").mkdir(exist_ok=True)
    (folder / "linked").symlink_to(evil)
    path = template.format(base=agent.root.parent, root=agent.root, folder=folder, evil=evil.name)
    message = f"Path attempts to escape base directory: {path}"
    check_all_refused(call_every_tool(agent, path), "permission_denied", message)
    (folder / "mine").write_text("a\n")
    for force in (False, True):
        result = agent.call("restore_backup", backup_file=str(folder / "mine"), target_file=path, force=force)
        assert (result.structured["error_type"], result.text) == ("permission_denied", message)
    assert (evil / "f").read_text() == "a\n"
    assert [path.name for path in evil.iterdir()] == ["f"]


def test_store_is_out_of_reach(agent: Agent, folder: Path) -> None:
    (folder / "f").write_text("a\n")
    agent.done("apply_patch", file_path=str(folder / "f"), patch=PATCH)
    for result in call_every_tool(agent, ".cas/segments").values():
        assert result.structured["error_type"] == "permission_denied", result.structured
    result = agent.call("restore_backup", backup_file=str(folder / "f"), target_file=".cas/f", force=True)
    assert result.structured["error_type"] == "permission_denied"


def test_file_not_found(agent: Agent, folder: Path) -> None:
    path = str(folder / "missing")
    results = call_every_tool(agent, path)
    assert results.pop("generate_patch").text == f"Original file not found: {path}"
    assert results.pop("restore_backup").text == "Backup file not found"
    check_all_refused(results, "file_not_found", f"File not found: {path}")


def test_read_only_file_is_refused(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("a\n")
    file.chmod(0o444)
    read_only_tools = frozenset({"dry run", "validate_patch", "generate_patch", "backup_file", "restore_backup"})
    check_all_refused(
        call_every_tool(agent, str(file)),
        "permission_denied",
        f"File is not writable: {file}",
        except_tools=read_only_tools,
    )
    assert file.read_text() == "a\n"
    (folder / "copy").write_text("copy\n")
    result = agent.call("restore_backup", backup_file=str(folder / "copy"), target_file=str(file), force=True)
    assert (result.structured["error_type"], result.text) == ("permission_denied", f"File is not writable: {file}")


def test_file_that_is_not_regular_is_refused(agent: Agent, folder: Path) -> None:
    (folder / "sub").mkdir()
    os.mkfifo(folder / "fifo")
    for name in ("sub", "fifo"):
        path = str(folder / name)
        check_all_refused(call_every_tool(agent, path), "io_error", f"Not a regular file: {path}")


@pytest.mark.parametrize("name", ["a\0b", "", "x" * 300, "f/below"])
def test_path_that_can_not_be_used_is_an_invalid_path(agent: Agent, folder: Path, name: str) -> None:
    (folder / "f").write_text("a\n")
    for tool, result in call_every_tool(agent, name and str(folder / name)).items():
        found = result.structured
        assert (found["success"], found["error_type"]) == (False, "io_error"), (tool, found)
        assert "Invalid path: " in found["error"], (tool, found)


def test_every_limit_is_an_option(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "f").write_bytes(b"a\n" + b"x" * 8 + b"\x01" * 10 + b"\0")
    options = ["--max-file-size", "21", "--binary-check-bytes", "20", "--non-text-threshold", "0.5"]
    assert is_binary((root / "f").read_bytes())
    with connected(root, options=[*options, "--min-free-space", "1"]) as agent:
        agent.done("apply_patch", file_path="f", patch=PATCH)
        (root / "f").write_bytes(b"x" * 22)
        assert agent.call("backup_file", file_path="f").text == "File too large: 22 bytes (max: 21)"


def test_unknown_arguments_are_refused_in_the_shape_of_the_contract(agent: Agent) -> None:
    result = agent.call("apply_patch", file_path="f", patch="", fuzz=2)
    assert (result.structured["error_type"], result.structured["type"]) == ("io_error", "invalid_request")
    assert result.structured["success"] is False
    assert "fuzz: unknown argument" in result.structured["error"]
