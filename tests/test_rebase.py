"""A change to an older version of a text, carried over: it lands where its lines are now, or is refused."""

from itertools import pairwise

import pytest
from hypothesis import given, reject, settings, strategies as st

from objstore.diff import diff_lines
from objstore.hunks import Hunk, hunks_fit
from objstore.lines import closed, is_closed, split_lines
from objstore.rebase import Clash, Passage, Rebased, rebased
from objstore.values import replace
from objstore.weave import Weave
from tests.verdicts import set_live


def text(picture: str) -> bytes:
    """Return the lines that a picture names, each ended; a final `.` leaves the last one open."""
    lines = picture.split()
    is_open = lines[-1:] == ["."]
    content = "".join(f"{line}\n" for line in lines if line != ".").encode()
    return content[:-1] if is_open else content


def carried(base: bytes, made: bytes, *versions: bytes, compared: bool = False) -> Rebased | Clash:
    steps = [
        Passage(hunks=diff_lines(old, new), after=new, compared=compared) for old, new in pairwise((base, *versions))
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
        pytest.param("a b", "a B .", "a b t", "a B t", id="the change opened a line that is not the last now"),
        pytest.param("a b .", "a b", "a b t .", "a b t .", id="the change ended a line that is not the last now"),
        pytest.param("a b .", "a", "a b t .", "a t .", id="the change deleted the open line, and another is open now"),
        pytest.param("a b", "a n .", "A b", "A n .", id="the last line, and open, is the change's"),
        pytest.param("a b .", "a", "A b .", "A", id="the open line is gone, and what ends is older"),
        pytest.param("a", "a x .", "a x", "a x .", id="both appended the same, the change an open line"),
        pytest.param("a b c", "", "a b c", "", id="all was deleted"),
    ],
)
def test_a_change_lands_where_its_lines_are(base: str, made: str, now: str, result: str | None) -> None:
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
def test_the_same_lines_are_a_clash_that_names_them(
    base: str, made: str, now: str, clash: tuple[int, int, int, int, int]
) -> None:
    hunk, read_start, read_count, start, count = clash
    assert carried(text(base), text(made), text(now)) == Clash(
        hunk=hunk, read_start=read_start, read_count=read_count, start=start, count=count
    )


def test_an_insertion_needs_one_neighbour_however_many_steps_it_took() -> None:
    base, made = text("a b"), text("a x b")
    assert isinstance(carried(base, made, text("A b"), text("A B")), Clash)


def test_a_clash_is_told_where_its_lines_are_at_the_end() -> None:
    found = carried(text("a b c"), text("a B c"), text("a x y c"), text("p q a x y c"))
    assert found == Clash(hunk=1, read_start=2, read_count=1, start=4, count=2)


def test_a_clash_with_what_is_gone_stays_empty_whatever_comes_in_its_place() -> None:
    found = carried(text("a b c"), text("a B c"), text("a c"), text("a x y c"))
    assert found == Clash(hunk=1, read_start=2, read_count=1, start=4, count=0)


def test_pieces_that_touch_are_one_hunk_and_others_are_not() -> None:
    found = carried(text("a b c d e"), text("A b x d y"), text("a b c e"))
    assert found == Rebased(content=text("A b x y"), hunks=(Hunk(0, 1, 0, 1), Hunk(2, 2, 2, 2)))


def test_later_steps_move_a_clash_or_take_it_in() -> None:
    base, made, first = text("a b c d e f"), text("a b C d e f"), text("a b X d e f")
    assert carried(base, made, first, text("a b X d E f g")) == Clash(
        hunk=1, read_start=3, read_count=1, start=3, count=1
    )
    assert carried(base, made, first, text("a Y Z e f")) == Clash(hunk=1, read_start=3, read_count=1, start=2, count=2)
    assert carried(base, made, first, text("a b n X m d e f")) == Clash(
        hunk=1, read_start=3, read_count=1, start=4, count=1
    )


