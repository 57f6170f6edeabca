"""Servers, hooked agents and a reviewer at once on one workspace: nothing is lost, nothing is torn."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from objstore import BlobId, EditFilter, Status, Workspace
from tests.support.command_runner import cas
from tests.support.faulty_disk import WHOLE
from tests.support.hooked_agents import ClaudeCode, Gemini, Session
from tests.support.mcp_agent import Agent, Result, connected

LINES: Final = 40 if WHOLE else 20
ROUNDS: Final = 25 if WHOLE else 11
HOOKED: Final = 3
REFUSED: Final = 1


def edited(agent: Agent, path: Path, rounds: range) -> list[Result]:
    """Let an agent edit distinct lines of the file one after the other, each by its exact text."""
    found = []
    conversation = ""
    for i in rounds:
        edits = [{"old_string": f"line {i} \n", "new_string": f"line {i} as edited\n"}]
        arguments = {"path": str(path), "edits": edits, "mcp_conversation_id": conversation}
        result = agent.done("multi_edit_text_file", **arguments)
        conversation = result.structured["mcp_conversation_id"]
        found.append(result)
    return found


def decided(root: Path, rounds: int) -> list[int]:
    """Reject and accept edit 1 in turn with the command, and return the statuses it ended with."""
    statuses = []
    for i in range(rounds):
        done = cas("reject" if i % 2 == 0 else "accept", "1", folder=root)
        assert done.status in {0, REFUSED}, done.said
        statuses.append(done.status)
    return statuses


def test_two_servers_and_a_reviewer_lose_nothing(tmp_path: Path) -> None:
    root = (tmp_path / "work").resolve()
    root.mkdir()
    file = root / "a.txt"
    # A blank at each line's end, so that "line 1" is not in "line 10".
    file.write_text("".join(f"line {i} \n" for i in range(LINES)))
    with connected(root) as one, connected(root) as other:
        edited(one, file, range(1))
        with ThreadPoolExecutor() as pool:
            first = pool.submit(edited, one, file, range(1, LINES // 2))
            second = pool.submit(edited, other, file, range(LINES // 2, LINES))
            reviews = pool.submit(decided, root, ROUNDS)
            acknowledged = 1 + len(first.result()) + len(second.result())
            statuses = reviews.result()

    with Workspace.open(root) as workspace:
        edits = workspace.history.edits()
        assert [view.seq for view in edits] == list(range(1, acknowledged + 1))
        assert len(workspace.history.decisions()) == statuses.count(0)
        assert workspace.review.external_changes() == ()
        assert [view.seq for view in workspace.history.edits(EditFilter(status=Status.REJECTED))] == (
            [1] if ROUNDS % 2 else []
        )
    expected = [f"line {i} as edited\n" for i in range(LINES)]
    if ROUNDS % 2:
        expected[0] = "line 0 \n"
    assert file.read_text() == "".join(expected)

    # The journal is the only truth: without the index, all of it is there again.
    for derived in (root / ".cas").glob("index.sqlite*"):
        derived.unlink()
    with Workspace.open(root) as workspace:
        assert [view.id for view in workspace.history.edits()] == [view.id for view in edits]
        assert workspace.review.external_changes() == ()


def test_the_reason_of_a_reject_and_its_markers_reach_the_agent(tmp_path: Path) -> None:
    """A person rejects with the command while the server runs; the agent's next questions are answered with it."""
    root = (tmp_path / "work").resolve()
    root.mkdir()
    file = root / "a.txt"

    def reviewed(*words: str) -> None:
        done = cas(*words, folder=root)
        assert done.status == 0, done.said

    with connected(root) as agent:
        first = agent.done("write_file", path=str(file), content="p\nx\nq\n").structured
        conversation = first["mcp_conversation_id"]
        for old, new in (("x", "A"), ("A", "B")):
            edits = [{"old_string": old, "new_string": new}]
            agent.done("multi_edit_text_file", path=str(file), edits=edits, mcp_conversation_id=conversation)
        reviewed("reject", "--markers", "2", "--reason", "no capitals, please")
        listed = {edit["edit"]: edit for edit in agent.done("list_edits", path=str(file)).structured["edits"]}
        assert (listed[2]["status"], listed[2]["reason"]) == ("rejected", "no capitals, please")
        assert "no capitals, please" in agent.done("list_edits").text
        assert agent.done("show_edit", edit=2).structured["edit"]["reason"] == "no capitals, please"
        assert "<<<<<<< without edit 2" in agent.done("show_edit", edit=4).structured["diff"]
        assert file.read_text().splitlines()[1].startswith("<<<<<<< without edit 2")
        reviewed("accept", "2")
        assert file.read_text() == "p\nB\nq\n"
        assert {edit["edit"]: edit["status"] for edit in agent.done("list_edits").structured["edits"]} == {
            1: "pending",
            2: "accepted",
            3: "pending",
            4: "rejected",
        }


def hooked(session: Session, rounds: int) -> None:
    """Let an agent with tools of its own write a file and run a shell in turn, each reported by its hooks."""
    session.start()
    session.ask(f"the work of {session.name}")
    for number in range(rounds):
        session.write(f"{session.name}-{number}.txt", f"{number}\n")
        session.run(f"echo more >> {session.name}-{number}.txt")
    session.stop()


def test_hooks_of_two_agents_and_a_server_record_each_change_once(tmp_path: Path) -> None:
    root = (tmp_path / "work").resolve()
    root.mkdir()
    file = root / "a.txt"
    file.write_text("".join(f"line {i} \n" for i in range(LINES)))
    Workspace.init(root).close()
    assert cas("record", folder=root).status == 0
    sessions: list[Session] = [ClaudeCode(root, "claude"), Gemini(root, "gemini")]
    with connected(root) as agent, ThreadPoolExecutor() as pool:
        working = [pool.submit(hooked, session, HOOKED) for session in sessions]
        served = pool.submit(edited, agent, file, range(LINES // 4))
        for each in working:
            each.result()
        by_server = {result.structured["mcp_conversation_id"] for result in served.result()}

    with Workspace.open(root) as workspace:
        views = workspace.history.edits()
        assert workspace.review.external_changes() == ()
        # Every state was recorded, and none twice: of each file, an edit begins where the one before it ended.
        ends: dict[bytes, BlobId | None] = {}
        for view in views:
            before = None if view.edit.before is None else view.edit.before.blob
            after = None if view.edit.after is None else view.edit.after.blob
            assert view.edit.path not in ends or ends[view.edit.path] == before, view
            assert before != after, view
            ends[view.edit.path] = after
    changed: dict[bytes, set[str]] = {}
    for view in views:
        changed.setdefault(view.edit.path, set()).add(view.edit.conversation)
    assert changed[b"a.txt"] == by_server
    assert set(changed) == {b"a.txt"} | {
        f"{session.name}-{number}.txt".encode() for session in sessions for number in range(HOOKED)
    }
    for path, conversations in changed.items():
        if path != b"a.txt":
            # While two sessions run, it may be unknown which shell it was, but it is never another agent's.
            assert conversations <= {path.decode().partition("-")[0], "external"}, path
