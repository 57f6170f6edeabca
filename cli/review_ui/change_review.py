"""Review change by change: show what pending edits change at a place, all together, and decide with one key.

Each decision is recorded before the next change is shown, so whatever ends the review, nothing is lost, and the next
review continues where it ended.
"""

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from cli.app.invocation import Invocation
from cli.render.comments import comments_by_change
from cli.render.edits import shown_move
from cli.render.net_diff import named_units, net_diff
from cli.render.outcomes import shown_units
from cli.render.status import conversation_name, counted, shown_edits, turn_heading
from cli.render.zoom import MIN_ROWS, RESERVED_ROWS, height, screenful
from cli.review_ui.change_queue import ChangeQueue, Stop
from cli.review_ui.dialogue import Act, ReviewDialogue, Same, failure
from cli.review_ui.hunk_review import Review
from cli.screen.keyboard import END, Keyboard
from cli.screen.terminal import EXACT, Screen, flush, shown_name, write
from objstore import Action, CasError, Decided, NothingToDo, Status, Unit

if TYPE_CHECKING:
    from objstore import DecisionOutcome, NetFile, PendingGroup, StatusReport, Workspace

__all__ = ["KEYS", "ChangeReview"]

KEYS: Final = {
    "a": "accept this change",
    "r": "reject this change",
    "R": "reject it and say why",
    "m": "comment on this change, for the agent that made it",
    "s": "skip: leave it pending, and go on; it comes last in the next review",
    "b": "back to the change before that is still pending",
    "x": "go through its hunks one by one; a single hunk is split",
    "e": "edit: amend the file in your editor",
    "u": "undo what you did last in this review",
    "f": "decide on everything pending in this file",
    "t": "decide on everything pending of this turn",
    "c": "decide on everything pending of this conversation",
    "v": "view all changes of the file in the pager",
    "/": "search: go to the next change that holds a text",
    "n": "go to the next change that holds the text searched for",
    "q": "quit; all that was decided is recorded already",
    "?": "print this list",
}

UNITS_ASKED: Final = 3
"""Number of hunks that a question names: it fits on a line of 80 columns. The diff above it names more."""

TURNS_SHOWN: Final = 3
"""Number of turns that are named above a change; the others are counted."""


Where: TypeAlias = "Stop | Same | None"
"""Where a review goes: to a change, nowhere, or on to the next one."""


