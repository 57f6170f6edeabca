"""`generate_patch` over the wire: every result, special case and example of its contract."""

from pathlib import Path

import pytest

from tests.support.mcp_agent import Agent

OLD = "DEBUG = False\nLOG_LEVEL = 'INFO'\nPORT = 8000\nTIMEOUT = 30\n"
NEW = "DEBUG = False\nLOG_LEVEL = 'DEBUG'\nLOG_FORMAT = 'json'\nPORT = 8000\nTIMEOUT = 30\n"


def test_example_of_the_contract(agent: Agent, folder: Path) -> None:
    # The contract prints the counts of this hunk as 5 and 6, one more than it has lines.
    old, new = folder / "config_v1.py", folder / "config_v2.py"
    old.write_text(OLD)
    new.write_text(NEW)
    result = agent.done("generate_patch", original_file=str(old), modified_file=str(new))
    assert result.structured == {
        "success": True,
        "original_file": str(old),
        "modified_file": str(new),
        "patch": "--- config_v1.py\n+++ config_v2.py\n@@ -1,4 +1,5 @@\n DEBUG = False\n-LOG_LEVEL = 'INFO'\n"
        "+LOG_LEVEL = 'DEBUG'\n+LOG_FORMAT = 'json'\n PORT = 8000\n TIMEOUT = 30\n",
        "changes": {"lines_added": 2, "lines_removed": 1, "hunks": 1},
        "message": "Generated patch from file comparison",
    }


def test_generated_patch_that_can_not_be_applied_has_a_note(agent: Agent, folder: Path) -> None:
    old, new = folder / "old.py", folder / "new.py"
    old.write_text("1\n2\n")
    for text, is_refused in (("1\nNEW\n2\n", True), ("1\nTWO\n", False), ("1\n2\n", False)):
        new.write_text(text)
        generated = agent.done("generate_patch", original_file=str(old), modified_file=str(new), context_lines=0)
        patch = generated.structured["patch"]
        assert agent.call("apply_patch", file_path=str(old), patch=patch, dry_run=True).refused is is_refused
        assert [note.partition(":")[0] for note in generated.notes.splitlines()] == (
            ["apply_patch will refuse this patch"] if is_refused else []
        )


def test_generated_patch_can_be_applied_and_reverted(agent: Agent, folder: Path) -> None:
    old, new = folder / "old.py", folder / "new.py"
    old.write_text(OLD)
    new.write_text(NEW)
    patch = agent.done("generate_patch", original_file=str(old), modified_file=str(new)).structured["patch"]
    agent.done("apply_patch", file_path=str(old), patch=patch)
    assert old.read_text() == NEW
    agent.done("revert_patch", file_path=str(old), patch=patch)
    assert old.read_text() == OLD


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a\r\nb\r\n", b"a\r\nB\r\n"),
        (b"a\nb", b"a\nb\n"),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n"),
        (b"a\n", b"a\r\n"),
        (b"", b"a\n"),
        (b"a\n", b""),
        ("é\u2028\x85\n".encode(), "è\u2028\x85\n".encode()),
    ],
)
def test_generated_patch_reproduces_every_byte(agent: Agent, folder: Path, old: bytes, new: bytes) -> None:
    (folder / "old").write_bytes(old)
    (folder / "new").write_bytes(new)
    generated = agent.done("generate_patch", original_file=str(folder / "old"), modified_file=str(folder / "new"))
    agent.done("apply_patch", file_path=str(folder / "old"), patch=generated.structured["patch"])
    assert (folder / "old").read_bytes() == new


def test_identical_files_give_an_empty_patch(agent: Agent, folder: Path) -> None:
    for name in ("old", "new"):
        (folder / name).write_text(OLD)
    result = agent.done("generate_patch", original_file=str(folder / "old"), modified_file=str(folder / "new"))
    assert result.structured["patch"] == ""
    assert result.structured["changes"] == {"lines_added": 0, "lines_removed": 0, "hunks": 0}
    agent.done("apply_patch", file_path=str(folder / "old"), patch="")


def test_context_lines_default_to_three(agent: Agent, folder: Path) -> None:
    lines = [f"{n}\n" for n in range(1, 12)]
    (folder / "old").write_text("".join(lines))
    (folder / "new").write_text("".join(lines).replace("6\n", "six\n"))
    for arguments, count in (({}, 7), ({"context_lines": 1}, 3), ({"context_lines": 0}, 1)):
        result = agent.done(
            "generate_patch", original_file=str(folder / "old"), modified_file=str(folder / "new"), **arguments
        )
        first = 6 - count // 2
        counts = f"{first},{count}" if count > 1 else f"{first}"
        assert f"@@ -{counts} +{counts} @@\n" in result.structured["patch"]
        validated = agent.done("validate_patch", file_path=str(folder / "old"), patch=result.structured["patch"])
        assert validated.structured["can_apply"] is True
    refused = agent.call(
        "generate_patch", original_file=str(folder / "old"), modified_file=str(folder / "new"), context_lines=-1
    )
    assert refused.structured["error"] == "context_lines must not be negative: -1"


def test_missing_file_is_reported_as_original_or_modified(agent: Agent, folder: Path) -> None:
    existing, missing = folder / "there", folder / "missing"
    existing.write_text("a\n")
    for arguments, message in (
        ({"original_file": str(missing), "modified_file": str(existing)}, f"Original file not found: {missing}"),
        ({"original_file": str(existing), "modified_file": str(missing)}, f"Modified file not found: {missing}"),
    ):
        result = agent.call("generate_patch", **arguments)
        assert (
            result.structured.items()
            >= {
                "success": False,
                "error": message,
                "error_type": "file_not_found",
            }.items()
        )


def test_files_that_are_not_text_are_refused(agent: Agent, folder: Path) -> None:
    (folder / "text").write_text("a\n")
    (folder / "binary").write_bytes(b"a\0b")
    (folder / "latin1").write_bytes(b"some words in a caf\xe9\n")
    (folder / "link").symlink_to("text")
    for name, error_type in (
        ("binary", "binary_file"),
        ("latin1", "encoding_error"),
        ("link", "symlink_error"),
    ):
        for pair in ((name, "text"), ("text", name)):
            original, modified = (str(folder / part) for part in pair)
            result = agent.call("generate_patch", original_file=original, modified_file=modified)
            assert result.structured["error_type"] == error_type


def test_edits_since_a_backup_are_in_the_patch(agent: Agent, folder: Path) -> None:
    file = folder / "config.py"
    file.write_text(OLD)
    backup = agent.done("backup_file", file_path=str(file)).structured["backup_file"]
    file.write_text(NEW)
    result = agent.done("generate_patch", original_file=backup, modified_file=str(file))
    assert result.structured["changes"] == {"lines_added": 2, "lines_removed": 1, "hunks": 1}
