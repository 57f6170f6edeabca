"""Founding a store: where one can't be made, nothing is left of the attempt."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from objstore import CasError, Workspace
from tests.store.countdown import CountdownDisk, UnsyncedDisk, broken_disk, full_disk


def put_file(place: Path) -> None:
    place.write_bytes(b"mine\n")


def put_pipe(place: Path) -> None:
    os.mkfifo(place)


def put_dangling_link(place: Path) -> None:
    place.symlink_to("nowhere")


def put_link_to_itself(place: Path) -> None:
    place.symlink_to(place.name)


@pytest.mark.parametrize("put", [put_file, put_pipe, put_dangling_link, put_link_to_itself])
def test_where_something_else_has_the_name_nothing_is_left_of_the_attempt(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    put(tmp_path / ".cas")
    before = os.lstat(tmp_path / ".cas")
    for _ in range(2):
        with pytest.raises(CasError, match=r"\.cas"):
            Workspace.init(tmp_path, UnsyncedDisk())
    assert list(tmp_path.iterdir()) == [tmp_path / ".cas"]
    assert os.lstat(tmp_path / ".cas") == before


@pytest.mark.parametrize("failure", [full_disk, broken_disk])
def test_wherever_the_disk_fails_nothing_is_left_of_the_attempt(
    tmp_path: Path, failure: Callable[[str], BaseException]
) -> None:
    whole = CountdownDisk(None)
    (tmp_path / "whole").mkdir()
    Workspace.init(tmp_path / "whole", whole).close()
    for step in range(whole.done.index("move_store_folder") + 1):
        root = tmp_path / str(step)
        root.mkdir()
        with pytest.raises(CasError):
            Workspace.init(root, CountdownDisk(step, failure, lasting=False))
        assert not list(root.iterdir()), whole.done[step]
