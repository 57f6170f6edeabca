"""Test a crash at every step of everything that writes: calls are whole, files match the journal, and work continues.

Each scene is failed at its last and at another step, a different one in each test; with `CAS_CRASH_STEPS=1` (`make
crash`) at every step.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from typing import Final

import pytest

from objstore import CallInfo, CasError, DiskFull, PermissionRefused, Workspace
from objstore.values.errors import FileUninspectable
from tests.objstore.agents.test_unreadable_files import DEEP, with_few_files
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
    staged = [operation for operation in done[:append] if operation != "stage_link"]
    assert staged == sorted(staged), "all are staged before the first is waited for"
    assert staged.count("stage") == staged.count("sync_staged") == len(staged) / 2
    assert done[append + 1] == "sync"
    after = done[append + 2 :]
    assert not set(after) & {"stage", "append", "sync", "sync_staged"}
    changes = [operation for operation in after[:-1] if operation not in {"sync_folder", "unlink"}]
    assert "sync_folder" in after or not changes
    assert not changes or after.index("sync_folder") > max(map(after.index, changes))
    assert after[-1] == "overwrite"
    assert after.count("overwrite") == 1


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
    monkeypatch.setattr("objstore.storage.log.segments.ROTATE_AT", 1)
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
