"""Ask before a decision about changes from outside that block it, what goes along, and names that it breaks.

Without a terminal, the refusal shows how the changes begin; what goes along and what breaks is said after the decision.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

import click

from cli.render.outcomes import BYTES_SHOWN, external_refusal
from cli.screen.terminal import FOR_STDERR, Screen, can_ask, shown_name, visible
from objstore import (
    MAX_BLOB,
    Decided,
    ExternalChanges,
    FileMissing,
    FileTooLarge,
    OnExternal,
    PathError,
    beginning,
    broken_words,
    placeholder,
    question_words,
    step_question,
)

if TYPE_CHECKING:
    from objstore import DecisionOutcome, ExternalChange, Status, Unit, Workspace

__all__ = [
    "EXTERNAL_QUESTION",
    "asked_words",
    "external_diff",
    "external_sides",
    "refuse",
    "settled",
    "settled_in_dialogue",
]

EXTERNAL_QUESTION: Final = "Keep (record it and continue), drop (restore the recorded state), or abort? [K/d/a]"
"""The question about changes from outside that a decision has to settle."""

_ANSWERS: Final = {
    "keep": OnExternal.KEEP,
    "drop": OnExternal.DISCARD,
    "discard": OnExternal.DISCARD,
    "abort": OnExternal.ABORT,
}
"""What each answer means; its beginning is enough."""

_LINES_SHOWN: Final = 20
"""Lines of the diffs of all changes from outside that a refusal shows."""

_SPECIAL: Final = {"named pipe", "socket", "device"}
"""What in the place of a file is in the way of every decision: no scan records it."""


class Decide(Protocol):
    """A decision that waits for answers."""

    def __call__(
        self,
        *,
        on_external: OnExternal,
        expected: tuple["ExternalChange", ...],
        shown: "Mapping[Unit, Status]",
        stops_at_unshown: bool,
        stops_at_broken: bool,
    ) -> "DecisionOutcome":
        """Take it, given what to do about changes from outside, and which of them the person was shown.

        `shown`: the hunks that the person knows it is on, by status. `stops_at_unshown`, `stops_at_broken`: if it takes
        others along, or breaks names, only return what it would do.
        """


def settled(
    decide: Decide,
    on_external: OnExternal | None = None,
    *,
    shown: "Mapping[Unit, Status]",
    about_external: "Callable[[tuple[ExternalChange, ...]], OnExternal] | None",
    goes_ahead: "Callable[[Decided, Mapping[Unit, Status]], bool] | None",
) -> "DecisionOutcome | None":
    """Take a decision and return its outcome; ask about changes from outside, what it takes along, and what it breaks.

    `on_external` is the answer given in advance (None: none), and `about_external` asks for it. `goes_ahead` asks if a
    decision takes along more than is `shown`, or breaks names, given what it would do and all that was shown by then
    (None: that is not asked). The outcome is ExternalChanges if the answer is to abort, or if no one is asked; None if
    the decision is left.
    """
    known = dict(shown)
    stops = goes_ahead is not None
    chosen = partial(
        decide,
        on_external=on_external or OnExternal.ABORT,
        expected=(),
        stops_at_unshown=stops,
        stops_at_broken=stops,
    )
    outcome = chosen(shown=known)
    if on_external is None and about_external is not None and isinstance(outcome, ExternalChanges):
        answer = about_external(outcome.changes)
        if answer is OnExternal.ABORT:
            return outcome
        chosen = partial(chosen, on_external=answer, expected=outcome.changes)
        outcome = chosen(shown=known)
    while goes_ahead is not None and isinstance(outcome, Decided) and not outcome.number:
        known |= dict(outcome.unshown)
        if not goes_ahead(outcome, known):
            return None
        if not outcome.unshown:
            chosen = partial(chosen, stops_at_broken=False)
        outcome = chosen(shown=known)
    return outcome


def asked_words(
    workspace: "Workspace", planned: Decided, known: "Mapping[Unit, Status]", named: "Collection[Unit]"
) -> list[str]:
    """Return what to ask before a decision that takes more along than was shown, or breaks names, in sentences.

    `known`: all that it is on, by status; `named`: what the person decides on.
    """
    edit = workspace.history.edit
    if not planned.unshown:
        return [visible(said) for said in broken_words(planned, edit)]
    if planned.act is not None:
        return [visible(step_question(planned, edit, shown_name))]
    along = {unit: status for unit, status in known.items() if unit not in named}
    return [question_words(planned.action, known, along, edit)]


def settled_in_dialogue(
    workspace: "Workspace",
    decide: Decide,
    on_external: OnExternal | None,
    *,
    asks: bool,
    shown: "Mapping[Unit, Status]",
    named: "Collection[Unit]" = (),
) -> "DecisionOutcome":
    """Take a decision and return its outcome; on a terminal, ask as `settled`. Raises Abort if it should not be taken.

    `asks`: whether to ask about what goes along and breaks; `named`: as of `asked_words`. Standard output may be read
    by a program: the dialogue with the person is on stderr.
    """
    outcome: DecisionOutcome | None
    if not can_ask():
        outcome = settled(decide, on_external, shown=shown, about_external=None, goes_ahead=None)
    else:
        about_external = partial(_asked_about_external, workspace)
        goes_ahead = partial(_goes_ahead, workspace, named) if asks else None
        outcome = settled(decide, on_external, shown=shown, about_external=about_external, goes_ahead=goes_ahead)
    if outcome is None:
        raise click.Abort
    return outcome


def refuse(
    workspace: "Workspace", changes: Sequence["ExternalChange"], on_external: OnExternal | None, program: str
) -> NoReturn:
    """Raise the refusal of a decision because of changes from outside, after the first lines of their diffs.

    These are on stderr, and only there if `settled_in_dialogue` has not shown the diffs already. `on_external`: the
    answer given in advance (None: none); `program`: as of `external_refusal`.
    """
    in_the_way = [(change.path, change.taken_by) for change in changes if change.taken_by in _SPECIAL]
    if in_the_way:
        path, kind = in_the_way[0]
        raise click.ClickException(
            f"refused, nothing was changed: a {kind} is in the place of {shown_name(path)}.\n"
            "Move it away and run the command again."
        )
    if on_external is not None or not can_ask():
        lines = chain.from_iterable(external_diff(workspace, change, FOR_STDERR) for change in changes)
        for line in islice(lines, _LINES_SHOWN):
            shown = beginning(line, BYTES_SHOWN)
            click.echo(shown if shown == line else shown + b"...\n", err=True, nl=False)
        if next(lines, None) is not None:
            click.echo("...", err=True)
    raise click.ClickException(external_refusal(changes, program))


def external_diff(workspace: "Workspace", change: "ExternalChange", screen: Screen) -> Iterator[bytes]:
    """Yield the diff between the last recorded state of a file and the file on disk."""
    from cli.screen.diffs import diff_text

    try:
        recorded, found = external_sides(workspace, change)
    except PathError as error:
        yield screen.line(f"{shown_name(change.path)}: {shown_name(str(error))}")
        return
    modes = (change.recorded_mode, change.found_mode)
    yield from diff_text(recorded, found, change.path, change.path, screen, modes=modes)


def external_sides(workspace: "Workspace", change: "ExternalChange") -> tuple[bytes | None, bytes | None]:
    """Return a file's last recorded bytes and those on disk (None: no file), for a diff. Raises PathError."""
    recorded = None if change.recorded is None else workspace.history.text(change.recorded)
    try:
        return recorded, None if change.found is None else workspace.read(change.path, limit=MAX_BLOB).bytes
    except FileTooLarge:
        return recorded, None if change.found is None else placeholder(change.found)
    except FileMissing:
        return recorded, None


