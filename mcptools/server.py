"""The server: offers the tools over the Model Context Protocol, on standard input and output.

It translates and nothing more: signatures into flat input schemas, answers into structured content and text,
failures into results that a model can see. It is the only module that knows the protocol's SDK.
"""

import argparse
import functools
import inspect
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Annotated, Any, Final, get_args, get_type_hints

from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from mcptools.answers import Answer
from mcptools.catalogue import SETS, TOOLS, Traits, chosen
from mcptools.directories import Directories
from mcptools.failures import Failure, Kind
from mcptools.resources import Resources
from mcptools.session import Session
from mcptools.tools import Limits, Tools

__all__ = ["EditServer", "main"]

_INSTRUCTIONS: Final = (
    "Every change is recorded, and a person reviews it. The first change of a turn returns an mcp_conversation_id: "
    "pass it with every further change of the same turn. A refused call has changed nothing; its hint says what to "
    "mend."
)
_ERROR_SCHEMA: Final = {
    "type": "object",
    "description": "Of a failure: what went wrong, and facts that help to mend the call",
    "properties": {
        "code": {"type": "integer"},
        "type": {"type": "string"},
        "message": {"type": "string"},
        "hint": {"type": "string"},
    },
    "required": ["code", "type", "message"],
}
_APPROVAL: Final = "approval"
_MAX_NAME: Final = 200
"""Characters of a client's name and version that are recorded."""

_log: Final = logging.getLogger(__name__)


class Approval(BaseModel):
    """What a person says of a tool that the agent wants to use."""

    approve: bool = Field(default=True, description="Whether it shall go ahead")


class EditServer(MCPServer):
    """The tools of some directories, for one client."""

    def __init__(
        self,
        directories: Directories,
        limits: Limits | None = None,
        *,
        offered: Mapping[str, Traits] = TOOLS,
        require_read: bool = False,
        approve: Collection[str] = (),
    ) -> None:
        """Offer some of the tools. Those in `approve` ask the person first, where the client can ask."""
        self._session = Session(require_read=require_read)
        self._offered = offered
        tools = Tools(directories, self._session, limits or Limits())
        super().__init__(
            "editledger",
            title="editledger",
            version=_version(),
            instructions=_INSTRUCTIONS,
            tools=[
                _tool(getattr(tools, name), traits, self._approval(name, traits) if name in approve else None)
                for name, traits in offered.items()
            ],
            log_level="WARNING",
        )
        resources = Resources(directories)
        for address, kind, find in (
            ("cas://edit/{id}", "application/json", resources.edit),
            ("cas://conversation/{id}", "application/json", resources.conversation),
            ("cas://blob/{hash}", "application/octet-stream", resources.blob),
        ):
            words = inspect.getdoc(find)
            self.resource(address, name=find.__name__, description=words, mime_type=kind)(_resource(find))

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. What the SDK would tell in its own words, wrong arguments and crashes, is told as a failure."""
        if context is not None:
            self._session.client = _client(context)
        traits = self._offered.get(name)
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if traits is None:
                raise
            if isinstance(error.__cause__, ValidationError):
                return _refused(_invalid_arguments(name, error.__cause__), traits)
            _log.exception("Tool %r crashed", name)
            crash = Failure(Kind.INTERNAL, f"{name} failed for a reason that is a fault of the server; see its log")
            return _refused(crash, traits)

    def _approval(self, name: str, traits: Traits) -> Callable[..., Coroutine[Any, Any, Approval | Elicit[Approval]]]:
        """Return what asks the person whether a tool may be called."""

        async def ask(context: Context[Any, Any]) -> Approval | Elicit[Approval]:
            capabilities = context.client_capabilities
            asks = capabilities.elicitation if capabilities is not None else None
            if asks is None or (asks.form is None and asks.url is not None):
                return Approval()  # the client can't ask; its own approval of tools holds
            if name == "Undo" and self._session.last_change() is None:
                return Approval()  # there is nothing that a person could decide
            return Elicit(f"The agent wants to use {name}: {traits.title}. Shall it go ahead?", Approval)

        return ask


def main(argv: Sequence[str] | None = None) -> None:
    """Serve the directories on the command line until standard input ends."""
    parser = argparse.ArgumentParser(
        prog="editledger",
        description="Serve file tools for AI agents over the Model Context Protocol, on standard input and output. "
        "Every change is recorded, for a person to review with `cas`.",
    )
    parser.add_argument("directories", nargs="*", metavar="DIR", help="a directory that tools may work in")
    parser.add_argument("--version", action="version", version=_version())
    _add_choices(parser)
    _add_limits(parser)
    arguments = parser.parse_args(argv)
    given = arguments.directories
    if not given:
        parser.error("no directory to work in: name at least one, as in `editledger DIR`")
    try:
        offered = chosen(arguments.tools, read_only=arguments.read_only)
        approve = chosen(arguments.approve) if arguments.approve else {}
    except KeyError as error:
        parser.error(f"neither a tool nor a set of tools: {error.args[0]} (sets: {', '.join(SETS)})")
    try:
        directories = Directories(given)
    except NotADirectoryError as error:
        parser.error(f"not a directory: {error}")
    try:
        server = EditServer(
            directories, _limits(arguments), offered=offered, require_read=arguments.require_read, approve=approve
        )
        server.run("stdio")
    finally:
        directories.close()


def _add_choices(parser: argparse.ArgumentParser) -> None:
    """Add what says which tools there are and what they ask for first."""
    parser.add_argument(
        "--tools",
        type=_names,
        default=[],
        metavar="NAMES",
        help=f"offer only these tools or sets of tools, separated by commas; the sets are {', '.join(SETS)}",
    )
    parser.add_argument("--read-only", action="store_true", help="offer only tools that change nothing")
    parser.add_argument(
        "--require-read",
        action="store_true",
        help="refuse every change of a file whose present version was not read in this session",
    )
    parser.add_argument(
        "--approve",
        type=_names,
        default=["Undo"],
        metavar="NAMES",
        help="tools that ask the person first, where the client can ask; empty for none (default: Undo)",
    )


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def _add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the limits that can be set, with what they are if nobody sets them."""
    usual = Limits()
    limits = parser.add_argument_group("limits")
    for option, name, kind, words in (
        ("--max-file-size", "max_file_bytes", int, "bytes of a file that is read or edited"),
        ("--min-free-space", "min_free_space", int, "bytes to be free where a patch or a backup is written"),
        ("--binary-check-bytes", "binary_check_bytes", int, "bytes looked at to tell whether a file is binary"),
        ("--non-text-threshold", "non_text_threshold", float, "part of them that may be no text in a text file"),
    ):
        value = getattr(usual, name)
        limits.add_argument(
            option, dest=name, metavar="N", type=kind, default=value, help=f"{words} (default: {value})"
        )


