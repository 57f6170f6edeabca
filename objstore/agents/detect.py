"""Record the edits that explain why files are not in their known state."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

from objstore.agents.baseline_update import BaselineUpdate
from objstore.agents.differences import difference_at, folder_differences, tick_of
from objstore.disk.fs.disk import reaching
from objstore.disk.fs.file_state import file_at, linked
from objstore.disk.git.repository import LFS_POINTER
from objstore.disk.ignore_rules.rule_files import folder_at
from objstore.model.basic_types import (
    EXTERNAL_CONVERSATION,
    MAX_INT,
    FileState,
    Operation,
    Origin,
    Status,
    is_other_kind,
)
from objstore.model.relpath import folders_above, joined
from objstore.model.results import Attributor, CallInfo, Difference, owner_at
from objstore.review.calls.edit_recorder import (
    Change,
    Recorder,
    Version,
    earliest_of,
    external_changes,
    is_unknown,
    new_conversation,
    version_of,
)
from objstore.values.errors import UNREADABLE, BlobMissing, PathError
from objstore.values.fastclass import replace, value
from objstore.worktree.baseline import KnownStates
from objstore.worktree.git_positions import GitPositions, Movement, watch_repositories
from objstore.worktree.mounts import absent_folders, is_absent, unseen_folders
from objstore.worktree.tree_writer import ContentWriter
from objstore.worktree.walk import ReadFile, ScanLimits, SkippedPath

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from objstore.disk.fs.birth_time import Times
    from objstore.model.views import EditView
    from objstore.storage.store.write_batch import Batch
    from objstore.storage.transaction.journal import Journal
    from objstore.worktree.scan import WorktreeScan
    from objstore.worktree.stat_cache import CachedFolder, StatCache

__all__ = ["ExplainsChanges", "NewRepositories", "UnstoredLargeFiles", "record_differences"]

_NAMED_GONE: Final = 10
"""Paths that went away, and that the note of a new file names."""


@value
class UnstoredLargeFiles:
    """The result when large files were found that the store lacks: the caller stores them first, without the lock."""

    paths: list[bytes]


@value
class NewRepositories:
    """The result when files were found in repositories that were not there at the last look: the caller asks git."""

    found: list[tuple[bytes, Movement]]  # the folder of each, and how it came to be where it is


class ExplainsChanges(Protocol):
    """Records some changes of files as one event, as what git did."""

    def record(self, batch: Batch, found: Sequence[Difference]) -> tuple[list[EditView], set[bytes]]:
        """Add the event to the batch; return its edits, and the paths that are explained by it."""
        ...


def record_differences(
    journal: Journal,
    info: CallInfo | Attributor | ExplainsChanges,
    scan: WorktreeScan | None,
    suspects: Mapping[bytes, Sequence[bytes]],
    files: Sequence[bytes],
    limits: ScanLimits | None,
    *,
    excluding: Collection[bytes] = (),
    store_large: bool = False,
) -> tuple[str, list[EditView], list[SkippedPath]] | UnstoredLargeFiles | NewRepositories:
    """Record the files that are not in their known state: of `files`, and of what a walk of the `suspects` finds.

    `suspects`: for each folder to scan, the folders below it to list. `excluding`: paths that another scan will record.
    `info`: whose the changes are; an event records only what it explains, and leaves all else to the next scan.
    Returns the conversation of the edits ("": there are none), the edits, and the paths that could not be scanned. Or
    UnstoredLargeFiles, if nothing was recorded; the scan can't be used again then. If `store_large`, large files are
    stored under the lock instead, however long that takes. NewRepositories is returned where there are any, and nothing
    was recorded. Raises what Journal.commit and paths raise.
    """
    pieces = ContentWriter(journal, is_locked=True, store_large=store_large)
    with journal.writing() as batch:
        # Made under the lock, so that they leave out what a purge has just removed from the store.
        walks = {} if scan is None else {scope: scan.walk(pieces.keep, limits) for scope in suspects}
        known = KnownStates(journal)
        last = _last_seen(journal, scan)
        other_names = _other_names(journal, last, files)
        files = [*files, *other_names]
        found = [difference for path in files for difference in _file_difference(journal, last, known, path, pieces)]
        excluded_inodes = linked(journal.tree, excluding)
        dirty: list[CachedFolder] = []
        if scan is not None:
            scan.apply_new_records()
        for scope, walk in walks.items():
            # The suspects were found before the lock; list what records mention since then too.
            due = [row.path for row in walk.stat_cache.not_fully_recorded(scope)]
            walk.run(scope, suspects=[*suspects[scope], *due])
            dirty += walk.stat_cache.not_fully_recorded(scope)
        if pieces.large:
            return UnstoredLargeFiles(paths=pieces.large)
        pieces.put(batch)
        found = _readable(journal, batch, found, known)
        by_folder: dict[bytes, list[bytes]] = {}  # the paths of the differences in each folder
        for row in dirty:
            differences = list(folder_differences(journal, scan, row, known))
            by_folder[row.path] = [difference.path for difference in differences]
            found += _readable(journal, batch, _wanted(row, differences, excluding, excluded_inodes), known)
        found = _last_by_path(found, absent_folders(journal))
        found = _with_unseen(journal, info, scan, last, known, other_names, found)
        if repositories := _new_repositories(journal, info, dirty, found):
            return NewRepositories(found=repositories)
        recorder = Recorder(journal, batch)
        recorder.left_out, recorder.born, recorder.made = _ages(journal, last, found, files)
        recorder.left_out |= known.newly_visible
        recorder.may_hold = _heirs(journal, last, found, files)
        found = _with_returned(journal, info, last, found)
        returned, left = _returned(journal, recorder, batch, info, found)
        edits, conversation, recorded = _recorded(journal, recorder, batch, info, left, other_names, returned)
        recorded |= {here.path for here in found} - {here.path for here in left} | known.joining.keys()
        if found and not recorded and not batch.has_records:
            return conversation, edits, []
        kept = _update_baseline(journal, batch, known, scan, files, dirty, excluding)
        if batch:
            journal.commit(batch, ())
        if kept is not None:
            kept.baseline = journal.store.baseline()
        if scan is not None:
            scan.note_position()
    _note_recorded(dirty, by_folder, recorded)
    watch_repositories(journal, [row.path for row in dirty])
    if scan is not None and (dirty or any(walk.has_changes for walk in walks.values())):
        kept = scan
    # The scan that records the rest must know, too, what was left out or not mounted before.
    unseen = {here.path for here in found if here.is_unseen}
    if kept is not None and recorded.issuperset({*recorder.left_out, *recorder.may_hold, *unseen}):
        kept.save()
    skipped = [*(place for walk in walks.values() for place in walk.skipped), *known.skipped]
    return conversation, edits, skipped


def _last_seen(journal: Journal, scan: WorktreeScan | None) -> Callable[[], StatCache]:
    """Return what returns what the last scan saw: it is loaded when it is first needed, which it is for few files."""

    @cache
    def last() -> StatCache:
        from objstore.worktree.scan import WorktreeScan  # an agent waits for what each hook imports

        return (WorktreeScan(journal) if scan is None else scan).stat_cache

    return last


def _note_recorded(
    dirty: Iterable[CachedFolder], by_folder: Mapping[bytes, Sequence[bytes]], recorded: Collection[bytes]
) -> None:
    """Note which folders are fully recorded. `by_folder`: the paths of the differences that were found in each."""
    for row in dirty:
        row.is_fully_recorded = row.is_fully_recorded or all(path in recorded for path in by_folder[row.path])
        row.touched = None if row.is_fully_recorded else row.touched


def _new_repositories(
    journal: Journal,
    info: CallInfo | Attributor | ExplainsChanges,
    dirty: Iterable[CachedFolder],
    found: Iterable[Difference],
) -> list[tuple[bytes, Movement]]:
    """Return the repositories in which new files were found, and that were not there at the last look."""
    if not (isinstance(info, CallInfo) or callable(info)):
        return []
    root = os.fsencode(journal.tree.root)
    new = {folder for here in found if here.known is None for folder in folders_above(here.path)}
    folders = [row.path for row in dirty if row.path in new and os.path.lexists(os.path.join(root, row.path, b".git"))]
    return GitPositions(journal).first_seen(folders) if folders else []


def _ages(
    journal: Journal, last: Callable[[], StatCache], found: Iterable[Difference], named: Collection[bytes]
) -> tuple[set[bytes], dict[bytes, int], dict[bytes, int]]:
    """Return the paths at which older files came into sight, and when the others that appeared were made.

    First, when each was made at the latest (ns), then at the earliest (0: not known). A new name of a file that the
    last scan read is no older file. `last`: returns what that scan saw. `named`: by a call, which is looked at when it
    begins: what is new then, it made.
    """
    older = set[bytes]()
    times: dict[bytes, Times] = {}
    by_folder: dict[bytes, list[Difference]] = {}
    new = {here.path: here for here in found if here.known is None and here.now is not None}
    if not new:
        return older, {}, {}
    from objstore.disk.fs.birth_time import times_of  # an agent waits for what each hook imports

    for here in new.values():
        if here.is_unseen and here.path not in named:
            older.add(here.path)
        else:
            by_folder.setdefault(here.path.rpartition(b"/")[0], []).append(here)
    for folder, in_folder in by_folder.items():
        with suppress(OSError), folder_at(journal.tree, folder) as fd:  # it is gone meanwhile
            for here in in_folder:
                with suppress(OSError):
                    times[here.path] = times_of(fd, here.path.rpartition(b"/")[2])
    known = last().inodes_read({each.inode for each in times.values()}) if times else ()
    times = {path: each for path, each in times.items() if each.inode not in known}
    first = [path for path in times if new[path].document is None]  # the others are known to have been absent
    latest = {path: (times[path].born or times[path].written) + new[path].tick for path in first}
    older.update(path for path, time in latest.items() if time < last().looked_at(path))
    earliest = {
        path: max(0, earliest_of(each, is_new=_is_new_content(journal, new[path])) - new[path].tick)
        for path, each in times.items()
        if each.born or (path not in named and _is_new_content(journal, new[path]))
    }
    return older, latest, earliest


def _heirs(
    journal: Journal, last: Callable[[], StatCache], found: Iterable[Difference], named: Collection[bytes]
) -> dict[bytes, str]:
    """Return the paths of new files that may hold what files held that no scan had read, and that are gone.

    With each, the names of these, one in a line: the first of them. `named`: by a call, which said what it writes.
    """
    new = [here.path for here in found if _is_new_content(journal, here) and here.path not in named]
    gone = last().gone_unread() if new else []
    names = "\n".join(path.decode(errors="replace") for path in gone[:_NAMED_GONE])
    return dict.fromkeys(new, names) if gone else {}


def _is_new_content(journal: Journal, here: Difference) -> bool:
    """Return whether a file appeared at a path, with content that was never stored."""
    return here.known is None and here.now is not None and is_unknown(journal.store, here.now.blob)


# ---- what differs


def _other_names(journal: Journal, last: Callable[[], StatCache], files: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the other hard links of `files`, each with the path in `files` that it is a link to.

    A change of one changes all of them. `last`: returns the stat cache of the last scan.
    """
    inodes = {inode: path for path in reversed(files) for inode in linked(journal.tree, [path])}
    if not inodes:
        return {}
    found = last().names_of(inodes.keys())
    others = [(path, inode) for path in found if path not in files for inode in linked(journal.tree, [path])]
    return {path: inodes[inode] for path, inode in others if inode in inodes}


