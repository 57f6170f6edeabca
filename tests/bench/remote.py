"""What sharing a store costs: push, fetch and pull against plain obstore of the same bytes, and requests of each.

The bucket is a folder, and then one of SeaweedFS on loopback if that is installed, so that no network hides anything;
`CAS_BENCH_BUCKET` names another one, which has to be empty. A plain copy sends and fetches the same bytes in the same
pieces, six at once, and hashes nothing. `CAS_BENCH_STORE` names a workspace that an earlier run has kept: it is pushed
as it is, and not made again.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import obstore
from obstore.store import from_url

from objstore import Action, Hunk, Seq, Status, Unit, Workspace
from objstore.disk.fs.disk import Disk
from objstore.storage.log.segment_files import segment_name
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.remote.bucket import local_path, open_bucket
from objstore.upkeep.remote.decisions import Ledger, RemoteDecision, append, new_nonce
from objstore.upkeep.remote.keys import Lane, lane_of
from objstore.upkeep.remote.pull import fetch, mirror
from objstore.upkeep.remote.push import Pushed, push
from objstore.upkeep.remote.waiting import in_parallel
from tests.bench.bulk import Bulk
from tests.bench.measure import Report, timed_in_turn
from tests.support.buckets import FailingBucket
from tests.support.crash_scenarios import write
from tests.support.object_server import has_server, running_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from objstore.upkeep.remote.heads import Head, Seen

__all__ = ["bench_remote"]

EDITS: Final = int(os.environ.get("CAS_BENCH_EDITS", "100000"))
BUCKET: Final = os.environ.get("CAS_BENCH_BUCKET", "")
STORE: Final = os.environ.get("CAS_BENCH_STORE", "")
VOLUME: Final = 1_000
"""Megabytes of a volume of SeaweedFS: enough for all rounds of a million edits."""

EDITS_A_CALL: Final = 100
FILES: Final = 400
LINES: Final = 40
ROUNDS: Final = 3
DECISIONS: Final = 50
DECIDERS: Final = 8
OPENINGS: Final = 40

_PieceAt: TypeAlias = tuple[str, int, int]
"""A segment's file, and the offset and the size of a piece of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Took:
    """What a copy took."""

    seconds: float
    processor: float  # seconds of this process, as user and system


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copied:
    """One round of copies."""

    pushed: Pushed
    took: dict[str, _Took]
    requests: dict[str, int]


def bench_remote(report: Report) -> None:
    """Push and pull a long history, decide on it, and record edits in a workspace that has a remote."""
    # In this file's folder, not in /tmp: that may be a memory file system.
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix="bench-") as scratch, ExitStack() as running:
        folder = Path(scratch)
        root = Path(STORE) if STORE else folder / "desk"
        if not root.exists():
            _history(root, EDITS)
        buckets = {
            name: FailingBucket(open_bucket(url, makes_folder=True)) for name, url in _buckets(folder, running).items()
        }
        pushed = [_measure_copies(name, root, folder / name, each, report) for name, each in buckets.items()]
        bucket, done = [*buckets.values()][-1], pushed[-1]
        _measure_check(folder, bucket, done.head, report)
        again = _measure_requests(root, bucket, done, report)
        took = _taken(lambda: _mirror(folder, bucket, again.head))
        report.ratio("fetching and checking one more edit, seconds of processor time", took.processor, "-")
        _measure_contention(FailingBucket(open_bucket(f"{bucket.url}/contended")), report)
        _measure_edits(folder, report)


def _buckets(folder: Path, running: ExitStack) -> dict[str, str]:
    """Return the URL of each bucket by its name, and set the environment in which it is reached."""
    if BUCKET:
        return {"bucket": BUCKET}
    found = {"folder": (folder / "bucket").as_uri()}
    if has_server():
        server = running.enter_context(running_server(folder / "server", megabytes=VOLUME))
        os.environ |= server.settings()
        found["SeaweedFS"] = f"{server.url}/bench"
    return found


def _history(root: Path, edits: int) -> None:
    """Record edits of one line each in small files."""
    root.mkdir()
    bulk, chance = Bulk(root), random.Random(7)
    texts = {f"{number}.py": [b"line_%d = 0\n" % line for line in range(LINES)] for number in range(FILES)}
    for name, lines in texts.items():
        bulk.begin(name, b"".join(lines))
    names = list(texts)
    for first in range(0, edits, EDITS_A_CALL):
        call: list[tuple[str, bytes, Hunk]] = []
        for number in range(first, min(first + EDITS_A_CALL, edits)):
            name, at = names[number % FILES], chance.randrange(LINES)
            texts[name][at] = b"value_%d = %d\n" % (number, chance.randrange(10**9))
            call.append((name, b"".join(texts[name]), Hunk(at, 1, at, 1)))
        bulk.call(f"session {first // 5_000}", call)
    bulk.close()


