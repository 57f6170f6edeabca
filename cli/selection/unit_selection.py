"""Select the units that a decision names: by edits, hunks, lines, paths, turns, sessions, agents, conversations."""

import os
from typing import TYPE_CHECKING, Final

import click

from cli.screen.terminal import shown_name
from cli.selection.selectors import (
    edits_at_lines,
    edits_in_range,
    edits_meant,
    is_edit_or_hunk,
    is_place,
    path_named,
    whole_if_complete,
)
from cli.selection.turn_selection import ANY_TURN, TurnSelection, is_of_agent
from objstore import Action, NoSuchName, Origin, Status, Unit, value

if TYPE_CHECKING:
    from collections.abc import Collection

    from objstore import EditView, Workspace

__all__ = ["UnitSelection", "named_places", "units_named", "way_back"]

EDITED: Final = "file that an agent edited"
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

    def check(self) -> None:
        """Raise click.UsageError if nothing is named, or `--all` is combined with others."""
        if not self.names and not self.is_group:
            raise click.UsageError(
                "Name edits (12), hunks (12:2), paths, lines (PATH:7), --turn N, --session N, --agent NAME, "
                "--conversation ID, --file PATH or --all."
            )
        if self.everything and (self.names or self.conversation or self.file or self.by.is_given):
            raise click.UsageError("--all can't be combined with other names.")


def units_named(workspace: "Workspace", action: Action, selection: UnitSelection) -> dict[Unit, Status]:
    """Return the units that `selection` selects for `action`, with their status.

    Edits and hunks that are named select themselves. A group, or a range of edits (3..7), selects edits of agents that
    have not expired: for `accept` the pending ones alone, so that nothing comes back that was rejected; for `reject`
    the pending and the accepted ones; for `reopen` all. A path that is named selects what is pending there (for
    `reopen` all), and of the group only that. Raises NoSuchName, AmbiguousName, EditExpired or PathError.
    """
    named: dict[Unit, Status] = {}
    places = named_places(workspace, selection)
    for spelling in selection.names:
        if spelling in places:
            named |= _at_place(workspace, action, selection, spelling)
            continue
        views = edits_in_range(workspace, spelling)
        if views:
            # A range is a group: a person's own edits in between are not selected.
            named |= _group(_kept(_by_agents(views), spelling, "edit of an agent"), action)
        else:
            for view, units in edits_at_lines(workspace, spelling) or [workspace.history.find_units(spelling)]:
                named |= {unit: view.units[unit.hunk] for unit in units}
    if selection.is_group and not places:
        named |= _of_group(workspace, action, selection)
    return named


def way_back(workspace: "Workspace", selection: UnitSelection) -> str:
    """Return which units of what is named stay rejected, and how to bring one back ("": none is rejected)."""
    return _way_back(workspace, units_named(workspace, Action.RESET, selection))


def _way_back(workspace: "Workspace", every: "Collection[Unit]") -> str:
    views = [workspace.history.edit(seq) for seq in dict.fromkeys(unit.seq for unit in every)]
    names: list[str] = []
    for view in views:
        rejected = [unit for unit in _units([view], {Status.REJECTED}) if unit in every]
        names += [str(view.seq)] if rejected and rejected[0].hunk == 0 else map(str, rejected)
    if not names:
        return ""
    from cli.app.invocation import Invocation

    shown = ", ".join(names[:MOST_SHOWN]) + f" and {len(names) - MOST_SHOWN} more" * (len(names) > MOST_SHOWN)
    command = f"`{Invocation.current().program} accept {names[0]}`"
    return f"Still rejected: {shown}. To bring {'one' if len(names) > 1 else 'it'} back, name it: {command}."


def _of_group(workspace: "Workspace", action: Action, selection: UnitSelection) -> dict[Unit, Status]:
    """Return the units of the edits that share what the options name."""
    found = _grouped(workspace, selection)
    # A person's own edits are recorded too, but only selected by name.
    views = _by_agents(found)
    if selection.everything:
        views = [view for view in views if view.expired is None]
    if not views and selection.conversation:
        # A conversation with only a person's edits, such as a restored snapshot, is selected by its name.
        views = [view for view in found if view.edit.origin is Origin.PERSON]
    if not views and selection.conversation and selection.file:
        _refuse_if_not_of_conversation(workspace, selection)
    if action is Action.ACCEPT and not selection.file:
        views = _without_always_reviewed(workspace, views)
        if not views:
            return {}
    if views or not selection.everything:
        what = EDITED if selection.file else "conversation of an agent"
        if not views and selection.by.is_given:
            raise click.ClickException(f"No edit of an agent matches {' '.join(_words_of(selection))}.")
        return _group(_kept(views, selection.file or selection.conversation, what), action)
    return {}


def named_places(workspace: "Workspace", selection: UnitSelection) -> list[str]:
    """Return the names that are paths of files or folders, as typed. A number is an edit's, and `./12` a file's."""
    return [
        name
        for name in selection.names
        if not is_edit_or_hunk(name)
        and is_place(workspace, name)
        and not (edits_in_range(workspace, name) or edits_at_lines(workspace, name))
    ]


