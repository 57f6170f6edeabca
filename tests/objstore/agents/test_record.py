"""Test scans that record: what happened to files without a tool's report becomes edits, once and correctly."""

import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from msgpack import packb, unpackb

from objstore import (
    Action,
    CallInfo,
    ConversationReserved,
    Decided,
    EditView,
    ExternalChanges,
    FileMayBeOlder,
    Operation,
    Origin,
    Recorded,
    ScanLimits,
    Status,
    Unit,
    Workspace,
    blob_id,
    check_store,
)
from objstore.agents.detect import record_differences
from objstore.agents.record import record_changes
from objstore.disk.fs.disk import Disk
from objstore.disk.fs.writer_lock import WriterLock
from objstore.storage.transaction.journal import Journal
from objstore.worktree.scan import WorktreeScan, discard_content
from tests.support.mounts import can_mount, small_disk
from tests.support.scene import TEN, Scene

PERSON: Final = CallInfo(tool="record", origin=Origin.PERSON)
AGENT: Final = CallInfo(tool="Bash", conversation="conv_shell", notes={"agent": "tester"})
EXTERNAL_CALL: Final = CallInfo(tool="", origin=Origin.EXTERNAL)


def recorded_changes(found: Recorded) -> list[str]:
    """Return what was recorded, in words."""
    return sorted(in_words(view) for view in found.edits)


def in_words(view: EditView) -> str:
    edit = view.edit
    before, after = edit.before, edit.after
    if edit.source is not None:
        return f"move {edit.source.decode()} {edit.path.decode()}"
    if before is not None and after is not None and before.mode != after.mode:
        return f"mode {edit.path.decode()} {before.mode:o} {after.mode:o}"
    return f"{edit.operation.value} {os.fsdecode(edit.path)}"


def put(scene: Scene, path: str, content: bytes) -> Path:
    """Write a file as a shell would."""
    file = scene.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


@pytest.fixture
def known(scene: Scene) -> Scene:
    """Return a workspace with some unrecorded files, after a first scan."""
    put(scene, "a.txt", b"a\n")
    put(scene, "src/b.py", TEN)
    put(scene, "src/deep/c.py", b"c\n")
    put(scene, "empty", b"")
    scene.workspace.record_changes(EXTERNAL_CALL)
    return scene


# ---- the first scan


def test_the_first_scan_records_no_edit_for_files_without_edits(scene: Scene) -> None:
    put(scene, "a.txt", b"a\n")
    found = scene.workspace.record_changes(PERSON)
    assert found.edits == ()
    assert found.baseline is not None
    assert found.files == 1
    again = scene.workspace.record_changes(PERSON)
    assert (again.edits, again.baseline) == ((), None)


def test_the_first_scan_records_changes_of_recorded_files(scene: Scene) -> None:
    scene.write("a.txt", b"a\n")
    scene.write("b.txt", b"b\n")
    scene.write("c.txt", b"c\n")
    put(scene, "a.txt", b"other\n")
    (scene.root / "b.txt").unlink()
    assert recorded_changes(scene.workspace.record_changes(PERSON)) == ["delete b.txt", "edit a.txt"]


@pytest.mark.parametrize("gone", ["d/g/deep", "d/g", "d"])
def test_the_first_scan_records_deletions_of_whole_folders(scene: Scene, gone: str) -> None:
    put(scene, "d/other", b"not recorded\n")
    scene.write("d/g/deep/file", b"recorded\n")
    shutil.rmtree(scene.root / gone)
    assert recorded_changes(scene.workspace.record_changes(EXTERNAL_CALL)) == ["delete d/g/deep/file"]
    put(scene, "d/g/deep/new", b"new\n")
    assert recorded_changes(scene.workspace.record_changes(AGENT)) == ["create d/g/deep/new"]


def test_the_first_scan_does_not_report_files_in_ignored_folders_as_deleted(scene: Scene) -> None:
    scene.write("node_modules/g/file", b"recorded\n")
    scene.write("built/g/file", b"recorded\n")
    put(scene, "built/pyvenv.cfg", b"")
    assert recorded_changes(scene.workspace.record_changes(EXTERNAL_CALL)) == []


def test_a_move_by_a_shell_to_another_file_system_can_be_rejected(scene: Scene) -> None:
    disk = scene.root / "disk"
    disk.mkdir()
    if not can_mount(disk):
        pytest.skip("no disk can be mounted here")
    with small_disk(disk):
        put(scene, "f", b"one\n").chmod(0o640)
        scene.workspace.record_changes(EXTERNAL_CALL)
        shutil.move(scene.root / "f", disk / "f")
        (moved,) = scene.workspace.record_changes(AGENT).edits
        assert in_words(moved) == "move f disk/f"
        for action, there, gone in ((Action.REJECT, "f", "disk/f"), (Action.ACCEPT, "disk/f", "f")):
            assert isinstance(scene.workspace.decide(action, [Unit(moved.seq, 0)]), Decided)
            assert not (scene.root / gone).exists()
            assert (scene.root / there).read_bytes() == b"one\n"
            assert (scene.root / there).stat().st_mode & 0o777 == 0o640


