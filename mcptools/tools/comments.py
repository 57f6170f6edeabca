"""List reviewers' comments, and answer them."""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Final

from mcptools.answers.edits import Answer
from mcptools.answers.reading import AnswerGiven, CommentAnswered, CommentListed
from mcptools.edit.display import cut, one_line, shown
from mcptools.files.workspaces import Directories
from mcptools.model.failures import Failure, FailureKind
from mcptools.tools.calls.tracked_calls import refuse_reserved
from mcptools.tools.context import ConversationArgument, ToolContext, absolute, converting_errors
from objstore import MAX_TEXT, CasError, CommentView, NoSuchName, Workspace

__all__ = ["CommentTools", "comment_line", "comment_listed", "list_comments", "mark_listed"]

_MOST_LISTED: Final = 20
"""Comments in one answer; further ones are in the next, once these are answered or resolved."""

_LONGEST_TEXT: Final = 1000
"""Characters of a comment, or of an answer to it, in a list."""


class CommentTools:
    """The tool that answers a reviewer's comment."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def answer_comment(
        self,
        comment: Annotated[int, "The comment's number"],
        text: Annotated[str, "What you say"],
        mcp_conversation_id: ConversationArgument = "",
        directory: Annotated[str, "Which allowed directory, if there are several"] = "",
    ) -> Answer[CommentAnswered]:
        """Answer a reviewer's comment, which list_edits shows with its number. Only the reviewer resolves it."""
        refuse_reserved(mcp_conversation_id)
        if not text.strip() or len(text) > MAX_TEXT:
            wrong = f"is longer than {MAX_TEXT} characters" if text.strip() else "is empty"
            raise Failure(FailureKind.INVALID_REQUEST, f"text {wrong}")
        missing = Failure(FailureKind.INVALID_REQUEST, f"No comment has the number {comment} here", comment=comment)
        roots = self._context.directories.roots
        if not directory and len(roots) > 1:
            hint = self._context.directories.listed()
            raise Failure(FailureKind.INVALID_REQUEST, "Give directory: several directories are served", hint=hint)
        with converting_errors(directory or "."):
            workspace = self._context.directories.recorded_of(directory or next(iter(roots), "."))
            if workspace is None:
                raise missing
            try:
                about = workspace.comments.get(comment)
                if not self._context.directories.allows(workspace, about.path):
                    raise missing
                who = self._context.session.client.get("client", "")
                view = workspace.comments.answer(
                    comment, text, who=who, conversation=mcp_conversation_id, by_agent=True
                )
            except NoSuchName:
                raise missing from None
        answer = view.answers[-1]
        return Answer(
            content=CommentAnswered(
                comment=view.number,
                answer=answer.number,
                path=absolute(workspace, view.path),
                mcp_conversation_id=answer.comment.conversation,
            ),
            text=f"Answered comment {view.number}; the reviewer sees it next to the lines.",
        )


def list_comments(directories: Directories, workspace: Workspace, path: str = "") -> list[CommentView]:
    """Return the comments that wait for an agent's answer, oldest first, on files that the client may see.

    `path`: only on this file, named as in the workspace ("": on any).
    """
    return [
        view
        for view in workspace.comments.all()
        if view.word in {"open", "sent"}
        and path in {"", view.path, os.fsdecode(view.comment.path)}
        and directories.allows(workspace, view.path)
    ][:_MOST_LISTED]


def mark_listed(workspace: Workspace, views: Sequence[CommentView], conversation: str) -> None:
    """Record that the client has listed comments, if that can be recorded. Those for other agents are sent to these."""
    new = [each.number for view in views for each in (view, *view.answers) if each.state.value == "open"]
    with suppress(CasError, OSError):  # a client that may only read sees them once more
        if new:
            workspace.comments.mark_listed(new, conversation)


def comment_listed(workspace: Workspace, view: CommentView, longest: int = _LONGEST_TEXT) -> CommentListed:
    """Return a comment as it is listed. `longest`: characters of each text that are included (0: all)."""

    def words(text: str) -> str:
        return shown(cut(text, longest) if longest else text)

    first, last = view.lines
    return CommentListed(
        comment=view.number,
        state=view.word,
        path=absolute(workspace, view.path),
        first_line=first,
        last_line=last,
        gone=not view.is_there,
        text=words(view.comment.text),
        answers=[
            AnswerGiven(by="agent" if answer.is_by_agent else "person", text=words(answer.comment.text))
            for answer in view.answers
        ],
    )


def comment_line(comment: CommentListed) -> str:
    """Return a comment as one line of text."""
    lines = f":{comment.first_line}-{comment.last_line}" if comment.first_line else ""
    gone = " (these lines are gone)" if comment.gone else ""
    answers = "".join(f" / {answer.by}: {one_line(answer.text)}" for answer in comment.answers)
    return f"comment {comment.comment} {one_line(comment.path)}{lines}{gone}: {one_line(comment.text)}{answers}"
