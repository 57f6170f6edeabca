"""The server: offers the tools over the Model Context Protocol, in both of its eras.

It translates and nothing more: signatures into flat input schemas, answers into structured content and text,
failures into results that a model can see, the client's roots into directories, and changes into notifications. With
`asking`, `replies`, `sender`, `web` and `stdio_lines` it is the only module that knows the protocol's SDK. The tools
themselves are imported when the first is called: a client waits for the start.
"""

import functools
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, Final

import anyio
import anyio.lowlevel
import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError, UnexpectedToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.mcpserver.tools import Tool, ToolManager
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    EmptyResult,
    GetPromptResult,
    InputRequiredResult,
    ListRootsResult,
    Resource,
    SubscribeRequestParams,
    Tool as ListedTool,
    UnsubscribeRequestParams,
)
from pydantic import ValidationError

from mcptools.catalog.descriptions import ToolDescription, load_descriptions
from mcptools.catalog.tool_list import TOOLS, Traits
from mcptools.catalog.version import version
from mcptools.edit.null_arguments import without_nulls
from mcptools.feeds.change_feed import ChangeFeed
from mcptools.files.workspaces import Directories
from mcptools.model.failures import Failure, FailureKind
from mcptools.model.limits import ServerLimits
from mcptools.server.client_roots import ROOTS, ClientRoots
from mcptools.server.clients import Client, Clients
from mcptools.server.elicitation import (
    NO_ANSWER,
    Approval,
    addresses,
    approval,
    approval_question,
    with_readable_roots,
)
from mcptools.server.request_client import is_stateless, key_of, named, on_session_end
from mcptools.server.results import annotations, invalid_arguments, refused, success
from mcptools.server.subscriptions import SubscriptionFeed
from mcptools.transport.message_checks import broken_argument
from mcptools.transport.stdio_lines import Answers, private_stdin
from mcptools.transport.worker_thread import Tell, run_on_thread

__all__ = ["EditServer"]

_INSTRUCTIONS: Final = (
    "Every change is recorded, and a person reviews it. The first change of a turn returns an mcp_conversation_id: "
    "pass it with every further change of the same turn. A refused call has changed nothing; its hint says what to "
    "mend."
)
_APPROVAL: Final = "approval"
_CONTEXT: Final = "context"
_NARROWED: Final = frozenset({"resources/list", "resources/subscribe", "subscriptions/listen"})
"""Messages that are answered, then or later, with what a client's roots allow."""

_ADDRESSES: Final = (
    ("edit", "id", "application/json", "An edit with its diff, by its number, or by its id or the beginning of that"),
    ("conversation", "id", "application/json", "The edits of a conversation, in their order"),
    ("blob", "hash", "application/octet-stream", "The bytes whose BLAKE3 hash this is"),
)
"""What is recorded, by address: methods of `Resources`."""

_log: Final = logging.getLogger(__name__)

if TYPE_CHECKING:
    from mcptools.answers.edits import Answer
    from mcptools.tools.context import ApprovalContext


