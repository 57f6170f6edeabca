"""Replies: what a tool is, and what a call came to, a success or a failure, as the protocol tells it to a client."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mcp.types import SERVER_INFO_META_KEY, CallToolResult, RequestId, ToolAnnotations
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from mcptools.catalogue import Traits
from mcptools.display import LONGEST_WORDS, cut, cut_within
from mcptools.failures import Failure, Kind

if TYPE_CHECKING:
    from mcptools.answers import Answer

__all__ = ["Said", "annotations", "invalid_arguments", "refusal", "refused", "response", "result_of", "success"]

Said: TypeAlias = dict[str, Any]
"""The result of a call, in the protocol's own names."""

_JSON: Final[TypeAdapter[object]] = TypeAdapter(object)


def annotations(traits: Traits) -> ToolAnnotations:
    """Return what a client may know of a tool before it calls it."""
    return ToolAnnotations(
        title=traits.title,
        read_only_hint=traits.read_only,
        destructive_hint=traits.destructive,
        idempotent_hint=traits.idempotent,
        open_world_hint=False,
    )


def success(answer: "Answer[Any]") -> Said:
    """Return what a client gets of a success."""
    from mcptools.answers import structured

    words = [answer.text, "\n".join(answer.notes)] if answer.notes else [answer.text]
    return _said(words, structured(answer.content), is_error=False)


def refusal(failure: Failure, traits: Traits) -> Said:
    """Return what a client gets of a failure, in the shape that the tool's document gives failures."""
    structured: dict[str, object] = {"error": failure.error()}
    if traits.flat_errors:
        structured = failure.flat()
    elif not traits.bare_errors:
        structured = {"success": False, **structured}
    # A text that a model gave, or a line of a file, may be longer than any answer.
    words = [cut(text, LONGEST_WORDS) for text in (str(failure), failure.hint) if text]
    return _said(words, cut_within(structured, LONGEST_WORDS), is_error=True)


def _said(words: list[str], structured: object, *, is_error: bool) -> Said:
    content = [{"text": text, "type": "text"} for text in words]
    return {"content": content, "isError": is_error, "resultType": "complete", "structuredContent": structured}


def refused(failure: Failure, traits: Traits) -> CallToolResult:
    """Return what a client gets of a failure, for the SDK to send."""
    return result_of(refusal(failure, traits))


def result_of(said: Said) -> CallToolResult:
    """Return what a client gets of a call, for the SDK to send."""
    return CallToolResult.model_validate(said, by_name=False)


def response(number: RequestId, said: Said, version: str, server: Mapping[str, object]) -> bytes:
    """Return the line that the SDK would make of the same answer in a version of the protocol.

    `server`: what the server says of itself. Raises pydantic_core.PydanticSerializationError for half a character.
    """
    if version in MODERN_PROTOCOL_VERSIONS:
        said = {**said, "_meta": {SERVER_INFO_META_KEY: server}}
    else:
        said = {name: value for name, value in said.items() if name != "resultType"}
    return _JSON.dump_json({"jsonrpc": "2.0", "id": number, "result": said}) + b"\n"


def invalid_arguments(name: str, error: ValidationError) -> Failure:
    """Return the failure of a call whose arguments are not those of the tool. Of very many, it names the first."""
    from mcptools.paging import page_of

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
    return Failure(Kind.INVALID_REQUEST, message, arguments=named)
