"""Test the baseline: what keeps it, what updates it, and what a first edit finds with it."""

from contextlib import closing

import pytest

from objstore import (
    AgentCall,
    BlobId,
    BlobMissing,
    Call,
    CallInfo,
    NoSuchName,
    Operation,
    Origin,
    PurgeRefused,
    RetentionLimits,
    SnapshotUnreadable,
    Status,
    Workspace,
    blob_id,
    check_store,
)
from objstore.model.records import Expiry, Snapshot
from objstore.model.tree import TreeEntry, entry_at
from objstore.storage.store.write_batch import now as time_now
from objstore.storage.transaction.journal import Journal
from objstore.worktree.baseline import KnownStates, known_state_of
from tests.support.damaged_stores import damage, lose
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.scene import Scene, deletes, writes

EXTERNAL_CALL = CallInfo(tool="", origin=Origin.EXTERNAL)
SHELL = CallInfo(tool="Bash", conversation="c")


@pytest.mark.parametrize(
    "limits",
    [RetentionLimits(older_than=0, max_size=None), RetentionLimits(older_than=None, max_size=1)],
    ids=["by age", "by size"],
)
def test_garbage_collection_keeps_the_baseline_that_live_files_need(scene: Scene, limits: RetentionLimits) -> None:
    untouched = {f"folder/{number}": b"never recorded %d\n" % number * 50 for number in range(20)}
    (scene.root / "folder").mkdir()
    for path, content in untouched.items():
        (scene.root / path).write_bytes(content)
    scene.workspace.record_changes(EXTERNAL_CALL)
    (baseline,) = scene.workspace.snapshots.all()
    assert baseline.who == ""
    for number in range(30):
        scene.write("file", b"state %d\n" % number * 100)
    scene.accept(*range(1, 31))
    for thorough in (False, True):
        assert scene.workspace.retention.collect(limits, who="test", thorough=thorough).is_done
    assert scene.workspace.snapshots.all() == [baseline]
    assert all(scene.workspace.history.blob(blob_id(content)) == content for content in untouched.values())
    assert check_store(str(scene.root)).faults == ()
    # What a command then deletes is still reported and can be restored.
    for path in untouched:
        (scene.root / path).unlink()
    gone = {edit.edit.path.decode(): edit.edit.before for edit in scene.workspace.record_changes(SHELL).edits}
    assert gone.keys() == untouched.keys()
    with Workspace.open(scene.root) as again:
        for path, state in gone.items():
            assert state is not None
            assert again.history.blob(state.blob) == untouched[path]


def test_a_lookup_of_many_files_finds_what_a_lookup_of_one_does(scene: Scene) -> None:
    (scene.root / ".gitignore").write_bytes(b"left/\n")
    for folder in ("left", "kept/deep"):
        (scene.root / folder).mkdir(parents=True)
        (scene.root / folder / "file").write_bytes(b"work\n")
    (scene.root / "link").symlink_to("kept")
    scene.write("recorded", b"1\n")
    known = ["kept/deep/file", "link", ".gitignore", "kept", "recorded"]
    unknown = [
        "left",
        "left/file",
        "left/deep/file",
        "missing",
        "kept/missing/file",
        "kept/deep/file/below",
        "link/deep",
    ]

    def is_same_for_all() -> bool:
        with closing(Journal(str(scene.root), UnsyncedDisk())) as journal, journal.reading():
            states = KnownStates(journal)
            paths = list(map(str.encode, known + unknown))
            return [states.baseline_state(path) for path in paths] == [known_state_of(journal, path) for path in paths]

    assert is_same_for_all()  # there is no baseline
    scene.workspace.record_changes(EXTERNAL_CALL)
    assert is_same_for_all()


