"""Find the hooked session whose agent makes a call of our own MCP server.

A hook announces each call of our server before the agent's program sends it. The server then looks for an announced
call of the same tool with the same arguments, and records its changes in the turn of the session that announced it. So
no id that an agent writes chooses a session: what counts is which program's hook announced the call.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from objstore.disk.fs.processes import has_ended
from objstore.model.ids import blob_id
from objstore.model.results import CallInfo
from objstore.review.calls.agent_files import key_of
from objstore.review.calls.evidence_log import log_of
from objstore.review.calls.open_calls import (
    FORGOTTEN_AFTER,
    AgentCall,
    OpenCalls,
    call_of_fields,
    fields_of_call,
)
from objstore.storage.transaction.journal import Journal
from objstore.values.clock import now
from objstore.values.errors import CasError
from objstore.values.fastclass import replace

__all__ = ["ServerCalls", "arguments_digest", "is_tool_named"]

_ANNOUNCED: Final = "asks-"
_TAKEN: Final = "taken-"


class ServerCalls:
    """The calls of our server that the hooks of one workspace have announced and that have not ended."""

    def __init__(self, journal: Journal) -> None:
        """Take the journal of the workspace; read nothing yet."""
        self._log: Final = log_of(journal)
        self._open: Final = OpenCalls(journal)

    def announce(self, call: AgentCall) -> None:
        """Note that an agent is about to make a call, with the turn that it is in. Raises what the disk raises."""
        name = _name_of(call)
        if not self._log.exists(name):  # a client may report a beginning twice
            self._log.write(name, fields_of_call(self._open.in_turn(call)))

    def withdraw(self, call: AgentCall) -> AgentCall | None:
        """Note that an announced call has ended, or is not made after all; return it (None: it was not announced)."""
        announced = call_of_fields(self._log.read(_name_of(call)))
        self._remove(_name_of(call))
        return announced

    def withdraw_all(self, conversation: str, is_ended: Callable[[AgentCall], bool]) -> None:
        """Note that some announced calls of a conversation have ended."""
        for name, call in self._announced().items():
            if call.conversation == conversation and is_ended(call):
                self._remove(name)

    def take(self, tool: str, given: Mapping[str, object]) -> CallInfo | None:
        """Return the session's call that announced one that the server now carries out, with its turn (None: none did).

        Each announced call is taken once. If several sessions have announced the same call, none is meant.
        """
        digest = arguments_digest(given)
        try:
            announced = self._announced()
        except (CasError, OSError):
            return None  # without the log no session is known; the tool goes on
        found = {
            name: call
            for name, call in announced.items()
            if call.asks == digest and is_tool_named(call.tool, tool) and not self._log.exists(_taken(name))
        }
        if len({call.conversation for call in found.values()}) != 1:
            return None
        name = min(found, key=lambda each: found[each].began)
        try:
            self._log.write(_taken(name), {})
        except (CasError, OSError):
            return None  # the same announcement could be taken again, by a call of another agent
        info = found[name].info
        return None if info.turn is None else replace(info, turn=replace(info.turn, conversation=info.turn.session))

    # ---- inside

    def _announced(self) -> dict[str, AgentCall]:
        """Return the announced calls by their names in the log. Calls of programs that died are removed."""
        oldest = now() - FORGOTTEN_AFTER
        calls: dict[str, AgentCall] = {}
        for name in self._log.names(_ANNOUNCED):
            call = call_of_fields(self._log.read(name))
            if call is None or call.began < oldest or (call.process is not None and has_ended(call.process)):
                self._remove(name)
            else:
                calls[name] = call
        return calls

    def _remove(self, name: str) -> None:
        self._log.remove(name, _taken(name))


def arguments_digest(given: object) -> str:
    """Return a name for the arguments of a call, given as a map or as its JSON ("": they can't be named)."""
    with suppress(ValueError, TypeError, RecursionError):
        held = json.loads(given) if isinstance(given, str) else given
        return blob_id(json.dumps(held, sort_keys=True).encode()).hex()
    return ""


def is_tool_named(tool: str, name: str) -> bool:
    """Return whether a client's name of a tool, which begins with its server's, may mean our tool `name`."""
    return bool(name) and tool.endswith(tuple(mark + name for mark in "_:-"))


def _name_of(call: AgentCall) -> str:
    return _ANNOUNCED + key_of(call.conversation, call.id)


def _taken(name: str) -> str:
    return _TAKEN + name.removeprefix(_ANNOUNCED)
