"""Request each client's roots, and narrow the server's directories to them.

A client with a session is asked on its connection. A stateless client sends its roots with the call: the first answer
asks for them, and the client repeats the call with them.
"""

from contextlib import suppress
from typing import Any, Final

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import ListRoots
from mcp.types import InputRequiredResult, ListRootsRequest, ListRootsResult

from mcptools.files.workspaces import Directories
from mcptools.model.failures import Failure
from mcptools.model.roots import root_paths
from mcptools.server.clients import Client, Clients
from mcptools.server.elicitation import addresses, roots_of
from mcptools.server.request_client import has_roots, is_stateless, tells_of_roots

__all__ = ["ROOTS", "ClientRoots"]

ROOTS: Final = "roots"
"""The name under which a stateless client sends its roots with a call."""


class ClientRoots:
    """The roots of a server's clients, and the directories within them."""

    def __init__(self, directories: Directories, clients: Clients) -> None:
        self._directories = directories
        self._clients = clients

    async def find(self, context: Context[Any, Any]) -> ListRoots | tuple[str, ...]:
        """Return the addresses of the client's roots, or the request for them that goes out with the answer.

        () means that the client has no roots to give. Raises Failure.
        """
        client = self._clients.current()
        if not has_roots(context):
            client.scope = ()
            return ()
        if client.roots is not None:
            return client.roots
        client.asking_for_roots()
        return ListRoots() if is_stateless(context) else self.learn(await roots_of(context), context)

    async def find_alone(self, context: Context[Any, Any]) -> tuple[str, ...] | InputRequiredResult:
        """Return the addresses of the client's roots for a call that asks the client nothing else.

        If the client has yet to send its roots, return the result that asks for them. Raises Failure.
        """
        wanted = await self.find(context)
        if not isinstance(wanted, ListRoots):
            return wanted
        answer = (context.input_responses or {}).get(ROOTS)
        if isinstance(answer, ListRootsResult):
            return self.learn(addresses(answer), context)
        return InputRequiredResult(input_requests={ROOTS: ListRootsRequest()})

    async def find_for_window(self, context: Context[Any, Any]) -> tuple[str, ...] | InputRequiredResult:
        """Return the addresses of the client's roots for a call of a window that it draws.

        Windows can't answer a question that comes with a result, so in the stateless protocol these are the roots that
        the client gave with the call that the window was drawn for. Raises Failure.
        """
        scope = self._clients.current().scope
        if scope is not None and is_stateless(context):
            return scope
        return await self.find_alone(context)

    async def find_scope(self, context: Context[Any, Any]) -> None:
        """Set the client's scope, as far as the client can be asked for its roots now."""
        if not is_stateless(context):
            with suppress(Failure):  # a client that does not name its roots is shown nothing
                await self.find(context)
        elif not has_roots(context):
            self._clients.current().scope = ()

    def learn(self, roots: tuple[str, ...], context: Context[Any, Any]) -> tuple[str, ...]:
        """Return the addresses of the client's roots; keep them if the client reports when they change."""
        self._clients.current().learn_roots(roots, lasting=tells_of_roots(context))
        return roots

    def within(self, client: Client, roots: tuple[str, ...]) -> Directories:
        """Return the server's directories narrowed to a client's roots, or all of them if it has none."""
        return self._directories.within(root_paths(roots, client.places)) if roots else self._directories
