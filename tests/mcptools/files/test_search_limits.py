"""Limits of searches, and the pure functions for globs and pages."""

import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from mcptools.answers.paging import page_of
from mcptools.edit.globs import leads_into, matches
from mcptools.files.regex_search import matching
from mcptools.files.workspaces import Directories
from mcptools.model.failures import Failure, FailureKind
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
from tests.support.direct_tools import Tools


@pytest.fixture
def directories(tmp_path: Path) -> Iterator[Directories]:
    for number in range(20):
        (tmp_path / f"folder {number % 3}").mkdir(exist_ok=True)
        (tmp_path / f"folder {number % 3}" / f"file {number:02}").write_text("needle\n")
    found = Directories([str(tmp_path)])
    yield found
    found.close()


@pytest.mark.parametrize("limits", [ServerLimits(max_walked=5), ServerLimits(max_seconds=0)])
def test_search_that_ends_early_is_reported_as_incomplete(directories: Directories, limits: ServerLimits) -> None:
    tools = Tools(directories, Session(), limits)
    answers = (tools.directory_tree("."), tools.search_files(".", "*"), tools.grep_files(".", "needle"))
    for answer in answers:
        assert answer.content.complete is False
        assert "The search is incomplete" in " ".join(answer.notes)


@pytest.fixture
def tools_with_low_limit(tmp_path: Path) -> Iterator[Tools]:
    """Return tools that visit at most ten names, for a directory whose first folder has more."""
    (tmp_path / "modules" / "deep").mkdir(parents=True)
    for number in range(20):
        (tmp_path / "modules" / "deep" / f"{number}.py").touch()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "wanted.py").write_text("needle\n")
    directories = Directories([str(tmp_path)])
    yield Tools(directories, Session(), ServerLimits(max_walked=10))
    directories.close()


@pytest.mark.parametrize(
    ("depth", "names"), [(1, ["modules", "src"]), (2, ["modules", "modules/deep", "src", "src/wanted.py"])]
)
def test_tree_visits_only_the_levels_that_it_shows(tools_with_low_limit: Tools, depth: int, names: list[str]) -> None:
    found = tools_with_low_limit.directory_tree(".", max_depth=depth)
    assert [entry.path for entry in found.content.entries] == names
    assert (found.content.complete, found.notes) == (True, ())


@pytest.mark.parametrize("exclude", ["modules", "modules/**", "**/deep", "mod*/deep"])
def test_search_does_not_visit_excluded_folders(tools_with_low_limit: Tools, tmp_path: Path, exclude: str) -> None:
    found = tools_with_low_limit.search_files(".", "*.py", [exclude])
    assert found.content.paths == [str(tmp_path / "src" / "wanted.py")]
    assert (found.content.complete, found.notes) == (True, ())


@pytest.mark.parametrize("pattern", ["src/**", "src/*.py", "s*/**/*.py"])
def test_search_does_not_visit_folders_that_can_not_match(tools_with_low_limit: Tools, pattern: str) -> None:
    found = tools_with_low_limit.search_files(".", pattern)
    assert found.content.paths[-1].endswith("/src/wanted.py")
    assert found.notes == ()
    lines = tools_with_low_limit.grep_files(".", "needle", pattern)
    assert ([match.line for match in lines.content.matches], lines.notes) == ([1], ())


def test_file_over_the_limit_is_skipped_and_counted(directories: Directories, tmp_path: Path) -> None:
    (tmp_path / "big").write_text("needle" * 100)
    answer = Tools(directories, Session(), ServerLimits(max_file_bytes=100)).grep_files(".", "needle")
    assert (answer.content.files, answer.content.complete) == (20, False)
    assert "1 files could not be read" in answer.notes[0]


