"""The command `cas doctor`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cli.app.invocation import Invocation, command, json_option
from cli.screen.terminal import Screen, visible, write, write_json

if TYPE_CHECKING:
    from cli.setup.doctor import Finding
    from objstore import Caution, Workspace

from cli.commands.client_names import ClientName, programs_at

__all__ = ["doctor"]

_MOST_CAUTIONS: Final = 5
"""Cautions that the doctor names: the newest."""


@command("doctor")
@click.argument("clients", nargs=-1, type=ClientName(), metavar="[CLIENT]...")
@click.option(
    "--forget",
    is_flag=True,
    help="Forget what is reported of hooks, lost histories and decisions: you know of it.",
)
@json_option
def doctor(*, clients: tuple[str, ...], forget: bool, as_json: bool) -> None:
    """Check that the setup works: programs start, settings are valid, hooks answer, and there were no recent errors."""
    from cli.setup.doctor import examine

    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        root = Path(workspace.root)
        known = _acknowledged(workspace) if forget else []
    if forget:
        from objstore import forget_hook_failures

        forget_hook_failures(str(root))
    found = [*known, *examine(root, Path.home(), programs_at(), clients or None), *_are_acknowledged(root)]
    if as_json:
        write_json({"check": one.check, "ok": one.ok, "said": one.said} for one in found)
    else:
        write(_diagnosis(found, invocation.screen()))
    if not all(one.ok for one in found):
        click.get_current_context().exit(1)


def _acknowledged(workspace: "Workspace") -> "list[Finding]":
    """Forget lost histories and what a person should hear of; return the latter, so that no more than these are."""
    from cli.render.status import caution_line
    from cli.setup.doctor import Finding

    workspace.acknowledge_loss()
    cautions = workspace.review.cautions()
    workspace.review.acknowledge(cautions)
    return [Finding(check="acknowledged", ok=True, said=caution_line(each)) for each in cautions.items]


def _are_acknowledged(root: Path) -> "Iterator[Finding]":
    """Yield whether a person knows of decisions inside agents' shells, of what narrows the record, and of silence."""
    from cli.setup.doctor import Finding
    from objstore import CasError, Workspace

    decided, heard = "decisions in agents' shells, and what narrows the record", "events of tools arrive"
    try:
        with Workspace.open(root) as workspace:
            items = workspace.review.cautions().items
    except CasError as error:
        yield Finding(check=decided, ok=False, said=str(error))
        return
    silent = [each for each in items if each.silence is not None]
    others = [each for each in items if each.silence is None]
    yield Finding(check=heard, ok=not silent, said=_listed(silent))
    by_agent = any(each.by_agent for each in others)
    yield Finding(check=decided, ok=not by_agent, said=_listed(others) or "none")


def _listed(cautions: "Sequence[Caution]") -> str:
    """Return the newest of some cautions, and how to acknowledge them ("": there are none)."""
    if not cautions:
        return ""
    from cli.render.status import caution_line

    more = f" and {len(cautions) - _MOST_CAUTIONS} more" if len(cautions) > _MOST_CAUTIONS else ""
    said = "; ".join(map(caution_line, cautions[-_MOST_CAUTIONS:])) + more
    return f"{said}; `cas doctor --forget` once you know {'them' if len(cautions) > 1 else 'of it'}"


def _diagnosis(found: "list[Finding]", screen: Screen) -> Iterator[bytes]:
    for one in found:
        yield screen.line(
            f"{'ok  ' if one.ok else 'BAD '} {one.check}" + (f": {visible(one.said)}" if one.said else "")
        )
