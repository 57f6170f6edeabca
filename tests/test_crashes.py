"""A slice of `make crash`: real processes that edit, review and let history go in one workspace are killed."""

import pytest

from tests.crashes import main


def test_kills_during_gc_lose_nothing_acknowledged(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rounds", "2", "--without-server"]) == 0, capsys.readouterr().out
