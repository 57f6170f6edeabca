"""The command `cas purge`: remove bytes from the store for good."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from cli.app.invocation import Invocation, command, json_option, reviewer
from cli.screen.progress import Progress
from cli.screen.terminal import FOR_STDERR, Screen, can_ask, shown_name, write, write_json
from cli.search.candidates import named
from cli.selection.selectors import from_here, looks_like_state, path_named, state_named, state_parts, was_recorded

if TYPE_CHECKING:
    from objstore import BlobId, PurgePlan, Workspace

__all__ = ["purge"]

_INTERRUPTED: Final = "Interrupted: bytes to be purged may still be in the store. Run the command again to finish."


MOST_FILES: Final = 10
"""Files that a line names."""


class _Target(NamedTuple):
    """The resolved names on the command line."""

    blobs: "list[BlobId]"
    paths: list[str]  # all that is stored of what is or was there goes


@command("purge")
@click.argument("names", metavar="PATH|STATE...", nargs=-1, type=named("path"), required=True)
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be purged; change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask, and purge pending and pinned edits too.")
@click.option("--past", is_flag=True, help="Only past states of PATH: keep the current one, and go on recording it.")
@click.option("--keep-shared", is_flag=True, help="Keep the bytes that other files contain, too.")
@click.option("--force", is_flag=True, hidden=True)
@json_option
def purge(
    *, names: tuple[str, ...], dry_run: bool, yes: bool, past: bool, keep_shared: bool, force: bool, as_json: bool
) -> None:
    """Remove bytes from the store for good: all that is stored of a file or folder, or one state (PATH@12, a hash).

    Edits that mention the bytes, and earlier edits of the same files, can then be neither shown nor decided. No file is
    changed. What is at PATH now is not recorded any more: it is added to the setting `record.exclude`. Copies
    elsewhere, such as a backup of .cas, are not removed.
    """
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        target = _target(workspace, names, past=past)
        retention = workspace.retention
        plan = None
        if dry_run or (can_ask() and not yes and not as_json):
            plan = retention.plan_purge(blobs=target.blobs, paths=target.paths, keep_shared=keep_shared)
        is_asked = plan is not None and not dry_run and not plan.files and not plan.changed_outside and bool(plan.blobs)
        if is_asked and plan is not None:
            _confirm(plan)
        if plan is None or not dry_run:
            with Progress({"edits": "expiring", "segments": "sweeping"}, interrupted=_INTERRUPTED) as progress:
                plan = retention.purge(
                    target.blobs,
                    paths=target.paths,
                    keep_shared=keep_shared,
                    force=yes or force or is_asked,
                    who=reviewer(),
                    progress=progress.report,
                )
    if as_json:
        from objstore import fields_shape

        write_json([{"dry_run": dry_run, **fields_shape(plan)}])
    else:
        write(_text(plan, invocation.screen(), dry_run=dry_run))


def _confirm(plan: "PurgePlan") -> None:
    """Show the plan, and ask whether to carry it out. Raises click.ClickException if not."""
    for line in _text(plan, FOR_STDERR, dry_run=True, is_question=True):
        click.echo(line, err=True, nl=False)
    if not click.confirm("This can't be undone. Purge it?", err=True):
        raise click.ClickException("Nothing was purged.")


def _target(workspace: "Workspace", spellings: Sequence[str], *, past: bool) -> _Target:
    """Return what to purge. Raises NoSuchName for a name of nothing that is stored."""
    from objstore import NoSuchName

    target = _Target([], [])
    named: list[tuple[str, str]] = []  # how a path was typed, and as the core takes it
    for spelling in spellings:
        if looks_like_state(workspace, spelling):
            target.blobs.append(_state_blob(workspace, spelling))
        else:
            named.append((spelling, _path(workspace, spelling, past=past)))
    stored = workspace.retention.stored_blobs([path for _, path in named], past=past)
    for (spelling, path), blobs in zip(named, stored, strict=True):
        if not blobs and past and _exists(workspace, spelling):
            raise click.ClickException(
                f"{shown_name(spelling)} has no past state: what is recorded is its current content. "
                f"Without --past, `{Invocation.current().program} purge` removes that too."
            )
        if not blobs:
            kind = "file with a past state" if past else "file or folder of which bytes are stored"
            raise NoSuchName(spelling, kind)
        if past:
            target.blobs.extend(blobs)
        else:
            target.paths.append(path)
    return target


def _state_blob(workspace: "Workspace", spelling: str) -> "BlobId":
    from objstore import NoSuchName

    _refuse_guess(workspace, spelling)
    state = state_named(workspace, spelling)
    if state.blob is None:
        raise NoSuchName(spelling, "state with bytes")
    return state.blob


def _path(workspace: "Workspace", spelling: str, *, past: bool) -> str:
    """Return a path, as the core takes it. Raises PathError, and click.ClickException for the whole workspace."""
    from objstore import PathError

    try:
        if not past and path_named(workspace, spelling) == ".":
            raise click.ClickException("To remove all that is stored of the workspace, delete the folder .cas.")
    except PathError:
        pass  # a link leads elsewhere, and what was recorded at the path itself can be purged

    def taken(path: str) -> str:
        workspace.retention.searched_paths(path)  # raises PathOutside, as `from_here` expects
        return path

    return from_here(workspace, spelling, taken)


def _refuse_guess(workspace: "Workspace", name: str) -> None:
    """Raise click.ClickException if the name denotes a state and also once named a file: a purge can't be undone."""
    parts = state_parts(name)
    if parts is not None and was_recorded(workspace, name):
        from cli.screen.quoting import typed

        shown, lists = shown_name(name), f"`{Invocation.current().program} log {typed(name)}` lists its edits"
        raise click.ClickException(
            f"{shown} is ambiguous: it is a state of {shown_name(parts[0])}, and a file once had this name. "
            f"Name the state by its hash, or a state of the file as {shown_name(f'{name}@12')} ({lists})."
        )


