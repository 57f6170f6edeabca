"""The commands `cas comment` and `cas send`: talk to the agents about their lines."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Invocation, Number, command, json_option, recorded_text, reviewer
from cli.screen.terminal import Screen, can_ask, shown_name, write
from cli.search.candidates import names, takes_turns
from cli.selection.selectors import edits_meant, is_on_disk, path_named, was_recorded
from cli.selection.turn_selection import TurnSelection
from objstore import MAX_INT, FileChanged, NoSuchName, Unit

if TYPE_CHECKING:
    from objstore import CommentView, Workspace

__all__ = ["comment", "send"]

_UNIT: Final = re.compile(r"[0-9]{1,18}(:[0-9]{1,9})?")
_LINES: Final = re.compile(r"(?P<path>.+):(?P<first>[1-9][0-9]{0,8})(-(?P<last>[1-9][0-9]{0,8}))?", re.DOTALL)
_BELOW: Final = "# Write the comment above this line; an empty one is not recorded. It is on: "

_numbers = Number(1, MAX_INT)


@command("comment")
@click.argument("target", metavar="[EDIT|HUNK|PATH[:LINE[-LINE]]]", default="", shell_complete=names("edit", "path"))
@takes_turns("Comment on all edits")
@click.option("-m", "--message", "text", callback=recorded_text, metavar="TEXT", default="", help="What to say.")
@click.option("--reply", type=_numbers, metavar="NUMBER", help="Answer the comment of this number.")
@click.option("--resolve", type=_numbers, multiple=True, metavar="NUMBER", help="Mark this comment as resolved.")
@click.option("--reopen", type=_numbers, multiple=True, metavar="NUMBER", help="Open this comment, to be sent again.")
@click.option("--all", "everything", is_flag=True, help="List resolved comments too.")
@json_option
def comment(
    *,
    target: str,
    by: TurnSelection,
    text: str,
    reply: int | None,
    resolve: tuple[int, ...],
    reopen: tuple[int, ...],
    everything: bool,
    as_json: bool,
) -> None:
    """Comment on lines (src/app.py:120-124), a file, a turn, an edit (12) or a hunk (12:2); or list comments.

    A comment follows its lines. It is sent to the agent that wrote them with the agent's next message, once; `cas send`
    shows what waits. Without -m, your editor opens. Without a target, the comments that are not resolved are listed. A
    comment on a turn or session is about all of its edits, and is shown with those of its first file.
    """
    if sum(map(bool, (target, by.is_given, reply, resolve or reopen))) > 1:
        raise click.UsageError("Give one of these: a target, --turn or --session, --reply, or --resolve and --reopen.")
    if text and not (target or by.is_given or reply):
        raise click.UsageError(
            "Name what the comment is on: an edit (12), a hunk (12:2), lines (src/app.py:120) or --turn N."
        )
    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        who = reviewer()
        if target:
            found = [_added(workspace, target, text, who)]
        elif by.is_given:
            found = [_added_to_turn(workspace, by, text, who)]
        elif reply is not None:
            workspace.comments.get(reply)
            found = [workspace.comments.answer(reply, text or _typed(f"comment {reply}"), who=who)]
        elif resolve or reopen:
            for number in (*resolve, *reopen):
                workspace.comments.get(number)
            found = workspace.comments.resolve(resolve, who=who) if resolve else []
            found += workspace.comments.reopen(reopen, who=who) if reopen else []
        else:
            found = [view for view in workspace.comments.all() if everything or not view.is_resolved]
            if not (found or as_json):
                click.echo("No comments." if everything else "No open comments.", err=True)
        _show(workspace, found, invocation.screen(), as_json=as_json)


@command("send")
@click.argument("numbers", metavar="[NUMBER]...", nargs=-1, type=_numbers)
@click.option("--session", default="", metavar="NAME", help="Send the comments to this session.")
@click.option("--any", "to_any", is_flag=True, help="Send the comments to whichever agent works next.")
@json_option
def send(*, numbers: tuple[int, ...], session: str, to_any: bool, as_json: bool) -> None:
    """Send your comments and rejections to the agents, and show them; or choose which agent gets comments.

    Comments and rejections are one message to the agent that wrote the lines, with its next prompt or tool, once. With
    `review.send` at ask or manual, they wait for this command. With --session or --any, the comments with these
    NUMBERs, or all that wait, go to another agent, even if they were sent before.
    """
    if session and to_any:
        raise click.UsageError("Give one of --session and --any.")
    if numbers and not (session or to_any):
        raise click.UsageError("Say who gets these comments: --session NAME, or --any.")
    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        if session or to_any:
            conversation = workspace.sessions.find_session(session).name if session else ""
            chosen = numbers or tuple(view.number for view, _ in workspace.comments.unsent())
            if chosen:
                workspace.comments.address(chosen, conversation, who=reviewer())
        if workspace.messages.sending != "automatic":
            workspace.messages.release()
        waiting = workspace.comments.unsent()
        if as_json:
            _show(workspace, (view for view, _ in waiting), invocation.screen(), as_json=True)
        else:
            write(_waiting_text(workspace, waiting, invocation.screen()))


# ---- inside


def _added(workspace: "Workspace", target: str, text: str, who: str) -> "CommentView":
    lines = _LINES.fullmatch(target)
    is_file = is_on_disk(workspace, target) or was_recorded(workspace, target)
    if _UNIT.fullmatch(target) or not (is_file or lines):
        view, units = workspace.history.find_units(target)
        units = tuple(unit for unit in units if unit.hunk in view.telling)
        return workspace.comments.add_to_units(units, text or _typed(target), who=who)
    spelling, span = target, (0, 0)
    if lines is not None and not is_file:
        first = int(lines["first"])
        spelling, span = lines["path"], (first, int(lines["last"] or first))
        if span[0] > span[1]:
            raise click.UsageError(f"{span[0]}-{span[1]} is no range of lines: the first one is larger.")
        if not (is_on_disk(workspace, spelling) or was_recorded(workspace, spelling)):
            with suppress(NoSuchName):
                _, units = workspace.history.find_units(target)
                return workspace.comments.add_to_units(units, text or _typed(target), who=who)
    path = path_named(workspace, spelling)
    text = text or _typed(target)
    try:
        return workspace.comments.add_to_lines(path, span, text=text, who=who)
    except FileChanged:
        # What is on disk is what the person sees: it is recorded first, as a look at the file does.
        from objstore import CallInfo, Origin

        info = CallInfo(tool="comment", origin=Origin.PERSON, notes={"who": who})
        workspace.hooks.notice(info, [path])
        return workspace.comments.add_to_lines(path, span, text=text, who=who)


def _added_to_turn(workspace: "Workspace", by: TurnSelection, text: str, who: str) -> "CommentView":
    """Record a comment on all that some turns or a session changed."""
    views = [view for view in edits_meant(workspace, conversation="", file="", by=by) if view.expired is None]
    units = [Unit(view.seq, hunk) for view in views for hunk in view.telling]
    words = " ".join(map(shown_name, by.words))
    if not units:
        raise click.ClickException(f"No edit that is kept matches {words}.")
    return workspace.comments.add_to_units(units, text or _typed(words), who=who)


def _typed(target: str) -> str:
    """Return the text that a person types in an editor. Raises click.ClickException if there is none."""
    if not can_ask():
        raise click.UsageError("An editor needs a terminal. Without one, give the text with -m TEXT.")
    try:
        typed = click.edit(f"\n\n{_BELOW}{target}\n", extension=".md", require_save=False) or ""
    except ValueError as error:
        raise click.ClickException(f"VISUAL or EDITOR is no valid command: {error}") from error
    text = typed.partition(_BELOW)[0].strip()
    if not text:
        raise click.ClickException("Nothing was written, so no comment was recorded.")
    context = click.get_current_context()
    option = next(param for param in context.command.params if param.name == "text")
    return recorded_text(context, option, text)


def _show(workspace: "Workspace", views: "Iterable[CommentView]", screen: Screen, *, as_json: bool) -> None:
    from cli.json_shapes.edits import comment_shape
    from cli.json_shapes.values import json_line
    from cli.render.comments import comments_text

    if as_json:
        write(json_line(comment_shape(workspace, view)) for view in views)
    else:
        write(comments_text(views, screen), paged=True)


def _waiting_text(
    workspace: "Workspace", waiting: "list[tuple[CommentView, frozenset[str]]]", screen: Screen
) -> Iterator[bytes]:
    from cli.render.comments import comment_text, sending_text, session_with_prompt

    for view, conversations in waiting:
        yield from comment_text(view, screen)
        to = [session_with_prompt(workspace, name) for name in sorted(conversations)]
        yield screen.line(f"  goes to {', '.join(to) or 'the agent that works next'}")
    said = [*sending_text(workspace, workspace.messages.waiting(), is_held=False)]
    yield from map(screen.line, said or ["Nothing waits to be sent."])
