"""A process to be killed: it edits and decides endlessly, and acknowledges each call on its standard output.

Run as `python -m tests.support.kill_target FOLDER SEED`. One JSON object a line: the edits, the number of the decision
(0: none), the snapshots that there are and the SHA-256 of each file when the call has returned.
`--rotate BYTES` makes segments that small; `--keeps` takes snapshots, brings them back and gives them up between the
calls, and `--lets-go` lets history expire, sweeps and purges; `--unsynced` leaves out every sync, to show that what
looks for losses finds them.
"""

import argparse
import hashlib
import json
import os
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from objstore import (
    Action,
    Call,
    CallInfo,
    Decided,
    EditExpired,
    EditTakenOut,
    EditView,
    FileChanged,
    NoSuchName,
    OnExternal,
    PurgeRefused,
    SnapshotIncomplete,
    Status,
    Unit,
    Workspace,
)
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.disk.fs.disk import Disk
from objstore.storage.log import segments
from tests.support.crash_scenarios import files

NAMES: Final = ("a.txt", "b.txt", "folder/c.txt", "folder/d.txt")
SHARE: Final = 0.08
"""Share of calls that take snapshots, and of those that free space, if requested."""

SNAPSHOTS: Final = 3
"""The maximal number of snapshots that are kept."""


def sums(root: Path) -> dict[str, str]:
    """Return the SHA-256 and the permission bits of each file, by path."""
    return {path: f"{hashlib.sha256(content).hexdigest()} {mode:o}" for path, (content, mode) in files(root).items()}


class UnsyncedDisk(Disk):
    """A disk that reports syncs as done without doing them."""

    def sync(self, fd: int, name: str) -> None:
        pass


def main(words: list[str]) -> None:
    """Run until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("--rotate", type=int, default=segments.ROTATE_AT)
    parser.add_argument("--keeps", action="store_true")
    parser.add_argument("--lets-go", action="store_true")
    parser.add_argument("--unsynced", action="store_true")
    asked = parser.parse_args(words)
    root: Path = asked.root
    vars(segments)["ROTATE_AT"] = asked.rotate
    chance = random.Random(asked.seed)
    with Workspace.open(root, UnsyncedDisk() if asked.unsynced else Disk()) as workspace:
        while True:
            if asked.keeps and chance.random() < SHARE:
                seqs, decision = _keep(workspace, chance)
            elif asked.lets_go and chance.random() < SHARE:
                seqs, decision = [], _free_space(workspace, chance)
            else:
                seqs, decision = _reject(workspace, chance) if chance.random() < 0.3 else _edit(workspace, chance)
            kept = [view.number for view in workspace.snapshots.all()]
            report = {"edits": seqs, "decision": decision, "snapshots": kept, "files": sums(root)}
            sys.stdout.write(json.dumps(report) + "\n")
            sys.stdout.flush()


def _edit(workspace: Workspace, chance: random.Random) -> tuple[list[int], int]:
    with workspace.call(CallInfo(tool="t", conversation=f"c{chance.randrange(5)}")) as call:
        for name in chance.sample(NAMES, chance.randrange(1, len(NAMES) + 1)):
            _change(call, name, chance)
        return [edit.seq for edit in call.commit().edits], 0


def _change(call: Call, name: str, chance: random.Random) -> None:
    if not call.exists(name):
        call.write(name, b"".join(b"line %d\n" % i for i in range(chance.randrange(200))))
    elif chance.random() < 0.1:
        call.delete(name)
    elif chance.random() < 0.1 and not call.exists(f"{name}.moved"):
        call.move(name, f"{name}.moved")
    else:
        lines = call.read(name).bytes.split(b"\n")
        lines[chance.randrange(len(lines))] = b"%d" % chance.randrange(10**6)
        call.write(name, b"\n".join(lines), mode=chance.choice((0o644, 0o755)))


def _reject(workspace: Workspace, chance: random.Random) -> tuple[list[int], int]:
    edits = [edit for edit in workspace.history.edits()[-20:] if edit.expired is None]
    if not edits:
        return [], 0
    action = chance.choice((Action.REJECT, Action.ACCEPT, Action.RESET))
    return [], _decided(workspace, action, [chance.choice(edits)])


def _decided(workspace: Workspace, action: Action, edits: list[EditView]) -> int:
    """Decide whole edits; return the number of the decision (0: it was none)."""
    units = [Unit(edit.seq, hunk) for edit in edits for hunk in range(len(edit.units))]
    try:
        outcome = workspace.decide(action, units, cascade=action is Action.REJECT, on_external=OnExternal.ABORT)
    except (EditExpired, EditTakenOut):  # another process has let it go since it was looked up, or taken it out
        return 0
    return outcome.number if isinstance(outcome, Decided) else 0


def _keep(workspace: Workspace, chance: random.Random) -> tuple[list[int], int]:
    """Take or restore a snapshot; return the edits of the restore and the number of its decision (0: none)."""
    snapshots = [view.number for view in workspace.snapshots.all()]
    # Other writers may have changed what was looked at, and a purge takes the first snapshot again, which is another
    # one then.
    with suppress(FileChanged, SnapshotIncomplete, NoSuchName):
        if snapshots and chance.random() < 0.4:
            me = f"writer {os.getpid()}"
            restored = workspace.snapshots.restore(chance.choice(snapshots), who=me).outcome
            if restored is None or not restored.edits:
                return [], 0
            acts = [view.decision for view in workspace.history.decisions() if view.decision.who == me]
            return [edit.seq for edit in restored.edits], acts[-1].number
        if len(snapshots) < SNAPSHOTS:
            workspace.snapshots.take(who="writer")
        else:
            workspace.snapshots.delete(snapshots[:1], who="writer")
    return [], 0


def _free_space(workspace: Workspace, chance: random.Random) -> int:
    """Expire and collect history, purge a state, or decide edits first; return the number of the decision."""
    edits = [view for view in workspace.history.edits() if view.expired is None]
    match chance.randrange(4):
        case 0:
            workspace.retention.collect(RetentionLimits(older_than=0), thorough=chance.random() < 0.5)
        case 1:
            before = [view.edit.before.blob for view in edits[-20:] if view.edit.before is not None]
            with suppress(PurgeRefused):  # a file holds it
                workspace.retention.purge(chance.sample(before, min(1, len(before))), force=True)
        case _:
            return _decided(workspace, Action.ACCEPT, [view for view in edits if view.status is Status.PENDING])
    return 0


if __name__ == "__main__":
    main(sys.argv[1:])
