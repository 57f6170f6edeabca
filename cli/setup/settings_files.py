"""Read other programs' settings files, compute their changes, and replace them atomically with a copy kept."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from cli.setup.plans import NAME, SetupStep

__all__ = ["BACKUP", "SettingsChange", "SetupState", "changes", "remarks", "setup_state", "text_of", "write"]

BACKUP: Final = ".before-editledger"
"""Suffix of the copy that holds a file as it was before our first change."""

_LONGEST: Final = 16 << 20


class SetupState(Enum):
    """The parts of the setup that exist in the files of a client."""

    NOTHING = "nothing of ours"
    SOME = "our server alone, or our hooks alone"
    BROKEN = "some of our hooks but not all, or text that can't be parsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """The change to one settings file, and to the copy next to it."""

    path: Path  # with links resolved: many keep their settings elsewhere
    before: str | None  # None: there is no such file
    after: str | None  # None: it is deleted
    what: str = ""  # what is added to it, for a person
    is_program: bool = False  # whether the file is run, and not read
    is_kept: bool = False  # whether its previous content is kept in a copy
    is_restored: bool = False  # whether it is restored from its copy, which is deleted
    is_given_back: bool = False  # whether this restores an entry of our name that was there before us


def changes(steps: Iterable[SetupStep], *, remove: bool) -> list[SettingsChange]:
    """Return what the steps change, or what removing them changes; unchanged files are left out.

    Raises OSError for files that can't be read, ValueError for invalid ones, and for those that are no text or too
    long.
    """
    found: list[SettingsChange] = []
    for step in steps:
        path = Path(os.path.realpath(step.path))
        before, copy = text_of(path), text_of(_copy_of(path))
        try:
            change = (_taken_back if remove else _set_up)(step, path, before, copy)
            _require_text(change.after)
        except ValueError as error:
            raise ValueError(f"{path} can't be changed safely and was left as it is: {error}") from error
        if change.after != change.before:
            found.append(change)
    return found


def remarks(steps: Iterable[SetupStep]) -> list[str]:
    """Return what the user should know about what stays in the steps' files. Raises as `changes`."""
    found = [(step.path, step.remark(text_of(step.path) or "")) for step in steps]
    return [f"In {path}, {said}." for path, said in found if said]


def setup_state(steps: Iterable[SetupStep]) -> SetupState:
    """Return which of the steps exist in their files, if not all do."""
    has_ours, is_read = False, True
    for step in steps:
        text = ""
        try:
            text = text_of(step.path) or ""
            if step.is_partial(text):
                return SetupState.BROKEN
            has_ours = has_ours or (step.undo(text) != text and not step.is_foreign_entry(text))
        except (OSError, ValueError):
            is_read, has_ours = False, has_ours or NAME in text
    if not has_ours:
        return SetupState.NOTHING
    return SetupState.SOME if is_read else SetupState.BROKEN


