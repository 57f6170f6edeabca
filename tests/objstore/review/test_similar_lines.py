"""Laws of decisions on files with equal lines: no wrong byte, however the edits were made.

`make laws` holds them over 20,000 constructed histories and more, `make test` over a hundred.
"""

from __future__ import annotations

import random
import shutil
import statistics
import subprocess
from collections import Counter
from itertools import chain, combinations, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import settings

from objstore import (
    Action,
    BlobId,
    CallInfo,
    Configuration,
    Conflicted,
    ConflictKind,
    Decided,
    Hunk,
    Operation,
    Origin,
    Seq,
    blob_id,
)
from tests.support.scene import Scene
from tests.support.similar_lines import History, functions, repeated, undone_next_to_another_change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

IS_LONG: Final = settings().max_examples >= 1_000
EXAMPLES: Final = settings().max_examples if IS_LONG else 10
"""Ten in `make test`, 2,000 in `make laws`."""

WAYS: Final = ("whole", "exact", "by hand")
"""How an edit is made: the whole file is written, the lines are named by the tool, or a person types."""


BY_HAND: Final = CallInfo(tool="", origin=Origin.EXTERNAL)


class Recorded:
    """States of a file that were recorded one after the other, each by an edit."""

    def __init__(self, scene: Scene, path: str, states: Sequence[bytes], ways: Sequence[str] = ()) -> None:
        self._scene, self._path = scene, path
        self.edits: list[Seq] = []
        self._settle(scene.write(path, states[0]))
        for after, way in zip(states[1:], ways or ["whole"] * (len(states) - 1), strict=True):
            if way == "by hand":
                (scene.root / path).write_bytes(after)
                self.edits.append(scene.workspace.record_changes(BY_HAND, [path]).edits[0].seq)
            else:
                self.edits.append(scene.write(path, after))
                self._settle(self.edits[-1])

    def _settle(self, seq: Seq) -> None:
        """Accept a tool's edit: lines under review that a person writes again would be that edit's, and no new one."""
        self._scene.decide(Action.ACCEPT, seq)

    @classmethod
    def of(cls, scene: Scene, path: str, history: History, ways: Sequence[str]) -> Recorded:
        """Record a history of which it is known which lines each edit was about."""
        made = cls(scene, path, history.states[:1])
        for number, (after, way) in enumerate(zip(history.states[1:], ways, strict=True)):
            made._go_on(after, way, history.hunks(number))
        return made

    def _go_on(self, after: bytes, way: str, hunks: Sequence[Hunk]) -> None:
        if way == "by hand":
            (self._scene.root / self._path).write_bytes(after)
            self.edits.append(self._scene.workspace.record_changes(BY_HAND, [self._path]).edits[0].seq)
            return
        operation, known = (Operation.EDIT, hunks) if way == "exact" else (Operation.REPLACE, None)
        done = self._scene.call(lambda call: call.write(self._path, after, hunks=known, operation=operation))
        self.edits.append(done.edits[-1].seq)
        self._settle(self.edits[-1])

    def decided_without(self, *edits: int) -> BlobId | None:
        """Return which bytes the file would have without some of the edits (None: that is refused)."""
        outcome = self._scene.decide(Action.REJECT, *(self.edits[edit] for edit in edits), dry_run=True)
        if isinstance(outcome, Conflicted):
            return None
        assert isinstance(outcome, Decided), outcome
        return outcome.files[0].after if outcome.files else blob_id((self._scene.root / self._path).read_bytes())

    def without(self, *edits: int) -> bytes | None:
        """Return the file without some of the edits (None: that is refused); they are taken up again afterwards."""
        file = self._scene.root / self._path
        whole = file.read_bytes()
        outcome = self._scene.decide(Action.REJECT, *(self.edits[edit] for edit in edits))
        found = file.read_bytes()
        if isinstance(outcome, Conflicted):
            assert found == whole
            return None
        assert isinstance(outcome, Decided), outcome
        self._scene.undo()
        assert file.read_bytes() == whole
        return found


