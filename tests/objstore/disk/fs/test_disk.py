"""Test the disk on systems that lack common features: a file system without hard links, a full disk."""

import ctypes
import fcntl
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from objstore import CallInfo, Workspace, check_store
from objstore.disk.fs.disk import Disk, Pieces, syncing
from objstore.values.errors import DiskFailed, DiskFull, PermissionRefused
from tests.support.command_runner import environment
from tests.support.faulty_disk import CountdownDisk, PowerCut, full_disk, power_cut
from tests.support.path_sandbox import as_unprivileged_user

DENYING: Final = """
import ctypes, errno, os, platform, struct

LINKS = {"x86_64": (86, 265), "aarch64": (37,)}
SYNCS_OF_DATA = {"x86_64": (75,), "aarch64": (83,)}
SYNCS = {"x86_64": (74,), "aarch64": (82,)}

def deny(calls, error):
    # From here on the kernel answers these calls with the error, and does nothing.
    load, if_equal, answer = 0x20, 0x15, 0x06
    numbers = calls[platform.machine()]
    code = [(load, 0, 0, 0), *((if_equal, len(numbers) - at, 0, number) for at, number in enumerate(numbers)),
            (answer, 0, 0, 0x7FFF0000), (answer, 0, 0, 0x00050000 | error)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters))
    system = ctypes.CDLL(None, use_errno=True)
    assert system.prctl(38, 1, 0, 0, 0) == 0
    assert system.prctl(22, 2, program, 0, 0) == 0

"""

FORBIDDEN: Final = (
    DENYING
    + """
deny(LINKS, errno.EPERM)  # as a file system that has no hard links
try:
    os.link("here", "there")
except PermissionError:
    pass
"""
)

WORK: Final = """
import sys
from objstore import CallInfo, Workspace
from objstore.disk.fs.disk import Disk

with Workspace.init(sys.argv[1]) as workspace, workspace.call(CallInfo(tool="t")) as call:
    call.write("new", b"new\\n")
    call.write("old", b"replaced\\n")
    call.commit()
try:
    Disk().create(sys.argv[1] + "/old", b"not to be")
except FileExistsError:
    print("as it was")
"""


def test_store_works_without_hard_links(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old\n")
    command = [sys.executable, "-P", "-c", (FORBIDDEN if sys.platform == "linux" else "") + WORK, str(tmp_path)]
    ran = subprocess.run(command, env=environment({}), capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "as it was\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".cas", "new", "old"]
    assert [(tmp_path / name).read_bytes() for name in ("new", "old")] == [b"new\n", b"replaced\n"]
    assert check_store(str(tmp_path)).faults == ()


def test_interrupted_creation_of_a_store_can_be_repeated(tmp_path: Path) -> None:
    whole = CountdownDisk(None)
    (tmp_path / "whole").mkdir()
    Workspace.init(tmp_path / "whole", whole).close()
    assert {"make_store_folder", "create", "move_store_folder", "sync_directory"} <= set(whole.done)
    # The store gets its name when all of it is durable, and is reported when the name is durable.
    moved = whole.done.index("move_store_folder")
    assert whole.done[moved:] == ["move_store_folder", "remove_store_file", "sync_directory", "reserve"]
    assert not (tmp_path / "whole" / ".cas" / "making").exists()
    assert (tmp_path / "whole" / ".cas" / ".gitignore").read_bytes() == b"*\n"
    steps = whole.done.index("reserve")  # a store is one without room that it keeps, too
    for step in range(steps):
        for failure, raised in ((power_cut, PowerCut), (full_disk, DiskFull)):
            root = tmp_path / f"{step}-{failure.__name__}"
            root.mkdir()
            with pytest.raises(raised):
                Workspace.init(root, CountdownDisk(step, failure, lasting=failure is power_cut)).close()
            with Workspace.init(root) as workspace, workspace.call(CallInfo(tool="t")) as call:
                call.write("f", b"f\n")
                call.commit()
            assert sorted(path.name for path in root.iterdir()) == [".cas", "f"], whole.done[step]
            assert check_store(str(root)).faults == ()


@pytest.mark.parametrize("before", [b"old\n", None], ids=["over a file", "as the first"])
@pytest.mark.parametrize("is_loaded", [True, False], ids=["what swaps is loaded", "it is not loaded"])
def test_replacement_leaves_no_other_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes | None, *, is_loaded: bool
) -> None:
    monkeypatch.setitem(sys.modules, "ctypes", ctypes)
    if not is_loaded:
        monkeypatch.delitem(sys.modules, "ctypes")
    if before is not None:
        (tmp_path / "name").write_bytes(before)
    disk = CountdownDisk(None)
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        disk.replace_derived(folder, disk.stage_derived(folder, b"new\n", "name"), folder, "name")
    finally:
        os.close(folder)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"name": b"new\n"}
    # Renamed over another file it would have to be written out, and whoever replaces it next would wait for that.
    assert ("exchange" in disk.done) == (before is not None and is_loaded)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems are given no advice")
