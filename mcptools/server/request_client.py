"""Read the facts about a client from a message that it sent."""

from collections.abc import Callable
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context

__all__ = ["has_roots", "is_stateless", "key_of", "named", "on_session_end", "tells_of_roots"]

_STATELESS_SINCE: Final = "2026-07-28"
"""The first version of the protocol without sessions: a client's answer is only valid for one call."""

_SESSION: Final = "session "
"""The beginning of the key of a client with a session."""

_MAX_NAME: Final = 200
"""Characters of a client's name and version that are recorded."""


def key_of(context: ServerRequestContext[Any, Any]) -> str:
    """Return the key that identifies a client of this server: its session, or its name if it has none."""
    headers = getattr(context.request, "headers", None)
    if headers is None:
        return ""  # standard streams have one client
    session = headers.get("mcp-session-id")
    # Later versions don't define the header, so it must not select the session of another client.
    if session and context.protocol_version < _STATELESS_SINCE:
        return f"{_SESSION}{session}"
    params = context.session.client_params
    return "" if params is None else f"client {params.client_info.name} {params.client_info.version}"


def on_session_end(context: ServerRequestContext[Any, Any], key: str, forget: Callable[[], None]) -> None:
    """Call `forget` when the session of a message ends, for whatever reason, if the message has a session.

    `key`: the client's.
    """
    # The SDK recommends this exit stack but gives no public access. Without it the client is forgotten later.
    connection = getattr(context.session, "_connection", None)
    if key.startswith(_SESSION) and connection is not None:
        connection.exit_stack.callback(forget)


def is_stateless(context: Context[Any, Any]) -> bool:
    """Return whether the client speaks a version of the protocol that has no sessions."""
    return (context.protocol_version or "") >= _STATELESS_SINCE


def has_roots(context: Context[Any, Any]) -> bool:
    """Return whether the client can be asked for its roots."""
    capabilities = context.client_capabilities
    return capabilities is not None and capabilities.roots is not None


def tells_of_roots(context: Context[Any, Any]) -> bool:
    """Return whether the client reports when its roots change, so that they need not be asked for each time."""
    capabilities = context.client_capabilities
    roots = capabilities.roots if capabilities is not None else None
    return roots is not None and bool(roots.list_changed) and not is_stateless(context)


def named(context: Context[Any, Any]) -> dict[str, str]:
    """Return the client's name and version, as recorded with each change."""
    params = context.request_context.session.client_params
    if params is None:
        return {}
    names = {"client": params.client_info.name, "client_version": params.client_info.version}
    return {key: value[:_MAX_NAME] for key, value in names.items() if value}
