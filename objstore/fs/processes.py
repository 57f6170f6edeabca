"""Name running processes so that one that has ended is never taken for another one with its number.

The system gives a number again, at the latest after a reboot. So a process is named by its number, the moment it began,
the boot of the machine, the namespace in which the number counts, and the machine. Linux has all that in `/proc`. Where
there is no such folder, as on macOS, no process is named, and none is known to have ended.
"""

import os
import re
from contextlib import suppress
from typing import Final, NamedTuple, NewType

from objstore.fs.boot_id import UNKNOWN_BOOT, boot_id

__all__ = ["ProcessName", "has_ended", "lineage", "valid_process_name"]

ProcessName = NewType("ProcessName", str)

_FORM: Final = re.compile(r"([1-9][0-9]{0,9}):([0-9]{1,20}):([0-9a-f]{32}):([0-9]{1,20}):([^\0\n]{1,255})")
"""Number, beginning (clock ticks since the boot), boot, namespace of process numbers, machine."""

_MOST_NAMED: Final = 32
_DEAD: Final = frozenset({b"Z", b"X", b"x"})
"""States of a process that has ended, though its parent hasn't asked for its status yet."""


class _Process(NamedTuple):
    parent: int
    began: int
    state: bytes


def lineage() -> list[ProcessName]:
    """Return the names of this process, its parent, and so on; nothing where processes can't be named."""
    system = _system()
    found: list[ProcessName] = []
    if system is None:
        return found
    number = os.getpid()
    while number > 0 and len(found) < _MOST_NAMED:
        process = _process(number)
        if process is None:
            break
        found.append(ProcessName(":".join([str(number), str(process.began), *system])))
        number = process.parent
    return found


def has_ended(name: ProcessName) -> bool:
    """Return whether a process has certainly ended. False if that can't be known, as of one on another machine."""
    found = _FORM.fullmatch(name)
    own = _system()
    if found is None or own is None:
        return False
    number, began, *system = found.groups()
    boot, namespace, machine = own
    if system[2] != machine:
        return False
    if system[0] != boot:
        return True
    if system[1] != namespace:
        return False
    process = _process(int(number))
    if process is None:
        return not _exists(int(number))
    return process.began != int(began) or process.state in _DEAD


def valid_process_name(held: object) -> ProcessName | None:
    """Return a process name that a file holds; None if it has not that form."""
    return ProcessName(held) if isinstance(held, str) and _FORM.fullmatch(held) else None


def _system() -> tuple[str, str, str] | None:
    """Return the boot, the namespace of process numbers and the machine; None where processes can't be named."""
    boot = boot_id()
    with suppress(OSError):
        # In a sandbox, `/proc` may be that of another namespace, where numbers mean other processes.
        if boot != UNKNOWN_BOOT and os.readlink("/proc/self") == str(os.getpid()):
            namespace = re.sub(r"[^0-9]", "", os.readlink("/proc/self/ns/pid"))
            system = (boot.hex(), namespace, os.uname().nodename)
            return system if valid_process_name(":".join(["1", "0", *system])) else None
    return None


def _process(number: int) -> _Process | None:
    """Return what the system says of a process; None: it has none of this number, or hides it."""
    try:
        with open(f"/proc/{number}/stat", "rb") as file:
            said = file.read()
    except OSError:
        return None
    # The second field is the program's name in parentheses, which may hold anything.
    fields = said[said.rfind(b")") + 1 :].split()
    return _Process(parent=int(fields[1]), began=int(fields[19]), state=fields[0])


def _exists(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is another user's
    except OverflowError:
        return False
    return True
