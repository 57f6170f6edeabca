"""Select the units that a decision names: by hunks, edits, changes, lines, paths, turns, sessions or conversations.

A group (a turn, a session, a conversation, files, everything) selects edits of agents; a person's own are selected by
name alone. Every surface calls `select`, so that the same names mean the same units.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from objstore.history.edit_queries import edit, edits, edits_between
from objstore.history.revspec import find_conversation, find_session
from objstore.history.session_queries import turn
from objstore.model.basic_types import Action, Origin, Status, Unit
from objstore.model.views import EditFilter
from objstore.review.selection.places import NamedPlace, PathSelection, places
from objstore.values.fastclass import field, value, variable
from objstore.values.request_errors import ChangesGone, NoSuchName, NothingSelected, Selecting

# What only some selections need is imported where it is used: most name an edit or a hunk.
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from objstore.model.net_file import FileSummary, NetChange
    from objstore.model.views import EditView
    from objstore.storage.index.rows import EditRow
    from objstore.storage.transaction.journal import Journal

__all__ = ["Selected", "Selection", "edits_of_group", "pending_units", "select"]


@value
class Selection:
    """What a person names for a decision. Units, ranges, changes, lines and paths add up, and the group adds to them.

    Of the group, all that is given must hold. With paths, a group adds nothing: it restricts what the paths select.
    """

    units: tuple[Unit, ...] = ()  # hunks and edits
    ranges: tuple[tuple[int, int], ...] = ()  # first and last edit; like a group, of edits of agents
    keys: tuple[bytes, ...] = ()  # of net changes, as they were shown
    near: tuple[str, ...] = ()  # paths of the files of these changes, as far as they are known
    lines: tuple[tuple[str, int, int], ...] = ()  # path of a file, and its first and last line, from 1: changes there
    paths: tuple[NamedPlace, ...] = ()  # files and folders: what is pending there
    turns: tuple[int, ...] = ()  # the group: numbers of turns; (): any
    session: str = ""  # number, name or beginning of a name; "": any
    agent: str = ""  # a subagent's id, or the kind of an agent; "": any
    conversation: str = ""  # name or beginning of a name; "": any
    file: NamedPlace | None = None  # a file, folder or pattern; None: any
    everything: bool = False  # all edits of agents
    status: Status | None = None  # only units that have it; None: those that the action concerns

    @property
    def is_group(self) -> bool:
        """Return whether edits are selected by a property that they share."""
        by = self.turns or self.session or self.agent or self.conversation
        return bool(by or self.file is not None or self.everything)


@value
class Selected:
    """The units that a decision concerns, and what was left out."""

    units: Mapping[Unit, Status]  # each with its status now
    named: tuple[Unit, ...]  # those of them that change anything, ascending: the others have no effect of their own
    unreviewed: tuple[str, ...] = ()  # files that are left out, because `review.always` asks for a look at them
    together: tuple[NetChange, ...] = ()  # changes that share hunks with those at the lines, and go along
    changes: frozenset[bytes] = frozenset()  # keys of the named changes, and of those that share hunks with them
    files: tuple[str, ...] = ()  # paths now, or last, of the files concerned, ascending
    paths: Mapping[int, str] = field(default_factory=dict)  # of each edit that a path or file names, that of its edit

    @property
    def rejected(self) -> tuple[Unit, ...]:
        """Return the units that are rejected now."""
        return tuple(unit for unit, status in self.units.items() if status is Status.REJECTED)

    @property
    def accepted(self) -> tuple[Unit, ...]:
        """Return the units that are accepted now, which a rejection takes back."""
        return tuple(unit for unit, status in self.units.items() if status is Status.ACCEPTED)


def select(journal: Journal, action: Action, selection: Selection) -> Selected:
    """Return the units that a selection names for an action.

    Edits and hunks that are named select themselves. A group, or a range of edits, selects edits of agents that have
    not expired: for an accept the pending units alone, so that nothing comes back that was rejected; for a rejection
    the pending and the accepted ones; for a reset all. A path selects what is pending there (for a reset all). Raises
    NoSuchName, AmbiguousName, EditExpired, PathError, NoChangeAtLine, ChangesGone and NothingSelected.
    """
    return _Selecting(journal=journal, action=action, selection=selection).selected()


def edits_of_group(journal: Journal, selection: Selection) -> list[EditView]:
    """Return the edits that a group names, oldest first. Raises as `select`."""
    return _Group(journal, selection).views()


def pending_units(journal: Journal, selection: Selection) -> frozenset[Unit]:
    """Return the pending units of the edits of a group, as a review shows them. Raises as `select`."""
    by = _Group(journal, selection)
    return frozenset(unit for view in by.views(Status.PENDING) for unit in _with_status(view, {Status.PENDING}))


@variable
class _Selecting:
    """One selection, while it is resolved."""

    journal: Journal
    action: Action
    selection: Selection
    unreviewed: list[str] = field(default_factory=list)
    paths: dict[int, str] = field(default_factory=dict)
    changes: set[bytes] = field(default_factory=set)

    def selected(self) -> Selected:
        selection, units = self.selection, dict[Unit, Status]()
        together: list[NetChange] = []
        rows = self.journal.store.index.edits.rows({unit.seq for unit in selection.units})
        for unit in selection.units:
            units[unit] = _status(rows, unit)
        for first, last in selection.ranges:
            views = edits_between(self.journal, first, last)
            if not views:
                raise NoSuchName(f"{first}..{last}", "edit")
            units |= self._of_action(_kept(_by_agents(views), f"{first}..{last}"))
        if selection.keys:
            units |= self._of_keys()
        for path, first, last in selection.lines:
            from objstore.review.net.net_view import changes_at

            found = changes_at(self.journal, path, first, last)
            together += found.together
            units |= self._as_named(found.units)
        for place in selection.paths:
            units |= self._at_place(place)
        if selection.is_group and not selection.paths:
            units |= self._of_group()
        if selection.status is not None:
            units = {unit: status for unit, status in units.items() if status is selection.status}
        return Selected(
            units=units,
            named=_named(self.journal, units),
            unreviewed=tuple(dict.fromkeys(self.unreviewed)),
            together=tuple(together),
            changes=frozenset(self.changes),
            files=_files(self.journal, units),
            paths=self.paths,
        )

    def _of_keys(self) -> dict[Unit, Status]:
        """Return the units of changes that are named by their keys. Raises ChangesGone."""
        wanted = set(self.selection.keys)
        files = _summarized(self.journal, self.selection.near)
        if self.selection.near and not wanted <= _keys(files):
            files = _summarized(self.journal, ())  # some may have moved
        gone = wanted - _keys(files)
        if gone:
            raise ChangesGone([key for key in self.selection.keys if key in gone])
        found: set[Unit] = set()
        for file in files:
            chosen = _together(file, {at for at, change in enumerate(file.changes) if change.key in wanted})
            if chosen:
                found |= _units_of(file, chosen)
                self.changes.update(file.changes[at].key for at in chosen)
        return self._as_named(found)

    def _as_named(self, units: Iterable[Unit]) -> dict[Unit, Status]:
        """Return units with their statuses, and with the whole-file part of each edit of which they are all."""
        by_edit: dict[int, list[int]] = {}
        for unit in sorted(units):
            by_edit.setdefault(unit.seq, []).append(unit.hunk)
        named: dict[Unit, Status] = {}
        for seq, hunks in by_edit.items():
            view = edit(self.journal, seq)
            named |= {unit: view.units[unit.hunk] for unit in view.whole_if_complete(hunks)}
        return named

    def _at_place(self, place: NamedPlace) -> dict[Unit, Status]:
        """Return the pending units of a path, as far as they are of the group; for a reset, its decided ones too."""
        is_reset = self.action is Action.RESET
        by = _Group(self.journal, self.selection, (place,))
        views = by.views(None if is_reset else Status.PENDING)
        self._note_paths(views)
        if is_reset:
            return self._of_action(_kept(_by_agents(views), place.spelling, "file that an agent edited"))
        if self.action is Action.ACCEPT:
            name = os.fsencode(place.path)
            below = self._reviewed([view for view in views if view.edit.path != name])
            kept = {view.seq for view in below}
            views = [view for view in views if view.edit.path == name or view.seq in kept]
        found = _with_statuses([view for view in views if view.expired is None], {Status.PENDING})
        if not found:
            raise NothingSelected(Selecting.PLACE, by.words, place.spelling)
        return found

    def _of_group(self) -> dict[Unit, Status]:
        """Return the units of the edits that share what the group names."""
        selection = self.selection
        file = "" if selection.file is None else selection.file.spelling
        what = "file that an agent edited" if file else "conversation of an agent"
        by = _Group(self.journal, selection)
        try:
            found = by.views()
        except NoSuchName as error:
            if error.kind != "recorded file":
                raise
            raise NoSuchName(error.spelling, what) from None
        # A person's own edits are recorded too, but only selected by name.
        views = _by_agents(found)
        if file:
            self._note_paths(views)
        if selection.everything:
            views = [view for view in views if view.expired is None]
        if not views and selection.conversation:
            # A conversation with only a person's edits, such as a restored snapshot, is selected by its name.
            views = [view for view in found if view.edit.origin is Origin.PERSON]
        if not views and selection.conversation and file:
            anywhere = _Group(self.journal, Selection(file=selection.file, turns=selection.turns)).views()
            if _by_agents(anywhere):
                conversation = find_conversation(self.journal, selection.conversation)
                raise NothingSelected(Selecting.CONVERSATION, [conversation], file)
        if self.action is Action.ACCEPT and not file:
            views = self._reviewed(views)
            if not views:
                return {}
        if not views and selection.everything:
            return {}
        if not views and (selection.turns or selection.session or selection.agent):
            raise NothingSelected(Selecting.GROUP, by.words, file)
        return self._of_action(_kept(views, file or selection.conversation, what))

    def _note_paths(self, views: Iterable[EditView]) -> None:
        self.paths |= {view.seq: os.fsdecode(view.edit.path) for view in views}

    def _reviewed(self, views: list[EditView]) -> list[EditView]:
        """Return the edits without those of files that `review.always` names, and note the paths of these.

        Only a decision that names such a file, or its edit, accepts it.
        """
        from objstore.review.calls.policies import Policies

        policies = Policies(self.journal.tree.root, self.journal.store)
        if not policies.always:
            return views
        kept = [view for view in views if not policies.needs_review(os.fsdecode(view.edit.path))]
        left = {view.edit.path for view in views if view.status is Status.PENDING} - {view.edit.path for view in kept}
        self.unreviewed += map(os.fsdecode, sorted(left))
        return kept

    def _of_action(self, views: Sequence[EditView]) -> dict[Unit, Status]:
        """Return the units of a group's edits that the action concerns."""
        match self.action:
            case Action.ACCEPT:
                # As below: the refusal says why; what was rejected comes back only if it is named itself.
                return _with_statuses(views, {Status.PENDING}) or _with_statuses(views, {Status.AWAY})
            case Action.REJECT:
                # Units that are away can't be decided on; they are named so that the refusal can say why.
                live = _with_statuses(views, {Status.PENDING, Status.ACCEPTED})
                return live or _with_statuses(views, {Status.AWAY})
            case _:
                return _with_statuses(views, set(Status))


