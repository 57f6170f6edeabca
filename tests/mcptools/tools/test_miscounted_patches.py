"""Patches whose hunk headers count wrong, such as the document's own examples, over the wire."""

import re
from pathlib import Path

import pytest

from tests.support.mcp_agent import Agent, Result
from tests.support.sampling import sampled_product

CONFIG = "import os\nDEBUG = False\nLOG_LEVEL = 'INFO'\nPORT = 8000\nTIMEOUT = 30\n"
PATCH = """--- config.py
+++ config.py
@@ -1,3 +1,3 @@
 import os
 DEBUG = False
-LOG_LEVEL = 'INFO'
+LOG_LEVEL = 'DEBUG'
 PORT = 8000
"""
NOTE = "Corrected the header of hunk 1: it counts 3 old and 3 new lines, and there are 4 and 4."


def call(agent: Agent, tool: str, path: str, patch: str) -> Result:
    """Call a tool that takes a patch for a file."""
    if tool == "edit_file_diff":
        return agent.call(tool, path=path, diff=patch)
    if tool in {"try_revert", "backup_restore", "atomic", "progressive"}:
        return agent.call("apply_patches", strategy=tool, patches=[{"file_path": path, "patch": patch}])
    return agent.call(tool, file_path=path, patch=patch)


TOOLS = ["apply_patch", "edit_file_diff", "try_revert", "backup_restore", "atomic", "progressive"]


@pytest.mark.parametrize("tool", TOOLS)
def test_miscounted_header_is_put_right_with_a_notice(agent: Agent, folder: Path, tool: str) -> None:
    file = folder / "config.py"
    file.write_text(CONFIG)
    result = call(agent, tool, str(file), PATCH)
    assert not result.refused, result.structured
    assert NOTE in result.notes
    assert file.read_text() == CONFIG.replace("INFO", "DEBUG")


UNCERTAIN = [
    (CONFIG + CONFIG, PATCH),  # the old side is at two places
    (CONFIG.replace("8000", "9000"), PATCH),  # and here at none
    (CONFIG, PATCH.replace("-1,3 +1,3", "-1,5 +1,5")),  # it may have been cut short
    (CONFIG, PATCH.replace("-1,3 +1,3", "-1,3 +1,5")),
]
"""Files and patches whose wrong counts can't be put right."""


@pytest.mark.parametrize(("tool", "uncertain"), sampled_product([*TOOLS, "revert_patch"], UNCERTAIN))
def test_miscounted_header_is_refused_where_it_is_not_certain(
    agent: Agent, folder: Path, tool: str, uncertain: tuple[str, str]
) -> None:
    content, patch = uncertain
    file = folder / "config.py"
    before = content.replace("INFO", "DEBUG") if tool == "revert_patch" else content
    file.write_text(before)
    result = call(agent, tool, str(file), patch)
    if tool == "revert_patch" and content == CONFIG:  # the document's example of a reversal is such a patch
        assert "Corrected the header of hunk 1" in result.notes
        assert file.read_text() == content
        return
    if tool == "edit_file_diff":
        assert result.error["type"] == "invalid_patch"
    else:
        assert result.structured["error_type"] == "invalid_patch"
    assert "Invalid patch format: " in result.text
    assert "the header at line 3 of the patch is @@ -1,4 +1,4 @@" in str(result.structured)
    assert file.read_text() == before


