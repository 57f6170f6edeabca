"""Random streams of reports against the laws of attribution, where it is known who wrote what.

Reports are lost, late, doubled or out of order; hooks fail, the disk is full or read-only for a while, the log is
damaged. Two sessions send out subagents, run shells, leave processes behind, ask a person, and are interrupted or
killed; the person types at any moment. A rule hides a file for a while, in which no look sees it. The files are in
memory, so that thousands of streams take seconds; what hooks report goes through the real `HookSessions`, the real log
and the real rules. `test_place_laws` does the same with real files in places that come and go, `test_attribution_laws`
with real files and decisions, and `test_returned_lines` with real repositories.

1. Nothing of an agent's is accepted without a person's word.
2. What is an agent's for certain has nothing of a person's, unless the person wrote while the agent's call ran.
3. Where everything was reported, nothing is unattributed.
4. Where everything was reported, an edit belongs to the prompt of its call, or to the one that sent its subagent. What
   a shell changed may also belong to another prompt of its session, of which a shell ran at that moment.
"""

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, Protocol, cast

import pytest

from objstore import AgentCall, EditView, HookSessions, Origin, TurnInfo, Workspace
from objstore.agents.attributed_scan import Looks
from objstore.disk.fs.disk import Pieces
from objstore.disk.fs.processes import Processes, ProcessName
from objstore.disk.fs.reserved_names import HOOK_LOG_NAME, STORE_NAME
from objstore.disk.witnesses.failure_marks import (
    forget_hook_failures,
    note_hook_failure,
)
from objstore.model.basic_types import EXTERNAL_CONVERSATION, UNKNOWN_AGENT
from objstore.model.results import EXTERNAL_CALL, CallInfo
from objstore.review.calls.attribution import Facts, FoundChange, explain
from objstore.review.calls.open_calls import OpenCalls
from objstore.storage.transaction.journal import Journal
from objstore.values.clock import now
from objstore.values.errors import CasError, DiskFailed, DiskFull
from objstore.values.fastclass import replace, variable
from tests.support.faulty_disk import UnsyncedDisk

if TYPE_CHECKING:
    from objstore.agents.record import Recorded

STREAMS: Final = 20_000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 160
"""Streams in all: in half of them everything is reported."""

SLICES: Final = 20
STEPS: Final = 18
PATHS: Final = ("a", "b", "c")
SESSIONS: Final = ("one", "two")
PERSON: Final = "person"


class FullDisk(UnsyncedDisk):
    """A disk that is full or read-only for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full: Callable[[], bool] = lambda: False
        self.is_read_only = False  # whether it is for this reason that nothing can be written

    def append(self, fd: int, content: bytes, name: str) -> None:
        """Append, unless the disk is full or read-only. Raises DiskFailed."""
        self.require_space(name)
        super().append(fd, content, name)

    def stage(self, directory: int, content: Pieces, like: os.stat_result | None, mode: int, name: str) -> str:
        """Stage a file, unless the disk is full or read-only. Raises DiskFailed."""
        self.require_space(name)
        return super().stage(directory, content, like, mode, name)

    def stage_derived(self, directory: int, content: bytes, name: str) -> str:
        """Stage a file, unless the disk is full or read-only. Raises DiskFailed."""
        self.require_space(name)
        return super().stage_derived(directory, content, name)

    def require_space(self, name: str) -> None:
        """Raise DiskFull if the disk is full, and DiskFailed if it is read-only."""
        if self.is_full():
            raise DiskFailed(name, "Read-only file system") if self.is_read_only else DiskFull(name)


class CountingDisk(FullDisk):
    """A disk whose clock goes on by one with each question, so that no two moments are the same."""

    def __init__(self) -> None:
        super().__init__()
        self.time = (now() - 3600 * 10**6) * 1000

    def clock(self, directory: int, name: str) -> int:  # noqa: ARG002 - it asks no file system
        """Return the next moment."""
        self.time += 1
        return self.time


class Machine(Processes):
    """Processes in memory: each session's client, the hooks that it runs, and what shells leave behind."""

    def __init__(self) -> None:
        self.number = 100
        self.caller: ProcessName | None = None  # the client whose hook reports; None: a person's command runs
        self.alive: set[ProcessName] = set()
        self.left: list[ProcessName] = []

    def start(self) -> ProcessName:
        """Start a process."""
        self.number += 1
        name = ProcessName(f"{self.number}:0:{'0' * 32}:0:here")
        self.alive.add(name)
        return name

    def lineage(self) -> list[ProcessName]:
        """Return a process for each report, and the client above it."""
        return [self.start(), *([] if self.caller is None else [self.caller])]

    def has_ended(self, name: ProcessName) -> bool:
        """Return whether a process has ended."""
        return name not in self.alive

    def newest_number(self) -> int:
        """Return the number of the newest process."""
        return self.number

    def outlived(self, newest: int, seconds: float, client: ProcessName | None, folder: str) -> list[ProcessName]:  # noqa: ARG002 - none is another machine's
        """Return what shells have left behind since that process."""
        return [name for name in self.left if name in self.alive and int(name.partition(":")[0]) > newest]


