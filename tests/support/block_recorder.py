"""A file that records every write and flush, so that the state after a power cut can be constructed.

A process of its own serves it over /dev/fuse, as the file of a loop device. The kernel's file system is on that device,
so the file gets what a real disk would be sent. A disk with a volatile cache keeps, when the power goes,
all that was sent before the last flush that it has answered, and any part of what was sent since. Linux only, and only
root may mount.
"""

import ctypes
import errno
import os
import random
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from threading import Lock, Thread
from typing import Final

__all__ = ["BlockRecorder", "mounted_recorder"]

SECTOR: Final = 512
"""Bytes that a disk writes completely or not at all."""

_MAX_WRITE: Final = 1 << 20
_IN: Final = struct.Struct("<IIQQIIIHH")
_OUT: Final = struct.Struct("<IiQ")
_INIT: Final = struct.Struct("<IIIIHHIIHHI28x")
_ATTRIBUTES: Final = struct.Struct("<QII6Q10I")
_TRANSFER: Final = struct.Struct("<QQIIQII")
_OPENED: Final = struct.Struct("<QII")
_WRITTEN: Final = struct.Struct("<II")
_PROTOCOL: Final = (7, 31)
_BIG_WRITES: Final = 1 << 5
_MAX_PAGES: Final = 1 << 22
_FOREVER: Final = 1 << 30


class _Operation(IntEnum):
    """The requests of the kernel (linux/fuse.h)."""

    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    OPEN = 14
    READ = 15
    WRITE = 16
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    DESTROY = 38
    BATCH_FORGET = 42


_PLAIN: Final[dict[int, bytes]] = {
    _Operation.OPEN: _OPENED.pack(0, 0, 0),
    _Operation.FSYNC: b"",
    _Operation.RELEASE: b"",
    _Operation.FLUSH: b"",
    _Operation.DESTROY: b"",
}
"""Constant answers."""


class BlockRecorder:
    """The recorded requests in order: a write as (offset, bytes), a flush as None."""

    def __init__(self, image: Path) -> None:
        """Start with the bytes of `image`."""
        self.content: Final = bytearray(image.read_bytes())
        self.sent: list[tuple[int, bytes] | None] = []
        self._lock: Final = Lock()

    def cut(self) -> int:
        """Return the number of requests so far, a moment at which the power may fail."""
        with self._lock:
            return len(self.sent)

    def write(self, offset: int, content: bytes) -> None:
        """Record a write."""
        with self._lock:
            self.content[offset : offset + len(content)] = content
            self.sent.append((offset, content))

    def flush(self) -> None:
        """Record a flush; it counts as answered when this returns."""
        with self._lock:
            self.sent.append(None)

    def left_by(
        self, base: bytearray, begun: int, cut: int, chance: random.Random, sector: int = SECTOR
    ) -> tuple[bytearray, int, int]:
        """Return what a power cut at `cut` leaves, where `base` is what was on disk after the flush before `begun`.

        Changes `base` to what is certain at `cut`, and returns with the image where that begins, and how many writes
        were lost or torn.
        """
        certain = begun
        for at in range(begun, cut):
            if self.sent[at] is None:
                certain = at + 1
        for write in self.sent[begun:certain]:
            if write is not None:
                base[write[0] : write[0] + len(write[1])] = write[1]
        image = bytearray(base)
        lost = 0
        kept = chance.choice((0.0, 0.5, 0.9, 1.0))
        for write in self.sent[certain:cut]:
            if write is None:
                raise AssertionError("a flush behind the last one")
            offset, content = write
            if chance.random() < kept:
                image[offset : offset + len(content)] = content
                continue
            lost += 1
            torn = chance.randrange(len(content) // sector + 1) * sector if chance.random() < 0.5 else 0
            image[offset : offset + torn] = content[:torn]
        return image, certain, lost


class _Server:
    """Answers the kernel's requests for one file, which is the root of its file system."""

    def __init__(self, fd: int, recorder: BlockRecorder) -> None:
        self._fd = fd
        self._recorder = recorder

    def run(self) -> None:
        """Serve until the file system is unmounted."""
        with suppress(OSError):
            while True:
                request = os.read(self._fd, _MAX_WRITE + 4096)
                length, operation, unique, *_ = _IN.unpack_from(request)
                answer = self._answer(operation, request[_IN.size : length])
                if answer is None:
                    continue
                failure, content = (-answer, b"") if isinstance(answer, int) else (0, answer)
                os.write(self._fd, _OUT.pack(_OUT.size + len(content), failure, unique) + content)

    def _answer(self, operation: int, body: bytes) -> bytes | int | None:
        """Return the answer: bytes, an error number, or None."""
        recorder = self._recorder
        match operation:
            case _Operation.INIT:
                flags = int.from_bytes(body[12:16], "little") & (_BIG_WRITES | _MAX_PAGES)
                return _INIT.pack(*_PROTOCOL, 0, flags, 16, 12, _MAX_WRITE, 1, _MAX_WRITE // 4096, 0, 0)
            case _Operation.GETATTR | _Operation.SETATTR:
                size = len(recorder.content)
                times = (0, 0, 0)
                return _ATTRIBUTES.pack(
                    _FOREVER, 0, 0, 1, size, size // SECTOR, *times, *times, stat.S_IFREG | 0o600, 1, 0, 0, 0, 4096, 0
                )
            case _Operation.READ:
                _, offset, size, *_ = _TRANSFER.unpack_from(body)
                return bytes(recorder.content[offset : offset + size])
            case _Operation.WRITE:
                _, offset, size, *_ = _TRANSFER.unpack_from(body)
                recorder.write(offset, body[_TRANSFER.size : _TRANSFER.size + size])
                return _WRITTEN.pack(size, 0)
            case _Operation.FSYNC:
                recorder.flush()
            case _Operation.FORGET | _Operation.BATCH_FORGET:
                return None  # the kernel waits for no answer
        return _PLAIN.get(operation, errno.ENOSYS)


@contextmanager
def mounted_recorder(image: Path, mountpoint: Path) -> Iterator[BlockRecorder]:
    """Give `mountpoint`, an existing file, the bytes of `image`, and remember what is sent to it until the end."""
    libc = ctypes.CDLL(None, use_errno=True)
    recorder = BlockRecorder(image)
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        options = f"fd={fd},rootmode=100600,user_id=0,group_id=0".encode()
        if libc.mount(b"recorder", os.fsencode(mountpoint), b"fuse", 0, options):
            raise OSError(ctypes.get_errno(), "mount")
        server = Thread(target=_Server(fd, recorder).run, daemon=True)
        server.start()
        try:
            yield recorder
        finally:
            libc.umount2(os.fsencode(mountpoint), 0)
            server.join(timeout=10)
    finally:
        os.close(fd)
