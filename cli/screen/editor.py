"""Let a person edit a file in the program that VISUAL or EDITOR names."""

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

__all__ = ["edited", "naming_editor"]


@contextmanager
def naming_editor() -> Iterator[None]:
    """Say of a failure of the editor what failed, and what to do. Raises click.ClickException."""
    try:
        yield
    except ValueError as error:
        raise click.ClickException(f"VISUAL or EDITOR is no valid command: {error}") from error
    except click.ClickException as error:
        name, cause = error.message.partition(": Editing failed")[0], error.__cause__
        said = f"The editor {name} ended with an error"
        if isinstance(cause, OSError):
            said = f"The editor {name} could not be started ({cause.strerror}): set VISUAL or EDITOR to another one"
        raise click.ClickException(said) from error


@contextmanager
def edited(file: "Content") -> Iterator[bytes]:
    """Yield the content that a person makes of a copy of the file. Raises click.ClickException if the editor fails.

    The typed text survives any failure, in the editor or while it is used: its copy is then kept and named.
    """
    folder = Path(tempfile.mkdtemp(prefix="cas-amend-"))
    copy = folder / PurePath(file.path).name
    try:
        copy.write_bytes(file.bytes)
        with naming_editor():
            click.edit(filename=str(copy))
        yield copy.read_bytes()
    except BaseException:
        # An editor that was killed may have left the typed text in a file of its own next to the copy.
        typed = [left for left in sorted(folder.iterdir()) if left != copy or left.read_bytes() != file.bytes]
        if not typed:
            shutil.rmtree(folder)
        for left in typed:
            click.echo(f"Your text is saved in {shown_name(str(left))}", err=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)  # the result is recorded
