"""The command `cas send`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option, reviewer
from cli.screen.terminal import Screen, write
from cli.search.candidates import named

if TYPE_CHECKING:
    from objstore import CommentView, Workspace

from cli.commands.comment import comment_numbers, write_comments

__all__ = ["send"]


@command("send")
@click.argument("numbers", metavar="[NUMBER]...", nargs=-1, type=comment_numbers)
@click.option(
    "--session", default="", metavar="N|NAME", type=named("session"), help="Send the comments to this session."
)
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
        raise click.UsageError("Say who gets these comments: --session N, or --any.")
    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        if session or to_any:
            conversation = workspace.sessions.find_session(session).name if session else ""
            chosen = numbers or tuple(view.number for view, _ in workspace.comments.unsent())
            if chosen:
                workspace.comments.address(chosen, conversation, who=reviewer())
        if workspace.messages.sending != "automatic":
            workspace.review.require_person()
            workspace.messages.release()
        waiting = workspace.comments.unsent()
        if as_json:
            write_comments(workspace, (view for view, _ in waiting), invocation.screen(), as_json=True)
        else:
            write(_waiting_text(workspace, waiting, invocation.screen()))


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
