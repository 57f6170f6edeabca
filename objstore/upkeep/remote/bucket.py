"""Reach the objects of a bucket, or of a folder, by four operations: put if absent, get, list, delete.

`obstore` does the work, and is imported only when a remote is used. Credentials are those in the environment, where
`obstore` finds them; none is in a URL, and none is written down.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import SplitResult, quote, unquote, urlsplit

from objstore.disk.fs.disk import give_written, make_folders
from objstore.upkeep.remote.waiting import answered
from objstore.values.fastclass import value
from objstore.values.request_errors import (
    ObjectMissing,
    ObjectTooLarge,
    RemoteFailed,
    RemoteSupportMissing,
    RemoteUrlRefused,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from typing import TypeVar

    T = TypeVar("T")

    from obstore.store import ObjectStore

__all__ = ["SCHEMES", "Bucket", "Listed", "ObjectBucket", "claim", "local_path", "open_bucket"]

SCHEMES: Final = ("s3", "az", "gs", "file")
"""The schemes of the URLs that a remote may have."""

_CONNECT_SECONDS: Final = 10
_ANSWER_SECONDS: Final = 60
_RETRIES: Final = 4
_RETRY_SECONDS: Final = 90

_TIME_ERRORS: Final = ("RequestTimeTooSkewed", "RequestExpired")
_KEY_ERRORS: Final = (
    "SignatureDoesNotMatch",
    "InvalidAccessKeyId",
    "AccessDenied",
    "AuthenticationFailed",
    "403 Forbidden",
)


@value
class Listed:
    """One object in a list."""

    key: str
    size: int  # in bytes
    changed: datetime  # by the bucket's clock


class Bucket(Protocol):
    """All that is asked of an object store. Every operation may raise RemoteFailed."""

    @property
    def url(self) -> str:
        """Return the bucket's address, for messages."""

    def put_new(self, key: str, content: bytes) -> bool:
        """Create an object, whole and durable; return False if the key is taken, and leave what is there."""

    def get(self, key: str, most: int) -> bytes:
        """Return an object's bytes. Raises ObjectMissing, and ObjectTooLarge if it has more than `most` bytes."""

    def listed(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """Yield the objects below a prefix, ascending by key; `after`: only those with a greater key."""

    def folders(self, prefix: str) -> list[str]:
        """Return the names of the folders directly below a prefix, ascending."""

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; those that are gone already don't matter."""


def claim(bucket: Bucket, key: str, content: bytes) -> bool:
    """Create an object; return whether the key holds exactly these bytes now.

    An answer may be lost or late, and a client that asks again then hears that the key is taken, by its own object. So
    before a loss or a failure is believed, the bytes are compared. Raises RemoteFailed.
    """
    try:
        if bucket.put_new(key, content):
            return True
    except RemoteFailed:
        if _has(bucket, key, content):
            return True
        raise
    return _has(bucket, key, content)


def _has(bucket: Bucket, key: str, content: bytes) -> bool:
    try:
        return bucket.get(key, len(content)) == content
    except (ObjectMissing, ObjectTooLarge):
        return False


def local_path(url: str) -> str | None:
    """Return the folder that a URL names (None: the URL is no folder's). Raises RemoteUrlRefused."""
    parts = _parts(url)
    if parts.scheme != "file":
        return None
    if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
        raise RemoteUrlRefused(url, "a folder's URL has three slashes: file:///home/me/backup")
    return os.path.normpath(unquote(parts.path))


def open_bucket(url: str, *, makes_folder: bool = False) -> ObjectBucket:
    """Return the bucket at a URL; nothing is asked of it yet.

    `makes_folder`: whether a folder that is not there is made; otherwise it is refused: its disk may not be mounted.
    Raises RemoteUrlRefused, RemoteFailed, and RemoteSupportMissing without `obstore`.
    """
    folder = local_path(url)
    try:
        from obstore import store
        from obstore.exceptions import BaseError
    except ImportError as error:
        raise RemoteSupportMissing from error
    try:
        if folder is not None:
            if makes_folder:
                make_folders(folder, 0o700)
            elif not os.path.isdir(folder):
                raise RemoteFailed(url, "there is no such folder. Check its path, and that its disk is mounted")
            return ObjectBucket(url, store.LocalStore(prefix=folder), folder)
        from datetime import timedelta

        found = store.from_url(
            url,
            client_options={
                "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
                "timeout": timedelta(seconds=_ANSWER_SECONDS),
                "allow_http": _may_be_unencrypted(),
            },
            retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)},
        )
    except (BaseError, OSError, ValueError) as error:
        raise RemoteFailed(url, _first_line(error)) from error
    return ObjectBucket(url, found)


