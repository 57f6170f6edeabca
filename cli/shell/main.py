"""Find the command that was named, run it, and turn every ending into an exit status.

| status | meaning |
|---|---|
| 0 | done |
| 1 | refused, or a problem was found: a conflict, an unsettled change from outside, an unknown name, damage |
| 2 | the command line is not valid |
| 10 | no workspace here |
| 11 | another process held the lock |
| 130 | interrupted |
| 141 | whoever read the output went away (128 + SIGPIPE, what a shell reports of any tool) |
"""

import errno
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import click

from cli.app.invocation import COLOR_CHOICES, Invocation, first_sentence, global_options, imported_command
from cli.screen.terminal import OutputFailed, flush, visible

__all__ = [
    "COMMANDS",
    "EXIT_BROKEN_PIPE",
    "EXIT_INTERRUPTED",
    "EXIT_LOCKED",
    "EXIT_NO_WORKSPACE",
    "EXIT_REFUSED",
    "EXIT_USAGE",
    "SECTIONS",
    "cas",
    "main",
]

EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 2
EXIT_NO_WORKSPACE: Final = 10
EXIT_LOCKED: Final = 11
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141

LINE_FEED: Final = "\n"

UNDECODED: Final = r"(?<!\\)((?:\\\\)*)\\udc([89a-f][0-9a-f])"
"""Python's quotation of a byte that is not UTF-8: half of a character that no one has typed."""

COMMANDS: Final = {
    "init": "cli.commands.init:init",
    "status": "cli.commands.status:status",
    "log": "cli.commands.log:log",
    "show": "cli.commands.show:show",
    "diff": "cli.commands.diff:diff",
    "cat": "cli.commands.cat:cat",
    "accept": "cli.commands.accept:accept",
    "reject": "cli.commands.reject:reject",
    "reopen": "cli.commands.reopen:reopen",
    "reset": "cli.commands.reopen:reopen",
    "undo": "cli.commands.undo:undo",
    "redo": "cli.commands.redo:redo",
    "try": "cli.commands.try_:try_",
    "bisect": "cli.commands.bisect:bisect",
    "claim": "cli.commands.claim:claim",
    "rewind": "cli.commands.rewind:rewind",
    "review": "cli.commands.review:review",
    "web": "cli.commands.web:web",
    "amend": "cli.commands.amend:amend",
    "comment": "cli.commands.comment:comment",
    "send": "cli.commands.send:send",
    "blame": "cli.commands.blame:blame",
    "restore": "cli.commands.restore:restore",
    "snapshot": "cli.commands.snapshot:snapshot",
    "record": "cli.commands.record:record",
    "ls": "cli.commands.ls:listing",
    "hash": "cli.commands.hash:hash_file",
    "verify": "cli.commands.verify:verify",
    "records": "cli.commands.records:records",
    "segments": "cli.commands.segments:segments",
    "store": "cli.commands.store:store",
    "stats": "cli.commands.stats:stats",
    "fsck": "cli.commands.fsck:fsck",
    "salvage": "cli.commands.salvage:salvage",
    "export": "cli.commands.export:export",
    "import": "cli.commands.import_:import_",
    "remote": "cli.commands.remote:remote",
    "push": "cli.commands.push:push",
    "pull": "cli.commands.pull:pull",
    "clone": "cli.commands.clone:clone",
    "gc": "cli.commands.gc:gc",
    "purge": "cli.commands.purge:purge",
    "pin": "cli.commands.pin:pin",
    "config": "cli.commands.config:config",
    "completion": "cli.commands.completion:completion",
    "watch": "cli.commands.watch:watch",
    "setup": "cli.commands.setup:setup",
    "doctor": "cli.commands.doctor:doctor",
    "hook": "cli.commands.hook:hook",
    "mcp": "cli.commands.mcp:mcp",
    "demo": "cli.commands.demo:demo",
}
"""The module and name of each command, in the order of help."""


SECTIONS: Final = {
    "Review": [
        "status",
        "diff",
        "review",
        "web",
        "accept",
        "reject",
        "reopen",
        "undo",
        "redo",
        "rewind",
        "try",
        "bisect",
        "claim",
        "amend",
        "comment",
        "send",
    ],
    "History": ["log", "show", "blame", "restore", "snapshot", "record", "export", "import"],
    "Project": ["init", "setup", "doctor", "config", "watch", "demo"],
    "Sharing": ["remote", "push", "pull", "clone"],
    "Store": ["gc", "fsck", "store"],
}
"""The commands that help lists, by heading. The others are called by programs, or have new names."""


