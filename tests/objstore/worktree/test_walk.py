"""Test the walk: what it finds, what it reads, what it never opens, and what it reports as skipped."""

import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore.disk.fs.confined_path import Tree
from objstore.disk.ignore_rules.rule_files import IgnoreReader
from objstore.disk.ignore_rules.scan_rules import ScanRules
from objstore.model.ids import blob_id
from objstore.worktree.changed_dirs import changed_folders
from objstore.worktree.stat_cache import UNKNOWN, StatCache
from objstore.worktree.walk import ReadFile, ScanLimits, TreeWalk
from tests.support.path_sandbox import as_unprivileged_user

LATER = 10**19
"""A time after every change that a test makes, so that nothing counts as changed at the time of the scan."""

STORE = b"store"

CACHED = b"Signature: 8a477f597d28d172789f06886806bc55\n"
"""The content of a tag file, which marks a folder that can be rebuilt."""


class ScannedFolder:
    """A folder that is scanned repeatedly, with the stat cache kept as bytes in between."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tree = Tree(root)
        self.kept = b""

    def scan(
        self, *, clock: int = LATER, uses_git: bool = False, limits: ScanLimits | None = None, scope: bytes = b""
    ) -> "ScanResult":
        read: list[ReadFile] = []
        walk = TreeWalk(
            self.tree,
            StatCache.decoded(self.kept, STORE, 0),
            clock=clock,
            keep=read.append,
            reader=IgnoreReader(self.tree, ScanRules(uses_git=uses_git)),
            limits=limits,
        )
        walk.run(scope)
        self.kept = walk.stat_cache.encoded(STORE, 0)
        return ScanResult(walk, read)


class ScanResult:
    """The result of one scan."""

    def __init__(self, walk: TreeWalk, read: list[ReadFile]) -> None:
        self.walk = walk
        self.read = sorted(file.path for file in read)
        self.files = {
            (folder.path + b"/" + name).lstrip(b"/"): blob
            for folder in walk.stat_cache
            for name, (_, blob) in folder.files().items()
        }
        self.skipped = {passed.path for passed in walk.skipped}


@pytest.fixture
def scanned(tmp_path: Path) -> Iterator[ScannedFolder]:
    tmp_path.chmod(0o755)
    root = tmp_path / "work"
    root.mkdir()
    made = ScannedFolder(root)
    yield made
    made.tree.close()


def grow(root: Path, folders: int = 3, files: int = 3) -> None:
    for i in range(folders):
        (root / f"d{i}").mkdir()
        for j in range(files):
            (root / f"d{i}" / f"f{j}").write_text(f"{i} {j}\n")


# ---- what is read again


def test_unchanged_files_are_not_read_again(scanned: ScannedFolder) -> None:
    grow(scanned.root)
    assert len(scanned.scan().read) == 9
    again = scanned.scan()
    assert again.read == []
    assert len(again.files) == 9
    assert not again.walk.has_changes


def test_only_changed_files_are_read_again(scanned: ScannedFolder) -> None:
    grow(scanned.root)
    before = scanned.scan()
    (scanned.root / "d1" / "f1").write_text("other\n")
    (scanned.root / "d2" / "new").write_text("new\n")
    (scanned.root / "d0" / "f0").unlink()
    after = scanned.scan()
    assert after.read == [b"d1/f1", b"d2/new"]
    wanted = before.files | {b"d1/f1": blob_id(b"other\n"), b"d2/new": blob_id(b"new\n")}
    del wanted[b"d0/f0"]
    assert after.files == wanted


def test_a_change_that_keeps_size_and_mtime_is_found(scanned: ScannedFolder) -> None:
    file = scanned.root / "f"
    file.write_bytes(b"one")
    scanned.scan()
    seen = file.stat()
    file.write_bytes(b"two")
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert scanned.scan().files == {b"f": blob_id(b"two")}


def test_a_file_that_changed_at_the_time_of_the_scan_is_read_again(scanned: ScannedFolder) -> None:
    file = scanned.root / "f"
    file.write_bytes(b"one")
    moment = file.stat().st_ctime_ns
    scanned.scan(clock=moment)
    assert scanned.scan(clock=moment).read == [b"f"]
    scanned.scan(clock=moment + 1)
    assert scanned.scan().read == []


def test_a_folder_that_changed_at_the_time_of_the_scan_is_listed_again(scanned: ScannedFolder) -> None:
    (scanned.root / "f").write_bytes(b"one")
    result = scanned.scan(clock=max(scanned.root.stat().st_ctime_ns, 0))
    assert [folder.needs_rescan for folder in result.walk.stat_cache] == [True]


def test_a_new_mode_is_found(scanned: ScannedFolder) -> None:
    (scanned.root / "f").write_bytes(b"one")
    scanned.scan()
    (scanned.root / "f").chmod(0o700)
    folder = next(iter(scanned.scan().walk.stat_cache))
    assert folder.files()[b"f"][0].mode & 0o777 == 0o700


def test_a_file_that_replaced_another_is_read(scanned: ScannedFolder) -> None:
    (scanned.root / "a").write_bytes(b"one")
    (scanned.root / "b").write_bytes(b"two")
    scanned.scan()
    (scanned.root / "a").rename(scanned.root / "b")
    assert scanned.scan().files == {b"b": blob_id(b"one")}


def test_deleted_and_new_folders_are_found_with_everything_below(scanned: ScannedFolder) -> None:
    (scanned.root / "a" / "deep").mkdir(parents=True)
    (scanned.root / "a" / "deep" / "f").write_bytes(b"one")
    scanned.scan()
    (scanned.root / "a").rename(scanned.root / "z")
    assert scanned.scan().files == {b"z/deep/f": blob_id(b"one")}
    (scanned.root / "z" / "deep" / "f").unlink()
    (scanned.root / "z" / "deep").rmdir()
    (scanned.root / "z" / "deep").write_bytes(b"a file by now")
    assert scanned.scan().files == {b"z/deep": blob_id(b"a file by now")}


def test_one_folder_can_be_scanned_alone(scanned: ScannedFolder) -> None:
    grow(scanned.root)
    scanned.scan()
    (scanned.root / "d0" / "f0").write_text("x")
    (scanned.root / "d1" / "f0").write_text("y")
    assert scanned.scan(scope=b"d1").read == [b"d1/f0"]
    assert scanned.scan().read == [b"d0/f0"]


def test_suspects_are_the_folders_that_changed(scanned: ScannedFolder) -> None:
    grow(scanned.root, folders=60, files=3)
    scanned.scan()
    stat_cache = StatCache.decoded(scanned.kept, STORE, 0)
    (scanned.root / "d3" / "f2").write_text("x")
    (scanned.root / "d57" / "f2").unlink()
    (scanned.root / "d58").rename(scanned.root / "e58")
    sure, unsure = stat_cache.folder_signatures(b"")
    assert unsure == []
    assert sorted(changed_folders(scanned.tree.fd, sure)) == [b"", b"d3", b"d57", b"d58"]
    others = [folder_signature._replace(facts=b"") for folder_signature in sure]
    assert sorted(changed_folders(scanned.tree.fd, others)) == sorted(
        folder_signature.path for folder_signature in sure
    )


@pytest.mark.parametrize("damage", [lambda kept: kept[:-1], lambda kept: kept[:50] + b"x" + kept[51:], lambda _: b"x"])
def test_a_damaged_cache_is_empty(scanned: ScannedFolder, damage: "type[bytes]") -> None:
    grow(scanned.root)
    scanned.scan()
    scanned.kept = damage(scanned.kept)
    assert len(scanned.scan().read) == 9


def test_the_cache_of_another_store_is_empty(scanned: ScannedFolder) -> None:
    grow(scanned.root)
    scanned.scan()
    assert list(StatCache.decoded(scanned.kept, b"other", 0)) == []
    assert len(list(StatCache.decoded(scanned.kept, STORE, 0))) == 4


# ---- what is never opened


def test_no_symlink_is_followed(scanned: ScannedFolder) -> None:
    outside = scanned.root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (scanned.root / "folder").symlink_to(outside)
    (scanned.root / "file").symlink_to(outside / "secret")
    (scanned.root / "nowhere").symlink_to("nothing")
    assert scanned.scan().files == {
        b"folder": blob_id(os.fsencode(outside)),
        b"file": blob_id(os.fsencode(outside / "secret")),
        b"nowhere": blob_id(b"nothing"),
    }


def test_a_folder_that_was_replaced_by_a_symlink_is_not_entered(scanned: ScannedFolder) -> None:
    outside = scanned.root.parent / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"one")
    (scanned.root / "d").mkdir()
    (scanned.root / "d" / "f").write_bytes(b"one")
    scanned.scan()
    (scanned.root / "d" / "f").unlink()
    (scanned.root / "d").rmdir()
    (scanned.root / "d").symlink_to(outside)
    assert scanned.scan().files == {b"d": blob_id(os.fsencode(outside))}


def test_special_files_are_reported_and_not_opened(scanned: ScannedFolder) -> None:
    os.mkfifo(scanned.root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(scanned.root)
        server.bind("socket")
        os.chdir(here)
        for _ in range(2):
            result = scanned.scan()
            assert result.files == {}
            assert result.skipped == {"pipe", "socket"}


@pytest.mark.parametrize("name", [".cas", ".CAS", ".git", ".hg", ".svn", ".jj", ".cas-0123456789abcdef"])
def test_stores_and_version_control_folders_are_invisible(scanned: ScannedFolder, name: str) -> None:
    (scanned.root / name).mkdir()
    (scanned.root / name / "f").write_bytes(b"one")
    result = scanned.scan()
    assert result.files == {}
    assert [folder.left_out for folder in result.walk.stat_cache] == [[]]


def test_names_may_hold_any_byte(scanned: ScannedFolder) -> None:
    names = [b"new\nline", b"caf\xe9", b"\xff", b" ", b"-", b"\\"]
    for name in names:
        (scanned.root / os.fsdecode(name)).write_bytes(name)
    (scanned.root / os.fsdecode(b"d\n\xe9")).mkdir()
    (scanned.root / os.fsdecode(b"d\n\xe9/f")).write_bytes(b"one")
    wanted = {name: blob_id(name) for name in names} | {b"d\n\xe9/f": blob_id(b"one")}
    assert scanned.scan().files == wanted
    assert scanned.scan().files == wanted


# ---- what is skipped


def test_unreadable_files_are_reported_by_each_scan_and_read_once_they_are_readable(scanned: ScannedFolder) -> None:
    grow(scanned.root, folders=2, files=1)
    (scanned.root / "d0").chmod(0)
    (scanned.root / "d1" / "f0").chmod(0)
    for _ in range(2):
        with as_unprivileged_user():
            result = scanned.scan()
        assert result.skipped == {"d0", "d1/f0"}
        assert result.files == {b"d1/f0": UNKNOWN}
        assert result.walk.unreadable == {b"d0"}
    (scanned.root / "d0").chmod(0o755)
    (scanned.root / "d1" / "f0").chmod(0o644)
    with as_unprivileged_user():
        result = scanned.scan()
    assert result.skipped == set()
    assert result.read == [b"d0/f0", b"d1/f0"]


def test_ignored_names_are_left_out_and_not_read(scanned: ScannedFolder) -> None:
    grow(scanned.root, folders=1)
    (scanned.root / ".casignore").write_bytes(b"f1\n")
    (scanned.root / "node_modules").mkdir()
    (scanned.root / "node_modules" / "x").write_bytes(b"one")
    result = scanned.scan()
    assert set(result.files) == {b".casignore", b"d0/f0", b"d0/f2"}
    assert {folder.path: folder.left_out for folder in result.walk.stat_cache} == {
        b"": [b"node_modules"],
        b"d0": [b"f1"],
    }


def test_new_rules_apply_in_unchanged_folders(scanned: ScannedFolder) -> None:
    grow(scanned.root)
    scanned.scan()
    (scanned.root / ".casignore").write_bytes(b"d1/\n")
    assert not any(path.startswith(b"d1/") for path in scanned.scan().files)
    (scanned.root / ".casignore").write_bytes(b"f1\n")
    assert set(scanned.scan().files) == {b".casignore", *(b"d%d/f%d" % (i, j) for i in range(3) for j in (0, 2))}
    (scanned.root / ".casignore").unlink()
    assert len(scanned.scan().files) == 9


@pytest.mark.parametrize("rules", [b".casignore\nf1\n", b"*\n!f0\n"])
def test_rules_that_ignore_their_own_file_are_read_again(scanned: ScannedFolder, rules: bytes) -> None:
    """Written in place, so that the folder doesn't tell of it, and of a file that is ignored nothing else does."""
    grow(scanned.root, folders=1)
    (scanned.root / "d0" / ".casignore").write_bytes(rules)
    assert b"d0/f1" not in scanned.scan().files
    (scanned.root / "d0" / ".casignore").write_bytes(b"f2\n")
    assert set(scanned.scan().files) == {b"d0/.casignore", b"d0/f0", b"d0/f1"}


