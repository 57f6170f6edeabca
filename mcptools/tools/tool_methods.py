"""Map the name of each tool to the method of a family that carries it out.

The names are those of `mcptools.catalog.tool_list`, which has the traits that clients may know. A method's signature is
its tool's input, its docstring is the tool's description, and its Answer holds the structured content and the text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mcptools.answers.edits import Answer
from mcptools.tools.backups import BackupTools
from mcptools.tools.calls.notes import collision_notes
from mcptools.tools.comments import CommentTools
from mcptools.tools.context import ToolContext
from mcptools.tools.editing import EditingTools
from mcptools.tools.history import HistoryTools
from mcptools.tools.patch_strategies import PatchStrategyTools
from mcptools.tools.patching import PatchTools
from mcptools.tools.reading import ReadingTools
from mcptools.tools.review.review_tools import ReviewTools
from mcptools.tools.searching import SearchTools
from mcptools.tools.undoing import UndoTools

__all__ = ["REVIEW_METHODS", "TOOL_METHODS", "ToolMethod"]


@dataclass(frozen=True, slots=True)
class ToolMethod:
    """A method of a family of tools, not bound to a context yet."""

    family: Callable[[ToolContext], object]
    function: Callable[..., Answer[Any]]
    is_for_model: bool = True  # False: only a client's window may call it, so that an agent gets no notes

    def call(self, context: ToolContext, /, *args: object, **arguments: object) -> Answer[Any]:
        """Carry the tool out in a context. Raises Failure."""
        answer = self.function(self.family(context), *args, **arguments)
        notes = collision_notes(context) if self.is_for_model else ()
        return replace(answer, notes=(*answer.notes, *notes)) if notes else answer


TOOL_METHODS: Final[Mapping[str, ToolMethod]] = {
    "read_file": ToolMethod(ReadingTools, ReadingTools.read_file),
    "read_text_file": ToolMethod(ReadingTools, ReadingTools.read_text_file),
    "read_multiple_files": ToolMethod(ReadingTools, ReadingTools.read_multiple_files),
    "read_file_by_line": ToolMethod(ReadingTools, ReadingTools.read_file_by_line),
    "read_file_by_keyword": ToolMethod(ReadingTools, ReadingTools.read_file_by_keyword),
    "list_directory": ToolMethod(ReadingTools, ReadingTools.list_directory),
    "get_file_info": ToolMethod(ReadingTools, ReadingTools.get_file_info),
    "list_allowed_directories": ToolMethod(ReadingTools, ReadingTools.list_allowed_directories),
    "directory_tree": ToolMethod(SearchTools, SearchTools.directory_tree),
    "search_files": ToolMethod(SearchTools, SearchTools.search_files),
    "grep_files": ToolMethod(SearchTools, SearchTools.grep_files),
    "list_edits": ToolMethod(HistoryTools, HistoryTools.list_edits),
    "show_edit": ToolMethod(HistoryTools, HistoryTools.show_edit),
    "create_directory": ToolMethod(EditingTools, EditingTools.create_directory),
    "write_file": ToolMethod(EditingTools, EditingTools.write_file),
    "edit_file_diff": ToolMethod(EditingTools, EditingTools.edit_file_diff),
    "multi_edit_text_file": ToolMethod(EditingTools, EditingTools.multi_edit_text_file),
    "edit_text_file": ToolMethod(EditingTools, EditingTools.edit_text_file),
    "move_file": ToolMethod(EditingTools, EditingTools.move_file),
    "delete_file": ToolMethod(EditingTools, EditingTools.delete_file),
    "Undo": ToolMethod(UndoTools, UndoTools.Undo),
    "answer_comment": ToolMethod(CommentTools, CommentTools.answer_comment),
    "apply_patch": ToolMethod(PatchTools, PatchTools.apply_patch),
    "validate_patch": ToolMethod(PatchTools, PatchTools.validate_patch),
    "revert_patch": ToolMethod(PatchTools, PatchTools.revert_patch),
    "generate_patch": ToolMethod(PatchTools, PatchTools.generate_patch),
    "inspect_patch": ToolMethod(PatchTools, PatchTools.inspect_patch),
    "apply_patches": ToolMethod(PatchStrategyTools, PatchStrategyTools.apply_patches),
    "backup_file": ToolMethod(BackupTools, BackupTools.backup_file),
    "restore_backup": ToolMethod(BackupTools, BackupTools.restore_backup),
}
"""The methods of the tools that `--tools all` offers."""

REVIEW_METHODS: Final[Mapping[str, ToolMethod]] = {
    "review_edits": ToolMethod(ReviewTools, ReviewTools.review_edits),
    "review_page": ToolMethod(ReviewTools, ReviewTools.review_page, is_for_model=False),
    "review_decide": ToolMethod(ReviewTools, ReviewTools.review_decide, is_for_model=False),
    "review_undo": ToolMethod(ReviewTools, ReviewTools.review_undo, is_for_model=False),
}
"""The methods of the tools of the review in a client's window."""