class _Group:
    """The edits that share what a selection names."""

    def __init__(self, journal: Journal, selection: Selection, at: Sequence[NamedPlace] = ()) -> None:
        """Check the names. `at`: places; (): that of the selection. Raises NoSuchName, AmbiguousName, PathError."""
        self._journal = journal
        self._turns = selection.turns
        for number in selection.turns:
            turn(journal, number)
        self._session = find_session(journal, selection.session) if selection.session else 0
        self._agent = selection.agent
        if self._agent:
            of_session = edits(journal, EditFilter(session=selection.session))
            if not any(self._agent in view.agents for view in of_session):
                raise NoSuchName(self._agent, "agent of a session")
        self._conversation = find_conversation(journal, selection.conversation) if selection.conversation else ""
        self._at = at or (() if selection.file is None else (selection.file,))

    @property
    def words(self) -> list[str]:
        """Return what the turns, the session and the agent are, in words."""
        return [
            *(f"turn {number}" for number in self._turns),
            *([f"session {self._session}"] if self._session else []),
            *([f"agent {self._agent}"] if self._agent else []),
        ]

    def views(self, status: Status | None = None) -> list[EditView]:
        """Return the edits, oldest first. `status`: only those that have it. Raises NoSuchName, PathError."""
        held = places(self._journal, self._at) if self._at else PathSelection()
        wanted = EditFilter(
            conversation=self._conversation,
            status=status,
            turn=self._turns[0] if len(self._turns) == 1 else 0,
            session=str(self._session) if self._session else "",
            path=held.file,
        )
        conditions: list[Callable[[EditView], bool]] = [lambda view: held.hold(view.edit)]
        if len(self._turns) > 1:  # a filter has one turn
            conditions.append(lambda view: any(map(view.is_of_turn, self._turns)))
        if self._agent:
            conditions.append(lambda view: self._agent in view.agents)
        return [view for view in edits(self._journal, wanted) if all(fits(view) for fits in conditions)]


