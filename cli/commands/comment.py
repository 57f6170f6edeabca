"""The command `cas comment`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Invocation, command, json_option, recorded_text, reviewer
from cli.app.member_names import NumberName
from cli.screen.terminal import Screen, can_ask, shown_name, visible, write, write_json
from cli.search.candidates import named, takes_turns
from cli.selection.selectors import edits_named, is_edit_or_hunk, is_on_disk, path_named, units_named, was_recorded
from cli.selection.turn_selection import TurnSelection
from objstore import MAX_INT, CasError, FileChanged, NoSuchName, Unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from objstore import CommentView, Json, Member, Remote, Workspace


__all__ = ["comment", "comment_numbers", "write_comments"]

_LINES: Final = re.compile(r"(?P<path>.+):(?P<first>[1-9][0-9]{0,8})(-(?P<last>[1-9][0-9]{0,8}))?", re.DOTALL)

_BELOW: Final = "# Write the comment above this line; an empty one is not recorded. It is on: "

_TYPED: Final = f"{__name__}.typed"

comment_numbers = NumberName(1, MAX_INT, lambda *_: [])


@command("comment", takes_others=True)
@click.argument("target", metavar="[EDIT|HUNK|PATH[:LINE[-LINE]]]", default="", type=named("edit", "path"))
@takes_turns("Comment on all edits")
@click.option("-m", "--message", "text", callback=recorded_text, metavar="TEXT", default="", help="What to say.")
@click.option("--reply", type=comment_numbers, metavar="NUMBER", help="Answer the comment of this number.")
@click.option("--resolve", type=comment_numbers, multiple=True, metavar="NUMBER", help="Mark this comment as resolved.")
@click.option(
    "--reopen", type=comment_numbers, multiple=True, metavar="NUMBER", help="Open this comment, to be sent again."
)
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

    A comment on what another store has (desk/12:2) becomes one there with the next `cas pull` of that store. `cas
    comment desk/` lists the comments there, and those that wait.
    """
    if sum(map(bool, (target, by.is_given, reply, resolve or reopen))) > 1:
        raise click.UsageError("Give one of these: a target, --turn or --session, --reply, or --resolve and --reopen.")
    invocation = Invocation.current()
    if invocation.other is not None and (reply or resolve or reopen):
        from cli.selection.elsewhere import Elsewhere

        with invocation.own_workspace() as own:
            raise click.UsageError(Elsewhere(own, *invocation.other).no_answer)
    if text and not (target or by.is_given or reply):
        raise click.UsageError(
            "Name what the comment is on: an edit (12), a hunk (12:2), lines (src/app.py:120) or --turn N."
        )
    if invocation.other is not None:
        with _showing_typed():
            _on_other(invocation, invocation.other, target, by, text, everything=everything, as_json=as_json)
        return
    with _showing_typed(), invocation.reviewed_workspace() as workspace:
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
        write_comments(workspace, found, invocation.screen(), as_json=as_json)


def _on_other(
    invocation: Invocation,
    other: "tuple[Remote, Member]",
    target: str,
    by: TurnSelection,
    text: str,
    *,
    everything: bool,
    as_json: bool,
) -> None:
    """Comment on what another store has, by the log of the bucket; without a target, list its comments.

    `everything`: resolved ones too.
    """
    remote, member = other
    screen = invocation.screen()
    if not (target or by.is_given):
        with invocation.workspace() as mirror:
            views = [view for view in mirror.comments.all() if everything or not view.is_resolved]
            write_comments(mirror, views, screen, as_json=as_json)
        with invocation.own_workspace() as own:
            waiting = own.remote_decisions.comments(remote, member)
        if as_json:
            from objstore import waiting_comment_shape

            write_json(map(waiting_comment_shape, waiting))
        else:
            from cli.render.comments import waiting_text

            write(line for each in waiting for line in waiting_text(each, screen))
        return
    with invocation.workspace() as mirror:
        if target:
            units = [unit for view, found in edits_named(mirror, target) for unit in found if unit.hunk in view.telling]
        else:
            units = _units_of(mirror, by)
    said = text or _typed(invocation.of_other(target or " ".join(by.words)))
    with invocation.own_workspace() as own:
        number = own.remote_decisions.comment(remote, member, units, said, who=reviewer())
    if as_json:
        names: list[Json] = [*map(str, units)]
        write_json([{"store": member.name, "entry": number, "units": names, "text": said}])
        return
    write([screen.line(f"Comment {number} is for {member.name}: its next `cas pull` takes it over.")])


def _added(workspace: "Workspace", target: str, text: str, who: str) -> "CommentView":
    lines = _LINES.fullmatch(target)
    is_file = is_on_disk(workspace, target) or was_recorded(workspace, target)
    if is_edit_or_hunk(target) or not (is_file or lines):
        found = units_named(workspace, [target])
        view = workspace.history.edit(found[0].seq)
        units = tuple(unit for unit in found if unit.hunk in view.telling)
        return workspace.comments.add_to_units(units, text or _typed(target), who=who)
    spelling, span = target, (0, 0)
    if lines is not None and not is_file:
        first = int(lines["first"])
        spelling, span = lines["path"], (first, int(lines["last"] or first))
        if span[0] > span[1]:
            raise click.UsageError(f"{span[0]}-{span[1]} is no range of lines: the first one is larger.")
        if not (is_on_disk(workspace, spelling) or was_recorded(workspace, spelling)):
            with suppress(NoSuchName):
                units = workspace.history.named_units(target)
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
    units = _units_of(workspace, by)
    return workspace.comments.add_to_units(units, text or _typed(" ".join(map(shown_name, by.words))), who=who)


def _units_of(workspace: "Workspace", by: TurnSelection) -> list[Unit]:
    """Return all that some turns or a session changed. Raises click.ClickException if nothing of it is kept."""
    views = [view for view in workspace.review.edits(by.group) if view.expired is None]
    units = [unit for view in views for unit in view.telling_units]
    if not units:
        raise click.ClickException(f"No edit that is kept matches {' '.join(map(shown_name, by.words))}.")
    return units


def _typed(target: str) -> str:
    """Return the text that a person types in an editor. Raises click.ClickException if there is none."""
    if not can_ask():
        raise click.UsageError("An editor needs a terminal. Without one, give the text with -m TEXT.")
    from cli.screen.editor import naming_editor

    with naming_editor():
        typed = click.edit(f"\n\n{_BELOW}{target}\n", extension=".md", require_save=False) or ""
    text = typed.partition(_BELOW)[0].strip()
    if not text:
        raise click.ClickException("Nothing was written, so no comment was recorded.")
    context = click.get_current_context()
    context.meta[_TYPED] = text
    option = next(param for param in context.command.params if param.name == "text")
    return recorded_text(context, option, text)


@contextmanager
def _showing_typed() -> Iterator[None]:
    """If a comment can't be recorded, show what was typed in the editor: it is nowhere else."""
    try:
        yield
    except (CasError, OSError, click.ClickException, KeyboardInterrupt):
        typed = click.get_current_context().meta.get(_TYPED)
        if typed:
            lines = [f"    {visible(line)}" for line in typed.splitlines()]
            click.echo("\n".join(["What you typed:", *lines]), err=True)
        raise


def write_comments(workspace: "Workspace", views: "Iterable[CommentView]", screen: Screen, *, as_json: bool) -> None:
    """Write comments, as JSON or as text."""
    from cli.render.comments import comments_text
    from objstore import comment_shape

    if as_json:
        write_json(comment_shape(workspace.root, view) for view in views)
    else:
        write(comments_text(views, screen), paged=True)
