"""Reading and changing whole files over the wire: answers are exact, and all other bytes are unchanged."""

import hashlib
import os
from pathlib import Path

import pytest

from mcptools.edit.hashline import line_tag
from objstore import MAX_BLOB, Operation
from tests.support.mcp_agent import Agent, connected
from tests.support.mounts import bind_mount, can_mount, small_disk
from tests.support.raw_client import started, tool_call, unprivileged_server
from tests.support.sampling import sampled_product


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# ---- reading


@pytest.mark.parametrize(
    "content", [b"", b"text\n", b"no newline", b"a\r\nb\rc\n", b"\xef\xbb\xbfbom\n", "日本 \U0001f600\n".encode()]
)
def test_text_file_is_read_exactly(agent: Agent, folder: Path, content: bytes) -> None:
    file = folder / "file.txt"
    file.write_bytes(content)
    result = agent.done("read_file", path=str(file))
    assert result.structured == {
        "success": True,
        "path": str(file),
        "content": content.decode(),
        "binary": False,
        "utf8": True,
        "type": "text/plain",
        "size": len(content),
        "file_hash": sha256(content),
        "next_offset": 0,
    }
    assert result.texts == [content.decode()]


def test_bytes_that_are_not_utf8_are_escaped_and_reported(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_bytes(b"caf\xe9 au lait and more text\n")
    result = agent.done("read_file", path=str(file))
    assert result.structured["content"] == "caf\\xe9 au lait and more text\n"
    assert result.structured["utf8"] is False
    assert "Not UTF-8" in result.texts[1]


def test_read_of_a_binary_file_returns_type_size_and_hash(agent: Agent, folder: Path) -> None:
    content = b"\x89PNG\r\n\x1a\n\0\0\0"
    file = folder / "image.png"
    file.write_bytes(content)
    result = agent.done("read_file", path=str(file))
    assert (result.structured["binary"], result.structured["content"]) == (True, "")
    assert result.structured["type"] == "image/png"
    assert result.structured["size"] == len(content)
    assert result.structured["file_hash"] == sha256(content)
    assert agent.call("read_text_file", path=str(file)).error["code"] == -32004


@pytest.mark.parametrize(
    ("content", "lines", "endings", "final_newline"),
    [
        (b"", [], "none", False),
        (b"one", ["one"], "none", False),
        (b"one\n\n  two \n", ["one", "", "  two "], "lf", True),
        (b"one\r\ntwo\r\n", ["one", "two"], "crlf", True),
        (b"one\r\ntwo\nthree", ["one", "two", "three"], "mixed", False),
        (b"text\x0cb\x85c\xe2\x80\xa8text\n", ["text\x0cb\\x85c\u2028text"], "lf", True),
    ],
)
def test_text_file_is_read_as_hashlines(
    agent: Agent, folder: Path, content: bytes, lines: list[str], endings: str, *, final_newline: bool
) -> None:
    file = folder / "file.txt"
    file.write_bytes(content)
    result = agent.done("read_text_file", path=str(file))
    raw = content.split(b"\n")
    expected = "".join(f"{n}:{line_tag(raw[n - 1])}|{line}\n" for n, line in enumerate(lines, 1))
    assert result.structured["content"] == result.text == expected
    assert result.structured["file_hash"] == sha256(content)
    assert result.structured["lines"] == len(lines)
    assert (result.structured["line_endings"], result.structured["final_newline"]) == (endings, final_newline)


@pytest.mark.parametrize(
    ("content", "encoding", "note"),
    [
        (b"one\ntwo\n", "utf-8", ""),
        (b"one\r\ntwo\r\n", "utf-8", "Lines end in CRLF."),
        (b"one\r\ntwo\n", "utf-8", "Some lines end in CRLF, others in LF."),
        (b"one\rtwo\r", "utf-8", "Lines end in CR alone."),
        (b"\xef\xbb\xbfone\n", "utf-8-bom", "It begins with a byte-order mark of UTF-8"),
        (b"caf\xe9\n", "unknown", "Not UTF-8 throughout"),
    ],
)
def test_reading_says_the_line_endings_and_the_encoding(
    agent: Agent, folder: Path, content: bytes, encoding: str, note: str
) -> None:
    (folder / "f").write_bytes(content)
    result = agent.done("read_text_file", path=str(folder / "f"))
    assert result.structured["encoding"] == encoding
    assert note in result.notes
    assert bool(note) == ("\n" in result.notes)


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        (
            b"a\r\nb\r\n",
            "a\nb\n",
            r"All lines ended in CRLF, and now end in LF. If that is not meant, write it again with \r\n.",
        ),
        (b"a\r\nb\r\n", "a\r\nb\n", "All lines ended in CRLF, and now end in LF in part."),
        (b"a\rb\r", "a\nb\n", "All lines ended in CR, and now end in LF."),
        (b"a\nb\n", "a\r\nb\r\n", "All lines ended in LF, and now end in CRLF."),
        (b"\xef\xbb\xbfa\n", "a\n", "The byte-order mark at its beginning is gone."),
        (b"a\r\nb\r\n", "a\r\nc\r\n", ""),
        (b"a\r\nb\n", "a\nb\n", ""),
        (b"a", "a\r\n", ""),
    ],
)
def test_writing_a_file_that_turns_all_its_endings_round_says_so(
    agent: Agent, folder: Path, before: bytes, after: str, note: str
) -> None:
    (folder / "f").write_bytes(before)
    agent.done("read_file", path=str(folder / "f"))
    result = agent.done("write_file", path=str(folder / "f"), content=after)
    assert (folder / "f").read_bytes() == after.encode()
    assert note in result.notes
    assert note or "LF" not in result.notes


