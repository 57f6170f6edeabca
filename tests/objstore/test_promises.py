"""The eight promises of the design, each with tests that fail when it is broken."""

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from objstore import (
    Action,
    Call,
    CallAborted,
    CallInfo,
    Conflicted,
    Decided,
    EditTakenOut,
    ExternalChanges,
    NothingToDo,
    OnExternal,
    RetentionLimits,
    Seq,
    Status,
    StoreDamaged,
    Unit,
    Workspace,
    blob_id,
    split_lines,
)
from objstore.disk.fs.disk import Disk
from tests.support.observed_disk import ObservedDisk
from tests.support.scene import Scene, deletes, moves, observe_tree, writes

TEXT = b"".join(b"line %d\n" % number for number in range(40))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "observed"
    folder.mkdir()
    Workspace.init(folder).close()
    return folder


def on_disk(root: Path, disk: Disk) -> Scene:
    """Return a scene whose workspace uses `disk`."""
    scene = Scene(root)
    scene.workspace.close()
    scene.workspace = Workspace.open(root, disk)
    return scene


def use_every_operation(scene: Scene) -> None:
    """Use every kind of operation and decision."""
    (scene.root / "found").write_bytes(TEXT)
    scene.call(writes("found", TEXT + b"more\n"), writes("d/new", b"new\n"))
    edit = scene.edit("found", b"line 7\n", b"seven\n")
    move = scene.move("found", "e/moved")
    gone = scene.delete("d/new")
    os.link(scene.root / "e" / "moved", scene.root / "same")
    scene.write("e/moved", b"linked\n" + TEXT)
    scene.reject(5)
    scene.reject(edit, move, gone)
    (scene.root / "found").write_bytes(b"by hand\n")
    scene.decide(Action.ACCEPT, edit, on_external=OnExternal.DISCARD)
    (scene.root / "found").write_bytes(b"by hand again\n")
    scene.call(writes("found", TEXT))
    scene.workspace.review.undo()


# ---- 1. Nothing is lost


class DurabilityCheckingDisk(ObservedDisk):
    """A disk that checks before each change of a file that a power cut would leave its bytes in the store."""

    def __init__(self, root: Path, scratch: Path) -> None:
        super().__init__(root)
        self.segments = root / ".cas" / "segments"
        self.copy = scratch
        self.synced: dict[str, int] = {}

    def sync(self, fd: int, name: str) -> None:
        super().sync(fd, name)
        self.synced[Path(name).name] = os.fstat(fd).st_size

    def before_change(self, before: bytes | None, after: bytes | None) -> None:
        folder = self.copy / f"at {self.operations}"
        shutil.copytree(self.segments, folder / ".cas" / "segments")
        for segment in (folder / ".cas" / "segments").iterdir():
            os.truncate(segment, self.synced[segment.name])
        with Workspace.open(folder) as workspace:
            for content in (before, after):
                if content is not None:
                    assert workspace.history.blob(blob_id(content)) == content


def test_old_and_new_bytes_are_durable_before_a_file_changes(root: Path, tmp_path: Path) -> None:
    disk = DurabilityCheckingDisk(root, tmp_path)
    scene = on_disk(root, disk)
    use_every_operation(scene)
    scene.close()
    assert disk.kinds >= {"exchange", "rename_new", "rewrite", "unlink"}


def test_removed_states_can_be_retrieved_by_hash(scene: Scene) -> None:
    states = [b"overwritten\n", b"rejected\n", b"by hand, kept\n", b"by hand, discarded\n", b"deleted\n", b"last\n"]
    (scene.root / "f").write_bytes(states[0])
    scene.reject(scene.write("f", states[1]))
    (scene.root / "f").write_bytes(states[2])
    scene.decide(Action.ACCEPT, 1, on_external=OnExternal.KEEP, cascade=True)
    scene.write("f", states[2] + b"x")
    (scene.root / "f").write_bytes(states[3])
    scene.decide(Action.REJECT, 3, on_external=OnExternal.DISCARD)
    scene.write("f", states[4])
    scene.delete("f")
    scene.write("f", states[5])
    scene.forget_index()
    for content in states:
        assert scene.workspace.history.blob(blob_id(content)) == content
        assert scene.workspace.history.find_state(blob_id(content).hex()[:12]).blob == blob_id(content)


