"""Kept states: opening a file with a long history is quick, and nothing is ever believed of them that isn't so."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from objstore import Seq, Unit
from tests.workspace.scene import Scene


def kept(scene: Scene) -> list[Path]:
    return sorted((scene.root / ".cas" / "cache").glob("*"))


def long_history(scene: Scene, edits: int = 80, path: str = "f") -> None:
    """Edit a file many times: changes, insertions, deletions, a move, all sorts of final newlines."""
    draw = random.Random(edits)
    lines = [b"line %d\n" % number for number in range(30)]
    scene.write(path, b"".join(lines))
    for number in range(edits - 1):
        at = draw.randrange(len(lines))
        lines[at : at + draw.choice((0, 1, 1, 1, 2))] = [b"edit %d\n" % number] * draw.choice((0, 1, 1, 2))
        lines = lines or [b"again\n"]
        scene.write(path, b"".join(lines)[: -1 if draw.random() < 0.1 else None])


def toggled(scene: Scene, seqs: range) -> list[tuple[str, bytes | None]]:
    """Return how each edit's rejection ends, and what the file then holds; each is taken back."""
    found = []
    for seq in seqs:
        outcome = scene.decide_all(seq)
        found.append((type(outcome).__name__, scene.text("f")))
        if found[-1][0] == "Decided":
            scene.undo()
    return found


def test_a_long_history_is_kept_and_a_short_one_is_not(scene: Scene) -> None:
    scene.write("short", b"a\n")
    scene.reject(1)
    assert kept(scene) == []
    long_history(scene)
    scene.decide_all(40)
    assert [path.name for path in kept(scene)] == ["weave-2"]


def test_a_kept_state_answers_as_a_replay_does(scene: Scene, tmp_path: Path) -> None:
    long_history(scene)
    scene.decide_all(20)
    scene.decide_all(50)
    copy = scene.copy_to(tmp_path / "copy")
    try:
        for number in range(2):
            assert kept(scene)
            shutil.rmtree(copy.root / ".cas" / "cache", ignore_errors=True)
            for at in (scene, copy):
                at.write("f", (at.text("f") or b"") + b"more %d\n" % number)
            assert toggled(scene, range(1, 81)) == toggled(copy, range(1, 81))
            assert scene.statuses() == copy.statuses()
    finally:
        copy.close()


def test_moves_modes_and_deletions_outlast_being_kept(scene: Scene) -> None:
    long_history(scene)
    move = scene.move("f", "g")
    mode = scene.write("g", scene.text("g") or b"", mode=0o755)
    gone = scene.delete("g")
    scene.reject(gone)
    assert kept(scene)
    scene.reopen()
    scene.reject(mode)
    assert scene.mode("g") == 0o644
    scene.reject(move)
    assert scene.text("g") is None
    scene.accept(gone)
    assert scene.text("f") is None


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def replaced_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def of_another_version(path: Path) -> None:
    path.write_bytes(b"casweav0" + path.read_bytes()[8:])


@pytest.mark.parametrize("harm", [cut, flipped, emptied, replaced_by_folder, of_another_version, Path.unlink])
def test_a_harmed_kept_state_is_not_believed(scene: Scene, harm: Callable[[Path], None]) -> None:
    long_history(scene)
    before = toggled(scene, range(60, 64))
    (path,) = kept(scene)
    harm(path)
    assert toggled(scene, range(60, 64)) == before


def test_a_kept_state_of_another_document_or_store_is_not_believed(scene: Scene, tmp_path: Path) -> None:
    long_history(scene)
    scene.write("g", b"g\n")
    before = toggled(scene, range(70, 72))
    (path,) = kept(scene)
    shutil.copy(path, path.with_name("weave-81"))
    scene.reject(81)
    assert scene.text("g") is None

    other = Scene(tmp_path / "other")
    try:
        long_history(other, edits=90)
        other.decide_all(50)
        shutil.copy(kept(other)[0], path)
    finally:
        other.close()
    assert toggled(scene, range(70, 72)) == before


def test_a_kept_state_from_before_a_call_that_was_taken_back_is_not_ahead(scene: Scene) -> None:
    """What is kept names the records behind it: a history that lost its end is replayed."""
    long_history(scene)
    scene.close()
    earlier = scene.root.with_name("earlier")
    shutil.copytree(scene.root, earlier)
    scene.reopen_closed()
    scene.decide_all(30)
    (path,) = kept(scene)

    short = Scene(earlier)
    try:
        (earlier / ".cas" / "cache").mkdir(exist_ok=True)
        shutil.copy(path, earlier / ".cas" / "cache" / path.name)
        short.write("f", b"quite another text\n")
        short.reject(81)
        assert short.text("f") != b"quite another text\n"
    finally:
        short.close()


def test_a_folder_that_can_not_be_written_costs_nothing_but_time(scene: Scene) -> None:
    long_history(scene)
    (scene.root / ".cas" / "cache").write_bytes(b"in the way")
    scene.decide_all(30)
    scene.decide_all(31)
    assert (scene.root / ".cas" / "cache").read_bytes() == b"in the way"


def test_looking_at_a_decision_from_a_kept_state_changes_nothing(scene: Scene) -> None:
    long_history(scene)
    scene.decide_all(30)
    before = scene.everything()
    scene.workspace.decide(action_reject(), [Unit(Seq(70), 1)], dry_run=True)
    assert scene.everything() == before
