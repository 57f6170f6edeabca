"""The command `cas review`: go through the pending hunks with single keys."""

import sys
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command
from cli.screen.terminal import can_ask
from cli.search.candidates import conversation_option, file_option, names, takes_turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.selection.turn_selection import TurnSelection
    from objstore import PendingGroup, Workspace

__all__ = ["review"]


@command("review")
@click.argument("names", metavar="[EDIT|CONVERSATION]...", nargs=-1, shell_complete=names("edit", "conversation"))
@takes_turns("Only edits")
@conversation_option("Only edits of this conversation.")
@file_option("Only edits of this file, in a folder, or of a pattern.")
def review(*, names: tuple[str, ...], by: "TurnSelection", conversation: str, file: str) -> None:
    """Go through the pending hunks: one key accepts, rejects, skips, splits or amends. ? lists the keys.

    Each decision is recorded at once. Whenever you quit, the next review continues with what is still pending.
    """
    if not can_ask() or not sys.stdout.isatty():
        raise click.UsageError(
            "`cas review` needs a terminal. Without one, use `cas show`, `cas accept` and `cas reject`."
        )
    from cli.review_ui.hunk_review import Review
    from cli.screen.keyboard import Keyboard

    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        wanted = _wanted(workspace, names, by=by, conversation=conversation, file=file)
        with Keyboard() as keyboard:
            Review(workspace, keyboard, invocation.screen(), wanted).run()


def _wanted(
    workspace: "Workspace", names: tuple[str, ...], *, by: "TurnSelection", conversation: str, file: str
) -> "Callable[[PendingGroup, int], bool]":
    from cli.selection.selectors import edits_named, path_predicate

    seqs = {view.seq for name in names for view, _ in edits_named(workspace, name)}
    spoken = workspace.history.find_conversation(conversation) if conversation else ""
    is_there = path_predicate(workspace, file)
    by.check(workspace)

    def wanted(group: "PendingGroup", seq: int) -> bool:
        is_named = (not seqs or seq in seqs) and spoken in {"", group.conversation}
        if not is_named or not (file or by.is_given):
            return is_named
        view = workspace.history.edit(seq)
        return (not file or is_there(view.edit)) and by.made(workspace, view)

    return wanted
