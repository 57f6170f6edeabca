"""Handle one event of an agent's program: record what changed, and never disturb the agent.

On any failure the process still ends with status 0 and prints nothing: our error is written to a log in the store's
folder, and the next event records what this one should have. Only where it can be written nowhere is the status 1: then
the command line of the hook leaves the mark.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from cli.hooks.clients.event import NOWHERE, Client, Event, EventKind, Payload, may_be_server_tool

if TYPE_CHECKING:
    from objstore import (
        AgentCall,
        Collision,
        HookSessions,
        TurnInfo,
        UnreportedComments,
        UnreportedRejections,
        Workspace,
    )

__all__ = ["CLIENTS", "client_of", "handle", "log_fault", "main"]

CLIENTS: Final = {
    "claude-code": "cli.hooks.clients.claude_code",
    "codex": "cli.hooks.clients.codex",
    "gemini": "cli.hooks.clients.gemini",
    "cursor": "cli.hooks.clients.cursor",
    "opencode": "cli.hooks.clients.opencode",
    "vscode": "cli.hooks.clients.vscode",
}
"""The module of each supported client."""

_PROJECT: Final = "CLAUDE_PROJECT_DIR"
"""Variable with the folder in which a session began; Gemini CLI and Cursor set it too."""

_LONGEST_LOG: Final = 256 << 10
_REJECTED: Final = (
    "The person who reviews your edits has rejected some of them; the files no longer hold them. "
    "Read a file again before you edit it, and don't repeat what was rejected:"
)
_COMMENTED: Final = (
    "The person who reviews your edits has comments on them. Do what they ask for, or answer: with the tool "
    "answer_comment of the server editledger if you have it, else in your reply."
)
_COLLIDED: Final = (
    "Another agent has changed files that you have changed too, and neither is reviewed yet. "
    "Unless you have read them since, read them again before you edit them:"
)
_MAX_REPORTED: Final = 20
"""Rejected edits, and comments, that are reported to an agent at once."""


def main(arguments: list[str], given: bytes) -> int:
    """Handle an event for the client that `arguments` name; return 0, or 1 if it failed and that can't be noted."""
    place = os.getcwd()  # noqa: PTH109 - pathlib costs 4 ms of start-up
    event = None
    try:
        event = _event_of(arguments, given, place, os.environ.get(_PROJECT, ""))
        place = event.place
        handle(client_of(arguments[0]), event, _print)
    except Exception as error:  # noqa: BLE001 - an agent must go on, whatever fails here
        is_noted = log_fault(place, arguments, error)
        if event is not None and event.moment is EventKind.IDLE:
            _print_failures(client_of(arguments[0]), event)
        return 0 if is_noted else 1
    return 0


def _event_of(arguments: list[str], given: bytes, folder: str, home: str) -> Event:
    """Return the event of an agent in `folder`; `home`: where the session began ("": unknown)."""
    payload = json.loads(given)
    if not isinstance(payload, Mapping):
        raise TypeError("the event is no JSON object")
    event = client_of(arguments[0] if arguments else "").read(payload)
    return event._replace(place=os.path.join(folder, event.place), home=home)  # noqa: PTH118 - as above


def _print_failures(client: Client, event: Event) -> None:
    """Tell the person that hooks failed, at the end of a turn whose own hook did; never raise."""
    with suppress(Exception):
        from objstore import find_root

        said = _failures(find_root(event.place))
        if said:
            _print(client.notice(event, f"editledger: {said}"))


def _failures(root: str) -> str:
    """Return, once, how many hooks failed in a workspace ("": none did since)."""
    from objstore import note_noticed, unnoticed_failures

    failures = unnoticed_failures(root, "said")
    if not failures:
        return ""
    note_noticed(root, "said", failures)
    return f"hooks failed {len(failures)} time{'s' * (len(failures) > 1)} (cas doctor)"