class EditServer(MCPServer):
    """The tools of some directories, for one client on standard streams, or for several over HTTP."""

    def __init__(
        self,
        directories: Directories,
        limits: ServerLimits | None = None,
        *,
        offered: Mapping[str, Traits] = TOOLS,
        require_read: bool = False,
        approve: Collection[str] = (),
    ) -> None:
        """Offer some of the tools. Those in `approve` ask the person first, where the client can ask."""
        self._directories = directories
        self._limits = limits or ServerLimits()
        self._clients = Clients(require_read=require_read)
        self._roots: Final = ClientRoots(directories, self._clients)
        self._offered = offered
        self._approval_context: Final[ContextVar[ApprovalContext | None]] = ContextVar("approval_context")
        self.following: Final = SubscriptionFeed(ChangeFeed(directories), self._clients, self._roots.within)
        super().__init__(
            "editledger",
            title="editledger",
            version=version(),
            instructions=_INSTRUCTIONS,
            log_level="WARNING",
            middleware=[self._notice],
            lifespan=_following,
            subscriptions=_Streams(self.following),
        )
        self._tool_manager = _ToolsOnDemand(
            {
                name: functools.partial(self._tool, name, traits, asks=name in approve)
                for name, traits in offered.items()
            }
        )
        for name, argument, kind, words in _ADDRESSES:
            register = self.resource(f"cas://{name}/{{{argument}}}", name=name, description=words, mime_type=kind)
            register(self._resource(name, argument))
        self._lowlevel_server.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        self._lowlevel_server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. What the SDK would tell in its own words, wrong arguments and crashes, is told as a failure."""
        traits = self._offered.get(name)
        broken = None if context is None else broken_argument(context.request_context.params)
        if traits is not None and broken is not None:
            message = f"{broken} holds half a character, which UTF-8 can't encode"
            return refused(Failure(FailureKind.ENCODING, message, argument=broken), traits)
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if traits is None:
                raise
            if isinstance(error.__cause__, ValidationError):
                meant: dict[str, Any] = without_nulls(arguments, load_descriptions()[name].input_schema)
                if meant != arguments:
                    return await self.call_tool(name, meant, context)
                return refused(invalid_arguments(name, error.__cause__), traits)
            if isinstance(error.__cause__, Failure):  # of what the client was asked
                return refused(error.__cause__, traits)
            if isinstance(error.__cause__, ToolError) and not isinstance(error, UnexpectedToolError):
                # So ends a call whose client was asked something: a tool itself tells its failures otherwise.
                return refused(Failure(FailureKind.NOT_APPROVED, NO_ANSWER), traits)
            _log.exception("Tool %r crashed", name)
            crash = Failure(
                FailureKind.INTERNAL, f"{name} failed for a reason that is a fault of the server; see its log"
            )
            return refused(crash, traits)

    async def list_tools(self) -> list[ListedTool]:
        """Return what clients are told of the tools on offer, from where it was written down beforehand."""
        said = load_descriptions()
        return [
            ListedTool(
                name=name,
                title=traits.title,
                description=said[name].description,
                input_schema=said[name].input_schema,
                output_schema=said[name].output_schema,
                annotations=annotations(traits),
            )
            for name, traits in self._offered.items()
        ]

    def described(self, name: str) -> ToolDescription:
        """Return what a client is to be told of a tool, made anew."""
        tool = self._tool(name, self._offered[name], asks=False)
        return ToolDescription(
            description=tool.description, input_schema=tool.parameters, output_schema=dict(tool.output_schema or {})
        )

    async def list_resources(self) -> list[Resource]:
        """Return the newest edits and their conversations; older ones have addresses all the same."""
        from mcptools.feeds.resources import Resources

        client = self._clients.current()
        if client.scope is None:  # whose roots are not known may not be shown names that lie outside them
            return []
        try:
            found = await anyio.to_thread.run_sync(Resources(self._roots.within(client, client.scope)).newest)
        except Failure as failure:
            raise MCPError(INTERNAL_ERROR, str(failure)) from failure
        return [
            Resource(uri=entry.address, name=entry.name, description=entry.words, mime_type="application/json")
            for entry in found
        ]

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult:
        """Refuse: there are no prompts."""
        del arguments, context
        raise MCPError(INVALID_PARAMS, f"Unknown prompt: {name}")

    async def run_stdio_async(self) -> None:
        """Serve one client on standard input and output until its input ends."""
        server = self._lowlevel_server
        with private_stdin() as lines:
            try:
                async with stdio_server(stdin=lines) as (incoming, outgoing):
                    lines.answers = answers = Answers(outgoing.send, outgoing.aclose)
                    await server.run(incoming, answers, server.create_initialization_options())
            except* ConnectionError:
                pass  # the client reads no more answers, which ends the server as the end of its input does

    # ---- clients

    async def _notice(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """See every message pass, for what concerns the client as such and not one call."""
        key = key_of(ctx)
        if self._clients.note_request(key):
            on_session_end(ctx, key, functools.partial(self._clients.ended, key))
        if ctx.method == "notifications/roots/list_changed":
            self._clients.current().forget_roots()
        if ctx.method in _NARROWED and ctx.request_id is not None:
            await self._roots.find_scope(Context(request_context=ctx, mcp_server=self))
        ctx = with_readable_roots(ctx)
        if ctx.method == "subscriptions/listen":
            async with self.following.stream():
                return await call_next(ctx)
        result = await call_next(ctx)
        if ctx.method == "initialize" and isinstance(result, dict):
            result["capabilities"]["resources"]["listChanged"] = True
        return result

    def _approval(
        self, name: str, traits: Traits, parameters: Sequence[inspect.Parameter]
    ) -> Callable[..., Coroutine[Any, Any, Approval | Elicit[Approval]]]:
        """Return what asks the person whether a tool may be called, and notes what it was that was asked about.

        `parameters`: of the tool; the arguments say what the call is about.
        """

        async def ask(**arguments: Any) -> Approval | Elicit[Approval]:  # noqa: ANN401 - checked before
            context = arguments.pop(_CONTEXT)
            self._approval_context.set(None)
            capabilities = context.client_capabilities
            asks = capabilities.elicitation if capabilities is not None else None
            if asks is None or (asks.form is None and asks.url is not None):
                return Approval()  # the client can't ask; its own approval of tools holds
            wish = approval_question(name, traits.title, arguments)
            if name == "Undo":
                from mcptools.tools.context import ApprovalContext
                from mcptools.tools.undoing import accepted_of, undo_question

                change = self._clients.current().session.last_change()
                self._approval_context.set(ApprovalContext(change))
                if change is None:
                    return Approval()  # there is nothing that a person could decide
                accepted = await anyio.to_thread.run_sync(accepted_of, self._directories, change)
                self._approval_context.set(ApprovalContext(change, accepted))
                wish = undo_question(change, accepted)
            question = f"The agent wants to {wish}. Shall it go ahead?"
            return Elicit(question, Approval) if is_stateless(context) else await approval(context, question)

        _give_signature(ask, parameters, {_CONTEXT: Context[Any, Any]})
        ask.__annotations__["return"] = Approval | Elicit[Approval]
        return ask

    # ---- tools

    def _tool(self, name: str, traits: Traits, *, asks: bool) -> Tool:
        """Return a tool as the SDK registers it. `asks`: it asks the person first."""
        from mcptools.catalog.schemas import described, flat, output_schema, parameters_of
        from mcptools.tools.context import ToolContext
        from mcptools.tools.tool_methods import TOOL_METHODS

        method = TOOL_METHODS[name]

        async def run(**arguments: Any) -> CallToolResult | InputRequiredResult:  # noqa: ANN401 - checked before
            context = arguments.pop(_CONTEXT)
            roots = arguments.pop(ROOTS) if asks else await self._roots.find_alone(context)
            if isinstance(roots, ListRootsResult):
                roots = self._roots.learn(addresses(roots), context)
            if isinstance(roots, InputRequiredResult):
                return roots
            said = arguments.pop(_APPROVAL, None)
            if asks and not (isinstance(said, AcceptedElicitation) and said.data.approve):
                failure = Failure(FailureKind.NOT_APPROVED, "The person did not approve this; nothing was changed")
                return refused(failure, traits)
            client = self._clients.current()
            client.session.client = named(context)
            asked_about = self._approval_context.get() if asks else None
            shared = ToolContext(self._roots.within(client, roots), client.session, self._limits, asked_about)
            work = functools.partial(_carried_out, functools.partial(method.call, shared, **arguments), traits)
            result = await run_on_thread(work, _tell_of_progress(context), changes=not traits.read_only)
            if not result.is_error:
                self._tell(client, context)
            return result

        run.__name__, run.__doc__ = name, inspect.getdoc(method.function)
        hidden: dict[str, object] = {_CONTEXT: Context[Any, Any]}
        parameters = parameters_of(method.function)
        if asks:  # who asks two things has the SDK put them into one round
            hidden[ROOTS] = Annotated[ListRootsResult | tuple[str, ...], Resolve(self._roots.find)]
            hidden[_APPROVAL] = Annotated[
                ElicitationResult[Approval], Resolve(self._approval(name, traits, parameters))
            ]
        _give_signature(run, parameters, hidden)
        tool = Tool.from_function(
            run,
            title=traits.title,
            description=run.__doc__,
            annotations=annotations(traits),
            structured_output=False,
        )
        arguments = tool.fn_metadata.arg_model
        arguments.model_config["extra"] = "forbid"
        arguments.model_rebuild(force=True)
        tool.parameters = described(flat(arguments.model_json_schema()), method.function)
        tool.fn_metadata.output_schema = output_schema(method.function, traits)
        return tool

    # ---- resources

    def _resource(self, name: str, argument: str) -> Callable[..., object]:
        """Return a method of `Resources` as the SDK registers it."""

        async def read(**arguments: Any) -> str | bytes | InputRequiredResult:  # noqa: ANN401 - parts of an address
            context: Context[Any, Any] = arguments.pop(_CONTEXT)
            from mcptools.feeds.resources import Resources

            try:
                roots = await self._roots.find_alone(context)
                if isinstance(roots, InputRequiredResult):
                    return roots
                within = self._roots.within(self._clients.current(), roots)
                find: Callable[..., str | bytes] = getattr(Resources(within), name)
                return await anyio.to_thread.run_sync(functools.partial(find, **arguments))
            except Failure as failure:
                kind = ResourceNotFoundError if failure.kind is FailureKind.FILE_NOT_FOUND else ResourceError
                raise kind(str(failure)) from failure

        read.__name__ = name
        shown = inspect.Parameter(argument, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str)
        _give_signature(read, [shown], {_CONTEXT: Context[Any, Any]})
        return read

    async def _subscribe(self, ctx: ServerRequestContext[Any, Any], params: SubscribeRequestParams) -> EmptyResult:
        await self.following.begin()
        client = self._clients.current()
        client.tell = functools.partial(_tell_session, ctx.session)
        client.subscribed.add(str(params.uri))
        return EmptyResult()

    async def _unsubscribe(self, _: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams) -> EmptyResult:
        self._clients.current().subscribed.discard(str(params.uri))
        return EmptyResult()

    # ---- who listens

    def _tell(self, client: Client, context: Context[Any, Any]) -> None:
        """Have told at once of what a call has recorded: on a connection of the older era even who did not subscribe.

        The call does not wait for that.
        """
        if not client.session.has_news():
            return
        self.following.poll_now()
        if not is_stateless(context) and not client.subscribed:
            client.tell = functools.partial(_tell_session, context.session)
            self.following.tell(client, [None])


@asynccontextmanager
async def _following(server: MCPServer[None]) -> AsyncIterator[None]:
    """Follow what is recorded while the server runs."""
    if not isinstance(server, EditServer):
        raise TypeError(f"{server.name} is no EditServer")
    async with server.following.running():
        yield


class _Streams(InMemorySubscriptionBus):
    """The streams of the newer era, each of which hears what its client may."""

    def __init__(self, following: SubscriptionFeed) -> None:
        super().__init__()
        self._following = following

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Have news told to a stream. Return what ends that."""

        async def tell(address: str | None) -> None:
            listener(ResourcesListChanged() if address is None else ResourceUpdated(uri=address))
            await anyio.lowlevel.checkpoint()  # a stream that does not get to sending between many is ended

        return self._following.hear(tell)


