"""A disk that works for n operations and then fails, as a power cut, a full disk or a broken one does."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from objstore.disk.fs.disk import Disk, Pieces
from objstore.values.errors import DiskFailed, DiskFull

__all__ = [
    "WHOLE",
    "CountdownDisk",
    "PowerCut",
    "TooFullDisk",
    "UnsyncedDisk",
    "broken_disk",
    "full_disk",
    "power_cut",
    "sampled_steps",
]

WHOLE: Final = os.environ.get("CAS_CRASH_STEPS") == "1"
"""Whether all steps are tried, as `make crash` does, or a sample of them."""

_SECTOR: Final = 512
"""Bytes that a disk writes together: all of them or none."""

_EVERY: Final = int(os.environ.get("CAS_CRASH_STEPS", "13"))


def sampled_steps(steps: int, way: int = 0) -> range:
    """Return every thirteenth of so many steps and the last one, or one `way` before it: all for `CAS_CRASH_STEPS=1`.

    `make crash` goes through all of them. For what takes long at each.
    """
    return range(steps - 1 - way % _EVERY, -1, -_EVERY)


class PowerCut(BaseException):
    """The machine has stopped; no handler catches this or cleans up."""


def power_cut(_: str) -> BaseException:
    """Return the exception that represents a power cut or kill -9."""
    return PowerCut()


def full_disk(name: str) -> BaseException:
    """Return the exception for ENOSPC."""
    return DiskFull(name)


def broken_disk(name: str) -> BaseException:
    """Return the exception for EIO."""
    return DiskFailed(name, "Input/output error")


class CountdownDisk(Disk):
    """Lets `steps` operations (None: all) through and then fails.

    A power cut is the end: whatever is tried afterwards fails too. Other failures may be `lasting`, or strike once.
    `torn` is the share of a write that still lands when it fails. After the failure a power cut may come, `then_cut`
    operations later. Nothing is really synced: what a power cut takes is
    worked out here, and the walks over every step would otherwise wait for the disk most of the time.
    """

    def __init__(
        self,
        steps: int | None,
        failure: Callable[[str], BaseException] = power_cut,
        *,
        lasting: bool = True,
        torn: float | None = None,
        then_cut: int | None = None,
    ) -> None:
        self._left = steps
        self._failure: Final = failure
        self._lasting: Final = lasting
        self._torn: Final = torn
        self._then_cut = then_cut
        self._synced: dict[str, int] = {}  # size of each file of the log that a power cut leaves
        self._nameless: dict[str, set[str]] = {}  # files whose names a power cut takes, by folder
        self.done: list[str] = []  # the operations that went through
        self.failed: str | None = None  # the first that did not; None: all did
        self.cut: str | None = None  # the operation at which a power cut came after the failure
        self.disarmed = False

    @property
    def failed_in_a_write(self) -> bool:
        """Return whether the operation that failed could have been torn."""
        return self.failed in {"append", "overwrite", "stage", "rewrite", "create", "rename_new"}

    def lose_unsynced(self) -> None:
        """Remove from the log what a power cut may lose: bytes and names that were not synced."""
        for name, size in self._synced.items():
            os.truncate(name, size)
        for names in self._nameless.values():
            for name in names:
                Path(name).unlink()

    def _step(self, operation: str, name: str, tear: Callable[[float], None] | None = None) -> None:
        if self.failed is not None and self._then_cut is not None:
            self._cut_off(operation)
        if self.disarmed or (self.failed is not None and not self._lasting):
            return
        if self._left is None or self._left > 0:
            self._left = None if self._left is None else self._left - 1
            self.done.append(operation)
            return
        if self.failed is None:
            self.failed = operation
            if tear is not None and self._torn is not None:
                tear(self._torn)
        raise self._failure(name)

    def _cut_off(self, operation: str) -> None:
        if not self._then_cut:
            self.cut = self.cut or operation
            raise PowerCut
        self._then_cut -= 1

    # ---- the store's own files

    def append(self, fd: int, content: bytes, name: str) -> None:
        self._synced.setdefault(name, os.fstat(fd).st_size)
        self._step("append", name, lambda share: _write(fd, content, share))
        super().append(fd, content, name)

    def overwrite(self, fd: int, content: bytes, offset: int, name: str) -> None:
        def tear(share: float) -> None:
            # What lies in one sector lands whole or not at all: the applied marker does. A kill doesn't tear it either,
            # because a kernel copies what is in one page without looking for signals; a longer write may stop anywhere.
            if offset // _SECTOR != (offset + len(content) - 1) // _SECTOR:
                os.pwrite(fd, content[: int(len(content) * share)], offset)

        self._step("overwrite", name, tear)
        super().overwrite(fd, content, offset, name)

    def sync(self, fd: int, name: str) -> None:
        self._step("sync", name)
        self._synced[name] = os.fstat(fd).st_size

    def truncate(self, fd: int, size: int, name: str) -> None:
        self._step("truncate", name)
        super().truncate(fd, size, name)

    def create(self, path: str, content: Pieces, mode: int = 0o600) -> None:
        content = _joined(content)

        def tear(share: float) -> None:
            Path(f"{path}.0123456789abcdef").write_bytes(content[: int(len(content) * share)])

        self._step("create", path, tear)
        with Path(path).open("xb") as file:
            file.write(content)
        Path(path).chmod(mode)
        folder = str(Path(path).parent)
        self._nameless.setdefault(folder, set()).add(path)
        self.sync_directory(folder)

    def reserve(self, path: str, size: int) -> None:
        self._step("reserve", path)
        super().reserve(path, size)

    def make_creation_folder(self, path: str, within: int | None = None) -> None:
        self._step("make_creation_folder", path)
        super().make_creation_folder(path, within)

    def make_store_folder(self, path: str) -> None:
        self._step("make_store_folder", path)
        super().make_store_folder(path)

    def move_store_folder(self, source: str, path: str) -> None:
        self._step("move_store_folder", path)
        super().move_store_folder(source, path)

    def remove_store_file(self, path: str) -> None:
        self._step("remove_store_file", path)
        super().remove_store_file(path)
        self._synced.pop(path, None)
        self._nameless.get(str(Path(path).parent), set()).discard(path)

    def remove_store_folder(self, path: str) -> None:
        self._step("remove_store_folder", path)
        super().remove_store_folder(path)

    def sync_directory(self, path: str) -> None:
        self._step("sync_directory", path)
        self._nameless.pop(path, None)

    # ---- the user's files

    def stage(self, directory: int, content: Pieces, like: os.stat_result | None, mode: int, name: str) -> str:
        content = _joined(content)
        self._step("stage", name, self._tear_staged(directory, content))
        return super().stage(directory, content, like, mode, name)

    def stage_derived(self, directory: int, content: bytes, name: str) -> str:
        self._step("stage", name, self._tear_staged(directory, content))
        return super().stage_derived(directory, content, name)

    def _tear_staged(self, directory: int, content: bytes) -> Callable[[float], None]:
        def tear(share: float) -> None:
            # A disk that fails cleans up after itself; only a machine that stops leaves a part.
            if self._failure is power_cut:
                fd = os.open(".cas-torn", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=directory)
                _write(fd, content, share)
                os.close(fd)

        return tear

    def sync_staged(self, directory: int, staged: str, name: str) -> None:  # noqa: ARG002 - nothing is really synced
        self._step("sync_staged", name)

    def sync_folder(self, directory: int, name: str) -> None:  # noqa: ARG002 - nothing is really synced
        self._step("sync_folder", name)

    def return_mode(self, directory: int, name: str, was: os.stat_result) -> None:
        self._step("return_mode", name)
        super().return_mode(directory, name, was)

    def give(self, folder: int, like: os.stat_result, *, with_itself: bool) -> None:
        self._step("give", ".")
        super().give(folder, like, with_itself=with_itself)

    def replace(self, source_directory: int, source: str, directory: int, name: str) -> None:
        self._step("replace", name)
        super().replace(source_directory, source, directory, name)

    def exchange(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        self._step("exchange", name)
        return super().exchange(source_directory, source, directory, name)

    def respell(self, directory: int, name: str, new: str) -> None:
        self._step("respell", name)
        super().respell(directory, name, new)

    def rename_new(self, source_directory: int, source: str, directory: int, name: str) -> None:
        def tear(_: float) -> None:
            os.link(source, name, src_dir_fd=source_directory, dst_dir_fd=directory, follow_symlinks=False)

        self._step("rename_new", name, tear)
        super().rename_new(source_directory, source, directory, name)

    def link_new(self, source_directory: int, source: str, directory: int, name: str) -> bool:
        self._step("link_new", name)
        return super().link_new(source_directory, source, directory, name)

    def rewrite(self, directory: int, name: str, content: Pieces) -> None:
        content = _joined(content)

        def tear(share: float) -> None:
            fd = os.open(name, os.O_WRONLY, dir_fd=directory)
            _write(fd, content, share)
            os.close(fd)

        self._step("rewrite", name, tear)
        super().rewrite(directory, name, content)

    def chmod(self, directory: int, name: str, mode: int) -> None:
        self._step("chmod", name)
        super().chmod(directory, name, mode)

    def unlink(self, directory: int, name: str) -> None:
        self._step("unlink", name)
        super().unlink(directory, name)

    def make_directory(self, directory: int, name: str, like: os.stat_result | None = None) -> None:
        self._step("make_directory", name)
        super().make_directory(directory, name, like)

    def remove_directory(self, directory: int, name: str) -> bool:
        self._step("remove_directory", name)
        return super().remove_directory(directory, name)


class UnsyncedDisk(CountdownDisk):
    """A working disk that doesn't wait for syncs, for tests without power cuts."""

    def __init__(self) -> None:
        super().__init__(None)


class TooFullDisk(CountdownDisk):
    """A disk with space for small files, but not for a rewritten segment."""

    def __init__(self) -> None:
        super().__init__(None)

    def create(self, path: str, content: Pieces, mode: int = 0o600) -> None:
        if path.endswith(".new"):
            raise DiskFull(path)
        super().create(path, content, mode)


def _joined(content: Pieces) -> bytes:
    return content if isinstance(content, bytes) else b"".join(content)


def _write(fd: int, content: bytes, share: float) -> None:
    os.write(fd, content[: int(len(content) * share)])
