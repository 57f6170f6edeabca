"""Test several processes and threads at once on one workspace: nothing is lost or torn."""

import fcntl
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from objstore import Call, CallInfo, DiskFailed, Status, StoreLocked, Workspace, blob_id
from objstore.disk.fs.writer_lock import WriterLock
from objstore.storage.transaction.journal import Journal
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE: Final = str(Path(__file__).parents[4])
TIMEOUT: Final = 120
"""Seconds after which a process counts as hung."""

WRITER: Final = """
import json, sys
from objstore import CallInfo, Operation, Workspace
root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
with Workspace.open(root) as workspace:
    for number in range(count):
        with workspace.call(CallInfo(tool=name, conversation=f"conv_{name}")) as call:
            # A line of its own in the file that all share, and a file of its own.
            mine = f"{name} {number}\\n".encode()
            shared = call.read("shared").bytes
            at = shared.index(f"[{name}]\\n".encode())
            call.write("shared", shared[:at] + mine + shared[at:], operation=Operation.EDIT)
            call.write(f"{name}/{number % 3}", mine)
            outcome = call.commit()
        # Only what was acknowledged counts.
        print(json.dumps([view.seq for view in outcome.edits]), flush=True)
"""

REVIEWER: Final = """
import json, random, sys
from contextlib import suppress
from objstore import Action, Decided, EditFilter, EditTakenOut, Workspace, Unit
root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
draw = random.Random(3)
print("ready", flush=True)
sys.stdin.readline()
with Workspace.open(root) as workspace:
    for number in range(count):
        edits = [view for view in workspace.history.edits(EditFilter(newest_first=True, limit=8)) if view.seq > 1]
        if not edits:
            continue  # without the first one there would be no file for the others to write in
        view = draw.choice(edits)
        action = draw.choice([Action.REJECT, Action.REJECT, Action.ACCEPT])
        units = [Unit(view.seq, hunk) for hunk in range(len(view.units))]
        outcome = None
        with suppress(EditTakenOut):
            outcome = workspace.decide(action, units, who=name)
        if number % 5 == 4:
            outcome = workspace.review.undo(who=name)
        print(json.dumps([type(outcome).__name__, getattr(outcome, "number", 0)]), flush=True)
"""

READER: Final = """
import json, os, sys
from objstore import Workspace
root = sys.argv[1]
print("ready", flush=True)
sys.stdin.readline()
seen = 0
with Workspace.open(root) as workspace:
    while not os.path.exists(os.path.join(root, "stop")):
        report = workspace.review.status()
        assert report.external == (), "a writer at work was taken for a stranger"
        edits = workspace.history.edits()
        assert report.edits <= len(edits), "edits went away"
        assert [view.seq for view in edits] == list(range(1, len(edits) + 1)), "a hole in the journal"
        for view in edits[-2:]:
            if view.edit.after is not None:
                workspace.history.blob(view.edit.after.blob)
        workspace.history.decisions()
        workspace.history.find_state("shared")
        assert len(edits) >= seen, "edits went away"
        seen = len(edits)
print(json.dumps(seen), flush=True)
"""


class Process:
    """A script in a process of its own, which starts on request."""

    def __init__(self, script: str, *words: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, words)],
            cwd=SOURCE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def acknowledged_seqs(self) -> list[Any]:
        """Wait for its end, which must be a good one, and return what it printed."""
        out, err = self.process.communicate(timeout=TIMEOUT)
        assert self.process.returncode == 0, err
        assert err == ""
        return [json.loads(line) for line in out.splitlines()]


def assert_sound(scene: Scene) -> None:
    """Check that the journal is whole, and that the files and a full replay match it."""
    workspace = scene.workspace
    edits, decisions = workspace.history.edits(), workspace.history.decisions()
    assert [view.seq for view in edits] == list(range(1, len(edits) + 1))
    assert [view.decision.number for view in decisions] == list(range(1, len(decisions) + 1))
    assert workspace.review.status().external == ()
    report = workspace.review.status()
    files = scene.files()
    scene.forget_index()
    # The hash chain is checked, record by record, while the index is rebuilt.
    assert (scene.workspace.history.edits(), scene.workspace.history.decisions()) == (edits, decisions)
    assert scene.workspace.review.status() == report
    for view in edits:
        for state in (view.edit.before, view.edit.after):
            assert state is None or blob_id(scene.workspace.history.blob(state.blob)) == state.blob
    # A decision on every edit replays every file, and refuses where the replay differs from the file.
    pending = [view.seq for view in edits if view.status is Status.PENDING]
    if pending:
        assert scene.accept(*pending).files == ()
    assert scene.files() == files


