"""One tree of errors: each carries its facts, and one message that says what happened and what to do.

The tree is one module although it has more than 500 lines: it holds nothing but classes with a message each, in
sections by subject (names, settings, the user's files, the store), and a reader finds every message in one place.
"""

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
    "EditAway",
    "EditExpired",
    "EditTakenOut",
    "FileChanged",
    "FileExists",
    "FileMissing",
    "FileTooLarge",
    "FormatTooNew",
    "HistoryBroken",
    "IndexDamaged",
    "IndexUnusable",
    "NamesShared",
    "NoChangeAtLine",
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
    """Base of every error that this package raises on purpose."""


# ---- names


class NotAWorkspace(CasError):
    """No store exists at or above a folder, or the folder does not exist."""

    def __init__(self, start: str, *, is_folder: bool = True) -> None:
        self.start = start
        super().__init__(
            f"No workspace at {start} or above it. Run `cas init` in the folder that you want recorded."
            if is_folder
            else f"No workspace at {start}: this folder does not exist."
        )


class NoSuchName(CasError):
    """No edit, hunk, conversation, state or blob of this workspace has a name."""

    def __init__(self, spelling: str, kind: str) -> None:
        self.spelling = spelling
        self.kind = kind
        super().__init__(f"No {kind} is named {spelling!r} here.")


class NoChangeAtLine(CasError):
    """No pending change covers a line of a file."""

    def __init__(self, path: str, line: int, reason: str, near: Sequence[int] = ()) -> None:
        self.path = path
        self.line = line
        self.near = tuple(near)  # lines of the current file with a change, the nearest first
        more = f" The nearest change is at {path}:{self.near[0]}." if self.near else ""
        super().__init__(f"{path}:{line} {reason}.{more}")


class LineMissing(CasError):
    """A file has fewer lines than a comment names."""

    def __init__(self, path: str, line: int, count: int) -> None:
        self.path = path
        self.line = line
        self.count = count
        super().__init__(f"{path} has no line {line}: it has {count} line{'' if count == 1 else 's'}.")


class NotInSnapshot(NoSuchName):
    """A path names nothing in a snapshot, and nothing created since in the folder that the snapshot covers."""

    def __init__(self, spelling: str, number: int, near: Sequence[str]) -> None:
        self.number = number
        self.near = tuple(near)  # similar paths in the snapshot
        super().__init__(spelling, f"file or folder of snapshot {number}")


class AmbiguousName(CasError):
    """A prefix matches more than one name."""

    def __init__(self, spelling: str, kind: str, candidates: Sequence[str]) -> None:
        self.spelling = spelling
        self.kind = kind
        self.candidates = tuple(candidates)
        shown = ", ".join(self.candidates[:5])
        super().__init__(f"{spelling!r} matches more than one {kind}: {shown}. Type more of the name.")


class EditExpired(CasError):
    """An edit has expired: retention deleted its text, so it can be neither shown nor decided."""

    def __init__(self, seq: int, time: int, reason: str) -> None:
        self.seq = seq
        self.time = time  # of the expiry, in microseconds since 1970-01-01 UTC
        self.reason = reason
        super().__init__(f"Edit {seq} expired on {_day(time)}: {reason}. Its record is kept, but not its text.")


class NotClaimable(CasError):
    """It is recorded who made an edit, so that it can't be claimed."""

    def __init__(self, seq: int, origin: str) -> None:
        self.seq = seq
        self.origin = origin
        super().__init__(
            f"It is recorded who made edit {seq} (origin {origin}), so it can't be claimed: "
            "only changes that were found on disk can be."
        )


class EditAway(CasError):
    """Hunks can't be decided on: git put other bytes in place of their file's, so they have no effect now."""

    def __init__(self, units: Sequence[str]) -> None:
        self.units = tuple(units)  # their names, such as 12:2
        shown = 5
        more = len(self.units) - shown
        named = ", ".join(self.units[:shown]) + (f" and {more} more" if more > 0 else "")
        it, its = ("it", "its") if len(self.units) == 1 else ("they", "their")
        super().__init__(
            f"{named} {'is' if it == 'it' else 'are'} away: git put other bytes in place of the file's. "
            f"When {its} file has its bytes again (for example after `git checkout` of the branch where {it} "
            f"{'was' if it == 'it' else 'were'} made), {it} can be decided on again."
        )


