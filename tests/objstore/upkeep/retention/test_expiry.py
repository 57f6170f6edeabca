"""Test which history expires by age and by size, and that nothing expires that may still be needed."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from objstore import Action, CallInfo, RetentionLimits, Status, Workspace
from objstore.disk.fs.disk import Disk
from objstore.storage.store.write_batch import Batch
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.retention import expiry
from objstore.upkeep.retention.expiry import format_age, format_size
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.scene import TEN, Scene, writes

EVERYTHING = RetentionLimits(older_than=0, max_size=None)
DAY = 86_400


def expired(scene: Scene) -> list[int]:
    """Return the edits that have expired."""
    return [view.seq for view in scene.workspace.history.edits() if view.expired is not None]


def later(seconds: int) -> int:
    """Return the moment so many seconds from now."""
    return (int(time.time()) + seconds) * 1_000_000


def test_old_decided_edits_expire(scene: Scene) -> None:
    scene.write("f", TEN)
    scene.edit("f", b"\n5\n", b"\nfive\n")
    scene.accept(1, 2)
    limits = RetentionLimits(older_than=30 * DAY, max_size=None)
    assert scene.workspace.retention.expire(limits, moment=later(29 * DAY))
    assert expired(scene) == []
    assert scene.workspace.retention.expire(limits, moment=later(31 * DAY), who="me")
    assert expired(scene) == [1, 2]
    (gone,) = {view.expired.reason for view in scene.workspace.history.edits() if view.expired is not None}
    assert gone == "older than 30 days"


def test_pending_edits_keep_their_conversation_and_later_edits(scene: Scene) -> None:
    one, other = "conv_one", "conv_other"
    scene.call(lambda call: call.write("f", b"1\n"), conversation=one)
    scene.accept(1)
    scene.call(lambda call: call.write("f", b"2\n"), conversation=other)
    scene.call(lambda call: call.write("f", b"3\n"), conversation=one)
    scene.call(lambda call: call.write("g", b"1\n"), conversation=other)
    scene.workspace.retention.expire(EVERYTHING, moment=later(1))
    assert expired(scene) == []
    scene.accept(3)
    scene.workspace.retention.expire(EVERYTHING, moment=later(1))
    assert expired(scene) == [1]
    scene.accept(2)
    scene.workspace.retention.expire(EVERYTHING, moment=later(1))
    assert expired(scene) == [1]
    scene.accept(4)
    scene.workspace.retention.expire(EVERYTHING, moment=later(1))
    assert expired(scene) == [1, 2, 3, 4]


def test_a_late_decision_binds_edits_together(scene: Scene) -> None:
    scene.write("f", TEN)
    scene.edit("f", b"\n2\n", b"\ntwo\n")
    scene.accept(1, 2)
    young = scene.workspace.history.edits()[-1].edit.time
    scene.call(lambda call: call.write("f", TEN + b"more\n"), conversation="conv_pending")
    scene.workspace.retention.expire(EVERYTHING, moment=later(1))
    assert expired(scene) == [1, 2]
    assert young > 0
    third = scene.edit("f", b"\n5\n", b"\nfive\n")
    scene.accept(third)
    scene.reject(3)
    scene.workspace.retention.expire(EVERYTHING, moment=later(1))
    assert expired(scene) == [1, 2, 3, 4]


def test_over_the_size_limit_the_oldest_expire_and_no_more_than_needed(scene: Scene) -> None:
    for number in range(20):
        scene.write(f"f{number}", bytes(range(256)) * 40 + b"%d" % number)
        scene.write(f"f{number}", b"small\n")
    scene.accept(*range(1, 41))
    size = scene.workspace.retention.stored_bytes()
    scene.workspace.retention.expire(RetentionLimits(older_than=None, max_size=size), moment=later(1))
    assert expired(scene) == []
    limit = size - 3000
    scene.workspace.retention.expire(RetentionLimits(older_than=None, max_size=limit), moment=later(1))
    gone = expired(scene)
    assert gone == list(range(1, len(gone) + 1))
    assert 2 < len(gone) < 40


@pytest.mark.parametrize(("edits", "size", "over"), [(60, 400, 1_000), (100, 300, 9_000)])
def test_expired_blobs_that_are_not_compacted_yet_make_nothing_more_expire(
    scene: Scene, edits: int, size: int, over: int
) -> None:
    """The bytes of the first expiry are still in the segments; compaction removes them."""
    for number in range(edits):
        scene.write(f"f{number % 7}", random.Random(number).randbytes(size))
    scene.accept(*range(1, edits + 1))
    limits = RetentionLimits(older_than=None, max_size=scene.workspace.retention.stored_bytes() - over)
    scene.workspace.retention.expire(limits, moment=later(1))
    gone = expired(scene)
    assert 0 < len(gone) < edits
    scene.workspace.retention.expire(limits, moment=later(1))
    assert expired(scene) == gone
    assert limits.max_size is not None
    assert scene.workspace.retention.collect(limits).bytes_after <= limits.max_size
    assert expired(scene) == gone


def test_expiry_records_have_about_fifty_edits_each(scene: Scene) -> None:
    scene.call(*(writes(f"f{number}", b"1\n") for number in range(120)))
    scene.accept(*range(1, 121))
    with closing(Journal(str(scene.root), UnsyncedDisk())) as journal, journal.reading():
        (expiry_batch,) = expiry.plan_expiry(journal, EVERYTHING, moment=later(1)).batches
    assert [len(part) for part in expiry_batch.parts] == [50, 50, 20]


def test_an_outdated_plan_is_not_carried_out(scene: Scene) -> None:
    scene.write("f", b"1\n")
    scene.write("g", b"1\n")
    scene.accept(1, 2)
    journal = Journal(str(scene.root), Disk())
    with journal.reading():
        plan = expiry.plan_expiry(journal, EVERYTHING, moment=later(1))
    assert [expiry_batch.edit_count for expiry_batch in plan.batches] == [2]
    scene.reset(1)
    assert expiry.expire(journal, plan, who="") == 0
    journal.close()
    assert expired(scene) == []
    assert scene.statuses()[1] is Status.PENDING


@pytest.mark.parametrize("name", ["f", "g"])
def test_edits_of_a_continued_conversation_do_not_expire(scene: Scene, name: str) -> None:
    scene.write("f", b"1\n")
    scene.accept(1)
    journal = Journal(str(scene.root), Disk())
    with journal.reading():
        plan = expiry.plan_expiry(journal, EVERYTHING, moment=later(1))
    scene.write(name, b"2\n")
    assert expiry.expire(journal, plan, who="") == 0
    journal.close()
    assert expired(scene) == []


class OvertakenJournal(Journal):
    """A journal for which another process writes into a conversation just before it takes the lock."""

    @contextmanager
    def writing(
        self, *, within: float | None = None, may_use_reserve: bool = False, waiting: Callable[[], object] | None = None
    ) -> Iterator[Batch]:
        info = CallInfo(tool="test", conversation="conv_one")
        with Workspace.open(self.tree.root, UnsyncedDisk()) as other, other.call(info) as call:
            call.write("g", b"in the last moment\n")
            call.commit()
        with super().writing(within=within, may_use_reserve=may_use_reserve, waiting=waiting) as batch:
            yield batch


def test_edit_recorded_at_the_last_moment_keeps_its_conversation(scene: Scene) -> None:
    with scene.workspace.call(CallInfo(tool="test", conversation="conv_one")) as call:
        call.write("f", b"1\n")
        call.commit()
    scene.accept(1)
    with closing(OvertakenJournal(str(scene.root), UnsyncedDisk())) as journal:
        with journal.reading():
            plan = expiry.plan_expiry(journal, EVERYTHING, moment=later(1))
        assert plan.edit_count == 1
        assert expiry.expire(journal, plan, who="") == 0
    assert expired(scene) == []


def test_planning_and_expiry_while_other_processes_write(scene: Scene) -> None:
    """New records meanwhile neither expire nor prevent the expiry."""
    stop = threading.Event()
    written: list[int] = []

    def write() -> None:
        while not stop.is_set():
            # What a process wrote comes into the index at the latest when it ends.
            with Workspace.open(scene.root) as workspace:
                with workspace.call(CallInfo(tool="test", conversation=f"conv_{len(written)}")) as call:
                    call.write(f"g{len(written) % 3}", b"%d\n" % len(written))
                    call.commit()
                written.append(1)

    for number in range(30):
        scene.write("f", b"%d\n" % number)
    scene.accept(*range(1, 31))
    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(written) < 40:
            scene.workspace.retention.plan_gc(EVERYTHING)
        scene.workspace.retention.collect(EVERYTHING)
    finally:
        stop.set()
        writer.join()
    assert set(expired(scene)) == set(range(1, 31))
    assert scene.workspace.review.status().pending == len(written)
    scene.forget_index()
    assert set(expired(scene)) == set(range(1, 31))


def test_compactions_that_can_not_reach_the_limit_do_not_each_begin_a_segment(scene: Scene) -> None:
    """Each is a file that every process holds open."""
    limits = RetentionLimits(older_than=None, max_size=1)
    draw = random.Random(1)
    scene.write("pending", draw.randbytes(100_000))
    segments = scene.root / ".cas" / "segments"
    for number in range(20):
        outcome = scene.call(lambda call: call.write("f", draw.randbytes(1000)), conversation=f"conv_{number}")
        scene.accept(outcome.edits[0].seq)
        scene.workspace.retention.collect(limits)
        assert len(list(segments.glob("*.seg"))) < 8
    assert len(expired(scene)) > 10
    before = len(list(segments.glob("*.seg")))
    assert scene.workspace.retention.collect(limits, thorough=True).bytes_after < 140_000
    assert len(list(segments.glob("*.seg"))) == before + 1


def test_a_dated_decision_lists_its_edits_and_those_whose_text_it_changes(scene: Scene) -> None:
    for name in ("a", "b", "c"):
        scene.write(name, b"1\n")
    scene.accept(1)
    scene.reject(1, 2)
    scene.accept(2)
    scene.reset(1)
    scene.decide(Action.ACCEPT, 1, 2, 3)
    scene.reject(2, 3)
    with closing(Journal(str(scene.root), Disk())) as journal, journal.reading():
        found = [(touch.edits, touch.flipped) for touch in expiry.dated_decisions(journal.store)]
    assert found == [
        ([1], []),
        ([1, 2], [1, 2]),
        ([2], [2]),
        ([1], [1]),
        ([1, 3], []),
        ([2, 3], [2, 3]),
    ]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (59, "59 seconds"),
        (60, "1 minute"),
        (90, "90 seconds"),
        (5400, "90 minutes"),
        (7200, "2 hours"),
        (DAY + 3600, "25 hours"),
        (30 * DAY, "30 days"),
    ],
)
def test_an_age_is_formatted_in_the_largest_unit_without_a_remainder(seconds: int, expected: str) -> None:
    assert format_age(seconds) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0 bytes"),
        (900, "900 bytes"),
        (1000, "1 kB"),
        (1001, "1001 bytes"),
        (1500, "1.5 kB"),
        (1_550_000, "1550 kB"),
        (2 * 10**6, "2 MB"),
        (2_500_000_000, "2.5 GB"),
        (10**12, "1 TB"),
    ],
)
def test_a_size_is_formatted_in_the_largest_unit_with_one_decimal(size: int, expected: str) -> None:
    assert format_size(size) == expected
