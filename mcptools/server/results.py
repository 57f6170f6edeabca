"""Describe a tool, and the result of a call, a success or a failure, in the protocol's types."""

import json
from typing import TYPE_CHECKING, Any, Final

from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import TypeAdapter, ValidationError

from mcptools.catalog.tool_list import Traits
from mcptools.edit.display import LONGEST_WORDS, cut, cut_within
from mcptools.model.failures import Failure, FailureKind

if TYPE_CHECKING:
    from mcptools.answers.edits import Answer

__all__ = ["annotations", "invalid_arguments", "not_offered", "refused", "success"]

_TICKET: Final = "editledger/ticket"
"""The member of a result's `_meta` that has the ticket of a window."""

_JSON: Final[TypeAdapter[object]] = TypeAdapter(object)


def annotations(traits: Traits) -> ToolAnnotations:
    """Return a tool's traits as the protocol's annotations."""
    return ToolAnnotations(
        title=traits.title,
        read_only_hint=traits.read_only,
        destructive_hint=traits.destructive,
        idempotent_hint=traits.idempotent,
        open_world_hint=False,
    )


def success(answer: "Answer[Any]", longest: int) -> CallToolResult:
    """Return the result that a client gets for an answer. `longest`: characters of each text in a text of JSON."""
    from mcptools.answers.edits import structured

    content = structured(answer.content)
    if answer.text is None:
        content |= {"notes": list(answer.notes)} if answer.notes else {}
        return _result([_json(cut_within(content, longest))], content, is_error=False)
    words = [answer.text, "\n".join(answer.notes)] if answer.notes else [answer.text]
    result = _result(words, content, is_error=False)
    if answer.ticket:
        result.meta = {_TICKET: answer.ticket}
    return result


def refused(failure: Failure, traits: Traits | None = None) -> CallToolResult:
    """Return the result that a client gets for a failure, in the shape that the tool's document defines.

    `traits`: None if the tool is not offered, so that the common shape is right.
    """
    # A text from the model's arguments, or a line of a file, may be longer than any answer.
    if traits is not None and traits.json_text:
        structured = cut_within(failure.flat(), LONGEST_WORDS)
        return _result([_json(structured)], structured, is_error=True)
    words = [cut(text, LONGEST_WORDS) for text in (str(failure), failure.hint) if text]
    structured = cut_within({"success": False, "error": failure.error()}, LONGEST_WORDS)
    return _result(words, structured, is_error=True)


def _json(structured: object) -> str:
    """Return structured content as the text that the patch tools' document defines."""
    return json.dumps(structured, indent=2, ensure_ascii=False)


def _result(words: list[str], structured: object, *, is_error: bool) -> CallToolResult:
    _JSON.dump_json(structured)  # fails here, not in the SDK, where half a surrogate pair would end the server
    content = [TextContent(type="text", text=text) for text in words]
    return CallToolResult(content=[*content], structured_content=structured, is_error=is_error)


def invalid_arguments(name: str, error: ValidationError) -> Failure:
    """Return the failure of a call whose arguments do not fit the tool's schema. Of many errors, it names the first."""
    from mcptools.answers.paging import page_of

    wrong = []
    for found in error.errors(include_input=False, include_url=False):
        where = ".".join(str(part) for part in found["loc"])
        what = (
            "unknown argument" if found["type"] in {"extra_forbidden", "unexpected_keyword_argument"} else found["msg"]
        )
        wrong.append(f"{where}: {what}")
    page = page_of(wrong, len, offset=0, limit=0, budget=LONGEST_WORDS // 2)
    named = [*page.items, *([f"and {len(wrong) - page.next_offset} more"] if page.next_offset else [])]
    message = f"Invalid arguments for {name}: {'; '.join(named)}"
    return Failure(FailureKind.INVALID_REQUEST, message, arguments=named)


def not_offered(name: str, way: str, instead: str) -> Failure:
    """Return the failure of a call of a tool that this server does not offer. `way`, `instead`: as of `offering`."""
    return Failure(FailureKind.INVALID_REQUEST, f"{name} is not offered here: {way}", hint=instead)
