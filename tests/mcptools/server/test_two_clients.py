"""Two clients of one name and version share no session, over both transports and in both versions of the protocol.

Over HTTP without sessions, a client's address is its identity. A client without an identity has no session.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID

from mcptools.files.workspaces import Directories
from mcptools.model.failures import Failure
from mcptools.model.limits import ServerLimits
from mcptools.server.clients import Clients
from mcptools.server.request_client import Identity
from objstore import Seq, SessionView, Unit, Workspace
from tests.support.direct_tools import Tools
from tests.support.http_server import HttpServer, serving
from tests.support.mcp_agent import Agent, Result, connected
from tests.support.windowed_agent import allow_deciding, raw_call, ticket_of

ERAS = ("legacy", "2026-07-28")
WAYS = [(transport, era) for transport in ("stdio", "http") for era in ERAS]
NOTHING = "No edits have been applied to any file with this session."
COLLIDED = "Another agent has changed files that you have changed too"


@contextmanager
def two_clients(root: Path, transport: str, era: str, *options: str) -> Iterator[tuple[Agent, Agent]]:
    """Connect two clients of one name and version; over HTTP, to one server."""
    with ExitStack() as stack:
        if transport == "stdio":
            agents = [stack.enter_context(connected(root, mode=era, options=options)) for _ in range(2)]
        else:
            served = stack.enter_context(serving(root, *options))
            agents = [stack.enter_context(served.agent(mode=era, name="twin", at=at)) for at in ("one", "other")]
        one, other = agents
        yield one, other


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "workspace"
    folder.mkdir()
    (folder / "f").write_text("v1\n")
    return folder


@pytest.fixture(params=WAYS, ids="-".join)
def agents(root: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Agent, Agent]]:
    with two_clients(root, *request.param) as agents:
        yield agents


@pytest.fixture
def nameless(root: Path) -> Iterator[tuple[Agent, Agent]]:
    """Yield two clients of the version without sessions that share the server's own address."""
    with serving(root) as served, unnamed(served) as one, unnamed(served) as other:
        yield one, other


def unnamed(served: HttpServer) -> AbstractContextManager[Agent]:
    return served.agent(mode=ERAS[1], name="twin", at="")


def edit(agent: Agent, old: str, new: str, **arguments: object) -> Result:
    path = str(agent.root / "f")
    return agent.call("multi_edit_text_file", path=path, edits=[{"old_string": old, "new_string": new}], **arguments)


def sessions(root: Path) -> list[SessionView]:
    with Workspace.open(root) as workspace:
        return workspace.sessions.sessions()


# ---- clients with a session


def test_undo_takes_back_nothing_of_another_client(agents: tuple[Agent, Agent], root: Path) -> None:
    one, other = agents
    one.done("write_file", path="new", content="one\n")
    assert other.call("Undo").texts == [NOTHING]
    assert (root / "new").read_text() == "one\n"
    one.done("Undo")
    assert not (root / "new").exists()


def test_each_client_undoes_its_own_change(agents: tuple[Agent, Agent], root: Path) -> None:
    for number, agent in enumerate(agents):
        agent.done("write_file", path=f"new {number}", content="x\n")
    for number, agent in enumerate(agents):
        agent.done("Undo")
        assert not (root / f"new {number}").exists()


def test_reading_of_another_client_does_not_make_a_file_fresh(agents: tuple[Agent, Agent], root: Path) -> None:
    one, other = agents
    other.done("read_file", path="f")
    (root / "f").write_text("v2 of the person\n")
    one.done("read_file", path="f")
    for tool, arguments in (("write_file", {"content": "from v1\n"}), ("delete_file", {})):
        assert other.call(tool, path="f", **arguments).error["type"] == "stale_file"
    assert (root / "f").read_text() == "v2 of the person\n"
    one.done("write_file", path="f", content="from v2\n")


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_required_read_is_each_clients_own(root: Path, way: tuple[str, str]) -> None:
    with two_clients(root, *way, "--require-read") as (one, other):
        one.done("read_file", path="f")
        assert edit(other, "v1", "other").error["type"] == "stale_file"
        assert not edit(one, "v1", "one").refused
        other.done("read_file", path="f")
        assert not edit(other, "one", "other").refused


def test_file_must_be_read_again_by_the_client_that_undid(agents: tuple[Agent, Agent]) -> None:
    one, other = agents
    assert not edit(one, "v1", "v2").refused
    one.done("Undo")
    other.done("read_file", path="f")
    assert edit(one, "v1", "v3").error["type"] == "stale_file"
    assert not edit(other, "v1", "v4").refused


def test_rebased_edit_applies_to_what_its_own_client_read(agents: tuple[Agent, Agent], root: Path) -> None:
    one, other = agents
    (root / "f").write_text("a\nb\nsame\n")
    other.done("read_file", path="f")
    (root / "f").write_text("same\nb\nsame\n")
    one.done("read_file", path="f")
    done = edit(other, "same", "changed", rebase=True)
    assert not done.refused, done.texts
    assert (root / "f").read_text() == "same\nb\nchanged\n"
    assert edit(one, "same\nb\nsame", "x", rebase=True).error["type"] == "rebase_conflict"


