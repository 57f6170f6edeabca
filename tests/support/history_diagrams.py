"""Pictures of histories: what a text is when some of its edits are rejected.

A picture is a row of words, one word a line; `~` at its end says that the last line has no newline, and
`-` alone that there is no file. An edit is named by its place, a hunk of it as `edit:hunk`. A refusal reads
`C: 2 needs 1`, and leaves the history as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from objstore.text.diff import Hunk, diff_lines
from objstore.weave.line_weave import BASE, UnitIndex, Weave
from tests.support.weave_statuses import set_live

if TYPE_CHECKING:
    from objstore.model.basic_types import ConflictKind

__all__ = ["History", "history", "picture", "text"]


def text(picture: str) -> bytes | None:
    if picture == "-":
        return None
    words = picture.removesuffix("~").split()
    whole = b"".join(word.encode() + b"\n" for word in words)
    return whole[:-1] if picture.endswith("~") else whole


def picture(content: bytes | None) -> str:
    if content is None:
        return "-"
    return " ".join(content.decode().split()) + ("" if content.endswith(b"\n") or not content else "~")


class History:
    """A weave that speaks in pictures."""

    def __init__(self, base: str, *states: str) -> None:
        self.weave = Weave(text(base))
        self.edits: list[tuple[UnitIndex, ...]] = [(BASE,)]
        self.then(*states)

    def then(self, *states: str) -> History:
        """Record further edits, each found by diff."""
        for state in states:
            before, after = self.weave.text(), text(state)
            self.record(state, *(diff_lines(before, after) if before is not None and after is not None else ()))
        return self

    def record(self, state: str, *hunks: Hunk) -> History:
        """Record an edit with the hunks that it really had."""
        self.edits.append(self.weave.record(text(state), hunks))
        return self

    def units(self, name: int | str) -> tuple[UnitIndex, ...]:
        edit, _, hunk = str(name).partition(":")
        return (self.edits[int(edit)][int(hunk)],) if hunk else self.edits[int(edit)]

    def name(self, unit: UnitIndex) -> int:
        return next(edit for edit, units in enumerate(self.edits) if unit in units)

    def reject(self, *names: int | str) -> str:
        return self.decide({unit: False for name in names for unit in self.units(name)})

    def accept(self, *names: int | str) -> str:
        return self.decide({unit: True for name in names for unit in self.units(name)})

    def decide(self, changes: dict[UnitIndex, bool]) -> str:
        undo = {unit: self.weave.is_live(unit) for unit in changes}
        conflicts = set_live(self.weave, changes)
        if not conflicts:
            return self.text
        said = sorted({f"{self.name(c.unit)} needs {self.name(need)}" for c in conflicts for need in c.needs})
        assert set_live(self.weave, undo) == ()
        return "C: " + ", ".join(said)

    @property
    def text(self) -> str:
        return picture(self.weave.text())

    def kinds(self, *names: int) -> set[ConflictKind]:
        """Return which rules break when the edits are rejected, and reject them no longer."""
        changes = {unit: False for name in names for unit in self.units(name)}
        found = {conflict.kind for conflict in set_live(self.weave, changes)}
        set_live(self.weave, dict.fromkeys(changes, True))
        return found


def history(base: str, *states: str) -> History:
    return History(base, *states)
