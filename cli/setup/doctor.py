"""Check that the setup works: run the programs that clients would run."""

import json
import os
import select
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cli.hooks.clients.described import DESCRIBED, described, is_description
from cli.screen.terminal import shown_name
from cli.setup.disabled_hooks import disabled_hooks
from cli.setup.plans import HOMES, WIRED, Programs, Scope, plan
from cli.setup.settings_files import SetupState, changes, setup_state
from cli.setup.trust import missing_trust
from objstore import HOOK_LOG, few

if TYPE_CHECKING:
    from objstore import Workspace

__all__ = ["Finding", "examine"]

_PATIENCE: Final = 10
"""Seconds that clients allow a program to start, at least."""

_MOST_RUNNING: Final = 3
"""Running tools that are named."""

_MOST_NAMED: Final = 5
"""Names that are listed."""

_NOT_WALKED: Final = frozenset({".cas", ".git", ".hg", ".svn", ".jj"})

_OPTIONS: Final = {"project": "", "project, for you alone": " --local", "user": " --user"}
"""The option of `cas setup` for each of the scopes that are examined."""

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
    """The result of one check."""

    check: str
    ok: bool
    said: str = ""


def examine(root: Path, home: Path, programs: Programs, clients: Sequence[str] | None) -> Iterator[Finding]:
    """Yield the result of each check. `clients`: those that must be set up; None: those that are."""
    yield _runs([programs.cas, "--version"], "the command runs")
    yield _server_answers(programs, root)
    wired = False
    for client in dict.fromkeys((*WIRED, *DESCRIBED, *(clients or ()))):
        places = [name for name, scope in _scopes(client, root, home) if not changes_of(client, scope, programs)]
        if places:
            wired = True
            named = [_named(client, home) if name == "user" else name for name in places]
            yield Finding(check=f"{client} is set up", ok=True, said=f"for the {' and the '.join(named)}")
        else:
            in_part = list(_in_part(client, root, home, programs))
            wired = wired or bool(in_part)
            yield from in_part
            if clients is not None and client in clients and all(one.ok for one in in_part):
                yield Finding(check=f"{client} is set up", ok=False, said=f"run `cas setup {client}`")
        if places or (clients is not None and client in clients):
            yield _hook_answers(client, programs, root)
            switch = disabled_hooks(client, root, home)
            if switch is not None:
                yield Finding(check=f"{client} runs hooks", ok=False, said=str(switch))
            else:
                yield from _is_trusted(client, root, home, programs)
    if not wired and clients is None:
        yield Finding(check="no client is set up", ok=True, said="to record an agent's edits, run `cas setup CLIENT`")
    yield from _settings_make_sense(root)
    yield _looked_at(root, "running tools of agents", _running_calls)
    yield _no_faults(root)
    yield _looked_at(root, "the history is there", _history_is_there)
    yield _looked_at(root, "git is followed", _git_is_followed)
    yield from _names_alike(root)


def _in_part(client: str, root: Path, home: Path, programs: Programs) -> Iterator[Finding]:
    """Yield where parts of our setup exist for a client that is not set up completely anywhere."""
    for name, scope in _scopes(client, root, home):
        words = f"cas setup {f'--client {shlex.quote(client)}' if is_description(client) else client}{_OPTIONS[name]}"
        match setup_state(plan(client, scope, programs, server=True)):
            case SetupState.NOTHING:
                pass
            case SetupState.SOME:
                # A user may want no more.
                said = f"for the {name}; run `{words}` for the rest"
                yield Finding(check=f"{client} is set up in part", ok=True, said=said)
            case SetupState.BROKEN:
                said = f"for the {name}, but incompletely: not all its edits are recorded. Run `{words}` to repair it"
                yield Finding(check=f"{client} is set up", ok=False, said=said)


def _is_trusted(client: str, root: Path, home: Path, programs: Programs) -> Iterator[Finding]:
    """Yield what trust is missing before the client loads any of our setups here, if it loads none."""
    steps = [(scope, plan(client, scope, programs)) for _, scope in _scopes(client, root, home)]
    scopes = [scope for scope, planned in steps if setup_state(planned) is not SetupState.NOTHING]
    missing = [missing_trust(client, scope, root) for scope in scopes]
    if missing and missing[0] is not None and all(missing):
        yield Finding(check=f"{client} is trusted", ok=False, said=str(missing[0]))


def changes_of(client: str, scope: Scope, programs: Programs) -> bool:
    """Return whether setting the client up would change anything; invalid settings count as a change."""
    try:
        return bool(changes(plan(client, scope, programs), remove=False))
    except (OSError, ValueError):
        return True


def _named(client: str, home: Path) -> str:
    """Return the name of the user's scope: with the folder, if a variable names another one than the home."""
    moved = Scope(project=None, home=home).folder_from_variable(client)
    return "user" if moved is None else f"user, in {moved}, as {HOMES[client][0]} says"


