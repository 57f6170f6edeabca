"""The text when some of its edits are rejected, as pictures (see `history_diagrams`)."""

from __future__ import annotations

import pytest

from objstore.model.basic_types import ConflictKind
from objstore.text.diff import Hunk, diff_lines
from objstore.weave.dependents import Cascade, cascade
from objstore.weave.line_weave import BASE, UnitIndex, Weave, WeaveConflict
from tests.support.history_diagrams import History, history
from tests.support.weave_statuses import set_live

# -- the table of answers


def test_rejecting_the_first_of_two_inverse_changes_leaves_the_text_unchanged() -> None:
    assert history("p A q", "p B q", "p A q").reject(1) == "p A q"


def test_rejecting_a_deletion_does_not_duplicate_reinserted_text() -> None:
    assert history("p X q", "p q", "p X q").reject(1) == "p X q"


@pytest.mark.parametrize("states", [("a B c d", "a B C d"), ("a b C d", "a B C d")])
def test_adjacent_lines_are_independent(states: tuple[str, str]) -> None:
    for edit in (1, 2):
        changed = "a B c d" if (states[0] == "a B c d") is (edit == 2) else "a b C d"
        assert history("a b c d", *states).reject(edit) == changed


@pytest.mark.parametrize("both", ["p A B q", "p B A q"])
def test_an_insertion_next_to_a_rejected_one_keeps_its_place(both: str) -> None:
    assert history("p q", "p A q", both).reject(1) == "p B q"


def test_an_insertion_next_to_a_replaced_line_keeps_its_side() -> None:
    assert history("X", "Y", "N Y").reject(1) == "N X"
    assert history("X", "Y", "Y N").reject(1) == "X N"
    # Whoever put in the lines that were replaced.
    assert history("p q", "p X q", "Y", "N Y").reject(2) == "N p X q"
    assert history("p q", "p X q", "Y", "Y N").reject(2) == "p X q N"


def test_an_insertion_where_text_was_deleted_needs_the_deletion() -> None:
    assert history("p X q", "p q", "p N q").reject(1) == "C: 2 needs 1"


def test_a_change_inside_an_inserted_block_needs_the_block() -> None:
    assert history("p q", "p a b c q", "p a B c q").reject(1) == "C: 2 needs 1"
    assert history("p q", "p a b c q", "p a N b c q").reject(1) == "C: 2 needs 1"


def test_a_block_inserted_in_a_region_deleted_later_stays_deleted() -> None:
    h = history("p a b q", "p a N b q", "p q")
    assert h.reject(1) == "p q"
    assert h.reject(2) == "p a b q"
    assert h.accept(1) == "p a N b q"


def test_an_edit_of_a_rewrite_needs_the_rewrite() -> None:
    assert history("a b c", "a B c", "x y z", "x Y z").reject(2) == "C: 3 needs 2"


def test_two_independent_changes_of_one_line_conflict() -> None:
    h = history("p a q", "p A q")
    assert h.reject(1) == "p a q"
    assert h.then("p B q").accept(1) == "C: 1 needs 2, 2 needs 1"


def test_added_final_newline_is_needed_by_lines_after_it() -> None:
    h = history("p~", "p", "p q")
    assert h.reject(1) == "p q"
    assert h.reject(2) == "p~"
    assert h.accept(1) == "p"


# -- further awkward histories


def test_deleting_every_line_is_not_deleting_the_file() -> None:
    h = history("a b", "", "n")
    assert h.reject(2) == ""
    assert h.reject(1) == "a b"
    assert history("a b", "-").reject(1) == "a b"


def test_a_created_file_is_gone_without_its_creation() -> None:
    h = history("-", "a b")
    assert h.reject(1) == "-"
    assert h.accept(1) == "a b"
    assert h.then("a N b").reject(1) == "C: 2 needs 1"
    assert history("-", "").reject(1) == "-"


def test_deleted_file_stays_deleted_when_earlier_edits_are_decided() -> None:
    h = history("a b c", "a B c", "a B c d", "-")
    assert h.reject(1) == "-"
    assert h.reject(2) == "-"
    assert h.reject(3) == "a b c"
    assert h.accept(1) == "a B c"
    assert h.accept(2) == "a B c d"


def test_a_file_created_again_needs_the_deletion_of_the_old_one() -> None:
    h = history("a b", "-", "x y")
    assert h.reject(1) == "C: 2 needs 1"
    assert h.reject(2) == "-"
    assert h.reject(1) == "a b"


