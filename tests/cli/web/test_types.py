"""The page's description of requests and answers, `types.d.ts`, has the fields that the server sends, and no others."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.json_shapes.test_json import documented
from tests.support.command_runner import CommandRunner
from tests.support.review_project import agents_worked, changed_outside, new_project
from tests.support.review_server import ReviewServer, review_server

TYPES: Final = Path(__file__).resolve().parents[3] / "cli" / "web" / "static" / "types.d.ts"
COMMENT: Final = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)

Fields = dict[str, tuple[bool, str]]
"""The fields of an interface: whether each may be missing, and its type."""


def interfaces() -> dict[str, Fields]:
    """Return the fields of each interface, with those that it inherits."""
    text = COMMENT.sub("", TYPES.read_text())
    found: dict[str, Fields] = {}
    for name, base, body in re.findall(
        r"export interface (\w+)(?: extends (\w+))? \{(.*?)\n?\}(?=\n)", text, re.DOTALL
    ):
        found[name] = {**found.get(base, {}), **fields_of(body)}
    return found


def outcomes() -> dict[str, Fields]:
    """Return the fields of each outcome, by its name."""
    text = COMMENT.sub("", TYPES.read_text())
    body = text[text.index("export type Outcome =") :].partition("export interface")[0]
    found: dict[str, Fields] = {}
    for at in re.finditer(r"(\w+ & )?\{ outcome:", body):
        own = fields_of(closed(body[body.index("{", at.start()) + 1 :]))
        found[own["outcome"][1].strip('"')] = {**(interfaces()["Answered"] if at[1] else {}), **own}
    return found


def closed(text: str) -> str:
    """Return a text up to the brace that closes what was opened before it."""
    depth = 0
    for at, sign in enumerate(text):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth < 0:
            return text[:at]
    raise AssertionError(text)


def fields_of(body: str) -> Fields:
    """Return the fields of the body of an interface, without those of types within it."""
    parts, depth, start = [], 0, 0
    for at, sign in enumerate(body):
        depth += {"{": 1, "[": 1, "<": 1, "(": 1, "}": -1, "]": -1, ">": -1, ")": -1}.get(sign, 0)
        if sign in ";\n" and not depth:
            parts.append(body[start:at])
            start = at + 1
    fields = (re.fullmatch(r"(\w+)(\??): (.*)", part.strip(), re.DOTALL) for part in [*parts, body[start:]])
    return {field[1]: (bool(field[2]), field[3]) for field in fields if field}


TYPED: Final = interfaces()
OUTCOMES: Final = outcomes()


def differences(shape: Any, kind: str, where: str) -> Iterator[str]:  # noqa: ANN401 -- whatever the document holds
    """Yield where an answer has other fields than its type, or a value of another kind."""
    kind = kind.strip()
    if kind.endswith(" | null"):
        yield from () if shape is None else differences(shape, kind.removesuffix(" | null"), where)
    elif kind.endswith("[]"):
        for at, each in enumerate(shape):
            yield from differences(each, kind[:-2].removeprefix("(").removesuffix(")"), f"{where}[{at}]")
    elif record := re.fullmatch(r"Record<[^,]+, (.*)>", kind):
        for name, each in shape.items():
            yield from differences(each, record[1], f"{where}.{name}")
    elif fields := fields_named(kind, shape):
        yield from fields_differ(shape, fields, f"{where} {kind}")
    elif kind in {"string", "number", "boolean"}:
        wanted = {"string": str, "number": (int, float), "boolean": bool}[kind]
        if not isinstance(shape, wanted) or (kind == "number" and isinstance(shape, bool)):  # type: ignore[arg-type]  # each is a class or several
            yield f"{where} is {shape!r}, no {kind}"
    elif kind.startswith('"') and shape not in re.findall(r'"([^"]*)"', kind):
        yield f"{where} is {shape!r}, not one of {kind}"


def fields_named(kind: str, shape: Any) -> Fields:  # noqa: ANN401 -- as above
    """Return the fields of a type, as it is written; {}: it is no type of objects. `shape`: an outcome says its own."""
    if kind == "Outcome":
        return OUTCOMES.get(shape["outcome"], {})
    if kind.startswith("{"):
        return fields_of(closed(kind[1:]))
    if joined := re.fullmatch(r"(\w+) & \{(.*)\}", kind):
        return {**TYPED[joined[1]], **fields_of(joined[2])}
    if partial := re.fullmatch(r"Omit<(\w+), (.*)>", kind):
        left_out = set(re.findall(r'"(\w+)"', partial[2]))
        return {name: each for name, each in TYPED[partial[1]].items() if name not in left_out}
    return TYPED.get(kind, {})


def fields_differ(shape: Any, fields: Fields, where: str) -> Iterator[str]:  # noqa: ANN401 -- as above
    """Yield how the fields of an object differ from those of its type."""
    if not isinstance(shape, dict) or not fields:
        yield f"{where} is {type(shape).__name__}, and its type has {len(fields)} fields"
        return
    yield from (
        f"{where} has no {name}" for name, (is_optional, _) in fields.items() if not is_optional | (name in shape)
    )
    for name, value in shape.items():
        if name not in fields:
            yield f"{where} has {name}, which is not in its type"
        else:
            yield from differences(value, fields[name][1], f"{where}.{name}")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    """Return a server of a project in which agents have worked and a person has commented."""
    root = new_project(tmp_path_factory.mktemp("typed") / "shop")
    agents_worked(root)
    changed_outside(root)
    runner = CommandRunner(root)
    runner.done("comment", "shop/cart.py:30", "-m", "Why?")
    with review_server(root) as server:
        yield server


def test_there_are_types_of_all_answers() -> None:
    assert {"Queue", "File", "Change", "Row", "Edits", "Blame", "Timeline", "State", "Moment", "Search"} <= TYPED.keys()
    assert {"decided", "conflict", "external-changes", "unshown", "overtaken", "failed"} <= OUTCOMES.keys()


def test_answers_have_the_fields_of_their_types(served: ReviewServer) -> None:
    queue = served.queue()
    found = list(differences(queue, "Queue", "queue"))
    assert queue["comments"]
    for file in queue["files"]:
        shape = served.get("/api/file", document=file["document"])
        found += differences(shape, "File", file["name"])
        for change in shape["all"][:2]:
            asked = {"document": file["document"], "key": change["key"]}
            found += differences(served.get("/api/rejection", **asked), "Rejection", "rejection")
            found += differences(served.get("/api/edits", units=",".join(change["hunks"])), "Edits", "edits")
        found += differences(served.get("/api/syntax", document=file["document"]), "Syntax", "syntax")
        found += differences(served.get("/api/lines", document=file["document"]), "Lines", "lines")
    paths = {file["name"]: file["path"] for file in queue["files"]}
    found += differences(served.get("/api/blame", path=paths["shop/cart.py"]), "Blame", "blame")
    found += differences(served.get("/api/timeline"), "Timeline", "timeline")
    found += differences(served.get("/api/state", path=paths["shop/cart.py"], seq=1, before=0), "State", "state")
    found += differences(served.get("/api/moment", seq=1), "Moment", "moment")
    found += differences(served.get("/api/search", q="shipping", **{"in": "text"}), "Search", "search")
    found += differences(served.get("/api/store"), "Store", "store")
    found += differences(served.get("/plots/store.json"), "Plot", "plot")
    assert found == []


@pytest.mark.parametrize(
    ("kind", "own", "row"),
    [
        ("EditSummary", {"who", "prompt", "path", "name"}, "log"),
        ("Turn", {"running", "files"}, "log --turns"),
        ("Session", set(), "log --sessions"),
        ("Comment", {"path", "name"}, "comment"),
        ("RunningCall", {"names"}, "status.running_calls"),
        ("ExternalChange", {"path", "name"}, "status.external_changes"),
        ("Answered", {"message", "notes", "detail", "subject", "document"}, "accept"),
        ("Effect", {"name", "words"}, "accept.files"),
        ("Conflict", {"path", "name", "rows", "edits"}, "accept.conflicts"),
        (
            "Change",
            {"key", "words", "verdict", "whitespace_only", "waiting", "row", "rows", "place", "writers", "before"},
            "diff.changes",
        ),
    ],
)
def test_what_the_command_prints_too_has_its_names(kind: str, own: set[str], row: str) -> None:
    """`own`: what the page needs besides, such as names as they are shown, and places of rows that it can ask for."""
    assert TYPED[kind].keys() - own - documented()[row] == set()
    assert own <= TYPED[kind].keys()


def test_outcomes_have_the_fields_of_their_types(served: ReviewServer) -> None:
    keys = served.keys("README.md")
    made = [
        served.decide("accept", keys=keys, on_screen={}),
        served.decide("accept", keys=keys[:1]),
        served.decide("reject", keys=keys[:1]),
        served.decide("reject", keys=served.keys("tests/test_cart.py")),
        served.decide("accept", units={"1:1": "rejected"}),
        served.post("/api/redo"),
        served.post("/api/undo", number=served.queue()["undo"]),
        served.decide("reject", turn=1, running="now"),
    ]
    found = [words for each in made for words in differences(each, "Outcome", "outcome")]
    assert {each["outcome"] for each in made} >= {"unshown", "decided", "overtaken", "external-changes"}
    assert found == []
