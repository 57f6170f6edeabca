"""Offer the tools over the Model Context Protocol: versions with sessions, and the stateless ones after them.

The server only translates: signatures to flat input schemas, answers to structured content and text, failures to
results that a model can see, a client's roots to directories, and changes to notifications. With `acp_events`,
`client_roots`, `elicitation`, `results`, `request_client`, `http_server` and `transport.stdio_lines` it is the only
module that knows the protocol's SDK. The tools are imported when the first one is called, because a client waits for
the start.
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
from mcp.server.mcpserver.tools import Tool
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

from mcptools.catalog.acp import Shape
from mcptools.catalog.descriptions import REVIEW_TOOLS_FILE, ToolDescription, load_descriptions
from mcptools.catalog.schemas import parameters_of
from mcptools.catalog.tool_list import REVIEW_TOOLS, TOOLS, Traits, instructions, offering, with_review
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
    asks_in_forms,
    unanswerable_question,
    with_readable_roots,
)
from mcptools.server.registered_tools import ToolsOnDemand, give_signature, registered_tool
from mcptools.server.request_client import identity_of, is_stateless, named, on_session_end
from mcptools.server.results import annotations, invalid_arguments, not_offered, refused, success
from mcptools.server.review_window import draws_windows, review_apps, window_meta
from mcptools.server.subscriptions import SubscriptionFeed
from mcptools.transport.message_checks import broken_argument
from mcptools.transport.stdio_lines import Answers, private_stdin
from mcptools.transport.worker_thread import SendProgress, run_on_thread

__all__ = ["EditServer"]

_APPROVAL: Final = "approval"
_CONTEXT: Final = "context"
_NARROWED: Final = frozenset({"resources/list", "resources/subscribe", "subscriptions/listen"})
"""Messages whose answers, or later notifications, depend on a client's roots."""

_ADDRESSES: Final = (
    ("edit", "id", "application/json", "An edit with its diff, by its number, its id, or the beginning of its id"),
    ("conversation", "id", "application/json", "The edits of a conversation, in their order"),
    ("comments", "state", "application/json", "Reviewers' comments that are open, sent, answered, resolved, or all"),
    ("blob", "hash", "application/octet-stream", "The bytes with this BLAKE3 hash"),
)
"""The methods of `Resources` that are offered, by address: name, parameter, media type and description."""

_log: Final = logging.getLogger(__name__)

if TYPE_CHECKING:
    from mcptools.answers.edits import Answer
    from mcptools.tools.context import ApprovalContext, Recorded


