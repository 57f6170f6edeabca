"""A slice of `make soak`: everything that stays works in one workspace at once, and nothing is lost or piles up."""

import pytest

from tests.soak import main


def test_with_everybody_at_work_for_a_while_nothing_is_lost_and_nothing_piles_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seconds", "3"]) == 0, capsys.readouterr().out
