"""Parse the times that a user types on the command line."""

import click

__all__ = ["moment_named", "since_named", "until_named"]


def since_named(_: click.Context, __: click.Parameter, spelling: str | None) -> int | None:
    """Return the first moment of an option's value (None: it is not given)."""
    return None if spelling is None else moment_named(spelling)


def until_named(_: click.Context, __: click.Parameter, spelling: str | None) -> int | None:
    """Return the last moment of an option's value (None: it is not given)."""
    return None if spelling is None else moment_named(spelling, end=True)


def moment_named(spelling: str, *, end: bool = False) -> int:
    """Return the time that `2h`, `3 days ago`, `yesterday`, `2026-11-20` or `2026-11-20 14:30` names.

    In microseconds since 1970-01-01 UTC. A day, or a week (2026-W47), means its first moment; with `end`, its last.
    Raises click.BadParameter.
    """
    if not spelling:
        raise click.BadParameter("it is empty.")
    from datetime import UTC, datetime

    from objstore import moment_of

    moment = moment_of(spelling, datetime.now(UTC).astimezone(), end=end)
    if moment is None:
        raise click.BadParameter(
            f"{spelling!r} is not a time: use 2h, 3d, yesterday, 2026-11-20 or '2026-11-20 14:30'."
        )
    return moment
