"""A file system that ignores case, keeps the case that it is given, and stores names decomposed, as macOS does.

It passes everything through to a folder and speaks the kernel's protocol (`linux/fuse.h`, version 7.31) on /dev/fuse
itself, because the libraries for that are not everywhere. Mounting needs root. Two spellings of a name are two nodes to
the kernel, with one inode number: that is what a program sees on macOS, NTFS and case-insensitive ext4.

Run as a program, it serves: FOLDER MOUNT [composed] [mute].
"""

import errno
import os
import stat
import struct
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["can_mount", "case_insensitive_folder"]

_HEADER: Final = struct.Struct("<IIQQIIII")
_ATTRIBUTES: Final = struct.Struct("<QQQQQQIIIIIIIIII")
_MAX_WRITE: Final = 1 << 17
_FOLDER, _ROOT = "/dev/fuse", 1


def can_mount() -> bool:
    """Return whether this process can mount the file system."""
    return os.geteuid() == 0 and os.access(_FOLDER, os.R_OK | os.W_OK) and sys.platform == "linux"


@contextmanager
def case_insensitive_folder(
    backing: Path, mount: Path, *, decomposes: bool = True, is_mute: bool = False
) -> Iterator[Path]:
    """Mount the file system and serve it from a process of its own until the block ends.

    `is_mute`: it doesn't say how much space is free.
    """
    backing.mkdir(parents=True, exist_ok=True)
    mount.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", __name__, str(backing), str(mount), *([] if decomposes else ["composed"])]
    words += ["mute"] if is_mute else []
    server = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"mounted\n"
        yield mount
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=False)
        server.terminate()
        server.communicate()


