"""Word the notes that several tools add to an answer: nothing changed, a new conversation, a patch not applied."""

from shlex import quote
from typing import Final

from mcptools.edit.display import shown
from objstore import CallOutcome

__all__ = ["UNCHANGED", "edit_number", "not_applied", "nothing_to_change", "outcome_notes"]

UNCHANGED: Final = "The file already has this content: no edit was recorded, and there is nothing to undo."
"""The note of a call that left its file as it was."""


def edit_number(outcome: CallOutcome) -> int:
    """Return the number of a call's first edit, or 0 if the call changed nothing."""
    return outcome.edits[0].seq if outcome.edits else 0


def nothing_to_change(*places: str) -> str:
    """Return the text that replaces a success message where the files already had the wanted content."""
    return f"Nothing to change in {', '.join(places)}"


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
