"""Find the values that a shell offers for an option or an argument, and define the options of several commands.

Names come from the store of the workspace that the command line is about. An agent or a bundle may have given a name
any content: `cli.app.completion` quotes it for the shell.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar, cast

import click

from cli.app.invocation import Command, Invocation
from cli.app.member_names import Name, NumberName, member_named
from cli.selection.turn_selection import TurnSelection

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from objstore import SessionView, TurnView, Workspace

__all__ = [
    "conversation_option",
    "file_option",
    "files",
    "folders",
    "moments",
    "named",
    "names",
    "setting_values",
    "settings",
    "stores",
    "takes_turns",
    "takes_unseen",
]

Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
Callback = Callable[[click.Context, click.Parameter, str], str]
FunctionT = TypeVar("FunctionT", bound=Callable[..., object])

_LIMIT: Final = 200
_PATHS_READ: Final = 5_000
"""Number of recorded paths that are read to find the files and folders one level below the typed text."""

_MOST_TURNS: Final = 2**63 - 1
"""The highest number that a turn can have."""

_TOOLS_IN: Final = 256
"""Number of newest edits whose tools and agents are offered."""

_LONGEST_ABOUT: Final = 60
"""Characters of a prompt that are offered with a turn."""

_MOMENTS: Final = {"today": "since midnight", "yesterday": "the day before", "1h": "an hour ago", "1d": "", "1w": ""}
"""Examples of times, and what they mean if that is not obvious."""


def names(*kinds: str) -> Completer:
    """Return a completer for names in the store, and in other stores where the command takes these.

    Kinds: edit, conversation, path, snapshot, pin, tool, agent, turn, session.
    """

    def offered(context: click.Context, parameter: click.Parameter, word: str) -> "list[CompletionItem]":
        from objstore import Workspace

        found: list[tuple[str, str]] = []
        with Workspace.find(Invocation.of(context).start()) as workspace:
            for kind in kinds:
                of_kind = _found(workspace, kind, word)
                # After `--`, click completes an argument that begins like an option. Before it, only a path can be
                # typed in another form.
                if isinstance(parameter, click.Argument) and not word.startswith("-"):
                    of_kind = _unlike_options(of_kind, is_path=kind == "path")
                found += islice(of_kind, _LIMIT)
        is_name = isinstance(parameter.type, Name | NumberName)
        is_of_others = is_name and isinstance(context.command, Command) and context.command.takes_others
        return [*(_of_others(context, kinds, word) if is_of_others else []), *_items(found)]

    return offered


def named(*kinds: str) -> Name:
    """Return the type of a name in the store, or, if the command takes that, in another one (`desk/12`).

    `kinds`: as of `names`.
    """
    return Name(names(*kinds))


def conversation_option(says: str, callback: Callback | None = None) -> Callable[[FunctionT], FunctionT]:
    """Return the option `--conversation` or `--conv` with its help; `callback` checks its value ("": not given)."""
    return click.option(
        "--conversation",
        "--conv",
        "conversation",
        metavar="ID",
        default="",
        type=named("conversation") if callback is None else None,
        shell_complete=names("conversation"),
        callback=callback,
        help=says,
    )


def file_option(says: str) -> Callable[[FunctionT], FunctionT]:
    """Return the option `--file` with its help; its value is a path ("": not given)."""
    return click.option("--file", metavar="PATH", default="", type=named("path"), help=says)


def takes_unseen(function: FunctionT) -> FunctionT:
    """Give a command the option --unseen."""
    says = "Only changes that no review has shown yet, or that are different since."
    return click.option("--unseen", is_flag=True, help=says)(function)


def takes_turns(says: str) -> Callable[[FunctionT], FunctionT]:
    """Return the options `--turn`, `--session` and `--agent`, combined into one argument `by`.

    `says`: the beginning of their help, such as `Only edits`.
    """

    def decorated(function: FunctionT) -> FunctionT:
        @click.option(
            "--turn",
            "turns",
            metavar="N",
            type=NumberName(1, _MOST_TURNS, names("turn")),
            multiple=True,
            help=f"{says} of turn N (`cas log --turns` lists them); may be repeated.",
        )
        @click.option(
            "--session",
            metavar="N|NAME",
            default="",
            type=named("session"),
            help=f"{says} of this session (`cas log --sessions` lists them).",
        )
        @click.option(
            "--agent",
            metavar="NAME",
            default="",
            shell_complete=names("agent"),
            help=f"{says} of this subagent, or of agents of this kind (`cas show` names them).",
        )
        @wraps(function)
        def with_selection(
            *arguments: object, turns: tuple[int, ...], session: str, agent: str, **others: object
        ) -> object:
            return function(*arguments, by=TurnSelection(turns=turns, session=session, agent=agent), **others)

        return cast("FunctionT", with_selection)

    return decorated


def settings(_context: click.Context, _parameter: click.Parameter, word: str) -> "list[CompletionItem]":
    """Return the names of settings."""
    from objstore import Configuration

    known = (given.setting for given in Configuration().all())
    return _items((setting.name, setting.meaning) for setting in known if setting.name.startswith(word))


def setting_values(context: click.Context, _parameter: click.Parameter, word: str) -> "list[CompletionItem]":
    """Return values for the setting that the command line names."""
    from objstore import Configuration

    setting = Configuration().get(context.params["name"]).setting
    limitless = setting.kind.without_limit
    words = (limitless,) if limitless else setting.choices or ("on", "off")
    values = dict.fromkeys(words, "") | {setting.default: "the default"}
    return _items((name, about) for name, about in values.items() if name.startswith(word))


def moments(_context: click.Context, _parameter: click.Parameter, word: str) -> "list[CompletionItem]":
    """Return examples of times."""
    return _items((name, about) for name, about in _MOMENTS.items() if name.startswith(word))


def files(_context: click.Context, _parameter: click.Parameter, word: str) -> "list[CompletionItem]":
    """Let the shell complete files on disk."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(word, type="file")]


