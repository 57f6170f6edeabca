"""Test what a formatter makes of an agent's edit: whose it is, and what a decision on the edit does with it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from objstore import (
    Action,
    AgentCall,
    CallInfo,
    Conflicted,
    Decided,
    EditFilter,
    EditView,
    OnExternal,
    Origin,
    Status,
    TurnInfo,
    Unit,
    Workspace,
)
from objstore.disk.config.config_files import Configuration
from objstore.model.results import EXTERNAL_CALL
from objstore.values.fastclass import replace
from tests.support.faulty_disk import UnsyncedDisk

FIRST: Final = b"a = 1\n\n\nb = 2\n\n\nc = 3\n"
WRITTEN: Final = b"a=10\n\n\nb = 2\n\n\nc=30\n"
FORMATTED: Final = b"a = 10\n\n\nb = 2\n\n\nc = 30\n"
SCRIPT: Final = b"const a = 1;\nconst b = 2;\n"
MESSY_SCRIPT: Final = b"""import {c} from './c';
const a=(c) => { return {k: c, l: 'it', veryLongName: anotherVeryLongName, third: yetAnotherName,fourth:c} ;};
function b(x,y){ if(x) return y;
  return [x,
    y]; }
"""
NPM: Final = Path(os.environ.get("EDITLEDGER_NPM", Path(__file__).resolve().parents[3] / "build" / "conformance"))
PRETTIER: Final = shutil.which("prettier") or shutil.which("prettier", path=NPM / "node_modules" / ".bin")
IS_PRETTIER_REQUIRED: Final = "prettier" in os.environ.get("EDITLEDGER_REQUIRES", "")
CALL: Final = AgentCall(conversation="c", id="1", tool="Write", paths=("f.py",))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """Return a workspace with one file, of which a baseline was taken."""
    (tmp_path / "f.py").write_bytes(FIRST)
    with Workspace.init(tmp_path, UnsyncedDisk()) as made:
        made.record_changes(EXTERNAL_CALL)
        made.hooks.note_turn(TurnInfo(session="c", began=0, prompt="do it"), has_begun=True)
        yield made


def path_in(workspace: Workspace) -> Path:
    """Return the path of the file."""
    return Path(workspace.root, "f.py")


def write_and_format(workspace: Workspace, written: bytes = WRITTEN) -> None:
    """Let an agent write the file, and ruff format it once the tool's end is reported."""
    workspace.hooks.begin(CALL)
    path_in(workspace).write_bytes(written)
    workspace.hooks.end(CALL)
    subprocess.run([sys.executable, "-m", "ruff", "format", "--isolated", "-q", "f.py"], cwd=workspace.root, check=True)


def edits(workspace: Workspace) -> list[EditView]:
    """Return all edits."""
    return workspace.history.edits(EditFilter())


def units_of(view: EditView) -> list[Unit]:
    """Return the units of an edit."""
    return [Unit(view.seq, number) for number in range(len(view.units))]


def look(workspace: Workspace, how: str) -> None:
    """Find the changes of files."""
    if how == "next tool":
        workspace.hooks.begin(AgentCall(conversation="c", id="2", tool="Bash", paths=None))
    elif how == "turn's end":
        workspace.hooks.pause("c")
    elif how == "record":
        workspace.hooks.notice(CallInfo(tool="record", origin=Origin.PERSON))
    else:
        with workspace.call(CallInfo(tool="write", conversation="ours")) as call:
            call.write("f.py", call.read("f.py").bytes + b"d = 4\n")
            call.commit()


@pytest.mark.parametrize("how", ["next tool", "turn's end", "record", "our tool"])
def test_a_formatters_change_right_after_an_edit_belongs_to_its_call(workspace: Workspace, how: str) -> None:
    write_and_format(workspace)
    look(workspace, how)
    made, formatted = edits(workspace)[:2]
    assert (formatted.edit.origin, formatted.status, formatted.edit.amends) == (
        Origin.FORMATTER,
        Status.PENDING,
        None,
    )
    for name in ("conversation", "call", "turn", "tool", "notes"):
        assert getattr(formatted.edit, name) == getattr(made.edit, name)
    assert (made.edit.ordinal, formatted.edit.ordinal) == (0, 1)
    assert formatted.edit.turn == 1