def _print(answer: Payload | None) -> None:
    if answer is not None:
        sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def client_of(name: str) -> Client:
    """Return the client of that name, or the one that the file of that name describes. Raises ValueError."""
    if name in CLIENTS:
        return cast("Client", import_module(CLIENTS[name]))
    from cli.hooks.clients.described import DESCRIBED, described, is_description

    if name not in DESCRIBED and not is_description(name):
        raise ValueError(f"no client {name!r}; known are {', '.join([*CLIENTS, *DESCRIBED])}")
    return described(name)


def handle(client: Client, event: Event, say: Callable[[Payload | None], object]) -> None:
    """Record what the event reports, then call `say`, once, with what to print (None: nothing).

    Folders without a workspace are ignored. Raises what the store raises.
    """
    roots = [] if event.moment is EventKind.OTHER or not event.conversation else _roots(event)
    if roots:
        from objstore import marked_if_killed

        with marked_if_killed(_noted(event, "client"), roots):
            _handle(client, event, roots, say)
    else:
        _handle(client, event, roots, say)


def _handle(client: Client, event: Event, roots: list[str], say: Callable[[Payload | None], object]) -> None:
    """Do as `handle`, given the workspaces of the event."""
    from objstore import Workspace

    for other in roots[1:]:
        # The agent gets messages of one workspace: that of the first named file. Failures in others must not affect it.
        try:
            with Workspace.open(other) as workspace:
                _record(workspace.hooks, event)
        except Exception as error:  # noqa: BLE001 - as in `main`
            log_fault(other, [event.notes.get("client", "")], error)
    recorded_in = {os.path.realpath(root) for root in roots}
    _record_elsewhere(_roots_elsewhere(event, roots), event, recorded_in)
    if event.moment is EventKind.BEFORE and event.touched != NOWHERE:
        _note_call_begun_elsewhere(event, roots)
    if not roots:
        say(_notice_of_loss(client, event))
        return
    with Workspace.open(roots[0]) as workspace:
        calls = workspace.hooks
        _record_elsewhere(_roots_visited_by_tools(workspace, event), event, recorded_in)
        if event.moment in {EventKind.START, EventKind.PROMPT}:
            workspace.lost_histories()  # noted before anything is recorded, while it is known how much is missing
        _record(calls, event)
        # A subagent would keep the text to itself: its session gets it, at the latest when the subagent reports back.
        takes_context = not event.agent and client.reply(event, "") is not None
        rejected = workspace.messages.rejected(event.conversation, _MAX_REPORTED) if takes_context else None
        comments = workspace.messages.comments(event.conversation, _MAX_REPORTED) if takes_context else None
        collisions = workspace.messages.collisions(event.conversation) if takes_context else []
        message = [_rejections(rejected)] if rejected else []
        message += [_comments(comments)] if comments else []
        message += [_collisions(collisions)] if collisions else []
        answer = client.reply(event, "\n\n".join(message)) if message else None
        notice = _notice(client, event, workspace)
        say({**(notice or {}), **(answer or {})} or None)
        if event.moment is EventKind.IDLE and workspace.has_remotes:
            _push_in_background(workspace)
        if rejected:
            workspace.messages.mark_reported(event.conversation, rejected)
        if collisions:
            workspace.messages.mark_collisions_reported(event.conversation, collisions)
        if comments:
            workspace.comments.mark_sent(
                [view.number for view in comments.comments],
                workspace.messages.conversations_of(event.conversation)[0],
            )


def _push_in_background(workspace: "Workspace") -> None:
    """Push to the remotes that are pushed to after each turn, in processes of their own; never raise.

    The agent waits for none of them: a status says what they did.
    """
    try:
        names = [remote.name for remote, _ in workspace.remotes.all() if remote.push == "stop"]
        for name in names:
            command = [sys.executable, "-P", "-m", "editledger.cas", "-C", workspace.root, "push", name, "--background"]
            _start(command)
    except Exception as error:  # noqa: BLE001 - as above
        log_fault(workspace.root, ["push"], error)


