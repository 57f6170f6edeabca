"""Moments and timelines: what stood at a path when, as edits, decisions and snapshots tell."""

import os
import time
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from objstore import (
    Action,
    CallInfo,
    EditExpired,
    FileExists,
    FileMissing,
    NoSuchName,
    Origin,
    Recorded,
    RetentionLimits,
    Seq,
    Status,
    Workspace,
    blob_id,
)
from objstore.dates import date_of, moment_of
from objstore.fs.disk import Disk
from objstore.model.records import Decision, Edit, Expiry, Snapshot
from objstore.store.write_batch import now as time_now
from objstore.transaction.journal import Journal
from tests.support.scene import Scene

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def now() -> str:
    """Return this moment as a state's name spells it, a little later than whatever was recorded before."""
    time.sleep(0.002)
    spelt = datetime.now(UTC).isoformat()
    time.sleep(0.002)
    return spelt


def at(scene: Scene, path: str, moment: str) -> bytes | None:
    """Return what stood at a path at a moment."""
    state = scene.workspace.find_state(f"{path}@{moment}")
    assert state.path == path
    return None if state.blob is None else scene.workspace.blob(state.blob)


@pytest.mark.parametrize(
    ("spelling", "wanted"),
    [
        ("90s", datetime(2026, 11, 21, 11, 58, 30, tzinfo=UTC)),
        ("15min", datetime(2026, 11, 21, 11, 45, tzinfo=UTC)),
        ("2h", datetime(2026, 11, 21, 10, 0, tzinfo=UTC)),
        ("3d", datetime(2026, 11, 18, 12, 0, tzinfo=UTC)),
        ("1w", datetime(2026, 11, 14, 12, 0, tzinfo=UTC)),
        ("2026-11-20T09:30Z", datetime(2026, 11, 20, 9, 30, tzinfo=UTC)),
        ("2026-11-20T09:30:15.5+02:00", datetime(2026, 11, 20, 7, 30, 15, 500_000, tzinfo=UTC)),
        ("2026-11-20", datetime(2026, 11, 20).astimezone()),
        ("2026-13-20", None),
        ("999999999w", None),
        ("12", None),
        ("2 hours ago", datetime(2026, 11, 21, 10, 0, tzinfo=UTC)),
        ("1y", datetime(2025, 11, 21, 6, 0, tzinfo=UTC)),
        ("2m", datetime(2026, 11, 21, 11, 58, tzinfo=UTC)),
        ("h", None),
        ("yesterday", datetime(2026, 11, 20).astimezone()),
        ("2026-W47", datetime(2026, 11, 16).astimezone()),
        ("2026-11-20 25:00", None),
        ("1h30m", datetime(2026, 11, 21, 10, 30, tzinfo=UTC)),
        ("1 day 12 hours ago", datetime(2026, 11, 20, 0, 0, tzinfo=UTC)),
        ("1h30", None),
        ("14:30", datetime(2026, 11, 21, 14, 30).astimezone()),
        ("9:05:30", datetime(2026, 11, 21, 9, 5, 30).astimezone()),
        ("24:30", None),
        ("Monday", datetime(2026, 11, 16).astimezone()),
        ("saturday", datetime(2026, 11, 21).astimezone()),
        ("sunday", datetime(2026, 11, 15).astimezone()),
        ("2026-11", datetime(2026, 11, 1).astimezone()),
        ("2026-13", None),
        ("9999-12", None),
    ],
)
def test_a_moment_is_what_its_spelling_says(spelling: str, wanted: datetime | None) -> None:
    assert moment_of(spelling, NOW) == (None if wanted is None else round(wanted.timestamp() * 1e6))


def test_a_month_ends_with_its_last_day() -> None:
    for spelling, last in (("2026-11", 30), ("2026-12", 31), ("2024-02", 29)):
        year, month = map(int, spelling.split("-"))
        wanted = datetime(year, month, last, 23, 59, 59, 999_999).astimezone()
        assert moment_of(spelling, NOW, end=True) == round(wanted.timestamp() * 1e6)


def test_a_state_is_named_by_its_moment(scene: Scene) -> None:
    before = now()
    scene.write("a", b"1\n")
    first = now()
    edit = scene.write("a", b"1\n2\n")
    second = now()
    scene.reject(edit)
    third = now()
    scene.delete("a")
    assert [at(scene, "a", moment) for moment in (before, first, second, third, now())] == [
        None,
        b"1\n",
        b"1\n2\n",
        b"1\n",
        None,
    ]


