"""`cas export --bundle` and `cas import`: one file carries the whole history, and an import verifies all of it."""

import hashlib
import os
import random
import re
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from blake3 import blake3

from objstore import Workspace
from objstore.disk.fs.disk import Disk
from objstore.model.basic_types import DocumentId, FileState, Operation, Seq
from objstore.model.ids import BlobHasher, BlobId, blob_id
from objstore.model.record_codec import decode_record, encode_record
from objstore.model.records import Edit, Snapshot
from objstore.model.tree import FOLDER, TreeEntry, encode_tree
from objstore.storage.log.blob_codec import encode_blob, encode_chunks
from objstore.storage.log.chunking import MAX_CHUNK, Chunk
from objstore.storage.log.frames import FrameKind, SegmentHeader
from objstore.storage.store.write_batch import Batch
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.transfer.bundle import Bundle, bundle_pieces
from objstore.upkeep.transfer.import_export import export_bundle, import_bundle, send_bundle
from objstore.values.errors import CasError, FileExists
from objstore.values.fastclass import replace
from tests.support.call_counts import count_calls
from tests.support.command_runner import CommandRunner, cas, with_progress
from tests.support.damaged_stores import lose
from tests.support.faulty_disk import WHOLE, CountdownDisk, PowerCut, broken_disk, sampled_steps
from tests.support.hooked_agents import ClaudeCode
from tests.support.sampling import sampled_product


def record_history(runner: CommandRunner) -> None:
    put(runner.folder / "kept", b"no edit tells of it\n", 0o640)
    put(runner.folder / "sub/deep/tool", b"#!/bin/sh\n", 0o755)
    runner.done("record")
    runner.write("a", b"1\n2\n3\n")
    runner.edit("a", b"2", b"two")
    runner.write("sub/run", b"#!/bin/sh\n", mode=0o755)
    runner.write("gone", b"x\n")
    runner.delete("gone")
    runner.move("a", "b")
    runner.done("reject", "2", "--reason", "no")


@pytest.fixture
def bundle(runner: CommandRunner, tmp_path: Path) -> Path:
    """Return a bundle of a history with a baseline, decisions, a move, a deletion and a rejected edit."""
    runner.prepared(record_history)
    path = tmp_path / "all.bundle"
    runner.done("export", "--bundle", str(path))
    return path


def test_an_import_shows_the_progress_of_all_that_may_take_long(bundle: Path, tmp_path: Path) -> None:
    _, shown = with_progress("import", str(bundle), "new", folder=tmp_path, patience=0)
    verbs = [found[1] for found in re.finditer(rb"([a-z]+) \[[#.]{24}\] [\d,.]+ (?:\w+ )?of [\d,.]+ ", shown)]
    assert list(dict.fromkeys(verbs)) == [b"reading", b"indexing", b"checking", b"replaying", b"writing"], shown


