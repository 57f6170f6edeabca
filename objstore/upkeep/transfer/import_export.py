"""Export a store with its whole history as one file, and import it into another folder or machine.

An imported store is checked like any other, from its frames to the replay of every document, in a folder of its own.
Only if nothing is wrong are its files written there and everything moved to its new place, the store last.
docs/decisions/0010-import.md says why a store is never imported into another one.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from objstore.disk.file_changes.apply import FileStep
from objstore.disk.fs.confined_path import MAX_PATH, require_not_reserved
from objstore.disk.fs.disk import Disk, giving_away, is_made
from objstore.disk.fs.reserved_names import IGNORE_NAME, STORE_NAME, is_reserved, is_store
from objstore.model.basic_types import FileState, Operation, Origin, Progress, ignore_progress, settable_state
from objstore.model.records import Snapshot
from objstore.model.relpath import beginning, folders_of
from objstore.model.tree import TreeEntry, decode_tree
from objstore.storage.log.applied_marker import reset_applied_marker
from objstore.storage.log.segment_files import Place
from objstore.storage.store.create import (
    creation_folder_name,
    discard_creation_folder,
    discard_leftover,
    finish_creation,
    give_to_owner_above,
    is_creation_folder,
    move_created,
    owner_of_given,
    write_creation_proof,
)
from objstore.storage.store.object_store import Store
from objstore.storage.store.write_batch import Batch
from objstore.storage.transaction.journal import Journal
from objstore.upkeep.integrity.fsck import check_store
from objstore.upkeep.transfer.bundle import bundle_pieces, unpack_bundle
from objstore.values.errors import CasError, FileExists
from objstore.values.fastclass import value
from objstore.values.request_errors import BundleRefused, NotBundled
from objstore.worktree.baseline import KnownStates

if TYPE_CHECKING:
    from objstore.model.ids import BlobId

__all__ = [
    "Fill",
    "Imported",
    "checked_store",
    "export_bundle",
    "import_bundle",
    "import_store",
    "new_folder",
    "send_bundle",
]

Fill: TypeAlias = Callable[[str, Disk], Place | None]
"""Writes the segments of a store into an empty folder, and returns up to where they were checked before (None: not)."""

_MOST_NAMES: Final = 2_000_000
"""The most files and folders in an imported snapshot: a scan takes up to a million files."""

_MOST_OF_PATHS: Final = 1 << 28
"""The most bytes of all their paths together: a snapshot's readers have them all in memory."""


@value
class Imported:
    """The result of an import."""

    root: str
    records: int
    blobs: int
    files: int  # written
    modes_lost: tuple[str, ...] = ()  # those files whose recorded modes have setuid or setgid, which no file gets
    owner: int | None = None  # the user whose the files and the store are, if root runs this


def export_bundle(journal: Journal, path: str, progress: Progress | None = None) -> int:
    """Write a bundle of the store to a new file at `path`, durably; return its size in bytes.

    `progress` is called with the bytes that were read.

    Raises FileExists, PathReserved, NotBundled, StoreDamaged and what the disk raises, with nothing at `path`.
    """
    require_not_reserved(path)
    with journal.reading() as store:
        try:
            journal.disk.create(path, _pieces(store, progress))
        except FileExistsError as error:
            raise FileExists(path) from error
        except FileNotFoundError as error:
            # With the given name, not that of the temporary file.
            raise FileNotFoundError(error.errno, error.strerror, path) from error
    return os.stat(path).st_size


def send_bundle(journal: Journal, take: Callable[[bytes], None], progress: Progress | None = None) -> None:
    """Pass a bundle of the store to `take`, piece by piece.

    Raises NotBundled before the first piece, StoreDamaged before the last, and what `take` raises.
    """
    with journal.reading() as store:
        for piece in _pieces(store, progress):
            take(piece)


def import_bundle(
    path: str, directory: str, *, files: bool = True, progress: Progress | None = None, disk: Disk | None = None
) -> Imported:
    """Make the store in the bundle at `path` the store of `directory`, and write its files there.

    The files are the tips of its documents, and the baseline's states of files that have no document: all that the next
    scan would miss. The directory must be empty or missing. `files` False: only the store is imported; the directory
    may have files, and those that differ are reported as external edits, but it must not have a store. Raises
    FileExists, PathReserved, BundleRefused with nothing changed, and what the disk raises.
    """

    def unpack(folder: str, disk: Disk) -> None:
        unpack_bundle(path, folder, disk)

    return import_store(unpack, directory, files=files, progress=progress, disk=disk)


