"""`apply_patch` over the wire: every result, edge case and example of its contract."""

from pathlib import Path

import pytest

from objstore import Operation
from tests.support.mcp_agent import Agent, Result, connected
from tests.support.opened_files import opened_files

CONFIG = "DEBUG = False\nLOG_LEVEL = 'INFO'\nPORT = 8000\n"
CONFIG_PATCH = """--- config.py
+++ config.py
@@ -1,3 +1,3 @@
 DEBUG = False
-LOG_LEVEL = 'INFO'
+LOG_LEVEL = 'DEBUG'
 PORT = 8000
"""
HEAD = "--- f\n+++ f\n"


def check_refused(result: Result, error_type: str, message: str) -> None:
    """Check a failure that has the shape of the contract."""
    assert result.refused, result.structured
    assert result.structured["success"] is False
    assert (result.structured["error_type"], result.structured["error"]) == (error_type, message)
    assert result.text == message


def test_example_of_the_contract(agent: Agent, folder: Path) -> None:
    (folder / "config.py").write_text(CONFIG)
    path = f"{folder.name}/config.py"
    result = agent.done("apply_patch", file_path=path, patch=CONFIG_PATCH)
    assert (
        result.structured.items()
        >= {
            "success": True,
            "file_path": path,
            "applied": True,
            "changes": {"lines_added": 1, "lines_removed": 1, "hunks_applied": 1},
            "message": "Successfully applied patch to config.py",
        }.items()
    )
    assert (folder / "config.py").read_text() == CONFIG.replace("INFO", "DEBUG")
    assert "Hunk" not in result.notes  # it fits at its stated lines


def test_part_of_a_patch_is_found_by_the_resolved_path(agent: Agent, folder: Path) -> None:
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "f").write_text("a\n")
    patch = "".join(f"--- a/{name}/f\n+++ b/{name}/f\n@@ -1 +1 @@\n-a\n+{name}\n" for name in ("one", "two"))
    agent.done("apply_patch", file_path=f"{folder.name}/one/../two/./f", patch=patch)
    assert ((folder / "one" / "f").read_text(), (folder / "two" / "f").read_text()) == ("a\n", "two\n")
    dry_run_result = agent.done("apply_patch", file_path=f"{folder.name}/one/f", patch=patch, dry_run=True).structured
    assert (dry_run_result["edit"], dry_run_result["changed_since_read"], dry_run_result["mcp_conversation_id"]) == (
        0,
        False,
        "",
    )


