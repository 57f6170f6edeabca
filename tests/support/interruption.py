"""Let a writer act at a chosen moment of a reader in the same process, before one of its system calls.

Between two questions to the system nothing can change for a reader, so who tries each has tried every interleaving.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tests.support.faulty_disk import WHOLE

__all__ = ["InterruptionPoint", "interrupted_at", "interruption_points"]


class InterruptionPoint:
    """The moment before the n-th system call, and whether that call was reached."""

    def __init__(self, step: int) -> None:
        self.step = step  # of the calls, counted from 0
        self.came = False


def interruption_points(stride: int = 1) -> Iterator[InterruptionPoint]:
    """Yield successive moments until one was not reached. Raises AssertionError if the first was not.

    `stride`: of so many moments, only one is tried, but all of them for `make crash`.
    """
    stride = 1 if WHOLE else stride
    moment = InterruptionPoint(0)
    yield moment
    assert moment.came
    while moment.came:
        moment = InterruptionPoint(moment.step + stride)
        yield moment


@contextmanager
def interrupted_at(moment: InterruptionPoint, act: Callable[[], object]) -> Iterator[None]:
    """Run `act` at that moment of the code in the block."""
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
