"""The store: every file state once, every edit a record, every decision reversible.

Surfaces use the names listed here and nothing else. Each is imported when it is first asked for, because the start-up
of a command that shows a status counts, and most of what is here it never needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from objstore.diff import (
        diff_lines as diff_lines,
    )
    from objstore.errors import (
        AmbiguousName as AmbiguousName,
    )
    from objstore.errors import (
        BlobDamaged as BlobDamaged,
    )
    from objstore.errors import (
        BlobMissing as BlobMissing,
    )
    from objstore.errors import (
        CallAborted as CallAborted,
    )
    from objstore.errors import (
        CasError as CasError,
    )
    from objstore.errors import (
        ConversationReserved as ConversationReserved,
    )
    from objstore.errors import (
        DiskFailed as DiskFailed,
    )
    from objstore.errors import (
        DiskFull as DiskFull,
    )
    from objstore.errors import (
        FileChanged as FileChanged,
    )
    from objstore.errors import (
        FileExists as FileExists,
    )
    from objstore.errors import (
        FileMissing as FileMissing,
    )
    from objstore.errors import (
        FileTooLarge as FileTooLarge,
    )
    from objstore.errors import (
        FormatTooNew as FormatTooNew,
    )
    from objstore.errors import (
        HistoryBroken as HistoryBroken,
    )
    from objstore.errors import (
        NoSuchName as NoSuchName,
    )
    from objstore.errors import (
        NotAWorkspace as NotAWorkspace,
    )
    from objstore.errors import (
        PathError as PathError,
    )
    from objstore.errors import (
        PathInvalid as PathInvalid,
    )
    from objstore.errors import (
        PathIsDirectory as PathIsDirectory,
    )
    from objstore.errors import (
        PathIsSymlink as PathIsSymlink,
    )
    from objstore.errors import (
        PathNotRegular as PathNotRegular,
    )
    from objstore.errors import (
        PathOutside as PathOutside,
    )
    from objstore.errors import (
        PathReserved as PathReserved,
    )
    from objstore.errors import (
        PermissionRefused as PermissionRefused,
    )
    from objstore.errors import (
        RecordInvalid as RecordInvalid,
    )
    from objstore.errors import (
        StoreDamaged as StoreDamaged,
    )
    from objstore.errors import (
        StoreError as StoreError,
    )
    from objstore.errors import (
        StoreLocked as StoreLocked,
    )
    from objstore.errors import (
        StoreRefuses as StoreRefuses,
    )
    from objstore.files import Files as Files
    from objstore.hunks import (
        Hunk as Hunk,
    )
    from objstore.hunks import (
        Span as Span,
    )
    from objstore.hunks import (
        hunks_fit as hunks_fit,
    )
    from objstore.hunks import (
        hunks_from_spans as hunks_from_spans,
    )
    from objstore.ids import (
        BlobId as BlobId,
    )
    from objstore.ids import (
        RecordId as RecordId,
    )
    from objstore.ids import (
        blob_id as blob_id,
    )
    from objstore.lines import (
        is_closed as is_closed,
    )
    from objstore.lines import (
        split_lines as split_lines,
    )
    from objstore.paths import (
        DirectoryEntry as DirectoryEntry,
    )
    from objstore.records import (
        Action as Action,
    )
    from objstore.records import (
        Decision as Decision,
    )
    from objstore.records import (
        DocumentId as DocumentId,
    )
    from objstore.records import (
        Edit as Edit,
    )
    from objstore.records import (
        FileState as FileState,
    )
    from objstore.records import (
        Operation as Operation,
    )
    from objstore.records import (
        Origin as Origin,
    )
    from objstore.records import (
        Seq as Seq,
    )
    from objstore.records import (
        Status as Status,
    )
    from objstore.records import (
        Unit as Unit,
    )
    from objstore.unified import (
        is_binary as is_binary,
    )
    from objstore.unified import (
        quoted_name as quoted_name,
    )
    from objstore.unified import (
        unified_diff as unified_diff,
    )
    from objstore.views import (
        CallInfo as CallInfo,
    )
    from objstore.views import (
        CallOutcome as CallOutcome,
    )
    from objstore.views import (
        Conflict as Conflict,
    )
    from objstore.views import (
        Conflicted as Conflicted,
    )
    from objstore.views import (
        Content as Content,
    )
    from objstore.views import (
        Decided as Decided,
    )
    from objstore.views import (
        DecisionOutcome as DecisionOutcome,
    )
    from objstore.views import (
        DecisionView as DecisionView,
    )
    from objstore.views import (
        EditFilter as EditFilter,
    )
    from objstore.views import (
        EditView as EditView,
    )
    from objstore.views import (
        ExternalChange as ExternalChange,
    )
    from objstore.views import (
        ExternalChanges as ExternalChanges,
    )
    from objstore.views import (
        FileEffect as FileEffect,
    )
    from objstore.views import (
        NothingToDo as NothingToDo,
    )
    from objstore.views import (
        OnExternal as OnExternal,
    )
    from objstore.views import (
        PendingGroup as PendingGroup,
    )
    from objstore.views import (
        State as State,
    )
    from objstore.views import (
        StatusReport as StatusReport,
    )
    from objstore.workspace import (
        Call as Call,
    )
    from objstore.workspace import (
        Workspace as Workspace,
    )

_HOMES: Final = {
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
    "lines": (
        "is_closed",
        "split_lines",
    ),
    "paths": ("DirectoryEntry",),
    "records": (
        "Action",
        "Decision",
        "DocumentId",
        "Edit",
        "FileState",
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
    "views": (
        "CallInfo",
        "CallOutcome",
        "Conflict",
        "Conflicted",
        "Content",
        "Decided",
        "DecisionOutcome",
        "DecisionView",
        "EditFilter",
        "EditView",
        "ExternalChange",
        "ExternalChanges",
        "FileEffect",
        "NothingToDo",
        "OnExternal",
        "PendingGroup",
        "State",
        "StatusReport",
    ),
    "workspace": (
        "Call",
        "Workspace",
    ),
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