def test_a_file_that_a_live_edit_deleted_does_not_come_back_in_an_older_form() -> None:
    h = history("a b", "-", "x y", "-")
    assert h.reject(2) == "-"
    assert h.reject(1) == "C: 3 needs 1"
    assert h.accept(2) == "-"
    assert h.reject(1, 2) == "C: 3 needs 1"
    assert h.reject(1, 2, 3) == "a b"
    assert h.accept(1, 3) == "-"
    again = history("a b", "-", "a b", "-")
    assert [again.reject(1, 2), again.reject(1)] == ["-", "-"]


def test_a_file_created_again_needs_no_deletion_that_had_been_rejected() -> None:
    h = history("a b", "-")
    h.reject(1)
    h.then("-", "N")
    assert h.reject(2) == "C: 3 needs 2"


def test_a_deleted_file_needs_the_creation_before_it_to_stay_rejected() -> None:
    h = history("-", "a b")
    assert h.reject(1) == "-"
    h.then("x y", "-")
    assert h.reject(2) == "-"
    assert h.accept(1) == "C: 3 needs 1"
    assert h.reject(3) == "-"
    assert h.accept(1) == "a b"


def test_a_file_created_again_as_it_was_exists_once() -> None:
    h = history("a b~", "-", "a b~")
    assert h.reject(1) == "a b~"
    assert h.accept(1) == "a b~"


def test_a_file_created_again_exists_without_the_first_creation_and_the_deletion() -> None:
    h = history("-", "a b", "-", "a b")
    assert h.reject(2) == "a b"
    assert h.reject(1) == "a b"
    assert h.reject(3) == "-"
    assert h.accept(2, 3) == "a b"


def test_accepting_an_edit_of_a_text_deleted_twice_over_shows_nothing() -> None:
    h = history("a b", "a b c", "")
    assert h.reject(1) == ""
    assert h.then("-").accept(1) == "-"


def test_reinserted_text_keeps_the_newline_that_it_wrote() -> None:
    h = history("p a~", "p b", "p a")
    assert h.reject(1) == "p a"
    assert h.reject(2) == "p a~"


def test_every_undo_of_a_chain_steps_back_on_its_own() -> None:
    h = history("p A q", "p B q", "p A q", "p B q", "p A q")
    assert h.reject(3) == "p A q"
    assert h.reject(1) == "p A q"
    assert h.accept(3, 1) == "p A q"


def test_deleting_what_was_changed_back_deletes_the_line_in_its_first_form_too() -> None:
    assert history("p A q", "p B q", "p A q", "p q").reject(1) == "p q"


def test_reinserting_a_part_of_deleted_text_undoes_nothing() -> None:
    assert history("p A q", "p B C q", "p A C q").reject(1) == "C: 2 needs 1"


def test_an_edit_inside_reinserted_text_needs_the_deletion_of_the_old_text() -> None:
    assert history("p a b q", "p X q", "p a b q", "p a N b q").reject(1) == "C: 3 needs 1"


def test_a_deletion_of_reinserted_text_is_excused_if_the_old_text_is_gone_too() -> None:
    """A deletion is; what put other text in its place is not."""
    deleted, replaced = (history("p A q", "p B q", "p A q", last) for last in ("p q", "p C q"))
    for h in (deleted, replaced):
        assert h.reject(3, 1) == "p A q"
        h.then("p q")
    assert deleted.accept(3) == "p q"
    assert replaced.accept(3) == "C: 3 needs 4"


def test_reinserting_a_line_undoes_its_live_deletion() -> None:
    h = history("p X q", "p q")
    assert h.reject(1) == "p X q"
    h.then("p q", "p X q")
    assert h.reject(2) == "p X q"


def test_undoing_a_deletion_need_not_restore_lines_that_are_gone_anyway() -> None:
    h = history("p q", "p a q", "p a b q", "p q")
    assert h.reject(1) == "p q"
    h.then("p b q")
    assert h.reject(3) == "p b q"


def test_reinserted_text_is_hidden_only_for_the_same_line() -> None:
    """Otherwise the line would be gone although an edit that inserted it is live."""
    h = history("p q", "p X q", "p Y q", "p X q")
    assert h.reject(2) == "p X q"
    assert h.accept(2) == "p X q"
    assert h.reject(1, 2) == "C: 3 needs 2"