# ---- 2. A decision touches what it names, and nothing else


class PathRecorder:
    """Records every path that this process opens, lists, renames or removes through Python."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.open = False
        sys.addaudithook(self._record)  # permanently: an audit hook can't be removed

    def _record(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.open and event.startswith(("open", "os.", "shutil.")):
            self.names += [os.fsdecode(name) for name in arguments if isinstance(name, str | bytes)]


PATH_RECORDER = PathRecorder()


@contextmanager
def recorded_paths() -> Iterator[list[str]]:
    PATH_RECORDER.names = []
    PATH_RECORDER.open = True
    try:
        yield PATH_RECORDER.names
    finally:
        PATH_RECORDER.open = False


def test_decision_touches_only_the_files_that_it_names(scene: Scene) -> None:
    (scene.root / ".git" / "refs").mkdir(parents=True)
    (scene.root / ".git" / "HEAD").write_bytes(b"ref: refs/heads/main\n")
    (scene.root / "untracked").write_bytes(b"mine\n")
    (scene.root / "link").symlink_to("f")
    for name in ("f", "g", "d/h"):
        scene.write(name, TEXT, mode=0o640)
    edit = scene.edit("f", b"line 7\n", b"seven\n")
    other = scene.edit("f", b"line 30\n", b"thirty\n")
    scene.edit("g", b"line 7\n", b"seven\n")
    (scene.root / "d" / "h").write_bytes(TEXT + b"typed, and not yet recorded\n")
    before = scene.files()

    with recorded_paths() as names:
        scene.reject(edit)
        scene.accept(other)
        scene.undo()

    assert names
    assert not [name for name in names if ".git" in Path(name).parts]
    after = scene.files()
    assert after.pop("f").content == TEXT.replace(b"line 30\n", b"thirty\n")
    del before["f"]
    assert after == before
    assert scene.external().keys() == {"d/h"}


def test_rejecting_keeps_other_edits_and_external_changes(scene: Scene) -> None:
    scene.write("f", TEXT)
    edit = scene.edit("f", b"line 7\n", b"seven\nand a half\n")
    scene.edit("f", b"line 9\n", b"nine\n")
    typed = (scene.root / "f").read_bytes().replace(b"line 20\n", b"line 20\nfrom a person\n")
    (scene.root / "f").write_bytes(typed)

    outcome = scene.decide(Action.REJECT, edit, on_external=OnExternal.KEEP)

    assert isinstance(outcome, Decided)
    expected = TEXT.replace(b"line 9\n", b"nine\n").replace(b"line 20\n", b"line 20\nfrom a person\n")
    assert scene.text("f") == expected


def test_rejecting_a_text_change_keeps_mode_and_path(scene: Scene) -> None:
    scene.write("f", TEXT, mode=0o640)
    edit = scene.edit("f", b"line 7\n", b"seven\n")
    scene.write("f", TEXT.replace(b"line 7\n", b"seven\n"), mode=0o750)
    scene.move("f", "g")
    scene.reject(edit)
    assert (scene.text("g"), scene.mode("g")) == (TEXT, 0o750)


# ---- 3. Every decision is reversible


def test_reject_accept_reject_gives_identical_bytes(scene: Scene) -> None:
    scene.write("f", TEXT)
    edits: list[str | int] = [scene.edit("f", b"line %d\n" % n, b"\xff%d\r\n" % n) for n in range(0, 40, 3)]
    with_all = scene.text("f")
    for edit in edits:
        scene.reject(edit)
        without = scene.text("f")
        assert without != with_all
        scene.accept(edit)
        assert scene.text("f") == with_all
        scene.reject(edit)
        assert scene.text("f") == without
        scene.accept(edit)
    scene.reject(*edits)
    assert scene.text("f") == TEXT


def test_undo_restores_the_status_of_every_unit(scene: Scene) -> None:
    scene.write("f", TEXT)
    first, second = scene.edit("f", b"line 7\n", b"7\n"), scene.edit("f", b"line 9\n", b"9\n")
    scene.accept(first)
    before = scene.statuses(), scene.text("f")
    assert before[0] == {1: Status.PENDING, first: Status.ACCEPTED, second: Status.PENDING}
    decisions = (
        (Action.REJECT, (first, second)),
        (Action.ACCEPT, (second, 1)),
        (Action.RESET, (first,)),
        (Action.REJECT, (f"{second}:1",)),
    )
    for action, names in decisions:
        assert isinstance(scene.decide(action, *names), Decided)
        scene.undo()
        assert (scene.statuses(), scene.text("f")) == before


def test_decisions_are_recorded(scene: Scene) -> None:
    scene.write("f", TEXT)
    scene.reject(scene.edit("f", b"line 7\n", b"7\n"), reason="no")
    scene.undo()
    scene.forget_index()
    first, second = (view.decision for view in scene.workspace.history.decisions())
    assert (first.action, first.reason, first.who, first.takes_back) == (Action.REJECT, "no", "reviewer", 0)
    assert (second.action, second.takes_back) == (Action.UNDO, first.number)
    assert dict(first.verdicts) == {Unit(scene.view(2).seq, hunk): Status.REJECTED for hunk in (0, 1)}


# ---- 4. The text is a function of the set of live edits

EDITS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.integers(0, 2),
        st.lists(st.sampled_from((b"x\n", b"y\n", b"z\r\n", b"\xff\n", b"\n")), max_size=3),
        st.sampled_from(("edit", "edit", "edit", "move", "mode", "end")),
    ),
    min_size=2,
    max_size=6,
)


def record(scene: Scene, edits: Sequence[tuple[int, int, list[bytes], str]]) -> None:
    """Record a history of one file that existed before."""
    (scene.root / "f").write_bytes(b"".join(b"%d\n" % number for number in range(8)))
    path = "f"
    for number, (start, count, new, kind) in enumerate(edits):
        after, mode = (scene.root / path).read_bytes(), None
        match kind:
            case "move":
                scene.move(path, f"f{number}")
                path = f"f{number}"
                continue
            case "mode":
                mode = 0o600 + number
            case "end":
                after = after.removesuffix(b"\n") if after.endswith(b"\n") else after + b"\n"
            case _:
                lines = split_lines(after)
                lines[start : start + count] = new
                after = b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines[:-1])
                after += lines[-1] if lines else b""
        with scene.workspace.call(CallInfo(tool="test")) as call:
            call.write(path, after, mode=mode)
            call.commit()


def is_refused(scene: Scene, action: Action, unit: Unit) -> bool:
    """Decide on a unit; return whether that conflicts, or the unit's change is not there to be accepted."""
    try:
        return isinstance(scene.workspace.decide(action, [unit]), Conflicted)
    except EditTakenOut:
        return True