def test_path_may_be_absolute(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text(CONFIG)
    result = agent.done("apply_patch", file_path=str(file), patch=CONFIG_PATCH)
    assert result.structured["file_path"] == str(file)
    assert result.structured["message"] == "Successfully applied patch to config.py"


def test_applied_patch_is_recorded(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text(CONFIG)
    result = agent.done("apply_patch", file_path=str(file), patch=CONFIG_PATCH, mcp_conversation_id="patches")
    view = agent.history()[-1]
    assert (view.seq, view.edit.tool, view.edit.operation) == (
        result.structured["edit"],
        "apply_patch",
        Operation.EDIT,
    )
    assert result.structured["mcp_conversation_id"] == view.edit.conversation == "patches"
    assert [tuple(hunk) for hunk in view.edit.hunks] == [(1, 1, 1, 1)]


def test_hunks_are_counted(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("".join(f"{n}\n" for n in range(1, 10)))
    patch = HEAD + "@@ -1,2 +1,3 @@\n 1\n+x\n 2\n@@ -8,2 +9 @@\n 8\n-9\n"
    result = agent.done("apply_patch", file_path=str(file), patch=patch)
    assert result.structured["changes"] == {"lines_added": 1, "lines_removed": 1, "hunks_applied": 2}
    assert file.read_text() == "1\nx\n2\n3\n4\n5\n6\n7\n8\n"


# ---- dry runs


def test_dry_run_success(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text(CONFIG)
    before, mtime = len(agent.history()), file.stat().st_mtime_ns
    result = agent.done("apply_patch", file_path=str(file), patch=CONFIG_PATCH, dry_run=True)
    assert result.structured["applied"] is True
    assert result.structured["changes"] == {"lines_added": 1, "lines_removed": 1, "hunks_applied": 1}
    assert result.structured["message"] == "Patch can be applied to config.py (dry run)"
    assert (file.read_text(), file.stat().st_mtime_ns) == (CONFIG, mtime)
    assert len(agent.history()) == before


def test_dry_run_failure(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text(CONFIG.replace("INFO", "WARN"))
    result = agent.call("apply_patch", file_path=str(file), patch=CONFIG_PATCH, dry_run=True)
    message = "Context mismatch at line 2: expected 'LOG_LEVEL = 'INFO'' but found 'LOG_LEVEL = 'WARN''"
    check_refused(result, "context_mismatch", message)
    assert result.structured["applied"] is False
    assert file.read_text() == CONFIG.replace("INFO", "WARN")


# ---- edge cases


@pytest.mark.parametrize("patch", ["", " \n\n", HEAD], ids=["empty", "blank", "headers alone"])
def test_empty_patch(agent: Agent, folder: Path, patch: str) -> None:
    file = folder / "file.txt"
    file.write_text("text\n")
    before = len(agent.history())
    for dry_run in (True, False):
        result = agent.done("apply_patch", file_path=str(file), patch=patch, dry_run=dry_run)
        assert result.structured["changes"] == {"lines_added": 0, "lines_removed": 0, "hunks_applied": 0}
        assert result.structured["applied"] is True
    assert file.read_text() == "text\n"
    assert len(agent.history()) == before


def test_whitespace_only_changes(agent: Agent, folder: Path) -> None:
    file = folder / "file.py"
    file.write_text("if x:\n  y\n")
    result = agent.done("apply_patch", file_path=str(file), patch=HEAD + "@@ -1,2 +1,2 @@\n if x:\n-  y\n+    y\n")
    assert result.structured["changes"] == {"lines_added": 1, "lines_removed": 1, "hunks_applied": 1}
    assert file.read_text() == "if x:\n    y\n"


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF in the patch", "CRLF in the patch"])
def test_crlf_line_endings(agent: Agent, folder: Path, ending: str) -> None:
    file = folder / "file.txt"
    file.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    patch = (HEAD + "@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2.5\n three\n").replace("\n", ending)
    agent.done("apply_patch", file_path=str(file), patch=patch)
    assert file.read_bytes() == b"one\r\n2\r\n2.5\r\nthree\r\n"


@pytest.mark.parametrize("tool", ["edit_file_diff", "apply_patch", "apply_patches"])
def test_lines_appended_to_a_crlf_file_without_final_newline_get_crlf(agent: Agent, folder: Path, tool: str) -> None:
    file = folder / "file.txt"
    file.write_bytes(b"a\r\nb")
    patch = HEAD + "@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n"
    op = {"file_path": str(file), "patch": patch}
    arguments: dict[str, dict[str, object]] = {
        "edit_file_diff": {"path": str(file), "diff": patch},
        "apply_patch": dict(op),
        "apply_patches": {"strategy": "atomic", "patches": [op]},
    }
    agent.done(tool, **arguments[tool])
    assert file.read_bytes() == b"a\r\nb\r\nc\r\n"


@pytest.mark.parametrize(
    ("content", "hunk", "after"),
    [
        pytest.param(b"a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n", b"A\nb", id="no newline"),
        pytest.param(b"\xef\xbb\xbfa\nb\n", "@@ -2 +2 @@\n-b\n+B\n", b"\xef\xbb\xbfa\nB\n", id="byte order mark"),
        pytest.param(b"caf\xe9\nb\nc\n", "@@ -2,2 +2,2 @@\n-b\n+B\n c\n", b"caf\xe9\nB\nc\n", id="Latin-1 elsewhere"),
        pytest.param(b"a\rz\x0c\nb\r\nc\n", "@@ -3 +3 @@\n-c\n+C\n", b"a\rz\x0c\nb\r\nC\n", id="mixed endings"),
    ],
)
def test_bytes_outside_the_hunks_are_unchanged(
    agent: Agent, folder: Path, content: bytes, hunk: str, after: bytes
) -> None:
    file = folder / "file.txt"
    file.write_bytes(content)
    agent.done("apply_patch", file_path=str(file), patch=HEAD + hunk)
    assert file.read_bytes() == after


def test_permissions_are_unchanged(agent: Agent, folder: Path) -> None:
    file = folder / "script.sh"
    file.write_text("a\n")
    file.chmod(0o751)
    agent.done("apply_patch", file_path=str(file), patch=HEAD + "@@ -1 +1 @@\n-a\n+b\n")
    assert file.stat().st_mode & 0o777 == 0o751


def test_every_context_line_is_checked(agent: Agent, folder: Path) -> None:
    # A stale patch: the removed line exists, but a newer edit changed the next line.
    file = folder / "config.py"
    file.write_text(CONFIG.replace("8000", "9000"))
    result = agent.call("apply_patch", file_path=str(file), patch=CONFIG_PATCH)
    check_refused(
        result, "context_mismatch", "Context mismatch at line 3: expected 'PORT = 8000' but found 'PORT = 9000'"
    )
    assert file.read_text() == CONFIG.replace("8000", "9000")


def test_moved_hunk_applies_where_it_is_unique(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text("# new\n# lines\n" + CONFIG)
    result = agent.done("apply_patch", file_path=str(file), patch=CONFIG_PATCH)
    assert result.structured["hunk_offsets"] == [2]
    file.write_text("# new\n" + CONFIG + CONFIG)
    result = agent.call("apply_patch", file_path=str(file), patch=CONFIG_PATCH)
    message = "Context of hunk 1 matches more than once, and not at the stated line"
    check_refused(result, "context_mismatch", message)
    assert result.structured["lines"] == [2, 5]


# ---- failures


def test_failure_has_the_shape_of_the_contract(agent: Agent, folder: Path) -> None:
    file = folder / "f.py"
    file.write_text("def bar():\n")
    result = agent.call("apply_patch", file_path=str(file), patch=HEAD + "@@ -1 +1 @@\n-def foo():\n+def baz():\n")
    message = "Context mismatch at line 1: expected 'def foo():' but found 'def bar():'"
    check_refused(result, "context_mismatch", message)
    assert (result.structured["file_path"], result.structured["applied"]) == (str(file), False)


def test_file_not_found(agent: Agent, folder: Path) -> None:
    path = str(folder / "missing.py")
    check_refused(
        agent.call("apply_patch", file_path=path, patch=CONFIG_PATCH), "file_not_found", f"File not found: {path}"
    )
    creation = "--- /dev/null\n+++ missing.py\n@@ -0,0 +1 @@\n+a\n"
    for tool in ("apply_patch", "validate_patch"):
        assert "hint" not in agent.call(tool, file_path=path, patch=CONFIG_PATCH).structured
        result = agent.call(tool, file_path=path, patch=creation)
        assert result.structured["error"] == f"File not found: {path}"
        assert result.structured["hint"] == "The patch creates a file: use write_file."


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("--- f\n@@ -1 +1 @@\n-a\n+b\n", "missing +++ header"),
        ("--- f\n", "missing +++ header"),
        ("no patch at all\n", "missing --- header at line 1"),
        (HEAD + "@@ -1,7 +1,7 @@\n-a\n+b\n", "a hunk is shorter than expected by the counts in its @@ header"),
        (HEAD + "@@ -1 +1 @@\n-b\n+b\n+c\n", "a line beyond the counts in its hunk's @@ header at line 6"),
        (HEAD + "@@ @@\n-a\n+b\n", "a hunk header without line numbers at line 3"),
        ("--- /dev/null\n+++ f\n@@ -0,0 +1 @@\n+a\n", "it creates a file; use write_file"),
        ("--- f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "it deletes the file; use delete_file"),
    ],
)
def test_invalid_patch(agent: Agent, folder: Path, patch: str, message: str) -> None:
    file = folder / "f"
    file.write_text("a\n")
    result = agent.call("apply_patch", file_path=str(file), patch=patch)
    check_refused(result, "invalid_patch", f"Invalid patch format: {message}")
    assert result.structured["applied"] is False
    assert file.read_text() == "a\n"


@pytest.mark.parametrize("mark", ["Kein Zeilenumbruch am Dateiende.", "文件尾没有换行符。", "Pas de fin de ligne\r"])
def test_mark_for_a_missing_newline_may_be_in_any_language(agent: Agent, folder: Path, mark: str) -> None:
    (folder / "a.txt").write_bytes(b"a\nb")
    both = f"--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n a\n-b\n\\ {mark}\n+c\n\\ {mark}\n"
    agent.done("apply_patch", file_path=str(folder / "a.txt"), patch=both)
    assert (folder / "a.txt").read_bytes() == b"a\nc"
    agent.done("revert_patch", file_path=str(folder / "a.txt"), patch=both)
    assert (folder / "a.txt").read_bytes() == b"a\nb"


def test_combined_diff_is_refused_as_what_it_is(agent: Agent, folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"a\nb\n")
    patch = "diff --cc a.txt\n--- a/a.txt\n+++ b/a.txt\n@@@ -1,2 -1,2 +1,2 @@@\n  a\n- b\n +c\n"
    refused = agent.call("apply_patch", file_path=str(folder / "a.txt"), patch=patch)
    assert refused.structured["error"] == "Invalid patch format: it is the combined diff of a merge at line 4"


def test_encoding_error(agent: Agent, folder: Path) -> None:
    # If the lines of the patch are not UTF-8 in the file, whether it fits is unknown.
    file = folder / "latin1.txt"
    file.write_bytes(b"one\ncaf\xe9\nthree\n")
    result = agent.call("apply_patch", file_path=str(file), patch=HEAD + "@@ -1,2 +1,2 @@\n one\n-café\n+tea\n")
    check_refused(result, "encoding_error", "File is not UTF-8 at line 2, which the patch is about")
    assert file.read_bytes() == b"one\ncaf\xe9\nthree\n"


@pytest.mark.parametrize("line_text", ["café", r"caf\xe9"])
def test_diff_of_lines_that_are_not_utf8_is_refused_alike_by_both_tools(
    agent: Agent, folder: Path, line_text: str
) -> None:
    file = folder / "latin1.txt"
    file.write_bytes(b"one\ncaf\xe9\nthree\n")
    patch = f"{HEAD}@@ -1,2 +1,2 @@\n-one\n+1\n {line_text}\n"
    failure = agent.call("apply_patch", file_path=str(file), patch=patch).structured
    error = agent.call("edit_file_diff", path=str(file), diff=patch).error
    assert (error["type"], error["message"], error["line"]) == (failure["error_type"], failure["error"], 2)
    assert failure["error"] == "File is not UTF-8 at line 2, which the patch is about"
    assert error["hint"] == failure["hint"]
    assert error["hint"].startswith(r"It is shown as 'caf\xe9', and no diff can contain it.")
    agent.done("edit_file_diff", path=str(file), diff=f"{HEAD}@@ -1 +1 @@\n-one\n+1\n")
    assert file.read_bytes() == b"1\ncaf\xe9\nthree\n"


def test_matching_part_of_a_patch_of_several_files_is_applied(agent: Agent, folder: Path) -> None:
    (folder / "src").mkdir()
    for name in ("src/one.py", "two.py"):
        (folder / name).write_text("old\n")
    patch = (
        "diff --git a/src/one.py b/src/one.py\nindex 1..2 100644\n--- a/src/one.py\n+++ b/src/one.py\n"
        "@@ -1 +1 @@\n-old\n+one\n--- two.py\n+++ two.py\n@@ -1 +1 @@\n-old\n+two\n"
    )
    agent.done("apply_patch", file_path=str(folder / "two.py"), patch=patch)
    agent.done("apply_patch", file_path=str(folder / "src" / "one.py"), patch=patch)
    assert (folder / "src" / "one.py").read_text() == "one\n"
    assert (folder / "two.py").read_text() == "two\n"
    (folder / "three.py").write_text("old\n")
    result = agent.call("apply_patch", file_path=str(folder / "three.py"), patch=patch)
    check_refused(result, "invalid_patch", "Invalid patch format: more than one file, and no part for three.py")


def test_part_with_the_longest_matching_path_is_applied(agent: Agent, folder: Path) -> None:
    (folder / "docs").mkdir()
    for name in ("README.md", "docs/README.md"):
        (folder / name).write_text("old\n")
    patch = "".join(
        f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-old\n+{name}\n" for name in ("README.md", "docs/README.md")
    )
    for name in ("docs/README.md", "README.md"):
        agent.done("apply_patch", file_path=str(folder / name), patch=patch)
        assert (folder / name).read_text() == f"{name}\n"
    (folder / "twice").write_text("old\n")
    twice = "--- twice\n+++ twice\n@@ -1 +1 @@\n-old\n+new\n" * 2
    result = agent.call("apply_patch", file_path=str(folder / "twice"), patch=twice)
    check_refused(result, "context_mismatch", "Hunks 1 and 2 both fit at line 1, which only one of them can have")
    assert (folder / "twice").read_text() == "old\n"


def test_parts_for_one_file_are_applied_as_one(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    file.write_text(text)
    parts = ["@@ -2 +2,2 @@\n-2\n+two\n+2½\n", "@@ -8 +9 @@\n-8\n+eight\n"]
    patch = "".join(f"--- a/f\n+++ b/f\n{hunk}" for hunk in parts) + "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-1\n+one\n"
    made = text.replace("2", "two\n2½").replace("8", "eight")
    result = agent.done("apply_patch", file_path=str(file), patch=patch)
    assert result.structured["changes"] == {"lines_added": 3, "lines_removed": 2, "hunks_applied": 2}
    assert file.read_text() == made
    agent.done("revert_patch", file_path=str(file), patch=patch)
    assert file.read_text() == text
    agent.done("apply_patches", strategy="atomic", patches=[{"file_path": str(file), "patch": patch}])
    assert file.read_text() == made


def test_a_part_may_be_made_of_what_the_part_before_it_leaves(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("1\n2\n3\n")
    patch = "--- f\n+++ f\n@@ -1 +1,2 @@\n-1\n+one\n+more\n--- f\n+++ f\n@@ -2,2 +2,2 @@\n-more\n+MORE\n 2\n"
    assert agent.done("validate_patch", file_path=str(file), patch=patch).structured["can_apply"]
    made = agent.done("apply_patch", file_path=str(file), patch=patch)
    assert made.structured["hunk_offsets"] == [0, 0]
    assert file.read_text() == "one\nMORE\n2\n3\n"
    assert agent.done("revert_patch", file_path=str(file), patch=patch).structured["hunk_offsets"] == [0, 0]
    assert file.read_text() == "1\n2\n3\n"


def test_paths_in_a_patch_are_never_opened(tmp_path: Path) -> None:
    root, outside = tmp_path / "workspace", tmp_path / "outside.txt"
    root.mkdir()
    inside, file = root / "named.txt", root / "mine.txt"
    for path in (outside, inside, file):
        path.write_text("old\n")
    names = ("../outside.txt", str(outside), "a/../../outside.txt", "named.txt", "./named.txt", str(inside))
    patches = [f"--- {name}\n+++ {name}\n@@ -1 +1 @@\n-old\n+new\n" for name in names]
    with connected(root) as agent:
        with opened_files(outside, inside, file) as opened:
            for patch in patches:
                agent.done("inspect_patch", patch=patch)
                assert opened.take() == set()
                agent.done("validate_patch", file_path="mine.txt", patch=patch)
                agent.done("apply_patch", file_path="mine.txt", patch=patch, dry_run=True)
                assert opened.take() == {file}
        # The first change begins a history, for which every file of the workspace is read once.
        agent.done("write_file", path="other.txt", content="")
        with opened_files(outside, inside) as opened:
            for patch in patches:
                agent.done("apply_patch", file_path="mine.txt", patch=patch)
                agent.done("revert_patch", file_path="mine.txt", patch=patch)
            agent.done("apply_patch", file_path="mine.txt", patch=patches[0])
            assert opened.take() == set()
            assert inside.read_text() == outside.read_text() == "old\n"
            assert opened.take() == {inside, outside}  # it would have been noticed
    assert file.read_text() == "new\n"


def numbered(changed: str, names: tuple[str, str], *, renames: bool = True) -> str:
    """Return a part of a patch for a file with the letters a to m, one a line, of which `changed` is doubled."""
    source, target = names
    head = f"diff --git a/{source} b/{target}\n"
    if source != target and renames:
        head += f"similarity index 92%\nrename from {source}\nrename to {target}\n"
    letters = "abcdefghijklm"
    at = letters.index(changed)
    lines = [
        f" {letter}\n" if letter != changed else f"-{letter}\n+{letter}{letter}\n"
        for letter in letters[at - 3 : at + 4]
    ]
    return f"{head}--- a/{source}\n+++ b/{target}\n@@ -{at - 2},7 +{at - 2},7 @@\n{''.join(lines)}"


LETTERS = "".join(f"{letter}\n" for letter in "abcdefghijklm")


@pytest.mark.parametrize(
    ("patch", "moves", "made"),
    [
        (numbered("d", ("f", "g")), ("f g",), {"g": "d"}),
        (numbered("d", ("f", "g")) + numbered("i", ("g", "g")), ("f g",), {"g": "di"}),
        (
            numbered("d", ("f", "g")) + numbered("e", ("h", "f")) + numbered("j", ("f", "f")),
            ("f g", "h f"),
            {"g": "d", "f": "ej"},
        ),
        (
            "diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n" + numbered("d", ("g", "g")),
            ("f g",),
            {"g": "d"},
        ),
        (
            f"=== renamed file 'f' => 'g'\n{numbered('d', ('f', 'g'), renames=False).partition(chr(10))[2]}",
            ("f g",),
            {"g": "d"},
        ),
    ],
)
def test_lines_of_a_renamed_file_are_changed_once_it_was_moved(
    agent: Agent, folder: Path, patch: str, moves: tuple[str, ...], made: dict[str, str]
) -> None:
    for name in ("f", "h"):
        (folder / name).write_text(LETTERS)
    before = agent.call("apply_patch", file_path=f"{folder.name}/f", patch=patch)
    assert before.refused
    assert (folder / "f").read_text() == LETTERS
    for move in moves:
        source, target = (f"{folder.name}/{name}" for name in move.split())
        agent.done("move_file", source=source, destination=target)
    for name, doubled in made.items():
        agent.done("apply_patch", file_path=f"{folder.name}/{name}", patch=patch)
        lines = (letter * (1 + (letter in doubled)) for letter in LETTERS.split())
        assert (folder / name).read_text() == "".join(f"{line}\n" for line in lines)
    for name in reversed(made):
        agent.done("revert_patch", file_path=f"{folder.name}/{name}", patch=patch)
        assert (folder / name).read_text() == LETTERS


def test_a_rename_is_refused_with_the_tool_that_makes_it(agent: Agent, folder: Path) -> None:
    (folder / "f").write_text(LETTERS)
    patch = numbered("d", ("f", "g"))
    refused = agent.call("apply_patch", file_path=f"{folder.name}/f", patch=patch)
    assert refused.structured["hint"] == "Rename it to g with move_file, then apply the patch to that file."
    inspected = agent.done("inspect_patch", patch=patch)
    assert "g: rename f to it with move_file; then apply_patch changes its lines." in inspected.notes


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ("@@ -1,3 +1,3 @@\n-a\n+A\n b\n c\n", b"A\nb\nc\n"),
        ("@@ -1,3 +1,4 @@\n+new\n a\n b\n c\n", b"new\na\nb\nc\n"),
        ("@@ -1,2 +1 @@\n-a\n b\n@@ -3 +2 @@\n-c\n+C\n", b"b\nC\n"),
        ("@@ -1,2 +1,2 @@\n a\n-b\n+B\n", b"a\nB\nc\n"),
        ("@@ -1,2 +1,2 @@\n-\ufeffa\n+\ufeffA\n b\n", b"A\nb\nc\n"),
    ],
)
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_a_patch_of_what_a_model_reads_leaves_a_byte_order_mark(
    agent: Agent, folder: Path, patch: str, after: bytes, ends: bytes
) -> None:
    file = folder / "f"
    before = MARK + b"a\nb\nc\n".replace(b"\n", ends)
    file.write_bytes(before)
    arguments = {"file_path": f"{folder.name}/f", "patch": HEAD + patch}
    agent.done("validate_patch", **arguments)
    agent.done("apply_patch", **arguments)
    assert file.read_bytes() == MARK + after.replace(b"\n", ends)
    agent.done("revert_patch", **arguments)
    assert file.read_bytes() == before
    agent.done("edit_file_diff", path=f"{folder.name}/f", diff=HEAD + patch)
    assert file.read_bytes() == MARK + after.replace(b"\n", ends)
