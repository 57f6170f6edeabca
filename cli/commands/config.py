"""The command `cas config`: show the effective settings and their source, and change them."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar

import click

from cli.app.invocation import Invocation, command_group, json_option, reviewer
from cli.screen.terminal import Screen, shown_name, write, write_json
from cli.search.candidates import setting_values, settings

if TYPE_CHECKING:
    from objstore import Configuration, ConfiguredValue, Json

__all__ = ["config"]

MOST_WIDTH: Final = 12
"""Columns for values; what is longer shifts the rest of its line."""

Function = TypeVar("Function", bound=Callable[..., object])


def _own_option(function: Function) -> Function:
    return click.option("--user", "own", is_flag=True, help="In your own settings, for all workspaces.")(function)


@command_group("config", otherwise="list")
def config() -> None:
    """List, read and change settings: `cas config get NAME`, `cas config set NAME VALUE`.

    The first of these that has a setting wins: .cas/config.toml of the workspace, editledger/config.toml in your
    settings folder (~/.config, or XDG_CONFIG_HOME), the environment.
    """


@config.command("list")
@json_option
def listing(*, as_json: bool) -> None:
    """List every setting with its value and its source. With --json, one object a line."""
    found = _configuration().all()
    if as_json:
        write(_json_line(given) for given in found)
    else:
        write(_list_text(found, Invocation.current().screen()))


@config.command("get")
@click.argument("name", metavar="NAME", shell_complete=settings)
@json_option
def get(*, name: str, as_json: bool) -> None:
    """Print the value of a setting."""
    given = _configuration().get(name)
    write([_json_line(given) if as_json else Invocation.current().screen().line(given.spelling)])


@config.command("set")
@click.argument("name", metavar="NAME", shell_complete=settings)
@click.argument("value", metavar="VALUE", shell_complete=setting_values)
@_own_option
def change(*, name: str, value: str, own: bool) -> None:
    """Set a setting of this workspace. Comments and all other content of the file stay."""
    configuration = _configuration(changing=not own)
    _require_person(configuration)
    before = _in_workspace(configuration, name)
    configuration.set(name, value, own=own)
    if not own:
        _record_policy(name, before, _in_workspace(configuration, name))


@config.command("unset")
@click.argument("name", metavar="NAME", shell_complete=settings)
@_own_option
def unset(*, name: str, own: bool) -> None:
    """Remove a setting from this workspace's file. Exits with 1 if it is not in the file."""
    configuration = _configuration(changing=not own)
    _require_person(configuration)
    before = _in_workspace(configuration, name)
    is_unset = configuration.unset(name, own=own)
    if not own:
        _record_policy(name, before, "")
    if not is_unset:
        raise click.ClickException(f"{name} is not set in {configuration.files[-1 if own else 0]}.")


@config.command("history")
@click.argument("name", metavar="[NAME]", default="", shell_complete=settings)
@json_option
def history(*, name: str, as_json: bool) -> None:
    """List who changed which policy of this workspace, and when, oldest first. With --json, one object a line."""
    from objstore import Configuration

    if name:
        Configuration().get(name)
    invocation = Invocation.current()
    with invocation.workspace() as workspace:
        found = workspace.review.policy_changes(name)
    if as_json:
        from objstore import record_shape

        write_json(record_shape(change) for change in found)
        return
    from cli.render.edits import moment

    screen = invocation.screen()
    for change in found:
        before, after = (shown_name(text) if text else "not set" for text in (change.before, change.after))
        who = shown_name(change.who) or "a person"
        write([screen.line(f"{moment(change.time)}  {who}  {shown_name(change.name)}: {before} -> {after}")])
    if not found:
        click.echo("No policy was changed.", err=True)


def _in_workspace(configuration: "Configuration", name: str) -> str:
    """Return how a policy is written in the workspace's file ("": it is not in it, or no policy)."""
    from objstore import CasError

    try:
        given = configuration.get(name)
    except CasError:
        return ""
    is_there = given.setting.is_policy and given.origin == configuration.files[0] and len(configuration.files) > 1
    return given.spelling if is_there else ""


def _require_person(configuration: "Configuration") -> None:
    """Refuse a change inside an agent's shell, of the user's own settings too. Raises AgentDecides."""
    if len(configuration.files) > 1:  # those of the user alone: there is no workspace here, and no agent known
        with Invocation.current().workspace() as workspace:
            workspace.review.require_person()


def _record_policy(name: str, before: str, after: str) -> None:
    """Record a change of a policy in the journal. Nothing is recorded if it is as it was last recorded."""
    from objstore import Configuration

    invocation = Invocation.current()
    if not Configuration().knows_policy(name):
        return
    with invocation.workspace() as workspace:
        newest = next((change.after for change in reversed(workspace.review.policy_changes(name))), "")
        if newest != after:
            workspace.review.record_policy(name, before, after, who=reviewer())


def _configuration(*, changing: bool = False) -> "Configuration":
    """Return the settings of the workspace here; outside of one, the user's (`changing`: raise NotAWorkspace)."""
    from objstore import Configuration, NotAWorkspace

    try:
        return Configuration.find(Invocation.current().start())
    except NotAWorkspace:
        if changing:
            raise
        return Configuration()


def _list_text(found: "list[ConfiguredValue]", screen: Screen) -> Iterator[bytes]:
    width = max(len(given.setting.name) for given in found)
    value_width = min(MOST_WIDTH, max(len(given.spelling) for given in found))
    for given in found:
        origin = shown_name(given.origin) if given.origin else "default"
        name = screen.paint(f"{given.setting.name:{width}}", bold=True)
        yield screen.line(f"{name}  {shown_name(given.spelling):{value_width}}  ({origin})")
        yield screen.line(f"    {given.setting.meaning}")


def _json_line(given: "ConfiguredValue") -> bytes:
    from objstore import json_line, text_shape

    setting = given.setting
    shape: dict[str, Json] = {
        "name": setting.name,
        "value": [*given.value] if isinstance(given.value, tuple) else given.value,
        "spelling": text_shape(given.spelling),
        "unit": setting.kind.unit or None,
        "origin": text_shape(given.origin) or None,
        "default": setting.default,
        "variable": setting.variable,
        "meaning": setting.meaning,
    }
    return json_line(shape)
