"""`apply_patches` over the wire: the four recovery strategies and their results; failures leave nothing behind."""

import base64
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mcp_agent import Agent, begun_by, connected
from tests.support.sampling import sampled_product

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"
HEAD = "--- f\n+++ f\n"
FIRST = HEAD + "@@ -1,2 +1,2 @@\n-one\n+1\n two\n"
SECOND = HEAD + "@@ -1,2 +1,3 @@\n 1\n+1.5\n two\n"
LAST = HEAD + "@@ -8,2 +8,2 @@\n seven\n-eight\n+8\n"
STALE = HEAD + "@@ -3 +3 @@\n-drei\n+3\n"


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Begin a process that can't write files above 1 MiB."""


def file_states(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return content and modification time of every file in a folder."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def file(folder: Path) -> Path:
    file = folder / "f"
    file.write_text(TEXT)
    return file


@pytest.fixture
def agent_without_space(tmp_path: Path) -> Iterator[Agent]:
    """Return an agent whose server can't write files above 1 MiB, so that its store runs out of space."""
    root = tmp_path / "workspace"
    root.mkdir()
    with begun_by(sys.executable, "-c", LIMITED), connected(root) as agent:
        yield agent


def large_file(path: Path, times: int = 1) -> Path:
    """Create a file that takes about 300 KiB to store, or a multiple of it."""
    lines = (base64.b64encode(random.Random(f"{path.name}{n}").randbytes(75)) for n in range(4000 * times))
    path.write_bytes(b"one\ntwo\n" + b"\n".join(lines))
    return path


def ops(file: Path, *patches: str) -> list[dict[str, str]]:
    return [{"file_path": str(file), "patch": patch} for patch in patches]


# ---- all of them


@pytest.mark.parametrize("strategy", ["try_revert", "backup_restore", "atomic", "progressive"])
def test_no_strategy_changes_an_unsafe_file(agent: Agent, folder: Path, strategy: str) -> None:
    (folder / "binary").write_bytes(b"one\ntwo\n\0\n")
    (folder / "large").write_bytes(b"one\ntwo\n" + b"x" * (10 << 20))
    before = file_states(folder)
    for name, kind in (("binary", "binary_file"), ("large", "resource_limit"), ("none", "file_not_found")):
        result = agent.call("apply_patches", strategy=strategy, patches=ops(folder / name, FIRST))
        assert result.refused
        assert result.structured["error_type"] == kind
    assert file_states(folder) == before


@pytest.mark.parametrize("strategy", ["try_revert", "backup_restore", "atomic", "progressive"])
def test_every_strategy_needs_a_patch(agent: Agent, strategy: str) -> None:
    result = agent.call("apply_patches", strategy=strategy, patches=[])
    assert (result.structured["type"], result.text) == ("invalid_request", "Patches array cannot be empty")


# ---- pattern 1


def test_try_revert_applies_patches_in_order(agent: Agent, file: Path) -> None:
    before = len(agent.history())
    result = agent.done("apply_patches", strategy="try_revert", patches=ops(file, FIRST, SECOND, LAST))
    assert (
        result.structured.items()
        >= {
            "success": True,
            "patches_applied": 3,
            "message": "Successfully applied 3 patches",
        }.items()
    )
    assert file.read_text() == "1\n1.5\ntwo\nthree\nfour\nfive\nsix\nseven\n8\n"
    (view,) = agent.history()[before:]
    assert ([view.seq], view.edit.tool) == (result.structured["edits"], "apply_patches")


def test_error_recovery_try_revert(agent: Agent, folder: Path, file: Path) -> None:
    before, edits = file_states(folder), len(agent.history())
    result = agent.call("apply_patches", strategy="try_revert", patches=ops(file, FIRST, SECOND, STALE, LAST))
    assert result.refused
    assert (
        result.structured.items()
        >= {
            "success": False,
            "patches_applied": 2,
            "failed_at": 3,
            "error": "Context mismatch at line 3: expected 'drei' but found 'two'",
            "error_type": "context_mismatch",
            "reverted": True,
        }.items()
    )
    assert (file_states(folder), len(agent.history())) == (before, edits)


def test_try_revert_refuses_several_files(agent: Agent, folder: Path, file: Path) -> None:
    (folder / "g").write_text(TEXT)
    patches = [*ops(file, FIRST), *ops(folder / "g", FIRST)]
    result = agent.call("apply_patches", strategy="try_revert", patches=patches)
    assert result.structured["type"] == "invalid_request"
    assert file.read_text() == TEXT


# ---- pattern 2


@pytest.mark.parametrize("keeps_backup", [True, False])
def test_backup_restore_keeps_the_backup_on_request(
    agent: Agent, folder: Path, file: Path, *, keeps_backup: bool
) -> None:
    os.utime(file, ns=(10**18, 10**18))
    result = agent.done("apply_patches", strategy="backup_restore", patches=ops(file, FIRST), keep_backup=keeps_backup)
    assert result.structured.items() >= {"success": True, "message": "Patch applied successfully"}.items()
    assert file.read_text() == TEXT.replace("one", "1")
    backup = result.structured["backup_file"]
    if keeps_backup:
        assert (Path(backup).read_text(), Path(backup).stat().st_mtime_ns) == (TEXT, 10**18)
        assert len(result.structured["edits"]) == 2
    else:
        assert backup is None
        assert [path.name for path in folder.iterdir()] == ["f"]


@pytest.mark.parametrize("strategy", ["try_revert", "atomic"])
def test_keep_backup_is_refused_by_strategies_without_a_backup(
    agent: Agent, folder: Path, file: Path, strategy: str
) -> None:
    before = file_states(folder)
    result = agent.call("apply_patches", strategy=strategy, patches=ops(file, FIRST), keep_backup=True)
    assert result.structured["type"] == "invalid_request"
    assert result.text.startswith(f"{strategy} keeps no backup")
    assert file_states(folder) == before
    agent.done("apply_patches", strategy=strategy, patches=ops(file, FIRST), keep_backup=False)


@pytest.mark.parametrize("keeps_backup", [True, False])
def test_error_recovery_backup_restore(agent: Agent, folder: Path, file: Path, *, keeps_backup: bool) -> None:
    before, edits = file_states(folder), len(agent.history())
    result = agent.call("apply_patches", strategy="backup_restore", patches=ops(file, STALE), keep_backup=keeps_backup)
    assert (
        result.structured.items()
        >= {
            "success": False,
            "error": "Context mismatch at line 3: expected 'drei' but found 'three'",
            "error_type": "context_mismatch",
            "restored": True,
            "phase": "apply",
        }.items()
    )
    assert (file_states(folder), len(agent.history())) == (before, edits)


def test_failed_backup_is_reported(agent: Agent, folder: Path) -> None:
    path = folder / "missing"
    result = agent.call("apply_patches", strategy="backup_restore", patches=ops(path, FIRST))
    assert (
        result.structured.items()
        >= {
            "success": False,
            "error": f"Cannot create backup: File not found: {path}",
            "error_type": "file_not_found",
            "phase": "backup",
        }.items()
    )


# ---- pattern 3


def test_atomic_records_many_files_as_one_call(agent: Agent, folder: Path) -> None:
    files = [folder / f"file{number}" for number in range(6)]
    for file in files:
        file.write_text(TEXT)
    before = len(agent.history())
    patches = [op for file in files for op in ops(file, FIRST)]
    result = agent.done("apply_patches", strategy="atomic", patches=patches)
    assert (
        result.structured.items()
        >= {
            "success": True,
            "applied": 6,
            "message": "Atomically applied 6 patches",
        }.items()
    )
    recorded = agent.history()[before:]
    assert [view.seq for view in recorded] == result.structured["edits"]
    assert len({(view.edit.conversation, view.edit.call) for view in recorded}) == 1
    assert {file.read_text() for file in files} == {TEXT.replace("one", "1")}
    assert sorted(folder.iterdir()) == files


def test_atomic_reports_every_patch_that_does_not_fit(agent: Agent, folder: Path) -> None:
    for name in ("a", "b", "c"):
        (folder / name).write_text(TEXT)
    before, edits = file_states(folder), len(agent.history())
    patches = [*ops(folder / "a", FIRST), *ops(folder / "b", STALE), *ops(folder / "c", "no patch")]
    result = agent.call("apply_patches", strategy="atomic", patches=patches)
    mismatch = "Context mismatch at line 3: expected 'drei' but found 'three'"
    assert (
        result.structured.items()
        >= {
            "success": False,
            "phase": "validation",
            "validated": 3,
            "failed": 2,
            "failures": [
                {"file": str(folder / "b"), "reason": mismatch},
                {"file": str(folder / "c"), "reason": "Invalid patch format: missing --- header at line 1"},
            ],
            "error": f"Validation failed for {folder / 'b'}: {mismatch}",
            "error_type": "context_mismatch",
        }.items()
    )
    assert (file_states(folder), len(agent.history())) == (before, edits)


def test_failures_of_many_patches_are_limited_to_one_answer(agent: Agent, file: Path) -> None:
    count, hard = 900, 80_000
    wrong = HEAD + f"@@ -3 +3 @@\n-{'drei' * 20}\n+3\n"
    result = agent.call("apply_patches", strategy="atomic", patches=ops(file, *[wrong] * count))
    reported = result.structured["failures"]
    assert (result.structured["validated"], result.structured["failed"]) == (count, count)
    assert hard * 0.9 < sum(len(one["file"]) + len(one["reason"]) for one in reported) <= hard
    hint = f"{count - len(reported)} more that do not fit are not listed in failures."
    assert result.structured["hint"].endswith(f". {hint}")
    assert file.read_text() == TEXT


def test_atomic_refuses_unsafe_files_first(agent: Agent, folder: Path, file: Path) -> None:
    (folder / "link").symlink_to("f")
    patches = [*ops(file, FIRST), *ops(folder / "link", FIRST), *ops(folder / "missing", FIRST)]
    result = agent.call("apply_patches", strategy="atomic", patches=patches)
    assert [part["file"] for part in result.structured["failures"]] == [str(folder / "link"), str(folder / "missing")]
    assert result.structured["error_type"] == "symlink_error"
    assert file.read_text() == TEXT


def test_atomic_rolls_back_if_the_disk_is_full(agent_without_space: Agent) -> None:
    files = [large_file(agent_without_space.root / f"file{number}") for number in range(4)]
    before = file_states(agent_without_space.root)
    patches = [op for file in files for op in ops(file, FIRST)]
    result = agent_without_space.call("apply_patches", strategy="atomic", patches=patches)
    assert result.refused
    assert result.structured.items() >= {"phase": "apply", "applied": 0, "rolled_back": True}.items()
    assert result.structured["error"]
    assert file_states(agent_without_space.root) == before


def test_undo_reverts_a_batch_as_one_change(agent: Agent, folder: Path) -> None:
    files = [folder / name for name in ("a", "b")]
    for file in files:
        file.write_text(TEXT)
    agent.done("apply_patches", strategy="atomic", patches=[op for file in files for op in ops(file, FIRST)])
    agent.done("Undo")
    assert {file.read_text() for file in files} == {TEXT}


def test_files_that_a_batch_leaves_unchanged_are_named(agent: Agent, folder: Path, file: Path) -> None:
    other = folder / "g"
    other.write_text(TEXT)
    same = FIRST.replace("+1\n", "+one\n")
    both = agent.done("apply_patches", strategy="atomic", patches=[*ops(file, same), *ops(other, same)])
    assert "The files already have this content: no edit was recorded, and there is nothing to undo." in both.notes
    one = agent.done("apply_patches", strategy="atomic", patches=[*ops(file, FIRST), *ops(other, same)])
    assert one.text == "Atomically applied 2 patches"
    assert f"Nothing to change in {other}." in one.notes


def test_batch_may_patch_a_file_twice(agent: Agent, file: Path) -> None:
    agent.done("apply_patches", strategy="atomic", patches=ops(file, FIRST, SECOND))
    assert file.read_text().startswith("1\n1.5\ntwo\n")


def test_batch_needs_a_read_only_before_the_first_patch_of_a_file(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    file, other = root / "file", root / "other"
    for each in (file, other):
        each.write_text(TEXT)
    with connected(root, options=["--require-read"]) as agent:
        agent.done("read_file", path="file")
        unread = agent.call("apply_patches", strategy="atomic", patches=ops(file, FIRST) + ops(other, FIRST, SECOND))
        assert [failed["file"] for failed in unread.structured["failures"]] == [str(other)] * 2
        agent.done("apply_patches", strategy="atomic", patches=ops(file, FIRST, SECOND))
    assert file.read_text().startswith("1\n1.5\ntwo\n")


@pytest.mark.parametrize(
    ("strategy", "options"),
    sampled_product(["try_revert", "backup_restore", "atomic", "progressive"], [[], ["--require-read"]]),
)
def test_patch_of_a_partly_read_file_is_known_to_the_session(tmp_path: Path, strategy: str, options: list[str]) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    file = root / "file"
    file.write_text(TEXT)
    with connected(root, options=options) as agent:
        agent.done("read_file", path="file")
        file.write_text(TEXT + "theirs\n")
        agent.done("read_file", path="file", limit=3)
        agent.done("apply_patches", strategy=strategy, patches=ops(file, FIRST))
        mine = [{"old_string": "1\ntwo", "new_string": "one\n2"}]
        agent.done("multi_edit_text_file", path=str(file), edits=mine, rebase=not options)
        refused = agent.call("write_file", path="file", content="mine\n")
        assert refused.error["type"] == "stale_file"  # the model has not seen most of the file
    assert file.read_text() == TEXT.replace("two", "2") + "theirs\n"


def test_batch_reports_every_file_that_must_be_read_first(agent: Agent, folder: Path) -> None:
    files = [folder / name for name in ("a", "b")]
    for file in files:
        agent.done("write_file", path=str(file), content=TEXT)
    patches = [op for file in files for op in ops(file, FIRST)]
    agent.done("apply_patches", strategy="atomic", patches=patches)
    agent.done("Undo")
    reported = agent.call("apply_patches", strategy="atomic", patches=patches).structured
    assert (reported["phase"], reported["validated"], reported["failed"]) == ("validation", 2, 2)
    assert [failed["file"] for failed in reported["failures"]] == [str(file) for file in files]


def test_batch_over_several_directories_is_refused(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("one", "two")]
    for root in roots:
        root.mkdir()
        (root / "f").write_text(TEXT)
    with connected(*roots) as agent:
        patches = [op for root in roots for op in ops(root / "f", FIRST)]
        result = agent.call("apply_patches", strategy="atomic", patches=patches)
    assert result.structured["type"] == "invalid_request"
    assert {(root / "f").read_text() for root in roots} == {TEXT}


# ---- pattern 4


def test_progressive_reports_each_step(agent: Agent, file: Path) -> None:
    result = agent.done("apply_patches", strategy="progressive", patches=ops(file, FIRST))
    steps = result.structured["steps"]
    assert list(steps) == ["safety_check", "validation", "backup", "apply"]
    assert all(step["passed"] is True for step in steps.values())
    assert steps["safety_check"]["details"] is None
    assert steps["validation"]["details"]["preview"]["affected_line_range"] == {"start": 1, "end": 2}
    assert steps["backup"]["details"]["backup_file"] == result.structured["backup_file"]
    assert steps["apply"]["details"]["message"] == "Successfully applied patch to f"
    assert result.structured["changes"] == {"lines_added": 1, "lines_removed": 1, "hunks_applied": 1}
    assert Path(result.structured["backup_file"]).read_text() == TEXT
    assert file.read_text() == TEXT.replace("one", "1")


@pytest.mark.parametrize("strategy", ["backup_restore", "progressive"])
def test_patch_without_changes_records_and_reports_only_its_backup(agent: Agent, file: Path, strategy: str) -> None:
    same = FIRST.replace("+1\n", "+one\n")
    other = file.with_name("other")
    agent.done("write_file", path=str(other), content="work\n")
    result = agent.done("apply_patches", strategy=strategy, patches=ops(file, same), keep_backup=True)
    backup = result.structured["backup_file"]
    reported = "The file already has this content: only its backup was recorded, which Undo leaves alone."
    assert reported in result.notes
    assert [agent.history()[-1].seq] == result.structured["edits"]
    assert Path(backup).read_text() == file.read_text() == TEXT
    assert agent.done("Undo").structured["paths"] == [str(other.relative_to(agent.root))]
    assert (Path(backup).read_text(), other.exists()) == (TEXT, False)


@pytest.mark.parametrize(
    ("name", "patch", "failed_at", "error_type"),
    [
        ("missing", FIRST, "safety_check", "file_not_found"),
        ("f", STALE, "validation", "context_mismatch"),
        ("f", "no patch", "validation", "invalid_patch"),
    ],
)
def test_progressive_reports_the_failed_step(
    agent: Agent, folder: Path, file: Path, name: str, patch: str, failed_at: str, error_type: str
) -> None:
    before = file_states(folder)
    result = agent.call("apply_patches", strategy="progressive", patches=ops(file.with_name(name), patch))
    assert result.refused
    assert (result.structured["failed_at"], result.structured["error_type"]) == (failed_at, error_type)
    step = result.structured["steps"][failed_at]
    assert step["passed"] is False
    assert step["details"]["error"] == result.structured["error"]
    if failed_at == "validation":
        validated = agent.call("validate_patch", **ops(file, patch)[0])
        assert step["details"] == validated.structured
    assert file_states(folder) == before


def test_progressive_restores_the_file_if_the_disk_is_full(agent_without_space: Agent) -> None:
    file = large_file(agent_without_space.root / "file", times=4)
    before = file_states(agent_without_space.root)
    result = agent_without_space.call("apply_patches", strategy="progressive", patches=ops(file, FIRST))
    assert (result.structured["success"], result.structured["failed_at"]) == (False, "apply")
    steps = result.structured["steps"]
    assert {name: step["passed"] for name, step in steps.items()} == {
        "safety_check": True,
        "validation": True,
        "apply": False,
        "restore": True,
    }
    assert file_states(agent_without_space.root) == before


@pytest.mark.parametrize("keeps_backup", [True, False])
def test_backup_restore_restores_the_file_if_the_disk_is_full(
    agent_without_space: Agent, *, keeps_backup: bool
) -> None:
    file = large_file(agent_without_space.root / "file", times=4)
    before = file_states(agent_without_space.root)
    result = agent_without_space.call(
        "apply_patches", strategy="backup_restore", patches=ops(file, FIRST), keep_backup=keeps_backup
    )
    assert (result.structured["phase"], result.structured["restored"]) == ("apply", True)
    assert file_states(agent_without_space.root) == before


# ---- all of them


@pytest.mark.parametrize("strategy", ["backup_restore", "progressive"])
def test_strategies_for_one_patch_refuse_several(agent: Agent, file: Path, strategy: str) -> None:
    result = agent.call("apply_patches", strategy=strategy, patches=ops(file, FIRST, LAST))
    assert (result.structured["type"], result.text) == ("invalid_request", f"{strategy} takes one patch, not 2")
    assert file.read_text() == TEXT


def test_empty_patches_and_unknown_strategies_are_refused(agent: Agent, file: Path) -> None:
    for arguments in (
        {"strategy": "atomic", "patches": []},
        {"strategy": "hope", "patches": ops(file, FIRST)},
        {"strategy": "atomic", "patches": [{"file_path": str(file), "patch": FIRST, "fuzz": 1}]},
    ):
        assert agent.call("apply_patches", **arguments).structured["type"] == "invalid_request"
    assert file.read_text() == TEXT
