"""Test the part of a decision that replays of many files share."""

from collections.abc import Mapping

from hypothesis import given, strategies as st

from objstore.model.basic_types import Action, Seq, Status, Unit
from objstore.model.record_codec import encode_record
from objstore.model.records import Decision
from objstore.model.replay_records import ReplayDecision, replay_decision, replay_fields

UNITS = st.builds(Unit, st.integers(1, 12).map(Seq), st.integers(0, 3))
VERDICTS = st.dictionaries(UNITS, st.sampled_from(Status), max_size=30)


def replayed(verdicts: Mapping[Unit, Status]) -> ReplayDecision:
    """Return what a replay reads of a decision with these verdicts, in this order."""
    decision = Decision(
        number=1, time=1, action=Action.ACCEPT, verdicts=tuple(verdicts.items()), written=(), who="somebody"
    )
    return replay_decision(replay_fields(encode_record(decision, None)))


@given(VERDICTS, st.lists(st.integers(1, 12).map(Seq), max_size=40).map(sorted))
def test_verdicts_of_edits_are_those_of_the_decision(verdicts: dict[Unit, Status], seqs: list[Seq]) -> None:
    decision = replayed(verdicts)
    assert decision.size == len(verdicts)
    assert decision.of_edits(seqs) == {unit: status for unit, status in verdicts.items() if unit.seq in seqs}


@given(VERDICTS, VERDICTS)
def test_a_decision_given_other_verdicts_has_these(verdicts: dict[Unit, Status], others: dict[Unit, Status]) -> None:
    decision = replayed(verdicts).with_verdicts(others)
    assert decision.of_edits([Seq(seq) for seq in range(1, 13)]) == others
