"""Review what another store has: a review shows its mirror, and a decision goes to the decision log of the bucket.

The files are elsewhere, and so is whoever carries the decision out. Until a pull shows that, a change that somebody has
decided on counts as decided here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from cli.app.invocation import reviewer
from cli.screen.terminal import visible
from objstore import BECOMES, Action, Decided, NoSuchName, Status, Unit, Workspace, with_units

if TYPE_CHECKING:
    from objstore import EditView, FileSummary, Member, NetFile, Remote, RemoteVerdict

__all__ = ["Elsewhere", "decided_by", "goes_along", "status_with", "statuses", "verdict_of"]

FileView = TypeVar("FileView", "NetFile", "FileSummary")


class Elsewhere:
    """Another store of a bucket, whose mirror is reviewed."""

    def __init__(self, workspace: Workspace, remote: "Remote", member: "Member") -> None:
        """Wrap a member of a remote of a workspace."""
        self.home: Final = workspace.root
        self.root: Final = workspace.remotes.mirror(remote, member)
        self.remote: Final = remote
        self.member: Final = member

    @cached_property
    def title(self) -> str:
        """Return what a review calls the store."""
        return visible(f"{self.member.name} ({self.remote.name})")

    @property
    def no_undo(self) -> str:
        """Return how a decision is taken back, which no key does: it may be carried out already."""
        return f"`cas undo {self.member.name}/` takes back your newest decision, unless {self.title} carried it out."

    @property
    def no_answer(self) -> str:
        """Return where comments are answered and resolved."""
        return (
            f"Comments are answered and resolved by {self.title}, where the files are. Comment on the change instead."
        )

    def version(self) -> str:
        """Return a text that changes with every entry of the decision log that is read."""
        try:
            return str(Path(self.root).parents[1].joinpath("log").stat().st_mtime_ns)
        except FileNotFoundError:
            return ""

    def verdicts(self) -> "dict[Unit, RemoteVerdict]":
        """Return the newest decision on each hunk, as far as the log was read."""
        with Workspace.open(self.home) as workspace:
            return workspace.remote_decisions.verdicts(self.remote, self.member)

    def decided(self) -> dict[Unit, Status]:
        """Return the status that each hunk gets by a decision that was not refused, until the mirror shows it."""
        with Workspace.open(self.root) as mirror:
            return decided_by(mirror.awaited())

    def refusals(self) -> Iterator[str]:
        """Yield a sentence for each decision that the store with the files refused, unless it was decided again."""
        refused: dict[int, list[Unit]] = {}
        verdicts = self.verdicts()
        for unit, each in sorted(verdicts.items()):
            if each.result == "refused":
                refused.setdefault(each.number, []).append(unit)
        for units in refused.values():
            each = verdicts[units[0]]
            names = ", ".join(map(str, units))
            yield visible(
                f"{self.member.name} refused to {each.action.value} {names}, as {each.who} decided: {each.why}"
            )

    def decide(self, action: Action, shown: Mapping[Unit, Status], reason: str) -> tuple[list[Unit], str]:
        """Decide on those of some hunks that are undecided; return these, and a sentence. Raises what the log raises.

        `shown`: the status that each was shown with. If all are decided, the log says by whom.
        """
        decided = {} if action is Action.RESET else self.decided()
        units = {unit: status for unit, status in shown.items() if unit not in decided} or dict(shown)
        with Workspace.open(self.home) as workspace:
            decide = workspace.remote_decisions.decide
            number = decide(self.remote, self.member, action, units, who=reviewer(), reason=reason)
        return sorted(units), f"Decision {number} asks {self.title} for that; its next `cas pull` carries it out."

    def comment(self, units: Sequence[Unit], text: str) -> str:
        """Comment on some hunks, and return a sentence. Raises what the log raises."""
        with Workspace.open(self.home) as workspace:
            number = workspace.remote_decisions.comment(self.remote, self.member, units, text, who=reviewer())
        return f"Comment {number} is for {self.title}: its next `cas pull` takes it over."

    def undecided_edits(self) -> int:
        """Return how many edits have hunks that are pending, and on which no decision is made; nothing is fetched."""
        decided = self.decided()
        with Workspace.open(self.root) as mirror:
            pending = mirror.review.pending_counts()[0]
            # Most edits are not in the log, so that only few are read.
            return pending - sum(
                view.status is Status.PENDING and status_with(view, decided) is not Status.PENDING
                for view in _existing(mirror, {unit.seq for unit in decided})
            )

    def undecided(self, files: "Sequence[FileView]") -> "list[FileView]":
        """Return files with the changes and hunks that are still undecided, and the changes decided with these."""
        decided = self.decided()
        pending: set[Unit] = set()
        for file in files:
            pending.update(file.units, file.kept_on)
        return with_units(files, pending - decided.keys())


def goes_along(mirror: Workspace, action: Action, units: Iterable[Unit], *, is_listed: bool) -> Mapping[Unit, Status]:
    """Return what goes along with a rejection in the store of a mirror, as far as this shows it, each with its status.

    `is_listed`: whether a question has listed those of `units` that are accepted; they are among it if not.
    """
    if action is not Action.REJECT:
        return {}
    now = mirror.history.statuses(units)
    shown = {unit: status for unit, status in now.items() if is_listed or status is not Status.ACCEPTED}
    planned = mirror.review.decide(action, [*now], shown=shown, stops_at_unshown=True, with_names=False, dry_run=True)
    return dict(planned.unshown) if isinstance(planned, Decided) else {}


def _existing(mirror: Workspace, seqs: Iterable[int]) -> "Iterator[EditView]":
    """Yield the edits with some numbers, as far as there are any: others may decide on newer ones, or on none."""
    for seq in seqs:
        with suppress(NoSuchName):
            yield mirror.history.edit(seq)


def decided_by(awaited: "Mapping[Unit, RemoteVerdict]") -> dict[Unit, Status]:
    """Return the status that each hunk gets if others accepted or rejected it. `awaited`: as of Workspace."""
    return {unit: BECOMES[each.action] for unit, each in awaited.items() if each.action is not Action.RESET}


def statuses(awaited: "Mapping[Unit, RemoteVerdict]") -> dict[Unit, Status]:
    """Return the status that each hunk gets by what others decided. `awaited`: as of Workspace."""
    return {unit: BECOMES[verdict.action] for unit, verdict in awaited.items()}


def status_with(view: "EditView", decided: Mapping[Unit, Status]) -> Status:
    """Return the status that an edit has once what is `decided` on its hunks is carried out."""
    found = {decided.get(Unit(view.seq, hunk), view.units[hunk]) for hunk in view.telling}
    return next(status for status in (Status.PENDING, Status.ACCEPTED, Status.REJECTED, Status.AWAY) if status in found)


def verdict_of(units: Iterable[Unit], decided: Mapping[Unit, Status]) -> str:
    """Return how a change is decided ("": it is not): rejected if any of its hunks is."""
    found = {decided.get(unit) for unit in units}
    if not found or None in found:
        return ""
    return (Status.REJECTED if Status.REJECTED in found else Status.ACCEPTED).value
