"""Snapshots: what stood in a folder at one moment, taken, listed, compared, brought back, and given up.

A snapshot is one small record that names a tree. Folders that nobody touched since the last look are the trees that
they were, so taking the next snapshot costs one look at the times of files.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from objstore.batch import Batch, now
from objstore.capture import Call
from objstore.errors import (
    FileChanged,
    FileMissing,
    NamesShared,
    NoSuchName,
    NotInSnapshot,
    PathError,
    PathInvalid,
    SnapshotIncomplete,
    SnapshotsApart,
)
from objstore.hardlinks import FileId, file_id
from objstore.ids import BlobId, RecordId
from objstore.indexrows import Baseline, HoldRow
from objstore.journal import Journal
from objstore.keeping import Pieces, Trees
from objstore.legibility import naming
from objstore.looking import Looking, nothing_kept
from objstore.looks import Looks
from objstore.meanwhile import Meanwhile
from objstore.names import is_reserved
from objstore.naming import linked_spelling
from objstore.ondisk import stands_below
from objstore.outcomes import CallOutcome
from objstore.paths import Tree, look_at
from objstore.recordedpaths import beginning, folders_of
from objstore.records import Expiry, Snapshot
from objstore.room import with_reserve
from objstore.spots import link_on
from objstore.suggestions import paths_near
from objstore.survey import Limits, Passed, Survey
from objstore.terms import FileState, Progress, silent
from objstore.trees import LeftOut, TreeChange, TreeEntry, entry_at, tree_changes, tree_files
from objstore.values import value

__all__ = [
    "PathState",
    "Restored",
    "SnapshotChange",
    "SnapshotTaken",
    "SnapshotView",
    "as_spelt",
    "carry_out",
    "changes",
    "create",
    "delete",
    "find",
    "listed",
    "listing",
    "plan_restore",
]

_TRIES: Final = 3
"""Looks beside others, before what came meanwhile is looked at with the lock, or what is cleaned away is given up."""

_MOST_NEAR: Final = 2
"""Paths that a mistyped one may have been meant for."""


@value
class SnapshotView:
    """A recorded snapshot."""

    id: RecordId
    number: int
    time: int  # microseconds since 1970-01-01 UTC
    path: str  # the folder, relative to the workspace; "": all of it
    root: BlobId
    who: str  # "": the first look took it by itself, as what later ones compare with
    title: str


@value
class SnapshotTaken:
    """A snapshot that was just taken."""

    view: SnapshotView
    files: int  # files and links in it
    passed: tuple[Passed, ...]  # what could not be taken in
    is_same: bool  # whether the snapshot before it of the same folder holds the very same


@value
class PathState:
    """What stands at one path, in a snapshot or on disk."""

    kind: str  # file, symlink; left-out: something that is not held
    mode: int  # permission bits; 0: of what has none
    blob: BlobId | None  # a file's bytes, a link's text; None: left-out, or nobody has looked


@value
class SnapshotChange:
    """One path that is not the same in two snapshots, or in one and on disk."""

    path: str
    before: PathState | None  # None: nothing
    after: PathState | None


@value
class Restored:
    """What a restore did, or would do."""

    changes: tuple[SnapshotChange, ...]  # carried out: from what stood there to what the snapshot holds
    left: tuple[SnapshotChange, ...]  # that differ, and are no business of a restore: links, and what is not held
    above: tuple[SnapshotChange, ...]  # that nobody asked for, and for which files below were left: a link, a file
    lost: frozenset[str]  # paths of what was left of which the store has lost the bytes that the snapshot held
    outcome: CallOutcome | None  # None: a dry run, or nothing differs
    passed: tuple[Passed, ...]  # what could not be compared


def create(
    journal: Journal, scope: str, *, title: str, who: str, limits: Limits | None = None
) -> tuple[SnapshotTaken, Looking]:
    """Record what stands in the folder `scope` ("": the workspace), and return also the look that it took.

    Raises what paths raise, SnapshotIncomplete where a limit was reached, and what Journal.commit raises.
    """
    with journal.tree.locate(scope or os.curdir) as spot:
        scope = "" if spot.path == os.curdir else spot.path
        found = look_at(spot)
        if found is not None and not stat.S_ISDIR(found.st_mode):
            raise PathInvalid(scope, "not a directory; a snapshot is of a folder")
    path = os.fsencode(scope)
    meanwhile = Meanwhile(journal)
    look = Looking(journal)
    for _ in range(_TRIES):
        pieces = Pieces(journal)
        survey = look.survey(pieces.keep, limits)
        survey.run(path)
        with _followed(journal, survey, pieces, meanwhile, path) as (batch, followed):
            trees = followed
            lost = _lost(journal, trees)
            if lost is None:
                look.looks.forget_trees()
                trees = Trees(survey, path)
                lost = _lost(journal, trees)
            if lost:
                # A cleaning has taken them since they were last looked at.
                look.distrust(lost)
                continue
            for encoded in trees.new.values():
                batch.blob(encoded)
            snapshot = Snapshot(
                number=journal.store.index.next_snapshot(),
                time=now(),
                root=trees.root,
                path=path or None,
                who=who,
                title=title,
            )
            before = _newest(journal, scope)
            name = batch.record(snapshot)
            journal.commit(batch, ())
        if not who:
            look.baseline = Baseline(snapshot.number, snapshot.root)
        if survey.is_news or trees.new or not who:
            look.save()
        taken = SnapshotTaken(
            view=_view(snapshot, name),
            files=survey.files,
            passed=tuple(dict.fromkeys(survey.passed)),
            is_same=before is not None and before.root == snapshot.root,
        )
        return taken, look
    raise SnapshotIncomplete("what was stored of it was cleaned away in the meantime; try again")


@contextmanager
def _followed(
    journal: Journal, survey: Survey, pieces: Pieces, meanwhile: Meanwhile, scope: bytes
) -> Iterator[tuple[Batch, Trees]]:
    """Hold the writer lock, with a survey that holds all of each call; give a batch to fill, and the survey's trees.

    Where something was recorded since it began, it looks there again. If that takes long, it does so beside others, so
    that nobody waits; at last with the lock all the same, if something more came each time. Raises SnapshotIncomplete,
    and what surveys, Pieces and Journal.writing raise.
    """
    trees: Trees | None = None
    for left in reversed(range(_TRIES)):
        _refuse_part(survey)
        pieces.flush()
        trees = Trees(survey, scope, trees)
        with journal.writing() as batch:
            paths = meanwhile.paths(survey.looks)
            may_hold = not left or survey.is_soon_done(paths)
            if paths and may_hold:
                pieces.hurry()
                survey.again(paths)
                _refuse_part(survey)
                pieces.flush()
                trees = Trees(survey, scope, trees)
            if may_hold:
                yield batch, trees
                return
        survey.again(paths)


def _refuse_part(survey: Survey) -> None:
    """Raise SnapshotIncomplete where a survey has reached a limit."""
    if not survey.is_whole:
        raise SnapshotIncomplete(survey.passed[-1].reason)


def _lost(journal: Journal, trees: Trees) -> set[BlobId] | None:
    """Return the blobs of files that new trees name and the store has not; None: a tree that is to be kept is gone."""
    if not _are_held(journal, trees.kept):
        return None
    return {blob for blob in trees.files if not journal.store.has(blob)}


def _are_held(journal: Journal, trees: Iterable[BlobId]) -> bool:
    """Return whether something holds each of the trees, and so all below them.

    A snapshot that was given up may have been the last that did; then a cleaning may have taken some of it.
    """
    return all(journal.store.index.refs(tree) for tree in trees)


def listed(journal: Journal) -> list[SnapshotView]:
    """Return every snapshot that has not been given up, oldest first."""
    return list(_views(journal, journal.store.index.snapshots()))


def find(journal: Journal, number: int) -> SnapshotView:
    """Return one snapshot. Raises NoSuchName."""
    for view in _views(journal, (row for row in journal.store.index.snapshots() if row.number == number)):
        return view
    raise NoSuchName(str(number), "snapshot")


def listing(journal: Journal, number: int) -> Iterator[tuple[str, PathState]]:
    """Yield every path of a snapshot that is no folder, relative to the workspace.

    Raises NoSuchName, SnapshotUnreadable.
    """
    view = find(journal, number)
    with naming(journal.store, (number, view.root)):
        for path, entry in tree_files(view.root, journal.store.blob, _prefix(view.path)):
            yield os.fsdecode(path), _state(entry)


def changes(
    journal: Journal,
    number: int,
    other: int | None = None,
    *,
    paths: Sequence[str] = (),
    limits: Limits | None = None,
) -> tuple[list[SnapshotChange], tuple[Passed, ...]]:
    """Return what differs between a snapshot and a later one (None: what stands there now), and what was passed over.

    Of all that both cover, or of what lies at or below `paths`. Raises NoSuchName, FileMissing, SnapshotIncomplete,
    SnapshotUnreadable, SnapshotsApart, and NotInSnapshot where nothing was or is at one of `paths`.
    """

    def shown(found: Iterator[TreeChange], inner: SnapshotView, *roots: BlobId | None) -> list[SnapshotChange]:
        for path in paths:
            _entries(inner, roots, load, path)
        return [
            change for change in map(_change, found) if not paths or any(_contains(path, change.path) for path in paths)
        ]

    view = find(journal, number)
    if other is not None:
        after = find(journal, other)
        inner = view if _contains(after.path, view.path) else after  # covers no more than the other
        load: Callable[[BlobId], bytes] = journal.store.blob
        with naming(journal.store, (number, view.root), (other, after.root)):
            roots = (_subtree(journal, view, after, inner.path), _subtree(journal, after, view, inner.path))
            return shown(tree_changes(*roots, load, _prefix(inner.path)), inner, *roots), ()
    trees, passed, _ = _now(journal, view.path, limits)
    load = _loader(journal, trees)
    root = None if trees is None else trees.root
    with naming(journal.store, (number, view.root)):
        return shown(tree_changes(view.root, root, load, _prefix(view.path)), view, view.root, root), passed


def plan_restore(journal: Journal, number: int, paths: Sequence[str] = (), *, limits: Limits | None = None) -> Restored:
    """Return what bringing a snapshot back would do, of all of it or of what lies at or below `paths`.

    A part is brought back as it would be with the whole: what stands above it by now counts, asked for or not. Nothing
    is changed. Raises what `changes` raises, NotInSnapshot where nothing was or is at one of `paths`, and NamesShared.
    """
    view = find(journal, number)
    trees, passed, looks = _now(journal, view.path, limits)
    now_root, load = None if trees is None else trees.root, _loader(journal, trees)
    done: list[SnapshotChange] = []
    lost: list[SnapshotChange] = []
    differing: list[str] = []
    above = _in_the_place_of(journal, view.path)
    with naming(journal.store, (number, view.root)):
        left = _not_held(view, now_root, load, paths)
        for change in tree_changes(now_root, view.root, load, _prefix(view.path)):
            shown = _change(change)
            differing += [] if change.after is None else [shown.path]
            if paths and not any(_contains(path, shown.path) for path in paths):
                above += [shown] if any(_contains(shown.path, path) for path in paths) else []
            elif not _may_change(change) or _is_blocked(journal, change):
                left.append(shown)
            elif isinstance(change.after, TreeEntry) and not journal.store.has(change.after.blob):
                lost.append(shown)
            else:
                done.append(shown)
        clashing = _clashing([*done, *left, *lost, *above])
        wanted = [change for change in done if change.path not in clashing]
        _see_names(journal, view, wanted, differing, looks)
    left += lost
    return Restored(
        changes=tuple(wanted),
        left=(*left, *(change for change in done if change.path in clashing)),
        above=tuple(change for change in above if change.path in clashing),
        lost=frozenset(change.path for change in lost),
        outcome=None,
        passed=passed,
    )


def as_spelt(journal: Journal, spelling: str, numbers: Sequence[int]) -> str | None:
    """Return the path as it is spelt, where a link by now leads elsewhere and one of the snapshots has it as it was.

    So a folder that has become a link hides nothing of what snapshots hold in it. None: the link is all that is meant.
    Raises NoSuchName, SnapshotUnreadable and what paths raise.
    """
    spelt = linked_spelling(journal, spelling)
    is_held = spelt is not None and any(_held(journal, find(journal, number), spelt) for number in numbers)
    return spelt if is_held else None


def carry_out(plan: Restored, call: Call, tree: Tree, progress: Progress = silent) -> CallOutcome:
    """Carry out a plan within a tracked call. Raises FileChanged where a file is not as it was when it was planned.

    So it does where a folder of its path has become a link since.
    """
    for done, change in enumerate(plan.changes):
        progress("changes", done, len(plan.changes))
        _check_unchanged(change, call, tree)
        if change.after is None:
            call.delete(change.path)
        elif change.after.blob is not None:
            call.restore(change.path, FileState(blob=change.after.blob, mode=change.after.mode))
    return call.commit()


def delete(journal: Journal, numbers: Sequence[int], *, who: str) -> list[SnapshotView]:
    """Give snapshots up, so that what only they hold may be cleaned away.

    What changed against the baseline is recorded before, as far as it can be read, and another one taken. Raises
    NoSuchName, and what `record_changes` raises.
    """
    with journal.reading() as store:
        baseline = store.index.baseline()
        is_baseline_among = baseline is not None and baseline.number in {find(journal, n).number for n in numbers}
    if is_baseline_among:
        from objstore.recording import renew_baseline

        renew_baseline(journal)

    def given_up() -> list[SnapshotView]:
        with journal.writing(makes_room=True) as batch:
            gone = [find(journal, number) for number in sorted(set(numbers))]
            batch.record(
                Expiry(time=now(), snapshots=tuple(view.number for view in gone), reason="snapshot deleted", who=who)
            )
            journal.commit(batch, ())
        return gone

    return with_reserve(journal, given_up)


# ---- inside


def _views(journal: Journal, rows: Iterable[HoldRow]) -> Iterator[SnapshotView]:
    """Yield the snapshots at those places that have not been given up."""
    for row in rows:
        if not row.expired:
            record, _ = journal.store.record(row.place)
            if isinstance(record, Snapshot):
                yield _view(record, row.id)


def _newest(journal: Journal, scope: str) -> SnapshotView | None:
    """Return the newest snapshot of a folder that was asked for; None: there is none."""
    rows = reversed(journal.store.index.snapshots())
    return next((view for view in _views(journal, rows) if view.path == scope and view.who), None)


def _now(journal: Journal, scope: str, limits: Limits | None) -> tuple[Trees | None, tuple[Passed, ...], Looks]:
    """Return the trees of what stands in a folder now (None: there is no such folder), and the look; nothing is stored.

    Between the two stands what was passed over.
    """
    path = os.fsencode(scope)
    look = Looking(journal)
    survey = look.survey(nothing_kept, limits)
    try:
        survey.run(path)
    except FileMissing:
        return None, (), look.looks
    _refuse_part(survey)
    trees = Trees(survey, path)
    if not _are_held(journal, trees.kept):
        look.looks.forget_trees()
        trees = Trees(survey, path)
    return trees, tuple(survey.passed), look.looks


def _loader(journal: Journal, trees: Trees | None) -> Callable[[BlobId], bytes]:
    new = {} if trees is None else trees.new

    def load(name: BlobId) -> bytes:
        found = new.get(name)
        return journal.store.blob(name) if found is None else found

    return load


def _subtree(journal: Journal, view: SnapshotView, other: SnapshotView, scope: str) -> BlobId | None:
    """Return the tree of the folder `scope`, of one of two snapshots, in the first (None: it has no such folder).

    Raises SnapshotsApart where that does not cover it.
    """
    if scope == view.path:
        return view.root
    covers = _contains(view.path, scope)
    found = entry_at(view.root, os.fsencode(_inside(scope, view.path)), journal.store.blob) if covers else None
    if not covers or isinstance(found, LeftOut):
        raise SnapshotsApart(view.number, view.path, other.number, other.path)
    return found.blob if isinstance(found, TreeEntry) and found.is_folder else None


def _held(journal: Journal, view: SnapshotView, path: str) -> bool:
    """Return whether a snapshot has a file or a folder at the path, or is of a folder there or below it."""
    if _contains(path, view.path):
        return True
    if not _contains(view.path, path):
        return False
    with naming(journal.store, (view.number, view.root)):
        found = _entry_in(journal, view, path)
    return found is not None and (found.is_folder or found.is_file)


def _entry_in(journal: Journal, view: SnapshotView, path: str) -> TreeEntry | None:
    """Return what a snapshot holds at a path in its folder."""
    found = entry_at(view.root, os.fsencode(_inside(path, view.path)), journal.store.blob)
    return found if isinstance(found, TreeEntry) else None


def _inside(path: str, scope: str) -> str:
    return path[len(scope) :].strip("/")


def _not_held(
    view: SnapshotView, now_root: BlobId | None, load: Callable[[BlobId], bytes], paths: Sequence[str]
) -> list[SnapshotChange]:
    """Return those of `paths` that are left out then and now. Raises NotInSnapshot."""
    left: list[SnapshotChange] = []
    for path in paths:
        if _contains(path, view.path):
            continue
        before, after = _entries(view, (now_root, view.root), load, path)
        if isinstance(before, LeftOut) and isinstance(after, LeftOut):
            left.append(SnapshotChange(path=path, before=_state(before), after=_state(after)))
    return left


def _entries(
    view: SnapshotView, roots: Sequence[BlobId | None], load: Callable[[BlobId], bytes], path: str
) -> list[TreeEntry | LeftOut | None]:
    """Return what each of the trees of a snapshot's folder has at a path; of the folder, or one above it, nothing.

    Raises NotInSnapshot where the path is another one and none has anything there.
    """
    inside = os.fsencode(_inside(path, view.path)) if _contains(view.path, path) else b""
    found = [entry_at(root, inside, load) if inside else None for root in roots]
    if not _contains(path, view.path) and all(entry is None for entry in found):
        files = [os.fsdecode(file) for file, _ in tree_files(view.root, load, _prefix(view.path))]
        folders = dict.fromkeys(file.rpartition("/")[0] for file in files if "/" in file)
        near = paths_near(files, path, _MOST_NEAR) or paths_near(folders, path, _MOST_NEAR)
        raise NotInSnapshot(path, view.number, near)
    return found


def _may_change(change: TreeChange) -> bool:
    """Return whether a restore may carry the change out: both sides are regular files of the user's, or nothing."""
    if any(map(is_reserved, os.fsdecode(change.path).split("/"))):
        return False
    return all(side is None or (isinstance(side, TreeEntry) and side.is_file) for side in (change.before, change.after))


