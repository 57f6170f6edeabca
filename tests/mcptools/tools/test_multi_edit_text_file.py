"""`multi_edit_text_file` over the wire, exactly as in its contract."""

from pathlib import Path

import pytest

from objstore import Operation
from tests.support.mcp_agent import Agent

CONFIG = '[server]\nhost = "localhost"\nport = 8080\n\n[app]\ndebug = false\n'


def edit(old_string: str, new_string: str) -> dict[str, str]:
    return {"old_string": old_string, "new_string": new_string}


def test_tc1_multiple_edits_in_the_same_file(agent: Agent, folder: Path) -> None:
    file = folder / "config.toml"
    file.write_text(CONFIG)
    result = agent.done(
        "multi_edit_text_file",
        path=str(file),
        edits=[
            edit("port = 8080", "port = 3000"),
            edit('host = "localhost"', 'host = "0.0.0.0"'),
            edit("debug = false", "debug = true"),
        ],
    )
    assert file.read_text() == '[server]\nhost = "0.0.0.0"\nport = 3000\n\n[app]\ndebug = true\n'
    assert result.structured["success"] is True
    assert result.structured["applied_count"] == 3
    assert result.structured["line_ranges"] == [
        {"edit_index": 0, "start": 3, "end": 3},
        {"edit_index": 1, "start": 2, "end": 2},
        {"edit_index": 2, "start": 6, "end": 6},
    ]
    changed = [line for line in result.structured["diff"].splitlines() if line[:1] in {"-", "+"}]
    name = f"{folder.name}/config.toml"
    assert changed == [
        f"--- {name}",
        f"+++ {name}",
        '-host = "localhost"',
        "-port = 8080",
        '+host = "0.0.0.0"',
        "+port = 3000",
        "-debug = false",
        "+debug = true",
    ]
    assert result.text == result.structured["diff"]


