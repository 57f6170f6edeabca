"""The command `cas setup`."""

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Invocation, command
from cli.hooks.clients.described import DESCRIBED, described
from cli.screen.terminal import Screen, can_ask, shown_name, visible, write

if TYPE_CHECKING:
    from cli.setup.plans import Scope, SetupStep
    from cli.setup.settings_files import SettingsChange

from cli.commands.client_names import CLIENTS, NAMES, programs_at

__all__ = ["setup"]

NEXT: Final = "Restart {name} to begin recording. `{program} doctor {client}` checks that it works."

BY_HAND: Final = "Add the MCP server to {name} by hand: its command is `editledger`, with the project's folder."
"""Printed for clients whose lists of servers are not known."""

BY_HAND_OVER_HTTP: Final = "Add the MCP server to {name} by hand, at an address of its own: {address}."

HOW_TO_ADMIT: Final = "Set EDITLEDGER_TOKEN to one token where you start {name} and where you start the server."

EACH: Final = "Only workspaces are recorded: run `cas init` in each folder."
"""Printed when a client is set up for all projects: hooks make no folder a workspace by themselves."""

_TRACES: Final[Mapping[str, tuple[Sequence[str], Sequence[str]]]] = {
    "claude-code": (["claude"], [".claude"]),
    "codex": (["codex"], [".codex"]),
    "gemini": (["gemini"], [".gemini"]),
    "cursor": (["cursor", "cursor-agent"], [".cursor"]),
    "vscode": (["code", "copilot"], [".vscode", ".copilot"]),
    "opencode": (["opencode"], [".config/opencode", ".opencode"]),
}
"""The commands of each client, and the folders that it makes in the home. Those described have commands alone."""


def _server_address(_context: click.Context, _option: click.Parameter, given: str) -> str:
    """Return the address of a server over HTTP without a slash at its end, or "" if none was given."""
    from cli.setup.server_entry import is_address

    address = given.removesuffix("/")
    if address and not is_address(address):
        raise click.BadParameter(
            "it is not the address of a server of this machine, as `editledger --http` prints it: "
            "http://127.0.0.1:8765/mcp"
        )
    return address


@command("setup")
@click.argument("clients", nargs=-1, type=click.Choice(CLIENTS), metavar="[CLIENT]...")
@click.option(
    "--client",
    "files",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    help="Also set up the client that this TOML file describes.",
)
@click.option("--project", is_flag=True, help="Set up this project (the default).")
@click.option("--local", is_flag=True, help="Set up this project for you alone: git shares nothing of it.")
@click.option("--user", is_flag=True, help="Set up all your projects.")
@click.option("--server", is_flag=True, help="Also add the MCP server, with tools that record every edit.")
@click.option(
    "--http",
    "address",
    metavar="URL",
    default="",
    callback=_server_address,
    help="Also add the MCP server that `editledger --http` serves at URL, with an address of the client's own.",
)
@click.option("--show", is_flag=True, help="Print the entries for the settings files, and change nothing.")
@click.option("-n", "--dry-run", is_flag=True, help="Print how the settings files would change, and change nothing.")
@click.option("--remove", is_flag=True, help="Remove what `cas setup` added, the server too.")
def setup(  # noqa: PLR0913 -- each is an option of the command
    *,
    clients: tuple[str, ...],
    files: tuple[str, ...],
    project: bool,
    local: bool,
    user: bool,
    server: bool,
    address: str,
    show: bool,
    dry_run: bool,
    remove: bool,
) -> None:
    """Connect agent programs: make each CLIENT call a hook before and after it changes files.

    Clients: claude-code, codex, gemini, cursor, vscode, opencode; from their documentation alone: cline, crush, goose,
    qwen-code. Without a name, it finds those that you have, and offers to set them up; with --remove, those that are
    set up.

    Only our own entries in their settings are changed; a copy of each original file is kept next to it. A project's
    settings, such as .claude/settings.json, are part of the project: git shares them, unless you pass --local. It also
    makes the project's folder a workspace and saves a baseline of its files, so that every later change is recorded.
    """
    from cli.setup.plans import plan

    invocation = Invocation.current()
    named = [name for name, is_given in (("project", project), ("local", local), ("user", user)) if is_given]
    if len(named) > 1:
        raise click.UsageError(f"Pass --{named[0]} or --{named[1]}, not both.")
    if server and address:
        raise click.UsageError("Pass --server or --http, not both.")
    where = _scope(invocation, *named)
    for client in (*clients, *files) or _found(where, remove=remove, asks=not (show or dry_run)):
        if show:
            steps = plan(client, where, programs_at(address), server=server or bool(address))
            write(_entries_text(steps, invocation.screen()))
        else:
            for_whom = where
            if not (named or dry_run or remove) and _is_wanted_alone(client, where):
                for_whom = _scope(invocation, "local")
            _set_up(invocation, client, for_whom, server=server, address=address, dry_run=dry_run, remove=remove)