def test_file_over_the_limit_is_not_read(agent: Agent, folder: Path) -> None:
    file = folder / "big.txt"
    limit = 10 << 20
    with file.open("wb") as big:
        big.truncate(limit + 1)
    for tool in ("read_file", "read_text_file"):
        error = agent.call(tool, path=str(file)).error
        assert (error["code"], error["type"]) == (-32024, "resource_limit")
        assert (error["size"], error["limit"]) == (limit + 1, limit)
    edit = {"old_string": "a", "new_string": "b"}
    assert agent.call("multi_edit_text_file", path=str(file), edits=[edit]).error["code"] == -32024


LARGE_SIZE = MAX_BLOB + 1
"""Size of a file that is not held in memory; it is sparse, so that it is read quickly."""


@pytest.fixture
def large(folder: Path) -> Path:
    file = folder / "large"
    with file.open("wb") as opened:
        opened.truncate(LARGE_SIZE)
    return file


def log_size(agent: Agent) -> int:
    """Return the size of the store's log in bytes."""
    return sum(segment.stat().st_size for segment in (agent.root / ".cas" / "segments").iterdir())


@pytest.mark.parametrize("tool", ["multi_edit_text_file", "edit_file_diff", "edit_text_file"])
def test_refused_edit_of_a_large_file_stores_nothing(agent: Agent, large: Path, tool: str) -> None:
    agent.done("write_file", path=str(large.with_name("small")), content="so that there is a store\n")
    before = log_size(agent)
    arguments: dict[str, dict[str, object]] = {
        "multi_edit_text_file": {"edits": [{"old_string": "a", "new_string": "b"}]},
        "edit_file_diff": {"diff": "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n"},
        "edit_text_file": {"file_hash": "0" * 64, "operations": [{"op": "delete", "anchor": "1:00"}]},
    }
    error = agent.call(tool, path=str(large), **arguments[tool]).error
    assert (error["type"], error["size"], error["limit"]) == ("resource_limit", LARGE_SIZE, 10 << 20)
    assert log_size(agent) == before


