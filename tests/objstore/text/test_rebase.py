"""Rebasing a change to a later version: it lands where its lines are now, or conflicts."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import given, reject, settings, strategies as st

from objstore.text.diff import diff_lines
from objstore.text.hunks import Hunk, hunks_fit
from objstore.text.lines import closed, is_closed, split_lines
from objstore.text.rebase import RebaseConflict, Rebased, TextStep, compared, rebased
from objstore.values.fastclass import replace
from objstore.weave.line_weave import Weave
from tests.support.weave_statuses import set_live, units_of


def text(picture: str) -> bytes:
    """Return the lines named in a picture, each with a newline; a final `.` removes the last newline."""
    lines = picture.split()
    is_open = lines[-1:] == ["."]
    content = "".join(f"{line}\n" for line in lines if line != ".").encode()
    return content[:-1] if is_open else content


def carried(base: bytes, made: bytes, *versions: bytes, compared: bool = False) -> Rebased | RebaseConflict:
    steps = [
        TextStep(hunks=diff_lines(old, new), after=new, compared=compared) for old, new in pairwise((base, *versions))
    ]
    return rebased(base, made, diff_lines(base, made), steps)


@pytest.mark.parametrize(
    ("base", "made", "now", "result"),
    [
        pytest.param("a b c", "a B c", "a b c", "a B c", id="nothing happened since"),
        pytest.param("a b c", "a B c", "x a b c", "x a B c", id="a line above"),
        pytest.param("a b c", "a B c", "a b c x", "a B c x", id="a line below"),
        pytest.param("a b c d", "a b C d", "A b c d", "A b C d", id="a line changed above"),
        pytest.param("a b c", "a B c", "A b c", "A B c", id="the line directly above changed"),
        pytest.param("a b c", "a B c", "a b C", "a B C", id="the line directly below changed"),
        pytest.param("a b c", "a B c", "A b C", "A B C", id="the lines on both sides changed"),
        pytest.param("a b c", "a c", "a b x c", "a x c", id="a deletion, and a line put below it"),
        pytest.param("a b", "a x b", "A b", "A x b", id="an insertion below a changed line"),
        pytest.param("a b", "a x b", "a B", "a x B", id="an insertion above a changed line"),
        pytest.param("a b c d", "a b c x d", "A b c D", "A b c x D", id="an insertion with its upper neighbour"),
        pytest.param("a b c d", "a x b c d", "A b c D", "A x b c D", id="an insertion with its lower neighbour"),
        pytest.param("a b", "a x b", "a x b", "a x b", id="both inserted the same"),
        pytest.param("a b c", "a B c", "a B c", "a B c", id="both made the same"),
        pytest.param("a b c d", "A b c D", "A b c d", "A b c D", id="one of two hunks is there already"),
        pytest.param("a b c", "x b y", "a c", None, id="the line between two hunks is gone"),
        pytest.param("a b .", "a B .", "a b", "a B", id="they ended the last line"),
        pytest.param("a b", "a b .", "A b", "A b .", id="the change opened the last line"),
        pytest.param("a", "a .", "x a", "x a .", id="the change opened the only line"),
        pytest.param("a b", "a B .", "a b t", "a B t", id="the change opened a line that is not the last now"),
        pytest.param("a b .", "a b", "a b t .", "a b t .", id="the change ended a line that is not the last now"),
        pytest.param("a b .", "a", "a b t .", "a t .", id="the change deleted the open line, and another is open now"),
        pytest.param("a b", "a n .", "A b", "A n .", id="the last line, and open, is the change's"),
        pytest.param("a b .", "a", "A b .", "A", id="the open line is gone, and what ends is older"),
        pytest.param("a", "a x .", "a x", "a x .", id="both appended the same, the change an open line"),
        pytest.param("a b c", "", "a b c", "", id="all was deleted"),
    ],
)
def test_change_is_applied_where_its_lines_are_now(base: str, made: str, now: str, result: str | None) -> None:
    found = carried(text(base), text(made), text(now))
    if result is None:
        result = "x y"  # the pieces touch, and are one hunk
        assert isinstance(found, Rebased)
        assert len(found.hunks) == 1
    assert isinstance(found, Rebased)
    assert found.content == text(result)
    assert hunks_fit(text(now), found.content, found.hunks)


@pytest.mark.parametrize(
    ("base", "made", "now", "clash"),
    [
        pytest.param("a b c", "a B c", "a x c", (1, 2, 1, 2, 1), id="both changed the line"),
        pytest.param("a b c", "a B c", "a c", (1, 2, 1, 2, 0), id="the line is gone"),
        pytest.param("a b c", "a c", "x y z a B c", (1, 2, 1, 5, 1), id="deleted here, changed there"),
        pytest.param("a b c d", "a x d", "a b y c d", (1, 2, 2, 3, 1), id="a line came in the midst"),
        pytest.param("a b", "a x b", "A B", (1, 2, 0, 1, 2), id="an insertion in the midst of changed lines"),
        pytest.param("a b", "a x b", "a y b", (1, 2, 0, 2, 1), id="both inserted at one place"),
        pytest.param("a", "a x", "a y", (1, 2, 0, 2, 1), id="both appended"),
        pytest.param("a b c d", "A b c D", "a b c x", (2, 4, 1, 4, 1), id="the second of two hunks"),
    ],
)
def test_change_of_the_same_lines_is_a_conflict_that_names_them(
    base: str, made: str, now: str, clash: tuple[int, int, int, int, int]
) -> None:
    hunk, read_start, read_count, start, count = clash
    assert carried(text(base), text(made), text(now)) == RebaseConflict(
        hunk=hunk, read_start=read_start, read_count=read_count, start=start, count=count
    )


def test_an_insertion_needs_one_neighbour_however_many_steps_it_took() -> None:
    base, made = text("a b"), text("a x b")
    assert isinstance(carried(base, made, text("A b"), text("A B")), RebaseConflict)


def test_a_conflict_gives_its_lines_in_the_latest_version() -> None:
    found = carried(text("a b c"), text("a B c"), text("a x y c"), text("p q a x y c"))
    assert found == RebaseConflict(hunk=1, read_start=2, read_count=1, start=4, count=2)


def test_a_conflict_with_deleted_lines_stays_empty() -> None:
    found = carried(text("a b c"), text("a B c"), text("a c"), text("a x y c"))
    assert found == RebaseConflict(hunk=1, read_start=2, read_count=1, start=4, count=0)


def test_only_adjacent_pieces_are_one_hunk() -> None:
    found = carried(text("a b c d e"), text("A b x d y"), text("a b c e"))
    assert found == Rebased(content=text("A b x y"), hunks=(Hunk(0, 1, 0, 1), Hunk(2, 2, 2, 2)))


def test_later_steps_shift_or_extend_a_conflict() -> None:
    base, made, first = text("a b c d e f"), text("a b C d e f"), text("a b X d e f")
    assert carried(base, made, first, text("a b X d E f g")) == RebaseConflict(
        hunk=1, read_start=3, read_count=1, start=3, count=1
    )
    assert carried(base, made, first, text("a Y Z e f")) == RebaseConflict(
        hunk=1, read_start=3, read_count=1, start=2, count=2
    )
    assert carried(base, made, first, text("a b n X m d e f")) == RebaseConflict(
        hunk=1, read_start=3, read_count=1, start=4, count=1
    )


@pytest.mark.parametrize(
    ("base", "made", "later"),
    [
        pytest.param("a x", "A x", ("A x", "a x"), id="taken back"),
        pytest.param("a x", "A x", ("A x", "a y"), id="taken back, and something else"),
        pytest.param("a x", "A x", ("A x", "n A x", "n b x"), id="changed again, further below"),
        pytest.param("a x", "A x", ("A x", "A a"), id="what it took out is back next to it"),
        pytest.param("a x", "a n x", ("a n x", "a x"), id="an insertion taken back"),
        pytest.param("a b x", "a x", ("a x", "a b x"), id="a deletion taken back"),
        pytest.param("a b x", "a x", ("a x", "a n b x"), id="a deletion taken back, and something put in"),
        pytest.param("a b x", "a x", ("a x", "A b x"), id="a deletion taken back, the line above changed"),
        pytest.param("a b x", "a x", ("n a b x", "n a x", "n a b"), id="further down, a deletion taken back"),
        pytest.param("a b x y", "a x y", ("b x y", "x y", "b y"), id="further up, a deletion taken back"),
    ],
)
def test_an_applied_change_that_was_reverted_is_a_conflict(base: str, made: str, later: tuple[str, ...]) -> None:
    assert isinstance(carried(text(base), text(made), *map(text, later)), RebaseConflict)


def test_a_step_that_repeats_an_applied_change_may_concern_other_lines() -> None:
    base, made, now = text("a _ _ _ b"), text("a _ _ b"), text("a _ b")
    assert isinstance(carried(base, made, made, now, compared=True), RebaseConflict)


@pytest.mark.parametrize(
    ("base", "made", "later"),
    [
        pytest.param("a b c", "a c", ("A b c", "A c"), id="a deletion, below a line that was changed before"),
        pytest.param("a b c", "a B c", ("a B c", "n A B C m"), id="all around it changed"),
        pytest.param("a b c", "a n b c", ("a n b c", "A n b c", "A n B c"), id="an insertion, its neighbours changed"),
        pytest.param("a b c", "a c", ("a c", "A c", "A C"), id="a deletion, its neighbours changed"),
    ],
)
def test_an_applied_change_stays_applied_when_its_neighbours_change(
    base: str, made: str, later: tuple[str, ...]
) -> None:
    assert carried(text(base), text(made), *map(text, later)) == Rebased(content=text(later[-1]), hunks=())


@pytest.mark.parametrize(
    ("base", "made", "later"),
    [
        pytest.param("a b", "a x b", ("a x b", "a n x m b"), id="an insertion, and lines put in next to it"),
        pytest.param("a b c", "a B c", ("a B c", "B"), id="a replacement, and the lines next to it gone"),
    ],
)
def test_a_change_found_applied_by_comparison_stays_applied(base: str, made: str, later: tuple[str, ...]) -> None:
    found = carried(text(base), text(made), *map(text, later), compared=True)
    assert found == Rebased(content=text(later[-1]), hunks=())


@pytest.mark.parametrize(("base", "made"), [("a b .", "a B ."), ("a b .", "a B"), ("a b", "a b ."), ("a b .", "A b .")])
def test_change_without_steps_is_applied_unchanged(base: str, made: str) -> None:
    found = carried(text(base), text(made))
    assert isinstance(found, Rebased)
    assert found.content == text(made)


def test_known_steps_distinguish_equal_lines() -> None:
    base, made, now = text("s s s"), text("s S s"), text("s s")
    step = TextStep(hunks=(Hunk(2, 1, 2, 0),), after=now)
    found = rebased(base, made, diff_lines(base, made), [step])
    assert isinstance(found, Rebased)
    assert found.content == text("s S")


def test_known_hunks_that_delete_different_lines_are_not_the_same_change() -> None:
    base, now = text("a b a b"), text("a b")
    step = TextStep(hunks=(Hunk(1, 2, 1, 0),), after=now)
    assert isinstance(rebased(base, now, [Hunk(0, 2, 0, 0)], [step]), RebaseConflict)


@pytest.mark.parametrize(
    ("base", "hunk", "made", "now", "result"),
    [
        pytest.param("x } } e", Hunk(1, 1, 1, 0), "x } e", "x } e", "x } e", id="both removed one of two, the first"),
        pytest.param("x } } e", Hunk(2, 1, 2, 0), "x } e", "x } e", "x } e", id="both removed one of two, the second"),
        pytest.param("a b a b", Hunk(0, 2, 0, 0), "a b", "a b", "a b", id="both removed one of two pairs"),
        pytest.param("a b a b", Hunk(1, 2, 1, 0), "a b", "a b", "a b", id="a pair, cut another way"),
        pytest.param("a _ b", Hunk(1, 0, 1, 1), "a _ _ b", "a _ _ b", "a _ _ b", id="both put one next to it, above"),
        pytest.param("a _ b", Hunk(2, 0, 2, 1), "a _ _ b", "a _ _ b", "a _ _ b", id="both put one next to it, below"),
        pytest.param("x } } } e", Hunk(1, 1, 1, 0), "x } } e", "x } e", None, id="one here, two there"),
        pytest.param("x } } e", Hunk(1, 1, 1, 1), "x ) } e", "x } e", None, id="one is changed here, gone there"),
        pytest.param("x } } e", Hunk(2, 0, 2, 1), "x } n } e", "x } e", None, id="put between two, one of them gone"),
        pytest.param("a _ b", Hunk(1, 0, 1, 1), "a n _ b", "a _ _ b", None, id="two insertions, perhaps at one place"),
        pytest.param("x } } e", Hunk(3, 1, 3, 1), "x } } E", "x } e", "x } E", id="the line below"),
        pytest.param("x } } e", Hunk(0, 1, 0, 1), "X } } e", "x } e", "X } e", id="the line above"),
        pytest.param("x } } e", Hunk(1, 0, 1, 1), "x n } } e", "x } e", "x n } e", id="put above all of them"),
        pytest.param("x } } e }", Hunk(4, 1, 4, 0), "x } } e", "x } e }", "x } e", id="an equal line elsewhere"),
    ],
)
def test_comparison_does_not_distinguish_equal_lines(
    base: str, hunk: Hunk, made: str, now: str, result: str | None
) -> None:
    step = TextStep(hunks=diff_lines(text(base), text(now)), after=text(now), compared=True)
    found = rebased(text(base), text(made), [hunk], [step])
    if result is None:
        assert isinstance(found, RebaseConflict)
    else:
        assert isinstance(found, Rebased)
        assert found.content == text(result)
        assert hunks_fit(text(now), found.content, found.hunks)


@pytest.mark.parametrize(
    ("meant", "result"),
    [
        pytest.param(Hunk(2, 1, 2, 0), "k x } e", id="the one that the comparison named as well"),
        pytest.param(Hunk(3, 1, 3, 0), "k x } e", id="the other"),
        pytest.param(Hunk(1, 1, 1, 0), "k } e", id="the line above"),
        pytest.param(Hunk(2, 2, 2, 0), None, id="both"),
        pytest.param(Hunk(3, 0, 3, 1), None, id="one more"),
    ],
)
def test_change_found_by_comparison_does_not_distinguish_equal_lines(meant: Hunk, result: str | None) -> None:
    base, made = text("k x } } e"), text("k x } e")
    lines = split_lines(base)
    now = b"".join([*lines[: meant.old_start], b"}\n" * meant.new_count, *lines[meant.old_end :]])
    found = rebased(base, made, diff_lines(base, made), [TextStep(hunks=(meant,), after=now)], is_compared=True)
    assert (found.content if isinstance(found, Rebased) else None) == (None if result is None else text(result))


def test_an_insertion_next_to_an_equal_line_has_it_as_neighbour() -> None:
    base, made, now = text("a _ b"), text("a _ _ b"), text("A _ B")
    step = TextStep(hunks=diff_lines(base, now), after=now)
    found = rebased(base, made, diff_lines(base, made), [step], is_compared=True)
    assert isinstance(found, Rebased)
    assert found.content == text("A _ _ B")


def test_hunks_of_a_comparison_that_slide_over_the_same_lines_are_one() -> None:
    base, made = text("b a b"), text("a a a")
    hunks = diff_lines(base, made)
    assert len(hunks) == 2
    assert rebased(base, made, hunks, compared(base, made), is_compared=True) == Rebased(content=made, hunks=())
    assert isinstance(rebased(base, text("a a b"), hunks[:1], compared(base, made)), RebaseConflict)


@pytest.mark.parametrize(
    ("base", "hunks", "made", "now"),
    [
        pytest.param("x } } } e", [Hunk(1, 1, 1, 0), Hunk(3, 1, 2, 0)], "x } e", "x } } e", id="deletions"),
        pytest.param("x } } e", [Hunk(1, 0, 1, 1), Hunk(2, 0, 3, 1)], "x } } } } e", "x } } } e", id="insertions"),
    ],
)
def test_one_step_accounts_for_one_part_of_a_change(base: str, hunks: list[Hunk], made: str, now: str) -> None:
    step = TextStep(hunks=diff_lines(text(base), text(now)), after=text(now), compared=True)
    assert isinstance(rebased(text(base), text(made), hunks, [step]), RebaseConflict)


@pytest.mark.parametrize(
    ("base", "made", "now", "meant"),
    [
        pytest.param("s s s", "s", "s s", (Hunk(0, 2, 0, 0), Hunk(3, 0, 1, 1)), id="more below"),
        pytest.param("s s s", "s", "s s", (Hunk(0, 0, 0, 1), Hunk(1, 2, 2, 0)), id="more above"),
        pytest.param("s s", "s", "s s s", (Hunk(0, 1, 0, 0), Hunk(2, 0, 1, 2)), id="more than went"),
    ],
)
def test_step_that_makes_the_change_and_more_is_a_conflict(
    base: str, made: str, now: str, meant: tuple[Hunk, ...]
) -> None:
    change = text(base), text(made), diff_lines(text(base), text(made))
    at_once = TextStep(hunks=meant, after=text(now))
    assert isinstance(rebased(*change, [at_once], is_compared=True), RebaseConflict)
    out = next(hunk for hunk in meant if hunk.old_count)
    more = next(hunk for hunk in meant if hunk.new_count)
    alone = TextStep(hunks=(Hunk(out.old_start, out.old_count, out.old_start, 0),), after=text(made))
    line = 0 if more.old_start <= out.old_start else more.new_start
    then = TextStep(hunks=(Hunk(line, 0, line, more.new_count),), after=text(now))
    assert isinstance(rebased(*change, [alone, then], is_compared=True), RebaseConflict)


def test_a_step_that_also_edits_directly_below_does_not_conflict() -> None:
    change = text("s s t"), text("s t"), [Hunk(0, 1, 0, 0)]
    at_once = TextStep(hunks=(Hunk(0, 1, 0, 0), Hunk(2, 1, 1, 1)), after=text("s u"))
    alone = TextStep(hunks=(Hunk(0, 1, 0, 0),), after=text("s t"))
    then = TextStep(hunks=(Hunk(1, 1, 1, 1),), after=text("s u"))
    found = rebased(*change, [at_once], is_compared=True)
    assert isinstance(found, Rebased)
    assert found.content == text("s u")
    assert rebased(*change, [alone, then], is_compared=True) == found


def test_only_the_parts_that_no_step_made_are_applied() -> None:
    base, made, now = text("s s"), text("s s s"), text("s")
    step = TextStep(hunks=diff_lines(base, now), after=now, compared=True)
    found = rebased(base, made, [Hunk(0, 1, 0, 0), Hunk(2, 0, 1, 2)], [step])
    assert isinstance(found, Rebased)
    assert found.content == made


@pytest.mark.parametrize("line", [1, 2])
@pytest.mark.parametrize("fewer", ["a _ b", "x } e"])
def test_reverting_the_same_change_conflicts_whichever_equal_line_it_names(line: int, fewer: str) -> None:
    base = text(fewer)
    made = base.replace(b"_\n", b"_\n_\n").replace(b"}\n", b"}\n}\n")
    hunk, back = Hunk(1, 0, 1, 1), Hunk(line, 1, line, 0)
    if b"}" in base:
        base, made, hunk, back = made, base, Hunk(1, 1, 1, 0), Hunk(line, 0, line, 1)
    there = TextStep(hunks=diff_lines(base, made), after=made, compared=True)
    assert rebased(base, made, [hunk], [there]) == Rebased(content=made, hunks=())
    assert isinstance(rebased(base, made, [hunk], [there, TextStep(hunks=(back,), after=base)]), RebaseConflict)


@pytest.mark.parametrize(
    ("hunk", "made", "steps"),
    [
        pytest.param(Hunk(1, 1, 1, 0), "a b", [("a _ _ b", Hunk(2, 0, 2, 1)), ("a _ b", None)], id="a deletion"),
        pytest.param(Hunk(1, 0, 1, 1), "a _ _ b", [("a b", Hunk(1, 1, 1, 0)), ("a _ b", None)], id="an insertion"),
        pytest.param(Hunk(1, 0, 1, 1), "a _ _ b", [("a n b", Hunk(1, 1, 1, 1)), ("a _ n b", None)], id="a replacement"),
    ],
)
def test_a_step_on_top_of_another_may_not_be_the_same_change(
    hunk: Hunk, made: str, steps: list[tuple[str, Hunk | None]]
) -> None:
    before, text_steps = text("a _ b"), []
    for after, meant in steps:
        hunks = (meant,) if meant else diff_lines(before, text(after))
        text_steps.append(TextStep(hunks=hunks, after=text(after), compared=meant is None))
        before = text(after)
    assert isinstance(rebased(text("a _ b"), text(made), [hunk], text_steps), RebaseConflict)


def test_a_step_may_delete_any_of_the_equal_lines_that_another_inserted() -> None:
    # A comparison says "b x" above "b"; it may have been "x b" below.
    steps = text("z b x b b"), text("z b x b")
    assert isinstance(carried(text("z b b"), text("z b"), *steps, compared=True), RebaseConflict)


@pytest.mark.parametrize("line", [1, 2])
def test_the_final_newline_follows_the_change_whichever_equal_line_it_deleted(line: int) -> None:
    base, made, now = text("c d d"), text("c d ."), text("u c d")
    step = TextStep(hunks=diff_lines(base, now), after=now, compared=True)
    found = rebased(base, made, [Hunk(line, 1, line, 0)], [step])
    assert isinstance(found, Rebased)
    assert found.content == text("u c d .")


@pytest.mark.parametrize(
    ("base", "hunk", "made", "now", "result"),
    [
        pytest.param("} }", Hunk(0, 2, 0, 1), "}", "}", "}", id="all lines"),
        pytest.param("x } } .", Hunk(1, 2, 1, 1), "x } .", "x }", "x }", id="the change leaves the end as it was"),
        pytest.param("x } }", Hunk(1, 2, 1, 1), "x } .", "x }", "x } .", id="the change opens it"),
    ],
)
def test_hunks_with_unchanged_lines_are_rebased(base: str, hunk: Hunk, made: str, now: str, result: str) -> None:
    step = TextStep(hunks=diff_lines(text(base), text(now)), after=text(now), compared=True)
    found = rebased(text(base), text(made), [hunk], [step])
    assert isinstance(found, Rebased)
    assert found.content == text(result)


def test_an_insertion_between_two_deleted_lines_conflicts() -> None:
    steps = text("a d g b"), text("a d u g b")
    assert carried(text("a d f g b"), text("a f b"), *steps) == RebaseConflict(
        hunk=2, read_start=4, read_count=1, start=3, count=1
    )
    assert isinstance(carried(text("a d f g b"), text("a f g b"), *steps), Rebased)
    later = text("a f d G b"), text("a f G b"), text("a f u G b")
    assert isinstance(carried(text("a f d g b"), text("a d G b"), *later), Rebased)


@settings(max_examples=settings().max_examples * 6)
@given(st.data())
def test_which_of_equal_lines_a_comparison_names_makes_no_difference(data: st.DataObject) -> None:
    lines = data.draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=8))
    count = data.draw(st.integers(1, len(lines)))
    start = data.draw(st.integers(0, len(lines) - count))
    base, now = text(" ".join(lines)), text(" ".join(lines[:start] + lines[start + count :]))
    hunks = [Hunk(at, count, at, 0) for at in range(len(lines) - count + 1)]
    if data.draw(st.booleans()):
        base, now = now, base
        hunks = [Hunk(hunk.new_start, 0, hunk.old_start, count) for hunk in hunks]
    made = data.draw(st.one_of(versions(base, "abm"), st.just(now)))
    found = [
        rebased(base, made, diff_lines(base, made), [TextStep(hunks=(hunk,), after=now, compared=True)])
        for hunk in hunks
        if hunks_fit(base, now, (hunk,))
    ]
    assert len({each.content if isinstance(each, Rebased) else None for each in found}) == 1


@st.composite
def versions(draw: st.DrawFn, since: bytes, letters: str) -> bytes:
    """Return `since` with some lines deleted, and some inserted that no other version has."""
    made: list[bytes] = []
    for line in split_lines(closed(since)):
        if draw(st.integers(0, 4)) == 0:
            made.append(draw(st.sampled_from(letters)).encode() + b"\n")
        if draw(st.integers(0, 3)):
            made.append(line)
    whole = b"".join(made)
    return whole[:-1] if draw(st.booleans()) else whole


@settings(max_examples=settings().max_examples * 6)
@given(st.data())
def test_rebase_agrees_with_the_weave(data: st.DataObject) -> None:
    base = text(" ".join(data.draw(st.lists(st.sampled_from("abc"), max_size=8))))
    made = data.draw(versions(base, "mn"))
    steps = [base]
    for letters in data.draw(st.sampled_from(["", "t", "tu"])):
        steps.append(data.draw(versions(steps[-1], letters)))
    found = carried(base, made, *steps[1:])
    if not isinstance(found, Rebased):
        reject()
    weave = Weave(base)
    units = [unit for old, new in pairwise(steps) for unit in weave.record(new, diff_lines(old, new))]
    set_live(weave, dict.fromkeys(units, False))
    weave.record(made, diff_lines(base, made))
    conflicts = set_live(weave, dict.fromkeys(units, True))
    shown = weave.text()
    assert shown is not None
    assert hunks_fit(steps[-1], found.content, found.hunks)
    assert conflicts == ()
    hunks = diff_lines(base, made)
    rewrites_last = bool(hunks) and hunks[-1].old_count > 0 and hunks[-1].new_end == len(split_lines(made))
    if rewrites_last and is_closed(made) is is_closed(base) is not is_closed(steps[-1]):
        # Here the change leaves the end as they made it; to the weave the line is the change's with its end.
        shown, found = closed(shown), replace(found, content=closed(found.content))
    if not all(unit.ending[0].shown for unit in units_of(weave) if unit.sets_final_newline):
        # The line of which one side said how it ends is gone by the other: here its word goes with it, while to the
        # weave it still holds for the text.
        shown, found = closed(shown), replace(found, content=closed(found.content))
    assert shown == found.content


NewChunk: TypeAlias = tuple[int, int, str]
"""Where lines give way, how many, and the letters that take their place."""

Line: TypeAlias = tuple[str, str]
"""Of a line that is followed from version to version: whose it is, and its letter."""


@st.composite
def cuts(draw: st.DrawFn, lines: list[Line], letters: str) -> list[NewChunk]:
    """Return one or two replacements that do not touch, each of which changes its ends."""
    found: list[NewChunk] = []
    at = 0
    for _ in range(draw(st.integers(1, 2))):
        if at > len(lines):
            break
        start = draw(st.integers(at, len(lines)))
        count = draw(st.integers(0, min(2, len(lines) - start)))
        put_in = draw(st.text(letters, max_size=2))
        taken = "".join(letter for _, letter in lines[start : start + count])
        if taken[:1] != put_in[:1] and taken[-1:] != put_in[-1:]:
            found.append((start, count, put_in))
            at = start + count + 1
    return found


def made_of(lines: list[Line], found: list[NewChunk], whose: str) -> tuple[list[Line], list[Hunk]]:
    """Return the lines after some replacements, and the hunks that lead there."""
    made: list[Line] = []
    hunks: list[Hunk] = []
    at = 0
    for start, count, letters in found:
        made += lines[at:start]
        hunks.append(Hunk(start, count, len(made), len(letters)))
        made += [(whose, letter) for letter in letters]
        at = start + count
    return made + lines[at:], hunks


def as_compared(lines: list[Line], after: list[Line], hunks: Iterable[Hunk], whose: str) -> list[Line]:
    """Return the lines after a change with the origins that a comparison implies."""
    found: list[Line] = []
    at = 0
    for hunk in hunks:
        found += lines[at : hunk.old_start]
        found += [(whose, letter) for _, letter in after[hunk.new_start : hunk.new_end]]
        at = hunk.old_end
    return found + lines[at:]


def text_of_letters(lines: list[Line]) -> bytes:
    return "".join(f"{letter}\n" for _, letter in lines).encode()


def letters_of(lines: Iterable[Line]) -> Counter[str]:
    return Counter(letter for _, letter in lines)


def test_lines_deleted_next_to_a_common_insertion_may_be_the_inserted_ones() -> None:
    # "a" stood below "b a", which a comparison takes for "b" above it and the change's own "a b" below.
    base, first, last = b"a\n", b"b\na\na\nb\n", b"a\nb\n"
    text_steps = (*compared(base, first), TextStep(hunks=(Hunk(0, 2, 0, 0),), after=last))
    assert isinstance(rebased(base, b"a\na\nb\n", (Hunk(1, 0, 1, 2),), text_steps), RebaseConflict)


@settings(max_examples=settings().max_examples * 4)
@given(st.data())
def test_rebase_keeps_the_changes_of_both_sides(data: st.DataObject) -> None:
    """Each line's origin is tracked, although the lines are equal, and although half the hunks come from comparison."""
    letters = data.draw(st.text("ab", min_size=1, max_size=6))
    base: list[Line] = [(f"base {number}", letter) for number, letter in enumerate(letters)]
    expected = data.draw(cuts(base, "abm"))
    made, hunks = made_of(base, expected, "change")
    is_compared = data.draw(st.booleans())
    if is_compared:
        hunks = list(diff_lines(text_of_letters(base), text_of_letters(made)))
        made = as_compared(base, made, hunks, "change")
    text_steps, now = [], base
    for _ in range(data.draw(st.integers(1, 3))):
        after, meant = made_of(now, data.draw(cuts(now, "abt")), "step")
        is_guessed = data.draw(st.booleans())
        found_hunks = diff_lines(text_of_letters(now), text_of_letters(after)) if is_guessed else tuple(meant)
        text_steps.append(TextStep(hunks=found_hunks, after=text_of_letters(after), compared=is_guessed))
        now = as_compared(now, after, found_hunks, "step") if is_guessed else after
    found = rebased(text_of_letters(base), text_of_letters(made), hunks, text_steps, is_compared=is_compared)
    if not isinstance(found, Rebased):
        reject()
    assert hunks_fit(text_of_letters(now), found.content, found.hunks)
    had, have = letters_of(base), Counter(found.content.decode().replace("\n", ""))
    ours_out, theirs_out = letters_of(set(base) - set(made)), letters_of(set(base) - set(now))
    ours_in = letters_of(line for line in made if line[0] == "change")
    theirs_in = letters_of(line for line in now if line[0] == "step")
    for letter in "abmt":
        most = had[letter] + ours_in[letter] + theirs_in[letter] - max(ours_out[letter], theirs_out[letter])
        least = had[letter] - ours_out[letter] - theirs_out[letter] + max(ours_in[letter], theirs_in[letter])
        assert least <= have[letter] <= most


