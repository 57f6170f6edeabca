"""A look at whether what was set up works: it runs the programs that clients would run."""

import json
import os
import select
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

from cli.hooking import CLIENTS, HOOK_LOG
from cli.wiring.files import Standing, changes, standing
from cli.wiring.plans import HOMES, WIRED, Programs, Scope, plan
from cli.wiring.switches import switched_off

if TYPE_CHECKING:
    from cli.wiring.probe import Helper

__all__ = ["Finding", "examine", "of_helper"]

_PATIENCE: Final = 10
"""Seconds that a client gives a program to start, at least."""

_SOCKET: Final = ".cas/hook.sock"

_INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "cas doctor", "version": "1"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found."""

    check: str
    ok: bool
    said: str = ""


def examine(root: Path, home: Path, programs: Programs, clients: Sequence[str] | None) -> Iterator[Finding]:
    """Yield what each check finds. `clients`: which must be set up; None: those that are."""
    yield _runs([programs.cas, "--version"], "the command runs")
    yield _server_answers(programs, root)
    wired = False
    for client in WIRED:
        places = [name for name, scope in _scopes(root, home) if not changes_of(client, scope, programs)]
        if places:
            wired = True
            named = [_named(client, home) if name == "user" else name for name in places]
            yield Finding(check=f"{client} is set up", ok=True, said=f"for the {' and the '.join(named)}")
        else:
            in_part = list(_in_part(client, root, home, programs))
            wired = wired or bool(in_part)
            yield from in_part
            if clients is not None and client in clients and all(one.ok for one in in_part):
                yield Finding(check=f"{client} is set up", ok=False, said=f"`cas setup {client}` does it")
        if client in CLIENTS and (places or (clients is not None and client in clients)):
            yield _hook_answers(client, programs, root)
            switch = switched_off(client, root, home)
            if switch is not None:
                yield Finding(check=f"{client} runs hooks", ok=False, said=str(switch))
    if not wired and clients is None:
        yield Finding(check="no client is set up", ok=True, said="`cas setup CLIENT` has an agent's own edits recorded")
    yield from of_settings(root)
    yield _no_faults(root)


def _in_part(client: str, root: Path, home: Path, programs: Programs) -> Iterator[Finding]:
    """Yield where something of ours stands in the files of a client that is set up for nobody as a whole."""
    for name, scope in _scopes(root, home):
        words = f"cas setup {client}{' --user' if name == 'user' else ''}"
        match standing(plan(client, scope, programs)):
            case Standing.NOTHING:
                pass
            case Standing.SOME:
                # A person may want no more.
                said = f"for the {name}; `{words}` does the rest"
                yield Finding(check=f"{client} is set up in part", ok=True, said=said)
            case Standing.BROKEN:
                said = f"for the {name} in part, and not all that it does is told; `{words}` mends it"
                yield Finding(check=f"{client} is set up", ok=False, said=said)


def changes_of(client: str, scope: Scope, programs: Programs) -> bool:
    """Return whether setting the client up would change anything; settings that make no sense count as a change."""
    try:
        return bool(changes(plan(client, scope, programs), remove=False))
    except (OSError, ValueError):
        return True


def _named(client: str, home: Path) -> str:
    """Return what to call the user's scope: with the place, where a variable tells another than the home."""
    told = Scope(project=None, home=home).told(client)
    return "user" if told is None else f"user, in {told}, as {HOMES[client][0]} says"


def _scopes(root: Path, home: Path) -> Iterator[tuple[str, Scope]]:
    yield "project", Scope(project=root, home=home)
    yield "user", Scope(project=None, home=home)


def _runs(arguments: Sequence[str], check: str, *, given: str = "", place: Path | None = None) -> Finding:
    try:
        ran = subprocess.run(  # noqa: S603 - the programs that clients would run
            arguments, input=given.encode(), capture_output=True, cwd=place, timeout=_PATIENCE, check=False
        )
    except OSError as error:
        return Finding(check=check, ok=False, said=str(error))
    except subprocess.TimeoutExpired:
        return Finding(check=check, ok=False, said=_late(arguments))
    said = (ran.stdout or ran.stderr).decode("utf-8", "replace").strip()
    return Finding(check=check, ok=ran.returncode == 0, said=said)


def _late(arguments: Sequence[str]) -> str:
    return (
        f"not within {_PATIENCE} s, and clients wait no longer. If the machine is busy, try again when it is not; "
        f"else {_by_hand(arguments)}"
    )


def _by_hand(arguments: Sequence[str]) -> str:
    return f"`{shlex.join(arguments)} < {os.devnull}` shows what it says"


