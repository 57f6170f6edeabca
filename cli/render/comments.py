"""Comments as text for a person: lines, as bytes to write."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from cli.render.edits import moment
from cli.render.prompts import first_line
from cli.render.turns import session_name
from cli.screen.terminal import Screen, beginning_of, shown_name, visible
from objstore import NoSuchName, PathError, Seq, Unit, counted, few

if TYPE_CHECKING:
    from objstore import CommentView, NetChange, NetFile, WaitingComment, WaitingMessage, Workspace

__all__ = [
    "comment_place",
    "comment_text",
    "comments_by_change",
    "comments_by_unit",
    "comments_text",
    "remarks_by_change",
    "remarks_by_unit",
    "sending_text",
    "session_with_prompt",
    "waiting_by_change",
    "waiting_on",
    "waiting_text",
]

Awaited: TypeAlias = "Mapping[Unit, Sequence[WaitingComment]]"
"""Comments on another store, as of Workspace.awaited_comments."""

_MOST_NAMED: Final = 8
"""Hunks that a line names."""

_PROMPT: Final = 60
"""Columns of a prompt that are shown in a sentence."""

_STATE_COLOR: Final = {"open": "yellow", "sent": "yellow", "answered": "cyan", "resolved": "green"}


def comments_by_unit(workspace: "Workspace", units: Collection[Unit]) -> dict[Unit, list["CommentView"]]:
    """Return the comments to show next to units that a view shows: each next to the last unit that it is about."""
    found: dict[Unit, list[CommentView]] = {}
    for views in workspace.comments.of_edits({unit.seq for unit in units}).values():
        for view in views:
            made = view.comment
            about = {*made.units, *(Unit(Seq(anchor.seq), anchor.hunk) for anchor in (made.first, made.last))}
            shown = [unit for unit in units if unit in about]
            if shown and view not in found.setdefault(max(shown), []):
                found[max(shown)].append(view)
    return {unit: sorted(views, key=lambda view: view.number) for unit, views in found.items() if views}


def comments_by_change(workspace: "Workspace", file: "NetFile") -> dict[int, list["CommentView"]]:
    """Return the comments on the net changes of a file, by position of the change.

    Those on hunks without a net effect come under the position after the last one. Of several changes that a comment's
    hunk is part of, it is next to the one at its lines.
    """
    found: dict[int, list[CommentView]] = {}
    units = {unit for change in file.changes for unit in change.units}
    for unit, views in comments_by_unit(workspace, units.union(file.cancelled, file.kept_on)).items():
        own = [at for at, change in enumerate(file.changes) if unit in change.units]
        for view in views:
            at_lines = (at for at in own if view.is_there and _is_at(view, file.changes[at]))
            found.setdefault(next(at_lines, own[-1] if own else len(file.changes)), []).append(view)
    return {at: sorted(views, key=lambda view: view.number) for at, views in sorted(found.items())}


def waiting_by_change(file: "NetFile", awaited: Awaited) -> dict[int, list["WaitingComment"]]:
    """Return the comments that wait for the store with the files, by position as of `comments_by_change`."""
    found: dict[int, list[WaitingComment]] = {}
    places = [(len(file.changes), (*file.cancelled, *file.kept_on))]
    places += [(at, change.units) for at, change in enumerate(file.changes)]
    last = {each.number: (at, each) for at, units in places for each in waiting_on(units, awaited)}
    for at, each in last.values():
        found.setdefault(at, []).append(each)
    return found


def remarks_by_unit(
    workspace: "Workspace", units: Collection[Unit], screen: Screen, awaited: Awaited
) -> dict[Unit, list[bytes]]:
    """Return the lines of all comments to show next to units, as of `comments_by_unit`."""
    by_unit = comments_by_unit(workspace, units)
    found = {unit: [*comments_text(views, screen)] for unit, views in by_unit.items()}
    last = {each.number: (unit, each) for unit in sorted(units) for each in waiting_on([unit], awaited)}
    for unit, each in last.values():
        found.setdefault(unit, []).extend(waiting_text(each, screen))
    return found


def remarks_by_change(
    workspace: "Workspace", screen: Screen, awaited: Awaited, file: "NetFile"
) -> dict[int, list[bytes]]:
    """Return the lines of all comments on the net changes of a file, by position as of `comments_by_change`."""
    found = {at: [*comments_text(views, screen)] for at, views in comments_by_change(workspace, file).items()}
    for at, waiting in waiting_by_change(file, awaited).items():
        for each in waiting:
            found.setdefault(at, []).extend(waiting_text(each, screen))
    return dict(sorted(found.items()))


def sending_text(workspace: "Workspace", waiting: "Iterable[WaitingMessage]", *, is_held: bool) -> Iterator[str]:
    """Yield a sentence for each session about what it is yet to be sent. `is_held`: only `cas send` sends it."""
    for message in waiting:
        said = [counted(number, noun) for number, noun in _counts(message) if number]
        what, many = " and ".join(said), message.rejections + message.comments > 1
        to = session_with_prompt(workspace, message.session) if message.session else "the agent that works next"
        if message.session and not message.has_hooks:
            yield f"{to} has no hooks: it gets {what} when it lists its edits."
        elif is_held:
            yield f"{what} wait{'s' * (not many)} until you run `cas send`, for {to}."
        else:
            yield f"{what} go{'es' * (not many)} to {to} at its next prompt or tool."


def session_with_prompt(workspace: "Workspace", session: int | str) -> str:
    """Return how a session is shown, given its number or its conversation: by client, number and first prompt."""
    try:
        found = workspace.sessions.find_session(str(session))
    except (NoSuchName, PathError):
        return shown_name(str(session))
    prompt = beginning_of(first_line(found.prompt), _PROMPT)
    return f"{shown_name(session_name(found))}{f' ({prompt})' if prompt else ''}"


def _counts(message: "WaitingMessage") -> Iterator[tuple[int, str]]:
    yield message.rejections, "rejection"
    yield message.comments, "comment"


def comment_place(view: "CommentView") -> str:
    """Return where a comment is, as `PATH:FIRST-LAST`; if its lines are gone, where they were."""
    if view.more_files:
        return f"{shown_name(view.path)} and {counted(view.more_files, 'more file')}"
    first, last = view.lines
    lines = "" if not first else f":{first}" if first == last else f":{first}-{last}"
    return f"{shown_name(view.path)}{lines}{'' if view.is_there else ' (its lines are gone)'}"


def comment_text(view: "CommentView", screen: Screen, *, is_resolved_short: bool = True) -> Iterator[bytes]:
    """Yield a comment with its answers. `is_resolved_short`: only the first line of one that is resolved."""
    state = screen.paint(view.word, _STATE_COLOR.get(view.word))
    head = f"comment {view.number} {state}  {comment_place(view)}  {_author(view)}"
    if view.is_resolved and is_resolved_short:
        yield screen.line(f"{head}: {visible(view.comment.text.splitlines()[0] if view.comment.text else '')}")
        return
    yield screen.line(head)
    yield from _said(view.comment.text, "    ", screen)
    for answer in view.answers:
        yield screen.line(f"  answer {answer.number}  {_author(answer)}")
        yield from _said(answer.comment.text, "    ", screen)


def comments_text(views: Iterable["CommentView"], screen: Screen) -> Iterator[bytes]:
    """Yield a list of comments."""
    for view in views:
        yield from comment_text(view, screen)


def waiting_text(each: "WaitingComment", screen: Screen) -> Iterator[bytes]:
    """Yield a comment on another store that its mirror doesn't show."""
    on = few(each.units, _MOST_NAMED)
    yield screen.line(f"comment {shown_name(each.words)}  {on}  {shown_name(each.who)}")
    yield from _said(each.text, "    ", screen)


def waiting_on(units: Iterable[Unit], awaited: Awaited) -> Iterator["WaitingComment"]:
    """Yield the comments that wait for the store with the files on each of some units; one on several more often."""
    for unit in units if awaited else ():
        yield from awaited.get(unit, ())


def _is_at(view: "CommentView", change: "NetChange") -> bool:
    first, last = view.lines
    return first < change.line_after + max(1, change.inserted_lines) and change.line_after <= last


def _author(view: "CommentView") -> str:
    made = view.comment
    name = shown_name(made.who) if made.who else "an agent" if view.is_by_agent else "a person"
    return f"{name}, {moment(made.time)}"


def _said(text: str, indent: str, screen: Screen) -> Iterator[bytes]:
    for line in text.splitlines() or [""]:
        yield screen.line(f"{indent}{visible(line)}".rstrip())
