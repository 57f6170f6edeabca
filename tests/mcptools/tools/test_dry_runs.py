"""Dry runs and refusals change nothing on disk, and a dry run is refused where the call would be."""

import os
from pathlib import Path
from typing import Any

import pytest

from objstore import CallInfo, Workspace
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.mcp_agent import Agent, Result, connected
from tests.support.raw_client import started, tool_call, unprivileged_server
from tests.support.sampling import sampled_product

TEXT = "one\ntwo\n"
PATCH = "--- f\n+++ f\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    (root / ".git").mkdir(parents=True)
    for name in ("f", ".git/f", "read only"):
        (root / name).write_text(TEXT)
    (root / "read only").chmod(0o444)
    return root


def outcome(result: Result) -> tuple[bool, str]:
    return result.refused, result.text if result.refused else ""


def calls(agent: Agent, path: str, **extra_arguments: object) -> list[tuple[bool, str]]:
    """Try and then apply a patch, with each tool that can do both; return the outcomes."""
    return [
        outcome(agent.call("apply_patch", file_path=path, patch=PATCH, dry_run=True, **extra_arguments)),
        outcome(agent.call("apply_patch", file_path=path, patch=PATCH, **extra_arguments)),
        outcome(agent.call("edit_file_diff", path=path, diff=PATCH, dry_run=True, **extra_arguments)),
        outcome(agent.call("edit_file_diff", path=path, diff=PATCH, **extra_arguments)),
    ]


@pytest.mark.parametrize("has_store", [False, True])
def test_dry_run_is_refused_like_the_call(root: Path, *, has_store: bool) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        (".git/f", {}, "Permission denied: .git/f"),
        ("none", {}, "File not found: none"),
        ("f", {"mcp_conversation_id": "no id"}, "Not a conversation id: 'no id'"),
        ("f", {"mcp_conversation_id": "external"}, "The conversation name 'external' is reserved"),
    ]
    with connected(root) as agent:
        if has_store:
            agent.done("write_file", path="other", content="")
        for path, extra_arguments, reason in cases:
            for refused, text in calls(agent, path, **extra_arguments):
                assert (refused, text[: len(reason)]) == (True, reason)
            assert (root / ".cas").exists() is has_store


@pytest.mark.parametrize(
    ("tool", "kind"),
    sampled_product(
        ["apply_patch", "edit_file_diff"],
        ["hard link inside", "link", "link outside", "hard link outside", "folder", "folder is a file"],
    ),
)
def test_dry_run_has_the_outcome_of_the_call_for_any_kind_of_path(root: Path, tool: str, kind: str) -> None:
    path, target = "g", root / "g"
    match kind:
        case "hard link inside":
            target.hardlink_to(root / "f")
        case "hard link outside":
            target.write_text(TEXT)
            (root.parent / "outside").hardlink_to(target)
        case "folder":
            target.mkdir()
        case "link":
            target.symlink_to("f")
        case "link outside":
            target.symlink_to(root.parent)
        case _:
            path = "f/g"
    arguments = {"file_path": path, "patch": PATCH} if tool == "apply_patch" else {"path": path, "diff": PATCH}
    with connected(root) as agent:
        tried = agent.call(tool, **arguments, dry_run=True)
        assert (root / "f").read_text() == TEXT
        done = agent.call(tool, **arguments)
    assert outcome(tried) == outcome(done)


@pytest.mark.parametrize("options", [[], ["--require-read"]])
def test_dry_run_and_validation_report_a_file_that_must_be_read_first(root: Path, options: list[str]) -> None:
    with connected(root, options=options) as agent:
        if not options:
            agent.done("apply_patch", file_path="f", patch=PATCH)
            agent.done("Undo")
        assert {text for _, text in calls(agent, "f")} == {"File must be read before it is changed: f"}
        validated = agent.call("validate_patch", file_path="f", patch=PATCH)
        assert (validated.structured["valid"], validated.structured["can_apply"]) == (True, False)
        assert validated.structured["reason"] == "File must be read before it is changed: f"
        agent.done("read_file", path="f")
        agent.done("validate_patch", file_path="f", patch=PATCH)
        assert calls(agent, "f")[:2] == [(False, "")] * 2