def test_identical_files_move_to_their_own_names(scene: Scene) -> None:
    for name in ("p", "q", "r", "s"):
        put(scene, f"old/{name}", b"the same\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    (scene.root / "new").mkdir()
    for name, to in (("q", "q"), ("p", "a"), ("s", "p"), ("r", "s")):
        (scene.root / "old" / name).rename(scene.root / "new" / to)
    assert recorded_changes(scene.workspace.record_changes(AGENT)) == [
        "move old/p new/p",
        "move old/q new/q",
        "move old/r new/a",
        "move old/s new/s",
    ]


def test_the_states_of_the_first_scan_can_be_restored(known: Scene) -> None:
    (known.root / "src/b.py").unlink()
    edit = known.workspace.record_changes(AGENT).edits[0].edit
    assert edit.before is not None
    assert known.workspace.history.blob(edit.before.blob) == TEN


# ---- what is recorded


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("echo x >> a.txt", ["edit a.txt"]),
        ("echo n > new", ["create new"]),
        ("mkdir -p x/y && echo n > x/y/new", ["create x/y/new"]),
        ("rm a.txt", ["delete a.txt"]),
        ("rm -r src", ["delete src/b.py", "delete src/deep/c.py"]),
        ("mv a.txt z.txt", ["move a.txt z.txt"]),
        ("mv src lib", ["move src/b.py lib/b.py", "move src/deep/c.py lib/deep/c.py"]),
        ("mv a.txt src/b.py", ["delete a.txt", "edit src/b.py"]),
        ("chmod 700 a.txt", ["mode a.txt 644 700"]),
        ("mv a.txt z.txt && chmod 600 z.txt", ["move a.txt z.txt"]),
        ("cp a.txt z.txt", ["create z.txt"]),
        ("mv empty void", ["create void", "delete empty"]),
        ("mv a.txt t && mv src/b.py a.txt && mv t src/b.py", ["edit a.txt", "edit src/b.py"]),
        ("rm a.txt && mkdir a.txt && echo i > a.txt/i", ["create a.txt/i", "delete a.txt"]),
        ("rm -r src && echo file > src", ["create src", "delete src/b.py", "delete src/deep/c.py"]),
        ("rm a.txt && ln -s src/b.py a.txt", ["create a.txt", "delete a.txt"]),
        ("rm a.txt && mkfifo a.txt", ["delete a.txt"]),
        ("rm -r src && mkfifo src", ["delete src/b.py", "delete src/deep/c.py"]),
        ("ln -s a.txt link", ["create link"]),
        ("touch a.txt && mkdir empty-folder", []),
        ("printf 'a\\n' > a.txt", []),
        ("mkdir node_modules && echo x > node_modules/x", []),
        ("echo '*.log' > .casignore && echo x > x.log", ["create .casignore"]),
        ("echo a.txt > .casignore && rm a.txt", ["create .casignore", "delete a.txt"]),
        ("echo a.txt > .casignore && echo more >> a.txt", ["create .casignore"]),
        ("mkdir -p .git && echo x > .git/HEAD", []),
        ("printf '' > 'new\nline' && printf x > \"$(printf '\\377')\"", ["create new\nline", "create \udcff"]),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_the_changes_of_a_shell_command_are_recorded(known: Scene, script: str, wanted: list[str]) -> None:
    assert os.system(f"cd '{known.root}' && {script}") == 0  # noqa: S605 - the commands above
    assert recorded_changes(known.workspace.record_changes(AGENT)) == wanted
    assert known.workspace.record_changes(AGENT).edits == ()
    assert known.external() == {}


@pytest.mark.parametrize("forget", [False, True], ids=["with the last look", "without"])
def test_the_same_is_recorded_with_and_without_the_stat_cache(known: Scene, *, forget: bool) -> None:
    put(known, "a.txt", b"other\n")
    (known.root / "src/b.py").rename(known.root / "b.py")
    if forget:
        (known.root / ".cas/cache/looks").unlink()
    assert recorded_changes(known.workspace.record_changes(AGENT)) == ["edit a.txt", "move src/b.py b.py"]


def forged_stat_caches(kept: bytes) -> Iterator[bytes]:
    """Yield what may lie in the place of kept looks with a hash that is right: it has no key."""
    store, baseline, until, newest, git, rows = unpackb(kept[8 + 32 :])
    bodies: list[object] = [
        7,
        (store, baseline, until, newest, git, 7),
        (store, baseline, (2**64 - 1, 0, 0), newest, git, rows),
        (store, baseline, until, (1, 2), git, rows),
        (store, baseline, until, newest, 7, rows),
        (store, baseline, until, newest, [["", b"", b""]], rows),
        (store, baseline, until, newest, git, [*rows, []]),
        (store, baseline, until, newest, git, [*rows, {}]),
    ]
    for at in range(len(rows[0])):
        bodies.append((store, baseline, until, newest, git, [[*row[:at], 7, *row[at + 1 :]] for row in rows]))
        bodies.append((store, baseline, until, newest, git, [[*row[:at], b"", *row[at + 1 :]] for row in rows]))
    for body in bodies:
        packed = packb(body)
        yield kept[:8] + blob_id(packed) + packed
    yield kept[:8] + blob_id(b"\xc1") + b"\xc1"


def test_an_invalid_stat_cache_counts_as_missing(known: Scene) -> None:
    path = known.root / ".cas" / "cache" / "looks"
    kept = path.read_bytes()
    for number, forged in enumerate(forged_stat_caches(kept)):
        path.write_bytes(forged)
        put(known, "a.txt", b"%d\n" % number)
        assert recorded_changes(known.workspace.record_changes(EXTERNAL_CALL)) == ["edit a.txt"]


def test_moved_file_is_matched_with_the_copy_of_the_same_name(known: Scene) -> None:
    put(known, "copy", TEN)
    (known.root / "lib").mkdir()
    (known.root / "src/b.py").rename(known.root / "lib/b.py")
    assert recorded_changes(known.workspace.record_changes(AGENT)) == ["create copy", "move src/b.py lib/b.py"]


def test_a_rename_with_a_change_that_git_applies_is_one_edit(known: Scene) -> None:
    (known.root / "old").write_bytes(TEN)
    known.workspace.record_changes(AGENT)
    patch = known.root.parent / "rename.patch"
    patch.write_text(
        "diff --git a/old b/new\nsimilarity index 90%\nrename from old\nrename to new\n--- a/old\n+++ b/new\n"
        "@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n"
    )
    subprocess.run(["git", "apply", "-p1", str(patch)], cwd=known.root, check=True)
    (edit,) = known.workspace.record_changes(AGENT).edits
    assert (in_words(edit), edit.edit.added, edit.edit.removed) == ("move old new", 1, 1)
    changed = (known.root / "new").read_bytes()
    known.workspace.decide(Action.REJECT, [Unit(edit.seq, 1)])
    assert (known.root / "new").read_bytes() == TEN
    known.workspace.decide(Action.REJECT, [Unit(edit.seq, 0)])
    assert ((known.root / "old").read_bytes(), (known.root / "new").exists()) == (TEN, False)
    known.workspace.decide(Action.ACCEPT, [Unit(edit.seq, 0), Unit(edit.seq, 1)])
    assert ((known.root / "new").read_bytes(), (known.root / "old").exists()) == (changed, False)


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        ({"b": TEN.replace(b"5", b"five"), "c": TEN.replace(b"6", b"six")}, ["delete a", "create b", "create c"]),
        ({"b": b"1\n2\n3\n" + b"".join(b"other %d\n" % n for n in range(9))}, ["delete a", "create b"]),
        ({"b": TEN.replace(b"5", b"five"), "c": TEN}, ["move a c", "create b"]),
        ({"b": b"\0" + TEN}, ["delete a", "create b"]),
    ],
)
def test_a_deleted_file_moved_only_to_the_one_new_file_that_is_like_it(
    known: Scene, new: dict[str, bytes], wanted: list[str]
) -> None:
    (known.root / "a").write_bytes(TEN)
    known.workspace.record_changes(AGENT)
    (known.root / "a").unlink()
    for name, content in new.items():
        (known.root / name).write_bytes(content)
    assert sorted(map(in_words, known.workspace.record_changes(AGENT).edits)) == sorted(wanted)


