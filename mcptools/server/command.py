"""Parse the command line of `editledger`, and serve the directories or export their history."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from mcptools.catalog.tool_list import DEFAULT_SET, SETS, chosen
from mcptools.catalog.version import version
from mcptools.edit.display import one_line
from mcptools.files.workspaces import Directories
from mcptools.model.limits import ServerLimits
from mcptools.server.background_gc import BackgroundGc
from mcptools.transport.loopback_socket import NotLocal, listening

__all__ = ["main"]

NumberT = TypeVar("NumberT", int, float)

_MOST: Final = (1 << 63) - 1
"""The largest size of a file or disk, in bytes."""

_OF_A_SERVER: Final = {
    "http": "--http",
    "token_file": "--token-file",
    "no_token": "--no-token",
    "tools": "--tools",
    "output_schemas": "--output-schemas",
    "read_only": "--read-only",
    "require_read": "--require-read",
    "approve": "--approve",
    "acp_events": "--acp-events",
}
"""The options that only apply to a server."""

_ASKING: Final = ["Undo"]
"""The tools that ask the person first if no others are named."""

_REQUIRED: Final = "required"
"""The word in --approve that refuses these tools where the client can't ask."""

_TOKEN = "EDITLEDGER_TOKEN"  # noqa: S105 - the name of the environment variable


