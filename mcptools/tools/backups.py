"""Back up files next to themselves, and restore files from backups.

A backup is a tracked create and a restore a tracked change, so a person can review both. `Undo` takes back a restore,
and leaves backups alone. Permissions and times are copied with the bytes, both ways.
"""

import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Final

from mcptools.answers.edits import Answer
from mcptools.answers.patches import BackupRestored, FileBackedUp
from mcptools.edit.display import shown
from mcptools.model.cancellation import checkpoint
from mcptools.model.failures import Failure, FailureKind
from mcptools.tools.calls.notes import UNCHANGED, edit_number, outcome_notes
from mcptools.tools.calls.safety import SafetyChecks, refusing
from mcptools.tools.calls.tracked_calls import TrackedCalls
from mcptools.tools.context import ConversationArgument, ToolContext, converting_errors
from objstore import BlobId, Call, CasError, Content, FileMissing, FileState, Operation, PathInfo, Workspace

__all__ = ["BackupTools", "keep_times", "stage_backup"]

_NAME: Final = re.compile(r"(?P<original>.*[^/])\.backup\.\d{8}_\d{6}", re.DOTALL)
_CHANGED: Final = "The file had changed since the backup; its previous content stays in the history."
_OVERWRITES: Final = "Pass force=true to overwrite it; its current content stays in the history."
_OTHER_PERMISSIONS: Final = (
    "Its permissions are {:o}, and the backup's {:o}. Pass force=true to overwrite it all the same; the history keeps "
    "the current ones."
)
_PAUSE: Final = 0.1
"""Seconds between two checks whether the call was cancelled, while it waits for a free name."""

_REGRANTED: Final = "Its permissions were {:o} and are now the backup's, {:o}; the history has both."


