"""Scan for changed files while agents' calls are open, and record each change as that of the call that made it.

Files that a call has named are scanned first, each attributed by its name; then everything else, which counts as the
change of whichever open call may touch any file, as unattributed, or as external.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from objstore.disk.fs.confined_path import look_at, open_folder
from objstore.disk.fs.disk import reaching
from objstore.model.results import EXTERNAL_CALL, Attributor, CallInfo
from objstore.model.views import EditView
from objstore.review.calls.attribution import Attribution, Facts
from objstore.review.calls.open_calls import END_AWAITED, AgentCall, OpenCalls, sanitized_text
from objstore.storage.transaction.journal import Journal
from objstore.values.errors import BlobMissing, DiskFailed, PathError, TreeInvalid
from objstore.values.fastclass import replace

if TYPE_CHECKING:
    from objstore.agents.record import Recorded

__all__ = ["AttributedScan", "Looks"]

_WHO: Final = "hook"
"""Who decides when a report shows whose earlier edits are."""


class Looks(Protocol):
    """Looks at the files of a workspace, records what changed, and corrects what was recorded before."""

    def record(
        self, paths: Sequence[str] | None, open_calls: Mapping[str, AgentCall], otherwise: CallInfo
    ) -> "Recorded":
        """Record what changed, as the change of the open call that made it, or as `otherwise` if none can have."""
        ...

    def record_edits(self, paths: Sequence[str] | None, open_calls: Mapping[str, AgentCall]) -> list[EditView]:
        """Record what changed, as `record`; return the edits."""
        ...

    def record_released(self, paths: Iterable[str], open_calls: Mapping[str, AgentCall]) -> list[EditView]:
        """Record the changes of files that waited for a call which then may not have run; return the edits."""
        ...

    def missing_files_below(self, path: str) -> list[str]:
        """Return the known files below a path that is no longer a folder."""
        ...

    def may_be_unchanged(self, path: str, since: int) -> bool:
        """Return whether a file may be unchanged since a time (microseconds since 1970-01-01 UTC)."""
        ...

    def leave_unattributed(self, since: int, reason: str, paths: Sequence[str] | None = None) -> None:
        """Leave open whose the changes (of these files) are that were taken for a person's since a time."""
        ...

    def reattribute(self, since: int, is_meant: Callable[[EditView], bool], to: str, reason: str) -> None:
        """Give pending edits that were recorded since a time to a conversation (UNKNOWN_AGENT: leave that open)."""
        ...


