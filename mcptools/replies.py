"""Replies: what a tool is, and what a call came to, a success or a failure, as the protocol tells it to a client."""

from typing import TYPE_CHECKING, Any, Final

from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError

from mcptools.catalogue import Traits
from mcptools.display import cut, cut_within
from mcptools.failures import Failure, Kind

if TYPE_CHECKING:
    from mcptools.answers import Answer

__all__ = ["annotations", "answered", "invalid_arguments", "refused"]

_LONGEST_WORDS: Final = 8000
"""Characters of each text in a refusal: some 2,500 tokens."""


def annotations(traits: Traits) -> ToolAnnotations:
    """Return what a client may know of a tool before it calls it."""
    return ToolAnnotations(
        title=traits.title,
        read_only_hint=traits.read_only,
        destructive_hint=traits.destructive,
        idempotent_hint=traits.idempotent,
        open_world_hint=False,
    )


def answered(answer: "Answer[Any]") -> CallToolResult:
    """Return what a client gets of a success."""
    from mcptools.answers import structured

    content = [TextContent(type="text", text=answer.text)]
    if answer.notes:
        content.append(TextContent(type="text", text="\n".join(answer.notes)))
    return CallToolResult(content=list(content), structured_content=structured(answer.content))


def refused(failure: Failure, traits: Traits) -> CallToolResult:
    """Return what a client gets of a failure, in the shape that the tool's document gives failures."""
    structured: dict[str, object] = {"error": failure.error()}
    if traits.flat_errors:
        structured = failure.flat()
    elif not traits.bare_errors:
        structured = {"success": False, **structured}
    # A text that a model gave, or a line of a file, may be longer than any answer.
    words = [cut(text, _LONGEST_WORDS) for text in (str(failure), failure.hint) if text]
    told: dict[str, object] = cut_within(structured, _LONGEST_WORDS)
    return CallToolResult(
        content=[TextContent(type="text", text=text) for text in words], structured_content=told, is_error=True
    )


def invalid_arguments(name: str, error: ValidationError) -> Failure:
    """Return the failure of a call whose arguments are not those of the tool."""
    wrong = []
    for found in error.errors(include_input=False, include_url=False):
        where = ".".join(str(part) for part in found["loc"])
        what = (
            "unknown argument" if found["type"] in {"extra_forbidden", "unexpected_keyword_argument"} else found["msg"]
        )
        wrong.append(f"{where}: {what}")
    message = f"Invalid arguments for {name}: {'; '.join(wrong)}"
    return Failure(Kind.INVALID_REQUEST, message, arguments=wrong)