class BackupTools:
    """The backup tools."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._calls = TrackedCalls(context)
        self._safety = SafetyChecks(context)

    def backup_file(
        self,
        file_path: Annotated[str, "Path to the file to backup"],
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[FileBackedUp]:
        """Create a timestamped backup: `{file_path}.backup.YYYYMMDD_HHMMSS`, next to the file."""
        with refusing(original_file=shown(file_path)):
            facts = self._safety.checked_with_facts(file_path, space=True)[1]
            # The call changes the backup and not the file. Which name is free is only certain under the lock.
            place = self.free_name(file_path)
            with self._calls.hold("backup_file", place, mcp_conversation_id, file_path, allows_unread=True) as (
                workspace,
                call,
            ):
                original = call.read(file_path)
                named = stage_backup(call, file_path, original)
                outcome = self._calls.commit(workspace, call, backup=named)
                self._context.session.copied((workspace.root, original.path), original.blob)
                untimely = keep_times(workspace, named, facts)
        backed_up = FileBackedUp(
            original_file=shown(file_path),
            backup_file=shown(named),
            backup_size=len(original.bytes),
            edit=edit_number(outcome),
            mcp_conversation_id=outcome.conversation,
        )
        return Answer(content=backed_up, text=None, notes=(*untimely, *outcome_notes(outcome)))

    def restore_backup(
        self,
        backup_file: Annotated[str, "Path to the backup file to restore from"],
        target_file: Annotated[
            str, "Path where the backup should be restored (optional, defaults to original location)"
        ] = "",
        *,
        force: Annotated[bool, "Overwrite target even if it has been modified (default: false)"] = False,
        mcp_conversation_id: ConversationArgument = "",
    ) -> Answer[BackupRestored]:
        """Restore a file from backup.

        Without force, refused if the target has been modified since the backup.
        """
        with refusing(backup_file=shown(backup_file)):
            try:
                backup, facts = self._safety.checked_with_facts(backup_file)
            except Failure as failure:
                if failure.kind is not FailureKind.FILE_NOT_FOUND:
                    raise
                raise Failure(failure.kind, "Backup file not found") from failure
            target = target_file or _original(backup_file)
            given = FileState(blob=backup.blob, mode=backup.mode)
            size = len(backup.bytes)
            self._safety.check_target(target)
            with self._calls.hold(
                "restore_backup",
                target,
                mcp_conversation_id,
                precheck=lambda: self._check(target, self._found(target, size), given, size, force=force),
                allows_unread=True,
            ) as (workspace, call):
                key, now = (workspace.root, call.place(target)), call.state(target)
                if now is not None and now != given:
                    self._calls.refuse_unread(workspace, call, target)
                is_own = now is not None and self._context.session.led(key, given, now)
                self._check(target, now, given, size, force=force, is_own=is_own)
                call.write(target, backup.bytes, mode=backup.mode, operation=Operation.REPLACE)
                outcome = self._calls.commit(workspace, call)
                if now != given:
                    self._context.session.saw(key, given.blob, whole=True)
                untimely = keep_times(workspace, target, facts)
        restored = BackupRestored(
            backup_file=shown(backup_file),
            restored_to=shown(target),
            restored_size=len(backup.bytes),
            edit=edit_number(outcome),
            mcp_conversation_id=outcome.conversation,
        )
        return Answer(
            content=restored,
            text=None,
            notes=(
                *(() if outcome.edits else (UNCHANGED,)),
                *((_CHANGED,) if now is not None and now.blob != given.blob else ()),
                *(() if now is None or now.mode == given.mode else (_REGRANTED.format(now.mode, given.mode),)),
                *untimely,
                *outcome_notes(outcome),
            ),
        )

    def _check(
        self, target: str, now: FileState | None, given: FileState, size: int, *, force: bool, is_own: bool = False
    ) -> None:
        """Refuse to restore a backup of this state and size if anybody else changed its file since. Raises Failure.

        `now`: the file's state; `is_own`: this session's own calls made it of the backup's, so that it may take them
        back, even where the disk has no more free space than that needs. A file that is as the backup is not written.
        """
        if now == given:
            return
        if now is not None and not is_own and not force:
            raise _modified(target, now, given)
        self._safety.check_writable(target, size, reserve=not is_own)

    def _found(self, target: str, size: int) -> FileState | None:
        """Return the state of a file on disk, without a blob if it has another size. Raises PathError."""
        files = self._context.directories.files_of(target)
        try:
            facts = files.facts(target)
        except FileMissing:
            return None
        blob = files.read(target, limit=size, follow=False).blob if facts.size == size else BlobId(b"")
        return FileState(blob=blob, mode=facts.mode)

    def free_name(self, path: str) -> str:
        """Return a free name for a backup of a file, made now. Raises Failure."""
        with converting_errors(path):
            files = self._context.directories.files_of(path)

            def exists(name: str) -> bool:
                try:
                    files.facts(name)
                except FileMissing:
                    return False
                return True

            return _free_name(path, exists)


def stage_backup(call: Call, path: str, original: Content) -> str:
    """Add the backup of a file to a call, under a free name, which is returned. Raises what Call.write raises."""
    name = _free_name(path, call.exists)
    call.write(name, original.bytes, mode=original.mode)
    return name


def keep_times(workspace: Workspace, path: str, facts: PathInfo) -> tuple[str, ...]:
    """Set the times of a file, just written under the lock, to those in `facts`; return a note if that fails."""
    try:
        workspace.files.set_times(path, accessed=facts.accessed, modified=facts.modified)
    except (CasError, OSError) as error:
        # The bytes are written and recorded, so the call has succeeded.
        return (f"The times of {shown(path)} could not be kept: {shown(str(error))}",)
    return ()


def _modified(path: str, now: FileState, backup: FileState) -> Failure:
    """Return the refusal to overwrite a file that differs from its backup."""
    hint = _OVERWRITES if now.blob != backup.blob else _OTHER_PERMISSIONS.format(now.mode, backup.mode)
    message = f"Target has been modified since backup: {shown(path)}"
    return Failure(FailureKind.CONTEXT_MISMATCH, message, hint=hint, path=shown(path))


def _free_name(path: str, exists: Callable[[str], bool]) -> str:
    """Return a name for a backup that is made now, which no other backup has.

    The second in the name is the current one: where this second has a backup already, wait for the next.
    """
    while True:
        moment = datetime.now().astimezone()
        name = f"{path}.backup.{moment:%Y%m%d_%H%M%S}"
        if not exists(name):
            return name
        checkpoint()
        time.sleep(min(_PAUSE, 1 - moment.microsecond / 1_000_000))


def _original(backup: str) -> str:
    """Return the path of the file that a backup was made of, derived from the backup's name. Raises Failure."""
    found = _NAME.fullmatch(backup)
    if found is None:
        raise Failure(
            FailureKind.IO,
            f"Cannot derive the original location from the name of the backup: {shown(backup)}",
            hint="Backups are called NAME.backup.YYYYMMDD_HHMMSS; for any other name give target_file.",
        )
    return found["original"]