def _measure_copies(name: str, root: Path, folder: Path, bucket: FailingBucket, report: Report) -> Pushed:
    """Measure the whole store, in turn with plain copies of its pieces."""
    folder.mkdir()
    plain = _Plain(f"{bucket.url.rstrip('/')}/plain")
    rounds = [_copied(root, folder, number, bucket, plain) for number in range(ROUNDS)]
    done = rounds[-1].pushed
    pieces, size = len(done.head.pieces()), done.head.size / 1e6
    report.ratio(f"{name}: the store, MB", size, "-")
    report.ratio(f"{name}: edits of it", done.head.edits, "-")
    seconds: dict[str, float] = {}
    for what in rounds[0].took:
        seconds[what] = min(each.took[what].seconds for each in rounds)
        report.ratio(f"{name}: {what}, MB a second", size / seconds[what], "-")
        processor = min(each.took[what].processor for each in rounds)
        report.ratio(f"{name}: {what}, seconds of processor time", processor, "-")
    wanted = "-" if name == "folder" else ">= 0.7"  # of an engine that exists
    report.ratio(f"{name}: push / plain put, of throughput", seconds["plain put"] / seconds["push"], wanted)
    report.ratio(f"{name}: fetch / plain get, of throughput", seconds["plain get"] / seconds["fetch"], wanted)
    report.ratio(f"{name}: requests of the first push", rounds[-1].requests["push"], f"<= {pieces + 3}")
    report.ratio(f"{name}: requests of the first fetch", rounds[-1].requests["fetch"], f"<= {pieces}")
    return done


def _measure_check(folder: Path, bucket: FailingBucket, head: Head, report: Report) -> None:
    """Measure the checks that a pull makes of all that it fetched, with the index that it builds."""
    (folder / "members").mkdir()
    fetch(bucket, head, str(folder / "incoming"), Disk())
    took = _taken(lambda: _mirror(folder, bucket, head))
    report.ratio("checking what was fetched, and its index, edits a second", head.edits / took.seconds, "-")
    report.ratio("the same, seconds of processor time", took.processor, "-")


def _mirror(folder: Path, bucket: FailingBucket, head: Head) -> None:
    mirror(bucket, head, str(folder / "members" / "desk"), str(folder / "incoming"), Disk())


def _copied(root: Path, folder: Path, number: int, bucket: FailingBucket, plain: _Plain) -> _Copied:
    """Push the store to a lane of its own and fetch it from there, in turn with plain copies of its pieces."""
    incoming, copy = folder / f"incoming-{number}", folder / f"copy-{number}"
    lane = Lane(f"{_own_lane(root)}-{number:08x}")
    pushed: list[Pushed] = []
    bucket.requests.clear()
    took = {"push": _taken(lambda: pushed.append(_push(root, bucket, lane)))}
    requests, head = {"push": bucket.count}, pushed[0].head
    pieces = list(_pieces(root, head))
    took["plain put"] = _taken(lambda: plain.put_all(number, pieces))
    bucket.requests.clear()
    took["fetch"] = _taken(lambda: fetch(bucket, head, str(incoming), Disk()))
    requests["fetch"] = bucket.count
    took["plain get"] = _taken(lambda: plain.get_all(number, pieces, copy))
    for each in (incoming, copy):
        shutil.rmtree(each)
    return _Copied(pushed=pushed[0], took=took, requests=requests)


def _measure_requests(root: Path, bucket: FailingBucket, done: Pushed, report: Report) -> Pushed:
    """Count what one more edit and decisions ask of the bucket, and return the push of that edit."""
    with Workspace.open(root) as workspace:
        write(workspace, "more.py", b"more\n")
    bucket.requests.clear()
    again = _push(root, bucket, done.head.lane, done.seen)
    report.ratio("requests of a push of one more edit", bucket.count, "<= 3")
    report.ratio("bytes of that push and its head", again.size + len(again.seen.body), "-")
    ledger = Ledger()
    taken: list[float] = []
    bucket.requests.clear()
    for number in range(DECISIONS):
        decision = RemoteDecision(
            lane=done.head.lane,
            action=Action.ACCEPT,
            units={Unit(Seq(number + 1), 1): Status.PENDING},
            who="bench",
            nonce=new_nonce(),
        )
        began = time.perf_counter_ns()
        append(bucket, decision, ledger)
        taken.append((time.perf_counter_ns() - began) / 1e6)
    report.ratio("requests of a decision whose log was read", bucket.count / DECISIONS, "<= 1")
    report.times("that decision", taken)
    return again


