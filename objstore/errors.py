"""Everything that can go wrong, as one tree: each error carries its facts and one sentence that a person can act on."""

from collections.abc import Mapping, Sequence
from typing import Final

__all__ = [
    "UNREADABLE",
    "AmbiguousName",
    "BlobDamaged",
    "BlobMissing",
    "BlobTooLarge",
    "BundleRefused",
    "CallAborted",
    "CasError",
    "CompactionSpaceNeeded",
    "ConversationReserved",
    "DecidedMeanwhile",
    "DiskFailed",
    "DiskFull",
    "EditExpired",
    "FileChanged",
    "FileExists",
    "FileMissing",
    "FileTooLarge",
    "FormatTooNew",
    "HistoryBroken",
    "IndexDamaged",
    "IndexUnusable",
    "NamesShared",
    "NoSuchName",
    "NoSuchSetting",
    "NotAWorkspace",
    "NotAmendable",
    "NotBundled",
    "NotInSnapshot",
    "PathError",
    "PathInvalid",
    "PathIsDirectory",
    "PathIsSymlink",
    "PathNotRegular",
    "PathOutside",
    "PathReserved",
    "PathUnreachable",
    "PermissionRefused",
    "PurgeRefused",
    "PurgeUnfinished",
    "RecordInvalid",
    "SeriesBroken",
    "SettingInvalid",
    "SettingsUnreadable",
    "SnapshotIncomplete",
    "SnapshotsNotComparable",
    "StoreDamaged",
    "StoreError",
    "StoreLinked",
    "StoreLocked",
    "StoreNotRegular",
    "StorePlaceTaken",
    "StoreRefuses",
    "StoreReplaced",
    "StoreUnknown",
    "TreeInvalid",
    "Unacknowledged",
]


class CasError(Exception):
    """Base of every error this package raises on purpose."""


# ---- names


class NotAWorkspace(CasError):
    """No store was found at or above a folder, or there is no such folder."""

    def __init__(self, start: str, *, is_folder: bool = True) -> None:
        self.start = start
        super().__init__(
            f"No workspace at {start} or above it. Run `cas init` in the folder to record."
            if is_folder
            else f"No workspace at {start}: no folder is to be found there."
        )


class NoSuchName(CasError):
    """A spelling names no edit, hunk, conversation, state or blob of this workspace."""

    def __init__(self, spelling: str, kind: str) -> None:
        self.spelling = spelling
        self.kind = kind
        super().__init__(f"No {kind} is named {spelling!r} here.")


class NotInSnapshot(NoSuchName):
    """A path names nothing that a snapshot holds, and nothing that came since where it was taken."""

    def __init__(self, spelling: str, number: int, near: Sequence[str]) -> None:
        self.number = number
        self.near = tuple(near)  # paths in the snapshot that may be meant
        super().__init__(spelling, f"file or folder of snapshot {number}")


class AmbiguousName(CasError):
    """A prefix names more than one thing."""

    def __init__(self, spelling: str, kind: str, candidates: Sequence[str]) -> None:
        self.spelling = spelling
        self.kind = kind
        self.candidates = tuple(candidates)
        shown = ", ".join(self.candidates[:5])
        super().__init__(f"{spelling!r} is the beginning of more than one {kind}: {shown}.")


class EditExpired(CasError):
    """Retention let go of what an edit changed: it can be neither shown nor decided any more."""

    def __init__(self, seq: int, time: int, reason: str) -> None:
        self.seq = seq
        self.time = time  # of the expiry, in microseconds since 1970-01-01 UTC
        self.reason = reason
        super().__init__(f"Edit {seq} expired on {_day(time)}: {reason}. Its record is kept, what it changed is not.")


