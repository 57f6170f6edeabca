"""Tell which names mean another store: `desk/12:2` is hunk 2 of edit 12 of the store `desk`, `desk/` all of it."""

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from objstore import Member, Remote, Workspace

__all__ = ["Name", "Number", "NumberName", "member_named", "refusal", "store_named", "taken_out"]

# Patterns are compiled where they are used: every command loads this module, and most name nothing with a slash.
_PREFIX: Final = r"(?s)(?P<member>[A-Za-z][\w-]*(?:/[A-Za-z][\w-]*)?)/(?P<rest>.*)"
_MOST: Final = 2**63 - 1
"""The largest number that a record holds."""

_SEVERAL: Final = "Name what is in one store, not in several at once."
_NUMBERED: Final = r"[0-9]{1,18}(:[0-9]{1,9}|\.\.[0-9]{1,18}|\^)?|"

Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


class Name(click.types.StringParamType):
    """What an option or argument is that names something recorded: an edit, a hunk, a turn, a session or a file."""

    def __init__(self, completer: Completer) -> None:
        """Offer the names that `completer` finds."""
        self._completer: Final = completer

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        """Return the names that begin with a word."""
        return self._completer(ctx, param, incomplete)


class _Whole(click.types.IntParamType):
    """A whole number."""

    name = "number"  # its name in help and in error messages


class Number(click.IntRange):
    """A whole number within bounds."""

    name = _Whole.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 -- click's signature
        """Return the number. Raises click.BadParameter."""
        found = _Whole().convert(value, param, ctx)
        if self.min is not None and found < self.min:
            self.fail(f"{found} is too small: the least is {self.min}.", param, ctx)
        if self.max is not None and found > self.max:
            self.fail(f"{found} is too large: the most is {self.max}.", param, ctx)
        return found

    def _describe_range(self) -> str:
        """Return the bounds as help shows them; none that only the store's format sets."""
        return f"{self.min} to {self.max}" if self.max is not None and self.max < _MOST else ""


class NumberName(Number):
    """The same as `Name`, where a number names it."""

    def __init__(self, least: int, most: int, completer: Completer) -> None:
        """Take numbers from `least` to `most`, and offer those that `completer` finds."""
        super().__init__(least, most)
        self._completer: Final = completer

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 -- click's signature
        """Return the number, or the word unchanged if it may name one in another store: `taken_out` converts it."""
        return value if _parts(value) is not None else self.number(value, param, ctx)

    def number(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 -- a word or a number
        """Return the number. Raises click.BadParameter."""
        return super().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        """Return the numbers that begin with a word."""
        return self._completer(ctx, param, incomplete)


def taken_out(ctx: click.Context, find: "Callable[[], Workspace]") -> "tuple[Remote, Member] | None":
    """Return the other store that names on a command line begin with, and take it out of them.

    None: they mean this one. A name without a store is one in that store if it is the value of another option: `cas
    log desk/ --turn 3`. `find` opens the workspace, and is called only if a name may begin with a store. Raises
    click.UsageError if names mean several stores, or nothing in one, and what `find` raises.
    """
    given: dict[click.Parameter, tuple[Any, ...]] = {}
    for param in ctx.command.params:
        value = ctx.params.get(param.name or "")
        if isinstance(param.type, Name | NumberName) and value is not None:
            given[param] = value if isinstance(value, tuple) else (value,)
    if not any(_parts(word) is not None for words in given.values() for word in words):
        return None
    with find() as workspace:
        split = {param: [_split(workspace, word) for word in words] for param, words in given.items()}
    others = [each for parts in split.values() for each in parts if each is not None]
    for param, parts in split.items():
        named = [each for each in parts if each is not None]
        is_whole = isinstance(param, click.Argument) and any(given[param])
        if others and len(named) < len(parts) and (named or is_whole):
            raise click.UsageError(_SEVERAL, ctx)
        rests = [word if each is None else each[2] for word, each in zip(given[param], parts, strict=True)]
        ctx.params[param.name or ""] = _value(ctx, param, rests, is_another=bool(named))
    if len({member.lane for _, member, _ in others}) > 1:
        raise click.UsageError(_SEVERAL, ctx)
    return others[0][:2] if others else None


def store_named(workspace: "Workspace", spelling: str) -> "tuple[Remote, Member]":
    """Return the other store that `desk/` or `desk` names. Raises NoSuchName."""
    from objstore import NoSuchName

    found = workspace.remotes.member(spelling.rstrip("/"))
    if found is None:
        raise NoSuchName(spelling, "store that was pulled")
    return found


def refusal(ctx: click.Context, member: "Member") -> click.UsageError:
    """Return the refusal of a command that only the store with the files can do."""
    return click.UsageError(
        f"`{ctx.command_path}` takes nothing of another store: the files of {member.name} are elsewhere. "
        f"Run it there, or in a copy that `cas clone` makes. A file here is named `./{member.name}/...`.",
        ctx,
    )


def _value(ctx: click.Context, param: click.Parameter, rests: list[Any], *, is_another: bool) -> Any:  # noqa: ANN401 -- of any option
    """Return the value of a parameter with some names. `is_another`: those in another store."""
    if param.nargs != 1:
        return tuple(word for word in rests if word != "")  # a store alone names nothing in it
    if is_another and "" in rests and (isinstance(param, click.Option) or param.required):
        raise click.BadParameter("it names a store, and nothing in it.", ctx, param)
    number = param.type.number if isinstance(param.type, NumberName) else None
    converted = tuple(rests if number is None else (number(word, param, ctx) for word in rests))
    return converted if param.multiple else converted[0]


def _split(workspace: "Workspace", word: object) -> "tuple[Remote, Member, str] | None":
    return member_named(workspace, word) if isinstance(word, str) else None


def _parts(word: object) -> re.Match[str] | None:
    """Return the parts of a word that may begin with the name of a store (None: it can't)."""
    return re.fullmatch(_PREFIX, word) if isinstance(word, str) and "/" in word else None


def member_named(workspace: "Workspace", word: str) -> "tuple[Remote, Member, str] | None":
    """Return the other store that a name begins with, and the name in it; None if it means this one.

    A number after the name of a store is an edit's there; anything else is only if no file here begins so. `./desk/12`
    is a file.
    """
    found = _parts(word)
    if found is None or not workspace.has_remotes:
        return None
    spelled, rest = found["member"], found["rest"]
    member = workspace.remotes.member(spelled)
    if member is None and "/" in spelled:
        spelled, _, inner = spelled.partition("/")
        member, rest = workspace.remotes.member(spelled), f"{inner}/{rest}"
    if member is None:
        return None
    if not re.fullmatch(_NUMBERED, rest) and os.path.lexists(spelled):
        return None
    return *member, rest
