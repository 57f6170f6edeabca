"""Properties of the weave, over random histories of edits and decisions."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import assume, given, strategies as st

from objstore.text.diff import Hunk, diff_lines
from objstore.text.lines import closed, split_lines
from objstore.weave.conflicts import findings
from objstore.weave.dependents import cascade
from objstore.weave.line_weave import BASE, UnitIndex, Weave
from tests.support.history_diagrams import history
from tests.support.weave_statuses import set_live, units_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from objstore.weave.conflicts import ConflictFinding
    from objstore.weave.runs import Run, WeaveUnit

LINES = [b"", b"a", b"b", b"c", b"\r", b"d\r", b"\x00", b"\xff\xfe"]

line_lists = st.lists(st.sampled_from(LINES), max_size=8)


def joined(lines: Sequence[bytes], *, ended: bool) -> bytes:
    whole = b"".join(line + b"\n" for line in lines)
    return whole if ended else whole[:-1]


contents = st.builds(joined, line_lists, ended=st.booleans())
files = st.one_of(contents, contents, contents, st.none())


def hunks_of(before: bytes | None, after: bytes | None) -> tuple[Hunk, ...]:
    return () if before is None or after is None else diff_lines(before, after)


class Entry(NamedTuple):
    """An edit as it is stored."""

    after: bytes | None
    hunks: tuple[Hunk, ...]
    needs_file: bool  # whether it gives the file a mode, too

    def record(self, weave: Weave) -> None:
        weave.record(self.after, self.hunks, needs_file=self.needs_file)


@dataclass
class Journal:
    """A history as it is stored: the base, then edits and decisions in order."""

    base: bytes | None
    entries: list[Entry | dict[UnitIndex, bool]] = field(default_factory=list)

    def weave(self) -> Weave:
        """Replay everything."""
        weave = Weave(self.base)
        for entry in self.entries:
            if isinstance(entry, dict):
                set_live(weave, entry)
            else:
                entry.record(weave)
        return weave

    @property
    def units(self) -> list[UnitIndex]:
        count = 1
        for entry in self.entries:
            if not isinstance(entry, dict):
                count += 1 + len(entry.hunks)
        return [UnitIndex(unit) for unit in range(1, count)]


def edited(
    draw: Callable[[st.SearchStrategy[Any]], Any],
    content: bytes | None,
    anything: st.SearchStrategy[bytes | None] = files,
) -> bytes | None:
    """Draw the next state of a file: mostly small changes, so that edits overlap; sometimes `anything`."""
    if content is None or draw(st.integers(0, 9)) == 0:
        drawn: bytes | None = draw(anything)
        return drawn
    lines = closed(content).split(b"\n")[:-1]
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(lines)))
        end = draw(st.integers(start, min(start + 3, len(lines))))
        lines[start:end] = draw(st.lists(st.sampled_from(LINES), max_size=2))
    return joined(lines, ended=draw(st.integers(0, 5)) > 0)


@st.composite
def journals(draw: st.DrawFn, *, decisions: bool = True) -> Journal:
    journal = Journal(draw(files))
    weave = Weave(journal.base)
    for _ in range(draw(st.integers(1, 7))):
        if decisions and journal.units and draw(st.booleans()):
            unit = draw(st.sampled_from(journal.units))
            change = {unit: not weave.is_live(unit)}
            if set_live(weave, change):
                set_live(weave, {unit: not change[unit]})
            else:
                journal.entries.append(change)
        else:
            after = edited(draw, weave.text())
            needs_file = weave.text() is not None and after is not None and draw(st.booleans())
            entry = Entry(after, hunks_of(weave.text(), after), needs_file)
            entry.record(weave)
            journal.entries.append(entry)
    return journal


def all_live(weave: Weave, units: Iterable[UnitIndex]) -> None:
    set_live(weave, dict.fromkeys(units, True))


# -- text


@given(journals(decisions=False))
def test_all_live_is_the_last_written(journal: Journal) -> None:
    weave = Weave(journal.base)
    for entry in journal.entries:
        assert not isinstance(entry, dict)
        entry.record(weave)
        assert weave.text() == entry.after
    set_live(weave, dict.fromkeys(journal.units, False))
    all_live(weave, journal.units)
    assert weave.text() == (journal.entries[-1].after if not isinstance(journal.entries[-1], dict) else None)


@given(journals())
def test_the_recorded_text_is_shown_without_conflict(journal: Journal) -> None:
    weave = Weave(journal.base)
    for entry in journal.entries:
        if isinstance(entry, dict):
            assert set_live(weave, entry) == ()
        else:
            entry.record(weave)
            assert weave.text() == entry.after
            assert weave.conflicts() == ()


@given(journals())
def test_all_rejected_is_the_base(journal: Journal) -> None:
    weave = journal.weave()
    assert set_live(weave, dict.fromkeys(journal.units, False)) == ()
    assert weave.text() == journal.base


@given(journals(), st.data())
def test_deciding_twice_is_identity(journal: Journal, data: st.DataObject) -> None:
    weave = journal.weave()
    before = weave.text(), weave.blame(), weave.conflicts()
    unit = data.draw(st.sampled_from(journal.units))
    live = weave.is_live(unit)
    set_live(weave, {unit: not live})
    assert weave.is_live(unit) is not live
    set_live(weave, {unit: live})
    assert (weave.text(), weave.blame(), weave.conflicts()) == before


@given(journals(), st.data())
def test_the_state_is_a_function_of_the_live_units(journal: Journal, data: st.DataObject) -> None:
    one, other = journal.weave(), journal.weave()
    chosen = {unit: data.draw(st.booleans()) for unit in journal.units}
    set_live(one, chosen)
    for unit in data.draw(st.permutations(journal.units)):
        set_live(other, {unit: not other.is_live(unit)})
    for unit in data.draw(st.permutations(journal.units)):
        set_live(other, {unit: chosen[unit]})
    assert (one.text(), one.blame(), one.conflicts()) == (other.text(), other.blame(), other.conflicts())


@given(journals(), st.data())
def test_a_replayed_weave_behaves_as_the_original(journal: Journal, data: st.DataObject) -> None:
    one, other = journal.weave(), journal.weave()
    chosen = {unit: data.draw(st.booleans()) for unit in journal.units}
    set_live(one, chosen)
    set_live(one, {unit: other.is_live(unit) for unit in journal.units})
    after = edited(data.draw, one.text())
    for weave in (one, other):
        weave.record(after, hunks_of(weave.text(), after))
    assert set_live(one, chosen) == set_live(other, chosen)
    assert (one.text(), one.blame()) == (other.text(), other.blame())


@given(journals(), st.data())
def test_a_weave_loaded_from_its_state_behaves_as_the_original(journal: Journal, data: st.DataObject) -> None:
    one = journal.weave()
    other = Weave.from_state(one.state())
    assert other.state() == one.state()
    chosen = {unit: data.draw(st.booleans()) for unit in journal.units}
    live = {unit: one.is_live(unit) for unit in journal.units}
    after = edited(data.draw, one.text())
    for weave in (one, other):
        set_live(weave, chosen)
        set_live(weave, live)
        weave.record(after, hunks_of(weave.text(), after))
    assert other.state() == one.state()
    assert set_live(one, chosen) == set_live(other, chosen)
    assert (one.text(), one.blame()) == (other.text(), other.blame())


# -- independence


@given(contents, st.data())
def test_hunks_of_one_edit_are_independent(before: bytes, data: st.DataObject) -> None:
    after = data.draw(contents)
    hunks = diff_lines(before, after)
    weave = Weave(before)
    whole, *units = weave.record(after, hunks)
    live = [data.draw(st.booleans()) for _ in units]
    assert set_live(weave, dict(zip(units, live, strict=True))) == ()
    old, new = closed(before).split(b"\n")[:-1], closed(after).split(b"\n")[:-1]
    for hunk, on in reversed(list(zip(hunks, live, strict=True))):
        if on:
            old[hunk.old_start : hunk.old_end] = new[hunk.new_start : hunk.new_end]
    assert closed(weave.text() or b"") == joined(old, ended=True)
    assert weave.is_live(whole)


def without_touching(before: bytes, after: bytes, others: Sequence[Hunk]) -> tuple[bytes, list[Hunk]]:
    """Return the change to `after` without the hunks that touch one of `others`: the changed text, and its hunks."""
    lines, new = (closed(text).split(b"\n")[:-1] for text in (before, after))
    kept: list[Hunk] = []
    shift = 0
    for hunk in diff_lines(before, after):
        if all(hunk.old_end < other.old_start or other.old_end < hunk.old_start for other in others):
            start = hunk.old_start + shift
            lines[start : start + hunk.old_count] = new[hunk.new_start : hunk.new_end]
            kept.append(Hunk(hunk.old_start, hunk.old_count, start, hunk.new_count))
            shift += hunk.new_count - hunk.old_count
    ended = after.endswith(b"\n") or lines[-1:] == [b""]  # an empty line without an end is no line
    return joined(lines, ended=ended), kept


@given(contents, st.data())
def test_rejecting_an_edit_is_a_three_way_merge_where_that_is_clean(base: bytes, data: st.DataObject) -> None:
    """Changes separated by a shared line always merge: `middle` to `base`, and `middle` to `last`."""
    middle = edited(data.draw, base, anything=contents) or b""
    back = [Hunk(h.new_start, h.new_count, h.old_start, h.old_count) for h in diff_lines(base, middle)]
    last, on = without_touching(middle, edited(data.draw, middle, anything=contents) or b"", back)
    old, new = closed(base).split(b"\n")[:-1], closed(last).split(b"\n")[:-1]
    changes = sorted(
        [(h.old_start, h.old_end, old[h.new_start : h.new_end]) for h in back]
        + [(h.old_start, h.old_end, new[h.new_start : h.new_end]) for h in on]
    )
    assert all(one[1] < two[0] for one, two in pairwise(changes))
    merged = closed(middle).split(b"\n")[:-1]
    for start, end, lines in reversed(changes):
        merged[start:end] = lines
    weave = Weave(base)
    first = weave.record(middle, diff_lines(base, middle))
    weave.record(last, tuple(on))
    assert set_live(weave, dict.fromkeys(first, False)) == ()
    assert closed(weave.text() or b"") == joined(merged, ended=True)


# -- one place, over and over

WORDS = [b"", b"A\n", b"B\n", b"A\n", b"B\n", b"C\n", b"A\nA\n", b"A\nB\n", b"B\nA\n"]


@st.composite
def places(draw: st.DrawFn) -> Journal:
    """Draw a history in which the text between two lines, or the file, is changed, deleted and reinserted."""
    journal = Journal(b"p\n" + draw(st.sampled_from(WORDS)) + b"q\n")
    weave = Weave(journal.base)
    for _ in range(draw(st.integers(2, 10))):
        if journal.units and draw(st.integers(0, 2)) == 0:
            chosen = draw(st.sets(st.sampled_from(journal.units), min_size=1, max_size=3))
            change = {unit: not weave.is_live(unit) for unit in chosen}
            if set_live(weave, change):
                set_live(weave, {unit: not live for unit, live in change.items()})
            else:
                journal.entries.append(change)
        else:
            whole = b"p\n" + draw(st.sampled_from(WORDS)) + b"q\n"
            after = None if weave.text() is not None and draw(st.integers(0, 9)) == 0 else whole
            entry = Entry(after, hunks_of(weave.text(), after), needs_file=False)
            if after != weave.text():
                entry.record(weave)
                journal.entries.append(entry)
    assume(journal.units)
    return journal


@given(places(), st.booleans(), st.booleans(), st.data())
def test_a_line_added_and_taken_out_again_decides_nothing(
    journal: Journal,
    is_changed: bool,  # noqa: FBT001 - drawn
    is_loaded: bool,  # noqa: FBT001 - drawn
    data: st.DataObject,
) -> None:
    """What a person typed and removed hinders no decision on the rest, and adds nothing to its text."""
    one, other = journal.weave(), journal.weave()
    text = other.text()
    assume(text is not None)
    lines = split_lines(text or b"")
    at = data.draw(st.integers(0, len(lines)))
    for here in [[b"new\n"], *([[b"newer\n"]] if is_changed else []), []]:
        now, after = other.text() or b"", b"".join([*lines[:at], *here, *lines[at:]])
        other.record(after, diff_lines(now, after))
    if is_loaded:
        other = Weave.from_state(other.state())
    live = {unit: one.is_live(unit) for unit in journal.units}
    for _ in range(data.draw(st.integers(1, 5))):
        chosen = data.draw(st.sets(st.sampled_from(journal.units), min_size=1, max_size=3))
        live |= {unit: not live[unit] for unit in chosen}
        assert set_live(one, live) == set_live(other, live)
        assert one.text() == other.text()


def test_a_line_that_goes_and_comes_back_unchanged_is_cached() -> None:
    weave = Weave(b"p\nA\nq\n")
    for text in (b"p\nB\nq\n", b"p\nC\nq\n", b"p\nA\nq\n"):
        weave.record(text, (Hunk(1, 1, 1, 1),))
    assert Weave.from_state(weave.state()).text() == weave.text()


@given(places(), st.data())
def test_conflicts_found_incrementally_are_those_of_a_rebuilt_weave(journal: Journal, data: st.DataObject) -> None:
    weave = journal.weave()
    kept = weave.state()
    live = {unit: weave.is_live(unit) for unit in journal.units}
    for _ in range(data.draw(st.integers(1, 8))):
        chosen = data.draw(st.sets(st.sampled_from(journal.units), min_size=1, max_size=3))
        live |= {unit: not live[unit] for unit in chosen}
        found = set_live(weave, {unit: live[unit] for unit in chosen})
        afresh, taken_up = journal.weave(), Weave.from_state(kept)
        assert found == set_live(afresh, live) == set_live(taken_up, live)
        assert weave.text() == afresh.text() == taken_up.text()
        seen = [(bool(unit.hidden), unit.exposed, unit.return_blocker) for unit in units_of(weave)]
        for unit, (hides, *where) in zip(units_of(weave), seen, strict=True):
            tracks_returns = any(run.deleters for run in unit.inserted) or any(u.undoes is unit for u in unit.shadowed)
            assert hides is is_hidden(unit)
            assert where == ([exposed_runs(unit), return_blocker_of(unit)] if tracks_returns else [0, None])
        for run in {run for unit in units_of(weave) for run in unit.inserted}:
            assert run.live_deleters == tuple(unit for unit in run.deleters if unit.live)
            assert {*run.return_trackers} == {unit for unit in run.deleters if unit.tracks_returns}


@given(journals(), st.data())
def test_cached_findings_equal_those_computed_from_nothing(journal: Journal, data: st.DataObject) -> None:
    assume(journal.units)
    weave = journal.weave()
    for _ in range(data.draw(st.integers(1, 8))):
        chosen = data.draw(st.sets(st.sampled_from(journal.units), min_size=1, max_size=3))
        weave.flip({unit: not weave.is_live(unit) for unit in chosen})
        assert cached_findings(weave) == computed_findings(weave)


def test_cached_findings_of_a_region_rewritten_many_times_equal_computed_ones() -> None:
    """Few texts in turn, so that lines are often reinserted, or deleted in another form."""
    rng = random.Random(5)
    texts = [b"p\nm\nA\nn\nq\n", b"p\nm\nn\nq\n", b"p\nm\nB\nn\nq\n", b"p\nZ\nq\n"]
    for _ in range(150):
        weave = Weave(rng.choice(texts[:2]))
        units = list(weave.record(texts[3], diff_lines(weave.text() or b"", texts[3])))
        for _ in range(25):
            change = {unit: not weave.is_live(unit) for unit in rng.sample(units, rng.randint(1, 2))}
            after = rng.choice([*texts[:2], *texts])
            if rng.random() < 0.6:
                units += weave.record(after, diff_lines(weave.text() or b"", after))
            elif set_live(weave, change):
                set_live(weave, {unit: not live for unit, live in change.items()})
        for _ in range(10):
            weave.flip({unit: not weave.is_live(unit) for unit in rng.sample(units, rng.randint(1, 2))})
            assert cached_findings(weave) == computed_findings(weave)


def cached_findings(weave: Weave) -> dict[WeaveUnit, list[ConflictFinding]]:
    return weave._findings  # noqa: SLF001 - not shown otherwise


def computed_findings(weave: Weave) -> dict[WeaveUnit, list[ConflictFinding]]:
    """Return the findings of each unit without its cached result; the cache is restored afterwards."""
    found: dict[WeaveUnit, list[ConflictFinding]] = {}
    for unit in units_of(weave):
        checked, unit.checked = unit.checked, None
        found[unit] = findings(unit, weave._order)  # noqa: SLF001 - not shown otherwise
        unit.checked = checked
    return {unit: those for unit, those in found.items() if those}


def is_hidden(unit: WeaveUnit) -> bool:
    undone = unit.undoes
    return undone is not None and not undone.live and all(a.live or is_hidden(a) for a in unit.restores)


def exposed_runs(unit: WeaveUnit) -> int:
    return 0 if unit.live else sum(run.shown or return_blocker_of(run.inserter) is not None for run in unit.all_deleted)


def return_blocker_of(unit: WeaveUnit) -> WeaveUnit | None:
    if unit.live and not is_hidden(unit):
        return None
    if exposed_runs(unit):
        return unit
    return unit.undoes if unit.undoes and not unit.undoes.live and return_blocker_of(unit.undoes) else None


@given(st.lists(st.sampled_from([b"", b"A\n", b"A\n", b"B\n"]), min_size=3, max_size=5), st.data())
def test_a_file_deleted_and_written_again_is_decided_on_as_a_new_one(words: list[bytes], data: st.DataObject) -> None:
    """Lines that it had before, even the same ones, are in no conflict with those that it has now."""
    weave = Weave(b"p\nq\n")
    for word in words:
        after = b"p\n" + word + b"q\n"
        weave.record(after, diff_lines(weave.text() or b"", after))
    weave.record(None, ())
    content = b"p\n" + data.draw(st.sampled_from([b"A\n", b"A\nA\n", b"A\nB\n", b"A\nB\nA\n"])) + b"q\n"
    weave.record(content, ())
    fresh = Weave(content)
    units: list[tuple[UnitIndex, UnitIndex]] = []  # the same units of both
    for _ in range(data.draw(st.integers(1, 6))):
        if bool(units) and data.draw(st.booleans()):
            chosen = sorted(data.draw(st.sets(st.sampled_from(units), max_size=3)))
            live = data.draw(st.lists(st.booleans(), min_size=len(chosen), max_size=len(chosen)))
            conflicts, expected = (
                set_live(each, {pair[at]: on for pair, on in zip(chosen, live, strict=True)})
                for at, each in enumerate((weave, fresh))
            )
            assert bool(conflicts) == bool(expected)
            assume(not conflicts)
        else:
            after = b"p\n" + data.draw(st.sampled_from(WORDS)) + b"q\n"
            hunks = diff_lines(fresh.text() or b"", after)
            units += zip(weave.record(after, hunks), fresh.record(after, hunks), strict=True)
        assert weave.text() == fresh.text()


@given(places(), st.data())
def test_the_last_live_unit_on_a_line_decides_whether_it_is_shown(journal: Journal, data: st.DataObject) -> None:
    """Reinserted lines are the same line, which is shown once, or the state is in conflict."""
    weave = journal.weave()
    live = {unit: weave.is_live(unit) for unit in journal.units}
    for _ in range(5):
        chosen = data.draw(st.sets(st.sampled_from(journal.units), max_size=3))
        live |= {unit: not live[unit] for unit in chosen}
        if set_live(weave, live):
            continue
        words: dict[tuple[Run, int], list[tuple[int, bool]]] = {}
        shown: Counter[tuple[Run, int]] = Counter()
        for run in {run for unit in units_of(weave) for run in unit.inserted}:
            assert run.original is None or run.text == run.original.text
            said = [(run.inserter, True), *((unit, False) for unit in run.deleters)]
            line = first_of(run), run.lines
            words.setdefault(line, []).extend((unit.index, says) for unit, says in said if unit.live)
            shown[line] += run.shown
        assert shown == {line: int(max(said, default=(0, False))[1]) for line, said in words.items()}


def first_of(run: Run) -> Run:
    return run if run.original is None else first_of(run.original)


@st.composite
def rewritings(draw: st.DrawFn) -> list[str]:
    """Draw the states of one line: changed, changed back, deleted and reinserted, alone or with its file (`-`)."""
    states, line = ["A"], "A"
    for _ in range(draw(st.integers(2, 8))):
        follow = {"": [line], "-": [line]}.get(states[-1], ["A", "B", "C", "", "", "-"])
        state = draw(st.sampled_from(follow))
        if state != states[-1]:
            states.append(state)
            line = state.strip("-") or line
    return states


@given(rewritings(), st.data())
def test_the_last_change_of_a_line_holds_or_the_decision_is_refused(states: list[str], data: st.DataObject) -> None:
    h = history(*(state if state == "-" else f"p {state} q" for state in states))
    edits = range(1, len(states) - 1)
    assume(edits)
    dead = data.draw(st.sets(st.sampled_from(edits), min_size=1))
    # Where there is no file any more, a line that was deleted in it is not there either.
    holds = {h.text, "-"} if states[-1] == "" else {h.text}
    answer = h.reject(*sorted(dead))
    assert answer in holds or answer.startswith("C: ")


@pytest.mark.parametrize(
    ("states", "dead"),
    [
        (["A", "-", "A", "B", "A", "B"], [1, 3]),
        (["A", "B", "", "B", "A", "C"], [1, 2, 4]),
        (["A", "B", "", "B", "A", ""], [1, 2, 4]),
        (["A", "B", "", "B", "C", "A", ""], [1, 2, 5]),
    ],
)
def test_a_decision_is_refused_if_text_returned_between_two_forms_of_a_line(states: list[str], dead: list[int]) -> None:
    h = history(*(state if state == "-" else f"p {state} q" for state in states))
    assert h.reject(*dead).startswith("C: ")


# -- reading


@given(journals())
def test_blame_covers_every_line(journal: Journal) -> None:
    weave = journal.weave()
    blame = weave.blame()
    assert sum(lines for _, lines in blame) == len(split_lines(weave.text() or b""))
    assert all(lines > 0 and weave.is_live(unit) for unit, lines in blame)
    assert all(one[0] != two[0] for one, two in pairwise(blame))


@given(journals())
def test_unit_lines_agree_with_blame(journal: Journal) -> None:
    weave = journal.weave()
    authors = [unit for unit, lines in weave.blame() for _ in range(lines)]
    for unit in journal.units:
        place = weave.unit_lines(unit)
        shown = [line for line, author in enumerate(authors, 1) if author == unit]
        if shown:
            assert place == (shown[0], shown[-1] - shown[0] + 1)
        else:
            assert place is None or (place[1] == 0 and 1 <= place[0] <= len(authors) + 1)


# -- conflicts


@given(journals(), st.data())
def test_conflicts_name_live_units_and_places(journal: Journal, data: st.DataObject) -> None:
    weave = journal.weave()
    chosen = {unit: data.draw(st.booleans()) for unit in journal.units}
    for conflict in set_live(weave, chosen):
        assert weave.is_live(conflict.unit)
        assert conflict.needs
        assert conflict.unit not in conflict.needs
        assert list(conflict.needs) == sorted(set(conflict.needs))
        # A conflict of the file as a whole has no line.
        first = 1 if conflict.removed or conflict.inserted else 0
        assert first <= conflict.line <= len(split_lines(weave.text() or b"")) + 1


@given(journals(), st.data())
def test_a_cascade_ends_clean_or_changes_nothing(journal: Journal, data: st.DataObject) -> None:
    weave = journal.weave()
    before = weave.text(), weave.conflicts()
    named = data.draw(st.dictionaries(st.sampled_from(journal.units), st.booleans(), min_size=1, max_size=3))
    done = cascade(weave, named)
    if done.blocked:
        assert any(named.values())
        assert not any(weave.is_live(unit) for unit in done.accept_first)
        assert (weave.text(), weave.conflicts()) == before
        assert done.accept_first or not done.rejected
        if done.accept_first:
            ways_out = dict.fromkeys(done.accept_first, True) | dict.fromkeys(done.rejected, False)
            assert ways_out.keys().isdisjoint(named)
            assert set_live(weave, named | ways_out) == ()
    else:
        assert weave.conflicts() == ()
        assert all(weave.is_live(unit) is live for unit, live in named.items())
        assert not any(weave.is_live(unit) for unit in done.rejected)
        assert named.keys().isdisjoint(done.rejected)


# -- size


def test_runs_are_not_lines() -> None:
    """A thousand rewrites of a thousand lines make one run per rewrite."""
    weave = Weave(b"line\n" * 1000)
    for number in range(1000):
        after = b"%d\n" % number * 1000
        weave.record(after, (Hunk(0, 1000, 0, 1000),))
    assert weave.blame() == [(UnitIndex(2000), 1000)]
    assert [unit.index for unit in weave._units if unit and len(unit.inserted) > 1] == [BASE]  # noqa: SLF001 - not shown otherwise


def test_a_long_random_history_keeps_every_law() -> None:
    """Blocks divide, regions span them, and the text is still independent of the order of decisions."""
    rng = random.Random(11)
    lines = [b"%d\n" % number for number in range(600)]
    weave = Weave(b"".join(lines))
    for number in range(600):
        start = rng.randrange(len(lines) + 1)
        lines[start : start + rng.choice([0, 1, 1, 2, 30])] = [b"e%d\n" % number] * rng.choice([0, 1, 1, 2, 25])
        after = b"".join(lines)
        weave.record(after, diff_lines(weave.text() or b"", after))
        assert weave.text() == after
        if number % 200 == 199:
            weave = Weave.from_state(weave.state())
    units = [UnitIndex(unit) for unit in range(1, weave.blame()[-1][0] + 1)]
    last = weave.text()
    for _ in range(3):
        dead = rng.sample(units, len(units) // 3)
        found = set_live(weave, dict.fromkeys(dead, False))
        state = weave.text(), found
        for part in parts(rng.sample(units, len(units))):
            set_live(weave, dict.fromkeys(part, True))
        assert (weave.text(), weave.conflicts()) == (last, ())
        for part in parts(rng.sample(dead, len(dead))):
            set_live(weave, dict.fromkeys(part, False))
        assert (weave.text(), weave.conflicts()) == state
        all_live(weave, units)


def parts(units: list[UnitIndex]) -> list[list[UnitIndex]]:
    return [units[start : start + 50] for start in range(0, len(units), 50)]
