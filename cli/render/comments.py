"""Comments as text for a person, and as JSON."""

import os
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from cli.render.edits import moment
from cli.render.json_edits import Json
from cli.screen.terminal import Screen, shown_name, visible
from objstore import Unit, date_of

if TYPE_CHECKING:
    from objstore import CommentView, Workspace

__all__ = ["comment_place", "comment_shape", "comment_text", "comments_by_unit", "comments_text"]

_STATE_COLOR: Final = {"open": "yellow", "sent": "yellow", "answered": "cyan", "resolved": "green"}


def comments_by_unit(workspace: "Workspace", units: Collection[Unit]) -> dict[Unit, list["CommentView"]]:
    """Return the comments to show next to units that a view shows: each next to the last unit that it is about."""
    found: dict[Unit, list[CommentView]] = {}
    for views in workspace.comments.of_edits({unit.seq for unit in units}).values():
        for view in views:
            made = view.comment
            about = {*made.units, *(Unit(anchor.seq, anchor.hunk) for anchor in (made.first, made.last))}  # type: ignore[arg-type]
            shown = [unit for unit in units if unit in about]
            if shown and view not in found.setdefault(max(shown), []):
                found[max(shown)].append(view)
    return {unit: sorted(views, key=lambda view: view.number) for unit, views in found.items() if views}


def comment_place(view: "CommentView") -> str:
    """Return where a comment is, as `PATH:FIRST-LAST`; if its lines are gone, where they were."""
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


def comment_shape(workspace: "Workspace", view: "CommentView") -> dict[str, Json]:
    """Return a comment with its answers as JSON."""
    made = view.comment
    first, last = view.lines
    return {
        "comment": view.number,
        "id": view.id.hex(),
        "timestamp": date_of(made.time).isoformat(),
        "who": _exact(made.who),
        "conversation_id": _exact(made.conversation) or None,
        "text": _exact(made.text),
        "state": view.word,
        "sent_to": _exact(view.sent_to) or None,
        "file_path": _exact(os.path.join(workspace.root, view.path)),  # noqa: PTH118 -- a name, not a place
        "line": first - 1 if first else None,
        "line_count": last - first + 1 if first else None,
        "is_there": view.is_there,
        "hunks": [str(unit) for unit in made.units],
        "answers": [
            {
                "comment": answer.number,
                "timestamp": date_of(answer.comment.time).isoformat(),
                "who": _exact(answer.comment.who),
                "conversation_id": _exact(answer.comment.conversation) or None,
                "text": _exact(answer.comment.text),
            }
            for answer in view.answers
        ],
    }


def _author(view: "CommentView") -> str:
    made = view.comment
    name = shown_name(made.who) if made.who else "an agent" if view.is_by_agent else "a person"
    return f"{name}, {moment(made.time)}"


def _said(text: str, indent: str, screen: Screen) -> Iterator[bytes]:
    for line in text.splitlines() or [""]:
        yield screen.line(f"{indent}{visible(line)}".rstrip())


def _exact(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
