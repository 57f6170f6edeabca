"""Test a crash at every step of everything that writes: calls are whole, files match the journal, and work continues.

Each scene is failed at its last and at another step, a different one in each test; with `CAS_CRASH_STEPS=1` (`make
crash`) at every step.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from typing import Final

import pytest

from objstore import Action, CallInfo, CasError, DiskFull, Origin, PermissionRefused, Unit, Workspace
from objstore.config.setting_sources import RetentionLimits
from objstore.errors import FileUninspectable
from objstore.fs.boot_id import BOOT_ID_SIZE
from objstore.store.write_batch import now
from tests.objstore.tracking.test_unreadable_files import DEEP, with_few_files
from tests.support.crash_scenarios import (
    LINKED,
    MANY_FILES,
    ONE_FILE,
    SCENES,
    TWO_NAMES,
    CrashScenario,
    Files,
    History,
    change,
    files,
    history,
    write,
)
from tests.support.faulty_disk import WHOLE, CountdownDisk, PowerCut, broken_disk, full_disk, power_cut, sampled_steps
from tests.support.index_tables import rebuilt_tables, tables
from tests.support.sampling import sampled_product

INFO: Final = CallInfo(tool="t", conversation="power")
APART: Final = int(os.environ.get("CAS_CRASH_STEPS", "23"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A scenario, run once without failures: its start and its end."""

    scene: CrashScenario
    start: Path
    files: tuple[Files, Files]
    history: tuple[History, History]
    operations: tuple[str, ...]  # what it does to the disk


def run_scenario(scene: CrashScenario, folder: Path) -> Stage:
    """Run a scenario without failures; return its start and end."""
    start, end = folder / "start", folder / "end"
    start.mkdir(parents=True)
    with Workspace.init(start, CountdownDisk(None)) as workspace:
        scene.prepare(workspace)
        before = files(start), history(workspace)
    copy_workspace(start, end)
    disk = CountdownDisk(None)
    with Workspace.open(end, disk) as workspace:
        scene.act(workspace)
        after = files(end), history(workspace)
    return Stage(
        scene=scene,
        start=start,
        files=(before[0], after[0]),
        history=(before[1], after[1]),
        operations=tuple(disk.done),
    )


def copy_workspace(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)
    if (target / TWO_NAMES[1]).exists():
        (target / TWO_NAMES[1]).unlink()
        (target / TWO_NAMES[1]).hardlink_to(target / TWO_NAMES[0])


def named(value: object) -> str:
    """Return the name under which a test with this value is listed."""
    return value.name if isinstance(value, CrashScenario) else getattr(value, "__name__", str(value))


@pytest.fixture(scope="module", params=SCENES, ids=named)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return run_scenario(request.param, tmp_path_factory.mktemp("stage"))


@contextmanager
def running(stage: Stage, root: Path, disk: CountdownDisk) -> Iterator[BaseException | None]:
    """Run the scenario on a copy of its start; yield the exception. A process that died does nothing more."""
    copy_workspace(stage.start, root)
    raised: BaseException | None = None
    workspace = Workspace.open(root, disk)
    try:
        try:
            stage.scene.act(workspace)
        except (PowerCut, CasError) as error:
            raised = error
        yield raised
    finally:
        workspace.close()


def assert_whole(stage: Stage, root: Path, steps_done: str) -> bool:
    """Check a workspace after a crash, then that work in it can continue.

    Return whether the scene's change was made.
    """
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        found = files(root), history(workspace)
        states = list(zip(stage.files, stage.history, strict=True))
        assert found in states, steps_done
        took_place = found == states[1]
        assert workspace.review.status().external == (), steps_done
        if not took_place:
            stage.scene.act(workspace)
            assert (files(root), history(workspace)) == states[1], steps_done
        write(workspace, "afterwards.txt", b"work goes on\n")
        assert files(root)["afterwards.txt"][0] == b"work goes on\n", steps_done
        assert workspace.review.status().external == (), steps_done
    if took_place:
        assert tables(root / ".cas" / "index.sqlite") == rebuilt_tables(root / ".cas"), steps_done
    return took_place


def walk(stage: Stage, way: int = 0) -> Iterator[int]:
    """Return every 23rd step, without end, starting from another one in each scene and mode."""
    return count((len(stage.scene.name) + 3 * way) % min(APART, len(stage.operations)), APART)


def steps(stage: Stage, way: int = 0) -> Iterator[int]:
    """Yield those steps of the walk that the scene has, and its last one."""
    last = len(stage.operations) - 1
    yield from takewhile(lambda step: step < last, walk(stage, way))
    yield last


def steps_done(disk: CountdownDisk) -> str:
    return f"after {', '.join(disk.done) or 'nothing'}: {disk.failed}"


# ---- the order


def test_staging_comes_first_then_the_log_then_the_files_then_the_marker(stage: Stage) -> None:
    done = [operation for i, operation in enumerate(stage.operations) if (i, operation) != (0, "overwrite")]
    append = done.index("append")
    assert done.count("append") == done.count("sync") == 1
    assert set(done[:append]) == {"stage"}
    assert done[append + 1] == "sync"
    assert not set(done[append + 2 :]) & {"stage", "append", "sync"}
    assert done[-1] == "overwrite"
    assert done.count("overwrite") == 1