class PurgeRefused(CasError):
    """Bytes can't be purged: something holds them that only a person may let go."""

    def __init__(
        self,
        files: Sequence[str],
        changed_outside: Sequence[str],
        pending: Sequence[int],
        snapshots: Sequence[int],
        pins: Sequence[int],
    ) -> None:
        self.files = tuple(files)
        self.changed_outside = tuple(changed_outside)
        self.pending = tuple(pending)
        self.snapshots = tuple(snapshots)
        self.pins = tuple(pins)
        reasons = []
        if self.files:
            reasons.append(f"{', '.join(self.files)} holds these bytes now. Change it first")
        if self.changed_outside:
            changed = ", ".join(self.changed_outside)
            reasons.append(f"{changed} was changed outside since: `cas record` that first")
        if reasons:
            super().__init__(f"Nothing was purged: {'; '.join(reasons)}; then they are history, and can be purged.")
            return
        kinds = {"pending edit": self.pending, "snapshot": self.snapshots, "pin": self.pins}
        held = "; ".join(
            f"{kind}{'' if len(numbers) == 1 else 's'} {' '.join(map(str, numbers))}"
            for kind, numbers in kinds.items()
            if numbers
        )
        super().__init__(f"Nothing was purged, because this would go too: {held}. --force lets it go.")


class NotAmendable(CasError):
    """An edit has no result that could be amended."""

    def __init__(self, seq: int, reason: str) -> None:
        self.seq = seq
        self.reason = reason
        super().__init__(f"Edit {seq} can't be amended: {reason}.")


class ConversationReserved(CasError):
    """A conversation's name means something else."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The conversation {name!r} is kept for changes that nobody recorded; choose another name.")


# ---- settings


class NoSuchSetting(CasError):
    """A name means no setting."""

    def __init__(self, name: str, origin: str, near: str) -> None:
        self.name = name
        self.origin = origin  # path of the file that has it; "": somebody asked for it
        self.near = near  # a setting of a similar name; "": none
        where = f" (in {origin})" if origin else ""
        hint = f" Is {near} meant?" if near else " `cas config` lists them."
        super().__init__(f"There is no setting {name!r}{where}.{hint}")


class SettingInvalid(CasError):
    """A setting has a value that it can't have."""

    def __init__(self, name: str, spelling: str, origin: str, reason: str) -> None:
        self.name = name
        self.spelling = spelling
        self.origin = origin  # path of a file or name of a variable; "": somebody asked for it
        self.reason = reason
        where = f" in {origin}" if origin else ""
        super().__init__(f"{name} can't be {spelling!r}{where}: it takes {reason}.")


class SettingsUnreadable(CasError):
    """A file with settings can't be read, or can't be changed."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"The settings in {path} can't be used: {reason}.")


# ---- the user's files


class PathError(CasError):
    """Base of refusals that concern one path."""

    def __init__(self, path: str, sentence: str) -> None:
        self.path = path
        super().__init__(sentence)


class PathInvalid(PathError):
    """The spelling can't be a path: empty, with a NUL byte, or too long."""

    def __init__(self, path: str, reason: str) -> None:
        self.reason = reason
        super().__init__(path, f"Not a usable path ({reason}): {path!r}")


class PathOutside(PathError):
    """The path, or what it links to, lies outside the workspace."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"Path is outside the workspace: {path}")


class PathReserved(PathError):
    """The path belongs to the store or to a version-control system."""

    def __init__(self, path: str, owner: str) -> None:
        self.owner = owner
        super().__init__(path, f"Path is reserved for {owner}: {path}")


class PathIsSymlink(PathError):
    """A file that is to be changed is a symbolic link."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"Symlinks are not allowed (security policy): {path}")


class PathIsDirectory(PathError):
    """A directory stands where a file is meant."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"Is a directory, not a file: {path}")


class PathNotRegular(PathError):
    """A device, socket or FIFO stands where a file is meant."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"Not a regular file: {path}")


class FileMissing(PathError):
    """The file does not exist."""

    def __init__(self, path: str, other: str = "") -> None:
        self.other = other  # what is there by one of the path's names, in another Unicode form; "": nothing
        super().__init__(path, f"File not found: {path}")