def test_line_changed_back_twice_shows_its_first_form_without_the_changes() -> None:
    h = history("p A q", "p B q", "p A q", "p B q", "p A q")
    assert h.reject(1, 2, 3) == "p A q"
    assert h.accept(2) == "p A q"
    assert h.reject(4) == "p A q"


def test_a_reinserted_line_stays_when_another_edit_deletes_its_original() -> None:
    h = history("p X q", "p q")
    h.reject(1)
    h.then("p q", "p X q")
    assert h.accept(1) == "p X q"
    assert h.reject(2) == "C: 3 needs 1"


@pytest.mark.parametrize("between", ["p q", "p Y q"])
def test_a_hidden_reinserted_line_is_kept_unless_a_newer_edit_deletes_it(between: str) -> None:
    h = history("p X q", "p q")
    h.reject(1)
    h.then(between, "p X q")
    assert h.reject(2) == "p X q"
    assert h.accept(1) == "C: 3 needs 1"
    assert h.then("p q").accept(1) == "p q"
    assert h.reject(4) == "C: 3 needs 1"
    assert h.reject(1, 4) == "p X q"


def test_an_insertion_above_the_rest_of_a_replacement_is_below_its_deleted_part() -> None:
    assert history("p X q", "p Y Z q", "p Z q", "p N Z q").reject(2) == "C: 3 needs 2"


def test_undoing_is_seen_through_older_hidden_text() -> None:
    assert history("p X q", "p Y q", "p q", "p Y q").reject(2) == "p Y q"


def test_an_insertion_whose_neighbours_are_both_gone_conflicts() -> None:
    h = history("a b", "a x b", "a x y b", "a x n y b")
    assert h.reject(1) == "a n y b"
    assert h.reject(2) == "C: 3 needs 1, 3 needs 2"


def test_a_deletion_of_inserted_text_has_no_effect_without_it() -> None:
    h = history("p q", "p X q", "p q")
    assert h.reject(1) == "p q"
    assert h.reject(2) == "p q"
    assert h.accept(1) == "p X q"


def test_a_deletion_of_a_replacement_needs_it() -> None:
    assert history("p X q", "p Y q", "p q").reject(1) == "C: 2 needs 1"


@pytest.mark.parametrize(
    ("states", "rejected", "answer"),
    [
        (("B", "C", ""), (1,), "C: 2 needs 1"),
        (("B", "C", ""), (2,), "C: 3 needs 2"),
        (("B", "C", ""), (1, 2), "C: 3 needs 2"),
        (("B", "C", "D", ""), (2, 3), "C: 4 needs 3"),
        (("B", "C", "D", ""), (1, 2, 3), "C: 4 needs 3"),
        (("B", "A", ""), (1,), "p q"),
        (("B", "A", ""), (2,), "C: 3 needs 2"),
        (("B", "A", ""), (1, 2), "p q"),
        (("", "A", ""), (1,), "p q"),
        (("", "A", ""), (2,), "p q"),
        (("", "A", ""), (1, 2), "p q"),
        (("B", "A", "C", ""), (1, 3), "C: 4 needs 3"),
        (("B C", "C", "D", ""), (1, 2, 3), "C: 4 needs 3"),
        (("B", "C", "D", "", "E"), (2, 3), "C: 4 needs 3, 5 needs 2"),
    ],
)
def test_text_deleted_by_a_live_edit_does_not_return(
    states: tuple[str, ...], rejected: tuple[int, ...], answer: str
) -> None:
    """A line between p and q is rewritten and deleted, and edits under the deletion are rejected together."""
    h = history("p A q", *(f"p {state} q" for state in states))
    assert h.reject(*rejected) == answer
    deletion = h.edits[states.index("", 1) + 1][1]
    done = cascade(h.weave, {unit: False for name in rejected for unit in h.units(name)})
    assert (deletion in done.rejected, done.blocked) == (answer != "p q", ())


def test_a_line_of_a_block_that_a_live_edit_deleted_stays_deleted() -> None:
    h = history("p a b c q", "p A B C q", "p X B Z q", "p B q", "p B N q")
    assert h.reject(1, "2:1") == "C: 2 needs 1, 3 needs 2"
    assert h.reject(1, 2, 4) == "C: 3 needs 2"
    assert h.reject("2:1") == "C: 3 needs 2"
    assert h.reject(1, 2, 3, 4) == "p a b c q"


