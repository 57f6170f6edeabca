"""The command `cas review`: go through pending changes with single keys."""

import sys
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command
from cli.screen.diff_layout import columns_option, in_columns
from cli.screen.terminal import can_ask
from cli.search.candidates import conversation_option, file_option, named, takes_turns, takes_unseen
from objstore import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cli.selection.turn_selection import TurnSelection
    from objstore import NetFile, Selection, Workspace

__all__ = ["review"]


@command("review", takes_others=True)
@click.argument(
    "names",
    metavar="[PATH|EDIT|HUNK|CONVERSATION|STORE/]...",
    nargs=-1,
    type=named("path", "edit", "conversation"),
)
@takes_turns("Only changes")
@conversation_option("Only changes by edits of this conversation.")
@file_option("Only this file, files in a folder, or files of a pattern.")
@takes_unseen
@click.option("--each", is_flag=True, hidden=True, help="Begin as after the key e: show the single edits.")
@columns_option
def review(
    *,
    names: tuple[str, ...],
    by: "TurnSelection",
    conversation: str,
    file: str,
    each: bool,
    unseen: bool,
    columns: bool,
) -> None:
    """Go through the changes, file by file: `a` accepts one and `x` rejects it, and `?` lists the other keys.

    Name paths, lines of a file (PATH:LINE), edits or hunks to see only the changes that they are part of. Each decision
    is recorded at once. Whenever you leave, the next review continues with what is still pending.

    With STORE/, what another store of a bucket has, as the newest `cas pull` fetched it: a decision goes to the log of
    the bucket, and is carried out where the files are.
    """
    if not can_ask() or not sys.stdout.isatty():
        raise click.UsageError(
            "`cas review` needs a terminal. Without one, use `cas diff`, `cas accept` and `cas reject`."
        )
    from cli.review_ui.remote_review import RemoteReview
    from cli.review_ui.review import Review
    from cli.screen.keyboard import Keyboard
    from cli.selection.elsewhere import Elsewhere
    from cli.selection.selectors import place_named

    invocation = Invocation.current()
    screen = in_columns(invocation.screen(), columns)
    turn = by.turns[0] if len(by.turns) == 1 else 0
    with ExitStack() as opened:
        elsewhere = None
        if invocation.other is not None:
            with invocation.own_workspace() as own:
                elsewhere = Elsewhere(own, *invocation.other)
        workspace = opened.enter_context(invocation.reviewed_workspace())
        everything = _everything(workspace)
        select = everything
        at = place_named(workspace, file) if file else None
        group = replace(by.group, conversation=conversation, file=at)
        if names or group.is_group or unseen:
            select = _selected(workspace, names, group, unseen=unseen)
        keyboard = opened.enter_context(Keyboard())
        if elsewhere is not None:
            RemoteReview(workspace, keyboard, screen, select, everything, elsewhere, turn=turn, is_each=each).run()
            return
        opened.enter_context(workspace.messages.held())
        Review(workspace, keyboard, screen, select, everything, turn=turn, is_each=each).run()


def _everything(workspace: "Workspace") -> "Callable[[Collection[str]], list[NetFile]]":
    from cli.selection.net_selection import net_selection

    return partial(net_selection(workspace, ()).files, workspace)


def _selected(
    workspace: "Workspace", names: tuple[str, ...], group: "Selection", *, unseen: bool
) -> "Callable[[Collection[str]], list[NetFile]]":
    """Return a function that returns the files with the wanted changes, of all paths or only at some."""
    from cli.selection.net_selection import net_selection, require_recorded

    selection = net_selection(workspace, names, group)
    require_recorded(workspace, selection.paths)
    seen = workspace.review.seen_changes()  # what is looked at from now on stays in this review

    def select(at: "Collection[str]") -> "list[NetFile]":
        found = selection.files(workspace, at)
        return workspace.review.unseen(found, seen) if unseen else found

    return select