def test_two_writers_and_a_reviewer_lose_nothing(scene: Scene) -> None:
    base = b"top\n[left]\nmiddle\n[right]\nbottom\n"
    scene.write("shared", base)
    writers = [Process(WRITER, scene.root, name, 25) for name in ("left", "right")]
    reviewer = Process(REVIEWER, scene.root, "rev", 20)
    for process in (*writers, reviewer):
        process.go()
    acknowledged = [seqs for process in writers for seqs in process.acknowledged_seqs()]
    decided = [number for kind, number in reviewer.acknowledged_seqs() if kind == "Decided"]

    edits = scene.workspace.history.edits()
    assert sorted(seq for seqs in acknowledged for seq in seqs) == [view.seq for view in edits[1:]]
    for seqs in acknowledged:
        calls = {(edits[seq - 1].edit.conversation, edits[seq - 1].edit.call) for seq in seqs}
        assert len(calls) == 1
    calls_of = Counter((view.edit.conversation, view.edit.call) for view in edits[1:])
    assert len(calls_of) == 50
    numbers = [view.decision.number for view in scene.workspace.history.decisions()]
    assert set(decided) <= set(numbers)

    # The shared file has every line whose edit is live, once, and no other.
    wanted = Counter(base.splitlines(keepends=True))
    for view in edits[1:]:
        if view.edit.path == b"shared" and view.status is not Status.REJECTED:
            wanted[f"{view.edit.tool} {view.edit.call}\n".encode()] += 1
    content = scene.text("shared")
    assert content is not None
    assert Counter(content.splitlines(keepends=True)) == wanted
    assert_sound(scene)


def test_concurrent_readers_always_see_consistent_states(scene: Scene) -> None:
    scene.write("shared", b"[left]\n[right]\n")
    reader = Process(READER, scene.root)
    writers = [Process(WRITER, scene.root, name, 20) for name in ("left", "right")]
    for process in (reader, *writers):
        process.go()
    acknowledged = [seqs for process in writers for seqs in process.acknowledged_seqs()]
    (scene.root / "stop").touch()
    (seen,) = reader.acknowledged_seqs()
    assert 1 <= seen <= 1 + sum(map(len, acknowledged))
    assert len(scene.workspace.history.edits()) == 1 + sum(map(len, acknowledged))
    assert_sound(scene)


def test_threads_share_one_workspace(scene: Scene) -> None:
    lines = [b"line %d\n" % number for number in range(80)]
    scene.write("f", b"".join(lines))

    def work(worker: int) -> list[int]:
        seqs: list[int] = []
        for number in range(worker * 10, worker * 10 + 10):

            def change(call: Call, number: int = number) -> None:
                content = call.read("f").bytes
                call.write("f", content.replace(b"line %d\n" % number, b"LINE %d\n" % number))

            seqs += [view.seq for view in scene.call(change, conversation=f"conv_{worker}").edits]
            scene.workspace.review.status()
        return seqs

    with ThreadPoolExecutor(8) as pool:
        seqs = [seq for found in pool.map(work, range(8)) for seq in found]

    assert sorted(seqs) == list(range(2, 82))
    assert scene.text("f") == b"".join(lines).replace(b"line", b"LINE")
    assert_sound(scene)
    scene.reject(*range(2, 82, 2))
    content = scene.text("f")
    assert content is not None
    assert content.count(b"LINE") == 40