# ---- inside


def _status(rows: Mapping[int, EditRow], unit: Unit) -> Status:
    row = rows.get(unit.seq)
    if row is None:
        raise NoSuchName(str(unit.seq), "edit")
    if not 0 <= unit.hunk < len(row.units):
        raise NoSuchName(str(unit), "hunk")
    return row.units[unit.hunk]


def _named(journal: Journal, units: Iterable[Unit]) -> tuple[Unit, ...]:
    """Return the units without whole-file parts that change nothing."""
    found = sorted(units)
    rows = journal.store.index.edits.rows({unit.seq for unit in found if not unit.hunk})

    def is_named(unit: Unit) -> bool:
        row = None if unit.hunk else rows.get(unit.seq)
        return row is None or row.whole or len(row.units) == 1

    return tuple(filter(is_named, found))


def _files(journal: Journal, units: Iterable[Unit]) -> tuple[str, ...]:
    """Return the paths that the files of some units have now, or had last."""
    index = journal.store.index
    documents = {*index.edits.documents_of({unit.seq for unit in units}).values()}
    return tuple(sorted({os.fsdecode(tip.path) for tip in index.documents.tips_of(documents)}))


def _summarized(journal: Journal, paths: Collection[str]) -> list[FileSummary]:
    from objstore.review.net.net_summary import summaries

    return summaries(journal, paths, unreadable=lambda _: None)


