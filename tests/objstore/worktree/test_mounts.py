"""A folder whose file system is not mounted is not there now: nothing is recorded, and the status says so."""

import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from objstore import Action, AgentCall, CallInfo, Decided, EditFilter, OnExternal, Origin
from objstore.values.errors import NotMounted
from tests.support.command_runner import cas
from tests.support.git_project import GitProject
from tests.support.mounts import can_mount

FIRST = "one\ntwo\nthree\n"
AGENTS = "one\nagent\nthree\n"


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def unmount(point: Path) -> None:
    subprocess.run(["umount", str(point)], check=True, capture_output=True)


@pytest.fixture(params=["bound", "device"])
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Return a folder with a file, of the same or another device, that can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not can_mount(folder):
        pytest.skip("nothing can be mounted here")
    if request.param == "device":
        mount("-t", "tmpfs", "none", str(folder))
    else:
        mount("--bind", str(folder), str(folder))
    (folder / "deep").mkdir()
    (folder / "deep" / "f.txt").write_text(FIRST)
    yield folder
    with suppress(subprocess.CalledProcessError):
        unmount(folder)


def test_a_file_system_that_is_not_mounted_now_is_not_deleted(tmp_path: Path, disk: Path) -> None:
    with closing(GitProject(tmp_path / "project")) as project:
        point = project.folder / "mounted here"
        point.mkdir()
        mount("--bind", str(disk), str(point))
        try:
            project.look()
            project.agent_writes("mounted here/deep/f.txt", AGENTS)
            before = project.workspace.history.edits(EditFilter())
            unmount(point)
            for name in ("0.txt", "1.txt"):
                project.write(name, "changed\n")
                project.look()
            assert len(project.workspace.history.edits(EditFilter())) == len(before) + 2
            status = project.workspace.review.status()
            assert status.external == ()
            assert [line.partition(":")[0] for line in status.unreadable] == ["mounted here"]
            mount("--bind", str(disk), str(point))
            project.look()
            assert project.workspace.review.status().unreadable == ()
            assert project.workspace.history.edits(EditFilter())[: len(before)] == before
            unmount(point)
            project.look()
            point.rmdir()
            project.look()
            gone = {view.edit.path for view in project.workspace.history.edits(EditFilter()) if view.edit.after is None}
            assert b"mounted here/deep/f.txt" in gone
        finally:
            with suppress(subprocess.CalledProcessError):
                unmount(point)


@pytest.mark.parametrize("is_empty", [True, False])
def test_what_a_shell_wrote_before_it_unmounted_awaits_review_when_it_returns(
    tmp_path: Path, disk: Path, *, is_empty: bool
) -> None:
    with closing(GitProject(tmp_path / "project")) as project:
        point = project.folder / "mounted"
        point.mkdir()
        if not is_empty:
            (point / "below.txt").write_text(FIRST)
        mount("--bind", str(disk), str(point))
        try:
            project.look()
            call = AgentCall(conversation="c", id="1", tool="Bash", paths=None)
            project.workspace.hooks.begin(call)
            (point / "deep" / "f.txt").write_text(AGENTS)
            unmount(point)
            project.workspace.hooks.end(call)
            project.workspace.hooks.pause("c")
            mount("--bind", str(disk), str(point))
            project.look()
            *_, view = (each for each in project.workspace.history.edits(EditFilter()) if b"f.txt" in each.edit.path)
            assert view.is_unattributed
        finally:
            with suppress(subprocess.CalledProcessError):
                unmount(point)


