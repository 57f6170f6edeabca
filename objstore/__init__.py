"""The store: every file state once, every edit a record, every decision reversible.

Surfaces use the names listed here and nothing else. Each is imported when it is first asked for, because the start-up
of a command that shows a status counts, and most of what is here it never needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from objstore.capture import Call as Call
    from objstore.check import (
        CheckReport as CheckReport,
        Fault as Fault,
        check_store as check_store,
        repair_store as repair_store,
    )
    from objstore.diff import (
        diff_lines as diff_lines,
    )
    from objstore.errors import (
        AmbiguousName as AmbiguousName,
        BlobDamaged as BlobDamaged,
        BlobMissing as BlobMissing,
        CallAborted as CallAborted,
        CasError as CasError,
        ConversationReserved as ConversationReserved,
        DiskFailed as DiskFailed,
        DiskFull as DiskFull,
        FileChanged as FileChanged,
        FileExists as FileExists,
        FileMissing as FileMissing,
        FileTooLarge as FileTooLarge,
        FormatTooNew as FormatTooNew,
        HistoryBroken as HistoryBroken,
        NoSuchName as NoSuchName,
        NotAmendable as NotAmendable,
        NotAWorkspace as NotAWorkspace,
        PathError as PathError,
        PathInvalid as PathInvalid,
        PathIsDirectory as PathIsDirectory,
        PathIsSymlink as PathIsSymlink,
        PathNotRegular as PathNotRegular,
        PathOutside as PathOutside,
        PathReserved as PathReserved,
        PermissionRefused as PermissionRefused,
        RecordInvalid as RecordInvalid,
        StoreDamaged as StoreDamaged,
        StoreError as StoreError,
        StoreLocked as StoreLocked,
        StoreRefuses as StoreRefuses,
        StoreUnknown as StoreUnknown,
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
        BlamedLines as BlamedLines,
        RecordView as RecordView,
        SegmentView as SegmentView,
        StoreStats as StoreStats,
    )
    from objstore.lines import (
        is_closed as is_closed,
        split_lines as split_lines,
    )
    from objstore.outcomes import (
        CallInfo as CallInfo,
        CallOutcome as CallOutcome,
        Conflict as Conflict,
        Conflicted as Conflicted,
        Decided as Decided,
        DecisionOutcome as DecisionOutcome,
        ExternalChanges as ExternalChanges,
        FileEffect as FileEffect,
        NothingToDo as NothingToDo,
        Notice as Notice,
    )
    from objstore.records import (
        Decision as Decision,
        Edit as Edit,
        Record as Record,
        Void as Void,
    )
    from objstore.remains import FoundRecord as FoundRecord
    from objstore.reports import (
        ExternalChange as ExternalChange,
        PendingGroup as PendingGroup,
        StatusReport as StatusReport,
    )
    from objstore.salvage import Salvage as Salvage, salvage_store as salvage_store
    from objstore.terms import (
        Action as Action,
        DocumentId as DocumentId,
        FileState as FileState,
        OnExternal as OnExternal,
        Operation as Operation,
        Origin as Origin,
        Seq as Seq,
        Status as Status,
        Unit as Unit,
    )
    from objstore.unified import (
        is_binary as is_binary,
        quoted_name as quoted_name,
        unified_diff as unified_diff,
    )
    from objstore.views import (
        Content as Content,
        DecisionView as DecisionView,
        DirectoryEntry as DirectoryEntry,
        EditFilter as EditFilter,
        EditView as EditView,
        FileFacts as FileFacts,
        State as State,
    )
    from objstore.workspace import (
        Workspace as Workspace,
    )

_HOMES: Final = {
    "check": ("CheckReport", "Fault", "check_store", "repair_store"),
    "diff": ("diff_lines",),
    "errors": (
        "AmbiguousName",
        "BlobDamaged",
        "BlobMissing",
        "CallAborted",
        "CasError",
        "ConversationReserved",
        "DiskFailed",
        "DiskFull",
        "FileChanged",
        "FileExists",
        "FileMissing",
        "FileTooLarge",
        "FormatTooNew",
        "HistoryBroken",
        "NoSuchName",
        "NotAWorkspace",
        "NotAmendable",
        "PathError",
        "PathInvalid",
        "PathIsDirectory",
        "PathIsSymlink",
        "PathNotRegular",
        "PathOutside",
        "PathReserved",
        "PermissionRefused",
        "RecordInvalid",
        "StoreDamaged",
        "StoreError",
        "StoreLocked",
        "StoreRefuses",
        "Unacknowledged",
        "StoreUnknown",
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
    "inspection": ("BlamedLines", "RecordView", "SegmentView", "StoreStats"),
    "lines": (
        "is_closed",
        "split_lines",
    ),
    "records": (
        "Decision",
        "Edit",
        "Record",
        "Void",
    ),
    "remains": ("FoundRecord",),
    "salvage": ("Salvage", "salvage_store"),
    "terms": (
        "Action",
        "DocumentId",
        "FileState",
        "OnExternal",
        "Operation",
        "Origin",
        "Seq",
        "Status",
        "Unit",
    ),
    "unified": (
        "is_binary",
        "quoted_name",
        "unified_diff",
    ),
    "outcomes": (
        "CallInfo",
        "CallOutcome",
        "Conflict",
        "Conflicted",
        "Decided",
        "DecisionOutcome",
        "ExternalChanges",
        "FileEffect",
        "NothingToDo",
        "Notice",
    ),
    "reports": (
        "ExternalChange",
        "PendingGroup",
        "StatusReport",
    ),
    "views": (
        "Content",
        "DecisionView",
        "DirectoryEntry",
        "EditFilter",
        "EditView",
        "FileFacts",
        "State",
    ),
    "capture": ("Call",),
    "workspace": ("Workspace",),
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOME_OF)