@pytest.mark.parametrize(
    ("states", "rejected", "then", "answer"),
    [
        # by an edit that saw one of the forms in which the line can be there
        (("p X q", "p q", "p X q"), (1,), ("p q",), "p q"),
        (("p X q", "p q", "p X q"), (1, 2), ("p q",), "p q"),
        (("p X q", "p q", "p X q", "p q", "p X q"), (1, 3), ("p q",), "p q"),
        (("p X q", "p q", "p X q", "p q", "p X q"), (3,), ("p q",), "p q"),
        # also of a block, or all that a file held
        (("p X Y q", "p q", "p X Y q"), (1,), ("p X q",), "p X q"),
        (("p X Y q", "p q", "p X Y q"), (1,), ("p Y q",), "p Y q"),
        (("p X Y q", "p q", "p X Y q"), (1,), ("p Y q", "p q"), "p q"),
        (("X", "-", "X"), (1,), ("-",), "-"),
        (("X", "-", "X"), (1, 2), ("-",), "-"),
        (("X", "-", "X"), (1,), ("",), ""),
        # and where it put something in its place, that is a conflict
        (("p X q", "p q", "p X q"), (1,), ("p Z q",), "C: 3 needs 1"),
        (("p X Y q", "p q", "p X Y q"), (1,), ("p X Z q",), "C: 3 needs 1"),
        # a line put back once more is there once
        (("p X q", "p q", "p X q"), (1,), ("p q", "p X q"), "p X q"),
    ],
)
def test_deleted_text_does_not_return_with_an_older_reinsertion(
    states: tuple[str, ...], rejected: tuple[int, ...], then: tuple[str, ...], answer: str
) -> None:
    h = history(*states)
    h.reject(*rejected)
    assert h.then(*then).text == then[-1]
    assert h.accept(*rejected) == answer


def test_deleted_text_stays_gone_whichever_edit_had_reinserted_it() -> None:
    h = history("p X q", "p Y q", "p X q")
    assert h.reject(2) == "p Y q"
    h.then("p X q", "p q")
    assert h.reject(3) == "C: 4 needs 3"
    assert h.decide({h.edits[3][1]: False, h.edits[2][1]: True}) == "p q"
    assert h.reject(4) == "p X q"


def test_rejecting_a_deletion_again_brings_back_what_it_deleted() -> None:
    h = history("p X Y q", "p q", "p X Y q")
    h.reject(1)
    h.then("p X q")
    assert h.accept(1) == "p X q"
    assert h.reject(3) == "p X Y q"
    assert h.reject(1) == "p X Y q"
    assert h.accept(3) == "p X q"


def test_a_deleter_of_one_form_of_a_line_is_a_rival_in_every_form() -> None:
    for toggled in ((), (4,)):
        h = history("o p A q r", "o p q r", "o p A q r", "o p q r")
        assert (h.reject(3), h.reject(1)) == ("o p A q r", "o p A q r")
        h.then("o Z r")
        assert [h.reject(edit) for edit in toggled] == ["o p A q r" for _ in toggled]
        assert [h.accept(edit) for edit in toggled] == ["o Z r" for _ in toggled]
        assert (h.accept(3), h.reject(3), h.accept(3)) == ("C: 4 needs 3", "o Z r", "C: 4 needs 3")


def test_a_replacement_of_a_reinserted_line_conflicts_with_the_deletion_of_the_line() -> None:
    """The deletion knows the line in another form: the one shown while the reinserted text was hidden."""
    for change in ("p X N Y q", "p W Y q"):
        h = history("p X Y q", "p q", "p X Y q")
        h.reject(1)
        h.then("p q")
        assert h.accept(1) == "p q"
        assert h.reject(3) == "p X Y q"
        assert h.then(change).accept(3) == "C: 4 needs 3"


@pytest.mark.parametrize(
    ("states", "rejected", "answer"),
    [
        (("X b", "b", "X b", "X X b"), (1,), "X X b"),
        (("X b", "b", "X b", "X X b"), (1, 2), "X X b"),
        (("X b", "b", "X b", "X X b"), (1, 3), "X b"),
        (("X b", "b", "X b", "X N X b"), (1,), "X N X b"),
        (("A", "", "A", "A A"), (1,), "A A"),
        (("p A q", "p B q", "p A q", "p A A q"), (1,), "p A A q"),
    ],
)
def test_an_equal_line_next_to_a_reinserted_one_is_a_line_of_its_own(
    states: tuple[str, ...], rejected: tuple[int, ...], answer: str
) -> None:
    assert history(*states).reject(*rejected) == answer


