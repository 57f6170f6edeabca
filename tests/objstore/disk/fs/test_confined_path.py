"""Test that nothing outside a folder can be reached through its Tree, and that a file is read as of one moment."""

import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from objstore.disk.fs.confined_path import MAX_PATH, Tree, look_at, real_path
from objstore.disk.fs.reserved_names import STORE_NAME, is_store
from objstore.disk.fs.tree_files import Files
from objstore.model.views import DirectoryEntry
from objstore.values.errors import (
    CasError,
    DiskFailed,
    FileMissing,
    FileTooLarge,
    PathError,
    PathInvalid,
    PathIsDirectory,
    PathIsSymlink,
    PathNotRegular,
    PathOutside,
    PathReserved,
    PermissionRefused,
)
from tests.support.path_sandbox import SECRET, PathSandbox, as_unprivileged_user

# ---- inside


@pytest.mark.parametrize(
    "path",
    [
        "a.txt",
        "./a.txt",
        ".//a.txt",
        "folder/../a.txt",
        "folder/deep/../../a.txt",
        "folder/./deep/.././../a.txt",
        "{ws}/a.txt",
        "{ws}//folder/../a.txt",
        "{base}/elsewhere/../ws/a.txt",
    ],
)
def test_every_form_of_a_path_inside_resolves_to_one_path(sandbox: PathSandbox, path: str) -> None:
    path_used = path.format(ws=sandbox.ws, base=sandbox.base)
    assert sandbox.read(path_used) == b"a\n"
    assert sandbox.tree.read(path_used)[0] == "a.txt"
    assert sandbox.resolved(path_used) == "a.txt"


@pytest.mark.parametrize("end", ["", "/", "//", "/."])
def test_link_to_the_folder_itself_resolves_to_the_folder(sandbox: PathSandbox, end: str) -> None:
    (sandbox.base / "link").symlink_to("ws")
    (sandbox.base / "second").symlink_to(sandbox.base / "link")
    for name in ("link", "second"):
        assert sandbox.resolved(f"{sandbox.base}/{name}{end}") == "."
        assert sandbox.tree.entries(f"{sandbox.base}/{name}{end}") == sandbox.tree.entries(".")
    (sandbox.base / "link").unlink()
    for target in ("elsewhere", "ws-evil", "ws/folder", ".", "/", "link"):
        (sandbox.base / "link").symlink_to(target)
        with pytest.raises(PathOutside):
            sandbox.tree.entries(f"{sandbox.base}/second")
        (sandbox.base / "link").unlink()


def test_link_to_the_only_reachable_part_resolves_to_it(sandbox: PathSandbox) -> None:
    confined = sandbox.tree.confined(["folder/deep"])
    for name, target in (("part", "ws/folder/deep"), ("whole", "ws"), ("other", "ws/folder")):
        (sandbox.base / name).symlink_to(target)
    with confined.locate(f"{sandbox.base}/part") as resolved:
        assert resolved.path == "folder/deep"
    for name in ("whole", "other"):
        with pytest.raises(PathOutside):
            confined.entries(f"{sandbox.base}/{name}")


@pytest.mark.parametrize("path", [".", "", "folder/..", "{ws}", "{ws}/", "folder", "folder/", "folder/deep/.."])
def test_folder_can_not_be_read_as_a_file(sandbox: PathSandbox, path: str) -> None:
    with pytest.raises((PathIsDirectory, PathInvalid)):
        sandbox.read(path.format(ws=sandbox.ws))


def test_links_that_stay_inside_may_be_read(sandbox: PathSandbox) -> None:
    sandbox.link("to-file", "folder/b.txt")
    sandbox.link("to-folder", "folder")
    sandbox.link("folder/up", "../a.txt")
    sandbox.link("absolute", sandbox.ws / "folder" / "b.txt")
    sandbox.link("chain", "to-folder/up")
    assert sandbox.read("to-file") == b"b\n"
    assert sandbox.read("to-folder/b.txt") == b"b\n"
    assert sandbox.read("absolute") == b"b\n"
    assert sandbox.read("chain") == b"a\n"
    assert sandbox.tree.read("to-folder/up")[0] == "a.txt"


