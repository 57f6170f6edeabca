"""Apply several patches in one tracked call, by the recovery patterns of the patch tools' document.

The document applies one patch after another on disk and reverts by hand what went wrong. Here each pattern stages its
patches in one call and writes once, so that its promise also holds across crashes: after a failure every file is as it
was, and what the document calls reverted, restored or rolled back was never written.
"""

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Annotated, ClassVar, Final, TypeAlias, TypedDict, assert_never

from mcptools.answers.edits import Answer
from mcptools.answers.paging import page_of
from mcptools.answers.patches import (
    FileBackedUp,
    PatchApplied,
    PatchBackedUp,
    PatchesApplied,
    PatchesBatched,
    PatchesTried,
    PatchStepped,
    PatchValidated,
)
from mcptools.edit.display import LONGEST_WORDS, shown
from mcptools.edit.file_text import FileText, file_text
from mcptools.edit.patch_parser import InvalidPatch
from mcptools.edit.unified_diff import Applied, FilePatch
from mcptools.model.cancellation import progress
from mcptools.model.failures import Failure, FailureKind
from mcptools.model.session import FileKey, Knowledge
from mcptools.tools.backups import keep_times, stage_backup
from mcptools.tools.calls.notes import UNCHANGED, nothing_to_change, outcome_notes
from mcptools.tools.calls.safety import SafetyChecks, refusing
from mcptools.tools.calls.text_edits import MemoizedChange, TextEdits, is_expensive
from mcptools.tools.calls.tracked_calls import TrackedCalls
from mcptools.tools.context import ConversationArgument, ToolContext, absolute
from mcptools.tools.patching import PatchTools, applied, changes_of, corrections_of, part_among, parts_of, preview_of
from objstore import BlobId, Call, CallOutcome, Content, Operation, Workspace, blob_id, hunks_from_spans

__all__ = ["PatchOp", "PatchStrategyTools", "Strategy"]

_ONLY_BACKED_UP: Final = "The file already has this content: only its backup was recorded, which Undo leaves alone."
_ALL_UNCHANGED: Final = "The files already have this content: no edit was recorded, and there is nothing to undo."


_MOST_NOTES: Final = 20
"""Notes about corrected patches in an answer, and those of one patch more."""