class _Parser(argparse.ArgumentParser):
    """A parser that prints one line for an invalid command line, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\nTry `{self.prog} --help`.\n")


def main(argv: Sequence[str] | None = None) -> None:
    """Serve the directories on the command line until standard input ends, or, over HTTP, until interrupted."""
    parser = _Parser(
        prog="editledger",
        description="Serve file tools for AI agents over the Model Context Protocol, on standard input and output. "
        "Every change is recorded, for a person to review with `cas`.",
    )
    parser.add_argument(
        "directories",
        nargs="*",
        metavar="DIR",
        help="a directory that the tools may work in; without any, those that the client names as its roots",
    )
    parser.add_argument(
        "--export-acp",
        choices=["contract", "protocol"],
        help="serve nothing: print the recorded calls as notifications of the Agent Client Protocol, one a line; "
        "`contract`: in the shape of multi_edit_text_file's contract, `protocol`: in the shape of the protocol itself",
    )
    parser.add_argument(
        "--acp-events",
        choices=["contract", "protocol"],
        help="send the client such a notification when a call of it begins and when it has ended; shapes as above",
    )
    parser.add_argument("--version", action="version", version=version())
    _add_choices(parser)
    _add_http(parser)
    _add_limits(parser)
    arguments = parser.parse_args(argv)
    try:
        directories = Directories(arguments.directories)
    except NotADirectoryError as error:
        parser.error(f"not a directory: {error}")
    except FileNotFoundError:
        parser.error("the current folder no longer exists: give absolute paths, or start in another folder")
    missing = ", ".join(map(one_line, directories.missing))
    if missing:
        done = "served" if arguments.export_acp is None else "exported"
        sys.stderr.write(f"{parser.prog}: not a directory, so it is not {done}: {missing}\n")
    try:
        if arguments.export_acp is None:
            _serve(parser, arguments, directories)
        else:
            _refuse_what_is_of_a_server(parser, arguments)
            _export(parser, directories, arguments.export_acp)
            if missing:
                sys.exit(1)  # a reader may need to know that this is not everything
    except KeyboardInterrupt:
        sys.exit(130)  # as shells report an interrupted program
    finally:
        directories.close()


def _serve(parser: argparse.ArgumentParser, arguments: argparse.Namespace, directories: Directories) -> None:
    try:
        offered = chosen(arguments.tools, read_only=arguments.read_only)
        asking = [name for name in arguments.approve if name != _REQUIRED]
        approve = chosen(asking if asking or not arguments.approve else _ASKING)
    except KeyError as error:
        parser.error(f"neither a tool nor a set of tools: {error.args[0]} (sets: {', '.join(SETS)})")
    if not offered:
        parser.error("--read-only leaves no tool: each tool of --tools changes something")
    listener = None
    if arguments.http is not None:
        try:
            listener = listening(arguments.http)
        except NotLocal as error:
            parser.error(str(error))
    token = _token(parser, arguments)
    if listener is None and sys.stdin is not None and sys.stdin.isatty():
        # A person who starts it by hand would otherwise see nothing.
        sys.stderr.write(
            "editledger: serving on standard input and output, for an agent program that starts this command. "
            "Run `cas setup` to connect one. Press Ctrl-C to stop.\n"
        )
    if listener is None:
        _need(parser, "input", sys.stdin)
        _need(parser, "output", sys.stdout)
    # Before the SDK does: its handler imports modules while it logs an error, which fails if no file can be opened.
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    from mcptools.catalog.acp import Shape
    from mcptools.server.mcp_server import EditServer

    limits = _limits(arguments)
    server = EditServer(
        directories,
        limits,
        offered=offered,
        require_read=arguments.require_read,
        approve=approve,
        needs_approval=_REQUIRED in arguments.approve,
        output_schemas=arguments.output_schemas,
        is_open_to_all=listener is not None and token is None,
        acp_events=None if arguments.acp_events is None else Shape[arguments.acp_events.upper()],
    )
    with nullcontext() if arguments.read_only else BackgroundGc(directories):
        if listener is None:
            server.run("stdio")
            return
        from mcptools.server.http_server import serve

        with listener:
            serve(server, listener, token, limits)


def _need(parser: argparse.ArgumentParser, name: str, stream: object) -> None:
    """Exit if a standard stream is closed (None)."""
    if stream is None:
        parser.exit(1, f"{parser.prog}: standard {name} is closed\n")


def _refuse_what_is_of_a_server(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    for name, option in _OF_A_SERVER.items():
        if getattr(arguments, name) != parser.get_default(name):
            parser.error(f"{option} can't be combined with --export-acp, which starts no server")
    if not arguments.directories:
        parser.error("--export-acp needs the directories whose history to print")


def _export(parser: argparse.ArgumentParser, directories: Directories, shape: str) -> None:
    """Print the history. An error ends it with one line, after what was already printed."""
    _need(parser, "output", sys.stdout)
    from mcptools.catalog.acp import Shape
    from mcptools.edit.display import one_line
    from mcptools.feeds.acp_export import exported_lines
    from objstore import CasError

    try:
        recorded, refusals = directories.recorded()
        if refusals:
            raise refusals[0]
        try:
            for workspace in recorded:
                for line in exported_lines(workspace, Shape[shape.upper()]):
                    sys.stdout.write(f"{line}\n")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()  # the reader has closed the pipe
    except (CasError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        named = f": {error.filename}" if isinstance(error, OSError) and error.filename else ""
        _discard_stdout()
        parser.exit(1, f"{parser.prog}: {one_line(f'{reason}{named}')}\n")


def _discard_stdout() -> None:
    """Redirect standard output to nowhere, so that flushing its buffer at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _add_choices(parser: argparse.ArgumentParser) -> None:
    """Add the options for the choice of tools, and for what they require."""
    parser.add_argument(
        "--tools",
        type=_some_names,
        default=[DEFAULT_SET],
        metavar="NAMES",
        help=f"offer these tools or sets of tools, separated by commas; the sets are {', '.join(SETS)} "
        f"(default: {DEFAULT_SET})",
    )
    parser.add_argument(
        "--output-schemas",
        action="store_true",
        help="list the schema of each tool's structured answer, for clients that make use of it",
    )
    parser.add_argument("--read-only", action="store_true", help="offer only tools that change nothing")
    parser.add_argument(
        "--require-read",
        action="store_true",
        help="refuse every change of a file whose current version was not read in this session",
    )
    parser.add_argument(
        "--approve",
        type=_names,
        default=_ASKING,
        metavar="NAMES",
        help="tools that ask the person first, where the client can ask; empty for none (default: Undo); with the word "
        f"{_REQUIRED} among them, they are refused where it can't",
    )


