"""Compare the pages of `docs/contracts/` with the tests, both ways."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

TESTS: Final = Path(__file__).resolve().parent
PAGES: Final = TESTS.parent / "docs" / "contracts"
SEEDS: Final = ("000", "001", "002", "003", "004")

ROW: Final = re.compile(r"^\| (?P<id>[^|]+) \| (?P<what>(?:[^|]|\\\|)*) \| (?P<shown>[^|]+) \|$", re.MULTILINE)
REFERENCE: Final = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<name>test_\w+)`")
WHOLE_FILE: Final = re.compile(r"^- `(?P<file>[\w/]+\.py)`$", re.MULTILINE)
NOT_YET: Final = re.compile(r"not yet(: \S.*)?")

NUMBERED: Final = {
    "001": [f"TC{number}" for number in range(1, 8)],
    "002": [
        *(f"FR-UNDO-{number:02}" for number in range(1, 18)),
        *(f"NFR-UNDO-SAFE-{number:02}" for number in range(1, 5)),
        *(f"NFR-UNDO-SEC-{number:02}" for number in range(1, 3)),
        *(f"NFR-UNDO-PERF-{number:02}" for number in range(1, 4)),
        *(f"T-UNDO-{number:02}" for number in range(1, 7)),
    ],
}
"""Requirements that the documents themselves number."""


USED_AS_BY_A_USER: Final = frozenset(
    {"agent", "runner", "connected", "serving", "started", "forked_program", "subprocess"}
)
"""Fixtures and helpers through which a test uses a server process or the command."""

SHOWN_BY_USE_ALONE: Final = ("001", "002", "003", "004")
"""Pages that name only tests which use a server or the command; of 000, each row names at least one."""


class Row(NamedTuple):
    """One requirement of a page."""

    id: str
    tests: list[str]  # as `file::name`; []: not yet
    shown: str


def rows(seed: str) -> list[Row]:
    """Return the requirements of a document's page."""
    return rows_in((PAGES / f"{seed}.md").read_text())


def rows_in(text: str) -> list[Row]:
    """Return the requirements in a page's tables."""
    return [
        Row(found["id"], ["::".join(test) for test in REFERENCE.findall(found["shown"])], found["shown"])
        for found in ROW.finditer(text)
        if set(found["id"]) != {"-"} and found["shown"] != "shown by"
    ]


@cache
def functions_in(file: str) -> frozenset[str]:
    """Return the names of the tests in a file, none where there is no such file."""
    path = TESTS / file
    if not path.is_file():
        return frozenset()
    body = ast.parse(path.read_bytes()).body
    return frozenset(f"{file}::{part.name}" for part in body if isinstance(part, ast.FunctionDef))


