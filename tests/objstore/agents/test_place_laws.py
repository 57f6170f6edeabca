"""Random streams of reports while files come and go with their places, where it is known who wrote what.

As in `test_evidence_laws`, reports are lost, late, doubled or out of order; here the files are real. They are in a
repository, in a submodule of it, in a linked worktree, in a folder that a sparse checkout leaves out, behind a pointer
of Large File Storage, in a folder that is moved away, and on a file system that is mounted (where the tests may not
mount, in another folder that is moved away). At any moment a person or an agent's shell lets such a place leave or
return, commits, switches branches, or stashes.

The laws are those of `test_evidence_laws`, and of every line that a file has at the end: an agent's is under review.
Where everything was reported, what a place that comes or goes changes is unattributed only for what it brings of an
agent's to another path, or if somebody wrote there unseen.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from subprocess import CalledProcessError
from typing import Final

import pytest

from objstore import CallInfo, Configuration, EditFilter, FileState, Status, TurnInfo, Workspace
from objstore.agents.attributed_scan import AttributedScan
from objstore.disk.witnesses.failure_marks import forget_hook_failures
from objstore.model.results import EXTERNAL_CALL
from objstore.model.views import EditView
from objstore.review.calls.open_calls import OpenCalls
from objstore.storage.transaction.journal import Journal
from objstore.values.clock import FILE_TIME_LAG_NS
from objstore.values.errors import DiskFailed
from objstore.values.fastclass import variable
from objstore.values.request_errors import NoSuchName
from tests.objstore.agents.test_evidence_laws import PERSON, STEPS, Day, FullDisk, Machine, MadeEdit
from tests.support.git_repository import git, new_repository
from tests.support.mounts import can_mount

STREAMS: Final = 2_000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 6
"""Streams in all: in half of them everything is reported."""

SLICES: Final = 20
FILES: Final = ("a", "sub/b", "tree/a", "part/c", "disk/d", "large")

FILTER: Final = """\
store="$(dirname "$0")/large"
mkdir -p "$store"
if [ "$1" = clean ]; then
    cat >"$store/new.$$"
    name=$(sha256sum "$store/new.$$" | cut -d' ' -f1)
    size=$(wc -c <"$store/new.$$")
    mv "$store/new.$$" "$store/$name"
    printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %d\\n' "$name" "$size"
else
    cat "$store/$(sed -n 's/^oid sha256://p')"