def _is_blocked(journal: Journal, change: TreeChange) -> bool:
    """Return whether a file would have to come where somebody else's folders stand, with no file in them.

    Trees don't hold such folders.
    """
    if change.before is not None or change.after is None:
        return False
    with suppress(OSError, PathError):
        if stat.S_ISDIR(os.lstat(change.path, dir_fd=journal.tree.fd).st_mode):
            with journal.tree.locate(os.fsdecode(change.path), as_spelt=False) as spot:
                return not all(map(journal.store.index.made_folder, stands_below(spot)[1]))
    return False


def _in_the_place_of(journal: Journal, scope: str) -> list[SnapshotChange]:
    """Return what stands where a snapshot's folder was, or one above it, and is no folder: one change, or none.

    A look into that folder finds nothing there, and the snapshot's tree tells of none of these.
    """
    for path in folders_of(_prefix(scope)):
        with suppress(OSError):
            mode = os.lstat(path, dir_fd=journal.tree.fd).st_mode
            if not stat.S_ISDIR(mode):
                kind = "symlink" if stat.S_ISLNK(mode) else "file" if stat.S_ISREG(mode) else "left-out"
                found = PathState(kind=kind, mode=stat.S_IMODE(mode) if kind == "file" else 0, blob=None)
                return [SnapshotChange(path=os.fsdecode(path), before=found, after=None)]
    return []


