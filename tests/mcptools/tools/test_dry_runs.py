"""Dry runs and refusals change nothing on disk, and a dry run is refused where the call would be."""

import os
from pathlib import Path
from typing import Any

import pytest

from objstore import CallInfo, Workspace
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.mcp_agent import Agent, Result, connected
from tests.support.raw_client import called, started, unprivileged_server

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


def said(result: Result) -> tuple[bool, str]:
    return result.refused, result.text if result.refused else ""


def calls(agent: Agent, path: str, **more: object) -> list[tuple[bool, str]]:
    """Return what comes of a patch that is tried and then applied, with each tool that can do both."""
    return [
        said(agent.call("apply_patch", file_path=path, patch=PATCH, dry_run=True, **more)),
        said(agent.call("apply_patch", file_path=path, patch=PATCH, **more)),
        said(agent.call("edit_file_diff", path=path, diff=PATCH, dry_run=True, **more)),
        said(agent.call("edit_file_diff", path=path, diff=PATCH, **more)),
    ]


@pytest.mark.parametrize(
    ("path", "more", "why"),
    [
        (".git/f", {}, "Permission denied: .git/f"),
        ("none", {}, "File not found: none"),
        ("f", {"mcp_conversation_id": "no id"}, "Not a conversation id: 'no id'"),
        ("f", {"mcp_conversation_id": "external"}, "The conversation name 'external' is reserved"),
    ],
)
@pytest.mark.parametrize("stored", [False, True])
def test_a_dry_run_is_refused_as_the_call_is(
    root: Path, path: str, more: dict[str, Any], why: str, *, stored: bool
) -> None:
    with connected(root) as agent:
        if stored:
            agent.done("write_file", path="other", content="")
        for refused, text in calls(agent, path, **more):
            assert (refused, text[: len(why)]) == (True, why)
        assert (root / ".cas").exists() is stored


@pytest.mark.parametrize("kind", ["two names", "a name outside", "folder", "link", "link outside", "folder is a file"])
@pytest.mark.parametrize("tool", ["apply_patch", "edit_file_diff"])
def test_a_dry_run_has_the_outcome_of_the_call_whatever_is_at_the_path(root: Path, tool: str, kind: str) -> None:
    path, place = "g", root / "g"
    match kind:
        case "two names":
            place.hardlink_to(root / "f")
        case "a name outside":
            place.write_text(TEXT)
            (root.parent / "outside").hardlink_to(place)
        case "folder":
            place.mkdir()
        case "link":
            place.symlink_to("f")
        case "link outside":
            place.symlink_to(root.parent)
        case _:
            path = "f/g"
    arguments = {"file_path": path, "patch": PATCH} if tool == "apply_patch" else {"path": path, "diff": PATCH}
    with connected(root) as agent:
        tried = agent.call(tool, **arguments, dry_run=True)
        assert (root / "f").read_text() == TEXT
        done = agent.call(tool, **arguments)
    assert said(tried) == said(done)


@pytest.mark.parametrize("options", [[], ["--require-read"]])
def test_a_file_that_has_to_be_read_first_is_told_by_what_only_tries_too(root: Path, options: list[str]) -> None:
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


def test_where_nothing_may_be_changed_it_is_not_said_that_a_patch_can_be(root: Path) -> None:
    with connected(root) as agent:
        validated = agent.call("validate_patch", file_path=".git/f", patch=PATCH)
        assert (validated.structured["can_apply"], validated.structured["error_type"]) == (False, "permission_denied")
        tried = agent.done("apply_patch", file_path="read only", patch=PATCH, dry_run=True)
        refused = agent.call("apply_patch", file_path="read only", patch=PATCH)
        assert refused.text == "File is not writable: read only"
        assert tried.texts[1] == f"The patch fits, but applying it now would be refused: {refused.text}"