def test_each_client_gets_a_note_of_the_others_change_once(agents: tuple[Agent, Agent]) -> None:
    one, other = agents
    (one.root / "f").write_text("1\n2\n3\n")
    assert COLLIDED not in edit(one, "1", "one").notes
    assert COLLIDED in edit(other, "3", "three").notes
    for agent, notes in ((one, 1), (other, 0), (one, 0)):
        assert agent.done("list_directory", path=".").notes.count(COLLIDED) == notes


def test_comments_are_noted_as_sent_to_the_client_that_listed_them(agents: tuple[Agent, Agent], root: Path) -> None:
    one, other = agents
    theirs = other.done("write_file", path="theirs", content="x\n").structured["mcp_conversation_id"]
    one.done("write_file", path="mine", content="x\n")
    with Workspace.open(root) as workspace:
        view = workspace.comments.add_to_units([Unit(Seq(1), 0)], "Why?")
    other.done("list_edits")
    with Workspace.open(root) as workspace:
        assert workspace.comments.get(view.number).sent_to == theirs


def test_each_client_is_a_session_of_the_history(agents: tuple[Agent, Agent], root: Path) -> None:
    one, other = agents
    one.done("write_file", path="a", content="x\n", mcp_conversation_id="shared")
    other.done("write_file", path="b", content="x\n", mcp_conversation_id="shared")
    with Workspace.open(root) as workspace:
        turns = [turn for turn in workspace.sessions.turns() if turn.conversation == "shared"]
    assert len({turn.session for turn in turns}) == len(turns) == 2


@pytest.mark.parametrize("era", ERAS)
def test_ticket_of_one_clients_window_decides_nothing_for_another(root: Path, era: str) -> None:
    windows = [advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})]
    with serving(root) as served, ExitStack() as stack:
        one, other, unnamed = (
            stack.enter_context(served.agent(mode=era, name="twin", at=at, extensions=windows))
            for at in ("one", "other", "")
        )
        assert not edit(one, "v1", "v2").refused
        allow_deciding(root)
        shown = raw_call(one, "review_edits")
        raw_call(other, "review_edits")
        if era == ERAS[1]:
            nothing = raw_call(unnamed, "review_edits")
            assert not ticket_of(nothing)
            assert "no address of its own" in nothing["structuredContent"]["reason"]
        keys = [change["key"] for change in shown["structuredContent"]["changes"]]
        decide: dict[str, Any] = {"ticket": ticket_of(shown), "action": "accept", "keys": keys}
        for agent in (other, unnamed):
            assert raw_call(agent, "review_decide", **decide)["structuredContent"]["error"]["type"] == "not_approved"
        done = raw_call(one, "review_decide", **decide)
        assert done["structuredContent"]["taken"]["outcome"] == "decided"


# ---- the address as identity


def test_client_that_connects_again_continues_its_session(root: Path) -> None:
    with serving(root) as served:
        with served.agent(mode=ERAS[1], name="twin", at="one") as agent:
            agent.done("write_file", path="new", content="x\n")
        with served.agent(mode=ERAS[1], name="twin", at="one") as agent:
            agent.done("Undo")
    assert not (root / "new").exists()
    assert len(sessions(root)) == 1


def test_programs_at_one_address_are_distinguished_by_their_names(root: Path) -> None:
    with serving(root) as served:
        with served.agent(mode=ERAS[1], name="one", at="shared") as agent:
            agent.done("write_file", path="new", content="x\n")
        with served.agent(mode=ERAS[1], name="other", at="shared") as agent:
            assert agent.call("Undo").texts == [NOTHING]


def test_file_read_before_a_restart_of_the_server_must_be_read_again(root: Path) -> None:
    with serving(root) as served, served.agent(mode=ERAS[1], at="one") as agent:
        agent.done("read_file", path="f")
        agent.done("write_file", path="new", content="1\n")
    (root / "f").write_text("v2 of the person\n" * 3)
    with serving(root) as served, served.agent(mode=ERAS[1], at="one") as agent:
        for tool, arguments in (("write_file", {"content": "from v1\n"}), ("delete_file", {})):
            assert agent.call(tool, path="f", **arguments).error["type"] == "stale_file"
        agent.done("read_file", path="f", limit=1)
        assert agent.call("write_file", path="f", content="from v1\n").error["type"] == "stale_file"
        agent.done("read_file", path="f")
        agent.done("write_file", path="f", content="from v2\n")
        assert agent.call("write_file", path="new", content="2\n").error["type"] == "stale_file"
        assert not agent.call("move_file", source="new", destination="moved").refused


