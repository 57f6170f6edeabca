"""The editor: a file as a person makes it, in the program that VISUAL or EDITOR names."""

import tempfile
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from objstore import Content

__all__ = ["edited"]


def edited(file: "Content") -> bytes:
    """Return what a person makes of a copy of the file. Raises click.ClickException where the editor fails."""
    with tempfile.TemporaryDirectory(prefix="cas-amend-") as folder:
        copy = Path(folder) / PurePath(file.path).name
        copy.write_bytes(file.bytes)
        try:
            click.edit(filename=str(copy))
        except ValueError as error:
            raise click.ClickException(f"VISUAL or EDITOR names no program: {error}") from error
        return copy.read_bytes()
