"""Word the notes that several tools add to an answer.

A file was left as it was, a conversation is new, a patch was not applied, another session has changed the same files.
"""

from contextlib import suppress
from shlex import quote
from typing import Final

from mcptools.edit.display import one_line, shown
from mcptools.edit.file_text import UTF8_MARK, encoding, line_endings
from mcptools.tools.context import ToolContext, absolute
from objstore import CallOutcome, CasError, Collision, Workspace

__all__ = [
    "UNCHANGED",
    "collision_notes",
    "edit_number",
    "not_applied",
    "nothing_to_change",
    "outcome_notes",
    "turned_round",
]

UNCHANGED: Final = "The file already has this content: no edit was recorded, and there is nothing to undo."
"""The note of a call that left its file as it was."""

_SENT: Final = {"crlf": r"\r\n", "cr": r"\r"}

_COLLIDED: Final = (
    "Another agent has changed files that you have changed too, and neither is reviewed yet. "
    "Read them again before you edit them:"
)
_MOST_NAMED: Final = 20


def edit_number(outcome: CallOutcome) -> int:
    """Return the number of a call's first edit, or 0 if the call changed nothing."""
    return outcome.edits[0].seq if outcome.edits else 0


def nothing_to_change(*places: str) -> str:
    """Return the text that replaces a success message where the files already had the wanted content."""
    return f"Nothing to change in {', '.join(places)}"


def turned_round(before: bytes, after: bytes) -> tuple[str, ...]:
    """Return the notes about line endings and a byte-order mark that a file had, and that its new content lacks.

    Also one about UTF-16, which the new content has kept.
    """
    had, has = line_endings(before), line_endings(after)
    notes = []
    if encoding(after).startswith("utf-16"):
        notes.append("The file is UTF-16, and stays so.")
    if had in {"crlf", "cr"} and has in {"lf", "mixed"}:
        now = "end in LF" if has == "lf" else "end in LF in part"
        notes.append(
            f"All lines ended in {had.upper()}, and now {now}. If that is not meant, write it again with {_SENT[had]}."
        )
    if had == "lf" and has == "crlf":
        notes.append("All lines ended in LF, and now end in CRLF.")
    if before.startswith(UTF8_MARK) and not after.startswith(UTF8_MARK):
        notes.append("The byte-order mark at its beginning is gone.")
    return tuple(notes)


def not_applied(why: str) -> tuple[str, ...]:
    """Return the note for a patch that fits in a dry run but would be refused if applied."""
    return (f"The patch fits, but applying it now would be refused: {why}",)


def outcome_notes(outcome: CallOutcome) -> tuple[str, ...]:
    """Return the notes that give a client the id of a conversation that its call began, and name stored secrets."""
    notes = []
    if outcome.new_conversation:
        notes.append(f"New conversation. Pass mcp_conversation_id={outcome.conversation} with your further changes.")
    for path in outcome.secrets:
        place = shown(path)
        notes.append(
            f"{place} looks like a secret by its name. Its bytes are stored, so that the edit can be undone; "
            f"`cas purge {quote(place)}` removes them."
        )
    return tuple(notes)


def collision_notes(context: ToolContext) -> tuple[str, ...]:
    """Return a note about each file that other sessions have changed, once; of files that the client may see.

    Only an edit that came after the session's last read or write before this call is news.
    """
    found: list[str] = []
    session = context.session
    for workspace in context.directories.opened() if session.has_turns() else ():
        # What the tool did is done: if this can't be determined or remembered, the answer is without it.
        with suppress(CasError, OSError):
            written = {file: met for file, met in session.written().items() if file[0] == workspace.root}
            collisions: list[Collision] = []
            for collision in workspace.messages.collisions(session.name):
                if context.directories.allows(workspace, collision.path):
                    file = workspace.root, collision.path
                    collisions += _news(workspace, collision, written.get(file, session.met(file)))
            if collisions:
                workspace.messages.mark_collisions_reported(session.name, collisions)
                found += [f"- {one_line(absolute(workspace, collision.path))}" for collision in collisions]
            session.compared(written)
    more = [f"- and {len(found) - _MOST_NAMED} more"] if len(found) > _MOST_NAMED else []
    return (_COLLIDED, *found[:_MOST_NAMED], *more) if found else ()


def _news(workspace: Workspace, collision: Collision, met: int) -> list[Collision]:
    """Return a collision with only those sessions that changed the file since `met`; [] if none did."""
    later = {
        session: seqs for session, seqs in collision.edits.items() if workspace.history.edit(max(seqs)).edit.time >= met
    }
    return [Collision(path=collision.path, edits=later)] if later else []