def test_client_that_the_server_forgot_must_read_its_files_again(root: Path) -> None:
    clients, directories = Clients(require_read=False, most=1), Directories([str(root)])

    def tools(name: str, *, is_beginning: bool) -> Tools:
        clients.note_request(Identity(key=name, is_beginning=is_beginning))
        return Tools(directories, clients.current().session, ServerLimits())

    tools("one", is_beginning=True).read_file("f")
    tools("other", is_beginning=True).read_file("f")
    with pytest.raises(Failure, match="must be read"):
        tools("one", is_beginning=False).write_file("f", "from v1\n")
    tools("one", is_beginning=False).read_file("f")
    tools("one", is_beginning=False).write_file("f", "from v1\n")
    directories.close()


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("a", 200),
        ("a" * 128, 200),
        ("Claude_Code-1.~", 200),
        ("%61", 200),
        ("", 200),
        ("a" * 129, 404),
        ("a" * 9_000, 404),
        ("..", 404),
        (".a", 404),
        ("a/b", 404),
        ("a/", 404),
        ("/a", 404),
        ("%00", 404),
        ("%0A", 404),
        ("a%0A", 404),
        ("a%2Fb", 404),
        ("%C3%A4", 404),
        ("%FF", 404),
        ("a%20b", 404),
        ("{client}", 404),
    ],
)
def test_names_in_addresses_are_short_and_plain(served: HttpServer, name: str, status: int) -> None:
    assert served.ask(path=f"/mcp{'/' if name else ''}{name}") == status


def test_name_in_an_address_is_no_token(served: HttpServer) -> None:
    assert served.ask(path="/mcp/one", Authorization="") == 401
    assert served.ask(path="/mcp/one", Host="elsewhere") == 421


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with serving(tmp_path_factory.mktemp("served").resolve()) as served:
        yield served


def test_name_in_an_address_is_recorded_nowhere(root: Path) -> None:
    name = "4f1c-a-name-that-nothing-else-has"
    with serving(root) as served, served.agent(mode=ERAS[1], at=name) as agent:
        results = [agent.done("write_file", path="new", content="x\n"), agent.call("delete_file", path="f")]
        results += [agent.done("list_edits"), agent.done("Undo"), agent.call("Undo")]
        assert not any(name in str((result.structured, result.texts)) for result in results)
    assert not any(name.encode() in path.read_bytes() for path in root.rglob("*") if path.is_file())


# ---- clients without an identity


def test_undo_says_that_a_client_without_an_identity_has_no_session(nameless: tuple[Agent, Agent], root: Path) -> None:
    one, other = nameless
    one.done("write_file", path="new", content="one\n")
    for agent in (one, other):
        message, hint = agent.call("Undo").texts
        assert message == NOTHING
        assert hint.startswith("This client has no session")
        assert "/mcp/NAME" in hint
    assert (root / "new").read_text() == "one\n"


def test_nothing_counts_as_read_without_an_identity(nameless: tuple[Agent, Agent], root: Path) -> None:
    one, other = nameless
    other.done("read_file", path="f")
    (root / "f").write_text("v2 of the person\n")
    one.done("read_file", path="f")
    for agent in (one, other):
        for tool, arguments in (("write_file", {"content": "from v1\n"}), ("delete_file", {})):
            refused = agent.call(tool, path="f", **arguments)
            assert refused.error["type"] == "stale_file"
            assert "no session" in refused.texts[1]
    assert (root / "f").read_text() == "v2 of the person\n"
    assert not edit(other, "v2", "v3").refused  # it has its own context
    assert not one.call("write_file", path="new", content="x\n").refused


def test_required_read_refuses_every_change_without_an_identity(root: Path) -> None:
    with serving(root, "--require-read") as served, unnamed(served) as agent:
        agent.done("read_file", path="f")
        for refused in (
            edit(agent, "v1", "v2"),
            edit(agent, "v1", "v2", rebase=True),
            agent.call("move_file", source="f", destination="g"),
            agent.call("edit_file_diff", path="f", diff="--- f\n+++ f\n@@ -1 +1 @@\n-v1\n+v2\n", dry_run=True),
        ):
            assert refused.error["type"] == "stale_file"
            assert "no session" in refused.texts[1]
    assert (root / "f").read_text() == "v1\n"


def test_conversation_is_a_turn_and_a_session_without_an_identity(nameless: tuple[Agent, Agent], root: Path) -> None:
    one, other = nameless
    (root / "f").write_text("1\n2\n3\n")
    first = edit(one, "1", "one").structured["mcp_conversation_id"]
    second = edit(other, "3", "three")
    assert COLLIDED in second.notes
    assert COLLIDED in edit(one, "2", "two", mcp_conversation_id=first).notes
    assert COLLIDED not in edit(one, "two", "too", mcp_conversation_id=first).notes
    with Workspace.open(root) as workspace:
        turns = [(turn.session, turn.conversation, turn.seqs) for turn in workspace.sessions.turns()]
    assert turns == [(1, first, (1, 3, 4)), (2, second.structured["mcp_conversation_id"], (2,))]


def test_comment_stays_open_if_it_cannot_be_known_who_got_it(nameless: tuple[Agent, Agent], root: Path) -> None:
    one, _ = nameless
    one.done("write_file", path="new", content="x\n")
    with Workspace.open(root) as workspace:
        number = workspace.comments.add_to_units([Unit(Seq(1), 0)], "Why?").number
    for _ in range(2):
        assert [each["comment"] for each in one.done("list_edits").structured["comments"]] == [number]
    with Workspace.open(root) as workspace:
        assert workspace.comments.get(number).word == "open"