class _FileSystem:
    """The replies to the kernel's requests. Nodes are paths from the root, as they were asked for."""

    def __init__(self, root: str, *, decomposes: bool) -> None:
        self._root: Final = root
        self._decomposes: Final = decomposes
        self._paths = {_ROOT: ""}
        self._nodes = {"": _ROOT}
        self._next = _ROOT + 1
        self._listed: dict[int, list[tuple[str, os.stat_result]]] = {}
        self.operations: Final[dict[int, Callable[[int, bytes], bytes]]] = {
            1: lambda node, body: self._entry(self._child(node, _text(body))),
            3: lambda node, _: struct.pack("<QII", 0, 0, 0) + _attributes(os.lstat(self._real(self._paths[node]))),
            4: self._set_attributes,
            5: lambda node, _: os.fsencode(os.readlink(self._real(self._paths[node]))),
            6: self._symlink,
            8: self._mknod,
            9: self._mkdir,
            10: self._removed(os.unlink),
            11: self._removed(os.rmdir),
            12: lambda node, body: self._rename(node, struct.unpack_from("<Q", body)[0], 0, body[8:]),
            13: self._link,
            14: lambda node, body: self._opened(os.open(self._real(self._paths[node]), _flags(body))),
            15: self._read,
            16: self._write,
            17: self._statfs,
            18: self._release,
            20: self._sync,
            25: lambda _, __: b"",
            27: self._open_folder,
            28: self._read_folder,
            29: lambda _, body: self._nothing(self._listed.pop(struct.unpack_from("<Q", body)[0], None)),
            30: lambda _, __: b"",
            34: lambda _, __: b"",
            35: self._create,
            45: self._rename_with_flags,
        }

    # ---- names

    def _fold(self, name: str) -> str:
        return unicodedata.normalize("NFD", name).casefold()

    def _real(self, path: str) -> str:
        """Return the backing path: that with the asked name, else with one that is equal but for case and form."""
        real = self._root
        for name in filter(None, path.split("/")):
            exact = os.path.join(real, name)
            if os.path.lexists(exact) or not os.path.isdir(real):
                real = exact
                continue
            other = next((each for each in os.listdir(real) if self._fold(each) == self._fold(name)), None)
            new = unicodedata.normalize("NFD", name) if self._decomposes else name
            real = os.path.join(real, other if other is not None else new)
        return real

    def _child(self, node: int, name: str) -> str:
        above = self._paths[node]
        return f"{above}/{name}" if above else name

    def _node(self, path: str) -> int:
        if path not in self._nodes:
            self._nodes[path], self._paths[self._next] = self._next, path
            self._next += 1
        return self._nodes[path]

    def _entry(self, path: str) -> bytes:
        found = os.lstat(self._real(path))
        return struct.pack("<QQQQII", self._node(path), 0, 0, 0, 0, 0) + _attributes(found)

    # ---- operations

    def _nothing(self, _: object) -> bytes:
        return b""

    def _set_attributes(self, node: int, body: bytes) -> bytes:
        valid, _, handle, size, _, atime, mtime, _, atime_ns, mtime_ns, _, mode, _, uid, gid, _ = struct.unpack_from(
            "<IIQQQQQQIIIIIIII", body
        )
        real = self._real(self._paths[node])
        if valid & 1:
            os.chmod(real, stat.S_IMODE(mode))
        if valid & 6:
            os.chown(real, uid if valid & 2 else -1, gid if valid & 4 else -1, follow_symlinks=False)
        if valid & 8:
            os.truncate(handle if valid & 64 else real, size)
        if valid & 0x1B0:
            was = os.lstat(real)
            access = atime * 10**9 + atime_ns if valid & 16 else was.st_atime_ns
            change = mtime * 10**9 + mtime_ns if valid & 32 else was.st_mtime_ns
            os.utime(real, None if valid & 0x180 else (access, change), follow_symlinks=False) if valid & 0x180 else (
                os.utime(real, ns=(access, change), follow_symlinks=False)
            )
        return struct.pack("<QII", 0, 0, 0) + _attributes(os.lstat(real))

    def _symlink(self, node: int, body: bytes) -> bytes:
        name, target = body.split(b"\0")[:2]
        path = self._child(node, os.fsdecode(name))
        os.symlink(target, os.fsencode(self._real(path)))
        return self._entry(path)

    def _mknod(self, node: int, body: bytes) -> bytes:
        mode, device = struct.unpack_from("<II", body)
        path = self._child(node, _text(body[16:]))
        os.mknod(self._real(path), mode, device)
        return self._entry(path)

    def _mkdir(self, node: int, body: bytes) -> bytes:
        path = self._child(node, _text(body[8:]))
        os.mkdir(self._real(path), struct.unpack_from("<I", body)[0])
        return self._entry(path)

    def _removed(self, remove: Callable[[str], None]) -> Callable[[int, bytes], bytes]:
        def removed(node: int, body: bytes) -> bytes:
            remove(self._real(self._child(node, _text(body))))
            return b""

        return removed

    def _sync(self, _: int, body: bytes) -> bytes:
        os.fsync(struct.unpack_from("<Q", body)[0])
        return b""

    def _rename_with_flags(self, node: int, body: bytes) -> bytes:
        to, flags = struct.unpack_from("<QI", body)
        return self._rename(node, to, flags, body[16:])

    def _rename(self, node: int, to: int, flags: int, rest: bytes) -> bytes:
        old_name, new_name = map(os.fsdecode, rest.split(b"\0")[:2])
        old, new = self._child(node, old_name), self._child(to, new_name)
        source, target = self._real(old), self._real(new)
        if flags & 2:
            raise OSError(errno.EINVAL, "no exchange")
        if flags & 1 and os.path.lexists(target):
            raise OSError(errno.EEXIST, "exists")
        if source == target:  # a change of case: the new spelling is kept
            form = unicodedata.normalize("NFD", new_name) if self._decomposes else new_name
            target = os.path.join(os.path.dirname(target), form)
        os.rename(source, target)
        for path, number in list(self._nodes.items()):
            if self._fold(path) == self._fold(old) or self._fold(path).startswith(self._fold(old) + "/"):
                moved = new + path[len(old) :]
                self._paths[number] = moved
                del self._nodes[path]
                self._nodes.setdefault(moved, number)
        return b""

    def _link(self, node: int, body: bytes) -> bytes:
        path = self._child(node, _text(body[8:]))
        os.link(self._real(self._paths[struct.unpack_from("<Q", body)[0]]), self._real(path))
        return self._entry(path)

    def _opened(self, handle: int) -> bytes:
        return struct.pack("<QII", handle, 0, 0)

    def _create(self, node: int, body: bytes) -> bytes:
        flags, mode = struct.unpack_from("<II", body)
        path = self._child(node, _text(body[16:]))
        handle = os.open(self._real(path), _flags(struct.pack("<I", flags)) | os.O_CREAT, mode)
        return self._entry(path) + self._opened(handle)

    def _read(self, _: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        return os.pread(handle, size, offset)

    def _write(self, _: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        return struct.pack("<II", os.pwrite(handle, body[40 : 40 + size], offset), 0)

    def _release(self, _: int, body: bytes) -> bytes:
        os.close(struct.unpack_from("<Q", body)[0])
        return b""

    def _statfs(self, _: int, __: bytes) -> bytes:
        found = os.statvfs(self._root)
        counts = (found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree)
        return struct.pack("<QQQQQIIII24x", *counts, found.f_bsize, 255, found.f_frsize, 0)

    def _open_folder(self, node: int, _: bytes) -> bytes:
        real = self._real(self._paths[node])
        handle = max(self._listed, default=0) + 1
        self._listed[handle] = [(name, os.lstat(os.path.join(real, name))) for name in os.listdir(real)]
        return self._opened(handle)

    def _read_folder(self, _: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        reply = b""
        for at, (name, found) in enumerate(self._listed[handle][offset:], start=offset + 1):
            encoded = os.fsencode(name)
            entry = struct.pack("<QQII", found.st_ino, at, len(encoded), stat.S_IFMT(found.st_mode) >> 12) + encoded
            entry += bytes(-len(entry) % 8)
            if len(reply) + len(entry) > size:
                break
            reply += entry
        return reply


def _text(body: bytes) -> str:
    return os.fsdecode(body.partition(b"\0")[0])


def _flags(body: bytes) -> int:
    """Return the flags of an open that concern the backing file."""
    flags: int = struct.unpack_from("<I", body)[0]
    # The kernel reads a page to write a part of it, and appends at the end that it knows.
    access = os.O_RDWR if flags & os.O_ACCMODE else os.O_RDONLY
    return access | (flags & (os.O_TRUNC | os.O_EXCL))


def _attributes(found: os.stat_result) -> bytes:
    times = (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)
    return _ATTRIBUTES.pack(
        found.st_ino,
        found.st_size,
        found.st_blocks,
        *(time // 10**9 for time in times),
        *(time % 10**9 for time in times),
        found.st_mode,
        found.st_nlink,
        found.st_uid,
        found.st_gid,
        found.st_rdev & 0xFFFFFFFF,
        4096,
        0,
    )


def _serve(backing: str, mount: str, *, decomposes: bool, is_mute: bool) -> None:
    """Mount, say so, and reply to requests until the mount is gone."""
    device = os.open(_FOLDER, os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    subprocess.run(["mount", "-i", "-t", "fuse", "-o", options, "caseless", mount], check=True, pass_fds=[device])
    system = _FileSystem(backing, decomposes=decomposes)
    if is_mute:
        del system.operations[17]
    print("mounted", flush=True)
    while True:
        try:
            request = os.read(device, _MAX_WRITE + 4096)
        except OSError as error:
            if error.errno in {errno.EINTR, errno.ENOENT}:
                continue
            return  # not mounted any more
        _, operation, unique, node, *_ = _HEADER.unpack_from(request)
        if operation in {2, 36, 42}:  # forget, interrupt
            continue
        failed, reply = 0, b""
        if operation == 26:  # init
            reply = struct.pack("<IIIIHHIIHH8I", 7, 31, 1 << 16, 0, 12, 9, _MAX_WRITE, 1, 32, 0, *([0] * 8))
        else:
            try:
                reply = system.operations[operation](node, request[_HEADER.size :])
            except OSError as error:
                failed = error.errno or errno.EIO
            except KeyError:
                failed = errno.ENOSYS
        os.write(device, struct.pack("<IiQ", 16 + len(reply), -failed, unique) + reply)


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2], decomposes="composed" not in sys.argv, is_mute="mute" in sys.argv)
