"""Define the answers of the review in a client's window: changes that await a person, and what a decision did.

What `cas` prints with --json too has the same names, which docs/json.md explains. Its lines count from 0.
"""

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["ChangeNamed", "ChangeShown", "DecisionTaken", "ReviewShown", "WindowShown", "change_size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeNamed:
    """The name of a change, and where it is."""

    key: str
    new_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeShown:
    """One net change: what a decision on it concerns, and its lines."""

    key: str  # names the change as it is now, in hex
    file_path: str
    kind: str
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    words: str  # what it does to the file as a whole; "": it only changes lines
    hunks: list[str]  # names for `cas accept` and `cas reject`, the first ones
    more_hunks: int  # that are not named
    shares_with: list[ChangeNamed]  # the other changes of the file that are decided with it, the first ones
    before: str  # unchanged lines above it
    removed: str
    inserted: str
    after: str  # unchanged lines below it
    cut: bool  # it is too long to be shown whole
    comments: list[dict[str, Any]]  # those on it that are not resolved, oldest first


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewShown:
    """The changes that await a person's review, or a page of them."""

    success: bool = True
    turn: int  # whose changes these are; 0: of any
    client: str  # the program that made them; "": not known, or several
    prompt: str  # what it was asked; "": not known
    changes: list[ChangeShown]
    total: int  # of changes
    offset: int
    next_offset: int  # in changes
    remarks: list[str]
    decides: bool  # a person can decide in the window
    reason: str  # why not; "": they can


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTaken:
    """The outcome of a decision."""

    outcome: str  # as of `cas accept --json`, or commented, confirm, overtaken, refused, failed; "": none was asked for
    message: str
    decision: int  # its number, for `undo`; 0: there is nothing to undo


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowShown:
    """The window's data: the outcome of a decision, the changes after it, and the decisions that can be undone."""

    success: bool = True
    taken: DecisionTaken
    review: ReviewShown
    decisions: list[int]  # that the window made and that are still in force, oldest first


def change_size(change: ChangeShown) -> int:
    """Return the size of a change in an answer, in characters, as structured content or as text, whichever is more."""
    comments = map(json.dumps, change.comments)
    texts = [change.file_path, change.words, change.before, change.removed, change.inserted, change.after, *comments]
    lines = sum(text.count("\n") for text in texts)
    names = sum(len(name) + 4 for name in change.hunks) + 80 * len(change.shares_with)
    return 300 + sum(map(len, texts)) + 2 * lines + names