@variable
class MadeEdit:
    """An edit in memory, with as much of an `EditView` as hooks ask for, and with who wrote it."""

    path: bytes
    info: CallInfo
    authors: frozenset[str]
    prompts: frozenset[str]  # to which it may belong
    time: int
    owner: str
    is_pending: bool

    @property
    def edit(self) -> "MadeEdit":
        """Return what an `EditView` has of the record."""
        return self

    @property
    def conversation(self) -> str:
        """Return the conversation that it was recorded in."""
        return self.info.conversation or EXTERNAL_CONVERSATION

    @property
    def origin(self) -> Origin:
        """Return the origin that it was recorded with."""
        return self.info.origin

    @property
    def tool(self) -> str:
        """Return the tool that it was recorded with."""
        return self.info.tool

    @property
    def notes(self) -> Mapping[str, str]:
        """Return the notes that it was recorded with."""
        return self.info.notes

    @property
    def is_unattributed(self) -> bool:
        """Return whether an agent may have made it."""
        return self.owner == UNKNOWN_AGENT or (
            self.owner == self.conversation and self.info.origin is Origin.UNATTRIBUTED
        )


class WritesFiles(Looks, Protocol):
    """Files that authors write, and that hooks look at."""

    hidden: set[str]  # files that a rule leaves out

    @property
    def written(self) -> Collection[str]:
        """The paths of files with changes that no look has found yet."""
        ...

    def write(self, path: str, author: str, prompts: Iterable[str] = ()) -> None:
        """Let an author change a file. `prompts`: those to which the change may belong."""
        ...


