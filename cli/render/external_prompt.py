"""Ask what to do about changes from outside that block a decision, and whether to break names, and decide accordingly.

Without a terminal, the refusal shows how the changes begin, and what breaks is said after the decision.
"""

import sys
from collections.abc import Iterator, Sequence
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
)

if TYPE_CHECKING:
    from objstore import DecisionOutcome, ExternalChange, Workspace

__all__ = ["external_diff", "external_sides", "refuse", "settled"]

_LINES_SHOWN: Final = 20
"""Lines of the diffs of all changes from outside that a refusal shows."""

_SPECIAL: Final = {"named pipe", "socket", "device"}
"""What in the place of a file is in the way of every decision: no scan records it."""


class Decide(Protocol):
    """A decision that waits for answers."""

    def __call__(
        self, on_external: OnExternal, expected: tuple["ExternalChange", ...], *, stops_at_broken: bool
    ) -> "DecisionOutcome":
        """Take it, given what to do about changes from outside, and which of them the person was shown.

        `stops_at_broken`: if it breaks names, only return what it would do.
        """


def settled(
    workspace: "Workspace", decide: Decide, on_external: OnExternal | None, *, asks_about_names: bool
) -> "DecisionOutcome":
    """Take a decision and return its outcome; on a terminal, ask what to do about changes from outside.

    `on_external` is the answer given in advance (None: none). The outcome is ExternalChanges if the answer is to abort,
    or if no one can be asked. `asks_about_names`: on a terminal, also ask before it breaks names. Raises Abort if it
    should not.
    """
    stops = asks_about_names and can_ask()
    answer: OnExternal = on_external or OnExternal.ABORT
    expected: tuple[ExternalChange, ...] = ()
    outcome = decide(answer, expected, stops_at_broken=stops)
    if on_external is None and isinstance(outcome, ExternalChanges) and can_ask():
        # Standard output may be read by a program: the dialogue with the person is on stderr.
        for change in outcome.changes:
            for line in external_diff(workspace, change, FOR_STDERR):
                click.echo(line, err=True, nl=False)
        answer, expected = _asked(len(outcome.changes)), outcome.changes
        if answer is OnExternal.ABORT:
            return outcome
        outcome = decide(answer, expected, stops_at_broken=stops)
    if stops and isinstance(outcome, Decided) and not outcome.number:
        for said in broken_words(outcome):
            click.echo(visible(said), err=True)
        click.confirm("Go ahead?", abort=True, err=True)
        outcome = decide(answer, expected, stops_at_broken=False)
    return outcome


def refuse(
    workspace: "Workspace", changes: Sequence["ExternalChange"], on_external: OnExternal | None, program: str
) -> NoReturn:
    """Raise the refusal of a decision because of changes from outside, after the first lines of their diffs.

    These are on stderr, and only there if `settled` has not shown the diffs already. Arguments as of `settled` and
    `external_refusal`.
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


def _asked(number: int) -> OnExternal:
    # Before the question: Ctrl-C during an import may be lost in the import system's own clean-up.
    from cli.screen.keyboard import await_typing

    changes = "This change was" if number == 1 else f"These {number} changes were"
    click.echo(f"{changes} made outside and never recorded.", err=True)
    while True:
        try:
            click.echo(
                "Keep (record it and continue), discard (restore the recorded state), or abort? [K/d/a] ",
                err=True,
                nl=False,
            )
            await_typing(sys.stdin.fileno())
        except KeyboardInterrupt:
            click.echo(err=True)  # so that the shell's prompt begins a new line
            raise
        answer = sys.stdin.readline()
        if not answer:
            raise click.Abort
        choices = [choice for choice in OnExternal if choice.value.startswith(answer.strip().lower() or "keep")]
        if len(choices) == 1:
            return choices[0]