def test_before_its_first_record_a_file_is_what_that_record_found(scene: Scene) -> None:
    (scene.root / "a").write_bytes(b"mine\n")
    scene.write("a", b"theirs\n")
    assert at(scene, "a", "2h") == b"mine\n"


def test_a_moved_file_is_told_where_it_stood(scene: Scene) -> None:
    scene.write("a", b"1\n")
    first = now()
    scene.move("a", "b")
    second = now()
    scene.write("a", b"new\n")
    assert [at(scene, "a", moment) for moment in (first, second, now())] == [b"1\n", None, b"new\n"]
    assert [at(scene, "b", moment) for moment in (second, now())] == [b"1\n", b"1\n"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda scene: scene.write("d/a", b"tool\n"), b"tool\n"),
        (lambda scene: (scene.root / "d/a").write_bytes(b"nobody saw it\n"), b"2\n"),
    ],
    ids=["recorded", "not recorded"],
)
def test_a_snapshot_tells_of_files_that_no_edit_tells_of(
    scene: Scene, change: Callable[[Scene], object], told: bytes
) -> None:
    (scene.root / "d").mkdir()
    (scene.root / "d/a").write_bytes(b"1\n")
    with pytest.raises(NoSuchName):
        at(scene, "d/a", now())
    scene.workspace.take_snapshot(who="me")
    first = now()
    (scene.root / "d/a").write_bytes(b"2\n")
    scene.workspace.take_snapshot("d", who="me")
    second = now()
    change(scene)
    assert at(scene, "d/a", first) == b"1\n"
    assert at(scene, "d/a", second) == b"2\n"
    assert at(scene, "d/a", now()) == told
    assert at(scene, "d/nothing", second) is None
    with pytest.raises(NoSuchName):
        at(scene, "other", "2h")


def test_all_files_at_a_moment_are_those_that_each_path_tells_of(scene: Scene) -> None:
    (scene.root / "d/deep").mkdir(parents=True)
    (scene.root / "d/a").write_bytes(b"1\n")
    (scene.root / "d/deep/b").write_bytes(b"1\n")
    (scene.root / "kept").write_bytes(b"before\n")
    (scene.root / "link").symlink_to("kept")
    moments = [now()]
    changes: list[Callable[[], object]] = [
        lambda: scene.write("kept", b"after\n"),
        lambda: scene.workspace.take_snapshot(who="me"),
        lambda: scene.write("d/a", b"2\n"),
        lambda: scene.move("d/a", "moved"),
        (scene.root / "d/deep/b").unlink,
        lambda: scene.workspace.take_snapshot("d", who="me"),
        lambda: (scene.root / ".casignore").write_text("d\n"),
        lambda: scene.workspace.take_snapshot(who="me"),
        lambda: scene.reject(Seq(2)),
        lambda: scene.workspace.delete_snapshots([2], who="me"),
        lambda: scene.delete("moved"),
    ]
    for change in changes:
        change()
        moments.append(now())
    paths = ["d/a", "d/deep/b", "kept", "link", "moved", ".casignore"]
    seen = set()
    for moment in moments:
        told = moment_of(moment, NOW)
        assert told is not None
        files = {
            path: scene.workspace.blob(state.blob) for path, state in scene.workspace.files_at_moment(told).items()
        }
        assert files == {path: held for path in paths if (held := standing(scene, path, moment)) is not None}
        below = scene.workspace.files_at_moment(told, "d")
        assert below.keys() == {path for path in files if path.startswith("d/")}
        seen.add(tuple(files))
    assert len(seen) > 4


def test_a_file_that_has_left_a_path_says_nothing_of_what_came_there_since(scene: Scene) -> None:
    scene.write("b", b"1\n")
    scene.move("b", "c")
    between = now()
    scene.write("b", b"2\n")
    edit = scene.write("c", b"1\nmore\n")
    after_an_edit = now()
    scene.reject(edit)
    moments = (between, after_an_edit, now())
    assert [at(scene, "b", moment) for moment in moments] == [None, b"2\n", b"2\n"]


