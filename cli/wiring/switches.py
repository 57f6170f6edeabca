"""Switches with which clients turn all hooks off: with one set, all that was set up stands there and nothing happens.

Facts from the clients' own documentation. What an administrator sets for everybody is not looked at.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cli.wiring.jsontext import loaded

__all__ = ["SwitchedOff", "switched_off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchedOff:
    """A setting that turns a client's hooks off."""

    path: Path
    name: str
    value: bool

    def __str__(self) -> str:
        said = str(self.value).lower()
        return f"{self.path} says {self.name} = {said}, so none is called, and ours neither; take that out"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Switch:
    """Where a client's switch stands, and how."""

    own: Sequence[str]  # files of the user, from the home
    projects: Sequence[str]  # files of the project, from its folder; what a later one says counts
    names: Sequence[Sequence[str]]  # paths to it: its name, and names that it had
    off: bool


_SWITCHES: Final[Mapping[str, _Switch]] = {
    "claude-code": _Switch(
        own=[".claude/settings.json"],
        projects=[".claude/settings.json", ".claude/settings.local.json"],
        names=[["disableAllHooks"]],
        off=True,
    ),
    "codex": _Switch(
        own=[".codex/config.toml"],
        projects=[".codex/config.toml"],
        names=[["features", "codex_hooks"], ["features", "hooks"]],
        off=False,
    ),
    "gemini": _Switch(
        own=[".gemini/settings.json"],
        projects=[".gemini/settings.json"],
        names=[["hooksConfig", "enabled"]],
        off=False,
    ),
}


def switched_off(client: str, root: Path, home: Path) -> SwitchedOff | None:
    """Return what turns the client's hooks off in the project at `root`; None: nothing that is known of."""
    switch = _SWITCHES.get(client)
    if switch is None:
        return None
    found: SwitchedOff | None = None
    for path in [*(home / name for name in switch.own), *(root / name for name in switch.projects)]:
        said = _said(path)
        for names in switch.names:
            value = _value(said, names)
            if isinstance(value, bool):
                is_off = value is switch.off
                found = SwitchedOff(path=path, name=".".join(names), value=value) if is_off else None
    return found


def _said(path: Path) -> object:
    """Return what a settings file says; one that can't be read says nothing."""
    try:
        text = path.read_text("utf-8")
        return tomllib.loads(text) if path.suffix == ".toml" else loaded(text)
    except (OSError, ValueError):
        return None


def _value(said: Any, names: Sequence[str]) -> object:  # noqa: ANN401 - whatever a settings file holds
    for name in names:
        said = said.get(name) if isinstance(said, dict) else None
    return said