def _wanted(
    row: CachedFolder, found: Iterable[Difference], excluding: Collection[bytes], excluded_inodes: Collection[int]
) -> list[Difference]:
    """Return the differences in a folder without the excluded paths, and without hard links of excluded files."""
    wanted = [difference for difference in found if difference.path not in excluding]
    if not excluded_inodes:
        return wanted
    inodes = {joined(row.path, name): facts.inode for name, (facts, _) in row.files().items()}
    return [difference for difference in wanted if inodes.get(difference.path) not in excluded_inodes]


def _file_difference(
    journal: Journal, last: Callable[[], StatCache], known: KnownStates, path: bytes, pieces: ContentWriter
) -> Iterator[Difference]:
    """Yield the file at a path if it is not in its known state."""
    try:
        with reaching(os.fsdecode(path)):
            found = file_at(journal.tree, path)
            version = version_of(found, journal.tree, path)
        if version is not None:
            pieces.keep(ReadFile(path, version.content, version.state.blob, None, version.source))
    except PathError as error:
        known.skipped.append(SkippedPath(path=os.fsdecode(path), reason=str(error)))
        return
    if found is None:
        yield from difference_at(path, None, known, *_deletion_time(journal, last(), path))
        return
    seen = found[1].stat
    yield from difference_at(path, found[0], known, seen.st_ctime_ns, tick_of(journal, seen.st_dev))


