"""Command-line options of the server: offered tools, required reads, and questions to a person."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult

from mcptools.catalog.tool_list import SETS, TOOLS, chosen
from objstore import Action, Status, Workspace
from tests.support.mcp_agent import connected
from tests.support.sampling import sampled_product

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PATCH_TOOLS_OF_THE_DOCUMENT = [
    "apply_patch",
    "validate_patch",
    "revert_patch",
    "generate_patch",
    "inspect_patch",
    "backup_file",
    "restore_backup",
]

# ---- offered tools


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--tools", "hashline"], list(chosen(["hashline"]))),
        (["--tools", "read_file, Undo"], ["read_file", "Undo"]),
        (["--tools", "hashline,delete_file", "--read-only"], list(chosen(["hashline"], read_only=True))),
        (["--tools", "all", "--read-only"], [name for name, traits in TOOLS.items() if traits.read_only]),
        (["--tools", "default"], list(chosen(["default"]))),
        (["--tools", "patch"], PATCH_TOOLS_OF_THE_DOCUMENT),
    ],
)
def test_only_the_selected_tools_are_offered(root: Path, options: list[str], names: list[str]) -> None:
    with connected(root, options=options) as agent:
        assert [tool.name for tool in agent.tools()] == names
        for name in TOOLS.keys() - set(names):
            assert agent.call(name).refused


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("options", [[f"--tools={name}"] for name in SETS] + [["--tools=all", "--read-only"]], ids=str)
def test_tool_that_is_not_offered_says_how_the_server_offers_it(root: Path, options: list[str], mode: str) -> None:
    with connected(root, options=["--tools", "all", *options], mode=mode) as agent:
        offered = {tool.name for tool in agent.tools()}
        for name in TOOLS.keys() - offered:
            refused = agent.call(name, path="f", file_path="f", patch="", content="x\n")
            assert refused.structured.keys() == {"success", "error"}
            assert refused.structured["success"] is False
            assert (refused.error["code"], refused.error["type"]) == (-32600, "invalid_request")
            message = refused.texts[0]
            assert message == refused.error["message"]
            assert message.startswith(f"{name} is not offered here: start the server with `--tools ")
            way = message.split("`")[1].removeprefix("--tools ")
            assert name in chosen([way])
            assert ("and without `--read-only`" in message) == (
                not TOOLS[name].read_only and all(TOOLS[each].read_only for each in offered)
            )
            for instead in refused.texts[1:]:
                named = {word.strip(".,") for word in instead.split()} & TOOLS.keys()
                assert named
                assert named <= offered
    assert list(root.iterdir()) == []


def test_tools_of_each_document_are_refused_with_the_set_that_has_them(root: Path) -> None:
    with connected(root, options=["--tools", "default"]) as agent:
        for tool, tools in (
            ("edit_file_diff", "classic"),
            ("edit_text_file", "hashline"),
            ("read_text_file", "hashline"),
            ("apply_patch", "patch"),
            ("restore_backup", "patch"),
        ):
            message = f"{tool} is not offered here: start the server with `--tools {tools}` (or `all`)"
            assert agent.call(tool).texts[0] == message
        instead = "Change parts of a file with multi_edit_text_file."
        assert agent.call("apply_patch", file_path="f", patch="").texts[1:] == [instead]
    with connected(root, options=["--tools", "patch"]) as agent:
        for tool in ("multi_edit_text_file", "Undo", "read_file"):
            assert "`--tools default` (or `all`)" in agent.call(tool).texts[0]
        assert agent.call("no_such_tool").texts == ["Unknown tool: no_such_tool"]


def test_each_tool_is_in_a_set() -> None:
    assert {name for names in SETS.values() for name in names} == set(TOOLS)
    for name in SETS:
        assert list(chosen([name])) == [tool for tool in TOOLS if tool in SETS[name]]
    with pytest.raises(KeyError, match="format_disk"):
        chosen(["read", "format_disk"])


def test_read_only_offers_no_tool_that_changes_a_file() -> None:
    assert not [name for name, traits in chosen(["all"], read_only=True).items() if traits.destructive]
    assert not set(chosen(["multi"], read_only=True)) - {"read_file"}


# ---- required reads


def test_require_read_demands_a_read_of_the_current_version_before_each_change(root: Path) -> None:
    file = root / "file.txt"
    file.write_text("one\n")
    edits = [{"old_string": "one", "new_string": "two"}]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": str(file), "content": "two\n"}),
        ("multi_edit_text_file", {"path": str(file), "edits": edits}),
        ("edit_file_diff", {"path": str(file), "diff": "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+two\n"}),
        ("move_file", {"source": str(file), "destination": str(root / "moved")}),
        ("delete_file", {"path": str(file)}),
    ]
    with connected(root, options=["--require-read"]) as agent:
        for tool, arguments in calls:
            assert agent.call(tool, **arguments).error["type"] == "stale_file", tool
        agent.done("read_file", path=str(file))
        file.write_text("one\nsomebody's work\n")
        # What was read is not the present version.
        assert agent.call("multi_edit_text_file", path=str(file), edits=edits).refused
        assert agent.call("read_text_file", path=str(file), limit=-1).refused
        assert agent.call("multi_edit_text_file", path=str(file), edits=edits).refused
        # After a partial read, the session may continue from the result of its own edits.
        agent.done("read_file_by_line", path=str(file), ranges=["1"])
        agent.done("multi_edit_text_file", path=str(file), edits=edits)
        agent.done("edit_file_diff", path=str(file), diff="--- a\n+++ a\n@@ -1 +1 @@\n-two\n+one\n")
        assert agent.call("write_file", path=str(file), content="three\n").refused
        agent.done("read_text_file", path=str(file))
        agent.done("multi_edit_text_file", path=str(file), edits=edits)
        # The session knows the result of its own edits, and a new file can't be read first.
        agent.done("write_file", path=str(file), content="three\n")
        agent.done("write_file", path=str(root / "new"), content="new\n")
        agent.done("write_file", path=str(root / "new"), content="newer\n")
    assert file.read_text() == "three\n"


def test_require_read_demands_a_complete_read_before_a_file_is_replaced(root: Path) -> None:
    file, moved = root / "file.txt", root / "moved.txt"
    file.write_text("one\ntwo\nthree\n")
    edits = [{"old_string": "one", "new_string": "1"}]
    with connected(root, options=["--require-read"]) as agent:

        def refusal_to_replace(path: Path) -> str:
            """Return why the whole file may not be replaced."""
            error = agent.call("write_file", path=str(path), content="blindly\n").error
            assert error["type"] == "stale_file"
            return str(error["hint"])

        agent.done("read_file", path=str(file), limit=1)
        assert refusal_to_replace(file).startswith("You have read a part of it")
        assert not (root / ".cas").exists(), "a refusal made a store"
        # Edits with their own context are applied, and don't count as reading the rest.
        edited = agent.done("multi_edit_text_file", path=str(file), edits=edits)
        assert edited.structured["changed_since_read"] is False
        agent.done("apply_patch", file_path=str(file), patch="--- a\n+++ b\n@@ -1 +1 @@\n-1\n+uno\n")
        agent.done("move_file", source=str(file), destination=str(moved))
        assert refusal_to_replace(moved).startswith("You have read a part of it")
        agent.done("read_file_by_line", path=str(moved), ranges=["2-3"])
        assert refusal_to_replace(moved).startswith("You have read a part of it")
        agent.done("read_file", path=str(moved), limit=1)
        agent.done("write_file", path=str(moved), content="knowingly\n")
        # A file that another process has changed has to be read again.
        moved.write_text("knowingly\nsomebody's work\n")
        assert refusal_to_replace(moved) == "You have not read its current version."
        agent.done("read_file", path=str(moved), limit=1)
        assert "again" in refusal_to_replace(moved)
        agent.done("read_file", path=str(moved))
        agent.done("write_file", path=str(moved), content="and on\n")
        # For other changes, reading a part is enough.
        other = root / "other.txt"
        other.write_text("one\ntwo\n")
        agent.done("read_file", path=str(other), limit=1)
        agent.done("delete_file", path=str(other))


def test_backups_of_one_second_get_distinct_names_with_require_read(root: Path) -> None:
    (root / "file.txt").write_text("one\n")
    with connected(root, options=["--require-read"]) as agent:
        for _ in range(4):
            agent.done("backup_file", file_path=str(root / "file.txt"))
    assert len(list(root.glob("file.txt.backup.*"))) == 4


# ---- questions to a person


class Person:
    """A person who gives every question the same answer, and records the questions."""

    def __init__(self, answer: ElicitResult) -> None:
        self.answer = answer
        self.questions: list[str] = []

    async def __call__(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK passes it by name
        params: ElicitRequestParams,
    ) -> ElicitResult:
        self.questions.append(params.message)
        return self.answer


ANSWERS = [
    (ElicitResult(action="accept", content={"approve": True}), True),
    (ElicitResult(action="accept", content={}), True),
    (ElicitResult(action="accept", content={"approve": False}), False),
    (ElicitResult(action="decline"), False),
    (ElicitResult(action="cancel"), False),
    (ElicitResult(action="accept", content={"approve": "maybe"}), False),
    (ElicitResult(action="accept", content={"shall_it": "no"}), False),
    (ElicitResult(action="accept"), False),
]
"""Answers to the question before an undo, and whether they approve it."""


@pytest.mark.parametrize(("mode", "answered"), sampled_product(["legacy", "2026-07-28"], ANSWERS))
def test_undo_needs_approval_if_the_client_supports_elicitation(
    root: Path, mode: str, answered: tuple[ElicitResult, bool]
) -> None:
    answer, approved = answered
    person = Person(answer)
    with connected(root, mode=mode, person=person) as agent:
        empty = agent.call("Undo")
        assert empty.text == "No edits have been applied to any file with this session."
        agent.done("write_file", path="file", content="text\n")
        assert person.questions == []
        result = agent.call("Undo")
        description = f"undo its last change, edit 1 by write_file in {root}: delete file, which it created"
        assert person.questions == [f"The agent wants to {description}. Shall it go ahead?"]
        if not approved:
            assert result.error["type"] == "not_approved"
    assert result.refused is not approved
    assert (root / "file").exists() is not approved


class SlowPerson:
    """A person who approves everything, and during whose first answer something else happens."""

    def __init__(self) -> None:
        self.during_answer: Callable[[], Awaitable[object]] | None = None
        self.questions: list[str] = []

    async def __call__(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK passes it by name
        params: ElicitRequestParams,
    ) -> ElicitResult:
        self.questions.append(params.message)
        during_answer, self.during_answer = self.during_answer, None
        if during_answer is not None:
            await during_answer()
        return ElicitResult(action="accept", content={"approve": True})


@pytest.mark.parametrize(("mode", "name"), sampled_product(["legacy", "2026-07-28"], ["scratch", "important"]))
def test_only_the_change_that_the_person_approved_is_undone(root: Path, mode: str, name: str) -> None:
    person = SlowPerson()
    with connected(root, mode=mode, person=person) as agent:
        agent.done("write_file", path="scratch", content="junk\n")
        agent.done("write_file", path="scratch", content="more junk\n")

        async def undo(client: Client) -> CallToolResult:
            person.during_answer = functools.partial(
                client.call_tool, "write_file", {"path": name, "content": "precious\n"}
            )
            return await client.call_tool("Undo", {})

        undone = agent.run(undo)
        if mode == "legacy":
            assert undone.is_error
            assert undone.structured_content is not None
            assert undone.structured_content["error"]["type"] == "not_approved"
            assert (root / name).read_text() == "precious\n"
            agent.done("Undo")
        first, second = person.questions  # in the newer protocol version, the server asks again by itself
        assert "edit 2 by write_file" in first
        assert "edit 3 by write_file" in second
    assert (root / "scratch").read_text() == "more junk\n"
    assert not (root / "important").exists()


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_change_accepted_during_the_question_needs_another_approval(root: Path, mode: str) -> None:
    person = SlowPerson()

    async def accept() -> None:
        with Workspace.open(root) as workspace:
            workspace.decide(Action.ACCEPT, workspace.find_units("1")[1])

    with connected(root, mode=mode, person=person) as agent:
        agent.done("write_file", path="file", content="text\n")
        person.during_answer = accept
        undone = agent.call("Undo")
        if mode == "legacy":
            assert undone.error["type"] == "not_approved"
            assert "has accepted more of it since" in undone.text
            assert (root / "file").read_text() == "text\n"
            assert agent.history()[0].status is Status.ACCEPTED
            agent.done("Undo")
    first, second = person.questions  # in the newer protocol version, the server asks again by itself
    assert "A reviewer has accepted" not in first
    assert "A reviewer has accepted it." in second
    assert not (root / "file").exists()


def test_question_before_an_undo_names_the_tool_and_each_file(root: Path) -> None:
    person = Person(ElicitResult(action="decline"))
    patch = "--- a\n+++ a\n@@ -1 +1 @@\n-text\n+more\n"
    for number in range(12):
        (root / f"f{number}").write_text("text\n")
    with connected(root, person=person) as agent:
        patches = [{"file_path": f"f{number}", "patch": patch} for number in range(12)]
        agent.done("apply_patches", strategy="atomic", patches=patches)
        agent.call("Undo")
        agent.done("move_file", source="f0", destination="moved\nto")
        agent.call("Undo")
        agent.done("delete_file", path="f1")
        agent.call("Undo")
    many, moved, deleted = (words.partition(f" in {root}: ") for words in person.questions)
    assert many[0] == "The agent wants to undo its last change, edits 1 to 12 by apply_patches"
    assert many[2].startswith("make f0 what it was before; make f1 what it was before; ")
    assert many[2].endswith("make f9 what it was before; and the same for 2 more files. Shall it go ahead?")
    assert moved[2] == "make 'moved\\nto', which it moved from f0, what it was before. Shall it go ahead?"
    assert deleted[2] == "bring back f1, which it deleted. Shall it go ahead?"


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        (["1"], " A reviewer has accepted edit 1 of it."),
        (["1", "2:2"], " A reviewer has accepted edit 1 and hunk 2:2 of it."),
        (["2:1", "2:2", "1"], " A reviewer has accepted it."),
        ([], ""),
    ],
)
def test_question_before_an_undo_lists_what_a_reviewer_has_accepted(
    root: Path, accepted: list[str], expected: str
) -> None:
    person = Person(ElicitResult(action="decline"))
    (root / "a").write_text("1\n")
    (root / "b").write_text("1\n2\n3\n")
    with connected(root, person=person) as agent:
        patches = [
            {"file_path": "a", "patch": "--- a\n+++ a\n@@ -1 +1 @@\n-1\n+one\n"},
            {"file_path": "b", "patch": "--- b\n+++ b\n@@ -1,3 +1,3 @@\n-1\n+one\n 2\n-3\n+three\n"},
        ]
        agent.done("apply_patches", strategy="atomic", patches=patches)
        for name in accepted:
            with Workspace.open(root) as workspace:
                workspace.decide(Action.ACCEPT, workspace.find_units(name)[1])
        agent.call("Undo")
    (questions,) = person.questions
    assert questions.endswith(f"make a what it was before; make b what it was before.{expected} Shall it go ahead?")


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_question_before_a_tool_names_its_files(root: Path, mode: str) -> None:
    person = Person(ElicitResult(action="decline"))
    patch = "--- a\n+++ a\n@@ -1 +1 @@\n-text\n+more\n"
    asking = "write_file,move_file,delete_file,apply_patches,restore_backup,list_edits"
    with connected(root, mode=mode, options=["--approve", asking], person=person) as agent:
        agent.call("write_file", path="new\nline", content="text\n")
        agent.call("move_file", source="a", destination="b")
        agent.call("delete_file", path="x" * 1000)
        patches = [{"file_path": f"f{number % 12}", "patch": patch} for number in range(13)]
        agent.call("apply_patches", strategy="atomic", patches=patches)
        agent.call("restore_backup", backup_file="f.backup.20260101_000000")
        agent.call("list_edits")
    long = f"{'x' * 500}… (1000 characters in all)"
    assert person.questions == [
        f"The agent wants to use {description}. Shall it go ahead?"
        for description in (
            "write_file (path: 'new\\nline'): Write a file",
            "move_file (source: a, destination: b): Move a file",
            f"delete_file (path: {long}): Delete a file",
            f"apply_patches ({', '.join(f'file_path: f{n}' for n in range(10))}, and 2 more): Apply patches together",
            "restore_backup (backup_file: f.backup.20260101_000000): Restore a backup",
            "list_edits: List recorded edits",
        )
    ]


@pytest.mark.parametrize(
    ("mode", "option"),
    sampled_product(
        ["legacy", "2026-07-28"], ["--approve=required,Undo,delete_file,apply_patch", "--approve=required"]
    ),
)
def test_required_approval_refuses_a_client_that_can_not_ask(root: Path, mode: str, option: str) -> None:
    (root / "file").write_text("text\n")
    with connected(root, mode=mode, options=[option]) as agent:
        assert agent.call("Undo").text == "No edits have been applied to any file with this session."
        agent.done("write_file", path="new", content="text\n")
        refused = [agent.call("Undo")]
        if "delete_file" in option:
            refused += [agent.call("delete_file", path="file")]
            patch = "--- a\n+++ a\n@@ -1 +1 @@\n-text\n+more\n"
            flat = agent.call("apply_patch", file_path="file", patch=patch).structured
            assert (flat["error_type"], flat["type"]) == ("permission_denied", "not_approved")
        for result in refused:
            assert result.error["type"] == "not_approved"
            assert "needs a person's approval, and this client can't ask" in result.text
            assert "use a client that supports elicitation" in result.error["hint"]
        assert len(agent.history()) == 1
    assert ((root / "new").read_text(), (root / "file").read_text()) == ("text\n", "text\n")


def test_required_approval_asks_where_the_client_can(root: Path) -> None:
    person = Person(ElicitResult(action="accept", content={"approve": True}))
    with connected(root, options=["--approve=required"], person=person) as agent:
        agent.done("write_file", path="file", content="text\n")
        agent.done("Undo")
    assert len(person.questions) == 1
    assert not (root / "file").exists()


def test_approve_option_selects_the_tools_that_need_approval(root: Path) -> None:
    person = Person(ElicitResult(action="decline"))
    with connected(root, options=["--approve", "delete_file,move_file"], person=person) as agent:
        agent.done("write_file", path="file", content="text\n")
        tool = next(tool for tool in agent.tools() if tool.name == "delete_file")
        assert set(tool.input_schema["properties"]) == {"path", "mcp_conversation_id"}
        assert agent.call("delete_file", path="file").error["type"] == "not_approved"
        assert agent.call("delete_file", path="file", approval="yes").error["code"] == -32600
        agent.done("Undo")
    with connected(root, options=["--approve", ""], person=person) as agent:
        agent.done("write_file", path="file", content="text\n")
        agent.done("Undo")
    assert len(person.questions) == 1
    assert not (root / "file").exists()