# ---- the machine or the process stops


@pytest.mark.parametrize(("stage", "torn"), sampled_product(SCENES, (None, 0.5)), indirect=["stage"], ids=named)
def test_call_is_whole_after_a_kill_at_any_step(stage: Stage, tmp_path: Path, torn: float | None) -> None:
    outcomes: list[bool] = []
    for step in sorted({0, *steps(stage)}) if torn is None else steps(stage, 1):
        disk = CountdownDisk(step, power_cut, torn=torn)
        with running(stage, tmp_path / str(step), disk) as raised:
            assert isinstance(raised, PowerCut)
            if torn is None or disk.failed_in_a_write:
                outcomes.append(assert_whole(stage, tmp_path / str(step), steps_done(disk)))
    assert outcomes == sorted(outcomes), "a call that took place at one step takes place at every later step"
    assert torn is not None or set(outcomes) == {False, True}


def test_an_unsynced_call_was_never_recorded(stage: Stage, tmp_path: Path) -> None:
    for step in steps(stage, 2):
        disk = CountdownDisk(step, power_cut)
        with running(stage, tmp_path / str(step), disk):
            disk.lose_unsynced()
            took_place = assert_whole(stage, tmp_path / str(step), steps_done(disk))
        assert took_place is ("sync" in disk.done), steps_done(disk)


def test_call_is_whole_after_a_kill_while_a_segment_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("objstore.log.segments.ROTATE_AT", 1)
    stage = run_scenario(ONE_FILE, tmp_path / "stage")
    assert "create" in stage.operations
    for lost in (False, True):
        for step in range(int(lost and not WHOLE), len(stage.operations), 1 if WHOLE else 4):
            root = tmp_path / f"{step}{lost}"
            disk = CountdownDisk(step, power_cut, torn=0.5)
            with running(stage, root, disk):
                if lost:
                    disk.lose_unsynced()
                assert_whole(stage, root, steps_done(disk))


@pytest.mark.parametrize("stage", SCENES[:: 1 if WHOLE else 2], indirect=True, ids=named)
def test_recovery_can_be_interrupted_at_any_step(stage: Stage, tmp_path: Path) -> None:
    synced = stage.operations.index("sync") + 1
    for step in walk(stage):
        root = tmp_path / str(step)
        with running(stage, root, CountdownDisk(synced, power_cut)):
            disk = CountdownDisk(step, power_cut, torn=0.5)
            with suppress(PowerCut):
                Workspace.open(root, disk).close()
            assert assert_whole(stage, root, steps_done(disk))
        if disk.failed is None:
            break


@pytest.mark.parametrize(("stage", "behind"), sampled_product(SCENES, (1, -2)), indirect=["stage"], ids=named)
def test_roll_back_can_be_interrupted_at_any_step(stage: Stage, tmp_path: Path, behind: int) -> None:
    failing = stage.operations.index("sync") + behind if behind > 0 else len(stage.operations) + behind
    if stage.operations[failing] in {"overwrite", "sync"}:
        return
    for step in walk(stage, behind):
        root = tmp_path / str(step)
        disk = CountdownDisk(failing, broken_disk, lasting=False, then_cut=step)
        with running(stage, root, disk) as raised:
            assert_whole_or_void(stage, root, f"{steps_done(disk)}, then cut: {disk.cut}")
        if not isinstance(raised, PowerCut):
            break


def assert_whole_or_void(stage: Stage, root: Path, steps_done: str) -> None:
    """Check a workspace after a call that may have been rolled back, whose numbers are then used up."""
    with Workspace.open(root, CountdownDisk(None)) as workspace:
        pairs = list(zip(stage.files, stage.history, strict=True))
        assert (files(root), history(workspace)) in pairs, steps_done
        assert workspace.review.status().external == (), steps_done
        write(workspace, "afterwards.txt", b"work goes on\n")
        assert workspace.review.status().external == (), steps_done
    assert tables(root / ".cas" / "index.sqlite") == rebuilt_tables(root / ".cas"), steps_done


def test_file_with_two_names_is_whole_after_a_kill_at_any_step(tmp_path: Path) -> None:
    stage = run_scenario(LINKED, tmp_path / "stage")
    assert "rewrite" in stage.operations
    for way, torn in enumerate((None, 0.5, 0.99)):
        for step, operation in enumerate(stage.operations):
            if not (WHOLE or operation == "rewrite" or step % 9 == 3 * way):
                continue
            root = tmp_path / f"{step} {torn}"
            disk = CountdownDisk(step, power_cut, torn=torn)
            with running(stage, root, disk):
                assert_whole(stage, root, f"{steps_done(disk)}, torn at {torn}")


def test_file_with_two_names_has_bytes_and_mode_of_one_state_after_a_kill(tmp_path: Path) -> None:
    before, after = (b"one\n", 0o644), (b"two\n", 0o755)
    for step in count(step=1 if WHOLE else 2):
        root = tmp_path / str(step)
        root.mkdir()
        with Workspace.init(root, CountdownDisk(None)) as workspace:
            write(workspace, "f", before[0], mode=before[1])
        (root / "g").hardlink_to(root / "f")
        disk = CountdownDisk(step)
        with suppress(PowerCut), Workspace.open(root, disk) as workspace:
            write(workspace, "f", after[0], mode=after[1])
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            assert files(root) in [dict.fromkeys("fg", state) for state in (before, after)], steps_done(disk)
            assert workspace.review.status().external == (), steps_done(disk)
        if disk.failed is None:
            break
    assert step


