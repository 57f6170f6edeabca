"""Walk the folder tree, bring the stat cache up to date, and read only the files that changed since the last scan.

The walk opens every folder name by name from the root and follows no symlink, so it takes no file from outside the
workspace. It reports files that it can't read and special files, and goes on; at a limit it stops, and reports that.
"""

import os
import re
import stat
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import ExitStack, contextmanager
from heapq import heappop, heappush
from typing import Final

from objstore.disk.fs.confined_path import ResolvedPath, Tree
from objstore.disk.fs.content_source import FileSource, Source
from objstore.disk.fs.disk import failure, is_absence
from objstore.disk.fs.file_state import state_at
from objstore.disk.fs.reserved_names import is_reserved
from objstore.disk.fs.stat_signature import (
    FolderKey,
    StatSignature,
    changed_since,
    pack_signatures,
    read_signature_fields,
)
from objstore.disk.ignore_rules.gitignore import REBUILT_FOLDERS, TAGS, Rules, Verdict
from objstore.disk.ignore_rules.ignore_texts import IgnoreTexts
from objstore.disk.ignore_rules.rule_files import (
    RULE_FILES,
    IgnoreReader,
    RepositoryIndex,
    folder_at,
    nearest_repository,
)
from objstore.disk.ignore_rules.scan_rules import ScanRules
from objstore.model.basic_types import Progress, ignore_progress
from objstore.model.ids import BlobId, blob_id
from objstore.model.large_file_placeholder import is_placeholder
from objstore.model.relpath import folders_above, is_within, joined
from objstore.values.errors import CasError, FileChanged, FileMissing, PermissionRefused
from objstore.values.fastclass import NamedTuple, field, value, variable
from objstore.worktree.changed_dirs import changed_folders, key_of
from objstore.worktree.changed_files import FolderFiles, positions_apart
from objstore.worktree.stat_cache import UNKNOWN, CachedFolder, ChangedNames, Look, StatCache, is_among

__all__ = ["OTHER_KIND", "Keep", "ReadFile", "ScanLimits", "SkippedPath", "TreeWalk", "time_error"]


class ReadFile(NamedTuple):
    """A file or symlink that a walk has read."""

    path: bytes
    text: bytes  # its content; for a large file, its placeholder
    blob: BlobId
    base: BlobId | None  # its blob at the last scan; None: not known
    source: Source | None  # for a placeholder: where the bytes are


Keep = Callable[[ReadFile], None]
"""Take a file that a walk has read. May raise FileChanged or FileMissing if the file has changed or is gone."""

OTHER_KIND: Final = "no file, link or folder"
"""The reason for which a pipe or a socket is skipped."""

_OURS: Final = r"\.cas(?:[.-][0-9a-f]{16}|\.before-conversion)"
"""Names that this program itself uses for a moment: a staged file, a store that is being created or converted."""

_DECIDING_FILES: Final = {*RULE_FILES, *TAGS}
"""Files that decide what is scanned."""

_FEW: Final = 500
"""Names. A walk checks so many within a few milliseconds."""

_WORTH_TABLE: Final = 3_000
"""Files of one folder. For fewer, importing ctypes takes longer than the table saves."""

_UNSEEN: Final = StatSignature(0, 0, 0, 0, stat.S_IFREG)
"""The signature of a file for which lstat failed."""

_COARSEST_TICK_NS: Final = 2_000_000_000
"""Nanoseconds: the clock tick of the coarsest file system."""


def time_error(device: int, own: int) -> int:
    """Return how far the time of a file on a device may differ from those of the store's own device (ns)."""
    return 0 if device == own else _COARSEST_TICK_NS


@value
class ScanLimits:
    """The limits of one walk, which stops at the first of them and reports that."""

    files: int = 1_000_000
    bytes: int = 16 << 30  # read
    seconds: float = 3600


@value
class SkippedPath:
    """A path that a walk skipped though no ignore rule matches it."""

    path: str  # "": the walk as a whole
    reason: str