def _add_http(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("over HTTP")
    group.add_argument(
        "--http", metavar="HOST:PORT", help="serve over streamable HTTP at this loopback address; port 0: any free one"
    )
    group.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"the bearer token that clients have to send (default: ${_TOKEN}, or else a new one, which is printed)",
    )
    group.add_argument("--no-token", action="store_true", help="serve every program on this machine")


def _token(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> str | None:
    """Return the token that clients have to send, or None if they need none."""
    if arguments.http is None:
        if arguments.token_file is not None or arguments.no_token:
            parser.error("--token-file and --no-token need --http")
        return None
    if arguments.no_token:
        return None
    if arguments.token_file is not None:
        place = str(arguments.token_file)
        try:
            token: str = arguments.token_file.read_text("utf-8-sig").strip()
        except (OSError, UnicodeDecodeError) as error:
            parser.error(f"can't read the token: {error}")
    else:
        place, token = _TOKEN, os.environ.get(_TOKEN, "").strip()
    if not token.isprintable():
        parser.error(f"no client can send the token in {place}: it has to be one line of visible characters")
    if not token:
        if arguments.token_file is not None:
            parser.error(f"no token in {place}")
        import secrets

        token = secrets.token_urlsafe(32)
        sys.stderr.write(f"editledger: clients have to send this header:\nAuthorization: Bearer {token}\n")
    return token


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def _some_names(given: str) -> list[str]:
    """Return at least one name: an empty variable in a script must not mean all tools."""
    names = _names(given)
    if not names:
        raise argparse.ArgumentTypeError("no tool is named; leave the option out for the default set")
    return names


def _add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options for limits, with their defaults."""
    usual = ServerLimits()
    limits = parser.add_argument_group("limits")
    size, space, share, seconds = _between(1, _MOST), _between(0, _MOST), _between(0.0, 1.0), _between(0.001, 86_400.0)
    count, whole = _between(1, 1_000_000), _between(1, 86_400)
    for option, name, kind, words in (
        ("--max-file-size", "max_file_bytes", size, "largest size in bytes of a file that is read or edited"),
        ("--min-free-space", "min_free_space", space, "bytes that must be free where a patch or a backup is written"),
        ("--binary-check-bytes", "binary_check_bytes", size, "bytes that are checked to see whether a file is binary"),
        ("--max-seconds", "max_seconds", seconds, "longest duration of a search in seconds"),
        (
            "--non-text-threshold",
            "non_text_threshold",
            share,
            "share of those bytes that may be non-text in a text file",
        ),
        ("--max-connections", "max_connections", count, "concurrent HTTP connections"),
        ("--request-seconds", "request_seconds", whole, "seconds in which an HTTP request must arrive completely"),
        ("--idle-seconds", "idle_seconds", whole, "seconds that a connection stays open between two requests"),
    ):
        value = getattr(usual, name)
        limits.add_argument(
            option, dest=name, metavar="N", type=kind, default=value, help=f"{words} (default: {value})"
        )


def _between(least: NumberT, most: NumberT) -> Callable[[str], NumberT]:
    """Return a parser of numbers within bounds: of whole ones if the bounds are whole."""

    def number(text: str) -> NumberT:
        value = type(least)(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"not a number from {least} to {most}: {text}")
        return value

    return number


def _limits(arguments: argparse.Namespace) -> ServerLimits:
    return ServerLimits(
        max_file_bytes=arguments.max_file_bytes,
        min_free_space=arguments.min_free_space,
        binary_check_bytes=arguments.binary_check_bytes,
        max_seconds=arguments.max_seconds,
        non_text_threshold=arguments.non_text_threshold,
        max_connections=arguments.max_connections,
        request_seconds=arguments.request_seconds,
        idle_seconds=arguments.idle_seconds,
    )
