"""The command `cas restore`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option, reviewer
from cli.screen.terminal import shown_name, write, write_json
from cli.search.candidates import named
from cli.selection.selectors import recorded_named, state_named
from objstore import NoSuchName

if TYPE_CHECKING:
    from objstore import CallOutcome, State, Workspace


__all__ = ["restore"]


@command("restore")
@click.argument("name", metavar="PATH@EDIT", type=named("path"))
@click.option("-n", "--dry-run", is_flag=True, help="Show exactly what would change on disk; change nothing.")
@json_option
def restore(*, name: str, dry_run: bool, as_json: bool) -> None:
    """Restore a file to a recorded state.

    PATH@12 is the file after edit 12, PATH@12^ before it, PATH@2h two hours ago, PATH@2026-11-20 at the start of that
    day, PATH as last recorded.

    This is an edit of yours, and `cas undo` takes it back. Unrecorded changes to the file are recorded first.
    """
    invocation = Invocation.current()
    with invocation.reviewed_workspace() as workspace:
        try:
            state = state_named(workspace, name)
        except NoSuchName:
            from cli.search.did_you_mean import last_held

            held = last_held(workspace, recorded_named(workspace, name))
            if not held:
                raise
            advice = f"`{invocation.program} restore {held}` restores its last content"
            raise click.ClickException(f"{shown_name(name)} no longer exists: {advice}.") from None
        if not state.path:
            raise click.UsageError("A hash doesn't say which file to restore. Name the state as PATH@EDIT.")
        outcome = workspace.review.restore(state, who=reviewer(), dry_run=dry_run)
        if as_json:
            from cli.json_shapes.diffs import with_diffs
            from objstore import restored_shape

            shape = restored_shape(workspace, outcome, dry_run=dry_run)
            write_json([with_diffs(workspace, outcome.files, shape) if dry_run else shape])
        else:
            text = _restored_text(workspace, state, outcome, invocation, dry_run=dry_run)
            write(text, paged=dry_run)


def _restored_text(
    workspace: "Workspace", state: "State", outcome: "CallOutcome", invocation: Invocation, *, dry_run: bool
) -> Iterator[bytes]:
    from objstore import MODE_LOST

    name, screen = shown_name(state.path), invocation.screen()
    if dry_run:
        yield screen.line("Dry run: nothing was changed.")
    for view in outcome.external:
        yield screen.line(
            f"Would record the change from outside to {name}."
            if dry_run
            else f"Recorded the change from outside to {name} as edit {view.seq}."
        )
    if not outcome.edits:
        yield screen.line(f"No file {'changes' if dry_run else 'changed'}: {name} already is in this state.")
        if state.blob is None:
            from cli.search.did_you_mean import last_held

            if held := last_held(workspace, state.path):
                restores = f"`{invocation.program} restore {held}` restores its last content."
                yield screen.line(f"In this state there is no such file. {restores}")
    elif dry_run:
        from cli.render.outcomes import effect_line, effect_text

        yield from (screen.line(effect_line(effect, dry_run=True)) for effect in outcome.files)
        yield from effect_text(outcome.files, workspace.review.preview, screen)
    else:
        done = "Removed" if state.blob is None else "Restored"
        seq = outcome.edits[-1].seq
        after = outcome.edits[-1].edit.after
        lost = MODE_LOST if after is not None and after.mode != state.mode else ""
        yield screen.line(f"{done} {name}{lost} as edit {seq}; `{invocation.program} undo` takes it back.")
    if outcome.given_to:
        from objstore import given_words

        yield screen.line(given_words("What was restored", outcome.given_to))
