"""What tests of head starts share: a process of its own for each, because that of the tests has threads."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.cli.desk import PATIENCE, environment

__all__ = ["GRACE_SECONDS", "ran"]

GRACE_SECONDS: Final = 2.05
"""Until a file's times are old enough to be believed."""


def ran(root: Path, script: str) -> list[str]:
    """Return what a script prints about a workspace, in words."""
    process = subprocess.run(
        [sys.executable, "-P", "-c", script, str(root)],
        env=environment({}),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, b"")
    return process.stdout.decode().split()
