"""Run `cas` as children of this process, which `ClientProcess` starts warm in place of the program.

Each line of standard input asks for one run, and the line of standard output that answers it says how it ended.
"""

import json
import os
import sys
import time
from typing import NoReturn

from cli.shell.entry import main as run_cas
from tests.support.fork_server import Start, become, exchanged

__all__ = ["main"]

PATIENCE = 60
"""Seconds after which a process counts as hung."""


def main() -> int:
    """Run what each line asks for, until there are no more."""
    for line in sys.stdin:
        asked = json.loads(line)
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        child = os.fork()
        if child == 0:
            for fd in (pipes[0][1], pipes[1][0], pipes[2][0]):
                os.close(fd)
            _run(asked, theirs)
        for fd in theirs:
            os.close(fd)
        ours = pipes[0][1], pipes[1][0], pipes[2][0]
        out, err = exchanged(asked["given"].encode(), *ours, time.monotonic() + PATIENCE)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(json.dumps([status, out.decode(), err.decode()]) + "\n")
        sys.stdout.flush()
    return 0


def _run(asked: dict[str, object], files: list[int]) -> NoReturn:
    """Run `cas` in this process, or in a child of it if this is a shell, which waits for that."""
    if asked["in_shell"] and (program := os.fork()):
        os._exit(os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]) & 0xFF)
    words = asked["words"]
    assert isinstance(words, list)
    become(Start(os.fsencode(str(asked["folder"])), words, dict(os.environb), files))
    sys.argv = ["cas", *words]
    status = 1  # of an exception, which nothing here expects
    try:
        status = run_cas()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)
