"""The global options of every command (where to work, colours), and how commands and options are declared."""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from cli.app.member_names import Number, refusal, taken_out
from cli.screen.progress import Progress
from cli.screen.terminal import Screen, screen_for
from objstore import value

if TYPE_CHECKING:
    from objstore import Member, Remote, Surface, Workspace

__all__ = [
    "COLOR_CHOICES",
    "Command",
    "CommandGroup",
    "Invocation",
    "Number",
    "absolute",
    "agent_option",
    "command",
    "command_group",
    "first_sentence",
    "global_options",
    "imported_command",
    "json_option",
    "recorded_text",
    "reviewer",
]

Function = TypeVar("Function", bound=Callable[..., object])

_SURFACE: Final = "CAS_SURFACE"
"""Variable by which an editor says that a person decides through it: its value is `editor`."""

META: Final = "cli.app.invocation"
OTHER: Final = "cli.app.invocation.other"

NARROWING: Final = frozenset({"ID", "NAME", "PATH", "TIME"})
"""Metavariables of options that select edits or their owner: an empty value can't be meant there."""


COLOR_CHOICES: Final = ("auto", "always", "never")
"""The values of `--color`."""


@value
class Invocation:
    """The values of the options that every command takes, before its name or after it."""

    place: str = ""  # value of -C, relative to where the user was; the process has already changed to it
    color: str = "auto"  # auto, always, never
    debug: bool = False
    other: "tuple[Remote, Member] | None" = None  # the store that names are of, if not this one: `desk/12`

    @classmethod
    def of(cls, context: click.Context) -> "Invocation":
        """Return the options given in `context` and the contexts around it."""
        given: Mapping[str, object] = context.meta.get(META, {})
        color, place = given.get("color", "auto"), given.get("place", "")
        return cls(
            place=place if isinstance(place, str) else "",
            color=color if isinstance(color, str) else "auto",
            debug=bool(given.get("debug", False)),
            other=context.meta.get(OTHER),
        )

    @classmethod
    def current(cls) -> "Invocation":
        """Return the options of the command that is running."""
        return cls.of(click.get_current_context())

    def screen(self) -> Screen:
        """Return how to write to standard output."""
        return screen_for(self.color)

    def workspace(self) -> "Workspace":
        """Open the workspace, or the mirror of the store that names are of. Raises NotAWorkspace."""
        if self.other is None:
            return self.own_workspace()
        from objstore import Workspace

        with self.own_workspace() as own:
            mirror = own.remotes.mirror(*self.other)
        return Workspace.open(mirror)

    def own_workspace(self) -> "Workspace":
        """Open the workspace at or above `-C DIR`, else CAS_WORKSPACE, else the current folder.

        Raises NotAWorkspace.
        """
        from objstore import Workspace

        with Progress({}) as progress:
            workspace = Workspace.find(self.start(), progress=progress.report)
        workspace.decide_through(_surface())
        return workspace

    def reviewed_workspace(self) -> "Workspace":
        """Open the workspace as `workspace` does, and first record what git did to its files since the last look.

        If that can't be recorded now, files that git changed are shown as changed outside. Raises NotAWorkspace.
        """
        from objstore import CasError

        workspace = self.workspace()
        if self.other is None:
            with suppress(CasError, OSError):
                workspace.note_git()
        return workspace

    def is_set_by_environment(self) -> bool:
        """Return whether an environment variable names the workspace."""
        return not self.place and bool(os.environ.get("CAS_WORKSPACE"))

    @property
    def program(self) -> str:
        """Return how a command that a message tells the user to type begins, to be about this workspace."""
        from cli.screen.quoting import typed

        return f"cas -C {typed(self.place)}" if self.place else "cas"

    def of_other(self, name: str) -> str:
        """Return a name, with the store before it if it is one in another store."""
        return name if self.other is None else f"{self.other[1].name}/{name}"

    def start(self) -> str:
        """Return the folder at or above which the workspace is searched.

        Raises ClickException if the current folder no longer exists, and NotAWorkspace if the variable names no folder:
        it may be mistyped, and another workspace may be above it.
        """
        # Absolute, so that the message about a missing workspace names the folder.
        start = absolute(os.environ["CAS_WORKSPACE"] if self.is_set_by_environment() else os.curdir)
        if self.is_set_by_environment() and not os.path.isdir(start):  # noqa: PTH112 -- as in `absolute`
            from objstore import NotAWorkspace

            raise NotAWorkspace(start, is_folder=False)
        return start