def test_rules_above_a_folder_apply_in_it(scanned: ScannedFolder) -> None:
    grow(scanned.root)
    (scanned.root / ".casignore").write_bytes(b"d1/f1\n")
    assert set(scanned.scan(scope=b"d1").files) == {b"d1/f0", b"d1/f2"}


def test_files_that_git_ignores_are_scanned_unless_the_setting_excludes_them(scanned: ScannedFolder) -> None:
    grow(scanned.root, folders=1)
    (scanned.root / ".gitignore").write_bytes(b"f1\nf2\n")
    (scanned.root / ".casignore").write_bytes(b"!f2\n")
    assert b"d0/f1" in scanned.scan().files
    left = scanned.scan(uses_git=True).files
    assert b"d0/f1" not in left
    assert b"d0/f2" in left


@pytest.mark.parametrize(
    ("tag", "text"),
    [("CACHEDIR.TAG", CACHED), ("pyvenv.cfg", b"home = /usr\n")],
)
def test_a_folder_with_a_tag_file_is_left_out(scanned: ScannedFolder, tag: str, text: bytes) -> None:
    grow(scanned.root, folders=2, files=1)
    (scanned.root / "d0" / tag).write_bytes(text)
    assert set(scanned.scan().files) == {b"d1/f0"}
    # A tag must not be a way to hide what was covered before.
    (scanned.root / "d1" / tag).write_bytes(text)
    assert b"d1/f0" in scanned.scan().files
    (scanned.root / "d0" / tag).unlink()
    assert b"d0/f0" in scanned.scan().files


