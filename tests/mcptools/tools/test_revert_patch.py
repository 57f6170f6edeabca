"""`revert_patch` over the wire: every result and example of its contract."""

from pathlib import Path

import pytest

from tests.support.mcp_agent import Agent, connected

UTILS = "import re\n\n\ndef process():\n    return old_method()\n"
UTILS_PATCH = """--- utils.py
+++ utils.py
@@ -4,2 +4,2 @@
 def process():
-    return old_method()
+    return new_method()
"""


def test_applied_patch_is_reverted(agent: Agent, folder: Path) -> None:
    file = folder / "utils.py"
    file.write_text(UTILS)
    agent.done("apply_patch", file_path=str(file), patch=UTILS_PATCH)
    assert file.read_text() == UTILS.replace("old", "new")
    result = agent.done("revert_patch", file_path=str(file), patch=UTILS_PATCH)
    assert (
        result.structured.items()
        >= {
            "success": True,
            "file_path": str(file),
            "reverted": True,
            "changes": {"lines_added": 1, "lines_removed": 1, "hunks_reverted": 1},
            "message": "Successfully reverted patch from utils.py",
        }.items()
    )
    assert file.read_text() == UTILS
    view = agent.history()[-1]
    assert (view.seq, view.edit.tool) == (result.structured["edit"], "revert_patch")


def test_reported_changes_are_the_reverse_of_the_patch(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    patch = "--- f\n+++ f\n@@ -1,3 +1 @@\n-1\n-2\n 3\n@@ -8,2 +6,3 @@\n 8\n-9\n+IX\n+X\n"
    agent.done("apply_patch", file_path=str(file), patch=patch)
    assert file.read_text() == "3\n4\n5\n6\n7\n8\nIX\nX\n"
    result = agent.done("revert_patch", file_path=str(file), patch=patch)
    assert result.structured["changes"] == {"lines_added": 3, "lines_removed": 2, "hunks_reverted": 2}
    assert file.read_text() == "1\n2\n3\n4\n5\n6\n7\n8\n9\n"


def test_revert_is_refused_if_the_patched_lines_have_changed(agent: Agent, folder: Path) -> None:
    file = folder / "utils.py"
    current = UTILS.replace("old", "newer")
    file.write_text(current)
    result = agent.call("revert_patch", file_path=str(file), patch=UTILS_PATCH)
    message = (
        "Cannot revert: context at line 5 has changed. "
        "Expected '    return new_method()' but found '    return newer_method()'"
    )
    assert result.refused
    assert (
        result.structured.items()
        >= {
            "success": False,
            "file_path": str(file),
            "reverted": False,
            "error": message,
            "error_type": "context_mismatch",
        }.items()
    )
    assert file.read_text() == current


def test_revert_is_refused_if_the_patch_matches_twice(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text("0\nnew\n1\nnew\n")
    result = agent.call("revert_patch", file_path=str(file), patch="--- f\n+++ f\n@@ -1 +1 @@\n-old\n+new\n")
    assert result.structured["error"] == "Cannot revert: file has been modified since patch was applied"
    assert result.structured["lines"] == [2, 4]


TWO_MATCHES = "begin\nb\nend\n--\nbegin\na\nend\n"
TWO_MATCHES_PATCH = "--- f\n+++ f\n@@ -1,3 +1,3 @@\n begin\n-a\n+b\n end\n"


def test_patch_is_reverted_where_it_was_applied(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text(TWO_MATCHES)
    assert agent.done("apply_patch", file_path=str(file), patch=TWO_MATCHES_PATCH).structured["hunk_offsets"] == [4]
    with connected(agent.root) as other:  # the history knows where the patch was applied
        assert other.done("revert_patch", file_path=str(file), patch=TWO_MATCHES_PATCH).structured["hunk_offsets"] == [
            4
        ]
    assert file.read_text() == TWO_MATCHES


def test_revert_does_not_guess_where_a_patch_was_applied(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_text(TWO_MATCHES)
    agent.done("apply_patch", file_path=str(file), patch=TWO_MATCHES_PATCH)
    file.write_text(current := file.read_text() + "somebody's\n")
    result = agent.call("revert_patch", file_path=str(file), patch=TWO_MATCHES_PATCH)
    assert result.structured["error"] == "Cannot revert: file has been modified since patch was applied"
    assert result.structured["lines"] == [1, 5]
    assert file.read_text() == current


def test_revert_keeps_changes_elsewhere(agent: Agent, folder: Path) -> None:
    file = folder / "utils.py"
    file.write_text(UTILS)
    agent.done("apply_patch", file_path=str(file), patch=UTILS_PATCH)
    file.write_text("# somebody's line\n" + file.read_text())
    agent.done("revert_patch", file_path=str(file), patch=UTILS_PATCH)
    assert file.read_text() == "# somebody's line\n" + UTILS


@pytest.mark.parametrize(
    ("content", "hunk"),
    [
        pytest.param(b"a\r\nb\r\n", "@@ -1,2 +1,3 @@\n a\n-b\n+B\n+c\n", id="CRLF, LF in the patch"),
        pytest.param(b"a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", id="final newline"),
        pytest.param(b"\xef\xbb\xbfa\nb\n", "@@ -2 +2 @@\n-b\n+B\n", id="byte order mark"),
        pytest.param(b"a\n\xff\nb\n", "@@ -1 +1 @@\n-a\n+A\n", id="other bytes that are not UTF-8"),
        pytest.param(b"", "@@ -0,0 +1,2 @@\n+a\n+b\n", id="an empty file"),
        pytest.param(b"a\n", "@@ -1 +0,0 @@\n-a\n", id="all lines"),
    ],
)
def test_apply_then_revert_restores_every_byte(agent: Agent, folder: Path, content: bytes, hunk: str) -> None:
    file = folder / "f"
    file.write_bytes(content)
    patch = "--- f\n+++ f\n" + hunk
    agent.done("apply_patch", file_path=str(file), patch=patch)
    assert file.read_bytes() != content
    agent.done("revert_patch", file_path=str(file), patch=patch)
    assert file.read_bytes() == content


def test_revert_of_an_empty_patch_counts_zero(agent: Agent, folder: Path) -> None:
    (folder / "f").write_text("a\n")
    result = agent.done("revert_patch", file_path=str(folder / "f"), patch="")
    assert result.structured["changes"] == {"lines_added": 0, "lines_removed": 0, "hunks_reverted": 0}


def test_revert_of_an_invalid_patch_is_refused(agent: Agent, folder: Path) -> None:
    (folder / "f").write_text("a\n")
    result = agent.call("revert_patch", file_path=str(folder / "f"), patch="@@ -1 +1 @@\n-b\n+a\n")
    assert (result.structured["error_type"], result.structured["reverted"]) == ("invalid_patch", False)


def test_revert_over_bytes_that_are_not_utf8_is_an_encoding_error(agent: Agent, folder: Path) -> None:
    (folder / "f").write_bytes(b"caf\xe9\nb\nc\nd\ne\nf\n")
    result = agent.call("revert_patch", file_path=str(folder / "f"), patch="--- f\n+++ f\n@@ -1 +1 @@\n-tea\n+coffee\n")
    assert result.structured["error_type"] == "encoding_error"
