"""Positions are read as the real git writes them, and hostile files count as no repository."""

import os
import subprocess
from pathlib import Path

import pytest

from objstore.disk.git.contents import CommittedChanges, changes_of, entries_at, is_content_of, texts_of
from objstore.disk.git.repository import Position, find_repository, position_of, reflog_since
from tests.support.git_repository import git, new_repository


@pytest.fixture
def work_tree(tmp_path: Path) -> Path:
    folder = new_repository(tmp_path / "repo")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def position(folder: Path) -> Position:
    repository = find_repository(str(folder))
    assert repository is not None
    found = position_of(repository)
    assert found is not None
    return found


def test_the_position_has_the_branch_and_its_commit(work_tree: Path) -> None:
    (work_tree / "deep" / "er").mkdir(parents=True)
    found = position(work_tree / "deep" / "er")
    assert (found.branch, found.commit, found.stash) == ("main", git(work_tree, "rev-parse", "HEAD").strip(), "")
    assert found.log_size == (work_tree / ".git" / "logs" / "HEAD").stat().st_size


def test_a_packed_branch_and_a_detached_head_are_resolved(work_tree: Path) -> None:
    commit = git(work_tree, "rev-parse", "HEAD").strip()
    git(work_tree, "pack-refs", "--all")
    assert position(work_tree).commit == commit
    git(work_tree, "checkout", "-q", "--detach")
    assert (position(work_tree).branch, position(work_tree).commit) == ("", commit)


def test_a_repository_without_commits_has_a_branch_only(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "trunk")
    assert position(tmp_path) == Position(branch="trunk", commit="", stash="", merging="", log_size=0, index=0)


def test_linked_worktrees_and_submodules_have_positions_of_their_own(work_tree: Path, tmp_path: Path) -> None:
    git(work_tree, "worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    assert position(tmp_path / "linked").branch == "other"
    assert position(tmp_path / "linked").commit == position(work_tree).commit
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "submodule", "--quiet", "add", str(work_tree), "inner")
    assert position(outer / "inner").commit == position(work_tree).commit
    assert position(outer).commit == ""


@pytest.mark.parametrize(
    "command",
    [
        ["checkout", "-q", "-b", "feature"],
        ["commit", "-q", "--allow-empty", "-m", "more"],
        ["commit", "-q", "--amend", "--allow-empty", "-m", "again"],
        ["reset", "-q", "--hard", "HEAD"],
        ["stash", "-q"],
    ],
    ids=["checkout", "commit", "amend", "reset to the same commit", "stash"],
)
def test_every_command_that_may_change_files_moves_the_position(work_tree: Path, command: list[str]) -> None:
    (work_tree / "a.txt").write_text("changed\n")
    before = position(work_tree)
    git(work_tree, *command)
    assert position(work_tree) != before


def test_popping_the_stash_moves_the_position(work_tree: Path) -> None:
    (work_tree / "a.txt").write_text("changed\n")
    git(work_tree, "stash", "-q")
    before = position(work_tree)
    assert before.stash == git(work_tree, "rev-parse", "stash@{0}").strip()
    git(work_tree, "stash", "pop", "-q")
    assert position(work_tree).stash == ""


