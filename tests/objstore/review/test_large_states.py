"""Test large states: a file over the limit is decided on as a whole, and no byte of it is lost.

The limit is lowered. At the real one, tests of streaming, of the command and of stores of earlier versions have files.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest

from objstore import (
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
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.disk.fs.disk import Disk, Pieces
from objstore.model.large_file_placeholder import PREFIX, placeholder
from objstore.model.ranges import Range
from objstore.storage.log.chunking import CHUNK
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.integrity.fsck import StorePart
from objstore.upkeep.retention.compaction import compact, plan_compaction
from objstore.upkeep.retention.expiry import expire, plan_expiry
from objstore.values.fastclass import replace
from tests.support.command_runner import environment
from tests.support.damaged_stores import damage, lose
from tests.support.faulty_disk import WHOLE, CountdownDisk, PowerCut, full_disk, power_cut
from tests.support.lower_limit import LOWER_LIMIT, lowered_limit
from tests.support.scene import TEN, Scene

MEGABYTE: Final = 1 << 20
NOISE: Final = os.urandom(5 * MEGABYTE)
LARGE: Final = NOISE + bytes(LOWER_LIMIT - len(NOISE)) + b"the end\n"
OTHER: Final = NOISE[: 3 * MEGABYTE] + b"put in" + LARGE[3 * MEGABYTE :]


@pytest.fixture(scope="module", autouse=True)
def lower_limit() -> Iterator[None]:
    with lowered_limit():
        yield


def edit(scene: Scene, path: str, content: bytes) -> int:
    with scene.workspace.call(CallInfo(tool="t", conversation="c")) as call:
        call.write(path, content)
        return call.commit().edits[0].seq


def decide(scene: Scene, action: Action, *seqs: int, on_external: OnExternal = OnExternal.ABORT) -> object:
    units = [unit for seq in seqs for unit in scene.workspace.find_units(str(seq))[1]]
    return scene.workspace.decide(action, units, on_external=on_external)


def check_sound(scene: Scene) -> None:
    """Check the whole store: blobs, chunks, reference counts, replay."""
    assert check_store(str(scene.root)).faults == ()


def log_size(scene: Scene) -> int:
    return sum(segment.size for segment in scene.workspace.history.segments())


# ---- from small to large and back


def test_edits_to_and_from_a_large_state_are_decided_separately(scene: Scene) -> None:
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
    check_sound(scene)


def test_lines_are_never_merged_with_a_large_state(scene: Scene) -> None:
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
    found_conflicts = [(str(found), found.line, found.removed, found.inserted) for found in outcome.conflicts]
    assert found_conflicts == [("edit 3 hunk 1 needs edit 2 (f)", 0, b"", b"")]


def test_every_kind_of_edit_of_a_large_file_can_be_undone(scene: Scene) -> None:
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
    check_sound(scene)


# ---- what it costs


def test_change_inside_a_large_file_stores_little_more_than_the_change(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    before = log_size(scene)
    edit(scene, "f", OTHER)
    # A new chunk list, and a delta against the replaced chunk.
    assert log_size(scene) - before < 10_000
    assert b"".join(scene.workspace.history.pieces(blob_id(OTHER))) == OTHER
    check_sound(scene)


def test_copy_of_a_large_file_stores_no_content(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    before = log_size(scene)
    edit(scene, "g", LARGE)
    assert log_size(scene) - before < 1_000


def test_chunks_are_held_as_long_as_their_blob(scene: Scene) -> None:
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


def test_unheld_large_blob_is_removed_with_its_unshared_chunks(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    edit(scene, "f", OTHER)
    edit(scene, "gone", LARGE[::-1])
    with scene.workspace.call(CallInfo(tool="t", conversation="c")) as call:
        call.delete("gone")
        call.commit()
    decide(scene, Action.ACCEPT, 1, 2, 3, 4)
    before = log_size(scene)
    scene.workspace.retention.collect(RetentionLimits(older_than=0))
    assert before - log_size(scene) > 5 * MEGABYTE
    assert not {blob_id(LARGE), blob_id(LARGE[::-1])} & set(scene.workspace.history.blobs())
    assert b"".join(scene.workspace.history.pieces(blob_id(OTHER))) == OTHER
    edit(scene, "f", LARGE)
    assert (scene.root / "f").read_bytes() == LARGE
    scene.reopen()
    check_sound(scene)


def delete_all_but_the_chunk_list(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete a large file whose chunk list is in a segment with mostly held blobs."""
    monkeypatch.setattr("objstore.storage.log.segments.ROTATE_AT", 4 * MEGABYTE)
    edit(scene, "f", LARGE)
    edit(scene, "in use", LARGE[: len(NOISE)][::-1])
    with scene.workspace.call(CallInfo(tool="t", conversation="c")) as call:
        call.delete("f")
        call.commit()
    decide(scene, Action.ACCEPT, 1, 2, 3)