def put(path: Path, content: bytes, mode: int) -> None:
    """Write a file as a person would."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".cas" not in path.relative_to(folder).parts
    }


# ---- reserved destinations

RESERVED = (".cas/segments/00000002.seg", ".cas/new", "sub/../.cas/x", "link/x", ".git/hooks/pre-commit", ".CAS/x")
"""Paths that no export or import may write to, because a store or a repository would read them as its own."""


@pytest.mark.parametrize("destination", RESERVED)
def test_nothing_is_written_into_a_store_or_a_folder_of_version_control(
    runner: CommandRunner, bundle: Path, tmp_path: Path, destination: str
) -> None:
    (runner.folder / "link").symlink_to(".cas")
    (runner.folder / ".git" / "hooks").mkdir(parents=True)
    before = sorted(runner.folder.rglob("*"))
    other = tmp_path / "other"
    other.mkdir()
    commands = (["export", "--bundle"], ["export", "--patch", "-o"], ["import", bundle], ["salvage", ".cas", "--to"])
    for words, form in sampled_product(commands, (destination, str(runner.folder / destination))):
        ran = runner.cas(*map(str, words), form)
        assert ran.status == 1
        assert ran.said.startswith("cas: Path is reserved for "), ran
        assert ran.said.count("\n") == 1, ran
    for words in commands if WHOLE else commands[:1]:
        # The store of another workspace is reserved too.
        ran = cas("-C", str(runner.folder), *map(str, words), str(runner.folder / destination), folder=other)
        assert ran.said.startswith("cas: Path is reserved for "), ran
    assert sorted(runner.folder.rglob("*")) == before
    assert cas("init", ".cas/segments", folder=runner.folder).said.startswith("cas: Path is reserved for the store")


# ---- round trips


def test_an_import_has_the_same_files_and_the_same_hash_chain(
    runner: CommandRunner, bundle: Path, tmp_path: Path
) -> None:
    target = tmp_path / "there"
    ran = cas("import", str(bundle), str(target), folder=tmp_path)
    assert (ran.status, ran.said) == (0, "")
    assert tree(target) == tree(runner.folder)
    for words in (["records", "--json"], ["log"], ["segments"], ["ls"], ["show", "2"]):
        assert cas(*words, folder=target).out == runner.done(*words).out
    assert cas("fsck", folder=target).status == 0
    assert cas("diff", "--unrecorded", folder=target).out == b""


def test_an_import_decodes_each_record_once(bundle: Path, tmp_path: Path) -> None:
    def imported() -> None:
        # The baseline's snapshot, which is compared with the files, is read again.
        assert import_bundle(str(bundle), str(tmp_path / "there")).records == 8

    assert count_calls(imported, decode_record.__code__) <= 10


def test_a_bundle_goes_through_a_pipe(runner: CommandRunner, bundle: Path, tmp_path: Path) -> None:
    sent = runner.done("export", "--bundle", "-").out
    assert sent == bundle.read_bytes()
    for words in (["files"], ["alone", "--store-only"], ["json", "--json"]):
        ran = cas("import", "-", *words, folder=tmp_path, stdin=sent)
        assert (ran.status, ran.said) == (0, "")
        assert cas("records", "--json", folder=tmp_path / words[0]).out == runner.done("records", "--json").out
    assert tree(tmp_path / "files") == tree(runner.folder)
    for stdin in (b"", sent[:-1], b"no bundle"):
        ran = cas("import", "-", "refused", folder=tmp_path, stdin=stdin)
        assert (ran.status, ran.out) == (1, b"")
        assert not (tmp_path / "refused").exists()
    assert runner.cas("export", "--bundle", "-", "--json").status == 2
    assert not (runner.folder / "-").exists()


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "link"])
def test_an_import_from_a_path_that_is_not_a_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/null")
    (tmp_path / "link").symlink_to("folder")
    ran = cas("import", kind, "there", folder=tmp_path)
    assert (ran.status, ran.out) == (2, b"")
    advice = "To read a bundle from a pipe, use `cas import - DIR`."
    assert ran.said.splitlines()[0] == f"cas: Not a regular file: {kind}. {advice}"
    assert not (tmp_path / "there").exists()


def test_an_import_of_a_missing_bundle_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("missing", "missing/too", "link"):
        ran = cas("import", name, "there", folder=tmp_path)
        assert (ran.status, ran.said.splitlines()[0]) == (2, f"cas: No such file: {name}")


def test_a_bundle_is_neither_written_to_nor_read_from_a_terminal(runner: CommandRunner) -> None:
    for words in (["export", "--bundle", "-"], ["import", "-", "new"]):
        status, shown = runner.typed(*words)
        assert (status, "cas: " in shown) == (2, True), shown


def test_a_large_history_is_sent_in_pieces(runner: CommandRunner, tmp_path: Path) -> None:
    for number in range(5):
        put(runner.folder / str(number), random.Random(number).randbytes(700_000), 0o644)
    runner.done("record")
    runner.done("export", "--bundle", str(tmp_path / "b"))
    sent: list[bytes] = []
    with closing(Journal(str(runner.folder), CountdownDisk(None))) as journal:
        send_bundle(journal, sent.append)
    assert max(map(len, sent)) < 2 << 20
    assert b"".join(sent) == (tmp_path / "b").read_bytes()
    assert cas("import", str(tmp_path / "b"), "there", folder=tmp_path).status == 0
    assert tree(tmp_path / "there") == tree(runner.folder)


def test_decisions_work_in_an_imported_workspace(bundle: Path, tmp_path: Path) -> None:
    target = tmp_path / "there"
    assert cas("import", str(bundle), str(target), folder=tmp_path).status == 0
    assert cas("accept", "2", folder=target).status == 0
    assert (target / "b").read_bytes() == b"1\ntwo\n3\n"
    assert cas("undo", folder=target).status == 0
    assert (target / "b").read_bytes() == b"1\n2\n3\n"


def test_an_export_leaves_the_store_and_an_older_bundle_alone(runner: CommandRunner, bundle: Path) -> None:
    before = bundle.read_bytes()
    ran = runner.cas("export", "--bundle", str(bundle))
    assert (ran.status, ran.said) == (1, f"cas: {bundle} already exists. Name a new file.\n")
    assert bundle.read_bytes() == before
    assert runner.done("fsck").status == 0


def test_an_export_to_a_missing_folder_names_the_destination(runner: CommandRunner) -> None:
    message = "cas: No such file or directory: nowhere/bundle\n"
    assert runner.cas("export", "--bundle", "nowhere/bundle").said == message


def test_a_damaged_store_is_not_exported(runner: CommandRunner, tmp_path: Path) -> None:
    for content in (b"1\n", b"2\n", b"3\n"):
        runner.write("a", content)
    segment = runner.folder / ".cas/segments/00000001.seg"
    intact = segment.read_bytes()
    for at in (intact.index(b"1\n"), intact.index(b"ordinal")):
        segment.write_bytes(intact[:at] + bytes([intact[at] ^ 1]) + intact[at + 1 :])
        refusal = runner.cas("export", "--bundle", str(tmp_path / "b"))
        assert (refusal.status, refusal.out) == (1, b"")
        assert re.fullmatch(
            "cas: Store damaged in segment 1 at byte .*\nRun `cas fsck` to see what is .*\n", refusal.said
        )
        assert list(tmp_path.glob("b*")) == []
        sent = runner.cas("export", "--bundle", "-")
        assert (sent.status, sent.said) == (1, refusal.said)
        assert cas("import", "-", "there", folder=tmp_path, stdin=sent.out).status == 1


def test_a_store_with_a_lost_blob_is_exported_once_nothing_holds_the_blob(
    runner: CommandRunner, tmp_path: Path
) -> None:
    first, second, third = (random.Random(number).randbytes(90).hex().encode() for number in range(3))
    runner.write("a", first)
    runner.write("a", second)
    runner.done("snapshot", "create")
    runner.write("a", third)
    runner.done("accept", "1..3")
    lost = blob_id(second)
    lose(runner.folder, lost)
    for words in ([str(tmp_path / "b")], ["-"]):
        ran = runner.cas("export", "--bundle", *words)
        assert (ran.status, ran.out) == (1, b"")
        assert ran.said.startswith(f"cas: No bundle was written: blob {lost.hex()} is lost, ")
        assert "`cas fsck`" in ran.said
        assert "`cas purge PATH@N`" in ran.said
        assert "`cas snapshot delete N`" in ran.said
    assert list(tmp_path.glob("b*")) == []
    runner.done("snapshot", "delete", "1")
    runner.done("purge", "a@2")
    runner.done("export", "--bundle", str(tmp_path / "b"))
    assert cas("import", str(tmp_path / "b"), "there", folder=tmp_path).status == 0
    assert tree(tmp_path / "there") == tree(runner.folder) == {"a": (third, 0o100644)}


def test_json_shows_the_counts_of_an_export_and_an_import(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"1\n")
    found = runner.done("export", "--bundle", str(tmp_path / "b"), "--json").json()
    assert found == {"bundle": str(tmp_path / "b"), "bytes": (tmp_path / "b").stat().st_size}
    found = cas("import", str(tmp_path / "b"), str(tmp_path / "there"), "--json", folder=tmp_path).json()
    assert found == {
        "workspace": str(tmp_path / "there"),
        "records": 1,
        "blobs": 1,
        "files": 1,
        "modes_lost": [],
        "given_to": [0] if os.geteuid() == 0 else [],
    }


# ---- the baseline


def test_an_import_writes_the_files_of_the_baseline_and_the_next_scan_finds_no_change(
    runner: CommandRunner, bundle: Path, tmp_path: Path
) -> None:
    target = tmp_path / "there"
    ran = cas("import", str(bundle), str(target), folder=tmp_path)
    assert "the same history; 4 files written.\n" in ran.text
    assert (target / "kept").stat().st_mode & 0o777 == 0o640
    assert (target / "sub/deep/tool").stat().st_mode & 0o777 == 0o755
    assert cas("record", "--json", folder=target).json()["edits"] == []
    session = ClaudeCode(target)
    session.run("echo mine > new")
    assert session.run("chmod 600 kept; rm sub/deep/tool") == ""
    older = {edit["edit_id"] for edit in runner.done("log", "--json").lines()}
    new_edits = [edit for edit in cas("log", "--json", folder=target).lines() if edit["edit_id"] not in older]
    assert {(edit["operation"], edit["file_path"]) for edit in new_edits} == {
        ("create", str(target / "new")),
        ("delete", str(target / "sub/deep/tool")),
        ("edit", str(target / "kept")),
    }


def test_the_first_scan_by_a_hook_after_an_import_finds_no_change(
    runner: CommandRunner, bundle: Path, tmp_path: Path
) -> None:
    target = tmp_path / "there"
    cas("import", str(bundle), str(target), folder=tmp_path)
    ClaudeCode(target).run("true")
    assert cas("log", folder=target).out == runner.done("log").out


def test_deleted_and_ignored_files_of_the_baseline_are_not_written_and_links_are(
    runner: CommandRunner, tmp_path: Path
) -> None:
    for name in ("a", "b", "c/d", "ignored", "other"):
        put(runner.folder / name, name.encode(), 0o644)
    put(runner.folder / ".casignore", b"ignored\n", 0o644)
    (runner.folder / "link").symlink_to("other")
    runner.done("record")
    runner.delete("a")
    runner.move("b", "e")
    put(runner.folder / "c/d", b"otherwise", 0o600)
    runner.done("record")
    runner.done("export", "--bundle", str(tmp_path / "b"))
    target = tmp_path / "there"
    cas("import", str(tmp_path / "b"), str(target), folder=tmp_path)
    original = tree(runner.folder)
    assert set(original) == {".casignore", "c/d", "e", "ignored", "link", "other"}
    assert tree(target) == {name: file for name, file in original.items() if name != "ignored"}
    assert (target / "link").readlink() == Path("other")
    assert cas("record", "--json", folder=target).json()["edits"] == []


def test_an_import_keeps_snapshots_of_a_store_without_a_baseline(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"a\n")
    with Workspace.open(runner.folder) as workspace:
        taken = workspace.snapshots.take(who="me").view
        assert workspace.snapshots.all() == [taken]
    runner.done("export", "--bundle", str(tmp_path / "bundle"))
    import_bundle(str(tmp_path / "bundle"), str(tmp_path / "there"), disk=CountdownDisk(None))
    with Workspace.open(tmp_path / "there") as workspace:
        assert workspace.snapshots.all() == [taken]


def test_an_edit_at_a_path_of_the_baseline_replaces_the_baselines_file(runner: CommandRunner, tmp_path: Path) -> None:
    put(runner.folder / "a", b"a file", 0o644)
    put(runner.folder / "b/c", b"in a folder", 0o644)
    runner.done("record")
    (runner.folder / "a").unlink()
    (runner.folder / "b/c").unlink()
    (runner.folder / "b").rmdir()
    runner.write("a/c", b"in a folder")
    runner.write("b", b"a file")
    runner.done("export", "--bundle", str(tmp_path / "b"))
    target = tmp_path / "there"
    assert cas("import", str(tmp_path / "b"), str(target), folder=tmp_path).status == 0
    assert tree(target) == tree(runner.folder)
    paths = {edit["file_path"] for edit in cas("record", "--json", folder=target).json()["edits"]}
    assert paths == {str(target / "a"), str(target / "b/c")}  # as a scan of the original workspace finds


def test_with_store_only_no_file_of_the_baseline_is_written(bundle: Path, tmp_path: Path) -> None:
    target = tmp_path / "there"
    assert cas("import", str(bundle), str(target), "--store-only", folder=tmp_path).status == 0
    assert [path.name for path in target.iterdir()] == [".cas"]


@pytest.mark.parametrize("name", [".g\u200dit", ".\uff23\uff21\uff33"])
def test_a_baseline_with_a_unicode_variant_of_a_reserved_name_is_refused(
    runner: CommandRunner, tmp_path: Path, name: str
) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal, journal.writing() as batch:
        hook = TreeEntry(os.fsencode(name), stat.S_IFREG | 0o644, batch.blob(b"#!/bin/sh\n", None))
        export_with_baseline(journal, batch, batch.blob(encode_tree([hook])), tmp_path / "forged")
    assert "into a store or version control" in refusal_of(tmp_path / "forged", tmp_path)


@pytest.mark.parametrize(("who", "is_empty"), sampled_product(["", "me"], [False, True]))
def test_a_snapshot_that_repeats_a_folder_without_limit_is_refused(
    runner: CommandRunner,
    tmp_path: Path,
    who: str,
    *,
    is_empty: bool,
) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal, journal.writing() as batch:
        file = TreeEntry(b"file", stat.S_IFREG | 0o644, batch.blob(b"x", None))
        tree = batch.blob(encode_tree([] if is_empty else [file]))
        for _ in range(40):
            tree = batch.blob(encode_tree([TreeEntry(b"a", FOLDER, tree), TreeEntry(b"b", FOLDER, tree)]))
        export_with_snapshot(journal, batch, tree, tmp_path / "forged", who)
    message = refusal_of(tmp_path / "forged", tmp_path)
    assert "snapshot 1 has more than 2000000 files and folders. To import only the store, without files" in message


def test_a_baseline_with_a_path_over_the_length_limit_is_refused(runner: CommandRunner, tmp_path: Path) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal, journal.writing() as batch:
        tree = batch.blob(encode_tree([TreeEntry(b"file", stat.S_IFREG | 0o644, batch.blob(b"x", None))]))
        for _ in range(50):
            tree = batch.blob(encode_tree([TreeEntry(b"f" * 100, FOLDER, tree)]))
        export_with_baseline(journal, batch, tree, tmp_path / "forged")
    assert "a path longer than 4096 bytes. To import only the store" in refusal_of(tmp_path / "forged", tmp_path)
    ran = cas("import", str(tmp_path / "forged"), "there", "--store-only", folder=tmp_path)
    assert ran.status == 0


@pytest.mark.parametrize("who", ["", "me"])
def test_a_snapshot_whose_paths_exceed_the_memory_limit_is_refused(
    runner: CommandRunner, tmp_path: Path, who: str
) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal, journal.writing() as batch:
        names = [b"%03d" % number for number in range(300)]
        file = batch.blob(b"x", None)
        tree = batch.blob(encode_tree([TreeEntry(name, stat.S_IFREG | 0o644, file) for name in names]))
        tree = batch.blob(encode_tree([TreeEntry(name, FOLDER, tree) for name in names]))
        for _ in range(15):
            tree = batch.blob(encode_tree([TreeEntry(b"f" * 250, FOLDER, tree)]))
        export_with_snapshot(journal, batch, tree, tmp_path / "forged", who)
    message = refusal_of(tmp_path / "forged", tmp_path)
    assert "snapshot 1 has paths of more than 268435456 bytes in all. To import only the store" in message


def test_paths_of_a_snapshot_of_a_folder_count_with_that_folders_path(runner: CommandRunner, tmp_path: Path) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal, journal.writing() as batch:
        file = batch.blob(b"x", None)
        names = [b"%03d" % number for number in range(300)]
        tree = batch.blob(encode_tree([TreeEntry(name, stat.S_IFREG | 0o644, file) for name in names]))
        tree = batch.blob(encode_tree([TreeEntry(name, FOLDER, tree) for name in names]))
        folder = b"/".join([b"f" * 250] * 15)
        batch.record(Snapshot(number=1, time=1, root=tree, path=folder, who="me", title=""))
        batch.commit()
        export_bundle(journal, str(tmp_path / "forged"))
    assert "snapshot 1 has paths of more than 268435456 bytes in all" in refusal_of(tmp_path / "forged", tmp_path)


def test_a_baseline_that_repeats_a_large_file_beyond_the_free_space_is_refused(
    runner: CommandRunner, tmp_path: Path
) -> None:
    piece, names = bytes(MAX_CHUNK), [b"%03d" % number for number in range(150)]
    hasher = BlobHasher()
    for _ in range(512):
        hasher.update(piece)
    with closing(Journal(str(runner.folder), Disk())) as journal, journal.writing() as batch:
        chunks = [Chunk(blob_id(piece), len(piece))] * 512
        export_with_creations = (encode_blob(piece)[1], encode_chunks(hasher.blob_id(), chunks)[1])
        journal.store.log.append(journal.store.end, [(FrameKind.BLOB, payload) for payload in export_with_creations])
        journal.store.catch_up()
        tree = batch.blob(encode_tree([TreeEntry(name, stat.S_IFREG | 0o644, hasher.blob_id()) for name in names]))
        tree = batch.blob(encode_tree([TreeEntry(name, FOLDER, tree) for name in names]))
        export_with_baseline(journal, batch, tree, tmp_path / "forged")
    free = r"it would write 24159191040000 bytes, but only \d+ are free there\. To import only the store, without files"
    assert re.search(free, refusal_of(tmp_path / "forged", tmp_path))


def export_with_baseline(journal: Journal, batch: Batch, root: BlobId, bundle: Path) -> None:
    """Record a forged baseline and export the store."""
    export_with_snapshot(journal, batch, root, bundle, "")


def export_with_snapshot(journal: Journal, batch: Batch, root: BlobId, bundle: Path, who: str) -> None:
    """Record a forged snapshot (`who` is "": the baseline) and export the store."""
    batch.record(Snapshot(number=1, time=1, root=root, path=None, who=who, title="" if who else "baseline"))
    batch.commit()
    export_bundle(journal, str(bundle))


def test_counts_of_one_are_singular(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"1\n")
    runner.done("export", "--bundle", str(tmp_path / "b"))
    verified, written, *_ = cas("import", str(tmp_path / "b"), "there", folder=tmp_path).text.splitlines()
    assert verified == "Verified 1 record and 1 blob: nothing is wrong."
    assert written.endswith("; 1 file written.")
    written = cas("import", str(tmp_path / "b"), "alone", "--store-only", folder=tmp_path).text
    assert written.endswith("; 0 files written.\n")


# ---- the destination of an import


def test_an_import_into_a_folder_with_files_or_a_store_is_refused(
    runner: CommandRunner, bundle: Path, tmp_path: Path
) -> None:
    target = tmp_path / "there"
    target.mkdir()
    (target / "mine").write_text("mine")
    for words in (
        (str(bundle), str(target)),
        (str(bundle), str(runner.folder)),
        (str(bundle), str(runner.folder), "--store-only"),
    ):
        before = runner.done("records").out
        ran = cas("import", *words, folder=tmp_path)
        assert ran.status == 1
        assert ran.said.count("\n") == 1
        assert runner.done("records").out == before
    assert [path.name for path in target.iterdir()] == ["mine"]


def test_store_only_imports_into_a_folder_that_has_files(bundle: Path, tmp_path: Path) -> None:
    target = tmp_path / "there"
    (target / "sub").mkdir(parents=True)
    (target / "b").write_bytes(b"1\n2\nmine\n")
    (target / "sub/run").write_bytes(b"#!/bin/sh\n")
    (target / "sub/run").chmod(0o755)
    before = tree(target)
    assert cas("import", str(bundle), str(target), "--store-only", folder=tmp_path).status == 0
    assert tree(target) == before
    changes = cas("diff", "--unrecorded", "--json", folder=target).lines()
    found = {os.path.relpath(change["file_path"], target): change["change"] for change in changes}
    # What the baseline has and the folder lacks is listed too.
    assert found == {"b": "modified", "kept": "deleted", "sub/deep/tool": "deleted"}


# ---- damaged and forged bundles


def refusal_of(path: Path, tmp_path: Path) -> str:
    """Import a bundle that must be refused; return the message."""
    target = tmp_path / "there"
    ran = cas("import", str(path), str(target), folder=tmp_path)
    assert ran.status == 1, ran
    assert ran.out == b""
    assert ran.said.count("\n") == 1
    assert "internal error" not in ran.said
    assert not target.exists()
    return ran.said


def with_checksum(content: bytes) -> bytes:
    """Return a bundle's content with a valid checksum."""
    return content + blake3(content).digest()