class EditServer(MCPServer):
    """The tools of some directories, for one client on standard streams, or for several over HTTP."""

    def __init__(  # noqa: PLR0913 -- each is one thing that the command line may say
        self,
        directories: Directories,
        limits: ServerLimits | None = None,
        *,
        offered: Mapping[str, Traits] = TOOLS,
        require_read: bool = False,
        approve: Collection[str] = (),
        needs_approval: bool = False,
        output_schemas: bool = False,
        is_open_to_all: bool = False,
        acp_events: Shape | None = None,
    ) -> None:
        """Offer the tools in `offered`. Those in `approve` ask the person first, if the client can ask.

        `needs_approval`: if it can't, they are refused. `output_schemas`: list the schema of each tool's answer.
        `is_open_to_all`: every program of this machine can be a client, so no person decides here.
        `acp_events`: send the client notifications of its calls in this shape; None: send none.
        """
        self._directories = directories
        self._limits = limits or ServerLimits()
        self._clients = Clients(require_read=require_read)
        self._roots: Final = ClientRoots(directories, self._clients)
        self._offered = offered
        self._offered_with_window: Final = with_review(offered)
        self._is_open_to_all = is_open_to_all
        self._has_window: Final[ContextVar[bool]] = ContextVar("has_window", default=False)
        self._needs_approval = needs_approval
        self._lists_output_schemas = output_schemas
        self._acp_events = acp_events
        self._recorded: Final[ContextVar[Recorded]] = ContextVar("recorded")
        self._approval_context: Final[ContextVar[ApprovalContext | None]] = ContextVar("approval_context")
        self.subscription_feed: Final = SubscriptionFeed(ChangeFeed(directories), self._clients, self._roots.within)
        super().__init__(
            "editledger",
            title="editledger",
            version=version(),
            instructions=instructions(offered),
            log_level="WARNING",
            middleware=[self._notice],
            lifespan=_running_feed,
            subscriptions=_Streams(self.subscription_feed),
            extensions=[review_apps()],
        )
        self._tool_manager = ToolsOnDemand(
            {
                name: functools.partial(self._tool, name, traits, asks=name in approve)
                for name, traits in self._offered_with_window.items()
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
        """Call a tool, and send the client notifications of the call if the server was started so."""
        recorded: Recorded = []
        self._recorded.set(recorded)
        traits = self._offered_with_window.get(name)
        is_of_agent = traits is None or traits.for_model
        if self._acp_events is None or context is None or not is_of_agent:
            return await self._call_tool(name, arguments, context)
        from mcptools.server.acp_events import AcpEvents

        events = AcpEvents(self._acp_events, context, self._clients.current().session.name)
        carry_out = functools.partial(self._call_tool, name, arguments, context)
        return await events.around(name, arguments, carry_out, recorded)

    async def _call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Wrong arguments and crashes, which the SDK would report in its own way, become failures."""
        traits = self._offered_with_window.get(name)
        if traits is None and (elsewhere := offering(name, self._offered)) is not None:
            return refused(not_offered(name, *elsewhere))
        broken = None if context is None else broken_argument(context.request_context.params)
        if traits is not None and broken is not None:
            message = f"{broken} contains half a surrogate pair, which UTF-8 can't encode"
            return refused(Failure(FailureKind.ENCODING, message, argument=broken), traits)
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if traits is None:
                raise
            if isinstance(error.__cause__, ValidationError):
                meant: dict[str, Any] = without_nulls(arguments, _stored(name).input_schema)
                if meant != arguments:
                    return await self._call_tool(name, meant, context)
                return refused(invalid_arguments(name, error.__cause__), traits)
            if isinstance(error.__cause__, Failure):  # from a question to the client
                return refused(error.__cause__, traits)
            if isinstance(error.__cause__, ToolError) and not isinstance(error, UnexpectedToolError):
                # A question to the client got no valid answer. Failures of tools don't raise ToolError.
                return refused(Failure(FailureKind.NOT_APPROVED, NO_ANSWER), traits)
            _log.exception("Tool %r crashed", name)
            crash = Failure(FailureKind.INTERNAL, f"{name} failed because of an error in the server; see its log")
            return refused(crash, traits)

    async def list_tools(self) -> list[ListedTool]:
        """Return the tools that are offered to the client of the message, with their stored descriptions."""
        stored = load_descriptions()
        has_window = self._has_window.get()
        offered = self._offered_with_window if has_window else self._offered
        if not REVIEW_TOOLS.keys().isdisjoint(offered):
            stored |= load_descriptions(REVIEW_TOOLS_FILE)
        return [
            ListedTool(
                name=name,
                title=traits.title,
                description=stored[name].description,
                input_schema=stored[name].input_schema,
                output_schema=stored[name].output_schema if self._lists_output_schemas else None,
                annotations=annotations(traits),
                _meta=window_meta(name) if has_window else None,
            )
            for name, traits in offered.items()
        ]

    def described(self, name: str) -> ToolDescription:
        """Return a tool's description and schemas, generated from its method."""
        tool = self._tool(name, self._offered_with_window[name], asks=False)
        return ToolDescription(
            description=tool.description, input_schema=tool.parameters, output_schema=dict(tool.output_schema or {})
        )

    async def list_resources(self) -> list[Resource]:
        """Return the newest edits and their conversations. Older ones can be read by their address."""
        from mcptools.feeds.resources import Resources

        client = self._clients.current()
        if client.scope is None:  # its roots are unknown, so no name may be shown
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
        """Refuse every prompt: the server has none."""
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
                pass  # the client no longer reads answers, which ends the server as the end of input does

    # ---- clients

    async def _notice(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Process every message before its handler: note its client, and update the client's roots and streams."""
        identity = identity_of(ctx)
        if self._clients.note_request(identity) and identity is not None:
            on_session_end(ctx, identity.key, functools.partial(self._clients.ended, identity.key))
        self._has_window.set(draws_windows(ctx))
        if ctx.method == "notifications/roots/list_changed":
            self._clients.current().forget_roots()
        if ctx.method in _NARROWED and ctx.request_id is not None:
            await self._roots.find_scope(Context(request_context=ctx, mcp_server=self))
        ctx = with_readable_roots(ctx)
        if ctx.method == "subscriptions/listen":
            async with self.subscription_feed.stream():
                return await call_next(ctx)
        result = await call_next(ctx)
        if ctx.method == "initialize" and isinstance(result, dict):
            result["capabilities"]["resources"]["listChanged"] = True
        return result

    def _approval(
        self, name: str, traits: Traits, parameters: Sequence[inspect.Parameter]
    ) -> Callable[..., Coroutine[Any, Any, Approval | Elicit[Approval]]]:
        """Return the resolver that asks the person for approval, and notes what the person was asked about.

        `parameters`: the tool's; the question names the files among the arguments.
        """

        async def ask(**arguments: Any) -> Approval | Elicit[Approval]:  # noqa: ANN401 - checked before
            context = arguments.pop(_CONTEXT)
            self._approval_context.set(None)
            can_ask = asks_in_forms(context)
            if not can_ask and not self._needs_approval:
                return Approval()  # only the client's own approval of tools applies
            wish = approval_question(name, traits.title, arguments)
            if name == "Undo":
                from mcptools.tools.context import ApprovalContext
                from mcptools.tools.undoing import accepted_of, undo_question

                change = self._clients.current().session.last_change()
                self._approval_context.set(ApprovalContext(change))
                if change is None:
                    return Approval()  # there is nothing to decide
                accepted = await anyio.to_thread.run_sync(accepted_of, self._directories, change)
                self._approval_context.set(ApprovalContext(change, accepted))
                wish = undo_question(change, accepted)
            if not can_ask:
                raise unanswerable_question(name)
            question = f"The agent wants to {wish}. Shall it go ahead?"
            return Elicit(question, Approval) if is_stateless(context) else await approval(context, question)

        give_signature(ask, parameters, {_CONTEXT: Context[Any, Any]})
        ask.__annotations__["return"] = Approval | Elicit[Approval]
        return ask

    # ---- tools

    def _tool(self, name: str, traits: Traits, *, asks: bool) -> Tool:
        """Return a tool as the SDK registers it. `asks`: it asks the person first."""
        from mcptools.tools.context import GivenCall, ToolContext
        from mcptools.tools.tool_methods import REVIEW_METHODS, TOOL_METHODS

        method = (REVIEW_METHODS if name in REVIEW_METHODS else TOOL_METHODS)[name]

        async def run(**arguments: Any) -> CallToolResult | InputRequiredResult:  # noqa: ANN401 - checked before
            context = arguments.pop(_CONTEXT)
            find_roots = self._roots.find_alone if traits.for_model else self._roots.find_for_window
            roots = arguments.pop(ROOTS) if asks else await find_roots(context)
            if isinstance(roots, ListRootsResult):
                roots = self._roots.learn(addresses(roots), context)
            if isinstance(roots, InputRequiredResult):
                return roots
            answer = arguments.pop(_APPROVAL, None)
            if asks and not (isinstance(answer, AcceptedElicitation) and answer.data.approve):
                failure = Failure(FailureKind.NOT_APPROVED, "The person did not approve this; nothing was changed")
                return refused(failure, traits)
            client = self._clients.current()
            client.session.client = named(context)
            asked_about = self._approval_context.get() if asks else None
            may_write = not all(each.read_only for each in self._offered.values())
            sent = (context.request_context.params or {}).get("arguments")
            shared = ToolContext(
                self._roots.within(client, roots),
                client.session,
                self._limits,
                may_write,
                given=GivenCall(name, sent if isinstance(sent, Mapping) else {}) if traits.for_model else None,
                approval=asked_about,
                recorded=self._recorded.get(),
                has_window=self._has_window.get(),
                is_open_to_all=self._is_open_to_all,
            )
            called = functools.partial(method.call, shared, **arguments)
            work = functools.partial(_carried_out, called, traits, self._limits.max_answer)
            result = await run_on_thread(work, _progress_sender(context), changes=not traits.read_only)
            if not result.is_error:
                self._notify(client, context)
            return result

        run.__name__, run.__doc__ = name, inspect.getdoc(method.function)
        hidden: dict[str, object] = {_CONTEXT: Context[Any, Any]}
        parameters = parameters_of(method.function)
        if asks:  # the SDK combines both questions in one round
            hidden[ROOTS] = Annotated[ListRootsResult | tuple[str, ...], Resolve(self._roots.find)]
            hidden[_APPROVAL] = Annotated[
                ElicitationResult[Approval], Resolve(self._approval(name, traits, parameters))
            ]
        give_signature(run, parameters, hidden)
        return registered_tool(run, method.function, traits)

    # ---- resources

    def _resource(self, name: str, argument: str) -> Callable[..., object]:
        """Return the handler of a resource, which calls a method of `Resources`."""

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
        give_signature(read, [shown], {_CONTEXT: Context[Any, Any]})
        return read

    async def _subscribe(self, ctx: ServerRequestContext[Any, Any], params: SubscribeRequestParams) -> EmptyResult:
        await self.subscription_feed.begin()
        client = self._clients.current()
        client.notify = functools.partial(_notify_session, ctx.session)
        client.subscribed.add(str(params.uri))
        return EmptyResult()

    async def _unsubscribe(self, _: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams) -> EmptyResult:
        self._clients.current().subscribed.discard(str(params.uri))
        return EmptyResult()

    # ---- notifications

    def _notify(self, client: Client, context: Context[Any, Any]) -> None:
        """Send notifications of what a call has recorded, without waiting for that.

        A client with a session is notified even if it did not subscribe.
        """
        if not client.session.has_news():
            return
        self.subscription_feed.poll_now()
        if not is_stateless(context) and not client.subscribed:
            client.notify = functools.partial(_notify_session, context.session)
            self.subscription_feed.notify(client, [None])


@asynccontextmanager
async def _running_feed(server: MCPServer[None]) -> AsyncIterator[None]:
    """Watch for changes while the server runs."""
    if not isinstance(server, EditServer):
        raise TypeError(f"{server.name} is not an EditServer")
    async with server.subscription_feed.running():
        yield


class _Streams(InMemorySubscriptionBus):
    """The streams of the stateless protocol, each of which gets the changes that its client may see."""

    def __init__(self, feed: SubscriptionFeed) -> None:
        super().__init__()
        self._feed = feed

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Send changes to a stream. Return a function that ends that."""

        async def notify(address: str | None) -> None:
            listener(ResourcesListChanged() if address is None else ResourceUpdated(uri=address))
            await anyio.lowlevel.checkpoint()  # the SDK ends a stream that can't send between many changes

        return self._feed.listen(notify)


async def _notify_session(session: ServerSession, address: str | None) -> None:
    """Notify a session that the resource at an address has changed; None: that the list of resources has."""
    if address is None:
        await session.send_resource_list_changed()
    else:
        await session.send_resource_updated(address)


# ---- calls


def _stored(name: str) -> ToolDescription:
    """Return the stored description of a tool."""
    return load_descriptions(*((REVIEW_TOOLS_FILE,) if name in REVIEW_TOOLS else ()))[name]


def _carried_out(call: Callable[[], "Answer[Any]"], traits: Traits, longest: int) -> CallToolResult:
    """Carry out a call on this thread, and return its result. `longest`: as of `success`."""
    try:
        return success(call(), longest)
    except Failure as failure:
        return refused(failure, traits)


def _progress_sender(context: Context[Any, Any]) -> SendProgress | None:
    """Return the function that reports a call's progress to the client, or None if the client did not ask for it."""
    meta = context.request_context.meta
    return context.report_progress if meta and "progress_token" in meta else None