class EditTakenOut(CasError):
    """Hunks can't be accepted: later accepted changes took what they did out of the file."""

    def __init__(self, units: Sequence[str], path: str, *, by_person: bool, is_recorded: bool = True) -> None:
        self.units = tuple(units)  # names for `cas reject`, such as 12:2
        self.path = path  # of one of the files
        self.by_person = by_person  # whether a person's changes took all of it out
        shown = 5
        more = len(self.units) - shown
        named = " ".join(self.units[:shown])
        it, change = ("it", "its change is") if len(self.units) == 1 else ("them", "their changes are")
        rest = f" ({more} more: `cas diff` names them)" if more > 0 else ""
        super().__init__(
            f"{named.replace(' ', ', ')} can't be accepted: {change} not in {path} any more, "
            f"because {'you' if by_person else 'later accepted edits'} took {it} out. "
            f"To reject {it}, run `cas reject {named}{'' if is_recorded else ' --my-changes keep'}`{rest}."
        )


class PurgeRefused(CasError):
    """Bytes can't be purged: a file, edit, snapshot or pin holds them, and only a person may give that up."""

    def __init__(
        self,
        files: Sequence[str],
        changed_outside: Sequence[str],
        pending: Sequence[int],
        pins: Sequence[int],
    ) -> None:
        self.files = tuple(files)
        self.changed_outside = tuple(changed_outside)
        self.pending = tuple(pending)
        self.pins = tuple(pins)
        reasons = []
        if self.files:
            one = len(self.files) == 1
            reasons.append(f"{', '.join(self.files)} still {'contains' if one else 'contain'} these bytes")
        if self.changed_outside:
            was = "was" if len(self.changed_outside) == 1 else "were"
            reasons.append(
                f"{', '.join(self.changed_outside)} {was} last recorded with them and changed since (see `cas record`)"
            )
        if reasons:
            super().__init__(
                f"Nothing was purged: {'. '.join(reasons)}. Name these files too, to remove all that is stored of "
                "them; or change them; or keep the bytes that they have, with --keep-shared."
            )
            return
        kinds = {"pending edit": self.pending, "pin": self.pins}
        held = "; ".join(
            f"{kind}{'' if len(numbers) == 1 else 's'} {' '.join(map(str, numbers))}"
            for kind, numbers in kinds.items()
            if numbers
        )
        super().__init__(f"Nothing was purged, because this would be removed too: {held}. Use --yes to remove it.")


class NotAmendable(CasError):
    """An edit has no result that can be amended."""

    def __init__(self, seq: int, reason: str) -> None:
        self.seq = seq
        self.reason = reason
        super().__init__(f"Edit {seq} can't be amended: {reason}.")


class ConversationReserved(CasError):
    """A conversation's name is reserved."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The conversation name {name!r} is reserved for changes that no tool made; choose another.")


# ---- settings


class NoSuchSetting(CasError):
    """No setting has this name."""

    def __init__(self, name: str, origin: str, near: str) -> None:
        self.name = name
        self.origin = origin  # path of the file that has the name; "": it was given in a command
        self.near = near  # a setting with a similar name; "": none
        where = f" (in {origin})" if origin else ""
        hint = f" Did you mean {near}?" if near else " `cas config` lists all settings."
        super().__init__(f"There is no setting {name!r}{where}.{hint}")


class SettingInvalid(CasError):
    """The value of a setting is not allowed."""

    def __init__(self, name: str, spelling: str, origin: str, reason: str) -> None:
        self.name = name
        self.spelling = spelling
        self.origin = origin  # path of a file or name of a variable; "": it was given in a command
        self.reason = reason
        where = f" in {origin}" if origin else ""
        super().__init__(f"{name} can't be {spelling!r}{where}: it takes {reason}.")


class SettingsUnreadable(CasError):
    """A settings file can't be read or can't be changed."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"The settings in {path} can't be used: {reason}.")


# ---- the user's files


class PathError(CasError):
    """Base of errors about one path."""

    def __init__(self, path: str, sentence: str) -> None:
        self.path = path
        super().__init__(sentence)


class PathInvalid(PathError):
    """A string can't be used as a path: it is empty, too long, or has a NUL byte, for example."""

    def __init__(self, path: str, reason: str) -> None:
        self.reason = reason
        super().__init__(path, f"Not a usable path ({reason}): {path!r}")


class PathOutside(PathError):
    """The path, or the target of a link in it, is outside the workspace."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"Path is outside the workspace: {path}")


class PathReserved(PathError):
    """The path belongs to the store or to a version-control system."""

    def __init__(self, path: str, owner: str) -> None:
        self.owner = owner
        super().__init__(path, f"Path is reserved for {owner}: {path}")


class PathIsSymlink(PathError):
    """A file that was to be changed is a symbolic link."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"Symlinks are not allowed (security policy): {path}")