def _deletion_time(journal: Journal, stat_cache: StatCache, path: bytes) -> tuple[int, int]:
    """Return the latest time at which a file can have been deleted, and the possible error of that time (ns).

    That is the ctime of the innermost existing folder above it, and of those further up that are not the same as at the
    last scan: renaming a folder changes its own ctime, and not the times of what is in it.
    """
    since, tick = 0, 0
    for folder in folders_above(path):
        with suppress(OSError):
            seen = os.stat(os.path.join(os.fsencode(journal.tree.root), folder))
            row = stat_cache.get(folder)
            is_same = row is not None and row.key.inode == seen.st_ino
            if not since or not is_same:
                since, tick = max(since, seen.st_ctime_ns), max(tick, tick_of(journal, seen.st_dev))
            if is_same:
                break
    return since or MAX_INT, tick


def _readable(journal: Journal, batch: Batch, found: Iterable[Difference], known: KnownStates) -> list[Difference]:
    """Return the differences that can be recorded, with their bytes in the store or the batch; report the others.

    If the known state of a document can't be read, its end can still be recorded.
    """
    readable = []
    for difference in found:
        try:
            readable.append(_with_bytes(journal, batch, _with_known(batch, difference)))
        except UNREADABLE as error:
            reason = f"its recorded state can't be read ({error})"
            known.skipped.append(SkippedPath(path=os.fsdecode(difference.path), reason=reason))
    return readable


