"""Changes that a reviewer has looked at: a note that may be lost or forged, and never gets in the way."""

import os
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest

from objstore import NetChange, Workspace, blob_id
from tests.support.scene import TEN, Scene

SEEN = ".cas/cache/seen"


def changes(scene: Scene) -> list[NetChange]:
    return [change for file in scene.workspace.review.changes() for change in file.changes]


def unseen(scene: Scene) -> list[str]:
    files = scene.workspace.review.unseen(scene.workspace.review.changes())
    return [" ".join(map(str, change.units)) for file in files for change in file.changes]


def test_a_change_is_known_by_its_text_and_its_hunks_wherever_it_is(scene: Scene) -> None:
    scene.accept(scene.write("f", TEN))
    scene.edit("f", b"3\n", b"three\n")
    (before,) = changes(scene)
    scene.edit("f", b"1\n", b"0\n1\n")
    (_, moved) = changes(scene)
    assert (moved.key, moved.line_after) == (before.key, before.line_after + 1)
    scene.edit("f", b"three\n", b"Three\n")
    assert before.key not in {change.key for change in changes(scene)}
    scene.reject("4:1")
    assert before.key in {change.key for change in changes(scene)}


def test_changes_with_one_text_are_distinguished(scene: Scene) -> None:
    for name in ("f", "g"):
        scene.accept(scene.write(name, TEN))
        scene.edit(name, b"3\n", b"three\n")
        scene.edit(name, b"7\n", b"")
        scene.edit(name, b"9\n", b"")
    found = changes(scene)
    assert len({change.key for change in found}) == len(found) == 6


def test_seen_changes_are_counted_and_left_out(scene: Scene) -> None:
    scene.accept(scene.write("f", TEN))
    scene.edit("f", b"3\n", b"three\n")
    scene.edit("f", b"9\n", b"nine\n")
    review = scene.workspace.review
    assert review.seen_counts() is None
    assert unseen(scene) == ["2:1", "3:1"]
    review.mark_seen([changes(scene)[0].key])
    assert review.seen_counts() == (2, 1)
    assert unseen(scene) == ["3:1"]
    scene.reopen()
    assert scene.workspace.review.seen_counts() == (2, 1)


def test_a_seen_change_is_shown_with_a_new_one_that_shares_its_hunk(scene: Scene) -> None:
    scene.accept(scene.write("f", TEN))
    scene.edit("f", b"2\n3\n4\n", b"two\nthree\nfour\n")
    scene.edit("f", b"three\n", b"3\n")
    scene.workspace.review.mark_seen([changes(scene)[0].key])
    (file,) = scene.workspace.review.unseen(scene.workspace.review.changes())
    assert [change.shares_with for change in file.changes] == [(1,), (0,)]


def put_link(path: Path) -> None:
    path.symlink_to("../../f")


def put_second_name(path: Path) -> None:
    os.link(path.parent.parent.parent / "f", path)


@pytest.mark.parametrize(
    "put",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\0\xff" * 5000 + b"\n\n" + b"g" * 32 + b"\n"),
        lambda path: path.write_bytes(b"0" * (3 << 20)),
        os.mkfifo,
        put_link,
        put_second_name,
    ],
)
def test_whatever_has_its_name_nothing_is_seen_and_the_next_mark_counts(
    scene: Scene, put: Callable[[Path], object]
) -> None:
    scene.write("f", TEN)
    (scene.root / SEEN).parent.mkdir(exist_ok=True)
    put(scene.root / SEEN)
    review = scene.workspace.review
    assert review.seen_changes() == frozenset()
    assert review.seen_counts() is None
    (change,) = changes(scene)
    review.mark_seen([change.key])
    assert change.key in review.seen_changes()
    assert scene.text("f") == TEN


def test_a_torn_line_costs_no_more_than_the_next_one(scene: Scene) -> None:
    scene.write("f", TEN)
    keys = [bytes([n]) * 16 for n in range(3)]
    scene.workspace.review.mark_seen(keys[:1])
    with (scene.root / SEEN).open("ab") as file:
        file.write(b"0123")
    scene.workspace.review.mark_seen(keys[1:2])
    scene.workspace.review.mark_seen(keys[2:])
    assert scene.workspace.review.seen_changes() == {keys[0], keys[2]}


def test_the_file_stays_small_and_keeps_the_newest(scene: Scene) -> None:
    scene.write("f", TEN)
    keys = [n.to_bytes(16) for n in range(40_000)]
    scene.workspace.review.mark_seen(keys)
    scene.workspace.review.mark_seen([b"x" * 16])
    assert (scene.root / SEEN).stat().st_size < 1 << 20
    seen = scene.workspace.review.seen_changes()
    assert {b"x" * 16, keys[-1]} <= seen
    assert keys[0] not in seen


def _mark(root: str, first: int) -> None:
    with Workspace.open(root) as workspace:
        for number in range(first, first + 200):
            workspace.review.mark_seen([number.to_bytes(16)])


def test_marks_of_two_reviewers_at_once_are_all_kept(scene: Scene) -> None:
    scene.write("f", TEN)
    processes = [get_context("spawn").Process(target=_mark, args=(str(scene.root), first)) for first in (0, 1000)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(scene.workspace.review.seen_changes()) == 400


def test_a_purge_deletes_the_marks(scene: Scene) -> None:
    scene.write("f", b"secret\n")
    scene.workspace.review.mark_seen([changes(scene)[0].key])
    scene.accept(scene.write("f", TEN))
    scene.workspace.retention.purge([blob_id(b"secret\n")], force=True, who="t")
    assert not (scene.root / SEEN).exists()