@variable
class _Names:
    """The names in one folder, by kind."""

    files: list[bytes] = field(default_factory=list)  # and symlinks
    folders: list[bytes] = field(default_factory=list)
    left_out: list[bytes] = field(default_factory=list)
    tracked: list[bytes] = field(default_factory=list)  # files and folders, ignored by git's rules, that its index has
    secrets: list[bytes] = field(default_factory=list)  # left out, because they look like secrets


@value
class _Listed:
    """What is in one folder, and the rules that apply there."""

    names: _Names
    rules: Rules
    texts: IgnoreTexts  # its ignore files
    rule_files: AbstractSet[bytes]  # their names
    is_incomplete: bool  # whether a tag file says that all of it can be rebuilt


class TreeWalk:
    """One walk through a folder and all below it."""

    def __init__(
        self,
        tree: Tree,
        stat_cache: StatCache,
        *,
        clock: int,
        keep: Keep,
        reader: IgnoreReader | None = None,
        limits: ScanLimits | None = None,
        progress: Progress = ignore_progress,
        is_covered: Callable[[bytes, bytes], bool] = lambda _, __: False,
    ) -> None:
        """Take the stat cache to bring up to date, and the file system's current time (ns).

        `keep` gets every file that is read. `reader`: says what is left out (None: rebuilt folders, and what
        `.casignore` files name). `progress` gets the number of files checked, and the number expected in the folders to
        list. `is_covered(folder, tag)`: whether the folder was scanned before the tag file appeared in it, by other
        sources than the stat cache.
        """
        self._tree: Final = tree
        self._clock: Final = clock
        self._keep: Final = keep
        self._limits: Final = limits or ScanLimits()
        self._progress: Final = progress
        self._seen = 0  # files reported to `progress`
        self._expected = 0  # files expected, as far as known
        self._is_covered: Final = is_covered
        self._device: Final = os.fstat(tree.fd).st_dev
        self._scope = b""
        self.skipped: list[SkippedPath] = []
        self._reader: Final = reader or IgnoreReader(tree, ScanRules())
        self._reader.report = self._skip
        self._above_scope = self._reader.base
        self._until = 0.0
        self._read = 0
        self._count = 0  # files in the folders that were listed
        self._rules: dict[bytes, Rules] = {}  # the rules that apply in each folder, by path
        self.stat_cache: Final = stat_cache
        self.has_changes = False  # whether the stat cache has changed
        self.unreadable: set[bytes] = set()  # existing folders that could not be listed, or were not because of a limit
        self._errors: dict[bytes, CasError] = {}  # why folders could not be listed
        self._is_git_checked = False

    @property
    def is_whole(self) -> bool:
        """Whether no limit was reached."""
        return self._until >= 0

    @property
    def files(self) -> int:
        """The number of files and symlinks."""
        return self.stat_cache.files(self._scope)

    def suspects(self, scope: bytes = b"") -> list[bytes]:
        """Return the cached folders at and below `scope` that must be listed; the others have not changed."""
        self._check_repositories()
        signatures, to_list = self.stat_cache.folder_signatures(scope)
        seen: dict[bytes, bytes] = {}
        changed = changed_folders(self._tree.fd, signatures, seen=seen)
        for path, facts in seen.items():
            cached = self.stat_cache.get(path)
            if cached is not None:
                self.stat_cache.looks[path] = Look(cached, self._clock, facts)
        return to_list + changed

    def is_unchanged(self, scope: bytes, suspects: Iterable[bytes]) -> bool:
        """Return whether nothing at or below `scope` needs to be listed or recorded, given its suspects."""
        self._scope = scope
        known = self.stat_cache.get(scope)
        if known is None or set(suspects) or self.stat_cache.not_fully_recorded(scope):
            return False
        return known.rules == self._cached_rules(known, self._rules_above(scope)).fingerprint

    def run(self, scope: bytes = b"", *, suspects: Iterable[bytes] | None = None) -> None:
        """Bring the stat cache up to date for the folder at `scope` (b"": the root) and everything below it.

        `suspects`: the folders to list first (None: those that the method `suspects` returns).
        Raises FileMissing, and PermissionRefused or DiskFailed if the folder can't be listed.
        """
        self._scope = scope
        self._until = time.monotonic() + self._limits.seconds
        self._check_repositories()
        todo = set(self.suspects(scope) if suspects is None else suspects)
        above = self._rules_above(scope)
        known = self.stat_cache.get(scope)
        if known is None or known.rules != self._cached_rules(known, above).fingerprint:
            todo.add(scope)
        self._above_scope = above
        if self._progress is not ignore_progress:
            self._progress("files", 0, 0)  # first, because counting takes a while
            self._seen, self._expected = 0, self._estimate_files(todo)
        queue = sorted(todo)
        while queue and self.is_whole:
            path = heappop(queue)
            if path != scope and not self._is_listed(path):
                self._drop(path)
                continue
            for inner in self._scan_folder(path):
                if inner not in todo:
                    todo.add(inner)
                    heappush(queue, inner)
            self._check_limits()
        for path in queue:
            self.unreadable.add(path)
            self._rescan_parent_next_time(path)
        if self.is_whole and scope not in self.stat_cache:
            raise self._errors.get(scope) or FileMissing(os.fsdecode(scope) or self._tree.root)

    def is_quick_rescan(self, paths: Collection[bytes]) -> bool:
        """Return whether a `rescan` of these files takes a few milliseconds, so that it may hold the writer lock."""
        if any(path.rpartition(b"/")[2] in _DECIDING_FILES for path in paths):
            return False  # a change in them may include any number of files
        cached = [found for path in self._folders_of(paths) if (found := self.stat_cache.get(path)) is not None]
        return len(paths) + sum(len(folder.names) + len(folder.folders) for folder in cached) <= _FEW

    def rescan(self, paths: Iterable[bytes]) -> None:
        """List the folders of the given files again after a run, as far as the run covered them.

        For a file in a folder that is not cached, that is the nearest cached folder above. Raises what `run` raises.
        """
        todo = self._folders_of(paths)
        # The rescan reports these again if they are still skipped.
        self.skipped = [place for place in self.skipped if todo.isdisjoint(_self_and_above(os.fsencode(place.path)))]
        self.run(self._scope, suspects=todo)

    # ---- folders that may have changed

    def _folders_of(self, paths: Iterable[bytes]) -> set[bytes]:
        """Return the nearest cached folder above each file, as far as the run covered it."""
        todo = set[bytes]()
        for path in paths:
            known = next((folder for folder in folders_above(path) if folder in self.stat_cache), self._scope)
            if is_within(known, self._scope):
                todo.add(known)
        return todo

    def _is_listed(self, path: bytes) -> bool:
        """Return whether the parent folder, as cached, still contains this one."""
        parent = self.stat_cache.get(path.rpartition(b"/")[0])
        return parent is not None and not parent.is_incomplete and path.rpartition(b"/")[2] in parent.folders

    def _drop(self, path: bytes) -> None:
        self.has_changes |= self.stat_cache.drop(path)

    def _scan_folder(self, path: bytes) -> list[bytes]:
        """List a folder and put it into the stat cache; return the folders to list next."""
        above = self._above_scope if path == self._scope else self._rules_in(path.rpartition(b"/")[0])
        with self._opened(path) as fd:
            if fd is None:
                self._drop(path)
                # It is gone, so its parent has changed too; list the parent, which may not be a suspect.
                return [] if path == self._scope or path in self.unreadable else [path.rpartition(b"/")[0]]
            old = self.stat_cache.get(path)
            try:
                folder, rules = self._read_folder(fd, path, above, old)
            except OSError as error:
                self._skip_folder(path, error)
                self._drop(path)
                return []
        self._rules[path] = rules
        self.stat_cache.put(folder)
        self.has_changes = True
        for name in set(() if old is None else old.folders) - set(folder.folders):
            self._drop(joined(path, name))
        if folder.is_incomplete:
            return []
        have_rules_changed = old is None or old.rules != folder.rules
        inner = [joined(path, name) for name in folder.folders]
        return [each for each in inner if have_rules_changed or each not in self.stat_cache]

    def _rules_in(self, path: bytes) -> Rules:
        """Return the rules that apply in a cached folder."""
        # Go up to the first folder whose rules are known, then down again. A loop, because a path may be very deep.
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
            cached = self.stat_cache.get(folder)
            rules = self._rules[folder] = rules if cached is None else self._cached_rules(cached, rules)
        return rules

    def _cached_rules(self, cached: CachedFolder, above: Rules) -> Rules:
        """Return the rules in a cached folder, from those of the folder above."""
        return self._reader.rules_in(
            cached.path,
            above,
            cached.texts,
            is_ignored=self._is_ignored(cached.path),
            is_top=cached.path in self.stat_cache.repositories,
        )

    def _is_ignored(self, path: bytes) -> bool:
        """Return whether git ignores a folder, and it is scanned only for what git's index has in it."""
        if path == self._scope:
            return False  # it was named
        above = self.stat_cache.get(path.rpartition(b"/")[0])
        return above is not None and bool(above.tracked) and path.rpartition(b"/")[2] in above.tracked

    def _read_folder(self, fd: int, path: bytes, above: Rules, old: CachedFolder | None) -> tuple[CachedFolder, Rules]:
        own = os.fstat(fd)
        skipped_before = len(self.skipped)
        listed = self._same_names(fd, path, key_of(own), above, old) or self._listed(fd, path, above, old)
        names, rules, texts, is_incomplete = listed.names, listed.rules, listed.texts, listed.is_incomplete
        for reason in rules.refused:
            self._skip(path, reason)
        # What the comparison saw counts as of then; a file that changed since has another signature at the next scan.
        look = self.stat_cache.looks.pop(path, None)
        if look is not None and (look.folder is not old or names.files is not old.names):
            look = None
        clock = self._clock if look is None else min(self._clock, look.clock)
        files, facts, blobs, differing = self._files_of(fd, path, names.files, old, look)
        self._count += len(files)
        is_same = (
            old is not None
            and (old.is_incomplete, old.folders, old.left_out) == (is_incomplete, names.folders, names.left_out)
            and not differing
        )
        # An ignored rule file has no cached signature, so a change of it would not show.
        is_rule_file_ignored = any(file in names.left_out for file in listed.rule_files)
        until = clock - time_error(own.st_dev, self._device)
        is_young = own.st_ctime_ns >= until or bool(changed_since(facts, until))
        return (
            CachedFolder(
                path=path,
                key=key_of(own),
                clock=until,
                # What was skipped now is to be reported by the next scan too.
                needs_rescan=is_young or len(self.skipped) > skipped_before or is_rule_file_ignored,
                is_incomplete=is_incomplete,
                is_fully_recorded=old is not None and is_same and old.is_fully_recorded,
                texts=texts,
                rules=rules.fingerprint,
                names=files,
                facts=facts,
                blobs=blobs,
                folders=names.folders,
                left_out=names.left_out,
                tracked=names.tracked,
                secrets=names.secrets,
                tree=old.tree if old is not None and is_same else b"",
                touched=_touched(old, names, differing),
            ),
            rules,
        )

    def _listed(self, fd: int, path: bytes, above: Rules, old: CachedFolder | None) -> _Listed:
        """List an open folder, and sort its names by its rules."""
        files, others = _kinds(fd)
        file_names = _encoded(files)
        deciding = {name for name in _DECIDING_FILES if is_among(name, file_names)}
        has_git = is_among(b".git", file_names) or (".git", "folder") in others or (".git", "other") in others
        rules, texts = self._rules_of(fd, path, above, deciding, has_git=has_git)
        is_incomplete = self._is_rebuilt_folder(fd, path, deciding, above, old)
        names = _Names() if is_incomplete else self._sort_names(path, others, rules, old, file_names)
        if old is not None and names.left_out:
            special = {os.fsencode(name) for name, kind in others if kind == "other"}  # no rule leaves these out
            left_out = [name for name in names.left_out if name not in special]
            covered = [name for name in left_out if is_among(name, old.names) or is_among(name, old.folders)]
            self.stat_cache.newly_left_out += [joined(path, name) for name in covered]
        return _Listed(
            names=names,
            rules=rules,
            texts=texts,
            rule_files=deciding.intersection(RULE_FILES),
            is_incomplete=is_incomplete,
        )

    def _same_names(
        self, fd: int, path: bytes, key: FolderKey, above: Rules, old: CachedFolder | None
    ) -> _Listed | None:
        """Return the names that an open folder had at its last scan, if no other can be in it now, nor be left out.

        A folder whose own times are the same holds the same names. To list very many takes as long as to compare them.
        """
        if old is None or old.is_incomplete or old.key != key or key.ctime >= old.clock or old.left_out or old.tracked:
            return None
        rule_files = {name for name in RULE_FILES if is_among(name, old.names)}
        rules, texts = self._rules_of(fd, path, above, rule_files, has_git=path in self.stat_cache.repositories)
        if rules.fingerprint != old.rules:
            return None
        names = _Names(files=old.names, folders=old.folders)
        return _Listed(names=names, rules=rules, texts=texts, rule_files=rule_files, is_incomplete=False)

    def _rules_of(
        self, fd: int, path: bytes, above: Rules, rule_files: Collection[bytes], *, has_git: bool
    ) -> tuple[Rules, IgnoreTexts]:
        """Return the rules of an open folder, and its ignore files. `rule_files`: the names of those, or more names."""
        has_git = has_git and self._reader.rules.uses_git
        repository = self._reader.repository(path) if has_git else None
        self.stat_cache.note_repository(path, None if repository is None else repository.key)
        texts = self._reader.texts(fd, path, rule_files, repository)
        is_ignored, is_top = self._is_ignored(path), repository is not None
        return self._reader.rules_in(path, above, texts, is_ignored=is_ignored, is_top=is_top), texts

    def _is_rebuilt_folder(
        self, fd: int, path: bytes, deciding: AbstractSet[bytes], above: Rules, old: CachedFolder | None
    ) -> bool:
        """Return whether a tag file says that a folder's contents can be rebuilt, so that they are not scanned."""
        tags = [tag for tag in TAGS if tag in deciding]
        if not tags or path in {b"", self._scope} or above.includes(path.rpartition(b"/")[2]):
            return False
        if old is not None and not old.is_incomplete:
            return False  # a scanned folder stays scanned: a tag file must not be a way to hide a change
        valid = [tag for tag in tags if self._reader.text(fd, path, tag).startswith(TAGS[tag])]
        return bool(valid) and (old is not None or not all(self._is_covered(path, tag) for tag in valid))

    def _sort_names(
        self,
        path: bytes,
        others: Iterable[tuple[str, str]],
        rules: Rules,
        old: CachedFolder | None,
        file_names: list[bytes],
    ) -> _Names:
        """Sort the names in a folder. `file_names`: of its files, ascending; `others`: all others, with their kinds."""
        names = _Names()
        new: Collection[bytes] = file_names
        if old is not None and old.rules == rules.fingerprint:
            # The same rules scan the same files; only of those that git ignores, its index may have others now.
            gone, appeared = positions_apart(old.names, file_names)
            tracked = [name for name in old.tracked if is_among(name, file_names)]
            new = [*tracked, *(file_names[at] for at in appeared if not is_among(file_names[at], old.tracked))]
            dropped = sorted({*gone, *(bisect_left(old.names, name) for name in tracked if is_among(name, old.names))})
            for start, end in zip([0, *(at + 1 for at in dropped)], [*dropped, len(old.names)], strict=True):
                names.files += old.names[start:end]  # the same objects, which are compared faster later
        folder = os.fsdecode(path)
        secrets, excluded = self._reader.rules.secrets, self._reader.rules.excluded
        for name, kind in sorted([*((os.fsdecode(name), "file") for name in new), *others]):
            if is_reserved(name) or (name.startswith(".cas") and re.fullmatch(_OURS, name)):
                continue
            encoded, is_folder = os.fsencode(name), kind == "folder"
            if secrets.leaves_out(name, folder, is_folder=is_folder):
                names.left_out.append(encoded)
                names.secrets.append(encoded)
                continue
            verdict = rules.verdict(encoded, is_folder=is_folder)
            if verdict is Verdict.IGNORED_BY_GIT and self._is_tracked(path, encoded, rules, old, is_folder=is_folder):
                verdict = Verdict.SCANNED
                names.tracked.append(encoded)
            if verdict is not Verdict.SCANNED or excluded.leaves_out(name, folder, is_folder=is_folder):
                names.left_out.append(encoded)
            elif is_folder:
                names.folders.append(encoded)
            elif kind == "file":
                names.files.append(encoded)
            else:
                names.left_out.append(encoded)
                self._skip(joined(path, encoded), OTHER_KIND)
        for found in (names.files, names.folders, names.left_out, names.tracked, names.secrets):
            found.sort()
        return names

    def _is_tracked(self, path: bytes, name: bytes, rules: Rules, old: CachedFolder | None, *, is_folder: bool) -> bool:
        """Return whether git's index has a name in a folder. The index is read only if it or the name is new."""
        index = rules.index
        if not isinstance(index, RepositoryIndex):
            return False
        is_known = index.path in self.stat_cache.repositories and index.path not in self.stat_cache.changed_indexes
        if is_known and old is not None and old.rules == rules.fingerprint:
            if name in old.tracked:
                return True
            if name in old.left_out:
                return False
        return index.has(joined(path, name), is_folder=is_folder)

    def _files_of(
        self, fd: int, path: bytes, names: list[bytes], old: CachedFolder | None, look: Look | None
    ) -> tuple[list[bytes], bytes, bytes, set[bytes]]:
        """Return the names, packed signatures and blobs of a folder's files, and the names of those that differ.

        `look`: what a comparison saw of the same names (None: they must be looked at).
        """
        if old is not None and len(names) >= _WORTH_TABLE:
            found = self._changed_files(fd, path, names, old, look)
            if found is not None:
                return found
        known = {} if old is None else old.files()
        files, signatures, blobs = self._read_files(fd, path, names, known, 0 if old is None else old.clock)
        differing = _differing(known, zip(files, signatures, blobs, strict=True))
        return files, pack_signatures(signatures), b"".join(blobs), differing

    def _changed_files(
        self, fd: int, path: bytes, names: list[bytes], old: CachedFolder, look: Look | None
    ) -> tuple[list[bytes], bytes, bytes, set[bytes]] | None:
        """Return as `_files_of`, without an object for each file; None if that is not possible."""
        facts = self._signatures(fd, names) if look is None else look.facts
        files = None if facts is None else FolderFiles.compared(old, names, facts)
        if files is None:
            return None
        differing = set(files.gone)
        for at in files.due(old.clock):
            was, known = files.known(at)
            read = self._read_file(fd, joined(path, names[at]), names[at], files.signature(at), known)
            if read is None:
                return None
            if known != read[1] or was.mode != read[0].mode:
                differing.add(names[at])
            files.put(at, *read)
        self._seen += len(names)
        self._expected = max(self._seen, self._expected)
        self._progress("files", self._seen, self._expected)
        return names, bytes(files.facts), bytes(files.blobs), differing

    def _signatures(self, fd: int, names: list[bytes]) -> bytes | None:
        """Return the packed stat signatures of files (None: one is gone, or they can't be read into a table)."""
        from objstore.worktree.batch_stat import open_stat_table

        table = open_stat_table(self._tree.fd)
        try:
            if table is not None:
                with table.inside():
                    return table.signatures(fd, names)
        except OSError:
            pass
        return None

    def _read_files(
        self,
        fd: int,
        path: bytes,
        names: Iterable[bytes],
        known: Mapping[bytes, tuple[StatSignature, BlobId]],
        clock: int,
    ) -> tuple[list[bytes], list[StatSignature], list[BlobId]]:
        """Return the names of the files that still exist, their stat signatures and their blobs.

        `known`: their signatures and blobs at the time `clock` (ns), when the folder was last scanned.
        """
        files: list[bytes] = []
        signatures: list[StatSignature] = []
        blobs: list[BlobId] = []
        for name in names:
            self._seen += 1
            self._expected = max(self._seen, self._expected)  # files may have appeared since the count
            self._progress("files", self._seen, self._expected)
            try:
                now = StatSignature._make(read_signature_fields(os.lstat(name, dir_fd=fd)))
            except FileNotFoundError:
                continue
            except OSError as error:
                self._skip(joined(path, name), str(failure(error, os.fsdecode(joined(path, name)))))
                files.append(name)
                signatures.append(_UNSEEN)
                blobs.append(UNKNOWN)
                continue
            was, blob = known.get(name, (None, None))
            if was != now or blob is None or blob == UNKNOWN or now.ctime >= clock:
                read = self._read_file(fd, joined(path, name), name, now, blob)
                if read is None:
                    continue
                now, blob = read
            files.append(name)
            signatures.append(now)
            blobs.append(blob)
        return files, signatures, blobs

    def _read_file(
        self, fd: int, path: bytes, name: bytes, signature: StatSignature, known: BlobId | None
    ) -> tuple[StatSignature, BlobId] | None:
        """Read a file and pass it to `keep`; return its stat signature and its blob (None: it is gone)."""
        if not self._may_read(signature.size):
            return signature, UNKNOWN
        source: Source | None = None
        try:
            if stat.S_ISLNK(signature.mode):
                text = os.readlink(name, dir_fd=fd)
                blob = blob_id(text)
            else:
                place = ResolvedPath(
                    folder=fd, name=os.fsdecode(name), path=os.fsdecode(path), missing=(), user=self._tree.user
                )
                found = state_at(place)
                if found is None:
                    return None
                blob, text = found[0].blob, found[1].content
                signature = StatSignature._make(read_signature_fields(found[1].stat))
                source = FileSource(self._tree, path, found[1].stat) if is_placeholder(text) else None
        except FileNotFoundError:
            return None
        except (OSError, CasError) as error:
            self._skip(path, str(error))
            return signature, UNKNOWN
        self._read += signature.size
        try:
            self._keep(ReadFile(path, text, blob, None if known == UNKNOWN else known, source))
        except (FileChanged, FileMissing) as error:
            self._skip(path, str(error))
            return signature, UNKNOWN
        return signature, blob

    def _estimate_files(self, todo: Iterable[bytes]) -> int:
        """Return about how many files there are in the folders to list, and below those that are not cached.

        This lists folders; it reads no file and remembers nothing.
        """
        count, new = 0, [path for path in todo if path not in self.stat_cache]
        for known in filter(None, map(self.stat_cache.get, todo)):
            count += len(known.names)
        skipped, unreadable = len(self.skipped), set(self.unreadable)
        waiting = [(path, self._above_scope) for path in new]
        while waiting and count <= self._limits.files:
            path, above = waiting.pop()
            with self._opened(path) as fd:
                if fd is None:
                    continue
                listed = self._listed(fd, path, above, None)
                count += len(listed.names.files)
                waiting += [(joined(path, folder), listed.rules) for folder in listed.names.folders]
        del self.skipped[skipped:]
        self.unreadable = unreadable
        return count

    # ---- which rules apply

    def _rules_above(self, scope: bytes) -> Rules:
        """Return the rules for the folder above `scope`. Raises FileMissing, PermissionRefused, DiskFailed."""
        rules = self._reader.base
        parts = scope.split(b"/") if scope else []
        for depth in range(len(parts)):
            path = b"/".join(parts[:depth])
            with self._opened(path) as fd:
                if fd is None:
                    raise self._errors.get(path) or FileMissing(os.fsdecode(scope))
                rules = self._reader.read_rules(fd, path, rules)
        return rules

    def _check_repositories(self) -> None:
        """Mark the cached folders to list again because of what has changed in git's own files.

        Nothing in a folder shows that git's index has a name now which git otherwise ignores, or no longer has it.
        """
        if self._is_git_checked:
            return
        self._is_git_checked = True
        known = self.stat_cache.repositories
        before = dict(known)
        if not self._reader.rules.uses_git:
            known.clear()
        changed: dict[bytes, RepositoryIndex] = {}
        for path in [*known, *self._reader.repositories().keys() - known.keys()]:
            index = self._reader.repository(path)
            cached = self.stat_cache.get(path)
            if cached is not None and (index is None or index.key[0] != known[path][0]):
                cached.needs_rescan = True  # for what its ignore files say now
            if index is None:
                del known[path]
                continue
            if path not in known or known[path][1] != index.key[1]:
                changed[path] = index
            known[path] = index.key
        self.has_changes |= known != before
        self.stat_cache.changed_indexes |= changed.keys()
        if changed:
            self._relist_ignored(changed)

    def _relist_ignored(self, changed: Mapping[bytes, RepositoryIndex]) -> None:
        """Mark the folders to list again in which an index that has changed has other names than before."""
        for path, left_out, tracked in self.stat_cache.ignored_names():
            top = nearest_repository(path, self.stat_cache.repositories)
            index = None if top is None else changed.get(top)
            cached = self.stat_cache.get(path) if index is not None else None
            if index is None or cached is None:
                continue
            was_tracked = set(tracked)
            names = (was_tracked | set(left_out)) - set(cached.secrets) - REBUILT_FOLDERS
            if any(index.has(joined(path, name), is_folder=True) is not (name in was_tracked) for name in names):
                cached.needs_rescan = True

    # ---- limits and skipped paths

    def _skip(self, path: bytes, reason: str) -> None:
        self.skipped.append(SkippedPath(path=os.fsdecode(path), reason=reason))

    def _skip_folder(self, path: bytes, os_error: OSError) -> None:
        """Skip a folder that exists and can't be listed now."""
        error = failure(os_error, os.fsdecode(path) or self._tree.root)
        self._errors[path] = error
        self.unreadable.add(path)
        self._skip(path, "may not be read" if isinstance(error, PermissionRefused) else str(error))
        self._rescan_parent_next_time(path)

    def _rescan_parent_next_time(self, path: bytes) -> None:
        """Make the next scan list the parent folder too: nothing in it shows when this folder becomes readable."""
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
        self.skipped.append(SkippedPath(path="", reason=f"not everything was scanned: {reason}"))

    @contextmanager
    def _opened(self, path: bytes) -> Iterator[int | None]:
        """Open a folder, name by name and following no symlink (None: it doesn't exist, or can't be read)."""
        with ExitStack() as stack:
            try:
                fd = stack.enter_context(folder_at(self._tree, path))
            except OSError as error:
                if not is_absence(error):
                    self._skip_folder(path, error)
                yield None
                return
            yield fd