def _surface() -> "Surface":
    """Return through what the command decides: a terminal, an editor that says so, or else a script."""
    from objstore import Surface

    if os.environ.get(_SURFACE) == Surface.EDITOR:
        return Surface.EDITOR
    # Its output may go through a pager or into a file; what was typed comes from the terminal.
    return Surface.TERMINAL if sys.stdin is not None and sys.stdin.isatty() else Surface.SCRIPT


def absolute(path: str) -> str:
    """Return the absolute form of a path. Raises ClickException if the current folder no longer exists."""
    try:
        return os.path.abspath(path)  # noqa: PTH100 -- pathlib costs 4 ms of start-up
    except FileNotFoundError:
        raise click.ClickException(
            "The current folder no longer exists. Change to another one, or pass -C DIR."
        ) from None


def global_options() -> list[click.Parameter]:
    """Return the options that every command takes."""
    return [
        click.Option(
            ["-C", "place"],
            metavar="DIR",
            type=click.Path(exists=True, file_okay=False),
            multiple=True,  # so that a second value is detected
            is_eager=True,
            callback=_enter,
            expose_value=False,
            help="Work as if started in DIR.",
        ),
        click.Option(
            ["--color"],
            type=click.Choice(COLOR_CHOICES),
            callback=_remember,
            expose_value=False,
            help="Colour: on a terminal (auto), always or never. Honours NO_COLOR.",
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            callback=_remember,
            expose_value=False,
            help="Show the traceback of an error.",
        ),
    ]


def _enter(context: click.Context, option: click.Parameter, places: tuple[str, ...]) -> None:
    if len(places) > 1:
        raise _second_value(context, option, len(places))
    for place in places:
        # Options and arguments that follow are relative to that folder.
        os.chdir(place)
        given = context.meta.setdefault(META, {})
        given["place"] = os.path.join(given.get("place", ""), place)  # noqa: PTH118 -- as in `absolute`


def _remember(context: click.Context, option: click.Parameter, value: object) -> None:
    # The option may come before the command or after it; the last one wins.
    if value and option.name is not None:
        context.meta.setdefault(META, {})[option.name] = value


def _second_value(context: click.Context, option: click.Parameter, times: int) -> click.UsageError:
    return click.UsageError(f"{option.get_error_hint(context)} takes one value, not {times}.", context)


def recorded_text(context: click.Context, option: click.Parameter, said: str) -> str:
    """Return a text that becomes part of a record. Raises click.BadParameter if a record can't hold it."""
    try:
        said.encode()
    except UnicodeEncodeError:
        raise click.BadParameter(f"{said!r} is not UTF-8.", context, option) from None
    if said:
        from objstore import MAX_TEXT

        if len(said) > MAX_TEXT:
            reason = f"It has {len(said)} characters; a record holds at most {MAX_TEXT}."
            raise click.BadParameter(reason, context, option)
    return said


