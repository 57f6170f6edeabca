"""Judge how well a language model chooses tools from a list: `python -m tests.support.tool_choice LIST [COMMAND…]`.

It prints a list of tools and the 60 tasks of `tests/mcptools/catalog/data/tool_choice_tasks.json`. A model gets this
text and nothing else, and answers with a JSON array of 60 names. `tool_choice_readings.json` next to the tasks keeps
the answers. LIST is `default` or `all` for our server, or `official`, whose server COMMAND starts.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import Tool

__all__ = ["READINGS", "TASKS", "Task", "digest", "share_right", "text_for_a_model"]

_DATA: Final = Path(__file__).resolve().parents[1] / "mcptools" / "catalog" / "data"
_BEFORE: Final = (
    "You are a language model that works on a person's files with the tools below, and with no others. A person "
    "reviews every change.\n\nTools (name, description, input schema):\n\n"
)
_BETWEEN: Final = (
    "\nTasks. For each, name the ONE tool that you would call to do it (where several calls are needed: the tool of "
    "the decisive call); paths are below the allowed directory, and what you would need to know beforehand (a file's "
    "current text) you know already unless the task is to look. Write none where no tool of the list can do it.\n\n"
)


@dataclass(frozen=True, slots=True)
class Task:
    """A task, and for each list of tools the names that do it; "none": no tool of the list can."""

    task: str
    default: Sequence[str]
    all: Sequence[str]
    official: Sequence[str]


TASKS: Final = [Task(**task) for task in json.loads((_DATA / "tool_choice_tasks.json").read_text())]
READINGS: Final[dict[str, dict[str, Any]]] = json.loads((_DATA / "tool_choice_readings.json").read_text())
"""By list: the `digest` of the text that the models were given, and the `answers` of each reading."""


def text_for_a_model(tools: Sequence[Tool]) -> str:
    """Return what a model is given."""
    listed = "".join(
        f"- {tool.name}: {tool.description}\n  {json.dumps(tool.input_schema, ensure_ascii=False)}\n" for tool in tools
    )
    tasks = "".join(f"{number}. {task.task}\n" for number, task in enumerate(TASKS, 1))
    return f"{_BEFORE}{listed}{_BETWEEN}{tasks}"


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def share_right(name: str, answers: Sequence[str]) -> float:
    """Return the share of `answers` that name a right tool of a list."""
    right = [answer in getattr(task, name) for task, answer in zip(TASKS, answers, strict=True)]
    return sum(right) / len(right)


async def _tools(command: str, arguments: list[str]) -> list[Tool]:
    async with Client(stdio_client(StdioServerParameters(command=command, args=arguments))) as client:
        return (await client.list_tools()).tools


def main(name: str, command: Sequence[str]) -> None:
    """Print the text for a list."""
    ours = (sys.executable, "-m", "mcptools", "--tools", name)
    with TemporaryDirectory() as folder:
        program, *arguments = command or ours
        sys.stdout.write(text_for_a_model(anyio.run(_tools, program, [*arguments, folder])))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
