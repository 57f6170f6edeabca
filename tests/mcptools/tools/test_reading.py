"""Reading and searching over the wire: answers are exact and complete, or report what they omit."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcptools.edit.hashline import line_tag
from mcptools.model.limits import ServerLimits
from tests.support.mcp_agent import Agent, Result

MAX_ANSWER = ServerLimits().max_answer


def hashline(number: int, line: str) -> str:
    return f"{number}:{line_tag(line.encode())}|{line}"


def notes(result: Result) -> str:
    return "\n".join(result.texts[1:])


def all_pages(agent: Agent, tool: str, key: str, **arguments: object) -> list[Any]:
    """Request all pages of an answer; return the content of each."""
    pages = []
    offset = 0
    while True:
        result = agent.done(tool, offset=offset, **arguments)
        assert sum(map(len, result.texts)) <= MAX_ANSWER + 1000
        pages.append(result.structured[key])
        if not result.structured["next_offset"]:
            return pages
        assert result.structured["next_offset"] > offset
        offset = result.structured["next_offset"]
        assert f"offset={offset}" in notes(result)


# ---- long files


@pytest.mark.parametrize("tool", ["read_file", "read_text_file"])
def test_pages_of_a_long_file_contain_all_of_it(agent: Agent, folder: Path, tool: str) -> None:
    file = folder / "long.txt"
    lines = [f"line {number} {'x' * 50}\n" for number in range(1, 3001)]
    file.write_text("".join(lines))
    pages = all_pages(agent, tool, "content", path=str(file))
    assert len(pages) > 1
    content = "".join(pages)
    if tool == "read_text_file":
        lines = [hashline(number, line.rstrip("\n")) + "\n" for number, line in enumerate(lines, 1)]
    assert content == "".join(lines)


def test_part_of_a_file_can_be_read(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("a\nb\nc\nd\n")
    result = agent.done("read_text_file", path=str(file), offset=1, limit=2)
    assert result.text == f"{hashline(2, 'b')}\n{hashline(3, 'c')}\n"
    assert result.structured["next_offset"] == 3
    assert result.structured["lines"] == 4
    assert agent.done("read_file", path=str(file), offset=9).structured["content"] == ""
    assert agent.call("read_file", path=str(file), offset=-1).error["code"] == -32600


def test_offset_beyond_the_end_reports_the_count(agent: Agent, folder: Path) -> None:
    (folder / "file.txt").write_text("one\ntwo\n")
    path = str(folder / "file.txt")
    for tool, arguments, expected in (
        ("read_file", {"path": path}, "There are only 2 lines."),
        ("read_text_file", {"path": path}, "There are only 2 lines."),
        ("read_file_by_keyword", {"path": path, "keyword": "o"}, "There are only 2 matches."),
        ("list_directory", {"path": str(folder)}, "There are only 1 entries."),
        ("search_files", {"path": str(folder), "pattern": "*"}, "There are only 1 paths."),
    ):
        beyond = agent.done(tool, offset=9, **arguments)
        assert beyond.text == ""
        assert beyond.texts[1].splitlines()[-1] == expected
    assert agent.done("list_directory", path=str(folder), offset=1).texts[1] == "There are only 1 entries."
    (folder / "empty").touch()
    assert agent.done("read_file", path=str(folder / "empty")).texts == [""]


def test_line_longer_than_an_answer_is_cut_and_reported(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("x" * (MAX_ANSWER + 500) + "\nnext\n")
    result = agent.done("read_file", path=str(file))
    assert result.structured["content"] == "x" * MAX_ANSWER
    assert "The last line is cut: 501 more characters" in notes(result)
    assert agent.done("read_file", path=str(file), offset=1).structured["content"] == "next\n"


# ---- several files, some lines


def test_file_that_can_not_be_read_is_reported_among_others(agent: Agent, folder: Path) -> None:
    (folder / "a").write_text("a\n")
    (folder / "b").write_bytes(b"\0\1")
    names = [str(folder / name) for name in ("a", "none", "b")]
    result = agent.done("read_multiple_files", paths=names)
    files = result.structured["files"]
    assert [file["content"] for file in files] == ["a\n", "", ""]
    assert [file["binary"] for file in files] == [False, False, True]
    assert result.structured["failed"] == 1
    assert files[1]["error"] == f"File not found: {names[1]}"
    assert result.text.startswith(f"==> {names[0]}\na\n")
    assert f"ERROR: File not found: {names[1]}" in result.text


def test_many_files_are_read_in_pages(agent: Agent, folder: Path) -> None:
    names = [str(folder / f"{number}") for number in range(6)]
    for name in names:
        Path(name).write_text(("x" * 99 + "\n") * 300)
    pages = all_pages(agent, "read_multiple_files", "files", paths=names)
    assert [file["path"] for page in pages for file in page] == names
    assert len(pages) > 1
    assert {len(file["content"]) for page in pages for file in page} == {30_000}


@pytest.mark.parametrize(
    "names", [[f"missing/{'x' * 190}{number}" for number in range(500)], ["empty"] * 1000, ["y" * 1_000_000] * 3]
)
def test_answer_about_many_missing_or_empty_files_stays_within_the_limit(
    agent: Agent, folder: Path, names: list[str]
) -> None:
    (folder / "empty").touch()
    pages = all_pages(agent, "read_multiple_files", "files", paths=names)
    assert sum(map(len, pages)) == len(names)
    assert max(len(json.dumps(page)) for page in pages) <= MAX_ANSWER


def test_files_beyond_the_page_do_not_count_as_read(agent: Agent, folder: Path) -> None:
    names = [folder / "a", folder / "b"]
    for name in names:
        name.write_text(("x" * 99 + "\n") * 600)
        agent.done("read_file", path=str(name))
        name.write_text(("y" * 99 + "\n") * 600)
    result = agent.done("read_multiple_files", paths=list(map(str, names)))
    assert result.structured["next_offset"] == 1
    assert not agent.call("write_file", path=str(names[0]), content="").refused
    assert agent.call("write_file", path=str(names[1]), content="").error["type"] == "stale_file"


def test_lines_are_read_by_number_and_by_keyword(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("".join(f"{word}\n" for word in ("one", "two", "three", "Two", "five")))
    by_line = agent.done("read_file_by_line", path=str(file), ranges=["4-9", "1"])
    assert by_line.structured["matches"] == [1, 4, 5]
    assert by_line.text == f"{hashline(1, 'one')}\n...\n{hashline(4, 'Two')}\n{hashline(5, 'five')}\n"
    by_word = agent.done("read_file_by_keyword", path=str(file), keyword="two", after=1)
    assert by_word.structured["matches"] == [2]
    assert by_word.text == f"{hashline(2, 'two')}\n{hashline(3, 'three')}\n"
    both = agent.done("read_file_by_keyword", path=str(file), keyword="^t.O$", use_regex=True, ignore_case=True)
    assert both.structured["matches"] == [2, 4]
    assert agent.done("read_file_by_keyword", path=str(file), keyword="t.o").text == "No such lines."
    for wrong in ({"ranges": ["0"]}, {"ranges": ["5-2"]}, {"ranges": ["x"]}):
        assert agent.call("read_file_by_line", path=str(file), **wrong).error["code"] == -32600
    for keyword in ("", "("):
        refused = agent.call("read_file_by_keyword", path=str(file), keyword=keyword, use_regex=True)
        assert refused.error["code"] == -32600


@pytest.mark.parametrize(("before", "after"), [(5000, 2), (0, 5000), (2, 9999), (9999, 9999)], ids=str)
def test_context_of_a_match_is_reduced_line_by_line_to_fit(agent: Agent, folder: Path, before: int, after: int) -> None:
    file = folder / "file.txt"
    file.write_text("".join(f"{'needle' if n == 10_000 else 'line'} {n} {'y' * 40}\n" for n in range(1, 20_001)))
    found = agent.done("read_file_by_keyword", path=str(file), keyword="needle", before=before, after=after)
    lines = found.structured["content"].splitlines()
    numbers = [int(line.partition(":")[0]) for line in lines]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert all(line.endswith(f" {number} {'y' * 40}") for number, line in zip(numbers, lines, strict=True))
    assert f"|needle 10000 {'y' * 40}" in found.structured["content"]
    assert numbers[0] == 10_000 - before or 10_000 - numbers[0] >= min(after, numbers[-1] - 10_000) - 1
    assert numbers[-1] == 10_000 + after or numbers[-1] - 10_000 >= min(before, 10_000 - numbers[0]) - 1
    assert 60_000 < len(found.structured["content"]) <= 80_000
    assert found.structured["matches"] == [10_000]
    expected = f"Around line 10000 only lines {numbers[0]} to {numbers[-1]} fit; read_file_by_line has the others."
    assert expected in found.texts[1].splitlines()


def test_match_with_reduced_context_is_returned_with_others(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("a\nneedle\nb\n" + "x" * 70_000 + "\nc\nneedle\n" + "y" * 20_000 + "\n")
    found = agent.done("read_file_by_keyword", path=str(file), keyword="needle", before=2, after=1)
    assert (found.structured["matches"], found.structured["next_offset"]) == ([2, 6], 0)
    numbers = [line.partition(":")[0] for line in found.text.splitlines()]
    assert numbers == ["1", "2", "3", "...", "5", "6", "7"]
    assert "Around line 6 only lines 5 to 7 fit; read_file_by_line has the others." in found.texts[1]


def test_repeated_ranges_return_each_line_once(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("".join(f"{n}\n" for n in range(1, 10_001)))
    ranges = ["3-9000", "5", "1-2", *["1-10000"] * 20_000, "9999-12000"]
    found = agent.done("read_file_by_line", path=str(file), ranges=ranges, offset=9_995)
    assert found.structured["matches"] == [9_996, 9_997, 9_998, 9_999, 10_000]
    assert agent.done("read_file_by_line", path=str(file), ranges=["7-9", "2", "8-8"]).structured["matches"] == [
        2,
        7,
        8,
        9,
    ]


def test_tags_read_by_keyword_can_be_used_in_an_edit(agent: Agent, folder: Path) -> None:
    file = folder / "file.txt"
    file.write_text("one\ntwo\n")
    found = agent.done("read_file_by_keyword", path=str(file), keyword="two")
    agent.done(
        "edit_text_file",
        path=str(file),
        file_hash=found.structured["file_hash"],
        operations=[{"op": "delete", "anchor": found.text.split("|")[0]}],
    )
    assert file.read_text() == "one\n"


# ---- trees and searches


@pytest.fixture
def tree(folder: Path) -> Path:
    for name in ("src/a.py", "src/deep/b.py", "src/deep/c.txt", ".git/config", "README.md", "build/out.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"this is {name}\nneedle\n")
    (folder / "link").symlink_to("src")
    outside = folder.parent.parent / "outside of the workspace"
    outside.mkdir(exist_ok=True)
    (outside / "needle.py").write_text("needle\n")
    (folder / "way out").symlink_to(outside)
    return folder


def test_tree_shows_links_and_does_not_follow_them(agent: Agent, tree: Path) -> None:
    result = agent.done("directory_tree", path=str(tree))
    assert result.text.splitlines() == [
        ".git/",
        "README.md",
        "build/",
        "  out.py",
        "link@",
        "src/",
        "  a.py",
        "  deep/",
        "    b.py",
        "    c.txt",
        "way out@",
    ]
    assert result.structured["complete"] is True
    shallow = agent.done("directory_tree", path=str(tree / "src"), max_depth=1)
    assert shallow.structured["entries"] == [{"path": "a.py", "type": "file"}, {"path": "deep", "type": "directory"}]


@pytest.mark.parametrize("name", [".git", ".hg", ".svn", ".jj"])
def test_no_walk_enters_folders_of_version_control(agent: Agent, folder: Path, name: str) -> None:
    for place in (folder / name, folder / "sub" / name):
        place.mkdir(parents=True)
        (place / "inside").write_text("needle\n")
    (folder / "beside").write_text("needle\n")
    entries = agent.done("directory_tree", path=str(folder)).structured["entries"]
    assert [entry["path"] for entry in entries] == [name, "beside", "sub", f"sub/{name}"]
    assert agent.done("search_files", path=str(folder), pattern="**/inside").structured["paths"] == []
    matches = agent.done("grep_files", path=str(folder), keyword="needle").structured["matches"]
    assert [match["path"] for match in matches] == [str(folder / "beside")]


def test_store_appears_in_no_tree_and_no_search(agent: Agent, tree: Path) -> None:
    agent.done("write_file", path=str(tree / "new"), content="so that there is a store\n")
    assert (agent.root / ".cas").is_dir()
    top = str(agent.root)
    assert ".cas" not in agent.done("directory_tree", path=top, max_depth=1).text
    assert agent.done("search_files", path=top, pattern=".cas*").structured["paths"] == []
    assert not [
        match
        for match in agent.done("grep_files", path=top, keyword="so that there is a store").structured["matches"]
        if match["path"] != str(tree / "new")
    ]


@pytest.mark.parametrize(
    ("pattern", "exclude", "found"),
    [
        ("*.py", [], ["build/out.py", "src/a.py", "src/deep/b.py"]),
        ("*.py", ["build"], ["src/a.py", "src/deep/b.py"]),
        ("src/*.py", [], ["src/a.py"]),
        ("src/**/*.py", [], ["src/a.py", "src/deep/b.py"]),
        ("**/deep/*", [], ["src/deep/b.py", "src/deep/c.txt"]),
        ("readme", [], ["README.md"]),
        ("[ab].py", ["**/deep"], ["src/a.py"]),
        ("needle*", [], []),
    ],
)
def test_files_are_found_by_name(agent: Agent, tree: Path, pattern: str, exclude: list[str], found: list[str]) -> None:
    result = agent.done("search_files", path=str(tree), pattern=pattern, exclude_patterns=exclude)
    assert result.structured["paths"] == [str(tree / name) for name in found]


def test_lines_are_found_in_text_files_only(agent: Agent, tree: Path) -> None:
    (tree / "binary").write_bytes(b"\0needle\n")
    result = agent.done("grep_files", path=str(tree), keyword="needle", pattern="*.py")
    names = ["build/out.py", "src/a.py", "src/deep/b.py"]
    assert result.structured["matches"] == [{"path": str(tree / name), "line": 2, "text": "needle"} for name in names]
    assert result.text.splitlines()[0] == f"{tree / names[0]}:2: needle"
    everywhere = agent.done("grep_files", path=str(tree), keyword="NEEDLE$", use_regex=True, ignore_case=True)
    assert everywhere.structured["files"] == len(everywhere.structured["matches"]) == 5


def test_single_file_can_be_searched_if_it_is_text(agent: Agent, tree: Path) -> None:
    (tree / "to a file").symlink_to("src/a.py")
    for name in ("src/a.py", "to a file"):
        result = agent.done("grep_files", path=str(tree / name), keyword="needle", pattern="*.txt")
        assert result.structured["matches"] == [{"path": str(tree / "src/a.py"), "line": 2, "text": "needle"}]
        assert (result.structured["files"], result.structured["complete"]) == (1, True)
    (tree / "binary").write_bytes(b"\0needle\n")
    error = agent.call("grep_files", path=str(tree / "binary"), keyword="needle").error
    assert (error["code"], error["message"]) == (-32004, f"Cannot search binary file: {tree / 'binary'}")
    os.mkfifo(tree / "pipe")
    assert agent.call("grep_files", path=str(tree / "pipe"), keyword="needle").refused
    assert agent.call("grep_files", path=str(tree / "none"), keyword="needle").error["code"] == -32001


def test_empty_result_is_stated(agent: Agent, folder: Path) -> None:
    top = str(folder)
    for tool, arguments, expected in (
        ("list_directory", {"path": top}, "The directory is empty."),
        ("directory_tree", {"path": top}, "The directory is empty."),
        ("search_files", {"path": top, "pattern": "*"}, "Nothing matches the pattern."),
        ("grep_files", {"path": top, "keyword": "needle"}, "No line contains the keyword."),
    ):
        assert agent.done(tool, **arguments).texts == [expected]
    (folder / "file").write_text("hay\n")
    found = agent.done("read_file_by_keyword", path=str(folder / "file"), keyword="needle")
    assert found.text == "No such lines."
    assert agent.done("read_file_by_line", path=str(folder / "file"), ranges=["2"]).text == "No such lines."


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("read_file", {"offset": -1}, "offset and limit cannot be negative"),
        ("read_text_file", {"limit": -1}, "offset and limit cannot be negative"),
        ("read_file_by_keyword", {"keyword": "x", "before": -1}, "before and after cannot be negative"),
        ("read_file_by_keyword", {"keyword": "x", "after": -1}, "before and after cannot be negative"),
        ("read_file_by_keyword", {"keyword": "x", "offset": -1}, "offset and limit cannot be negative"),
        ("read_file_by_line", {"ranges": ["3-2"]}, "The range ends before it begins: 3-2"),
        ("read_file_by_line", {"ranges": ["0"]}, """Not a line or a range of lines, as "5" or "10-20": '0'"""),
        ("list_directory", {"offset": -1}, "offset and limit cannot be negative"),
        ("directory_tree", {"offset": -1}, "max_depth and offset cannot be negative"),
        ("directory_tree", {"max_depth": -1}, "max_depth and offset cannot be negative"),
        ("search_files", {"pattern": "*", "offset": -1}, "offset cannot be negative"),
        ("grep_files", {"keyword": "x", "offset": -1}, "offset cannot be negative"),
    ],
)
def test_invalid_numbers_are_refused(
    agent: Agent, folder: Path, tool: str, arguments: dict[str, object], expected: str
) -> None:
    (folder / "file").write_text("x\n")
    path = folder if tool in {"list_directory", "directory_tree", "search_files", "grep_files"} else folder / "file"
    error = agent.call(tool, path=str(path), **arguments).error
    assert (error["code"], error["message"]) == (-32600, expected)


def test_search_reports_the_next_offset_and_cuts_long_lines(agent: Agent, folder: Path) -> None:
    for number in range(400):
        (folder / f"{number:0200}").write_text("needle " * 100)
    cut: set[int] = set()
    for tool, item, wanted in (
        ("search_files", "paths", {"pattern": "*"}),
        ("grep_files", "matches", {"keyword": "needle"}),
    ):
        found = agent.done(tool, path=str(folder), **wanted)
        cut |= {len(match["text"]) for match in found.structured.get("matches", [])}
        last = found.structured["next_offset"]
        assert 0 < last < 400
        assert found.texts[1] == f"These are {item} 1 to {last} of 400. Go on with offset={last}."
    assert cut == {401}


@pytest.mark.parametrize("use_regex", [False, True])
@pytest.mark.parametrize(
    ("line", "quoted_part"),
    [
        ("x" * 388 + " needle here", "x" * 388 + " needle here"),
        ("needle" + "y" * 395, "needle" + "y" * 394 + "…"),
        ("x" * 3000 + "needle" + "y" * 3000, "…" + "x" * 100 + "needle" + "y" * 294 + "…"),
        ("x" * 3000 + "needle" + "y" * 3, "…" + "x" * 391 + "needle" + "y" * 3),
        ("x" * 3000 + "needle", "…" + "x" * 394 + "needle"),
        ("é" * 3000 + "needle" + "y" * 3000 + "needle", "…" + "é" * 100 + "needle" + "y" * 294 + "…"),
    ],
)
def test_match_in_a_long_line_is_quoted(
    agent: Agent, folder: Path, line: str, quoted_part: str, *, use_regex: bool
) -> None:
    (folder / "file").write_text(f"before\n{line}\r\n")
    found = agent.done("grep_files", path=str(folder), keyword="needle", use_regex=use_regex)
    assert found.structured["matches"] == [{"path": str(folder / "file"), "line": 2, "text": quoted_part}]
    assert found.text == f"{folder / 'file'}:2: {quoted_part}"
    by_keyword = agent.done("read_file_by_keyword", path=str(folder / "file"), keyword="needle", use_regex=use_regex)
    assert by_keyword.structured["matches"] == [2]


def test_many_matches_are_returned_in_pages(agent: Agent, folder: Path) -> None:
    (folder / "file").write_text("needle in hay\n" * 2000)
    pages = all_pages(agent, "grep_files", "matches", path=str(folder), keyword="needle")
    assert [match["line"] for page in pages for match in page] == list(range(1, 2001))


def test_file_info_reports_type_size_permissions_and_time(agent: Agent, tree: Path) -> None:
    file = tree / "README.md"
    file.chmod(0o640)
    os.utime(file, (0, 1))
    info = agent.done("get_file_info", path=str(file)).structured
    assert (info["type"], info["size"], info["permissions"]) == ("file", file.stat().st_size, "0640")
    assert info["modified"] == "1970-01-01T00:00:01+00:00"
    assert agent.done("get_file_info", path=str(tree / "way out")).structured["type"] == "symlink"
    assert agent.done("get_file_info", path=str(tree)).structured["type"] == "directory"


def test_allowed_directories_are_listed(agent: Agent) -> None:
    assert agent.done("list_allowed_directories").structured["directories"] == [str(agent.root)]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("directory_tree", {}),
        ("search_files", {"pattern": "*"}),
        ("grep_files", {"keyword": "a"}),
        ("get_file_info", {}),
        ("read_file_by_line", {"ranges": ["1"]}),
        ("read_file_by_keyword", {"keyword": "a"}),
    ],
)
def test_paths_outside_are_refused(agent: Agent, tree: Path, tool: str, arguments: dict[str, object]) -> None:
    for path in ("/etc", "/etc/passwd", str(tree / ".." / ".." / ".."), str(tree / "way out" / "needle.py")):
        assert agent.call(tool, path=path, **arguments).error["code"] == -32002, path
