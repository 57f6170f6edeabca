"""Cached documents: a file with a long history opens fast, and a cached state is never trusted unless it is right."""

import contextlib
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from msgpack import packb, unpackb
from zstandard import ZstdCompressor, ZstdDecompressor

from objstore import (
    Action,
    BlobDamaged,
    CallInfo,
    Decided,
    FileState,
    HistoryBroken,
    OnExternal,
    Operation,
    Origin,
    Seq,
    Status,
    Workspace,
    blob_id,
    check_store,
)
from objstore.disk.fs.disk import Disk
from objstore.history.documents.loader import load_document
from objstore.model.basic_types import DocumentId
from objstore.model.replay_records import ReplayEdit
from objstore.model.results import EXTERNAL_CALL
from objstore.review.calls.edit_recorder import Change, Recorder, Version
from objstore.storage.log.blob_codec import Base, encode_blob
from objstore.storage.log.frames import FrameKind
from objstore.storage.transaction.journal import Journal
from objstore.weave.document import Document
from tests.support.scene import TEN, Scene

DECIDING: Final = """
import gc, sys
from objstore import Action, Unit, Workspace
from objstore.values import garbage
garbage._MOST_OLD = 50_000
with Workspace.open(sys.argv[1]) as workspace:
    for _ in range(60):
        workspace.decide(Action.REJECT, [Unit(40, 1)])
        workspace.review.undo()
        print(len(gc.get_objects()))
"""


def cached(scene: Scene) -> list[Path]:
    return sorted((scene.root / ".cas" / "cache").glob("*"))


def long_history(scene: Scene, edits: int = 80, path: str = "f") -> None:
    """Edit a file many times: changes, insertions, deletions, a move, all sorts of final newlines."""
    draw = random.Random(edits)
    lines = [b"line %d\n" % number for number in range(30)]
    scene.write(path, b"".join(lines))
    for number in range(edits - 1):
        at, gone = draw.randrange(len(lines)), draw.choice((0, 1, 1, 1, 2))
        lines[at : at + gone] = [b"edit %d\n" % number] * draw.choice((0, 1, 1, 2) if gone else (1, 2))
        scene.write(path, b"".join(lines)[: -1 if draw.random() < 0.1 else None])


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with a long history of one file."""
    root = tmp_path_factory.mktemp("lived") / "workspace"
    with contextlib.closing(Scene(root)) as scene:
        long_history(scene)
    return root


@pytest.fixture
def old_scene(lived: Path, tmp_path: Path) -> Iterator[Scene]:
    """Yield a scene in a copy of that workspace."""
    with contextlib.closing(Scene(shutil.copytree(lived, tmp_path / "workspace", symlinks=True))) as scene:
        yield scene


def toggle(scene: Scene, seqs: range) -> list[tuple[str, bytes | None]]:
    """Return the result of rejecting each edit, and the file's content then; each rejection is undone."""
    found = []
    for seq in seqs:
        outcome = scene.decide(Action.REJECT, seq)
        found.append((type(outcome).__name__, scene.text("f")))
        if isinstance(outcome, Decided):
            scene.undo()
    return found


def test_only_the_weave_of_a_long_history_is_cached(scene: Scene) -> None:
    scene.write("short", b"a\n")
    scene.reject(1)
    assert cached(scene) == []
    long_history(scene)
    scene.decide(Action.REJECT, 40)
    assert [path.name for path in cached(scene)] == ["weave-2"]


def test_a_decision_that_keeps_edits_live_replays_nothing(old_scene: Scene) -> None:
    assert old_scene.accept(*range(1, 80)).files == ()
    assert set(old_scene.reset(7, 79).verdicts) == {(unit, Status.PENDING) for unit in old_scene.units(7, 79)}
    assert old_scene.accept(79).verdicts == tuple((unit, Status.ACCEPTED) for unit in old_scene.units(79))
    assert cached(old_scene) == []
    # An accepted edit that follows may have taken out what is accepted.
    assert old_scene.accept(7).verdicts == tuple((unit, Status.ACCEPTED) for unit in old_scene.units(7))
    assert cached(old_scene)
    old_scene.reset(8)
    # Where something is rejected as well, or the file was changed outside, there is more to say.
    old_scene.decide(Action.REJECT, 40)
    other = old_scene.write("other", TEN)
    (old_scene.root / "other").write_bytes(TEN + b"more\n")
    kept_on = old_scene.decide(Action.ACCEPT, other, 8, on_external=OnExternal.KEEP)
    assert isinstance(kept_on, Decided)
    assert [view.edit.path for view in kept_on.external] == [b"other"]
    assert old_scene.statuses()[other] is old_scene.statuses()[8] is Status.ACCEPTED


