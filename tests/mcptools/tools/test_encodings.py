"""The tools read and change UTF-16, and text whose lines end in CR alone, by lines, and keep its bytes."""

from pathlib import Path
from typing import Any, Final

import pytest

from objstore import TextForm, Workspace, encoded, form_of, lines_of
from tests.support.mcp_agent import Agent

TEXT: Final = "one ü\ntwo\nthree\nfour\nfive\nsix\nseven\n"
UTF16: Final = [form for form in TextForm if form > TextForm.CR]
FORMS: Final = [TextForm.CR, *UTF16]
DIFF: Final = "--- f\n+++ f\n@@ -1,2 +1,3 @@\n one ü\n-two\n+2\n+2½\n@@ -6,2 +7,2 @@\n-six\n+6\n seven\n"
CHANGED: Final = TEXT.replace("two", "2\n2½").replace("six", "6")


def made(file: Path, text: str, form: TextForm) -> Path:
    file.write_bytes(encoded(text.encode(), form))
    return file


def text_of(file: Path, form: TextForm) -> str:
    content = file.read_bytes()
    assert form_of(content) is form
    return lines_of(content, form).decode()


def exact(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"old_string": old, "new_string": new} for old, new in pairs]


def anchored(agent: Agent, file: Path) -> dict[str, Any]:
    """Return the arguments of the change, by tags."""
    read = agent.done("read_text_file", path=str(file))
    tags = [line.partition("|")[0] for line in read.text.splitlines()]
    return {
        "file_hash": read.structured["file_hash"],
        "operations": [
            {"op": "replace", "anchor": tags[1], "content": "2\n2½"},
            {"op": "replace", "anchor": tags[5], "content": "6"},
        ],
    }


@pytest.mark.parametrize("form", FORMS)
def test_each_tool_changes_lines_and_keeps_the_encoding_and_the_ends(
    agent: Agent, folder: Path, form: TextForm
) -> None:
    calls: list[tuple[str, dict[str, Any] | None]] = [
        ("multi_edit_text_file", {"edits": exact(("two\n", "2\n2½\n"), ("six", "6"))}),
        ("multi_edit_text_file", {"edits": exact(("two\nthree", "2\n2½\nthree"), ("\nsix\n", "\n6\n"))}),
        ("edit_file_diff", {"diff": DIFF}),
        ("edit_text_file", None),
    ]
    for number, (tool, arguments) in enumerate(calls):
        file = made(folder / f"f{number}", TEXT, form)
        given = anchored(agent, file) if arguments is None else arguments
        result = agent.done(tool, path=str(file), **given)
        assert text_of(file, form) == CHANGED
        with Workspace.open(agent.root) as workspace:
            (view,) = [view for view in workspace.history.edits() if view.seq == result.structured["edit"]]
            assert view.edit.forms == (form, form)
            assert [hunk[:2] for hunk in view.edit.hunks] == [(1, 1), (5, 1)]
        agent.done("Undo")
        assert text_of(file, form) == TEXT


@pytest.mark.parametrize("form", FORMS)
def test_reading_shows_lines_and_says_what_encoding_and_ends_they_have(
    agent: Agent, folder: Path, form: TextForm
) -> None:
    file = str(made(folder / "f", TEXT, form))
    read = agent.done("read_text_file", path=file)
    assert [line.partition("|")[2] for line in read.text.splitlines()] == TEXT.splitlines()
    named = {TextForm.UTF16_LE: "utf-16-le", TextForm.UTF16_BE: "utf-16-be"}
    assert read.structured["encoding"] == named.get(TextForm(form & ~1), "utf-8")
    assert read.structured["line_endings"] == ("cr" if form & 1 else "lf")
    assert ("UTF-16" in read.notes, "Lines end in CR alone." in read.notes) == (form > 1, bool(form & 1))
    assert read.structured["lines"] == 7
    assert read.structured["final_newline"] is read.structured["utf8"] is True
    whole = agent.done("read_file", path=file).structured
    assert whole["binary"] is False
    assert whole["content"] == (TEXT.replace("\n", "\r") if form & 1 else TEXT)
    assert agent.done("read_file", path=file, offset=1, limit=1).structured["content"] == (
        "two\r" if form & 1 else "two\n"
    )
    assert "3:" in agent.done("read_file_by_line", path=file, ranges=["3"]).text
    assert agent.done("read_file_by_keyword", path=file, keyword="ü").structured["matches"] == [1]
    (found,) = agent.done("grep_files", path=str(folder), keyword="five").structured["matches"]
    assert (found["line"], found["text"]) == (5, "five")


