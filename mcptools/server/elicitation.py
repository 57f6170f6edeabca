"""Asking: what a client's program is asked for its roots and its person for approval, and what counts as an answer.

Whatever else a client answers, an error or what fits no question, is a refusal of the call for which it was asked: its
model has to be told. A root that is no directory of this machine is no such thing; it only means nothing here.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.elicitation import AcceptedElicitation
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import ListRootsRequest, ListRootsResult, Root
from pydantic import BaseModel, Field, ValidationError, model_validator

from mcptools.catalog.acp import PATHS
from mcptools.edit.display import cut, one_line, shown
from mcptools.model.failures import Failure, FailureKind

__all__ = ["NO_ANSWER", "Approval", "addresses", "approval", "approval_question", "roots_of", "with_readable_roots"]

NO_ANSWER: Final = "What the client sent for the person's answer is none, so this is not approved; nothing was changed"

_MOST_TOLD: Final = 10
"""Files that a person is told of."""

_LONGEST: Final = 500
"""Characters of a name that a person is told."""

_NOWHERE: Final = "file://nowhere.invalid/"
"""The address of a directory that no machine has."""


class Approval(BaseModel):
    """What a person says of a tool that the agent wants to use.

    Who accepts has said so by that: a client need not send what its form left as it was. What answers another question
    is none to this.
    """

    approve: bool = Field(default=True, description="Whether it shall go ahead")

    @model_validator(mode="before")
    @classmethod
    def _answers_this(cls, said: Any) -> Any:  # noqa: ANN401 - whatever a client sends
        if said and "approve" not in said:
            raise ValueError("that answers another question")
        return said


def approval_question(tool: str, title: str, arguments: Mapping[str, object]) -> str:
    """Return what an agent wants to do, in words for the person who is to decide on it: a tool, and on which files."""
    named = [(name, arguments[name]) for name in PATHS if name in arguments]
    match arguments.get("patches"):
        case list(patches):
            named += dict.fromkeys(("file_path", getattr(patch, "file_path", None)) for patch in patches)
    told = [f"{name}: {cut(one_line(shown(path)), _LONGEST)}" for name, path in named if isinstance(path, str) and path]
    if len(told) > _MOST_TOLD:
        told = [*told[:_MOST_TOLD], f"and {len(told) - _MOST_TOLD} more"]
    files = f" ({', '.join(told)})" if told else ""
    return f"use {tool}{files}: {title}"


class _Root(BaseModel):
    uri: str  # of any scheme, where the SDK refuses all roots if one is no file's


class _Roots(BaseModel):
    roots: list[_Root]


async def roots_of(context: Context[Any, Any]) -> tuple[str, ...]:
    """Ask a client on its connection for its roots, and return their addresses. Raises Failure."""
    # Over HTTP the question goes where the client waits for its answer: it need not listen anywhere else.
    request = ServerMessageMetadata(related_request_id=context.request_context.request_id)
    try:
        found = await context.session.send_request(ListRootsRequest(), _Roots, metadata=request)
    except MCPError as error:
        raise _roots_refused(f"answered with an error: {one_line(shown(error.message))}") from error
    except ValidationError as error:
        raise _roots_refused("its answer lists none") from error
    return tuple(root.uri for root in found.roots)


def addresses(found: ListRootsResult) -> tuple[str, ...]:
    """Return the addresses of roots that came with a call."""
    return tuple(str(root.uri) for root in found.roots)


async def approval(context: Context[Any, Any], question: str) -> Approval:
    """Ask a client's person on its connection. Raises Failure where what comes back is no answer."""
    try:
        outcome = await context.elicit(question, Approval)
    except MCPError as error:
        message = f"{NO_ANSWER} (it is an error: {one_line(shown(error.message))})"
        raise Failure(FailureKind.NOT_APPROVED, message) from error
    except ValueError as error:
        raise Failure(FailureKind.NOT_APPROVED, NO_ANSWER) from error
    return outcome.data if isinstance(outcome, AcceptedElicitation) else Approval(approve=False)


def with_readable_roots(request: ServerRequestContext[Any, Any]) -> ServerRequestContext[Any, Any]:
    """Return a request, of the era in which answers come with it, without roots for which the SDK would refuse it."""
    answers = (request.params or {}).get("inputResponses")
    if not isinstance(answers, Mapping):
        return request
    read = {name: _readable(answer) for name, answer in answers.items()}
    return request if read == answers else replace(request, params={**(request.params or {}), "inputResponses": read})


def _readable(answer: object) -> object:
    """Return an answer in which each root that is no file's lies nowhere: without it, a client would name none."""
    match answer:
        case {"roots": list(roots), **others}:
            return {**others, "roots": [_read(root) for root in roots]}
    return answer


def _read(root: object) -> object:
    match root:
        case {"uri": str(), **others}:
            try:
                Root.model_validate(root, by_name=False)
            except ValidationError:
                return {**others, "uri": _NOWHERE}
    return root


def _roots_refused(what: str) -> Failure:
    hint = "Nothing is allowed until it names them: that is for whoever runs the client to mend."
    return Failure(FailureKind.PERMISSION_DENIED, f"The client was asked for its roots, and {what}", hint=hint)