class FileExists(PathError):
    """Something exists where nothing may."""

    def __init__(self, path: str, held: Sequence[str] = ()) -> None:
        self.held = tuple(held)  # of a folder that would have to go: what keeps it
        shown = 3
        named = ", ".join(self.held[:shown]) + (f" and {len(held) - shown} more" if len(held) > shown else "")
        super().__init__(
            path,
            f"A folder stands at {path}, and what is in it is to stay ({named}): move it away and do the same again, "
            f"or leave out the edits of {path}."
            if held
            else f"Already exists: {path}",
        )


class FileTooLarge(PathError):
    """The file is over the limit on what is held in memory."""

    def __init__(self, path: str, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(path, f"File too large: {size} bytes (max: {limit}): {path}")


class PermissionRefused(PathError):
    """The operating system does not let us read or write the path."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"Permission denied: {path}")


class PathUnreachable(PathError):
    """What stands at the path can't be told because its file system is away, as a mount whose server has gone."""


class FileChanged(PathError):
    """The file is no longer what it was a moment ago; nothing was written over it."""

    def __init__(self, path: str, link: str = "") -> None:
        self.link = link  # a folder of its path that is a symbolic link now; empty: none is
        super().__init__(
            path,
            f"The folder {link} is a symlink now, which is not followed: {path}"
            if link
            else f"File changed on disk meanwhile; look at it again: {path}",
        )


class NamesShared(PathError):
    """Two paths are names of one file, and would have to become different; nothing was changed."""

    def __init__(self, path: str, other: str) -> None:
        self.other = other
        super().__init__(
            path,
            f"{path} and {other} are one file under two names (hard links) and can't become different; nothing was "
            f"changed. Make {path} a file of its own first, with a copy that takes its place.",
        )


# ---- the store


class StoreError(CasError):
    """Base of faults of the store itself."""


class StoreLocked(StoreError):
    """Another process held the writer lock for too long, or is sweeping (`seconds`: 0), for which nobody waits."""

    def __init__(self, path: str, seconds: float) -> None:
        self.path = path
        self.seconds = seconds
        at_it = f"has been writing for {seconds:g} s" if seconds else "is collecting or compressing at this moment"
        super().__init__(f"Another process {at_it}: {path}. Try again.")


class StoreRefuses(StoreError):
    """A write failed earlier, so the store takes no more until it is opened again."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The store refuses to write until it is opened again: {reason}")


class StoreReplaced(StoreError):
    """What was opened lies at its path no more: it was moved, or something else was put in its place."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} is not what was opened: it was moved or replaced. Nothing was changed; try again.")


class PurgeUnfinished(StoreError):
    """What was purged is let go of, but its bytes are still in the store's files."""

    def __init__(self) -> None:
        super().__init__(
            "Nothing refers to it any more, but its bytes are still in the store: others kept writing. "
            "Run the same command again."
        )


class StoreDamaged(StoreError):
    """Bytes of the store are not what was written."""

    def __init__(self, segment: int, offset: int, reason: str) -> None:
        self.segment = segment
        self.offset = offset
        self.reason = reason
        super().__init__(f"Store damaged in segment {segment} at byte {offset}: {reason}")


class IndexDamaged(StoreError):
    """The index is not what the log makes it, so what nothing holds can't be told from it."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"The index is damaged: {what}. `cas fsck --repair` makes it anew.")


class StoreUnknown(StoreError):
    """No segment tells which store it belongs to, and without that no frame can be told from chance."""

    def __init__(self, segments: Sequence[str]) -> None:
        self.segments = tuple(segments)
        super().__init__(
            "No header of a segment can be read, so frames can't be checked. Give the store's id with --store-id "
            f"({len(self.segments)} files looked at)."
        )


class StoreLinked(StoreError):
    """A symbolic link lies in the store; what it leads to may be anything."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"The store is not used, because a symbolic link is in it: {path}. Remove the link, or put in its place "
            "what belongs there; what it leads to was not touched."
        )


