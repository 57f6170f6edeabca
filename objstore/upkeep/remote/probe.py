"""Find out whether a bucket keeps its word: of many who create one object at once, exactly one may succeed.

Some servers take the condition and ignore it. Two stores would then overwrite each other's heads and decisions.
"""

import os
from functools import partial
from threading import Barrier
from typing import Final

from objstore.upkeep.remote.bucket import Bucket
from objstore.upkeep.remote.waiting import started
from objstore.values.fastclass import value
from objstore.values.request_errors import RemoteRefused

__all__ = ["Probed", "probe"]

_WRITERS: Final = 8
_KEYS: Final = 4
_FOLDER: Final = "probe"
_SIZE: Final = 64


@value
class Probed:
    """What a probe found."""

    writers: int
    keys: int


def probe(bucket: Bucket) -> Probed:
    """Let 8 writers create the same few objects, and remove them again. Raises RemoteRefused and RemoteFailed."""
    tried = os.urandom(8).hex()
    keys = [f"{_FOLDER}/{tried}-{number}" for number in range(_KEYS)]
    barrier = Barrier(_WRITERS)
    contents = [os.urandom(_SIZE) for _ in range(_WRITERS)]

    def write(content: bytes) -> list[bool]:
        barrier.wait()
        return [bucket.put_new(key, content) for key in keys]

    try:
        answers = [each.result() for each in [started(partial(write, content)) for content in contents]]
        for key, won in zip(keys, zip(*answers, strict=True), strict=True):
            _require_one(bucket, key, won, contents)
        _require_listed(bucket, keys)
    except Exception:  # not Ctrl-C, which would wait again for a server that does not answer
        bucket.delete(keys)
        raise
    bucket.delete(keys)
    return Probed(writers=_WRITERS, keys=_KEYS)


def _require_listed(bucket: Bucket, keys: list[str]) -> None:
    if not {each.key for each in bucket.listed(_FOLDER)}.issuperset(keys):
        raise RemoteRefused(bucket.url, "the bucket does not list what was just put there")


def _require_one(bucket: Bucket, key: str, won: tuple[bool, ...], contents: list[bytes]) -> None:
    there = bucket.get(key, _SIZE)
    winners = [content for content, has_won in zip(contents, won, strict=True) if has_won]
    # A winner may have been told that it lost, by its own object; two winners are never right.
    if len(winners) > 1 or there not in contents or (winners and winners[0] != there):
        raise RemoteRefused(
            bucket.url,
            f"of {_WRITERS} writers that created one object at once, {len(winners)} succeeded, so pushes could "
            "overwrite each other. Use another bucket or server",
        )
