"""The dialogue of a review: ask, read a key, decide, remember what can be undone."""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from click import ClickException

from cli.app.error_hints import message_of, message_with_advice
from cli.app.invocation import Invocation, reviewer
from cli.render.comments import sending_text
from cli.render.outcomes import conflict_text, decided_text, shown_units
from cli.render.zoom import Screenful, screenful
from cli.review_ui.hunk_place import located_hunk
from cli.review_ui.split_hunk import Part, parts
from cli.screen.editor import edited
from cli.screen.keyboard import END, ENTER, Keyboard
from cli.screen.progress import DECIDING, showing_progress
from cli.screen.terminal import Screen, flush, visible, write
from objstore import (
    Action,
    CasError,
    CheckFailed,
    Conflicted,
    Decided,
    NothingToDo,
    OnExternal,
    Status,
    Unit,
    blob_id,
    counted,
    counted_edits,
    ending_on_signals,
    value,
)

if TYPE_CHECKING:
    from objstore import BlobId, DecisionOutcome, ExternalChange, Hunk, Workspace

__all__ = ["ReviewDialogue", "Step", "failure"]


ROWS_AT_ONCE: Final = 400
"""Rows of a change that are shown at once, though most scroll out of sight: terminals keep more than these."""


@value
class Step:
    """One action of a review that can be undone."""

    units: tuple[Unit, ...]  # what was on the screen at the time
    decision: int  # its number
    verdicts: tuple[tuple[Unit, Status], ...] = ()  # (): it was an amendment
    amendment: int | None = None  # its number; None: it was a decision
    changes: int = 0  # number of the review's changes that it decided


