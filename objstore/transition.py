"""A transition: the user's files go from recorded states to recorded states, all of them or none.

It works path by path, with bytes from the store, so that after a crash anywhere each path is either as it was or as
it shall be, and what is left can be done by looking at the disk alone.

Write order. The new bytes of every file lie beside the store (staged) before the log is written, so a full disk shows
while nothing has changed. The log must be durable before the first file changes, or a crash could leave bytes that no
record knows. The read-back comes last, and only then is success reported.
"""

import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import Final, Protocol, Self

from objstore.disk import Disk, Pieces, is_same_file
from objstore.errors import (
    CallAborted,
    CasError,
    DiskFailed,
    FileChanged,
    FileExists,
    FileMissing,
    PathError,
    PathInvalid,
    PathIsDirectory,
    PathIsSymlink,
    PathNotRegular,
    PermissionRefused,
    Unacknowledged,
)
from objstore.ids import BlobId
from objstore.ondisk import disk_state, stands_below, state_at
from objstore.paths import Spot, Tree, Walk, look_at, open_folder
from objstore.terms import FileState, Progress, silent
from objstore.values import replace, value

__all__ = ["Blobs", "Step", "Transition", "folders_of"]


_MOST_HELD: Final = 16
"""Places that are held open at once, each with every folder on the way."""

_PASSES: Final = 3
"""Times that each path is come to: prepared, changed, read back."""


@value
class Step:
    """What becomes of one path."""

    path: bytes
    before: FileState | None  # None: nothing stands there
    after: FileState | None  # None: nothing shall stand there
    moved_from: bytes | None = None  # the file with these very bytes that comes here; None: none does


class Blobs(Protocol):
    """Where a transition takes the bytes of blobs from."""

    def pieces(self, name: BlobId, /) -> Pieces:
        """Return the bytes of a blob."""

    def at_hand(self, name: BlobId, /) -> bytes | None:
        """Return the bytes of a blob if they are in memory."""


