"""A look with a head start finds what one that began later finds, and leaves what came meanwhile to the next one."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from objstore import AgentCall, CallInfo, Origin, Workspace
from objstore.glance import WORTH_TWO
from objstore.journal import Journal
from tests.cli.desk import cold_cas
from tests.store.countdown import CountdownDisk, PowerCut
from tests.workspace.headstarts import GRACE_SECONDS, ran

NOBODY: Final = CallInfo(tool="", origin=Origin.EXTERNAL)
FOLDERS: Final = 21
FILES: Final = WORTH_TWO // (FOLDERS - 1)
"""In each folder: enough that a head start is worth it."""

LOOKED_SECONDS: Final = 0.5
"""In which the child has looked at everything."""

BEGUN: Final = """
import fcntl, os, signal, sys, time
from objstore import AgentCall, CallInfo, HeadStart, Origin, Workspace
root = sys.argv[1]
ahead = HeadStart.of_look(root)
assert ahead._begun is not None, "no head start was taken"
child = ahead._begun._shared._child
call = AgentCall(conversation="c", id="call NUMBER", tool="Bash", paths=None)
def change(path, content):
    with open(os.path.join(root, path), "w") as file:
        file.write(content)
def told(found):
    print(*sorted(f"{os.fsdecode(each.edit.path)}:{each.edit.tool or each.edit.origin}" for each in found))
"""
"""What a test does first, in a process of its own."""

END: Final = """
with ahead, Workspace.open(root, ahead=ahead) as workspace:
    told(workspace.agent_calls().end(call))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a workspace of thousands of files that were looked at."""
    root = tmp_path_factory.mktemp("large") / "ws #?%"
    for folder in range(FOLDERS):
        inner = root / f"d{folder}"
        inner.mkdir(parents=True)
        for number in range(FILES):
            (inner / str(number)).write_bytes(b"as it stood\n")
    time.sleep(GRACE_SECONDS)  # the system's clock is what makes a file old
    with Workspace.init(root) as workspace:
        workspace.record_changes(NOBODY)
    yield root
    shutil.rmtree(root)


def begun(number: int) -> str:
    """Return what begins a test of the call of that number."""
    return BEGUN.replace("NUMBER", str(number))


def shell(number: int) -> AgentCall:
    """Return a shell command of an agent."""
    return AgentCall(conversation="c", id=f"call {number}", tool="Bash", paths=None)


def test_it_finds_what_a_look_without_it_finds(large: Path) -> None:
    def moved(source: str, target: str) -> None:
        (large / source).rename(large / target)

    changes: list[tuple[Callable[[], object], list[str]]] = [
        (lambda: None, []),
        (lambda: (large / "d0/0").write_bytes(b"otherwise\n"), ["d0/0:Bash"]),
        (lambda: (large / "d20/new").write_bytes(b"new\n"), ["d20/new:Bash"]),
        ((large / "d20/new").unlink, ["d20/new:Bash"]),
        (lambda: (large / "d3/3").chmod(0o755), ["d3/3:Bash"]),
        (lambda: moved("d4/4", "d5/moved"), ["d5/moved:Bash"]),
        ((large / "in").mkdir, []),
        (lambda: (large / "in/it").write_bytes(b"new\n"), ["in/it:Bash"]),
        (lambda: moved("d6", "in/d6"), sorted(f"in/d6/{number}:Bash" for number in range(FILES))),
    ]
    for number, (change, expected) in enumerate(changes):
        with Workspace.open(large) as workspace:
            assert workspace.agent_calls().begin(shell(number)) == []
        change()
        assert ran(large, begun(number) + END) == expected
    with Workspace.open(large) as workspace:
        assert workspace.record_changes(NOBODY).edits == ()


def test_a_child_that_was_killed_is_not_missed(large: Path) -> None:
    (large / "d7/7").write_bytes(b"otherwise\n")
    assert ran(large, begun(100) + "os.kill(child, signal.SIGKILL)\n" + END) == ["d7/7:external"]


def test_what_changes_after_it_has_looked_is_the_next_looks(large: Path) -> None:
    since = (
        f"""
time.sleep({LOOKED_SECONDS})
change("d8/8", "before")
"""
        + END
    )
    assert ran(large, begun(101) + since) == []
    with Workspace.open(large) as workspace:
        (found,) = workspace.record_changes(NOBODY).edits
    assert found.edit.path == b"d8/8"


def test_it_is_not_believed_where_another_look_was_kept_since(large: Path) -> None:
    since = (
        f"""
time.sleep({LOOKED_SECONDS})
change("d9/9", "otherwise")
with Workspace.open(root) as other:
    told(other.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL)).edits)
