"""Only the window decides: a call without the window's ticket decides nothing, whoever makes it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcptools.model.failures import Failure
from mcptools.model.tickets import Shown, Tickets
from objstore import Status, Workspace
from tests.support.acp_listener import Listener
from tests.support.command_runner import cas
from tests.support.http_server import LegacyHttpSession, serving
from tests.support.mcp_agent import Agent, connected
from tests.support.raw_client import NEWER_VERSION_META, started, tool_call
from tests.support.windowed_agent import LINES, TICKET, allow_deciding, raw_call, ticket_of, windowed


@pytest.fixture
def agent(root: Path) -> Iterator[Agent]:
    """Yield an agent that has changed a file in two places, where the person may decide in the window."""
    with windowed(root) as agent:
        change(agent)
        allow_deciding(root)
        yield agent


def change(agent: Agent) -> None:
    path = str(agent.root / "a.txt")
    edits = [{"old_string": "2\n3\n", "new_string": "two\n3\n"}, {"old_string": "18\n", "new_string": "eighteen\n"}]
    agent.done("multi_edit_text_file", path=path, edits=edits)


def statuses(root: Path) -> list[Status]:
    with Workspace.open(root) as workspace:
        return [status for view in workspace.history.edits() for status in view.units[1:]]


def keys_of(result: dict[str, Any]) -> list[str]:
    content = result["structuredContent"]
    return [change["key"] for change in content.get("review", content)["changes"]]


def is_undecided(root: Path) -> bool:
    return set(statuses(root)) == {Status.PENDING} and (root / "a.txt").read_text().startswith("1\ntwo\n")


def assert_refused(result: dict[str, Any], root: Path) -> None:
    assert result["isError"]
    assert result["structuredContent"]["error"]["type"] == "not_approved"
    assert "nothing was decided" in result["content"][0]["text"]
    assert not ticket_of(result)
    assert is_undecided(root)


def test_the_ticket_of_the_window_decides_once(agent: Agent, root: Path) -> None:
    shown = raw_call(agent, "review_edits")
    first, second = keys_of(shown)
    done = raw_call(agent, "review_decide", ticket=ticket_of(shown), action="accept", keys=[first])
    assert done["structuredContent"]["taken"]["outcome"] == "decided"
    assert keys_of(done) == [second]
    done = raw_call(agent, "review_decide", ticket=ticket_of(done), action="reject", keys=[second], text="No need")
    assert statuses(root) == [Status.ACCEPTED, Status.REJECTED]
    assert (root / "a.txt").read_text() == LINES.replace("2\n", "two\n", 1)
    with Workspace.open(root) as workspace:
        decisions = workspace.history.decisions()
        assert [view.decision.who.partition(" (")[2] for view in decisions] == ["in the chat of test agent)"] * 2
        assert [(view.decision.via, view.decision.agent) for view in decisions] == [("chat", "")] * 2
        assert workspace.history.edit(1).reasons[2] == "No need"


@pytest.mark.parametrize("tool", ["review_page", "review_decide", "review_undo"])
def test_a_call_without_a_ticket_or_with_a_guessed_one_is_refused(agent: Agent, root: Path, tool: str) -> None:
    keys = keys_of(raw_call(agent, "review_edits"))
    given: dict[str, dict[str, Any]] = {
        "review_page": {},
        "review_decide": {"action": "accept", "keys": keys},
        "review_undo": {"number": 1},
    }
    for ticket in ("", "x", "0" * 43, "ü\n"):
        assert_refused(raw_call(agent, tool, ticket=ticket, **given[tool]), root)


def test_no_ticket_is_in_what_a_model_reads(agent: Agent) -> None:
    shown = raw_call(agent, "review_edits")
    after = raw_call(agent, "review_page", ticket=ticket_of(shown))
    for result in (shown, after):
        ticket = ticket_of(result)
        assert len(ticket) >= 43
        assert ticket not in json.dumps([result["content"], result["structuredContent"]])
        assert result["_meta"][TICKET] == ticket


def test_what_the_text_holds_is_no_ticket(agent: Agent, root: Path) -> None:
    shown = raw_call(agent, "review_edits")
    keys = keys_of(shown)
    words = {word for part in shown["content"] for word in part["text"].split()} | set(keys)
    for word in sorted(words)[:40]:
        assert_refused(raw_call(agent, "review_decide", ticket=word, action="accept", keys=keys), root)


def test_a_used_ticket_is_refused(agent: Agent, root: Path) -> None:
    shown = raw_call(agent, "review_edits")
    raw_call(agent, "review_page", ticket=ticket_of(shown))
    assert_refused(
        raw_call(agent, "review_decide", ticket=ticket_of(shown), action="accept", keys=keys_of(shown)), root
    )


def test_a_newer_review_replaces_the_ticket_of_the_one_before(agent: Agent, root: Path) -> None:
    shown = raw_call(agent, "review_edits")
    newer = raw_call(agent, "review_edits")
    assert_refused(
        raw_call(agent, "review_decide", ticket=ticket_of(shown), action="accept", keys=keys_of(shown)), root
    )
    assert not raw_call(agent, "review_page", ticket=ticket_of(newer)).get("isError")


def test_the_ticket_of_another_server_process_is_refused(agent: Agent, root: Path) -> None:
    shown = raw_call(agent, "review_edits")
    with windowed(root) as other:
        own = raw_call(other, "review_edits")
        assert_refused(
            raw_call(other, "review_decide", ticket=ticket_of(shown), action="accept", keys=keys_of(own)), root
        )
        assert_refused(
            raw_call(agent, "review_decide", ticket=ticket_of(own), action="accept", keys=keys_of(own)), root
        )


def test_the_ticket_is_good_only_for_what_was_shown_with_it(agent: Agent, root: Path) -> None:
    (root / "b.txt").write_text("b\n")
    shown = raw_call(agent, "review_edits", path=str(root / "b.txt"))
    assert keys_of(shown) == []
    keys = keys_of(raw_call(agent, "review_edits"))
    shown = raw_call(agent, "review_edits", path=str(root / "b.txt"))
    for wanted in (keys, keys[:1], ["00" * 16], []):
        done = raw_call(agent, "review_decide", ticket=ticket_of(shown), action="accept", keys=wanted)
        assert done["structuredContent"]["taken"]["outcome"] == "refused"
        assert is_undecided(root)
        shown = done


def test_a_request_with_a_ticket_in_its_own_meta_is_refused(agent: Agent, root: Path) -> None:
    shown = raw_call(agent, "review_edits")
    forged = {TICKET: ticket_of(shown), "io.modelcontextprotocol/ui": {"visibility": ["app"]}}
    assert_refused(raw_call(agent, "review_decide", forged, ticket="", action="accept", keys=keys_of(shown)), root)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_client_without_windows_gets_no_ticket_and_is_not_listed_the_tools(root: Path, mode: str) -> None:
    with connected(root, mode=mode, options=["--tools", "default,review_edits"]) as agent:
        change(agent)
        allow_deciding(root)
        assert [tool.name for tool in agent.tools() if tool.name.startswith("review")] == ["review_edits"]
        shown = raw_call(agent, "review_edits")
        assert not ticket_of(shown)
        assert not shown["structuredContent"]["decides"]
        keys = keys_of(shown)
        assert_refused(raw_call(agent, "review_decide", ticket="", action="accept", keys=keys), root)
        assert_refused(raw_call(agent, "review_decide", ticket="x", action="accept", keys=keys), root)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_model_that_is_listed_the_windows_tools_still_needs_the_ticket(root: Path, mode: str) -> None:
    with windowed(root, mode=mode) as agent:
        change(agent)
        allow_deciding(root)
        listed = {tool.name: tool.meta for tool in agent.tools() if tool.name.startswith("review")}
        assert list(listed) == ["review_edits", "review_page", "review_decide", "review_undo"]
        keys = keys_of(raw_call(agent, "review_edits"))
        assert_refused(raw_call(agent, "review_decide", ticket="please", action="accept", keys=keys), root)


def test_a_process_of_the_agents_own_decides_nothing_unless_the_person_has_allowed_it(root: Path) -> None:
    """Here the agent is client and window at once: it reads the ticket itself."""
    with windowed(root) as agent:
        change(agent)
        shown = raw_call(agent, "review_edits")
        assert not shown["structuredContent"]["decides"]
        assert "cas config set review.in_chat on" in shown["structuredContent"]["reason"]
        done = raw_call(agent, "review_decide", ticket=ticket_of(shown), action="accept", keys=keys_of(shown))
        assert done["structuredContent"]["taken"]["outcome"] == "refused"
        assert is_undecided(root)
        # Neither a file that the agent writes, nor a tool, turns the setting on.
        assert agent.call("write_file", path=str(root / ".cas" / "config.toml"), content="[review]\n").refused
        (root / ".cas" / "config.toml").write_text("[review]\nin_chat = true\n")
        done = raw_call(agent, "review_decide", ticket=ticket_of(done), action="accept", keys=keys_of(shown))
        assert done["structuredContent"]["taken"]["outcome"] == "refused"
        assert is_undecided(root)
        assert "review.in_chat" in cas("status", folder=root).text


def test_the_setting_is_asked_for_at_each_decision(agent: Agent, root: Path) -> None:
    shown = raw_call(agent, "review_edits")
    assert cas("config", "set", "review.in_chat", "off", folder=root).status == 0
    for action in ("accept", "reject", "comment"):
        shown = raw_call(
            agent, "review_decide", ticket=ticket_of(shown), action=action, keys=keys_of(shown), text="words"
        )
        assert shown["structuredContent"]["taken"]["outcome"] == "refused"
        assert is_undecided(root)
    with Workspace.open(root) as workspace:
        assert workspace.comments.all() == []


@pytest.mark.usefixtures("agent")
def test_a_server_that_only_reads_decides_nothing(root: Path) -> None:
    with windowed(root, options=["--read-only"]) as reader:
        listed = [tool.name for tool in reader.tools() if tool.name.startswith("review")]
        assert listed == ["review_edits", "review_page"]
        shown = raw_call(reader, "review_edits")
        assert not shown["structuredContent"]["decides"]
    assert is_undecided(root)


def test_a_valid_ticket_is_refused_in_a_request_of_a_client_without_windows(root: Path) -> None:
    """In the newest protocol version each request says what its client can do."""
    capabilities = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
    windows = {**NEWER_VERSION_META, "io.modelcontextprotocol/clientCapabilities": capabilities}
    with started(root, greets=False) as client:

        def call(meta: dict[str, Any], tool: str, **arguments: object) -> dict[str, Any]:
            message = tool_call(tool, tool, **arguments)
            client.send({**message, "params": {**message["params"], "_meta": meta}})
            result: dict[str, Any] = client.answer(tool)["result"]
            return result

        edits = [{"old_string": "1\n2\n", "new_string": "1\ntwo\n"}]
        call(NEWER_VERSION_META, "multi_edit_text_file", path=str(root / "a.txt"), edits=edits)
        allow_deciding(root)
        shown = call(windows, "review_edits")
        decision = {"ticket": ticket_of(shown), "action": "accept", "keys": keys_of(shown)}
        assert_refused(call(NEWER_VERSION_META, "review_decide", **decision), root)
        done = call(windows, "review_decide", **decision)
        assert done["structuredContent"]["taken"]["outcome"] == "decided"


def over_http(root: Path, *options: str) -> list[dict[str, Any]]:
    """Change a file over HTTP, and let two sessions of clients with windows ask for it to be accepted.

    Return the results: of the review, of the second session with the first one's ticket, and of the first session.
    """
    windows = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
    with serving(root, *options) as server, server.talk(windows) as one, server.talk(windows) as two:

        def call(session: LegacyHttpSession, tool: str, **arguments: object) -> dict[str, Any]:
            return session.ask("tools/call", {"name": tool, "arguments": arguments}, {})[0]

        edits = [{"old_string": "1\n2\n", "new_string": "1\ntwo\n"}]
        assert not call(one, "multi_edit_text_file", path=str(root / "a.txt"), edits=edits)["isError"]
        allow_deciding(root)
        shown = call(one, "review_edits")
        decision = {"ticket": ticket_of(shown), "action": "accept", "keys": keys_of(shown)}
        foreign = call(two, "review_decide", **decision)
        assert_refused(foreign, root)
        return [shown, foreign, call(one, "review_decide", **decision)]


def test_a_ticket_is_good_in_its_own_session_only(root: Path) -> None:
    _, _, done = over_http(root)
    assert done["structuredContent"]["taken"]["outcome"] == "decided"
    assert statuses(root) == [Status.ACCEPTED]


def test_no_window_of_a_server_without_a_token_can_decide(root: Path) -> None:
    """Every program of this machine can be its client."""
    shown, _, done = over_http(root, "--no-token")
    assert not shown["structuredContent"]["decides"]
    assert done["structuredContent"]["taken"]["outcome"] == "refused"
    assert is_undecided(root)


def test_no_ticket_is_in_the_notifications_of_an_agents_calls(root: Path) -> None:
    listener = Listener()
    options = ["--tools", "default", "--acp-events", "contract"]
    with windowed(root, options=options, others=[listener]) as agent:
        change(agent)
        shown = raw_call(agent, "review_edits")
        tickets = [ticket_of(shown)]
        for _ in range(2):
            shown = raw_call(agent, "review_page", ticket=tickets[-1])
            tickets.append(ticket_of(shown))
        agent.tools()  # is answered after the notifications were read
    assert len(listener.updates) == 4  # of the two calls of the agent
    sent = json.dumps([each.update for each in listener.updates])
    assert not [ticket for ticket in tickets if not ticket or ticket in sent]


def test_an_arguments_error_uses_up_no_ticket(agent: Agent, root: Path) -> None:
    shown = raw_call(agent, "review_edits")
    ticket, keys = ticket_of(shown), keys_of(shown)
    for wrong in ({"action": "approve"}, {"action": "comment", "text": " "}, {"action": "accept", "force": True}):
        assert raw_call(agent, "review_decide", ticket=ticket, keys=keys, **wrong)["isError"]
        assert is_undecided(root)
    done = raw_call(agent, "review_decide", ticket=ticket, action="comment", keys=keys[:1], text="Why?")
    assert done["structuredContent"]["taken"]["outcome"] == "commented"


def test_only_decisions_of_the_window_can_be_taken_back_in_it(agent: Agent, root: Path) -> None:
    assert cas("accept", "1:1", folder=root).status == 0
    shown = raw_call(agent, "review_edits")
    done = raw_call(agent, "review_undo", ticket=ticket_of(shown), number=1)
    assert done["structuredContent"]["taken"]["outcome"] == "refused"
    assert statuses(root) == [Status.ACCEPTED, Status.PENDING]
    done = raw_call(agent, "review_decide", ticket=ticket_of(done), action="reject", keys=keys_of(done))
    assert done["structuredContent"]["decisions"] == [2]
    done = raw_call(agent, "review_undo", ticket=ticket_of(done), number=2)
    assert done["structuredContent"]["taken"]["outcome"] == "decided"
    assert done["structuredContent"]["decisions"] == []
    assert statuses(root) == [Status.ACCEPTED, Status.PENDING]


def test_a_ticket_is_used_up_before_the_next_one_is_made() -> None:
    """Otherwise two calls at the same time could decide with it."""
    tickets = Tickets()
    ticket = tickets.issue(Shown(root="/w", path="", turn=1))
    tickets.redeem(ticket)
    with pytest.raises(Failure, match="its ticket is not valid"):
        tickets.redeem(ticket)


def test_a_ticket_expires_after_half_a_day() -> None:
    now = [0.0]
    tickets = Tickets(lambda: now[0])
    shown = Shown(root="/w", path="", turn=1)
    ticket = tickets.issue(shown)
    now[0] = 12 * 3600.0 - 1
    assert tickets.redeem(ticket) == shown
    ticket = tickets.issue(shown)
    now[0] += 12 * 3600.0
    with pytest.raises(Failure, match="more than 12 hours ago"):
        tickets.redeem(ticket)


def test_tickets_are_random_and_long() -> None:
    made = {Tickets().issue(Shown(root="/w", path="", turn=0)) for _ in range(1000)}
    assert len(made) == 1000
    assert min(map(len, made)) >= 43  # 256 bits, 6 in each character
