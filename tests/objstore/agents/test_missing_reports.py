"""What an agent's shell changed whose beginning no hook reported awaits review once the shell is reported."""

from pathlib import Path
from typing import Final

import pytest

from objstore import Action, AgentCall, CallInfo, Decided, Origin, Seq, Status, TurnInfo, Workspace
from objstore.disk.witnesses.failure_marks import note_hook_failure
from objstore.model.results import EXTERNAL_CALL
from objstore.values.fastclass import replace
from tests.support.faulty_disk import UnsyncedDisk

CALL: Final = AgentCall(conversation="c", id="1", tool="Bash", paths=None, notes={"command": "make"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    Workspace.init(root, UnsyncedDisk()).close()
    return root


def prompted(root: Path) -> Workspace:
    """Return a workspace with a baseline and a recorded file of three lines, after a prompt of session c.

    Events of the session's tools are known to arrive.
    """
    (root / "a").write_bytes(b"1\n2\n3\n")
    workspace = Workspace.open(root, UnsyncedDisk())
    workspace.record_changes(EXTERNAL_CALL)
    workspace.hooks.begin(replace(CALL, id="0"))
    workspace.hooks.end(replace(CALL, id="0"))
    workspace.hooks.note_turn(TurnInfo(session="c", began=0, prompt="go"), has_begun=True)
    return workspace


def look(workspace: Workspace, how: str) -> None:
    """Find what changed, in one of the ways that no hook of the agent takes part in."""
    if how == "record":
        workspace.hooks.notice(CallInfo(tool="record", origin=Origin.PERSON))
    elif how == "status":
        workspace.record_changes(EXTERNAL_CALL)
    elif how == "another session":
        workspace.hooks.begin(replace(CALL, conversation="d"))
        workspace.hooks.end(replace(CALL, conversation="d"))
    else:
        with workspace.call(CallInfo(tool="write", conversation="ours")) as call:
            call.write("a", call.read("a").bytes + b"ours\n")
            call.commit()


@pytest.mark.parametrize("report", ["end", "fail", "keep_running"])
@pytest.mark.parametrize("how", ["record", "status", "another session", "our server"])
def test_what_was_found_while_an_unannounced_shell_ran_awaits_review_once_it_is_reported(
    root: Path, how: str, report: str
) -> None:
    with prompted(root) as workspace:
        (root / "a").write_bytes(b"1\n2\n3\n4\n")
        look(workspace, how)
        first = workspace.history.edit(1)
        assert (first.status, first.is_unattributed) == (Status.ACCEPTED, False)
        getattr(workspace.hooks, report)(CALL)
        first = workspace.history.edit(1)
        assert (first.status, first.is_unattributed) == (Status.PENDING, True)
        assert first.reason == "the beginning of a tool of session c was not reported"
        assert not [session for session in workspace.sessions.sessions() if session.name == "unattributed"]
        assert isinstance(workspace.review.claim([Seq(1)], who="me"), Decided)
        workspace.hooks.end(replace(CALL, id="2"))  # another one of the same turn
        assert (workspace.history.edit(1).status, workspace.history.edit(1).owner) == (Status.ACCEPTED, "")


@pytest.mark.parametrize("report", ["announced", "reported twice", "names its file", "reads", "not run"])
def test_what_a_person_typed_stays_accepted_if_no_unannounced_shell_can_have_done_it(root: Path, report: str) -> None:
    with prompted(root) as workspace:
        if report in {"announced", "reported twice"}:
            workspace.hooks.begin(CALL)
            workspace.hooks.end(CALL)
        (root / "a").write_bytes(b"mine\n")
        look(workspace, "status")
        if report == "announced":
            workspace.hooks.begin(replace(CALL, id="2"))
            workspace.hooks.end(replace(CALL, id="2"))
        elif report == "reported twice":
            workspace.hooks.end(CALL)
        elif report == "not run":
            workspace.hooks.mark_not_run(CALL)
        else:
            workspace.hooks.end(replace(CALL, paths=("b",) if report == "names its file" else ()))
        (view,) = workspace.history.edits()
        assert (view.edit.origin, view.status) == (Origin.EXTERNAL, Status.ACCEPTED)


def test_what_was_found_before_the_prompt_or_decided_by_a_person_stays_as_it_is(root: Path) -> None:
    with prompted(root) as workspace:
        (root / "a").write_bytes(b"before\n")
        look(workspace, "record")
        workspace.hooks.note_turn(TurnInfo(session="c", began=0, prompt="more"), has_begun=True)
        (root / "a").write_bytes(b"after\n")
        look(workspace, "record")
        _, units = workspace.find_units("2")
        for action in (Action.REJECT, Action.ACCEPT):
            assert isinstance(workspace.decide(action, units, who="me"), Decided)
        workspace.hooks.end(CALL)
        assert [view.status for view in workspace.history.edits()] == [Status.ACCEPTED] * 2


def test_the_person_can_undo_that_changes_were_left_unattributed(root: Path) -> None:
    with prompted(root) as workspace:
        (root / "a").write_bytes(b"mine\n")
        look(workspace, "record")
        workspace.hooks.end(CALL)
        workspace.review.undo(who="me")
        view = workspace.history.edit(1)
        assert (view.status, view.owner, view.is_unattributed) == (Status.ACCEPTED, view.edit.conversation, False)
        workspace.hooks.end(replace(CALL, id="2"))
        assert workspace.history.edit(1).status is Status.ACCEPTED


def test_a_subagent_that_only_its_next_call_shows_may_have_begun_earlier(root: Path) -> None:
    with prompted(root) as workspace:
        (root / "a").write_bytes(b"by the subagent\n")
        look(workspace, "record")
        workspace.hooks.begin(replace(CALL, id="2", agent="sub"))
        workspace.hooks.end(replace(CALL, id="2", agent="sub"))
        workspace.hooks.end(replace(CALL, agent="sub"))
        assert workspace.history.edit(1).status is Status.PENDING


@pytest.mark.parametrize("is_typed_before", [True, False])
def test_a_subagents_unannounced_shell_began_after_the_subagent(root: Path, *, is_typed_before: bool) -> None:
    """What runs in a subagent may have begun before the newest prompt of its session."""
    with prompted(root) as workspace:
        if not is_typed_before:
            workspace.hooks.note_subagent("c", "sub")
        (root / "a").write_bytes(b"typed\n")
        look(workspace, "record")
        if is_typed_before:
            workspace.hooks.note_subagent("c", "sub")
        workspace.hooks.note_turn(TurnInfo(session="c", began=0, prompt="more"), has_begun=True)
        workspace.hooks.end(replace(CALL, agent="sub"))
        assert workspace.history.edit(1).status is (Status.ACCEPTED if is_typed_before else Status.PENDING)


def test_an_end_without_an_id_that_is_reported_twice_leaves_a_persons_lines_accepted(root: Path) -> None:
    call = replace(CALL, is_named=False)
    with prompted(root) as workspace:
        (root / "a").write_bytes(b"typed\n")
        look(workspace, "record")
        workspace.hooks.begin(call)
        workspace.hooks.end(call)
        workspace.hooks.end(call)
        assert workspace.history.edit(1).status is Status.ACCEPTED


def test_what_parallel_shells_left_open_is_their_session_s_once_all_that_ran_then_have_ended(root: Path) -> None:
    shells = {name: replace(CALL, id=name, agent="sub" if name in "yz" else "") for name in "12yz"}
    with prompted(root) as workspace:
        hooks = workspace.hooks
        hooks.begin(shells["1"])
        (root / "a").write_bytes(b"1\n2\n3\n4\n")
        hooks.begin(shells["2"])
        assert list(workspace.history.edits())[-1].is_unattributed
        hooks.note_subagent("c", "sub")
        hooks.begin(shells["y"])  # in doubt from the next one on, but it began later than the change
        hooks.begin(shells["z"])
        hooks.end(shells["1"])
        hooks.end(shells["2"])
        view = list(workspace.history.edits())[-1]
        assert (view.owner, view.status) == ("c", Status.PENDING)
        for name in "yz":
            hooks.end(shells[name])
        assert list(workspace.history.edits())[-1].owner == "c"


def test_the_end_of_a_tool_settles_whose_its_named_file_is_though_another_session_s_shell_ran(root: Path) -> None:
    with prompted(root) as workspace:
        shell = replace(CALL, conversation="d", id="9")
        workspace.hooks.begin(shell)
        write = replace(CALL, id="1", tool="Write", paths=("a",), notes={})
        workspace.hooks.begin(write)
        (root / "a").write_bytes(b"written\n")
        workspace.hooks.begin(replace(write, id="2", paths=("b",)))
        workspace.hooks.end(shell)
        assert workspace.history.edit(1).is_unattributed
        workspace.hooks.end(write)
        view = workspace.history.edit(1)
        assert (view.status, view.owner, view.is_unattributed) == (Status.PENDING, "c", False)


def test_what_tools_of_two_sessions_had_named_is_settled_by_no_end(root: Path) -> None:
    with prompted(root) as workspace:
        writes = [
            replace(CALL, conversation=session, id=name, tool="Write", paths=(path,), notes={})
            for session, name, path in (("c", "1", "a"), ("d", "1", "a"), ("c", "2", "b"))
        ]
        for write in writes[:2]:
            workspace.hooks.begin(write)
        (root / "a").write_bytes(b"written\n")
        workspace.hooks.begin(writes[2])
        for write in writes[1::-1]:
            workspace.hooks.end(write)
        assert workspace.history.edit(1).is_unattributed


def test_what_a_person_typed_while_a_tool_waited_for_an_answer_is_no_later_shell_s(root: Path) -> None:
    with prompted(root) as workspace:
        write = replace(CALL, conversation="d", id="1", tool="Write", paths=("a",), notes={})
        workspace.hooks.begin(write)
        workspace.hooks.asked(write)
        (root / "a").write_bytes(b"mine\n")
        workspace.hooks.begin(CALL)
        (root / "a").write_bytes(b"mine\nmore\n")
        workspace.hooks.mark_not_run(write)
        workspace.hooks.end(CALL)
        view = workspace.history.edit(1)
        assert (view.status, view.is_unattributed) == (Status.PENDING, True)
        assert view.edit.notes["candidates"] == "c"


def test_a_tool_that_did_not_run_gets_nothing_that_was_left_open(root: Path) -> None:
    with prompted(root) as workspace:
        workspace.hooks.begin(CALL)
        note_hook_failure(str(root), "client", "DiskFull")
        (root / "a").write_bytes(b"mine\n")
        workspace.hooks.notice(EXTERNAL_CALL)
        workspace.hooks.mark_not_run(CALL)
        view = workspace.history.edit(1)
        assert (view.status, view.is_unattributed) == (Status.PENDING, True)


@pytest.mark.parametrize("end", ["reported", "lost"])
def test_what_a_shell_wrote_into_a_file_that_waits_for_an_answer_awaits_review_though_the_answer_is_no(
    root: Path, end: str
) -> None:
    with prompted(root) as workspace:
        write = replace(CALL, conversation="d", id="1", tool="Write", paths=("a",), notes={})
        workspace.hooks.begin(write)
        workspace.hooks.asked(write)
        workspace.hooks.begin(CALL)
        (root / "a").write_bytes(b"the shell's\n")
        if end == "reported":
            workspace.hooks.end(CALL)
        else:
            workspace.hooks.pause("c")
        assert not list(workspace.history.edits())
        workspace.hooks.mark_not_run(write)
        view = workspace.history.edit(1)
        assert (view.status, view.is_unattributed) == (Status.PENDING, True)
        assert view.edit.notes["candidates"] == "c"
        (root / "a").write_bytes(b"mine\n")
        workspace.hooks.begin(replace(write, id="2"))
        assert list(workspace.history.edits())[-1].status is Status.ACCEPTED


def test_what_was_found_when_a_shell_began_is_not_given_to_it_at_its_end(root: Path) -> None:
    with prompted(root) as workspace:
        workspace.hooks.begin(CALL)  # and its end is lost
        (root / "a").write_bytes(b"mine\n")
        workspace.hooks.begin(replace(CALL, id="2"))
        workspace.hooks.begin(replace(CALL, id="3"))
        workspace.hooks.end(replace(CALL, id="2"))
        view = workspace.history.edit(1)
        assert (view.status, view.is_unattributed) == (Status.PENDING, True)