def _limits(arguments: argparse.Namespace) -> Limits:
    return Limits(
        max_file_bytes=arguments.max_file_bytes,
        min_free_space=arguments.min_free_space,
        binary_check_bytes=arguments.binary_check_bytes,
        non_text_threshold=arguments.non_text_threshold,
    )


def _version() -> str:
    try:
        return metadata.version("editledger")
    except metadata.PackageNotFoundError:
        return "unreleased"  # run from a source tree that is not installed


def _client(context: Context[Any, Any]) -> dict[str, str]:
    """Return what the client calls itself, as it is recorded with each change."""
    params = context.request_context.session.client_params
    if params is None:
        return {}
    named = {"client": params.client_info.name, "client_version": params.client_info.version}
    return {key: value[:_MAX_NAME] for key, value in named.items() if value}


# ---- results


def _answered(answer: Answer[Any]) -> CallToolResult:
    content = [TextContent(type="text", text=answer.text)]
    if answer.notes:
        content.append(TextContent(type="text", text="\n".join(answer.notes)))
    return CallToolResult(content=list(content), structured_content=asdict(answer.content))


def _refused(failure: Failure, traits: Traits) -> CallToolResult:
    structured: dict[str, object] = {"error": failure.error()}
    if traits.flat_errors:
        structured = failure.flat()
    elif not traits.bare_errors:
        structured = {"success": False, **structured}
    content = [TextContent(type="text", text=str(failure))]
    if failure.hint:
        content.append(TextContent(type="text", text=failure.hint))
    return CallToolResult(content=list(content), structured_content=structured, is_error=True)


def _invalid_arguments(name: str, error: ValidationError) -> Failure:
    wrong = []
    for found in error.errors(include_input=False, include_url=False):
        where = ".".join(str(part) for part in found["loc"])
        what = (
            "unknown argument" if found["type"] in {"extra_forbidden", "unexpected_keyword_argument"} else found["msg"]
        )
        wrong.append(f"{where}: {what}")
    message = f"Invalid arguments for {name}: {'; '.join(wrong)}"
    return Failure(Kind.INVALID_REQUEST, message, arguments=wrong)


