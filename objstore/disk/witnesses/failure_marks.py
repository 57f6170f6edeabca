"""Keep marks of hooks that failed: what changed while they did has no known author.

A hook that runs writes its error to `.cas/hook.log`. Where that can't be written, as on a full disk or in a read-only
store, its mark is in the user's state folder, or else in the temporary folder. Where `cas` does not even start, the
command lines of `cas setup` leave the mark without Python: `FAILED` is that branch of the shell. A client may also kill
a hook that takes too long. So each has a file while it runs, which it keeps locked: one that nothing locks is of a hook
that was killed, and becomes a mark.
"""

import fcntl
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from objstore.disk.fs.disk import Disk
from objstore.disk.fs.nofollow import read_store_file, write_derived_file
from objstore.disk.fs.reserved_names import AGENTS_NAME, STORE_NAME
from objstore.disk.fs.store_owner import user_state_folder
from objstore.model.ids import blob_id
from objstore.values.errors import CasError
from objstore.values.fastclass import value

__all__ = [
    "FAILED",
    "HOOK_LOG",
    "HookFailure",
    "forget_hook_failures",
    "hook_failures",
    "marked_if_killed",
    "note_hook_failure",
    "note_noticed",
    "unnoticed_failures",
]

HOOK_LOG: Final = f"{STORE_NAME}/hook.log"
"""File in the workspace for errors of hooks."""

_MARKS: Final = "hook-failures"
"""File in the state folder: marks that end in NUL: seconds since 1970, client, a word or `-`, and the folder.

A mark that Python writes has six digits of a second, too: what was recorded earlier in that second is not in doubt.
"""

_RUNNING: Final = "hooks"
"""Folder next to that file: for each running hook one with its client, and the workspaces of its event."""

_KILLED: Final = "killed before it was done"
_UNFINISHED: Final = 60
"""Seconds after which a file of a running hook that is still empty is of one that has ended."""

FAILED: Final = (
    'd="${XDG_STATE_HOME:-$HOME/.local/state}/editledger"; mkdir -p "$d"; '
    f'printf "%s CLIENT - %s\\0" "$(date +%s)" "$PWD" >>"$d/{_MARKS}"'
)
"""What a shell does if `cas` fails, with the name of a client in place of CLIENT."""

_NOTICED: Final = "failures"
"""File in the folder of agents: up to which failure they were said (`said`), and taken into account (`heeded`).

For each the time of the newest one, and how many have that time: a shell's marks are of whole seconds.
"""

_MOST_BYTES: Final = 1 << 20
_LONGEST_LINE: Final = 2_000


@value
class HookFailure:
    """A hook that failed."""

    time: int  # microseconds since 1970-01-01 UTC; 0: not known
    client: str
    said: str  # what failed; "": `cas` did not start


def hook_failures(root: str, since: int = -1) -> list[HookFailure]:
    """Return the failures of hooks in the workspace at `root` after a time (µs), oldest first.

    A mark of a hook that ran in a folder above the workspace counts too: it may have been about files in it.
    """
    _note_killed()
    found = [*_logged(root), *(failure for place, failure in _marked() if _concerns(place, root))]
    return sorted((failure for failure in found if failure.time > since), key=lambda failure: failure.time)


def note_hook_failure(place: str, client: str, said: str) -> bool:
    """Note a failure where the workspace's own log can't be written; never raise. `place`: the hook's folder.

    Returns whether it is noted.
    """
    mark = f"{time.time():.6f} {client or '-'} {said.split(':', maxsplit=1)[0].replace(' ', '-') or '-'} {place}\0"
    for path in _places():
        with suppress(OSError):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            fd = os.open(path, flags, 0o600)
            try:
                if _is_own(fd) and os.fstat(fd).st_size < _MOST_BYTES:
                    os.write(fd, os.fsencode(mark))
                    return True
            finally:
                os.close(fd)
    return False


@contextmanager
def marked_if_killed(client: str, roots: Iterable[str]) -> Iterator[None]:
    """Leave a mark of a hook in workspaces unless the block ends, with an error or without. Never raises itself."""
    path, fd = _running_file()
    if fd >= 0:
        # Locked before it is written: one that is empty is not finished.
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(fd, os.fsencode("\0".join([client or "-", *roots])))
    try:
        yield
    except Exception:  # it says itself what failed
        _remove(path, fd)
        raise
    _remove(path, fd)