@pytest.fixture
def scenes(tmp_path: Path) -> Iterator[Iterator[Scene]]:
    """Yield scenes endlessly, each for a few files, because an undo reads all decisions of a scene."""
    made: list[Scene] = []

    def fresh() -> Iterator[Scene]:
        while True:
            if made:
                made.pop().close()
                shutil.rmtree(tmp_path / "workspace")
            made.append(Scene(tmp_path / "workspace"))
            # A change by hand follows an agent's edit at once here, and is none of a formatter's.
            Configuration(str(tmp_path / "workspace")).set("review.formatting", "pending")
            for _ in range(20):
                yield made[0]

    yield fresh()
    for scene in made:
        scene.close()


def drawn_ways(seed: int, count: int) -> list[str]:
    """Draw how the edits of a history are made: one way for all, or each its own."""
    draw = random.Random(seed)
    one = draw.choice((*WAYS, None))
    return [one or draw.choice(WAYS) for _ in range(count)]


def histories(count: int) -> Iterator[History]:
    """Yield this number of histories whose text without any edit is known."""
    for seed in range(count):
        made = (functions(seed), repeated(seed, alike=0.35), repeated(seed, alike=0.7))[seed % 3]
        if made is not None and all(before != after for before, after in pairwise(made.states)):
            yield made


def lines_of(text: bytes) -> Counter[bytes]:
    return Counter(text.splitlines())


def test_rejection_gives_the_text_of_the_other_edits_or_is_refused(scenes: Iterator[Scene], tmp_path: Path) -> None:
    """It may be wrong only where git's merge is not right either; that happened once in 26,468 cases."""
    refused = right = wrong = 0
    for number, (history, scene) in enumerate(zip(histories(7 * EXAMPLES), scenes, strict=False)):
        ways = drawn_ways(number, len(history.changes))
        recorded = Recorded.of(scene, f"file {number}", history, ways)
        for edit in range(len(history.changes)):
            found, wanted = recorded.decided_without(edit), blob_id(history.without(edit))
            refused += found is None
            right += found == wanted
            if found not in {None, wanted}:
                assert merged_by_git(tmp_path, history.states, edit) != history.without(edit), (number, edit, ways)
                wrong += 1
    assert right > 20 * refused
    assert right >= 5_000 * wrong


def test_line_of_every_version_is_never_lost(scenes: Iterator[Scene]) -> None:
    for number, (history, scene) in enumerate(zip(histories(2 * EXAMPLES), scenes, strict=False)):
        recorded = Recorded.of(scene, f"file {number}", history, drawn_ways(number, len(history.changes)))
        always = set(history.lines[0]).intersection(*history.lines)
        least = Counter(line.reads.encode() for line in always)
        edits = range(len(history.changes))
        for chosen in chain.from_iterable(combinations(edits, count) for count in (1, 2)):
            found = recorded.without(*chosen)
            assert found is None or least <= lines_of(found), (number, chosen)


@pytest.mark.parametrize("way", ["whole", "by hand"])
def test_rejecting_lines_that_a_whole_write_removed_leaves_that_text(scenes: Iterator[Scene], way: str) -> None:
    """Edit A only inserts, B removes A's lines and changes another line; the text without A is B's."""
    refused = 0
    for seed, scene in zip(range(3 * EXAMPLES), scenes, strict=False):
        states = undone_next_to_another_change(seed)
        recorded = Recorded(scene, f"file {seed}", states, ["whole", way])
        found = recorded.without(0)
        assert found in {None, states[-1]}, seed
        refused += found is None
    assert refused < 2 * EXAMPLES


