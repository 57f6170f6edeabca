"""Write the text of a review for the model, and the outcome of a person's decision for the window."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from mcptools.answers.review import ChangeShown, DecisionTaken, ReviewShown
from mcptools.edit.display import one_line, shown
from objstore import (
    Action,
    Conflicted,
    Decided,
    DecisionOutcome,
    EditView,
    ExternalChanges,
    Selected,
    Status,
    Unit,
    few,
    outcome_name,
    outcome_words,
    question_words,
    step_question,
)

__all__ = ["counted", "question", "review_notes", "review_text", "sentence", "taken", "undo_question"]

_MOST_NAMED: Final = 5


def review_text(review: ReviewShown) -> str:
    """Return a review as text for the model: a heading, the changes, and how a person decides."""
    by = f" by {one_line(review.client)}" if review.client else ""
    of = f" of turn {review.turn}{by}" if review.turn else ""
    prompt = f' ("{one_line(review.prompt)}")' if review.prompt else ""
    if not review.changes:
        return f"No change{of} awaits review."
    name = review.changes[0].hunks[0]
    window = "in the window that the client shows, " if review.decides else ""
    head = f"{counted(review)[:-1]}{of}{prompt}."
    how = (
        f"Only a person decides: {window}with `cas web` or `cas review`, or by the names in brackets, as in "
        f"`cas accept {name}` and `cas reject {name}`."
    )
    return "\n\n".join([head, *map(_change_text, review.changes), how])


def counted(review: ReviewShown) -> str:
    """Return how many changes await review, as a sentence."""
    return "1 change awaits review." if review.total == 1 else f"{review.total} changes await review."


def review_notes(review: ReviewShown) -> tuple[str, ...]:
    """Return the remarks on a review, and the offset of its next page."""
    if not review.next_offset:
        return tuple(review.remarks)
    span = f"These are changes {review.offset + 1} to {review.next_offset} of {review.total}."
    return (*review.remarks, f"{span} Go on with offset={review.next_offset}.")


def question(action: Action, found: Selected, shown: Mapping[Unit, Status], edit: Callable[[int], EditView]) -> str:
    """Return what to ask before a decision that takes more along than the window shows, or takes out what is accepted.

    `shown`: all units that it is on, with what goes along.
    """
    along = {unit: status for unit, status in shown.items() if unit not in found.units}
    said = question_words(action, found.units, along, edit)
    return f"{said} Nothing was decided yet: {action.value} it once more to go ahead."


def undo_question(planned: Decided, edit: Callable[[int], EditView]) -> str:
    """Return what to ask before an undo that takes along more than it takes back."""
    return (
        f"{one_line(shown(step_question(planned, edit, _name)))} Nothing was undone yet: undo it once more to go ahead."
    )


def taken(outcome: DecisionOutcome, edit: Callable[[int], EditView], files: Sequence[str] = ()) -> DecisionTaken:
    """Return the outcome of a decision as text. `edit`: returns an edit by its number. `files`: of its edits."""
    words = outcome_words(outcome, edit, _name, files=files)
    first = ""
    said = words.sentences
    match outcome:
        case Conflicted():
            said = (words.done, *words.along[:_MOST_NAMED])
            more = len(words.along) - _MOST_NAMED
            first = f" And {more} more." if more > 0 else ""
            first += f" Accept {few(outcome.accept_first, _MOST_NAMED)} first." if outcome.accept_first else ""
            first += f" Reject {few(outcome.reject_first, _MOST_NAMED)} first." if outcome.reject_first else ""
        case ExternalChanges():
            first = " `cas review` in a terminal asks whether to keep or to drop that."
    number = outcome.number if isinstance(outcome, Decided) and outcome.action is not Action.UNDO else 0
    message = " ".join(sentence(one_line(shown(text))) for text in said)
    return DecisionTaken(outcome=outcome_name(outcome), message=f"{message}{first}", decision=number)


def _name(path: str) -> str:
    return one_line(shown(path))


def sentence(text: str) -> str:
    """Return a text that ends with a full stop."""
    return text if text.endswith(".") else f"{text}."


def _change_text(change: ChangeShown) -> str:
    """Return a change as text: where it is, the names of its hunks, and its lines as in a diff."""
    line = (change.old_start if change.kind == "delete" else change.new_start) + 1
    is_of_lines = change.old_count or change.new_count
    where = f"{one_line(change.file_path)}:{line}" if is_of_lines else one_line(change.file_path)
    words = f" {change.words}" if change.words else ""
    more = f" and {change.more_hunks} more" if change.more_hunks else ""
    others = ", ".join(f"line {other.new_start + 1}" for other in change.shares_with)
    parts = [
        f"@@ {where}{words} [{' '.join(change.hunks)}{more}]{f' decided with {others}' if others else ''}",
        *_marked(" ", change.before),
        *_marked("-", change.removed),
        *_marked("+", change.inserted),
        *_marked(" ", change.after),
        *(["(cut: `cas diff` shows all of it)"] if change.cut else []),
        *(f"# {one_line(said)}" for comment in change.comments for said in _comment_lines(comment)),
    ]
    return "\n".join(parts)


def _comment_lines(comment: Mapping[str, Any]) -> Iterator[str]:
    """Yield who said what: the comment, and its answers."""
    yield f"{_author(comment)}, {comment['state']}: {comment['text']}"
    yield from (f"{_author(answer)}: {answer['text']}" for answer in comment["answers"])


def _author(said: Mapping[str, Any]) -> str:
    return said["who"] or ("agent" if said["conversation_id"] else "person")


def _marked(mark: str, text: str) -> Iterator[str]:
    if text:
        yield from (f"{mark}{line}" for line in text.removesuffix("\n").split("\n"))
        if not text.endswith("\n"):
            yield "\\ No newline at end of file"
