"""A slice of `make soak`: everything that stays works in one workspace at once, and nothing is lost or piles up."""

import pytest

from tests.soak import main


def test_short_soak_loses_nothing_and_does_not_grow(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seconds", "3"]) == 0, capsys.readouterr().out
