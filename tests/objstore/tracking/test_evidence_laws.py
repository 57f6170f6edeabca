"""Random streams of reports, of which some are lost, late, doubled or out of order, against the laws of attribution.

Who wrote what is known here. The files are in memory, so that thousands of streams take seconds; what hooks report goes
through the real `HookSessions`, the real log and the real rules. `test_attribution_laws` does the same with real files.

1. Nothing of an agent's is accepted without a person's word.
2. What is an agent's for certain has nothing of a person's, unless the person wrote while the agent's call ran.
3. Where everything was reported, nothing is unattributed.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, cast

import pytest

from objstore import AgentCall, EditView, HookSessions, Origin, TurnInfo, Workspace
from objstore.calls.attribution import Facts, FoundChange, explain
from objstore.calls.open_calls import OpenCalls
from objstore.clock import now
from objstore.fastclass import variable
from objstore.model.basic_types import EXTERNAL_CONVERSATION, UNKNOWN_AGENT
from objstore.model.results import EXTERNAL_CALL, CallInfo
from objstore.transaction.journal import Journal
from tests.support.faulty_disk import UnsyncedDisk

if TYPE_CHECKING:
    from objstore.tracking.record import Recorded

STREAMS: Final = 10_000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 150
STEPS: Final = 18
PATHS: Final = ("a", "b", "c")
SESSIONS: Final = ("one", "two")
PERSON: Final = "person"


class CountingDisk(UnsyncedDisk):
    """A disk whose clock goes on by one with each question, so that no two moments are the same."""

    def __init__(self) -> None:
        super().__init__()
        self.time = (now() - 3600 * 10**6) * 1000

    def clock(self, directory: int, name: str) -> int:  # noqa: ARG002 - it asks no file system
        """Return the next moment."""
        self.time += 1
        return self.time


@variable
class MadeEdit:
    """An edit in memory, with as much of an `EditView` as hooks ask for, and with who wrote it."""

    path: bytes
    info: CallInfo
    authors: frozenset[str]
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


class Files:
    """Files in memory, and what looks at them have recorded: a `Looks` without a disk."""

    def __init__(self, open_calls: OpenCalls, disk: CountingDisk) -> None:
        self._open: Final = open_calls
        self._disk: Final = disk
        self.written: dict[str, tuple[int, set[str]]] = {}  # not looked at yet: time of the last write, authors
        self.changed: dict[str, int] = {}  # when each file was last written (microseconds)
        self.edits: list[MadeEdit] = []

    def write(self, path: str, author: str) -> None:
        """Let an author change a file."""
        _, authors = self.written.get(path, (0, set()))
        self.written[path] = (self._disk.clock(0, ""), authors | {author})
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
        facts = Facts(open_calls.values())
        found = [self._taken(path, facts, EXTERNAL_CALL) for path in paths if facts.must_wait(path)]
        return cast("list[EditView]", [each for each in found if each is not None])

    def missing_files_below(self, path: str) -> list[str]:  # noqa: ARG002 - it is the same for all
        """Return nothing: there are no folders."""
        return []

    def is_unchanged(self, path: str, since: int) -> bool:
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
        finished = [name for name, call in open_calls.items() if call.is_over]
        paths = None if finished else paths
        facts = Facts(open_calls.values())
        found = []
        for path in list(self.written):
            is_meant = paths is None or path in paths
            if is_meant and not (paths is None and path in facts.named and facts.must_wait(path)):
                found.append(self._taken(path, facts, otherwise))
        for name in finished:
            self._open.remove(name)
        return [made for made in found if made is not None]

    def _taken(self, path: str, facts: Facts, otherwise: CallInfo) -> MadeEdit | None:
        if path not in self.written:
            return None
        moment, authors = self.written.pop(path)
        info = explain(FoundChange(path, moment), facts, otherwise)
        made = MadeEdit(
            path=path.encode(),
            info=info,
            authors=frozenset(authors),
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
    is_over: bool = False  # whether it has really ended
    is_begun: bool = True  # whether its beginning was reported
    is_reported: bool = False  # whether its end was reported
    is_past: bool = False  # whether its turn has ended, as far as hooks know


class Day:
    """Agents and a person at work, and what hooks report of it."""

    def __init__(self, journal: Journal, disk: CountingDisk, seed: int, *, is_complete: bool) -> None:
        """Begin a stream. `is_complete`: everything is reported, and what can't be told apart doesn't happen."""
        self.random: Final = Random(seed)
        self.is_complete: Final = is_complete
        self.disk: Final = disk
        self.files: Final = Files(OpenCalls(journal), disk)
        self.hooks: Final = HookSessions(journal, self.files)
        self.log: Final = Path(journal.tree.root, ".cas", "agents", "events")
        self.running: list[Running] = []
        self.in_turn: set[str] = set()
        self.typed: dict[str, list[tuple[Running, bool]]] = {}  # by mark of a person's line: see `type`
        self.number = 0
        self.said: list[str] = []

    def note(self, *words: object) -> None:
        """Note what happens, for the report of a failure."""
        self.said.append(" ".join(map(str, words)))

    def live(self, session: str = "") -> list[Running]:
        """Return the calls that have not really ended."""
        return [each for each in self.running if not each.is_over and session in {"", each.call.conversation}]

    # ---- agents

    def prompt(self, session: str) -> None:
        """Report a prompt, and work on it: every session's first tool is one that names a file."""
        self.stop(session)
        if self.is_complete and len(self.live()) >= len(PATHS):
            return
        self.note("prompt", session)
        self.pause(session)
        self.hooks.note_turn(TurnInfo(session=session, began=0, prompt="go"), has_begun=True)
        self.in_turn.add(session)
        if self.is_complete:
            self.begin(session, is_shell=False)
            self.end(self.running[-1])

    def begin(self, session: str, *, is_shell: bool) -> None:
        """Begin a call; its beginning is mostly reported."""
        if session not in self.in_turn:
            return
        others = {each.call.conversation for each in self.live() if each.call.paths is None} - {session}
        if self.is_complete and is_shell and others:
            return
        taken = {path for each in self.live() for path in each.call.paths or ()} if self.is_complete else set()
        free = [path for path in PATHS if path not in taken]
        if not (is_shell or free):
            return
        self.number += 1
        named = None if is_shell else (self.random.choice(free),)
        call = AgentCall(conversation=session, id=str(self.number), tool="tool", paths=named, agent="")
        self.running.append(Running(call=call))
        self.note("begin", session, call.id, named)
        times = self.reports()
        self.running[-1].is_begun = times > 0
        for _ in range(times):
            self.hooks.begin(call)
        if self.random.random() < 0.7 or (self.is_complete and not is_shell):
            self.work(self.running[-1])

    def work(self, running: Running) -> None:
        """Let a call change a file."""
        path = self.random.choice(PATHS) if running.call.paths is None else running.call.paths[0]
        if any(
            path in (each.call.paths or ())
            for each in self.running
            if each is not running
            and (not each.is_over if self.is_complete else not each.is_past and self.is_other(each, running))
        ):
            return  # what another agent writes into a file that a call has named is taken for the call's
        self.note("work", running.call.id, path)
        self.files.write(path, f"{running.call.conversation} {running.call.id}")

    @staticmethod
    def is_other(one: Running, other: Running) -> bool:
        """Return whether two calls are of different sessions."""
        return one.call.conversation != other.call.conversation

    def end(self, running: Running) -> None:
        """End a call; its end is reported now, later, twice or never."""
        self.note("end", running.call.id)
        running.is_over = True
        if running.is_begun and not self.is_complete and self.random.random() < 0.4:
            return  # it is late, or lost
        self.deliver(running, self.random.choice((1, 1, 2)))

    def deliver(self, running: Running, times: int = 1) -> None:
        """Report an end so many times."""
        self.note("report the end of", running.call.id, times)
        running.is_reported = True
        for _ in range(times):
            self.hooks.end(running.call)

    def reports(self) -> int:
        """Return how many times something is reported."""
        return 1 if self.is_complete else self.random.choices((1, 0, 2), (7, 2, 1))[0]

    def stop(self, session: str) -> None:
        """End the turn of a session."""
        if session not in self.in_turn:
            return
        for each in self.live(session):
            if self.is_complete or not each.is_begun:
                self.end(each)
            each.is_over = True
        self.in_turn.discard(session)
        times = self.reports()
        self.note("stop", session, times)
        for _ in range(times):
            self.pause(session)

    def pause(self, session: str) -> None:
        """Report the end of a turn."""
        self.hooks.pause(session)
        for each in self.running:
            each.is_past = each.is_past or each.call.conversation == session

    # ---- others

    def type(self) -> None:
        """Let the person write a line."""
        path = self.random.choice(PATHS)
        self.number += 1
        mark = f"{PERSON} {self.number}"
        # Of a call that named the file or none: whether the line may be taken for its own in any case, since it runs or
        # named the file and its turn goes on; otherwise only if its end is reported later, as if it had run till then.
        self.typed[mark] = [
            (each, not each.is_over or (each.is_reported and each.call.paths is not None))
            for each in self.running
            if not each.is_past
            and path in (each.call.paths or PATHS)
            and (each.call.paths is not None or not each.is_over or not each.is_reported)
        ]
        self.note("type", path, mark)
        self.files.write(path, mark)

    def may_be_taken(self, mark: str, session: str, path: str) -> bool:
        """Return whether a person's line may be taken for one of a session."""
        possible = [(each, is_certain) for each, is_certain in self.typed[mark] if each.call.conversation == session]
        return any(is_certain or each.is_reported for each, is_certain in possible) or any(
            # A tool whose beginning is lost is taken for the author of what is found in the file that it named.
            not each.is_begun and each.call.paths == (path,) and each.call.conversation == session
            for each in self.running
        )

    def look(self) -> None:
        """Let a command look at the files."""
        self.note("look")
        self.hooks.notice(EXTERNAL_CALL)

    def damage(self) -> None:
        """Damage the log: a byte of it, or its end."""
        if self.is_complete or not self.log.exists():
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

    # ---- the stream

    def step(self) -> None:
        """Do something."""
        session = self.random.choice(SESSIONS)
        live = self.live()
        late = [each for each in self.running if each.is_over and not each.is_reported]
        what = self.random.randrange(100)
        if what < 12 or not self.in_turn:
            self.prompt(session)
        elif what < 40:
            self.begin(session, is_shell=self.random.random() < 0.6)
        elif what < 52 and live:
            self.work(self.random.choice(live))
        elif what < 70 and live:
            self.end(self.random.choice(live))
        elif what < 74 and late:
            self.deliver(self.random.choice(late))
        elif what < 88:
            self.type()
        elif what < 92:
            self.look()
        elif what < 96:
            self.stop(session)
        elif what < 98:
            self.damage()

    def check(self) -> None:
        """Hold the laws at the end of the stream."""
        for session in SESSIONS:
            self.stop(session)
            self.pause(session)
            self.hooks.over(session)
        self.look()
        assert not self.files.written, self.said
        # Nothing says of a call whose beginning is lost that its session works at all.
        begun = {f"{each.call.conversation} {each.call.id}" for each in self.running if each.is_begun}
        for made in self.files.edits:
            agents = {author.partition(" ")[0] for author in made.authors if not author.startswith(PERSON)}
            known = {author.partition(" ")[0] for author in made.authors if author in begun}
            persons = [author for author in made.authors if author.startswith(PERSON)]
            told = (made.path, made.owner, made.info, sorted(made.authors), self.said)
            if not made.is_pending:
                assert not agents, told
            elif not made.is_unattributed:
                assert all(self.may_be_taken(mark, made.owner, made.path.decode()) for mark in persons), told
                assert known <= {made.owner}, told
            elif self.is_complete:
                raise AssertionError(told)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace without files."""
    root = tmp_path_factory.mktemp("workspace")
    Workspace.init(root, UnsyncedDisk()).close()
    return root


@pytest.mark.parametrize("is_complete", [True, False], ids=["everything is reported", "reports are lost"])
def test_the_laws_of_attribution_hold_in_every_stream_of_reports(root: Path, *, is_complete: bool) -> None:
    disk = CountingDisk()
    with closing(Journal(str(root), disk)) as journal:
        for seed in range(STREAMS):
            shutil.rmtree(root / ".cas" / "agents", ignore_errors=True)
            day = Day(journal, disk, seed, is_complete=is_complete)
            for _ in range(STEPS):
                day.step()
            day.check()
