"""JSON values that are written the same everywhere: lines, texts, paths, hashes and times.

In text that is not UTF-8, U+FFFD replaces the invalid bytes: `cas cat` prints exact bytes.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from objstore.values.dates import date_of

if TYPE_CHECKING:
    from objstore.model.ids import BlobId

__all__ = [
    "Json",
    "beginning",
    "fields_shape",
    "hex_shape",
    "json_line",
    "path_shape",
    "text_of",
    "text_shape",
    "time_shape",
]

Json: TypeAlias = "bool | int | str | Sequence[Json] | dict[str, Json] | None"

_PATHS: Final = frozenset({"path", "source", "path_before", "path_after"})
"""Fields of which the bytes are the name of a file; those of all others are a hash."""


def json_line(shape: dict[str, Json]) -> bytes:
    """Return one JSON object as a line of ASCII."""
    return json.dumps(shape).encode() + b"\n"


def text_shape(text: str) -> str:
    """Return a text without what JSON can't hold: U+FFFD replaces each byte that is not UTF-8."""
    # Python holds such a byte as a lone surrogate; many JSON readers refuse a document with one.
    return text.encode(errors="surrogateescape").decode(errors="replace")


def fields_shape(value: Any) -> dict[str, Json]:  # noqa: ANN401 - of any class that `fastclass` makes
    """Return the fields of a value by name, in their order: hashes in hex, tuples as lists, enums by their values."""
    names: Sequence[str] = getattr(value, "_fields", type(value).__slots__)  # of a tuple or not
    return {name: _field_shape(name, getattr(value, name)) for name in names}


def _field_shape(name: str, content: object) -> Json:
    match content:
        case None | bool():
            return content
        case Enum():
            shape: Json = content.value
            return shape
        case int():
            return int(content)
        case str():
            return text_shape(content)
        case bytes():
            return text_shape(os.fsdecode(content)) if name in _PATHS else content.hex()
        case tuple() | list():
            return [_field_shape(name, each) for each in content]
        case Mapping():
            return {text_shape(key): _field_shape(name, each) for key, each in content.items()}
        case _:
            return fields_shape(content)


def text_of(lines: Iterable[bytes]) -> str:
    """Return lines as one text; U+FFFD replaces invalid bytes."""
    return b"".join(lines).decode(errors="replace")


def beginning(text: bytes, most: int) -> bytes:
    """Return at most the first `most` bytes of a text, without an incomplete character at the end."""
    end = most
    while len(text) > most and end > most - 3 and text[end] & 0xC0 == 0x80:  # noqa: PLR2004 - as UTF-8 goes on
        end -= 1
    return text[:end]


def path_shape(root: str, path: str) -> str:
    """Return the absolute path of a file in a workspace."""
    return text_shape(os.path.join(root, path))


def hex_shape(blob: "BlobId | None") -> str | None:
    """Return a hash in hex."""
    return None if blob is None else blob.hex()


def time_shape(microseconds: int) -> str:
    """Return a moment as UTC with microseconds."""
    return date_of(microseconds).isoformat(timespec="microseconds").replace("+00:00", "Z")
