"""A survey: what it sees, what it reads, what it never opens, and what it says that it passed over."""

import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore.fs.confined_path import Tree
from objstore.model.ids import blob_id
from objstore.worktree.changed_dirs import changed_folders
from objstore.worktree.stat_cache import UNKNOWN, StatCache
from objstore.worktree.walk import ReadFile, ScanLimits, TreeWalk
from tests.support.path_sandbox import as_unprivileged_user

LATER = 10**19
"""A time after every change that a test makes, so that nothing counts as changed in the very moment of the look."""

STORE = b"store"

CACHED = b"Signature: 8a477f597d28d172789f06886806bc55\n"
"""Says of a folder that all in it can be made again."""


class Ranger:
    """Somebody who looks at one folder again and again, and keeps what was seen as bytes in between."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tree = Tree(root)
        self.kept = b""

    def look(
        self, *, clock: int = LATER, gitignored: bool = True, limits: ScanLimits | None = None, scope: bytes = b""
    ) -> "Sight":
        read: list[ReadFile] = []
        survey = TreeWalk(
            self.tree,
            StatCache.decoded(self.kept, STORE, 0),
            clock=clock,
            keep=read.append,
            gitignored=gitignored,
            limits=limits,
        )
        survey.run(scope)
        self.kept = survey.stat_cache.encoded(STORE, 0)
        return Sight(survey, read)


class Sight:
    """What one look has seen."""

    def __init__(self, survey: TreeWalk, read: list[ReadFile]) -> None:
        self.survey = survey
        self.read = sorted(file.path for file in read)
        self.files = {
            (look.path + b"/" + name).lstrip(b"/"): blob
            for look in survey.stat_cache
            for name, (_, blob) in look.files().items()
        }
        self.skipped = {passed.path for passed in survey.skipped}


@pytest.fixture
def ranger(tmp_path: Path) -> Iterator[Ranger]:
    tmp_path.chmod(0o755)
    root = tmp_path / "work"
    root.mkdir()
    made = Ranger(root)
    yield made
    made.tree.close()


def grow(root: Path, folders: int = 3, files: int = 3) -> None:
    for i in range(folders):
        (root / f"d{i}").mkdir()
        for j in range(files):
            (root / f"d{i}" / f"f{j}").write_text(f"{i} {j}\n")


# ---- what is read again


def test_what_did_not_change_is_not_read_again(ranger: Ranger) -> None:
    grow(ranger.root)
    assert len(ranger.look().read) == 9
    again = ranger.look()
    assert again.read == []
    assert len(again.files) == 9
    assert not again.survey.has_changes


def test_only_what_changed_is_read_again(ranger: Ranger) -> None:
    grow(ranger.root)
    before = ranger.look()
    (ranger.root / "d1" / "f1").write_text("other\n")
    (ranger.root / "d2" / "new").write_text("new\n")
    (ranger.root / "d0" / "f0").unlink()
    after = ranger.look()
    assert after.read == [b"d1/f1", b"d2/new"]
    wanted = before.files | {b"d1/f1": blob_id(b"other\n"), b"d2/new": blob_id(b"new\n")}
    del wanted[b"d0/f0"]
    assert after.files == wanted


def test_a_change_that_keeps_size_and_time_is_seen(ranger: Ranger) -> None:
    file = ranger.root / "f"
    file.write_bytes(b"one")
    ranger.look()
    seen = file.stat()
    file.write_bytes(b"two")
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert ranger.look().files == {b"f": blob_id(b"two")}


def test_a_file_that_changed_in_the_moment_of_the_look_is_read_again(ranger: Ranger) -> None:
    file = ranger.root / "f"
    file.write_bytes(b"one")
    moment = file.stat().st_ctime_ns
    ranger.look(clock=moment)
    assert ranger.look(clock=moment).read == [b"f"]
    ranger.look(clock=moment + 1)
    assert ranger.look().read == []


def test_a_folder_that_changed_in_the_moment_of_the_look_is_looked_into_again(ranger: Ranger) -> None:
    (ranger.root / "f").write_bytes(b"one")
    sight = ranger.look(clock=max(ranger.root.stat().st_ctime_ns, 0))
    assert [look.needs_rescan for look in sight.survey.stat_cache] == [True]


def test_a_new_mode_is_seen(ranger: Ranger) -> None:
    (ranger.root / "f").write_bytes(b"one")
    ranger.look()
    (ranger.root / "f").chmod(0o700)
    look = next(iter(ranger.look().survey.stat_cache))
    assert look.files()[b"f"][0].mode & 0o777 == 0o700


def test_a_file_that_another_took_the_place_of_is_read(ranger: Ranger) -> None:
    (ranger.root / "a").write_bytes(b"one")
    (ranger.root / "b").write_bytes(b"two")
    ranger.look()
    (ranger.root / "a").rename(ranger.root / "b")
    assert ranger.look().files == {b"b": blob_id(b"one")}


def test_folders_that_went_and_came_are_seen_with_all_below(ranger: Ranger) -> None:
    (ranger.root / "a" / "deep").mkdir(parents=True)
    (ranger.root / "a" / "deep" / "f").write_bytes(b"one")
    ranger.look()
    (ranger.root / "a").rename(ranger.root / "z")
    assert ranger.look().files == {b"z/deep/f": blob_id(b"one")}
    (ranger.root / "z" / "deep" / "f").unlink()
    (ranger.root / "z" / "deep").rmdir()
    (ranger.root / "z" / "deep").write_bytes(b"a file by now")
    assert ranger.look().files == {b"z/deep": blob_id(b"a file by now")}


def test_one_folder_can_be_looked_at_alone(ranger: Ranger) -> None:
    grow(ranger.root)
    ranger.look()
    (ranger.root / "d0" / "f0").write_text("x")
    (ranger.root / "d1" / "f0").write_text("y")
    assert ranger.look(scope=b"d1").read == [b"d1/f0"]
    assert ranger.look().read == [b"d0/f0"]


def test_a_glance_finds_the_folders_that_changed(ranger: Ranger) -> None:
    grow(ranger.root, folders=60, files=3)
    ranger.look()
    stat_cache = StatCache.decoded(ranger.kept, STORE, 0)
    (ranger.root / "d3" / "f2").write_text("x")
    (ranger.root / "d57" / "f2").unlink()
    (ranger.root / "d58").rename(ranger.root / "e58")
    sure, unsure = stat_cache.folder_signatures(b"")
    assert unsure == []
    assert sorted(changed_folders(ranger.tree.fd, sure)) == [b"", b"d3", b"d57", b"d58"]
    others = [folder_signature._replace(facts=b"") for folder_signature in sure]
    assert sorted(changed_folders(ranger.tree.fd, others)) == sorted(folder_signature.path for folder_signature in sure)


@pytest.mark.parametrize("damage", [lambda kept: kept[:-1], lambda kept: kept[:50] + b"x" + kept[51:], lambda _: b"x"])
def test_looks_that_are_damaged_are_none(ranger: Ranger, damage: "type[bytes]") -> None:
    grow(ranger.root)
    ranger.look()
    ranger.kept = damage(ranger.kept)
    assert len(ranger.look().read) == 9


def test_looks_of_another_store_are_none(ranger: Ranger) -> None:
    grow(ranger.root)
    ranger.look()
    assert list(StatCache.decoded(ranger.kept, b"other", 0)) == []
    assert len(list(StatCache.decoded(ranger.kept, STORE, 0))) == 4


# ---- what is never opened


def test_no_link_is_followed(ranger: Ranger) -> None:
    outside = ranger.root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (ranger.root / "folder").symlink_to(outside)
    (ranger.root / "file").symlink_to(outside / "secret")
    (ranger.root / "nowhere").symlink_to("nothing")
    assert ranger.look().files == {
        b"folder": blob_id(os.fsencode(outside)),
        b"file": blob_id(os.fsencode(outside / "secret")),
        b"nowhere": blob_id(b"nothing"),
    }


def test_a_folder_that_a_link_took_the_place_of_is_not_entered(ranger: Ranger) -> None:
    outside = ranger.root.parent / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"one")
    (ranger.root / "d").mkdir()
    (ranger.root / "d" / "f").write_bytes(b"one")
    ranger.look()
    (ranger.root / "d" / "f").unlink()
    (ranger.root / "d").rmdir()
    (ranger.root / "d").symlink_to(outside)
    assert ranger.look().files == {b"d": blob_id(os.fsencode(outside))}


def test_what_is_no_file_is_told_and_not_opened(ranger: Ranger) -> None:
    os.mkfifo(ranger.root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(ranger.root)
        server.bind("socket")
        os.chdir(here)
        for _ in range(2):
            sight = ranger.look()
            assert sight.files == {}
            assert sight.skipped == {"pipe", "socket"}


@pytest.mark.parametrize("name", [".cas", ".CAS", ".git", ".hg", ".svn", ".jj", ".cas-0123456789abcdef"])
def test_stores_and_version_control_are_not_there(ranger: Ranger, name: str) -> None:
    (ranger.root / name).mkdir()
    (ranger.root / name / "f").write_bytes(b"one")
    sight = ranger.look()
    assert sight.files == {}
    assert [look.left_out for look in sight.survey.stat_cache] == [[]]


def test_names_may_hold_any_byte(ranger: Ranger) -> None:
    names = [b"new\nline", b"caf\xe9", b"\xff", b" ", b"-", b"\\"]
    for name in names:
        (ranger.root / os.fsdecode(name)).write_bytes(name)
    (ranger.root / os.fsdecode(b"d\n\xe9")).mkdir()
    (ranger.root / os.fsdecode(b"d\n\xe9/f")).write_bytes(b"one")
    wanted = {name: blob_id(name) for name in names} | {b"d\n\xe9/f": blob_id(b"one")}
    assert ranger.look().files == wanted
    assert ranger.look().files == wanted


# ---- what is passed over


def test_what_may_not_be_read_is_told_each_time_and_read_when_it_may(ranger: Ranger) -> None:
    grow(ranger.root, folders=2, files=1)
    (ranger.root / "d0").chmod(0)
    (ranger.root / "d1" / "f0").chmod(0)
    for _ in range(2):
        with as_unprivileged_user():
            sight = ranger.look()
        assert sight.skipped == {"d0", "d1/f0"}
        assert sight.files == {b"d1/f0": UNKNOWN}
        assert sight.survey.unreadable == {b"d0"}
    (ranger.root / "d0").chmod(0o755)
    (ranger.root / "d1" / "f0").chmod(0o644)
    with as_unprivileged_user():
        sight = ranger.look()
    assert sight.skipped == set()
    assert sight.read == [b"d0/f0", b"d1/f0"]


def test_ignored_names_are_left_out_and_not_read(ranger: Ranger) -> None:
    grow(ranger.root, folders=1)
    (ranger.root / ".casignore").write_bytes(b"f1\n")
    (ranger.root / "node_modules").mkdir()
    (ranger.root / "node_modules" / "x").write_bytes(b"one")
    sight = ranger.look()
    assert set(sight.files) == {b".casignore", b"d0/f0", b"d0/f2"}
    assert {look.path: look.left_out for look in sight.survey.stat_cache} == {b"": [b"node_modules"], b"d0": [b"f1"]}


def test_new_rules_hold_in_folders_that_did_not_change(ranger: Ranger) -> None:
    grow(ranger.root)
    ranger.look()
    (ranger.root / ".casignore").write_bytes(b"d1/\n")
    assert not any(path.startswith(b"d1/") for path in ranger.look().files)
    (ranger.root / ".casignore").write_bytes(b"f1\n")
    assert set(ranger.look().files) == {b".casignore", *(b"d%d/f%d" % (i, j) for i in range(3) for j in (0, 2))}
    (ranger.root / ".casignore").unlink()
    assert len(ranger.look().files) == 9


@pytest.mark.parametrize("rules", [b".casignore\nf1\n", b"*\n!f0\n"])
def test_rules_that_ignore_their_own_file_are_read_again(ranger: Ranger, rules: bytes) -> None:
    """Written in place, so that the folder doesn't tell of it, and of a file that is ignored nothing else does."""
    grow(ranger.root, folders=1)
    (ranger.root / "d0" / ".casignore").write_bytes(rules)
    assert b"d0/f1" not in ranger.look().files
    (ranger.root / "d0" / ".casignore").write_bytes(b"f2\n")
    assert set(ranger.look().files) == {b"d0/.casignore", b"d0/f0", b"d0/f1"}