fi
"""
"""A filter that stores large files as git-lfs does, which may not be installed."""


def base(name: str) -> str:
    """Return what a file has at first."""
    return "".join(f"line {number} of {name}\n" for number in range(6))


def new_place(folder: Path) -> None:
    """Make a repository with a submodule and a large file, and what is mounted in it."""
    library = new_repository(folder / "library")
    (library / "b").write_text(base("b"))
    git(library, "add", ".")
    git(library, "commit", "-q", "-m", "library")
    (folder / "filter").write_text(FILTER)
    project = new_repository(folder / "project")
    for name in ("clean", "smudge"):
        git(project, "config", f"filter.lfs.{name}", f'sh "{folder}/filter" {name}')
    (project / "part").mkdir()
    (project / "disk").mkdir()
    (project / ".gitignore").write_text(".cas/\n")
    (project / ".gitattributes").write_text("large filter=lfs -text\n")
    for name in ("a", "part/c", "large"):
        (project / name).write_text(base(name))
    git(project, "submodule", "--quiet", "add", str(library), "sub")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "base")
    git(project, "branch", "other")
    (folder / "disk").mkdir()
    (folder / "disk" / "d").write_text(base("d"))


@variable
class Line:
    """A line that somebody wrote."""

    path: str
    author: str
    prompts: frozenset[str]  # to which it may belong


class PlacedFiles(AttributedScan):
    """Files on a disk, and the looks at them."""

    def __init__(self, journal: Journal, open_calls: OpenCalls) -> None:
        super().__init__(journal, open_calls)
        self.folder: Final = Path(journal.tree.root)
        self.lines: dict[str, Line] = {}
        self.hidden: set[str] = set()
        self.written: set[str] = set()  # the path of what no look at everything has found yet

    def write(self, path: str, author: str, prompts: Iterable[str] = ()) -> None:
        """Do what `WritesFiles.write` does: insert a line near the end."""
        text = author if author.startswith(PERSON) else f"{author} #{len(self.lines)}"
        self.lines[text] = Line(path=path, author=author, prompts=frozenset(prompts))
        lines = (self.folder / path).read_text().splitlines()
        lines.insert(max(0, len(lines) - 1), text)
        (self.folder / path).write_text("".join(f"{line}\n" for line in lines))
        self.written.add(path)

    def present(self) -> list[str]:
        """Return the paths of the files that are there."""
        return [path for path in FILES if (self.folder / path).is_file()]


class PlacedDay(Day):
    """Agents and a person at work in places that come and go."""

    def __init__(self, journal: Journal, disk: FullDisk, seed: int, *, is_complete: bool, can_mount: bool) -> None:
        """Begin a stream in a repository that no agent has worked in."""
        machine = Machine()
        self.placed: Final = PlacedFiles(journal, OpenCalls(journal, machine))
        super().__init__(journal, disk, seed, self.placed, machine, is_complete=is_complete)
        self.folder: Final = self.placed.folder
        self.outside: Final = self.folder.parent
        self.can_mount: Final = can_mount
        self.is_mounted = False
        self.brought: dict[str, set[str]] = {}  # by path, the sessions whose tools may have brought it
        self.mount()
        self.look()

    def paths(self) -> Sequence[str]:
        """Return the paths of the files that are there now."""
        return self.placed.present()

    def git(self, *arguments: str, folder: str = ".") -> bool:
        """Run git; return whether it succeeded."""
        try:
            git(self.folder / folder, *arguments)
        except CalledProcessError:
            return False
        return True

    # ---- places

    def further_acts(self) -> list[tuple[int, Callable[[], object]]]:
        """Return what may happen to the places of the files."""
        acts: tuple[tuple[Callable[[], object], str], ...] = (
            (self.worktree, "tree/a"),
            (self.submodule, "sub/b"),
            (self.sparse, "part/c"),
            (self.large, "large"),
            (self.folder_moves, "part/c"),
            (self.mount, "disk/d"),
            (self.commit, ""),
            (self.switch, ""),
            (self.stash, ""),
        )
        return [(6, partial(self.change_place, act, path)) for act, path in acts]

    def change_place(self, act: Callable[[], object], path: str) -> None:
        """Let a place come or go; where everything is reported, a look sees the place before and after."""
        if self.is_complete:
            self.look()
        self.note("change", getattr(act, "__name__", ""), path)
        act()
        if self.is_complete:
            self.look()

    def worktree(self) -> None:
        """Add or remove the linked worktree."""
        if (self.folder / "tree").exists():
            self.git("worktree", "remove", "--force", "tree")
        else:
            self.git("worktree", "add", "-q", "-f", "--detach", "tree", "HEAD")

    def submodule(self) -> None:
        """Fetch or empty the submodule."""
        if (self.folder / "sub" / "b").exists():
            self.git("submodule", "--quiet", "deinit", "-f", "sub")
        else:
            self.git("submodule", "--quiet", "update", "--init", "sub")

    def sparse(self) -> None:
        """Leave out a folder, or bring it back."""
        is_there = (self.folder / "part" / "c").exists()
        self.git("sparse-checkout", *(("set", "--no-cone", "/*", "!/part/") if is_there else ("disable",)))

    def large(self) -> None:
        """Replace a large file by the pointer to it, or the pointer by the file."""
        path = self.folder / "large"
        if path.exists():
            is_pointer = path.read_text().startswith("version ")
            self.note_brought("large")
            path.unlink()
            self.git(*(() if is_pointer else ("-c", "filter.lfs.smudge=cat")), "checkout", "--", "large")

    def folder_moves(self) -> None:
        """Move a folder out of the workspace, or back."""
        self.move("part", "outside")

    def move(self, name: str, outside: str) -> None:
        """Move a folder out of the workspace, or back if nothing is there now."""
        here, away = self.folder / name, self.outside / outside
        self.note_brought(f"{name}/")
        if away.exists() and not here.exists():
            away.rename(here)
        elif here.exists() and not away.exists():
            let_times_differ(here)
            here.rename(away)

    def note_brought(self, beginning: str = "") -> None:
        """Note that what a person moves or restores can't be told from what a tool does that may write there."""
        for each in self.running:
            for path in FILES if each.call.paths is None else each.call.paths:
                if path.startswith(beginning) and not each.is_past:
                    self.brought.setdefault(path, set()).add(each.call.conversation)

    def mount(self) -> None:
        """Mount or unmount a file system."""
        if not self.can_mount:
            self.move("disk", "disk-away")
            return
        place = str(self.folder / "disk")
        command = ["umount", place] if self.is_mounted else ["mount", "--bind", str(self.outside / "disk"), place]
        subprocess.run(command, check=True, capture_output=True)
        self.is_mounted = not self.is_mounted

    def commit(self) -> None:
        """Commit everything; while a shell runs, that may be the shell's commit."""
        if any(each.call.paths is None for each in self.running):
            self.note_brought()
        self.git("commit", "-q", "-am", "work", folder="sub" if self.random.random() < 0.3 else ".")

    def switch(self) -> None:
        """Switch branches."""
        self.git("checkout", "-q", self.random.choice(("main", "other")))

    def stash(self) -> None:
        """Put changes away, or bring them back."""
        if not self.git("stash", "pop", "-q"):
            self.note_brought()
            self.git("checkout", "-q", "-f", "HEAD", "--", ".")
            self.git("stash", "-q")

    def look(self) -> None:
        """Let a command look at the files."""
        self.note("look")
        with suppress(DiskFailed):
            self.hooks.notice(EXTERNAL_CALL)
            self.placed.written.clear()

    def hide(self) -> None:
        """Hide nothing: what is hidden is in memory elsewhere."""

    def bring_all_back(self) -> None:
        """Bring back what can come back."""
        if not self.is_mounted and self.can_mount:
            self.mount()
        self.git("sparse-checkout", "disable")
        for name, outside in (("part", "outside"), ("disk", "disk-away")):
            if (self.outside / outside).exists():
                if (self.folder / name).exists() and not (self.folder / name / "c").exists():
                    shutil.rmtree(self.folder / name)
                if not (self.folder / name).exists():
                    self.move(name, outside)
        self.look()

    def clean_up(self) -> None:
        """Unmount what is mounted."""
        if self.is_mounted:
            self.mount()

    # ---- the laws

    def check_lines(self, workspace: Workspace) -> None:
        """Hold the laws for every edit, and for every line that is in a file."""
        prompts = {turn.number: turn.prompt for turn in workspace.sessions.turns()}
        made: list[MadeEdit] = []
        for view in workspace.history.edits(EditFilter()):
            if view.status is Status.AWAY:
                continue
            added = [self.placed.lines[text] for text in self.added(workspace, view)]
            own = [line for line in added if line.path == os.fsdecode(view.edit.path)]
            brought = [line for line in added if line not in own]
            prompt = prompts.get(view.edit.turn, "")
            if view.owner in self.brought.get(os.fsdecode(view.edit.path), ()):
                # What came back while a tool ran may be of an earlier turn, too.
                own = [line for line in own if line.author.startswith(view.owner) and prompt in line.prompts]
            is_pending = Status.PENDING in view.units
            told = (view.seq, view.edit.path, view.edit.origin, view.owner, view.edit.notes, added, self.said)
            if is_pending and not view.is_unattributed:
                # Copies that a shell makes are its own; those that git makes are no one's for certain.
                persons = [line for line in brought if line.author.startswith(PERSON)]
                are_possible = all(self.may_be_taken(line.author, view.owner, line.path) for line in persons)
                assert not persons or (are_possible and not self.is_complete), told
            elif is_pending and self.is_complete:
                original = os.fsdecode(view.edit.path).removeprefix("tree/")
                assert brought or self.brought.get(original), told
                continue
            assert is_pending or not any(not line.author.startswith(PERSON) for line in brought), told
            turn = TurnInfo(session=view.owner, began=0, prompt=prompt)
            made.append(
                MadeEdit(
                    path=view.edit.path,
                    info=CallInfo(
                        tool=view.edit.tool, conversation=view.edit.conversation, origin=view.edit.origin, turn=turn
                    ),
                    authors=frozenset(line.author for line in own),
                    prompts=frozenset(prompt for line in own for prompt in line.prompts),
                    time=view.edit.time,
                    owner=view.owner,
                    is_pending=is_pending,
                )
            )
        self.check(made)
        for path in self.placed.present():
            self.check_blame(workspace, path)

    def added(self, workspace: Workspace, view: EditView) -> set[str]:
        """Return the lines of authors that an edit added."""
        return self.lines_of(workspace, view.edit.after) - self.lines_of(workspace, view.edit.before)

    def lines_of(self, workspace: Workspace, state: FileState | None) -> set[str]:
        """Return the lines of authors in a state of a file."""
        text = "" if state is None else workspace.history.text(state.blob).decode()
        return self.placed.lines.keys() & set(text.splitlines())

    def check_blame(self, workspace: Workspace, path: str) -> None:
        """Hold that every line of an agent that a file has is under review."""
        try:
            text, blamed = workspace.history.blame(path)
        except NoSuchName:
            assert not self.placed.lines.keys() & set((self.folder / path).read_text().splitlines()), (path, self.said)
            return
        assert text.decode() == (self.folder / path).read_text(), (path, self.said)
        lines = text.decode().splitlines()
        for each in blamed:
            own = [self.placed.lines.get(line) for line in lines[each.start : each.start + each.count]]
            agents = [line for line in own if line is not None and not line.author.startswith(PERSON)]
            if agents:
                told = (path, agents, each.unit and str(each.unit), self.said)
                assert each.unit is not None, told
                assert each.view is not None, told
                assert each.view.units[each.unit.hunk] is Status.PENDING, (each.view.status, told)