class PathIsDirectory(PathError):
    """The path of a file is a directory."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"Is a directory, not a file: {path}")


class PathNotRegular(PathError):
    """The path of a file is a device, socket or FIFO."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"Not a regular file: {path}")


class FileMissing(PathError):
    """The file does not exist."""

    def __init__(self, path: str, other: str = "") -> None:
        self.other = other  # the existing path that differs only in its Unicode form; "": none
        super().__init__(path, f"File not found: {path}")


class FileExists(PathError):
    """Something exists at a path that must be free."""

    def __init__(self, path: str, held: Sequence[str] = ()) -> None:
        self.held = tuple(held)  # of a folder that would have to be removed: the paths in it that must stay
        shown = 3
        named = ", ".join(self.held[:shown]) + (f" and {len(held) - shown} more" if len(held) > shown else "")
        super().__init__(
            path,
            f"{path} is a folder, and these paths in it must stay: {named}. Move the folder away and try again, "
            f"or leave out the edits of {path}."
            if held
            else f"Already exists: {path}",
        )


class FileTooLarge(PathError):
    """The file is larger than the limit for files that are read into memory."""

    def __init__(self, path: str, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(path, f"File too large: {size} bytes (max: {limit}): {path}")


class PermissionRefused(PathError):
    """The operating system denies reading or writing the path."""

    def __init__(self, path: str) -> None:
        super().__init__(path, f"Permission denied: {path}")


class PathUnreachable(PathError):
    """The path can't be inspected because its file system is unavailable, such as a mount whose server is down."""


class FileChanged(PathError):
    """The file has changed since it was read; it was not overwritten."""

    def __init__(self, path: str, link: str = "") -> None:
        self.link = link  # a folder of its path that is now a symbolic link; "": none
        super().__init__(
            path,
            f"The folder {link} is now a symlink, and symlinks are not followed: {path}"
            if link
            else f"File changed on disk since it was read; read it again: {path}",
        )


class NamesShared(PathError):
    """Two paths are hard links to one file, and would have to get different contents; nothing was changed."""

    def __init__(self, path: str, other: str) -> None:
        self.other = other
        super().__init__(
            path,
            f"{path} and {other} are two names of one file (hard links), so they can't get different contents. Nothing "
            f"was changed. Replace {path} with a copy first: `cp -p FILE FILE.copy && mv FILE.copy FILE`.",
        )


# ---- the store


class StoreError(CasError):
    """Base of errors about the store itself."""


class StoreLocked(StoreError):
    """Another process held the writer lock for `seconds`, or is compacting or repacking (`seconds`: 0).

    A writer doesn't wait for the end of a compaction or repack: that may take minutes.
    """

    def __init__(self, path: str, seconds: float) -> None:
        self.path = path
        self.seconds = seconds
        at_it = f"has been writing for {seconds:g} s" if seconds else "is compacting or repacking the store"
        super().__init__(f"Another process {at_it}: {path}. Try again.")


class StoreRefuses(StoreError):
    """A write failed earlier, so the store accepts no more writes until it is opened again."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"An earlier write failed, so the store must be opened again before it is written to: {reason}"
        )


class StoreReplaced(StoreError):
    """The folder or file that was opened is no longer at its path: it was moved or replaced."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} was moved or replaced while it was open. Nothing was changed; try again.")


class PurgeUnfinished(StoreError):
    """Nothing refers to the purged bytes any more, but they are still in the store's files."""

    def __init__(self) -> None:
        super().__init__(
            "The purge is not finished: nothing refers to the bytes any more, but other processes kept writing, so the "
            "bytes are still in the store's files. Run the same command again."
        )


class StoreDamaged(StoreError):
    """Bytes of the store differ from what was written."""

    def __init__(self, segment: int, offset: int, reason: str) -> None:
        self.segment = segment
        self.offset = offset
        self.reason = reason
        super().__init__(f"Store damaged in segment {segment} at byte {offset}: {reason}")


class IndexDamaged(StoreError):
    """The index differs from the log, so it can't say which blobs nothing holds."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"The index is damaged: {what}. Rebuild it with `cas fsck --repair`.")


class StoreUnknown(StoreError):
    """No segment header gives the store's id, without which the frames' checksums can't be verified."""

    def __init__(self, segments: Sequence[str]) -> None:
        self.segments = tuple(segments)
        count = len(self.segments)
        super().__init__(
            f"No segment header can be read ({count} {'file was' if count == 1 else 'files were'} tried), so the "
            "store's id is unknown and frames can't be verified. Give the id with --store-id."
        )


