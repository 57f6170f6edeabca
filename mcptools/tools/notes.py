"""Word the notes that several tools add to an answer: nothing changed, a new conversation, a patch not applied."""

from typing import Final

from objstore import CallOutcome

__all__ = ["UNCHANGED", "conversation_notes", "edit_number", "not_applied", "nothing_to_change"]

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


def conversation_notes(outcome: CallOutcome) -> tuple[str, ...]:
    """Return the note that gives a client the id of a conversation that its call began."""
    if not outcome.new_conversation:
        return ()
    return (f"New conversation. Pass mcp_conversation_id={outcome.conversation} with your further changes.",)
