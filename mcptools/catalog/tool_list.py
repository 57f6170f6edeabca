"""List every tool by name, with the traits that a client can know before it calls the tool, and sets of tools.

The advice that helps a model to choose among them is here as well.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = [
    "DEFAULT_SET",
    "REVIEW_TOOLS",
    "SETS",
    "TOOLS",
    "Traits",
    "chosen",
    "instructions",
    "offering",
    "with_review",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The traits of a tool that a client can know before it calls the tool."""

    title: str
    read_only: bool = False
    destructive: bool = False  # it may remove or replace content
    idempotent: bool = False  # repeating the call changes nothing more
    json_text: bool = False  # its text is its structured content, and its failures are flat, as document 004 defines
    for_model: bool = True  # False: only for the window that a client draws for a server (MCP Apps)


TOOLS: Final = {
    "read_file": Traits(title="Read a file", read_only=True, idempotent=True),
    "read_text_file": Traits(title="Read a text file with line tags", read_only=True, idempotent=True),
    "read_multiple_files": Traits(title="Read several files", read_only=True, idempotent=True),
    "read_file_by_line": Traits(title="Read lines of a file", read_only=True, idempotent=True),
    "read_file_by_keyword": Traits(title="Read the lines that hold a keyword", read_only=True, idempotent=True),
    "list_directory": Traits(title="List a directory", read_only=True, idempotent=True),
    "directory_tree": Traits(title="Show a directory as a tree", read_only=True, idempotent=True),
    "search_files": Traits(title="Find files by name", read_only=True, idempotent=True),
    "grep_files": Traits(title="Find lines in files", read_only=True, idempotent=True),
    "get_file_info": Traits(title="Describe a file", read_only=True, idempotent=True),
    "list_allowed_directories": Traits(title="List the allowed directories", read_only=True, idempotent=True),
    "list_edits": Traits(title="List recorded edits", read_only=True, idempotent=True),
    "show_edit": Traits(title="Show a recorded edit", read_only=True, idempotent=True),
    "create_directory": Traits(title="Create a directory", idempotent=True),
    "write_file": Traits(title="Write a file", destructive=True, idempotent=True),
    "edit_file_diff": Traits(title="Edit a file with a unified diff", destructive=True),
    "multi_edit_text_file": Traits(title="Edit a file by exact strings", destructive=True),
    "edit_text_file": Traits(title="Edit a text file by line tags", destructive=True),
    "move_file": Traits(title="Move a file", destructive=True),
    "delete_file": Traits(title="Delete a file", destructive=True, idempotent=True),
    "Undo": Traits(title="Undo your last change", destructive=True),
    "answer_comment": Traits(title="Answer a reviewer's comment"),
    "apply_patch": Traits(title="Apply a patch", destructive=True, json_text=True),
    "validate_patch": Traits(title="Validate a patch", read_only=True, idempotent=True, json_text=True),
    "revert_patch": Traits(title="Revert a patch", destructive=True, json_text=True),
    "generate_patch": Traits(title="Generate a patch", read_only=True, idempotent=True, json_text=True),
    "inspect_patch": Traits(title="Inspect a patch", read_only=True, idempotent=True, json_text=True),
    "apply_patches": Traits(title="Apply patches together", destructive=True, json_text=True),
    "backup_file": Traits(title="Back up a file", json_text=True),
    "restore_backup": Traits(title="Restore a backup", destructive=True, idempotent=True, json_text=True),
}
"""Every tool, in the order in which clients see them. `mcptools.tools.tool_methods` has the method of each."""

REVIEW_TOOLS: Final = {
    "review_edits": Traits(title="Review edits", read_only=True, idempotent=True),
    "review_page": Traits(title="Show a page of a review", read_only=True, for_model=False),
    "review_decide": Traits(title="Decide on edits", destructive=True, for_model=False),
    "review_undo": Traits(title="Take a decision back", destructive=True, for_model=False),
}
"""The tools of the review in a window, after the others and only for clients that show windows.

`review_edits` is for every client if it is named.
"""

_REVIEW_WITH: Final = frozenset({"list_edits", "review_edits"})
"""With any of these, the tools of the review are offered; a server without them is not about reviews."""