class ReviewDialogue:
    """The screen, the keyboard, and what was decided in a review."""

    def __init__(self, workspace: "Workspace", keyboard: Keyboard, screen: Screen) -> None:
        """Begin without any decision."""
        self._workspace = workspace
        self._keyboard = keyboard
        self._screen = screen
        self._steps: list[Step] = []
        self._said: list[int] = []  # numbers of comments
        self._unused: Final[dict[tuple[str, tuple[Unit, ...]], str]] = {}  # texts typed for what failed or was left
        self._is_forgetful = False  # whether it was already reported that something can't be saved

    # ---- deciding

    def _resolved(
        self, action: Action, units: Mapping[Unit, Status], *, is_listed: bool = True, reason: str = ""
    ) -> "DecisionOutcome | None":
        """Decide on hunks, each given with the status that it was shown with, and on what goes along if wanted.

        `is_listed`: whether a question has listed those that are accepted; if not, one asks before they are taken back.
        Returns None if nothing was decided: why was shown.
        """
        shown = dict(units)
        if action is Action.REJECT and not is_listed:
            shown = {unit: status for unit, status in units.items() if status is not Status.ACCEPTED}
        decide = partial(self._outcome, action, reason=reason)
        outcome = decide([*units], shown)
        if not isinstance(outcome, Conflicted):
            return outcome
        also = self._statuses(outcome.recorded_to_reject)
        self._write(conflict_text(outcome, [], self._screen))
        if action is not Action.REJECT:
            return None
        listed = f" ({self._listed(also)})" if also else ""
        keep = ", keep the file with the lines of others [k]" if outcome.can_keep_lines else ""
        self._ask(f"Reject what depends on it too{listed} [y]{keep}, or leave it [any other key]")
        key = self._key()
        keeps_lines = outcome.can_keep_lines and key == "k"
        if key != "y" and not keeps_lines:
            return None
        further = {"cascade": not keeps_lines, "keeps_lines": keeps_lines}
        return decide([unit for unit in units if unit not in also], {**also, **shown}, refused=outcome, **further)

    def _listed(self, units: Mapping[Unit, Status]) -> str:
        """Return the names of hunks that go along, and how many of their edits are accepted already."""
        accepted = [unit for unit, status in units.items() if status is Status.ACCEPTED]
        return self._in_words(units) + (f"; {counted_edits(units, accepted)}" if accepted else "")

    def _in_words(self, units: Iterable[Unit]) -> str:
        return shown_units(units, self._workspace.history.edit)

    def _statuses(self, units: Iterable[Unit]) -> dict[Unit, Status]:
        return self._workspace.history.statuses(units)

    def _outcome(
        self,
        action: Action,
        units: Sequence[Unit],
        shown: Mapping[Unit, Status],
        **options: Any,  # noqa: ANN401 - `Review.decide` names and checks them
    ) -> "DecisionOutcome | None":
        """Take a decision, after the check of the settings if there is one; return None if it was left."""
        check = self._workspace.trials.check()
        decide = partial(self._workspace.decide, action, units, who=reviewer(), **options)
        if check is None:
            return self._carried_out(decide, units, shown)
        says = f"Checking with `{visible(check.command)}`; Ctrl-C stops it ..."

        def checked(**answers: Any) -> "DecisionOutcome":  # noqa: ANN401 - as of `Decide`
            with ending_on_signals():
                return decide(check=check, copied=lambda _: self._say(says), **answers)

        try:
            return self._carried_out(checked, units, shown)
        except CheckFailed as error:
            for said in (*error.lines, str(error)):
                self._say(visible(said))
            return None

    def _carried_out(
        self,
        decide: "Callable[..., DecisionOutcome]",
        units: Sequence[Unit] = (),
        shown: Mapping[Unit, Status] = MappingProxyType({}),
    ) -> "DecisionOutcome | None":
        """Take a decision, after asking about changes from outside, what goes along, and names that it breaks.

        `units`: what it is on, of which `shown` was on the screen. Returns None if it was left.
        """
        from cli.render.external_prompt import asked_words, settled

        def made(**answers: Any) -> "DecisionOutcome":  # noqa: ANN401 - as of `Decide`
            with showing_progress(self._workspace, DECIDING):
                return decide(**answers)

        def goes_ahead(planned: Decided, known: Mapping[Unit, Status]) -> bool:
            for said in asked_words(self._workspace, planned, known, {*shown, *units}):
                self._say(said)
            return self._is_wanted(planned.action if planned.unshown else None)

        return settled(made, shown=shown, about_external=self._asked_about, goes_ahead=goes_ahead)

    def _is_wanted(self, action: Action | None) -> bool:
        """Ask whether to go ahead with a decision (an action: on all that was listed), and return the answer."""
        doing = "Go ahead" if action is None else f"{action.value.capitalize()} all of it"
        self._ask(f"{doing} [y], or leave it [any other key]")
        return self._key() == "y"

    def _asked_about(self, changes: "tuple[ExternalChange, ...]") -> OnExternal:
        from cli.render.external_prompt import EXTERNAL_QUESTION, external_diff

        for change in changes:
            self._write(external_diff(self._workspace, change, self._screen))
        self._say("This was changed outside, and never recorded.")
        choices = dict.fromkeys(("k", "y", ENTER), OnExternal.KEEP) | {"d": OnExternal.DISCARD}
        self._ask(EXTERNAL_QUESTION)
        return choices.get(self._key(), OnExternal.ABORT)

    def _note(self, units: Sequence[Unit], outcome: Decided, changes: int, subject: str) -> None:
        """Report a decision on so many changes of the review, and remember how to undo it.

        `subject`: what it is on, in place of the names of edits and hunks ("": these).
        """
        says_unchanged = outcome.action is not Action.ACCEPT  # most accepts leave files as they are
        edit = self._workspace.history.edit
        told = decided_text(outcome, edit, self._screen, dry_run=False, says_unchanged=says_unchanged, subject=subject)
        self._write(told)
        step = Step(units=tuple(units), decision=outcome.number, verdicts=outcome.verdicts, changes=changes)
        self._steps.append(step)

    @contextmanager
    def _forgetting(self, what: str) -> Iterator[None]:
        """Continue if something can't be saved for the next review, and report that once."""
        try:
            yield
        except (CasError, OSError) as error:
            if not self._is_forgetful:
                self._say(f"cas: The next review will not know {what}: {visible(message_of(error))}")
            self._is_forgetful = True

    def _taken_back(self) -> Sequence[Unit] | None:
        """Undo what was done last, in this review if anything was, and return its hunks.

        Returns None if it remains: the reason was shown.
        """
        step = self._steps[-1] if self._steps else None
        number = 0 if step is None else step.decision
        outcome = self._stepped(partial(self._workspace.review.undo, number))
        match outcome:
            case Decided():
                self._write(decided_text(outcome, self._workspace.history.edit, self._screen, dry_run=False))
                if step is None:
                    return [unit for unit, _ in outcome.verdicts]
                self._steps.pop()
                return step.units
            case NothingToDo() if step is not None:
                self._say(f"Something else was decided since. `{Invocation.current().program} undo` undoes that.")
            case NothingToDo():
                self._say("There is nothing to undo.")
            case None:
                pass
            case _:
                if isinstance(outcome, Conflicted):
                    self._write(conflict_text(outcome, [], self._screen))
                self._say("That can't be undone now.")
        return None

    def _stepped(self, step: "Callable[..., DecisionOutcome]") -> "DecisionOutcome | None":
        """Undo or redo, as `_carried_out`. Raises DecidedMeanwhile if anyone decided while the person was asked."""
        return self._carried_out(partial(step, who=reviewer(), end=self._workspace.history.end()))

    # ---- showing more than a screen

    def _begun(self, lines: Iterable[bytes]) -> Screenful:
        """Show as many lines as are shown at once; return them, and the rest."""
        columns, rows = shutil.get_terminal_size()
        begun = screenful(lines, max(rows, ROWS_AT_ONCE), columns)
        self._write(begun.lines)
        return begun

    def _unrolled(self, lines: "Screenful") -> bool:
        """Show lines, of which the first are on the screen already, to their end; return whether the user got there."""
        while lines.rest:
            self._ask(f"... {counted(len(lines.rest), 'more line')}: show more [any key], all [G], or stop [q]")
            key = self._key()
            if key in {"q", END}:
                return False
            columns, rows = shutil.get_terminal_size()
            lines = screenful(lines.rest, sys.maxsize if key == "G" else rows - 1, columns)
            self._write(lines.lines)
        return True

    # ---- commenting

    def _commented(self, units: Sequence[Unit]) -> bool:
        """Ask for a comment on hunks of one file, and record it; return whether there is one."""
        text = self._text("Comment", units)
        if text:
            self._say(self._recorded_comment(units, text))
            del self._unused["Comment", tuple(units)]
        return bool(text)

    def _text(self, question: str, units: Sequence[Unit]) -> str:
        """Ask for a text about some hunks, and return it ("": none). One that was of no use yet is offered again."""
        about = (question, tuple(units))
        kept = self._unused.get(about, "")
        typed = self._line(f"{question} (Enter alone: {visible(kept)}; Ctrl-D: none)" if kept else question)
        self._unused[about] = kept if typed == "" else typed or ""
        return self._unused[about]

    def _recorded_comment(self, units: Sequence[Unit], text: str) -> str:
        """Record a comment, and return a sentence."""
        view = self._workspace.comments.add_to_units(units, text, who=reviewer())
        self._said.append(view.number)
        return f"Recorded comment {view.number}."

    # ---- amending

    def _amend_in_editor(self, unit: Unit) -> None:
        file = self._workspace.review.amendable(unit.seq)
        with self._keyboard.released(), edited(file) as content:
            self._record_amendment(unit, content, file.blob, base=file.bytes)

    def _record_amendment(
        self,
        unit: Unit,
        content: bytes,
        version: "BlobId",
        *,
        base: bytes | None = None,
        hunks: "Sequence[Hunk] | None" = None,
    ) -> None:
        outcome = self._workspace.review.amend(
            unit.seq, content, version=version, base=base, hunks=hunks, who=reviewer()
        )
        if not outcome.edits:
            self._say("Nothing was changed.")
        for view in outcome.edits:
            self._steps.append(Step(units=(unit,), decision=outcome.decision, amendment=view.seq))
            self._say(f"Recorded edit {view.seq}, which amends edit {unit.seq}. {unit} itself is still pending.")
            if view.edit.before is not None and view.edit.before.blob != version:
                self._say("The file changed meanwhile: your text was carried over to the new version.")

    def _decide_on_parts(self, unit: Unit) -> bool | None:
        """Ask about each part of a hunk; return whether any was accepted (None: the user stopped, or it has no parts).

        A rejected part is taken out at once, by an amendment of the edit.
        """
        split = located_hunk(self._workspace, unit)
        found = [] if isinstance(split, str) else parts(Part(old=split.old, new=split.new))
        if isinstance(split, str) or len(found) == 1:
            self._say(f"Can't split {unit}: {split if isinstance(split, str) else 'it has only one part'}.")
            return None
        version = blob_id(
            split.text([split.new])
        )  # the text that the parts are cut from: if the file differs, it stays
        done: list[tuple[bytes, ...]] = []
        left = list(found)
        kept = False
        while left:
            part = left.pop(0)
            if not part.changes:
                done.append(part.new)
                continue
            for sign, color, lines in ((b"-", "red", part.old), (b"+", "green", part.new)):
                shown = (self._screen.content(sign + line.removesuffix(b"\n")).decode() for line in lines)
                self._write(self._screen.line(self._screen.paint(line, color)) for line in shown)
            self._ask(f"Part of {unit}: accept, reject, split further, or stop? [a,x,s,q]")
            match self._key():
                case "a":
                    done.append(part.new)
                    kept = True
                case "x":
                    text = split.text([*done, part.old, *(rest.new for rest in left)])
                    self._record_amendment(unit, text, version, hunks=[split.taken_out(part, done)])
                    version = blob_id(text)
                    done.append(part.old)
                case "s":
                    left = [*parts(part), *left]
                case "q" | "\x04":
                    return None
                case _:
                    left = [part, *left]
        return kept

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
