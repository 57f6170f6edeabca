"""Find the files of a folder that are not in their known state.

Apart from what records them: a status compares too, and waits for each module that it imports.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from objstore.model.basic_types import FileState, recorded_mode
from objstore.model.relpath import beginning
from objstore.worktree.stat_cache import UNKNOWN
from objstore.worktree.walk import time_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from objstore.model.results import Difference
    from objstore.storage.transaction.journal import Journal
    from objstore.worktree.baseline import KnownStates
    from objstore.worktree.scan import WorktreeScan
    from objstore.worktree.stat_cache import CachedFolder

__all__ = ["difference_at", "folder_differences", "tick_of"]


def folder_differences(
    journal: Journal, scan: WorktreeScan | None, row: CachedFolder, known: KnownStates
) -> Iterator[Difference]:
    """Yield the files of one folder, and of folders that were deleted from it, that are not in their known state."""
    if row.is_incomplete:
        return
    now: dict[bytes, FileState] = {}
    files = row.files() if row.touched is None else row.files_of(row.touched.names | row.touched.gone)
    changed: dict[bytes, int] = {}
    unknown = set()  # names whose state is not known
    # Files that were moved with their folder keep their own times.
    appeared = 0 if scan is None else scan.stat_cache.appeared_at(row.path)
    deleted = max(row.key.ctime, appeared)  # not its mtime, which programs that copy folders restore
    for name, (facts, blob) in files.items():
        changed[name] = max(facts.ctime, appeared)
        if blob == UNKNOWN:
            unknown.add(name)
        elif stat.S_ISREG(facts.mode) or stat.S_ISLNK(facts.mode):
            now[name] = FileState(blob=blob, mode=recorded_mode(facts.mode))
    prefix = beginning(row.path)
    if row.touched is None:
        names, folders = known.names(row.path)
        names |= now.keys()
    else:
        names, folders = set(row.touched.names), set(row.touched.gone)
    unknown |= {name for name in (names | folders) & set(row.left_out) if not _is_special_file(journal, prefix + name)}
    tick = tick_of(journal, row.key.device)
    for name in sorted(names - unknown):
        yield from difference_at(prefix + name, now.get(name), known, changed.get(name, deleted), tick)
    for name in sorted(folders - unknown - set(row.folders)):
        for path in sorted(known.below(prefix + name)):
            yield from difference_at(path, None, known, deleted, tick)


def difference_at(
    path: bytes, now: FileState | None, known: KnownStates, changed: int, tick: int
) -> Iterator[Difference]:
    """Yield the file at a path if `now` is not its known state.

    `changed`: when it changed at the latest; `tick`: the possible error of that time (ns).
    """
    document, state = known.state(path)
    if state == now:
        return
    is_unseen = state is None and document is None and known.is_excluded_from_baseline(path)
    if is_unseen and now is None:
        return
    folders = known.new_folders(path) if state is None and not is_unseen else 0
    if document is not None and state is None and now is not None:
        from objstore.history.edit_queries import may_continue  # as below

        document = document if may_continue(known.journal, document, now) else None
    from objstore.model.results import Difference  # an agent waits for what each hook imports

    yield Difference(
        path=path,
        document=document,
        known=state,
        now=now,
        changed=changed,
        tick=tick,
        folders=folders,
        is_unseen=is_unseen,
    )


def tick_of(journal: Journal, device: int) -> int:
    """Return how far the time of a file on a device may differ from those of the store's own device (ns)."""
    return time_error(device, os.fstat(journal.tree.fd).st_dev)


def _is_special_file(journal: Journal, path: bytes) -> bool:
    """Return whether a path is neither a file, a symlink nor a folder: then no ignored file can exist there."""
    with suppress(OSError):
        mode = os.lstat(os.path.join(os.fsencode(journal.tree.root), path)).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))
    return False
