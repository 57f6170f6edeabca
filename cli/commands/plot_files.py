"""`cas stats --svg`: write plots as files."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

import click

from cli.plots.activity import activity_plot, draw_activity
from cli.plots.file_life import draw_file, file_plot
from cli.plots.store_size import draw_store, store_plot
from cli.plots.svg import is_drawing
from cli.screen.terminal import shown_name
from cli.selection.selectors import recorded_named
from objstore import require_not_reserved

if TYPE_CHECKING:
    from objstore import Workspace

__all__ = ["write_plots"]


def write_plots(workspace: "Workspace", folder: str, path: str | None, *, force: bool) -> Iterator[str]:
    """Write the plots into a folder, and yield a line about each; nothing is written if something is in the way.

    `path`: the file whose life is drawn (None: none is). `force`: replace files that are not plots. Raises
    ClickException for what is in the way, NoSuchName, and what paths raise.
    """
    require_not_reserved(folder)
    made = {"activity.svg": (activity_plot(workspace), draw_activity), "store.svg": (store_plot(workspace), draw_store)}
    if path is not None:
        made["file.svg"] = file_plot(workspace, recorded_named(workspace, path)), draw_file
    if os.path.lexists(folder) and not Path(folder).is_dir():
        raise click.ClickException(f"{shown_name(folder)} is not a directory. Name another one.")
    for name in made:
        _require_replaceable(Path(folder, name), force=force)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, (plot, draw) in made.items():
        _replace(Path(folder, name), draw(plot))
        yield f"Wrote {shown_name(str(Path(folder, name)))}: {plot.summary}"


def _require_replaceable(place: Path, *, force: bool) -> None:
    """Raise ClickException if there is something at a path that must not be replaced. A symlink is no plot."""
    if place.is_dir() and not place.is_symlink():
        raise click.ClickException(f"{shown_name(str(place))} is a directory. Nothing was written. Name another one.")
    if force or not os.path.lexists(place):
        return
    is_plot = False
    if place.is_file() and not place.is_symlink():
        with place.open("rb") as file:
            is_plot = is_drawing(file.read(4096))
    if not is_plot:
        raise click.ClickException(
            f"{shown_name(str(place))} is not a plot that `cas stats` wrote. Nothing was written. "
            "Name another directory, or replace the file with --force."
        )


def _replace(place: Path, content: bytes) -> None:
    """Write a file whole or not at all; a symlink is replaced, and not followed."""
    mask = os.umask(0)
    os.umask(mask)
    with NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~mask)
            Path(file.name).replace(place)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
