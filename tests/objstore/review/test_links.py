"""Symbolic links are states: recorded as git does, toggled like edits, and never followed."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

import pytest
from hypothesis import given, settings, strategies as st

from objstore import (
    Action,
    CallInfo,
    Conflicted,
    Decided,
    ExternalChanges,
    FileExists,
    OnExternal,
    Operation,
    PathIsSymlink,
    check_store,
)
from objstore.model.basic_types import LINK_MODE
from objstore.model.ids import blob_id
from tests.support.scene import Scene

AGENT: Final = CallInfo(tool="Bash", conversation="conv_shell", notes={"agent": "tester"})

Entry: TypeAlias = bytes | str | None
"""What is at a path: a file's bytes, a link's text, or nothing."""

PATHS: Final = ("a", "b", "d", "d/x", "d/y", "e/x")
ENTRIES: Final = (
    b"one\n",
    b"two\nlines\n",
    b"",
    "a",
    "d",
    "e",
    "d/x",
    "../outside",
    "../outside/secret",
    "/etc",
    "a\nb",
    None,
)


def put(root: Path, path: str, entry: Entry) -> None:
    """Put an entry in place, whatever is in its way."""
    for above in reversed(Path(path).parents[:-1]):
        if (root / above).is_symlink() or (root / above).is_file():
            (root / above).unlink()
    place = root / path
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    elif os.path.lexists(place):
        place.unlink()
    if entry is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(entry) if isinstance(entry, str) else place.write_bytes(entry)


def entries(root: Path) -> dict[str, Entry]:
    """Return every file and link below a folder."""
    found: dict[str, Entry] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".cas"]
        for name in (*names, *folders):
            place = Path(folder, name)
            if place.is_symlink():
                found[str(place.relative_to(root))] = str(place.readlink())
            elif place.is_file():
                found[str(place.relative_to(root))] = place.read_bytes()
    return found


def recorded(scene: Scene, *changes: tuple[str, Entry]) -> list[int]:
    """Change files and links as an agent's shell would, and record that; return the numbers of the edits."""
    for path, entry in changes:
        put(scene.root, path, entry)
    return [view.seq for view in scene.workspace.record_changes(AGENT).edits]


changes = st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from(ENTRIES)), min_size=1, max_size=3)


