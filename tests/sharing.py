"""Sharing: two people and two agents work in two workspaces with one bucket, and some of them are killed now and then.

Run as `python -m tests.sharing [--seconds N] [--seed N] [--bucket URL]` (`make sharing`). Each workspace has an agent
that edits, and a person who pushes, pulls, carries out what the other decided, and decides on what is pending here and
there. In the end, when nothing waits any more: every edit that was acknowledged is in its store and in a clone from the
bucket, the files are as recorded, fsck is clean, each decision of the log has one answer, each that was carried out is
one decision in the journal, and no unit is decided twice. `tests/test_sharing.py` is the slice in `make test`.
"""

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Final

from objstore import (
    Action,
    CallInfo,
    CasError,
    EditExpired,
    EditFilter,
    EditTakenOut,
    RemoteDecided,
    RemoteFailed,
    Status,
    StoreLocked,
    Surface,
    Unit,
    Workspace,
    check_store,
    clone_remote,
)
from objstore.disk.fs.disk import Disk
from objstore.model.records import Decision
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.remote.bucket import open_bucket
from objstore.upkeep.remote.decisions import Ledger, RemoteDecision, Result, read_log, settle
from objstore.upkeep.remote.keys import lane_of

__all__ = ["main"]

FORKED: Final = get_context("fork")
NAMES: Final = ("left", "right")
PARTS: Final = ("agent", "person")
FILES: Final = 4
LINES: Final = 40
TEAM: Final = "team"
ROUNDS: Final = 20
"""Rounds of pulls after which nothing may wait any more."""

_OVERTAKEN: Final = (RemoteDecided, StoreLocked, EditExpired, EditTakenOut)
"""What happens to people who work at the same time; a retry or the next choice is the answer."""


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign; return 0 if nothing was lost and each unit was decided once, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bucket", default="")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="cas-sharing-") as folder:
        found = list(_campaign(Path(folder), given.seconds, given.seed, given.bucket))
    for fault in found:
        print(f"FAULT {fault}")
    return 1 if found else 0


def _campaign(folder: Path, seconds: float, seed: int, url: str) -> Iterator[str]:
    """Let all work, and yield what is wrong in the end."""
    url = url or (folder / "bucket").as_uri()
    roots = [folder / name for name in NAMES]
    prepared = FORKED.Process(target=_prepare, args=(roots, url))
    prepared.start()
    prepared.join()
    yield from _worked(roots, seconds, random.Random(seed))
    for _ in range(ROUNDS):
        if not sum(map(_exchange, roots)):
            break
    else:
        yield "decisions still wait"
    ledger = settle(read_log(open_bucket(url), 0))
    answers = Counter(each.result.value for each in ledger.answers.values())
    edits = 0
    for root in roots:
        edits += len(_acknowledged(root))
        yield from _faults(root, url, ledger)
    print(
        f"{edits} edits, {ledger.last} entries: {len(ledger.valid)} decisions, {dict(answers)}, {len(ledger.void)} void"
    )
    refused = Counter(
        re.sub(r"[0-9]+", "N", each.reason) for each in ledger.answers.values() if each.result is Result.REFUSED
    )
    for reason, count in refused.most_common():
        print(f"{count} refused: {reason}")


def _prepare(roots: list[Path], url: str) -> None:
    """Make the workspaces, in a process of its own: no process may be forked from one that has used obstore."""
    for root in roots:
        root.mkdir()
        for number in range(FILES):
            (root / f"{number}.txt").write_text("".join(f"line {line}\n" for line in range(LINES)))
        Workspace.init(root).close()
        with Workspace.open(root) as workspace:
            workspace.remotes.add(TEAM, url)


def _worked(roots: list[Path], seconds: float, chance: random.Random) -> Iterator[str]:
    """Run everybody, kill one now and then and start it again; yield who ended with an error."""
    until = time.monotonic() + seconds
    running = {(part, root): _started(part, root, chance) for root in roots for part in PARTS}
    kills = 0
    while time.monotonic() < until:
        time.sleep(min(chance.uniform(1.0, 3.0), max(0.0, until - time.monotonic())))
        who = chance.choice(list(running))
        if not running[who].is_alive():
            break
        running[who].kill()
        running[who].join()
        kills += 1
        running[who] = _started(*who, chance)
    for (part, root), process in running.items():
        if not process.is_alive():
            yield f"the {part} of {root.name} ended with {process.exitcode}"
        process.kill()
        process.join()
    print(f"{kills} kills")


def _started(part: str, root: Path, chance: random.Random) -> ForkProcess:
    process = FORKED.Process(target=_work, args=(part, root, random.Random(chance.random())))
    process.start()
    return process


# ---- those who work


def _work(part: str, root: Path, chance: random.Random) -> None:
    """Work as an agent or a person until killed."""
    while True:
        try:
            with Workspace.open(root) as workspace:
                if part == "agent":
                    _edit(workspace, root, chance)
                else:
                    _review(workspace, root, chance)
        except _OVERTAKEN:
            continue