def _at_place(workspace: "Workspace", action: Action, selection: UnitSelection, spelling: str) -> dict[Unit, Status]:
    """Return the pending units of a path, as far as they are of the group; for `reopen`, its decided ones too."""
    if selection.file:
        raise click.UsageError("Name the file once: as a PATH, or with --file.")
    wanted = None if action is Action.RESET else Status.PENDING
    views = edits_meant(workspace, conversation=selection.conversation, file=spelling, by=selection.by, status=wanted)
    if action is Action.RESET:
        return _group(_kept(_by_agents(views), spelling, EDITED), action)
    if action is Action.ACCEPT:
        path = os.fsencode(path_named(workspace, spelling))
        below = [view for view in views if view.edit.path != path]
        kept = _without_always_reviewed(workspace, below)
        views = [view for view in views if view.edit.path == path or view in kept]
    found = _units([view for view in views if view.expired is None], {Status.PENDING})
    if not found:
        from cli.app.invocation import Invocation
        from cli.screen.quoting import typed

        takes = f"`{Invocation.current().program} reject --file {typed(spelling)}` takes accepted edits too."
        if action is Action.ACCEPT:
            takes = _way_back(workspace, _at_place(workspace, Action.RESET, selection, spelling))
        of = " ".join(["", *map(shown_name, selection.by.words)])
        raise click.ClickException(
            f"Nothing{f' of{of}' * bool(of)} is pending at {shown_name(spelling)}. {takes}".rstrip()
        )
    return found


def _words_of(selection: UnitSelection) -> list[str]:
    """Return the options of a selection that are shown in a message."""
    of_file = ["--file", shown_name(selection.file)] if selection.file else []
    return [*map(shown_name, selection.by.words), *of_file]


def _without_always_reviewed(workspace: "Workspace", views: list["EditView"]) -> list["EditView"]:
    """Return the edits without those of files that `review.always` names, and say what is left out.

    Only a decision that names such a file, or its edit, accepts it.
    """
    policies = workspace.review.policies()
    if not policies.always:
        return views
    kept = [view for view in views if not policies.needs_review(os.fsdecode(view.edit.path))]
    left = {view.edit.path for view in views if view.status is Status.PENDING} - {view.edit.path for view in kept}
    if left:
        shown = ", ".join(shown_name(os.fsdecode(path)) for path in sorted(left)[:MOST_SHOWN])
        more = f" and {len(left) - MOST_SHOWN} more" if len(left) > MOST_SHOWN else ""
        click.echo(f"cas: not accepted, because review.always asks for a look: {shown}{more}. Name them.", err=True)
    return kept


def _grouped(workspace: "Workspace", selection: UnitSelection, *, anywhere: bool = False) -> list["EditView"]:
    """Return the edits of all that a group selects; with `anywhere`, also those of other conversations."""
    conversation = "" if anywhere else selection.conversation
    try:
        return edits_meant(workspace, conversation=conversation, file=selection.file, by=selection.by)
    except NoSuchName as error:
        if error.kind != "recorded file":
            raise
        raise NoSuchName(error.spelling, EDITED) from None


def _refuse_if_not_of_conversation(workspace: "Workspace", selection: UnitSelection) -> None:
    """Raise click.ClickException if an agent edited the file, but in no call of the conversation."""
    if _by_agents(_grouped(workspace, selection, anywhere=True)):
        from cli.app.invocation import Invocation
        from cli.screen.quoting import typed

        file = shown_name(selection.file)
        conversation = shown_name(workspace.history.find_conversation(selection.conversation))
        lists = f"`{Invocation.current().program} log --file {typed(selection.file)}` lists who did."
        raise click.ClickException(f"No agent edited {file} in {conversation}. {lists}")


def _by_agents(views: list["EditView"]) -> list["EditView"]:
    return list(filter(is_of_agent, views))


def _kept(views: list["EditView"], spelling: str, what: str) -> list["EditView"]:
    """Return the edits that have not expired. Raises NoSuchName if there are none, EditExpired if all have."""
    if not views:
        raise NoSuchName(spelling, what)
    kept = [view for view in views if view.expired is None]
    if not kept:
        views[-1].refuse_if_expired()
    return kept


def _group(views: list["EditView"], action: Action) -> dict[Unit, Status]:
    match action:
        case Action.ACCEPT:
            return _units(views, {Status.PENDING}) or _units(views, {Status.AWAY})
        case Action.REJECT:
            # Units that are away can't be decided on; they are named so that the refusal can say why.
            return _units(views, {Status.PENDING, Status.ACCEPTED}) or _units(views, {Status.AWAY})
        case _:
            return _units(views, set(Status))


def _units(views: list["EditView"], statuses: set[Status]) -> dict[Unit, Status]:
    units: dict[Unit, Status] = {}
    for view in views:
        hunks = [hunk for hunk in range(len(view.units)) if (hunk or view.whole) and view.units[hunk] in statuses]
        units |= {unit: view.units[unit.hunk] for unit in whole_if_complete(view, hunks)}
    return units