def test_partly_read_blob_blocks_no_other_thread(scene: Scene) -> None:
    scene.write("f", b"0\n")
    begun: list[Iterator[bytes]] = []

    def begin() -> None:
        pieces = scene.workspace.history.pieces(blob_id(b"0\n"))
        assert next(pieces) == b"0\n"
        begun.append(pieces)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(begin).result()
    with ThreadPoolExecutor(1) as pool:
        assert len(pool.submit(scene.workspace.history.edits).result(TIMEOUT)) == 1
    assert list(begun.pop()) == []


def test_a_brief_wait_for_the_lock_does_not_shorten_later_ones(tmp_path: Path) -> None:
    lock, other = WriterLock(str(tmp_path / "lock")), WriterLock(str(tmp_path / "lock"))
    with other.held():
        with pytest.raises(StoreLocked), lock.held(0.01):
            pass
        release_timer = threading.Timer(0.5, other.release)
        release_timer.start()
        with lock.held():
            pass
        release_timer.join()
    lock.close()
    other.close()


def wait_until_another_is_next(lock: WriterLock) -> None:
    """Wait until another process or thread holds the queue of a lock that this one holds."""
    while lock.acquire_in_turn():  # a lock that is held can be taken once more
        time.sleep(0.001)


@pytest.mark.parametrize("seconds", [0.0, 0.5], ids=["after a moment", "after a longer wait"])
def test_who_waits_gets_the_lock_before_its_former_holder(tmp_path: Path, seconds: float) -> None:
    lock, other = WriterLock(str(tmp_path / "lock")), WriterLock(str(tmp_path / "lock"))
    with closing(lock), closing(other), ThreadPoolExecutor(1) as thread:
        with lock.held():
            waiting = thread.submit(other.acquire)
            wait_until_another_is_next(lock)
            time.sleep(seconds)
        assert not lock.acquire_in_turn()
        waiting.result(TIMEOUT)
        with pytest.raises(StoreLocked), lock.held(0.01):
            pass
        other.release()
        with lock.held():
            pass


def test_who_is_next_stays_so_however_long_that_takes(tmp_path: Path) -> None:
    lock, other = WriterLock(str(tmp_path / "lock")), WriterLock(str(tmp_path / "lock"))
    with closing(lock), closing(other), ThreadPoolExecutor(1) as thread:
        with lock.held():
            waiting = thread.submit(other.acquire)
            wait_until_another_is_next(lock)
            (tmp_path / "lock.queue").unlink()  # whoever joined the queue now would join another one
            (tmp_path / "lock.queue").mkdir()
            time.sleep(0.5)
            assert not lock.acquire_in_turn()
        waiting.result(TIMEOUT)


def test_a_call_that_waits_writes_before_the_former_writer(scene: Scene) -> None:
    with closing(WriterLock(str(scene.root / ".cas" / "lock"))) as lock, ThreadPoolExecutor(1) as thread:
        with lock.held():
            waiting = thread.submit(scene.write, "f", b"1\n")
            wait_until_another_is_next(lock)
        assert not lock.acquire_in_turn()
        waiting.result(TIMEOUT)
        with lock.held():
            pass
    assert len(scene.workspace.history.edits()) == 1


def test_a_wait_that_is_given_up_leaves_the_queue(scene: Scene) -> None:
    path = str(scene.root / ".cas" / "lock")
    with closing(WriterLock(path)) as lock, closing(Journal(str(scene.root), UnsyncedDisk())) as journal:
        with lock.held():
            with pytest.raises(StoreLocked), journal.writing(within=0.05):
                pass
            assert lock.acquire_in_turn()
        with lock.held(0):
            pass


def test_a_thread_that_gives_up_leaves_the_queue_to_one_that_waits(scene: Scene) -> None:
    path = str(scene.root / ".cas" / "lock")

    def write(journal: Journal) -> None:
        with journal.writing():
            pass

    with (
        closing(WriterLock(path)) as lock,
        closing(Journal(str(scene.root), UnsyncedDisk())) as journal,
        ThreadPoolExecutor(1) as thread,
    ):
        with lock.held():
            waiting = thread.submit(write, journal)
            wait_until_another_is_next(lock)
            for _ in range(20):
                with pytest.raises(StoreLocked), journal.writing(within=0.01):
                    pass
                assert not lock.acquire_in_turn()
                with journal.try_brief_lock() as is_held:
                    assert not is_held
                assert not lock.acquire_in_turn()
        waiting.result(TIMEOUT)


