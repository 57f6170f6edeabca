"""Line ends: a file keeps those that it has, in what we put into it too."""

import re
from typing import Final

__all__ = ["line_end"]

_LINE_END: Final = re.compile(r"\r?\n")


def line_end(text: str) -> str:
    """Return what ends the text's first line; a line feed where there is only one line."""
    found = _LINE_END.search(text)
    return "\n" if found is None else found.group()
