"""Find the agent programs that this user has: by their commands, and by the settings that they have made."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from cli.hooks.clients.described import DESCRIBED, described
from cli.setup.plans import HOMES

__all__ = ["installed_clients"]

_TRACES: Final[Mapping[str, tuple[Sequence[str], Sequence[str]]]] = {
    "claude-code": (["claude"], [".claude"]),
    "codex": (["codex"], [".codex"]),
    "gemini": (["gemini"], [".gemini"]),
    "cursor": (["cursor", "cursor-agent"], [".cursor"]),
    "vscode": (["code", "copilot"], [".vscode", ".copilot"]),
    "opencode": (["opencode"], [".config/opencode", ".opencode"]),
}
"""The commands of each client, and the folders that it makes in the home. Those described have commands alone."""


def installed_clients(home: Path) -> list[str]:
    """Return the clients of `cas setup` that are there, in its order."""
    found = [name for name in DESCRIBED if any(map(shutil.which, described(name).commands))]
    return [*(client for client in _TRACES if _is_there(client, home)), *found]


def _is_there(client: str, home: Path) -> bool:
    commands, folders = _TRACES[client]
    named = os.environ.get(HOMES[client][0], "") if client in HOMES else ""
    places = [*(home / folder for folder in folders), *([Path(named)] if named else [])]
    return any(map(shutil.which, commands)) or any(place.is_dir() for place in places)