def test_a_lock_that_cannot_be_opened_keeps_no_one_waiting(tmp_path: Path) -> None:
    lock, other = WriterLock(str(tmp_path / "lock")), WriterLock(str(tmp_path / "lock"))
    (tmp_path / "lock").mkdir()
    with closing(lock), closing(other):
        with pytest.raises(DiskFailed):
            lock.acquire_in_turn()
        (tmp_path / "lock").rmdir()
        with other.held(0):
            pass


def test_a_process_that_is_stopped_while_it_is_next_keeps_no_one_waiting(scene: Scene) -> None:
    path = scene.root / ".cas" / "lock"
    with path.with_name("lock.queue").open("wb") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        with closing(WriterLock(str(path))) as lock, lock.held(5):
            pass
        with closing(Journal(str(scene.root), UnsyncedDisk())) as journal, journal.writing(within=5):
            pass


def test_without_a_file_for_the_queue_writers_still_exclude_each_other(tmp_path: Path) -> None:
    (tmp_path / "lock.queue").mkdir()
    lock, other = WriterLock(str(tmp_path / "lock")), WriterLock(str(tmp_path / "lock"))
    with closing(lock), closing(other), lock.held(), pytest.raises(StoreLocked), other.held(0.3):
        pass


def test_waiting_for_another_process_blocks_no_thread(scene: Scene) -> None:
    scene.write("f", b"0\n")

    def write(number: int) -> None:
        with scene.workspace.call(CallInfo(tool="t", conversation="c")) as call:
            call.write(f"f{number}", b"1\n")
            call.commit()

    with Workspace.open(scene.root) as other, ThreadPoolExecutor(5) as pool:
        with other.call(CallInfo(tool="slow")):
            writes = [pool.submit(write, number) for number in range(4)]
            for _ in range(100):
                assert len(pool.submit(scene.workspace.history.edits).result(TIMEOUT)) == 1
            assert not any(write.done() for write in writes)
        for each in writes:
            each.result(TIMEOUT)
    assert len(scene.workspace.history.edits()) == 5
    assert_sound(scene)


@pytest.mark.parametrize("ahead", [0, 1], ids=["at the head of the queue", "behind another"])
def test_a_wait_for_another_process_can_be_cancelled(scene: Scene, ahead: int) -> None:
    class Left(Exception):
        pass

    asked = threading.Event()

    def begin(waiting: Callable[[], None]) -> None:
        with scene.workspace.call(CallInfo(tool="t"), waiting=waiting) as call:
            call.write("f", b"1\n")
            call.commit()

    def leave() -> None:
        raise Left

    with Workspace.open(scene.root) as other, ThreadPoolExecutor(2) as pool:
        with other.call(CallInfo(tool="slow")):
            first = [pool.submit(begin, asked.set) for _ in range(ahead)]
            assert not ahead or asked.wait(TIMEOUT)
            with pytest.raises(Left):
                pool.submit(begin, leave).result(TIMEOUT)
        for each in first:
            each.result(TIMEOUT)
    assert len(scene.workspace.history.edits()) == ahead


def test_decisions_from_threads_take_turns(scene: Scene) -> None:
    scene.write("f", b"".join(b"line %d\n" % number for number in range(16)))
    for number in range(0, 16, 2):
        scene.edit("f", b"line %d\n" % number, b"even %d\n" % number)
    barrier = threading.Barrier(8)

    def work(seq: int) -> None:
        barrier.wait()
        for _ in range(5):
            scene.reject(seq)
            scene.accept(seq)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(2, 10)))
    assert len(scene.workspace.history.decisions()) == 80
    content = scene.text("f")
    assert content is not None
    assert content.count(b"even") == 8
    assert_sound(scene)


