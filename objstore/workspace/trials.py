"""Try commands on scratch copies of the workspace. Nothing is decided, and the workspace's files stay as they are."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from objstore.values.errors import CasError
from objstore.values.fastclass import value
from objstore.workspace.role import Role, uses_index

# What only some methods need is imported in them: most commands try nothing.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from objstore.model.ids import BlobId
    from objstore.model.results import Decided, DecisionOutcome, FileEffect
    from objstore.review.trial.copy_contents import CoveredTree, FileResult
    from objstore.review.trial.copy_folder import Scratch
    from objstore.review.trial.failed_checks import FailedCheck
    from objstore.review.trial.known_runs import KnownRuns
    from objstore.review.trial.process import Ran
    from objstore.worktree.walk import SkippedPath

__all__ = ["Check", "Copy", "Trials"]

_ORIGINAL: Final = "CAS_TRY_OF"
"""The variable that tells a command of which folder it runs on a copy."""


@value
class Copy:
    """A scratch copy of the workspace, in which commands can be run."""

    root: str  # of the workspace
    scratch: Scratch
    skipped: tuple[SkippedPath, ...]  # what is missing in it

    def run(self, words: Sequence[str], below: str = "") -> Ran:
        """Run a command attached to this process's input, output and terminal. `below`: the folder to start in."""
        from objstore.review.trial.process import run_attached

        return run_attached(words, self._folder(below), self._environment(below), self.scratch.fd)

    def run_kept(
        self,
        words: Sequence[str],
        below: str = "",
        *,
        limit: float | None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Ran:
        """Run a command without input, and keep the end of its output. `limit`: seconds; None: no limit.

        `stopped`: asked ten times a second whether to end it.
        """
        from objstore.review.trial.process import run_kept

        folder, environment = self._folder(below), self._environment(below)
        return run_kept(words, folder, environment, self.scratch.fd, limit=limit, stopped=stopped)

    def _folder(self, below: str) -> str:
        folder = os.path.join(self.scratch.path, below)
        return folder if below and os.path.isdir(folder) else self.scratch.path

    def _environment(self, below: str) -> dict[str, str]:
        # A `cas` that the command runs must not reach the workspace itself.
        kept = {name: text for name, text in os.environ.items() if name != "CAS_WORKSPACE"}
        return kept | {"PWD": self._folder(below), _ORIGINAL: self.root}


@value
class Check:
    """A command that must succeed on what a decision would leave."""

    command: str  # for /bin/sh
    limit: float | None  # seconds; None: no limit
    below: str = ""  # the folder in which it starts, relative to the workspace


class Trials(Role):
    """Try commands on scratch copies of the workspace."""

    @uses_index
    def covered(self) -> CoveredTree:
        """Return what scans cover of the workspace now. Raises what a walk raises."""
        from objstore.review.trial.copy_contents import covered_tree

        return covered_tree(self._journal)

    def results(
        self, effects: Iterable[FileEffect], preview: Callable[[FileEffect], tuple[bytes | None, bytes | None]]
    ) -> dict[bytes, FileResult | None]:
        """Return the files that some effects lead to, by path (None: no file). `preview`: that of the dry run."""
        from objstore.model.large_file_placeholder import is_placeholder
        from objstore.review.trial.copy_contents import FileResult

        found: dict[bytes, FileResult | None] = {}
        changes = tuple(effects)
        for effect in changes:
            if effect.path_before is not None:
                found[os.fsencode(effect.path_before)] = None
        for effect in changes:
            _, text = preview(effect)
            if effect.path_after is None or effect.after is None or text is None:
                continue
            pieces = self._journal.store.pieces(effect.after) if is_placeholder(text) else (text,)
            found[os.fsencode(effect.path_after)] = FileResult(effect.mode_after, effect.after, pieces)
        return found

    def key(self, covered: CoveredTree, results: Mapping[bytes, FileResult | None]) -> str:
        """Return a name of the files that a copy would have: equal if and only if they are."""
        from objstore.review.trial.copy_contents import tree_key

        return tree_key(covered, results)

    def check(self, command: str = "", below: str = "") -> Check | None:
        """Return a check with a command, or else that of the settings, which starts in the root (None: there is none).

        Raises SettingInvalid and SettingsUnreadable.
        """
        from objstore.disk.config.config_files import Configuration

        configured, limit = Configuration(self._journal.tree.root).several("review.check", "review.check_limit")
        chosen = command or configured.value
        if not isinstance(chosen, str):
            return None
        seconds = limit.value if isinstance(limit.value, int) else None
        return Check(command=chosen, limit=seconds, below=below if command else "")

    def checked(
        self,
        check: Check,
        decide: Callable[..., DecisionOutcome],
        preview: Callable[[FileEffect], tuple[bytes | None, bytes | None]],
        *,
        reason: str = "",
        stops_at_broken: bool = False,
        copied: Callable[[Copy], object] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> DecisionOutcome:
        """Make a decision if a command succeeds on what it would leave; the end of the output becomes its reason's.

        `decide`: makes it, given the `reason`, `checked`, `stops_at_broken` and `dry_run` of `Review.decide`, which has
        `preview`. The store is not locked meanwhile; if files change, nothing is decided. `copied`: is given the copy
        before the command runs in it; `stopped`: asked ten times a second whether to end the command. Raises
        CheckFailed, CheckedElse, and what `copy` and `decide` raise.
        """
        from objstore.model.results import Decided
        from objstore.model.views import output_end, reason_with_check
        from objstore.review.trial.failed_checks import note_check
        from objstore.values.request_errors import CheckedElse, CheckFailed

        planned = decide(reason=reason, stops_at_broken=stops_at_broken, dry_run=True)
        if not isinstance(planned, Decided) or planned.unshown or (stops_at_broken and planned.broken):
            return planned
        results = self.results(planned.files, preview)
        covered = self.covered()
        with self.copy(covered, results) as copy:
            copied(copy)
            ran = copy.run_kept(["/bin/sh", "-c", check.command], check.below, limit=check.limit, stopped=stopped)
        said = ran.tail.decode("utf-8", "replace")
        if ran.status or ran.is_over_limit:
            how = f"took longer than {check.limit:g} s" if ran.is_over_limit else f"failed with status {ran.status}"
            if stopped():
                raise CheckFailed(check.command, "was stopped", said, is_cut=ran.is_cut, was_stopped=True)
            with suppress(CasError, OSError):  # that nothing is decided is what matters
                note_check(self._journal, self.key(covered, results), check.command, how, output_end(said))
            raise CheckFailed(check.command, how, said, is_cut=ran.is_cut)
        with suppress(CasError, OSError):
            note_check(self._journal, self.key(covered, results), check.command)
        changed = self.covered().changed_since(covered)
        if changed:
            raise CheckedElse(list(map(os.fsdecode, changed)))
        return decide(
            reason=reason_with_check(reason, check.command, said),
            stops_at_broken=stops_at_broken,
            checked=planned.files,
            dry_run=False,
        )

    def failed_on(
        self, checks: Sequence[FailedCheck], covered: CoveredTree
    ) -> Callable[[Decided, Callable[[BlobId], bytes]], list[tuple[FailedCheck, bool]]]:
        """Return what finds which checks concern a decision, given it and what reads the texts in it.

        Each with whether it failed on the files before the decision (`covered`), or on those that it leads to.
        """

        def found(planned: Decided, text: Callable[[BlobId], bytes]) -> list[tuple[FailedCheck, bool]]:
            def after(effect: FileEffect) -> tuple[None, bytes | None]:
                return None, None if effect.after is None else text(effect.after)

            keys = self.key(covered, {}), self.key(covered, self.results(planned.files, after))
            return [(each, each.files == keys[0]) for each in checks if each.files in keys]

        return found

    def known_runs(self, command: str) -> KnownRuns:
        """Return how a command ended in earlier runs, by the key of the files."""
        from objstore.review.trial.known_runs import KnownRuns

        return KnownRuns(self._journal, command)

    @contextmanager
    def copy(self, covered: CoveredTree, results: Mapping[bytes, FileResult | None] | None = None) -> Iterator[Copy]:
        """Copy what is covered, with some results in place of what is there now; remove the copy in the end.

        Ignored names that the setting `try.links` names are links into the workspace. Raises NoPlaceForCopy,
        SettingInvalid, SettingsUnreadable, and what the disk raises.
        """
        from objstore.disk.config.config_files import Configuration
        from objstore.disk.config.path_patterns import PathPatterns
        from objstore.review.trial.copy_contents import copied
        from objstore.review.trial.copy_folder import scratch_folder

        named = Configuration(self._journal.tree.root).get("try.links").value
        links = PathPatterns(named if isinstance(named, tuple) else ())
        with scratch_folder(self._journal.tree.root) as scratch:
            skipped = copied(self._journal, covered, results or {}, scratch.path, scratch.fd, links)
            yield Copy(root=self._journal.tree.root, scratch=scratch, skipped=tuple(skipped))
