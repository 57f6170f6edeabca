"""The command `cas export`."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Invocation, command, json_option
from cli.screen.progress import Progress, showing_progress
from cli.screen.terminal import guarded, shown_name, write, write_json
from cli.search.candidates import conversation_option, file_option, files, folders, named, takes_turns
from cli.selection.selectors import edits_named, place_named
from cli.selection.turn_selection import TurnSelection

if TYPE_CHECKING:
    from cli.commands.git_patches import PatchSeries
    from objstore import Seq, Workspace


__all__ = ["export"]

_INTERRUPTED: Final = "Interrupted: the bundle is incomplete. Run the command again."


@command("export", takes_others=True)
@click.argument("names", metavar="[EDIT|CONVERSATION]...", nargs=-1, type=named("edit", "conversation"))
@click.option("--patch", is_flag=True, help="Write the live edits as a series of patches, for git am and patch.")
@click.option(
    "--bundle",
    metavar="FILE",
    shell_complete=files,
    help="Write the whole store to the new file FILE (- for standard output).",
)
@click.option(
    "--diffs",
    metavar="DIR",
    shell_complete=folders,
    help="Write logs, diffs and checkpoints into the new or empty DIR, in the layout of mcpdiff.",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    shell_complete=folders,
    help="Write the patches into DIR, one file each, instead of to standard output.",
)
@takes_turns("Only edits")
@conversation_option("Only edits of this conversation.")
@file_option("Only edits of this file, of a folder, or of a pattern.")
@json_option
def export(  # noqa: PLR0913 -- each is an option of the command
    *,
    names: tuple[str, ...],
    patch: bool,
    bundle: str | None,
    diffs: str | None,
    output: str | None,
    by: TurnSelection,
    conversation: str,
    file: str,
    as_json: bool,
) -> None:
    """Export edits as patches (--patch) or as a log with diffs (--diffs), or the whole store in one file (--bundle).

    Patches contain live edits: rejected ones are left out, and all patches together lead to the current files. If you
    select edits, their patches assume all other live edits.

    With --diffs, DIR gets every edit, whatever its status: a log for each conversation, a diff for each edit, and
    checkpoints to start from. `cas import mcpdiff DIR` reads it.
    """
    if patch + bool(bundle) + bool(diffs) != 1:
        raise click.UsageError("Pass one of --patch, --diffs DIR and --bundle FILE.")
    if diffs and output is not None:
        raise click.UsageError("--output is for patches: --diffs DIR already names a folder.")
    if bundle and (names or output or conversation or file or by.is_given):
        raise click.UsageError(
            "A bundle holds the whole store: pass --bundle without --output, edits or their selection."
        )
    if bundle == "-" and (as_json or (sys.stdout is not None and sys.stdout.isatty())):
        raise click.UsageError("A bundle can't be written to a terminal or inside JSON. Name a file: --bundle FILE.")
    from objstore import FileExists

    invocation = Invocation.current()
    screen = invocation.screen()
    with invocation.workspace() as workspace:
        if bundle == "-":
            with Progress({"bytes": "writing"}, interrupted=_INTERRUPTED) as progress:
                workspace.transfer.send_bundle(lambda piece: write([piece]), progress.report)
            return
        if bundle:
            try:
                with Progress({"bytes": "writing"}) as progress:
                    size = workspace.transfer.export_bundle(bundle, progress.report)
            except FileExists as error:
                raise click.ClickException(f"{shown_name(bundle)} already exists. Name a new file.") from error
            if as_json:
                from objstore import text_shape

                write_json([{"bundle": text_shape(str(Path(bundle).absolute())), "bytes": size}])
            else:
                imports = "`cas import FILE DIR` makes a workspace from it"
                write([screen.line(f"Wrote {shown_name(bundle)}: {size} bytes. {imports}.")])
            return
        if diffs:
            from cli.commands.export_diffs import export_diffs

            seqs = _chosen(workspace, names, by, conversation=conversation, file=file, as_diffs=True)
            export_diffs(workspace, seqs, diffs, as_json=as_json)
            return
        _write_patches(workspace, names, output, by, conversation=conversation, file=file, as_json=as_json)


def _chosen(
    workspace: "Workspace",
    names: tuple[str, ...],
    by: TurnSelection,
    *,
    conversation: str,
    file: str,
    as_diffs: bool = False,
) -> "list[Seq]":
    """Return the edits to export as patches or diffs; of a group, patches leave out those that have expired.

    Raises NoSuchName, AmbiguousName, PathError.
    """
    named = [edit for name in names for edit in edits_named(workspace, name)]
    for view, units in named:
        if len(units) < len(view.units):
            what = "Diffs" if as_diffs else "Patches"
            raise click.UsageError(f"{what} are of whole edits, not of hunks. Name edit {view.seq}.")
    seqs = [view.seq for view, _ in named]
    if not (as_diffs or names or conversation or file or by.is_given):
        return workspace.history.unexpired()
    if not names or conversation or file or by.is_given:
        with showing_progress(workspace, {"records": "reading"}):
            from objstore import replace

            at = place_named(workspace, file) if file else None
            meant = workspace.review.edits(replace(by.group, conversation=conversation, file=at))
        seqs += [view.seq for view in meant if as_diffs or view.expired is None]
    return seqs


def _write_patches(
    workspace: "Workspace",
    names: tuple[str, ...],
    output: str | None,
    by: TurnSelection,
    *,
    conversation: str,
    file: str,
    as_json: bool,
) -> None:
    from tempfile import TemporaryFile

    from cli.commands.git_patches import PatchSeries
    from objstore import require_not_reserved

    if output is not None:
        require_not_reserved(output)
    seqs = _chosen(workspace, names, by, conversation=conversation, file=file)
    with TemporaryFile() as spool:
        with showing_progress(workspace, {"edits": "working out"}):
            series = PatchSeries(workspace.history.series(seqs), spool)
        has_returns = _write_series(series, output, as_json=as_json)
    if has_returns:
        click.echo("cas: some lines end in CR LF. Apply the patches with `git am --keep-cr` to keep that.", err=True)
    for why, left_out in series.left_out.items():
        named = f"edit{'' if len(left_out) == 1 else 's'} {' '.join(map(str, left_out))}"
        click.echo(f"cas: no patch for {named}: {why}.", err=True)
    if not series and not series.left_out:
        click.echo("cas: no live edit was selected, so there is no patch.", err=True)


def _write_series(series: "PatchSeries", output: str | None, *, as_json: bool) -> bool:
    """Write patches into a new folder (None: to standard output); return whether a line of them ends in CR LF."""
    from objstore import text_shape

    folder = None if output is None else Path(output)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        # An existing file is left alone: it may be of another series.
        if taken := [name for name in series.names() if os.path.lexists(folder / name)]:
            raise click.ClickException(
                f"{shown_name(str(folder))} already holds {shown_name(taken[0])}; "
                "nothing was written. Name a new folder."
            )
    has_returns = False

    def contents() -> Iterator[tuple[str, bytes]]:
        nonlocal has_returns
        for patch in series.patches():
            has_returns = has_returns or b"\r\n" in patch.content
            yield patch.name, patch.content

    if folder is None and not as_json:
        write(guarded(content for _, content in contents()))
        return has_returns
    sizes: dict[str, int] = {}
    for name, content in contents():
        if folder is not None:
            with (folder / name).open("xb") as file:
                file.write(content)
        sizes[name] = len(content)
    if as_json:
        places = {name: None if folder is None else text_shape(str((folder / name).absolute())) for name in sizes}
        write_json({"name": name, "file": places[name], "bytes": size} for name, size in sizes.items())
    elif folder is not None:
        screen = Invocation.current().screen()
        write(screen.line(shown_name(str(folder / name))) for name in sizes)
    return has_returns
