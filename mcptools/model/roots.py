"""Resolve the roots that a client names, and intersect them with the directories that the server may reach.

Roots narrow what the server may reach, and never widen it.
"""

import os
from collections.abc import Iterable, MutableMapping, Sequence
from pathlib import PurePath
from urllib.parse import unquote_to_bytes, urlsplit

from objstore import FileChanged, real_path

__all__ = ["intersected", "root_paths"]


def root_paths(addresses: Iterable[str], places: MutableMapping[str, str]) -> tuple[str, ...]:
    """Return the real paths of those roots that are directories of this machine, each once; ignore the others.

    `places`: the real path of each root when it was first resolved, by address; new roots are added. A root keeps that
    path, so that a link that replaces it later is not followed.
    """
    found: dict[str, None] = {}
    for address in addresses:
        path = places.get(address) or _path(address)
        if path is not None and os.path.isdir(path):  # noqa: PTH112 - a string, as those it is compared with
            found[places.setdefault(address, path)] = None
    return tuple(found)


def intersected(ceiling: Sequence[str], roots: Sequence[str]) -> dict[str, str]:
    """Return the directories that are within both, each with the innermost directory of `ceiling` that contains it."""
    shared: dict[str, str] = {}
    for allowed in sorted(ceiling, key=len):
        for root in roots:
            if PurePath(root).is_relative_to(allowed):
                shared[root] = allowed
            elif PurePath(allowed).is_relative_to(root):
                shared[allowed] = allowed
    return shared


def _path(address: str) -> str | None:
    """Return the real path that a file URI names, or None if it names no path on this machine."""
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