def test_a_file_written_again_may_have_a_line_of_before_twice() -> None:
    weave = Weave(b"p\nq\n")
    units: tuple[UnitIndex, ...] = ()
    for text in (b"p\nA\nq\n", b"p\nB\nq\n", b"p\nA\nq\n", None, b"p\nA\nB\nA\nq\n", b"p\nB\nq\n"):
        before = weave.text()
        units = weave.record(text, () if before is None or text is None else diff_lines(before, text))
    assert set_live(weave, {units[1]: False}) == ()
    assert weave.text() == b"p\nA\nB\nq\n"


def test_a_reinserted_line_is_not_reinserted_again_above_itself() -> None:
    h = history("p X q", "p q", "p X q").record("p X X q", Hunk(1, 0, 1, 1))
    assert h.reject(1) == "p X X q"


@pytest.mark.parametrize(
    ("states", "then"),
    [
        (("p X", "p", "p X"), "p X~"),
        (("p X~", "p~", "p X~"), "p X"),
        (("p X", "p Y", "p X"), "p X~"),
        (("X", "-", "X"), "X~"),
        (("p X Y", "p", "p X Y"), "p X Y~"),
    ],
)
def test_a_final_newline_applies_to_the_line_in_every_form(states: tuple[str, ...], then: str) -> None:
    h = history(*states)
    h.reject(1)
    assert h.then(then).accept(1) == then
    assert h.reject(3) == states[-1]
    below = history(*states, states[1], states[2], then)
    assert below.reject(1, 3) == then
    assert below.accept(1) == then


@pytest.mark.parametrize("edge", ["p N X Y q", "p X Y N q", "N X Y q", "p X Y N"])
@pytest.mark.parametrize("between", ["p q", "p Z q"])
def test_text_next_to_reinserted_text_is_also_next_to_the_old_text(between: str, edge: str) -> None:
    h = history("p X Y q", between, "p X Y q", edge)
    assert h.reject(1) == edge
    assert h.reject(2) == edge
    back = history("p X Y q", between, "p X Y q")
    back.reject(1)
    assert back.then(edge).accept(1) == edge


def test_moved_text_needs_its_insertion_while_the_move_lasts() -> None:
    h = history("a b c d e", "a X b c d e", "a b c d X e")
    assert len(h.edits[2]) == 3
    assert h.reject(1) == "C: 2 needs 1"
    assert h.reject("2:2") == "a b c d e"
    assert h.reject(1) == "a b c d e"
    assert h.accept("2:2") == "C: 2 needs 1"


def test_text_recorded_inside_a_dead_deletion_conflicts_with_it() -> None:
    h = history("p a b q", "p q")
    assert h.reject(1) == "p a b q"
    assert h.then("p a N b q").accept(1) == "C: 1 needs 2, 2 needs 1"


def test_an_insertion_knows_the_hidden_text_in_its_place() -> None:
    h = history("p", "p u v")
    assert h.reject(1) == "p"
    h.then("p n")
    assert h.accept(1) == "C: 2 needs 1"
    assert h.reject(2) == "p"
    assert h.accept(1) == "p u v"
    assert h.then("p v").accept(2) == "C: 2 needs 1"
    assert h.then("p X").accept(2) == "C: 2 needs 4"


def test_an_insertion_keeps_its_neighbours_when_their_run_is_cut() -> None:
    h = history("a b c", "a b N c", "A b N c")
    assert h.reject(1) == "A b c"
    assert h.then("A c", "A").accept(1) == "C: 1 needs 3, 1 needs 4"


def test_text_that_returns_inside_a_replaced_region_is_a_conflict() -> None:
    assert history("p a X b q", "p a b q", "p Z q").reject(1) == "C: 2 needs 1"


def test_a_replacement_that_ends_inside_a_dead_deletion_is_inside_it() -> None:
    """The last of the deleted lines counts, next to which the text is; not the first."""
    h = history("a b c d", "a d")
    h.reject(1)
    assert h.then("N c d").accept(1) == "C: 1 needs 2, 2 needs 1"


