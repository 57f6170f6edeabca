"""Test large states: a file over the limit is decided on as a whole, and no byte of it is lost."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest

from objstore import (
    MAX_BLOB,
    Action,
    BlobTooLarge,
    CallInfo,
    CasError,
    Conflicted,
    Decided,
    DiskFull,
    FileChanged,
    FileTooLarge,
    IndexDamaged,
    OnExternal,
    PurgeRefused,
    Workspace,
    blob_id,
    check_store,
    is_binary,
    salvage_store,
)
from objstore.config.settings import RetentionLimits
from objstore.fastclass import replace
from objstore.fs.disk import Disk, Pieces
from objstore.integrity.fsck import StorePart
from objstore.log.chunking import CHUNK
from objstore.model.large_file_placeholder import PREFIX, placeholder
from objstore.model.ranges import Range
from objstore.retention.compaction import compact, plan_compaction
from objstore.retention.expiry import expire, plan_expiry
from objstore.transaction.journal import Journal
from tests.objstore.recovery.test_crash import ran_on, started_again
from tests.support.command_runner import environment
from tests.support.damaged_stores import damage, lose
from tests.support.faulty_disk import CountdownDisk, PowerCut, full_disk, power_cut
from tests.support.scene import TEN, Scene

MEGABYTE: Final = 1 << 20
NOISE: Final = os.urandom(5 * MEGABYTE)
LARGE: Final = NOISE + bytes(MAX_BLOB - len(NOISE)) + b"the end\n"
OTHER: Final = NOISE[: 3 * MEGABYTE] + b"put in" + LARGE[3 * MEGABYTE :]


def edit(scene: Scene, path: str, content: bytes) -> int:
    with scene.workspace.call(CallInfo(tool="t", conversation="c")) as call:
        call.write(path, content)
        return call.commit().edits[0].seq


def decide(scene: Scene, action: Action, *seqs: int, on_external: OnExternal = OnExternal.ABORT) -> object:
    units = [unit for seq in seqs for unit in scene.workspace.find_units(str(seq))[1]]
    return scene.workspace.decide(action, units, on_external=on_external)


def sound(scene: Scene) -> None:
    """Check the store from the ground up: blobs, chunks, their counts, replay."""
    assert check_store(str(scene.root)).faults == ()


def stored(scene: Scene) -> int:
    return sum(segment.size for segment in scene.workspace.history.segments())


# ---- from small to large and back


def test_a_file_grows_large_and_small_again_and_each_edit_is_decided_alone(scene: Scene) -> None:
    edit(scene, "f", TEN)
    large = edit(scene, "f", LARGE)
    small = edit(scene, "f", b"small again\n")
    assert isinstance(decide(scene, Action.REJECT, large), Conflicted)
    assert isinstance(decide(scene, Action.REJECT, small), Decided)
    assert (scene.root / "f").read_bytes() == LARGE
    assert isinstance(decide(scene, Action.REJECT, large), Decided)
    assert (scene.root / "f").read_bytes() == TEN
    assert isinstance(decide(scene, Action.ACCEPT, large), Decided)
    assert isinstance(decide(scene, Action.ACCEPT, small), Decided)
    assert (scene.root / "f").read_bytes() == b"small again\n"
    for _ in range(2):
        assert isinstance(scene.workspace.review.undo(), Decided)
    assert (scene.root / "f").read_bytes() == TEN
    sound(scene)


def test_lines_never_stand_beside_a_large_state(scene: Scene) -> None:
    edit(scene, "f", TEN)
    appended = edit(scene, "f", TEN + b"11\n")
    decide(scene, Action.REJECT, appended)
    edit(scene, "f", LARGE)
    outcome = decide(scene, Action.ACCEPT, appended)
    assert isinstance(outcome, Conflicted)
    assert {conflict.path for conflict in outcome.conflicts} == {"f"}
    assert (scene.root / "f").read_bytes() == LARGE


def test_a_conflict_about_a_large_state_is_about_the_file_as_a_whole(scene: Scene) -> None:
    edit(scene, "f", TEN)
    large = edit(scene, "f", LARGE)
    edit(scene, "f", OTHER)
    outcome = decide(scene, Action.REJECT, large)
    assert isinstance(outcome, Conflicted)
    told = [(str(found), found.line, found.removed, found.inserted) for found in outcome.conflicts]
    assert told == [("edit 3 hunk 1 needs edit 2 (f)", 0, b"", b"")]


def test_a_large_file_is_created_made_executable_moved_deleted_and_all_of_it_taken_back(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    with scene.workspace.call(CallInfo(tool="t", conversation="c")) as call:
        call.write("f", LARGE, mode=0o755)
        call.move("f", "new/g")
        call.commit()
    with scene.workspace.call(CallInfo(tool="t", conversation="c")) as call:
        call.delete("new/g")
        call.commit()
    for _ in range(3):
        newest = max(view.seq for view in scene.workspace.history.edits() if view.status.value == "pending")
        decide(scene, Action.REJECT, newest)
    assert (scene.root / "f").read_bytes() == LARGE
    sound(scene)


# ---- what it costs


def test_a_change_in_the_middle_costs_about_itself(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    before = stored(scene)
    edit(scene, "f", OTHER)
    # A new list of chunks, and a delta against the chunk that gave way.
    assert stored(scene) - before < 10_000
    assert b"".join(scene.workspace.history.pieces(blob_id(OTHER))) == OTHER
    sound(scene)


def test_the_same_bytes_elsewhere_cost_nothing(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    before = stored(scene)
    edit(scene, "g", LARGE)
    assert stored(scene) - before < 1_000


def test_chunks_are_held_as_long_as_the_blob_that_they_are_of(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    with closing(Journal(str(scene.root), Disk())) as journal, journal.reading() as store:
        chunks = {chunk.id for chunk in store.chunks(blob_id(LARGE))}
        assert not chunks & {
            blob for number in store.log.files.numbers() for blob in store.index.blobs.dead_blobs(number)
        }
        with store.index.changing() as db:
            db.execute("UPDATE blobs SET refs = 0 WHERE id = ?", (min(chunks),))
        with pytest.raises(IndexDamaged):
            plan_compaction(journal, all_segments=True)


def test_what_nothing_holds_goes_with_its_chunks_and_what_is_shared_stays(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    edit(scene, "f", OTHER)
    edit(scene, "gone", LARGE[::-1])
    with scene.workspace.call(CallInfo(tool="t", conversation="c")) as call:
        call.delete("gone")
        call.commit()
    decide(scene, Action.ACCEPT, 1, 2, 3, 4)
    before = stored(scene)
    scene.workspace.retention.collect(RetentionLimits(older_than=0))
    assert before - stored(scene) > 5 * MEGABYTE
    assert not {blob_id(LARGE), blob_id(LARGE[::-1])} & set(scene.workspace.history.blobs())
    assert b"".join(scene.workspace.history.pieces(blob_id(OTHER))) == OTHER
    edit(scene, "f", LARGE)
    assert (scene.root / "f").read_bytes() == LARGE
    scene.reopen()
    sound(scene)


def gone_but_for_its_list(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a large file go, the list of whose chunks lies in a segment of which most is in use."""
    monkeypatch.setattr("objstore.log.segments.ROTATE_AT", 4 * MEGABYTE)
    edit(scene, "f", LARGE)
    edit(scene, "in use", LARGE[: len(NOISE)][::-1])
    with scene.workspace.call(CallInfo(tool="t", conversation="c")) as call:
        call.delete("f")
        call.commit()
    decide(scene, Action.ACCEPT, 1, 2, 3)


