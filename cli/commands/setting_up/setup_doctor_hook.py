"""The commands `cas setup`, `cas doctor` and `cas hook`: connect agent programs, and receive their events."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Invocation, command, json_option
from cli.screen.terminal import Screen, shown_name, visible, write

if TYPE_CHECKING:
    from cli.setup.doctor import Finding
    from cli.setup.plans import Programs, Scope
    from cli.setup.settings_files import SettingsChange

__all__ = ["doctor", "hook", "setup"]

NEXT: Final = "Restart {name} to begin recording. `{program} doctor {client}` checks that it works."
BESIDES: Final = {"codex": "Codex runs new hooks only after you trust them: type /hooks in Codex."}
"""What the user has to do in addition, because no settings file does it."""

EACH: Final = "Only workspaces are recorded: run `cas init` in each folder."
"""Printed when a client is set up for all projects: hooks make no folder a workspace by themselves."""

NAMES: Final = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "opencode": "opencode",
}
"""What each client calls itself."""

CLIENTS: Final = tuple(NAMES)


@command("setup")
@click.argument("client", type=click.Choice(CLIENTS))
@click.option("--project", is_flag=True, help="Set up this project (the default).")
@click.option("--user", is_flag=True, help="Set up all your projects.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--remove", is_flag=True, help="Remove what `cas setup` added.")
def setup(*, client: str, project: bool, user: bool, dry_run: bool, remove: bool) -> None:
    """Connect CLIENT: install recording hooks and the MCP server.

    Only our own entries in its settings are changed; a copy of each original file is kept next to it. For a project,
    this also makes the folder a workspace and saves a baseline of its files, so that every later change is recorded.
    """
    from cli.setup.disabled_hooks import disabled_hooks
    from cli.setup.plans import HOMES, plan
    from cli.setup.settings_files import changes, remarks
    from objstore import Workspace

    invocation = Invocation.current()
    if project and user:
        raise click.UsageError("Pass --project or --user, not both.")
    where = _scope(invocation, is_users=user)
    moved = where.folder_from_variable(client)
    if moved is not None:
        place = f"{HOMES[client][0]} says where your settings of {client} are: {shown_name(str(moved))}"
        write([invocation.screen().line(place)])
    steps = plan(client, where, _programs())
    try:
        wanted = changes(steps, remove=remove)
        remarked = [] if remove else remarks(steps)
        switch = None if remove else disabled_hooks(client, where.project, where.home)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    new_workspace = None if dry_run or remove else where.project
    if new_workspace is not None:
        Workspace.init(new_workspace).close()  # if this fails, nothing else is changed either
    if not dry_run:
        _carry_out(wanted, where.staying(client), invocation.screen(), remove=remove)
    write(_changes_text(wanted, invocation.screen(), remove=remove, dry_run=dry_run))
    warned = [*remarked, *([] if switch is None else [f"{switch}."])]
    write([invocation.screen().line(visible(said)) for said in warned])
    if new_workspace is not None:
        write(_baseline_text(new_workspace, invocation.screen()))
    if dry_run or remove:
        return
    then = NEXT.format(program=invocation.program, client=client, name=NAMES[client])
    said = [then, *filter(None, [BESIDES.get(client)])] if wanted else []
    if where.project is None:
        said.append(EACH)
    write([invocation.screen().line(line) for line in said])


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
                write(_changes_text(changes[:done], screen, remove=remove, dry_run=False))
                said += ". The files above were changed before that; run the same command again to continue"
            raise click.ClickException(f"{said}.") from error


def _changes_text(changes: "list[SettingsChange]", screen: Screen, *, remove: bool, dry_run: bool) -> Iterator[bytes]:
    from cli.setup.settings_files import BACKUP
    from objstore import unified_diff

    if not changes:
        yield screen.line("Nothing to change.")
    for change in changes:
        name = str(change.path)
        verb = "Would change" if dry_run else "Changed"
        yield screen.line(f"{verb} {shown_name(name)}:")
        yield unified_diff(
            None if change.before is None else change.before.encode(),
            None if change.after is None else change.after.encode(),
            path_before=name,
            path_after=name,
        )
        if change.is_given_back:
            yield screen.line("Restored the entry named editledger that was there before `cas setup`.")
        if remove and change.is_kept:
            kept = "would be kept" if dry_run else "is kept"
            yield screen.line(
                f"It has settings that `cas setup` did not write; a copy {kept} as {shown_name(name + BACKUP)}."
            )


def _baseline_text(project: Path, screen: Screen) -> Iterator[bytes]:
    from cli.render.status import counted
    from cli.screen.progress import LOOKING, showing_progress
    from objstore import CallInfo, Origin, Workspace

    with Workspace.open(project) as workspace, showing_progress(workspace, LOOKING):
        found = workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
        files = 0 if found.baseline is None else len(workspace.snapshots.files(found.baseline.number))
    if found.baseline is not None:
        yield screen.line(f"Saved a baseline of {counted(files, 'file')}.")
    for place in found.skipped:
        yield screen.line(f"Skipped: {shown_name(place.path)}: {place.reason}")


@command("doctor")
@click.argument("clients", nargs=-1, type=click.Choice(CLIENTS), metavar="[CLIENT]...")
@click.option("--forget", is_flag=True, help="Empty the log of hook errors.")
@json_option
def doctor(*, clients: tuple[str, ...], forget: bool, as_json: bool) -> None:
    """Check that the setup works: programs start, settings are valid, hooks answer, and there were no recent errors."""
    from cli.setup.doctor import examine

    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        root = Path(workspace.root)
    if forget:
        from cli.hooks.handler import HOOK_LOG

        (root / HOOK_LOG).unlink(missing_ok=True)
    found = list(examine(root, Path.home(), _programs(), clients or None))
    if as_json:
        from cli.render.json_store import json_line

        write([json_line({"check": one.check, "ok": one.ok, "said": one.said}) for one in found])
    else:
        write(_diagnosis(found, invocation.screen()))
    if not all(one.ok for one in found):
        click.get_current_context().exit(1)


def _diagnosis(found: "list[Finding]", screen: Screen) -> Iterator[bytes]:
    for one in found:
        yield screen.line(
            f"{'ok  ' if one.ok else 'BAD '} {one.check}" + (f": {shown_name(one.said)}" if one.said else "")
        )


@command("hook")
@click.argument("client", type=click.Choice(CLIENTS), metavar="CLIENT")
@click.option("--resident", is_flag=True, hidden=True, expose_value=False)  # of versions that had a resident helper
def hook(*, client: str) -> None:
    """Record what a tool of CLIENT does, from an event on standard input. `cas setup` makes clients call this.

    It never fails, and prints only what the client's agent should read: which of its edits were rejected, and why.
    Errors go to `.cas/hook.log`, which `cas status` mentions and `cas doctor` shows.
    """
    from cli.hooks.handler import main

    main([client], sys.stdin.buffer.read())


def _scope(invocation: Invocation, *, is_users: bool) -> "Scope":
    from cli.setup.plans import Scope
    from objstore import NotAWorkspace, Workspace

    if is_users:
        return Scope(project=None, home=Path.home())
    start = invocation.start()
    try:
        with Workspace.find(start) as workspace:
            return Scope(project=Path(workspace.root), home=Path.home())
    except NotAWorkspace:
        return Scope(project=Path(start), home=Path.home())


def _programs() -> "Programs":
    """Return the commands that clients should call: by name if it leads to this installation, else by path."""
    from cli.setup.plans import Programs

    return Programs(cas=_program("cas"), server=_program("editledger"))


def _program(name: str) -> str:
    own = Path(sys.executable).with_name(name)
    # A client that is started elsewhere doesn't have the activated environment of this shell.
    active = os.environ.get("VIRTUAL_ENV")
    places = [place for place in os.get_exec_path() if not active or not Path(place).is_relative_to(active)]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is not None and (not own.exists() or os.path.realpath(found) == os.path.realpath(own)):
        return name
    return str(own)