def definitions(source: str) -> list[tuple[int, int]]:
    """Return the range of each function in a source text: its first line, and the line after its last."""
    lines = source.splitlines()
    starts = [at for at, line in enumerate(lines) if line.lstrip().startswith("def ")]
    return [(start, end) for start, end in pairwise([*starts, len(lines)]) if 3 <= end - start < 40]


def test_rejecting_an_inserted_and_removed_function_keeps_real_source_intact(scenes: Iterator[Scene]) -> None:
    """A function is copied under another name; a whole write then removes the copy and changes a line."""
    source = Path(statistics.__file__).read_text()
    lines, spans = source.splitlines(keepends=True), definitions(source)
    draw = random.Random(7)
    refused = 0
    for number, scene in zip(range(EXAMPLES), scenes, strict=False):
        (start, end), (at, _) = draw.choice(spans), draw.choice(spans)
        copied = [lines[start].replace("def ", "def another_"), *lines[start + 1 : end]]
        changed = draw.choice([at for at, line in enumerate(lines) if line.strip()])
        last = [*lines[:changed], lines[changed].rstrip("\n") + "  # changed\n", *lines[changed + 1 :]]
        states = ["".join(text).encode() for text in (lines, [*lines[:at], *copied, *lines[at:]], last)]
        found = Recorded(scene, f"file {number}", states, ["whole", draw.choice(["whole", "by hand"])]).without(0)
        assert found in {None, states[-1]}, number
        refused += found is None
    assert refused < EXAMPLES / 4


def is_closed(text: bytes) -> bool:
    return text.endswith(b"\n")


def test_live_change_of_the_final_newline_holds_or_the_decision_is_refused(scenes: Iterator[Scene]) -> None:
    """Try histories of three states of up to two lines: the second edit is live, the first is rejected."""
    bodies = ["\n".join(lines).encode() for count in (1, 2) for lines in product("ab", repeat=count)]
    texts = [body + end for body in bodies for end in (b"", b"\n")]
    all_states = [states for states in product(texts, repeat=3) if states[0] != states[1] != states[2]]
    random.Random(1).shuffle(all_states)
    kept = 0
    for number, (states, scene) in enumerate(zip(all_states[: 4 * EXAMPLES], scenes, strict=False)):
        recorded = Recorded(scene, f"file {number}", states, drawn_ways(number, 2))
        assert recorded.decided_without(1) == blob_id(states[1])
        found = recorded.without(0)
        if found:
            changes = is_closed(states[1]) is not is_closed(states[2])
            assert not changes or is_closed(found) is is_closed(states[2]), (states, found)
            kept += changes
    assert kept > min(EXAMPLES, 1_000) / 2


def replayed(states: Sequence[bytes], dead: Sequence[int]) -> bytes | None:
    """Return the last state without some edits, if each other edit finds exactly the text that it was made on."""
    now = states[0]
    for edit, (before, after) in enumerate(pairwise(states)):
        if edit in dead:
            continue
        if now != before:
            return None
        now = after
    return now


def test_edit_applies_to_exactly_the_text_that_it_was_made_on(scenes: Iterator[Scene]) -> None:
    """Up to six alternating states of one line, with any subset of the edits rejected."""
    places = {"A": "A\n", "B": "B\n", "C": "C\n", "two": "A 1\nA 2\n", "none": ""}
    walks = [
        walk
        for count in (3, 4, 5, 6)
        for walk in product(places, repeat=count)
        if all(before != after for before, after in pairwise(walk))
    ]
    random.Random(2).shuffle(walks)
    applied_count = 0
    for number, (walk, scene) in enumerate(zip(walks[: 2 * EXAMPLES], scenes, strict=False)):
        states = [f"p\n{places[state]}q\n".encode() for state in walk]
        recorded = Recorded(scene, f"file {number}", states, drawn_ways(number, len(states) - 1))
        edits = range(len(recorded.edits))
        for dead in chain.from_iterable(combinations(edits, count) for count in range(1, len(edits))):
            wanted = replayed(states, dead)
            if wanted is not None:
                assert recorded.decided_without(*dead) == blob_id(wanted), (walk, dead)
                applied_count += 1
    assert applied_count > EXAMPLES


