"""Name processes so that one that has ended is never taken for another, and a live one never for one that ended."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from objstore.disk.fs.processes import ProcessName, has_ended, lineage, valid_process_name

pytestmark = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="processes can be named only on Linux")

NAMES = "from objstore.disk.fs.processes import lineage; print(*lineage(), sep='\\n', flush=True); input()"


def changed(name: ProcessName, part: int, by: str) -> ProcessName:
    """Return the name with one of its parts replaced."""
    parts = name.split(":", 4)
    return ProcessName(":".join([*parts[:part], by, *parts[part + 1 :]]))


def test_a_process_has_ended_once_it_has_died_even_before_its_parent_asks() -> None:
    with subprocess.Popen([sys.executable, "-c", NAMES], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        own, parent = (ProcessName(child.stdout.readline().decode().strip()) for _ in range(2))
        assert own.startswith(f"{child.pid}:")
        assert parent == lineage()[0]
        assert not has_ended(own)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
        assert has_ended(own)
    assert has_ended(own)
    assert not has_ended(parent)


def test_a_number_alone_never_names_a_process() -> None:
    own = lineage()[0]
    assert not has_ended(own)
    assert has_ended(changed(own, 1, "1"))  # an earlier process had this number
    assert has_ended(changed(own, 2, "0" * 31 + "1"))  # before the machine was started
    assert not has_ended(changed(own, 3, "1"))  # a container's numbers say nothing here
    assert not has_ended(changed(changed(own, 2, "0" * 31 + "1"), 4, "elsewhere"))  # it may run on another machine


def test_a_process_of_another_user_has_not_ended() -> None:
    assert not has_ended(lineage()[-1])


@pytest.mark.parametrize(
    "held", [None, 7, "", "7", "0:1:a:b:c", "-1:1:" + "0" * 32 + ":1:m", "9" * 11 + ":1:x:1:m", []]
)
def test_what_is_no_name_of_a_process_is_refused(held: object) -> None:
    assert valid_process_name(held) is None
    assert not has_ended(ProcessName(str(held)))