async def _tell_session(session: ServerSession, address: str | None) -> None:
    """Tell on a connection of the older era that an address reads anew; None: that there is something new."""
    if address is None:
        await session.send_resource_list_changed()
    else:
        await session.send_resource_updated(address)


class _ToolsOnDemand(ToolManager):
    """The tools, each made when it is first called: making all of them would take a third of the server's start."""

    def __init__(self, making: Mapping[str, Callable[[], Tool]]) -> None:
        super().__init__()
        self._making = making

    def get_tool(self, name: str) -> Tool | None:
        """Return a tool; None: it is not on offer."""
        tool = self._tools.get(name)
        if tool is None and name in self._making:
            tool = self._tools[name] = self._making[name]()
        return tool


# ---- calls


def _carried_out(call: Callable[[], "Answer[Any]"], traits: Traits) -> CallToolResult:
    """Return the result of a call, which is carried out on this thread."""
    try:
        return success(call())
    except Failure as failure:
        return refused(failure, traits)


def _tell_of_progress(context: Context[Any, Any]) -> Tell | None:
    """Return what tells the client how far its call has come; None: it does not want to know."""
    meta = context.request_context.meta
    return context.report_progress if meta and "progress_token" in meta else None


def _give_signature(
    run: Callable[..., object], shown: Sequence[inspect.Parameter], hidden: Mapping[str, object]
) -> None:
    """Give `run` these parameters, and others that no client can pass."""
    added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hint) for name, hint in hidden.items()]
    vars(run)["__signature__"] = inspect.Signature([*shown, *added])
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*shown, *added]}
