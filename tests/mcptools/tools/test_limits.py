"""Upper bounds of calls: time, size of answers, and the file reads and memory of an undo."""

import gc
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mcptools.tools.undoing
from mcptools.edit.hashline import line_tag
from mcptools.files.workspaces import Directories
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
from mcptools.server.command import main
from mcptools.tools.patch_strategies import PatchOp, Strategy
from tests.support.direct_tools import Tools
from tests.support.mcp_agent import connected

OPENED: list[str] = []
"""Names of the files that this process opens while `RECORDING` is set."""

RECORDING = [False]


def _record_open(event: str, arguments: tuple[object, ...]) -> None:
    if RECORDING[0] and event == "open":
        OPENED.append(os.fspath(arguments[0]) if isinstance(arguments[0], str) else "")


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[tuple[Tools, Session]]:
    directories, session = Directories([str(tmp_path)]), Session()
    yield Tools(directories, session, ServerLimits()), session
    directories.close()


def test_search_that_takes_too_long_is_a_resource_limit(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "f").write_text("a" * 40 + "b\n")
    with connected(root, options=["--max-seconds", "0.3"]) as agent:
        for tool, argument in (("read_file_by_keyword", "keyword"), ("grep_files", "keyword")):
            error = agent.call(tool, path="f", use_regex=True, **{argument: "(a+)+$"}).error
            assert (error["code"], error["type"]) == (-32024, "resource_limit")
            assert error["message"] == "Searching for '(a+)+$' takes longer than 0.3 s"
            assert error["hint"] == "Use a simpler expression."
        cut = agent.done("grep_files", path=".", keyword="(a+)+$", use_regex=True)
        assert cut.structured["complete"] is False
        assert "0.3 s have passed" in cut.texts[-1]


def test_undo_reads_only_the_files_of_its_change(tools: tuple[Tools, Session], tmp_path: Path) -> None:
    undo_tools, _ = tools
    for number in range(40):
        (tmp_path / f"file-{number}").write_text("old\n")
    patches = [
        {"file_path": f"file-{number}", "patch": "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new\n"} for number in range(20)
    ]
    undo_tools.apply_patches(Strategy.ATOMIC, [PatchOp(**patch) for patch in patches])
    sys.addaudithook(_record_open)
    RECORDING[0] = True
    try:
        undo_tools.Undo()
    finally:
        RECORDING[0] = False
    read = {number: OPENED.count(f"file-{number}") for number in range(40)}
    assert set(list(read.values())[20:]) == {0}
    # Each file is read equally often: before the check, the plan and the change, and once after.
    assert len(set(list(read.values())[:20])) == 1
    assert 1 <= read[0] <= 6
    assert {(tmp_path / f"file-{number}").read_text() for number in range(40)} == {"old\n"}


def test_undo_entry_holds_no_file_content(tools: tuple[Tools, Session], tmp_path: Path) -> None:
    undo_tools, session = tools
    (tmp_path / "large").write_bytes(b"a line of text\n" * 400_000)
    undo_tools.write_file("large", "small\n")
    change = session.last_change()
    assert change is not None
    seen: set[int] = set()
    remaining: list[object] = [change]
    size = 0
    while remaining:
        current = remaining.pop()
        if id(current) in seen or isinstance(current, type):
            continue
        seen.add(id(current))
        size += sys.getsizeof(current)
        remaining += gc.get_referents(current)
    assert size < 100_000


def test_docstring_of_the_undo_module_states_the_cost_of_an_entry() -> None:
    assert "holds no file's bytes" in (mcptools.tools.undoing.__doc__ or "")