def test_text_in_the_last_place_of_a_hidden_region_is_inside() -> None:
    """Text that replaces the last hidden line is inside; text that begins after it is not."""
    ends, begins = history("p h q r", "p q r", "p N q r"), history("p h q r", "p q r", "p N q r")
    assert [ends.reject(2, 1), begins.reject(2, 1)] == ["p h q r", "p h q r"]
    assert ends.then("Z q r").accept(2) == "C: 2 needs 3"
    assert begins.then("p Z r").reject(3) == "p h q r"
    assert begins.accept(1, 2) == "p N q r"


def test_an_insertion_next_to_a_dead_replacement_keeps_its_side() -> None:
    after, before = history("p X q", "p Y q"), history("p X q", "p Y q")
    assert [after.reject(1), before.reject(1)] == ["p X q", "p X q"]
    assert after.then("p X N q").accept(1) == "p Y N q"
    assert before.then("p N X q").accept(1) == "p N Y q"


def test_an_insertion_below_a_line_is_below_all_its_replacements() -> None:
    """Of the rejected ones the lowest counts, whichever was recorded first."""
    h = history("p x q", "p A q", "p B q")
    assert h.reject(2) == "p A q"
    h.then("p C q")
    assert h.reject(3, 1) == "p x q"
    h.then("p x N q")
    assert h.accept(1, 2) == "p B N q"
    h.reject(2)
    assert h.accept(3) == "p C N q"


def test_hunks_of_one_edit_are_decided_one_by_one() -> None:
    h = history("a b c d e", "A b C d E")
    assert h.reject("1:2") == "A b c d E"
    assert h.reject("1:1", "1:3") == "a b c d e"
    assert h.accept("1:2") == "a b C d e"


def test_the_hunk_that_writes_the_last_line_owns_its_newline() -> None:
    h = history("a b", "A b c~")
    assert h.reject("1:2") == "A b"
    assert h.reject("1:1") == "a b"
    assert h.accept("1:2") == "a b c~"


def test_the_hunk_that_cuts_off_the_end_keeps_the_newline_as_it_was() -> None:
    h = history("a b~", "a~")
    assert h.reject("1:0") == "a~"
    assert h.reject("1:1") == "a b~"


def test_a_newline_alone_is_the_whole_file_part() -> None:
    h = history("a b~", "A b")
    assert h.reject("1:0") == "A b~"
    assert h.reject("1:1") == "a b~"


def test_real_ranges_distinguish_equal_lines() -> None:
    h = history("x x").record("x", Hunk(1, 1, 1, 0)).record("y", Hunk(0, 1, 0, 1))
    assert h.reject(1) == "y x"


def test_text_inserted_among_hidden_lines_stays_in_place() -> None:
    h = history("a b c", "a b X c", "a b c")
    assert h.reject(1) == "a b c"
    assert h.then("a b N c").text == "a b N c"
    assert h.reject(3) == "a b c"
    assert h.accept(1, 3) == "a b N c"
    assert h.reject(2) == "C: 3 needs 2"


@pytest.mark.parametrize(
    "states", [("p N x q", "p x q"), ("p x N q", "p x M q", "p x q"), ("p x q N", "p x q M", "p x q")]
)
def test_a_line_added_to_a_creation_and_taken_out_again_does_not_need_it(states: tuple[str, ...]) -> None:
    h = history("-", "p x q", *states)
    assert h.reject(1) == "-"
    h.weave = Weave.from_state(h.weave.state())
    assert h.reject(len(h.edits) - 1) == "C: 2 needs 1"


@pytest.mark.parametrize(
    ("h", "kind"),
    [
        (history("p q", "p X q", "p Y q"), ConflictKind.MISSING_TARGET),
        (history("p q", "p a b q", "p a N b q"), ConflictKind.SURROUNDINGS_GONE),
        (history("p X q", "p q", "p N q"), ConflictKind.TEXT_RETURNED),
    ],
)
def test_conflict_names_the_violated_rule(h: History, kind: ConflictKind) -> None:
    assert h.kinds(1) == {kind}


def test_conflict_names_line_and_text() -> None:
    h = history("p x q", "p A B q", "p A C q")
    first, second = h.edits[1][1], h.edits[2][1]
    assert set_live(h.weave, {first: False}) == (
        WeaveConflict(
            kind=ConflictKind.MISSING_TARGET, unit=second, needs=(first,), line=3, removed=b"B\n", inserted=b"C\n"
        ),
    )
    assert h.weave.conflicts() == set_live(h.weave, {})
    assert set_live(h.weave, {first: True}) == ()