def forget_hook_failures(root: str) -> None:
    """Remove the marks of a workspace's failures, and its log. Raises OSError if they can't be removed."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(root, HOOK_LOG))
    for path in _places():
        content = _content(path)
        kept = [mark for mark in content.split(b"\0") if mark and not _is_of(mark, root)]
        if content and b"".join(mark + b"\0" for mark in kept) != content:
            with open(path, "r+b") as file:
                file.truncate(0)
                file.write(b"".join(mark + b"\0" for mark in kept))


def unnoticed_failures(root: str, what: str) -> list[HookFailure]:
    """Return the failures since those for which `note_noticed` was called. `what`: `said` or `heeded`."""
    newest, count = _noticed(root).get(what, (0, 0))
    return hook_failures(root, newest - 1)[count:]


def note_noticed(root: str, what: str, failures: Sequence[HookFailure]) -> None:
    """Note that failures were said, or heeded; if that can't be written, they are again. Never raises.

    `failures`: those that `unnoticed_failures` has returned.
    """
    if not failures:
        return
    import json

    noticed, newest = _noticed(root), failures[-1].time
    before, count = noticed.get(what, (0, 0))
    count = sum(failure.time == newest for failure in failures) + (count if newest == before else 0)
    noticed |= {what: (newest, count)}
    content = json.dumps(noticed).encode()
    try:
        write_derived_file(Disk(), os.path.join(root, STORE_NAME), AGENTS_NAME, _NOTICED, content)
    except (OSError, CasError):  # the store is read-only, or its disk is full
        with suppress(OSError):
            fd = os.open(
                _noticed_outside(root), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
            try:
                os.write(fd, content)
            finally:
                os.close(fd)


# ---- inside


def _places() -> tuple[str, ...]:
    """Return the files that marks may be in, the first one first."""
    # `tempfile` would cost a status some milliseconds.
    temporary = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"editledger-{os.getuid()}")  # noqa: S108 - see `_is_own`
    return os.path.join(user_state_folder(), _MARKS), os.path.join(temporary, _MARKS)


def _running_file() -> tuple[str, int]:
    """Return a new file for this process, open ("", -1: there is no place for it)."""
    for place in _places():
        folder = os.path.join(os.path.dirname(place), _RUNNING)
        path = os.path.join(folder, f"{os.getpid()}-{time.time_ns()}")
        with suppress(OSError):
            with suppress(FileExistsError, FileNotFoundError):
                return path, _created(path)
            os.makedirs(folder, mode=0o700, exist_ok=True)
            return path, _created(path)
    return "", -1


def _created(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _remove(path: str, fd: int) -> None:
    if fd >= 0:
        with suppress(OSError):
            os.unlink(path)
        os.close(fd)


def _note_killed() -> None:
    """Turn the files of hooks that were killed into marks of now; several processes may do so at once."""
    for place in _places():
        folder = os.path.join(os.path.dirname(place), _RUNNING)
        with suppress(OSError):
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                with suppress(OSError):
                    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
                    try:
                        _note_if_killed(path, fd)
                    finally:
                        os.close(fd)


def _note_if_killed(path: str, fd: int) -> None:
    """Turn the file of a hook into a mark if it was killed. Raises BlockingIOError if it runs, OSError."""
    found = os.fstat(fd)
    if not _is_own(fd) or (not found.st_size and time.time() - found.st_mtime < _UNFINISHED):
        return
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    client, *roots = [os.fsdecode(word) for word in os.read(fd, _MOST_BYTES).split(b"\0")]
    os.unlink(path)  # whoever comes second finds no file
    for root in roots:
        note_hook_failure(root, client, _KILLED)


def _is_own(fd: int) -> bool:
    """Return whether an open file is a regular one of this user's; others may write into the temporary folder."""
    found = os.fstat(fd)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _content(path: str) -> bytes:
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            return os.read(fd, _MOST_BYTES) if _is_own(fd) else b""
        finally:
            os.close(fd)
    return b""


def _marked() -> Iterator[tuple[str, HookFailure]]:
    """Yield the marks outside the store, each with its folder."""
    for path in _places():
        for mark in _content(path).split(b"\0"):
            parsed = _parsed(mark)
            if parsed is not None:
                yield parsed


def _parsed(mark: bytes) -> tuple[str, HookFailure] | None:
    """Return the folder and the failure of a mark (None: it is not in our format)."""
    moment, client, said, place = ([os.fsdecode(part) for part in mark.split(b" ", 3)] + [""] * 4)[:4]
    seconds, _, rest = moment.partition(".")
    if not (seconds.isascii() and seconds.isdigit() and len(seconds) < len("1000000000000") and os.path.isabs(place)):
        return None
    at = int(seconds) * 1_000_000 + _microseconds(rest)
    return place, HookFailure(time=at, client=client, said="" if said == "-" else said.replace("-", " "))


def _microseconds(digits: str) -> int:
    """Return what six digits of a second are ("": none); 0 if these are others."""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) == len("123456") else 0


def _is_of(mark: bytes, root: str) -> bool:
    parsed = _parsed(mark)
    return parsed is None or _concerns(parsed[0], root)


def _concerns(place: str, root: str) -> bool:
    """Return whether a folder is in a workspace, or the workspace in it."""
    real, root = os.path.realpath(place), os.path.realpath(root)
    return os.path.commonpath([real, root]) in {real, root}


def _logged(root: str) -> Iterator[HookFailure]:
    """Yield the failures in the workspace's own log."""
    try:
        lines = read_store_file(os.path.join(root, HOOK_LOG), _MOST_BYTES).splitlines()
    except (OSError, CasError):
        return
    from calendar import timegm

    for line in lines:
        words, _, said = line[:_LONGEST_LINE].decode("utf-8", "replace").partition(": ")
        moment, _, client = words.partition(" ")
        seconds, _, rest = moment.removesuffix("Z").partition(".")
        try:
            at = timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S")) * 1_000_000 + _microseconds(rest)
        except ValueError:  # cut off, or not ours: something failed all the same
            at, client, said = 0, "", line[:_LONGEST_LINE].decode("utf-8", "replace")
        yield HookFailure(time=at, client=client, said=said)


def _noticed_outside(root: str) -> str:
    """Return the path of what could not be noted in the store."""
    name = blob_id(os.fsencode(os.path.realpath(root))).hex()[:32]
    return os.path.join(os.path.dirname(_places()[0]), f"noticed-{name}")


def _noticed(root: str) -> dict[str, tuple[int, int]]:
    import json

    found: dict[str, tuple[int, int]] = {}
    for path in (os.path.join(root, STORE_NAME, AGENTS_NAME, _NOTICED), _noticed_outside(root)):
        held: Any = None
        with suppress(OSError, CasError, ValueError):
            held = json.loads(read_store_file(path, _MOST_BYTES))
        for name, noticed in held.items() if isinstance(held, dict) else ():
            match noticed:
                case [int(newest), int(count)] if count >= 0:
                    found[name] = max(found.get(name, (0, 0)), (newest, count))
    return found