@pytest.mark.parametrize("has_store", [True, False])
def test_move_of_a_large_file_can_be_undone(tmp_path: Path, large: Path, *, has_store: bool) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    file = large.rename(root / "large")
    with connected(root) as agent:
        if has_store:
            agent.done("write_file", path="small", content="so that there is a store\n")
        agent.done("move_file", source="large", destination="moved")
        assert (root / "moved").stat().st_size == LARGE_SIZE
        agent.done("Undo")
        assert file.stat().st_size == LARGE_SIZE


def test_deletion_and_replacement_of_a_large_file_can_be_undone(tmp_path: Path, large: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    file = large.rename(root / "large")
    (root / "backup").write_text("small\n")
    calls: list[tuple[str, dict[str, object]]] = [
        ("delete_file", {"path": "large"}),
        ("write_file", {"path": "large", "content": "small\n"}),
        ("restore_backup", {"backup_file": "backup", "target_file": "large", "force": True}),
    ]
    for tool, arguments in calls:
        with connected(root) as agent:
            agent.done(tool, **arguments)
            assert file.read_text() == "small\n" if tool != "delete_file" else not file.exists()
            agent.done("Undo")
            assert file.stat().st_size == LARGE_SIZE


@pytest.mark.parametrize(
    ("tool", "has_store"), sampled_product(["move_file", "delete_file", "write_file"], [True, False])
)
def test_unread_large_file_is_refused_and_not_stored(
    tmp_path: Path, large: Path, tool: str, *, has_store: bool
) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    file = large.rename(root / "large")
    arguments_by_tool = {"move_file": {"source": "large", "destination": "moved"}, "delete_file": {"path": "large"}}
    arguments = arguments_by_tool.get(tool, {"path": "large", "content": "small\n"})
    with connected(root, options=["--require-read"]) as agent:
        if has_store:
            agent.done("write_file", path="small", content="so that there is a store\n")
        before = log_size(agent) if has_store else 0
        assert agent.call(tool, **arguments).error["type"] == "resource_limit"
        assert (root / ".cas").exists() is has_store
        assert not has_store or log_size(agent) == before
    assert file.stat().st_size == LARGE_SIZE


@pytest.mark.parametrize("tool", ["delete_file", "write_file"])
def test_file_that_has_become_too_large_since_it_was_read_is_refused(agent: Agent, folder: Path, tool: str) -> None:
    file = folder / "grows"
    agent.done("write_file", path=str(file), content="small\n")
    before = log_size(agent)
    with file.open("ab") as opened:
        opened.truncate(LARGE_SIZE)
    arguments = {"content": "mine\n"} if tool == "write_file" else {}
    assert agent.call(tool, path=str(file), **arguments).error["type"] == "resource_limit"
    assert log_size(agent) == before


@pytest.mark.parametrize("has_store", [False, True])
def test_hint_does_not_suggest_reading_a_file_that_is_too_large(tmp_path: Path, *, has_store: bool) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "log").write_text("begun\n")
    with connected(root, options=["--max-file-size", "100"]) as agent:
        if has_store:
            agent.done("write_file", path="other", content="so that there is a store\n")
        agent.done("read_file", path="log")
        (root / "log").write_text("begun\n" * 50)
        for tool, arguments in (("delete_file", {}), ("write_file", {"content": "mine\n"})):
            error = agent.call(tool, path="log", **arguments).error
            assert error["type"] == "stale_file"
            assert error["hint"].startswith("It is too large to be read here")
            assert error["hint"].endswith("move_file keeps it under another name.")
        agent.done("move_file", source="log", destination="old.log")
        assert (root / "old.log").read_text() == "begun\n" * 50


def test_file_that_must_be_read_but_is_too_large_is_left_to_the_person(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "log").write_text("begun\n" * 50)
    with connected(root, options=["--max-file-size", "100", "--require-read"]) as agent:
        error = agent.call("delete_file", path="log").error
    assert (error["type"], error["hint"]) == (
        "stale_file",
        "It is too large to be read here: leave it to the person.",
    )


