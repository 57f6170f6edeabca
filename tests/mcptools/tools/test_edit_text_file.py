"""Editing by line tags over the wire: `edit_text_file` accepts the tags that `read_text_file` shows."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from objstore import Operation
from tests.support.mcp_agent import Agent, Result


def read_anchors(agent: Agent, file: Path) -> tuple[list[str], str]:
    """Return the anchors of a file's lines, and the hash of what was read."""
    result = agent.done("read_text_file", path=str(file))
    return [line.split("|")[0] for line in result.text.splitlines()], result.structured["file_hash"]


def edit(agent: Agent, file: Path, file_hash: str, *operations: dict[str, str]) -> Result:
    return agent.call("edit_text_file", path=str(file), file_hash=file_hash, operations=list(operations))


def test_refusal_of_operations_has_a_hint_and_facts(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("a\nb\nsame\nsame\n")
    (a, b, same, _), file_hash = read_anchors(agent, file)
    around = agent.done("read_text_file", path=str(file)).text

    def refused(*operations: dict[str, str]) -> dict[str, object]:
        result = edit(agent, file, file_hash, {"op": "insert_after", "anchor": a, "content": "x"}, *operations)
        hint = result.error.get("hint")
        assert result.texts == [result.error["message"], *([hint] if hint else [])]
        return result.error

    tag = same.removeprefix("3:")
    missing = next(f"2:{number:02x}" for number in range(256) if f"{number:02x}" not in around)
    assert refused({"op": "delete", "anchor": missing}) == {
        "code": -32021,
        "type": "anchor_not_found",
        "message": f"Operation 1: Anchor not found: {missing}",
        "hint": f"No line has this tag. The file reads, around it:\n{around}",
        "operation_index": 1,
        "anchor": missing,
        "content": around,
    }
    assert refused({"op": "delete", "anchor": f"1:{tag}"}) == {
        "code": -32022,
        "type": "anchor_ambiguous",
        "message": f"Operation 1: Anchor is ambiguous: 1:{tag}",
        "hint": f"Line 1 has another tag, and lines 3, 4 have this one. The file reads, around it:\n{around}",
        "operation_index": 1,
        "anchor": f"1:{tag}",
        "lines": [3, 4],
        "content": around,
    }
    assert refused({"op": "delete_range", "anchor": b, "end_anchor": a}) == {
        "code": -32600,
        "type": "invalid_request",
        "message": "Operation 1: end_anchor is line 1, above anchor, which is line 2",
        "operation_index": 1,
    }
    assert refused({"op": "delete", "anchor": b}, {"op": "replace", "anchor": b, "content": "x"}) == {
        "code": -32012,
        "type": "edits_conflict",
        "message": "Operation 2 conflicts with operation 1",
        "hint": "Both are about the same lines. All anchors refer to the file as you read it; make one operation "
        "of them.",
        "operation_index": 2,
        "prior_index": 1,
    }
    assert file.read_text() == "a\nb\nsame\nsame\n"


def test_exact_string_in_an_empty_file_hints_at_write_file(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.touch()
    strings = [{"old_string": "one", "new_string": "two"}]
    not_found = agent.call("multi_edit_text_file", path=str(file), edits=strings)
    assert (not_found.text, not_found.error["hint"]) == (
        "Edit 0: String not found: one",
        "The file is empty: use write_file.",
    )


@pytest.mark.parametrize("op", ["insert_after", "insert_before", "replace", "replace_range"])
def test_empty_file_gets_its_first_lines_at_the_anchor_of_an_empty_line(agent: Agent, folder: Path, op: str) -> None:
    file = folder / "file.txt"
    file.touch()
    read = agent.done("read_text_file", path=str(file))
    assert (read.text, read.structured["lines"]) == ("", 0)
    assert "The file is empty. edit_text_file inserts its first lines at 1:c5." in read.texts[1]
    end = {"end_anchor": "1:c5"} if op == "replace_range" else {}
    operation = {"op": op, "anchor": "1:c5", "content": "one\ntwo", **end}
    assert edit(agent, file, read.structured["file_hash"], operation).structured["lines_added"] == 2
    assert file.read_bytes() == b"one\ntwo\n"
    view = agent.history()[-1]
    assert (view.edit.operation, [tuple(hunk) for hunk in view.edit.hunks]) == (Operation.EDIT, [(0, 0, 0, 2)])


@pytest.mark.parametrize(("op", "anchor"), [("delete", "1:c5"), ("replace", "1:00"), ("replace", "2:c5")])
def test_empty_file_has_nothing_else_that_an_anchor_can_name(agent: Agent, folder: Path, op: str, anchor: str) -> None:
    file = folder / "file.txt"
    file.touch()
    content = {"content": "one"} if op == "replace" else {}
    error = edit(agent, file, read_anchors(agent, file)[1], {"op": op, "anchor": anchor, **content}).error
    assert (error["code"], error["type"]) == (-32021, "anchor_not_found")
    assert error["message"] == f"Operation 0: Anchor not found: {anchor}"
    assert error["hint"] == "The file is empty: only 1:c5 can be named, to insert or to replace."
    assert file.read_bytes() == b""


def test_file_emptied_by_the_call_itself_gets_no_hint(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one")
    strings = [{"old_string": "one", "new_string": ""}, {"old_string": "two", "new_string": "2"}]
    not_found = agent.call("multi_edit_text_file", path=str(file), edits=strings)
    assert not_found.texts == ["Edit 1: String not found: two"]


def test_each_of_the_six_operations_is_supported(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("".join(f"{letter}\n" for letter in "abcdefgh"))
    a, b, c, d, e, f, g, _ = read_anchors(agent, file)[0]
    result = edit(
        agent,
        file,
        read_anchors(agent, file)[1],
        {"op": "insert_before", "anchor": a, "content": "first"},
        {"op": "insert_after", "anchor": a, "content": "second"},
        {"op": "replace", "anchor": b, "content": "B"},
        {"op": "replace_range", "anchor": c, "end_anchor": d, "content": "CD"},
        {"op": "delete", "anchor": e},
        {"op": "delete_range", "anchor": f, "end_anchor": g},
    )
    assert not result.refused, result.structured
    assert file.read_text() == "first\na\nsecond\nB\nCD\nh\n"


HELLO = 'function hello() {\n  return "world";\n}\n'
"""The file that document 003 shows; its tags there are illustrations."""


@pytest.fixture
def hello(folder: Path) -> Path:
    file = folder / "hello.js"
    file.write_text(HELLO)
    return file


def test_document_example_is_read_as_hashlines_with_the_files_hash(agent: Agent, hello: Path) -> None:
    read = agent.done("read_text_file", path=str(hello))
    assert read.text == '1:f3|function hello() {\n2:18|  return "world";\n3:a8|}\n'
    assert read.structured["file_hash"] == hashlib.sha256(hello.read_bytes()).hexdigest()


def test_tag_is_the_lowest_byte_of_fnv_1a_of_the_line_without_trailing_whitespace(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_bytes(b"a\nfoobar\nfoobar \t\r\n\n foobar")  # FNV-1a: a = e40c292c, foobar = bf9cf968
    assert read_anchors(agent, file)[0] == ["1:2c", "2:68", "3:68", "4:c5", f"5:{fnv_1a(b' foobar') & 255:02x}"]


def fnv_1a(content: bytes) -> int:
    value = 2166136261
    for byte in content:
        value = (value ^ byte) * 16777619 % 2**32
    return value


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "replace", "anchor": "2:18", "content": '  return "hello";'}, HELLO.replace("world", "hello")),
        ({"op": "replace_range", "anchor": "1:f3..3:a8", "content": "<new content>"}, "<new content>\n"),
        (
            {"op": "replace_range", "anchor": "1:f3", "end_anchor": "3:a8", "content": "<new content>"},
            "<new content>\n",
        ),
        (
            {"op": "insert_after", "anchor": "2:18", "content": '  console.log("debug");'},
            HELLO.replace('";\n', '";\n  console.log("debug");\n'),
        ),
        (
            {"op": "insert_before", "anchor": "1:f3", "content": "// greeting function"},
            f"// greeting function\n{HELLO}",
        ),
        ({"op": "delete", "anchor": "2:18"}, "function hello() {\n}\n"),
        ({"op": "delete_range", "anchor": "1:f3..3:a8"}, ""),
    ],
    ids=lambda value: f"{value['op']} {value['anchor']}" if isinstance(value, dict) else "",
)
def test_operation_of_the_document_is_carried_out(
    agent: Agent, hello: Path, operation: dict[str, str], expected: str
) -> None:
    file_hash = read_anchors(agent, hello)[1]
    result = edit(agent, hello, file_hash, operation)
    assert not result.refused, result.structured
    assert hello.read_text() == expected
    assert result.structured["file_hash"] == hashlib.sha256(expected.encode()).hexdigest()


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "delete", "anchor": '2:18|  return "world";'},
        {"op": "delete", "anchor": '2:18|  return "world";\n'},
        {"op": "delete_range", "anchor": '2:18|  return "world";', "end_anchor": '2:18|  return "world";'},
        {"op": "delete_range", "anchor": '2:18|  return "world";..2:18|  return "world";'},
        {"op": "delete_range", "anchor": '2:18..2:18|  return "world";'},
    ],
    ids=lambda operation: operation["anchor"],
)
def test_anchor_may_be_pasted_with_its_line(agent: Agent, hello: Path, operation: dict[str, str]) -> None:
    file_hash = read_anchors(agent, hello)[1]
    result = edit(agent, hello, file_hash, operation)
    assert not result.refused, result.structured
    assert hello.read_text() == "function hello() {\n}\n"


