"""Name running processes so that one that has ended is never taken for another one with its number.

The system gives a number again, at the latest after a reboot. So a process is named by its number, the moment it began,
the boot of the machine, the namespace in which the number counts, and the machine. Linux has all that in `/proc`. Where
there is no such folder, as on macOS, no process is named, and none is known to have ended.
"""

import os
import re
from contextlib import suppress
from functools import lru_cache
from typing import Final, NewType

from objstore.values.fastclass import NamedTuple

__all__ = [
    "MACHINE",
    "ProcessName",
    "Processes",
    "has_ended",
    "lineage",
    "newest_number",
    "outlived",
    "valid_process_name",
]

ProcessName = NewType("ProcessName", str)

_LONGEST_NUMBERS: Final = (10, 20, 20)  # digits of a process, of its beginning, and of a namespace
_BOOT_DIGITS: Final = 32
_LONGEST_MACHINE: Final = 255
_HEX_DIGITS: Final = frozenset("0123456789abcdef")

_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_BOOT_ID_BYTES: Final = 64
"""More than the file has: a UUID as text."""

_MOST_NAMED: Final = 32
_LONGEST_ENVIRONMENT: Final = 256 << 10
_NONE_LATER: Final = 1 << 62
"""A number that no process has."""

_ADOPTERS: Final = frozenset({"systemd", "init", "tini", "docker-init", "dumb-init"})
"""Programs that become the parent of a process whose own parent has ended, besides the first process."""

_DEAD: Final = frozenset({b"Z", b"X", b"x"})
"""States of a process that has ended, though its parent hasn't asked for its status yet."""


class _Process(NamedTuple):
    parent: int
    began: int
    state: bytes


def lineage() -> list[ProcessName]:
    """Return the names of this process, its parent, and so on; nothing where processes can't be named."""
    return list(_lineage(os.getpid()))


@lru_cache(maxsize=1)
def _lineage(number: int) -> list[ProcessName]:
    system = _system()
    found: list[ProcessName] = []
    if system is None:
        return found
    while number > 0 and len(found) < _MOST_NAMED:
        process = _process(number)
        if process is None:
            break
        found.append(ProcessName(":".join([str(number), str(process.began), *system])))
        number = process.parent
    return found


def has_ended(name: ProcessName) -> bool:
    """Return whether a process has certainly ended. False if that can't be known, as of one on another machine."""
    parts = _parts(name)
    own = _system()
    if parts is None or own is None:
        return False
    number, began, *system = parts
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


def newest_number() -> int:
    """Return the number of the process that began last; 0 where that isn't known."""
    with suppress(OSError, ValueError, IndexError), open("/proc/loadavg", "rb") as file:
        return int(file.read().split()[-1])
    return 0


def outlived(newest: int, seconds: float, client: ProcessName | None, folder: str) -> list[ProcessName]:
    """Return the processes that run, began after the one numbered `newest`, and were begun by an agent's shell.

    That is known of those that descend from `client`, and of those without a parent that work in `folder` or below it,
    or whose environment names such a folder. `seconds`: how long ago that one was the newest. The processes of hooks
    aren't meant: this one's, those begun after it, and those of other events.
    """
    system = _system()
    own = [int(name.partition(":")[0]) for name in lineage()]
    if system is None or not newest or not own:
        return []
    top = int(client.partition(":")[0]) if client is not None else 0
    hook = own[own.index(top) - 1] if top in own[1:] else own[0]  # the outermost process of this hook
    found: list[ProcessName] = []
    if hook <= newest and _age(own[0]) > seconds:
        hook = _NONE_LATER  # this process is no hook: it began before the call
    for number in _numbers_between(newest, hook):
        process = _process(number)
        if process is None or process.state in _DEAD or number in own:
            continue
        is_agents = (top and _descends(number, top)) or (_is_orphan(process) and _belongs_to(number, folder))
        if is_agents and not _is_hook(number):
            found.append(ProcessName(":".join([str(number), str(process.began), *system])))
    return found[:_MOST_NAMED]


def valid_process_name(held: object) -> ProcessName | None:
    """Return a process name that a file holds; None if it has not that form."""
    return ProcessName(held) if isinstance(held, str) and _parts(held) is not None else None


