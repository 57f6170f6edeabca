"""Tell which names mean another store: `desk/12:2` is hunk 2 of edit 12 of the store `desk`, `desk/` all of it."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from cli.app.invocation import Invocation
    from objstore import Member, Remote, Workspace

__all__ = ["member_named", "opened"]

_PREFIX: Final = re.compile(r"(?P<member>[A-Za-z][\w-]*(?:/[A-Za-z][\w-]*)?)/(?P<rest>.*)", re.DOTALL)
_NUMBERED: Final = re.compile(r"[0-9]{1,18}(:[0-9]{1,9}|\.\.[0-9]{1,18})?|")


def member_named(workspace: "Workspace", names: Sequence[str]) -> "tuple[Remote, Member, tuple[str, ...]] | None":
    """Return the other store that names begin with, and the names in it; None if they mean this one.

    A number after the name of a store is an edit's there; anything else is only if no file here begins so. `./desk/12`
    is a file. Raises click.UsageError if names mean several stores.
    """
    split = [_split(workspace, name) for name in names]
    found = [each for each in split if each is not None]
    if not found:
        return None
    remote, member, _ = found[0]
    if len(found) < len(split) or any(each[1].lane != member.lane for each in found):
        raise click.UsageError("Name what is in one store, not in several at once.")
    return remote, member, tuple(rest for _, _, rest in found if rest)


@contextmanager
def opened(invocation: "Invocation", names: tuple[str, ...]) -> "Iterator[tuple[Workspace, tuple[str, ...]]]":
    """Open the workspace, or the mirror of the store that names begin with; yield it with the names in it.

    Raises NotAWorkspace, and click.UsageError if names mean several stores.
    """
    from objstore import Workspace

    with invocation.reviewed_workspace() as workspace:
        found = member_named(workspace, names)
        if found is None:
            yield workspace, names
            return
        remote, member, inner = found
        with Workspace.open(workspace.remotes.mirror(remote, member)) as mirror:
            yield mirror, inner


def _split(workspace: "Workspace", name: str) -> "tuple[Remote, Member, str] | None":
    found = _PREFIX.fullmatch(name)
    if found is None or not workspace.remotes.all():
        return None
    spelled, rest = found["member"], found["rest"]
    member = workspace.remotes.member(spelled)
    if member is None and "/" in spelled:
        spelled, _, inner = spelled.partition("/")
        member, rest = workspace.remotes.member(spelled), f"{inner}/{rest}"
    if member is None:
        return None
    if not _NUMBERED.fullmatch(rest) and os.path.lexists(spelled):
        return None
    return *member, rest
