"""The editor: a file as a person makes it, in the program that VISUAL or EDITOR names."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click

from cli.screen.terminal import shown_name

if TYPE_CHECKING:
    from objstore import Content

__all__ = ["edited"]


@contextmanager
def edited(file: "Content") -> Iterator[bytes]:
    """Give what a person makes of a copy of the file. Raises click.ClickException where the editor fails.

    What was typed outlives whatever fails, in the editor or while it is used: its copy is kept then, and named.
    """
    folder = Path(tempfile.mkdtemp(prefix="cas-amend-"))
    copy = folder / PurePath(file.path).name
    try:
        copy.write_bytes(file.bytes)
        try:
            click.edit(filename=str(copy))
        except ValueError as error:
            raise click.ClickException(f"VISUAL or EDITOR is no valid command: {error}") from error
        yield copy.read_bytes()
    except BaseException:
        # An editor that was ended may have left what was typed in a file of its own beside the copy.
        typed = [left for left in sorted(folder.iterdir()) if left != copy or left.read_bytes() != file.bytes]
        if not typed:
            shutil.rmtree(folder)
        for left in typed:
            click.echo(f"Your text is saved in {shown_name(str(left))}", err=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)  # what is done is recorded
