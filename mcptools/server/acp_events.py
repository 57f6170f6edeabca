"""Send a client, over its connection, the Agent Client Protocol notifications of its own calls while they run.

A program that shows an agent's work to a person sends that person's editor a `session/update` before and after each
call. With `--acp-events` it gets them made: as notifications on the connection on which it calls the tool, which it can
pass on as they are. It may name its session and the call in the call's `_meta`, because only it knows these names.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, InputRequiredResult, Notification, ServerNotification, TextContent

from mcptools.catalog.acp import FileChange, Json, Shape, ToolCall, ToolResult, call_began, call_ended

if TYPE_CHECKING:
    from mcptools.tools.context import Recorded

__all__ = ["AcpEvents"]

_NAMES: Final = "editledger/acp"
"""The member of a call's `_meta` in which a client names its session and the call."""

_LONGEST_NAME: Final = 1000

_ResultT = TypeVar("_ResultT", bound=CallToolResult | InputRequiredResult)


class _SessionUpdate(Notification[dict[str, Any], Literal["session/update"]]):
    """A notification that is the Agent Client Protocol's, not this one's; clients that don't know it ignore it."""

    method: Literal["session/update"] = "session/update"


class AcpEvents:
    """The notifications of one call."""

    def __init__(self, shape: Shape, context: Context[Any, Any], session: str) -> None:
        """`session`: the name of the session, if the client gives it none. Raises MCPError for wrong names."""
        self._shape: Final = shape
        self._context: Final = context
        self._session, self._id = _names(context.request_context.params, session, context.request_id)
        # The client makes a call again, in versions without sessions, to answer a question: then it has begun already.
        self._is_begun: Final = context.input_responses is not None and self._id != context.request_id

    async def around(
        self,
        tool: str,
        arguments: Mapping[str, object],
        carry_out: Callable[[], Awaitable[_ResultT]],
        recorded: "Recorded",
    ) -> _ResultT:
        """Carry out a call, and send that it begins and how it has ended, also if it raises or is cancelled.

        `recorded`: gets the edits that the call records, while it is carried out.
        """
        call = ToolCall(session=self._session, id=self._id, tool=tool, arguments=arguments)
        if not self._is_begun:
            await self._send(call_began(call, self._shape))
        try:
            result = await carry_out()
        except Exception as error:
            await self._end(call, ToolResult(failed=True, structured={}, texts=[str(error)]))
            raise
        except BaseException:
            await self._end(call, ToolResult(failed=True, structured={}, texts=["The call was cancelled"]))
            raise
        if isinstance(result, CallToolResult):  # otherwise the client will make the call again with an answer
            with anyio.CancelScope(shield=True):
                changes = await anyio.to_thread.run_sync(_changes, recorded) if self._shape is Shape.PROTOCOL else []
            await self._end(call, _result(result, changes))
        return result

    async def _end(self, call: ToolCall, result: ToolResult) -> None:
        with anyio.CancelScope(shield=True):  # a cancelled call may have carried out its change all the same
            await self._send(call_ended(call, result, self._shape))

    async def _send(self, notification: Json) -> None:
        update = _SessionUpdate(params=cast("dict[str, Any]", notification["params"]))
        # The SDK sends any notification; its type names only those of the protocol.
        await self._context.session.send_notification(
            cast("ServerNotification", update), related_request_id=self._context.request_id
        )


def _changes(recorded: "Recorded") -> list[FileChange]:
    from mcptools.feeds.acp_export import file_changes

    return [change for workspace, view in recorded for change in file_changes(workspace, [view])]


def _result(result: CallToolResult, changes: list[FileChange]) -> ToolResult:
    """Return what is reported of a result: of a success without the notes for the model, which are its second text."""
    texts = [part.text for part in result.content if isinstance(part, TextContent)]
    return ToolResult(
        failed=bool(result.is_error),
        structured=result.structured_content or {},
        texts=texts if result.is_error else texts[:1],
        changes=changes,
    )


def _names(params: Mapping[str, Any] | None, session: str, call: str) -> tuple[str, str]:
    """Return the names of the session and the call: those in the call's `_meta`, or else these."""
    meta = (params or {}).get("_meta")
    given = meta.get(_NAMES, {}) if isinstance(meta, dict) else {}
    match given:
        case dict():
            names = given.get("sessionId", session), given.get("toolCallId", call)
            if all(isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME for name in names):
                return names
    message = f"_meta {_NAMES} has to be an object with the texts sessionId and toolCallId, or one of them"
    raise MCPError(INVALID_PARAMS, message)