def _with_known(batch: Batch, difference: Difference) -> Difference:
    """Return the difference, with `is_lost` set if the state of its document can't be read.

    Raises what Batch.text raises if the file has no document, and the state with which one would begin can't be read.
    """
    try:
        if difference.known is not None:
            batch.text(difference.known.blob)
    except UNREADABLE:
        if difference.document is None:
            raise
        return replace(difference, is_lost=True)
    return difference


def _with_bytes(journal: Journal, batch: Batch, difference: Difference) -> Difference:
    """Return the difference with a current state whose bytes are in the store or in the batch.

    A snapshot may have stored them, been deleted, and garbage collection may have removed them since.
    """
    if difference.now is None:
        return difference
    try:
        batch.text(difference.now.blob)
    except BlobMissing:
        now = version_of(file_at(journal.tree, difference.path), journal.tree, difference.path)
        if now is not None:
            batch.state(now.content, name=now.state.blob, source=now.source)
        return replace(difference, now=None if now is None else now.state)
    return difference


def _update_baseline(
    journal: Journal,
    batch: Batch,
    known: KnownStates,
    scan: WorktreeScan | None,
    files: Iterable[bytes],
    dirty: Iterable[CachedFolder],
    excluding: Collection[bytes],
) -> WorktreeScan | None:
    """Add the update of the baseline to the batch; return the scan to save after it (None: the baseline stays)."""
    visible = [
        Difference(path=path, document=None, known=None, now=now, changed=0, tick=0)
        for path, now in known.joining.items()
        if path not in excluding
    ]
    states = {here.path: here.now for here in _readable(journal, batch, visible, known) if here.now is not None}
    update = BaselineUpdate(journal, known, None if scan is None else scan.stat_cache)
    for path in files:
        if path not in excluding and (path in states or known.is_excluded_from_baseline(path)):
            update.add_file(path, states.get(path))
    for row in sorted(dirty, key=lambda row: row.path):
        update.add_folder(row, states)
    if not update.put(batch):
        return None
    from objstore.worktree.scan import WorktreeScan  # as above

    # Folders that were fully recorded with the old baseline are so with the new one.
    return WorktreeScan(journal) if scan is None else scan


def _with_unseen(
    journal: Journal,
    info: CallInfo | Attributor | ExplainsChanges,
    scan: WorktreeScan | None,
    last: Callable[[], StatCache],
    known: KnownStates,
    other_names: Mapping[bytes, bytes],
    found: Iterable[Difference],
) -> list[Difference]:
    """Return the differences, with those marked that the last look could not read.

    A file that the baseline left out, and that no agent can have changed, is none: the baseline takes it. What git did
    is no answer to that, so such a file is left to the next scan.
    """
    mounts = unseen_folders(journal)
    differences: list[Difference] = []
    for here in found:
        if here.is_unseen and not _is_reviewed(info, here):
            if isinstance(info, CallInfo) or callable(info):
                reason = "its earlier content is not known; later changes will be recorded"
                known.skipped.append(SkippedPath(path=os.fsdecode(here.path), reason=reason))
                if here.now is not None:
                    known.joining[here.path] = here.now
            continue
        known.newly_visible |= {here.path} if here.is_unseen else set()
        is_unseen = here.is_unseen or is_absent(here.path, mounts)
        # Without a scan, what the last one saw is yet to be read.
        if not is_unseen and (scan is not None or _depends_on_sight(info, here, other_names.get(here.path, here.path))):
            is_unseen = last().was_left_out(here.path)
        differences.append(replace(here, is_unseen=is_unseen))
    return differences