@settings(max_examples=settings().max_examples // 4)
@given(edits=EDITS, data=st.data())
def test_two_orders_of_the_same_decisions_give_identical_files(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, int, list[bytes], str]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("orders")
    with ExitStack() as stack:
        scenes = [Scene(folder / "one"), Scene(folder / "two")]
        for scene in scenes:
            stack.callback(scene.close)  # even if the drawn history turns out to be too long
            record(scene, edits)
        units = scenes[0].units(*(view.seq for view in scenes[0].workspace.history.edits()))
        # Both take detours on their way, each where no conflict is in it.
        final = {unit: data.draw(st.sampled_from((Action.ACCEPT, Action.REJECT)), label=str(unit)) for unit in units}
        actions = st.sampled_from((Action.ACCEPT, Action.REJECT))
        detours = st.lists(st.tuples(st.sampled_from(units), actions), max_size=8) if units else st.just([])
        for scene in scenes:
            for unit, action in data.draw(detours, label="detours"):
                is_refused(scene, action, unit)
            left = data.draw(st.permutations(units), label="order")
            while left:
                stuck = [unit for unit in left if is_refused(scene, final[unit], unit)]
                if len(stuck) == len(left):
                    break
                left = stuck
        dead = [
            {
                Unit(v.seq, h)
                for v in s.workspace.history.edits()
                for h, status in enumerate(v.units)
                if status is Status.REJECTED
            }
            for s in scenes
        ]
        if dead[0] == dead[1]:
            found = [{p: (look.mode, look.content) for p, look in scene.files().items()} for scene in scenes]
            assert found[0] == found[1]
    shutil.rmtree(folder)


def test_path_and_mode_are_those_of_the_last_live_edit_in_any_order(scene: Scene) -> None:
    scene.write("a", TEXT, mode=0o644)
    moves = [scene.move("a", "b"), scene.move("b", "c")]
    modes = [scene.write("c", TEXT, mode=0o600), scene.write("c", TEXT, mode=0o755)]
    for first, second in (moves, moves[::-1]):
        scene.reject(first)
        scene.reject(second)
        assert scene.text("a") == TEXT
        scene.accept(second)
        scene.accept(first)
        assert scene.text("c") == TEXT
    for first, second in (modes, modes[::-1]):
        scene.reject(first)
        scene.reject(second)
        assert scene.mode("c") == 0o644
        scene.accept(second)
        scene.accept(first)
        assert scene.mode("c") == 0o755


# ---- 5. A conflict is reported exactly


def test_conflict_is_reported_exactly_and_changes_nothing(scene: Scene) -> None:
    scene.write("f", b"a\nb\nc\n")
    needed = scene.edit("f", b"b\n", b"x\ny\n")
    scene.edit("f", b"a\n", b"A\n")
    needing = scene.edit("f", b"y\n", b"Y\n")

    conflicts = scene.refused(Action.REJECT, needed)

    assert [(c.unit, c.needs, c.path, c.removed, c.inserted) for c in conflicts] == [
        (Unit(needing, 1), (Unit(needed, 1),), "f", b"y\n", b"Y\n")
    ]
    assert scene.statuses()[needed] is Status.PENDING


def test_rejecting_the_units_of_a_conflict_resolves_it(scene: Scene) -> None:
    scene.write("f", b"a\nb\nc\n")
    needed = scene.edit("f", b"b\n", b"x\ny\n")
    scene.edit("f", b"a\n", b"A\n")
    scene.edit("f", b"y\n", b"Y\n")
    for conflict in scene.refused(Action.REJECT, needed):
        assert isinstance(scene.workspace.decide(Action.REJECT, [conflict.unit]), Decided)
    scene.reject(needed)
    assert scene.text("f") == b"A\nb\nc\n"


# ---- 6. Reports are true


class LyingDisk(ObservedDisk):
    """A disk that reports a write as done but leaves other content."""

    def __init__(self, root: Path, lie_at: int) -> None:
        super().__init__(root)
        self.lie_at = lie_at

    def after_change(self, folder: int, name: str) -> None:
        if self.operations == self.lie_at:
            fd = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folder)
            with os.fdopen(fd, "wb") as file:
                file.write(b"something else\n")


