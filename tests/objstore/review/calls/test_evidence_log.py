"""Whatever happens to the log of what hooks report, nothing crashes, and nothing of an agent's is accepted."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final

import pytest

from objstore import AgentCall, CallInfo, Origin, Status, Workspace
from objstore.model.results import EXTERNAL_CALL
from objstore.review.calls.evidence_log import EvidenceLog, log_of
from objstore.storage.transaction.journal import Journal
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.hooked_agents import evidence

CALL: Final = AgentCall(conversation="c", id="1", tool="Bash", paths=None, notes={"command": "make"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a workspace with a recorded file, in which a shell runs."""
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "a").write_bytes(b"1\n")
    with Workspace.init(root, UnsyncedDisk()) as workspace:
        workspace.record_changes(EXTERNAL_CALL)
        workspace.hooks.begin(CALL)
    return root


def events(root: Path) -> Path:
    """Return the path of the log."""
    return root / ".cas" / "agents" / "events"


DAMAGE: Final[dict[str, Callable[[bytes], bytes]]] = {
    "cut": lambda held: held[:-20],
    "doubled": lambda held: held + held.partition(b"\n")[2],
    "a line is missing": lambda held: b"\n".join([*held.split(b"\n")[:2], *held.split(b"\n")[3:]]),
    "a byte is flipped": lambda held: held[:90] + bytes([held[90] ^ 4]) + held[91:],
    "another version's": lambda held: held.replace(b"events 1 ", b"events 2 ", 1),
    "another workspace's": lambda held: b"events 1 1 00000000 1\n" + held.partition(b"\n")[2],
    "no text": lambda held: os.urandom(len(held)),
    "empty": lambda held: held[:0],
    "long": lambda held: held + b"x" * 100_000,
}


@pytest.mark.parametrize("how", [*DAMAGE, "gone", "a folder", "a link", "unreadable"])
@pytest.mark.parametrize("found_by", ["record", "call", "end", "prompt"])
def test_what_changed_while_the_log_was_damaged_is_never_accepted(root: Path, how: str, found_by: str) -> None:
    log = events(root)
    held = log.read_bytes()
    (root / "a").write_bytes(b"2\n")
    log.unlink()
    if how in DAMAGE:
        log.write_bytes(DAMAGE[how](held))
    elif how == "a folder":
        log.mkdir()
    elif how == "a link":
        log.symlink_to(root / "a")
    elif how == "unreadable":
        os.mkfifo(log)
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        try:
            if found_by == "record":
                workspace.hooks.notice(CallInfo(tool="record", origin=Origin.PERSON))
            elif found_by == "call":
                with workspace.call(CallInfo(tool="write", conversation="ours")) as call:
                    call.write("a", b"3\n")
                    call.commit()
            elif found_by == "end":
                workspace.hooks.end(CALL)
            else:
                workspace.hooks.pause("c")
        except Exception:  # noqa: BLE001 - a hook logs it, and the next event finds the change
            assert how in {"a folder", "a link", "unreadable"}
            workspace.record_changes(EXTERNAL_CALL)
        (first, *_) = workspace.history.edits()
        assert first.status is Status.PENDING


@pytest.mark.parametrize("how", [*DAMAGE, "gone"])
def test_after_damage_nothing_is_accepted_until_a_person_knows_of_it(root: Path, how: str) -> None:
    held = events(root).read_bytes()
    events(root).unlink()
    if how in DAMAGE:
        events(root).write_bytes(DAMAGE[how](held))
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.hooks.pause("c")
        with closing(Journal(str(root), UnsyncedDisk())) as journal:
            assert not log_of(journal).gap
        if how == "doubled":  # nothing is lost
            assert workspace.review.cautions().items == ()
            return
        (root / "a").write_bytes(b"of a shell whose line is lost?\n")
        workspace.hooks.pause("c")
        (caution,) = (known := workspace.review.cautions()).items
        assert str(caution.silence).startswith("part of what hooks reported was lost")
        workspace.review.acknowledge(known)
        (root / "a").write_bytes(b"mine\n")
        workspace.hooks.pause("c")
        assert [view.is_unattributed for view in workspace.history.edits()] == [True, False]
        assert workspace.review.cautions().items == ()