def test_the_system_writes_out_what_is_synced_later_and_no_derived_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    advise = os.posix_fadvise

    def noted(fd: int, *rest: int) -> None:
        begun.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        advise(fd, *rest)

    monkeypatch.setattr(os, "posix_fadvise", noted)
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        derived = Disk().stage_derived(folder, b"one two\n", "name")
        staged = Disk().stage(folder, b"one\n", None, 0o600, "name")
    finally:
        os.close(folder)
    assert begun == [staged]
    assert (tmp_path / derived).read_bytes() == b"one two\n"


@pytest.mark.parametrize("size", [0, 1, (1 << 16) - 1, 1 << 16, 3 << 20])
@pytest.mark.parametrize("count", [1, 4])
def test_staged_zeros_are_a_hole_and_read_as_zeros(tmp_path: Path, size: int, count: int) -> None:
    pieces = [b"a" + bytes(size), bytes(size), b"b" * 100_000, bytes(size)][:count]
    folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        forms: list[Pieces] = [b"".join(pieces), pieces]
        for number, content in enumerate(forms):
            os.rename(
                Disk().stage(folder, content, None, 0o600, "f"), f"f{number}", src_dir_fd=folder, dst_dir_fd=folder
            )
    finally:
        os.close(folder)
    for number in range(2):
        assert (tmp_path / f"f{number}").read_bytes() == b"".join(pieces)
        assert (tmp_path / f"f{number}").stat().st_blocks * 512 < 600_000


def test_a_file_that_failed_while_staged_in_pieces_is_removed(tmp_path: Path) -> None:
    class Broken(Exception):
        pass

    def pieces() -> Iterator[bytes]:
        yield b"begun"
        raise Broken

    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with pytest.raises(Broken):
            Disk().stage(fd, pieces(), None, 0o600, "f")
        with pytest.raises(Broken):
            Disk().create(str(tmp_path / "g"), pieces())
    finally:
        os.close(fd)
    assert list(tmp_path.iterdir()) == []


UNSYNCED: Final = """
import errno, json, os, sys
from objstore.disk.fs.disk import Disk
from objstore.values.errors import DiskFailed

disk, folder = Disk(), sys.argv[1]
os.chdir(folder)
log = os.open("log", os.O_WRONLY | os.O_CREAT)

def pieces():
    for _ in range(5):
        yield bytes(1 << 20)
    results.append("not synced on the way")

def tried(act, *arguments):
    before = len(os.listdir("/dev/fd"))
    try:
        act(*arguments)
    except DiskFailed as error:
        results.append(error.reason)
    else:
        results.append("")
    assert len(os.listdir("/dev/fd")) == before

def try_all():
    tried(disk.sync, log, "log")
    tried(disk.sync_directory, folder)
    tried(disk.create, "short", b"short")
    tried(disk.create, os.path.join(folder, "long"), pieces())

results = []
for denied in ("SYNCS_OF_DATA", "SYNCS") if sys.platform == "linux" else ():
    deny(globals()[denied], errno.EIO)
    try_all()
    results.append(sorted(os.listdir(folder)))
print(json.dumps(results))
"""