@pytest.mark.parametrize("is_found", [True, False], ids=["found before", "found by the decision"])
@pytest.mark.parametrize("action", [Action.ACCEPT, Action.REJECT])
def test_a_rejection_takes_formatting_of_its_lines_along_and_names_it_and_an_acceptance_does_not(
    workspace: Workspace, action: Action, *, is_found: bool
) -> None:
    write_and_format(workspace)
    if is_found:
        look(workspace, "turn's end")
    made = edits(workspace)[0]
    outcome = workspace.decide(action, units_of(made), who="me", on_external=OnExternal.KEEP)
    assert isinstance(outcome, Decided)
    formatted = edits(workspace)[1]
    is_accept = action is Action.ACCEPT
    assert [(view.edit.origin, view.status) for view in edits(workspace)] == [
        (Origin.AGENT, Status.ACCEPTED if is_accept else Status.REJECTED),
        (Origin.FORMATTER, Status.PENDING if is_accept else Status.REJECTED),
    ]
    hunks = tuple(Unit(formatted.seq, number) for number in range(1, len(formatted.units)))
    assert outcome.cascaded == (() if is_accept else hunks)
    assert path_in(workspace).read_bytes() == (FORMATTED if action is Action.ACCEPT else FIRST)
    workspace.review.undo(who="me")
    assert path_in(workspace).read_bytes() == FORMATTED
    assert [view.status for view in edits(workspace)] == [Status.PENDING] * 2


def test_a_hunk_of_an_edit_is_rejected_with_what_a_formatter_made_of_its_lines(workspace: Workspace) -> None:
    write_and_format(workspace)
    look(workspace, "turn's end")
    made = edits(workspace)[0]
    assert isinstance(workspace.decide(Action.REJECT, [Unit(made.seq, 1)], who="me"), Decided)
    assert path_in(workspace).read_bytes() == FORMATTED.replace(b"10", b"1")
    assert isinstance(workspace.decide(Action.ACCEPT, [Unit(made.seq, 2)], who="me"), Decided)
    assert edits(workspace)[1].units[1:] == (Status.REJECTED, Status.PENDING)


def test_a_rejected_formatting_stays_rejected_and_leaves_the_edit_decidable(workspace: Workspace) -> None:
    """Later edits of reformatted lines are not in the way."""
    write_and_format(workspace)
    look(workspace, "turn's end")
    made, formatted = edits(workspace)
    assert isinstance(workspace.decide(Action.REJECT, units_of(formatted), who="me"), Decided)
    assert path_in(workspace).read_bytes() == WRITTEN
    path_in(workspace).write_bytes(WRITTEN.replace(b"c=30", b"c=31"))
    look(workspace, "record")
    for action in (Action.ACCEPT, Action.RESET, Action.ACCEPT):
        assert isinstance(workspace.decide(action, units_of(made), who="me"), Decided)
        assert edits(workspace)[1].status is Status.REJECTED
    assert path_in(workspace).read_bytes() == WRITTEN.replace(b"c=30", b"c=31")


def test_a_rejection_takes_nothing_along_but_formatting(workspace: Workspace) -> None:
    write_and_format(workspace)
    look(workspace, "turn's end")
    path_in(workspace).write_bytes(FORMATTED.replace(b"10", b"11"))
    look(workspace, "record")
    made, *later = edits(workspace)
    outcome = workspace.decide(Action.REJECT, units_of(made), who="me")
    assert isinstance(outcome, Conflicted)
    assert {conflict.unit.seq for conflict in outcome.conflicts} == {later[-1].seq}
    assert path_in(workspace).read_bytes() == FORMATTED.replace(b"10", b"11")


def test_a_change_of_meaning_right_after_an_edit_is_no_formatting(workspace: Workspace) -> None:
    write_and_format(workspace, WRITTEN + b"d = a * (b + c)\n")
    look(workspace, "turn's end")
    mine = FORMATTED + b"d = a * b + c\n"
    path_in(workspace).write_bytes(mine)
    look(workspace, "record")
    assert edits(workspace)[-1].edit.origin is not Origin.FORMATTER
    made = edits(workspace)[0]
    workspace.decide(Action.REJECT, [Unit(made.seq, 1)], who="me")
    assert path_in(workspace).read_bytes().endswith(b"d = a * b + c\n")


def test_a_formatter_that_runs_twice_has_all_its_changes_rejected_with_the_edit(workspace: Workspace) -> None:
    write_and_format(workspace)
    look(workspace, "record")
    path_in(workspace).write_bytes(FORMATTED.replace(b"10", b" 10"))
    look(workspace, "turn's end")
    made, *formatted = edits(workspace)
    assert [view.edit.origin for view in formatted] == [Origin.FORMATTER] * 2
    assert isinstance(workspace.decide(Action.REJECT, units_of(made), who="me"), Decided)
    assert path_in(workspace).read_bytes() == FIRST
    assert {view.status for view in edits(workspace)} == {Status.REJECTED}