@pytest.mark.parametrize("expression", ["(a+)+$", "(a|a)*$", "a*a*a*a*a*a*$"])
def test_search_with_an_endless_expression_is_stopped(
    directories: Directories, tmp_path: Path, expression: str
) -> None:
    (tmp_path / "folder 0" / "slow").write_text("found\n" + "a" * 3000 + "b\n")
    tools = Tools(directories, Session(), ServerLimits(max_seconds=0.5))
    found = tools.grep_files(".", expression, "slow", use_regex=True)
    assert (found.content.matches, found.content.complete) == ([], False)
    assert "The search is incomplete" in found.notes[0]
    with pytest.raises(Failure, match="takes longer than") as refusal:
        tools.read_file_by_keyword("folder 0/slow", expression, use_regex=True)
    assert refusal.value.kind is FailureKind.RESOURCE_LIMIT


@pytest.mark.parametrize("expression", ["(", "a{2,1}", "(?P<a", "\\"])
def test_invalid_regular_expression_is_refused_with_its_fault(directories: Directories, expression: str) -> None:
    with pytest.raises(Failure, match=r"Not a regular expression: .*: .+"):
        Tools(directories, Session(), ServerLimits()).grep_files(".", expression, use_regex=True)


LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=8)


@settings(max_examples=20)
@given(lines=st.lists(LINE, max_size=8), text=st.text(min_size=1, max_size=3), ignore_case=st.booleans())
def test_text_and_its_escaped_expression_match_the_same_lines(
    lines: list[str], text: str, *, ignore_case: bool
) -> None:
    content = "\n".join(lines).encode()
    found = []
    for pattern, use_regex in ((text, False), (re.escape(text), True)):
        with matching(pattern, use_regex=use_regex, ignore_case=ignore_case, seconds=60) as lines_of:
            found.append(lines_of(content))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a/b/c.py", "*.py", True),
        ("a/b/c.py", "*/*.py", False),
        ("a/b/c.py", "a/**", True),
        ("a", "a/**", True),
        ("a/b/c.py", "**/c.py", True),
        ("c.py", "**/c.py", True),
        ("a/b/c.py", "**/b/**/c.py", True),
        ("a/b/c.py", "**/x/**", False),
        ("a/b/c.py", "**", True),
        ("a/b/C.py", "c.P", True),
        ("a/b/C.py", "c.p*", False),
        ("a/b/c.py", "/a/b/c.py", True),
        ("abc/d", "b", False),
        ("a/b/c.py", "./a/**/*.py", True),
        ("a/b/c.py", "././a//b/./c.py", True),
        ("a/c.py", "./{a,b}/*.py", True),
        ("c.py", "./c.py", True),
        ("a/c.py", "./c.py", False),
        ("a/b", "b/", True),
        ("a", "./", False),
        ("a/b.tsx", "*.{ts,tsx}", True),
        ("a/b.js", "*.{ts,tsx}", False),
        ("a/b/c.py", "{x,a/b}/*.py", True),
        ("a/b/c.py", "{a,b}/*.py", False),
        ("a/c.test.ts", "a/*{.test,}.t{s,sx}", True),
        ("a/c.ts", "a/*{.test,}.t{s,sx}", True),
        ("ab", "a{b{c,},d}", True),
        ("abc", "a{b{c,},d}", True),
        ("ad", "a{b{c,},d}", True),
        ("ac", "a{b{c,},d}", False),
        ("README.md", "read", True),
        ("README.md", "{read,license}", False),
        ("Makefile", "{Makefile,*.mk}", True),
        ("GNUmakefile.am", "{Makefile,*.mk}", False),
        ("rebuild.py", "{build,dist}", False),
        ("a/build", "{build,dist}", True),
        ("a/Build", "{build,dist}", False),
        ("a/rebuild", "{build}", False),
        ("{a}.py", "{a}.py", True),
        ("a.py", "{a}*", False),
        ("{a.py", "{a.*", True),
        ("{a,b}.py", "[{]a,b}.*", True),
        ("{b}", "{{a,b}}", True),
        ("{{b}}", "{{a,b}}", False),
        ("a{b}c", "{b}", True),
        ("b", "{" * 30_000 + "a,b" + "}" * 30_000, False),
        ("a,c", "a,{b,c}", True),
        ("ac", "[a]{b,c}", True),
        ("999", f"{{{','.join(map(str, range(1000)))}}}", True),
        ("b", "".join(f"{{{number}," for number in range(60)) + "b" + "}" * 60, True),
        ("b", "{" * 60 + "b" + "".join(f",{number}}}" for number in range(60)), True),
        ("a/b/a", "**/a/**/b/*", True),
    ],
)
def test_glob_matches_exactly_the_expected_paths(path: str, pattern: str, *, fits: bool) -> None:
    assert matches(path, pattern) is fits


