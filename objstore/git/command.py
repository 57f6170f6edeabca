"""Run the user's git to read objects, so that nothing in a repository makes it run another program.

Only commands that read objects, or the entries of the index, are run: they don't look at the files, so no filter, file
monitor or hook of the repository's configuration takes part. A merge is computed from copies outside the repository.
Where git is missing, or refuses a repository of another user, the answer is None, and all else works without.
"""

import os
from typing import Final

from objstore.git.repository import Repository

__all__ = ["run_git"]

_SECONDS: Final = 30.0
"""How long one command may take; listing the tree of a very large repository takes a few."""

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
    program = _program()
    if program is None:
        return None
    # Imported here, because git is asked only when HEAD moved.
    import subprocess

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    environment |= {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        ended = subprocess.run(  # noqa: S603 - the user's git; no shell
            [program, *_OPTIONS, *arguments],
            cwd=repository.work_tree,
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


def _program() -> str | None:
    """Return the path of git. Relative folders of PATH are skipped: they may hold files under review."""
    for folder in os.get_exec_path():
        path = os.path.join(folder, "git")
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