def _start(command: list[str]) -> None:
    """Start a process that outlives this one, and has nothing of its terminal and its pipes."""
    nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    os.posix_spawn(command[0], command, os.environ, file_actions=nowhere, setsid=True)


def _notice_of_loss(client: Client, event: Event) -> Payload | None:
    """Return what tells the person once, at the first event that can, that the workspace in this folder is gone."""
    if client.notice(event, "") is None:
        return None
    from objstore import is_first_mention, lost_above

    lost = lost_above(event.place)
    if lost is None or not is_first_mention(lost):
        return None
    return client.notice(event, f"editledger: in {lost.root}, {lost}. Nothing is recorded now (cas init)")


def _notice(client: Client, event: Event, workspace: "Workspace") -> Payload | None:
    """Return what the person should hear, each once; None: no more than last time.

    That is what is gone of the history, and, at the end of a turn, how much there is to review.
    """
    if client.notice(event, "") is None:
        return None
    from objstore import is_first_mention

    said = [str(lost) for lost in workspace.lost_histories() if is_first_mention(lost)]
    if event.moment is EventKind.IDLE:
        said = _at_end_of_turn(event, workspace) + said
    return client.notice(event, f"editledger: {'; '.join(said)}") if said else None


def _at_end_of_turn(event: Event, workspace: "Workspace") -> list[str]:
    """Return what the person should hear at the end of a turn."""
    said = [failures] if (failures := _failures(workspace.root)) else []
    cautions = workspace.review.cautions(unsaid=True)
    silent = [caution.silence for caution in cautions.items if caution.silence is not None]
    count = len(cautions.items) - len(silent)
    if count:
        what = "decision or change of what is recorded" if count == 1 else "decisions or changes of what is recorded"
        said.append(f"{count} {what} to look at (cas status)")
    if silent:
        said.insert(0, f"{silent[-1]} (cas doctor)")
    if cautions.items:
        workspace.review.note_said(cautions)
    pending, unattributed = workspace.review.pending_counts()
    if workspace.messages.note_pending(event.conversation, pending) and pending:
        others = f", {unattributed} of them unattributed" if unattributed else ""
        said.insert(0, f"{pending} edit{'s' * (pending > 1)} to review{others} (cas review)")
    return said


def _roots(event: Event) -> list[str]:
    """Return the workspaces of the named files, in order, or else the agent's own, if there is one, and those around.

    An agent that has moved to a folder outside any workspace still belongs to the one where it began, so that its open
    calls end. A tool that begins elsewhere doesn't belong to that folder.
    """
    from objstore import NotAWorkspace, find_root, workspaces_around

    roots: list[str] = []
    named = dict.fromkeys(_folder_of(event, path) for path in event.touched or ())
    for start in named or [event.place, *event.others]:
        with suppress(NotAWorkspace, ValueError):  # a NUL or half a character is in no path
            root = find_root(start)
            roots += [each for each in (root, *workspaces_around(root)) if each not in roots]
    if not roots and event.home and not event.touched and _may_end_call_begun_elsewhere(event):
        with suppress(NotAWorkspace, ValueError):
            roots.append(find_root(event.home))
    return roots


def _roots_elsewhere(event: Event, roots: list[str]) -> list[str]:
    """Return the workspaces besides `roots` in which the call that the event ends may have begun.

    These are the workspaces of the folders where the agent is and where the session began, and all above: an agent may
    have moved into a workspace inside another, and the folder of a named file may lead elsewhere than before the call.
    """
    from objstore import CasError, find_root, workspaces_around

    is_about_files = event.tool and event.touched is not None
    if not _may_end_call_begun_elsewhere(event) or (not event.touched if is_about_files else not roots):
        return []
    places = workspaces_around(roots[0]) if roots else []
    for start in [event.place, event.home] if is_about_files else [event.home]:
        if start:
            with suppress(CasError, ValueError):
                began_in = find_root(start)
                places += [began_in, *workspaces_around(began_in)]
    known = {os.path.realpath(root) for root in roots}
    found = {real: root for root in places if (real := os.path.realpath(root)) not in known}
    return list(found.values())


