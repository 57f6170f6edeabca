"""Runs a program that is started warm in place of the program itself: `python -I -S launcher.py SOCKET WORD...`.

It has the same files, folder, environment, words and end; signals that ask it to end it hands on.

The modules `socket` and `signal` give their numbers names, and to import that takes longer than all of this.
"""

import _signal as signal  # type: ignore[import-not-found]  # it has no stubs
import _socket
import os
import sys


def line(connection: _socket.socket) -> bytes:
    """Return the line that is sent next."""
    received = b""
    while not received.endswith(b"\n"):
        piece = connection.recv(1)  # the next line may have been sent already
        if not piece:
            sys.exit("The process that programs are forked from has ended.")
        received += piece
    return received


def main(address: str, *words: str) -> None:
    """Start the program, and exit with its status."""
    asked: list[int] = []
    child = 0

    def hand_on(number: int, _: object) -> None:
        asked.append(number)
        if child:
            os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, hand_on)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(address)
    files = b"".join(file.to_bytes(4, sys.byteorder) for file in (0, 1, 2))
    connection.sendmsg([b"+"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    variables = [name + b"=" + value for name, value in os.environb.items()]
    folder = os.getcwdb()  # noqa: PTH109 - pathlib takes longer to import than all of this
    parts = [folder, str(len(words)).encode(), *map(os.fsencode, words), *variables]
    connection.sendall(b"\0".join(parts))
    connection.shutdown(_socket.SHUT_WR)
    child = int(line(connection))
    for early in asked:
        os.kill(child, early)
    status = int(line(connection))
    if status < 0:
        final = -status
        signal.signal(final, signal.SIG_DFL)
        os.kill(os.getpid(), final)
    sys.exit(status)


main(*sys.argv[1:])