def test_cached_weave_equals_a_replay(old_scene: Scene, tmp_path: Path) -> None:
    old_scene.decide(Action.REJECT, 20)
    old_scene.decide(Action.REJECT, 50)
    copy = old_scene.copy_to(tmp_path / "copy")
    try:
        for number in range(2):
            assert cached(old_scene)
            shutil.rmtree(copy.root / ".cas" / "cache", ignore_errors=True)
            for each in (old_scene, copy):
                each.write("f", (each.text("f") or b"") + b"more %d\n" % number)
            edits = range(1 + number, 81, 7)
            assert toggle(old_scene, edits) == toggle(copy, edits)
            assert old_scene.statuses() == copy.statuses()
    finally:
        copy.close()


def test_moves_modes_and_deletions_survive_caching(old_scene: Scene) -> None:
    move = old_scene.move("f", "g")
    mode = old_scene.write("g", old_scene.text("g") or b"", mode=0o755)
    gone = old_scene.delete("g")
    old_scene.reject(gone)
    assert cached(old_scene)
    old_scene.reopen()
    old_scene.reject(mode)
    assert old_scene.mode("g") == 0o644
    old_scene.reject(move)
    assert old_scene.text("g") is None
    old_scene.accept(gone)
    assert old_scene.text("f") is None


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def set_other_version(path: Path) -> None:
    path.write_bytes(b"casweav2" + path.read_bytes()[8:])


def with_hash(content: bytes) -> bytes:
    """Return what any program could write: the hash of the cached state has no key."""
    return b"casweav7" + blob_id(content) + content


def no_zstd(path: Path) -> None:
    path.write_bytes(with_hash(b"junk"))


def no_msgpack(path: Path) -> None:
    path.write_bytes(with_hash(ZstdCompressor().compress(b"\xc1")))


def no_weave(path: Path) -> None:
    path.write_bytes(with_hash(ZstdCompressor().compress(packb([[1, b"", 0, None], [1], {}]))))


def no_sense(path: Path) -> None:
    """Change only one number of the weave, to a unit that does not exist."""
    position, state, columns = unpackb(ZstdDecompressor().decompress(path.read_bytes()[8 + 32 :]))
    columns[12] = b"\xff" * len(columns[12])
    path.write_bytes(with_hash(ZstdCompressor().compress(packb((position, state, columns)))))


def no_lengths(path: Path) -> None:
    """Change only one column, to a fractional number of values."""
    position, state, columns = unpackb(ZstdDecompressor().decompress(path.read_bytes()[8 + 32 :]))
    columns[13] += b"\0"
    path.write_bytes(with_hash(ZstdCompressor().compress(packb((position, state, columns)))))


def no_end(path: Path) -> None:
    """Claim that a few bytes decompress to 2^60."""
    path.write_bytes(with_hash(b"\x28\xb5\x2f\xfd\xe0" + (1 << 60).to_bytes(8, "little") + b"\x01\x00\x00"))


SENSELESS: Final = [no_zstd, no_msgpack, no_weave, no_sense, no_lengths, no_end]


@pytest.fixture(scope="module")
def toggled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[str, bytes | None]]]:
    """Return a workspace with a cached weave, and what toggling edits 60 to 63 gave there."""
    root = tmp_path_factory.mktemp("toggled") / "workspace"
    with contextlib.closing(Scene(root)) as scene:
        long_history(scene)
        return root, toggle(scene, range(60, 64))


