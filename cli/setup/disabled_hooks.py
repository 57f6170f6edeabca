"""Find settings with which clients turn hooks off, all or ours: then the setup exists, but nothing is recorded.

Facts from the clients' own documentation. Settings of an administrator for all users are not checked.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cli.setup.jsonc_edit import loaded
from cli.setup.plans import NAME, Scope
from cli.setup.settings_files import text_of

__all__ = ["DisabledHooks", "disabled_hooks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisabledHooks:
    """A setting that turns a client's hooks off: all of them, or ours by name."""

    path: Path
    name: str
    value: bool | str

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            said = str(self.value).lower()
            return f"{self.path} sets {self.name} = {said}, which turns all hooks off; remove that setting"
        return f"{self.path} lists {json.dumps(self.value)} in {self.name}, which turns our hooks off; remove it there"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Switch:
    """The location of a client's switch, and its names."""

    own: Sequence[str]  # files of the user, relative to the client's folder
    projects: Sequence[str]  # files of the project, relative to its folder; the last one wins
    names: Sequence[Sequence[str]]  # paths to it: its name, and its former names
    off: bool
    listed: Sequence[str] = ()  # path to a list of disabled hooks, by name; entries of all files count


_SWITCHES: Final[Mapping[str, _Switch]] = {
    "claude-code": _Switch(
        own=["settings.json"],
        projects=[".claude/settings.json", ".claude/settings.local.json"],
        names=[["disableAllHooks"]],
        off=True,
    ),
    "codex": _Switch(
        own=["config.toml"],
        projects=[".codex/config.toml"],
        names=[["features", "codex_hooks"], ["features", "hooks"]],
        off=False,
    ),
    "gemini": _Switch(
        own=["settings.json"],
        projects=[".gemini/settings.json"],
        names=[["hooksConfig", "enabled"]],
        off=False,
        listed=["hooksConfig", "disabled"],
    ),
}


def disabled_hooks(client: str, root: Path | None, home: Path) -> DisabledHooks | None:
    """Return the setting that turns the client's hooks off in the project at `root`; None: none is known.

    `root`: None for the user's settings for all projects.
    """
    switch = _SWITCHES.get(client)
    if switch is None:
        return None
    own = Scope(project=None, home=home).folder(client)
    found, ours = None, None
    for path in [*(own / name for name in switch.own), *(root / name for name in switch.projects if root is not None)]:
        said = _said(path)
        for names in switch.names:
            value = _value(said, names)
            if isinstance(value, bool):
                is_off = value is switch.off
                found = DisabledHooks(path=path, name=".".join(names), value=value) if is_off else None
        listed = _value(said, switch.listed) if switch.listed else None
        if ours is None and isinstance(listed, list) and NAME in listed:
            ours = DisabledHooks(path=path, name=".".join(switch.listed), value=NAME)
    return found or ours


def _said(path: Path) -> object:
    """Return the content of a settings file; one that can't be read counts as empty."""
    try:
        text = (text_of(path) or "").removeprefix("\ufeff")
        return tomllib.loads(text) if path.suffix == ".toml" else loaded(text)
    except (OSError, ValueError):
        return None


def _value(said: Any, names: Sequence[str]) -> object:  # noqa: ANN401 - whatever a settings file holds
    for name in names:
        said = said.get(name) if isinstance(said, dict) else None
    return said
