"""A look at whether what was set up works: it runs the programs that clients would run."""

import json
import select
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cli.hooking import CLIENTS, HOOK_LOG
from cli.wiring.files import changes
from cli.wiring.plans import WIRED, Programs, Scope, plan

__all__ = ["Finding", "examine"]

_PATIENCE: Final = 10
"""Seconds that a client gives a program to start, at least."""

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
    for client in WIRED:
        places = [name for name, scope in _scopes(root, home) if not changes_of(client, scope, programs)]
        if places:
            yield Finding(check=f"{client} is set up", ok=True, said=f"for the {' and the '.join(places)}")
        elif clients is not None and client in clients:
            yield Finding(check=f"{client} is set up", ok=False, said=f"`cas setup {client}` does it")
        if client in CLIENTS and (places or (clients is not None and client in clients)):
            yield _hook_answers(client, programs, root)
    yield _no_faults(root)


def changes_of(client: str, scope: Scope, programs: Programs) -> bool:
    """Return whether setting the client up would change anything; settings that make no sense count as a change."""
    try:
        return bool(changes(plan(client, scope, programs), remove=False))
    except (OSError, ValueError):
        return True


def _scopes(root: Path, home: Path) -> Iterator[tuple[str, Scope]]:
    yield "project", Scope(project=root, home=home)
    yield "user", Scope(project=None, home=home)


def _runs(arguments: Sequence[str], check: str, *, given: str = "", place: Path | None = None) -> Finding:
    try:
        ran = subprocess.run(  # noqa: S603 - the programs that clients would run
            arguments, input=given.encode(), capture_output=True, cwd=place, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(check=check, ok=False, said=str(error))
    said = (ran.stdout or ran.stderr).decode("utf-8", "replace").strip()
    return Finding(check=check, ok=ran.returncode == 0, said=said)


def _hook_answers(client: str, programs: Programs, root: Path) -> Finding:
    # An event that no client has: understood as far as JSON goes, and then nothing to do.
    event = json.dumps({"hook_event_name": "Doctor", "session_id": "doctor", "cwd": str(root)})
    return _runs([programs.cas, "hook", client], f"the hook of {client} answers", given=event, place=root)


def _server_answers(programs: Programs, root: Path) -> Finding:
    check = "the server answers"
    try:
        with subprocess.Popen(  # noqa: S603 - as above
            [programs.server, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as server:
            try:
                return _greeted(server, check)
            finally:
                server.kill()
    except OSError as error:
        return Finding(check=check, ok=False, said=str(error))


def _greeted(server: "subprocess.Popen[bytes]", check: str) -> Finding:
    if server.stdin is None or server.stdout is None:
        return Finding(check=check, ok=False, said="it can't be talked to")
    server.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
    server.stdin.flush()
    ready, _, _ = select.select([server.stdout], [], [], _PATIENCE)
    if not ready:
        return Finding(check=check, ok=False, said=f"not within {_PATIENCE} s")
    try:
        answer = json.loads(server.stdout.readline())
        name = answer["result"]["serverInfo"]["name"]
    except (ValueError, KeyError, TypeError):
        return Finding(check=check, ok=False, said="not in the protocol's words")
    return Finding(check=check, ok=True, said=str(name))


def _no_faults(root: Path) -> Finding:
    check = "hooks had no faults"
    try:
        lines = (root / HOOK_LOG).read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return Finding(check=check, ok=True)
    last = f"{len(lines)} in {HOOK_LOG}, the last: {lines[-1]}; `cas doctor --forget` empties it" if lines else ""
    return Finding(check=check, ok=not lines, said=last)
