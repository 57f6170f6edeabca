"""Test that what git says of a worktree is read from its files as git itself reads them."""

import os
import subprocess
from pathlib import Path

import pytest

from objstore.disk.git.index_file import has_path, index_paths
from objstore.disk.ignore_rules.git_worktree import GitWorktree, enclosing_worktree, worktree_at


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home folder, the only one that git and this process know."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    return folder


def git(folder: Path, *words: str) -> str:
    author = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"]
    return subprocess.run(
        ["git", "-C", str(folder), *author, *words], check=True, capture_output=True, text=True
    ).stdout


def made(folder: Path, *words: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", *words)
    (folder / ".git" / "info" / "exclude").unlink()  # which has remarks
    return folder


def put(folder: Path, *paths: str, text: str = "") -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text or path)


def found_at(folder: Path) -> GitWorktree:
    found = worktree_at(str(folder))
    assert found is not None
    return found


PATHS = ["a", "a.b", "a/b/c", "a/b/d", "long/" + "x" * 200, "z/" + "y" * 250 + "/" + "z" * 250, "é\n", "b"]


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("hashes", ["sha1", "sha256"])
def test_the_index_has_the_files_that_git_lists(tmp_path: Path, version: str, hashes: str) -> None:
    work = made(tmp_path / "work", f"--object-format={hashes}")
    paths = [path for path in PATHS if path != "a"]
    put(work, *paths, "later")
    git(work, "update-index", "--index-version", version)
    git(work, "add", "-A", "--", *paths)
    git(work, "add", "--intent-to-add", "later")  # which needs the additional flags of version 3
    listed = git(work, "ls-files", "-z").split("\0")[:-1]
    content = (work / ".git" / "index").read_bytes()
    assert content[7] == max(int(version), 3)
    assert sorted(map(os.fsdecode, index_paths(content, 20 if hashes == "sha1" else 32)[0])) == sorted(listed)
    repository = found_at(work)
    assert all(repository.has(os.fsencode(path), is_folder=False) for path in listed)
    for times in range(20):  # the first ones without a list of all paths
        assert repository.has(b"a/b", is_folder=True), times
        assert repository.has(b"long", is_folder=True)
        assert not any(
            repository.has(path, is_folder=False) for path in (b"a/b", b"c", b"b/c", b"e", b"lat", b"x" * 200)
        )
        assert not any(repository.has(path, is_folder=True) for path in (b"a/b/e", b"a.", b"y" * 250, b"b/", b"ong"))


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_path_that_is_looked_up_alone_is_found_as_in_the_list(tmp_path: Path, version: str) -> None:
    work = made(tmp_path / "work")
    # A "p" in front of a name can be read as the upper half of a length.
    put(work, *(f"p/{'p' * width}/p/{'x' * length}" for width in (1, 46, 47) for length in (1, 45, 46, 47)), "new")
    git(work, "update-index", "--index-version", version)
    git(work, "add", "-A", "p")
    if version == "3":
        git(work, "add", "--intent-to-add", "new")
    content = (work / ".git" / "index").read_bytes()
    files = set(index_paths(content, 20)[0])
    folders = {path.rsplit(b"/", count)[0] for path in files for count in range(1, 4) if b"/" in path}
    pieces = {b"/".join(path.split(b"/")[at:end]) for path in files for at in range(4) for end in range(at + 1, 5)}
    for path in pieces | {piece[1:] for piece in pieces if len(piece) > 1}:
        assert has_path(content, path, 20, is_folder=False) in {path in files, None}
        assert has_path(content, path, 20, is_folder=True) in {path in files or path in folders, None}


def test_a_split_index_has_the_files_of_both_its_parts(tmp_path: Path) -> None:
    work = made(tmp_path / "work")
    put(work, "one", "two")
    git(work, "add", "-A")
    git(work, "update-index", "--split-index")
    put(work, "three", "inner/four")
    git(work, "add", "-A")
    assert list((work / ".git").glob("sharedindex.*"))
    repository = found_at(work)
    assert all(repository.has(path, is_folder=False) for path in (b"one", b"two", b"three", b"inner/four"))


@pytest.mark.parametrize("cut", [0, 3, 11, 12, 40, 75, 90])
def test_an_index_that_is_cut_or_unknown_is_refused(tmp_path: Path, cut: int) -> None:
    work = made(tmp_path / "work")
    put(work, *PATHS[1:])
    git(work, "add", "-A")
    content = (work / ".git" / "index").read_bytes()
    for damaged in (content[:cut], content[:7] + b"\x09" + content[8:]):
        with pytest.raises(ValueError, match="index"):
            index_paths(damaged, 20)
        (work / ".git" / "index").write_bytes(damaged)
        assert not found_at(work).has(b"b", is_folder=False)


def test_the_key_changes_with_the_index(tmp_path: Path) -> None:
    work = made(tmp_path / "work")
    keys = [found_at(work).index_key]
    for path in ("a", "b"):
        put(work, path)
        git(work, "add", path)
        keys += [found_at(work).index_key, found_at(work).index_key]
    git(work, "rm", "-q", "--cached", "a")
    keys.append(found_at(work).index_key)
    assert [keys[at] == keys[at + 1] for at in range(5)] == [False, True, False, True, False]