CHANGES: list[Callable[[Call], None]] = [
    writes("a", b"A\n"),
    writes("new/b", b"B\n"),
    moves("c", "new/c"),
    deletes("d"),
    writes("e", b"E\n"),
]


def five_files(scene: Scene) -> None:
    for name in "acde":
        scene.write(name, name.encode() + b"\n")


@pytest.mark.parametrize("lie_at", [1, 2, 3, 4, 5])
def test_call_fails_if_a_file_does_not_read_back_as_written(root: Path, lie_at: int) -> None:
    disk = LyingDisk(root, 0)
    scene = on_disk(root, disk)
    five_files(scene)
    disk.operations, disk.lie_at = 0, lie_at

    with pytest.raises(CallAborted):
        scene.call(*CHANGES)

    assert len(scene.workspace.history.edits()) == 4
    # What we did not write is left for the person to see; all else is as it was.
    lies = [path for path, look in scene.files().items() if look.content == b"something else\n"]
    assert len(lies) == 1
    assert {path for path in "acde" if scene.text(path) != path.encode() + b"\n"} <= set(lies) | {"c"}
    scene.close()


class FailingDisk(ObservedDisk):
    """A disk that fails once, at one of the user's files."""

    def __init__(self, root: Path, fail_at: int, error: BaseException) -> None:
        super().__init__(root)
        self.fail_at = fail_at
        self.error = error

    def before_change(self, before: bytes | None, after: bytes | None) -> None:
        del before, after
        if self.operations == self.fail_at:
            raise self.error


