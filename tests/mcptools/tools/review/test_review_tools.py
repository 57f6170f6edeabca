"""`review_edits` shows the net changes that await a person, and its window reports what becomes of each decision."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcptools.catalog.descriptions import REVIEW_TOOLS_FILE, encode_descriptions, load_descriptions
from mcptools.catalog.tool_list import REVIEW_TOOLS, SETS, TOOLS
from mcptools.server.write_descriptions import describe_tools
from objstore import Workspace
from tests.support.command_runner import cas
from tests.support.mcp_agent import REPOSITORY, Agent, connected
from tests.support.windowed_agent import allow_deciding, raw_call, ticket_of, windowed

BY_NAME = (
    "Only a person decides: with `cas web` or `cas review`, or by the names in brackets, as in `cas accept 1:1` and "
    "`cas reject 1:1`."
)
ON_DISK = (
    "Refused, nothing was changed: a.txt changed outside since the last recorded state. "
    "`cas review` in a terminal asks whether to keep or to drop that."
)
LINES = "".join(f"{number}\n" for number in range(1, 21))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text(LINES)
    return root


@pytest.fixture
def agent(root: Path) -> Iterator[Agent]:
    with windowed(root) as agent:
        yield agent


def edit(agent: Agent, name: str, old: str, new: str, turn: str = "") -> str:
    """Replace a text in a file; return the conversation of the turn."""
    edits = [{"old_string": old, "new_string": new}]
    path = str(agent.root / name)
    done = agent.done("multi_edit_text_file", path=path, edits=edits, mcp_conversation_id=turn)
    conversation = done.structured["mcp_conversation_id"]
    assert isinstance(conversation, str)
    return conversation


def paths(result: dict[str, Any]) -> list[str]:
    content = result["structuredContent"]
    return [Path(change["file_path"]).name for change in content.get("review", content)["changes"]]


def decided(agent: Agent, shown: dict[str, Any], action: str, at: int = 0, text: str = "") -> dict[str, Any]:
    """Decide on the change at a position of what is shown; return what the window gets."""
    content = shown["structuredContent"]
    keys = [content.get("review", content)["changes"][at]["key"]]
    return raw_call(agent, "review_decide", ticket=ticket_of(shown), action=action, keys=keys, text=text)


def comments_of(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [said for change in result["structuredContent"]["review"]["changes"] for said in change["comments"]]


def taken(result: dict[str, Any]) -> tuple[str, str]:
    taken = result["structuredContent"]["taken"]
    return taken["outcome"], taken["message"]


# ---- what is shown


def test_the_text_has_every_change_with_the_names_of_its_hunks(agent: Agent, root: Path) -> None:
    turn = edit(agent, "a.txt", "2\n3\n", "two\n3\n")
    edit(agent, "a.txt", "18\n", "", turn)
    agent.done("write_file", path=str(root / "b.txt"), content="new", mcp_conversation_id=turn)
    text, *_ = agent.done("review_edits").texts
    assert text == "\n".join(
        [
            "3 changes await review of turn 1 by test agent.",
            "",
            f"@@ {root / 'a.txt'}:2 [1:1]",
            " 1",
            "-2",
            "+two",
            " 3",
            " 4",
            " 5",
            "",
            f"@@ {root / 'a.txt'}:18 [2:1]",
            " 15",
            " 16",
            " 17",
            "-18",
            " 19",
            " 20",
            "",
            f"@@ {root / 'b.txt'}:1 new file, 3 bytes [3:0]",
            "+new",
            "\\ No newline at end of file",
            "",
            BY_NAME,
        ]
    )
    assert cas("reject", "2:1", folder=root).status == 0
    assert (root / "a.txt").read_text() == LINES.replace("2\n", "two\n", 1)


def test_the_newest_turn_is_shown_unless_a_turn_or_a_path_is_given(agent: Agent, root: Path) -> None:
    first = edit(agent, "a.txt", "2\n3\n", "two\n3\n")
    agent.done("write_file", path=str(root / "b.txt"), content="b\n", mcp_conversation_id=first)
    (root / "sub").mkdir()
    agent.done("write_file", path=str(root / "sub" / "c.txt"), content="c\n")
    assert paths(raw_call(agent, "review_edits")) == ["c.txt"]
    assert paths(raw_call(agent, "review_edits", turn=1)) == ["a.txt", "b.txt"]
    assert paths(raw_call(agent, "review_edits", path=str(root))) == ["a.txt", "b.txt", "c.txt"]
    assert paths(raw_call(agent, "review_edits", path=str(root / "sub"))) == ["c.txt"]
    assert paths(raw_call(agent, "review_edits", path=str(root / "sub"), turn=1)) == []
    assert cas("accept", "--turn", "2", folder=root).status == 0
    assert paths(raw_call(agent, "review_edits")) == ["a.txt", "b.txt"]
    assert "No turn has the number 9 here" in agent.call("review_edits", turn=9).text


def test_a_directory_without_a_history_has_nothing_to_review(agent: Agent, root: Path) -> None:
    assert agent.done("review_edits").texts == ["Nothing awaits review."]
    assert not (root / ".cas").exists()


def test_facts_about_files_are_said_in_words(agent: Agent, root: Path) -> None:
    (root / "old.txt").write_text("x\n")
    (root / "gone.txt").write_text("y\n")
    (root / "data.bin").write_bytes(b"\0\1")
    turn = agent.done("move_file", source=str(root / "old.txt"), destination=str(root / "n.txt")).structured
    for name in ("gone.txt", "data.bin"):
        agent.done("delete_file", path=str(root / name), mcp_conversation_id=turn["mcp_conversation_id"])
    shown = raw_call(agent, "review_edits")["structuredContent"]["changes"]
    assert {Path(change["file_path"]).name: change["words"] for change in shown} == {
        "data.bin": "file of 2 bytes deleted",
        "gone.txt": "file of 2 bytes deleted",
        "n.txt": "moved from old.txt",
    }


def test_long_reviews_come_in_pages_and_a_ticket_is_good_for_its_page(agent: Agent, root: Path) -> None:
    allow = [f"{number:03}.txt" for number in range(12)]
    turn = ""
    for name in allow:
        done = agent.done("write_file", path=str(root / name), content="word " * 2000 + "\n", mcp_conversation_id=turn)
        turn = done.structured["mcp_conversation_id"]
    allow_deciding(root)
    first = raw_call(agent, "review_edits")
    review = first["structuredContent"]
    assert review["total"] == 12
    assert 0 < review["next_offset"] == len(review["changes"]) < 12
    assert f"Go on with offset={review['next_offset']}." in first["content"][-1]["text"]
    assert len(first["content"][0]["text"]) <= 80_000
    second = raw_call(agent, "review_page", ticket=ticket_of(first), offset=review["next_offset"])
    assert paths(first) + paths(second) == allow
    stale = raw_call(
        agent, "review_decide", ticket=ticket_of(second), action="accept", keys=[review["changes"][0]["key"]]
    )
    assert taken(stale)[0] == "refused"
    beyond = raw_call(agent, "review_page", ticket=ticket_of(stale), offset=99)
    assert paths(beyond) == paths(first)


def test_a_change_that_is_too_long_to_be_shown_whole_is_not_decided_in_the_window(agent: Agent, root: Path) -> None:
    agent.done("write_file", path=str(root / "long.txt"), content="0123456789\n" * 9000)
    allow_deciding(root)
    shown = raw_call(agent, "review_edits")
    (change,) = shown["structuredContent"]["changes"]
    assert change["cut"]
    assert len(shown["content"][0]["text"]) <= 80_000
    assert taken(decided(agent, shown, "accept"))[0] == "refused"


def test_only_what_the_clients_roots_allow_is_shown(root: Path, tmp_path: Path) -> None:
    (root / "in").mkdir()
    (root / "in" / "b.txt").write_text("b\n")
    roots = [root.as_uri()]
    with connected(root, options=["--tools", "default,review_edits"], client_roots=lambda: roots) as agent:
        turn = edit(agent, "a.txt", "2\n3\n", "two\n3\n")
        edit(agent, "in/b.txt", "b\n", "B\n", turn)
        assert paths(raw_call(agent, "review_edits")) == ["a.txt", "b.txt"]
        roots[:] = [(root / "in").as_uri()]
        assert paths(raw_call(agent, "review_edits", path=str(root / "in"), turn=1)) == ["b.txt"]
        assert agent.call("review_edits", path=str(root / "a.txt")).refused
        roots[:] = [(tmp_path / "elsewhere").as_uri()]
        assert agent.call("review_edits").refused


def test_a_window_is_not_asked_for_roots(root: Path) -> None:
    """It could not answer: in the stateless protocol, the question comes as a result."""
    asked: list[None] = []

    def roots() -> list[str]:
        asked.append(None)
        return [root.as_uri()]

    with windowed(root, mode="2026-07-28", client_roots=roots) as agent:
        edit(agent, "a.txt", "2\n3\n", "two\n3\n")
        allow_deciding(root)
        shown = raw_call(agent, "review_edits")
        before = len(asked)
        assert before
        assert taken(decided(agent, shown, "accept"))[0] == "decided"
        assert len(asked) == before


# ---- what becomes of a decision


def test_the_check_of_the_settings_runs_before_a_decision(root: Path, tmp_path: Path) -> None:
    own = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    with windowed(root, environment=own) as agent:
        edit(agent, "a.txt", "2\n3\n", "two\n3\n")
        allow_deciding(root)
        check = "cat a.txt | head -2 | tail -1; test -e ../passes"
        assert cas("config", "set", "review.check", check, folder=root, settings=own).status == 0
        done = decided(agent, raw_call(agent, "review_edits"), "reject", text="no")
        outcome, said = taken(done)
        assert outcome == "failed"
        assert said == f"Nothing was decided: `{check}` failed with status 1 on a copy of what this would leave.\n2"
        assert (root / "a.txt").read_text() != LINES
        assert cas("config", "set", "review.check", "echo passed", folder=root, settings=own).status == 0
        assert taken(decided(agent, done, "reject", text="no"))[0] == "decided"
        assert (root / "a.txt").read_text() == LINES
        (listed,) = agent.done("list_edits", path=str(root / "a.txt")).structured["edits"]
        passed = "Checked with `echo passed`, which succeeded"
        failed = f"A check failed with this: `{check}` failed with status 1, and printed in the end:\n  2"
        assert listed["reason"] == f"no ({passed}. {failed})"


def test_a_change_that_was_edited_meanwhile_is_overtaken(agent: Agent, root: Path) -> None:
    turn = edit(agent, "a.txt", "2\n3\n", "two\n3\n")
    allow_deciding(root)
    shown = raw_call(agent, "review_edits")
    edit(agent, "a.txt", "two\n", "zwei\n", turn)
    done = decided(agent, shown, "accept")
    assert taken(done)[0] == "overtaken"
    (change,) = done["structuredContent"]["review"]["changes"]
    assert change["inserted"] == "zwei\n"
    assert taken(decided(agent, done, "accept"))[0] == "decided"


def test_a_change_that_was_decided_elsewhere_is_overtaken(agent: Agent, root: Path) -> None:
    edit(agent, "a.txt", "2\n3\n", "two\n3\n")
    allow_deciding(root)
    shown = raw_call(agent, "review_edits")
    assert cas("reject", "1", folder=root).status == 0
    done = decided(agent, shown, "accept")
    assert taken(done)[0] == "overtaken"
    assert (root / "a.txt").read_text() == LINES


def test_changes_of_one_hunk_are_decided_together(agent: Agent, root: Path) -> None:
    turn = edit(agent, "a.txt", "2\n3\n4\n", "two\n3!\nfour\n")
    edit(agent, "a.txt", "3!\n", "3\n", turn)
    allow_deciding(root)
    shown = raw_call(agent, "review_edits")
    first, second = shown["structuredContent"]["changes"]
    for change, other in ((first, second), (second, first)):
        assert change["shares_with"] == [{"key": other["key"], "new_start": other["new_start"]}]
    assert f":2 [{' '.join(first['hunks'])}] decided with line 4\n" in shown["content"][0]["text"]
    done = decided(agent, shown, "reject")
    assert taken(done)[0] == "decided"
    assert done["structuredContent"]["review"]["total"] == 0
    assert (root / "a.txt").read_text() == LINES


def test_accepted_edits_that_a_rejection_takes_out_are_counted_before(agent: Agent, root: Path, tmp_path: Path) -> None:
    edit(agent, "a.txt", "2\n3\n", "two\n3\n")
    allow_deciding(root)
    new = tmp_path / "new"
    new.write_text(LINES.replace("2\n", "zwei\n", 1))
    assert cas("amend", "1", "--from", str(new), folder=root).status == 0
    shown = raw_call(agent, "review_edits")
    asked = decided(agent, shown, "reject", text="no")
    assert taken(asked) == (
        "confirm",
        "This rejects 2 edits, 1 of them accepted: edit 2. Nothing was decided yet: reject it once more to go ahead.",
    )
    assert (root / "a.txt").read_text() == new.read_text()
    # What was asked holds for the next call alone, and for the same edits.
    looked = raw_call(agent, "review_page", ticket=ticket_of(asked))
    again = decided(agent, looked, "reject", text="no")
    assert taken(again)[0] == "confirm"
    outcome, said = taken(decided(agent, again, "reject", text="no"))
    done = "Rejected edits 1 2, of a.txt. 2 edits, 1 of them accepted: edit 2. Rewrote a.txt."
    assert (outcome, said) == ("decided", done)
    assert (root / "a.txt").read_text() == LINES


def test_what_goes_along_is_asked_about_with_what_is_accepted_of_it(agent: Agent, root: Path, tmp_path: Path) -> None:
    edit(agent, "a.txt", "2\n3\n", "two\n3\n")
    allow_deciding(root)
    lines = LINES.splitlines(keepends=True)
    new = tmp_path / "new"
    new.write_text("".join([lines[0], "zwei\n", *lines[2:-1], "last\n"]))
    assert cas("amend", "1", "--from", str(new), folder=root).status == 0
    asked = decided(agent, raw_call(agent, "review_edits"), "reject")
    outcome, said = taken(asked)
    assert outcome == "confirm"
    assert said.startswith("This rejects 2 edits, 1 of them accepted: edit 2. Would also reject 2:2,")
    assert (root / "a.txt").read_text() == new.read_text()
    assert taken(decided(agent, asked, "reject"))[0] == "decided"
    assert (root / "a.txt").read_text() == LINES


def test_a_conflict_names_what_depends_on_the_change(agent: Agent, root: Path) -> None:
    moved = agent.done("move_file", source=str(root / "a.txt"), destination=str(root / "b.txt")).structured
    turn = moved["mcp_conversation_id"]
    agent.done("write_file", path=str(root / "a.txt"), content="another\n", mcp_conversation_id=turn)
    allow_deciding(root)
    shown = raw_call(agent, "review_edits")
    at = [change["words"] for change in shown["structuredContent"]["changes"]].index("moved from a.txt")
    outcome, message = taken(decided(agent, shown, "reject", at))
    assert outcome == "conflict"
    assert message.startswith("Refused, nothing was changed: 1 conflict. ")
    assert message.endswith("Reject 2:0 first.")
    assert (root / "a.txt").read_text() == "another\n"


def test_a_file_that_was_changed_on_disk_stops_the_decision(agent: Agent, root: Path) -> None:
    edit(agent, "a.txt", "2\n3\n", "two\n3\n")
    allow_deciding(root)
    shown = raw_call(agent, "review_edits")
    mine = LINES.replace("2\n", "two\n", 1) + "mine\n"
    (root / "a.txt").write_text(mine)
    done = decided(agent, shown, "reject")
    assert taken(done) == ("external-changes", ON_DISK)
    assert (root / "a.txt").read_text() == mine
    assert "not recorded" in done["structuredContent"]["review"]["remarks"][0]


def test_a_comment_reaches_the_agent_and_the_window(agent: Agent, root: Path) -> None:
    edit(agent, "a.txt", "2\n3\n", "two\n3\n")
    allow_deciding(root)
    done = decided(agent, raw_call(agent, "review_edits"), "comment", text="Why <b>two</b>?")
    assert taken(done) == ("commented", "Comment 1 waits for the agent.")
    (listed,) = agent.done("list_edits").structured["comments"]
    assert listed["text"] == "Why <b>two</b>?"
    agent.done("answer_comment", comment=1, text="Because.")
    assert [(comment["text"], comment["state"]) for comment in comments_of(done)] == [("Why <b>two</b>?", "open")]
    done = raw_call(agent, "review_page", ticket=ticket_of(done))
    (comment,) = comments_of(done)
    assert (comment["state"], comment["answers"][0]["text"]) == ("answered", "Because.")
    (said,) = cas("show", "1", "--json", folder=root).json()["edits"][0]["comments"]
    assert comment == said
    text = agent.done("review_edits").texts[0]
    assert f"# {said['who']}, answered: Why <b>two</b>?\n# test agent: Because.\n" in text


def test_an_earlier_decision_is_taken_back_and_later_ones_stay(agent: Agent, root: Path) -> None:
    turn = edit(agent, "a.txt", "2\n3\n", "two\n3\n")
    edit(agent, "a.txt", "18\n", "eighteen\n", turn)
    allow_deciding(root)
    shown = decided(agent, raw_call(agent, "review_edits"), "reject")
    shown = decided(agent, shown, "reject")
    assert shown["structuredContent"]["decisions"] == [1, 2]
    done = raw_call(agent, "review_undo", ticket=ticket_of(shown), number=1)
    assert taken(done) == ("decided", "Undid the rejection of edit 1. Rewrote a.txt.")
    assert done["structuredContent"]["decisions"] == [2]
    assert (root / "a.txt").read_text() == LINES.replace("2\n", "two\n", 1)


def test_the_reason_of_a_rejection_is_recorded_and_that_of_nothing_else(agent: Agent, root: Path) -> None:
    turn = edit(agent, "a.txt", "2\n3\n", "two\n3\n")
    edit(agent, "a.txt", "18\n", "eighteen\n", turn)
    allow_deciding(root)
    shown = decided(agent, raw_call(agent, "review_edits"), "accept", text="fine")
    decided(agent, shown, "reject", text="No")
    with Workspace.open(root) as workspace:
        assert [view.decision.reason for view in workspace.history.decisions()] == ["", "No"]


# ---- the list of tools


def test_stored_descriptions_of_the_review_match_the_signatures() -> None:
    """Run `python -m mcptools.server.write_descriptions` where this fails."""
    described = describe_tools(REVIEW_TOOLS)
    assert load_descriptions(REVIEW_TOOLS_FILE) == described
    assert (REPOSITORY / "mcptools" / REVIEW_TOOLS_FILE).read_text() == encode_descriptions(described)


def test_clients_with_windows_are_listed_the_review_after_the_tools_of_the_others(agent: Agent) -> None:
    listed = {tool.name: tool for tool in agent.tools()}
    assert list(listed) == [*(name for name in TOOLS if name in SETS["default"]), *REVIEW_TOOLS]
    address = "ui://editledger/review.html"
    assert listed["review_edits"].meta == {
        "ui": {"resourceUri": address, "visibility": ["model", "app"]},
        "ui/resourceUri": address,
    }
    for name in ("review_page", "review_decide", "review_undo"):
        assert listed[name].meta == {"ui": {"resourceUri": address, "visibility": ["app"]}}
    assert listed["read_file"].meta is None


@pytest.mark.parametrize("names", ["multi", "read_file,Undo"])
def test_sets_without_the_history_have_no_review(root: Path, names: str) -> None:
    with windowed(root, options=["--tools", names]) as agent:
        assert not [tool.name for tool in agent.tools() if tool.name.startswith("review")]


def test_the_window_is_a_resource_that_may_load_nothing(agent: Agent) -> None:
    content = agent.resource("ui://editledger/review.html").model_dump(mode="json", by_alias=True)
    assert content["mimeType"] == "text/html;profile=mcp-app"
    kinds = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
    assert content["_meta"]["ui"]["csp"] == {kind: [] for kind in kinds}
    assert content["text"] == (REPOSITORY / "mcptools" / "review.html").read_text()
    assert "innerHTML" not in content["text"]
    assert "http:" not in content["text"]
    assert "https:" not in content["text"]


def test_the_extension_is_advertised_in_the_newest_protocol_version(root: Path) -> None:
    with windowed(root) as agent:
        assert agent.run(_capabilities)["extensions"] == {"io.modelcontextprotocol/ui": {}}
    with windowed(root, mode="legacy") as agent:
        assert "extensions" not in agent.run(_capabilities)


async def _capabilities(client: Any) -> dict[str, Any]:  # noqa: ANN401 -- the SDK's client
    found: dict[str, Any] = client.server_capabilities.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found
