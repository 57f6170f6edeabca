"""Test reading the state of a file on disk, which is named by its bytes."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from objstore import blob_id, is_binary
from objstore.disk.fs.confined_path import Tree
from objstore.disk.fs.file_state import file_at, state_at
from objstore.text.forms import is_either_binary


@pytest.mark.parametrize("at_hand", [True, False])
@pytest.mark.parametrize("likely", [b"what stands there", b"something else", b""])
def test_expected_blob_is_accepted_only_if_the_bytes_match(
    tmp_path: Path,
    likely: bytes,
    at_hand: bool,  # noqa: FBT001 -- pytest passes by name
) -> None:
    (tmp_path / "a").write_bytes(b"what stands there")
    tree = Tree(tmp_path)
    with tree.locate("a") as resolved:
        found = state_at(resolved, blob_id(likely), likely if at_hand else None)
    tree.close()
    assert found is not None
    assert found[0].blob == blob_id(b"what stands there")
    assert found[1].content == b"what stands there"


@pytest.mark.parametrize("target", ["other", "/usr", "folder"])
def test_file_behind_a_linked_folder_is_not_the_file_of_that_path(tmp_path: Path, target: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a").write_bytes(b"another\n")
    (tmp_path / "folder").symlink_to(target)
    tree = Tree(tmp_path)
    found = file_at(tree, b"folder/a"), file_at(tree, b"other/a")
    tree.close()
    assert found[0] is None
    assert found[1] is not None


@given(st.sampled_from([b"", b"text\n" * 2000, b"text\n" * 1638 + b"tx", "tä".encode() * 2731 + b"t"]), st.binary())
def test_two_texts_are_binary_if_either_is(start: bytes, end: bytes) -> None:
    for old, new in ((start, start + end), (start + end, start), (end, start)):
        assert is_either_binary(old, new) is (is_binary(old) or is_binary(new))
