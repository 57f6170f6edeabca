"""The review of `cas review`: show what pending edits change at a place, all together, and decide with one key.

Each decision is recorded before the next change is shown, so whatever ends the review, nothing is lost, and the next
review continues where it ended. Only what was on the screen is decided.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

from click import ClickException

from cli.render.net_diff import named_units
from cli.render.outcomes import conflict_text
from cli.render.prompts import quoted_prompt
from cli.render.turns import session_name
from cli.render.zoom import Screenful
from cli.review_ui.change_queue import ChangeQueue, Stop, stops_of
from cli.review_ui.change_view import ChangeView
from cli.review_ui.dialogue import ReviewDialogue, failure
from cli.review_ui.keys import ASKED, KEYS, TERMINAL_KEYS
from cli.screen.keyboard import END, Keyboard
from cli.screen.terminal import Screen, flush, shown_name, width_of_terminal, write
from objstore import (
    Action,
    CasError,
    Conflicted,
    Decided,
    DecidedMeanwhile,
    NamedPlace,
    NothingToDo,
    Selection,
    Status,
    Unit,
    changes_counted,
    counted,
)

if TYPE_CHECKING:
    from objstore import DecisionOutcome, NetFile, Selected, Workspace

__all__ = ["Review"]

Select: TypeAlias = "Callable[[Collection[str]], list[NetFile]]"
"""Returns the files with pending changes to review, of all paths or at some."""

UNITS_ASKED: Final = 3
"""Number of hunks that a question names, to fit a line of 80 columns. The diff above it names more."""

PROMPT_USED: Final = 30
"""Columns that the question about a turn leaves free next to its prompt."""

_MEANING_AT: Final = 9
"""Column at which the meanings of the keys begin."""

_NARROWEST: Final = 20
"""Columns that a meaning has at least."""

_DECIDING_KEYS: Final = frozenset("axXs")
"""Keys that decide on what is on the screen."""


class Same(Enum):
    """The review stays at what is on the screen."""

    STAY = "as it is on the screen"
    SHOWN_AGAIN = "shown once more"


Where: TypeAlias = "Stop | Same | None"
"""Where a key leads: to a change, nowhere, or (None) on to the next undecided one."""

Act: TypeAlias = Callable[[Stop], Where]
"""What a key does."""


class Review(ReviewDialogue):
    """One pass over the pending changes."""

    left_out = ""
    """Keys that this review does not have."""

    def __init__(
        self,
        workspace: "Workspace",
        keyboard: Keyboard,
        screen: Screen,
        select: Select,
        everything: Select,
        *,
        turn: int = 0,
        is_each: bool = False,
    ) -> None:
        """Begin a pass over what `select` selects of `everything` that is pending.

        `turn`: the turn that the review is about (0: no single one). `is_each`: show single edits instead of changes.
        """
        super().__init__(workspace, keyboard, screen)
        self._compared = 0  # the number that the next decision had before changes were last compared
        self._queue = ChangeQueue(self._noting(select), is_each=is_each)
        self._everything = everything
        self._is_narrowed = select is not everything
        self._turn = turn
        self._view = ChangeView(workspace, screen)
        self._decided: list[tuple[tuple[Unit, ...], int]] = []  # units, and of how many changes
        self._seen: set[bytes] = set(workspace.review.seen_changes())  # keys of changes
        self._shown: set[object] = set()  # marks of what was on the screen to its end
        self._rest: list[bytes] = []  # lines of the current change that were not on the screen yet
        self._known: dict[Unit, Status] = {}  # the hunks of the current change, each with the status that is shown
        self._is_group = False  # whether the last decision was one on a file or a turn
        self._others = 0  # number of pending changes that were not selected, once nothing else is left
        self._sought = ""

    def run(self) -> None:
        """Show change after change until none is left, or the person leaves."""
        stop = self._queue.first(lambda stop: not self._is_seen(stop)) or self._queue.first()
        if stop is None:
            others = self._count_others()
            rest = f"of these is pending, {counted(others, 'other change')} {_is(others)}"
            self._say(f"Nothing {rest if others else 'is pending'}.")
            return
        is_shown = False
        while stop is not None:
            if not is_shown:
                self._known = self._statuses(stop.units)
                if self._next_decision() != self._compared:  # it may have been on these
                    stop = self._queue.go(stop.key) or self._next()
                    continue
                self._show(stop)
            self._ask(self._question(stop))
            key = self._key()
            if not self._rest and key != END:
                self._note_shown([stop])
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

    def _question(self, stop: Stop) -> str:
        decided = self._decided_units()
        done = sum(step.changes for step in self._steps)
        before, left = self._queue.place(stop, decided)
        number = f"{done + before + 1} of {done + left}  " if stop.changes else ""
        named = str(stop.unit) if stop.unit is not None else named_units(stop.key, UNITS_ASKED)
        asked = ",".join(key for key in ASKED.split(",") if key not in self.left_out)
        return f"{number}Decide on {named} [{asked}]"

    def _noting(self, select: Select) -> Select:
        """Return a function that also notes how far decisions went before it compares changes."""

        def noting(at: Collection[str]) -> "list[NetFile]":
            self._compared = self._next_decision()
            return select(at)

        return noting

    def _next_decision(self) -> int:
        return self._workspace.history.end().next_decision

    def _is_seen(self, stop: Stop) -> bool:
        return bool(stop.changes) and all(change.key in self._seen for change in stop.changes)

    def _note_shown(self, stops: Iterable[Stop]) -> None:
        """Remember what was on the screen to its end, and mark its changes as seen, even if that can't be saved."""
        keys = []
        for stop in stops:
            self._shown |= stop.marks
            keys += [change.key for change in stop.changes if stop.unit is None and change.key not in self._seen]
        if keys:
            self._seen.update(keys)
            with self._forgetting("what you have seen"):
                self._workspace.review.mark_seen(keys)

    def _next(self) -> Stop | None:
        """Return the next undecided change, from the top again after the last."""
        while True:
            stop = self._queue.next()
            if stop is not None:
                return stop
            stop = self._queue.first()
            if stop is not None:
                left = sum(len(each.changes) or 1 for each in self._queue.all())
                self._say(f"That was the last one. {counted(left, 'change')} before it {_is(left)} undecided.")
                return stop
            where = self._continued()
            if not isinstance(where, Same):
                return where

    def _continued(self) -> Where:
        """At the end, offer to go on with what was not selected, and to undo a decision on many changes.

        Returns where that leads; None: the review is over.
        """
        self._others = self._count_others()
        undoes = self._is_group and bool(self._steps) and "u" not in self.left_out
        if not self._others and not undoes:
            return None
        these = f"of these is left; {counted(self._others, 'other change')} {_is(self._others)} pending"
        go_on = "go on with them [j], " if self._others else ""
        undo = "" if "u" in self.left_out else "undo [u], "
        self._ask(f"Nothing {these if self._others else 'else is left'}: {go_on}{undo}or end [any other key]")
        key = self._key()
        if key == "j" and self._others:
            self._queue = ChangeQueue(self._noting(self._everything), is_each=self._queue.is_each)
            self._is_narrowed, self._turn, self._others = False, 0, 0
            return self._queue.first()
        if key != "u" or "u" in self.left_out:
            return None
        try:
            return self._undone()
        except (CasError, OSError) as error:
            self._say(failure(error))
            return Same.STAY

    def _count_others(self) -> int:
        if not self._is_narrowed:
            return 0
        return sum(len(stop.changes) or 1 for file in self._everything(()) for stop in stops_of(file))

    def _close(self) -> None:
        counts = self._counts()
        left, files = self._queue.counts()
        others = 0 if left else self._others
        these = " of these" if others else ""
        rest = f"{counted(left, 'change')} left pending in {counted(files, 'file')}"
        rest = rest if left else f"nothing{these} is left pending"
        rest += f", {counted(others, 'other change')} {_is(others)}" if others else ""
        in_part = f"{counted(counts[None], 'change')} decided in part, " if counts[None] else ""
        accepted, rejected = (counted(counts[status], "change") for status in (Status.ACCEPTED, Status.REJECTED))
        decided = f"{accepted} accepted, {rejected} rejected"
        self._say(f"{decided}, {in_part}{rest}.")
        self._tell_what_is_sent()

    def _counts(self) -> "Counter[Status | None]":
        """Return how many of the changes decided here have each status now; None: parts of them differ."""
        statuses = self._statuses(unit for units, _ in self._decided for unit in units)
        counts: Counter[Status | None] = Counter()
        for units, changes in dict(self._decided).items():
            first, *others = {statuses[unit] for unit in units}
            counts[None if others else first] += changes
        return counts

    def _acted(self, key: str, shown: Stop) -> Where:
        """Do the action of a key, and return where it leads."""
        act = self._acts().get(key)
        if act is None:
            self._say("Press ? for what the keys do.")
            return Same.STAY
        try:
            self._workspace.reopen()  # if the last try could not be made durable
            if key in _DECIDING_KEYS:
                if elsewhere := self._decided_elsewhere(shown):
                    self._say(elsewhere)
                    return Same.SHOWN_AGAIN
                if self._rest:
                    return self._rolled(shown)
            return act(shown)
        except DecidedMeanwhile as error:
            self._say(str(error))
            return Same.SHOWN_AGAIN
        except (CasError, OSError, ClickException) as error:
            # A lock, a full disk, a file that is changed at this moment: all is as it was, and the user can try again.
            self._say(failure(error))
            return Same.STAY

    def _acts(self) -> Mapping[str, Act]:
        return {
            "j": self._onward,
            "k": lambda _: self._moved(self._queue.previous(), "No change before this one is pending."),
            "J": lambda _: self._moved(self._queue.neighbour(1), "This is the last file."),
            "K": lambda _: self._moved(self._queue.neighbour(-1), "This is the first file."),
            "a": lambda stop: self._decide(Action.ACCEPT, stop),
            "x": lambda stop: self._decide(Action.REJECT, stop),
            "X": self._rejected_with_reason,
            "c": lambda stop: Same.SHOWN_AGAIN if self._commented(stop.key) else Same.STAY,
            "s": self._split,
            "e": self._single_edits,
            ".": self._marked_seen,
            "u": lambda _: self._undone(),
            "U": self._redone,
            "t": self._whole_turn,
            "f": self._whole_file,
            "/": self._searched,
            "n": self._found,
            "v": self._viewed,
            "E": self._amended,
            " ": self._rolled,
            "?": self._helped,
        }

    def _helped(self, _: Stop) -> Same:
        from textwrap import wrap

        columns = max(width_of_terminal() - _MEANING_AT, _NARROWEST)
        for key, meaning in {**KEYS, **TERMINAL_KEYS}.items():
            if key in self.left_out:
                continue
            first, *rest = wrap(meaning, columns)
            self._say(f"  {'Space' if key == ' ' else key:5}  {first}")
            for each in rest:
                self._say(" " * _MEANING_AT + each)
        return Same.STAY

    def _decided_elsewhere(self, shown: Stop) -> str:
        gone = [unit for unit, status in self._statuses(shown.units).items() if status is not self._known[unit]]
        names = self._in_words(gone)
        was = "was" if names.count(" ") == 1 else "were"
        return f"{names.capitalize()} {was} decided elsewhere meanwhile." if gone else ""

    # ---- deciding

    def _decide(self, action: Action, stop: Stop, *, reason: str = "") -> Where:
        return self._concluded(self._resolved(action, self._known, is_listed=False, reason=reason), stop)

    def _concluded(
        self, outcome: "DecisionOutcome | None", stop: Stop, touched: Sequence[Stop] = (), subject: str = ""
    ) -> Where:
        """Report the outcome of a decision on a stop, or on those it touched, and return where that leads.

        `subject`: what it is on ("": the edits and hunks that it decided on).
        """
        match outcome:
            case Decided():
                before = self._decided_units()
                now = before.union(unit for unit, _ in outcome.verdicts)
                done = [
                    each
                    for each in self._queue.all()
                    if now.issuperset(each.whole) and not before.issuperset(each.whole)
                ]
                verdicts = {unit for unit, _ in outcome.verdicts}
                where = stop.key if verdicts.intersection(stop.key) else sorted(verdicts)
                self._note(where, outcome, sum(len(each.changes) for each in done), subject)
                for each in touched or (stop,):
                    if each.unit is None or not self._is_part(each):
                        self._decided.append((each.whole if each.unit else each.units, len(each.changes) or 1))
                self._is_group = False
                return None
            case NothingToDo():
                self._say("Nothing to do: this is already decided that way.")
                return None
            case None:
                return Same.STAY
            case Conflicted():
                self._write(conflict_text(outcome, [], self._screen))
                return Same.STAY
            case _:
                self._say("Left as it is.")
                return Same.STAY

    def _is_part(self, stop: Stop) -> bool:
        """Return whether another single edit of the same change was decided already."""
        return any(set(stop.whole).issubset(units) for units, _ in self._decided)

    def _rejected_with_reason(self, stop: Stop) -> Where:
        reason = self._text("Reason", stop.key)
        where = self._decide(Action.REJECT, stop, reason=reason) if reason else Same.STAY
        if where is not Same.STAY:
            del self._unused["Reason", tuple(stop.key)]
        return where

    def _decided_units(self) -> frozenset[Unit]:
        return frozenset(unit for step in self._steps for unit, _ in step.verdicts)

    # ---- deciding on many changes

    def _whole_file(self, stop: Stop) -> Where:
        name = shown_name(stop.file.path)
        selection = Selection(paths=(NamedPlace(path=stop.file.path, spelling=name),))
        selected = self._workspace.review.select(Action.REJECT, selection)
        return self._grouped(stop, selected.units, None, f"File {name}")

    def _whole_turn(self, stop: Stop) -> Where:
        report = self._view.refreshed()
        group = self._view.groups().get(stop.key[-1].seq)
        turn, session = (0, 0) if group is None else (group.turn, group.session)
        turn = self._turn or turn
        if turn:
            selection = Selection(turns=(turn,))
            prompts = [quoted_prompt(each.prompt, PROMPT_USED) for each in report.turns if each.number == turn]
            what = "".join([f"Turn {turn}", *prompts])
        elif session:
            selection = Selection(session=str(session))
            what = f"Session {shown_name(session_name(self._workspace.sessions.session(session)))}"
        else:
            self._say("No turn or session is known that made this change.")
            return Same.STAY
        rejected = self._workspace.review.select(Action.REJECT, selection)
        accepted = self._workspace.review.select(Action.ACCEPT, selection)
        return self._grouped(stop, rejected.units, accepted, what, turn)

    def _grouped(
        self, stop: Stop, units: Mapping[Unit, Status], accepting: "Selected | None", what: str, turn: int = 0
    ) -> Where:
        """Decide on units once all of them were on the screen; `accepting`: what an accept concerns (None: all).

        `turn`: the whole of which they are (0: of none).
        """
        pending = {unit for unit, status in units.items() if status is Status.PENDING}
        accepted = {unit: status for unit, status in units.items() if status is Status.ACCEPTED}
        touched = [
            each for file in self._everything(()) for each in stops_of(file) if not pending.isdisjoint(each.units)
        ]
        if not touched:
            self._say(f"{what}: nothing of it is pending.")
            return Same.STAY
        if not self._shown_all(touched):
            self._say("Nothing was decided.")
            return Same.SHOWN_AGAIN
        changes = counted(sum(len(each.changes) or 1 for each in touched), "change")
        changes += f" in {counted(len({each.file.document for each in touched}), 'file')}"
        edits = counted(len({unit.seq for unit in accepted}), "accepted edit")
        also = f" and {edits} ({self._in_words(accepted)})" if accepted else ""
        self._ask(f"{what}: {changes}. Accept [a] or reject [x] all{also}, or leave them [any other key]")
        key = self._key()
        if key not in {"a", "x"}:
            return Same.STAY
        action = Action.ACCEPT if key == "a" else Action.REJECT
        accepts = pending if accepting is None else pending.intersection(accepting.units)
        chosen = units if action is Action.REJECT else dict.fromkeys(sorted(accepts), Status.PENDING)
        if action is Action.ACCEPT and accepting is not None and accepting.unreviewed:
            self._say(f"review.always asks for a look at each of {', '.join(map(shown_name, accepting.unreviewed))}.")
        outcome = self._resolved(action, chosen) if chosen else NothingToDo()
        # What later changes took out of the file is not decided.
        done = {unit for unit, _ in outcome.verdicts} if isinstance(outcome, Decided) else chosen.keys()
        on = [each for each in touched if not done.isdisjoint(each.units)]
        names = list(dict.fromkeys(shown_name(each.file.path) for each in on))
        subject = changes_counted(sum(len(each.changes) or 1 for each in on), names, turn=turn)
        where = self._concluded(outcome, stop, touched, subject)
        if isinstance(outcome, Decided):
            self._is_group = True
            if "u" not in self.left_out:
                self._say("u undoes that.")
        return where

    def _shown_all(self, stops: Sequence[Stop]) -> bool:
        """Show those of some changes that were not on the screen yet; return whether all were, to their end."""
        hidden = [stop for stop in stops if not self._shown.issuperset(stop.marks)]
        if hidden:
            number = counted(sum(len(stop.changes) or 1 for stop in hidden), "change")
            self._say(f"{number} of these {'was' if number == '1 change' else 'were'} not on the screen yet:")
            lines = (line for stop in hidden for line in self._view.diff(stop.shown, self._seen))
            if not self._unrolled(self._begun(lines)):
                return False
            self._note_shown(hidden)
        return True

    def _undone(self) -> Where:
        units = self._taken_back()
        return Same.STAY if units is None else self._queue.go_after_undo(units) or Same.SHOWN_AGAIN

    def _redone(self, stop: Stop) -> Where:
        outcome = self._stepped(self._workspace.review.redo)
        if isinstance(outcome, NothingToDo):
            self._say("Nothing was undone since the last decision, so there is nothing to redo.")
            return Same.STAY
        where = self._concluded(outcome, stop)
        if isinstance(outcome, Decided):
            # To undo is to undo the decision that is in force again.
            number = self._workspace.review.in_force()[0].number
            self._steps[-1] = replace(self._steps[-1], decision=number)
        return where

    def _marked_seen(self, stop: Stop) -> Where:
        if self._rest:
            return self._rolled(stop)
        return self._onward(stop)  # all that was on the screen to its end is marked already

    # ---- single edits, parts of a hunk, and the file itself

    def _single_edits(self, stop: Stop) -> Where:
        if stop.unit is not None:
            self._queue.single_out(None)
            return self._queue.go(stop.whole)
        self._queue.single_out(stop)
        return self._queue.go(stop.units)

    def _amended(self, stop: Stop) -> Where:
        self._amend_in_editor(stop.key[-1])
        return Same.SHOWN_AGAIN

    def _split(self, stop: Stop) -> Where:
        """Ask about each part of a hunk, and decide on the hunk."""
        if len(stop.key) > 1:
            edits = counted(len(stop.key), "hunk")
            self._say(f"This change is made of {edits}: decide on them, or split one with s.")
            return self._single_edits(stop)
        unit = stop.key[0]
        before = len(self._steps)
        kept = self._decide_on_parts(unit)
        if kept is None:
            return Same.STAY if len(self._steps) == before else Same.SHOWN_AGAIN
        shown = {unit: self._known[unit]}
        if not kept:
            # The amendments that took parts out are rejected with the hunk: without it, they would apply a second time.
            views = [self._workspace.history.edit(step.amendment) for step in self._steps[before:] if step.amendment]
            shown |= {part: view.units[part.hunk] for view in views for part in view.telling_units}
        return self._concluded(self._resolved(Action.ACCEPT if kept else Action.REJECT, shown), stop)

    # ---- looking around

    def _onward(self, _: Stop) -> Where:
        return self._moved(self._queue.next(), "That was the last change; k goes back, q leaves.")

    def _moved(self, stop: Stop | None, otherwise: str) -> Where:
        if stop is None:
            self._say(otherwise)
            return Same.STAY
        return stop

    def _rolled(self, _: Stop) -> Where:
        """Show the lines of the current change that were not on the screen yet."""
        if not self._rest:
            self._say("All of this change is on the screen.")
        elif self._unrolled(Screenful([], self._rest)):
            self._rest = []
        return Same.STAY

    def _viewed(self, stop: Stop) -> Where:
        with self._keyboard.released():
            write(self._view.diff(stop.file, self._seen), paged=True)
            flush()
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
            lines = self._view.exact(stop)
            return any(sought in line.decode(errors="replace").casefold() for line in lines)

        found = self._queue.find(fits, stop)
        if found is None:
            self._say(f"No pending change holds {shown_name(self._sought)}.")
            return Same.STAY
        if found[1]:
            again = found[0].key == stop.key
            self._say("It is in no other pending change." if again else "Searched from the top again.")
        return self._queue.go(found[0].key)

    # ---- the screen

    def _show(self, stop: Stop) -> None:
        self._say()
        begun = self._begun(self._view.text(stop, self._queue.position(), self._seen))
        self._rest = begun.rest
        if begun.rest:
            self._say(f"... and {counted(len(begun.rest), 'more line')}: Space shows more.")


def _is(number: int) -> str:
    return "is" if number == 1 else "are"