class Files:
    """Files in memory, and what looks at them have recorded: a `Looks` without a disk."""

    def __init__(self, open_calls: OpenCalls, disk: CountingDisk) -> None:
        self._open: Final = open_calls
        self._disk: Final = disk
        # Not looked at yet: time of the last write, the authors, and the prompts to which the writes may belong.
        self._written: dict[str, tuple[int, set[str], set[str]]] = {}
        self.changed: dict[str, int] = {}  # when each file was last written (microseconds)
        self.hidden: set[str] = set()  # files that a rule leaves out
        self.unseen: set[str] = set()  # those that were left out at the last look at everything
        self.edits: list[MadeEdit] = []

    @property
    def written(self) -> Collection[str]:
        """The paths of files with changes that no look has found yet."""
        return self._written

    def write(self, path: str, author: str, prompts: Iterable[str] = ()) -> None:
        """Let an author change a file. `prompts`: those to which the change may belong."""
        _, authors, possible = self._written.get(path, (0, set(), set()))
        self._written[path] = (self._disk.clock(0, ""), authors | {author}, possible.union(prompts))
        self.changed[path] = now()

    def record(
        self, paths: Sequence[str] | None, open_calls: Mapping[str, AgentCall], otherwise: CallInfo
    ) -> "Recorded":
        """Do what `Looks.record` does; nothing here needs its result."""
        self._look(paths, open_calls, otherwise)
        return cast("Recorded", None)

    def record_edits(self, paths: Sequence[str] | None, open_calls: Mapping[str, AgentCall]) -> list[EditView]:
        """Do what `Looks.record_edits` does."""
        return cast("list[EditView]", self._look(paths, open_calls, EXTERNAL_CALL))

    def record_released(self, paths: Iterable[str], open_calls: Mapping[str, AgentCall]) -> list[EditView]:
        """Do what `Looks.record_released` does."""
        facts = self._facts(open_calls)
        found = [self._taken(path, facts, EXTERNAL_CALL) for path in paths if facts.must_wait(path)]
        return cast("list[EditView]", [each for each in found if each is not None])

    def missing_files_below(self, path: str) -> list[str]:  # noqa: ARG002 - it is the same for all
        """Return nothing: there are no folders."""
        return []

    def may_be_unchanged(self, path: str, since: int) -> bool:
        """Return whether a file was not written since a time."""
        return self.changed.get(path, 0) < since

    def leave_unattributed(self, since: int, reason: str, paths: Sequence[str] | None = None) -> None:
        """Do what `Looks.leave_unattributed` does."""
        assert reason
        for made in self.edits:
            if made.time >= since and not made.is_pending and (paths is None or made.path.decode() in paths):
                made.owner, made.is_pending = UNKNOWN_AGENT, True

    def reattribute(self, since: int, is_meant: Callable[[EditView], bool], to: str, reason: str) -> None:
        """Do what `Looks.reattribute` does."""
        assert reason
        for made in self.edits:
            if made.time >= since and made.is_pending and is_meant(cast("EditView", made)):
                made.owner = to

    def _look(
        self, paths: Sequence[str] | None, open_calls: Mapping[str, AgentCall], otherwise: CallInfo
    ) -> list[MadeEdit]:
        self._disk.require_space("edits")
        finished = [name for name, call in open_calls.items() if call.is_over]
        asked = paths or ()
        paths = None if finished else paths
        facts = self._facts(open_calls)
        found = []
        for path in list(self._written):
            is_meant = path in asked or (paths is None and (path not in self.hidden or path in facts.named))
            if is_meant and not (paths is None and path in facts.named and facts.must_wait(path)):
                found.append(self._taken(path, facts, otherwise))
        shells = [call for name in finished if (call := open_calls[name]).paths is None and call.conversation]
        if shells and (waiting := [path for path in facts.named if facts.must_wait(path)]):
            self._open.note_unseen(waiting, shells[-1].conversation)
        for name in finished:
            self._open.remove(name)
        if paths is None:
            self.unseen = set(self.hidden)
        return [made for made in found if made is not None]

    def _facts(self, open_calls: Mapping[str, AgentCall]) -> Facts:
        return Facts(open_calls.values(), self._open.working_since())

    def _taken(self, path: str, facts: Facts, otherwise: CallInfo) -> MadeEdit | None:
        if path not in self._written:
            return None
        moment, authors, prompts = self._written.pop(path)
        info = explain(FoundChange(path, moment, is_unseen=path in self.unseen), facts, otherwise)
        made = MadeEdit(
            path=path.encode(),
            info=info,
            authors=frozenset(authors),
            prompts=frozenset(prompts),
            time=now(),
            owner=info.conversation or EXTERNAL_CONVERSATION,
            is_pending=info.origin in {Origin.AGENT, Origin.UNATTRIBUTED},
        )
        self.edits.append(made)
        return made


@variable
class Running:
    """A call as it really is."""

    call: AgentCall
    prompt: str  # of the turn that it is made for
    is_over: bool = False  # whether it has really ended
    is_begun: bool = True  # whether its beginning was reported
    is_reported: bool = False  # whether its end was reported
    heard: int = 0  # how many hooks of its end began their work
    is_past: bool = False  # whether its turn has ended, as far as hooks know
    is_waiting: bool = False  # whether a person is asked if it may run
    is_refused: bool = False
    has_worked: bool = False
    is_overtaken: bool = False  # whether another changed the file that it named before its end was reported
    is_expected: bool = False  # whether it had not yet written the file that it named when it ended
    has_failed: bool = False
    is_behind: bool = False  # whether it has answered, and runs on
    left: ProcessName | None = None  # the process that it left behind

    @property
    def author(self) -> str:
        """Return the name of the call as an author of lines."""
        return f"{self.call.conversation} {self.call.id}"

    def hear(self) -> None:
        """Note that a hook of its end begins its work."""
        self.heard += 1