class AttributedScan:
    """Scans of one workspace. The caller holds the lock of the open calls."""

    def __init__(self, journal: Journal, open_calls: OpenCalls) -> None:
        """Take the files of the open calls, from which finished calls are removed once their changes are recorded."""
        self._journal: Final = journal
        self._open: Final = open_calls

    def record(
        self,
        paths: Sequence[str] | None,
        open_calls: Mapping[str, AgentCall],
        otherwise: CallInfo,
    ) -> "Recorded":
        """Record what changed, as the change of the open call that made it, or as `otherwise` if none can have.

        `paths`: only these files, and what is below these folders. Raises what `record_changes` raises.
        """
        return _merged(list(self._scans(paths, open_calls, otherwise)))

    def record_edits(self, paths: Sequence[str] | None, open_calls: Mapping[str, AgentCall]) -> list[EditView]:
        """Record what changed, as `record`; return the edits. Paths that can't be scanned are skipped."""
        found: list[EditView] = []
        try:
            for scan in self._scans(paths, open_calls):
                found += scan.edits
        except (PathError, DiskFailed):
            # A tool may name any path. The other paths that it named are scanned all the same; otherwise a person's
            # change of them would count as the tool's.
            possible = list(filter(self._can_be_scanned, paths or ()))
            if paths is None or len(possible) == len(paths):
                raise
            found += self.record_edits(possible, open_calls)
        return found

    def record_released(self, paths: Iterable[str], open_calls: Mapping[str, AgentCall]) -> list[EditView]:
        """Record the changes of files that waited for a call which then may not have run; return the edits.

        They are unattributed if it is among the open calls, because it may have run.
        """
        facts = Facts(open_calls.values())
        waiting = [path for path in paths if facts.must_wait(path)]
        whose = Attribution(self._open, open_calls)
        return list(self._record(whose, waiting, are_canonical=True).edits) if waiting else []

    def missing_files_below(self, path: str) -> list[str]:
        """Return the known files below a path that is no longer a folder."""
        try:
            with reaching(path), self._journal.tree.locate(path, changing=True) as resolved:
                found = look_at(resolved)
                if resolved.path != path or (found is not None and stat.S_ISDIR(found.st_mode)):
                    return []
        except PathError:
            return []
        with self._journal.reading() as store:
            tip = store.index.documents.tip_at(os.fsencode(path))
            if found is not None and tip is not None and tip.state is not None:
                return []
            from objstore.worktree.baseline import KnownStates

            try:
                below = KnownStates(self._journal).below(os.fsencode(path))
            except (BlobMissing, TreeInvalid):
                below = set(store.index.documents.paths_below(os.fsencode(path)))  # the next scan takes a new baseline
            return sorted(map(os.fsdecode, below))

    def may_be_unchanged(self, path: str, since: int) -> bool:
        """Return whether a file may be unchanged since a time (microseconds since 1970-01-01 UTC)."""
        with suppress(PathError), reaching(path), self._journal.tree.locate(path, changing=True) as resolved:
            found = look_at(resolved)
            return found is None or found.st_ctime_ns < since * 1000  # its time may lag behind that of the change
        return False

    def leave_unattributed(self, since: int, reason: str, paths: Sequence[str] | None = None) -> None:
        """Leave open whose the changes are that were taken for a person's since a time. Raises as `Journal.commit`.

        `paths`: only of these files (None: of all).
        """
        from objstore.review import claim

        among = None if paths is None else {os.fsencode(path) for path in paths}
        claim.leave_unattributed(self._journal, since, _WHO, sanitized_text(reason), among)

    def reattribute(self, since: int, is_meant: Callable[[EditView], bool], to: str, reason: str) -> None:
        """Give pending edits that were recorded since a time to a conversation. Raises as `Journal.commit`.

        `to`: UNKNOWN_AGENT: leave open whose they are.
        """
        from objstore.review import claim

        claim.reattribute(self._journal, since, is_meant, to=to, who=_WHO, reason=sanitized_text(reason))

    # ---- inside

    def _scans(
        self,
        paths: Sequence[str] | None,
        open_calls: Mapping[str, AgentCall],
        otherwise: CallInfo = EXTERNAL_CALL,
    ) -> "Iterator[Recorded]":
        """Scan and record; yield what each scan found, last the one of files that no call has named.

        `paths`: only these files, and what is below these folders. `otherwise`: whose changes are that no call can have
        made.
        """
        from objstore.agents.record import recording_git

        awaited = [name for name, call in open_calls.items() if call.is_over and call.doubt == END_AWAITED]
        # Their ends are reported now: each report waits for this scan, and then finishes its call.
        open_calls = {**open_calls, **{name: replace(open_calls[name], doubt="") for name in awaited}}
        finished = [name for name, call in open_calls.items() if call.is_over and name not in awaited]
        asked = paths or ()
        if finished:
            paths = None  # what those calls changed is not recorded yet
        facts = Facts(open_calls.values())
        named: dict[str, str] = {}  # files that a call named, and files below them that are gone, by the path it named
        for path in facts.named:
            if (paths is not None and path in paths) or (_is_among(path, paths) and not facts.must_wait(path)):
                named[path] = path
                for each in self.missing_files_below(path):
                    if each not in facts.named:
                        named.setdefault(each, path)

        whose = Attribution(self._open, open_calls, named=named, otherwise=otherwise)
        with recording_git(self._journal, whose):
            if named:
                yield self._record(whose, list(named), are_canonical=True)
            # A path that is asked for may be ignored: a scan of everything would not read it. It may be a folder;
            # the files in it were not named. Later changes of a named file are recorded by the call that
            # named it, which is still open.
            rest = [path for path in asked if path not in facts.named or self._is_folder(path)]
            if rest:
                yield self._record(whose, rest, excluding=facts.named)
            if paths is None:
                yield self._record(whose, None, excluding=facts.named)
        shells = [call for name in finished if (call := open_calls[name]).paths is None and call.conversation]
        if shells and (waiting := [path for path in facts.named if facts.must_wait(path)]):
            self._open.note_unseen(waiting, shells[-1].conversation)
        for name in finished:
            self._open.remove(name)

    def _is_folder(self, path: str) -> bool:
        """Return whether a path of the workspace is a folder, without following symlinks."""
        with suppress(PathError), reaching(path), self._journal.tree.locate(path, changing=True) as resolved:
            found = look_at(resolved) if resolved.path == path else None
            return found is not None and stat.S_ISDIR(found.st_mode)
        return False

    def _can_be_scanned(self, path: str) -> bool:
        """Return whether a path of the workspace can be read, and listed if it is a folder."""
        with (
            suppress(PathError),
            reaching(path),
            self._journal.tree.locate(path, changing=True, will_be_vacated=lambda _: True) as resolved,
        ):
            found = look_at(resolved)
            if found is not None and stat.S_ISDIR(found.st_mode):
                os.close(open_folder(resolved.folder, resolved.name, resolved.path))
            return True
        return False

    def _record(
        self,
        info: CallInfo | Attributor,
        paths: Sequence[str] | None,
        *,
        are_canonical: bool = False,
        excluding: Collection[str] = (),
    ) -> "Recorded":
        from objstore.agents.record import record_changes
        from objstore.storage.transaction.index_repair import rebuild_index_and_retry

        return rebuild_index_and_retry(
            self._journal,
            lambda: record_changes(self._journal, info, paths, are_canonical=are_canonical, excluding=excluding),
        )


def _is_among(path: str, paths: Sequence[str] | None) -> bool:
    """Return whether a file is at or below one of the paths (None: all of the workspace)."""
    return paths is None or any(above in {path, os.curdir} or path.startswith(above + "/") for above in paths)


def _merged(scans: "Sequence[Recorded]") -> "Recorded":
    """Return what several successive scans found, as one result."""
    from objstore.agents.record import Recorded

    return Recorded(
        conversation=next((scan.conversation for scan in reversed(scans) if scan.conversation), ""),
        edits=tuple(view for scan in scans for view in scan.edits),
        baseline=next((scan.baseline for scan in scans if scan.baseline is not None), None),
        files=sum(scan.files for scan in scans),
        skipped=tuple(dict.fromkeys(place for scan in scans for place in scan.skipped)),
    )