def _goes_ahead(
    workspace: "Workspace", named: "Collection[Unit]", planned: Decided, known: "Mapping[Unit, Status]"
) -> bool:
    for said in asked_words(workspace, planned, known, named):
        click.echo(said, err=True)
    return click.confirm("Go ahead?", err=True)


def _asked_about_external(workspace: "Workspace", found: "tuple[ExternalChange, ...]") -> OnExternal:
    for change in found:
        for line in external_diff(workspace, change, FOR_STDERR):
            click.echo(line, err=True, nl=False)
    # Before the question: Ctrl-C during an import may be lost in the import system's own clean-up.
    from cli.screen.keyboard import await_typing

    changes = "This change was" if len(found) == 1 else f"These {len(found)} changes were"
    click.echo(f"{changes} made outside and never recorded.", err=True)
    while True:
        try:
            click.echo(f"{EXTERNAL_QUESTION} ", err=True, nl=False)
            await_typing(sys.stdin.fileno())
        except KeyboardInterrupt:
            click.echo(err=True)  # so that the shell's prompt begins a new line
            raise
        answer = sys.stdin.readline()
        if not answer:
            raise click.Abort
        typed = answer.strip().lower() or "keep"
        choices = {choice for word, choice in _ANSWERS.items() if word.startswith(typed)}
        if len(choices) == 1:
            return choices.pop()