@given(st.data())
def test_what_is_told_of_a_moment_is_what_stood_then(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder, closing(Scene(Path(folder))) as scene:
        stood: list[tuple[int, dict[str, bytes]]] = []
        for step in range(data.draw(st.integers(8, 20), label="steps")):
            go_on(scene, data, step)
            stood.append((later(), contents(scene)))
        for moment, files in stood:
            assert_told(scene, moment, files)


@given(st.data())
def test_whatever_the_clock_says_a_moment_is_behind_the_last_record_that_is_not_later(data: st.DataObject) -> None:
    with (
        TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as monkeypatch,
        closing(Scene(Path(folder))) as scene,
    ):
        clock = Clock(monkeypatch)
        stood: list[tuple[int, dict[str, bytes]]] = [(0, {})]
        for step in range(data.draw(st.integers(8, 20), label="steps")):
            clock.now = data.draw(st.integers(1, 9), label="clock")
            before = recorded(scene)
            go_on(scene, data, step)
            if recorded(scene) > before:
                stood.append((clock.now, contents(scene)))
        for moment in range(10):
            assert_told(scene, moment, next(files for time, files in reversed(stood) if time <= moment))


def go_on(scene: Scene, data: st.DataObject, step: int) -> None:
    """Do one more thing in the scene."""
    names = st.sampled_from(("a", "b", "c"))
    kinds = st.sampled_from(("write", "write", "move", "move", "delete", "snapshot", "expire", *Action))
    kind, path = data.draw(kinds, label="kind"), data.draw(names, label="path")
    match kind:
        case "write":
            scene.write(path, b"%d\n" % step)
        case "move":
            with suppress(FileMissing, FileExists):
                scene.move(path, data.draw(names, label="to"))
        case "delete":
            with suppress(FileMissing):
                scene.delete(path)
        case "snapshot":
            scene.workspace.take_snapshot(who="me")
        case "expire":
            let_go(scene)
        case Action.UNDO:
            with suppress(EditExpired):
                scene.workspace.undo()
        case Action.REDO:
            with suppress(EditExpired):
                scene.workspace.redo()
        case Action() if edits := [view.seq for view in scene.workspace.edits() if view.expired is None]:
            scene.decide(kind, data.draw(st.sampled_from(edits), label="edit"))


def contents(scene: Scene) -> dict[str, bytes]:
    return {path: look.content for path, look in scene.files().items()}


def recorded(scene: Scene) -> int:
    """Return how many edits, decisions and snapshots are recorded."""
    return sum(isinstance(view.record, Edit | Decision | Snapshot) for view in scene.workspace.records())


def assert_told(scene: Scene, moment: int, files: dict[str, bytes]) -> None:
    """Hold against what stood then what is told of all files and of each, but for those whose bytes are gone."""
    told = scene.workspace.files_at_moment(moment)
    assert {path: state.blob for path, state in told.items()} == {
        path: blob_id(content) for path, content in files.items()
    }
    for path, content in files.items():
        with suppress(EditExpired):
            assert at(scene, path, date_of(moment).isoformat()) == content


def let_go(scene: Scene) -> None:
    """Decide what is pending, and let go of all that may go, bytes and all."""
    pending = [view.seq for view in scene.workspace.edits() if view.status is Status.PENDING]
    if pending:
        scene.accept(*pending)
    scene.workspace.collect(RetentionLimits(older_than=0, max_size=None), who="me", thorough=True)


class Clock:
    """A clock that can be set, in microseconds since 1970-01-01 UTC: edits, decisions and snapshots go by it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        recorders = "review.edit_recorder", "review.planner", "tracking.snapshot_create", "tracking.snapshot_delete"
        for module in recorders:
            monkeypatch.setattr(f"objstore.{module}.now", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def told_at(scene: Scene, moment: int) -> dict[str, bytes]:
    """Return what is told of every file at a moment; of each path by itself, it is the same."""
    files = {path: scene.workspace.blob(state.blob) for path, state in scene.workspace.files_at_moment(moment).items()}
    spelt = date_of(moment).isoformat()
    assert files == {path: held for path in ("f", "g") if (held := standing(scene, path, spelt)) is not None}
    return files


def test_what_was_recorded_after_a_snapshot_is_later_whatever_the_clock_says(scene: Scene, clock: Clock) -> None:
    clock.now = 100
    scene.write("f", b"1\n")
    clock.now = 500  # an hour fast
    scene.workspace.take_snapshot(who="me")
    clock.now = 200  # set right
    scene.write("f", b"2\n")
    assert [told_at(scene, moment) for moment in (99, 100, 199, 200, 499, 500, 900)] == [
        {},
        *[{"f": b"1\n"}] * 2,
        *[{"f": b"2\n"}] * 4,
    ]
    clock.now = 300
    scene.workspace.take_snapshot(who="me")
    (scene.root / "f").write_bytes(b"nobody's\n")
    scene.workspace.take_snapshot(who="me")
    assert told_at(scene, 250) == {"f": b"2\n"}
    assert told_at(scene, 300) == told_at(scene, 900) == {"f": b"nobody's\n"}


def test_what_came_after_a_file_had_left_is_later_whatever_the_clock_says(scene: Scene, clock: Clock) -> None:
    clock.now = 100
    scene.write("f", b"1\n")
    clock.now = 500
    scene.move("f", "g")
    clock.now = 200
    scene.write("f", b"2\n")
    clock.now = 300
    scene.reject(3)
    clock.now = 600
    assert [told_at(scene, moment) for moment in (150, 250, 300, 900)] == [
        {"f": b"1\n"},
        {"f": b"2\n", "g": b"1\n"},
        *[{"g": b"1\n"}] * 2,
    ]


def test_what_another_record_follows_is_told_at_the_time_of_that_one(scene: Scene, clock: Clock) -> None:
    clock.now = 500
    scene.write("f", b"1\n")
    clock.now = 100
    assert told_at(scene, 150) == {}
    scene.write("g", b"1\n")
    assert told_at(scene, 99) == {}
    assert told_at(scene, 150) == {"f": b"1\n", "g": b"1\n"}
    clock.now = 50
    scene.reject(1)
    assert [told_at(scene, moment) for moment in (49, 50, 150)] == [{}, {"g": b"1\n"}, {"g": b"1\n"}]


def test_what_a_first_look_found_is_told_from_its_place_on_also_where_another_took_that(
    scene: Scene, clock: Clock
) -> None:
    (scene.root / "f").write_bytes(b"1\n")
    (scene.root / "g").write_bytes(b"1\n")
    (scene.root / ".casignore").write_bytes(b"x\n")
    (scene.root / "x").write_bytes(b"x\n")
    clock.now = 500
    record(scene.workspace)
    clock.now = 200
    (scene.root / "g").write_bytes(b"2\n")
    scene.workspace.take_snapshot(who="me")
    clock.now = 600
    record(scene.workspace, "x")
    moments = (199, 200, 550)
    assert [standing(scene, "g", date_of(moment).isoformat()) for moment in moments] == [None, b"2\n", b"2\n"]
    assert [standing(scene, "f", date_of(moment).isoformat()) for moment in moments] == [None, b"1\n", b"1\n"]
    assert [len(scene.workspace.files_at_moment(moment)) for moment in moments] == [0, 4, 4]


def test_what_a_later_file_was_found_to_be_is_not_said_of_the_time_before_the_first(scene: Scene) -> None:
    before = now()
    scene.write("f", b"1\n")
    scene.move("f", "g")
    (scene.root / "f").write_bytes(b"another\n")
    scene.write("f", b"2\n")
    assert [at(scene, "f", before), at(scene, "f", "2h")] == [None, None]


def test_what_stands_since_what_has_expired_is_told_and_no_snapshot_of_before(scene: Scene) -> None:
    scene.write("f", b"1\n")
    scene.write("g", b"1\n")
    scene.workspace.take_snapshot(who="me")
    taken = now()
    scene.write("f", b"2\n")
    scene.delete("g")
    since = now()
    let_go(scene)
    assert [at(scene, path, taken) for path in ("f", "g")] == [b"1\n", b"1\n"]
    for moment in (since, now()):
        assert [at(scene, path, moment) for path in ("f", "g")] == [b"2\n", None]
        told = moment_of(moment, NOW) or 0
        assert {path: state.blob for path, state in scene.workspace.files_at_moment(told).items()} == {
            "f": blob_id(b"2\n")
        }


def test_what_came_where_another_file_had_left_is_told_also_when_its_own_records_have_expired(scene: Scene) -> None:
    scene.write("g", b"one\n")
    scene.move("g", "h")
    scene.call(lambda call: call.write("g", b"two\n"), conversation="conv_other")
    scene.accept(3)
    scene.workspace.collect(RetentionLimits(older_than=0, max_size=None), who="me", thorough=True)
    assert [view.seq for view in scene.workspace.edits() if view.expired is not None] == [3]
    assert [at(scene, path, now()) for path in ("g", "h")] == [b"two\n", b"one\n"]


def test_before_the_first_edit_that_is_kept_a_file_is_as_what_has_expired_left_it(scene: Scene) -> None:
    contents = [os.urandom(500) for _ in range(4)]  # so unlike that none is stored as what it has of another
    (scene.root / "f").write_bytes(contents[0])
    before = now()
    scene.workspace.take_snapshot(who="me")
    moments = []
    for content in contents[1:3]:
        scene.write("f", content)
        moments.append(now())
    scene.workspace.delete_snapshots([1], who="me")
    scene.accept(1, 2)
    scene.call(lambda call: call.write("f", contents[3]), conversation="conv_pending")
    scene.workspace.collect(RetentionLimits(older_than=0, max_size=None), who="me", thorough=True)
    assert [view.seq for view in scene.workspace.edits() if view.expired is not None] == [1, 2]
    assert [at(scene, "f", moment) for moment in (moments[1], now())] == contents[2:]
    for moment in (before, moments[0]):
        with pytest.raises(EditExpired, match=r"^Edit 1 expired on \d{4}-\d\d-\d\d: older than 0 seconds\. "):
            at(scene, "f", moment)
        told = scene.workspace.files_at_moment(moment_of(moment, NOW) or 0)
        assert {path: state.blob for path, state in told.items()} == {
            "f": blob_id(contents[[before, *moments].index(moment)])
        }


def test_of_a_decision_that_has_expired_the_edit_is_named_whose_bytes_are_gone(scene: Scene) -> None:
    contents = [os.urandom(500) for _ in range(3)]
    scene.write("f", contents[0])
    scene.write("f", contents[1])
    scene.reject(2)
    rejected = now()
    scene.accept(1)
    scene.write("f", contents[2])
    let_go(scene)
    assert at(scene, "f", now()) == contents[2]
    with pytest.raises(EditExpired, match=r"^Edit 2 expired"):
        at(scene, "f", rejected)


def later() -> int:
    """Return a moment that is behind all that was recorded before, and before all that comes."""
    moment = before = time_now()
    while moment == before:
        moment = time_now()
    while time_now() == moment:
        pass
    return moment


def standing(scene: Scene, path: str, moment: str) -> bytes | None:
    """Return what stood at a path at a moment, also where nothing tells of it."""
    try:
        return at(scene, path, moment)
    except NoSuchName:
        return None


def test_a_name_with_an_at_sign_is_still_a_name(scene: Scene) -> None:
    scene.write("a@2h", b"1\n")
    state = scene.workspace.find_state("a@2h")
    assert state.path == "a@2h"


def test_what_an_edit_found_stood_there_after_every_edit_before_it(scene: Scene) -> None:
    for path in ("a", "src/b", "src/old"):
        (scene.root / path).parent.mkdir(exist_ok=True)
        (scene.root / path).write_bytes(b"old\n")
    scene.write("a", b"new\n")  # 1
    scene.write("src/b", b"new\n")  # 2
    scene.move("src/old", "src/moved")  # 3
    scene.write("made", b"new\n")  # 4
    scene.delete("a")  # 5

    def listed(seq: int, *, before: bool = False) -> dict[str, str]:
        found = scene.workspace.files_at(seq, before=before)
        return {path: scene.workspace.blob(state.blob).decode().strip() for path, state in found.items()}

    first = {"a": "old", "src/b": "old", "src/old": "old"}
    assert listed(1, before=True) == first
    assert listed(1) == first | {"a": "new"}
    assert listed(2) == listed(3, before=True) == first | {"a": "new", "src/b": "new"}
    assert listed(3) == listed(4, before=True) == {"a": "new", "src/b": "new", "src/moved": "old"}
    assert listed(5) == {"made": "new", "src/b": "new", "src/moved": "old"}


def test_what_an_edit_found_at_a_path_that_another_file_had_is_not_said_of_that_ones_time(scene: Scene) -> None:
    scene.write("a", b"first\n")  # 1
    scene.move("a", "b")  # 2
    (scene.root / "a").write_bytes(b"another\n")
    scene.write("a", b"more\n")  # 3
    another, more = (scene.workspace.find_state(name).blob for name in ("a@3^", "a@3"))
    moments = ((1, False), (2, False), (3, True), (3, False))
    at_a = [scene.workspace.files_at(seq, before=before).get("a") for seq, before in moments]
    assert [None if state is None else scene.workspace.blob(state.blob) for state in at_a] == [
        b"first\n",
        None,
        b"another\n",
        b"more\n",
    ]
    assert (another, more) == tuple(state.blob for state in at_a[2:] if state is not None)


def looked(scene: Scene) -> str:
    """Have a workspace looked at, and then changed and looked at; return the moment before it was changed."""
    for path, content in {"v": b"v1\n", "gone": b"g\n", "u": b"u1\n", "x": b"x1\n", "secret": b"the secret\n"}.items():
        (scene.root / path).write_bytes(content)
    (scene.root / ".casignore").write_bytes(b"x\n")
    record(scene.workspace)
    first = now()
    (scene.root / "v").write_bytes(b"v2\n")
    (scene.root / "gone").unlink()
    (scene.root / "new").write_bytes(b"n\n")
    (scene.root / "secret").write_bytes(b"clean\n")
    record(scene.workspace)
    return first


def record(workspace: Workspace, *paths: str) -> Recorded:
    return workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL), paths or None)


@pytest.mark.parametrize(
    "renew",
    [
        lambda scene: record(scene.workspace, "x"),
        lambda scene: ((scene.root / ".casignore").unlink(), record(scene.workspace)),
        lambda scene: ((scene.root / "x").unlink(), record(scene.workspace)),
        lambda scene: scene.workspace.purge([blob_id(b"the secret\n")], force=True),
        lambda scene: scene.workspace.delete_snapshots([1], who="me"),
        lambda scene: scene.workspace.collect(RetentionLimits(older_than=0, max_size=None), who="me"),
    ],
    ids=["one comes, by its name", "one comes, by its rule", "one goes", "purge", "another look", "old edits go"],
)
def test_what_stands_now_is_told_whatever_took_the_place_of_the_first_look(
    scene: Scene, renew: Callable[[Scene], object]
) -> None:
    looked(scene)
    renew(scene)
    told = {path: at(scene, path, now()) for path in ("v", "u", "new", "secret")}
    assert told == {"v": b"v2\n", "u": b"u1\n", "new": b"n\n", "secret": b"clean\n"}
    assert standing(scene, "gone", now()) is None
    files = scene.workspace.files_at_moment(moment_of(now(), NOW) or 0)
    here = {path.name for path in scene.root.iterdir() if path.is_file()}
    assert here - {"x"} == files.keys() - {"x"}


@pytest.mark.parametrize(
    "renew",
    [
        lambda scene: record(scene.workspace, "x"),
        lambda scene: scene.workspace.purge([blob_id(b"the secret\n")], force=True),
    ],
    ids=["one comes", "purge"],
)
def test_what_took_the_place_of_the_first_look_tells_what_stood_since_that(
    scene: Scene, renew: Callable[[Scene], object]
) -> None:
    before = now()
    (scene.root / "v").write_bytes(b"v0\n")
    scene.workspace.take_snapshot(who="me")
    first = looked(scene)
    scene.workspace.take_snapshot(who="me")
    (scene.root / "u").write_bytes(b"u2\n")
    scene.workspace.take_snapshot(who="me")
    second = now()
    renew(scene)
    assert [at(scene, "u", moment) for moment in (first, second)] == [b"u1\n", b"u2\n"]
    assert [at(scene, "v", moment) for moment in (first, second)] == [b"v1\n", b"v2\n"]
    assert [at(scene, path, first) for path in ("gone", "new")] == [b"g\n", None]
    files = scene.workspace.files_at_moment(moment_of(first, NOW) or 0)
    assert files.keys() - {"secret", "x"} == {"v", "gone", "u", ".casignore"}
    with pytest.raises(NoSuchName):
        at(scene, "u", before)


def test_a_baseline_that_says_it_is_of_the_time_when_it_took_anothers_place_tells_of_no_recorded_file(
    scene: Scene,
) -> None:
    looked(scene)
    with closing(Journal(str(scene.root), Disk())) as journal, journal.writing() as batch:
        old = journal.store.baseline()
        assert old is not None
        batch.record(Snapshot(number=2, time=time_now(), root=old.root, path=None, who="", title="baseline"))
        batch.record(Expiry(time=time_now(), snapshots=(1,), reason="purged", who=""))
        journal.commit(batch, ())
    moment = now()
    assert [at(scene, path, moment) for path in ("v", "gone", "new", "u")] == [b"v2\n", None, b"n\n", b"u1\n"]
    files = scene.workspace.files_at_moment(moment_of(moment, NOW) or 0)
    assert files.keys() == {"v", "new", "u", "secret", ".casignore"}