def damaged_bundles(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield damaged forms of a bundle, each with a name."""
    body = content[:-32]
    yield "empty", b""
    yield "truncated", content[:-1]
    yield "trailing byte", content + b"x"
    yield "wrong magic", b"\x89CASBUM\n" + content[8:]
    yield "newer version", content[:8] + struct.pack("<H", 2) + content[10:]
    yield "nonzero padding", with_checksum(body[:10] + b"\1" + body[11:])
    yield "no segments", with_checksum(content[:16] + struct.pack("<Q", 0))
    yield "many segments", with_checksum(body[:16] + struct.pack("<Q", 1 << 60) + body[24:])
    yield "huge segment", with_checksum(body[:24] + struct.pack("<Q", 1 << 62) + body[32:])
    yield "segment size too small", with_checksum(body[:24] + struct.pack("<Q", 0) + body[32:])
    yield "segment twice", with_checksum(Bundle(sizes=(len(body) - 32,) * 2).encode() + body[32:] * 2)
    yield "half a group", with_checksum(Bundle(sizes=(len(body) - 32 - 5,)).encode() + body[32:-5])


def test_a_damaged_bundle_is_refused_and_leaves_no_files(bundle: Path, tmp_path: Path) -> None:
    for name, content in damaged_bundles(bundle.read_bytes()):
        path = tmp_path / "damaged"
        path.write_bytes(content)
        assert "bundle is refused" in refusal_of(path, tmp_path) or name == "newer version"


def test_a_refused_import_removes_the_folders_it_made_and_no_others(bundle: Path, tmp_path: Path) -> None:
    truncated = tmp_path / "cut"
    truncated.write_bytes(bundle.read_bytes()[:900])
    (tmp_path / "there/empty").mkdir(parents=True)
    for name in ("x", "x/y/z", "./x/y/../z/", "there/x/y", "there/empty"):
        assert cas("import", str(truncated), name, folder=tmp_path).status == 1
        found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("there*/**"))
        assert found == ["there", "there/empty"]
        assert not (tmp_path / "x").exists()
    assert cas("import", str(bundle), "x/y/../z", folder=tmp_path).status == 0
    assert (tmp_path / "x/z/.cas").is_dir()


def test_a_flipped_bit_is_found_under_a_recomputed_checksum(bundle: Path, tmp_path: Path) -> None:
    body = bundle.read_bytes()[:-32]
    chosen = random.Random(5)
    for _ in range(6):
        flipped = bytearray(body)
        flipped[chosen.randrange(32 + 64, len(body))] ^= 1 << chosen.randrange(8)
        path = tmp_path / "flipped"
        path.write_bytes(with_checksum(bytes(flipped)))
        refusal_of(path, tmp_path)


@pytest.mark.parametrize("number", [0, 2, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_a_bundle_whose_first_segment_has_another_number_is_refused(bundle: Path, tmp_path: Path, number: int) -> None:
    body = bundle.read_bytes()[:-32]
    begins = Bundle(sizes=(0,)).begins
    header = replace(SegmentHeader.decode(body[begins:], segment=1), number=number).encode()
    path = tmp_path / "forged"
    path.write_bytes(with_checksum(body[:begins] + header + body[begins + len(header) :]))
    assert f"it has segment {number} where segment 1 should be" in refusal_of(path, tmp_path)


@pytest.mark.parametrize(
    ("path", "mode", "reason"),
    [
        (b".git/hooks/post-checkout", 0o755, "version control"),
        (b"sub/.GIT/config", 0o644, "version control"),
        (b".cas/segments/x", 0o644, "into a store"),
    ],
)
def test_a_well_formed_bundle_with_a_reserved_path_is_refused(
    runner: CommandRunner, tmp_path: Path, path: bytes, mode: int, reason: str
) -> None:
    export_with_creations(runner, [(path, mode)], tmp_path / "forged")
    assert reason in refusal_of(tmp_path / "forged", tmp_path)


def test_a_clone_refuses_such_a_path_too_and_calls_no_store_damaged_for_it(
    runner: CommandRunner, tmp_path: Path
) -> None:
    pytest.importorskip("obstore")
    export_with_creations(runner, [(b".git/hooks/post-checkout", 0o755)], tmp_path / "forged")
    runner.done("remote", "add", "backup", f"file://{tmp_path}/bucket")
    runner.done("push")
    ran = cas("clone", f"file://{tmp_path}/bucket", "x/y", folder=tmp_path)
    assert ran.status == 1
    assert "has files that can't be written here: it would write '.git/hooks/post-checkout'" in ran.said
    assert "damaged" not in ran.said
    assert "--store-only" not in ran.said
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("mode", "where"), sampled_product([0o4755, 0o2755, 0o6711], ["snapshot", "past edit", "first edit", "tip"])
)
def test_no_file_of_an_imported_history_gets_setuid_or_setgid_then_or_later(
    runner: CommandRunner, tmp_path: Path, mode: int, where: str
) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal:
        with journal.writing() as batch:
            named = batch.blob(b"#!/bin/sh\n", None)
            before, after = (FileState(blob=named, mode=bits) for bits in (mode, 0o755))
            made = creation(1, b"tool", mode, named)
            match where:
                case "snapshot":
                    inner = batch.blob(encode_tree([TreeEntry(b"tool", stat.S_IFREG | mode, named)]))
                    root = batch.blob(encode_tree([TreeEntry(b"bin", FOLDER, inner)]))
                    batch.record(Snapshot(number=1, time=1, root=root, path=None, who="x", title=""))
                case "past edit":
                    batch.record(made)
                    edit = replace(made, seq=Seq(2), operation=Operation.REPLACE, before=before, after=after, call=1)
                    batch.record(edit)
                case "first edit":
                    batch.record(replace(made, operation=Operation.REPLACE, before=before, after=after))
                case _:
                    batch.record(made)
            batch.commit()
        export_bundle(journal, str(tmp_path / "forged"))
    there = tmp_path / "there"
    said = cas("import", str(tmp_path / "forged"), str(there), folder=tmp_path)
    assert said.status == 0, said.said
    assert said.text.count("setuid") == (where == "tip")
    history = cas("log", "--json", folder=there).lines()
    assert [edit["amends"] for edit in history] == ([1, None] if where == "tip" else [None] * len(history))
    modes = set()
    for words in (
        ["record"],
        ["snapshot", "restore", "1"],
        ["reject", "1"],
        ["undo"],
        ["reject", "2"],
        ["reopen", "1"],
    ):
        cas(*words, folder=there)  # some of them are refused
        modes |= {path.stat().st_mode & 0o6000 for path in there.rglob("*")}
    assert modes == {0}
    assert cas("fsck", folder=there).status == 0


def test_modes_that_an_import_lost_are_no_change_of_a_person_and_in_nothings_way(
    runner: CommandRunner, tmp_path: Path
) -> None:
    put(runner.folder / "of the baseline", b"one\n", 0o4755)
    runner.done("record")
    put(runner.folder / "made", b"two\n", 0o6711)
    put(runner.folder / "changed", b"three\n", 0o755)
    runner.done("record", "--agent", "x")
    (runner.folder / "changed").chmod(0o2755)
    runner.done("record", "--agent", "x")
    runner.done("export", "--bundle", str(tmp_path / "b"))
    there = tmp_path / "there"
    said = cas("import", str(tmp_path / "b"), str(there), folder=tmp_path).text
    assert said.count("Note: Without") == 1
    assert "Note: Without setuid and setgid, which no file gets back: changed, made, of the baseline." in said
    found = {path.name: path.stat().st_mode & 0o7777 for path in there.iterdir() if path.is_file()}
    assert found == {"of the baseline": 0o755, "made": 0o711, "changed": 0o755}
    assert cas("fsck", folder=there).status == 0
    assert cas("diff", "--unrecorded", folder=there).out == b""
    assert cas("record", folder=there).text == "Nothing changed.\n"
    assert cas("status", "--json", folder=there).lines()[0]["pending"] == 3
    assert cas("reject", "--all", "--yes", folder=there).status == 0
    assert [path.name for path in there.iterdir() if path.is_file()] == ["of the baseline"]
    assert cas("undo", folder=there).status == 0
    assert cas("fsck", folder=there).status == 0
    assert cas("export", "--bundle", str(tmp_path / "again"), folder=there).status == 0
    assert "Note: Without" not in cas("import", str(tmp_path / "again"), str(tmp_path / "next"), folder=tmp_path).text


@pytest.mark.parametrize("name", [b".git", b".CAS"])
def test_a_tree_with_a_reserved_name_is_refused(runner: CommandRunner, tmp_path: Path, name: bytes) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal:
        with journal.writing() as batch:
            hook = TreeEntry(name, stat.S_IFREG | 0o644, batch.blob(b"#!/bin/sh\n", None))
            root = batch.blob(encode_tree([hook]))
            batch.record(Snapshot(number=1, time=1, root=root, path=None, who="x", title=""))
            batch.commit()
        export_bundle(journal, str(tmp_path / "forged"))
    assert f"tree {root.hex()}: a name is reserved for a store" in refusal_of(tmp_path / "forged", tmp_path)
    assert f"tree {root.hex()}: a name is reserved for a store" in runner.cas("fsck").text


@pytest.mark.parametrize("other", [b"a", b"a/b"])
def test_two_files_at_one_path_are_refused(runner: CommandRunner, tmp_path: Path, other: bytes) -> None:
    export_with_creations(runner, [(b"a", 0o644), (other, 0o644)], tmp_path / "forged")
    assert "two files" in refusal_of(tmp_path / "forged", tmp_path)


def test_a_file_at_the_path_of_a_deleted_one_is_imported(runner: CommandRunner, tmp_path: Path) -> None:
    for path in ("a", "b/c"):
        runner.write(path, b"goes\n")
        runner.delete(path)
    runner.write("moved", b"stays\n")
    runner.move("moved", "a")
    (runner.folder / "b").rmdir()
    runner.write("b", b"stays too\n")
    bundle = tmp_path / "bundle"
    runner.done("export", "--bundle", str(bundle))
    import_bundle(str(bundle), str(tmp_path / "there"), disk=CountdownDisk(None))
    assert tree(tmp_path / "there") == tree(runner.folder)
    assert tree(runner.folder).keys() == {"a", "b"}


def test_a_record_of_a_missing_blob_is_refused(runner: CommandRunner, tmp_path: Path) -> None:
    absent = BlobId(blake3(b"nowhere").digest())
    export_with_creations(runner, [(b"a", 0o644)], tmp_path / "forged", blob=absent)
    assert absent.hex() in refusal_of(tmp_path / "forged", tmp_path)


def test_a_record_with_a_path_outside_its_workspace_cannot_be_encoded() -> None:
    content = hashlib.sha256(b"").digest()
    edit = creation(1, b"a", 0o644, BlobId(content))
    encoded = encode_record(edit, None)
    assert decode_record(encoded)[0] == edit
    for path in (b"../a", b"/etc/passwd", b"a/../../b", b"a\0b", b""):
        with pytest.raises(Exception, match="path"):
            encode_record(creation(1, path, 0o644, BlobId(content)), None)


def creation(seq: int, path: bytes, mode: int, blob: BlobId) -> Edit:
    return Edit(
        seq=Seq(seq),
        document=DocumentId(seq),
        time=1,
        conversation="c",
        call=0,
        ordinal=seq - 1,
        operation=Operation.CREATE,
        path=path,
        before=None,
        after=FileState(blob=blob, mode=mode),
        added=1,
        tool="t",
    )


def export_with_creations(
    runner: CommandRunner, creations: list[tuple[bytes, int]], bundle: Path, *, blob: BlobId | None = None
) -> None:
    """Write a bundle of forged creations; no file is changed."""
    journal = Journal(str(runner.folder), Disk())
    with journal.writing() as batch:
        assert isinstance(batch, Batch)
        named = batch.blob(b"#!/bin/sh\n", None) if blob is None else blob
        for seq, (path, mode) in enumerate(creations, 1):
            batch.record(creation(seq, path, mode, named))
        batch.commit()
    # `export_bundle` would refuse, because it checks that every blob is there.
    bundle.write_bytes(b"".join(bundle_pieces(journal.store.log, journal.store.end)))
    journal.close()


def test_an_import_removes_the_files_of_a_killed_import(bundle: Path, tmp_path: Path) -> None:
    target = tmp_path / "there"
    (target / ".cas.0123456789abcdef/.cas/segments").mkdir(parents=True)
    (target / ".cas.0123456789abcdef/.cas/segments/00000001.seg").write_bytes(b"half")
    (target / ".cas.0123456789abcdef/.cas/making").write_bytes(b".cas.0123456789abcdef\n")
    assert cas("import", str(bundle), str(target), folder=tmp_path).status == 0
    assert sorted(path.name for path in target.iterdir()) == [".cas", "b", "kept", "sub"]


def test_an_import_killed_at_any_step_leaves_no_store_without_its_files(
    runner: CommandRunner, bundle: Path, tmp_path: Path
) -> None:
    complete = CountdownDisk(None)
    import_bundle(str(bundle), str(tmp_path / "whole"), disk=complete)
    assert tree(tmp_path / "whole") == tree(runner.folder)
    stores = 0
    first = complete.done.index("stage")
    for step in (first + at for at in sampled_steps(len(complete.done) - first)):
        target = tmp_path / f"cut{step}"
        with pytest.raises(PowerCut):
            import_bundle(str(bundle), str(target), disk=CountdownDisk(step))
        if (target / ".cas").exists():
            stores += 1
            assert tree(target) == tree(runner.folder)
    assert stores > 0


class SyncedFoldersDisk(CountdownDisk):
    """A disk that lists the folders synced before the first file is staged."""

    def __init__(self) -> None:
        super().__init__(None)
        self.synced: list[str] = []

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        if "stage" not in self.done:
            self.synced.append(path)


def test_folders_that_an_import_makes_are_durable_before_they_hold_anything(bundle: Path, tmp_path: Path) -> None:
    disk = SyncedFoldersDisk()
    import_bundle(str(bundle), str(tmp_path / "new/deeper"), disk=disk)
    assert disk.synced[:2] == [str(tmp_path), str(tmp_path / "new")]


class FileAddedDisk(CountdownDisk):
    """A disk on which a user adds a file to the target while the import runs."""

    def __init__(self, path: Path) -> None:
        super().__init__(None)
        self._path: Final = path

    def _step(self, operation: str, name: str, tear: Callable[[float], None] | None = None) -> None:
        if operation == "stage":
            self._path.parent.mkdir(exist_ok=True)
            self._path.write_bytes(b"mine\n")
        super()._step(operation, name, tear)


@pytest.mark.parametrize("added", ["kept", "sub/mine"])
def test_a_file_added_to_the_folder_during_an_import_is_not_overwritten(
    bundle: Path, tmp_path: Path, added: str
) -> None:
    target = tmp_path / "there"
    with pytest.raises(FileExists, match=f"there/{added.partition('/')[0]}"):
        import_bundle(str(bundle), str(target), disk=FileAddedDisk(target / added))
    assert [path for path in target.rglob("*") if path.is_file()] == [target / added]
    assert (target / added).read_bytes() == b"mine\n"


def test_imported_files_are_durable_before_the_store_is_moved_in_and_before_success_is_reported(
    bundle: Path, tmp_path: Path
) -> None:
    disk = CountdownDisk(None)
    import_bundle(str(bundle), str(tmp_path / "there"), disk=disk)
    store = len(disk.done) - 1 - disk.done[::-1].index("move_store_folder")
    assert disk.done[store - 1] == "sync_directory"
    assert disk.done[-1] == "sync_directory"


def test_a_failed_import_leaves_at_most_its_staging_folder(bundle: Path, tmp_path: Path) -> None:
    complete = CountdownDisk(None)
    import_bundle(str(bundle), str(tmp_path / "whole"), disk=complete)
    first, last = (len(complete.done) - 1 - complete.done[::-1].index(one) for one in ("stage", "move_store_folder"))
    for step in (first + at for at in sampled_steps(last + 1 - first)):
        target = tmp_path / f"failed{step}"
        disk = CountdownDisk(step, broken_disk, lasting=False)
        try:
            import_bundle(str(bundle), str(target), disk=disk)
        except CasError:
            assert not target.exists() or {path.name[:5] for path in target.iterdir()} == {".cas."}
        else:
            assert tree(target) == tree(tmp_path / "whole")