def test_directory_is_listed_by_name_without_the_store(agent: Agent, folder: Path) -> None:
    (folder / "b.txt").write_text("12345")
    (folder / "a").mkdir()
    (folder / "c").symlink_to("b.txt")
    os.mkfifo(folder / "d")
    result = agent.done("list_directory", path=str(folder))
    assert result.structured["entries"] == [
        {"name": "a", "type": "directory", "size": 0},
        {"name": "b.txt", "type": "file", "size": 5},
        {"name": "c", "type": "symlink", "size": 0},
        {"name": "d", "type": "other", "size": 0},
    ]
    assert result.text == "[DIR] a\n[FILE] b.txt\n[LINK] c\n[OTHER] d"
    agent.done("write_file", path=str(folder / "e"), content="so that there is a store\n")
    names = [entry["name"] for entry in agent.done("list_directory", path=str(agent.root)).structured["entries"]]
    assert folder.name in names
    assert not [name for name in names if name.lower().startswith(".cas")]


def test_name_can_not_forge_lines_of_a_listing(agent: Agent, folder: Path) -> None:
    (folder / "x\n[DIR] forged\x1b[2J").touch()
    result = agent.done("list_directory", path=str(folder))
    assert result.text == "[FILE] 'x\\n[DIR] forged\\x1b[2J'"
    assert result.structured["entries"][0]["name"] == "x\n[DIR] forged\x1b[2J"


# ---- writing


def test_file_is_created_with_its_parent_directories(agent: Agent, folder: Path) -> None:
    file = folder / "new" / "deep" / "file.txt"
    result = agent.done("write_file", path=str(file), content="one\ntwo\n")
    assert file.read_bytes() == b"one\ntwo\n"
    assert result.structured["path"] == str(file)
    assert result.structured["operation"] == "create"
    assert (result.structured["lines_added"], result.structured["lines_removed"]) == (2, 0)
    assert result.structured["file_hash"] == sha256(b"one\ntwo\n")
    view = agent.history()[-1]
    assert (view.seq, view.edit.operation, view.edit.tool) == (
        result.structured["edit"],
        Operation.CREATE,
        "write_file",
    )


@pytest.mark.parametrize("content", ["", "no newline", "a\r\nb\n", "\0\x01", "\ufeffbom", "日本\u2028"])
def test_content_is_written_verbatim(agent: Agent, folder: Path, content: str) -> None:
    agent.done("write_file", path=str(folder / "file"), content=content)
    assert (folder / "file").read_bytes() == content.encode()


def test_replaced_file_keeps_its_mode(agent: Agent, folder: Path) -> None:
    file = folder / "script.sh"
    file.write_text("old\n")
    file.chmod(0o750)
    result = agent.done("write_file", path=str(file), content="new\n")
    assert result.structured["operation"] == "replace"
    assert file.read_text() == "new\n"
    assert file.stat().st_mode & 0o777 == 0o750


