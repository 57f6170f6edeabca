"""A transition: the user's files go from recorded states to recorded states, all of them or none.

It works path by path, with bytes from the store, so that after a crash anywhere each path is either as it was or as
it shall be, and what is left can be done by looking at the disk alone.

Write order. The new bytes of every file lie beside the store (staged) before the log is written, so a full disk shows
while nothing has changed. The log must be durable before the first file changes, or a crash could leave bytes that no
record knows. The read-back comes last, and only then is success reported.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import takewhile
from typing import Final, Protocol, Self

from objstore.errors import (
    CallAborted,
    CasError,
    FileChanged,
    FileExists,
    FileMissing,
    NamesShared,
    PathError,
    PathInvalid,
    PathIsDirectory,
    PathIsSymlink,
    PathNotRegular,
    PathOutside,
    PermissionRefused,
    Unacknowledged,
)
from objstore.fastclass import replace, value
from objstore.file_changes.hardlinks import FileId, HardLinks, file_id
from objstore.file_changes.open_dirs import ResolvedPaths
from objstore.fs.confined_path import FileOnDisk, ResolvedPath, Tree, look_at, open_folder
from objstore.fs.disk import Disk, Pieces, is_same_file
from objstore.fs.file_state import disk_state, stands_below, state_at
from objstore.model.basic_types import FileState, Progress, ignore_progress
from objstore.model.ids import BlobId
from objstore.model.relpath import folders_of

__all__ = ["Blobs", "FileStep", "Transition"]


_PASSES: Final = 3
"""Times that each path is come to: prepared, changed, read back."""


@value
class FileStep:
    """What becomes of one path."""

    path: bytes
    before: FileState | None  # None: nothing stands there
    after: FileState | None  # None: nothing shall stand there
    moved_from: bytes | None = None  # the file with these very bytes that comes here; None: none does
    is_decided: bool = False  # it goes back from what was recorded; a call goes on from whatever stands there


class Blobs(Protocol):
    """Where a transition takes the bytes of blobs from."""

    def pieces(self, name: BlobId, /) -> Pieces:
        """Return the bytes of a blob."""

    def cached_bytes(self, name: BlobId, /) -> bytes | None:
        """Return the bytes of a blob if they are in memory."""


class Transition:
    """One transition, from its plan to its end. Use as a context manager: leaving it removes what was staged."""

    def __init__(  # noqa: PLR0913 - each is one thing that the journal knows and a transition does not
        self,
        tree: Tree,
        disk: Disk,
        steps: Iterable[FileStep],
        blobs: Blobs,
        *,
        scratch: int,
        looked: Mapping[bytes, os.stat_result] | None = None,
        is_made: Callable[[bytes], bool],
        was_file: Callable[[bytes], bool],
        is_emptied: Callable[[bytes], bool],
        left: Iterable[bytes] | None = None,
        progress: Progress = ignore_progress,
    ) -> None:
        """Plan it. `scratch`: an open folder for staging.

        `looked`: what was seen of files when they were read.
        `is_made`: which folders recorded edits made. One that is empty by then gives way to a file of its name.
        `was_file`: at which paths recorded files ever stood. A folder there has come since, and goes with its files; so
        does one that has none, where a decision brings the file back.
        `is_emptied`: which folders recorded decisions leave empty. They go with the last file in them, and so do those
        among `left` (None: they stay).
        `progress` is told of the paths: each is looked at twice besides, before it changes and when all have.
        """
        self._tree = tree
        self._disk = disk
        self._blobs: Final = blobs
        self._scratch: Final = scratch
        self._scratch_device: Final = os.fstat(scratch).st_dev
        self._looked = dict(looked or {})
        self._is_made = is_made
        self._was_file = was_file
        self._is_emptied = is_emptied
        self._left = None if left is None else tuple(left)
        steps = tuple(steps)
        wanted = _movable(tree, [step for step in steps if step.before != step.after])
        moved = {step.path: step.moved_from for step in steps}
        # What comes as new although it was moved: what stands there now, with its list, is what it shall be like.
        self._like: Final = {step.path: moved[step.path] or step.path for step in wanted if step.moved_from is None}
        # What goes away first, so that a folder may take a file's name and the other way round.
        self._steps = sorted(wanted, key=lambda step: (step.after is not None, step.path))
        self._moves: Final = {step.moved_from: step for step in self._steps if step.moved_from is not None}
        self._staged: dict[bytes, tuple[int, str]] = {}
        self._others: dict[FileId, int] = {}  # folders that are staged in, apart from `scratch`, and held open
        self._notes: list[str] = []  # that say so in `scratch`
        self._vacated: Final = {step.path for step in steps if step.after is None}  # by it, or before it already
        self._made: dict[bytes, os.stat_result | None] = {}  # folders that this transition has made, as they then were
        self._spots: Final = ResolvedPaths(tree, self._vacated)
        self._progress: Final = progress
        self._passes = 0
        self._links: Final = HardLinks()
        self._began: Final = time.monotonic()
        self._aside: dict[bytes, tuple[int, str]] = {}  # files with several names: where they are, by their path

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what is still staged, and close folders."""
        is_clear = True
        try:
            for folder, name in (*self._staged.values(), *self._aside.values()):
                try:
                    with suppress(FileNotFoundError):
                        self._disk.unlink(folder, name)
                except CasError:
                    is_clear = False
            for note in self._notes if is_clear else ():
                with suppress(FileNotFoundError, CasError):
                    self._disk.unlink(self._scratch, note)
        finally:
            self._staged.clear()
            self._aside.clear()
            for folder in self._others.values():
                os.close(folder)
            self._spots.close()

    def __bool__(self) -> bool:
        """Return whether any file changes."""
        return bool(self._steps)

    def check(self) -> None:
        """Check every path as `prepare` does; nothing is staged, and nothing needs room. Raises as `prepare`."""
        for step in self._steps:
            self._check(step, self._spots.at(step.path))
        self._check_names()

    def refused(self) -> set[bytes]:
        """Return the paths for which `check` would raise a PathError. Nothing is staged. Raises DiskFailed."""
        found = set()
        for step in self._steps:
            try:
                self._check(step, self._spots.at(step.path))
            except PathError:
                found.add(step.path)
        return found

    def prepare(self) -> None:
        """Check every path and stage every new content; the user's files stay as they are.

        Raises PermissionRefused, FileExists, PathIsSymlink, FileChanged, NamesShared, DiskFull, and what Tree.locate
        and Tree.see_users raise.
        """
        for step in self._steps:
            resolved = self._spots.at(step.path)
            self._check(step, resolved)
            if step.after is not None and not self._keeps_bytes(step):
                self._stage(step, step.after, resolved)
            self._tell()
        self._check_names()

    def run(self) -> None:
        """Change the files, read each back, and compare. On failure everything is as before, and CallAborted says why.

        Raises Unacknowledged when not even that was possible; then the next writer finishes the transition.
        """
        done: list[FileStep] = []
        try:
            for step in self._steps:
                done.append(step)
                self._carry_out(step)
                self._tell()
            self._read_back(self._steps)
            self._prune()
        except Exception as error:  # whatever it is: what was recorded holds only if all of it was done
            self._take_back(done, error)
            paths = [step.path for step in done] or list(self._left or ())
            raise CallAborted(os.fsdecode(paths[-1]), str(error)) from error

    # ---- before

    def _keeps_bytes(self, step: FileStep) -> bool:
        same = step.before is not None and step.after is not None and step.before.blob == step.after.blob
        return same or step.moved_from is not None

    def _check(self, step: FileStep, resolved: ResolvedPath) -> None:
        found = look_at(resolved)
        if found is None:
            if step.before is not None:
                raise FileChanged(resolved.path)
        elif step.before is None:
            if stat.S_ISLNK(found.st_mode):
                raise PathIsSymlink(resolved.path)
            if not stat.S_ISDIR(found.st_mode):
                raise FileExists(resolved.path)
            self._require_folder_may_go(step, resolved)
        else:
            _check_kind(found, resolved.path)
            self._tree.require_users_file(found, resolved.path, since=self._began)
            self._check_unchanged(step, resolved, found)
            if not os.access(resolved.name, os.W_OK, dir_fd=resolved.folder) and not _takes_mode_back(step, found):
                raise PermissionRefused(resolved.path)
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=resolved.folder):
            raise PermissionRefused(resolved.path)

    def _require_folder_may_go(self, step: FileStep, resolved: ResolvedPath) -> None:
        """Raise FileExists unless a folder may go for a file: this transition empties it, and nobody else made it.

        Where a decision brings a file back, whoever has put nothing but folders in its place loses nothing.
        """
        files, folders = stands_below(resolved)
        if step.is_decided and not files:
            return
        # Decisions bring back folders that no edit made, for the files in them.
        come = {folder for file in self._vacated for folder in folders_of(file)} if self._was_file(step.path) else set()
        kept = [path for path in files if path not in self._vacated]
        kept = kept or [folder for folder in folders if folder not in come and not self._is_made(folder)]
        if kept:
            raise FileExists(resolved.path, _within(step.path, kept))

    def _check_unchanged(self, step: FileStep, resolved: ResolvedPath, found: os.stat_result) -> None:
        looked = self._looked.get(step.path)
        if looked is None:
            stands = state_at(resolved)
            if stands is None or step.before is None or stands[0].blob != step.before.blob:
                raise FileChanged(resolved.path)
            self._looked[step.path] = stands[1].stat
        elif not is_same_file(looked, found):
            raise FileChanged(resolved.path)

    def _check_names(self) -> None:
        """See that names of one file are to stay one: its bytes are written in place, so all of them get the same."""
        wanted: dict[FileId, FileStep] = {}
        for step in self._steps:
            looked = self._looked.get(step.moved_from or step.path)
            if step.after is None or looked is None or looked.st_nlink == 1:
                continue
            other = wanted.setdefault(file_id(looked), step)
            if other.after != step.after:
                raise NamesShared(os.fsdecode(step.path), os.fsdecode(other.path))

    def _beside(self, resolved: ResolvedPath) -> int:
        """Return an open folder for files of ours from which one can be renamed to `spot`."""
        # A rename can't leave its file system, so they lie on the one where the file will be.
        found = os.fstat(resolved.folder)
        if found.st_dev == self._scratch_device:
            return self._scratch
        folder = self._others.get(file_id(found))
        if folder is None:
            from objstore.file_changes.cross_device_staging import note_staging_folder

            above = resolved.path.split("/")[: -1 - len(resolved.missing)]
            self._notes.append(note_staging_folder(self._disk, self._scratch, "/".join(above)))
            folder = self._others[file_id(found)] = os.dup(resolved.folder)
        return folder

    def _stage(self, step: FileStep, after: FileState, resolved: ResolvedPath) -> None:
        folder = self._beside(resolved)
        model = self._like[step.path]
        like = self._looked.get(model)
        name = self._disk.stage(folder, self._blobs.pieces(after.blob), like, after.mode, resolved.path)
        self._staged[step.path] = (folder, name)
        if like is not None:
            seen = self._spots.at(model)
            self._disk.carry_attributes(seen.folder, seen.name, folder, name, after.mode)

    # ---- during

    def _carry_out(self, step: FileStep) -> None:
        resolved = self._spots.at(step.path)
        if step.after is None:
            if step.path not in self._moves:
                self._remove(step, resolved)
            return
        resolved = self._with_folders(step.path, resolved)
        if step.before is None:
            self._remove_blocking_folder(step, resolved)
        if step.moved_from is not None:
            self._move(step.moved_from, resolved)
        elif step.before is None:
            folder, name = self._staged[step.path]
            self._disk.rename_new(folder, name, resolved.folder, resolved.name)
            del self._staged[step.path]
        elif step.before.blob != step.after.blob:
            self._replace(step, resolved)
        else:
            self._still_as_seen(step.path, resolved)
        mode = self._mode_at(resolved) if step.before is None else step.before.mode
        is_to_change = mode != step.after.mode and (step.before is not None or step.moved_from is not None)
        if is_to_change and not self._is_kept_with(resolved, step.after.mode):
            raise FileChanged(resolved.path)

    def _move(self, path: bytes, resolved: ResolvedPath) -> None:
        source = self._spots.at(path)
        found = self._still_as_seen(path, source)
        self._disk.rename_new(source.folder, source.name, resolved.folder, resolved.name)
        if not self._links.note_metadata_change(found, look_at(resolved)):
            raise FileChanged(source.path)

    def _is_kept_with(self, resolved: ResolvedPath, mode: int) -> bool:
        """Give a file a mode; return whether nobody has written to it meanwhile."""
        found = look_at(resolved)
        self._disk.chmod(resolved.folder, resolved.name, mode)
        return found is not None and self._links.note_metadata_change(self._links.expected(found), look_at(resolved))

    def _remove_blocking_folder(self, step: FileStep, resolved: ResolvedPath) -> None:
        """Remove a folder that stands where a file comes, with the folders in it, if nothing else is."""
        found = look_at(resolved)
        if found is None or not stat.S_ISDIR(found.st_mode):
            return
        files, folders = stands_below(resolved)
        if files:
            raise FileExists(resolved.path, _within(step.path, files))
        self._spots.forget_below(step.path)
        for folder in folders:
            self._remove_folder(folder)

    def _remove_folder(self, path: bytes, made: os.stat_result | None = None) -> bool:
        """Remove a folder if it is empty, and the one that was `made`, if that is known; return whether it is gone."""
        name = os.fsdecode(path)
        with self._tree.locate(name, changing=True, as_spelt=False) as resolved:
            if resolved.path != name:
                return False  # a link has come in its place, or in that of a folder above
            found = None if made is None else look_at(resolved)
            if found is not None and made is not None and not os.path.samestat(found, made):
                return False  # somebody has put another in its place
            return not resolved.missing and self._disk.remove_directory(resolved.folder, resolved.name)

    def _remove(self, step: FileStep, resolved: ResolvedPath) -> None:
        found = self._still_as_seen(step.path, resolved)
        if found.st_nlink == 1:
            self._disk.unlink(resolved.folder, resolved.name)
            return
        # Made anew, it would be no name of that file any more: it is kept until nothing can be taken back.
        folder, name = self._beside(resolved), f".cas-{os.urandom(8).hex()}"
        self._disk.replace(resolved.folder, resolved.name, folder, name)
        self._note_backup_name(step, folder, name)
        if not self._links.note_metadata_change(found, os.lstat(name, dir_fd=folder)):
            raise FileChanged(resolved.path)

    def _note_backup_name(self, step: FileStep, folder: int, name: str) -> None:
        self._aside[step.path] = folder, name
        self._links.note_backup_name(os.lstat(name, dir_fd=folder))

    def _rewrite(self, resolved: ResolvedPath, blob: BlobId) -> None:
        try:
            self._disk.rewrite(resolved.folder, resolved.name, self._blobs.pieces(blob))
        finally:
            self._links.note_written(resolved)  # what was written of it before something failed is ours as well

    def _replace(self, step: FileStep, resolved: ResolvedPath) -> None:
        found = self._still_as_seen(step.path, resolved)
        folder, name = self._staged[step.path]
        if self._links.has_other_links(found) and step.after is not None:
            # A rename would part this name from the file's others.
            self._rewrite(resolved, step.after.blob)
            return
        if self._disk.exchange(folder, name, resolved.folder, resolved.name):
            # What had the name is still there. If somebody wrote to it since we looked, it goes back.
            displaced = os.lstat(name, dir_fd=folder)
            if (displaced.st_ino, displaced.st_size, displaced.st_mtime_ns) != (
                found.st_ino,
                found.st_size,
                found.st_mtime_ns,
            ):
                self._disk.exchange(folder, name, resolved.folder, resolved.name)
                raise FileChanged(resolved.path)
            if displaced.st_nlink > 1:
                self._note_backup_name(step, folder, name)
            else:
                self._disk.unlink(folder, name)
        else:
            self._disk.replace(folder, name, resolved.folder, resolved.name)
        del self._staged[step.path]

    def _still_as_seen(self, path: bytes, resolved: ResolvedPath) -> os.stat_result:
        found = look_at(resolved)
        if found is None or not is_same_file(self._links.expected(self._looked[path]), found):
            raise FileChanged(resolved.path)
        return found

    def _mode_at(self, resolved: ResolvedPath) -> int:
        found = look_at(resolved)
        return -1 if found is None else stat.S_IMODE(found.st_mode)

    def _with_folders(self, path: bytes, resolved: ResolvedPath) -> ResolvedPath:
        if not resolved.missing:
            return resolved
        with ExitStack() as opened:
            folder = resolved.folder
            for name, made in zip(resolved.missing, folders_of(path)[-len(resolved.missing) :], strict=True):
                with suppress(FileExistsError):
                    self._disk.make_directory(folder, name)
                    self._made[made] = None  # not yet looked at
                folder = open_folder(folder, name, resolved.path)
                opened.callback(os.close, folder)
                if made in self._made:
                    self._made[made] = os.fstat(folder)
        self._spots.forget(path)
        return self._spots.at(path)

    def _read_back(self, steps: Iterable[FileStep]) -> None:
        for step in steps:
            try:
                resolved = self._spots.at(step.path)
                blob = None if step.after is None else step.after.blob
                stands = state_at(resolved, blob, None if blob is None else self._blobs.cached_bytes(blob))
            except (PathIsDirectory, PathInvalid):
                if step.after is None:
                    continue  # a folder has taken the file's name, or a file that of its folder
                raise
            if stands is None and step.after is not None:
                raise FileMissing(resolved.path)
            if stands is not None and stands[0] != step.after and not self._is_without_mode(step, resolved, stands[0]):
                raise FileChanged(resolved.path)
            self._tell()

    def _is_without_mode(self, step: FileStep, resolved: ResolvedPath, stands: FileState) -> bool:
        """Return whether a new file is as it shall be, but for a mode of which its file system keeps nothing.

        Raises PermissionRefused where the file is not new, so that its mode is what should have changed.
        """
        if step.after is None or stands.blob != step.after.blob:
            return False
        with suppress(PermissionRefused):
            self._disk.chmod(resolved.folder, resolved.name, step.after.mode)
        if self._mode_at(resolved) == step.after.mode:
            return False  # it does; somebody has just changed it
        if step.before is not None:
            raise PermissionRefused(resolved.path)
        return True

    def _tell(self) -> None:
        """Tell that a path was prepared, changed or read back."""
        self._passes += 1
        self._progress("paths", self._passes // _PASSES, len(self._steps))

    def _prune(self) -> None:
        """Remove folders that a decision leaves empty, or has made in a file's place, if they are so.

        One that can't be removed stays: every file is as it shall be by then.
        """
        for folders in self._to_prune():
            with suppress(CasError, OSError):
                for folder in folders:
                    if not self._remove_folder(folder):
                        break

    def _to_prune(self) -> list[list[bytes]]:
        """Return the folders that may go when they are empty, path by path, the inner ones first."""
        if self._left is None:
            return []
        taken = {step.path for step in self._steps if step.after is not None}
        above = [folders_of(step.path) for step in self._steps if step.after is None]
        above += [[*folders_of(folder), folder] for folder in self._left]
        may_go = cache(lambda folder: self._is_emptied(folder) or self._was_file(folder))
        # A file may have taken a folder's name.
        return [list(takewhile(may_go, reversed(folders))) for folders in above if taken.isdisjoint(folders)]

    # ---- after a failure

    def _take_back(self, done: list[FileStep], cause: Exception) -> None:
        """Bring every path of `done` back to what it was, as far as it is now what we made of it.

        What can't be brought back keeps no other from it. Raises Unacknowledged, which names what can't.
        """
        failed: list[str] = []
        restored: list[FileStep] = []
        for step in reversed(done):
            with _noted(step, failed):
                if self._is_restored(step):
                    restored.append(step)
        for step in restored:
            with _noted(step, failed):
                found = disk_state(self._tree, step.path)
                if found is None or step.before is None or found[0].blob != step.before.blob:
                    raise FileChanged(os.fsdecode(step.path))
        if failed:
            raise Unacknowledged("; and ".join([str(cause), *failed])) from cause

    def _is_restored(self, step: FileStep) -> bool:
        """Bring a file back if it was changed or removed by this transition; return whether its bytes were."""
        if (step.path in self._moves or self._keeps_bytes(step)) and self._restore_name_and_mode(step):
            return False
        try:
            found = disk_state(self._tree, step.path)
        except (PathIsDirectory, PathIsSymlink, PathNotRegular, PathInvalid, PathOutside):
            return False  # somebody else's, or below what is: leave it; the next look reports it
        now = None if found is None else found[0]
        if now is None and step.before is None:
            self._remove_made_folders(step.path)
        if now == step.before or not self._is_ours(step, found):
            return False  # as it was, or somebody else's bytes or deletion
        resolved = self._spots.at(step.path)
        if step.before is None:
            self._undo_create(step, resolved)
            return False
        is_aside = step.path in self._aside
        self._restore(step, step.before, found, self._with_folders(step.path, resolved))
        return not is_aside

    def _restore_name_and_mode(self, step: FileStep) -> bool:
        """Bring back name and mode of a file of which no byte changes; return whether it is the very file still.

        Whatever others have written to it meanwhile is theirs and stays in it.
        """
        move = self._moves.get(step.path, step)
        seen = step.path if step.moved_from is None else step.moved_from
        found = self._same_file_stat(seen, step.path)
        if found is None:
            # What could not be moved back is not to be there twice.
            return move is not step and self._same_file_stat(seen, move.path) is not None
        resolved = self._spots.at(step.path)
        if step.before is None:
            self._undo_create(step, resolved)
        elif move.after is not None and stat.S_IMODE(found.st_mode) == move.after.mode != step.before.mode:
            self._is_kept_with(resolved, step.before.mode)
        return True

    def _same_file_stat(self, seen: bytes, path: bytes) -> os.stat_result | None:
        """Return how the file at a path looks if it is the very one that was seen at another, or there (None: no)."""
        looked = self._looked.get(seen)
        name = os.fsdecode(path)
        with suppress(FileMissing, PathInvalid, PathOutside), self._tree.locate(name, as_spelt=False) as resolved:
            found = look_at(resolved) if resolved.path == name else None
            return found if looked is not None and found is not None and os.path.samestat(looked, found) else None
        return None

    def _is_ours(self, step: FileStep, found: tuple[FileState, FileOnDisk] | None) -> bool:
        """Return whether what stands at the step's path is what this transition has made of it."""
        if found is None:
            return step.after is None
        is_after = step.after is not None and found[0].blob == step.after.blob
        return is_after or self._links.is_ours(found[1].stat)

    def _undo_create(self, step: FileStep, resolved: ResolvedPath) -> None:
        if step.moved_from is None:
            self._disk.unlink(resolved.folder, resolved.name)
        else:
            self._move_back(step.moved_from, resolved)
        self._remove_made_folders(step.path)

    def _move_back(self, path: bytes, resolved: ResolvedPath) -> None:
        # The very file, or its other names would be those of another one, and who has it open writes to no file at all.
        source = self._with_folders(path, self._spots.at(path))
        stands, found = look_at(source), look_at(resolved)
        if stands is None or found is None:
            self._disk.rename_new(resolved.folder, resolved.name, source.folder, source.name)
        elif os.path.samestat(stands, found):
            self._disk.unlink(resolved.folder, resolved.name)  # the rename was cut off between its two names
        else:
            raise FileExists(source.path)

    def _restore(
        self, step: FileStep, before: FileState, found: tuple[FileState, FileOnDisk] | None, resolved: ResolvedPath
    ) -> None:
        if found is None or found[0].blob != before.blob:
            self._restore_bytes(step, before, None if found is None else found[1].stat, resolved)
        if self._mode_at(resolved) != before.mode:
            with suppress(PermissionRefused):  # where the file system keeps none
                self._is_kept_with(resolved, before.mode)

    def _restore_bytes(
        self, step: FileStep, before: FileState, found: os.stat_result | None, resolved: ResolvedPath
    ) -> None:
        if step.path in self._aside:
            folder, name = self._aside[step.path]
            (self._disk.rename_new if found is None else self._disk.replace)(
                folder, name, resolved.folder, resolved.name
            )
            del self._aside[step.path]
        elif found is not None and self._links.has_other_links(found):
            self._rewrite(resolved, before.blob)
        else:
            folder = self._beside(resolved)
            name = self._disk.stage(folder, self._blobs.pieces(before.blob), found, before.mode, resolved.path)
            if found is not None:
                self._disk.carry_attributes(resolved.folder, resolved.name, folder, name, before.mode)
            try:
                self._disk.replace(folder, name, resolved.folder, resolved.name)
            except (CasError, OSError):
                with suppress(CasError, OSError):
                    self._disk.unlink(folder, name)
                raise

    def _remove_made_folders(self, path: bytes) -> None:
        """Remove the folders of a path that this transition has made, as far as nothing else is in them."""
        for folder in reversed(folders_of(path)):
            if folder in self._made:
                self._spots.forget_below(folder)
                if not self._remove_folder(folder, self._made[folder]):
                    break


@contextmanager
def _noted(step: FileStep, failed: list[str]) -> Iterator[None]:
    """Note where a path can't be taken back, for whatever reason."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the other paths are taken back all the same
        failed.append(f"{os.fsdecode(step.path)} could not be rolled back ({error})")


def _movable(tree: Tree, steps: Sequence[FileStep]) -> list[FileStep]:
    """Return the steps; a file comes as new if its old name, or a folder of it, is in the way of any that comes.

    And if it comes from another file system, as somebody else's program may have moved it.
    """
    incoming_paths = {step.path for step in steps if step.after is not None}
    folders = {folder for path in incoming_paths for folder in folders_of(path)}

    def is_in_the_way(source: bytes) -> bool:
        return source in folders or not incoming_paths.isdisjoint(folders_of(source))

    def stays(step: FileStep) -> bool:
        source = step.moved_from
        return source is None or not (is_in_the_way(source) or _device(tree, source) != _device(tree, step.path))

    return [step if stays(step) else replace(step, moved_from=None) for step in steps]


def _device(tree: Tree, path: bytes) -> int:
    """Return on which file system a file stands, or would."""
    try:
        return os.lstat(path or b".", dir_fd=tree.fd).st_dev
    except OSError:
        return _device(tree, path.rpartition(b"/")[0]) if path else 0


def _takes_mode_back(step: FileStep, found: os.stat_result) -> bool:
    """Return whether a decision takes away the very mode for which our own file may not be written.

    That mode came with what is taken back, so it is no sign that the file is to stay.
    """
    mode = stat.S_IMODE(found.st_mode)
    is_own = found.st_uid == os.geteuid() and not mode & stat.S_IWUSR
    is_recorded = step.is_decided and step.before is not None and step.before.mode == mode
    # Of a file with several names the bytes would have to be written in place.
    is_given_up = step.after is None or (step.after.mode != mode and found.st_nlink == 1)
    return is_own and is_recorded and is_given_up


def _within(folder: bytes, paths: Iterable[bytes]) -> list[str]:
    """Return those of the paths that are not the folder itself, as they are spelt to a person."""
    return sorted(os.fsdecode(path) for path in paths if path != folder)


def _check_kind(found: os.stat_result, path: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise PathIsSymlink(path)
    if stat.S_ISDIR(found.st_mode):
        raise PathIsDirectory(path)
    if not stat.S_ISREG(found.st_mode):
        raise PathNotRegular(path)