@pytest.mark.parametrize(
    "harm", [truncate, flip_bit, empty, replace_by_folder, set_other_version, Path.unlink, *SENSELESS]
)
def test_damaged_cached_weave_is_not_used(
    toggled: tuple[Path, list[tuple[str, bytes | None]]], tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    root, before = toggled
    with contextlib.closing(Scene(shutil.copytree(root, tmp_path / "workspace", symlinks=True))) as scene:
        (path,) = cached(scene)
        harm(path)
        assert check_store(str(scene.root)).faults == ()
        assert toggle(scene, range(60, 64)) == before


def test_a_cached_state_of_another_document_or_store_is_not_trusted(old_scene: Scene, tmp_path: Path) -> None:
    old_scene.write("g", b"g\n")
    before = toggle(old_scene, range(70, 72))
    (path,) = cached(old_scene)
    shutil.copy(path, path.with_name("weave-81"))
    old_scene.reject(81)
    assert old_scene.text("g") is None

    other = Scene(tmp_path / "other")
    try:
        long_history(other, edits=90)
        other.decide(Action.REJECT, 50)
        shutil.copy(cached(other)[0], path)
    finally:
        other.close()
    assert toggle(old_scene, range(70, 72)) == before


def test_a_cached_state_of_another_past_is_not_trusted(old_scene: Scene) -> None:
    """A cached state names the records it is based on: a history that lost its end and got another is replayed."""
    short = old_scene.copy_to(old_scene.root.with_name("earlier"))
    old_scene.write("f", b"one text\n")
    old_scene.decide(Action.REJECT, 30)
    (path,) = cached(old_scene)
    try:
        (short.root / ".cas" / "cache").mkdir()
        shutil.copy(path, short.root / ".cas" / "cache" / path.name)
        short.write("f", b"quite another text\n")
        short.reject(81)
        assert short.text("f") != b"quite another text\n"
    finally:
        short.close()


def test_unwritable_cache_folder_only_costs_time(old_scene: Scene) -> None:
    (old_scene.root / ".cas" / "cache").write_bytes(b"in the way")
    old_scene.decide(Action.REJECT, 30)
    old_scene.decide(Action.REJECT, 31)
    assert (old_scene.root / ".cas" / "cache").read_bytes() == b"in the way"


def test_previewing_a_decision_on_a_cached_state_changes_nothing(old_scene: Scene) -> None:
    old_scene.decide(Action.REJECT, 30)
    before = old_scene.everything()
    old_scene.decide(Action.REJECT, 70, dry_run=True)
    assert old_scene.everything() == before


# ---- states read in bulk


def test_states_read_as_differences_match_their_hashes(old_scene: Scene) -> None:
    """Over more deltas than one chain has, decisions, moves, a deletion, and states that existed before."""
    old_scene.decide(Action.REJECT, 30)
    old_scene.move("f", "g")
    before = old_scene.text("g")
    old_scene.write("g", b"all new\n")
    old_scene.write("g", before or b"")
    old_scene.write("g", b"\0binary\n" * 9)
    old_scene.delete("g")
    old_scene.write("g", b"")
    old_scene.write("g", b"once more\n", mode=0o755)
    with contextlib.closing(Journal(str(old_scene.root), Disk())) as journal, journal.reading():
        quick = load_document(journal, DocumentId(1))
        thorough = load_document(journal, DocumentId(1), ignore_cache=True)
        assert quick.state() == thorough.state()
        assert quick.version() == thorough.version()


def test_a_final_newline_removed_by_a_change_above_stays_removed(scene: Scene) -> None:
    """The state is stored as a keyframe, of which a replay reads no more than the hunks need."""
    scene.write("f", b"p\nq\nr\ns\n")
    one = scene.write("f", b"p\nq\nr\nS\n")
    scene.write("f", b"p\nQ\nr\nS")
    scene.reject(one)
    assert scene.text("f") == b"p\nQ\nr\ns"
    scene.accept(one)
    assert scene.text("f") == b"p\nQ\nr\nS"


@pytest.mark.parametrize("seed", range(9, 21))
def test_states_read_from_frames_equal_their_bytes(scene: Scene, seed: int) -> None:
    """For each run of the weave, including those that the last state hides; most short texts are keyframes."""
    draw = random.Random(seed)
    lines = [b"%d\n" % number for number in range(6)]
    for number in range(8):
        at = draw.randrange(len(lines))
        lines[at : at + draw.randrange(3)] = [b"edit %d\n" % number] * draw.randrange(1, 3)
        scene.write("f", b"".join(lines)[: draw.choice((None, -1))])
    scene.write("f", b"0\n")
    with contextlib.closing(Journal(str(scene.root), Disk())) as journal, journal.reading():
        quick = load_document(journal, DocumentId(1))
        assert quick.state() == load_document(journal, DocumentId(1), ignore_cache=True).state()


STATE: Final = FileState(blob=blob_id(TEN), mode=0o644)
CREATED: Final = ReplayEdit(
    Seq(1), DocumentId(1), b"a", None, None, STATE, (), Status.PENDING, None, changes_whole=True, is_meant=True
)


def test_an_edit_at_another_path_breaks_the_history() -> None:
    state = FileState(blob=blob_id(TEN), mode=0o644)
    created = ReplayEdit(
        Seq(1), DocumentId(1), b"a", None, None, state, (), Status.PENDING, None, changes_whole=True, is_meant=True
    )
    document = Document.before_edit(created, None)
    document.add(created, TEN)
    for path, source in ((b"b", None), (b"c", b"b")):
        with pytest.raises(HistoryBroken, match="another state"):
            document.add(created._replace(seq=Seq(2), path=path, source=source, before=state), TEN)
    document.add(created._replace(seq=Seq(2), path=b"b", source=b"a", before=state), TEN)
    assert document.version().path == b"b"


def test_a_state_with_other_bytes_than_its_name_is_detected(scene: Scene) -> None:
    """A frame with a correct checksum whose delta leads to other bytes than those of its name."""
    scene.write("f", TEN)
    after = TEN.replace(b"5", b"five")
    (scene.root / "f").write_bytes(after)
    base = Base(id=blob_id(TEN), content=TEN, depth=0)
    _, lie = encode_blob(TEN.replace(b"5", b"FIVE"), base, name=blob_id(after))
    with contextlib.closing(Journal(str(scene.root), Disk())) as journal:
        with journal.writing() as batch:
            journal.store.append([(FrameKind.BLOB, lie)])
            states = [Version(content=each, state=FileState(blob=blob_id(each), mode=0o644)) for each in (TEN, after)]
            Recorder(journal, batch).record_found(
                [
                    (
                        Change(
                            document=DocumentId(1),
                            operation=Operation.EDIT,
                            path=b"f",
                            source=None,
                            before=states[0],
                            after=states[1],
                            hunks=None,
                            origin=Origin.EXTERNAL,
                        ),
                        EXTERNAL_CALL,
                    )
                ]
            )
            journal.commit(batch, [])
        with journal.reading(), pytest.raises(BlobDamaged):
            load_document(journal, DocumentId(1))


def test_a_long_running_process_frees_replayed_documents(scene: Scene) -> None:
    """The units and runs of a weave refer to each other, so only the garbage collector frees them."""
    long_history(scene, edits=450)
    ran = subprocess.run([sys.executable, "-c", DECIDING, scene.root], capture_output=True, check=True)
    objects = [int(line) for line in ran.stdout.split()]
    assert max(objects) < objects[0] + 2 * 50_000, objects


def test_edits_recorded_by_another_process_during_a_replay_do_not_break_it(scene: Scene) -> None:
    scene.write("f", TEN)
    for number in range(3):
        scene.write("f", TEN + b"%d\n" % number)
    journal = scene.workspace._journal  # noqa: SLF001 - to trace its queries
    with Workspace.open(scene.root) as other, journal.reading() as store:
        asked: list[str] = []

        def meanwhile(question: str) -> None:
            asked.append(question)
            with other.call(CallInfo(tool="test")) as call:
                call.write("f", TEN + b"after question %d\n" % len(asked))
                call.commit()
            other.review.status()  # so that the index has it

        db = store.index._db.connection  # noqa: SLF001 - as above
        db.set_trace_callback(meanwhile)
        try:
            found = load_document(journal, DocumentId(1))
        finally:
            db.set_trace_callback(None)
    assert len(asked) > 3
    assert found.last in range(4, 4 + len(asked))
    assert scene.workspace.history.edits()[-1].seq == 4 + len(asked)
    with journal.reading():
        assert load_document(journal, DocumentId(1)).last == 4 + len(asked)