def _edit(workspace: Workspace, root: Path, chance: random.Random) -> None:
    """Change a line of a file, and note the number of the edit once it is recorded."""
    name, token = f"{chance.randrange(FILES)}.txt", f"{chance.getrandbits(64):016x}"
    with workspace.call(CallInfo(tool="edit", conversation="agent")) as call:
        lines = (root / name).read_text().splitlines(keepends=True)
        lines[chance.randrange(len(lines))] = f"{token}\n"
        call.write(name, "".join(lines).encode())
        made = call.commit()
    with _notes(root).open("a") as notes:
        notes.writelines(f"{edit.seq}\n" for edit in made.edits)
    time.sleep(chance.uniform(0, 0.05))


def _review(workspace: Workspace, root: Path, chance: random.Random) -> None:
    """Exchange, then decide on an edit of the other store, and now and then on one of this one."""
    _exchange(root)
    who = f"person of {root.name}"
    action = chance.choice([Action.ACCEPT, Action.REJECT])
    other = next(name for name in NAMES if name != root.name)
    found = workspace.remotes.member(other)
    if found is not None:
        with Workspace.open(workspace.remotes.mirror(*found)) as mirror:
            units = _pending(mirror, chance)
        if units:
            workspace.remote_decisions.decide(*found, action, units, who=who, reason="because")
    if chance.random() < 0.3:
        units = _pending(workspace, chance)
        if units:
            workspace.decide(action, [*units], who=who, shown=units)


def _pending(workspace: Workspace, chance: random.Random) -> dict[Unit, Status]:
    """Return the units of a pending edit with their statuses; none if nothing is pending."""
    views = workspace.history.edits(EditFilter(status=Status.PENDING))
    if not views:
        return {}
    view = chance.choice(views)
    return {Unit(view.seq, hunk): status for hunk, status in enumerate(view.units) if status is Status.PENDING}


def _exchange(root: Path) -> int:
    """Push, pull, and carry out what the other decided; return how many decisions were answered or wait."""
    with Workspace.open(root) as workspace:
        try:
            workspace.remotes.push(TEAM)
        except RemoteFailed as error:
            if "created by another push" not in str(error):
                raise
        workspace.remotes.pull(TEAM)
        return len(workspace.remote_decisions.carry(TEAM))


# ---- what must hold


def _notes(root: Path) -> Path:
    return root.with_name(f"{root.name}.acknowledged")


def _acknowledged(root: Path) -> list[int]:
    return [int(line) for line in _notes(root).read_text().split()] if _notes(root).exists() else []


def _faults(root: Path, url: str, ledger: Ledger) -> Iterator[str]:
    """Yield what is wrong with a store, its files, its decisions, or its copy in the bucket."""
    with Workspace.open(root) as workspace:
        seqs = {view.seq for view in workspace.history.edits()}
        if lost := set(_acknowledged(root)) - seqs:
            yield f"{root.name} lost the edits {sorted(lost)}"
        if changed := workspace.review.status().external:
            yield f"{root.name} has files that are not as recorded: {[each.path for each in changed]}"
        workspace.remotes.push(TEAM)
    yield from (f"{root.name}: {fault}" for fault in check_store(str(root)).faults)
    yield from _decision_faults(root, ledger)
    copy = root.with_name(f"{root.name}-copy")
    clone_remote(url, str(copy), store=root.name)
    if _segments(copy) != _segments(root):
        yield f"the clone of {root.name} has another log"
    for path in copy.glob("*.txt"):
        if path.read_bytes() != (root / path.name).read_bytes():
            yield f"the clone of {root.name} has another {path.name}"


def _carries_out(made: Decision, asked: RemoteDecision) -> bool:
    return (made.who, made.action) == (asked.who, asked.action) and not asked.units.keys().isdisjoint(
        unit for unit, _ in made.verdicts
    )


def _is_made(action: Action, unit: Unit, made: Sequence[Decision]) -> bool:
    """Return whether anybody made this decision on a unit: then there was nothing left to carry out."""
    return any(each.action is action and unit in dict(each.verdicts) for each in made)


def _decision_faults(root: Path, ledger: Ledger) -> Iterator[str]:
    with closing(Journal(str(root), Disk())) as journal, journal.reading() as store:
        lane = lane_of(store.log.store)
        places = map(store.index.decisions.place, range(1, store.index.numbers.next_decision()))
        records = [store.record(place)[0] for place in places if place is not None]
    made = [each for each in records if isinstance(each, Decision)]
    if unanswered := ledger.open(lane):
        yield f"{root.name} has not answered {sorted(unanswered)}"
    carried = [
        number
        for number, answer in ledger.answers.items()
        if answer.result is Result.CARRIED and ledger.valid[number].lane == lane
    ]
    remote = [each for each in made if each.via == Surface.REMOTE.value]
    for decision in map(ledger.valid.__getitem__, carried):
        own = next((each for each in remote if _carries_out(each, decision)), None)
        if own is not None:
            remote.remove(own)
        elif not all(_is_made(decision.action, unit, made) for unit in decision.units):
            yield f"{root.name} answered as carried out, and never made: {decision}"
    if remote:
        yield f"{root.name} made decisions that were not asked for, or made them twice: {remote}"
    counts = Counter(unit for each in made for unit, _ in each.verdicts)
    if twice := [str(unit) for unit, count in counts.items() if count > 1]:
        yield f"{root.name} decided twice on {', '.join(twice)}"


def _segments(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / ".cas" / "segments").iterdir()}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CasError as error:
        sys.exit(f"{type(error).__name__}: {error}")
