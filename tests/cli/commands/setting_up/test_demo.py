"""The demonstration tells its whole story, with and without git."""

from pathlib import Path

import pytest

from tests.support.command_runner import unforked_cas


@pytest.mark.parametrize("has_git", [True, False], ids=["with git", "without git"])
def test_the_demonstration_runs_to_its_end(tmp_path: Path, *, has_git: bool) -> None:
    settings = {} if has_git else {"PATH": str(tmp_path)}
    ran = unforked_cas("demo", folder=tmp_path, settings=settings)
    assert (ran.status, ran.said) == (0, "")
    assert "Rejected edits 3 4." in ran.text
    assert "Say which errors end the program." in ran.text
    assert ("$ git checkout older" in ran.text) is has_git
    assert list(tmp_path.iterdir()) == []