@pytest.fixture
def after_first_scan(scene: Scene) -> Scene:
    """Return a workspace whose first look found a secret, which was recorded to be gone, and files never recorded."""
    (scene.root / "folder/deep").mkdir(parents=True)
    (scene.root / "folder/secret").write_bytes(b"the secret\n")
    (scene.root / "folder/file").write_bytes(b"work\n")
    (scene.root / "folder/deep/file").write_bytes(b"deep\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    (scene.root / "folder/secret").write_bytes(b"clean\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    return scene


def change_what_was_never_recorded(scene: Scene) -> None:
    (scene.root / "folder/file").write_bytes(b"work\nmore\n")
    (scene.root / "folder/deep/file").unlink()
    (scene.root / "new").write_bytes(b"new\n")


def recorded(scene: Scene, since: int) -> dict[str, bytes | None]:
    """Return the files of which edits tell from one number on, with what each held before, as the store has it."""
    found: dict[str, bytes | None] = {}
    for view in scene.workspace.history.edits():
        if view.seq >= since:
            before = view.edit.before
            found[view.edit.path.decode()] = None if before is None else scene.workspace.history.blob(before.blob)
    return found


def check_all_is_recorded(after_first_scan: Scene, since: int) -> None:
    """See that edits from one number on tell of each change, once, and that nothing else does after a collection."""
    after_first_scan.workspace.retention.collect(
        RetentionLimits(older_than=None, max_size=None), who="test", thorough=True
    )
    after_first_scan.reopen()
    assert after_first_scan.workspace.record_changes(SHELL).baseline is None
    assert recorded(after_first_scan, since) == CHANGED
    assert not after_first_scan.workspace.record_changes(SHELL).edits
    assert check_store(str(after_first_scan.root)).faults == ()


CHANGED = {"folder/file": b"work\n", "folder/deep/file": b"deep\n", "new": None}


@pytest.mark.parametrize("changed", ["after", "before"])
def test_purging_a_blob_of_the_baseline_keeps_the_other_known_states(after_first_scan: Scene, changed: str) -> None:
    (old,) = after_first_scan.workspace.snapshots.all()
    since = after_first_scan.workspace.history.next_edit()
    if changed == "before":
        change_what_was_never_recorded(after_first_scan)
    plan = after_first_scan.workspace.retention.plan_purge(path="folder/secret")
    assert (plan.snapshots, plan.baseline) == ((old.number,), old.number)
    after_first_scan.workspace.retention.purge(plan.blobs, force=True)
    (baseline,) = after_first_scan.workspace.snapshots.all()
    held = {path: state.kind for path, state in after_first_scan.workspace.snapshots.files(baseline.number)}
    assert held == {"folder/deep/file": "file", "folder/file": "file", "folder/secret": "left-out"}
    if changed == "after":
        change_what_was_never_recorded(after_first_scan)
    check_all_is_recorded(after_first_scan, since)


@pytest.mark.parametrize("now", [b"clean\n", None], ids=["changed", "gone"])
def test_changes_of_a_file_without_edits_are_still_found_after_its_known_state_is_purged(
    scene: Scene, now: bytes | None
) -> None:
    """The same folder twice: a tree of the baseline that two paths have, which are no longer the same then."""
    paths = ["one/deep/secret", "two/deep/secret"]
    for path in paths:
        (scene.root / path).parent.mkdir(parents=True)
        (scene.root / path).write_bytes(b"the secret\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    (scene.root / paths[0]).write_bytes(b"clean\n")
    (scene.root / paths[1]).unlink()
    if now is not None:
        (scene.root / paths[1]).write_bytes(b"clean, too\n")
    scene.workspace.retention.purge([blob_id(b"the secret\n")], force=True)
    scene.reopen()
    assert not scene.workspace.record_changes(SHELL).edits
    for number, path in enumerate(paths):
        (scene.root / path).write_bytes(b"changed %d\n" % number)
    found = scene.workspace.record_changes(SHELL)
    befores = [
        None if view.edit.before is None else scene.workspace.history.blob(view.edit.before.blob)
        for view in found.edits
    ]
    assert befores == [b"clean\n", None if now is None else b"clean, too\n"]
    assert found.skipped == ()
    assert check_store(str(scene.root)).faults == ()


def test_the_current_state_of_a_file_without_edits_is_not_purged(scene: Scene) -> None:
    (scene.root / "folder").mkdir()
    (scene.root / "folder" / "secret").write_bytes(b"the secret\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    assert scene.workspace.retention.plan_purge(blobs=[blob_id(b"the secret\n")]).files == ("folder/secret",)
    with pytest.raises(PurgeRefused, match="folder/secret still contains these bytes"):
        scene.workspace.retention.purge([blob_id(b"the secret\n")], force=True)


@pytest.mark.parametrize("changed", ["after", "before"])
def test_deleting_the_baseline_loses_no_change(after_first_scan: Scene, changed: str) -> None:
    (old,) = after_first_scan.workspace.snapshots.all()
    since = after_first_scan.workspace.history.next_edit()
    if changed == "before":
        change_what_was_never_recorded(after_first_scan)
    assert after_first_scan.workspace.snapshots.delete([old.number], who="me") == [old]
    (baseline,) = after_first_scan.workspace.snapshots.all()
    assert baseline.who == ""
    if changed == "after":
        change_what_was_never_recorded(after_first_scan)
    check_all_is_recorded(after_first_scan, since)


def test_files_that_are_now_ignored_are_not_in_the_next_baseline(after_first_scan: Scene) -> None:
    (old,) = after_first_scan.workspace.snapshots.all()
    (after_first_scan.root / ".casignore").write_bytes(b"deep/\n")
    after_first_scan.workspace.snapshots.delete([old.number], who="me")
    after_first_scan.workspace.retention.collect(
        RetentionLimits(older_than=None, max_size=None), who="test", thorough=True
    )
    with pytest.raises(BlobMissing):
        after_first_scan.workspace.history.blob(blob_id(b"deep\n"))


def test_no_snapshot_is_deleted_if_one_of_them_does_not_exist(after_first_scan: Scene) -> None:
    before = after_first_scan.workspace.snapshots.all()
    with pytest.raises(NoSuchName):
        after_first_scan.workspace.snapshots.delete([before[0].number, 99], who="me")
    assert after_first_scan.workspace.snapshots.all() == before


# ---- changes of a file before its first edit


def test_changes_of_a_known_file_before_its_first_edit_are_recorded_first(scene: Scene) -> None:
    (scene.root / "f").write_bytes(b"one\ntwo\nthree\nfour\nfive\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    (scene.root / "f").write_bytes(b"ONE\ntwo\nthree\nfour\nfive\n")
    outcome = scene.call(lambda call: _replace(call, "f", b"five", b"FIVE"))
    (found,), (own,) = outcome.external, outcome.edits
    assert (found.seq, found.edit.origin, found.status) == (1, Origin.EXTERNAL, Status.ACCEPTED)
    assert found.edit.before is not None
    assert scene.workspace.history.blob(found.edit.before.blob).startswith(b"one\n")
    assert (own.edit.document, own.edit.before) == (found.edit.document, found.edit.after)
    scene.reject(own.seq)
    assert scene.text("f") == b"ONE\ntwo\nthree\nfour\nfive\n"
    scene.reject(found.seq)
    assert scene.text("f") == b"one\ntwo\nthree\nfour\nfive\n"
    assert scene.workspace.record_changes(EXTERNAL_CALL).edits == ()


def test_rejecting_the_external_creation_of_a_file_deletes_it(scene: Scene) -> None:
    scene.workspace.record_changes(EXTERNAL_CALL)
    (scene.root / "folder").mkdir()
    (scene.root / "folder" / "new").write_bytes(b"made\n")
    outcome = scene.call(writes("folder/new", b"made\nand bettered\n"))
    assert [view.edit.operation for view in (*outcome.external, *outcome.edits)] == [
        Operation.CREATE,
        Operation.REPLACE,
    ]
    scene.reject(1, 2)
    assert not (scene.root / "folder").exists()


def test_a_deleted_file_continues_its_document_when_a_tool_writes_it_again(scene: Scene) -> None:
    (scene.root / "f").write_bytes(b"old\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    (scene.root / "f").unlink()
    outcome = scene.call(writes("f", b"new\n"))
    assert [(view.edit.operation, view.edit.document) for view in (*outcome.external, *outcome.edits)] == [
        (Operation.DELETE, 1),
        (Operation.CREATE, 1),
    ]
    scene.reject(2)
    scene.reject(1)
    assert scene.text("f") == b"old\n"


def test_a_call_that_only_reads_a_known_file_records_its_external_change(scene: Scene) -> None:
    (scene.root / "f").write_bytes(b"a\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    assert scene.call(lambda call: call.read("f"), lambda call: call.exists("nothing")).external == ()
    (scene.root / "f").write_bytes(b"b\n")
    assert [view.edit.operation for view in scene.call(lambda call: call.read("f")).external] == [Operation.EDIT]


def test_no_edit_is_recorded_for_excluded_or_unchanged_files(scene: Scene) -> None:
    (scene.root / ".casignore").write_bytes(b"log\nbuild\n")
    (scene.root / "log").write_bytes(b"ignored\n")
    (scene.root / "build").mkdir()
    (scene.root / "build" / "out").write_bytes(b"ignored\n")
    (scene.root / "f").write_bytes(b"a\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    for path in ("log", "build/out"):
        (scene.root / path).write_bytes(b"changed\n")
    outcome = scene.call(*(writes(path, b"by a tool\n") for path in ("log", "build/out", "f", "g")))
    assert outcome.external == ()
    assert len(outcome.edits) == 4


def test_a_damaged_baseline_does_not_stop_a_tool(scene: Scene) -> None:
    (scene.root / "f").write_bytes(b"a\n" * 99)
    scene.workspace.record_changes(EXTERNAL_CALL)
    (segment,) = (scene.root / ".cas" / "segments").iterdir()
    held = bytearray(segment.read_bytes())
    at = held.index(b"entries")
    held[at] ^= 1
    segment.write_bytes(held)
    with Workspace.open(scene.root) as workspace, workspace.call(SHELL) as call:
        call.write("new", b"x\n")
        assert len(call.commit().edits) == 1


# ---- attribution


@pytest.mark.parametrize("has_edit", [False, True], ids=["known by the baseline", "known by an edit"])
def test_a_change_of_an_agents_shell_is_attributed_to_it_when_our_tool_finds_it(
    scene: Scene, *, has_edit: bool
) -> None:
    (scene.root / "f").write_bytes(b"one\ntwo\nthree\nfour\nfive\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    if has_edit:
        scene.edit("f", b"three", b"3")
    calls = scene.workspace.hooks
    shell = AgentCall(conversation="agent", id="1", tool="Bash", paths=None, notes={"command": "sed"})
    calls.begin(shell)
    (scene.root / "f").write_bytes((scene.root / "f").read_bytes().replace(b"one", b"ONE"))
    (scene.root / "g").write_bytes(b"made\n")
    outcome = scene.call(lambda call: _replace(call, "f", b"five", b"FIVE"), deletes("g"))
    edit, made = outcome.external
    assert [(view.edit.path, view.edit.conversation, view.status) for view in (edit, made)] == [
        (b"f", "agent", Status.PENDING),
        (b"g", "agent", Status.PENDING),
    ]
    assert (edit.edit.tool, edit.edit.notes, edit.edit.call, made.edit.call) == ("Bash", {"command": "sed"}, 0, 0)
    assert {view.edit.conversation for view in outcome.edits} == {"conv_one"}
    assert calls.end(shell) == []
    scene.reject(edit.seq)
    assert scene.text("f") == (b"one\ntwo\n3\nfour\nFIVE\n" if has_edit else b"one\ntwo\nthree\nfour\nFIVE\n")
    assert check_store(str(scene.root)).faults == ()


def test_a_change_that_two_agents_shells_may_have_made_is_external_when_our_tool_finds_it(scene: Scene) -> None:
    (scene.root / "f").write_bytes(b"one\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    for name in ("agent", "other"):
        scene.workspace.hooks.begin(AgentCall(conversation=name, id="1", tool="Bash", paths=None))
    (scene.root / "f").write_bytes(b"two\n")
    outcome = scene.call(writes("f", b"three\n"))
    assert [view.edit.conversation for view in outcome.external] == ["external"]


def test_a_call_continues_the_conversation_of_a_running_shell(scene: Scene) -> None:
    (scene.root / "f").write_bytes(b"one\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    scene.workspace.hooks.begin(AgentCall(conversation="agent", id="1", tool="Bash", paths=None))
    (scene.root / "f").write_bytes(b"two\n")
    outcome = scene.call(writes("f", b"three\n"), conversation="agent")
    assert [view.edit.call for view in (*outcome.external, *outcome.edits)] == [0, 1]


def _replace(call: Call, path: str, old: bytes, new: bytes) -> None:
    call.write(path, call.read(path).bytes.replace(old, new), operation=Operation.EDIT)


# ---- a baseline with a lost tree


def tree(scene: Scene, path: str) -> BlobId:
    """Return the tree that the baseline has of a folder."""
    (baseline,) = scene.workspace.snapshots.all()
    if not path:
        return baseline.root
    found = entry_at(baseline.root, path.encode(), scene.workspace.history.blob)
    assert isinstance(found, TreeEntry)
    return found.blob


def lose_tree(scene: Scene, path: str) -> None:
    """Have the store go on without the tree of a folder of the baseline, as a salvage leaves it."""
    lost = tree(scene, path)
    scene.workspace.close()
    assert lost in {blob.id for blob in lose(scene.root, lost).lost_blobs}
    scene.workspace = Workspace.open(scene.root, scene.disk())


LOST = ["", "folder", "folder/deep"]


@pytest.mark.parametrize("path", LOST)
def test_if_a_tree_of_the_baseline_is_lost_the_next_scan_takes_a_new_baseline(
    after_first_scan: Scene, path: str
) -> None:
    lose_tree(after_first_scan, path)
    (after_first_scan.root / path / "came").write_bytes(b"untold\n")
    (lost,) = after_first_scan.workspace.snapshots.all()
    found = after_first_scan.workspace.record_changes(SHELL)
    assert found.baseline is not None
    assert after_first_scan.workspace.snapshots.all() == [found.baseline] != [lost]
    (expiry,) = [
        view.record for view in after_first_scan.workspace.history.records() if isinstance(view.record, Expiry)
    ]
    assert (expiry.snapshots, expiry.reason) == ((lost.number,), "baseline lost")
    since = after_first_scan.workspace.history.next_edit()
    change_what_was_never_recorded(after_first_scan)
    assert len(after_first_scan.workspace.record_changes(SHELL).edits) == len(CHANGED)
    check_all_is_recorded(after_first_scan, since)


def test_the_lost_tree_of_an_unchanged_folder_is_stored_again_and_no_change_is_missed(after_first_scan: Scene) -> None:
    (old,) = after_first_scan.workspace.snapshots.all()
    lose_tree(after_first_scan, "folder/deep")
    (after_first_scan.root / "new").write_bytes(b"new\n")
    found = after_first_scan.workspace.record_changes(SHELL)
    assert (found.baseline, [view.edit.path for view in found.edits]) == (None, [b"new"])
    assert after_first_scan.workspace.snapshots.all() == [old]
    (expiry,) = [
        view.record for view in after_first_scan.workspace.history.records() if isinstance(view.record, Expiry)
    ]
    assert (expiry.snapshots, expiry.reason, expiry.who) == ((old.number + 1,), "baseline not needed", "")
    after_first_scan.workspace.retention.collect(
        RetentionLimits(older_than=None, max_size=None), who="test", thorough=True
    )
    assert check_store(str(after_first_scan.root)).faults == ()


def test_if_a_new_baseline_would_have_the_same_damaged_tree_the_old_one_stays(after_first_scan: Scene) -> None:
    damaged, lost = tree(after_first_scan, "folder/deep"), tree(after_first_scan, "")
    lose_tree(after_first_scan, "")
    (after_first_scan.root / "came").write_bytes(b"untold\n")
    (old,) = after_first_scan.workspace.snapshots.all()
    damage(after_first_scan.root, damaged)
    after_first_scan.reopen()
    for _ in range(2):
        with pytest.raises(BlobMissing) as caught:
            after_first_scan.workspace.record_changes(SHELL)
        assert caught.value.blob == lost
        assert after_first_scan.workspace.snapshots.all() == [old]


def test_a_lost_baseline_deletes_no_snapshot_of_a_person(after_first_scan: Scene) -> None:
    (after_first_scan.root / "more").write_bytes(b"more\n")
    whole = after_first_scan.workspace.snapshots.take(who="me").view
    folder = after_first_scan.workspace.snapshots.take("folder", who="me").view
    (old, *_) = after_first_scan.workspace.snapshots.all()
    after_first_scan.workspace.close()
    lose(after_first_scan.root, old.root)
    after_first_scan.workspace = Workspace.open(after_first_scan.root, after_first_scan.disk())
    (after_first_scan.root / "came").write_bytes(b"untold\n")
    found = after_first_scan.workspace.record_changes(SHELL)
    assert after_first_scan.workspace.snapshots.all() == [whole, folder, found.baseline]


def test_if_the_root_of_the_baseline_is_no_tree_the_next_scan_takes_a_new_baseline(scene: Scene) -> None:
    """No store of ours has that; one that was put together by others may."""
    with closing(Journal(str(scene.root), UnsyncedDisk())) as journal, journal.writing() as batch:
        root = batch.blob(b"no tree\n", None)
        batch.record(Snapshot(number=1, time=1, root=root, path=None, who="", title="baseline"))
        batch.commit()
    (scene.root / "file").write_bytes(b"file\n")
    scene.reopen()
    found = scene.workspace.record_changes(SHELL)
    assert found.baseline is not None
    assert scene.workspace.snapshots.all() == [found.baseline]


@pytest.mark.parametrize("path", LOST)
def test_a_baseline_with_a_lost_tree_can_be_deleted(after_first_scan: Scene, path: str) -> None:
    lose_tree(after_first_scan, path)
    since = after_first_scan.workspace.history.next_edit()
    (after_first_scan.root / path / "came").write_bytes(b"untold\n")
    (lost,) = after_first_scan.workspace.snapshots.all()
    assert after_first_scan.workspace.snapshots.delete([lost.number], who="me") == [lost]
    (baseline,) = after_first_scan.workspace.snapshots.all()
    assert baseline.who == ""
    change_what_was_never_recorded(after_first_scan)
    after_first_scan.workspace.record_changes(SHELL)
    check_all_is_recorded(after_first_scan, since)


@pytest.mark.parametrize("paths", [None, ("made/by/tool",)], ids=["a shell", "a tool that names its file"])
def test_if_a_tree_of_the_baseline_is_lost_hooks_still_work(
    after_first_scan: Scene, paths: tuple[str, ...] | None
) -> None:
    lose_tree(after_first_scan, "")
    (after_first_scan.root / "came").write_bytes(b"untold\n")
    calls = after_first_scan.workspace.hooks
    call = AgentCall(conversation="c", id="1", tool="Tool", paths=paths)
    calls.begin(call)
    (after_first_scan.root / "made/by").mkdir(parents=True)
    (after_first_scan.root / "made/by/tool").write_bytes(b"tool\n")
    (edit,) = calls.end(call)
    assert (edit.edit.path, edit.edit.conversation) == (b"made/by/tool", "c")
    (after_first_scan.root / "folder/file").write_bytes(b"work\nmore\n")
    assert [view.edit.path for view in after_first_scan.workspace.record_changes(SHELL).edits] == [b"folder/file"]


def test_if_a_tree_of_the_baseline_is_lost_the_deletion_of_a_recorded_files_folder_is_recorded(
    after_first_scan: Scene,
) -> None:
    after_first_scan.write("by/tool/file", b"recorded\n")
    after_first_scan.workspace.record_changes(EXTERNAL_CALL)
    lose_tree(after_first_scan, "")
    (after_first_scan.root / "by/tool/file").unlink()
    (after_first_scan.root / "by/tool").rmdir()
    (after_first_scan.root / "by").rmdir()
    (edit,) = after_first_scan.workspace.record_changes(SHELL).edits
    assert (edit.edit.operation, edit.edit.path) == (Operation.DELETE, b"by/tool/file")
    assert edit.edit.conversation == "c"


def test_errors_about_a_snapshot_with_a_lost_tree_say_what_to_do(after_first_scan: Scene) -> None:
    after_first_scan.workspace.snapshots.take(who="me")
    (after_first_scan.root / "folder/deep/file").unlink()
    (after_first_scan.root / "folder/deep/other").write_bytes(b"other\n")
    after_first_scan.workspace.record_changes(SHELL)
    lost = entry_at(
        after_first_scan.workspace.snapshots.take(who="me").view.root,
        b"folder/deep",
        after_first_scan.workspace.history.blob,
    )
    assert isinstance(lost, TreeEntry)
    after_first_scan.workspace.close()
    lose(after_first_scan.root, lost.blob)
    after_first_scan.workspace = Workspace.open(after_first_scan.root, after_first_scan.disk())
    workspace = after_first_scan.workspace
    (after_first_scan.root / "folder/file").write_bytes(b"work\nmore\n")
    workspace.record_changes(SHELL)
    for act in (
        lambda: workspace.snapshots.files(3),
        lambda: workspace.snapshots.changes(3, 2),
        lambda: workspace.retention.purge([blob_id(b"work\n")], force=True),
        lambda: workspace.history.files_at_moment(time_now()),
        lambda: workspace.history.find_state("folder/deep/none@0s"),
    ):
        with pytest.raises(SnapshotUnreadable, match=r"Snapshot 3 can't be read"):
            act()
    workspace.snapshots.delete([3], who="me")
    workspace.retention.purge([blob_id(b"work\n")], force=True)
    assert check_store(str(after_first_scan.root)).faults == ()