def _scopes(client: str, root: Path, home: Path) -> Iterator[tuple[str, Scope]]:
    yield "project", Scope(project=root, home=home)
    if client == "claude-code":  # the others have no second file for it
        yield "project, for you alone", Scope(project=root, home=home, is_local=True)
    if client in WIRED or described(client).settings.user:
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
        f"no answer within {_PATIENCE} s, the longest that clients wait. If the machine is busy, try again later; "
        f"otherwise {_by_hand(arguments)}"
    )


def _by_hand(arguments: Sequence[str]) -> str:
    return f"`{shlex.join(arguments)} < {os.devnull}` shows its output"


def _hook_answers(client: str, programs: Programs, root: Path) -> Finding:
    # An event that no client has: parsed as JSON, and then ignored.
    event = json.dumps({"hook_event_name": "Doctor", "session_id": "doctor", "cwd": str(root)})
    before = _logged(root)
    found = _runs([programs.cas, "hook", client], f"the hook of {client} answers", given=event, place=root)
    # A hook succeeds whatever fails, for the agent's sake: the error is only in its log.
    faults = _logged(root)[len(before) :]
    if len(faults) == 1:
        os.truncate(
            root / HOOK_LOG, sum(map(len, before))
        )  # or it would be reported as an agent's hook's error from now on
    said = b"".join(faults).decode("utf-8", "replace").strip()
    return replace(found, ok=False, said=said) if faults and found.ok else found


def _logged(root: Path) -> list[bytes]:
    """Return the lines of the log of errors."""
    log = root / HOOK_LOG
    return log.read_bytes().splitlines(keepends=True) if log.is_file() else []  # its name may be that of a pipe


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
        return Finding(check=check, ok=False, said="it has no standard input or output")
    with suppress(BrokenPipeError):  # it has ended, and its output says why
        server.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
    ready, _, _ = select.select([server.stdout], [], [], _PATIENCE)
    if not ready:
        return Finding(check=check, ok=False, said=_late(arguments))
    try:
        answer = json.loads(server.stdout.readline())
        name = answer["result"]["serverInfo"]["name"]
    except (ValueError, KeyError, TypeError):
        return Finding(check=check, ok=False, said=f"the answer is not valid MCP: {_by_hand(arguments)}")
    return Finding(check=check, ok=True, said=str(name))


def _settings_make_sense(root: Path) -> Iterator[Finding]:
    """Yield what is wrong with the settings, if anything is."""
    from objstore import CasError, Configuration

    try:
        Configuration(str(root)).all()
    except CasError as error:
        yield Finding(check="the settings are valid", ok=False, said=str(error))


def _looked_at(root: Path, check: str, look: Callable[["Workspace"], tuple[bool, str]]) -> Finding:
    """Return what a look at the store finds: whether all is well, and what is said."""
    from objstore import CasError, Workspace

    try:
        with Workspace.open(root) as workspace:
            ok, said = look(workspace)
    except CasError as error:
        ok, said = False, str(error)
    return Finding(check=check, ok=ok, said=said)


def _running_calls(workspace: "Workspace") -> tuple[bool, str]:
    """Return which tools of agents run, as far as hooks reported: a change may count as one of theirs."""
    running = workspace.sessions.running_calls()
    calls = [f"{call.tool} of {call.client or call.conversation}: {call.state}" for call in running]
    return True, f"{few(calls, _MOST_RUNNING, '; ')} (see `cas status`)" if running else "none"


def _history_is_there(workspace: "Workspace") -> tuple[bool, str]:
    lost = "; ".join(map(str, workspace.lost_histories()))
    return not lost, f"{lost}; `cas doctor --forget` if you know why" if lost else ""


def _git_is_followed(workspace: "Workspace") -> tuple[bool, str]:
    said = workspace.review.unfollowed()
    return not said, "; ".join(said)


def _names_alike(root: Path) -> Iterator[Finding]:
    """Yield which names in one folder differ only in their Unicode form, if any do."""
    from unicodedata import normalize

    found: list[str] = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _NOT_WALKED]
        forms = Counter(normalize("NFC", name) for name in (*folders, *files) if not name.isascii())
        place = Path(folder).relative_to(root)
        found += [str(place / name) for name, count in forms.items() if count > 1]
    if found:
        named = few(sorted(found), _MOST_NAMED, ", ", shown_name)
        said = f"{named}: there are two of each, but macOS and some programs find only one; rename one of them"
        yield Finding(check="names differ only in Unicode form", ok=True, said=said)


def _no_faults(root: Path) -> Finding:
    check = "errors of hooks"
    from objstore import date_of, hook_failures

    lines = [line.decode("utf-8", "replace").rstrip("\n") for line in _logged(root)]
    failures = hook_failures(str(root))
    if not lines and not failures:
        return Finding(check=check, ok=True, said="none")
    said = f"{max(len(lines), len(failures))}"
    if lines:
        said += f" in {HOOK_LOG}, the last: {lines[-1]}"
    else:
        when = date_of(failures[-1].time).astimezone()
        said += f", the last at {when:%Y-%m-%d %H:%M:%S}: {failures[-1].said or '`cas` did not start'}"
    return Finding(check=check, ok=False, said=f"{said}; `cas doctor --forget` empties it")