@pytest.mark.parametrize("fail_at", [1, 2, 3, 4, 5])
def test_a_call_over_many_files_is_all_or_nothing(root: Path, fail_at: int) -> None:
    disk = FailingDisk(root, 0, FileNotFoundError("gone"))
    scene = on_disk(root, disk)
    five_files(scene)
    before = {path: (look.mode, look.content) for path, look in scene.files().items() if stat.S_ISREG(look.kind)}
    disk.operations, disk.fail_at = 0, fail_at

    with pytest.raises(CallAborted):
        scene.call(*CHANGES)

    after = {path: (look.mode, look.content) for path, look in scene.files().items() if stat.S_ISREG(look.kind)}
    assert after == before
    assert len(scene.workspace.history.edits()) == 4
    assert scene.external() == {}
    assert len(scene.call(*CHANGES).edits) == 5
    scene.forget_index()
    assert len(scene.workspace.history.edits()) == 9
    scene.close()


class Killed(BaseException):
    """The process has died."""


@pytest.mark.parametrize("fail_at", [1, 2, 3, 4, 5])
def test_a_call_over_many_files_is_whole_after_a_crash(root: Path, fail_at: int) -> None:
    disk = FailingDisk(root, 0, Killed())
    scene = on_disk(root, disk)
    five_files(scene)
    disk.operations, disk.fail_at = 0, fail_at
    with pytest.raises(Killed):
        scene.call(*CHANGES)
    scene.reopen()
    assert {path: look.content for path, look in scene.files().items() if stat.S_ISREG(look.kind)} == {
        "a": b"A\n",
        "new/b": b"B\n",
        "new/c": b"c\n",
        "e": b"E\n",
    }
    assert len(scene.workspace.history.edits()) == 9
    assert scene.external() == {}
    scene.close()


# ---- 7. The journal is the only truth


def test_derived_data_can_be_deleted_at_any_time(scene: Scene) -> None:
    use_every_operation(scene)
    scene.reject(1, reason="because", cascade=True)
    derived = [path for path in (scene.root / ".cas").iterdir() if path.name not in {"segments", "lock", ".gitignore"}]
    assert len(derived) >= 2
    before = scene.workspace.history.edits(), scene.workspace.history.decisions(), scene.workspace.review.status()
    files = scene.files()
    for path in derived:
        scene.workspace.close()
        if path.is_dir():
            shutil.rmtree(path)
        else:
            for part in path.parent.glob(f"{path.name}*"):
                part.unlink()
        scene.workspace = Workspace.open(scene.root)
        assert (
            scene.workspace.history.edits(),
            scene.workspace.history.decisions(),
            scene.workspace.review.status(),
        ) == before
        scene.undo()
        scene.reject(1, reason="because", cascade=True)
        before = scene.workspace.history.edits(), scene.workspace.history.decisions(), scene.workspace.review.status()
        assert {path: look.content for path, look in scene.files().items()} == {
            path: look.content for path, look in files.items()
        }


def test_invalid_index_is_rebuilt(scene: Scene) -> None:
    use_every_operation(scene)
    before = scene.workspace.history.edits(), scene.workspace.history.decisions(), scene.workspace.review.status()
    for rubbish in (b"", b"not a database", bytes(8192)):
        scene.workspace.close()
        for path in (scene.root / ".cas").glob("index*"):
            path.unlink()
        (scene.root / ".cas" / "index.sqlite").write_bytes(rubbish)
        scene.workspace = Workspace.open(scene.root)
        assert (
            scene.workspace.history.edits(),
            scene.workspace.history.decisions(),
            scene.workspace.review.status(),
        ) == before


