"""Overtaking: a writer acts at a chosen moment of what a reader in the same process does, before one of its questions.

Between two questions to the system nothing can change for a reader, so who tries each has tried every interleaving.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["Moment", "overtaken"]


class Moment:
    """Whether the chosen moment has come."""

    came = False


@contextmanager
def overtaken(step: int, act: Callable[[], object]) -> Iterator[Moment]:
    """Have `act` done just before the call of the system (counted from 0) that comes next at that position."""
    moment = Moment()
    left = step

    def watch(_: FrameType, event: str, called: Any) -> None:  # noqa: ANN401 - whatever was called
        nonlocal left
        if event == "c_call" and called.__module__ == "posix" and not moment.came:
            if left == 0:
                moment.came = True
                act()
            left -= 1

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield moment
    finally:
        sys.setprofile(before)
