"""A file that comes back or is replaced has the access control list that a new file in its folder gets, or its own."""

import os
import struct
import sys
from pathlib import Path

import pytest

from tests.support.command_runner import CommandRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="lists are extended attributes on Linux only")

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
NAMED, OTHER = 61_700, 61_800


def granting(user: int) -> bytes:
    """Return a list that grants a user what a mode of 644 lets it, in the form of the extended attribute."""
    everyone = 0xFFFFFFFF
    entries = ((0x01, 6, everyone), (0x02, 6, user), (0x04, 4, everyone), (0x10, 4, everyone), (0x20, 4, everyone))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def set_list(path: Path, name: str, user: int) -> None:
    try:
        os.setxattr(path, name, granting(user))
    except OSError as error:
        pytest.skip(f"this file system has no access control lists: {error}")


def listed(path: Path) -> bytes | None:
    return os.getxattr(path, ACCESS) if ACCESS in os.listxattr(path) else None


def test_a_file_that_comes_back_has_the_list_that_a_new_file_in_its_folder_gets(runner: CommandRunner) -> None:
    root = runner.folder
    set_list(root, DEFAULT, NAMED)
    for name in ("plain", "other", "same"):
        (root / name).mkdir()
    os.removexattr(root / "plain", DEFAULT)
    set_list(root / "other", DEFAULT, OTHER)
    paths = ("top", "plain/a", "plain/new/b", "other/c", "same/d")
    for path in paths:
        runner.write(path, b"one\n")
        runner.delete(path)
    runner.done("reject", *(str(2 * number + 2) for number in range(len(paths))))
    for path in paths:
        came = root / path
        new = came.with_name("touched")
        new.touch()
        new.chmod(came.stat().st_mode & 0o777)
        assert listed(came) == listed(new), path
    assert listed(root / "plain/a") is None
    assert listed(root / "other/c") != listed(root / "same/d")


def test_a_replaced_file_keeps_its_list_and_gets_none_of_another_folder(runner: CommandRunner) -> None:
    root = runner.folder
    set_list(root, DEFAULT, NAMED)
    for path in ("with", "without"):
        runner.write(path, b"one\n")
    set_list(root / "with", ACCESS, OTHER)
    os.removexattr(root / "without", ACCESS)
    before = {path: listed(root / path) for path in ("with", "without")}
    for path, had in before.items():
        runner.edit(path, b"one", b"two")
        assert listed(root / path) == had
    runner.done("reject", "3", "4")
    assert {path: listed(root / path) for path in before} == before
    assert before["without"] is None