class StoreLinked(StoreError):
    """The store contains a symbolic link, whose target may be anything."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"The store is not used, because it contains a symbolic link: {path}. Remove the link, or replace it with "
            "what belongs there. The link's target was not touched."
        )


class StoreNotOwned(StoreError):
    """The store belongs to another user, and the user who runs the command has not allowed it."""

    def __init__(self, root: str, owner: int, allowed: str) -> None:
        self.root = root
        self.owner = owner
        super().__init__(
            f"The store in {root} belongs to another user (uid {owner}), so it is not opened: its settings would apply "
            f"to you. If you trust it, run the command with CAS_SAFE_DIRECTORY={root}, or add the folder as a line to "
            f"{allowed}."
        )


class StoreHardLinked(StoreLinked):
    """A file of the store has a second name outside its folder; a write would change that file too."""

    def __init__(self, path: str) -> None:
        self.path = path
        StoreError.__init__(
            self,
            "The store is not used, because one of its files has a second name (a hard link), and a write would "
            f"change that file too: {path}. Replace it with a copy: `cp -p FILE FILE.copy && mv FILE.copy FILE`. The "
            "file with the other name was not touched.",
        )


class StorePlaceTaken(StoreError):
    """The path of a new store is taken, by something else or by a store whose segments are missing."""

    def __init__(self, path: str, *, is_folder: bool = True) -> None:
        self.path = path
        taken = f"No store was created: {path} exists and"
        super().__init__(
            f"{taken} holds no store. Put its segments back if they were moved away, or move {path} away (mv)."
            if is_folder
            else f"{taken} is not a folder. Move it away (mv)."
        )


class StoreNotRegular(StoreError):
    """A file of the store is a pipe, device, socket or folder."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"The store is not used, because this is not a regular file: {path}. "
            "Remove it, or replace it with what belongs there."
        )


class FormatTooNew(StoreError):
    """A newer version of editledger wrote the store or bundle."""

    def __init__(self, version: int, known: int) -> None:
        self.version = version
        self.known = known
        super().__init__(f"Format version {version} is too new: this program reads up to {known}. Upgrade editledger.")


class RecordInvalid(StoreError):
    """Bytes are not the one canonical encoding of a record."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Not a record: {reason}")


class TreeInvalid(StoreError):
    """Bytes are not the one canonical encoding of a tree."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Not a tree: {reason}")


class SnapshotIncomplete(StoreError):
    """A snapshot could not include everything in its folder, and was not recorded."""

    def __init__(self, reason: str, *, is_over_limit: bool = True) -> None:
        self.reason = reason
        over = "Snapshot a smaller folder, or list in .casignore what it may leave out."
        super().__init__(f"No snapshot was taken: {reason}. {over if is_over_limit else 'Try again.'}")


class SnapshotUnreadable(StoreError):
    """A tree of a snapshot is lost or damaged, so its contents are not completely known."""

    def __init__(self, number: int, reason: str) -> None:
        self.number = number
        self.reason = reason
        super().__init__(
            f"Snapshot {number} can't be read: {reason.rstrip('.')}. Delete it with `cas snapshot delete {number}`."
        )


class NotBundled(StoreError):
    """Blobs that the store needs are lost, so an import would refuse its bundle."""

    def __init__(self, lost: Sequence[bytes]) -> None:
        self.lost = tuple(lost)  # ids of blobs
        more = len(lost) - 1
        others = f" and {more} more are" if more else " is"
        them = "them" if more else "it"
        super().__init__(
            f"No bundle was written: blob {lost[0].hex()}{others} lost, and an import would refuse the bundle. `cas "
            f"fsck` names what refers to {them}. Then remove that: `cas purge PATH@N` for the state after edit N, `cas "
            "snapshot delete N` for a snapshot."
        )


class SnapshotsNotComparable(StoreError):
    """Two snapshots have no folder in common: neither is inside the other, or one omitted the other's folder."""

    def __init__(self, number: int, path: str, other: int, other_path: str) -> None:
        self.number = number
        self.path = path  # the folder that it covers, relative to the workspace; "": all of it
        self.other = other
        self.other_path = other_path
        super().__init__(
            f"Snapshots {number} and {other} cover nothing in common: one covers {path or 'the workspace'}, "
            f"the other {other_path or 'the workspace'}."
        )