def test_after_damage_a_shell_that_is_reported_keeps_its_changes(root: Path) -> None:
    events(root).write_bytes(events(root).read_bytes()[:-20])
    shell = AgentCall(conversation="c", id="2", tool="Bash", paths=None)
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.hooks.pause("c")
        workspace.hooks.begin(shell)
        (root / "a").write_bytes(b"2\n")
        (made,) = workspace.hooks.end(shell)
        assert made.edit.origin is Origin.AGENT


@pytest.mark.parametrize("how", ["gone", "empty", "no text", "another version's", "another workspace's"])
def test_after_damage_a_late_end_of_a_forgotten_tool_claims_nothing_for_certain(root: Path, how: str) -> None:
    write = AgentCall(conversation="c", id="2", tool="Write", paths=("a",))
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.hooks.begin(write)
        (root / "a").write_bytes(b"2\n")
        workspace.hooks.end(write)
        workspace.hooks.pause("c")
        (made,) = workspace.history.edits()
        assert made.edit.conversation == "c"
    held = events(root).read_bytes()
    events(root).unlink()
    if how in DAMAGE:
        events(root).write_bytes(DAMAGE[how](held))
    with Workspace.open(root, UnsyncedDisk()) as workspace:
        workspace.hooks.notice(EXTERNAL_CALL)
        workspace.hooks.notice(EXTERNAL_CALL)
        (root / "a").write_bytes(b"mine\n")
        workspace.hooks.end(write)
        *_, newest = workspace.history.edits()
        assert newest.is_unattributed


def test_a_copy_of_a_workspace_does_not_take_the_calls_of_the_original_for_its_own(root: Path) -> None:
    shutil.copytree(root, root.parent / "copy")
    (root.parent / "copy" / "a").write_bytes(b"mine\n")
    with Workspace.open(root.parent / "copy", UnsyncedDisk()) as workspace:
        workspace.hooks.pause("another")
        (view,) = workspace.history.edits()
        assert view.is_unattributed
    root.rename(root.parent / "moved")
    assert evidence(root.parent / "moved", "open-")


@pytest.mark.parametrize("seed", range(10))
def test_what_is_said_last_of_each_thing_counts_however_often_the_log_is_rewritten(root: Path, seed: int) -> None:
    random = Random(seed)
    known = dict(evidence(root))
    with closing(Journal(str(root), UnsyncedDisk())) as one, closing(Journal(str(root), UnsyncedDisk())) as other:
        for number in range(600):
            log: EvidenceLog = log_of(random.choice((one, other)))
            name = f"thing-{random.randrange(20)}"
            if random.random() < 0.3:
                log.remove(name)
                known.pop(name, None)
            else:
                log.write(name, {"number": number, "text": "x" * random.randrange(1000)})
                known[name] = log.read(name)
        assert {name: log_of(one).read(name) for name in log_of(one).names("")} == known
        assert not log_of(one).gap
        assert events(root).stat().st_size < 200_000


def test_lines_of_several_processes_are_all_kept(root: Path) -> None:
    program = (
        "import sys\nfrom objstore.review.calls.evidence_log import log_of\n"
        "from objstore.storage.transaction.journal import Journal\n"
        "from objstore.disk.fs.disk import Disk\njournal = Journal(sys.argv[1], Disk())\n"
        "for number in range(100): log_of(journal).write(f'{sys.argv[2]}-{number}', {'text': 'x' * 900})\n"
    )
    folder = str(Path(__file__).parents[4])
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(root), str(number)], cwd=folder) for number in range(3)
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    assert len(evidence(root, "0-", "1-", "2-")) == 300
    with closing(Journal(str(root), UnsyncedDisk())) as journal:
        assert not log_of(journal).gap
