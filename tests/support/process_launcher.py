"""Runs a program that is started warm in place of the program itself: `python -I -S launcher.py SOCKET WORD...`.

It has the same files, folder, environment, words and end; signals that ask it to end it hands on.
"""

import os
import signal
import socket
import sys
from types import FrameType


def main(address: str, *words: str) -> None:
    """Start the program, and exit with its status."""
    asked: list[int] = []
    child = 0

    def hand_on(number: int, _: FrameType | None) -> None:
        asked.append(number)
        if child:
            os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, hand_on)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [b"+"], [0, 1, 2])
        variables = [name + b"=" + value for name, value in os.environb.items()]
        folder = os.getcwdb()  # noqa: PTH109 - pathlib takes longer to import than all of this
        parts = [folder, str(len(words)).encode(), *map(os.fsencode, words), *variables]
        connection.sendall(b"\0".join(parts))
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as lines:
            child = int(lines.readline())
            for early in asked:
                os.kill(child, early)
            status = int(lines.readline())
    if status < 0:
        final = -status
        signal.signal(final, signal.SIG_DFL)
        os.kill(os.getpid(), final)
    sys.exit(status)


main(*sys.argv[1:])
