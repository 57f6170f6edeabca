"""kill -9 of real processes: what was acknowledged is there, calls are whole, and status agrees with the disk."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Final

import pytest

from objstore import Workspace
from tests.store.writer import sums

KILLS: Final = int(os.environ.get("CAS_KILLS", "25"))
HOUSE: Final = Path(__file__).resolve().parents[2]


def killed(root: Path, seed: int) -> list[dict[str, Any]]:
    """Let a writer work for a random while, kill it, and return what it had acknowledged."""
    chance = random.Random(seed)
    command = [sys.executable, "-m", "tests.store.writer", str(root), str(seed)]
    with subprocess.Popen(command, cwd=HOUSE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        lines = _lines_until_killed(writer, writer.stdout, chance)
    assert writer.returncode == -signal.SIGKILL
    # The last line may be torn; then its call was not acknowledged.
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def _lines_until_killed(writer: subprocess.Popen[bytes], output: IO[bytes], chance: random.Random) -> list[bytes]:
    lines = [output.readline() for _ in range(chance.randrange(1, 25))]
    # A call takes a millisecond or two, so this falls anywhere in one.
    for _ in range(chance.randrange(20_000)):
        pass
    writer.send_signal(signal.SIGKILL)
    return [*lines, *output]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Workspace.init(tmp_path).close()
    return tmp_path


def test_whenever_a_writer_is_killed_nothing_acknowledged_is_lost_and_calls_are_whole(root: Path) -> None:
    edits, decisions = 0, 0
    for seed in range(KILLS):
        acknowledged = killed(root, seed)
        with Workspace.open(root) as workspace:
            recorded = {edit.seq: edit for edit in workspace.edits()}
            taken = {view.decision.number for view in workspace.decisions()}
            told = {seq for call in acknowledged for seq in call["edits"]}
            decided = {call["decision"] for call in acknowledged if call["decision"]}
            assert told <= set(recorded), "an acknowledged edit is gone"
            assert decided <= taken, "an acknowledged decision is gone"
            assert set(range(1, edits + 1)) <= set(recorded), "an edit of an earlier writer is gone"
            new = {seq for seq in recorded if seq > edits} - told
            assert len({(recorded[seq].edit.conversation, recorded[seq].edit.call) for seq in new}) <= 1
            assert len(taken) - decisions - len(decided) <= 1
            if not new and len(taken) - decisions == len(decided):
                assert sums(root) == acknowledged[-1]["files"], "a file is not as the last call had left it"
            assert workspace.status().external == ()
            edits, decisions = max(recorded, default=0), len(taken)
            for view in recorded.values():
                for state in (view.edit.before, view.edit.after):
                    assert state is None or workspace.blob(state.blob) is not None
    assert edits > KILLS
    assert decisions > 0
