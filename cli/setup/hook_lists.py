"""Insert our hook into a client's lists of hooks and remove it, wherever it is, and leave all other hooks alone.

A list holds hooks, or groups of hooks with a common matcher. A user may put hooks into our group, and ours into a group
of theirs: only the single hook is ours. We find it by the command that it runs.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from cli.setup.jsonc_edit import Key, appended, discarded, loaded, with_members
from objstore import FAILED

__all__ = ["hook_command", "is_ours", "with_hook", "without_hooks"]

_ELSE: Final = " || "
"""What follows it is run by the client's shell if `cas` fails or is missing."""

_HOOKS: Final = "hooks"
_MATCHER: Final = "matcher"
_PROGRAM: Final = "cas"

IsOurs = Callable[[object], bool]


def hook_command(program: str, client: str, *, blocks: bool = False) -> str:
    """Return the command line of a hook: it leaves a mark if `cas` fails, for `cas status` and the next stop.

    `blocks`: Copilot's own program may run it, which blocks a tool if the command fails or is missing. Other clients
    show that it failed, and go on.
    """
    name = "".join(char for char in PurePath(client).stem if char.isalnum() or char in "-_.")
    mark = f"sh -c {shlex.quote(FAILED.replace('CLIENT', name) + ('' if blocks else '; exit 1'))}"
    return f"{shlex.join([program, 'hook', client])}{_ELSE}{mark}{f'{_ELSE}exit 0' if blocks else ''}"


def is_ours(client: str, program: str) -> IsOurs:
    """Return a predicate for our hooks: they run `cas hook CLIENT`, by that name or from any folder.

    Other programs have a command `hook` too, with the clients' names. `program`: how `cas` is run now.
    """

    def check(hook: object) -> bool:
        command = hook.get("command") if isinstance(hook, dict) else None
        if not isinstance(command, str):
            return False
        try:
            words = shlex.split(command.partition(_ELSE)[0])
        except ValueError:  # an unclosed quote
            return False
        return words[1:] == ["hook", client] and (words[0] == program or PurePath(words[0]).name == _PROGRAM)

    return check


def with_hook(text: str, event: str, entry: Mapping[str, object], ours: IsOurs) -> str:
    """Return the text with our entry in the list of an event: one hook, alone or in a group. Raises JsonInvalid.

    A hook of ours that is already in the right place is only updated, and keeps what a user added to it.
    """
    path: list[Key] = [_HOOKS, event]
    listed = _listed(text, event)
    existing = list(_places(listed, ours))
    if len(existing) == 1:
        ((at, inside),) = existing
        if bool(inside) == (_HOOKS in entry) and listed[at].get(_MATCHER) == entry.get(_MATCHER):
            return with_members(text, [*path, at, *inside], _hook_of(entry))
    return appended(_without(text, event, ours), path, entry)


def without_hooks(text: str, ours: IsOurs) -> str:
    """Return the text without our hooks, for any event, and without containers that become empty.

    Raises JsonInvalid.
    """
    said = loaded(text)
    hooks = said.get(_HOOKS) if isinstance(said, dict) else None
    for event in hooks if isinstance(hooks, dict) else ():
        text = _without(text, event, ours)
    return text


def _hook_of(entry: Mapping[str, object]) -> Mapping[str, object]:
    inner = entry.get(_HOOKS)
    return inner[0] if isinstance(inner, list) else entry


def _listed(text: str, event: str) -> list[Any]:
    """Return the list of an event; an empty one if there is none, or something else."""
    held = loaded(text)
    for key in (_HOOKS, event):
        held = held.get(key) if isinstance(held, dict) else None
    return held if isinstance(held, list) else []


def _places(listed: list[Any], ours: IsOurs) -> Iterator[tuple[int, tuple[Key, ...]]]:
    """Yield the index of each entry that has hooks of ours, and the path to each in it; none: the entry is the hook."""
    for at, entry in enumerate(listed):
        inner = entry.get(_HOOKS) if isinstance(entry, dict) else None
        if isinstance(inner, list):
            yield from ((at, (_HOOKS, inside)) for inside, hook in enumerate(inner) if ours(hook))
        elif ours(entry):
            yield at, ()


def _without(text: str, event: str, ours: IsOurs) -> str:
    def is_all_ours(entry: Any) -> bool:  # noqa: ANN401 - whatever a settings file holds
        inner = entry.get(_HOOKS) if isinstance(entry, dict) else None
        if isinstance(inner, list):
            return bool(inner) and all(ours(hook) for hook in inner)
        return ours(entry)

    text = discarded(text, [_HOOKS, event], is_all_ours)
    for at in {at for at, _ in _places(_listed(text, event), ours)}:
        text = discarded(text, [_HOOKS, event, at, _HOOKS], ours)
    return text
