"""Overtaking: a writer acts at a chosen moment of what a reader in the same process does, before one of its questions.

Between two questions to the system nothing can change for a reader, so who tries each has tried every interleaving.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["InterruptionPoint", "interrupted_at", "interruption_points"]


class InterruptionPoint:
    """Just before a call of the system, and whether it has come to that."""

    def __init__(self, step: int) -> None:
        self.step = step  # of the calls, counted from 0
        self.came = False


def interruption_points(stride: int = 1) -> Iterator[InterruptionPoint]:
    """Yield one moment after the other, until one has not come. AssertionError where not even the first has."""
    moment = InterruptionPoint(0)
    yield moment
    assert moment.came
    while moment.came:
        moment = InterruptionPoint(moment.step + stride)
        yield moment


@contextmanager
def interrupted_at(moment: InterruptionPoint, act: Callable[[], object]) -> Iterator[None]:
    """Have `act` done at that moment of what is done inside."""
    left = moment.step

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
        yield
    finally:
        sys.setprofile(before)
