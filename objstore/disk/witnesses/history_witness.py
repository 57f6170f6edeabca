"""Keep outside the store that a workspace has a history, so that its loss is noticed: by `git clean -fdx`, for example.

Each workspace has one small file in the user's state folder, named for its path. It has the id of the store, how many
edits and other records it had when that was last noted, the id of the newest edit, and what was lost and not yet
acknowledged. Two copies of a store have the same id and go on differently; the id of an edit tells them apart.
"""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from objstore.disk.fs.disk import is_absence
from objstore.disk.fs.reserved_names import LOG_NAME, STORE_NAME
from objstore.disk.fs.store_owner import user_state_folder
from objstore.model.ids import blob_id
from objstore.values.fastclass import NamedTuple, replace, value

__all__ = [
    "HistorySize",
    "LostHistory",
    "acknowledge_loss",
    "forget_newest",
    "is_first_mention",
    "lost_above",
    "note_history",
]

_FOLDER: Final = "workspaces"
_LONGEST: Final = 1 << 16
_MOST_LOST: Final = 5
"""Lost histories that are remembered of one workspace, the newest."""

_ID_AT, _ID_END = 16, 32
"""Where the header of a segment has the id of its store."""


class HistorySize(NamedTuple):
    """What a workspace has now."""

    edits: int
    records: int  # edits and decisions
    id_of: Callable[[int], str]  # returns the id of an edit, given its number ("": there is none)


