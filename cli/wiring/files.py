"""Settings files of other programs on disk: read, shown as they would become, and replaced whole with a copy kept."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cli.wiring.plans import Step

__all__ = ["BACKUP", "SettingsChange", "changes", "write"]

BACKUP: Final = ".before-editledger"
"""What the name of the copy ends in that holds a file as it was before the last change of ours."""

_LONGEST: Final = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """What becomes of one settings file."""

    path: Path  # through links: many keep their settings elsewhere
    before: str  # "": there is no such file
    after: str  # "": it goes


def changes(steps: Iterable[Step], *, remove: bool) -> list[SettingsChange]:
    """Return what the steps change, or what taking them back changes; files that stay as they are are left out.

    Raises OSError and UnicodeDecodeError for files that can't be read, ValueError for those that make no sense.
    """
    found: list[SettingsChange] = []
    for step in steps:
        path = step.path.resolve()
        before = _text(path)
        try:
            after = (step.undo if remove else step.apply)(before)
        except ValueError as error:
            raise ValueError(f"{path} is not as its program writes it, and stays as it is: {error}") from error
        if remove and "".join(after.split()) in {"{}", ""}:
            after = ""
        if after != before:
            found.append(SettingsChange(path=path, before=before, after=after))
    return found


def write(change: SettingsChange, below: Path) -> None:
    """Give the file its new text in one step, its mode kept, and a copy of the old one beside it. Raises OSError.

    A file that goes held nothing but ours: no copy is made of it, and the folders above it, as far as they are `below`
    that one and left empty, go with it. FileExistsError where it is not as it was when the change was planned.
    """
    if _text(change.path) != change.before:
        raise FileExistsError(f"{change.path} was changed meanwhile; nothing was written to it")
    if not change.after:
        change.path.unlink()
        _without_empty(change.path.parent, below.resolve())
        return
    if change.before:
        _put(change.path.with_name(change.path.name + BACKUP), change.before, like=change.path)
    change.path.parent.mkdir(parents=True, exist_ok=True)
    _put(change.path, change.after, like=change.path)


def _without_empty(folder: Path, below: Path) -> None:
    """Remove the folder if it is empty, and then those above it that are."""
    while below in folder.parents:
        try:
            folder.rmdir()
        except OSError:
            return  # something else stands in it
        folder = folder.parent


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST).decode("utf-8")
    except FileNotFoundError:
        return ""


def _put(path: Path, text: str, *, like: Path) -> None:
    staged = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    mode = like.stat().st_mode & 0o777 if like.exists() else 0o644
    fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(fd, "wb") as file:  # noqa: PTH123 - of a descriptor, which pathlib can't open
            file.write(text.encode("utf-8"))
            file.flush()
            os.fchmod(fd, mode)
            os.fsync(fd)
        staged.replace(path)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
