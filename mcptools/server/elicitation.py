"""Ask a client's program for its roots and its person for approval, and check the answers.

An error, or an answer that does not fit the question, refuses the call for which the question was asked, so that the
model learns of it. A root that is not a directory of this machine is ignored.
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

__all__ = [
    "NO_ANSWER",
    "Approval",
    "addresses",
    "approval",
    "approval_question",
    "asks_in_forms",
    "roots_of",
    "unanswerable_question",
    "with_readable_roots",
]

NO_ANSWER: Final = "The client sent no valid answer from the person, so this is not approved; nothing was changed"

_MOST_NAMED: Final = 10
"""Files that a question to a person names."""

_LONGEST: Final = 500
"""Characters of a name in a question."""

_NOWHERE: Final = "file://nowhere.invalid/"
"""The address of a directory that exists on no machine."""


class Approval(BaseModel):
    """A person's answer about a tool that the agent wants to use.

    Accepting the form is approval: a client need not send the fields that the person left unchanged. Content for other
    fields is not an answer to this question.
    """

    approve: bool = Field(default=True, description="Whether it shall go ahead")

    @model_validator(mode="before")
    @classmethod
    def _answers_this(cls, answer: Any) -> Any:  # noqa: ANN401 - whatever a client sends
        if answer and "approve" not in answer:
            raise ValueError("that answers another question")
        return answer


def approval_question(tool: str, title: str, arguments: Mapping[str, object]) -> str:
    """Return what an agent wants to do, worded for the person who decides on it: the tool and its files."""
    named = [(name, arguments[name]) for name in PATHS if name in arguments]
    match arguments.get("patches"):
        case list(patches):
            named += dict.fromkeys(("file_path", getattr(patch, "file_path", None)) for patch in patches)
    parts = [
        f"{name}: {cut(one_line(shown(path)), _LONGEST)}" for name, path in named if isinstance(path, str) and path
    ]
    if len(parts) > _MOST_NAMED:
        parts = [*parts[:_MOST_NAMED], f"and {len(parts) - _MOST_NAMED} more"]
    files = f" ({', '.join(parts)})" if parts else ""
    return f"use {tool}{files}: {title}"


def asks_in_forms(context: Context[Any, Any]) -> bool:
    """Return whether the client can ask its person to fill in a form."""
    asks = context.client_capabilities.elicitation if context.client_capabilities is not None else None
    return asks is not None and (asks.form is not None or asks.url is None)


def unanswerable_question(tool: str) -> Failure:
    """Return the refusal of a tool that needs a person's approval, for a client that can't ask."""
    message = f"{tool} needs a person's approval, and this client can't ask for it; nothing was changed"
    hint = (
        "Tell the person what you want to do. They can do it with `cas`, use a client that supports elicitation, or "
        "start the server without `required` in --approve."
    )
    return Failure(FailureKind.NOT_APPROVED, message, hint=hint)


class _Root(BaseModel):
    uri: str  # of any scheme; the SDK would refuse all roots if one is not a file URI


class _Roots(BaseModel):
    roots: list[_Root]


async def roots_of(context: Context[Any, Any]) -> tuple[str, ...]:
    """Ask a client on its connection for its roots, and return their addresses. Raises Failure."""
    # Over HTTP the question goes out on the stream of the request, where the client waits for the answer.
    request = ServerMessageMetadata(related_request_id=context.request_context.request_id)
    try:
        found = await context.session.send_request(ListRootsRequest(), _Roots, metadata=request)
    except MCPError as error:
        raise _roots_refused(f"answered with an error: {one_line(shown(error.message))}") from error
    except ValidationError as error:
        raise _roots_refused("its answer lists none") from error
    return tuple(root.uri for root in found.roots)


def addresses(found: ListRootsResult) -> tuple[str, ...]:
    """Return the addresses of the roots that a client sent with a call."""
    return tuple(str(root.uri) for root in found.roots)


async def approval(context: Context[Any, Any], question: str) -> Approval:
    """Ask a client's person on its connection. Raises Failure if the reply is not a valid answer."""
    try:
        outcome = await context.elicit(question, Approval)
    except MCPError as error:
        message = f"{NO_ANSWER} (it is an error: {one_line(shown(error.message))})"
        raise Failure(FailureKind.NOT_APPROVED, message) from error
    except ValueError as error:
        raise Failure(FailureKind.NOT_APPROVED, NO_ANSWER) from error
    return outcome.data if isinstance(outcome, AcceptedElicitation) else Approval(approve=False)


def with_readable_roots(request: ServerRequestContext[Any, Any]) -> ServerRequestContext[Any, Any]:
    """Return a request of the stateless protocol, which contains answers, without roots that the SDK would refuse."""
    answers = (request.params or {}).get("inputResponses")
    if not isinstance(answers, Mapping):
        return request
    read = {name: _readable(answer) for name, answer in answers.items()}
    return request if read == answers else replace(request, params={**(request.params or {}), "inputResponses": read})


def _readable(answer: object) -> object:
    """Return an answer with each root that is not a file URI replaced by one that exists nowhere.

    Removing such roots could leave none, which would mean that the client has no roots.
    """
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
    hint = "Nothing is allowed until it names them; whoever runs the client has to correct that."
    return Failure(FailureKind.PERMISSION_DENIED, f"The client was asked for its roots, and {what}", hint=hint)