def test_failed_sync_always_raises(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", (DENYING if sys.platform == "linux" else "") + UNSYNCED, str(tmp_path)]
    ran = subprocess.run(command, env=environment({}), capture_output=True, text=True, timeout=60, check=True)
    failed = "Input/output error"
    data = [failed, "", failed, failed, ["log"]]  # bytes are synced before they get their name
    names = [failed, failed, failed, failed, ["log"]]
    assert json.loads(ran.stdout) == ([*data, *names] if sys.platform == "linux" else [])


NAMELESS: Final = """
import errno, os, sys
from objstore.disk.fs.disk import Disk
from objstore.values.errors import DiskFailed

if sys.platform == "linux":
    deny(SYNCS, errno.EIO)
before = len(os.listdir("/dev/fd"))
try:
    Disk().create(sys.argv[1] + "/name", b"bytes")
except DiskFailed as error:
    print(error.reason)
else:
    print("made")
assert len(os.listdir("/dev/fd")) == before
"""


def test_creation_of_a_name_fails_if_its_sync_fails(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", (DENYING if sys.platform == "linux" else "") + NAMELESS, str(tmp_path)]
    ran = subprocess.run(command, env=environment({}), capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == ("Input/output error\n" if sys.platform == "linux" else "made\n")


def test_sync_uses_the_full_sync_command_of_the_system(tmp_path: Path) -> None:
    synced: list[int] = []
    with (tmp_path / "f").open("wb") as file:
        fd = file.fileno()
        syncing(synced.append, fcntl.F_SETFD)(fd)  # takes the place of F_FULLFSYNC, because its effect is visible
        assert (os.get_inheritable(fd), synced) == (True, [])
        syncing(synced.append, None)(fd)
        assert synced == [fd]


def test_sync_falls_back_to_fsync(tmp_path: Path) -> None:
    synced: list[int] = []
    sync = syncing(synced.append, 0x7FFF_FFFF)  # EINVAL, as of a shared folder
    with (tmp_path / "f").open("wb") as file:
        fd = file.fileno()
        sync(fd)
        assert synced == [fd]
    with pytest.raises(OSError, match="Bad file descriptor"):
        sync(fd)
    assert synced == [fd]


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@contextmanager
def full_beyond(size: int) -> Iterator[None]:
    """Limit the size of files, which the system reports like a full disk."""
    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))


def test_system_error_is_raised_as_its_kind_and_leaves_no_file_or_descriptor(tmp_path: Path) -> None:
    disk, folder = Disk(), os.open(tmp_path, os.O_RDONLY)
    (tmp_path / "f").write_bytes(b"as it was\n")
    (tmp_path / "d").mkdir()
    log = os.open(tmp_path / "f", os.O_WRONLY | os.O_APPEND)
    big = bytes(10_000)
    before = open_files()
    full: tuple[Callable[[], object], ...] = (
        lambda: disk.append(log, big, "f"),
        lambda: disk.overwrite(log, big, 5_000, "f"),
        lambda: disk.truncate(log, 10_000, "f"),
        lambda: disk.create(str(tmp_path / "new"), big),
        lambda: disk.create(str(tmp_path / "new"), iter([big, big])),
        lambda: disk.stage(folder, big, None, 0o600, "f"),
        lambda: disk.rewrite(folder, "f", big),
    )
    with full_beyond(4_096):
        for act in full:
            with pytest.raises(DiskFull):
                act()
    wrong: tuple[Callable[[], object], ...] = (
        lambda: disk.make_store_folder(str(tmp_path / "f" / "below")),
        lambda: disk.remove_store_folder(str(tmp_path / "f")),
        lambda: disk.sync_directory(str(tmp_path / "f")),
        lambda: disk.rewrite(folder, "d", b""),
        lambda: disk.replace(folder, "f", folder, "d"),
    )
    for act in wrong:
        with pytest.raises(DiskFailed) as caught:
            act()
        assert type(caught.value) is DiskFailed
    forbidden: tuple[Callable[[], object], ...] = (
        lambda: disk.stage(folder, b"", None, 0o600, "f"),
        lambda: disk.rename_new(folder, "f", folder, "g"),
        lambda: disk.unlink(folder, "f"),
        lambda: disk.make_directory(folder, "e"),
    )
    tmp_path.chmod(0o500)
    with as_unprivileged_user():
        for act in forbidden:
            with pytest.raises(PermissionRefused):
                act()
    tmp_path.chmod(0o700)
    with pytest.raises(FileNotFoundError):
        disk.unlink(folder, "not there")
    with pytest.raises(FileExistsError):
        disk.rename_new(folder, "f", folder, "d")
    assert open_files() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "f"]
    for fd in (log, folder):
        os.close(fd)


