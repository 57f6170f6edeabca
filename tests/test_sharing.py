"""A slice of `make sharing`: two people and two agents share a bucket, and nothing is lost or decided twice."""

import subprocess
import sys
from pathlib import Path


def test_two_people_and_two_agents_lose_nothing_and_decide_each_unit_once() -> None:
    command = [sys.executable, "-m", "tests.sharing", "--seconds", "3"]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