_READING: Final = (
    "read_file",
    "read_multiple_files",
    "read_file_by_line",
    "read_file_by_keyword",
    "list_directory",
    "directory_tree",
    "search_files",
    "get_file_info",
    "list_allowed_directories",
)
_REVIEW: Final = ("list_edits", "show_edit", "answer_comment")

DEFAULT_SET: Final = "default"
_ALL: Final = "all"

SETS: Final[Mapping[str, tuple[str, ...]]] = {
    DEFAULT_SET: (
        "read_file",
        "list_directory",
        "directory_tree",
        "search_files",
        "grep_files",
        *_REVIEW,
        "create_directory",
        "write_file",
        "multi_edit_text_file",
        "move_file",
        "delete_file",
        "Undo",
    ),
    _ALL: tuple(TOOLS),
    "classic": (*_READING, "create_directory", "write_file", "edit_file_diff", "move_file", "delete_file"),
    "multi": ("read_file", "multi_edit_text_file", "write_file", "Undo"),
    "hashline": ("read_text_file", "read_file_by_keyword", "read_file_by_line", "edit_text_file", "write_file", "Undo"),
    "patch": (
        "apply_patch",
        "validate_patch",
        "revert_patch",
        "generate_patch",
        "inspect_patch",
        "backup_file",
        "restore_backup",
    ),
    "read": (*_READING, "grep_files", "list_edits", "show_edit"),
    "review": _REVIEW,
}
"""Sets of tools. A model chooses worse from a longer list, and every description costs it tokens.

`classic` and `patch` are the tools of documents 000 and 004; `multi` and `hashline` those of 001 and 003 with what is
needed in addition.
"""


_NAMED: Final = TOOLS | {name: traits for name, traits in REVIEW_TOOLS.items() if traits.for_model}
"""The tools that a person can name."""


def chosen(names: Iterable[str], *, read_only: bool = False) -> dict[str, Traits]:
    """Return the tools named in `names`, one by one or as sets, in the order of TOOLS and REVIEW_TOOLS.

    `read_only`: only those that change nothing. Raises KeyError with a name that is neither a tool's nor a set's.
    """
    wanted: set[str] = set()
    for name in names:
        if name not in _NAMED and name not in SETS:
            raise KeyError(name)
        wanted.update(SETS.get(name, (name,)))
    return {name: traits for name, traits in _NAMED.items() if name in wanted and (traits.read_only or not read_only)}


def with_review(offered: Mapping[str, Traits]) -> dict[str, Traits]:
    """Return the offered tools, and those of the review in a window if they go with these.

    Where no tool changes anything, those that decide are left out.
    """
    if _REVIEW_WITH.isdisjoint(offered):
        return {**offered}
    is_read_only = all(traits.read_only for traits in offered.values())
    added = {name: traits for name, traits in REVIEW_TOOLS.items() if traits.read_only or not is_read_only}
    return {**offered, **added}


# ---- advice to a model

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
    others = [name for name, tools in SETS.items() if not set(tools) <= set(offered)]
    sets = [f"The person can start the server with other sets of tools: {', '.join(others)} (--tools)."]
    return "\n".join([*lines, *_ALWAYS, *(sets if others else [])])


def offering(name: str, offered: Mapping[str, Traits]) -> tuple[str, str] | None:
    """Return how a person starts a server that offers a tool, and what does its work here ("": nothing does).

    `offered`: the tools of this server, without the one with this `name`. None: there is no such tool.
    """
    traits = _NAMED.get(name)
    if traits is None:
        return None
    smallest = next((each for each, tools in SETS.items() if name in tools and each != _ALL), name)
    way = f"start the server with `--tools {smallest}`" + (f" (or `{_ALL}`)" if name in SETS[_ALL] else "")
    if not traits.read_only and all(each.read_only for each in offered.values()):
        way += ", and without `--read-only`"
    choices = [(purpose, [each for each in names if each in offered]) for purpose, names in _CHOICES if name in names]
    return way, "".join(f"{purpose} with {' or '.join(names)}." for purpose, names in choices if names)
