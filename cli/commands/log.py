"""The command `cas log`."""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Command, Invocation, Number, command, json_option
from cli.render.rows import Rows
from cli.render.unreadable import ReadErrors
from cli.screen.diff_layout import for_pager, takes_layout
from cli.screen.terminal import Screen, write, write_json
from cli.search.candidates import conversation_option, file_option, moments, named, names, takes_turns
from cli.search.edit_list import EditConditions, accepted_by, lineage_at, matching, tool_named
from cli.search.pickaxe import Pickaxe
from cli.selection.selectors import edit_filter, places_named
from cli.selection.turn_selection import TurnSelection
from objstore import MAX_INT, EditFilter, EditView, GitEvent, NoSuchName, Origin, Status, replace

if TYPE_CHECKING:
    from cli.screen.progress import Progress
    from objstore import Workspace

from cli.commands.show import diff_text, stat_text

__all__ = ["log", "moment_named"]

_MOST_EDITS: Final = sys.maxsize
"""Larger numbers are taken for a mistake and refused."""


class _Log(Command):
    """The command `log`, in which `-3` means the newest three, as in other logs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `-3` as `-n 3`, unless it is the value of the option before it."""
        taking = {
            name
            for param in self.params
            if isinstance(param, click.Option) and not param.is_flag
            for name in param.opts
        }
        behind = args.index("--") if "--" in args else len(args)
        expanded = [
            f"-n{word[1:]}" if re.fullmatch("-[0-9]+", word) and at < behind and before not in taking else word
            for at, (before, word) in enumerate(pairwise(["", *args]))
        ]
        return super().parse_args(ctx, expanded)


def since_named(_: click.Context, __: click.Parameter, spelling: str | None) -> int | None:
    """Return the first moment of an option's value (None: it is not given)."""
    return None if spelling is None else moment_named(spelling)


def until_named(_: click.Context, __: click.Parameter, spelling: str | None) -> int | None:
    """Return the last moment of an option's value (None: it is not given)."""
    return None if spelling is None else moment_named(spelling, end=True)


def moment_named(spelling: str, *, end: bool = False) -> int:
    """Return the time that `2h`, `3 days ago`, `yesterday`, `2026-11-20` or `2026-11-20 14:30` names.

    In microseconds since 1970-01-01 UTC. A day, or a week (2026-W47), means its first moment; with `end`, its last.
    Raises click.BadParameter.
    """
    if not spelling:
        raise click.BadParameter("it is empty.")
    from datetime import UTC, datetime

    from objstore import moment_of

    moment = moment_of(spelling, datetime.now(UTC).astimezone(), end=end)
    if moment is None:
        raise click.BadParameter(
            f"{spelling!r} is not a time: use 2h, 3d, yesterday, 2026-11-20 or '2026-11-20 14:30'."
        )
    return moment


