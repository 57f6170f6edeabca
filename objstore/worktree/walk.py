"""A survey: one walk through the folder tree that says what stands there, and reads only what changed since the last.

Every folder is opened name by name from the root, and no link is followed, so nothing outside is ever read. What can't
be read, or is no file, is named, and the survey goes on; where a limit is reached it stops, and says that too.
"""

import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Final, NamedTuple

from objstore.errors import CasError, FileChanged, FileMissing, PermissionRefused
from objstore.fastclass import field, value, variable
from objstore.fs.confined_path import ResolvedPath, Tree, read_at
from objstore.fs.content_source import FileSource, Source
from objstore.fs.disk import failure, is_absence
from objstore.fs.file_state import state_at
from objstore.fs.reserved_names import is_reserved
from objstore.fs.stat_signature import StatSignature, pack_signatures, read_signature_fields
from objstore.model.basic_types import Progress, ignore_progress
from objstore.model.ids import BlobId, blob_id
from objstore.model.large_file_placeholder import is_placeholder
from objstore.model.relpath import folders_above, is_within, joined
from objstore.worktree.changed_dirs import changed_folders, key_of
from objstore.worktree.gitignore import GIT_IGNORE_FILE, IGNORE_FILE, TAGS, Rules
from objstore.worktree.stat_cache import UNKNOWN, CachedFolder, ChangedNames, StatCache

__all__ = ["COARSEST_TIMESTAMP_NS", "Keep", "ReadFile", "ScanLimits", "SkippedPath", "TreeWalk"]


class ReadFile(NamedTuple):
    """A file or link that a survey has read."""

    path: bytes
    text: bytes  # its bytes; of a large file, its stand-in
    blob: BlobId
    base: BlobId | None  # what it held when it was last looked at; None: that is not known
    source: Source | None  # of a stand-in: where the bytes are


Keep = Callable[[ReadFile], None]
"""Takes what a survey has read. May raise FileChanged or FileMissing where that is not there any more."""

_READING: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS: Final = re.compile(r"\.cas[.-][0-9a-f]{16}")
"""What this program itself leaves in a folder for a moment: a staged file, a store being made."""

_RULING: Final = {IGNORE_FILE, GIT_IGNORE_FILE, *TAGS}
"""Files that say what is looked at."""

_FEW: Final = 500
"""Names that are looked at within a few milliseconds."""

_UNSEEN: Final = StatSignature(0, 0, 0, 0, stat.S_IFREG)
"""What is kept of a file that the system tells nothing of."""

COARSEST_TIMESTAMP_NS: Final = 2_000_000_000
"""Nanoseconds: the tick of the coarsest file system, for folders on another one than the store."""


@value
class ScanLimits:
    """How much one survey may take. What lies beyond is not looked at, and that is said."""

    files: int = 1_000_000
    bytes: int = 16 << 30  # read
    seconds: float = 3600


@value
class SkippedPath:
    """A place that a survey passed over though no rule says so."""

    path: str  # "": the survey as a whole
    reason: str


@variable
class _Names:
    """The names in one folder, sorted out."""

    files: list[bytes] = field(default_factory=list)  # and links
    folders: list[bytes] = field(default_factory=list)
    left_out: list[bytes] = field(default_factory=list)


