"""Decisions and snapshots on file systems of several kinds, each mounted for the test where that is possible."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from tests.support.command_runner import cas
from tests.support.mounts import can_mount

DISKS = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "btrfs": ["mkfs.btrfs", "-q"],
    "xfs": ["mkfs.xfs", "-q"],
    "vfat": ["mkfs.vfat"],
    "ntfs": ["mkfs.ntfs", "-q", "-F"],
}
"""The commands that make a file system in a file."""

LINKLESS = {"vfat"}
"""Kinds without symbolic links and permission bits."""


@pytest.fixture(params=["tmpfs", "overlay", *DISKS])
def mount(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Return a mounted file system of each kind that this machine has."""
    kind: str = request.param
    place = tmp_path / "mount"
    place.mkdir()
    if not can_mount(place):
        pytest.skip("nothing can be mounted here")
    if kind in DISKS:
        maker = DISKS[kind]
        if which(maker[0]) is None:
            pytest.skip(f"there is no {maker[0]}")
        image = tmp_path / "image"
        with image.open("wb") as file:
            file.truncate(320 << 20)
        subprocess.run([*maker, str(image)], check=True, capture_output=True)
        options = ["-o", "loop", *(["-t", "ntfs-3g"] if kind == "ntfs" else []), str(image)]
    elif kind == "overlay":
        parts = [tmp_path / name for name in ("lower", "upper", "work")]
        for part in parts:
            part.mkdir()
        (parts[0] / "old").write_text("from below\n")
        lower, upper, work = parts
        options = ["-t", kind, "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", kind]
    else:
        options = ["-t", kind, kind]
    made = subprocess.run(["mount", *options, str(place)], check=False, capture_output=True)
    if made.returncode:
        pytest.skip(f"{kind} can't be mounted: {os.fsdecode(made.stderr).strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def states(folder: Path) -> dict[str, object]:
    """Return the text and mode of each file, and the text of each link."""
    found: dict[str, object] = {}
    for path in folder.rglob("*"):
        if ".cas" in path.parts:
            continue
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = path.readlink()
        elif path.is_file():
            found[name] = path.read_bytes(), path.stat().st_mode
    return found


def done(folder: Path, *words: str) -> str:
    ran = cas(*words, folder=folder)
    assert ran.status == 0, ran
    return ran.text


def test_what_a_shell_did_is_rejected_undone_and_restored(mount: Path, request: pytest.FixtureRequest) -> None:
    has_links = not any(kind in request.node.name for kind in LINKLESS)
    folder = mount / "w"
    (folder / "src").mkdir(parents=True)
    (folder / "src/a").write_text("1\n2\n3\n")
    (folder / "src/b").write_bytes(bytes(range(256)) * 40)
    (folder / "gone").write_text("soon\n")
    (folder / "hole").write_bytes(b"x")
    os.truncate(folder / "hole", 300_000)
    if has_links:
        (folder / "link").symlink_to("src/a")
    done(folder, "init")
    done(folder, "record")
    done(folder, "snapshot", "create")
    before = states(folder)
    (folder / "src/a").write_text("1\ntwo\n3\n")
    (folder / "src/b").rename(folder / "moved")
    (folder / "gone").unlink()
    (folder / "new").mkdir()
    (folder / "new/file").write_text("new\n")
    with (folder / "hole").open("r+b") as file:
        file.write(b"y")
    if has_links:
        (folder / "moved").chmod(0o755)
        (folder / "link").unlink()
        (folder / "link").symlink_to("new/file")
    done(folder, "record", "--agent", "tester")
    after = states(folder)
    done(folder, "reject", "--all")
    assert states(folder) == before
    assert done(folder, "record") == "Nothing changed.\n"
    done(folder, "undo")
    assert states(folder) == after
    done(folder, "snapshot", "restore", "2")
    assert states(folder) == before
    done(folder, "fsck")
    assert done(folder, "record") == "Nothing changed.\n"