def test_a_snapshot_in_between_hides_nothing(known: Scene) -> None:
    put(known, "a.txt", b"other\n")
    (known.root / "src/deep/c.py").unlink()
    (known.root / "src/deep").rmdir()
    known.workspace.snapshots.take(who="me")
    assert recorded_changes(known.workspace.record_changes(AGENT)) == ["delete src/deep/c.py", "edit a.txt"]


def test_a_deleted_and_collected_snapshot_hides_nothing(known: Scene) -> None:
    put(known, "a.txt", b"other\n")
    time.sleep(0.05)  # more than a tick, so that the look need not read the file again
    number = known.workspace.snapshots.take(who="me").view.number
    known.workspace.snapshots.delete([number], who="me")
    with closing(sqlite3.connect(known.root / ".cas/index.sqlite", isolation_level=None)) as index:
        index.execute("DELETE FROM blobs WHERE refs = 0")
    known.reopen()
    (view,) = known.workspace.record_changes(AGENT).edits
    assert in_words(view) == "edit a.txt"
    assert view.edit.after is not None
    assert known.workspace.history.blob(view.edit.after.blob) == b"other\n"


def test_edits_of_tools_and_reviewers_are_not_recorded_again(known: Scene) -> None:
    known.write("a.txt", b"by a tool\n")
    known.move("src/b.py", "b.py")
    known.delete("src/deep/c.py")
    created = known.write("made/new", b"new\n")
    known.reject(created)
    assert known.workspace.record_changes(EXTERNAL_CALL).edits == ()
    put(known, "src/b.py", TEN)
    assert recorded_changes(known.workspace.record_changes(EXTERNAL_CALL)) == ["create src/b.py"]


@pytest.mark.parametrize("forget", [False, True], ids=["with the last look", "without"])
@pytest.mark.parametrize(
    ("act", "script", "wanted"),
    [
        (lambda scene: scene.write("a.txt", b"by a tool\n"), "printf 'a\\n' > a.txt", ["edit a.txt"]),
        (lambda scene: scene.write("new", b"by a tool\n"), "rm new", ["delete new"]),
        (lambda scene: scene.write("made/deep/new", b"by a tool\n"), "rm -r made", ["delete made/deep/new"]),
        (lambda scene: scene.delete("a.txt"), "printf 'a\\n' > a.txt", []),  # it is back as it was
        (lambda scene: scene.move("a.txt", "src/z"), "mv src/z a.txt", ["move src/z a.txt"]),
        (lambda scene: scene.move("a.txt", "src/z"), "cp src/z a.txt", ["create a.txt"]),
        (lambda scene: scene.write("src/b.py", TEN, mode=0o755), "chmod 644 src/b.py", ["mode src/b.py 755 644"]),
        (lambda scene: scene.reject(2), "printf 'b\\n' > edited", ["edit edited"]),
    ],
    ids=["write", "create", "folder", "delete", "move", "copy", "mode", "reject"],
)
def test_a_tools_change_that_a_person_reverts_between_two_scans_is_recorded(
    known: Scene, act: Callable[[Scene], object], script: str, wanted: list[str], *, forget: bool
) -> None:
    """To a look that compares the files with the last look nothing changed."""
    put(known, "edited", b"a\n")
    known.workspace.record_changes(PERSON)
    put(known, "edited", b"b\n")
    known.workspace.record_changes(AGENT)
    (known.root / "src/b.py").chmod(0o644)
    known.reopen()
    known.workspace.record_changes(EXTERNAL_CALL)
    act(known)
    assert os.system(f"cd '{known.root}' && {script}") == 0  # noqa: S605 - the commands above
    if forget:
        (known.root / ".cas/cache/looks").unlink()
    known.reopen()
    assert recorded_changes(known.workspace.record_changes(EXTERNAL_CALL)) == wanted
    assert known.workspace.record_changes(EXTERNAL_CALL).edits == ()
    assert known.external() == {}


@pytest.mark.parametrize("forget", [False, True], ids=["with the last look", "without"])
def test_other_changes_in_a_folder_where_a_tool_wrote_are_recorded(known: Scene, *, forget: bool) -> None:
    """With the last look only what the tool wrote, and what looks otherwise, is compared with the journal."""
    for name in ("put back", "gone", "as it was"):
        put(known, f"src/{name}", name.encode())
    known.workspace.record_changes(PERSON)
    known.write("src/put back", b"by a tool\n")
    known.write("src/kept", b"by a tool\n")
    put(known, "src/put back", b"put back")
    put(known, "src/new", b"new\n")
    put(known, "src/b.py", TEN + b"more\n")
    (known.root / "src/gone").unlink()
    (known.root / "src/deep/c.py").unlink()
    (known.root / "src/deep").rmdir()
    if forget:
        (known.root / ".cas/cache/looks").unlink()
    known.reopen()
    wanted = ["create src/new", "delete src/deep/c.py", "delete src/gone", "edit src/b.py", "edit src/put back"]
    assert recorded_changes(known.workspace.record_changes(EXTERNAL_CALL)) == wanted
    assert known.workspace.record_changes(EXTERNAL_CALL).edits == ()


