"""The keys of a review: the same in the terminal and on the page; the terminal has a few more."""

from collections.abc import Mapping
from typing import Final

__all__ = ["ASKED", "KEYS", "TERMINAL_KEYS"]

KEYS: Final[Mapping[str, str]] = {
    "j": "next change; this one stays pending",
    "k": "previous change that is pending",
    "J": "next file",
    "K": "previous file",
    "a": "accept this change",
    "x": "reject this change",
    "X": "reject it, with a reason for the agent",
    "c": "comment on this change, for the agent",
    "s": "split it: decide on its parts one by one",
    "e": "show the single edits of this change; again: show the change",
    ".": "mark it seen and go on; it stays pending",
    "u": "undo the newest decision",
    "U": "redo what was undone",
    "t": "decide on the whole turn: the one that the review is about, else that of this change",
    "f": "decide on the whole file",
    "/": "search: go to the next change that holds a text",
    "?": "list all keys",
    "q": "leave; every decision is recorded already",
}
"""What each key does, in words. `cli/web/static/keys.js` has the same keys."""

TERMINAL_KEYS: Final[Mapping[str, str]] = {
    " ": "show more of a long change",
    "n": "search for the same text again",
    "v": "view all changes of the file in the pager",
    "E": "edit: amend the file in your editor",
}
"""Further keys of the terminal: it has neither a scroll bar nor menus."""

ASKED: Final = "a,x,X,c,s,e,j,k,t,f,u,q,?"
"""The keys that each question names; `?` lists the others. A question fits on a line of 80 columns."""