def test_lines_of_utf_16_that_end_in_crlf_get_crlf_for_the_lf_that_is_sent(agent: Agent, folder: Path) -> None:
    file = made(folder / "f", TEXT.replace("\n", "\r\n"), TextForm.UTF16_LE)
    agent.done("multi_edit_text_file", path=str(file), edits=exact(("two\nthree\n", "2\n2½\nthree\n"), ("six", "6")))
    assert text_of(file, TextForm.UTF16_LE) == CHANGED.replace("\n", "\r\n")
    made(file, TEXT.replace("\n", "\r\n"), TextForm.UTF16_LE)
    agent.done("edit_file_diff", path=str(file), diff=DIFF)
    assert text_of(file, TextForm.UTF16_LE) == CHANGED.replace("\n", "\r\n")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_end_that_is_sent_means_the_cr_of_the_file(agent: Agent, folder: Path, end: str) -> None:
    for form in (TextForm.CR, TextForm.UTF16_BE_CR):
        file = made(folder / "f", TEXT, form)
        edits = exact((f"two{end}three", f"2{end}2½{end}three"), ("six", "6"))
        agent.done("multi_edit_text_file", path=str(file), edits=edits)
        assert text_of(file, form) == CHANGED
        made(file, TEXT, form)
        arguments = anchored(agent, file)
        arguments["operations"][0]["content"] = f"2{end}2½{end}"
        agent.done("edit_text_file", path=str(file), **arguments)
        assert text_of(file, form) == CHANGED


@pytest.mark.parametrize(
    "patch",
    [
        DIFF,
        DIFF.replace("\n", "\r\n"),
        # As programs write it for which CR ends no line.
        "--- f\n+++ f\n@@ -1 +1 @@\n-" + TEXT.replace("\n", "\r") + "\n\\ No newline at end of file\n"
        "+" + CHANGED.replace("\n", "\r") + "\n\\ No newline at end of file\n",
    ],
)
def test_patches_of_lines_that_end_in_cr_are_applied_and_reverted(agent: Agent, folder: Path, patch: str) -> None:
    file = made(folder / "f", TEXT, TextForm.CR)
    assert agent.done("validate_patch", file_path=str(file), patch=patch).structured["can_apply"]
    agent.done("apply_patch", file_path=str(file), patch=patch)
    assert text_of(file, TextForm.CR) == CHANGED
    agent.done("revert_patch", file_path=str(file), patch=patch)
    assert text_of(file, TextForm.CR) == TEXT
    for strategy in ("try_revert", "atomic", "progressive", "backup_restore"):
        agent.done("apply_patches", strategy=strategy, patches=[{"file_path": str(file), "patch": patch}])
        assert text_of(file, TextForm.CR) == CHANGED
        made(file, TEXT, TextForm.CR)


def test_generated_patch_of_lines_that_end_in_cr_can_be_applied(agent: Agent, folder: Path) -> None:
    old, new = made(folder / "old", TEXT, TextForm.CR), made(folder / "new", CHANGED, TextForm.CR)
    files = {"original_file": str(old), "modified_file": str(new)}
    patch = agent.done("generate_patch", **files).structured["patch"]
    assert "\n-two\n+2\n+2½\n" in patch
    agent.done("apply_patch", file_path=str(old), patch=patch)
    assert old.read_bytes() == new.read_bytes()
    made(new, CHANGED, TextForm.PLAIN)
    assert agent.done("generate_patch", **files).structured["changes"]["hunks"] == 1  # the ends differ


@pytest.mark.parametrize("form", UTF16)
def test_patch_tools_count_utf_16_as_binary_as_their_document_does_and_name_the_tool_that_takes_it(
    agent: Agent, folder: Path, form: TextForm
) -> None:
    file = made(folder / "f", TEXT, form)
    for tool in ("apply_patch", "validate_patch", "revert_patch"):
        refused = agent.call(tool, file_path=str(file), patch=DIFF)
        assert refused.refused
        assert refused.structured["error_type"] == "binary_file"
        assert "edit_file_diff applies the same diff" in str(refused.structured)
    agent.done("edit_file_diff", path=str(file), diff=DIFF)
    assert text_of(file, form) == CHANGED


