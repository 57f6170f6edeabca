"""Read the clock for the times in records and segments."""

import time
from typing import Final

__all__ = ["FILE_TIME_LAG_NS", "now"]

FILE_TIME_LAG_NS: Final = 20_000_000
"""How far the time of a file may lag behind the clock."""


def now() -> int:
    """Return the time in microseconds since 1970-01-01 UTC, and 0 if the machine's clock is set before that.

    Records can't hold an earlier time. A machine without a battery may have such a clock, and must be able to write.
    """
    return max(0, time.time_ns() // 1000)
