"""Test since when edits are eligible for expiry, with journals drawn as one letter per step of one file.

`e` is an edit of the file, `E` one that is not free, `.` an edit of another file. A digit is a decision that removed or
restored the text of the edit with that number; `a` to `c` are decisions on the first to third edit that changed no
text. The line below gives for each edit the number of the step since which it is eligible, or `-` for never.
"""

import pytest
from hypothesis import given, strategies as st

from objstore.upkeep.retention.expiry_rules import GONE, NOT_ELIGIBLE, AgedEdit, DatedDecision, between, expiry_times


def parse_journal(journal: str) -> str:
    """Return the line that says since when each edit of the journal is eligible."""
    edits: list[AgedEdit] = []
    dated_decisions: list[DatedDecision] = []
    for at, step in enumerate(journal, 1):
        if step in "eE":
            edits.append(AgedEdit(len(edits) + 1, 1, at, at, step == "e"))
        elif step in "abc":
            dated_decisions.append(DatedDecision(len(dated_decisions) + 1, at, at, ["_abc".index(step)], []))
        elif step.isdigit():
            dated_decisions.append(DatedDecision(len(dated_decisions) + 1, at, at, [int(step)], [int(step)]))
    times = expiry_times(edits, dated_decisions, len(edits), len(dated_decisions))
    moments = iter(times.edits.since[1:])
    return "".join(
        ("-" if (moment := next(moments)) == NOT_ELIGIBLE else f"{moment:x}") if step in "eE" else " "
        for step in journal
    ).rstrip()


@pytest.mark.parametrize(
    ("journal", "expected"),
    [
        # What was decided at once goes when it is old.
        ("eee", "123"),
        ("e1e2e3", "2 4 6"),
        # A decision after the next edit binds the two together.
        ("ee1", "33"),
        ("ee1e", "33 4"),
        ("eee1", "444"),
        ("eee2", "144"),
        ("e1ee2e", "2 55 6"),
        # One that left the text as it was binds nothing, but counts for the age.
        ("eea", "33"),
        ("eebea", "55 5"),
        ("eEa", "3-"),
        # Nothing goes from an edit on that is not free, nor what goes only together with it.
        ("eEe", "1--"),
        ("Eee", "---"),
        ("eeE2", "1--"),
        ("eeE1", "---"),
        ("e1eE", "2 3-"),
        # Other files don't matter.
        ("e..e.1", "6  6"),
    ],
)
def test_edits_of_each_journal_expire_as_expected(journal: str, expected: str) -> None:
    assert parse_journal(journal) == expected


def test_a_decision_expires_with_its_last_edit() -> None:
    edits = [AgedEdit(1, 1, 10, 1, True), AgedEdit(2, 2, 20, 2, True), AgedEdit(3, 3, 30, 3, False)]  # noqa: FBT003 -- a row
    dated_decisions = [
        DatedDecision(1, 40, 4, [1, 2], []),
        DatedDecision(2, 50, 5, [1], [1]),
        DatedDecision(3, 60, 6, [1, 3], []),
        DatedDecision(4, 70, 7, [], []),
    ]
    times = expiry_times(edits, dated_decisions, 3, 4)
    assert list(times.edits.since) == [GONE, 60, 40, NOT_ELIGIBLE]
    assert list(times.decisions.since) == [GONE, 60, 60, NOT_ELIGIBLE, 70]
    assert (between(times.edits.since, GONE, 59), between(times.decisions.since, GONE, 59)) == ([2], [])
    assert (between(times.edits.since, GONE, 60), between(times.decisions.since, GONE, 60)) == ([1, 2], [1, 2])
    # The oldest edits go first, whenever they were decided.
    assert list(times.edits.made) == [GONE, 10, 20, NOT_ELIGIBLE]
    assert list(times.decisions.made)[1:4] == [20, 10, NOT_ELIGIBLE]


STEPS = st.lists(st.sampled_from("eeeE123."), max_size=12)


@given(journal=STEPS, limit=st.integers(0, 14))
def test_expiring_edits_are_a_beginning_that_no_later_decision_changed(journal: list[str], limit: int) -> None:
    edits = [at for at, step in enumerate(journal, 1) if step in "eE"]
    usable = [
        step for at, step in enumerate(journal, 1) if not step.isdigit() or int(step) <= sum(e < at for e in edits)
    ]
    made: list[tuple[int, bool]] = []
    decided: list[tuple[int, int]] = []
    for at, step in enumerate(usable, 1):
        if step in "eE":
            made.append((at, step == "e"))
        elif step.isdigit():
            decided.append((at, int(step)))
    rows = [AgedEdit(seq, 1, at, at, free) for seq, (at, free) in enumerate(made, 1)]
    dated_decisions = [DatedDecision(number, at, at, [seq], [seq]) for number, (at, seq) in enumerate(decided, 1)]
    times = expiry_times(rows, dated_decisions, len(rows), len(dated_decisions))

    def may_go(count: int) -> bool:
        """Return whether the first `count` edits may expire according to the rule."""
        first = made[:count]
        on_them = [at for at, seq in decided if seq <= count]
        following = made[count][0] if count < len(made) else len(usable) + 1
        return (
            all(free and at <= limit for at, free in first)
            and all(at <= limit for at in on_them)
            and all(at < following for at in on_them)
        )

    longest = max(count for count in range(len(made) + 1) if may_go(count))
    assert between(times.edits.since, GONE, limit) == list(range(1, longest + 1))
