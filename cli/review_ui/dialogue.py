"""The dialogue of both reviews: ask, read a key, decide, remember what can be undone."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeAlias, TypeVar

from click import ClickException

from cli.app.error_hints import message_of, message_with_advice
from cli.app.invocation import Invocation, reviewer
from cli.render.comments import sending_text
from cli.render.outcomes import conflict_text, decided_text, shown_units
from cli.review_ui.skipped import SkippedHunks
from cli.screen.editor import edited
from cli.screen.keyboard import ENTER, Keyboard
from cli.screen.progress import DECIDING, showing_progress
from cli.screen.terminal import Screen, flush, visible, write
from objstore import (
    Action,
    CasError,
    Conflicted,
    Decided,
    DecidedMeanwhile,
    ExternalChanges,
    NothingToDo,
    OnExternal,
    Status,
    Unit,
    value,
)

if TYPE_CHECKING:
    from objstore import BlobId, DecisionOutcome, ExternalChange, Hunk, Workspace

__all__ = ["Act", "ReviewDialogue", "Same", "Step", "failure"]

_DECIDING_KEYS: Final = frozenset("arRx")
"""Keys that decide on what is on the screen."""

Shown = TypeVar("Shown")
"""What a review shows at once: a change, or a hunk."""


class Same(Enum):
    """The review stays at what is on the screen."""

    STAY = "as it is on the screen"
    SHOWN_AGAIN = "shown once more"


Act: TypeAlias = Callable[[Shown], Shown | Same | None]
"""What a key does; it returns where that leads: to something else, nowhere, or (None) on to the next one."""


@value
class Step:
    """One action of a review that can be undone."""

    units: tuple[Unit, ...]  # what was on the screen at the time
    decision: int  # its number
    verdicts: tuple[tuple[Unit, Status], ...] = ()  # (): it was an amendment
    amendment: int | None = None  # its number; None: it was a decision


class ReviewDialogue(ABC, Generic[Shown]):
    """Base of both reviews: the screen, the keyboard, and the decisions that were taken."""

    keys: ClassVar[Mapping[str, str]]
    """What each key does, in words."""

    def __init__(self, workspace: "Workspace", keyboard: Keyboard, screen: Screen) -> None:
        """Begin without any decision."""
        self._workspace = workspace
        self._keyboard = keyboard
        self._screen = screen
        self._skipped_hunks = SkippedHunks(workspace.root)
        self._steps: list[Step] = []
        self._withdrawn: set[int] = set()  # decisions that took back amendments: they are no steps of their own
        self._said: list[int] = []  # numbers of comments
        self._sought = ""
        self._is_forgetful = False  # whether it was already reported that something can't be saved

    @abstractmethod
    def _acts(self) -> Mapping[str, Act[Shown]]:
        """Return what the keys do, except those that quit."""

    @abstractmethod
    def _decided_elsewhere(self, shown: Shown) -> str:
        """Return a sentence about what was decided elsewhere since it was shown; "": nothing was."""

    def _acted(self, key: str, shown: Shown) -> Shown | Same | None:
        """Do the action of a key, and return where it leads."""
        act = self._acts().get(key)
        if act is None:
            self._say("Press ? for what the keys do.")
            return Same.STAY
        try:
            self._workspace.reopen()  # if the last try could not be made durable
            elsewhere = self._decided_elsewhere(shown) if key in _DECIDING_KEYS else ""
            if elsewhere:
                self._say(elsewhere)
                return Same.SHOWN_AGAIN
            return act(shown)
        except DecidedMeanwhile as error:
            self._say(str(error))
            return Same.SHOWN_AGAIN
        except (CasError, OSError, ClickException) as error:
            # A lock, a full disk, a file that is changed at this moment: all is as it was, and the user can try again.
            self._say(failure(error))
            return Same.STAY

    def _helped(self, _: Shown) -> Same:
        for key, meaning in self.keys.items():
            self._say(f"  {key}  {meaning}")
        return Same.STAY

    # ---- deciding

    def _resolved(self, action: Action, shown: Mapping[Unit, Status], *, reason: str = "") -> "DecisionOutcome | None":
        """Decide on hunks, each given with the status that it was shown with, and on what depends on them if wanted.

        Returns None if a conflict remains: it was shown.
        """
        outcome = self._outcome(action, [*shown], shown, reason=reason)
        if isinstance(outcome, Conflicted):
            goes = [unit for unit in outcome.reject_first if unit.seq not in outcome.outside]
            views = {seq: self._workspace.history.edit(seq) for seq in {unit.seq for unit in goes}}
            also = {unit: views[unit.seq].units[unit.hunk] for unit in goes}
            self._write(conflict_text(outcome, [], self._screen))
            if action is not Action.REJECT:
                return None
            listed = f" ({shown_units(goes)})" if goes else ""
            keep = ", keep the file with the lines of others [k]" if outcome.can_keep_lines else ""
            self._ask(f"Reject what depends on it too{listed} [y or c]{keep}, or leave it [any other key]")
            key = self._key()
            keeps_lines = outcome.can_keep_lines and key == "k"
            if key not in {"y", "c"} and not keeps_lines:
                return None
            refused, shown = outcome, {**also, **shown}
            units = [unit for unit in shown if unit not in also]
            outcome = self._outcome(action, units, shown, reason=reason, refused=refused, keeps_lines=keeps_lines)
        return outcome

    def _outcome(
        self,
        action: Action,
        units: Sequence[Unit],
        shown: Mapping[Unit, Status],
        *,
        reason: str,
        refused: Conflicted | None = None,
        keeps_lines: bool = False,
    ) -> "DecisionOutcome":
        """Take a decision; `refused`: the conflict whose hunks are to be rejected too (None: none are).

        `keeps_lines`: in a file of which the creation is rejected, the lines of these hunks stay.
        """
        decide = partial(self._workspace.decide, action, units, reason=reason, who=reviewer(), shown=shown)
        cascade = refused is not None and not keeps_lines
        return self._carried_out(partial(decide, cascade=cascade, keeps_lines=keeps_lines, refused=refused))

    def _carried_out(self, decide: "Callable[..., DecisionOutcome]") -> "DecisionOutcome":
        """Take a decision, after asking about changes from outside if there are any."""
        with showing_progress(self._workspace, DECIDING):
            outcome = decide(on_external=OnExternal.ABORT, expected=())
        if not isinstance(outcome, ExternalChanges):
            return outcome
        answer = self._asked_about(outcome.changes)
        if answer is OnExternal.ABORT:
            return outcome
        with showing_progress(self._workspace, DECIDING):
            return decide(on_external=answer, expected=outcome.changes)

    def _asked_about(self, changes: "tuple[ExternalChange, ...]") -> OnExternal:
        from cli.render.external_prompt import external_diff

        for change in changes:
            self._write(external_diff(self._workspace, change, self._screen))
        self._say("This was changed outside, and never recorded.")
        choices = dict.fromkeys(("k", "y", ENTER), OnExternal.KEEP) | {"d": OnExternal.DISCARD}
        self._ask("Keep (record it and continue), discard (restore the recorded state), or abort? [K/d/a]")
        return choices.get(self._key(), OnExternal.ABORT)

    def _note(self, units: Sequence[Unit], outcome: Decided) -> None:
        """Report a decision, and remember how to undo it."""
        says_unchanged = outcome.action is not Action.ACCEPT  # most accepts leave files as they are
        edit = self._workspace.history.edit
        self._write(decided_text(outcome, edit, self._screen, dry_run=False, says_unchanged=says_unchanged))
        self._steps.append(Step(units=tuple(units), decision=outcome.number, verdicts=outcome.verdicts))
        self._remember(self._skipped_hunks.decided, [changed for changed, _ in outcome.verdicts])

    def _remember(self, note: Callable[[bytes, set[int]], None], units: Sequence[Unit]) -> None:
        """Save something about hunks for the next review; this one continues even if that fails."""
        by_edit: dict[int, set[int]] = {}
        for unit in units:
            by_edit.setdefault(unit.seq, set()).add(unit.hunk)
        with self._forgetting("what you skipped"):
            for seq, hunks in by_edit.items():
                note(self._workspace.history.edit(seq).id, hunks)

    @contextmanager
    def _forgetting(self, what: str) -> Iterator[None]:
        """Continue if something can't be saved for the next review, and report that once."""
        try:
            yield
        except (CasError, OSError) as error:
            if not self._is_forgetful:
                self._say(f"cas: The next review will not know {what}: {visible(message_of(error))}")
            self._is_forgetful = True

    def _taken_back(self) -> Step | None:
        """Undo what was done last in this review and return it (None: it remains; the reason was shown)."""
        if not self._steps:
            undoes = f"`{Invocation.current().program} undo` undoes an earlier decision"
            self._say(f"Nothing was done in this review. {undoes}.")
            return None
        step = self._steps[-1]
        undo = partial(self._workspace.review.undo, step.decision, past=self._withdrawn, who=reviewer())
        outcome = self._carried_out(undo)
        if isinstance(outcome, NothingToDo):
            self._say(f"Something else was decided since. `{Invocation.current().program} undo` undoes that.")
            return None
        if not isinstance(outcome, Decided):
            if isinstance(outcome, Conflicted):
                self._write(conflict_text(outcome, [], self._screen))
            self._say("That can't be undone now.")
            return None
        self._steps.pop()
        self._write(decided_text(outcome, self._workspace.history.edit, self._screen, dry_run=False))
        return step

    # ---- commenting

    def _commented(self, units: Sequence[Unit]) -> Same:
        """Ask for a comment on hunks of one file, and record it."""
        text = self._line("Comment")
        if not text:
            return Same.STAY
        view = self._workspace.comments.add_to_units(units, text, who=reviewer())
        self._said.append(view.number)
        self._say(f"Recorded comment {view.number}.")
        return Same.SHOWN_AGAIN

    # ---- amending

    def _amend_in_editor(self, unit: Unit) -> None:
        file = self._workspace.review.amendable(unit.seq)
        with self._keyboard.released(), edited(file) as content:
            self._record_amendment(unit, content, file.blob, base=file.bytes)

    def _record_amendment(
        self,
        unit: Unit,
        content: bytes,
        seen: "BlobId",
        *,
        base: bytes | None = None,
        hunks: "Sequence[Hunk] | None" = None,
    ) -> None:
        outcome = self._workspace.review.amend(unit.seq, content, seen=seen, base=base, hunks=hunks, who=reviewer())
        if not outcome.edits:
            self._say("Nothing was changed.")
        for view in outcome.edits:
            self._steps.append(Step(units=(unit,), decision=outcome.decision, amendment=view.seq))
            self._say(f"Recorded edit {view.seq}, which amends edit {unit.seq}. {unit} itself is still pending.")
            if view.edit.before is not None and view.edit.before.blob != seen:
                self._say("The file changed meanwhile: your text was carried over to the new version.")

    def _tell_what_is_sent(self) -> None:
        """Report which messages are sent to which agent, and when; ask first if the setting says so."""
        decided = {unit for step in self._steps for unit, _ in step.verdicts}
        waiting = self._workspace.messages.waiting(decided=decided, said=self._said)
        sending = self._workspace.messages.sending
        if waiting and sending == "ask":
            for sentence in sending_text(self._workspace, waiting, is_held=True):
                self._say(sentence)
            self._ask("Send this to the agents now? [y, or any other key to leave it to `cas send`]")
            if self._key() != "y":
                return
            self._workspace.messages.release()
        for sentence in sending_text(self._workspace, waiting, is_held=sending == "manual"):
            self._say(sentence)

    # ---- the screen

    def _say(self, sentence: str = "") -> None:
        self._write([self._screen.line(sentence)])

    def _write(self, lines: Iterable[bytes]) -> None:
        write(lines)
        flush()

    def _ask(self, question: str) -> None:
        asked = f"{self._screen.paint(question, 'cyan', bold=True)} ".encode()
        self._keyboard.question = asked
        write([asked])
        flush()

    def _key(self) -> str:
        try:
            key = self._keyboard.key()
        except KeyboardInterrupt:
            self._say()  # so that the shell's prompt begins a new line
            raise
        self._say(key if key.isprintable() else "")
        return key

    def _line(self, question: str) -> str | None:
        self._ask(f"{question}:")
        return self._keyboard.line()


def failure(error: CasError | OSError | ClickException) -> str:
    """Return what to say about an action that failed. It changed nothing, and can be tried again."""
    if isinstance(error, ClickException):  # the editor failed
        return f"cas: {visible(error.format_message())}. Nothing was changed."
    return f"cas: {visible(message_with_advice(error))}"
