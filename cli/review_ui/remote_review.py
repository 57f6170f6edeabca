"""The review of what another store has: a decision goes to the log of the bucket, and is carried out there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from cli.review_ui.change_queue import Stop
from cli.review_ui.dialogue import Step
from cli.review_ui.review import Act, Review, Same, Select
from cli.screen.keyboard import Keyboard
from cli.screen.terminal import Screen
from cli.selection.elsewhere import Elsewhere, goes_along
from objstore import BECOMES, Action, Decided, Status, Unit, decided_words, question_words

if TYPE_CHECKING:
    from collections.abc import Collection

    from objstore import DecisionOutcome, NetFile, Workspace

__all__ = ["RemoteReview"]

UNDO: Final = "uU"
NEED_FILES: Final = f"sE{UNDO}"
"""Keys of what only the store with the files can do."""

_NAMED: Final = 10
"""Hunks that a command names."""


class RemoteReview(Review):
    """One pass over what is undecided in another store, whose mirror is shown."""

    left_out = NEED_FILES

    def __init__(
        self,
        mirror: "Workspace",
        keyboard: Keyboard,
        screen: Screen,
        select: Select,
        everything: Select,
        elsewhere: Elsewhere,
        *,
        turn: int = 0,
        is_each: bool = False,
    ) -> None:
        """Begin a pass over the mirror of `elsewhere`; the rest is as of `Review`."""
        self._elsewhere = elsewhere
        left = partial(_undecided, elsewhere, everything)
        chosen = left if select is everything else partial(_undecided, elsewhere, select)
        super().__init__(mirror, keyboard, screen, chosen, left, turn=turn, is_each=is_each)

    def run(self) -> None:
        """Say what the other store refused, and go through what is undecided."""
        for refusal in self._elsewhere.refusals():
            self._say(refusal)
        super().run()

    def _acts(self) -> Mapping[str, Act]:
        refused: dict[str, Act] = dict.fromkeys(NEED_FILES, self._needs_files)
        return {**super()._acts(), **refused, **dict.fromkeys(UNDO, self._no_undo)}

    def _needs_files(self, _: Stop) -> Same:
        self._say(f"Only {self._elsewhere.title} can do that, where the files are.")
        return Same.STAY

    def _no_undo(self, _: Stop) -> Same:
        member = self._elsewhere.member.name
        units = self._steps[-1].units if self._steps else ()
        names = " ".join(f"{member}/{unit}" for unit in units[:_NAMED]) or f"{member}/EDIT:HUNK"
        way = f"After a `cas pull` that shows it as decided, `cas reopen {names}` asks {member} for that."
        self._say(f"{self._elsewhere.no_undo} {way}")
        return Same.STAY

    def _recorded_comment(self, units: Sequence[Unit], text: str) -> str:
        return self._elsewhere.comment(units, text)

    def _resolved(
        self, action: Action, units: Mapping[Unit, Status], *, is_listed: bool = True, reason: str = ""
    ) -> "DecisionOutcome | None":
        along = goes_along(self._workspace, action, units, is_listed=is_listed)
        if along:
            self._say(question_words(action, units, along, self._workspace.history.edit))
            if not self._is_wanted(action):
                return None
        decided, words = self._elsewhere.decide(action, units, reason)
        self._say(words)
        return Decided(action=action, number=0, verdicts=tuple((unit, BECOMES[action]) for unit in decided))

    def _note(self, units: Sequence[Unit], outcome: Decided, changes: int, subject: str) -> None:
        if subject:
            self._say(f"{decided_words(outcome.action, subject)}.")
        self._steps.append(Step(units=tuple(units), decision=0, verdicts=outcome.verdicts, changes=changes))

    def _statuses(self, units: Iterable[Unit]) -> dict[Unit, Status]:
        found, decided = super()._statuses(units), self._elsewhere.decided()
        return {unit: decided.get(unit, status) for unit, status in found.items()}

    def _tell_what_is_sent(self) -> None:
        """Say nothing: the agents there read the reasons once a decision is carried out."""


def _undecided(
    elsewhere: Elsewhere, select: "Callable[[Collection[str]], list[NetFile]]", at: "Collection[str]"
) -> "list[NetFile]":
    return elsewhere.undecided(select(at))