@pytest.mark.parametrize("value", ["pending", "accepted"])
def test_a_setting_says_how_formatting_is_reviewed(workspace: Workspace, value: str) -> None:
    Configuration(workspace.root).set("review.formatting", value)
    write_and_format(workspace)
    look(workspace, "turn's end")
    formatted = edits(workspace)[1]
    assert formatted.edit.origin is Origin.FORMATTER
    assert formatted.status is (Status.ACCEPTED if value == "accepted" else Status.PENDING)


@pytest.mark.parametrize("why", ["other text", "not an agent's"])
def test_a_change_is_no_formatters_if_it_is_not_formatting_right_after_an_agents_edit(
    workspace: Workspace, why: str
) -> None:
    if why == "not an agent's":
        workspace.hooks.begin(replace(CALL, paths=("g.py",)))
        path_in(workspace).write_bytes(WRITTEN)
        look(workspace, "record")
    else:
        workspace.hooks.begin(CALL)
        path_in(workspace).write_bytes(WRITTEN)
        workspace.hooks.end(CALL)
    path_in(workspace).write_bytes(FORMATTED.replace(b"2", b"20") if why == "other text" else FORMATTED)
    workspace.hooks.pause("c")
    last = edits(workspace)[-1]
    assert (last.edit.origin, last.status) == (Origin.EXTERNAL, Status.ACCEPTED)


@pytest.mark.parametrize("end", ["stop", "prompt", "stop and a decision", "a later tool", "a tool that reads", "end"])
@pytest.mark.parametrize("call", [CALL, replace(CALL, is_named=False)], ids=["with an id", "without an id"])
def test_formatting_after_the_next_event_of_the_session_is_the_persons(
    workspace: Workspace, call: AgentCall, end: str
) -> None:
    hooks, other = workspace.hooks, replace(CALL, id="2", paths=("g.py",))
    if end == "end":
        hooks.begin(other)
    hooks.begin(call)
    path_in(workspace).write_bytes(WRITTEN)
    hooks.end(call)
    time.sleep(0.05)  # more than a tick of the file system's clock
    match end:
        case "prompt":
            hooks.note_turn(TurnInfo(session="c", began=0, prompt="go on"), has_begun=True)
        case "a later tool":
            hooks.begin(other)
        case "a tool that reads":
            hooks.begin(replace(other, paths=()))
        case "end":
            hooks.end(other)
        case _:
            hooks.pause("c")
    time.sleep(0.05)
    path_in(workspace).write_bytes(FORMATTED)
    if end == "a later tool":
        hooks.end(other)
    if end == "stop and a decision":
        workspace.decide(Action.ACCEPT, units_of(edits(workspace)[0]), who="me", on_external=OnExternal.KEEP)
    else:
        hooks.pause("c")
    last = edits(workspace)[-1]
    assert (last.edit.origin, last.status) == (Origin.EXTERNAL, Status.ACCEPTED)


@pytest.mark.parametrize("other", [("g.py",), ()])
def test_formatting_before_the_next_event_is_a_formatters_whenever_it_is_found(
    workspace: Workspace, other: tuple[str, ...]
) -> None:
    write_and_format(workspace)
    for number in range(3):  # none of these looks at the file
        call = replace(CALL, id=f"later {number}", paths=other)
        workspace.hooks.begin(call)
        workspace.hooks.end(call)
    look(workspace, "turn's end")
    assert [view.edit.origin for view in edits(workspace)] == [Origin.AGENT, Origin.FORMATTER]


@pytest.mark.skipif(
    PRETTIER is None and not IS_PRETTIER_REQUIRED,
    reason="prettier is neither on PATH nor below the folder that EDITLEDGER_NPM names",
)
@pytest.mark.parametrize("action", [Action.ACCEPT, Action.REJECT])
def test_what_prettier_makes_of_an_edit_belongs_to_it(workspace: Workspace, action: Action) -> None:
    assert PRETTIER is not None
    path = Path(workspace.root, "f.js")
    path.write_bytes(SCRIPT)
    look(workspace, "record")
    call = replace(CALL, paths=("f.js",))
    workspace.hooks.begin(call)
    path.write_bytes(MESSY_SCRIPT)
    workspace.hooks.end(call)
    subprocess.run([PRETTIER, "--no-config", "--write", path], check=True, capture_output=True)
    formatted = path.read_bytes()
    assert formatted != MESSY_SCRIPT
    look(workspace, "turn's end")
    _, made, last = edits(workspace)
    assert (last.edit.origin, last.edit.call) == (Origin.FORMATTER, made.edit.call)
    assert isinstance(workspace.decide(action, units_of(made), who="me"), Decided)
    decided = [Status.ACCEPTED, Status.PENDING] if action is Action.ACCEPT else [Status.REJECTED] * 2
    assert [view.status for view in edits(workspace)][1:] == decided
    assert path.read_bytes() == (formatted if action is Action.ACCEPT else SCRIPT)