@command("log", cls=_Log, takes_others=True)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=named("path"))
@click.option("--turns", "group", flag_value="turns", help="List the turns instead of their edits.")
@click.option("--sessions", "group", flag_value="sessions", help="List the sessions instead of their edits.")
@takes_turns("Only edits")
@conversation_option("Only edits of this conversation.")
@file_option("Only edits of the files that were ever at PATH.")
@click.option("--follow", is_flag=True, help="Follow the file that is at PATH now through its renames.")
@click.option("--tool", metavar="NAME", shell_complete=names("tool"), default="", help="Only edits by this tool.")
@click.option("--status", type=click.Choice([status.value for status in Status]), help="Only edits of this status.")
@click.option(
    "--since",
    callback=since_named,
    metavar="TIME",
    shell_complete=moments,
    help="Only edits since TIME: 2h, yesterday, 2026-11-20 14:30.",
)
@click.option("--until", callback=until_named, metavar="TIME", shell_complete=moments, help="Only edits until TIME.")
@click.option("--commit", metavar="REV", default="", help="Only edits that this git commit accepted.")
@click.option("-S", "text", metavar="TEXT", help="Only edits that added or removed TEXT; reads every state of them.")
@click.option("-n", "--number", type=Number(1, _MOST_EDITS), help="Only the newest NUMBER edits; -3 is -n 3.")
@click.option("-p", "--patch", is_flag=True, help="Show the diff of each edit.")
@click.option("--reverse", is_flag=True, help="Oldest first.")
@takes_layout
@json_option
def log(  # noqa: PLR0913 -- each is an option of the command
    *,
    paths: tuple[str, ...],
    group: str | None,
    by: TurnSelection,
    conversation: str,
    file: str,
    follow: bool,
    tool: str,
    status: str | None,
    since: int | None,
    until: int | None,
    commit: str,
    text: str | None,
    number: int | None,
    patch: bool,
    reverse: bool,
    stat: bool,
    columns: bool | None,
    as_json: bool,
) -> None:
    """List the recorded edits, newest first: all, or those of each PATH, a file or a folder.

    A turn is what an agent did from one prompt to its stop, a session one run of an agent's program.

    With --json, one object a line.
    """
    places = (*paths, file) if file else paths
    if group is not None:
        conditions = [*places, conversation, by.agent, tool, status or "", commit, text or ""]
        _refuse_with_turns(group, conditions, is_shown_otherwise=follow or patch or stat or bool(columns))
        _list_turns(group, by, since, until, number, reverse=reverse, as_json=as_json)
        return
    _refuse_combinations(places, text, follow=follow, patch=patch, as_json=as_json)
    invocation = Invocation.current()
    read_errors = ReadErrors()
    from cli.screen.progress import Progress

    with invocation.reviewed_workspace() as workspace, Progress({"edits": "searching"}) as progress:
        found = places_named(workspace, places, hidden=not follow)
        if follow and not found.file:
            raise NoSuchName(places[0], "recorded file")  # it is a folder, or a pattern
        decided = None if status is None else Status(status)
        named = edit_filter(workspace, conversation=conversation, status=decided, by=by)
        wanted = replace(named, path=found.file)
        terms = EditConditions(
            tool=tool_named(workspace, tool) if tool else "",
            since=since,
            until=until,
            document=lineage_at(workspace, wanted.path) if follow else None,
            places=found,
            turns=frozenset(by.turns),
            agent=by.agent,
            seqs=accepted_by(workspace, commit) if commit else None,
            pickaxe=None if text is None else Pickaxe(workspace, os.fsencode(text), progress, read_errors),
        )
        # Without other conditions, what git did is one line for each event; else its edits are listed like others.
        with_events = not (as_json or stat) and wanted == EditFilter() and terms.concern_only_times
        views = matching(workspace, wanted, terms, None if with_events else number)
        rows: Iterator[EditView | GitEvent] = views
        if with_events:
            rows = islice(_with_git_events(workspace, views, since, until), number)
        if reverse:
            rows = reversed(list(rows))
            views = (row for row in rows if isinstance(row, EditView))
        screen = for_pager(invocation.screen(), columns) if patch or columns else invocation.screen()
        if as_json:
            from objstore import edit_shape, json_line

            verdicts, awaited = workspace.history.verdicts(), workspace.awaited()
            pieces: Iterator[bytes] = (
                json_line(edit_shape(workspace, view, read_errors.note, verdicts, awaited)) for view in views
            )
        elif stat and patch:
            listed = list(views)  # the table comes first
            table = stat_text(workspace, listed, screen, read_errors, newest_first=not reverse)
            pieces = chain(table, [screen.line()], _log_text(workspace, listed, screen, read_errors, patch=True))
        elif stat:
            pieces = stat_text(workspace, views, screen, read_errors, newest_first=not reverse)
        else:
            pieces = _log_text(workspace, rows, screen, read_errors, patch=patch or bool(columns))
        write(pieces if text is None else _searched(pieces, progress), paged=not as_json)
        if not as_json and not workspace.history.edits(EditFilter(limit=1)):
            click.echo("Nothing is recorded yet.", err=True)
        if terms.pickaxe is not None:
            _say_what_was_not_searched(terms.pickaxe)
    read_errors.raise_first()


