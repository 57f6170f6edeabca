"""Share the store through buckets: push, pull, clone, and decide on what other stores have."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from objstore.values.fastclass import value

# What only some methods need is imported in them, as in the other roles.
if TYPE_CHECKING:
    from objstore.disk.fs.disk import Disk
    from objstore.model.basic_types import Progress
    from objstore.storage.transaction.journal import Journal
    from objstore.upkeep.remote.bucket import Bucket
    from objstore.upkeep.remote.collect import Collected
    from objstore.upkeep.remote.heads import Head
    from objstore.upkeep.remote.probe import Probed
    from objstore.upkeep.remote.push import Pushed, PushPlan
    from objstore.upkeep.remote.remotes import Member, Remote, RemoteState
    from objstore.upkeep.transfer.import_export import Imported

__all__ = ["Added", "PulledMember", "Remotes", "clone_remote", "plan_clone", "stores_in"]

_TRIES: Final = 3
_MOST_STORES: Final = 10_000


@value
class Added:
    """A remote that was added, and what its probe found."""

    remote: Remote
    probed: Probed


@value
class PulledMember:
    """What a pull got of one other store."""

    member: Member
    is_new: bool  # whether there was anything that this store had not seen
    size: int  # bytes fetched
    error: str = ""  # why nothing was taken of it; "": nothing was wrong


class Remotes:
    """Share the store through buckets."""

    def __init__(self, journal: Journal) -> None:
        """Wrap an open journal."""
        from objstore.upkeep.remote.remotes import Remotes as KnownRemotes

        self._journal: Final = journal
        self._known: Final = KnownRemotes(journal.tree.root, journal.disk)

    # ---- the remotes

    def all(self) -> list[tuple[Remote, RemoteState]]:
        """Return every remote with what was seen of it last; nothing is asked of a bucket."""
        return [(remote, self._known.state(remote.name)) for remote in self._known.all()]

    def get(self, name: str) -> tuple[Remote, RemoteState]:
        """Return one remote. Raises RemoteUnknown."""
        return self._known.get(name), self._known.state(name)

    def add(self, name: str, url: str, *, label: str = "", push: str = "never") -> Added:
        """Add a remote, after a probe of its bucket. `label`: what this store calls itself there ("": its folder).

        Raises RemoteSupportMissing, RemoteNameRefused, RemoteUrlRefused, RemoteFailed, and RemoteRefused if the bucket
        doesn't keep what a remote needs.
        """
        from objstore.upkeep.remote.bucket import open_bucket
        from objstore.upkeep.remote.keys import lane_of
        from objstore.upkeep.remote.probe import probe
        from objstore.upkeep.remote.remotes import Remote, label_of

        self._known.require_free(name)
        self._require_outside(url)
        bucket = open_bucket(url, makes_folder=True)
        probed = probe(bucket)
        with self._journal.reading() as store:
            lane = lane_of(store.log.store)
        own = label_of(label or os.path.basename(self._journal.tree.root))
        remote = Remote(name=name, url=url, lane=lane, label=own, push=push)
        self._known.put(remote)
        return Added(remote=remote, probed=probed)

    def member(self, spelling: str) -> tuple[Remote, Member] | None:
        """Return the other store that `NAME` or `REMOTE/NAME` names (None: none); it has been pulled before."""
        return self._known.member(spelling)

    def mirror(self, remote: Remote, member: Member) -> str:
        """Return the folder of the mirror of another store, which `Workspace.open` opens."""
        return self._known.folder(remote.name, "members", member.name)

    def set_push(self, name: str, push: str) -> Remote:
        """Say when a remote is pushed to by itself. Raises RemoteUnknown and StoreLocked."""
        from objstore.values.fastclass import replace

        self._known.get(name)
        with self._known.held(name):  # a push may take a new lane
            remote = replace(self._known.get(name), push=push)
            self._known.put(remote)
        return remote

    def remove(self, name: str) -> None:
        """Forget a remote with its mirrors; the bucket keeps what it has. Raises RemoteUnknown and StoreLocked."""
        self._known.get(name)
        with self._known.held(name):
            self._known.forget(name)

    def behind(self, state: RemoteState) -> int:
        """Return how many edits were recorded since the last push; -1: none, but something else was."""
        with self._journal.reading() as store:
            edits, end = store.next_seq() - 1, store.end
        count = edits - state.pushed_edits
        return count or (0 if (end.segment, end.offset) == state.pushed_end else -1)

    # ---- push and pull

    def push(
        self,
        name: str,
        *,
        again: bool = False,
        new_lane: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Pushed | PushPlan:
        """Send what a remote lacks of this store; a dry run returns what would be sent.

        `again`: the bucket was rolled back. `new_lane`: the bucket has another history of this store. Raises
        RemoteUnknown, StoreLocked, and what `objstore.upkeep.remote.push.push` raises.
        """
        from objstore.upkeep.remote.bucket import open_bucket
        from objstore.upkeep.remote.keys import new_lane as further_lane, store_of
        from objstore.values.fastclass import replace

        remote = self._known.get(name)
        bucket = open_bucket(remote.url, makes_folder=again)
        with self._known.held(name):
            if new_lane and not dry_run:
                remote = replace(remote, lane=further_lane(store_of(remote.lane), os.urandom(4)))
                self._known.put(remote)
                self._known.save(name, pushed=None)
            return self.push_held(remote, bucket, again=again, dry_run=dry_run, progress=progress)

    def push_held(
        self,
        remote: Remote,
        bucket: Bucket,
        *,
        again: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Pushed | PushPlan:
        """Do as `push` while the remote is held."""
        from objstore.upkeep.remote.push import Pushed, push

        with self._journal.reading() as store:
            done = push(
                bucket,
                remote.lane,
                store,
                label=remote.label,
                seen=self._known.state(remote.name).pushed,
                again=again,
                dry_run=dry_run,
                progress=progress,
            )
        if isinstance(done, Pushed):
            end, edits = done.head.end, done.head.edits
            pushed_end = (end.segment, end.offset)
            self._known.save(remote.name, pushed=done.seen, pushed_edits=edits, pushed_end=pushed_end, failure="")
        return done

    def note_failure(self, name: str, why: str) -> None:
        """Remember why a push in the background failed, for the status; not while another process uses the remote."""
        from contextlib import suppress

        from objstore.values.errors import StoreLocked

        with suppress(StoreLocked), self._known.held(name):  # else what a pull or push saves now would be lost
            self._known.save(name, failure=why)

    def pull(self, name: str, *, dry_run: bool = False, progress: Progress | None = None) -> list[PulledMember]:
        """Fetch and check what other stores have pushed to a remote; no file of the workspace changes.

        What is wrong with one store does not keep the others from being pulled. Raises RemoteUnknown, StoreLocked,
        RemoteRefused and RemoteFailed.
        """
        from objstore.upkeep.remote.bucket import open_bucket
        from objstore.values.request_errors import RemoteFailed, RemoteRefused, RemoteRolledBack

        remote = self._known.get(name)
        bucket = open_bucket(remote.url)
        pulled: list[PulledMember] = []
        with self._known.held(name):
            lanes = stores_in(bucket)
            known = self._known.state(name).members
            for lane in dict.fromkeys([*lanes, *known]):
                if lane == remote.lane:
                    continue
                member = known.get(lane)
                try:
                    found = self._pull_one(remote, bucket, lane, member, dry_run=dry_run, progress=progress)
                except (RemoteRefused, RemoteRolledBack) as error:
                    if member is None:
                        member = self._unknown_member(lane)
                    found = PulledMember(member=member, is_new=False, size=0, error=str(error))
                except RemoteFailed as error:
                    if member is None:
                        raise
                    found = PulledMember(member=member, is_new=False, size=0, error=str(error))
                if found is not None:
                    pulled.append(found)
        return pulled

    def collect(self, name: str, *, purge: bool = False, dry_run: bool = False) -> Collected:
        """Remove from this store's lane what its newest head does not need; a purge first pushes, and doesn't wait.

        Raises RemoteUnknown, RemoteRolledBack, RemoteFailed, and what `push` raises.
        """
        from objstore.upkeep.remote.bucket import open_bucket
        from objstore.upkeep.remote.collect import collect

        if not dry_run:
            self.push(name)
        remote = self._known.get(name)
        with self._known.held(name):
            seen = self._known.state(name).pushed
            return collect(open_bucket(remote.url), remote.lane, seen, purge=purge, dry_run=dry_run)

    # ---- inside

    def _require_outside(self, url: str) -> None:
        """Raise RemoteUrlRefused for a folder in the workspace: its own copy would be recorded, and lost with it."""
        from objstore.upkeep.remote.bucket import local_path
        from objstore.values.request_errors import RemoteUrlRefused

        folder, root = local_path(url), self._journal.tree.root
        if folder is not None and os.path.commonpath([os.path.realpath(folder), root]) == root:
            raise RemoteUrlRefused(url, "it is inside this workspace, and would be lost with it")

    def _unknown_member(self, lane: str) -> Member:
        from objstore.upkeep.remote.heads import Seen
        from objstore.upkeep.remote.keys import Lane
        from objstore.upkeep.remote.remotes import Member

        return Member(lane=Lane(lane), name=lane, seen=Seen(number=0, name=b""))

    def _pull_one(
        self,
        remote: Remote,
        bucket: Bucket,
        lane: str,
        member: Member | None,
        *,
        dry_run: bool,
        progress: Progress | None,
    ) -> PulledMember | None:
        """Bring one mirror up to date; None: the lane is empty.

        Raises RemoteRefused, RemoteRolledBack and RemoteFailed.
        """
        from objstore.upkeep.remote.heads import Seen, newest_head
        from objstore.upkeep.remote.keys import Lane
        from objstore.upkeep.remote.pull import fetch, is_whole, mirror
        from objstore.upkeep.remote.remotes import Member
        from objstore.values.fastclass import replace
        from objstore.values.request_errors import ObjectMissing

        for tries_left in reversed(range(_TRIES)):
            found = newest_head(bucket, Lane(lane), None if member is None else member.seen)
            if found is None:
                return None
            head, name = found
            if member is None:
                local = self._known.free_name(head.label, head.lane)
                member = Member(lane=head.lane, name=local, seen=Seen(number=0, name=b""))
            place = self._known.folder(remote.name, "members", member.name)
            incoming = self._known.folder(remote.name, f"incoming-{lane}")
            if head.number == member.seen.number and is_whole(head, place):
                return PulledMember(member=member, is_new=False, size=0)
            having = os.path.join(place, ".cas", "segments")
            disk = self._journal.disk
            member = replace(member, seen=Seen(number=head.number, name=name), edits=head.edits)
            if dry_run:
                plan = fetch(bucket, head, incoming, disk, having=having, dry_run=True)
                return PulledMember(member=member, is_new=True, size=plan.size)
            try:
                size = mirror(bucket, head, place, incoming, disk, progress)
            except ObjectMissing:
                newest = newest_head(bucket, Lane(lane), None)
                # A collection removed it meanwhile: what is newer has all that it needs.
                if not tries_left or newest is None or newest[0].number == head.number:
                    raise
                continue
            members = {**self._known.state(remote.name).members, lane: member}
            self._known.save(remote.name, members=members)
            return PulledMember(member=member, is_new=True, size=size)
        return None


def stores_in(bucket: Bucket) -> list[str]:
    """Return the lanes in a bucket, ascending. Raises RemoteRefused if there are too many, and RemoteFailed."""
    from objstore.upkeep.remote.keys import STORES, is_lane
    from objstore.values.request_errors import RemoteRefused

    found = [name for name in bucket.folders(STORES) if is_lane(name)]
    if len(found) > _MOST_STORES:
        raise RemoteRefused(bucket.url, f"it has {len(found)} stores, and at most {_MOST_STORES} are pulled")
    return found


def plan_clone(url: str, directory: str, *, store: str = "") -> tuple[Member, int]:
    """Return the store that `clone_remote` would make `directory` from, and how many bytes it would fetch.

    Raises as that does, and changes nothing.
    """
    from objstore.disk.fs.confined_path import require_not_reserved
    from objstore.storage.store.create import is_creation_folder
    from objstore.upkeep.remote.bucket import open_bucket
    from objstore.upkeep.remote.heads import Seen
    from objstore.upkeep.remote.pull import missing
    from objstore.upkeep.remote.remotes import Member, label_of
    from objstore.values.errors import FileExists

    head, name = _meant(open_bucket(url), store)
    require_not_reserved(directory)
    if os.path.lexists(directory):
        for each in os.listdir(directory):
            if not is_creation_folder(each):
                raise FileExists(os.path.join(directory, each))
    seen = Seen(number=head.number, name=name)
    return Member(lane=head.lane, name=label_of(head.label), seen=seen, edits=head.edits), missing(
        head, _incoming(directory)
    )


def clone_remote(
    url: str, directory: str, *, store: str = "", progress: Progress | None = None, disk: Disk | None = None
) -> tuple[Imported, Remote]:
    """Make a workspace in the new or empty `directory` from a store in a bucket, with its files and its whole history.

    `store`: the label, or the beginning of the lane, of the store that is meant ("": the only one). The bucket is a
    remote of the new workspace, by the name `origin`. Raises NoSuchName, FileExists, PathReserved, RemoteUrlRefused,
    RemoteRefused and RemoteFailed.
    """
    from objstore.disk.fs.disk import Disk
    from objstore.upkeep.remote.bucket import open_bucket
    from objstore.upkeep.remote.heads import Seen
    from objstore.upkeep.remote.pull import clone
    from objstore.upkeep.remote.remotes import Remote, Remotes as KnownRemotes, label_of

    bucket, disk = open_bucket(url), disk or Disk()
    head, name = _meant(bucket, store)
    made = clone(bucket, head, directory, _incoming(directory), disk, progress)
    known = KnownRemotes(made.root, disk)
    remote = Remote(name="origin", url=url, lane=head.lane, label=label_of(head.label))
    known.put(remote)
    end = head.end
    known.save(
        remote.name,
        pushed=Seen(number=head.number, name=name),
        pushed_edits=head.edits,
        pushed_end=(end.segment, end.offset),
    )
    return made, remote


def _incoming(directory: str) -> str:
    """Return the folder in which a clone into `directory` keeps what it fetched."""
    return f"{os.path.abspath(directory).rstrip('/')}.incoming"


def _meant(bucket: Bucket, store: str) -> tuple[Head, bytes]:
    """Return the newest head of the store that a label or the beginning of a lane names, and its hash."""
    from objstore.upkeep.remote.heads import newest_head
    from objstore.upkeep.remote.keys import Lane
    from objstore.values.request_errors import AmbiguousName, NoSuchName, RemoteRefused

    found = [head for lane in stores_in(bucket) if (head := newest_head(bucket, Lane(lane), None)) is not None]
    meant = [each for each in found if not store or store == each[0].label or each[0].lane.startswith(store)]
    if len(meant) == 1:
        return meant[0]
    if not found:
        raise RemoteRefused(bucket.url, "no store has been pushed to it")
    if not meant:
        raise NoSuchName(store, "store of the bucket")
    raise AmbiguousName(
        store or bucket.url, "store: name one with --store", [f"{head.label} ({head.lane})" for head, _ in meant]
    )
