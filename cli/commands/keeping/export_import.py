"""The commands `cas export` and `cas import`: edits as patches, and a whole store in one file."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.app.invocation import Invocation, command, json_option
from cli.screen.progress import Progress, showing_progress
from cli.screen.terminal import guarded, shown_name, write
from cli.search.candidates import conversation_option, file_option, files, folders, names, takes_turns
from cli.selection.selectors import edits_meant, edits_named
from cli.selection.turn_selection import TurnSelection

if TYPE_CHECKING:
    from cli.commands.keeping.git_patches import PatchSeries
    from cli.json_shapes.values import Json
    from objstore import Seq, Workspace

__all__ = ["export", "import_"]


@command("export")
@click.argument("names", metavar="[EDIT|CONVERSATION]...", nargs=-1, shell_complete=names("edit", "conversation"))
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
            with Progress({"bytes": "writing"}) as progress:
                workspace.transfer.send_bundle(lambda piece: write([piece]), progress.report)
            return
        if bundle:
            try:
                with Progress({"bytes": "writing"}) as progress:
                    size = workspace.transfer.export_bundle(bundle, progress.report)
            except FileExists as error:
                raise click.ClickException(f"{shown_name(bundle)} already exists. Name a new file.") from error
            if as_json:
                from cli.json_shapes.values import json_line, text_shape

                write([json_line({"bundle": text_shape(str(Path(bundle).absolute())), "bytes": size})])
            else:
                imports = "`cas import FILE DIR` makes a workspace from it"
                write([screen.line(f"Wrote {shown_name(bundle)}: {size} bytes. {imports}.")])
            return
        if diffs:
            from cli.commands.keeping.export_diffs import export_diffs

            seqs = _chosen(workspace, names, by, conversation=conversation, file=file, as_diffs=True)
            export_diffs(workspace, seqs, diffs, as_json=as_json)
            return
        _write_patches(workspace, names, output, by, conversation=conversation, file=file, as_json=as_json)


@command("import")
@click.argument("bundle", metavar="FILE|mcpdiff", type=click.Path())
@click.argument("directory", metavar="DIR|PATH", type=click.Path(file_okay=False))
@click.option("--store-only", is_flag=True, help="Import only the store; leave the files in DIR as they are.")
@click.option(
    "--root",
    metavar="DIR",
    shell_complete=folders,
    help="Folder that held the files when mcpdiff recorded them, if they have moved.",
)
@click.option("--partly", is_flag=True, help="Import what can be imported, even if not everything can.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be imported; record nothing.")
@json_option
def import_(
    *,
    bundle: str,
    directory: str,
    store_only: bool,
    root: str | None,
    partly: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a workspace in the new or empty DIR from a bundle: its files and their whole history.

    FILE - is standard input. Everything is verified before anything is kept. A store is never imported into another
    one: to move edits there, use cas export --patch.

    `cas import mcpdiff PATH` imports what mcpdiff recorded about the files of this workspace, with its decisions: PATH
    is its .mcp/edit_history, or the folder that holds it. Each state is verified by its hash; no file is written, and
    importing twice is the same as once.
    """
    if bundle == "mcpdiff":
        if store_only:
            raise click.UsageError("--store-only is only for bundles.")
        from cli.commands.keeping.import_mcpdiff import import_mcpdiff_history

        import_mcpdiff_history(directory, root=root, partly=partly, dry_run=dry_run, as_json=as_json)
        return
    if root or partly or dry_run:
        raise click.UsageError("--root, --partly and --dry-run are only for `cas import mcpdiff`.")
    if bundle == "-":
        with _received() as received:
            _import(received, directory, store_only=store_only, as_json=as_json)
        return
    if not Path(bundle).is_file():
        named = shown_name(bundle)
        if Path(bundle).exists():
            raise click.UsageError(
                f"Not a regular file: {named}. To read a bundle from a pipe, use `cas import - DIR`."
            )
        raise click.UsageError(f"No such file: {named}")
    _import(bundle, directory, store_only=store_only, as_json=as_json)


@contextmanager
def _received() -> Iterator[str]:
    """Save standard input to a temporary file and yield its path."""
    from shutil import copyfileobj
    from tempfile import NamedTemporaryFile

    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError("No bundle on standard input. Pipe one in: `cas export --bundle - | cas import - DIR`.")
    with NamedTemporaryFile(prefix="cas-", suffix=".bundle") as file:
        copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield file.name


def _import(bundle: str, directory: str, *, store_only: bool, as_json: bool) -> None:
    from objstore import FileExists, import_bundle

    with Progress({"blobs": "checking", "documents": "replaying"}) as progress:
        try:
            found = import_bundle(bundle, directory, files=not store_only, progress=progress.report)
        except FileExists as error:
            raise click.ClickException(_taken(error.path, directory, store_only=store_only)) from error
    if as_json:
        from cli.json_shapes.values import json_line, text_shape

        shape: dict[str, Json] = {
            "workspace": text_shape(found.root),
            "records": found.records,
            "blobs": found.blobs,
            "files": found.files,
        }
        write([json_line(shape)])
        return
    from cli.render.status import counted

    records, blobs = counted(found.records, "record"), counted(found.blobs, "blob")
    files = counted(found.files, "file")
    screen = Invocation.current().screen()
    write(
        [
            screen.line(f"Verified {records} and {blobs}: nothing is wrong."),
            screen.line(f"{shown_name(found.root)} is a workspace with the same history; {files} written."),
        ]
    )


def _taken(path: str, directory: str, *, store_only: bool) -> str:
    if store_only or Path(path).name == ".cas":
        return f"{shown_name(directory)} already has a store, and stores can't be merged. Import into a new folder."
    return f"{shown_name(directory)} is not empty ({shown_name(path)}). Import into a new folder, or pass --store-only."


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
        meant = edits_meant(workspace, conversation=conversation, file=file, by=by)
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

    from cli.commands.keeping.git_patches import PatchSeries
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
    if not series.names() and not series.left_out:
        click.echo("cas: no live edit was selected, so there is no patch.", err=True)


def _write_series(series: "PatchSeries", output: str | None, *, as_json: bool) -> bool:
    """Write patches into a new folder (None: to standard output); return whether a line of them ends in CR LF."""
    from cli.json_shapes.values import json_line, text_shape

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
        write(json_line({"name": name, "file": places[name], "bytes": size}) for name, size in sizes.items())
    elif folder is not None:
        screen = Invocation.current().screen()
        write(screen.line(shown_name(str(folder / name))) for name in sizes)
    return has_returns