def merged_by_git(folder: Path, states: Sequence[bytes], edit: int) -> bytes | None:
    """Return git's result for the states without an edit, merge by merge (None: a conflict)."""
    text = states[edit]
    for before, after in pairwise(states[edit + 1 :]):
        for name, content in (("before", before), ("ours", text), ("after", after)):
            (folder / name).write_bytes(content)
        command = ["git", "merge-file", "-p", "-q", "ours", "before", "after"]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True)
        if done.returncode:
            return None
        text = done.stdout
    return text


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the peer that it is compared with")
def test_result_is_right_or_refused_where_git_is_right_and_otherwise_no_worse(
    scenes: Iterator[Scene], tmp_path: Path
) -> None:
    ours_wrong = git_wrong = both = 0
    for number, (history, scene) in enumerate(zip(histories(2 * EXAMPLES), scenes, strict=False)):
        recorded = Recorded.of(scene, f"file {number}", history, ["whole"] * len(history.changes))
        for edit in range(len(history.changes)):
            wanted, theirs = history.without(edit), merged_by_git(tmp_path, history.states, edit)
            found = recorded.decided_without(edit)
            is_wrong = found not in {None, blob_id(wanted)}
            assert not is_wrong or theirs != wanted, (number, edit)
            ours_wrong += is_wrong
            git_wrong += theirs not in {None, wanted}
            both += found is not None and not is_wrong and theirs == wanted
    assert ours_wrong <= git_wrong
    assert both > EXAMPLES


def test_decision_that_replay_contradicts_is_refused_as_in_doubt(scene: Scene) -> None:
    """A whole write names the wrong ones of two equal lines, as older versions did when they compared."""
    one, two, three = (f"function {name}() {{\n  return 1;\n}}\n\n".encode() for name in ("one", "two", "three"))
    scene.write("f", one + two)
    inserted = scene.write("f", one + two + three)
    after = one.replace(b"one", b"ONE") + two
    whole = scene.write("f", after, hunks=[Hunk(0, 1, 0, 1), Hunk(5, 4, 5, 0)])
    (conflict,) = scene.refused(Action.REJECT, inserted)
    assert (conflict.kind, conflict.unit.seq, [unit.seq for unit in conflict.needs]) == (
        ConflictKind.IN_DOUBT,
        whole,
        [inserted],
    )
    assert "recorded by comparing texts" in str(conflict)
    together = scene.reject(inserted, cascade=True)
    assert {unit.seq for unit in together.cascaded} == {whole}
    assert scene.text("f") == one + two
    scene.undo()
    assert scene.text("f") == after


def test_lines_that_a_tool_named_are_never_in_doubt(scene: Scene) -> None:
    scene.write("f", b"a\nb\n")
    first = scene.call(lambda call: call.write("f", b"a\nb\nb\n", hunks=[Hunk(2, 0, 2, 1)], operation=Operation.EDIT))
    scene.call(lambda call: call.write("f", b"A\nb\n", hunks=[Hunk(0, 2, 0, 1)], operation=Operation.EDIT))
    scene.reject(first.edits[0].seq)
    assert scene.text("f") == b"A\n"


def test_single_common_line_does_not_count_as_a_move(scene: Scene) -> None:
    """Two functions that share a line of quotes: taking one out and putting the other in moves neither."""
    first = b'def one():\n    """\n    Do one thing.\n    """\n    return 1\n\n\n'
    second = b'def two():\n    """\n    Do another.\n    """\n    return 2\n\n\n'
    middle = b"x = 1\ny = 2\nz = 3\n\n\n"
    scene.write("f", middle)
    inserted = scene.write("f", first + middle)
    scene.write("f", middle + second)
    scene.reject(inserted)
    assert scene.text("f") == middle + second