def test_writing_the_current_content_records_nothing(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("same\n")
    before = len(agent.history())
    result = agent.done("write_file", path=str(file), content="same\n")
    assert (result.structured["operation"], result.structured["edit"]) == ("none", 0)
    assert len(agent.history()) == before


def test_directory_can_not_be_written_or_read_as_a_file(agent: Agent, folder: Path) -> None:
    (folder / "sub").mkdir()
    assert agent.call("write_file", path=str(folder / "sub"), content="x").error["code"] == -32032
    assert agent.call("write_file", path=str(agent.root), content="x").refused
    assert agent.call("read_file", path=str(folder / "sub")).error["code"] == -32032


def test_creating_an_existing_directory_succeeds_without_change(agent: Agent, folder: Path) -> None:
    created = agent.done("create_directory", path=str(folder / "a" / "b"))
    assert created.structured == {"success": True, "path": str(folder / "a" / "b"), "created": True}
    assert (folder / "a" / "b").is_dir()
    again = agent.done("create_directory", path=str(folder / "a" / "b"))
    assert again.structured["created"] is False
    (folder / "file").touch()
    assert agent.call("create_directory", path=str(folder / "file")).error["type"] == "file_exists"


# ---- diffs


def test_diff_is_applied_and_all_other_bytes_are_unchanged(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_bytes(b"\xef\xbb\xbftop\r\none\r\ntwo\r\nthree")
    diff = "--- a/file.txt\n+++ b/file.txt\n@@ -2,2 +2,3 @@\n one\n-two\n+2\n+2.5\n"
    result = agent.done("edit_file_diff", path=str(file), diff=diff)
    assert file.read_bytes() == b"\xef\xbb\xbftop\r\none\r\n2\r\n2.5\r\nthree"
    assert result.structured["applied"] is True
    assert (result.structured["hunks_applied"], result.structured["hunk_offsets"]) == (1, [0])
    assert (result.structured["lines_added"], result.structured["lines_removed"]) == (2, 1)
    assert result.structured["file_hash"] == sha256(file.read_bytes())
    view = agent.history()[-1]
    assert (view.seq, view.edit.operation, view.edit.tool) == (
        result.structured["edit"],
        Operation.EDIT,
        "edit_file_diff",
    )


def test_recorded_hunk_is_the_line_that_the_diff_names(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\nx\nx\nx\ntwo\n")
    agent.done("edit_file_diff", path=str(file), diff="--- f\n+++ f\n@@ -1,3 +1,2 @@\n one\n-x\n x\n")
    assert [tuple(hunk) for hunk in agent.history()[-1].edit.hunks] == [(1, 1, 1, 0)]


def test_diff_that_fits_at_another_line_reports_the_offset(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("0\n0\na\nb\n")
    diff = "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n"
    result = agent.done("edit_file_diff", path=str(file), diff=diff)
    assert result.structured["hunk_offsets"] == [2]
    assert "Hunk 1 fits +2 lines away." in result.texts[1]


def test_dry_run_reports_the_result_and_changes_nothing(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("a\nb\n")
    before = len(agent.history())
    diff = "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n"
    dry_run_result = agent.done("edit_file_diff", path=str(file), diff=diff, dry_run=True)
    assert file.read_text() == "a\nb\n"
    assert len(agent.history()) == before
    assert (dry_run_result.structured["edit"], dry_run_result.structured["mcp_conversation_id"]) == (0, "")
    done = agent.done("edit_file_diff", path=str(file), diff=diff)
    changing = {"dry_run", "edit", "mcp_conversation_id"}
    assert {k: v for k, v in dry_run_result.structured.items() if k not in changing} == {
        k: v for k, v in done.structured.items() if k not in changing
    }


def test_refusal_of_a_diff_has_a_hint_and_facts(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("a\n\tb\nc\nc\n")

    def refused(hunk: str) -> dict[str, object]:
        result = agent.call("edit_file_diff", path=str(file), diff=f"--- f\n+++ f\n{hunk}")
        assert result.texts == [result.error["message"], result.error["hint"]]
        return result.error

    assert refused("@@ -1,2 +1,2 @@\n a\n-    b\n+B\n") == {
        "code": -32030,
        "type": "context_mismatch",
        "message": "Context mismatch at line 2: expected '    b' but found '\tb'",
        "hint": "They differ from column 1 on: the file has U+0009 TAB where the given text has U+0020 SPACE.",
        "line": 2,
        "hunk": 1,
        "patch_line": 5,
        "expected": "    b",
        "found": "\tb",
    }
    assert refused("@@ -1 +1 @@\n-a\n+A\n@@ -5 +5 @@\n-d\n+D\n") == {
        "code": -32030,
        "type": "context_mismatch",
        "message": "Context mismatch at line 5: expected 'd' but found the end of the file",
        "hint": "The file has fewer lines than the patch says.",
        "line": 5,
        "hunk": 2,
        "patch_line": 7,
        "expected": "d",
        "found": None,
    }
    assert refused("@@ -2 +2 @@\n-c\n+C\n") == {
        "code": -32030,
        "type": "context_mismatch",
        "message": "Context of hunk 1 matches more than once, and not at the stated line",
        "hint": "It matches at lines 3, 4. Correct the line number, or give more context.",
        "hunk": 1,
        "lines": [3, 4],
    }
    assert refused("@@ -9,0 +10 @@\n+C\n") == {
        "code": -32030,
        "type": "context_mismatch",
        "message": "Hunk 1 has no line that can be checked against the file",
        "hint": "Give the lines around what it inserts as context.",
        "hunk": 1,
        "lines": [],
    }
    # Its old side is at two places, so that the count is not corrected.
    assert refused("@@ -9 +9 @@\n-c\n+C\n+D\n") == {
        "code": -32029,
        "type": "invalid_patch",
        "message": "Invalid patch format: a line beyond the counts in its hunk's @@ header at line 6",
        "hint": "By its lines, the header at line 3 of the patch is @@ -9,1 +9,2 @@; context counts as old and new.",
        "patch_line": 6,
    }
    end = refused("@@ -4 +4 @@\n-c\n\\ No newline at end of file\n+C\n")
    assert end["hint"] == r"The file has a newline there: leave out '\ No newline at end of file'."
    file.write_text("a\nc")
    end = refused("@@ -2 +2 @@\n-c\n+C\n")
    assert (
        end["hint"] == r"The file has no newline there: put '\ No newline at end of file' below that line of the patch."
    )


@pytest.mark.parametrize(
    ("diff", "code", "message"),
    [
        (
            "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-x\n+B\n",
            -32030,
            "Context mismatch at line 2: expected 'x' but found 'b'",
        ),
        (
            "--- f\n+++ f\n@@ -3,2 +3,2 @@\n c\n-d\n+B\n",
            -32030,
            "Context mismatch at line 3: expected 'c' but found the end of the file",
        ),
        (
            "--- f\n+++ f\n@@ -1,9 +1,2 @@\n a\n-b\n+B\n",
            -32029,
            "Invalid patch format: a hunk is shorter than expected by the counts in its @@ header",
        ),
        ("@@ -1 +1 @@\n-a\n+b\n", -32029, "Invalid patch format: missing --- header at line 1"),
        ("", -32029, "Invalid patch format: the patch is empty"),
        (
            "--- f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
            -32029,
            "Invalid patch format: it deletes the file; use delete_file",
        ),
        (
            "--- /dev/null\n+++ f\n@@ -0,0 +1 @@\n+a\n",
            -32029,
            "Invalid patch format: it creates a file; use write_file",
        ),
    ],
)
def test_diff_that_does_not_fit_is_refused(agent: Agent, folder: Path, diff: str, code: int, message: str) -> None:
    file = folder / "file.txt"
    file.write_text("a\nb\n")
    error = agent.call("edit_file_diff", path=str(file), diff=diff).error
    assert error["code"] == code
    assert error["message"].startswith(message)
    assert file.read_text() == "a\nb\n"


def test_diff_of_a_binary_file_is_refused(agent: Agent, folder: Path) -> None:
    file = folder / "file.bin"
    file.write_bytes(b"a\n\0\n")
    error = agent.call("edit_file_diff", path=str(file), diff="--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n").error
    assert (error["code"], error["message"]) == (-32004, f"Cannot edit binary file: {file}")


# ---- moving and deleting


def test_moved_file_keeps_its_bytes_and_mode(agent: Agent, folder: Path) -> None:
    file = folder / "a.bin"
    file.write_bytes(b"\0\xff")
    file.chmod(0o640)
    target = folder / "new" / "b.bin"
    result = agent.done("move_file", source=str(file), destination=str(target))
    assert not file.exists()
    assert target.read_bytes() == b"\0\xff"
    assert target.stat().st_mode & 0o777 == 0o640
    assert (result.structured["source"], result.structured["destination"]) == (str(file), str(target))
    view = agent.history()[-1]
    assert (view.edit.operation, view.edit.tool) == (Operation.MOVE, "move_file")


def test_move_never_overwrites(agent: Agent, folder: Path) -> None:
    (folder / "a").write_text("a")
    (folder / "b").write_text("b")
    error = agent.call("move_file", source=str(folder / "a"), destination=str(folder / "b")).error
    assert (error["type"], error["path"]) == ("file_exists", str(folder / "b"))
    assert (folder / "a").read_text() == "a"
    assert (folder / "b").read_text() == "b"


def test_missing_file_can_not_be_moved_or_deleted(agent: Agent, folder: Path) -> None:
    path = str(folder / "none")
    moved = agent.call("move_file", source=path, destination=str(folder / "b")).error
    deleted = agent.call("delete_file", path=path).error
    for error in (moved, deleted):
        assert (error["code"], error["message"]) == (-32001, f"File not found: {path}")


def test_file_is_moved_to_another_file_system_and_back(agent: Agent, folder: Path) -> None:
    (folder / "file").write_text("one\n")
    (folder / "disk").mkdir()
    if not can_mount(folder / "disk"):
        pytest.skip("no disk can be mounted here")
    with small_disk(folder / "disk"):
        agent.done("move_file", source=str(folder / "file"), destination=str(folder / "disk" / "file"))
        assert (folder / "disk" / "file").read_text() == "one\n"
        assert not (folder / "file").exists()
        agent.done("Undo")
        assert list((folder / "disk").iterdir()) == []
    assert (folder / "file").read_text() == "one\n"


def test_file_is_moved_across_a_bind_mount_and_back(agent: Agent, folder: Path) -> None:
    (folder / "file").write_text("one\n")
    here, there = folder / "here", folder / "there"
    here.mkdir()
    there.mkdir()
    if not can_mount(there):
        pytest.skip("no disk can be mounted here")
    with bind_mount(here, there):  # the same file system, but renaming across the mount fails
        agent.done("move_file", source=str(folder / "file"), destination=str(there / "file"))
        assert (there / "file").read_text() == "one\n"
        assert not (folder / "file").exists()
        agent.done("Undo")
        assert list(there.iterdir()) == []
    assert (folder / "file").read_text() == "one\n"


def test_deletion_removes_the_file_and_records_its_bytes(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_bytes(b"precious\xff\n")
    result = agent.done("delete_file", path=str(file))
    assert not file.exists()
    view = agent.history()[-1]
    assert (view.seq, view.edit.operation) == (result.structured["edit"], Operation.DELETE)
    assert view.edit.before is not None


def test_directory_can_not_be_deleted_or_moved(agent: Agent, folder: Path) -> None:
    (folder / "sub").mkdir()
    assert agent.call("delete_file", path=str(folder / "sub")).error["type"] == "io_error"
    assert agent.call("move_file", source=str(folder / "sub"), destination=str(folder / "b")).refused
    assert (folder / "sub").is_dir()


def test_first_call_can_change_a_file_in_an_unlistable_folder(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "folder" / "file"
    folder.mkdir()
    file.write_text("one\n")
    folder.chmod(0o300)
    patch = "--- file\n+++ file\n@@ -1 +1 @@\n-one\n+two\n"
    calls: list[tuple[str, dict[str, object]]] = [
        ("validate_patch", {"file_path": "folder/file", "patch": patch}),
        ("edit_file_diff", {"path": "folder/file", "diff": patch, "dry_run": True}),
        ("write_file", {"path": "folder/file", "content": "one\nmore\n"}),
        ("backup_file", {"file_path": "folder/file"}),
        ("apply_patch", {"file_path": "folder/file", "patch": patch}),
    ]
    try:
        with started(tmp_path, command=unprivileged_server()) as raw:
            for number, (tool, arguments) in enumerate(calls):
                raw.send(tool_call(number, tool, **arguments))
                result = raw.answer(number)["result"]
                assert not result["isError"], (tool, result)
        assert file.read_text() == "two\nmore\n"
    finally:
        folder.chmod(0o700)
