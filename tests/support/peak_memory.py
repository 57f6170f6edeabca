"""Run a program and learn how much memory it took at most."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.command_runner import environment

__all__ = ["MEASURED", "measured"]

MEASURED: Final = """
import atexit, os, resource, sys

def peak():
    # What getrusage says of a child counts the memory of the parent that it was forked from.
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)

atexit.register(lambda: os.write(2, b"\\npeak %d\\n" % peak()))
"""
"""The beginning of a program that reports its peak memory."""


def measured(
    program: str, *words: str, folder: Path, output: int | None = subprocess.PIPE, patience: float = 120
) -> tuple[bytes, int]:
    """Run a program that reports its peak memory; return its output and the peak, in bytes."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program, *words],
        cwd=folder,
        env=environment({}),
        stdout=output,
        stderr=subprocess.PIPE,
        timeout=patience,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout or b"", int(ran.stderr.rpartition(b"peak ")[2])