class ChangeReview(ReviewDialogue[Stop]):
    """One pass over the pending changes."""

    keys = KEYS

    def __init__(
        self,
        workspace: "Workspace",
        keyboard: Keyboard,
        screen: Screen,
        select: "Callable[[Collection[str]], list[NetFile]]",
    ) -> None:
        """Begin a pass over the changes of the files that `select` returns, of all paths or at some."""
        super().__init__(workspace, keyboard, screen)
        self._queue = ChangeQueue(select, self._is_skipped)
        self._report: StatusReport = workspace.review.status()
        self._decided: list[tuple[tuple[Unit, ...], int]] = []  # units, and of how many changes
        self._seen: set[bytes] = set(workspace.review.seen_changes())  # keys of changes
        self._is_whole = False  # whether all of the change is on the screen
        self._is_group = False  # whether the last decision was one on a file, a turn or a conversation

    def run(self) -> None:
        """Show change after change until none is left, or the person quits."""
        stop = self._queue.next()
        if stop is None:
            others, _ = self._workspace.review.pending_counts()
            rest = f"of these is pending, {counted(others, 'other edit')} {_is(others)}"
            self._say(f"Nothing {rest if others else 'is pending'}.")
            return
        is_shown = False
        while stop is not None:
            if not is_shown:
                self._show(stop)
            self._ask(f"Decide on {named_units(stop.key, UNITS_ASKED)} [a,r,R,m,s,b,x,e,u,f,t,c,v,/,n,q,?]")
            key = self._key()
            if key != END and self._is_whole:
                self._note_seen(stop)
            if key in {"q", END}:
                break
            match self._acted(key, stop):
                case Same.STAY:
                    is_shown = True
                case Same.SHOWN_AGAIN:
                    stop, is_shown = self._queue.go(stop.key) or self._next(), False
                case other:
                    stop, is_shown = other or self._next(), False
        self._close()

    def _note_seen(self, stop: Stop) -> None:
        """Mark the changes as seen; the review continues even if that can't be saved."""
        keys = [change.key for change in stop.changes if change.key not in self._seen]
        if keys:
            self._seen.update(keys)
            with self._forgetting("what you have seen"):
                self._workspace.review.mark_seen(keys)

    def _next(self) -> Stop | None:
        return self._queue.next() or self._undone_at_the_end()

    def _undone_at_the_end(self) -> Stop | None:
        """After a decision on many changes, offer to undo it although nothing is left to review."""
        while self._is_group and self._steps:
            self._ask("Nothing else is left to review: undo [u], or end [any other key]")
            if self._key() != "u":
                return None
            try:
                where = self._undone()
            except (CasError, OSError) as error:
                self._say(failure(error))
                continue
            if not isinstance(where, Same):
                return where or self._queue.next()
        return None

    def _close(self) -> None:
        accepted, rejected = self._count_decided(Status.ACCEPTED), self._count_decided(Status.REJECTED)
        left, files = self._queue.counts()
        others = 0 if left else self._workspace.review.pending_counts()[0]
        these = " of these" if others else ""
        rest = f"{counted(left, 'change')} left pending in {counted(files, 'file')}"
        rest = rest if left else f"nothing{these} is left pending"
        rest += f", {counted(others, 'other edit')} {_is(others)}" if others else ""
        self._say(f"{counted(accepted, 'change')} accepted, {counted(rejected, 'change')} rejected, {rest}.")
        self._tell_what_is_sent()

    def _count_decided(self, status: Status) -> int:
        """Return of how many of the changes decided here all units have the status now."""
        seqs = {unit.seq for units, _ in self._decided for unit in units}
        views = {seq: self._workspace.history.edit(seq).units for seq in seqs}
        return sum(
            changes
            for units, changes in dict(self._decided).items()
            if all(views[unit.seq][unit.hunk] is status for unit in units)
        )

    def _acts(self) -> Mapping[str, Act[Stop]]:
        return {
            "a": lambda stop: self._decide(Action.ACCEPT, stop),
            "r": lambda stop: self._decide(Action.REJECT, stop),
            "R": self._rejected_with_reason,
            "m": lambda stop: self._commented(stop.key),
            "s": self._skipped,
            "b": self._back,
            "x": self._hunk_by_hunk,
            "e": self._amended,
            "u": lambda _: self._undone(),
            "f": self._whole_file,
            "t": self._whole_turn,
            "c": self._whole_conversation,
            "v": self._viewed,
            "/": self._searched,
            "n": self._found,
            "?": self._helped,
        }

    def _decided_elsewhere(self, shown: Stop) -> str:
        gone = [unit for unit in shown.units if self._status(unit) is not Status.PENDING]
        was = "was" if len(gone) == 1 else "were"
        return f"{shown_units(gone).capitalize()} {was} decided elsewhere meanwhile." if gone else ""

    # ---- deciding

    def _decide(self, action: Action, stop: Stop, *, reason: str = "") -> Where:
        outcome = self._resolved(action, dict.fromkeys(stop.units, Status.PENDING), reason=reason)
        return self._concluded(outcome, stop, stop.units, max(1, len(stop.changes)))

    def _concluded(self, outcome: "DecisionOutcome | None", stop: Stop, units: Sequence[Unit], changes: int) -> Where:
        """Report the outcome of a decision on so many changes, and return where it leads."""
        match outcome:
            case Decided():
                self._note(stop.key, outcome)
                self._queue.leave(stop)
                self._decided.append((tuple(units), changes))
                self._is_group = False
                return None
            case NothingToDo():
                self._say("Nothing to do: this is already decided that way.")
                return None
            case None:
                return Same.STAY
            case _:
                self._say("Left as it is.")
                return Same.STAY

    def _rejected_with_reason(self, stop: Stop) -> Where:
        reason = self._line("Reason")
        return self._decide(Action.REJECT, stop, reason=reason) if reason else Same.STAY

    def _whole_file(self, stop: Stop) -> Where:
        own = set(stop.file.units)
        units = self._queue.units(lambda unit: unit in own)
        return self._grouped(stop, units or list(stop.key), shown_name(stop.file.path))

    def _whole_turn(self, stop: Stop) -> Where:
        self._report = self._workspace.review.status()
        groups = self._groups()
        turn = groups[stop.key[-1].seq].turn if stop.key[-1].seq in groups else 0
        if not turn:
            self._say("No turn is known for this; c takes the whole conversation.")
            return Same.STAY
        seqs = {seq for seq, group in groups.items() if group.turn == turn}
        return self._grouped(stop, self._queue.units(lambda unit: unit.seq in seqs), f"turn {turn}")

    def _whole_conversation(self, stop: Stop) -> Where:
        self._report = self._workspace.review.status()
        conversation = self._workspace.history.edit(stop.key[-1].seq).edit.conversation
        seqs = {seq for seq, group in self._groups().items() if group.conversation == conversation}
        return self._grouped(stop, self._queue.units(lambda unit: unit.seq in seqs), shown_name(conversation))

    def _grouped(self, stop: Stop, units: Sequence[Unit], what: str) -> Where:
        if not units:
            self._say("Nothing of it has a net effect any more.")
            return Same.STAY
        wanted = frozenset(units)
        touched = [each for each in self._queue.all() if not wanted.isdisjoint(each.units)]
        changes = sum(len(each.changes) or 1 for each in touched)
        files = counted(len({each.file.document for each in touched}), "file")
        self._ask(
            f"{counted(changes, 'change')} in {files}, of {what}: "
            "accept, reject or skip all? [a,r,s; any other key: none]"
        )
        key = self._key()
        actions = {"a": Action.ACCEPT, "r": Action.REJECT}
        if key == "s":
            self._put_off([unit for each in touched for unit in each.key])
            return None
        if key not in actions:
            return Same.STAY
        outcome = self._resolved(actions[key], dict.fromkeys(units, Status.PENDING))
        where = self._concluded(outcome, stop, units, changes)
        if isinstance(outcome, Decided):
            self._is_group = True
            self._say(f"{actions[key].value.capitalize()}ed {counted(changes, 'change')} in {files}; u undoes that.")
        return where

    def _skipped(self, stop: Stop) -> Where:
        self._put_off(stop.key)
        self._queue.leave(stop)
        return None

    def _put_off(self, units: Sequence[Unit]) -> None:
        self._queue.put_off(units)
        self._remember(self._skipped_hunks.skip, units)

    def _undone(self) -> Where:
        step = self._taken_back()
        return Same.STAY if step is None else self._queue.go_after_undo(step.units)

    def _amended(self, stop: Stop) -> Where:
        self._amend_in_editor(stop.key[-1])
        return Same.SHOWN_AGAIN

    def _hunk_by_hunk(self, stop: Stop) -> Where:
        """Go through the hunks of a change, as `cas review --each` does; what was done there can be undone here."""
        units, seqs = frozenset(stop.key), {unit.seq for unit in stop.key}
        review = Review(self._workspace, self._keyboard, self._screen, lambda _, seq: seq in seqs, units)
        if len(units) == 1:
            review.split(stop.key[0])
        else:
            review.go_through()
        steps, withdrawn, said = review.take_steps()
        self._said += said
        self._steps += steps
        self._withdrawn |= withdrawn
        if steps:
            self._decided.append((stop.key, max(1, len(stop.changes))))
            self._is_group = False
        return Same.SHOWN_AGAIN

    # ---- looking around

    def _back(self, _: Stop) -> Where:
        before = self._queue.back()
        if before is None:
            self._say("No change before this one is pending; u undoes a decision.")
            return Same.STAY
        return before

    def _viewed(self, stop: Stop) -> Where:
        with self._keyboard.released():
            write(self._diff(stop.file), paged=True)
            flush()
        self._note_seen(stop)
        return Same.SHOWN_AGAIN

    def _searched(self, stop: Stop) -> Where:
        sought = self._line("Search for")
        if sought is None:
            return Same.STAY
        self._sought = sought or self._sought
        return self._found(stop)

    def _found(self, stop: Stop) -> Where:
        if not self._sought:
            return self._searched(stop)
        sought = self._sought.casefold()

        def fits(stop: Stop) -> bool:
            lines = net_diff([stop.shown], EXACT, "")
            return any(sought in line.decode(errors="replace").casefold() for line in lines)

        found = self._queue.find(fits, stop)
        if found is None:
            self._say(f"No pending change holds {shown_name(self._sought)}.")
            return Same.STAY
        self._queue.leave(stop)
        if found[1]:
            again = found[0].key == stop.key
            self._say("It is in no other pending change." if again else "Searched from the top again.")
        return self._queue.go(found[0].key)

    # ---- the screen

    def _show(self, stop: Stop) -> None:
        file = stop.file
        at, files = self._queue.position()
        moved = os.fsencode(file.path_before) if file.path_before != file.path else None
        title = shown_move(moved, os.fsencode(file.path))
        changes = counted(len(file.changes), "change") if file.changes else "no net change"
        place = f"(file {at} of {files}, {changes} left in it)"
        head = [f"{self._screen.paint(title, bold=True)}  +{file.added} -{file.removed}  {place}", *self._turns(stop)]
        if len(stop.changes) > 1:
            head.append(f"These {len(stop.changes)} changes share hunks and are decided together; x goes through them.")
        if stop.changes and stop.is_last and len(file.cancelled) > len(file.taken_out):
            head.append("Hunks that cancel out are decided with it.")
        self._say()
        self._write(map(self._screen.line, head))
        columns, rows = shutil.get_terminal_size()
        room = max(MIN_ROWS, rows - RESERVED_ROWS - sum(height(line, columns) for line in head) + 1)
        shown = screenful(self._diff(stop.shown), room, columns)
        self._write(shown.lines)
        self._is_whole = not (shown.is_cut or shown.more)
        rest = ["the rest of this line"] if shown.is_cut else []
        rest += [counted(shown.more, "more line")] if shown.more else []
        if rest:
            self._say(f"... and {', and '.join(rest)}: v shows all.")

    def _diff(self, file: "NetFile") -> Iterator[bytes]:
        comments = partial(comments_by_change, self._workspace)
        return net_diff([file], self._screen, Invocation.current().program, comments, self._seen)

    def _turns(self, stop: Stop) -> Iterator[str]:
        """Yield a line for each turn, or conversation without turns, that made the change, with its edits."""
        seqs = sorted({unit.seq for unit in stop.key})
        groups = self._groups()
        if not groups.keys() >= set(seqs):
            self._report = self._workspace.review.status()  # an agent continued
            groups = self._groups()
        turns = {turn.number: turn for turn in self._report.turns}
        made: dict[tuple[int, str], list[int]] = {}
        for seq in seqs:
            if seq in groups:
                group = groups[seq]
                made.setdefault((group.turn, "" if group.turn else conversation_name(group)), []).append(seq)
        for (turn, conversation), edits in list(made.items())[:TURNS_SHOWN]:
            named = f"  edit{'s' * (len(edits) > 1)} {shown_edits(edits)}"
            yield turn_heading(turns.get(turn), conversation, self._screen, used=len(named)) + named
        if len(made) > TURNS_SHOWN:
            yield f"and {counted(len(made) - TURNS_SHOWN, 'turn')} more"

    # ---- inside

    def _groups(self) -> "dict[int, PendingGroup]":
        return {int(seq): group for group in self._report.groups for seq in group.seqs}

    def _status(self, unit: Unit) -> Status:
        return self._workspace.history.edit(unit.seq).units[unit.hunk]

    def _is_skipped(self, unit: Unit) -> bool:
        return self._skipped_hunks.is_skipped(self._workspace.history.edit(unit.seq).id, unit.hunk)


def _is(number: int) -> str:
    return "is" if number == 1 else "are"
