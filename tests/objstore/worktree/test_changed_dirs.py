"""Test the comparison of many files by their stat signatures, with and without the stat table."""

import os
import socket
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from objstore.disk.fs.stat_signature import (
    SIGNATURE_SIZE,
    FolderKey,
    FolderSignature,
    StatSignature,
    pack_signatures,
    read_signature_fields,
    signature_at,
    unpack_signatures,
)
from objstore.worktree.batch_stat import is_single, open_stat_table
from objstore.worktree.changed_dirs import SharedLooks, changed_folders, key_of

TIMES = st.integers(-(1 << 63), (1 << 63) - 1)
WORDS = st.integers(0, (1 << 64) - 1)
SEEN = st.lists(
    st.tuples(TIMES, TIMES, WORDS, WORDS, st.integers(0, (1 << 16) - 1)).map(StatSignature._make), max_size=20
)


@given(SEEN)
def test_unpacking_packed_signatures_returns_them(facts: list[StatSignature]) -> None:
    packed = pack_signatures(facts)
    assert len(packed) == SIGNATURE_SIZE * len(facts)
    assert list(unpack_signatures(packed)) == facts
    assert [signature_at(packed, at) for at in range(len(facts))] == facts


@given(SEEN, SEEN)
def test_packed_signatures_are_equal_only_if_the_signatures_are(
    some: list[StatSignature], others: list[StatSignature]
) -> None:
    assert (pack_signatures(some) == pack_signatures(others)) == (some == others)


def one_by_one(folder: int, names: Sequence[bytes]) -> bytes:
    return pack_signatures(list(map(read_signature_fields, map(partial(os.lstat, dir_fd=folder), names))))


def names_in(folder: Path) -> list[bytes]:
    return sorted(os.fsencode(path.name) for path in folder.iterdir())


def odd_files(root: Path) -> list[bytes]:
    """Make one file of each kind that a folder may hold, and return the names."""
    (root / "plain").write_bytes(b"text")
    (root / "empty").touch()
    (root / "new\nline").write_bytes(b"x")
    (root / os.fsdecode(b"\xff\xfe")).write_bytes(b"x")
    (root / "link").symlink_to("plain")
    (root / "loop").symlink_to("loop")
    (root / "nowhere").symlink_to("/nothing/is/here")
    (root / "folder").mkdir()
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(root / "door"))
    with (root / "huge").open("wb") as file:
        file.truncate((1 << 42) + 1)
    (root / "secret").write_bytes(b"x")
    (root / "secret").chmod(0)
    (root / "set").write_bytes(b"x")
    (root / "set").chmod(0o6751)
    for name, time in {
        "old": -1,
        "older": -1_500_000_000,
        "oldest": -(1 << 31) * 10**9,
        "new": (1 << 33) * 10**9,
    }.items():
        (root / name).touch()
        os.utime(root / name, ns=(time, time + 123_456_789))
    return names_in(root)


def test_the_stat_table_returns_what_lstat_returns(tmp_path: Path) -> None:
    names = odd_files(tmp_path)
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        table = open_stat_table(fd)
        assert (table is not None) == (sys.platform == "linux" and os.uname().machine in {"x86_64", "aarch64"})
        ask = one_by_one if table is None else table.signatures
        assert ask(fd, names) == one_by_one(fd, names)
        if table is not None:
            here = Path.cwd()
            with table.inside():
                assert ask(fd, names) == one_by_one(fd, names)
                assert (Path.cwd() == tmp_path) is is_single()  # a test before this one may have left threads
            assert Path.cwd() == here
        assert ask(fd, []) == b""
        for count in (255, 256, 257, 700):  # more than the table has rows
            many = (names * (count // len(names) + 1))[:count]
            assert ask(fd, many) == one_by_one(fd, many)
        for missing in (b"missing", b"plain/inside", b"x" * 300):
            with pytest.raises(OSError):  # noqa: PT011 - whichever it is
                ask(fd, [*names, missing])
    finally:
        os.close(fd)


def test_every_change_of_one_of_many_files_is_found(tmp_path: Path) -> None:
    """With so many that the system's table is used; each change in a folder of its own."""
    folders = [tmp_path / f"d{number}" for number in range(16)]
    for folder in folders:
        folder.mkdir()
        for number in range(300):
            (folder / f"f{number}").touch()
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        known = [folder_signature_of(folder) for folder in folders]
        assert changed_folders(root, known) == []
        last = [folder / "f299" for folder in folders]
        last[1].write_bytes(b"x")
        last[2].chmod(0o600)
        last[3].unlink()
        last[4].rename(folders[4] / "other")
        (folders[5] / "more").touch()
        os.utime(last[6], ns=(1, 1))
        (folders[7] / "f0").unlink()
        (folders[7] / "f0").symlink_to("f1")
        folders[8].rename(tmp_path / "elsewhere")
        folders[9].rename(tmp_path / "behind")
        folders[9].symlink_to("behind")
        os.link(last[10], tmp_path / "second name")  # its own change of times shows it
        assert sorted(changed_folders(root, known)) == sorted(f"d{number}".encode() for number in range(1, 11))
        without_keys = [folder_signature._replace(key=None) for folder_signature in known]
        # Of the folder itself nothing is asked then, but that it is one.
        assert set(changed_folders(root, known)) - set(changed_folders(root, without_keys)) == {b"d5"}
    finally:
        os.close(root)


def test_files_that_another_comparison_has_just_seen_are_not_looked_at_again(tmp_path: Path) -> None:
    for folder in (tmp_path / "same names", tmp_path / "other names"):
        folder.mkdir()
        (folder / "a").touch()
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        known = [folder_signature_of(folder) for folder in sorted(tmp_path.iterdir())]
        shared: SharedLooks = {}
        assert changed_folders(root, known, shared=shared) == []
        (tmp_path / "same names" / "a").write_bytes(b"x")
        (tmp_path / "other names" / "a").write_bytes(b"x")
        others = [known[0]._replace(names=b"a\0b", key=None), known[1]]
        assert changed_folders(root, others, shared=shared) == [b"other names"]
        assert sorted(changed_folders(root, known)) == [b"other names", b"same names"]
    finally:
        os.close(root)


def folder_signature_of(folder: Path) -> FolderSignature:
    fd = os.open(folder, os.O_RDONLY)
    try:
        names = names_in(folder)
        key: FolderKey = key_of(os.fstat(fd))
        return FolderSignature(os.fsencode(folder.name), key, b"\0".join(names), one_by_one(fd, names))
    finally:
        os.close(fd)


def test_the_current_folder_stays_the_same_if_other_threads_run(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    fd = os.open(tmp_path, os.O_RDONLY)
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        table = open_stat_table(fd)
        if table is not None:
            here = Path.cwd()
            with table.inside():
                assert table.signatures(fd, [b"a"]) == one_by_one(fd, [b"a"])
                assert Path.cwd() == here
    finally:
        done.set()
        other.join()
        os.close(fd)


def test_a_deleted_current_folder_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "gone").mkdir()
    fd = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    try:
        table = open_stat_table(fd)
        if table is not None:
            with table.inside():
                assert table.signatures(fd, [b"a"]) == one_by_one(fd, [b"a"])
            assert os.stat(".").st_nlink == 0  # noqa: PTH116 - it has no name any more
    finally:
        os.close(fd)