def test_an_edit_with_a_reused_number_is_not_mistaken_for_the_earlier_one(known: Scene) -> None:
    """A group that could not be synced was cut off, after a look had read it."""
    known.write("edited", b"first\n")
    segments, kept = known.root / ".cas/segments", known.root.parent / "kept"
    shutil.copytree(segments, kept)
    known.write("edited", b"second\n")
    known.workspace.record_changes(EXTERNAL_CALL)
    looks = known.root / ".cas/cache/looks"
    last = looks.read_bytes()
    shutil.rmtree(segments)
    kept.rename(segments)
    put(known, "edited", b"first\n")
    known.forget_index()
    looks.parent.mkdir(exist_ok=True)
    looks.write_bytes(last)
    known.write("a.txt", b"by a tool\n")
    put(known, "a.txt", b"a\n")
    assert recorded_changes(known.workspace.record_changes(EXTERNAL_CALL)) == ["edit a.txt"]


@pytest.mark.parametrize("forget", [False, True], ids=["with the last look", "without"])
@pytest.mark.parametrize("ignored", ["a.txt", "src", "src/deep"])
def test_deletions_of_ignored_files_are_recorded(known: Scene, ignored: str, *, forget: bool) -> None:
    put(known, ".casignore", f"/{ignored}\n".encode())
    known.workspace.record_changes(PERSON)
    gone = known.root / ignored
    paths = [gone] if gone.is_file() else sorted(path for path in gone.rglob("*") if path.is_file())
    wanted = [f"delete {path.relative_to(known.root)}" for path in paths]
    shutil.rmtree(gone, ignore_errors=True)
    gone.unlink(missing_ok=True)
    if forget:
        (known.root / ".cas/cache/looks").unlink()
    assert recorded_changes(known.workspace.record_changes(PERSON)) == wanted


@pytest.mark.parametrize("forget", [False, True], ids=["with the last look", "without"])
@pytest.mark.parametrize("is_recorded", [False, True], ids=["known", "recorded"])
@pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
def test_a_file_that_was_replaced_while_ignored_is_recorded_when_it_becomes_visible(
    known: Scene, *, forget: bool, is_recorded: bool, is_folder: bool
) -> None:
    gone, there = ("src/deep/c.py", "src/deep") if is_folder else ("a.txt", "a.txt/x")
    if is_recorded:
        known.write(gone, b"by a tool\n")
    put(known, ".casignore", b"a.txt\ndeep\n")
    known.workspace.record_changes(PERSON)
    (known.root / gone).unlink()
    if is_folder:
        (known.root / "src/deep").rmdir()
    put(known, there, b"x\n")
    (known.root / ".casignore").unlink()
    if forget:
        (known.root / ".cas/cache/looks").unlink()
    assert recorded_changes(known.workspace.record_changes(PERSON)) == [
        f"create {there}",
        "delete .casignore",
        f"delete {gone}",
    ]


@pytest.mark.parametrize("is_noticed", [False, True])
def test_changes_of_recorded_files_that_are_now_ignored_are_recorded_if_they_are_named(
    known: Scene, *, is_noticed: bool
) -> None:
    known.write("a.txt", b"a\nb\n")
    known.write("src/b.py", b"b\n")
    put(known, "other", b"o\n")
    put(known, ".casignore", b"a.txt\nsrc\n")
    known.workspace.record_changes(PERSON)
    for path in ("a.txt", "src/b.py", "src/deep/c.py", "other"):
        put(known, path, b"mine\n")
    assert [change.path for change in known.workspace.review.status().external] == ["other"]
    named = known.workspace.review.external_changes(["src/b.py"])
    assert [change.path for change in named] == ["other", "src/b.py"]
    record = known.workspace.hooks.notice if is_noticed else known.workspace.record_changes
    assert recorded_changes(record(PERSON)) == ["edit other"]
    assert recorded_changes(record(PERSON, ["a.txt", "src/b.py"])) == ["edit a.txt", "edit src/b.py"]
    assert known.workspace.review.external_changes(["a.txt", "src/b.py"]) == ()


def test_a_decision_compares_a_recorded_file_that_is_now_ignored(known: Scene) -> None:
    edit = known.write("a.txt", b"a\nb\n")
    put(known, ".casignore", b"a.txt\n")
    known.workspace.record_changes(PERSON)
    put(known, "a.txt", b"a\nb\nmine\n")
    outcome = known.workspace.decide(Action.REJECT, [Unit(edit, 1)])
    assert isinstance(outcome, ExternalChanges)
    assert [change.path for change in outcome.changes] == ["a.txt"]
    assert (known.root / "a.txt").read_bytes() == b"a\nb\nmine\n"


@pytest.mark.parametrize(
    ("paths", "files", "edited"),
    [
        (["."], 4, ["a.txt", "src/b.py", "src/deep/c.py"]),
        (["src/deep", ".", "a.txt"], 4, ["a.txt", "src/b.py", "src/deep/c.py"]),
        (["src/deep", "src", "src/b.py"], 2, ["src/b.py", "src/deep/c.py"]),
        (["src/deep", "a.txt", "src/deep/c.py", "a.txt"], 2, ["a.txt", "src/deep/c.py"]),
        (["src/b.py", "a.txt"], 2, ["a.txt", "src/b.py"]),
    ],
)
def test_paths_named_twice_or_below_named_folders_are_scanned_once(
    known: Scene, paths: list[str], files: int, edited: list[str]
) -> None:
    for path in ("a.txt", "src/b.py", "src/deep/c.py"):
        put(known, path, b"mine\n")
    found = known.workspace.record_changes(AGENT, paths)
    assert (found.files, recorded_changes(found)) == (files, [f"edit {path}" for path in edited])


def test_a_document_continues(known: Scene) -> None:
    first = known.write("a.txt", b"a\nb\n")
    put(known, "a.txt", b"a\nb\nc\n")
    (second,) = known.workspace.record_changes(AGENT).edits
    (known.root / "a.txt").rename(known.root / "z.txt")
    (third,) = known.workspace.record_changes(AGENT).edits
    assert {second.edit.document, third.edit.document} == {known.view(first).edit.document}
    known.reject(second.seq)
    assert known.text("z.txt") == b"a\nb\n"


# ---- attribution


def test_a_persons_changes_are_accepted_and_an_agents_wait_for_review(known: Scene) -> None:
    put(known, "a.txt", b"mine\n")
    (mine,) = known.workspace.record_changes(PERSON).edits
    put(known, "a.txt", b"mine\ntheirs\n")
    (theirs,) = known.workspace.record_changes(AGENT).edits
    assert (mine.edit.origin, mine.status) == (Origin.PERSON, Status.ACCEPTED)
    assert (theirs.edit.origin, theirs.status) == (Origin.AGENT, Status.PENDING)
    assert theirs.edit.conversation == "conv_shell"
    assert theirs.edit.tool == "Bash"
    assert theirs.edit.notes == {"agent": "tester"}


