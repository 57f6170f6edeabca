"""List the recorded snapshots and the files that one of them holds, and delete snapshots.

A snapshot is one small record that names a tree. Once it is deleted, garbage collection may remove what only it held.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence

from objstore.history.snapshot_check import naming_snapshot
from objstore.model.ids import BlobId, RecordId
from objstore.model.records import Expiry, Snapshot
from objstore.model.relpath import beginning
from objstore.model.tree import ExcludedEntry, TreeEntry, names_of, tree_files
from objstore.storage.index.rows import HolderRow
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.space_reserve import with_reserve
from objstore.values.clock import now
from objstore.values.fastclass import value
from objstore.values.request_errors import NoSuchName

__all__ = [
    "PathState",
    "SnapshotView",
    "contains",
    "delete",
    "find",
    "listed",
    "listing",
    "newest",
    "prefix",
    "state_of",
    "view_of",
]


@value
class SnapshotView:
    """A recorded snapshot."""

    id: RecordId
    number: int
    time: int  # microseconds since 1970-01-01 UTC
    path: str  # the folder, relative to the workspace; "": all of it
    root: BlobId
    who: str  # "": it is a baseline, which a scan took by itself
    title: str


@value
class PathState:
    """The state of one path, in a snapshot or on disk."""

    kind: str  # file, symlink; left-out: it existed, and the snapshot does not hold it
    mode: int  # permission bits; 0: it has none
    blob: BlobId | None  # a file's bytes, or a symlink's target; None: left-out, or not read


def listed(journal: Journal) -> list[SnapshotView]:
    """Return every snapshot that has not been deleted, oldest first."""
    return list(_views(journal, journal.store.index.holders.snapshots()))


def find(journal: Journal, number: int) -> SnapshotView:
    """Return one snapshot. Raises NoSuchName."""
    for view in _views(journal, (row for row in journal.store.index.holders.snapshots() if row.number == number)):
        return view
    raise NoSuchName(str(number), "snapshot")


def listing(journal: Journal, number: int) -> Iterator[tuple[str, PathState]]:
    """Yield every file, symlink and left-out path of a snapshot with its state, relative to the workspace.

    Raises NoSuchName, SnapshotUnreadable.
    """
    view = find(journal, number)
    with naming_snapshot(journal.store, (number, view.root)):
        for path, entry in tree_files(view.root, journal.store.blob, prefix(view.path)):
            yield os.fsdecode(path), state_of(entry)


def file_count(journal: Journal, number: int) -> int:
    """Return how many files and symlinks a snapshot has, without what it leaves out.

    Raises NoSuchName, SnapshotUnreadable.
    """
    view, count = find(journal, number), 0
    with naming_snapshot(journal.store, (number, view.root)):
        waiting = [view.root]
        while waiting:
            for name, is_folder in names_of(journal.store.blob(waiting.pop())):
                if is_folder:
                    waiting.append(name)
                else:
                    count += 1
    return count


def newest(journal: Journal, scope: str) -> SnapshotView | None:
    """Return the newest snapshot of a folder that a person or tool took (None: there is none)."""
    rows = reversed(journal.store.index.holders.snapshots())
    return next((view for view in _views(journal, rows) if view.path == scope and view.who), None)


def delete(
    journal: Journal, numbers: Sequence[int], *, who: str, renew_baseline: Callable[[Journal], None]
) -> list[SnapshotView]:
    """Delete snapshots by number, and return them.

    Before the baseline is deleted, `renew_baseline` takes a new one, and records what changed against the old one as
    far as it can be read. Raises NoSuchName, and what `renew_baseline` raises.
    """
    with journal.reading() as store:
        baseline = store.index.holders.baseline()
        is_baseline_among = baseline is not None and baseline.number in {find(journal, n).number for n in numbers}
    if is_baseline_among:
        renew_baseline(journal)

    def expire() -> list[SnapshotView]:
        with journal.writing(may_use_reserve=True) as batch:
            gone = [find(journal, number) for number in sorted(set(numbers))]
            batch.record(
                Expiry(
                    time=now(),
                    snapshots=tuple(view.number for view in gone),
                    reason="snapshot deleted",
                    who=who,
                    via=journal.decider.via,
                    agent=journal.decider.agent,
                )
            )
            journal.commit(batch, ())
        return gone

    return with_reserve(journal, expire)


def view_of(snapshot: Snapshot, name: RecordId) -> SnapshotView:
    """Return the view of a snapshot's record. `name`: the id of the record."""
    return SnapshotView(
        id=name,
        number=snapshot.number,
        time=snapshot.time,
        path="" if snapshot.path is None else os.fsdecode(snapshot.path),
        root=snapshot.root,
        who=snapshot.who,
        title=snapshot.title,
    )


def state_of(entry: TreeEntry | ExcludedEntry) -> PathState:
    """Return the path state that a tree's entry records."""
    if isinstance(entry, ExcludedEntry):
        return PathState(kind="left-out", mode=0, blob=None)
    if entry.is_file:
        return PathState(kind="file", mode=stat.S_IMODE(entry.mode), blob=entry.blob)
    return PathState(kind="symlink", mode=0, blob=entry.blob)


def contains(folder: str, path: str) -> bool:
    """Return whether a path is at or below a folder ("": the workspace)."""
    return folder in {"", path} or path.startswith(folder + "/")


def prefix(scope: str) -> bytes:
    """Return the prefix of the recorded paths of everything below a folder."""
    return beginning(os.fsencode(scope))


def _views(journal: Journal, rows: Iterable[HolderRow]) -> Iterator[SnapshotView]:
    """Yield the snapshots in these rows that have not expired."""
    for row in rows:
        if not row.expired:
            record, _ = journal.store.record(row.place)
            if isinstance(record, Snapshot):
                yield view_of(record, row.id)
