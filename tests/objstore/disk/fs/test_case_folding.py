"""Test file systems that find a file by names other than its own, as on macOS and FAT: one file, one history.

The tests simulate which file such a system finds; the files and folders are real.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

import pytest

from objstore import Action, CallInfo, FileExists, PathOutside, PathReserved
from objstore.disk.fs.confined_path import Tree
from tests.support.scene import Scene, lines


def folded(name: str) -> str:
    return normalize("NFC", name).casefold()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    def is_found(folder: int, name: str) -> bool:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        try:
            with os.scandir(fd) as found:
                return folded(name) in {folded(entry.name) for entry in found}
        finally:
            os.close(fd)

    monkeypatch.setattr("objstore.disk.fs.reserved_names._is_found", is_found)
    scene = Scene(tmp_path / "ws")
    yield scene
    scene.close()


def test_a_file_has_one_history_by_every_form_of_its_name(scene: Scene) -> None:
    scene.write("Docs/ReadMe.md", lines("one two three"))
    first = scene.edit("docs/README.md", b"one", b"1")
    second = scene.edit("DOCS/readme.MD", b"three", b"3")
    assert {scene.view(seq).edit.path for seq in (first, second)} == {b"Docs/ReadMe.md"}
    assert names_in(scene.root / "Docs") == ["ReadMe.md"]
    scene.reject(first)
    assert scene.text("Docs/ReadMe.md") == lines("one two 3")
    assert scene.workspace.read("docs/readme.md").path == "Docs/ReadMe.md"
    assert scene.external() == {}
    assert scene.delete("docs/readme.md")
    assert scene.workspace.relative("docs") == "Docs"


def test_a_letter_composed_otherwise_is_the_same(scene: Scene) -> None:
    name = "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
    scene.write(normalize("NFD", name), lines("one two"))
    scene.edit(normalize("NFC", name), b"two", b"2")
    assert names_in(scene.root) == [".cas", normalize("NFD", name)]
    assert scene.text(normalize("NFD", name)) == lines("one 2")


def test_a_new_file_in_a_known_folder_is_recorded_in_that_folder(scene: Scene) -> None:
    scene.write("Docs/a", lines("one"))
    seq = scene.write("docs/New/b", lines("two"))
    assert scene.view(seq).edit.path == b"Docs/New/b"
    assert names_in(scene.root) == [".cas", "Docs"]


def test_a_file_with_an_equal_name_blocks_a_move(scene: Scene) -> None:
    scene.write("a", lines("one"))
    scene.write("b", lines("two"))
    with pytest.raises(FileExists):
        scene.move("a", "B")


def test_bounds_and_reserved_names_hold_in_every_form_of_a_name(scene: Scene) -> None:
    scene.write("Inner/a", lines("one"))
    with scene.workspace.call(CallInfo(tool="t", conversation="c", within=("Inner",))) as call:
        call.write("inner/A", lines("two"))
        with pytest.raises(PathOutside):
            call.write("outer/a", lines("two"))
        (edit,) = call.commit().edits
    assert edit.edit.path == b"Inner/a"
    for path in (".CAS/lock", ".Cas/x", ".GIT/config"):
        with pytest.raises(PathReserved):
            scene.write(path, b"x")


def test_an_ambiguous_name_is_used_as_given(scene: Scene) -> None:
    (scene.root / "name").write_bytes(b"1\n")
    (scene.root / "Name").write_bytes(b"2\n")  # they are two here; of a third spelling nothing can be said
    seq = scene.write("NAME", b"3\n")
    assert scene.view(seq).edit.path == b"NAME"
    assert [scene.text(name) for name in ("name", "Name", "NAME")] == [b"1\n", b"2\n", b"3\n"]
    scene.decide(Action.REJECT, seq)
    assert scene.text("NAME") is None


def test_a_case_sensitive_file_system_is_not_searched_for_similar_names(tmp_path: Path) -> None:
    """Though somebody made a folder whose name is that of the store but for its case."""
    (tmp_path / ".cas").mkdir()
    (tmp_path / ".CAS").mkdir(exist_ok=True)
    tree = Tree(tmp_path)
    assert tree.is_case_insensitive == (names_in(tmp_path) == [".cas"])
    tree.close()
