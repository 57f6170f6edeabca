"""Random streams of hook events, mixed with writes whose author is known, against the two laws of attribution.

1. What an agent wrote is never accepted unless a person decides so.
2. What a person wrote while no agent's call was open is accepted, unless a call left the file unchanged that it had
   named, or no event of a tool had arrived from a session that had a prompt.

A call whose beginning no hook reported becomes known when its end is reported: the first law holds from then on.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Concatenate, Final, ParamSpec

from hypothesis import given, strategies as st

from objstore import (
    Action,
    AgentCall,
    CallInfo,
    Decided,
    EditFilter,
    EditTakenOut,
    OnExternal,
    Origin,
    Seq,
    Status,
    TurnInfo,
    Unit,
    Workspace,
)
from objstore.values.fastclass import replace, variable
from tests.support.faulty_disk import UnsyncedDisk

FILES: Final = ("a", "d/c")
SESSIONS: Final = ("one", "two")
AGENTS: Final = ("", "", "", "sub")
PERSON: Final = "person"
AGENT: Final = "agent"
FORMATTER: Final = "formatter"

Given = ParamSpec("Given")


def said(act: Callable[Concatenate["Day", Given], None]) -> Callable[Concatenate["Day", Given], None]:
    """Return a method of a day that notes what is done, for the report of a failure."""

    @wraps(act)
    def noting(day: "Day", /, *given: Given.args, **named: Given.kwargs) -> None:
        words = [each.call.id if isinstance(each, Running) else each for each in [*given, *named.values()]]
        day.said.append(f"{act.__name__} {words}")
        act(day, *given, **named)

    return noting


@variable
class Running:
    """A call as it really is, whatever the hooks have reported."""

    call: AgentCall
    is_working: bool  # whether it may still change files
    is_refused: bool = False  # whether a person did not let it run
    is_behind: bool = False  # whether it runs in the background
    has_worked: bool = False  # whether it has changed a file


class Day:
    """A workspace in which agents and a person work, and what is true of it."""

    def __init__(self, root: Path) -> None:
        """Begin with two recorded files and a baseline."""
        (root / "d").mkdir()
        for path in FILES:
            (root / path).write_text("first\n")
        self.root: Final = root
        self.workspace: Final = Workspace.init(root, UnsyncedDisk())
        self.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
        self.hooks: Final = self.workspace.hooks
        self.sessions = list(SESSIONS)
        self.open: dict[str, Running] = {}  # calls that the hooks take for possible authors, by id
        self.late: dict[str, Running] = {}  # calls whose end is reported later
        self.unannounced: dict[str, Running] = {}  # calls whose beginning no hook has reported, by id
        self.held: dict[Seq, set[str]] = {}  # by edit that was accepted: such calls whose bytes it has
        self.decided: set[Unit] = set()  # what a person decided on
        self.authors: dict[str, set[str]] = {}  # of what is not recorded yet, by path
        self.undisturbed: set[str] = set()  # paths that a person wrote, with no call open since before
        self.heard: set[str] = set()  # sessions of which events of tools have arrived
        self.silent: set[str] = set()  # sessions that work on a prompt, and of which none has
        self.expected: dict[str, set[str]] = {}  # files that a call of the session named and may yet change
        self.newest = 0
        self.number = 0
        self.said: list[str] = []

    def next(self) -> int:
        """Return a number that was not used before."""
        self.number += 1
        return self.number

    def check(self, *, is_quiet: bool) -> None:
        """Compare the edits that were recorded since the last check with who wrote what."""
        for view in self.workspace.history.edits(EditFilter()):
            if view.seq <= self.newest:
                continue
            self.newest = view.seq
            path = view.edit.path.decode()
            authors = self.authors.pop(path, set())
            is_accepted = view.edit.status is Status.ACCEPTED
            assert not (is_accepted and AGENT in authors), (path, view.edit.origin, self.said)
            if is_accepted:
                self.held[view.seq] = authors & self.unannounced.keys()
            if path in self.undisturbed and is_quiet and view.edit.conversation != "ours":
                assert is_accepted, (path, view.edit.origin, self.said)
            self.undisturbed.discard(path)
        if not self.is_quiet:
            self.undisturbed.clear()
        self.undisturbed -= {path for paths in self.expected.values() for path in paths}

    @property
    def is_quiet(self) -> bool:
        """Whether no agent can change a file, as far as hooks have reported."""
        return not (self.open or self.late or self.silent)

    def hear(self, session: str) -> None:
        """Note that an event of a tool is reported."""
        self.heard.add(session)
        self.silent.discard(session)

    def write(self, path: str, author: str) -> None:
        """Add a line to a file."""
        with (self.root / path).open("a") as file:
            file.write(f"{author} {self.next()}\n")
        self.authors.setdefault(path, set()).add(author)

    # ---- what agents do

    @said
    def prompt(self, session: str) -> None:
        """Report a prompt: the turn before has ended."""
        self.stop(session, lists=False)
        self.forget(session, agent=False, main=True)
        self.hooks.note_turn(TurnInfo(session=session, began=0, prompt="go"), has_begun=True)
        if session not in self.heard:
            self.silent.add(session)
            self.undisturbed.clear()

    @said
    def begin(self, session: str, path: str | None, agent: str) -> None:
        """Begin a call, of a shell or of a tool that names a file."""
        paths = None if path is None else (path,)
        call = AgentCall(conversation=session, id=str(self.next()), tool="tool", paths=paths, agent=agent)
        if agent:
            self.hooks.note_subagent(session, agent)
        self.hear(session)
        self.hooks.begin(call)
        self.open[call.id] = Running(call=call, is_working=True)

    @said
    def work(self, running: Running, path: str) -> None:
        """Let a call change a file, if it may."""
        if running.is_working and not running.is_refused:
            self.write(path if running.call.paths is None else running.call.paths[0], AGENT)
            running.has_worked = True

    @said
    def unreported(self, session: str, path: str, *, names: bool) -> None:
        """Let a call change a file that only reports its end."""
        call = AgentCall(conversation=session, id=str(self.next()), tool="tool", paths=(path,) if names else None)
        self.hear(session)
        self.write(path, AGENT)
        self.undisturbed.clear()
        self.hooks.end(call)

    @said
    def begin_unannounced(self, session: str, agent: str, path: str, found_by: str) -> None:
        """Begin a shell without a report, and let it change a file. `found_by`: as for `look`, or "": no look."""
        call = AgentCall(conversation=session, id=str(self.next()), tool="tool", paths=None, agent=agent)
        self.unannounced[call.id] = Running(call=call, is_working=True)
        if agent:
            self.hooks.note_subagent(session, agent)
        self.write(path, call.id)
        if found_by:
            self.look(found_by, path)

    @said
    def work_unannounced(self, running: Running, path: str) -> None:
        """Let a call whose beginning was not reported change a file."""
        if running.is_working:
            self.write(path, running.call.id)

    @said
    def report(self, running: Running, how: str) -> None:
        """Report that a call has ended, has failed or runs on, though its beginning was not reported."""
        self.hear(running.call.conversation)
        number = running.call.id
        del self.unannounced[number]
        self.undisturbed.clear()
        for authors in self.authors.values():
            if number in authors:
                authors.add(AGENT)
        if how == "runs on":
            running.call = replace(running.call, task=f"task {number}")
            running.is_behind = True
            self.open[number] = running
            self.hooks.keep_running(running.call)
        else:
            running.is_working = False
            (self.hooks.end if how == "ended" else self.hooks.fail)(running.call)
        for seq in [seq for seq, calls in self.held.items() if number in calls]:
            units = enumerate(self.workspace.history.edit(seq).units)
            accepted = {Unit(seq, hunk) for hunk, status in units if status is Status.ACCEPTED}
            assert accepted <= self.decided, (accepted, self.said)

    def forget(self, session: str, *, agent: bool, main: bool) -> None:
        """Never report the ends of calls of which no report was made yet."""
        for number, each in list(self.unannounced.items()):
            if each.call.conversation == session and (agent if each.call.agent else main):
                del self.unannounced[number]

    @said
    def end(self, running: Running, how: str) -> None:
        """End a call in the foreground; its end is reported now, later, twice or never."""
        if running.is_behind:
            return
        running.is_working = False
        self.expected.setdefault(running.call.conversation, set()).update(running.call.paths or ())
        if how == "late":
            self.late[running.call.id] = running
        if how in {"now", "twice"}:
            for _ in range(1 if how == "now" else 2):
                (self.hooks.mark_not_run if running.is_refused else self.hooks.end)(running.call)
            self.open.pop(running.call.id, None)
        if how == "failed":
            self.hooks.fail(running.call)
            self.open.pop(running.call.id, None)

    @said
    def deliver(self, running: Running) -> None:
        """Report the end of a call that has ended before, perhaps after its turn."""
        del self.late[running.call.id]
        if not running.is_refused:
            self.hooks.end(running.call)
            self.open.pop(running.call.id, None)

    @said
    def ask(self, running: Running, *, is_allowed: bool, is_reported: bool) -> None:
        """Ask the person about a call that has not changed anything yet."""
        if running.has_worked or running.is_behind or not running.is_working:
            return
        self.hooks.asked(running.call)
        running.is_refused = running.is_refused or not is_allowed
        if is_reported and is_allowed and not running.is_refused:
            self.hooks.allowed(running.call)
        if is_reported and running.is_refused:
            self.hooks.mark_not_run(running.call)
            self.open.pop(running.call.id, None)
            running.is_working = False

    @said
    def leave(self, running: Running) -> None:
        """Let a call answer and run on in the background."""
        if running.call.paths is None and running.is_working and not running.is_refused:
            running.call = replace(running.call, task=f"task {running.call.id}")
            running.is_behind = True
            self.hooks.keep_running(running.call)

    @said
    def finish(self, running: Running, *, is_reported: bool) -> None:
        """End what runs in the background."""
        if running.is_behind:
            running.is_working = False
            if is_reported:
                self.hooks.end_task(running.call.conversation, running.call.task)
                self.open.pop(running.call.id, None)

    @said
    def stop(self, session: str, *, lists: bool) -> None:
        """End the turn of a session's main agent. `lists`: whether what runs in the background is reported."""
        own = [each for each in self.open.values() if each.call.conversation == session and not each.call.agent]
        for each in self.unannounced.values():
            each.is_working = each.is_working and (each.call.conversation != session or bool(each.call.agent))
        tasks = [each.call.task for each in own if each.is_behind and each.is_working]
        for each in own:
            if not each.is_behind:
                each.is_working = False
        self.hooks.pause(session, running=tasks if lists else None)
        self.silent.discard(session)
        self.undisturbed -= self.expected.pop(session, set())
        for each in own:
            if not each.is_behind or (lists and each.call.task not in tasks):
                self.open.pop(each.call.id)

    @said
    def stop_subagent(self, session: str) -> None:
        """End a subagent of a session."""
        own = [each for each in self.open.values() if each.call.conversation == session and each.call.agent]
        for each in own:
            each.is_working = each.is_working and each.is_behind
        self.forget(session, agent=True, main=False)
        self.hooks.pause(session, "sub")
        for each in own:
            if not each.is_behind:
                self.open.pop(each.call.id)

    @said
    def over(self, session: str) -> None:
        """End a session."""
        own = [each for each in self.open.values() if each.call.conversation == session]
        for each in [*own, *(each for each in self.unannounced.values() if each.call.conversation == session)]:
            each.is_working = False
        self.hooks.over(session)
        self.silent.discard(session)
        self.undisturbed -= self.expected.pop(session, set())
        for each in own:
            self.open.pop(each.call.id)

    @said
    def kill(self, session: str) -> None:
        """Kill an agent's program: it reports and does nothing any more."""
        if len(self.sessions) > 1:
            self.sessions.remove(session)
            self.forget(session, agent=True, main=True)
            for each in [*self.open.values(), *self.late.values()]:
                if each.call.conversation == session:
                    each.is_working = False
                    self.late.pop(each.call.id, None)

    # ---- what others do

    @said
    def type(self, path: str) -> None:
        """Let the person change a file."""
        is_clean = path not in self.authors or path in self.undisturbed
        self.write(path, PERSON)
        if is_clean and self.is_quiet:
            self.undisturbed.add(path)

    @said
    def format(self, path: str) -> None:
        """Let a formatter put more spaces between the words of a file."""
        content = (self.root / path).read_text()
        (self.root / path).write_text(content.replace(" ", "  ", 1))
        if " " in content:
            self.authors.setdefault(path, set()).add(FORMATTER)
            self.undisturbed.discard(path)

    @said
    def look(self, how: str, path: str) -> None:
        """Let another command or a tool of our server look at the files."""
        if how == "record":
            self.hooks.notice(CallInfo(tool="record", origin=Origin.PERSON))
        elif how == "scan":
            self.workspace.record_changes(CallInfo(tool="", origin=Origin.EXTERNAL))
        elif how == "file":
            self.hooks.notice(CallInfo(tool="record", origin=Origin.PERSON), [path])
        else:
            with self.workspace.call(CallInfo(tool="write", conversation="ours")) as call:
                call.write(path, call.read(path).bytes + b"ours %d\n" % self.next())
                call.commit()

    @said
    def decide(self, number: int, action: Action, on_external: OnExternal) -> None:
        """Let the person decide about an edit."""
        views = self.workspace.history.edits(EditFilter())
        if views:
            view = views[number % len(views)]
            units = [Unit(view.seq, unit) for unit in range(len(view.units))]
            with suppress(EditTakenOut):
                outcome = self.workspace.decide(action, units, who="me", on_external=on_external, cascade=True)
                if isinstance(outcome, Decided):
                    self.decided |= {unit for unit, _ in outcome.verdicts}