def test_tc2_sequential_edits(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("AAA")
    result = agent.done("multi_edit_text_file", path=str(file), edits=[edit("AAA", "BBB"), edit("BBB", "CCC")])
    assert result.structured["success"] is True
    assert result.structured["applied_count"] == 2
    assert file.read_text() == "CCC"
    assert "\n-AAA\n" in result.structured["diff"]
    assert "\n+CCC\n" in result.structured["diff"]
    assert "BBB" not in result.structured["diff"]


def test_tc3_string_not_found_in_edit_2(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("line 1\nline 2\n")
    result = agent.call(
        "multi_edit_text_file", path=str(file), edits=[edit("line 1", "LINE 1"), edit("line 3", "LINE 3")]
    )
    assert result.error["code"] == -32010
    assert result.error["message"] == result.text == "Edit 1: String not found: line 3"
    assert (result.error["nearest"]["line"], result.error["nearest"]["column"]) == (2, 6)
    assert file.read_text() == "line 1\nline 2\n"


def test_tc4_empty_edits_array(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("text\n")
    result = agent.call("multi_edit_text_file", path=str(file), edits=[])
    assert result.error["code"] == -32600
    assert result.error["message"] == result.text == "Edits array cannot be empty"


def test_tc5_duplicate_edits(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("foo")
    result = agent.call("multi_edit_text_file", path=str(file), edits=[edit("foo", "bar"), edit("foo", "baz")])
    assert result.error["code"] == -32010
    assert result.error["message"] == result.text == "Edit 1: String not found: foo"
    assert file.read_text() == "foo"


def test_tc6_a_hundred_edits(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("".join(f"unique string {number:03}\n" for number in range(100)))
    result = agent.done(
        "multi_edit_text_file",
        path=str(file),
        edits=[edit(f"unique string {number:03}", f"changed {number:03}") for number in range(100)],
    )
    assert result.structured["success"] is True
    assert result.structured["applied_count"] == 100
    assert file.read_text() == "".join(f"changed {number:03}\n" for number in range(100))


def test_string_that_overlaps_itself_is_ambiguous(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("aaa")
    edits = [{"old_string": "aa", "new_string": "b"}]
    error = agent.call("multi_edit_text_file", path=str(file), edits=edits).error
    assert (error["code"], error["message"]) == (-32011, "Edit 0: String appears 2 times: aa")
    assert file.read_text() == "aaa"


def test_tc7_edits_creating_ambiguity(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("A")
    result = agent.call("multi_edit_text_file", path=str(file), edits=[edit("A", "AA"), edit("A", "B")])
    assert result.error["code"] == -32011
    assert result.error["message"] == result.text == "Edit 1: String appears 2 times: A"
    assert file.read_text() == "A"


def test_refusal_has_a_hint_and_facts(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("alpha\nbeta\nalpha\n\tgamma\n")

    def refused(*edits: tuple[str, str]) -> dict[str, object]:
        result = agent.call("multi_edit_text_file", path=str(file), edits=[edit(*each) for each in edits])
        assert result.texts == [result.error["message"], result.error["hint"]]
        return result.error

    difference = "the file has U+0009 TAB where the given text has U+0020 SPACE"
    assert refused(("beta", "B"), ("  gamma", "x")) == {
        "code": -32010,
        "type": "string_not_found",
        "message": "Edit 1: String not found:   gamma",
        "hint": rf"Nearest is line 4: '\tgamma'. At column 1 {difference}.",
        "edit_index": 1,
        "nearest": {"line": 4, "column": 1, "text": "\tgamma", "difference": difference},
    }
    changed_earlier = refused(("beta", "B"), ("beta", "x"))
    assert str(changed_earlier["hint"]).startswith(
        "It was there before this call; an earlier edit of the call changed it."
    )
    assert refused(("beta", "B"), ("alpha", "x")) == {
        "code": -32011,
        "type": "string_ambiguous",
        "message": "Edit 1: String appears 2 times: alpha",
        "hint": "It begins at lines 1, 3. Give more of the lines around the one that is meant.",
        "edit_index": 1,
        "count": 2,
        "lines": [1, 3],
    }
    assert refused(("beta", "B"), ("\nB", "x")) == {
        "code": -32012,
        "type": "edits_conflict",
        "message": "Edit 1 conflicts with edit 0",
        "hint": "Its old_string contains part of what that edit wrote, and more. Make one edit of the two.",
        "edit_index": 1,
        "prior_index": 0,
    }


# ---- the table of errors


def test_old_string_with_escaped_bytes_is_explained(agent: Agent, folder: Path) -> None:
    file = folder / "latin1.txt"
    file.write_bytes(b"one\n2\xe9\n")
    old = agent.done("read_file", path=str(file)).structured["content"].splitlines()[1]
    error = agent.call("multi_edit_text_file", path=str(file), edits=[{"old_string": old, "new_string": "2"}]).error
    assert error["message"] == r"Edit 0: String not found: 2\xe9"
    assert error["hint"].startswith(r"In what you were shown, \xNN is a byte that is not UTF-8")
    edits = [{"old_string": r"3\xe9", "new_string": "2"}]
    assert "hint" not in agent.call("multi_edit_text_file", path=str(file), edits=edits).error


def test_missing_file_is_refused(agent: Agent, folder: Path) -> None:
    path = str(folder / "missing.txt")
    result = agent.call("multi_edit_text_file", path=path, edits=[edit("a", "b")])
    assert result.error["code"] == -32001
    assert result.error["message"] == result.text == f"File not found: {path}"


def test_file_outside_is_refused(agent: Agent) -> None:
    result = agent.call("multi_edit_text_file", path="/etc/hostname", edits=[edit("a", "b")])
    assert result.error["code"] == -32002
    assert result.error["message"] == result.text == "Permission denied: /etc/hostname"


def test_relative_path_is_refused(agent: Agent, folder: Path) -> None:
    # Other tools accept a path relative to the only directory; this one's contract demands absolute paths.
    (folder / "file.txt").write_text("a")
    path = f"{folder.name}/file.txt"
    result = agent.call("multi_edit_text_file", path=path, edits=[edit("a", "b")])
    assert result.error["code"] == -32600
    assert result.error["message"] == result.text == f"Path must be absolute: {path}"


def test_edit_that_includes_part_of_an_earlier_one_is_refused(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one two")
    result = agent.call("multi_edit_text_file", path=str(file), edits=[edit("one", "ONE"), edit("ONE two", "three")])
    assert result.error["code"] == -32012
    assert result.error["message"] == result.text == "Edit 1 conflicts with edit 0"
    assert file.read_text() == "one two"


def test_binary_file_is_refused(agent: Agent, folder: Path) -> None:
    file = folder / "image.bin"
    file.write_bytes(b"\x89PNG\0\0a\0")
    result = agent.call("multi_edit_text_file", path=str(file), edits=[edit("a", "b")])
    assert result.error["code"] == -32004
    assert result.error["message"] == result.text == f"Cannot edit binary file: {file}"


def test_empty_old_string_is_refused(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("")
    result = agent.call("multi_edit_text_file", path=str(file), edits=[edit("", "text")])
    assert result.error["code"] == -32600


def test_failure_has_the_shape_of_the_contract(agent: Agent, folder: Path) -> None:
    result = agent.call("multi_edit_text_file", path=str(folder / "missing.txt"), edits=[edit("a", "b")])
    assert set(result.structured) == {"success", "error"}
    assert result.structured["success"] is False
    assert result.error.keys() >= {"code", "message"}


def test_refused_call_records_nothing(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("text")
    before = len(agent.history())
    agent.call("multi_edit_text_file", path=str(file), edits=[edit("text", "TEXT"), edit("none", "some")])
    assert len(agent.history()) == before


def test_edits_that_cancel_out_succeed_and_record_nothing(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("text\n")
    before = len(agent.history())
    result = agent.done("multi_edit_text_file", path=str(file), edits=[edit("text", "TEXT"), edit("TEXT", "text")])
    assert (result.structured["diff"], result.structured["applied_count"]) == ("", 2)
    assert result.structured["edit"] == 0
    assert len(agent.history()) == before


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        pytest.param(b"a\r\nb\r\n", "b", "B", b"a\r\nB\r\n", id="CRLF"),
        pytest.param(b"a\r\nb\r\n", "a\r\nb", "A\r\nB", b"A\r\nB\r\n", id="CRLF in the strings"),
        pytest.param(b"a\r\nb\r\n", "a\nb\n", "A\nx\nB\n", b"A\r\nx\r\nB\r\n", id="CRLF, LF in the strings"),
        pytest.param(b"a\nb\r\nc", "b", "B", b"a\nB\r\nc", id="mixed endings, no final newline"),
        pytest.param(b"\xef\xbb\xbfa\n", "a", "A", b"\xef\xbb\xbfA\n", id="byte order mark"),
        pytest.param(b"caf\xe9\na\n", "\na", "\nA", b"caf\xe9\nA\n", id="Latin-1 elsewhere"),
        pytest.param(b"a\rb\x0cc\x85d", "b", "B", b"a\rB\x0cc\x85d", id="lone CR, form feed, NEL"),
        pytest.param("naïve 日本\n".encode(), "日本", "世界", "naïve 世界\n".encode(), id="UTF-8"),
    ],
)
def test_all_other_bytes_are_unchanged(
    agent: Agent, folder: Path, content: bytes, old: str, new: str, after: bytes
) -> None:
    file = folder / "file.txt"
    file.write_bytes(content)
    agent.done("multi_edit_text_file", path=str(file), edits=[edit(old, new)])
    assert file.read_bytes() == after


def test_recorded_hunk_is_the_edited_line(agent: Agent, folder: Path) -> None:
    # Of equal lines a diff would choose the last one, but the tool knows which it was.
    file = folder / "file.txt"
    file.write_text("one\nx\nx\nx\ntwo\n")
    agent.done("multi_edit_text_file", path=str(file), edits=[edit("one\nx\n", "one\n")])
    view = agent.history()[-1]
    assert [tuple(hunk) for hunk in view.edit.hunks] == [(1, 1, 1, 0)]
    assert view.edit.operation is Operation.EDIT


def test_string_that_overlaps_itself_is_refused_with_a_hint_how_to_go_on(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("x\naaa\n")
    error = agent.call("multi_edit_text_file", path=str(file), edits=[{"old_string": "aa", "new_string": "b"}]).error
    assert (error["code"], error["message"]) == (-32011, "Edit 0: String appears 2 times: aa")
    assert error["hint"] == (
        "It begins at line 2. There, its occurrences overlap: give all that they cover as one old_string."
    )
    agent.done("multi_edit_text_file", path=str(file), edits=[{"old_string": "aaa", "new_string": "b"}])
    assert file.read_text() == "x\nb\n"


def test_overlapping_edit_is_refused_with_a_hint_how_to_go_on(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one two\n")
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "1 two", "new_string": "1 2"}]
    error = agent.call("multi_edit_text_file", path=str(file), edits=edits).error
    assert (error["code"], error["message"]) == (-32012, "Edit 1 conflicts with edit 0")
    assert error["hint"].endswith("Make one edit of the two.")
    agent.done("multi_edit_text_file", path=str(file), edits=[{"old_string": "one two", "new_string": "1 2"}])
    assert file.read_text() == "1 2\n"