def _is_wanted_alone(client: str, where: "Scope") -> bool:
    """Ask whether a client that has settings of one user's own in a project is set up in these, as `--local` does."""
    from cli.setup.git_exclude import local_instead

    files = local_instead(client, where.project)
    if files is None or not can_ask():
        return False
    click.echo(f"{files[0]} is part of the project: git shares it with everyone who works on it.", err=True)
    return click.confirm(f"Set {_title(client)} up for you alone, in {files[1]} (--local)?", default=True, err=True)


def _found(where: "Scope", *, remove: bool, asks: bool) -> Sequence[str]:
    """Return the clients that the user has and wants to set up, or whose setup is to be removed."""
    found = _clients_set_up(where) if remove else _installed_clients(where.home)
    verb = "Remove the setup of {}" if remove else "Set {} up"
    if not found:
        none = "is set up there" if remove else "was found"
        raise click.UsageError(f"Name a client: none of {', '.join(CLIENTS)} {none}.")
    names = ", ".join(map(_title, found))
    if not asks:
        return found
    if not can_ask():
        were = "are set up there" if remove else "were found"
        raise click.UsageError(f"Name the clients. These {were}: {' '.join(found)}.")
    whom = "all your projects" if where.project is None else f"{where.project}"
    click.confirm(
        f"Found {names}. {verb.format('it' if len(found) == 1 else 'them')} for {whom}?", abort=True, err=True
    )
    return found


def _clients_set_up(where: "Scope") -> list[str]:
    """Return the clients in whose settings there is something of ours."""
    from cli.setup.plans import WIRED, plan
    from cli.setup.settings_files import SetupState, setup_state

    return [
        client
        for client in (*WIRED, *DESCRIBED)
        if setup_state(plan(client, where, programs_at(), server=True)) is not SetupState.NOTHING
    ]


def _installed_clients(home: Path) -> list[str]:
    """Return the clients of `cas setup` that are there, in its order."""
    found = [name for name in DESCRIBED if any(map(shutil.which, described(name).commands))]
    return [*(client for client in _TRACES if _is_there(client, home)), *found]


def _is_there(client: str, home: Path) -> bool:
    from cli.setup.plans import HOMES

    commands, folders = _TRACES[client]
    named = os.environ.get(HOMES[client][0], "") if client in HOMES else ""
    places = [*(home / folder for folder in folders), *([Path(named)] if named else [])]
    return any(map(shutil.which, commands)) or any(place.is_dir() for place in places)


def _set_up(
    invocation: Invocation,
    client: str,
    where: "Scope",
    *,
    server: bool,
    address: str,
    dry_run: bool,
    remove: bool,
) -> None:
    """Set a client up, or remove that, and say in a few lines what was changed."""
    from cli.setup.disabled_hooks import disabled_hooks
    from cli.setup.git_exclude import exclude_step, shared_in_git
    from cli.setup.plans import HOMES, plan
    from cli.setup.settings_files import changes, remarks
    from cli.setup.trust import missing_trust
    from objstore import Workspace

    if remove and not dry_run:
        _require_person(invocation)
    screen = invocation.screen()
    moved = where.folder_from_variable(client)
    if moved is not None:
        place = f"{HOMES[client][0]} says where your settings of {client} are: {shown_name(str(moved))}"
        write([screen.line(place)])
    programs = programs_at(address)
    steps = plan(client, where, programs, server=server or remove or bool(address))
    try:
        excluded = (
            exclude_step(where.project, [step.path for step in steps]) if where.project and where.is_local else None
        )
        steps = (*steps, *([excluded] if excluded else []))
        wanted = changes(steps, remove=remove)
        remarked = [] if remove else remarks(steps)
        switch = None if remove else disabled_hooks(client, where.project, where.home)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    new_workspace = None if dry_run or remove else where.project
    if new_workspace is not None:
        Workspace.init(new_workspace).close()  # if this fails, nothing else is changed either
    if dry_run:
        write(_changes_text(wanted, screen, remove=remove))
    else:
        _carry_out(wanted, where.staying(client), screen, remove=remove)
        write(_summary(wanted, screen, remove=remove))
    warned = [*remarked, *([] if switch is None else [f"{switch}."])]
    write([screen.line(visible(said)) for said in warned])
    if new_workspace is not None:
        write(_baseline_text(new_workspace, screen))
    if dry_run or remove:
        return
    then = NEXT.format(program=invocation.program, client=_word(client), name=_title(client))
    trust = missing_trust(client, where, where.project)
    said = [
        visible(line) for line in shared_in_git(where, [change.path for change in wanted], invocation.program, client)
    ]
    said += [*([then] if wanted else []), *([] if trust is None else [visible(f"{trust}.")])]
    if (server or address) and client not in NAMES:
        own = f"{address}/{programs.name}" if address.endswith("/mcp") else address
        said.append((BY_HAND_OVER_HTTP if address else BY_HAND).format(name=_title(client), address=own))
    if address:
        said.append(HOW_TO_ADMIT.format(name=_title(client)))
    if where.project is None:
        said.append(EACH)
    write([screen.line(line) for line in said])