def _refuse_combinations(
    places: tuple[str, ...], text: str | None, *, follow: bool, patch: bool, as_json: bool
) -> None:
    """Raise click.UsageError if the options make no sense together."""
    if follow and len(places) != 1:
        raise click.UsageError("--follow follows one file: name one PATH.")
    if text == "":
        raise click.UsageError("-S needs a text of at least one character.")
    if patch and as_json:
        raise click.UsageError("`cas log --json` has no diffs. Use `cas show EDIT --json` for those of an edit.")


def _refuse_with_turns(group: str, conditions: Iterable[str], *, is_shown_otherwise: bool) -> None:
    """Raise click.UsageError if a list of turns or sessions is combined with what only lists of edits have."""
    if is_shown_otherwise or any(conditions):
        raise click.UsageError(f"--{group} can be combined with --turn, --session, --since, --until, -n and --reverse.")


def _list_turns(
    group: str,
    by: TurnSelection,
    since: int | None,
    until: int | None,
    number: int | None,
    *,
    reverse: bool,
    as_json: bool,
) -> None:
    """List turns or sessions, newest first. Raises NoSuchName, AmbiguousName."""
    from cli.render.turns import TurnRows

    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        by.check(workspace)
        session = workspace.sessions.find_session(by.session).number if by.session else None
        turns = [turn for turn in workspace.sessions.turns(session) if not by.turns or turn.number in by.turns]
        sessions = [found for found in workspace.sessions.sessions() if session in {None, found.number}]
        if by.turns:
            sessions = [found for found in sessions if found.number in {turn.session for turn in turns}]
    first, last = since or 0, MAX_INT if until is None else until
    turns = [turn for turn in reversed(turns) if first <= turn.time <= last][:number]
    shown = [found for found in reversed(sessions) if found.ended >= first and found.began <= last][:number]
    if reverse:
        turns, shown = turns[::-1], shown[::-1]
    is_of_turns = group == "turns"
    if as_json:
        from objstore import session_shape, turn_shape

        write_json(map(turn_shape, turns) if is_of_turns else map(session_shape, shown))
        return
    rows = TurnRows(sessions, invocation.screen())
    write(map(rows.of_turn, turns) if is_of_turns else map(rows.of_session, shown), paged=True)
    if not (turns if is_of_turns else shown):
        click.echo(f"No {group[:-1]} is recorded{'' if by == TurnSelection() else ' that matches'}.", err=True)


def _with_git_events(
    workspace: "Workspace", views: Iterable[EditView], since: int | None = None, until: int | None = None
) -> Iterator[EditView | GitEvent]:
    """Yield edits, newest first; git's are left out, and each of git's events has a line at its place among the others.

    `since`, `until`: only events between these times (µs since 1970-01-01 UTC; None: no limit).
    """
    events = (
        event
        for event in workspace.history.git_events()
        if (since is None or event.time >= since) and (until is None or event.time <= until)
    )
    event = next(events, None)
    for view in views:
        while event is not None and event.after >= view.seq:
            yield event
            event = next(events, None)
        if view.edit.origin is not Origin.GIT:
            yield view
    while event is not None:
        yield event
        event = next(events, None)


def _say_what_was_not_searched(pickaxe: Pickaxe) -> None:
    for count, what, fate in ((pickaxe.expired, "expired edit", "gone"), (pickaxe.lost, "edit", "lost")):
        if count:
            click.echo(f"Not searched: {count} {what}{'s' * (count > 1)}, whose content is {fate}.", err=True)


def _searched(pieces: Iterator[bytes], progress: "Progress") -> Iterator[bytes]:
    """Return the results of a search. On a terminal, show progress until a screenful is found."""
    if sys.stdout is None or not sys.stdout.isatty():
        return pieces
    from shutil import get_terminal_size

    found = list(islice(pieces, get_terminal_size().lines))
    progress.end()
    return chain(found, pieces)


def _log_text(
    workspace: "Workspace",
    views: Iterable[EditView | GitEvent],
    screen: Screen,
    read_errors: ReadErrors,
    *,
    patch: bool,
) -> Iterator[bytes]:
    rows = Rows(workspace, screen)
    for view in views:
        if isinstance(view, GitEvent):
            yield rows.of_event(view)
            continue
        yield from rows.of(view)
        if patch and view.expired is None:
            yield from diff_text(workspace, view, None, screen, read_errors)
            yield screen.line()
