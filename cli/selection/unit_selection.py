"""Turn the names on a command line into a selection of the core, and word what it refuses or leaves out."""

from typing import TYPE_CHECKING, Final

import click

from cli.screen.progress import SELECTING, showing_progress
from cli.screen.terminal import shown_name
from cli.selection.selectors import (
    edits_in_range,
    is_edit_or_hunk,
    is_place,
    lines_named,
    path_named,
    place_named,
    range_named,
    say_what_goes_along,
    units_named,
)
from cli.selection.turn_selection import ANY_TURN, TurnSelection
from objstore import Action, NamedPlace, NothingSelected, Selecting, Selection, Status, few, value

if TYPE_CHECKING:
    from collections.abc import Collection

    from objstore import Selected, Unit, Workspace

__all__ = ["UnitSelection", "selected", "way_back"]

MOST_SHOWN: Final = 5


@value
class UnitSelection:
    """The edits and hunks that a decision names, as typed."""

    names: tuple[str, ...] = ()
    conversation: str = ""  # "": any
    file: str = ""  # "": any
    everything: bool = False
    by: TurnSelection = ANY_TURN
    command: str = ""  # the command that takes these names; "": that of the decision

    @property
    def is_group(self) -> bool:
        """Return whether edits are selected by a property that they share."""
        return bool(self.conversation or self.file or self.everything or self.by.is_given)

    @property
    def has_numbers_alone(self) -> bool:
        """Return whether all that is named is edits and hunks, by their numbers."""
        return not self.is_group and all(map(is_edit_or_hunk, self.names))

    def check(self) -> None:
        """Raise click.UsageError if nothing is named, or `--all` is combined with others."""
        if not self.names and not self.is_group:
            raise click.UsageError(
                "Name edits (12), hunks (12:2), paths, lines (PATH:7), --turn N, --session N, --agent NAME, "
                "--conversation ID, --file PATH or --all."
            )
        if self.everything and (self.names or self.conversation or self.file or self.by.is_given):
            raise click.UsageError("--all can't be combined with other names.")


def selected(workspace: "Workspace", action: Action, selection: UnitSelection) -> "Selected":
    """Return what `selection` selects for `action`, and say what is left out or goes along.

    Raises click.ClickException if nothing has all that is named, NoSuchName, AmbiguousName, NoChangeAtLine, EditExpired
    and PathError.
    """
    with showing_progress(workspace, SELECTING):
        named = _named(workspace, selection)
        try:
            found = workspace.review.select(action, named)
        except NothingSelected as error:
            is_typed = selection.by.is_given and error.named is not Selecting.CONVERSATION
            words = [" ".join(selection.by.words)] if is_typed else error.words
            said = shown_name(str(NothingSelected(error.named, words, error.path)))
            raise click.ClickException(" ".join([said, *_advice(workspace, action, named, error)])) from None
    if found.unreviewed:
        shown = few(found.unreviewed, MOST_SHOWN, ", ", shown_name)
        click.echo(f"cas: not accepted, because review.always asks for a look: {shown}. Name them.", err=True)
    for path in dict.fromkeys(change.path for change in found.together):
        say_what_goes_along(path, [change for change in found.together if change.path == path])
    return found


def way_back(workspace: "Workspace", selection: UnitSelection) -> str:
    """Return which units of what is named stay rejected, and how to bring one back ("": none is rejected)."""
    return _way_back(workspace, workspace.review.select(Action.RESET, _named(workspace, selection)).rejected)


def _named(workspace: "Workspace", selection: UnitSelection) -> Selection:
    """Return the selection of the core that the names mean. A number is an edit's, and `./12` a file's."""
    numbers: list[str] = []
    ranges: list[tuple[int, int]] = []
    lines: list[tuple[str, int, int]] = []
    paths: list[NamedPlace] = []
    for name in selection.names:
        if not is_edit_or_hunk(name):
            bounds = range_named(name)
            if bounds is not None and edits_in_range(workspace, name):
                ranges.append(bounds)
                continue
            at = lines_named(workspace, name)
            if at is not None:
                lines.append(at)
                continue
            if is_place(workspace, name):
                if selection.file:
                    raise click.UsageError("Name the file once: as a PATH, or with --file.")
                paths.append(NamedPlace(path=path_named(workspace, name), spelling=name))
                continue
        numbers.append(name)
    return Selection(
        units=units_named(workspace, numbers),
        ranges=tuple(ranges),
        lines=tuple(lines),
        paths=tuple(paths),
        turns=selection.by.turns,
        session=selection.by.session,
        agent=selection.by.agent,
        conversation=selection.conversation,
        file=place_named(workspace, selection.file) if selection.file else None,
        everything=selection.everything,
    )


def _advice(workspace: "Workspace", action: Action, named: Selection, error: NothingSelected) -> list[str]:
    """Return the command that helps, if there is one."""
    from cli.app.invocation import Invocation
    from cli.screen.quoting import typed

    program = Invocation.current().program
    match error.named:
        case Selecting.CONVERSATION:
            return [f"`{program} log --file {typed(error.path)}` lists who did."]
        case Selecting.PLACE if action is Action.ACCEPT:
            places = tuple(place for place in named.paths if place.spelling == error.path)
            at = Selection(paths=places, turns=named.turns, session=named.session, agent=named.agent)
            rejected = _way_back(workspace, workspace.review.select(Action.RESET, at).rejected)
            return [rejected] if rejected else []
        case Selecting.PLACE:
            return [f"`{program} reject --file {typed(error.path)}` takes accepted edits too."]
        case Selecting.GROUP:
            return []


def _way_back(workspace: "Workspace", rejected: "Collection[Unit]") -> str:
    names: list[str] = []
    for seq in dict.fromkeys(unit.seq for unit in rejected):
        view = workspace.history.edit(seq)
        own = view.whole_if_complete([hunk for hunk in view.telling if view.units[hunk] is Status.REJECTED])
        own = tuple(unit for unit in own if unit in rejected)
        names += [str(seq)] if own and own[0].hunk == 0 else map(str, own)
    if not names:
        return ""
    from cli.app.invocation import Invocation

    shown = few(names, MOST_SHOWN, ", ")
    command = f"`{Invocation.current().program} accept {names[0]}`"
    return f"Still rejected: {shown}. To bring {'one' if len(names) > 1 else 'it'} back, name it: {command}."