def _differing(
    known: Mapping[bytes, tuple[StatSignature, BlobId]], found: Iterable[tuple[bytes, StatSignature, BlobId]]
) -> set[bytes]:
    """Return the names of files that are new or gone, or have another mode or content."""
    differing, gone = set[bytes](), set(known)
    for name, now, blob in found:
        was, known_blob = known.get(name, (None, None))
        if was is None or known_blob != blob or was.mode != now.mode:
            differing.add(name)
        gone.discard(name)
    return differing | gone


def _touched(old: CachedFolder | None, names: _Names, differing: AbstractSet[bytes]) -> ChangedNames | None:
    """Return the names that changed in a folder; None: it was not fully recorded, so any name may have changed.

    `differing`: those of its files.
    """
    if old is None or old.is_incomplete or (not old.is_fully_recorded and old.touched is None):
        return None
    already = old.touched or ChangedNames(frozenset(), frozenset())
    # A folder that becomes visible may have been a file when its name was first left out.
    others = (set(old.folders) ^ set(names.folders)) | (set(old.left_out) ^ set(names.left_out))
    return ChangedNames(already.names | differing | others, already.gone | others)


def _kinds(fd: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the names of the files and symlinks in an open folder, and each other name with its kind."""
    files: list[str] = []
    others: list[tuple[str, str]] = []
    with os.scandir(fd) as found:
        for entry in found:
            try:
                if entry.is_file(follow_symlinks=False) or entry.is_symlink():
                    files.append(entry.name)
                else:
                    others.append((entry.name, "folder" if entry.is_dir(follow_symlinks=False) else "other"))
            except OSError:
                files.append(entry.name)  # reading it will report the error
    return files, others


def _encoded(names: Sequence[str]) -> list[bytes]:
    """Return the bytes of file names, ascending. No name contains a NUL, and one string is encoded faster than many.

    Text is sorted faster than bytes, and nearly all of it is in the order of its bytes then.
    """
    return sorted(os.fsencode("\0".join(sorted(names))).split(b"\0")) if names else []


def _self_and_above(path: bytes) -> tuple[bytes, bytes]:
    return path, path.rpartition(b"/")[0]
