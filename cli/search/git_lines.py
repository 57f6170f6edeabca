"""Insert git's events into a list of edits, one line for each event instead of one for each file."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from objstore import Origin

if TYPE_CHECKING:
    from objstore import EditView, GitEvent, Workspace

__all__ = ["with_git_events"]


def with_git_events(
    workspace: "Workspace", views: Iterable["EditView"], since: int | None = None, until: int | None = None
) -> "Iterator[EditView | GitEvent]":
    """Yield edits, newest first, without those of git, and each of git's events at its place among them.

    `since`, `until`: only events between these times (µs since 1970-01-01 UTC; None: no limit).
    """
    events = (
        event
        for event in workspace.history.git_events()
        if (since is None or event.time >= since) and (until is None or event.time <= until)
    )
    event = next(events, None)
    for view in views:
        while event is not None and event.after >= view.seq:
            yield event
            event = next(events, None)
        if view.edit.origin is not Origin.GIT:
            yield view
    while event is not None:
        yield event
        event = next(events, None)
