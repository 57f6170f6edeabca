"""Lines of JSON, for the commands that print what is stored."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from objstore import Json


__all__ = ["json_row", "json_text"]


def json_row(shape: "dict[str, Json]") -> bytes:
    """Return a line of JSON."""
    from objstore import json_line

    return json_line(shape)


def json_text(text: str) -> str:
    """Return a text as JSON has it."""
    from objstore import text_shape

    return text_shape(text)
