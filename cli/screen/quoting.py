"""Quote a word for a shell, which reads it back whole."""

import os
from typing import Final

from cli.screen.terminal import SHORT, visible

__all__ = ["numbered", "typed"]

_ASCII_SHOWN: Final = range(0x20, 0x7F)


def typed(word: str) -> str:
    """Return a word in the quotes that it needs; as `numbered` if it holds what can't be shown."""
    from shlex import quote

    return quote(word) if visible(word) == word else numbered(word)


def numbered(word: str) -> str:
    """Return a word in a shell's quotes ($'...') in which every character that is not ASCII is escaped by its number.

    bash, zsh and POSIX of 2024 support this form.
    """
    plain = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(_escaped(byte) for byte in os.fsencode(plain)) + "'"


def _escaped(byte: int) -> str:
    return chr(byte) if byte in _ASCII_SHOWN else SHORT.get(byte, f"\\x{byte:02x}")
