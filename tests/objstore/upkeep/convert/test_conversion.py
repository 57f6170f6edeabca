"""A store from before format 1 becomes one in format 1, with everything that it has to tell, or stays as it is."""

import json
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from objstore import (
    Action,
    CasError,
    Conflicted,
    ConflictKind,
    ConversionRefused,
    Decision,
    DiskFull,
    Edit,
    FormatTooOld,
    Seq,
    Status,
    StoreDamaged,
    StoreLocked,
    Unit,
    Workspace,
    check_store,
    convert_store,
    import_bundle,
    salvage_store,
)
from objstore.disk.config.setting_sources import RetentionLimits
from objstore.disk.fs.disk import Disk
from objstore.disk.fs.writer_lock import WriterLock
from objstore.disk.witnesses.history_witness import HistorySize, note_history
from objstore.model.ids import blob_id
from objstore.model.records import CONVERTED_NOTE
from objstore.storage.log.frames import SEGMENT_HEADER_SIZE
from tests.golden.make_stores import stored_contents
from tests.support.crash_scenarios import files, rejected, write
from tests.support.earlier_stores import EARLIER, EARLIER_NAMES, bytes_below, golden_earlier, make_earlier
from tests.support.faulty_disk import WHOLE, CountdownDisk, PowerCut, broken_disk, full_disk, power_cut, sampled_steps

KEPT: Final = "before-conversion"


def told(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EARLIER / name / "told.json").read_text())
    return found


def contents(root: Path) -> dict[str, Any]:
    with Workspace.open(root) as workspace:
        found: dict[str, Any] = json.loads(json.dumps(stored_contents(workspace)))
    return found


def without_ids(found: dict[str, Any], inserted: tuple[int, ...] = ()) -> dict[str, Any]:
    """Return contents without the ids of records and without inserted edits, with the numbers from before these."""
    edits = [
        {**edit, "id": "", "seq": edit["seq"] - sum(each < edit["seq"] for each in inserted)}
        for edit in found["edits"]
        if edit["seq"] not in inserted
    ]
    decisions = [[number, action] for number, action, _ in found["decisions"]]
    rest = {"edits": edits, "decisions": decisions, "records": len(found["records"]) - len(inserted)}
    return {**found, **rest, "blobs": 0, "depths": 0}


def states(root: Path) -> set[bytes]:
    """Return the hashes of the states of all edits and decisions."""
    with Workspace.open(root) as workspace:
        records = [view.record for view in workspace.history.records()]
    found = set[bytes]()
    for record in records:
        changes = [record] if isinstance(record, Edit) else record.written if isinstance(record, Decision) else []
        found |= {state.blob for each in changes for state in (each.before, each.after) if state is not None}
    return found


@pytest.mark.parametrize("name", EARLIER_NAMES)
def test_a_golden_store_tells_the_same_after_its_conversion(name: str, tmp_path: Path) -> None:
    golden_earlier(name, tmp_path)
    before = bytes_below(tmp_path / ".cas")
    done = convert_store(str(tmp_path))
    assert done is not None
    assert bytes_below(Path(done.kept)).items() >= before.items()
    assert [path.name for path in tmp_path.iterdir()] == [".cas"]
    was, now = told(name), contents(tmp_path)
    assert without_ids(now, done.inserted) == without_ids(was)
    assert now["blobs"].items() >= was["blobs"].items()
    assert check_store(str(tmp_path)).faults == ()
    assert convert_store(str(tmp_path)) is None


def test_a_journal_from_which_nothing_was_missing_keeps_the_ids_of_its_records(tmp_path: Path) -> None:
    golden_earlier("2", tmp_path)
    convert_store(str(tmp_path))
    assert contents(tmp_path) == told("2")


