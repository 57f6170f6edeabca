"""`cas export --bundle` and `cas import`: one file carries the whole history, and nothing in it is believed."""

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
from objstore.errors import CasError, FileExists
from objstore.fastclass import replace
from objstore.fs.disk import Disk
from objstore.log.blob_codec import encode_blob, encode_chunks
from objstore.log.chunking import MAX_CHUNK, Chunk
from objstore.log.frames import FrameKind, SegmentHeader
from objstore.model.basic_types import DocumentId, FileState, Operation, Seq
from objstore.model.ids import BlobHasher, BlobId, blob_id
from objstore.model.record_codec import decode_record, encode_record
from objstore.model.records import Edit, Snapshot
from objstore.model.tree import FOLDER, TreeEntry, encode_tree
from objstore.store.write_batch import Batch
from objstore.transaction.journal import Journal
from objstore.transfer.bundle import Bundle, bundle_pieces
from objstore.transfer.import_export import export_bundle, import_bundle, send_bundle
from tests.support.command_runner import CommandRunner, cas
from tests.support.damaged_stores import lose
from tests.support.faulty_disk import CountdownDisk, PowerCut, broken_disk, sampled_steps
from tests.support.hooked_agents import ClaudeCode


@pytest.fixture
def bundle(runner: CommandRunner, tmp_path: Path) -> Path:
    """Return a bundle of a history with a first look, decisions, a move, a deletion and something that was rejected."""
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
    path = tmp_path / "all.bundle"
    runner.done("export", "--bundle", str(path))
    return path


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


# ---- where it goes

RESERVED = (".cas/segments/00000002.seg", ".cas/new", "sub/../.cas/x", "link/x", ".git/hooks/pre-commit", ".CAS/x")
"""Places at which nothing that is exported may come to lie: who reads the folder would take it for its own."""


@pytest.mark.parametrize("place", RESERVED)
def test_nothing_is_written_into_a_store_or_a_folder_of_version_control(
    runner: CommandRunner, bundle: Path, tmp_path: Path, place: str
) -> None:
    (runner.folder / "link").symlink_to(".cas")
    (runner.folder / ".git" / "hooks").mkdir(parents=True)
    before = sorted(runner.folder.rglob("*"))
    other = tmp_path / "other"
    other.mkdir()
    for words in (["export", "--bundle"], ["export", "--patch", "-o"], ["import", bundle], ["salvage", ".cas", "--to"]):
        for there in (place, str(runner.folder / place)):
            ran = runner.cas(*map(str, words), there)
            assert ran.status == 1
            assert ran.said.startswith("cas: Path is reserved for "), ran
            assert ran.said.count("\n") == 1, ran
        # The store of another workspace is one too.
        ran = cas("-C", str(runner.folder), *map(str, words), str(runner.folder / place), folder=other)
        assert ran.said.startswith("cas: Path is reserved for "), ran
    assert sorted(runner.folder.rglob("*")) == before
    assert cas("init", ".cas/segments", folder=runner.folder).said.startswith("cas: Path is reserved for the store")


# ---- what comes out is what went in