def test_validation_reports_the_correction(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text(CONFIG)
    result = agent.done("validate_patch", file_path=str(file), patch=PATCH)
    assert (result.structured["valid"], result.structured["can_apply"], result.notes) == (True, True, NOTE)
    assert result.structured["preview"]["affected_line_range"] == {"start": 1, "end": 4}
    missing = agent.call("validate_patch", file_path=str(folder / "none"), patch=PATCH)
    assert (missing.structured["valid"], missing.structured["error_type"]) == (True, "file_not_found")
    assert "apply_patch will want the right header." in agent.done("inspect_patch", patch=PATCH).notes


@pytest.mark.parametrize("uncertain", UNCERTAIN)
def test_validation_reports_what_does_not_fit_and_the_header_that_apply_patch_wants(
    agent: Agent, folder: Path, uncertain: tuple[str, str]
) -> None:
    content, patch = uncertain
    file = folder / "config.py"
    file.write_text(content)
    result = agent.call("validate_patch", file_path=str(file), patch=patch)
    fits = content == CONFIG
    assert (result.structured["valid"], result.refused) == (True, not fits)
    assert "apply_patch will want the right header. By its lines, the header at line 3 of the patch is" in (
        result.notes if fits else result.structured["hint"]
    )
    assert fits or (result.structured["can_apply"], result.structured["error_type"]) == (False, "context_mismatch")


def test_miscounted_patch_is_reverted_as_it_was_applied(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text(CONFIG)
    agent.done("apply_patch", file_path=str(file), patch=PATCH)
    assert NOTE in agent.done("revert_patch", file_path=str(file), patch=PATCH).notes
    assert file.read_text() == CONFIG


def test_hunk_above_another_header_may_have_fewer_lines_than_its_header_counts(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text(CONFIG)
    patch = "--- f\n+++ f\n@@ -2,9 +2,9 @@\n-DEBUG = False\n+DEBUG = True\n@@ -5 +5 @@\n-TIMEOUT = 30\n+TIMEOUT = 60\n"
    result = agent.done("apply_patch", file_path=str(file), patch=patch)
    assert "hunk 1: it counts 9 old and 9 new lines, and there are 1 and 1." in result.notes
    assert file.read_text() == CONFIG.replace("False", "True").replace("30", "60")


def test_thousands_of_corrections_are_counted(agent: Agent, folder: Path) -> None:
    file = folder / "many"
    file.write_text("".join(f"l{number}\n" for number in range(9000)))
    hunks = "".join(f"@@ -{3 * n + 1},9 +{3 * n + 1},9 @@\n-l{3 * n}\n+m{3 * n}\n" for n in range(2999))
    patch = f"--- a\n+++ a\n{hunks}@@ -9000 +9000 @@\n-l8999\n+m\n"
    notes = agent.done("apply_patch", file_path=str(file), patch=patch).structured["notes"]
    assert notes[9:11] == [
        "Corrected the header of hunk 10: it counts 9 old and 9 new lines, and there are 1 and 1.",
        "And so in 2989 more hunks.",
    ]


SERVER = """import os


def start_server():
    config = load_config()
    port = config['port']
    app.run(port=port)
"""
EXAMPLE = """--- server.py
+++ server.py
@@ -10,7 +10,7 @@
 def start_server():
     config = load_config()
-    port = config['port']
+    port = config.get('port', 8080)
     app.run(port=port)
"""
REVERT_EXAMPLE = """--- utils.py
+++ utils.py
@@ -5,7 +5,7 @@
 def process():
-    return old_method()
+    return new_method()
"""
REVERT_MADE = "#\n" * 4 + "def process():\n    return new_method()\n\n\n# end\n"
INSPECT_EXAMPLE = """--- config.py
+++ config.py
@@ -1,3 +1,4 @@
 DEBUG = False
+VERBOSE = True
 PORT = 8000
"""
WANTED = (
    "apply_patch will want the right header. By its lines, the header at line 3 of the patch is {}; context counts as "
)


@pytest.mark.parametrize(
    ("patch", "content", "header"),
    [
        (EXAMPLE, "#\n" * 6 + SERVER, "@@ -10,4 +10,4 @@"),
        (EXAMPLE.replace("@@\n ", "@@ "), "#\n" * 5 + SERVER, "@@ -10,3 +10,3 @@"),
        (REVERT_EXAMPLE, "#\n" * 4 + "def process():\n    return old_method()\n", "@@ -5,2 +5,2 @@"),
        (REVERT_EXAMPLE.replace("@@\n ", "@@ "), "#\n" * 4 + "    return old_method()\n", "@@ -5,1 +5,1 @@"),
        (INSPECT_EXAMPLE, "DEBUG = False\nPORT = 8000\n", "@@ -1,2 +1,3 @@"),
    ],
)
def test_examples_of_the_contract_as_printed_are_valid_with_a_note_on_their_headers(
    agent: Agent, folder: Path, patch: str, content: str, header: str
) -> None:
    file = folder / "server.py"
    file.write_text(content)
    result = agent.done("validate_patch", file_path=str(file), patch=patch)
    assert (result.structured["valid"], result.structured["can_apply"]) == (True, True)
    assert result.structured["message"] == "Patch is valid and can be applied cleanly"
    assert result.notes == f"{WANTED.format(header)}old and new."
    applied = agent.call("apply_patch", file_path=str(file), patch=patch)
    assert (applied.structured["error_type"], file.read_text()) == ("invalid_patch", content)
    right = re.sub("@@ .* @@", header, patch)
    assert agent.done("validate_patch", file_path=str(file), patch=right).notes == ""
    agent.done("apply_patch", file_path=str(file), patch=right)


@pytest.mark.parametrize("patch", [REVERT_EXAMPLE, REVERT_EXAMPLE.replace("@@\n ", "@@ ")])
def test_example_of_a_reversal_as_printed_is_reverted_with_a_note_on_its_header(
    agent: Agent, folder: Path, patch: str
) -> None:
    file = folder / "utils.py"
    file.write_text(REVERT_MADE)
    result = agent.done("revert_patch", file_path=str(file), patch=patch)
    assert result.structured["changes"] == {"lines_added": 1, "lines_removed": 1, "hunks_reverted": 1}
    assert result.structured["message"] == "Successfully reverted patch from utils.py"
    assert "Corrected the header of hunk 1: it counts 7 old and 7 new lines" in result.notes
    assert file.read_text() == REVERT_MADE.replace("new_method", "old_method")
    file.write_text(REVERT_MADE * 2)
    refused = agent.call("revert_patch", file_path=str(file), patch=patch)
    assert refused.structured["error_type"] == "invalid_patch"
    assert file.read_text() == REVERT_MADE * 2