def test_a_linked_worktree_and_a_submodule_have_an_index_of_their_own(tmp_path: Path) -> None:
    work = made(tmp_path / "work")
    put(work, "a")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    (work / ".git" / "info" / "exclude").write_text("*.o\n")
    git(work, "worktree", "add", "-q", str(tmp_path / "linked"))
    put(tmp_path / "linked", "b")
    git(tmp_path / "linked", "add", "-A")
    linked = found_at(tmp_path / "linked")
    assert (linked.user, linked.exclude) == (b"", b"*.o\n")
    assert (linked.has(b"a", is_folder=False), linked.has(b"b", is_folder=False)) == (True, True)
    assert not found_at(work).has(b"b", is_folder=False)
    outer = made(tmp_path / "outer")
    git(outer, "submodule", "--quiet", "add", str(work), "sub")
    assert found_at(outer / "sub").has(b"a", is_folder=False)
    assert found_at(outer).has(b"sub", is_folder=True)


CONFIGURATIONS = [
    "[core]\n\texcludesFile = {home}/mine\n",
    "[core] excludesfile = ~/mine # a remark\n",
    '[CORE]\nExcludesFile="{home}/mi"ne ; a remark\n',
    '[core]\nexcludesfile = {home}/other\n[user]\nname = x\n[core]\nexcludesfile = "{home}/mi\\\nne"\n',
    "[include]\npath = inner\n",
    '[core "x"]\nexcludesfile = {home}/other\n[core]\nexcludesfile = {home}/mine\n',
    "[core]\nexcludesfile = {home}/my file\n",
    "[core]\nexcludesfile =\n",
    "[other]\nexcludesfile = {home}/mine\n",
]


@pytest.mark.parametrize("place", ["own", "user", "settings", "global"])
@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_the_ignore_file_of_the_user_is_the_one_that_git_reads(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, place: str, text: str
) -> None:
    work = made(tmp_path / "work")
    for name in ("mine", "other", "my file", ".config/git/ignore"):
        put(home, name, text=f"of {name.rpartition('/')[2]}\n")
    files = {
        "own": work / ".git" / "config",
        "user": home / ".gitconfig",
        "settings": home / ".config" / "git" / "config",
        "global": tmp_path / "global",
    }
    if place == "global":
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(files[place]))
    with files[place].open("a") as file:
        file.write(text.format(home=home))
    (files[place].parent / "inner").write_text(f"[core]\nexcludesfile = {home}/mine\n")
    asked = subprocess.run(
        ["git", "-C", str(work), "config", "--get", "--path", "core.excludesfile"],
        capture_output=True,
        text=True,
        check=False,
    )
    path = asked.stdout.removesuffix("\n") if not asked.returncode else str(home / ".config" / "git" / "ignore")
    wanted = Path(path).read_bytes() if path else b""
    assert (found_at(work).user, found_at(work).exclude) == (wanted, b"")


def test_the_user_has_an_ignore_file_in_the_folder_of_settings(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = made(tmp_path / "work")
    put(home, ".config/git/ignore", text="*.one\n")
    put(tmp_path, "settings/git/ignore", text="*.two\n")
    (work / ".git" / "info" / "exclude").write_text("*.three\n")
    assert (found_at(work).user, found_at(work).exclude) == (b"*.one\n", b"*.three\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    assert (found_at(work).user, found_at(work).exclude) == (b"*.two\n", b"*.three\n")


def test_a_folder_that_is_no_repository_has_none(tmp_path: Path) -> None:
    (tmp_path / "empty" / ".git").mkdir(parents=True)
    put(tmp_path, "file/.git", text="not a repository\n")
    put(tmp_path, "dangling/.git", text="gitdir: ../nowhere\n")
    os.mkfifo(tmp_path / "pipe")
    put(tmp_path, "pipe-inside/x")
    os.mkfifo(tmp_path / "pipe-inside" / ".git")
    for name in ("empty", "file", "dangling", "pipe-inside", "missing"):
        assert worktree_at(str(tmp_path / name)) is None


def test_the_nearest_repository_above_is_found(tmp_path: Path) -> None:
    outer = made(tmp_path / "outer")
    (outer / "a" / "b").mkdir(parents=True)
    found = enclosing_worktree(str(outer / "a" / "b"))
    assert found is not None
    assert found.top == str(outer)
    made(outer / "a")
    found = enclosing_worktree(str(outer / "a" / "b"))
    assert found is not None
    assert found.top == str(outer / "a")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to give files to another user")
def test_a_repository_above_that_belongs_to_another_user_is_not_used(tmp_path: Path) -> None:
    outer = made(tmp_path / "outer")
    (outer / "a").mkdir()
    os.chown(outer / ".git", 12345, 12345)
    assert enclosing_worktree(str(outer / "a")) is None