def test_dry_run_and_validation_report_a_file_that_can_not_be_changed(root: Path) -> None:
    with connected(root) as agent:
        validated = agent.call("validate_patch", file_path=".git/f", patch=PATCH)
        assert (validated.structured["can_apply"], validated.structured["error_type"]) == (False, "permission_denied")
        tried = agent.done("apply_patch", file_path="read only", patch=PATCH, dry_run=True)
        refused = agent.call("apply_patch", file_path="read only", patch=PATCH)
        assert refused.text == "File is not writable: read only"
        assert tried.notes == f"The patch fits, but applying it now would be refused: {refused.text}"


@pytest.mark.parametrize("path", ["f", "read only"])
def test_validation_notes_that_applying_would_be_refused_without_write_permission(root: Path, path: str) -> None:
    with connected(root) as agent:
        validated = agent.done("validate_patch", file_path=path, patch=PATCH)
        applied = agent.call("apply_patch", file_path=path, patch=PATCH)
    assert (validated.structured["can_apply"], applied.refused) == (True, path == "read only")
    note = f"The patch fits, but applying it now would be refused: {applied.text}"
    assert validated.notes == (note if applied.refused else "")


def test_validation_notes_that_applying_would_be_refused_for_lack_of_room(root: Path) -> None:
    with connected(root, options=["--min-free-space", str(1 << 62)]) as agent:
        validated = agent.done("validate_patch", file_path="f", patch=PATCH)
        applied = agent.call("apply_patch", file_path="f", patch=PATCH)
    assert (validated.structured["can_apply"], applied.structured["error_type"]) == (True, "disk_space_error")
    assert validated.notes.startswith("The patch fits, but applying it now would be refused: Insufficient disk space: ")


@pytest.mark.parametrize(
    ("protected", "has_store"), sampled_product([("folder/f", 0o444), ("folder", 0o555)], [False, True])
)
def test_dry_run_reports_missing_write_permission(root: Path, protected: tuple[str, int], *, has_store: bool) -> None:
    target, mode = protected
    (root / "folder").mkdir()
    (root / "folder" / "f").write_text(TEXT)
    if has_store:
        Workspace.init(root, UnsyncedDisk()).close()
    (root / target).chmod(mode)
    with started(root, command=unprivileged_server()) as raw:

        def outcome(number: int, tool: str, **arguments: object) -> Result:
            raw.send(tool_call(number, tool, **arguments))
            found = raw.answer(number)["result"]
            texts = [content["text"] for content in found["content"]]
            return Result(refused=found["isError"], structured=found["structuredContent"], texts=texts)

        for number, (tool, arguments) in enumerate(
            [
                ("apply_patch", {"file_path": "folder/f", "patch": PATCH}),
                ("edit_file_diff", {"path": "folder/f", "diff": PATCH}),
            ]
        ):
            tried = outcome(2 * number, tool, **arguments, dry_run=True)
            refused = outcome(2 * number + 1, tool, **arguments)
            assert (tried.refused, refused.refused) == (False, True)
            assert tried.notes == f"The patch fits, but applying it now would be refused: {refused.text}"
    (root / target).chmod(0o755)


def test_dry_run_by_the_superuser_ignores_write_permission(root: Path) -> None:
    if os.geteuid():
        pytest.skip("only the superuser may write everything")
    with connected(root) as agent:
        tried = agent.done("edit_file_diff", path="read only", diff=PATCH, dry_run=True)
        agent.done("edit_file_diff", path="read only", diff=PATCH)
    assert tried.notes == ""