class Command(click.Command):
    """A command of `cas`, with the global options."""

    def __init__(self, *arguments: Any, takes_others: bool = False, **settings: Any) -> None:  # noqa: ANN401 -- click's
        """Make a command. `takes_others`: names may be of other stores, and then it is about the mirror of one."""
        super().__init__(*arguments, **settings)
        self.takes_others: Final = takes_others
        self.params.extend(global_options())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and refuse a second value of an option and an empty name.

        Of two values only the last would count. An empty name is that of an unset shell variable: it would count as not
        given, or as the current folder. Both would make the command act on more or less than the user meant.
        """
        typed = list(args)
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return rest
        for param, times in Counter(self.make_parser(ctx).parse_args(typed)[2]).items():
            is_single = isinstance(param, click.Option) and not param.is_flag and not param.multiple
            if is_single and param.expose_value and times > 1:
                raise _second_value(ctx, param, times)
        for param in self.params:
            given = ctx.params.get(param.name or "")
            if (
                (given == "" or (isinstance(given, tuple) and "" in given))
                # A word of a command to run may be empty.
                and (isinstance(param, click.Argument) or param.metavar in NARROWING)
                and param.type is not click.UNPROCESSED
                and ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
            ):
                raise click.BadParameter("it is empty.", ctx, param)
        other = taken_out(ctx, Invocation.of(ctx).own_workspace)
        if other is not None and not self.takes_others:
            raise refusal(ctx, other[1])
        ctx.meta[OTHER] = other
        return rest

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 -- click's signature
        """Run the command; an error about a name in another store shows it with the store."""
        other = Invocation.of(ctx).other
        if other is None:
            return super().invoke(ctx)
        from objstore import NoSuchName

        try:
            return super().invoke(ctx)
        except NoSuchName as error:
            raise NoSuchName(Invocation.of(ctx).of_other(error.spelling), error.kind) from error


def command(
    name: str, cls: type[Command] = Command, *, takes_others: bool = False
) -> Callable[[Callable[..., None]], Command]:
    """Return a decorator that makes a function the command `name`. `takes_others`: as of `Command`."""
    return click.command(name, cls=cls, takes_others=takes_others)


def first_sentence(command: click.Command) -> str:
    """Return the first sentence of a command's help."""
    said = " ".join((command.help or "").split("\n\n")[0].split())
    said = re.sub(r" \(12(?::2)?\)", "", said)
    return re.split(r"(?<!\.\.)\.(?: |$)|: ", said)[0] + "."


class CommandGroup(click.Group):
    """A command of `cas` that has subcommands; it takes the global options, and so do they."""

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each with the first sentence of its help."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, first_sentence(command)) for name, command in found if command is not None]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def __init__(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401 -- click's signature, passed on
        super().__init__(*arguments, **settings)
        self.params.extend(global_options())


def imported_command(target: str) -> Command | CommandGroup:
    """Import the command that `module:name` names: commands that don't run cost no start-up time."""
    from importlib import import_module

    module, _, attribute = target.partition(":")
    found = getattr(import_module(module), attribute)
    if not isinstance(found, Command | CommandGroup):
        raise TypeError(f"{target} is no command")
    return found


def command_group(name: str, *, otherwise: str) -> Callable[[Callable[..., None]], CommandGroup]:
    """Return a decorator that makes a function the command `name`; `otherwise` is its default subcommand."""

    class Group(CommandGroup):
        def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            super().format_help_text(ctx, formatter)
            formatter.write_paragraph()
            with formatter.indentation():
                said = f"`{ctx.command_path}` alone, or with options only, is `{ctx.command_path} {otherwise}`."
                formatter.write_text(said)

        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            # The options of the default subcommand don't need its name either: `cas config --json`.
            only_options = not args or args[0].startswith("-")
            if only_options and not ctx.resilient_parsing and not set(args) & {*self.commands, *ctx.help_option_names}:
                args = [otherwise, *args]
            return super().parse_args(ctx, args)

        def resolve_command(
            self, ctx: click.Context, args: list[str]
        ) -> tuple[str | None, click.Command | None, list[str]]:
            try:
                return super().resolve_command(ctx, args)
            except click.UsageError as error:
                known = ", ".join(self.commands)
                raise click.UsageError(
                    f"`{ctx.command_path}` has no command {args[0]!r}; its commands are {known}.", ctx
                ) from error

    return click.group(name, cls=Group)


def json_option(function: Function) -> Function:
    """Give a command the option --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def agent_option(function: Function) -> Function:
    """Give a command the option --agent, for edits that are an agent's."""
    says = "Record the edits as an agent's, pending review."
    return click.option("--agent", callback=recorded_text, default="", metavar="NAME", help=says)(function)


def reviewer() -> str:
    """Return the name of the reviewer for records."""
    from objstore import user_name

    return user_name()