change("d9/10", "otherwise")
"""
        + END
    )
    assert ran(large, begun(102) + since) == ["d9/9:external", "d9/10:external"]


def test_who_has_to_wait_for_others_looks_anew(large: Path) -> None:
    """A person saves a file while a tool that is about to begin waits: that is no work of the tool's."""
    waits = f"""
time.sleep({LOOKED_SECONDS})
with ahead, Workspace.open(root, ahead=ahead) as workspace:
    calls = workspace.agent_calls()
    held = os.open(calls._open.lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    def go_on(*_):
        change("d10/10", "typed meanwhile")
        fcntl.flock(held, fcntl.LOCK_UN)
    signal.signal(signal.SIGALRM, go_on)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    told(calls.begin(call))
"""
    assert ran(large, begun(103) + waits) == ["d10/10:external"]


def test_a_snapshot_holds_none_of_what_stood_before_a_killed_call_was_finished(large: Path) -> None:
    for step in count():
        with (
            suppress(PowerCut),
            Workspace.open(large, CountdownDisk(step)) as workspace,
            workspace.call(CallInfo(tool="test")) as call,
        ):
            call.write("d0/1", b"new at %d\n" % step)
            call.write("d20/1", b"new at %d\n" % step)
            call.commit()
        with closing(Journal(str(large), CountdownDisk(None))) as journal:
            if journal.unfinished():
                break
    assert (large / "d0/1").read_bytes() == b"as it stood\n"
    snapshot = f"""
time.sleep({LOOKED_SECONDS})
with ahead, Workspace.open(root, ahead=ahead) as workspace:
    taken = workspace.take_snapshot(who="me")
    print(*(change.path for change in workspace.snapshot_changes(taken.view.number)[0]))
"""
    assert ran(large, begun(8) + snapshot) == []
    assert (large / "d0/1").read_bytes() == b"new at %d\n" % step


def test_a_snapshot_holds_what_was_recorded_after_it_had_looked(large: Path) -> None:
    """Of a call that came while the child looked, it may have seen the one file before and the other after it."""
    snapshot = f"""
time.sleep({LOOKED_SECONDS})
with Workspace.open(root) as other, other.call(CallInfo(tool="test")) as made:
    made.write("d0/2", b"recorded\\n")
    made.write("d20/2", b"recorded\\n")
    made.commit()
with ahead, Workspace.open(root, ahead=ahead) as workspace:
    taken = workspace.take_snapshot(who="me")
    print(*(change.path for change in workspace.snapshot_changes(taken.view.number)[0]))
"""
    assert ran(large, begun(9) + snapshot) == []


def test_an_agents_hooks_record_what_its_shell_did(large: Path) -> None:
    def event(name: str) -> bytes:
        given = {"session_id": "s", "cwd": str(large / "d1"), "hook_event_name": name, "tool_name": "Bash"}
        return json.dumps(given | {"tool_input": {"command": "work"}, "tool_use_id": "one"}).encode()

    for name, content in (("PreToolUse", b"typed\n"), ("PostToolUse", b"worked\n")):
        (large / "d11/11").write_bytes(content)
        told = cold_cas("hook", "claude-code", folder=large, stdin=event(name))
        assert (told.status, told.out, told.err) == (0, b"", b"")
    with Workspace.open(large) as workspace:
        told_last = {(view.edit.tool, view.edit.path) for view in workspace.edits() if view.edit.path == b"d11/11"}
    assert told_last == {("", b"d11/11"), ("Bash", b"d11/11")}
    assert not (large / ".cas/hook.log").exists()


def test_commands_that_look_find_what_there_is(large: Path) -> None:
    (large / "d12/12").write_bytes(b"otherwise\n")
    recorded = cold_cas("-C", str(large), "record", "--json", folder=Path("/"))
    (edit,) = json.loads(recorded.out)["edits"]
    assert edit["file_path"] == str(large / "d12/12")
    first, second = (cold_cas("snapshot", "--json", folder=large / "d1") for _ in range(2))
    assert [json.loads(taken.out)["same_as_before"] for taken in (first, second)] == [False, True]


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        (["snapshot"], "True"),
        (["snapshot", "create", "-m", "x"], "True"),
        (["-C", ".", "record"], "True"),
        (["record", "--json"], "True"),
        (["snapshot", "list"], "False"),
        (["record", "d1"], "False"),
        (["status"], "False"),
        (["-C"], "False"),
        ([], "False"),
    ],
)
def test_it_is_taken_where_a_command_looks_at_everything(large: Path, words: list[str], begins: str) -> None:
    script = f"""
import os, sys
from cli.lookahead import look_ahead
os.chdir(sys.argv[1])
with look_ahead({words!r}) as ahead:
    print(ahead is not None and ahead._begun is not None)
"""
    assert ran(large, script) == [begins]


def test_none_is_taken_through_a_link(large: Path) -> None:
    store, elsewhere = large / ".cas", large.parent / "store"
    store.rename(elsewhere)
    store.symlink_to(elsewhere)
    script = """
import sys
from objstore import HeadStart
print(HeadStart.of_look(sys.argv[1])._begun, HeadStart.of_status(sys.argv[1])._begun)
"""
    try:
        assert ran(large, script) == ["None", "None"]
    finally:
        store.unlink()
        elsewhere.rename(store)