@settings(max_examples=settings().max_examples * 3)
@given(st.data())
def test_equal_changes_of_a_run_of_equal_lines_are_made_once_or_refused(data: st.DataObject) -> None:
    """In a run of equal lines, at least one side doesn't know which lines it deleted or where it inserted others."""
    count = data.draw(st.integers(1, 5))
    run: list[Line] = [(f"base {number}", "s") for number in range(count)]

    def of_run() -> list[NewChunk]:
        if data.draw(st.booleans()):
            return data.draw(cuts(run, "s").filter(bool))
        return [(data.draw(st.integers(0, count)), 0, "s" * data.draw(st.integers(1, 3)))]

    above, below = data.draw(st.sampled_from(["", "x\n"])), data.draw(st.sampled_from(["", "e\n"]))
    (made, ours), (now, theirs) = made_of(run, of_run(), "change"), made_of(run, of_run(), "step")
    if len(made) == count or len(now) == count:
        reject()
    whole, expected, after = (above.encode() + b"s\n" * len(lines) + below.encode() for lines in (run, made, now))
    shift = bool(above)
    hunks = [Hunk(old + shift, out, new + shift, put) for old, out, new, put in ours]
    step = [Hunk(old + shift, out, new + shift, put) for old, out, new, put in theirs]
    is_change, is_step = data.draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    if is_change:
        hunks = list(diff_lines(whole, expected))
    if is_step:
        step = list(diff_lines(whole, after))
    passage = TextStep(hunks=tuple(step), after=after, compared=is_step)
    found = rebased(whole, expected, hunks, [passage], is_compared=is_change)
    ours_more, theirs_more = len(made) - count, len(now) - count
    if ours_more == theirs_more and len(hunks) == len(step) == 1:
        assert found == Rebased(content=after, hunks=())
    elif isinstance(found, Rebased):
        sound = set[int]()
        if (ours_more > 0) is not (theirs_more > 0):  # one put in next to what the other took out of
            sound.add(count + ours_more + theirs_more)
        if len(hunks) > 1 and theirs_more in [hunk.new_count - hunk.old_count for hunk in hunks]:
            sound.add(len(made))  # what the step did is one part of the change
        assert found.content.count(b"s") in sound
