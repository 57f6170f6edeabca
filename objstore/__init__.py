"""The store: every file state once, every edit a record, every decision reversible.

Surfaces use the names listed here and nothing else. Each is imported when it is first asked for, because the start-up
of a command that shows a status counts, and most of what is here it never needs.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from objstore.agentcalls import HookSessions as HookSessions
    from objstore.canonical import MAX_TEXT as MAX_TEXT
    from objstore.capture import Call as Call
    from objstore.check import (
        CheckReport as CheckReport,
        Fault as Fault,
        check_store as check_store,
        repair_store as repair_store,
    )
    from objstore.collection import GcPlan as GcPlan, GcResult as GcResult
    from objstore.configuration import Configuration as Configuration, ConfiguredValue as ConfiguredValue
    from objstore.diff import (
        diff_lines as diff_lines,
    )
    from objstore.errors import (
        UNREADABLE as UNREADABLE,
        AmbiguousName as AmbiguousName,
        BlobDamaged as BlobDamaged,
        BlobMissing as BlobMissing,
        BlobTooLarge as BlobTooLarge,
        BundleRefused as BundleRefused,
        CallAborted as CallAborted,
        CasError as CasError,
        CompactionSpaceNeeded as CompactionSpaceNeeded,
        ConversationReserved as ConversationReserved,
        DecidedMeanwhile as DecidedMeanwhile,
        DiskFailed as DiskFailed,
        DiskFull as DiskFull,
        EditExpired as EditExpired,
        FileChanged as FileChanged,
        FileExists as FileExists,
        FileMissing as FileMissing,
        FileTooLarge as FileTooLarge,
        FormatTooNew as FormatTooNew,
        HistoryBroken as HistoryBroken,
        IndexDamaged as IndexDamaged,
        NamesShared as NamesShared,
        NoSuchName as NoSuchName,
        NoSuchSetting as NoSuchSetting,
        NotAmendable as NotAmendable,
        NotAWorkspace as NotAWorkspace,
        NotBundled as NotBundled,
        NotInSnapshot as NotInSnapshot,
        PathError as PathError,
        PathInvalid as PathInvalid,
        PathIsDirectory as PathIsDirectory,
        PathIsSymlink as PathIsSymlink,
        PathNotRegular as PathNotRegular,
        PathOutside as PathOutside,
        PathReserved as PathReserved,
        PermissionRefused as PermissionRefused,
        PurgeRefused as PurgeRefused,
        PurgeUnfinished as PurgeUnfinished,
        RecordInvalid as RecordInvalid,
        SeriesBroken as SeriesBroken,
        SettingInvalid as SettingInvalid,
        SettingsUnreadable as SettingsUnreadable,
        SnapshotIncomplete as SnapshotIncomplete,
        SnapshotsNotComparable as SnapshotsNotComparable,
        SnapshotUnreadable as SnapshotUnreadable,
        StoreDamaged as StoreDamaged,
        StoreError as StoreError,
        StoreHardLinked as StoreHardLinked,
        StoreLinked as StoreLinked,
        StoreLocked as StoreLocked,
        StoreNotOwned as StoreNotOwned,
        StoreNotRegular as StoreNotRegular,
        StorePlaceTaken as StorePlaceTaken,
        StoreRefuses as StoreRefuses,
        StoreReplaced as StoreReplaced,
        StoreUnknown as StoreUnknown,
        TreeInvalid as TreeInvalid,
        Unacknowledged as Unacknowledged,
    )
    from objstore.files import Files as Files
    from objstore.hunks import (
        Hunk as Hunk,
        Span as Span,
        hunks_fit as hunks_fit,
        hunks_from_spans as hunks_from_spans,
    )
    from objstore.ids import (
        BlobId as BlobId,
        RecordId as RecordId,
        blob_id as blob_id,
    )
    from objstore.inspection import (
        Activity as Activity,
        BlamedLines as BlamedLines,
        RecordView as RecordView,
        SegmentView as SegmentView,
        StoreStats as StoreStats,
    )
    from objstore.lines import (
        is_closed as is_closed,
        split_lines as split_lines,
    )
    from objstore.moments import date_of as date_of, is_moment as is_moment, moment_of as moment_of
    from objstore.opencalls import AgentCall as AgentCall
    from objstore.outcomes import (
        CallInfo as CallInfo,
        CallOutcome as CallOutcome,
        Conflict as Conflict,
        Conflicted as Conflicted,
        Decided as Decided,
        DecisionOutcome as DecisionOutcome,
        ExternalChanges as ExternalChanges,
        FileEffect as FileEffect,
        MarkersWritten as MarkersWritten,
        NothingToDo as NothingToDo,
        Notice as Notice,
    )
    from objstore.paths import (
        find_root as find_root,
        real_path as real_path,
        require_not_reserved as require_not_reserved,
    )
    from objstore.pins import PinView as PinView
    from objstore.purge import PurgePlan as PurgePlan
    from objstore.rebase import (
        RebaseConflict as RebaseConflict,
        Rebased as Rebased,
        compared as compared,
        rebased as rebased,
    )
    from objstore.recording import Recorded as Recorded
    from objstore.records import (
        Decision as Decision,
        Edit as Edit,
        Expiry as Expiry,
        Marks as Marks,
        Pin as Pin,
        Record as Record,
        Snapshot as Snapshot,
        Void as Void,
    )
    from objstore.remains import ScannedRecord as ScannedRecord
    from objstore.repack import Repacked as Repacked, RepackPlan as RepackPlan
    from objstore.retention import ExpiryBatch as ExpiryBatch, ExpiryPlan as ExpiryPlan
    from objstore.salvage import Salvage as Salvage, salvage_store as salvage_store
    from objstore.series import SeriesStep as SeriesStep, StepState as StepState
    from objstore.settings import (
        RetentionLimits as RetentionLimits,
        Setting as Setting,
        SettingKind as SettingKind,
        value_of as value_of,
    )
    from objstore.snapshot_create import SnapshotResult as SnapshotResult
    from objstore.snapshot_diff import SnapshotChange as SnapshotChange
    from objstore.snapshot_list import PathState as PathState, SnapshotView as SnapshotView
    from objstore.snapshot_restore import RestoreResult as RestoreResult
    from objstore.standins import MAX_BLOB as MAX_BLOB, is_placeholder as is_placeholder, placeholder as placeholder
    from objstore.suggestions import NameKind as NameKind, NameSuggestion as NameSuggestion
    from objstore.survey import ScanLimits as ScanLimits, SkippedPath as SkippedPath
    from objstore.takeover import ImportProblem as ImportProblem, McpdiffImport as McpdiffImport
    from objstore.terms import (
        MAX_INT as MAX_INT,
        Action as Action,
        ConflictKind as ConflictKind,
        DocumentId as DocumentId,
        FileState as FileState,
        OnExternal as OnExternal,
        Operation as Operation,
        Origin as Origin,
        Seq as Seq,
        Status as Status,
        Unit as Unit,
    )
    from objstore.toml_edit import toml_value as toml_value, with_toml as with_toml, without_toml as without_toml
    from objstore.transfer import Imported as Imported, import_bundle as import_bundle
    from objstore.unified import (
        is_binary as is_binary,
        is_either_binary as is_either_binary,
        numbered_diff as numbered_diff,
        numbered_hunks as numbered_hunks,
        quoted_name as quoted_name,
        touching_hunks as touching_hunks,
        unified_diff as unified_diff,
    )
    from objstore.values import value as value
    from objstore.views import (
        Content as Content,
        DecisionView as DecisionView,
        DirectoryEntry as DirectoryEntry,
        EditFilter as EditFilter,
        EditView as EditView,
        Expiration as Expiration,
        ExternalChange as ExternalChange,
        PathInfo as PathInfo,
        PendingGroup as PendingGroup,
        Reclaimable as Reclaimable,
        Rejection as Rejection,
        Seen as Seen,
        State as State,
        StatusReport as StatusReport,
        UnreportedRejections as UnreportedRejections,
        UnresolvedMarkers as UnresolvedMarkers,
    )
    from objstore.workspace import (
        Workspace as Workspace,
    )

_HOMES: Final = {
    "canonical": ("MAX_TEXT",),
    "agentcalls": ("HookSessions",),
    "check": ("CheckReport", "Fault", "check_store", "repair_store"),
    "collection": ("GcResult", "GcPlan"),
    "configuration": ("Configuration", "ConfiguredValue"),
    "diff": ("diff_lines",),
    "errors": (
        "UNREADABLE",
        "AmbiguousName",
        "BlobDamaged",
        "BlobMissing",
        "BlobTooLarge",
        "BundleRefused",
        "CallAborted",
        "CasError",
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
        "PermissionRefused",
        "PurgeRefused",
        "PurgeUnfinished",
        "RecordInvalid",
        "CompactionSpaceNeeded",
        "SeriesBroken",
        "SettingInvalid",
        "SettingsUnreadable",
        "SnapshotIncomplete",
        "SnapshotUnreadable",
        "SnapshotsNotComparable",
        "StoreDamaged",
        "StoreError",
        "StoreHardLinked",
        "StoreLinked",
        "StoreLocked",
        "StoreNotOwned",
        "StoreNotRegular",
        "StorePlaceTaken",
        "StoreRefuses",
        "StoreReplaced",
        "Unacknowledged",
        "StoreUnknown",
        "TreeInvalid",
    ),
    "files": ("Files",),
    "hunks": (
        "Span",
        "Hunk",
        "hunks_fit",
        "hunks_from_spans",
    ),
    "ids": (
        "BlobId",
        "RecordId",
        "blob_id",
    ),
    "inspection": ("Activity", "BlamedLines", "RecordView", "SegmentView", "StoreStats"),
    "lines": (
        "is_closed",
        "split_lines",
    ),
    "rebase": ("RebaseConflict", "Rebased", "compared", "rebased"),
    "paths": ("find_root", "real_path", "require_not_reserved"),
    "pins": ("PinView",),
    "purge": ("PurgePlan",),
    "records": (
        "Decision",
        "Edit",
        "Expiry",
        "Marks",
        "Pin",
        "Record",
        "Snapshot",
        "Void",
    ),
    "remains": ("ScannedRecord",),
    "repack": ("RepackPlan", "Repacked"),
    "retention": ("ExpiryPlan", "ExpiryBatch"),
    "salvage": ("Salvage", "salvage_store"),
    "series": ("SeriesStep", "StepState"),
    "settings": ("SettingKind", "RetentionLimits", "Setting", "value_of"),
    "standins": ("MAX_BLOB", "is_placeholder", "placeholder"),
    "suggestions": ("NameSuggestion", "NameKind"),
    "terms": (
        "MAX_INT",
        "Action",
        "ConflictKind",
        "DocumentId",
        "FileState",
        "OnExternal",
        "Operation",
        "Origin",
        "Seq",
        "Status",
        "Unit",
    ),
    "takeover": ("ImportProblem", "McpdiffImport"),
    "toml_edit": ("toml_value", "with_toml", "without_toml"),
    "transfer": ("Imported", "import_bundle"),
    "unified": (
        "is_binary",
        "is_either_binary",
        "numbered_diff",
        "numbered_hunks",
        "quoted_name",
        "touching_hunks",
        "unified_diff",
    ),
    "opencalls": ("AgentCall",),
    "outcomes": (
        "CallInfo",
        "CallOutcome",
        "Conflict",
        "Conflicted",
        "Decided",
        "DecisionOutcome",
        "ExternalChanges",
        "FileEffect",
        "MarkersWritten",
        "NothingToDo",
        "Notice",
    ),
    "values": ("value",),
    "views": (
        "Content",
        "DecisionView",
        "DirectoryEntry",
        "EditFilter",
        "EditView",
        "Expiration",
        "ExternalChange",
        "PathInfo",
        "PendingGroup",
        "Reclaimable",
        "Rejection",
        "Seen",
        "UnresolvedMarkers",
        "State",
        "StatusReport",
        "UnreportedRejections",
    ),
    "capture": ("Call",),
    "moments": ("date_of", "is_moment", "moment_of"),
    "recording": ("Recorded",),
    "snapshot_create": ("SnapshotResult",),
    "snapshot_diff": ("SnapshotChange",),
    "snapshot_list": ("PathState", "SnapshotView"),
    "snapshot_restore": ("RestoreResult",),
    "survey": ("ScanLimits", "SkippedPath"),
    "workspace": ("Workspace",),
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(__import__(f"{__name__}.{home}", fromlist=(name,)), name)  # `importlib` would bring `warnings`
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOME_OF)
