"""Ask git for the position of a repository whose refs are in a reftable: only git reads those.

The list of its tables changes with each ref that moves. So git is asked only once that list has changed.
"""

from typing import Final

from objstore.disk.git.command import run_git
from objstore.disk.git.repository import Position, ReflogEntry, Repository
from objstore.values.fastclass import replace

__all__ = ["asked", "can_read_refs", "reflog"]

_NO_COMMIT: Final = "0" * 40
_FIELDS: Final = 3


def asked(repository: Repository, found: Position, known: Position | None) -> Position:
    """Return the position that was found of a repository, with what only git can read of it, if it can.

    `known`: the position that is remembered of it (None: none is).
    """
    if known is not None and known.tables == found.tables:
        return replace(found, branch=known.branch, commit=known.commit, stash=known.stash, log_size=known.log_size)
    if not can_read_refs(repository):
        return found
    return replace(
        found,
        branch=_said(repository, "symbolic-ref", "--quiet", "HEAD").removeprefix("refs/heads/"),
        commit=_said(repository, "rev-parse", "--verify", "--quiet", "HEAD"),
        stash=_said(repository, "rev-parse", "--verify", "--quiet", "refs/stash"),
        log_size=len(reflog(repository)),
    )


def can_read_refs(repository: Repository) -> bool:
    """Return whether the git of this machine can read the refs of a repository."""
    return run_git(repository, "rev-parse", "--show-ref-format") is not None


def reflog(repository: Repository) -> tuple[ReflogEntry, ...]:
    """Return the log of HEAD, oldest first."""
    form = "--format=%H%x00%gd%x00%gs"
    options = ("-c", "log.showSignature=false")  # it would run a program that the repository's configuration names
    printed = run_git(repository, *options, "log", "--walk-reflogs", "--no-patch", "--date=unix", form, "HEAD", "--")
    entries: list[ReflogEntry] = []
    before = _NO_COMMIT
    for line in reversed((printed or b"").decode("utf-8", "replace").splitlines()):
        fields = line.split("\0")
        time = fields[1].partition("@{")[2].rstrip("}") if len(fields) == _FIELDS else ""
        if time.isascii() and time.isdigit():
            entries.append(ReflogEntry(old=before, new=fields[0], time=int(time), message=fields[2]))
            before = fields[0]
    return tuple(entries)


# ---- inside


def _said(repository: Repository, *arguments: str) -> str:
    return (run_git(repository, *arguments) or b"").decode("utf-8", "replace").rstrip("\n")
