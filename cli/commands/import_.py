"""The command `cas import`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from cli.app.invocation import Invocation, command, json_option
from cli.render.imports import imported_lines, imported_shape, not_empty
from cli.screen.progress import CHECKING, Progress
from cli.screen.terminal import shown_name, write, write_json
from cli.search.candidates import folders

__all__ = ["import_"]


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
        from cli.commands.import_mcpdiff import import_mcpdiff_history

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

    with Progress(CHECKING) as progress:
        try:
            found = import_bundle(bundle, directory, files=not store_only, progress=progress.report)
        except FileExists as error:
            raise click.ClickException(_taken(error.path, directory, store_only=store_only)) from error
    if as_json:
        write_json([imported_shape(found)])
        return
    write(imported_lines(Invocation.current().screen(), found))


def _taken(path: str, directory: str, *, store_only: bool) -> str:
    if store_only or Path(path).name == ".cas":
        return f"{shown_name(directory)} already has a store, and stores can't be merged. Import into a new folder."
    return f"{not_empty(path, directory)} Import into a new folder, or pass --store-only."