@pytest.mark.parametrize("content", [b"ONE\ntwo\nthree\n", b""], ids=["half of it", "nothing"])
def test_a_persons_edit_after_a_kill_is_kept_even_if_it_resembles_a_half_written_file(
    tmp_path: Path, content: bytes
) -> None:
    """No file of one name is ever half written: it is exchanged as a whole."""
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        write(workspace, "f", b"one\ntwo\nthree\n")
    for step in count():
        disk = CountdownDisk(step)
        with suppress(PowerCut), Workspace.open(tmp_path, disk) as workspace:
            write(workspace, "f", b"ONE\ntwo\nTHREE\n")
        if disk.failed == "exchange":
            break
    (tmp_path / "f").write_bytes(content)
    with Workspace.open(tmp_path, CountdownDisk(None)) as workspace:
        assert (tmp_path / "f").read_bytes() == content
        assert [change.path for change in workspace.review.status().external] == ["f"]


class Appending(CountdownDisk):
    """A disk on which someone appends a line to an open file once it has been moved, and a kill follows later.

    `fails`: the disk also fails once, when the file is to be moved back.
    """

    def __init__(self, path: Path, steps: int, *, fails: bool) -> None:
        super().__init__(None)
        self._file: Final = path.open("ab", buffering=0)
        self._after: int | None = None
        self._until_cut = steps
        self._fails: Final = fails

    def _step(self, operation: str, name: str, tear: Callable[[float], None] | None = None) -> None:
        if self._after is not None:
            if not self._until_cut:
                self.cut = operation
                raise PowerCut
            self._until_cut -= 1
            if self._fails and operation == "rename_new":
                raise broken_disk(name)
        super()._step(operation, name, tear)

    def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:
        super().rename_new(source_directory, source, directory, name)
        if self._after is None:
            self._after = self._file.write(b"theirs\n")
            self._file.close()