@pytest.mark.parametrize("form", UTF16)
def test_whole_files_of_utf_16_are_written_in_utf_16(agent: Agent, folder: Path, form: TextForm) -> None:
    file = made(folder / "f", TEXT, form)
    agent.done("read_file", path=str(file))
    result = agent.done("write_file", path=str(file), content="\ufeffnew ü\nlines\n")
    assert text_of(file, TextForm(form & ~1)) == "new ü\nlines\n"
    assert "The file is UTF-16, and stays so." in result.notes
    assert ("All lines ended in CR, and now end in LF." in result.notes) == bool(form & 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_recorded", [False, True])
def test_change_of_an_older_version_is_carried_over(
    agent: Agent, folder: Path, form: TextForm, *, is_recorded: bool
) -> None:
    file = made(folder / "f", TEXT, form)
    if is_recorded:
        agent.done("write_file", path=str(folder / "other"), content="so that there is a store\n")
    arguments = anchored(agent, file)
    made(file, "above\n" + TEXT, form)
    assert agent.done("edit_text_file", path=str(file), **arguments, rebase=True).structured["rebased"] is True
    assert text_of(file, form) == "above\n" + CHANGED
    made(file, TEXT.replace("two", "zwei"), form)
    refused = agent.call("edit_text_file", path=str(file), **arguments, rebase=True)
    assert refused.error["type"] == "rebase_conflict"


@pytest.mark.parametrize("before", TextForm)
@pytest.mark.parametrize("after", TextForm)
def test_change_is_carried_over_to_another_encoding(
    agent: Agent, folder: Path, before: TextForm, after: TextForm
) -> None:
    file = made(folder / "f", TEXT, before)
    arguments = anchored(agent, file)
    made(file, "above\n" + TEXT, after)
    agent.done("edit_text_file", path=str(file), **arguments, rebase=True)
    assert text_of(file, after) == "above\n" + CHANGED


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (encoded(TEXT.encode(), TextForm.UTF16_LE) + b"x", "half a character is at byte 75"),
        (encoded(TEXT.encode(), TextForm.UTF16_BE) + b"\xd8\x00", "half a surrogate pair is at byte 75"),
        (encoded(TEXT.encode(), TextForm.UTF16_LE) + b"\x00\xdc\n\x00", "half a surrogate pair is at byte 75"),
        (encoded(TEXT.encode(), TextForm.UTF16_LE) + b"\x00\x00", "NUL"),
        ("\ufeff".encode("utf-32-le") + TEXT.encode("utf-32-le"), "NUL"),
    ],
)
def test_text_that_is_not_utf_16_throughout_is_refused_and_stays(
    agent: Agent, folder: Path, content: bytes, why: str
) -> None:
    file = folder / "f"
    file.write_bytes(content)
    for tool, arguments in (
        ("read_text_file", {}),
        ("multi_edit_text_file", {"edits": exact(("two", "2"))}),
        ("edit_file_diff", {"diff": DIFF}),
    ):
        error = agent.call(tool, path=str(file), **arguments).error
        assert error["code"] == -32004
        assert why in error["hint"]
    assert agent.done("read_file", path=str(file)).structured["binary"] is True
    assert file.read_bytes() == content


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_byte_order_mark_alone_is_an_empty_text_that_keeps_it(agent: Agent, folder: Path, mark: bytes) -> None:
    file = folder / "f"
    file.write_bytes(mark)
    read = agent.done("read_text_file", path=str(file)).structured
    assert (read["content"], read["lines"]) == ("", 0)
    operations = [{"op": "insert_before", "anchor": "1:c5", "content": "first\n"}]
    agent.done("edit_text_file", path=str(file), file_hash=read["file_hash"], operations=operations)
    codec = "utf-16-le" if mark == b"\xff\xfe" else "utf-16-be"
    assert file.read_bytes() == mark + "first\n".encode(codec)
    agent.done("multi_edit_text_file", path=str(file), edits=exact(("first\n", "")))
    assert file.read_bytes() == mark


def test_lf_among_lines_that_end_in_cr_makes_these_content_of_one_line(agent: Agent, folder: Path) -> None:
    file = folder / "f"
    file.write_bytes(b"one\rtwo\nthree\r")
    read = agent.done("read_text_file", path=str(file)).structured
    assert (read["lines"], read["line_endings"]) == (2, "lf")
    agent.done("multi_edit_text_file", path=str(file), edits=exact(("two\n", "2\nnew\n")))
    assert file.read_bytes() == b"one\r2\nnew\nthree\r"