def test_chunk_list_is_removed_with_its_chunks_from_any_segment(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    delete_all_but_the_chunk_list(scene, monkeypatch)
    scene.workspace.retention.collect(RetentionLimits(older_than=0))
    assert blob_id(LARGE) not in set(scene.workspace.history.blobs())
    check_sound(scene)
    edit(scene, "f", LARGE)
    assert b"".join(scene.workspace.history.pieces(blob_id(LARGE))) == LARGE
    check_sound(scene)


def test_chunk_list_without_its_chunks_does_not_count_as_stored(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    delete_all_but_the_chunk_list(scene, monkeypatch)
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
    check_sound(scene)


def test_purge_of_a_chunk_removes_the_states_that_contain_it(scene: Scene) -> None:
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
    check_sound(scene)


# ---- reading


def test_large_blob_is_never_read_completely_into_memory(scene: Scene) -> None:
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


def test_damaged_chunk_affects_only_the_states_that_contain_it(scene: Scene, tmp_path: Path) -> None:
    edit(scene, "f", LARGE)
    other = bytes(LOWER_LIMIT) + NOISE
    edit(scene, "g", other[1:] + b"another")
    (segment,) = (scene.root / ".cas" / "segments").glob("*.seg")
    content = bytearray(segment.read_bytes())
    # The first megabyte is a chunk of one file only; the other file is cut at other offsets.
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


def test_large_state_with_a_damaged_chunk_list_can_expire(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    edit(scene, "f", b"small again\n")
    decide(scene, Action.ACCEPT, 1, 2)
    damage(scene.root, blob_id(LARGE))
    assert scene.workspace.retention.expire(RetentionLimits(older_than=0))
    edit(scene, "f", b"smaller\n")
    assert (scene.root / "f").read_bytes() == b"smaller\n"
    # Its chunks are no longer known, so they stay held; the reference counts are correct.
    assert {fault.part for fault in check_store(str(scene.root)).faults} == {StorePart.SEGMENTS}


def test_large_file_with_a_lost_chunk_can_be_written_after_any_external_change(scene: Scene) -> None:
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
    check_sound(scene)


def test_lost_chunk_is_stored_again_from_a_file_with_a_changed_mode(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    scene.workspace.close()
    lose(scene.root, blob_id(LARGE[:CHUNK]))
    scene.workspace = Workspace.open(scene.root, scene.disk())
    (scene.root / "f").chmod(0o755)
    edit(scene, "f", TEN)
    assert [view.edit.operation for view in scene.workspace.history.edits()] == ["create", "edit", "replace"]
    check_sound(scene)
    scene.reject(3)
    assert (scene.root / "f").read_bytes() == LARGE


# ---- files that look like a placeholder


@pytest.mark.parametrize(
    "content",
    [PREFIX, placeholder(blob_id(b"x")), placeholder(blob_id(b"x")) + b"more\n", b"a\n" + placeholder(blob_id(b"x"))],
)
def test_file_that_looks_like_a_placeholder_is_kept_verbatim(scene: Scene, content: bytes) -> None:
    edit(scene, "f", TEN)
    placeholder_like = edit(scene, "f", content)
    assert (scene.root / "f").read_bytes() == content
    with scene.workspace.call(CallInfo(tool="t")) as call:
        assert call.read("f").bytes == content
    after = edit(scene, "f", TEN + b"11\n")
    decide(scene, Action.REJECT, after)
    assert (scene.root / "f").read_bytes() == content
    (scene.root / "f").write_bytes(content + b"by hand")
    assert isinstance(decide(scene, Action.REJECT, placeholder_like, on_external=OnExternal.DISCARD), Decided)
    assert (scene.root / "f").read_bytes() == TEN
    scene.workspace.review.restore(scene.workspace.history.find_state(f"f@{placeholder_like}"))
    assert (scene.root / "f").read_bytes() == content
    check_sound(scene)


# ---- concurrent changes and crashes


class WritingDisk(Disk):
    """A disk on which another process writes to a file while it is stored."""

    def __init__(self, write_to_file: Callable[[], object]) -> None:
        self.write_to_file: Callable[[], object] | None = write_to_file

    def append(self, fd: int, content: bytes, name: str) -> None:
        if self.write_to_file is not None:
            self.write_to_file()
            self.write_to_file = None
        super().append(fd, content, name)


@pytest.mark.parametrize("at", [0, len(LARGE) - 1])
def test_change_of_a_file_while_it_is_stored_is_detected(tmp_path: Path, at: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(LARGE)

    def write_to_file() -> None:
        with path.open("r+b") as file:
            file.seek(at)
            file.write(b"!")

    Workspace.init(tmp_path).close()
    with Workspace.open(tmp_path, WritingDisk(write_to_file)) as workspace:
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


def create_workspace(root: Path) -> None:
    with (root / "f").open("wb") as file:
        file.write(NOISE)
        file.seek(LARGE.rindex(b"\0") + 1)  # a hole is faster than writing zeros
        file.write(b"the end\n")
    with Workspace.init(root) as workspace, workspace.call(CallInfo(tool="t", conversation="c")) as call:
        call.write("g", TEN)
        call.commit()


def write_both(workspace: Workspace) -> None:
    """Store a large file, and replace it by another one."""
    with workspace.call(CallInfo(tool="t", conversation="c")) as call:
        call.write("f", OTHER)
        call.write("g", TEN + b"11\n")
        call.commit()


def relevant_steps(root: Path) -> list[tuple[int, str]]:
    """Return the relevant steps at which to interrupt; the small steps are tested elsewhere."""
    root.mkdir()
    create_workspace(root)
    disk = CountdownDisk(None)
    with Workspace.open(root, disk) as workspace:
        write_both(workspace)
    assert disk.done.count("append") > 1, "the chunks are to be appended in several groups"
    first = {disk.done.index(kind) for kind in ("stage", "append", "sync", "exchange")}
    last_append = len(disk.done) - 1 - disk.done[::-1].index("append")
    return [(step, disk.done[step]) for step in sorted({*first, last_append})]


def assert_whole_and_usable(root: Path, step: str) -> None:
    with Workspace.open(root) as workspace:
        states = (root / "f").read_bytes() == OTHER, (root / "g").read_bytes() == TEN + b"11\n"
        assert states in {(True, True), (False, False)}, step
        assert len(workspace.history.edits()) == (3 if states[0] else 1), step
        with workspace.call(CallInfo(tool="t")) as call:
            call.write("afterwards", b"work goes on\n")
            call.commit()
        assert workspace.review.external_changes() == ()
    assert check_store(str(root), quick=True).faults == (), step


def test_call_with_a_large_file_is_whole_after_a_kill_at_any_step(tmp_path: Path) -> None:
    for step, kind in relevant_steps(tmp_path / "whole")[:: 1 if WHOLE else 2]:
        root = tmp_path / str(step)
        root.mkdir()
        create_workspace(root)
        with Workspace.open(root, CountdownDisk(step, power_cut, torn=0.5)) as workspace, pytest.raises(PowerCut):
            write_both(workspace)
        assert_whole_and_usable(root, kind)
        shutil.rmtree(root)


def test_full_disk_at_any_step_changes_nothing(tmp_path: Path) -> None:
    steps = [(step, kind) for step, kind in relevant_steps(tmp_path / "whole") if kind in {"stage", "append"}]
    for step, _ in steps[:: 1 if WHOLE else 2]:
        root = tmp_path / str(step)
        root.mkdir()
        create_workspace(root)
        disk = CountdownDisk(step, full_disk, lasting=False, torn=0.5)
        with Workspace.open(root, disk) as workspace:
            with pytest.raises(DiskFull):
                write_both(workspace)
            assert (root / "f").read_bytes() == LARGE
            assert len(workspace.history.edits()) == 1
            write_both(workspace)
            assert (root / "f").read_bytes() == OTHER
        shutil.rmtree(root)


ALTERNATING_WRITER: Final = """
import sys
from objstore import CallInfo, FileState, Workspace
from tests.support.lower_limit import LOWER_LIMIT, set_limit

set_limit(LOWER_LIMIT)
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


def test_large_file_has_one_of_its_states_after_a_kill_at_any_time(scene: Scene) -> None:
    edit(scene, "f", LARGE)
    edit(scene, "f", OTHER)
    command = [sys.executable, "-P", "-c", ALTERNATING_WRITER, str(scene.root)]
    chance = random.Random(1)
    for number in range(3 if WHOLE else 1):
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
    check_sound(scene)


class KilledAtTheFile(CountdownDisk):
    """A disk of a process that is killed when its call is in the log and no file has changed."""

    def __init__(self) -> None:
        super().__init__(None)

    def _step(self, operation: str, name: str, tear: Callable[[float], None] | None = None) -> None:
        if operation == "exchange":
            raise PowerCut
        super()._step(operation, name, tear)


def test_persons_change_of_a_large_file_after_a_kill_is_kept(tmp_path: Path) -> None:
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


NEW_CONTENT: Final = OTHER[::-1]
"""What a file with several names is to hold."""


class TornDisk(CountdownDisk):
    """A disk on which the power fails while a file with several names is written in place."""

    def __init__(self) -> None:
        super().__init__(0, power_cut, torn=0.6)
        self.disarmed = True

    def rewrite(self, directory: int, name: str, content: Pieces) -> None:
        self.disarmed = False
        super().rewrite(directory, name, content)


def interrupt_rewrite(root: Path, path: str) -> None:
    """Leave a file with two names as a power cut does that comes while it is being rewritten."""
    create_workspace(root)
    (root / "same").hardlink_to(root / path)
    with Workspace.open(root, TornDisk()) as workspace, workspace.call(CallInfo(tool="t")) as call:
        call.write(path, NEW_CONTENT)
        with pytest.raises(PowerCut):
            call.commit()


@pytest.mark.parametrize("path", ["f", "g"], ids=["large before", "small before"])
def test_interrupted_rewrite_of_a_large_file_with_two_names_is_completed(tmp_path: Path, path: str) -> None:
    interrupt_rewrite(tmp_path, path)
    torn = (tmp_path / path).read_bytes()
    assert torn not in {LARGE, TEN, NEW_CONTENT}
    Workspace.open(tmp_path).close()
    assert (tmp_path / "same").read_bytes() == NEW_CONTENT


@pytest.mark.parametrize(
    ("path", "left"),
    [
        pytest.param("f", NEW_CONTENT[:MEGABYTE], id="cut off where new bytes end"),
        pytest.param("f", NEW_CONTENT[:MEGABYTE] + LARGE[MEGABYTE : 2 * MEGABYTE], id="cut off behind that"),
        pytest.param("g", NEW_CONTENT[:MEGABYTE] + b"!", id="something behind new bytes"),
    ],
)
def test_content_that_no_interrupted_rewrite_can_leave_is_kept_as_external(
    tmp_path: Path, path: str, left: bytes
) -> None:
    """A rewrite overwrites the old bytes first, and truncates last."""
    interrupt_rewrite(tmp_path, path)
    (tmp_path / path).write_bytes(left)
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        assert [change.path for change in workspace.review.status().external] == [path]
    assert (tmp_path / "same").read_bytes() == left


@pytest.mark.parametrize("markers", [False, True])
def test_a_decision_whose_text_would_be_too_large_is_refused_with_its_size(scene: Scene, *, markers: bool) -> None:
    first, last, new = (letter * (LOWER_LIMIT * 15 // 32) + b"\n" for letter in (b"a", b"b", b"c"))
    (scene.root / "f").write_bytes(first + TEN + last[:MEGABYTE] + b"\n")
    scene.write("f", TEN + last[:MEGABYTE] + b"\n")
    scene.write("f", TEN + last + new)
    before = scene.everything()
    with pytest.raises(FileTooLarge) as refused:
        scene.workspace.decide(Action.REJECT, scene.units(1), markers=markers)
    assert refused.value.size == len(first + TEN + last + new)
    assert scene.everything() == before
    assert isinstance(scene.decide(Action.REJECT, 1, 2), Decided)


def test_conflict_too_large_for_markers_is_reported_as_a_conflict(scene: Scene) -> None:
    old, new, newest = (letter * (LOWER_LIMIT * 23 // 64) + b"\n" for letter in (b"a", b"b", b"c"))
    (scene.root / "f").write_bytes(TEN + old + TEN)
    scene.write("f", TEN + new + TEN)
    scene.write("f", TEN + newest + TEN)
    before = scene.everything()
    assert isinstance(scene.workspace.decide(Action.REJECT, scene.units(1), markers=True), Conflicted)
    assert scene.everything() == before
