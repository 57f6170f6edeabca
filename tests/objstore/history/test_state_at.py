"""What was at a path at a moment, according to edits, decisions and snapshots."""

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
    EditTakenOut,
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
from objstore.disk.fs.disk import Disk
from objstore.model.records import Decision, Edit, Expiry, Snapshot
from objstore.storage.store.write_batch import now as time_now
from objstore.storage.transaction.journal import Journal
from objstore.values.dates import date_of, moment_of
from tests.support.scene import Scene

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

REVIEWED = [Action.ACCEPT, Action.REJECT, Action.RESET, Action.UNDO, Action.REDO]


def now() -> str:
    """Return the present moment in the form used in a state's name, slightly after everything recorded before."""
    time.sleep(0.002)
    date_text = datetime.now(UTC).isoformat()
    time.sleep(0.002)
    return date_text


def at(scene: Scene, path: str, moment: str) -> bytes | None:
    """Return what was at a path at a moment."""
    state = scene.workspace.history.find_state(f"{path}@{moment}")
    assert state.path == path
    return None if state.blob is None else scene.workspace.history.blob(state.blob)


@pytest.mark.parametrize(
    ("date_string", "expected_time"),
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
def test_a_date_string_gives_its_moment(date_string: str, expected_time: datetime | None) -> None:
    assert moment_of(date_string, NOW) == (None if expected_time is None else round(expected_time.timestamp() * 1e6))


def test_a_month_ends_with_its_last_day() -> None:
    for date_string, last in (("2026-11", 30), ("2026-12", 31), ("2024-02", 29)):
        year, month = map(int, date_string.split("-"))
        expected_time = datetime(year, month, last, 23, 59, 59, 999_999).astimezone()
        assert moment_of(date_string, NOW, end=True) == round(expected_time.timestamp() * 1e6)


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


def test_a_moved_file_is_found_where_it_was(scene: Scene) -> None:
    scene.write("a", b"1\n")
    first = now()
    scene.move("a", "b")
    second = now()
    scene.write("a", b"new\n")
    assert [at(scene, "a", moment) for moment in (first, second, now())] == [b"1\n", None, b"new\n"]
    assert [at(scene, "b", moment) for moment in (second, now())] == [b"1\n", b"1\n"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda scene: scene.write("d/a", b"tool\n"), b"tool\n"),
        (lambda scene: (scene.root / "d/a").write_bytes(b"not recorded\n"), b"2\n"),
    ],
    ids=["recorded", "not recorded"],
)
def test_a_snapshot_shows_files_that_no_edit_records(
    scene: Scene, change: Callable[[Scene], object], expected: bytes
) -> None:
    (scene.root / "d").mkdir()
    (scene.root / "d/a").write_bytes(b"1\n")
    with pytest.raises(NoSuchName):
        at(scene, "d/a", now())
    scene.workspace.snapshots.take(who="me")
    first = now()
    (scene.root / "d/a").write_bytes(b"2\n")
    scene.workspace.snapshots.take("d", who="me")
    second = now()
    change(scene)
    assert at(scene, "d/a", first) == b"1\n"
    assert at(scene, "d/a", second) == b"2\n"
    assert at(scene, "d/a", now()) == expected
    assert at(scene, "d/nothing", second) is None
    with pytest.raises(NoSuchName):
        at(scene, "other", "2h")


def test_all_files_at_a_moment_are_those_found_path_by_path(scene: Scene) -> None:
    (scene.root / "d/deep").mkdir(parents=True)
    (scene.root / "d/a").write_bytes(b"1\n")
    (scene.root / "d/deep/b").write_bytes(b"1\n")
    (scene.root / "kept").write_bytes(b"before\n")
    (scene.root / "link").symlink_to("kept")
    moments = [now()]
    changes: list[Callable[[], object]] = [
        lambda: scene.write("kept", b"after\n"),
        lambda: scene.workspace.snapshots.take(who="me"),
        lambda: scene.write("d/a", b"2\n"),
        lambda: scene.move("d/a", "moved"),
        (scene.root / "d/deep/b").unlink,
        lambda: scene.workspace.snapshots.take("d", who="me"),
        lambda: (scene.root / ".casignore").write_text("d\n"),
        lambda: scene.workspace.snapshots.take(who="me"),
        lambda: scene.reject(Seq(2)),
        lambda: scene.workspace.snapshots.delete([2], who="me"),
        lambda: scene.delete("moved"),
    ]
    for change in changes:
        change()
        moments.append(now())
    paths = ["d/a", "d/deep/b", "kept", "link", "moved", ".casignore"]
    seen = set()
    for moment in moments:
        timestamp = moment_of(moment, NOW)
        assert timestamp is not None
        files = {
            path: scene.workspace.history.blob(state.blob)
            for path, state in scene.workspace.history.files_at_moment(timestamp).items()
        }
        assert files == {path: held for path in paths if (held := content_at(scene, path, moment)) is not None}
        below = scene.workspace.history.files_at_moment(timestamp, "d")
        assert below.keys() == {path for path in files if path.startswith("d/")}
        seen.add(tuple(files))
    assert len(seen) > 4