@pytest.mark.parametrize(("place", "mode"), [("folder/f", 0o444), ("folder", 0o555)])
@pytest.mark.parametrize("stored", [False, True])
def test_a_dry_run_says_where_the_file_may_not_be_written(root: Path, place: str, mode: int, *, stored: bool) -> None:
    (root / "folder").mkdir()
    (root / "folder" / "f").write_text(TEXT)
    if stored:
        Workspace.init(root, UnsyncedDisk()).close()
    (root / place).chmod(mode)
    with started(root, command=unprivileged_server()) as raw:

        def said(number: int, tool: str, **arguments: object) -> tuple[bool, list[str]]:
            raw.send(called(number, tool, **arguments))
            result = raw.answer(number)["result"]
            return result["isError"], [content["text"] for content in result["content"]]

        for number, (tool, arguments) in enumerate(
            [
                ("apply_patch", {"file_path": "folder/f", "patch": PATCH}),
                ("edit_file_diff", {"path": "folder/f", "diff": PATCH}),
            ]
        ):
            tried = said(2 * number, tool, **arguments, dry_run=True)
            refused = said(2 * number + 1, tool, **arguments)
            assert (tried[0], refused[0]) == (False, True)
            why = f"The patch fits, but applying it now would be refused: {refused[1][0]}"
            assert tried[1][1:] == [why]
    (root / place).chmod(0o755)


def test_a_dry_run_by_a_superuser_reports_no_hindrance(root: Path) -> None:
    if os.geteuid():
        pytest.skip("only the superuser may write everything")
    with connected(root) as agent:
        tried = agent.done("edit_file_diff", path="read only", diff=PATCH, dry_run=True)
        agent.done("edit_file_diff", path="read only", diff=PATCH)
    assert len(tried.texts) == 1


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
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
    ],
)
def test_what_is_tried_or_refused_makes_no_store(root: Path, tool: str, arguments: dict[str, Any]) -> None:
    with connected(root) as agent:
        for name in ("f", "read"):
            (root / name).write_text(TEXT)
            agent.done("read_file", path=name)
            (root / name).write_text(f"somebody's\n{TEXT}")
        given = {name: value.format(root=root) if name == "path" else value for name, value in arguments.items()}
        result = agent.call(tool, **given)
        assert result.refused is not ("dry_run" in arguments or tool == "validate_patch")
        assert not (root / ".cas").exists()


def test_a_dry_run_without_a_store_tells_what_the_call_does(root: Path) -> None:
    with connected(root) as agent:
        agent.done("read_file", path="f")
        (root / "f").write_text(f"somebody's\n{TEXT}")
        tried, done = (
            agent.done("edit_file_diff", path="f", diff=PATCH, rebase=True, dry_run=dry_run).structured
            for dry_run in (True, False)
        )
    own = {"dry_run", "edit", "mcp_conversation_id"}
    assert {name: tried[name] for name in tried if name not in own} == {
        name: done[name] for name in done if name not in own
    }
    assert (root / "f").read_text() == "somebody's\nONE\ntwo\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("apply_patch", {"file_path": "f", "patch": PATCH}),
        ("edit_file_diff", {"path": "f", "diff": PATCH}),
        ("edit_file_diff", {"path": "f", "diff": PATCH, "rebase": True}),
    ],
)
def test_in_a_store_that_may_only_be_read_a_patch_can_be_tried(
    root: Path, tool: str, arguments: dict[str, Any]
) -> None:
    with Workspace.init(root, UnsyncedDisk()) as workspace, workspace.call(CallInfo(tool="test")) as call:
        call.write("f", TEXT.encode())
        call.commit()
    said: list[dict[str, Any]] = []
    for mode in (0o700, 0o500):
        for path in (root / ".cas", *(root / ".cas").rglob("*")):
            path.chmod(mode if path.is_dir() else mode & 0o666)
        with started(root, command=unprivileged_server()) as raw:
            raw.send(called(1, tool, **arguments, dry_run=True))
            said.append(raw.answer(1)["result"])
    usual, sealed = said
    assert (usual["isError"], sealed) == (False, usual)
    assert (root / "f").read_text() == TEXT


@pytest.mark.parametrize("strategy", ["try_revert", "atomic"])
@pytest.mark.parametrize(
    "second", ["+++ f\n@@ -1,2 +1,2 @@\n-ONE\n+1\n two\n", "+++ f\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"]
)
def test_patches_together_come_to_the_same_with_and_without_a_store(root: Path, strategy: str, second: str) -> None:
    patches = [{"file_path": name, "patch": PATCH} for name in ("f", "g")] + [
        {"file_path": "f", "patch": f"--- f\n{second}"}
    ]
    if strategy == "try_revert":
        del patches[1]
    said: list[object] = []
    with connected(root) as agent:
        for name in ("f", "g"):
            (root / name).write_text(TEXT)
        for _ in range(2):
            result = agent.call("apply_patches", strategy=strategy, patches=patches)
            said.append({name: value for name, value in result.structured.items() if name != "mcp_conversation_id"})
            agent.done("write_file", path="other", content="makes a store")
            if not result.refused:
                return
    assert said[0] == said[1]