def _may_end_call_begun_elsewhere(event: Event) -> bool:
    """Return whether the event may end a call that began in another folder, from where the agent has moved since."""
    return event.moment not in {EventKind.BEFORE, EventKind.OTHER}


def _roots_visited_by_tools(workspace: "Workspace", event: Event) -> list[str]:
    """Return other workspaces in which tools of the conversation began and that the event concerns, too.

    An event about no particular tool concerns all. A tool that may change any file may change those inside the agent's
    own workspace.
    """
    from objstore import CasError, find_root

    if event.moment is EventKind.OTHER or (event.tool and event.touched is not None):
        return []
    inside = os.path.join(os.path.realpath(workspace.root), "")  # noqa: PTH118 - as above
    found: list[str] = []
    for root in workspace.hooks.other_workspaces(event.conversation):
        with suppress(CasError, ValueError):
            is_concerned = not event.tool or os.path.realpath(root).startswith(inside)
            found += [root] if is_concerned and find_root(root) == root else []
    return found


def _record_elsewhere(roots: list[str], event: Event, recorded_in: set[str]) -> None:
    """Record the event in workspaces where the agent is no longer, if it was there before; never raise.

    Do the same for the workspaces to which these know it went. `recorded_in`: where the event is already recorded.
    """
    from objstore import Workspace

    waiting = list(roots)
    while waiting:
        root = waiting.pop(0)
        if os.path.realpath(root) in recorded_in:
            continue
        recorded_in.add(os.path.realpath(root))
        try:
            with Workspace.open(root) as workspace:
                calls = workspace.hooks
                # The end of a call that names files is reported where the call is open, and nowhere else.
                if calls.is_open(_call(calls, event)) if event.touched else calls.knows(event.conversation):
                    waiting += _roots_visited_by_tools(workspace, event)
                    _record(calls, event)
        except Exception as error:  # noqa: BLE001 - the agent's own workspace must get the event all the same
            log_fault(root, [event.name], error)


def _note_call_begun_elsewhere(event: Event, roots: list[str]) -> None:
    """Report a tool's beginning to workspaces that will get the end of its turn and may not know of it; never raise.

    The agent may end its turn where it is now, or where its session began, and all workspaces above get that event.
    The workspaces where the tool begins receive the turn now.
    """
    from objstore import TurnInfo, Workspace

    try:
        end = event._replace(moment=EventKind.IDLE, tool="", touched=NOWHERE)
        own = _roots(end) + (_roots(end._replace(place=event.home, others=())) if event.home else [])
        receiving = dict.fromkeys(own + _roots_elsewhere(end, own[:1]))
        news: dict[str, None] = {}
        turn: TurnInfo | None = None
        for root in receiving:
            known = {os.path.realpath(each) for each in [root, *_roots_elsewhere(end, [root])]}
            apart = [real for each in roots if (real := os.path.realpath(each)) not in known]
            if not apart:
                continue
            with Workspace.open(root) as workspace:
                calls = workspace.hooks
                if root in own or calls.knows(event.conversation):
                    calls.note_other_workspaces(event.conversation, apart)
                    news |= dict.fromkeys(apart)
                    turn = turn or calls.turn(event.conversation)
        for root in news:
            with Workspace.open(root) as workspace:
                if not workspace.hooks.knows(event.conversation):
                    workspace.hooks.note_turn(turn or TurnInfo(session=event.conversation, began=0), has_begun=True)
    except Exception as error:  # noqa: BLE001 - as above
        log_fault(event.place, [event.name], error)