def test_a_conflict_of_a_deletion_is_where_its_lines_would_be() -> None:
    h = history("p x q", "p A q", "p q", "N p q")
    (conflict,) = set_live(h.weave, {h.edits[1][1]: False})
    assert (conflict.unit, conflict.line, conflict.removed, conflict.inserted) == (h.edits[2][1], 4, b"A\n", b"")


def with_mode(h: History) -> History:
    """Record an edit that gives the file a mode."""
    h.edits.append(h.weave.record(h.weave.text(), (), needs_file=True))
    return h


def test_a_mode_needs_the_file_that_it_was_given_to() -> None:
    h = with_mode(history("-", "a"))
    assert h.kinds(1) == {ConflictKind.MISSING_TARGET}
    assert h.reject(1) == "C: 2 needs 1"
    h.weave = Weave.from_state(h.weave.state())
    assert h.reject(1) == "C: 2 needs 1"


def test_a_mode_is_a_rival_of_the_deletion_that_it_did_not_know() -> None:
    h = history("a", "-")
    h.reject(1)
    (conflict, *_) = set_live(with_mode(h).weave, {h.edits[1][0]: True})
    assert (conflict.kind, conflict.unit, conflict.needs) == (ConflictKind.BOTH_CHANGED, h.edits[2][0], h.edits[1])


def test_a_rejected_mode_keeps_needing_its_file() -> None:
    h = with_mode(history("-", "a b"))
    h.reject(1, 2)
    h.then("a", "-")
    assert h.accept(2) == "C: 2 needs 1"


def test_a_mode_is_without_its_file_once_the_last_line_is_gone() -> None:
    h = with_mode(history("-", "a", "a b"))
    creation, line, mode = (h.edits[edit][-1] for edit in (1, 2, 3))
    set_live(h.weave, {creation: False})
    assert not h.weave.has_conflict(mode)  # a line is still there, though the lines around it are gone
    set_live(h.weave, {line: False})
    assert h.weave.has_conflict(mode)
    set_live(h.weave, {line: True})
    assert not h.weave.has_conflict(mode)


def test_a_conflict_does_not_name_lines_that_a_deletion_never_saw() -> None:
    h = history("a b", "a x b")
    assert h.reject(1) == "a b"
    h.then("-")
    assert h.reject(2) == "a b"
    h.then("a N b")
    deletion = h.edits[2][0]
    (removed,) = {c.removed for c in set_live(h.weave, {deletion: True}) if c.unit == deletion}
    assert removed == b"a\nb\n"


# -- reading


def test_blame_names_who_inserted_each_line() -> None:
    h = history("a b c", "a N b c", "a N b C")
    assert [(h.name(unit), lines) for unit, lines in h.weave.blame()] == [(0, 1), (1, 1), (0, 1), (2, 1)]
    h.reject(1)
    assert [(h.name(unit), lines) for unit, lines in h.weave.blame()] == [(0, 2), (2, 1)]
    assert history("-").weave.blame() == []


def test_unit_lines_follow_the_text() -> None:
    h = history("a b c d", "a X Y b c d", "a X Y b d", "Z a X Y b d")
    assert [h.weave.unit_lines(h.edits[edit][1]) for edit in (1, 2, 3)] == [(3, 2), (6, 0), (1, 1)]
    h.reject(3, 2)
    assert [h.weave.unit_lines(h.edits[edit][1]) for edit in (1, 2, 3)] == [(2, 2), None, None]
    assert h.weave.unit_lines(h.edits[1][0]) is None


def test_a_rejected_edit_has_the_line_at_which_it_would_be_shown() -> None:
    h = history("a b c d", "a X Y b c d", "a X Y b d", "a X Y b D")
    assert [h.weave.line_at(h.edits[edit][1]) for edit in (1, 2, 3)] == [2, 5, 5]
    assert h.reject(3, 2, 1) == "a b c d"
    assert [h.weave.line_at(h.edits[edit][1]) for edit in (1, 2, 3)] == [2, 3, 4]
    assert h.weave.line_at(h.edits[1][0]) == 1


# -- refusing


def test_hunks_that_do_not_fit_change_nothing() -> None:
    h = history("a b c", "a B c")
    for after, hunks in [
        (b"a\nx\nc\n", ()),
        (b"a\nx\nc\n", (Hunk(1, 2, 1, 2), Hunk(2, 1, 2, 1))),
        (b"a\nx\nc\n", (Hunk(1, 1, 1, 1), Hunk(7, 0, 7, 0))),
        (None, (Hunk(0, 3, 0, 0),)),
    ]:
        with pytest.raises(ValueError, match=r"hunk|Hunk|lines|differ"):
            h.weave.record(after, hunks)
    assert h.text == "a B c"
    assert h.then("a B c d").reject(1) == "a b c d"


