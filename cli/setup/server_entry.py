"""Say what a client's list of MCP servers holds of ours: the command that it starts, or the address that it calls."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final

__all__ = ["NAME", "TOKEN", "ServerEntry", "is_address"]

NAME: Final = "editledger"
"""Our name in other programs' settings."""

TOKEN: Final = "EDITLEDGER_TOKEN"  # noqa: S105 - the name of the environment variable
"""The variable with the token of a server over HTTP: no settings file has the token itself."""

_ADDRESS: Final = re.compile(
    r"http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?/mcp(/[A-Za-z0-9][A-Za-z0-9._~-]{0,127})?"
)


def is_address(text: str) -> bool:
    """Return whether a text can be the address of our server, with a client's name at its end or without."""
    return _ADDRESS.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """The entry of our server among a client's: what it must hold; a user may add more."""

    command: str
    arguments: Sequence[str]
    started: Mapping[str, object] = field(default_factory=dict)  # further members if the client starts the command
    is_one_list: bool = False  # whether the command and its arguments are one list
    address: str  # that the client calls; "": it starts the command
    name: str  # of the client in its address, if `address` has none and the client has none there yet
    called: Mapping[str, object] = field(default_factory=dict)  # further members if it calls an address
    key_of_address: str = "url"

    def members(self, existing: object) -> dict[str, Any]:
        """Return the members to set in the existing entry: arguments of our server that are there are the user's.

        A client that has a name at the same server keeps it.
        """
        if self.address:
            given = self._called_by(existing)
            own = self.address
            if own.endswith("/mcp"):
                own = given if given.startswith(f"{own}/") else f"{own}/{self.name}"
            return {**self.called, self.key_of_address: own}
        ours: dict[str, Any] = {"command": self.command, "args": list(self.arguments)}
        if self._starts_ours(existing) and (given := self._given(existing)) is not None:
            ours["args"] = given
        if self.is_one_list:
            ours = {"command": [ours["command"], *ours["args"]]}
        return {**self.started, **ours}

    def is_of_other_kind(self, existing: object) -> bool:
        """Return whether an existing entry starts a command, but this one calls an address, or the other way round."""
        return isinstance(existing, Mapping) and ("command" if self.address else self.key_of_address) in existing

    def is_foreign_entry(self, existing: object) -> bool:
        """Return whether an existing entry runs something else: a user had it before us."""
        return existing is not None and not self._starts_ours(existing) and not self._called_by(existing)

    def has_extra_settings(self, existing: object) -> bool:
        """Return whether an existing entry of our server has something of a user's."""
        if not isinstance(existing, Mapping) or self.is_foreign_entry(existing):
            return False
        if address := self._called_by(existing):
            return existing != {**self.called, self.key_of_address: address}
        return {**existing, **self.members(existing)} != self.members(None)

    def remark(self, existing: object) -> str:
        """Return a warning about arguments that are left alone and may not work ("": none)."""
        given = self._given(existing) if self._starts_ours(existing) and not self.address else None
        ours = list(self.arguments)
        if given is None or (isinstance(given, list) and given[max(0, len(given) - len(ours)) :] == ours):
            return ""
        said = f"our server's arguments {json.dumps(given)} stay as they are"
        return f"{said}; those of `cas setup` end in {json.dumps(ours)}" if ours else said

    def _starts_ours(self, existing: object) -> bool:
        command = existing.get("command") if isinstance(existing, Mapping) else None
        if self.is_one_list:
            command = command[0] if isinstance(command, list) and command else None
        return isinstance(command, str) and (command == self.command or PurePath(command).name == NAME)

    def _called_by(self, existing: object) -> str:
        """Return the address of our server that an existing entry calls; "": it calls none."""
        address = existing.get(self.key_of_address) if isinstance(existing, Mapping) else None
        return address if isinstance(address, str) and is_address(address) else ""

    def _given(self, existing: Any) -> Any:  # noqa: ANN401 - whatever a settings file holds
        """Return the arguments of an entry that runs our server; None: it has none."""
        return existing["command"][1:] if self.is_one_list else existing.get("args")
