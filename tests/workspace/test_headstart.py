"""A head start: a glance that a child has begun says what one that began later says, or is not believed."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from objstore import CallInfo, Workspace
from objstore.glance import WORTH_TWO
from tests.cli.desk import cold_cas, environment
from tests.workspace import headstarts
from tests.workspace.headstarts import GRACE_SECONDS

FOLDERS: Final = 21
FILES: Final = WORTH_TWO // (FOLDERS - 1)
"""In each folder: enough that a head start is worth it."""

BEGUN: Final = """
import os, signal, sys, time
from objstore import CallInfo, HeadStart, NotAWorkspace, Workspace
root = sys.argv[1]
ahead = HeadStart.of_status(root)
assert ahead._begun is not None, "no head start was taken"
child = ahead._begun._shared._child
"""
"""What a test does in a process of its own, for that of the tests has threads."""

TOLD: Final = """
with ahead, Workspace.open(root) as workspace:
    print(*sorted(change.path for change in workspace.status(ahead).external))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a workspace of thousands of files of which a status knows that they are as recorded."""
    root = tmp_path_factory.mktemp("large") / "ws #?%"
    root.mkdir()
    with Workspace.init(root) as workspace:
        for folder in range(FOLDERS):
            with workspace.call(CallInfo(tool="test")) as call:
                for number in range(FILES):
                    call.write(f"d{folder}/in/{number}", b"as recorded\n")
                call.commit()
    time.sleep(GRACE_SECONDS)  # the system's clock is what makes a file old
    assert told_by_click(root) == told_by_click(root)
    yield root
    shutil.rmtree(root)


def told_by_click(root: Path) -> bytes:
    """Return what the whole command says, which takes no head start."""
    ran = cold_cas("-C", str(root), "status", "--color", "auto", folder=Path("/"))
    assert (ran.status, ran.err) == (0, b"")
    return ran.out


def told(root: Path) -> bytes:
    """Return what a plain status says."""
    ran = cold_cas("-C", str(root / "d3/in"), "status", folder=Path("/"))
    assert (ran.status, ran.err) == (0, b"")
    return ran.out


def ran(root: Path, script: str) -> list[str]:
    """Return what a script prints that goes on after a head start was taken."""
    return headstarts.ran(root, BEGUN + script)


def test_it_says_what_a_status_without_it_says(large: Path) -> None:
    assert told(large) == told_by_click(large)
    for path in ("d0/in/0", "d20/in/7"):
        file = large / path
        file.write_bytes(b"otherwise\n")
        assert told(large) == told_by_click(large)
        assert ran(large, TOLD) == [path]
        file.unlink()
        assert told(large) == told_by_click(large)
        file.write_bytes(b"as recorded\n")
        assert told(large) == told_by_click(large)
        file.chmod(0o600)
        assert ran(large, TOLD) == [path]
        file.chmod(0o644)
        assert ran(large, TOLD) == []
    shutil.move(large / "d4", large.parent / "elsewhere")
    (large / "d4").symlink_to(large.parent / "elsewhere")
    assert told(large) == told_by_click(large)
    assert b"d4/in/0" in told(large)
    (large / "d4").unlink()
    shutil.move(large.parent / "elsewhere", large / "d4")
    assert ran(large, TOLD) == []


def test_a_child_that_was_killed_is_not_missed(large: Path) -> None:
    (large / "d5/in/5").write_bytes(b"otherwise\n")
    assert ran(large, "os.kill(child, signal.SIGKILL)" + TOLD) == ["d5/in/5"]
    (large / "d5/in/5").write_bytes(b"as recorded\n")


def test_what_was_recorded_and_changed_since_it_began_is_told(large: Path) -> None:
    """The child has looked at all that it knew; then tools write files, a status remembers them, and they change."""
    since = f"""
with Workspace.open(root) as other:
    with other.call(CallInfo(tool="test")) as call:
        call.write("a/new", b"recorded meanwhile\\n")
        call.write("d6/in/6", b"recorded meanwhile\\n")
        call.commit()
    time.sleep({GRACE_SECONDS})
    other.status()
for path in ("a/new", "d6/in/6", "d7/in/7"):
    with open(os.path.join(root, path), "w") as file:
        file.write("otherwise\\n")
"""
    assert ran(large, since + TOLD) == ["a/new", "d6/in/6", "d7/in/7"]
    (large / "a/new").write_bytes(b"recorded meanwhile\n")
    (large / "d6/in/6").write_bytes(b"recorded meanwhile\n")
    (large / "d7/in/7").write_bytes(b"as recorded\n")


def test_another_folder_in_the_place_of_the_workspace_is_not_taken_for_it(large: Path, tmp_path: Path) -> None:
    """Its journal is a copy, so that only its files are others."""
    shutil.copytree(large, tmp_path / "copy", copy_function=shutil.copy2)
    (tmp_path / "copy/d8/in/8").write_bytes(b"otherwise\n")
    swapped = f"""
kept = root + "-kept"
time.sleep(0.5)
os.rename(root, kept)
os.rename({str(tmp_path / "copy")!r}, root)
try:
    with ahead, Workspace.open(root) as workspace:
        print(*sorted(change.path for change in workspace.status(ahead).external))
finally:
    os.rename(root, {str(tmp_path / "copy")!r})
    os.rename(kept, root)
"""
    assert ran(large, swapped) == ["d8/in/8"]


def test_one_that_is_not_needed_leaves_no_process(large: Path) -> None:
    unneeded = """
try:
    with ahead:
        Workspace.open("/")
except NotAWorkspace:
    pass
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("none", os.path.exists(f"/proc/{child}"))
"""
    assert ran(large, unneeded) == ["none", "False"]


def test_a_small_workspace_needs_none(tmp_path: Path) -> None:
    with Workspace.init(tmp_path):
        pass
    for start in (str(tmp_path), "/", str(tmp_path / "nowhere")):
        script = (
            f"from objstore import HeadStart as H; print(H.of_status({start!r})._begun, H.of_look({start!r})._begun)"
        )
        done = subprocess.run(
            [sys.executable, "-P", "-c", script], env=environment({}), capture_output=True, check=True
        )
        assert done.stdout == b"None None\n"