def _folder_of(event: Event, path: str) -> str:
    """Return the innermost existing folder on the path to a file."""
    folder = os.path.dirname(os.path.join(event.place, path))  # noqa: PTH118, PTH120 - as above
    while folder != os.path.dirname(folder) and not os.path.isdir(folder):  # noqa: PTH112, PTH120 - as above
        folder = os.path.dirname(folder)  # noqa: PTH120 - as above
    return folder


def _record(calls: "HookSessions", event: Event) -> None:
    """Record what the event reports."""
    match event.moment:
        case EventKind.PROMPT | EventKind.RESUMED | EventKind.IDLE | EventKind.ALL_IDLE | EventKind.START:
            _record_turn(calls, event)
        case EventKind.SUBAGENT_BEGINS:
            calls.note_subagent(event.conversation, event.agent, event.prompt_id)
        case EventKind.SUBAGENT_ENDS:
            calls.pause(event.conversation, event.agent)
        case EventKind.BEFORE:
            calls.begin(_call(calls, event), reports_subagents=event.reports_subagents)
        case EventKind.AFTER:
            try:
                if event.joins:
                    calls.join(event.conversation, event.joins, event.tool)
            finally:
                if event.ended_task:
                    calls.end_task(event.conversation, event.ended_task)
                calls.end(_call(calls, event), has_failed="Failure" in event.name)
        case EventKind.FAILED:
            calls.fail(_call(calls, event))
        case EventKind.IN_BACKGROUND:
            calls.keep_running(_call(calls, event))
        case EventKind.ASKED | EventKind.ALLOWED | EventKind.DENIED:
            _record_question(calls, _call(calls, event), event.moment)
        case EventKind.OTHER:
            pass


def _record_turn(calls: "HookSessions", event: Event) -> None:
    """Record that a turn or a session begins or ends."""
    if event.moment is EventKind.ALL_IDLE:
        calls.over(event.conversation)
    elif event.moment is EventKind.START:
        calls.start(event.conversation, client=_noted(event, "client"), model=_noted(event, "model"))
    else:
        try:
            calls.pause(event.conversation, running=event.running)
        finally:
            if event.ended_task:
                calls.end_task(event.conversation, event.ended_task)
            if event.moment is EventKind.PROMPT:
                calls.note_turn(_turn(event), has_begun=True, prompt_id=event.prompt_id)
            elif event.moment is EventKind.RESUMED:
                calls.resume(event.conversation)


def _record_question(calls: "HookSessions", call: "AgentCall", moment: EventKind) -> None:
    """Record a question to a person about a tool, or the answer."""
    if moment is EventKind.ASKED:
        calls.asked(call)
    elif moment is EventKind.ALLOWED:
        calls.allowed(call)
    else:
        calls.mark_not_run(call)


def _turn(event: Event) -> "TurnInfo":
    """Return the turn that begins with a prompt."""
    from objstore import TurnInfo

    return TurnInfo(
        session=event.conversation,
        began=0,
        prompt=event.prompt,
        client=_noted(event, "client"),
        model=_noted(event, "model"),
    )


def _noted(event: Event, name: str) -> str:
    return event.notes.get(name, "")


def _call(calls: "HookSessions", event: Event) -> "AgentCall":
    from objstore import AgentCall

    asks = ""
    if may_be_server_tool(event.tool):
        from objstore import arguments_digest

        asks = arguments_digest(event.given)
    turn = calls.turn(event.conversation, event.agent, event.prompt_id)
    prompt = "" if turn is None else turn.prompt
    paths = event.touched
    if paths is not None:
        paths = tuple(os.path.join(event.place, path) for path in paths)  # noqa: PTH118 - pathlib costs start-up
    return AgentCall(
        conversation=event.conversation,
        id=event.call or _words(event),
        tool=event.tool,
        paths=paths,
        agent=event.agent,
        prompt_id=event.prompt_id,
        task=event.task,
        asks=asks,
        is_named=bool(event.call),
        notes={**event.notes, **({"prompt": prompt} if prompt else {}), **({"call": event.call} if event.call else {})},
    )


