"""Define the errors of files and stores, and the base of all errors.

Each error carries its facts, and one message that says what happened and what to do. `request_errors` has those of
requests that can't be met although every file and the store are as they should be.
"""

from collections.abc import Sequence
from typing import Final

__all__ = [
    "DAMAGE",
    "UNREADABLE",
    "BlobDamaged",
    "BlobMissing",
    "BlobTooLarge",
    "CallAborted",
    "CasError",
    "CompactionSpaceNeeded",
    "ConversationReserved",
    "ConversionRefused",
    "DiskFailed",
    "DiskFull",
    "FileChanged",
    "FileExists",
    "FileMissing",
    "FileTooLarge",
    "FormatTooNew",
    "FormatTooOld",
    "HistoryBroken",
    "IndexDamaged",
    "IndexUnusable",
    "NamesShared",
    "NotAWorkspace",
    "NotMounted",
    "PathError",
    "PathInvalid",
    "PathIsDirectory",
    "PathIsSymlink",
    "PathNotRegular",
    "PathOutside",
    "PathReserved",
    "PathUnreachable",
    "PermissionRefused",
    "PurgeUnfinished",
    "RecordInvalid",
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


# ---- workspaces


class NotAWorkspace(CasError):
    """No store exists at or above a folder, or the folder does not exist."""

    def __init__(self, start: str, *, is_folder: bool = True) -> None:
        self.start = start
        self.is_folder = is_folder  # whether the folder exists
        super().__init__(
            f"No workspace at {start} or above it."
            if is_folder
            else f"No workspace at {start}: this folder does not exist."
        )


class ConversationReserved(CasError):
    """A conversation's name is reserved."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The conversation name {name!r} is reserved for changes that no tool made; choose another.")


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


class NotMounted(PathError):
    """The file is on a file system that is not mounted now, so that its state is not known."""

    def __init__(self, path: str, folder: str) -> None:
        self.folder = folder  # where the file system was mounted
        super().__init__(
            path,
            f"{path} is not there now: the file system at {folder} is not mounted. Nothing was changed. "
            "Mount it, then try again; if its files are gone for good, remove the empty folder.",
        )


class FileExists(PathError):
    """Something exists at a path that must be free."""

    def __init__(
        self,
        path: str,
        held: Sequence[str] = (),
        *,
        edit: int = 0,
        is_without: bool = False,
        what: str = "file",
    ) -> None:
        self.held = tuple(held)  # of a folder that would have to be removed: the paths in it that must stay
        self.edit = edit  # the edit whose decision would put a file there; 0: none is known
        self.what = what  # what exists there, as a noun
        self.is_without = is_without  # whether the file would be there without that edit, not by it
        shown = 3
        named = ", ".join(self.held[:shown]) + (f" and {len(held) - shown} more" if len(held) > shown else "")
        said = f"Already exists: {path}"
        if held:
            said = (
                f"{path} is a folder, and these paths in it must stay: {named}. Move the folder away and try again, "
                f"or leave out the edits of {path}."
            )
        elif edit:
            why = f"Without edit {edit} its file is there again." if is_without else f"Edit {edit} puts its file there."
            said = (
                f"{path} is taken by a {what} that no edit put there. {why} Move the {what} at {path} away and try "
                f"again, or leave out edit {edit}."
            )
        super().__init__(path, said)


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
        super().__init__(f"The index is damaged: {what}.")


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


class FormatTooOld(StoreError):
    """A version of editledger before format 1 wrote the store, or the store in a bundle. `is_bundle`: a bundle."""

    def __init__(self, *, is_bundle: bool = False) -> None:
        self.is_bundle = is_bundle
        what = "store in the bundle" if is_bundle else "store"
        super().__init__(f"An early version of editledger wrote the {what}, before format 1. It has to be converted.")


class ConversionRefused(StoreError):
    """A store of an early version can't be converted. Nothing was changed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The store was not converted, and nothing was changed: {reason}.")


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

DAMAGE: Final = (*UNREADABLE, HistoryBroken)
"""The errors that mean: the store is damaged; a check reports where, and which files that affects."""


class BlobTooLarge(StoreError):
    """A blob is larger than the limit for blobs in memory; it can only be read piece by piece."""

    def __init__(self, blob: bytes, size: int, limit: int) -> None:
        self.blob = blob
        self.size = size
        self.limit = limit
        super().__init__(f"Blob {blob.hex()} is too large to show: {size} bytes (max: {limit}).")


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
