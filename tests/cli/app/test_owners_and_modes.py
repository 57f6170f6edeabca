"""What root makes belongs to the owner of its folder; by sudo, root does only what the workspace's owner may do."""

import multiprocessing
import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore import TurnInfo
from objstore.disk.fs.disk import make_folders
from objstore.upkeep.remote.bucket import open_bucket
from objstore.upkeep.remote.probe import probe
from tests.support.command_runner import CommandResult, CommandRunner, cas

USER = 61_500
THIRD = 61_600

pytestmark = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(params=["sudo", "root"])
def as_root(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the environment in which root uses a user's store: by sudo, or because it trusts the folder."""
    return {"SUDO_UID": str(USER)} if request.param == "sudo" else {"CAS_SAFE_DIRECTORY": "*"}


def give(folder: Path, owner: int = USER) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


def owners(folder: Path) -> dict[str, int]:
    """Return the owner of everything at and below a folder."""
    return {str(path.relative_to(folder)): path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if ".cas" not in path.parts)


def done(*words: str, folder: Path, settings: dict[str, str]) -> CommandResult:
    ran = cas(*words, folder=folder, settings=settings)
    assert ran.status == 0, ran.said
    return ran


def test_what_root_makes_belongs_to_the_owner_of_its_folder(runner: CommandRunner, as_root: dict[str, str]) -> None:
    root = runner.folder
    runner.write("a", b"one\n")
    runner.write("new/deep/b", b"one\n")
    runner.edit("a", b"one", b"two")
    for path in ("a", "new/deep/b"):
        runner.delete(path)
    shutil.rmtree(root / "new")
    give(root)

    def holds(*words: str) -> None:
        done(*words, folder=root, settings=as_root)
        assert set(owners(root).values()) == {USER}, words

    holds("reject", "4", "5")
    assert sorted(path.name for path in below(root)) == ["a", "b", "deep", "new"]
    holds("undo")
    holds("redo")
    holds("record")
    holds("snapshot", "create")
    shutil.rmtree(root / "new")
    holds("snapshot", "restore", "1")
    assert (root / "new/deep/b").exists()
    holds("restore", "a@1")
    (root / "a").unlink()
    holds("record")
    holds("restore", "a@1")
    holds("status")
    holds("fsck")
    holds("config", "set", "review.external", "pending")
    holds("gc")
    # SQLite gives the files next to the index to its owner. Every other name was created by us.
    (root / ".cas/index.sqlite").unlink()
    holds("log")


def test_in_a_folder_of_a_third_user_root_makes_files_of_that_user(runner: CommandRunner) -> None:
    root = runner.folder
    runner.write("theirs/a", b"one\n")
    runner.delete("theirs/a")
    (root / "theirs").mkdir(exist_ok=True)
    give(root)
    give(root / "theirs", THIRD)
    done("reject", "2", folder=root, settings={"CAS_SAFE_DIRECTORY": "*"})
    assert (root / "theirs/a").stat().st_uid == THIRD


def test_by_sudo_a_file_in_a_third_users_open_folder_is_the_users_as_if_the_user_had_made_it(
    runner: CommandRunner,
) -> None:
    root = runner.folder
    runner.write("open/a", b"one\n")
    runner.delete("open/a")
    (root / "open").mkdir(exist_ok=True)
    give(root)
    give(root / "open", THIRD)
    (root / "open").chmod(0o777)
    done("reject", "2", folder=root, settings={"SUDO_UID": str(USER)})
    assert (root / "open/a").stat().st_uid == USER


def test_a_replaced_file_keeps_its_owner_and_group(runner: CommandRunner, as_root: dict[str, str]) -> None:
    root = runner.folder
    runner.write("a", b"one\n")
    runner.edit("a", b"one", b"two")
    give(root)
    os.chown(root / "a", THIRD, THIRD)
    (root / "a").chmod(0o666)
    done("record", folder=root, settings=as_root)
    done("reject", "2", folder=root, settings=as_root)
    found = (root / "a").stat()
    assert ((root / "a").read_bytes(), found.st_uid, found.st_gid) == (b"one\n", THIRD, THIRD)


@pytest.mark.parametrize("bits", [0o4755, 0o2755, 0o6711])
def test_a_file_that_comes_back_has_no_setuid_and_no_setgid(
    runner: CommandRunner, as_root: dict[str, str], bits: int
) -> None:
    root = runner.folder
    (root / "helper").write_bytes(b"#!/bin/sh\n")
    (root / "helper").chmod(bits)
    runner.done("record")
    (root / "helper").unlink()
    runner.done("record", "--agent", "x")
    give(root)
    said = done("reject", "1", folder=root, settings=as_root).text
    assert "Restored helper without setuid and setgid, which no file gets back" in said
    found = (root / "helper").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (bits & 0o777, USER)
    assert done("status", folder=root, settings=as_root).text.count("pending") == 1
    for words in (["undo"], ["redo"], ["undo"], ["reject", "1"], ["record"], ["fsck"]):
        done(*words, folder=root, settings=as_root)
    assert stat.S_IMODE((root / "helper").stat().st_mode) == bits & 0o777
    assert len(done("log", "--json", folder=root, settings=as_root).lines()) == 1


def test_setuid_that_an_agent_set_goes_with_the_rejection_and_is_not_set_again(runner: CommandRunner) -> None:
    root = runner.folder
    (root / "tool").write_bytes(b"#!/bin/sh\n")
    (root / "tool").chmod(0o755)
    runner.done("record")
    (root / "tool").chmod(0o4755)
    runner.done("record", "--agent", "x")
    runner.done("accept", "1")
    assert stat.S_IMODE((root / "tool").stat().st_mode) == 0o4755  # no byte and no owner changes
    runner.done("reject", "1")
    assert stat.S_IMODE((root / "tool").stat().st_mode) == 0o755
    runner.done("accept", "1")
    assert stat.S_IMODE((root / "tool").stat().st_mode) == 0o755
    (root / "tool").chmod(0o4755)
    runner.done("record", "--agent", "x")
    assert [line["seq"] for line in runner.done("log", "--json").lines()] == [2, 1]  # seen again, not taken for known
    runner.done("fsck")


def test_other_bytes_never_get_the_setuid_of_the_file_that_they_replace(
    runner: CommandRunner, as_root: dict[str, str]
) -> None:
    root = runner.folder
    (root / "tool").write_bytes(b"of the user\n")
    (root / "tool").chmod(0o4755)
    runner.done("record")
    (root / "tool").unlink()
    (root / "tool").write_bytes(b"of root\n")
    (root / "tool").chmod(0o4777)
    runner.done("record", "--agent", "x")
    give(root)
    os.chown(root / "tool", 0, 0)
    (root / "tool").chmod(0o4777)
    done("reject", "1", folder=root, settings=as_root)
    assert (root / "tool").read_bytes() == b"of the user\n"
    assert not (root / "tool").stat().st_mode & 0o6000


def test_root_by_sudo_refuses_what_the_user_may_not_change_and_says_how(runner: CommandRunner) -> None:
    root, sudo = runner.folder, {"SUDO_UID": str(USER)}
    runner.write("closed/a", b"one\n")
    runner.edit("closed/a", b"one", b"two")
    runner.write("b", b"one\n")
    runner.edit("b", b"one", b"two")
    runner.write("sticky/c", b"one\n")
    runner.edit("sticky/c", b"one", b"two")
    give(root)
    give(root / "closed", THIRD)
    (root / "closed").chmod(0o755)
    os.chown(root / "closed/a", USER, USER)
    os.chown(root / "b", 0, 0)
    (root / "b").chmod(0o644)
    give(root / "sticky", THIRD)
    (root / "sticky").chmod(0o1777)
    (root / "sticky/c").chmod(0o666)
    done("record", folder=root, settings=sudo)
    refused = [("2", "closed/a", "closed", THIRD), ("4", "b", "b", "root"), ("6", "sticky/c", "sticky/c", THIRD)]
    for edit, path, refusing, owner in refused:
        ran = cas("reject", edit, folder=root, settings=sudo)
        assert ran.status == 1
        assert f"belongs to {owner}. By sudo, cas does only what {USER} may do there." in ran.said
        assert f"sudo chown {USER} {root / refusing}" in ran.said
        assert (root / path).read_bytes() == b"two\n"
    (root / "sticky").chmod(0o777)
    done("reject", "6", folder=root, settings=sudo)


def test_root_by_sudo_records_nothing_that_the_user_may_not_read(runner: CommandRunner) -> None:
    root, sudo = runner.folder, {"SUDO_UID": str(USER)}
    runner.done("record")
    give(root)
    for path in ("secret/a", "b"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_bytes(b"of root alone\n")
        (root / path).chmod(0o600)
    (root / "secret").chmod(0o700)
    (root / "secret/a").chmod(0o644)
    cas("record", folder=root, settings=sudo)
    cas("snapshot", folder=root, settings=sudo)
    assert cas("log", "--json", folder=root, settings=sudo).lines() == []
    assert "of root alone" not in cas("cat", "b", folder=root, settings=sudo).text
    assert cas("diff", folder=root, settings=sudo).text == ""
    for segment in (root / ".cas/segments").iterdir():
        assert b"of root alone" not in segment.read_bytes()


def test_an_imported_workspace_belongs_to_the_owner_of_the_folder_above(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("in/a", b"one\n")
    runner.done("export", "--bundle", str(tmp_path / "bundle"))
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    give(theirs)
    for settings, name in (({}, "x"), ({"SUDO_UID": str(USER)}, "y")):
        done("import", str(tmp_path / "bundle"), f"{name}/z", folder=theirs, settings=settings)
        found = owners(theirs / name)
        assert set(found.values()) == {USER}
        assert {"z/in/a", "z/.cas/segments"} <= set(found)
    done("status", folder=theirs / "y/z", settings={"SUDO_UID": str(USER)})


def test_a_store_that_root_creates_by_sudo_in_the_users_folder_is_the_users(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    give(tmp_path / "p")
    done("init", folder=tmp_path / "p", settings={"SUDO_UID": str(USER)})
    done("record", folder=tmp_path / "p", settings={"SUDO_UID": str(USER)})
    assert set(owners(tmp_path / "p").values()) == {USER}


def test_owners_and_attributes_that_are_not_recorded_are_said_once(
    runner: CommandRunner, tmp_path: Path, as_root: dict[str, str]
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    shutil.move(runner.folder, theirs / "w")
    root = runner.folder = theirs / "w"
    for name in ("a", "b"):
        runner.write(name, b"one\n")
    runner.done("snapshot", "create")
    turn = TurnInfo(session="one", began=time.time_ns() // 1_000, client="claude-code")
    runner.call(lambda call: call.delete("a"), conversation="one", turn=turn)
    runner.call(lambda call: call.delete("b"), conversation="one", turn=turn)
    give(theirs)

    def says(what: str, *words: str, folder: Path = root) -> None:
        said = done(*words, folder=folder, settings=as_root).text
        assert said.count(f"{what} belongs to {USER}") == said.count("access control lists") == 1, said

    def says_nothing(*words: str) -> None:
        assert "access control lists" not in done(*words, folder=root, settings=as_root).text

    says("What was restored", "reject", "3", "4")
    says_nothing("undo")
    assert done("redo", "--json", folder=root, settings=as_root).json()["given_to"] == [USER]
    assert done("undo", "--json", folder=root, settings=as_root).json()["given_to"] == []
    says("What was restored", "redo")
    says_nothing("undo")
    says("What was restored", "restore", "a@1")
    says("What was restored", "undo") if not (root / "a").exists() else says_nothing("undo")
    says_nothing("snapshot", "restore", "1", "--dry-run")
    says("What was restored", "snapshot", "restore", "1")
    says_nothing("undo")
    says_nothing("rewind", "1", "--exact", "--dry-run")
    says("What was restored", "rewind", "1", "--exact")
    says_nothing("export", "--bundle", "../bundle")
    says("What was written", "import", "bundle", "x/y", folder=theirs)
    says("What was saved", "salvage", "w", "--to", "z", folder=theirs)
    assert set(owners(theirs / "x").values()) == set(owners(theirs / "z").values()) == {USER}
    assert b"access control" not in cas("import", str(theirs / "bundle"), "mine", "--store-only", folder=tmp_path).out


def test_what_root_restores_in_a_folder_of_its_own_is_said_to_be_roots(runner: CommandRunner) -> None:
    runner.write("ours/a", b"one\n")
    runner.delete("ours/a")
    give(runner.folder)
    (runner.folder / "ours").mkdir(exist_ok=True)
    os.chown(runner.folder / "ours", 0, 0)
    said = done("reject", "2", folder=runner.folder, settings={"CAS_SAFE_DIRECTORY": "*"}).text
    assert "What was restored belongs to root, as the folder does" in said


def test_what_root_salvages_follows_no_link_of_the_folders_owner(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a", b"one\n")
    (tmp_path / "precious").write_bytes(b"of root\n")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/salvage.json").symlink_to(tmp_path / "precious")
    ran = cas("salvage", str(runner.folder), "--to", str(tmp_path / "theirs"), folder=tmp_path)
    assert ran.status == 1
    assert "salvage.json already exists" in ran.said
    assert (tmp_path / "precious").read_bytes() == b"of root\n"
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["salvage.json"]


@pytest.mark.parametrize("bits", [0o755, 0o2755])
def test_by_sudo_a_new_file_has_the_group_that_it_would_have_if_the_user_had_made_it(
    runner: CommandRunner, bits: int
) -> None:
    root = runner.folder
    runner.write("of/new/a", b"one\n")
    runner.delete("of/new/a")
    shutil.rmtree(root / "of/new", ignore_errors=True)
    (root / "of").mkdir(exist_ok=True)
    give(root)
    os.chown(root / "of", USER, THIRD)
    (root / "of").chmod(bits)
    done("reject", "2", folder=root, settings={"SUDO_UID": str(USER)})
    group = THIRD if bits & stat.S_ISGID else USER
    assert [(root / path).stat().st_gid for path in ("of/new", "of/new/a")] == [group, group]


def test_what_root_clones_pulls_and_rewinds_belongs_to_the_owner_of_its_folder(
    runner: CommandRunner, tmp_path: Path, as_root: dict[str, str]
) -> None:
    pytest.importorskip("obstore")
    theirs, url = tmp_path / "theirs", f"file://{tmp_path}/theirs/bucket"
    (theirs / "bucket").mkdir(parents=True)
    shutil.move(runner.folder, theirs / "w")
    began = time.time_ns() // 1_000
    runner.folder = theirs / "w"
    runner.write("in/a", b"one\n")
    runner.delete("in/a")
    turn = TurnInfo(session="one", began=began, client="claude-code")
    runner.call(lambda call: call.write("b", b"b\n"), conversation="one", turn=turn)
    (theirs / "w/tool").write_bytes(b"#!/bin/sh\n")
    give(theirs)
    (theirs / "w/tool").chmod(0o4755)

    def holds(*words: str, folder: str) -> None:
        done(*words, folder=theirs / folder, settings=as_root)
        assert set(owners(theirs).values()) == {USER}, words

    holds("record", folder="w")
    holds("reject", "2", folder="w")
    holds("remote", "add", "ours", url, folder="w")
    holds("push", "ours", folder="w")
    holds("clone", url, "y", folder=".")
    assert (theirs / "y/in/a").read_bytes() == b"one\n"
    assert stat.S_IMODE((theirs / "y/tool").stat().st_mode) == 0o755
    assert done("diff", "--unrecorded", folder=theirs / "y", settings=as_root).out == b""
    holds("rewind", "1", "--exact", folder="y")
    assert not (theirs / "y/b").exists()
    holds("undo", folder="y")
    holds("redo", folder="y")
    holds("rewind", "1", folder="w")
    holds("push", "ours", folder="w")
    holds("pull", folder="w")


def test_what_root_puts_into_a_bucket_by_many_threads_belongs_to_the_owner_of_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        give(folder)
        probe(open_bucket(f"file://{folder}"))
    os.chown(tmp_path, USER, USER)
    assert set(owners(tmp_path).values()) == {USER}


def test_folders_that_several_processes_of_root_make_at_once_belong_to_the_owner_of_the_folder_above(
    tmp_path: Path,
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    give(theirs)
    start = theirs.stat().st_mtime_ns

    def make(process: int) -> None:
        while time.time_ns() < start + 200_000_000:
            pass
        for number in range(40):
            make_folders(f"{theirs}/{number}/deep/er")
            (theirs / f"{number}/deep/er/{process}").write_bytes(b"")

    children = [multiprocessing.get_context("fork").Process(target=make, args=(number,)) for number in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0, 0]
    found = {path for path in theirs.rglob("*") if path.is_dir()}
    assert len(found) == 120
    assert {path.stat().st_uid for path in found} == {USER}


def test_no_file_that_a_snapshot_restores_has_setuid(runner: CommandRunner, as_root: dict[str, str]) -> None:
    (runner.folder / "tool").write_bytes(b"#!/bin/sh\n")
    (runner.folder / "tool").chmod(0o6755)
    runner.done("record")
    runner.done("snapshot", "create")
    (runner.folder / "tool").unlink()
    give(runner.folder)
    done("snapshot", "restore", "1", folder=runner.folder, settings=as_root)
    found = (runner.folder / "tool").stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (USER, 0o755)


def test_restores_say_that_setuid_does_not_come_back(runner: CommandRunner) -> None:
    tool = runner.folder / "tool"
    tool.write_bytes(b"#!/bin/sh\n")
    runner.done("record")
    tool.chmod(0o4755)
    runner.done("record", "--agent", "x")
    runner.done("snapshot", "create")
    tool.unlink()
    runner.done("record")
    without = "tool without setuid and setgid, which no file gets back"
    assert f"Would write {without}\n" in runner.done("snapshot", "restore", "2", "--dry-run").text
    assert f"Wrote {without}\n" in runner.done("snapshot", "restore", "2").text
    edits = runner.done("log", "--json").lines()
    said = runner.done("snapshot", "restore", "2").text
    assert said == "Left alone tool: setuid and setgid, which no file gets back, are all that differs\n"
    assert runner.done("log", "--json").lines() == edits
    tool.unlink()
    runner.done("record")
    assert f"Would restore {without}\n" in runner.done("restore", "tool@1", "--dry-run").text
    assert f"Restored {without} as edit" in runner.done("restore", "tool@1").text


def test_an_exact_rewind_says_that_setuid_does_not_come_back(runner: CommandRunner) -> None:
    (runner.folder / "tool").write_bytes(b"#!/bin/sh\n")
    (runner.folder / "tool").chmod(0o4755)
    runner.done("record")
    turn = TurnInfo(session="one", began=time.time_ns() // 1_000, client="claude-code")
    runner.call(lambda call: call.delete("tool"), conversation="one", turn=turn)
    without = "tool without setuid and setgid, which no file gets back"
    assert f"Would restore {without}\n" in runner.done("rewind", "1", "--exact", "--dry-run").text
    assert f"Restored {without}\n" in runner.done("rewind", "1", "--exact").text
    assert (runner.folder / "tool").stat().st_mode & 0o7777 == 0o755