@pytest.mark.parametrize("pieces", [False, True])
def test_created_and_rewritten_files_have_exactly_their_bytes_and_mode(tmp_path: Path, *, pieces: bool) -> None:
    disk, folder = Disk(), os.open(tmp_path, os.O_RDONLY)
    content = [b"one\n", b"", b"two\n" * 9]

    def given() -> bytes | Iterator[bytes]:
        return iter(content) if pieces else b"".join(content)

    before = open_files()
    disk.create(str(tmp_path / "made"), given(), 0o640)
    os.rename(disk.stage(folder, given(), None, 0o751, "staged"), "staged", src_dir_fd=folder, dst_dir_fd=folder)
    (tmp_path / "rewritten").write_bytes(bytes(99))
    (tmp_path / "rewritten").chmod(0o604)
    disk.rewrite(folder, "rewritten", given())
    assert open_files() == before
    os.close(folder)
    found = {path.name: (path.read_bytes(), path.stat().st_mode & 0o777) for path in tmp_path.iterdir()}
    modes = {"made": 0o640 & ~current_mask(), "staged": 0o751, "rewritten": 0o604}
    assert found == {name: (b"".join(content), mode) for name, mode in modes.items()}


def current_mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def test_a_staged_file_gets_the_owner_of_the_file_it_replaces_if_permitted(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    (tmp_path / "old").write_bytes(b"")
    tmp_path.chmod(0o777)
    if os.geteuid() == 0:
        os.chown(tmp_path / "old", 65534, 65534)
    like = (tmp_path / "old").stat()
    staged = os.stat(Disk().stage(folder, b"new", like, 0o600, "old"), dir_fd=folder)
    assert (staged.st_uid, staged.st_gid) == (like.st_uid, like.st_gid)
    with as_unprivileged_user():
        own = os.geteuid()
        staged = os.stat(Disk().stage(folder, b"new", Path("/").stat(), 0o600, "old"), dir_fd=folder)
    os.close(folder)
    assert staged.st_uid == own


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can make a file that is another's")
def test_staged_file_keeps_the_group_if_its_owner_can_not_be_set(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"")
    os.chown(tmp_path / "old", 1000, 1234)
    tmp_path.chmod(0o777)
    like = (tmp_path / "old").stat()
    folder = os.open(tmp_path, os.O_RDONLY)
    groups = os.getgroups()
    os.setgroups([1234])
    try:
        with as_unprivileged_user():
            name = Disk().stage(folder, b"new", like, 0o664, "old")
    finally:
        os.setgroups(groups)
    staged = os.stat(name, dir_fd=folder)
    os.close(folder)
    assert (staged.st_uid, staged.st_gid, staged.st_mode & 0o7777) == (65534, 1234, 0o664)
