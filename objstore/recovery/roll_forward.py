"""Finishing: files are made to follow what a writer that died had recorded and not carried out."""

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
    """What one process finishes, and has tried to, in a workspace whose store lies in `folder`."""

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
        """Look at nothing yet. `scratch`: opens the folder for what is being written."""
        self._folder: Final = folder
        self._tree: Final = tree
        self._disk: Final = disk
        self._mark: Final = mark
        self._scratch: Final = scratch
        self._transition: Final = transition
        self._failed: set[bytes] = set()  # files that could not be finished when this process tried

    def carry_out(self, store: Store, marked: Place | None, boot: bytes) -> None:
        """Carry out what is due behind the mark, which was read as `marked` and `boot`. Raises DiskFull, DiskFailed."""
        since = marked if self._mark.is_of_this_boot(boot) else None
        groups = None if since is None else unapplied_groups(store, since)
        stop = self._stop(store)
        if groups is None:
            stop = self._with_recovery_note(store, stop, b"" if marked is None else encode_applied_marker(marked, boot))
        is_all_there = not stop.noted
        for steps in pending_steps(self._tree, store, groups, stop):
            is_all_there = is_all_there and not any(step.before != step.after for step in steps)
            self._finish(store, steps)
        self._mark.note_inspected()
        if is_all_there and self._mark.is_of_earlier_boot(boot) and marked == store.end:
            # Nothing was recorded since: all of it was read from the disk, and none of it can be lost any more.
            with suppress(DiskFailed, PermissionRefused, StoreLinked, StoreNotRegular, OSError):
                write_durable_horizon(self._folder, store, self._disk)

    def remove_recovery_note(self) -> None:
        """Let go what was noted as due: all of it is carried out, and the mark says so."""
        remove_recovery_note(self._folder, self._disk)

    def _finish(self, store: Store, steps: list[FileStep]) -> None:
        """Carry out of the steps what can be. Raises DiskFull, and DiskFailed the first time.

        A path that can't be finished stays as it is, and shows as a change from outside. Where the disk fails, only the
        second time: once may have been the only time, and nobody should be kept from writing for ever.
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
                        raise cause from error  # it can be finished, only not yet
            if refused.isdisjoint(paths):
                return  # nobody can tell which file it is
            steps = without(steps, refused)

    def _with_recovery_note(self, store: Store, stop: MachineStop, mark: bytes) -> MachineStop:
        """Note what is due, before the first step changes what shows it; return what is known with that.

        Raises DiskFull: so what is due stays so until there is room.
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
                pass  # nobody is kept from writing for ever because of it
        return replace(stop, noted=due)

    def _stop(self, store: Store) -> MachineStop:
        """Return what tells, after another start of the machine, what can be lost."""
        # Nothing changes this file once it is made, and each copy of the store has one of its own.
        try:
            came = os.lstat(os.path.join(self._folder, IGNORE_NAME)).st_ctime_ns // 1000
        except OSError:
            came = 0
        return MachineStop(
            clock=lambda: self._disk.clock(self._scratch(), "tmp"),
            followed=self._mark.moment(),
            came=came,
            settled=read_durable_horizon(self._folder, store),
        )
