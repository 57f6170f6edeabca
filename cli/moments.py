"""Moments: how a person names a time on the command line."""

import click

__all__ = ["moment_named"]


def moment_named(spelling: str, *, end: bool = False) -> int:
    """Return the time that `2h`, `3 days ago`, `yesterday`, `2026-11-20` or `2026-11-20 14:30` names.

    In microseconds since 1970-01-01 UTC. A day, or a week (2026-W47), stands for its first moment; with `end`, for its
    last. Raises click.BadParameter.
    """
    from datetime import UTC, datetime

    from objstore import moment_of

    moment = moment_of(spelling, datetime.now(UTC).astimezone(), end=end)
    if moment is None:
        raise click.BadParameter(f"{spelling!r} is no time: say 2h, 3d, yesterday, 2026-11-20 or '2026-11-20 14:30'.")
    return moment