def _resource(find: Callable[..., str | bytes]) -> Callable[..., str | bytes]:
    """Return a method of `Resources` as the SDK registers it."""

    @functools.wraps(find)
    def read(**arguments: str) -> str | bytes:
        try:
            return find(**arguments)
        except Failure as failure:
            kind = ResourceNotFoundError if failure.kind is Kind.FILE_NOT_FOUND else ResourceError
            raise kind(str(failure)) from failure

    return read


# ---- tools


def _tool(
    method: Callable[..., Answer[Any]], traits: Traits, ask: Callable[..., Coroutine[Any, Any, object]] | None
) -> Tool:
    """Return a method of `Tools` as the SDK registers it. `ask`: what asks the person first; None: nothing does."""

    @functools.wraps(method)
    def run(**arguments: Any) -> CallToolResult:  # noqa: ANN401 - checked against the signature before
        approval = arguments.pop(_APPROVAL, None)
        if ask is not None and not (isinstance(approval, AcceptedElicitation) and approval.data.approve):
            return _refused(Failure(Kind.NOT_APPROVED, "The person did not approve this; nothing was changed"), traits)
        try:
            return _answered(method(**arguments))
        except Failure as failure:
            return _refused(failure, traits)

    if ask is not None:
        _add_parameter(run, method, Annotated[ElicitationResult[Approval], Resolve(ask)])

    tool = Tool.from_function(
        run,
        title=traits.title,
        description=inspect.getdoc(method),
        annotations=ToolAnnotations(
            title=traits.title,
            read_only_hint=traits.read_only,
            destructive_hint=traits.destructive,
            idempotent_hint=traits.idempotent,
            open_world_hint=False,
        ),
        structured_output=False,
    )
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = _described(_flat(arguments.model_json_schema()), method)
    tool.fn_metadata.output_schema = _output_schema(method, traits)
    return tool


def _add_parameter(run: Callable[..., object], method: Callable[..., object], hint: object) -> None:
    """Give `run` the signature of `method` and a parameter for the person's approval, which no client can pass."""
    signature = inspect.signature(method)
    approval = inspect.Parameter(_APPROVAL, inspect.Parameter.KEYWORD_ONLY, annotation=hint)
    vars(run)["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), approval])
    run.__annotations__ = {**run.__annotations__, _APPROVAL: hint}


def _described(schema: dict[str, Any], method: Callable[..., object]) -> dict[str, Any]:
    """Return an input schema with the words that stand beside the types in a method's signature."""
    for name, hint in get_type_hints(method, include_extras=True).items():
        words = [part for part in get_args(hint)[1:] if isinstance(part, str)]
        if name in schema["properties"] and words:
            schema["properties"][name]["description"] = words[0]
    return schema


def _output_schema(method: Callable[..., object], traits: Traits) -> dict[str, Any]:
    """Return the schema of a tool's structured content: what it answers with, or what its failures say."""
    (structured,) = get_args(get_type_hints(method)["return"])
    schema = _flat(TypeAdapter(structured).json_schema(mode="serialization"))
    if traits.flat_errors:
        schema["properties"] |= {"error": {"type": "string"}, "error_type": {"type": "string"}}
    else:
        schema["properties"]["error"] = _ERROR_SCHEMA
    schema["required"] = [] if traits.bare_errors else ["success"]
    return schema


def _flat(schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return `schema` with every definition in its place, and without titles, which only repeat names."""
    if definitions is None:
        definitions = schema.get("$defs", {})
    if {"type": "null"} in schema.get("anyOf", ()):
        (part,) = (_flat(part, definitions) for part in schema["anyOf"] if part != {"type": "null"})
        return {**part, "type": [part["type"], "null"]}
    reference = schema.get("$ref")
    if reference is not None:
        # What a definition says of itself is for readers of the code; a model pays for each word.
        definition = {**definitions[reference.removeprefix("#/$defs/")]}
        definition.pop("description", None)
        schema = {**definition, **schema}
    flat = {key: value for key, value in schema.items() if key not in {"$defs", "$ref", "title"}}
    if "properties" in flat:
        flat["properties"] = {name: _flat(part, definitions) for name, part in flat["properties"].items()}
    if "items" in flat:
        flat["items"] = _flat(flat["items"], definitions)
    return flat
