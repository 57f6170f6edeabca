"""Test the part of a decision that replays of many files share."""

from hypothesis import given, strategies as st

from objstore.model.basic_types import Seq, Status, Unit
from objstore.model.replay_records import replay_decision

UNITS = st.builds(Unit, st.integers(1, 12).map(Seq), st.integers(0, 3))
VERDICTS = st.dictionaries(UNITS, st.sampled_from(Status), max_size=30)


@given(VERDICTS, st.lists(st.integers(1, 12).map(Seq), max_size=40).map(sorted))
def test_verdicts_of_edits_are_those_of_the_decision(verdicts: dict[Unit, Status], seqs: list[Seq]) -> None:
    rows = [[*unit, status.value] for unit, status in verdicts.items()]
    decision = replay_decision({"number": 1, "action": "accept", "verdicts": rows})
    assert decision.size == len(verdicts)
    assert decision.of_edits(seqs) == {unit: status for unit, status in verdicts.items() if unit.seq in seqs}


@given(VERDICTS, VERDICTS)
def test_a_decision_given_other_verdicts_has_these(verdicts: dict[Unit, Status], others: dict[Unit, Status]) -> None:
    rows = [[*unit, status.value] for unit, status in verdicts.items()]
    decision = replay_decision({"number": 1, "action": "accept", "verdicts": rows}).with_verdicts(others)
    assert decision.of_edits([Seq(seq) for seq in range(1, 13)]) == others