def _require_person(invocation: Invocation) -> None:
    """Refuse inside an agent's shell what only a person may do. Raises AgentDecides."""
    from objstore import NotAWorkspace

    with suppress(NotAWorkspace), invocation.workspace() as workspace:
        workspace.review.require_person()


def _carry_out(changes: "list[SettingsChange]", staying: Path, screen: Screen, *, remove: bool) -> None:
    """Change the files one by one. If one fails, report those before it and raise click.ClickException."""
    from cli.setup.settings_files import write as write_file

    for done, change in enumerate(changes):
        try:
            write_file(change, staying)
        except (OSError, ValueError) as error:
            said = str(error)
            if isinstance(error, OSError) and error.strerror:
                # The error may name our temporary file next to it, or a folder above it.
                said = f"{shown_name(str(change.path))} can't be changed: {error.strerror}"
            if done:
                write(_summary(changes[:done], screen, remove=remove))
                said += ". The files above were changed before that; run the same command again to continue"
            raise click.ClickException(f"{said}.") from error


def _summary(changes: "list[SettingsChange]", screen: Screen, *, remove: bool) -> Iterator[bytes]:
    """Yield a line for each file that was changed, and one for what the user should know of it."""
    if not changes:
        yield screen.line("Nothing to change.")
    for change in changes:
        verb = "Removed" if change.after is None else "Wrote" if change.before is None else "Changed"
        added = f": {change.what}" if change.what and not remove else ""
        yield screen.line(f"{verb} {shown_name(str(change.path))}{added}")
        yield from _notes(change, screen, remove=remove, kept="is kept")


def _notes(change: "SettingsChange", screen: Screen, *, remove: bool, kept: str) -> Iterator[bytes]:
    from cli.setup.settings_files import BACKUP

    if change.is_given_back:
        yield screen.line("Restored the entry named editledger that was there before `cas setup`.")
    if remove and change.is_kept:
        copy = shown_name(f"{change.path}{BACKUP}")
        yield screen.line(f"It has settings that `cas setup` did not write; a copy {kept} as {copy}.")


def _changes_text(changes: "list[SettingsChange]", screen: Screen, *, remove: bool) -> Iterator[bytes]:
    """Yield the changes as diffs."""
    from objstore import unified_diff

    if not changes:
        yield screen.line("Nothing to change.")
    for change in changes:
        name = str(change.path)
        yield screen.line(f"Would change {shown_name(name)}:")
        yield unified_diff(
            None if change.before is None else change.before.encode(),
            None if change.after is None else change.after.encode(),
            path_before=name,
            path_after=name,
        )
        yield from _notes(change, screen, remove=remove, kept="would be kept")


def _entries_text(steps: Sequence["SetupStep"], screen: Screen) -> Iterator[bytes]:
    """Yield what `cas setup` writes into each file, as the content of a file that holds nothing else."""
    for step in steps:
        content = step.apply("")
        if content:
            yield screen.line(f"{shown_name(str(step.path))}:")
            yield content.encode(errors="surrogateescape")


def _baseline_text(project: Path, screen: Screen) -> Iterator[bytes]:
    from cli.screen.progress import LOOKING, showing_progress
    from objstore import CallInfo, Origin, Workspace, counted

    with Workspace.open(project) as workspace, showing_progress(workspace, LOOKING):
        found = workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
        files = 0 if found.baseline is None else workspace.snapshots.file_count(found.baseline.number)
    if found.baseline is not None:
        yield screen.line(f"Saved a baseline of {counted(files, 'file')}.")
    for place in found.skipped:
        yield screen.line(f"Skipped: {shown_name(place.path)}: {place.reason}")


def _title(client: str) -> str:
    """Return what a client calls itself."""
    if client in NAMES:
        return NAMES[client]
    from cli.hooks.clients.described import described

    return described(client).title


def _word(client: str) -> str:
    """Return a client as a word of a command line."""
    return shlex.quote(client)


def _scope(invocation: Invocation, named: str = "project") -> "Scope":
    """Return the scope that an option of `cas setup` names: project, local or user."""
    from cli.setup.plans import Scope
    from objstore import NotAWorkspace, Workspace

    if named == "user":
        return Scope(project=None, home=Path.home())
    start = invocation.start()
    try:
        with Workspace.find(start) as workspace:
            project = Path(workspace.root)
    except NotAWorkspace:
        project = Path(start)
    return Scope(project=project, home=Path.home(), is_local=named == "local")