def _hook_answers(client: str, programs: Programs, root: Path) -> Finding:
    # An event that no client has: understood as far as JSON goes, and then nothing to do.
    event = json.dumps({"hook_event_name": "Doctor", "session_id": "doctor", "cwd": str(root)})
    before = _logged(root)
    found = _runs([programs.cas, "hook", client], f"the hook of {client} answers", given=event, place=root)
    # It ends well whatever fails, for the agent's sake: that is in its log alone.
    faults = _logged(root)[len(before) :]
    if len(faults) == 1:
        os.truncate(root / HOOK_LOG, sum(map(len, before)))  # else it would be said of agents' hooks from now on
    said = b"".join(faults).decode("utf-8", "replace").strip()
    return replace(found, ok=False, said=said) if faults and found.ok else found


def _logged(root: Path) -> list[bytes]:
    """Return the lines of the log of faults."""
    log = root / HOOK_LOG
    return log.read_bytes().splitlines(keepends=True) if log.is_file() else []  # a pipe may have its name


def _server_answers(programs: Programs, root: Path) -> Finding:
    check = "the server answers"
    arguments = [programs.server, str(root)]
    try:
        with subprocess.Popen(  # noqa: S603 - as above
            arguments, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as server:
            try:
                return _greeted(server, arguments, check)
            finally:
                server.kill()
    except OSError as error:
        return Finding(check=check, ok=False, said=str(error))


def _greeted(server: "subprocess.Popen[bytes]", arguments: Sequence[str], check: str) -> Finding:
    if server.stdin is None or server.stdout is None:
        return Finding(check=check, ok=False, said="it can't be talked to")
    with suppress(BrokenPipeError):  # it has ended, and so has what it says
        server.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
    ready, _, _ = select.select([server.stdout], [], [], _PATIENCE)
    if not ready:
        return Finding(check=check, ok=False, said=_late(arguments))
    try:
        answer = json.loads(server.stdout.readline())
        name = answer["result"]["serverInfo"]["name"]
    except (ValueError, KeyError, TypeError):
        return Finding(check=check, ok=False, said=f"not in the protocol's words: {_by_hand(arguments)}")
    return Finding(check=check, ok=True, said=str(name))


def of_settings(root: Path) -> Iterator[Finding]:
    """Yield what is wrong with the settings, or else how it stands with what they wish for."""
    from objstore import CasError, Configuration

    try:
        Configuration(str(root)).all()
    except CasError as error:
        yield Finding(check="the settings make sense", ok=False, said=str(error))
    else:
        yield from of_helper(root)


def of_helper(root: Path) -> Iterator[Finding]:
    """Yield how it stands with the helper that stays, where one is wished for or something of one is there."""
    from objstore import Configuration

    is_wished = Configuration(str(root)).get("hook.resident").value is True
    if sys.platform != "linux":
        if is_wished:
            yield Finding(
                check="the helper that stays", ok=True, said="there is none on this system: hooks do the work"
            )
        return
    from cli.wiring.probe import probe

    is_there = os.path.lexists(root / _SOCKET)  # one that is another program goes when it is asked
    try:
        found = probe(root)
    except OSError as error:
        yield Finding(check="the helper that stays", ok=False, said=str(error))
        return
    if is_wished or is_there:
        ok, said = _told_of(found, is_wished=is_wished)
        yield Finding(check="the helper that stays", ok=ok, said=said)


def _told_of(found: "Helper", *, is_wished: bool) -> tuple[bool, str]:
    """Return whether all is well with a helper, and what to say of it."""
    from cli.wiring.probe import Standing

    place, process = _SOCKET, f"process {found.process}" if found.process else "what listens"
    later = "the next hook starts one" if is_wished else "hooks do the work"
    match found.standing:
        case Standing.ANSWERS:
            ok, said = True, f"{process} answers, and is of this version"
        case Standing.ABSENT:
            ok, said = True, f"none is running; {later}"
        case Standing.DEAD:
            ok, said = True, f"none is running, and one that was killed has left {place}; {later}"
        case Standing.ANOTHER:
            ok, said = True, f"{process} was of another version, or of another home, and has ended; {later}"
        case Standing.SILENT:
            ok, said = False, f"{process} doesn't answer, and hooks wait a second for it; end it"
        case Standing.EXPOSED:
            ok, said = False, f".cas {_whose(found)}, so no helper is asked; `chown` it to you, and `chmod 700` it"
        case Standing.NOT_OURS:
            ok, said = False, f"{place} {_whose(found)}, so it is not asked; find out who made it, and remove it"
        case Standing.NO_SOCKET:
            ok, said = False, f"{place} is no socket, so it is not asked; find out who made it, and remove it"
        case Standing.STRANGER:
            ok, said = False, f"{process}, which listens at {place}, is of user {found.user}: it is not asked; end it"
        case _:
            assert_never(found.standing)
    return ok, said


def _whose(found: "Helper") -> str:
    return f"is of user {found.user} with mode {found.mode:04o}, not yours alone"


def _no_faults(root: Path) -> Finding:
    check = "hooks had no faults"
    lines = [line.decode("utf-8", "replace").rstrip("\n") for line in _logged(root)]
    last = f"{len(lines)} in {HOOK_LOG}, the last: {lines[-1]}; `cas doctor --forget` empties it" if lines else ""
    return Finding(check=check, ok=not lines, said=last)