def test_a_tag_without_its_signature_is_a_file(scanned: ScannedFolder) -> None:
    grow(scanned.root, folders=1, files=1)
    (scanned.root / "d0" / "CACHEDIR.TAG").write_bytes(b"no cache\n")
    assert b"d0/f0" in scanned.scan().files


@pytest.mark.parametrize(
    "limits", [ScanLimits(files=4), ScanLimits(bytes=10), ScanLimits(seconds=0)], ids=["files", "bytes", "time"]
)
def test_a_reached_limit_is_reported(scanned: ScannedFolder, limits: ScanLimits) -> None:
    grow(scanned.root)
    result = scanned.scan(limits=limits)
    assert not result.walk.is_whole
    assert result.skipped == {""}
    assert len(result.read) < 9
    whole = scanned.scan()
    assert whole.walk.is_whole
    assert UNKNOWN not in whole.files.values()
    assert len(whole.files) == 9


def test_folders_deeper_than_the_limit_of_open_files_are_scanned(scanned: ScannedFolder) -> None:
    folder = os.dup(scanned.tree.fd)
    for _ in range(300):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    file = os.open("f", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=folder)
    os.write(file, b"deep")
    os.close(file)
    os.close(folder)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
    try:
        result = scanned.scan()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert result.files == {b"/".join([b"d"] * 300 + [b"f"]): blob_id(b"deep")}


