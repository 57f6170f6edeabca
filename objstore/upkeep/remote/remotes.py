"""Keep what this store knows of its remotes: where each is, what was pushed to it, and what was seen there.

`.cas/remotes/NAME/` has `remote` (what a person set), `state` (what was seen last, so that a bucket that was rolled
back is noticed), `log` (the entries of the shared decision log), and `members/`, with a mirror of each other store.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from objstore.disk.fs.nofollow import open_store_folder, read_store_file
from objstore.disk.fs.reserved_names import STORE_NAME
from objstore.disk.fs.writer_lock import WriterLock
from objstore.model.canonical_msgpack import Fields, decode, encode
from objstore.model.ids import HASH_SIZE, blob_id
from objstore.upkeep.remote.heads import MAX_LABEL, Seen
from objstore.upkeep.remote.keys import Lane, is_lane
from objstore.values.errors import RecordInvalid
from objstore.values.fastclass import field, replace, value
from objstore.values.request_errors import RemoteNameRefused, RemoteUnknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from objstore.disk.fs.disk import Disk

__all__ = ["PUSH_CHOICES", "Member", "Mirrored", "Remote", "RemoteState", "Remotes", "label_of", "mirrored"]

PUSH_CHOICES: Final = ("never", "stop")
"""When a remote is pushed to by itself: never, or after each turn of an agent."""

_FOLDER: Final = "remotes"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_KEPT: Final = re.compile(r"[0-9]{1,18}-[0-9]{1,18}")
_KEPT_TOGETHER: Final = 8 << 20
"""Bytes of entries that a file has at most, unless one alone has more."""

_LONGEST: Final = 1 << 20
_LOCK_SECONDS: Final = 60.0


@value
class Remote:
    """A place that this store is pushed to, as a person set it."""

    name: str
    url: str
    lane: Lane
    label: str  # the name by which this store calls itself there
    push: str = PUSH_CHOICES[0]


@value
class Member:
    """Another store of a bucket, as it was seen last."""

    lane: Lane
    name: str  # what it is called here: fixed when it is first seen, whatever it calls itself later
    seen: Seen
    edits: int = 0


@value
class RemoteState:
    """What was seen of a remote last."""

    pushed: Seen | None = None  # None: nothing was pushed
    pushed_edits: int = 0
    pushed_end: tuple[int, int] = (0, 0)  # segment and offset
    members: Mapping[str, Member] = field(default_factory=dict)  # by lane
    failure: str = ""  # why the last push in the background failed; "": it did not


@value
class Mirrored:
    """Where a mirror is: whose it is, and of which store."""

    home: str  # the workspace that pulled it
    remote: str
    member: str


class Remotes:
    """The remotes of one store."""

    def __init__(self, root: str, disk: Disk) -> None:
        """Look at the store of the workspace in `root`."""
        self._store: Final = os.path.join(root, STORE_NAME)
        self._disk: Final = disk

    def folder(self, name: str, *parts: str) -> str:
        """Return a folder or file of a remote."""
        return os.path.join(self._store, _FOLDER, name, *parts)

    def names(self) -> list[str]:
        """Return the names of all remotes, ascending."""
        with suppress(FileNotFoundError):
            names = os.listdir(os.path.join(self._store, _FOLDER))
            return sorted(
                name for name in names if _NAME.fullmatch(name) and os.path.exists(self.folder(name, "remote"))
            )
        return []

    def get(self, name: str) -> Remote:
        """Return a remote. Raises RemoteUnknown."""
        read = self._read(name, "remote") if _NAME.fullmatch(name) else {}
        if not {"url", "lane", "label"} <= read.keys() or not is_lane(str(read["lane"])):
            raise RemoteUnknown(name, self.names())
        push = str(read.get("push", ""))
        return Remote(
            name=name,
            url=str(read["url"]),
            lane=Lane(str(read["lane"])),
            label=label_of(str(read["label"])),
            push=push if push in PUSH_CHOICES else PUSH_CHOICES[0],
        )

    def all(self) -> list[Remote]:
        """Return all remotes, by name."""
        return [self.get(name) for name in self.names()]

    def require_free(self, name: str) -> None:
        """Raise RemoteNameRefused for a name that a new remote can't have."""
        if _NAME.fullmatch(name) is None:
            raise RemoteNameRefused(name, "it takes a letter, and up to 31 letters, digits, `_` and `-` after it")
        if name in self.names():
            raise RemoteNameRefused(name, "there is one already. Remove it first, or choose another name")

    def put(self, remote: Remote) -> None:
        """Remember a remote, durably."""
        for each in ((), ("members",)):
            self._make(self.folder(remote.name, *each))
        fields = {"url": remote.url, "lane": remote.lane, "label": remote.label, "push": remote.push}
        self._write(remote.name, "remote", fields)

    def forget(self, name: str) -> None:
        """Forget a remote with its mirrors; the bucket keeps what it has. Raises RemoteUnknown."""
        self.get(name)
        self._disk.remove_store_file(self.folder(name, "remote"))
        for folder, folders, names in os.walk(self.folder(name), topdown=False):
            for each in names:
                self._disk.remove_store_file(os.path.join(folder, each))
            for each in folders:
                path = os.path.join(folder, each)
                if os.path.islink(path):
                    self._disk.remove_store_file(path)
                else:
                    self._disk.remove_store_folder(path)
        self._disk.remove_store_folder(self.folder(name))

    def state(self, name: str) -> RemoteState:
        """Return what was seen of a remote; where that can't be read, nothing was."""
        read = self._read(name, "state")
        try:
            return RemoteState(
                pushed=_seen(read.get("pushed"), self._kept_head(name)),
                pushed_edits=int(read.get("pushed_edits", 0)),
                pushed_end=(int(read["pushed_end"][0]), int(read["pushed_end"][1])) if "pushed_end" in read else (0, 0),
                members={lane: _member(lane, each) for lane, each in read.get("members", {}).items() if is_lane(lane)},
                failure=str(read.get("failure", "")),
            )
        except (KeyError, TypeError, ValueError):
            return RemoteState()

    def save(self, name: str, **changed: Any) -> RemoteState:  # noqa: ANN401 - the fields of RemoteState
        """Change what is remembered of a remote, durably, and return it."""
        state = replace(self.state(name), **changed)
        members = {
            lane: {"name": each.name, "number": each.seen.number, "hash": each.seen.name.hex(), "edits": each.edits}
            for lane, each in state.members.items()
        }
        fields: dict[str, Any] = {
            "pushed_edits": state.pushed_edits,
            "pushed_end": list(state.pushed_end),
            "members": members,
            "failure": state.failure,
        }
        if state.pushed is not None:
            fields["pushed"] = [state.pushed.number, state.pushed.name.hex()]
            if "pushed" in changed:
                self._replace(name, "head", state.pushed.body)
        self._write(name, "state", fields)
        return state

    def entries(self, name: str) -> list[tuple[int, bytes]]:
        """Return the entries of a remote's decision log that were read so far, ascending by number.

        From a file on that is damaged, there are none: they are read from the bucket again.
        """
        found: list[tuple[int, bytes]] = []
        for _, each in self._kept(name):
            try:
                found += _unpacked(read_store_file(self.folder(name, "log", each)))
            except RecordInvalid:
                break
        return found

    def keep_entries(self, name: str, entries: Sequence[tuple[int, bytes]]) -> None:
        """Keep entries that were read, durably: many in one file, so that they take one sync."""
        if not entries:
            return
        self._make(self.folder(name, "log"))
        for number, each in self._kept(name):
            if number >= entries[0][0]:  # damaged, or behind one that is
                self._disk.remove_store_file(self.folder(name, "log", each))
        size, together = 0, list[tuple[int, bytes]]()
        for entry in entries:
            if together and size + len(entry[1]) > _KEPT_TOGETHER:
                self._keep(name, together)
                size, together = 0, []
            size += len(entry[1])
            together.append(entry)
        self._keep(name, together)

    def carrying(self, name: str) -> tuple[int, int] | None:
        """Return the entry that was being carried out, and the number that what is made for it has at least."""
        match self._read(name, "carrying"):
            case {"entry": int(entry), "decision": int(decision)}:
                return entry, decision
            case _:
                return None

    def note_carrying(self, name: str, noted: tuple[int, int] | None) -> None:
        """Note, durably, which entry is being carried out (None: it was answered)."""
        if noted is not None:
            self._write(name, "carrying", {"entry": noted[0], "decision": noted[1]})
            return
        with suppress(FileNotFoundError):
            self._disk.remove_store_file(self.folder(name, "carrying"))

    def member(self, spelling: str) -> tuple[Remote, Member] | None:
        """Return the other store that `NAME` or `REMOTE/NAME` names (None: none).

        The name of a remote that has only one other store names that store.
        """
        remote_name, _, name = spelling.rpartition("/")
        remotes = [each for each in self.all() if not remote_name or each.name == remote_name]
        members = [(remote, member) for remote in remotes for member in self.state(remote.name).members.values()]
        found = [each for each in members if each[1].name == name]
        if not found and not remote_name:
            found = [each for each in members if each[0].name == name]
        return found[0] if len(found) == 1 else None

    def free_name(self, label: str, lane: Lane) -> str:
        """Return the name that another store gets here: what it calls itself, or with a number if that is taken.

        The name of a remote is taken, too: as long as the remote has one other store, it means that one.
        """
        remotes = self.names()
        taken = {*remotes, *(member.name for name in remotes for member in self.state(name).members.values())}
        wanted = re.sub(r"[^A-Za-z0-9_-]+", "-", label).strip("-_")[:32]
        wanted = wanted if _NAME.fullmatch(wanted) else f"s{lane[:8]}"
        number, found = 2, wanted
        while found in taken:
            found, number = f"{wanted[:28]}-{number}", number + 1
        return found

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Let no other process push to, pull from or collect in a remote meanwhile. Raises StoreLocked."""
        lock = WriterLock(self.folder(name, "lock"))
        try:
            with lock.held(_LOCK_SECONDS):
                yield
        finally:
            lock.close()

    # ---- inside

    def _kept(self, name: str) -> list[tuple[int, str]]:
        """Return the files of a remote's decision log, each with the number of its first entry, ascending."""
        try:
            names = filter(_KEPT.fullmatch, os.listdir(self.folder(name, "log")))
        except FileNotFoundError:
            return []
        return sorted((int(each.partition("-")[0]), each) for each in names)

    def _keep(self, name: str, entries: Sequence[tuple[int, bytes]]) -> None:
        body = encode({"entries": [[number, encoded] for number, encoded in entries]})
        with suppress(FileExistsError):
            path = self.folder(name, "log", f"{entries[0][0]}-{entries[-1][0]}")
            self._disk.create(path, blob_id(body) + body)

    def _make(self, folder: str) -> None:
        if not os.path.isdir(folder):
            with suppress(FileNotFoundError, FileExistsError):
                self._disk.make_store_folder(os.path.dirname(folder))
            with suppress(FileExistsError):
                self._disk.make_store_folder(folder)

    def _kept_head(self, name: str) -> bytes:
        try:
            return read_store_file(self.folder(name, "head"))
        except FileNotFoundError:
            return b""

    def _read(self, name: str, file: str) -> dict[str, Any]:
        try:
            read = json.loads(read_store_file(self.folder(name, file), _LONGEST))
        except (FileNotFoundError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}

    def _write(self, name: str, file: str, fields: dict[str, Any]) -> None:
        self._replace(name, file, json.dumps(fields, indent=1).encode() + b"\n")

    def _replace(self, name: str, file: str, content: bytes) -> None:
        folder, staged = self.folder(name), f"{file}.{os.urandom(8).hex()}"
        self._disk.create(os.path.join(folder, staged), content)
        with open_store_folder(folder) as opened:
            self._disk.replace(opened, staged, opened, file)
        self._disk.sync_directory(folder)