class BundleRefused(StoreError):
    """A bundle is malformed, damaged or unsafe."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The bundle is refused, and nothing was imported: {reason}.")


class DecidedMeanwhile(CasError):
    """Hunks were decided elsewhere after the reviewer saw them; nothing was changed."""

    def __init__(self, decided: Mapping[str, str]) -> None:
        self.decided = decided  # the names of the hunks, each with its present status
        shown = 5
        named = ", ".join([*decided][:shown]) + (f" and {len(decided) - shown} more" if len(decided) > shown else "")
        was, statuses = "was" if len(decided) == 1 else "were", ", ".join(sorted(set(decided.values())))
        super().__init__(f"{named} {was} decided elsewhere meanwhile ({statuses} now); nothing was changed.")


class SeriesBroken(CasError):
    """Edits were chosen without a later edit that depends on them."""

    def __init__(self, seq: int, needs: tuple[int, ...]) -> None:
        self.seq = seq
        self.needs = needs
        named = f"{'edit' if len(needs) == 1 else 'edits'} {' '.join(map(str, needs))}"
        super().__init__(f"Edit {seq} depends on {named}, but was not chosen: choose {seq} too, or leave out {named}.")


class HistoryBroken(StoreError):
    """Replaying the records of a file does not give the recorded state."""

    def __init__(self, path: str, seq: int, reason: str) -> None:
        self.path = path
        self.seq = seq
        self.reason = reason
        super().__init__(f"The history of {path} is inconsistent at edit {seq}: {reason}")


class BlobMissing(StoreError):
    """No blob in this store has this id."""

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
"""The errors that mean: the bytes of a blob can't be read, although something refers to it."""


class BlobTooLarge(StoreError):
    """A blob is larger than the limit for blobs in memory; it can only be read piece by piece."""

    def __init__(self, blob: bytes, size: int, limit: int) -> None:
        self.blob = blob
        self.size = size
        self.limit = limit
        super().__init__(f"Blob {blob.hex()} is too large to show: {size} bytes (max: {limit}). Use `cas cat`.")


class DiskFailed(StoreError):
    """An operation on the disk failed."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{reason}: {path}")


class IndexUnusable(DiskFailed):
    """The index is damaged. It is derived data, and is rebuilt when the store is next opened."""


class Unacknowledged(StoreError):
    """A write failed so late that its outcome is decided when the store is opened again.

    A change that `is_recorded` was neither applied to all files nor rolled back: the next writer applies it. Otherwise
    only the next writer sees whether the change was recorded.
    """

    def __init__(self, reason: str, *, is_recorded: bool = False) -> None:
        self.reason = reason
        outcome = "is recorded, and will be made" if is_recorded else "may or may not be saved, which shows"
        super().__init__(f"The change {outcome} when the store is opened again: {reason}")


class FileUninspectable(DiskFailed):
    """A file can't be read that an interrupted call may still have to change, so nothing is written."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            path,
            f"{reason}. An interrupted call may still have to change this file, so nothing is written until it can be "
            "read or is moved away",
        )


class DiskFull(DiskFailed):
    """The disk (or quota) has no space for a write. The error says nothing about earlier writes: they are kept."""

    def __init__(self, path: str, reason: str = "No space left on the disk") -> None:
        super().__init__(path, reason)


class NoSpaceToRecord(DiskFull):
    """The disk has no space even to record what changes no file, for which the store keeps a space reserve."""


class CompactionSpaceNeeded(DiskFull):
    """The disk has no space to rewrite a segment; what was done before that is kept."""

    def __init__(self, path: str, needed: int) -> None:
        self.needed = needed  # bytes, about
        super().__init__(
            path,
            "No space left on the disk. A segment is rewritten before the old one is deleted: free about "
            f"{max(needed, 100_000) / 1e6:,.1f} MB, or expire more history (`--older-than`, `--max-size`) so that less "
            "has to be rewritten, and run the command again. What was done so far is kept, and no data was lost",
        )


class CallAborted(CasError):
    """A call was recorded, could not be applied to the user's files, and was rolled back completely."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"Could not replace {path} ({reason}); every file of the call is as it was before.")


def _day(microseconds: int) -> str:
    """Return the date of a moment, in UTC, as YYYY-MM-DD."""
    from objstore.dates import date_of

    return date_of(microseconds).strftime("%Y-%m-%d")