def test_dry_run_or_refused_call_creates_no_store(root: Path) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("edit_file_diff", {"path": "f", "diff": PATCH, "dry_run": True}),
        ("edit_file_diff", {"path": "f", "diff": PATCH, "dry_run": True, "rebase": True}),
        ("apply_patch", {"file_path": "f", "patch": PATCH, "dry_run": True}),
        ("validate_patch", {"file_path": "f", "patch": PATCH}),
        ("edit_file_diff", {"path": "f", "diff": PATCH.replace("two", "2")}),
        ("apply_patch", {"file_path": "f", "patch": PATCH.replace("two", "2")}),
        ("multi_edit_text_file", {"path": "{root}/f", "edits": [{"old_string": "none", "new_string": ""}]}),
        ("write_file", {"path": ".git/new", "content": ""}),
        ("write_file", {"path": "read", "content": ""}),
        ("delete_file", {"path": "none"}),
        ("delete_file", {"path": "read"}),
        ("move_file", {"source": "none", "destination": "new"}),
        ("move_file", {"source": "f", "destination": "read"}),
        ("Undo", {}),
        *(
            (
                "apply_patches",
                {"strategy": strategy, "patches": [{"file_path": "f", "patch": PATCH.replace("two", "2")}]},
            )
            for strategy in ("try_revert", "backup_restore", "atomic", "progressive")
        ),
    ]
    with connected(root) as agent:
        for tool, arguments in calls:
            for name in ("f", "read"):
                (root / name).write_text(TEXT)
                agent.done("read_file", path=name)
                (root / name).write_text(f"somebody's\n{TEXT}")
            given = {name: value.format(root=root) if name == "path" else value for name, value in arguments.items()}
            result = agent.call(tool, **given)
            succeeds = "dry_run" in arguments or tool == "validate_patch"
            assert result.refused is not succeeds, (tool, arguments)
            assert not (root / ".cas").exists(), (tool, arguments)


def test_dry_run_without_a_store_reports_what_the_call_does(root: Path) -> None:
    with connected(root) as agent:
        agent.done("read_file", path="f")
        (root / "f").write_text(f"somebody's\n{TEXT}")
        tried, done = (
            agent.done("edit_file_diff", path="f", diff=PATCH, rebase=True, dry_run=dry_run).structured
            for dry_run in (True, False)
        )
    own_fields = {"dry_run", "edit", "mcp_conversation_id"}
    assert {name: tried[name] for name in tried if name not in own_fields} == {
        name: done[name] for name in done if name not in own_fields
    }
    assert (root / "f").read_text() == "somebody's\nONE\ntwo\n"


def test_patch_can_be_tried_with_a_read_only_store(root: Path) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("apply_patch", {"file_path": "f", "patch": PATCH}),
        ("edit_file_diff", {"path": "f", "diff": PATCH}),
        ("edit_file_diff", {"path": "f", "diff": PATCH, "rebase": True}),
    ]
    with Workspace.init(root, UnsyncedDisk()) as workspace, workspace.call(CallInfo(tool="test")) as call:
        call.write("f", TEXT.encode())
        call.commit()
    outcome: list[list[dict[str, Any]]] = []
    for mode in (0o700, 0o500):
        for path in (root / ".cas", *(root / ".cas").rglob("*")):
            path.chmod(mode if path.is_dir() else mode & 0o666)
        with started(root, command=unprivileged_server()) as raw:
            answered = []
            for number, (tool, arguments) in enumerate(calls):
                raw.send(tool_call(number, tool, **arguments, dry_run=True))
                answered.append(raw.answer(number)["result"])
            outcome.append(answered)
    writable, read_only = outcome
    assert [result["isError"] for result in writable] == [False] * len(calls)
    assert read_only == writable
    assert (root / "f").read_text() == TEXT


@pytest.mark.parametrize("strategy", ["try_revert", "atomic"])
@pytest.mark.parametrize(
    "second", ["+++ f\n@@ -1,2 +1,2 @@\n-ONE\n+1\n two\n", "+++ f\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"]
)
def test_apply_patches_has_the_same_outcome_with_and_without_a_store(root: Path, strategy: str, second: str) -> None:
    patches = [{"file_path": name, "patch": PATCH} for name in ("f", "g")] + [
        {"file_path": "f", "patch": f"--- f\n{second}"}
    ]
    if strategy == "try_revert":
        del patches[1]
    outcome: list[object] = []
    with connected(root) as agent:
        for name in ("f", "g"):
            (root / name).write_text(TEXT)
        for _ in range(2):
            result = agent.call("apply_patches", strategy=strategy, patches=patches)
            outcome.append({name: value for name, value in result.structured.items() if name != "mcp_conversation_id"})
            agent.done("write_file", path="other", content="makes a store")
            if not result.refused:
                return
    assert outcome[0] == outcome[1]