def test_a_scan_before_a_command_separates_earlier_changes(known: Scene) -> None:
    put(known, "a.txt", b"typed by a person\n")
    before = known.workspace.record_changes(EXTERNAL_CALL)
    put(known, "a.txt", b"typed by a person\nand a command\n")
    (after,) = known.workspace.record_changes(AGENT).edits
    assert before.conversation == "external"
    assert [view.edit.origin for view in before.edits] == [Origin.EXTERNAL]
    known.reject(after.seq)
    assert known.text("a.txt") == b"typed by a person\n"


def test_one_scan_is_one_call(known: Scene) -> None:
    put(known, "a.txt", b"x\n")
    put(known, "new", b"x\ny\n")
    first = known.workspace.record_changes(AGENT)
    put(known, "a.txt", b"y\n")
    second = known.workspace.record_changes(AGENT)
    assert [(view.edit.call, view.edit.ordinal) for view in first.edits] == [(0, 0), (0, 1)]
    assert [(view.edit.call, view.edit.ordinal) for view in second.edits] == [(1, 0)]


def test_external_edits_have_a_conversation_of_their_own(known: Scene) -> None:
    with pytest.raises(ConversationReserved):
        known.workspace.record_changes(CallInfo(tool="x", conversation="external"))


@pytest.mark.parametrize(
    "script",
    [
        "echo x >> a.txt",
        "rm -r src",
        "mkdir -p x/y && echo n > x/y/new",
        "mv src lib && chmod 700 lib/b.py",
        "mv a.txt t && mv src/b.py a.txt && mv t src/b.py",
    ],
)
def test_rejecting_what_a_command_did_brings_back_every_file(known: Scene, script: str) -> None:
    def files() -> dict[str, tuple[int, bytes]]:
        found = known.files()
        return {path: (look.mode, look.content) for path, look in found.items() if not (known.root / path).is_dir()}

    before = files()
    assert os.system(f"cd '{known.root}' && {script}") == 0  # noqa: S605 - the commands above
    after = files()
    edits = known.workspace.record_changes(AGENT).edits
    units = [Unit(view.seq, hunk) for view in edits for hunk in range(len(view.units))]
    assert isinstance(known.workspace.decide(Action.REJECT, units), Decided)
    assert files() == before
    assert isinstance(known.workspace.decide(Action.ACCEPT, units), Decided)
    assert files() == after


# ---- only some paths


def test_only_the_named_paths_are_scanned(known: Scene) -> None:
    put(known, "a.txt", b"x\n")
    put(known, "src/b.py", b"x\n")
    put(known, "src/deep/c.py", b"x\n")
    (known.root / "empty").unlink()
    assert recorded_changes(known.workspace.record_changes(AGENT, ["src/deep"])) == ["edit src/deep/c.py"]
    assert recorded_changes(known.workspace.record_changes(AGENT, ["a.txt", "empty", "nothing"])) == [
        "delete empty",
        "edit a.txt",
    ]
    assert recorded_changes(known.workspace.record_changes(AGENT, ["src", "src/b.py"])) == ["edit src/b.py"]
    assert recorded_changes(known.workspace.record_changes(AGENT)) == []


@pytest.mark.parametrize("changed", ["one", "other"])
def test_changes_in_each_of_two_named_folders_are_recorded(scene: Scene, changed: str) -> None:
    for folder in ("one", "other"):
        put(scene, f"{folder}/f", b"as it was\n")
    time.sleep(0.05)  # more than a tick, so that the look need not read the file again
    scene.workspace.record_changes(EXTERNAL_CALL)
    put(scene, f"{changed}/f", b"changed\n")
    assert recorded_changes(scene.workspace.record_changes(AGENT, ["one", "other"])) == [f"edit {changed}/f"]


@pytest.mark.parametrize("named", [["a.txt", "empty"], ["a.txt", "src", "src/b.py"]])
def test_each_scanned_file_is_counted_once(known: Scene, named: list[str]) -> None:
    assert known.workspace.record_changes(AGENT, named).files == (2 if "empty" in named else 3)


@pytest.mark.parametrize("named", [None, ["written"], ["gone"], ["src"], ["written", "gone", "src"]])
def test_a_scan_that_finds_nothing_waits_for_no_writer(known: Scene, named: list[str] | None) -> None:
    known.write("written", b"of a tool\n")
    known.write("gone", b"of a tool\n")
    known.delete("gone")
    assert recorded_changes(known.workspace.record_changes(AGENT)) == []
    with closing(WriterLock(str(known.root / ".cas" / "lock"))) as lock, lock.held():
        found = known.workspace.record_changes(AGENT, named)
    assert (found.conversation, found.edits, found.skipped) == ("", (), ())


def test_a_named_file_may_be_gone_because_a_file_replaced_its_folder(known: Scene) -> None:
    (known.root / "src" / "b.py").unlink()
    (known.root / "src" / "deep" / "c.py").unlink()
    (known.root / "src" / "deep").rmdir()
    (known.root / "src").rmdir()
    put(known, "src", b"file\n")
    assert recorded_changes(known.workspace.record_changes(AGENT, ["src/b.py"])) == ["delete src/b.py"]
    assert recorded_changes(known.workspace.record_changes(AGENT)) == ["create src", "delete src/deep/c.py"]


@pytest.mark.parametrize("is_recorded", [True, False])
@pytest.mark.parametrize("named", [["a.txt"], ["a.txt", "a.txt/new"], ["a.txt/new", "a.txt"]])
def test_a_named_file_that_became_a_folder_is_recorded_as_deleted(
    known: Scene, named: list[str], *, is_recorded: bool
) -> None:
    if is_recorded:
        known.write("a.txt", b"of a tool\n")
    (known.root / "a.txt").unlink()
    put(known, "a.txt/new", b"new\n")
    found = known.workspace.record_changes(AGENT, named)
    assert recorded_changes(found) == ["create a.txt/new", "delete a.txt"]
    assert recorded_changes(known.workspace.record_changes(EXTERNAL_CALL)) == []


# ---- what can't be recorded


