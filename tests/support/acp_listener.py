"""A client for tests that knows the notifications of the Agent Client Protocol, and keeps them."""

from typing import Any

from mcp.client.extension import ClientExtension, NotificationBinding
from mcp.types import NotificationParams

__all__ = ["Listener", "Update"]


class Update(NotificationParams):
    """The parameters of a `session/update`."""

    sessionId: str  # noqa: N815 - as on the wire
    update: dict[str, Any]


class Listener(ClientExtension):
    """A client that knows the notifications."""

    identifier = "test/acp"

    def __init__(self) -> None:
        self.updates: list[Update] = []

    def notifications(self) -> list[NotificationBinding[Any]]:
        """Return what to do with the notifications."""

        async def receive(params: Update) -> None:
            self.updates.append(params)

        return [NotificationBinding(method="session/update", params_type=Update, handler=receive)]
