"""Change files to match what a writer recorded and did not apply before it died."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from objstore.errors import (
    CallAborted,
    DiskFailed,
    DiskFull,
    PathError,
    PermissionRefused,
    StoreLinked,
    StoreNotRegular,
)
from objstore.fastclass import replace
from objstore.fs.reserved_names import IGNORE_NAME
from objstore.recovery.applied_marker import encode_applied_marker
from objstore.recovery.durable_horizon import read_durable_horizon, write_durable_horizon
from objstore.recovery.recovery_note import read_recovery_note, remove_recovery_note, write_recovery_note
from objstore.recovery.unfinished_steps import MachineStop, pending_steps, unapplied_groups, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from objstore.file_changes.apply import Blobs, FileStep, Transition
    from objstore.fs.confined_path import Tree
    from objstore.fs.disk import Disk
    from objstore.log.segment_files import Place
    from objstore.recovery.applied_marker import AppliedMarker
    from objstore.store.object_store import Store

__all__ = ["RollForward"]


class RollForward:
    """The recovery of one process, and its earlier attempts, in a workspace with its store in `folder`."""

    def __init__(
        self,
        folder: str,
        tree: Tree,
        disk: Disk,
        mark: AppliedMarker,
        *,
        scratch: Callable[[], int],
        transition: Callable[[Iterable[FileStep], Blobs], Transition],
    ) -> None:
        """Set up without reading anything. `scratch`: opens the folder for staged files."""
        self._folder: Final = folder
        self._tree: Final = tree
        self._disk: Final = disk
        self._mark: Final = mark
        self._scratch: Final = scratch
        self._transition: Final = transition
        self._failed: set[bytes] = set()  # files for which this process's last attempt failed

    def carry_out(self, store: Store, marked: Place | None, boot: bytes) -> None:
        """Apply the steps pending after the marker, which was read as `marked` and `boot`.

        Raises DiskFull, DiskFailed.
        """
        since = marked if self._mark.is_of_this_boot(boot) else None
        groups = None if since is None else unapplied_groups(store, since)
        stop = self._machine_stop(store)
        if groups is None:
            stop = self._with_recovery_note(store, stop, b"" if marked is None else encode_applied_marker(marked, boot))
        are_all_applied = not stop.noted
        for steps in pending_steps(self._tree, store, groups, stop):
            are_all_applied = are_all_applied and not any(step.before != step.after for step in steps)
            self._finish(store, steps)
        self._mark.note_inspected()
        if are_all_applied and self._mark.is_of_earlier_boot(boot) and marked == store.end:
            # Nothing was recorded since, and all files were read from the disk: none can be lost any more.
            with suppress(DiskFailed, PermissionRefused, StoreLinked, StoreNotRegular, OSError):
                write_durable_horizon(self._folder, store, self._disk)

    def remove_recovery_note(self) -> None:
        """Remove the note of pending steps: all are applied, and the marker says so."""
        remove_recovery_note(self._folder, self._disk)

    def _finish(self, store: Store, steps: list[FileStep]) -> None:
        """Apply those steps that can be applied. Raises DiskFull, and DiskFailed the first time.

        A file that can't be changed stays as it is, and is reported as an external edit. If the disk fails for it, that
        happens only at the second attempt: the first failure may have been temporary, and no file may block writers for
        ever.
        """
        while steps:
            paths = {step.path for step in steps}
            with self._transition(steps, store) as transition:
                try:
                    refused = transition.refused()
                    if not refused:
                        transition.prepare()
                        transition.run()
                        return
                except PathError as error:
                    refused = {os.fsencode(error.path)}
                except CallAborted as error:
                    cause = error.__cause__
                    is_first = self._failed.isdisjoint(paths)
                    refused = {os.fsencode(cause.path if isinstance(cause, PathError) else error.path)}
                    if isinstance(cause, DiskFull) or (isinstance(cause, DiskFailed) and is_first):
                        self._failed |= refused
                        raise cause from error  # the next attempt may succeed
            if refused.isdisjoint(paths):
                return  # the error doesn't name one of the group's files
            steps = without(steps, refused)

    def _with_recovery_note(self, store: Store, stop: MachineStop, mark: bytes) -> MachineStop:
        """Note what is pending, before the first step changes the times that show it; return `stop` with these steps.

        Raises DiskFull, so that the steps stay pending until there is space.
        """
        noted = read_recovery_note(self._folder, mark)
        stop = replace(stop, noted=noted)
        found = [step for steps in pending_steps(self._tree, store, None, stop) for step in steps]
        due = {**noted, **{step.path: (step.before, step.after) for step in found if step.before != step.after}}
        if due != noted:
            try:
                write_recovery_note(self._folder, mark, due, self._disk)
            except DiskFull:
                raise
            except (DiskFailed, PermissionRefused, StoreLinked, StoreNotRegular, OSError):
                pass  # a note that can't be written must not block writers for ever
        return replace(stop, noted=due)

    def _machine_stop(self, store: Store) -> MachineStop:
        """Return what determines, after a reboot, which files may have been lost."""
        # This file never changes once it is created, and each copy of the store has its own.
        try:
            arrived_at = os.lstat(os.path.join(self._folder, IGNORE_NAME)).st_ctime_ns // 1000
        except OSError:
            arrived_at = 0
        return MachineStop(
            clock=lambda: self._disk.clock(self._scratch(), "tmp"),
            files_matched_at=self._mark.written_at(),
            arrived_at=arrived_at,
            durable=read_durable_horizon(self._folder, store),
        )
