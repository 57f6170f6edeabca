"""Comments as text for a person: lines, as bytes to write."""

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from cli.render.edits import moment
from cli.screen.terminal import Screen, shown_name, visible
from objstore import Seq, Unit

if TYPE_CHECKING:
    from objstore import CommentView, Workspace

__all__ = ["comment_place", "comment_text", "comments_by_unit", "comments_text"]

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


def comment_place(view: "CommentView") -> str:
    """Return where a comment is, as `PATH:FIRST-LAST`; if its lines are gone, where they were."""
    if view.more_files:
        return f"{shown_name(view.path)} and {view.more_files} more file{'s' * (view.more_files > 1)}"
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


def _author(view: "CommentView") -> str:
    made = view.comment
    name = shown_name(made.who) if made.who else "an agent" if view.is_by_agent else "a person"
    return f"{name}, {moment(made.time)}"


def _said(text: str, indent: str, screen: Screen) -> Iterator[bytes]:
    for line in text.splitlines() or [""]:
        yield screen.line(f"{indent}{visible(line)}".rstrip())