def test_link_in_place_of_a_file_is_not_followed_without_follow(sandbox: PathSandbox) -> None:
    sandbox.link("to-file", "a.txt")
    with pytest.raises(PathIsSymlink):
        sandbox.read("to-file", follow=False)
    with sandbox.tree.locate("to-file", changing=True) as resolved:
        found = look_at(resolved)
        assert resolved.path == "to-file"
        assert found is not None
        assert stat.S_ISLNK(found.st_mode)


def test_the_workspace_may_be_reached_through_a_link_above_it(sandbox: PathSandbox) -> None:
    (sandbox.base / "door").symlink_to(sandbox.ws)
    tree = Tree(sandbox.base / "door")
    for path in (sandbox.base / "door" / "a.txt", sandbox.ws / "a.txt", "a.txt"):
        assert tree.read(str(path))[1].content == b"a\n"
    tree.close()


@pytest.mark.parametrize("name", ["line\nbreak", "\x1b[31mred", "-rf", "~", " ", "a\\b", "*", "caf\u00e9", "..."])
def test_unusual_names_are_supported(sandbox: PathSandbox, name: str) -> None:
    (sandbox.ws / name).write_bytes(b"strange\n")
    assert sandbox.tree.read(name)[0] == name
    assert sandbox.read(name) == b"strange\n"
    assert sandbox.resolved(name) == name


def test_name_that_is_not_utf8_can_be_read(sandbox: PathSandbox) -> None:
    name = os.fsdecode(b"\xff\xfe")
    (sandbox.ws / name).write_bytes(b"strange\n")
    assert sandbox.read(name) == b"strange\n"


# ---- outside


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../a.txt",
        "../ws-evil/a.txt",
        "../wsx/a.txt",
        "folder/../../a.txt",
        "folder/deep/../../../elsewhere/a.txt",
        "{base}/a.txt",
        "{base}/ws-evil/a.txt",
        "{base}/wsx/a.txt",
        "{ws}-evil/a.txt",
        "{ws}/../a.txt",
        "{ws}/folder/../../a.txt",
        "/etc/passwd",
        "/",
        "//etc/passwd",
    ],
)
def test_a_path_that_leads_out_is_refused(sandbox: PathSandbox, path: str) -> None:
    path_used = path.format(ws=sandbox.ws, base=sandbox.base)
    with pytest.raises(PathOutside):
        sandbox.read(path_used)
    with pytest.raises(PathOutside):
        sandbox.resolved(path_used)
    with pytest.raises(PathOutside):
        sandbox.tree.entries(path_used)


@pytest.mark.parametrize(
    "target", ["../a.txt", "{base}/a.txt", "/etc/passwd", "folder/../../a.txt", "{ws}-evil/a.txt", "{ws}/../a.txt"]
)
def test_a_link_that_leads_out_is_refused(sandbox: PathSandbox, target: str) -> None:
    sandbox.link("link", target.format(ws=sandbox.ws, base=sandbox.base))
    sandbox.link("second", "link")
    sandbox.link("folder/third", "../second")
    for path in ("link", "second", "folder/third"):
        with pytest.raises(PathOutside):
            sandbox.read(path)


@pytest.mark.parametrize("target", ["..", "../elsewhere", "{base}", "{base}/ws-evil", "/etc", "folder/../.."])
def test_a_folder_that_is_a_link_out_is_refused(sandbox: PathSandbox, target: str) -> None:
    sandbox.link("door", target.format(base=sandbox.base))
    for path in ("door/a.txt", "door/new/a.txt", "door/../a.txt", "folder/../door/a.txt"):
        with pytest.raises(PathOutside):
            sandbox.read(path)
        with pytest.raises(PathOutside):
            sandbox.resolved(path)
    with pytest.raises(PathOutside):
        sandbox.tree.entries("door")


