"""Roots: the directories that a client says it works in. They narrow what a server may reach, and never widen it."""

import os
from collections.abc import Iterable, MutableMapping, Sequence
from pathlib import PurePath
from urllib.parse import unquote_to_bytes, urlsplit

from objstore import FileChanged, real_path

__all__ = ["intersected", "root_paths"]


def root_paths(addresses: Iterable[str], places: MutableMapping[str, str]) -> tuple[str, ...]:
    """Return where the roots really are that are directories of this machine, each once; others mean nothing here.

    `places`: where roots were when they were first looked for, by address; new ones are put in. There they stay, so
    that a link which is put in the place of one later leads nowhere.
    """
    found: dict[str, None] = {}
    for address in addresses:
        path = places.get(address) or _path(address)
        if path is not None and os.path.isdir(path):  # noqa: PTH112 - a string, as those it is compared with
            found[places.setdefault(address, path)] = None
    return tuple(found)


def intersected(ceiling: Sequence[str], roots: Sequence[str]) -> dict[str, str]:
    """Return the directories that lie within both, each with the one of `ceiling` that it lies in: the innermost."""
    shared: dict[str, str] = {}
    for allowed in sorted(ceiling, key=len):
        for root in roots:
            if PurePath(root).is_relative_to(allowed):
                shared[root] = allowed
            elif PurePath(allowed).is_relative_to(root):
                shared[allowed] = allowed
    return shared


def _path(address: str) -> str | None:
    """Return the real path that a file address names; None: it names none here."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or parts.query or parts.fragment:
        return None
    path = os.fsdecode(unquote_to_bytes(parts.path))
    if not path.startswith("/") or "\0" in path:
        return None
    try:
        return real_path(path)
    except FileChanged:
        return None