@cache
def names_used_in(file: str) -> dict[str, frozenset[str]]:
    """Return for each function of a test file the names that it uses: parameters, and whatever is named inside."""
    return {
        part.name: frozenset(
            {argument.arg for argument in ast.walk(part) if isinstance(argument, ast.arg)}
            | {name.id for name in ast.walk(part) if isinstance(name, ast.Name)}
        )
        for part in ast.parse((TESTS / file).read_bytes()).body
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def is_shown_by_use(test: str) -> bool:
    """Return whether a test uses a server or the command, itself or through fixtures and functions of its file."""
    file, _, name = test.partition("::")
    functions = names_used_in(file)
    seen: set[str] = set()
    todo = {name}
    while todo:
        seen |= todo
        todo = {used for function in todo for used in functions.get(function, ())} - seen
    return not USED_AS_BY_A_USER.isdisjoint(seen)


@pytest.mark.parametrize("seed", ["000", *SHOWN_BY_USE_ALONE])
def test_every_row_is_shown_by_using_the_server_or_the_command(seed: str) -> None:
    is_enough = all if seed in SHOWN_BY_USE_ALONE else any
    assert [row.id for row in rows(seed) if row.tests and not is_enough(map(is_shown_by_use, row.tests))] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_names_tests_or_says_not_yet(seed: str) -> None:
    assert rows(seed)
    for row in rows(seed):
        rest = REFERENCE.sub("", row.shown).replace("<br>", "").strip()
        assert rest == "" if row.tests else NOT_YET.fullmatch(rest), row


@pytest.mark.parametrize("seed", SEEDS)
def test_every_line_of_a_table_is_parsed(seed: str) -> None:
    lines = [line for line in (PAGES / f"{seed}.md").read_text().splitlines() if line.startswith("|")]
    headings = [line for line in lines if line in {"| | requirement | shown by |", "|---|---|---|"}]
    assert len(rows(seed)) == len(lines) - len(headings)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_test_that_a_page_names_exists(seed: str) -> None:
    named = {test for row in rows(seed) for test in row.tests}
    assert sorted(test for test in named if test not in functions_in(test.partition("::")[0])) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_every_test_of_a_file_that_belongs_to_a_page_is_named_there(seed: str) -> None:
    text = (PAGES / f"{seed}.md").read_text()
    named = {test for row in rows(seed) for test in row.tests}
    for file in WHOLE_FILE.findall(text):
        tests = {test for test in functions_in(file) if "::test_" in test}
        assert tests, f"{file} holds no test"
        assert sorted(tests - named) == []


@pytest.mark.parametrize("seed", NUMBERED)
def test_every_numbered_requirement_has_its_row(seed: str) -> None:
    ids = [row.id for row in rows(seed)]
    assert [number for number in NUMBERED[seed] if ids.count(number) != 1] == []


@pytest.mark.parametrize(("seed", "prefix"), [("001", "test_tc"), ("002", "test_t_undo_")])
def test_every_test_named_for_a_requirement_is_in_its_row(seed: str, prefix: str) -> None:
    ids = {re.sub(r"\W", "", row.id).lower(): row for row in rows(seed)}
    named_for_one = {
        test: f"{prefix.removeprefix('test_').replace('_', '')}{found[1]}"
        for path in sorted((TESTS / "mcptools").rglob("test_*.py"))
        for test in functions_in(str(path.relative_to(TESTS)))
        if (found := re.match(rf"{prefix}(\d+)_", test.partition("::")[2]))
    }
    assert named_for_one
    assert [test for test, number in sorted(named_for_one.items()) if test not in ids[number].tests] == []


def test_every_page_is_listed() -> None:
    listed = re.findall(r"\]\((\d{3})\.md\)", (PAGES / "README.md").read_text())
    assert listed == list(SEEDS) == sorted(page.stem for page in PAGES.glob("[0-9]*.md"))


# ---- the list of requirements


class Requirement(NamedTuple):
    """One line of the list of requirements."""

    id: str
    how_many: int
    state: str
    what: str
    rows: list[str]  # of the document's page; []: none shows it


STATES: Final = ("satisfied", "partly", "not yet", "untried")
LISTED: Final = re.compile(
    r"^\| (?P<id>(?:\d{3}|card)-\S+) \| (?P<count>\d+) \| (?P<state>[^|]+) "
    r"\| (?P<what>(?:[^|]|\\\|)*) \| (?P<rows>[^|]+) \|$",
    re.MULTILINE,
)


def requirements() -> list[Requirement]:
    """Return the requirements of all documents."""
    return [
        Requirement(
            found["id"],
            int(found["count"]),
            found["state"],
            found["what"].strip(),
            [] if found["rows"] == "-" else found["rows"].split("; "),
        )
        for found in LISTED.finditer((PAGES / "requirements.md").read_text())
    ]


def document_of(requirement: Requirement) -> str:
    return requirement.id.partition("-")[0]


def named_rows(seed: str) -> dict[str, Row]:
    """Return the rows of a page by their names, alone and with the heading above them."""
    found: dict[str, Row] = {}
    for section in re.split(r"^## ", (PAGES / f"{seed}.md").read_text(), flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0]
        for row in rows_in(section):
            found[f"{heading}: {row.id}"] = found[row.id] = row
    return found


def test_every_line_of_the_list_is_parsed_and_has_its_own_id() -> None:
    lines = [line for line in (PAGES / "requirements.md").read_text().splitlines() if re.match(r"\| (\d|card)", line)]
    ids = [requirement.id for requirement in requirements()]
    assert len(ids) == len(set(ids)) == len(lines)
    assert {requirement.state for requirement in requirements()} <= set(STATES)


def test_sums_are_those_of_the_list() -> None:
    page = (PAGES / "README.md").read_text()
    said = re.findall(r"^\| (\d{3}|[a-z ]+) ((?:\| \d+ ){5})\|$", page, re.MULTILINE)
    sums = {name: [int(part) for part in re.findall(r"\d+", row)] for name, row in said}
    counted: dict[str, list[int]] = {}
    for requirement in requirements():
        document = document_of(requirement).replace("card", "the project")
        for name in (document, "all"):
            row = counted.setdefault(name, [0] * 5)
            row[0] += requirement.how_many
            row[1 + STATES.index(requirement.state)] += requirement.how_many
    assert sums == counted


def test_every_requirement_is_shown_by_the_rows_that_it_names_or_says_what_is_missing() -> None:
    for requirement in requirements():
        if document_of(requirement) != "card":
            found = named_rows(document_of(requirement))
            assert [name for name in requirement.rows if not found[name].tests] == []
            assert requirement.rows or requirement.state != "satisfied", requirement
        assert requirement.what or requirement.state == "satisfied", requirement
