"""An agent makes edits again that were rejected: every decision can still be undone, and no line is there twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from objstore import Action, Conflicted, Decided, NothingToDo, Seq, Status, Unit
from tests.support.scene import Scene, lines, words

LINES = "a b c d e"
BASE = "a 1 b 2 c 3 d 4 e 5"  # lines apart, so that an edit of one never needs another's


def changed(line: str, kind: str) -> str:
    """Return what one change makes of a line."""
    return {"replace": line.upper(), "insert": f"{line} +{line}", "delete": ""}[kind]


class Rewrites:
    """An agent that changes each line of a file in one way, again and again, and a person; with what is expected."""

    def __init__(self, scene: Scene, kinds: list[str]) -> None:
        self.scene = scene
        self.kinds = dict(zip(LINES.split(), kinds, strict=True))
        self.made: dict[str, list[Seq]] = {line: [] for line in self.kinds}  # edits of each line, oldest first
        self.live: dict[Seq, bool] = {}
        self.decided: list[Seq] = []  # rejections in force
        self.undone: list[Seq] = []
        scene.write("f", lines(BASE))

    def line_of(self, edit: Seq) -> str:
        return next(line for line, edits in self.made.items() if edit in edits)

    def is_changed(self, line: str) -> bool:
        return any(self.live[edit] for edit in self.made[line])

    def text(self) -> bytes:
        is_changed = {line: self.is_changed(line) for line in self.kinds}
        shown = (changed(line, self.kinds[line]) if is_changed.get(line) else line for line in BASE.split())
        return lines(" ".join(shown))

    def edit(self, line: str) -> None:
        """Let the agent change the line, unless it is changed."""
        if self.is_changed(line):
            return
        before = self.text()
        edit = self.scene.edit("f", lines(line), lines(changed(line, self.kinds[line])))
        assert before != self.scene.text("f")
        self.made[line].append(edit)
        self.live[edit] = True

    def reject(self, line: str) -> None:
        """Reject the edit because of which the line is changed."""
        for edit in self.made[line]:
            if self.live[edit]:
                self.scene.reject(edit)
                self.live[edit] = False
                self.decided.append(edit)
                self.undone.clear()

    def undo(self, *_: str) -> None:
        outcome = self.scene.workspace.review.undo()
        if not self.decided:
            assert outcome == NothingToDo()
            return
        assert isinstance(outcome, Decided)
        self.undone.append(self.decided.pop())
        if not self.is_changed(self.line_of(self.undone[-1])):
            self.live[self.undone[-1]] = True

    def redo(self, *_: str) -> None:
        outcome = self.scene.workspace.review.redo()
        if not self.undone:
            assert outcome == NothingToDo()
            return
        assert isinstance(outcome, Decided)
        self.decided.append(self.undone.pop())
        self.live[self.decided[-1]] = False


kinds = st.lists(st.sampled_from(["replace", "insert", "delete"]), min_size=5, max_size=5)
steps = st.lists(
    st.tuples(st.sampled_from(["edit", "edit", "reject", "reject", "undo", "redo"]), st.sampled_from(LINES.split())),
    min_size=4,
    max_size=20,
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield folders endlessly."""
    return (tmp_path_factory.mktemp("scene") for _ in iter(int, 1))


@given(kinds=kinds, steps=steps)
def test_every_undo_and_redo_is_possible_and_exact(
    folders: Iterator[Path], kinds: list[str], steps: list[tuple[str, str]]
) -> None:
    scene = Scene(next(folders) / "root")
    agent = Rewrites(scene, kinds)
    for step, line in steps:
        getattr(agent, step)(line)
        assert words(scene.text("f")) == words(agent.text())
        statuses = scene.statuses()
        assert {edit: statuses[edit] is not Status.REJECTED for edit in agent.live} == agent.live
    before = scene.text("f")
    count = len(agent.decided)
    for _ in range(count):
        agent.undo()
    assert words(scene.text("f")) == words(agent.text())
    for _ in range(count):
        agent.redo()
    assert {edit for edit in agent.decided if agent.live[edit]} == set()
    assert len(agent.decided) == count
    if not agent.undone:
        assert scene.text("f") == before
    scene.close()


