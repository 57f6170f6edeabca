"""Test what hooks keep for one another while other processes write or clean up the same files."""

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Final

import pytest

from objstore import (
    Action,
    AgentCall,
    CallInfo,
    Decided,
    EditView,
    OnExternal,
    Origin,
    PermissionRefused,
    Seq,
    State,
    Status,
    TurnInfo,
    Unit,
    Workspace,
)
from objstore.agents.attributed_scan import AttributedScan
from objstore.disk.config.config_files import Configuration
from objstore.model.results import EXTERNAL_CALL
from objstore.review.calls.open_calls import OpenCalls
from objstore.storage.transaction.journal import Journal
from objstore.values.fastclass import replace
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import UnsyncedDisk

CALL: Final = AgentCall(conversation="c", id="1", tool="Bash", paths=None, notes={"command": "make"})
EARLIER: Final = AgentCall(conversation="c", id="0", tool="Bash", paths=None)


class Interrupted(UnsyncedDisk):
    """A disk on which something else happens once, before or behind the first line that is appended to the log."""

    def __init__(self, when: str, then: Callable[[], object]) -> None:
        super().__init__()
        self._when = when
        self._then = iter([then])

    def append(self, fd: int, content: bytes, name: str) -> None:
        for when in ("before", "behind"):
            if when == "behind":
                super().append(fd, content, name)
            if when == self._when and name.endswith("events") and (b" open-" in content or b" done-" in content):
                for then in self._then:
                    then()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    Workspace.init(root, UnsyncedDisk()).close()
    return root


@pytest.mark.parametrize("when", ["before", "behind"])
def test_a_call_is_kept_while_another_process_writes_its_first_file(root: Path, when: str) -> None:
    """Its first write clears away what writers left that died, and the log of calls has no writer's lock."""

    def write_first() -> None:
        with Workspace.open(root, UnsyncedDisk()) as other:
            write(other, "mine.txt", b"mine\n")

    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.hooks.begin(EARLIER)
        workspace.hooks.end(EARLIER)
    with Workspace.open(root, Interrupted(when, write_first)) as workspace:
        workspace.hooks.begin(CALL)
        (root / "made.txt").write_bytes(b"made\n")
        made = workspace.hooks.end(CALL)
    assert [(view.edit.path, view.edit.origin) for view in made] == [(b"made.txt", Origin.AGENT)]
    assert not list((root / ".cas" / "tmp").iterdir())


@pytest.mark.parametrize("first", ["the end of a call", "another turn"])
def test_an_end_and_a_new_turn_noted_at_the_same_time_are_both_kept(root: Path, first: str) -> None:
    """A prompt comes while a subagent's call ends: each reads what is kept, and puts something else in its place."""
    other: list[Thread] = []

    def noted(disk: UnsyncedDisk, what: str) -> None:
        with closing(Journal(str(root), disk)) as journal:
            if what == "the end of a call":
                OpenCalls(journal).note_done("c", [CALL])
            else:
                OpenCalls(journal).begin_turn("c")

    def begin_other() -> None:
        what = "another turn" if first == "the end of a call" else "the end of a call"
        other.append(Thread(target=noted, args=(UnsyncedDisk(), what)))
        other[0].start()
        other[0].join(0.3)  # without a lock, it would be done by now

    with closing(Journal(str(root), UnsyncedDisk())) as journal:
        OpenCalls(journal).note_done("c", [EARLIER])
    noted(Interrupted("before", begin_other), first)
    other[0].join()
    with closing(Journal(str(root), UnsyncedDisk())) as journal:
        calls = OpenCalls(journal)
        assert calls.is_done(CALL, before=True)
        assert not calls.is_done(EARLIER)
        assert calls.is_done(EARLIER, before=True)


# ---- turns


