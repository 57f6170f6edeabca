"""The catalogue: every tool by name, with what a client may know of it before calling it."""

from dataclasses import dataclass
from typing import Final

__all__ = ["TOOLS", "Traits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a client may know of a tool before it calls it."""

    title: str
    read_only: bool = False
    destructive: bool = False  # whether something may be gone afterwards that was there before
    idempotent: bool = False  # whether the same call again changes nothing more
    bare_errors: bool = False  # whether its failures are {"error": …} without "success": false
    flat_errors: bool = False  # whether they are {"success": false, "error": "…", "error_type": "…"} and more


TOOLS: Final = {
    "read_file": Traits(title="Read a file", read_only=True, idempotent=True),
    "read_text_file": Traits(title="Read a text file with line tags", read_only=True, idempotent=True),
    "list_directory": Traits(title="List a directory", read_only=True, idempotent=True),
    "create_directory": Traits(title="Create a directory", idempotent=True),
    "write_file": Traits(title="Write a file", destructive=True, idempotent=True),
    "edit_file_diff": Traits(title="Edit a file with a unified diff", destructive=True),
    "multi_edit_text_file": Traits(title="Edit a file by exact strings", destructive=True, bare_errors=True),
    "edit_text_file": Traits(title="Edit a text file by line tags", destructive=True),
    "move_file": Traits(title="Move a file", destructive=True),
    "delete_file": Traits(title="Delete a file", destructive=True, idempotent=True),
    "Undo": Traits(title="Undo your last change", destructive=True),
    "apply_patch": Traits(title="Apply a patch", destructive=True, flat_errors=True),
    "validate_patch": Traits(title="Validate a patch", read_only=True, idempotent=True, flat_errors=True),
    "revert_patch": Traits(title="Revert a patch", destructive=True, flat_errors=True),
    "generate_patch": Traits(title="Generate a patch", read_only=True, idempotent=True, flat_errors=True),
    "inspect_patch": Traits(title="Inspect a patch", read_only=True, idempotent=True, flat_errors=True),
    "apply_patches": Traits(title="Apply patches together", destructive=True, flat_errors=True),
    "backup_file": Traits(title="Back up a file", flat_errors=True),
    "restore_backup": Traits(title="Restore a backup", destructive=True, idempotent=True, flat_errors=True),
}
"""Every tool, as a method of `Tools`, in the order in which clients are told of them."""
