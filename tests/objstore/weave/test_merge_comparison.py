"""The weave agrees with replay by three-way merge, on random histories without repeated lines."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

import pytest

from objstore.text.diff import Hunk, diff_lines
from objstore.text.lines import split_lines
from objstore.weave.line_weave import UnitIndex, Weave
from tests.support.weave_statuses import set_live

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


HISTORIES: Final = 400 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 120


@dataclass(frozen=True)
class Drawn:
    """A random history: its states in order, and the weave of all of them."""

    states: list[bytes]
    weave: Weave
    units: list[tuple[UnitIndex, ...]]

    @classmethod
    def of(cls, seed: int) -> Drawn:
        draw = random.Random(seed)
        fresh = (b"line %d\n" % number for number in count())
        lines = [next(fresh) for _ in range(draw.randint(3, 20))]
        states = [b"".join(lines)]
        weave = Weave(states[0])
        units = []
        for _ in range(draw.randint(2, 7)):
            for _ in range(draw.randint(1, 3)):
                at = draw.randint(0, len(lines))
                lines[at : at + draw.choice((0, 1, 1, 2, 4))] = [next(fresh) for _ in range(draw.choice((0, 1, 1, 2)))]
            after = b"".join(lines)
            units.append(weave.record(after, diff_lines(states[-1], after)))
            states.append(after)
        return cls(states, weave, units)

    def without(self, edit: int) -> bytes | None:
        """Return the text without one edit (None: a conflict); the weave is unchanged afterwards."""
        whole = dict.fromkeys(self.units[edit], True)
        conflicts = set_live(self.weave, dict.fromkeys(whole, False))
        text = self.weave.text()
        assert set_live(self.weave, whole) == ()
        return None if conflicts else text

    def replayed_without(self, edit: int, merge: Callable[[bytes, bytes, bytes], bytes | None]) -> bytes | None:
        """Return the text after merging every later edit onto the state before this one (None: a conflict)."""
        text: bytes | None = self.states[edit]
        for before, after in zip(self.states[edit + 1 :], self.states[edit + 2 :], strict=False):
            text = None if text is None else merge(before, text, after)
        return text


def merged(ancestor: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge as diff3 does: changes apart from each other are both taken, those that touch or overlap conflict."""
    changes = [(hunk, split_lines(ours)) for hunk in diff_lines(ancestor, ours)]
    changes += [(hunk, split_lines(theirs)) for hunk in diff_lines(ancestor, theirs)]
    lines = split_lines(ancestor)
    below = len(lines) + 1
    for hunk, side in sorted(changes, key=lambda change: change[0], reverse=True):
        if hunk.old_end >= below:
            return None
        lines[hunk.old_start : hunk.old_end] = side[hunk.new_start : hunk.new_end]
        below = hunk.old_start
    return b"".join(lines)


def merged_by_git(folder: Path) -> Callable[[bytes, bytes, bytes], bytes | None]:
    """Return the merge that git makes."""

    def merge(ancestor: bytes, ours: bytes, theirs: bytes) -> bytes | None:
        for name, content in (("ancestor", ancestor), ("ours", ours), ("theirs", theirs)):
            (folder / name).write_bytes(content)
        command = ["git", "merge-file", "-p", "-q", "ours", "ancestor", "theirs"]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True)
        return done.stdout if done.returncode == 0 else None

    return merge


def agreements(seeds: range, merge: Callable[[bytes, bytes, bytes], bytes | None]) -> tuple[int, int]:
    """Compare every history without each of its edits; return how often both were clean, and only the weave was."""
    both = weave_only = 0
    for seed in seeds:
        history = Drawn.of(seed)
        for edit in range(len(history.units)):
            ours, theirs = history.without(edit), history.replayed_without(edit, merge)
            if ours is not None and theirs is not None:
                assert ours == theirs, (seed, edit)
            both += ours is not None and theirs is not None
            weave_only += ours is not None and theirs is None
    return both, weave_only


def test_decision_equals_a_clean_merge_or_is_a_conflict() -> None:
    both, weave_only = agreements(range(HISTORIES), merged)
    assert both > HISTORIES
    # Lines that only touch are no conflict here.
    assert weave_only > HISTORIES / 4


def test_git_merge_gives_the_same_result(tmp_path: Path) -> None:
    merge = merged_by_git(tmp_path) if shutil.which("git") else merged
    both, _ = agreements(range(1000, 1015), merge)
    assert both > 10


@pytest.mark.parametrize("seeds", [range(400), range(10_000, 10_200)])
def test_text_without_an_edit_is_the_inverse_edit_or_a_part_of_it(seeds: range) -> None:
    """Only lines that the edit inserted go, only lines that it deleted return, and the others keep their order."""
    for seed in seeds:
        history = Drawn.of(seed)
        whole = split_lines(history.states[-1])
        for edit in range(len(history.units)):
            text = history.without(edit)
            if text is None:
                continue
            left = split_lines(text)
            before, after = set(split_lines(history.states[edit])), set(split_lines(history.states[edit + 1]))
            assert set(whole) - set(left) <= after - before
            assert set(left) - set(whole) <= before - after
            assert [line for line in whole if line in set(left)] == [line for line in left if line in set(whole)]
            assert len(set(left)) == len(left)


def test_merge_accepts_separate_changes_and_refuses_adjacent_ones() -> None:
    base = b"a\nb\nc\nd\n"
    assert merged(base, b"A\nb\nc\nd\n", b"a\nb\nC\nd\n") == b"A\nb\nC\nd\n"
    assert merged(base, b"A\nb\nc\nd\n", b"a\nB\nc\nd\n") is None
    assert diff_lines(base, b"a\nc\nd\n") == (Hunk(1, 1, 1, 0),)
