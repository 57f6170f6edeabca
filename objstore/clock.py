"""The clock: the time that records and segments have."""

import time

__all__ = ["now"]


def now() -> int:
    """Return the time in microseconds since 1970-01-01 UTC; 0 where the machine's clock is set before that.

    Records hold no earlier time. A machine without a battery may have such a clock, and what it writes must be kept.
    """
    return max(0, time.time_ns() // 1000)