def test_a_merge_that_waits_for_a_person_is_part_of_the_position(work_tree: Path) -> None:
    git(work_tree, "checkout", "-q", "-b", "other")
    (work_tree / "a.txt").write_text("theirs\n")
    git(work_tree, "commit", "-q", "-am", "theirs")
    theirs = position(work_tree).commit
    git(work_tree, "checkout", "-q", "main")
    (work_tree / "a.txt").write_text("ours\n")
    git(work_tree, "commit", "-q", "-am", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(work_tree, "merge", "other")
    assert position(work_tree).merging == theirs


def test_the_reflog_says_what_moved_head(work_tree: Path) -> None:
    repository = find_repository(str(work_tree))
    assert repository is not None
    size = position(work_tree).log_size
    git(work_tree, "checkout", "-q", "-b", "feature")
    git(work_tree, "commit", "-q", "--allow-empty", "-m", "more")
    entries = reflog_since(repository, size)
    assert [entry.message for entry in entries] == ["checkout: moving from main to feature", "commit: more"]
    assert entries[1].new == position(work_tree).commit
    assert entries[0].new == entries[1].old
    assert [entry.made_commit for entry in entries] == [False, True]
    assert reflog_since(repository, position(work_tree).log_size + 1) == ()


@pytest.mark.parametrize(
    "content",
    [b"", b"ref: ", b"ref: refs/../../../etc/passwd\n", b"ref: refs/heads/a\0b\n", b"zz\n", b"\xff" * 40, b"a" * 70000],
)
def test_content_of_head_that_git_would_not_write_is_no_position(work_tree: Path, content: bytes) -> None:
    (work_tree / ".git" / "HEAD").write_bytes(content)
    repository = find_repository(str(work_tree))
    assert repository is None or position_of(repository) is None


def test_a_pipe_in_place_of_head_does_not_block(work_tree: Path) -> None:
    (work_tree / ".git" / "HEAD").unlink()
    os.mkfifo(work_tree / ".git" / "HEAD")
    repository = find_repository(str(work_tree))
    assert repository is None or repository.work_tree != str(work_tree)


def test_damaged_lines_of_the_reflog_are_skipped(work_tree: Path) -> None:
    repository = find_repository(str(work_tree))
    assert repository is not None
    with (work_tree / ".git" / "logs" / "HEAD").open("ab") as log:
        log.write(b"\0\xff nonsense\n")
    git(work_tree, "checkout", "-q", "-b", "feature")
    messages = [entry.message for entry in reflog_since(repository, 0)]
    assert messages == ["commit (initial): first", "checkout: moving from main to feature"]


def test_entries_of_a_commit_match_what_git_put_into_files(work_tree: Path) -> None:
    repository = find_repository(str(work_tree))
    assert repository is not None
    names = [b"line\nfeed", b"\xff\xfe", b":(top)x", b"sub/*.txt", b"-n"]
    (work_tree / "sub").mkdir()
    for name in names:
        (work_tree / os.fsdecode(name)).write_bytes(b"in " + name)
    (work_tree / "run").write_text("#!/bin/sh\n")
    (work_tree / "run").chmod(0o755)
    (work_tree / "link").symlink_to("a.txt")
    git(work_tree, "add", ".")
    git(work_tree, "commit", "-q", "-m", "names")
    commit = position(work_tree).commit
    found = entries_at(repository, commit, [*names, b"run", b"link", b"missing", b"sub"])
    assert found is not None
    assert set(found) == {*names, b"run", b"link"}
    assert all(is_content_of(found[name], b"in " + name) for name in names)
    assert not is_content_of(found[names[0]], b"other")
    assert found[b"run"].is_executable
    assert not is_content_of(found[b"link"], b"a.txt")
    texts = texts_of(repository, [found[name].id for name in names] + ["0" * 40])
    assert texts == {found[name].id: b"in " + name for name in names}


def test_the_changes_of_commits_are_listed(work_tree: Path) -> None:
    repository = find_repository(str(work_tree))
    assert repository is not None
    first = position(work_tree).commit
    (work_tree / "b.txt").write_text("two\n")
    git(work_tree, "rm", "-q", "a.txt")
    git(work_tree, "add", ".")
    git(work_tree, "commit", "-q", "-m", "second")
    second = position(work_tree).commit
    blob = {name: git(work_tree, "rev-parse", name).strip() for name in (f"{first}:a.txt", "HEAD:b.txt")}
    assert changes_of(repository, [first]) == CommittedChanges(
        blobs=frozenset({blob[f"{first}:a.txt"]}), deleted=frozenset()
    )
    assert changes_of(repository, [second]) == CommittedChanges(
        blobs=frozenset({blob["HEAD:b.txt"]}), deleted=frozenset({b"a.txt"})
    )
    assert changes_of(repository, ["0" * 40]) == CommittedChanges(blobs=frozenset(), deleted=frozenset())


def test_more_paths_than_a_command_line_takes_are_found(work_tree: Path) -> None:
    repository = find_repository(str(work_tree))
    assert repository is not None
    paths = [b"d/%d" % number for number in range(700)]
    (work_tree / "d").mkdir()
    for path in paths:
        (work_tree / os.fsdecode(path)).write_bytes(path)
    git(work_tree, "add", ".")
    git(work_tree, "commit", "-q", "-m", "many")
    found = entries_at(repository, position(work_tree).commit, paths)
    assert found is not None
    assert all(is_content_of(found[path], path) for path in paths)


def test_converted_line_endings_are_recognized(work_tree: Path) -> None:
    repository = find_repository(str(work_tree))
    assert repository is not None
    git(work_tree, "config", "core.autocrlf", "true")
    (work_tree / "a.txt").unlink()
    git(work_tree, "checkout", "-q", "a.txt")
    content = (work_tree / "a.txt").read_bytes()
    assert content == b"one\r\n"
    found = entries_at(repository, position(work_tree).commit, [b"a.txt"])
    assert found is not None
    assert is_content_of(found[b"a.txt"], content)


def test_a_repository_with_sha256_names_is_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256")
    (tmp_path / "a").write_text("x\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    repository = find_repository(str(tmp_path))
    assert repository is not None
    found = entries_at(repository, position(tmp_path).commit, [b"a"])
    assert found is not None
    assert is_content_of(found[b"a"], b"x\n")


def test_programs_named_in_the_configuration_do_not_run(work_tree: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\ncat\n")
    program.chmod(0o755)
    with (work_tree / ".git" / "config").open("a") as config:
        config.write(
            f"[core]\n fsmonitor = {program}\n pager = {program}\n sshCommand = {program}\n"
            f' alternateRefsCommand = {program}\n[filter "x"]\n clean = {program}\n smudge = {program}\n'
            f'[diff "x"]\n textconv = {program}\n command = {program}\n[alias]\n ls-tree = !{program}\n'
        )
    (work_tree / ".gitattributes").write_text("* filter=x diff=x\n")
    repository = find_repository(str(work_tree))
    assert repository is not None
    found = entries_at(repository, position(work_tree).commit, [b"a.txt"])
    assert found is not None
    assert texts_of(repository, [found[b"a.txt"].id]) == {found[b"a.txt"].id: b"one\n"}
    assert not mark.exists()


def test_without_git_the_contents_are_unknown(work_tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = find_repository(str(work_tree))
    assert repository is not None
    monkeypatch.setenv("PATH", str(work_tree))
    assert entries_at(repository, position(work_tree).commit, [b"a.txt"]) is None


def test_relative_folders_of_path_are_not_searched_for_git(work_tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = find_repository(str(work_tree))
    assert repository is not None
    (work_tree / "git").write_text("#!/bin/sh\necho planted\n")
    (work_tree / "git").chmod(0o755)
    monkeypatch.chdir(work_tree)
    monkeypatch.setenv("PATH", ".")
    assert entries_at(repository, position(work_tree).commit, [b"a.txt"]) is None