class StoreNotOwned(StoreError):
    """A store belongs to another user, and nobody who may has allowed to open it."""

    def __init__(self, root: str, owner: int, allowed: str) -> None:
        self.root = root
        self.owner = owner
        super().__init__(
            f"The store in {root} belongs to another user (uid {owner}), so it is not opened: its settings would hold "
            f"for you. If you trust it, run the command with CAS_SAFE_DIRECTORY={root}, or add the folder as a line to "
            f"{allowed}."
        )


class StoreHardLinked(StoreLinked):
    """A file of the store has a second name outside its folder; a write would change that file, too."""

    def __init__(self, path: str) -> None:
        self.path = path
        StoreError.__init__(
            self,
            f"The store is not used, because one of its files has another name (a hard link), and a write would change "
            f"that file, too: {path}. Give the store a file of its own: "
            "`cp -p FILE FILE.copy && mv FILE.copy FILE`; what the other name holds was not touched.",
        )


class StorePlaceTaken(StoreError):
    """Where a store is to be made something else has its name, or what is left of a store without its segments."""

    def __init__(self, path: str, *, is_folder: bool = True) -> None:
        self.path = path
        taken = f"No store can be made: {path} is there, and"
        super().__init__(
            f"{taken} holds no store. Put its segments back if they were moved away, or put it aside (mv)."
            if is_folder
            else f"{taken} is no folder. Put it aside (mv)."
        )


class StoreNotRegular(StoreError):
    """What has the name of a file of the store is a pipe or a device, a socket or a folder."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"The store is not used, because this is no regular file: {path}. "
            "Remove it, or put in its place what belongs there."
        )


class FormatTooNew(StoreError):
    """The store was written by a newer version."""

    def __init__(self, version: int, known: int) -> None:
        self.version = version
        self.known = known
        super().__init__(f"The store has format {version}; this version reads up to {known}. Upgrade editledger.")


class RecordInvalid(StoreError):
    """Bytes are not the one canonical spelling of a record."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Not a record: {reason}")


class TreeInvalid(StoreError):
    """Bytes are not the one canonical spelling of a tree."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Not a tree: {reason}")


class SnapshotIncomplete(StoreError):
    """A snapshot could not take in all that it covers, and none was recorded."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"No snapshot was taken: {reason}. Name a folder, or ignore what need not be covered")


class SnapshotUnreadable(StoreError):
    """A tree of a snapshot is lost or damaged, so nobody can tell all that it holds."""

    def __init__(self, number: int, reason: str) -> None:
        self.number = number
        self.reason = reason
        super().__init__(
            f"Snapshot {number} can't be read: {reason.rstrip('.')}. `cas snapshot delete {number}` gives it up."
        )


class NotBundled(StoreError):
    """What is held in a store is lost, so that no import would take a bundle of it."""

    def __init__(self, lost: Sequence[bytes]) -> None:
        self.lost = tuple(lost)  # ids of blobs
        more = len(lost) - 1
        others = f" and {more} more are" if more else " is"
        them = "them" if more else "it"
        super().__init__(
            f"No bundle is written: blob {lost[0].hex()}{others} lost, and no import would take it. `cas fsck` names "
            f"what holds {them}; `cas purge PATH@N` lets go of what edit N led to, `cas snapshot delete N` of a "
            "snapshot."
        )


class SnapshotsNotComparable(StoreError):
    """Two snapshots are of folders of which neither lies in the other, or one left out what the other is of."""

    def __init__(self, number: int, path: str, other: int, other_path: str) -> None:
        self.number = number
        self.path = path  # the folder of that one, relative to the workspace; "": all of it
        self.other = other
        self.other_path = other_path
        super().__init__(
            f"Snapshots {number} and {other} cover nothing in common: one is of {path or 'the workspace'}, "
            f"the other of {other_path or 'the workspace'}."
        )