Step = Callable[[Day], None]

paths = st.sampled_from(FILES)
numbers = st.integers(0, 20)


def for_session(do: Callable[[Day, str], None]) -> Callable[[int], Step]:
    """Return what makes a step of one of the living sessions."""
    return lambda number: lambda day: do(day, day.sessions[number % len(day.sessions)])


def for_call(do: Callable[[Day, Running], None], of: str = "open") -> Callable[[int], Step]:
    """Return what makes a step of one of the calls of living sessions, if there is one. `of`: which calls."""

    def step(day: Day, number: int) -> None:
        calls = {"open": day.open, "late": day.late, "unannounced": day.unannounced}[of]
        found = [each for each in calls.values() if each.call.conversation in day.sessions]
        if found:
            do(day, found[number % len(found)])

    return lambda number: lambda day: step(day, number)


def of_session(do: Callable[[Day, str], None]) -> st.SearchStrategy[Step]:
    """Return steps of one of the living sessions."""
    return numbers.map(for_session(do))


def of_call(do: Callable[[Day, Running], None], of: str = "open") -> st.SearchStrategy[Step]:
    """Return steps of one of the calls."""
    return numbers.map(for_call(do, of))


begins = st.tuples(st.sampled_from((None, None, *FILES)), st.sampled_from(AGENTS)).flatmap(
    lambda given: of_session(lambda day, session: day.begin(session, *given))
)
works = paths.flatmap(lambda path: of_call(lambda day, running: day.work(running, path)))
lost_beginnings = st.tuples(st.sampled_from(AGENTS), paths, st.sampled_from(("", "record", "scan", "file"))).flatmap(
    lambda given: of_session(lambda day, name: day.begin_unannounced(name, *given))
)
unannounced_works = paths.flatmap(
    lambda path: of_call(lambda day, running: day.work_unannounced(running, path), "unannounced")
)
formats = paths.map(lambda path: lambda day: day.format(path))
types = paths.map(lambda path: lambda day: day.type(path))
looks = st.tuples(st.sampled_from(("record", "scan", "file", "call")), paths).map(
    lambda given: lambda day: day.look(*given)
)
decisions = st.tuples(
    numbers,
    st.sampled_from((Action.ACCEPT, Action.REJECT)),
    st.sampled_from((OnExternal.KEEP, OnExternal.DISCARD)),
).map(lambda given: lambda day: day.decide(*given))
steps = st.one_of(
    begins,
    begins,
    works,
    works,
    works,
    types,
    types,
    formats,
    looks,
    st.sampled_from(("now", "now", "twice", "late", "lost", "failed")).flatmap(
        lambda how: of_call(lambda day, running: day.end(running, how))
    ),
    of_call(Day.deliver, "late"),
    st.tuples(st.booleans(), st.booleans()).flatmap(
        lambda given: of_call(lambda day, running: day.ask(running, is_allowed=given[0], is_reported=given[1]))
    ),
    of_call(Day.leave),
    of_call(Day.leave),
    st.booleans().flatmap(
        lambda is_reported: of_call(lambda day, running: day.finish(running, is_reported=is_reported))
    ),
    of_session(Day.prompt),
    st.booleans().flatmap(lambda lists: of_session(lambda day, name: day.stop(name, lists=lists))),
    of_session(Day.stop_subagent),
    of_session(Day.over),
    of_session(Day.kill),
    st.tuples(paths, st.booleans()).flatmap(
        lambda given: of_session(lambda day, name: day.unreported(name, given[0], names=given[1]))
    ),
    lost_beginnings,
    lost_beginnings,
    unannounced_works,
    unannounced_works,
    st.sampled_from(("ended", "failed", "runs on")).flatmap(
        lambda how: of_call(lambda day, running: day.report(running, how), "unannounced")
    ),
    decisions,
    decisions,
    decisions,
)


@given(st.lists(steps, min_size=20, max_size=40))
def test_only_what_no_agent_can_have_written_is_accepted_without_a_decision(stream: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        day = Day(Path(folder))
        with day.workspace:
            for step in stream:
                was_quiet = day.is_quiet
                step(day)
                day.check(is_quiet=was_quiet)
            day.look("scan", "a")
            day.check(is_quiet=day.is_quiet)
            assert not day.authors