class Day:
    """Agents and a person at work, and what hooks report of it."""

    def __init__(
        self, journal: Journal, disk: FullDisk, seed: int, files: WritesFiles, machine: Machine, *, is_complete: bool
    ) -> None:
        """Begin a stream. `is_complete`: everything is reported, and what can't be told apart doesn't happen."""
        self.random: Final = Random(seed)
        self.is_complete: Final = is_complete
        self.disk: Final = disk
        self.machine: Final = machine
        self.files: Final = files
        self.hooks: Final = HookSessions(journal, self.files, self.machine)
        self.root: Final = journal.tree.root
        self.log: Final = Path(self.root, ".cas", "agents", "events")
        self.clients: Final = {session: self.machine.start() for session in SESSIONS}
        self.running: list[Running] = []
        self.in_turn: dict[str, str] = {}  # sessions that work on a prompt, with the prompt
        self.sent: dict[str, tuple[str, str]] = {}  # subagents at work: session, and the prompt that sent it
        self.typed: dict[str, list[tuple[Running, bool, int]]] = {}  # by mark of a person's line: see `type`
        self.number = 0
        self.said: list[str] = []
        disk.is_full = lambda: False

    def note(self, *words: object) -> None:
        """Note what happens, for the report of a failure."""
        self.said.append(" ".join(map(str, words)))

    def next(self) -> int:
        """Return a number that was not used before."""
        self.number += 1
        return self.number

    def chance(self, share: float) -> bool:
        """Return true in a share of the cases, but never where everything is reported."""
        return not self.is_complete and self.random.random() < share

    def live(self, session: str = "", *, of_main: bool = False) -> list[Running]:
        """Return the calls that have not really ended. `of_main`: only those of main agents."""
        return [
            each
            for each in self.running
            if not each.is_over and session in {"", each.call.conversation} and not (of_main and each.call.agent)
        ]

    # ---- reports

    def report(self, session: str, *events: Callable[[], object]) -> bool:
        """Let a hook of a session report; return whether it did: hooks fail, and need space on the disk."""
        self.machine.caller = self.clients[session]
        try:
            if self.chance(0.02):
                raise DiskFull("hook")
            for event in events:
                event()
        except (CasError, OSError) as error:
            self.note("the hook fails:", type(error).__name__)
            self.mark_failure()
            return False
        finally:
            self.machine.caller = None
        return True

    def mark_failure(self) -> None:
        """Leave the mark of a hook that has failed, as the hook command does."""
        if self.disk.is_full():
            note_hook_failure(self.root, "agent", "DiskFull")
        else:
            with Path(self.root, STORE_NAME, HOOK_LOG_NAME).open("a") as file:
                file.write(time.strftime("%Y-%m-%dT%H:%M:%SZ agent: DiskFull\n", time.gmtime()))

    def reports(self) -> int:
        """Return how many times something is reported."""
        return self.random.choices((1, 0, 2), (7, 0 if self.is_complete else 2, 1))[0]

    # ---- agents

    def prompt(self, session: str) -> None:
        """Report a prompt, and work on it: every session's first tool is one that names a file."""
        self.stop(session)
        if self.is_complete and not self.free_paths():
            return
        text = f"prompt {self.next()}"
        self.note(text, session)
        turn = TurnInfo(session=session, began=0, prompt=text)
        if self.report(session, lambda: self.hooks.pause(session), lambda: self.hooks.note_turn(turn, has_begun=True)):
            self.pass_by(session, "")
        self.in_turn[session] = text
        if self.is_complete:
            self.end(self.begin(session, is_shell=False), is_late=False)

    def paths(self) -> Sequence[str]:
        """Return the paths of the files that are there now."""
        return PATHS

    def free_paths(self) -> list[str]:
        """Return the paths that a tool may name: where everything is reported, none that another may still write."""
        taken = {path for each in self.running for path in each.call.paths or () if not (each.is_over and each.is_past)}
        return [path for path in self.paths() if not (self.is_complete and path in taken)]

    def begin(self, session: str, *, is_shell: bool, agent: str = "") -> Running | None:
        """Begin a call; its beginning is mostly reported."""
        prompt = self.sent[agent][1] if agent else self.in_turn.get(session)
        if prompt is None:
            return None
        shells = [each for each in self.live() if each.call.paths is None]
        unwritten = [each for each in self.running if each.is_expected and not each.is_past]
        if self.is_complete and is_shell and any(each.call.conversation != session for each in [*shells, *unwritten]):
            return None
        free = self.free_paths()
        if not (is_shell or free):
            return None
        named = None if is_shell else (self.random.choice(free),)
        call = AgentCall(conversation=session, id=str(self.next()), tool="tool", paths=named, agent=agent)
        running = Running(call=call, prompt=prompt)
        self.running.append(running)
        self.note("begin", session, call.id, named, agent)
        times = self.reports()
        told = [self.report(session, lambda: self.hooks.begin(call)) for _ in range(times)]
        running.is_begun = any(told)
        if self.random.random() < 0.15:
            self.ask(running)
        elif self.random.random() < 0.7:
            self.work(running)
        return running

    def ask(self, running: Running) -> None:
        """Ask the person whether a call may run."""
        running.is_waiting = True
        self.note("ask", running.call.id)
        if self.reports():
            self.report(running.call.conversation, lambda: self.hooks.asked(running.call))
        if self.is_complete or self.random.random() < 0.5:
            self.answer(running)

    def answer(self, running: Running) -> None:
        """Let the person answer; the answer may be reported."""
        running.is_waiting = False
        running.is_refused = self.random.random() < 0.4
        self.note("answer", running.call.id, "no" if running.is_refused else "yes")
        if not running.is_refused:
            if self.is_complete or self.random.random() < 0.5:
                self.report(running.call.conversation, lambda: self.hooks.allowed(running.call))
            return
        running.is_over = True
        if not running.is_begun or self.is_complete or self.random.random() < 0.7:
            self.deliver(running, self.reports() or 1)

    def work(self, running: Running) -> None:
        """Let a call change a file."""
        if running.is_waiting or running.is_refused:
            return
        path = self.random.choice(self.paths()) if running.call.paths is None else running.call.paths[0]
        if path not in self.paths() or any(
            path in (each.call.paths or ())
            for each in self.running
            if each is not running and not each.is_past and (self.is_complete or self.is_other(each, running))
        ):
            return  # what another agent writes into a file that a call has named is taken for the call's
        self.note("work", running.call.id, path)
        running.has_worked = True
        self.files.write(path, running.author, self.prompts_of(running))
        self.overtake(path, running)

    def prompts_of(self, running: Running) -> set[str]:
        """Return the prompts to which what a call changes now may belong: those of any shell, where it is a shell's."""
        shells = [each for each in self.live(running.call.conversation) if each.call.paths is None]
        return {running.prompt, *(each.prompt for each in shells if running.call.paths is None)}

    @staticmethod
    def is_other(one: Running, other: Running) -> bool:
        """Return whether two calls are of different sessions."""
        return one.call.conversation != other.call.conversation

    def end(self, running: Running | None, *, is_late: bool = True) -> None:
        """End a call; its end is reported now, later, twice or never."""
        if running is not None and running.is_waiting:
            self.answer(running)
        if running is None or running.is_over:
            return
        if running.call.paths is None and self.chance(0.15) and running.is_begun:
            running.left = self.machine.start()
            self.machine.left.append(running.left)
            self.note("leave behind", running.call.id)
        if running.is_behind:
            self.finish(running)
            return
        shells = [each for each in self.live() if each.call.paths is None and self.is_other(each, running)]
        if self.is_complete and shells and not running.has_worked:
            self.work(running)
        self.note("end", running.call.id)
        running.is_over = True
        running.is_expected = bool(running.call.paths) and not running.has_worked
        running.has_failed = running.has_worked and self.random.random() < 0.1
        if running.is_begun and is_late and self.chance(0.4):
            return  # it is late, or lost
        self.deliver(running, self.random.choice((1, 1, 2)))

    def deliver(self, running: Running, times: int = 1) -> None:
        """Report an end so many times."""
        self.note("report the end of", running.call.id, times)
        call = running.call
        unrecorded = not running.is_begun and any(path in self.files.written for path in call.paths or ())
        if running.is_overtaken or unrecorded:
            running.is_expected = False  # what is found there is taken for its own, and no more is expected of it
        how = self.hooks.fail if running.has_failed else self.hooks.end
        how = self.hooks.mark_not_run if running.is_refused else how
        for _ in range(times):
            running.is_reported |= self.report(call.conversation, running.hear, lambda: how(call))
        if not running.is_begun and self.chance(0.3):
            self.note("report the beginning of", call.id)
            running.is_expected = False  # not of a client whose reports change their order
            self.report(call.conversation, lambda: self.hooks.begin(call))

    def write_late(self, running: Running) -> None:
        """Let a tool that has reported success write the file that it named."""
        if running.is_expected and running.is_reported and not (running.has_worked or running.has_failed):
            self.note("late")
            self.work(running)

    def go_behind(self, running: Running) -> None:
        """Let a shell answer and run on."""
        if running.call.paths is None and running.is_begun and not (running.is_waiting or running.is_behind):
            running.call = replace(running.call, task=f"task {running.call.id}")
            self.note("run on", running.call.id)
            running.is_behind = self.report(running.call.conversation, lambda: self.hooks.keep_running(running.call))

    def finish(self, running: Running) -> None:
        """End what runs in the background."""
        running.is_over = True
        self.note("finish", running.call.id)
        if self.reports():
            call = running.call
            running.is_reported = self.report(
                call.conversation, lambda: self.hooks.end_task(call.conversation, call.task)
            )

    def send(self, session: str) -> None:
        """Let a session's main agent send out a subagent."""
        if session in self.in_turn:
            agent = f"sub {self.next()}"
            self.note("send", agent, session)
            if self.reports():
                self.report(session, lambda: self.hooks.note_subagent(session, agent))
            self.sent[agent] = (session, self.in_turn[session])

    def stop_subagent(self, agent: str) -> None:
        """End a subagent."""
        session, _ = self.sent.pop(agent)
        self.note("stop", agent)
        for each in [each for each in self.live(session) if each.call.agent == agent]:
            self.end(each, is_late=not self.is_complete)
        for _ in range(self.reports()):
            if self.report(session, lambda: self.hooks.pause(session, agent)):
                self.pass_by(session, agent)

    def stop(self, session: str) -> None:
        """End the turn of a session."""
        if session not in self.in_turn:
            return
        for each in self.live(session, of_main=True):
            if self.is_complete or not each.is_begun:
                self.end(each)
            elif not each.is_behind:
                each.is_over = True  # it is interrupted
        del self.in_turn[session]
        tasks = [each.call.task for each in self.live(session, of_main=True) if each.is_behind]
        self.note("stop", session, tasks)
        listed = tasks if self.random.random() < 0.5 else None
        for _ in range(self.reports()):
            if self.report(session, lambda: self.hooks.pause(session, running=listed)):
                self.pass_by(session, "")

    def pass_by(self, session: str, agent: str | None) -> None:
        """Note that hooks know that a turn has ended. `agent`: whose calls that ends (None: all of the session)."""
        for each in self.running:
            is_meant = each.call.conversation == session and agent in {None, each.call.agent}
            each.is_past = each.is_past or is_meant

    def quit(self, session: str) -> None:
        """End a session; its last report arrives."""
        while not self.report(session, lambda: self.hooks.pause(session), lambda: self.hooks.over(session)):
            self.note("quit", session)

    def kill(self, session: str) -> None:
        """Kill a session's program, and start it again."""
        if self.is_complete:
            return
        self.note("kill", session)
        for each in self.live(session):
            each.is_over = True
            each.is_begun = each.is_begun or each.is_past
        for each in self.running:
            if each.call.conversation == session and not (each.is_begun or each.is_reported):
                self.deliver(each)  # nothing else would show that it ran
        self.in_turn.pop(session, None)
        self.sent = {agent: sent for agent, sent in self.sent.items() if sent[0] != session}
        self.machine.alive.discard(self.clients[session])
        self.clients[session] = self.machine.start()
        if self.random.random() < 0.5 and self.report(session, lambda: self.hooks.start(session)):
            self.pass_by(session, None)

    # ---- others

    def type(self) -> None:
        """Let the person write a line."""
        path = self.random.choice(self.paths())
        mark = f"{PERSON} {self.next()}"
        # Of a call that named the file or none: whether the line may be taken for its own in any case, since it runs,
        # or its turn goes on and it named the file or ran behind; otherwise only if its end is reported later (even if
        # that hook fails then), as if it had run till then.
        self.typed[mark] = [
            (each, not each.is_over or each.is_behind or (each.is_reported and each.call.paths is not None), each.heard)
            for each in self.running
            if not each.is_past
            and (each.call.paths is None or path in each.call.paths)
            and (each.call.paths is not None or not each.is_over or not each.is_reported)
        ]
        self.note("type", path, mark)
        self.files.write(path, mark)
        self.overtake(path)

    def overtake(self, path: str, author: Running | None = None) -> None:
        """Expect no late write of the tools that named a file which another changes before their ends are reported.

        Such a change can't be told from a tool's own, and no more is expected of a tool once its file has changed.
        """
        for each in self.running:
            if each is not author and not each.is_reported and path in (each.call.paths or ()):
                each.is_overtaken = True

    def may_be_taken(self, mark: str, session: str, path: str) -> bool:
        """Return whether a person's line may be taken for one of a session."""
        possible = [found for found in self.typed[mark] if found[0].call.conversation == session]
        return any(is_certain or each.is_reported or each.heard > heard for each, is_certain, heard in possible) or any(
            # A tool whose beginning is lost is taken for the author of what is found in the file that it named.
            not each.is_begun and each.call.paths == (path,) and each.call.conversation == session
            for each in self.running
        )

    def work_behind(self) -> None:
        """Let a process that a shell left behind change a file, or end."""
        alive = [each for each in self.running if each.left in self.machine.alive]
        if not alive:
            return
        each = self.random.choice(alive)
        path = self.random.choice(self.paths())
        if self.random.random() < 0.3 and each.left is not None:
            self.note("the process ends that was left by", each.call.id)
            self.machine.alive.discard(each.left)
        elif not any(path in (other.call.paths or ()) and not other.is_past for other in self.running):
            self.note("the process writes that was left by", each.call.id, path)
            self.files.write(path, each.author, self.prompts_of(each))
            self.overtake(path, each)

    def look(self) -> None:
        """Let a command look at the files."""
        self.note("look")
        with suppress(DiskFailed):
            self.hooks.notice(EXTERNAL_CALL)

    def fill(self) -> None:
        """Fill the disk, or make space on it; sometimes a small file still fits. Or let it be read-only for a while."""
        if self.is_complete:
            return
        if self.disk.is_full.__name__ == "<lambda>":
            self.disk.is_read_only = self.random.random() < 0.3
            share = 1.0 if self.disk.is_read_only else self.random.choice((1.0, 0.5))
            self.note("the disk is", "read-only" if self.disk.is_read_only else "full")
            self.disk.is_full = _filled(self.random, share)
        else:
            self.note("the disk has space")
            self.disk.is_full = lambda: False

    def hide(self) -> None:
        """Let a rule leave out a file, or let the rule go."""
        if self.is_complete:
            return
        path = self.random.choice(PATHS)
        self.note("show" if path in self.files.hidden else "hide", path)
        self.files.hidden ^= {path}

    def damage(self) -> None:
        """Damage the log: a byte of it, or its end."""
        if self.is_complete or not self.log.exists() or not self.log.stat().st_size:
            return
        content = bytearray(self.log.read_bytes())
        at = self.random.randrange(len(content))
        self.note("damage", at)
        if self.random.random() < 0.5:
            content[at] ^= 1 << self.random.randrange(8)
        elif content[at : at + 1] != b"\n" and content[at - 1 : at] != b"\n":
            del content[at:]
        self.log.write_bytes(content)
        for each in self.running:
            each.is_begun = each.is_begun and each.is_past  # the line of its beginning may be lost
            if each.left is not None:
                self.machine.alive.discard(each.left)  # the line that it lives may be lost

    # ---- the stream

    def step(self) -> None:
        """Do something."""
        session = self.random.choice(SESSIONS)
        if not self.in_turn:
            self.prompt(session)
            return
        acts: list[tuple[int, Callable[[], object]]] = [
            (10, lambda: self.prompt(session)),
            (20, lambda: self.begin(session, is_shell=self.random.random() < 0.6)),
            (16, self.type),
            (6, self.look),
            (4, lambda: self.stop(session)),
            (5, lambda: self.send(session)),
            (4, self.work_behind),
            (2, self.damage),
            (2, self.fill),
            (5, self.hide),
            (1, lambda: self.kill(session)),
            *self.further_acts(),
        ]
        live = self.live()
        late = [each for each in self.running if each.is_over and not each.is_reported and not each.is_behind]
        quiet = [each for each in self.running if each.is_over and not each.is_past]
        if live:
            acts += [
                (12, lambda: self.work(self.random.choice(live))),
                (16, lambda: self.end(self.random.choice(live))),
                (4, lambda: self.go_behind(self.random.choice(live))),
            ]
        if late:
            acts.append((4, lambda: self.deliver(self.random.choice(late))))
        if quiet:
            acts.append((5, lambda: self.write_late(self.random.choice(quiet))))
        if self.sent:
            agent = self.random.choice(list(self.sent))
            acts += [
                (8, lambda: self.begin(self.sent[agent][0], is_shell=self.random.random() < 0.6, agent=agent)),
                (3, lambda: self.stop_subagent(agent)),
            ]
        weights, does = zip(*acts, strict=True)
        self.random.choices(does, weights)[0]()

    def further_acts(self) -> list[tuple[int, Callable[[], object]]]:
        """Return what else may happen, each with its weight."""
        return []

    def end_all(self) -> None:
        """End every session, and let everything be found."""
        self.disk.is_full = lambda: False
        for agent in list(self.sent):
            self.stop_subagent(agent)
        for session in SESSIONS:
            self.stop(session)
            for each in self.running:
                if not (each.is_begun or each.is_reported) and each.call.conversation == session:
                    each.is_over = True
                    while not each.is_reported:
                        self.deliver(each)
            self.quit(session)
        self.files.hidden.clear()
        self.look()
        assert not self.files.written, self.said

    def check(self, edits: Iterable[MadeEdit]) -> None:
        """Hold the laws at the end of the stream."""
        # Nothing says of a call whose beginning is lost that its session works at all.
        begun = {each.author for each in self.running if each.is_begun}
        for made in edits:
            agents = {author.partition(" ")[0] for author in made.authors if not author.startswith(PERSON)}
            known = {author.partition(" ")[0] for author in made.authors if author in begun}
            persons = [author for author in made.authors if author.startswith(PERSON)]
            told = (made.path, made.owner, made.info, sorted(made.authors), self.said)
            if not made.is_pending:
                assert not agents, told
            elif not made.is_unattributed:
                assert all(self.may_be_taken(mark, made.owner, made.path.decode()) for mark in persons), told
                assert known <= {made.owner}, told
                if self.is_complete and agents and made.info.origin is Origin.AGENT:
                    named = made.info.turn.prompt if made.info.turn else ""
                    assert named in made.prompts, (named, told)
            elif self.is_complete:
                raise AssertionError(told)


