"""Write the instructions that tell a model how to choose among the offered tools."""

from collections.abc import Collection, Sequence
from typing import Final

__all__ = ["instructions"]

_CHOICES: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("Find files by name", ("search_files",)),
    ("Find text in files", ("grep_files", "read_file_by_keyword")),
    ("Look into directories", ("list_directory", "directory_tree")),
    ("Read", ("read_file", "read_text_file")),
    ("Change parts of a file", ("multi_edit_text_file", "edit_text_file", "edit_file_diff", "apply_patch")),
    ("Create a file or replace all of it", ("write_file",)),
    ("Take back your own last change", ("Undo",)),
    ("See what the reviewer decided and said", ("list_edits",)),
)
"""Purposes, and the tools for each, the one to choose first at the front."""

_ALWAYS: Final = (
    "A refused call has changed nothing; its hint says how to correct it.",
    "Every change is recorded, and a person reviews it: only the person accepts or rejects.",
    "The first change of a turn returns an mcp_conversation_id: pass it with every further change of the same turn.",
)


def instructions(offered: Collection[str]) -> str:
    """Return the server's instructions; they name only tools that are `offered`."""
    choices = [(purpose, [name for name in names if name in offered]) for purpose, names in _CHOICES]
    lines = [f"{purpose}: {', else '.join(names)}." for purpose, names in choices if names]
    return "\n".join([*lines, *_ALWAYS])
