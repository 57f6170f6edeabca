"""Register tools with the protocol's SDK when they are first called, with the signatures that clients see."""

import inspect
from collections.abc import Callable, Mapping, Sequence

from mcp.server.mcpserver.tools import Tool, ToolManager

from mcptools.catalog.schemas import described, flat, output_schema
from mcptools.catalog.tool_list import Traits
from mcptools.server.results import annotations

__all__ = ["ToolsOnDemand", "give_signature", "registered_tool"]


class ToolsOnDemand(ToolManager):
    """The tools, each created when it is first called: creating all of them takes a third of the server's start."""

    def __init__(self, making: Mapping[str, Callable[[], Tool]]) -> None:
        """Take the functions that create each tool, by name."""
        super().__init__()
        self._making = making

    def get_tool(self, name: str) -> Tool | None:
        """Return a tool, or None if it is not offered."""
        tool = self._tools.get(name)
        if tool is None and name in self._making:
            tool = self._tools[name] = self._making[name]()
        return tool


def give_signature(
    run: Callable[..., object], shown: Sequence[inspect.Parameter], hidden: Mapping[str, object]
) -> None:
    """Give `run` a signature of the `shown` parameters, and `hidden` ones that no client can pass."""
    added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hint) for name, hint in hidden.items()]
    vars(run)["__signature__"] = inspect.Signature([*shown, *added])
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*shown, *added]}


def registered_tool(run: Callable[..., object], method: Callable[..., object], traits: Traits) -> Tool:
    """Return a tool as the SDK registers it, with the flat schemas of its method. `run`: what is called then."""
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
    tool.parameters = described(flat(arguments.model_json_schema()), method)
    tool.fn_metadata.output_schema = output_schema(method, traits)
    return tool
