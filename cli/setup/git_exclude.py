"""Keep settings files of one user out of git: name them in the repository's `info/exclude`, which git doesn't share."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from cli.setup.plans import LOCAL_SETTINGS, Scope, SetupStep
from cli.setup.settings_files import text_of
from objstore import ask_git

__all__ = ["exclude_step", "local_instead", "shared_in_git"]

_SPECIAL: Final = re.compile(r"([\\*?\[ ])")


def is_in_repository(project: Path) -> bool:
    """Return whether the project is in a git repository."""
    return any((folder / ".git").exists() for folder in (project, *project.parents))


def local_instead(client: str, project: Path | None) -> tuple[str, str] | None:
    """Return the client's settings file that git shares, and that of one user alone, if the choice is still open."""
    if client not in LOCAL_SETTINGS or project is None or not is_in_repository(project):
        return None
    shared, own = LOCAL_SETTINGS[client]
    is_set_up = False
    with suppress(OSError, ValueError):  # the setup itself says what is wrong with the file
        is_set_up = "cas hook" in (text_of(project / shared) or "")
    return None if is_set_up else (shared, own)


def shared_in_git(where: Scope, paths: Iterable[Path], program: str, client: str) -> list[str]:
    """Return what to say of the files that git shares: one sentence, or none."""
    project = where.project
    if project is None or where.is_local or not is_in_repository(project):
        return []
    inside = [path.relative_to(project).as_posix() for path in paths if path.is_relative_to(project)]
    part = f"{' and '.join(inside)} {'is' if len(inside) == 1 else 'are'} part of the project"
    alone = f"`{program} setup {client} --remove`, then `{program} setup {client} --local`"
    return [f"{part}: git shares what you commit. For you alone: {alone}."] if inside else []


def exclude_step(project: Path, paths: Iterable[Path]) -> SetupStep | None:
    """Return the step that makes git ignore `paths` in the project, with the copies next to them.

    None: the project is in no git repository. Raises ValueError if git tracks one of them, so that ignoring it would
    have no effect, and if git can't be asked.
    """
    inside = sorted(path.relative_to(project).as_posix() for path in paths if path.is_relative_to(project))
    if not is_in_repository(project):
        return None
    tracked = _git(project, "ls-files", "-z", "--", *inside).split("\0")[0]
    if tracked:
        raise ValueError(
            f"git tracks {project / tracked}, so it would be shared: use --project, or `git rm --cached` it"
        )
    prefix = _git(project, "rev-parse", "--show-prefix").strip("\n")
    exclude = project / _git(project, "rev-parse", "--git-path", "info/exclude").strip("\n")
    lines = ["/" + _SPECIAL.sub(r"\\\1", f"{prefix}{name}") + "*" for name in inside]

    def undo(text: str) -> str:
        return "".join(line for line in text.splitlines(keepends=True) if line.rstrip("\r\n") not in lines)

    def apply(text: str) -> str:
        there = text.splitlines()
        missing = [line for line in lines if line not in there]
        end = "\n" if text and not text.endswith("\n") and missing else ""
        return text + end + "".join(f"{line}\n" for line in missing)

    return SetupStep(
        path=exclude, what="the names of these files, which git ignores now", apply=apply, undo=undo, is_certain=True
    )


def _git(project: Path, *words: str) -> str:
    found = ask_git(str(project), *words)
    if found is None:
        raise ValueError(
            f"{project} is in a git repository, and git doesn't say what it shares: `git -C {project} status` shows why"
        )
    return os.fsdecode(found)