def test_the_same_files_and_the_same_hash_chain(runner: CommandRunner, bundle: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    ran = cas("import", str(bundle), str(there), folder=tmp_path)
    assert (ran.status, ran.said) == (0, "")
    assert tree(there) == tree(runner.folder)
    for words in (["records", "--json"], ["log"], ["segments"], ["ls"], ["show", "2"]):
        assert cas(*words, folder=there).out == runner.done(*words).out
    assert cas("fsck", folder=there).status == 0
    assert cas("diff", "--unrecorded", folder=there).out == b""


def test_a_bundle_goes_through_a_pipe(runner: CommandRunner, bundle: Path, tmp_path: Path) -> None:
    sent = runner.done("export", "--bundle", "-").out
    assert sent == bundle.read_bytes()
    for words in (["piped"], ["alone", "--store-only"], ["told", "--json"]):
        ran = cas("import", "-", *words, folder=tmp_path, stdin=sent)
        assert (ran.status, ran.said) == (0, "")
        assert cas("records", "--json", folder=tmp_path / words[0]).out == runner.done("records", "--json").out
    assert tree(tmp_path / "piped") == tree(runner.folder)
    for stdin in (b"", sent[:-1], b"no bundle"):
        ran = cas("import", "-", "refused", folder=tmp_path, stdin=stdin)
        assert (ran.status, ran.out) == (1, b"")
        assert not (tmp_path / "refused").exists()
    assert runner.cas("export", "--bundle", "-", "--json").status == 2
    assert not (runner.folder / "-").exists()


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "link"])
def test_what_is_there_and_no_regular_file_is_refused_as_that(tmp_path: Path, kind: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/null")
    (tmp_path / "link").symlink_to("folder")
    ran = cas("import", kind, "there", folder=tmp_path)
    assert (ran.status, ran.out) == (2, b"")
    instead = "To read a bundle from a pipe, use `cas import - DIR`."
    assert ran.said.splitlines()[0] == f"cas: Not a regular file: {kind}. {instead}"
    assert not (tmp_path / "there").exists()


def test_a_bundle_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("missing", "missing/too", "link"):
        ran = cas("import", name, "there", folder=tmp_path)
        assert (ran.status, ran.said.splitlines()[0]) == (2, f"cas: No such file: {name}")


def test_a_bundle_is_neither_shown_on_a_terminal_nor_typed(runner: CommandRunner) -> None:
    for words in (["export", "--bundle", "-"], ["import", "-", "new"]):
        status, shown = runner.typed(*words)
        assert (status, "cas: " in shown) == (2, True), shown


def test_a_large_history_goes_in_pieces_and_is_whole(runner: CommandRunner, tmp_path: Path) -> None:
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


def test_the_history_goes_on_there(bundle: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    assert cas("import", str(bundle), str(there), folder=tmp_path).status == 0
    assert cas("accept", "2", folder=there).status == 0
    assert (there / "b").read_bytes() == b"1\ntwo\n3\n"
    assert cas("undo", folder=there).status == 0
    assert (there / "b").read_bytes() == b"1\n2\n3\n"


def test_an_export_leaves_the_store_and_an_older_bundle_alone(runner: CommandRunner, bundle: Path) -> None:
    before = bundle.read_bytes()
    ran = runner.cas("export", "--bundle", str(bundle))
    assert (ran.status, ran.said) == (1, f"cas: {bundle} already exists. Name a new file.\n")
    assert bundle.read_bytes() == before
    assert runner.done("fsck").status == 0


def test_an_export_that_can_go_nowhere_names_where_that_is(runner: CommandRunner) -> None:
    said = "cas: No such file or directory: nowhere/bundle\n"
    assert runner.cas("export", "--bundle", "nowhere/bundle").said == said


def test_a_store_in_which_bytes_are_damaged_is_not_bundled(runner: CommandRunner, tmp_path: Path) -> None:
    for content in (b"1\n", b"2\n", b"3\n"):
        runner.write("a", content)
    segment = runner.folder / ".cas/segments/00000001.seg"
    sound = segment.read_bytes()
    for at in (sound.index(b"1\n"), sound.index(b"ordinal")):
        segment.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        refusal = runner.cas("export", "--bundle", str(tmp_path / "b"))
        assert (refusal.status, refusal.out) == (1, b"")
        assert re.fullmatch(
            "cas: Store damaged in segment 1 at byte .*\nRun `cas fsck` to see what is .*\n", refusal.said
        )
        assert list(tmp_path.glob("b*")) == []
        sent = runner.cas("export", "--bundle", "-")
        assert (sent.status, sent.said) == (1, refusal.said)
        assert cas("import", "-", "there", folder=tmp_path, stdin=sent.out).status == 1


def test_a_store_that_has_lost_a_state_is_bundled_once_that_is_let_go_of(runner: CommandRunner, tmp_path: Path) -> None:
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


def test_json_tells_what_was_done(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"1\n")
    found = runner.done("export", "--bundle", str(tmp_path / "b"), "--json").json()
    assert found == {"bundle": str(tmp_path / "b"), "bytes": (tmp_path / "b").stat().st_size}
    found = cas("import", str(tmp_path / "b"), str(tmp_path / "there"), "--json", folder=tmp_path).json()
    assert found == {"workspace": str(tmp_path / "there"), "records": 1, "blobs": 1, "files": 1}


# ---- what the first look found


def test_what_the_first_look_found_comes_too_and_the_next_look_tells_of_nothing(
    runner: CommandRunner, bundle: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    ran = cas("import", str(bundle), str(there), folder=tmp_path)
    assert ran.text.endswith("the same history; 4 files written.\n")
    assert (there / "kept").stat().st_mode & 0o777 == 0o640
    assert (there / "sub/deep/tool").stat().st_mode & 0o777 == 0o755
    assert cas("record", "--json", folder=there).json()["edits"] == []
    session = ClaudeCode(there)
    session.run("echo mine > new")
    assert session.run("chmod 600 kept; rm sub/deep/tool") == ""
    older = {edit["edit_id"] for edit in runner.done("log", "--json").lines()}
    told = [edit for edit in cas("log", "--json", folder=there).lines() if edit["edit_id"] not in older]
    assert {(edit["operation"], edit["file_path"]) for edit in told} == {
        ("create", str(there / "new")),
        ("delete", str(there / "sub/deep/tool")),
        ("edit", str(there / "kept")),
    }


def test_a_hook_is_the_first_to_look_there_and_tells_of_nothing(
    runner: CommandRunner, bundle: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    cas("import", str(bundle), str(there), folder=tmp_path)
    ClaudeCode(there).run("true")
    assert cas("log", folder=there).out == runner.done("log").out


def test_what_has_gone_or_was_never_held_is_not_written_and_not_told_of(runner: CommandRunner, tmp_path: Path) -> None:
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
    there = tmp_path / "there"
    cas("import", str(tmp_path / "b"), str(there), folder=tmp_path)
    written = tree(runner.folder)
    assert set(written) == {".casignore", "c/d", "e", "ignored", "link", "other"}
    assert tree(there) == {name: was for name, was in written.items() if name not in {"ignored", "link"}}
    assert not (there / "link").is_symlink()
    assert cas("record", "--json", folder=there).json()["edits"] == []


def test_where_nobody_has_looked_yet_a_snapshot_comes_too(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"a\n")
    with Workspace.open(runner.folder) as workspace:
        taken = workspace.snapshots.take(who="me").view
        assert workspace.snapshots.all() == [taken]
    runner.done("export", "--bundle", str(tmp_path / "bundle"))
    import_bundle(str(tmp_path / "bundle"), str(tmp_path / "there"), disk=CountdownDisk(None))
    with Workspace.open(tmp_path / "there") as workspace:
        assert workspace.snapshots.all() == [taken]


def test_where_an_edit_has_taken_the_place_of_what_the_first_look_found_the_edit_counts(
    runner: CommandRunner, tmp_path: Path
) -> None:
    put(runner.folder / "a", b"a file", 0o644)
    put(runner.folder / "b/c", b"in a folder", 0o644)
    runner.done("record")
    (runner.folder / "a").unlink()
    (runner.folder / "b/c").unlink()
    (runner.folder / "b").rmdir()
    runner.write("a/c", b"in a folder")
    runner.write("b", b"a file")
    runner.done("export", "--bundle", str(tmp_path / "b"))
    there = tmp_path / "there"
    assert cas("import", str(tmp_path / "b"), str(there), folder=tmp_path).status == 0
    assert tree(there) == tree(runner.folder)
    told = {edit["file_path"] for edit in cas("record", "--json", folder=there).json()["edits"]}
    assert told == {str(there / "a"), str(there / "b/c")}  # as a look at the original tells


def test_with_the_store_alone_no_file_of_the_first_look_is_written(bundle: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    assert cas("import", str(bundle), str(there), "--store-only", folder=tmp_path).status == 0
    assert [path.name for path in there.iterdir()] == [".cas"]


@pytest.mark.parametrize("name", [".g\u200dit", ".\uff23\uff21\uff33"])
def test_a_first_look_cannot_have_found_what_is_a_store_s_under_another_spelling(
    runner: CommandRunner, tmp_path: Path, name: str
) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal, journal.writing() as batch:
        hook = TreeEntry(os.fsencode(name), stat.S_IFREG | 0o644, batch.blob(b"#!/bin/sh\n", None))
        found_first(journal, batch, batch.blob(encode_tree([hook])), tmp_path / "forged")
    assert "into a store or version control" in refused(tmp_path / "forged", tmp_path)


@pytest.mark.parametrize("who", ["", "me"])
@pytest.mark.parametrize("is_empty", [False, True])
def test_a_snapshot_that_holds_the_same_folder_over_and_over_fills_nothing(
    runner: CommandRunner,
    tmp_path: Path,
    is_empty: bool,  # noqa: FBT001 - a parameter of the test
    who: str,
) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal, journal.writing() as batch:
        file = TreeEntry(b"file", stat.S_IFREG | 0o644, batch.blob(b"x", None))
        tree = batch.blob(encode_tree([] if is_empty else [file]))
        for _ in range(40):
            tree = batch.blob(encode_tree([TreeEntry(b"a", FOLDER, tree), TreeEntry(b"b", FOLDER, tree)]))
        snapped(journal, batch, tree, tmp_path / "forged", who)
    said = refused(tmp_path / "forged", tmp_path)
    assert "snapshot 1 has more than 2000000 files and folders; import it without files" in said


def test_a_first_look_cannot_have_found_what_lies_deeper_than_a_file_can_be_written(
    runner: CommandRunner, tmp_path: Path
) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal, journal.writing() as batch:
        tree = batch.blob(encode_tree([TreeEntry(b"file", stat.S_IFREG | 0o644, batch.blob(b"x", None))]))
        for _ in range(50):
            tree = batch.blob(encode_tree([TreeEntry(b"f" * 100, FOLDER, tree)]))
        found_first(journal, batch, tree, tmp_path / "forged")
    assert "a path longer than 4096 bytes; import it without files" in refused(tmp_path / "forged", tmp_path)
    ran = cas("import", str(tmp_path / "forged"), "there", "--store-only", folder=tmp_path)
    assert ran.status == 0


@pytest.mark.parametrize("who", ["", "me"])
def test_a_snapshot_cannot_have_more_of_paths_than_memory_holds(
    runner: CommandRunner, tmp_path: Path, who: str
) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal, journal.writing() as batch:
        names = [b"%03d" % number for number in range(300)]
        file = batch.blob(b"x", None)
        tree = batch.blob(encode_tree([TreeEntry(name, stat.S_IFREG | 0o644, file) for name in names]))
        tree = batch.blob(encode_tree([TreeEntry(name, FOLDER, tree) for name in names]))
        for _ in range(15):
            tree = batch.blob(encode_tree([TreeEntry(b"f" * 250, FOLDER, tree)]))
        snapped(journal, batch, tree, tmp_path / "forged", who)
    said = refused(tmp_path / "forged", tmp_path)
    assert "snapshot 1 has paths of more than 268435456 bytes in all; import it without files" in said


def test_a_snapshot_of_a_folder_has_paths_with_that_folders_in_front(runner: CommandRunner, tmp_path: Path) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal, journal.writing() as batch:
        file = batch.blob(b"x", None)
        names = [b"%03d" % number for number in range(300)]
        tree = batch.blob(encode_tree([TreeEntry(name, stat.S_IFREG | 0o644, file) for name in names]))
        tree = batch.blob(encode_tree([TreeEntry(name, FOLDER, tree) for name in names]))
        folder = b"/".join([b"f" * 250] * 15)
        batch.record(Snapshot(number=1, time=1, root=tree, path=folder, who="me", title=""))
        batch.commit()
        export_bundle(journal, str(tmp_path / "forged"))
    assert "snapshot 1 has paths of more than 268435456 bytes in all" in refused(tmp_path / "forged", tmp_path)


def test_a_first_look_that_found_a_large_file_over_and_over_fills_no_disk(
    runner: CommandRunner, tmp_path: Path
) -> None:
    piece, names = bytes(MAX_CHUNK), [b"%03d" % number for number in range(300)]
    hasher = BlobHasher()
    for _ in range(512):
        hasher.update(piece)
    with closing(Journal(str(runner.folder), Disk())) as journal, journal.writing() as batch:
        chunks = [Chunk(blob_id(piece), len(piece))] * 512
        forged = (encode_blob(piece)[1], encode_chunks(hasher.blob_id(), chunks)[1])
        journal.store.log.append(journal.store.end, [(FrameKind.BLOB, payload) for payload in forged])
        journal.store.catch_up()
        tree = batch.blob(encode_tree([TreeEntry(name, stat.S_IFREG | 0o644, hasher.blob_id()) for name in names]))
        tree = batch.blob(encode_tree([TreeEntry(name, FOLDER, tree) for name in names]))
        found_first(journal, batch, tree, tmp_path / "forged")
    free = r"it would write 96636764160000 bytes, but only \d+ are free there; import it without files"
    assert re.search(free, refused(tmp_path / "forged", tmp_path))


def found_first(journal: Journal, batch: Batch, root: BlobId, bundle: Path) -> None:
    """Bundle a baseline that no look would take."""
    snapped(journal, batch, root, bundle, "")


def snapped(journal: Journal, batch: Batch, root: BlobId, bundle: Path, who: str) -> None:
    """Bundle a snapshot that no look would take, of somebody ("": the baseline)."""
    batch.record(Snapshot(number=1, time=1, root=root, path=None, who=who, title="" if who else "baseline"))
    batch.commit()
    export_bundle(journal, str(bundle))


def test_one_file_is_called_one(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"1\n")
    runner.done("export", "--bundle", str(tmp_path / "b"))
    verified, written = cas("import", str(tmp_path / "b"), "there", folder=tmp_path).text.splitlines()
    assert verified == "Verified 1 record and 1 blob: nothing is wrong."
    assert written.endswith("; 1 file written.")
    written = cas("import", str(tmp_path / "b"), "alone", "--store-only", folder=tmp_path).text
    assert written.endswith("; 0 files written.\n")


# ---- where it goes


def test_a_folder_with_files_or_a_store_is_refused_and_left_alone(
    runner: CommandRunner, bundle: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "mine").write_text("mine")
    for words in (
        (str(bundle), str(there)),
        (str(bundle), str(runner.folder)),
        (str(bundle), str(runner.folder), "--store-only"),
    ):
        before = runner.done("records").out
        ran = cas("import", *words, folder=tmp_path)
        assert ran.status == 1
        assert ran.said.count("\n") == 1
        assert runner.done("records").out == before
    assert [path.name for path in there.iterdir()] == ["mine"]


def test_the_store_alone_stands_beside_files_that_are_there_already(bundle: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "sub").mkdir(parents=True)
    (there / "b").write_bytes(b"1\n2\nmine\n")
    (there / "sub/run").write_bytes(b"#!/bin/sh\n")
    (there / "sub/run").chmod(0o755)
    before = tree(there)
    assert cas("import", str(bundle), str(there), "--store-only", folder=tmp_path).status == 0
    assert tree(there) == before
    (change,) = cas("diff", "--unrecorded", "--json", folder=there).lines()
    assert change["file_path"] == str(there / "b")


# ---- nothing is believed


def refused(path: Path, tmp_path: Path) -> str:
    """Import what must not be taken; return why it is not."""
    there = tmp_path / "there"
    ran = cas("import", str(path), str(there), folder=tmp_path)
    assert ran.status == 1, ran
    assert ran.out == b""
    assert ran.said.count("\n") == 1
    assert "internal error" not in ran.said
    assert not there.exists()
    return ran.said


def sealed(content: bytes) -> bytes:
    """Return a bundle that says of itself that it is as it was written."""
    return content + blake3(content).digest()


def damaged(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield bundles that are none any more."""
    body = content[:-32]
    yield "empty", b""
    yield "cut", content[:-1]
    yield "longer", content + b"x"
    yield "magic", b"\x89CASBUM\n" + content[8:]
    yield "newer", content[:8] + struct.pack("<H", 2) + content[10:]
    yield "padding", sealed(body[:10] + b"\1" + body[11:])
    yield "no segments", sealed(content[:16] + struct.pack("<Q", 0))
    yield "many segments", sealed(body[:16] + struct.pack("<Q", 1 << 60) + body[24:])
    yield "huge segment", sealed(body[:24] + struct.pack("<Q", 1 << 62) + body[32:])
    yield "negative rest", sealed(body[:24] + struct.pack("<Q", 0) + body[32:])
    yield "twice", sealed(Bundle(sizes=(len(body) - 32,) * 2).encode() + body[32:] * 2)
    yield "half a group", sealed(Bundle(sizes=(len(body) - 32 - 5,)).encode() + body[32:-5])


def test_a_damaged_bundle_is_refused_and_nothing_is_left(bundle: Path, tmp_path: Path) -> None:
    for name, content in damaged(bundle.read_bytes()):
        path = tmp_path / "damaged"
        path.write_bytes(content)
        assert "bundle is refused" in refused(path, tmp_path) or name == "newer"


def test_a_refused_import_leaves_no_folder_that_it_made_and_takes_none_that_was_there(
    bundle: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(bundle.read_bytes()[:900])
    (tmp_path / "there/empty").mkdir(parents=True)
    for name in ("x", "x/y/z", "./x/y/../z/", "there/x/y", "there/empty"):
        assert cas("import", str(cut), name, folder=tmp_path).status == 1
        found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("there*/**"))
        assert found == ["there", "there/empty"]
        assert not (tmp_path / "x").exists()
    assert cas("import", str(bundle), "x/y/../z", folder=tmp_path).status == 0
    assert (tmp_path / "x/z/.cas").is_dir()


def test_a_flipped_bit_is_found_even_under_a_fresh_seal(bundle: Path, tmp_path: Path) -> None:
    body = bundle.read_bytes()[:-32]
    chosen = random.Random(5)
    for _ in range(6):
        flipped = bytearray(body)
        flipped[chosen.randrange(32 + 64, len(body))] ^= 1 << chosen.randrange(8)
        path = tmp_path / "flipped"
        path.write_bytes(sealed(bytes(flipped)))
        refused(path, tmp_path)


@pytest.mark.parametrize("number", [0, 2, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_a_bundle_begins_with_the_first_segment(bundle: Path, tmp_path: Path, number: int) -> None:
    body = bundle.read_bytes()[:-32]
    begins = Bundle(sizes=(0,)).begins
    header = replace(SegmentHeader.decode(body[begins:], segment=1), number=number).encode()
    path = tmp_path / "forged"
    path.write_bytes(sealed(body[:begins] + header + body[begins + len(header) :]))
    assert f"it has segment {number} where segment 1 should be" in refused(path, tmp_path)


@pytest.mark.parametrize(
    ("path", "mode", "why"),
    [
        (b".git/hooks/post-checkout", 0o755, "version control"),
        (b"sub/.GIT/config", 0o644, "version control"),
        (b".cas/segments/x", 0o644, "into a store"),
        (b"root-shell", 0o4755, "mode 4755"),
    ],
)
def test_a_well_formed_bundle_cannot_write_where_it_must_not(
    runner: CommandRunner, tmp_path: Path, path: bytes, mode: int, why: str
) -> None:
    forged(runner, [(path, mode)], tmp_path / "forged")
    assert why in refused(tmp_path / "forged", tmp_path)


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o1777])
@pytest.mark.parametrize("where", ["snapshot", "once", "at first"])
def test_no_mode_beyond_the_usual_bits_comes_in_by_way_of_history(
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
                case "once":
                    batch.record(made)
                    edit = replace(made, seq=Seq(2), operation=Operation.REPLACE, before=before, after=after, call=1)
                    batch.record(edit)
                case _:
                    batch.record(replace(made, operation=Operation.REPLACE, before=before, after=after))
            batch.commit()
        export_bundle(journal, str(tmp_path / "forged"))
    assert f"tool' would get the mode {mode:04o}" in refused(tmp_path / "forged", tmp_path)
    assert cas("import", "--store-only", str(tmp_path / "forged"), str(tmp_path / "there"), folder=tmp_path).status == 0


@pytest.mark.parametrize("name", [b".git", b".CAS"])
def test_a_tree_with_what_is_never_in_one_is_refused(runner: CommandRunner, tmp_path: Path, name: bytes) -> None:
    with closing(Journal(str(runner.folder), Disk())) as journal:
        with journal.writing() as batch:
            hook = TreeEntry(name, stat.S_IFREG | 0o644, batch.blob(b"#!/bin/sh\n", None))
            root = batch.blob(encode_tree([hook]))
            batch.record(Snapshot(number=1, time=1, root=root, path=None, who="x", title=""))
            batch.commit()
        export_bundle(journal, str(tmp_path / "forged"))
    assert f"tree {root.hex()}: a name is reserved for a store" in refused(tmp_path / "forged", tmp_path)
    assert f"tree {root.hex()}: a name is reserved for a store" in runner.cas("fsck").text


@pytest.mark.parametrize("other", [b"a", b"a/b"])
def test_two_files_cannot_stand_at_one_place(runner: CommandRunner, tmp_path: Path, other: bytes) -> None:
    forged(runner, [(b"a", 0o644), (other, 0o644)], tmp_path / "forged")
    assert "two files" in refused(tmp_path / "forged", tmp_path)


def test_what_stands_where_another_file_is_gone_comes_with_the_history_of_both(
    runner: CommandRunner, tmp_path: Path
) -> None:
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


def test_a_record_of_bytes_that_are_not_there_is_refused(runner: CommandRunner, tmp_path: Path) -> None:
    absent = BlobId(blake3(b"nowhere").digest())
    forged(runner, [(b"a", 0o644)], tmp_path / "forged", blob=absent)
    assert absent.hex() in refused(tmp_path / "forged", tmp_path)


def test_a_record_that_leaves_its_workspace_is_no_record() -> None:
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


def forged(runner: CommandRunner, made: list[tuple[bytes, int]], bundle: Path, *, blob: BlobId | None = None) -> None:
    """Bundle creations that no tool would make; no file is touched."""
    journal = Journal(str(runner.folder), Disk())
    with journal.writing() as batch:
        assert isinstance(batch, Batch)
        named = batch.blob(b"#!/bin/sh\n", None) if blob is None else blob
        for seq, (path, mode) in enumerate(made, 1):
            batch.record(creation(seq, path, mode, named))
        batch.commit()
    # Not as a store is exported: that looks whether its blobs are there.
    bundle.write_bytes(b"".join(bundle_pieces(journal.store.log, journal.store.end)))
    journal.close()


def test_what_a_killed_import_leaves_is_cleared_away(bundle: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / ".cas.0123456789abcdef/.cas/segments").mkdir(parents=True)
    (there / ".cas.0123456789abcdef/.cas/segments/00000001.seg").write_bytes(b"half")
    (there / ".cas.0123456789abcdef/.cas/making").write_bytes(b".cas.0123456789abcdef\n")
    assert cas("import", str(bundle), str(there), folder=tmp_path).status == 0
    assert sorted(path.name for path in there.iterdir()) == [".cas", "b", "kept", "sub"]


def test_wherever_an_import_dies_there_is_no_history_without_its_files(
    runner: CommandRunner, bundle: Path, tmp_path: Path
) -> None:
    whole = CountdownDisk(None)
    import_bundle(str(bundle), str(tmp_path / "whole"), disk=whole)
    assert tree(tmp_path / "whole") == tree(runner.folder)
    stores = 0
    first = whole.done.index("stage")
    for step in (first + at for at in sampled_steps(len(whole.done) - first)):
        there = tmp_path / f"cut{step}"
        with pytest.raises(PowerCut):
            import_bundle(str(bundle), str(there), disk=CountdownDisk(step))
        if (there / ".cas").exists():
            stores += 1
            assert tree(there) == tree(runner.folder)
    assert stores > 0


class Named(CountdownDisk):
    """Keeps which folders were synced before anything was put into one."""

    def __init__(self) -> None:
        super().__init__(None)
        self.synced: list[str] = []

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        if "stage" not in self.done:
            self.synced.append(path)


def test_the_folders_that_an_import_makes_are_durable_before_anything_is_in_them(bundle: Path, tmp_path: Path) -> None:
    disk = Named()
    import_bundle(str(bundle), str(tmp_path / "new/deeper"), disk=disk)
    assert disk.synced[:2] == [str(tmp_path), str(tmp_path / "new")]


class Meanwhile(CountdownDisk):
    """Somebody puts a file into the folder while the import is at it."""

    def __init__(self, path: Path) -> None:
        super().__init__(None)
        self._path: Final = path

    def _step(self, operation: str, name: str, tear: Callable[[float], None] | None = None) -> None:
        if operation == "stage":
            self._path.parent.mkdir(exist_ok=True)
            self._path.write_bytes(b"mine\n")
        super()._step(operation, name, tear)


@pytest.mark.parametrize("mine", ["kept", "sub/mine"])
def test_what_comes_into_the_folder_during_an_import_is_not_overwritten(
    bundle: Path, tmp_path: Path, mine: str
) -> None:
    there = tmp_path / "there"
    with pytest.raises(FileExists, match=f"there/{mine.partition('/')[0]}"):
        import_bundle(str(bundle), str(there), disk=Meanwhile(there / mine))
    assert [path for path in there.rglob("*") if path.is_file()] == [there / mine]
    assert (there / mine).read_bytes() == b"mine\n"


def test_what_an_import_has_moved_is_durable_before_the_store_is_and_before_it_is_told(
    bundle: Path, tmp_path: Path
) -> None:
    disk = CountdownDisk(None)
    import_bundle(str(bundle), str(tmp_path / "there"), disk=disk)
    store = len(disk.done) - 1 - disk.done[::-1].index("move_store_folder")
    assert disk.done[store - 1] == "sync_directory"
    assert disk.done[-1] == "sync_directory"


def test_where_an_import_fails_nothing_of_it_is_left(bundle: Path, tmp_path: Path) -> None:
    whole = CountdownDisk(None)
    import_bundle(str(bundle), str(tmp_path / "whole"), disk=whole)
    first, last = (len(whole.done) - 1 - whole.done[::-1].index(one) for one in ("stage", "move_store_folder"))
    for step in (first + at for at in sampled_steps(last + 1 - first)):
        there = tmp_path / f"failed{step}"
        disk = CountdownDisk(step, broken_disk, lasting=False)
        try:
            import_bundle(str(bundle), str(there), disk=disk)
        except CasError:
            assert not there.exists() or {path.name[:5] for path in there.iterdir()} == {".cas."}
        else:
            assert tree(there) == tree(tmp_path / "whole")
