"""The command `cas gc`: expire old history and remove unused bytes from the store."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Invocation, command, json_option, reviewer
from cli.render.status import size_text
from cli.screen.progress import Progress
from cli.screen.terminal import Screen, visible, write, write_json

if TYPE_CHECKING:
    from objstore import GcPlan, GcResult, Json, Repacked, RepackPlan, RetentionLimits, Workspace

__all__ = ["gc"]

_INTERRUPTED: Final = "Interrupted: what has expired stays expired. Run the command again to finish."


@command("gc")
@click.option(
    "--older-than", metavar="AGE", help="Expire history that is fully decided and older than AGE: 30d, 12h, never."
)
@click.option(
    "--max-size", metavar="SIZE", help="Expire the oldest of it while the store is larger than SIZE: 2GB, unlimited."
)
@click.option("--repack", is_flag=True, help="Recompress what stays, into fewer bytes; this is slow.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would expire and how much that frees; change nothing.")
@json_option
def gc(*, older_than: str | None, max_size: str | None, repack: bool, dry_run: bool, as_json: bool) -> None:
    """Expire old history, and free what nothing holds any more.

    Without options, the settings decide what expires (`cas config`). Pending, pinned and recent edits never expire, nor
    does what is needed to know a file's content. Records of expired edits stay, so `cas log` still lists them.
    """
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        limits = _limits(workspace, older_than, max_size)
        plan = workspace.retention.plan_gc(limits)
        done: GcResult | None = None
        repacked: Repacked | RepackPlan | None = None
        words = {"edits": "expiring", "segments": "compacting", "blobs": "compressing"}
        with Progress(words, interrupted=_INTERRUPTED) as progress:
            if not dry_run:
                done = workspace.retention.collect(
                    limits, who=reviewer(), thorough=True, progress=progress.report, planned=plan
                )
            if repack:
                repacked = (workspace.retention.plan_repack if dry_run else workspace.retention.repack)(progress.report)
    if as_json:
        write_json([_shape(plan, done) | {"repack": None if repacked is None else _repack_shape(repacked)}])
    else:
        screen = invocation.screen()
        write(_text(plan, done, screen))
        if repacked is not None:
            write(_repack_text(repacked, screen))


def _limits(workspace: "Workspace", older_than: str | None, max_size: str | None) -> "RetentionLimits":
    """Return the limits given as options, and the settings for the others."""
    from objstore import limit_of

    limits = workspace.retention.limits()
    for option, name, given in (("--older-than", "older_than", older_than), ("--max-size", "max_size", max_size)):
        if given is not None:
            try:
                value = limit_of(f"retention.{name}", given)
            except ValueError as error:
                raise click.BadParameter(f"{given!r}: it takes {error}.", param_hint=option) from None
            limits = limits._replace(**{name: value})
    return limits


def _text(plan: "GcPlan", done: "GcResult | None", screen: Screen) -> Iterator[bytes]:
    from cli.render.edits import moment

    if done is None:
        yield screen.line("Dry run: nothing was changed.")
    for expiry_batch in plan.expiry.batches:
        verb = "Would expire" if done is None else "Expired"
        yield screen.line(
            f"{verb} {_count(expiry_batch.edit_count, 'edit')}, the newest of {moment(expiry_batch.newest)}: "
            f"{visible(expiry_batch.reason)}."
        )
    if not plan.expiry.batches:
        yield screen.line("No history expires.")
    if done is None:
        frees = f"{size_text(plan.free_bytes)} in {_count(plan.free_blobs, 'blob')}"
        yield screen.line(f"Would free {frees}, of {size_text(plan.store_bytes)}.")
    else:
        freed = done.bytes_before - done.bytes_after
        yield screen.line(f"Freed {size_text(max(0, freed))}; the store now takes {size_text(done.bytes_after)}.")
        if done.index_damage:
            yield screen.line(f"Note: the index was wrong and was rebuilt from the log: {done.index_damage}.")
        if not done.is_done:
            yield screen.line(
                "Note: some history was kept because another process recorded decisions meanwhile. Run `cas gc` again."
            )
    if plan.expiry.missing:
        yield screen.line(
            f"Note: the store stays {size_text(plan.expiry.missing)} over the limit: "
            "everything that is left is pending, pinned or needed."
        )


def _repack_text(repacked: "Repacked | RepackPlan", screen: Screen) -> Iterator[bytes]:
    from objstore import RepackPlan

    sizes = f"{size_text(repacked.bytes_before)} to {size_text(repacked.bytes_after)}"
    if isinstance(repacked, RepackPlan):
        yield screen.line(f"Would compress {_count(repacked.blobs, 'blob')}: the store, as it is now, from {sizes}.")
        return
    yield screen.line(f"Compressed {_count(repacked.blobs, 'blob')}: the store from {sizes}.")
    if not repacked.is_done:
        yield screen.line(
            "Note: some blobs were not compressed because another process wrote meanwhile. Run `cas gc --repack` again."
        )


def _repack_shape(repacked: "Repacked | RepackPlan") -> "dict[str, Json]":
    from objstore import RepackPlan

    done = None if isinstance(repacked, RepackPlan) else repacked
    return {
        "blobs": repacked.blobs,
        "segments": None if done is None else done.segments,
        "bytes_before": repacked.bytes_before,
        "bytes_after": repacked.bytes_after,
        "done": done is not None and done.is_done,
    }


def _shape(plan: "GcPlan", done: "GcResult | None") -> "dict[str, Json]":
    from objstore import text_shape

    return {
        "dry_run": done is None,
        "older_than": plan.limits.older_than,
        "max_size": plan.limits.max_size,
        "expired": [
            {
                "reason": text_shape(expiry_batch.reason),
                "edits": expiry_batch.edit_count,
                "edit_ranges": [list(span) for span in expiry_batch.edits],
                "newest": expiry_batch.newest,
            }
            for expiry_batch in plan.expiry.batches
        ],
        "frees": {"blobs": plan.free_blobs, "bytes": plan.free_bytes},
        "missing": plan.expiry.missing,
        "store": {
            "bytes_before": plan.store_bytes,
            "bytes_after": None if done is None else done.bytes_after,
        },
        "done": done is not None and done.is_done,
        "index_damage": None if done is None or not done.index_damage else done.index_damage,
    }


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
