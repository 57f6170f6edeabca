"""Compare two texts up to formatting: whether a formatter may have made one of the other.

It is a module of its own because it compares texts without knowing whose edits they are.
"""

import re
from typing import Final

from objstore.text.unified_diff import is_either_binary

__all__ = ["is_reformatted"]

_ESCAPED_QUOTE: Final = re.compile(rb"\\(['\"`])")
_LAST_COMMA: Final = re.compile(rb",(?=[)\]}>])")
_QUOTED_KEY: Final = re.compile(rb'(?<=[{,])"([A-Za-z_$][A-Za-z0-9_$]*)"(?=:)')
_IMPORT: Final = re.compile(rb"[ \t]*(?:import|from|use|using|#[ \t]*include)\b")
_WHITESPACE: Final = b" \t\r\n\f\v"
_QUOTES: Final = bytes.maketrans(b"'`", b'""')


def is_reformatted(before: bytes, after: bytes) -> bool:
    """Return whether two different texts have the same tokens, as far as formatters keep them.

    Everything but whitespace must be the same in the same order, except for the kind of quotes, quotes around a key,
    commas at the end of a list, parentheses, semicolons, and the order of lines that import something. Binary texts are
    never reformatted.
    """
    if before == after or is_either_binary(before, after):
        return False
    return _tokens(before) == _tokens(after) or _tokens_by_import(before) == _tokens_by_import(after)


def _tokens(text: bytes) -> bytes:
    plain = _ESCAPED_QUOTE.sub(rb"\1", text).translate(_QUOTES)
    dense = _LAST_COMMA.sub(b"", plain.translate(None, _WHITESPACE)).translate(None, b";()")
    return _QUOTED_KEY.sub(rb"\1", dense)


def _tokens_by_import(text: bytes) -> tuple[list[bytes], bytes]:
    """Return the tokens of each line that imports something, sorted, and those of the other lines."""
    lines = text.splitlines(keepends=True)
    imports = sorted(_tokens(line) for line in lines if _IMPORT.match(line))
    return imports, _tokens(b"".join(line for line in lines if not _IMPORT.match(line)))