def _keys(files: Iterable[FileSummary]) -> set[bytes]:
    return {change.key for file in files for change in file.changes}


def _together(file: FileSummary, chosen: Collection[int]) -> set[int]:
    """Return the positions of some changes of a file, and of those that are decided with them."""
    return {*chosen, *(other for at in chosen for other in file.changes[at].shares_with)}


def _units_of(file: FileSummary, chosen: Collection[int]) -> set[Unit]:
    """Return the units of some changes of a file.

    If these are all its changes, its units without a net effect are decided, too: nothing else is left of the file.
    """
    units = {unit for at in chosen for unit in file.changes[at].units}
    return units | set(file.cancelled) if len(chosen) == len(file.changes) else units


def _by_agents(views: Iterable[EditView]) -> list[EditView]:
    return [view for view in views if view.is_of_agent]


def _kept(views: Sequence[EditView], spelling: str, what: str = "edit of an agent") -> list[EditView]:
    """Return the edits that have not expired. Raises NoSuchName if there are none, EditExpired if all have."""
    if not views:
        raise NoSuchName(spelling, what)
    kept = [view for view in views if view.expired is None]
    if not kept:
        views[-1].refuse_if_expired()
    return kept


def _with_statuses(views: Iterable[EditView], statuses: Collection[Status]) -> dict[Unit, Status]:
    return {unit: view.units[unit.hunk] for view in views for unit in _with_status(view, statuses)}


def _with_status(view: EditView, statuses: Collection[Status]) -> tuple[Unit, ...]:
    """Return the units of an edit that have one of the statuses."""
    hunks = [hunk for hunk in range(len(view.units)) if (hunk or view.whole) and view.units[hunk] in statuses]
    return view.whole_if_complete(hunks)