def import_store(
    fill: Fill,
    directory: str,
    *,
    files: bool = True,
    checked: Callable[[], None] | None = None,
    progress: Progress | None = None,
    disk: Disk | None = None,
) -> Imported:
    """Make the store whose segments `fill` writes the store of `directory`, as `import_bundle` does, and raise as that.

    `fill` also raises what it raises by itself, with nothing changed. `checked` is called once nothing is wrong, before
    anything is written that a person sees.
    """
    disk = disk or Disk()
    with new_folder(directory, disk, files=files) as root:
        return _imported(fill, root, disk, files=files, checked=checked, progress=progress)


@contextmanager
def new_folder(directory: str, disk: Disk, *, files: bool = True) -> Iterator[str]:
    """Make a folder for a store, with those above it; if the block fails, remove those made in which nothing is.

    Yield its canonical path. It may exist, without a store, and empty if `files` are to be written. Raises FileExists,
    PathReserved, and what the disk raises.
    """
    require_not_reserved(directory)
    made: list[str] = []
    try:
        _make_folders(directory, made, disk)
        for folder in made:
            disk.sync_directory(
                os.path.dirname(os.path.abspath(folder))
            )  # otherwise a power cut could remove all of it
        root = os.path.realpath(directory)
        _require_free(root, disk, files=files)
        yield root
    except BaseException:
        with suppress(OSError):  # something was put there, such as what a clone fetched that broke off
            for folder in reversed(made):
                os.rmdir(folder)
        raise


# ---- inside


def _pieces(store: Store, progress: Progress | None) -> Iterator[bytes]:
    """Return the pieces of a bundle of a store that is held still. Raises NotBundled."""
    while not store.index.knows_generations:
        store.catch_up()
    lost = store.index.blobs.lost()
    if lost:
        raise NotBundled(lost)
    return bundle_pieces(store.log, store.end, progress)