def let_times_differ(folder: Path) -> None:
    """Wait until the files are older than their times may lag behind the clock: no person moves a folder sooner."""
    newest = max((path.lstat().st_ctime_ns for path in folder.rglob("*")), default=0)
    while time.time_ns() <= newest + FILE_TIME_LAG_NS:
        time.sleep(0.001)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return where the streams are to take place. What hooks leave elsewhere goes to a folder of the test's own."""
    place = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("temporary")))
        yield place


@pytest.mark.parametrize("part", range(SLICES if STREAMS > SLICES * SLICES else 1))
@pytest.mark.parametrize("is_complete", [True, False], ids=["everything is reported", "reports are lost"])
def test_the_laws_of_attribution_hold_wherever_files_come_and_go(place: Path, *, is_complete: bool, part: int) -> None:
    streams = STREAMS // 2 // (SLICES if STREAMS > SLICES * SLICES else 1)
    for seed in range(part * streams, (part + 1) * streams):
        run_stream(place, seed, is_complete=is_complete)


def run_stream(place: Path, seed: int, *, is_complete: bool) -> None:
    """Run one stream in a new repository."""
    disk = FullDisk()
    folder, template = place / "stream", place / "template"
    if not template.exists():
        new_place(folder)
        folder.rename(template)  # a copy of it takes less time than another one
    try:
        shutil.copytree(template, folder, symlinks=True)
        root = folder / "project"
        Workspace.init(root, disk).close()
        Configuration(str(root)).set("git.commit", "keep")
        forget_hook_failures(str(root))
        (place / "probe").mkdir(exist_ok=True)
        with closing(Journal(str(root), disk)) as journal:
            day = PlacedDay(journal, disk, seed, is_complete=is_complete, can_mount=can_mount(place / "probe"))
            try:
                for _ in range(STEPS):
                    day.step()
                day.disk.is_full = lambda: False
                day.end_all()
                day.bring_all_back()
                with closing(Workspace.open(root)) as workspace:
                    day.check_lines(workspace)
            finally:
                day.clean_up()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