def _words(event: Event) -> str:
    """Return the identity of a call without an id: its client may still run several tools at once."""
    from objstore import blob_id

    given = ""
    with suppress(RecursionError):
        given = json.dumps(event.given, sort_keys=True)
    said = [event.tool, event.notes.get("command", ""), *(event.touched or ())]
    return "\0".join([*said, blob_id(given.encode()).hex()])


def _rejections(unreported: "UnreportedRejections") -> str:
    """Return the text that tells an agent about its rejected edits."""
    from objstore import check_in_brief, parted_reason

    lines = []
    told: set[str] = set()  # one check may have led to many rejections
    for each in unreported.rejections:
        name = each.edit.seq if each.is_whole else ", ".join(map(str, each.units))
        reason, check = parted_reason(each.reason)
        because = f", because: {reason}" if reason else ""
        if check:
            because += f" ({check_in_brief(check, with_output=check not in told)})"
            told.add(check)
        lines.append(f"- edit {name} of {os.fsdecode(each.edit.edit.path)!r}: rejected{because}")
    more = [f"- and {unreported.more} more"] if unreported.more else []
    return "\n".join([_REJECTED, *lines, *more])


def _comments(unsent: "UnreportedComments") -> str:
    """Return the text that tells an agent what a person says about its lines."""
    lines = []
    for view in unsent.comments:
        first, last = view.lines
        where = "" if not first else f", line {first}" if first == last else f", lines {first} to {last}"
        answers = f", on comment {view.comment.answers}" if view.comment.answers else ""
        where += f" and {view.more_files} more of your files" if view.more_files else ""
        gone = "" if view.is_there else " (the file has these lines no more)"
        said = "\n  ".join(view.comment.text.splitlines())
        lines.append(f"- comment {view.number}{answers}, on {view.path!r}{where}{gone}: {said}")
    more = [f"- and {unsent.more} more, with your next tool"] if unsent.more else []
    return "\n".join([_COMMENTED, *lines, *more])


def _collisions(found: "list[Collision]") -> str:
    """Return the text that tells an agent which of its files other sessions have changed too."""
    named = [f"- {collision.path!r}" for collision in found[:_MAX_REPORTED]]
    more = [f"- and {len(found) - _MAX_REPORTED} more"] if len(found) > _MAX_REPORTED else []
    return "\n".join([_COLLIDED, *named, *more])


def log_fault(place: str, arguments: list[str], error: Exception) -> bool:
    """Write an error to the log of the workspace around `place`, if there is one; return False if it can't be written.

    The agent gets no message.
    """
    # No store is opened, because that may be what failed.
    with suppress(Exception):
        said = " ".join(f"{type(error).__name__}: {error}".split())[:2000]
        from objstore import CasError, NotAWorkspace, note_hook_failure

        try:
            _log(place, arguments, said)
        except NotAWorkspace:
            pass
        except (OSError, CasError):  # the store is read-only, or its disk is full
            return note_hook_failure(os.path.abspath(place), " ".join(arguments[:1]), said)  # noqa: PTH100 - as above
        return True
    return False


def _log(place: str, arguments: list[str], said: str) -> None:
    """Write a line to the log of the workspace around `place`. Raises NotAWorkspace, OSError."""
    from objstore import HOOK_LOG, find_root, open_store_file

    path = os.path.join(find_root(place), HOOK_LOG)  # noqa: PTH118 - pathlib costs start-up
    at = time.time_ns() // 1_000
    when = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at // 1_000_000))}.{at % 1_000_000:06}Z"
    line = f"{when} {' '.join(arguments)}: {said}\n".encode("utf-8", "backslashreplace")
    fd = open_store_file(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        if os.fstat(fd).st_size > _LONGEST_LOG:
            os.ftruncate(fd, 0)
        os.write(fd, line)
    finally:
        os.close(fd)