@value
class LostHistory:
    """A history that a workspace had and has no more, as a whole or in part."""

    root: str
    edits: int  # how many it had
    missing: int  # how many of them are gone; 0: it is not known how many
    until: int  # when it was last seen, in microseconds since 1970-01-01 UTC

    def __str__(self) -> str:
        """Say what was there, until when, and how much of it is gone."""
        moment = time.localtime(self.until // 1_000_000)
        today = moment[:3] == time.localtime()[:3]
        until = time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", moment)
        had = f"a history of {self.edits} edit{'s' * (self.edits != 1)} was here until {until}, and"
        if not self.missing:
            return f"{had} some of it is gone"
        if self.missing < self.edits:
            return f"{had} {self.missing} of them {'is' if self.missing == 1 else 'are'} gone"
        return f"{had} is gone"


@value
class _Witness:
    """What the file of a workspace says."""

    path: str
    store: str  # hexadecimal
    newest: str  # id of the newest edit, hexadecimal; "": not known
    edits: int
    records: int  # edits and decisions
    time: int
    lost: tuple[tuple[int, int, int], ...] = ()  # edits, how many of them are gone, and until when it was there


def note_history(root: str, now: Callable[[], HistorySize]) -> list[LostHistory]:
    """Note what the workspace has, and return what it has lost until now, oldest first; wait for no disk.

    `now`: asked after the witness was read, because others may be recording. Raises what it raises, and nothing else.
    If the witness or the store can't be read now, nothing is noted, and nothing more counts as lost.
    """
    known = None
    try:
        known = _read(_path(root))
        store = _store_id(root)
    except OSError:
        return [] if known is None else _lost(root, known.lost)
    history = now()
    lost = () if known is None else (*known.lost, *_loss(known, store, history))
    is_news = known is None or (known.store, known.records, known.lost) != (store, history.records, lost)
    if store and history.edits and is_news:
        _write(_witness(root, store, history, lost))
    return _lost(root, lost)


def lost_above(start: str) -> LostHistory | None:
    """Return the history of a workspace that was at or above a folder and has no store any more (None: none is known).

    One that was moved is not lost: another workspace has its store now.
    """
    folder = os.path.realpath(start)
    while True:
        with suppress(OSError):  # a store that can't be read is not gone
            known = _read(_path(folder))
            if known is not None and known.edits and not _store_id(folder) and not _is_elsewhere(known):
                return LostHistory(root=folder, edits=known.edits, missing=known.edits, until=known.time)
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def acknowledge_loss(root: str, now: Callable[[], HistorySize]) -> None:
    """Note that a person knows what the workspace has lost: from now on, what it has is all that it had.

    If the witness or the store can't be read now, the loss is mentioned again.
    """
    with suppress(OSError):
        store = _store_id(root)
        if store and _read(_path(root)) is not None:
            _write(_witness(root, store, now(), ()))


def forget_newest(root: str) -> None:
    """Forget the id of the newest edit: the records of the same history are to be written again, with other ids."""
    with suppress(OSError):
        known = _read(_path(root))
        if known is not None and known.store == _store_id(root):
            _write(replace(known, newest=""))


def is_first_mention(lost: LostHistory) -> bool:
    """Return whether this is the first time that a client shows a loss, and remember that it was."""
    try:
        os.close(os.open(f"{_path(lost.root)}.said-{lost.until}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError:
        pass  # better twice than never
    return True


# ---- inside


def _lost(root: str, lost: Iterable[tuple[int, int, int]]) -> list[LostHistory]:
    return [LostHistory(root=root, edits=had, missing=missing, until=until) for had, missing, until in lost]


def _witness(root: str, store: str, history: HistorySize, lost: tuple[tuple[int, int, int], ...]) -> _Witness:
    return _Witness(
        path=root,
        store=store,
        newest=history.id_of(history.edits),
        edits=history.edits,
        records=history.records,
        time=time.time_ns() // 1000,
        lost=lost,
    )


def _loss(known: _Witness, store: str, history: HistorySize) -> tuple[tuple[int, int, int], ...]:
    """Return what is missing of the history that was witnessed last: nothing, or one entry for `_Witness.lost`."""
    is_same = known.store == store and known.newest in {"", history.id_of(known.edits)}
    if not known.edits or (is_same and history.records >= known.records) or _is_elsewhere(known, store):
        return ()
    missing = known.edits if known.store != store else max(known.edits - history.edits, 0)
    return ((known.edits, missing, known.time),)


def _is_elsewhere(known: _Witness, here: str = "") -> bool:
    """Return whether another workspace has the store now. `here`: the store in its place."""
    if known.store == here:
        return False
    folder = os.path.join(user_state_folder(), _FOLDER)
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(folder)
    for name in names:
        with suppress(OSError):
            other = _read(os.path.join(folder, name))
            if other is not None and other.path != known.path and _store_id(other.path) == known.store:
                return True
    return False


def _path(root: str) -> str:
    return os.path.join(user_state_folder(), _FOLDER, blob_id(os.fsencode(os.path.realpath(root))).hex()[:32])


def _store_id(root: str) -> str:
    """Return the id of the store in a folder ("": there is none). Raises OSError if it can't be read now."""
    log = os.path.join(root, STORE_NAME, LOG_NAME)
    try:
        names = sorted(name for name in os.listdir(log) if name.endswith(".seg"))
        return _beginning(os.path.join(log, names[0]), _ID_END)[_ID_AT:].hex() if names else ""
    except OSError as error:
        if is_absence(error):
            return ""
        raise


def _read(path: str) -> _Witness | None:
    """Return what a file says (None: it is missing, or not in our format). Raises OSError if it can't be read now."""
    try:
        root, name, *numbers = os.fsdecode(_beginning(path, _LONGEST)).split("\0")
        edits, records, moment, *lost = map(int, numbers)
    except ValueError:
        return None
    except OSError as error:
        if is_absence(error):
            return None
        raise
    entries = tuple(zip(lost[::3], lost[1::3], lost[2::3], strict=False))
    store, _, newest = name.partition(":")
    return _Witness(path=root, store=store, newest=newest, edits=edits, records=records, time=moment, lost=entries)


def _beginning(path: str, size: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)


def _write(witness: _Witness) -> None:
    """Replace a workspace's file; its parts end in NUL, which no path has."""
    path = _path(witness.path)
    lost = [number for entry in witness.lost[-_MOST_LOST:] for number in entry]
    name = f"{witness.store}:{witness.newest}"
    parts = [witness.path, name, *map(str, (witness.edits, witness.records, witness.time, *lost))]
    fresh = f"{path}.{os.getpid()}"
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, os.fsencode("\0".join(parts)))
        finally:
            os.close(fd)
        os.replace(fresh, path)