class Strategy(Enum):
    """The recovery patterns, by their names in the document."""

    TRY_REVERT = "try_revert"
    BACKUP_RESTORE = "backup_restore"
    ATOMIC = "atomic"
    PROGRESSIVE = "progressive"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchOp:
    """One patch for one file, as a client sends it."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # pydantic reads it: an unknown field is refused

    file_path: str = field(metadata={"description": "Path to the file to patch"})
    patch: str = field(metadata={"description": "Unified diff patch content"})


class _Patch:
    """A patch of a call, parsed before the call waits for its turn to write."""

    def __init__(self, op: PatchOp, has: Callable[[str], bool]) -> None:
        self.file_path = op.file_path
        self.text = op.patch
        self._parts = parts_of(op.patch)
        self._has = has
        self._applied: tuple[FilePatch, MemoizedChange[Applied]] | None = None

    @property
    def hunks(self) -> int:
        """Return how many hunks the patch has, for all files; 0 if it is invalid."""
        return 0 if isinstance(self._parts, InvalidPatch) else sum(len(part.hunks) for part in self._parts)

    def part(self, place: str) -> FilePatch:
        """Return the part that is for the file at `place`. Raises Failure."""
        return part_among(self._parts, place, self._has)

    def applied(self, text: FileText, part: FilePatch) -> Applied:
        """Return the result of applying a part of the patch to the lines of a file. Raises Failure."""
        if self._applied is None or self._applied[0] is not part:
            self._applied = part, MemoizedChange(functools.partial(applied, part=part))
        return self._applied[1](text)


class PatchStrategyTools:
    """The tool that applies several patches together."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._calls = TrackedCalls(context)
        self._edits = TextEdits(context, self._calls)
        self._safety = SafetyChecks(context)
        self._single = PatchTools(context)

    def apply_patches(
        self,
        strategy: Annotated[
            Strategy,
            "try_revert: patches of one file, one after the other, all or none; backup_restore: one patch; "
            "atomic: patches of many files, all or none; progressive: one patch, each step reported, a backup kept",
        ],
        patches: Annotated[list[PatchOp], "The patches, in order"],
        *,
        keep_backup: Annotated[bool, "With backup_restore: leave a backup next to the file"] = False,
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[PatchesApplied]:
        """Apply several patches together: if one does not fit, no file changes."""
        if not patches:
            raise Failure(FailureKind.INVALID_REQUEST, "Patches array cannot be empty")
        if keep_backup and strategy in {Strategy.TRY_REVERT, Strategy.ATOMIC}:
            hint = "Leave keep_backup out, or call backup_file for each file first."
            raise Failure(FailureKind.INVALID_REQUEST, f"{strategy.value} keeps no backup", hint=hint)
        read = [_Patch(op, self._safety.has) for op in patches]
        searches = Counter[str]()
        for op in read:
            searches[op.file_path] += op.hunks
        if any(map(is_expensive, searches.values())):
            with suppress(Failure):  # under the lock they are tried, and refused, again
                self._try_all(read, [])
        match strategy:
            case Strategy.TRY_REVERT:
                return self._try_revert(read, mcp_conversation_id)
            case Strategy.BACKUP_RESTORE:
                return self._backup_restore(_only(read, strategy), mcp_conversation_id, keep=keep_backup)
            case Strategy.ATOMIC:
                return self._atomic(read, mcp_conversation_id)
            case Strategy.PROGRESSIVE:
                return self._progressive(_only(read, strategy), mcp_conversation_id)
            case _:
                assert_never(strategy)

    # ---- the patterns

    def _try_revert(self, patches: Sequence[_Patch], conversation: str) -> Answer[PatchesApplied]:
        path = patches[0].file_path
        if any(op.file_path != path for op in patches):
            message = "try_revert takes patches of one file"
            raise Failure(FailureKind.INVALID_REQUEST, message, hint="For several files there is atomic.")
        done = 0

        def precheck() -> None:
            nonlocal done
            trial: _Trial = {}
            for op in patches:
                self._try(trial, op)
                done += 1
            done = 0

        try:
            self._safety.checked(path, write=True, space=True)
            with self._calls.hold("apply_patches", path, conversation, precheck=precheck) as (workspace, call):
                staging = _Staging(workspace, call)
                for op in patches:
                    progress(done + 1, len(patches), shown(op.file_path))
                    self._stage(staging, op)
                    done += 1
                outcome = self._finish(staging)
        except Failure as failure:
            failed_at = min(done + 1, len(patches))
            raise failure.with_facts(patches_applied=done, failed_at=failed_at, reverted=True) from failure
        message = f"Successfully applied {done} patches"
        tried = PatchesTried(patches_applied=done, message=message, **_recorded(outcome))
        idle = _unchanged_notes(staging)
        return Answer(content=tried, text=None, notes=(*staging.notes, *idle, *outcome_notes(outcome)))

    def _backup_restore(self, op: _Patch, conversation: str, *, keep: bool) -> Answer[PatchesApplied]:
        path = op.file_path
        try:
            facts = self._safety.checked_with_facts(path, write=True, space=True)[1]
        except Failure as failure:
            message = f"Cannot create backup: {failure}"
            raise Failure(failure.kind, message, hint=failure.hint, **failure.facts, phase="backup") from failure
        with (
            refusing(restored=True, phase="apply"),
            self._calls.hold("apply_patches", path, conversation, precheck=lambda: self._try({}, op)) as (
                workspace,
                call,
            ),
        ):
            staging = _Staging(workspace, call)
            # Without `keep` a second copy on disk is not needed: the store has the previous content.
            before = call.read(path)
            backup = stage_backup(call, path, before) if keep else None
            self._stage(staging, op)
            outcome = self._finish(staging, backup=backup or "")
            untimely = () if backup is None else keep_times(workspace, backup, facts)
        message = "Patch applied successfully"
        backup_file = None if backup is None else shown(backup)
        backed_up = PatchBackedUp(backup_file=backup_file, message=message, **_recorded(outcome))
        idle = _unchanged_notes(staging, has_backup=keep)
        return Answer(content=backed_up, text=None, notes=(*staging.notes, *idle, *untimely, *outcome_notes(outcome)))

    def _atomic(self, patches: Sequence[_Patch], conversation: str) -> Answer[PatchesApplied]:
        failures: list[tuple[str, Failure]] = []
        roots: set[str] = set()
        turn, steps = len(patches) + 1, 2 * len(patches) + 1  # each patch is checked and staged; one step is the wait
        for number, op in enumerate(patches, 1):
            progress(number, steps, shown(op.file_path))
            try:
                self._safety.checked(op.file_path, write=True, space=True)
                roots.add(self._context.directories.files_of(op.file_path).root)
            except Failure as failure:
                failures.append((op.file_path, failure))
        if failures:
            raise self._not_all_fit(failures, len(patches))
        if len(roots) > 1:
            message = "Files in several allowed directories can't be changed together"
            raise Failure(FailureKind.INVALID_REQUEST, message, hint="Make one call for each directory.")
        first, *others = (op.file_path for op in patches)
        precheck = functools.partial(self._try_all, patches, failures)
        try:
            with self._calls.hold(
                "apply_patches",
                first,
                conversation,
                *others,
                precheck=precheck,
                allows_unread=True,
                waiting=(turn, steps),
            ) as (workspace, call):
                staging = _Staging(workspace, call)
                unread = self._unread(workspace, call, [op.file_path for op in patches])
                for number, op in enumerate(patches, 1):
                    progress(turn + number, steps, shown(op.file_path))
                    try:
                        if op.file_path in unread:
                            raise unread[op.file_path]
                        self._stage(staging, op)
                    except Failure as failure:
                        failures.append((op.file_path, failure))
                if failures:
                    raise self._not_all_fit(failures, len(patches))
                outcome = self._finish(staging)
        except Failure as failure:
            if failures:
                raise
            at = failure.facts.get("path", shown(first))
            raise failure.with_facts(phase="apply", applied=0, failed_at=at, rolled_back=True) from failure
        message = f"Atomically applied {len(patches)} patches"
        batched = PatchesBatched(applied=len(patches), message=message, **_recorded(outcome))
        idle = _unchanged_notes(staging)
        return Answer(content=batched, text=None, notes=(*staging.notes, *idle, *outcome_notes(outcome)))

    def _progressive(self, op: _Patch, conversation: str) -> Answer[PatchesApplied]:
        path = op.file_path
        steps: dict[str, object] = {}
        step = "safety_check"
        try:
            facts = self._safety.checked_with_facts(path, write=True, space=True)[1]
            steps[step] = {"passed": True, "details": None}
            step = "validation"
            precheck = functools.partial(self._try, {}, op)
            with self._calls.hold("apply_patches", path, conversation, precheck=precheck) as (workspace, call):
                staging = _Staging(workspace, call)
                before = call.read(path)
                part, made = self._stage(staging, op)
                validated = PatchValidated(file_path=shown(path), preview=preview_of(part, made.moved))
                steps[step] = {"passed": True, "details": asdict(validated)}
                step = "backup"
                backup = stage_backup(call, path, before)
                step = "apply"
                outcome = self._finish(staging, backup=backup)
                untimely = keep_times(workspace, backup, facts)
        except Failure as failure:
            reported = self._mismatch_of(op, failure) if step == "validation" else failure
            steps[step] = {"passed": False, "details": reported.flat()}
            if step == "apply":
                restored = {"success": True, "message": "The file is as it was, and no backup was left"}
                steps["restore"] = {"passed": True, "details": restored}
            raise Failure(failure.kind, str(failure), hint=failure.hint, steps=steps, failed_at=step) from failure
        numbers = {view.edit.operation: view.seq for view in outcome.edits}
        backed_up = FileBackedUp(
            original_file=shown(path),
            backup_file=shown(backup),
            backup_size=len(before.bytes),
            edit=numbers.get(Operation.CREATE, 0),
            mcp_conversation_id=outcome.conversation,
        )
        patched = PatchApplied(
            file_path=shown(path),
            changes=changes_of(part),
            message=f"Successfully applied patch to {shown(before.path.rpartition('/')[2])}",
            hunk_offsets=list(made.moved),
            edit=numbers.get(Operation.EDIT, 0),
            changed_since_read=not staging.all_known,
            mcp_conversation_id=outcome.conversation,
        )
        steps["backup"] = {"passed": True, "details": asdict(backed_up)}
        steps["apply"] = {"passed": True, "details": asdict(patched)}
        stepped = PatchStepped(
            steps=steps, backup_file=backed_up.backup_file, changes=patched.changes, **_recorded(outcome)
        )
        idle = _unchanged_notes(staging, has_backup=True)
        return Answer(content=stepped, text=None, notes=(*staging.notes, *idle, *untimely, *outcome_notes(outcome)))

    # ---- inside

    def _not_all_fit(self, failures: Sequence[tuple[str, Failure]], count: int) -> Failure:
        """Return the failure that lists the patches that can't be applied, as many as fit in an answer."""
        path, first = failures[0]
        page = page_of(failures, _size, offset=0, limit=0, budget=self._context.limits.max_answer)
        more = len(failures) - len(page.items)
        unlisted = f"{more} more that do not fit are not listed in failures." if more else ""
        return Failure(
            first.kind,
            f"Validation failed for {shown(path)}: {first}",
            hint=" ".join(filter(None, (first.hint, unlisted))),
            phase="validation",
            validated=count,
            failed=len(failures),
            failures=[{"file": shown(path), "reason": str(failure)} for path, failure in page.items],
        )

    def _mismatch_of(self, op: _Patch, failure: Failure) -> Failure:
        """Return the failure that validate_patch reports for a patch, or `failure` if the patch fits by now.

        What is wrong with an invalid patch is kept: validate_patch is not as strict.
        """
        if failure.kind is FailureKind.INVALID_PATCH:
            return failure.with_facts(file_path=shown(op.file_path), valid=False)
        try:
            self._single.validate_patch(op.file_path, op.text)
        except Failure as reported:
            return reported
        return failure

    def _try(self, trial: "_Trial", op: _Patch) -> None:
        """Refuse a patch that does not fit the result of the patches before it, without creating a store."""
        files, found = self._edits.changeable(op.file_path)
        key = (files.root, found.path)
        before = trial.get(key, found)
        part = op.part(absolute(files, before.path))
        text = file_text(before.bytes)
        trial[key] = replace(before, bytes=text.with_lines(op.applied(text, part).content))

    def _try_all(self, patches: Sequence[_Patch], failures: list[tuple[str, Failure]]) -> None:
        """Refuse patches if some do not fit, and add these to `failures`, without creating a store."""
        trial: _Trial = {}
        for op in patches:
            try:
                self._try(trial, op)
            except Failure as failure:
                failures.append((op.file_path, failure))
        if failures:
            raise self._not_all_fit(failures, len(patches))

    def _unread(self, workspace: Workspace, call: Call, paths: Sequence[str]) -> dict[str, Failure]:
        """Return the refusals of files that must be read first; called before the call has staged anything."""
        unread: dict[str, Failure] = {}
        for path in dict.fromkeys(paths):
            try:
                self._calls.refuse_unread(workspace, call, path)
            except Failure as failure:
                unread[path] = failure
        return unread

    def _stage(self, staging: "_Staging", op: _Patch) -> tuple[FilePatch, Applied]:
        """Stage a patch on a file as the call has changed it so far. Raises Failure, and what Call.read raises."""
        before = staging.call.read(op.file_path)
        part = op.part(absolute(staging.workspace, before.path))
        text = file_text(before.bytes)
        made = op.applied(text, part)
        content = text.with_lines(made.content)
        key = (staging.workspace.root, before.path)
        if key not in staging.known:
            staging.before[key] = before.blob
            staging.known[key] = self._context.session.knows(key, before.blob) is not Knowledge.STALE
        hunks = hunks_from_spans(text.lines, made.content, made.spans)
        staging.call.write(op.file_path, content, hunks=hunks, operation=Operation.EDIT)
        staging.after[key] = blob_id(content)
        if part.doubt is not None and len(staging.notes) < _MOST_NOTES:
            staging.notes += [f"{shown(op.file_path)}: {note}" for note in corrections_of(part)]
        return part, made

    def _finish(self, staging: "_Staging", *, backup: str = "") -> CallOutcome:
        """Commit the staged patches. `backup`: as of `TrackedCalls.commit`. Raises what Call.commit raises."""
        outcome = self._calls.commit(staging.workspace, staging.call, backup=backup)
        for key, blob in staging.after.items():
            if staging.known[key]:
                self._context.session.saw(key, blob)
            if staging.before[key] != blob:
                self._context.session.made(key, staging.before[key], blob)
        return outcome


_Trial: TypeAlias = dict[FileKey, Content]
"""The content that patches would give to files."""


class _Staging:
    """The staged patches of one call: what the session knew of their files, and the files' new versions."""

    def __init__(self, workspace: Workspace, call: Call) -> None:
        self.workspace = workspace
        self.call = call
        self.before: dict[FileKey, BlobId] = {}
        self.known: dict[FileKey, bool] = {}  # False: the file had changed since the session saw it
        self.after: dict[FileKey, BlobId] = {}
        self.notes: list[str] = []  # about corrected patches, of the first of them

    @property
    def all_known(self) -> bool:
        return all(self.known.values())


def _only(patches: Sequence[_Patch], strategy: Strategy) -> _Patch:
    """Return the only patch of a strategy that takes one. Raises Failure."""
    if len(patches) > 1:
        raise Failure(FailureKind.INVALID_REQUEST, f"{strategy.value} takes one patch, not {len(patches)}")
    return patches[0]


def _size(unfit: tuple[str, Failure]) -> int:
    """Return the size of a failure in an answer, in characters."""
    path, failure = unfit
    return min(len(shown(path)), LONGEST_WORDS) + min(len(str(failure)), LONGEST_WORDS)


def _unchanged_notes(staging: _Staging, *, has_backup: bool = False) -> tuple[str, ...]:
    """Return a note about the files that did not change, or (). `has_backup`: the call kept a backup."""
    idle = [absolute(staging.workspace, key[1]) for key, blob in staging.after.items() if staging.before[key] == blob]
    if not idle:
        return ()
    if len(idle) < len(staging.after):
        return (f"{nothing_to_change(*idle)}.",)
    return (_ONLY_BACKED_UP if has_backup else UNCHANGED if len(idle) == 1 else _ALL_UNCHANGED,)


class _Recorded(TypedDict):
    edits: list[int]
    mcp_conversation_id: str


def _recorded(outcome: CallOutcome) -> _Recorded:
    """Return the fields of every answer about what was recorded."""
    return {"edits": [view.seq for view in outcome.edits], "mcp_conversation_id": outcome.conversation}