def _unpacked(content: bytes) -> list[tuple[int, bytes]]:
    """Return the entries in a file of the log. Raises RecordInvalid if it is damaged."""
    found: list[tuple[int, bytes]] = []
    body = content[HASH_SIZE:]
    if content[:HASH_SIZE] != blob_id(body):
        raise RecordInvalid("it is not what was written")
    for each in Fields(decode(body)).items("entries"):
        match each:
            case [int(number), bytes(encoded)] if type(number) is int:
                found.append((number, encoded))
            case _:
                raise RecordInvalid("it is no list of entries")
    return found


def mirrored(root: str) -> Mirrored | None:
    """Return whose mirror the store of the workspace in `root` is (None: it is none)."""
    members, member = os.path.split(root)
    folder, inside = os.path.split(members)
    above, remote = os.path.split(folder)
    home, _ = os.path.split(os.path.dirname(above))
    is_one = inside == "members" and above == os.path.join(home, STORE_NAME, _FOLDER)
    return Mirrored(home=home, remote=remote, member=member) if is_one else None


def label_of(text: str) -> str:
    """Return a text as a label: what a store calls itself in a bucket."""
    return "".join(char for char in text if char.isprintable())[:MAX_LABEL] or "store"


def _seen(read: object, body: bytes) -> Seen | None:
    match read:
        case [int(number), str(name)]:
            return Seen(number=number, name=bytes.fromhex(name), body=body)
        case _:
            return None


def _member(lane: str, read: dict[str, Any]) -> Member:
    seen = Seen(number=int(read["number"]), name=bytes.fromhex(read["hash"]))
    return Member(lane=Lane(lane), name=str(read["name"]), seen=seen, edits=int(read["edits"]))
