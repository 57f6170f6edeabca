"""First lines of prompts, cut to the columns that a terminal has left."""

from __future__ import annotations

from typing import Final

from cli.screen.terminal import beginning_of, shown_name, width_of_terminal

__all__ = ["first_line", "quoted_prompt"]

_LONGEST: Final = 72
"""Columns of a prompt that are shown where the output is no terminal."""

_LEAST: Final = 12
"""Columns of a prompt that are shown even on a narrow terminal."""

_QUOTES: Final = 4
"""Columns of the quotes and of the spaces before them."""


def first_line(prompt: str) -> str:
    """Return the first line of a prompt that says something, fit for a terminal."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    return shown_name(line) if line else ""


def quoted_prompt(prompt: str, used: int) -> str:
    """Return the first line of a prompt in quotes, after two spaces; nothing if it says nothing.

    `used`: the columns of the rest of the line.
    """
    said, width = first_line(prompt), width_of_terminal()
    said = beginning_of(said, max(_LEAST, width - used - _QUOTES) if width else _LONGEST)
    return f"  {said}" if said.startswith('"') else f'  "{said}"' if said else ""