def test_parent_of_a_link_is_the_parent_of_its_target(sandbox: PathSandbox) -> None:
    sandbox.link("deep", "folder/deep")
    assert sandbox.read("deep/../b.txt") == b"b\n"
    with pytest.raises(PathOutside):
        sandbox.read("deep/../../../a.txt")


def test_circular_links_are_refused(sandbox: PathSandbox) -> None:
    sandbox.link("one", "two")
    sandbox.link("two", "one")
    sandbox.link("self", "self/self")
    for path in ("one", "two/a.txt", "self"):
        with pytest.raises(PathInvalid, match="too many links"):
            sandbox.read(path)


def test_chain_of_links_is_followed_up_to_a_limit(sandbox: PathSandbox) -> None:
    sandbox.link("l0", "a.txt")
    for i in range(60):
        sandbox.link(f"l{i + 1}", f"l{i}")
    assert sandbox.read("l30") == b"a\n"
    with pytest.raises(PathInvalid, match="too many links"):
        sandbox.read("l60")


def test_dangling_link_is_a_missing_file(sandbox: PathSandbox) -> None:
    sandbox.link("nowhere", "gone/file")
    with pytest.raises(FileMissing):
        sandbox.read("nowhere")


# ---- what is no path


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("", id="empty"),
        pytest.param("a\0b", id="NUL"),
        pytest.param("x" * 256, id="long name"),
        pytest.param("folder/" + "\u00e9" * 128, id="name long in bytes"),
        pytest.param("new/" * 1100 + "x", id="long path"),
        pytest.param("\ud800", id="surrogate"),
        pytest.param("a.txt/b", id="file as folder"),
        pytest.param("a.txt/../b", id="file before dots"),
    ],
)
def test_invalid_path_is_refused(sandbox: PathSandbox, path: str) -> None:
    with pytest.raises(PathInvalid):
        sandbox.read(path)
    with pytest.raises(PathInvalid):
        sandbox.resolved(path)


def test_longest_possible_name_is_supported(sandbox: PathSandbox) -> None:
    assert sandbox.resolved("x" * 255) == "x" * 255
    with pytest.raises(FileMissing):
        sandbox.read("x" * 255)


