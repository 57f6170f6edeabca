"""A lower limit in memory: what holds for a file over 64 MB holds for one over 8 MB, which takes an eighth of the time.

Processes that a test starts have the real limit, unless they call `set_limit` too.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from objstore.model import large_file_placeholder

__all__ = ["LOWER_LIMIT", "lowered_limit", "set_limit"]

LOWER_LIMIT: Final = 1 << 23
"""Longest blob that is held in memory, in bytes, while the limit is lowered."""


def set_limit(limit: int) -> None:
    """Set the limit, in bytes, in every module, and in its SQL.

    Modules that are imported later take over what it is then.
    """
    before = large_file_placeholder.MAX_BLOB
    for package, module in list(sys.modules.items()):
        if package.partition(".")[0] != "objstore":
            continue
        for name, value in list(vars(module).items()):
            if name == "MAX_BLOB":
                vars(module)[name] = limit
            elif isinstance(value, str):
                vars(module)[name] = value.replace(str(before), str(limit))


@contextmanager
def lowered_limit() -> Iterator[None]:
    """Lower the limit of this process until the end of the block."""
    real_limit = large_file_placeholder.MAX_BLOB
    set_limit(LOWER_LIMIT)
    try:
        yield
    finally:
        set_limit(real_limit)