def test_tools_work_without_git(tmp_path: Path) -> None:
    empty, root = tmp_path / "bin", tmp_path / "workspace"
    for folder in (empty, root):
        folder.mkdir()
    with connected(root, environment={"PATH": str(empty)}) as agent_without_git:
        agent_without_git.done("write_file", path="file", content="one\ntwo\n")
        agent_without_git.done("edit_file_diff", path="file", diff="--- a\n+++ a\n@@ -1 +1 @@\n-one\n+1\n")
        agent_without_git.done("apply_patch", file_path="file", patch="--- a\n+++ a\n@@ -2 +2 @@\n-two\n+2\n")
        agent_without_git.done("generate_patch", original_file="file", modified_file="file")
        agent_without_git.done("list_edits")
        agent_without_git.done("show_edit", edit=2)
        agent_without_git.done("grep_files", path=".", keyword="2")
        agent_without_git.done("Undo")
    assert (root / "file").read_text() == "1\ntwo\n"
    assert not (root / ".git").exists()


def test_refusals_are_limited_in_length(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    file = root / "a.txt"
    file.write_text("q" * 300_000 + "\n")
    text = "q" * 200_000 + "z"
    calls: list[tuple[str, dict[str, object]]] = [
        ("multi_edit_text_file", {"path": str(file), "edits": [{"old_string": text, "new_string": ""}]}),
        ("edit_text_file", {"path": "a.txt", "file_hash": "", "operations": [{"op": "delete", "anchor": "1:00"}]}),
        ("apply_patch", {"file_path": "a.txt", "patch": f"--- a\n+++ a\n@@ -1 +1 @@\n-{text}\n+b\n"}),
        ("validate_patch", {"file_path": "a.txt", "patch": f"rename from {text}"}),
        ("read_file", {"path": text}),
    ]
    with connected(root) as agent:
        for result in agent.call_concurrently(calls):
            assert result.refused
            assert max(map(len, result.texts)) < (40_000 if result.is_json else 8100)
            assert len(json.dumps(result.structured)) < 80_000
        first = agent.call("multi_edit_text_file", path=str(file), edits=[{"old_string": text, "new_string": ""}])
        assert first.text == f"Edit 0: String not found: {'q' * 7974}… (200027 characters in all)"
        done = agent.done("multi_edit_text_file", path=str(file), edits=[{"old_string": "q\n", "new_string": "\n"}])
        assert len(done.text) < 80_100
        assert len(done.structured["diff"]) > 600_000  # complete, as its contract demands


def test_first_of_many_wrong_arguments_are_named_and_others_counted(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("text\n")
    with connected(tmp_path) as agent:
        edits = [{"old_string": "text", "new_string": "more"}, *([{"old_string": "text"}] * 5000)]
        refused = agent.call("multi_edit_text_file", path=str(tmp_path / "f"), edits=edits)
        first, *others, last = refused.error["arguments"]
        assert first == "edits.1.new_string: Field required"
        assert last == f"and {5000 - 1 - len(others)} more"
        assert refused.text == f"Invalid arguments for multi_edit_text_file: {'; '.join([first, *others, last])}"
        assert len(str(refused.structured)) < 20_000
        few = agent.call("multi_edit_text_file", path=str(tmp_path / "f"), edits=edits[:3]).error["arguments"]
        assert few == ["edits.1.new_string: Field required", "edits.2.new_string: Field required"]


def test_context_of_an_edit_and_generated_patch_fit_in_an_answer(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "long").write_text("x" * 300_000 + "\nshort\n")
    (root / "many").write_text(("y" * 1000 + "\n") * 300)
    (root / "empty").touch()
    with connected(root) as agent:
        for name, numbers in (("long", [1]), ("many", list(range(0, 300, 2)))):
            file_hash = agent.done("read_text_file", path=name).structured["file_hash"]
            tag = line_tag((root / name).read_bytes().splitlines()[numbers[0]])
            ops = [{"op": "replace", "anchor": f"{number + 1}:{tag}", "content": "z" * 500} for number in numbers]
            result = agent.done("edit_text_file", path=name, file_hash=file_hash, operations=ops)
            assert max(map(len, result.texts)) < 80_200
            assert len(result.structured["content"]) < 80_000
            assert f"{numbers[0] + 1}:{line_tag(b'z' * 500)}|{'z' * 500}\n" in result.structured["content"]
            assert ("Not all lines around the changes fit" in result.texts[1]) is (name == "many")
        made = agent.done("generate_patch", original_file="empty", modified_file="long")
    # The text is the structured content, except that such a long patch is cut in it.
    assert len(made.texts[0]) < 80_500
    assert json.loads(made.texts[0]).keys() == made.structured.keys()
    assert len(made.structured["patch"]) > 300_000


def test_notes_on_thousands_of_hunks_or_files_fit_in_an_answer(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    file = root / "file"
    hunks = [f"@@ -{4 * n + 1},2 +{4 * n + 1},2 @@\n-l{4 * n}\n+m{4 * n}\n l{4 * n + 1}\n" for n in range(1000)]
    patch = "--- a\n+++ a\n" + "".join(hunks)
    patch_of_many_files = "".join(f"--- a/{n}/name.txt\n+++ b/{n}/name.txt\n@@ -1 +1 @@\n-a\n+b\n" for n in range(1500))
    lines = [f"l{n}\n" for n in range(4000)]
    file.write_text("".join(["above\n", *lines[:2000], "between\n", *lines[2000:]]))
    expected_note = "Hunks 1 to 500 fit +1 lines away.\nHunks 501 to 1000 fit +2 lines away."
    with connected(root) as agent:
        for tool, arguments in (
            ("validate_patch", {"file_path": "file", "patch": patch}),
            ("edit_file_diff", {"path": "file", "diff": patch, "dry_run": True}),
            ("apply_patch", {"file_path": "file", "patch": patch}),
        ):
            assert agent.done(tool, **arguments).notes.startswith(expected_note), tool
        inspected = agent.done("inspect_patch", patch=patch_of_many_files)
        names = [f"{number:0240}" for number in range(400)]
        for name in names:
            (root / name).write_text("old\n")
        replaced = "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new\n"
        each = [{"file_path": name, "patch": replaced} for name in names]
        agent.done("apply_patches", strategy="atomic", patches=each)
        undone = agent.done("Undo")
    assert (undone.structured["paths"], len(undone.text) < 80_100) == (names, True)
    assert inspected.is_json
    assert len(inspected.structured["files"]) == 1500  # complete, as its contract demands


@pytest.mark.parametrize(
    "limit",
    [
        "--max-file-size=-1",
        "--max-file-size=0",
        "--min-free-space=-5",
        "--binary-check-bytes=0",
        "--max-seconds=nan",
        "--max-seconds=inf",
        "--max-seconds=0",
        "--non-text-threshold=nan",
        "--non-text-threshold=1.5",
        "--non-text-threshold=much",
    ],
)
def test_invalid_limit_is_refused(tmp_path: Path, limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main([limit, str(tmp_path)])
    assert exit_info.value.code == 2
    assert f"argument {limit.partition('=')[0]}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "content"),
    [
        pytest.param(["--non-text-threshold", "0.9"], b"\xe9\xe8 caf\xe9\n" * 3, id="Latin-1"),
        pytest.param(["--binary-check-bytes", "100"], b"caf\n" * 100 + b"\0\n", id="NUL behind the checked bytes"),
    ],
)
def test_reading_and_editing_tools_agree_on_what_is_text(tmp_path: Path, options: list[str], content: bytes) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    file = root / "f"
    file.write_bytes(content)
    with connected(root) as agent:
        assert agent.done("read_file", path="f").structured["binary"] is True
        assert agent.call("read_text_file", path="f").error["type"] == "binary_file"
    with connected(root, options=options) as agent:
        assert agent.done("read_file", path="f").structured["binary"] is False
        assert "caf" in agent.done("read_text_file", path="f").text
        assert agent.done("read_file_by_keyword", path="f", keyword="caf").structured["matches"]
        for target in (file, root):
            assert agent.done("grep_files", path=str(target), keyword="caf").structured["matches"]