def test_index_of_another_store_is_not_used(scene: Scene, tmp_path: Path) -> None:
    scene.write("f", TEXT)
    other = Scene(tmp_path / "other")
    other.write("g", b"another\n")
    other.close()
    scene.workspace.close()
    shutil.copy(tmp_path / "other" / ".cas" / "index.sqlite", scene.root / ".cas" / "index.sqlite")
    scene.workspace = Workspace.open(scene.root)
    assert [view.edit.path for view in scene.workspace.history.edits()] == [b"f"]


def test_altered_journal_is_refused(scene: Scene) -> None:
    use_every_operation(scene)
    scene.workspace.close()
    (segment,) = (scene.root / ".cas" / "segments").iterdir()
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    for path in (scene.root / ".cas").glob("index*"):
        path.unlink()
    with pytest.raises(StoreDamaged):
        Workspace.open(scene.root)
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    scene.workspace = Workspace.open(scene.root)


def test_call_removed_from_the_journal_is_detected(scene: Scene) -> None:
    sizes = []
    for number in range(3):
        scene.write(f"f{number}", b"%d\n" % number)
        sizes.append(scene.workspace.review.status().store_bytes)
    scene.workspace.close()
    (segment,) = (scene.root / ".cas" / "segments").iterdir()
    content = segment.read_bytes()
    first, second, third = content[: sizes[0]], content[sizes[0] : sizes[1]], content[sizes[1] :]
    for tampered in (first + third, first + third + second):
        segment.write_bytes(tampered)
        for path in (scene.root / ".cas").glob("index*"):
            path.unlink()
        with pytest.raises(StoreDamaged):
            Workspace.open(scene.root)
    segment.write_bytes(content)
    scene.workspace = Workspace.open(scene.root)


# ---- 8. Storage is bounded and visible


def test_status_reports_the_size_of_the_store(scene: Scene) -> None:
    use_every_operation(scene)
    segments = observe_tree(scene.root, store=True)
    report = scene.workspace.review.status()
    assert report.store_bytes == sum(len(look.content) for look in segments.values())
    states = {
        state.blob
        for view in scene.workspace.history.edits()
        for state in (view.edit.before, view.edit.after)
        if state is not None
    }
    states |= {
        state.blob
        for view in scene.workspace.history.decisions()
        for written in view.decision.written
        for state in (written.before, written.after)
        if state is not None
    }
    assert report.blobs == len(states)


