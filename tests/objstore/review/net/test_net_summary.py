"""Net changes without texts: the same as with texts, whatever happened since they were cached."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from hypothesis import given, settings, strategies as st

from objstore import Action, EditTakenOut, FileSummary, Unit, blob_id
from objstore.review.net import net_summary, net_view
from tests.support.scene import TEN, Scene, writes

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

CACHE = ".cas/cache/changes"


def facts(scene: Scene) -> list[object]:
    """Return what the net changes with texts say."""
    return [
        (
            (file.path, file.path_before, file.document, file.operation, file.mode_before, file.mode),
            [
                (
                    (change.kind, change.line_before, change.line_after),
                    (change.removed_lines, change.inserted_lines, change.units, change.shares_with, change.key),
                )
                for change in file.changes
            ],
            (file.cancelled, file.kept_on, file.is_binary, file.size_before, file.size, file.is_unrecorded),
            (file.added, file.removed, file.units),
        )
        for file in scene.workspace.review.changes()
    ]


def summarized(files: list[FileSummary]) -> list[object]:
    return [
        (
            (file.path, file.path_before, file.document, file.operation, file.mode_before, file.mode),
            [
                (
                    (change.kind, change.line_before, change.line_after),
                    (change.removed_lines, change.inserted_lines, change.units, change.shares_with, change.key),
                )
                for change in file.changes
            ],
            (file.cancelled, file.kept_on, file.is_binary, file.size_before, file.size, file.is_unrecorded),
            (file.added, file.removed, file.units),
        )
        for file in files
    ]


def steps() -> dict[str, Callable[[Scene, int], object]]:
    """Return what may happen in a workspace, by name; `n` makes one step differ from another."""

    def exists(scene: Scene, path: str) -> bool:
        return (scene.root / path).exists()

    def decide(scene: Scene, action: Action, n: int) -> None:
        views = scene.workspace.history.edits()
        units = [Unit(view.seq, hunk) for view in views for hunk in range(len(view.units))]
        if units:
            with suppress(EditTakenOut):
                scene.workspace.decide(action, [units[n % len(units)]])

    return {
        "write": lambda scene, n: scene.call(writes("f", TEN.replace(b"%d\n" % (n % 10), b"x%d\n" % n))),
        "write binary": lambda scene, n: scene.call(writes("g", b"\0%d" % n)),
        "write back": lambda scene, _: scene.call(writes("f", TEN)),
        "delete": lambda scene, _: exists(scene, "f") and scene.delete("f"),
        "move": lambda scene, n: exists(scene, "f") and scene.move("f", f"h{n}"),
        "mode": lambda scene, n: scene.call(writes("f", TEN, mode=(0o644, 0o755)[n % 2])),
        "accept": lambda scene, n: decide(scene, Action.ACCEPT, n),
        "reject": lambda scene, n: decide(scene, Action.REJECT, n),
        "reset": lambda scene, n: decide(scene, Action.RESET, n),
        "undo": lambda scene, _: scene.workspace.review.undo(),
        "change outside": lambda scene, n: (scene.root / "g").write_bytes(b"outside %d\n" % n),
        "forget the index": lambda scene, _: scene.forget_index(),
    }


@settings(max_examples=settings().max_examples // 3)
@given(st.lists(st.tuples(st.sampled_from(sorted(steps())), st.integers(0, 40)), min_size=1, max_size=12))
def test_summaries_say_what_the_changes_say(
    tmp_path_factory: pytest.TempPathFactory, happening: list[tuple[str, int]]
) -> None:
    scene = Scene(tmp_path_factory.mktemp("scene"))
    try:
        for name, n in happening:
            steps()[name](scene, n)
            assert summarized(scene.workspace.review.change_summaries()) == facts(scene), name
    finally:
        scene.close()
        shutil.rmtree(scene.root)


def test_only_documents_with_new_records_are_computed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        scene.write(name, TEN)
    scene.workspace.review.change_summaries()
    computed: list[int] = []
    real = net_view.net_file

    def counted(journal: object, document: int, *, is_unrecorded: bool) -> object:
        computed.append(document)
        return real(journal, document, is_unrecorded=is_unrecorded)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(net_view, "net_file", counted)
    scene.workspace.review.change_summaries()
    assert computed == []
    scene.edit("b", b"3\n", b"three\n")
    scene.workspace.review.change_summaries()
    assert computed == [2]
    scene.reject("4:1")
    scene.reopen()
    assert [file.added for file in scene.workspace.review.change_summaries()] == [10, 10, 10]
    assert computed == [2, 2]


def test_what_takes_long_is_put_off_until_the_next_calls(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        scene.write(f"f{number}", TEN)
    monkeypatch.setattr(net_summary, "_MOST_SECONDS", -1.0)
    review = scene.workspace.review
    for rest in (4, 3, 2, 1, 0):
        put_off: list[str] = []
        files = review.change_summaries(put_off=lambda _, path, found=put_off: found.append(path))  # type: ignore[misc]  # the list is bound
        assert len(put_off) == rest
        assert sorted([*put_off, *(file.path for file in files)]) == [f"f{number}" for number in range(5)]


def test_summaries_are_filtered_as_changes_are(scene: Scene) -> None:
    scene.accept(scene.write("f", TEN))
    scene.write("g", b"1\n")
    scene.edit("f", b"3\n4\n5\n", b"three\nfour\nfive\n")
    scene.edit("f", b"four\n", b"4\n")
    scene.edit("f", b"9\n", b"nine\n")
    for _ in range(2):  # computed, then cached
        [file] = scene.workspace.review.change_summaries(units=scene.units("3:1"))
        assert [change.shares_with for change in file.changes] == [(1,), (0,)]
        assert (file.added, file.removed) == (2, 2)
        assert [file.path for file in scene.workspace.review.change_summaries(["g"])] == ["g"]


def test_a_damaged_cache_is_computed_again(scene: Scene) -> None:
    scene.write("f", TEN)
    known = scene.workspace.review.change_summaries()
    cache = scene.root / CACHE
    whole = cache.read_bytes()
    for content in (b"", whole[:-1], whole[:50] + b"\0" + whole[51:], b"casnets2" + bytes(40), whole + b"x"):
        cache.write_bytes(content)
        assert scene.workspace.review.change_summaries() == known
    cache.unlink()
    cache.symlink_to(scene.root / "f")
    assert scene.workspace.review.change_summaries() == known
    assert scene.text("f") == TEN


def test_a_purge_deletes_the_cache(scene: Scene) -> None:
    scene.write("f", b"secret\n")
    scene.accept(scene.write("f", TEN))
    assert scene.workspace.review.change_summaries()
    assert (scene.root / CACHE).exists()
    scene.workspace.retention.purge([blob_id(b"secret\n")], force=True, who="t")
    assert not (scene.root / CACHE).exists()
