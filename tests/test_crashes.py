"""A slice of `make crash`: real processes that edit, review and let history go in one workspace are killed."""

import pytest

from tests.crashes import main


def test_whatever_is_killed_beside_gc_nothing_acknowledged_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rounds", "2", "--without-server"]) == 0, capsys.readouterr().out