def _measure_contention(bucket: FailingBucket, report: Report) -> None:
    """Let several stores decide at once on units of their own: they contend for the next number of the log."""

    def decide(writer: int) -> None:
        ledger = Ledger()
        for number in range(DECISIONS):
            unit = Unit(Seq(writer * DECISIONS + number + 1), 1)
            decision = RemoteDecision(
                lane=Lane("0" * 32), action=Action.ACCEPT, units={unit: Status.PENDING}, who="bench", nonce=new_nonce()
            )
            append(bucket, decision, ledger)

    with ThreadPoolExecutor(DECIDERS) as pool:
        took = _taken(lambda: list(pool.map(decide, range(DECIDERS))))
    report.ratio(f"decisions a second of {DECIDERS} stores at once", DECIDERS * DECISIONS / took.seconds, "-")
    for kind, count in sorted(bucket.requests.items()):
        report.ratio(f"{kind} requests of each of these", count / (DECIDERS * DECISIONS), "-")


def _measure_edits(folder: Path, report: Report) -> None:
    """Compare an edit, and a list of edits, in a workspace that has a remote with one that has none."""
    roots = {"without": folder / "alone", "with": folder / "shared"}
    for root in roots.values():
        root.mkdir()
        Workspace.init(root).close()
    with Workspace.open(roots["with"]) as workspace:
        workspace.remotes.add("origin", (folder / "other").as_uri())
        workspace.remotes.push("origin")

    def edit(root: Path) -> Callable[[int], object]:
        def act(number: int) -> None:
            with Workspace.open(root) as workspace:
                write(workspace, "a.txt", b"line %d\n" % number)

        return act

    def log(root: Path) -> Callable[[int], object]:
        def act(_: int) -> None:
            with Workspace.open(root) as workspace:
                workspace.history.edits()

        return act

    for what, making in {"an edit": edit, "the list of edits": log}.items():
        times = timed_in_turn({name: making(root) for name, root in roots.items()}, OPENINGS)
        with_, without = (report.times(f"{what}, {name} a remote", times[name]) for name in ("with", "without"))
        report.ratio(f"{what}, with / without a remote", with_ / without, "<= 1.1")


def _push(root: Path, bucket: FailingBucket, lane: Lane, seen: Seen | None = None) -> Pushed:
    with closing(Journal(str(root), Disk())) as journal, journal.reading() as store:
        done = push(bucket, lane, store, label="desk", seen=seen)
    return cast("Pushed", done)  # no dry run


def _own_lane(root: Path) -> Lane:
    with closing(Journal(str(root), Disk())) as journal, journal.reading() as store:
        return lane_of(store.log.store)


def _pieces(root: Path, head: Head) -> Iterator[_PieceAt]:
    """Yield the file, the offset and the size of each piece."""
    for segment in head.segments:
        path, offset = root / ".cas" / "segments" / segment_name(segment.number, segment.generation), 0
        for piece in segment.pieces:
            yield str(path), offset, piece.size
            offset += piece.size


class _Plain:
    """What a plain program with obstore does: it sends and fetches bytes, durably, and checks nothing."""

    def __init__(self, url: str) -> None:
        self._folder: Final = local_path(url)
        if self._folder is not None:
            Path(self._folder).mkdir(parents=True)
        self._store: Final = from_url(url, client_options={} if self._folder is not None else {"allow_http": True})

    def put_all(self, number: int, pieces: Sequence[_PieceAt]) -> None:
        """Send pieces of files."""

        def send(piece: _PieceAt) -> int:
            path, offset, size = piece
            key = f"{number}/{Path(path).name}-{offset}"
            fd = os.open(path, os.O_RDONLY)
            obstore.put(self._store, key, os.pread(fd, size, offset), use_multipart=False)
            os.close(fd)
            if self._folder is not None:
                fd = os.open(Path(self._folder, key), os.O_RDONLY)
                os.fsync(fd)
                os.close(fd)
            return size

        in_parallel(send, pieces, None, 0)

    def get_all(self, number: int, pieces: Sequence[_PieceAt], folder: Path) -> None:
        """Fetch pieces, and write them into files."""
        folder.mkdir()

        def bring(piece: _PieceAt) -> int:
            path, offset, size = piece
            content = obstore.get(self._store, f"{number}/{Path(path).name}-{offset}").bytes()
            fd = os.open(folder / Path(path).name, os.O_WRONLY | os.O_CREAT)
            os.pwrite(fd, content, offset)
            os.fsync(fd)
            os.close(fd)
            return size

        in_parallel(bring, pieces, None, 0)


def _taken(act: Callable[[], object]) -> _Took:
    began, processor = time.perf_counter(), time.process_time()
    act()
    return _Took(seconds=time.perf_counter() - began, processor=time.process_time() - processor)