class ObjectBucket:
    """A bucket through `obstore`."""

    def __init__(self, url: str, store: ObjectStore, folder: str | None = None) -> None:
        """Wrap a store of `obstore`. `folder`: the folder that it keeps objects in (None: it is no folder)."""
        self.url: Final = url
        self._store: Final = store
        self._folder: Final = folder
        self._synced: Final[set[str]] = set()  # folders whose names were made durable

    def put_new(self, key: str, content: bytes) -> bool:
        """Create an object; return False if the key is taken."""
        from obstore import put
        from obstore.exceptions import AlreadyExistsError

        path = None if self._folder is None else os.path.join(self._folder, key)
        with self._translating():
            if path is not None:
                make_folders(os.path.dirname(path))
            try:
                self._asked(partial(put, self._store, key, content, mode="create", use_multipart=False))
            except AlreadyExistsError:
                return False
            if path is not None:
                give_written(path, content)
        if path is not None:
            self._sync(key)
        return True

    def get(self, key: str, most: int) -> bytes:
        """Return an object's bytes, and read no more than `most`."""
        from obstore import get

        with self._translating(key):
            found = self._asked(partial(get, self._store, key))
            if found.meta["size"] > most:
                raise ObjectTooLarge(self.url, key, most)
            # No more arrives than the size that was said: HTTP ends a body there.
            content = self._asked(found.bytes).to_bytes()
            if len(content) > most:
                raise ObjectTooLarge(self.url, key, most)
            return content

    def listed(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """Yield the objects below a prefix, ascending by key."""
        from obstore import list as list_objects

        def found() -> Iterator[Listed]:
            with self._translating():
                pages = iter(list_objects(self._store, prefix, offset=after or None))
                while (page := self._asked(partial(next, pages, None))) is not None:
                    for each in page:
                        yield Listed(key=each["path"], size=each["size"], changed=each["last_modified"])

        # A folder is listed in no order.
        yield from found() if self._folder is None else sorted(found(), key=lambda each: each.key)

    def folders(self, prefix: str) -> list[str]:
        """Return the names of the folders directly below a prefix."""
        from obstore import list_with_delimiter

        with self._translating():
            found = self._asked(partial(list_with_delimiter, self._store, prefix))
        return sorted(each.rstrip("/").rpartition("/")[2] for each in found["common_prefixes"])

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects."""
        from obstore import delete

        if self._folder is None and keys:
            with self._translating(), suppress(FileNotFoundError):
                self._asked(partial(delete, self._store, list(keys)))
                return
        # A folder, or a server that refuses a list with an object that is gone, as Azure does.
        for key in keys:
            with self._translating(), suppress(FileNotFoundError):
                self._asked(partial(delete, self._store, key))

    def _asked(self, ask: Callable[[], T]) -> T:
        """Return the answer to a request. Ctrl-C ends the wait for a server; a folder answers at once."""
        return ask() if self._folder is not None else answered(ask)

    def _sync(self, key: str) -> None:
        """Make a new file of a folder durable, with its name and those of its folders."""
        path = os.path.join(self._folder or "", key)
        try:
            above = list(_folders_above(path, self._folder or ""))
            # The name of a folder, and those of the folders above it, need to be made durable only once.
            for each in (path, *(above[:1] if above[0] in self._synced else above)):
                fd = os.open(each, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
            self._synced.add(above[0])
        except OSError as error:
            raise RemoteFailed(self.url, _first_line(error)) from error

    @contextmanager
    def _translating(self, key: str = "") -> Iterator[None]:
        """Translate the errors of `obstore`. `key`: the object that is read ("": none)."""
        from obstore.exceptions import BaseError

        try:
            yield
        except FileNotFoundError as error:
            if not key:
                raise RemoteFailed(self.url, _first_line(error)) from error
            raise ObjectMissing(self.url, key) from error
        except (BaseError, OSError, ValueError) as error:
            raise RemoteFailed(self.url, _reason(error)) from error


def _may_be_unencrypted() -> bool:
    """Return whether the environment allows a connection without TLS, as to a server on this machine."""
    names = ("AWS_ALLOW_HTTP", "AZURE_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP")
    return any(os.environ.get(name, "").lower() in {"1", "true", "yes"} for name in names)


def _folders_above(path: str, top: str) -> Iterator[str]:
    while len(path) > len(top):
        path = os.path.dirname(path)
        yield path


def _parts(url: str) -> SplitResult:
    """Return the parts of a URL that a remote may have. Raises RemoteUrlRefused."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise RemoteUrlRefused(url, str(error)) from error
    if os.path.isabs(url):
        raise RemoteUrlRefused(url, f"a folder is named by a URL: file://{quote(url)}")
    if parts.scheme not in SCHEMES:
        raise RemoteUrlRefused(url, f"it has to begin with one of {', '.join(f'{each}://' for each in SCHEMES)}")
    if parts.username or parts.password or parts.query or parts.fragment:
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        raise RemoteUrlRefused(shown, "it has more than a place: keys belong in the environment, never in a URL")
    if parts.scheme != "file" and not parts.netloc:
        raise RemoteUrlRefused(url, "it names no bucket")
    if any(part in {".", ".."} for part in parts.path.split("/")) or re.search(r"[\0-\x1f\x7f]", url):
        raise RemoteUrlRefused(url, "it has `..` or a control character in it")
    return parts


def _reason(error: Exception) -> str:
    said = str(error)
    if any(word in said for word in _TIME_ERRORS):
        return "the clock of this machine differs too much from that of the bucket. Set it, and try again"
    if type(error).__name__ in {"PermissionDeniedError", "UnauthenticatedError"} or any(
        word in said for word in _KEY_ERRORS
    ):
        return "the bucket does not accept the key in the environment, or the key may not do this"
    return _first_line(error)


def _first_line(error: Exception) -> str:
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return said[:400]