def _filled(random: Random, share: float) -> Callable[[], bool]:
    def is_full() -> bool:
        return random.random() < share

    return is_full


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a workspace without files. What hooks that fail leave outside it goes to a folder of the test's own."""
    root = tmp_path_factory.mktemp("workspace")
    Workspace.init(root, UnsyncedDisk()).close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("temporary")))
        yield root


@pytest.mark.parametrize("part", range(SLICES if STREAMS > SLICES * SLICES else 1))
@pytest.mark.parametrize("is_complete", [True, False], ids=["everything is reported", "reports are lost"])
def test_the_laws_of_attribution_hold_in_every_stream_of_reports(root: Path, *, is_complete: bool, part: int) -> None:
    disk = CountingDisk()
    streams = STREAMS // 2 // (SLICES if STREAMS > SLICES * SLICES else 1)
    with closing(Journal(str(root), disk)) as journal:
        for seed in range(part * streams, (part + 1) * streams):
            run_stream(journal, disk, seed, is_complete=is_complete)


def run_stream(journal: Journal, disk: CountingDisk, seed: int, *, is_complete: bool) -> None:
    """Run one stream in a workspace that has no reports yet."""
    shutil.rmtree(Path(journal.tree.root, ".cas", "agents"), ignore_errors=True)
    forget_hook_failures(journal.tree.root)
    machine = Machine()
    files = Files(OpenCalls(journal, machine), disk)
    day = Day(journal, disk, seed, files, machine, is_complete=is_complete)
    for _ in range(STEPS):
        day.step()
    day.end_all()
    day.check(files.edits)
