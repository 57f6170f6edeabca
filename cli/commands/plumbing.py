"""Lines of JSON, for the commands that print what is stored."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.json_shapes.values import Json


__all__ = ["json_row", "json_text"]


def json_row(shape: "dict[str, Json]") -> bytes:
    """Return a line of JSON."""
    from cli.json_shapes.values import json_line

    return json_line(shape)


def json_text(text: str) -> str:
    """Return a text as JSON has it."""
    from cli.json_shapes.values import text_shape

    return text_shape(text)