@pytest.mark.parametrize("name", EARLIER_NAMES if WHOLE else ["1-decided"])
def test_work_continues_after_a_conversion(name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    golden_earlier(name, tmp_path)
    convert_store(str(tmp_path))
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with Workspace.open(tmp_path) as workspace:
        workspace.review.restore(workspace.history.find_state("deep.txt@20"))
        write(workspace, "new.txt", b"new\n")
        rejected(workspace, workspace.history.edits()[-1].seq)
        assert not (tmp_path / "new.txt").exists()
        assert [view for view in workspace.history.edits() if view.status is Status.PENDING]
        before = stored_contents(workspace)
        workspace.transfer.export_bundle(str(elsewhere / "bundle"))
        imported = import_bundle(str(elsewhere / "bundle"), str(elsewhere / "imported"))
        assert imported.records == len(before["records"])
        assert salvage_store(str(tmp_path), str(elsewhere / "salvaged")).is_whole
        workspace.retention.collect(RetentionLimits(), who="me")
    for root in (tmp_path, elsewhere / "imported", elsewhere / "salvaged"):
        assert contents(root)["edits"] == before["edits"]
        assert check_store(str(root)).faults == ()


def test_text_that_a_decision_wrote_besides_its_verdicts_is_an_edit_of_its_own(tmp_path: Path) -> None:
    """Version 1 lost the change of a final newline in a rejection; later edits began from the text without it."""
    golden_earlier("1-decided", tmp_path)
    done = convert_store(str(tmp_path))
    assert done is not None
    assert done.inserted == (44,)
    with Workspace.open(tmp_path) as workspace:
        edit, following = (workspace.history.edit(seq).edit for seq in (44, 45))
        assert (edit.path, edit.newline, edit.notes) == (b"end.txt", True, {CONVERTED_NOTE: "1"})
        decision = workspace.history.decisions()[0].decision
        (written,) = decision.written
        assert decision.number == 1
        assert written.after == edit.before
        assert edit.after == following.before
        for path, seq in (("alike.js", 52), ("end.txt", 45)):
            content = workspace.history.text(workspace.history.files_at()[path].blob)
            (tmp_path / path).write_bytes(content)
            rejected(workspace, seq)
            assert (tmp_path / path).read_bytes() == content.split(b"\n", 1)[1]
            workspace.review.undo()
            assert (tmp_path / path).read_bytes() == content


def test_rejection_that_would_lose_equal_lines_of_an_earlier_record_is_refused(tmp_path: Path) -> None:
    golden_earlier("1-decided", tmp_path)
    convert_store(str(tmp_path))
    with Workspace.open(tmp_path) as workspace:
        (tmp_path / "open.js").write_bytes(workspace.history.text(workspace.history.files_at()["open.js"].blob))
        outcome = workspace.decide(Action.REJECT, [Unit(Seq(50), 0), Unit(Seq(50), 1)])
        assert isinstance(outcome, Conflicted)
        assert [(conflict.kind, conflict.unit.seq) for conflict in outcome.conflicts] == [(ConflictKind.IN_DOUBT, 51)]
        rejected(workspace, 50, 51)
        assert (tmp_path / "open.js").read_bytes().count(b"return 1;\n}") == 2


# ---- crashes, full disks, other processes


def steps_of(name: str, folder: Path) -> int:
    """Return the number of a conversion's disk operations."""
    golden_earlier(name, folder)
    disk = CountdownDisk(None)
    convert_store(str(folder), disk=disk)
    return len(disk.done)


def is_earlier(root: Path) -> bool:
    """Return whether the store is the earlier one; any other must be whole."""
    try:
        contents(root)
    except FormatTooOld:
        return True
    return False


@pytest.mark.parametrize("name", ["2", "1-decided"] if WHOLE else ["1-decided"])
def test_a_crash_at_any_step_leaves_the_earlier_store_or_the_new_one(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    steps = steps_of(name, tmp_path_factory.mktemp("counted"))
    whole = None
    for step in sampled_steps(steps):
        root = tmp_path_factory.mktemp("work")
        segments = golden_earlier(name, root)
        before = bytes_below(segments)
        with pytest.raises(PowerCut):
            convert_store(str(root), disk=CountdownDisk(step, power_cut, torn=0.5))
        if is_earlier(root):
            assert bytes_below(segments) == before
        else:
            assert check_store(str(root)).faults == ()
            with Workspace.open(root) as workspace:  # wherever the earlier store lies, no scan records it
                assert not [path for path in workspace.trials.covered().files if path.startswith(b".cas")]
        convert_store(str(root))
        assert [path.name for path in root.iterdir()] == [".cas"]
        assert bytes_below(root / ".cas" / KEPT / "segments") == before
        whole = whole or contents(root)
        assert contents(root) == whole
        assert not (root / ".cas" / "making").exists()


@pytest.mark.parametrize("failure", [full_disk, broken_disk])
def test_a_failing_disk_leaves_the_earlier_store_or_the_new_one(
    failure: Callable[[str], BaseException],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    steps = steps_of("2", tmp_path_factory.mktemp("counted"))
    for step in sampled_steps(steps, 5):
        root = tmp_path_factory.mktemp("work")
        segments = golden_earlier("2", root)
        before = bytes_below(segments)
        with suppress(CasError):
            convert_store(str(root), disk=CountdownDisk(step, failure, torn=0.5))
        if is_earlier(root):
            assert bytes_below(segments) == before
        convert_store(str(root))
        assert contents(root) == told("2")


class _FullDisk(Disk):
    def free_bytes(self, folder: str | int, name: str) -> int:
        del folder, name
        return 1000


class _SimpleDisk(Disk):
    """A file system that can't swap two names."""

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        del source_directory, source, directory, name
        return False


@pytest.mark.parametrize(("disk", "error"), [(_FullDisk(), DiskFull), (_SimpleDisk(), ConversionRefused)])
def test_a_disk_that_can_not_hold_or_swap_two_stores_leaves_the_earlier_one(
    disk: Disk, error: type[CasError], tmp_path: Path
) -> None:
    golden_earlier("2", tmp_path)
    before = bytes_below(tmp_path / ".cas" / "segments")
    with pytest.raises(error):
        convert_store(str(tmp_path), disk=disk)
    assert [path.name for path in tmp_path.iterdir()] == [".cas"]
    assert bytes_below(tmp_path / ".cas" / "segments") == before


def test_a_store_that_a_writer_holds_is_not_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden_earlier("2", tmp_path)
    monkeypatch.setattr("objstore.disk.fs.writer_lock.WAIT_SECONDS", 0.01)
    with closing(WriterLock(str(tmp_path / ".cas" / "lock"))) as lock, lock.held(), pytest.raises(StoreLocked):
        convert_store(str(tmp_path))
    assert convert_store(str(tmp_path)) is not None


@pytest.mark.parametrize("offset", [SEGMENT_HEADER_SIZE + 40, -40, 20])
def test_a_damaged_store_is_not_converted(tmp_path: Path, offset: int) -> None:
    """The first frame, the last one before another segment, and the header."""
    path = golden_earlier("1", tmp_path) / "00000002.seg"
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreDamaged):
        convert_store(str(tmp_path))
    assert is_earlier_file(path)
    assert [each.name for each in tmp_path.iterdir()] == [".cas"]


def is_earlier_file(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89CASLOG\n")


def test_another_store_in_the_way_stays(tmp_path: Path) -> None:
    golden_earlier("2", tmp_path)
    golden_earlier("1", tmp_path / "other")
    (tmp_path / "other" / ".cas").rename(tmp_path / f".cas.{KEPT}")
    before = bytes_below(tmp_path)
    with pytest.raises(ConversionRefused, match="in the way"):
        convert_store(str(tmp_path))
    assert bytes_below(tmp_path / f".cas.{KEPT}") == {
        path.partition("/")[2]: content for path, content in before.items() if path.startswith(f".cas.{KEPT}/")
    }


# ---- what is not in the log


def made(root: Path) -> None:
    """Make a store with an edit, which then counts as written before format 1."""
    with Workspace.init(root) as workspace:
        write(workspace, "a.txt", b"one\n")


def test_an_unfinished_call_is_carried_out_after_the_conversion(tmp_path: Path) -> None:
    made(tmp_path)
    marker = (tmp_path / ".cas" / "applied").read_bytes()
    with Workspace.open(tmp_path) as workspace:
        write(workspace, "b.txt", b"two\n")
    (tmp_path / "b.txt").unlink()
    (tmp_path / ".cas" / "applied").write_bytes(marker)
    make_earlier(tmp_path)
    convert_store(str(tmp_path))
    with Workspace.open(tmp_path):
        assert files(tmp_path)["b.txt"][0] == b"two\n"


def test_a_tail_is_left_out_and_a_log_that_ends_before_the_marker_is_damaged(tmp_path: Path) -> None:
    made(tmp_path)
    before = contents(tmp_path)
    make_earlier(tmp_path)
    path = tmp_path / ".cas" / "segments" / "00000001.seg"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(ConversionRefused, match="ends before"):
        convert_store(str(tmp_path))
    path.write_bytes(whole + b"\xf5\xca\x5e\xfa unfinished")
    convert_store(str(tmp_path))
    assert contents(tmp_path) == before


def test_evidence_settings_and_errors_of_hooks_are_carried_over(tmp_path: Path) -> None:
    golden_earlier("1-decided", tmp_path)
    store = tmp_path / ".cas"
    written = {
        "agents/events": b"events 1 1 00000000 1\n",
        "agents/told-c": json.dumps({"units": ["40:1", "47:0", "plan"], "joined": []}).encode(),
        "agents/released": b'{"decision": 2, "comment": 0}',
        "agents/remarks": b"1 left-out a\0",
        "cache/git": b"git",
        "cache/seen": b"0" * 32 + b"\n",
        "cache/looks": b"looks",
        "cache/weave-1": b"weave",
        "config.toml": b"[review]\nexternal = 'pending'\n",
        "hook.log": b"an error\n",
        "tmp/beside-0123456789abcdef": b"/elsewhere",
        "tmp/.cas-0123456789abcdef": b"staged",
    }
    for name, content in written.items():
        (store / name).parent.mkdir(exist_ok=True)
        (store / name).write_bytes(content)
    convert_store(str(tmp_path))
    found = bytes_below(store)
    dropped = {"agents/told-c", "cache/seen", "cache/looks", "cache/weave-1", "tmp/.cas-0123456789abcdef"}
    assert {name: found.get(name) for name in written} == {
        name: None if name in dropped else content for name, content in written.items()
    } | {"agents/told-c": json.dumps({"units": ["40:1", "48:0", "plan"], "joined": []}).encode()}


def test_what_a_reviewer_has_seen_stays_seen_where_no_number_has_moved(tmp_path: Path) -> None:
    golden_earlier("2", tmp_path)
    (tmp_path / ".cas" / "cache").mkdir()
    (tmp_path / ".cas" / "cache" / "seen").write_bytes(b"0" * 32 + b"\n")
    convert_store(str(tmp_path))
    assert (tmp_path / ".cas" / "cache" / "seen").read_bytes() == b"0" * 32 + b"\n"


def test_a_caution_that_was_acknowledged_stays_so_by_the_record_s_new_id(tmp_path: Path) -> None:
    golden_earlier("1-rest", tmp_path)
    was = told("1-rest")
    (tmp_path / ".cas" / "agents").mkdir()
    known = tmp_path / ".cas" / "agents" / "cautions-acknowledged"
    known.write_text(json.dumps([1, was["records"][-1], 0]))
    convert_store(str(tmp_path))
    now = contents(tmp_path)
    assert now["records"][-1] != was["records"][-1]
    assert json.loads(known.read_text()) == [1, now["records"][-1], 0]


def test_no_history_is_said_to_be_lost_by_a_conversion(tmp_path: Path) -> None:
    golden_earlier("1-rest", tmp_path)
    ids = [edit["id"] for edit in told("1-rest")["edits"]]
    assert note_history(str(tmp_path), lambda: HistorySize(len(ids), len(ids), lambda seq: ids[seq - 1])) == []
    convert_store(str(tmp_path))
    now = [edit["id"] for edit in contents(tmp_path)["edits"]]
    assert now != ids
    assert note_history(str(tmp_path), lambda: HistorySize(len(now), len(now), lambda seq: now[seq - 1])) == []


def test_every_remote_begins_again_with_a_lane_of_its_own(tmp_path: Path) -> None:
    made(tmp_path)
    bucket = (tmp_path.parent / f"{tmp_path.name}-bucket").as_uri()
    with Workspace.open(tmp_path) as workspace:
        before = workspace.remotes.add("origin", bucket).remote
        workspace.remotes.push("origin")
    make_earlier(tmp_path)
    done = convert_store(str(tmp_path))
    assert done is not None
    assert done.remotes == ("origin",)
    with Workspace.open(tmp_path) as workspace:
        ((remote, _),) = workspace.remotes.all()
        assert remote.lane != before.lane
        assert (remote.url, remote.label) == (before.url, before.label)
        pushed = workspace.remotes.push("origin")
    assert pushed.head.edits == 1  # type: ignore[union-attr]  # it was no dry run


def test_blobs_are_the_same_bytes(tmp_path: Path) -> None:
    golden_earlier("1-rest", tmp_path)
    convert_store(str(tmp_path))
    with Workspace.open(tmp_path) as workspace:
        assert states(tmp_path) <= {*workspace.history.blobs()} | expired(workspace)
        assert all(blob_id(b"".join(workspace.history.pieces(blob))) == blob for blob in workspace.history.blobs())
    assert (tmp_path / ".cas" / KEPT / "segments").is_dir()


def expired(workspace: Workspace) -> set[bytes]:
    edits = [view.edit for view in workspace.history.edits() if view.expired is not None]
    return {state.blob for edit in edits for state in (edit.before, edit.after) if state is not None}