def _make_folders(directory: str, made: list[str], disk: Disk) -> None:
    """Make a folder and those above it, as far as they don't exist; add the new ones to `made`, outermost first."""
    above = os.path.dirname(directory.rstrip("/"))
    if above and not is_made(above):
        _make_folders(above, made, disk)
    folder = os.open(above or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with giving_away(above or "."):
            disk.make_directory(folder, os.path.basename(directory.rstrip("/")), os.fstat(folder))
    except FileExistsError:
        if not os.path.isdir(directory):
            raise
    else:
        made.append(directory)
    finally:
        os.close(folder)


def _require_free(root: str, disk: Disk, *, files: bool) -> None:
    """Remove what a killed import left in a folder. Raises FileExists if anything else is in the way."""
    for name in sorted(os.listdir(root)):
        if is_creation_folder(name) and discard_leftover(os.path.join(root, name), disk):
            pass  # left by an import or an `init` that was killed
        elif files or is_store(name):
            raise FileExists(os.path.join(root, name))


def _imported(
    fill: Fill,
    root: str,
    disk: Disk,
    *,
    files: bool,
    checked: Callable[[], None] | None,
    progress: Progress | None,
) -> Imported:
    making = os.path.join(root, creation_folder_name())
    disk.make_creation_folder(making)
    try:
        records, blobs, steps = checked_store(fill, making, disk, files=files, progress=progress)
        if checked is not None:
            checked()
        opened = Journal(making, disk, progress=progress or ignore_progress)
        with closing(opened) as journal, journal.writing() as batch:
            journal.carry_out(steps)
            lost = _record_lost_modes(journal, batch, steps)
        give_to_owner_above(making, disk)
        _move_in(making, root, disk)
        finish_creation(root, disk)
    finally:
        discard_creation_folder(making, disk)
    disk.sync_directory(root)
    owner = owner_of_given(root)
    return Imported(root=root, records=records, blobs=blobs, files=len(steps), modes_lost=lost, owner=owner)


def _record_lost_modes(journal: Journal, batch: Batch, steps: list[FileStep]) -> tuple[str, ...]:
    """Record the modes of the written files that lack setuid or setgid; return their paths.

    Otherwise the next scan would take them for changes of a person. Each record amends the edit that set the mode, so
    that it doesn't keep that edit from being rejected.
    """
    lost = [(step, settable_state(step.after, None)) for step in steps if step.after is not None]
    lost = sorted(((step, got) for step, got in lost if got != step.after), key=lambda pair: pair[0].path)
    if not lost:
        return ()
    # Few imports need these.
    from objstore.history.documents.loader import load_document
    from objstore.review.calls.edit_recorder import Change, Recorder, Version, new_conversation

    recorder, conversation = Recorder(journal, batch), new_conversation()
    for ordinal, (step, got) in enumerate(lost):
        content, tip = batch.text(got.blob), journal.store.tip_at(step.path)
        setters = [] if tip is None else load_document(journal, tip.document).mode_writers()
        change = Change(
            document=None if tip is None else tip.document,
            operation=Operation.EDIT,
            path=step.path,
            source=None,
            before=None if step.after is None else Version(content=content, state=step.after),
            after=Version(content=content, state=got),
            hunks=(),
            origin=Origin.PERSON,
            amends=setters[-1].seq if setters else None,
        )
        recorder.record(
            change,
            document=change.document,
            conversation=conversation,
            call=0,
            ordinal=ordinal,
            tool="import",
            notes={},
        )
    journal.commit(batch, ())
    return tuple(os.fsdecode(step.path) for step, _ in lost)


def _move_in(making: str, root: str, disk: Disk) -> None:
    """Move everything in the folder `making` of `root` into `root` itself, or nothing.

    The store is moved last: if the process dies earlier, there is no history that would say that the files were
    deleted.
    """
    names = sorted(name for name in os.listdir(making) if name != STORE_NAME)
    moved: list[str] = []
    try:
        for name in names:
            move_created(making, root, name, disk)
            moved.append(name)
        disk.sync_directory(root)
        move_created(making, root, STORE_NAME, disk)
    except BaseException:
        for name in reversed(moved):
            move_created(root, making, name, disk)
        raise


def checked_store(
    fill: Fill, making: str, disk: Disk, *, files: bool, progress: Progress | None
) -> tuple[int, int, list[FileStep]]:
    """Make a store in the creation folder `making` and check it from its frames to the replay of every document.

    What was checked before is not checked again. Return the counts of records and blobs that were, and the steps that
    write its files (none unless `files`). Raises BundleRefused, what `fill` raises, and what the disk raises.
    """
    folder = os.path.join(making, STORE_NAME)
    disk.make_store_folder(folder)
    write_creation_proof(folder, making, disk)
    for made in (os.path.join(folder, "tmp"), os.path.join(folder, "segments")):
        disk.make_store_folder(made)
    disk.create(os.path.join(folder, IGNORE_NAME), b"*\n")
    disk.create(os.path.join(folder, "lock"), b"")
    since = fill(os.path.join(folder, "segments"), disk)
    report = check_store(making, since=since, progress=progress)
    if report.faults:
        raise BundleRefused(report.faults[0].what)
    end, steps = _found(making, disk, files=files)
    # Otherwise the next writer would take the files for unfinished, although they were never in this folder.
    reset_applied_marker(folder, end, disk)
    return report.records, report.blobs, steps


def _found(making: str, disk: Disk, *, files: bool) -> tuple[Place, list[FileStep]]:
    """Return where the log ends, and the steps to write the files. Raises BundleRefused."""
    steps: list[FileStep] = []
    try:
        with closing(Journal(making, disk)) as journal, journal.reading() as store:
            is_whole, end = store.log.ends_at(store.end), store.end
            if files:
                _require_bounded_snapshots(store)
                steps = _steps(journal)
    except BundleRefused:
        raise
    except CasError as error:
        raise BundleRefused(str(error)) from error
    if not is_whole:
        raise BundleRefused("more bytes follow its last complete group")
    return end, steps


def _steps(journal: Journal) -> list[FileStep]:
    """Return the steps that write the known files. Raises BundleRefused if they must not be written."""
    tips = [tip for tip in journal.store.index.documents.tips() if tip.state is not None]
    counts = Counter(tip.path for tip in tips)
    for tip in tips:
        _require_allowed_path(tip.path)
        if counts[tip.path] > 1 or any(folder in counts for folder in folders_of(tip.path)):
            raise BundleRefused(f"two files have the path {os.fsdecode(tip.path)!r}")
    states = {tip.path: tip.state for tip in tips if tip.state is not None}
    states |= _without_document(journal, set(counts))
    _require_space_for(journal, Counter(state.blob for state in states.values()))
    return [FileStep(path=path, before=None, after=state) for path, state in states.items()]


def _require_space_for(journal: Journal, written: "Counter[BlobId]") -> None:
    """Raise BundleRefused if the files have more bytes than the disk has free: one blob may be in very many files."""
    needed = sum(journal.store.size(blob) * count for blob, count in written.items())
    root = journal.tree.root
    free = journal.disk.free_bytes(root, root)
    if needed > free:
        raise BundleRefused(f"it would write {needed} bytes, but only {free} are free there", concerns_files=True)


def _without_document(journal: Journal, taken: set[bytes]) -> dict[bytes, FileState]:
    """Return the states of files that only the baseline knows, unless a file at one of the `taken` paths is in the way.

    Links and what the baseline left out are not included: no scan would miss them. Raises BundleRefused.
    """
    known = KnownStates(journal)
    folders = {folder for path in taken for folder in folders_of(path)}
    found: dict[bytes, FileState] = {}
    for path in sorted(known.below(b"")):
        document, state = known.state(path)
        if document is not None or state is None:
            continue
        _require_allowed_path(path)
        # A tool may have written there before a scan could record that the file is gone; the next scan records it.
        if path not in folders and taken.isdisjoint(folders_of(path)):
            found[path] = state
    return found


def _require_bounded_snapshots(store: Store) -> None:
    """Raise BundleRefused if a snapshot has more files than a scan takes, or paths of more bytes than fit in memory.

    Also if the baseline has a path that is too long to be written. A snapshot may contain the same folder over and
    over, so no path of one is built before this check.
    """
    baseline = store.baseline()
    extents: dict[BlobId, _Extent] = {}
    for snapshot in _snapshots(store):
        extent = _extent(store, snapshot, extents)
        if baseline is not None and snapshot.number == baseline.number and extent.longest_path > MAX_PATH:
            raise BundleRefused(f"it would write a path longer than {MAX_PATH} bytes", concerns_files=True)


def _snapshots(store: Store) -> Iterator[Snapshot]:
    """Yield every snapshot that has not been deleted."""
    for row in store.index.holders.snapshots():
        record = store.record(row.place)[0]
        if isinstance(record, Snapshot) and not row.expired:
            yield record


@value
class _Extent:
    """The size of a tree with everything below it."""

    names: int  # of files, links and folders
    longest_path: int  # in bytes
    all_paths: int  # in bytes, together


def _extent(store: Store, snapshot: Snapshot, known: "dict[BlobId, _Extent]") -> _Extent:
    """Return the extent of a snapshot's tree, and add it and those of all trees below to `known`.

    Raises BundleRefused as soon as it is too large: a small tree may multiply to a huge number.
    """
    waiting = [snapshot.root]
    while waiting:
        if waiting[-1] in known:
            waiting.pop()
            continue
        tree = decode_tree(store.blob(waiting[-1]))
        folders = [(entry.name, entry.blob) for entry in tree if isinstance(entry, TreeEntry) and entry.is_folder]
        unknown = {folder for _, folder in folders if folder not in known}
        if unknown:
            waiting += unknown
            continue
        below = [(len(name) + 1, known[folder]) for name, folder in folders]
        own = [len(entry.name) for entry in tree]
        extent = _Extent(
            names=len(tree) + sum(extent.names for _, extent in below),
            longest_path=max([*own, *(begin + extent.longest_path for begin, extent in below)], default=0),
            all_paths=sum(own) + sum(begin * extent.names + extent.all_paths for begin, extent in below),
        )
        _require_bounded(snapshot, extent.names, extent.all_paths)
        known[waiting.pop()] = extent
    found = known[snapshot.root]
    _require_bounded(snapshot, found.names, found.all_paths + found.names * len(beginning(snapshot.path or b"")))
    return found


def _require_bounded(snapshot: Snapshot, names: int, all_paths: int) -> None:
    named = f"snapshot {snapshot.number} has"
    if names > _MOST_NAMES:
        raise BundleRefused(f"{named} more than {_MOST_NAMES} files and folders", concerns_files=True)
    if all_paths > _MOST_OF_PATHS:
        raise BundleRefused(f"{named} paths of more than {_MOST_OF_PATHS} bytes in all", concerns_files=True)


def _require_allowed_path(path: bytes) -> None:
    """Raise BundleRefused if no imported file may have the path."""
    name = os.fsdecode(path)
    if any(map(is_reserved, name.split("/"))):
        raise BundleRefused(f"it would write {name!r}, into a store or version control", concerns_files=True)
