"""What a person sees of sharing: a compacted store, a clone that goes on, a purge, and a library that is missing."""

import shutil
import sys
from pathlib import Path

import pytest

from objstore import RemoteSupportMissing, clone_remote
from tests.support.command_runner import CommandRunner, cas


def segments(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / ".cas" / "segments").iterdir()}


def test_compacted_store_is_pushed_and_cloned_as_it_is(runner: CommandRunner, tmp_path: Path) -> None:
    for number in range(3):
        runner.write("a.txt", bytes(range(256)) * 40 * (number + 1))
    url = f"file://{tmp_path}/bucket"
    runner.done("remote", "add", "backup", url)
    runner.done("push")
    runner.done("accept", "--all")
    runner.done("gc", "--older-than", "0s")
    assert "00000001.1.seg" in segments(runner.folder)
    runner.done("push")
    clone = tmp_path / "clone"
    assert cas("clone", url, str(clone), folder=tmp_path).status == 0
    assert segments(clone) == segments(runner.folder)
    assert cas("fsck", folder=clone).status == 0
    # The clone goes on in the lane; the push of the original is refused, and it loses nothing.
    (clone / "a.txt").write_bytes(b"there\n")
    assert cas("record", "--agent", "joe", folder=clone).status == 0
    assert cas("push", folder=clone).status == 0
    refused = runner.cas("push")
    assert refused.status == 1
    assert "later history" in refused.said
    runner.done("push", "--new-lane")


def test_clone_of_a_history_with_setuid_says_that_its_file_has_none(runner: CommandRunner, tmp_path: Path) -> None:
    (runner.folder / "tool").write_bytes(b"#!/bin/sh\n")
    (runner.folder / "tool").chmod(0o4755)
    runner.done("record")
    runner.write("a", b"one\n")
    url, clone = f"file://{tmp_path}/bucket", tmp_path / "clone"
    runner.done("remote", "add", "backup", url)
    runner.done("push")
    ran = cas("clone", url, str(clone), folder=tmp_path)
    assert ran.status == 0, ran.said
    assert ran.text.count("Without setuid and setgid, which no file gets back: tool.") == 1
    assert (clone / "tool").stat().st_mode & 0o7777 == 0o755
    assert cas("record", folder=clone).text == "Nothing changed.\n"
    assert cas("fsck", folder=clone).status == 0
    # The record of it is one more edit, which is pushed like any other.
    assert "origin: 1 edit not pushed" in cas("status", folder=clone).text
    assert cas("push", folder=clone).status == 0


def test_clone_makes_the_folders_above_and_leaves_nothing_where_it_is_refused(
    runner: CommandRunner, tmp_path: Path
) -> None:
    runner.write("a", b"one\n")
    url = f"file://{tmp_path}/bucket"
    runner.done("remote", "add", "backup", url)
    runner.done("push")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    before = sorted(tmp_path.rglob("*"))
    for name, why in (
        ("full", "full/file). Clone into a new folder."),
        ("full/.cas/x/y", "Path is reserved"),
        ("full/file/x", ""),
    ):
        ran = cas("clone", url, name, folder=tmp_path)
        assert ran.status == 1
        assert why in ran.said
        assert sorted(tmp_path.rglob("*")) == before
    pushed = next(tmp_path.glob("bucket/stores/*/objects/*"))
    kept = pushed.read_bytes()
    pushed.write_bytes(b"x" * len(kept))
    assert cas("clone", url, "x/y/z", folder=tmp_path).status == 1
    assert (tmp_path / "x/y/z.incoming").is_dir()  # the next try goes on there
    pushed.write_bytes(kept)
    assert cas("clone", url, "x/y/z", folder=tmp_path).status == 0
    assert sorted(path.name for path in (tmp_path / "x/y").iterdir()) == ["z"]
    assert cas("fsck", folder=tmp_path / "x/y/z").status == 0


def test_purge_in_the_bucket_says_what_may_keep_the_bytes(runner: CommandRunner, tmp_path: Path) -> None:
    runner.write("a.txt", b"one\n")
    runner.done("remote", "add", "backup", f"file://{tmp_path}/bucket")
    runner.done("push")
    runner.write("a.txt", b"one\ntwo\n" * 100)
    assert "versions" in runner.done("remote", "gc", "--purge").text
    assert not list(tmp_path.glob("bucket/stores/*/garbage/*"))


def test_key_in_a_url_is_refused_and_not_written_down(runner: CommandRunner) -> None:
    refused = runner.cas("remote", "add", "backup", "s3://KEY:SECRET@bucket/prefix")
    assert refused.status == 1
    assert "environment" in refused.said
    assert "SECRET" not in refused.said
    assert not list(runner.folder.glob(".cas/remotes/*"))


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_clone_from_a_folder_without_a_store_says_so_and_makes_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for name, why in (("missing", "there is no such folder. Check its path"), ("empty", "no store has been pushed")):
        ran = cas("clone", (tmp_path / name).as_uri(), "clone", *words, folder=tmp_path)
        assert (ran.status, why in ran.said) == (1, True), ran.said
        assert sorted(tmp_path.rglob("*")) == before


def test_only_a_new_remote_and_a_repeated_push_make_the_folder_of_a_bucket(
    runner: CommandRunner, tmp_path: Path
) -> None:
    bucket = tmp_path / "bucket"
    runner.write("a", b"one\n")
    runner.done("remote", "add", "backup", bucket.as_uri())
    runner.done("push")
    shutil.rmtree(bucket)  # as while its disk is not mounted
    for words in (("push",), ("pull",), ("remote", "gc", "backup")):
        assert "there is no such folder" in runner.cas(*words).said
        assert not bucket.exists()
    runner.done("push", "--again")
    assert "Would fetch" in cas("clone", bucket.as_uri(), "clone", "--dry-run", folder=tmp_path).text


def test_a_refused_remote_names_the_cause_and_makes_no_folder(runner: CommandRunner, tmp_path: Path) -> None:
    bucket, other = tmp_path / "bucket", tmp_path / "other"
    runner.done("remote", "add", "backup", bucket.as_uri())
    for name, url, said in (
        ("backup", other.as_uri(), "'backup' can't be the name of a new remote: there is one already."),
        ("b d", other.as_uri(), "'b d' can't be the name of a new remote: it takes a letter"),
        ("new", (runner.folder / "inside").as_uri(), "it is inside this workspace"),
        ("new", str(other), f"a folder is named by a URL: {other.as_uri()}."),
    ):
        assert said in runner.cas("remote", "add", name, url).said
        assert not other.exists()
        assert not (runner.folder / "inside").exists()
    assert "The remotes are: backup." in runner.cas("push", "elsewhere").said


def test_bucket_inside_the_workspace_is_refused(runner: CommandRunner) -> None:
    refused = runner.cas("remote", "add", "backup", f"file://{runner.folder}/bucket")
    assert refused.status == 1
    assert "inside this workspace" in refused.said


def test_without_the_library_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)  # as where the extra is not installed
    with pytest.raises(RemoteSupportMissing, match=r"pip install 'editledger\[remote\]'"):
        clone_remote(f"file://{tmp_path}/bucket", str(tmp_path / "clone"))