def test_pasted_line_that_looks_like_a_range_is_one_line(agent: Agent, folder: Path) -> None:
    file = folder / "notes.txt"
    file.write_text("delete_range 1:a3..3:0e|\nb\n")
    read = agent.done("read_text_file", path=str(file))
    pasted = read.text.splitlines()[0]
    result = edit(agent, file, read.structured["file_hash"], {"op": "delete", "anchor": pasted})
    assert not result.refused, result.structured
    assert file.read_text() == "b\n"


def test_lines_that_no_operation_names_are_unchanged_byte_for_byte(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_bytes(b"\xef\xbb\xbfone \r\ntwo\t\n\xff\nthree")
    anchors, file_hash = read_anchors(agent, file)
    edit(agent, file, file_hash, {"op": "replace", "anchor": anchors[1], "content": "2"})
    assert file.read_bytes() == b"\xef\xbb\xbfone \r\n2\n\xff\nthree"


def test_all_anchors_of_a_call_mean_the_file_as_it_was_read(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\none\none\n")
    (first, second, third), file_hash = read_anchors(agent, file)
    operations = (
        {"op": "delete", "anchor": first},
        {"op": "insert_after", "anchor": second, "content": "x"},
        {"op": "replace", "anchor": third, "content": "3"},
    )
    assert not edit(agent, file, file_hash, *operations).refused
    assert file.read_text() == "one\nx\n3\n"


def test_content_with_line_tags_is_refused_with_a_hint(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\ntwo\n")
    anchors, file_hash = read_anchors(agent, file)
    result = edit(agent, file, file_hash, {"op": "replace", "anchor": anchors[1], "content": f"{anchors[1]}|2"})
    assert result.texts == [
        f"Operation 0: content begins with the tag of a line: {anchors[1]}|",
        str(result.error["hint"]),
    ]
    assert result.error["hint"].startswith("Give the new lines alone, without numbers and tags.")
    assert (result.error["code"], result.error["operation_index"], result.error["anchor"]) == (-32600, 0, anchors[1])
    assert file.read_text() == "one\ntwo\n"


def test_read_lines_can_be_edited_repeatedly(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_bytes(b"one\r\ntwo\r\nthree\r\nfour")
    anchors, file_hash = read_anchors(agent, file)
    first = edit(
        agent,
        file,
        file_hash,
        {"op": "replace", "anchor": anchors[1], "content": "2"},
        {"op": "insert_after", "anchor": anchors[3], "content": "five\nsix\n"},
        {"op": "delete", "anchor": anchors[0]},
    )
    after = b"2\r\nthree\r\nfour\r\nfive\r\nsix"
    assert file.read_bytes() == after
    assert first.structured["applied_count"] == 3
    assert first.structured["file_hash"] == hashlib.sha256(after).hexdigest()
    # "four" counts as changed: it now has a carriage return.
    assert (first.structured["lines_added"], first.structured["lines_removed"]) == (4, 3)
    assert read_anchors(agent, file)[0] == [line.split("|")[0] for line in first.structured["content"].splitlines()]
    anchors, _ = read_anchors(agent, file)
    fresh = first.structured["file_hash"]
    edit(agent, file, fresh, {"op": "delete_range", "anchor": anchors[1], "end_anchor": anchors[4]})
    assert file.read_bytes() == b"2"


def test_edit_without_changes_shows_the_named_lines(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\ntwo\nthree\nfour\nfive\n")
    anchors, file_hash = read_anchors(agent, file)
    result = edit(agent, file, file_hash, {"op": "replace", "anchor": anchors[2], "content": "three"})
    lines = agent.done("read_text_file", path=str(file)).text.splitlines(keepends=True)
    assert result.text == f"Nothing to change in {file}. Now:\n{''.join(lines[1:4])}"
    result_fields = result.structured
    assert (
        result_fields["edit"],
        result_fields["lines_added"],
        result_fields["lines_removed"],
        result_fields["file_hash"],
    ) == (0, 0, 0, file_hash)


def test_edit_is_recorded_with_the_lines_that_it_named(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("same\n" * 5)
    anchors, file_hash = read_anchors(agent, file)
    result = edit(agent, file, file_hash, {"op": "delete", "anchor": anchors[2]})
    view = agent.history()[-1]
    assert view.seq == result.structured["edit"]
    assert (view.edit.tool, view.edit.operation) == ("edit_text_file", Operation.EDIT)
    assert [tuple(hunk) for hunk in view.edit.hunks] == [(2, 1, 2, 0)]


def test_changed_file_is_refused_with_current_tags(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    lines = [f"line {number}\n" for number in range(1, 21)]
    file.write_text("".join(lines))
    anchors, file_hash = read_anchors(agent, file)
    file.write_text("somebody's\n" + "".join(lines))
    operation = {"op": "replace", "anchor": anchors[9], "content": "ten"}
    error = edit(agent, file, file_hash, operation).error
    assert (error["code"], error["type"]) == (-32020, "stale_file")
    assert error["message"] == f"File has changed since you read it: {file}"
    fresh = read_anchors(agent, file)[0]
    assert [line.split("|")[0] for line in error["content"].splitlines()] == fresh[7:12]
    assert error["file_hash"] == hashlib.sha256(file.read_bytes()).hexdigest()
    # The content of the refusal is enough to retry.
    retried = edit(agent, file, error["file_hash"], {"op": "replace", "anchor": fresh[10], "content": "ten"})
    assert not retried.refused
    assert file.read_text().splitlines()[10] == "ten"


def test_hash_in_a_refusal_does_not_count_as_reading(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("".join(f"{number}\n" for number in range(1, 10)))
    anchors, file_hash = read_anchors(agent, file)
    file.write_text(file.read_text() + "somebody's work\n")
    operation = {"op": "replace", "anchor": anchors[0], "content": "one"}
    refused_hash = edit(agent, file, file_hash, operation).error["file_hash"]
    edited = edit(agent, file, refused_hash, operation)
    assert "had changed" in edited.texts[-1]
    # The last line was not among the lines shown.
    assert agent.call("write_file", path=str(file), content="one\n").error["type"] == "stale_file"
    assert edit(agent, file, edited.structured["file_hash"], {"op": "delete", "anchor": anchors[1]}).texts
    assert agent.call("write_file", path=str(file), content="one\n").error["type"] == "stale_file"
    agent.done("read_file", path=str(file))
    agent.done("write_file", path=str(file), content="one\n")


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (
            lambda file_hash: f"sha256:{file_hash}",
            "A file_hash is 64 hex digits and nothing else. Its file_hash is now ",
        ),
        (lambda file_hash: file_hash[:8], "A file_hash is 64 hex digits and nothing else. Its file_hash is now "),
        (lambda file_hash: file_hash[::-1], "Its file_hash is now "),
    ],
)
def test_unknown_hash_is_not_reported_as_a_changed_file(
    agent: Agent, folder: Path, change: Callable[[str], str], hint: str
) -> None:
    file = folder / "file.txt"
    file.write_text("a\n")
    anchors, file_hash = read_anchors(agent, file)
    error = edit(agent, file, change(file_hash), {"op": "delete", "anchor": anchors[0]}).error
    assert (error["code"], error["file_hash"], error["content"]) == (-32020, file_hash, f"{anchors[0]}|a\n")
    assert error["message"] == f"file_hash is not that of the file, nor of a version that you have read: {file}"
    assert error["hint"].startswith(hint + file_hash)


def test_anchor_with_a_wrong_number_names_the_only_line_with_its_tag(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\ntwo\none\n")
    anchors, file_hash = read_anchors(agent, file)
    one, two = anchors[0].split(":")[1], anchors[1].split(":")[1]
    ambiguous = edit(agent, file, file_hash, {"op": "delete", "anchor": f"2:{one}"}).error
    assert (ambiguous["code"], ambiguous["type"], ambiguous["lines"]) == (-32022, "anchor_ambiguous", [1, 3])
    missing = edit(agent, file, file_hash, {"op": "delete", "anchor": "1:00"}).error
    assert (missing["code"], missing["type"]) == (-32021, "anchor_not_found")
    assert missing["content"].splitlines()[0] == f"{anchors[0]}|one"
    assert file.read_text() == "one\ntwo\none\n"
    moved = edit(agent, file, file_hash, {"op": "delete", "anchor": f"7:{two}"})
    assert moved.structured["moved_anchors"] == [{"operation_index": 0, "anchor": f"7:{two}", "line": 2}]
    assert file.read_text() == "one\none\n"


def test_operations_on_the_same_lines_are_refused(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\ntwo\n")
    anchors, file_hash = read_anchors(agent, file)
    error = edit(
        agent,
        file,
        file_hash,
        {"op": "replace", "anchor": anchors[1], "content": "2"},
        {"op": "delete_range", "anchor": anchors[0], "end_anchor": anchors[1]},
    ).error
    assert (error["code"], error["operation_index"], error["prior_index"]) == (-32012, 1, 0)
    assert file.read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "replace", "anchor": "1:2c"}, "needs content"),
        ({"op": "delete", "anchor": "1:2c", "content": "x"}, "takes no content"),
        ({"op": "delete_range", "anchor": "1:2c"}, "needs an end_anchor"),
        ({"op": "delete", "anchor": "1:2c", "end_anchor": "1:2c"}, "takes no end_anchor"),
        ({"op": "delete_range", "anchor": "2:b5", "end_anchor": "1:2c"}, "above anchor"),
        ({"op": "delete", "anchor": "1"}, "Not an anchor"),
        ({"op": "delete", "anchor": "1:2c..2:53"}, "delete takes one line, not a range"),
        ({"op": "delete_range", "anchor": "1:2c..2:53", "end_anchor": "2:53"}, "takes a range as anchor, or an end"),
        ({"op": "delete_range", "anchor": "1:2c..2"}, "needs an end_anchor"),
        ({"op": "delete_range", "anchor": "1:2c|a..1:2c|a..2:53"}, "needs an end_anchor"),
        ({"op": "append", "anchor": "1:2c"}, "operations.0.op"),
        ({"op": "delete", "anchor": "1:2c", "count": 2}, "operations.0.count: unknown argument"),
    ],
)
def test_invalid_operations_are_refused(agent: Agent, folder: Path, operation: dict[str, Any], expected: str) -> None:
    file = folder / "file.txt"
    file.write_text("a\nz\n")
    anchors, file_hash = read_anchors(agent, file)
    assert anchors[0] == "1:2c"
    if operation["anchor"] == "2:b5":
        operation = operation | {"anchor": anchors[1]}
    result = edit(agent, file, file_hash, operation)
    assert result.error["code"] == -32600
    assert expected in result.text
    assert file.read_text() == "a\nz\n"


def test_empty_operations_are_refused(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("a\n")
    assert edit(agent, file, read_anchors(agent, file)[1]).error["code"] == -32600


def test_second_concurrent_edit_of_one_read_version_is_refused(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("a\nb\n")
    anchors, file_hash = read_anchors(agent, file)
    arguments = [
        {"path": str(file), "file_hash": file_hash, "operations": [{"op": "delete", "anchor": anchor}]}
        for anchor in anchors
    ]
    results = agent.call_concurrently([("edit_text_file", each) for each in arguments])
    assert sorted(result.refused for result in results) == [False, True]
    assert file.read_text() in {"a\n", "b\n"}