class Transition:
    """One transition, from its plan to its end. Use as a context manager: leaving it removes what was staged."""

    def __init__(  # noqa: PLR0913 - each is one thing that the journal knows and a transition does not
        self,
        tree: Tree,
        disk: Disk,
        steps: Iterable[Step],
        blobs: Blobs,
        *,
        scratch: int,
        looked: Mapping[bytes, os.stat_result] | None = None,
        is_made: Callable[[bytes], bool],
        left: Iterable[bytes] | None = None,
        progress: Progress = silent,
    ) -> None:
        """Plan it. `scratch`: an open folder for staging.

        `looked`: what was seen of files when they were read.
        `is_made`: which folders recorded edits made. One that is empty by then gives way to a file of its name.
        `left`: they go when the last file in them goes, and so do those of these paths (None: they stay).
        `progress` is told of the paths: each is looked at twice besides, before it changes and when all have.
        """
        self._tree = tree
        self._disk = disk
        self._blobs: Final = blobs
        self._scratch: Final = scratch
        self._scratch_device: Final = os.fstat(scratch).st_dev
        self._looked = dict(looked or {})
        self._is_made = is_made
        self._left = None if left is None else tuple(left)
        wanted = [_movable(step) for step in steps if step.before != step.after]
        # What goes away first, so that a folder may take a file's name and the other way round.
        self._steps = sorted(wanted, key=lambda step: (step.after is not None, step.path))
        self._moved: Final = {step.moved_from for step in self._steps}
        self._staged: dict[bytes, tuple[int, str]] = {}
        self._opened: list[int] = []  # folders that are staged in, apart from `scratch`
        self._vacated: Final = {step.path for step in self._steps if step.after is None}
        self._made: dict[bytes, os.stat_result | None] = {}  # folders that this transition has made, as they then were
        self._spots: Final = _Spots(tree, self._vacated)
        self._progress: Final = progress
        self._passes = 0

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what is still staged, and close folders."""
        try:
            for folder, name in self._staged.values():
                with suppress(FileNotFoundError, CasError):
                    self._disk.unlink(folder, name)
        finally:
            self._staged.clear()
            for folder in self._opened:
                os.close(folder)
            self._spots.close()

    def __bool__(self) -> bool:
        """Return whether any file changes."""
        return bool(self._steps)

    def check(self) -> None:
        """Check every path as `prepare` does; nothing is staged, and nothing needs room. Raises as `prepare`."""
        for step in self._steps:
            self._check(step, self._spots.at(step.path))

    def prepare(self) -> None:
        """Check every path and stage every new content; the user's files stay as they are.

        Raises PermissionRefused, FileExists, PathIsSymlink, FileChanged, DiskFull and what Tree.locate raises.
        """
        for step in self._steps:
            spot = self._spots.at(step.path)
            self._check(step, spot)
            if step.after is not None and not self._keeps_bytes(step):
                self._stage(step, step.after, spot)
            self._tell()

    def run(self) -> None:
        """Change the files, read each back, and compare. On failure everything is as before, and CallAborted says why.

        Raises Unacknowledged when not even that was possible; then the next writer finishes the transition.
        """
        done: list[Step] = []
        try:
            for step in self._steps:
                done.append(step)
                self._carry_out(step)
                self._tell()
            self._read_back(self._steps)
            self._prune()
        except (CasError, FileNotFoundError, FileExistsError) as error:
            self._take_back(done, error)
            raise CallAborted(os.fsdecode(done[-1].path), str(error)) from error

    # ---- before

    def _keeps_bytes(self, step: Step) -> bool:
        same = step.before is not None and step.after is not None and step.before.blob == step.after.blob
        return same or step.moved_from is not None

    def _check(self, step: Step, spot: Spot) -> None:
        found = look_at(spot)
        if found is None:
            if step.before is not None:
                raise FileChanged(spot.path)
        elif step.before is None:
            if stat.S_ISLNK(found.st_mode):
                raise PathIsSymlink(spot.path)
            if not stat.S_ISDIR(found.st_mode) or not self._gives_way(spot):
                raise FileExists(spot.path)
        else:
            _check_kind(found, spot.path)
            self._check_unchanged(step, spot, found)
            if not os.access(spot.name, os.W_OK, dir_fd=spot.folder):
                raise PermissionRefused(spot.path)
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=spot.folder):
            raise PermissionRefused(spot.path)

    def _gives_way(self, spot: Spot) -> bool:
        """Return whether a folder may go for a file: recorded edits made it, and this transition empties it."""
        files, folders = stands_below(spot)
        return self._vacated.issuperset(files) and all(map(self._is_made, folders))

    def _check_unchanged(self, step: Step, spot: Spot, found: os.stat_result) -> None:
        looked = self._looked.get(step.path)
        if looked is None:
            stands = state_at(spot)
            if stands is None or step.before is None or stands[0].blob != step.before.blob:
                raise FileChanged(spot.path)
            self._looked[step.path] = stands[1].stat
        elif not is_same_file(looked, found):
            raise FileChanged(spot.path)

    def _stage(self, step: Step, after: FileState, spot: Spot) -> None:
        # A rename can't leave its file system, so staging happens on the one where the file will be.
        folder = self._scratch
        if os.fstat(spot.folder).st_dev != self._scratch_device:
            folder = os.dup(spot.folder)
            self._opened.append(folder)
        like = self._looked.get(step.path)
        name = self._disk.stage(folder, self._blobs.pieces(after.blob), like, after.mode, spot.path)
        self._staged[step.path] = (folder, name)

    # ---- during

    def _carry_out(self, step: Step) -> None:
        spot = self._spots.at(step.path)
        if step.after is None:
            if step.path not in self._moved:
                self._still_as_seen(step, spot)
                self._disk.unlink(spot.folder, spot.name)
            return
        spot = self._with_folders(step, spot)
        if step.before is None:
            self._make_way(step, spot)
        if step.moved_from is not None:
            source = self._spots.at(step.moved_from)
            self._disk.rename_new(source.folder, source.name, spot.folder, spot.name)
        elif step.before is None:
            folder, name = self._staged[step.path]
            self._disk.rename_new(folder, name, spot.folder, spot.name)
            del self._staged[step.path]
        elif step.before.blob != step.after.blob:
            self._replace(step, spot)
        if step.before is not None and step.before.mode != step.after.mode:
            self._disk.chmod(spot.folder, spot.name, step.after.mode)
        if step.moved_from is not None and self._mode_at(spot) != step.after.mode:
            self._disk.chmod(spot.folder, spot.name, step.after.mode)

    def _make_way(self, step: Step, spot: Spot) -> None:
        """Remove a folder that stands where a file comes, with the folders in it, if nothing else is."""
        found = look_at(spot)
        if found is None or not stat.S_ISDIR(found.st_mode):
            return
        files, folders = stands_below(spot)
        if files:
            raise FileExists(spot.path)
        self._spots.forget_below(step.path)
        for folder in folders:
            self._remove_folder(folder)

    def _remove_folder(self, path: bytes, made: os.stat_result | None = None) -> bool:
        """Remove a folder if it is empty, and the one that was `made`, if that is known; return whether it is gone."""
        with self._tree.locate(os.fsdecode(path), changing=True, as_spelt=False) as spot:
            found = None if made is None else look_at(spot)
            if found is not None and made is not None and not os.path.samestat(found, made):
                return False  # somebody has put another in its place
            return not spot.missing and self._disk.remove_directory(spot.folder, spot.name)

    def _replace(self, step: Step, spot: Spot) -> None:
        found = self._still_as_seen(step, spot)
        folder, name = self._staged[step.path]
        if found.st_nlink > 1 and step.after is not None:
            # A rename would part this name from the file's others.
            self._disk.rewrite(spot.folder, spot.name, self._blobs.pieces(step.after.blob))
            return
        if self._disk.exchange(folder, name, spot.folder, spot.name):
            # What had the name is still there. If somebody wrote to it since we looked, it goes back.
            displaced = os.lstat(name, dir_fd=folder)
            if (displaced.st_ino, displaced.st_size, displaced.st_mtime_ns) != (
                found.st_ino,
                found.st_size,
                found.st_mtime_ns,
            ):
                self._disk.exchange(folder, name, spot.folder, spot.name)
                raise FileChanged(spot.path)
            self._disk.unlink(folder, name)
        else:
            self._disk.replace(folder, name, spot.folder, spot.name)
        del self._staged[step.path]

    def _still_as_seen(self, step: Step, spot: Spot) -> os.stat_result:
        found = look_at(spot)
        looked = self._looked.get(step.path)
        if found is None or (looked is not None and not is_same_file(looked, found)):
            raise FileChanged(spot.path)
        return found

    def _mode_at(self, spot: Spot) -> int:
        found = look_at(spot)
        return -1 if found is None else stat.S_IMODE(found.st_mode)

    def _with_folders(self, step: Step, spot: Spot) -> Spot:
        if not spot.missing:
            return spot
        with ExitStack() as opened:
            folder = spot.folder
            for name, path in zip(spot.missing, folders_of(step.path)[-len(spot.missing) :], strict=True):
                with suppress(FileExistsError):
                    self._disk.make_directory(folder, name)
                    self._made[path] = None  # not yet looked at
                folder = open_folder(folder, name, spot.path)
                opened.callback(os.close, folder)
                if path in self._made:
                    self._made[path] = os.fstat(folder)
        self._spots.forget(step.path)
        return self._spots.at(step.path)

    def _read_back(self, steps: Iterable[Step]) -> None:
        for step in steps:
            try:
                spot = self._spots.at(step.path)
                blob = None if step.after is None else step.after.blob
                stands = state_at(spot, blob, None if blob is None else self._blobs.at_hand(blob))
            except (PathIsDirectory, PathInvalid):
                if step.after is None:
                    continue  # a folder has taken the file's name, or a file that of its folder
                raise
            if stands is None and step.after is not None:
                raise FileMissing(spot.path)
            if stands is not None and stands[0] != step.after and not self._is_without_mode(step, spot, stands[0]):
                raise FileChanged(spot.path)
            self._tell()

    def _is_without_mode(self, step: Step, spot: Spot, stands: FileState) -> bool:
        """Return whether a new file is as it shall be, but for a mode of which its file system keeps nothing.

        Raises PermissionRefused where the file is not new, so that its mode is what should have changed.
        """
        if step.after is None or stands.blob != step.after.blob:
            return False
        with suppress(PermissionRefused):
            self._disk.chmod(spot.folder, spot.name, step.after.mode)
        if self._mode_at(spot) == step.after.mode:
            return False  # it does; somebody has just changed it
        if step.before is not None:
            raise PermissionRefused(spot.path)
        return True

    def _tell(self) -> None:
        """Tell that a path was prepared, changed or read back."""
        self._passes += 1
        self._progress("paths", self._passes // _PASSES, len(self._steps))

    def _prune(self) -> None:
        """Remove folders that recorded edits made and that have become empty."""
        if self._left is None:
            return
        taken = {step.path for step in self._steps if step.after is not None}
        for path in [*(step.path for step in self._steps if step.after is None), *self._left]:
            if not taken.isdisjoint(folders_of(path)):
                continue  # a file has taken its folder's name
            folder = path.rpartition(b"/")[0]
            while folder and self._is_made(folder) and self._remove_folder(folder):
                folder = folder.rpartition(b"/")[0]

    # ---- after a failure

    def _take_back(self, done: list[Step], cause: Exception) -> None:
        """Bring every path of `done` back to what it was, as far as it is now what we made of it."""
        for step in reversed(done):
            try:
                try:
                    found = disk_state(self._tree, step.path)
                except (PathIsDirectory, PathIsSymlink, PathNotRegular):
                    continue  # somebody else's: leave it; the next look reports it
                now = None if found is None else found[0]
                made = None if step.after is None else step.after.blob
                if now is None and step.before is None:
                    self._unmake(step.path)
                if now == step.before or (None if now is None else now.blob) != made:
                    continue  # as it was, or somebody else's bytes or deletion
                spot = self._spots.at(step.path)
                if step.before is None:
                    self._disk.unlink(spot.folder, spot.name)
                    self._unmake(step.path)
                    continue
                spot = self._with_folders(step, spot)
                like = None if found is None else found[1].stat
                pieces = self._blobs.pieces(step.before.blob)
                name = self._disk.stage(spot.folder, pieces, like, step.before.mode, spot.path)
                self._disk.replace(spot.folder, name, spot.folder, spot.name)
            except (PathError, DiskFailed, FileNotFoundError) as error:
                path = os.fsdecode(step.path)
                raise Unacknowledged(f"{cause}; and {path} could not be taken back ({error})") from error

    def _unmake(self, path: bytes) -> None:
        """Remove the folders of a path that this transition has made, as far as nothing else is in them."""
        for folder in reversed(folders_of(path)):
            if folder in self._made:
                self._spots.forget_below(folder)
                if not self._remove_folder(folder, self._made[folder]):
                    break


class _Spots:
    """Where paths lead. Only the last few are held open: a transition may have more files than a process may open."""

    def __init__(self, tree: Tree, vacated: Container[bytes]) -> None:
        """Begin with none. `vacated`: paths of files that go, so that folders may take their names."""
        self._tree: Final = tree
        self._vacated: Final = vacated
        self._held: OrderedDict[bytes, tuple[Spot, Walk]] = OrderedDict()

    def at(self, path: bytes) -> Spot:
        """Return the spot of a recorded path. Raises FileChanged if a folder on the way has become a link."""
        held = self._held.get(path)
        if held is not None:
            self._held.move_to_end(path)
            return held[0]
        name = os.fsdecode(path)
        walk = self._tree.locate(name, changing=True, as_spelt=False, is_vacated=self._vacated.__contains__)
        spot = walk.arrive()
        self._held[path] = spot, walk
        if spot.path != name:
            self.forget(path)
            raise FileChanged(name, self._link_on(path))
        if len(self._held) > _MOST_HELD:
            self.forget(next(iter(self._held)))
        return spot

    def _link_on(self, path: bytes) -> str:
        """Return the first folder on the way that is a link (empty: none is, any more)."""
        for folder in folders_of(path):
            with suppress(OSError):
                if stat.S_ISLNK(os.lstat(folder, dir_fd=self._tree.fd).st_mode):
                    return os.fsdecode(folder)
        return ""

    def forget(self, path: bytes) -> None:
        """Have a path found anew."""
        self._held.pop(path)[1].close()

    def forget_below(self, folder: bytes) -> None:
        """Have every path below a folder found anew."""
        for path in [path for path in self._held if path.startswith(folder + b"/")]:
            self.forget(path)

    def close(self) -> None:
        """Close every folder."""
        while self._held:
            self._held.popitem()[1][1].close()


def _movable(step: Step) -> Step:
    """Return the step; a file that moves to the name of its own folder, or into one of its own name, comes as new."""
    if step.moved_from is None:
        return step
    source = step.moved_from
    is_own = step.path in folders_of(source) or source in folders_of(step.path)
    return replace(step, moved_from=None) if is_own else step


def folders_of(path: bytes) -> list[bytes]:
    """Return the folders that a path lies in, the outermost first."""
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def _check_kind(found: os.stat_result, path: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise PathIsSymlink(path)
    if stat.S_ISDIR(found.st_mode):
        raise PathIsDirectory(path)
    if not stat.S_ISREG(found.st_mode):
        raise PathNotRegular(path)
