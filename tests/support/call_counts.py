"""Count the calls that an operation makes: the same number each time, on any machine."""

from collections.abc import Callable
from cProfile import Profile
from types import CodeType

__all__ = ["count_calls"]


def count_calls(act: Callable[[], object], of: CodeType | None = None) -> int:
    """Return how many calls `act` makes: of one function of Python, or (None) of all, of Python and of C."""
    profile = Profile()
    profile.enable()
    try:
        act()
    finally:
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats() if of is None or entry.code is of)