def test_a_list_goes_with_its_chunks_wherever_it_lies(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    gone_but_for_its_list(scene, monkeypatch)
    scene.workspace.retention.collect(RetentionLimits(older_than=0))
    assert blob_id(LARGE) not in set(scene.workspace.history.blobs())
    sound(scene)
    edit(scene, "f", LARGE)
    assert b"".join(scene.workspace.history.pieces(blob_id(LARGE))) == LARGE
    sound(scene)


def test_a_list_that_was_left_without_its_chunks_is_no_blob_that_is_stored(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone_but_for_its_list(scene, monkeypatch)
    with closing(Journal(str(scene.root), Disk())) as journal:
        limits = RetentionLimits(older_than=0)
        expire(journal, plan_expiry(journal, limits), who="")
        plan = plan_compaction(journal, all_segments=True)
        assert compact(journal, replace(plan, dropped=plan.dropped - {blob_id(LARGE)})).is_done
    assert len(check_store(str(scene.root)).faults) == 1
    restored = edit(scene, "f", LARGE)
    assert b"".join(scene.workspace.history.pieces(blob_id(LARGE))) == LARGE
    decide(scene, Action.REJECT, restored)
    decide(scene, Action.ACCEPT, restored)
    assert (scene.root / "f").read_bytes() == LARGE
    scene.reopen()
    sound(scene)


def test_a_purge_of_a_chunk_takes_the_states_that_it_is_a_part_of(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    edit(scene, "f", OTHER)
    with closing(Journal(str(scene.root), Disk())) as journal, journal.reading() as store:
        chunks = [{chunk.id for chunk in store.chunks(blob_id(state))} for state in (LARGE, OTHER)]
    (chunk,) = chunks[1] - chunks[0]
    assert scene.workspace.retention.plan_purge(blobs=[chunk]).files == ("f",)
    with pytest.raises(PurgeRefused):
        scene.workspace.retention.purge([chunk], force=True)
    edit(scene, "f", LARGE)
    plan = scene.workspace.retention.purge([chunk], force=True)
    assert set(plan.blobs) == {chunk, blob_id(OTHER)}
    assert plan.edits == (Range(1, 3),)
    assert not {chunk, blob_id(OTHER)} & set(scene.workspace.history.blobs())
    assert b"".join(scene.workspace.history.pieces(blob_id(LARGE))) == LARGE
    sound(scene)


# ---- reading


def test_no_more_is_read_at_once_than_was_asked_for(scene: Scene) -> None:
    seq = edit(scene, "f", LARGE)
    name = blob_id(LARGE)
    with pytest.raises(BlobTooLarge):
        scene.workspace.history.blob(name)
    assert scene.workspace.history.text(name) == placeholder(name)
    assert is_binary(scene.workspace.history.text(name))
    with pytest.raises(FileTooLarge):
        scene.workspace.review.amendable(seq)
    with pytest.raises(FileTooLarge):
        scene.workspace.history.blame("f")
    with scene.workspace.call(CallInfo(tool="t")) as call:
        assert call.exists("f")
        with pytest.raises(FileTooLarge):
            call.read("f")
    assert scene.workspace.history.sha256(name)


# ---- damage


def test_a_flipped_byte_in_a_chunk_costs_the_states_that_have_it_and_no_other(scene: Scene, tmp_path: Path) -> None:
    edit(scene, "f", LARGE)
    other = bytes(MAX_BLOB) + NOISE
    edit(scene, "g", other[1:] + b"another")
    (segment,) = (scene.root / ".cas" / "segments").glob("*.seg")
    content = bytearray(segment.read_bytes())
    # The first megabyte is a chunk of the one file only; the other is cut elsewhere.
    content[content.index(NOISE[1000:1100])] ^= 1
    segment.write_bytes(content)
    lost, kept = blob_id(LARGE), blob_id(other[1:] + b"another")
    (fault,) = [fault for fault in check_store(str(scene.root)).faults if lost.hex() in fault.what]
    assert "its chunk" in fault.what
    assert fault.edits == (1,)
    found = salvage_store(str(scene.root), str(tmp_path / "saved"))
    assert lost in {blob.id for blob in found.lost_blobs}
    assert kept in found.blobs
    with Workspace.open(tmp_path / "saved") as saved:
        assert b"".join(saved.history.pieces(kept)) == other[1:] + b"another"
        with pytest.raises(CasError):
            b"".join(saved.history.pieces(lost))


def test_a_large_state_whose_list_is_damaged_is_let_go_of_and_work_goes_on(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    edit(scene, "f", b"small again\n")
    decide(scene, Action.ACCEPT, 1, 2)
    damage(scene.root, blob_id(LARGE))
    assert scene.workspace.retention.expire(RetentionLimits(older_than=0))
    edit(scene, "f", b"smaller\n")
    assert (scene.root / "f").read_bytes() == b"smaller\n"
    # What chunks it had is not known any more, so they are held on; the counts are sound.
    assert {fault.part for fault in check_store(str(scene.root)).faults} == {StorePart.SEGMENTS}


def test_a_large_file_of_which_a_chunk_is_lost_can_be_written_whatever_a_hand_made_of_it(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    edit(scene, "g", TEN)
    scene.workspace.close()
    lose(scene.root, blob_id(LARGE[:CHUNK]))
    scene.workspace = Workspace.open(scene.root, scene.disk())
    (scene.root / "f").write_bytes(b"by hand\n")
    edit(scene, "f", TEN)
    operations = [view.edit.operation for view in scene.workspace.history.edits()]
    assert operations == ["create", "create", "delete", "create", "replace"]
    (scene.root / "f").write_bytes(LARGE)
    scene.workspace.record_changes(CallInfo(tool="t", conversation="c"))
    sound(scene)


def test_a_large_file_of_which_a_hand_changed_the_mode_alone_gives_back_the_chunk_that_was_lost(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    scene.workspace.close()
    lose(scene.root, blob_id(LARGE[:CHUNK]))
    scene.workspace = Workspace.open(scene.root, scene.disk())
    (scene.root / "f").chmod(0o755)
    edit(scene, "f", TEN)
    assert [view.edit.operation for view in scene.workspace.history.edits()] == ["create", "edit", "replace"]
    sound(scene)
    scene.reject(3)
    assert (scene.root / "f").read_bytes() == LARGE


# ---- files that look like a placeholder


@pytest.mark.parametrize(
    "content",
    [PREFIX, placeholder(blob_id(b"x")), placeholder(blob_id(b"x")) + b"more\n", b"a\n" + placeholder(blob_id(b"x"))],
)
def test_a_file_that_looks_like_a_stand_in_is_itself(scene: Scene, content: bytes) -> None:
    edit(scene, "f", TEN)
    looks = edit(scene, "f", content)
    assert (scene.root / "f").read_bytes() == content
    with scene.workspace.call(CallInfo(tool="t")) as call:
        assert call.read("f").bytes == content
    after = edit(scene, "f", TEN + b"11\n")
    decide(scene, Action.REJECT, after)
    assert (scene.root / "f").read_bytes() == content
    (scene.root / "f").write_bytes(content + b"by hand")
    assert isinstance(decide(scene, Action.REJECT, looks, on_external=OnExternal.DISCARD), Decided)
    assert (scene.root / "f").read_bytes() == TEN
    scene.workspace.review.restore(scene.workspace.history.find_state(f"f@{looks}"))
    assert (scene.root / "f").read_bytes() == content
    sound(scene)


# ---- concurrent changes and crashes


class Meddling(Disk):
    """A disk on which somebody writes to a file while it is taken in."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        self.meddle: Callable[[], object] | None = meddle

    def append(self, fd: int, content: bytes, name: str) -> None:
        if self.meddle is not None:
            self.meddle()
            self.meddle = None
        super().append(fd, content, name)


@pytest.mark.parametrize("at", [0, len(LARGE) - 1])
def test_a_file_that_changes_while_it_is_taken_in_is_noticed(tmp_path: Path, at: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(LARGE)

    def meddle() -> None:
        with path.open("r+b") as file:
            file.seek(at)
            file.write(b"!")

    Workspace.init(tmp_path).close()
    with Workspace.open(tmp_path, Meddling(meddle)) as workspace:
        with workspace.call(CallInfo(tool="t")) as call:
            call.delete("f")
            with pytest.raises(FileChanged):
                call.commit()
        assert workspace.history.edits() == []
        assert path.stat().st_size == len(LARGE)
        with workspace.call(CallInfo(tool="t")) as call:
            call.delete("f")
            call.commit()
        assert not path.exists()
    assert check_store(str(tmp_path)).faults == ()


def started(root: Path) -> None:
    with (root / "f").open("wb") as file:
        file.write(NOISE)
        file.seek(LARGE.rindex(b"\0") + 1)  # a hole is made faster than zeros are written
        file.write(b"the end\n")
    with Workspace.init(root) as workspace, workspace.call(CallInfo(tool="t", conversation="c")) as call:
        call.write("g", TEN)
        call.commit()


def act(workspace: Workspace) -> None:
    """Take in a large file, and put another one in its place."""
    with workspace.call(CallInfo(tool="t", conversation="c")) as call:
        call.write("f", OTHER)
        call.write("g", TEN + b"11\n")
        call.commit()


def telling_steps(root: Path) -> list[tuple[int, str]]:
    """Return the steps of the act at which it may be cut off, the small steps are walked elsewhere."""
    root.mkdir()
    started(root)
    disk = CountdownDisk(None)
    with Workspace.open(root, disk) as workspace:
        act(workspace)
    assert disk.done.count("append") > 1, "the chunks are to be appended in several groups"
    first = {disk.done.index(kind) for kind in ("stage", "append", "sync", "exchange")}
    last_append = len(disk.done) - 1 - disk.done[::-1].index("append")
    return [(step, disk.done[step]) for step in sorted({*first, last_append})]


def assert_whole_and_going_on(root: Path, step: str) -> None:
    with Workspace.open(root) as workspace:
        states = (root / "f").read_bytes() == OTHER, (root / "g").read_bytes() == TEN + b"11\n"
        assert states in {(True, True), (False, False)}, step
        assert len(workspace.history.edits()) == (3 if states[0] else 1), step
        with workspace.call(CallInfo(tool="t")) as call:
            call.write("afterwards", b"work goes on\n")
            call.commit()
        assert workspace.review.external_changes() == ()
    assert check_store(str(root), quick=True).faults == (), step


def test_wherever_it_is_killed_the_call_is_whole_and_work_goes_on(tmp_path: Path) -> None:
    for step, kind in telling_steps(tmp_path / "whole"):
        root = tmp_path / str(step)
        root.mkdir()
        started(root)
        with Workspace.open(root, CountdownDisk(step, power_cut, torn=0.5)) as workspace, pytest.raises(PowerCut):
            act(workspace)
        assert_whole_and_going_on(root, kind)
        shutil.rmtree(root)


def test_wherever_the_disk_is_full_nothing_has_changed_and_work_goes_on(tmp_path: Path) -> None:
    for step, kind in telling_steps(tmp_path / "whole"):
        if kind not in {"stage", "append"}:
            continue
        root = tmp_path / str(step)
        root.mkdir()
        started(root)
        disk = CountdownDisk(step, full_disk, lasting=False, torn=0.5)
        with Workspace.open(root, disk) as workspace:
            with pytest.raises(DiskFull):
                act(workspace)
            assert (root / "f").read_bytes() == LARGE
            assert len(workspace.history.edits()) == 1
            act(workspace)
            assert (root / "f").read_bytes() == OTHER
        shutil.rmtree(root)


TAKES_TURNS: Final = """
import sys
from objstore import CallInfo, FileState, Workspace

with Workspace.open(sys.argv[1]) as workspace:
    states = [view.edit.after for view in workspace.history.edits()[:2]]
    while True:
        for state in states:
            sys.stdout.write(".")
            sys.stdout.flush()
            with workspace.call(CallInfo(tool="t")) as call:
                call.restore("f", state)
                call.commit()
            workspace.review.restore(workspace.history.find_state("f@1"))
"""


def test_whenever_a_process_is_killed_the_file_is_one_of_its_states(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    edit(scene, "f", OTHER)
    command = [sys.executable, "-P", "-c", TAKES_TURNS, str(scene.root)]
    chance = random.Random(1)
    for number in range(3):
        with subprocess.Popen(command, env=environment({}), stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.read(2)
            time.sleep(chance.random())  # a turn takes about so long, so this falls anywhere in one
            writer.send_signal(signal.SIGKILL)
        with Workspace.open(scene.root) as workspace:
            assert (scene.root / "f").read_bytes() in {LARGE, OTHER}
            assert workspace.review.external_changes() == ()
            with workspace.call(CallInfo(tool="t")) as call:
                call.write("g", b"%d\n" % number)
                call.commit()
        assert list((scene.root / ".cas" / "tmp").iterdir()) == []
    scene.reopen()
    sound(scene)


def test_what_a_power_cut_left_of_a_large_file_is_rolled_forward(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()

    def found(*external: str) -> bytes:
        """Return what the file is after the next start of the machine."""
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            assert tuple(change.path for change in workspace.review.status().external) == external
        return (root / "f").read_bytes()

    def wrote(workspace: Workspace, content: bytes) -> None:
        with workspace.call(CallInfo(tool="t")) as call:
            call.write("f", content)
            call.commit()

    started(root)
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        act(workspace)
    beginning = OTHER[: 4 * MEGABYTE]
    for cut in (beginning, beginning + bytes(len(OTHER) - len(beginning))):
        (root / "f").write_bytes(cut)
        started_again(root)
        assert found() == OTHER
    # The name may be that of an earlier state, and its bytes not all there. Any other byte behind them is somebody's,
    # and so is an end within a sector.
    cuts = b"", beginning, beginning + bytes(MAX_BLOB)
    for cut in (*cuts, beginning + b"!", beginning[:-1]):
        with ran_on(root) as later:
            (root / "f").write_bytes(cut[: len(OTHER)])
            wrote(later, TEN)
        is_somebodys = cut not in cuts
        assert found(*["f"] * is_somebodys) == (cut if is_somebodys else TEN)
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            wrote(workspace, OTHER)
    for cut in (beginning + b"!" * 512, beginning[:-1]):
        (root / "f").write_bytes(cut)
        started_again(root)
        assert found("f") == cut
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            wrote(workspace, OTHER)


class KilledAtTheFile(CountdownDisk):
    """A disk of a process that is killed when its call is in the log and no file has followed."""

    def __init__(self) -> None:
        super().__init__(None)

    def _step(self, operation: str, name: str, tear: Callable[[float], None] | None = None) -> None:
        if operation == "exchange":
            raise PowerCut
        super()._step(operation, name, tear)


def test_what_a_person_left_of_a_large_file_after_a_kill_stays(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace, workspace.call(CallInfo(tool="t")) as call:
        call.write("f", TEN)
        call.commit()
    killed = Workspace.open(tmp_path, KilledAtTheFile())
    with suppress(PowerCut), killed as workspace, workspace.call(CallInfo(tool="t")) as call:
        call.write("f", OTHER)
        call.commit()
    (tmp_path / "f").write_bytes(OTHER[:MEGABYTE])
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        assert [change.path for change in workspace.review.status().external] == ["f"]
    assert (tmp_path / "f").read_bytes() == OTHER[:MEGABYTE]


WANTED: Final = OTHER[::-1]
"""What a file with several names is to hold."""


class TornDisk(CountdownDisk):
    """A disk on which the power fails while a file with several names is written in place."""

    def __init__(self) -> None:
        super().__init__(0, power_cut, torn=0.6)
        self.disarmed = True

    def rewrite(self, directory: int, name: str, content: Pieces) -> None:
        self.disarmed = False
        super().rewrite(directory, name, content)


def cut_off(root: Path, path: str) -> None:
    """Leave a file with two names as a power cut does that comes while it is being rewritten."""
    started(root)
    (root / "same").hardlink_to(root / path)
    with Workspace.open(root, TornDisk()) as workspace, workspace.call(CallInfo(tool="t")) as call:
        call.write(path, WANTED)
        with pytest.raises(PowerCut):
            call.commit()


@pytest.mark.parametrize("path", ["f", "g"], ids=["large before", "small before"])
def test_a_large_file_with_two_names_that_was_being_rewritten_is_finished(tmp_path: Path, path: str) -> None:
    cut_off(tmp_path, path)
    torn = (tmp_path / path).read_bytes()
    assert torn not in {LARGE, TEN, WANTED}
    Workspace.open(tmp_path).close()
    assert (tmp_path / "same").read_bytes() == WANTED


@pytest.mark.parametrize(
    ("path", "left"),
    [
        pytest.param("f", WANTED[:MEGABYTE], id="cut off where new bytes end"),
        pytest.param("f", WANTED[:MEGABYTE] + LARGE[MEGABYTE : 2 * MEGABYTE], id="cut off behind that"),
        pytest.param("g", WANTED[:MEGABYTE] + b"!", id="something behind new bytes"),
    ],
)
def test_what_a_rewrite_of_a_file_with_two_names_can_not_have_left_is_somebodys(
    tmp_path: Path, path: str, left: bytes
) -> None:
    """What is in the way of the new bytes is written over, and what is too long for them goes last."""
    cut_off(tmp_path, path)
    (tmp_path / path).write_bytes(left)
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        assert [change.path for change in workspace.review.status().external] == [path]
    assert (tmp_path / "same").read_bytes() == left


@pytest.mark.parametrize("markers", [False, True])
def test_a_decision_whose_text_would_be_too_large_is_refused_with_its_size(scene: Scene, *, markers: bool) -> None:
    first, last, new = (letter * (30 * MEGABYTE) + b"\n" for letter in (b"a", b"b", b"c"))
    (scene.root / "f").write_bytes(first + TEN + last[:MEGABYTE] + b"\n")
    scene.write("f", TEN + last[:MEGABYTE] + b"\n")
    scene.write("f", TEN + last + new)
    before = scene.everything()
    with pytest.raises(FileTooLarge) as refused:
        scene.workspace.decide(Action.REJECT, scene.units(1), markers=markers)
    assert refused.value.size == len(first + TEN + last + new)
    assert scene.everything() == before
    assert isinstance(scene.decide(Action.REJECT, 1, 2), Decided)


def test_a_conflict_that_would_be_too_large_with_markers_is_refused_as_one(scene: Scene) -> None:
    old, new, newest = (letter * (23 * MEGABYTE) + b"\n" for letter in (b"a", b"b", b"c"))
    (scene.root / "f").write_bytes(TEN + old + TEN)
    scene.write("f", TEN + new + TEN)
    scene.write("f", TEN + newest + TEN)
    before = scene.everything()
    assert isinstance(scene.workspace.decide(Action.REJECT, scene.units(1), markers=True), Conflicted)
    assert scene.everything() == before
