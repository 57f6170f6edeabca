"""Test that files of 25 megabytes in long lines are edited and decided on in bounded memory."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.command_runner import SOURCE, environment

LIMIT: Final = 700 << 20
"""Bytes of address space, of which the interpreter and its libraries take some 200 MB."""

PATIENCE: Final = 300
"""Seconds after which the process counts as hung."""

PROGRAM: Final = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))

from objstore import Action, CallInfo, Conflicted, Decided, Operation, Unit, Workspace

LONG = b"0123456789abcdef" * 65_536
base = b"".join(b"%d " % number + LONG + b"\\n" for number in range(25))
short = b"a line\\n" * 1_000

with Workspace.init(sys.argv[1]) as workspace:

    def write(content):
        with workspace.call(CallInfo(tool="test", conversation="conv_one")) as call:
            call.write("large", content, operation=Operation.EDIT)
            return call.commit().edits[0].seq

    write(base)
    first = write(base.replace(b"\\n7 ", b"\\nseven "))
    second = write(base.replace(b"\\n7 ", b"\\nseven ") + short)
    third = write(base.replace(b"\\n7 ", b"\\nVII ") + short)
    units = {seq: workspace.find_units(str(seq))[1] for seq in (first, second, third)}
    assert isinstance(workspace.decide(Action.REJECT, units[first]), Conflicted)
    for seq, wanted in (
        (third, base.replace(b"\\n7 ", b"\\nseven ") + short),
        (first, base + short),
        (second, base),
    ):
        assert isinstance(workspace.decide(Action.REJECT, units[seq]), Decided)
        assert workspace.read("large").bytes == wanted
    assert isinstance(workspace.review.undo(), Decided)
    assert workspace.read("large").bytes == base + short
"""


def test_25_megabytes_of_long_lines_take_neither_gigabytes_nor_forever(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", PROGRAM, str(tmp_path), str(LIMIT)]
    ran = subprocess.run(
        command, env=environment({}), cwd=SOURCE, capture_output=True, timeout=PATIENCE, check=False, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