class TreeWalk:
    """One walk through a folder and all below it."""

    def __init__(
        self,
        tree: Tree,
        stat_cache: StatCache,
        *,
        clock: int,
        keep: Keep,
        gitignored: bool = True,
        limits: ScanLimits | None = None,
        progress: Progress = ignore_progress,
        is_covered: Callable[[bytes, bytes], bool] = lambda _, __: False,
    ) -> None:
        """Take what is known from the last look, to be brought up to date, and the file system's time now.

        `keep` is given every file that is read. `gitignored`: whether what `.gitignore` files name is covered too.
        `progress` is told of the files in folders that have to be looked into, as far as is known how many there are.
        `is_covered`: whether a folder, given with a tag that stands in it, was covered before that tag came, as far as
        others than the looks know.
        """
        self._tree: Final = tree
        self._clock: Final = clock
        self._keep: Final = keep
        self._rule_files: Final = (IGNORE_FILE,) if gitignored else (GIT_IGNORE_FILE, IGNORE_FILE)
        self._limits: Final = limits or ScanLimits()
        self._progress: Final = progress
        self._seen = 0  # files that `progress` was told of
        self._due = 0  # how many there are, as far as that is known
        self._is_covered: Final = is_covered
        self._device: Final = os.fstat(tree.fd).st_dev
        self._scope = b""
        self._above_scope = Rules()
        self._until = 0.0
        self._read = 0
        self._count = 0  # of the files in folders that were looked into
        self._rules: dict[bytes, Rules] = {}  # that hold in each folder, by path
        self.stat_cache: Final = stat_cache
        self.is_news = False  # whether there is anything to keep for the next look
        self.unreadable: set[bytes] = set()  # folders that are there and can't be looked into, or were not
        self._refusals: dict[bytes, CasError] = {}  # why folders can't be
        self.passed: list[SkippedPath] = []

    @property
    def is_whole(self) -> bool:
        """Return whether no limit was reached."""
        return self._until >= 0

    @property
    def files(self) -> int:
        """Return how many files and links there are."""
        return self.stat_cache.files(self._scope)

    def glance(self, scope: bytes = b"") -> list[bytes]:
        """Return the known folders at and below `scope` that have to be looked into; the others are as they were."""
        sure, unsure = self.stat_cache.folder_signatures(scope)
        return unsure + changed_folders(self._tree.fd, sure)

    def is_as_known(self, scope: bytes, suspects: Iterable[bytes]) -> bool:
        """Return whether nothing is left to look into or to tell in a folder of which a glance has found `suspects`."""
        known = self.stat_cache.get(scope)
        if known is None or set(suspects) or self.stat_cache.unsettled(scope):
            return False
        return known.rules == Rules(self._rules_above(scope), _name(scope), known.texts).fingerprint

    def run(self, scope: bytes = b"", *, suspects: Iterable[bytes] | None = None) -> None:
        """Bring up to date what is known of the folder at `scope` (b"": the root).

        Raises FileMissing, and PermissionRefused or DiskFailed where it can't be looked into.

        `suspects`: what a glance has found; None: it is still to be taken.
        """
        self._scope = scope
        self._until = time.monotonic() + self._limits.seconds
        todo = set(self.glance(scope) if suspects is None else suspects)
        above = self._rules_above(scope)
        known = self.stat_cache.get(scope)
        if known is None or known.rules != Rules(above, _name(scope), known.texts).fingerprint:
            todo.add(scope)
        self._above_scope = above
        if self._progress is not ignore_progress:
            self._progress("files", 0, 0)  # it begins; how many there are takes a while to tell
            self._seen, self._due = 0, self._tally(todo)
        queue = sorted(todo)
        while queue and self.is_whole:
            path = heappop(queue)
            if path != scope and not self._is_listed(path):
                self._drop(path)
                continue
            for inner in self._examine(path):
                if inner not in todo:
                    todo.add(inner)
                    heappush(queue, inner)
            self._check_limits()
        for path in queue:
            self.unreadable.add(path)
            self._rescan_parent_next_time(path)
        if self.is_whole and scope not in self.stat_cache:
            raise self._refusals.get(scope) or FileMissing(os.fsdecode(scope) or self._tree.root)

    def is_quick_rescan(self, paths: Collection[bytes]) -> bool:
        """Return whether to look `again` at these files takes a few milliseconds, so that others may wait for it."""
        if any(path.rpartition(b"/")[2] in _RULING for path in paths):
            return False  # who knows what they rule in
        known = [look for path in self._around(paths) if (look := self.stat_cache.get(path)) is not None]
        return len(paths) + sum(len(look.names) + len(look.folders) for look in known) <= _FEW

    def again(self, paths: Iterable[bytes]) -> None:
        """Look again, after a run, into the folders of those files that it covered; and where one is gone, around it.

        Raises as `run`.
        """
        todo = self._around(paths)
        # What is still so is told again.
        self.passed = [place for place in self.passed if todo.isdisjoint(_self_and_above(os.fsencode(place.path)))]
        self.run(self._scope, suspects=todo)

    # ---- folders that may have changed

    def _around(self, paths: Iterable[bytes]) -> set[bytes]:
        """Return the folders of the files, as far as they are covered; for one that came since, where it must be."""
        todo = set[bytes]()
        for path in paths:
            known = next((folder for folder in folders_above(path) if folder in self.stat_cache), self._scope)
            if is_within(known, self._scope):
                todo.add(known)
        return todo

    def _is_listed(self, path: bytes) -> bool:
        """Return whether the folder above still has this one."""
        parent = self.stat_cache.get(path.rpartition(b"/")[0])
        return parent is not None and not parent.is_incomplete and path.rpartition(b"/")[2] in parent.folders

    def _drop(self, path: bytes) -> None:
        self.is_news |= self.stat_cache.drop(path)

    def _examine(self, path: bytes) -> list[bytes]:
        """Look into a folder; return those in it that are to be looked into too."""
        above = self._above_scope if path == self._scope else self._rules_in(path.rpartition(b"/")[0])
        with self._opened(path) as fd:
            if fd is None:
                self._drop(path)
                # What it was in is not as it was, either, where nobody knows that yet.
                return [] if path == self._scope or path in self.unreadable else [path.rpartition(b"/")[0]]
            old = self.stat_cache.get(path)
            try:
                look, rules = self._looked_into(fd, path, above, old)
            except OSError as error:
                self._refuse(path, error)
                self._drop(path)
                return []
        self._rules[path] = rules
        self.stat_cache.put(look)
        self.is_news = True
        for name in set(() if old is None else old.folders) - set(look.folders):
            self._drop(joined(path, name))
        if look.is_incomplete:
            return []
        is_ruled_anew = old is None or old.rules != look.rules
        inner = [joined(path, name) for name in look.folders]
        return [folder for folder in inner if is_ruled_anew or folder not in self.stat_cache]

    def _rules_in(self, path: bytes) -> Rules:
        """Return the rules that hold in a folder that is known."""
        # From the folder up to the first whose rules are known, then down again: by steps, however deep it lies.
        unknown: list[bytes] = []
        rules = self._rules.get(path)
        while rules is None:
            unknown.append(path)
            if path == self._scope:
                rules = self._above_scope
            else:
                path = path.rpartition(b"/")[0]
                rules = self._rules.get(path)
        for folder in reversed(unknown):
            look = self.stat_cache.get(folder)
            rules = self._rules[folder] = Rules(rules, _name(folder), () if look is None else look.texts)
        return rules

    def _looked_into(self, fd: int, path: bytes, above: Rules, old: CachedFolder | None) -> tuple[CachedFolder, Rules]:
        own = os.fstat(fd)
        told = len(self.passed)
        with os.scandir(fd) as found:
            entries = [(entry.name, _kind(entry)) for entry in found]
        there = {os.fsencode(entry) for entry, kind in entries if kind == "file"}
        texts = [self._text(fd, path, file) for file in self._rule_files if file in there]
        rules = Rules(above, _name(path), texts)
        for spelling in rules.refused:
            self._pass(path, f"a line in its ignore files is invalid: {spelling}")
        is_incomplete = self._is_cut(fd, path, there, above, old)
        names = _Names() if is_incomplete else self._sorted_out(path, entries, rules)
        known = {} if old is None else old.files()
        files, facts, blobs = self._looked_at(fd, path, names.files, known, 0 if old is None else old.clock)
        self._count += len(files)
        is_same = (
            old is not None
            and (old.is_incomplete, old.folders, old.left_out) == (is_incomplete, names.folders, names.left_out)
            and [(name, was.mode, blob) for name, (was, blob) in known.items()]
            == [(name, now.mode, blob) for name, now, blob in zip(files, facts, blobs, strict=True)]
        )
        # Of what is ignored nothing is asked, and this decides what is.
        is_hidden = any(file in there and file in names.left_out for file in self._rule_files)
        youngest = max((own.st_ctime_ns, *(fact.ctime for fact in facts)))
        tick = 0 if own.st_dev == self._device else COARSEST_TIMESTAMP_NS
        return (
            CachedFolder(
                path=path,
                key=key_of(own),
                clock=self._clock - tick,
                # What was told is told again.
                needs_rescan=youngest >= self._clock - tick or len(self.passed) > told or is_hidden,
                is_incomplete=is_incomplete,
                is_fully_recorded=old is not None and is_same and old.is_fully_recorded,
                texts=texts,
                rules=rules.fingerprint,
                names=files,
                facts=pack_signatures(facts),
                blobs=b"".join(blobs),
                folders=names.folders,
                left_out=names.left_out,
                tree=old.tree if old is not None and is_same else b"",
                touched=_touched(old, known, names, zip(files, facts, blobs, strict=True)),
            ),
            rules,
        )

    def _is_cut(self, fd: int, path: bytes, there: set[bytes], above: Rules, old: CachedFolder | None) -> bool:
        tags = [tag for tag in TAGS if tag in there]
        if not tags or path in {b"", self._scope} or above.verdict(_name(path), is_folder=True) is False:
            return False
        if old is not None and not old.is_incomplete:
            return False  # what was covered stays so: a tag must not be a way to hide a change
        told = [tag for tag in tags if self._text(fd, path, tag).startswith(TAGS[tag])]
        return bool(told) and (old is not None or not all(self._is_covered(path, tag) for tag in told))

    def _sorted_out(self, path: bytes, entries: Iterable[tuple[str, str]], rules: Rules) -> _Names:
        names = _Names()
        for name, kind in sorted(entries):
            if is_reserved(name) or _OURS.fullmatch(name):
                continue
            spelt = os.fsencode(name)
            if rules.ignores(name, is_folder=kind == "folder"):
                names.left_out.append(spelt)
            elif kind == "folder":
                names.folders.append(spelt)
            elif kind == "file":
                names.files.append(spelt)
            else:
                names.left_out.append(spelt)
                self._pass(joined(path, spelt), "no file, link or folder")
        names.files.sort()
        names.folders.sort()
        names.left_out.sort()
        return names

    def _looked_at(
        self,
        fd: int,
        path: bytes,
        names: Iterable[bytes],
        known: Mapping[bytes, tuple[StatSignature, BlobId]],
        clock: int,
    ) -> tuple[list[bytes], list[StatSignature], list[BlobId]]:
        """Return the names that are still there, what is to be seen of each, and each one's blob.

        `known` is what was seen of them at `clock`.
        """
        files: list[bytes] = []
        facts: list[StatSignature] = []
        blobs: list[BlobId] = []
        for name in names:
            self._seen += 1
            self._due = max(self._seen, self._due)  # others may have come since they were counted
            self._progress("files", self._seen, self._due)
            try:
                now = StatSignature._make(read_signature_fields(os.lstat(name, dir_fd=fd)))
            except FileNotFoundError:
                continue
            except OSError as error:
                self._pass(joined(path, name), str(failure(error, os.fsdecode(joined(path, name)))))
                files.append(name)
                facts.append(_UNSEEN)
                blobs.append(UNKNOWN)
                continue
            was, blob = known.get(name, (None, None))
            if was != now or blob is None or blob == UNKNOWN or now.ctime >= clock:
                read = self._read_file(fd, joined(path, name), name, now, blob)
                if read is None:
                    continue
                now, blob = read
            files.append(name)
            facts.append(now)
            blobs.append(blob)
        return files, facts, blobs

    def _read_file(
        self, fd: int, path: bytes, name: bytes, facts: StatSignature, known: BlobId | None
    ) -> tuple[StatSignature, BlobId] | None:
        """Return what is to be seen of the file and its blob (None: it is gone)."""
        if not self._may_read(facts.size):
            return facts, UNKNOWN
        source: Source | None = None
        try:
            if stat.S_ISLNK(facts.mode):
                text = os.readlink(name, dir_fd=fd)
                blob = blob_id(text)
            else:
                found = state_at(ResolvedPath(folder=fd, name=os.fsdecode(name), path=os.fsdecode(path), missing=()))
                if found is None:
                    return None
                blob, text = found[0].blob, found[1].content
                facts = StatSignature._make(read_signature_fields(found[1].stat))
                source = FileSource(self._tree, path, found[1].stat) if is_placeholder(text) else None
        except FileNotFoundError:
            return None
        except (OSError, CasError) as error:
            self._pass(path, str(error))
            return facts, UNKNOWN
        self._read += facts.size
        try:
            self._keep(ReadFile(path, text, blob, None if known == UNKNOWN else known, source))
        except (FileChanged, FileMissing) as error:
            self._pass(path, str(error))
            return facts, UNKNOWN
        return facts, blob

    def _tally(self, todo: Iterable[bytes]) -> int:
        """Return about how many files there are in folders that are to be looked into, and below those not yet known.

        Folders are listed for it, and nothing is read or remembered.
        """
        count, strange = 0, [path for path in todo if path not in self.stat_cache]
        for known in filter(None, map(self.stat_cache.get, todo)):
            count += len(known.names)
        passed, unreadable = len(self.passed), set(self.unreadable)
        waiting = [(path, self._above_scope) for path in strange]
        while waiting and count <= self._limits.files:
            path, above = waiting.pop()
            with self._opened(path) as fd:
                if fd is None:
                    continue
                with os.scandir(fd) as found:
                    entries = [(entry.name, _kind(entry)) for entry in found]
                there = {os.fsencode(entry) for entry, kind in entries if kind == "file"}
                rules = Rules(above, _name(path), [self._text(fd, path, f) for f in self._rule_files if f in there])
                if not self._is_cut(fd, path, there, above, None):
                    names = self._sorted_out(path, entries, rules)
                    count += len(names.files)
                    waiting += [(joined(path, folder), rules) for folder in names.folders]
        del self.passed[passed:]
        self.unreadable = unreadable
        return count

    # ---- what holds where

    def _rules_above(self, scope: bytes) -> Rules:
        """Return the rules that hold in the folder above `scope`. Raises FileMissing, PermissionRefused, DiskFailed."""
        rules = Rules(kind=b" ".join(self._rule_files))
        parts = scope.split(b"/") if scope else []
        for depth in range(len(parts)):
            path = b"/".join(parts[:depth])
            with self._opened(path) as fd:
                if fd is None:
                    raise self._refusals.get(path) or FileMissing(os.fsdecode(scope))
                texts = [text for file in self._rule_files if (text := self._text(fd, path, file))]
            rules = Rules(rules, os.fsdecode(path.rpartition(b"/")[2]), texts)
        return rules

    def _text(self, fd: int, path: bytes, name: bytes) -> bytes:
        spelt = os.fsdecode(name)
        try:
            return read_at(
                ResolvedPath(folder=fd, name=spelt, path=os.fsdecode(joined(path, name)), missing=())
            ).content
        except FileMissing:
            return b""
        except CasError as error:
            self._pass(joined(path, name), str(error))
            return b""

    # ---- limits, and what is passed over

    def _pass(self, path: bytes, reason: str) -> None:
        self.passed.append(SkippedPath(path=os.fsdecode(path), reason=reason))

    def _refuse(self, path: bytes, error: OSError) -> None:
        """Pass over a folder that is there, and can't be looked into now."""
        told = failure(error, os.fsdecode(path) or self._tree.root)
        self._refusals[path] = told
        self.unreadable.add(path)
        self._pass(path, "may not be read" if isinstance(told, PermissionRefused) else str(told))
        self._rescan_parent_next_time(path)

    def _rescan_parent_next_time(self, path: bytes) -> None:
        """Have the folder above looked into at the next look too: nothing there tells when this one can be read."""
        parent = self.stat_cache.get(path.rpartition(b"/")[0])
        if path and parent is not None:
            parent.needs_rescan = True

    def _check_limits(self) -> None:
        if self._count > self._limits.files:
            self._stop(f"there are more than {self._limits.files} files")
        elif time.monotonic() > self._until:
            self._stop(f"it took more than {self._limits.seconds:g} s")

    def _may_read(self, size: int) -> bool:
        if self.is_whole and self._read + size > self._limits.bytes:
            self._stop(f"more than {self._limits.bytes} bytes changed since the last scan")
        return self.is_whole

    def _stop(self, reason: str) -> None:
        self._until = -1.0
        self.passed.append(SkippedPath(path="", reason=f"the scan was stopped: {reason}"))

    @contextmanager
    def _opened(self, path: bytes) -> Iterator[int | None]:
        """Open the folder, name by name and following no link (None: none is there, or it can't be read)."""
        fd = self._tree.fd
        try:
            for name in path.split(b"/") if path else [b"."]:
                inner = os.open(name, _READING, dir_fd=fd)
                if fd != self._tree.fd:
                    os.close(fd)
                fd = inner
        except OSError as error:
            if fd != self._tree.fd:
                os.close(fd)
            if not is_absence(error):
                self._refuse(path, error)
            yield None
            return
        try:
            yield fd
        finally:
            os.close(fd)