def folders(_context: click.Context, _parameter: click.Parameter, word: str) -> "list[CompletionItem]":
    """Let the shell complete folders on disk."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(word, type="dir")]


def stores(context: click.Context, _parameter: click.Parameter, word: str) -> "list[CompletionItem]":
    """Return the other stores that were pulled."""
    return _of_others(context, (), word)


def _items(found: Iterable[tuple[str, str]]) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(name, help=about or None) for name, about in found]


def _of_others(context: click.Context, kinds: tuple[str, ...], word: str) -> "list[CompletionItem]":
    """Return the other stores whose names begin with a word, or the names in the store that it names."""
    from objstore import Workspace

    with Workspace.find(Invocation.of(context).start()) as workspace:
        if not workspace.has_remotes:
            return []
        named = member_named(workspace, word)
        if named is None:
            stores = (member.name for _, state in workspace.remotes.all() for member in state.members.values())
            return _items((f"{store}/", "another store") for store in stores if f"{store}/".startswith(word))
        remote, member, rest = named
        mirror = workspace.remotes.mirror(remote, member)
    start = word.removesuffix(rest)
    with Workspace.open(mirror) as there:
        found = [each for kind in kinds for each in islice(_found(there, kind, rest), _LIMIT)]
    return _items((f"{start}{name}", about) for name, about in found)


def _found(workspace: "Workspace", kind: str, word: str) -> Iterator[tuple[str, str]]:
    from objstore import EditFilter, NameKind

    if kind == "path":
        yield from _paths(workspace, word)
    elif kind == "tool":
        newest = workspace.history.edits(EditFilter(newest_first=True, limit=_TOOLS_IN))
        tools = dict.fromkeys(view.edit.tool for view in newest)
        yield from ((tool, "") for tool in tools if tool and tool.startswith(word))
    elif kind == "agent":
        newest = workspace.history.edits(EditFilter(newest_first=True, limit=_TOOLS_IN))
        agents = dict.fromkeys(name for view in newest for name in view.agents)
        yield from ((name, "") for name in agents if name.startswith(word))
    elif kind in {"turn", "session"}:
        yield from _by_number(workspace, kind, word)
    else:
        yield from workspace.history.names_with_prefix(NameKind(kind), word, _LIMIT)


def _by_number(workspace: "Workspace", kind: str, word: str) -> Iterator[tuple[str, str]]:
    """Yield the turns or sessions whose numbers begin with the typed text, the newest first, with their prompts."""
    rows: list[TurnView | SessionView] = []
    rows += workspace.sessions.turns() if kind == "turn" else workspace.sessions.sessions()
    for row in reversed(rows):
        if str(row.number).startswith(word):
            about = " ".join(filter(None, (row.client, row.prompt.strip().partition("\n")[0])))
            yield str(row.number), about[:_LONGEST_ABOUT]


def _unlike_options(found: Iterable[tuple[str, str]], *, is_path: bool) -> Iterator[tuple[str, str]]:
    """Yield the names that can't be taken for options; a path that looks like one is written as ./PATH."""
    for name, about in found:
        if not name.startswith("-"):
            yield name, about
        elif is_path:
            yield f"./{name}", about


def _paths(workspace: "Workspace", word: str) -> Iterator[tuple[str, str]]:
    """Yield recorded files and folders one level below the typed text, relative to the current folder.

    A folder that contains all matches is entered at once: a shell would put a space after it.
    """
    from objstore import NameKind

    here = os.path.relpath(os.path.realpath(os.curdir), workspace.root)
    if here.startswith(os.pardir):
        here = os.curdir  # from outside, a path begins at the root
    typed = word.rpartition("/")[0] or ("/" if word.startswith("/") else "")
    folder = os.path.normpath(os.path.join(here, typed))  # noqa: PTH118 -- names below the root, which may not exist
    if folder.startswith((os.pardir, "/")):
        folder = os.path.relpath(os.path.realpath(typed), workspace.root)
    if folder.startswith(os.pardir):
        return
    above = "" if folder == os.curdir else f"{folder}/"
    below = workspace.history.names_with_prefix(NameKind.PATH, above + word.rpartition("/")[2], _PATHS_READ)
    rests = [found.name[len(above) :] for found in below]
    entered = os.path.commonpath(map(os.path.dirname, rests)) if rests else ""
    depth = len(entered) + 1 if entered else 0
    start = f"{typed}/" if typed and typed != "/" else typed
    steps = dict.fromkeys(rest[:depth] + "".join(rest[depth:].partition("/")[:2]) for rest in rests)
    yield from ((start + step, "") for step in steps)