def test_the_base_can_not_be_rejected() -> None:
    with pytest.raises(ValueError, match="before the first edit"):
        set_live(history("a").weave, {BASE: False})


# -- cascade


def test_a_cascade_rejects_what_depends_and_nothing_else() -> None:
    h = history("p q", "p a b c q", "p a B c q", "p a B N c q", "P a B N c q")
    one, two, three = (h.edits[edit][1] for edit in (1, 2, 3))
    assert cascade(h.weave, {one: False}) == Cascade(rejected=(two, three), accept_first=(), blocked=())
    assert h.text == "P q"


def test_a_cascade_does_not_reject_what_it_was_asked_to_accept() -> None:
    h = history("p a q", "p A q")
    h.reject(1)
    h.then("p B q")
    one, two = h.edits[1][1], h.edits[2][1]
    assert cascade(h.weave, {one: True}).rejected == (two,)
    assert h.text == "p A q"


def test_a_cascade_names_what_must_be_accepted_first() -> None:
    h = history("p q", "p a b q", "p a B q")
    h.reject(2, 1)
    done = cascade(h.weave, {h.edits[2][1]: True})
    assert (done.rejected, done.accept_first) == ((), (h.edits[1][1],))
    assert {conflict.unit for conflict in done.blocked} == {h.edits[2][1]}
    assert h.text == "p q"
    assert h.weave.conflicts() == ()


def test_a_cascade_rejects_the_later_of_two_rivals() -> None:
    """Both are in conflict at first, as when markers are removed and the units set aside for them are restored."""
    h = history("p a q", "p A q")
    h.reject(1)
    h.then("p B q", "P B q")
    one, two, three = h.edits[1][1], h.edits[2][1], h.edits[3][1]
    h.weave.flip({one: True})
    assert cascade(h.weave, {three: False}).rejected == (two,)
    assert h.text == "p A q"


def test_a_cascade_that_accepts_rivals_is_blocked() -> None:
    h = history("p a q", "p A q")
    h.reject(1)
    h.then("p B q")
    h.reject(2)
    done = cascade(h.weave, {h.edits[1][1]: True, h.edits[2][1]: True})
    assert done.blocked
    assert (done.rejected, done.accept_first) == ((), ())
    assert h.text == "p a q"


def test_cascade_names_units_rejected_when_a_needed_unit_returns() -> None:
    h = history("p q", "p a b q", "p a B q")
    h.reject(2, 1)
    h.then("p n q")
    done = cascade(h.weave, {h.edits[2][1]: True})
    assert (done.accept_first, done.rejected) == ((h.edits[1][1],), (h.edits[3][1],))
    assert done.blocked
    assert h.text == "p n q"


def test_a_cascade_follows_needs_to_the_first_unit() -> None:
    h = history("p q", "p a b q", "p a B q", "p a C q")
    h.reject(3, 2, 1)
    one, two, three = (h.edits[edit][1] for edit in (1, 2, 3))
    done = cascade(h.weave, {three: True})
    assert done.accept_first == (one, two)
    # The conflict that is reported is that of the request, not that of its dependents.
    assert {(conflict.unit, conflict.needs) for conflict in done.blocked} == {(three, (two,))}
    assert cascade(h.weave, dict.fromkeys((one, two, three), True)).blocked == ()
    assert h.text == "p a C q"


def test_a_cascade_can_not_reject_what_it_accepts_needs() -> None:
    h = history("p q", "p a b q", "p a B q")
    one, two = h.edits[1][1], h.edits[2][1]
    done = cascade(h.weave, {one: False, two: True})
    assert done.blocked
    assert (done.rejected, done.accept_first) == ((), ())
    assert h.text == "p a B q"


def test_a_cascade_of_rivals_names_nothing_to_accept_first() -> None:
    h = history("p q", "p a b q", "p a B q")
    h.reject(2)
    h.then("p a C q")
    h.reject(3, 1)
    h.then("p n q")
    done = cascade(h.weave, {h.edits[2][1]: True, h.edits[3][1]: True})
    assert done.blocked
    assert (done.accept_first, done.rejected) == ((), ())
    assert h.text == "p n q"
