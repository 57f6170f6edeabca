"""What `cas` proposes when the system refuses access: the true reason, and a command that helps."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

import pytest

from cli.app.error_hints import permission_advice
from objstore import PermissionRefused
from tests.support.command_runner import CommandRunner
from tests.support.path_sandbox import as_unprivileged_user

OTHER_USER = 65_534
IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")


def advice(folder: Path, name: str) -> str:
    return permission_advice(PermissionRefused(name), str(folder))


@contextmanager
def marked(path: Path, letter: str) -> Iterator[None]:
    """Mark a file or folder with chattr."""
    subprocess.run(["chattr", f"+{letter}", path], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", f"-{letter}", path], check=True, capture_output=True)


def can_mark(folder: Path) -> bool:
    """Return whether files there can be marked: root can do so on most filesystems of Linux."""
    if which("chattr") is None or not IS_ROOT:
        return False
    probe = folder / "probe"
    probe.touch()
    try:
        with marked(probe, "i"):
            return True
    except subprocess.CalledProcessError:
        return False


@pytest.mark.parametrize(("letter", "word"), [("i", "immutable"), ("a", "append-only")])
@pytest.mark.parametrize("is_folder", [False, True])
def test_mark_of_a_file_or_its_folder_is_named(tmp_path: Path, letter: str, word: str, *, is_folder: bool) -> None:
    if not can_mark(tmp_path):
        pytest.skip("files can't be marked here")
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "f").touch()
    place = folder if is_folder else folder / "f"
    with marked(place, letter):
        assert advice(folder, "f") == f"{place} is marked {word}. To change it, as root: chattr -{letter} {place}"


@pytest.fixture
def shared() -> Iterator[Path]:
    """Return a folder that every user can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@needs_root
def test_what_root_made_in_a_users_workspace_is_given_back_to_the_user(shared: Path) -> None:
    folder = shared / "ws"
    (folder / "made").mkdir(parents=True)
    os.chown(folder, OTHER_USER, OTHER_USER)
    with as_unprivileged_user():
        said = advice(folder, "made/f")
    assert said == f"{folder}/made belongs to root. To use it: sudo chown nobody {folder}/made"


@needs_root
def test_workspace_of_another_user_is_to_be_used_as_that_user(shared: Path) -> None:
    folder = shared / "ws"
    folder.mkdir()
    os.chown(folder, 1, 1)
    with as_unprivileged_user():
        said = advice(folder, "f")
    assert said == f"{folder} belongs to daemon: run cas as daemon, or ask for the right to write there."


def test_mode_of_an_own_folder_is_named(shared: Path) -> None:
    folder = shared / "ws"
    folder.mkdir()
    if IS_ROOT:
        os.chown(folder, OTHER_USER, OTHER_USER)
    folder.chmod(0o555)
    with as_unprivileged_user():
        said = advice(folder, "f")
    assert said == f"{folder} has the mode 0555. To use it: chmod u+rwx {folder}"


@pytest.mark.parametrize("what", ["pipe, socket or device", "folder"])
def test_pipe_or_folder_in_the_place_of_a_file_is_named(runner: CommandRunner, what: str) -> None:
    runner.write("f", b"one\n")
    (runner.folder / "f").unlink()
    if what == "folder":
        (runner.folder / "f").mkdir()
        (runner.folder / "f" / "inside").touch()
    else:
        os.mkfifo(runner.folder / "f")
    ran = runner.cas("restore", "f@1")
    assert ran.status != 0
    assert f"A {what} is at f. Move it away and run the command again." in ran.said


def test_folder_that_is_a_link_to_outside_is_named(runner: CommandRunner, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    runner.write("sub/f", b"one\n")
    (runner.folder / "sub/f").unlink()
    runner.done("record", "--agent", "helper")
    (runner.folder / "sub").rmdir()
    (runner.folder / "sub").symlink_to(outside)
    for words in (("reject", "2", "--yes"), ("diff", "sub/f")):
        ran = runner.cas(*words)
        assert ran.status != 0
        assert "sub is a link that leads outside. Move the link away and run the command again" in ran.said
    assert "leads outside" not in runner.cas("diff", "/elsewhere").said
    assert not list(outside.iterdir())