@pytest.mark.parametrize("who", [PERSON, AGENT], ids=["a person", "an agent"])
def test_a_file_with_an_unknown_earlier_state_awaits_review_if_an_agent_may_have_changed_it(
    scene: Scene, who: CallInfo
) -> None:
    put(scene, ".casignore", b"secret\n")
    put(scene, "secret", b"old\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    (scene.root / ".casignore").unlink()
    put(scene, "secret", b"new\n")
    found = scene.workspace.record_changes(who)
    if who is PERSON:
        assert recorded_changes(found) == ["delete .casignore"]
        assert [passed.path for passed in found.skipped] == ["secret"]
        return
    assert recorded_changes(found) == ["create secret", "delete .casignore"]
    (edit,) = [view.seq for view in found.edits if view.edit.path == b"secret"]
    assert scene.statuses()[edit] is Status.PENDING
    with pytest.raises(FileMayBeOlder):
        scene.reject(edit)


def test_a_limit_is_reported_and_nothing_beyond_it_counts_as_deleted(known: Scene) -> None:
    for i in range(20):
        put(known, f"many/{i}/f", b"x%d\n" % i)
    found = known.workspace.record_changes(AGENT, limits=ScanLimits(files=10))
    assert [passed.path for passed in found.skipped] == [""]
    assert 0 < len(found.edits) < 20
    assert {view.edit.operation for view in found.edits} == {Operation.CREATE}
    rest = known.workspace.record_changes(AGENT)
    assert len(found.edits) + len(rest.edits) == 20


def test_two_concurrent_scans_record_each_change_once(known: Scene) -> None:
    with Workspace.open(known.root) as other:
        put(known, "a.txt", b"x\n")
        found = [known.workspace.record_changes(AGENT), other.record_changes(AGENT)]
        put(known, "a.txt", b"y\n")
        found += [other.record_changes(AGENT), known.workspace.record_changes(AGENT)]
    assert [recorded_changes(one) for one in found] == [["edit a.txt"], [], ["edit a.txt"], []]


def test_excluded_files_are_found_only_by_the_scan_that_covers_them(known: Scene) -> None:
    put(known, "named.txt", b"by the tool that named it\n")
    put(known, "other.txt", b"by a shell\n")
    with closing(Journal(str(known.root), Disk())) as journal:
        for _ in range(2):  # nor by a second look, for which nothing has changed since the first
            found = record_changes(journal, AGENT, excluding=["named.txt"])
            assert "create named.txt" not in recorded_changes(found)
        assert [in_words(view) for view in known.workspace.history.edits()] == ["create other.txt"]
        assert recorded_changes(record_changes(journal, AGENT)) == ["create named.txt"]
        assert recorded_changes(record_changes(journal, AGENT)) == []


def test_an_edit_recorded_during_a_scan_is_not_an_external_change(known: Scene) -> None:
    known.workspace.record_changes(EXTERNAL_CALL)
    with closing(Journal(str(known.root), Disk())) as journal:
        look = WorktreeScan(journal)
        suspects = look.walk(discard_content).suspects()
        known.write("a.txt", b"by a tool\n")
        found = record_differences(journal, EXTERNAL_CALL, look, {b"": suspects}, (), None)
    assert isinstance(found, tuple)
    assert [in_words(view) for view in found[1]] == []
    assert (known.root / "a.txt").read_bytes() == b"by a tool\n"
    assert recorded_changes(known.workspace.record_changes(EXTERNAL_CALL)) == []


def test_files_that_tools_wrote_into_a_skipped_folder_do_not_count_as_deleted(scene: Scene) -> None:
    put(scene, "built/CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    scene.write("built/kept", b"kept\n")
    put(scene, "built/new", b"new\n")
    assert recorded_changes(scene.workspace.record_changes(AGENT)) == []
    (scene.root / ".cas" / "cache" / "looks").unlink()
    scene.reopen()
    found = scene.workspace.record_changes(AGENT)
    assert (found.conversation, found.edits) == ("", ())
    assert scene.statuses() == {1: Status.PENDING}


# ---- what the first scan left out


@pytest.fixture
def partial(scene: Scene) -> Scene:
    """Return a workspace whose first look left out a file, a folder, a virtual environment and a pipe."""
    put(scene, ".casignore", b"*.cfg\ndist/\n")
    put(scene, "x.cfg", b"1\n")
    put(scene, "dist/deep/old.js", b"1\n")
    put(scene, "dist/.git/config", b"a project of its own\n")
    put(scene, "env/pyvenv.cfg", b"home = /\n")
    put(scene, "env/lib/old.py", b"1\n")
    put(scene, "kept", b"1\n")
    os.mkfifo(scene.root / "pipe")
    scene.workspace.record_changes(EXTERNAL_CALL)
    return scene


def baselines(scene: Scene) -> dict[str, str]:
    """Return what the only baseline holds, each path with its kind, after a look at whether the store is sound."""
    assert check_store(str(scene.root)).faults == ()
    (only,) = [view for view in scene.workspace.snapshots.all() if not view.who]
    return {path: state.kind for path, state in scene.workspace.snapshots.files(only.number)}


def test_newly_visible_files_are_known_from_then_on(partial: Scene) -> None:
    put(partial, ".casignore", b"# nothing\n")
    found = partial.workspace.record_changes(EXTERNAL_CALL)
    assert recorded_changes(found) == ["edit .casignore"]
    assert {passed.path for passed in found.skipped} == {"x.cfg", "dist/deep/old.js", "pipe"}
    assert recorded_changes(partial.workspace.record_changes(AGENT)) == []
    assert baselines(partial) == {
        ".casignore": "file",
        "dist/deep/old.js": "file",
        "env": "left-out",
        "kept": "file",
        "pipe": "left-out",
        "x.cfg": "file",
    }
    put(partial, "x.cfg", b"2\n")
    put(partial, "dist/new.js", b"2\n")
    (partial.root / "dist/deep/old.js").unlink()
    baseline = partial.workspace.snapshots.all()
    found = partial.workspace.record_changes(AGENT)
    assert recorded_changes(found) == ["create dist/new.js", "delete dist/deep/old.js", "edit x.cfg"]
    assert partial.workspace.snapshots.all() == baseline  # none of it was left out of that
    partial.reject(*(view.seq for view in found.edits))
    assert (partial.text("x.cfg"), partial.text("dist/deep/old.js")) == (b"1\n", b"1\n")


def test_a_file_that_replaces_a_deleted_one_is_new(partial: Scene) -> None:
    for gone in ("dist", "env"):
        shutil.rmtree(partial.root / gone)
    for gone in ("pipe", "x.cfg", ".casignore"):
        (partial.root / gone).unlink()
    assert recorded_changes(partial.workspace.record_changes(EXTERNAL_CALL)) == ["delete .casignore"]
    for path in ("dist/deep/new.js", "env/settings.py", "pipe", "x.cfg"):
        put(partial, path, b"new\n")
    found = partial.workspace.record_changes(AGENT)
    assert recorded_changes(found) == [
        "create dist/deep/new.js",
        "create env/settings.py",
        "create pipe",
        "create x.cfg",
    ]
    assert found.skipped == ()
    assert baselines(partial) == {".casignore": "file", "kept": "file"}


def test_a_name_is_free_if_a_tool_finds_no_file_and_not_if_it_finds_another(partial: Scene, tmp_path: Path) -> None:
    paths = ["dist/deep/old.js", "env", "pipe", "x.cfg"]
    for gone in ("dist", "env"):
        shutil.rmtree(partial.root / gone)
    (partial.root / "x.cfg").unlink()
    (partial.root / "env").symlink_to(tmp_path)
    assert recorded_changes(partial.workspace.record_changes(EXTERNAL_CALL, paths)) == []
    for other in ("env", "pipe"):
        (partial.root / other).unlink()
    for path in paths:
        put(partial, path, b"new\n")
    found = partial.workspace.record_changes(AGENT, paths)
    wanted = ["create dist/deep/old.js", "create env", "create pipe", "create x.cfg", "delete env"]
    assert recorded_changes(found) == wanted
    (pipe,) = [view for view in found.edits if view.edit.path == b"pipe"]
    outcome = partial.reject(*(view.seq for view in found.edits))
    assert outcome.older == (pipe.seq,)  # whether something else was there under that name is not known


def test_files_left_out_of_a_known_folder_become_known_or_are_deleted_with_it(
    scene: Scene, tmp_path_factory: pytest.TempPathFactory
) -> None:
    paths = ["link/x.cfg", "one/x.cfg", "two/x.cfg"]
    put(scene, ".casignore", b"*.cfg\n")
    for path in (*paths, "one/kept", "two/kept", "link/kept"):
        put(scene, path, b"1\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    for folder in ("link", "two"):
        shutil.rmtree(scene.root / folder)
    (scene.root / "link").symlink_to(tmp_path_factory.mktemp("elsewhere"))  # its content is unknown
    with closing(Journal(str(scene.root), Disk())) as journal:
        record_changes(journal, EXTERNAL_CALL, paths, are_canonical=True)
    (scene.root / "link").unlink()
    for path in paths:
        put(scene, path, b"2\n")
    assert recorded_changes(scene.workspace.record_changes(AGENT, paths)) == [
        "create link/x.cfg",
        "create two/x.cfg",
        "edit one/x.cfg",
    ]


def test_files_left_out_of_a_newly_visible_folder_are_not_new_later(partial: Scene) -> None:
    put(partial, "dist/y.cfg", b"1\n")
    put(partial, ".casignore", b"*.cfg\n")
    partial.workspace.record_changes(EXTERNAL_CALL)
    put(partial, ".casignore", b"# nothing\n")
    found = partial.workspace.record_changes(EXTERNAL_CALL)
    assert recorded_changes(found) == ["edit .casignore"]
    assert {passed.path for passed in found.skipped} == {"dist/y.cfg", "x.cfg", "pipe"}


def test_a_named_file_in_a_rebuilt_folder_is_known_from_then_on(partial: Scene) -> None:
    put(partial, "src/a", b"1\n")
    assert recorded_changes(partial.workspace.record_changes(EXTERNAL_CALL, ["env/lib/old.py", "src"])) == [
        "create src/a"
    ]
    put(partial, "env/lib/old.py", b"2\n")
    assert recorded_changes(partial.workspace.record_changes(AGENT, ["env/lib/old.py"])) == ["edit env/lib/old.py"]


def test_a_newly_visible_symlink_is_known_from_then_on(partial: Scene) -> None:
    put(partial, ".casignore", b"# nothing\n")
    (partial.root / "x.cfg").unlink()
    (partial.root / "x.cfg").symlink_to("kept")
    partial.workspace.record_changes(EXTERNAL_CALL)
    (partial.root / "x.cfg").unlink()
    put(partial, "x.cfg", b"new\n")
    assert recorded_changes(partial.workspace.record_changes(AGENT)) == ["create x.cfg", "delete x.cfg"]


def test_a_newly_visible_excluded_file_is_not_new_to_the_scan_that_covers_it(partial: Scene) -> None:
    put(partial, ".casignore", b"# nothing\n")
    with closing(Journal(str(partial.root), Disk())) as journal:
        record_changes(journal, EXTERNAL_CALL, excluding=["x.cfg"])
        found = record_changes(journal, PERSON, ["x.cfg"])
    assert (recorded_changes(found), [passed.path for passed in found.skipped]) == ([], ["x.cfg"])


def test_the_deletion_of_the_last_excluded_file_leaves_no_empty_tree(scene: Scene) -> None:
    os.mkfifo(scene.root / "pipe")
    scene.workspace.record_changes(EXTERNAL_CALL)
    (scene.root / "pipe").unlink()
    scene.workspace.record_changes(EXTERNAL_CALL)
    put(scene, "pipe", b"new\n")
    assert recorded_changes(scene.workspace.record_changes(AGENT)) == ["create pipe"]


@pytest.mark.parametrize("path", ["x.cfg", "dist/deep/old.js", "env/lib/old.py"])
def test_a_tools_file_that_the_first_scan_left_out_is_recorded_from_its_first_edit(partial: Scene, path: str) -> None:
    found = partial.workspace.record_changes(EXTERNAL_CALL, [path])
    assert (recorded_changes(found), [passed.path for passed in found.skipped]) == ([], [path])
    put(partial, path, b"2\n")
    assert recorded_changes(partial.workspace.record_changes(AGENT, [path])) == [f"edit {path}"]
    assert recorded_changes(partial.workspace.record_changes(AGENT)) == []
    # Its neighbours stay unknown.
    others = {path: kind for path, kind in baselines(partial).items() if kind == "left-out"}
    assert others.keys() == {"x.cfg", "dist", "env", "pipe"} - {path} - {path.partition("/")[0]} | (
        {"env/pyvenv.cfg"} if path.startswith("env") else set()
    )


def test_a_tools_file_is_new_next_to_files_that_the_first_scan_left_out(partial: Scene) -> None:
    for path in ("dist/new.js", "env/lib/new.py", "dist/gone/new.js"):
        assert recorded_changes(partial.workspace.record_changes(EXTERNAL_CALL, [path])) == []
        put(partial, path, b"2\n")
        assert recorded_changes(partial.workspace.record_changes(AGENT, [path])) == [f"create {path}"]
    put(partial, ".casignore", b"# nothing\n")
    (partial.root / "env/pyvenv.cfg").unlink()
    assert recorded_changes(partial.workspace.record_changes(PERSON)) == ["edit .casignore"]


def test_a_newly_visible_folder_without_files_holds_nothing(scene: Scene) -> None:
    put(scene, ".casignore", b"dist/\n")
    (scene.root / "dist" / "inner").mkdir(parents=True)
    scene.workspace.record_changes(EXTERNAL_CALL)
    put(scene, ".casignore", b"# nothing\n")
    scene.workspace.record_changes(EXTERNAL_CALL)
    put(scene, "dist/inner/new.js", b"2\n")
    (view,) = scene.workspace.record_changes(AGENT).edits
    assert in_words(view) == "create dist/inner/new.js"
    scene.reject(view.seq)
    assert not (scene.root / "dist").exists()


def test_a_baseline_that_is_being_deleted_is_not_updated(partial: Scene) -> None:
    (old,) = partial.workspace.snapshots.all()
    put(partial, ".casignore", b"# nothing\n")
    partial.workspace.snapshots.delete([old.number], who="test")
    assert baselines(partial)["x.cfg"] == "file"
    put(partial, "x.cfg", b"2\n")
    assert recorded_changes(partial.workspace.record_changes(AGENT)) == ["edit x.cfg"]


# ---- folders with a tag file


TAG: Final = b"Signature: 8a477f597d28d172789f06886806bc55\n"


@pytest.mark.parametrize("is_announced", [False, True], ids=["at once", "announced before"])
def test_a_tag_file_does_not_hide_a_scanned_folder_though_the_stat_cache_is_lost(
    known: Scene, *, is_announced: bool
) -> None:
    put(known, "src/CACHEDIR.TAG", TAG)
    wanted = ["delete src/deep/c.py", "edit src/b.py"]
    if is_announced:
        assert recorded_changes(known.workspace.record_changes(EXTERNAL_CALL)) == ["create src/CACHEDIR.TAG"]
    else:
        wanted.insert(0, "create src/CACHEDIR.TAG")
    shutil.rmtree(known.root / ".cas" / "cache")
    put(known, "src/b.py", b"other\n")
    (known.root / "src/deep/c.py").unlink()
    assert recorded_changes(known.workspace.record_changes(AGENT)) == wanted
    put(known, "src/b.py", b"and other\n")
    assert recorded_changes(known.workspace.record_changes(AGENT)) == ["edit src/b.py"]


def test_a_tag_file_does_not_hide_a_scanned_folder_that_appeared_after_the_first_scan(known: Scene) -> None:
    put(known, "new/a", b"a\n")
    known.workspace.record_changes(AGENT)
    put(known, "new/CACHEDIR.TAG", TAG)
    known.workspace.record_changes(AGENT)
    shutil.rmtree(known.root / ".cas" / "cache")
    put(known, "new/a", b"b\n")
    assert recorded_changes(known.workspace.record_changes(AGENT)) == ["edit new/a"]


def test_naming_a_file_in_a_rebuilt_folder_covers_no_other_file_there(partial: Scene) -> None:
    partial.workspace.record_changes(EXTERNAL_CALL, ["env/lib/old.py"])
    put(partial, "env/lib/old.py", b"2\n")
    assert recorded_changes(partial.workspace.record_changes(AGENT, ["env/lib/old.py"])) == ["edit env/lib/old.py"]
    shutil.rmtree(partial.root / ".cas" / "cache")
    put(partial, "env/lib/new.py", b"2\n")
    found = partial.workspace.record_changes(AGENT)
    assert (recorded_changes(found), [passed.path for passed in found.skipped]) == ([], ["pipe"])


@pytest.mark.parametrize("name", [".gitignore", ".casignore"])
def test_a_linked_ignore_file_is_recorded_and_its_rules_are_reported_as_not_read(scene: Scene, name: str) -> None:
    put(scene, "rules", b"*.log\n")
    (scene.root / name).symlink_to("rules")
    put(scene, "a.log", b"1\n")
    found = scene.workspace.record_changes(PERSON)
    reported = [(name, "it is a symbolic link, whose target is not read")]
    assert [(passed.path, passed.reason) for passed in found.skipped] == reported


@pytest.mark.parametrize("rule", [".casignore", "built/CACHEDIR.TAG"])
def test_rejecting_what_only_became_visible_removes_nothing(scene: Scene, rule: str) -> None:
    old = "old" if rule == ".casignore" else "built/deep/old"
    scene.workspace.record_changes(PERSON)
    put(scene, rule, b"old\n" if rule == ".casignore" else TAG)
    put(scene, old, b"older than any edit\n")
    scene.workspace.record_changes(PERSON)
    (scene.root / rule).unlink()
    put(scene, "new", b"new\n")
    edits = {os.fsdecode(view.edit.path): view.seq for view in scene.workspace.record_changes(AGENT).edits}
    for cascade in (False, True):
        with pytest.raises(FileMayBeOlder, match=f"{old} only came into sight with this edit"):
            scene.decide(Action.REJECT, edits[old], cascade=cascade)
    outcome = scene.reject(*edits.values())
    assert outcome.older == (edits[old],)
    assert scene.text(old) == b"older than any edit\n"
    assert scene.text("new") is None
    assert scene.statuses()[edits[old]] is Status.PENDING
    changed = scene.edit(old, b"older", b"no older")
    scene.reject(changed, edits[old])
    assert scene.text(old) == b"older than any edit\n"
    scene.accept(edits[old])
    with pytest.raises(FileMayBeOlder):
        scene.reject(edits[old])
    assert scene.text(old) == b"older than any edit\n"
