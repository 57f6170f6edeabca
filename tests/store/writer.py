"""A process to be killed: it edits and decides without end, and acknowledges each call on its standard output.

Run as `python -m tests.store.writer FOLDER SEED`. One JSON object a line: the edits, the number of the decision
(0: none) and the SHA-256 of each file as it stands when the call has returned. `--rotate BYTES` makes segments that
small; `--unsynced` leaves out every sync, to show that what looks for losses finds them.
"""

import argparse
import hashlib
import json
import random
import sys
from pathlib import Path
from typing import Final

from objstore import Action, Call, CallInfo, Decided, OnExternal, Unit, Workspace, segments
from objstore.disk import Disk
from tests.store.scenes import files

NAMES: Final = ("a.txt", "b.txt", "folder/c.txt", "folder/d.txt")


def sums(root: Path) -> dict[str, str]:
    """Return the SHA-256 and the permission bits of each file, by path."""
    return {path: f"{hashlib.sha256(content).hexdigest()} {mode:o}" for path, (content, mode) in files(root).items()}


class UnsyncedDisk(Disk):
    """Says that it has synced, and has not."""

    def sync(self, fd: int, name: str) -> None:
        pass


def main(words: list[str]) -> None:
    """Go on until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("--rotate", type=int, default=segments.ROTATE_AT)
    parser.add_argument("--unsynced", action="store_true")
    asked = parser.parse_args(words)
    root: Path = asked.root
    vars(segments)["ROTATE_AT"] = asked.rotate
    chance = random.Random(asked.seed)
    with Workspace.open(root, UnsyncedDisk() if asked.unsynced else Disk()) as workspace:
        while True:
            seqs, decision = _reject(workspace, chance) if chance.random() < 0.3 else _edit(workspace, chance)
            told = {"edits": seqs, "decision": decision, "files": sums(root)}
            sys.stdout.write(json.dumps(told) + "\n")
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
    edits = workspace.edits()[-20:]
    if not edits:
        return [], 0
    edit = chance.choice(edits)
    units = [Unit(edit.seq, hunk) for hunk in range(len(edit.units))]
    action = chance.choice((Action.REJECT, Action.ACCEPT, Action.RESET))
    outcome = workspace.decide(action, units, cascade=action is Action.REJECT, on_external=OnExternal.ABORT)
    return [], outcome.number if isinstance(outcome, Decided) else 0


if __name__ == "__main__":
    main(sys.argv[1:])
