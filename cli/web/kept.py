"""Keep the newest of what a server needs again, bounded by number and by bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

__all__ = ["Kept"]

Key = TypeVar("Key")
Value = TypeVar("Value")


class Kept(Generic[Key, Value]):
    """Values by key; those that were used longest ago go first. Safe to use from several threads."""

    def __init__(self, most: int, most_bytes: int = 0, size: Callable[[Key, Value], int] = lambda *_: 0) -> None:
        """Keep at most so many values, and if there are several, at most so many bytes. `size`: that of a value."""
        self._most: Final = most
        self._most_bytes: Final = most_bytes
        self._size: Final = size
        self._lock: Final = threading.Lock()
        self._values: Final[OrderedDict[Key, tuple[Value, int]]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Key) -> Value | None:
        """Return the value of a key (None: it is not kept)."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Key, value: Value) -> None:
        """Keep a value, in place of an earlier one of that key."""
        size = self._size(key, value)
        with self._lock:
            self._bytes += size - self._values.pop(key, (None, 0))[1]
            self._values[key] = value, size
            while len(self._values) > self._most or (len(self._values) > 1 and self._bytes > self._most_bytes):
                self._bytes -= self._values.popitem(last=False)[1][1]