class BundleRefused(StoreError):
    """A bundle is not what one has to be."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The bundle is refused, and nothing was imported: {reason}.")


class DecidedMeanwhile(CasError):
    """What a reviewer wanted to decide has been decided since they were shown it; nothing was changed."""

    def __init__(self, decided: Mapping[str, str]) -> None:
        self.decided = decided  # the hunks, as they are named, each with the status that it has now
        shown = 5
        named = ", ".join([*decided][:shown]) + (f" and {len(decided) - shown} more" if len(decided) > shown else "")
        was, statuses = "was" if len(decided) == 1 else "were", ", ".join(sorted(set(decided.values())))
        super().__init__(f"{named} {was} decided elsewhere meanwhile ({statuses} now); nothing was changed.")


class SeriesBroken(CasError):
    """Edits were chosen without others that need them."""

    def __init__(self, seq: int, needs: tuple[int, ...]) -> None:
        self.seq = seq
        self.needs = needs
        named = " ".join(map(str, needs))
        super().__init__(f"Edit {seq} needs what is chosen (edits {named}): choose it too, or leave them out.")


class HistoryBroken(StoreError):
    """Replaying records does not give the state that they say."""

    def __init__(self, path: str, seq: int, reason: str) -> None:
        self.path = path
        self.seq = seq
        self.reason = reason
        super().__init__(f"History of {path} does not add up at edit {seq}: {reason}")


class BlobMissing(StoreError):
    """No blob has this id here."""

    def __init__(self, blob: bytes) -> None:
        self.blob = blob
        super().__init__(f"No blob {blob.hex()} in this store.")


class BlobDamaged(StoreError):
    """A stored blob doesn't hash to its id, or can't be decoded."""

    def __init__(self, blob: bytes, reason: str) -> None:
        self.blob = blob
        self.reason = reason
        super().__init__(f"Blob {blob.hex()} is damaged: {reason}")


UNREADABLE: Final = (BlobMissing, BlobDamaged, StoreDamaged)
"""What is raised where the bytes of a blob can't be had, though something names it."""


class BlobTooLarge(StoreError):
    """A blob is over the limit on what is held in memory: it can only be read piece by piece."""

    def __init__(self, blob: bytes, size: int, limit: int) -> None:
        self.blob = blob
        self.size = size
        self.limit = limit
        super().__init__(f"Blob {blob.hex()} is too large to be shown: {size} bytes (max: {limit}). See `cas cat`.")


class DiskFailed(StoreError):
    """An operation on the disk failed."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{reason}: {path}")


class IndexUnusable(DiskFailed):
    """The index is damaged; it is derived, and made anew by whoever asks it next."""


class Unacknowledged(StoreError):
    """A write failed so late that only opening the store again tells whether it holds."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Whether the change holds shows when the store is opened again: {reason}")


class FileUninspectable(DiskFailed):
    """A file can't be looked at that a call which was cut off may still have to change, so nothing is written."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            path,
            f"{reason}; a call that was cut off may not have come to its end there, and nothing is written until that "
            "can be seen, or the file is out of the way",
        )


class DiskFull(DiskFailed):
    """There is no room (or quota) for a write. What was recorded before it holds: no claim is made about that."""

    def __init__(self, path: str, reason: str = "No space left on the disk") -> None:
        super().__init__(path, reason)


class NoSpaceToRecord(DiskFull):
    """There is no room to record what changes no file; the space reserve of the store is for that."""


class CompactionSpaceNeeded(DiskFull):
    """There is no room to write a segment anew; what was done before that holds."""

    def __init__(self, path: str, needed: int) -> None:
        self.needed = needed  # bytes, about
        super().__init__(
            path,
            "No space left on the disk. What stays of a segment is written anew before the old one goes: free about "
            f"{max(needed, 100_000) / 1e6:,.1f} MB, or let more history go (`--older-than`, `--max-size`) so that less "
            "stays, and run it again. What was done so far holds, and nothing that is held was lost",
        )


class CallAborted(CasError):
    """A call was recorded, could not be carried out on the user's files, and was taken back whole."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"Could not replace {path} ({reason}); every file of the call is as it was before.")


def _day(microseconds: int) -> str:
    """Return the day of a moment, in UTC."""
    from objstore.dates import date_of

    return date_of(microseconds).strftime("%Y-%m-%d")
