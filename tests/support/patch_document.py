"""Run the code that the patch tools' document prints, unaltered, with the tools of a server.

`tests/mcptools/tools/data/` has it: the recovery patterns, the safety check that one of them calls, and the workflows.
Relative paths in it are relative to the server's directory, so a test has to be in that.
"""

import logging
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.support.mcp_agent import Agent

__all__ = ["DocumentsCode"]

_DATA: Final = Path(__file__).resolve().parents[1] / "mcptools" / "tools" / "data"
_PARAMETERS: Final = {
    "apply_patch": ("file_path", "patch", "dry_run"),
    "validate_patch": ("file_path", "patch"),
    "revert_patch": ("file_path", "patch"),
    "generate_patch": ("original_file", "modified_file"),
    "inspect_patch": ("patch",),
    "backup_file": ("file_path",),
    "restore_backup": ("backup_file", "target_file", "force"),
}
"""The document's tools and their parameters, in the order in which its code passes them."""


class DocumentsCode:
    """The document's code, with an agent's tools under the names that it calls them by.

    `before`: called before each call of a tool, with the tool's name and arguments.
    """

    def __init__(
        self, agent: Agent, *, before: Callable[[str, dict[str, object]], object] = lambda _tool, _arguments: None
    ) -> None:
        self._agent = agent
        self._before = before
        self.calls: list[str] = []
        """The tools that were called, in order."""
        tools = {tool: self._tool(tool, names) for tool, names in _PARAMETERS.items()}
        logger = logging.getLogger("document")
        safety = runpy.run_path(str(_DATA / "file_safety.txt"))
        self._names: dict[str, object] = {**safety, **tools, "logger": logger, "read_file": self._read_file}
        self._names["write_file"] = lambda path, content: agent.done("write_file", path=path, content=content)
        self._names |= runpy.run_path(str(_DATA / "error_recovery_patterns.txt"), self._names)

    def pattern(self, name: str) -> Callable[..., dict[str, Any]]:
        """Return the function that a recovery pattern is printed as."""
        found = self._names[name]
        assert callable(found)
        return found

    def workflow(self, name: str, folder: Path, **variables: object) -> dict[str, Any]:
        """Run a workflow with the variables that it uses, and return those that it sets. `folder`: for its code."""
        parts = re.split(r"^# ---- (.+)\n", (_DATA / "workflows.txt").read_text(), flags=re.MULTILINE)
        code = dict(zip(parts[1::2], parts[2::2], strict=True))[name]
        script = folder / f"{name}.txt"
        script.write_text(code)
        return runpy.run_path(str(script), {**self._names, **variables, "exit": _stop})

    def _tool(self, tool: str, names: tuple[str, ...]) -> Callable[..., dict[str, Any]]:
        def call(*values: object, **named: object) -> dict[str, Any]:
            arguments = dict(zip(names, values, strict=False)) | named
            self._before(tool, arguments)
            self.calls.append(tool)
            return self._agent.call(tool, **arguments).structured

        return call

    def _read_file(self, path: str) -> str:
        content: str = self._agent.done("read_file", path=path).structured["content"]
        return content


def _stop(status: int) -> None:
    raise SystemExit(status)