def text_of(path: Path) -> str | None:
    """Return the file's content; None: there is none. Raises OSError, and ValueError that names it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)  # a pipe may never have a writer
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ValueError(f"{path} is not a regular file and was left as it is")
    with open(fd, "rb") as file:  # noqa: PTH123 - of a descriptor, which pathlib can't open
        content = file.read(_LONGEST + 1)
    if len(content) > _LONGEST:
        raise ValueError(f"{path} is larger than {_LONGEST >> 20} MiB, the most that is read, and was left as it is")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not in UTF-8 (byte {error.start}), and was left as it is") from error


def write(change: SettingsChange, below: Path) -> None:
    """Replace the file atomically, keep its mode, and create or delete the copy next to it. Raises OSError.

    With a deleted file, empty folders above it are deleted, as far as they are `below` that one. Raises FileExistsError
    if the file has changed since the change was planned.
    """
    if text_of(change.path) != change.before:
        raise FileExistsError(f"{change.path} was changed meanwhile; nothing was written to it")
    if change.is_kept and change.before is not None:
        _put(_copy_of(change.path), change.before, like=change.path)
    if change.after is None:
        change.path.unlink()
        _without_empty(change.path.parent, below.resolve())
        return
    change.path.parent.mkdir(parents=True, exist_ok=True)
    _put(change.path, change.after, like=change.path, is_program=change.is_program)
    if change.is_restored:
        _copy_of(change.path).unlink()


def _set_up(step: SetupStep, path: Path, before: str | None, copy: str | None) -> SettingsChange:
    """Return the change that adds our entries to a file. The first copy is the one that holds the original."""
    is_kept = (
        before is not None and copy is None and (step.is_foreign_entry(before) or not _is_of_our_making(step, before))
    )
    after = step.apply(before or "")
    return SettingsChange(
        path=path, before=before, after=after or None, what=step.what, is_kept=is_kept, is_program=step.is_program
    )


def _taken_back(step: SetupStep, path: Path, before: str | None, copy: str | None) -> SettingsChange:
    """Return the change that removes our entries from a file.

    Our entries can be cut out of any text, but not always so that every space and comma is as before. The copy holds
    the original: if cutting our entries out of the file gives the same text as cutting them out of the copy after a new
    setup, then no one has changed anything else since, and the copy is restored. So the user also gets back an entry of
    our name that was not ours, if our server took its place. One that runs something else now stays.
    """
    left = step.undo(before or "")
    if before is None or left == before:
        return SettingsChange(path=path, before=before, after=before)
    try:
        is_foreign_entry = copy is not None and step.is_foreign_entry(copy)
        if copy is not None and step.undo(copy) == copy and left in _cut_out_again(step, copy):
            is_given_back = is_foreign_entry and not step.is_foreign_entry(left)
            return SettingsChange(path=path, before=before, after=copy, is_restored=True, is_given_back=is_given_back)
        # The file: before us, it had no content.
        is_ours = copy is None or (not is_foreign_entry and _is_ours_alone(step, copy))
    except ValueError:  # whatever has the copy's name
        is_ours = False
    # What a user gave the server's entry goes with it, and may exist nowhere else: perhaps they wrote the entry before
    # us.
    is_kept = copy is None and step.has_extra_settings(before)
    return SettingsChange(
        path=path, before=before, after=None if is_ours and _is_empty(left) else left, is_kept=is_kept
    )


def _cut_out_again(step: SetupStep, text: str) -> list[str]:
    """Return what a new setup of a text, with our server or without, and its removal leave of it."""
    return [each.undo(each.apply(text)) for each in (step, step.hooks_alone) if each is not None]


def _require_text(text: str | None) -> None:
    """Raise ValueError for a text that names a path that is not UTF-8: no settings file can."""
    try:
        (text or "").encode()
    except UnicodeEncodeError as error:
        raise ValueError("it would have to name a path that is not UTF-8") from error


def _is_of_our_making(step: SetupStep, text: str) -> bool:
    """Return whether the text needs no copy: it only has what we wrote, perhaps in an earlier version."""
    return _is_ours_alone(step, text) and (step.is_certain or step.apply(text) == step.apply(""))


def _is_ours_alone(step: SetupStep, text: str) -> bool:
    left = step.undo(text)
    return left != text and _is_empty(left)


def _is_empty(text: str) -> bool:
    return "".join(text.split()) in {"{}", ""}


def _copy_of(path: Path) -> Path:
    return path.with_name(path.name + BACKUP)


def _without_empty(folder: Path, below: Path) -> None:
    """Remove the folder if it is empty, and then those above it that are."""
    while below in folder.parents:
        try:
            folder.rmdir()
        except OSError:
            return  # it is not empty
        folder = folder.parent


def _put(path: Path, text: str, *, like: Path, is_program: bool = False) -> None:
    staged = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    mode = like.stat().st_mode & 0o777 if like.exists() else None
    # A new file gets the mode that the user's umask leaves.
    new = 0o755 if is_program else 0o644
    fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, new if mode is None else mode)
    try:
        if os.geteuid() == 0:
            owner = (like if mode is not None else path.parent).stat()
            with suppress(OSError):  # a container may have no such user
                os.fchown(fd, owner.st_uid, owner.st_gid)
        with open(fd, "wb") as file:  # noqa: PTH123 - of a descriptor, which pathlib can't open
            file.write(text.encode("utf-8"))
            file.flush()
            if mode is not None:
                os.fchmod(fd, mode)
            os.fsync(fd)
        staged.replace(path)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