def test_a_file_that_left_a_path_does_not_count_for_its_successor(scene: Scene) -> None:
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
def test_the_files_at_a_moment_are_those_that_existed_then(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder, closing(Scene(Path(folder))) as scene:
        history_of_files: list[tuple[int, dict[str, bytes]]] = []
        for step in range(data.draw(st.integers(8, 20), label="steps")):
            go_on(scene, data, step)
            history_of_files.append((later(), contents(scene)))
        for moment, files in history_of_files:
            assert_files_at(scene, moment, files)


@given(st.data())
def test_a_moment_follows_the_last_record_not_later_whatever_the_clock_says(data: st.DataObject) -> None:
    with (
        TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as monkeypatch,
        closing(Scene(Path(folder))) as scene,
    ):
        clock = Clock(monkeypatch)
        history_of_files: list[tuple[int, dict[str, bytes]]] = [(0, {})]
        for step in range(data.draw(st.integers(8, 20), label="steps")):
            clock.now = data.draw(st.integers(1, 9), label="clock") * 100
            before = recorded(scene)
            go_on(scene, data, step, clock)
            if recorded(scene) > before:
                history_of_files.append((clock.now, contents(scene)))
        for moment in range(0, 1000, 66):
            assert_files_at(scene, moment, next(files for time, files in reversed(history_of_files) if time <= moment))


def go_on(scene: Scene, data: st.DataObject, step: int, clock: "Clock | None" = None) -> None:
    """Do one more thing in the scene. No two snapshots are of one microsecond: these would be one, taken again."""
    names = st.sampled_from(("a", "b", "c"))
    kinds = st.sampled_from(("write", "write", "move", "move", "delete", "snapshot", "expire", *REVIEWED))
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
            if clock is not None:
                clock.now += step
            scene.workspace.snapshots.take(who="me")
        case "expire":
            expire_all(scene)
        case Action.UNDO:
            with suppress(EditExpired):
                scene.workspace.review.undo()
        case Action.REDO:
            with suppress(EditExpired):
                scene.workspace.review.redo()
        case Action() if edits := [view.seq for view in scene.workspace.history.edits() if view.expired is None]:
            with suppress(EditTakenOut):
                scene.decide(kind, data.draw(st.sampled_from(edits), label="edit"))


def contents(scene: Scene) -> dict[str, bytes]:
    return {path: look.content for path, look in scene.files().items()}


def recorded(scene: Scene) -> int:
    """Return how many edits, decisions and snapshots are recorded."""
    return sum(isinstance(view.record, Edit | Decision | Snapshot) for view in scene.workspace.history.records())


def assert_files_at(scene: Scene, moment: int, files: dict[str, bytes]) -> None:
    """Compare the files at a moment, together and one by one, with `files`, except those whose bytes are gone."""
    files_found = scene.workspace.history.files_at_moment(moment)
    assert {path: state.blob for path, state in files_found.items()} == {
        path: blob_id(content) for path, content in files.items()
    }
    for path, content in files.items():
        with suppress(EditExpired):
            assert at(scene, path, date_of(moment).isoformat()) == content


def expire_all(scene: Scene) -> None:
    """Decide all pending edits and expire everything that may expire, with its bytes."""
    pending = [view.seq for view in scene.workspace.history.edits() if view.status is Status.PENDING]
    if pending:
        with suppress(EditTakenOut):
            scene.accept(*pending)
    taken_out = [view.seq for view in scene.workspace.history.edits() if view.status is Status.PENDING]
    if taken_out:
        scene.reject(*taken_out)
    scene.workspace.retention.collect(RetentionLimits(older_than=0, max_size=None), who="me", thorough=True)


class Clock:
    """A clock that can be set, in microseconds since 1970-01-01 UTC, for edits, decisions and snapshots."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        recorders = (
            "review.calls.edit_recorder",
            "review.planning.planner",
            "history.snapshots.create",
            "history.snapshots.catalog",
        )
        for module in recorders:
            monkeypatch.setattr(f"objstore.{module}.now", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def files_at(scene: Scene, moment: int) -> dict[str, bytes]:
    """Return every file at a moment, after checking that each path by itself gives the same."""
    files = {
        path: scene.workspace.history.blob(state.blob)
        for path, state in scene.workspace.history.files_at_moment(moment).items()
    }
    date_text = date_of(moment).isoformat()
    assert files == {path: held for path in ("f", "g") if (held := content_at(scene, path, date_text)) is not None}
    return files


def test_records_after_a_snapshot_are_later_whatever_the_clock_says(scene: Scene, clock: Clock) -> None:
    clock.now = 100
    scene.write("f", b"1\n")
    clock.now = 500  # an hour fast
    scene.workspace.snapshots.take(who="me")
    clock.now = 200  # set right
    scene.write("f", b"2\n")
    assert [files_at(scene, moment) for moment in (99, 100, 199, 200, 499, 500, 900)] == [
        {},
        *[{"f": b"1\n"}] * 2,
        *[{"f": b"2\n"}] * 4,
    ]
    clock.now = 300
    scene.workspace.snapshots.take(who="me")
    (scene.root / "f").write_bytes(b"not recorded\n")
    scene.workspace.snapshots.take(who="me")
    assert files_at(scene, 250) == {"f": b"2\n"}
    assert files_at(scene, 300) == files_at(scene, 900) == {"f": b"not recorded\n"}


def test_a_successor_at_a_path_is_later_whatever_the_clock_says(scene: Scene, clock: Clock) -> None:
    clock.now = 100
    scene.write("f", b"1\n")
    clock.now = 500
    scene.move("f", "g")
    clock.now = 200
    scene.write("f", b"2\n")
    clock.now = 300
    scene.reject(3)
    clock.now = 600
    assert [files_at(scene, moment) for moment in (150, 250, 300, 900)] == [
        {"f": b"1\n"},
        {"f": b"2\n", "g": b"1\n"},
        *[{"g": b"1\n"}] * 2,
    ]


def test_a_record_counts_from_the_time_of_its_successor(scene: Scene, clock: Clock) -> None:
    clock.now = 500
    scene.write("f", b"1\n")
    clock.now = 100
    assert files_at(scene, 150) == {}
    scene.write("g", b"1\n")
    assert files_at(scene, 99) == {}
    assert files_at(scene, 150) == {"f": b"1\n", "g": b"1\n"}
    clock.now = 50
    scene.reject(1)
    assert [files_at(scene, moment) for moment in (49, 50, 150)] == [{}, {"g": b"1\n"}, {"g": b"1\n"}]


def test_a_baseline_counts_from_its_place_even_if_replaced(scene: Scene, clock: Clock) -> None:
    (scene.root / "f").write_bytes(b"1\n")
    (scene.root / "g").write_bytes(b"1\n")
    (scene.root / ".casignore").write_bytes(b"x\n")
    (scene.root / "x").write_bytes(b"x\n")
    clock.now = 500
    record(scene.workspace)
    clock.now = 200
    (scene.root / "g").write_bytes(b"2\n")
    scene.workspace.snapshots.take(who="me")
    clock.now = 600
    record(scene.workspace, "x")
    moments = (199, 200, 550)
    assert [content_at(scene, "g", date_of(moment).isoformat()) for moment in moments] == [None, b"2\n", b"2\n"]
    assert [content_at(scene, "f", date_of(moment).isoformat()) for moment in moments] == [None, b"1\n", b"1\n"]
    assert [len(scene.workspace.history.files_at_moment(moment)) for moment in moments] == [0, 4, 4]


def test_a_later_file_does_not_count_before_the_first(scene: Scene) -> None:
    before = now()
    scene.write("f", b"1\n")
    scene.move("f", "g")
    (scene.root / "f").write_bytes(b"another\n")
    scene.write("f", b"2\n")
    assert [at(scene, "f", before), at(scene, "f", "2h")] == [None, None]


def test_a_state_since_expired_edits_takes_precedence_over_older_snapshots(scene: Scene) -> None:
    scene.write("f", b"1\n")
    scene.write("g", b"1\n")
    scene.workspace.snapshots.take(who="me")
    taken = now()
    scene.write("f", b"2\n")
    scene.delete("g")
    since = now()
    expire_all(scene)
    assert [at(scene, path, taken) for path in ("f", "g")] == [b"1\n", b"1\n"]
    for moment in (since, now()):
        assert [at(scene, path, moment) for path in ("f", "g")] == [b"2\n", None]
        timestamp = moment_of(moment, NOW) or 0
        assert {path: state.blob for path, state in scene.workspace.history.files_at_moment(timestamp).items()} == {
            "f": blob_id(b"2\n")
        }


def test_a_successor_at_a_path_is_found_after_its_records_expired(scene: Scene) -> None:
    scene.write("g", b"one\n")
    scene.move("g", "h")
    scene.call(lambda call: call.write("g", b"two\n"), conversation="conv_other")
    scene.accept(3)
    scene.workspace.retention.collect(RetentionLimits(older_than=0, max_size=None), who="me", thorough=True)
    assert [view.seq for view in scene.workspace.history.edits() if view.expired is not None] == [3]
    assert [at(scene, path, now()) for path in ("g", "h")] == [b"two\n", b"one\n"]


def test_before_the_first_kept_edit_a_file_is_as_expired_edits_left_it(scene: Scene) -> None:
    contents = [os.urandom(500) for _ in range(4)]  # so unlike that none is stored as what it has of another
    (scene.root / "f").write_bytes(contents[0])
    before = now()
    scene.workspace.snapshots.take(who="me")
    moments = []
    for content in contents[1:3]:
        scene.write("f", content)
        moments.append(now())
    scene.workspace.snapshots.delete([1], who="me")
    scene.accept(1, 2)
    scene.call(lambda call: call.write("f", contents[3]), conversation="conv_pending")
    scene.workspace.retention.collect(RetentionLimits(older_than=0, max_size=None), who="me", thorough=True)
    assert [view.seq for view in scene.workspace.history.edits() if view.expired is not None] == [1, 2]
    assert [at(scene, "f", moment) for moment in (moments[1], now())] == contents[2:]
    for moment in (before, moments[0]):
        with pytest.raises(EditExpired, match=r"^Edit 1 expired on \d{4}-\d\d-\d\d: older than 0 seconds\. "):
            at(scene, "f", moment)
        files_found = scene.workspace.history.files_at_moment(moment_of(moment, NOW) or 0)
        assert {path: state.blob for path, state in files_found.items()} == {
            "f": blob_id(contents[[before, *moments].index(moment)])
        }


def test_an_expired_decision_names_the_edit_whose_bytes_are_gone(scene: Scene) -> None:
    contents = [os.urandom(500) for _ in range(3)]
    scene.write("f", contents[0])
    scene.write("f", contents[1])
    scene.reject(2)
    rejected = now()
    scene.accept(1)
    scene.write("f", contents[2])
    expire_all(scene)
    assert at(scene, "f", now()) == contents[2]
    with pytest.raises(EditExpired, match=r"^Edit 2 expired"):
        at(scene, "f", rejected)


def later() -> int:
    """Return a moment after everything recorded before, and before everything recorded from now on."""
    moment = before = time_now()
    while moment == before:
        moment = time_now()
    while time_now() == moment:
        pass
    return moment


def content_at(scene: Scene, path: str, moment: str) -> bytes | None:
    """Return what was at a path at a moment, even if nothing records it."""
    try:
        return at(scene, path, moment)
    except NoSuchName:
        return None


def test_a_name_with_an_at_sign_is_still_a_name(scene: Scene) -> None:
    scene.write("a@2h", b"1\n")
    state = scene.workspace.history.find_state("a@2h")
    assert state.path == "a@2h"


def test_the_state_before_an_edit_existed_after_every_earlier_edit(scene: Scene) -> None:
    for path in ("a", "src/b", "src/old"):
        (scene.root / path).parent.mkdir(exist_ok=True)
        (scene.root / path).write_bytes(b"old\n")
    scene.write("a", b"new\n")  # 1
    scene.write("src/b", b"new\n")  # 2
    scene.move("src/old", "src/moved")  # 3
    scene.write("made", b"new\n")  # 4
    scene.delete("a")  # 5

    def listed(seq: int, *, before: bool = False) -> dict[str, str]:
        found = scene.workspace.history.files_at(seq, before=before)
        return {path: scene.workspace.history.blob(state.blob).decode().strip() for path, state in found.items()}

    first = {"a": "old", "src/b": "old", "src/old": "old"}
    assert listed(1, before=True) == first
    assert listed(1) == first | {"a": "new"}
    assert listed(2) == listed(3, before=True) == first | {"a": "new", "src/b": "new"}
    assert listed(3) == listed(4, before=True) == {"a": "new", "src/b": "new", "src/moved": "old"}
    assert listed(5) == {"made": "new", "src/b": "new", "src/moved": "old"}


def test_the_state_before_an_edit_does_not_count_for_an_earlier_file_at_the_path(scene: Scene) -> None:
    scene.write("a", b"first\n")  # 1
    scene.move("a", "b")  # 2
    (scene.root / "a").write_bytes(b"another\n")
    scene.write("a", b"more\n")  # 3
    another, more = (scene.workspace.history.find_state(name).blob for name in ("a@3^", "a@3"))
    moments = ((1, False), (2, False), (3, True), (3, False))
    at_a = [scene.workspace.history.files_at(seq, before=before).get("a") for seq, before in moments]
    assert [None if state is None else scene.workspace.history.blob(state.blob) for state in at_a] == [
        b"first\n",
        None,
        b"another\n",
        b"more\n",
    ]
    assert (another, more) == tuple(state.blob for state in at_a[2:] if state is not None)


def scanned_twice(scene: Scene) -> str:
    """Scan a workspace, change it and scan it again; return the moment before the change."""
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
        lambda scene: scene.workspace.retention.purge([blob_id(b"the secret\n")], force=True),
        lambda scene: scene.workspace.snapshots.delete([1], who="me"),
        lambda scene: scene.workspace.retention.collect(RetentionLimits(older_than=0, max_size=None), who="me"),
    ],
    ids=["one comes, by its name", "one comes, by its rule", "one goes", "purge", "another look", "old edits go"],
)
def test_the_present_state_is_found_whatever_replaced_the_baseline(
    scene: Scene, renew: Callable[[Scene], object]
) -> None:
    scanned_twice(scene)
    renew(scene)
    files_found = {path: at(scene, path, now()) for path in ("v", "u", "new", "secret")}
    assert files_found == {"v": b"v2\n", "u": b"u1\n", "new": b"n\n", "secret": b"clean\n"}
    assert content_at(scene, "gone", now()) is None
    files = scene.workspace.history.files_at_moment(moment_of(now(), NOW) or 0)
    here = {path.name for path in scene.root.iterdir() if path.is_file()}
    assert here - {"x"} == files.keys() - {"x"}


@pytest.mark.parametrize(
    "renew",
    [
        lambda scene: record(scene.workspace, "x"),
        lambda scene: scene.workspace.retention.purge([blob_id(b"the secret\n")], force=True),
    ],
    ids=["one comes", "purge"],
)
def test_a_replaced_baseline_shows_what_existed_since_the_first_scan(
    scene: Scene, renew: Callable[[Scene], object]
) -> None:
    before = now()
    (scene.root / "v").write_bytes(b"v0\n")
    scene.workspace.snapshots.take(who="me")
    first = scanned_twice(scene)
    scene.workspace.snapshots.take(who="me")
    (scene.root / "u").write_bytes(b"u2\n")
    scene.workspace.snapshots.take(who="me")
    second = now()
    renew(scene)
    assert [at(scene, "u", moment) for moment in (first, second)] == [b"u1\n", b"u2\n"]
    assert [at(scene, "v", moment) for moment in (first, second)] == [b"v1\n", b"v2\n"]
    assert [at(scene, path, first) for path in ("gone", "new")] == [b"g\n", None]
    files = scene.workspace.history.files_at_moment(moment_of(first, NOW) or 0)
    assert files.keys() - {"secret", "x"} == {"v", "gone", "u", ".casignore"}
    with pytest.raises(NoSuchName):
        at(scene, "u", before)


def test_a_baseline_dated_at_its_replacement_shows_no_recorded_file(
    scene: Scene,
) -> None:
    scanned_twice(scene)
    with closing(Journal(str(scene.root), Disk())) as journal, journal.writing() as batch:
        old = journal.store.baseline()
        assert old is not None
        batch.record(Snapshot(number=2, time=time_now(), root=old.root, path=None, who="", title="baseline"))
        batch.record(Expiry(time=time_now(), snapshots=(1,), reason="purged", who=""))
        journal.commit(batch, ())
    moment = now()
    assert [at(scene, path, moment) for path in ("v", "gone", "new", "u")] == [b"v2\n", None, b"n\n", b"u1\n"]
    files = scene.workspace.history.files_at_moment(moment_of(moment, NOW) or 0)
    assert files.keys() == {"v", "new", "u", "secret", ".casignore"}
