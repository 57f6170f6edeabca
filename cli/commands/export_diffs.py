"""`cas export --diffs`: write the history into a folder, as logs, diffs and checkpoints."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import rmtree
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import click

from cli.app.invocation import Invocation
from cli.screen.progress import showing_progress
from cli.screen.terminal import shown_name, write, write_json
from objstore import counted, shown_edits

if TYPE_CHECKING:
    from objstore import Json, McpdiffExport, Seq, Workspace

__all__ = ["export_diffs"]

_PARTS: Final = ("diffs", "checkpoints", "logs")
"""The folders of a history, in the order in which they appear: what a log names is there before the log is."""

_INCOMPLETE: Final = ".incomplete"
"""The folder in which they are written first."""


def export_diffs(workspace: "Workspace", seqs: "Sequence[Seq]", directory: str, *, as_json: bool) -> None:
    """Write the history of some edits into a new or empty directory, and report what was written."""
    from objstore import require_not_reserved

    require_not_reserved(directory)
    with showing_progress(workspace, {"records": "reading", "edits": "writing"}), _NewHistory(directory) as history:
        found = workspace.transfer.send_mcpdiff_history(seqs, history.add)
    if as_json:
        from objstore import fields_shape, text_shape

        shape: dict[str, Json] = {
            "directory": text_shape(str(Path(directory).absolute())),
            "bytes": history.size,
            **fields_shape(found),
        }
        write_json([shape])
    else:
        edits, conversations = counted(found.edits, "edit"), counted(found.conversations, "conversation")
        files = f"{counted(found.diffs, 'diff')}, {counted(found.checkpoints, 'checkpoint')}"
        said = f"Wrote {edits} of {conversations} to {shown_name(directory)}: {files}."
        write([Invocation.current().screen().line(said)])
    _say_what_is_missing(found)


def _say_what_is_missing(found: "McpdiffExport") -> None:
    if found.expired:
        click.echo(f"cas: left out, because their content has expired: {shown_edits(found.expired)}.", err=True)
    if found.partly:
        click.echo(
            f"cas: decided in part, which a log can't say: {shown_edits(found.partly)}. "
            "Each has the one status that `cas log` counts it under.",
            err=True,
        )


class _NewHistory:
    """A history in a new or empty directory: complete at the end, or nothing of it is left.

    If the process is killed, the directory has a folder `.incomplete`, and no logs.
    """

    def __init__(self, directory: str) -> None:
        self._directory: Final = Path(directory)
        self._incomplete: Final = self._directory / _INCOMPLETE
        self._made: list[Path] = []  # directories that did not exist before, outermost first
        self._moved: list[Path] = []
        self.size = 0  # bytes written

    def __enter__(self) -> Self:
        """Create the directory, if it does not exist. Raises ClickException if it is not empty."""
        missing = [path for path in (self._directory, *self._directory.parents) if not os.path.lexists(path)]
        try:
            for path in reversed(missing):
                path.mkdir(mode=0o700 if path == self._directory else 0o777)
                self._made.append(path)
            self._claim()
        except BaseException:
            self._remove_made()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Move the complete history to its place; after an error, remove it."""
        try:
            if kind is None:
                for part in _PARTS:
                    (self._incomplete / part).rename(self._directory / part)
                    self._moved.append(self._directory / part)
                self._incomplete.rmdir()
                return
        except BaseException:
            self._discard()
            raise
        self._discard()

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write one file."""
        place = self._incomplete / name
        place.parent.mkdir(exist_ok=True)
        with place.open("xb") as file:
            for piece in pieces:
                file.write(piece)
                self.size += len(piece)

    def _claim(self) -> None:
        """Create the folder for what is incomplete, if nothing else is in the directory."""
        if self._directory.exists() and not self._directory.is_dir():
            raise click.ClickException(f"{shown_name(str(self._directory))} is not a directory. Name a new one.")
        self._refuse_names([path.name for path in self._directory.iterdir()])
        self._incomplete.mkdir(mode=0o700)
        try:
            # Another export may have ended since.
            self._refuse_names([path.name for path in self._directory.iterdir() if path != self._incomplete])
            for part in _PARTS:
                (self._incomplete / part).mkdir(mode=0o700)
        except BaseException:
            rmtree(self._incomplete, ignore_errors=True)
            raise

    def _refuse_names(self, names: Sequence[str]) -> None:
        if not names:
            return
        directory, first = shown_name(str(self._directory)), shown_name(min(names))
        reason = "an export into it is running or was cut off" if _INCOMPLETE in names else f"it holds {first}"
        raise click.ClickException(f"{directory} is not empty: {reason}. Nothing was written. Name a new directory.")

    def _discard(self) -> None:
        for path in (self._incomplete, *self._moved):
            rmtree(path, ignore_errors=True)
        self._remove_made()

    def _remove_made(self) -> None:
        for path in reversed(self._made):
            try:
                path.rmdir()
            except OSError:
                return  # another process has put something there
