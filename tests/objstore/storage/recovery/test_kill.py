"""Test kill -9 of real processes: acknowledged calls exist, calls are whole, and the status matches the disk."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Final

from objstore import Workspace, blob_id
from tests.support.faulty_disk import WHOLE
from tests.support.kill_target import sums

KILLS: Final = int(os.environ.get("CAS_KILLS", "60" if WHOLE else "6"))
KILLS_IN_ONE: Final = 3
"""Kills in one workspace, each of a writer that goes on where the last one was killed."""

HOUSE: Final = Path(__file__).resolve().parents[4]


def killed(root: Path, seed: int) -> list[dict[str, Any]]:
    """Let a writer work for a random time, kill it, and return what it had acknowledged."""
    chance = random.Random(seed)
    command = [sys.executable, "-m", "tests.support.kill_target", str(root), str(seed)]
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


class Survey:
    """Checks a workspace after each kill, and remembers the length of its history."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.edits = self.decisions = 0
        Workspace.init(root).close()

    def look(self, acknowledged: list[dict[str, Any]]) -> None:
        with Workspace.open(self.root) as workspace:
            recorded = {edit.seq: edit.edit for edit in workspace.history.edits()}
            taken = {view.decision.number for view in workspace.history.decisions()}
            reported = {seq for call in acknowledged for seq in call["edits"]}
            decided = {call["decision"] for call in acknowledged if call["decision"]}
            assert reported <= set(recorded), "an acknowledged edit is gone"
            assert decided <= taken, "an acknowledged decision is gone"
            assert set(range(1, self.edits + 1)) <= set(recorded), "an edit of an earlier writer is gone"
            unsaid = [recorded[seq] for seq in recorded if seq > self.edits and seq not in reported]
            calls = {(edit.conversation, edit.call) for edit in unsaid}
            in_flight = len(calls) + len(taken) - self.decisions - len(decided)
            assert in_flight in {0, 1}, "only the call that was cut off may be there unsaid"
            if not in_flight:
                assert sums(self.root) == acknowledged[-1]["files"], "a file is not as the last call had left it"
            assert workspace.review.status().external == ()
            for edit in recorded.values():
                if edit.seq > self.edits and edit.after is not None:
                    assert blob_id(workspace.history.blob(edit.after.blob)) == edit.after.blob
            self.edits, self.decisions = max(recorded, default=0), len(taken)


def test_whenever_a_writer_is_killed_nothing_acknowledged_is_lost_and_calls_are_whole(tmp_path: Path) -> None:
    surveys: list[Survey] = []
    for seed in range(KILLS):
        if seed % KILLS_IN_ONE == 0:
            (tmp_path / str(seed)).mkdir()
            surveys.append(Survey(tmp_path / str(seed)))
        surveys[-1].look(killed(surveys[-1].root, seed))
    assert all(survey.edits for survey in surveys)
    assert any(survey.decisions for survey in surveys)
