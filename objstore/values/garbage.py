"""Keep Python's garbage collector from scanning many new objects that are all in use."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

__all__ = ["count_text", "without_collecting"]

_FEW_OBJECTS: Final = 2_000
"""Up to this many new objects, a garbage collection is fast enough to be left to Python."""

_MOST_OLD: Final = 200_000
"""Objects (about 30 MB) that may be created here before a full garbage collection looks for unused ones."""

_MOST_TEXT: Final = 32 << 20
"""Bytes of text in such objects before one does: a few objects may hold a large file."""

_objects_since_collection = 0
"""Objects that were created here since the last full garbage collection."""

_text_since_collection = 0
"""Bytes of text that they hold."""


@contextmanager
def without_collecting() -> Iterator[None]:
    """Keep the garbage collector from scanning tens of thousands of new objects that are all in use."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            _freeze_or_collect()
            gc.enable()


def count_text(size: int) -> None:
    """Note that objects which only the garbage collector frees hold so many bytes of text. Call it in the above."""
    global _text_since_collection  # noqa: PLW0603 - there is one collector in a process
    _text_since_collection += size


def _freeze_or_collect() -> None:
    """Move new objects to the oldest generation: otherwise the next allocation would start a collection.

    The units and runs of a weave refer to each other, so only the garbage collector frees them, and it does not scan
    the oldest generation while this goes on. So a full collection runs from time to time.
    """
    global _objects_since_collection, _text_since_collection  # noqa: PLW0603 - there is one collector in a process
    made = gc.get_count()[0]
    is_much_text = _text_since_collection > _MOST_TEXT
    if not is_much_text and (made < _FEW_OBJECTS or _has_frozen_objects()):
        return
    _objects_since_collection += made
    if is_much_text or _objects_since_collection > _MOST_OLD:
        _objects_since_collection = _text_since_collection = 0
        gc.collect()
    else:
        gc.freeze()
        gc.unfreeze()


@cache
def _has_frozen_objects() -> bool:
    """Return whether this process was forked from one that froze its objects. Counting goes through all of them."""
    return gc.get_freeze_count() > 0