def _is_reviewed(info: CallInfo | Attributor | ExplainsChanges, here: Difference) -> bool:
    """Return whether a file that only came into sight awaits review, because an agent may have changed it."""
    if not (isinstance(info, CallInfo) or callable(info)):
        return False
    return owner_at(info, here.path, here.changed, here.tick, is_unseen=True).origin.needs_review


def _depends_on_sight(info: CallInfo | Attributor | ExplainsChanges, here: Difference, named: bytes) -> bool:
    """Return whether it matters for a change if the last scan left its file out. `named`: the path that a call named.

    It does not for a known file that a tool has named before it changed the file: the edit is the tool's either way.
    """
    if here.known is None or here.now is None or not (isinstance(info, CallInfo) or callable(info)):
        return True
    seen, unseen = (owner_at(info, named, here.changed, here.tick, is_unseen=each) for each in (False, True))
    return seen != unseen or seen.origin is not Origin.AGENT


def _last_by_path(found: Iterable[Difference], absent: Collection[bytes]) -> list[Difference]:
    """Return the last difference of each path, without those in folders that are not there now."""
    return list({here.path: here for here in found if not is_absent(here.path, absent)}.values())


# ---- the edits that explain it


def _with_returned(
    journal: Journal,
    info: CallInfo | Attributor | ExplainsChanges,
    last: Callable[[], StatCache],
    found: Sequence[Difference],
) -> list[Difference]:
    """Return the differences, with those marked that are back and may hold what no look has read."""
    if not (isinstance(info, CallInfo) or callable(info)):
        return list(found)
    new = {here.path: here.now for here in found if here.known is None and here.now is not None and not here.is_unseen}
    if not new:
        return list(found)
    from objstore.review.calls.returned_files import ReturnedFiles  # an agent waits for what each hook imports

    files = ReturnedFiles(journal, last)
    return [
        replace(here, is_unseen=True) if (now := new.get(here.path)) and files.is_unseen(here.path, now) else here
        for here in found
    ]


def _returned(
    journal: Journal,
    recorder: Recorder,
    batch: Batch,
    info: CallInfo | Attributor | ExplainsChanges,
    found: Sequence[Difference],
) -> tuple[list[EditView], Sequence[Difference]]:
    """Add what comes back to the batch; return its edits, and the differences that are left to explain."""
    if not (isinstance(info, CallInfo) or callable(info)):
        return [], found
    if not any(_may_bring_back(journal, batch, info, here) for here in found):
        return [], found
    from objstore.agents.returned_lines import ReturnedLines  # an agent waits for what each hook imports

    return ReturnedLines(journal, info).split(batch, found, recorder)


def _may_bring_back(journal: Journal, batch: Batch, info: CallInfo | Attributor, here: Difference) -> bool:
    """Return whether a change may bring back lines that left a file, or a large file in place of its pointer.

    Mostly it is an agent's edit of a file from which nothing is away, and brings nothing back.
    """
    if here.document is None or here.known is None or here.now is None or here.is_lost:
        return True
    if not owner_at(info, here.path, here.changed, here.tick).origin.needs_review:
        return True
    is_any_away = bool(journal.store.index.history.edits_with(here.document, [Status.AWAY]))
    return is_any_away or batch.text(here.known.blob).startswith(LFS_POINTER)