class Processes:
    """The processes of this machine, as those see them that follow an agent's calls."""

    def lineage(self) -> list[ProcessName]:
        """Return what the function of this name returns."""
        return lineage()

    def has_ended(self, name: ProcessName) -> bool:
        """Return what the function of this name returns."""
        return has_ended(name)

    def newest_number(self) -> int:
        """Return what the function of this name returns."""
        return newest_number()

    def outlived(self, newest: int, seconds: float, client: ProcessName | None, folder: str) -> list[ProcessName]:
        """Return what the function of this name returns."""
        return outlived(newest, seconds, client, folder)


MACHINE: Final = Processes()
"""The processes that really run."""


def _parts(name: str) -> list[str] | None:
    """Return number, beginning (clock ticks since the boot), boot, namespace of process numbers, and machine.

    None if the name has another form. Each hook asks, so it is not a regular expression: compiling one takes 0.2 ms.
    """
    parts = name.split(":", 4)
    if len(parts) != len(("number", "began", "boot", "namespace", "machine")):
        return None
    number, began, boot, namespace, machine = parts
    is_form = (
        all(
            each.isascii() and each.isdigit() and len(each) <= most
            for each, most in zip((number, began, namespace), _LONGEST_NUMBERS, strict=True)
        )
        and not number.startswith("0")
        and len(boot) == _BOOT_DIGITS
        and _HEX_DIGITS.issuperset(boot)
        and 0 < len(machine) <= _LONGEST_MACHINE
        and not {"\0", "\n"} & set(machine)
    )
    return parts if is_form else None


def _system() -> tuple[str, str, str] | None:
    """Return the boot, the namespace of process numbers and the machine; None where processes can't be named."""
    # Read bytes: a text file would import its encoding first.
    with suppress(OSError, UnicodeDecodeError), open(_BOOT_ID, "rb") as file:
        boot = file.read(_BOOT_ID_BYTES).decode("ascii").strip().replace("-", "").lower()
        # In a sandbox, `/proc` may be that of another namespace, where numbers mean other processes.
        if os.readlink("/proc/self") == str(os.getpid()):
            namespace = "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
            system = (boot, namespace, os.uname().nodename)
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


def _numbers_between(first: int, last: int) -> list[int]:
    """Return the numbers of the running processes after the first number and before the last, in a ring."""
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []
    if first <= last:
        return [number for number in numbers if first < number < last]
    return [number for number in numbers if number > first or number < last]


def _age(number: int) -> float:
    """Return how many seconds ago a process began (0: that isn't known)."""
    process = _process(number)
    with suppress(ValueError, IndexError):
        up = float(_text_of_system("uptime").split()[0])
        return 0.0 if process is None else up - process.began / os.sysconf("SC_CLK_TCK")
    return 0.0


def _descends(number: int, ancestor: int) -> bool:
    """Return whether a process was begun by another, by one that it began, and so on."""
    for _ in range(_MOST_NAMED):
        process = _process(number)
        if process is None or number <= 1:
            return False
        number = process.parent
        if number == ancestor:
            return True
    return False


def _is_orphan(process: _Process) -> bool:
    """Return whether the process that began this one has ended."""
    return process.parent == 1 or _text_of(process.parent, "comm").strip() in _ADOPTERS


def _belongs_to(number: int, folder: str) -> bool:
    """Return whether a process works at or below a folder, or was begun by one that did, as its environment shows."""
    below = os.fsencode(folder.rstrip("/"))
    with suppress(OSError):
        if (os.readlink(os.fsencode(f"/proc/{number}/cwd")) + b"/").startswith(below + b"/"):
            return True
    with suppress(OSError), open(f"/proc/{number}/environ", "rb") as file:
        values = [line.partition(b"=")[2] for line in file.read(_LONGEST_ENVIRONMENT).split(b"\0")]
        return any((value + b"/").startswith(below + b"/") for value in values)
    return False


def _is_hook(number: int) -> bool:
    """Return whether a process runs a hook of ours, itself or in a shell."""
    said = _text_of(number, "cmdline").replace("\0", " ")
    return re.search(r"cas(\.\w+)?['\"]? hook ", said + " ") is not None


def _text_of(number: int, name: str) -> str:
    return _text_of_system(f"{number}/{name}")


def _text_of_system(name: str) -> str:
    with suppress(OSError), open(f"/proc/{name}", encoding="utf-8", errors="replace") as file:
        return file.read(4096)
    return ""


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
