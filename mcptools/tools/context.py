"""The context that all tools of one call share: directories, session, limits and the approval of the person.

Each family of tools is a class of its own and gets this context in its constructor. The module also has what all
families use to name files: argument types, absolute paths, hashes, and errors converted to failures.
"""

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from mcptools.edit.display import shown
from mcptools.files.workspaces import Directories
from mcptools.model.failures import failure_of
from mcptools.model.limits import ServerLimits
from mcptools.model.session import LastChange, Session
from objstore import CallInfo, CasError, Content, EditView, Files, Unit, Workspace, is_binary, shown_lines

__all__ = [
    "ApprovalContext",
    "ConversationArgument",
    "GivenCall",
    "PathArgument",
    "RebaseArgument",
    "Recorded",
    "ToolContext",
    "absolute",
    "converting_errors",
    "sha256",
]

PathArgument: TypeAlias = Annotated[str, "Absolute, or below the only allowed directory"]
RebaseArgument: TypeAlias = Annotated[bool, "Carry the change over if the file has changed since you read it"]
ConversationArgument: TypeAlias = Annotated[str, "The id that this turn's first change returned"]

Recorded: TypeAlias = list[tuple[Workspace, EditView]]
"""The edits that a call has recorded so far, each with its workspace."""


@dataclass(frozen=True, slots=True)
class ApprovalContext:
    """The facts on which a person was asked before the session's last change is undone."""

    change: LastChange | None  # None: there was nothing to undo, and so nothing to ask
    accepted: frozenset[Unit] = frozenset()  # parts of the change that a reviewer had accepted by then


@dataclass(frozen=True, slots=True)
class GivenCall:
    """A call of a tool as the client sent it. Hooks of the agent's program may have announced it."""

    tool: str
    arguments: Mapping[str, object]
    _calls: dict[str, CallInfo | None] = field(default_factory=dict)  # by the root of a workspace

    def announced_in(self, workspace: Workspace) -> CallInfo | None:
        """Return the call of the agent's own session that this one is, with the turn that it belongs to.

        None: no hook announced it, or what hooks noted can't be read, which stops no tool.
        """
        if workspace.root not in self._calls:
            self._calls[workspace.root] = None
            with suppress(CasError, OSError):
                self._calls[workspace.root] = workspace.hooks.server_calls.take(self.tool, self.arguments)
        return self._calls[workspace.root]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The context of the tools of one call. Several threads may share it."""

    directories: Directories
    session: Session
    limits: ServerLimits
    may_write: bool = True  # False: no tool is offered that changes anything
    given: GivenCall | None = None  # None: no client sent it
    approval: ApprovalContext | None = None  # None: the person was asked nothing that depends on the last change
    recorded: Recorded = field(default_factory=list)
    has_window: bool = False  # the client shows windows of a server (MCP Apps)
    is_open_to_all: bool = False  # every program of this machine can call tools
    began: int = field(default_factory=lambda: time.time_ns() // 1_000)  # µs since 1970-01-01 UTC

    def read(self, path: str) -> tuple[Files, Content]:
        """Return a file's current bytes and the directory it is in; the session does not count it as read yet.

        Raises Failure.
        """
        with converting_errors(path):
            files = self.directories.files_of(path)
            return files, files.read(path, limit=self.limits.max_file_bytes)

    def is_binary(self, content: bytes) -> bool:
        """Return whether a file with these bytes is not text, by the limits; UTF-16 with a byte-order mark is text."""
        return self.has_binary_bytes(shown_lines(content))

    def has_binary_bytes(self, content: bytes) -> bool:
        """Return whether these bytes are no text in UTF-8 or the like, by the limits."""
        return is_binary(content, checked=self.limits.binary_check_bytes, share=self.limits.non_text_threshold)


@contextmanager
def converting_errors(*paths: str) -> Iterator[None]:
    """Convert errors of the store and the system to failures that name `paths` as the client wrote them."""
    try:
        yield
    except (CasError, OSError) as error:
        raise failure_of(error, *paths) from error


def absolute(workspace: Files | Workspace, name: str) -> str:
    """Return the absolute path of a file or folder, given its canonical path in a directory."""
    return shown(workspace.root if name == "." else f"{workspace.root.rstrip('/')}/{name}")


def sha256(content: bytes) -> str:
    """Return the SHA-256 of `content`, in hex."""
    return hashlib.sha256(content).hexdigest()
