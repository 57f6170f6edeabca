"""Call the tools without a server: each tool of the catalogue is an attribute of one object."""

from collections.abc import Callable
from functools import partial
from typing import Any

from mcptools.answers.edits import Answer
from mcptools.files.workspaces import Directories
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
from mcptools.tools.context import ApprovalContext, ToolContext
from mcptools.tools.tool_methods import TOOL_METHODS

__all__ = ["Tools"]


class Tools:
    """The tools of one session over some directories."""

    def __init__(
        self,
        directories: Directories,
        session: Session,
        limits: ServerLimits,
        *,
        approval: ApprovalContext | None = None,
    ) -> None:
        self._context = ToolContext(directories, session, limits, approval=approval)

    def __getattr__(self, name: str) -> Callable[..., Answer[Any]]:
        return partial(TOOL_METHODS[name].call, self._context)