def _exists(workspace: "Workspace", name: str) -> bool:
    from objstore import NoSuchName

    try:
        return state_named(workspace, name).blob is not None
    except NoSuchName:
        return False


def _text(plan: "PurgePlan", screen: Screen, *, dry_run: bool, is_question: bool = False) -> Iterator[bytes]:
    from objstore import counted

    if dry_run and not is_question:
        yield screen.line("Dry run: nothing was changed.")
    present = (
        f", with what {_listed(plan.paths)} contain{'s' if len(plan.paths) == 1 else ''} now" if plan.paths else ""
    )
    yield screen.line(f"{'Would purge' if dry_run else 'Purged'} {counted(len(plan.blobs), 'blob')}{present}.")
    can = "can" if dry_run else "can now"
    for kind, spans, lost in (
        ("Edit", plan.edits, "neither shown nor decided"),
        ("Decision", plan.decisions, "neither undone nor redone"),
    ):
        if spans:
            shown = " ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
            several = "" if shown.isdigit() else "s"
            yield screen.line(f"{kind}{several} {shown} {can} be {lost}.")
    for kind, numbers in (("Pending edit", plan.pending), ("Pin", plan.pins)):
        if numbers:
            several = "" if len(numbers) == 1 else "s"
            needs = "" if is_question else " (needs --yes)"
            gone = f"would be purged too{needs}" if dry_run else "purged too"
            yield screen.line(f"{kind}{several} {' '.join(map(str, numbers))} {gone}.")
    yield from map(screen.line, _snapshot_lines(plan, dry_run=dry_run))
    yield from map(screen.line, _file_lines(plan, dry_run=dry_run))


def _snapshot_lines(plan: "PurgePlan", *, dry_run: bool) -> Iterator[str]:
    for number, renewed in zip(plan.snapshots, plan.renewed, strict=True):
        kept = "would be kept" if dry_run else "is kept"
        if not renewed:
            yield f"Snapshot {number} {'would be purged' if dry_run else 'purged'} too."
        elif number == plan.baseline:
            yield f"Snapshot {number} is the baseline; the rest of what it holds {kept} in a new one."
        else:
            yield f"Snapshot {number} {kept} without these bytes, as snapshot {renewed}."


def _file_lines(plan: "PurgePlan", *, dry_run: bool) -> Iterator[str]:
    """Yield what happens to files, and which other files have the same bytes."""
    program = Invocation.current().program
    if plan.excluded:
        patterns = " ".join(map(shown_name, plan.excluded))
        will = "would be left out of scans from then on" if dry_run else "is left out of scans from now on"
        yield f"{patterns} {will} (`{program} config get record.exclude`)."
    if plan.shared:
        lose = "would lose" if dry_run else "lose"
        why = "because they had the same bytes, or the same decision rewrote them"
        yield f"Other files {lose} past states too, {why}: {_listed(plan.shared)}."
    if plan.kept:
        yield f"Other files have some of the bytes, which stay in the store: {_listed(plan.kept)}."
    if plan.files:
        yield f"Other files contain the bytes now, so nothing can be purged: {_listed(plan.files)}."
    if plan.changed_outside:
        yield (
            "Other files were last recorded with the bytes and changed since, so nothing can be purged: "
            f"{_listed(plan.changed_outside)}."
        )
    if plan.files or plan.changed_outside:
        yield "Name these files too, change them, or keep the bytes that they have with --keep-shared."


def _listed(paths: Sequence[str]) -> str:
    """Return the names of files, of many only the first ones."""
    from objstore import few

    return few(paths, MOST_FILES, ", ", shown_name)