def _recorded(
    journal: Journal,
    recorder: Recorder,
    batch: Batch,
    info: CallInfo | Attributor | ExplainsChanges,
    found: Sequence[Difference],
    other_names: Mapping[bytes, bytes],
    returned: Sequence[EditView],
) -> tuple[list[EditView], str, set[bytes]]:
    """Add the edits to the batch; return all of them, the first one's conversation ("": none), and the recorded paths.

    `returned`: edits that are in the batch already, of lines that came back.
    `other_names`: hard links, each with the path that a call named; the change is attributed by that path.
    """
    if not isinstance(info, CallInfo) and not callable(info):
        edits, explained = info.record(batch, found)
        return edits, "", explained
    edits = list(returned)
    calls: list[tuple[CallInfo, str, int, list[EditView]]] = []  # with conversation, position in it, edits
    for change, here in _changes(found, batch):
        if isinstance(info, CallInfo):
            author = info
        else:
            named = os.fsdecode(other_names.get(here.path, here.path))
            author = info(named, here.changed, here.tick, is_unseen=here.is_unseen)
            if here.is_unseen and author.origin is Origin.UNATTRIBUTED:
                recorder.left_out.add(here.path)
            if author.origin is not Origin.AGENT:
                from objstore.review.calls.formatting import as_formatting  # as above

                made = as_formatting(journal, change, info, here.changed, here.tick).formats
                if made is not None:
                    edits.append(recorder.record_formatting(replace(change, formats=made), made))
                    continue
        own = next((call for call in calls if call[0] == author), None)
        if own is None:
            conversation = author.conversation or new_conversation()
            if author.origin in {Origin.EXTERNAL, Origin.UNATTRIBUTED}:
                conversation = EXTERNAL_CONVERSATION
            before = sum(call[1] == conversation for call in calls)
            before += any(view.edit.conversation == conversation for view in returned)
            own = (author, conversation, journal.store.next_call(conversation) + before, [])
            calls.append(own)
        _, conversation, call, edits_of_call = own
        view = recorder.record(
            recorder.bound_to_markers(replace(change, origin=author.origin, turn=author.turn)),
            document=change.document,
            conversation=conversation,
            call=call,
            ordinal=len(edits_of_call),
            tool=author.tool,
            notes=author.notes,
        )
        edits_of_call.append(view)
        edits.append(view)
        journal.progress("changes", len(edits), len(found))
    return edits, edits[0].edit.conversation if edits else "", {difference.path for difference in found}


def _changes(found: Sequence[Difference], batch: Batch) -> Iterator[tuple[Change, Difference]]:
    """Yield the changes, deletions and moves first, each with the difference that has its time."""

    def version(state: FileState | None) -> Version | None:
        return None if state is None else Version(content=batch.text(state.blob), state=state)

    for lost in found:
        if lost.is_lost and lost.document is not None:
            for change in external_changes(lost.path, lost.document, lost.known, version(lost.now), batch.text):
                yield change, lost
    found = [here for here in found if not here.is_lost]
    moves: dict[bytes, tuple[bytes, FileState]] = {}
    if any(here.now is None for here in found) and any(here.known is None for here in found):
        from objstore.worktree.moved_files import moved_files  # as above

        moves = moved_files([(here.path, here.known, here.now) for here in found], batch.text)
    move_targets = {path for path, _ in moves.values()}
    by_path = {here.path: here for here in found} | {here.path: here for here in found if here.known is None}
    found = [part for here in found for part in _of_one_kind(here)]
    for gone in found:
        if gone.now is not None:
            continue
        to, state = moves.get(gone.path, (None, None))
        change = Change(
            document=gone.document,
            operation=Operation.DELETE if to is None else Operation.MOVE,
            path=gone.path if to is None else to,
            source=None if to is None else gone.path,
            before=version(gone.known),
            after=version(state),
            hunks=() if state is not None and gone.known is not None and state.blob == gone.known.blob else None,
            origin=Origin.EXTERNAL,
            folders=0 if to is None else by_path[to].folders,
        )
        yield change, by_path[change.path]
    for here in found:
        if here.now is None or (here.known is None and here.path in move_targets):
            continue
        change = Change(
            document=here.document,
            operation=Operation.CREATE if here.known is None else Operation.EDIT,
            path=here.path,
            source=None,
            before=version(here.known),
            after=version(here.now),
            hunks=None,
            origin=Origin.EXTERNAL,
            folders=here.folders if here.known is None else 0,
        )
        yield change, here


def _of_one_kind(here: Difference) -> list[Difference]:
    """Return a difference as a deletion and a creation if a link took the place of a file, or a file that of a link."""
    if not is_other_kind(here.known, here.now):
        return [here]
    return [replace(here, now=None), replace(here, known=None, document=None)]