@settings(max_examples=max(settings().max_examples // 5, 12))
@given(first=changes, steps=st.lists(changes, min_size=1, max_size=4))
def test_toggles_of_files_links_and_folders_give_back_identical_states(
    first: list[tuple[str, Entry]], steps: Sequence[list[tuple[str, Entry]]]
) -> None:
    with TemporaryDirectory() as made:
        outside = Path(made, "outside")
        outside.mkdir()
        (outside / "secret").write_bytes(b"not ours\n")
        scene = Scene(Path(made, "ws"))
        for path, entry in first:
            put(scene.root, path, entry)
        scene.workspace.record_changes(AGENT)
        before = entries(scene.root)
        seqs = [seq for step in steps for seq in recorded(scene, *step)]
        after = entries(scene.root)
        assert scene.workspace.review.external_changes() == ()
        if seqs:
            scene.reject(*seqs)
            assert entries(scene.root) == before
            scene.accept(*seqs)
            assert entries(scene.root) == after
            scene.undo()
            assert entries(scene.root) == before
            scene.undo()
            assert entries(scene.root) == after
            scene.forget_index()
            for seq in seqs:
                outcome = scene.decide(Action.REJECT, seq)
                assert isinstance(outcome, Decided | Conflicted)
                texts = {entry for entry in entries(scene.root).values() if isinstance(entry, str)}
                assert texts <= set(ENTRIES)  # no link has a mixture of texts
                if isinstance(outcome, Decided):
                    scene.undo()
                assert entries(scene.root) == after
        assert recorded(scene) == []
        assert entries(outside) == {"secret": b"not ours\n"}
        assert not check_store(str(scene.root)).faults
        scene.close()


def test_a_link_is_recorded_by_its_text_with_gits_mode(scene: Scene) -> None:
    scene.workspace.record_changes(AGENT)
    (seq,) = recorded(scene, ("l", "../outside/secret"))
    edit = scene.view(seq).edit
    assert edit.operation is Operation.CREATE
    assert edit.after is not None
    assert (edit.after.blob, edit.after.mode) == (blob_id(b"../outside/secret"), LINK_MODE)


@pytest.mark.parametrize(
    "text", ["/etc/passwd", "../outside", ".cas/lock", "l", "nowhere/x", "a\nb", "a/" * 2000 + "b"]
)
def test_any_text_comes_back_and_nothing_follows_it(scene: Scene, text: str) -> None:
    put(scene.root, "l", "a")
    scene.workspace.record_changes(AGENT)
    one = recorded(scene, ("l", text))
    two = recorded(scene, ("l", None))
    scene.reject(*two)
    assert entries(scene.root) == {"l": text}
    scene.reject(*one)
    assert entries(scene.root) == {"l": "a"}


def test_a_link_that_a_file_replaced_comes_back_with_both_edits(scene: Scene) -> None:
    put(scene.root, "a", b"rules\n")
    put(scene.root, "l", "a")
    scene.workspace.record_changes(AGENT)
    gone, made = recorded(scene, ("l", b"RULES\n"))
    assert [scene.view(seq).edit.operation for seq in (gone, made)] == [Operation.DELETE, Operation.CREATE]
    assert scene.refused(Action.REJECT, gone)  # its path is taken
    scene.reject(gone, made)
    assert entries(scene.root) == {"a": b"rules\n", "l": "a"}
    scene.undo()
    assert entries(scene.root) == {"a": b"rules\n", "l": b"RULES\n"}


def test_retargeting_twice_is_decided_as_a_whole(scene: Scene) -> None:
    put(scene.root, "l", "first\nline")
    scene.workspace.record_changes(AGENT)
    (one,) = recorded(scene, ("l", "second\nline"))
    (two,) = recorded(scene, ("l", "second\nother"))
    assert scene.refused(Action.REJECT, one)
    scene.reject(two)
    scene.reject(one)
    assert entries(scene.root) == {"l": "first\nline"}


def test_a_folder_that_a_link_to_outside_replaced_comes_back_and_outside_stays(scene: Scene, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "x").write_bytes(b"not ours\n")
    put(scene.root, "d/x", b"x\n")
    scene.workspace.record_changes(AGENT)
    seqs = recorded(scene, ("d", str(outside)))
    scene.reject(*seqs)
    assert entries(scene.root) == {"d/x": b"x\n"}
    scene.undo()
    assert entries(scene.root) == {"d": str(outside)}
    assert entries(outside) == {"x": b"not ours\n"}


def test_a_call_of_a_tool_refuses_links(scene: Scene) -> None:
    put(scene.root, "a", b"a\n")
    put(scene.root, "l", "a")
    scene.workspace.record_changes(AGENT)
    for change in (
        lambda call: call.write("l", b"x"),
        lambda call: call.delete("l"),
        lambda call: call.move("l", "m"),
        lambda call: call.read("l"),
    ):
        with pytest.raises(PathIsSymlink):
            scene.call(change)
    assert entries(scene.root) == {"a": b"a\n", "l": "a"}


def test_a_link_changed_since_is_not_overwritten(scene: Scene) -> None:
    put(scene.root, "l", "a")
    scene.workspace.record_changes(AGENT)
    (seq,) = recorded(scene, ("l", "b"))
    put(scene.root, "l", b"a person's file\n")
    assert isinstance(scene.decide(Action.REJECT, seq), ExternalChanges)
    with pytest.raises(FileExists):
        scene.decide(Action.REJECT, seq, on_external=OnExternal.DISCARD)
    assert isinstance(scene.decide(Action.REJECT, seq, on_external=OnExternal.KEEP), Decided)
    assert entries(scene.root) == {"l": b"a person's file\n"}
