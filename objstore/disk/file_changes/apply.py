"""Change the user's files from recorded states to recorded states, all of them or none.

A transition works path by path, with bytes from the store. So after a crash of the process or of the machine, at any
point, each path is either in its state before or in its state after, and the disk alone shows what remains to be done.

Write order. The new bytes of every file *must* be staged and synced before the log is written, so that a full disk is
noticed while nothing has changed. The log *must* be durable before the first file changes, because a crash could
otherwise leave bytes that no record has. The transition reads the files back and syncs their folders last, and only
then reports success.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import takewhile
from typing import Final, Protocol, Self

from objstore.disk.file_changes.hardlinks import FileId, HardLinks, file_id
from objstore.disk.file_changes.open_dirs import ResolvedPaths
from objstore.disk.fs.confined_path import FileOnDisk, ResolvedPath, Tree, look_at, open_folder
from objstore.disk.fs.disk import Disk, MountId, Pieces, is_same_file, mount_of
from objstore.disk.fs.file_state import contents_below, disk_state, kind_noun, state_at
from objstore.disk.fs.reserved_names import folded_name, name_on_disk
from objstore.disk.fs.store_owner import may, owner_of_new, require
from objstore.model.basic_types import (
    FileState,
    Progress,
    have_same_bytes,
    ignore_progress,
    recorded_mode,
    settable_mode,
    settable_state,
)
from objstore.model.ids import BlobId
from objstore.model.relpath import folders_of
from objstore.values.errors import (
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
from objstore.values.fastclass import replace, value

__all__ = ["Blobs", "FileStep", "Transition", "respelled_paths"]


_PASSES: Final = 3
"""How often each path is processed: it is prepared, changed, and read back."""


@value
class FileStep:
    """The change of one path."""

    path: bytes
    before: FileState | None  # None: no file
    after: FileState | None  # None: no file
    moved_from: bytes | None = None  # path of the file that is moved here unchanged; None: no file is
    is_decided: bool = False  # a decision's step starts from a recorded state, a call's from whatever is on disk


class Blobs(Protocol):
    """The source from which a transition reads blobs."""

    def pieces(self, name: BlobId, /) -> Pieces:
        """Return the bytes of a blob."""

    def cached_bytes(self, name: BlobId, /) -> bytes | None:
        """Return the bytes of a blob if they are in memory."""


class Transition:
    """One transition, from its plan to its end. Use it as a context manager: leaving it removes staged files."""

    def __init__(  # noqa: PLR0913 - each is a fact that the journal has and a transition can't derive
        self,
        tree: Tree,
        disk: Disk,
        steps: Iterable[FileStep],
        blobs: Blobs,
        *,
        scratch: int,
        seen: Mapping[bytes, os.stat_result] | None = None,
        was_created: Callable[[bytes], bool],
        was_file: Callable[[bytes], bool],
        was_emptied: Callable[[bytes], bool],
        possibly_empty: Iterable[bytes] | None = None,
        progress: Progress = ignore_progress,
    ) -> None:
        """Plan the transition. `scratch`: an open folder for staging.

        - `seen`: the status of files when they were read.
        - `was_created`: whether a recorded edit created a folder. Such a folder, once empty, gives way to a file.
        - `was_file`: whether a recorded file ever had a path. A folder that has the path was created since, and is
          removed with its files; so is one without files, where a decision restores the file.
        - `was_emptied`: whether a recorded decision leaves a folder empty. Such a folder is removed with the last file
          in it, and so are the empty ones among `possibly_empty` (None: folders stay).
        - `progress`: called with the number of paths that are prepared, changed, and read back.
        """
        self._tree = tree
        self._disk = disk
        self._blobs: Final = blobs
        self._scratch: Final = scratch
        self._scratch_mount: Final = mount_of(scratch)
        self._seen = dict(seen or {})
        self._was_created = was_created
        self._was_file = was_file
        self._was_emptied = was_emptied
        self._possibly_empty = None if possibly_empty is None else tuple(possibly_empty)
        steps = tuple(map(_settable, steps))
        wanted = _movable(tree, [step for step in steps if step.before != step.after])
        moved = {step.path: step.moved_from for step in steps}
        wanted = list(map(_settable, wanted))  # a moved file may have become a new one
        # Where each new file's owner and attributes come from: its path, or the old one if a move becomes a new file.
        self._like: Final = {step.path: moved[step.path] or step.path for step in wanted if step.moved_from is None}
        self._respelled: Final = respelled_paths(tree, wanted)  # by new path: the old spelling of the same path
        # Remove files first, so that a folder may take a file's name and the other way round.
        self._steps = sorted(wanted, key=lambda step: (step.after is not None, step.path))
        self._moves: Final = {step.moved_from: step for step in self._steps if step.moved_from is not None}
        self._staged: dict[bytes, tuple[int, str]] = {}
        self._staging_folders: dict[tuple[MountId, int], int] = {}  # open folders for staging other than `scratch`
        self._notes: list[str] = []  # names of the notes in `scratch` about them
        self._vacated: Final = {step.path for step in steps if step.after is None}  # now or by earlier steps
        self._created_dirs: dict[
            bytes, os.stat_result | None
        ] = {}  # folders that this transition created, and their status
        self._resolved_paths: Final = ResolvedPaths(tree, self._vacated)
        self._progress: Final = progress
        self._passes = 0
        self._links: Final = HardLinks()
        self._began: Final = time.monotonic()
        self._backups: dict[bytes, tuple[int, str]] = {}  # by path: folder and backup name of a file with several names

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what is still staged, and close folders."""
        is_clear = True
        try:
            for folder, name in (*self._staged.values(), *self._backups.values()):
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
            self._backups.clear()
            for folder in self._staging_folders.values():
                os.close(folder)
            self._resolved_paths.close()

    def __bool__(self) -> bool:
        """Return whether any file changes."""
        return bool(self._steps)

    def check(self) -> None:
        """Check every path as `prepare` does, without staging anything or needing disk space. Raises as `prepare`."""
        for step in self._steps:
            self._check(step, self._resolved_paths.at(step.path))
        self._check_names()

    def refused(self) -> set[bytes]:
        """Return the paths for which `check` would raise a PathError. Nothing is staged. Raises DiskFailed."""
        found = set()
        for step in self._steps:
            try:
                self._check(step, self._resolved_paths.at(step.path))
            except PathError:
                found.add(step.path)
        return found

    def prepare(self) -> None:
        """Check every path and stage every new content, durably; the user's files stay as they are.

        Raises PermissionRefused, FileExists, PathIsSymlink, FileChanged, NamesShared, DiskFull, and what Tree.locate
        and Tree.require_users_file raise.
        """
        for step in self._steps:
            resolved = self._resolved_paths.at(step.path)
            self._check(step, resolved)
            if step.after is not None and not self._keeps_bytes(step):
                self._stage(step, step.after, resolved)
            self._report_progress()
        self._check_names()
        # All of them are being written out already, so the first wait is for most of them.
        for step in self._steps:
            if step.path in self._staged and step.after is not None and not step.after.is_link:
                self._disk.sync_staged(*self._staged[step.path], os.fsdecode(step.path))

    def run(self) -> None:
        """Change the files, read each back, compare, and make their names durable.

        After a failure, restore them all and raise CallAborted with the cause. Raises Unacknowledged if not even that
        was possible; then the next writer completes the transition.
        """
        done: list[FileStep] = []
        try:
            for step in self._steps:
                done.append(step)
                self._carry_out(step)
                self._report_progress()
            self._read_back(self._steps)
            self._prune()
            self._sync_folders(self._steps)
        except Exception as error:  # whatever it is: the record is valid only if all of the transition was done
            self._roll_back(done, error)
            paths = [step.path for step in done] or list(self._possibly_empty or ())
            raise CallAborted(os.fsdecode(paths[-1]), str(error)) from error

    # ---- before

    def _keeps_bytes(self, step: FileStep) -> bool:
        return have_same_bytes(step.before, step.after) or step.moved_from is not None

    def _check(self, step: FileStep, resolved: ResolvedPath) -> None:
        found = look_at(resolved)
        if found is None:
            if step.before is not None:
                raise FileChanged(resolved.path)
        elif step.path in self._respelled and self._is_at(self._respelled[step.path], found):
            pass  # the file that has the path gives it up, or is moved to it
        elif step.before is None:
            if stat.S_ISLNK(found.st_mode):
                raise PathIsSymlink(resolved.path)
            if not stat.S_ISDIR(found.st_mode):
                raise FileExists(resolved.path, what=kind_noun(found.st_mode))
            self._require_folder_may_go(step, resolved)
        else:
            _check_kind(found, step.before, resolved.path)
            self._tree.require_users_file(found, resolved.path, since=self._began)
            self._check_unchanged(step, resolved, found)
            require(resolved.user, found, os.W_OK, resolved.path)
            # A link has no permissions, and os.access would follow it.
            is_writable = step.before.is_link or os.access(resolved.name, os.W_OK, dir_fd=resolved.folder)
            if not is_writable and not _undoes_read_only_mode(step, found):
                raise PermissionRefused(resolved.path)
        if not _may_change_names(resolved, found) or not os.access(".", os.W_OK | os.X_OK, dir_fd=resolved.folder):
            raise PermissionRefused(resolved.path)

    def _require_folder_may_go(self, step: FileStep, resolved: ResolvedPath) -> None:
        """Raise FileExists unless a folder may give way to a file: the transition empties it, and no one else made it.

        Where a decision restores a file, a folder that has only folders in it may go: nothing of value is lost.
        """
        files, folders = self._contents_at(resolved)
        if step.is_decided and not files:
            return
        # Decisions create folders that no edit created, for the files that they restore.
        come = {folder for file in self._vacated for folder in folders_of(file)} if self._was_file(step.path) else set()
        kept = [path for path in files if path not in self._vacated]
        kept = kept or [folder for folder in folders if folder not in come and not self._was_created(folder)]
        if kept:
            raise FileExists(resolved.path, _within(step.path, kept))

    def _spelling(self, path: bytes) -> bytes:
        """Return what the spellings of a path have in common where the file system takes them for the same."""
        return (
            folded_name(os.fsdecode(path)).encode(errors="surrogateescape") if self._tree.is_case_insensitive else path
        )

    def _contents_at(self, resolved: ResolvedPath) -> tuple[list[bytes], list[bytes]]:
        """Return what `contents_below` does, in the folder's own spelling, which is that of recorded paths in it."""
        with self._tree.locate(resolved.path, changing=True) as folder:
            return contents_below(folder)

    def _check_unchanged(self, step: FileStep, resolved: ResolvedPath, found: os.stat_result) -> None:
        seen_stat = self._seen.get(step.path)
        if seen_stat is None:
            current = state_at(resolved)
            if current is None or not have_same_bytes(current[0], step.before):
                raise FileChanged(resolved.path)
            self._seen[step.path] = current[1].stat
        elif not is_same_file(seen_stat, found):
            raise FileChanged(resolved.path)

    def _check_names(self) -> None:
        """Check that all names of one file get the same state, because its bytes are written in place."""
        wanted: dict[FileId, FileStep] = {}
        for step in self._steps:
            seen_stat = self._seen.get(step.moved_from or step.path)
            if step.after is None or seen_stat is None or not _has_shared_bytes(seen_stat):
                continue
            other = wanted.setdefault(file_id(seen_stat), step)
            if other.after != step.after:
                raise NamesShared(os.fsdecode(step.path), os.fsdecode(other.path))

    def _staging_folder(self, resolved: ResolvedPath) -> int:
        """Return an open folder for staged files from which one can be renamed to `resolved`."""
        # A rename can't cross mounts, so stage on the one that the file will be on.
        mount = mount_of(resolved.folder)
        if mount == self._scratch_mount:
            return self._scratch
        known = mount, os.fstat(resolved.folder).st_ino
        folder = self._staging_folders.get(known)
        if folder is None:
            from objstore.disk.file_changes.cross_device_staging import note_staging_folder

            above = resolved.path.split("/")[: -1 - len(resolved.missing)]
            self._notes.append(note_staging_folder(self._disk, self._scratch, "/".join(above)))
            folder = self._staging_folders[known] = os.dup(resolved.folder)
        return folder

    def _stage(self, step: FileStep, after: FileState, resolved: ResolvedPath) -> None:
        folder = self._staging_folder(resolved)
        model = self._like[step.path]
        like = self._seen.get(model)
        owner = owner_of_new(resolved.folder, resolved.user) if like is None else like
        name = self._staged_state(folder, after, owner, resolved.path)
        self._staged[step.path] = (folder, name)
        if after.is_link:
            return
        if like is None:
            self._disk.inherit_access_list(resolved.folder, folder, name, after.mode)
        else:
            seen = self._resolved_paths.at(model)
            self._disk.carry_attributes(seen.folder, seen.name, folder, name, after.mode)

    def _staged_state(self, folder: int, state: FileState, like: os.stat_result | None, path: str) -> str:
        """Stage a state in an open folder and return its name there."""
        pieces = self._blobs.pieces(state.blob)
        if state.is_link:
            return self._disk.stage_link(folder, pieces if isinstance(pieces, bytes) else b"".join(pieces), like, path)
        return self._disk.stage(folder, pieces, like, state.mode, path)

    # ---- during

    def _carry_out(self, step: FileStep) -> None:
        resolved = self._resolved_paths.at(step.path)
        if step.after is None:
            if step.path not in self._moves:
                self._remove(step, resolved)
            return
        resolved = self._with_folders(step.path, resolved)
        if step.path in self._respelled and self._respell_folders(step.path):
            self._resolved_paths.close()  # what was opened by the other spelling may lead nowhere now
            resolved = self._resolved_paths.at(step.path)
        if step.before is None:
            self._remove_blocking_folder(step, resolved)
        if step.moved_from is not None:
            self._move(step.moved_from, resolved)
        elif step.before is None:
            folder, name = self._staged[step.path]
            self._disk.rename_new(folder, name, resolved.folder, resolved.name)
            del self._staged[step.path]
        elif not self._keeps_bytes(step):
            self._replace(step, resolved)
        else:
            self._require_as_seen(step.path, resolved)
        if step.after.is_link or (step.before is not None and step.before.is_link):
            return  # a link has no permission bits, and a file in its place was staged with its own
        mode = self._mode_at(resolved) if step.before is None else step.before.mode
        is_to_change = mode != step.after.mode and (step.before is not None or step.moved_from is not None)
        if is_to_change and not self._set_mode_if_unwritten(resolved, step.after.mode):
            raise FileChanged(resolved.path)

    def _move(self, path: bytes, resolved: ResolvedPath) -> None:
        source = self._resolved_paths.at(path)
        found = self._require_as_seen(path, source)
        self._rename(source, resolved)
        if not self._links.note_metadata_change(found, look_at(resolved)):
            raise FileChanged(source.path)

    def _rename(self, source: ResolvedPath, target: ResolvedPath) -> None:
        """Rename a file to a free path, or to another spelling of its own."""
        if self._respelled.get(os.fsencode(target.path)) == os.fsencode(source.path) or (
            self._respelled.get(os.fsencode(source.path)) == os.fsencode(target.path)
        ):
            if source.name != target.name:
                self._disk.respell(target.folder, source.name, target.name)
        else:
            self._disk.rename_new(source.folder, source.name, target.folder, target.name)

    def _respell_folders(self, path: bytes) -> bool:
        """Give the existing folders above a path the spelling that they have in it; return whether any changed."""
        from unicodedata import normalize  # few changes come here

        changed = False
        for folder in folders_of(path):
            with self._tree.locate(os.fsdecode(folder), changing=True, as_on_disk=False) as resolved:
                name = name_on_disk(resolved.folder, resolved.name)
                if not resolved.missing and normalize("NFC", name) != normalize("NFC", resolved.name):
                    self._disk.respell(resolved.folder, name, resolved.name)
                    changed = True
        return changed

    def _is_at(self, path: bytes, found: os.stat_result) -> bool:
        """Return whether a file, found at one path, is the one at another path."""
        other = look_at(self._resolved_paths.at(path))
        return other is not None and os.path.samestat(other, found)

    def _set_mode_if_unwritten(self, resolved: ResolvedPath, mode: int, was: os.stat_result | None = None) -> bool:
        """Set a file's mode; return whether no one has written to the file meanwhile. `was`: as of `_set_mode`."""
        found = look_at(resolved)
        self._set_mode(resolved.folder, resolved.name, mode, was)
        return found is not None and self._links.note_metadata_change(self._links.expected(found), look_at(resolved))

    def _set_mode(self, folder: int, name: str, mode: int, was: os.stat_result | None) -> None:
        """Set a file's mode; in a roll-back, `was` is the file's status before, so that even setuid can be restored."""
        if was is not None and settable_mode(mode) != mode == stat.S_IMODE(was.st_mode):
            self._disk.return_mode(folder, name, was)
        else:
            self._disk.chmod(folder, name, mode)

    def _remove_blocking_folder(self, step: FileStep, resolved: ResolvedPath) -> None:
        """Remove the folder that has a new file's path, with the folders in it, if there are no files in it."""
        found = look_at(resolved)
        if found is None or not stat.S_ISDIR(found.st_mode):
            return
        files, folders = self._contents_at(resolved)
        if files:
            raise FileExists(resolved.path, _within(step.path, files))
        self._resolved_paths.forget_below(folders[-1])
        for folder in folders:
            self._remove_folder(folder)

    def _remove_folder(self, path: bytes, made: os.stat_result | None = None) -> bool:
        """Remove a folder if it is empty and, if `made` is known, still that one; return whether it is gone."""
        name = os.fsdecode(path)
        with self._tree.locate(name, changing=True, as_on_disk=False) as resolved:
            if resolved.path != name:
                return False  # the folder, or one above it, was replaced by a link
            found = look_at(resolved)
            if found is not None and made is not None and not os.path.samestat(found, made):
                return False  # another folder has taken its path
            is_there = not resolved.missing and _may_change_names(resolved, found)
            return is_there and self._disk.remove_directory(resolved.folder, resolved.name)

    def _remove(self, step: FileStep, resolved: ResolvedPath) -> None:
        found = self._require_as_seen(step.path, resolved)
        if found.st_nlink == 1:
            self._disk.unlink(resolved.folder, resolved.name)
            return
        # A new file would not be a link to the same inode, so keep this name until no roll-back is possible.
        folder, name = self._staging_folder(resolved), f".cas-{os.urandom(8).hex()}"
        self._disk.replace(resolved.folder, resolved.name, folder, name)
        self._note_backup_name(step, folder, name)
        if not self._links.note_metadata_change(found, os.lstat(name, dir_fd=folder)):
            raise FileChanged(resolved.path)

    def _note_backup_name(self, step: FileStep, folder: int, name: str) -> None:
        self._backups[step.path] = folder, name
        self._links.note_backup_name(os.lstat(name, dir_fd=folder))

    def _rewrite(self, resolved: ResolvedPath, blob: BlobId) -> None:
        try:
            self._disk.rewrite(resolved.folder, resolved.name, self._blobs.pieces(blob))
        finally:
            self._links.note_written(resolved)  # after a failure, too: a part may have been written

    def _replace(self, step: FileStep, resolved: ResolvedPath) -> None:
        found = self._require_as_seen(step.path, resolved)
        folder, name = self._staged[step.path]
        if step.after is not None and not step.after.is_link and self._links.has_other_links(found):
            # A rename would separate this name from the file's other names.
            self._rewrite(resolved, step.after.blob)
            return
        if self._disk.exchange(folder, name, resolved.folder, resolved.name):
            # The replaced file still exists. If someone wrote to it since it was checked, swap it back.
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

    def _require_as_seen(self, path: bytes, resolved: ResolvedPath) -> os.stat_result:
        found = look_at(resolved)
        if found is None or not is_same_file(self._links.expected(self._seen[path]), found):
            raise FileChanged(resolved.path)
        return found

    def _mode_at(self, resolved: ResolvedPath) -> int:
        found = look_at(resolved)
        return -1 if found is None else recorded_mode(found.st_mode)

    def _with_folders(self, path: bytes, resolved: ResolvedPath) -> ResolvedPath:
        if not resolved.missing:
            return resolved
        with ExitStack() as opened:
            folder = resolved.folder
            for name, made in zip(resolved.missing, folders_of(path)[-len(resolved.missing) :], strict=True):
                with suppress(FileExistsError):
                    self._disk.make_directory(folder, name, owner_of_new(folder, resolved.user))
                    self._created_dirs[made] = None  # status not read yet
                folder = open_folder(folder, name, resolved.path)
                opened.callback(os.close, folder)
                if made in self._created_dirs:
                    self._created_dirs[made] = os.fstat(folder)
        self._resolved_paths.forget(path)
        return self._resolved_paths.at(path)

    def _read_back(self, steps: Iterable[FileStep]) -> None:
        links = {self._spelling(step.path) for step in self._steps if step.after is not None and step.after.is_link}
        for step in steps:
            if step.after is None and step.path in self._respelled.values():
                continue  # its file, or the one that has taken its place, has another spelling of this path
            if not links.isdisjoint(map(self._spelling, folders_of(step.path))):
                continue  # a link has taken its folder's path, and is not followed
            try:
                resolved = self._resolved_paths.at(step.path)
                blob = None if step.after is None else step.after.blob
                current = state_at(resolved, blob, None if blob is None else self._blobs.cached_bytes(blob))
            except (PathIsDirectory, PathInvalid):
                if step.after is None:
                    continue  # a folder has taken the file's path, or a file has taken its folder's
                raise
            if current is None and step.after is not None:
                raise FileMissing(resolved.path)
            if (
                current is not None
                and current[0] != step.after
                and not self._is_mode_unsupported(step, resolved, current[0])
            ):
                raise FileChanged(resolved.path)
            self._report_progress()

    def _is_mode_unsupported(self, step: FileStep, resolved: ResolvedPath, current: FileState) -> bool:
        """Return whether a new file is as intended except for its mode, because its file system keeps no modes.

        Raises PermissionRefused if the file is not new, so that its mode should have changed.
        """
        if step.after is None or current.blob != step.after.blob or step.after.is_link or current.is_link:
            return False
        with suppress(PermissionRefused):
            self._disk.chmod(resolved.folder, resolved.name, step.after.mode)
        if self._mode_at(resolved) == step.after.mode:
            return False  # the file system keeps modes, and someone has just changed this one
        if step.before is not None:
            raise PermissionRefused(resolved.path)
        return True

    def _sync_folders(self, steps: Iterable[FileStep]) -> None:
        """Make durable which names the files of the steps have, and the folders that were created for them."""
        paths = {path for step in steps for path in (step.path, step.moved_from) if path is not None}
        synced: set[FileId] = set()
        for path in sorted(paths.union(self._created_dirs)):
            # Where a file has taken the path of a folder, that file's own folder is synced.
            with suppress(PathError):
                folder = self._resolved_paths.at(path).folder
                try:
                    found = file_id(os.fstat(folder))
                except FileNotFoundError:
                    continue  # it was removed, and the file system (ntfs-3g) forgets removed folders that are open
                if found not in synced:
                    self._disk.sync_folder(folder, os.fsdecode(path))
                    synced.add(found)

    def _report_progress(self) -> None:
        """Report that a path was prepared, changed or read back."""
        self._passes += 1
        self._progress("paths", self._passes // _PASSES, len(self._steps))

    def _prune(self) -> None:
        """Remove empty folders that a decision emptied, or that were created at a file's path.

        A folder that can't be removed stays: by then, every file is as intended.
        """
        for folders in self._to_prune():
            with suppress(CasError, OSError):
                for folder in folders:
                    if not self._remove_folder(folder):
                        break

    def _to_prune(self) -> list[list[bytes]]:
        """Return the folders that may be removed when they are empty, path by path, the inner ones first."""
        if self._possibly_empty is None:
            return []
        taken = {step.path for step in self._steps if step.after is not None}
        above = [folders_of(step.path) for step in self._steps if step.after is None]
        above += [[*folders_of(folder), folder] for folder in self._possibly_empty]
        may_go = cache(lambda folder: self._was_emptied(folder) or self._was_file(folder))
        # Skip folders whose path a file takes.
        return [list(takewhile(may_go, reversed(folders))) for folders in above if taken.isdisjoint(folders)]

    # ---- after a failure

    def _roll_back(self, done: list[FileStep], cause: Exception) -> None:
        """Restore every path of `done`, as far as it is still what this transition made of it.

        A path that can't be restored doesn't stop the others. Raises Unacknowledged, which names those paths.
        """
        failed: list[str] = []
        restored: list[FileStep] = []
        for step in reversed(done):
            with _collecting_failures(step, failed):
                if self._restore_if_ours(step):
                    restored.append(step)
        for path in self._respelled.values():
            with suppress(CasError):
                self._respell_folders(path)
        for step in restored:
            with _collecting_failures(step, failed):
                found = disk_state(self._tree, step.path)
                if found is None or not have_same_bytes(found[0], step.before):
                    raise FileChanged(os.fsdecode(step.path))
        with suppress(CasError):  # otherwise a power cut may bring back what was rolled back; it is reported then
            self._sync_folders(done)
        if failed:
            raise Unacknowledged("; and ".join([str(cause), *failed]), is_recorded=True) from cause

    def _restore_if_ours(self, step: FileStep) -> bool:
        """Restore a file if this transition changed or removed it; return whether its bytes were restored."""
        if (step.path in self._moves or self._keeps_bytes(step)) and self._restore_name_and_mode(step):
            return False
        try:
            found = disk_state(self._tree, step.path)
        except (FileChanged, PathIsDirectory, PathNotRegular, PathInvalid, PathOutside):
            return False  # someone else changed it or its folder: leave it; the next scan reports it
        now = None if found is None else found[0]
        if now is None and step.before is None:
            self._remove_created_folders(step.path)
        if now == step.before or not self._is_ours(step, found):
            return False  # unchanged, or changed or deleted by someone else
        resolved = self._resolved_paths.at(step.path)
        if step.before is None:
            self._undo_create(step, resolved)
            return False
        has_backup = step.path in self._backups
        self._restore(step, step.before, found, self._with_folders(step.path, resolved))
        return not has_backup

    def _restore_name_and_mode(self, step: FileStep) -> bool:
        """Restore name and mode of a file whose bytes don't change; return whether it is still the same file.

        Whatever others have written to it meanwhile stays in it.
        """
        move = self._moves.get(step.path, step)
        seen = step.path if step.moved_from is None else step.moved_from
        found = self._same_file_stat(seen, step.path)
        if found is None:
            # If the file could not be moved back, don't create it a second time.
            return move is not step and self._same_file_stat(seen, move.path) is not None
        resolved = self._resolved_paths.at(step.path)
        if step.before is None:
            self._undo_create(step, resolved)
        elif move.after is not None and stat.S_IMODE(found.st_mode) == move.after.mode != step.before.mode:
            self._set_mode_if_unwritten(resolved, step.before.mode, self._seen.get(seen))
        return True

    def _same_file_stat(self, seen: bytes, path: bytes) -> os.stat_result | None:
        """Return the status of the file at `path` if that is the one seen at the path `seen` (None: it isn't)."""
        seen_stat = self._seen.get(seen)
        name = os.fsdecode(path)
        with suppress(FileMissing, PathInvalid, PathOutside), self._tree.locate(name, as_on_disk=False) as resolved:
            found = look_at(resolved) if resolved.path == name else None
            return found if seen_stat is not None and found is not None and os.path.samestat(seen_stat, found) else None
        return None

    def _is_ours(self, step: FileStep, found: tuple[FileState, FileOnDisk] | None) -> bool:
        """Return whether the state at the step's path is what this transition made of it."""
        if found is None:
            return step.after is None
        return have_same_bytes(found[0], step.after) or self._links.is_ours(found[1].stat)

    def _undo_create(self, step: FileStep, resolved: ResolvedPath) -> None:
        if step.moved_from is None:
            self._disk.unlink(resolved.folder, resolved.name)
        else:
            self._move_back(step.moved_from, resolved)
        self._remove_created_folders(step.path)

    def _move_back(self, path: bytes, resolved: ResolvedPath) -> None:
        # Move the same inode: a copy would lose its other names, and writes of a program that has it open.
        source = self._with_folders(path, self._resolved_paths.at(path))
        current, found = look_at(source), look_at(resolved)
        if current is None or found is None:
            self._disk.rename_new(resolved.folder, resolved.name, source.folder, source.name)
        elif self._respelled.get(os.fsencode(resolved.path)) == path:
            if self._respell_folders(path):
                self._resolved_paths.close()
                at = self._resolved_paths.at
                resolved, source = at(os.fsencode(resolved.path)), at(path)
            self._rename(resolved, source)
        elif os.path.samestat(current, found):
            self._disk.unlink(resolved.folder, resolved.name)  # the rename failed between link and unlink
        else:
            raise FileExists(source.path)

    def _restore(
        self, step: FileStep, before: FileState, found: tuple[FileState, FileOnDisk] | None, resolved: ResolvedPath
    ) -> None:
        if found is None or not have_same_bytes(found[0], before):
            self._restore_bytes(step, before, None if found is None else found[1].stat, resolved)
        if not before.is_link and self._mode_at(resolved) != before.mode:
            with suppress(PermissionRefused):  # the file system keeps no modes
                self._set_mode_if_unwritten(resolved, before.mode, self._seen.get(step.path))

    def _restore_bytes(
        self, step: FileStep, before: FileState, found: os.stat_result | None, resolved: ResolvedPath
    ) -> None:
        if step.path in self._backups:
            folder, name = self._backups[step.path]
            (self._disk.rename_new if found is None else self._disk.replace)(
                folder, name, resolved.folder, resolved.name
            )
            del self._backups[step.path]
        elif found is not None and not before.is_link and self._links.has_other_links(found):
            self._rewrite(resolved, before.blob)
        else:
            folder = self._staging_folder(resolved)
            was = self._seen.get(step.path, found)
            name = self._staged_state(folder, before, was, resolved.path)
            if found is not None and not before.is_link:
                self._disk.carry_attributes(resolved.folder, resolved.name, folder, name, before.mode)
            try:
                if not before.is_link:
                    self._disk.sync_staged(folder, name, resolved.path)
                self._disk.replace(folder, name, resolved.folder, resolved.name)
            except (CasError, OSError):
                with suppress(CasError, OSError):
                    self._disk.unlink(folder, name)
                raise

    def _remove_created_folders(self, path: bytes) -> None:
        """Remove the folders of a path that this transition created, as far as they are empty."""
        for folder in reversed(folders_of(path)):
            if folder in self._created_dirs:
                self._resolved_paths.forget_below(folder)
                if not self._remove_folder(folder, self._created_dirs[folder]):
                    break


@contextmanager
def _collecting_failures(step: FileStep, failed: list[str]) -> Iterator[None]:
    """Note that a path could not be restored, for whatever reason."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the other paths must still be restored
        failed.append(f"{os.fsdecode(step.path)} could not be restored ({error})")


def respelled_paths(tree: Tree, steps: Iterable[FileStep]) -> dict[bytes, bytes]:
    """Return the paths to which files come that have another spelling of them now, each with that one."""
    if not tree.is_case_insensitive:
        return {}
    steps = tuple(steps)
    gone = {folded_name(os.fsdecode(step.path)): step.path for step in steps if step.after is None}
    come = {step.path: gone.get(folded_name(os.fsdecode(step.path))) for step in steps if step.before is None}
    return {path: other for path, other in come.items() if other is not None}


def _movable(tree: Tree, steps: Sequence[FileStep]) -> list[FileStep]:
    """Return the steps; a moved file becomes a new one if its old path, or a folder of it, blocks one that is created.

    It also becomes a new one if another file comes to another spelling of its old path, and if it comes from another
    file system, as another program may have moved it.
    """
    incoming_paths = {step.path for step in steps if step.after is not None}
    folders = {folder for path in incoming_paths for folder in folders_of(path)}
    respelled = {old: new for new, old in respelled_paths(tree, steps).items()}

    def is_in_the_way(source: bytes) -> bool:
        return source in folders or not incoming_paths.isdisjoint(folders_of(source))

    def stays(step: FileStep) -> bool:
        source = step.moved_from
        if source is None:
            return True
        is_blocked = is_in_the_way(source) or respelled.get(source, step.path) != step.path
        return not (is_blocked or _mount(tree, source) != _mount(tree, step.path))

    return [step if stays(step) else replace(step, moved_from=None) for step in steps]


def _mount(tree: Tree, path: bytes) -> MountId | None:
    """Return the mount of the nearest folder above a path that exists."""
    folder = path.rpartition(b"/")[0]
    try:
        fd = os.open(folder or b".", getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=tree.fd)
    except OSError:
        return _mount(tree, folder) if folder else None
    try:
        return mount_of(fd)
    finally:
        os.close(fd)


def _undoes_read_only_mode(step: FileStep, found: os.stat_result) -> bool:
    """Return whether a decision undoes the very mode that makes our own file read-only.

    That mode came with the change that is undone, so it doesn't mean that the file is to stay.
    """
    mode = stat.S_IMODE(found.st_mode)
    is_own = found.st_uid == os.geteuid() and not mode & stat.S_IWUSR
    is_recorded = step.is_decided and step.before is not None and step.before.mode == mode
    # The bytes of a file with several names would have to be written in place.
    is_given_up = step.after is None or (step.after.mode != mode and found.st_nlink == 1)
    return is_own and is_recorded and is_given_up


def _settable(step: FileStep) -> FileStep:
    """Return the step with a mode that its file can get: setuid and setgid stay with the bytes, or go."""
    before, after = step.before, step.after
    if after is None or step.moved_from is not None:
        return step
    state = settable_state(after, before)
    return step if state == after else replace(step, after=state)


def _may_change_names(resolved: ResolvedPath, found: os.stat_result | None) -> bool:
    """Return whether the user for whom root acts may create a name in a folder, or remove it (`found`: what has it)."""
    if resolved.user is None:
        return True
    folder = os.fstat(resolved.folder)
    is_sticky = found is not None and folder.st_mode & stat.S_ISVTX
    owners = {folder.st_uid, found.st_uid} if is_sticky and found is not None else {resolved.user.st_uid}
    return resolved.user.st_uid in owners and may(resolved.user, folder, os.W_OK | os.X_OK)


def _has_shared_bytes(found: os.stat_result) -> bool:
    """Return whether a file has several names, so that its bytes are written in place; a link's text never is."""
    return found.st_nlink > 1 and stat.S_ISREG(found.st_mode)


def _within(folder: bytes, paths: Iterable[bytes]) -> list[str]:
    """Return the paths other than the folder itself, for display."""
    return sorted(os.fsdecode(path) for path in paths if path != folder)


def _check_kind(found: os.stat_result, before: FileState, path: str) -> None:
    if stat.S_ISLNK(found.st_mode) and before.is_link:
        return
    if stat.S_ISLNK(found.st_mode):
        raise PathIsSymlink(path)
    if before.is_link:
        raise FileChanged(path)
    if stat.S_ISDIR(found.st_mode):
        raise PathIsDirectory(path)
    if not stat.S_ISREG(found.st_mode):
        raise PathNotRegular(path)