def test_concurrent_undos_each_undo_another_decision(scene: Scene) -> None:
    for number in range(8):
        scene.write(f"f{number}", b"a\n")
        scene.reject(number + 1)
    others = [Workspace.open(scene.root) for _ in range(4)]
    barrier = threading.Barrier(4)

    def work(workspace: Workspace) -> list[int]:
        barrier.wait()
        outcomes = [workspace.review.undo(), workspace.review.undo()]
        assert outcomes
        return [view.decision.takes_back for view in workspace.history.decisions() if view.decision.takes_back]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, others))
    for workspace in others:
        workspace.close()
    taken_back = [view.decision.takes_back for view in scene.workspace.history.decisions() if view.decision.takes_back]
    assert taken_back == [8, 7, 6, 5, 4, 3, 2, 1]
    assert sorted(scene.files()) == [f"f{number}" for number in range(8)]
    assert_sound(scene)


def test_repeatedly_overtaken_writer_gets_the_lock(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    others: list[int] = []

    def write_much() -> None:
        others.append(len(others))
        with Workspace.open(scene.root) as other, other.call(CallInfo(tool="other", conversation="other")) as call:
            call.write("other", random.Random(len(others)).randbytes(50_000))
            call.commit()

    with closing(Journal(str(scene.root), UnsyncedDisk())) as journal:
        catch_up = journal.store.catch_up

        def overtaken(*, to_write: bool = False) -> bool:
            is_whole = catch_up(to_write=to_write)
            if not to_write:
                write_much()
            return is_whole

        write_much()
        monkeypatch.setattr(journal.store, "catch_up", overtaken)
        with journal.writing():
            assert journal.store.log.ends_at(journal.store.end)
            lock = WriterLock(str(scene.root / ".cas" / "lock"))
            assert not lock.acquire_now()
            lock.close()
    assert len(others) == 4


def test_an_index_deleted_under_open_workspaces_harms_nothing(scene: Scene) -> None:
    scene.write("f", b"0\n")
    others: list[Workspace] = []
    for number in range(1, 13):
        for path in (scene.root / ".cas").glob("index*"):
            path.unlink()
        others.append(Workspace.open(scene.root))
        for writer in (scene.workspace, *others):
            with writer.call(CallInfo(tool="test", conversation="conv_one")) as call:
                content = call.read("f").bytes
                call.write("f", content + b"%d\n" % number)
                call.commit()
        if number % 3 == 0:
            others.pop(0).close()
    acknowledged_seqs = {len(workspace.history.edits()) for workspace in (scene.workspace, *others)}
    assert acknowledged_seqs == {1 + sum(1 for _ in (scene.text("f") or b"").splitlines()[1:])}
    for workspace in others:
        workspace.close()
    assert_sound(scene)


def test_an_index_in_use_stays_open_when_another_replaces_it(scene: Scene) -> None:
    scene.write("f", b"1\n")
    scene.write("f", b"2\n")
    with closing(Journal(str(scene.root), UnsyncedDisk())) as journal:
        with journal.reading() as store, closing(store.index.checks.rows("edits")) as rows:
            found = [next(rows)]
            for path in scene.root.glob(".cas/index.sqlite*"):
                path.unlink()
            with journal.reading() as inner:
                assert inner.next_seq() == 3
            found += rows
        assert [row[0] for row in found] == [1, 2]


def test_deleting_the_index_repeatedly_leaks_no_connections(scene: Scene) -> None:
    scene.write("f", b"1\n")
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(20):
        for path in scene.root.glob(".cas/index.sqlite*"):
            path.unlink()
        assert len(scene.workspace.history.edits()) == 1
    assert len(list(Path("/dev/fd").iterdir())) <= before


def test_workspace_is_closed_after_its_last_thread_has_finished(scene: Scene) -> None:
    scene.write("f", b"1\n")
    journal = Journal(str(scene.root), UnsyncedDisk())
    begun, closing_it = threading.Event(), threading.Event()

    def read() -> list[int]:
        with journal.reading() as store:
            begun.set()
            closing_it.wait(TIMEOUT)
            return [store.index.numbers.next_seq() for _ in range(10_000)]

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        begun.wait(TIMEOUT)
        closing_it.set()
        journal.close()
        assert set(reading.result()) == {2}