def _see_names(
    journal: Journal, view: SnapshotView, wanted: Sequence[SnapshotChange], differing: Sequence[str], looks: Looks
) -> None:
    """See that a file with several names is to be what the snapshot holds at each of them. Raises NamesShared.

    It is written in place, and what one of them gets shows in all, also where nothing was to change. `differing`: where
    something else stands than the snapshot holds; the look may have left it out.
    """
    shared: dict[FileId, SnapshotChange] = {}
    for change in wanted:
        found = None if change.before is None or change.after is None else _seen(journal.tree, change.path)
        if found is not None and found.st_nlink > 1:
            shared.setdefault(file_id(found), change)
    if not shared:
        return
    names = map(os.fsdecode, looks.names_of({inode for _, inode in shared}))
    for path in dict.fromkeys([*names, *differing]):
        found = _seen(journal.tree, path)
        one = None if found is None else shared.get(file_id(found))
        held = None if one is None or not _contains(view.path, path) else _entry_in(journal, view, path)
        if one is not None and held is not None and held.is_file and _state(held) != one.after:
            raise NamesShared(one.path, path)


def _seen(tree: Tree, path: str) -> os.stat_result | None:
    """Return what the system says of what stands at a path, no link followed (None: nothing does)."""
    try:
        return os.lstat(path, dir_fd=tree.fd)
    except OSError:
        return None


