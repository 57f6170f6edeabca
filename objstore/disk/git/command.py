"""Run the user's git to read objects, so that nothing in a repository makes it run another program.

Only commands that read objects, or the entries of the index, are run: they don't look at the files, so no filter, file
monitor or hook of the repository's configuration takes part. A merge is computed from copies outside the repository.
Where git is missing, or refuses a repository of another user, the answer is None, and all else works without. The same
holds if a file that the configuration includes is none that ends, such as a FIFO: git would wait for it.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from objstore.disk.git.repository import Repository, find_repository

__all__ = ["ask_git", "run_git"]

_SECONDS: Final = 30.0
"""How long one command may take; listing the tree of a very large repository takes a few."""

_MOST_INCLUDED: Final = 100
_MOST_CONFIG: Final = 1 << 20
"""Configuration files, and bytes of each, that are checked for what they include."""

_OPTIONS: Final = (
    "--no-optional-locks",
    "--literal-pathspecs",
    "--no-replace-objects",
    "-c", "core.fsmonitor=false",
    "-c", f"core.hooksPath={os.devnull}",
    "-c", "protocol.allow=never",
)  # fmt: skip

_KEPT: Final = frozenset({"GIT_CEILING_DIRECTORIES", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})
"""Variables of git that say whose settings apply. Others, as in a hook of git's, would name another repository."""


def run_git(repository: Repository, *arguments: str, given: bytes = b"") -> bytes | None:
    """Return what git prints for `arguments`; None if it is missing, fails or takes too long.

    `given`: its standard input.
    """
    return _answer(repository, repository.work_tree, arguments, given)


def ask_git(folder: str, *arguments: str) -> bytes | None:
    """Return what git prints in a folder of a repository, an absolute path; None as for `run_git`.

    For commands that look at no file: they list the index, or say where the repository keeps something.
    """
    repository = find_repository(folder)
    return None if repository is None else _answer(repository, folder, arguments, b"")


def _answer(repository: Repository, folder: str, arguments: tuple[str, ...], given: bytes) -> bytes | None:
    program = _program()
    if program is None or _would_wait(repository):
        return None
    # Imported here, because git is asked only when HEAD moved.
    import subprocess

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    environment |= {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        ended = subprocess.run(  # noqa: S603 - the user's git; no shell
            [program, *_OPTIONS, *arguments],
            cwd=folder,
            env=environment,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return ended.stdout if ended.returncode == 0 else None


def _would_wait(repository: Repository) -> bool:
    """Return whether a configuration file of the repository, or one that it includes, is a FIFO or a device."""
    waiting = [
        os.path.join(folder, name)
        for folder in dict.fromkeys((repository.common_dir, repository.git_dir))
        for name in ("config", "config.worktree")
    ]
    found: set[str] = set()
    while waiting and len(found) < _MOST_INCLUDED:
        path = waiting.pop()
        found.add(path)
        with suppress(OSError, ValueError):
            mode = os.stat(path).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                return True
            waiting += [each for each in _included(path) if each not in found]
    return bool(waiting)


def _included(path: str) -> Iterator[str]:
    """Yield every path that a configuration file may include: the values of all its settings named `path`."""
    with open(path, "rb") as file:
        text = os.fsdecode(file.read(_MOST_CONFIG))
    for value in re.findall(r"(?im)\bpath\s*=[ \t]*(.*)$", text.replace("\\\n", "")):
        for spelled in (value, re.sub(r"[#;].*", "", value)):  # a mark in quotes begins no comment
            plain = re.sub(r"\\(.)|\"", r"\1", spelled).strip()
            yield os.path.normpath(os.path.join(os.path.dirname(path), os.path.expanduser(plain)))


def _program() -> str | None:
    """Return the path of git. Relative folders of PATH are skipped: they may hold files under review."""
    for folder in os.get_exec_path():
        path = os.path.join(folder, "git")
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
