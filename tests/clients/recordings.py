"""Keep the events of clients' hooks, and compare them with today's: by names and types, not by values."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.clients.client_run import WAITING, ClientRun

__all__ = ["FOLDER", "PROJECT", "differences", "keep", "recorded"]

FOLDER: Final = Path(__file__).parents[1] / "cli" / "hooks" / "recorded"
PROJECT: Final = "/project"
"""What the folder of the project is called in a recording."""

HOME: Final = "/home/person"
NAMES: Final = ("hook_event_name", "hook", "tool_name", "tool")
LONGEST: Final = 4000
"""Characters of a text that are kept."""


def recorded(command: str) -> dict[str, Any]:
    """Return what was kept of a client: its version, and the events of each scenario."""
    path = FOLDER / f"{command}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def keep(run: ClientRun, scenario: str) -> None:
    """Write the events of a scenario, without the names of this machine."""
    FOLDER.mkdir(exist_ok=True)
    held = recorded(run.program.command)
    held |= {"client": run.program.name, "version": run.program.version, scenario: _events(run)}
    (FOLDER / f"{run.program.command}.json").write_text(json.dumps(held, indent=1, sort_keys=True) + "\n")


def differences(run: ClientRun, scenario: str) -> list[str]:
    """Return how the events of a scenario differ from those that were kept."""
    shapes = [list(map(_shape, events)) for events in (recorded(run.program.command).get(scenario, []), _events(run))]
    kept, found = ({json.dumps(shape, sort_keys=True) for shape in each} for each in shapes)
    gone = [f"no longer reported: {shape}" for shape in sorted(kept - found)]
    return gone + [f"reported now: {shape}" for shape in sorted(found - kept)]


def _events(run: ClientRun) -> list[Any]:
    names = {str(run.project): PROJECT, str(run.home): HOME}
    # How often a client had to wait for our server says nothing.
    comparable = [event for event in run.events() if WAITING not in json.dumps(event)]
    return [_without(event, names) for event in comparable]


def _without(held: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(held, dict):
        return {_without(name, names): _without(value, names) for name, value in held.items()}
    if isinstance(held, list):
        return [_without(value, names) for value in held]
    if isinstance(held, str):
        for name, by in names.items():
            held = held.replace(name, by).replace(name.replace("/", "-"), by.replace("/", "-"))
        return held if len(held) <= LONGEST else held[: LONGEST // 2] + held[-LONGEST // 2 :]
    return held


def _shape(event: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of an event with their types, and what it is called."""
    return dict(_fields("", event)) | {name: str(event[name]) for name in NAMES if name in event}


def _fields(above: str, held: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON
    if isinstance(held, Mapping):
        for name, value in held.items():
            yield from _fields(f"{above}.{name}" if above else name, value)
    else:
        yield above, type(held).__name__