# ---- which folders appeared


def test_a_folder_has_appeared_if_the_last_scan_neither_knew_nor_skipped_it(scanned: ScannedFolder) -> None:
    grow(scanned.root, folders=2)
    for path in ("ignored/deep", "closed/deep", "cached/deep/er", "moved/deep"):
        (scanned.root / path).mkdir(parents=True)
    (scanned.root / ".casignore").write_text("ignored\n")
    (scanned.root / "cached" / "CACHEDIR.TAG").write_bytes(CACHED)
    (scanned.root / "closed").chmod(0)
    with as_unprivileged_user():
        scanned.scan()
    (scanned.root / "closed").chmod(0o755)
    (scanned.root / ".casignore").unlink()
    (scanned.root / "cached" / "CACHEDIR.TAG").unlink()
    (scanned.root / "d0" / "new").write_text("new\n")
    (scanned.root / "d1").rename(scanned.root / "moved" / "here")
    (scanned.root / "moved").rename(scanned.root / "d1")
    stat_cache = scanned.scan().walk.stat_cache
    appeared = {os.fsdecode(folder.path): stat_cache.appeared_at(folder.path) for folder in stat_cache}
    own = {path: (scanned.root / path).stat().st_ctime_ns for path in ("d1", "d1/here", "d1/deep")}
    passed_over = ("ignored", "ignored/deep", "closed", "closed/deep", "cached", "cached/deep", "cached/deep/er")
    stayed = dict.fromkeys(("", "d0", *passed_over), 0)
    assert appeared == stayed | {path: max(own["d1"], time) for path, time in own.items()}


def test_without_the_last_scan_no_folder_counts_as_appeared(scanned: ScannedFolder) -> None:
    (scanned.root / "d" / "deep").mkdir(parents=True)
    stat_cache = scanned.scan().walk.stat_cache
    assert [stat_cache.appeared_at(folder.path) for folder in stat_cache] == [0, 0, 0]


def test_the_files_of_some_names_are_those_of_all(scanned: ScannedFolder) -> None:
    grow(scanned.root)
    (folder,) = [each for each in scanned.scan().walk.stat_cache if each.path == b"d1"]
    assert folder.files_of([b"f2", b"f0", b"none"]) == {name: folder.files()[name] for name in (b"f0", b"f2")}