class LazyGroup(click.Group):
    """A group that imports a command when it is named: the others cost no start-up time."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Return the names of all commands, in the order of help."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each with the first sentence of its help, under the headings of SECTIONS."""
        for heading, names in SECTIONS.items():
            found = ((name, self.get_command(ctx, name)) for name in names)
            rows = [(name, first_sentence(command)) for name, command in found if command is not None]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named and its arguments; for a mistyped name, raise with a suggestion.

        `help NAME` is another form of `NAME --help`, and `mcpdiff NAME` one of `NAME`.
        """
        if args[0] == "mcpdiff":
            args = args[1:] or ["status"]
            if not ctx.resilient_parsing:
                from cli.screen.quoting import typed

                click.echo(f"mcpdiff is `cas` here: {visible(' '.join(map(typed, ('cas', *args))))}", err=True)
            if args[0] in ctx.help_option_names:
                args = ["help"]
        if args[0] == "help":
            if ctx.resilient_parsing:  # a shell completes the command line: a command's name follows `help`
                return super().resolve_command(ctx, args[1:]) if args[1:] else (None, None, [])
            # Options may come before the command that help is wanted for.
            named = next((word for word in args[1:] if not word.startswith("-") and word not in COLOR_CHOICES), "help")
            if named in {"help", "mcpdiff"}:
                click.echo(ctx.get_help())
                ctx.exit()
            args = [named, "--help"]
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from cli.search.did_you_mean import command_meant

            if args[0].startswith("-") or not (message := command_meant(args[0], COMMANDS)):
                raise
            raise click.UsageError(message, ctx) from error

    def invoke(self, ctx: click.Context) -> object:
        """Run the command that is named; without a name, show the status, or help where there is no workspace."""
        if ctx._protected_args or ctx.args:  # noqa: SLF001 -- click has no other way to ask for a subcommand's name
            return super().invoke(ctx)
        from objstore import NotAWorkspace

        command = self.get_command(ctx, "status")
        if command is None:
            raise click.UsageError("Missing command.", ctx)
        try:
            with command.make_context("status", [], parent=ctx) as status:
                return command.invoke(status)
        except NotAWorkspace:
            click.echo(ctx.get_help())
            return None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's
        """Return the command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        return imported_command(COMMANDS[cmd_name])


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 -- click's signature
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            said = version("editledger")
        except PackageNotFoundError:
            said = "(run from source, not installed)"
        click.echo(f"cas {said}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    params=global_options(),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def cas() -> None:
    """Review the changes that AI agents made to your files: accept, reject or comment on each, and undo it.

    Without a command: the status.
    """


def main(arguments: list[str] | None = None) -> int:
    """Run `cas` with `arguments` (None: those of the process) and return its exit status."""
    if arguments is None and (instruction := os.environ.get("_CAS_COMPLETE")):
        from cli.app.completion import complete

        return complete(cas, instruction)
    context: click.Context | None = None
    given = tuple(sys.argv[1:] if arguments is None else arguments)
    try:
        with cas.make_context("cas", list(given)) as context:
            cas.invoke(context)
        flush()
    except click.exceptions.Exit as ending:
        return _flushed(ending.exit_code)
    except Exception as error:  # noqa: BLE001 -- the outermost layer: every error gets its sentence and its status
        if isinstance(error, click.UsageError) and _is_waited_for(given):
            from cli.hooks.handler import log_fault

            log_fault(os.curdir, list(given), error)
            return 0
        asked = Invocation() if context is None else Invocation.of(context)
        return _ended(error, debug=asked.debug, asked=asked)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


def _is_waited_for(given: Sequence[str]) -> bool:
    """Return whether it is the hook of a client, for which status 2 may mean that its tool must not run."""
    words = iter(given)
    for word in words:
        if word in {"-C", "--color"}:
            next(words, None)
        elif not word.startswith("-"):
            return word == "hook" and not (sys.stdin is not None and sys.stdin.isatty())
    return False


def _flushed(status: int) -> int:
    try:
        flush()
    except OutputFailed as error:
        return _ended(error, debug=False)
    return status


def _ended(error: Exception, *, debug: bool, asked: Invocation | None = None) -> int:
    """Print on stderr what went wrong, after all other output, and return the exit status.

    `asked`: says where the workspace is looked for (None: nowhere).
    """
    if not isinstance(error, OSError | OutputFailed):
        try:
            flush()
        except OutputFailed:
            _let_go_of_stdout()
    # A reader that went away gets no message; stderr may be as full as stdout was.
    with suppress(OSError):
        if debug:
            from traceback import print_exception

            print_exception(error)
        for line in (*_sentences(error), *_suggestion(error, asked)):
            click.echo(line, err=True)
    if isinstance(error, OSError | OutputFailed):
        _let_go_of_stdout()
    return _status(error)


def _status(error: Exception) -> int:
    # Imported here: help and version need nothing of the store.
    from objstore import NotAWorkspace, StoreLocked

    match error:
        case click.UsageError():
            return EXIT_USAGE
        case click.Abort():
            return EXIT_INTERRUPTED
        case NotAWorkspace():
            return EXIT_NO_WORKSPACE
        case StoreLocked():
            return EXIT_LOCKED
        case OutputFailed(errno=errno.EPIPE) | OSError(errno=errno.EPIPE):
            return EXIT_BROKEN_PIPE
        case _:
            return EXIT_REFUSED


def _sentences(error: Exception) -> list[str]:
    from objstore import CasError

    match error:
        case click.exceptions.NoArgsIsHelpError():
            return [error.format_message()]
        case click.NoSuchOption():
            from cli.search.did_you_mean import option_meant

            params = error.ctx.command.get_params(error.ctx) if error.ctx is not None else []
            meant = option_meant(error.option_name, (name for param in params for name in param.opts))
            return [f"cas: {_one_line(f'{error.message} {meant}'.rstrip())}", *_hint(error)]
        case click.UsageError():
            # click lists choices on lines of their own, and those of an argument also instead of its name.
            said = error.format_message().replace("\n\t", " ")
            if isinstance(error, click.MissingParameter):
                said = re.sub(r" '\{[^}]*\}'", "", said)
            return [f"cas: {_one_line(said)}", *_hint(error)]
        case click.ClickException():
            return [f"cas: {_shown(error.format_message(), keep=LINE_FEED)}"]
        case OutputFailed(errno=errno.EPIPE) | OSError(errno=errno.EPIPE) | click.Abort():
            # A user who leaves a question gets the shell's prompt on a new line.
            return [""] if isinstance(error, click.Abort) else []
        case CasError() | OutputFailed():
            from cli.app.error_hints import message_of

            return [f"cas: {_one_line(message_of(error))}"]
        case OSError():
            named = f": {error.filename}" if error.filename is not None else ""
            return [f"cas: {_one_line(f'{error.strerror or error}{named}')}"]
        case _:
            return [f"cas: internal error: {type(error).__name__}: {_one_line(str(error))} (--debug shows where)"]


def _suggestion(error: Exception, asked: Invocation | None) -> list[str]:
    """Return a line on what a mistyped name may mean, how to examine damage, or who has access."""
    from cli.app.error_hints import damage_advice
    from objstore import (
        FileMissing,
        NoSuchName,
        NotAWorkspace,
        PathIsDirectory,
        PathIsSymlink,
        PathNotRegular,
        PathOutside,
        PermissionRefused,
    )

    if isinstance(error, NotAWorkspace) and asked is not None and asked.is_set_by_environment():
        return ["CAS_WORKSPACE names that folder."]
    if isinstance(error, NotAWorkspace):
        from objstore import lost_above

        lost = lost_above(error.start)
        return [] if lost is None else [visible(f"In {lost.root}, {lost}.")]
    if damage := damage_advice(error, "cas" if asked is None else asked.program):
        return [damage]
    if isinstance(error, PathIsSymlink):
        from cli.app.error_hints import symlink_advice

        return [visible(symlink_advice(error))]
    if isinstance(error, PathIsDirectory | PathNotRegular):
        what = "folder" if isinstance(error, PathIsDirectory) else "pipe, socket or device"
        return [visible(f"A {what} is at {error.path}. Move it away and run the command again.")]
    if isinstance(error.__cause__, PermissionRefused):
        error = error.__cause__
    if asked is None or not isinstance(error, NoSuchName | FileMissing | PathOutside | PermissionRefused):
        return []
    sentence = ""
    try:
        if isinstance(error, PermissionRefused):
            from cli.app.error_hints import permission_advice

            sentence = permission_advice(error, asked.start())
        elif isinstance(error, PathOutside):
            from cli.app.error_hints import outside_advice

            sentence = outside_advice(error, asked.start())
        elif asked.other is None:  # else it is about another store, of which names here say nothing
            from cli.search.did_you_mean import name_meant

            sentence = name_meant(error, asked.start(), asked.program)
    except Exception:  # noqa: BLE001 -- it would only have helped, and must not replace the error
        return []
    return [visible(sentence)] if sentence else []


def _hint(error: click.UsageError) -> list[str]:
    return [f"Try `{error.ctx.command_path} --help`."] if error.ctx is not None else []


def _one_line(sentence: str) -> str:
    return _shown(sentence)


def _shown(sentence: str, *, keep: str = "") -> str:
    # A sentence may quote a file's name, and a name may hold anything.
    return re.sub(UNDECODED, r"\1\\x\2", visible(sentence, keep=keep))


def _let_go_of_stdout() -> None:
    # Python flushes stdout once more at its end, and would report that it can't.
    if sys.stdout is not None:
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