@pytest.mark.parametrize("fails", [False, True], ids=["disk works", "disk fails"])
@pytest.mark.parametrize("names", [1, 2])
def test_bytes_appended_to_a_file_are_kept_if_its_move_is_killed(
    tmp_path: Path,
    names: int,
    fails: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    for step in count():
        root = tmp_path / str(step)
        root.mkdir()
        with Workspace.init(root, CountdownDisk(None)) as workspace:
            write(workspace, "log", b"one\n")
        if names == 2:
            (root / "other").hardlink_to(root / "log")
        inode = (root / "log").stat().st_ino
        disk = Appending(root / "log", step, fails=fails)
        workspace = Workspace.open(root, disk)
        with suppress(PowerCut, CasError), workspace.call(INFO) as call:
            call.move("log", "log2")
            call.commit()
        workspace.close()
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            write(workspace, "afterwards.txt", b"work goes on\n")
        found = {path.name for path in root.iterdir() if path.is_file() and path.stat().st_ino == inode}
        assert found & {"log", "log2"}, disk.cut
        assert {files(root)[name][0] for name in found} == {b"one\ntheirs\n"}, disk.cut
        if disk.cut is None:
            break
    assert step


def test_next_writer_removes_staged_files_of_a_killed_process(tmp_path: Path) -> None:
    stage = run_scenario(MANY_FILES, tmp_path / "stage")
    for step in range(0, len(stage.operations), 1 if WHOLE else 3):
        root = tmp_path / str(step)
        disk = CountdownDisk(step, power_cut, torn=0.5)
        with running(stage, root, disk), Workspace.open(root, CountdownDisk(None)) as workspace:
            write(workspace, "afterwards.txt", b"")
            assert list((root / ".cas" / "tmp").iterdir()) == [], steps_done(disk)


@pytest.mark.parametrize("torn", [None, 0.5])
def test_interrupted_creation_of_a_workspace_can_be_repeated(tmp_path: Path, torn: float | None) -> None:
    for step in count(0 if WHOLE or torn is None else 1, 1 if WHOLE else 3):
        root = tmp_path / str(step)
        root.mkdir()
        (root / "a.txt").write_bytes(b"mine\n")
        disk = CountdownDisk(step, power_cut, torn=torn)
        with suppress(PowerCut):
            Workspace.init(root, disk).close()
        with Workspace.init(root, CountdownDisk(None)) as workspace:
            write(workspace, "a.txt", b"ours\n")
            assert [edit.seq for edit in workspace.history.edits()] == [1]
        assert [path.name for path in root.glob(".cas*")] == [".cas"], steps_done(disk)
        if disk.failed is None:
            break


# ---- the disk is full or fails


@pytest.mark.parametrize(
    ("stage", "failure"), sampled_product(SCENES, (full_disk, broken_disk)), indirect=["stage"], ids=named
)
def test_disk_failure_at_any_step_leaves_the_call_whole_and_is_reported(
    stage: Stage, tmp_path: Path, failure: Callable[[str], BaseException]
) -> None:
    lasting = failure is full_disk
    for step in steps(stage, int(lasting)):
        root = tmp_path / str(step)
        disk = CountdownDisk(step, failure, lasting=lasting)
        with running(stage, root, disk) as raised:
            # Only failures that change no result, such as one to remove a staged file, may go unreported.
            assert isinstance(raised, CasError) or files(root) == stage.files[1], steps_done(disk)
            assert_whole_or_void(stage, root, steps_done(disk))


@pytest.mark.parametrize("stage", SCENES[:: 1 if WHOLE else -2], indirect=True, ids=named)
def test_recovery_continues_after_a_disk_failure_at_any_step(stage: Stage, tmp_path: Path) -> None:
    synced = stage.operations.index("sync") + 1
    for step in walk(stage, 1):
        root = tmp_path / str(step)
        with running(stage, root, CountdownDisk(synced, power_cut)):
            disk = CountdownDisk(step, broken_disk, lasting=False)
            with suppress(CasError):
                Workspace.open(root, disk).close()
            assert assert_whole(stage, root, steps_done(disk))
        if disk.failed is None:
            break


def test_a_file_that_can_not_be_opened_during_recovery_is_not_reported_as_changed(tmp_path: Path) -> None:
    stopped = 0
    kill_between_two_files(tmp_path / "killed")
    for spare in range(2, 30, 1 if WHOLE else 3):
        root = shutil.copytree(tmp_path / "killed", tmp_path / str(spare), symlinks=True)
        with with_few_files(spare):
            try:
                Workspace.open(root, CountdownDisk(None)).close()
            except (CasError, OSError):  # not even the store can be opened
                stopped += 1
        with Workspace.open(root, CountdownDisk(None)) as workspace:
            assert {name: found[0] for name, found in files(root).items()} == {"a.txt": b"new\n", DEEP: b"new\n"}, spare
            assert workspace.review.external_changes() == ()
    assert 0 < stopped < 28


def test_a_writer_blocked_by_an_unreadable_file_gets_the_reason(tmp_path: Path) -> None:
    steps_done = set()
    kill_between_two_files(tmp_path / "killed")
    for spare in range(2, 30, 1 if WHOLE else 3):
        root = shutil.copytree(tmp_path / "killed", tmp_path / str(spare), symlinks=True)
        with suppress(CasError, OSError), with_few_files(spare), Workspace.open(root, CountdownDisk(None)) as workspace:
            try:
                write(workspace, "beside", b"new\n")
            except FileUninspectable as error:
                steps_done.add((error.path, *str(error).split(". ")[:1], "An interrupted call" in str(error)))
    assert steps_done == {(DEEP, "Too many open files", True)}


def kill_between_two_files(root: Path) -> None:
    """Create a workspace in which a process was killed between the two files of a call."""
    root.mkdir()
    with Workspace.init(root, CountdownDisk(None)) as workspace:
        change(workspace, ("a.txt", b"old\n"), (DEEP, b"old\n"))
    workspace = Workspace.open(root, KilledBetween(None))
    with suppress(PowerCut):
        change(workspace, ("a.txt", b"new\n"), (DEEP, b"new\n"))
    workspace.close()
    assert sorted(found[0] for found in files(root).values()) == [b"new\n", b"old\n"]


class KilledBetween(CountdownDisk):
    """A disk whose process is killed before it replaces a second file."""

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        if "exchange" in self.done:
            raise PowerCut
        return super().exchange(source_directory, source, directory, name)


class KilledBeforeAnyFile(CountdownDisk):
    """A disk whose process is killed when its call is durable and no file has changed."""

    def _step(self, operation: str, name: str, tear: Callable[[float], None] | None = None) -> None:
        if self.done[-2:] == ["append", "sync"]:
            raise PowerCut
        super()._step(operation, name, tear)


class DiskSparingOneFile(CountdownDisk):
    """A disk on which one file can't be replaced."""

    def __init__(self, spared: str, failure: Callable[[str], BaseException]) -> None:
        super().__init__(None)
        self._spared = spared
        self._refusal = failure

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        if name == self._spared:
            raise self._refusal(name)
        return super().exchange(source_directory, source, directory, name)


def kill_before_any_file(root: Path, act: Callable[[Workspace], None]) -> None:
    before = files(root)
    workspace = Workspace.open(root, KilledBeforeAnyFile(None))
    with suppress(PowerCut):
        act(workspace)
    workspace.close()
    assert files(root) == before


def write_next(root: Path, disk: CountdownDisk) -> dict[str, bytes]:
    """Return the existing files after another process has completed what it could and written one more."""
    with Workspace.open(root, disk) as workspace:
        write(workspace, "next", b"next\n")
    return {name: found[0] for name, found in files(root).items()}


THREE: Final = ("a", "b", "c")


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """Return a workspace in which a call was killed that was to write three files."""
    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        change(workspace, *((name, b"old\n") for name in THREE))
    kill_before_any_file(tmp_path, lambda workspace: change(workspace, *((name, name.encode()) for name in THREE)))
    return tmp_path


@pytest.mark.parametrize("failure", [PermissionRefused, broken_disk])
@pytest.mark.parametrize("spared", THREE)
def test_unwritable_file_does_not_stop_the_recovery_of_others(
    interrupted: Path, spared: str, failure: Callable[[str], BaseException]
) -> None:
    expected = {name: b"old\n" if name == spared else name.encode() for name in THREE}
    assert write_next(interrupted, DiskSparingOneFile(spared, failure)) == {**expected, "next": b"next\n"}
    with Workspace.open(interrupted, CountdownDisk(None)) as workspace:
        assert [change.path for change in workspace.review.external_changes()] == [spared]


def test_files_that_became_hard_links_do_not_stop_the_recovery_of_others(interrupted: Path) -> None:
    (interrupted / "b").unlink()
    (interrupted / "b").hardlink_to(interrupted / "a")
    found = write_next(interrupted, CountdownDisk(None))
    assert (found["a"], found["c"]) == (found["b"], b"c")


def test_file_is_kept_if_its_replacement_can_not_be_created_and_others_are_applied(tmp_path: Path) -> None:
    def act(workspace: Workspace) -> None:
        with workspace.call(INFO) as call:
            call.delete("d/x")
            call.move("f", "d")
            call.move("g", "h")
            call.write("a", b"new\n")
            call.commit()

    with Workspace.init(tmp_path, CountdownDisk(None)) as workspace:
        change(workspace, ("a", b"old\n"), ("d/x", b"x\n"), ("f", b"f\n"), ("g", b"g\n"))
    kill_before_any_file(tmp_path, act)
    (tmp_path / "d" / "own").write_bytes(b"a person's\n")
    assert write_next(tmp_path, CountdownDisk(None)) == {
        "a": b"new\n",
        "d/own": b"a person's\n",
        "d/x": b"x\n",
        "f": b"f\n",
        "h": b"g\n",
        "next": b"next\n",
    }


@pytest.mark.parametrize(
    ("stage", "failure"), sampled_product(SCENES, (broken_disk, full_disk)), indirect=["stage"], ids=named
)
def test_failure_before_the_append_leaves_the_store_usable(
    stage: Stage, tmp_path: Path, failure: Callable[[str], BaseException]
) -> None:
    for step in sampled_steps(stage.operations.index("append")):
        operation = stage.operations[step]
        root = tmp_path / str(step)
        copy_workspace(stage.start, root)
        disk = CountdownDisk(step, failure)
        with Workspace.open(root, disk) as workspace:
            with pytest.raises(CasError):
                stage.scene.act(workspace)
            assert (files(root), history(workspace)) == (stage.files[0], stage.history[0]), operation
            disk.disarmed = True
            stage.scene.act(workspace)
            assert (files(root), history(workspace)) == (stage.files[1], stage.history[1]), operation


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
def test_a_full_disk_reports_that_nothing_changed_only_if_nothing_did(
    tmp_path: Path,
    lasting: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    stage = run_scenario(MANY_FILES, tmp_path / "stage")
    refused = 0
    for step in range(int(lasting and not WHOLE), len(stage.operations), 1 if WHOLE else 2):
        root = tmp_path / str(step)
        disk = CountdownDisk(step, full_disk, lasting=lasting)
        with running(stage, root, disk) as raised:
            if isinstance(raised, DiskFull):
                refused += 1
                assert files(root) == stage.files[0], steps_done(disk)
                with Workspace.open(root, CountdownDisk(None)):
                    assert files(root) == stage.files[0], steps_done(disk)
    assert refused


# ---- the power fails, and the machine starts again


MARK_BOOT: Final = slice(16, 32)
ANOTHER_START: Final = b"\xff" * BOOT_ID_SIZE
PERSONS_TEXT: Final = b"one\nand mine\n" * 100
TICK: Final = 0.05
"""Seconds after which every file system here gives another time."""


def set_earlier_boot(root: Path) -> None:
    """Make the applied marker one of an earlier boot."""
    mark = root / ".cas" / "applied"
    stored = bytearray(mark.read_bytes())
    stored[MARK_BOOT] = ANOTHER_START
    mark.write_bytes(stored)


@contextmanager
def recorded_before_power_cut(root: Path) -> Iterator[Workspace]:
    """Yield a copy of the workspace: what is done there enters the journal of `root`, and then the machine reboots.

    The files of `root` and its folders keep their times, which a test can't set itself. So they are as after a power
    cut that has taken everything that was done.
    """
    copy = root.with_name(f"{root.name}-ran-on")
    copy_workspace(root, copy)
    with Workspace.open(copy, CountdownDisk(None)) as workspace:
        yield workspace
    store = root / ".cas"
    for name in {path.name for path in store.iterdir()} - {".gitignore"}:
        shutil.rmtree(store / name) if (store / name).is_dir() else (store / name).unlink()
    for path in (copy / ".cas").iterdir():
        if path.name != ".gitignore":
            path.rename(store / path.name)
    shutil.rmtree(copy)
    set_earlier_boot(root)


def set_age(path: Path, seconds: int) -> None:
    """Set the times of a file or a folder to so many seconds after now (before, if negative)."""
    moment = time.time_ns() + seconds * 1_000_000_000
    os.utime(path, ns=(moment, moment))


class AheadDisk(CountdownDisk):
    """A disk whose file times are ahead of the machine's, as on a network share."""

    AHEAD: Final = 30  # seconds

    def __init__(self) -> None:
        super().__init__(None)

    def clock(self, directory: int, name: str) -> int:
        return super().clock(directory, name) + self.AHEAD * 1_000_000_000


def recover(root: Path, disk: CountdownDisk | None = None) -> tuple[Files, tuple[str, ...]]:
    """Let the next writer run; return the files except its own, and the paths that are reported as changed."""
    with Workspace.open(root, disk or CountdownDisk(None)) as workspace:
        write(workspace, "next.txt", b"")
        found = files(root)
        del found["next.txt"]
        return found, tuple(change.path for change in workspace.review.status().external)


class TestAfterAPowerCut:
    @pytest.fixture(autouse=True)
    def workspace(self, tmp_path: Path) -> Iterator[Workspace]:
        self.root = tmp_path / "workspace"
        self.root.mkdir()
        with Workspace.init(self.root, CountdownDisk(None)) as workspace:
            yield workspace

    def test_file_with_its_old_content_is_rolled_forward(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        with recorded_before_power_cut(self.root) as later:
            write(later, "a.txt", b"two\n")
        assert recover(self.root) == ({"a.txt": (b"two\n", 0o644)}, ())

    def test_emptied_file_is_rolled_forward(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        write(workspace, "a.txt", b"two\n")
        (self.root / "a.txt").write_bytes(b"")
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (b"two\n", 0o644)}, ())

    def test_empty_new_file_is_rolled_forward(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        (self.root / "a.txt").write_bytes(b"")
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (b"one\n", 0o644)}, ())

    def test_file_with_missing_last_bytes_is_rolled_forward(self, workspace: Workspace) -> None:
        text = b"line\n" * 5000
        write(workspace, "a.txt", b"one\n")
        write(workspace, "a.txt", text)
        (self.root / "a.txt").write_bytes(text[:4096])
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (text, 0o644)}, ())

    def test_file_with_the_beginning_of_an_older_state_is_rolled_forward(self, workspace: Workspace) -> None:
        text = b"line\n" * 5000
        write(workspace, "a.txt", text)
        with recorded_before_power_cut(self.root) as later:
            (self.root / "a.txt").write_bytes(text[:4096])
            write(later, "a.txt", b"two\n")
        assert recover(self.root) == ({"a.txt": (b"two\n", 0o644)}, ())

    @pytest.mark.parametrize("is_expired", [False, True], ids=["all is kept", "expired"])
    def test_content_that_begins_no_state_is_kept_and_reported(
        self,
        workspace: Workspace,
        is_expired: bool,  # noqa: FBT001 - a parameter of the test
    ) -> None:
        text = b"line\n" * 5000
        workspace.review.status()
        with recorded_before_power_cut(self.root) as later:
            (self.root / "a.txt").write_bytes(text[:4096])
            (self.root / "mine.txt").write_bytes(b"mine\n")
            for path in ("a.txt", "mine.txt"):
                for content in (text, b"two\n", b"three\n"):
                    write(later, path, content)
            if is_expired:
                units = [Unit(view.seq, hunk) for view in later.history.edits() for hunk in range(len(view.units))]
                later.decide(Action.ACCEPT, units)
                later.retention.collect(RetentionLimits(older_than=0), thorough=True)
        found, reported = recover(self.root)
        assert found["mine.txt"] == (b"mine\n", 0o644)
        if is_expired:  # what it began is not known any more
            assert (found["a.txt"], reported) == ((text[:4096], 0o644), ("a.txt", "mine.txt"))
        else:
            assert (found["a.txt"], reported) == ((b"three\n", 0o644), ("mine.txt",))

    @pytest.mark.parametrize("left", [b"", bytes(4)], ids=["empty", "zeros"])
    def test_deleted_file_that_returned_empty_is_deleted_again(self, workspace: Workspace, left: bytes) -> None:
        write(workspace, "a.txt", b"one\n")
        with recorded_before_power_cut(self.root) as later, later.call(INFO) as call:
            (self.root / "a.txt").write_bytes(left)
            call.delete("a.txt")
            call.commit()
        assert recover(self.root) == ({}, ())

    def test_empty_file_created_by_a_person_after_a_deletion_is_kept_and_reported(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        with workspace.call(INFO) as call:
            call.delete("a.txt")
            call.commit()
        (self.root / "a.txt").write_bytes(b"")
        set_age(self.root / "a.txt", 60)
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (b"", 0o644)}, ("a.txt",))

    def test_file_is_rolled_forward_through_several_lost_edits(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        with recorded_before_power_cut(self.root) as later:
            write(later, "a.txt", b"two\n")
            write(later, "a.txt", b"three\n")
        assert recover(self.root) == ({"a.txt": (b"three\n", 0o644)}, ())

    def test_lost_new_file_is_created_again(self) -> None:
        with recorded_before_power_cut(self.root) as later:
            write(later, "a.txt", b"one\n")
        assert recover(self.root) == ({"a.txt": (b"one\n", 0o644)}, ())

    def test_lost_new_file_with_later_edits_is_created_again(self) -> None:
        with recorded_before_power_cut(self.root) as later:
            write(later, "a.txt", b"one\n")
            write(later, "a.txt", b"two\n")
        assert recover(self.root) == ({"a.txt": (b"two\n", 0o644)}, ())

    def test_several_lost_new_files_are_created_again(self) -> None:
        with recorded_before_power_cut(self.root) as later:
            write(later, "a.txt", b"one\n")
            write(later, "b.txt", b"two\n")
        assert recover(self.root) == ({"a.txt": (b"one\n", 0o644), "b.txt": (b"two\n", 0o644)}, ())

    def test_new_file_deleted_by_a_person_stays_deleted_and_is_reported(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        (self.root / "a.txt").unlink()
        set_age(self.root, 60)
        set_earlier_boot(self.root)
        assert recover(self.root) == ({}, ("a.txt",))

    def test_deleted_file_that_returned_is_deleted_again(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        with recorded_before_power_cut(self.root) as later, later.call(INFO) as call:
            call.delete("a.txt")
            call.commit()
        assert recover(self.root) == ({}, ())

    def test_moved_file_that_returned_is_kept_if_its_folder_changed_since(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        with recorded_before_power_cut(self.root) as later, later.call(INFO) as call:
            call.move("a.txt", "b.txt")
            call.commit()
        set_age(self.root, 60)
        assert list(recover(self.root)[0].values()) == [(b"one\n", 0o644)]

    def test_moved_file_that_returned_is_moved_again(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        with recorded_before_power_cut(self.root) as later, later.call(INFO) as call:
            call.move("a.txt", "b.txt")
            call.commit()
        assert recover(self.root) == ({"b.txt": (b"one\n", 0o644)}, ())

    def test_moved_file_with_both_names_loses_the_old_name(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        with workspace.call(INFO) as call:
            call.move("a.txt", "b.txt")
            call.commit()
        (self.root / "a.txt").hardlink_to(self.root / "b.txt")
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"b.txt": (b"one\n", 0o644)}, ())

    def test_file_changed_later_by_a_person_is_kept_and_reported(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        write(workspace, "a.txt", b"two\n")
        (self.root / "a.txt").write_bytes(b"mine\n")
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (b"mine\n", 0o644)}, ("a.txt",))

    def test_file_truncated_within_a_sector_is_kept_and_reported(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\ntwo\n")
        (self.root / "a.txt").write_bytes(b"one\n")
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (b"one\n", 0o644)}, ("a.txt",))

    def test_old_content_restored_by_a_person_is_kept_and_reported(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        write(workspace, "a.txt", b"two\n")
        (self.root / "a.txt").write_bytes(b"one\n")
        set_age(self.root / "a.txt", 60)
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (b"one\n", 0o644)}, ("a.txt",))

    @pytest.mark.parametrize("seconds", [2, 300])
    def test_files_are_rolled_forward_after_the_clock_was_set_back(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, seconds: int
    ) -> None:
        change(workspace, ("a.txt", b"one\n"), ("b.txt", b"one\n"), ("d.txt", b"one\n"))
        with recorded_before_power_cut(self.root) as later:
            (self.root / "d.txt").write_bytes(b"")
            monkeypatch.setattr("objstore.calls.edit_recorder.now", lambda: now() - seconds * 1_000_000)
            change(later, ("a.txt", b"two\n"), ("b.txt", b"two\n"), ("c.txt", b"two\n"), ("d.txt", b"two\n"))
        (self.root / "b.txt").write_bytes(b"two\n")
        two = b"two\n", 0o644
        assert recover(self.root) == ({"a.txt": two, "b.txt": two, "c.txt": two, "d.txt": two}, ())

    def test_restored_content_is_kept_after_the_clock_was_set_back(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("objstore.calls.edit_recorder.now", lambda: now() + 300 * 1_000_000)
            write(workspace, "a.txt", b"one\n")
        write(workspace, "a.txt", b"two\n")
        time.sleep(TICK)
        (self.root / "a.txt").write_bytes(b"one\n")
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (b"one\n", 0o644)}, ("a.txt",))

    @pytest.mark.parametrize(("later", "left"), [(0, b"two\n"), (20, b"one\n")], ids=["cut off", "put back"])
    def test_files_on_a_share_whose_clock_is_ahead_are_compared_by_its_clock(
        self, workspace: Workspace, later: int, left: bytes
    ) -> None:
        write(workspace, "a.txt", b"one\n")
        write(workspace, "a.txt", b"two\n")
        (self.root / "a.txt").write_bytes(b"one\n")
        set_age(self.root / "a.txt", AheadDisk.AHEAD + (later or -1))
        set_earlier_boot(self.root)
        found, reported = recover(self.root, AheadDisk())
        assert (found["a.txt"][0], reported) == (left, ("a.txt",) if later else ())

    def test_record_from_a_clock_ahead_hides_no_earlier_one(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(workspace, "a.txt", b"one\n")
        with recorded_before_power_cut(self.root) as later:
            write(later, "a.txt", b"two\n")
            monkeypatch.setattr("objstore.calls.edit_recorder.now", lambda: now() + 10**15)
            write(later, "b.txt", b"two\n")
        assert recover(self.root) == ({"a.txt": (b"two\n", 0o644), "b.txt": (b"two\n", 0o644)}, ())

    def test_older_file_placed_by_a_person_is_kept_and_reported(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        write(workspace, "a.txt", b"two\n")
        (self.root / "a.txt").write_bytes(b"mine\n")
        set_age(self.root / "a.txt", -60)
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (b"mine\n", 0o644)}, ("a.txt",))

    def test_file_with_zeros_appended_by_a_person_is_kept_and_reported(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        (self.root / "a.txt").write_bytes(b"one\n\0\0")
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (b"one\n\0\0", 0o644)}, ("a.txt",))

    def test_persons_change_does_not_stop_the_recovery_of_other_files(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"zero\n")
        mark = (self.root / ".cas" / "applied").read_bytes()
        change(workspace, ("a.txt", b"one\n"), ("b.txt", b"bee\n"))
        (self.root / ".cas" / "applied").write_bytes(mark)  # of a process that was killed
        (self.root / "a.txt").write_bytes(b"mine\n")
        (self.root / "b.txt").unlink()
        assert recover(self.root) == ({"a.txt": (b"mine\n", 0o644), "b.txt": (b"bee\n", 0o644)}, ("a.txt",))

    def found(self, workspace: Workspace) -> None:
        """Record what a person has changed."""
        workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))

    def test_recorded_external_deletion_of_lines_is_not_reverted(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\ntwo\n")
        self.found(workspace)
        (self.root / "a.txt").write_bytes(b"one\n")
        self.found(workspace)
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (b"one\n", 0o644)}, ())

    @pytest.mark.parametrize("left", [b"", PERSONS_TEXT[:512], PERSONS_TEXT[:600] + bytes(400)])
    def test_recorded_external_change_is_rolled_forward(self, workspace: Workspace, left: bytes) -> None:
        write(workspace, "a.txt", b"of the agent\n")
        self.found(workspace)
        (self.root / "a.txt").write_bytes(PERSONS_TEXT)
        self.found(workspace)
        (self.root / "a.txt").write_bytes(left)
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (PERSONS_TEXT, 0o644)}, ())

    def test_file_deleted_by_a_person_that_returned_is_kept_and_reported(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\n")
        self.found(workspace)
        (self.root / "a.txt").unlink()
        self.found(workspace)
        (self.root / "a.txt").write_bytes(b"one\n")
        set_age(self.root / "a.txt", -60)
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (b"one\n", 0o644)}, ("a.txt",))

    def test_file_truncated_later_by_a_person_is_kept_and_reported(self, workspace: Workspace) -> None:
        write(workspace, "a.txt", b"one\ntwo\n")
        (self.root / "a.txt").write_bytes(b"one\n")
        set_age(self.root / "a.txt", 120)
        set_earlier_boot(self.root)
        assert recover(self.root) == ({"a.txt": (b"one\n", 0o644)}, ("a.txt",))

    @pytest.mark.parametrize("thorough", [False, True], ids=["swept a little", "swept wholly"])
    def test_file_with_expired_history_is_rolled_forward(
        self,
        workspace: Workspace,
        thorough: bool,  # noqa: FBT001 - a parameter of the test
    ) -> None:
        for path in ("a.txt", "b.txt", "old.txt", "mine.txt"):
            write(workspace, path, b"one\n")
        with recorded_before_power_cut(self.root) as later:
            for path in ("a.txt", "b.txt", "old.txt", "mine.txt"):
                write(later, path, b"two\n")
            with later.call(INFO) as call:
                call.move("b.txt", "c.txt")
                call.commit()
            units = [Unit(view.seq, hunk) for view in later.history.edits() for hunk in range(len(view.units))]
            later.decide(Action.ACCEPT, units)
            collected = later.retention.collect(RetentionLimits(older_than=0), thorough=thorough)
        assert collected.edits == 9
        (self.root / "a.txt").write_bytes(b"")
        (self.root / "c.txt").write_bytes(b"")
        (self.root / "mine.txt").write_bytes(b"mine\n")
        (self.root / "same.txt").hardlink_to(self.root / "mine.txt")
        set_earlier_boot(self.root)
        found, reported = recover(self.root)
        assert found == {
            "a.txt": (b"two\n", 0o644),
            "c.txt": (b"two\n", 0o644),
            "old.txt": (b"two\n", 0o644),
            "mine.txt": (b"mine\n", 0o644),
            "same.txt": (b"mine\n", 0o644),
        }
        assert reported == ("mine.txt",)

    @pytest.mark.parametrize("lost", ["one", "all"])
    def test_files_are_rolled_forward_without_the_applied_marker(self, workspace: Workspace, lost: str) -> None:
        write(workspace, "a.txt", b"zero\n")
        old = (self.root / ".cas" / "applied").read_bytes() if lost == "one" else b""
        change(workspace, ("a.txt", b"one\n"), ("b.txt", b"bee\n"))
        (self.root / ".cas" / "applied").write_bytes(old)
        assert recover(self.root) == ({"a.txt": (b"one\n", 0o644), "b.txt": (b"bee\n", 0o644)}, ())