def turns_of(root: Path) -> list[tuple[bytes, int, str]]:
    """Return path, number of the turn and its prompt of each edit (0 and "": it has none)."""
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        prompts = {turn.number: turn.prompt for turn in workspace.sessions.turns()}
        return [(view.edit.path, view.edit.turn, prompts.get(view.edit.turn, "")) for view in workspace.history.edits()]


def test_each_edit_of_a_call_belongs_to_the_turn_in_which_the_call_began(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        hooks = workspace.hooks
        hooks.note_turn(TurnInfo(session="c", began=10, prompt="first", client="claude-code"), has_begun=True)
        hooks.begin(EARLIER)
        (root / "a").write_bytes(b"1\n")
        hooks.end(EARLIER)
        hooks.begin(CALL)
        hooks.keep_running(CALL)
        hooks.note_turn(TurnInfo(session="c", began=20, prompt="second"), has_begun=True)
        (root / "b").write_bytes(b"1\n")
        hooks.end(CALL)
        hooks.begin(replace(CALL, id="3"))
        (root / "c").write_bytes(b"1\n")
        hooks.end(replace(CALL, id="3"))
        found = workspace.sessions.turns()
        assert [(turn.time, turn.prompt, turn.client) for turn in found] == [
            (10, "first", "claude-code"),
            (20, "second", "claude-code"),
        ]
        assert [session.name for session in workspace.sessions.sessions()] == ["c"]
    assert turns_of(root) == [(b"a", 1, "first"), (b"b", 1, "first"), (b"c", 2, "second")]


def test_calls_without_a_reported_prompt_share_one_turn_with_an_empty_prompt(root: Path) -> None:
    for number in range(2):
        with Workspace.open(root, UnsyncedDisk()) as workspace:
            call = AgentCall(conversation="c", id=str(number), tool="Write", paths=("a",), notes={"client": "codex"})
            workspace.hooks.begin(call)
            (root / "a").write_bytes(b"%d\n" % number)
            workspace.hooks.end(call)
            assert [turn.client for turn in workspace.sessions.turns()] == ["codex"]
    assert turns_of(root) == [(b"a", 1, ""), (b"a", 1, "")]


def test_a_resumed_session_begins_a_turn_without_the_earlier_prompt(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        hooks = workspace.hooks
        for prompt in ("first", ""):
            if prompt:
                hooks.note_turn(TurnInfo(session="c", began=0, prompt=prompt, model="m"), has_begun=True)
            else:
                hooks.start("c", client="claude-code")
            hooks.begin(CALL)
            (root / "a").write_text(f"{prompt}\n")
            hooks.end(CALL)
        assert [(turn.prompt, turn.client, turn.model) for turn in workspace.sessions.turns()] == [
            ("first", "", "m"),
            ("", "claude-code", "m"),
        ]
    assert turns_of(root) == [(b"a", 1, "first"), (b"a", 2, "")]


def test_a_call_of_a_subagent_belongs_to_the_turn_of_its_session(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        hooks = workspace.hooks
        hooks.note_turn(TurnInfo(session="c", began=0, prompt="ask others"), has_begun=True)
        hooks.note_subagent("c", "worker")
        call = replace(CALL, agent="worker")
        hooks.begin(call)
        (root / "a").write_bytes(b"1\n")
        hooks.end(call)
    assert turns_of(root) == [(b"a", 1, "ask others")]


def test_an_edit_that_another_scan_finds_during_a_call_belongs_to_its_turn(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        hooks = workspace.hooks
        hooks.note_turn(TurnInfo(session="c", began=0, prompt="do it"), has_begun=True)
        hooks.begin(CALL)
        (root / "a").write_bytes(b"1\n")
        hooks.notice(CallInfo(tool="record", origin=Origin.PERSON))
        (root / "b").write_bytes(b"1\n")
        with workspace.call(CallInfo(tool="write", conversation="ours")) as own:
            own.write("b", b"2\n")
            own.commit()
    assert turns_of(root) == [(b"a", 1, "do it"), (b"b", 1, "do it"), (b"b", 0, "")]


# ---- what an agent may have changed


def begun(workspace: Workspace, *conversations: str) -> None:
    """Begin a call of each conversation that may change any file."""
    for conversation in conversations:
        workspace.hooks.begin(replace(CALL, conversation=conversation))


def found_in(views: Iterable[EditView]) -> list[tuple[Origin, Status, str]]:
    """Return origin, status and candidates of each edit."""
    return [(view.edit.origin, view.status, view.edit.notes.get("candidates", "")) for view in views]


@pytest.mark.parametrize("action", [Action.ACCEPT, Action.REJECT])
def test_a_decision_that_keeps_changes_found_during_a_call_leaves_them_pending(root: Path, action: Action) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        write(workspace, "a", b"1\n2\n3\n4\n5\n")
        write(workspace, "a", b"one\n2\n3\n4\n5\n")
        begun(workspace, "c", "d")
        (root / "a").write_bytes(b"one\n2\n3\n4\n5\n6\n")
        outcome = workspace.decide(action, [Unit(Seq(2), 1)], who="me", on_external=OnExternal.KEEP)
        assert isinstance(outcome, Decided)
        assert found_in(outcome.external) == [(Origin.UNATTRIBUTED, Status.PENDING, "c\nd")]
        assert [str(unit) for unit, _ in outcome.verdicts] == ["2:1"]
    first = b"one\n" if action is Action.ACCEPT else b"1\n"
    assert (root / "a").read_bytes() == first + b"2\n3\n4\n5\n6\n"


@pytest.mark.parametrize("by", ["call", "restore", "scan", "notice"])
def test_what_several_agents_may_have_changed_is_unattributed_however_it_is_found(root: Path, by: str) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        write(workspace, "a", b"1\n")
        first = workspace.history.edits()[0].edit.after
        assert first is not None
        workspace.record_changes(EXTERNAL_CALL)  # takes the baseline
        begun(workspace, "c", "d")
        (root / "a").write_bytes(b"2\n")
        if by == "call":
            with workspace.call(CallInfo(tool="write", conversation="ours")) as call:
                call.write("a", b"3\n")
                views = call.commit().external
        elif by == "restore":
            state = State(path="a", blob=first.blob, mode=first.mode)
            views = workspace.review.restore(state).external
        elif by == "scan":
            views = workspace.record_changes(EXTERNAL_CALL).edits
        else:
            views = workspace.hooks.notice(CallInfo(tool="record", origin=Origin.PERSON)).edits
        assert found_in(views) == [(Origin.UNATTRIBUTED, Status.PENDING, "c\nd")]


def test_a_deletion_that_a_call_finds_is_not_accepted_while_agents_work(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        write(workspace, "a", b"1\n")
        begun(workspace, "c", "d")
        (root / "a").unlink()
        with workspace.call(CallInfo(tool="write", conversation="ours")) as call:
            call.write("a", b"3\n")
            assert found_in(call.commit().external) == [(Origin.UNATTRIBUTED, Status.PENDING, "c\nd")]


def test_changes_at_an_end_without_a_beginning_are_unattributed_unless_the_tool_named_the_file(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.record_changes(EXTERNAL_CALL)
        (root / "a").write_bytes(b"1\n")
        assert found_in(workspace.hooks.end(CALL)) == [(Origin.UNATTRIBUTED, Status.PENDING, "c")]
        (root / "a").write_bytes(b"2\n")
        assert found_in(workspace.hooks.end(CALL)) == [(Origin.EXTERNAL, Status.ACCEPTED, "")]  # reported again
        (root / "a").write_bytes(b"3\n")
        named = replace(CALL, id="2", paths=("a",))
        assert found_in(workspace.hooks.end(named)) == [(Origin.AGENT, Status.PENDING, "")]


def test_a_call_is_open_even_if_the_hook_of_its_beginning_failed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[EditView]:
        raise PermissionRefused("a")

    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.record_changes(EXTERNAL_CALL)
        with monkeypatch.context() as failing:
            failing.setattr(AttributedScan, "record_edits", fail)
            with pytest.raises(PermissionRefused):
                workspace.hooks.begin(CALL)
        (root / "a").write_bytes(b"1\n")
        assert found_in(workspace.record_changes(EXTERNAL_CALL).edits) == [(Origin.AGENT, Status.PENDING, "")]


@pytest.mark.parametrize("value", ["accepted", "pending"])
def test_a_setting_says_whether_changes_of_no_agent_await_a_review(root: Path, value: str) -> None:
    Configuration(str(root)).set("review.external", value)
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.record_changes(EXTERNAL_CALL)
        (root / "a").write_bytes(b"1\n")
        assert found_in(workspace.record_changes(EXTERNAL_CALL).edits) == [(Origin.EXTERNAL, Status(value), "")]
        (root / "a").write_bytes(b"2\n")
        mine = CallInfo(tool="record", origin=Origin.PERSON)
        assert found_in(workspace.hooks.notice(mine).edits) == [(Origin.PERSON, Status.ACCEPTED, "")]


def test_changes_of_no_agent_await_a_review_if_the_setting_is_invalid(root: Path) -> None:
    (root / ".cas" / "config.toml").write_text('[review]\nexternal = "maybe"\n')
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.record_changes(EXTERNAL_CALL)
        (root / "a").write_bytes(b"1\n")
        assert found_in(workspace.record_changes(EXTERNAL_CALL).edits) == [(Origin.EXTERNAL, Status.PENDING, "")]


class Appending(UnsyncedDisk):
    """A disk on which something else happens once, after the log was first written to."""

    def __init__(self, then: Callable[[], object]) -> None:
        super().__init__()
        self._then = iter([then])

    def append(self, fd: int, content: bytes, name: str) -> None:
        super().append(fd, content, name)
        if not name.endswith("events"):
            for then in self._then:
                then()


def test_a_session_s_late_start_does_not_take_the_prompt_of_its_first_turn(tmp_path: Path) -> None:
    def prompt() -> None:
        with Workspace.open(tmp_path, UnsyncedDisk()) as other:
            other.hooks.note_turn(TurnInfo(session="c", began=0, prompt="go"), has_begun=True)

    (tmp_path / "a.txt").write_bytes(b"1\n")
    with Workspace.init(tmp_path, UnsyncedDisk()) as workspace:
        workspace.hooks.notice(EXTERNAL_CALL)
        (tmp_path / "a.txt").write_bytes(b"2\n")
    with Workspace.open(tmp_path, Appending(prompt)) as workspace:
        workspace.hooks.start("c", client="claude-code")
        turn = workspace.hooks.turn("c")
        assert turn is not None
        assert turn.prompt == "go"
        workspace.hooks.start("c", client="claude-code")  # it begins again, after that prompt
        again = workspace.hooks.turn("c")
        assert again is not None
        assert again.prompt == ""


def test_an_agent_awaits_a_prompt_from_the_end_of_its_turn_to_the_next(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        hooks = workspace.hooks
        assert not hooks.awaits_prompt("c")
        hooks.note_turn(TurnInfo(session="c", began=0, prompt="Work."), has_begun=True)
        hooks.begin(CALL)
        hooks.end(CALL)
        assert not hooks.awaits_prompt("c")
        hooks.pause("c")
        assert hooks.awaits_prompt("c")
        hooks.note_turn(TurnInfo(session="c", began=0, prompt="Go on."), has_begun=True)
        assert not hooks.awaits_prompt("c")


def test_what_a_subagent_does_belongs_to_the_turn_whose_prompt_sent_it(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        hooks = workspace.hooks
        hooks.note_turn(TurnInfo(session="c", began=0, prompt="ask others"), has_begun=True)
        hooks.note_subagent("c", "worker")
        hooks.pause("c")
        hooks.note_turn(TurnInfo(session="c", began=0, prompt="something else"), has_begun=True)
        for name, agent in (("a", "worker"), ("b", ""), ("d", "another")):
            if agent == "another":
                hooks.note_subagent("c", agent)
            call = replace(CALL, id=name, agent=agent)
            hooks.begin(call)
            (root / name).write_bytes(b"1\n")
            hooks.end(call)
    prompts = {path: prompt for path, _, prompt in turns_of(root)}
    assert prompts == {b"a": "ask others", b"b": "something else", b"d": "something else"}


def test_what_changed_where_a_hook_has_failed_is_unattributed_until_everything_was_looked_at(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.record_changes(EXTERNAL_CALL)
        workspace.hooks.begin(CALL)
        workspace.hooks.end(CALL)
        (root / ".cas" / "hook.log").write_text("2026-01-01T00:00:00Z claude-code: OSError\n")
        (root / "a").write_bytes(b"1\n")
        for _ in range(2):
            workspace.hooks.pause("c")
            (root / "a").write_bytes(b"2\n")
        workspace.hooks.pause("c")
        assert [view.is_unattributed for view in workspace.history.edits()] == [True, False]


def test_what_a_shell_changes_stays_its_own_after_another_hook_has_failed(root: Path) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.record_changes(EXTERNAL_CALL)
        workspace.hooks.begin(CALL)
        (root / ".cas" / "hook.log").write_text("2026-01-01T00:00:00Z claude-code: OSError\n")
        (root / "a").write_bytes(b"1\n")
        (made,) = workspace.hooks.end(CALL)
        assert made.edit.origin is Origin.AGENT


def test_what_a_tool_writes_after_its_end_is_its_own_though_the_file_had_just_changed_before_it_began(
    root: Path,
) -> None:
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        hooks = workspace.hooks
        (root / "a").write_bytes(b"1\n")
        hooks.notice(EXTERNAL_CALL)
        hooks.note_turn(TurnInfo(session="c", began=0, prompt="do it"), has_begun=True)
        for number in "12":
            hooks.begin(AgentCall(conversation="c", id=number, tool="Write", paths=("a",)))
            if number == "1":
                (root / "a").write_bytes(b"1\n2\n")
            hooks.end(AgentCall(conversation="c", id=number, tool="Write", paths=("a",)))
        (root / "a").write_bytes(b"1\n2\n3\n")
        hooks.pause("c")
        assert found_in(workspace.history.edits()) == [(Origin.AGENT, Status.PENDING, "")] * 2


@pytest.mark.parametrize("copies", [False, True])
def test_unread_text_of_a_shell_awaits_review_when_its_folder_comes_back_after_the_turn(
    root: Path, tmp_path: Path, *, copies: bool
) -> None:
    (root / "part").mkdir()
    (root / "part" / "a").write_bytes(b"1\n2\n3\n4\n5\n")
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        hooks = workspace.hooks
        hooks.notice(EXTERNAL_CALL)
        hooks.note_turn(TurnInfo(session="c", began=0, prompt="do it"), has_begun=True)
        hooks.begin(CALL)
        if copies:
            (root / "copy").write_bytes((root / "part" / "a").read_bytes())  # where the file seems to have moved
        (root / "part" / "a").write_bytes(b"1\n2\n3\n4\n5\nthe agent's\n")
        (root / "part").rename(tmp_path / "elsewhere")
        hooks.end(CALL)
        hooks.pause("c")
        hooks.notice(EXTERNAL_CALL)
        (tmp_path / "elsewhere").rename(root / "part")
        hooks.notice(EXTERNAL_CALL)
        views = [view for view in workspace.history.edits() if view.edit.path == b"part/a" and view.edit.after]
    assert [view.status for view in views] == [Status.PENDING]
