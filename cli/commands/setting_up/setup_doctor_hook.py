"""The commands `cas setup`, `cas doctor` and `cas hook`: agents' programs are told of the recorder, and it of them."""

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

NEXT: Final = "It counts from the client's next start. `{program} doctor {client}` checks that it works."
BESIDES: Final = {"codex": "Codex runs new hooks once you have trusted them: type /hooks in it."}
"""What else a person has to do, which no settings file does."""

EACH: Final = "A folder is recorded once it is a workspace: `cas init` in each."
"""Of what is set up for all that a person does: hooks make no folder a workspace by themselves."""

CLIENTS: Final = ("claude-code", "codex", "gemini", "cursor", "vscode", "opencode")


@command("setup")
@click.argument("client", type=click.Choice(CLIENTS))
@click.option("--project", is_flag=True, help="For this project (the default).")
@click.option("--user", is_flag=True, help="For all that you do with the client.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--remove", is_flag=True, help="Take it back.")
def setup(*, client: str, project: bool, user: bool, dry_run: bool, remove: bool) -> None:
    """Tell CLIENT of the recorder: it starts our server, and says before and after each of its own tools what it does.

    Only what is ours is changed in its settings; a copy of each file as it was before us is kept beside it. For a
    project this also makes the folder a workspace, and keeps what stands in it now, so that every later change can be
    told.
    """
    from cli.setup.disabled_hooks import disabled_hooks
    from cli.setup.plans import HOMES, plan
    from cli.setup.settings_files import changes, remarks
    from objstore import Workspace

    invocation = Invocation.current()
    if project and user:
        raise click.UsageError("Say --project or --user, and not both.")
    where = _scope(invocation, is_users=user)
    told = where.told(client)
    if told is not None:
        place = f"{HOMES[client][0]} says where your settings of {client} are: {shown_name(str(told))}"
        write([invocation.screen().line(place)])
    steps = plan(client, where, _programs())
    try:
        wanted = changes(steps, remove=remove)
        remarked = [] if remove else remarks(steps)
        switch = None if remove else disabled_hooks(client, where.project, where.home)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    begun = None if dry_run or remove else where.project
    if begun is not None:
        Workspace.init(begun).close()  # where none can be, nothing else is changed either
    if not dry_run:
        _carry_out(wanted, where.staying(client), invocation.screen(), remove=remove)
    write(_told(wanted, invocation.screen(), remove=remove, dry_run=dry_run))
    warned = [*remarked, *([] if switch is None else [f"{switch}."])]
    write([invocation.screen().line(visible(said)) for said in warned])
    if begun is not None:
        write(_begun(begun, invocation.screen()))
    if dry_run or remove:
        return
    then = NEXT.format(program=invocation.program, client=client)
    said = [then, *filter(None, [BESIDES.get(client)])] if wanted else []
    if where.project is None:
        said.append(EACH)
    write([invocation.screen().line(line) for line in said])


def _carry_out(changes: "list[SettingsChange]", staying: Path, screen: Screen, *, remove: bool) -> None:
    """Change one file after the other. Where one can't be, tell of those before it, and raise click.ClickException."""
    from cli.setup.settings_files import write as write_file

    for done, change in enumerate(changes):
        try:
            write_file(change, staying)
        except (OSError, ValueError) as error:
            said = str(error)
            if isinstance(error, OSError) and error.strerror:
                # What it names may be a file of ours beside it, or a folder above it.
                said = f"{shown_name(str(change.path))} can't be changed: {error.strerror}"
            if done:
                write(_told(changes[:done], screen, remove=remove, dry_run=False))
                said += ". What is told above was changed before that; the same command goes on from there"
            raise click.ClickException(f"{said}.") from error


def _told(changes: "list[SettingsChange]", screen: Screen, *, remove: bool, dry_run: bool) -> Iterator[bytes]:
    from cli.setup.settings_files import BACKUP
    from objstore import unified_diff

    if not changes:
        yield screen.line("Nothing to change: it is all as it should be.")
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
            yield screen.line("An entry of our name that runs something else stood there before us, and is back.")
        if remove and change.is_kept:
            verb = "would stay" if dry_run else "stays"
            yield screen.line(f"It holds what `cas setup` doesn't write, and {verb} as {shown_name(name + BACKUP)}.")


def _begun(project: Path, screen: Screen) -> Iterator[bytes]:
    from cli.screen.progress import LOOKING, showing_progress
    from objstore import CallInfo, Origin, Workspace

    with Workspace.open(project) as workspace, showing_progress(workspace, LOOKING):
        found = workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
    if found.baseline is not None:
        yield screen.line(f"What stands in {shown_name(str(project))} now is kept: later changes can be told.")
    for place in found.skipped:
        yield screen.line(f"Not looked at: {shown_name(place.path)}: {place.reason}")


@command("doctor")
@click.argument("clients", nargs=-1, type=click.Choice(CLIENTS), metavar="[CLIENT]...")
@click.option("--forget", is_flag=True, help="Empty the log of faults that hooks had.")
@json_option
def doctor(*, clients: tuple[str, ...], forget: bool, as_json: bool) -> None:
    """Check that what was set up works: programs start, settings hold, hooks answer, and nothing failed lately."""
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
@click.argument("client", type=click.Choice(CLIENTS))
@click.option("--resident", is_flag=True, hidden=True, expose_value=False)  # of versions that had a resident helper
def hook(*, client: str) -> None:
    """Record what a tool of CLIENT does, as an event on standard input says. `cas setup` makes clients call this.

    It never fails, and prints nothing but what the client's agent shall read: edits of its own that were rejected, with
    the reasons. Faults go to `.cas/hook.log`, which `cas status` mentions and `cas doctor` shows.
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
    """Return the commands as clients should call them: by name where that leads here, or else by their place."""
    from cli.setup.plans import Programs

    return Programs(cas=_program("cas"), server=_program("editledger"))


def _program(name: str) -> str:
    own = Path(sys.executable).with_name(name)
    # An environment that was activated is on the path of this shell, and of no client that is started elsewhere.
    active = os.environ.get("VIRTUAL_ENV")
    places = [place for place in os.get_exec_path() if not active or not Path(place).is_relative_to(active)]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is not None and (not own.exists() or os.path.realpath(found) == os.path.realpath(own)):
        return name
    return str(own)
