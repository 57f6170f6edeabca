"""Review hunk by hunk: show one, and decide on it with one key.

Each decision is recorded before the next hunk is shown, so whatever ends the review, nothing is lost, and the next
review continues where it ended.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from cli.render.authors import Authors
from cli.render.edits import edit_diff, edit_header, shown_move
from cli.render.outcomes import conflict_text
from cli.render.zoom import zoom
from cli.review_ui.dialogue import Act, ReviewDialogue, Same, Step
from cli.review_ui.hunk_place import located_hunk
from cli.review_ui.hunk_queue import ReviewQueue, real_units
from cli.review_ui.split_hunk import Part, Split, parts
from cli.screen.keyboard import END, Keyboard
from cli.screen.terminal import EXACT, Screen, flush, shown_name, write
from objstore import (
    Action,
    Conflicted,
    Decided,
    NothingToDo,
    Status,
    Unit,
    blob_id,
)

if TYPE_CHECKING:
    from objstore import DecisionOutcome, EditView, PendingGroup, Workspace

__all__ = ["Review"]

KEYS: Final = {
    "a": "accept this hunk",
    "r": "reject this hunk",
    "R": "reject it and say why",
    "m": "comment on this hunk, for the agent that made it",
    "s": "skip: leave it pending, and go on; it comes last in the next review",
    "b": "back to the hunk before",
    "x": "split it, to decide on its parts one by one",
    "e": "edit: amend the file in your editor",
    "u": "undo what you did last in this review",
    "f": "decide on everything pending in this file (of this conversation)",
    "c": "decide on everything pending in this conversation",
    "v": "view the whole edit in the pager",
    "/": "search: go to the next hunk that holds a text",
    "n": "go to the next hunk that holds the text searched for",
    "q": "quit; all that was decided is recorded already",
    "?": "print this list",
}


Where: TypeAlias = "Unit | Same | None"
"""Where a review goes: to a hunk, nowhere, or on to the next one."""


class Review(ReviewDialogue[Unit]):
    """One pass over the pending hunks."""

    keys = KEYS

    def __init__(
        self,
        workspace: "Workspace",
        keyboard: Keyboard,
        screen: Screen,
        wanted: Callable[["PendingGroup", int], bool],
        units: Collection[Unit] | None = None,
    ) -> None:
        """Begin a pass over the pending edits that are `wanted`, given a group of edits and one's number.

        `units`: only these hunks of them; None: all.
        """
        super().__init__(workspace, keyboard, screen)
        self._review_queue = ReviewQueue(workspace, self._skipped_hunks, wanted, units)
        self._shown = Status.PENDING  # status of the hunk on the screen when it was shown

    def run(self) -> None:
        """Show hunk after hunk until none is left, or the person quits."""
        unit = self._review_queue.next()
        if unit is None:
            _, others = self._review_queue.counts()
            self._say(f"Nothing of these is pending, {_others(others)}." if others else "Nothing is pending.")
            return
        self._go_through(unit)
        self._close()

    def go_through(self) -> None:
        """Show hunk after hunk, and don't report at the end."""
        self._go_through(self._review_queue.next())

    def split(self, unit: Unit) -> None:
        """Split a pending hunk and ask about its parts."""
        self._acted("x", unit)

    def take_steps(self) -> tuple[list[Step], set[int], list[int]]:
        """Return what was done here and can be undone, the decisions that took back amendments, and the comments."""
        return self._steps, self._withdrawn, self._said

    def _go_through(self, unit: Unit | None) -> None:
        is_shown = False
        while unit is not None:
            if not is_shown:
                self._show(unit)
            self._ask(f"Decide on {unit} [a,r,R,m,s,b,x,e,u,f,c,v,/,n,q,?]")
            key = self._key()
            if key in {"q", END}:
                break
            match self._acted(key, unit):
                case Same() as same:
                    is_shown = same is Same.STAY
                case other:
                    unit, is_shown = other or self._review_queue.next(), False

    def _close(self) -> None:
        left, others = self._review_queue.counts()
        accepted, rejected = self._count_decided(Status.ACCEPTED), self._count_decided(Status.REJECTED)
        these = " of these" if others else ""
        rest = f"{left} edit{'s' * (left > 1)}{these} left pending" if left else f"nothing{these} is left pending"
        rest += f", {_others(others)}" if others else ""
        self._say(f"{_hunks(accepted)} accepted, {_hunks(rejected)} rejected, {rest}.")
        self._tell_what_is_sent()

    def _acts(self) -> Mapping[str, Act[Unit]]:
        return {
            "a": lambda unit: self._decided(Action.ACCEPT, {unit: self._shown}),
            "r": lambda unit: self._decided(Action.REJECT, {unit: self._shown}),
            "R": self._rejected_with_reason,
            "m": lambda unit: self._commented([unit]),
            "s": self._skipped,
            "b": self._back,
            "x": self._split,
            "e": self._amended,
            "u": self._undone,
            "f": lambda unit: self._grouped(unit, same_file=True),
            "c": lambda unit: self._grouped(unit, same_file=False),
            "v": self._viewed,
            "/": self._searched,
            "n": self._found,
            "?": self._helped,
        }

    def _decided_elsewhere(self, shown: Unit) -> str:
        is_decided = self._workspace.history.edit(shown.seq).units[shown.hunk] is not self._shown
        return f"{shown} was decided elsewhere meanwhile." if is_decided else ""

    # ---- deciding

    def _decided(self, action: Action, shown: Mapping[Unit, Status], *, reason: str = "") -> Where:
        """Decide on hunks, each given with the status that it was shown with, and return where that leads."""
        outcome = self._resolved(action, shown, reason=reason)
        if outcome is None:
            return Same.STAY
        return self._concluded(outcome, next(iter(shown)))

    def _concluded(self, outcome: "DecisionOutcome", unit: Unit) -> Where:
        """Report the outcome of a decision, and return where it leads."""
        match outcome:
            case Decided():
                self._note([unit], outcome)
                self._review_queue.leave(unit)
                return None
            case NothingToDo():
                self._say("Nothing to do: this is already decided that way.")
                return None
            case Conflicted():
                self._write(conflict_text(outcome, [], self._screen))
                return Same.STAY
            case _:
                self._say("Left as it is.")
                return Same.STAY

    def _count_decided(self, status: Status) -> int:
        """Return how many of the hunks decided here have the status now; each counts once."""
        decided = {unit for step in self._steps for unit, _ in step.verdicts}
        views = {seq: self._workspace.history.edit(seq) for seq in {unit.seq for unit in decided}}
        return sum(views[unit.seq].units[unit.hunk] is status for unit in decided if unit.hunk or views[unit.seq].whole)

    def _rejected_with_reason(self, unit: Unit) -> Where:
        reason = self._line("Reason")
        if not reason:
            return Same.STAY
        return self._decided(Action.REJECT, {unit: self._shown}, reason=reason)

    def _grouped(self, unit: Unit, *, same_file: bool) -> Where:
        view = self._workspace.history.edit(unit.seq)
        units = self._review_queue.alike(view, same_file=same_file)
        if not units:
            self._say("Nothing of it is pending.")
            return Same.STAY
        what = shown_move(None, view.edit.path) if same_file else shown_name(view.edit.conversation)
        self._ask(f"{_hunks(len(units))} of {what}: accept, reject or skip all? [a,r,s; any other key: none]")
        match self._key():
            case "a":
                return self._decided(Action.ACCEPT, dict.fromkeys(units, Status.PENDING))
            case "r":
                return self._decided(Action.REJECT, dict.fromkeys(units, Status.PENDING))
            case "s":
                self._put_off(units)
                return None
            case _:
                return Same.STAY

    def _skipped(self, unit: Unit) -> Where:
        self._put_off([unit])
        self._review_queue.leave(unit)
        return None

    def _put_off(self, units: Sequence[Unit]) -> None:
        for unit in units:
            self._review_queue.put_off(unit)
        self._remember(self._skipped_hunks.skip, units)

    def _undone(self, _: Unit) -> Where:
        step = self._taken_back()
        if step is None:
            return Same.STAY
        self._review_queue.go(step.units[0])
        return step.units[0] if not step.amendment else Same.SHOWN_AGAIN

    # ---- amending and splitting

    def _amended(self, unit: Unit) -> Where:
        self._amend_in_editor(unit)
        return Same.STAY

    def _split(self, unit: Unit) -> Where:
        split = located_hunk(self._workspace, unit)
        found = [] if isinstance(split, str) else parts(Part(old=split.old, new=split.new))
        if isinstance(split, str) or len(found) == 1:
            self._say(f"Can't split {unit}: {split if isinstance(split, str) else 'it has only one part'}.")
            return Same.STAY
        before = len(self._steps)
        kept = self._decide_on_parts(unit, split, found)
        if kept is None:
            return Same.STAY
        if kept:
            return self._decided(Action.ACCEPT, {unit: self._shown})
        # The amendments that took parts out are rejected with the hunk: without it, they would apply a second time.
        views = [self._workspace.history.edit(step.amendment) for step in self._steps[before:] if step.amendment]
        taken_out = {part: view.units[part.hunk] for view in views for part in real_units(view)}
        return self._decided(Action.REJECT, {unit: self._shown, **taken_out})

    def _decide_on_parts(self, unit: Unit, split: Split, found: list[Part]) -> bool | None:
        """Ask about each part; return whether any was accepted (None: the user stopped).

        A rejected part is taken out at once, by an amendment of the edit.
        """
        seen = blob_id(
            split.text([split.new])
        )  # the text that the parts are cut from: if the file differs by then, it stays
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
            self._ask(f"Part of {unit}: accept, reject, split further, or stop? [a,r,x,q]")
            match self._key():
                case "a":
                    done.append(part.new)
                    kept = True
                case "r":
                    text = split.text([*done, part.old, *(rest.new for rest in left)])
                    self._record_amendment(unit, text, seen, hunks=[split.taken_out(part, done)])
                    seen = blob_id(text)
                    done.append(part.old)
                case "x":
                    left = [*parts(part), *left]
                case "q" | "\x04":
                    return None
                case _:
                    left = [part, *left]
        return kept

    # ---- looking around

    def _back(self, _: Unit) -> Where:
        before = self._review_queue.back()
        if before is None:
            self._say("This is the first one.")
            return Same.STAY
        return before

    def _viewed(self, unit: Unit) -> Where:
        view, authors = self._workspace.history.edit(unit.seq), Authors(self._workspace)
        with self._keyboard.released():
            diff = edit_diff(view, self._workspace, self._screen)
            write(
                chain(edit_header(view, authors.fact(view), authors.verdicts(view), self._screen), [b"\n"], diff),
                paged=True,
            )
            flush()
        return Same.SHOWN_AGAIN

    def _searched(self, unit: Unit) -> Where:
        sought = self._line("Search for")
        if sought is None:
            return Same.STAY
        self._sought = sought or self._sought
        return self._found(unit)

    def _found(self, unit: Unit) -> Where:
        if not self._sought:
            return self._searched(unit)
        sought = self._sought.casefold()

        def fits(view: "EditView", unit: Unit) -> bool:
            lines = edit_diff(view, self._workspace, EXACT, [unit])
            return any(sought in line.decode(errors="replace").casefold() for line in lines)

        found = self._review_queue.find(fits, unit)
        if found is None:
            self._say(f"No pending hunk holds {shown_name(self._sought)}.")
            return Same.STAY
        self._review_queue.leave(unit)
        if found[1]:
            again = found[0] == unit
            self._say("It is in no other pending hunk." if again else "Searched from the top again.")
        return self._review_queue.go(found[0])

    # ---- the screen

    def _show(self, unit: Unit) -> None:
        view = self._workspace.history.edit(unit.seq)
        self._shown = view.units[unit.hunk]
        count = len(self._review_queue)
        place = f"({self._review_queue.position(unit)} of {count} edit{'s' * (count > 1)})"
        self._write(zoom(view, unit, place, self._workspace, self._screen))


def _others(number: int) -> str:
    return f"{number} other edit{'s are' if number > 1 else ' is'}"


def _hunks(number: int) -> str:
    return f"{number} hunk{'s' * (number != 1)}"
