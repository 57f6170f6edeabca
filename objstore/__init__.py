"""The store: every file state is stored once, every edit is a record, every decision is reversible.

The command line and the server use the names listed here and nothing else; read `workspace` first. Each name is
imported when it is first used: the start-up time of a status matters, and it never needs most of these modules.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from objstore.agents.hook_sessions import HookSessions as HookSessions
    from objstore.agents.record import Recorded as Recorded
    from objstore.agents.server_calls import arguments_digest as arguments_digest
    from objstore.disk.config.config_files import (
        Configuration as Configuration,
        ConfiguredValue as ConfiguredValue,
        denied_paths as denied_paths,
    )
    from objstore.disk.config.setting_sources import RetentionLimits as RetentionLimits
    from objstore.disk.config.settings import Setting as Setting, limit_of as limit_of
    from objstore.disk.config.toml_edit import (
        toml_value as toml_value,
        with_toml as with_toml,
        without_toml as without_toml,
    )
    from objstore.disk.fs.confined_path import (
        find_root as find_root,
        real_path as real_path,
        require_not_reserved as require_not_reserved,
        workspaces_around as workspaces_around,
    )
    from objstore.disk.fs.nofollow import open_store_file as open_store_file
    from objstore.disk.fs.store_owner import user_name as user_name
    from objstore.disk.fs.store_version import store_folder_bytes as store_folder_bytes, store_version as store_version
    from objstore.disk.fs.tree_files import Files as Files
    from objstore.disk.git.command import ask_git as ask_git
    from objstore.disk.witnesses.failure_marks import (
        FAILED as FAILED,
        HOOK_LOG as HOOK_LOG,
        HookFailure as HookFailure,
        forget_hook_failures as forget_hook_failures,
        hook_failures as hook_failures,
        marked_if_killed as marked_if_killed,
        note_hook_failure as note_hook_failure,
        note_noticed as note_noticed,
        unnoticed_failures as unnoticed_failures,
    )
    from objstore.disk.witnesses.history_witness import (
        LostHistory as LostHistory,
        is_first_mention as is_first_mention,
        lost_above as lost_above,
    )
    from objstore.history.blame import BlamedLines as BlamedLines
    from objstore.history.completions import NameKind as NameKind, NameSuggestion as NameSuggestion
    from objstore.history.patch_series import SeriesStep as SeriesStep, StepState as StepState, by_edit as by_edit
    from objstore.history.snapshots.catalog import PathState as PathState, SnapshotView as SnapshotView
    from objstore.history.snapshots.create import SnapshotResult as SnapshotResult
    from objstore.history.snapshots.diff import SnapshotChange as SnapshotChange
    from objstore.history.verdicts import Verdicts as Verdicts
    from objstore.model.basic_types import (
        BECOMES as BECOMES,
        LINK_MODE as LINK_MODE,
        MAX_INT as MAX_INT,
        UNKNOWN_AGENT as UNKNOWN_AGENT,
        Action as Action,
        CommentState as CommentState,
        ConflictKind as ConflictKind,
        DocumentId as DocumentId,
        FileState as FileState,
        OnExternal as OnExternal,
        Operation as Operation,
        Origin as Origin,
        Seq as Seq,
        Status as Status,
        Surface as Surface,
        Unit as Unit,
        counted as counted,
        few as few,
        git_mode as git_mode,
        shown_edits as shown_edits,
    )
    from objstore.model.canonical_msgpack import MAX_TEXT as MAX_TEXT
    from objstore.model.ids import (
        BlobId as BlobId,
        RecordId as RecordId,
        blob_id as blob_id,
    )
    from objstore.model.large_file_placeholder import (
        MAX_BLOB as MAX_BLOB,
        is_placeholder as is_placeholder,
        placeholder as placeholder,
    )
    from objstore.model.net_file import (
        ChangeKind as ChangeKind,
        ChangesAtLine as ChangesAtLine,
        ChangeSummary as ChangeSummary,
        FileSummary as FileSummary,
        NetChange as NetChange,
        NetFile as NetFile,
    )
    from objstore.model.records import (
        Anchor as Anchor,
        Comment as Comment,
        Decision as Decision,
        Edit as Edit,
        Expiry as Expiry,
        Mark as Mark,
        Marks as Marks,
        Pin as Pin,
        Record as Record,
        SettingChange as SettingChange,
        Snapshot as Snapshot,
        Turn as Turn,
        Void as Void,
    )
    from objstore.model.results import (
        CallInfo as CallInfo,
        CallOutcome as CallOutcome,
        Conflict as Conflict,
        Conflicted as Conflicted,
        Decided as Decided,
        DecisionOutcome as DecisionOutcome,
        ExternalChange as ExternalChange,
        ExternalChanges as ExternalChanges,
        FileEffect as FileEffect,
        LinesKept as LinesKept,
        MarkersWritten as MarkersWritten,
        NothingToDo as NothingToDo,
        Notice as Notice,
        TurnInfo as TurnInfo,
        counted_edits as counted_edits,
    )
    from objstore.model.status_report import (
        Caution as Caution,
        Cautions as Cautions,
        Collision as Collision,
        CommitAcceptance as CommitAcceptance,
        PendingGroup as PendingGroup,
        PendingTurn as PendingTurn,
        Reclaimable as Reclaimable,
        RunningCall as RunningCall,
        SecretFiles as SecretFiles,
        Silence as Silence,
        StatusReport as StatusReport,
        UnresolvedMarkers as UnresolvedMarkers,
        UnreviewedCommit as UnreviewedCommit,
    )
    from objstore.model.views import (
        AGENT_NOTES as AGENT_NOTES,
        Act as Act,
        CommentView as CommentView,
        Content as Content,
        DecisionInForce as DecisionInForce,
        DecisionView as DecisionView,
        DirectoryEntry as DirectoryEntry,
        EditFilter as EditFilter,
        EditView as EditView,
        Expiration as Expiration,
        GitEvent as GitEvent,
        HistoryEnd as HistoryEnd,
        PathInfo as PathInfo,
        Rejection as Rejection,
        SessionView as SessionView,
        State as State,
        TurnLines as TurnLines,
        TurnPrompt as TurnPrompt,
        TurnView as TurnView,
        UnreportedComments as UnreportedComments,
        UnreportedRejections as UnreportedRejections,
        Verdict as Verdict,
        WaitingMessage as WaitingMessage,
        check_in_brief as check_in_brief,
        parted_reason as parted_reason,
        reason_with_check as reason_with_check,
    )
    from objstore.review.calls.open_calls import AgentCall as AgentCall
    from objstore.review.calls.tracked_call import Call as Call
    from objstore.review.net.net_selection import with_units as with_units
    from objstore.review.selection.places import NamedPlace as NamedPlace, PathSelection as PathSelection
    from objstore.review.selection.units import Selected as Selected, Selection as Selection
    from objstore.review.snapshot_restore import RestoreResult as RestoreResult
    from objstore.review.trial.bisection import (
        NotFound as NotFound,
        first_failing as first_failing,
        smallest_failing as smallest_failing,
    )
    from objstore.review.trial.copy_contents import CoveredTree as CoveredTree, FileResult as FileResult
    from objstore.review.trial.known_runs import KnownRuns as KnownRuns
    from objstore.review.trial.process import Ran as Ran, ending_on_signals as ending_on_signals
    from objstore.text.diff import (
        diff_lines as diff_lines,
    )
    from objstore.text.forms import (
        TextForm as TextForm,
        encoded as encoded,
        form_of as form_of,
        is_binary as is_binary,
        is_either_binary as is_either_binary,
        lines_of as lines_of,
        shown_lines as shown_lines,
    )
    from objstore.text.hunks import (
        Hunk as Hunk,
        Span as Span,
        hunks_fit as hunks_fit,
        hunks_from_spans as hunks_from_spans,
    )
    from objstore.text.lines import (
        is_closed as is_closed,
        split_lines as split_lines,
    )
    from objstore.text.rebase import (
        RebaseConflict as RebaseConflict,
        Rebased as Rebased,
        compared as compared,
        rebased as rebased,
    )
    from objstore.text.unified_diff import (
        numbered_diff as numbered_diff,
        numbered_hunks as numbered_hunks,
        quoted_name as quoted_name,
        touching_hunks as touching_hunks,
        unified_diff as unified_diff,
    )
    from objstore.upkeep.convert.conversion import Converted as Converted, convert_store as convert_store
    from objstore.upkeep.integrity.fsck import (
        Advice as Advice,
        CheckReport as CheckReport,
        Fault as Fault,
        Note as Note,
        check_store as check_store,
        repair_store as repair_store,
    )
    from objstore.upkeep.integrity.inspection import (
        Activity as Activity,
        RecordView as RecordView,
        SegmentView as SegmentView,
        StoreStats as StoreStats,
    )
    from objstore.upkeep.integrity.salvage import Salvage as Salvage, salvage_store as salvage_store
    from objstore.upkeep.integrity.segment_scan import ScannedRecord as ScannedRecord
    from objstore.upkeep.packing.repack import Repacked as Repacked, RepackPlan as RepackPlan
    from objstore.upkeep.remote.collect import WAIT_HOURS as WAIT_HOURS, Collected as Collected
    from objstore.upkeep.remote.probe import Probed as Probed
    from objstore.upkeep.remote.push import Pushed as Pushed, PushPlan as PushPlan
    from objstore.upkeep.remote.remotes import (
        PUSH_CHOICES as PUSH_CHOICES,
        Member as Member,
        Remote as Remote,
        RemoteState as RemoteState,
    )
    from objstore.upkeep.retention.expiry import ExpiryBatch as ExpiryBatch, ExpiryPlan as ExpiryPlan
    from objstore.upkeep.retention.garbage_collection import GcPlan as GcPlan, GcResult as GcResult
    from objstore.upkeep.retention.pins import PinView as PinView
    from objstore.upkeep.retention.purge import PurgePlan as PurgePlan
    from objstore.upkeep.transfer.import_export import Imported as Imported, import_bundle as import_bundle
    from objstore.upkeep.transfer.mcpdiff_export import McpdiffExport as McpdiffExport
    from objstore.upkeep.transfer.mcpdiff_import import ImportProblem as ImportProblem, McpdiffImport as McpdiffImport
    from objstore.values.dates import date_of as date_of, is_moment as is_moment, moment_of as moment_of
    from objstore.values.errors import (
        DAMAGE as DAMAGE,
        UNREADABLE as UNREADABLE,
        BlobDamaged as BlobDamaged,
        BlobMissing as BlobMissing,
        BlobTooLarge as BlobTooLarge,
        CallAborted as CallAborted,
        CasError as CasError,
        CompactionSpaceNeeded as CompactionSpaceNeeded,
        ConversationReserved as ConversationReserved,
        ConversionRefused as ConversionRefused,
        DiskFailed as DiskFailed,
        DiskFull as DiskFull,
        FileChanged as FileChanged,
        FileExists as FileExists,
        FileMissing as FileMissing,
        FileTooLarge as FileTooLarge,
        FormatTooNew as FormatTooNew,
        FormatTooOld as FormatTooOld,
        HistoryBroken as HistoryBroken,
        IndexDamaged as IndexDamaged,
        NamesShared as NamesShared,
        NotAWorkspace as NotAWorkspace,
        PathError as PathError,
        PathInvalid as PathInvalid,
        PathIsDirectory as PathIsDirectory,
        PathIsSymlink as PathIsSymlink,
        PathNotRegular as PathNotRegular,
        PathOutside as PathOutside,
        PathReserved as PathReserved,
        PermissionRefused as PermissionRefused,
        PurgeUnfinished as PurgeUnfinished,
        RecordInvalid as RecordInvalid,
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
    from objstore.values.fastclass import replace as replace, value as value
    from objstore.values.request_errors import (
        AgentDecides as AgentDecides,
        AmbiguousName as AmbiguousName,
        BundleRefused as BundleRefused,
        ChangesGone as ChangesGone,
        CheckedElse as CheckedElse,
        CheckFailed as CheckFailed,
        DecidedMeanwhile as DecidedMeanwhile,
        EditAway as EditAway,
        EditExpired as EditExpired,
        EditTakenOut as EditTakenOut,
        FileMayBeOlder as FileMayBeOlder,
        LineMissing as LineMissing,
        NoChangeAtLine as NoChangeAtLine,
        NoPlaceForCopy as NoPlaceForCopy,
        NoSuchName as NoSuchName,
        NoSuchSetting as NoSuchSetting,
        NotAmendable as NotAmendable,
        NotBundled as NotBundled,
        NotClaimable as NotClaimable,
        NothingSelected as NothingSelected,
        NotInSnapshot as NotInSnapshot,
        PurgeRefused as PurgeRefused,
        RemoteDecided as RemoteDecided,
        RemoteDiverged as RemoteDiverged,
        RemoteFailed as RemoteFailed,
        RemoteNameRefused as RemoteNameRefused,
        RemoteRefused as RemoteRefused,
        RemoteRolledBack as RemoteRolledBack,
        RemoteSupportMissing as RemoteSupportMissing,
        RemoteUnknown as RemoteUnknown,
        RemoteUrlRefused as RemoteUrlRefused,
        Selecting as Selecting,
        SeriesBroken as SeriesBroken,
        SettingInvalid as SettingInvalid,
        SettingsUnreadable as SettingsUnreadable,
        SnapshotIncomplete as SnapshotIncomplete,
        SnapshotsNotComparable as SnapshotsNotComparable,
        SnapshotUnreadable as SnapshotUnreadable,
    )
    from objstore.workspace.handle import (
        Workspace as Workspace,
    )
    from objstore.workspace.remote_decisions import (
        Carried as Carried,
        RemoteVerdict as RemoteVerdict,
        WaitingComment as WaitingComment,
    )
    from objstore.workspace.remotes import (
        Added as Added,
        PulledMember as PulledMember,
        clone_remote as clone_remote,
        plan_clone as plan_clone,
    )
    from objstore.workspace.shapes.changes import (
        change_shape as change_shape,
        net_file_facts as net_file_facts,
        net_file_shape as net_file_shape,
    )
    from objstore.workspace.shapes.edits import (
        awaited_shape as awaited_shape,
        comment_shape as comment_shape,
        edit_shape as edit_shape,
        edit_summary as edit_summary,
        session_shape as session_shape,
        turn_shape as turn_shape,
        turn_summary as turn_summary,
        verdict_shape as verdict_shape,
        waiting_comment_shape as waiting_comment_shape,
    )
    from objstore.workspace.shapes.outcomes import (
        conflict_shape as conflict_shape,
        effect_shape as effect_shape,
        empty_outcome as empty_outcome,
        outcome_name as outcome_name,
        outcome_shape as outcome_shape,
        restored_shape as restored_shape,
    )
    from objstore.workspace.shapes.records import (
        record_shape as record_shape,
    )
    from objstore.workspace.shapes.status import (
        collision_shape as collision_shape,
        external_shape as external_shape,
        markers_shape as markers_shape,
        running_shape as running_shape,
        status_shape as status_shape,
    )
    from objstore.workspace.shapes.values import (
        Json as Json,
        beginning as beginning,
        fields_shape as fields_shape,
        hex_shape as hex_shape,
        json_line as json_line,
        path_shape as path_shape,
        text_of as text_of,
        text_shape as text_shape,
        time_shape as time_shape,
    )
    from objstore.workspace.shapes.words import (
        MODE_LOST as MODE_LOST,
        OutcomeWords as OutcomeWords,
        broken_words as broken_words,
        change_words as change_words,
        changes_counted as changes_counted,
        decided_words as decided_words,
        distinct_conflicts as distinct_conflicts,
        edits_and_hunks as edits_and_hunks,
        effect_words as effect_words,
        file_remarks as file_remarks,
        given_words as given_words,
        outcome_words as outcome_words,
        question_words as question_words,
        refusal as refusal,
        shown_units as shown_units,
        step_question as step_question,
    )
    from objstore.workspace.trials import Check as Check, Copy as Copy
    from objstore.worktree.walk import ScanLimits as ScanLimits, SkippedPath as SkippedPath

_HOMES: Final = {
    "model.canonical_msgpack": ("MAX_TEXT",),
    "agents.hook_sessions": ("HookSessions",),
    "agents.server_calls": ("arguments_digest",),
    "upkeep.integrity.fsck": ("Advice", "CheckReport", "Fault", "Note", "check_store", "repair_store"),
    "upkeep.retention.garbage_collection": ("GcResult", "GcPlan"),
    "disk.config.config_files": ("Configuration", "ConfiguredValue", "denied_paths"),
    "text.diff": ("diff_lines",),
    "values.errors": (
        "DAMAGE",
        "UNREADABLE",
        "BlobDamaged",
        "BlobMissing",
        "BlobTooLarge",
        "CallAborted",
        "CasError",
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
        "NamesShared",
        "NotAWorkspace",
        "PathError",
        "PathInvalid",
        "PathIsDirectory",
        "PathIsSymlink",
        "PathNotRegular",
        "PathOutside",
        "PathReserved",
        "PermissionRefused",
        "PurgeUnfinished",
        "RecordInvalid",
        "CompactionSpaceNeeded",
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
    "values.request_errors": (
        "AmbiguousName",
        "BundleRefused",
        "ChangesGone",
        "CheckedElse",
        "CheckFailed",
        "DecidedMeanwhile",
        "AgentDecides",
        "EditAway",
        "EditExpired",
        "EditTakenOut",
        "FileMayBeOlder",
        "LineMissing",
        "NoChangeAtLine",
        "NoPlaceForCopy",
        "NoSuchName",
        "NoSuchSetting",
        "NotAmendable",
        "NotBundled",
        "NotClaimable",
        "NotInSnapshot",
        "NothingSelected",
        "PurgeRefused",
        "RemoteDecided",
        "RemoteDiverged",
        "RemoteFailed",
        "RemoteNameRefused",
        "RemoteRefused",
        "RemoteRolledBack",
        "RemoteSupportMissing",
        "RemoteUnknown",
        "RemoteUrlRefused",
        "Selecting",
        "SeriesBroken",
        "SettingInvalid",
        "SettingsUnreadable",
        "SnapshotIncomplete",
        "SnapshotUnreadable",
        "SnapshotsNotComparable",
    ),
    "disk.fs.nofollow": ("open_store_file",),
    "disk.fs.store_owner": ("user_name",),
    "disk.fs.store_version": ("store_folder_bytes", "store_version"),
    "disk.fs.tree_files": ("Files",),
    "text.hunks": (
        "Span",
        "Hunk",
        "hunks_fit",
        "hunks_from_spans",
    ),
    "model.ids": (
        "BlobId",
        "RecordId",
        "blob_id",
    ),
    "upkeep.integrity.inspection": ("Activity", "RecordView", "SegmentView", "StoreStats"),
    "text.forms": (
        "TextForm",
        "encoded",
        "form_of",
        "is_binary",
        "is_either_binary",
        "lines_of",
        "shown_lines",
    ),
    "text.lines": (
        "is_closed",
        "split_lines",
    ),
    "text.rebase": ("RebaseConflict", "Rebased", "compared", "rebased"),
    "disk.fs.confined_path": ("find_root", "real_path", "require_not_reserved", "workspaces_around"),
    "upkeep.retention.pins": ("PinView",),
    "workspace.shapes.changes": (
        "change_shape",
        "net_file_facts",
        "net_file_shape",
    ),
    "workspace.shapes.edits": (
        "awaited_shape",
        "comment_shape",
        "edit_shape",
        "edit_summary",
        "session_shape",
        "turn_shape",
        "turn_summary",
        "verdict_shape",
        "waiting_comment_shape",
    ),
    "workspace.shapes.outcomes": (
        "conflict_shape",
        "effect_shape",
        "empty_outcome",
        "outcome_name",
        "outcome_shape",
        "restored_shape",
    ),
    "workspace.shapes.records": ("record_shape",),
    "workspace.shapes.status": (
        "collision_shape",
        "external_shape",
        "markers_shape",
        "running_shape",
        "status_shape",
    ),
    "workspace.shapes.values": (
        "Json",
        "beginning",
        "fields_shape",
        "hex_shape",
        "json_line",
        "path_shape",
        "text_of",
        "text_shape",
        "time_shape",
    ),
    "workspace.shapes.words": (
        "MODE_LOST",
        "OutcomeWords",
        "broken_words",
        "change_words",
        "changes_counted",
        "decided_words",
        "distinct_conflicts",
        "edits_and_hunks",
        "effect_words",
        "file_remarks",
        "given_words",
        "outcome_words",
        "question_words",
        "refusal",
        "shown_units",
        "step_question",
    ),
    "review.net.net_selection": ("with_units",),
    "review.selection.places": ("NamedPlace", "PathSelection"),
    "review.selection.units": ("Selected", "Selection"),
    "upkeep.retention.purge": ("PurgePlan",),
    "model.records": (
        "Anchor",
        "Comment",
        "Decision",
        "Edit",
        "Expiry",
        "Mark",
        "Marks",
        "Pin",
        "Record",
        "SettingChange",
        "Snapshot",
        "Turn",
        "Void",
    ),
    "upkeep.integrity.segment_scan": ("ScannedRecord",),
    "upkeep.packing.repack": ("RepackPlan", "Repacked"),
    "upkeep.retention.expiry": ("ExpiryPlan", "ExpiryBatch"),
    "upkeep.convert.conversion": ("Converted", "convert_store"),
    "upkeep.integrity.salvage": ("Salvage", "salvage_store"),
    "history.patch_series": ("SeriesStep", "StepState", "by_edit"),
    "disk.config.setting_sources": ("RetentionLimits",),
    "disk.config.settings": ("Setting", "limit_of"),
    "model.large_file_placeholder": ("MAX_BLOB", "is_placeholder", "placeholder"),
    "history.verdicts": ("Verdicts",),
    "history.blame": ("BlamedLines",),
    "history.completions": ("NameSuggestion", "NameKind"),
    "model.basic_types": (
        "LINK_MODE",
        "MAX_INT",
        "UNKNOWN_AGENT",
        "BECOMES",
        "Action",
        "CommentState",
        "ConflictKind",
        "DocumentId",
        "FileState",
        "OnExternal",
        "Operation",
        "Origin",
        "Seq",
        "Status",
        "Surface",
        "Unit",
        "counted",
        "few",
        "git_mode",
        "shown_edits",
    ),
    "upkeep.transfer.mcpdiff_export": ("McpdiffExport",),
    "upkeep.transfer.mcpdiff_import": ("ImportProblem", "McpdiffImport"),
    "disk.config.toml_edit": ("toml_value", "with_toml", "without_toml"),
    "upkeep.transfer.import_export": ("Imported", "import_bundle"),
    "text.unified_diff": (
        "numbered_diff",
        "numbered_hunks",
        "quoted_name",
        "touching_hunks",
        "unified_diff",
    ),
    "review.calls.open_calls": ("AgentCall",),
    "model.results": (
        "CallInfo",
        "CallOutcome",
        "Conflict",
        "Conflicted",
        "Decided",
        "DecisionOutcome",
        "ExternalChange",
        "ExternalChanges",
        "FileEffect",
        "LinesKept",
        "MarkersWritten",
        "NothingToDo",
        "Notice",
        "TurnInfo",
        "counted_edits",
    ),
    "values.fastclass": ("replace", "value"),
    "model.net_file": (
        "ChangeKind",
        "ChangeSummary",
        "ChangesAtLine",
        "FileSummary",
        "LineWriters",
        "NetChange",
        "NetFile",
    ),
    "model.status_report": (
        "Collision",
        "CommitAcceptance",
        "PendingGroup",
        "PendingTurn",
        "Reclaimable",
        "Caution",
        "Cautions",
        "RunningCall",
        "SecretFiles",
        "Silence",
        "StatusReport",
        "UnresolvedMarkers",
        "UnreviewedCommit",
    ),
    "model.views": (
        "AGENT_NOTES",
        "Act",
        "CommentView",
        "UnreportedComments",
        "Content",
        "DecisionInForce",
        "DecisionView",
        "DirectoryEntry",
        "EditFilter",
        "EditView",
        "Expiration",
        "PathInfo",
        "Rejection",
        "HistoryEnd",
        "SessionView",
        "TurnLines",
        "TurnPrompt",
        "TurnView",
        "GitEvent",
        "State",
        "UnreportedRejections",
        "Verdict",
        "WaitingMessage",
        "check_in_brief",
        "parted_reason",
        "reason_with_check",
    ),
    "review.calls.tracked_call": ("Call",),
    "values.dates": ("date_of", "is_moment", "moment_of"),
    "disk.git.command": ("ask_git",),
    "agents.record": ("Recorded",),
    "history.snapshots.create": ("SnapshotResult",),
    "history.snapshots.diff": ("SnapshotChange",),
    "history.snapshots.catalog": ("PathState", "SnapshotView"),
    "review.snapshot_restore": ("RestoreResult",),
    "upkeep.remote.collect": ("WAIT_HOURS", "Collected"),
    "upkeep.remote.probe": ("Probed",),
    "upkeep.remote.push": ("Pushed", "PushPlan"),
    "upkeep.remote.remotes": ("PUSH_CHOICES", "Member", "Remote", "RemoteState"),
    "workspace.remote_decisions": ("Carried", "RemoteVerdict", "WaitingComment"),
    "workspace.remotes": ("Added", "PulledMember", "clone_remote", "plan_clone"),
    "workspace.trials": ("Copy",),
    "review.trial.bisection": ("NotFound", "first_failing", "smallest_failing"),
    "review.trial.copy_contents": ("CoveredTree", "FileResult"),
    "review.trial.known_runs": ("KnownRuns",),
    "review.trial.process": ("Ran", "ending_on_signals"),
    "worktree.walk": ("ScanLimits", "SkippedPath"),
    "disk.witnesses.failure_marks": (
        "FAILED",
        "HOOK_LOG",
        "HookFailure",
        "forget_hook_failures",
        "hook_failures",
        "marked_if_killed",
        "note_hook_failure",
        "note_noticed",
        "unnoticed_failures",
    ),
    "disk.witnesses.history_witness": ("LostHistory", "is_first_mention", "lost_above"),
    "workspace.handle": ("Workspace",),
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