def _touched(
    old: CachedFolder | None,
    known: Mapping[bytes, tuple[StatSignature, BlobId]],
    names: _Names,
    found: Iterable[tuple[bytes, StatSignature, BlobId]],
) -> ChangedNames | None:
    """Return what became otherwise in a folder; None: it was not settled, so all in it may be otherwise."""
    if old is None or old.is_incomplete or (not old.is_fully_recorded and old.touched is None):
        return None
    already = old.touched or ChangedNames(frozenset(), frozenset())
    before = {(name, was.mode, blob) for name, (was, blob) in known.items()}
    # Where a folder comes into view, a file may have stood when its name was first left out.
    others = (set(old.folders) ^ set(names.folders)) | (set(old.left_out) ^ set(names.left_out))
    files = {name for name, _, _ in before ^ {(name, now.mode, blob) for name, now, blob in found}}
    return ChangedNames(already.names | files | others, already.gone | others)


def _kind(entry: "os.DirEntry[str]") -> str:
    """Return what a name is: file (or link), folder, other."""
    try:
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        if entry.is_symlink() or entry.is_file(follow_symlinks=False):
            return "file"
    except OSError:
        return "file"  # the look at it will tell
    return "other"


def _self_and_above(path: bytes) -> tuple[bytes, bytes]:
    return path, path.rpartition(b"/")[0]


def _name(path: bytes) -> str:
    return os.fsdecode(path.rpartition(b"/")[2])
