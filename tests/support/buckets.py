"""Buckets for tests: in memory, counted, and failing as networks do."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from threading import Lock
from typing import Final

from obstore.store import MemoryStore

from objstore.upkeep.remote.bucket import Listed, ObjectBucket
from objstore.values.fastclass import replace
from objstore.values.request_errors import RemoteFailed

__all__ = ["CutOff", "FailingBucket", "memory_bucket"]


class CutOff(BaseException):
    """The process has died; no handler catches this or cleans up."""


def memory_bucket() -> ObjectBucket:
    """Return an empty bucket of obstore's in memory."""
    return ObjectBucket("memory:///", MemoryStore())


class FailingBucket:
    """A bucket that counts requests, and lets one of them die, get no answer, or get a wrong one."""

    def __init__(self, inner: ObjectBucket) -> None:
        self.url: Final = inner.url
        self.inner: Final = inner
        self.requests: Counter[str] = Counter()
        self.dies_at = 0  # the number of the request before which the process dies; 0: none
        self.loses: Callable[[str], bool] = lambda _: False  # whether the answer to creating this key is lost
        self.repeats: Callable[[str], bool] = lambda _: False  # whether creating it is tried again, answered or not
        self.aged = timedelta(0)  # how much older the objects seem that are there now
        self.old: set[str] = set()
        self._lock: Final = Lock()

    @property
    def count(self) -> int:
        """Return how many requests there were."""
        return sum(self.requests.values())

    def _request(self, kind: str) -> None:
        with self._lock:
            self.requests[kind] += 1
            if self.dies_at and self.count >= self.dies_at:
                raise CutOff

    def put_new(self, key: str, content: bytes) -> bool:
        """Create an object; the answer may be lost, or be that of a second try."""
        self._request("put")
        created = self.inner.put_new(key, content)
        if self.loses(key):
            raise RemoteFailed(self.url, "no answer")
        return self.inner.put_new(key, content) if self.repeats(key) else created

    def get(self, key: str, most: int) -> bytes:
        """Return an object's bytes."""
        self._request("get")
        return self.inner.get(key, most)

    def listed(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """Yield the objects below a prefix; those that were aged seem older."""
        self._request("list")
        for each in self.inner.listed(prefix, after):
            changed: datetime = each.changed - (self.aged if each.key in self.old else timedelta(0))
            yield replace(each, changed=changed)

    def folders(self, prefix: str) -> list[str]:
        """Return the folders below a prefix."""
        self._request("list")
        return self.inner.folders(prefix)

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects."""
        self._request("delete")
        self.inner.delete(keys)

    def age(self, by: timedelta) -> None:
        """Let what is there now seem older."""
        self.aged = by
        self.old = {each.key for each in self.inner.listed("")}