def test_rules_above_a_folder_hold_in_it(ranger: Ranger) -> None:
    grow(ranger.root)
    (ranger.root / ".casignore").write_bytes(b"d1/f1\n")
    assert set(ranger.look(scope=b"d1").files) == {b"d1/f0", b"d1/f2"}


def test_what_git_ignores_is_covered_unless_it_shall_not_be(ranger: Ranger) -> None:
    grow(ranger.root, folders=1)
    (ranger.root / ".gitignore").write_bytes(b"f1\nf2\n")
    (ranger.root / ".casignore").write_bytes(b"!f2\n")
    assert b"d0/f1" in ranger.look().files
    left = ranger.look(gitignored=False).files
    assert b"d0/f1" not in left
    assert b"d0/f2" in left


@pytest.mark.parametrize(
    ("tag", "text"),
    [("CACHEDIR.TAG", CACHED), ("pyvenv.cfg", b"home = /usr\n")],
)
def test_a_folder_that_says_it_can_be_rebuilt_is_left_out(ranger: Ranger, tag: str, text: bytes) -> None:
    grow(ranger.root, folders=2, files=1)
    (ranger.root / "d0" / tag).write_bytes(text)
    assert set(ranger.look().files) == {b"d1/f0"}
    # A tag must not be a way to hide what was covered before.
    (ranger.root / "d1" / tag).write_bytes(text)
    assert b"d1/f0" in ranger.look().files
    (ranger.root / "d0" / tag).unlink()
    assert b"d0/f0" in ranger.look().files