@pytest.mark.parametrize(
    ("base", "made", "later"),
    [
        pytest.param("a x", "A x", ("A x", "a x"), id="taken back"),
        pytest.param("a x", "A x", ("A x", "a y"), id="taken back, and something else"),
        pytest.param("a x", "A x", ("A x", "n A x", "n b x"), id="changed again, further below"),
        pytest.param("a x", "a n x", ("a n x", "a x"), id="an insertion taken back"),
        pytest.param("a b x", "a x", ("a x", "a b x"), id="a deletion taken back"),
        pytest.param("a b x", "a x", ("a x", "a n b x"), id="a deletion taken back, and something put in"),
        pytest.param("a b x", "a x", ("a x", "A b x"), id="a deletion taken back, the line above changed"),
    ],
)
def test_what_was_there_already_and_is_no_more_is_a_clash(base: str, made: str, later: tuple[str, ...]) -> None:
    assert isinstance(carried(text(base), text(made), *map(text, later)), Clash)


@pytest.mark.parametrize(
    ("base", "made", "later"),
    [
        pytest.param("a b c", "a B c", ("a B c", "n A B C m"), id="all around it changed"),
        pytest.param("a b c", "a n b c", ("a n b c", "A n b c", "A n B c"), id="an insertion, its neighbours changed"),
        pytest.param("a b c", "a c", ("a c", "A c", "A C"), id="a deletion, its neighbours changed"),
    ],
)
def test_what_is_there_already_stays_so_whatever_its_neighbours_become(
    base: str, made: str, later: tuple[str, ...]
) -> None:
    assert carried(text(base), text(made), *map(text, later)) == Rebased(content=text(later[-1]), hunks=())


def test_known_steps_tell_equal_lines_apart() -> None:
    base, made, now = text("s s s"), text("s S s"), text("s s")
    step = Passage(hunks=(Hunk(2, 1, 2, 0),), after=now)
    found = rebased(base, made, diff_lines(base, made), [step])
    assert isinstance(found, Rebased)
    assert found.content == text("s S")


@pytest.mark.parametrize(
    ("base", "hunk", "made", "now", "result"),
    [
        pytest.param("x } } e", Hunk(1, 1, 1, 0), "x } e", "x } e", "x } e", id="both removed one of two, the first"),
        pytest.param("x } } e", Hunk(2, 1, 2, 0), "x } e", "x } e", "x } e", id="both removed one of two, the second"),
        pytest.param("a b a b", Hunk(0, 2, 0, 0), "a b", "a b", "a b", id="both removed one of two pairs"),
        pytest.param("a b a b", Hunk(1, 2, 1, 0), "a b", "a b", "a b", id="a pair, cut another way"),
        pytest.param("a _ b", Hunk(1, 0, 1, 1), "a _ _ b", "a _ _ b", "a _ _ b", id="both put one beside it, above"),
        pytest.param("a _ b", Hunk(2, 0, 2, 1), "a _ _ b", "a _ _ b", "a _ _ b", id="both put one beside it, below"),
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
def test_a_comparison_can_not_tell_equal_lines_apart(
    base: str, hunk: Hunk, made: str, now: str, result: str | None
) -> None:
    step = Passage(hunks=diff_lines(text(base), text(now)), after=text(now), compared=True)
    found = rebased(text(base), text(made), [hunk], [step])
    if result is None:
        assert isinstance(found, Clash)
    else:
        assert isinstance(found, Rebased)
        assert found.content == text(result)
        assert hunks_fit(text(now), found.content, found.hunks)


@settings(max_examples=300)
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
        rebased(base, made, diff_lines(base, made), [Passage(hunks=(hunk,), after=now, compared=True)])
        for hunk in hunks
        if hunks_fit(base, now, (hunk,))
    ]
    assert len({each.content if isinstance(each, Rebased) else None for each in found}) == 1


@st.composite
def versions(draw: st.DrawFn, since: bytes, letters: str) -> bytes:
    """Return a text with some lines taken out of `since`, and some put in that no other version has."""
    made: list[bytes] = []
    for line in split_lines(closed(since)):
        if draw(st.integers(0, 4)) == 0:
            made.append(draw(st.sampled_from(letters)).encode() + b"\n")
        if draw(st.integers(0, 3)):
            made.append(line)
    whole = b"".join(made)
    return whole[:-1] if draw(st.booleans()) else whole


@settings(max_examples=300)
@given(st.data())
def test_what_is_carried_over_is_what_the_weave_shows(data: st.DataObject) -> None:
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
    assert shown == found.content