def test_an_undone_rejection_of_an_edit_made_again_says_so_and_changes_no_file(scene: Scene) -> None:
    scene.write("f", lines("a b c"))
    first = scene.edit("f", lines("b"), lines("B"))
    scene.reject(first)
    again = scene.edit("f", lines("b"), lines("B"))
    outcome = scene.undo()
    assert outcome.repeated == ((Unit(first, 1), Unit(again, 1)), (Unit(first, 0), Unit(again, 0)))
    assert (outcome.files, scene.text("f")) == ((), lines("a B c"))
    assert (scene.view(first).status, scene.view(again).status) == (Status.REJECTED, Status.PENDING)
    assert scene.workspace.review.undo() == NothingToDo()
    scene.reject(again)
    assert scene.text("f") == lines("a b c")


def test_a_creation_made_again_is_understood(scene: Scene) -> None:
    first = scene.write("f", lines("a b"))
    scene.reject(first)
    scene.write("f", lines("a b"))
    outcome = scene.undo()
    assert ([unit.seq for unit, _ in outcome.repeated], scene.text("f")) == ([first], lines("a b"))


def test_a_creation_with_another_mode_is_another_change(scene: Scene) -> None:
    scene.reject(scene.write("f", lines("a b"), mode=0o600))
    scene.write("f", lines("a b"), mode=0o755)
    assert isinstance(scene.workspace.review.undo(), Conflicted)


def test_of_several_edits_those_made_again_stay_and_the_others_come_back(scene: Scene) -> None:
    scene.write("f", lines("a b c"))
    first, second = scene.edit("f", lines("a"), lines("A")), scene.edit("f", lines("c"), lines("C"))
    scene.decide(Action.REJECT, first, second)
    scene.edit("f", lines("a"), lines("A"))
    outcome = scene.undo()
    assert {unit.seq for unit, _ in outcome.repeated} == {first}
    assert scene.text("f") == lines("A b C")
    assert isinstance(scene.workspace.review.redo(), Decided)
    assert scene.text("f") == lines("A b c")


def test_a_different_edit_of_the_line_is_a_conflict_and_earlier_decisions_can_be_undone(scene: Scene) -> None:
    scene.write("f", lines("a b c"))
    first, second = scene.edit("f", lines("a"), lines("A")), scene.edit("f", lines("c"), lines("C"))
    scene.reject(second)
    scene.reject(first)
    third = scene.edit("f", lines("a"), lines("X"))
    assert isinstance(scene.workspace.review.undo(), Conflicted)
    newest, oldest = scene.workspace.review.in_force()
    assert {unit.seq for unit in newest.units} == {first}
    assert isinstance(scene.workspace.review.undo(oldest.number, past=[newest.number]), Decided)
    assert scene.text("f") == lines("X b C")
    scene.reject(third)
    later = scene.workspace.review.in_force()[0].number
    assert isinstance(scene.workspace.review.undo(newest.number, past=[later]), Decided)
    assert scene.text("f") == lines("A b C")


def test_an_undo_past_later_decisions_counts_the_older_edit_too(scene: Scene) -> None:
    scene.write("f", lines("a b c"))
    first = scene.edit("f", lines("b"), lines("B"))
    scene.reject(first)
    second = scene.edit("f", lines("b"), lines("B"))
    scene.reject(second)
    later, earlier = scene.workspace.review.in_force()
    assert isinstance(scene.workspace.review.undo(earlier.number, past=[later.number]), Decided)
    assert {unit.seq for unit, _ in scene.undo().repeated} == {second}
    assert scene.text("f") == lines("a B c")
