"""Read the facts about a client from a message that it sent."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context

__all__ = [
    "CLIENT_NAME",
    "NAME_IN_SCOPE",
    "Identity",
    "has_roots",
    "identity_of",
    "is_stateless",
    "named",
    "on_session_end",
    "tells_of_roots",
]

CLIENT_NAME: Final = re.compile("[A-Za-z0-9][A-Za-z0-9._~-]{0,127}")
"""A client's name in the address that it calls."""

NAME_IN_SCOPE: Final = "editledger.client"
"""The member of a request's ASGI scope that has this name."""

_STATELESS_SINCE: Final = "2026-07-28"
"""The first version of the protocol without sessions: a client's answer is only valid for one call."""

_SESSION: Final = "session "
"""The beginning of the key of a client with a session."""

_MAX_NAME: Final = 200
"""Characters of a client's name and version that are recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What distinguishes a client from all others of this server."""

    key: str
    is_beginning: bool = True
    """Whether a message from a client that the server does not know is the client's first."""


def identity_of(context: ServerRequestContext[Any, Any]) -> Identity | None:
    """Return the identity of the client that sent a message, or None if it has none.

    The name and version that a client gives are those of its program, which several clients may run.
    """
    if context.request is None:
        return Identity(key="")  # standard streams have one client
    session = context.request.headers.get("mcp-session-id")
    if context.protocol_version < _STATELESS_SINCE:
        # The session is made with the answer to the first message, and this notification follows it.
        begins = context.method == "notifications/initialized"
        return Identity(key=f"{_SESSION}{session}", is_beginning=begins) if session else None
    # Later versions don't define the header, so it must not select the session of another client.
    name = context.request.scope.get(NAME_IN_SCOPE)
    if name is None:
        return None
    # Two programs that were given the same address by mistake are still two clients.
    params = context.session.client_params
    program = () if params is None else (params.client_info.name, params.client_info.version)
    key = hashlib.sha256("\0".join((name, *program)).encode(errors="backslashreplace")).hexdigest()
    return Identity(key=f"address {key}", is_beginning=False)


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
