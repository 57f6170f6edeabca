"""Sharing that is interrupted, twice at once, or without space: each ends with a clear word, and nothing is lost."""

import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from objstore import Workspace
from tests.support.command_runner import CommandRunner, cas, environment
from tests.support.crash_scenarios import write
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.mounts import can_mount, small_disk
from tests.support.shared_stores import AFTER, pushed_desk

CAS = [sys.executable, "-P", "-m", "editledger.cas"]


def segments(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / ".cas" / "segments").iterdir()}


def mirror_of_desk(root: Path) -> Path:
    return root / ".cas/remotes/team/members/desk"


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    return pushed_desk(tmp_path)


@pytest.fixture
def lap(desk: Path, runner: CommandRunner) -> CommandRunner:
    """Return a workspace of ours that has the same bucket, and has pulled nothing yet."""
    runner.done("remote", "add", "team", desk.with_name("bucket").as_uri())
    return runner


# ---- Ctrl-C


@pytest.fixture
def silent() -> Iterator[tuple[socket.socket, dict[str, str]]]:
    """Yield a server that accepts connections and never answers, and the environment in which it is the bucket's."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
        yield server, {"AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true", **keys}


@pytest.mark.parametrize(
    "words",
    [
        ("push",),
        ("pull",),
        ("remote", "gc"),
        ("clone", "s3://bucket/x", "clone"),
        ("remote", "add", "b", "s3://bucket/y"),
    ],
    ids=" ".join,
)
def test_ctrl_c_ends_the_wait_for_a_server_that_does_not_answer(
    lap: CommandRunner, silent: tuple[socket.socket, dict[str, str]], words: tuple[str, ...]
) -> None:
    server, settings = silent
    known = lap.folder / ".cas/remotes/team/remote"
    known.write_text(json.dumps({**json.loads(known.read_text()), "url": "s3://bucket/x"}))
    before = segments(lap.folder)
    process = subprocess.Popen([*CAS, *words], cwd=lap.folder, env=environment(settings), stderr=subprocess.PIPE)
    server.settimeout(60)
    asked, _ = server.accept()
    with asked:
        asked.recv(1)  # the request is on its way
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)  # far less than the minutes after which it gives up
    assert (process.returncode, said) == (130, b"")
    assert segments(lap.folder) == before
    assert not (lap.folder / "clone").exists()


# ---- kill -9 while what was fetched is checked


def killed(words: list[str], folder: Path, moment: str) -> None:
    """Run `cas` and let it die when it calls a function: `module:name`."""
    module, _, name = moment.partition(":")
    code = (
        f"import sys, os, signal, importlib\n"
        f"found = importlib.import_module({module!r})\n"
        f"setattr(found, {name!r}, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))\n"
        f"from cli.shell.entry import main\nsys.argv[1:] = {words!r}\nmain()"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment({}), check=False)
    assert ended.returncode == -signal.SIGKILL


CHECKED = "objstore.upkeep.transfer.import_export:check_store"


def test_pull_that_dies_in_the_check_fetches_nothing_again(lap: CommandRunner, desk: Path) -> None:
    killed(["pull"], lap.folder, CHECKED)
    assert not mirror_of_desk(lap.folder).exists()
    assert [each["bytes"] for each in lap.done("pull", "--dry-run", "--json").lines()] == [0]
    assert [each["bytes"] for each in lap.done("pull", "--json").lines()] == [0]
    assert segments(mirror_of_desk(lap.folder)) == segments(desk)
    assert sorted(path.name for path in (lap.folder / ".cas/remotes/team/members").iterdir()) == ["desk"]


def test_clone_that_dies_in_the_check_fetches_nothing_again(desk: Path, tmp_path: Path) -> None:
    url = desk.with_name("bucket").as_uri()
    killed(["clone", url, "clone"], tmp_path, CHECKED)
    for piece in tmp_path.glob("bucket/stores/*/objects/*"):
        piece.unlink()  # no one can fetch it any more
    assert cas("clone", url, "clone", folder=tmp_path).status == 0
    assert segments(tmp_path / "clone") == segments(desk)
    assert (tmp_path / "clone/a.txt").read_bytes() == AFTER
    assert not (tmp_path / "clone.incoming").exists()


def test_pull_that_dies_before_the_mirror_is_moved_is_made_again(lap: CommandRunner, desk: Path) -> None:
    killed(["pull"], lap.folder, "objstore.upkeep.remote.pull:_adopt")
    lap.done("pull")
    assert segments(mirror_of_desk(lap.folder)) == segments(desk)
    assert sorted(path.name for path in (lap.folder / ".cas/remotes/team/members").iterdir()) == ["desk"]


# ---- two at once


@pytest.mark.parametrize("words", [("pull",), ("push",)], ids=" ".join)
def test_two_at_once_both_succeed(lap: CommandRunner, desk: Path, words: tuple[str, ...]) -> None:
    lap.write("own.txt", b"own\n")
    both = [
        subprocess.Popen([*CAS, *words], cwd=lap.folder, env=environment({}), stderr=subprocess.PIPE) for _ in range(2)
    ]
    assert [(each.communicate(timeout=120)[1], each.returncode) for each in both] == [(b"", 0)] * 2
    lap.done("pull")
    assert segments(mirror_of_desk(lap.folder)) == segments(desk)


# ---- a full disk


def test_pull_onto_a_full_disk_says_so_and_keeps_the_mirror(lap: CommandRunner, desk: Path, tmp_path: Path) -> None:
    if not can_mount(tmp_path):
        pytest.skip("no file system can be mounted here")
    lap.done("pull")
    before = segments(mirror_of_desk(lap.folder))
    with Workspace.open(desk, UnsyncedDisk()) as workspace:
        write(workspace, "b.txt", b"new\n")
        workspace.remotes.push("team")
    remote = lap.folder / ".cas/remotes/team"
    shutil.copytree(remote, tmp_path / "kept")
    with small_disk(remote, 8):
        shutil.copytree(tmp_path / "kept", remote, dirs_exist_ok=True)
        refused = lap.cas("pull")
        assert refused.status == 1
        assert "are free here" in refused.said
        assert segments(mirror_of_desk(lap.folder)) == before
    lap.done("pull")
    assert segments(mirror_of_desk(lap.folder)) == segments(desk)