def test_a_tag_without_its_signature_is_a_file(ranger: Ranger) -> None:
    grow(ranger.root, folders=1, files=1)
    (ranger.root / "d0" / "CACHEDIR.TAG").write_bytes(b"no cache\n")
    assert b"d0/f0" in ranger.look().files


@pytest.mark.parametrize(
    "limits", [ScanLimits(files=4), ScanLimits(bytes=10), ScanLimits(seconds=0)], ids=["files", "bytes", "time"]
)
def test_a_limit_that_is_reached_is_told(ranger: Ranger, limits: ScanLimits) -> None:
    grow(ranger.root)
    sight = ranger.look(limits=limits)
    assert not sight.survey.is_whole
    assert sight.skipped == {""}
    assert len(sight.read) < 9
    whole = ranger.look()
    assert whole.survey.is_whole
    assert UNKNOWN not in whole.files.values()
    assert len(whole.files) == 9


def test_folders_deeper_than_a_process_may_open_files_are_seen(ranger: Ranger) -> None:
    folder = os.dup(ranger.tree.fd)
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
        sight = ranger.look()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert sight.files == {b"/".join([b"d"] * 300 + [b"f"]): blob_id(b"deep")}


# ---- which folders came


def test_a_folder_came_if_no_look_knew_it_there_and_it_was_not_passed_over(ranger: Ranger) -> None:
    grow(ranger.root, folders=2)
    for path in ("ignored/deep", "closed/deep", "cached/deep/er", "moved/deep"):
        (ranger.root / path).mkdir(parents=True)
    (ranger.root / ".casignore").write_text("ignored\n")
    (ranger.root / "cached" / "CACHEDIR.TAG").write_bytes(CACHED)
    (ranger.root / "closed").chmod(0)
    with as_unprivileged_user():
        ranger.look()
    (ranger.root / "closed").chmod(0o755)
    (ranger.root / ".casignore").unlink()
    (ranger.root / "cached" / "CACHEDIR.TAG").unlink()
    (ranger.root / "d0" / "new").write_text("new\n")
    (ranger.root / "d1").rename(ranger.root / "moved" / "here")
    (ranger.root / "moved").rename(ranger.root / "d1")
    stat_cache = ranger.look().survey.stat_cache
    came = {os.fsdecode(look.path): stat_cache.appeared_at(look.path) for look in stat_cache}
    own = {path: (ranger.root / path).stat().st_ctime_ns for path in ("d1", "d1/here", "d1/deep")}
    passed_over = ("ignored", "ignored/deep", "closed", "closed/deep", "cached", "cached/deep", "cached/deep/er")
    stayed = dict.fromkeys(("", "d0", *passed_over), 0)
    assert came == stayed | {path: max(own["d1"], time) for path, time in own.items()}


def test_where_the_last_look_is_lost_nothing_tells_which_folders_came(ranger: Ranger) -> None:
    (ranger.root / "d" / "deep").mkdir(parents=True)
    stat_cache = ranger.look().survey.stat_cache
    assert [stat_cache.appeared_at(look.path) for look in stat_cache] == [0, 0, 0]
