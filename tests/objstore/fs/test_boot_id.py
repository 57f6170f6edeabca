"""Test reading the boot id, and that without one the files are inspected again."""

import os
from pathlib import Path

import pytest

from objstore import Workspace
from objstore.fs.boot_id import BOOT_ID_SIZE, UNKNOWN_BOOT, boot_id, parse_boot_id
from tests.objstore.recovery.test_crash import recorded_before_power_cut
from tests.objstore.recovery.test_reboot import files_after_reboot
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import CountdownDisk


class DiskWithoutBootId(CountdownDisk):
    """A disk on a system that doesn't report a boot id."""

    def boot_id(self) -> bytes:
        return UNKNOWN_BOOT


def test_the_boot_id_is_the_same_until_a_reboot() -> None:
    assert boot_id() == boot_id() != UNKNOWN_BOOT


def test_boot_ids_of_both_systems_are_parsed_alike() -> None:
    number = bytes(range(0xF0, 0x100))
    assert parse_boot_id(b"f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff\n") == number
    assert parse_boot_id(b"F0F1F2F3-F4F5-F6F7-F8F9-FAFBFCFDFEFF") == number


@pytest.mark.parametrize("text", [b"", b"\n", b"none", b"f0f1", b"\xff" * 36, b"0" * (2 * BOOT_ID_SIZE + 2)])
def test_an_invalid_boot_id_counts_as_unknown(text: bytes) -> None:
    assert parse_boot_id(text) == UNKNOWN_BOOT


def test_without_a_boot_id_changes_lost_in_a_power_cut_are_found(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    with Workspace.init(root, DiskWithoutBootId(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
    with recorded_before_power_cut(root) as later:
        write(later, "a.txt", b"second\n")
    with Workspace.open(root, DiskWithoutBootId(None)) as workspace:
        assert (root / "a.txt").read_bytes() == b"second\n"
        assert workspace.review.external_changes() == ()


def test_without_a_boot_id_a_process_inspects_files_once(tmp_path: Path) -> None:
    with Workspace.init(tmp_path, DiskWithoutBootId(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
        write(workspace, "a.txt", b"second\n")
    with Workspace.open(tmp_path, DiskWithoutBootId(None)) as workspace:
        (tmp_path / "a.txt").write_bytes(b"")  # the machine is still running, so another process did this
        write(workspace, "b.txt", b"and on\n")
        assert [change.path for change in workspace.review.external_changes()] == ["a.txt"]


@pytest.mark.parametrize(
    "disks",
    [(DiskWithoutBootId, CountdownDisk), (CountdownDisk, DiskWithoutBootId), (CountdownDisk, CountdownDisk)],
    ids=["late", "early", "both"],
)
def test_changes_of_an_unknown_boot_may_be_lost_in_the_next(
    tmp_path: Path, disks: tuple[type[CountdownDisk], type[CountdownDisk]]
) -> None:
    """One of the two processes may not know its boot id."""
    first, second = disks
    with Workspace.init(tmp_path, first(None)) as workspace:
        write(workspace, "a.txt", b"first\n")
    with Workspace.open(tmp_path, second(None)) as workspace:
        assert workspace.review.external_changes() == ()
    (tmp_path / "a.txt").write_bytes(b"")
    os.utime(tmp_path / ".cas" / "applied")
    assert files_after_reboot(tmp_path) == ({"a.txt": (b"first\n", 0o644)}, [])