def _clashing(found: Sequence[SnapshotChange]) -> set[str]:
    """Return the paths that can't be written because a file would have to give way to a folder, or the reverse."""
    paths = {change.path for change in found}
    clashing = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above:
            if above in paths:
                clashing |= {path, above}
            above = above.rpartition("/")[0]
    return clashing


def _check_unchanged(change: SnapshotChange, call: Call, tree: Tree) -> None:
    found, was = call.state(change.path), change.before
    link = link_on(tree, os.fsencode(change.path))  # after the call has found its way, which it keeps to
    is_other = (None if found is None else (found.blob, found.mode)) != (None if was is None else (was.blob, was.mode))
    if link or is_other:
        raise FileChanged(change.path, link)


def _contains(folder: str, path: str) -> bool:
    return folder in {"", path} or path.startswith(folder + "/")


def _prefix(scope: str) -> bytes:
    return beginning(os.fsencode(scope))


def _change(change: TreeChange) -> SnapshotChange:
    return SnapshotChange(
        path=os.fsdecode(change.path),
        before=None if change.before is None else _state(change.before),
        after=None if change.after is None else _state(change.after),
    )


def _state(entry: TreeEntry | LeftOut) -> PathState:
    if isinstance(entry, LeftOut):
        return PathState(kind="left-out", mode=0, blob=None)
    if entry.is_file:
        return PathState(kind="file", mode=stat.S_IMODE(entry.mode), blob=entry.blob)
    return PathState(kind="symlink", mode=0, blob=entry.blob)


def _view(snapshot: Snapshot, name: RecordId) -> SnapshotView:
    return SnapshotView(
        id=name,
        number=snapshot.number,
        time=snapshot.time,
        path="" if snapshot.path is None else os.fsdecode(snapshot.path),
        root=snapshot.root,
        who=snapshot.who,
        title=snapshot.title,
    )