@given(st.text(max_size=30))
def test_any_path_is_read_inside_or_refused(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    sandbox = _shared(tmp_path_factory)
    with suppress(PathError):
        assert sandbox.read(path) != SECRET
    with suppress(PathError):
        assert ".." not in sandbox.resolved(path).split("/")


PARTS = st.sampled_from([
    "..", ".", "", "a.txt", "folder", "deep", "out", "up", "in", "ws", "ws-evil", ".cas", ".CAS", "secret", "new"
])  # fmt: skip


@given(st.lists(PARTS, min_size=1, max_size=8).map("/".join), st.sampled_from(["", "{ws}/", "{base}/", "/"]))
def test_any_walk_over_links_and_dots_stays_inside(
    tmp_path_factory: pytest.TempPathFactory, path: str, start: str
) -> None:
    sandbox = _shared(tmp_path_factory)
    path_used = start.format(ws=sandbox.ws, base=sandbox.base) + path
    with suppress(PathError):
        assert sandbox.read(path_used) != SECRET
    with suppress(PathError):
        canonical = sandbox.resolved(path_used)
        # The last name may be a link: whoever writes looks at it, and never through it.
        folder = sandbox.ws if canonical == "." else (sandbox.ws / canonical).parent
        assert folder.resolve().is_relative_to(sandbox.ws)
        assert STORE_NAME not in canonical.split("/")


_sandboxes: dict[int, PathSandbox] = {}


def _shared(factory: pytest.TempPathFactory) -> PathSandbox:
    """Return one folder for all examples of the tests that only read."""
    sandbox = _sandboxes.get(id(factory))
    if sandbox is None:
        sandbox = _sandboxes[id(factory)] = PathSandbox(factory.mktemp("ground"))
        sandbox.link("out", "../elsewhere")
        sandbox.link("folder/up", "..")
        sandbox.link("folder/out", sandbox.base)
        sandbox.link("in", "folder/deep")
    return sandbox


def test_longest_path_has_the_length_that_the_system_accepts(sandbox: PathSandbox) -> None:
    longest = "d/" * (MAX_PATH // 2 - 1) + "ä"
    assert (len(os.fsencode(longest)), MAX_PATH) == (4096, 4096)
    assert sandbox.resolved(longest) == longest
    with pytest.raises(PathInvalid, match="longer than 4096 bytes"):
        sandbox.resolved(f"{longest}x")


# ---- the store and version control


STORE_NAME_VARIANTS = [
    ".cas",
    ".CAS",
    ".Cas",
    ".ca\u017f",  # long s
    "\uff0ecas",  # full-width full stop
    ".\uff43\uff41\uff53",  # full-width letters
    ".c\u200bas",  # zero-width space
    ".ca\u00ads",  # soft hyphen
    "\u2024cas",  # one dot leader
    ".cas\u200d",  # zero-width joiner
    ".\u24d2\u24d0\u24e2",  # circled letters
]


@pytest.mark.parametrize("name", STORE_NAME_VARIANTS, ids=ascii)
def test_store_is_out_of_reach_by_every_variant_of_its_name(sandbox: PathSandbox, name: str) -> None:
    assert is_store(name)
    for path in (name, f"{name}/secret", f"folder/../{name}/secret", f"folder/{name}/x", f"{sandbox.ws}/{name}/secret"):
        with pytest.raises(PathReserved):
            sandbox.read(path)
        with pytest.raises(PathReserved):
            sandbox.resolved(path)


def test_a_link_into_the_store_is_refused(sandbox: PathSandbox) -> None:
    sandbox.link("door", STORE_NAME)
    sandbox.link("file", f"{STORE_NAME}/secret")
    sandbox.link("absolute", sandbox.ws / STORE_NAME / "secret")
    for path in ("door/secret", "file", "absolute"):
        with pytest.raises(PathReserved):
            sandbox.read(path)


@pytest.mark.parametrize("inner", ["secret", "segments/00000001.seg"])
def test_hard_link_to_a_file_of_the_store_is_refused(sandbox: PathSandbox, inner: str) -> None:
    (sandbox.ws / STORE_NAME / inner).parent.mkdir(exist_ok=True)
    (sandbox.ws / STORE_NAME / inner).write_bytes(SECRET)
    (sandbox.ws / "folder" / "linked").hardlink_to(sandbox.ws / STORE_NAME / inner)
    with pytest.raises(PathReserved, match=r"the store \(it is a hard link to a file of the store\): folder/linked"):
        sandbox.read("folder/linked")
    with Files(sandbox.ws) as files, pytest.raises(PathReserved):
        files.facts("folder/linked")


def test_hard_link_to_any_other_file_is_allowed(sandbox: PathSandbox) -> None:
    (sandbox.ws / "linked").hardlink_to(sandbox.ws / "a.txt")
    (sandbox.ws / STORE_NAME / "tmp").mkdir()
    (sandbox.ws / STORE_NAME / "tmp" / "aside").hardlink_to(sandbox.ws / "a.txt")  # as a change puts one away
    assert sandbox.read("linked") == b"a\n"


@pytest.mark.parametrize("name", ["cas", ".cash", ".cas2", "x.cas", ".c as", ".ca"])
def test_similar_names_do_not_count_as_the_store(sandbox: PathSandbox, name: str) -> None:
    assert not is_store(name)
    assert sandbox.resolved(name) == name


@pytest.mark.parametrize("name", [".git", ".GIT", ".hg", ".svn", ".jj", ".g\u200bit"], ids=ascii)
def test_version_control_may_be_read_but_not_changed(sandbox: PathSandbox, name: str) -> None:
    (sandbox.ws / name).mkdir()
    (sandbox.ws / name / "config").write_bytes(b"c\n")
    assert sandbox.read(f"{name}/config") == b"c\n"
    for path in (f"{name}/config", f"{name}/new/hook", f"folder/{name}/config"):
        with pytest.raises(PathReserved):
            sandbox.resolved(path)
    assert sandbox.resolved(".gitignore") == ".gitignore"


# ---- what is no file


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        # The address has little room for long folders.
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            listening.bind(path.name)
        finally:
            os.chdir(here)


@pytest.mark.parametrize("make", [make_fifo, make_socket], ids=["FIFO", "socket"])
def test_a_file_that_is_not_regular_is_refused_at_once(sandbox: PathSandbox, make: Callable[[Path], None]) -> None:
    make(sandbox.ws / "strange")
    sandbox.link("to-strange", "strange")
    for path in ("strange", "to-strange"):
        with pytest.raises(PathNotRegular):
            sandbox.read(path)


def test_a_device_is_refused() -> None:
    tree = Tree("/dev")
    for name in ("null", "zero", "tty"):
        with pytest.raises(CasError):
            tree.read(name)
    tree.close()


def test_a_file_over_the_limit_is_refused_unread(sandbox: PathSandbox) -> None:
    with (sandbox.ws / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(FileTooLarge) as caught:
        sandbox.read("huge")
    assert caught.value.size == 1 << 40
    with pytest.raises(FileTooLarge):
        sandbox.tree.read("a.txt", limit=1)
    assert sandbox.tree.read("a.txt", limit=2)[1].content == b"a\n"


@pytest.fixture
def guarded(sandbox: PathSandbox) -> Iterator[PathSandbox]:
    """Return the folder with a file and a folder that can't be read, and one that can't be searched."""
    sandbox.ws.chmod(0o755)
    for folder in ("locked", "closed"):
        (sandbox.ws / folder).mkdir()
        (sandbox.ws / folder / "file").write_bytes(b"x")
    (sandbox.ws / "unreadable").write_bytes(b"x")
    (sandbox.ws / "unreadable").chmod(0)
    (sandbox.ws / "locked").chmod(0o444)
    (sandbox.ws / "closed").chmod(0)
    yield sandbox
    for folder in ("locked", "closed"):
        (sandbox.ws / folder).chmod(0o700)


@pytest.mark.parametrize("path", ["unreadable", "locked/file", "closed/file", "closed/new/file"])
@pytest.mark.parametrize("follow", [True, False])
def test_an_unreadable_file_is_refused_as_such(guarded: PathSandbox, path: str, follow: bool) -> None:  # noqa: FBT001 - a parameter of the test
    with as_unprivileged_user(), pytest.raises(PermissionRefused):
        guarded.read(path, follow=follow)


def test_a_folder_that_may_not_be_listed_is_refused_as_such(guarded: PathSandbox) -> None:
    with as_unprivileged_user(), pytest.raises(PermissionRefused):
        guarded.tree.entries("closed")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file that can be opened and not be read, as in /proc")
def test_a_file_that_the_disk_can_not_read_is_refused_as_such() -> None:
    with closing(Tree(f"/proc/{os.getpid()}")) as tree, pytest.raises(DiskFailed, match="mem"):
        tree.read("mem")


# ---- folders


def test_a_folder_is_listed_without_the_store_and_without_following_links(sandbox: PathSandbox) -> None:
    sandbox.link("out", "../a.txt")
    sandbox.link("door", "/etc")
    make_fifo(sandbox.ws / "fifo")
    assert sandbox.tree.entries(".") == [
        DirectoryEntry(name="a.txt", kind="file", size=2),
        DirectoryEntry(name="door", kind="symlink", size=0),
        DirectoryEntry(name="fifo", kind="other", size=0),
        DirectoryEntry(name="folder", kind="directory", size=0),
        DirectoryEntry(name="out", kind="symlink", size=0),
    ]


@pytest.mark.parametrize(("path", "error"), [("gone", FileMissing), ("a.txt", PathInvalid), (".cas", PathReserved)])
def test_only_folders_are_listed(sandbox: PathSandbox, path: str, error: type[CasError]) -> None:
    with pytest.raises(error):
        sandbox.tree.entries(path)


def test_missing_folders_are_listed_for_the_caller_to_create(sandbox: PathSandbox) -> None:
    with sandbox.tree.locate("folder/new/newer/file", changing=True) as resolved:
        assert (resolved.path, resolved.name, resolved.missing) == ("folder/new/newer/file", "file", ("new", "newer"))
        assert os.fstat(resolved.folder).st_ino == (sandbox.ws / "folder").stat().st_ino
    with pytest.raises(FileMissing), sandbox.tree.locate("folder/new/file"):
        pass
    with pytest.raises(FileMissing), sandbox.tree.locate("new/../../a.txt", changing=True):
        pass


def test_no_descriptor_is_left_open(sandbox: PathSandbox) -> None:
    sandbox.link("door", "../elsewhere")

    def opened() -> int:
        return len(list(Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd").iterdir()))

    before = opened()
    for path in ("a.txt", "folder/deep/../b.txt", "door/a.txt", "gone/x", "a.txt/b", "folder", "folder/.."):
        with suppress(PathError):
            sandbox.read(path)
        with suppress(PathError):
            sandbox.resolved(path)
        with suppress(PathError):
            sandbox.tree.entries(path)
    assert opened() == before


def test_root_that_is_not_a_folder_is_refused(sandbox: PathSandbox) -> None:
    for path in ("gone", "a.txt"):
        with pytest.raises(FileMissing):
            Tree(sandbox.ws / path)


@pytest.mark.parametrize("part", ["ws", "."])
def test_a_real_root_is_not_resolved_through_a_link(sandbox: PathSandbox, part: str) -> None:
    found = sandbox.base / "above" / "ws"
    found.mkdir(parents=True)
    place = sandbox.base / "above" / part
    place.rename(sandbox.base / "away")
    place.symlink_to(sandbox.base / "away")
    with pytest.raises(PathIsSymlink, match=str(found)):
        Tree(found, is_real=True)
    Tree(found).close()
    for path in (sandbox.ws, "/"):
        tree = Tree(path, is_real=True)
        assert (tree.root, tree.is_in_place) == (str(path), True)
        tree.close()
    for path in (sandbox.ws / "gone", sandbox.ws / "a.txt"):
        with pytest.raises(FileMissing):
            Tree(path, is_real=True)


def test_a_link_to_the_folder_is_not_the_folder(sandbox: PathSandbox) -> None:
    tree = Tree(sandbox.ws)
    sandbox.ws.rename(sandbox.base / "away")
    sandbox.ws.symlink_to(sandbox.base / "away")
    assert not tree.is_in_place
    tree.close()


def test_the_root_of_the_file_system_is_outside_in_every_working_directory(
    sandbox: PathSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sandbox.tree.root)
    for path in ("/", "//"):
        with pytest.raises(PathOutside):
            sandbox.resolved(path)


# ---- where a path really is


@pytest.mark.parametrize("start", ["", "{ws}/", "{ws}//", "/{ws}/", "{ws}/link/", "{ws}/folder/up/"])
@pytest.mark.parametrize(
    "rest",
    [
        "",
        "/",
        "a.txt",
        "folder/b.txt",
        "folder//b.txt",
        "./a.txt",
        ".hidden",
        "folder/../a.txt",
        "gone/x",
        "a.txt/x",
        "loop/x",
    ],
)
def test_real_path_follows_links_like_realpath(sandbox: PathSandbox, start: str, rest: str) -> None:
    sandbox.link("link", "folder")
    sandbox.link("folder/up", "..")
    sandbox.link("loop", "loop")
    path = start.format(ws=sandbox.ws) + rest
    assert real_path(path) == os.path.realpath(path)