PARTS = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=4)
GLOB = st.lists(st.sampled_from(["a", "b", "*", "**", "a?", "{a,b}", "{a/b,**}"]), min_size=1, max_size=4).map("/".join)


@given(parts=PARTS, pattern=GLOB)
def test_glob_leads_into_every_parent_of_a_match(parts: list[str], pattern: str) -> None:
    if matches("/".join(parts), pattern):
        assert all(leads_into("/".join(parts[:depth]), pattern) for depth in range(1, len(parts)))


@pytest.mark.parametrize(
    ("folder", "pattern", "leads"),
    [
        ("a", "*.py", True),
        ("a", "a/*.py", True),
        ("a/b", "a/*.py", False),
        ("a/b/c", "a/**", True),
        ("a/b/c", "a/b/**", True),
        ("b", "a/**", False),
        ("b/c", "**/a/*.py", True),
        ("b", "/a/*.py", False),
        ("a/b", "a/b", False),
        ("a/b", "**", True),
        ("a/b", "b", True),
        ("a", "{a,b}/*.py", True),
        ("c", "{a,b}/*.py", False),
        ("c", "{a/b,*}.py", True),
        ("a", "./a/*.py", True),
        ("b", "./a/*.py", False),
        ("a", "./*.py", False),
        ("a/b", "./**", True),
    ],
)
def test_glob_does_not_lead_into_folders_without_a_match(folder: str, pattern: str, *, leads: bool) -> None:
    assert leads_into(folder, pattern) is leads


@pytest.mark.parametrize("start", [".", "src"])
def test_glob_may_start_with_the_searched_folder(directories: Directories, tmp_path: Path, start: str) -> None:
    (tmp_path / "src" / "p").mkdir(parents=True)
    for name in ("src/p/hit.py", "src/hit.py"):
        (tmp_path / name).write_text("needle\n")
    tools = Tools(directories, Session(), ServerLimits())
    searched = os.path.normpath(tmp_path / start)
    for pattern in ("**/hit.py", "./**/hit.py", f"{searched}/**/hit.py"):
        assert len(tools.search_files(start, pattern).content.paths) == 2, pattern
        assert len(tools.grep_files(start, "needle", pattern).content.matches) == 2, pattern
        assert tools.search_files(start, "*.py", [pattern]).content.paths == [], pattern
    for folder in (f"{searched}/p/**", "./p/**"):
        assert len(tools.search_files(start, "*.py", [folder]).content.paths) == (2 if start == "." else 1)
    assert tools.search_files(start, f"{searched}x/**").content.paths == []


@pytest.mark.parametrize("pattern", ["{a,b}" * 10, "{a,b}" * 3000, f"{{{','.join(map(str, range(1001)))}}}"])
def test_glob_that_expands_to_too_many_patterns_is_refused(directories: Directories, pattern: str) -> None:
    tools = Tools(directories, Session(), ServerLimits())
    for call in (
        partial(tools.search_files, ".", pattern),
        partial(tools.search_files, ".", "*", [pattern]),
        partial(tools.grep_files, ".", "needle", pattern),
    ):
        with pytest.raises(Failure, match=r"^The glob expands to more than 1000 patterns$") as refusal:
            call()
        assert refusal.value.kind is FailureKind.INVALID_REQUEST


@given(
    st.lists(st.text(max_size=20), max_size=30),
    st.integers(0, 10),
    st.integers(1, 60),
)
def test_pages_contain_everything_and_stay_within_the_budget(items: list[str], limit: int, budget: int) -> None:
    collected: list[str] = []
    offset = 0
    while True:
        page = page_of(items, len, offset=offset, limit=limit, budget=budget)
        assert len(page.items) <= 1 or sum(map(len, page.items)) <= budget
        collected += page.items
        if not page.next_offset:
            break
        assert page.next_offset > offset
        offset = page.next_offset
    assert collected == items