def test_what_would_change_a_file_that_is_not_mounted_now_changes_nothing(tmp_path: Path, disk: Path) -> None:
    with closing(GitProject(tmp_path / "project")) as project:
        point = project.folder / "mounted"
        point.mkdir()
        mount("--bind", str(disk), str(point))
        try:
            project.look()
            project.agent_writes("mounted/deep/f.txt", AGENTS)
            workspace = project.workspace
            view, units = workspace.find_units("2")
            assert view.edit.path == b"mounted/deep/f.txt"
            before = workspace.history.edits(EditFilter())
            unmount(point)

            def write() -> None:
                with workspace.call(CallInfo(tool="write", conversation="ours", origin=Origin.AGENT)) as call:
                    call.write("mounted/new.txt", b"new\n")
                    call.commit()

            def restore() -> None:
                with workspace.call(CallInfo(tool="restore", origin=Origin.PERSON)) as call:
                    call.write("mounted/deep/f.txt", FIRST.encode())
                    call.commit()

            gone = "not there now: the file system at mounted is not mounted"
            for act in (write, restore):
                with pytest.raises(NotMounted, match=gone):
                    act()
            for action in (Action.ACCEPT, Action.REJECT):
                for choice in OnExternal:
                    with pytest.raises(NotMounted, match=gone):
                        workspace.decide(action, units, on_external=choice)
            assert workspace.history.edits(EditFilter()) == before
            assert not any(point.iterdir())
            mount("--bind", str(disk), str(point))
            project.look()
            assert workspace.history.edits(EditFilter()) == before
            assert project.text("mounted/deep/f.txt") == AGENTS
        finally:
            with suppress(subprocess.CalledProcessError):
                unmount(point)


def test_what_is_on_another_mount_is_rejected_restored_and_moved(tmp_path: Path, disk: Path) -> None:
    with closing(GitProject(tmp_path / "project")) as project:
        point = project.folder / "mounted"
        point.mkdir()
        mount("--bind", str(disk), str(point))
        try:
            project.look()
            project.agent_writes("mounted/deep/f.txt", AGENTS)
            project.agent_writes("mounted/deep/new.txt", "new\n")
            workspace = project.workspace
            first, *_ = workspace.history.edits(EditFilter(newest_first=True))
            units = [unit for name in (first.seq - 1, first.seq) for unit in workspace.find_units(str(name))[1]]
            assert isinstance(workspace.decide(Action.REJECT, units), Decided)
            assert project.text("mounted/deep/f.txt") == FIRST
            assert not (point / "deep/new.txt").exists()
            assert cas("undo", folder=project.folder).status == 0
            assert project.text("mounted/deep/f.txt") == AGENTS
            assert project.text("mounted/deep/new.txt") == "new\n"
            with workspace.call(CallInfo(tool="move", conversation="ours", origin=Origin.AGENT)) as call:
                call.move("mounted/deep/new.txt", "moved.txt")
                call.write("mounted/more.txt", b"more\n")
                call.commit()
            assert project.text("moved.txt") == "new\n"
            assert sorted(path.name for path in point.rglob("*")) == ["deep", "f.txt", "more.txt"]
        finally:
            with suppress(subprocess.CalledProcessError):
                unmount(point)


def test_all_is_decided_but_what_is_not_mounted_now_and_that_is_named(tmp_path: Path, disk: Path) -> None:
    with closing(GitProject(tmp_path / "project")) as project:
        point = project.folder / "mounted"
        point.mkdir()
        mount("--bind", str(disk), str(point))
        try:
            project.look()
            project.agent_writes("mounted/deep/f.txt", AGENTS)
            project.agent_writes("0.txt", "agent\n")
            unmount(point)
            accepted = cas("accept", "--all", folder=project.folder)
            assert accepted.status == 0, accepted
            assert "mounted/deep/f.txt is not decided on: its disk is not mounted now." in accepted.text
            assert cas("accept", "--all", "--json", folder=project.folder).status == 1  # nothing else is left
            mount("--bind", str(disk), str(point))
            undone = cas("undo", folder=project.folder)
            assert undone.status == 0, undone
            rejected = cas("reject", "--all", "--json", folder=project.folder).json()
            assert rejected["absent"] == []
            assert project.text("mounted/deep/f.txt") == FIRST
        finally:
            with suppress(subprocess.CalledProcessError):
                unmount(point)