def test_status_counts_every_segment(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("objstore.storage.log.segments.ROTATE_AT", 1000)
    use_every_operation(scene)
    segments = observe_tree(scene.root, store=True)
    assert len(segments) > 2
    assert scene.workspace.review.status().store_bytes == sum(len(look.content) for look in segments.values())


def test_state_is_stored_once_and_an_edit_stores_only_its_change(scene: Scene) -> None:
    # Incompressible text, so that only a delta can be small.
    content = b"".join(blob_id(b"%d" % number).hex().encode() + b"\n" for number in range(2000))
    scene.write("f", content)
    before = scene.workspace.review.status()
    for number in range(100):
        lines = split_lines(content)
        lines[number * 17] = b"changed %d\n" % number
        content = b"".join(lines)
        scene.write("f", content)
    after = scene.workspace.review.status()
    assert after.blobs == before.blobs + 100
    # Each of 100 states of 130 kB is a delta, but for a keyframe now and then.
    assert after.store_bytes - before.store_bytes < 10 * len(content)

    for _ in range(20):
        scene.reject(2)
        scene.accept(2)
    toggled = scene.workspace.review.status()
    assert toggled.blobs == after.blobs + 1
    assert toggled.store_bytes - after.store_bytes < len(content)


def test_reading_stores_nothing(scene: Scene) -> None:
    use_every_operation(scene)
    before = observe_tree(scene.root, store=True)
    scene.workspace.review.status()
    scene.workspace.history.edits()
    with scene.workspace.call(CallInfo(tool="test")) as call:
        call.exists("found")
        call.commit()
    assert isinstance(scene.workspace.decide(Action.RESET, [Unit(scene.view(1).seq, 0)]), NothingToDo)
    assert not isinstance(scene.workspace.review.undo(dry_run=True), ExternalChanges)
    assert observe_tree(scene.root, store=True) == before


EVERYTHING = RetentionLimits(older_than=0, max_size=None)
LATER = 1 << 60
"""A time in microseconds, later than every record."""


def long_history(scene: Scene) -> list[bytes]:
    """Give one file 30 states that have little in common, accept the edits, and return the states."""
    states = [os.urandom(3000) for _ in range(30)]
    for state in states:
        scene.write("f", state)
    scene.accept(*range(1, 31))
    return states


def test_gc_plan_reports_what_a_collection_frees(scene: Scene) -> None:
    long_history(scene)
    assert scene.workspace.review.status().reclaimable.free_blobs == 0
    plan = scene.workspace.retention.plan_gc(RetentionLimits(older_than=0, max_size=None))
    assert [expiry_batch.edit_count for expiry_batch in plan.expiry.batches] == [30]
    # All states except the current one.
    assert plan.free_blobs == 29
    assert 29 * 3000 < plan.free_bytes < scene.workspace.retention.stored_bytes()
    scene.workspace.retention.expire(EVERYTHING, moment=LATER)
    report = scene.workspace.review.status().reclaimable
    assert (report.free_blobs, report.free_bytes) == (plan.free_blobs, plan.free_bytes)
    again = scene.workspace.retention.plan_gc(EVERYTHING)
    assert (again.free_blobs, again.free_bytes) == (plan.free_blobs, plan.free_bytes)


def test_collection_frees_what_the_plan_reported_and_meets_the_limit(scene: Scene) -> None:
    long_history(scene)
    before = scene.workspace.retention.stored_bytes()
    limit = before // 2
    plan = scene.workspace.retention.plan_gc(RetentionLimits(older_than=None, max_size=limit))
    done = scene.workspace.retention.collect(RetentionLimits(older_than=None, max_size=limit), thorough=True)
    assert done.bytes_before - done.bytes_after > plan.free_bytes - 3000
    assert scene.workspace.retention.stored_bytes() == done.bytes_after <= limit
    gone = [view.seq for view in scene.workspace.history.edits() if view.expired is not None]
    assert gone == list(range(1, done.edits + 1))
    assert len(gone) < 30
    report = scene.workspace.review.status()
    assert (report.store_bytes, report.reclaimable.free_blobs) == (done.bytes_after, 0)
    scene.forget_index()
    scene.reject(30)


def test_collection_meets_a_limit_slightly_below_the_size(scene: Scene) -> None:
    long_history(scene)
    limit = scene.workspace.retention.stored_bytes() - 3000
    assert scene.workspace.retention.collect(RetentionLimits(older_than=None, max_size=limit)).bytes_after <= limit


def test_gc_plan_and_status_change_nothing(scene: Scene) -> None:
    long_history(scene)
    before = scene.everything()
    scene.workspace.retention.plan_gc(EVERYTHING)
    scene.workspace.retention.plan_gc(RetentionLimits(older_than=None, max_size=1))
    scene.workspace.review.status()
    assert scene.everything() == before


@pytest.mark.parametrize("limits", [EVERYTHING, RetentionLimits(older_than=None, max_size=1)])
def test_collection_keeps_everything_that_is_still_needed(scene: Scene, limits: RetentionLimits) -> None:
    """Pending edits, pins, current states and what these depend on are never removed."""
    states = long_history(scene)
    scene.workspace.retention.pin([Seq(21)], [blob_id(states[4])])
    (pending,) = scene.call(writes("g", b"pending\n"), conversation="conv_pending").edits
    scene.reject(scene.write("h", b"rejected\n"))
    scene.call(writes("i", b"one\n"), conversation="conv_open")
    scene.accept(33)
    scene.call(writes("j", b"two\n"), conversation="conv_open")
    files = scene.files()
    scene.workspace.retention.collect(limits)
    assert scene.files() == files
    gone = {view.seq for view in scene.workspace.history.edits() if view.expired is not None}
    assert gone == {*range(1, 21), 32}
    assert scene.workspace.history.blob(blob_id(states[4])) == states[4]
    for seq in range(30, 20, -1):
        scene.reject(seq)
        assert scene.text("f") == states[seq - 2]
    scene.reject(pending.seq)
    assert scene.text("g") is None
